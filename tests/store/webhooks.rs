//! Events for webhooks and their delivery, over a real HTTP receiver, on a clock that the test moves.

use std::collections::{BTreeMap, BTreeSet};

use ringer::jobs::deliver;
use ringer::model::status::ResultStatus as S;
use ringer::model::webhook::WebhookSpec;
use ringer::service::Service;
use ringer::tasks::Tasks;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::lifecycle::TO_EVALUATION;
use super::receiver::{Came, Receiver};
use super::{Fixture, START_MS, extend, map, spec};
use crate::api;

const RESULTS: [&str; 2] = ["simulation_ended", "simulation_result_evaluated"];
const HOUR_MS: i64 = 3_600_000;

impl Fixture {
    /// Returns a webhook with its id and key.
    async fn webhook(&self, body: Value) -> (Uuid, String) {
        let made =
            self.service.watching().create_webhook(&self.caller, spec::<WebhookSpec>(body)).await.expect("a webhook");
        (made.webhook.id, made.signing_key)
    }

    /// Delivers all that is due now, one after the other.
    async fn deliver(&self) -> usize {
        let mut count = 0;
        while let Some(outgoing) = self.service.queue().claim_event().await.expect("claims") {
            self.service.watching().deliver(outgoing).await.expect("settles");
            count += 1;
        }
        count
    }

    /// Moves the clock to when the next event can be claimed; false when there is none.
    async fn wait(&self) -> bool {
        let next = self.service.queue().next_event_ms().await.expect("answers");
        let now = self.clock.now_ms();
        next.iter().for_each(|at| self.clock.advance_ms((at - now).max(0)));
        next.is_some()
    }

    /// Returns the events of many results, `simulation_ended` of each.
    async fn many(&self, count: usize) -> Vec<i64> {
        let (_, simulation, _) = self.booth(json!({}), 1).await;
        let (_, results) = self.run(simulation, json!({ "runs_per_digital_human": count })).await;
        for id in &results {
            self.walk(*id, &TO_EVALUATION[..4]).await;
        }
        results
    }
}

fn keys(body: &Value) -> Vec<&str> {
    body.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_result_is_told_when_it_ends_and_when_it_is_evaluated() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    let (webhook, key) = f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    let (agent, simulation, humans) = f.booth(json!({}), 1).await;
    let (run, results) = f.run(simulation, json!({})).await;
    let id = results[0];
    f.walk(id, TO_EVALUATION).await;
    let calls = json!([{ "name": "book", "start_offset_ms": 5, "parameters": { "day": 1 }, "output": "ok" }]);
    let update = json!({ "simulation_result_id": id.to_string(), "tool_calls": calls, "tags": ["t"] });
    f.service.runs().update_result(&f.caller, spec(update)).await.expect("updated");
    f.judge(id, json!({ "goal_success": true })).await;
    // Asked for again, judged again, told again.
    f.judge(id, json!({ "goal_success": false })).await;
    assert_eq!(f.deliver().await, 3);
    let came = receiver.take();
    let what: Vec<(String, i64)> = came.iter().map(Came::what).collect();
    assert_eq!(what, [RESULTS[0], RESULTS[1], RESULTS[1]].map(|event| (event.to_owned(), id)));
    let mut ids = BTreeSet::new();
    for (request, (event, _)) in came.iter().zip(&what) {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook"));
        assert_eq!(request.header("content-type"), "application/json");
        assert_eq!(request.header("user-agent"), concat!("Ringer/", env!("CARGO_PKG_VERSION")));
        assert_eq!(request.header("x-svc-event"), event);
        assert!(request.is_signed_by(&key) && !request.is_signed_by("other"));
        assert!(ids.insert(request.header("x-svc-event-id").to_owned()));
        assert!(ids.insert(request.header("x-svc-delivery").to_owned()));
        assert!(Uuid::parse_str(request.header("x-svc-event-id")).is_ok());
    }
    let ended = came[0].body();
    let expect = "type id digital_human_id simulation_run_id status created_at start_time end_time duration";
    assert_eq!(keys(&ended), expect.split(' ').collect::<Vec<_>>());
    assert_eq!((&ended["status"], &ended["digital_human_id"]), (&json!("CONVERSATION_ENDED"), &json!(humans[0])));
    let evaluated = came[1].body();
    let expect = "type id digital_human_id status simulation_run_id simulation_id agent_id folder_id result custom_metrics \
                  evaluations created_at start_time end_time duration latency events tool_calls tags metadata outcome \
                  error_code seed engine_quality";
    assert_eq!(keys(&evaluated), expect.split(' ').collect::<Vec<_>>());
    for (name, expect) in [
        ("status", json!("COMPLETED")),
        ("simulation_run_id", json!(run)),
        ("simulation_id", json!(simulation)),
        ("agent_id", json!(agent)),
        ("folder_id", Value::Null),
        ("created_at", json!("2026-01-05T09:00:00.000000Z")),
        (
            "tool_calls",
            json!([{ "name": "book", "start_offset_ms": 5, "description": null, "parameters": { "day": 1 }, "output": "ok" }]),
        ),
        ("tags", json!(["t"])),
        ("outcome", json!("passed")),
    ] {
        assert_eq!(evaluated[name], expect, "{name}");
    }
    assert_eq!(came[2].body()["outcome"], "failed");
    let log = f.service.watching().webhook_deliveries(&f.caller, webhook, 1, 50).await.expect("the log");
    assert_eq!((log.total_count, log.total_pages), (3, 1));
    assert!(log.deliveries.iter().all(|attempt| attempt.status == Some(200) && attempt.attempt == 1));
    assert_eq!(f.service.watching().webhook(&f.caller, webhook).await.expect("it").last_status, Some(200));
}

