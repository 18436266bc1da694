//! Verdicts on calls that are no good: the agent's fault, this side's, or not known. Each by the program, against
//! agents and servers that fail on purpose.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{interval, sleep, timeout};

use super::answers::{Answers, Manner};
use super::{Bench, DESK, RUN, suite};
use crate::program::PATIENCE;

/// Row of the table for a call: scenario, verdict, code, and a part of the reason.
type Row<'r> = (&'r str, &'r str, &'r str, &'r str);

pub(super) fn check(bench: &Bench, rows: &[Row<'_>]) {
    let lines = bench.lines();
    let junit = std::fs::read_to_string(bench.path().join("ringer-results/junit.xml")).expect("there is a report");
    for (name, verdict, code, reason) in rows {
        let line = lines.iter().find(|line| line["scenario"] == *name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!((line["verdict"].as_str(), line["code"].as_str()), (Some(*verdict), Some(*code)), "{line}");
        assert!(line["reason"].as_str().is_some_and(|told| told.contains(reason)), "{reason}: {line}");
        let case = junit.split("<testcase ").find(|case| case.contains(&format!("name=\"{name} [seed")));
        let word = format!("<property name=\"verdict\" value=\"{verdict}\"/>");
        assert!(case.is_some_and(|case| case.contains(&word)), "{name}: {word}");
    }
    assert_eq!(lines.len(), rows.len());
}

/// Returns a port of this machine that nobody listens on.
pub(super) fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    socket.local_addr().expect("it is bound").port()
}

/// Returns a suite that starts the sample agent, by a shell script that knows it as $RINGER, and calls it.
fn spawning(port: u16, script: &str, scenarios: &str) -> String {
    let spawn = json!({
        "command": ["sh", "-c", script],
        "env": { "RINGER": env!("CARGO_BIN_EXE_ringer"), "LISTEN": format!("udp:127.0.0.1:{port},tcp:127.0.0.1:{port}") },
        "ready": { "tcp": format!("127.0.0.1:{port}"), "within_s": 60 },
    });
    format!("version: 1\nconnect: {{ sip: \"sip:desk@127.0.0.1:{port}\" }}\nspawn: {spawn}\nscenarios:\n{scenarios}")
}

/// Starts the sample agent in the place of the shell; what it says is logged beside the suite.
const AGENT: &str = "exec \"$RINGER\" agent --listen \"$LISTEN\" --log agent.jsonl";

#[tokio::test]
async fn agents_that_are_not_reached_are_not_charged_and_those_that_refuse_are() {
    let bench = Bench::new();
    let mut files = Vec::new();
    let mut desks = Vec::new();
    let mut add = |name: &str, connect: &str| {
        // Whoever is waited for to the end is waited for shortly; everything else has its own end, on a slow machine
        // too.
        let rings_s = if ["rings", "says nothing"].contains(&name) { 5 } else { 100 };
        let scenario = format!(
            "  - name: {name}\n    ringing_timeout: {rings_s}\n    goal: Hello.\n    expect: [{{ ended_by: agent }}]\n"
        );
        bench.write(&format!("{name}.yaml"), &suite(connect, &scenario));
        files.push(format!("{name}.yaml"));
    };
    for (name, manner) in [
        ("busy", Manner::Refuses(486, "Busy Here")),
        ("declined", Manner::Refuses(603, "Decline")),
        ("overloaded", Manner::Refuses(503, "Service Unavailable")),
        ("unknown", Manner::Refuses(404, "Not Found")),
        ("caller", Manner::Refuses(403, "Caller not allowed")),
        ("broken", Manner::Refuses(500, "Server Internal Error")),
        ("rings", Manner::Rings),
        ("says nothing", Manner::Silent),
        ("hangs up", Manner::HangsUp),
    ] {
        let desk = Answers::with(manner).await;
        add(name, &format!("sip: \"sip:desk@{}\"", desk.address));
        desks.push(desk);
    }
    let desk = Answers::with(Manner::Challenges).await;
    add("credentials", &format!("sip: \"sip:desk@{}\", username: ann, password: wrong", desk.address));
    // Listens, and speaks no TLS.
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    plain.set_nonblocking(true).expect("it is a socket");
    let port = plain.local_addr().expect("it is bound").port();
    add("tls", &format!("sip: \"sip:desk@127.0.0.1:{port};transport=tls\""));
    add("gone", "sip: \"sip:desk@127.0.0.1:9\"");
    add("no name", "sip: \"sip:desk@nobody.invalid\"");
    add("chat", "chat: \"http://127.0.0.1:9/v1\", model: m");
    add("http", "http: \"http://127.0.0.1:9/hook\"");
    let args: Vec<&str> = files.iter().map(String::as_str).collect();
    let ran = bench.run(&args).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    check(
        &bench,
        &[
            ("busy", "failed", "CALL_REJECTED", "486"),
            ("declined", "failed", "CALL_REJECTED", "603"),
            ("overloaded", "unreachable", "SIP_DIAL_FAILED", "503"),
            ("unknown", "unreachable", "INVALID_SIP_DESTINATION", "404"),
            ("caller", "unreachable", "UNUSABLE_CALLER_ID", "403"),
            ("broken", "unreachable", "SIP_DIAL_FAILED", "500"),
            ("rings", "failed", "NO_ANSWER", "within ringing_timeout"),
            ("says nothing", "unreachable", "NO_ANSWER", "it is not known whether the agent was reached"),
            ("hangs up", "failed", "AGENT_HUNG_UP_BEFORE_SPEECH", ""),
            ("credentials", "unreachable", "credentials", ""),
            ("tls", "unreachable", "SIP_DIAL_FAILED", ""),
            ("gone", "unreachable", "SIP_DIAL_FAILED", "127.0.0.1:9"),
            ("no name", "unreachable", "SIP_DIAL_FAILED", ""),
            ("chat", "unreachable", "P12_SESSION_SETUP_FAILED", ""),
            ("http", "unreachable", "HTTP_WEBHOOK_FAILED", ""),
        ],
    );
    let ran = bench.run(&["gone.yaml"]).await;
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
}

#[tokio::test]
async fn an_agent_that_does_not_start_is_charged() {
    let bench = Bench::new();
    let spawn = |name: &str, command: &str, within_s: f64| {
        let spawn =
            json!({ "command": ["sh", "-c", command], "ready": { "tcp": "127.0.0.1:9", "within_s": within_s } });
        let text =
            format!("version: 1\nconnect: {{ {DESK} }}\nspawn: {spawn}\nscenarios:\n  - name: {name}\n    goal: Hi.\n");
        bench.write(&format!("{name}.yaml"), &text);
        text
    };
    let ends = spawn("ends", "exit 3", 30.0);
    spawn("late", "exec sleep 60", 0.2);
    let ran = bench.run(&["ends.yaml", "late.yaml"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    check(
        &bench,
        &[
            ("ends", "failed", "AGENT_NOT_STARTED", "the agent's command ended with status 3"),
            ("late", "failed", "AGENT_NOT_STARTED", "was not ready at 127.0.0.1:9 within 0.2 s"),
        ],
    );
    // A command that ends and one that cannot be started are not the same.
    bench.write("missing.yaml", &ends.replace("[\"sh\",\"-c\",\"exit 3\"]", "[/no/such/program]"));
    let ran = bench.run(&["missing.yaml"]).await;
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
}

#[tokio::test]
async fn an_agent_that_crashes_in_a_call_is_charged_with_its_status() {
    let bench = Bench::new();
    // It is killed after its first words, and the shell ends with a status of its own.
    let script = "\"$RINGER\" agent --listen \"$LISTEN\" --log agent.jsonl & \
                  until grep -q '\"speech.ended\",\"side\":\"agent\"' agent.jsonl; do sleep 0.1; done; kill -9 $!; exit 7";
    let talks = "  - name: crashes\n    goal: Hello. I need an appointment.\n    expect: [{ heard: booked }]\n";
    bench.write("crashes.yaml", &spawning(free_port(), script, talks));
    let ran = bench.run(&["crashes.yaml"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    check(&bench, &[("crashes", "failed", "MEDIA_TIMEOUT", "the agent's command ended with status 7")]);
}

/// Another program holds the port that the command would listen at: it would be tested in place of the agent.
#[tokio::test]
async fn a_port_that_is_taken_before_the_command_starts_calls_nobody() {
    let bench = Bench::new();
    let held = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = held.local_addr().expect("it is bound").port();
    bench.write("taken.yaml", &spawning(port, "exit 1", "  - name: somebody else\n    goal: Hello.\n"));
    let ran = bench.run(&["taken.yaml"]).await;
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains(&format!("127.0.0.1:{port}, where the agent's command is waited for, is taken")),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn an_agent_that_is_silent_is_charged() {
    let bench = Bench::new();
    // In virtual time, the user of the address names the fault of the sample agent.
    let connect = "sip: \"sip:one_way_audio@127.0.0.1:5080\"";
    let scenarios = "  - name: silent\n    goal: Hello. I need an appointment.\n    max_seconds: 60\n    expect: [{ metric: p95_agent_latency, at_most: 2 }]
  - name: said nothing\n    goal: Hello. I need an appointment.\n    max_seconds: 60\n    expect: [{ heard: booked }]
  - name: nothing is expected\n    goal: Hello. I need an appointment.\n    max_seconds: 60\n";
    bench.write("silent.yaml", &suite(connect, scenarios));
    let ran = bench.run(&["silent.yaml", "--sim"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    check(
        &bench,
        &[
            ("silent", "failed", "expectation", "the agent was silent where it could answer"),
            ("said nothing", "failed", "expectation", "the agent was silent where it could answer"),
            ("nothing is expected", "failed", "silent", "the agent was silent where it could answer"),
        ],
    );
}

#[tokio::test]
async fn a_call_without_any_media_is_nobodys_fault() {
    let bench = Bench::new();
    let desk = Answers::with(Manner::Mute).await;
    let connect = format!("sip: \"sip:desk@{}\"", desk.address);
    bench.write("mute.yaml", &suite(&connect, "  - name: mute\n    goal: Hello.\n    expect: [{ heard: hello }]\n"));
    let ran = bench.run(&["mute.yaml"]).await;
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    check(&bench, &[("mute", "unknown", "MEDIA_TIMEOUT", "")]);
}

#[tokio::test]
async fn a_model_that_answers_rubbish_leaves_what_it_judges_unknown() {
    let bench = Bench::new();
    let (address, _serving) = serve(Router::new().route("/v1/chat/completions", post(rubbish))).await;
    let config = format!("[language_model]\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\n");
    bench.write("rubbish.toml", &config);
    let scenarios = "  - name: rubbish\n    turns: [{ expect: { contains: press one } }]
    expect:\n      - { meaning: The agent greets the caller. }\n      - { heard: clinic }\n";
    bench.write("rubbish.yaml", &suite(DESK, scenarios));
    let ran = bench.run(&["rubbish.yaml", "--sim", "--config", "rubbish.toml"]).await;
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    check(&bench, &[("rubbish", "unknown", "expectation", "Judge answer could not be read")]);
    // Metrics that no model judges are reported.
    let expectations = bench.lines()[0]["expectations"].clone();
    let status: Vec<&Value> = expectations.as_array().expect("a list").iter().map(|one| &one["status"]).collect();
    assert_eq!(status, ["unknown", "passed"], "{expectations}");
}

/// Returns a completion, whole or in events, whose text is no verdict.
async fn rubbish(body: String) -> axum::response::Response {
    use axum::response::IntoResponse;
    let body: Value = serde_json::from_str(&body).expect("the request is JSON");
    let text = "The moon is made of cheese.";
    if body["stream"] == true {
        let delta = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
        return ([("content-type", "text/event-stream")], format!("data: {delta}\n\ndata: [DONE]\n\n")).into_response();
    }
    let whole = json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] });
    ([("content-type", "application/json")], whole.to_string()).into_response()
}

#[tokio::test]
async fn a_speech_server_that_dies_in_mid_run_is_not_the_agents_fault() {
    let bench = Bench::new();
    // It understands one stretch of speech, and is gone.
    let (understood, dying) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
    let end = dying.clone();
    let transcribe = move || {
        let (first, end) = (!understood.swap(true, Ordering::Relaxed), end.clone());
        async move {
            end.notify_one();
            let status = if first { 200 } else { 500 };
            let status = axum::http::StatusCode::from_u16(status).expect("a status");
            (status, [("connection", "close")], json!({ "text": "Thank you for calling the clinic." }).to_string())
        }
    };
    let router = Router::new().route("/v1/audio/transcriptions", post(transcribe));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move { dying.notified().await });
    let config =
        format!("[recognizer]\nkind = \"http\"\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\nfallback = false\n");
    bench.write("dies.toml", &config);
    // No time is expected of the agent, which shares a machine of unknown speed with this side.
    let scenarios = "  - name: dies\n    max_seconds: 60\n    turns:\n      - expect: { contains: thank you }
      - say: I would like to see a doctor.\n      - expect: { contains: date }
    expect: [{ heard: birth }, { metric: num_turns, at_least: 1 }]\n";
    bench.write("dies.yaml", &spawning(free_port(), AGENT, scenarios));
    let (ran, served) = tokio::join!(bench.run(&["dies.yaml", "--config", "dies.toml"]), async { serving.await });
    served.expect("it was there");
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    // The third turn; on a machine that is too slow for the first one's words that one too.
    check(&bench, &[("dies", "unknown", "expectation", "words of the turn were not heard")]);
    let line = &bench.lines()[0];
    assert!(
        line["own_faults"].as_array().is_some_and(|all| all.iter().any(|one| one["code"] == "recognizer_failed")),
        "{line}"
    );
    let status: Vec<&Value> =
        line["expectations"].as_array().expect("a list").iter().map(|one| &one["status"]).collect();
    assert_eq!(status, ["unknown", "passed"], "what needs no words is told: {line}");
}

#[tokio::test]
async fn a_pacing_that_slipped_is_not_the_agents_fault() {
    let bench = Bench::new();
    let scenarios = "  - name: slips\n    max_seconds: 90\n    turns:\n      - expect: { within_ms: 20000 }
      - say: I would like to see a doctor.\n      - expect: { within_ms: 1 }\n    expect: [{ metric: p95_agent_latency, at_most: 0.001 }]\n";
    bench.write("slips.yaml", &spawning(free_port(), AGENT, scenarios));
    let mut command = bench.command(&["slips.yaml"]);
    let run = command.spawn().expect("it starts");
    let id = run.id().expect("it runs");
    let log = bench.path().join("agent.jsonl");
    let slipping = async {
        // The agent greets: the call goes on.
        let mut look = interval(Duration::from_millis(50));
        while !std::fs::read_to_string(&log).is_ok_and(|text| text.contains("speech.started")) {
            look.tick().await;
        }
        let engine = engine_of(id).expect("the engine is a child of the run");
        signal(engine, libc::SIGSTOP);
        // The time that the engine is missing, which is what is tried.
        sleep(Duration::from_millis(600)).await;
        signal(engine, libc::SIGCONT);
    };
    timeout(PATIENCE, slipping).await.expect("the agent is called");
    let out = timeout(RUN, run.wait_with_output()).await.expect("it ends in time").expect("it ran");
    assert_eq!(out.status.code(), Some(3), "{}", String::from_utf8_lossy(&out.stdout));
    check(&bench, &[("slips", "unknown", "expectation", "turn 3: ")]);
    let line = &bench.lines()[0];
    assert_eq!(line["engine_quality"]["trusted"], false, "{line}");
    assert!(line["own_faults"].as_array().is_some_and(|all| all.iter().any(|one| one["code"] == "pacing")), "{line}");
}

/// Returns the engine that a run has started.
fn engine_of(run: u32) -> Option<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{run}/task")).ok()?;
    let children: Vec<String> = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let is_engine = |id: &&String| {
        let words = std::fs::read(Path::new("/proc").join(id).join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"up")
    };
    children.iter().find(is_engine)?.parse().ok()
}

fn signal(process: i32, signal: i32) {
    // SAFETY: sends a signal to a process that this test has started; takes no pointer.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

/// Serves until the guard is dropped; tells the address.
#[expect(clippy::disallowed_methods, reason = "a server of a test, ended with it")]
pub(super) async fn serve(router: Router) -> (std::net::SocketAddr, tokio_util::sync::DropGuard) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let stop = tokio_util::sync::CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        let _ = stopped.run_until_cancelled(async move { axum::serve(listener, router).await }).await;
    });
    (address, stop.drop_guard())
}
