//! Contents of the evidence of a written conversation, and parts that are deleted.

use ringer::service::verify;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::receiver::Receiver;
use super::talk::Talk;
use super::texts::reply;
use super::world::World;

/// Returns a text in the form of the log.
fn in_log_form(text: &[u8]) -> String {
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes sha256 {hash}", text.len())
}

fn text(member: &[u8]) -> String {
    String::from_utf8(member.to_vec()).expect("text")
}

#[tokio::test]
async fn requests_are_logged_without_their_words() {
    let last = reply(json!({ "message": "Bye.", "end_conversation": true }));
    let answers = vec![(503, "busy".to_owned()), (200, String::new()), last.clone()];
    let hook = Receiver::answering(answers).await;
    let agent = json!({ "http_webhook": hook.url("/hook?key=tell-nobody"), "http_webhook_sync_reply": true });
    let world = World::at_work(None).await;
    let began = world.service.clock().now_ms();
    let talk = Talk::of(world, agent, json!({}), json!({})).await;
    hook.wait_for(1).await;
    talk.retry(1000).await;
    talk.event("message.sent", 1).await;
    talk.says("For how many?").await;
    talk.until("COMPLETED").await;
    let members = talk.evidence().await;
    let sent: Vec<String> = hook.requests().iter().map(|request| in_log_form(&request.body)).collect();
    let (url, later) = (hook.url("/hook"), began + 1000);
    let expect = [
        format!("{began} sent POST {url} 503, body {}, answer {}, 0 ms", sent[0], in_log_form(b"busy")),
        format!("{later} sent POST {url} 200, body {}, answer {}, 0 ms", sent[1], in_log_form(b"")),
        format!("{later} received text {}", in_log_form(b"For how many?")),
        format!("{later} sent POST {url} 200, body {}, answer {}, 0 ms", sent[2], in_log_form(last.1.as_bytes())),
    ];
    assert_eq!(text(&members["http.log"]).lines().collect::<Vec<_>>(), expect);
    assert!(text(&members["hashes.sha256"]).contains("  http.log\n"));
}

#[tokio::test]
async fn evidence_is_signed_by_keys_that_are_told() {
    let hook = Receiver::answering(vec![reply(json!({ "message": "Bye.", "end_conversation": true }))]).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let talk = Talk::of(World::at_work(None).await, agent, json!({}), json!({})).await;
    talk.until("COMPLETED").await;
    let world = &talk.world;
    let keys = world.get("/v1/evidence-keys").await["keys"].clone();
    assert_eq!((keys.as_array().map(Vec::len), &keys[0]["ended_at"]), (Some(1), &Value::Null), "{keys}");
    let public = |key: &Value| vec![hex_bytes(key["public_key"].as_str().expect("a key"))];
    let archive = talk.archive().await;
    let good = verify(&archive[..], &public(&keys[0]), None).expect("it is read");
    assert!(good.broken.is_empty() && good.is_known, "{good:?}");
    assert_eq!(talk.archive().await, archive, "the same archive whenever it is asked for");
    let chain = world.get("/v1/simulation-run/1/evidence-chain").await;
    assert_eq!(chain["links"][0]["manifest_sha256"].as_str(), good.manifest_sha256.as_deref());
    let chain = chain.to_string();
    assert!(verify(chain.as_bytes(), &public(&keys[0]), None).expect("it is read").broken.is_empty());
    // Another key signs from now on; what the first one has signed is still checked by it.
    let answer = world.send("POST", "/v1/evidence-keys", &[("x-api-key".into(), "$write".into())], Vec::new()).await;
    assert_eq!(answer.status, 403);
    let second = world.call("POST", "/v1/evidence-keys", Value::Null).await;
    let keys = world.get("/v1/evidence-keys").await["keys"].clone();
    assert_eq!((&keys[0], keys[1]["ended_at"].is_string()), (&second, true), "{keys}");
    let again = talk.archive().await;
    assert!(verify(&again[..], &public(&second), None).expect("it is read").broken.is_empty());
    assert!(!verify(&again[..], &public(&keys[1]), None).expect("it is read").broken.is_empty());
    assert!(verify(&archive[..], &public(&keys[1]), None).expect("it is read").broken.is_empty());
}

