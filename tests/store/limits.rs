//! Limits of an organization: conversations at the same time, telephone numbers, and how long things are kept.

use ringer::config::{OrganizationLimits, Retention};
use ringer::error::Error;
use ringer::model::organization::WorkspaceLimits;
use ringer::model::result::QueueReason;
use ringer::model::status::ResultStatus as S;
use ringer::service::{QueueStep, Service, Settings};
use serde_json::json;

use super::lifecycle::TO_EVALUATION;
use super::{Fixture, spec};

const DAY_MS: i64 = 24 * 3600 * 1000;

impl Fixture {
    /// Stores limits of the fixture's organization, in place of those before.
    async fn store_limits(&self, limits: WorkspaceLimits) {
        let stored = self.service.conversations().set_organization_limits(&self.caller.organization, limits).await;
        assert_eq!(stored.expect("it is there").stored, limits);
    }

    /// Moves results from QUEUED to DISPATCHED.
    async fn dispatch(&self, results: &[i64]) {
        for id in results {
            self.walk(*id, &[S::Dispatched]).await;
        }
    }
}

fn at_once(calls: u32) -> WorkspaceLimits {
    WorkspaceLimits { calls_at_once: Some(calls), ..WorkspaceLimits::default() }
}

/// Two places for five results: the third waits and says why, an end lets the next one go on, a higher limit all.
#[tokio::test]
async fn an_organization_holds_as_many_conversations_as_its_limit_says() {
    let f = Fixture::new().await;
    f.store_limits(at_once(2)).await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, ids) = f.run(simulation, json!({ "runs_per_digital_human": 5 })).await;
    f.service.conversations().admit().await.expect("admitted");
    for id in &ids[..2] {
        assert_eq!(f.service.conversations().take_queue_step(&f.caller.organization, *id).await, Ok(QueueStep::Dials));
        f.dispatch(&[*id]).await;
    }
    let later = f.queue_steps().await;
    let waiting: Vec<_> = ids[2..].iter().map(|id| (*id, QueueStep::Waits)).collect();
    assert_eq!(later[2..], waiting, "{later:?}");
    let reason = f.service.runs().result(&f.caller, ids[2]).await.expect("it").queue_reason;
    assert_eq!(reason, Some(QueueReason::WorkspaceLimit));
    assert_eq!(f.queue_steps().await, [], "nobody asks again before there is a place");
    f.walk(ids[0], &TO_EVALUATION[2..4]).await;
    assert_eq!(f.queue_steps().await, [(ids[2], QueueStep::Dials)]);
    f.dispatch(&[ids[2]]).await;
    f.store_limits(at_once(10)).await;
    assert_eq!(f.queue_steps().await, [(ids[3], QueueStep::Dials), (ids[4], QueueStep::Dials)]);
}

/// Results that have waited for a place come back into the lane of their run.
#[tokio::test]
async fn a_run_keeps_its_own_limit_behind_that_of_its_organization() {
    let f = Fixture::new().await;
    f.store_limits(at_once(0)).await;
    let (_, simulation, _) = f.booth(json!({ "max_concurrent": 1 }), 1).await;
    let (_, ids) = f.run(simulation, json!({ "runs_per_digital_human": 3 })).await;
    let waits: Vec<_> = ids.iter().map(|id| (*id, QueueStep::Waits)).collect();
    assert_eq!(f.queue_steps().await, waits);
    f.store_limits(WorkspaceLimits::default()).await;
    let queue = f.service.queue();
    let first = queue.claim(&["call"], 1000).await.expect("claims").expect("the first");
    assert_eq!(queue.claim(&["call"], 1000).await, Ok(None), "one at once");
    queue.finish_job(&first).await.expect("done");
    assert!(queue.claim(&["call"], 1000).await.expect("claims").is_some(), "the next one");
}

/// A limit that another engine, or a new settings file, has lifted.
#[tokio::test]
async fn who_waits_for_a_place_is_found_by_the_look_for_waiting_results() {
    let f = Fixture::new().await;
    f.store_limits(at_once(0)).await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Waits)]);
    f.service.conversations().wake_waiting().await.expect("looked");
    assert_eq!(f.queue_steps().await, [], "there is no place yet");
    let mut db = f.service.store().org(&f.caller.organization).write().await.expect("a session");
    db.store_limits(&WorkspaceLimits::default()).await.expect("stored");
    db.commit().await.expect("stored");
    f.service.conversations().wake_waiting().await.expect("looked");
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Dials)]);
}