#[tokio::test]
async fn only_what_is_wanted_is_told() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    let (agent, simulation, _) = f.booth(json!({}), 2).await;
    let folder = f.service.library().create_folder(&f.caller, spec(json!({ "name": "f" }))).await.expect("a folder").id;
    let stranger = f.stranger().await;
    let foreign = json!({ "url": receiver.url(), "event_types": RESULTS });
    f.service.watching().create_webhook(&stranger, spec(foreign)).await.expect("of another organization");
    let with = |path: &str, more: Value| {
        let mut body = json!({ "url": receiver.url() + path, "event_types": RESULTS });
        super::extend(&mut body, more);
        body
    };
    f.webhook(with("/agent", json!({ "agent_ids": [agent], "event_types": ["simulation_ended"] }))).await;
    f.webhook(with("/none", json!({ "agent_ids": [] }))).await;
    f.webhook(with("/folder", json!({ "folder_ids": [folder] }))).await;
    f.webhook(with("/off", json!({ "enabled": false }))).await;
    f.webhook(with("/calls", json!({ "event_types": ["observability_call_evaluated"], "tag": "t" }))).await;
    let (_, results) = f.run(simulation, json!({})).await;
    // Cancelled ones never are; one that never connected has no end of a conversation.
    f.walk(results[0], &[S::Cancelled]).await;
    f.walk(results[1], TO_EVALUATION).await;
    let into = json!({ "agent_id": agent, "folder_id": folder });
    f.service.library().move_agent(&f.caller, spec(into)).await.expect("moved");
    f.judge(results[1], json!({})).await;
    for tag in [None, Some("x"), Some("t")] {
        let mut db = f.service.store().org(&f.caller.organization).write().await.expect("a session");
        let log = map(json!({ "id": "c1", "status": "COMPLETED" }));
        f.service.outbox().tell_call(&mut db, agent, tag, log).await.expect("told");
        db.commit().await.expect("kept");
    }
    f.deliver().await;
    let came = receiver.take();
    let events: Vec<(&str, String)> = came.iter().map(|came| (&came.path[5..], came.what().0)).collect();
    assert_eq!(
        events,
        [
            ("/agent", RESULTS[0].to_owned()),
            ("/folder", RESULTS[1].to_owned()),
            ("/calls", "observability_call_evaluated".to_owned()),
        ]
    );
    assert_eq!(came[1].body()["folder_id"], json!(folder));
    assert_eq!(came[2].body(), json!({ "type": "observability_call_evaluated", "id": "c1", "status": "COMPLETED" }));
}

#[tokio::test]
async fn one_that_never_connected_has_no_ended_conversation() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, results) = f.run(simulation, json!({})).await;
    f.walk(results[0], &[S::Queued, S::Dispatched, S::NoAnswer]).await;
    f.deliver().await;
    let came = receiver.take();
    assert_eq!(came.iter().map(Came::what).collect::<Vec<_>>(), [(RESULTS[1].to_owned(), results[0])]);
    assert_eq!(came[0].body()["status"], "NO_ANSWER");
}

