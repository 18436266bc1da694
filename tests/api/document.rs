//! The OpenAPI document, its page, and the server on a real socket.

use std::collections::{BTreeMap, BTreeSet};

use ringer::api::{Setup, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::world::World;

#[tokio::test]
async fn the_document_describes_every_route() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await;
    let mut operations = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            operations += 1;
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
            assert!(operation["tags"][0].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
            let in_path = path.matches('{').count();
            let declared = operation["parameters"].as_array().cloned().unwrap_or_default();
            let declared = declared.iter().filter(|parameter| parameter["in"] == "path");
            assert!(
                declared
                    .clone()
                    .all(|parameter| path.contains(&format!("{{{}}}", parameter["name"].as_str().unwrap())))
            );
            assert_eq!(declared.count(), in_path, "{method} {path}");
        }
    }
    assert!(operations >= 59, "only {operations}");
    assert_eq!(document["components"]["securitySchemes"]["ApiKey"]["name"], "X-API-Key");
    assert_eq!(document["paths"]["/v1/ping"]["get"]["security"], json!([]));
    assert_eq!(
        document["paths"]["/v1/api-keys/{key_id}"]["delete"]["responses"]["204"],
        json!({"description":"Success"})
    );
}

/// Adds the places in `value`, a schema or what contains schemas, that linters refuse or generators of clients misread.
fn collect_faults(pointer: &str, value: &Value, wrong: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            let is_list_of_fields = pointer.ends_with("/properties");
            for (name, member) in members {
                let place = format!("{pointer}/{name}");
                let is_refused = match name.as_str() {
                    _ if is_list_of_fields => !member.is_object() || member.get("default").is_some(),
                    "description" | "summary" | "title" => member.as_str().is_none_or(str::is_empty),
                    "items" | "schema" => !member.is_object(),
                    "type" => member.as_array().is_none_or(Vec::is_empty) && !member.is_string(),
                    _ => false,
                };
                if is_refused {
                    wrong.push(format!("{place}: {member}"));
                }
                collect_faults(&place, member, wrong);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| collect_faults(&format!("{pointer}/{n}"), item, wrong));
        }
        _ => {}
    }
}

#[test]
fn tools_find_nothing_to_refuse_in_the_document() {
    let document: Value = serde_json::from_str(&ringer::api::document()).expect("JSON");
    let mut wrong = Vec::new();
    collect_faults("", &document["paths"], &mut wrong);
    collect_faults("", &document["components"], &mut wrong);
    let text = document.to_string();
    for name in document["components"]["schemas"].as_object().expect("schemas").keys() {
        if !text.contains(&format!("\"#/components/schemas/{name}\"")) {
            wrong.push(format!("{name} is used nowhere"));
        }
        if name.ends_with(|last: char| last.is_ascii_digit()) {
            wrong.push(format!("{name} is no name that a person would give"));
        }
    }
    let tags = document["tags"].as_array().expect("tags");
    let described: BTreeSet<&str> =
        tags.iter().filter(|tag| tag["description"].is_string()).filter_map(|tag| tag["name"].as_str()).collect();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let id = operation["operationId"].as_str().expect("an id");
            let is_name = id.starts_with(|first: char| first.is_ascii_lowercase());
            for (is_so, what) in [
                (is_name && id.chars().all(|c| c.is_ascii_alphabetic()), "operationId"),
                (ids.insert(id), "an operationId of its own"),
                (operation["description"].is_string(), "description"),
                (operation["security"].is_array(), "security"),
                (operation["tags"].as_array().is_some_and(|tags| tags.len() == 1), "one tag"),
                (operation["tags"][0].as_str().is_some_and(|tag| described.contains(tag)), "a described tag"),
            ] {
                if !is_so {
                    wrong.push(format!("{method} {path}: {id}: no {what}"));
                }
            }
        }
    }
    assert_eq!(described.len(), tags.len(), "each tag is described, once");
    assert_eq!(document["info"]["license"]["identifier"], env!("CARGO_PKG_LICENSE"));
    assert_eq!(document["servers"][0]["url"], "/");
    assert!(wrong.is_empty(), "{} faults: {:#?}", wrong.len(), &wrong[..wrong.len().min(30)]);
}

