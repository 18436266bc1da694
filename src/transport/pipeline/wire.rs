//! Bodies of the requests to a pipeline, and its answers.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ringer_base::config::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::{PipelineTarget, Reason, Start};
use crate::webrtc::{Candidate, MAX_SDP};

/// Bytes of the longest answer that is read: a description in JSON, every character of it escaped.
pub(super) const ANSWER_BYTES: usize = 2 * MAX_SDP + 4096;

/// Bytes of the longest name of a connection.
const MAX_NAME: usize = 256;

/// Depth of a template that is filled.
const MAX_DEPTH: u32 = 32;

/// An offer, as `POST {base}/api/offer` takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferRequest {
    /// The session description as text.
    pub sdp: String,
    /// Type of the description: `offer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the connection that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pc_id: Option<String>,
    /// True: the connection is made anew.
    #[serde(default)]
    pub restart_pc: Option<bool>,
    /// The caller's own data.
    #[serde(default, alias = "requestData")]
    pub request_data: Value,
}

/// The answer to an offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The session description as text.
    pub sdp: String,
    /// Type of the description: `answer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the connection.
    #[serde(default)]
    pub pc_id: Option<String>,
}

/// Candidates that were found after the offer, as `PATCH {base}/api/offer` takes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchRequest {
    /// Name of the connection.
    pub pc_id: String,
    /// Candidates in their order.
    pub candidates: Vec<PatchedCandidate>,
}

/// A candidate of a [`PatchRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchedCandidate {
    /// Value of the attribute.
    pub candidate: String,
    /// Name of the section.
    #[serde(default)]
    pub sdp_mid: Option<String>,
    /// Number of the section.
    #[serde(default)]
    pub sdp_mline_index: Option<u16>,
}

impl From<Candidate> for PatchedCandidate {
    fn from(candidate: Candidate) -> PatchedCandidate {
        // A receiver that needs the name cannot do without; the first section is called by its number.
        let mid = candidate.mid.unwrap_or_else(|| "0".to_owned());
        let section = candidate.section.unwrap_or_default();
        PatchedCandidate { candidate: candidate.line, sdp_mid: Some(mid), sdp_mline_index: Some(section) }
    }
}

impl From<PatchedCandidate> for Candidate {
    fn from(patched: PatchedCandidate) -> Candidate {
        Candidate { line: patched.candidate, mid: patched.sdp_mid, section: patched.sdp_mline_index }
    }
}

/// Place that a start request handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// A pipeline: the base address for the offer, and the key for it.
    Pipeline { base_url: String, key: Option<Secret> },
    /// A media room: the address of its server, and the token that lets this side join.
    Room { server_url: String, token: Secret },
}

/// Base address and key for the offer.
#[derive(Clone, Debug)]
pub(super) struct Base {
    pub(super) url: String,
    pub(super) key: Option<Secret>,
}

impl Base {
    /// Returns the base of a target whose pipeline needs no start.
    pub(super) fn of(target: &PipelineTarget) -> Base {
        Base { url: target.base_url.clone(), key: target.api_key.clone() }
    }

    pub(super) fn offer_url(&self) -> String {
        format!("{}/api/offer", self.url.trim_end_matches('/'))
    }
}

/// Returns the address of the start request: the agent's name is one segment of its path.
pub(super) fn start_url(start: &Start) -> String {
    let name = utf8_percent_encode(&start.agent_name, NON_ALPHANUMERIC).to_string();
    // What addresses keep as it is.
    let name = name.replace("%2D", "-").replace("%5F", "_").replace("%2E", ".").replace("%7E", "~");
    format!("{}/{name}/start", start.url.trim_end_matches('/'))
}

/// Returns the body of the start request.
pub(super) fn start_body(target: &PipelineTarget, start: &Start) -> Value {
    let standard = || json!({ "body": target.configuration, "room_properties": target.room_properties });
    start.body.as_ref().map_or_else(standard, |template| fill(template, target, MAX_DEPTH))
}

