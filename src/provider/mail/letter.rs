//! A mail of a conversation, written for the wire (RFC 5322). Names, subjects and ids come from users and agents: none
//! of them adds a header.

use std::time::{Duration, UNIX_EPOCH};

use lettre::Message;
use lettre::address::Address;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};

/// Header that carries the id of the result.
const RESULT_HEADER: &str = "X-Simulation-Result-Id";
/// Longest subject in characters.
const SUBJECT_CHARS: usize = 78;
/// Most ids of References (RFC 5322 3.6.4): the first, and the latest ones.
const MOST_REFERENCES: usize = 20;
/// Longest id in bytes that is referred to.
const ID_BYTES: usize = 250;

/// Name and address of one side of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailParty {
    /// Name for display; may be empty.
    pub name: String,
    /// Address of the mailbox.
    pub address: String,
}

/// A mail that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Sender of the header and of the envelope.
    pub from: MailParty,
    /// The one recipient of the mail.
    pub to: MailParty,
    /// Subject of the mail.
    pub subject: String,
    /// Message-ID of the mail, without brackets.
    pub message_id: String,
    /// Message-IDs of the mails before it, without brackets, oldest first.
    pub references: Vec<String>,
    /// Id of the result.
    pub result_id: String,
    /// Words of the mail.
    pub text: String,
    /// Time of its writing, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Reason why a mail cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterFault {
    /// The sender's address is not valid.
    Sender,
    /// The recipient's address is not valid.
    Recipient,
    /// The mail cannot be put together.
    Content,
}

impl LetterFault {
    /// Returns the fault in words.
    pub fn as_str(self) -> &'static str {
        match self {
            LetterFault::Sender => "the address of the sender is not valid",
            LetterFault::Recipient => "the address of the recipient is not valid",
            LetterFault::Content => "the mail cannot be written",
        }
    }
}

impl MailParty {
    /// True if mail can be addressed to it.
    pub fn is_valid(&self) -> bool {
        self.address.parse::<Address>().is_ok()
    }

    fn mailbox(&self) -> Option<Mailbox> {
        let name = one_line(&self.name);
        Some(Mailbox::new(Some(name).filter(|name| !name.is_empty()), self.address.parse().ok()?))
    }
}

impl Letter {
    /// Returns the mail as bytes, with CRLF at the ends of lines.
    ///
    /// # Errors
    /// The part that is not valid.
    pub fn bytes(&self) -> Result<Vec<u8>, LetterFault> {
        let from = self.from.mailbox().ok_or(LetterFault::Sender)?;
        let to = self.to.mailbox().ok_or(LetterFault::Recipient)?;
        let date = UNIX_EPOCH + Duration::from_millis(self.at_ms.max(0).unsigned_abs());
        let result = HeaderValue::new(HeaderName::new_from_ascii_str(RESULT_HEADER), one_line(&self.result_id));
        let mut message = Message::builder()
            .from(from)
            .to(to)
            .subject(one_line(&self.subject))
            .date(date)
            .message_id(Some(format!("<{}>", self.message_id)))
            .raw_header(result);
        let references = self.usable_references();
        if let Some(last) = references.last() {
            message = message.in_reply_to(last.clone()).references(references.join(" "));
        }
        let message = message.singlepart(SinglePart::plain(self.text.clone())).map_err(|_| LetterFault::Content)?;
        Ok(message.formatted())
    }

    /// Returns the ids of earlier mails in brackets; one that could break the header is left out.
    fn usable_references(&self) -> Vec<String> {
        let is_usable = |id: &&String| {
            !id.is_empty() && id.len() <= ID_BYTES && id.chars().all(|c| c.is_ascii_graphic() && !"<>".contains(c))
        };
        let all: Vec<String> = self.references.iter().filter(is_usable).map(|id| format!("<{id}>")).collect();
        match all.len().checked_sub(MOST_REFERENCES) {
            Some(more) if more > 0 => {
                let (first, latest) = (all[..1].iter(), all[more + 1..].iter());
                first.chain(latest).cloned().collect()
            }
            _ => all,
        }
    }
}

