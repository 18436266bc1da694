//! Lines of agents that are tested: numbers pass the rules of their trunk, and a kind that cannot be tested says so.

use serde_json::{Value, json};

use crate::calls::house::House;

/// Returns steps of a test of an agent that is not stored: the name of the last one, its code and its message.
async fn last_step(house: &House, agent: Value) -> (bool, String, Value, String) {
    let mut body = json!({ "name": "Desk" });
    body.as_object_mut().expect("an object").extend(agent.as_object().cloned().unwrap_or_default());
    let tested = house.post("/v1/agents/check", json!({ "agent": body })).await;
    let last = tested["steps"].as_array().and_then(|steps| steps.last()).expect("a step").clone();
    let message = last["message"].as_str().unwrap_or_default().to_owned();
    (tested["ok"] == true, last["name"].as_str().unwrap_or_default().to_owned(), last["code"].clone(), message)
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_pass_the_trunk_and_kinds_that_cannot_be_tested_say_so() {
    let house = House::with_trunks(
        "[sip.trunks.near]\nhost = '127.0.0.1'\nport = 9\nnumbers = ['+15550001111']\nallowed_prefixes = ['+1']\n\
         denied_prefixes = ['+1900']",
    )
    .await;
    for (agent, ok, step, code, text) in [
        (json!({ "phone_number": "+4930123456" }), false, "settings", json!("DIAL_PREFIX_REFUSED"), "allowed_prefixes"),
        (json!({ "phone_number": "+19005550000" }), false, "settings", json!("DIAL_PREFIX_REFUSED"), "denied_prefixes"),
        (
            json!({ "mode": "TEXT", "connection_type": "SMS", "phone_number": "+15550001112" }),
            true,
            "settings",
            Value::Null,
            "cannot be tested without sending one",
        ),
        (
            json!({ "mode": "EMAIL", "email_address": "desk@example.com" }),
            true,
            "settings",
            Value::Null,
            "cannot be tested without sending one",
        ),
        (
            json!({ "type": "OUTBOUND", "connection_type": "PHONE", "phone_number": "+15550001112" }),
            true,
            "settings",
            Value::Null,
            "the agent calls by itself",
        ),
    ] {
        let (found, name, found_code, message) = last_step(&house, agent.clone()).await;
        assert_eq!((found, name.as_str(), &found_code), (ok, step, &code), "{agent}: {message}");
        assert!(message.contains(text), "{agent}: {message}");
    }
    // Neither platform is set up here: the setting that is missing is named, and nothing is dialled.
    for agent in [json!({ "P1_agent_name": "desk" }), json!({ "P2_agent_name": "desk" })] {
        let (ok, name, code, _) = last_step(&house, agent.clone()).await;
        assert!(!ok && ["settings", "session"].contains(&name.as_str()) && code.is_string(), "{agent}: {name} {code}");
    }
    let runs = house.call("GET", "/v1/simulation-runs", Value::Null).await;
    assert_eq!(runs["simulation_runs"], json!([]), "nothing is kept");
    house.stop().await;
}
