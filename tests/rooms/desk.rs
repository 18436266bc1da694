//! The sample agent over WebRTC, as a program of its own.

use serde_json::Value;

use crate::program::{Program, ringer};

/// One call between two processes: words both ways, and a key that is heard once.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_calls_its_sample_agent_by_an_offer() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let (log, record) = (folder.path().join("agent.jsonl"), folder.path().join("call.wav"));
    let (log, record) = (log.to_str().expect("a path"), record.to_str().expect("a path"));
    let args = ["agent", "--listen", "127.0.0.1:0", "--pipeline", "127.0.0.1:0", "--rtp-ports", "38950-38999"];
    let mut agent = Program::start(ringer(&args).args(["--log", log]));
    let line = agent.line().await;
    let to = line.split(' ').find(|word| word.starts_with("pipeline:")).unwrap_or_else(|| panic!("none in {line}"));
    let flags = ["--json", "--max-seconds", "15", "--seed", "3", "--dtmf", "7", "--record", record];
    let mut caller = Program::start(ringer(&["call", to]).args(flags));
    let (mut names, mut report) = (Vec::new(), Value::Null);
    while report == Value::Null {
        let line: Value = serde_json::from_str(&caller.line().await).expect("each line is JSON");
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        names.push(format!("{} {}", text("side"), text("event")));
        if line["event"] == "channel_event" || line["event"] == "agent_reported" {
            names.push(format!("{} {}", text("event"), line["data"]["name"].as_str().unwrap_or_default()));
        }
        if line["event"] == "report" {
            report = line;
        }
    }
    assert_eq!((&report["ok"], &report["codec"]), (&true.into(), &"OPUS".into()), "{report} {names:?}");
    for name in [
        "agent speech.started",
        "agent turn.ended",
        "dh speech.started",
        "dh speech.ended",
        "channel_event agent_ready",
        "channel_event agent_started_speaking",
        "agent_reported ",
    ] {
        assert!(names.iter().any(|known| known == name), "no {name} in {names:?}");
    }
    assert!(std::fs::metadata(record).is_ok_and(|file| file.len() > 100_000), "it is recorded");
    assert!(caller.ended().await.success());
    agent.kill().await;
    let log = std::fs::read_to_string(log).expect("it was written");
    let digits = log.lines().filter(|line| line.contains("\"dtmf.received\"") || line.contains("dtmf_received"));
    assert_eq!(digits.count(), 1, "{log}");
}

/// Some calls at once to a far side that the program starts for it.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_are_measured() {
    let flags = ["load", "--pipeline", "--calls", "3", "--seconds", "1", "--json", "--no-vad", "--no-dtmf"];
    let mut load = Program::start(&mut ringer(&flags));
    let figures: Value = serde_json::from_str(&load.line().await).expect("it prints one object");
    assert_eq!(
        (&figures["connected"], &figures["failed"], &figures["lost"]),
        (&3.into(), &0.into(), &0.into()),
        "{figures}"
    );
    let far = &figures["far_side"];
    assert!(far["sent"].as_u64() > Some(100) && far["received"].as_u64() > Some(100), "{figures}");
    assert!(load.ended().await.success());
}
