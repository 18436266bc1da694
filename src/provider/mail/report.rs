//! Reports on the delivery of a mail (RFC 3464), of which every kind of server writes its own.

use mail_parser::{Message, MimeHeaders, PartType};

use super::letter::one_line;

/// Fate of a mail, as a report tells it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// It was not delivered, and will not be.
    Failed,
    /// It was not delivered yet, and is tried again.
    Delayed,
    /// It was delivered, relayed or expanded.
    #[default]
    Done,
}

/// Report on a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Fate of the mail.
    pub delivery: Delivery,
    /// Status code of RFC 3463, as in `5.1.1`; may be empty.
    pub status: String,
    /// Explanation by the server that could not deliver it; may be empty.
    pub why: String,
    /// Message-IDs in the mail that the report is on, without brackets.
    pub about: Vec<String>,
}

/// Returns the report that a mail is; `None`: it is none.
pub(super) fn read_report(message: &Message<'_>) -> Option<DeliveryReport> {
    let mut report: Option<DeliveryReport> = None;
    let mut about = Vec::new();
    for part in message.parts.iter().skip(1) {
        let kind = part.content_type().map(|kind| {
            let subtype = kind.subtype().unwrap_or_default();
            format!("{}/{subtype}", kind.ctype()).to_ascii_lowercase()
        });
        match kind.as_deref() {
            Some("message/delivery-status" | "message/global-delivery-status") => {
                report = Some(status_of(&String::from_utf8_lossy(part.contents())));
            }
            Some("text/rfc822-headers" | "message/global-headers") => {
                about.extend(field(&String::from_utf8_lossy(part.contents()), "message-id"));
            }
            _ => {}
        }
        if let PartType::Message(nested) = &part.body {
            about.extend(nested.message_id().map(str::to_owned));
        }
    }
    let plain = |id: String| id.trim_matches(['<', '>', ' ']).to_owned();
    report.map(|report| DeliveryReport { about: about.into_iter().map(plain).collect(), ..report })
}

/// Reads the fields of a report on one recipient.
fn status_of(text: &str) -> DeliveryReport {
    let action = field(text, "action").unwrap_or_default().to_ascii_lowercase();
    let delivery = match action.as_str() {
        "failed" => Delivery::Failed,
        "delayed" => Delivery::Delayed,
        _ => Delivery::Done,
    };
    let why = field(text, "diagnostic-code").unwrap_or_default();
    let why = why.split_once(';').map_or(why.as_str(), |(_, why)| why).trim().to_owned();
    let status = field(text, "status").unwrap_or_default();
    let status = status.split_whitespace().next().unwrap_or_default().to_owned();
    DeliveryReport { delivery, status, why, about: Vec::new() }
}

/// Returns the first value of a field, its folded lines joined.
fn field(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.trim().eq_ignore_ascii_case(name).then(|| value.to_owned())
    })?;
    let folded = lines.take_while(|line| line.starts_with([' ', '\t']));
    Some(one_line(&folded.fold(value, |value, line| value + " " + line)))
}
