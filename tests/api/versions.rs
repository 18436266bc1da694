//! Versions of an agent's text and their labels: every rule on the current paths and on the old ones, which answer
//! alike.

use ringer::model::agent_version::VersionDoc;
use ringer::model::call_log::CallLogDoc;
use serde_json::{Value, json};
use uuid::Uuid;

use super::world::World;

/// `versions` as they are called now, and as they were called.
const NAMES: [&str; 2] = ["versions", "prompts/versions"];

const HELD: &str = "Label 'production' is held by version 1; set override_label to true to move it";
const STAYS: &str = "The production label must be moved to another version first";

/// Request of a step and its expected answer: the members of a success, or the text of a refusal.
struct Step(&'static str, String, Value, u16, Value);

fn step(method: &'static str, path: impl Into<String>, body: Value, status: u16, expect: Value) -> Step {
    Step(method, path.into(), body, status, expect)
}

/// One rule: what it says, and the requests that show it, on a fresh agent whose version 1 holds production, latest and
/// beta. `@` is the agent's path, `/v` its versions'.
struct Rule(&'static str, Vec<Step>);

fn create(body: Value) -> Step {
    step("POST", "@/v", body, 200, json!({}))
}

fn refusal(text: &str) -> Value {
    json!({ "detail": text })
}

fn version(version: i64, text: &str, labels: Value) -> Value {
    json!({"version": version, "prompt_text": text, "labels": labels})
}

/// Returns the label table, row by row, and the moves that belong to it.
fn rules() -> Vec<Rule> {
    [rules_of_new_versions(), rules_of_deletion(), rules_of_labels(), rules_of_lists()].into_iter().flatten().collect()
}

/// Rules of versions that are made.
fn rules_of_new_versions() -> Vec<Rule> {
    vec![
        Rule(
            "create without prompt_text copies the latest text and counts up",
            vec![
                step("POST", "@/v", json!({}), 200, version(2, "One.", json!(["latest"]))),
                step("POST", "@/v", json!({"prompt_text": "Three."}), 200, version(3, "Three.", json!(["latest"]))),
                step("POST", "@/v", json!({"prompt_text": null}), 200, version(4, "Three.", json!(["latest"]))),
                step("GET", "@/v/3", Value::Null, 200, version(3, "Three.", json!([]))),
            ],
        ),
        Rule(
            "create with an empty prompt_text stores a blank prompt",
            vec![step("POST", "@/v", json!({"prompt_text": ""}), 200, version(2, "", json!(["latest"])))],
        ),
        Rule(
            "create with labels takes them when override_label is true, production included",
            vec![
                step(
                    "POST",
                    "@/v",
                    json!({"labels": ["beta", "production"], "override_label": true, "commit_message": "m", "metadata": {"k": 1}}),
                    200,
                    json!({"labels": ["production", "latest", "beta"], "commit_message": "m", "metadata": {"k": 1}}),
                ),
                step("GET", "@/v/1", Value::Null, 200, json!({"labels": []})),
                step("GET", "@", Value::Null, 200, json!({"agent_description": "One."})),
            ],
        ),
        Rule(
            "create with labels adds them when override_label is not true, but not production",
            vec![
                step("POST", "@/v", json!({"labels": ["production"]}), 400, refusal(HELD)),
                step("POST", "@/v", json!({"labels": ["production"], "override_label": null}), 400, refusal(HELD)),
                step("GET", "@/v/2", Value::Null, 404, refusal("Agent version not found")),
                step(
                    "POST",
                    "@/v",
                    json!({"labels": ["beta", "latest", "beta"]}),
                    200,
                    json!({"labels": ["latest", "beta"]}),
                ),
                step("GET", "@/v/1/labels", Value::Null, 200, json!({"labels": ["production", "beta"]})),
            ],
        ),
    ]
}

/// Rules of labels and versions that are deleted.
fn rules_of_deletion() -> Vec<Rule> {
    vec![
        Rule(
            "the production label is not deleted",
            vec![
                step("DELETE", "@/v?label=production", Value::Null, 400, refusal(STAYS)),
                create(json!({})),
                step("DELETE", "@/v?label=production", Value::Null, 400, refusal(STAYS)),
                step("DELETE", "@/v?label=beta", Value::Null, 400, refusal(STAYS)),
                step("DELETE", "@/v/1", Value::Null, 400, refusal(STAYS)),
            ],
        ),
        Rule(
            "a label that resolves to no version is not found",
            vec![
                step("DELETE", "@/v?label=gone", Value::Null, 404, refusal("Label resolves to no version")),
                step("DELETE", "@/v?label=Beta", Value::Null, 404, refusal("Label resolves to no version")),
                step("DELETE", "@/v", Value::Null, 400, refusal("label is required")),
            ],
        ),
        Rule(
            "a label that resolves to several versions is ambiguous",
            vec![
                create(json!({"labels": ["beta"]})),
                step(
                    "DELETE",
                    "@/v?label=beta",
                    Value::Null,
                    400,
                    refusal("Label 'beta' resolves to several versions"),
                ),
            ],
        ),
        Rule(
            "when the latest version is deleted the highest that remains is the latest",
            vec![
                create(json!({})),
                create(json!({"labels": ["c"]})),
                step(
                    "DELETE",
                    "@/v?label=latest",
                    Value::Null,
                    200,
                    json!({"message": "Agent version deleted", "deleted_version": 3, "latest_version": 2}),
                ),
                step("GET", "@/v/2", Value::Null, 200, json!({"labels": ["latest"]})),
                create(json!({"labels": ["d"]})),
                create(json!({})),
                // The number of a version that was deleted never comes back.
                step("GET", "@/v/3", Value::Null, 404, refusal("Agent version not found")),
                step("DELETE", "@/v?label=d", Value::Null, 200, json!({"deleted_version": 4, "latest_version": 5})),
                step("DELETE", "@/v/5", Value::Null, 200, json!({"deleted_version": 5, "latest_version": 2})),
                step("DELETE", "@/v/5", Value::Null, 404, refusal("Agent version not found")),
            ],
        ),
        Rule(
            "the only version holds production, which is said first",
            vec![step("DELETE", "@/v?label=latest", Value::Null, 400, refusal(STAYS))],
        ),
    ]
}

/// Rules of labels that are moved.
fn rules_of_labels() -> Vec<Rule> {
    vec![
        Rule(
            "promote moves production, to the latest when nothing else is said",
            vec![
                create(json!({"prompt_text": "Two."})),
                step("POST", "@/p", Value::Null, 200, json!({"version": 2, "labels": ["production", "latest"]})),
                step("GET", "@", Value::Null, 200, json!({"agent_description": "Two."})),
                step("DELETE", "@/v/1", Value::Null, 200, json!({"latest_version": 2})),
                step(
                    "POST",
                    format!("@/p?prompt_id={}", Uuid::nil()),
                    Value::Null,
                    404,
                    refusal("Agent version not found"),
                ),
                step("POST", "@/p?agent_version_id=x", Value::Null, 422, json!({})),
            ],
        ),
        Rule(
            "labels are put on and taken off",
            vec![
                create(json!({})),
                step("POST", "@/v/2/labels", json!({"labels": ["production"]}), 400, refusal(HELD)),
                step("POST", "@/v/2/labels", json!({"labels": null}), 200, json!({"labels": ["latest"]})),
                step("POST", "@/v/2/labels", json!({"labels": []}), 200, json!({"labels": ["latest"]})),
                step(
                    "POST",
                    "@/v/2/labels",
                    json!({"labels": ["a", "beta"]}),
                    200,
                    json!({"labels": ["latest", "a", "beta"]}),
                ),
                step("GET", "@/v/1/labels", Value::Null, 200, json!({"labels": ["production", "beta"]})),
                step(
                    "POST",
                    "@/v/2/labels",
                    json!({"labels": ["beta", "production"], "override_label": true}),
                    200,
                    json!({"labels": ["production", "latest", "a", "beta"]}),
                ),
                step("GET", "@/v/1/labels", Value::Null, 200, json!({"labels": []})),
                step(
                    "DELETE",
                    "@/v/2/labels",
                    json!({"labels": ["a", "none", "latest"]}),
                    200,
                    json!({"labels": ["production", "latest", "beta"]}),
                ),
                step("DELETE", "@/v/2/labels", json!({"labels": ["production"]}), 400, refusal(STAYS)),
                step("DELETE", "@/v/2/labels", Value::Null, 400, refusal(STAYS)),
                step(
                    "POST",
                    "@/v/1/labels",
                    json!({"labels": ["production", "x"], "override_label": true}),
                    200,
                    json!({}),
                ),
                step("DELETE", "@/v/2/labels", json!({"labels": []}), 200, json!({"labels": ["latest"]})),
                step("DELETE", "@/v/9/labels", Value::Null, 404, refusal("Agent version not found")),
                step("POST", "@/v/2/labels", json!({"labels": ["a/b"]}), 422, json!({})),
                step("POST", "@/v/2/labels", Value::Null, 422, json!({})),
            ],
        ),
    ]
}

/// Rules of lists and paths.
fn rules_of_lists() -> Vec<Rule> {
    vec![
        Rule(
            "versions are listed highest first",
            vec![
                create(json!({"labels": ["a"]})),
                create(json!({"labels": ["a"]})),
                step("GET", "@/v", Value::Null, 200, json!([{"version": 3}, {"version": 2}, {"version": 1}])),
                step("GET", "@/v?limit=2", Value::Null, 200, json!([{"version": 3}, {"version": 2}])),
                step("GET", "@/v?label=a", Value::Null, 200, json!([{"version": 3}, {"version": 2}])),
                step("GET", "@/v?label=a&version=2", Value::Null, 200, json!([{"version": 2}])),
                step("GET", "@/v?label=A", Value::Null, 200, json!([])),
                step("GET", "@/v?limit=0", Value::Null, 422, json!({})),
                step("GET", "@/v?limit=1001", Value::Null, 422, json!({})),
            ],
        ),
        Rule(
            "a segment in digits is a number, any other a uuid",
            vec![
                step("GET", "@/v/-1", Value::Null, 404, refusal("Agent version not found")),
                step("GET", format!("@/v/{}", Uuid::nil()), Value::Null, 404, refusal("Agent version not found")),
                step(
                    "GET",
                    "@/v/abc",
                    Value::Null,
                    422,
                    json!({"detail": [{
                        "type": "int_parsing", "loc": ["path", "version"], "input": "abc",
                        "msg": "Input should be a valid integer, unable to parse string as an integer",
                    }]}),
                ),
                step("GET", "@/v/1.0", Value::Null, 422, json!({})),
            ],
        ),
    ]
}

async fn with_agent() -> (World, String) {
    let world = World::new().await;
    let body = json!({ "name": "Desk", "system_prompt": "One.", "labels": ["beta", "latest", "beta"] });
    let agent = world.post("/v1/add-agent", body).await["agent_id"].to_string();
    (world, format!("/v1/agents/{agent}"))
}

/// Lists by position, objects by the members of `expected`.
fn contains(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            expected.iter().all(|(name, value)| got.get(name).is_some_and(|got| contains(got, value)))
        }
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| contains(got, expected))
        }
        _ => got == expected,
    }
}

