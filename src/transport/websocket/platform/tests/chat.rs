//! Adapters that write over HTTP: their settings, the requests of messages, and what answers hold.

use serde_json::{Value, json};

use super::super::adapter::{Adapter, Names, SessionReply};
use super::super::chat::{ChatCall, ChatMessage, ChatReply, Inbound};
use super::{Facts, facts};

fn parse(platform: &str, table: &Value) -> Result<Adapter, String> {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let names = Names {
        agent: list(&["name", "P8_base_url", "P8_domain_code", "P11_host", "P11_client_id", "P6_deployment_id"]),
        integration: list(&["P4_api_key"]),
        digital_human: list(&["name"]),
    };
    Adapter::parse(platform, table.as_object().expect("an object was written"), &names).map_err(|why| why.to_string())
}

/// Returns good settings with others in their places; null takes one away.
fn own(more: Value) -> Value {
    let mut table = json!({ "transport": "http_chat", "url": "https://h.example/talk",
        "body": { "say": "{{message.text}}" }, "reply_pointer": "/say" });
    for (key, value) in more.as_object().expect("an object was written") {
        match value {
            Value::Null => drop(table.as_object_mut().expect("an object").remove(key)),
            value => table[key] = value.clone(),
        }
    }
    table
}

#[test]
fn settings_that_cannot_be_used_are_refused_with_their_names() {
    let inbound = json!({ "conversation_pointer": "/to", "text_pointer": "/text" });
    for (table, expect) in [
        (own(json!({ "url": null })), "needs a url"),
        (own(json!({ "body": null })), "needs a body"),
        (own(json!({ "body": "text" })), "body must be a table"),
        (own(json!({ "first_body": "text" })), "first_body must be a table"),
        (own(json!({ "reply_pointer": null })), "needs a reply_pointer, or a table inbound"),
        (own(json!({ "reply_pointer": "say" })), "reply_pointer must be a pointer"),
        (own(json!({ "reply_pointer": 5 })), "reply_pointer must be a string"),
        (own(json!({ "reply_if": "/type=text" })), "reply_if needs a reply_pointer with a list"),
        (own(json!({ "reply_pointer": "/*/say", "reply_if": "text" })), "reply_if must be a pointer"),
        (own(json!({ "end_pointer": "over" })), "end_pointer must be a pointer"),
        (own(json!({ "method": "GET" })), "method is none of POST, PUT, PATCH"),
        (own(json!({ "url": "http://h.example/" })), "url must begin with https://"),
        (own(json!({ "url": "wss://h.example/" })), "url must begin with https://"),
        (own(json!({ "url": "https://{{agent.name}}/" })), "url has a place in its scheme, host or port"),
        (own(json!({ "url": "https://h.example/{{message.text}}" })), "url: nothing is called {{message.text}}"),
        (own(json!({ "body": { "a": "{{session.token}}" } })), "body: nothing is called {{session.token}}"),
        (own(json!({ "body": { "a": "{{message.words}}" } })), "body: nothing is called {{message.words}}"),
        (own(json!({ "headers": { "A": "{{message.text}}" } })), "headers: nothing is called {{message.text}}"),
        (own(json!({ "headers": { "Content-Type": "a" } })), "headers: \"Content-Type\" cannot be set"),
        (own(json!({ "audio_out": { "pointer": "/a" } })), "has no setting \"audio_out\" with transport"),
        (own(json!({ "replies": "/a" })), "has no setting \"replies\""),
        (own(json!({ "tool": { "arguments": "/a" } })), "tool.name is missing"),
        (own(json!({ "tool": { "name": "/a", "id": "/b" } })), "tool has no setting \"id\"; it has list, name"),
        (own(json!({ "tool": { "name": "a" } })), "tool.name must be a pointer"),
        (own(json!({ "tool": "/a" })), "tool must be a table"),
        (own(json!({ "inbound": inbound, "reply_pointer": null })), "inbound is of P11 alone"),
        (
            own(json!({ "inbound": { "text_pointer": "/a" }, "reply_pointer": null })),
            "inbound.conversation_pointer is missing",
        ),
        (own(json!({ "token_pointer": "/a" })), "token_pointer has no effect without session_url"),
        (own(json!({ "auth": "digest" })), "auth is none of"),
        (own(json!({ "auth": { "kind": "digest" } })), "auth.kind is none of \"hs256\", \"service_account\""),
        (own(json!({ "auth": { "kind": "hs256", "scope": "a" } })), "auth has no setting \"scope\"; hs256 has"),
        (own(json!({ "auth": { "kind": "hs256", "lasts_s": 0 } })), "auth.lasts_s must be a whole number of 1 to"),
        (own(json!({ "auth": { "kind": "hs256", "header": "a b" } })), "auth.header is no name of a header"),
        (own(json!({ "auth": { "kind": "hs256", "claims": "a" } })), "auth.claims must be a table"),
        (
            own(json!({ "auth": { "kind": "hs256", "claims": { "a": "{{agent.b}}" } } })),
            "nothing is called {{agent.b}}",
        ),
        (own(json!({ "auth": "hs256" })), "auth needs claims: only P11 has a client_id"),
        (own(json!({ "auth": { "kind": "service_account", "scope": 1 } })), "auth.scope must be a string"),
        (json!({ "preset": "run_session" }), "needs a url"),
        (json!({ "preset": "detect_intent", "transport": "websocket" }), "transport does not fit the preset"),
        (json!({ "preset": "ultravox", "transport": "http_chat" }), "transport does not fit the preset"),
    ] {
        let why = parse("P4", &table).map(|_| ()).expect_err("it is refused");
        assert!(why.starts_with("[adapters.P4] ") && why.contains(expect), "{table}: {why}");
    }
    let named = own(json!({ "url": "{{agent.P8_base_url}}/a", "headers": { "X-Key": "{{integration.key}}" } }));
    let why = parse("P8", &named).map(|_| ()).expect_err("it would send a secret");
    assert!(why.contains("cannot go to a host that the agent names"), "{why}");
    for (platform, table) in [
        ("P4", own(json!({}))),
        ("P11", own(json!({ "auth": "hs256", "url": "https://{{agent.P11_host}}/a" }))),
        ("P8", own(json!({ "url": "{{agent.P8_base_url}}/a/{{agent.P8_domain_code}}" }))),
        ("P11", own(json!({ "inbound": inbound, "reply_pointer": null }))),
        ("P6", json!({ "preset": "run_session", "url": "https://h.example/a", "transport": "http_chat" })),
    ] {
        assert!(parse(platform, &table).is_ok_and(|adapter| adapter.is_chat()), "{platform} {table}");
    }
    assert!(parse("P4", &json!({ "preset": "ultravox" })).is_ok_and(|adapter| !adapter.is_chat()));
}

