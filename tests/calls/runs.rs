//! Runs from the queue to the verdict: the whole product in one process, asked over HTTP, calling sipp.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::Request;
use futures_util::StreamExt;
use ringer::api::{Setup, router};
use ringer::clock::Clock;
use ringer::config::{Behaviour, Dtmf, Encryption};
use ringer::engine::noise::NoiseBeds;
use ringer::engine::{Engine, EngineConfig, Speech};
use ringer::jobs::{Workers, Workshop};
use ringer::provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer::service::{Placer, Running, Service, Settings};
use ringer::store::Store;
use ringer::tasks::Tasks;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::desk::Agent;
use crate::api::receiver::Receiver;
use crate::peers::Peer;

const KEY: &str = "rk_runs";

/// Engine, jobs and API over a database of their own.
struct House {
    router: Router,
    engine: Engine,
    workers: Workers,
    folder: TempDir,
}

impl House {
    async fn new() -> House {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("ringer.db")).await.expect("a database");
        let running = Arc::new(Running::default());
        let service = Service::new(store, Clock::Real, Settings::new(folder.path()), running.clone());
        service.bootstrap("default", KEY).await.expect("a key");
        let synthesizer = Arc::new(FakeSynthesizer::default());
        let speech = Speech { synthesizer: synthesizer.clone(), recognizer: Arc::new(FakeRecognizer::default()) };
        let config = EngineConfig {
            sip: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            rtp_ports: 19_000..=19_999,
            advertise: None,
            shards: 1,
            max_calls: 20,
            srtp: Encryption::Off,
        };
        let (engine, _) = Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port");
        let placer = Placer {
            behaviour: Behaviour::default(),
            recognizer_grace_ms: 150,
            dtmf: Dtmf::Rtp,
            model: None,
            synthesizer,
            noises: Arc::new(NoiseBeds::new(None)),
            sounds: Arc::default(),
        };
        let workers = Workers::start(Workshop {
            service: service.clone(),
            engine: engine.clone(),
            running,
            placer: Arc::new(placer),
            fillers: Arc::new([]),
            start_rate_per_s: 100.0,
        });
        let router = router(service, Setup::default(), CancellationToken::new(), Tasks::new());
        House { router, engine, workers, folder }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Body) {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("x-api-key", KEY);
        let request = request.header("content-type", "application/json").body(Body::from(bytes)).expect("legal");
        let response = self.router.clone().oneshot(request).await.expect("a router answers");
        (response.status().as_u16(), response.into_body())
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        let answer = to_bytes(answer, 1 << 24).await.expect("a body");
        assert_eq!(status, 200, "{method} {path}: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).expect("JSON")
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, body).await
    }

    async fn status_of(&self, path: &str) -> u16 {
        self.ask("GET", path, Value::Null).await.0
    }

    /// Queues a run of as many Digital Humans as there are bodies, and answers the ids of run and results.
    async fn queue(&self, agent: Value, simulation: Value, humans: &[Value]) -> (String, Vec<String>) {
        let agent_id = self.post("/v1/add-agent", with(json!({ "name": "Desk" }), agent)).await["agent_id"].to_string();
        let body = json!({ "agent_id": agent_id, "max_call_duration": 2, "max_call_duration_units": "seconds" });
        let id = self.post("/v1/create-simulation", with(body, simulation)).await["simulation_id"].clone();
        for human in humans {
            let human = with(json!({ "intent": "Book a table." }), human.clone());
            let body = json!({ "digital_human": human, "simulation_ids": [id] });
            self.post("/v1/create-digital-human", body).await;
        }
        let queued = self.post("/v1/queue-simulation-run", json!({ "simulation_id": id.to_string(), "seed": 7 })).await;
        let ids = queued["simulation_result_ids"].as_array().expect("ids").iter();
        let text = |id: &Value| id.as_str().expect("a text").to_owned();
        (text(&queued["simulation_run_id"]), ids.map(text).collect())
    }

    /// The events of a result, until the last.
    async fn events(&self, id: &str) -> Vec<(String, Value)> {
        self.watch(id).await.rest().await
    }

    async fn watch(&self, id: &str) -> Watch {
        let (status, body) = self.ask("GET", &format!("/v1/simulation-result/{id}/events"), Value::Null).await;
        assert_eq!(status, 200);
        Watch { pieces: body.into_data_stream() }
    }

    async fn result(&self, id: &str) -> Value {
        self.call("GET", &format!("/v1/retrieve-simulation-result/{id}"), Value::Null).await["simulation_result"]
            .clone()
    }

    async fn stop(self) {
        self.workers.stop_claiming();
        tokio::join!(self.engine.stop(), self.workers.finish());
    }
}

