//! Messages as requests to a chat-completions server: the agent is the model behind it, the Digital Human its user.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{ANSWER_BYTES, Called, Exchange, Message, REPLY_PATIENCE, Reply, Trouble, asked_wait, exchange};
use crate::config::Secret;
use crate::provider::post::{Poster, Posting, RESULT_ID};

const FAILED: [&str; 2] = ["P12_SESSION_SETUP_FAILED", "P12_AGENT_ERROR"];
const PATH: &str = "/chat/completions";

/// The server, and what its model is told.
#[derive(Clone)]
pub struct ChatAgent {
    /// Sends.
    pub poster: Arc<Poster>,
    /// With or without the path of chat completions.
    pub base_url: String,
    /// Bearer token.
    pub key: Option<Secret>,
    /// Name of the model.
    pub model: String,
    /// What the agent is; may be empty.
    pub description: String,
    /// Name of the conversation.
    pub conversation: String,
}

impl fmt::Debug for ChatAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatAgent").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

impl ChatAgent {
    pub(super) async fn deliver(&self, message: &Message, noted: &mut Option<Exchange>) -> Result<Reply, Trouble> {
        let base = self.base_url.trim_end_matches('/');
        let url = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
        let mut headers = vec![(RESULT_ID, self.conversation.clone())];
        headers.extend(self.key.as_ref().map(|key| ("Authorization", format!("Bearer {}", key.expose()))));
        let posting = Posting {
            method: "POST",
            url: &url,
            headers: &headers,
            body: self.body(message).to_string(),
            patience: REPLY_PATIENCE,
            answer_bytes: ANSWER_BYTES,
        };
        let failed = |codes, message: String, again| Trouble { codes, message, again };
        let posted = exchange(&self.poster, posting, noted).await;
        let posted = posted.map_err(|why| failed(FAILED, format!("the agent's server: {why}"), Some(None)))?;
        let answered = format!("the agent's server answered {}", posted.status);
        match posted.status {
            200..=299 => reply(&posted.body).map_err(|why| failed(FAILED, why, Some(None))),
            401 | 403 => Err(failed(["P12_AUTH_FAILED"; 2], answered, None)),
            429 => Err(failed(["CUSTOMER_CONCURRENCY_LIMIT"; 2], answered, Some(asked_wait(&posted)))),
            _ => Err(failed(FAILED, answered, Some(None))),
        }
    }

    fn body(&self, message: &Message) -> Value {
        let mut messages = Vec::new();
        if !self.description.is_empty() {
            messages.push(json!({ "role": "system", "content": self.description }));
        }
        let role = |other: bool| if other { "assistant" } else { "user" };
        let said = message.history.iter().filter(|line| !line.text.is_empty());
        messages.extend(said.map(|line| json!({ "role": role(line.other), "content": line.text })));
        if !message.text.is_empty() {
            messages.push(json!({ "role": "user", "content": message.text }));
        }
        json!({ "model": self.model, "messages": messages, "stream": false })
    }
}

fn reply(body: &[u8]) -> Result<Reply, String> {
    let broken = || "the agent's server sent no valid answer".to_owned();
    let answer: Value = serde_json::from_slice(body).map_err(|_| broken())?;
    let message = answer["choices"][0]["message"].as_object().ok_or_else(broken)?;
    let called = |call: &Value| {
        let function = &call["function"];
        let arguments = function["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok());
        let parameters = arguments.or_else(|| function["arguments"].as_object().cloned());
        Some(Called { name: function["name"].as_str()?.to_owned(), parameters, output: Value::Null })
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let text = message.get("content").and_then(Value::as_str).filter(|text| !text.is_empty());
    Ok(Reply { text: text.map(str::to_owned), calls: calls.filter_map(called).collect(), ..Reply::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let call = |parameters: Value| Called {
            name: "book".into(),
            parameters: parameters.as_object().cloned(),
            output: Value::Null,
        };
        let calls =
            r#"{"function":{"name":"book","arguments":"{\"day\":1}"}},{"function":{"name":"book","arguments":"no"}}"#;
        for (message, expect) in [
            (r#"{"content":"Hi"}"#.to_owned(), Some(Reply { text: Some("Hi".into()), ..Reply::default() })),
            (r#"{"content":null}"#.to_owned(), Some(Reply::default())),
            (
                format!(r#"{{"content":"","tool_calls":[{calls}]}}"#),
                Some(Reply { calls: vec![call(json!({ "day": 1 })), call(Value::Null)], ..Reply::default() }),
            ),
            ("5".to_owned(), None),
        ] {
            let body = format!(r#"{{"choices":[{{"message":{message}}}]}}"#);
            assert_eq!(reply(body.as_bytes()).ok(), expect, "{body}");
        }
        assert!(reply(b"<html>").is_err() && reply(b"{}").is_err());
    }
}
