//! Runs and results from queueing to the verdict.

use ringer::error::Error;
use ringer::model::error_code::ErrorCode;
use ringer::model::result::{ResultDoc, UpdateResultSpec};
use ringer::model::run::{QueueSpec, RunItem};
use ringer::model::status::{Outcome, ResultStatus as S, RunOutcome, RunStatus};
use ringer::model::transcript::Transcript;
use ringer::queue::{CallJob, EvaluateJob};
use ringer::service::{Judged, recording_link};
use ringer_media::call::EndReason;
use ringer_media::recording::{Layout, wav_header};
use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::{Fixture, map, refusal, spec};

pub(super) const TO_EVALUATION: &[S] = &[S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating];

impl Fixture {
    /// Walks a result along `path` from where it stands.
    pub(super) async fn walk(&self, id: i64, path: &[S]) {
        for to in path {
            self.clock.advance_ms(1000);
            let from = self.status(id).await;
            let walked = self.service.conversations().advance(&self.caller.organization, id, from, *to, |_| {}).await;
            walked.unwrap_or_else(|error| panic!("{} to {}: {error}", from.as_str(), to.as_str()));
        }
    }

    pub(super) async fn status(&self, id: i64) -> S {
        self.service.runs().result(&self.caller, id).await.expect("the result").body.status
    }

    pub(super) async fn judge(&self, id: i64, evaluation: Value) -> ResultDoc {
        let judged = Judged { evaluation: spec(evaluation), ..Judged::default() };
        self.service.evaluations().store_evaluation(&self.caller.organization, id, judged).await.expect("stored").doc
    }

    pub(super) async fn item(&self, simulation: i64) -> RunItem {
        self.service.runs().simulation_runs(&self.caller, simulation).await.expect("runs").remove(0)
    }
}

#[tokio::test]
async fn a_run_has_a_result_for_every_repetition_with_its_own_seed() {
    let f = Fixture::new().await;
    let (agent, simulation, humans) = f.booth(json!({"runs_per_digital_human": 2}), 1).await;
    let twice = f.human(json!({"num_runs": 2}), &[simulation]).await;
    let (run, results) = f.run(simulation, json!({})).await;
    assert_eq!(results.len(), 2 + 4);
    let read = f.service.runs().run_results(&f.caller, run).await.expect("the run");
    let body = &read.simulation_results[0].body;
    assert_eq!((body.status, body.status_history.len(), body.attempt), (S::Initializing, 1, 1));
    assert_eq!((body.agent_id, body.simulation_id, body.simulation_run_id), (agent, simulation, run));
    assert!(body.agent_version_id.is_some());
    let seeds: Vec<i64> = read.simulation_results.iter().map(|result| result.body.seed).collect();
    let mut expect = vec![];
    for (human, count) in [(humans[0], 2), (twice, 4)] {
        expect.extend((0..count).map(|n| Seed::of(&format!("7:{human}:{n}:")).0 as i64));
    }
    assert_eq!(seeds, expect);
    assert_eq!(serde_json::to_value(&read.simulation_run).expect("serializes")["id"], json!(run.to_string()));
    let item = f.item(simulation).await;
    assert_eq!((item.status, item.counters.total_tests, item.seed), (RunStatus::Running, 6, Some(7)));
}

