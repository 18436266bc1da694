//! Text conversations over HTTP, from the queue to the verdict.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringer::provider::post::signature;
use ringer::provider::testing::{Reply, ScriptedModel};
use ringer::provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::receiver::Receiver;
use super::talk::{Talk, queue};
use super::world::World;
use crate::json::with;

/// Returns a world with a text agent and the results of a run of it.
pub(super) async fn with_texts() -> World {
    let mut world = World::with_rows().await;
    for (name, agent) in [
        ("sms", json!({ "name": "Sms", "phone_number": "+15550002222" })),
        ("texts", json!({ "name": "Texts", "mode": "TEXT", "http_webhook": "http://127.0.0.1:9/hook" })),
        ("calls", json!({ "name": "Calls", "mode": "VOICE", "sip_uri": "sip:bob@127.0.0.1:5099" })),
    ] {
        let (simulation, result) = queue(&world, agent, json!({}), json!({})).await;
        let names = match name {
            "texts" => ["http_simulation", "http_result"],
            "calls" => ["call_simulation", "call_result"],
            _ => ["sms_simulation", "sms_result"],
        };
        world.call_it(names[0], simulation);
        world.call_it(names[1], result);
    }
    let agent = json!({ "name": "Off", "mode": "TEXT", "http_webhook": "http://127.0.0.1:9/hook" });
    let (simulation, ended) = queue(&world, agent, json!({}), json!({})).await;
    world.call_it("other_simulation", simulation);
    world.post(&format!("/v1/simulation-result/{ended}/hangup"), Value::Null).await;
    world.call_it("ended", ended);
    world
}

/// Checks the record of a conversation that has booked a table.
fn check_booked(result: &Value) {
    let walk = ["INITIALIZING", "QUEUED", "READY", "RUNNING", "CONVERSATION_ENDED", "EVALUATING", "COMPLETED"];
    assert_eq!(Talk::statuses(result), walk);
    assert_eq!((&result["end_reason"], &result["conversation_ended_by"]), (&json!("dh_end_call"), &json!("USER")));
    assert_eq!((&result["duration_ms"], &result["duration"]), (&json!(3500), &json!(4)));
    assert_eq!(result["latency"], json!([1.5, 1.0, 0.5]));
    assert_eq!((&result["engine_quality"], &result["audio_url"]), (&Value::Null, &Value::Null));
    let call = json!([{ "name": "book", "expected": [{ "parameters": { "seats": 2 }, "output": null }],
        "actual": [{ "parameters": { "seats": 2 }, "output": "ok", "start_offset_ms": 2000 }] }]);
    assert_eq!(result["tool_calls"], call);
    let metric = |name: &str| {
        let metrics = result["metrics"].as_array().expect("metrics");
        metrics.iter().find(|metric| metric["name"] == name).map_or(Value::Null, |metric| metric["value"].clone())
    };
    assert_eq!((metric("avg_agent_latency"), metric("avg_filler_ignored_latency")), (json!(1.0), json!(1.167)));
    assert_eq!((metric("num_turns"), metric("interface")), (json!(4), json!("WEB")));
    assert_eq!((metric("expected_tool_calls_met"), metric("agent_speak_percentage")), (json!(true), Value::Null));
    assert_eq!(result["metadata"]["transport"], "HTTP webhook");
}

/// Checks the transcript of a conversation that has booked a table.
async fn check_transcript(talk: &Talk) {
    let entries = talk.part("transcript").await["entries"].clone();
    let lines: Vec<(&str, &str, i64)> = entries
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| {
            assert_eq!((&entry["source"], &entry["words"]), (&json!("message"), &json!([])));
            assert_eq!(entry["start_offset_ms"], entry["end_offset_ms"]);
            let text = |name: &str| entry[name].as_str().expect("a text");
            (text("speaker"), text("utterance"), entry["start_offset_ms"].as_i64().expect("a place"))
        })
        .collect();
    let expect = [
        ("AGENT", "Good day, how can I help?", 0),
        ("USER", "I want a table.", 0),
        ("AGENT", "One moment.\nFor how many?", 1500),
        ("USER", "For two.", 2000),
        ("AGENT", "Your table is booked.", 3000),
        ("USER", "Thank you, goodbye.", 3000),
        ("AGENT", "Goodbye!", 3500),
    ];
    assert_eq!(lines, expect);
}

