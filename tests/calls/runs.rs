//! Runs from the queue to the verdict: the whole product in one process, asked over HTTP, calling sipp.

use std::collections::BTreeSet;

use axum::body::to_bytes;
use serde_json::{Value, json};

use super::desk::Agent;
use super::house::House;
use crate::api::receiver::Receiver;
use crate::json::with;
use crate::peers::Peer;

pub(super) fn sip(peer: &Peer) -> Value {
    json!({ "sip_uri": format!("sip:bob@{}", peer.sip) })
}

pub(super) fn statuses(events: &[(String, Value)]) -> Vec<&str> {
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
        check_result(&house, id).await;
    }
    let read = house.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
    let run = &read["simulation_run"];
    assert_eq!((&run["status"], &run["tests_completed"]), (&json!("COMPLETED"), &json!(2)));
    assert_eq!(run["tests_not_evaluated"], 2, "nobody judges: {run}");
    one_after_the_other(&house, &ids).await;
    check_counters(&house).await;
    peer.end();
    house.stop().await;
}

/// Text of `/metrics`, as a collector reads it.
struct Page(String);

impl Page {
    async fn of(house: &House) -> Page {
        let (status, page) = house.ask("GET", "/metrics", Value::Null).await;
        let page = String::from_utf8(to_bytes(page, 1 << 20).await.expect("a body").to_vec()).expect("text");
        assert_eq!(status, 200, "{page}");
        Page(page)
    }

    fn value(&self, name: &str) -> f64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}:\n{}", self.0))
    }
}

/// Checks what a collector is told once two calls of two seconds are over.
async fn check_counters(house: &House) {
    let page = Page::of(house).await;
    let value = |name: &str| page.value(name);
    let page = &page.0;
    for (name, expect) in [
        ("ringer_calls_live", 0.0),
        ("ringer_calls_placed_total", 2.0),
        ("ringer_calls_answered_total", 0.0),
        ("ringer_calls_connected_total", 2.0),
        ("ringer_calls_ended_total{reason=\"max_duration\"}", 2.0),
        ("ringer_call_setup_seconds_count", 2.0),
        ("ringer_call_setup_seconds_bucket{le=\"+Inf\"}", 2.0),
        ("ringer_jitter_seconds_count", 2.0),
        ("ringer_recording_frames_dropped_total", 0.0),
        ("ringer_effects_in_flight", 0.0),
        ("ringer_rtp_packets_total{fate=\"lost\"}", 0.0),
    ] {
        assert_eq!(value(name), expect, "{name}:\n{page}");
    }
    let sent = value("ringer_frame_lateness_seconds_count");
    assert!((190.0..=210.0).contains(&sent), "frames of two calls of 2 s: {sent}");
    assert!(value("ringer_rtp_packets_total{fate=\"received\"}") > 100.0 && page.ends_with("# EOF\n"), "{page}");
    // On a busy machine a packet may come too late to be heard, and the disk may be behind: they are told.
    for name in ["ringer_rtp_packets_total{fate=\"late\"}", "ringer_recorder_lag_seconds"] {
        assert!(value(name) >= 0.0, "{page}");
    }
}

/// Checks the stored result of a call of two seconds.
async fn check_result(house: &House, id: &str) {
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
    assert_eq!(metadata["transport"], "SIP/UDP, RTP/AVP");
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

/// A number said by the Digital Human and echoed to both channels is nowhere in the stored result.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_private_is_taken_out_of_a_conversation() {
    let (house, peer) = (House::understanding("I see.").await, Peer::answering(1));
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
    assert!(!result["metadata"]["warnings"].to_string().contains("the recording was not kept"), "{result}");
    assert!(result["audio_url"].is_string());
    assert_eq!(files(&house, &ids[0]), ["caller_clean.wav", "peaks.bin", "recording.wav"]);
    let recording = house.folder.path().join("results").join(&ids[0]).join("recording.wav");
    let bytes = std::fs::read(recording).expect("a recording");
    let at = |ms: &Value| 104 + 64 * ms.as_i64().expect("an offset") as usize;
    let said = &bytes[at(&first["start_offset_ms"])..at(&first["end_offset_ms"])];
    assert!(said.iter().all(|byte| *byte == 0), "both channels are silent while it is said");
    the_page_tells_nothing_private(&house, &ids[0], first).await;
    peer.end();
    house.stop().await;
}

