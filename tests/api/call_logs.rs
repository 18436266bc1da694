//! Production calls: brought in, measured, listed, changed, deleted.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::config::OrganizationLimits;
use ringer::provider::testing::{Reply, ScriptedModel};
use ringer_base::testing::WebServer;
use ringer_media::testing::Voice;
use serde_json::{Value, json};

use super::world::World;
use crate::json::with;

const PER_MS: usize = 16;

/// Returns a world with one evaluated call, `$call`.
pub(crate) async fn with_call() -> World {
    let mut world = World::with_rows().await;
    let queued = world.post("/v1/evaluate", body(&world, json!({}))).await;
    world.work_off().await;
    world.call_it("call", queued["call_id"].as_str().expect("an id"));
    world
}

/// Returns a call of the agent with a transcript of four turns, and `more`.
pub(crate) fn body(world: &World, more: Value) -> Value {
    let mut body = json!({
        "agent_id": world.name("agent"),
        "start_time_utc": "2026-01-05T08:00:00Z",
        "participants": [{ "role": "AGENT", "spoke_first": true, "name": "Desk" }, { "role": "USER" }],
        "transcript": [
            { "start_offset_ms": 0, "end_offset_ms": 2000, "speaker": "AGENT", "utterance": "Welcome to the desk." },
            { "start_offset_ms": 2500, "end_offset_ms": 4000, "speaker": "USER", "utterance": "A visit, please." },
            { "start_offset_ms": 5200, "end_offset_ms": 8000, "speaker": "AGENT", "utterance": "Tuesday is free." },
            { "start_offset_ms": 8400, "end_offset_ms": 9000, "speaker": "USER", "utterance": "Fine." },
        ],
    });
    let fields = body.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    fields.retain(|_, value| !value.is_null());
    body
}

/// Brings a call in, evaluates it and reads it.
pub(crate) async fn evaluate(world: &World, more: Value) -> Value {
    let queued = world.post("/v1/evaluate-call", body(world, more)).await;
    assert_eq!(queued["message"], "Call queued for evaluation");
    world.work_off().await;
    let read = world.get(&format!("/v1/retrieve-call-log/{}", queued["call_id"].as_str().expect("an id"))).await;
    assert_eq!(read["status"], "200");
    read["call_log"].clone()
}

#[tokio::test]
async fn words_are_judged_by_the_metrics_that_a_call_names() {
    let world = World::with_rows().await;
    let rule = |name: &str, more: Value| {
        let fields = json!({
            "name": name, "description": "Tuesday is offered.", "response_type": "pass_fail",
            "eval_method": "deterministic", "settings": { "check": "contains", "value": "tuesday" },
        });
        with(fields, more)
    };
    let agent = json!([world.name("agent").parse::<i64>().expect("a number")]);
    let mut ids = Vec::new();
    for (name, more) in [
        ("of the agent", json!({ "agent_ids": agent })),
        ("of simulations", json!({ "agent_ids": agent, "scope": "simulation" })),
        ("named", json!({ "scope": "observability" })),
        ("tagged", json!({ "tags": ["night"] })),
        ("judged", json!({ "agent_ids": agent, "eval_method": "llm_judge", "settings": {} })),
        ("of nobody", json!({})),
    ] {
        let made = world.post("/v1/create-custom-metric", rule(name, more)).await;
        ids.push(made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned());
    }
    let whole = json!({
        "goal_success": null, "goal_reasoning": null, "hallucination": false, "hallucination_reasoning": "No.",
        "redundancy": true, "redundancy_reasoning": "Twice.", "call_summary": "A visit was booked.",
        "sentiment_scores": { "positive": 0.5, "neutral": 0.5, "negative": 0 }, "sentiment_score": 0.4,
    });
    let verdict = json!({ "reasoning": "It is so.", "value": true });
    let model =
        ScriptedModel::new([whole, verdict.clone(), verdict].map(|answer| Reply::says(&[&answer.to_string()])).into());
    let model = Arc::new(model);
    let more = json!({ "custom_metrics": [ids[2]], "custom_metric_tags": ["night", "unheard of"] });
    let queued = world.post("/v1/evaluate", body(&world, more)).await;
    world.work_off_with(Some(model.clone())).await;
    let read = world.get(&format!("/v1/retrieve-call-log/{}", queued["call_id"].as_str().expect("an id"))).await;
    let log = &read["call_log"];
    let evaluation = &log["evaluations"][0];
    assert_eq!(
        (&evaluation["redundancy"], &evaluation["hallucination"]),
        (&json!(true), &json!(false)),
        "{evaluation}"
    );
    assert_eq!(metric(log, "call_summary"), Some(json!("A visit was booked.")));
    let results = evaluation["custom_metrics"].as_array().expect("results");
    let mut found: Vec<(&str, &str)> = results
        .iter()
        .map(|one| (one["name"].as_str().expect("a name"), one["response_value"].as_str().unwrap_or("none")))
        .collect();
    found.sort_unstable();
    // Polite is the agent's own too.
    let all = ["Polite", "judged", "named", "of the agent", "tagged"];
    assert_eq!(found, all.map(|name| (name, if name == "Polite" { "yes" } else { "pass" })));
    let asked = model.requests();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|asked| format!("{asked:?}").contains("Tuesday is free.")));
}

