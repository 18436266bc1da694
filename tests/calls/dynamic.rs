//! Agents whose address is asked for when they are dialled.

use ringer::provider::post::signature;
use serde_json::{Value, json};

use super::desk::Agent;
use super::house::House;
use crate::api::receiver::Receiver;

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_tells_where_its_agent_is() {
    let (house, agent) = (House::new().await, Agent::start().await);
    let answer = json!({ "sip_uri": agent.address, "metadata": { "region": "eu", "codec": "none" } }).to_string();
    let owner = Receiver::answering(vec![(200, answer)]).await;
    let url = owner.url("/where");
    let hook = json!({ "dynamic_sip_webhook_url": url, "http_webhook": url });
    let (run, ids) = house.queue(hook, json!({ "max_call_duration": 4 }), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    assert_eq!(result["metadata"]["region"], "eu");
    assert_ne!(result["metadata"]["codec"], "none", "what the engine notes comes first");
    let asked = owner.requests();
    assert_eq!(asked.len(), 1);
    let body = asked[0].json();
    assert_eq!((&body["test_result_id"], &body["nonce"]), (&json!(ids[0]), &json!(ids[0])));
    assert_eq!(body["experiment_run_id"].to_string(), run);
    assert!(body["agent_id"].is_i64() && body["organization_id"].is_string(), "{body}");
    assert!(body["timestamp"].as_str().is_some_and(|at| at.ends_with('Z') && at.contains('T')), "{body}");
    // The agent has a signing key: it has an http_webhook.
    let agent_id = body["agent_id"].to_string();
    let key = house.post("/v1/get-http-webhook-key", json!({ "agent_id": agent_id })).await;
    let key = key["signing_key"].as_str().expect("a key").to_owned();
    assert_eq!(asked[0].headers["x-svc-signature"], signature(&key, &asked[0].body).as_str());
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_tells_nothing_is_to_blame() {
    let house = House::new().await;
    let owner = Receiver::answering(vec![(200, json!({ "hello": "world" }).to_string()); 3]).await;
    let (_, ids) =
        house.queue(json!({ "dynamic_sip_webhook_url": owner.url("/where") }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let outcome = (&result["status"], &result["error_code"], &result["error_owner"]);
    assert_eq!(
        outcome,
        (&json!("NO_CONNECTION"), &json!("DYNAMIC_ENDPOINT_FAILED"), &json!("agent_owner")),
        "{result}"
    );
    let asked = owner.requests();
    assert_eq!(asked.len(), 3);
    assert!(asked[0].headers.get("x-svc-signature").is_none(), "no key");
    house.stop().await;
}
