//! Written fields are read back unchanged, and null has its documented meaning.

use serde_json::{Map, Value, json};

use super::world::World;

fn fields(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("a fixture is an object")
}

/// Checks that the fixture has every field that the description of `path` lists.
async fn is_complete(world: &World, path: &str, part: Option<&str>, fixture: &Map<String, Value>) {
    let document = world.get("/openapi.json").await;
    let resolve = |schema: &Value| match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("a reference leads somewhere").clone(),
        None => schema.clone(),
    };
    let body = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
    let mut schema = resolve(body);
    if let Some(part) = part {
        schema = resolve(&schema["properties"][part]);
    }
    let declared: Vec<&String> = schema["properties"].as_object().expect("fields").keys().collect();
    assert!(declared.len() > 20, "{path} declares {declared:?}");
    for name in declared {
        assert!(fixture.contains_key(name), "the fixture of {path} has no {name}");
    }
}

fn same(read: &Value, written: &Map<String, Value>, not_read: &[&str]) {
    for (name, value) in written.iter().filter(|(name, _)| !not_read.contains(&name.as_str())) {
        assert_eq!(&read[name], value, "{name}");
    }
}

#[tokio::test]
async fn every_field_of_an_agent() {
    let world = World::new().await;
    let agent = fields(include_str!("../../fixtures/api/agent.json"));
    is_complete(&world, "/v1/add-agent", None, &agent).await;
    let added = world.post("/v1/add-agent", Value::Object(agent.clone())).await;
    assert_eq!(added["status"], "200");
    assert!(added["http_webhook_key"].is_string());
    let path = format!("/v1/agents/{}", added["agent_id"]);
    let read = world.get(&path).await;
    same(&read, &agent, &["system_prompt", "labels", "folder"]);
    assert_eq!(read["agent_description"], "You book visits.");
    assert!(read["folder_id"].is_string());
    assert_eq!(read["created_at"], "2026-01-05T09:00:00.000000Z");

    let nulls: Map<String, Value> = agent.keys().map(|name| (name.clone(), Value::Null)).collect();
    let mut update = nulls;
    update.insert("agent_id".into(), added["agent_id"].clone());
    world.post("/v1/update-agent", Value::Object(update)).await;
    let read = world.get(&path).await;
    for (name, expect) in [
        ("name", json!("Front desk")),
        ("type", json!("OUTBOUND")),
        ("mode", json!("TEXT")),
        ("redact_pii", json!(true)),
        ("goals", json!([])),
        ("keyterms", json!([])),
        ("simulation_notifications", json!({})),
        ("sip_uri", Value::Null),
        ("custom_sip_headers", Value::Null),
        ("workflow", Value::Null),
        ("folder_id", Value::Null),
    ] {
        assert_eq!(read[name], expect, "{name}");
    }
}

#[tokio::test]
async fn every_field_of_a_simulation() {
    let world = World::with_rows().await;
    let mut simulation = fields(include_str!("../../fixtures/api/simulation.json"));
    is_complete(&world, "/v1/create-simulation", None, &simulation).await;
    simulation.insert("agent_id".into(), json!(world.get("/v1/all-agents").await[0]["id"].to_string()));
    let added = world.post("/v1/create-simulation", Value::Object(simulation.clone())).await;
    let path = format!("/v1/simulation/{}", added["simulation_id"]);
    let read = world.get(&path).await;
    for (name, value) in &simulation {
        match name.as_str() {
            "agent_id" => assert_eq!(read["agent_id"].to_string(), value.as_str().expect("a string")),
            "prompt_id" | "settings" => {}
            _ => assert_eq!(read.get(name).or(read["settings"].get(name)), Some(value), "{name}"),
        }
    }
    assert_eq!(read["type"], "max_concurrent");

    let nulls: Map<String, Value> = simulation.keys().map(|name| (name.clone(), Value::Null)).collect();
    let read = world.call("PUT", &path, Value::Object(nulls)).await;
    assert_eq!(read, world.get(&path).await);
    for (name, expect) in [
        ("name", json!("Booking")),
        ("description", Value::Null),
        ("max_concurrent", Value::Null),
        ("tags", json!([])),
        ("pinned", json!(true)),
        ("ringing_timeout", json!(45)),
    ] {
        assert_eq!(read[name], expect, "{name}");
    }
    assert_eq!(read["settings"]["hangup_on_transfer"], true);
    assert_eq!(read["settings"]["custom_error_prompt"], Value::Null);
}

