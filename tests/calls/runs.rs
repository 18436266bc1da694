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
use ringer::config::{Behaviour, Dtmf, Encryption, Retention, Sources};
use ringer::engine::noise::NoiseBeds;
use ringer::engine::{Engine, EngineConfig, Speech};
use ringer::jobs::{Workers, Workshop};
use ringer::provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer::service::{Placer, Running, Service, Settings};
use ringer::tasks::Tasks;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::desk::Agent;
use crate::api::receiver::Receiver;
use crate::databases;
use crate::peers::Peer;

const KEY: &str = "rk_runs";

/// Engine, jobs and API over a database of their own.
pub struct House {
    router: Router,
    pub engine: Engine,
    workers: Workers,
    pub folder: TempDir,
}

impl House {
    pub async fn new() -> House {
        House::open(tempfile::tempdir().expect("a folder"), 20, &[]).await
    }

    /// A house over what is in `folder`, for so many calls at once, and calls in from `allowed` alone.
    pub async fn open(folder: TempDir, max_calls: usize, allowed: &[&str]) -> House {
        let store = databases::open(&folder.path().join("ringer.db"), folder.path()).await.expect("a database");
        let running = Arc::new(Running::default());
        let service = Service::new(store, Clock::Real, Settings::new(folder.path()), running.clone());
        service.bootstrap("default", KEY).await.expect("a key");
        service.recover().await.expect("what is left of before is taken up");
        let synthesizer = Arc::new(FakeSynthesizer::default());
        let speech = Speech { synthesizer: synthesizer.clone(), recognizer: Arc::new(FakeRecognizer::default()) };
        let config = EngineConfig {
            sip: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            rtp_ports: 19_000..=19_999,
            advertise: None,
            shards: 1,
            max_calls,
            srtp: Encryption::Off,
        };
        let (engine, incoming) = Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port");
        let placer = Placer {
            behaviour: Behaviour::default(),
            recognizer_grace_ms: 150,
            dtmf: Dtmf::Rtp,
            model: None,
            synthesizer,
            noises: Arc::new(NoiseBeds::new(None)),
            sounds: Arc::default(),
        };
        let workshop = Workshop {
            service: service.clone(),
            engine: engine.clone(),
            running,
            placer: Arc::new(placer),
            fillers: Arc::new([]),
            start_rate_per_s: 100.0,
            retention: Retention::default(),
            inbound_allow: Sources::read(&allowed.iter().map(|from| from.to_string()).collect::<Vec<_>>())
                .expect("they are networks"),
        };
        let workers = Workers::start(workshop, incoming);
        let setup = Setup { engine: Some(engine.clone()), ..Setup::default() };
        let router = router(service, setup, CancellationToken::new(), Tasks::new());
        House { router, engine, workers, folder }
    }

    pub async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Body) {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("x-api-key", KEY);
        let request = request.header("content-type", "application/json").body(Body::from(bytes)).expect("legal");
        let response = self.router.clone().oneshot(request).await.expect("a router answers");
        (response.status().as_u16(), response.into_body())
    }

    pub async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        let answer = to_bytes(answer, 1 << 24).await.expect("a body");
        assert_eq!(status, 200, "{method} {path}: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).expect("JSON")
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, body).await
    }

    async fn status_of(&self, path: &str) -> u16 {
        self.ask("GET", path, Value::Null).await.0
    }

    /// Queues a run of as many Digital Humans as there are bodies, and answers the ids of run and results.
    pub async fn queue(&self, agent: Value, simulation: Value, humans: &[Value]) -> (String, Vec<String>) {
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
    pub async fn events(&self, id: &str) -> Vec<(String, Value)> {
        self.watch(id).await.rest().await
    }

    pub async fn watch(&self, id: &str) -> Watch {
        let (status, body) = self.ask("GET", &format!("/v1/simulation-result/{id}/events"), Value::Null).await;
        assert_eq!(status, 200);
        Watch { pieces: body.into_data_stream() }
    }

    pub async fn result(&self, id: &str) -> Value {
        self.call("GET", &format!("/v1/retrieve-simulation-result/{id}"), Value::Null).await["simulation_result"]
            .clone()
    }

    pub async fn stop(self) {
        drop(self.close().await);
    }

    /// Ends everything and leaves what was stored.
    pub async fn close(self) -> TempDir {
        self.workers.stop_claiming();
        tokio::join!(self.engine.stop(), self.workers.finish());
        self.folder
    }
}

