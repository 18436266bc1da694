//! Mails as they come, good and bad.

use super::*;
use crate::mail::Delivery;

fn parse_mail(text: &str) -> Result<ReadMail, MailFault> {
    read_mail(text.replace('\n', "\r\n").as_bytes(), &MostMail::default())
}

#[test]
fn a_mail_is_read_with_its_names_and_words() {
    let mail = parse_mail(
        "From: =?utf-8?q?The_D=C3=A9sk?= <Desk@Agent.example>\nTo: x@y.example\nSubject: =?utf-8?b?VGFibGUg8J+Yig==?=\n\
         Message-ID: <two@agent.example>\nIn-Reply-To: <one@in.example>\nReferences: <zero@in.example>\n <one@in.example>\n\
         MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
         Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nF=FCr zwei.\n\n> alt\n\
         --b\nContent-Type: application/pdf; name=\"menu.pdf\"\nContent-Disposition: attachment; filename=\"menu.pdf\"\n\
         Content-Transfer-Encoding: base64\n\nAAECAw==\n--b--\n",
    );
    let mail = mail.expect("it is a mail");
    assert_eq!((mail.sender.name.as_str(), mail.sender.address.as_str()), ("The Désk", "Desk@Agent.example"));
    assert_eq!((mail.subject.as_str(), mail.message_id.as_deref()), ("Table 😊", Some("two@agent.example")));
    assert_eq!(mail.references, ["zero@in.example", "one@in.example"]);
    assert_eq!((mail.words.as_str(), mail.quoted.as_str()), ("Für zwei.", "> alt"));
    let file = MailFile { name: "menu.pdf".into(), kind: "application/pdf".into(), bytes: 4 };
    assert_eq!(mail.files, [file]);
    assert!(!mail.is_list && !mail.is_automatic && mail.report.is_none());
}

#[test]
fn html_serves_where_there_is_no_plain_text() {
    let html = "From: a@b.example\nContent-Type: text/html\n\n<p>At <b>eight</b>.</p><blockquote>When?</blockquote>\n";
    let mail = parse_mail(html).expect("it is a mail");
    assert_eq!((mail.words.as_str(), mail.quoted.trim()), ("At eight.", "When?"));
    let both = "From: a@b.example\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n\
                Plain.\n--b\nContent-Type: text/html\n\n<p>Rich.</p>\n--b--\n";
    assert_eq!(parse_mail(both).expect("it is a mail").words, "Plain.");
}

#[test]
fn mail_of_programs_and_lists_says_so() {
    let check = |header: &str, is_automatic, is_list| {
        let mail = parse_mail(&format!("From: a@b.example\n{header}\n\nHi.\n")).expect("it is a mail");
        assert_eq!((mail.is_automatic, mail.is_list), (is_automatic, is_list), "{header}");
    };
    check("Auto-Submitted: auto-replied (vacation)", true, false);
    check("Auto-Submitted: no", false, false);
    check("Precedence: bulk", true, false);
    check("Precedence: first-class", false, false);
    check("List-Id: <list.example>", false, true);
    check("X-Other: yes", false, false);
}

#[test]
fn of_several_senders_none_is_known() {
    for from in ["From: a@b.example, c@d.example", "From: a@b.example\nFrom: c@d.example", "Sender: a@b.example"] {
        let mail = parse_mail(&format!("{from}\n\nHi.\n")).expect("it is a mail");
        assert_eq!(mail.sender.address, "", "{from}");
    }
    let shown = parse_mail("From: \"desk@agent.example\" <thief@evil.example>\n\nHi.\n").expect("it is a mail");
    assert_eq!(shown.sender.address, "thief@evil.example");
}

#[test]
fn reports_name_the_mail_and_its_fate() {
    let report = |action: &str, original: &str| {
        let text = format!(
            "From: MAILER-DAEMON@mx.example\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n\
             --b\n\nIt went wrong.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\n\
             Final-Recipient: rfc822; desk@agent.example\nAction: {action}\nStatus: 5.1.1\n\
             Diagnostic-Code: smtp; 550 5.1.1 no such\n user\n--b\n{original}\n--b--\n"
        );
        parse_mail(&text).expect("it is a mail").report.expect("it is a report")
    };
    let whole = "Content-Type: message/rfc822\n\nMessage-ID: <one@in.example>\nSubject: x\n\nHi.";
    let failed = report("failed", whole);
    assert_eq!((failed.delivery, failed.status.as_str()), (Delivery::Failed, "5.1.1"));
    assert_eq!((failed.why.as_str(), failed.about), ("550 5.1.1 no such user", vec!["one@in.example".to_owned()]));
    let headers = "Content-Type: text/rfc822-headers\n\nSubject: x\nMessage-Id: <one@in.example>";
    let delayed = report("delayed", headers);
    assert_eq!((delayed.delivery, delayed.about), (Delivery::Delayed, vec!["one@in.example".to_owned()]));
    assert_eq!(report("relayed", headers).delivery, Delivery::Done);
}

#[test]
fn bombs_are_refused_by_what_they_are() {
    let check = |text: String, expect| assert_eq!(parse_mail(&text).err(), Some(expect));
    let headers: String = (0..100_000).map(|n| format!("X-{n}: y\n")).collect();
    check(format!("From: a@b.example\n{headers}\nHi.\n"), MailFault::TooManyHeaders);
    let parts = "--b\nContent-Type: text/plain\n\nx\n".repeat(101);
    let mixed = |parts: &str| format!("From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n");
    check(mixed(&parts), MailFault::TooManyParts);
    check(mixed(&"--b\n\nx\n".repeat(100_000)), MailFault::TooManyParts);
    let deep = |levels: usize| {
        let begin: String =
            (0..levels).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n")).collect();
        format!("From: a@b.example\n{begin}Content-Type: text/plain\n\nx\n")
    };
    assert!(parse_mail(&deep(19)).is_ok());
    check(deep(40), MailFault::TooDeep);
    check(deep(100_000), MailFault::TooManyParts);
    let nested = "Content-Type: message/rfc822\n\n".repeat(100_000);
    check(format!("From: a@b.example\n{nested}x\n"), MailFault::TooDeep);
    let small = MostMail { bytes: 10, ..MostMail::default() };
    assert_eq!(read_mail(b"From: a@b.example\r\n\r\nHi.\r\n", &small), Err(MailFault::TooLarge));
}

#[test]
fn broken_mime_is_survived() {
    for text in [
        "Content-Type: multipart/mixed; boundary=\"\"\n\n--\n\n----\n",
        "From: <<<>>>\nSubject: =?utf-8?q?=?=\nContent-Type: ;;;\n\n=\n",
        "Content-Type: text/plain; charset=nothing\nContent-Transfer-Encoding: base64\n\n!!!!\n",
        "\n\n\n",
        "no header at all",
        "Content-Type: multipart/mixed; boundary=b\n\n--b",
        "From: a@b.example\nContent-Type: message/rfc822\n\n",
        "From:\u{0}\n\n\u{0}\n",
    ] {
        let mail = parse_mail(text);
        assert!(mail.is_ok() || mail == Err(MailFault::Broken), "{text:?}");
    }
}