/// Replaces every id in the answer by its number of appearance: what two worlds have in common.
fn without_ids(value: &mut Value, seen: &mut Vec<String>) {
    match value {
        Value::String(text) if Uuid::parse_str(text).is_ok() => {
            let at = seen.iter().position(|known| known == text).unwrap_or_else(|| {
                seen.push(text.clone());
                seen.len() - 1
            });
            *text = format!("id {at}");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_ids(item, seen)),
        Value::Object(members) => members.values_mut().for_each(|member| without_ids(member, seen)),
        _ => {}
    }
}

#[tokio::test]
async fn every_rule_holds_on_the_current_and_on_the_old_paths() {
    for Rule(title, steps) in rules() {
        let mut answers: Vec<Vec<(u16, Value)>> = Vec::new();
        for versions in NAMES {
            let (world, agent) = with_agent().await;
            let promote = if versions == "versions" { "versions/promote" } else { "prompts/promote" };
            let (mut given, mut seen) = (Vec::new(), Vec::new());
            for Step(method, path, body, status, expect) in &steps {
                let path = path.replace("@/v", &format!("@/{versions}")).replace("@/p?", &format!("@/{promote}?"));
                let path = if path == "@/p" { format!("@/{promote}") } else { path }.replace('@', &agent);
                let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
                let answer = world.send(method, &path, &[], bytes).await;
                let mut got = answer.json();
                assert_eq!(answer.status, *status, "{title}: {method} {path} {body}: {got}");
                assert!(contains(&got, expect), "{title}: {method} {path} {body}: {got}\nexpected {expect}");
                if path != agent {
                    without_ids(&mut got, &mut seen);
                    given.push((answer.status, got));
                }
            }
            answers.push(given);
        }
        assert_eq!(answers[0], answers[1], "{title}: the old paths answer otherwise");
    }
}