/// An agent is awaited once there is a place for its call, which is then never refused for the limit.
#[tokio::test]
async fn agents_that_call_are_awaited_as_there_are_places() {
    let f = Fixture::new().await;
    f.store_limits(at_once(1)).await;
    let humans = [1, 2].map(|n| json!({ "phone_number": format!("+1555000111{n}") }));
    let (simulation, _) = f.callers(json!({}), json!({}), &humans).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens), (ids[1], QueueStep::Waits)]);
    let first = f.leg("+15550001111").await.expect("it");
    assert_eq!((f.answer(&first).await, f.leg("+15550001112").await.is_none()), (Some(ids[0]), true));
    f.walk(ids[0], &TO_EVALUATION[2..4]).await;
    assert_eq!(f.queue_steps().await, [(ids[1], QueueStep::Listens)]);
    let second = f.leg("+15550001112").await.expect("it");
    assert_eq!(f.answer(&second).await, Some(ids[1]));
}

#[tokio::test]
async fn numbers_minutes_and_the_file_that_wins() {
    let mut f = Fixture::new().await;
    let limits = WorkspaceLimits {
        phone_numbers: Some(1),
        usage_minutes_per_month: Some(5.0),
        upload_mb: Some(7),
        ..WorkspaceLimits::default()
    };
    f.store_limits(limits).await;
    let add = |number: &str| spec(json!({ "phone_number": number }));
    f.service.library().add_phone_number(&f.caller, add("+15550001111")).await.expect("the first");
    let second = f.service.library().add_phone_number(&f.caller, add("+15550001112")).await;
    assert_eq!(second, Err(Error::Conflict("The workspace's limit of 1 phone numbers is reached".into())));
    let (agent, ..) = f.booth(json!({}), 1).await;
    let spend = f.service.conversations().spend_allowed(&f.caller, agent).await.expect("answers");
    assert_eq!(spend.limit_minutes, Some(5.0));
    let file = OrganizationLimits { usage_minutes_per_month: Some(0.0), ..OrganizationLimits::default() };
    let sections = [(f.caller.organization.clone(), file)].into();
    let settings = Settings { organization_limits: std::sync::Arc::new(sections), ..f.service.settings().clone() };
    f.service = Service::new(f.service.store().clone(), f.clock.clone(), settings, f.live.clone());
    let spend = f.service.conversations().spend_allowed(&f.caller, agent).await.expect("answers");
    assert_eq!((spend.allowed, spend.limit_minutes), (false, Some(0.0)));
    let shown = f.service.conversations().organization_limits(&f.caller, &f.caller.organization, false).await;
    let shown = shown.expect("its own");
    assert_eq!((shown.stored, shown.in_force.phone_numbers), (limits, Some(1)));
    assert_eq!(shown.in_force.usage_minutes_per_month, Some(0.0));
    let call = json!({ "agent_id": agent.to_string(), "start_time_utc": "2026-01-05T08:00:00Z",
        "transcript": [{ "start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Hello." }],
        "participants": [{ "role": "AGENT", "spoke_first": true, "name": "Desk" }, { "role": "USER" }] });
    if let Ok(call) = serde_json::from_value(call) {
        let refused = f.service.evaluations().evaluate_call(&f.caller, call).await;
        assert_eq!(refused.err(), Some(Error::Forbidden("Workspace usage limit reached".into())));
    } else {
        panic!("the body of a call does not fit");
    }
}

/// Results are kept as long as their organization's limit says, and not as long as those of others.
#[tokio::test]
async fn an_organization_has_a_retention_of_its_own() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.service.runs().hangup(&f.caller, ids[0]).await.expect("cancelled");
    f.clock.advance_ms(3 * DAY_MS);
    let keep = Retention { results_days: 1, ..Retention::default() };
    f.store_limits(WorkspaceLimits { results_days: Some(10), ..WorkspaceLimits::default() }).await;
    assert_eq!(f.service.runs().clear_old(&keep).await.expect("cleared").results, 0);
    f.store_limits(WorkspaceLimits { results_days: Some(2), ..WorkspaceLimits::default() }).await;
    assert_eq!(f.service.runs().clear_old(&Retention::default()).await.expect("cleared").results, 1);
}
