//! sipp as the agent that calls, and a Digital Human that waits for it: what callers do before, in and around a call.

use serde_json::{Value, json};

use super::house::House;
use super::runs::statuses;
use crate::json::with;
use crate::peers::Peer;

/// Returns an agent that calls and a Digital Human that it reaches at `number` for `most_s` seconds. Returns the id of
/// the result that waits.
pub(super) async fn waiting(house: &House, agent: Value, human: Value, number: &str, most_s: u32) -> String {
    let agent = with(json!({ "type": "OUTBOUND", "connection_type": "SIP" }), agent);
    let human = with(json!({ "phone_number": format!("+{number}") }), human);
    let (_, ids) = house.queue(agent, json!({ "max_call_duration": most_s }), &[human]).await;
    house.watch(&ids[0]).await.until("READY").await;
    ids[0].clone()
}

/// Returns a port that takes RTP which nobody looks at.
pub(super) fn media() -> (std::net::UdpSocket, u16) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = socket.local_addr().expect("it is bound").port();
    (socket, port)
}

/// A caller by `fixtures/sip/NAME.xml`, and the result that it calls.
pub(super) struct Caller {
    name: &'static str,
    peer: Peer,
    id: String,
    _media: std::net::UdpSocket,
}

impl Caller {
    pub(super) async fn start(house: &House, name: &'static str, number: &str) -> Caller {
        let id = waiting(house, json!({}), json!({}), number, 30).await;
        let (media, port) = media();
        let peer = Peer::calling_user(name, number, house.engine.sip_address(), "", port);
        Caller { name, peer, id, _media: media }
    }

    /// Waits for the end. Returns what sipp logged, the result, and the names of its events.
    pub(super) async fn end(self, house: &House) -> (String, Value, Vec<String>) {
        let log = self.peer.end();
        let events = house.events(&self.id).await;
        assert!(statuses(&events).contains(&"DISPATCHED"), "{}: {:?}", self.name, statuses(&events));
        let names = events.iter().map(|(name, _)| name.clone()).collect();
        (log, house.result(&self.id).await, names)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_do_what_they_may() {
    let house = House::new().await;
    let mut callers = Vec::new();
    for (name, number, logged) in [
        ("caller", "15550002001", &["answered"][..]),
        ("caller_without_offer", "15550002002", &["answered"]),
        ("caller_reliable", "15550002003", &["1 INVITE taken", "2 PRACK taken"]),
        ("caller_hasty", "15550002004", &["answered twice"]),
        ("caller_brief", "15550002005", &["answered"]),
        ("caller_tells", "15550002006", &["told"]),
    ] {
        callers.push((Caller::start(&house, name, number).await, logged));
    }
    for (caller, logged) in callers {
        let name = caller.name;
        let (log, result, events) = caller.end(&house).await;
        for text in logged {
            assert!(log.contains(text), "{name}: {text} is missing in {log}");
        }
        assert_eq!(result["conversation_ended_by"], "AGENT", "{name}: {result}");
        if name == "caller_tells" {
            assert!(events.iter().any(|event| event == "dtmf_received"), "{events:?}");
            let warnings = result["metadata"]["warnings"].to_string();
            assert!(warnings.contains("a SIP MESSAGE of 19 bytes (text/plain)"), "{warnings}");
        }
    }
    house.stop().await;
}

/// A caller proves to know the password, and one that does not know it is refused and heard by nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_asked_for_the_password() {
    let house = House::new().await;
    let login = json!({ "sip_username": "ringer", "sip_password": "secret" });
    let id = waiting(&house, login, json!({}), "15550002011", 30).await;
    for (password, expect) in [("guess", "refused"), ("secret", "answered")] {
        assert_eq!(house.result(&id).await["status"], "READY", "nobody was let in before {password}");
        let (_socket, port) = media();
        let peer = Peer::calling_user("caller", "15550002011", house.engine.sip_address(), password, port);
        assert_eq!(peer.end().trim(), expect, "{password}");
    }
    let events = house.events(&id).await;
    assert!(statuses(&events).contains(&"DISPATCHED"), "{:?}", statuses(&events));
    house.stop().await;
}

/// The call is not taken, and the caller gives up.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_gives_up() {
    let house = House::new().await;
    let step = json!({ "step": 1, "intent": "Hide.", "direction": "outbound", "unresponsive": true,
        "response_window_seconds": 3 });
    let id = waiting(&house, json!({}), json!({ "journey_steps": [step] }), "15550002021", 30).await;
    let (_socket, port) = media();
    let peer = Peer::calling_user("caller_gives_up", "15550002021", house.engine.sip_address(), "", port);
    assert_eq!(peer.end().trim(), "cancelled");
    house.events(&id).await;
    let result = house.result(&id).await;
    assert_eq!(result["metadata"]["unanswered_calls"].as_array().map(Vec::len), Some(1), "{result}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_is_told_what_can_be_done() {
    let house = House::new().await;
    let peer = Peer::calling_user("options", "anybody", house.engine.sip_address(), "", media().1);
    assert_eq!(peer.end().trim(), "answered");
    house.stop().await;
}
