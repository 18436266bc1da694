//! Calls that never connected are tried again: times, number and order of the attempts.

use ringer::model::organization::WorkspaceLimits;
use ringer::model::result::ResultBody;
use ringer::model::status::{Outcome, ResultStatus as S, RunStatus};
use ringer::queue::CallJob;
use ringer::service::QueueStep;
use serde_json::{Value, json};

use super::texts::hello;
use super::{Fixture, extend};

fn again(more: Value) -> Value {
    let mut settings = json!({ "enable_rerun_failed_test_results": true });
    extend(&mut settings, more);
    settings
}

impl Fixture {
    /// Ends an attempt at a result that stands before its conversation.
    async fn fail(&self, id: i64, to: S, code: &str) -> ResultBody {
        let from = self.status(id).await;
        let ended = self
            .service
            .conversations()
            .advance(&self.caller.organization, id, from, to, |doc| doc.body.fail(code.into(), "as told"));
        ended.await.expect("an allowed step").doc.body
    }

    /// Returns the attempt of the one call job that is due; it is done then.
    async fn attempt_due(&self) -> Option<i64> {
        let queue = self.service.queue();
        let claimed = queue.claim(&["call"], 1000).await.expect("claims")?;
        let attempt = claimed.job::<CallJob>().expect("a call job").attempt;
        assert_eq!(queue.finish_job(&claimed).await, Ok(true));
        Some(attempt)
    }
}

#[tokio::test]
async fn what_was_not_connected_is_tried_again_as_often_as_it_may() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(again(json!({ "rerun_max_retries": 2 })), 1).await;
    let (run, ids) = f.run(simulation, json!({})).await;
    let status = async || f.service.runs().run_results(&f.caller, run).await.expect("the run").simulation_run.status;
    f.service.conversations().admit().await.expect("admitted");
    let attempts = [(S::NoAnswer, "NO_ANSWER"), (S::NoConnection, "SIP_DIAL_FAILED"), (S::NoAnswer, "CALL_REJECTED")];
    for ((end, code), attempt) in attempts.into_iter().zip(1..) {
        assert_eq!((f.attempt_due().await, f.attempt_due().await), (Some(attempt), None));
        f.walk(ids[0], &[S::Dispatched]).await;
        let body = f.fail(ids[0], end, code).await;
        let document = body.metadata.get("attempts").and_then(Value::as_array).map_or(0, Vec::len) as i64;
        if attempt == 3 {
            assert_eq!((body.status, body.attempt, document, body.outcome), (end, 3, 2, Some(Outcome::Failed)));
            assert_eq!((status().await, f.attempt_due().await), (RunStatus::Completed, None));
            break;
        }
        assert_eq!((body.status, body.attempt, document, body.outcome), (S::Queued, attempt + 1, attempt, None));
        assert_eq!((&body.error_code, &body.error_message, body.error_owner), (&None, &None, None));
        let last = &body.metadata["attempts"][attempt as usize - 1];
        assert_eq!(
            (&last["attempt"], &last["status"], &last["error_code"]),
            (&json!(attempt), &json!(end), &json!(code))
        );
        assert!(body.status_history.iter().all(|change| !change.status.is_terminal()), "it was never terminal");
        assert_eq!(status().await, RunStatus::Running);
    }
}

#[tokio::test]
async fn another_attempt_that_would_end_the_same_is_not_made() {
    let once = || again(json!({}));
    for (simulation, path, end, code, expect) in [
        (once(), &[S::Queued, S::Dispatched][..], S::NoAnswer, "NO_ANSWER", S::Queued),
        (once(), &[S::Queued, S::Ready], S::NoAnswer, "INBOUND_NO_INCOMING_CALL", S::Queued),
        (once(), &[S::Queued, S::Ready], S::NoConnection, "OUTBOUND_TRIGGER_FAILED", S::Queued),
        (once(), &[S::Queued, S::Ready, S::Dispatched], S::NoAnswer, "NO_ANSWER", S::Queued),
        (once(), &[S::Queued, S::Dispatched], S::NoConnection, "SIP_AUTH_FAILED", S::NoConnection),
        (once(), &[S::Queued, S::Dispatched], S::NoConnection, "SMS_NOT_CONFIGURED", S::NoConnection),
        (once(), &[S::Queued, S::Dispatched], S::NoConnection, "INVALID_SIP_DESTINATION", S::NoConnection),
        (once(), &[S::Queued, S::Dispatched], S::NoConnection, "INVALID_PHONE_NUMBER", S::NoConnection),
        (once(), &[S::Queued, S::Dispatched], S::NoConnection, "MISSING_P3_AGENT_ID", S::NoConnection),
        (once(), &[S::Queued], S::NoConnection, "NO_CONNECTION_TYPE", S::NoConnection),
        (once(), &[S::Queued, S::Dispatched, S::Running], S::NoAnswer, "AGENT_HUNG_UP_BEFORE_SPEECH", S::NoAnswer),
        (once(), &[S::Queued, S::Dispatched], S::SystemError, "ENGINE_SHUTDOWN", S::SystemError),
        (once(), &[S::Queued, S::Dispatched], S::Cancelled, "NO_ANSWER", S::Cancelled),
        (json!({}), &[S::Queued, S::Dispatched], S::NoAnswer, "NO_ANSWER", S::NoAnswer),
        (again(json!({ "rerun_max_retries": 0 })), &[S::Queued, S::Dispatched], S::NoAnswer, "NO_ANSWER", S::NoAnswer),
        (
            json!({ "enable_rerun_on_custom_error": true }),
            &[S::Queued, S::Ready],
            S::NoAnswer,
            "NO_ANSWER",
            S::NoAnswer,
        ),
    ] {
        let f = Fixture::new().await;
        let (_, simulation, _) = f.booth(simulation, 1).await;
        let (_, ids) = f.run(simulation, json!({})).await;
        f.walk(ids[0], path).await;
        let body = f.fail(ids[0], end, code).await;
        assert_eq!((body.status, body.attempt), (expect, 1 + i64::from(expect == S::Queued)), "{path:?} {code}");
        assert_eq!(body.metadata.contains_key("attempts"), expect == S::Queued, "{path:?} {code}");
    }
}

