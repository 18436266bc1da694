//! Settings of text conversations, and of the carrier of text messages.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Secret, Source};

/// Longest delay of an answer in milliseconds: an hour.
const DELAY_MOST_MS: u64 = 3_600_000;
/// Longest time in which messages are one turn, in seconds: an hour.
const GROUP_MOST_S: u64 = 3600;

/// Settings of the section `[text]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Text {
    /// Time between a Digital Human's finished answer and its sending, in milliseconds.
    pub reply_delay_ms: u32,
}

impl Text {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.whole("text.reply_delay_ms", 0..=DELAY_MOST_MS, &mut self.reply_delay_ms);
    }
}

/// Way of text messages.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SmsCarrier {
    /// A carrier that takes them by HTTP.
    #[default]
    Http,
    /// The trunk that owns the number, by SIP (RFC 3428).
    Sip,
}

/// Settings of `[sms]`: the carrier of text messages. One by HTTP is off without `send_url`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sms {
    /// Way of the messages: `http` or `sip`.
    pub carrier: SmsCarrier,
    /// URL that messages are sent to; it may hold a key.
    pub send_url: Option<Secret>,
    /// Method of the request: GET, POST, PUT or PATCH.
    pub send_method: String,
    /// Header fields of the request; they may hold a key.
    pub send_headers: BTreeMap<String, Secret>,
    /// Template of the request body with `{{from}}`, `{{to}}`, `{{text}}` and `{{message_id}}`.
    ///
    /// Values are escaped for the body's kind: a form when a header says `application/x-www-form-urlencoded`, else
    /// JSON.
    pub send_body: String,
    /// JSON pointer (RFC 6901) to the carrier's message id in its answer; `None`: it gives none.
    pub id_pointer: Option<String>,
    /// Carrier's names of `from`, `to`, `text` and `message_id` in delivered messages.
    pub inbound_fields: BTreeMap<String, String>,
    /// Token that proves that a message comes from the carrier; `None`: no message is accepted.
    pub inbound_token: Option<Secret>,
    /// Seconds within which messages of an agent are one turn.
    pub group_seconds: u32,
}

impl Default for Sms {
    fn default() -> Sms {
        let body = r#"{"from":"{{from}}","to":"{{to}}","text":"{{text}}","message_id":"{{message_id}}"}"#;
        Sms {
            carrier: SmsCarrier::Http,
            send_url: None,
            send_method: "POST".to_owned(),
            send_headers: BTreeMap::new(),
            send_body: body.to_owned(),
            id_pointer: None,
            inbound_fields: BTreeMap::new(),
            inbound_token: None,
            group_seconds: 8,
        }
    }
}

impl Sms {
    pub(super) fn read(&mut self, from: &mut Source) {
        let carrier = |text: &str| match text {
            "http" => Some(SmsCarrier::Http),
            "sip" => Some(SmsCarrier::Sip),
            _ => None,
        };
        from.read_parsed("sms.carrier", "http or sip", carrier, &mut self.carrier);
        from.secret("sms.send_url", &mut self.send_url);
        let method = |text: &str| {
            let upper = text.to_ascii_uppercase();
            ["GET", "POST", "PUT", "PATCH"].contains(&upper.as_str()).then_some(upper)
        };
        from.read_parsed("sms.send_method", "one of GET, POST, PUT, PATCH", method, &mut self.send_method);
        let mut headers = BTreeMap::new();
        from.text_map("sms.send_headers", &mut headers);
        self.send_headers = headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
        from.read_parsed("sms.send_body", "a text", |text| Some(text.to_owned()), &mut self.send_body);
        let pointer = |text: &str| (text.is_empty() || text.starts_with('/')).then(|| Some(text.to_owned()));
        from.read_parsed("sms.id_pointer", "a JSON pointer like /data/id", pointer, &mut self.id_pointer);
        from.text_map("sms.inbound_fields", &mut self.inbound_fields);
        let known = ["from", "to", "text", "message_id"];
        if let Some(name) = self.inbound_fields.keys().find(|name| !known.contains(&name.as_str())) {
            from.refuse(format!("sms.inbound_fields.{name} is not known: it must be one of {}", known.join(", ")));
        }
        from.secret("sms.inbound_token", &mut self.inbound_token);
        from.whole("sms.group_seconds", 0..=GROUP_MOST_S, &mut self.group_seconds);
    }

    /// True if text messages are taken from the carrier.
    pub fn takes(&self) -> bool {
        self.carrier == SmsCarrier::Sip || self.inbound_token.is_some()
    }

    /// Returns the carrier's name of a field of delivered messages.
    pub fn inbound_field<'a>(&'a self, name: &'a str) -> &'a str {
        self.inbound_fields.get(name).map_or(name, String::as_str)
    }
}
