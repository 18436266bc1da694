//! Messages as signed posts to an address of the agent's owner.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ANSWER_BYTES, Called, Exchange, Message, PATIENCE, REPLY_PATIENCE, Reply, Trouble, asked_wait, exchange};
use crate::config::Secret;
use crate::provider::post::{Poster, Posting, RESULT_ID, SIGNATURE, signature};

const CODES: [&str; 2] = ["HTTP_WEBHOOK_FAILED"; 2];

/// The address, and the conversation that is posted to it.
#[derive(Clone)]
pub struct Webhook {
    /// Sends.
    pub poster: Arc<Poster>,
    /// Where to.
    pub url: String,
    /// Signs.
    pub key: Secret,
    /// Name of the conversation.
    pub conversation: String,
    /// The answer is the agent's reply.
    pub sync: bool,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// The answer of an agent that replies at once.
#[derive(Default, Deserialize)]
struct Answer {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    end_conversation: Option<bool>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
    #[serde(default)]
    output: Value,
}

impl Webhook {
    pub(super) async fn deliver(&self, message: &Message, noted: &mut Option<Exchange>) -> Result<Reply, Trouble> {
        let body = json!({
            "simulation_result_id": self.conversation,
            "message": message.text,
            "message_id": message.id,
            "end_conversation": message.ends,
        });
        let body = body.to_string();
        let headers =
            [(SIGNATURE, signature(self.key.expose(), body.as_bytes())), (RESULT_ID, self.conversation.clone())];
        let posting = Posting {
            method: "POST",
            url: &self.url,
            headers: &headers,
            body,
            patience: if self.sync { REPLY_PATIENCE } else { PATIENCE },
            answer_bytes: if self.sync { ANSWER_BYTES } else { 0 },
        };
        let failed = |message: String, again| Trouble { codes: CODES, message, again };
        let posted = exchange(&self.poster, posting, noted).await;
        let posted = posted.map_err(|why| failed(format!("http_webhook: {why}"), Some(None)))?;
        let again = match posted.status {
            200..=299 if self.sync => return reply(&posted.body).map_err(|why| failed(why, None)),
            200..=299 => return Ok(Reply::default()),
            429 => Some(asked_wait(&posted)),
            408 | 425 | 500..=599 => Some(None),
            _ => None,
        };
        Err(failed(format!("http_webhook answered {}", posted.status), again))
    }
}

fn reply(body: &[u8]) -> Result<Reply, String> {
    if body.trim_ascii().is_empty() {
        return Ok(Reply::default());
    }
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| "http_webhook answered with no valid reply".to_owned())?;
    let called = |Call { name, parameters, output }| Called { name, parameters, output };
    Ok(Reply {
        text: answer.message,
        ends: answer.end_conversation.unwrap_or(false),
        calls: answer.tool_calls.into_iter().flatten().map(called).collect(),
        id: None,
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::provider::fake::WebServer;
    use crate::provider::guard::Guard;

    #[test]
    fn replies_are_read() {
        let said = |text: &str| Reply { text: Some(text.into()), ..Reply::default() };
        let call = Called { name: "book".into(), parameters: None, output: json!(7) };
        for (body, expect) in [
            ("", Some(Reply::default())),
            (" \n", Some(Reply::default())),
            ("{}", Some(Reply::default())),
            (r#"{"message":null}"#, Some(Reply::default())),
            (r#"{"message":"Hi"}"#, Some(said("Hi"))),
            (r#"{"message":"","end_conversation":true}"#, Some(Reply { ends: true, ..said("") })),
            (
                r#"{"message":"Hi","tool_calls":[{"name":"book","output":7}]}"#,
                Some(Reply { calls: vec![call], ..said("Hi") }),
            ),
            ("{", None),
            ("[]x", None),
            (r#"{"message":5}"#, None),
            (r#"{"tool_calls":[{}]}"#, None),
        ] {
            assert_eq!(reply(body.as_bytes()).ok(), expect, "{body}");
        }
    }

    #[tokio::test]
    async fn an_answer_says_whether_to_ask_again() {
        let server = WebServer::start(|path| {
            let status = path.trim_start_matches('/');
            let wait = if status == "429" { "retry-after: 70\r\n" } else { "" };
            format!("HTTP/1.1 {status} X\r\n{wait}content-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
        });
        let server = server.await.expect("loopback has a free port");
        for (path, expect) in [
            ("/200", None),
            ("/204", None),
            ("/302", Some(None)),
            ("/404", Some(None)),
            ("/408", Some(Some(None))),
            ("/425", Some(Some(None))),
            ("/429", Some(Some(Some(10_000)))),
            ("/503", Some(Some(None))),
        ] {
            let webhook = Webhook {
                poster: Arc::new(Poster::new(Guard::new(true), PATIENCE)),
                url: server.url(path),
                key: Secret::new("k".into()),
                conversation: "1".into(),
                sync: false,
            };
            let message = Message { id: Uuid::nil(), text: "Hi".into(), ends: false, history: Vec::new() };
            let trouble = webhook.deliver(&message, &mut None).await.err();
            assert_eq!(trouble.as_ref().map(|trouble| trouble.again), expect, "{path}: {trouble:?}");
        }
    }
}