#[tokio::test]
async fn an_agent_that_posts_its_messages() {
    let (hook, notified) = (Receiver::new(&[]).await, Receiver::new(&[]).await);
    let world = World::at_work(None).await;
    let body =
        json!({ "url": notified.url("/told"), "event_types": ["simulation_ended", "simulation_result_evaluated"] });
    world.post("/v1/webhooks", body).await;
    let agent = json!({ "http_webhook": hook.url("/hook") });
    let human = json!({ "expected_tool_calls": [{ "name": "book", "parameters": { "seats": 2 } }] });
    let talk = Talk::of(world, agent, json!({}), human).await;
    talk.until("READY").await;
    talk.advance(2000);
    talk.says("Good day, how can I help?").await;
    let first = hook.wait_for(1).await;
    let body = first.json();
    assert_eq!((&body["message"], &body["end_conversation"]), (&json!("I want a table."), &json!(false)));
    assert_eq!(body["simulation_result_id"], json!(talk.id));
    assert_eq!(body["message_id"].as_str().map(str::len), Some(36));
    assert_eq!(first.headers["x-simulation-result-id"], talk.id.as_str());
    let record = talk.result().await;
    let agent = talk.world.get(&format!("/v1/agents/{}", record["agent_id"])).await;
    let key = agent["http_webhook_key"].as_str().expect("a key");
    assert_eq!(first.headers["x-svc-signature"], signature(key, &first.body).as_str());
    assert!(!first.headers.contains_key("x-svc-event"));
    talk.event("message.sent", 1).await;
    // A turn in two parts, the first of them sent twice, and a tool.
    talk.advance(1500);
    for _ in 0..2 {
        let part = json!({ "message": "One moment.", "end_turn": false, "message_id": "a" });
        assert_eq!(talk.send(part).await.0, 200);
    }
    talk.advance(500);
    let call =
        json!({ "type": "tool_call", "name": "book", "parameters": { "seats": 2 }, "output": "ok", "message_id": "b" });
    for _ in 0..2 {
        assert_eq!(
            talk.send(call.clone()).await.1,
            json!({ "simulation_result_id": talk.id, "status": "success", "end_conversation": false })
        );
    }
    talk.says("For how many?").await;
    assert_eq!(hook.wait_for(2).await.json()["message"], "For two.");
    talk.event("message.sent", 2).await;
    talk.advance(1000);
    talk.says("Your table is booked.").await;
    let last = hook.wait_for(3).await.json();
    assert_eq!((&last["message"], &last["end_conversation"]), (&json!("Thank you, goodbye."), &json!(true)));
    talk.event("message.sent", 3).await;
    talk.advance(500);
    let (status, answer) = talk.send(json!({ "message": "Goodbye!", "message_id": "c" })).await;
    assert_eq!((status, &answer["end_conversation"]), (200, &json!(true)), "its last words are heard");
    let result = talk.until("COMPLETED").await;
    check_booked(&result);
    check_transcript(&talk).await;
    let timeline = talk.part("timeline").await;
    let events: Vec<&str> =
        timeline["events"].as_array().expect("events").iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(events.iter().filter(|event| **event == "message.received").count(), 5);
    assert!(events.contains(&"tool_call") && events.last() == Some(&"call.ended"), "{events:?}");
    assert_eq!(
        talk.send(json!({ "message": "More?" })).await,
        (400, json!({ "detail": "Conversation has already ended" }))
    );
    let again = talk.send(json!({ "message": "One moment.", "message_id": "a" })).await;
    assert_eq!((again.0, &again.1["end_conversation"]), (200, &json!(true)), "a repeat has no effect");
    for (count, kind) in [(1, "simulation_ended"), (2, "simulation_result_evaluated")] {
        assert_eq!(notified.wait_for(count).await.json()["type"], kind);
    }
}

/// Returns a JSON answer with status 200.
pub(super) fn reply(message: Value) -> (u16, String) {
    (200, message.to_string())
}

