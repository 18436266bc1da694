//! Push and pull: a bundle becomes what is stored, all of it or nothing, and what is stored becomes a bundle.

use serde_json::{Value, json};
use uuid::Uuid;

use super::world::World;

const AGENT: &str = "f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c33";
const SIMULATION: &str = "b1a04e88-7c2f-4d23-9a5e-2f8c6d1b7a09";
const HUMAN: &str = "7e2c9a1b-3d4f-4a8e-b612-9c5f0d3a1e88";
const METRIC: &str = "9f3a1c7e-5b2d-4e88-a4f1-0c7b3d6a9e21";
const OTHER: &str = "11111111-3d4f-4a8e-b612-9c5f0d3a1e88";

fn bundle() -> Value {
    json!({
        "agents": [{"svc_as_code_id": AGENT, "name": "Front desk", "system_prompt": "You book visits.", "folder": "Clinics"}],
        "simulations": [{"svc_as_code_id": SIMULATION, "name": "Booking", "agent": AGENT, "max_turns": 5}],
        "digital_humans": [{
            "svc_as_code_id": HUMAN, "name": "Eleanor Pham", "intent": "Reports chest pain.", "simulations": [SIMULATION],
            "success_criteria": "Agent says to call an ambulance.",
            "traits": [{"trait_name": "age", "trait_data_type": "NUMBER", "value": 71}],
        }],
        "custom_metrics": [{
            "svc_as_code_id": METRIC, "name": "Polite", "description": "Kind words.", "response_type": "yes_no",
        }],
    })
}

fn actions(pushed: &Value) -> Vec<&str> {
    assert_eq!((&pushed["valid"], &pushed["errors"]), (&json!(true), &json!([])), "{pushed}");
    pushed["actions"].as_array().expect("a list").iter().map(|action| action.as_str().expect("a text")).collect()
}

async fn push(world: &World, bundle: &Value) -> Value {
    world.post("/v1/svc-as-code", bundle.clone()).await
}

