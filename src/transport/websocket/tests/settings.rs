//! Settings of dialects and parameters of agents.

use serde_json::json;

use super::*;
use crate::websocket::dialect::{Fault, MarksOnClear, read_parameters};
use crate::websocket::protocol::DigitPath;
use crate::websocket::voice::{Encoding, Wire};

#[test]
fn kinds_are_known_by_their_names() {
    for kind in Kind::DIALECTS {
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    for name in ["default", "", "Audiohook", "openai_realtime"] {
        assert_eq!(Kind::from_name(name), None);
    }
    assert_eq!(Kind::unknown("X"), "Unknown websocket_dialect 'X'");
}

#[test]
fn a_table_is_read() {
    let dialect = Dialect::parse(
        "mine",
        &json!({"kind": "telnyx_media_streaming", "encoding": "l16", "rate": 16000, "agent_encoding": "PCMA",
            "chunk_ms": 40, "headers": {"x-telnyx-streaming-auth-token": "t"}, "drop_query": true,
            "marks_on_clear": "drop", "dtmf_inband": true, "carrier_headers_only": true, "result_id_key": "rid",
            "subprotocol": "p", "faults": ["reorder", "reorder", "no_marks"]}),
    )
    .expect("it is valid");
    assert_eq!(dialect.wire, Wire { encoding: Encoding::L16Be, rate_hz: 16_000 });
    assert_eq!(dialect.agent_wire, Wire { encoding: Encoding::Pcma, rate_hz: 8000 });
    assert_eq!((dialect.chunk_ms, dialect.marks_on_clear), (40, MarksOnClear::Drop));
    assert_eq!(dialect.faults, [Fault::Reorder, Fault::NoMarks]);
    assert_eq!((dialect.result_id_key.as_str(), dialect.subprotocol.as_deref()), ("rid", Some("p")));
    assert_eq!(dialect.digits(), DigitPath::Both);
    assert!(!format!("{dialect:?}").contains("auth-token"));
    let little = json!({"kind": "telnyx_media_streaming", "encoding": "L16", "byte_order": "little"});
    assert_eq!(Dialect::parse("x", &little).map(|dialect| dialect.wire.encoding), Ok(Encoding::L16Le));
    let pipecat = Dialect::parse("x", &json!({"kind": "pipecat_protobuf"})).expect("it is valid");
    assert_eq!((pipecat.wire.rate_hz, pipecat.agent_wire.rate_hz), (16_000, 24_000));
    for kind in Kind::DIALECTS {
        assert_eq!(Dialect::parse("x", &json!({ "kind": kind.name() })), Ok(Dialect::new(kind)), "{kind:?}");
    }
}

#[test]
fn bad_settings_are_named() {
    let check = |name: &str, table: Value, expect: &str| {
        let error = Dialect::parse(name, &table).map_err(|error| error.to_string());
        assert_eq!(error, Err(format!("[websocket.dialects.{name}] {expect}")), "{table}");
    };
    let twilio = |field: &str, value: Value| json!({"kind": "twilio_media_streams", field: value});
    check("audiohook", json!({}), "has the name of a kind; take another name");
    check("a b", json!({}), "needs a name of 1 to 64 letters, digits, _ and -");
    check("x", json!(1), "must be a table");
    check("x", json!({}), "needs a kind");
    check("x", json!({"kind": 1}), "kind must be a string");
    let kinds: Vec<&str> = Kind::DIALECTS.iter().map(|kind| kind.name()).collect();
    check("x", json!({"kind": "y"}), &format!("kind 'y' is none of {}", kinds.join(", ")));
    check("x", twilio("encodings", json!("PCMU")), "has no setting 'encodings'");
    check("x", twilio("api_key", json!("k")), "api_key has no effect with kind twilio_media_streams");
    check("x", twilio("encoding", json!("L16")), "encoding 'L16' is none of PCMU");
    check("x", twilio("rate", json!(16_000)), "rate 16000 is none of 8000 for PCMU");
    check("x", twilio("rate", json!(-1)), "rate must be a whole number");
    check("x", twilio("chunk_ms", json!(15)), "chunk_ms 15 is not 10 to 1000 in steps of 10");
    check("x", twilio("chunk_ms", json!(1010)), "chunk_ms 1010 is not 10 to 1000 in steps of 10");
    check("x", twilio("marks_on_clear", json!("keep")), "marks_on_clear 'keep' is none of return, drop");
    check("x", twilio("drop_query", json!("yes")), "drop_query must be true or false");
    check("x", twilio("signing_key", json!("")), "signing_key must be printable and not empty");
    check("x", twilio("result_id_key", json!("a b")), "result_id_key must be 1 to 64 letters, digits and _");
    check("x", twilio("subprotocol", json!("a b")), "subprotocol is not a token");
    check("x", twilio("headers", json!({"X": 1})), "headers: 'X' must be a string");
    check("x", twilio("headers", json!({"X Y": "1"})), "headers: \"X Y\" is no name of a header");
    check("x", twilio("headers", json!({"X": "a\nb"})), "headers: 'X' has a value that no header can hold");
    for name in ["host", "Connection", "UPGRADE", "Sec-WebSocket-Key", "Content-Type", "x-simulation-result-id"] {
        check("x", twilio("headers", json!({name: "1"})), &format!("headers: '{name}' cannot be set"));
    }
    check("x", twilio("faults", json!("reorder")), "faults must be a list of strings");
    let known = "media_before_start, alaw, malformed, reorder, no_marks, slow_marks, drop_socket";
    check("x", twilio("faults", json!(["x"])), &format!("faults: 'x' is none of {known}"));
    check("x", json!({"kind": "audiohook", "client_secret": "*"}), "client_secret is not base64");
    check(
        "x",
        json!({"kind": "chan_websocket", "control_format": "xml"}),
        "control_format 'xml' is none of json, plain",
    );
}

#[test]
fn parameters_are_checked() {
    let check = |value: Value, expect: Result<usize, &str>| {
        let read = read_parameters(&value).map(|found| found.len()).map_err(|error| error.to_string());
        assert_eq!(read, expect.map_err(|why| format!("websocket_parameters: {why}")), "{value}");
    };
    let many = |count: usize| -> Value {
        (0..count).map(|at| (format!("k{at}"), json!("v"))).collect::<serde_json::Map<_, _>>().into()
    };
    check(Value::Null, Ok(0));
    check(many(20), Ok(20));
    check(many(21), Err("at most 20 are possible, 21 are given"));
    check(json!([]), Err("must be an object of strings"));
    check(json!({"a": 1}), Err("'a' must be a string"));
    check(json!({"a-b": ""}), Err("key \"a-b\" must be 1 to 64 letters, digits and _"));
    check(json!({"": ""}), Err("key \"\" must be 1 to 64 letters, digits and _"));
    check(json!({"a": "é".repeat(256)}), Ok(1));
    check(json!({"a": "é".repeat(257)}), Err("'a' must be at most 256 printable characters"));
    check(json!({"a": "\n"}), Err("'a' must be at most 256 printable characters"));
}

#[test]
fn a_protocol_may_carry_less() {
    let check = |kind: Kind, pairs: &[(&str, &str)], expect: Result<(), &str>| {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let found = Dialect::new(kind).check_parameters(&pairs).map_err(|error| error.to_string());
        assert_eq!(found, expect.map_err(|why| format!("websocket_parameters: {why}")));
    };
    let long = "v".repeat(256);
    let replaced = Err("'simulation_result_id' holds the result id and cannot be replaced");
    check(Kind::TwilioMediaStreams, &[("simulation_result_id", "1")], replaced);
    check(Kind::TwilioMediaStreams, &[("a", &long), ("b", &long)], Ok(()));
    check(Kind::ExotelAgentstream, &[("a", ""), ("b", ""), ("c", "")], Ok(()));
    check(Kind::ExotelAgentstream, &[("a", ""); 4], Err("exotel_agentstream carries at most 3 of them"));
    check(Kind::ExotelAgentstream, &[("a", &long)], Err("exotel_agentstream carries at most 256 characters"));
    check(
        Kind::PlivoAudioStreaming,
        &[("a", "x y")],
        Err("plivo_audio_streaming carries only letters and digits, which 'a' breaks"),
    );
    check(Kind::VonageWebsocket, &[("a", &long), ("b", &long)], Err("vonage_websocket carries at most 512 bytes"));
    check(Kind::VonageWebsocket, &[("event", "")], Err("vonage_websocket uses 'event' and 'content_type' itself"));
}

#[test]
fn parameters_stand_beside_the_result_id() {
    let facts = SessionFacts { parameters: vec![("tenant".to_owned(), "t\"1".to_owned())], ..facts() };
    let mut side = Side::new(Session::caller(Dialect::new(Kind::TwilioMediaStreams), facts));
    side.open();
    let expect = json!({"simulation_result_id": "13062", "tenant": "t\"1"});
    assert_eq!(side.texts()[1]["start"]["customParameters"], expect);
}

#[test]
fn headers_and_keys_go_to_named_hosts_alone() {
    let dialect = |more: &str| {
        let text = format!("{{\"kind\": \"twilio_media_streams\", {more}}}");
        Dialect::parse("desk", &serde_json::from_str(&text).expect("JSON"))
    };
    let secret = "\"signing_key\": \"k\"";
    let hosts = "\"hosts\": [\"Agent.example.com\", \"*.example.org\", \"127.0.0.1\"]";
    let own = dialect(&format!("{secret}, {hosts}")).expect("it can be read");
    for (url, expect) in [
        ("wss://agent.example.com/a?b", true),
        ("wss://AGENT.example.com:8443/", true),
        ("wss://x.example.org", true),
        ("wss://a.b.example.org", true),
        ("ws://127.0.0.1:9000/", true),
        ("wss://example.org", false),
        ("wss://evilexample.org", false),
        ("wss://agent.example.com.evil.example", false),
        ("wss://agent.example.com@evil.example/", false),
        ("no address", false),
    ] {
        assert_eq!(own.may_go_to(url), expect, "{url}");
    }
    let none = dialect(secret).expect("it can be read");
    assert!(none.has_secrets() && !none.may_go_to("wss://agent.example.com"));
    let plain = dialect("\"dtmf_inband\": true").expect("it can be read");
    assert!(!plain.has_secrets() && plain.may_go_to("wss://anywhere.example"));
    for wrong in ["\"agent.example\"", "[7]", "[\"*\"]", "[\"a.*.b\"]", "[\"https://a.b\"]", "[\"a.b:443\"]", "[\"\"]"]
    {
        let error = dialect(&format!("\"hosts\": {wrong}")).expect_err("it is refused").to_string();
        assert!(error.contains("hosts must be a list of hosts"), "{wrong}: {error}");
    }
}