pub(crate) fn metric(log: &Value, name: &str) -> Option<Value> {
    let metrics = log["metrics"].as_array().expect("metrics");
    metrics.iter().find(|metric| metric["name"] == name).map(|metric| metric["value"].clone())
}

/// Returns speech of caller and agent at known times (milliseconds), in a stereo WAV file of 12 s.
fn recording(caller: &[[usize; 2]], agent: &[[usize; 2]]) -> Vec<u8> {
    let voice = Voice::from_ulaw(include_bytes!("../../fixtures/audio/speech.ul"));
    let samples = 12_000 * PER_MS;
    let side = |spans: &[[usize; 2]], voice: &Voice| {
        let mut pcm = vec![0i16; samples];
        for (n, [from, to]) in spans.iter().enumerate() {
            let said = voice.say((to - from) * PER_MS, 100 * n);
            pcm[from * PER_MS..to * PER_MS].copy_from_slice(&said);
        }
        pcm
    };
    let (caller, agent) = (side(caller, &voice), side(agent, &voice.reverse()));
    let mut data = Vec::new();
    for (left, right) in caller.iter().zip(&agent) {
        data.extend(left.to_le_bytes());
        data.extend(right.to_le_bytes());
    }
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x02\0\x80\x3e\0\0\0\xfa\0\0\x04\0\x10\0data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

pub(crate) fn stereo() -> Vec<u8> {
    recording(&[[2500, 4000], [8400, 9400]], &[[500, 2000], [5200, 7600], [10_000, 11_500]])
}

#[tokio::test]
async fn a_transcript_is_measured_and_every_field_is_read_back() {
    let world = World::with_rows().await;
    let metric_id = world.name("metric");
    let given = json!({
        "call_direction": "OUTBOUND", "interface": "WEB", "tags": ["a"], "metadata": { "k": 1 },
        "tool_calls": [{ "name": "book", "start_offset_ms": 6000, "parameters": { "day": "Tue" }, "output": { "status": 503 } }],
        "events": [{ "title": "moved", "start_offset_ms": 10 }], "conversation_ended_by": "USER",
        "start_time_utc": "2026-01-05T08:00:00.123456Z", "created_at": "2026-01-05T08:30:00.6543219Z",
        "custom_metrics": [metric_id],
        "trace_id": "t", "webhook_tag": "w", "enable_phrase_latencies": true,
    });
    let log = evaluate(&world, given).await;
    for (field, expect) in [
        ("agent_id", json!(world.name("agent"))),
        ("external_agent_id", Value::Null),
        ("recording_url", Value::Null),
        ("start_time_utc", json!("2026-01-05T08:00:00.123456Z")),
        ("call_direction", json!("OUTBOUND")),
        ("interface", json!("WEB")),
        ("status", json!("COMPLETED")),
        ("created_at", json!("2026-01-05T08:30:00.654321Z")),
        ("transcript_url", Value::Null),
        ("tags", json!(["a"])),
        ("duration_ms", json!(9000)),
        ("annotations", Value::Null),
        ("metadata", json!({ "k": 1 })),
        ("custom_metrics", json!([metric_id])),
        ("conversation_ended_by", json!("USER")),
        ("error_message", Value::Null),
    ] {
        assert_eq!(log.get(field), Some(&expect), "{field}");
    }
    assert_eq!(
        log["participants"][0],
        json!({"role": "AGENT", "spoke_first": true, "name": "Desk", "phone_number": null})
    );
    assert_eq!(log["tool_calls"][0]["output"], json!({ "status": 503 }));
    assert_eq!(log["events"][0]["title"], "moved");
    let evaluation = &log["evaluations"][0];
    assert_eq!(evaluation["avg_agent_latency"], 1.2);
    assert_eq!(evaluation["latency"]["phrase_latencies"], json!([1.2]));
    assert_eq!((&evaluation["num_turns"], &evaluation["status"]), (&json!(2), &json!("not_evaluated")));
    assert_eq!(evaluation["not_evaluated_reason"], "No language model is configured");
    for (name, expect) in [
        ("avg_customer_latency", Some(json!(0.45))),
        ("duration", Some(json!(9000))),
        ("interface", Some(json!("WEB"))),
        ("agent_snr", None),
    ] {
        assert_eq!(metric(&log, name), expect, "{name}");
    }
    // A tool call that failed is an issue of the agent, of this kind of conversation.
    let issue = world.get("/v1/issues").await[0]["id"].as_str().expect("an issue").to_owned();
    let issue = world.get(&format!("/v1/issues/{issue}")).await;
    assert_eq!((&issue["error_code"], &issue["occurrences"][0]["kind"]), (&json!("503"), &json!("observability")));
    assert_eq!(issue["occurrences"][0]["id"], log["id"]);
}

#[tokio::test]
async fn a_stereo_recording_is_measured_by_what_is_heard() {
    let world = World::with_rows().await;
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(stereo()));
    let log = evaluate(&world, json!({ "recording_base64": data, "multichannel": true, "transcript": null })).await;
    assert_eq!((&log["status"], &log["duration_ms"]), (&json!("COMPLETED"), &json!(12_000)), "{log}");
    assert_eq!(log["recording_url"], Value::Null);
    let latency = &log["evaluations"][0]["latency"];
    // From 4.0 to 5.2 s and from 9.4 to 10.0 s.
    for (name, expect) in [("max_agent_latency", 1.2), ("avg_agent_latency", 0.9)] {
        let found = latency[name].as_f64().expect("a latency");
        println!("{name}: {found} of {expect}");
        assert!((found - expect).abs() <= 0.03, "{name}: {found} instead of {expect}");
    }
    let spoken = log["evaluations"][0]["agent_speak_percentage"].as_f64().expect("a share");
    assert!((spoken - 45.0).abs() < 2.0, "{spoken}");
    assert_eq!(metric(&log, "agent_snr"), Some(json!(60.0)), "beside the speech there is nothing");
    assert!(metric(&log, "user_audio_clarity").is_some() && metric(&log, "agent_pitch_variability").is_some());

    // Without the recording nothing is left to measure.
    let path = format!("/v1/call-log/{}", log["id"].as_str().expect("an id"));
    let gone = world.call("DELETE", &format!("{path}?recording_only=true"), Value::Null).await;
    assert_eq!(gone, json!({ "message": "Recording deleted", "status": "200" }));
    world.post(&format!("/v1/re-evaluate/{}", log["id"].as_str().expect("an id")), Value::Null).await;
    world.work_off().await;
    let read = world.get(&format!("/v1/retrieve-call-log/{}", log["id"].as_str().expect("an id"))).await;
    assert_eq!((&read["call_log"]["metrics"], &read["call_log"]["duration_ms"]), (&json!([]), &json!(0)));
}