fn hex_bytes(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("digits")).collect()
}

#[tokio::test]
async fn what_is_private_is_not_in_the_evidence() {
    let hook = Receiver::answering(vec![reply(json!({ "message": "Bye.", "end_conversation": true }))]).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true, "redact_pii": true });
    let fact =
        |name: &str, kind: &str, value: Value| json!({ "trait_name": name, "trait_data_type": kind, "value": value });
    let human = json!({
        "intent": "My SSN is 123-45-6789. I am ABCXYZ.",
        "traits": [fact("member", "STRING", json!("ABCXYZ")), fact("pin", "NUMBER", json!(98765))],
        "expected_tool_calls": [{ "name": "find", "parameters": { "member": "ABCXYZ", "pin": 98765 } }],
    });
    let simulation = json!({ "inactivity_timeout_seconds": 98766 });
    let talk = Talk::of(World::at_work(None).await, agent, simulation, human).await;
    let human = talk.until("COMPLETED").await["digital_human_id"].clone();
    let members = talk.evidence().await;
    assert!(!members.contains_key("http.log"), "a hash tells a short text to whoever guesses");
    for (name, member) in &members {
        let member = String::from_utf8_lossy(member);
        assert!(!member.contains("ABCXYZ") && !member.contains("123-45-6789"), "{name}: {member}");
    }
    let config: Value = serde_json::from_slice(&members["config.json"]).expect("JSON");
    let kept = &config["digital_human"];
    assert_eq!(kept["intent"], "My SSN is [ID]. I am [TRAIT].");
    assert_eq!((&kept["traits"][0]["value"], &kept["traits"][1]["value"]), (&json!("[TRAIT]"), &json!("[TRAIT]")));
    let called = json!({ "member": "[TRAIT]", "pin": "[TRAIT]" });
    assert_eq!(kept["expected_tool_calls"][0]["parameters"], called);
    assert_eq!(config["simulation"]["inactivity_timeout_seconds"], 98766, "a number that steers");
    // Nobody knows any more what its traits were.
    talk.world.call("DELETE", &format!("/v1/digital-human/{human}"), Value::Null).await;
    assert_eq!(talk.evidence().await["config.json"], members["config.json"]);
}

#[tokio::test]
async fn what_is_changed_afterwards_changes_neither_settings_nor_verdict() {
    let call = json!({ "name": "book", "parameters": { "seats": 2 } });
    let answer = json!({ "message": "Booked.", "tool_calls": [call], "end_conversation": true });
    let hook = Receiver::answering(vec![reply(answer)]).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let human = json!({ "success_criteria": "It is booked.", "expected_tool_calls": [call] });
    let talk = Talk::of(World::at_work(None).await, agent, json!({}), human).await;
    let first = talk.until("COMPLETED").await;
    assert_eq!(first["outcome"], "passed");
    let config = talk.evidence().await["config.json"].clone();
    let held: Value = serde_json::from_slice(&config).expect("JSON");
    let names = (&held["agent"]["name"], &held["digital_human"]["name"], &held["simulation"]["name"]);
    assert_eq!(names, (&json!("Desk"), &json!("Ann"), &json!("Booking")));
    let world = &talk.world;
    world.post("/v1/update-agent", json!({ "agent_id": first["agent_id"].to_string(), "name": "New" })).await;
    world.call("PUT", &format!("/v1/simulation/{}", first["simulation_id"]), json!({ "name": "New" })).await;
    world.call("DELETE", &format!("/v1/digital-human/{}", first["digital_human_id"]), Value::Null).await;
    assert_eq!(talk.evidence().await["config.json"], config);
    let id = talk.id.parse().expect("an id");
    let given = world.service.evaluations().to_judge(world.name("organization"), id).await.expect("it is there");
    assert_eq!(given.success_criteria, "It is booked.");
    world.post(&format!("/v1/re-evaluate-simulation-result/{id}"), Value::Null).await;
    let old = &first["evaluations"][0]["id"];
    let again = talk.when("another evaluation", |result| result["evaluations"][0]["id"] != *old).await;
    assert_eq!((&again["outcome"], &again["tool_calls"]), (&json!("passed"), &first["tool_calls"]));
}