#[tokio::test]
async fn an_awaited_agent_is_told_once_a_run() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    f.webhook(json!({ "url": receiver.url(), "event_types": ["outbound_simulation_started"] })).await;
    let agent = f.agent(json!({ "name": "a", "type": "OUTBOUND", "sip_uri": "sip:a@b" })).await;
    let simulation = f.simulation(json!({ "agent_id": agent.to_string() })).await;
    let human = f.human(json!({ "name": "Maria", "phone_number": "+15550001111" }), &[simulation]).await;
    let (run, results) = f.run(simulation, json!({ "runs_per_digital_human": 2 })).await;
    for id in &results {
        f.walk(*id, &[S::Queued, S::Ready]).await;
    }
    f.deliver().await;
    let came = receiver.take();
    assert_eq!(came.len(), 1);
    let uri = came[0].body()["digital_humans"][0]["sip_uri"].as_str().expect("an address").to_owned();
    assert!(uri.starts_with(&format!("sip:dh-{human}-")) && uri.ends_with("@192.0.2.10:5060"), "{uri}");
    assert_eq!(
        came[0].body(),
        json!({
            "type": "outbound_simulation_started", "agent_id": agent, "simulation_id": simulation, "simulation_run_id": run,
            "digital_humans": [{ "id": human, "name": "Maria", "phone_number": "+15550001111", "sip_uri": uri,
                "associated_simulation_result_ids": results }],
        })
    );
}

#[tokio::test]
async fn a_journey_is_awaited_on_the_number_of_its_step() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    f.webhook(json!({ "url": receiver.url(), "event_types": ["outbound_simulation_started"] })).await;
    let agent = f.agent(json!({ "name": "a", "type": "OUTBOUND", "sip_uri": "sip:a@b" })).await;
    let simulation = f.simulation(json!({ "agent_id": agent.to_string() })).await;
    let steps = json!([
        { "step": 1, "intent": "Ask.", "direction": "outbound", "phone_number": "+15550002222" },
        { "step": 2, "intent": "Ask again.", "direction": "outbound" },
    ]);
    f.human(json!({ "name": "Maria", "phone_number": "+15550001111", "journey_steps": steps }), &[simulation]).await;
    let (_, results) = f.run(simulation, json!({})).await;
    f.walk(results[0], &[S::Queued, S::Ready]).await;
    f.deliver().await;
    let came = receiver.take();
    assert_eq!(came[0].body()["digital_humans"][0]["phone_number"], "+15550002222");
}

#[tokio::test]
async fn who_is_awaited_in_writing_has_the_number_that_it_is_written_to() {
    let (phone, texts) = ("+15550001111", "+15550003333");
    let (sms, http) = (json!({ "phone_number": "+15550002222" }), json!({ "http_webhook": "http://127.0.0.1:9/hook" }));
    for (agent, human, expect) in [
        (&sms, json!({ "phone_number": phone, "outbound_text_number": texts }), texts),
        (&sms, json!({ "phone_number": phone }), phone),
        (&http, json!({ "phone_number": phone, "outbound_text_number": texts }), ""),
    ] {
        let f = Fixture::new().await;
        let (receiver, owner) = (Receiver::start().await, api::receiver::Receiver::new(&[]).await);
        f.webhook(json!({ "url": receiver.url(), "event_types": ["outbound_simulation_started"] })).await;
        let mut body =
            json!({ "mode": "TEXT", "connection_type": null, "outbound_trigger_webhook_url": owner.url("/go") });
        extend(&mut body, agent.clone());
        let (simulation, _) = f.callers(body, json!({}), &[human]).await;
        let (_, results) = f.run(simulation, json!({})).await;
        f.walk(results[0], &[S::Queued, S::Ready]).await;
        f.deliver().await;
        let found = receiver.take()[0].body()["digital_humans"][0].clone();
        assert_eq!((&found["phone_number"], &found["sip_uri"]), (&json!(expect), &json!("")), "{agent}");
        f.work_off().await;
        let asked = json!({ "phone_number": expect, "sip_uri": "", "sim_conversation_id": results[0].to_string() });
        assert_eq!(owner.requests()[0].json(), asked);
    }
}