#[tokio::test]
async fn an_agent_that_replies_at_once() {
    let answers = vec![
        reply(json!({ "message": "For how many?", "tool_calls": [{ "name": "look", "parameters": { "day": 1 } }] })),
        (200, String::new()),
        reply(json!({ "message": "Booked. Bye.", "end_conversation": true })),
    ];
    let hook = Receiver::answering(answers).await;
    let world = World::at_work(None).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let first = json!({ "speaks_first_config": { "speaks_first": true, "mode": "custom", "message": "I am {{name}}." },
        "traits": [{ "trait_name": "name", "trait_data_type": "STRING", "value": "Ann" }] });
    let talk = Talk::of(world, agent, json!({}), first).await;
    assert_eq!(hook.wait_for(1).await.json()["message"], "I am Ann.");
    assert_eq!(hook.wait_for(2).await.json()["message"], "I want a table.");
    // An empty answer is silence, until the agent says something by itself.
    talk.event("message.sent", 2).await;
    talk.advance(4000);
    talk.says("Still here.").await;
    assert_eq!(hook.wait_for(3).await.json()["message"], "For two.");
    let result = talk.until("COMPLETED").await;
    let walk = ["INITIALIZING", "QUEUED", "DISPATCHED", "RUNNING", "CONVERSATION_ENDED", "EVALUATING", "COMPLETED"];
    assert_eq!(Talk::statuses(&result), walk);
    assert_eq!((&result["end_reason"], &result["conversation_ended_by"]), (&json!("agent_hangup"), &json!("AGENT")));
    assert_eq!(result["latency"], json!([0.0, 4.0, 0.0]));
    assert_eq!(result["tool_calls"][0]["actual"][0]["parameters"], json!({ "day": 1 }));
    let text =
        talk.world.send("GET", &format!("/v1/simulation-result/{}/transcript?format=text", talk.id), &[], vec![]).await;
    let expect = "USER: I am Ann.\nAGENT: For how many?\nUSER: I want a table.\nAGENT: Still here.\nUSER: For two.\nAGENT: Booked. Bye.\n";
    assert_eq!(String::from_utf8_lossy(&text.body), expect);
}

#[tokio::test]
async fn what_is_not_taken_is_sent_again() {
    // The second message is never taken.
    let hook = Receiver::new(&[503, 408, 429, 200, 500, 500, 500, 500]).await;
    let world = World::at_work(None).await;
    let human = json!({ "speaks_first_config": { "speaks_first": true, "mode": "ai_generated" } });
    let talk = Talk::of(world, json!({ "http_webhook": hook.url("/hook") }), json!({}), human).await;
    for (attempt, wait) in [(1, 1000), (2, 2000), (3, 4000)] {
        hook.wait_for(attempt).await;
        talk.retry(wait).await;
    }
    hook.wait_for(4).await;
    talk.until("RUNNING").await;
    talk.says("For how many?").await;
    for (attempt, wait) in [(5, 1000), (6, 2000), (7, 4000)] {
        hook.wait_for(attempt).await;
        talk.retry(wait).await;
    }
    let result = talk.until("CALL_DROPPED").await;
    let code = (&result["error_code"], &result["error_message"], &result["error_owner"]);
    assert_eq!(code, (&json!("HTTP_WEBHOOK_FAILED"), &json!("http_webhook answered 500"), &json!("agent_owner")));
    let ids: Vec<Value> = hook.requests().iter().map(|request| request.json()["message_id"].clone()).collect();
    assert_eq!(ids.len(), 8);
    assert!(ids[..4].iter().all(|id| *id == ids[0]) && ids[4..].iter().all(|id| *id == ids[4]) && ids[0] != ids[4]);
    assert_eq!(talk.part("transcript").await["entries"].as_array().map(Vec::len), Some(2), "what exists was kept");
}

