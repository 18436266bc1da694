//! Two official clients in the room server of the tests: what they do there is what they do elsewhere.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::server::{Behaviour, KEY, RoomServer, SECRET};
use crate::peers::python::PythonServer;

/// Starts an official client in the room.
pub(crate) async fn official(server: &RoomServer, identity: &str, flags: &[&str]) -> PythonServer {
    official_at(&server.url, identity, flags).await
}

/// Starts an official client at this server, which may be another one.
pub(crate) async fn official_at(url: &str, identity: &str, flags: &[&str]) -> PythonServer {
    let mut args = vec![url, KEY, SECRET, identity];
    args.extend(flags);
    PythonServer::start("room.py", &args, "http://").await
}

fn has(seen: &Value, list: &str, wanted: &Value) -> bool {
    seen[list].as_array().is_some_and(|list| list.contains(wanted))
}

/// Audio, data and news go both ways between official clients: over two connections each, and over one.
#[tokio::test(flavor = "multi_thread")]
async fn official_clients_find_the_server_good_enough() {
    let server = RoomServer::with(Behaviour { knows_joint: true, ..Behaviour::default() }).await;
    let agent = official(&server, "agent-1", &[]).await;
    let flags = ["--standard", "--joint", "--tone", "500", "--hear", "880"];
    let caller = official(&server, "caller-1", &flags).await;
    for (peer, who) in [(&agent, "caller-1"), (&caller, "agent-1")] {
        let seen = peer.sees(|seen| seen["share"].as_f64() > Some(0.8) && has(seen, "participants", &json!(who))).await;
        assert!(seen["frames"].as_u64() > Some(50), "{seen}");
    }
    for (from, to, who) in [(&agent, &caller, "agent-1"), (&caller, &agent, "caller-1")] {
        from.tell("/data", json!({ "bytes": 15 << 10, "topic": "a", "reliable": true })).await;
        to.sees(|seen| has(seen, "data", &json!([who, "a", 15 << 10, true]))).await;
        // Some of these may be lost, not all.
        for _ in 0..20 {
            from.tell("/data", json!({ "bytes": 100, "topic": "b", "reliable": false })).await;
        }
        to.sees(|seen| has(seen, "data", &json!([who, "b", 100, false]))).await;
        from.tell("/digit", json!({ "code": 11, "digit": "#" })).await;
        to.sees(|seen| has(seen, "digits", &json!("#"))).await;
        from.tell("/text", json!({ "topic": "lk.transcription", "pieces": ["Good ", "day."] })).await;
        to.sees(|seen| has(seen, "texts", &json!([who, "lk.transcription", "Good day."]))).await;
    }
    agent.post("/mute").await;
    caller.sees(|seen| seen["muted"].as_u64() == Some(1)).await;
    // The signalling is lost and taken up.
    server.cut_line("agent-1");
    agent
        .sees(|seen| {
            seen["states"]
                .as_array()
                .is_some_and(|states| states.last() == Some(&json!("CONN_CONNECTED")) && states.len() >= 3)
        })
        .await;
    assert!(server.room.resumes.load(Ordering::Relaxed) >= 1);
    agent.post("/leave").await;
    caller.sees(|seen| has(seen, "left", &json!("agent-1"))).await;
}