#[tokio::test]
async fn who_was_not_called_listens_again() {
    let f = Fixture::new().await;
    let phone = json!({ "phone_number": "+15550001111" });
    let settings = again(json!({ "ringing_timeout": 20 }));
    let (simulation, _) = f.callers(json!({}), settings, std::slice::from_ref(&phone)).await;
    let (other, _) = f.callers(json!({}), json!({}), &[phone]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    let (_, later) = f.run(other, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens), (later[0], QueueStep::Waits)]);
    f.clock.advance_ms(20_000);
    f.work_off().await;
    assert_eq!(f.error(ids[0]).await, (S::Queued, None, None));
    let mut steps = f.queue_steps().await;
    steps.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(steps, [(ids[0], QueueStep::Waits), (later[0], QueueStep::Listens)], "the number was free in between");
    f.service.runs().hangup(&f.caller, later[0]).await.expect("hung up");
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens)]);
    let leg = f.leg("+15550001111").await.expect("it listens");
    assert_eq!(f.answer(&leg).await, Some(ids[0]));
    let body = f.fail(ids[0], S::NoAnswer, "NO_ANSWER").await;
    assert_eq!((body.status, body.attempt), (S::NoAnswer, 2), "one more and no other");
}

#[tokio::test]
async fn a_sequential_run_goes_on_when_its_call_was_tried_again() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(again(json!({ "sequential_calling": true })), 2).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Dials), (ids[1], QueueStep::Waits)]);
    f.walk(ids[0], &[S::Dispatched]).await;
    f.fail(ids[0], S::NoAnswer, "NO_ANSWER").await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Dials)], "the order is kept");
    f.walk(ids[0], &[S::Dispatched]).await;
    f.fail(ids[0], S::NoAnswer, "NO_ANSWER").await;
    assert_eq!(f.queue_steps().await, [(ids[1], QueueStep::Dials)]);
}

#[tokio::test]
async fn a_call_to_who_is_always_on_is_the_agents_to_repeat() {
    let f = Fixture::new().await;
    let human = json!({ "phone_number": "+15550001111", "always_on_mode": true });
    f.callers(json!({}), again(json!({ "always_on": true })), &[human]).await;
    let leg = f.leg("+15550001111").await.expect("it listens");
    let id = f.answer(&leg).await.expect("it is taken");
    let body = f.fail(id, S::NoAnswer, "NO_ANSWER").await;
    assert_eq!((body.status, body.attempt), (S::NoAnswer, 1));
}

#[tokio::test]
async fn what_was_written_while_it_was_waited_for_is_read_by_the_next_attempt() {
    let f = Fixture::new().await;
    let simulation = f.writers(again(json!({}))).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.walk(ids[0], &[S::Queued, S::Ready]).await;
    f.service.runs().take_message(&f.caller, hello(ids[0])).await.expect("taken");
    let body = f.fail(ids[0], S::NoAnswer, "INBOUND_NO_INCOMING_CALL").await;
    assert_eq!((body.status, body.attempt), (S::Queued, 2));
    let news = f.service.runs().text_news(&f.caller.organization, ids[0], 0, 0).await.expect("the news");
    assert_eq!(news.messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["Hello."]);
    let queue = f.service.queue();
    let jobs = [queue.claim(&["text"], 1000).await, queue.claim(&["text"], 1000).await];
    assert!(jobs.iter().all(|claimed| matches!(claimed, Ok(Some(_)))), "the first and the next attempt");
}

/// The next one goes on at once where a result gives its place up for another attempt.
#[tokio::test]
async fn another_attempt_frees_its_place_among_those_of_its_organization() {
    let f = Fixture::new().await;
    let limits = WorkspaceLimits { calls_at_once: Some(1), ..WorkspaceLimits::default() };
    f.service.conversations().set_organization_limits(&f.caller.organization, limits).await.expect("it is there");
    let (_, simulation, _) = f.booth(again(json!({})), 1).await;
    let (_, ids) = f.run(simulation, json!({ "runs_per_digital_human": 2 })).await;
    f.service.conversations().admit().await.expect("admitted");
    assert_eq!(f.attempt_due().await, Some(1));
    f.walk(ids[0], &[S::Dispatched]).await;
    assert_eq!(f.queue_steps().await, [(ids[1], QueueStep::Waits)]);
    assert_eq!(f.fail(ids[0], S::NoAnswer, "NO_ANSWER").await.status, S::Queued);
    let next = f.queue_steps().await;
    assert!(next.contains(&(ids[1], QueueStep::Dials)), "{next:?}");
}
