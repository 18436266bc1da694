//! A journey of a call, text messages and a chat through the built program. It is killed while a step waits. On both
//! databases the step goes on at its time.

use std::time::Duration;

use ringer::clock::monotonic;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server::Server;
use crate::api::receiver::Receiver;
use crate::program::{KEY, PATIENCE, Program, client, ringer, up};

const AGENT: &str = "+15550002222";
const OWN: &str = "+15550001111";
/// Length of every conversation in seconds.
const LASTS_S: u64 = 2;
/// Pause before the text messages in seconds.
const WAITS_S: u64 = 3;

/// An engine in a process of its own.
struct Engine {
    program: Program,
    api: String,
}

impl Engine {
    /// Starts an engine on a database, with media at these ports, whose text messages go to `carrier`.
    async fn start(folder: &TempDir, database: Option<&str>, ports: &str, carrier: &Receiver) -> Engine {
        let mut command = up(folder.path());
        command.args(["--rtp-ports", ports]).env("RINGER_DATABASE_URL", database.unwrap_or_default());
        command.env("RINGER_SECRET_KEY", "what seals the secrets of every engine here").env("RINGER_LOG", "error");
        command.env("RINGER_SMS_SEND_URL", carrier.url("/send")).env("RINGER_SMS_INBOUND_TOKEN", "open");
        command.env("RINGER_SMS_GROUP_SECONDS", "0");
        let mut program = Program::start(&mut command);
        let api = program.address("http://").await;
        Engine { program, api }
    }

    async fn ask(&self, method: reqwest::Method, path: &str, body: Value) -> Value {
        let request = client().request(method, format!("{}/v1/{path}", self.api)).header("X-API-KEY", KEY);
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.expect("it answers");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.ask(reqwest::Method::POST, path, body).await
    }

    /// Returns a result once its conversation and what follows it are over.
    async fn until_finished(&self, id: &str) -> Value {
        let path = format!("simulation-result/{id}/events");
        let events = self.ask(reqwest::Method::GET, &path, Value::Null);
        tokio::time::timeout(PATIENCE, events).await.expect("it ends in time");
        self.result(id).await
    }

    async fn result(&self, id: &str) -> Value {
        let path = format!("retrieve-simulation-result/{id}");
        self.ask(reqwest::Method::GET, &path, Value::Null).await["simulation_result"].clone()
    }
}

/// Queues the journey; returns the ids of its results.
async fn queue(engine: &Engine, address: &str, hook: &Receiver) -> Vec<String> {
    let agent = json!({ "name": "Desk", "sip_uri": address, "phone_number": AGENT, "http_webhook": hook.url("/hook"),
        "http_webhook_sync_reply": true, "follow_up_sms_sender_numbers": [AGENT] });
    let agent = engine.post("add-agent", agent).await["agent_id"].to_string();
    let simulation = json!({ "agent_id": agent, "max_call_duration": LASTS_S, "max_call_duration_units": "seconds" });
    let simulation = engine.post("create-simulation", simulation).await["simulation_id"].clone();
    let steps = json!([
        { "step": 1, "intent": "I want a table." },
        { "step": 2, "intent": "I want it at seven.", "modality": "sms", "wait_seconds": WAITS_S },
        { "step": 3, "intent": "I come by train.", "modality": "chat" },
    ]);
    let traits = json!([{ "trait_name": "code", "trait_data_type": "STRING", "value": "4711" }]);
    let human = json!({ "phone_number": OWN, "journey_steps": steps, "gender": null, "traits": traits });
    engine.post("create-digital-human", json!({ "digital_human": human, "simulation_ids": [simulation] })).await;
    let run = engine.post("queue-simulation-run", json!({ "simulation_id": simulation.to_string(), "seed": 7 })).await;
    let ids = run["simulation_result_ids"].as_array().expect("ids").iter();
    ids.map(|id| id.as_str().expect("a text").to_owned()).collect()
}

async fn hold(database: Option<&str>, [own, others]: [&str; 2]) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut desk =
        Program::start(&mut ringer(&["agent", "--listen", "127.0.0.1:0", "--once", "1", "--rtp-ports", others]));
    let address = desk.address("sip:").await;
    let carrier = Receiver::new(&[]).await;
    let hook = Receiver::answering(vec![(200, json!({ "message": "Good." }).to_string())]).await;
    let engine = Engine::start(&folder, database, own, &carrier).await;
    let ids = queue(&engine, &address, &hook).await;
    let call = engine.until_finished(&ids[0]).await;
    let ended = monotonic();
    assert_eq!((&call["status"], &call["error_code"]), (&json!("COMPLETED"), &Value::Null), "{call}");
    assert!(call["audio_url"].is_string() && call["metadata"]["remote_address"].is_string(), "it was spoken: {call}");
    // A text that the agent sends meanwhile follows the call, and is no part of the step that waits.
    let follows = json!({ "from": AGENT, "to": OWN, "text": "Your table is booked." });
    engine.post("inbound-sms?token=open", follows).await;
    let waiting = engine.result(&ids[1]).await;
    assert_eq!((&waiting["status"], &waiting["queue_reason"]), (&json!("INITIALIZING"), &json!("journey_wait")));
    engine.program.kill().await;
    let engine = Engine::start(&folder, database, own, &carrier).await;
    let sent = carrier.wait_for(1).await.json();
    let waited = monotonic().since(ended);
    // It was over a little earlier than it was known.
    assert!(waited >= Duration::from_secs(WAITS_S - 1), "{waited:?}");
    assert_eq!((&sent["from"], &sent["to"]), (&json!(OWN), &json!(AGENT)));
    engine.post("inbound-sms?token=open", json!({ "from": AGENT, "to": OWN, "text": "At seven, then." })).await;
    let texts = engine.until_finished(&ids[1]).await;
    assert_eq!(
        (&texts["status"], &texts["metadata"]["transport"]),
        (&json!("COMPLETED"), &json!("SMS by HTTP")),
        "{texts}"
    );
    let chat = engine.until_finished(&ids[2]).await;
    assert_eq!(
        (&chat["status"], &chat["metadata"]["transport"]),
        (&json!("COMPLETED"), &json!("HTTP webhook")),
        "{chat}"
    );
    assert!(hook.requests()[0].json()["message"].as_str().is_some_and(|words| words.contains("train")));
    let transcript =
        engine.ask(reqwest::Method::GET, &format!("simulation-result/{}/transcript", ids[1]), Value::Null).await;
    assert!(transcript.to_string().contains("At seven, then."), "{transcript}");
    let followed = engine.result(&ids[0]).await["follow_up_sms"]["messages"].clone();
    assert_eq!(followed.as_array().map(Vec::len), Some(1), "{followed}");
    assert_eq!(followed[0]["text"], "Your table is booked.");
    for (at, result) in [&call, &texts, &chat].into_iter().enumerate() {
        assert_eq!(result["journey_step"], at + 1);
        assert_eq!(result["digital_human_id"], call["digital_human_id"]);
    }
    engine.program.kill().await;
    let status = desk.wait_for_end().await;
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journey_by_call_text_and_chat_outlives_a_kill() {
    hold(None, ["38300-38349", "38350-38399"]).await;
}

#[test]
fn a_journey_by_call_text_and_chat_outlives_a_kill_on_postgresql() {
    let server = Server::start(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(hold(Some(&server.url()), ["38400-38449", "38450-38499"]));
}
