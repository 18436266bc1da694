//! Runs and results from queueing to listening.

use std::collections::BTreeMap;
use std::io::Read;

use ringer::config::Retention;
use ringer::model::evaluation::{CustomResult, Evaluation};
use ringer::model::result::MetricValue;
use ringer::model::status::ResultStatus as S;
use ringer::model::transcript::Transcript;
use ringer::service::{Caller, Cleared, recording_link};
use ringer_media::recording::{Layout, wav_header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::world::{Answer, World};

const RATE_HZ: u32 = 16_000;

/// Returns a world with a run of two results.
pub(super) async fn queued() -> (World, i64, [i64; 2]) {
    let world = World::with_rows().await;
    let simulation = world.get("/v1/get-all-simulations").await["simulations"][0]["id"].as_i64().expect("an id");
    let human = world.get("/v1/digital-humans").await["digital_humans"][0]["id"].clone();
    let path = format!("/v1/simulation/{simulation}/add-digital-humans");
    let linked = world.post(&path, json!({ "digital_human_ids": [human] })).await;
    assert_eq!(linked, json!({ "message": "1 digital human(s) added" }));
    let body =
        json!({ "simulation_id": simulation, "runs_per_digital_human": 2, "seed": 7, "sip_uri": "sip:a@b.example" });
    let queued = world.post("/v1/queue-simulation-run", body).await;
    assert_eq!(queued["status"], "success");
    let id = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).expect("an id as text");
    let results = queued["simulation_result_ids"].as_array().expect("ids");
    (world, id(&queued["simulation_run_id"]), [id(&results[0]), id(&results[1])])
}

/// Takes a result through a call to its end.
async fn finish(world: &World, id: i64) {
    let organization = world.name("organization");
    let way =
        [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating, S::CallDropped];
    for step in way.windows(2) {
        let now = world.service.runs().result(&Caller::engine(organization), id).await.expect("is there").body.status;
        if now == step[0] {
            world
                .service
                .conversations()
                .advance(organization, id, step[0], step[1], |_| ())
                .await
                .expect("an allowed step");
        }
    }
}

async fn detail(world: &World, method: &str, path: &str) -> (u16, Value) {
    let answer = world.send(method, path, &[], Vec::new()).await;
    (answer.status, answer.json()["detail"].clone())
}

#[tokio::test]
async fn a_run_is_listed_cancelled_and_deleted() {
    let (world, run, [first, second]) = queued().await;
    let run_path = format!("/v1/retrieve-simulation-results/{run}");
    let read = world.get(&run_path).await;
    assert_eq!(read["simulation_run"]["id"], run.to_string());
    assert_eq!(read["simulation_results"][1]["id"], second);
    assert_eq!(read["status"], "200");
    let simulation = read["simulation_run"]["simulation_id"].as_str().expect("a text");
    let runs = world.get(&format!("/v1/get-simulation-runs/{simulation}")).await;
    assert_eq!(runs["simulation_runs"][0]["total_tests"], 2);

    let hung_up = world.post(&format!("/v1/simulation-result/{first}/hangup"), Value::Null).await;
    assert_eq!(hung_up, json!({ "simulation_result_id": first, "status": "CANCELLED" }));
    let again = detail(&world, "POST", &format!("/v1/simulation-result/{first}/hangup")).await;
    assert_eq!(again, (409, json!("Simulation result is already finished")));
    let cancelled = world.post(&format!("/v1/simulation-run/{run}/cancel?hangup=yes"), Value::Null).await;
    assert_eq!(cancelled, json!({ "simulation_run_id": run, "cancelled": 1, "ended": 0 }));
    let read = world.get(&run_path).await;
    assert_eq!(read["simulation_run"]["summary"], "0 passed, 0 failed, 2 cancelled of 2");
    let deleted = world.call("DELETE", &format!("/v1/simulation-run/{run}"), Value::Null).await;
    assert_eq!(deleted["deleted_simulation_run_id"], run);
    assert_eq!(detail(&world, "GET", &run_path).await, (404, json!("Simulation run not found")));
}

