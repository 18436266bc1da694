//! Production calls of agents that ask for redaction (`redact_pii`), where they are judged more than once, or changed
//! before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::provider::testing::{Reply, ScriptedModel};
use ringer_base::testing::WebServer;
use serde_json::{Value, json};

use super::call_logs::{body, stereo};
use super::world::World;

/// Returns a world whose agent asks for it.
async fn with_private_agent() -> World {
    let world = World::with_rows().await;
    world.post("/v1/update-agent", json!({ "agent_id": world.name("agent"), "redact_pii": true })).await;
    world
}

/// Returns the transcript of a call in which the caller says a number from 2.5 to 4.0 s.
fn transcript() -> Value {
    json!([
        { "start_offset_ms": 500, "end_offset_ms": 2000, "speaker": "AGENT", "utterance": "Welcome." },
        { "start_offset_ms": 2500, "end_offset_ms": 4000, "speaker": "USER", "utterance": "My number is 98765." },
    ])
}

/// Brings a call in; its id.
async fn queue(world: &World, call: Value) -> String {
    let queued = world.post("/v1/evaluate", body(world, call)).await;
    queued["call_id"].as_str().expect("an id").to_owned()
}

async fn log(world: &World, id: &str) -> Value {
    world.get(&format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone()
}

#[tokio::test]
async fn a_recording_that_comes_after_the_redaction_is_silenced_too() {
    let asked = AtomicUsize::new(0);
    let server = WebServer::start(move |_: &str| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
        _ => WebServer::file(&stereo()),
    });
    let server = server.await.expect("loopback has a free port");
    let world = with_private_agent().await;
    let call = json!({
        "recording_url": server.url("/call.wav"), "multichannel": true, "transcript": transcript(),
    });
    let id = queue(&world, call).await;
    world.work_off().await;
    assert_eq!(log(&world, &id).await["status"], "INCOMPLETED");
    world.post(&format!("/v1/re-evaluate/{id}"), Value::Null).await;
    world.work_off().await;
    let read = log(&world, &id).await;
    assert_eq!((&read["status"], &read["error_message"]), (&json!("COMPLETED"), &Value::Null), "{read}");
    let kept = std::fs::read(world.service.settings().data.join("call-logs").join(&id).join("recording"));
    let kept = kept.expect("the recording");
    // 12 s of two channels.
    let (before, after) = (stereo()[44..].to_vec(), kept[kept.len() - 12_000 * 64..].to_vec());
    let [from, to] = [2450, 4050].map(|ms| ms * 64);
    assert!(after[from..to].iter().all(|byte| *byte == 0), "the number is not heard");
    assert!(before[..from] == after[..from] && before[to..] == after[to..], "the rest is as it was");
}

#[tokio::test]
async fn what_is_added_to_a_call_that_waits_leaves_its_words_for_the_judge() {
    let world = with_private_agent().await;
    let id = queue(&world, json!({ "transcript": transcript() })).await;
    let more = json!({ "events": [{ "title": "call 77889900", "start_offset_ms": 20 }] });
    world.call("PUT", &format!("/v1/update-log/{id}"), more).await;
    assert_eq!(log(&world, &id).await["events"], Value::Null, "not shown before it is judged");
    let whole = json!({
        "goal_success": true, "goal_reasoning": "It was noted.", "hallucination": false, "hallucination_reasoning": "No.",
        "redundancy": false, "redundancy_reasoning": "No.", "call_summary": "The number is 98765.",
        "sentiment_scores": { "positive": 0.5, "neutral": 0.5, "negative": 0 }, "sentiment_score": 0.4,
    });
    let words = json!({
        "name": "Which", "description": "Which number?", "response_type": "qualitative", "agent_ids": [world.name("agent")],
    });
    world.post("/v1/create-custom-metric", words).await;
    let verdict = json!({ "reasoning": "It is so.", "value": "yes" });
    let answer = json!({ "reasoning": "It is so.", "value": "98765, she said." });
    let model =
        Arc::new(ScriptedModel::new([whole, verdict, answer].map(|said| Reply::says(&[&said.to_string()])).into()));
    world.work_off_with(Some(model.clone())).await;
    assert!(format!("{:?}", model.requests()).contains("My number is 98765."), "judged as it was");
    let read = log(&world, &id).await;
    assert_eq!(read["status"], "COMPLETED");
    assert!(read["events"][0]["title"].as_str().is_some_and(|title| title.starts_with("call [")), "{read}");
    assert!(!read.to_string().contains("98765") && !read.to_string().contains("77889900"), "{read}");
}

#[tokio::test]
async fn a_recording_whose_private_words_are_elsewhere_is_not_kept() {
    let world = with_private_agent().await;
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(stereo()));
    let (day_ms, day_ns) = (1_767_600_000_000i64, 1_767_600_000_000_000_000i64);
    // Overflow in samples, and with what is silenced around.
    let edge = i64::MAX / 16 - 100;
    for [from, to] in [
        [day_ms, day_ms + 1500],
        [day_ns, day_ns + 1_500_000_000],
        [edge, edge + 200],
        [i64::MIN, i64::MIN + 1500],
        [i64::MAX - 1, i64::MAX],
    ] {
        let mut words = transcript();
        (words[1]["start_offset_ms"], words[1]["end_offset_ms"]) = (json!(from), json!(to));
        let call = json!({ "recording_base64": data, "multichannel": true, "transcript": words });
        let id = queue(&world, call).await;
        world.work_off().await;
        let read = log(&world, &id).await;
        let message = "the recording was not kept: private words have times at which there is nothing in it";
        assert_eq!((&read["status"], &read["error_message"]), (&json!("COMPLETED"), &json!(message)), "{from}: {read}");
        assert!(!read.to_string().contains("98765"), "{from}: {read}");
        assert!(!world.service.settings().data.join("call-logs").join(&id).exists(), "{from}");
    }
}
