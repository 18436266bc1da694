//! Drafts of a language model: its answers are checked, and asked for once more.

use std::sync::Arc;

use ringer::provider::testing::{Reply, ScriptedModel};
use serde_json::{Value, json};

use super::world::World;

async fn world(replies: &[Value]) -> (World, Arc<ScriptedModel>) {
    let replies = replies.iter().map(|reply| match reply {
        Value::String(text) => Reply::says(&[text]),
        object => Reply::says(&[&object.to_string()]),
    });
    let model = Arc::new(ScriptedModel::new(replies.collect()));
    (World::with_model(model.clone()).await, model)
}

fn draft(n: i64) -> Value {
    json!({"name": format!("N{n}"), "description": format!("D{n}"), "goal": "", "intent": format!("I{n}"),
        "success_criteria": format!("S{n}"), "traits": [{"name": "age", "value": n}]})
}

fn drafts(numbers: &[i64]) -> Value {
    json!({ "scenarios": numbers.iter().map(|n| draft(*n)).collect::<Vec<_>>() })
}

#[tokio::test]
async fn scenarios_are_drafted_by_kind() {
    let (world, model) = world(&[drafts(&[1, 2]), drafts(&[3]), drafts(&[4]), drafts(&[5]), drafts(&[6])]).await;
    let body = json!({
        "name": "All", "agent": {"name": "Desk", "agent_description": "You book.", "goals": ["book"]},
        "scenarios": [{"category": "booking", "count": 2, "goal": "Book"}, {"category": "none", "count": 0}],
        "callAllocation": {
            "goalAdherence": {"Move": 1}, "customerPersonas": {"Hurried": 1.0},
            "transcriptGeneration": [{"transcript": "Agent: Hi.\nUser: Help."}],
            "csvCallAllocation": [{"intent": "My own", "success_criteria": "Mine", "count": 1}],
        },
        "selectedProperties": {"mood": ["angry"]}, "customerTraits": [{"name": "age", "data_type": "number"}],
    });
    let made = world.post("/v1/generate-test-scenarios", body).await;
    assert_eq!((&made["status"], &made["success"], &made["warning"]), (&json!("200"), &json!(true), &Value::Null));
    let all = made["scenarios"].as_array().expect("a list");
    let shown: Vec<[&str; 4]> = all
        .iter()
        .map(|one| ["category", "goal", "intent", "success_criteria"].map(|key| one[key].as_str().expect("a text")))
        .collect();
    let expect = [
        ["booking", "Book", "I1", "S1"],
        ["booking", "Book", "I2", "S2"],
        ["goalAdherence", "Move", "I3", "S3"],
        ["customerPersonas", "", "I4", "S4"],
        ["transcriptGeneration", "", "I5", "S5"],
        ["csvCallAllocation", "", "My own", "Mine"],
    ];
    assert_eq!(shown, expect);
    assert_eq!(all[3]["persona"]["name"], "Hurried");
    assert_eq!(
        (&all[4]["description"], &all[4]["formatted_transcript"][1]["utterance"]),
        (&json!("[\"Help.\"]"), &json!("Help."))
    );
    let age = json!({"trait_name": "age", "trait_data_type": "NUMBER", "value": 2, "is_sip_header": false});
    assert_eq!(all[1]["traits"], json!([age]));
    assert!(all.iter().all(|one| one["id"].as_str().is_some_and(|id| id.len() == 36)));
    assert!(model.requests()[0].messages[1].content.contains("You book."));

    let many = json!({"name": "n", "agent": {"name": "a"}, "scenarios": [{"category": "c", "count": 500}],
        "callAllocation": {}, "selectedProperties": {}});
    let (world, _) = self::world(&[drafts(&(0..100).collect::<Vec<_>>())]).await;
    let made = world.post("/v1/generate-test-scenarios", many).await;
    assert_eq!(made["warning"], "Request was truncated to 100 scenarios");
    assert_eq!(made["scenarios"].as_array().map(Vec::len), Some(100));
}

