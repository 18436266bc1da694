//! The sample agent over WebRTC, as a program of its own.

use std::process::Stdio;

use serde_json::Value;
use tokio::time::timeout;

use super::server::{Behaviour, KEY, RoomServer, SECRET, lock};
use crate::program::{PATIENCE, Program, ringer};

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
    let flags = ["--json", "--max-seconds", "25", "--seed", "3", "--dtmf", "7", "--record", record];
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
    assert!(caller.wait_for_end().await.success());
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
    assert!(load.wait_for_end().await.success());
}

/// Some calls at once, each in a room of its own that the program creates and removes, with its far side as the agent.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_in_rooms_are_measured() {
    for knows_joint in [false, true] {
        let server = RoomServer::with(Behaviour { has_rooms: true, knows_joint, ..Behaviour::default() }).await;
        let to = format!("room:{}", server.url);
        let mut command = ringer(&["load", &to, "--far", "--calls", "3", "--seconds", "1", "--json"]);
        command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET);
        let mut load = Program::start(&mut command);
        let figures: Value = serde_json::from_str(&load.line().await).expect("it prints one object");
        let made = (&figures["connected"], &figures["failed"], &figures["lost"]);
        assert_eq!(made, (&3.into(), &0.into(), &0.into()), "{figures}");
        assert!(figures["cpu_ms_per_call_second"].as_f64() > Some(0.0), "{figures}");
        assert!(figures["received"].as_u64() > Some(100) && figures["trusted"].is_boolean(), "{figures}");
        let far = &figures["far_side"];
        assert!(far["sent"].as_u64() > Some(100) && far["received"].as_u64() > Some(100), "{figures}");
        assert!(load.wait_for_end().await.success());
        let api = lock(&server.room.api).clone();
        let named = |wanted: &str, field: &str| {
            let of = api.iter().filter(|(method, _)| method == wanted);
            let mut names: Vec<String> = of.map(|(_, body)| body[field].to_string()).collect();
            names.sort();
            names
        };
        assert_eq!((named("CreateRoom", "name").len(), api.len()), (3, 6));
        assert_eq!(named("CreateRoom", "name"), named("DeleteRoom", "room"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_of_rooms_that_cannot_be_are_refused() {
    let room = "room:ws://127.0.0.1:1";
    for (flags, variables, why) in [
        (&["--far"][..], &[][..], "--far is for room: addresses"),
        (&["--agent-name", "desk"], &[], "--agent-name is for room: addresses"),
        (&[room], &[], "a room needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET"),
        (&[room], &[("RINGER_ROOM_TOKEN", "a.b.c")], "a token is for one room"),
        (
            &[room, "--room", "r"],
            &[("RINGER_ROOM_KEY", KEY), ("RINGER_ROOM_SECRET", SECRET)],
            "each of these has its own",
        ),
    ] {
        let mut command = ringer(&["load"]);
        command.args(flags).envs(variables.iter().copied()).stderr(Stdio::piped());
        let output = timeout(PATIENCE, command.output()).await.expect("in time").expect("it was built");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && printed.contains(why), "{printed}");
    }
}