#[tokio::test]
async fn files_are_fetched_and_what_is_missing_is_told() {
    let lines = json!({ "transcript": body_entries() }).to_string();
    let server = WebServer::start(move |path: &str| match path {
        "/call.wav" => WebServer::file(&stereo()),
        "/half.wav" => WebServer::file(&stereo()[..44 + 6 * 64_000]),
        "/words.json" => WebServer::file(lines.as_bytes()),
        "/broken.json" => WebServer::file(br#"[{"speaker": "AGENT", "utterance": "secret words"}]"#),
        "/broken.mp3" => WebServer::file(b"no audio at all"),
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    });
    let server = server.await.expect("loopback has a free port");
    let world = World::with_rows().await;
    let both = json!({
        "recording_url": server.url("/call.wav"), "transcript_url": server.url("/words.json"), "transcript": null,
    });
    let log = evaluate(&world, both).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(log["evaluations"][0]["latency"]["max_agent_latency"], 1.2);
    assert_eq!(log["duration_ms"], 12_000);
    let half = json!({ "recording_url": server.url("/half.wav") });
    let log = evaluate(&world, half).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null));
    let expect = "recording: 6.0 s of the audio file were read, the rest was not: the file is not complete: 6.0 s that it tells \
                  of are not in it";
    assert_eq!(log["metadata"]["warnings"], json!([expect]));
    // One channel of two voices: the transcript tells whose is whose.
    assert!(metric(&log, "agent_snr").is_some());

    for (more, expect, measured) in [
        (
            json!({ "recording_url": server.url("/none.mp3") }),
            "recording_url: File could not be fetched: 127.0.0.1 answered 404",
            true,
        ),
        (
            json!({ "recording_url": server.url("/broken.mp3") }),
            "recording: Audio file could not be decoded: not a WAV, MP3, FLAC, Ogg or MP4 file",
            true,
        ),
        (
            json!({ "transcript_url": server.url("/broken.json"), "transcript": null }),
            "transcript_url: entry 0: start_offset_ms: Field required (1 more)",
            false,
        ),
        (
            json!({ "transcript_url": server.url("/none.json"), "transcript": null }),
            "transcript_url: File could not be fetched: 127.0.0.1 answered 404",
            false,
        ),
    ] {
        let log = evaluate(&world, more).await;
        assert_eq!((&log["status"], &log["error_message"]), (&json!("INCOMPLETED"), &json!(expect)));
        assert_eq!(log["evaluations"].as_array().map(Vec::len), Some(usize::from(measured)), "{expect}");
    }
}