#[tokio::test]
async fn an_agent_that_cannot_be_reached_or_understood() {
    let human = json!({ "speaks_first_config": { "speaks_first": true, "mode": "ai_generated" } });
    let sync = |url: String| json!({ "http_webhook": url, "http_webhook_sync_reply": true });
    for (answers, retries, end, message) in [
        (vec![(404, String::new())], 0, "NO_CONNECTION", "http_webhook answered 404"),
        (vec![(500, String::new()); 4], 3, "NO_CONNECTION", "http_webhook answered 500"),
        (vec![(200, "<html>".to_owned())], 0, "NO_CONNECTION", "http_webhook answered with no valid reply"),
        (
            vec![reply(json!({ "message": "Hi." })), (404, String::new())],
            0,
            "CALL_DROPPED",
            "http_webhook answered 404",
        ),
    ] {
        let hook = Receiver::answering(answers).await;
        let talk = Talk::of(World::at_work(None).await, sync(hook.url("/hook")), json!({}), human.clone()).await;
        for attempt in 0..retries {
            hook.wait_for(attempt + 1).await;
            talk.retry(1000 << attempt).await;
        }
        let result = talk.until(end).await;
        assert_eq!((&result["error_code"], &result["error_message"]), (&json!("HTTP_WEBHOOK_FAILED"), &json!(message)));
        let outcome = (!result["start_time"].is_null(), result["end_reason"].as_str());
        assert_eq!(outcome, (end == "CALL_DROPPED", Some("fault")));
    }
}

#[tokio::test]
async fn the_agents_language_is_written() {
    let answers = vec![
        reply(json!({ "message": "Hola, en qué puedo ayudarle hoy?" })),
        reply(json!({ "message": "Claro, para cuántas personas sería la mesa?" })),
        reply(json!({ "message": "Muchas gracias, su mesa está reservada." })),
    ];
    let hook = Receiver::answering(answers).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let human = json!({ "language": "ad" });
    let talk = Talk::of(World::at_work(None).await, agent, json!({}), human).await;
    let result = talk.until("COMPLETED").await;
    let said: Vec<Value> = hook.requests().iter().map(|request| request.json()["message"].clone()).collect();
    assert_eq!(said, ["Hello. I want a table.", "For two.", "Gracias, adiós."], "its own words are Spanish now");
    assert_eq!(result["metadata"]["languages"], json!([{ "language": "es", "by": "text", "offset_ms": 0.0 }]));
    assert_eq!(talk.part("transcript").await["language"], "es");
    let expect = "language: the intent is said as it is written: only a model speaks the agent's language";
    assert_eq!(result["metadata"]["warnings"], json!([expect]));
}

/// Settings of the simulation and of the human, the agent's message, what happens then (`hangup` or seconds that pass),
/// and the reason of the end.
type EarlyEnd = (Value, Value, Value, &'static str, &'static str);

/// Conversations that are ended from outside, by the agent, by time and by turns.
fn early_ends() -> Vec<EarlyEnd> {
    vec![
        (json!({}), json!({}), json!({ "message": "Hi." }), "hangup", "api_hangup"),
        (json!({}), json!({}), json!({ "message": "Bye.", "end_conversation": true }), "", "agent_hangup"),
        (
            json!({ "inactivity_timeout_seconds": 30 }),
            json!({}),
            json!({ "message": "Hi." }),
            "30",
            "inactivity_timeout",
        ),
        (
            json!({ "max_call_duration": 45, "max_call_duration_units": "seconds" }),
            json!({}),
            json!({ "message": "Hi." }),
            "45",
            "max_duration",
        ),
        (
            json!({ "max_call_duration": 10, "inactivity_timeout_seconds": 3600 }),
            json!({}),
            json!({ "message": "Hi." }),
            "600",
            "max_duration",
        ),
        // Written conversations have no longest duration, unless a limit is given.
        (
            json!({ "inactivity_timeout_seconds": 3600 }),
            json!({}),
            json!({ "message": "Hi." }),
            "3600",
            "inactivity_timeout",
        ),
        (json!({ "max_turns": 1 }), json!({}), json!({ "message": "Hi." }), "", "max_turns"),
        (json!({}), json!({ "hangup_phrases": ["go away"] }), json!({ "message": "Go away!" }), "", "hangup_phrase"),
    ]
}