#[tokio::test]
async fn what_cannot_be_queued_is_told() {
    let f = Fixture::new().await;
    let (_, simulation, humans) = f.booth(json!({}), 1).await;
    let (_, empty, _) = f.booth(json!({}), 0).await;
    let disabled = f.agent(json!({"name": "a", "simulations_disabled": true})).await;
    let disabled = f.simulation(json!({"agent_id": disabled.to_string()})).await;
    let mail = f.agent(json!({"name": "a", "mode": "EMAIL", "sip_uri": "sip:a@b"})).await;
    let mail = f.simulation(json!({"agent_id": mail.to_string()})).await;
    f.human(json!({}), &[mail]).await;
    let loose = f.human(json!({}), &[]).await;
    let a = "f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c33";
    let b = "b1a04e88-7c2f-4d23-9a5e-2f8c6d1b7a09";
    for (body, expect) in [
        (json!({"simulation_id": "x"}), "Simulation not found".to_owned()),
        (json!({"simulation_id": "999"}), "Simulation not found".into()),
        (json!({"simulation_id": disabled.to_string()}), "Simulations are disabled for this agent".into()),
        (json!({"simulation_id": empty.to_string()}), "Simulation has no digital humans".into()),
        (json!({"digital_human_ids": ["x"]}), "Digital human not found".into()),
        (
            json!({"digital_human_ids": [loose.to_string()]}),
            format!("Digital human {loose} is not part of simulation {simulation}"),
        ),
        (json!({"agent_version_id": a, "prompt_id": b}), "prompt_id and agent_version_id must be the same".into()),
        (json!({"agent_version_id": a}), "Agent version not found".into()),
        (json!({"phone_number": "1"}), "phone_number must be in E.164 format".into()),
        (json!({"sip_uri": "x"}), "sip_uri must be of the form sip:<user>@<host>".into()),
        (json!({"simulation_id": mail.to_string()}), "connection_type SIP needs mode VOICE".into()),
        (json!({"runs_per_digital_human": 10_001}), "Run would create 10001 results, the limit is 10000".into()),
        (json!({"digital_human_ids": [humans[0].to_string()]}), String::new()),
        (json!({"digital_human_ids": []}), String::new()),
    ] {
        let mut full = map(json!({"simulation_id": simulation.to_string()}));
        full.extend(map(body.clone()));
        let queued = f.service.runs().queue_simulation_run(&f.caller, spec::<QueueSpec>(full.into())).await;
        assert_eq!(refusal(queued), expect, "{body}");
    }
    assert_eq!(f.service.runs().simulation_runs(&f.caller, simulation).await.expect("runs").len(), 2);
}

#[tokio::test]
async fn a_result_moves_only_as_allowed() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, results) = f.run(simulation, json!({})).await;
    let id = results[0];
    let go = |from, to| f.service.conversations().advance(&f.caller.organization, id, from, to, |_| {});
    assert!(matches!(go(S::Queued, S::Dispatched).await, Err(Error::Conflict(_))), "it is not there");
    assert!(matches!(go(S::Initializing, S::Running).await, Err(Error::Conflict(_))), "not allowed");
    f.walk(id, TO_EVALUATION).await;
    let body = f.service.runs().result(&f.caller, id).await.expect("it").body;
    let history: Vec<S> = body.status_history.iter().map(|change| change.status).collect();
    assert_eq!(history, [&[S::Initializing], TO_EVALUATION].concat());
    let times: Vec<i64> = body.status_history.iter().map(|change| change.at.0).collect();
    assert!(times.is_sorted_by(|a, b| a < b));
    let queue = f.service.queue();
    let asked = queue.claim(&["evaluate"], 1000).await.expect("claims").expect("an evaluation is asked for");
    assert_eq!(asked.job::<EvaluateJob>().expect("it").result_id, id);
}

#[tokio::test]
async fn the_last_result_completes_the_run() {
    let f = Fixture::new().await;
    let (_, simulation, _) =
        f.booth(json!({"outcome_failing_threshold": 40, "outcome_passing_threshold": 60}), 4).await;
    let (run, ids) = f.run(simulation, json!({})).await;
    for (id, success) in [(ids[0], true), (ids[1], false)] {
        f.walk(id, TO_EVALUATION).await;
        f.judge(id, json!({"goal_success": success})).await;
    }
    f.walk(ids[2], &[S::Cancelled]).await;
    assert_eq!(f.item(simulation).await.status, RunStatus::Running);
    f.walk(ids[3], TO_EVALUATION).await;
    f.judge(ids[3], json!({})).await;
    let item = f.item(simulation).await;
    assert_eq!((item.status, item.outcome), (RunStatus::Completed, Some(RunOutcome::Warning)));
    assert_eq!(item.summary.as_deref(), Some("1 passed, 1 failed, 1 cancelled of 4"));
    let counters = item.counters;
    assert_eq!((counters.tests_completed, counters.tests_not_evaluated), (4, 1));
    assert!(item.completed_at.is_some());
    let read = f.service.runs().run_results(&f.caller, run).await.expect("the run");
    let outcomes: Vec<_> = read.simulation_results.iter().map(|result| result.body.outcome).collect();
    let expect = [Outcome::Passed, Outcome::Failed, Outcome::Cancelled, Outcome::NotEvaluated];
    assert_eq!(outcomes, expect.map(Some));
}

