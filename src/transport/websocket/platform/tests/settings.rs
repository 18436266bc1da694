//! Settings of adapters: refused with the name of what is wrong, and filled in for a call.

use serde_json::{Value, json};

use super::{Facts, adapter, facts};
use crate::websocket::platform::adapter::{Adapter, Names, SessionReply};

#[test]
fn every_preset_is_good_for_every_platform_and_format() {
    let writes = ["run_session", "detect_intent", "dialog_interact"];
    for name in Adapter::presets().filter(|name| !writes.contains(name)) {
        let adapter = adapter(json!({ "preset": name })).unwrap_or_else(|why| panic!("{why}"));
        let reply = SessionReply { url: Some("wss://h/s".to_owned()), ..SessionReply::default() };
        let (url, dialect) = adapter.dialect(&facts(), &reply).expect("it can be dialled");
        assert!(url.starts_with("wss://") && dialect.name() == name, "{url}");
        assert!(!format!("{adapter:?} {dialect:?} {:?}", facts()).contains("secret-key"));
    }
    let narrow = adapter(json!({ "preset": "openai_realtime", "encoding": "PCMU", "rate": 8000 })).expect("it is good");
    let (_, dialect) = narrow.dialect(&facts(), &SessionReply::default()).expect("it can be dialled");
    assert_eq!((dialect.wire.rate_hz, dialect.agent_wire.rate_hz), (8000, 8000));
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let own = |more: Value| {
        let mut settings = json!({ "transport": "websocket", "url": "wss://h" });
        let members = settings.as_object_mut().expect("an object was written");
        members.extend(more.as_object().expect("an object was written").clone());
        settings
    };
    for (settings, expect) in [
        (json!({}), "needs a preset, or a transport: websocket, webrtc, room, sip or http_chat"),
        (json!({ "preset": "x" }), "preset \"x\" is none of openai_realtime"),
        (json!({ "transport": "webrtc" }), "needs an offer"),
        (json!({ "preset": "ultravox", "transport": "sip" }), "a preset is of transport \"websocket\""),
        (json!({ "transport": "pigeon" }), "transport \"pigeon\" is unknown"),
        (own(json!({ "place": {} })), "place.url is missing"),
        (own(json!({ "offer": { "url": "https://h" } })), "offer needs transport = \"webrtc\""),
        (own(json!({ "urls": "x" })), "has no setting \"urls\""),
        (json!({ "transport": "websocket" }), "needs a url"),
        (own(json!({ "url": "ws://h" })), "url must begin with wss:// unless it is on this machine"),
        (own(json!({ "url": "ftp://h" })), "url must begin with wss://"),
        (own(json!({ "url": "wss://{{agent.name}}/x" })), "url has a place in its scheme, host or port"),
        (own(json!({ "url": "wss://h/{{agent.names}}" })), "url: nothing is called {{agent.names}}"),
        (own(json!({ "url": "wss://h/{{session.token}}" })), "url: nothing is called {{session.token}}"),
        (own(json!({ "headers": { "Host": "x" } })), "headers: \"Host\" cannot be set"),
        (own(json!({ "headers": { "X": "{{x}}" } })), "headers: nothing is called {{x}}"),
        (own(json!({ "first": { "a": "{{audio}}" } })), "first: nothing is called {{audio}}"),
        (own(json!({ "first": "hello" })), "first must be a message"),
        (own(json!({ "session_url": "http://h/" })), "session_url must begin with https://"),
        (own(json!({ "session_method": "PUT" })), "session_method is neither GET nor POST"),
        (own(json!({ "url_pointer": "/x" })), "url_pointer has no effect without session_url"),
        (own(json!({ "auth": "magic" })), "auth is none of"),
        (own(json!({ "encoding": "OPUS" })), "encoding \"OPUS\" is none of"),
        (own(json!({ "rate": 11025 })), "rate 11025 is none of"),
        (own(json!({ "rate": "fast" })), "rate must be a whole number"),
        (own(json!({ "chunk_ms": 15 })), "chunk_ms 15 is not 10 to 1000"),
        (own(json!({ "ready": "" })), "ready: a condition has"),
        (own(json!({ "audio_in": { "type": "a" } })), "audio_in.pointer is missing"),
        (own(json!({ "audio_in": { "type": "a", "pointer": "x" } })), "audio_in.pointer must be a pointer"),
        (own(json!({ "audio_out": { "template": { "a": 1 } } })), "must have \"{{audio}}\" once"),
        (own(json!({ "text": { "type": "a", "delta": "/x" } })), "text with a delta needs an end"),
        (own(json!({ "tool": { "type": "a", "names": "/x" } })), "tool has no setting \"names\""),
        (own(json!({ "agent_first": true })), "agent_first has no effect"),
        (json!({ "preset": "openai_realtime", "rate": 16000 }), "fit none of the formats of the protocol: L16/24000"),
    ] {
        let why = adapter(settings.clone()).map(|_| ()).expect_err("it is refused");
        assert!(why.starts_with("[adapters.P4] ") && why.contains(expect), "{settings}: {why}");
    }
    for platform in ["P2", "P12", "PX"] {
        let table = json!({ "preset": "openai_realtime" });
        let table = table.as_object().expect("an object was written");
        assert!(Adapter::parse(platform, table, &Names::default()).is_err(), "{platform}");
    }
}