#[tokio::test]
async fn conversations_that_end_early() {
    let hook = Receiver::new(&[]).await;
    let agent = json!({ "http_webhook": hook.url("/hook") });
    let talk = async |simulation: Value, human: Value| {
        let talk = Talk::of(World::at_work(None).await, agent.clone(), simulation, human).await;
        talk.until("READY").await;
        talk
    };
    // Nobody writes.
    let silent = talk(json!({ "ringing_timeout": 20 }), json!({})).await;
    silent.retry(20_000).await;
    let result = silent.until("NO_ANSWER").await;
    assert_eq!(result["error_code"], "INBOUND_NO_INCOMING_CALL");
    // Taken back before it began.
    let cancelled = talk(json!({}), json!({})).await;
    let path = format!("/v1/simulation-result/{}/hangup", cancelled.id);
    assert_eq!(cancelled.world.post(&path, Value::Null).await["status"], "CANCELLED");
    assert_eq!(cancelled.send(json!({ "message": "Hello?" })).await.0, 400);
    for (simulation, human, message, then, reason) in early_ends() {
        let talk = talk(simulation, human).await;
        let (status, answer) = talk.send(message.clone()).await;
        assert_eq!((status, &answer["end_conversation"]), (200, &json!(message["end_conversation"] == true)));
        match then {
            "hangup" => {
                talk.event("message.sent", 1).await;
                let path = format!("/v1/simulation-result/{}/hangup", talk.id);
                assert_eq!(talk.world.post(&path, Value::Null).await["status"], "CONVERSATION_ENDED");
            }
            "" => {}
            seconds => {
                talk.event("message.sent", 1).await;
                talk.retry(1000 * seconds.parse::<i64>().expect("a number")).await;
            }
        }
        let result = talk.until("COMPLETED").await;
        let side = if reason == "agent_hangup" { "AGENT" } else { "USER" };
        assert_eq!(
            (&result["end_reason"], &result["conversation_ended_by"]),
            (&json!(reason), &json!(side)),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn a_written_step_says_who_begins_how_long_is_waited_and_who_answers() {
    let step = |step: Value| {
        let step = with(json!({ "step": 1, "intent": "I want a table. For two.", "modality": "chat" }), step);
        json!({ "journey_steps": [step] })
    };
    let held = async |agent: Value, step: Value| {
        let hook = Receiver::new(&[]).await;
        let agent = with(json!({ "http_webhook": hook.url("/hook") }), agent);
        let simulation = json!({ "ringing_timeout": 6 });
        (Talk::of(World::at_work(None).await, agent, simulation, step).await, hook)
    };
    // The agent writes first although it could answer at once, and is waited for as long as the step says.
    let sync = json!({ "http_webhook_sync_reply": true });
    let outbound = json!({ "direction": "outbound", "response_window_seconds": 3 });
    let (talk, hook) = held(sync, step(outbound)).await;
    talk.until("READY").await;
    assert!(hook.requests().is_empty());
    talk.retry(3000).await;
    let result = talk.until("NO_ANSWER").await;
    assert_eq!(result["error_code"], "INBOUND_NO_INCOMING_CALL");
    assert_eq!(result["error_message"], "The agent did not write within 3 s");
    // The Digital Human writes first although the agent posts its messages.
    let (talk, hook) = held(json!({}), step(json!({}))).await;
    assert_eq!(hook.wait_for(1).await.json()["message"], "Hello. I want a table.");
    assert_eq!(Talk::statuses(&talk.until("RUNNING").await)[2], "DISPATCHED");
    // Messages of the agent are read, and not answered.
    let human = with(
        step(json!({ "direction": "outbound", "unresponsive": true })),
        json!({ "scripted_responses": [{ "match_type": "exact", "match_phrase": "your name", "response_type": "phrase",
            "response_value": "Ann.", "occurrence_mode": "always" }] }),
    );
    let (talk, hook) = held(json!({}), human).await;
    talk.until("READY").await;
    talk.says("Hello? What is your name?").await;
    talk.event("message.received", 1).await;
    talk.says("Are you there?").await;
    talk.event("message.received", 2).await;
    talk.retry(300_000).await;
    let result = talk.until("COMPLETED").await;
    assert_eq!(result["end_reason"], "inactivity_timeout");
    assert_eq!((&result["metadata"]["speaker"], &result["outcome"]), (&json!("none"), &json!("not_evaluated")));
    assert_eq!(result["evaluations"][0]["not_evaluated_reason"], "No language model is configured");
    assert!(result["metadata"]["warnings"].as_array().is_none_or(Vec::is_empty), "{result}");
    assert!(hook.requests().is_empty());
    let entries = talk.part("transcript").await["entries"].clone();
    let entries = entries.as_array().expect("entries");
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry["speaker"] == "AGENT"), "{entries:?}");
    // Another channel of the agent, which this engine is not set up for.
    for (modality, agent, code) in [
        ("sms", json!({ "phone_number": "+15550002222" }), "SMS_NOT_CONFIGURED"),
        ("email", json!({ "email_address": "desk@example.com" }), "EMAIL_NOT_CONFIGURED"),
    ] {
        let (talk, _) = held(agent, step(json!({ "modality": modality }))).await;
        assert_eq!(talk.until("NO_CONNECTION").await["error_code"], code);
    }
}

#[tokio::test]
async fn a_conversation_may_take_as_long_as_a_number_says() {
    let hook = Receiver::new(&[]).await;
    let step = json!({ "step": 1, "intent": "I want a table.", "modality": "chat", "direction": "outbound" });
    let human = json!({ "journey_steps": [with(step, json!({ "response_window_seconds": 1e300 }))] });
    let simulation = json!({ "max_call_duration": i64::MAX, "inactivity_timeout_seconds": i64::MAX });
    let agent = json!({ "http_webhook": hook.url("/hook") });
    let talk = Talk::of(World::at_work(None).await, agent, simulation, human).await;
    talk.until("READY").await;
    talk.advance(86_400_000);
    talk.says("Hello?").await;
    hook.wait_for(1).await;
    talk.event("message.sent", 1).await;
    talk.advance(86_400_000);
    assert_eq!(talk.send(json!({ "message": "Bye.", "end_conversation": true })).await.0, 200);
    let result = talk.until("COMPLETED").await;
    let ended = (&result["end_reason"], &result["conversation_ended_by"]);
    assert_eq!(ended, (&json!("agent_hangup"), &json!("AGENT")));
}

#[tokio::test]
async fn a_conversation_that_waits_outlives_its_process() {
    let hook = Receiver::new(&[]).await;
    let world = World::at_work(None).await;
    let mut talk = Talk::of(world, json!({ "http_webhook": hook.url("/hook") }), json!({}), json!({})).await;
    talk.until("READY").await;
    talk.world.restart().await;
    assert_eq!(talk.result().await["status"], "READY");
    talk.says("Hello?").await;
    hook.wait_for(1).await;
    talk.event("message.sent", 1).await;
    // One that runs does not.
    talk.world.restart().await;
    let result = talk.until("SYSTEM_ERROR").await;
    assert_eq!(result["error_code"], "ENGINE_SHUTDOWN");
    assert_eq!(talk.send(json!({ "message": "Hello?" })).await.0, 400);
}

#[tokio::test]
async fn what_is_private_is_taken_out_of_messages() {
    let hook = Receiver::new(&[]).await;
    let world = World::at_work(None).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "redact_pii": true });
    let human = json!({ "traits": [{ "trait_name": "street", "trait_data_type": "STRING", "value": "Elm Street" }] });
    let talk = Talk::of(world, agent, json!({}), human).await;
    talk.until("READY").await;
    talk.says("What is your street?").await;
    assert_eq!(hook.wait_for(1).await.json()["message"], "Elm Street");
    let hidden = talk.world.send("GET", &format!("/v1/simulation-result/{}/transcript", talk.id), &[], vec![]).await;
    assert_eq!(hidden.status, 404, "nothing is shown before it is redacted");
    talk.event("message.sent", 1).await;
    let call = json!({ "type": "tool_call", "name": "find", "parameters": { "street": "Elm Street" } });
    assert_eq!(talk.send(call).await.0, 200);
    let end = json!({ "message": "Mail ann@example.com or 5550001111.", "end_conversation": true });
    assert_eq!(talk.send(end).await.0, 200);
    let result = talk.until("COMPLETED").await;
    let (transcript, timeline) = (talk.part("transcript").await, talk.part("timeline").await);
    for kept in [&result, &transcript, &timeline] {
        let kept = kept.to_string();
        assert!(!["Elm Street", "ann@example", "5550001111"].iter().any(|word| kept.contains(word)), "{kept}");
    }
    assert_eq!(transcript["entries"][1]["utterance"], "[TRAIT]");
    assert_eq!(result["tool_calls"][0]["actual"][0]["parameters"]["street"], "[TRAIT]");
}