#[tokio::test]
async fn a_push_creates_changes_links_and_unlinks() {
    let world = World::new().await;
    let mut wanted = bundle();
    let pushed = push(&world, &wanted).await;
    assert_eq!(
        actions(&pushed),
        [
            "Created agent 'Front desk'",
            "Created simulation 'Booking'",
            "Created digital human 'Eleanor Pham'",
            "Created custom metric 'Polite'",
            "Linked 1 custom metric(s) to simulation",
        ]
    );
    let simulation = pushed["simulation_id"].as_i64().expect("an id");
    let stored = world.get(&format!("/v1/simulation/{simulation}")).await;
    assert_eq!((&stored["svc_as_code_id"], &stored["max_turns"]), (&json!(SIMULATION), &json!(5)));
    let agent = world.get(&format!("/v1/agents/{}", stored["agent_id"])).await;
    assert_eq!((&agent["agent_description"], &agent["svc_as_code_id"]), (&json!("You book visits."), &json!(AGENT)));
    assert!(agent["folder_id"].is_string());
    let humans = world.get(&format!("/v1/digital-humans-by-simulation/{simulation}")).await;
    assert_eq!((&humans["total"], &humans["digital_humans"][0]["traits"][0]["value"]), (&json!(1), &json!(71)));
    let metrics = world.get(&format!("/v1/custom-metrics?agent_id={}", stored["agent_id"])).await;
    assert_eq!(stored["settings"]["selected_custom_metrics"], json!([metrics["metrics"][0]["id"]]));

    // The same again changes nothing, not even a time.
    world.service.clock().advance_ms(1000);
    let again = push(&world, &wanted).await;
    assert_eq!(actions(&again), Vec::<&str>::new());
    assert_eq!(again["simulation_id"], simulation);
    assert_eq!(world.get(&format!("/v1/simulation/{simulation}")).await, stored);
    assert_eq!(world.get(&format!("/v1/agents/{}", stored["agent_id"])).await, agent);

    // Fields that are not given stay; a new text is a new version.
    wanted["agents"][0] =
        json!({"svc_as_code_id": AGENT.to_uppercase(), "name": "Front desk", "system_prompt": "Be kind."});
    wanted["simulations"][0]["max_turns"] = json!(6);
    wanted["digital_humans"][0]["intent"] = json!("Reports a cough.");
    wanted["custom_metrics"][0]["svc_as_code_id"] = json!(METRIC.to_uppercase());
    wanted["custom_metrics"][0]["description"] = json!("Very kind words.");
    let changed = push(&world, &wanted).await;
    let updated =
        ["agent 'Front desk'", "simulation 'Booking'", "digital human 'Eleanor Pham'", "custom metric 'Polite'"];
    assert_eq!(actions(&changed), updated.map(|what| format!("Updated {what}")));
    let versions = world.get(&format!("/v1/agents/{}/versions", stored["agent_id"])).await;
    assert_eq!((&versions[0]["version"], &versions[0]["prompt_text"]), (&json!(2), &json!("Be kind.")));
    assert!(world.get(&format!("/v1/agents/{}", stored["agent_id"])).await["folder_id"].is_string());

    // Entities no longer in the bundle are unlinked and stay.
    let body = json!({"digital_human": {"svc_as_code_id": OTHER, "name": "Ann", "intent": "Asks."}});
    world.post("/v1/create-digital-human", body).await;
    let other = json!({"svc_as_code_id": OTHER, "name": "Ann", "intent": "Asks.", "simulations": [SIMULATION]});
    wanted["digital_humans"] = json!([other]);
    wanted["custom_metrics"] = json!([]);
    assert_eq!(
        actions(&push(&world, &wanted).await),
        [
            "Linked 1 existing digital human(s) to simulation",
            "Unlinked 1 digital human(s) from simulation",
            "Unlinked 1 custom metric(s) from simulation",
        ]
    );
    let humans = world.get(&format!("/v1/digital-humans-by-simulation/{simulation}")).await;
    assert_eq!((&humans["total"], &humans["digital_humans"][0]["name"]), (&json!(1), &json!("Ann")));
    assert_eq!(world.get("/v1/digital-humans").await["total_count"], 2);
    assert_eq!(world.get("/v1/custom-metrics").await["total_count"], 1);
    let stored = world.get(&format!("/v1/simulation/{simulation}")).await;
    assert_eq!(stored["settings"]["selected_custom_metrics"], json!([]));
    assert_eq!(actions(&push(&world, &wanted).await), Vec::<&str>::new());
}

#[tokio::test]
async fn a_metric_has_the_agent_of_its_bundle_whatever_agents_it_names() {
    for named in [json!([]), Value::Null, json!([1]), json!([2]), json!([2, 1])] {
        let world = World::new().await;
        world.post("/v1/add-agent", json!({ "name": "Other" })).await;
        let mut wanted = bundle();
        wanted["custom_metrics"][0]["agent_ids"] = named.clone();
        push(&world, &wanted).await;
        let agents = world.get("/v1/custom-metrics").await["metrics"][0]["agent_ids"].clone();
        assert!(agents.as_array().is_some_and(|agents| agents.contains(&json!(2))), "{named}: {agents}");
        assert_eq!(actions(&push(&world, &wanted).await), Vec::<&str>::new(), "{named}");
        assert_eq!(world.get("/v1/custom-metrics").await["metrics"][0]["agent_ids"], agents, "{named}");
    }
}

#[tokio::test]
async fn a_scripted_response_of_a_bundle_may_be_short() {
    let world = World::new().await;
    let mut wanted = bundle();
    wanted["digital_humans"][0]["scripted_responses"] = json!([
        { "match_phrase": "your name", "response_value": "Eleanor" },
        { "match_phrase": "hold on", "match_type": "context", "response_type": "silence", "occurrence_mode": null },
    ]);
    push(&world, &wanted).await;
    let human = world.get("/v1/digital-humans").await["digital_humans"][0].clone();
    let kinds = |response: &Value| {
        ["match_type", "response_type", "occurrence_mode"].map(|field| response[field].as_str().map(str::to_owned))
    };
    let scripted = &human["scripted_responses"];
    assert_eq!(kinds(&scripted[0]), ["exact", "phrase", "always"].map(|word| Some(word.to_owned())));
    assert_eq!(kinds(&scripted[1]), ["context", "silence", "always"].map(|word| Some(word.to_owned())));
    assert_eq!(actions(&push(&world, &wanted).await), Vec::<&str>::new());
    // Fields without a default are required.
    wanted["digital_humans"][0]["scripted_responses"] = json!([{ "response_value": "Eleanor" }]);
    let errors = json!(["scripted_responses.0.match_phrase: Field required"]);
    assert_eq!(push(&world, &wanted).await["errors"][0]["errors"], errors);
}

