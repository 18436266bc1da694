//! Agents whose address is asked for when they are dialled.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use ringer::provider::post::signature;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::desk::Agent;
use super::house::House;

type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A server that answers this to every post, until the test ends.
async fn owner(answer: Value) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let url = format!("http://{}/where", listener.local_addr().expect("it is bound"));
    let seen = Seen::default();
    let sees = seen.clone();
    let respond = move |request: Request| {
        let (sees, answer) = (sees.clone(), answer.to_string());
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, 1 << 20).await.expect("a body");
            sees.lock().unwrap_or_else(PoisonError::into_inner).push((parts.headers, body));
            (StatusCode::OK, answer)
        }
    };
    ringer::tasks::Tasks::new().spawn("owner", async move {
        let _ = axum::serve(listener, Router::new().fallback(respond)).await;
    });
    (url, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_tells_where_its_agent_is() {
    let (house, agent) = (House::new().await, Agent::start().await);
    let (url, seen) = owner(json!({ "sip_uri": agent.address, "metadata": { "region": "eu", "codec": "none" } })).await;
    let hook = json!({ "dynamic_sip_webhook_url": url, "http_webhook": url });
    let (run, ids) = house.queue(hook, json!({ "max_call_duration": 4 }), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    assert_eq!(result["metadata"]["region"], "eu");
    assert_ne!(result["metadata"]["codec"], "none", "what the engine notes comes first");
    let asked = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(asked.len(), 1);
    let (headers, bytes) = &asked[0];
    let body: Value = serde_json::from_slice(bytes).expect("JSON");
    assert_eq!((&body["test_result_id"], &body["nonce"]), (&json!(ids[0]), &json!(ids[0])));
    assert_eq!(body["experiment_run_id"].to_string(), run);
    assert!(body["agent_id"].is_i64() && body["organization_id"].is_string(), "{body}");
    assert!(body["timestamp"].as_str().is_some_and(|at| at.ends_with('Z') && at.contains('T')), "{body}");
    // The agent has a signing key: it has an http_webhook.
    let agent_id = body["agent_id"].to_string();
    let key = house.post("/v1/get-http-webhook-key", json!({ "agent_id": agent_id })).await;
    let key = key["signing_key"].as_str().expect("a key").to_owned();
    assert_eq!(headers["x-svc-signature"], signature(&key, bytes).as_str());
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_tells_nothing_is_to_blame() {
    let house = House::new().await;
    let (url, seen) = owner(json!({ "hello": "world" })).await;
    let (_, ids) = house.queue(json!({ "dynamic_sip_webhook_url": url }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let told = (&result["status"], &result["error_code"], &result["error_owner"]);
    assert_eq!(told, (&json!("NO_CONNECTION"), &json!("DYNAMIC_ENDPOINT_FAILED"), &json!("agent_owner")), "{result}");
    assert_eq!(seen.lock().unwrap_or_else(PoisonError::into_inner).len(), 3);
    assert!(seen.lock().unwrap_or_else(PoisonError::into_inner)[0].0.get("x-svc-signature").is_none(), "no key");
    house.stop().await;
}
