//! The usage limit, journeys that go on, and definitions that follow their platforms.

use ringer::model::error_code::ErrorCode;
use ringer::model::status::{Outcome, ResultStatus as S};
use ringer::model::time::Timestamp;
use ringer::queue::{AutosyncJob, CallJob};
use ringer::service::{Service, Settings};
use ringer_media::call::EndReason;
use serde_json::json;

use super::lifecycle::TO_EVALUATION;
use super::{Fixture, map, spec};

const MINUTE_MS: i64 = 60_000;

impl Fixture {
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
    let f = Fixture::new().await;
    let own = f.agent(json!({ "name": "own" })).await;
    let platform = f.agent(json!({ "name": "theirs", "provider": "P4", "P4_agent_id": "x" })).await;
    let sync = |agent_id, provider: &str| {
        let organization = f.caller.organization.clone();
        let job = AutosyncJob { organization, agent_id, provider: provider.to_owned(), asked_ms: 0 };
        let service = f.service.clone();
        async move { service.runs().autosync(&job).await.expect("done") }
    };
    assert_eq!(sync(999, "P4").await, "the agent is gone");
    assert_eq!(sync(platform, "X").await, "the platform is not known");
    assert_eq!(sync(platform, "P3").await, "the agent is of another platform");
    assert_eq!(sync(own, "CUSTOM").await, "the agent is its owner's own: there is nothing to follow");
    assert_eq!(sync(platform, "P4").await, "no credentials of the platform are set");
    f.service.library().update_integrations(&f.caller, map(json!({ "P4_api_key": "k" }))).await.expect("kept");
    assert_eq!(sync(platform, "P4").await, "no adapter of the platform is set up");
    let targets = spec(json!([{ "agent_id": platform, "provider": "P4" }, { "agent_id": own, "provider": "P3" }]));
    assert_eq!(f.service.runs().run_autosync(&f.caller, targets).await.expect("taken in").targets, 2);
    for agent in [platform, own] {
        let claimed = f.service.queue().claim(&["autosync"], 1000).await.expect("claims").expect("one each");
        assert_eq!(claimed.job::<AutosyncJob>().expect("a sync").agent_id, agent);
    }
}
