//! The usage limit, journeys that go on, and definitions that follow their platforms.

use std::collections::BTreeMap;

use ringer::config::AdapterTable;
use ringer::model::error_code::ErrorCode;
use ringer::model::status::{Outcome, ResultStatus as S};
use ringer::model::time::Timestamp;
use ringer::queue::{AutosyncJob, CallJob};
use ringer::service::{Service, Settings, Synced, adapters, definitions};
use ringer_media::call::EndReason;
use serde_json::json;

use super::lifecycle::TO_EVALUATION;
use super::{Fixture, map, spec};

const MINUTE_MS: i64 = 60_000;

impl Fixture {
    /// Replaces the service by one whose adapter of P4 brings a way to read definitions.
    fn follow_p4(&mut self) {
        let table = json!({ "preset": "ultravox" });
        let tables = BTreeMap::from([("P4".to_owned(), AdapterTable(map(table)))]);
        let adapters = adapters(&tables).expect("the settings are good");
        let definitions = definitions(&BTreeMap::new(), &adapters).expect("they are good").into();
        let settings = Settings { definitions, ..Settings::new(self.folder.path()) };
        let store = self.service.store().clone();
        self.service = Service::new(store, self.clock.clone(), settings, self.live.clone());
    }

    /// Replaces the service by one with a limit of minutes.
    fn limit(&mut self, minutes: f64) {
        let settings = Settings { usage_minutes_per_month: Some(minutes), ..self.service.settings().clone() };
        let store = self.service.store().clone();
        self.service = Service::new(store, self.clock.clone(), settings, self.live.clone());
    }

    /// Walks a result through a conversation of some minutes.
    async fn talk(&self, id: i64, minutes: f64) {
        self.walk(id, &TO_EVALUATION[..3]).await;
        let ms = (minutes * MINUTE_MS as f64) as i64;
        self.clock.advance_ms(ms);
        let end = |doc: &mut ringer::model::result::ResultDoc| doc.body.duration_ms = Some(ms);
        let ended =
            self.service.conversations().advance(&self.caller.organization, id, S::Running, S::ConversationEnded, end);
        ended.await.expect("ended");
    }
}

#[tokio::test]
async fn used_minutes_are_counted_and_the_limit_ends_new_results() {
    let mut f = Fixture::new().await;
    f.limit(10.0);
    let (agent, simulation, _) = f.booth(json!({}), 1).await;
    let (_, results) = f.run(simulation, json!({ "runs_per_digital_human": 4 })).await;
    let spend = || async { f.service.conversations().spend_allowed(&f.caller, agent).await.expect("answers") };
    assert_eq!(
        serde_json::to_value(spend().await).expect("serializes"),
        json!({ "allowed": true, "reason": null, "limit_minutes": 10.0, "used_minutes": 0.0 })
    );
    f.talk(results[0], 4.5).await;
    assert_eq!((spend().await.allowed, spend().await.used_minutes), (true, 4.5));
    f.talk(results[1], 5.5).await;
    assert_eq!(
        serde_json::to_value(spend().await).expect("serializes"),
        json!({ "allowed": false, "reason": "Workspace usage limit reached", "limit_minutes": 10.0, "used_minutes": 10.0 })
    );
    f.service.conversations().admit().await.expect("looked at");
    for id in &results[2..] {
        let body = f.service.runs().result(&f.caller, *id).await.expect("it").body;
        assert_eq!((body.status, body.error_code), (S::OutOfFunds, Some(ErrorCode::InsufficientBalance)));
        assert_eq!(body.error_message.as_deref(), Some("Workspace usage limit reached"));
    }
    let queue = f.service.queue();
    let mut left = Vec::new();
    while let Some(claimed) = queue.claim(&["call"], 1000).await.expect("claims") {
        left.push(claimed.job::<CallJob>().expect("a call").result_id);
    }
    assert_eq!(left, results[..2], "the calls that are not made are taken back");
    // A deleted result was used all the same; the next month begins anew.
    f.walk(results[0], &[S::Evaluating]).await;
    f.judge(results[0], json!({})).await;
    f.service.runs().delete_result(&f.caller, results[0]).await.expect("deleted");
    assert_eq!(spend().await.used_minutes, 10.0);
    f.clock.advance_ms(27 * 24 * 60 * MINUTE_MS);
    assert_eq!((spend().await.allowed, spend().await.used_minutes), (true, 0.0));
}

#[tokio::test]
async fn no_limit_is_no_limit() {
    let f = Fixture::new().await;
    let (agent, simulation, _) = f.booth(json!({}), 1).await;
    let (_, results) = f.run(simulation, json!({})).await;
    f.talk(results[0], 100_000.0 / 60.0).await;
    let spend = f.service.conversations().spend_allowed(&f.caller, agent).await.expect("answers");
    assert_eq!((spend.allowed, spend.limit_minutes, spend.reason), (true, None, None));
}

