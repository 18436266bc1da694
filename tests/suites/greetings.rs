//! Greetings of the sample agent that come late, on channels that a suite reaches without a server: each fails, and an
//! agent that greets soon passes.

use serde_json::json;

use super::Bench;
use super::blame::free_port;

/// Returns a suite that starts the sample agent, which answers on one channel at a port, and expects that it greets
/// soon.
fn suite_of(name: &str, connect: &str, flag: &str, port: u16, fault: &[&str]) -> String {
    let (program, at) = (env!("CARGO_BIN_EXE_ringer"), format!("127.0.0.1:{port}"));
    let command = [&[program, "agent", "--listen", "127.0.0.1:0", flag, &at], fault].concat();
    let spawn = json!({ "command": command, "ready": { "tcp": at, "within_s": 60 } });
    format!(
        "version: 1\nconnect: {connect}\nspawn: {spawn}\nscenarios:\n  - name: {name}\n    max_seconds: 30\n    \
         turns: [{{ expect: {{ within_ms: 5000 }} }}]\n"
    )
}

#[tokio::test]
async fn a_late_greeting_fails_over_a_pipeline_and_in_writing() {
    let bench = Bench::new();
    let late = ["--fault", "late_first_word"];
    let mut files = Vec::new();
    for (channel, flag) in [("pipeline", "--pipeline"), ("chat", "--chat")] {
        for (manner, fault) in [("soon", &[][..]), ("late", &late)] {
            let (name, port) = (format!("{channel} {manner}"), free_port());
            let connect = match channel {
                "pipeline" => format!("{{ pipeline: \"http://127.0.0.1:{port}\" }}"),
                _ => format!("{{ chat: \"http://127.0.0.1:{port}/v1\", model: desk }}"),
            };
            let file = format!("{}.yaml", name.replace(' ', "-"));
            bench.write(&file, &suite_of(&name, &connect, flag, port, fault));
            files.push(file);
        }
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let ran = bench.run(&files).await;
    assert!(matches!(ran.code, 1 | 3), "{} {}", ran.out, ran.err);
    assert_eq!(bench.lines().len(), 4);
    // Calls that are not on time beside other tests are unknown, with the own fault or the
    // figure that is not trusted. A late greeting never passes, and
    // one that comes soon never fails.
    for line in bench.lines() {
        let (name, verdict) = (line["scenario"].as_str().expect("a name"), line["verdict"].as_str());
        let is_distrusted = line["reason"].as_str().is_some_and(|reason| reason.contains("not trusted"));
        let is_own = is_distrusted || line["own_faults"].as_array().is_some_and(|faults| !faults.is_empty());
        match name.ends_with("late") {
            true => {
                assert!(verdict == Some("failed") || (verdict == Some("unknown") && is_own), "{line}");
                let reason = line["reason"].as_str().expect("a reason");
                assert!(reason.contains("within_ms is 5000"), "{line}");
            }
            false => assert!(verdict == Some("passed") || (verdict == Some("unknown") && is_own), "{line}"),
        }
    }
}