#[test]
fn requests_may_leave_out_and_answers_always_have() {
    let document: Value = serde_json::from_str(&ringer::api::document()).expect("JSON");
    let schema = |name: &str| document["components"]["schemas"][name].clone();
    assert_eq!(schema("AgentSpec")["required"], json!(["name"]));
    assert_eq!(schema("UpdateAgent")["required"], json!(["agent_id"]));
    // What is both taken and returned has a schema for each side.
    assert_eq!(schema("KeywordResponseInput")["required"], json!(["keyword", "response"]));
    assert_eq!(schema("KeywordResponse")["required"], json!(["keyword", "response", "probability"]));
    for name in ["AgentRecord", "SimulationRecord", "DigitalHumanRecord", "RunItem", "ResultRecord", "ActiveWindow"] {
        let schema = schema(name);
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fields = schema["properties"].as_object().expect("fields").keys();
        let lacking: Vec<&String> = fields.filter(|field| !required.contains(field.as_str())).collect();
        assert!(lacking.is_empty(), "{name}: {lacking:?}");
    }
}

/// Compares the document with `fixtures/api/openapi.json`. A change on purpose is written by `ringer openapi >
/// fixtures/api/openapi.json`.
#[test]
fn the_document_is_the_one_that_was_written_down() {
    let now: Value = serde_json::from_str(&ringer::api::document()).expect("JSON");
    let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/api/openapi.json"));
    let kept: Value = serde_json::from_str(&kept.expect("it is there")).expect("JSON");
    let mut apart = Vec::new();
    compare("", &kept, &now, &mut apart);
    assert!(apart.is_empty(), "{} places, the first: {:#?}", apart.len(), &apart[..apart.len().min(20)]);
}

fn compare(pointer: &str, kept: &Value, now: &Value, apart: &mut Vec<String>) {
    match (kept, now) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let [kept, now] = [one, other].map(|map| map.get(name).unwrap_or(&Value::Null));
                compare(&format!("{pointer}/{name}"), kept, now, apart);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (n, (kept, now)) in one.iter().zip(other).enumerate() {
                compare(&format!("{pointer}/{n}"), kept, now, apart);
            }
        }
        _ if kept == now => {}
        _ => apart.push(format!("{pointer}: {kept} became {now}")),
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_no_mark_is_shown() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await;
    let mut references = 0;
    visit(&document, &mut |key, value| {
        assert!(!key.starts_with("x-"), "{key} is for the walker");
        if key == "$ref" {
            let pointer = value.as_str().and_then(|text| text.strip_prefix('#')).expect("a local reference");
            assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
            references += 1;
        }
    });
    assert!(references > 50);
}

