//! Routes that the page needs: the list of runs, reviews, outlines, turns, signalling, its own files and its key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringer::api::{SampleAgent, Setup};
use ringer::model::evaluation::{CustomResult, CustomStatus, Evaluation};
use ringer::model::result::ResultDoc;
use ringer::model::status::ResultStatus as S;
use ringer::service::{Caller, Judged, recording_link};
use ringer_media::recording::{Layout, wav_header};
use serde_json::{Value, json};

use super::results::queued;
use super::world::{Answer, World};

/// Takes a result to its evaluation, judged as reached, with a custom metric that passed.
pub(super) async fn judge(world: &World, id: i64) {
    let organization = world.name("organization");
    let way = [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating];
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
    let metric = CustomResult {
        name: "Polite".into(),
        response_type: "pass_fail".into(),
        response_value: "pass".into(),
        status: CustomStatus::Evaluated,
        ..CustomResult::default()
    };
    let evaluation = Evaluation {
        goal_success: Some(true),
        goal_reasoning: Some("It was booked.".into()),
        custom_metrics: vec![metric],
        ..Evaluation::default()
    };
    let judged = Judged { evaluation, latency: Some(vec![0.5, 0.9]), ..Judged::default() };
    world.service.evaluations().store_evaluation(organization, id, judged).await.expect("is kept");
}

/// Gives a result a recording of `ms` milliseconds whose channels are 1000 and -2000.
async fn record(world: &World, id: i64, ms: usize) {
    let folder = world.service.settings().result_folder(id);
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut wav = wav_header(Layout::Stereo, ms as u64 * 16).to_vec();
    for _ in 0..ms * 16 {
        wav.extend(1000i16.to_le_bytes());
        wav.extend((-2000i16).to_le_bytes());
    }
    std::fs::write(folder.join("recording.wav"), wav).expect("a file");
    let link = |doc: &mut ResultDoc| doc.body.audio_url = Some(recording_link(id));
    world.service.conversations().amend(world.name("organization"), id, link).await.expect("is there");
}