#[tokio::test]
async fn a_broken_conversation_ends_by_its_code() {
    for (code, expect) in [
        (None, S::Completed),
        (Some("MEDIA_TIMEOUT"), S::CallDropped),
        (Some("HTTP_WEBHOOK_FAILED"), S::CallDropped),
        (Some("INSUFFICIENT_BALANCE"), S::OutOfFunds),
        (Some("EVALUATION_TIMEOUT"), S::SystemError),
    ] {
        let f = Fixture::new().await;
        let (_, simulation, _) = f.booth(json!({}), 1).await;
        let (_, ids) = f.run(simulation, json!({})).await;
        f.walk(ids[0], TO_EVALUATION).await;
        let organization = &f.caller.organization;
        let fail = |doc: &mut ResultDoc| code.into_iter().for_each(|code| doc.body.fail(code.into(), "why"));
        f.service.conversations().amend(organization, ids[0], fail).await.expect("amended");
        assert_eq!(f.judge(ids[0], json!({"goal_success": true})).await.body.status, expect, "{code:?}");
    }
}

#[tokio::test]
async fn tool_calls_posted_late_are_judged_again() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    f.human(json!({"expected_tool_calls": [{"name": "book", "parameters": {"day": "Tue"}}]}), &[simulation]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.walk(ids[0], TO_EVALUATION).await;
    f.service
        .conversations()
        .amend(&f.caller.organization, ids[0], |doc| doc.note("codec", json!("PCMU")))
        .await
        .expect("amended");
    assert_eq!(f.judge(ids[0], json!({})).await.body.outcome, Some(Outcome::Failed));
    assert_eq!(f.item(simulation).await.counters.tests_failed, 1);
    let update = json!({
        "simulation_result_id": ids[0].to_string(), "tags": ["a", "b", "a"], "trace_ids": ["t"],
        "tool_calls": [{"name": "book", "start_offset_ms": 10, "parameters": {"day": "Tue", "n": 1}}],
        "events": [{"title": "e", "start_offset_ms": 1}], "metadata": {"codec": "mine", "k": 1},
    });
    let answer =
        f.service.runs().update_result(&f.caller, spec::<UpdateResultSpec>(update.clone())).await.expect("updated");
    assert_eq!(answer.message, "Simulation result updated");
    f.service.runs().update_result(&f.caller, spec::<UpdateResultSpec>(update)).await.expect("updated");
    let body = f.service.runs().result(&f.caller, ids[0]).await.expect("it").body;
    assert_eq!((body.tags.len(), body.trace_ids.len(), body.events.len()), (2, 1, 2));
    assert_eq!(Value::Object(body.metadata), json!({"codec": "mine", "engine.codec": "PCMU", "k": 1}));
    assert_eq!((body.tool_calls.len(), body.tool_calls[0].actual.len()), (1, 1));
    assert_eq!(body.outcome, Some(Outcome::Passed));
    let item = f.item(simulation).await;
    assert_eq!(item.summary.as_deref(), Some("1 passed, 0 failed, 0 cancelled of 1"));
}