#[tokio::test]
async fn running_conversations_end_when_nothing_is_left() {
    let mut f = Fixture::new().await;
    f.limit(10.0);
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, results) = f.run(simulation, json!({ "runs_per_digital_human": 2 })).await;
    for id in &results {
        f.walk(*id, &TO_EVALUATION[..2]).await;
        let now = f.clock.now_ms();
        let start = |doc: &mut ringer::model::result::ResultDoc| doc.body.start_time = Some(Timestamp(now));
        let running = f.service.conversations().advance(&f.caller.organization, *id, S::Dispatched, S::Running, start);
        running.await.expect("running");
        f.live.calls.lock().push(*id);
    }
    f.clock.advance_ms(4 * MINUTE_MS);
    assert_eq!(f.service.conversations().end_unpaid_calls().await, Ok(0));
    f.clock.advance_ms(MINUTE_MS);
    assert_eq!(f.service.conversations().end_unpaid_calls().await, Ok(2));
    let asked = f.live.asked.lock().clone();
    assert_eq!(asked, [(results[0], EndReason::UsageLimit), (results[1], EndReason::UsageLimit)]);
    let id = results[0];
    f.walk(id, &[S::ConversationEnded, S::Evaluating]).await;
    let body = f.judge(id, json!({ "goal_success": true })).await.body;
    assert_eq!((body.status, body.outcome), (S::OutOfFunds, Some(Outcome::NotEvaluated)));
    assert_eq!(body.error_code, Some(ErrorCode::InsufficientBalance));
}

#[tokio::test]
async fn a_lost_journey_step_is_found_by_the_sweep() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    let steps = json!([{ "step": 1, "intent": "ask" }, { "step": 2, "intent": "book", "wait_seconds": 5 }]);
    f.human(json!({ "name": "Maria", "journey_steps": steps }), &[simulation]).await;
    let (_, results) = f.run(simulation, json!({})).await;
    assert_eq!(f.service.runs().sweep_journeys().await, Ok(0), "the first is not over");
    f.walk(results[0], &[S::Queued, S::Dispatched, S::NoAnswer]).await;
    let job = CallJob { organization: f.caller.organization.clone(), result_id: results[1], attempt: 1 };
    let mut db = f.service.store().org(&f.caller.organization).write().await.expect("a session");
    db.withdraw(&job).await.expect("lost");
    db.commit().await.expect("lost");
    assert_eq!(f.service.runs().sweep_journeys().await, Ok(1));
    assert_eq!(f.service.runs().sweep_journeys().await, Ok(0), "once is enough");
    let queue = f.service.queue();
    queue.claim(&["call"], 1000).await.expect("claims").expect("the first");
    assert_eq!(queue.claim(&["call"], 1000).await, Ok(None), "it waits as its step says");
    f.clock.advance_ms(5000);
    let claimed = queue.claim(&["call"], 100_000).await.expect("claims");
    let mut found = vec![claimed.expect("one").job::<CallJob>().expect("a call").result_id];
    found.extend(
        queue
            .claim(&["call"], 100_000)
            .await
            .expect("claims")
            .map(|more| more.job::<CallJob>().expect("a call").result_id),
    );
    assert!(found.contains(&results[1]), "{found:?}");
}

#[tokio::test]
async fn a_sync_says_what_it_lacks() {
    let mut f = Fixture::new().await;
    let own = f.agent(json!({ "name": "own" })).await;
    let platform = f.agent(json!({ "name": "theirs", "provider": "P4", "P4_agent_id": "x" })).await;
    let sync = async |f: &Fixture, agent_id, provider: &str| {
        let (organization, provider) = (f.caller.organization.clone(), provider.to_owned());
        let job = AutosyncJob { organization, agent_id, provider, asked_ms: 0, request: 1 };
        match f.service.placements().sync_definition(&job).await.expect("done") {
            Synced::Skipped(reason) => reason,
            other => panic!("nothing can be read: {other:?}"),
        }
    };
    assert_eq!(sync(&f, 999, "P4").await, "Agent not found");
    assert_eq!(sync(&f, platform, "X").await, "Unknown provider 'X'");
    let kept_here = "The definition of an agent of provider CUSTOM is kept here";
    assert_eq!(sync(&f, own, "CUSTOM").await, kept_here);
    let unset = "Neither [autosync.P4] nor [adapters.P4] is set up";
    assert_eq!(sync(&f, platform, "P4").await, unset);
    f.follow_p4();
    assert_eq!(sync(&f, own, "P4").await, "P4_agent_id is not set");
    assert_eq!(sync(&f, platform, "P3").await, "Neither [autosync.P3] nor [adapters.P3] is set up");
    assert_eq!(sync(&f, platform, "P4").await, "P4_api_key is not set");
    f.service.library().update_integrations(&f.caller, map(json!({ "P4_api_key": "k" }))).await.expect("kept");
    let targets = [(platform, "P4"), (own, "P3"), (platform, "P4"), (own, "P4"), (999, "P4"), (platform, "X")];
    let targets = targets.map(|(agent_id, provider)| json!({ "agent_id": agent_id, "provider": provider }));
    let taken = f.service.runs().run_autosync(&f.caller, spec(json!(targets))).await.expect("taken in");
    assert_eq!(taken.targets, 1);
    let skipped: Vec<_> = taken.skipped.iter().map(|skip| (skip.agent_id, skip.reason.as_str())).collect();
    let expect = [
        (own, "Neither [autosync.P3] nor [adapters.P3] is set up"),
        (platform, "The same target stands before it"),
        (own, "P4_agent_id is not set"),
        (999, "Agent not found"),
        (platform, "Unknown provider 'X'"),
    ];
    assert_eq!(skipped, expect);
    let claimed = f.service.queue().claim(&["autosync"], 1000).await.expect("claims").expect("one");
    assert_eq!(claimed.job::<AutosyncJob>().expect("a sync").agent_id, platform);
    assert_eq!(f.service.queue().claim(&["autosync"], 1000).await.expect("claims"), None);
}

/// A job that an earlier release stored has no number of its request.
#[test]
fn a_sync_of_an_earlier_release_is_its_first_request() {
    let stored = json!({ "organization": "o", "agent_id": 7, "provider": "P4", "asked_ms": 5 });
    assert_eq!(serde_json::from_value::<AutosyncJob>(stored).expect("it is read").request, 1);
}
