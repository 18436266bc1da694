//! An agent that opens a WebSocket to the engine: the built program, its API, and the address of one READY result.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::server::speech;
use crate::program::{KEY, PATIENCE, Program, client, up};

/// Asks the API for something.
async fn ask(api: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let method = method.parse().expect("a method");
    let mut request = client().request(method, format!("{api}{path}")).header("x-api-key", KEY);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.send().await.expect("the program runs");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

async fn post(api: &str, path: &str, body: Value) -> Value {
    let (status, answer) = ask(api, "POST", path, Some(body)).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// Returns the record of a result, once it has one of these statuses.
async fn until(api: &str, id: &str, statuses: &[&str]) -> Value {
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let wait = async {
        loop {
            looks.tick().await;
            let (_, record) = ask(api, "GET", &format!("/v1/retrieve-simulation-result/{id}"), None).await;
            let record = record["simulation_result"].clone();
            if statuses.iter().any(|status| record["status"] == *status) {
                return record;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it comes in time")
}

async fn refusal(url: &str) -> u16 {
    match connect_async(url).await {
        Err(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("{url}: {other:?}"),
    }
}

/// Starts a run of an agent that calls by WebSocket. Returns the id of the result, and the address at which it waits.
async fn waiting(api: &str, human: Value) -> (String, String) {
    let agent = json!({ "name": "Desk", "type": "OUTBOUND", "connection_type": "WEBSOCKET" });
    let agent = post(api, "/v1/add-agent", agent).await["agent_id"].to_string();
    let simulation = post(api, "/v1/create-simulation", json!({ "agent_id": agent })).await["simulation_id"].clone();
    let human = json!({ "digital_human": human, "simulation_ids": [simulation] });
    post(api, "/v1/create-digital-human", human).await;
    let run = json!({ "simulation_id": simulation.to_string(), "seed": 7 });
    let queued = post(api, "/v1/queue-simulation-run", run).await;
    let id = queued["simulation_result_ids"][0].as_str().expect("an id").to_owned();
    let ready = until(api, &id, &["READY"]).await;
    (id, ready["metadata"]["listening"]["websocket_url"].as_str().expect("an address").to_owned())
}

/// An unanswered call in a step of a journey is noted as an attempt.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_call_is_not_answered_is_refused() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut program = Program::start(&mut up(folder.path()));
    let api = program.address("http://").await;
    let step = json!({ "step": 1, "intent": "Hide.", "direction": "outbound", "unresponsive": true,
        "response_window_seconds": 5 });
    let (id, url) = waiting(&api, json!({ "intent": "Hide.", "journey_steps": [step] })).await;
    assert_eq!(refusal(&url).await, 503);
    let done = until(&api, &id, &["COMPLETED", "CONVERSATION_ENDED", "EVALUATING", "NO_ANSWER", "SYSTEM_ERROR"]).await;
    assert_eq!(done["metadata"]["unanswered_calls"].as_array().map(Vec::len), Some(1), "{done}");
    program.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_calls_by_websocket_once() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut program = Program::start(up(folder.path()).args(["--rtp-ports", "38950-38999"]));
    let api = program.address("http://").await;
    let (id, url) = waiting(&api, json!({ "intent": "Book a table." })).await;
    assert!(url.starts_with(&api.replacen("http://", "ws://", 1)), "{url}");

    let (plain, body) =
        ask(&api, "GET", &format!("/v1/agent-stream/{}", url.rsplit('/').next().unwrap_or_default()), None).await;
    assert_eq!(plain, 426, "{body}");
    assert_eq!(refusal(&format!("{}0", url)).await, 401);
    assert_eq!(refusal(&format!("{api}/v1/agent-stream/x").replacen("http", "ws", 1)).await, 401);
    let (mut agent, _) = connect_async(&url).await.expect("it is taken");
    assert_eq!(refusal(&url).await, 409);
    let (mut heard, mut texts) = (0, 0);
    agent.send(Message::binary(speech(1.0))).await.expect("it is open");
    while texts < 2 {
        match agent.next().await.expect("it is open").expect("it is not broken") {
            Message::Binary(bytes) => {
                assert_eq!(bytes.len(), 640);
                heard += 1;
            }
            Message::Text(text) => {
                assert!(text.contains("\"utterance_id\":\"dh-"), "{text}");
                texts += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(heard > 50, "{heard}");
    agent.close(None).await.expect("it is open");
    while agent.next().await.is_some_and(|message| message.is_ok()) {}
    let done = until(&api, &id, &["COMPLETED", "CONVERSATION_ENDED", "EVALUATING", "NO_ANSWER", "CALL_DROPPED"]).await;
    assert_eq!(done["error_code"], Value::Null, "{done}");
    assert_eq!(done["conversation_ended_by"], "AGENT", "{done}");
    assert_eq!(refusal(&url).await, 410);
    program.kill().await;
}