/// The limit of an organization holds for recordings that are fetched, as for those that are posted.
#[tokio::test]
async fn a_recording_that_is_fetched_may_be_as_large_as_a_posted_one() {
    let server = WebServer::start(|path: &str| match path {
        "/large.wav" => WebServer::file(&[stereo(), vec![0; 400_000]].concat()),
        _ => WebServer::file(&stereo()[..44 + 6 * 64_000]),
    });
    let server = server.await.expect("loopback has a free port");
    let limits = |mb: u32| OrganizationLimits { upload_mb: Some(mb), ..OrganizationLimits::default() };
    for (mb, path, expect) in [
        (
            0,
            "/half.wav",
            json!("recording_url: File could not be fetched: it is larger than 0 MiB, the workspace's limit"),
        ),
        (1, "/half.wav", Value::Null),
        (
            1,
            "/large.wav",
            json!("recording_url: File could not be fetched: it is larger than 1 MB, the workspace's limit"),
        ),
        (2, "/large.wav", Value::Null),
    ] {
        let sections = Arc::new([("a".to_owned(), limits(mb))].into());
        let world = World::with_rows_and(|settings| settings.organization_limits = sections).await;
        let log = evaluate(&world, json!({ "recording_url": server.url(path) })).await;
        assert_eq!(log["error_message"], expect, "{mb} MB {path}");
    }
}

pub(crate) fn body_entries() -> Value {
    json!([
        { "start_offset_ms": 5200, "end_offset_ms": 7600, "speaker": "AGENT", "utterance": "Tuesday is free." },
        { "start_offset_ms": 500, "end_offset_ms": 2000, "speaker": "AGENT", "utterance": "Welcome." },
        { "start_offset_ms": 2500, "end_offset_ms": 4000, "speaker": "USER", "utterance": "A visit, please." },
    ])
}

