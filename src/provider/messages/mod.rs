//! How messages reach an agent that writes, one file a way. Each delivers one message once; who sends it again, and when, is
//! not decided here.

mod carrier;
mod chat;
mod webhook;

use std::time::Duration;

use ringer_media::call::Line;
use serde_json::{Map, Value};
use uuid::Uuid;

pub use self::carrier::Carrier;
pub use self::chat::ChatAgent;
pub use self::webhook::Webhook;
use super::post::Posted;

/// Longest answer of an agent.
const ANSWER_BYTES: usize = 1 << 20;
/// Longest `Retry-After` that is kept.
const RETRY_AFTER_MS: i64 = 10_000;

/// A message to an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The same for every attempt.
    pub id: Uuid,
    /// May be empty.
    pub text: String,
    /// Nothing follows.
    pub ends: bool,
    /// What was said before it, oldest first.
    pub history: Vec<Line>,
}

/// A tool that an agent called.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// What it was called with.
    pub parameters: Option<Map<String, Value>>,
    /// What it gave.
    pub output: Value,
}

/// What came back with the taking of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The agent's words; `None`: it is silent for now.
    pub text: Option<String>,
    /// It ends the conversation.
    pub ends: bool,
    /// Tools that it called meanwhile.
    pub calls: Vec<Called>,
    /// How the message is called where it was taken.
    pub id: Option<String>,
}

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Error code, when it is the first message and when it is a later one.
    pub codes: [&'static str; 2],
    /// For a person; without the URL, which may hold a secret.
    pub message: String,
    /// Another attempt may help; with the wait that was asked for.
    pub again: Option<Option<i64>>,
}

/// A way to an agent.
#[derive(Clone)]
pub enum Contact {
    /// Posts to the agent's own address.
    Webhook(Webhook),
    /// Asks a chat-completions server.
    Chat(ChatAgent),
    /// Texts the agent's number.
    Sms(Carrier),
}

impl Contact {
    /// Delivers a message once.
    ///
    /// # Errors
    /// Why it was not taken.
    pub async fn deliver(&self, message: &Message) -> Result<Reply, Trouble> {
        match self {
            Contact::Webhook(webhook) => webhook.deliver(message).await,
            Contact::Chat(agent) => agent.deliver(message).await,
            Contact::Sms(carrier) => carrier.deliver(message).await,
        }
    }

    /// The messages that carry a message: one, unless it is too long for the way.
    pub fn parts(&self, message: Message) -> Vec<Message> {
        let Contact::Sms(_) = self else { return vec![message] };
        let part = |(at, text)| {
            let id = if at == 0 { message.id } else { crate::clock::new_id() };
            Message { id, text, history: Vec::new(), ..message }
        };
        carrier::parts(&message.text).into_iter().enumerate().map(part).collect()
    }

    /// Waits between attempts, in milliseconds.
    pub fn waits_ms(&self) -> &'static [i64] {
        match self {
            Contact::Webhook(_) | Contact::Chat(_) => &[1000, 2000, 4000],
            Contact::Sms(_) => &[1000, 2000],
        }
    }
}

/// The wait that an answer asks for.
fn asked_wait(posted: &Posted) -> Option<i64> {
    posted
        .retry_after_s
        .map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000).min(RETRY_AFTER_MS))
}

/// Time for one attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same where the answer is the agent's reply.
const REPLY_PATIENCE: Duration = Duration::from_secs(60);
