//! Engines that share a database and hear each other by a server of NATS that the test starts.

mod calls;
mod server;
mod sides;
mod trust;

use std::future::Future;
use std::time::Duration;

use ringer::clock::Clock;
use ringer::config::Bus;
use ringer::service::Settings;
use ringer::store::Location;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::server::Server;
use crate::calls::house::{House, Watch};
use crate::peers::Peer;
use crate::program::PATIENCE;

/// Waits for something that is to come, generously.
async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("{what} does not come"))
}

/// Returns an engine that makes calls, with a bus or without.
async fn engine(location: &Location, name: &str, bus: Option<&Bus>) -> House {
    let set = |settings: &mut Settings| settings.engine = name.to_owned();
    let house = House::sharing(location.clone(), Clock::Real, 4, set).await;
    if let Some(bus) = bus {
        house.talk(bus).await;
    }
    house
}

/// Returns an engine that answers requests alone, and makes no call.
async fn onlooker(location: &Location, name: &str, bus: Option<&Bus>) -> House {
    let house = engine(location, name, bus).await;
    house.workers.stop_claiming();
    house
}

/// Asks an engine for a call that lasts until somebody ends it; returns the id of its result.
async fn long_call(house: &House, peer: &Peer) -> String {
    let agent = json!({ "sip_uri": format!("sip:bob@{}", peer.sip) });
    let (_, ids) = house.queue(agent, json!({ "max_call_duration": 100 }), &[json!({ "name": "Ann" })]).await;
    ids[0].clone()
}

/// Waits until the call of a result is up.
async fn running(house: &House, id: &str) {
    until("the call", async || house.result(id).await["status"] == "RUNNING").await;
}

/// Returns the next `count` events that the timeline keeps.
async fn events(watch: &mut Watch, count: usize) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    while events.len() < count {
        let event = soon("an event", watch.next()).await.expect("the stream goes on");
        events.extend(is_kept(&event).then_some(event));
    }
    events
}

fn is_kept((_, data): &(String, Value)) -> bool {
    data["seq"].is_i64()
}

/// Returns the events that the timeline keeps, of a stream that ends.
async fn rest(watch: Watch) -> Vec<(String, Value)> {
    soon("the end", watch.rest()).await.into_iter().filter(is_kept).collect()
}

/// Returns the answer of an engine with its status.
async fn answer(house: &House, method: &str, path: &str) -> (u16, Value) {
    let (status, body) = house.ask(method, path, Value::Null).await;
    let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looks = async {
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        while !holds().await {
            pace.tick().await;
        }
    };
    soon(what, looks).await;
}

/// Returns the text that an engine answers.
async fn answer_text(house: &House, path: &str) -> String {
    let (status, body) = house.ask("GET", path, Value::Null).await;
    let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
    assert_eq!(status, 200, "{path}");
    String::from_utf8(body.to_vec()).expect("text")
}
