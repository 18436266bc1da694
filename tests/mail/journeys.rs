//! Journeys with steps by mail: one caller, who remembers what was said by other channels, and is remembered.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use parking_lot::Mutex;
use ringer::tasks::Tasks;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::house::{AGENT, House};
use crate::api::receiver::Receiver;
use crate::json::with;

const JUDGE: &str = "You judge a conversation";
const SUMMARY: &str = "A table was booked for two.";

/// A server of chat completions that judges conversations, and writes one sentence for everything else.
struct Model {
    lines: String,
    asked: Arc<Mutex<Vec<Value>>>,
    _tasks: Tasks,
}

impl Model {
    async fn start() -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("an address");
        let (asked, tasks): (Arc<Mutex<Vec<Value>>>, Tasks) = (Arc::default(), Tasks::new());
        let kept = asked.clone();
        let answering = post(async move |body: String| {
            let request: Value = serde_json::from_str(&body).expect("the request is JSON");
            let answer = answer_to(&request);
            kept.lock().push(request);
            answer
        });
        tasks.spawn_until_stop("model", async move {
            let _ = axum::serve(listener, Router::new().route("/v1/chat/completions", answering)).await;
        });
        let lines = format!("[language_model]\nbase_url = 'http://{address}/v1'\nmodel = 'm'\n");
        Model { lines, asked, _tasks: tasks }
    }

    /// Returns first and last words of the requests whose instructions hold a text.
    fn requests_with(&self, text: &str) -> Vec<(String, String)> {
        let words = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let ends = |request: &Value| {
            let messages = request["messages"].as_array().expect("messages");
            Some((words(messages.first()?), words(messages.last()?)))
        };
        self.asked.lock().iter().filter_map(ends).filter(|(first, _)| first.contains(text)).collect()
    }
}

/// Returns a completion, whole or in events.
fn answer_to(request: &Value) -> Response {
    let is_judge = request["messages"][0]["content"].as_str().is_some_and(|first| first.contains(JUDGE));
    let judgement = json!({
        "goal_success": true, "goal_reasoning": "So.", "hallucination": false, "hallucination_reasoning": "",
        "redundancy": false, "redundancy_reasoning": "", "sentiment_score": 0, "call_summary": SUMMARY,
        "sentiment_scores": { "positive": 0, "neutral": 1, "negative": 0 },
    });
    let text = if is_judge { judgement.to_string() } else { "I want a table.".to_owned() };
    if request["stream"] == true {
        let delta = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
        return ([("content-type", "text/event-stream")], format!("data: {delta}\n\ndata: [DONE]\n\n")).into_response();
    }
    let message = json!({ "role": "assistant", "content": text });
    json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] }).to_string().into_response()
}

/// Queues a journey and returns its results.
async fn queue(house: &House, agent: Value, simulation: Value, steps: Value) -> Vec<String> {
    let agent = with(json!({ "name": "Desk", "mode": "TEXT", "email_address": AGENT }), agent);
    let agent = house.ask("POST", "/v1/add-agent", agent).await["agent_id"].to_string();
    let simulation = with(json!({ "agent_id": agent, "name": "Booking" }), simulation);
    let simulation = house.ask("POST", "/v1/create-simulation", simulation).await["simulation_id"].clone();
    let human = json!({ "name": "Ann Lee", "journey_steps": steps });
    let human = json!({ "digital_human": human, "simulation_ids": [simulation] });
    house.ask("POST", "/v1/create-digital-human", human).await;
    let run = json!({ "simulation_id": simulation.to_string() });
    let run = house.ask("POST", "/v1/queue-simulation-run", run).await;
    let ids = run["simulation_result_ids"].as_array().expect("ids").iter();
    ids.map(|id| id.as_str().expect("a text").to_owned()).collect()
}

