//! Agents behind voice pipelines through the API: a run, what its result tells, and the codes of what goes wrong.

use serde_json::{Value, json};

use super::answers::{Answering, fixed_answer, serve};
use super::pipelines::bot;
use crate::calls::house::House;

/// Returns a run of one call to a pipeline with these stored credentials. Returns the id of its result, and the result.
async fn run(house: &House, agent: Value, stored: Value) -> (String, Value) {
    house.call("PATCH", "/v1/integrations", stored).await;
    let mut fields = json!({ "connection_type": "P2" });
    fields.as_object_mut().expect("an object").extend(agent.as_object().expect("an object").clone());
    let (_, ids) = house.queue(fields, json!({ "max_call_duration": 7 }), &[json!({})]).await;
    house.events(&ids[0]).await;
    (ids[0].clone(), house.result(&ids[0]).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_pipelines_that_refuse() {
    let cases: Vec<(Answering, &str, &str, &str)> = vec![
        (fixed_answer(401, ""), "P2_AUTH_FAILED", "agent_owner", "it answered 401"),
        (fixed_answer(429, ""), "CUSTOMER_CONCURRENCY_LIMIT", "provider", "it answered 429"),
        (fixed_answer(404, ""), "P2_CONNECTION_FAILED", "provider", "it answered 404"),
        (fixed_answer(200, "<html>"), "P2_CONNECTION_FAILED", "provider", "its answer is no JSON"),
    ];
    let house = House::new().await;
    for (answering, code, owner, why) in cases {
        let base = serve(answering).await;
        let (_, result) = run(&house, json!({}), json!({ "P2_base_url": base })).await;
        let outcome = (&result["status"], &result["error_code"], &result["error_owner"]);
        assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!(code), &json!(owner)), "{result}");
        assert!(result["error_message"].as_str().is_some_and(|text| text.contains(why)), "{result}");
    }
    let (_, result) = run(&house, json!({}), json!({ "P2_base_url": Value::Null })).await;
    let stored = (&result["status"], &result["error_code"], &result["error_owner"]);
    assert_eq!(stored, (&json!("NO_CONNECTION"), &json!("MISSING_P2_INTEGRATION"), &json!("agent_owner")), "{result}");
    house.stop().await;
}

/// A start address asks for a name; a media room that it hands out is another kind of connection.
#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_starts() {
    let base = serve(fixed_answer(200, r#"{"room_url":"https://rooms.example/a","token":"t"}"#)).await;
    let settings = format!("[p2]\nstart_url = '{base}'");
    let house = House::with_trunks(&settings).await;
    for (agent, code, owner) in [
        (json!({}), "NO_P2_AGENT_NAME", "agent_owner"),
        (json!({ "P2_agent_name": "desk" }), "CONNECTION_NOT_SUPPORTED", "engine"),
    ] {
        let (_, result) = run(&house, agent, json!({ "P2_base_url": base })).await;
        let outcome = (&result["status"], &result["error_code"], &result["error_owner"]);
        assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!(code), &json!(owner)), "{result}");
    }
    house.stop().await;
}

/// A run whose pacing is judged: with the machine to itself.
mod alone {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_run_over_a_pipeline() {
        let (bot, house) = (bot(&["--short-tone"]).await, House::understanding("Good morning.").await);
        let agent = json!({
            "P2_agent_name": "desk", "P2_agent_configuration": { "voice": "calm" }, "P2_room_properties": { "n": 1 },
        });
        let (id, result) = run(&house, agent, json!({ "P2_base_url": bot.base, "P2_api_key": "sesame" })).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
        let metadata = &result["metadata"];
        let known = (&metadata["transport"], &metadata["codec"], &metadata["sip_call_id"].is_string());
        assert_eq!(known, (&json!("WebRTC, UDP/TLS/RTP/SAVPF"), &json!("OPUS"), &true), "{metadata}");
        let call = &result["tool_calls"][0];
        assert_eq!(call["name"], "weather", "{result}");
        let quality = &result["engine_quality"];
        assert_eq!((&quality["trusted"], &quality["lost_packets"]), (&json!(true), &json!(0)), "{quality}");
        assert!(quality["pacing_p99_ms"].as_f64() > Some(0.0), "{quality}");
        let request = &bot.look().await["requests"][0]["request_data"];
        let expect = json!({
            "voice": "calm", "simulation_result_id": id, "X-Simulation-Result-Id": id, "room_properties": { "n": 1 },
        });
        assert_eq!(*request, expect);
        let log = house.folder.path().join("results").join(&id).join("pipeline.log");
        let log = std::fs::read_to_string(log).expect("it was written");
        assert!(log.contains("connected to") && !log.contains("sesame"), "{log}");
        let ladder = house.call("GET", &format!("/v1/simulation-result/{id}/ladder"), Value::Null).await;
        let entries = ladder["entries"].as_array().expect("a list");
        assert!(entries.iter().any(|entry| entry["protocol"] == "WEBRTC"), "{ladder}");
        house.stop().await;
    }
}
