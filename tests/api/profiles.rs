//! Attacks and workflows of an agent, which generation uses where a request names none.

use serde_json::{Value, json};

use super::world::World;

const PATH: &str = "/v1/generate-digital-humans";

fn single(id: &str, speaker: &str, text: &str) -> Value {
    json!({"id": id, "type": "single", "data": {"type": "exact", "speaker": speaker, "message": text}})
}

/// Returns a graph of two paths.
fn graph() -> Value {
    json!({
        "nodes": [{"id": "s", "type": "start"}, single("a", "agent", "Hi."), single("b", "user", "Yes."),
            single("c", "user", "No.")],
        "edges": [{"id": "1", "source": "s", "target": "a"}, {"id": "2", "source": "a", "target": "b"},
            {"id": "3", "source": "a", "target": "c"}],
    })
}

async fn agent(world: &World, fields: Value) -> (String, Value) {
    let mut body = json!({"name": "Desk"});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    let added = world.post("/v1/add-agent", body).await;
    (added["agent_id"].to_string(), added["warning"].clone())
}

async fn generate(world: &World, agent: &str, fields: Value) -> Vec<Value> {
    let mut body = json!({"agent_id": agent});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    let made = world.post(PATH, body).await;
    let humans = made["digital_humans"].as_array().expect("a list");
    humans.iter().map(|made| made["digital_human"].clone()).collect()
}

async fn refuse(world: &World, agent: &str, fields: Value) -> (u16, Value) {
    let mut body = json!({"agent_id": agent});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    let answer = world.send("POST", PATH, &[], body.to_string().into_bytes()).await;
    (answer.status, answer.json()["detail"].clone())
}

#[tokio::test]
async fn attackers_follow_the_profile_of_the_agent() {
    let world = World::new().await;
    let profile = json!({"vector_ids": ["authority_claim", "sympathy_urgency", "partial_info_bluff"],
        "intents": ["move_funds", "read_records"], "exclude": ["sympathy_urgency"]});
    let (desk, warning) = agent(&world, json!({"red_team_profile": profile})).await;
    assert_eq!(warning, Value::Null);
    let of = |human: &Value| {
        let plan = &human["attack_plan"];
        json!([human["attack_vector"], plan["intent"], plan["techniques"]])
    };
    let made: Vec<Value> = generate(&world, &desk, json!({"red_teaming": 3})).await.iter().map(of).collect();
    let (bluff, claim) = ("partial_info_bluff", "authority_claim");
    let expect = json!([
        [bluff, "move_funds", [bluff, claim]],
        [claim, "read_records", [claim, bluff]],
        [bluff, "move_funds", [bluff, claim]],
    ]);
    assert_eq!(json!(made), expect);

    // What the request names counts.
    let batch = json!({"batches": [{"intent": "reset", "vector_id": "sympathy_urgency", "count": 1}]});
    let made = generate(&world, &desk, json!({"red_team_attacks": batch})).await;
    assert_eq!(
        (&made[0]["attack_vector"], &made[0]["attack_plan"]["intent"]),
        (&json!("sympathy_urgency"), &json!("reset"))
    );
    assert_eq!(made[0]["attack_plan"]["techniques"].as_array().map(Vec::len), Some(6));
    let (plain, _) = agent(&world, json!({})).await;
    let made = generate(&world, &plain, json!({"red_teaming": 1})).await;
    assert_eq!(made[0]["attack_plan"]["techniques"].as_array().map(Vec::len), Some(6));
}

#[tokio::test]
async fn profiles_that_cannot_be_followed_are_told() {
    let world = World::new().await;
    for (profile, detail) in [
        (json!({"vector_ids": ["bluff"]}), "Unknown attack vector 'bluff'"),
        (json!({"exclude": ["bluff"]}), "Unknown attack vector 'bluff'"),
        (
            json!({"vector_ids": ["fake_history"]}),
            "red_team_profile of the agent leaves no attack vector for mode VOICE",
        ),
    ] {
        let (desk, _) = agent(&world, json!({"red_team_profile": profile})).await;
        assert_eq!(refuse(&world, &desk, json!({"red_teaming": 1})).await, (400, json!(detail)));
        assert_eq!(generate(&world, &desk, json!({"load_testing": 1})).await.len(), 1, "it is not asked for");
    }
}

