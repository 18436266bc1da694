//! The sample agent in writing: a server of chat-completions requests. A request has the whole conversation, so nothing
//! is kept between two of them.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use ringer_media::call::{ConversationLine, Move, Purpose, Thought};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::fault::{Fault, LATE_OPENING_MS, SLOW_MS};
use super::mind::{DeskMind, GREETING};
use crate::clock::Clock;
use crate::tasks::Tasks;

/// Path of the requests below the base address.
const PATH: &str = "/v1/chat/completions";

/// Serves chat-completions requests at `listener` until `tasks` end; the agent has `fault`, if there is one.
pub fn listen(listener: TcpListener, tasks: &Tasks, fault: Option<Fault>) {
    let app = Router::new().route(PATH, post(complete)).with_state(fault);
    tasks.spawn_until_stop("written conversations", async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!("messages are not answered any more: {error}");
        }
    });
}

async fn complete(State(fault): State<Option<Fault>>, body: Bytes) -> Response {
    let answered = messages_of(&body).map(|messages| (delay(fault, &messages), reply(fault, &messages)));
    let (status, body) = match answered {
        Ok((delay, reply)) => {
            // An agent with a fault is slow on purpose; without one the delay is zero.
            tokio::time::sleep(delay).await;
            (StatusCode::OK, completion(&reply))
        }
        Err(why) => (StatusCode::BAD_REQUEST, json!({ "error": { "message": why } })),
    };
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

/// Author and words of each message, without those of the system.
type Messages = Vec<(bool, String)>;

/// Reads the messages of a request; true for those of the caller.
///
/// # Errors
/// Text that names what is wrong in the body.
fn messages_of(body: &[u8]) -> Result<Messages, String> {
    let body: Value = serde_json::from_slice(body).map_err(|error| format!("the body is no JSON: {error}"))?;
    let messages = body["messages"].as_array().ok_or("messages must be a list")?;
    if messages.is_empty() {
        return Err("messages must not be empty".to_owned());
    }
    let mut read = Messages::new();
    for (at, message) in messages.iter().enumerate() {
        let words = message["content"].as_str().unwrap_or_default().to_owned();
        match message["role"].as_str() {
            Some("user") => read.push((true, words)),
            Some("assistant") => read.push((false, words)),
            Some("system" | "developer" | "tool") => {}
            other => return Err(format!("messages[{at}].role must be user, assistant or system, not {other:?}")),
        }
    }
    Ok(read)
}

/// Returns the time that the agent lets pass before it answers.
fn delay(fault: Option<Fault>, messages: &Messages) -> Duration {
    let is_first = !messages.iter().any(|(is_caller, _)| !is_caller);
    Duration::from_millis(match fault {
        Some(Fault::LateFirstWord) if is_first => LATE_OPENING_MS.into(),
        Some(Fault::SlowAnswer) => SLOW_MS.into(),
        _ => 0,
    })
}

/// Returns the words of the agent after these messages.
fn reply(fault: Option<Fault>, messages: &Messages) -> String {
    let line = |other, text: &str| ConversationLine { other, text: text.into(), digits: "".into(), interrupted: false };
    let mut mind = fault.map_or_else(DeskMind::default, DeskMind::faulty);
    // The desk takes first words for an answer to its greeting, also those of a caller who writes first.
    let mut history = vec![line(false, GREETING)];
    let mut said = GREETING.to_owned();
    for (is_caller, words) in messages {
        if !is_caller {
            continue;
        }
        history.push(line(true, words));
        let Move { say, .. } = mind.next(&Thought { purpose: Purpose::Reply, history: history.clone(), unsaid: None });
        history.push(line(false, &say));
        said = say;
    }
    said
}

/// Returns the body of an answer.
fn completion(words: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", crate::clock::new_id()), "object": "chat.completion", "model": "desk",
        "created": Clock::Real.now_ms() / 1000,
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": words }, "finish_reason": "stop" }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Value) -> Messages {
        messages_of(json!({ "model": "desk", "messages": messages }).to_string().as_bytes()).expect("it is a request")
    }

    #[test]
    fn a_booking_goes_through_in_writing() {
        let mut messages = vec![json!({ "role": "system", "content": "Be kind." })];
        assert_eq!(reply(None, &request(json!(messages))), GREETING);
        for (words, expect) in [
            ("I would like to see a doctor.", "date of birth"),
            ("The third of March.", "Tuesday at nine"),
            ("Yes please.", "booked"),
        ] {
            messages.push(json!({ "role": "user", "content": words }));
            let said = reply(None, &request(json!(messages)));
            assert!(said.contains(expect), "{words}: {said}");
            messages.push(json!({ "role": "assistant", "content": said }));
        }
    }

    #[test]
    fn a_late_first_word_is_late_once() {
        let hello = json!({ "role": "user", "content": "Hello" });
        let first = request(json!([hello]));
        let later = request(json!([hello, { "role": "assistant", "content": "Hi" }, hello]));
        for (fault, messages, expect) in [
            (None, &first, 0),
            (Some(Fault::LateFirstWord), &first, LATE_OPENING_MS),
            (Some(Fault::LateFirstWord), &later, 0),
            (Some(Fault::SlowAnswer), &later, SLOW_MS),
        ] {
            assert_eq!(delay(fault, messages), Duration::from_millis(expect.into()), "{fault:?}");
        }
    }

    #[test]
    fn a_request_of_another_form_is_refused() {
        for (body, expect) in [
            (&b"{"[..], "the body is no JSON"),
            (b"{}", "messages must be a list"),
            (br#"{"messages": []}"#, "messages must not be empty"),
            (br#"{"messages": [{"role": "clerk"}]}"#, "messages[0].role must be"),
        ] {
            let why = messages_of(body).expect_err("it is refused");
            assert!(why.starts_with(expect), "{why}");
        }
    }
}
