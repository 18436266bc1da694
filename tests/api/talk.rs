//! A text conversation of a world at work, on a clock that the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringer::events::Feed;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::results::members;
use super::world::World;
use crate::json::with;

/// Time limit of one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes an agent, a simulation and a Digital Human, queues a run and answers simulation and result.
pub(crate) async fn queue(world: &World, agent: Value, simulation: Value, human: Value) -> (String, String) {
    let agent = world.post("/v1/add-agent", with(json!({ "name": "Desk", "mode": "TEXT" }), agent)).await;
    let agent = agent["agent_id"].to_string();
    let body = with(json!({ "agent_id": agent, "name": "Booking" }), simulation);
    let simulation = world.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let human = with(json!({ "name": "Ann", "intent": "I want a table. For two." }), human);
    let human = world.post("/v1/create-digital-human", json!({ "digital_human": human })).await;
    let human = human["digital_human"]["id"].as_i64().expect("an id");
    let path = format!("/v1/simulation/{simulation}/add-digital-humans");
    world.post(&path, json!({ "digital_human_ids": [human] })).await;
    let body = json!({ "simulation_id": simulation.to_string() });
    let answer = world.post("/v1/queue-simulation-run", body).await;
    let result = answer["simulation_result_ids"][0].as_str().expect("a result").to_owned();
    (simulation.to_string(), result)
}

/// One conversation of a world at work.
pub(crate) struct Talk {
    pub world: World,
    pub id: String,
    pub feed: Arc<Feed>,
}

impl Talk {
    pub(crate) async fn of(world: World, agent: Value, simulation: Value, human: Value) -> Talk {
        let (_, id) = queue(&world, agent, simulation, human).await;
        let feed = world.service.feed(id.parse().expect("an id")).expect("calls are made here");
        Talk { world, id, feed }
    }

    pub(crate) async fn result(&self) -> Value {
        let path = format!("/v1/retrieve-simulation-result/{}", self.id);
        self.world.get(&path).await["simulation_result"].clone()
    }

    pub(crate) async fn part(&self, part: &str) -> Value {
        self.world.get(&format!("/v1/simulation-result/{}/{part}", self.id)).await
    }

    /// Returns names and bodies of the files of the evidence.
    pub(crate) async fn evidence(&self) -> BTreeMap<String, Vec<u8>> {
        members(&self.archive().await)
    }

    /// Returns the archive of the evidence as it is sent.
    pub(crate) async fn archive(&self) -> Vec<u8> {
        let path = format!("/v1/simulation-result/{}/evidence", self.id);
        self.world.send("GET", &path, &[], Vec::new()).await.body
    }

    /// Waits for a state and answers the result.
    pub(crate) async fn until(&self, status: &str) -> Value {
        self.when(status, |result| result["status"] == status).await
    }

    /// Waits until something holds of the result and answers it.
    pub(crate) async fn when(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut changes = self.feed.changes();
        let came = async {
            loop {
                changes.mark_unchanged();
                let result = self.result().await;
                if holds(&result) {
                    return result;
                }
                changes.changed().await.expect("the feed lives");
            }
        };
        let Ok(result) = timeout(PATIENCE, came).await else { panic!("{what}: {}", self.result().await) };
        result
    }

    /// Waits until `count` events of a name have happened.
    pub(crate) async fn event(&self, name: &str, count: usize) {
        let mut changes = self.feed.changes();
        let came = async {
            loop {
                changes.mark_unchanged();
                if self.feed.events_from(0).0.iter().filter(|happening| happening.event == name).count() >= count {
                    return;
                }
                changes.changed().await.expect("the feed lives");
            }
        };
        if timeout(PATIENCE, came).await.is_err() {
            panic!("{count} {name}: {:?} {}", self.feed.events_from(0).0, self.result().await);
        }
    }

    /// Sends something as the agent; returns status and answer.
    pub(crate) async fn send(&self, mut body: Value) -> (u16, Value) {
        body["simulation_result_id"] = self.id.clone().into();
        let bytes = body.to_string().into_bytes();
        let answer = self.world.send("POST", "/v1/send-http-text-message", &[], bytes).await;
        (answer.status, answer.json())
    }

    pub(crate) async fn says(&self, text: &str) {
        let (status, answer) = self.send(json!({ "message": text })).await;
        assert_eq!((status, &answer["end_conversation"]), (200, &json!(false)), "{text}");
    }

    pub(crate) fn advance(&self, ms: i64) {
        self.world.service.clock().advance_ms(ms);
    }

    /// Moves the clock to the next attempt, at most so far away.
    pub(crate) async fn retry(&self, within_ms: i64) {
        let clock = self.world.service.clock().clone();
        timeout(PATIENCE, clock.advance_to_wait(within_ms)).await.expect("somebody waits");
    }

    pub(crate) fn statuses(result: &Value) -> Vec<&str> {
        let history = result["status_history"].as_array().expect("a history");
        history.iter().map(|change| change["status"].as_str().expect("a status")).collect()
    }
}