#[tokio::test]
async fn a_call_belongs_to_the_version_that_was_named() {
    let world = World::with_rows().await;
    let agent = world.name("agent").to_owned();
    let warning = |answer: &Value| answer["warning"].clone();
    let send = async |more: Value| world.post("/v1/evaluate", body(&world, more)).await;
    assert_eq!(warning(&send(json!({ "version": 1 })).await), Value::Null);
    let expect = json!("Version 7 does not exist, the production version was used");
    assert_eq!(warning(&send(json!({ "version": 7 })).await), expect);
    assert_eq!(warning(&send(json!({ "label": "beta" })).await), Value::Null);
    let labels = async || {
        let caller = ringer::service::Caller::engine(world.name("organization"));
        let store = world.service.store().org(&caller.organization).read().await;
        let versions = store.expect("a session").by("agent_id", agent.parse::<i64>().expect("an id")).await;
        let versions: Vec<ringer::store::Row<ringer::model::agent_version::VersionDoc>> = versions.expect("versions");
        versions[0].doc.labels.clone()
    };
    assert_eq!(labels().await, ["production", "latest", "beta"], "an unknown label is given to the production version");
    send(json!({ "label": "beta" })).await;
    assert_eq!(labels().await.len(), 3, "once");
    let both = json!({ "version": 7, "label": "gamma" });
    assert_eq!(warning(&send(both).await), expect);
    assert_eq!(labels().await[3..], ["gamma"], "a number that is not there does not keep the label from being made");
    assert_eq!(warning(&send(json!({ "version": 1, "label": "delta" })).await), Value::Null);
    assert_eq!(labels().await[3..], ["gamma", "delta"]);
    let listed = world.get(&format!("/v1/retrieve-call-logs/{agent}?label=beta")).await;
    assert_eq!(listed["total_count"], 2);
}

