//! The same key gives the same answer, once.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use ringer::provider::testing::{Reply, ScriptedModel};
use ringer::provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};
use ringer::store::idempotency::RequestKey;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::world::{Answer, World};

/// A model that answers once it is let: whoever asks it takes its time.
pub(crate) struct Slow {
    /// Signal that it was asked.
    pub asked: Notify,
    /// Lets the held request answer.
    pub let_go: Notify,
    model: ScriptedModel,
}

impl Slow {
    /// A request that asks it.
    pub(crate) const PATH: &str = "/v1/generate-trait-values";

    pub(crate) fn new() -> Arc<Slow> {
        let answer = json!({ "values": [[{ "name": "age", "value": 7 }]] }).to_string();
        let model = ScriptedModel::new(vec![Reply::says(&[&answer])]);
        Arc::new(Slow { asked: Notify::new(), let_go: Notify::new(), model })
    }

    /// Returns the body of a request to [`Slow::PATH`].
    pub(crate) fn body() -> Value {
        json!({ "scenarios": ["A visit."], "traits": [{ "name": "age", "data_type": "NUMBER" }] })
    }
}

impl LanguageModel for Slow {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.asked.notify_one();
            self.let_go.notified().await;
            self.model.chat(request, out).await
        })
    }

    fn name(&self) -> String {
        "slow".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

async fn post(world: &World, key: &str, path: &str, body: Value) -> Answer {
    let headers = [("idempotency-key".to_owned(), key.to_owned())];
    world.send("POST", path, &headers, body.to_string().into_bytes()).await
}

async fn agents(world: &World) -> usize {
    world.get("/v1/all-agents").await.as_array().expect("a list").len()
}

#[tokio::test]
async fn a_repeat_is_replayed_byte_for_byte() {
    let world = World::new().await;
    let first = post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    let again = post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.body, again.body);
    assert!(first.headers.get("idempotency-replayed").is_none());
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(agents(&world).await, 1);
}

