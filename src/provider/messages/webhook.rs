//! Messages as signed posts to an address of the agent's owner.

use std::fmt;
use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::config::Secret;
use serde_json::{Value, json};

use super::{
    ANSWER_BYTES, Called, Exchange, Message, OWN, PATIENCE, REPLY_PATIENCE, Reply, Trouble, asked_wait, exchange,
};
use crate::chat::{content, surrogates};
use crate::post::{Poster, Posting, RESULT_ID, signatures};

const CODES: [&str; 2] = ["HTTP_WEBHOOK_FAILED"; 2];

/// The address, and the conversation that is posted to it.
#[derive(Clone)]
pub struct Webhook {
    /// Client that posts to the address.
    pub poster: Arc<Poster>,
    /// Address to post to.
    pub url: String,
    /// Key that signs the requests.
    pub key: Secret,
    /// Name of the conversation.
    pub conversation: String,
    /// True if the answer is the agent's reply.
    pub sync: bool,
    /// Value of the header `traceparent` (W3C Trace Context); `None`: it is not sent.
    pub traceparent: Option<String>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("conversation", &self.conversation).finish_non_exhaustive()
    }
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
        let [signed, timed] = signatures(self.key.expose(), &self.conversation, Clock::Real.now_ms(), &body);
        let mut headers = vec![signed, timed, (RESULT_ID, self.conversation.clone())];
        headers.extend(self.traceparent.iter().map(|value| ("traceparent", value.clone())));
        let posting = Posting {
            method: "POST",
            url: &self.url,
            headers: &headers,
            body,
            patience: if self.sync { REPLY_PATIENCE } else { PATIENCE },
            answer_bytes: if self.sync { ANSWER_BYTES } else { 0 },
        };
        let failed = |message: String, again| Trouble::new(CODES, message, again);
        let posted = exchange(&self.poster, posting, noted).await;
        let posted = posted.map_err(|not| {
            let codes = if not.is_own { OWN } else { CODES };
            let sentence = format!("http_webhook: {}", not.why);
            Trouble { is_late: not.is_late, ..Trouble::new(codes, sentence, Some(None)) }
        })?;
        let again = match posted.status {
            200..=299 if self.sync => return reply(&posted.body).map_err(|why| failed(why, None)),
            200..=299 => return Ok(Reply::default()),
            429 | 503 => Some(asked_wait(&posted)),
            408 | 425 | 500..=599 => Some(None),
            _ => None,
        };
        Err(failed(format!("http_webhook answered {}", posted.status), again))
    }
}

/// Returns the reply in an answer; an empty one is silence, and one of another form an error that names what is wrong
/// with it.
fn reply(body: &[u8]) -> Result<Reply, String> {
    if body.trim_ascii().is_empty() {
        return Ok(Reply::default());
    }
    const NO_REPLY: &str = "http_webhook answered with no valid reply";
    let wrong = |why: &str| format!("{NO_REPLY}: {why}");
    let answer = surrogates::read_json(body).map_err(|_| NO_REPLY.to_owned())?;
    let answer = answer.as_object().ok_or_else(|| wrong("it is no object"))?;
    let part = |name: &str| answer.get(name).unwrap_or(&Value::Null);
    let text = content::words(part("message")).map_err(|form| wrong(&format!("message is {form}")))?;
    let ends = match part("end_conversation") {
        Value::Null => false,
        Value::Bool(ends) => *ends,
        _ => return Err(wrong("end_conversation is neither true nor false")),
    };
    let calls = match part("tool_calls") {
        Value::Null => &[],
        Value::Array(calls) => &calls[..],
        _ => return Err(wrong("tool_calls is no list")),
    };
    let called = |(at, call): (usize, &Value)| {
        let name =
            call["name"].as_str().ok_or_else(|| wrong(&format!("tool_calls[{at}].name is missing or no text")))?;
        let parameters = match &call["parameters"] {
            Value::Null => None,
            Value::Object(parameters) => Some(parameters.clone()),
            _ => return Err(wrong(&format!("tool_calls[{at}].parameters is no object"))),
        };
        Ok(Called { name: name.to_owned(), parameters, output: call["output"].clone() })
    };
    let calls = calls.iter().enumerate().map(called).collect::<Result<_, String>>()?;
    Ok(Reply { text, ends, calls, id: None })
}

#[cfg(test)]
mod tests {
    use ringer_base::testing::WebServer;
    use uuid::Uuid;

    use super::*;
    use crate::guard::Guard;

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
            (
                r#"{"message":[{"type":"text","text":"Good "},{"type":"output_text","text":"day"},"."]}"#,
                Some(said("Good day.")),
            ),
            (r#"{"message":{"type":"text","text":"Hi"}}"#, Some(said("Hi"))),
            (r#"{"message":"Hi \ud83d"}"#, Some(said("Hi \u{FFFD}"))),
            (r#"{"message":null,"tool_calls":null,"end_conversation":null}"#, Some(Reply::default())),
        ] {
            assert_eq!(reply(body.as_bytes()).ok(), expect, "{body}");
        }
        for (body, why) in [
            ("{", ""),
            ("[]x", ""),
            ("[]", ": it is no object"),
            ("null", ": it is no object"),
            (r#"["Hi"]"#, ": it is no object"),
            (r#""Hi""#, ": it is no object"),
            (r#"{"message":5}"#, ": message is a number"),
            (r#"{"message":false}"#, ": message is true or false"),
            (r#"{"message":{"say":"Hi"}}"#, ": message is an object without text"),
            (r#"{"message":[{"type":"card"}]}"#, ": message is a list without text"),
            (r#"{"end_conversation":"yes"}"#, ": end_conversation is neither true nor false"),
            (r#"{"tool_calls":{}}"#, ": tool_calls is no list"),
            (r#"{"tool_calls":[{}]}"#, ": tool_calls[0].name is missing or no text"),
            (
                r#"{"tool_calls":[{"name":"a"},{"name":"b","parameters":[]}]}"#,
                ": tool_calls[1].parameters is no object",
            ),
        ] {
            assert_eq!(reply(body.as_bytes()), Err(format!("http_webhook answered with no valid reply{why}")));
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
                traceparent: None,
            };
            let message = Message { id: Uuid::nil(), text: "Hi".into(), ends: false, history: Vec::new() };
            let trouble = webhook.deliver(&message, &mut None).await.err();
            assert_eq!(trouble.as_ref().map(|trouble| trouble.again), expect, "{path}: {trouble:?}");
        }
    }
}
