//! Scenarios, their links and their Digital Humans; what follows from a change of a trait.

use serde_json::{Value, json};

use super::world::World;

fn single(id: &str, speaker: &str, text: &str) -> Value {
    json!({"id": id, "type": "single", "data": {"type": "exact", "speaker": speaker, "message": text}})
}

/// Returns a start, a greeting, a menu with two keys, and an answer behind the first of them.
fn menu(greeting: &str) -> Value {
    json!({
        "nodes": [
            {"id": "start", "type": "start"}, single("hello", "agent", greeting), single("bye", "agent", "Goodbye."),
            {"id": "menu", "type": "options", "data": {"branch_options": [
                {"id": "one", "type": "dtmf", "digits": "1"}, {"id": "two", "type": "exact", "message": "Billing"}]}},
        ],
        "edges": [
            {"id": "1", "source": "start", "target": "hello"}, {"id": "2", "source": "hello", "target": "menu"},
            {"id": "3", "source": "menu", "target": "bye", "sourceHandle": "one"},
        ],
    })
}

async fn scenario(world: &World, body: Value) -> String {
    world.post("/v1/scenario", body).await["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn links_are_replaced_as_a_whole_or_not_at_all() {
    let world = World::with_rows().await;
    let agent: i64 = world.name("agent").parse().expect("an id");
    let other = world.post("/v1/add-agent", json!({"name": "Other"})).await["agent_id"].as_i64().expect("an id");
    let id = scenario(&world, json!({"name": "Menu", "definition": menu("Hi."), "agent_ids": [agent]})).await;
    let path = format!("/v1/scenario/{id}");
    for (body, expect) in [
        (json!({"name": "Renamed"}), json!([agent])),
        (json!({"agent_ids": [other, agent]}), json!([other, agent])),
        (json!({"agent_ids": null}), json!([])),
        (json!({"agent_ids": [agent]}), json!([agent])),
        (json!({"agent_ids": []}), json!([])),
        (json!({"agent_ids": [other]}), json!([other])),
    ] {
        let changed = world.call("PUT", &path, body.clone()).await;
        assert_eq!(changed["agent_ids"], expect, "{body}");
        assert_eq!(changed["name"], "Renamed");
        assert_eq!(changed["definition"]["edges"], menu("Hi.")["edges"], "{body}");
        assert!(changed.get("dh_sync_summary").is_none());
        assert_eq!(world.get(&path).await, changed);
    }
    // A change of which one part is refused changes nothing.
    let broken = json!({"name": "No", "agent_ids": [agent, 4711], "description": "No"});
    let refused = world.send("PUT", &path, &[], broken.to_string().into_bytes()).await;
    assert_eq!((refused.status, refused.json()), (400, json!({"detail": "Agent 4711 not found"})));
    let read = world.get(&path).await;
    assert_eq!((&read["name"], &read["agent_ids"]), (&json!("Renamed"), &json!([other])));
    for (agent, count) in [(agent, 0), (other, 1)] {
        let listed = world.get(&format!("/v1/scenario?agent_id={agent}")).await;
        assert_eq!((&listed["total_count"], &listed["workflows"]), (&json!(count), &listed["scenarios"]));
        assert_eq!(world.get(&format!("/v1/workflow?agent_id={agent}")).await, listed);
    }
    assert_eq!(world.get("/v1/scenario").await["total_count"], 2);
    world.call("DELETE", &format!("/v1/agent/{other}"), Value::Null).await;
    assert_eq!(world.get(&path).await["agent_ids"], json!([]));
}

#[tokio::test]
async fn what_may_be_a_mistake_is_told_for_linked_agents() {
    let world = World::with_rows().await;
    let agent: i64 = world.name("agent").parse().expect("an id");
    let definition = json!({
        "nodes": [
            {"id": "start", "type": "start"}, single("a", "agent", "Hello {{member_id}} and {{age}}."),
            single("b", "agent", "{{age}} {{age}} {{ }}{{"), single("c", "user", "I am {{name}}."),
        ],
        "edges": [{"id": "1", "source": "start", "target": "a"}, {"id": "2", "source": "a", "target": "b"},
            {"id": "3", "source": "a", "target": "c"}],
    });
    let body = json!({"name": "Lint", "definition": definition, "agent_ids": [agent]});
    let made = world.post("/v1/scenario", body.clone()).await;
    let expect = [
        format!("Node 'a' references unknown trait '{{{{age}}}}' of agent {agent}"),
        format!("Node 'b' references unknown trait '{{{{age}}}}' of agent {agent}"),
        format!("Node 'b' references unknown trait '{{{{ }}}}' of agent {agent}"),
        format!("Node 'c' references unknown trait '{{{{name}}}}' of agent {agent}"),
        "Agent node 'b' directly follows agent node 'a'".to_owned(),
        "Path 1 has no user turn".to_owned(),
    ];
    assert_eq!(made["warnings"], json!(expect));
    let path = format!("/v1/scenario/{}", made["id"].as_str().expect("an id"));
    assert_eq!(world.call("PUT", &path, json!({"agent_ids": []})).await["warnings"], json!([]));
    let checked = world.post("/v1/scenario/validate-definition", json!({"definition": definition})).await;
    assert_eq!(checked, json!({"success": true, "warnings": []}));
    let copy = world.post(&format!("{path}/duplicate"), json!({})).await;
    assert_eq!((&copy["agent_ids"], &copy["warnings"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn paths_that_are_not_used_are_told_when_an_agent_is_linked() {
    let world = World::with_rows().await;
    let agent: i64 = world.name("agent").parse().expect("an id");
    let ids: Vec<String> = (0..15).map(|at| format!("b{at}")).collect();
    let branches: Vec<Value> = ids.iter().map(|id| json!({"id": id, "type": "dtmf", "digits": "1"})).collect();
    let menu = |id: &str| json!({"id": id, "type": "options", "data": {"branch_options": branches}});
    let mut edges = vec![json!({"id": "first", "source": "start", "target": "menu"})];
    edges.extend(ids.iter().map(|id| json!({"id": id, "source": "menu", "sourceHandle": id, "target": "other"})));
    // 225 paths.
    let definition = json!({"nodes": [{"id": "start", "type": "start"}, menu("menu"), menu("other")], "edges": edges});
    let cut = json!(["Only the first 200 paths are used"]);
    let made = world.post("/v1/scenario", json!({"name": "Wide", "definition": definition})).await;
    assert_eq!(made["warnings"], json!([]));
    let path = format!("/v1/scenario/{}", made["id"].as_str().expect("an id"));
    assert_eq!(world.call("PUT", &path, json!({"agent_ids": [agent]})).await["warnings"], cut);
    let checked = world.post("/v1/scenario/validate-definition", json!({"definition": definition})).await;
    assert_eq!(checked["warnings"], cut);
}

#[tokio::test]
async fn digital_humans_follow_their_scenario() {
    let world = World::with_rows().await;
    let id = scenario(&world, json!({"name": "Menu", "definition": menu("Hi.")})).await;
    let path = format!("/v1/scenario/{id}");
    let put = async |definition: Value| world.call("PUT", &path, json!({ "definition": definition })).await;
    let none = json!({"updated": 0, "created": 0, "marked_stale": 0, "skipped": 0, "errors": []});
    assert_eq!(put(menu("Hello.")).await["dh_sync_summary"], none, "a scenario without Digital Humans gets none");

    let simulation: i64 = world.name("simulation").parse().expect("an id");
    let human = |tested: Value| {
        json!({"digital_human": {"name": "Menu - path 1", "tag": "workflow", "workflow_v2_id": id, "tested_path": tested,
            "workflow_path_index": 0, "language": "de", "voice_speed": "slow"}, "simulation_ids": [simulation]})
    };
    let kept = world.post("/v1/create-digital-human", human(json!(["hello", "menu:one", "bye"]))).await;
    let gone = world.post("/v1/create-digital-human", human(json!(["hello", "menu:three"]))).await;
    let count = |updated: i64, created: i64, stale: i64, skipped: i64| json!({"updated": updated, "created": created, "marked_stale": stale, "skipped": skipped, "errors": []});
    assert_eq!(put(menu("Welcome.")).await["dh_sync_summary"], count(1, 1, 1, 0));
    assert_eq!(put(menu("Welcome.")).await["dh_sync_summary"], count(0, 0, 0, 3), "the same again changes nothing");

    let read = async |made: &Value| {
        let id = &made["digital_human"]["id"];
        world.get(&format!("/v1/digital-human/{id}")).await["digital_human"].clone()
    };
    let kept_now = read(&kept).await;
    assert_eq!((&kept_now["voice_speed"], &kept_now["tag"]), (&json!("slow"), &json!("workflow")));
    assert_eq!(
        kept_now["enriched_playback"],
        json!([
            {"speaker": "agent", "type": "message", "exact_match_text": "Welcome.", "node_id": "hello"},
            {"speaker": "user", "type": "dtmf", "digits": "1", "node_id": "menu:one"},
            {"speaker": "agent", "type": "message", "exact_match_text": "Goodbye.", "node_id": "bye"},
        ])
    );
    assert_eq!(read(&gone).await["tag"], "workflow stale");
    let listed = world.get(&format!("/v1/digital-humans-by-simulation/{simulation}")).await;
    let made = &listed["digital_humans"][0];
    assert_eq!((&made["name"], &made["language"]), (&json!("Menu - path 2"), &json!("de")));
    assert_eq!((&made["tested_path"], &made["workflow_path_index"]), (&json!(["hello", "menu:two"]), &json!(1)));
    // Its wording is the scenario's.
    let own = json!({"intent": "Something else."});
    let update = format!("/v1/update-digital-human/{}", made["id"]);
    let refused = world.send("PUT", &update, &[], own.to_string().into_bytes()).await.json();
    assert_eq!(refused, json!({"detail": "intent cannot be changed on a workflow digital human"}));

    assert_eq!(
        put(json!({"nodes": [], "edges": []})).await["dh_sync_summary"],
        count(0, 0, 2, 1),
        "a draft has no paths"
    );
    world.call("DELETE", &path, Value::Null).await;
    assert_eq!(read(&kept).await["tag"], "workflow stale", "it stays");
}

#[tokio::test]
async fn digital_humans_are_called_as_their_scenario_is() {
    let world = World::with_rows().await;
    let id = scenario(&world, json!({"name": "Menu", "definition": menu("Hi.")})).await;
    let path = format!("/v1/scenario/{id}");
    let asked = json!({"agent_id": world.name("agent"), "workflow_adherence": {id.as_str(): 3}});
    world.post("/v1/generate-digital-humans", asked).await;
    let own = json!({"name": "Maria", "tag": "workflow", "workflow_v2_id": id, "workflow_path_index": 0,
        "tested_path": ["hello", "menu:one", "bye"]});
    world.post("/v1/create-digital-human", json!({ "digital_human": own })).await;
    let humans = async || {
        let mut humans = world.get("/v1/digital-humans").await["digital_humans"].as_array().expect("a list").clone();
        humans.retain(|human| human["workflow_v2_id"] == id.as_str());
        humans.reverse();
        humans
    };
    let names = async || -> Vec<String> {
        humans().await.iter().map(|human| human["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names().await, ["Menu - path 1", "Menu - path 2", "Menu - path 1 (2)", "Maria"]);
    let renamed = world.call("PUT", &path, json!({"name": "Desk"})).await;
    assert_eq!(renamed.get("dh_sync_summary"), None);
    let desk = ["Desk - path 1", "Desk - path 2", "Desk - path 1 (2)", "Maria"];
    assert_eq!(names().await, desk);
    for human in humans().await {
        for field in ["intent", "success_criteria"] {
            assert!(human[field].as_str().is_some_and(|text| text.contains("'Desk - path ")), "{human}");
        }
    }
    // The same graph has nothing more to say.
    let same = world.call("PUT", &path, json!({"definition": menu("Hi.")})).await;
    assert_eq!((&same["dh_sync_summary"]["skipped"], &same["dh_sync_summary"]["updated"]), (&json!(3), &json!(1)));
    assert_eq!(names().await, desk);
    // Digital Humans whose paths are gone for a while are renamed with the others.
    world.call("PUT", &path, json!({"name": "Line", "definition": {"nodes": [], "edges": []}})).await;
    world.call("PUT", &path, json!({"name": "Front"})).await;
    world.call("PUT", &path, json!({"definition": menu("Hi.")})).await;
    assert_eq!(names().await, ["Front - path 1", "Front - path 2", "Front - path 1 (2)", "Maria"]);
}

#[tokio::test]
async fn digital_humans_follow_a_trait_when_told_to() {
    let world = World::with_rows().await;
    let agent: i64 = world.name("agent").parse().expect("an id");
    let simulation: i64 = world.name("simulation").parse().expect("an id");
    let body = json!({"agent_id": agent, "name": "age", "data_type": "STRING", "default_value": "forty"});
    let id = world.post("/v1/create-customer-trait", body).await["id"].as_str().expect("an id").to_owned();
    let human = async |value: &str, simulations: Value| {
        let given = json!({"trait_name": "age", "trait_data_type": "STRING", "value": value, "is_sip_header": true});
        let body =
            json!({"digital_human": {"intent": "I am {{age}}.", "traits": [given]}, "simulation_ids": simulations});
        world.post("/v1/create-digital-human", body).await["digital_human"]["id"].to_string()
    };
    let (default, number) = (human("forty", json!([simulation])).await, human("41", json!([simulation])).await);
    let (word, stranger) = (human("old", json!([simulation])).await, human("forty", json!([])).await);
    let change = json!({"name": "years", "data_type": "NUMBER", "default_value": 50});
    let path = format!("/v1/update-customer-trait/{id}");
    let sync = |sync: bool, mut body: Value| {
        body["sync_existing"] = json!(sync);
        body
    };
    let read = async |id: &str| {
        let human = world.get(&format!("/v1/digital-human/{id}")).await["digital_human"].clone();
        (human["intent"].clone(), human["traits"][0].clone())
    };
    let before = read(&default).await;
    world.call("PUT", &path, sync(false, json!({"default_value": "fifty"}))).await;
    assert_eq!(read(&default).await, before, "nobody follows unasked");
    world.call("PUT", &path, json!({"default_value": "forty"})).await;
    world.call("PUT", &path, sync(true, change)).await;
    let years = |value: i64| {
        let given = json!({"trait_name": "years", "trait_data_type": "NUMBER", "value": value, "is_sip_header": true});
        (json!("I am {{years}}."), given)
    };
    assert_eq!(read(&default).await, years(50));
    assert_eq!(read(&number).await, years(41));
    assert_eq!(read(&word).await, years(50));
    assert_eq!(read(&stranger).await, before, "it calls another agent, or none");
}