#[test]
fn answers_lead_to_the_routes_of_what_was_made() {
    let document: Value = serde_json::from_str(&ringer::api::document()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let mut operations = BTreeMap::new();
    for (path, item) in paths {
        for operation in item.as_object().expect("methods").values() {
            operations.insert(operation["operationId"].as_str().expect("an id"), (path, operation));
        }
    }
    let mut links = 0;
    for (_, operation) in operations.values() {
        let answers = operation["responses"].as_object().expect("answers").values();
        for (id, link) in answers.filter_map(|answer| answer["links"].as_object()).flatten() {
            let (path, target) = operations.get(id.as_str()).unwrap_or_else(|| panic!("{id} leads nowhere"));
            assert_eq!((&link["operationId"], &target["deprecated"]), (&json!(id), &Value::Null));
            let given = link["parameters"].as_object().expect("parameters");
            assert_eq!(given.len(), path.matches('{').count(), "{id}: {given:?}");
            assert!(given.keys().all(|name| path.contains(&format!("{{{name}}}"))), "{id}: {given:?}");
            links += 1;
        }
    }
    assert!(links >= 130, "only {links}");
    let of = |path: &str| &document["paths"][path]["post"]["responses"]["200"]["links"];
    for (path, id, parameters) in [
        ("/v1/add-agent", "deleteAgent", json!({ "agent_id": "$response.body#/agent_id" })),
        ("/v1/create-folder", "updateFolder", json!({ "folder_id": "$response.body#/id" })),
        ("/v1/create-community", "addToCommunity", json!({ "id": "$response.body#/id" })),
        ("/v1/scenario", "getScenario", json!({ "workflow_id": "$response.body#/id" })),
        (
            "/v1/create-digital-human",
            "getDigitalHuman",
            json!({ "digital_human_id": "$response.body#/digital_human/id" }),
        ),
        (
            "/v1/agents/{agent_id}/versions",
            "getAgentVersion",
            json!({ "agent_id": "$request.path.agent_id", "version": "$response.body#/version" }),
        ),
        ("/v1/queue-simulation-run", "cancelSimulationRun", json!({ "id": "$response.body#/simulation_run_id" })),
        (
            "/v1/queue-simulation-run",
            "getSimulationResultTimeline",
            json!({ "id": "$response.body#/simulation_result_ids/0" }),
        ),
    ] {
        assert_eq!(of(path)[id]["parameters"], parameters, "{path} to {id}");
    }
    assert_eq!(of("/v1/webhooks").get("getAgent"), None, "its agents are not what it makes");
}

#[test]
fn a_field_that_need_not_be_there_may_be_null() {
    let document: Value = serde_json::from_str(&ringer::api::document()).expect("JSON");
    let field = |of: &str, name: &str| document["components"]["schemas"][of]["properties"][name].clone();
    assert_eq!(field("CustomMetricUpdatesPatch", "allow_not_applicable")["type"], json!(["boolean", "null"]));
    assert_eq!(field("ScenarioChangePatch", "agent_ids")["type"], json!(["array", "null"]));
    let definition = json!([{ "$ref": "#/components/schemas/Definition" }, { "type": "null" }]);
    assert_eq!(field("ScenarioChangePatch", "definition")["anyOf"], definition);
    assert_eq!(field("ScenarioSpec", "name")["type"], "string", "it must be there");
    assert_eq!(field("ScenarioRecord", "warnings")["type"], "array", "it is only read");
}

/// Fields that are left out when empty.
const LEFT_OUT: [&str; 3] = ["ScenarioRecord.dh_sync_summary", "Definition.viewport", "LinkedDigitalHuman.warnings"];

#[tokio::test]
async fn answers_have_every_field_that_is_described() {
    let world = World::with_rows().await;
    let document = world.get("/openapi.json").await;
    let simulation = world.name("simulation").to_owned();
    let human = world.name("digital_human").parse::<i64>().expect("an id");
    let link = json!({ "digital_human_ids": [human] });
    world.post(&format!("/v1/simulation/{simulation}/add-digital-humans"), link).await;
    let run = world.post("/v1/queue-simulation-run", json!({ "simulation_id": simulation })).await;
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (run, result) = (text(&run["simulation_run_id"]), text(&run["simulation_result_ids"][0]));
    let own = |parameter: &str, path: &str| match parameter {
        "simulation_run_id" => Some(run.clone()),
        "simulation_result_id" => Some(result.clone()),
        "id" if path.contains("community") => Some(world.name("community").to_owned()),
        "workflow_id" => Some(world.name("scenario").to_owned()),
        "version" => Some("1".to_owned()),
        other => {
            let known = ["agent", "simulation", "digital_human", "metric", "persona", "trait", "webhook", "schedule"];
            known.iter().find(|name| other == format!("{name}_id")).map(|name| world.name(name).to_owned())
        }
    };
    let (mut read, mut lacking) = (0, BTreeSet::new());
    for (path, item) in document["paths"].as_object().expect("paths") {
        let schema = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let parts: Option<Vec<String>> = path
            .split('/')
            .map(|part| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(parameter) => own(parameter, path),
                None => Some(part.to_owned()),
            })
            .collect();
        let Some(parts) = parts.filter(|_| schema.is_object() && path.starts_with("/v1/")) else { continue };
        let answer = world.send("GET", &parts.join("/"), &[], Vec::new()).await;
        if answer.status == 200 {
            read += 1;
            lacks(&document, schema, &answer.json(), "", &mut lacking);
        }
    }
    LEFT_OUT.iter().for_each(|name| assert!(lacking.remove(*name), "{name} is there"));
    assert!(lacking.is_empty() && read >= 40, "{read} read, lacking: {lacking:?}");
}