#[tokio::test]
async fn call_logs_are_listed_by_page_and_age() {
    let world = World::with_rows().await;
    let agent = world.name("agent").to_owned();
    let created = |day: u32| json!({ "created_at": format!("2026-01-{day:02}T08:00:00Z"), "tags": [day.to_string()] });
    for day in [5, 4, 3, 1] {
        world.post("/v1/evaluate", body(&world, created(day))).await;
    }
    let old = json!({ "created_at": "2025-01-01T00:00:00Z" });
    world.post("/v1/evaluate", body(&world, old)).await;
    let count =
        async |query: &str| world.get(&format!("/v1/retrieve-call-logs/{agent}{query}")).await["total_count"].clone();
    for (query, expect) in
        [("", 1), ("?last=1day", 1), ("?last=3days", 3), ("?last=7days", 4), ("?last=90days", 4), ("?last=all", 5)]
    {
        assert_eq!(count(query).await, expect, "{query}");
    }
    let page = world.get(&format!("/v1/retrieve-call-logs/{agent}?last=7days&page_size=3&page=2")).await;
    assert_eq!((&page["page"], &page["page_size"], &page["total_pages"]), (&json!(2), &json!(3), &json!(2)));
    assert_eq!(page["call_logs"][0]["tags"], json!(["1"]));
    assert_eq!(page["call_logs"].as_array().map(Vec::len), Some(1));
    let ids: Vec<Value> = world.get(&format!("/v1/retrieve-call-logs/{agent}?last=all")).await["call_logs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|log| log["id"].clone())
        .collect();
    let gone = world.call("DELETE", "/v1/call-logs", json!({ "call_ids": [ids[0], ids[0], "x", ids[1]] })).await;
    assert_eq!(gone, json!({ "message": "2 call log(s) deleted", "deleted_count": 2, "status": "200" }));
    assert_eq!(count("?last=all").await, 3);
}

#[tokio::test]
async fn what_the_owner_adds_is_kept_and_evaluated_when_asked() {
    let world = with_call().await;
    let path = "/v1/update-log/$call";
    let event = json!({ "title": "x", "start_offset_ms": 1 });
    let tool = json!({ "name": "book", "start_offset_ms": 1, "output": "error: no slot" });
    world.call("PUT", path, json!({ "events": [event], "tool_calls": [tool], "metadata": { "a": 1 } })).await;
    let updated = world.call("PUT", path, json!({ "events": [event], "metadata": { "b": 2 } })).await;
    assert_eq!(updated, json!({ "message": "Call log updated", "status": "200" }));
    let read = async || world.get("/v1/retrieve-call-log/$call").await["call_log"].clone();
    let log = read().await;
    assert_eq!(log["events"].as_array().map(Vec::len), Some(2));
    assert_eq!((&log["metadata"], &log["status"]), (&json!({ "a": 1, "b": 2 }), &json!("COMPLETED")));
    world.work_off().await;
    assert_eq!(world.get("/v1/issues").await[0]["title"], "book: error: no slot", "a failed tool is an issue");
    world.call("PUT", path, json!({ "reevaluate": true })).await;
    assert_eq!(read().await["status"], "QUEUED");
    world.work_off().await;
    let again = read().await;
    assert_eq!(again["status"], "COMPLETED");
    assert_ne!(again["evaluations"][0]["id"], log["evaluations"][0]["id"]);
    assert_eq!(world.get("/v1/issues").await[0]["title"], "book: error: no slot");
    world.call("PUT", path, json!({ "metadata": null, "events": null })).await;
    let cleared = read().await;
    assert_eq!((&cleared["metadata"], &cleared["events"]), (&Value::Null, &Value::Null));
    assert_eq!(cleared["tool_calls"][0]["name"], "book", "what is not given stays");
    let gone = world.call("DELETE", "/v1/call-log/$call", Value::Null).await;
    assert_eq!(gone, json!({ "message": "Call log deleted", "status": "200" }));
    assert_eq!(world.send("DELETE", "/v1/call-log/$call", &[], Vec::new()).await.status, 404);
}

#[tokio::test]
async fn an_agent_is_found_by_the_customers_name_for_it() {
    let world = World::with_rows().await;
    world.post("/v1/add-agent", json!({ "name": "Other", "external_agent_id": "desk-7" })).await;
    let log = evaluate(&world, json!({ "agent_id": null, "external_agent_id": "desk-7" })).await;
    assert_eq!(log["external_agent_id"], "desk-7");
    assert_ne!(log["agent_id"], json!(world.name("agent")));
    // An id may also come as a number; both names: the first member that takes it.
    let number: i64 = world.name("agent").parse().expect("a number");
    let log = evaluate(&world, json!({ "agent_id": number })).await;
    assert_eq!(log["agent_id"], json!(world.name("agent")));
}

#[tokio::test]
async fn a_recording_may_be_larger_than_other_bodies() {
    let setup = ringer::api::Setup { max_body_bytes: 2000, ..ringer::api::Setup::default() };
    let world = World::with_setup(setup).await;
    let send = async |path: &str, size: usize| {
        let body = json!({ "agent_id": "77", "recording_base64": "A".repeat(size) }).to_string();
        world.send("POST", path, &[], body.into_bytes()).await.status
    };
    assert_eq!(send("/v1/add-agent", 3000).await, 413);
    assert_eq!(send("/v1/evaluate", 3_000_000).await, 422);
    let announced = [("content-length".to_owned(), ((512u64 << 20) + 1).to_string())];
    let answer = world.send("POST", "/v1/evaluate", &announced, Vec::new()).await;
    assert_eq!(answer.json(), json!({ "detail": "Request body is too large, the limit is 536870912 bytes" }));
}

#[tokio::test]
async fn who_asked_for_it_is_told_of_evaluated_calls() {
    let world = World::with_rows().await;
    for (tag, url) in [(json!(null), "all"), (json!("w"), "tagged"), (json!("x"), "others")] {
        let url = format!("http://127.0.0.1:9/{url}");
        let body = json!({ "url": url, "event_types": ["observability_call_evaluated"], "tag": tag });
        world.post("/v1/webhooks", body).await;
    }
    let log = evaluate(&world, json!({ "webhook_tag": "w" })).await;
    let queue = world.service.queue();
    let mut count = 0;
    while let Some(event) = queue.claim_event().await.expect("answers") {
        let body: Value = serde_json::from_str(&event.body).expect("JSON");
        assert_eq!((event.event.as_str(), &body["type"]), ("observability_call_evaluated", &json!(event.event)));
        assert_eq!((&body["id"], &body["evaluations"]), (&log["id"], &log["evaluations"]));
        count += 1;
    }
    assert_eq!(count, 2, "not those who asked for another tag");
}

/// Sets one field of the world's agent.
async fn set_agent(world: &World, field: &str, value: Value) {
    world.post("/v1/update-agent", json!({ "agent_id": world.name("agent"), field: value })).await;
}

#[tokio::test]
async fn what_is_private_is_taken_out_of_a_production_call() {
    let world = World::with_rows().await;
    set_agent(&world, "redact_pii", json!(true)).await;
    let mut entries = body_entries();
    entries[2]["utterance"] = json!("My number is 98765.");
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(stereo()));
    let private = json!({
        "transcript": entries, "recording_base64": data, "multichannel": true,
        "tool_calls": [{ "name": "look_up", "start_offset_ms": 6000, "parameters": { "member": 445566 }, "output": "ann@example.com" }],
        "events": [{ "title": "moved", "description": "to 445566", "start_offset_ms": 10 }],
    });
    let verdict = json!({ "reasoning": "The caller said 98765.", "value": true });
    let whole = json!({
        "goal_success": true, "goal_reasoning": "98765 was noted.", "hallucination": false, "hallucination_reasoning": "No.",
        "redundancy": false, "redundancy_reasoning": "No.", "call_summary": "The number is 98765.",
        "sentiment_scores": { "positive": 0.5, "neutral": 0.5, "negative": 0 }, "sentiment_score": 0.4,
    });
    let model = Arc::new(ScriptedModel::new([whole, verdict].map(|said| Reply::says(&[&said.to_string()])).into()));
    let queued = world.post("/v1/evaluate", body(&world, private)).await;
    let id = queued["call_id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/retrieve-call-log/{id}");
    let before = world.get(&path).await["call_log"].clone();
    assert_eq!(
        (&before["tool_calls"], &before["events"]),
        (&Value::Null, &Value::Null),
        "not shown before it is judged"
    );
    world.work_off_with(Some(model.clone())).await;
    assert!(format!("{:?}", model.requests()).contains("My number is 98765."), "judged as it was");
    let log = world.get(&path).await["call_log"].clone();
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null), "{log}");
    assert_eq!(log["tool_calls"][0]["parameters"]["member"], "[NUMBER]");
    assert_eq!(
        (&log["tool_calls"][0]["output"], &log["events"][0]["description"]),
        (&json!("[EMAIL]"), &json!("to [NUMBER]"))
    );
    assert_eq!(metric(&log, "call_summary"), Some(json!("The number is [NUMBER].")));
    let shown = log.to_string();
    for word in ["98765", "445566", "ann@example.com"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }

    // The caller's turn from 2.5 to 4.0 s is silent in both channels, the rest is as it was.
    let file = world.service.settings().data.join("call-logs").join(&id).join("recording");
    let kept = std::fs::read(&file).expect("the recording");
    let (before, after) = (stereo()[44..].to_vec(), kept[kept.len() - 12_000 * 64..].to_vec());
    let [from, to] = [2450, 4050].map(|ms| ms * 64);
    assert!(after[from..to].iter().all(|byte| *byte == 0), "it is heard no more");
    assert!(
        before[from..to].iter().any(|byte| *byte != 0)
            && before[..from] == after[..from]
            && before[to..] == after[to..]
    );

    // Words that are added later are private too, and judged before they are taken out.
    let more = json!({ "events": [{ "title": "call 77889900", "start_offset_ms": 20 }] });
    world.call("PUT", &format!("/v1/update-log/{id}"), more.clone()).await;
    let log = world.get(&path).await["call_log"].clone();
    assert!(log["events"][1]["title"].as_str().is_some_and(|title| title.starts_with("call [")), "{log}");
    let mut again = more;
    again["reevaluate"] = json!(true);
    world.call("PUT", &format!("/v1/update-log/{id}"), again).await;
    assert_eq!(world.get(&path).await["call_log"]["events"], Value::Null);
    world.work_off().await;
    let log = world.get(&path).await["call_log"].clone();
    assert!(!log.to_string().contains("77889900") && log["events"].as_array().map(Vec::len) == Some(3), "{log}");
}

#[tokio::test]
async fn a_private_recording_without_words_is_not_kept() {
    let world = World::with_rows().await;
    set_agent(&world, "redact_pii", json!(true)).await;
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(stereo()));
    let log = evaluate(&world, json!({ "recording_base64": data, "multichannel": true, "transcript": null })).await;
    let message = "the recording was not kept: words that nobody wrote down may be private";
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &json!(message)), "{log}");
    assert_eq!(log["duration_ms"], 12_000, "it was measured before");
    let folder = world.service.settings().data.join("call-logs").join(log["id"].as_str().expect("an id"));
    assert!(!folder.exists());
}