#[tokio::test]
async fn a_version_has_its_whole_shape_and_is_found_by_id() {
    let (world, agent) = with_agent().await;
    let id = agent.rsplit('/').next().and_then(|id| id.parse::<i64>().ok()).expect("an id");
    let made = world.post(&format!("{agent}/versions"), json!({ "labels": ["a"] })).await;
    let version = made["id"].as_str().expect("an id");
    let whole = json!({
        "id": version, "agent_id": id, "version": 2, "prompt_text": "One.", "commit_message": null,
        "labels": ["latest", "a"], "metadata": null,
    });
    assert_eq!(made, whole);
    for path in ["versions", "prompts", "prompts/versions"] {
        assert_eq!(world.get(&format!("{agent}/{path}/{version}")).await, whole, "{path}");
        assert_eq!(world.get(&format!("{agent}/{path}/2")).await, whole, "{path}");
        assert_eq!(world.get(&format!("{agent}/{path}/{}", version.to_uppercase())).await, whole, "{path}");
    }
    assert_eq!(world.get(&format!("{agent}/prompts?label=a")).await, whole);
    let promoted = world.post(&format!("{agent}/versions/promote?agent_version_id={version}"), Value::Null).await;
    assert_eq!(promoted["labels"], json!(["production", "latest", "a"]));
    let other = world.post(&format!("{agent}/versions"), json!({})).await["id"].clone();
    let path =
        format!("{agent}/prompts/promote?agent_version_id={version}&prompt_id={}", other.as_str().expect("an id"));
    let refused = world.send("POST", &path, &[], Vec::new()).await;
    assert_eq!(
        (refused.status, refused.json()),
        (400, json!({"detail": "prompt_id and agent_version_id must be the same"}))
    );
    // A version of one agent is none of another's.
    let foreign = world.post("/v1/add-agent", json!({ "name": "Other" })).await["agent_id"].to_string();
    let missing = world.send("GET", &format!("/v1/agents/{foreign}/versions/{version}"), &[], Vec::new()).await;
    assert_eq!((missing.status, missing.json()), (404, json!({ "detail": "Agent version not found" })));
    assert_eq!(world.send("DELETE", &format!("{agent}/prompts/3"), &[], Vec::new()).await.status, 200);
}