/// Adds the described fields that objects in `value` do not have, by the name of their schema.
fn lacks(document: &Value, schema: &Value, value: &Value, name: &str, lacking: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).expect("references are whole");
        return lacks(document, target, value, reference.rsplit('/').next().unwrap_or_default(), lacking);
    }
    if let (Some(members), false) = (schema["anyOf"].as_array(), value.is_null()) {
        let mut members = members.iter().filter(|member| member["type"] != "null");
        if let (Some(only), None) = (members.next(), members.next()) {
            lacks(document, only, value, name, lacking);
        }
    }
    if let (Some(properties), Some(object)) = (schema["properties"].as_object(), value.as_object()) {
        for (field, schema) in properties.iter().filter(|(_, schema)| schema["writeOnly"] != true) {
            match object.get(field) {
                Some(value) => lacks(document, schema, value, "", lacking),
                None => drop(lacking.insert(format!("{name}.{field}"))),
            }
        }
    }
    for item in value.as_array().into_iter().flatten() {
        lacks(document, &schema["items"], item, name, lacking);
    }
}

fn visit(value: &Value, see: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            see(key, value);
            visit(value, see);
        }),
        Value::Array(items) => items.iter().for_each(|item| visit(item, see)),
        _ => {}
    }
}

#[tokio::test]
async fn the_page_is_small_and_needs_no_network() {
    let world = World::new().await;
    let page = world.send("GET", "/docs", &[], Vec::new()).await.body;
    let page = String::from_utf8(page).expect("text");
    assert!(page.len() <= 60_000);
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing from elsewhere");
}

/// Returns everything that the server answers on one connection to `text`.
async fn exchange(address: std::net::SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    stream.write_all(text.as_bytes()).await.expect("writes");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("reads");
    answer
}

#[tokio::test]
async fn a_real_socket_serves_and_stops() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let setup = Setup { cors_origins: vec!["https://ui.example".into()], max_body_bytes: 10, ..Setup::default() };
    let server = serve(listener, world.service.clone(), setup, async {
        let _ = stopped.await;
    });
    let client = async {
        let ping = "GET /v1/ping HTTP/1.1\r\nHost: x\r\nOrigin: https://ui.example\r\nConnection: close\r\n\r\n";
        let answer = exchange(address, ping).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"message":"pong"}"#), "{answer}");
        assert!(answer.contains("access-control-allow-origin: https://ui.example"), "{answer}");
        let head = "HEAD /v1/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let answer = exchange(address, head).await;
        assert!(answer.contains("content-length: 18") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(!answer.contains("access-control"), "{answer}");
        // A body that does not say how long it is is cut off at the limit, but only for a known key.
        let key = world.name("admin");
        for (key, expect) in [(key, "HTTP/1.1 413"), ("nobody", "HTTP/1.1 401")] {
            let text = format!(
                "POST /v1/add-agent HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nConnection: close\r\n\
                 Transfer-Encoding: chunked\r\n\r\n20\r\n{}\r\n0\r\n\r\n",
                "x".repeat(32)
            );
            let answer = exchange(address, &text).await;
            assert!(answer.starts_with(expect), "{answer}");
        }
        stop.send(()).expect("the server runs");
    };
    let (served, ()) = tokio::join!(server, client);
    served.expect("stops cleanly");
}
