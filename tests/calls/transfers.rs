//! Transfers between other people's SIP programs: the call is handed on by REFER and goes on with the target.

use std::time::Duration;

use ringer::engine::CallReport;
use ringer_media::call::EndReason;
use ringer_media::level::rms_dbov;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::stage::{Stage, channels};
use crate::peers::{Peer, TONE_HZ};

const TARGETS: [&str; 1] = ["127.0.0.0/24"];

/// Makes a call to `agent` that may be sent on to `targets`; gives its report, its SIP log and the folder of its files.
async fn call(agent: &Peer, targets: &[&str], most_ms: u32) -> (CallReport, String, TempDir) {
    let stage = Stage::sending_on_to(targets).await;
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = stage.placement(&format!("sip:bob@{}", agent.sip), "Hello there.");
    placement.folder = Some(folder.path().join("call"));
    placement.spec.limits.max_duration_ms = Some(most_ms);
    let dial = placement.destination.sip().expect("it dials");
    dial.headers = vec![("X-Simulation-Result-Id".into(), "42".into())];
    let report = stage.call(placement).await.expect("it was placed");
    let log = std::fs::read_to_string(folder.path().join("call/sip.log")).expect("it was written");
    if let Some(recording) = &report.recording {
        let [sent, heard] = channels(recording);
        assert_eq!((sent.len(), heard.len() as i64), (heard.len(), report.ending.samples), "one recording, one clock");
    }
    (report, log, folder)
}

/// Returns the data of the events of this name, with their times in milliseconds.
fn events(report: &CallReport, name: &str) -> Vec<(f64, Value)> {
    let of = report.timeline.iter().filter(|entry| entry.name() == name);
    of.map(|entry| (entry.offset_ms(), entry.data())).collect()
}

/// Returns the agent's side of the recording between two times.
fn agent_track(report: &CallReport, from_ms: f64, to_ms: f64) -> Vec<i16> {
    let [_, heard] = channels(report.recording.as_deref().expect("it was recorded"));
    let place = |ms: f64| (ms * 16.0) as usize;
    heard[place(from_ms)..place(to_ms).min(heard.len())].to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_is_followed_and_its_target_is_recorded() {
    let target = Peer::baresip("PCMU/8000/1");
    let agent = Peer::referring("refer_followed", target.sip);
    let (report, log, _folder) = call(&agent, &TARGETS, 6000).await;
    // sipp checks every NOTIFY, and that it is left by BYE.
    agent.end();
    let to = format!("sip:bob@{}", target.sip);
    let asked = events(&report, "transfer");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1, json!({ "to": to, "accepted": true, "code": 202 }));
    let taken = events(&report, "transferred");
    assert_eq!(taken.len(), 1, "{:?}", report.warnings);
    assert_eq!(taken[0].1, json!({ "to": to, "outcome": "answered", "code": 200 }));
    let at = taken[0].0;
    assert!(at > asked[0].0, "{at}");
    assert_eq!((report.ending.reason, events(&report, "call.connected").len()), (EndReason::MaxDuration, 1));
    // The softphone sounds a tone all the time.
    let tone = agent_track(&report, at + 1000.0, at + 2000.0);
    assert!(rms_dbov(&tone) > -30.0, "{} dBov", rms_dbov(&tone));
    let crossings = tone.windows(2).filter(|two| two[0] < 0 && two[1] >= 0).count();
    assert!(crossings.abs_diff(TONE_HZ as usize) <= 10, "{crossings} Hz");
    // Both dialogs are in the one log.
    let invite = log.split_once(&format!("INVITE {to} ")).expect("the target is called").1;
    let invite = invite.split("sent to").next().unwrap_or_default();
    assert!(invite.contains("X-Simulation-Result-Id: 42") && invite.contains("Referred-By: <sip:uas@"), "{invite}");
    assert!(invite.contains("PCMU/8000") && !invite.contains("G722"), "{invite}");
    let count = |text: &str| log.matches(text).count();
    assert_eq!((count(" INVITE sip:"), count(" NOTIFY sip:"), count(" BYE sip:")), (2, 3, 2), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_the_target_when_the_agent_has_left() {
    let target = Peer::scenario("answer_late");
    let agent = Peer::referring("refer_leaves", target.sip);
    let (report, _, _folder) = call(&agent, &TARGETS, 8000).await;
    agent.end();
    target.end();
    let taken = events(&report, "transferred");
    assert_eq!(
        taken.iter().map(|(_, data)| &data["outcome"]).collect::<Vec<_>>(),
        ["answered"],
        "{:?}",
        report.warnings
    );
    assert_eq!(report.ending.reason, EndReason::MaxDuration);
    let waited = Duration::from_secs_f64((taken[0].0 - events(&report, "transfer")[0].0) / 1000.0);
    assert!(waited > Duration::from_millis(1500), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_when_the_target_is_busy() {
    let target = Peer::scenario("busy");
    let agent = Peer::referring("refer_busy", target.sip);
    let (report, _, _folder) = call(&agent, &TARGETS, 20_000).await;
    agent.end();
    let outcome = events(&report, "transferred");
    assert_eq!(outcome.len(), 1, "{:?}", report.warnings);
    assert_eq!((&outcome[0].1["outcome"], &outcome[0].1["code"]), (&json!("refused"), &json!(486)));
    assert_eq!(report.ending.reason, EndReason::AgentHangup);
    assert!(report.ending.samples as f64 / 16.0 > outcome[0].0 + 1000.0, "it went on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_no_list_has_is_declined() {
    let agent = Peer::scenario("refer_declined");
    let (report, log, _folder) = call(&agent, &["127.0.0.0/24", "+49"], 20_000).await;
    agent.end();
    assert_eq!(events(&report, "transfer")[0].1["accepted"], false);
    assert_eq!((events(&report, "transferred").len(), report.ending.reason), (0, EndReason::AgentHangup));
    let expect = "a transfer to sip:carol@example.com is refused: sip.refer_targets does not have it";
    assert!(report.warnings.iter().any(|warning| warning == expect), "{:?}", report.warnings);
    assert_eq!(log.matches(" INVITE sip:").count(), 1);
}
