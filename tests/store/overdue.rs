//! Evaluations that come to no end.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::model::call_log::CallLogStatus;
use ringer::model::error_code::ErrorCode;
use ringer::model::status::{ResultStatus as S, RunStatus};
use ringer::queue::CallLogJob;
use ringer::service::EVALUATION_MS;
use ringer_media::clip::write_wav;
use serde_json::json;

use super::lifecycle::TO_EVALUATION;
use super::{Fixture, START_MS, spec};

#[tokio::test]
async fn an_evaluation_ends_after_a_while_and_the_run_goes_on() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 2).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.walk(ids[0], TO_EVALUATION).await;
    f.walk(ids[1], &[S::Cancelled]).await;
    let run = async || f.service.runs().simulation_runs(&f.caller, simulation).await.expect("runs").remove(0);
    let sweep = async |since_ms| f.service.evaluations().end_late_evaluations(since_ms).await.expect("swept");
    // `walk` lets a second go by for each state, and has gone on by one since.
    f.clock.advance_ms(EVALUATION_MS - 1001);
    sweep(START_MS).await;
    assert_eq!((f.status(ids[0]).await, run().await.status), (S::Evaluating, RunStatus::Running));
    f.clock.advance_ms(1);
    // The engine has just begun: it had no time to evaluate.
    sweep(f.clock.now_ms()).await;
    assert_eq!(f.status(ids[0]).await, S::Evaluating);
    sweep(START_MS).await;
    let body = f.service.runs().result(&f.caller, ids[0]).await.expect("it").body;
    assert_eq!((body.status, body.error_code), (S::SystemError, Some(ErrorCode::EvaluationTimeout)));
    assert_eq!(body.error_owner.map(|owner| owner.as_str()), Some("engine"));
    let item = run().await;
    let counters = &item.counters;
    let counted = (counters.tests_failed, counters.tests_not_evaluated, counters.tests_cancelled);
    assert_eq!((item.status, counted), (RunStatus::Completed, (0, 1, 1)));
    // A judgement that comes too late changes no state.
    assert_eq!(f.judge(ids[0], json!({"goal_success": true})).await.body.status, S::SystemError);
}

#[tokio::test]
async fn the_evaluation_of_a_call_ends_after_a_while() {
    let f = Fixture::new().await;
    let agent = f.agent(json!({"name": "Desk"})).await;
    let call = json!({
        "agent_id": agent.to_string(), "start_time_utc": "2026-01-05T08:00:00Z", "participants": [{"role": "AGENT"}, {"role": "USER"}],
        "transcript": [{"start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Hello."}],
    });
    let queued = f.service.evaluations().evaluate_call(&f.caller, spec(call)).await.expect("queued");
    let log = async || f.service.evaluations().call_log(&f.caller, &queued.call_id).await.expect("the log");
    let job = CallLogJob {
        organization: f.caller.organization.clone(),
        call_id: queued.call_id.parse().expect("an id"),
        serial: START_MS,
    };
    f.service.evaluations().begin_log(&job).await.expect("begun").expect("it is there");
    f.clock.advance_ms(EVALUATION_MS - 1);
    f.service.evaluations().end_late_evaluations(START_MS).await.expect("swept");
    assert_eq!(log().await.status, CallLogStatus::Evaluating);
    f.clock.advance_ms(1);
    f.service.evaluations().end_late_evaluations(START_MS).await.expect("swept");
    let log = log().await;
    assert_eq!(log.status, CallLogStatus::Incompleted);
    assert!(log.error_message.is_some_and(|text| text.starts_with("EVALUATION_TIMEOUT: ")));
}

