//! Text messages that an agent sends after a call.

use std::sync::Arc;

use ringer::config::{Secret, Sms};
use ringer::model::result::ResultDoc;
use ringer::model::status::ResultStatus as S;
use ringer::model::time::Timestamp;
use ringer::model::transcript::Transcript;
use serde_json::{Value, json};

use super::oracle::Oracle;
use super::world::World;
use crate::json::with;

const AGENT: &str = "+15550002222";
const OWN: &str = "+15550001111";
const MINUTE_MS: i64 = 60_000;

/// Returns a world with a carrier and a run of `calls` calls that are over; their ids.
async fn after_calls(more: Value, human: Value, calls: &[&str]) -> (World, Vec<i64>) {
    let sms = Sms { inbound_token: Some(Secret::new("open".into())), ..Sms::default() };
    let world = World::with_settings(|settings| settings.sms = Arc::new(sms)).await;
    let agent =
        json!({ "name": "Desk", "sip_uri": "sip:desk@127.0.0.1:5099", "follow_up_sms_sender_numbers": [AGENT] });
    let agent = world.post("/v1/add-agent", with(agent, more)).await["agent_id"].to_string();
    let body = json!({ "agent_id": agent, "runs_per_digital_human": calls.len() });
    let simulation = world.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let human = with(json!({ "name": "Ann", "phone_number": OWN, "success_criteria": "A table is booked." }), human);
    let body = json!({ "digital_human": human, "simulation_ids": [simulation] });
    world.post("/v1/create-digital-human", body).await;
    let run = world.post("/v1/queue-simulation-run", json!({ "simulation_id": simulation.to_string() })).await;
    let ids = run["simulation_result_ids"].as_array().expect("ids").iter();
    let ids: Vec<i64> = ids.map(|id| id.as_str().expect("a text").parse().expect("an id")).collect();
    for (id, said) in ids.iter().zip(calls) {
        let steps = [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating];
        for step in steps.windows(2) {
            let end = Timestamp(world.service.clock().now_ms());
            let ended = move |doc: &mut ResultDoc| doc.body.end_time = Some(end);
            let moved =
                world.service.conversations().advance(world.name("organization"), *id, step[0], step[1], ended).await;
            moved.expect("an allowed step");
        }
        let entry = json!({
            "start_offset_ms": 0, "end_offset_ms": 500, "speaker": "AGENT", "utterance": said, "words": [],
            "filler_utterance": false, "interrupted": false, "scripted": false, "confidence": null, "source": "recognized",
        });
        let transcript = json!({ "simulation_result_id": id, "language": "en", "entries": [entry] });
        let transcript: Transcript = serde_json::from_value(transcript).expect("a transcript");
        world.service.conversations().store_transcript(world.name("organization"), &transcript).await.expect("is kept");
    }
    (world, ids)
}

/// Ends the evaluation of a call.
async fn complete(world: &World, id: i64) {
    let moved = world
        .service
        .conversations()
        .advance(world.name("organization"), id, S::Evaluating, S::Completed, |_| {})
        .await;
    moved.expect("an allowed step");
}

/// Delivers a message as the carrier does.
async fn text(world: &World, from: &str, to: &str, text: &str) {
    let headers =
        [("x-api-key", ""), ("x-carrier-token", "open")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let body = json!({ "from": from, "to": to, "text": text }).to_string().into_bytes();
    let answer = world.send("POST", "/v1/inbound-sms", &headers, body).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "status": "accepted" })), "{text}");
}

async fn stored_result(world: &World, id: i64) -> Value {
    world.get(&format!("/v1/retrieve-simulation-result/{id}")).await["simulation_result"]["follow_up_sms"].clone()
}

