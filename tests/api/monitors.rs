//! Uptime monitors: when they check, what they find, and who is told.

use std::sync::Arc;

use ringer::model::result::{MetricValue, ResultDoc};
use ringer::model::status::ResultStatus as S;
use ringer::model::transcript::Transcript;
use ringer::provider::LanguageModel;
use serde_json::{Value, json};

use super::judged::answering;
use super::oracle::Oracle;
use super::receiver::Receiver;
use super::world::World;
use crate::json::with;

pub(super) const MINUTE_MS: i64 = 60_000;

/// Returns a world with a monitor, `$monitor`.
pub(super) async fn with_monitor() -> World {
    let mut world = World::with_rows().await;
    let monitor = create(&world, json!({})).await;
    world.call_it("monitor", monitor["id"].as_str().expect("an id"));
    world
}

/// Returns a monitor that asks whether the agent responds, and `more`.
pub(super) async fn create(world: &World, more: Value) -> Value {
    let agent: i64 = world.name("agent").parse().expect("an id");
    let body = json!({ "agent_id": agent, "checks": [{ "checkType": "agent_responds" }] });
    world.post("/v1/uptime/monitors", with(body, more)).await
}

pub(super) async fn read_monitor(world: &World, monitor: &Value) -> Value {
    world.get(&path(monitor)).await
}

pub(super) fn path(monitor: &Value) -> String {
    format!("/v1/uptime/monitors/{}", monitor["id"].as_str().expect("an id"))
}

/// Lets time pass and everything be done that is then due.
pub(super) async fn pass(world: &World, ms: i64) {
    world.service.clock().advance_ms(ms);
    world.work_off().await;
}