/// Checks the parts of the page: turns, signalling, outlines, reviews, the file to keep.
async fn the_page_tells_nothing_private(house: &House, id: &str, said: &Value) {
    let of = format!("/v1/simulation-result/{id}");
    let review = json!({ "reviewer": "Ann", "human_goal_success": true, "human_goal_reasoning": "They said 98765." });
    let reviewed = house.call("PUT", &format!("{of}/review"), review).await;
    assert_eq!(reviewed["evaluation"]["human_goal_reasoning"], "They said [NUMBER].", "{reviewed}");
    for (part, expect) in [("turns", "[NUMBER]"), ("reviews", "[NUMBER]"), ("ladder", "entries")] {
        let body = house.call("GET", &format!("{of}/{part}"), Value::Null).await.to_string();
        assert!(body.contains(expect) && !body.contains("98765"), "{part}: {body}");
    }
    let stretch = format!("from_ms={}&to_ms={}", said["start_offset_ms"], said["end_offset_ms"]);
    let (status, slice) = house.ask("GET", &format!("{of}/recording?{stretch}"), Value::Null).await;
    let slice = axum::body::to_bytes(slice, usize::MAX).await.expect("a stretch");
    assert!(status == 200 && slice.len() > 1000 && slice[44..].iter().all(|byte| *byte == 0), "it is silent there");
    let peaks = house.call("GET", &format!("{of}/peaks?zoom=2&{stretch}"), Value::Null).await["channels"].clone();
    let inner = |channel: &Value| {
        let levels = channel.as_array().expect("levels").clone();
        // The first and the last step reach beyond the words.
        levels[4..levels.len() - 4].iter().all(|level| *level == json!(0.0))
    };
    assert!(peaks.as_array().is_some_and(|channels| channels.len() == 2 && channels.iter().all(inner)), "{peaks}");
    let (status, page) = house.ask("GET", &format!("{of}/page"), Value::Null).await;
    let page = axum::body::to_bytes(page, usize::MAX).await.expect("a page");
    let page = String::from_utf8_lossy(&page);
    assert!(status == 200 && page.contains("[NUMBER]") && !page.contains("98765"));
}

fn files(house: &House, id: &str) -> Vec<String> {
    let folder = house.folder.path().join("results").join(id);
    let names = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let names: BTreeSet<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.into_iter().collect()
}