/// Returns the number of rows of each kind.
async fn row_counts(world: &World) -> Vec<usize> {
    let agents = world.get("/v1/all-agents").await.as_array().map(Vec::len);
    let simulations = world.get("/v1/get-all-simulations").await["simulations"].as_array().map(Vec::len);
    let humans = world.get("/v1/digital-humans").await["digital_humans"].as_array().map(Vec::len);
    let metrics = world.get("/v1/custom-metrics").await["metrics"].as_array().map(Vec::len);
    let folders = world.get("/v1/all-folders").await.as_array().map(Vec::len);
    [agents, simulations, humans, metrics, folders].into_iter().flatten().collect()
}

/// Bundle, and the errors that it is refused with.
type BrokenBundle = (Value, Vec<Value>);

fn error(kind: &str, id: Value, errors: Value) -> Value {
    json!({"entity_type": kind, "entity_id": id, "errors": errors})
}

/// Returns the bundle with another value at a path.
fn bundle_with(path: &str, value: Value) -> Value {
    let mut bundle = bundle();
    *bundle.pointer_mut(path).expect("is there") = value;
    bundle
}

/// Bundles with several errors at once.
fn with_many_errors() -> [BrokenBundle; 2] {
    let mut many = bundle();
    many["agents"][0]["phone_number"] = json!("12");
    many["agents"][0]["sip_uri"] = json!("bob");
    many["simulations"][0]["max_turns"] = json!(0);
    many["simulations"][0]["ringing_timeout"] = json!("x");
    many["digital_humans"][0]["extension"] = json!("12a");
    many["digital_humans"][0]["svc_as_code_id"] = Value::Null;
    many["custom_metrics"][0]["response_type"] = json!("enum");
    let mut rules = bundle();
    rules["digital_humans"][0]["extension"] = json!("12a");
    rules["digital_humans"][0]["outbound_text_number"] = json!("12");
    rules["simulations"][0]["agent_version_id"] = json!(OTHER);
    [
        (
            many,
            vec![
                error(
                    "agent",
                    json!(AGENT),
                    json!([
                        "phone_number: phone_number must be in E.164 format",
                        "sip_uri: sip_uri must be of the form sip:<user>@<host>",
                    ]),
                ),
                error(
                    "simulation",
                    json!(SIMULATION),
                    json!([
                        "max_turns: Input should be greater than 0",
                        "ringing_timeout: Input should be a valid integer, unable to parse string as an integer",
                    ]),
                ),
                error("digital_human", Value::Null, json!(["svc_as_code_id: Field required"])),
                error(
                    "custom_metric",
                    json!(METRIC),
                    json!(["enum_options: enum_options needs at least two different options"]),
                ),
            ],
        ),
        (
            rules,
            vec![
                error("simulation", json!(SIMULATION), json!(["agent_version_id: Agent version not found"])),
                error(
                    "digital_human",
                    json!(HUMAN),
                    json!([
                        "extension: extension may hold only 0-9, *, # and comma",
                        "outbound_text_number: outbound_text_number must be in E.164 format",
                    ]),
                ),
            ],
        ),
    ]
}