#[test]
fn one_that_calls_may_write_too() {
    let chat = json!({ "preset": "run_session", "url": "https://h.example/a", "headers.X-A": "b" });
    let both = parse("P6", &json!({ "preset": "ultravox", "chat": chat })).expect("it is good");
    assert!(!both.is_chat() && both.preset() == "ultravox");
    assert!(both.writing().is_some_and(|chat| chat.is_chat() && chat.preset() == "run_session"));
    let calls = parse("P6", &json!({ "preset": "ultravox" })).expect("it is good");
    assert!(calls.writing().is_none());
    for (chat, expect) in [
        (json!("run_session"), "chat is no table"),
        (json!({ "preset": "ultravox" }), "chat needs transport = \"http_chat\""),
        (json!({ "preset": "run_session", "url": "http://h.example/a" }), "chat: url"),
        (
            json!({ "preset": "run_session", "url": "https://h.example/a", "rate": 8000 }),
            "chat: has no setting \"rate\"",
        ),
    ] {
        let why = parse("P6", &json!({ "preset": "ultravox", "chat": chat })).map(drop).expect_err("it is refused");
        assert!(why.contains(expect), "{chat}: {why}");
    }
    let why = parse("P6", &json!({ "preset": "run_session", "url": "https://h.example/a", "chat": chat }));
    assert!(why.is_err_and(|why| why.contains("chat has no effect beside")));
}

#[test]
fn only_its_own_field_stands_for_a_platforms_host() {
    let inbound = json!({ "conversation_pointer": "/to", "text_pointer": "/text" });
    let why = parse("P11", &own(json!({ "inbound": inbound }))).map(|_| ()).expect_err("one of them has no effect");
    assert!(why.contains("reply_pointer has no effect with a table inbound"), "{why}");
    for (platform, url) in [
        ("P8", "{{digital_human.name}}/x"),
        ("P8", "{{agent.P11_host}}/x"),
        ("P8", "https://{{agent.P8_base_url}}/x"),
        ("P8", "{{agent.P8_base_url}}.example/x"),
        ("P11", "{{result.id}}/x"),
        ("P11", "https://{{agent.P11_host}}.{{result.id}}/x"),
        ("P11", "{{agent.P8_base_url}}/x"),
    ] {
        let why = parse(platform, &own(json!({ "url": url }))).map(|_| ()).expect_err(url);
        assert!(why.contains("url has a place in its scheme, host or port"), "{platform} {url}: {why}");
    }
}

