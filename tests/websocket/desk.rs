//! The sample agent over WebSockets, as a program of its own.

use serde_json::Value;

use crate::program::{Program, ringer};

/// One call between two processes, in the engine's own protocol.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_calls_its_sample_agent_over_a_websocket() {
    let args = ["agent", "--listen", "127.0.0.1:0", "--websocket", "127.0.0.1:0", "--rtp-ports", "38900-38949"];
    let mut agent = Program::start(&mut ringer(&args));
    let line = agent.line().await;
    let url = line.split(' ').find(|word| word.starts_with("ws://")).unwrap_or_else(|| panic!("no ws:// in {line}"));
    let mut caller = Program::start(&mut ringer(&["call", url, "--json", "--max-seconds", "12", "--seed", "3"]));
    let (mut names, mut report) = (Vec::new(), Value::Null);
    while report == Value::Null {
        let line: Value = serde_json::from_str(&caller.line().await).expect("each line is JSON");
        names.push(format!(
            "{} {}",
            line["side"].as_str().unwrap_or_default(),
            line["event"].as_str().unwrap_or_default()
        ));
        if line["event"] == "report" {
            report = line;
        }
    }
    assert_eq!(report["ok"], true, "{report}");
    for name in ["agent speech.started", "agent turn.ended", "dh speech.started", "dh speech.ended"] {
        assert!(names.iter().any(|known| known == name), "no {name} in {names:?}");
    }
    assert!(caller.ended().await.success());
    agent.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_that_do_not_go_together_are_refused() {
    for (args, part) in [
        (&["call", "sip:a@127.0.0.1", "--dialect", "raw_pcm16"][..], "--dialect is for ws:// and wss://"),
        (&["call", "ws://127.0.0.1/", "--dialect", "morse"], "it must be one of twilio_media_streams"),
    ] {
        let output = ringer(args).stderr(std::process::Stdio::piped()).output().await.expect("the program was built");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(part), "{told}");
    }
}