/// Bundles with the wrong number of entities, or a field of the wrong form.
fn with_wrong_forms() -> Vec<BrokenBundle> {
    vec![
        (
            bundle_with("/agents", json!([])),
            vec![error("bundle", Value::Null, json!(["exactly one agent is required"]))],
        ),
        (
            bundle_with("/simulations", json!([bundle()["simulations"][0], {"svc_as_code_id": OTHER}])),
            vec![error("bundle", Value::Null, json!(["exactly one simulation is required"]))],
        ),
        (
            bundle_with("/agents/0", json!({"svc_as_code_id": "x"})),
            vec![error(
                "agent",
                json!("x"),
                json!([
                    "name: Field required",
                    "svc_as_code_id: Input should be a valid UUID, invalid character: found `x` at 0"
                ]),
            )],
        ),
        (
            bundle_with("/custom_metrics/0/svc_as_code_id", json!("generated-now-1")),
            vec![error(
                "custom_metric",
                json!("generated-now-1"),
                json!(["svc_as_code_id: Input should be a valid UUID, invalid character: found `g` at 0"]),
            )],
        ),
        (
            bundle_with("/custom_metrics/0/svc_as_code_id", json!("")),
            vec![error(
                "custom_metric",
                json!(""),
                json!(["svc_as_code_id: Input should be a valid UUID, invalid length: found 0"]),
            )],
        ),
        (
            bundle_with("/agents/0/folder", json!("")),
            vec![error("agent", json!(AGENT), json!(["folder: String should have at least 1 character"]))],
        ),
    ]
}

/// Bundles whose entities do not fit together, or whose traits are wrong.
fn with_wrong_references() -> Vec<BrokenBundle> {
    let twice = json!([bundle()["digital_humans"][0], bundle()["digital_humans"][0]]);
    vec![
        (
            bundle_with("/simulations/0/agent", json!(OTHER)),
            vec![error(
                "simulation",
                json!(SIMULATION),
                json!([format!("agent: \"{OTHER}\" is not the agent of the bundle")]),
            )],
        ),
        (
            bundle_with("/digital_humans/0/simulations", json!([OTHER])),
            vec![error(
                "digital_human",
                json!(HUMAN),
                json!([format!("simulations: \"{OTHER}\" is not the simulation of the bundle")]),
            )],
        ),
        (
            bundle_with("/digital_humans/0/traits/0/value", json!("old")),
            vec![error("digital_human", json!(HUMAN), json!(["traits: value of trait age is not a valid NUMBER"]))],
        ),
        (
            bundle_with("/digital_humans/0/traits/0", json!({"trait_name": "a", "value": 1})),
            vec![error("digital_human", json!(HUMAN), json!(["traits.0.trait_data_type: Field required"]))],
        ),
        (
            bundle_with("/digital_humans", twice),
            vec![error("digital_human", json!(HUMAN), json!(["svc_as_code_id: is in the bundle more than once"]))],
        ),
    ]
}

#[tokio::test]
async fn all_that_is_wrong_is_told_and_nothing_is_written() {
    let world = World::new().await;
    let broken = with_many_errors().into_iter().chain(with_wrong_forms()).chain(with_wrong_references());
    for (bundle, errors) in broken {
        let pushed = push(&world, &bundle).await;
        assert_eq!(pushed["errors"], json!(errors), "{bundle}");
        assert_eq!(
            (&pushed["valid"], &pushed["actions"], &pushed["simulation_id"]),
            (&json!(false), &json!([]), &Value::Null)
        );
        assert_eq!(row_counts(&world).await, [0; 5], "{bundle}");
    }
    // An entity of the wrong kind of value is refused before.
    for body in [json!({}), json!({"agents": [1], "simulations": [], "digital_humans": [], "custom_metrics": []})] {
        let answer = world.send("POST", "/v1/svc-as-code", &[], body.to_string().into_bytes()).await;
        assert_eq!(answer.status, 422, "{body}");
    }
    let read = [("x-api-key".to_owned(), "$read".to_owned())];
    assert_eq!(world.send("POST", "/v1/svc-as-code", &read, bundle().to_string().into_bytes()).await.status, 403);
}