#[tokio::test]
async fn words_that_the_agent_recorded_are_compared_whenever_they_come() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    let id = ids[0];
    let rate = async || f.service.runs().result(&f.caller, id).await.expect("it").body.metric("predicted_wer").cloned();
    let post = async |line: &str| {
        let entry = json!({"start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": line});
        let update = json!({"simulation_result_id": id.to_string(), "recorded_transcript": [entry]});
        f.service.runs().update_result(&f.caller, spec::<UpdateResultSpec>(update)).await.expect("updated");
    };
    f.walk(id, TO_EVALUATION).await;
    let entry = json!({
        "start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "your valance is ten",
        "filler_utterance": false, "interrupted": false, "scripted": false, "confidence": null, "source": "recognized",
        "words": [],
    });
    let heard: Transcript = spec(json!({"simulation_result_id": id, "language": "en", "entries": [entry]}));
    f.service.conversations().store_transcript(&f.caller.organization, &heard).await.expect("stored");
    post("Your balance is ten.").await;
    assert_eq!(rate().await, None, "before the evaluation");
    f.judge(id, json!({})).await;
    assert_eq!(rate().await, Some(json!(0.25)));
    post("Your valance is ten.").await;
    assert_eq!(rate().await, Some(json!(0.0)));
    post("...").await;
    assert_eq!(rate().await, None);
    // Turns that were not heard are left out, and a warning says so as long as that is true.
    let warnings = async || {
        let metadata = f.service.runs().result(&f.caller, id).await.expect("it").body.metadata;
        let warnings = metadata.get("warnings").and_then(Value::as_array).cloned().unwrap_or_default();
        warnings.into_iter().filter(|text| text.to_string().contains("predicted_wer")).collect::<Vec<_>>()
    };
    let turn = |missing: &str| {
        let data = json!({ "text": "", "from_sample": 32_000, "end_sample": 48_000, "text_missing": missing });
        json!({ "seq": 9, "sample": 48_000, "event": "turn.ended", "side": "agent", "data": data })
    };
    let entries = [(0, "Your balance is ten."), (2000, "Is there anything else?")].map(|(from, line)| {
        json!({"start_offset_ms": from, "end_offset_ms": from + 900, "speaker": "AGENT", "utterance": line})
    });
    let recorded = json!({"simulation_result_id": id.to_string(), "recorded_transcript": entries});
    for (timeline, expect, words) in [
        (vec![], 0.625, vec![]),
        (
            vec![turn("recognizer_late")],
            0.25,
            vec!["predicted_wer: 1 turn of the agent, whose words are not known, left out"],
        ),
        (vec![], 0.625, vec![]),
    ] {
        f.service.conversations().store_timeline(&f.caller.organization, id, &timeline).await.expect("stored");
        f.service.runs().update_result(&f.caller, spec::<UpdateResultSpec>(recorded.clone())).await.expect("updated");
        assert_eq!(
            (rate().await, warnings().await),
            (Some(json!(expect)), words.into_iter().map(Value::from).collect())
        );
    }
}

#[tokio::test]
async fn hanging_up_depends_on_the_state() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 4).await;
    let (run, ids) = f.run(simulation, json!({})).await;
    f.walk(ids[1], &[S::Queued, S::Dispatched]).await;
    f.walk(ids[2], &[S::Queued, S::Dispatched, S::Running]).await;
    f.walk(ids[3], &[S::Queued, S::Dispatched, S::Running]).await;
    f.live.calls.lock().extend([ids[2]]);
    let hangup = |id| f.service.runs().hangup(&f.caller, id);
    assert_eq!(hangup(ids[0]).await.expect("hung up").status, S::Cancelled);
    assert_eq!(refusal(hangup(ids[0]).await), "Simulation result is already finished");
    assert_eq!(hangup(ids[1]).await.expect("hung up").status, S::Cancelled);
    assert_eq!(hangup(ids[2]).await.expect("hung up").status, S::ConversationEnded);
    assert_eq!(hangup(ids[3]).await.expect("nobody holds it").status, S::Running);
    let expect = [(ids[1], EndReason::Cancelled), (ids[2], EndReason::ApiHangup), (ids[3], EndReason::ApiHangup)];
    assert_eq!(*f.live.asked.lock(), expect);
    let answer = f.service.runs().end_conversations(&f.caller, &[ids[2], ids[0], 999]).await.expect("ended");
    assert_eq!((answer.success, answer.ended_count), (false, 1));
    assert_eq!((answer.test_result_ids, answer.failed_ids), (vec![ids[2]], Some(vec![ids[0], 999])));
    let cancelled = f.service.runs().cancel_run(&f.caller, run, true).await.expect("cancelled");
    assert_eq!((cancelled.cancelled, cancelled.ended), (0, 1));
}