#[tokio::test]
async fn one_caller_calls_mails_and_chats_and_remembers() {
    let model = Model::start().await;
    let over = json!({ "message": "Good.", "end_conversation": true }).to_string();
    let hook = Receiver::answering(vec![(200, over)]).await;
    let mut house = House::simulating(&model.lines).await;
    let agent = json!({ "mode": "VOICE", "sip_uri": "sip:desk@127.0.0.1:5999", "http_webhook": hook.url("/hook"),
        "http_webhook_sync_reply": true });
    let steps = json!([
        { "step": 1, "intent": "Book a table." },
        { "step": 2, "intent": "Ask for the time.", "modality": "email", "success_criteria": "It names the time." },
        { "step": 3, "intent": "Say thanks.", "modality": "chat" },
    ]);
    let simulation = json!({ "max_turns": 1, "max_call_duration": 120, "max_call_duration_units": "seconds" });
    let ids = queue(&house, agent, simulation, steps).await;
    let called = house.until(&ids[0], "COMPLETED").await;
    assert!(called["audio_url"].is_string(), "it was spoken: {called}");
    let mail = house.mails(1).await[0].clone();
    // The step outlives a kill of the engine, with all that is remembered.
    house.kill().await;
    house.run().await;
    assert_eq!(house.result(&ids[2]).await["status"], "INITIALIZING");
    assert!(mail["headers"]["From"].as_str().is_some_and(|from| from.starts_with("Ann Lee <dh-")), "{mail}");
    assert_eq!(mail["headers"]["Subject"], "Ask for the time");
    assert_eq!(house.send(json!({ "to": [mail["from"]], "text": "At seven." })).await, 250);
    let mailed = house.until(&ids[1], "COMPLETED").await;
    let chatted = house.until(&ids[2], "COMPLETED").await;
    for (at, (result, transport)) in [(&mailed, "e-mail"), (&chatted, "HTTP webhook")].into_iter().enumerate() {
        assert_eq!((&result["journey_step"], &result["metadata"]["transport"]), (&json!(at + 2), &json!(transport)));
        assert_eq!(result["digital_human_id"], called["digital_human_id"]);
    }
    assert_eq!((house.mails(1).await.len(), hook.requests().len()), (1, 1));
    let known = |channel: &str, wish: &str| {
        format!("You contacted the agent {channel}; you wanted: {wish} What was said: {SUMMARY}")
    };
    let of_mail = model.requests_with(&known("on the telephone", "Book a table."));
    let of_chat = model.requests_with(&known("by mail", "Ask for the time."));
    assert!(!of_mail.is_empty() && !of_chat.is_empty(), "{:?}", model.asked.lock());
    let judged: Vec<String> = model.requests_with(JUDGE).into_iter().map(|(_, last)| last).collect();
    let told = |channel: &str| {
        judged.iter().filter(|asked| asked.contains(&format!("contacted the agent {channel};"))).count()
    };
    assert_eq!((judged.len(), told("on the telephone"), told("by mail")), (3, 2, 1), "{judged:?}");
}

#[tokio::test]
async fn an_agent_mails_first_where_a_step_says_so() {
    let house = House::start().await;
    let step = |number: i64, window: i64, more: Value| {
        let step = json!({ "step": number, "intent": "I want a table.", "modality": "email", "direction": "outbound",
            "response_window_seconds": window });
        with(step, more)
    };
    let steps = json!([
        // Nobody writes in time.
        step(1, 1, json!({})),
        // The mail is read, and not answered.
        step(2, 60, json!({ "unresponsive": true })),
        step(3, 60, json!({})),
    ]);
    let ids = queue(&house, json!({}), json!({ "inactivity_timeout_seconds": 3 }), steps).await;
    let missed = house.until(&ids[0], "NO_ANSWER").await;
    assert_eq!(missed["error_message"], "The agent did not write within 1 s");
    let write = async |id: &str, text: &str| {
        let waiting = house.until(id, "READY").await;
        let to = waiting["metadata"]["listening"]["email_address"].clone();
        assert_eq!(house.send(json!({ "to": [to], "text": text })).await, 250);
    };
    write(&ids[1], "Are you there?").await;
    let read = house.until(&ids[1], "COMPLETED").await;
    assert_eq!((&read["metadata"]["speaker"], &read["end_reason"]), (&json!("none"), &json!("inactivity_timeout")));
    write(&ids[2], "Good day, how can I help?").await;
    let answered = house.mails(1).await;
    assert_eq!(answered.len(), 1);
    assert!(answered[0]["text"].as_str().is_some_and(|text| text.contains("I want a table.")), "{answered:?}");
    house.until(&ids[2], "COMPLETED").await;
}