/// Fills a template: a text that is one token takes the value's own type, inside of text it becomes text, unknown
/// tokens stay.
fn fill(template: &Value, target: &PipelineTarget, depth: u32) -> Value {
    match template {
        Value::String(text) => fill_text(text, target),
        Value::Array(items) if depth > 0 => items.iter().map(|item| fill(item, target, depth - 1)).collect(),
        Value::Object(fields) if depth > 0 => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), fill(value, target, depth - 1)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, target: &PipelineTarget) -> Value {
    let token = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).filter(|name| !name.contains("{{"));
    if let Some(value) = token.and_then(|name| value(name.trim(), target)) {
        return value;
    }
    let (mut rest, mut out) = (text, String::new());
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        match after.split_once("}}").and_then(|(name, tail)| Some((value(name.trim(), target)?, tail))) {
            Some((Value::String(text), tail)) => {
                out.push_str(&text);
                rest = tail;
            }
            Some((value, tail)) => {
                out.push_str(&value.to_string());
                rest = tail;
            }
            None => {
                out.push_str("{{");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Value::String(out)
}

fn value(name: &str, target: &PipelineTarget) -> Option<Value> {
    Some(match name {
        "P2_agent_configuration" => Value::Object(target.configuration.clone()),
        "P2_room_properties" => target.room_properties.clone(),
        "P2_agent_name" => target.start.as_ref()?.agent_name.clone().into(),
        "simulation_result_id" | "sim_conversation_id" => target.result_id.clone().into(),
        _ => return None,
    })
}

/// Reads the answer to the start request: it may name another base address, or the server of a media room, and a token
/// for it.
///
/// # Errors
/// `Unusable` for an address that is none and for a media room without a token, `Room` for one of another protocol.
pub(super) fn read_started(target: &PipelineTarget, body: &[u8]) -> Result<Started, Reason> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| Reason::Unusable("is no JSON".to_owned()))?;
    let text = |field: &str| answer[field].as_str().filter(|text| !text.is_empty());
    let is_socket = |url: &&str| ["ws://", "wss://"].iter().any(|scheme| url.to_ascii_lowercase().starts_with(scheme));
    let room =
        ["base_url", "url", "server_url", "room_url"].into_iter().find_map(|field| text(field).filter(is_socket));
    if let Some(url) = room {
        return read_room(url, text("token").or_else(|| text("participant_token")));
    }
    let url = match text("base_url").or_else(|| text("url")) {
        None if text("room_url").or_else(|| text("dailyRoom")).is_some() => return Err(Reason::Room),
        None => target.base_url.clone(),
        Some(url) => {
            let parsed = Url::parse(url).map_err(|_| Reason::Unusable("names an address that is none".to_owned()))?;
            match parsed.scheme() {
                "http" | "https" => url.to_owned(),
                _ => return Err(Reason::Unusable("names an address that is neither http nor https".to_owned())),
            }
        }
    };
    // The key is meant for the addresses that were configured with it.
    let own = target.api_key.clone().filter(|_| url == target.base_url);
    let key = text("token").map(|token| Secret::new(token.to_owned())).or(own);
    Ok(Started::Pipeline { base_url: url, key })
}

fn read_room(url: &str, token: Option<&str>) -> Result<Started, Reason> {
    let is_address = Url::parse(url).is_ok_and(|url| url.has_host());
    let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
    match token {
        _ if !is_address => Err(Reason::Unusable("names an address that is none".to_owned())),
        None => Err(Reason::Unusable("names a media room without a token for it".to_owned())),
        Some(token) => Ok(Started::Room { server_url: url.to_owned(), token: Secret::new(token.to_owned()) }),
    }
}

/// Returns the data that goes along with an offer.
pub(super) fn request_data(target: &PipelineTarget) -> Value {
    let mut data: Map<String, Value> = target.configuration.clone();
    data.insert("simulation_result_id".to_owned(), target.result_id.clone().into());
    data.insert("X-Simulation-Result-Id".to_owned(), target.result_id.clone().into());
    data.insert("room_properties".to_owned(), target.room_properties.clone());
    Value::Object(data)
}