#[tokio::test]
async fn cancelling_a_run_completes_it() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({"max_concurrent": 1}), 3).await;
    let (run, ids) = f.run(simulation, json!({})).await;
    let cancelled = f.service.runs().cancel_run(&f.caller, run, false).await.expect("cancelled");
    assert_eq!((cancelled.cancelled, cancelled.ended), (3, 0));
    let item = f.item(simulation).await;
    assert_eq!((item.status, item.outcome), (RunStatus::Completed, None));
    assert_eq!(item.summary.as_deref(), Some("0 passed, 0 failed, 3 cancelled of 3"));
    assert_eq!(f.service.queue().claim(&["call"], 1000).await, Ok(None));
    assert_eq!(f.status(ids[2]).await, S::Cancelled);
}

#[tokio::test]
async fn journey_steps_follow_each_other() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    let steps = json!([{"step": 1, "intent": "call"}, {"step": 2, "intent": "call again", "wait_seconds": 60}]);
    f.human(json!({"journey_steps": steps}), &[simulation]).await;
    let (run, ids) = f.run(simulation, json!({"runs_per_digital_human": 2})).await;
    assert_eq!(ids.len(), 4);
    let queue = f.service.queue();
    let claim = || async { queue.claim(&["call"], 3_600_000).await.expect("claims") };
    let of = |claimed: ringer::queue::Claimed| claimed.job::<CallJob>().expect("a call").result_id;
    assert_eq!((claim().await.map(of), claim().await.map(of)), (Some(ids[0]), Some(ids[2])));
    assert_eq!(claim().await, None);
    f.walk(ids[0], &[S::Queued, S::Dispatched, S::NoAnswer]).await;
    assert_eq!(claim().await, None, "it waits");
    f.clock.advance_ms(60_000);
    assert_eq!(claim().await.map(of), Some(ids[1]));
    let read = f.service.runs().run_results(&f.caller, run).await.expect("the run");
    let steps: Vec<_> = read.simulation_results.iter().map(|result| result.body.journey_step).collect();
    assert_eq!(steps, [Some(1), Some(2), Some(1), Some(2)]);
    assert_eq!(f.service.runs().cancel_run(&f.caller, run, false).await.expect("cancelled").cancelled, 3);
}

#[tokio::test]
async fn a_step_may_wait_longer_than_anybody_lives() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    let steps = json!([{"step": 1, "intent": "call"}, {"step": 2, "intent": "call again", "wait_seconds": 1e300}]);
    f.human(json!({"journey_steps": steps}), &[simulation]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    let queue = f.service.queue();
    let claim = || queue.claim(&["call"], 3_600_000);
    assert!(claim().await.expect("claims").is_some());
    f.walk(ids[0], &[S::Queued, S::Dispatched, S::NoAnswer]).await;
    assert_eq!((f.status(ids[1]).await, claim().await), (S::Initializing, Ok(None)));
    // A cancelled step lets the next one go just so.
    let (run, _) = f.run(simulation, json!({})).await;
    assert_eq!(f.service.runs().cancel_run(&f.caller, run, false).await.expect("cancelled").cancelled, 2);
}

#[tokio::test]
async fn a_failed_result_is_repeated_when_asked() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({"enable_rerun_failed_test_results": true}), 1).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    let queue = f.service.queue();
    let first = queue.claim(&["call"], 1000).await.expect("claims").expect("the call");
    f.walk(ids[0], TO_EVALUATION).await;
    let again = f.judge(ids[0], json!({"goal_success": false})).await.body;
    assert_eq!((again.status, again.attempt, again.evaluations.len()), (S::Queued, 2, 0));
    assert_eq!(again.metadata["attempts"][0]["goal_success"], json!(false));
    assert_eq!(queue.finish_job(&first).await, Ok(true));
    let second = queue.claim(&["call"], 1000).await.expect("claims").expect("the next attempt");
    assert_eq!(second.job::<CallJob>().expect("a call").attempt, 2);
    f.walk(ids[0], &TO_EVALUATION[1..]).await;
    let last = f.judge(ids[0], json!({"goal_success": false})).await.body;
    assert_eq!((last.status, last.outcome), (S::Completed, Some(Outcome::Failed)));
}