#[tokio::test]
async fn another_body_or_path_or_organization_is_another_request() {
    let world = World::new().await;
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    let other = post(&world, "k1", "/v1/add-agent", json!({ "name": "b" })).await;
    assert_eq!(other.status, 409);
    assert_eq!(other.json(), json!({ "detail": "Idempotency-Key was already used with a different request body" }));
    assert_eq!(post(&world, "k1", "/v1/create-folder", json!({ "name": "a" })).await.status, 200);
    let headers = [("idempotency-key".to_owned(), "k1".to_owned()), ("x-api-key".to_owned(), "$foreign".to_owned())];
    let foreign = world.send("POST", "/v1/add-agent", &headers, br#"{"name":"a"}"#.to_vec()).await;
    assert_eq!(foreign.status, 200);
    assert!(foreign.headers.get("idempotency-replayed").is_none());
}

#[tokio::test]
async fn refusals_of_the_service_are_kept_but_not_those_of_the_schema() {
    let world = World::new().await;
    let refused = json!({ "agent_id": "77" });
    assert_eq!(post(&world, "k1", "/v1/create-simulation", refused.clone()).await.status, 404);
    let again = post(&world, "k1", "/v1/create-simulation", refused).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(post(&world, "k2", "/v1/add-agent", json!({})).await.status, 422);
    assert_eq!(post(&world, "k2", "/v1/add-agent", json!({ "name": "a" })).await.status, 200);
}

#[tokio::test]
async fn an_answer_is_kept_for_a_day() {
    let world = World::new().await;
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    world.service.clock().advance_ms(24 * 3_600_000 - 1);
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    assert_eq!(agents(&world).await, 1);
    world.service.clock().advance_ms(1);
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    assert_eq!(agents(&world).await, 2);
}

#[tokio::test]
async fn repeats_at_the_same_time_make_one_row() {
    let world = World::new().await;
    let send = || post(&world, "k1", "/v1/add-agent", json!({ "name": "a" }));
    let (one, two, three) = tokio::join!(send(), send(), send());
    assert_eq!((&one.body, &one.body), (&two.body, &three.body));
    assert_eq!(agents(&world).await, 1);
}

#[tokio::test]
async fn a_repeat_waits_half_a_minute_for_one_that_still_runs() {
    let slow = Slow::new();
    let world = World::with_model(slow.clone()).await;
    let clock = world.service.clock().clone();
    let send = || post(&world, "k1", Slow::PATH, Slow::body());
    let repeats = async {
        slow.asked.notified().await;
        let begun_ms = clock.now_ms();
        let (late, ()) = tokio::join!(send(), clock.advance_to_wait(30_000));
        assert_eq!((late.status, clock.now_ms() - begun_ms), (409, 30_000));
        assert_eq!(late.json(), json!({ "detail": "A request with this Idempotency-Key is still in progress" }));
        let let_go = async { slow.let_go.notify_one() };
        tokio::join!(send(), let_go).0
    };
    let (first, again) = tokio::join!(send(), repeats);
    assert_eq!((first.status, first.json()), (200, json!({ "0": [{ "name": "age", "value": 7 }] })));
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert!(first.headers.get("idempotency-replayed").is_none());
    assert_eq!(again.headers["idempotency-replayed"], "true");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_repeats_make_no_duplicate() {
    const KEYS: usize = 500;
    /// Repeats of each key after the first request, half of them at the same time as others.
    const REPEATS: usize = 20;
    let world = World::new().await;
    let send = |n: usize| {
        let world = &world;
        async move { (n, post(world, &format!("k{n}"), "/v1/add-agent", json!({ "name": format!("a{n}") })).await) }
    };
    let mut first: Vec<Option<Vec<u8>>> = vec![None; KEYS];
    let (mut replayed, mut done) = (0, 0);
    let mut see = |(n, answer): (usize, Answer)| {
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        assert_eq!(first[n].get_or_insert_with(|| answer.body.clone()), &answer.body, "key {n}");
        replayed += usize::from(answer.headers.contains_key("idempotency-replayed"));
        done += 1;
    };
    // Requests of one key come together: the first of them does the work, the others wait for it.
    let at_once = (0..KEYS).flat_map(|n| [n; 1 + REPEATS / 2]);
    let mut answers = stream::iter(at_once.map(send)).buffer_unordered(32);
    while let Some(answer) = answers.next().await {
        see(answer);
    }
    for n in (0..KEYS).flat_map(|n| [n; REPEATS / 2]) {
        see(send(n).await);
    }
    assert_eq!((done, replayed), (KEYS * (1 + REPEATS), KEYS * REPEATS));
    let all = world.get("/v1/all-agents").await;
    let names: Vec<&str> =
        all.as_array().expect("a list").iter().map(|agent| agent["name"].as_str().expect("a name")).collect();
    assert_eq!((names.len(), names.iter().collect::<BTreeSet<_>>().len()), (KEYS, KEYS));
}

#[tokio::test]
async fn every_answer_of_work_is_kept_in_its_transaction() {
    let world = World::with_rows().await;
    let webhook = json!({ "url": "http://127.0.0.1:9/hook", "event_types": ["simulation_ended"] });
    let call = json!({
        "agent_id": "$agent", "start_time_utc": "2026-01-05T08:00:00Z", "participants": [{"role": "AGENT"}, {"role": "USER"}],
        "transcript": [{"start_offset_ms": 0, "end_offset_ms": 9, "speaker": "AGENT", "utterance": "Hi."}],
    });
    let agent: i64 = world.name("agent").parse().expect("a number");
    for (path, body) in [
        ("/v1/add-agent", json!({ "name": "a" })),
        ("/v1/update-agent", json!({ "agent_id": "$agent", "name": "b" })),
        ("/v1/create-folder", json!({ "name": "f" })),
        ("/v1/create-simulation", json!({ "agent_id": "$agent" })),
        (
            "/v1/create-digital-human",
            json!({ "digital_human": { "intent": "Book." }, "simulation_ids": ["$simulation"] }),
        ),
        ("/v1/create-custom-metric", json!({ "name": "m", "description": "d", "response_type": "yes_no" })),
        (
            "/v1/scenario",
            json!({ "name": "s", "definition": { "nodes": [{ "id": "s", "type": "start" }], "edges": [] } }),
        ),
        ("/v1/queue-simulation-run", json!({ "simulation_id": "$simulation" })),
        ("/v1/webhooks", webhook),
        ("/v1/api-keys", json!({ "scope": "read" })),
        ("/v1/evaluate", call),
        ("/v1/create-customer-persona", json!({ "name": "p", "description": "d", "goal": "g" })),
        (
            "/v1/create-alert",
            json!({
                "name": "Slow", "entity_type": "standard_metric", "entity_field": "avg_agent_latency",
                "operator": "greater_than", "comparison_value": "2",
            }),
        ),
        ("/v1/agents/$agent/labels", json!({ "label_text": "night" })),
        ("/v1/agents/$agent/versions", json!({ "prompt_text": "p" })),
        ("/v1/generate-digital-humans", json!({ "agent_id": "$agent", "load_testing": 1 })),
        ("/v1/uptime/monitors", json!({ "agent_id": agent, "checks": [{ "checkType": "agent_responds" }] })),
    ] {
        let headers = [("idempotency-key".to_owned(), "once".to_owned())];
        let first = world.send("POST", path, &headers, body.to_string().into_bytes()).await;
        // The state that a process finds which starts after a kill right behind the work.
        let organization = world.name("organization");
        let route = format!("POST {}", world.fill_names(path));
        let request = RequestKey { organization, route: &route, key: "once" };
        world.service.store().abandon_request(request).await.expect("nothing is forgotten");
        world.service.store().abandon_running_requests().await.expect("nothing is forgotten");
        let again = world.send("POST", path, &headers, body.to_string().into_bytes()).await;
        assert_eq!(first.status, 200, "{path}: {}", String::from_utf8_lossy(&first.body));
        assert_eq!(again.headers.get("idempotency-replayed").map(|it| it.as_bytes()), Some(&b"true"[..]), "{path}");
        assert_eq!(first.body, again.body, "{path}");
    }
}

#[tokio::test]
async fn a_key_that_was_read_is_read_again_under_its_key() {
    let world = World::with_rows().await;
    let read = async || post(&world, "k1", "/v1/get-signing-key", json!({ "webhook_id": "$webhook" })).await;
    let first = read().await;
    world.post("/v1/generate-signing-key", json!({ "webhook_id": "$webhook" })).await;
    let again = read().await;
    assert_eq!((first.status, &first.body), (200, &again.body), "the answer of then");
    assert_eq!(again.headers["idempotency-replayed"], "true");
}