#[tokio::test]
async fn what_agents_post_is_in_the_record() {
    let (world, _, [first, _]) = queued().await;
    let body = json!({
        "simulation_result_id": first, "tags": ["x"], "trace_ids": ["t"], "metadata": {"k": 1},
        "events": [{"title": "Moved", "start_offset_ms": "1200"}],
        "tool_calls": [{"name": "book", "start_offset_ms": 5, "parameters": {"a": 1}, "output": [true]}],
    });
    world.post("/v1/update-simulation-result", body).await;
    let read = world.get(&format!("/v1/retrieve-simulation-result/{first}")).await["simulation_result"].clone();
    assert_eq!((&read["tags"], &read["trace_ids"]), (&json!(["x"]), &json!(["t"])));
    assert_eq!(read["metadata"]["k"], 1);
    assert_eq!(read["events"][0]["start_offset_ms"], 1200);
    assert_eq!(read["tool_calls"][0]["actual"][0]["output"], json!([true]));
    let ended = world.post("/v1/end-conversations", json!({ "simulation_result_ids": [first] })).await;
    assert_eq!((&ended["success"], &ended["failed_ids"]), (&json!(false), &json!([first])));
}

#[tokio::test]
async fn parts_that_are_not_there_say_so() {
    let (world, _, [first, _]) = queued().await;
    for (part, expect) in [
        ("timeline", "Timeline not available"),
        ("transcript", "Transcript not available"),
        ("recording", "Recording not available"),
        ("peaks", "Recording not available"),
    ] {
        let path = format!("/v1/simulation-result/{first}/{part}");
        assert_eq!(detail(&world, "GET", &path).await, (404, json!(expect)), "{part}");
        let unknown = detail(&world, "GET", &format!("/v1/simulation-result/999/{part}")).await;
        assert_eq!(unknown, (404, json!("Simulation result not found")), "{part}");
    }
    let path = format!("/v1/re-evaluate-simulation-result/{first}");
    assert_eq!(detail(&world, "POST", &path).await, (409, json!("Simulation result is not finished")));
}

#[tokio::test]
async fn a_transcript_has_three_forms() {
    let (world, _, [first, _]) = queued().await;
    let entry = |from: i64, words: &str, missing: Value| {
        json!({
            "start_offset_ms": from, "end_offset_ms": from + 500, "speaker": "AGENT", "utterance": words,
            "text_missing": missing, "filler_utterance": false, "interrupted": false, "scripted": false, "confidence": null,
            "source": "recognized", "words": [],
        })
    };
    let entries = [entry(0, "Hello.", Value::Null), entry(900, "", json!("recognizer_late"))];
    let whole = json!({ "simulation_result_id": first, "language": "en", "entries": entries });
    let transcript: Transcript = serde_json::from_value(whole.clone()).expect("a transcript");
    world.service.conversations().store_transcript(world.name("organization"), &transcript).await.expect("is kept");
    let path = format!("/v1/simulation-result/{first}/transcript");
    assert_eq!(world.get(&path).await, whole);
    for (format, kind, expect) in [
        ("text", "text/plain; charset=utf-8", "AGENT: Hello.\nAGENT: [speech not understood]\n"),
        (
            "vtt",
            "text/vtt; charset=utf-8",
            "WEBVTT\n\n00:00:00.000 --> 00:00:00.500\n<v AGENT>Hello.\n\n\
             00:00:00.900 --> 00:00:01.400\n<v AGENT>[speech not understood]\n",
        ),
    ] {
        let answer = world.send("GET", &format!("{path}?format={format}"), &[], Vec::new()).await;
        assert_eq!(String::from_utf8_lossy(&answer.body), expect);
        assert_eq!(answer.headers["content-type"], kind);
    }
}