/// List of the bundle, fields of its first entity, and the errors that they bring.
type BrokenRule = (&'static str, Value, Value);

fn broken_rules_of_simulations() -> Vec<BrokenRule> {
    vec![
        (
            "simulations",
            json!({ "custom_metrics_failing_threshold": 60, "custom_metrics_passing_threshold": 40 }),
            json!(["custom_metrics_failing_threshold: failing threshold must not exceed passing threshold"]),
        ),
        (
            "simulations",
            json!({
                "custom_metrics_failing_threshold": 60, "custom_metrics_passing_threshold": 40,
                "outcome_failing_threshold": 60, "outcome_passing_threshold": 40,
            }),
            json!([
                "custom_metrics_failing_threshold: failing threshold must not exceed passing threshold",
                "outcome_failing_threshold: failing threshold must not exceed passing threshold",
            ]),
        ),
        (
            "simulations",
            json!({
                "agent_version_id": OTHER, "outcome_failing_threshold": 60, "outcome_passing_threshold": 40,
                "digital_humans_settings": { "default_caller_number": "12", "first_message": "" },
            }),
            json!([
                "agent_version_id: Agent version not found",
                "outcome_failing_threshold: failing threshold must not exceed passing threshold",
                "digital_humans_settings: digital_humans_settings.default_caller_number must be in E.164 format",
                "digital_humans_settings: digital_humans_settings.first_message must not be empty",
            ]),
        ),
        (
            "simulations",
            json!({
                "agent_version_id": OTHER, "prompt_id": HUMAN, "outcome_failing_threshold": 60,
                "outcome_passing_threshold": 40,
            }),
            json!([
                "prompt_id: prompt_id and agent_version_id must be the same",
                "outcome_failing_threshold: failing threshold must not exceed passing threshold",
            ]),
        ),
    ]
}

/// `schema` is no JSON schema, for the reason `no_schema`.
fn broken_rules_of_metrics(schema: &Value, no_schema: &str) -> Vec<BrokenRule> {
    vec![
        (
            "custom_metrics",
            json!({ "response_type": "quantitative", "agent_ids": [77], "json_schema": schema }),
            json!([
                "agent_ids: Agent not found",
                "min_value: min_value and max_value are required for quantitative metrics",
                no_schema,
            ]),
        ),
        (
            "custom_metrics",
            json!({ "response_type": "enum", "enum_options": ["a"], "min_value": 2, "max_value": 1, "json_schema": schema }),
            json!([
                "min_value: min_value must be less than max_value",
                "enum_options: enum_options needs at least two different options",
                no_schema,
            ]),
        ),
    ]
}

#[tokio::test]
async fn every_broken_rule_is_told_of_what_is_new_and_of_what_is_there() {
    let schema = json!({ "type": "nothing" });
    let world = World::new().await;
    let alone = json!({ "name": "m", "description": "d", "response_type": "json", "json_schema": schema }).to_string();
    let alone = world.send("POST", "/v1/create-custom-metric", &[], alone.into_bytes()).await;
    let no_schema = format!("json_schema: {}", alone.json()["detail"].as_str().expect("a text"));
    for is_there in [false, true] {
        let world = World::new().await;
        if is_there {
            actions(&push(&world, &bundle()).await);
        }
        let before = row_counts(&world).await;
        let metrics = broken_rules_of_metrics(&schema, &no_schema);
        for (list, fields, errors) in broken_rules_of_simulations().into_iter().chain(metrics) {
            let mut wanted = bundle();
            let entity = wanted[list][0].as_object_mut().expect("an object");
            entity.extend(fields.as_object().expect("an object").clone());
            let kind = list.trim_end_matches('s');
            let errors_of_entity =
                json!([{ "entity_type": kind, "entity_id": entity["svc_as_code_id"], "errors": errors }]);
            let pushed = push(&world, &wanted).await;
            assert_eq!(
                (&pushed["valid"], &pushed["errors"]),
                (&json!(false), &errors_of_entity),
                "{is_there} {fields}"
            );
            assert_eq!(row_counts(&world).await, before, "{is_there} {fields}");
        }
        assert_eq!(actions(&push(&world, &bundle()).await).is_empty(), is_there, "nothing was changed");
    }
}

/// Ids of what a bundle is pulled from: agent, simulation, the last human, and the metric.
struct Stored {
    agent_id: Value,
    simulation: Value,
    human_id: Value,
    metric: Value,
}

/// Stores an agent with a simulation, two humans and a metric; agent and simulation have no stable identifier yet.
async fn store(world: &World) -> Stored {
    let agent: Value = serde_json::from_str(include_str!("../../fixtures/api/agent.json")).expect("JSON");
    let mut human: Value = serde_json::from_str(include_str!("../../fixtures/api/digital_human.json")).expect("JSON");
    let draft =
        json!({ "name": "Draft", "definition": { "nodes": [{ "id": "start", "type": "start" }], "edges": [] } });
    human["workflow_v2_id"] = world.post("/v1/scenario", draft).await["id"].clone();
    let mut simulation: Value = serde_json::from_str(include_str!("../../fixtures/api/simulation.json")).expect("JSON");
    let agent_id = world.post("/v1/add-agent", agent).await["agent_id"].clone();
    simulation["svc_as_code_id"] = Value::Null;
    simulation["selected_custom_metrics"] = Value::Null;
    simulation["agent_id"] = json!(agent_id.to_string());
    let simulation = world.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    let humans = [human, json!({ "intent": "Asks.", "name": null })];
    let mut human_id = Value::Null;
    for human in humans {
        let body = json!({ "digital_human": human, "simulation_ids": [simulation] });
        human_id = world.post("/v1/create-digital-human", body).await["digital_human"]["id"].clone();
    }
    // Its identifier is no uuid, and stays.
    let metric = json!({"name": "m", "description": "d", "response_type": "quantitative", "min_value": 0, "max_value": 1,
        "agent_ids": [agent_id], "svc_as_code_id": "mine"});
    let metric = world.post("/v1/create-custom-metric", metric).await;
    Stored { agent_id, simulation, human_id, metric }
}

#[tokio::test]
async fn what_is_pulled_is_pushed_without_a_change() {
    let world = World::new().await;
    let Stored { agent_id, simulation, human_id, metric } = store(&world).await;
    let metric_id = metric["id"].as_str().expect("an id");

    let pulled = world.get(&format!("/v1/svc-as-code/simulation/{simulation}")).await;
    assert_eq!(
        pulled.as_object().map(|all| all.keys().cloned().collect::<Vec<_>>().join(" ")).as_deref(),
        Some("agents simulations digital_humans custom_metrics")
    );
    let (agent_code, code) = (&pulled["agents"][0]["svc_as_code_id"], &pulled["simulations"][0]["svc_as_code_id"]);
    assert!(Uuid::parse_str(code.as_str().expect("is made")).is_ok());
    assert_eq!(&pulled["simulations"][0]["agent"], agent_code);
    assert_eq!(
        (&pulled["agents"][0]["system_prompt"], &pulled["agents"][0]["folder"]),
        (&json!("You book visits."), &json!("Clinics"))
    );
    assert_eq!(pulled["digital_humans"][1]["simulations"], json!([code]));
    assert_eq!(pulled["agents"][0]["sip_password"], "p1");
    assert_eq!(pulled["custom_metrics"][0]["svc_as_code_id"], "mine");
    assert_eq!(world.get(&format!("/v1/custom-metric/{metric_id}")).await, metric);
    assert_eq!(actions(&push(&world, &pulled).await), Vec::<&str>::new());

    for root in [
        format!("simulation/{}", code.as_str().expect("a text")),
        format!("agent/{agent_id}"),
        format!("agent/{}", agent_code.as_str().expect("a text")),
        format!("digital-human/{human_id}"),
        format!("digital-human/{HUMAN}"),
        format!("custom-metric/{metric_id}"),
        "custom-metric/mine".to_owned(),
    ] {
        assert_eq!(world.get(&format!("/v1/svc-as-code/{root}")).await, pulled, "{root}");
    }
    // A key that may only read sees no secret; pushed back, none is cleared.
    let read = [("x-api-key".to_owned(), "$read".to_owned())];
    let path = format!("/v1/svc-as-code/simulation/{simulation}");
    let hidden = world.send("GET", &path, &read, Vec::new()).await.json();
    assert_eq!(hidden["agents"][0].get("sip_password"), None);
    assert_eq!(actions(&push(&world, &hidden).await), Vec::<&str>::new());
    assert_eq!(world.get(&format!("/v1/agents/{agent_id}")).await["sip_password"], "p1");
}

#[tokio::test]
async fn a_bundle_is_pushed_elsewhere_and_pulled_by_its_owner_alone() {
    let world = World::new().await;
    let Stored { simulation, human_id, .. } = store(&world).await;
    let path = format!("/v1/svc-as-code/simulation/{simulation}");
    let pulled = world.get(&path).await;
    // Elsewhere the same bundle makes the same things, but for the scenario, which is not in it.
    let mut elsewhere = pulled.clone();
    elsewhere["digital_humans"][0]["always_on_mode"] = json!(false);
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let send = async |bundle: &Value| {
        world.send("POST", "/v1/svc-as-code", &foreign, bundle.to_string().into_bytes()).await.json()
    };
    assert_eq!(send(&elsewhere).await["errors"][0]["errors"], json!(["workflow_v2_id: Scenario not found"]));
    elsewhere["digital_humans"][0]["workflow_v2_id"] = Value::Null;
    // A metric made by a push is named by a uuid.
    let no_uuid = json!(["svc_as_code_id: Input should be a valid UUID, invalid character: found `m` at 0"]);
    assert_eq!(send(&elsewhere).await["errors"][0]["errors"], no_uuid);
    elsewhere["custom_metrics"][0]["svc_as_code_id"] = json!(METRIC);
    let answer = send(&elsewhere).await;
    assert_eq!(actions(&answer).len(), 6, "{answer}");

    for (root, status, detail) in [
        (format!("simulation/{OTHER}"), 404, json!("Simulation not found")),
        ("simulation/x".to_owned(), 404, json!("Simulation not found")),
        ("agent/999".to_owned(), 404, json!("Agent not found")),
        ("digital-human/999".to_owned(), 404, json!("Digital human not found")),
        ("custom-metric/none".to_owned(), 404, json!("Custom metric not found")),
    ] {
        let answer = world.send("GET", &format!("/v1/svc-as-code/{root}"), &[], Vec::new()).await;
        assert_eq!((answer.status, &answer.json()["detail"]), (status, &detail), "{root}");
    }
    let answer = world.send("GET", &path, &foreign, Vec::new()).await;
    assert_eq!((answer.status, answer.json()), (404, json!({ "detail": "Simulation not found" })));
    let answer = world.send("GET", &format!("/v1/svc-as-code/digital-human/{human_id}"), &foreign, Vec::new()).await;
    assert_eq!(answer.status, 403);
    let answer = world.send("GET", "/v1/svc-as-code/persona/1", &[], Vec::new()).await;
    assert_eq!((answer.status, &answer.json()["detail"][0]["type"]), (422, &json!("enum")));
}

#[tokio::test]
async fn a_bundle_is_run_by_its_identifier() {
    let world = World::new().await;
    let mut bundle = bundle();
    bundle["agents"][0]["sip_uri"] = json!("sip:a@b.example");
    push(&world, &bundle).await;
    let path = format!("/v1/svc-as-code/run/{SIMULATION}");
    let queued = world.post(&path, json!({ "runs_per_digital_human": 3, "seed": 7 })).await;
    assert_eq!(queued["status"], "success");
    assert_eq!(queued["simulation_result_ids"].as_array().map(Vec::len), Some(3));
    for (path, body, status, expect) in [
        (&path, json!({ "seed": -1 }), 422, json!("greater_than_equal")),
        (&format!("/v1/svc-as-code/run/{OTHER}"), json!({}), 404, Value::Null),
        (&"/v1/svc-as-code/run/x".to_owned(), json!({}), 422, json!("uuid_parsing")),
    ] {
        let answer = world.send("POST", path, &[], body.to_string().into_bytes()).await;
        assert_eq!((answer.status, &answer.json()["detail"][0]["type"]), (status, &expect), "{path}");
    }
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    assert_eq!(world.send("POST", &path, &foreign, b"{}".to_vec()).await.status, 404);
}