/// Course of a call, as a test writes it.
#[derive(Copy, Clone)]
pub(super) enum Call {
    /// The agent says this.
    Says(&'static str),
    Nothing,
    NoAnswer,
    /// This build does not speak the agent's channel.
    Unspoken,
    Fault,
}

/// Ends the call of the check that is under way.
pub(super) async fn answer(world: &World, monitor: &Value, call: Call) {
    answer_judged(world, monitor, call, None).await;
}

/// Answers a check as [`answer`] does, words judged by `model`.
async fn answer_judged(world: &World, monitor: &Value, call: Call, model: Option<Arc<dyn LanguageModel>>) {
    let id = read_monitor(world, monitor).await["recent_checks"][0]["simulation_result_id"].as_i64().expect("a call");
    let organization = world.name("organization");
    let go = async |from, to| {
        world.service.conversations().advance(organization, id, from, to, |_| ()).await.expect("an allowed step");
    };
    go(S::Initializing, S::Queued).await;
    go(S::Queued, S::Dispatched).await;
    let failed = |code: &'static str| move |doc: &mut ResultDoc| doc.body.fail(code.into(), "as told");
    match call {
        Call::NoAnswer => {
            let ended = world.service.conversations().advance(
                organization,
                id,
                S::Dispatched,
                S::NoAnswer,
                failed("NO_ANSWER"),
            );
            ended.await.expect("an allowed step");
        }
        Call::Unspoken => {
            let code = "CONNECTION_NOT_SUPPORTED";
            let ended =
                world.service.conversations().advance(organization, id, S::Dispatched, S::NoConnection, failed(code));
            ended.await.expect("an allowed step");
        }
        Call::Fault => {
            let ended = world.service.conversations().advance(
                organization,
                id,
                S::Dispatched,
                S::SystemError,
                failed("INTERNAL_ERROR"),
            );
            ended.await.expect("an allowed step");
        }
        Call::Says(_) | Call::Nothing => {
            for step in [S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating].windows(2) {
                go(step[0], step[1]).await;
            }
            let text = if let Call::Says(text) = call { text } else { "" };
            let entry = json!({
                "start_offset_ms": 0, "end_offset_ms": 500, "speaker": "AGENT", "utterance": text, "words": [],
                "filler_utterance": false, "interrupted": false, "scripted": false, "confidence": null, "source": "recognized",
            });
            let entries: Vec<Value> = if text.is_empty() { vec![] } else { vec![entry] };
            let transcript = json!({ "simulation_result_id": id, "language": "en", "entries": entries });
            let transcript: Transcript = serde_json::from_value(transcript).expect("a transcript");
            world.service.conversations().store_transcript(organization, &transcript).await.expect("is kept");
            let turns = i64::from(!text.is_empty());
            let measured = move |doc: &mut ResultDoc| {
                let metric = |name: &str, value: Value| MetricValue { name: name.into(), value, note: None };
                doc.body.metrics = vec![metric("num_turns", json!(turns)), metric("avg_agent_latency", json!(1.2))];
            };
            let ended = world.service.conversations().advance(organization, id, S::Evaluating, S::Completed, measured);
            ended.await.expect("an allowed step");
        }
    }
    world.work_off_with(model).await;
}

#[tokio::test]
async fn a_malfunction_is_judged_by_the_model_and_by_phrases_without_one() {
    let world = World::with_rows().await;
    let monitor = create(&world, json!({ "checks": [{ "checkType": "agent_malfunction" }] })).await;
    world.work_off().await;
    let says = |answer: &'static str| -> Option<Arc<dyn LanguageModel>> {
        let answer = json!({ "reasoning": "So it is.", "answer": answer }).to_string();
        Some(Oracle::new(move |first, last| {
            (first.contains("The question: ") && last.contains("AGENT: ")).then(|| answer.clone())
        }))
    };
    let (broken, fine) = ("An error occurred in your bill, I mended it.", "The line to our booking office is dead.");
    for (text, model, verdict) in [
        (broken, None, "DOWN"),
        (fine, None, "UP"),
        (broken, says("no"), "UP"),
        (fine, says("yes"), "DOWN"),
        // It does not answer.
        (broken, Some(Oracle::new(|_, _| None) as Arc<dyn LanguageModel>), "DOWN"),
    ] {
        answer_judged(&world, &monitor, Call::Says(text), model).await;
        assert_eq!(read_monitor(&world, &monitor).await["recent_checks"][0]["verdict"], verdict, "{text}");
        pass(&world, 10 * MINUTE_MS).await;
    }
    let days = json!([{ "day": "2026-01-05", "up": 2, "down": 3 }]);
    assert_eq!(read_monitor(&world, &monitor).await["days"], days);
}