/// Returns a second of stereo: a square wave of 0.5 on the left, silence on the right.
fn recording() -> Vec<u8> {
    let mut file = wav_header(Layout::Stereo, u64::from(RATE_HZ)).to_vec();
    for n in 0..RATE_HZ {
        let left: i16 = if n % 100 < 50 { 16_384 } else { -16_384 };
        file.extend(left.to_le_bytes());
        file.extend(0i16.to_le_bytes());
    }
    file
}

#[tokio::test]
async fn a_recording_is_heard_by_channel_and_in_part() {
    let (world, _, [first, _]) = queued().await;
    let folder = world.service.settings().result_folder(first);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("recording.wav"), recording()).expect("a file");
    let organization = world.name("organization");
    let link = |doc: &mut ringer::model::result::ResultDoc| doc.body.audio_url = Some(recording_link(first));
    world.service.conversations().amend(organization, first, link).await.expect("is there");
    let path = format!("/v1/simulation-result/{first}/recording");

    let whole = world.send("GET", &path, &[], Vec::new()).await;
    assert_eq!((whole.status, &whole.body), (200, &recording()));
    assert_eq!(whole.headers["x-channel-layout"], "digital_human,agent");
    let head = world.send("HEAD", &path, &[], Vec::new()).await;
    assert_eq!((head.body.len(), head.headers["content-length"].to_str().ok()), (0, Some("64104")));
    let agent = world.send("GET", &format!("{path}?channel=1"), &[], Vec::new()).await;
    assert_eq!(agent.body.len(), 44 + RATE_HZ as usize * 2);
    assert!(agent.body[44..].iter().all(|byte| *byte == 0), "the agent is silent");
    let range = [("range".to_owned(), "bytes=44-47".to_owned())];
    let part = world.send("GET", &format!("{path}?channel=mix"), &range, Vec::new()).await;
    assert_eq!((part.status, part.body), (206, vec![0, 32, 0, 32]));
    assert_eq!(part.headers["content-range"], "bytes 44-47/32044");
    for (query, expect) in
        [("?channel=2", "channel must be 0, 1, both or mix"), ("?format=mp3", "format must be wav, flac or opus")]
    {
        assert_eq!(detail(&world, "GET", &format!("{path}{query}")).await, (400, json!(expect)));
    }
    let cut = world.send("GET", &format!("{path}?from_ms=250&to_ms=500&channel=both"), &[], Vec::new()).await;
    let stored = recording();
    let samples = stored.len() - RATE_HZ as usize * 4;
    assert_eq!((cut.status, &cut.body[44..]), (200, &stored[samples + 16_000..samples + 32_000]));
    assert_eq!([&cut.headers["x-from-ms"], &cut.headers["x-duration-ms"]], ["250", "1000"]);
    for (query, expect) in [
        ("?from_ms=500&to_ms=500", "from_ms must be below to_ms"),
        ("?from_ms=1000", "from_ms lies behind the recording, which is 1000 ms long"),
        ("?to_ms=500&format=opus", "from_ms and to_ms need format wav"),
    ] {
        assert_eq!(detail(&world, "GET", &format!("{path}{query}")).await, (400, json!(expect)));
    }
    assert_eq!(world.send("GET", &format!("{path}?from_ms=-1"), &[], Vec::new()).await.status, 422);
    let clean = format!("{path}?channel=caller_clean");
    assert_eq!(detail(&world, "GET", &clean).await, (404, json!("Recording not available")));
    let track = [wav_header(Layout::CallerClean, 2).to_vec(), vec![1, 0, 2, 0]].concat();
    std::fs::write(folder.join("caller_clean.wav"), &track).expect("a file");
    assert_eq!(world.send("GET", &clean, &[], Vec::new()).await.body, track);
    let (flac, opus) = (("flac", "audio/flac", b"fLaC"), ("opus", "audio/ogg", b"OggS"));
    for (channel, layout) in [("both", Some("digital_human,agent")), ("0", None), ("mix", None), ("caller_clean", None)]
    {
        for (format, kind, begins) in [flac, opus, flac] {
            let answer = world.send("GET", &format!("{path}?channel={channel}&format={format}"), &[], Vec::new()).await;
            assert_eq!((answer.status, answer.body.get(..4)), (200, Some(&begins[..])), "{channel} {format}");
            assert_eq!(answer.headers["content-type"], kind);
            let said = answer.headers.get("x-channel-layout").map(|layout| layout.to_str().expect("text"));
            assert_eq!(said, layout, "{channel} {format}");
        }
    }
    let peaks = world.get(&format!("/v1/simulation-result/{first}/peaks?points=100")).await;
    assert_eq!(peaks["sample_rate"], RATE_HZ);
    assert_eq!((&peaks["channels"][0][0], &peaks["channels"][0][1]), (&json!(-0.5), &json!(0.5)));
}