#[tokio::test]
async fn the_next_attempt_has_nothing_of_the_last_one() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({"enable_rerun_failed_test_results": true}), 0).await;
    let call = json!({"name": "book", "parameters": {"seats": 2}});
    f.human(json!({"name": "Ann", "intent": "book", "expected_tool_calls": [call]}), &[simulation]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    let id = ids[0];
    let called = json!({"simulation_result_id": id.to_string(), "tool_calls": [
        {"name": "book", "parameters": {"seats": 2}, "start_offset_ms": 10}]});
    let call_it = async || f.service.runs().update_result(&f.caller, spec(called.clone())).await.expect("it is added");
    f.walk(id, TO_EVALUATION).await;
    call_it().await;
    let posted = json!({"simulation_result_id": id.to_string(), "metadata": {"build": 7, "attempts": "ours"}});
    f.service.runs().update_result(&f.caller, spec(posted)).await.expect("it is added");
    let engines = |doc: &mut ResultDoc| {
        doc.note("codec", json!("PCMU"));
        doc.warn("no language model");
    };
    f.service.conversations().amend(&f.caller.organization, id, engines).await.expect("amended");
    f.service
        .conversations()
        .store_timeline(&f.caller.organization, id, &[json!({"event": "call.ended"})])
        .await
        .expect("is kept");
    let transcript = json!({"simulation_result_id": id, "language": "en", "entries": []});
    f.service
        .conversations()
        .store_transcript(&f.caller.organization, &spec::<Transcript>(transcript))
        .await
        .expect("is kept");
    let folder = f.service.settings().result_folder(id);
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["recording.wav", "caller_clean.wav", "sip.log"] {
        std::fs::write(folder.join(name), "of the first attempt").expect("a file");
    }
    let again = f.judge(id, json!({"goal_success": false})).await.body;
    let mut names: Vec<&str> = again.metadata.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!((again.attempt, names), (2, vec!["attempts", "build", "engine.attempts"]), "{:?}", again.metadata);
    assert_eq!(again.metadata["engine.attempts"][0]["attempt"], 1);
    assert_eq!(refusal(f.service.conversations().timeline(&f.caller, id).await), "Timeline not available");
    assert_eq!(refusal(f.service.conversations().transcript(&f.caller, id).await), "Transcript not available");
    assert!(!folder.exists(), "its files are gone");
    let left = std::fs::read_dir(folder.parent().expect("the results")).expect("a folder").count();
    assert_eq!(left, 0, "under whatever name");
    f.walk(id, &TO_EVALUATION[1..]).await;
    let last = f.judge(id, json!({"goal_success": true})).await.body;
    assert_eq!((last.status, last.outcome), (S::Completed, Some(Outcome::Failed)), "nothing was called this time");
    call_it().await;
    let last = f.service.runs().result(&f.caller, id).await.expect("it").body;
    assert_eq!(last.outcome, Some(Outcome::Passed));
}

#[tokio::test]
async fn a_new_evaluation_keeps_what_people_wrote() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(refusal(f.service.runs().re_evaluate(&f.caller, ids[0]).await), "Simulation result is not finished");
    f.walk(ids[0], TO_EVALUATION).await;
    f.judge(ids[0], json!({"goal_success": true, "human_edited": true, "human_goal_success": false})).await;
    f.service.runs().re_evaluate(&f.caller, ids[0]).await.expect("asked");
    let queue = f.service.queue();
    let serials = [queue.claim(&["evaluate"], 1000).await, queue.claim(&["evaluate"], 1000).await];
    assert!(serials.iter().all(|claimed| matches!(claimed, Ok(Some(_)))), "the first and the new one");
    let body = f.judge(ids[0], json!({"goal_success": true})).await.body;
    assert_eq!((body.status, body.evaluations.len()), (S::Completed, 1));
    assert_eq!(body.evaluations[0].human_goal_success, Some(false));
    assert_eq!(body.outcome, Some(Outcome::Failed));
}

