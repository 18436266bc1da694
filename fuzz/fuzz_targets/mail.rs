//! Mails as they come: each is read within its limits or refused, and what is read of it cannot break the header of an
//! answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_provider::mail::{Letter, MailParty, MostMail, read_mail, reply_subject, split_text};

fuzz_target!(|data: &[u8]| {
    let most = MostMail { bytes: 4000, parts: 20, depth: 5, headers: 50, words_chars: 500 };
    let text = String::from_utf8_lossy(data);
    let split = split_text(&text);
    assert!(split.words.len() + split.quoted.len() <= text.len() + 1, "{split:?}");
    let Ok(mail) = read_mail(data, &most) else { return };
    assert!(data.len() <= most.bytes);
    for words in [&mail.words, &mail.quoted] {
        assert!(words.chars().count() <= most.words_chars);
    }
    assert!(mail.files.len() <= most.parts);
    let lines = [&mail.subject, &mail.sender.name].into_iter().chain(&mail.references).chain(&mail.message_id);
    assert!(lines.chain(mail.files.iter().map(|file| &file.name)).all(|line| !line.contains(['\r', '\n'])), "{mail:?}");

    // An answer to it has exactly the fields that it always has.
    let own = MailParty { name: mail.sender.name.clone(), address: "dh-1-0a@in.example".to_owned() };
    let letter = Letter {
        from: own.clone(),
        to: own,
        subject: reply_subject(&mail.subject),
        message_id: "one@in.example".to_owned(),
        references: mail.references.iter().chain(&mail.message_id).cloned().collect(),
        result_id: "1".to_owned(),
        text: mail.words.clone(),
        at_ms: 0,
    };
    let written = letter.bytes().expect("its addresses are valid");
    let head = String::from_utf8_lossy(&written).into_owned();
    let head = head.split("\r\n\r\n").next().unwrap_or_default();
    let known = ["from", "to", "subject", "date", "message-id", "in-reply-to", "references", "x-simulation-result-id",
        "mime-version", "content-type", "content-transfer-encoding"];
    for line in head.split("\r\n").filter(|line| !line.starts_with([' ', '\t'])) {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        assert!(known.contains(&name.as_str()), "{line:?}");
    }
});