#[tokio::test]
async fn a_workflow_is_a_stored_scenario_or_a_text() {
    let (world, model) = world(&[drafts(&[1]), drafts(&[2]), drafts(&[3])]).await;
    let definition = json!({"nodes": [{"id": "start", "type": "start"}], "edges": []});
    let scenario = json!({"name": "Book a visit", "description": "By telephone.", "definition": definition});
    let stored = world.post("/v1/scenario", scenario).await["id"].as_str().expect("an id").to_owned();
    let unknown = "9f3a1c7e-5b2d-4e88-a4f1-0c7b3d6a9e21";
    let body = json!({
        "name": "n", "agent": {"name": "a"}, "scenarios": [{"category": "none", "count": 0}], "selectedProperties": {},
        "callAllocation": {"workflowAdherence": {&stored: 1}, "workflowAdherenceV2": {unknown: 1, "Move a visit": 1}},
    });
    let made = world.post("/v1/generate-test-scenarios", body).await;
    let goals: Vec<&str> =
        made["scenarios"].as_array().expect("a list").iter().filter_map(|one| one["goal"].as_str()).collect();
    assert_eq!(goals, ["Book a visit", unknown, "Move a visit"]);
    let asked = model.requests().into_iter().map(|request| request.messages[1].content.clone());
    let mentions: Vec<bool> = asked.map(|material| material.contains("By telephone.")).collect();
    assert_eq!(mentions, [true, false, false]);
}

#[tokio::test]
async fn a_version_needs_its_agent() {
    let (world, model) = world(&[drafts(&[1]), drafts(&[2])]).await;
    let agent = world.post("/v1/add-agent", json!({"name": "Desk", "system_prompt": "You book visits."})).await;
    let agent = agent["agent_id"].to_string();
    let versions = world.get(&format!("/v1/agents/{agent}/versions")).await;
    let version = versions[0]["id"].as_str().expect("an id");
    let asked = |agent: Value, version: &str| {
        json!({"name": "n", "agent": agent, "promptId": version, "scenarios": [{"category": "c", "count": 1}],
            "callAllocation": {}, "selectedProperties": {}})
    };
    world.post("/v1/generate-test-scenarios", asked(json!({"name": "a", "id": agent}), version)).await;
    assert!(model.requests()[0].messages[1].content.contains("You book visits."));
    for (agent, version, status, text) in [
        (json!({"name": "a"}), version, 400, "promptId needs agent.id"),
        (json!({"name": "a", "id": "desk"}), version, 404, "Agent not found"),
        (json!({"name": "a", "id": agent}), "newest", 404, "Agent version not found"),
    ] {
        let body = asked(agent, version).to_string().into_bytes();
        let refused = world.send("POST", "/v1/generate-test-scenarios", &[], body).await;
        assert_eq!((refused.status, refused.json()), (status, json!({ "detail": text })));
    }
}

#[tokio::test]
async fn scenarios_keep_their_order_and_ids_when_they_are_drafted_again() {
    let moved =
        json!({"scenarios": [{"intent": "A", "success_criteria": "B"}, {"intent": "C", "success_criteria": "D"}]});
    let (world, _) = world(&[moved, drafts(&[1]), drafts(&[1, 2])]).await;
    let id = "9f3a1c7e-5b2d-4e88-a4f1-0c7b3d6a9e21";
    let scenarios =
        json!([{"id": id, "name": "One", "description": "First."}, {"description": "Second.", "category": "x"}]);
    let body = json!({"agent": {"name": "a"}, "scenarios": scenarios, "newGoal": "Cancel"});
    let made = world.post("/v1/move-regen-test-scenarios", body).await;
    let all = &made["scenarios"];
    assert_eq!((&all[0]["id"], &all[0]["name"], &all[0]["description"]), (&json!(id), &json!("One"), &json!("First.")));
    assert_eq!(
        (&all[1]["goal"], &all[1]["intent"], &all[1]["success_criteria"]),
        (&json!("Cancel"), &json!("C"), &json!("D"))
    );
    assert_eq!((&all[1]["description"], &all[1]["category"]), (&json!("Second."), &json!("x")));

    // One too few, then both.
    let persona = json!({"name": "Ann", "description": "Old."});
    let body = json!({"agent": {"name": "a"}, "scenarios": scenarios, "instructions": "Shorter.", "persona": persona});
    let made = world.post("/v1/regen-test-scenarios", body).await;
    let all = &made["scenarios"];
    assert_eq!((&all[0]["id"], &all[0]["name"], &all[1]["description"]), (&json!(id), &json!("N1"), &json!("D2")));
    assert_eq!(all[1]["persona"], json!({"name": "Ann", "description": "Old.", "goal": null, "id": null}));
}