#[tokio::test]
async fn what_is_private_is_taken_out_of_what_nobody_has_judged() {
    let f = Fixture::new().await;
    let (agent, simulation, _) = f.booth(json!({}), 1).await;
    f.service
        .library()
        .update_agent(&f.caller, Some(&agent.into()), super::map(json!({"redact_pii": true})))
        .await
        .expect("updated");
    let (_, ids) = f.run(simulation, json!({})).await;
    f.walk(ids[0], TO_EVALUATION).await;
    let organization = &f.caller.organization;
    f.service.conversations().amend(organization, ids[0], |doc| doc.private = true).await.expect("amended");
    let entry = json!({
        "start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Write to ann@example.com", "words": [],
        "filler_utterance": false, "interrupted": false, "scripted": false, "confidence": null, "source": "message",
    });
    let transcript = json!({"simulation_result_id": ids[0], "language": "en", "entries": [entry]});
    f.service.conversations().store_transcript(organization, &spec(transcript)).await.expect("stored");
    assert!(f.service.conversations().transcript(&f.caller, ids[0]).await.is_err(), "it is hidden");
    f.clock.advance_ms(EVALUATION_MS);
    f.service.evaluations().end_late_evaluations(START_MS).await.expect("swept");
    let shown = f.service.conversations().transcript(&f.caller, ids[0]).await.expect("it is shown");
    assert_eq!(shown.entries[0].utterance, "Write to [EMAIL]");
}

#[tokio::test]
async fn what_is_private_is_taken_out_of_a_call_that_nobody_has_judged() {
    let f = Fixture::new().await;
    let agent = f.agent(json!({"name": "Desk", "redact_pii": true})).await;
    let sound = format!("data:audio/wav;base64,{}", STANDARD.encode(write_wav(16_000, 1, &[1000; 32_000])));
    let words = json!([{"start_offset_ms": 0, "end_offset_ms": 900, "speaker": "USER", "utterance": "I am 98765."}]);
    let elsewhere = json!([
        {"start_offset_ms": i64::MAX - 9, "end_offset_ms": i64::MAX, "speaker": "USER", "utterance": "I am 98765."},
    ]);
    for (transcript, is_kept) in [(words, true), (json!(null), false), (elsewhere, false)] {
        let call = json!({
            "agent_id": agent.to_string(), "start_time_utc": "2026-01-05T08:00:00Z", "participants": [{"role": "AGENT"}, {"role": "USER"}],
            "transcript": transcript, "recording_base64": sound,
            "tool_calls": [{"name": "look_up", "start_offset_ms": 600, "parameters": {"member": "445566"}}],
        });
        let id = f.service.evaluations().evaluate_call(&f.caller, spec(call)).await.expect("queued").call_id;
        let file = f.service.settings().data.join("call-logs").join(&id).join("recording");
        assert!(file.exists(), "it came with the call");
        let job = CallLogJob {
            organization: f.caller.organization.clone(),
            call_id: id.parse().expect("an id"),
            serial: START_MS,
        };
        f.service.evaluations().begin_log(&job).await.expect("begun").expect("it is there");
        let read = async || f.service.evaluations().call_log(&f.caller, &id).await.expect("the log");
        assert_eq!(read().await.tool_calls, None, "it is hidden");
        f.clock.advance_ms(EVALUATION_MS);
        f.service.evaluations().end_late_evaluations(START_MS).await.expect("swept");
        let log = read().await;
        assert_eq!(log.status, CallLogStatus::Incompleted);
        let calls = serde_json::to_value(&log.tool_calls).expect("JSON");
        assert_eq!(calls[0]["parameters"]["member"], "[NUMBER]");
        assert_eq!(file.exists(), is_kept, "what nobody knows the time of may be private");
        if is_kept {
            let bytes = std::fs::read(&file).expect("the recording");
            let pcm: Vec<i16> =
                bytes[44..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
            let private = 950 * 16;
            assert!(pcm[..private].iter().all(|sample| *sample == 0), "it is heard no more");
            assert!(
                pcm.len() == 32_000 && pcm[private..].iter().all(|sample| *sample == 1000),
                "the rest is as it was"
            );
        }
    }
}
