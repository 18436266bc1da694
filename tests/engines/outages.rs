//! The database is away for longer than a lease: calls go on, and their results come out as they were.

use axum::body::to_bytes;
use ringer::clock::Clock;
use ringer::config::Secret;
use ringer::service::{EngineRecord, EngineState};
use ringer::store::Location;
use ringer::store::db::Database;
use serde_json::{Value, json};

use super::proxy::Proxy;
use crate::calls::house::House;
use crate::databases::{self, Server};
use crate::peers::Peer;
use crate::program::look_until;

/// Length of a lease.
const LEASE_MS: i64 = 3000;

/// Returns an engine of this name, for so many calls at once.
pub(super) async fn engine(name: &str, proxy: &Proxy, schema: &str, clock: Clock, most: usize) -> House {
    let name = name.to_owned();
    House::sharing(proxy.location(schema), clock, most, |settings| {
        (settings.engine, settings.lease_ms) = (name, LEASE_MS);
    })
    .await
}

/// Runs a test beside a server with an empty schema `shared`.
pub(super) fn beside<Done: Future<Output = ()>>(test: impl FnOnce(std::path::PathBuf, &'static str) -> Done) {
    let server = Server::start(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let location = Location::Server(Secret::new(server.url()));
        databases::run(&location, "CREATE SCHEMA shared").await;
        test(server.folder().to_owned(), "shared").await;
    });
}

/// Queues results of calls to `peer`, each of `most_s` seconds.
pub(super) async fn queue(house: &House, peer: &Peer, count: usize, most_s: u32) -> Vec<String> {
    let agent = json!({ "sip_uri": format!("sip:bob@{}", peer.sip) });
    house.queue(agent, json!({ "max_call_duration": most_s }), &vec![json!({ "name": "Ann" }); count]).await.1
}

/// Waits until a result is as wanted, as `by` sees it.
pub(super) async fn until(by: &House, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    look_until(async || by.result(id).await, wanted).await
}

/// Waits until an engine sees those of these names so.
pub(super) async fn until_seen(by: &House, names: &[&str], state: EngineState) {
    let look = async || by.service.engines().list().await.map(|list| list.engines);
    let is_so = |engines: &[EngineRecord]| {
        names.iter().all(|name| engines.iter().any(|one| one.name == *name && one.state == state))
    };
    look_until(look, |seen| seen.as_ref().is_ok_and(|engines| is_so(engines))).await.expect("it was read");
}

/// Waits until no engine's lease holds any more, by the server's clock, for a second.
async fn until_leases_end(server: &Database) {
    let sql = "SELECT COUNT(*) FROM engines WHERE lease_ms > EXTRACT(EPOCH FROM clock_timestamp()) * 1000 - 1000";
    let look = async || {
        let mut link = server.reader().await.expect("it can be read");
        let row = link.row(sql, &[]).await.expect("it can be read").expect("a row");
        row.try_get::<i64, _>(0).expect("a number")
    };
    look_until(look, |count| *count == 0).await;
}

#[test]
fn calls_go_on_while_the_database_is_away_and_their_results_come_out_as_they_were() {
    beside(async |folder, schema| {
        let url = format!("postgres://ringer@{}/postgres", folder.display().to_string().replace('/', "%2F"));
        let proxy = Proxy::start(folder).await;
        let first = engine("first", &proxy, schema, Clock::correctable(), 8).await;
        let second = engine("second", &proxy, schema, Clock::correctable(), 8).await;
        for house in [&first, &second] {
            until_seen(house, &["first", "second"], EngineState::Up).await;
        }
        let peer = Peer::answering(6);
        // One that ends while the database is away, and one that is in its middle then; of each engine.
        let mut ids = queue(&first, &peer, 3, 2).await;
        ids.extend(queue(&second, &peer, 3, 12).await);
        for id in &ids {
            until(&first, id, |result| result["status"] == "RUNNING").await;
        }
        let server = Location::Server(Secret::new(format!("{url}?options[search_path]={schema}")));
        let server = Database::open(server).await.expect("the server itself is there");
        proxy.sever();
        until_leases_end(&server).await;
        let (status, body) = first.ask("GET", &format!("/v1/retrieve-simulation-result/{}", ids[0]), Value::Null).await;
        let body = to_bytes(body, 1 << 16).await.expect("it is read");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, &body["detail"]), (503, &json!("The database does not answer")));
        assert!(first.engine.live_calls() + second.engine.live_calls() >= 3, "the long ones go on");
        proxy.mend();
        for id in &ids {
            let result = until(&second, id, |result| result["outcome"].is_string()).await;
            assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
            assert_eq!(result["end_reason"], "max_duration", "{result}");
        }
        let placed = [&first, &second].map(|house| house.engine.counters().calls().placed as usize);
        assert_eq!(placed[0] + placed[1], ids.len(), "each is called once: {placed:?}");
        peer.end();
        tokio::join!(first.stop(), second.stop());
    });
}

#[test]
fn engines_whose_clocks_are_wrong_take_nothing_from_each_other() {
    beside(async |folder, schema| {
        let proxy = Proxy::start(folder).await;
        let early = engine("early", &proxy, schema, Clock::wrong_by(-300_000), 3).await;
        let late = engine("late", &proxy, schema, Clock::wrong_by(300_000), 3).await;
        for house in [&early, &late] {
            until_seen(house, &["early", "late"], EngineState::Up).await;
            assert!(house.service.clock().now_ms().abs_diff(Clock::Real.now_ms()) < 5000, "it goes by the database");
        }
        let peer = Peer::answering(8);
        let mut ids = queue(&early, &peer, 4, 5).await;
        ids.extend(queue(&late, &peer, 4, 5).await);
        for id in &ids {
            let result = until(&early, id, |result| result["outcome"].is_string()).await;
            assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
        }
        let placed = [&early, &late].map(|house| house.engine.counters().calls().placed as usize);
        assert_eq!(placed[0] + placed[1], ids.len(), "each is called once: {placed:?}");
        assert!(placed.iter().all(|count| *count > 0), "both work: {placed:?}");
        peer.end();
        tokio::join!(early.stop(), late.stop());
    });
}