#[tokio::test]
async fn events_are_streamed_to_their_end() {
    let (world, _, [first, _]) = queued().await;
    finish(&world, first).await;
    let events: Vec<Value> = (0..3)
        .map(|seq| json!({ "seq": seq, "sample": seq * 160, "event": "dtmf_sent", "side": "dh", "data": {"digits": "1"} }))
        .collect();
    world.service.conversations().store_timeline(world.name("organization"), first, &events).await.expect("is kept");
    let path = format!("/v1/simulation-result/{first}/events");
    let answer = world.send("GET", &path, &[], Vec::new()).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let text = String::from_utf8(answer.body).expect("text");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names.last(), Some(&"end"));
    assert_eq!(names.iter().filter(|name| **name == "dtmf_sent").count(), 3);
    assert!(names.contains(&"status") && text.contains(r#""status":"CALL_DROPPED""#), "{text}");
    let resumed = world.send("GET", &path, &[("last-event-id".into(), "1".into())], Vec::new()).await;
    let text = String::from_utf8(resumed.body).expect("text");
    let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids, ["2"]);
    assert_eq!(
        detail(&world, "GET", "/v1/simulation-result/999/events").await,
        (404, json!("Simulation result not found"))
    );
}

/// Puts a recording of some bytes into the folder of a result.
async fn record(world: &World, id: i64, bytes: usize) {
    let folder = world.service.settings().result_folder(id);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, bytes) in [("recording.wav", bytes), ("caller_clean.wav", 10), ("recording.flac", 10), ("sip.log", 10)] {
        std::fs::write(folder.join(name), vec![0; bytes]).expect("a file");
    }
    let link = |doc: &mut ringer::model::result::ResultDoc| doc.body.audio_url = Some(recording_link(id));
    world.service.conversations().amend(world.name("organization"), id, link).await.expect("is there");
}

#[tokio::test]
async fn what_is_older_than_it_may_be_is_deleted() {
    let (world, _, [first, second]) = queued().await;
    finish(&world, first).await;
    for id in [first, second] {
        record(&world, id, 100).await;
    }
    let path = |id: i64| format!("/v1/retrieve-simulation-result/{id}");
    let keep = Retention { results_days: 30, recordings_days: 7, disk_quota_mb: 0 };
    let clear = async || world.service.runs().clear_old(&keep).await.expect("the folder can be changed");
    let day_ms = 24 * 3600 * 1000;
    world.service.clock().advance_ms(7 * day_ms);
    assert_eq!(clear().await, Cleared::default(), "not older than seven days");
    world.service.clock().advance_ms(1);
    assert_eq!(clear().await, Cleared { results: 0, calls: 0, recordings: 1 }, "the other one is not finished");
    assert_eq!(clear().await, Cleared::default());
    assert_eq!(world.get(&path(first)).await["simulation_result"]["audio_url"], Value::Null);
    let names = |id: i64| {
        let entries = std::fs::read_dir(world.service.settings().result_folder(id)).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect::<Vec<_>>()
    };
    assert_eq!((names(first), names(second).len()), (vec!["sip.log".to_owned()], 4));
    world.service.clock().advance_ms(23 * day_ms);
    assert_eq!(clear().await, Cleared { results: 1, calls: 0, recordings: 0 });
    assert_eq!(detail(&world, "GET", &path(first)).await, (404, json!("Simulation result not found")));
    assert!(!world.service.settings().result_folder(first).exists());
    assert!(world.get(&path(second)).await["simulation_result"]["audio_url"].is_string());
}