/// Reads the answer to an offer.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read_answer(body: &[u8]) -> Result<Answer, Reason> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| Reason::Unusable("is no JSON".to_owned()))?;
    let answer: Answer =
        serde_json::from_value(answer).map_err(|_| Reason::Unusable("lacks sdp and type as texts".to_owned()))?;
    if answer.kind != "answer" {
        let kind: String = answer.kind.chars().take(20).collect();
        return Err(Reason::Unusable(format!("is of type {kind:?} and not \"answer\"")));
    }
    if answer.pc_id.as_ref().is_some_and(|id| id.len() > MAX_NAME) {
        return Err(Reason::Unusable(format!("has a pc_id of more than {MAX_NAME} bytes")));
    }
    Ok(answer)
}

/// Reads an offer that was posted.
///
/// # Errors
/// What is wrong with it, for whoever posted it.
pub fn read_offer(body: &[u8]) -> Result<OfferRequest, String> {
    let offer: OfferRequest = serde_json::from_slice(body).map_err(|error| format!("the body is no offer: {error}"))?;
    if offer.kind != "offer" {
        return Err("type must be \"offer\"".to_owned());
    }
    if offer.pc_id.as_ref().is_some_and(|id| id.len() > MAX_NAME) {
        return Err(format!("pc_id may have at most {MAX_NAME} bytes"));
    }
    Ok(offer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> PipelineTarget {
        let Value::Object(configuration) = json!({ "voice": "a", "simulation_result_id": "theirs" }) else {
            unreachable!("an object was written")
        };
        PipelineTarget {
            base_url: "https://bots.example/x/".into(),
            api_key: Some(Secret::new("key".into())),
            start: Some(Start { url: "https://start.example/v1/".into(), agent_name: "my bot/1".into(), body: None }),
            configuration,
            room_properties: json!({ "n": 1 }),
            result_id: "42".into(),
            offer: None,
            traceparent: None,
        }
    }

    #[test]
    fn requests_are_written() {
        let target = target();
        let start = target.start.clone().expect("it was given");
        assert_eq!(start_url(&start), "https://start.example/v1/my%20bot%2F1/start");
        assert_eq!(
            start_url(&Start { agent_name: "a-b_c.d~e".into(), ..start.clone() }),
            "https://start.example/v1/a-b_c.d~e/start"
        );
        assert_eq!(Base::of(&target).offer_url(), "https://bots.example/x/api/offer");
        let body = json!({ "body": { "voice": "a", "simulation_result_id": "theirs" }, "room_properties": { "n": 1 } });
        assert_eq!(start_body(&target, &start), body);
        let data = json!({ "voice": "a", "simulation_result_id": "42", "X-Simulation-Result-Id": "42", "room_properties": { "n": 1 } });
        assert_eq!(request_data(&target), data);
    }

    #[test]
    fn templates_are_filled() {
        let check = |template: Value, expect: Value| {
            let start = Start { body: Some(template.clone()), ..target().start.expect("it was given") };
            assert_eq!(start_body(&target(), &start), expect, "{template}");
        };
        check(json!("{{P2_room_properties}}"), json!({ "n": 1 }));
        check(json!({ "a": ["{{ simulation_result_id }}", 7, null] }), json!({ "a": ["42", 7, null] }));
        check(
            json!("id {{simulation_result_id}} of {{P2_agent_name}}, {{other}}"),
            json!("id 42 of my bot/1, {{other}}"),
        );
        check(json!("p={{P2_room_properties}}"), json!("p={\"n\":1}"));
        check(json!("{{P2_agent_name}}{{P2_agent_name}}"), json!("my bot/1my bot/1"));
        check(json!("{{"), json!("{{"));
        check(json!({ "{{P2_agent_name}}": 1 }), json!({ "{{P2_agent_name}}": 1 }));
    }

    #[test]
    fn a_start_may_name_base_and_token() {
        let check = |body: &str, expect: Result<(&str, Option<&str>), Reason>| {
            let found = read_started(&target(), body.as_bytes()).map(|started| match started {
                Started::Pipeline { base_url, key } => (base_url, key),
                Started::Room { server_url, token } => (format!("room {server_url}"), Some(token)),
            });
            let found = found.as_ref().map(|(url, key)| (url.as_str(), key.as_ref().map(Secret::expose)));
            assert_eq!(found, expect.as_ref().map(|expect| *expect), "{body}");
        };
        let own = "https://bots.example/x/";
        check("{}", Ok((own, Some("key"))));
        check(r#"{"token":"t"}"#, Ok((own, Some("t"))));
        check(r#"{"base_url":"https://b.example","token":"t"}"#, Ok(("https://b.example", Some("t"))));
        check(r#"{"url":"https://b.example"}"#, Ok(("https://b.example", None)));
        check(r#"{"url":"https://a.example","base_url":"https://b.example"}"#, Ok(("https://b.example", None)));
        let room = "room wss://room.example";
        check(r#"{"url":"wss://room.example","token":"t"}"#, Ok((room, Some("t"))));
        check(r#"{"room_url":"wss://room.example","token":"t","base_url":"https://b.example"}"#, Ok((room, Some("t"))));
        check(r#"{"server_url":"wss://room.example","participant_token":"t"}"#, Ok((room, Some("t"))));
        check(r#"{"url":"WS://room.example","token":"t"}"#, Ok(("room WS://room.example", Some("t"))));
        let no_token = "names a media room without a token for it";
        check(r#"{"url":"wss://room.example"}"#, Err(Reason::Unusable(no_token.into())));
        check(r#"{"url":"wss://room.example","token":"a b"}"#, Err(Reason::Unusable(no_token.into())));
        check(r#"{"url":"wss://","token":"t"}"#, Err(Reason::Unusable("names an address that is none".into())));
        check(r#"{"room_url":"https://room.example/x","token":"t"}"#, Err(Reason::Room));
        check(r#"{"dailyRoom":"https://room.example/x"}"#, Err(Reason::Room));
        check(
            r#"{"url":"file:///x"}"#,
            Err(Reason::Unusable("names an address that is neither http nor https".into())),
        );
        check(r#"{"url":"/x"}"#, Err(Reason::Unusable("names an address that is none".into())));
        check("<html>", Err(Reason::Unusable("is no JSON".into())));
    }

    #[test]
    fn answers_and_offers_are_read() {
        let check = |body: &str, expect: Result<Option<&str>, &str>| {
            let found = read_answer(body.as_bytes()).map(|answer| answer.pc_id);
            let expect = expect.map(|id| id.map(str::to_owned)).map_err(|why| Reason::Unusable(why.to_owned()));
            assert_eq!(found, expect, "{body}");
        };
        check(r#"{"sdp":"v=0","type":"answer","pc_id":"p"}"#, Ok(Some("p")));
        check(r#"{"sdp":"v=0","type":"answer"}"#, Ok(None));
        check(r#"{"sdp":"v=0","type":"offer"}"#, Err("is of type \"offer\" and not \"answer\""));
        check(r#"{"sdp":7,"type":"answer"}"#, Err("lacks sdp and type as texts"));
        check("[]", Err("lacks sdp and type as texts"));
        check("oops", Err("is no JSON"));
        let long = format!(r#"{{"sdp":"v=0","type":"answer","pc_id":"{}"}}"#, "x".repeat(300));
        check(&long, Err("has a pc_id of more than 256 bytes"));
        let offer = read_offer(br#"{"sdp":"v=0","type":"offer","requestData":{"a":1}}"#).expect("an offer");
        assert_eq!((offer.request_data, offer.restart_pc), (json!({ "a": 1 }), None));
        for broken in ["", "{}", r#"{"sdp":"v=0","type":"answer"}"#, r#"{"sdp":null,"type":"offer"}"#] {
            assert!(read_offer(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