#[tokio::test]
async fn one_turn_at_a_time_for_whoever_holds_the_conversation() {
    let world = World::new().await;
    let human = json!({ "name": "Ann", "intent": "I want a table. For two.",
        "scripted_responses": [{ "match_type": "exact", "match_phrase": "your name", "response_type": "phrase",
            "response_value": "Ann.", "occurrence_mode": "always" }] });
    let human =
        world.post("/v1/create-digital-human", json!({ "digital_human": human })).await["digital_human"]["id"].clone();
    let turn = async |key: &str, message: &str| {
        let body = json!({ "redis_key": key, "test_case_id": human.to_string(), "message": message });
        let answer = world.post("/v1/send-text", body).await;
        assert_eq!(answer["type"], "text");
        (answer["data"]["text"].as_str().expect("a text").to_owned(), answer["data"]["end_conversation"] == true)
    };
    let said = |text: &str, ends: bool| (text.to_owned(), ends);
    assert_eq!(turn("a", "").await, said("Hello. I want a table.", false));
    assert_eq!(turn("a", "And your name?").await, said("Ann.", false));
    assert_eq!(turn("b", "Good day.").await, said("I want a table.", false), "another conversation");
    assert_eq!(turn("a", "For how many?").await, said("For two.", false));
    assert_eq!(turn("a", "Booked.").await, said("Thank you, goodbye.", true));
    for format in ["frames", "text"] {
        let late = json!({ "redis_key": "a", "test_case_id": human, "response_format": format, "message": "Hello?" });
        let answer = world.send("POST", "/v1/send-text", &[], late.to_string().into_bytes()).await;
        let ended = json!({ "detail": "Conversation has already ended" });
        assert_eq!((answer.status, answer.json()), (400, ended), "nothing follows");
    }
    let body = json!({ "conversation_key": "c", "test_case_id": human, "response_format": "text", "message": "Hi." });
    assert_eq!(world.post("/v1/send-text", body).await, json!({ "response": "I want a table." }));
}

