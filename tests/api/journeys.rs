//! Journeys whose steps go by different channels of one agent.

use std::sync::Arc;

use ringer::config::{Secret, Sms};
use serde_json::{Value, json};

use super::judged::judgement;
use super::oracle::Oracle;
use super::receiver::Receiver;
use super::talk::Talk;
use super::world::World;
use crate::json::with;

const AGENT: &str = "+15550002222";
const OWN: &str = "+15550001111";
const JUDGE: &str = "You judge a conversation";

/// Returns a world whose text messages go to `carrier`.
async fn with_carrier(carrier: &Receiver, model: Option<Arc<Oracle>>) -> World {
    let sms = Sms {
        send_url: Some(Secret::new(carrier.url("/send"))),
        inbound_token: Some(Secret::new("open".into())),
        ..Sms::default()
    };
    let model = model.map(|model| model as Arc<dyn ringer::provider::LanguageModel>);
    World::at_work_with(model, |settings| settings.sms = Arc::new(sms)).await
}

/// Queues a run of a journey; returns status and answer.
async fn queue(world: &World, agent: Value, steps: Value, run: Value) -> (u16, Value) {
    let agent = world.post("/v1/add-agent", with(json!({ "name": "Desk" }), agent)).await["agent_id"].to_string();
    let simulation = world.post("/v1/create-simulation", json!({ "agent_id": agent })).await["simulation_id"].clone();
    let human = json!({ "phone_number": OWN, "journey_steps": steps });
    let body = json!({ "digital_human": human, "simulation_ids": [simulation] });
    world.post("/v1/create-digital-human", body).await;
    let body = with(json!({ "simulation_id": simulation.to_string() }), run);
    let answer = world.send("POST", "/v1/queue-simulation-run", &[], body.to_string().into_bytes()).await;
    (answer.status, answer.json())
}

/// Returns the conversations of a run that was queued.
fn ids((status, answer): (u16, Value)) -> Vec<String> {
    assert_eq!(status, 200, "{answer}");
    let ids = answer["simulation_result_ids"].as_array().expect("ids").iter();
    ids.map(|id| id.as_str().expect("a text").to_owned()).collect()
}

fn talk(world: World, id: &str) -> Talk {
    let feed = world.service.feed(id.parse().expect("an id")).expect("calls are made here");
    Talk { world, id: id.to_owned(), feed }
}

