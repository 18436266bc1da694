//! Address and body of a request to a chat-completions server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::{ChatMessage, ChatRequest, ChatRole, ChatTool};

const PATH: &str = "/chat/completions";
/// Stands for the other side where it has said nothing before the model's first words: many models have to be spoken to
/// first.
const BEGIN: &str = "(Begin.)";
/// Stands for the other side where it has said nothing after the model's last words.
const GO_ON: &str = "(Go on.)";

/// Returns the URL of chat completions below a base, which may already end in it, and may have a query.
pub(crate) fn endpoint(base: &str) -> String {
    let base = base.trim().split('#').next().unwrap_or_default();
    let (place, query) = base.split_once('?').map_or((base, None), |(place, query)| (place, Some(query)));
    let place = place.trim_end_matches('/');
    let path = if place.ends_with(PATH) { "" } else { PATH };
    match query.filter(|query| !query.is_empty()) {
        Some(query) => format!("{place}{path}?{query}"),
        None => format!("{place}{path}"),
    }
}

/// True if servers at such a URL take the key from the header `api-key`: their URLs name a version of the interface.
pub(crate) fn takes_api_key(url: &str) -> bool {
    url.split_once('?').is_some_and(|(_, query)| query.split('&').any(|pair| pair.starts_with("api-version=")))
}

/// Returns the body of a request. `tokens_max`: tokens of an answer, instead of the request's own.
pub(crate) fn body(model: &str, tokens_max: Option<u32>, request: &ChatRequest) -> Value {
    let messages = messages(&request.messages);
    let heard = messages.iter().position(|message| message.role == ChatRole::User);
    let mut body = json!({
        "model": model,
        "messages": messages,
        "temperature": request.temperature,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if let (Some(audio), Some(at)) = (&request.audio, heard) {
        let data = STANDARD.encode(audio);
        body["messages"][at]["content"] = json!([
            { "type": "text", "text": messages[at].content },
            { "type": "input_audio", "input_audio": { "data": data, "format": "wav" } },
        ]);
    }
    if let Some(tokens) = tokens_max.or(Some(request.tokens_max)).filter(|tokens| *tokens > 0) {
        body["max_tokens"] = tokens.into();
    }
    if request.json {
        body["response_format"] = json!({"type": "json_object"});
    }
    if let Some(seed) = request.seed {
        body["seed"] = seed.into();
    }
    let tool = |tool: &ChatTool| {
        let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        json!({"type": "function", "function": function})
    };
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

/// Returns the messages as every server takes them: at most one of the system, first; then user and assistant in turns,
/// of which the user has the first and the last.
fn messages(given: &[ChatMessage]) -> Vec<ChatMessage> {
    let message = |role, content: &str| ChatMessage { role, content: content.to_owned() };
    let (system, talk): (Vec<&ChatMessage>, Vec<&ChatMessage>) = given
        .iter()
        .filter(|message| !message.content.trim().is_empty())
        .partition(|message| message.role == ChatRole::System);
    let mut all = Vec::new();
    if !system.is_empty() {
        let rules: Vec<&str> = system.iter().map(|message| message.content.as_str()).collect();
        all.push(message(ChatRole::System, &rules.join("\n\n")));
    }
    if talk.first().is_none_or(|first| first.role != ChatRole::User) {
        all.push(message(ChatRole::User, BEGIN));
    }
    for next in talk {
        match all.last_mut() {
            Some(last) if last.role == next.role => {
                last.content.push('\n');
                last.content.push_str(&next.content);
            }
            _ => all.push(next.clone()),
        }
    }
    if all.last().is_some_and(|last| last.role == ChatRole::Assistant) {
        all.push(message(ChatRole::User, GO_ON));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_path_is_put_before_the_query_and_never_twice() {
        for (base, expect) in [
            ("http://h/v1", "http://h/v1/chat/completions"),
            ("http://h/v1/", "http://h/v1/chat/completions"),
            ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/v1/chat/completions/", "http://h/v1/chat/completions"),
            (
                "https://h/openai/deployments/x?api-version=1",
                "https://h/openai/deployments/x/chat/completions?api-version=1",
            ),
            ("https://h/x/?api-version=1&a=b/", "https://h/x/chat/completions?api-version=1&a=b/"),
            ("https://h/x/chat/completions?api-version=1", "https://h/x/chat/completions?api-version=1"),
            ("http://h/v1?", "http://h/v1/chat/completions"),
            ("http://h/v1?a=1#part", "http://h/v1/chat/completions?a=1"),
        ] {
            assert_eq!(endpoint(base), expect, "{base}");
        }
        assert!(takes_api_key("https://h/x?a=b&api-version=1") && !takes_api_key("https://h/api-version=1?a=b"));
    }

    #[test]
    fn messages_are_in_the_order_that_every_server_takes() {
        let role = |name: char| match name {
            's' => ChatRole::System,
            'u' => ChatRole::User,
            _ => ChatRole::Assistant,
        };
        let check = |given: &[&str], expect: &[&str]| {
            let of =
                |text: &&str| ChatMessage { role: role(text.chars().next().unwrap_or('s')), content: text[1..].into() };
            let expect: Vec<ChatMessage> = expect.iter().map(of).collect();
            assert_eq!(messages(&given.iter().map(of).collect::<Vec<_>>()), expect, "{given:?}");
        };
        check(&["sRules", "uHi"], &["sRules", "uHi"]);
        check(&["sRules", "uHi", "aHello", "uBye", "sBe short"], &["sRules\n\nBe short", "uHi", "aHello", "uBye"]);
        check(&["sRules", "sBegin now"], &["sRules\n\nBegin now", "u(Begin.)"]);
        check(&["sRules", "aHello", "uHi"], &["sRules", "u(Begin.)", "aHello", "uHi"]);
        check(&["uHi", "uThere", "aHello", "aYou", "u", "uBye"], &["uHi\nThere", "aHello\nYou", "uBye"]);
        check(&["uHi", "aHello"], &["uHi", "aHello", "u(Go on.)"]);
        check(&["s", "uHi"], &["uHi"]);
        check(&[], &["u(Begin.)"]);
    }

    #[test]
    fn the_tokens_of_an_answer_are_the_requests_own_unless_they_are_set() {
        for (own, set, expect) in [
            (100, None, json!(100)),
            (100, Some(9000), json!(9000)),
            (0, Some(9000), json!(9000)),
            (0, None, Value::Null),
        ] {
            let request = ChatRequest { tokens_max: own, ..ChatRequest::default() };
            assert_eq!(body("m", set, &request)["max_tokens"], expect, "{own} {set:?}");
        }
    }

    #[test]
    fn a_recording_goes_with_the_first_words_of_the_user() {
        let message = |role, content: &str| ChatMessage { role, content: content.into() };
        let messages = vec![
            message(ChatRole::System, "Judge."),
            message(ChatRole::User, "The words."),
            message(ChatRole::Assistant, "?"),
            message(ChatRole::User, "Again."),
        ];
        let request = ChatRequest { messages, audio: Some(Arc::from(*b"RIFF")), ..ChatRequest::default() };
        let body = body("m", None, &request);
        let contents: Vec<&Value> = (0..4).map(|at| &body["messages"][at]["content"]).collect();
        let heard = json!([
            { "type": "text", "text": "The words." },
            { "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } },
        ]);
        assert_eq!(contents, [&json!("Judge."), &heard, &json!("?"), &json!("Again.")]);
    }
}