#[tokio::test]
async fn labels_stand_by_themselves() {
    let (world, agent) = with_agent().await;
    let id = agent.rsplit('/').next().and_then(|id| id.parse::<i64>().ok()).expect("an id");
    let first = world.get(&format!("{agent}/versions/1")).await["id"].clone();
    let beta = world.get(&format!("{agent}/labels")).await;
    assert_eq!(beta.as_array().map(Vec::len), Some(1), "{beta}");
    let whole = json!({
        "id": beta[0]["id"], "agent_id": id, "label_text": "beta", "created_at": "2026-01-05T09:00:00.000000Z",
        "agent_version_id": first, "prompt_id": first, "knowledge_base_id": null, "color": null,
    });
    assert_eq!(beta[0], whole);
    let alpha = world.post(&format!("{agent}/labels"), json!({ "label_text": "Alpha 1" })).await;
    assert_eq!((&alpha["label_text"], &alpha["agent_version_id"]), (&json!("Alpha 1"), &Value::Null));
    let alpha = format!("{agent}/labels/{}", alpha["id"].as_str().expect("an id"));
    let second = world.post(&format!("{agent}/versions"), json!({ "labels": ["beta", "new"] })).await["id"].clone();
    for (query, expect) in
        [("", json!(["Alpha 1", "beta", "new"])), ("?q=A", json!(["Alpha 1", "beta"])), ("?q=x", json!([]))]
    {
        let found = world.get(&format!("{agent}/labels{query}")).await;
        let texts: Vec<&Value> = found.as_array().expect("a list").iter().map(|label| &label["label_text"]).collect();
        assert_eq!(json!(texts), expect, "{query}");
    }
    let beta = format!("{agent}/labels/{}", whole["id"].as_str().expect("an id"));
    assert_eq!(world.get(&beta).await["agent_version_id"], second, "the newest that holds it");
    let renamed = world.call("PUT", &beta, json!({ "label_text": "gamma" })).await;
    assert_eq!((&renamed["label_text"], &renamed["agent_version_id"]), (&json!("gamma"), &second));
    assert_eq!(world.get(&format!("{agent}/versions/1/labels")).await["labels"], json!(["production", "gamma"]));
    for (method, path, body, status, text) in [
        ("DELETE", &beta, Value::Null, 400, "Label is attached to a version"),
        ("PUT", &alpha, json!({ "label_text": "gamma" }), 409, "Label already exists"),
        ("PUT", &alpha, json!({ "label_text": "latest" }), 400, "Label 'latest' is reserved"),
        (
            "POST",
            &format!("{agent}/labels"),
            json!({ "label_text": "production" }),
            400,
            "Label 'production' is reserved",
        ),
        ("POST", &format!("{agent}/labels"), json!({ "label_text": "Alpha 1" }), 409, "Label already exists"),
        ("GET", &format!("{agent}/labels/{}", Uuid::nil()), Value::Null, 404, "Label not found"),
    ] {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = world.send(method, path, &[], bytes).await;
        assert_eq!((answer.status, answer.json()), (status, json!({ "detail": text })), "{method} {path}");
    }
    let same = world.call("PUT", &alpha, json!({ "label_text": "Alpha 1" })).await;
    assert_eq!(same["label_text"], "Alpha 1");
    let deleted = world.call("DELETE", &alpha, Value::Null).await;
    assert_eq!(deleted, json!({ "message": "Label deleted", "deleted_label_id": same["id"] }));
    assert_eq!(world.send("DELETE", &alpha, &[], Vec::new()).await.status, 404);
}

