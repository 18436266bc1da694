//! An engine that is killed with events on their way: after it was started again everybody is told, under the same ids.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringer::provider::guard::Guard;
use serde_json::{Value, json};

use super::receiver::Receiver;
use crate::program::{KEY, Program, up};

/// An engine in a process of its own.
struct Engine {
    program: Program,
    api: String,
}

impl Engine {
    async fn start(folder: &Path) -> Engine {
        let mut program = Program::start(up(folder).args(["--rtp-ports", "38600-38799"]));
        let api = program.address("http://").await;
        Engine { program, api }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let client = Guard::new(true).client().expect("a client");
        let request = client.post(format!("{}{path}", self.api)).header("X-API-Key", KEY).json(&body);
        let answer = request.send().await.expect("it answers");
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        answer.json().await.expect("JSON")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_engine_loses_no_event() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let receiver = Receiver::start().await;
    receiver.answers(503);
    let engine = Engine::start(folder.path()).await;
    let events = json!({ "url": receiver.url(), "event_types": ["simulation_result_evaluated"] });
    engine.post("/v1/webhooks", events).await;
    // Nobody listens there.
    let agent = engine.post("/v1/add-agent", json!({ "name": "a", "sip_uri": "sip:nobody@127.0.0.1:9" })).await;
    let simulation = json!({ "agent_id": agent["agent_id"].to_string(), "runs_per_digital_human": 8 });
    let simulation = engine.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    let human = json!({ "digital_human": { "name": "Maria", "intent": "Book." }, "simulation_id": simulation });
    engine.post("/v1/create-digital-human", human).await;
    let run = engine.post("/v1/queue-simulation-run", json!({ "simulation_id": simulation })).await;
    let ids = run["simulation_result_ids"].as_array().expect("ids");
    let results: BTreeSet<i64> = ids.iter().map(|id| id.as_str().expect("text").parse().expect("a number")).collect();
    assert_eq!(results.len(), 8);

    let mut event_ids: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    let refused = receiver.next().await;
    engine.program.kill().await;
    receiver.answers(200);
    for last in [false, true] {
        let engine = Engine::start(folder.path()).await;
        while event_ids.len() < if last { results.len() } else { 3 } {
            let came = receiver.next().await;
            event_ids.entry(came.what().1).or_default().insert(came.header("x-svc-event-id").to_owned());
        }
        engine.program.kill().await;
    }
    assert_eq!(event_ids.keys().copied().collect::<BTreeSet<i64>>(), results);
    assert!(event_ids.values().all(|ids| ids.len() == 1), "one event keeps its id: {event_ids:?}");
    assert!(event_ids[&refused.what().1].contains(refused.header("x-svc-event-id")));
}