/// The events of a result as they come.
struct Watch {
    pieces: BodyDataStream,
}

impl Watch {
    async fn next(&mut self) -> Option<(String, Value)> {
        let piece = self.pieces.next().await?.expect("the stream is not broken");
        let piece = String::from_utf8(piece.to_vec()).expect("text");
        let field = |name: &str| piece.lines().find_map(|line| line.strip_prefix(name));
        let event = field("event: ").unwrap_or_default().to_owned();
        Some((event, field("data: ").map_or(Value::Null, |data| serde_json::from_str(data).expect("JSON"))))
    }

    async fn until(&mut self, status: &str) {
        while let Some((event, data)) = self.next().await {
            if event == "status" && data["status"] == status {
                return;
            }
        }
        panic!("it never was {status}");
    }

    async fn rest(mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn with(mut base: Value, more: Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    base.as_object_mut().expect("an object").extend(more);
    base
}

fn sip(peer: &Peer) -> Value {
    json!({ "sip_uri": format!("sip:bob@{}", peer.sip) })
}

fn statuses(events: &[(String, Value)]) -> Vec<&str> {
    let states = events.iter().filter(|(event, _)| event == "status");
    states.map(|(_, data)| data["status"].as_str().expect("a status")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_held_measured_and_kept() {
    let (house, peer) = (House::new().await, Peer::answering(2));
    let opens = json!({"speaks_first_config": {"speaks_first": true, "mode": "custom", "message": "Good day"}});
    let (run, ids) = house.queue(sip(&peer), json!({ "max_concurrent": 1 }), &[opens.clone(), opens]).await;
    let path = |id: &str, part: &str| format!("/v1/simulation-result/{id}/{part}");
    for part in ["timeline", "transcript", "recording"] {
        assert_eq!(house.status_of(&path(&ids[1], part)).await, 404, "{part} before the call");
    }
    let events = house.events(&ids[1]).await;
    let walk = ["INITIALIZING", "QUEUED", "DISPATCHED", "RUNNING", "CONVERSATION_ENDED", "EVALUATING", "COMPLETED"];
    let past = statuses(&events);
    assert_eq!(past, walk);
    let names: BTreeSet<&str> = events.iter().map(|(event, _)| event.as_str()).collect();
    for name in ["call.dialing", "call.connected", "speech.started", "speech.ended", "call.ended", "end"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    for id in &ids {
        kept(&house, id).await;
    }
    let read = house.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
    let run = &read["simulation_run"];
    assert_eq!((&run["status"], &run["tests_completed"]), (&json!("COMPLETED"), &json!(2)));
    assert_eq!(run["tests_not_evaluated"], 2, "nobody judges: {run}");
    one_after_the_other(&house, &ids).await;
    peer.end();
    house.stop().await;
}

/// What a call of two seconds leaves.
async fn kept(house: &House, id: &str) {
    let result = house.result(id).await;
    assert_eq!((&result["status"], &result["end_reason"]), (&json!("COMPLETED"), &json!("max_duration")), "{result}");
    assert_eq!((&result["conversation_ended_by"], &result["error_code"]), (&json!("USER"), &Value::Null));
    let duration_ms = result["duration_ms"].as_i64().expect("it was connected");
    assert!((1980..=2060).contains(&duration_ms), "{duration_ms}");
    assert_eq!(result["evaluations"][0]["not_evaluated_reason"], "No language model is configured");
    let metrics = result["metrics"].as_array().expect("metrics");
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).map(|metric| &metric["value"]);
    assert_eq!((metric("duration"), metric("interface")), (Some(&json!(duration_ms)), Some(&json!("PHONE"))));
    assert!(metric("silence_percentage").is_some() && metric("customer_speak_percentage").is_some());
    let metadata = &result["metadata"];
    assert_eq!((&metadata["codec"], &metadata["speaker"]), (&json!("PCMU"), &json!("template")));
    assert!(metadata["sip_call_id"].is_string() && metadata["remote_address"].is_string(), "{metadata}");
    let timeline = house.call("GET", &format!("/v1/simulation-result/{id}/timeline"), Value::Null).await;
    let samples: Vec<i64> =
        timeline["events"].as_array().expect("events").iter().filter_map(|event| event["sample"].as_i64()).collect();
    assert!(samples.is_sorted() && samples.len() > 5, "{timeline}");
    let transcript = house.call("GET", &format!("/v1/simulation-result/{id}/transcript"), Value::Null).await;
    assert_eq!(transcript["entries"][0]["utterance"], "Good day", "{transcript}");
    let file = house.folder.path().join("results").join(id).join("recording.wav");
    let frames = frames_of(&std::fs::read(file).expect("a recording"));
    assert!((frames - 16 * duration_ms).abs() <= 320, "{frames} frames in {duration_ms} ms");
    assert_eq!(house.status_of(&format!("/v1/simulation-result/{id}/recording")).await, 200);
}

/// The agent greets for some seconds, and the caller coughs and mutters meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_digital_human_probes_while_the_agent_speaks() {
    let (house, agent) = (House::new().await, Agent::start().await);
    let asked = json!({"backchannel_per_minute": 20.0, "vocal_tic_per_minute": 10.0, "non_directed_per_minute": 10.0});
    let sip = json!({ "sip_uri": agent.address });
    let length = json!({ "max_call_duration": 12 });
    let (_, ids) = house.queue(sip, length, &[json!({ "duplex": asked, "endpointing_delay": 3.0 })]).await;
    let statuses = house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!(result["status"], "COMPLETED", "{statuses:?}");
    assert_eq!(result["metadata"]["behaviour"]["duplex"], asked);
    assert!(!result["metadata"]["warnings"].to_string().contains("duplex"), "{}", result["metadata"]);
    let timeline = house.call("GET", &format!("/v1/simulation-result/{}/timeline", ids[0]), Value::Null).await;
    let events = timeline["events"].as_array().expect("events");
    let named = |name: &str| events.iter().filter(|event| event["event"] == name && event["side"] == "dh").collect();
    let (probes, sounds): (Vec<&Value>, Vec<&Value>) = (named("probe"), named("speech.started"));
    assert!(!probes.is_empty(), "{timeline}");
    for probe in &probes {
        let sound = sounds.iter().find(|sound| sound["sample"] == probe["sample"] && sound["data"]["kind"] == "probe");
        assert!(sound.is_some(), "{probe}: {sounds:?}");
        let spoke = |event: &&Value| event["event"] == "speech.started" && event["side"] == "agent";
        let onset = events.iter().filter(spoke).find(|event| event["sample"].as_i64() < probe["sample"].as_i64());
        assert!(onset.is_some(), "a probe before the agent spoke: {probe}");
    }
    let transcript = house.call("GET", &format!("/v1/simulation-result/{}/transcript", ids[0]), Value::Null).await;
    let entries = transcript["entries"].as_array().expect("entries");
    let offsets: Vec<i64> = probes.iter().filter_map(|probe| Some(probe["sample"].as_i64()? / 16)).collect();
    let is_probe = |entry: &&Value| entry["start_offset_ms"].as_i64().is_some_and(|at| offsets.contains(&at));
    assert_eq!(entries.iter().find(|entry| entry["speaker"] == "USER" && is_probe(entry)), None);
    house.stop().await;
}

/// Stereo frames of a WAV file whose data chunk is the last.
fn frames_of(file: &[u8]) -> i64 {
    let at = file.windows(4).position(|window| window == b"data").expect("a data chunk");
    (file.len() - at - 8) as i64 / 4
}

/// No result was dispatched before the conversation of the one before was over.
async fn one_after_the_other(house: &House, ids: &[String]) {
    let time = |result: &Value, status: &str| {
        let history = result["status_history"].as_array().expect("a history").clone();
        let change = history.into_iter().find(|change| change["status"] == status).expect("it was there");
        change["at"].as_str().expect("a time").to_owned()
    };
    let (first, second) = (house.result(&ids[0]).await, house.result(&ids[1]).await);
    let (ended, dispatched) = (time(&first, "CONVERSATION_ENDED"), time(&second, "DISPATCHED"));
    assert!(ended <= dispatched, "{ended} {dispatched}");
}

async fn check(agent: Value, expect: (&str, &str, &str, Value)) {
    let house = House::new().await;
    let (_, ids) = house.queue(agent.clone(), json!({}), &[json!({})]).await;
    let events = house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let text = |key: &str| result[key].as_str().unwrap_or_default();
    let given = (text("status"), text("error_code"), text("error_owner"), result["sip_code"].clone());
    assert_eq!(given, expect, "{agent}: {result}");
    assert_eq!(statuses(&events).last(), Some(&expect.0));
    assert_eq!((&result["outcome"], &result["duration_ms"]), (&json!("failed"), &Value::Null));
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_agent_has_rejected_the_call() {
    let peer = Peer::scenario("busy");
    check(sip(&peer), ("NO_ANSWER", "CALL_REJECTED", "agent_owner", json!(486))).await;
    peer.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_the_owners_affair() {
    let peer = Peer::scenario("challenge");
    let agent = with(sip(&peer), json!({ "sip_username": "ringer", "sip_password": "guess" }));
    check(agent, ("NO_CONNECTION", "SIP_AUTH_FAILED", "agent_owner", json!(403))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_called_says_why() {
    let unknown = json!({ "sip_uri": "sip:bob@nowhere.invalid" });
    check(unknown, ("NO_CONNECTION", "SIP_DIAL_FAILED", "network", Value::Null)).await;
    check(json!({}), ("NO_CONNECTION", "NO_CONNECTION_TYPE", "agent_owner", Value::Null)).await;
    let phone = json!({ "phone_number": "+15550001111" });
    check(phone, ("NO_CONNECTION", "SIP_NOT_CONFIGURED", "engine", Value::Null)).await;
}

/// The monitor's own call finds out, and those who watch are told by what runs behind the API.
#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_calls_and_tells() {
    let (house, receiver) = (House::new().await, Receiver::new(&[]).await);
    let agent = json!({ "name": "Desk", "sip_uri": "sip:bob@nowhere.invalid" });
    let agent_id = house.post("/v1/add-agent", agent).await["agent_id"].clone();
    let channels = json!({ "channels": [{ "type": "webhook", "target": receiver.url("/hook") }] });
    let body =
        json!({ "agent_id": agent_id, "checks": [{ "checkType": "agent_responds" }], "notifications": channels });
    let monitor = house.post("/v1/uptime/monitors", body).await["id"].as_str().expect("an id").to_owned();
    let down = receiver.wait_for(1).await.json();
    assert_eq!((&down["kind"], &down["data"]["monitor_id"]), (&json!("uptime_down"), &json!(monitor)));
    let why = down["text"].as_str().expect("a text");
    assert!(why.starts_with("agent_responds: SIP_DIAL_FAILED"), "{why}");
    let read = house.call("GET", &format!("/v1/uptime/monitors/{monitor}"), Value::Null).await;
    assert_eq!((&read["status"], &read["uptime_percentage"]), (&json!("DOWN"), &json!(0.0)));
    house.call("DELETE", &format!("/v1/uptime/monitors/{monitor}"), Value::Null).await;
    assert_eq!(receiver.wait_for(2).await.json()["kind"], "uptime_recovered");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_reach_the_agent_and_a_hangup_ends_the_call() {
    let (house, peer) = (House::new().await, Peer::scenario("headers"));
    let agent = with(sip(&peer), json!({ "custom_sip_headers": { "Ringer-Test": "yes-17" } }));
    let fact = json!({"trait_name": "Trait", "trait_data_type": "STRING", "value": "blue", "is_sip_header": true});
    let long = json!({ "max_call_duration": 60 });
    let (_, ids) = house.queue(agent, long, &[json!({ "traits": [fact] })]).await;
    let mut watch = house.watch(&ids[0]).await;
    watch.until("RUNNING").await;
    let hung_up = house.post(&format!("/v1/simulation-result/{}/hangup", ids[0]), Value::Null).await;
    assert_eq!(hung_up["status"], "CONVERSATION_ENDED");
    assert_eq!(statuses(&watch.rest().await), ["CONVERSATION_ENDED", "EVALUATING", "COMPLETED"]);
    assert_eq!(house.result(&ids[0]).await["end_reason"], "api_hangup");
    let log = peer.end();
    assert!(log.contains("yes-17") && log.contains("blue"), "{log}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_calls_nobody_any_more() {
    let (house, peer) = (House::new().await, Peer::scenario("ring"));
    let (run, ids) = house.queue(sip(&peer), json!({ "sequential_calling": true }), &[json!({}), json!({})]).await;
    let mut watch = house.watch(&ids[0]).await;
    watch.until("DISPATCHED").await;
    let cancelled = house.post(&format!("/v1/simulation-run/{run}/cancel"), json!({})).await;
    assert_eq!(cancelled["cancelled"], 2, "{cancelled}");
    assert_eq!(statuses(&watch.rest().await), ["CANCELLED"]);
    assert_eq!(statuses(&house.events(&ids[1]).await).last(), Some(&"CANCELLED"));
    peer.end();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_calls_and_says_so() {
    let (house, peer) = (House::new().await, Peer::answering(1));
    let (_, ids) = house.queue(sip(&peer), json!({ "max_call_duration": 60 }), &[json!({})]).await;
    let mut watch = house.watch(&ids[0]).await;
    watch.until("RUNNING").await;
    house.workers.stop_claiming();
    tokio::join!(house.engine.stop(), house.workers.finish());
    assert_eq!(statuses(&watch.rest().await), ["SYSTEM_ERROR"]);
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["error_code"], &result["end_reason"]), (&json!("ENGINE_SHUTDOWN"), &json!("shutdown")));
    peer.end();
}
