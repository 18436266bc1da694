//! Clients without a key, with a wrong one, and with one that was revoked.

use std::time::Duration;

use futures_util::StreamExt as _;
use ringer::api::{ConnectionLimits, Setup, serve};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::patience::rest;
use super::world::World;

/// Time limit of what is not to be late.
const PATIENCE: Duration = Duration::from_secs(60);

fn with(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_body_that_needs_no_key_is_small() {
    let world = World::new().await;
    let long = json!({ "token": "x".repeat(17_000) }).to_string().into_bytes();
    let answer = world.send("POST", "/v1/page-session", &[with("x-api-key", "")], long.clone()).await;
    assert_eq!(answer.status, 413, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!(world.send("POST", "/v1/add-agent", &[], long).await.status, 422, "a key may send more");
}

#[tokio::test]
async fn health_tells_strangers_up_or_down_alone() {
    let world = World::new().await;
    let ask = async |key: &str| world.send("GET", "/health/deps", &[with("x-api-key", key)], Vec::new()).await;
    for key in ["", "$read", "$write"] {
        let found = ask(key).await.json();
        assert_eq!((&found["status"], &found["deps"]["database"]["status"]), (&json!("ok"), &json!("ok")), "{key}");
        for (name, part) in found["deps"].as_object().expect("the parts") {
            assert_eq!((&part["detail"], &part["latency_ms"]), (&Value::Null, &Value::Null), "{key} {name}");
        }
        assert_eq!(found["trunks"], json!([]));
    }
    let whole = ask("$admin").await.json();
    assert_eq!(whole["retention"], json!({ "results_days": 0, "recordings_days": 0, "disk_quota_mb": 0 }));
    assert!(whole["deps"]["database"]["latency_ms"].is_number() && whole["deps"]["queue"]["latency_ms"].is_number());
    assert_eq!(ask("rk_wrong").await.status, 401);
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked() {
    let world = World::with_rows().await;
    let human = json!({ "digital_human": { "name": "Bea" }, "simulation_id": "$simulation" });
    world.send("POST", "/v1/create-digital-human", &[], human.to_string().into_bytes()).await;
    let run = world.post("/v1/queue-simulation-run", json!({ "simulation_id": "$simulation" })).await;
    let (run, result) = (&run["simulation_run_id"], &run["simulation_result_ids"][0]);
    let made = world.post("/v1/api-keys", json!({ "scope": "read" })).await;
    let key = [with("x-api-key", made["api_key"].as_str().expect("a key"))];
    let paths =
        [format!("/v1/simulation-result/{}/events", text(result)), format!("/v1/simulation-run/{}/events", text(run))];
    let mut streams = Vec::new();
    for path in &paths {
        let mut pieces = world.stream(path, &key).await;
        assert!(pieces.next().await.is_some(), "{path} has begun");
        streams.push(pieces);
    }
    let path = format!("/v1/api-keys/{}", made["id"].as_str().expect("an id"));
    assert_eq!(world.send("DELETE", &path, &[], Vec::new()).await.status, 204);
    for pieces in streams {
        // What was ready before is still told; an open stream would never end.
        timeout(PATIENCE, pieces.for_each(async |_| {})).await.expect("it ends");
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let stop = CancellationToken::new();
    let connections = ConnectionLimits { total: 10, per_address: 2, behind_proxy: false };
    let setup = Setup { connections, ..Setup::default() };
    let serving = serve(listener, world.service.clone(), setup, stop.clone().cancelled_owned());
    let testing = async {
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(b"GET /health HTTP/1.1\r\nhost: ringer\r\n\r\n").await.expect("it reads");
            assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
            open.push(stream);
        }
        let mut stream = TcpStream::connect(address).await.expect("the kernel takes it");
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: ringer\r\n\r\n").await.expect("it is taken");
        let refused = rest(&mut stream).await;
        assert!(
            refused.starts_with("HTTP/1.1 503") && refused.ends_with("{\"detail\":\"Too many connections\"}"),
            "{refused}"
        );
        // A place is free when a connection has ended, which the server notices a moment later.
        drop(open.pop());
        loop {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            let sent = stream.write_all(b"GET /health HTTP/1.1\r\nhost: ringer\r\n\r\n").await;
            if sent.is_ok() && answer(&mut stream).await.starts_with("HTTP/1.1 200") {
                break;
            }
        }
        stop.cancel();
    };
    let (served, ()) = tokio::join!(serving, testing);
    served.expect("stops cleanly");
}

/// Returns what comes first; empty where the connection breaks.
async fn answer(stream: &mut TcpStream) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut bytes = [0; 4096];
    let length = stream.read(&mut bytes).await.unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}