#[test]
fn an_agent_may_name_the_host_of_two_platforms() {
    let names =
        Names { agent: vec!["P8_base_url".into(), "P11_host".into(), "P8_domain_code".into()], ..Names::default() };
    let parse = |platform: &str, url: &str| {
        let table = json!({ "transport": "websocket", "url": url });
        Adapter::parse(platform, table.as_object().expect("an object was written"), &names)
    };
    assert!(parse("P8", "{{agent.P8_base_url}}/ws/{{agent.P8_domain_code}}").is_ok());
    assert!(parse("P11", "wss://{{agent.P11_host}}/ws").is_ok());
    assert!(
        parse("P4", "{{agent.P8_base_url}}/ws").is_err() && parse("P8", "wss://{{agent.P8_domain_code}}/").is_err()
    );
    let adapter = parse("P8", "{{agent.P8_base_url}}/ws/{{agent.P8_domain_code}}").expect("it is good");
    let dial = |base: &str| {
        let mut facts = facts();
        facts.agent.insert("P8_base_url".into(), base.into());
        facts.agent.insert("P8_domain_code".into(), "a b/..".into());
        adapter.dialect(&facts, &SessionReply::default()).map(|(url, _)| url)
    };
    assert_eq!(dial("https://h.example/"), Ok("wss://h.example/ws/a%20b%2F..".to_owned()));
    assert_eq!(dial("http://h.example"), Err("url must begin with wss:// unless it is on this machine".to_owned()));
    assert_eq!(dial("http://127.0.0.1:9"), Ok("ws://127.0.0.1:9/ws/a%20b%2F..".to_owned()));
}

