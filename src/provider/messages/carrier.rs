//! Text messages through a carrier: one that takes them by HTTP, as its settings say, or a trunk.

use std::fmt;
use std::sync::Arc;

use ringer_base::config::Sms;
use serde_json::Value;
use url::form_urlencoded;

use super::trunk::TrunkTexts;
use super::{ANSWER_BYTES, Exchange, Message, PATIENCE, Reply, Trouble, asked_wait, exchange};
use crate::post::{Poster, Posting};

/// Codes of a text message that the carrier did not take.
pub const SMS_FAILED: [&str; 2] = ["SMS_SEND_FAILED"; 2];
/// Longest text of one message, in characters.
const LONGEST: usize = 1600;
const FORM: &str = "application/x-www-form-urlencoded";

/// The carrier, and the two numbers of a conversation.
#[derive(Clone)]
pub struct Carrier {
    /// Way of the messages.
    pub way: CarrierWay,
    /// The Digital Human's number.
    pub from: String,
    /// Phone number of the agent.
    pub to: String,
}

/// Way of the messages of a carrier.
#[derive(Clone)]
pub enum CarrierWay {
    /// Requests as the settings say, by this client.
    Http(Arc<Poster>, Arc<Sms>),
    /// MESSAGE requests through a trunk.
    Trunk(TrunkTexts),
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carrier").finish_non_exhaustive()
    }
}

