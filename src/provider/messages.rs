//! Ways of delivering messages to an agent that writes, one file each. Each delivers one message once; who sends it
//! again, and when, is not decided here.

mod carrier;
mod chat;
mod mail;
mod platform;
mod trunk;
mod webhook;

use std::fmt;
use std::time::Duration;

use ringer_media::call::ConversationLine;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use url::Url;
use uuid::Uuid;

pub use self::carrier::{Carrier, CarrierWay, SMS_FAILED};
pub use self::chat::ChatAgent;
pub use self::mail::{MailPlace, MailRoute};
pub use self::platform::{PlatformAgent, PlatformCodes, PlatformProtocol, PlatformRequest};
pub use self::trunk::{TextLine, TrunkTexts};
pub use self::webhook::Webhook;
use super::post::{NotPosted, Posted, Poster, Posting};

/// Longest answer of an agent.
const ANSWER_BYTES: usize = 1 << 20;
/// Longest `Retry-After` that is kept.
const RETRY_AFTER_MS: i64 = 10_000;

/// A message to an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The same for every attempt.
    pub id: Uuid,
    /// Words of the message; may be empty.
    pub text: String,
    /// True if no message follows.
    pub ends: bool,
    /// Messages before this one, oldest first.
    pub history: Vec<ConversationLine>,
}

/// A tool that an agent called.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// Name of the tool.
    pub name: String,
    /// Parameters of the call, if it gave any.
    pub parameters: Option<Map<String, Value>>,
    /// Result of the call.
    pub output: Value,
}

/// Response to a message that was accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The agent's words; `None`: it is silent for now.
    pub text: Option<String>,
    /// True if the agent ends the conversation.
    pub ends: bool,
    /// Tools that it called meanwhile.
    pub calls: Vec<Called>,
    /// Id of the message at its receiver.
    pub id: Option<String>,
}

/// Reason why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Error code, when it is the first message and when it is a later one.
    pub codes: [&'static str; 2],
    /// Explanation for display, without the URL, which may hold a secret.
    pub message: String,
    /// Another attempt may help; with the wait that was asked for.
    pub again: Option<Option<i64>>,
    /// True if the time of the attempt passed without an answer.
    pub is_late: bool,
    /// SIP status of the answer; `None`: there was none, or the message went another way.
    pub status: Option<u16>,
}

impl Trouble {
    /// Returns the trouble of an attempt that was answered otherwise than it should be.
    pub fn new(codes: [&'static str; 2], message: String, again: Option<Option<i64>>) -> Trouble {
        Trouble { codes, message, again, is_late: false, status: None }
    }
}

/// Codes of a message that this machine could not send.
pub const OWN: [&str; 2] = ["BRIDGE_PRE_START_FAILED", "INTERNAL_ERROR"];

/// One request and its answer as a log tells them: no word of theirs, no header, and of the address neither login nor
/// query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    method: String,
    origin: String,
    path: String,
    body: String,
    /// `None`: there was no answer, or none that can be read whole.
    status: Option<u16>,
    /// `None`: nothing of it was read.
    answer: Option<String>,
}

impl Exchange {
    fn of(posting: &Posting<'_>) -> Exchange {
        let url = Url::parse(posting.url).ok();
        let (origin, path) =
            url.map(|url| (url.origin().ascii_serialization(), url.path().to_owned())).unwrap_or_default();
        let (method, body) = (posting.method.to_owned(), digest(posting.body.as_bytes()));
        Exchange { method, origin, path, body, status: None, answer: None }
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{} ", self.method, self.origin, self.path)?;
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("-")?,
        }
        write!(f, ", body {}", self.body)?;
        self.answer.iter().try_for_each(|answer| write!(f, ", answer {answer}"))
    }
}

/// Returns length and hash of what is not to be shown.
pub fn digest(bytes: &[u8]) -> String {
    format!("{} bytes sha256 {}", bytes.len(), digest_of(bytes))
}

/// Returns the SHA-256 of bytes as hexadecimal digits.
pub fn digest_of(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Sends a request and notes what went to and fro.
async fn exchange(poster: &Poster, posting: Posting<'_>, noted: &mut Option<Exchange>) -> Result<Posted, NotPosted> {
    let is_read = posting.answer_bytes > 0;
    let noted = noted.insert(Exchange::of(&posting));
    let posted = poster.exchange(posting).await?;
    noted.status = Some(posted.status);
    noted.answer = is_read.then(|| digest(&posted.body));
    Ok(posted)
}

/// A way to an agent.
#[derive(Clone)]
pub enum Contact {
    /// Posts to the agent's own address.
    Webhook(Webhook),
    /// Asks a chat-completions server.
    Chat(ChatAgent),
    /// Asks the platform that the agent is on.
    Platform(PlatformAgent),
    /// Texts the agent's number.
    Sms(Carrier),
    /// Mails to the agent's address.
    Mail(Box<MailRoute>),
}

impl Contact {
    /// Delivers a message once, and notes the request that carried it.
    ///
    /// # Errors
    /// Why it was not taken.
    pub async fn deliver(&self, message: &Message, noted: &mut Option<Exchange>) -> Result<Reply, Trouble> {
        match self {
            Contact::Webhook(webhook) => webhook.deliver(message, noted).await,
            Contact::Chat(agent) => agent.deliver(message, noted).await,
            Contact::Platform(agent) => agent.deliver(message, noted).await,
            Contact::Sms(carrier) => carrier.deliver(message, noted).await,
            Contact::Mail(route) => route.deliver(message).await,
        }
    }

    /// Returns the messages that carry a message: one, unless it is too long for the way.
    pub fn parts(&self, message: Message) -> Vec<Message> {
        let Contact::Sms(carrier) = self else { return vec![message] };
        let part = |(at, text)| {
            let id = if at == 0 { message.id } else { ringer_base::clock::new_id() };
            Message { id, text, history: Vec::new(), ..message }
        };
        carrier.parts(&message.text).into_iter().enumerate().map(part).collect()
    }

    /// Waits between attempts, in milliseconds.
    pub fn waits_ms(&self) -> &'static [i64] {
        match self {
            Contact::Webhook(_) | Contact::Chat(_) | Contact::Platform(_) => &[1000, 2000, 4000],
            Contact::Sms(_) => &[1000, 2000],
            Contact::Mail(_) => &[60_000, 120_000, 180_000, 240_000],
        }
    }
}

/// Returns the wait that an answer asks for.
fn asked_wait(posted: &Posted) -> Option<i64> {
    posted
        .retry_after_s
        .map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000).min(RETRY_AFTER_MS))
}

/// Time for one attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same where the answer is the agent's reply.
const REPLY_PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_without_words_and_secrets() {
        let brackets = "2 bytes sha256 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        let posting = Posting {
            method: "PUT",
            url: "https://user:word@host.example:8443/hook?key=word#word",
            headers: &[("Authorization", "word".to_owned())],
            body: "{}".to_owned(),
            patience: PATIENCE,
            answer_bytes: 0,
        };
        let mut exchange = Exchange::of(&posting);
        let target = "PUT https://host.example:8443/hook";
        assert_eq!(exchange.to_string(), format!("{target} -, body {brackets}"));
        (exchange.status, exchange.answer) = (Some(200), Some(digest(b"{}")));
        assert_eq!(exchange.to_string(), format!("{target} 200, body {brackets}, answer {brackets}"));
    }
}