#[tokio::test]
async fn recordings_take_no_more_room_than_they_may() {
    let (world, _, [first, second]) = queued().await;
    for id in [first, second] {
        finish(&world, id).await;
        record(&world, id, 700_000).await;
    }
    let keep = Retention { disk_quota_mb: 1, ..Retention::default() };
    let clear = async || world.service.runs().clear_old(&keep).await.expect("the folder can be changed");
    assert_eq!(clear().await, Cleared { results: 0, calls: 0, recordings: 1 }, "the oldest goes");
    assert_eq!(clear().await, Cleared::default());
    let there = |id: i64| world.service.settings().result_folder(id).join("recording.wav").exists();
    assert_eq!((there(first), there(second)), (false, true));
    assert_eq!(world.service.runs().clear_old(&Retention::default()).await.expect("nothing to do"), Cleared::default());
}

fn kind(answer: &Answer) -> &str {
    answer.headers["content-type"].to_str().expect("text")
}

/// Returns names and bodies of the members of a tar archive.
pub(crate) fn members(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().expect("an archive");
    entries
        .map(|entry| {
            let mut entry = entry.expect("an entry");
            let name = entry.path().expect("a name").to_str().expect("text").to_owned();
            let mut body = Vec::new();
            entry.read_to_end(&mut body).expect("its body");
            (name, body)
        })
        .collect()
}

#[tokio::test]
async fn evidence_is_an_archive_of_all_there_is() {
    let (world, _, [first, second]) = queued().await;
    let path = |id: i64| format!("/v1/simulation-result/{id}/evidence");
    assert_eq!(detail(&world, "GET", &path(second)).await, (404, json!("Evidence not available")));
    assert_eq!(detail(&world, "GET", &path(999)).await, (404, json!("Simulation result not found")));
    let organization = world.name("organization");
    let agent = world.name("agent").to_owned();
    world
        .send(
            "POST",
            "/v1/update-agent",
            &[],
            json!({ "agent_id": agent, "sip_password": "tell-nobody" }).to_string().into(),
        )
        .await;
    finish(&world, first).await;
    record(&world, first, 100_000).await;
    let log = "1767600000123 sent to 127.0.0.1:5061 at 127.0.0.1:5060\n INVITE sip:a@b SIP/2.0\n Call-ID: 1\n \n\n";
    std::fs::write(world.service.settings().result_folder(first).join("sip.log"), log).expect("a file");
    let transcript = Transcript { simulation_result_id: first, language: "en".into(), entries: Vec::new() };
    world.service.conversations().store_transcript(organization, &transcript).await.expect("is kept");
    let answer = world.send("GET", &path(first), &[], Vec::new()).await;
    assert_eq!((answer.status, kind(&answer)), (200, "application/x-tar"));
    let members = members(&answer.body);
    let names: Vec<&str> = members.keys().map(String::as_str).collect();
    let expect = [
        "caller_clean.wav",
        "capture.pcapng",
        "config.json",
        "hashes.sha256",
        "manifest.json",
        "manifest.sig",
        "recording.wav",
        "result.json",
        "seed.txt",
        "sip.log",
        "transcript.json",
    ];
    assert_eq!(names, expect);
    assert_eq!((members["recording.wav"].len(), &members["sip.log"][..]), (100_000, log.as_bytes()));
    let record: Value = serde_json::from_slice(&members["result.json"]).expect("JSON");
    assert_eq!((record["id"].as_i64(), record["status"].as_str()), (Some(first), Some("CALL_DROPPED")));
    assert_eq!(members["seed.txt"], format!("{}\n", record["seed"]).into_bytes());
    assert!(!String::from_utf8_lossy(&answer.body).contains("tell-nobody"));
    let config: Value = serde_json::from_slice(&members["config.json"]).expect("JSON");
    assert_eq!(config["digital_human"]["name"], "Maria", "of today: the call was not placed, nothing was kept");
    let hashes = String::from_utf8(members["hashes.sha256"].clone()).expect("text");
    let hash = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let others =
        members.iter().filter(|(name, _)| !["hashes.sha256", "manifest.json", "manifest.sig"].contains(&name.as_str()));
    let own: String = others.map(|(name, body)| format!("{}  {name}\n", hash(body))).collect();
    assert_eq!(hashes, own);
    let left = std::fs::read_dir(&world.service.settings().data).expect("the folder");
    let left =
        left.filter(|entry| entry.as_ref().expect("an entry").file_name().to_string_lossy().contains("evidence"));
    assert_eq!(left.count(), 0, "nothing is left behind");
}