/// A model whose first answer is kept back until the test asks for it.
#[derive(Default)]
struct Slow {
    asked: Notify,
    goes_on: Notify,
    answers: AtomicUsize,
}

impl LanguageModel for Slow {
    fn chat<'a>(&'a self, _: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        Box::pin(async move {
            let answer = self.answers.fetch_add(1, Ordering::Relaxed);
            if answer == 0 {
                self.asked.notify_one();
                self.goes_on.notified().await;
            }
            let _ = out.send(ChatPart::Text(["A table, please.", "For two."][answer].to_owned())).await;
            Ok(())
        })
    }

    fn name(&self) -> String {
        "slow".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

#[tokio::test]
async fn a_turn_ends_though_whoever_asked_for_it_has_gone() {
    let model = Arc::new(Slow::default());
    let world = World::with_model(model.clone()).await;
    let human = json!({ "digital_human": { "name": "Ann", "intent": "A table." } });
    let id = world.post("/v1/create-digital-human", human).await["digital_human"]["id"].to_string();
    let turn = |message: &str| {
        world.post("/v1/send-text", json!({ "redis_key": "k", "test_case_id": id, "message": message }))
    };
    tokio::select! {
        answer = turn("Hello?") => panic!("nobody has thought yet: {answer}"),
        () = model.asked.notified() => {}
    }
    model.goes_on.notify_one();
    assert_eq!(turn("For how many?").await["data"]["text"], "For two.");
}

#[tokio::test]
async fn a_turn_is_as_long_as_the_settings_say() {
    let model = Arc::new(ScriptedModel::new(vec![Reply::says(&["I want a table."])]));
    let world = World::with_model_set(model.clone(), |settings| {
        (settings.behaviour.verbosity.low.target, settings.behaviour.verbosity.low.maximum) = (3, 9);
    });
    let world = world.await;
    let human = json!({ "digital_human": { "name": "Ann", "intent": "A table.", "verbosity": "low" } });
    let id = world.post("/v1/create-digital-human", human).await["digital_human"]["id"].to_string();
    let turn = json!({ "redis_key": "k", "test_case_id": id, "message": "Hello?", "response_format": "text" });
    assert_eq!(world.post("/v1/send-text", turn).await, json!({ "response": "I want a table." }));
    let sentence = format!("{:?}", model.requests());
    assert!(sentence.contains("About 3 words a turn, never more than 9."), "{sentence}");
}
