//! Agents that follow the definitions of their platforms, on a clock that the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringer::config::AdapterTable;
use ringer::service::{Settings, adapters, definitions};
use serde_json::{Map, Value, json};

use super::receiver::Receiver;
use super::world::{Answer, World};

fn table(value: Value) -> AdapterTable {
    AdapterTable(value.as_object().cloned().unwrap_or_else(Map::new))
}

/// Sets up an adapter of P4 whose preset brings a row, with the platform's address at `url`, and a source `desk`.
fn follow(settings: &mut Settings, url: &str) {
    let platforms = BTreeMap::from([("P4".to_owned(), table(json!({ "preset": "elevenlabs_agents" })))]);
    let made = adapters(&platforms).expect("the settings are good");
    let desk = json!({ "platform": "P4", "url": format!("{url}/desk"), "prompt": "/text" });
    let sources = BTreeMap::from([
        ("P4".to_owned(), table(json!({ "url": format!("{url}/agents/{{{{agent.id}}}}") }))),
        ("desk".to_owned(), table(desk)),
    ]);
    settings.definitions = Arc::new(definitions(&sources, &made).expect("the settings are good"));
    settings.adapters = Arc::new(made);
}

/// Returns a world that follows the definitions at a far side, and an agent of the platform.
async fn world_of(far: &Receiver) -> (World, i64) {
    let world = World::with_settings(|settings| follow(settings, &far.url(""))).await;
    world.call("PATCH", "/v1/integrations", json!({ "P4_api_key": "sesame-4" })).await;
    let agent = world.post(
        "/v1/add-agent",
        json!({ "name": "Desk", "P4_agent_id": "d 1", "system_prompt": "Old.",
        "simulation_notifications": { "webhook_url": far.url("/notices") } }),
    );
    let id = agent.await["agent_id"].as_i64().expect("an id");
    (world, id)
}

fn definition(prompt: &str, version: &str) -> (u16, String) {
    let config = json!({ "agent": { "prompt": { "prompt": prompt } } });
    (200, json!({ "name": "Front desk", "version_id": version, "conversation_config": config }).to_string())
}

