//! Conversations in writing, without anybody who holds them.

use ringer::model::status::ResultStatus as S;
use ringer::model::text::AgentMessage;
use serde_json::{Value, json};

use super::{Fixture, extend, refusal, spec};

impl Fixture {
    /// Returns a simulation of an agent that writes.
    pub(super) async fn writers(&self, mut simulation: Value) -> i64 {
        let agent = json!({ "name": "Desk", "mode": "TEXT", "http_webhook": "http://127.0.0.1:9/hook" });
        let agent = self.agent(agent).await;
        extend(&mut simulation, json!({ "agent_id": agent.to_string() }));
        let simulation = self.simulation(simulation).await;
        self.human(json!({ "name": "Ann", "intent": "book" }), &[simulation]).await;
        simulation
    }
}

/// Returns a message of the agent in a conversation.
pub(super) fn hello(id: i64) -> AgentMessage {
    spec(json!({ "type": "message", "simulation_result_id": id.to_string(), "message": "Hello." }))
}

#[tokio::test]
async fn a_conversation_that_was_ended_takes_no_message() {
    let f = Fixture::new().await;
    let simulation = f.writers(json!({})).await;
    for by_hangup in [true, false] {
        let (_, ids) = f.run(simulation, json!({})).await;
        let id = ids[0];
        f.walk(id, &[S::Queued, S::Ready, S::Running]).await;
        let end = async || match by_hangup {
            true => f.service.runs().hangup(&f.caller, id).await.expect("asked").status == S::ConversationEnded,
            false => f.service.runs().end_conversations(&f.caller, &[id]).await.expect("asked").success,
        };
        assert!(!end().await, "nobody holds it");
        f.service.runs().take_message(&f.caller, hello(id)).await.expect("it goes on");
        f.live.calls.lock().push(id);
        assert!(end().await);
        assert_eq!(f.status(id).await, S::Running, "it is asked to end, and has not yet");
        let refused = refusal(f.service.runs().take_message(&f.caller, hello(id)).await);
        assert_eq!(refused, "Conversation has already ended");
    }
}
