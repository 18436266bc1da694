//! Order of written conversations: in a run with a limit, and of an agent that was changed.

use serde_json::{Value, json};
use tokio::task::yield_now;

use super::receiver::Receiver;
use super::talk::{Talk, queue};
use super::world::World;
use crate::json::with;

impl Talk {
    /// Returns the results of the run, in order.
    async fn all(&self) -> Vec<String> {
        let run = self.result().await["simulation_run_id"].clone();
        let run = self.world.get(&format!("/v1/retrieve-simulation-results/{run}")).await;
        let results = run["simulation_results"].as_array().expect("results");
        results.iter().map(|result| result["id"].to_string()).collect()
    }

    /// Looks at another result from now on.
    pub(super) fn turn_to(&mut self, id: &str) {
        self.id = id.to_owned();
        self.feed = self.world.service.feed(id.parse().expect("an id")).expect("calls are made here");
    }

    /// Waits until a text job is held by its lane.
    async fn wait_until_held(&self) {
        let queue = self.world.service.queue();
        while !queue.depth().await.expect("counted").contains(&("text".to_owned(), "held", 1)) {
            yield_now().await;
        }
    }
}

#[tokio::test]
async fn what_is_ready_holds_no_place_and_what_is_written_to_does() {
    let hook = Receiver::new(&[]).await;
    let simulation = json!({
        "max_concurrent": 1, "runs_per_digital_human": 3, "ringing_timeout": 3600, "inactivity_timeout_seconds": 60,
        "max_call_duration": 90, "max_call_duration_units": "seconds",
    });
    let agent = json!({ "http_webhook": hook.url("/hook") });
    let mut talk = Talk::of(World::at_work(None).await, agent, simulation, json!({})).await;
    let ids = talk.all().await;
    for id in &ids {
        talk.turn_to(id);
        talk.until("READY").await;
    }
    talk.turn_to(&ids[1]);
    talk.says("Hello?").await;
    talk.until("RUNNING").await;
    talk.event("message.sent", 1).await;
    // The next one that is written to waits for its place, and loses nothing: no message and no time.
    talk.turn_to(&ids[2]);
    talk.says("Good day.").await;
    talk.wait_until_held().await;
    assert_eq!(talk.result().await["status"], "READY");
    talk.advance(100_000);
    talk.turn_to(&ids[1]);
    assert_eq!(talk.until("COMPLETED").await["end_reason"], "max_duration");
    talk.turn_to(&ids[2]);
    talk.event("message.sent", 1).await;
    let result = talk.result().await;
    assert_eq!((&result["status"], &result["start_time"]), (&json!("RUNNING"), &json!("2026-01-05T09:01:40.000000Z")));
    talk.turn_to(&ids[0]);
    assert_eq!(talk.result().await["status"], "READY");
}

#[tokio::test]
async fn sequential_conversations_in_writing_keep_their_order() {
    let hook = Receiver::new(&[]).await;
    let simulation = json!({ "sequential_calling": true, "runs_per_digital_human": 2 });
    let agent = json!({ "http_webhook": hook.url("/hook") });
    let mut talk = Talk::of(World::at_work(None).await, agent, simulation, json!({})).await;
    let ids = talk.all().await;
    talk.until("READY").await;
    talk.turn_to(&ids[1]);
    talk.when("sequential", |result| result["queue_reason"] == "sequential").await;
    talk.turn_to(&ids[0]);
    talk.says("Hello?").await;
    talk.event("message.sent", 1).await;
    assert_eq!(talk.send(json!({ "message": "Bye.", "end_conversation": true })).await.0, 200);
    talk.turn_to(&ids[1]);
    talk.until("READY").await;
}

#[tokio::test]
async fn a_conversation_is_held_as_its_agent_is_reached_when_it_begins() {
    let hook = Receiver::new(&[]).await;
    let written = json!({ "mode": "TEXT", "connection_type": "HTTP_WEBHOOK", "http_webhook": hook.url("/hook") });
    let spoken = json!({ "mode": "VOICE", "connection_type": "SIP", "sip_uri": "sip:desk@127.0.0.1:9" });
    for (before, after, status, code) in
        [(&spoken, &written, "READY", Value::Null), (&written, &spoken, "NO_CONNECTION", json!("SIP_DIAL_FAILED"))]
    {
        let mut world = World::at_work(None).await;
        let mut id = String::new();
        let queued = async |world: &World| {
            id = queue(world, before.clone(), json!({ "max_concurrent": 1 }), json!({})).await.1;
            let result = world.get(&format!("/v1/retrieve-simulation-result/{id}")).await["simulation_result"].clone();
            let agent = json!({ "agent_id": result["agent_id"].to_string() });
            world.post("/v1/update-agent", with(agent, after.clone())).await;
        };
        world.restart_after(queued).await;
        let feed = world.service.feed(id.parse().expect("an id")).expect("calls are made here");
        let talk = Talk { world, id, feed };
        assert_eq!(talk.until(status).await["error_code"], code);
    }
}