fn texts(kept: &Value) -> Vec<&str> {
    let messages = kept["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter_map(|message| message["text"].as_str()).collect()
}

#[tokio::test]
async fn messages_are_kept_beside_the_call_and_graded_as_one() {
    let model = Oracle::new(|first, last| {
        let yes = last.contains("Your table: seven\nFor two.") && last.contains("The text names the time.");
        first
            .contains("The question: After the conversation")
            .then(|| json!({ "reasoning": "It is named.", "answer": if yes { "yes" } else { "no" } }).to_string())
    });
    let human = json!({ "follow_up_sms_success_criteria": "The text names the time." });
    let (world, ids) = after_calls(json!({}), human, &["Your table is booked."]).await;
    assert_eq!(stored_result(&world, ids[0]).await, Value::Null);
    // The first comes before the call is evaluated: it is graded after that.
    text(&world, AGENT, "1-555-000-1111", "Your table: seven").await;
    world.work_off_with(Some(model.clone())).await;
    let first = stored_result(&world, ids[0]).await;
    assert_eq!((&first["success"], &first["reasoning"]), (&Value::Null, &Value::Null));
    assert_eq!(
        first["messages"],
        json!([{ "text": "Your table: seven", "from": AGENT, "received_at": "2026-01-05T09:00:00.000000Z" }])
    );
    complete(&world, ids[0]).await;
    world.work_off_with(Some(model.clone())).await;
    let graded = stored_result(&world, ids[0]).await;
    assert_eq!((&graded["success"], &graded["reasoning"]), (&json!(false), &json!("It is named.")));
    world.service.clock().advance_ms(29 * MINUTE_MS);
    text(&world, AGENT, OWN, "For two.").await;
    text(&world, AGENT, OWN, "Your table: seven").await;
    world.work_off_with(Some(model.clone())).await;
    let graded = stored_result(&world, ids[0]).await;
    assert_eq!((texts(&graded), &graded["success"]), (vec!["Your table: seven", "For two."], &json!(true)));
    assert_eq!(model.requests_with("The question: After the conversation").len(), 2, "the same text twice counts once");
}

#[tokio::test]
async fn without_a_judge_or_a_criterion_there_is_a_reason() {
    for (human, model, expect) in [
        (json!({}), None, "No language model is configured"),
        (json!({ "success_criteria": "" }), Some(Oracle::new(|_, _| None)), "There are no success criteria"),
        (json!({}), Some(Oracle::new(|_, _| None)), "the oracle is silent"),
    ] {
        let (world, ids) = after_calls(json!({}), human, &["Hello."]).await;
        complete(&world, ids[0]).await;
        text(&world, AGENT, OWN, "Your table.").await;
        world.work_off_with(model.map(|model| model as Arc<dyn ringer::provider::LanguageModel>)).await;
        let kept = stored_result(&world, ids[0]).await;
        assert_eq!((&kept["success"], &kept["reasoning"]), (&Value::Null, &json!(expect)));
    }
}

#[tokio::test]
async fn a_message_follows_the_call_that_it_is_about() {
    let calls = ["Your table for two is booked at seven.", "Your parcel is on its way."];
    let (world, ids) = after_calls(json!({}), json!({}), &calls).await;
    complete(&world, ids[0]).await;
    complete(&world, ids[1]).await;
    text(&world, AGENT, OWN, "Your table for two at seven").await;
    text(&world, AGENT, OWN, "Parcel on its way").await;
    // As near to the one as to the other: the latest.
    text(&world, AGENT, OWN, "?!").await;
    // Nobody's: another sender, another number.
    text(&world, "+15550003333", OWN, "Buy now").await;
    text(&world, AGENT, "+15550004444", "Wrong number").await;
    // Half an hour later it is too late.
    world.service.clock().advance_ms(30 * MINUTE_MS + 1);
    text(&world, AGENT, OWN, "Too late").await;
    let (first, second) = (stored_result(&world, ids[0]).await, stored_result(&world, ids[1]).await);
    let mut all = [texts(&first), texts(&second)];
    assert!(all[0].contains(&"Your table for two at seven") && all[1].contains(&"Parcel on its way"), "{all:?}");
    let undecided = all.iter_mut().map(|texts| texts.iter().filter(|text| **text == "?!").count()).sum::<usize>();
    assert_eq!((undecided, all[0].len() + all[1].len()), (1, 3), "{all:?}");
    // An agent without senders is followed by nothing, and what is private is not kept.
    let (world, ids) = after_calls(json!({ "follow_up_sms_sender_numbers": [] }), json!({}), &["Hello."]).await;
    text(&world, AGENT, OWN, "Hello").await;
    assert_eq!(stored_result(&world, ids[0]).await, Value::Null);
    let (world, ids) = after_calls(json!({ "redact_pii": true }), json!({}), &["Hello."]).await;
    text(&world, AGENT, OWN, "Write to ann@example.com").await;
    assert_eq!(texts(&stored_result(&world, ids[0]).await), ["Write to [EMAIL]"]);
}