#[tokio::test]
async fn personas_values_and_graphs() {
    let persona = json!({"name": "Ann", "description": "Old.", "goal": "Book."});
    let definition = json!({
        "nodes": [{"id": "start", "type": "start"},
            {"id": "a", "type": "single", "data": {"type": "exact", "speaker": "agent", "message": "Hi."}}],
        "edges": [{"id": "1", "source": "start", "target": "a"}],
    });
    let mut loose = definition.clone();
    loose["edges"] = json!([]);
    let replies = [
        json!({"personas": [persona, persona]}),
        json!({"values": [[{"name": "age", "value": 7}, {"name": "born", "value": "soon"}], []]}),
        json!({"nodes": [], "edges": []}),
        definition.clone(),
        loose.clone(),
        loose,
        json!("I would rather not."),
        json!("{\"personas\": 7}"),
    ];
    let (world, model) = world(&replies).await;
    let agent = world.post("/v1/add-agent", json!({"name": "Desk"})).await["agent_id"].to_string();
    let made = world.post("/v1/generate-customer-personas", json!({"agent_id": agent, "count": 1})).await;
    assert_eq!(made, json!({"personas": [persona], "status": "200"}));

    let traits = json!([{"name": "age", "data_type": "NUMBER"}, {"name": "born", "data_type": "DATE"}]);
    let made = world.post("/v1/generate-trait-values", json!({"scenarios": ["x", "y"], "traits": traits})).await;
    assert_eq!(made["0"][0], json!({"name": "age", "value": 7}));
    // A value of the wrong type, or a missing one, is invented.
    assert_eq!(made["0"][1]["value"].as_str().map(str::len), Some(10), "{made}");
    assert!(made["1"][0]["value"].is_number() && made["1"][1]["name"] == "born", "{made}");

    let asked = json!({"prompt": "A greeting."});
    let made = world.post("/v1/scenario/generate-from-prompt", asked.clone()).await;
    assert_eq!(made["definition"]["nodes"], definition["nodes"]);
    let request = &model.requests()[3].messages[3].content;
    assert!(request.contains("it has no path"), "{request}");
    let unread = json!({"detail": "The language model's answer could not be read"});
    let refused = world.send("POST", "/v1/workflow/generate-from-prompt", &[], asked.to_string().into_bytes()).await;
    assert_eq!((refused.status, refused.json()), (503, unread.clone()));
    let body = json!({"agent_id": agent}).to_string().into_bytes();
    let refused = world.send("POST", "/v1/generate-customer-personas", &[], body).await;
    assert_eq!((refused.status, refused.json()), (503, unread));
    assert_eq!(world.get("/v1/scenario").await["total_count"], 0, "drafts are not stored");
}

#[tokio::test]
async fn scenarios_are_drafted_for_stored_personas() {
    let (world, model) = world(&[drafts(&[1]), drafts(&[2, 3])]).await;
    let persona = json!({"name": "Hurried", "description": "Has no time.", "goal": "Cancel."});
    let persona = world.post("/v1/create-customer-persona", persona).await["id"].clone();
    let body = json!({"name": "n", "agent": {"name": "a"}, "scenarios": [{"category": "c", "count": 1}],
        "callAllocation": {}, "selectedProperties": {}, "customer_persona_ids": [{"id": persona, "num_calls": 2}]});
    let made = world.post("/v1/generate-test-scenarios", body.clone()).await;
    let all = made["scenarios"].as_array().expect("a list");
    assert_eq!(all.len(), 3);
    let whole = json!({"name": "Hurried", "description": "Has no time.", "goal": "Cancel.", "id": persona});
    for one in &all[1..] {
        let expect = (&json!("customerPersonas"), &json!("Cancel."), &whole);
        assert_eq!((&one["category"], &one["goal"], &one["persona"]), expect);
    }
    assert!(model.requests()[1].messages[1].content.contains("Has no time."));

    let mut body = body;
    body["customer_persona_ids"][0]["id"] = json!("9f3a1c7e-5b2d-4e88-a4f1-0c7b3d6a9e21");
    let refused = world.send("POST", "/v1/generate-test-scenarios", &[], body.to_string().into_bytes()).await;
    assert_eq!((refused.status, refused.json()), (404, json!({"detail": "Customer persona not found"})));
}