#[tokio::test]
async fn the_workflow_of_an_agent_is_played_where_no_scenario_is_named() {
    let world = World::new().await;
    let (desk, warning) = agent(&world, json!({"workflow": graph()})).await;
    assert_eq!(warning, Value::Null);
    let of = |human: &Value| json!([human["name"], human["tag"], human["workflow_v2_id"], human["tested_path"]]);
    let path = |name: &str, last: &str| json!([name, "workflow", null, ["a", last]]);
    for fields in [json!({"workflow_adherence": {}}), json!({"workflow_adherence_v2": {}})] {
        let made: Vec<Value> = generate(&world, &desk, fields).await.iter().map(of).collect();
        assert_eq!(made, [path("Desk - path 1", "b"), path("Desk - path 2", "c")]);
    }
    let three = json!({"workflow_adherence": {"agent": 3}, "load_testing": 1});
    let made: Vec<Value> = generate(&world, &desk, three).await.iter().map(of).collect();
    let expect = [path("Desk - path 1", "b"), path("Desk - path 2", "c"), path("Desk - path 1 (2)", "b")];
    assert_eq!(made[..3], expect);
    let beside = generate(&world, &desk, json!({"workflow_adherence": {}, "load_testing": 1})).await;
    assert_eq!(beside.len(), 1, "what the request asks for counts");

    let (plain, _) = agent(&world, json!({})).await;
    let twice = json!({"nodes": [{"id": "s", "type": "start"}, {"id": "t", "type": "start"}], "edges": []});
    let (broken, _) = agent(&world, json!({"workflow": twice})).await;
    let scenario = json!({"name": "n", "definition": twice}).to_string().into_bytes();
    let rule = world.send("POST", "/v1/scenario", &[], scenario).await.json()["detail"].clone();
    let rule = format!("workflow of the agent: {}", rule.as_str().expect("a text"));
    for (agent, fields, detail) in [
        (&plain, json!({"workflow_adherence": {}}), "Nothing to generate"),
        (&plain, json!({"workflow_adherence": {"agent": 1}}), "Agent has no workflow"),
        (&broken, json!({"workflow_adherence": {"agent": 1}}), &rule),
        (&broken, json!({"workflow_adherence": {}}), &rule),
    ] {
        assert_eq!(refuse(&world, agent, fields).await, (400, json!(detail)));
    }
}

#[tokio::test]
async fn a_save_names_the_members_that_are_not_used() {
    let world = World::new().await;
    let profile = json!({"vector_ids": "all", "severity": "high"});
    let (desk, warning) = agent(&world, json!({"red_team_profile": profile, "workflow": {"steps": []}})).await;
    let expect = "red_team_profile.severity: not used; red_team_profile.vector_ids: not a list of texts, not used; \
                  workflow: not used, since nodes and edges are not arrays of objects";
    let mut named: Vec<&str> = warning.as_str().expect("a text").split("; ").collect();
    named.sort_unstable();
    assert_eq!(named.join("; "), expect);
    let read = world.get(&format!("/v1/agents/{desk}")).await;
    assert_eq!((&read["red_team_profile"], &read["workflow"]), (&profile, &json!({"steps": []})), "stored as given");
    for (fields, expect) in [
        (json!({"name": "Other"}), Value::Null),
        (json!({"workflow": null}), Value::Null),
        (json!({"workflow": {"nodes": [], "edges": [], "id": 7}}), json!("workflow.id: not used")),
        (
            json!({"red_team_profile": {"intents": [1]}}),
            json!("red_team_profile.intents: not a list of texts, not used"),
        ),
    ] {
        let mut body = json!({"agent_id": desk});
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let updated = world.post("/v1/update-agent", body).await;
        assert_eq!(updated["warning"], expect, "{fields}");
    }
}