#[test]
fn a_session_is_asked_for_and_read() {
    let ultravox = adapter(json!({
        "preset": "ultravox", "session_url": "http://127.0.0.1:9/api/agents/{{agent.id}}/calls",
        "session_body": { "metadata.who": "{{digital_human.name}}", "n": "{{agent.P4_agent_id}}" },
    }))
    .expect("it is good");
    let request = ultravox.session_request(&facts()).expect("it can be made").expect("there is one");
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("POST", "http://127.0.0.1:9/api/agents/a%2F1/calls"),
        "{request:?}"
    );
    assert_eq!(request.headers, [("X-API-Key".to_owned(), "secret-key".to_owned())]);
    let body: Value = serde_json::from_str(&request.body).expect("JSON");
    assert_eq!(body["metadata"], json!({ "simulation_result_id": "42", "who": "Ann" }));
    assert_eq!((&body["medium"]["serverWebSocket"]["inputSampleRate"], &body["n"]), (&json!(16000), &json!("a/1")));
    assert!(!format!("{request:?}").contains("secret-key"));
    for (answer, expect) in [
        (r#"{"joinUrl":"wss://h/long-secret-path","callId":"c"}"#, Ok(Some("c"))),
        (r#"{"joinUrl":"wss://h/x"}"#, Ok(None)),
        (r#"{"callId":"c"}"#, Err("its answer has nothing at /joinUrl (url_pointer)")),
        (r#"{"joinUrl":"ws://h.example/x"}"#, Err("its answer names an address that must begin with wss://")),
        ("no", Err("its answer is no JSON")),
    ] {
        let read = ultravox.read_session(answer.as_bytes());
        match (&read, expect) {
            (Ok(read), Ok(id)) => assert_eq!(read.id.as_deref(), id, "{answer}"),
            (Err(why), Err(expect)) => assert!(why.starts_with(expect), "{why}"),
            _ => panic!("{answer}: {read:?}"),
        }
    }
    let reply = ultravox.read_session(br#"{"joinUrl":"wss://h/long-secret-path","callId":"c"}"#).expect("it is good");
    let (url, dialect) = ultravox.dialect(&facts(), &reply).expect("it can be dialled");
    assert_eq!((url.as_str(), dialect.headers.len()), ("wss://h/long-secret-path", 0), "no key for another host");
    assert_eq!(
        dialect.without_secrets("GET wss://h/long-secret-path secret-key".into()),
        "GET wss://h(secret) (secret)"
    );
    let own = adapter(json!({ "transport": "websocket", "url": "wss://h/t/{{integration.key}}" })).expect("it is good");
    let integration = json!({ "key": "ab/cd+ef==" }).as_object().expect("an object was written").clone();
    let keyed = Facts { integration, ..facts() };
    let (url, dialect) = own.dialect(&keyed, &SessionReply::default()).expect("it can be dialled");
    assert_eq!(
        (url.as_str(), dialect.without_secrets(url.clone())),
        ("wss://h/t/ab%2Fcd%2Bef%3D%3D", "wss://h/t/(secret)".to_owned())
    );
    let signed = adapter(json!({ "preset": "elevenlabs_agents" })).expect("it is good");
    let request = signed.session_request(&facts()).expect("it can be made").expect("there is one");
    assert_eq!((request.method.as_str(), request.body.as_str()), ("GET", ""));
    assert!(request.url.ends_with("?agent_id=a%2F1"), "{}", request.url);
}

#[test]
fn a_token_of_a_session_goes_where_the_settings_say() {
    let own = adapter(json!({
        "transport": "websocket", "session_url": "https://h/s", "token_pointer": "/t", "id_pointer": "/id",
        "auth": "bearer",
        "url": "wss://h/{{session.id}}?token={{session.token}}", "headers": { "X-Token": "t {{session.token}}" },
    }))
    .expect("it is good");
    let reply = own.read_session(br#"{"t":"a+b/c=long","id":7}"#).expect("it is good");
    let (url, dialect) = own.dialect(&facts(), &reply).expect("it can be dialled");
    assert_eq!(url, "wss://h/7?token=a%2Bb%2Fc%3Dlong");
    assert_eq!(dialect.headers, [("X-Token".to_owned(), "t a+b/c=long".to_owned())]);
    let broken = own.read_session(br#"{"t":"a\nb","id":7}"#).expect("it is good");
    assert!(own.dialect(&facts(), &broken).is_err(), "a value that no header can hold");
    let request = own.session_request(&facts()).expect("it can be made").expect("there is one");
    assert_eq!(request.headers, [("Authorization".to_owned(), "Bearer secret-key".to_owned())]);
}

#[test]
fn kinds_of_credentials_have_their_headers() {
    for (auth, key, expect) in [
        ("bearer", json!("k"), Some(("Authorization", "Bearer k"))),
        ("token", json!("k"), Some(("Authorization", "Token k"))),
        ("basic", json!({ "username": "u", "password": "p" }), Some(("Authorization", "Basic dTpw"))),
        ("header X-Key", json!({ "api_key": "k" }), Some(("X-Key", "k"))),
        ("bearer", Value::Null, None),
    ] {
        let own = adapter(json!({ "transport": "websocket", "url": "wss://h", "auth": auth })).expect("it is good");
        let mut facts = facts();
        facts.integration.insert("key".to_owned(), key);
        let (_, dialect) = own.dialect(&facts, &SessionReply::default()).expect("it can be dialled");
        let found = dialect.headers.first().map(|(name, value)| (name.as_str(), value.as_str()));
        assert_eq!(found, expect, "{auth}");
    }
}