#[tokio::test]
async fn a_receiver_that_is_down_for_an_hour_gets_everything_in_order() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    let (webhook, key) = f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    receiver.answers(503);
    let results = f.many(12).await;
    let down_until = f.clock.now_ms() + HOUR_MS;
    let mut failed = Vec::new();
    while f.clock.now_ms() < down_until {
        f.deliver().await;
        failed.extend(receiver.take());
        if failed.len() == 12 {
            // While the first is still being retried, the second is there too.
            for id in &results {
                f.walk(*id, &[S::Evaluating]).await;
                f.judge(*id, json!({})).await;
            }
        }
        assert!(f.wait().await);
    }
    assert!(failed.iter().all(|came| came.what().0 == RESULTS[0]), "the second never overtakes");
    receiver.answers(204);
    let mut came = Vec::new();
    while f.wait().await {
        f.deliver().await;
        came.extend(receiver.take());
    }
    let mut by_result: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    came.iter().map(Came::what).for_each(|(event, id)| by_result.entry(id).or_default().push(event));
    assert_eq!(by_result.keys().copied().collect::<Vec<_>>(), results);
    assert!(by_result.values().all(|events| *events == RESULTS), "{by_result:?}");
    // Every attempt at an event has its id and its bytes, and an id of its own.
    let mut events: BTreeMap<&str, &Came> = BTreeMap::new();
    let mut attempts = BTreeSet::new();
    for request in failed.iter().chain(&came) {
        assert!(request.is_signed_by(&key));
        assert!(attempts.insert(request.header("x-svc-delivery")));
        let first = *events.entry(request.header("x-svc-event-id")).or_insert(request);
        assert_eq!(first.bytes, request.bytes);
    }
    assert_eq!(events.len(), 24);
    let read = f.service.watching().webhook(&f.caller, webhook).await.expect("it");
    assert_eq!((read.spec.enabled, read.last_status, read.consecutive_failures), (true, Some(204), 0));
    let log = f.service.watching().webhook_deliveries(&f.caller, webhook, 1, 1000).await.expect("the log");
    assert_eq!(log.total_count as usize, failed.len() + came.len());
    println!("12 results, an hour down: {} attempts failed, {} delivered", failed.len(), came.len());
    f.clock.advance_ms(7 * 24 * HOUR_MS);
    assert_eq!(
        f.service.watching().webhook_deliveries(&f.caller, webhook, 1, 50).await.expect("the log").total_count,
        0
    );
}

#[tokio::test]
async fn retries_wait_longer_each_time_and_end() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    let (webhook, _) = f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    receiver.answers(404);
    f.many(1).await;
    let mut at = vec![f.clock.now_ms()];
    while f.deliver().await > 0 && f.wait().await {
        at.push(f.clock.now_ms());
    }
    assert_eq!(receiver.take().len(), 7);
    for (pair, seconds) in at.windows(2).zip([5, 30, 120, 600, 3600, 21_600]) {
        let waited = pair[1] - pair[0];
        assert!((seconds * 800..=seconds * 1200).contains(&waited), "{waited} ms after {seconds} s");
    }
    let read = f.service.watching().webhook(&f.caller, webhook).await.expect("it");
    assert_eq!((read.spec.enabled, read.last_status, read.consecutive_failures), (true, Some(404), 1));
    // One that comes through makes it whole again.
    receiver.answers(200);
    f.many(1).await;
    assert_eq!(f.deliver().await, 1);
    assert_eq!(f.service.watching().webhook(&f.caller, webhook).await.expect("it").consecutive_failures, 0);
}

#[tokio::test]
async fn fifty_failures_in_a_row_disable_a_webhook() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    let (webhook, _) = f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    receiver.answers(500);
    f.many(51).await;
    let enabled = || async { f.service.watching().webhook(&f.caller, webhook).await.expect("it").spec.enabled };
    while f.deliver().await > 0 && f.wait().await {}
    assert!(!enabled().await);
    assert_eq!(receiver.take().len(), 50 * 7 + 6, "the last attempt at the last event is not made");
    let log = f.service.watching().webhook_deliveries(&f.caller, webhook, 1, 1).await.expect("the log");
    let newest = &log.deliveries[0];
    assert_eq!(newest.error.as_deref(), Some("50 events in a row failed"));
    assert_eq!((newest.event.as_str(), newest.status), ("webhook_disabled", Some(500)));
    f.many(1).await;
    assert_eq!(f.deliver().await, 0, "nothing is sent");
    // Enabled again: what waited is sent, what happened meanwhile was not kept.
    let patch = map(json!({ "enabled": true }));
    let read = f.service.watching().update_webhook(&f.caller, webhook, patch).await.expect("updated");
    assert_eq!(read.consecutive_failures, 0);
    receiver.answers(200);
    assert!(f.wait().await);
    assert_eq!(f.deliver().await, 1);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_not_asked_again() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    let (webhook, _) = f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    receiver.answers(410);
    f.many(2).await;
    assert_eq!(f.deliver().await, 1);
    assert!(!f.wait().await);
    let read = f.service.watching().webhook(&f.caller, webhook).await.expect("it");
    assert_eq!((read.spec.enabled, read.last_status), (false, Some(410)));
}

