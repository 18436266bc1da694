//! Connection of a suite as an agent of the API.

mod platform;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::fitting::Fields;
use super::reading::check_known;
use super::yaml::{MemberName, Node, Place, Problem};
use crate::config::is_http_address;
use crate::model::agent::AgentSpec;
use crate::model::integration::IntegrationSpec;

/// Fields of an agent, by which those of a file are checked.
static AGENT: LazyLock<Fields> = LazyLock::new(Fields::of::<AgentSpec>);

/// Credentials of the API.
static INTEGRATION: LazyLock<Fields> = LazyLock::new(Fields::of::<IntegrationSpec>);

/// Connection to an agent.
#[expect(clippy::large_enum_variant, reason = "a run has few of them")]
#[derive(Clone, Debug, PartialEq)]
pub enum Connect {
    /// An agent of the server, by its name or id.
    Named(String),
    /// An agent that is made for the run.
    Made(Made),
}

/// An agent that is made for the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Kind of connection, by the word of the file.
    pub kind: &'static str,
    /// Fields of the agent.
    pub agent: Map<String, Value>,
    /// Codecs that are offered; empty: those of the settings.
    pub codecs: Vec<String>,
    /// Position of `connect` in the file.
    pub at: Place,
    /// Values of the file by the fields of the agent that they became.
    pub sources: Vec<(String, Node)>,
    /// Credentials of the agent's platform, by their names in the API.
    pub integration: Map<String, Value>,
    /// Room server in whose rooms the agent is met; `None`: another kind of connection, or a server of tokens.
    pub room: Option<RoomAt>,
}

/// A room server that a suite names.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomAt {
    /// Address of the server, `ws` or `wss`.
    pub server: String,
    /// Name of the one room of all calls; `None`: each call has a room of its own.
    pub name: Option<String>,
    /// Position of the address in the file.
    pub at: Place,
}

/// A kind of connection: its word, its connection type, the field of its address, and the fields of the words beside
/// it.
struct Way {
    word: &'static str,
    kind: &'static str,
    mode: &'static str,
    address: &'static str,
    beside: &'static [(&'static str, &'static str)],
}

const WAYS: [Way; 8] = [
    Way {
        word: "sip",
        kind: "SIP",
        mode: "VOICE",
        address: "sip_uri",
        beside: &[
            ("username", "sip_username"),
            ("password", "sip_password"),
            ("headers", "custom_sip_headers"),
            ("codecs", ""),
        ],
    },
    Way {
        word: "phone",
        kind: "PHONE",
        mode: "VOICE",
        address: "phone_number",
        beside: &[("headers", "custom_sip_headers"), ("codecs", "")],
    },
    Way {
        word: "ws",
        kind: "WEBSOCKET",
        mode: "VOICE",
        address: "websocket_url",
        beside: &[
            ("username", "websocket_username"),
            ("password", "websocket_password"),
            ("dialect", "websocket_dialect"),
            ("parameters", "websocket_parameters"),
        ],
    },
    Way {
        word: "room",
        kind: "P1",
        mode: "VOICE",
        address: "P1_token_webhook_url",
        beside: &[
            ("agent_name", "P1_agent_name"),
            ("metadata", "P1_metadata"),
            ("token_auth", "P1_token_webhook_auth"),
            ("tool_topic", "P1_customer_tool_topic"),
        ],
    },
    Way {
        word: "pipeline",
        kind: "P2",
        mode: "VOICE",
        address: "P2_agent_name",
        beside: &[("configuration", "P2_agent_configuration"), ("room_properties", "P2_room_properties")],
    },
    Way {
        word: "http",
        kind: "HTTP_WEBHOOK",
        mode: "TEXT",
        address: "http_webhook",
        beside: &[("key", "http_webhook_key"), ("sync_reply", "http_webhook_sync_reply")],
    },
    Way {
        word: "chat",
        kind: "P12",
        mode: "TEXT",
        address: "P12_base_url",
        beside: &[("model", "P12_model"), ("key", "P12_api_key")],
    },
    Way {
        word: "email",
        kind: "EMAIL",
        mode: "EMAIL",
        address: "email_address",
        beside: &[("reply_addresses", "email_reply_addresses")],
    },
];