#[tokio::test]
async fn a_restart_ends_calls_that_were_at_work() {
    let mut f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 4).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.walk(ids[1], &[S::Queued, S::Dispatched]).await;
    f.walk(ids[2], &[S::Queued, S::Dispatched, S::Running]).await;
    f.walk(ids[3], TO_EVALUATION).await;
    let folder = f.service.settings().result_folder(ids[2]);
    std::fs::create_dir_all(&folder).expect("a folder");
    // Written to the middle of a line, and of a second of audio.
    let journal = "{\"seq\":1,\"sample\":0,\"event\":\"call.connected\"}\n{\"seq\":0,\"sample\":-320,\"event\":\"call.dialing\"}\n{\"se";
    std::fs::write(folder.join("timeline.jsonl"), journal).expect("a file");
    let mut wav = wav_header(Layout::Stereo, 32_000).to_vec();
    wav.resize(wav.len() + 4 * 40_000, 0);
    std::fs::write(folder.join("recording.wav"), wav).expect("a file");
    f.reopen().await;
    assert_eq!(f.service.runs().recover().await, Ok(2));
    for (id, expect) in ids.iter().zip([S::Initializing, S::SystemError, S::SystemError, S::Evaluating]) {
        assert_eq!(f.status(*id).await, expect);
    }
    let body = f.service.runs().result(&f.caller, ids[2]).await.expect("it").body;
    assert_eq!(body.error_code, Some(ErrorCode::EngineRestarted));
    // Records kept until then can be read.
    assert_eq!((body.duration_ms, body.duration), (Some(2000), Some(2)));
    let timeline = f.service.conversations().timeline(&f.caller, ids[2]).await.expect("it was kept").events;
    let names: Vec<_> = timeline.as_array().expect("a list").iter().map(|event| event["event"].clone()).collect();
    assert_eq!(names, ["call.dialing", "call.connected"]);
    assert!(f.service.conversations().recording_path(&f.caller, ids[2]).await.is_ok());
    assert!(f.service.conversations().timeline(&f.caller, ids[1]).await.is_err());
    assert_eq!(f.service.runs().recover().await, Ok(0));
}

#[tokio::test]
async fn deleting_takes_what_hangs_on_it_and_no_more() {
    let f = Fixture::new().await;
    let (agent, simulation, humans) = f.booth(json!({}), 2).await;
    let (run, ids) = f.run(simulation, json!({})).await;
    let s = &f.service;
    assert_eq!(refusal(s.library().delete_agent(&f.caller, agent).await), "Agent has running simulations");
    assert_eq!(refusal(s.library().delete_simulation(&f.caller, simulation).await), "Simulation has running results");
    assert!(matches!(s.runs().delete_run(&f.caller, run).await, Err(Error::Conflict(_))));
    assert!(matches!(s.runs().delete_result(&f.caller, ids[0]).await, Err(Error::Conflict(_))));
    s.runs().cancel_run(&f.caller, run, false).await.expect("cancelled");
    s.humans().delete_digital_human(&f.caller, humans[0]).await.expect("deleted");
    assert_eq!(s.runs().result(&f.caller, ids[0]).await.expect("it stays").body.digital_human_id, None);
    let folder = s.settings().result_folder(ids[0]);
    std::fs::create_dir_all(&folder).expect("made");
    s.runs().delete_result(&f.caller, ids[0]).await.expect("deleted");
    assert!(!folder.exists());
    assert_eq!(f.item(simulation).await.counters.total_tests, 1);
    let version = s.runs().result(&f.caller, ids[1]).await.expect("it").body.agent_version_id;
    s.library().delete_agent(&f.caller, agent).await.expect("deleted");
    assert_eq!(refusal(s.library().delete_agent(&f.caller, agent).await), "Agent not found");
    assert_eq!(refusal(s.library().simulation(&f.caller, simulation).await), "Simulation not found");
    assert_eq!(refusal(s.runs().run_results(&f.caller, run).await), "Simulation run not found");
    assert_eq!(refusal(s.runs().result(&f.caller, ids[1]).await), "Simulation result not found");
    let left = s.humans().digital_human(&f.caller, humans[1]).await.expect("it stays");
    assert_eq!(left.simulation_ids, Vec::<i64>::new());
    let mut db = s.store().org(&f.caller.organization).read().await.expect("reads");
    let version = db.find::<ringer::model::agent_version::VersionDoc>(version.expect("it had one")).await;
    assert_eq!(version, Ok(None));
}