#[tokio::test]
async fn eight_deliveries_of_a_webhook_are_out_at_the_same_time() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    for _ in 0..2 {
        f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    }
    f.many(20).await;
    let queue = f.service.queue();
    let mut out = Vec::new();
    while let Some(outgoing) = queue.claim_event().await.expect("claims") {
        out.push(outgoing);
    }
    let mut webhooks: BTreeMap<Uuid, usize> = BTreeMap::new();
    out.iter().for_each(|outgoing| *webhooks.entry(outgoing.webhook_id).or_default() += 1);
    assert_eq!(webhooks.into_values().collect::<Vec<_>>(), [8, 8]);
    assert_eq!(out[0].event_id, out[1].event_id, "an event is the same for both");
    let last = out.pop().expect("sixteen");
    let of = last.webhook_id;
    f.service.watching().deliver(last).await.expect("settles");
    assert_eq!(queue.claim_event().await.expect("claims").map(|next| next.webhook_id), Some(of));
    assert_eq!(queue.claim_event().await, Ok(None));
}

#[tokio::test]
async fn what_was_on_its_way_when_the_engine_stopped_is_told_after_the_restart() {
    let mut f = Fixture::new().await;
    let receiver = Receiver::start().await;
    f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    let results = f.many(3).await;
    let lost = f.service.queue().claim_event().await.expect("claims").expect("one");
    f.reopen().await;
    f.service.runs().recover().await.expect("recovers");
    assert_eq!(f.deliver().await, 3);
    let came = receiver.take();
    assert_eq!(came.iter().map(|came| came.what().1).collect::<Vec<_>>(), results);
    assert_eq!(came[0].header("x-svc-event-id"), lost.event_id.to_string());
    // A worker that comes late with an old lease changes nothing.
    f.service.watching().deliver(lost).await.expect("settles");
    assert_eq!(f.service.queue().next_event_ms().await, Ok(None));
}

#[tokio::test]
async fn a_crash_of_another_process_is_mended_by_the_end_of_its_lease() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    f.many(1).await;
    f.service.queue().claim_event().await.expect("claims").expect("one");
    assert_eq!(f.deliver().await, 0);
    assert!(f.wait().await);
    assert_eq!(f.deliver().await, 1);
}

#[tokio::test]
async fn the_worker_tells_by_itself() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    let (tasks, stop) = (Tasks::new(), CancellationToken::new());
    tasks.spawn("deliveries", deliver::run(f.service.clone(), tasks.clone(), stop.clone()));
    let results = f.many(10).await;
    let mut ids = BTreeSet::new();
    while ids.len() < results.len() {
        ids.insert(receiver.next().await.what().1);
    }
    stop.cancel();
    tasks.stop().await;
    assert_eq!(f.service.queue().next_event_ms().await, Ok(None));
}

#[tokio::test]
async fn a_webhook_that_leads_inside_by_now_reaches_nothing() {
    let f = Fixture::new().await;
    let receiver = Receiver::start().await;
    let (webhook, _) = f.webhook(json!({ "url": receiver.url(), "event_types": RESULTS })).await;
    let closed = ringer::service::Settings { allow_private_targets: false, ..f.service.settings().clone() };
    let live = std::sync::Arc::new(ringer::service::NoLiveCalls);
    let strict = Service::new(f.service.store().clone(), f.clock.clone(), closed, live);
    let tested = strict.watching().test_webhook(&f.caller, webhook).await.expect("tried");
    assert_eq!((tested.delivered, tested.status), (false, None));
    assert_eq!(tested.message, "Not delivered: 127.0.0.1 points to an address that is not allowed");
    assert_eq!(receiver.take().len(), 0);
    assert_eq!(f.clock.now_ms(), START_MS);
}