async fn sync(world: &World, targets: Value) -> Value {
    let body = json!({ "targets": targets }).to_string().into_bytes();
    let answer: Answer = world.send("POST", "/v1/internal/run-autosync", &[], body).await;
    assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

async fn versions(world: &World, agent: i64) -> Vec<Value> {
    let versions = world.get(&format!("/v1/agents/{agent}/versions")).await;
    versions.as_array().expect("a list").clone()
}

/// Does what is due until nothing is.
async fn work(world: &World) {
    while world.work_off().await > 0 {}
}

#[tokio::test]
async fn a_changed_definition_becomes_a_version_and_the_same_one_does_not() {
    let answers =
        vec![definition("New.", "v7"), definition("New.", "v8"), (200, json!({ "text": "Own." }).to_string())];
    let far = Receiver::answering(answers).await;
    let (world, agent) = world_of(&far).await;
    let target = json!({ "agent_id": agent, "provider": "P4" });
    let taken = sync(&world, json!([target])).await;
    assert_eq!(taken, json!({ "status": "accepted", "targets": 1, "skipped": [] }));
    assert_eq!(far.requests().len(), 0, "the request waits for nothing");
    work(&world).await;
    let asked = far.requests();
    assert_eq!(
        (asked[0].path.as_str(), asked[0].headers["xi-api-key"].as_bytes()),
        ("/agents/d%201", &b"sesame-4"[..])
    );
    let found = versions(&world, agent).await;
    let (new, old) = (&found[0], &found[1]);
    assert_eq!((&new["version"], &new["prompt_text"], &new["labels"]), (&json!(2), &json!("New."), &json!(["latest"])));
    assert_eq!(new["commit_message"], "Synchronized from P4 (name Front desk, version v7)");
    let whence = json!({ "provider": "P4", "name": "Front desk", "version": "v7" });
    assert_eq!(new["metadata"]["autosync"], whence);
    assert_eq!((&old["prompt_text"], &old["labels"]), (&json!("Old."), &json!(["production"])));
    sync(&world, json!([target])).await;
    work(&world).await;
    assert_eq!((far.requests().len(), versions(&world, agent).await.len()), (2, 2), "the prompt is the same");
    sync(&world, json!([{ "agent_id": agent, "provider": "desk" }])).await;
    work(&world).await;
    assert_eq!(far.requests()[2].path, "/desk");
    let newest = versions(&world, agent).await[0].clone();
    assert_eq!((&newest["prompt_text"], &newest["commit_message"]), (&json!("Own."), &json!("Synchronized from desk")));
}

#[tokio::test]
async fn targets_that_cannot_be_begun_are_named_with_the_reason() {
    let far = Receiver::new(&[]).await;
    let (world, agent) = world_of(&far).await;
    let other = world.post("/v1/add-agent", json!({ "name": "Other" })).await["agent_id"].clone();
    let target = |agent: &Value, provider: &str| json!({ "agent_id": agent, "provider": provider });
    let agent = json!(agent);
    let targets = [target(&agent, "P9"), target(&json!(999_999), "P4"), target(&other, "P4"), target(&agent, "none")];
    let taken = sync(&world, json!(targets)).await;
    let skip = |agent: &Value, provider: &str, reason: &str| json!({ "agent_id": agent, "provider": provider, "reason": reason });
    let expect = [
        skip(&agent, "P9", "Neither [autosync.P9] nor [adapters.P9] is set up"),
        skip(&json!(999_999), "P4", "Agent not found"),
        skip(&other, "P4", "P4_agent_id is not set"),
        skip(&agent, "none", "Unknown provider 'none'"),
    ];
    assert_eq!(taken, json!({ "status": "accepted", "targets": 0, "skipped": expect }));
    world.call("PATCH", "/v1/integrations", json!({ "P4_api_key": null })).await;
    let taken = sync(&world, json!([target(&agent, "P4")])).await;
    assert_eq!(taken["skipped"][0]["reason"], "P4_api_key is not set");
    work(&world).await;
    assert_eq!(far.requests().len(), 0);
}

/// A busy platform is asked again after 5 s and 30 s; one that refuses is not.
#[tokio::test]
async fn a_busy_platform_is_asked_again() {
    let far = Receiver::answering(vec![(503, String::new()), (429, String::new()), definition("New.", "v7")]).await;
    let (world, agent) = world_of(&far).await;
    sync(&world, json!([{ "agent_id": agent, "provider": "P4" }])).await;
    work(&world).await;
    for (wait_ms, count) in [(4999, 1), (1, 2), (29_999, 2), (1, 3)] {
        world.service.clock().advance_ms(wait_ms);
        work(&world).await;
        assert_eq!(far.requests().len(), count);
    }
    assert_eq!(versions(&world, agent).await[0]["prompt_text"], "New.");
}

#[tokio::test]
async fn a_definition_that_is_not_read_is_told_without_secrets() {
    for (answers, expect) in [
        (vec![(401, "sesame-4".to_owned())], "url answered 401: the credentials are refused"),
        (vec![(302, String::new())], "url answered 302"),
        (vec![(200, json!({ "secret": "sesame-4" }).to_string())], "url: its answer has nothing at"),
        (vec![(200, "x".repeat(3 << 20)); 3], "url was not answered: the answer is longer than 2097152 bytes"),
    ] {
        let count = answers.len();
        let far = Receiver::answering(answers).await;
        let (world, agent) = world_of(&far).await;
        sync(&world, json!([{ "agent_id": agent, "provider": "P4" }])).await;
        for _ in 0..count {
            work(&world).await;
            world.service.clock().advance_ms(60_000);
        }
        work(&world).await;
        let notice = far.requests().last().expect("it is told").clone();
        assert_eq!((notice.path.as_str(), far.requests().len()), ("/notices", count + 1), "{expect}");
        let told = notice.json();
        assert_eq!((&told["kind"], &told["data"]["agent_id"]), (&json!("autosync_failed"), &json!(agent)));
        let text = told["text"].as_str().expect("a text");
        assert!(text.contains(expect) && text.contains("P4"), "{text}");
        assert!(!told.to_string().contains("sesame"), "{told}");
        assert_eq!(versions(&world, agent).await.len(), 1);
    }
}

/// A sync that was begun is done by the next process, too.
#[tokio::test]
async fn a_sync_outlives_the_process_that_took_it_in() {
    let far = Receiver::answering(vec![definition("New.", "v7")]).await;
    let url = far.url("");
    let mut world = World::at_work_with(None, |settings| follow(settings, &url)).await;
    world.call("PATCH", "/v1/integrations", json!({ "P4_api_key": "sesame-4" })).await;
    let agent = world.post("/v1/add-agent", json!({ "name": "Desk", "P4_agent_id": "d" })).await["agent_id"].clone();
    world
        .restart_after(async |world| {
            let taken = sync(world, json!([{ "agent_id": agent, "provider": "P4" }])).await;
            assert_eq!((&taken["targets"], far.requests().len()), (&json!(1), 0));
        })
        .await;
    far.wait_for(1).await;
}