#[tokio::test]
async fn a_journey_ends_with_whoever_makes_it() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    // In the middle of the first step, and in the pause behind it.
    for (done, walked) in [(&TO_EVALUATION[..3], &TO_EVALUATION[3..]), (TO_EVALUATION, &[])] {
        let steps: Vec<Value> =
            (1..=3).map(|step| json!({"step": step, "intent": "Ask.", "wait_seconds": 5})).collect();
        let human = f.human(json!({"journey_steps": steps}), &[simulation]).await;
        let (run, ids) = f.run(simulation, json!({"digital_human_ids": [human.to_string()]})).await;
        f.walk(ids[0], done).await;
        if walked.is_empty() {
            f.judge(ids[0], json!({"goal_success": true})).await;
        }
        f.service.humans().delete_digital_human(&f.caller, human).await.expect("deleted");
        assert_eq!((f.status(ids[1]).await, f.status(ids[2]).await), (S::Cancelled, S::Cancelled));
        if !walked.is_empty() {
            f.walk(ids[0], walked).await;
            f.judge(ids[0], json!({"goal_success": true})).await;
        }
        let read = f.service.runs().run_results(&f.caller, run).await.expect("the run");
        assert_eq!(read.simulation_run.status, RunStatus::Completed);
        let last = &read.simulation_results[2].body;
        assert_eq!(last.metadata["warnings"], json!(["not held: the Digital Human was deleted"]));
    }
}

#[tokio::test]
async fn timeline_transcript_and_recording_appear_when_they_are_there() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    let (s, id, organization) = (&f.service, ids[0], &f.caller.organization);
    assert_eq!(refusal(s.conversations().timeline(&f.caller, id).await), "Timeline not available");
    assert_eq!(refusal(s.conversations().transcript(&f.caller, id).await), "Transcript not available");
    assert_eq!(refusal(s.conversations().recording_path(&f.caller, id).await), "Recording not available");
    assert_eq!(refusal(s.conversations().timeline(&f.caller, 999).await), "Simulation result not found");
    s.conversations()
        .store_timeline(organization, id, &[json!({"seq": 0, "event": "call.connected"})])
        .await
        .expect("kept");
    assert_eq!(s.conversations().timeline(&f.caller, id).await.expect("there").events[0]["event"], "call.connected");
    let transcript = Transcript { simulation_result_id: id, language: "en".into(), entries: vec![] };
    s.conversations().store_transcript(organization, &transcript).await.expect("kept");
    assert_eq!(s.conversations().transcript(&f.caller, id).await, Ok(transcript));
    let link = s.runs().result(&f.caller, id).await.expect("it").body.transcript_url;
    assert_eq!(link, Some(format!("/v1/simulation-result/{id}/transcript")));
    std::fs::create_dir_all(s.settings().result_folder(id)).expect("made");
    std::fs::write(s.settings().result_folder(id).join("recording.wav"), b"x").expect("written");
    assert_eq!(refusal(s.conversations().recording_path(&f.caller, id).await), "Recording not available");
    let finish = |doc: &mut ResultDoc| doc.body.audio_url = Some(recording_link(id));
    s.conversations().amend(organization, id, finish).await.expect("amended");
    assert!(s.conversations().recording_path(&f.caller, id).await.is_ok());
}
