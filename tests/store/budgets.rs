//! Uses of language models and the budget of a day, over restarts and engines; judgements by organization in turn.

use ringer::model::result::QueueReason;
use ringer::provider::chat::Spending;
use ringer::queue::{EvaluateJob, Turns};
use ringer::service::{QueueStep, Service, Settings};
use serde_json::json;

use super::Fixture;
use super::lifecycle::TO_EVALUATION;

const DAY_MS: i64 = 24 * 3600 * 1000;
const SECTION: &str = "language_model";
/// 2 USD in billionths.
const NANO_USD: i64 = 2_000_000_000;

impl Fixture {
    /// Returns another engine on the same store, whose model has this budget.
    fn engine(&self, callers_usd_per_day: Option<f64>) -> Service {
        let settings = Settings { callers_usd_per_day, ..self.service.settings().clone() };
        Service::new(self.service.store().clone(), self.clock.clone(), settings, self.live.clone())
    }
}

#[tokio::test]
async fn the_cost_of_a_day_is_that_of_all_engines_and_outlives_them() {
    let mut f = Fixture::new().await;
    f.service = f.engine(Some(4.0));
    let (_, simulation, _) = f.booth(json!({ "max_concurrent": 5 }), 1).await;
    let (_, ids) = f.run(simulation, json!({ "runs_per_digital_human": 3 })).await;
    for engine in [f.engine(None), f.engine(None)] {
        engine.spending().charge(SECTION, NANO_USD);
        engine.spending().charge("language_models.other", 100 * NANO_USD);
        engine.spending().store_noted().await.expect("stored");
        assert_eq!(engine.spending().store_noted().await, Ok(()), "there is nothing more");
    }
    f.reopen().await;
    f.service = f.engine(Some(4.0));
    assert_eq!(f.service.spending().cost_today(SECTION).await, Some(2 * NANO_USD));
    let waits: Vec<_> = ids.iter().map(|id| (*id, QueueStep::Waits)).collect();
    assert_eq!(f.queue_steps().await, waits);
    let record = f.service.runs().result(&f.caller, ids[0]).await.expect("it");
    assert_eq!(record.queue_reason, Some(QueueReason::ModelBudget));
    let text = "the budget of [language_model] for today is used up: max_usd_per_day = 4, until 00:00 UTC";
    assert_eq!(record.queue_reason_text.as_deref(), Some(text));
    f.service.conversations().wake_within_budget().await.expect("looked");
    assert_eq!(f.queue_steps().await, [], "it is used up until the day ends");

    f.clock.advance_ms(DAY_MS);
    f.service.conversations().wake_within_budget().await.expect("looked");
    let dials: Vec<_> = ids.iter().map(|id| (*id, QueueStep::Dials)).collect();
    assert_eq!(f.queue_steps().await, dials);
}

/// The cost of this engine counts before it is stored, and a higher budget lets those go on that wait.
#[tokio::test]
async fn a_budget_is_checked_with_what_is_not_stored_yet() {
    let mut f = Fixture::new().await;
    f.service = f.engine(Some(2.0));
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.service.spending().charge(SECTION, NANO_USD);
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Waits)]);
    f.service.spending().store_noted().await.expect("stored");
    f.service = f.engine(Some(2.5));
    f.service.conversations().wake_within_budget().await.expect("looked");
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Dials)]);
}

/// A conversation that has begun goes on: its agent may call though the budget is used up by then.
#[tokio::test]
async fn whoever_is_awaited_already_is_not_held() {
    let mut f = Fixture::new().await;
    f.service = f.engine(Some(2.0));
    let humans = [1, 2].map(|n| json!({ "phone_number": format!("+1555000111{n}") }));
    let (simulation, _) = f.callers(json!({}), json!({ "sequential_calling": true }), &humans).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens), (ids[1], QueueStep::Waits)]);
    f.service.spending().charge(SECTION, NANO_USD);
    let leg = f.leg("+15550001111").await.expect("it");
    assert_eq!(f.answer(&leg).await, Some(ids[0]));
    f.walk(ids[0], &TO_EVALUATION[2..4]).await;
    assert_eq!(f.queue_steps().await, [(ids[1], QueueStep::Waits)]);
    let reason = f.service.runs().result(&f.caller, ids[1]).await.expect("it").queue_reason;
    assert_eq!(reason, Some(QueueReason::ModelBudget));
}

#[tokio::test]
async fn a_thousand_judgements_of_one_organization_keep_no_other_one_waiting() {
    let f = Fixture::new().await;
    let mut db = f.service.store().system().await.expect("a session");
    for result_id in 0..1000 {
        let organization = "many".to_owned();
        db.put(&EvaluateJob { organization, result_id, serial: 1 }, f.clock.now_ms(), None).await.expect("stored");
    }
    db.commit().await.expect("stored");
    let (queue, mut turns) = (f.service.queue(), Turns::default());
    let mut claim = async || {
        let claimed = queue.claim_in_turn(&["evaluate"], 60_000, &mut turns).await.expect("claims").expect("one waits");
        (claimed.job::<EvaluateJob>().expect("a job"), claimed)
    };
    let (first, held) = claim().await;
    let mut db = f.service.store().system().await.expect("a session");
    for result_id in [2001, 2002] {
        let organization = "few".to_owned();
        db.put(&EvaluateJob { organization, result_id, serial: 1 }, f.clock.now_ms(), None).await.expect("stored");
    }
    db.commit().await.expect("stored");
    let (second, other) = claim().await;
    assert_eq!((first.result_id, second.result_id), (0, 2001), "it has none under way");
    f.service.queue().finish_job(&held).await.expect("done");
    f.service.queue().finish_job(&other).await.expect("done");
    let mut order = Vec::new();
    for _ in 0..3 {
        let (job, claimed) = claim().await;
        order.push(job.result_id);
        f.service.queue().finish_job(&claimed).await.expect("done");
    }
    assert_eq!(order, [1, 2002, 2], "each in turn, and then whoever is left");
}