#[test]
fn a_message_goes_into_its_place_and_nowhere_else() {
    let table = own(json!({ "method": "PUT", "url": "https://h.example/{{agent.name}}/{{result.id}}",
        "headers": { "X-Name": "{{message.id}}", "X-None": "{{agent.P8_domain_code}}" }, "auth": "bearer",
        "body": { "say": "{{message.text}}", "over": "{{message.ends}}", "who": "dh-{{conversation.id}}" },
        "agent_first_message": { "launch": true } }));
    let adapter = parse("P4", &table).expect("it is good");
    let mut facts = facts();
    facts.conversation = "42-1".to_owned();
    let send = |text: &str, ends: bool| {
        let message = ChatMessage { id: "m1", text, ends, is_first: text.is_empty() };
        adapter.chat_request(&facts, &SessionReply::default(), message).expect("it can be made")
    };
    let made = send("{{agent.name}} \"quoted\"", false);
    assert_eq!((made.method.as_str(), made.url.as_str()), ("PUT", "https://h.example/Desk/42"));
    let expect = json!({ "say": "{{agent.name}} \"quoted\"", "over": false, "who": "dh-42-1" });
    assert_eq!(serde_json::from_str::<Value>(&made.body).expect("JSON"), expect);
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(made.headers, [header("Authorization", "Bearer secret-key"), header("X-Name", "m1")]);
    assert_eq!(send("", false).body, r#"{"launch":true}"#);
    assert_eq!(send("", true).body, r#"{"say":"","over":true,"who":"dh-42-1"}"#);
    assert_eq!(adapter.chat_target(&facts).as_deref(), Some("h.example:443"));
}

#[test]
fn answers_are_read() {
    let adapter = |more: Value| parse("P4", &own(more)).expect("it is good");
    let plain = adapter(json!({ "end_pointer": "/over" }));
    let said = |text: &str| ChatReply { text: Some(text.into()), ..ChatReply::default() };
    for (answer, expect) in [
        (json!({ "say": "Hi" }), Ok(said("Hi"))),
        (json!({ "say": ["Hi", "", null, "there"] }), Ok(said("Hi\nthere"))),
        (json!({ "say": "" }), Ok(ChatReply::default())),
        (json!({ "say": null }), Ok(ChatReply::default())),
        (json!({ "say": [] }), Ok(ChatReply::default())),
        (json!({ "say": "Bye", "over": true }), Ok(ChatReply { ends: true, ..said("Bye") })),
        (json!({ "say": "Bye", "over": {} }), Ok(ChatReply { ends: true, ..said("Bye") })),
        (json!({ "say": "Hi", "over": "" }), Ok(said("Hi"))),
        (json!({ "say": "Hi", "over": [] }), Ok(said("Hi"))),
        (json!({ "say": "Hi", "over": false }), Ok(said("Hi"))),
        (json!({ "over": true }), Ok(ChatReply { ends: true, ..ChatReply::default() })),
        (json!({}), Err("its answer has nothing at \"/say\" (reply_pointer)")),
        (json!("Hi"), Err("its answer has nothing at \"/say\" (reply_pointer)")),
        (json!({ "say": 5 }), Err("its answer has a number and no text at \"/say\" (reply_pointer)")),
        (json!({ "say": [{ "text": "Hi" }] }), Err("its answer has an object and no text at \"/say\" (reply_pointer)")),
    ] {
        assert_eq!(plain.read_reply(&answer), expect.map_err(str::to_owned), "{answer}");
    }
    let traces = adapter(json!({ "reply_pointer": "/*/payload/message", "reply_if": "/type=text | /type=speak",
        "end_pointer": "/*/type=end" }));
    let trace = |kind: &str, text: &str| json!({ "type": kind, "payload": { "message": text } });
    let answer = json!([trace("speak", "Hi"), trace("debug", "no"), { "type": "flow" }, trace("text", "there")]);
    assert_eq!(traces.read_reply(&answer), Ok(said("Hi\nthere")));
    assert_eq!(traces.read_reply(&json!([])), Ok(ChatReply::default()));
    let ended = json!([trace("text", "Bye"), { "type": "end" }]);
    assert_eq!(traces.read_reply(&ended), Ok(ChatReply { ends: true, ..said("Bye") }));
    let whole = adapter(json!({ "reply_pointer": "" }));
    assert_eq!(whole.read_reply(&json!(["Hi", "there"])), Ok(said("Hi\nthere")));
}

#[test]
fn tools_are_read_from_a_list_or_from_the_answer() {
    let call = |parameters: Value, output: Value| ChatCall {
        name: "book".into(),
        parameters: parameters.as_object().cloned(),
        output,
    };
    let rule = json!({ "list": "/calls/*", "name": "/name", "arguments": "/args", "output": "/got" });
    for (rule, answer, expect) in [
        (
            &rule,
            json!({ "calls": [{ "name": "book", "args": { "a": 1 }, "got": 7 }, { "args": {} }] }),
            vec![call(json!({ "a": 1 }), json!(7))],
        ),
        (
            &rule,
            json!({ "calls": [{ "name": "book", "args": "{\"a\":1}" }] }),
            vec![call(json!({ "a": 1 }), Value::Null)],
        ),
        (&rule, json!({ "calls": [{ "name": "book", "args": "no" }] }), vec![call(Value::Null, Value::Null)]),
        (&rule, json!({ "calls": {}, "say": "Hi" }), vec![]),
        (&json!({ "name": "/tool/name" }), json!({ "tool": { "name": "book" } }), vec![call(Value::Null, Value::Null)]),
        (&json!({ "name": "/tool/name" }), json!({ "say": "Hi" }), vec![]),
    ] {
        let adapter = parse("P4", &own(json!({ "tool": rule }))).expect("it is good");
        assert_eq!(adapter.read_reply(&answer).map(|reply| reply.calls), Ok(expect), "{answer}");
    }
}

#[test]
fn messages_that_are_posted_are_read() {
    let inbound = json!({ "conversation_pointer": "/to", "text_pointer": "/text", "id_pointer": "/id",
        "end_pointer": "/over" });
    let adapter = parse("P11", &own(json!({ "inbound": inbound, "reply_pointer": null }))).expect("it is good");
    let message = |text: &str, id: Option<&str>, ends| Inbound {
        conversation: "7".into(),
        text: text.into(),
        id: id.map(str::to_owned),
        ends,
    };
    for (body, expect) in [
        (json!({ "to": "7", "text": "Hi", "id": 3 }), Ok(message("Hi", Some("3"), false))),
        (json!({ "to": 7, "text": ["Hi", "there"] }), Ok(message("Hi\nthere", None, false))),
        (json!({ "to": "7", "over": true }), Ok(message("", None, true))),
        (json!({ "to": "7" }), Err("nothing at \"/text\" (inbound.text_pointer)")),
        (json!({ "text": "Hi" }), Err("nothing at \"/to\" (inbound.conversation_pointer)")),
        (json!({ "to": "7", "text": true }), Err("true or false and no text at \"/text\" (inbound.text_pointer)")),
    ] {
        assert_eq!(adapter.read_inbound(&body), expect.map_err(str::to_owned), "{body}");
    }
}

#[test]
fn every_preset_that_writes_is_good_on_its_platform() {
    for (platform, preset, url) in [
        ("P6", "run_session", Some("https://h.example/a:runSession")),
        ("P7", "detect_intent", None),
        ("P10", "dialog_interact", None),
    ] {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let agent = [
            "P6_deployment_id",
            "P7_project_id",
            "P7_location",
            "P7_agent_id",
            "P10_agent_token",
            "P10_release",
            "P10_agent_parameters",
        ];
        let names = Names { agent: list(&agent), ..Names::default() };
        let mut table = json!({ "preset": preset });
        url.into_iter().for_each(|url| table["url"] = url.into());
        let table = table.as_object().expect("an object was written");
        let adapter = Adapter::parse(platform, table, &names).expect("it is good");
        assert!(adapter.is_chat() && adapter.preset() == preset);
        assert_eq!(adapter.needs_token(), platform != "P10", "{platform}");
        for field in ["P10_release", "P10_agent_parameters"] {
            assert_eq!(adapter.passes_on(field), platform == "P10", "{platform} {field}");
        }
    }
}

/// Parameters of an agent are set with the first message, whoever begins.
#[test]
fn the_first_message_has_more_in_its_body() {
    let names = Names {
        agent: vec!["P10_agent_token".into(), "P10_release".into(), "P10_agent_parameters".into()],
        ..Names::default()
    };
    let table = json!({ "preset": "dialog_interact" });
    let adapter = Adapter::parse("P10", table.as_object().expect("an object"), &names).expect("it is good");
    let with = |parameters: Value| {
        let mut facts = facts();
        facts.agent.insert("P10_agent_parameters".to_owned(), parameters);
        facts
    };
    let send = |facts: &Facts, text: &str, is_first: bool| {
        let message = ChatMessage { id: "m1", text, ends: false, is_first };
        let made = adapter.chat_request(facts, &SessionReply::default(), message).expect("it can be made");
        serde_json::from_str::<Value>(&made.body).expect("JSON")
    };
    let (gold, state) = (with(json!({ "tier": "gold" })), json!({ "variables": { "tier": "gold" } }));
    let said = json!({ "type": "text", "payload": "Hi" });
    assert_eq!(send(&gold, "", true), json!({ "action": { "type": "launch" }, "state": state }));
    assert_eq!(send(&gold, "Hi", true), json!({ "action": said, "state": state }));
    assert_eq!(send(&gold, "Hi", false), json!({ "action": said }));
    assert_eq!(send(&with(Value::Null), "Hi", true), json!({ "action": said }), "there are none");
}