impl Carrier {
    pub(super) async fn deliver(&self, message: &Message, noted: &mut Option<Exchange>) -> Result<Reply, Trouble> {
        let (poster, sms) = match &self.way {
            CarrierWay::Http(poster, sms) => (poster, sms),
            CarrierWay::Trunk(texts) => return texts.deliver(message, noted).await,
        };
        let failed = |message: String, again| Trouble::new(SMS_FAILED, message, again);
        let Some(url) = &sms.send_url else { return Err(failed("there is no carrier".to_owned(), None)) };
        let headers: Vec<(&str, String)> =
            sms.send_headers.iter().map(|(name, value)| (name.as_str(), value.expose().to_owned())).collect();
        let is_form = headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-type") && value.to_ascii_lowercase().starts_with(FORM)
        });
        let posting = Posting {
            method: &sms.send_method,
            url: url.expose(),
            headers: &headers,
            body: self.body(&sms.send_body, message, is_form),
            patience: PATIENCE,
            answer_bytes: if sms.id_pointer.is_some() { ANSWER_BYTES } else { 0 },
        };
        let posted = exchange(poster, posting, noted).await;
        // The path of a carrier's address is as secret as its query.
        noted.iter_mut().for_each(|noted| noted.path.clear());
        let posted = posted.map_err(|not| failed(format!("the carrier: {}", not.why), Some(None)))?;
        if !(200..=299).contains(&posted.status) {
            let answered = format!("the carrier answered {}", posted.status);
            return Err(failed(answered, Some(asked_wait(&posted))));
        }
        let answer: Value = serde_json::from_slice(&posted.body).unwrap_or_default();
        let id = sms.id_pointer.as_deref().and_then(|pointer| answer.pointer(pointer)).and_then(|id| match id {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        Ok(Reply { id, ..Reply::default() })
    }

    /// Returns a text in the parts that its way takes.
    pub(super) fn parts(&self, text: &str) -> Vec<String> {
        match &self.way {
            CarrierWay::Http(..) => parts(text, None),
            CarrierWay::Trunk(texts) => parts(text, texts.room),
        }
    }

    /// Fills the template in one pass, so that a text that holds a placeholder stays as it is.
    fn body(&self, template: &str, message: &Message, is_form: bool) -> String {
        let id = message.id.to_string();
        let value = |name: &str| match name.trim() {
            "from" => Some(self.from.as_str()),
            "to" => Some(self.to.as_str()),
            "text" => Some(message.text.as_str()),
            "message_id" => Some(id.as_str()),
            _ => None,
        };
        let written = |text: &str| match is_form {
            true => form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>(),
            false => {
                let quoted = Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
        };
        let (mut rest, mut body) = (template, String::new());
        while let Some((before, after)) = rest.split_once("{{") {
            body.push_str(before);
            match after.split_once("}}").and_then(|(name, tail)| Some((value(name)?, tail))) {
                Some((text, tail)) => {
                    body.push_str(&written(text));
                    rest = tail;
                }
                None => {
                    body.push_str("{{");
                    rest = after;
                }
            }
        }
        body + rest
    }
}

/// Returns a text in parts that a carrier takes, each of at most `room` bytes where that is known. It is cut at the
/// ends of words where there are any.
fn parts(text: &str, room: Option<usize>) -> Vec<String> {
    let (mut rest, mut parts) = (text.trim(), Vec::new());
    let most_of = |rest: &str| {
        let by_chars = rest.char_indices().nth(LONGEST).map(|(at, _)| at);
        let by_bytes = room.filter(|room| rest.len() > *room).map(|room| rest.floor_char_boundary(room));
        by_chars.into_iter().chain(by_bytes).min()
    };
    while let Some(most) = most_of(rest) {
        // A word may end right where the part does.
        let whole = rest[most..].starts_with(char::is_whitespace).then_some(most);
        let cut = whole.or(rest[..most].rfind(char::is_whitespace)).filter(|cut| *cut > 0).unwrap_or(most);
        parts.push(rest[..cut].trim_end().to_owned());
        rest = rest[cut..].trim_start();
    }
    parts.push(rest.to_owned());
    parts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::guard::Guard;

    #[test]
    fn long_texts_are_cut_at_the_ends_of_words() {
        for (text, room, expect) in [
            ("Hello.".to_owned(), None, vec![6]),
            ("é".repeat(1600), None, vec![1600]),
            ("é".repeat(1601), None, vec![1600, 1]),
            (format!("{} {}", "a".repeat(1600), "b".repeat(3)), None, vec![1600, 3]),
            (format!("{} {}", "a".repeat(1598), "b".repeat(3)), None, vec![1598, 3]),
            ("abcd ".repeat(700), None, vec![1599, 1599, 299]),
            (String::new(), None, vec![0]),
            // By bytes: no character is cut, and the limit of characters holds beside it.
            ("abcd ".repeat(100), Some(200), vec![199, 199, 99]),
            ("é".repeat(150), Some(201), vec![100, 50]),
            ("word".to_owned(), Some(4), vec![4]),
            ("é".repeat(1601), Some(10_000), vec![1600, 1]),
        ] {
            let parts = parts(&text, room);
            assert!(parts.iter().all(|part| room.is_none_or(|room| part.len() <= room)), "{room:?}");
            assert_eq!(parts.iter().map(|part| part.chars().count()).collect::<Vec<_>>(), expect);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert!(
                parts.len() == 1
                    || text.starts_with("é")
                    || expect[0] == 1600
                    || words(&parts.join(" ")) == words(&text)
            );
        }
    }

    #[test]
    fn the_body_is_written_as_its_kind_asks() {
        let check = |template: &str, is_form, expect: &str| {
            let poster = Arc::new(Poster::new(Guard::new(true), Duration::from_secs(1)));
            let way = CarrierWay::Http(poster, Arc::default());
            let carrier = Carrier { way, from: "+15550001111".into(), to: "+15550002222".into() };
            let text = "say \"{{from}}\" & go\n".to_owned();
            let message = Message { id: Uuid::nil(), text, ends: false, history: Vec::new() };
            assert_eq!(carrier.body(template, &message, is_form), expect);
        };
        check(r#"{"a":"{{ to }}","b":"{{text}}"}"#, false, r#"{"a":"+15550002222","b":"say \"{{from}}\" & go\n"}"#);
        check("From={{from}}&Body={{text}}", true, "From=%2B15550001111&Body=say+%22%7B%7Bfrom%7D%7D%22+%26+go%0A");
        check("{{other}} {{", false, "{{other}} {{");
    }
}
