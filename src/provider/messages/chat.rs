//! Messages as requests to a chat-completions server: the agent is the model behind it, the Digital Human its user.

use std::fmt;
use std::sync::Arc;

use ringer_base::config::Secret;
use serde_json::{Value, json};

use super::{ANSWER_BYTES, Called, Exchange, Message, OWN, REPLY_PATIENCE, Reply, Trouble, asked_wait, exchange};
use crate::chat::refusal::{Refusal, Secrets};
use crate::chat::request::{endpoint, takes_api_key};
use crate::chat::{content, surrogates};
use crate::post::{Poster, Posting, RESULT_ID};

/// Only message of a request by which an agent without a description is asked to begin.
const BEGIN: &str = "Begin the conversation.";
const FAILED: [&str; 2] = ["P12_SESSION_SETUP_FAILED", "P12_AGENT_ERROR"];

/// The server, and what its model is told.
#[derive(Clone)]
pub struct ChatAgent {
    /// Client that posts to the server.
    pub poster: Arc<Poster>,
    /// Base address, with or without the path of chat completions, and a query.
    pub base_url: String,
    /// Bearer token; `None`: none is sent.
    pub key: Option<Secret>,
    /// Name of the model.
    pub model: String,
    /// Description of the agent for its model; may be empty.
    pub description: String,
    /// Name of the conversation.
    pub conversation: String,
    /// Value of the header `traceparent` (W3C Trace Context); `None`: it is not sent.
    pub traceparent: Option<String>,
}

impl fmt::Debug for ChatAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatAgent").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