#[tokio::test]
async fn versions_made_at_the_same_time_have_numbers_without_gap_or_double() {
    let (world, agent) = with_agent().await;
    let path = format!("{agent}/versions");
    let makers = (0..20)
        .map(|n| world.post(&path, json!({ "prompt_text": n.to_string(), "labels": ["x"], "override_label": true })));
    let mut numbers: Vec<i64> = futures_util::future::join_all(makers)
        .await
        .iter()
        .map(|made| made["version"].as_i64().expect("a number"))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (2..=21).collect::<Vec<i64>>());
    let all = world.get(&path).await;
    for label in ["latest", "x"] {
        let holders = all
            .as_array()
            .expect("a list")
            .iter()
            .filter(|version| version["labels"].as_array().expect("a list").iter().any(|held| held == label));
        let numbers: Vec<&Value> = holders.map(|version| &version["version"]).collect();
        assert_eq!(numbers, [&json!(21)], "{label}");
    }
}

#[tokio::test]
async fn an_evaluation_finds_its_version() {
    let (world, agent) = with_agent().await;
    let id = agent.rsplit('/').next().and_then(|id| id.parse::<i64>().ok()).expect("an id");
    world.post(&format!("{agent}/versions"), json!({ "labels": ["new"] })).await;
    let warning = |number: i64| json!(format!("Version {number} does not exist, the production version was used"));
    for (version, label, expect, expect_warning) in [
        (None, "production", 1, Value::Null),
        (None, "latest", 2, Value::Null),
        (None, "new", 2, Value::Null),
        (Some(2), "production", 2, Value::Null),
        (Some(9), "new", 1, warning(9)),
        (None, "unheard of", 1, Value::Null),
    ] {
        let entry = json!({ "start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Welcome." });
        let call = json!({
            "agent_id": id, "version": version, "label": label, "start_time_utc": "2026-01-05T08:00:00Z",
            "participants": [{ "role": "AGENT" }, { "role": "USER" }], "transcript": [entry],
        });
        let queued = world.post("/v1/evaluate-call", call).await;
        assert_eq!(queued["warning"], expect_warning, "{version:?} {label:?}");
        let call_id = queued["call_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let mut db = world.service.store().org(world.name("organization")).read().await.expect("a session");
        let log = db.get::<CallLogDoc>(call_id).await.expect("the call log");
        let held = db.get::<VersionDoc>(log.doc.agent_version_id.expect("a version")).await.expect("the version");
        assert_eq!(held.doc.version, expect, "{version:?} {label:?}");
    }
    let labels = world.get(&format!("{agent}/versions/1/labels")).await;
    assert_eq!(labels["labels"], json!(["production", "beta", "unheard of"]), "an unknown label is made and attached");
    assert_eq!(world.get(&format!("{agent}/labels?q=unheard")).await[0]["label_text"], "unheard of");
}

#[tokio::test]
async fn labels_of_a_changed_agent_are_those_of_its_first_version() {
    let world = World::new().await;
    let agent =
        world.post("/v1/add-agent", json!({ "name": "Desk", "labels": ["beta"] })).await["agent_id"].to_string();
    let path = format!("/v1/agents/{agent}/versions");
    let change = async |body: Value| {
        let mut body = body;
        body["agent_id"] = json!(agent);
        let changed = world.post("/v1/update-agent", body).await;
        assert_eq!(changed["status"], "200");
        world.get(&format!("{path}/1/labels")).await["labels"].clone()
    };
    assert_eq!(change(json!({ "labels": ["new", "eu"] })).await, json!(["production", "latest", "new", "eu"]));
    assert_eq!(world.get(&format!("/v1/agents/{agent}/labels?q=new")).await[0]["label_text"], "new");
    assert_eq!(change(json!({ "name": "Front desk" })).await, json!(["production", "latest", "new", "eu"]));
    assert_eq!(change(json!({ "system_prompt": "Two.", "labels": ["new"] })).await, json!(["production", "new"]));
    assert_eq!(change(json!({ "labels": null })).await, json!(["production"]));
    world.post(&format!("{path}/promote"), Value::Null).await;
    let taken = json!({ "agent_id": agent, "labels": ["production"] });
    let answer = world.send("POST", "/v1/update-agent", &[], taken.to_string().into_bytes()).await;
    let held = "Label 'production' is held by version 2; set override_label to true to move it";
    assert_eq!((answer.status, answer.json()), (400, refusal(held)));
}