fn with(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

pub(super) async fn put_review(world: &World, id: i64, headers: &[(String, String)], body: Value) -> Answer {
    world.send("PUT", &format!("/v1/simulation-result/{id}/review"), headers, body.to_string().into_bytes()).await
}

async fn status(world: &World, path: &str, headers: &[(String, String)]) -> (u16, Value) {
    let answer = world.send("GET", path, headers, Vec::new()).await;
    (answer.status, answer.json()["detail"].clone())
}

#[tokio::test]
async fn runs_of_all_simulations_are_listed_by_page() {
    let (world, first, [one, _]) = queued().await;
    judge(&world, one).await;
    world.post("/v1/update-simulation-result", json!({ "simulation_result_id": one, "tags": ["50%_x"] })).await;
    let simulation = world.get("/v1/simulation-runs").await["simulation_runs"][0]["simulation_id"].clone();
    let body = json!({ "simulation_id": simulation, "sip_uri": "sip:a@b.example" });
    let second: i64 = world.post("/v1/queue-simulation-run", body).await["simulation_run_id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .expect("an id");
    let agent = world.name("agent").to_owned();
    for (query, expect) in [
        (String::new(), vec![second, first]),
        (format!("agent_id={agent}"), vec![second, first]),
        ("agent_id=99".to_owned(), vec![]),
        ("status=RUNNING".to_owned(), vec![second, first]),
        ("status=COMPLETED".to_owned(), vec![]),
        ("tag=50%25_x".to_owned(), vec![first]),
        ("tag=50".to_owned(), vec![]),
        ("since=2026-01-05T09:00:00Z".to_owned(), vec![second, first]),
        ("since=2027-01-05T09:00:00Z".to_owned(), vec![]),
        (format!("cursor={second}"), vec![first]),
    ] {
        let page = world.get(&format!("/v1/simulation-runs?{query}")).await;
        let ids: Vec<i64> =
            page["simulation_runs"].as_array().expect("runs").iter().filter_map(|run| run["id"].as_i64()).collect();
        assert_eq!((ids, &page["next_cursor"]), (expect, &Value::Null), "{query}");
    }
    let page = world.get("/v1/simulation-runs?limit=1").await;
    assert_eq!(page["next_cursor"], second.to_string());
    let page = world.get(&format!("/v1/simulation-runs?limit=1&cursor={second}")).await;
    let run = &page["simulation_runs"][0];
    assert_eq!((&run["agent_name"], &run["simulation_name"]), (&json!("Desk"), &json!("Booking")));
    assert_eq!((&run["p50_agent_latency"], &run["p95_agent_latency"]), (&json!(0.7), &json!(0.88)));
    assert_eq!(
        (&run["tests_passed"], &run["total_tests"], &run["created_by"]),
        (&json!(1), &json!(2), &json!("admin"))
    );
    let foreign = [with("x-api-key", "$foreign")];
    let answer = world.send("GET", "/v1/simulation-runs", &foreign, Vec::new()).await.json();
    assert_eq!(answer["simulation_runs"], json!([]));
    for query in ["limit=0", "limit=201", "cursor=x", "since=yesterday"] {
        assert_eq!(status(&world, &format!("/v1/simulation-runs?{query}"), &[]).await.0, 422, "{query}");
    }
}

#[tokio::test]
async fn a_review_wins_and_is_told_apart() {
    let (world, run, [first, second]) = queued().await;
    let reviewer = json!({ "reviewer": "Ann", "human_goal_success": false, "human_goal_reasoning": "Wrong day." });
    let answer = put_review(&world, first, &[], reviewer.clone()).await;
    assert_eq!((answer.status, &answer.json()["detail"]), (409, &json!("Evaluation has not ended")));
    judge(&world, first).await;
    judge(&world, second).await;
    for (key, expect) in [("$foreign", 404), ("$read", 403), ("", 401)] {
        assert_eq!(
            put_review(&world, first, &[with("x-api-key", key)], reviewer.clone()).await.status,
            expect,
            "{key}"
        );
    }
    for body in [json!({}), json!({ "reviewer": "" }), json!({ "reviewer": "A", "human_pronunciation_score": 101 })] {
        assert_eq!(put_review(&world, first, &[], body.clone()).await.status, 422, "{body}");
    }
    let read =
        async || world.get(&format!("/v1/retrieve-simulation-result/{first}")).await["simulation_result"].clone();
    assert_eq!(read().await["outcome"], "passed");
    let answer = put_review(&world, first, &[], reviewer.clone()).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let (reviewed, result) = (answer.json(), read().await);
    let evaluation = &result["evaluations"][0];
    assert_eq!((&result["outcome"], &reviewed["outcome"]), (&json!("failed"), &json!("failed")));
    assert_eq!((&evaluation["goal_success"], &evaluation["human_goal_success"]), (&json!(true), &json!(false)));
    assert_eq!((&evaluation["reviewer"], &evaluation["human_edited"]), (&json!("Ann"), &json!(true)));
    let whole = world.get(&format!("/v1/retrieve-simulation-results/{run}")).await["simulation_run"].clone();
    assert_eq!((&whole["tests_passed"], &whole["tests_failed"]), (&json!(1), &json!(1)));

    // A reviewer who has not read it may not overwrite it.
    assert_eq!(put_review(&world, first, &[], reviewer.clone()).await.status, 412);
    let seen = |at: &Value| [with("if-match", &format!("\"{}\"", at.as_str().expect("a time")))];
    let at = seen(&reviewed["last_edited_at"]);
    let bad =
        json!({ "reviewer": "Bo", "metrics": [{ "metric_id": uuid::Uuid::nil(), "human_response_value": "maybe" }] });
    assert_eq!(put_review(&world, first, &at, bad).await.status, 400);
    let more =
        json!({ "reviewer": "Bo", "metrics": [{ "metric_id": uuid::Uuid::nil(), "human_response_value": "fail" }] });
    let second_review = put_review(&world, first, &at, more).await;
    assert_eq!(second_review.status, 200);

    exports_tell_reviews(&world, run).await;
    let back = json!({ "reviewer": "Ann", "human_goal_success": null });
    let answer = put_review(&world, first, &seen(&second_review.json()["last_edited_at"]), back).await;
    assert_eq!((answer.status, &answer.json()["outcome"]), (200, &json!("passed")));
    let reviews = world.get(&format!("/v1/simulation-result/{first}/reviews")).await["reviews"].clone();
    let shown: Vec<Value> = reviews
        .as_array()
        .expect("reviews")
        .iter()
        .rev()
        .map(|one| {
            json!([one["reviewer"], one["changes"][0]["field"], one["changes"][0]["from"], one["changes"][0]["to"]])
        })
        .collect();
    let expect = [
        json!(["Ann", "human_goal_success", null, false]),
        json!(["Bo", "human_response_value", null, "fail"]),
        json!(["Ann", "human_goal_success", false, null]),
    ];
    assert_eq!(shown, expect);
    let reviews = format!("/v1/simulation-result/{first}/reviews");
    assert_eq!(status(&world, &reviews, &[with("x-api-key", "$foreign")]).await.0, 404);
    // An evaluation that replaces the one that was reviewed keeps what a person said.
    let again =
        Judged { evaluation: Evaluation { goal_success: Some(false), ..Evaluation::default() }, ..Judged::default() };
    world.service.evaluations().store_evaluation(world.name("organization"), first, again).await.expect("is kept");
    assert_eq!(read().await["evaluations"][0]["reviewer"], "Ann");
}

#[tokio::test]
async fn a_review_that_agrees_is_kept() {
    let (world, _, [id, _]) = queued().await;
    judge(&world, id).await;
    let agrees = json!({ "reviewer": "Ann", "human_goal_success": null });
    let answer = put_review(&world, id, &[], agrees.clone()).await.json();
    let kept = &answer["evaluation"];
    assert_eq!((&kept["reviewer"], &kept["human_edited"]), (&json!("Ann"), &json!(false)), "{answer}");
    let reviews = world.get(&format!("/v1/simulation-result/{id}/reviews")).await["reviews"].clone();
    assert_eq!((&reviews[0]["reviewer"], &reviews[0]["changes"]), (&json!("Ann"), &json!([])));
    // Once more it changes nothing.
    let seen = [with("if-match", &format!("\"{}\"", answer["last_edited_at"].as_str().expect("a time")))];
    assert_eq!(put_review(&world, id, &seen, agrees).await.json()["last_edited_at"], answer["last_edited_at"]);
}

/// Checks a run of two results of which the first was reviewed, in every form.
async fn exports_tell_reviews(world: &World, run: i64) {
    let export = async |format: &str| {
        let path = format!("/v1/simulation-run/{run}/export?format={format}");
        String::from_utf8(world.send("GET", &path, &[], Vec::new()).await.body).expect("text")
    };
    let csv = export("csv").await;
    let rows: Vec<&str> = csv.lines().collect();
    assert!(
        rows[0].contains("Polite,judged_goal_success,human_goal_success,human_goal_reasoning,reviewer,last_edited_at"),
        "{csv}"
    );
    assert!(rows[1].contains(",failed,") && rows[1].contains(",fail,true,false,Wrong day.,Bo,"), "{csv}");
    assert!(rows[2].contains(",pass,true,,,,"), "{csv}");
    assert!(export("json").await.contains("\"human_goal_reasoning\":\"Wrong day.\""));
    let junit = export("junit").await;
    assert!(junit.contains("<property name=\"human_goal_success\" value=\"false\"/>"), "{junit}");
    assert!(
        junit.contains("<property name=\"human Polite\" value=\"fail\"/>")
            && junit.contains("<failure message=\"Wrong day.\"/>")
    );
}

#[tokio::test]
async fn a_recording_is_outlined_in_three_steps() {
    let (world, _, [first, _]) = queued().await;
    let path = |query: &str| format!("/v1/simulation-result/{first}/peaks{query}");
    assert_eq!(status(&world, &path("?zoom=0"), &[]).await, (404, json!("Recording not available")));
    judge(&world, first).await;
    record(&world, first, 2500).await;
    let of = |count: usize, low: f64, high: f64| [low, high].repeat(count);
    for (query, step, count) in
        [("?zoom=0", 16_000, 3), ("?zoom=1&from_ms=100&to_ms=250", 1600, 2), ("?zoom=2&from_ms=2490", 160, 1)]
    {
        let read = world.get(&path(query)).await;
        assert_eq!((&read["samples_per_peak"], &read["duration_ms"]), (&json!(step), &json!(2500)), "{query}");
        assert_eq!(read["channels"], json!([of(count, 0.031, 0.031), of(count, -0.061, -0.061)]), "{query}");
    }
    let answer = world.send("GET", &path("?zoom=1&format=i8&to_ms=200"), &[], Vec::new()).await;
    assert_eq!(answer.body, [4, 4, (-8i8) as u8, (-8i8) as u8].repeat(2));
    assert!(answer.headers["x-step-ms"] == "100" && answer.headers["x-duration-ms"] == "2500");
    for (query, expect) in [
        ("?zoom=3", 422),
        ("?zoom=0&from_ms=-1", 422),
        ("?format=i8", 400),
        ("?zoom=0&format=x", 400),
        ("?to_ms=5", 400),
    ] {
        assert_eq!(status(&world, &path(query), &[]).await.0, expect, "{query}");
    }
    assert_eq!(status(&world, &path("?zoom=0"), &[with("x-api-key", "$foreign")]).await.0, 404);
    assert_eq!(world.get(&path("?points=100")).await["channels"][0].as_array().map(Vec::len), Some(200));
}

/// Checks that turns from a number on are those of the whole list, and that overlaps are told of the whole call.
async fn check_turns_from(world: &World, id: i64) {
    let read = async |query: &str| world.get(&format!("/v1/simulation-result/{id}/turns{query}")).await;
    let whole = read("").await;
    let turns = whole["turns"].as_array().expect("turns");
    let overlaps = whole["overlaps"].as_array().expect("overlaps");
    assert!(turns.len() > 2 && !overlaps.is_empty(), "{whole}");
    assert!(overlaps.iter().all(|one| one["counted"].as_bool() == Some(one["why_not"].is_null())), "{whole}");
    for from in [0, 2, turns.len()] {
        let rest = read(&format!("?from={from}")).await;
        assert_eq!(rest["turns"], json!(turns[from..]), "from {from}");
        assert_eq!((&rest["total"], &rest["overlaps"]), (&json!(turns.len()), &whole["overlaps"]));
    }
}

#[tokio::test]
async fn turns_and_signalling_are_data() {
    let (world, _, [first, second]) = queued().await;
    let organization = world.name("organization");
    for part in ["turns", "ladder", "page", "capture"] {
        let path = format!("/v1/simulation-result/{first}/{part}");
        assert_eq!(status(&world, &path, &[]).await.0, 404, "{part}");
        assert_eq!(
            status(&world, &path, &[with("x-api-key", "$foreign")]).await.1,
            "Simulation result not found",
            "{part}"
        );
    }
    judge(&world, first).await;
    let timeline: Value = serde_json::from_str(include_str!("../../fixtures/timelines/call.json")).expect("a list");
    world
        .service
        .conversations()
        .store_timeline(organization, first, timeline.as_array().expect("a list"))
        .await
        .expect("is kept");
    record(&world, first, 1000).await;
    let log = "1767600000123 sent to 127.0.0.1:5061 at 127.0.0.1:5060\n INVITE sip:a:pw@b SIP/2.0\n X-Api-Key: tell-nobody\n \n\n";
    std::fs::write(world.service.settings().result_folder(first).join("sip.log"), log).expect("a file");
    let turns = world.get(&format!("/v1/simulation-result/{first}/turns")).await;
    let turns = turns["turns"].as_array().expect("turns").clone();
    assert!(
        turns.iter().any(|turn| turn["latency_ms"].is_number())
            && turns.iter().all(|turn| turn["to_sample"].as_i64() >= turn["from_sample"].as_i64())
    );
    check_turns_from(&world, first).await;
    let ladder = world.get(&format!("/v1/simulation-result/{first}/ladder")).await;
    let kinds = |kind: &str| {
        ladder["entries"].as_array().expect("entries").iter().filter(|entry| entry["kind"] == kind).count()
    };
    assert!(kinds("message") == 1 && kinds("rtcp") > 1 && kinds("digit") > 1, "{ladder}");
    assert!(!ladder.to_string().contains("tell-nobody") && !ladder.to_string().contains(":pw@"));
    let page = world.send("GET", &format!("/v1/simulation-result/{first}/page"), &[], Vec::new()).await;
    let text = String::from_utf8(page.body).expect("text");
    assert!(
        text.contains("Content-Security-Policy") && text.contains("It was booked.") && !text.contains("tell-nobody")
    );
    assert!(text.contains("\"caller\":\"Maria\",\"agent\":\"Desk\""), "both sides have their names");
    assert!(page.headers["content-disposition"].to_str().expect("text").contains("call-"));
    let capture = world.send("GET", &format!("/v1/simulation-result/{first}/capture"), &[], Vec::new()).await;
    assert_eq!((capture.status, &capture.body[..4]), (200, &b"\x0a\x0d\x0d\x0a"[..]));

    // Private words are hidden until they are taken out.
    judge(&world, second).await;
    world
        .service
        .conversations()
        .store_timeline(organization, second, timeline.as_array().expect("a list"))
        .await
        .expect("is kept");
    record(&world, second, 1000).await;
    world.service.conversations().amend(organization, second, |doc| doc.private = true).await.expect("is there");
    for part in ["turns", "ladder", "peaks?zoom=0", "capture", "recording?from_ms=0&to_ms=100"] {
        assert_eq!(status(&world, &format!("/v1/simulation-result/{second}/{part}"), &[]).await.0, 404, "{part}");
    }
    let page = world.send("GET", &format!("/v1/simulation-result/{second}/page"), &[], Vec::new()).await;
    let text = String::from_utf8(page.body).expect("text");
    assert!(
        text.contains("\"timeline\":null")
            && text.contains("\"peaks\":null")
            && text.contains("id=\"audio\"></script>")
    );
}

#[tokio::test]
async fn the_changes_of_a_run_are_streamed_to_its_end() {
    let (world, run, [first, second]) = queued().await;
    judge(&world, first).await;
    let foreign = [with("x-api-key", "$foreign")];
    assert_eq!(status(&world, &format!("/v1/simulation-run/{run}/events"), &foreign).await.0, 404);
    let path = format!("/v1/simulation-run/{run}/events");
    // A run that is over is told at once, to the end.
    judge(&world, second).await;
    let text = String::from_utf8(world.send("GET", &path, &[], Vec::new()).await.body).expect("text");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["result", "result", "run", "end"]);
    assert!(text.contains("\"tests_passed\":2") && text.contains("\"digital_human_name\":\"Maria\""), "{text}");
}

#[tokio::test]
async fn the_page_is_served_under_its_policy_to_this_machine() {
    let world = World::with_setup(Setup { is_loopback: true, ..Setup::default() }).await;
    let host = |name: &str| [with("host", name)];
    for path in [
        "/",
        "/runs/1",
        "/results/7",
        "/call",
        "/agents",
        "/agents/2",
        "/simulations/3",
        "/page/app.js",
        "/page/page.css",
        "/docs",
    ] {
        let answer = world.send("GET", path, &host("127.0.0.1:8080"), Vec::new()).await;
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{path}");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        let packed = [with("host", "localhost"), with("accept-encoding", "gzip")];
        let packed = world.send("GET", path, &packed, Vec::new()).await;
        assert_eq!(packed.status, 200, "{path}");
        if answer.body.len() > 2000 {
            assert_eq!(
                ["content-encoding", "vary"].map(|name| packed.headers[name].as_bytes()),
                [&b"gzip"[..], b"accept-encoding"],
                "{path}"
            );
            assert!(packed.body.len() * 2 < answer.body.len(), "{path}");
        }
        for name in ["evil.example", "127.0.0.1.evil.example", ""] {
            assert_eq!(world.send("GET", path, &host(name), Vec::new()).await.status, 421, "{path} {name}");
        }
        assert_eq!(world.send("POST", path, &host("localhost"), Vec::new()).await.status, 405, "{path}");
    }
    assert_eq!(
        world.send("POST", "/v1/page-session", &host("evil.example"), b"{\"token\":\"x\"}".to_vec()).await.status,
        421
    );
    // A name that others gave it is refused for the page alone.
    assert_eq!(world.send("GET", "/v1/simulation-runs", &host("evil.example"), Vec::new()).await.status, 200);
}

#[tokio::test]
async fn a_start_token_is_good_once_and_for_ten_minutes() {
    let world = World::new().await;
    let (service, clock) = (&world.service, world.service.clock().clone());
    let session = async |door: &Arc<ringer::service::PageDoor>, token: &str, forwarded: bool| {
        let setup = Setup { is_loopback: true, door: Some(door.clone()), ..Setup::default() };
        let mut headers = vec![with("host", "[::1]:8080"), with("x-api-key", "")];
        headers.extend(forwarded.then(|| with("x-forwarded-for", "192.0.2.1")));
        let body = json!({ "token": token }).to_string().into_bytes();
        world.send_to(setup, "POST", "/v1/page-session", &headers, body).await
    };
    let (door, token) = service.library().page_door("a");
    let door = Arc::new(door);
    assert_eq!(token.len(), 32, "128 bits");
    assert_eq!(session(&door, "0123", false).await.status, 403);
    assert_eq!(session(&door, &token, true).await.status, 403, "through a proxy");
    let made = session(&door, &token, false).await;
    assert_eq!(made.status, 200);
    let made = made.json();
    assert!(
        made["scope"] == "admin" && made["name"].as_str().is_some_and(|name| name.starts_with("page-2026")),
        "{made}"
    );
    assert_eq!(session(&door, &token, false).await.status, 403, "it was used");
    let key = [with("x-api-key", made["api_key"].as_str().expect("a key"))];
    assert_eq!(world.send("GET", "/v1/simulation-runs", &key, Vec::new()).await.status, 200);
    service.library().close_page(&door).await.expect("is revoked");
    assert_eq!(world.send("GET", "/v1/simulation-runs", &key, Vec::new()).await.status, 401);
    let (door, token) = service.library().page_door("a");
    clock.advance_ms(10 * 60 * 1000 + 1);
    assert_eq!(session(&Arc::new(door), &token, false).await.status, 403, "it is old");
}

#[tokio::test]
async fn routes_of_the_page_check_what_they_are_given() {
    let (world, run, [first, second]) = queued().await;
    judge(&world, first).await;
    judge(&world, second).await;
    for path in [
        "/v1/simulation-result/x/turns",
        "/v1/simulation-result/1/turns?words=perhaps",
        "/v1/simulation-result/1/turns?from=-1",
        "/v1/simulation-result/x/ladder",
        "/v1/simulation-result/1/ladder?rtcp=2",
        "/v1/simulation-result/x/mails",
        "/v1/simulation-result/x/reviews",
        "/v1/simulation-result/x/page",
        "/v1/simulation-result/x/capture",
        "/v1/simulation-result/x/peaks",
        "/v1/simulation-result/1/peaks?zoom=0&to_ms=-1",
        "/v1/simulation-run/x/events",
        "/v1/simulation-runs?status=DONE",
        "/v1/simulation-runs?agent_id=x",
        "/v1/simulation-runs?limit=x",
    ] {
        assert_eq!(status(&world, path, &[]).await.0, 422, "{path}");
    }
    for path in [
        "/v1/simulation-runs".to_owned(),
        format!("/v1/simulation-run/{run}/events"),
        format!("/v1/simulation-result/{first}/reviews"),
        "/v1/behaviour-levels".to_owned(),
    ] {
        assert_eq!(status(&world, &path, &[with("x-api-key", "")]).await.0, 401, "{path}");
        assert_eq!(world.send("GET", &path, &[with("x-api-key", "$read")], Vec::new()).await.status, 200, "{path}");
    }
    let (long, longer) = ("x".repeat(201), "x".repeat(10_001));
    for body in [
        json!({ "reviewer": long }),
        json!({ "reviewer": "A", "human_goal_reasoning": longer }),
        json!({ "reviewer": "A", "override_goal_reason_code": long }),
        json!({ "reviewer": "A", "override_goal_notes": longer }),
        json!({ "reviewer": "A", "human_goal_success": "perhaps" }),
        json!({ "reviewer": "A", "metrics": [{ "human_response_value": "pass" }] }),
        json!({ "reviewer": "A", "metrics": [{ "metric_id": "x" }] }),
        json!({ "reviewer": "A", "metrics": [{ "metric_id": uuid::Uuid::nil(), "human_response_value": "x".repeat(10_001) }] }),
    ] {
        let answer = put_review(&world, first, &[], body.clone()).await;
        assert_eq!((answer.status, answer.json()["detail"].is_array()), (422, true), "{body}");
    }
    let whole = world.get(&format!("/v1/retrieve-simulation-result/{first}")).await;
    assert_eq!(whole["simulation_result"]["evaluations"][0]["human_edited"], false, "nothing was kept");
    for (key, expect) in [("$admin", 503), ("$write", 503), ("$read", 403), ("", 401)] {
        let answer = world.send("POST", "/v1/sample-agent", &[with("x-api-key", key)], Vec::new()).await;
        assert_eq!(answer.status, expect, "{key}");
    }
    let token = json!({ "token": long }).to_string().into_bytes();
    assert_eq!(world.send("POST", "/v1/page-session", &[], token).await.status, 422);
}

#[tokio::test]
async fn each_start_of_the_sample_agent_has_the_same_agent() {
    let starts = Arc::new(AtomicUsize::new(0));
    let starter = starts.clone();
    let sample_agent: SampleAgent = Arc::new(move || {
        let port = 5000 + starter.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(format!("sip:desk@127.0.0.1:{port}")) })
    });
    let world = World::with_setup(Setup { sample_agent: Some(sample_agent), ..Setup::default() }).await;
    let old = json!({ "name": "Sample agent", "type": "INBOUND", "connection_type": "SIP", "sip_uri": "sip:desk@127.0.0.1:4999" });
    let old = world.post("/v1/add-agent", old).await["agent_id"].clone();
    for start in 0..3 {
        let sample = world.post("/v1/sample-agent", Value::Null).await;
        let address = json!(format!("sip:desk@127.0.0.1:{}", 5000 + start));
        assert_eq!((&sample["sip_uri"], &sample["agent_id"]), (&address, &old), "the one that was there is kept");
        let agents = world.get("/v1/all-agents").await;
        let kept: Vec<&Value> = agents.as_array().expect("agents").iter().map(|agent| &agent["sip_uri"]).collect();
        assert_eq!(kept, [&address]);
    }
    world.call("DELETE", &format!("/v1/agent/{old}"), Value::Null).await;
    let anew = world.post("/v1/sample-agent", Value::Null).await;
    assert_ne!(anew["agent_id"], old, "it is made where there is none");
}