/// Words beside the address of a room server. The server of tokens among [`WAYS`] has the same word, and an address of
/// HTTP.
const ROOM_SERVER: Way = Way {
    word: "room",
    kind: "P1",
    mode: "VOICE",
    address: "P1_url",
    beside: &[
        ("agent_name", "P1_agent_name"),
        ("metadata", "P1_metadata"),
        ("tool_topic", "P1_customer_tool_topic"),
        ("room_name", ""),
    ],
};

/// True for the address of a room server.
fn is_room_server(address: &str) -> bool {
    let scheme = address.trim_start().split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("ws") || scheme.eq_ignore_ascii_case("wss")
}

/// Refuses the word that belongs to the other kind of server with this word. Returns that word.
fn refuse_misplaced(members: &[(MemberName, Node)], is_room_server: bool, problems: &mut Vec<Problem>) -> &'static str {
    let (word, why) = match is_room_server {
        true => ("token_auth", "is for a server of tokens, whose address begins with http:// or https://"),
        false => ("room_name", "is for a room server, whose address begins with ws:// or wss://"),
    };
    if let Some((key, _)) = members.iter().find(|(key, _)| key.name == word) {
        problems.push(Problem::new(&key.at, format!("{word} {why}")));
    }
    word
}

/// Reads the room server of `connect`.
fn room_at(node: &Node, address: &str, problems: &mut Vec<Problem>) -> RoomAt {
    let at = node.get("room").map_or(&node.at, |value| &value.at).clone();
    let name = node.get("room_name").map(|value| (value, value.text().map(str::trim).unwrap_or_default()));
    if let Some((value, "")) = name {
        problems.push(Problem::new(&value.at, "room_name must be a text"));
    }
    RoomAt { server: address.trim().to_owned(), name: name.map(|(_, name)| name.to_owned()), at }
}

/// Returns metadata of a room that are written as the text of a JSON object.
fn metadata_of_text(value: &Node) -> Option<Result<Value, Vec<Problem>>> {
    let text = value.text()?;
    let read = serde_json::from_str::<Map<String, Value>>(text).map(Value::Object);
    Some(read.map_err(|_| vec![Problem::new(&value.at, "metadata must be a map, or the text of a JSON object")]))
}

impl Made {
    /// Returns the reason why its pipeline cannot be named like this: by its address at the run's own engine, by its
    /// name at a server.
    pub fn pipeline_problem(&self, is_at_server: bool) -> Option<Problem> {
        let name = self.agent.get("P2_agent_name")?.as_str()?;
        let text = match (is_http_address(name), is_at_server) {
            (true, true) => {
                "a server takes the name of a pipeline: its address is P2_base_url of the server's integrations"
            }
            (false, false) => "pipeline without --server must be its address, like http://127.0.0.1:7860",
            _ => return None,
        };
        let at = self.sources.iter().find(|(field, _)| field == "P2_agent_name").map_or(&self.at, |(_, node)| &node.at);
        Some(Problem::new(at, text))
    }
}

/// Reads `connect`.
///
/// # Errors
/// Everything that is wrong in it.
pub fn connect(node: &Node) -> Result<Connect, Vec<Problem>> {
    let Some(members) = node.members() else {
        return Err(vec![Problem::new(&node.at, "connect must be a map, like { sip: \"sip:desk@127.0.0.1:5080\" }")]);
    };
    if let Some(named) = node.get("platform") {
        return platform::connect(node, members, named);
    }
    let words: Vec<&str> = WAYS.iter().map(|way| way.word).chain(["platform", "agent"]).collect();
    let kinds: Vec<&str> = words.iter().copied().filter(|word| node.get(word).is_some()).collect();
    let mut problems = Vec::new();
    let [word] = kinds[..] else {
        let known_words = words.iter().copied().chain(WAYS.iter().flat_map(|way| way.beside).map(|(word, _)| *word));
        let all: Vec<&str> = known_words.collect();
        members.iter().for_each(|(key, _)| check_known(key, all.iter().copied(), &mut problems));
        problems.push(Problem::new(&node.at, format!("connect must have exactly one of {}", words.join(", "))));
        return Err(problems);
    };
    let Some(address) = node.get(word).and_then(Node::text).filter(|text| !text.trim().is_empty()) else {
        let at = node.get(word).map_or(&node.at, |value| &value.at);
        return Err(vec![Problem::new(at, format!("{word} must be a text"))]);
    };
    if word == "agent" {
        members.iter().for_each(|(key, _)| check_known(key, ["agent"].into_iter(), &mut problems));
        return if problems.is_empty() { Ok(Connect::Named(address.to_owned())) } else { Err(problems) };
    }
    let Some(way) = WAYS.iter().find(|way| way.word == word) else { return Err(problems) };
    let is_server = word == "room" && is_room_server(address);
    let way = if is_server { &ROOM_SERVER } else { way };
    let misplaced = (word == "room").then(|| refuse_misplaced(members, is_server, &mut problems));
    let beside = way.beside.iter().map(|(word, _)| *word).chain(misplaced);
    let allowed: Vec<&str> = [word].into_iter().chain(beside).collect();
    members.iter().for_each(|(key, _)| check_known(key, allowed.iter().copied(), &mut problems));
    let mut agent = Map::from_iter([
        ("type".to_owned(), json!("INBOUND")),
        ("mode".to_owned(), json!(way.mode)),
        ("connection_type".to_owned(), json!(way.kind)),
        (way.address.to_owned(), json!(address)),
    ]);
    let room = is_server.then(|| room_at(node, address, &mut problems));
    if is_server {
        // The credentials of the organization hold it.
        agent.remove(way.address);
    }
    if word == "http" {
        agent.insert("http_webhook_sync_reply".into(), json!(true));
    }
    let sources = vec![(way.address.to_owned(), node.get(word).unwrap_or(node).clone())];
    let mut made =
        Made { kind: way.word, agent, codecs: Vec::new(), at: node.at.clone(), sources, integration: Map::new(), room };
    read_beside(node, way, &mut made, &mut problems);
    if problems.is_empty() { Ok(Connect::Made(made)) } else { Err(problems) }
}