/// The agent greets, and nobody recognizes what it says: it may be private.
#[tokio::test(flavor = "multi_thread")]
async fn a_private_recording_with_words_that_nobody_recognized_is_not_kept() {
    let (house, agent) = (House::new().await, Agent::start().await);
    let sip = json!({ "sip_uri": agent.address, "redact_pii": true });
    let (_, ids) = house.queue(sip, json!({ "max_call_duration": 8 }), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!(result["status"], "COMPLETED", "{result}");
    assert!(result["metadata"]["warnings"].to_string().contains("the recording was not kept"), "{result}");
    assert!(result["audio_url"].is_null());
    assert_eq!(files(&house, &ids[0]), Vec::<String>::new());
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

/// Returns the stereo frames of a WAV file whose data chunk is the last.
fn frames_of(file: &[u8]) -> i64 {
    let at = file.windows(4).position(|window| window == b"data").expect("a data chunk");
    (file.len() - at - 8) as i64 / 4
}

/// Checks that no result was dispatched before the conversation of the one before was over.
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
    // What this side lacks says nothing about the agent.
    let is_own = ["engine", "simulated_caller"].contains(&expect.2) || expect.1 == "NO_CONNECTION_TYPE";
    let is_unreachable = result["verdict"]["word"] == "unreachable";
    let outcome = if is_own && !is_unreachable { "not_evaluated" } else { "failed" };
    assert_eq!((&result["outcome"], &result["duration_ms"]), (&json!(outcome), &Value::Null), "{result}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_agent_has_rejected_the_call() {
    let peer = Peer::scenario("busy");
    check(sip(&peer), ("NO_ANSWER", "CALL_REJECTED", "agent_owner", json!(486))).await;
    peer.end();
}

/// One is answered, one is busy, one cannot be reached, and one has no address that could be called.
#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_was_dialled_is_counted_as_placed() {
    let (house, answers, busy) = (House::new().await, Peer::answering(1), Peer::scenario("busy"));
    // A port that was free a moment ago.
    let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("one is free");
    let nobody = json!({ "sip_uri": format!("sip:bob@{free}") });
    let nowhere = json!({ "sip_uri": "sip:bob@nowhere.invalid" });
    for agent in [sip(&answers), sip(&busy), nobody, nowhere] {
        let (_, ids) = house.queue(agent, json!({}), &[json!({})]).await;
        house.events(&ids[0]).await;
    }
    let page = Page::of(&house).await;
    for (name, expect) in [
        ("ringer_calls_placed_total", 3.0),
        ("ringer_calls_answered_total", 0.0),
        ("ringer_calls_connected_total", 1.0),
        ("ringer_call_setup_seconds_count", 1.0),
        ("ringer_calls_ended_total{reason=\"max_duration\"}", 1.0),
        ("ringer_calls_ended_total{reason=\"rejected\"}", 1.0),
        ("ringer_calls_ended_total{reason=\"dial_failed\"}", 1.0),
    ] {
        assert_eq!(page.value(name), expect, "{name}:\n{}", page.0);
    }
    busy.end();
    answers.end();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulation_that_hangs_up_on_transfer_does() {
    let (house, peer) = (House::new().await, Peer::scenario("refer"));
    let simulation = json!({ "hangup_on_transfer": true, "max_call_duration": 20 });
    let (_, ids) = house.queue(sip(&peer), simulation, &[json!({})]).await;
    let events = house.events(&ids[0]).await;
    peer.end();
    let (_, asked) = events.iter().find(|(name, _)| name == "transfer").expect("it is told");
    assert_eq!(asked["data"], json!({ "to": "sip:carol@example.com", "accepted": true, "code": 202 }));
    let result = house.result(&ids[0]).await;
    let found = (&result["status"], &result["end_reason"], &result["conversation_ended_by"]);
    assert_eq!(found, (&json!("COMPLETED"), &json!("transfer"), &json!("USER")), "{result}");
    house.stop().await;
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
    let unspoken = ("NO_CONNECTION", "CONNECTION_NOT_SUPPORTED", "engine", Value::Null);
    let refused = ("NO_CONNECTION", "WEBSOCKET_CONNECT_FAILED", "agent_owner", Value::Null);
    check(json!({ "websocket_url": "ws://127.0.0.1:1" }), refused).await;
    check(json!({ "sip_uri": "sip:bob@127.0.0.1;transport=sctp" }), unspoken).await;
    let phone = json!({ "phone_number": "+15550001111" });
    check(phone, ("NO_CONNECTION", "SIP_NOT_CONFIGURED", "engine", Value::Null)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_dialled_is_dialled_again() {
    let house = House::new().await;
    let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("one is free");
    let nobody = json!({ "sip_uri": format!("sip:bob@{free}") });
    let again = json!({ "enable_rerun_failed_test_results": true, "rerun_max_retries": 2, "max_concurrent": 1 });
    let (_, ids) = house.queue(nobody, again, &[json!({}), json!({})]).await;
    for id in &ids {
        let events = house.events(id).await;
        let tries = ["QUEUED", "DISPATCHED"].repeat(3);
        assert_eq!(statuses(&events), [&["INITIALIZING"][..], &tries, &["NO_CONNECTION"]].concat());
        let result = house.result(id).await;
        let found = result["metadata"]["attempts"].as_array().expect("the attempts before it");
        let codes: Vec<(i64, &Value)> =
            found.iter().map(|one| (one["attempt"].as_i64().expect("a number"), &one["error_code"])).collect();
        let failed = json!("SIP_DIAL_FAILED");
        assert_eq!(codes, [(1, &failed), (2, &failed)]);
        assert_eq!((&result["attempt"], &result["error_code"]), (&json!(3), &failed));
    }
    house.stop().await;
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