/// Returns a text as one line without control characters, blanks joined.
pub fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the subject of a first mail, from a sentence that says what its sender wants.
pub fn subject_of(sentence: &str) -> String {
    let line = one_line(sentence);
    let subject = line.trim_end_matches(['.', '!', '。']);
    if subject.is_empty() {
        return "Hello".to_owned();
    }
    match subject.char_indices().nth(SUBJECT_CHARS) {
        None => subject.to_owned(),
        Some((most, _)) => {
            let cut = subject[..most].rfind(char::is_whitespace).filter(|cut| *cut > 0).unwrap_or(most);
            format!("{}…", subject[..cut].trim_end())
        }
    }
}

/// Returns the subject of an answer: `Re: ` stands before it once.
pub fn reply_subject(subject: &str) -> String {
    let subject = one_line(subject);
    match subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:")) {
        true => subject,
        false => format!("Re: {subject}").trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter() -> Letter {
        Letter {
            from: MailParty { name: "Ann Lee".into(), address: "dh-1-0a@in.example".into() },
            to: MailParty { name: String::new(), address: "desk@agent.example".into() },
            subject: "Book a table".into(),
            message_id: "one@in.example".into(),
            references: vec!["a@x.example".into(), "b@x.example".into()],
            result_id: "17".into(),
            text: "Good day,\n.\nI want a table für zwei.".into(),
            at_ms: 1_767_603_600_000,
        }
    }

    fn text_of(letter: &Letter) -> String {
        String::from_utf8(letter.bytes().expect("it is valid")).expect("it is text")
    }

    #[test]
    fn a_mail_names_what_it_answers_and_its_result() {
        let text = text_of(&letter());
        for line in [
            "From: \"Ann Lee\" <dh-1-0a@in.example>\r\n",
            "To: desk@agent.example\r\n",
            "Subject: Book a table\r\n",
            "Date: Mon, 05 Jan 2026 09:00:00 +0000\r\n",
            "Message-ID: <one@in.example>\r\n",
            "In-Reply-To: <b@x.example>\r\n",
            "References: <a@x.example> <b@x.example>\r\n",
            "X-Simulation-Result-Id: 17\r\n",
            "MIME-Version: 1.0\r\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("Auto-Submitted"));
        let first = text_of(&Letter { references: Vec::new(), ..letter() });
        assert!(!first.contains("In-Reply-To") && !first.contains("References"));
    }

    #[test]
    fn names_subjects_and_ids_add_no_header() {
        let evil = "x\r\nBcc: thief@evil.example\r\n\r\nbody";
        let party = MailParty { name: evil.into(), address: "dh-1-0a@in.example".into() };
        let letter = Letter {
            from: party,
            subject: evil.into(),
            references: vec![evil.into(), "<a@x>".into(), "a b".into()],
            result_id: evil.into(),
            ..letter()
        };
        let text = text_of(&letter);
        let (head, _) = text.split_once("\r\n\r\n").expect("a body");
        assert!(head.split("\r\n").all(|line| !line.to_ascii_lowercase().starts_with("bcc")), "{head}");
        assert!(!head.contains("References") && !head.contains("In-Reply-To"), "{head}");
        let to = MailParty { name: String::new(), address: "a@b.example>\r\nBcc: c@d.example".into() };
        assert!(!to.is_valid());
        assert_eq!(Letter { to, ..self::letter() }.bytes(), Err(LetterFault::Recipient));
    }

    #[test]
    fn a_long_thread_refers_to_its_first_and_its_latest_mails() {
        let references: Vec<String> = (0..60).map(|n| format!("m{n}@x.example")).collect();
        let kept = Letter { references, ..letter() }.usable_references();
        assert_eq!((kept.len(), kept[0].as_str(), kept[1].as_str()), (20, "<m0@x.example>", "<m41@x.example>"));
        assert_eq!(kept[19], "<m59@x.example>");
    }

    #[test]
    fn subjects_are_short_and_say_what_is_wanted() {
        for (intent, expect) in
            [("Book a table for two.", "Book a table for two"), ("", "Hello"), ("Cancel\nmy\torder", "Cancel my order")]
        {
            assert_eq!(subject_of(intent), expect);
        }
        let long = subject_of(&"abcd ".repeat(40));
        assert!(long.chars().count() <= SUBJECT_CHARS + 1 && long.ends_with("abcd…"), "{long}");
        for (subject, expect) in [("Table", "Re: Table"), ("RE: Table", "RE: Table"), ("Rest", "Re: Rest"), ("", "Re:")]
        {
            assert_eq!(reply_subject(subject), expect);
        }
    }
}