/// Reads the words beside the address into the agent.
fn read_beside(node: &Node, way: &Way, made: &mut Made, problems: &mut Vec<Problem>) {
    for (beside, field) in way.beside {
        let Some(value) = node.get(beside) else { continue };
        if *beside == "codecs" {
            made.codecs = super::reading::texts(Some(value), "codecs", problems);
        }
        if field.is_empty() {
            continue;
        }
        let of_text = metadata_of_text(value).filter(|_| *beside == "metadata");
        match of_text.unwrap_or_else(|| AGENT.value(beside, field, value)) {
            Ok(Value::Null) => problems.push(Problem::new(&value.at, format!("{beside} has no value"))),
            Ok(read) => {
                made.agent.insert((*field).to_owned(), read);
                made.sources.push(((*field).to_owned(), value.clone()));
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    #[test]
    fn a_pipeline_has_an_address_here_and_a_name_at_a_server() {
        for (text, is_at_server, expect) in [
            ("{pipeline: 'http://127.0.0.1:7860'}", false, None),
            ("{pipeline: desk}", true, None),
            ("{pipeline: desk}", false, Some("f:1:12: pipeline without --server must be its address")),
            ("{pipeline: 'http://127.0.0.1:7860'}", true, Some("f:1:12: a server takes the name of a pipeline")),
            ("{sip: 'sip:a@127.0.0.1'}", false, None),
        ] {
            let Ok(Connect::Made(made)) = connect(&parse(text, "f").expect("it is read")) else { panic!("{text}") };
            let problem = made.pipeline_problem(is_at_server).map(|problem| problem.to_string());
            match (&problem, expect) {
                (Some(told), Some(expect)) => assert!(told.starts_with(expect), "{text}: {told}"),
                other => assert_eq!(problem.is_some(), expect.is_some(), "{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn each_kind_becomes_an_agent() {
        for (text, expect) in [
            (
                "{sip: 'sip:a@127.0.0.1', username: u, password: 007, headers: {X-A: b}}",
                json!({"type": "INBOUND", "mode": "VOICE", "connection_type": "SIP", "sip_uri": "sip:a@127.0.0.1",
                    "sip_username": "u", "sip_password": "007", "custom_sip_headers": {"X-A": "b"}}),
            ),
            (
                "{http: 'http://127.0.0.1:1/x'}",
                json!({"type": "INBOUND", "mode": "TEXT", "connection_type": "HTTP_WEBHOOK",
                    "http_webhook": "http://127.0.0.1:1/x", "http_webhook_sync_reply": true}),
            ),
            (
                "{chat: 'http://h/v1', model: m, key: k}",
                json!({"type": "INBOUND", "mode": "TEXT", "connection_type": "P12", "P12_base_url": "http://h/v1",
                    "P12_model": "m", "P12_api_key": "k"}),
            ),
            (
                "{email: desk@h.example, reply_addresses: ['*@h.example']}",
                json!({"type": "INBOUND", "mode": "EMAIL", "connection_type": "EMAIL", "email_address": "desk@h.example",
                    "email_reply_addresses": ["*@h.example"]}),
            ),
            (
                "{room: 'http://h/tokens', agent_name: desk, metadata: {a: 1}, token_auth: 7, tool_topic: tools}",
                json!({"type": "INBOUND", "mode": "VOICE", "connection_type": "P1",
                    "P1_token_webhook_url": "http://h/tokens", "P1_agent_name": "desk", "P1_metadata": {"a": 1},
                    "P1_token_webhook_auth": "7", "P1_customer_tool_topic": "tools"}),
            ),
            (
                "{phone: '+14155550100'}",
                json!({"type": "INBOUND", "mode": "VOICE", "connection_type": "PHONE", "phone_number": "+14155550100"}),
            ),
        ] {
            match connect(&parse(text, "f").expect("it is read")) {
                Ok(Connect::Made(made)) => assert_eq!(Value::Object(made.agent), expect, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert_eq!(connect(&parse("{agent: 12}", "f").expect("it is read")), Ok(Connect::Named("12".into())));
    }

    #[test]
    fn a_room_server_is_told_apart_from_a_server_of_tokens() {
        for (text, agent, server, name) in [
            (
                "{room: 'wss://h', agent_name: desk, metadata: {a: 1}, tool_topic: tools}",
                json!({"P1_agent_name": "desk", "P1_metadata": {"a": 1}, "P1_customer_tool_topic": "tools"}),
                "wss://h",
                None,
            ),
            ("{room: 'WS://127.0.0.1:7880', room_name: 007}", json!({}), "WS://127.0.0.1:7880", Some("007")),
            ("{room: ws://h, metadata: '{\"a\": [1]}'}", json!({"P1_metadata": {"a": [1]}}), "ws://h", None),
        ] {
            let Ok(Connect::Made(made)) = connect(&parse(text, "f").expect("it is read")) else { panic!("{text}") };
            let mut expect = json!({"type": "INBOUND", "mode": "VOICE", "connection_type": "P1"});
            expect.as_object_mut().expect("an object").extend(agent.as_object().expect("an object").clone());
            assert_eq!(Value::Object(made.agent), expect, "{text}");
            let room = made.room.expect("a room server");
            assert_eq!((room.server.as_str(), room.name.as_deref()), (server, name), "{text}");
            assert_eq!(room.at.to_string(), "f:1:8", "{text}");
        }
        let Ok(Connect::Made(made)) = connect(&parse("{room: 'http://h'}", "f").expect("it is read")) else {
            panic!("it is a server of tokens")
        };
        assert_eq!(made.room, None);
    }

    #[test]
    fn what_cannot_be_called_is_named() {
        for (text, expect) in [
            (
                "{}",
                "f:1:1: connect must have exactly one of sip, phone, ws, room, pipeline, http, chat, email, platform, agent",
            ),
            ("{sip: a, http: b}", "connect must have exactly one of"),
            ("{sipp: a}", "f:1:2: sipp is not known, did you mean sip?"),
            ("{sip: a, user: b}", "f:1:10: user is not known"),
            ("{sip: }", "sip must be a text"),
            ("{room: 'http://h', token_auth: [a]}", "f:1:32: token_auth: Input should be a valid string"),
            ("{room: 'http://h', topic: a}", "topic is not known"),
            (
                "{room: 'http://h', room_name: a}",
                "f:1:20: room_name is for a room server, whose address begins with ws://",
            ),
            ("{room: 'ws://h', token_auth: a}", "f:1:18: token_auth is for a server of tokens"),
            ("{room: 'ws://h', room_name: }", "f:1:27: room_name must be a text"),
            ("{room: 'ws://h', metadata: lobby}", "f:1:28: metadata must be a map, or the text of a JSON object"),
            ("{room: 'ws://h', room_nam: a}", "room_nam is not known, did you mean room_name?"),
            ("{agent: a, username: b}", "username is not known"),
        ] {
            let problems = connect(&parse(text, "f").expect("it is read")).expect_err(text);
            let faults_found: Vec<String> = problems.iter().map(Problem::to_string).collect();
            assert!(faults_found.iter().any(|line| line.contains(expect)), "{faults_found:?} {expect}");
        }
    }
}