#[tokio::test]
async fn every_field_is_read_back() {
    let world = World::with_rows().await;
    let human: i64 = world.name("digital_human").parse().expect("an id");
    let given = json!({
        "frequency": "*/5 * * * *",
        "active_window": { "days": ["monday", "friday"], "start_time": "10:00", "end_time": "18:30", "timezone": "Europe/Berlin" },
        "checks": [
            { "checkType": "agent_responds", "id": "mine", "enabled": false, "config": { "alert_after_failures": 2 } },
            { "checkType": "latency", "config": { "latency_threshold_ms": 900 } },
            { "checkType": "latency", "config": {} },
            { "checkType": "custom_metric", "config": { "custom_metric_id": world.name("metric"), "operator": "less_than", "value": 3 } },
            { "checkType": "digital_human", "config": { "digital_human_id": human } },
        ],
        "notifications": { "channels": [{ "type": "pager", "target": "key" }] },
        "enabled": true, "start_at": "2026-01-06 11:30:00.1234567+02:30",
    });
    let created = create(&world, given.clone()).await;
    for name in ["frequency", "active_window", "notifications", "enabled"] {
        assert_eq!(created[name], given[name], "{name}");
    }
    assert_eq!(created["start_at"], "2026-01-06T09:00:00.123456Z");
    let names: Vec<&str> = created["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|check| check["id"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["mine", "latency", "latency_2", "custom_metric", "digital_human"]);
    for n in 0..5 {
        assert_eq!(created["checks"][n]["config"], given["checks"][n]["config"], "check {n}");
        assert_eq!(created["checks"][n]["enabled"], n != 0, "check {n}");
    }
    for (name, expect) in [
        ("status", json!("UNKNOWN")),
        ("uptime_percentage", Value::Null),
        ("last_checked_at", Value::Null),
        // Friday, ten o'clock in Berlin.
        ("next_check_at", json!("2026-01-09T09:00:00.000000Z")),
        ("open_incident", Value::Null),
        ("recent_checks", json!([])),
        ("created_at", json!("2026-01-05T09:00:00.000000Z")),
    ] {
        assert_eq!(created.get(name), Some(&expect), "{name}");
    }
    assert_eq!(read_monitor(&world, &created).await, created);
    let listed = world.get("/v1/uptime/monitors").await;
    assert_eq!((&listed["monitors"][0], &listed["total_pages"]), (&created, &json!(1)));
    let humans = world.get(&format!("/v1/digital-humans-by-simulation/{}", created["simulation_id"])).await;
    assert_eq!((&humans["total"], &humans["digital_humans"][0]["id"]), (&json!(1), &json!(human)));
    let plain = create(&world, json!({})).await;
    for (name, expect) in [
        ("frequency", json!("10m")),
        ("active_window", Value::Null),
        ("notifications", json!({ "channels": [] })),
        ("enabled", json!(true)),
        ("start_at", json!("2026-01-05T09:00:00.000000Z")),
        ("next_check_at", json!("2026-01-05T09:00:00.000000Z")),
        ("checks", json!([{ "id": "agent_responds", "checkType": "agent_responds", "enabled": true, "config": {} }])),
    ] {
        assert_eq!(plain.get(name), Some(&expect), "{name}");
    }
}

#[tokio::test]
async fn a_check_of_a_metric_that_is_not_the_agent_s_comes_to_a_verdict() {
    let ((_desk, agent), notified) = (answering("Monday is free.").await, Receiver::new(&[]).await);
    let world = World::at_work(None).await;
    let agent = world.post("/v1/add-agent", with(json!({ "name": "Desk", "mode": "TEXT" }), agent)).await;
    let metric = async |name: &str, word: &str, agents: Value| {
        let fields = json!({
            "name": name, "description": "A day is offered.", "response_type": "pass_fail", "agent_ids": agents,
            "eval_method": "deterministic", "settings": { "check": "contains", "value": word },
        });
        world.post("/v1/create-custom-metric", fields).await["id"].clone()
    };
    let own = metric("own", "monday", json!([agent["agent_id"]])).await;
    let (checked, off) = (metric("checked", "tuesday", json!([])).await, metric("off", "x", json!([])).await);
    let check = |metric: &Value, enabled: bool| {
        let config = json!({ "custom_metric_id": metric, "operator": "equals", "value": "pass" });
        json!({ "checkType": "custom_metric", "id": metric, "enabled": enabled, "config": config })
    };
    let paused = json!({
        "agent_id": agent["agent_id"], "checks": [{ "checkType": "agent_responds" }], "enabled": false,
        "notifications": { "channels": [{ "type": "webhook", "target": notified.url("/hook") }] },
    });
    let monitor = world.post("/v1/uptime/monitors", paused).await;
    let checks = json!([check(&own, true), check(&checked, true), check(&off, false)]);
    let changed = world.call("PUT", &path(&monitor), json!({ "checks": checks, "enabled": true })).await;
    assert_ne!(changed["simulation_id"], monitor["simulation_id"]);
    assert_eq!(notified.wait_for(1).await.json()["kind"], "uptime_down");
    let now = read_monitor(&world, &monitor).await;
    let item = |metric: &Value, verdict: &str, value: &str, holds: bool| {
        json!({ "id": metric, "checkType": "custom_metric", "verdict": verdict, "value": value,
            "message": format!("{value} equals pass is {holds}") })
    };
    let expect = json!([item(&own, "UP", "pass", true), item(&checked, "DOWN", "fail", false)]);
    assert_eq!((&now["status"], &now["recent_checks"][0]["checks"]), (&json!("DOWN"), &expect));
    let result = format!("/v1/retrieve-simulation-result/{}", now["recent_checks"][0]["simulation_result_id"]);
    let result = world.get(&result).await["simulation_result"].clone();
    let judged = result["evaluations"][0]["custom_metrics"].as_array().expect("a list").iter();
    let mut judged: Vec<&str> = judged.filter_map(|metric| metric["name"].as_str()).collect();
    judged.sort_unstable();
    assert_eq!(judged, ["checked", "own"]);
    // Resources that a check names may be deleted: the monitor can still be paused, and no other takes it.
    for metric in [&checked, &off] {
        let metric = metric.as_str().expect("an id");
        world.call("DELETE", &format!("/v1/custom-metric/{metric}"), Value::Null).await;
    }
    assert_eq!(world.call("PUT", &path(&monitor), json!({ "enabled": false })).await["next_check_at"], Value::Null);
    let again = json!({ "agent_id": agent["agent_id"], "checks": checks }).to_string();
    let refused = world.send("POST", "/v1/uptime/monitors", &[], again.into_bytes()).await;
    assert_eq!((refused.status, refused.json()), (404, json!({ "detail": "Custom metric not found" })));
}

#[tokio::test]
async fn a_monitor_checks_when_due_one_call_at_a_time() {
    let world = World::with_rows().await;
    let monitor = create(&world, json!({ "frequency": "2m" })).await;
    world.work_off().await;
    let first = read_monitor(&world, &monitor).await;
    assert_eq!(first["next_check_at"], "2026-01-05T09:02:00.000000Z");
    let check = &first["recent_checks"][0];
    assert_eq!(
        (&check["finished_at"], &check["verdict"], &check["checks"]),
        (&Value::Null, &json!("UNKNOWN"), &json!([]))
    );
    let result = world.get(&format!("/v1/retrieve-simulation-result/{}", check["simulation_result_id"])).await;
    assert_eq!(result["simulation_result"]["tags"], json!(["uptime"]));
    assert_eq!(result["simulation_result"]["simulation_id"], monitor["simulation_id"]);
    // The caller greets, asks about the first goal and says thanks.
    let human = world.get(&format!("/v1/digital-humans-by-simulation/{}", monitor["simulation_id"])).await;
    assert_eq!(human["digital_humans"][0]["intent"], "What can you help me with?");

    pass(&world, 2 * MINUTE_MS).await;
    let second = read_monitor(&world, &monitor).await;
    assert_eq!(second["recent_checks"].as_array().map(Vec::len), Some(1), "the first is still under way");
    assert_eq!(second["next_check_at"], "2026-01-05T09:04:00.000000Z");
    answer(&world, &monitor, Call::Says("Hello.")).await;
    let up = read_monitor(&world, &monitor).await;
    assert_eq!((&up["status"], &up["uptime_percentage"]), (&json!("UP"), &json!(100.0)));
    assert_eq!(up["last_checked_at"], "2026-01-05T09:02:00.000000Z");
    let item = json!({ "id": "agent_responds", "checkType": "agent_responds", "verdict": "UP", "value": true,
        "message": "the agent answered and spoke" });
    assert_eq!(up["recent_checks"][0]["checks"], json!([item]));
    assert_eq!(up["recent_checks"][0]["finished_at"], "2026-01-05T09:02:00.000000Z");

    // After five minutes without an end nothing is known.
    pass(&world, 2 * MINUTE_MS).await;
    pass(&world, 5 * MINUTE_MS - 1).await;
    assert_eq!(read_monitor(&world, &monitor).await["recent_checks"][0]["finished_at"], Value::Null);
    pass(&world, 1).await;
    let late = read_monitor(&world, &monitor).await;
    assert_eq!(late["status"], "UNKNOWN");
    let given_up =
        late["recent_checks"].as_array().expect("a list").iter().find(|check| check["finished_at"] != Value::Null);
    let given_up = given_up.expect("one is over");
    assert_eq!(given_up["checks"][0]["message"], "not finished after 5 minutes");
    let result = world.get(&format!("/v1/retrieve-simulation-result/{}", given_up["simulation_result_id"])).await;
    assert_eq!(result["simulation_result"]["status"], "CANCELLED", "the next check does not meet its call");
    assert_eq!(late["uptime_percentage"], 100.0, "what is not known is not counted");

    // A month later only what was found since then counts.
    pass(&world, 31 * 24 * 60 * MINUTE_MS).await;
    assert_eq!(read_monitor(&world, &monitor).await["uptime_percentage"], Value::Null);
}

#[tokio::test]
async fn an_agent_that_lets_it_ring_is_found_out_before_its_check_is_given_up() {
    let world = World::with_rows().await;
    let monitor = create(&world, json!({})).await;
    let path = format!("/v1/simulation/{}", monitor["simulation_id"]);
    let ringing = async || world.get(&path).await["ringing_timeout"].clone();
    assert_eq!(ringing().await, 60);
    for (given, expect) in [(300, 60), (20, 20)] {
        world.call("PUT", &path, json!({ "ringing_timeout": given })).await;
        world.work_off().await;
        answer(&world, &monitor, Call::NoAnswer).await;
        assert_eq!(ringing().await, expect, "{given}");
        pass(&world, 10 * MINUTE_MS).await;
    }
}

#[tokio::test]
async fn failures_count_from_the_number_that_was_asked_for() {
    let world = World::with_rows().await;
    let checks = json!([
        { "checkType": "agent_responds", "config": { "alert_after_failures": 2 } },
        { "checkType": "agent_malfunction", "config": { "alert_after_failures": 3 } },
    ]);
    let monitor = create(&world, json!({ "checks": checks })).await;
    world.work_off().await;
    let broken = Call::Says("We have technical difficulties.");
    for (call, status, verdict, is_open) in [
        (Call::NoAnswer, "UNKNOWN", "DOWN", false),
        (Call::Says("Hello."), "UP", "UP", false),
        (Call::NoAnswer, "UP", "DOWN", false),
        (Call::NoAnswer, "DOWN", "DOWN", true),
        (Call::Says("Hello."), "UP", "UP", false),
        (broken, "UP", "DOWN", false),
        (broken, "UP", "DOWN", false),
        (broken, "DOWN", "DOWN", true),
    ] {
        answer(&world, &monitor, call).await;
        let now = read_monitor(&world, &monitor).await;
        assert_eq!((&now["status"], &now["recent_checks"][0]["verdict"]), (&json!(status), &json!(verdict)));
        assert_eq!(!now["open_incident"].is_null(), is_open);
        pass(&world, 10 * MINUTE_MS).await;
    }
    let reason = read_monitor(&world, &monitor).await["open_incident"]["reason"].clone();
    assert_eq!(reason, "agent_malfunction: the agent said 'technical difficulties'");
    // An issue of the agent is only what failed twice in a row.
    let issues = world.get("/v1/issues").await;
    assert_eq!(issues[0]["error_code"], "NO_ANSWER");
    let issue = world.get(&format!("/v1/issues/{}", issues[0]["id"].as_str().expect("an id"))).await;
    assert_eq!(issue["occurrences"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn only_what_is_passed_changes() {
    let world = World::with_rows().await;
    let monitor = create(&world, json!({ "frequency": "1h" })).await;
    world.work_off().await;
    answer(&world, &monitor, Call::Says("Hello.")).await;
    let change = async |body: Value| world.call("PUT", &path(&monitor), body).await;
    let before = read_monitor(&world, &monitor).await;
    let channels = json!({ "channels": [{ "type": "email", "target": "a@b.example" }] });
    let document = change(json!({ "notifications": channels, "frequency": null, "enabled": null })).await;
    assert_eq!(document["notifications"], channels);
    for name in ["simulation_id", "checks", "frequency", "next_check_at", "recent_checks", "start_at"] {
        assert_eq!(document[name], before[name], "{name}");
    }
    let paused = change(json!({ "enabled": false })).await;
    assert_eq!((&paused["next_check_at"], &paused["simulation_id"]), (&Value::Null, &before["simulation_id"]));
    pass(&world, 3 * 60 * MINUTE_MS).await;
    assert_eq!(read_monitor(&world, &monitor).await["recent_checks"].as_array().map(Vec::len), Some(1));
    let window = json!({ "days": ["monday"], "start_time": "14:00", "end_time": "15:00" });
    let resumed = change(json!({ "enabled": true, "active_window": window })).await;
    assert_eq!(resumed["next_check_at"], "2026-01-05T14:00:00.000000Z");
    assert_eq!(resumed["active_window"]["timezone"], "UTC");
    let around = change(json!({ "active_window": null })).await;
    assert_eq!(
        (&around["active_window"], &around["next_check_at"]),
        (&Value::Null, &json!("2026-01-05T12:00:00.000000Z"))
    );

    let checks = json!([{ "checkType": "latency", "id": "fast" }]);
    let rebuilt = change(json!({ "checks": checks })).await;
    assert_ne!(rebuilt["simulation_id"], before["simulation_id"]);
    assert_eq!(rebuilt["checks"].as_array().map(Vec::len), Some(1), "the whole list is replaced");
    let same = change(json!({ "checks": rebuilt["checks"] })).await;
    assert_eq!(same["simulation_id"], rebuilt["simulation_id"]);
    let evidence = format!("/v1/retrieve-simulation-result/{}", before["recent_checks"][0]["simulation_result_id"]);
    assert_eq!(world.get(&evidence).await["status"], "200", "earlier checks keep their results");
    let other = world.post("/v1/add-agent", json!({ "name": "Other" })).await["agent_id"].clone();
    let moved = change(json!({ "agent_id": other })).await;
    assert_ne!(moved["simulation_id"], rebuilt["simulation_id"]);
    let listed = world.get(&format!("/v1/uptime/monitors?agent_id={other}&page_size=1")).await;
    assert_eq!((&listed["total_count"], &listed["monitors"][0]["id"]), (&json!(1), &monitor["id"]));

    let deleted = world.call("DELETE", &path(&monitor), Value::Null).await;
    assert_eq!(deleted, json!({ "message": "Monitor deleted", "deleted_monitor_id": monitor["id"] }));
    for gone in [path(&monitor), evidence, format!("/v1/simulation/{}", moved["simulation_id"])] {
        assert_eq!(world.send("GET", &gone, &[], Vec::new()).await.status, 404, "{gone}");
    }
    assert_eq!(world.send("DELETE", &path(&monitor), &[], Vec::new()).await.status, 404);
    assert_eq!(world.get("/v1/digital-humans").await["total_count"], 1, "the callers that were made for it are gone");
    pass(&world, 24 * 60 * MINUTE_MS).await;
}

#[tokio::test]
async fn what_is_deleted_has_recovered_and_what_cannot_be_queued_is_not_known() {
    let receiver = Receiver::new(&[]).await;
    let world = World::with_rows().await;
    let channels = json!({ "channels": [{ "type": "webhook", "target": receiver.url("/hook") }] });
    let monitor = create(&world, json!({ "notifications": channels })).await;
    world.work_off().await;
    answer(&world, &monitor, Call::NoAnswer).await;
    world.call("DELETE", &path(&monitor), Value::Null).await;
    world.work_off().await;
    let kinds: Vec<Value> = receiver.requests().iter().map(|one| one.json()["kind"].clone()).collect();
    assert_eq!(kinds, [json!("uptime_down"), json!("uptime_recovered")]);

    let agent = json!({ "agent_id": world.name("agent"), "simulations_disabled": true });
    world.post("/v1/update-agent", agent).await;
    let monitor = create(&world, json!({})).await;
    world.work_off().await;
    let now = read_monitor(&world, &monitor).await;
    assert_eq!((&now["status"], &now["recent_checks"][0]["verdict"]), (&json!("UNKNOWN"), &json!("UNKNOWN")));
    assert_eq!(now["recent_checks"][0]["checks"][0]["message"], "Simulations are disabled for this agent");
    assert_eq!(now["recent_checks"][0]["simulation_result_id"], Value::Null);
    assert_eq!(now["open_incident"], Value::Null);
}

#[tokio::test]
async fn a_backing_simulation_that_is_gone_or_without_its_caller_is_made_anew() {
    let world = World::with_rows().await;
    let human: i64 = world.name("digital_human").parse().expect("an id");
    let chosen = json!({ "checkType": "digital_human", "config": { "digital_human_id": human } });
    let monitor = create(&world, json!({ "checks": [{ "checkType": "agent_responds" }, chosen] })).await;
    world.work_off().await;
    let mut backing = monitor["simulation_id"].clone();
    for (kind, id, caller) in
        [("simulation", backing.clone(), "Maria"), ("digital-human", json!(human), "Uptime check")]
    {
        answer(&world, &monitor, Call::Says("Hello.")).await;
        world.call("DELETE", &format!("/v1/{kind}/{id}"), Value::Null).await;
        pass(&world, 10 * MINUTE_MS).await;
        let old = std::mem::replace(&mut backing, read_monitor(&world, &monitor).await["simulation_id"].clone());
        assert_ne!(backing, old, "{kind}");
        let callers = world.get(&format!("/v1/digital-humans-by-simulation/{backing}")).await;
        assert_eq!(callers["digital_humans"][0]["name"], caller);
    }
    answer(&world, &monitor, Call::Says("Hello.")).await;
    let agent = world.post("/v1/add-agent", json!({ "name": "Other" })).await["agent_id"].clone();
    assert_eq!(world.call("PUT", &path(&monitor), json!({ "agent_id": agent })).await["status"], "UP");
}

#[tokio::test]
async fn an_agent_that_calls_can_be_watched_when_it_can_be_made_to() {
    let world = World::with_rows().await;
    let make = async |more: Value| {
        let agent = with(json!({ "name": "Caller", "type": "OUTBOUND" }), more);
        let id = world.post("/v1/add-agent", agent).await["agent_id"].clone();
        let body = json!({ "agent_id": id, "checks": [{ "checkType": "agent_responds" }] }).to_string();
        let answer = world.send("POST", "/v1/uptime/monitors", &[], body.into_bytes()).await;
        (answer.status, answer.json()["detail"].clone())
    };
    let refused = (400, json!("Outbound monitors need P4, P5 or an outbound trigger webhook"));
    assert_eq!(make(json!({})).await, refused);
    assert_eq!(make(json!({ "P3_agent_id": "x" })).await, refused);
    for more in [
        json!({ "P4_agent_id": "x" }),
        json!({ "P5_assistant_id": "x" }),
        json!({ "outbound_trigger_webhook_url": "https://example.com/go" }),
    ] {
        assert_eq!(make(more.clone()).await, (200, Value::Null), "{more}");
    }
}

#[tokio::test]
async fn an_agent_goes_with_all_that_watches_it() {
    let receiver = Receiver::new(&[]).await;
    let world = World::with_rows().await;
    let channels = json!({ "channels": [{ "type": "webhook", "target": receiver.url("/hook") }] });
    let monitor = create(&world, json!({ "notifications": channels })).await;
    world.work_off().await;
    answer(&world, &monitor, Call::NoAnswer).await;
    let agent = world.name("agent").to_owned();
    world.call("DELETE", &format!("/v1/agent/{agent}"), Value::Null).await;
    world.work_off().await;
    assert_eq!(world.send("GET", &path(&monitor), &[], Vec::new()).await.status, 404);
    let kinds: Vec<Value> = receiver.requests().iter().map(|one| one.json()["kind"].clone()).collect();
    assert_eq!(kinds, [json!("uptime_down"), json!("uptime_recovered")]);
}

#[tokio::test]
async fn those_who_wait_for_a_run_are_told_of_its_end_once() {
    let receiver = Receiver::new(&[]).await;
    let world = World::with_rows().await;
    let agent = world.name("agent").to_owned();
    let settings = json!({ "webhook_url": receiver.url("/run"), "emails": ["a@b.example"] });
    world.post("/v1/update-agent", json!({ "agent_id": agent, "simulation_notifications": settings })).await;
    let human: i64 = world.name("digital_human").parse().expect("an id");
    let add = format!("/v1/simulation/{}/add-digital-humans", world.name("simulation"));
    world.post(&add, json!({ "digital_human_ids": [human] })).await;
    let queued = world.post("/v1/queue-simulation-run", json!({ "simulation_id": world.name("simulation") })).await;
    let run = queued["simulation_run_id"].as_str().expect("an id").to_owned();
    let result = queued["simulation_result_ids"][0].as_str().expect("an id").to_owned();
    world.post(&format!("/v1/simulation-result/{result}/hangup"), Value::Null).await;
    world.post("/v1/update-simulation-result", json!({ "simulation_result_id": result, "tags": ["x"] })).await;
    world.work_off().await;
    let request = receiver.requests();
    assert_eq!(request.len(), 1);
    assert_eq!(request[0].json()["kind"], "run_completed");
    assert_eq!(request[0].json()["text"], "0 passed, 0 failed, 1 cancelled of 1");
    assert_eq!(request[0].json()["data"]["simulation_run_id"], json!(run.parse::<i64>().expect("an id")));
    let about = world.service.watching().notifications_about(world.name("organization"), &run).await.expect("a list");
    let errors: Vec<Option<String>> = about.into_iter().map(|one| one.error).collect();
    assert!(errors.contains(&Some("channel not configured".into())) && errors.contains(&None), "{errors:?}");
    // The calls of a monitor are no runs that anybody waits for.
    let monitor = create(&world, json!({})).await;
    world.work_off().await;
    answer(&world, &monitor, Call::Says("Hello.")).await;
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn nobody_is_named_who_belongs_to_another_organization() {
    let world = World::with_rows().await;
    let key = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let send = async |path: &str, body: Value| {
        let answer = world.send("POST", path, &key, body.to_string().into_bytes()).await;
        (answer.status, answer.json())
    };
    let agent = send("/v1/add-agent", json!({ "name": "Theirs", "sip_uri": "sip:a@b.example" })).await.1;
    let agent = agent["agent_id"].as_i64().expect("an id");
    let simulation = send("/v1/create-simulation", json!({ "agent_id": agent.to_string() })).await.1;
    let human =
        send("/v1/create-digital-human", json!({ "digital_human": {}, "simulation_id": simulation["simulation_id"] }));
    assert_eq!(human.await.0, 200);
    let simulation = simulation["simulation_id"].to_string();
    let theirs: i64 = world.name("digital_human").parse().expect("an id");
    let checks = json!([{ "checkType": "agent_responds" },
        { "checkType": "digital_human", "config": { "digital_human_id": theirs } }]);
    let gone = (404, json!({ "detail": "Digital human not found" }));
    assert_eq!(send("/v1/uptime/monitors", json!({ "agent_id": agent, "checks": checks })).await, gone);
    let queue = json!({ "simulation_id": simulation, "digital_human_ids": [theirs.to_string()] });
    assert_eq!(send("/v1/queue-simulation-run", queue).await, gone);
}