/// The events of a result as they come.
pub struct Watch {
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

    pub async fn until(&mut self, status: &str) {
        while let Some((event, data)) = self.next().await {
            if event == "status" && data["status"] == status {
                return;
            }
        }
        panic!("it never was {status}");
    }

    pub async fn rest(mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

pub fn with(mut base: Value, more: Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    base.as_object_mut().expect("an object").extend(more);
    base
}

fn sip(peer: &Peer) -> Value {
    json!({ "sip_uri": format!("sip:bob@{}", peer.sip) })
}

pub fn statuses(events: &[(String, Value)]) -> Vec<&str> {
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
    counted(&house).await;
    peer.end();
    house.stop().await;
}

/// Two calls of two seconds are over: what a collector is told of them.
async fn counted(house: &House) {
    let (status, page) = house.ask("GET", "/metrics", Value::Null).await;
    let page = String::from_utf8(to_bytes(page, 1 << 20).await.expect("a body").to_vec()).expect("text");
    assert_eq!(status, 200, "{page}");
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| panic!("no {name}:\n{page}"))
    };
    for (name, expect) in [
        ("ringer_calls_live", 0.0),
        ("ringer_calls_placed_total", 2.0),
        ("ringer_calls_connected_total", 2.0),
        ("ringer_calls_ended_total{reason=\"max_duration\"}", 2.0),
        ("ringer_call_setup_seconds_count", 2.0),
        ("ringer_call_setup_seconds_bucket{le=\"+Inf\"}", 2.0),
        ("ringer_jitter_seconds_count", 2.0),
        ("ringer_recording_frames_dropped_total", 0.0),
        ("ringer_effects_in_flight", 0.0),
    ] {
        assert_eq!(value(name), expect, "{name}:\n{page}");
    }
    let sent = value("ringer_frame_lateness_seconds_count");
    assert!((190.0..=210.0).contains(&sent), "frames of two calls of 2 s: {sent}");
    assert!(value("ringer_rtp_packets_total{fate=\"received\"}") > 100.0 && page.ends_with("# EOF\n"), "{page}");
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

/// A call of two seconds, judged by rules and by a formula; tool calls come after it.
#[tokio::test(flavor = "multi_thread")]
async fn custom_metrics_decide_the_verdict() {
    let (house, peer) = (House::new().await, Peer::answering(1));
    let agent = house.post("/v1/add-agent", with(json!({ "name": "Desk" }), sip(&peer))).await["agent_id"].clone();
    let metric = |name: &str, more: Value| {
        with(json!({ "name": name, "description": "d", "response_type": "pass_fail", "agent_ids": [agent] }), more)
    };
    let greets = json!({ "check": "contains", "value": "good day", "speaker": "USER" });
    let long = json!({ "expression": "duration >= 1900 + 0 * `Greets`" });
    let metrics = json!([
        metric("Greets", json!({ "eval_method": "deterministic", "settings": greets })),
        metric("Long", json!({ "eval_method": "formula", "settings": long })),
        metric("Books", json!({ "response_type": "tool_call", "tool_names": ["book"] })),
        metric("Judged", json!({})),
        metric("Elsewhere", json!({ "scope": "observability", "eval_method": "formula", "settings": long })),
    ]);
    house.post("/v1/create-custom-metrics", json!({ "metrics": metrics })).await;
    let simulation = json!({ "agent_id": agent, "max_call_duration": 2, "max_call_duration_units": "seconds",
        "custom_metrics_failing_threshold": 70 });
    let simulation = house.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    let opens = json!({ "intent": "Asks.", "speaks_first_config": {"speaks_first": true, "mode": "custom", "message": "Good day"} });
    house.post("/v1/create-digital-human", json!({ "digital_human": opens, "simulation_ids": [simulation] })).await;
    let queued = house.post("/v1/queue-simulation-run", json!({ "simulation_id": simulation, "seed": 7 })).await;
    let id = queued["simulation_result_ids"][0].as_str().expect("an id").to_owned();
    let events = house.events(&id).await;
    let judged = |result: &Value| -> Vec<String> {
        let metrics = result["evaluations"][0]["custom_metrics"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let said = |one: &Value| [&one["name"], &one["status"], &one["response_value"]].map(text).join(" ");
        let mut said: Vec<String> = metrics.map(said).collect();
        said.sort();
        said
    };
    let result = house.result(&id).await;
    let expect = ["Books evaluated fail", "Greets evaluated pass", "Judged not_evaluated ", "Long evaluated pass"];
    assert_eq!(judged(&result), expect, "{events:?}");
    assert_eq!((&result["outcome"], &result["evaluations"][0]["status"]), (&json!("failed"), &json!("partial")));
    let rate = result["evaluations"][0]["custom_evals_success_rate"].as_f64().expect("two of three");
    assert!((rate - 66.67).abs() < 0.01, "{rate}");
    assert_eq!(result["custom_metrics"], result["evaluations"][0]["custom_metrics"]);
    // Calls that come late are judged, and with them the verdict.
    let late = json!({ "simulation_result_id": id, "tool_calls": [{ "name": "book", "start_offset_ms": 900 }] });
    house.post("/v1/update-simulation-result", late).await;
    let result = house.result(&id).await;
    assert_eq!(judged(&result)[0], "Books evaluated pass");
    assert_eq!(
        (&result["outcome"], &result["evaluations"][0]["custom_evals_success_rate"]),
        (&json!("passed"), &json!(100.0))
    );
    peer.end();
    house.stop().await;
}

/// What the Digital Human says is echoed, so both channels hold the number; it is nowhere in what is kept.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_private_is_taken_out_of_a_conversation() {
    let (house, peer) = (House::new().await, Peer::answering(1));
    let opens = json!({"speaks_first": true, "mode": "custom", "message": "My number is 98765, thank you"});
    let agent = with(sip(&peer), json!({ "redact_pii": true }));
    let length = json!({ "max_call_duration": 8 });
    let (_, ids) = house.queue(agent, length, &[json!({ "speaks_first_config": opens })]).await;
    let events = house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!(result["status"], "COMPLETED", "{result}");
    let transcript = house.call("GET", &format!("/v1/simulation-result/{}/transcript", ids[0]), Value::Null).await;
    let first = &transcript["entries"][0];
    assert_eq!(first["utterance"], "My number is [NUMBER], thank you", "{transcript}");
    let timeline = house.call("GET", &format!("/v1/simulation-result/{}/timeline", ids[0]), Value::Null).await;
    assert!(timeline["events"].as_array().is_some_and(|events| events.len() > 5));
    for kept in [json!(events), result.clone(), transcript.clone(), timeline] {
        assert!(!kept.to_string().contains("98765"), "{kept}");
    }
    let folder = house.folder.path().join("results").join(&ids[0]);
    let names = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let names: BTreeSet<String> = names.filter_map(|name| name.into_string().ok()).collect();
    // Nobody recognizes what the echo says: it may be private.
    let removed = result["metadata"]["warnings"].to_string().contains("the recording was not kept");
    let expect: &[&str] = if removed { &[] } else { &["caller_clean.wav", "recording.wav"] };
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expect);
    assert_eq!(result["audio_url"].is_null(), removed);
    if !removed {
        let bytes = std::fs::read(folder.join("recording.wav")).expect("a recording");
        let at = |ms: &Value| 104 + 64 * ms.as_i64().expect("an offset") as usize;
        let said = &bytes[at(&first["start_offset_ms"])..at(&first["end_offset_ms"])];
        assert!(said.iter().all(|byte| *byte == 0), "both channels are silent while it is said");
    }
    peer.end();
    house.stop().await;
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