/// Delivers a text message of the agent as the carrier does.
async fn text(world: &World, words: &str) {
    let headers = [("x-api-key", ""), ("x-carrier-token", "open")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let body = json!({ "from": AGENT, "to": OWN, "text": words }).to_string().into_bytes();
    assert_eq!(world.send("POST", "/v1/inbound-sms", &headers, body).await.status, 200, "{words}");
}

#[tokio::test]
async fn a_step_whose_channel_is_not_set_is_refused_when_the_run_is_queued() {
    let world = World::new().await;
    let (hook, sip) = ("http://127.0.0.1:9/hook", "sip:desk@127.0.0.1:5099");
    let all =
        json!({ "sip_uri": sip, "phone_number": AGENT, "http_webhook": hook, "email_address": "desk@example.com" });
    for (agent, modality, run, expect) in [
        (json!({}), "voice", json!({}), Some("voice, and connection_type")),
        (json!({}), "voice", json!({ "sip_uri": sip }), None),
        (json!({ "sip_uri": sip }), "sms", json!({}), Some("sms, and phone_number")),
        (json!({ "sip_uri": sip }), "sms", json!({ "phone_number": AGENT }), None),
        (json!({ "sip_uri": sip }), "email", json!({}), Some("email, and email_address")),
        (json!({ "sip_uri": sip }), "chat", json!({}), Some("chat, and http_webhook")),
        (json!({ "sip_uri": sip, "P12_base_url": hook }), "chat", json!({}), None),
        (json!({ "mode": "TEXT", "http_webhook": hook }), "voice", json!({}), None),
        (
            json!({ "mode": "EMAIL", "email_address": "desk@example.com" }),
            "voice",
            json!({}),
            Some("voice, and connection_type"),
        ),
        // Otherwise such a pair of mode and kind is refused.
        (json!({ "phone_number": AGENT, "http_webhook": hook }), "voice", json!({}), None),
        (all.clone(), "voice", json!({}), None),
        (all.clone(), "sms", json!({}), None),
        (all.clone(), "email", json!({}), None),
        (all, "chat", json!({}), None),
    ] {
        // The first step can be held by everybody who can hold the second.
        let (first, second) = (json!({ "step": 1, "intent": "Ask." }), json!({ "step": 2, "intent": "Go on." }));
        let steps =
            json!([with(first, json!({ "modality": modality })), with(second, json!({ "modality": modality }))]);
        let (status, answer) = queue(&world, agent.clone(), steps, run.clone()).await;
        match expect {
            None => assert_eq!(
                (status, answer["simulation_result_ids"].as_array().map(Vec::len)),
                (200, Some(2)),
                "{agent}"
            ),
            Some(lack) => {
                let detail = format!("journey step 1 needs {lack} is not set");
                assert_eq!((status, answer), (400, json!({ "detail": detail })), "{agent} {modality}");
            }
        }
    }
}

#[tokio::test]
async fn one_caller_goes_from_channel_to_channel_and_remembers() {
    let carrier = Receiver::new(&[]).await;
    let hook =
        Receiver::answering(vec![(200, json!({ "message": "At seven.", "end_conversation": true }).to_string())]).await;
    let model = Oracle::new(|first, _| match first.contains(JUDGE) {
        true => Some(
            with(
                serde_json::from_str(&judgement()).expect("JSON"),
                json!({ "call_summary": "A table was booked for two." }),
            )
            .to_string(),
        ),
        false => Some("I want a table.".to_owned()),
    });
    let world = with_carrier(&carrier, Some(model.clone())).await;
    // Its calls go by SIP, and are not made here: the steps are written by its other settings.
    let agent = json!({ "sip_uri": "sip:desk@127.0.0.1:5099", "phone_number": AGENT, "http_webhook": hook.url("/hook"),
        "http_webhook_sync_reply": true });
    let steps = json!([
        { "step": 1, "intent": "Book a table.", "modality": "sms" },
        { "step": 2, "intent": "Ask for the time.", "modality": "chat", "wait_seconds": 60, "success_criteria": "It names the time." },
    ]);
    let ids = ids(queue(&world, agent, steps, json!({})).await);
    let first = talk(world, &ids[0]);
    let sent = carrier.wait_for(1).await.json();
    assert_eq!((&sent["from"], &sent["to"]), (&json!(OWN), &json!(AGENT)));
    first.event("message.sent", 1).await;
    text(&first.world, "For two? It is booked.").await;
    first.event("message.received", 1).await;
    first.retry(8000).await;
    carrier.wait_for(2).await;
    first.event("message.sent", 2).await;
    first.world.post(&format!("/v1/simulation-result/{}/hangup", first.id), Value::Null).await;
    let texted = first.until("COMPLETED").await;
    assert_eq!((&texted["journey_step"], &texted["metadata"]["transport"]), (&json!(1), &json!("SMS by HTTP")));
    // The next step waits, and a restart takes nothing from its wait.
    let mut second = talk(first.world, &ids[1]);
    let waiting = second.result().await;
    assert_eq!((&waiting["status"], &waiting["queue_reason"]), (&json!("INITIALIZING"), &json!("journey_wait")));
    second.advance(40_000);
    second.world.restart().await;
    assert_eq!((second.result().await["queue_reason"].clone(), hook.requests().len()), (json!("journey_wait"), 0));
    second.advance(20_000);
    assert_eq!(hook.wait_for(1).await.json()["message"], "I want a table.");
    let chatted = second.until("COMPLETED").await;
    assert_eq!((&chatted["journey_step"], &chatted["end_reason"]), (&json!(2), &json!("agent_hangup")));
    assert_eq!(chatted["metadata"]["transport"], "HTTP webhook");
    // Who it is stays, and what was said is known to the caller and to the judge.
    let remembered = model.requests_with("You have been in contact with this agent before");
    assert_eq!(remembered.len(), 1, "in the second step alone");
    let told = model.requests_with(
        "You contacted the agent by text message; you wanted: Book a table. What was said: A table was booked for two.",
    );
    assert_eq!(told.len(), 1);
    let judged = model.requests_with(JUDGE);
    let before = "Contacts of the two before this conversation, which are not judged:\n- The caller contacted the agent by text \
                  message; the caller wanted: Book a table. What was said: A table was booked for two.\n";
    assert_eq!(judged.iter().map(|asked| asked.contains(before)).collect::<Vec<_>>(), [false, true], "{judged:?}");
}

#[tokio::test]
async fn an_agent_texts_and_chats_first_where_a_step_says_so() {
    let (carrier, hook) = (Receiver::new(&[]).await, Receiver::new(&[]).await);
    let world = with_carrier(&carrier, None).await;
    let agent =
        json!({ "phone_number": AGENT, "sip_uri": "sip:desk@127.0.0.1:5099", "http_webhook": hook.url("/hook") });
    let step = |number: i64, more: Value| {
        with(
            json!({ "step": number, "intent": "I want a table.", "direction": "outbound", "response_window_seconds": 30 }),
            more,
        )
    };
    let steps = json!([
        // Nobody writes in time.
        step(1, json!({ "modality": "sms" })),
        // The text is read, and not answered; the number is the step's.
        step(2, json!({ "modality": "sms", "unresponsive": true })),
        step(3, json!({ "modality": "chat" })),
    ]);
    let ids = ids(queue(&world, agent, steps, json!({})).await);
    let first = talk(world, &ids[0]);
    first.until("READY").await;
    first.retry(30_000).await;
    let missed = first.until("NO_ANSWER").await;
    assert_eq!(missed["error_message"], "The agent did not write within 30 s");
    let second = talk(first.world, &ids[1]);
    second.until("READY").await;
    text(&second.world, "Are you there?").await;
    second.event("message.received", 1).await;
    // What comes within 8 s is one turn, which nobody answers.
    second.retry(8000).await;
    second.advance(3_600_000);
    let read = second.until("COMPLETED").await;
    assert_eq!((&read["metadata"]["speaker"], carrier.requests().len()), (&json!("none"), 0), "{read}");
    let third = talk(second.world, &ids[2]);
    third.until("READY").await;
    third.says("Good day, how can I help?").await;
    assert_eq!(hook.wait_for(1).await.json()["message"], "I want a table.");
}