#[tokio::test]
async fn a_run_is_exported_as_table_json_and_junit() {
    let (world, run, [first, second]) = queued().await;
    finish(&world, first).await;
    let metric = |name: &str, value: Value| MetricValue { name: name.into(), value, note: None };
    let judged = move |doc: &mut ringer::model::result::ResultDoc| {
        doc.body.duration = Some(12);
        let (turns, duration) = (metric("num_turns", json!(3)), metric("duration", json!(12_345)));
        doc.body.metrics = vec![turns, metric("odd, \"name\"", json!("a\nb")), duration];
        let custom =
            CustomResult { name: "num_turns".into(), response_value: "many".into(), ..CustomResult::default() };
        doc.body.evaluations = vec![Evaluation {
            human_goal_success: Some(false),
            goal_success: Some(true),
            custom_metrics: vec![custom],
            ..Evaluation::default()
        }];
    };
    world.service.conversations().amend(world.name("organization"), first, judged).await.expect("is there");
    let path = |format: &str| format!("/v1/simulation-run/{run}/export{format}");
    let expect = (400, json!("format must be csv, json, junit, parquet or jsonl"));
    assert_eq!(detail(&world, "GET", &path("?format=pdf")).await, expect);
    assert_eq!(detail(&world, "GET", "/v1/simulation-run/999/export").await, (404, json!("Simulation run not found")));
    let send = async |format: &str| {
        let answer = world.send("GET", &path(format), &[], Vec::new()).await;
        assert_eq!(answer.status, 200);
        (kind(&answer).to_owned(), String::from_utf8(answer.body).expect("text"))
    };
    let human = world.get("/v1/digital-humans").await["digital_humans"][0]["id"].to_string();
    let (content, table) = send("").await;
    assert_eq!(content, "text/csv; charset=utf-8");
    let lines = [
        "id,digital_human_id,digital_human_name,status,outcome,duration,error_code,goal_success,num_turns,\"odd, \"\"name\"\"\",\
         metric.duration,metric.num_turns,verdict,verdict_reason",
        &format!(
            "{first},{human},Maria,CALL_DROPPED,failed,12,,false,3,\"a\nb\",12345,many,unknown,the call ended as CALL_DROPPED"
        ),
        &format!("{second},{human},Maria,INITIALIZING,,,,,,,,,,"),
        "",
    ];
    assert_eq!(table, lines.join("\r\n"));
    assert_eq!(send("?format=csv").await.1, table);
    let (content, whole) = send("?format=json").await;
    let whole: Value = serde_json::from_str(&whole).expect("JSON");
    let read = world.get(&format!("/v1/retrieve-simulation-results/{run}")).await;
    assert_eq!(content, "application/json");
    assert_eq!(
        (&whole["simulation_run"], &whole["simulation_results"]),
        (&read["simulation_run"], &read["simulation_results"])
    );
    let (content, suite) = send("?format=junit").await;
    assert_eq!(content, "application/xml");
    let expect = [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
        "<testsuite name=\"Booking\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"12\">",
        "  <testcase classname=\"Booking\" name=\"Maria 1\" time=\"12\"><properties><property name=\"verdict\" \
         value=\"unknown\"/></properties><failure message=\"\"/></testcase>",
        "  <testcase classname=\"Booking\" name=\"Maria 2\" time=\"0\"><skipped message=\"not finished\"/></testcase>",
        "</testsuite>",
        "",
    ];
    assert_eq!(suite, expect.join("\n"));
}