#[tokio::test]
async fn a_simulation_is_taken_as_it_is_read() {
    let world = World::with_rows().await;
    let agent = world.name("agent");
    let body = json!({ "agent_id": agent, "max_concurrent": 4, "type": "max_concurrent",
        "settings": { "max_call_duration": 7, "hangup_on_transfer": true }, "max_call_duration": 9 });
    let simulation = world.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let path = format!("/v1/simulation/{simulation}");
    let read = world.get(&path).await;
    let settings = &read["settings"];
    assert_eq!((&settings["max_call_duration"], &settings["hangup_on_transfer"]), (&json!(9), &json!(true)));
    assert_eq!((&read["type"], &read["max_concurrent"]), (&json!("max_concurrent"), &json!(4)));
    let again = world.call("PUT", &path, read.clone()).await;
    assert_eq!(again, read, "what was read changes nothing");
    let changed = world.call("PUT", &path, json!({ "settings": { "max_call_duration": 3 } })).await;
    assert_eq!((&changed["settings"]["max_call_duration"], &changed["name"]), (&json!(3), &read["name"]));
    let both = json!({ "type": "parallel", "max_concurrent": 2, "agent_id": agent }).to_string().into_bytes();
    for (method, path) in [("PUT", path.as_str()), ("POST", "/v1/create-simulation")] {
        let refused = world.send(method, path, &[], both.clone()).await;
        assert_eq!((refused.status, refused.json()), (400, json!({ "detail": "type parallel has no max_concurrent" })));
    }
    let parallel = world.call("PUT", &path, json!({ "type": "parallel" })).await;
    assert_eq!((&parallel["type"], &parallel["max_concurrent"]), (&json!("parallel"), &Value::Null));
    let wrong = json!({ "settings": { "max_call_duration": 0 } }).to_string().into_bytes();
    let refused = world.send("PUT", &path, &[], wrong).await;
    assert_eq!(
        (refused.status, &refused.json()["detail"][0]["loc"]),
        (422, &json!(["body", "settings", "max_call_duration"]))
    );
}

#[tokio::test]
async fn every_field_of_a_digital_human() {
    let world = World::with_rows().await;
    let mut human = fields(include_str!("../../fixtures/api/digital_human.json"));
    human.insert("workflow_v2_id".into(), json!(world.name("scenario")));
    is_complete(&world, "/v1/create-digital-human", Some("digital_human"), &human).await;
    let agent = world.get("/v1/all-agents").await[0]["id"].clone();
    let simulation = json!({ "agent_id": agent, "always_on": true });
    let simulation = world.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    let body = json!({ "digital_human": human, "simulation_id": simulation });
    let created = world.post("/v1/create-digital-human", body).await;
    assert_eq!(created["simulation_ids"], json!([simulation]));
    let id = &created["digital_human"]["id"];
    let read = world.get(&format!("/v1/digital-human/{id}")).await;
    assert_eq!(read, created);
    same(&read["digital_human"], &human, &[]);
    assert_eq!(world.get("/v1/digital-human-by-test-name/maria-1").await, read);

    // One that is always on keeps its number.
    let cleared = human.keys().filter(|name| *name != "phone_number");
    let nulls: Map<String, Value> = cleared.map(|name| (name.clone(), Value::Null)).collect();
    let read = world.call("PUT", &format!("/v1/update-digital-human/{id}"), Value::Object(nulls)).await;
    for (name, expect) in [
        ("intent", json!("Book a first physical.")),
        ("tags", json!([])),
        ("accent", Value::Null),
        ("language", json!("es")),
        ("allow_dtmf_tool", json!(false)),
        ("creativity", json!(0.2)),
        ("traits", json!([])),
        ("interruptions", Value::Null),
        ("journey_steps", Value::Null),
        ("silence_timeout", Value::Null),
        ("num_runs", json!(7)),
    ] {
        assert_eq!(read["digital_human"][name], expect, "{name}");
    }
    assert_eq!(read["simulation_ids"], json!([simulation]), "links stay when they are not given");
}

#[tokio::test]
async fn a_read_key_sees_no_secret() {
    let world = World::new().await;
    let agent = fields(include_str!("../../fixtures/api/agent.json"));
    let added = world.post("/v1/add-agent", Value::Object(agent)).await;
    let path = format!("/v1/agents/{}", added["agent_id"]);
    for (key, expect) in [("$read", Value::Null), ("$write", json!("p1"))] {
        let headers = [("x-api-key".to_owned(), key.to_owned())];
        let read = world.send("GET", &path, &headers, Vec::new()).await.json();
        assert_eq!(read["sip_password"], expect, "{key}");
        assert_eq!(read["sip_username"], "u1", "{key}");
    }
}
