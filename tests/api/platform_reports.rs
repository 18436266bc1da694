//! Reports of platforms on calls that are over, on a clock that the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringer::config::AdapterTable;
use ringer::model::result::ResultDoc;
use ringer::model::status::ResultStatus as S;
use ringer::service::adapters;
use serde_json::{Value, json};

use super::receiver::Receiver;
use super::world::World;

/// Waits between the requests, in milliseconds: a minute in all.
const WAITS_MS: [i64; 7] = [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000];

/// Returns a world with a call that is over, whose platform is asked for a report on it, and the result's id.
async fn after_a_call(reports: &Receiver) -> (World, i64) {
    let after = json!({ "url": reports.url("/calls/{{call.id}}"), "cost": "/price",
        "tool": { "list": "/tools/*", "name": "/name" },
        "text": { "list": "/said/*", "role": "/role", "text": "/text" } });
    let table = json!({ "preset": "ultravox", "after": after }).as_object().expect("an object was written").clone();
    let made = adapters(&BTreeMap::from([("P4".to_owned(), AdapterTable(table))])).expect("the settings are good");
    let world = World::with_settings(|settings| settings.adapters = Arc::new(made)).await;
    world.call("PATCH", "/v1/integrations", json!({ "P4_api_key": "sesame-4" })).await;
    let agent = world.post("/v1/add-agent", json!({ "name": "Desk", "P4_agent_id": "desk" })).await["agent_id"].clone();
    let simulation = world.post("/v1/create-simulation", json!({ "agent_id": agent.to_string() })).await;
    let simulation = simulation["simulation_id"].clone();
    let body = json!({ "digital_human": { "intent": "A table." }, "simulation_ids": [simulation] });
    world.post("/v1/create-digital-human", body).await;
    let run = world.post("/v1/queue-simulation-run", json!({ "simulation_id": simulation.to_string() })).await;
    let id = run["simulation_result_ids"][0].as_str().expect("a text").parse().expect("an id");
    for step in [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded].windows(2) {
        let named = |doc: &mut ResultDoc| doc.note("platform_call_id", json!("c 1"));
        let conversations = world.service.conversations();
        conversations.advance(world.name("organization"), id, step[0], step[1], named).await.expect("an allowed step");
    }
    (world, id)
}

async fn result(world: &World, id: i64) -> Value {
    world.get(&format!("/v1/retrieve-simulation-result/{id}")).await["simulation_result"].clone()
}

/// Does what is due until nothing is.
async fn work(world: &World) {
    while world.work_off().await > 0 {}
}

/// True if the result is to be judged now.
async fn is_judged(world: &World) -> bool {
    world.service.queue().claim(&["evaluate"], 1).await.expect("jobs are read").is_some()
}

/// Advances the clock by the minute in which the platform is asked, each time just too little and then enough.
async fn pass_a_minute(world: &World, reports: &Receiver) {
    work(world).await;
    for (asked, wait_ms) in WAITS_MS.into_iter().enumerate() {
        for (ms, count) in [(wait_ms - 1, asked + 1), (1, asked + 2)] {
            world.service.clock().advance_ms(ms);
            assert!(!is_judged(world).await, "it waits for its report");
            work(world).await;
            assert_eq!(reports.requests().len(), count);
        }
    }
    assert_eq!(reports.requests()[0].path, "/calls/c%201");
}

/// A platform that never has a report is asked for a minute, and then the result is judged without one.
#[tokio::test]
async fn a_platform_without_a_report_is_asked_for_a_minute() {
    let reports = Receiver::new(&[404; 8]).await;
    let (world, id) = after_a_call(&reports).await;
    pass_a_minute(&world, &reports).await;
    assert!(is_judged(&world).await, "its time is over");
    let over = result(&world, id).await;
    assert_eq!(over["own_faults"][0]["code"], "report_missing", "{over}");
    let warnings = over["metadata"]["warnings"].to_string();
    assert!(
        warnings.contains("after: the platform had no whole report within 60 s: after.url answered 404"),
        "{warnings}"
    );
    world.service.clock().advance_ms(86_400_000);
    work(&world).await;
    assert_eq!(reports.requests().len(), 8, "it is asked no more");
}

/// The part of a report that came within the minute counts.
#[tokio::test]
async fn a_part_of_a_report_counts_when_the_minute_is_over() {
    let part = json!({ "price": 0.25, "tools": [{ "name": "weather" }], "said": [] }).to_string();
    let reports = Receiver::answering(vec![(200, part); 8]).await;
    let (world, id) = after_a_call(&reports).await;
    pass_a_minute(&world, &reports).await;
    assert!(is_judged(&world).await, "its time is over");
    let over = result(&world, id).await;
    assert_eq!(over["own_faults"][0], Value::Null, "{over}");
    let mut db = world.service.store().org(world.name("organization")).read().await.expect("a session");
    let calls = db.get::<ResultDoc>(id).await.expect("it is there").doc.heard_calls;
    assert!(matches!(&calls[..], [call] if call.name == "weather"), "they are there when it is judged: {calls:?}");
    assert_eq!(over["metadata"]["platform_cost"], 0.25, "{over}");
    let warnings = over["metadata"]["warnings"].to_string();
    assert!(warnings.contains("within 60 s: the last answer has nothing for after.text"), "{warnings}");
}