impl ChatAgent {
    pub(super) async fn deliver(&self, message: &Message, noted: &mut Option<Exchange>) -> Result<Reply, Trouble> {
        let url = endpoint(&self.base_url);
        let key = self.key.as_ref().map(Secret::expose);
        let secrets = Secrets::of(key, &url);
        let mut headers = vec![(RESULT_ID, self.conversation.clone())];
        headers.extend(self.traceparent.iter().map(|value| ("traceparent", value.clone())));
        headers.extend(key.map(|key| ("Authorization", format!("Bearer {key}"))));
        headers.extend(key.filter(|_| takes_api_key(&url)).map(|key| ("api-key", key.to_owned())));
        let posting = Posting {
            method: "POST",
            url: &url,
            headers: &headers,
            body: self.body(message).to_string(),
            patience: REPLY_PATIENCE,
            answer_bytes: ANSWER_BYTES,
        };
        let failed = |codes, message: String, again| Trouble::new(codes, secrets.hidden(&message), again);
        let posted = exchange(&self.poster, posting, noted).await;
        let posted = posted.map_err(|not| {
            let (is_late, codes) = (not.is_late, if not.is_own { OWN } else { FAILED });
            Trouble { is_late, ..failed(codes, format!("the agent's server: {}", not.why), Some(None)) }
        })?;
        let answered =
            Refusal::parse(&posted.body).with_words(&format!("the agent's server answered {}", posted.status));
        match posted.status {
            200..=299 => reply(&posted.body).map_err(|why| failed(FAILED, why, Some(None))),
            401 | 403 => Err(failed(["P12_AUTH_FAILED"; 2], answered, None)),
            429 => Err(failed(["CUSTOMER_CONCURRENCY_LIMIT"; 2], answered, Some(asked_wait(&posted)))),
            503 => Err(failed(FAILED, answered, Some(asked_wait(&posted)))),
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
        // Servers refuse a request without any message.
        if messages.is_empty() {
            messages.push(json!({ "role": "system", "content": BEGIN }));
        }
        json!({ "model": self.model, "messages": messages, "stream": false })
    }
}

fn reply(body: &[u8]) -> Result<Reply, String> {
    let broken = || "the agent's server sent no valid answer".to_owned();
    let answer = surrogates::read_json(body).map_err(|_| broken())?;
    if !answer["error"].is_null() {
        return Err(Refusal::of(&answer).with_words("the agent's server reported an error in its answer"));
    }
    let message = answer["choices"][0]["message"].as_object().ok_or_else(broken)?;
    let part = |name: &str| message.get(name).unwrap_or(&Value::Null);
    let unknown = |form: &str| format!("the agent's server sent message content of an unknown form: {form}");
    let text = content::words(part("content")).map_err(unknown)?.filter(|text| !text.is_empty());
    // Words with which an agent declines are its answer, too.
    let refusal = part("refusal").as_str().filter(|text| !text.is_empty());
    let calls = match part("tool_calls") {
        Value::Null => Vec::new(),
        Value::Array(calls) => calls.iter().map(|call| &call["function"]).collect(),
        call @ Value::Object(_) => vec![&call["function"]],
        _ => return Err("the agent's server sent tool_calls that are no list".to_owned()),
    };
    // Older servers send one call in a field of its own.
    let calls = calls.into_iter().chain(Some(part("function_call")).filter(|call| call.is_object()));
    Ok(Reply {
        text: text.or_else(|| refusal.map(str::to_owned)),
        calls: calls.filter_map(read_call).collect(),
        ..Reply::default()
    })
}

fn read_call(function: &Value) -> Option<Called> {
    let written = function["arguments"].as_str().and_then(|text| surrogates::read_json(text.as_bytes()).ok());
    let parameters = written.as_ref().unwrap_or(&function["arguments"]).as_object().cloned();
    Some(Called { name: function["name"].as_str()?.to_owned(), parameters, output: Value::Null })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringer_base::testing::WebServer;
    use uuid::Uuid;

    use super::*;
    use crate::guard::Guard;

    #[test]
    fn replies_are_read() {
        let call = |parameters: Value| Called {
            name: "book".into(),
            parameters: parameters.as_object().cloned(),
            output: Value::Null,
        };
        let said = |text: &str| Some(Reply { text: Some(text.into()), ..Reply::default() });
        let calls =
            r#"{"function":{"name":"book","arguments":"{\"day\":1}"}},{"function":{"name":"book","arguments":"no"}}"#;
        for (message, expect) in [
            (r#"{"content":"Hi"}"#.to_owned(), said("Hi")),
            (r#"{"content":null}"#.to_owned(), Some(Reply::default())),
            (r#"{"content":""}"#.to_owned(), Some(Reply::default())),
            ("{}".to_owned(), Some(Reply::default())),
            (r#"{"content":[]}"#.to_owned(), Some(Reply::default())),
            (
                r#"{"content":[{"type":"text","text":"Good "},{"type":"output_text","text":"day"},"."]}"#.to_owned(),
                said("Good day."),
            ),
            (r#"{"content":{"type":"text","text":"Hi"}}"#.to_owned(), said("Hi")),
            (r#"{"content":[{"type":"refusal","refusal":"I cannot."}]}"#.to_owned(), said("I cannot.")),
            (r#"{"content":null,"refusal":"I cannot."}"#.to_owned(), said("I cannot.")),
            (r#"{"content":"Hi \ud83d\ude00 \ud83d"}"#.to_owned(), said("Hi 😀 \u{FFFD}")),
            (r#"{"content":5}"#.to_owned(), None),
            (r#"{"content":true}"#.to_owned(), None),
            (r#"{"content":{"value":"Hi"}}"#.to_owned(), None),
            (r#"{"content":[{"type":"image_url","image_url":{}}]}"#.to_owned(), None),
            (r#"{"content":null,"tool_calls":"book"}"#.to_owned(), None),
            (
                r#"{"content":null,"function_call":{"name":"book","arguments":{"day":1}}}"#.to_owned(),
                Some(Reply { calls: vec![call(json!({ "day": 1 }))], ..Reply::default() }),
            ),
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
        for (body, why) in [
            (
                r#"{"choices":[{"message":{"content":5}}]}"#,
                "the agent's server sent message content of an unknown form: a number",
            ),
            (
                r#"{"error":{"message":"Overloaded."}}"#,
                "the agent's server reported an error in its answer: Overloaded.",
            ),
        ] {
            assert_eq!(reply(body.as_bytes()), Err(why.to_owned()));
        }
    }

    #[tokio::test]
    async fn a_base_may_have_a_query_and_a_refusal_is_told_without_the_key() {
        let server = WebServer::start(|_| {
            let body = r#"{"error":{"message":"Key sesame-1234 may not book."}}"#;
            let head = format!("HTTP/1.1 400 X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            [head.as_bytes(), body.as_bytes()].concat()
        });
        let server = server.await.expect("loopback has a free port");
        for base in ["/x?api-version=1", "/x/chat/completions?api-version=1", "/x/?api-version=1"] {
            let agent = ChatAgent {
                poster: Arc::new(Poster::new(Guard::new(true), Duration::from_secs(10))),
                base_url: server.url(base),
                key: Some(Secret::new("sesame-1234".into())),
                model: "m".into(),
                description: String::new(),
                conversation: "1".into(),
                traceparent: None,
            };
            let message = Message { id: Uuid::nil(), text: "Hi".into(), ends: false, history: Vec::new() };
            let trouble = agent.deliver(&message, &mut None).await.expect_err("it is refused");
            assert_eq!(trouble.message, "the agent's server answered 400: Key *** may not book.");
        }
        assert_eq!(server.paths(), ["/x/chat/completions?api-version=1"; 3]);
    }
}
