//! Settings of sources, the rows of presets, and what is read of answers.

use super::*;
use crate::websocket::platform::definition_rows::ROWS;

fn names() -> Names {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Names {
        agent: own(&[
            "P4_agent_id",
            "P6_deployment_id",
            "P7_project_id",
            "P7_location",
            "P7_agent_id",
            "P8_base_url",
            "P11_host",
        ]),
        integration: own(&["P4_api_key"]),
        digital_human: Vec::new(),
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object was written").clone()
}

fn adapter(platform: &str, table: Value) -> Arc<Adapter> {
    Arc::new(Adapter::parse(platform, &object(table), &names()).expect("it is good"))
}

fn source(name: &str, table: Value) -> Result<DefinitionSource, String> {
    DefinitionSource::parse(name, &object(table), &|_| None, &names()).map_err(|error| error.to_string())
}

/// Settings that presets need besides, and the address of the request that their rows then make.
fn of_presets() -> Vec<(&'static str, Value, Option<&'static str>)> {
    let chat = json!({ "url": "https://ces.example/v1/projects/p/locations/l/apps/a/sessions/s:runSession" });
    vec![
        ("elevenlabs_agents", json!({}), Some("https://api.elevenlabs.io/v1/convai/agents/desk%201")),
        ("ultravox", json!({}), Some("https://api.ultravox.ai/api/agents/desk%201")),
        ("vapi_websocket", json!({}), Some("https://api.vapi.ai/assistant/desk%201")),
        ("deepgram_voice_agent", json!({}), None),
        ("run_session", chat, None),
        (
            "detect_intent",
            json!({}),
            Some(
                "https://dialogflow.googleapis.com/v3/projects/p/locations/l/agents/a/playbooks/\
                 00000000-0000-0000-0000-000000000000",
            ),
        ),
    ]
}

#[test]
fn rows_of_presets_read_definitions() {
    assert_eq!(
        ROWS.iter().map(|row| row.preset).collect::<Vec<_>>(),
        of_presets().iter().map(|(name, ..)| *name).collect::<Vec<_>>()
    );
    let agent = json!({ "id": "desk 1", "P7_project_id": "p", "P7_location": "l", "P7_agent_id": "a" });
    let facts = Facts {
        agent: object(agent),
        integration: object(json!({ "key": "sesame-4" })),
        bearer: Some("fetched-1".to_owned()),
        ..Facts::default()
    };
    for (preset, mut table, url) in of_presets() {
        table["preset"] = json!(preset);
        let adapter = adapter("P7", table);
        let made = DefinitionSource::of_preset(&adapter, &names());
        assert_eq!(made.is_some(), url.is_some(), "{preset}");
        let Some((made, url)) = made.zip(url) else { continue };
        assert_eq!(made.missing(&facts), None, "{preset}");
        let request = made.adapter().definition_request(&facts).expect("it can be asked");
        assert_eq!((request.method.as_str(), request.url.as_str(), request.body.as_str()), ("GET", url, ""));
        let (name, value) = &request.headers[0];
        let is_known = ["sesame-4", "Bearer sesame-4", "Bearer fetched-1"].contains(&value.as_str());
        assert!(is_known, "{preset}: {name}");
    }
}

#[test]
fn presets_whose_address_the_settings_name_need_nothing_else() {
    for (preset, mut table, _) in of_presets().into_iter().filter(|(_, _, url)| url.is_none()) {
        table["preset"] = json!(preset);
        let adapter = adapter("P4", table);
        let own = json!({ "url": "https://h.example/agents/{{agent.id}}" });
        let of_platform = |platform: &str| (platform == "P4").then(|| adapter.clone());
        let made = DefinitionSource::parse("P4", &object(own), &of_platform, &names()).expect("it is good");
        assert_eq!(made.preset(), Some(preset));
        let empty = DefinitionSource::parse("P4", &Map::new(), &of_platform, &names()).map(drop);
        assert_eq!(empty.expect_err("no address").to_string(), "[autosync.P4] url is missing");
    }
}

/// A key for one server is not sent to another one.
#[test]
fn an_adapter_with_another_server_brings_no_address() {
    let moved = json!({ "preset": "vapi_websocket", "session_url": "https://eu.example/call" });
    assert!(DefinitionSource::of_preset(&adapter("P4", moved), &names()).is_none());
    let same = json!({ "preset": "vapi_websocket", "session_url": "https://api.vapi.ai/call" });
    assert!(DefinitionSource::of_preset(&adapter("P4", same), &names()).is_some());
    let none = json!({ "preset": "openai_realtime" });
    assert!(DefinitionSource::of_preset(&adapter("P4", none), &names()).is_none(), "its agents are models");
}

#[test]
fn prompt_name_and_version_are_read() {
    let check = |table: Value, answer: Value, expect: Result<(&str, Option<&str>, Option<&str>), &str>| {
        let mut settings = json!({ "url": "https://h.example/", "name": "/name", "version": "/at" });
        settings.as_object_mut().expect("an object").extend(object(table));
        let made = source("desk", settings).expect("it is good").read_answer(answer.to_string().as_bytes());
        let expect = expect.map(|(prompt, name, version)| Definition {
            prompt: prompt.to_owned(),
            name: name.map(str::to_owned),
            version: version.map(str::to_owned),
        });
        assert_eq!(made, expect.map_err(str::to_owned), "{answer}");
    };
    let messages = json!({ "messages": [{ "role": "system", "content": "Be kind." }, { "role": "user",
        "content": "Hello." }, { "role": "system", "content": "Be short." }], "name": " Desk ", "at": 7 });
    let only = json!({ "prompt": "/messages/*/content", "prompt_if": "/role=system" });
    check(only.clone(), messages, Ok(("Be kind.\n\nBe short.", Some("Desk"), Some("7"))));
    check(only, json!({ "messages": [] }), Err("its answer has nothing at /messages/*/content (prompt)"));
    let parts = json!({ "prompt": ["/goal", "/steps/*/text"] });
    let steps = json!({ "goal": "Help.", "steps": [{ "text": "Greet." }, { "text": null }, { "text": "Ask." }] });
    check(parts.clone(), steps, Ok(("Help.\n\nGreet.\n\nAsk.", None, None)));
    check(parts.clone(), json!({ "goal": "" }), Ok(("", None, None)));
    check(parts, json!({ "goal": 3 }), Err("its answer has no text at /goal (prompt)"));
    let unread = source("desk", json!({ "url": "https://h.example/", "prompt": "/p" })).expect("it is good");
    assert_eq!(unread.read_answer(b"<html>"), Err("its answer is no JSON".to_owned()));
}

#[test]
fn missing_values_are_named() {
    let check = |table: Value, agent: Value, integration: Value, expect: Option<&str>| {
        let facts = Facts { agent: object(agent), integration: object(integration), ..Facts::default() };
        assert_eq!(source("P4", table).expect("it is good").missing(&facts).as_deref(), expect);
    };
    let table = json!({ "url": "https://h.example/{{agent.id}}", "prompt": "/p", "auth": "bearer",
        "headers": { "X-Key": "{{integration.P4_api_key}}" } });
    let id = json!({ "id": "d" });
    check(table.clone(), json!({ "id": null }), json!({}), Some("agent.id"));
    check(table.clone(), json!({ "id": "" }), json!({}), Some("agent.id"));
    check(table.clone(), id.clone(), json!({ "key": "k" }), Some("integration.P4_api_key"));
    check(table.clone(), id.clone(), json!({ "P4_api_key": "k", "key": "" }), Some("integration.key"));
    check(table, id, json!({ "P4_api_key": "k", "key": "k" }), None);
}

#[test]
fn settings_that_cannot_be_used_are_told() {
    let url = "https://h.example/";
    for (name, table, expect) in [
        ("CUSTOM", json!({ "url": url, "prompt": "/p" }), "[autosync.CUSTOM] is no name"),
        ("a b", json!({ "url": url, "prompt": "/p" }), "[autosync.a b] is no name"),
        ("desk", json!({ "prompt": "/p" }), "[autosync.desk] url is missing"),
        ("desk", json!({ "url": url }), "[autosync.desk] prompt is missing"),
        ("desk", json!({ "url": url, "prompt": "p" }), "prompt must be a pointer"),
        ("desk", json!({ "url": url, "prompt": [] }), "prompt must be a pointer"),
        ("desk", json!({ "url": url, "prompt": "/p", "prompt_if": "/a=b" }), "prompt_if needs a prompt with a list"),
        ("desk", json!({ "url": url, "prompt": "/p", "name": "n" }), "name must be a pointer"),
        ("desk", json!({ "url": url, "prompt": "/p", "promt": "/p" }), "has no setting \"promt\""),
        ("desk", json!({ "url": "http://h.example/", "prompt": "/p" }), "url must begin with https://"),
        ("desk", json!({ "url": "ftp://h.example/", "prompt": "/p" }), "url must begin with https://"),
        ("desk", json!({ "url": "https://{{agent.P11_host}}/", "prompt": "/p" }), "url has a place in its scheme"),
        ("desk", json!({ "url": "https://h.example/{{agent.no}}", "prompt": "/p" }), "nothing is called {{agent.no}}"),
        ("desk", json!({ "url": "https://h.example/{{result.id}}", "prompt": "/p" }), "nothing is called"),
        ("desk", json!({ "url": "https://h.example/{{agent.id}}", "prompt": "/p" }), "{{agent.id}} needs a platform"),
        ("desk", json!({ "url": url, "prompt": "/p", "auth": "bearer" }), "auth needs a platform"),
        ("desk", json!({ "url": url, "prompt": "/p", "platform": "P2" }), "platform is none of P3 to P11"),
        ("P4", json!({ "url": url, "prompt": "/p", "platform": "P4" }), "platform has no effect"),
        ("P4", json!({ "url": url, "prompt": "/p", "auth": "none" }), "auth is none of"),
        ("P4", json!({ "url": url, "prompt": "/p", "method": "PUT" }), "method is neither GET nor POST"),
        ("P4", json!({ "url": url, "prompt": "/p", "headers": { "Host": "x" } }), "headers: \"Host\" cannot be set"),
        ("P4", json!({ "preset": "openai_realtime" }), "preset \"openai_realtime\" is none of"),
        (
            "P11",
            json!({ "url": "{{agent.P11_host}}/a", "prompt": "/p", "headers": { "X": "{{integration.key}}" } }),
            "cannot go to a host that the agent names",
        ),
    ] {
        let why = source(name, table).map(drop).expect_err(expect);
        assert!(why.contains(expect), "{expect}: {why}");
        assert!(!why.contains("definition."), "{why}");
    }
}

#[test]
fn settings_on_top_of_a_row_are_merged() {
    let table = json!({ "platform": "P4", "preset": "ultravox", "url": "http://127.0.0.1:81/a/{{agent.id}}",
        "method": "POST", "body": { "deep.er": "{{agent.P4_agent_id}}" }, "headers": { "X-More": "1" } });
    let made = source("desk", table).expect("it is good");
    let agent = object(json!({ "id": "d", "P4_agent_id": "d" }));
    let facts = Facts { agent, integration: object(json!({ "key": "sesame-4" })), ..Facts::default() };
    let request = made.adapter().definition_request(&facts).expect("it can be asked");
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "http://127.0.0.1:81/a/d"));
    assert_eq!(request.body, json!({ "deep": { "er": "d" } }).to_string());
    let headers = [("X-API-Key".to_owned(), "sesame-4".to_owned()), ("X-More".to_owned(), "1".to_owned())];
    assert_eq!((request.headers, made.platform(), made.preset()), (headers.to_vec(), "P4", Some("ultravox")));
}