#[tokio::test]
async fn a_suite_has_the_name_that_its_simulation_is_shown_by() {
    let world = World::with_rows().await;
    let simulation =
        world.post("/v1/create-simulation", json!({ "agent_id": "$agent" })).await["simulation_id"].clone();
    let human = json!({ "digital_human": { "name": "Ann", "intent": "Book." }, "simulation_ids": [simulation] });
    world.post("/v1/create-digital-human", human).await;
    let body = json!({ "simulation_id": simulation, "sip_uri": "sip:a@b.example" });
    let run = world.post("/v1/queue-simulation-run", body).await["simulation_run_id"].clone();
    let path = format!("/v1/simulation-run/{}/export?format=junit", run.as_str().expect("an id"));
    let suite = String::from_utf8(world.send("GET", &path, &[], Vec::new()).await.body).expect("text");
    for expect in ["<testsuite name=", "<testcase classname="] {
        let expect = format!("{expect}\"Simulation {simulation}\"");
        assert!(suite.contains(&expect), "{expect} in {suite}");
    }
}

#[tokio::test]
async fn what_has_not_begun_says_why() {
    for (simulation, second) in [
        (json!({ "max_concurrent": 1 }), "max_concurrent"),
        (json!({ "sequential_calling": true }), "sequential"),
        (json!({}), "start_rate"),
    ] {
        let world = World::with_rows().await;
        let id = world.get("/v1/get-all-simulations").await["simulations"][0]["id"].as_i64().expect("an id");
        world.call("PUT", &format!("/v1/simulation/{id}"), simulation.clone()).await;
        let agent = json!({ "agent_id": world.name("agent"), "sip_uri": "sip:desk@127.0.0.1:5099" });
        world.post("/v1/update-agent", agent).await;
        let steps = json!([{ "step": 1, "intent": "Ask." }, { "step": 2, "intent": "Go." }]);
        for human in [json!({ "intent": "Book." }), json!({ "journey_steps": steps })] {
            let body = json!({ "digital_human": human, "simulation_ids": [id] });
            world.post("/v1/create-digital-human", body).await;
        }
        let queued = world.post("/v1/queue-simulation-run", json!({ "simulation_id": id })).await;
        let run = queued["simulation_run_id"].as_str().expect("an id").to_owned();
        let read = async || world.get(&format!("/v1/retrieve-simulation-results/{run}")).await;
        let reasons = |read: &Value| -> Vec<Value> {
            let results = read["simulation_results"].as_array().expect("results");
            results.iter().map(|result| result["queue_reason"].clone()).collect()
        };
        let now = read().await;
        assert_eq!(reasons(&now), ["start_rate", second, "journey_step"], "{simulation}");
        let named = if second == "sequential" { "its turn has not come" } else { second };
        let text = now["simulation_results"][1]["queue_reason_text"].as_str();
        assert!(text.is_some_and(|text| text.contains(named)), "{simulation}: {text:?}");
        let counts = &now["simulation_run"]["queue_reasons"];
        assert_eq!(
            (&counts["journey_step"], &counts[second]),
            (&json!(1), &json!(1 + i64::from(second == "start_rate")))
        );
        let listed = world.get(&format!("/v1/get-simulation-runs/{id}")).await;
        assert_eq!(&listed["simulation_runs"][0]["queue_reasons"], counts);
        let first = queued["simulation_result_ids"][0].as_str().expect("an id");
        world.post(&format!("/v1/simulation-result/{first}/hangup"), Value::Null).await;
        assert_eq!(reasons(&read().await), [json!(null), json!("start_rate"), json!("journey_step")], "{simulation}");
    }
}
