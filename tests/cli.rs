//! The commands as a shell sees them: what they print, what they refuse, how they end, what they leave.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use ringer_media::clip::Clip;
use ringer_media::recording::WAV_HEADER;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::{KEY, PATIENCE, Program, ringer, up};

/// The exit code of `ringer call` when nothing answered at the address.
const UNREACHABLE: i32 = 4;
/// The exit code of a command whose lines nobody read.
const NOT_READ: i32 = 141;
/// Search path without any program.
const NOWHERE: &str = "/nowhere";

fn folder() -> TempDir {
    tempfile::tempdir().expect("the folder for temporary files is writable")
}

/// Runs a command to its end and returns its output.
async fn run_to_end(command: &mut Command) -> Output {
    timeout(PATIENCE, command.output()).await.expect("it ends in time").expect("the program was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command whose output nobody reads; returns its exit code and its standard error. `also`: nobody reads that
/// either.
async fn unread(args: &[&str], folder: &Path, also: bool) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().expect("there are descriptors");
    drop(reader);
    let mut command = ringer(args);
    command.current_dir(folder).env("TMPDIR", folder);
    match also {
        true => command.stderr(writer.try_clone().expect("there are descriptors")),
        false => command.stderr(Stdio::piped()),
    };
    let child = command.stdout(writer).spawn().expect("the program was built");
    let output = timeout(PATIENCE, child.wait_with_output()).await.expect("it ends in time").expect("it is our child");
    (output.status.code(), text(&output.stderr))
}

/// Returns the agent's process, which answers one call, writes a log into `folder` and then ends by itself; and its
/// address.
async fn agent(folder: &Path, ports: &str) -> (Program, String) {
    let mut command = ringer(&["agent", "--listen", "127.0.0.1:0", "--once", "1", "--rtp-ports", ports]);
    let mut agent = Program::start(command.arg("--log").arg(folder.join("agent.log")));
    let address = agent.address("sip:").await;
    (agent, address)
}

/// The agent's call was ended by the caller's BYE.
async fn told_goodbye(agent: Program, folder: &Path) {
    assert_eq!(end_of(agent, folder).await, "agent_hangup");
}

/// The reason for which the agent's call ended.
async fn end_of(mut agent: Program, folder: &Path) -> String {
    assert!(agent.wait_for_end().await.success());
    let log = std::fs::read_to_string(folder.join("agent.log")).expect("it wrote a log");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ended = lines.iter().find(|line| line["event"] == "call.ended").expect("the call ended");
    ended["data"]["reason"].as_str().expect("a word").to_owned()
}

/// True if the folder for temporary files is empty after a command.
fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("it is there").next().is_none()
}

#[tokio::test]
async fn no_command_panics_when_nobody_reads_it() {
    let folder = folder();
    for args in [
        &["openapi"][..],
        &["doctor"],
        &["doctor", "--json"],
        &["config", "check"],
        &["config", "check", "--json"],
        &["keys", "create"],
        &["keys", "create", "--json"],
        &["keys", "list"],
        &["keys", "list", "--json"],
        &["sim", "--calls", "2"],
        &["sim", "--json"],
        &["call", "sip:nobody@127.0.0.1:9"],
        &["--help"],
    ] {
        let (code, said) = unread(args, folder.path(), false).await;
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        // Help is the parser's, which is quiet.
        assert!(code == Some(NOT_READ) || args == ["--help"], "{args:?}: {code:?}: {said}");
    }
    for args in [&["keys", "list", "--data", "typo"][..], &["call", "sip:nobody@127.0.0.1:9", "--record", "no/x.wav"]] {
        assert_eq!(unread(args, folder.path(), true).await.0, Some(1), "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_reads_any_more_is_hung_up() {
    let (folder, scratch) = (folder(), folder());
    let (agent, address) = agent(folder.path(), "38400-38449").await;
    let mut command = ringer(&["call", &address, "--record", "call.wav"]);
    command.current_dir(folder.path()).env("TMPDIR", scratch.path()).stderr(Stdio::piped());
    let mut caller = command.spawn().expect("the program was built");
    let mut lines = BufReader::new(caller.stdout.take().expect("it is piped")).lines();
    let mut said = String::new();
    while !said.contains("agent    answers") {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it says something in time");
        said = line.expect("it is text").expect("it goes on");
    }
    drop(lines);
    let ended = timeout(PATIENCE, caller.wait_with_output()).await.expect("it ends in time").expect("it is our child");
    let said = text(&ended.stderr);
    assert!(ended.status.code() == Some(NOT_READ) && !said.contains("ringer:") && !said.contains("panicked"), "{said}");
    told_goodbye(agent, folder.path()).await;
    let file = std::fs::read(folder.path().join("call.wav")).expect("what was recorded is kept");
    assert!(Clip::from_wav(&file).is_ok());
    assert!(is_empty(scratch.path()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_checked_in_steps() {
    let folder = folder();
    let (agent, address) = agent(folder.path(), "38550-38599").await;
    let output = run_to_end(&mut ringer(&["call", "--check", &address, "--json"])).await;
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let names: Vec<&str> =
        report["steps"].as_array().expect("steps").iter().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!(
        (output.status.code(), names),
        (Some(0), vec!["resolved", "connected", "answered", "first_sound"]),
        "{report}"
    );
    assert!(
        report["steps"].as_array().expect("steps").iter().all(|step| step["ms"].is_u64() && step["ok"] == true),
        "{report}"
    );
    told_goodbye(agent, folder.path()).await;
    for (args, code, said) in [
        (&["call", "--check", "ws://127.0.0.1:9/"][..], UNREACHABLE, "connected    failed after"),
        (&["call", "--check", "sip:nobody@127.0.0.1:9"], UNREACHABLE, "failed after"),
        (&["call", "--check", "sip:nobody@no-such-host.invalid"], UNREACHABLE, "resolved     failed after"),
        (&["call", "--check", "sip:nobody@127.0.0.1:9", "--dialect", "raw_pcm16"], 2, ""),
    ] {
        let output = run_to_end(ringer(args).stderr(Stdio::piped())).await;
        let all = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {all}{}", text(&output.stderr));
        assert!(all.contains(said), "{args:?}: {all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_told_to_end_is_reported_whole() {
    for (signal, ports) in [(libc::SIGTERM, "38450-38499"), (libc::SIGINT, "38500-38549")] {
        let (folder, scratch) = (folder(), folder());
        let (agent, address) = agent(folder.path(), ports).await;
        let mut command = ringer(&["call", &address, "--json", "--seed", "7", "--record", "call.wav"]);
        let mut caller = Program::start(command.current_dir(folder.path()).env("TMPDIR", scratch.path()));
        let mut next = async || -> Value { serde_json::from_str(&caller.line().await).expect("each line is JSON") };
        assert_eq!(next().await, json!({ "event": "calling", "to": address, "seed": 7 }));
        // The agent greets.
        while next().await["event"] != "speech.started" {}
        let process = caller.child.id().expect("it runs");
        // SAFETY: a signal to a child that is not reaped yet: its number is still its own.
        unsafe { libc::kill(process as libc::pid_t, signal) };
        let mut next = async || -> Value { serde_json::from_str(&caller.line().await).expect("each line is JSON") };
        let mut report = next().await;
        while report["event"] != "report" {
            report = next().await;
        }
        assert_eq!(caller.wait_for_end().await.code(), Some(0), "{report}");
        let part = |names: &[&str]| -> Vec<Value> { names.iter().map(|name| report[name].clone()).collect() };
        let (known, expect) = (
            ["ok", "error", "seed", "connected", "end_reason", "codec", "recording"],
            json!([true, null, 7, true, "api_hangup", "G722", "call.wav"]),
        );
        assert_eq!(Value::from(part(&known)), expect, "{report}");
        let measured =
            part(&["duration_ms", "pacing_p50_ms", "pacing_p99_ms", "sent_frames", "lost_packets", "concealed_ms"]);
        assert!(measured.iter().all(Value::is_number) && report["warnings"].is_array(), "{report}");
        told_goodbye(agent, folder.path()).await;
        let file = std::fs::read(folder.path().join("call.wav")).expect("it was recorded");
        assert!(Clip::from_wav(&file).is_ok());
        let recorded_ms = (file.len() - WAV_HEADER) as f64 / 4.0 / 16.0;
        let told_ms = report["duration_ms"].as_f64().expect("a number");
        assert!((recorded_ms - told_ms).abs() <= 20.0, "{recorded_ms} ms of {told_ms} ms");
        assert!(is_empty(scratch.path()));
    }
}

/// A call that is over.
struct Called {
    said: Output,
    address: String,
    /// The reason that the agent's side tells.
    agent_ended: String,
    /// One of the sides could not make its speech.
    gave_up: bool,
}

/// Calls the sample agent, and presses a key.
async fn table_for_two(scratch: &Path) -> Called {
    let folder = folder();
    let (agent, address) = agent(folder.path(), "38550-38599").await;
    let mut command = ringer(&["call", &address, "--seed", "7", "--dtmf", "1", "--max-seconds", "60"]);
    command.args(["--intent", "I need a table for two."]);
    let said = run_to_end(command.current_dir(folder.path()).env("TMPDIR", scratch)).await;
    let agent_ended = end_of(agent, folder.path()).await;
    let gave_up = agent_ended == "fault" || text(&said.stdout).contains("ended: fault");
    Called { said, address, agent_ended, gave_up }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_told_to_a_person_in_words() {
    let scratch = folder();
    // A machine under load may not make speech within the 10 s that a text has: either side then gives up, and says so.
    let (mut called, mut tries) = (table_for_two(scratch.path()).await, 1);
    while called.gave_up && tries < 4 {
        (called, tries) = (table_for_two(scratch.path()).await, tries + 1);
    }
    let Called { said, address, agent_ended, .. } = called;
    let printed = text(&said.stdout);
    assert_eq!(said.status.code(), Some(0), "{printed}{}", text(&said.stderr));
    assert_eq!(agent_ended, "agent_hangup", "{printed}");
    println!("{printed}");
    assert!(!printed.contains(['{', '}', '\x1b']) && !printed.contains("offset_ms"), "{printed}");
    let (events, summary) = printed.split_once("\n\n").expect("a blank line is before the summary");
    let mut events = events.lines();
    assert_eq!(events.next(), Some(format!("calling {address} (seed 7)").as_str()));
    let mut latencies = Vec::new();
    let events: Vec<(&str, &str)> = events
        .map(|line| {
            let (time, rest) = line.split_at(9);
            assert!(time.trim().parse::<f64>().is_ok() && rest.starts_with(" s  "), "{line}");
            let (name, what) = rest[4..].split_at(9);
            assert!(["caller   ", "agent    ", "engine   "].contains(&name), "{line}");
            let latency = what.split_once("(latency ").map(|(_, ms)| ms.trim_end_matches(" ms)").to_owned());
            latencies.extend(latency);
            (name.trim(), what)
        })
        .collect();
    let is_told = |who: &str, words: &str| events.iter().any(|(name, what)| *name == who && what.contains(words));
    for (who, words) in [
        ("caller", "calls sip:desk@"),
        ("agent", "answers, codec G722"),
        ("caller", "presses 1 (telephone event)"),
        ("caller", "I need a table for two."),
        ("caller", "ends the call: "),
    ] {
        assert!(is_told(who, words), "{who}: {words}: {printed}");
    }
    assert!(!latencies.is_empty(), "the agent answers the caller: {printed}");
    let why = events.iter().find_map(|(_, what)| what.strip_prefix("ends the call: "));
    for line in [
        format!("ended: {}, after ", why.expect("it was told")),
        format!("latency of the agent's turns: {} ms", latencies.join(", ")),
        "interruptions: ".to_owned(),
        "sent: ".to_owned(),
        "received: ".to_owned(),
    ] {
        assert!(summary.lines().any(|printed| printed.starts_with(&line)), "{line}: {printed}");
    }
}

#[tokio::test]
async fn a_call_that_nobody_takes_is_reported_too() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("there are ports");
    let address = format!("sip:nobody@{}", free.local_addr().expect("it is bound"));
    drop(free);
    let said = run_to_end(&mut ringer(&["call", &address, "--json"])).await;
    let lines: Vec<Value> =
        text(&said.stdout).lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { panic!("it says nothing") };
    assert_eq!((&first["event"], &first["to"]), (&json!("calling"), &json!(address)));
    assert!(first["seed"].is_u64() && last["seed"] == first["seed"], "{first} {last}");
    assert_eq!((&last["event"], &last["ok"], &last["connected"]), (&json!("report"), &json!(false), &json!(false)));
    let why = last["error"].as_str().expect("a text");
    assert!(why.starts_with("not connected"), "{why}");
    assert_eq!(said.status.code(), Some(UNREACHABLE));
    assert!(text(&said.stderr).ends_with(&format!("ringer: {why}\n")), "{}", text(&said.stderr));
    let said = run_to_end(&mut ringer(&["call", &address])).await;
    let printed = text(&said.stdout);
    let last = printed.lines().last().expect("it says something");
    assert!(last.starts_with("ended: ") && last.ends_with(", after 0.00 s"), "{printed}");
    assert_eq!(said.status.code(), Some(UNREACHABLE));
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_done() {
    let folder = folder();
    let somebody = "sip:a@127.0.0.1:9";
    for (args, code, why) in [
        (&["call", "sip:"][..], 2, "it must be of the form sip:<user>@<host>"),
        (&["call", "sip:a@127.0.0.1;transport=sctp"], 2, "SIP is spoken over UDP, TCP and TLS alone"),
        (&["call", somebody, "--header", "Call-ID: x"], 2, "Call-ID is written by the call itself"),
        (&["call", somebody, "--header", "X Run: x"], 2, "is no name of a header"),
        (&["call", somebody, "--record", "none/x.wav"], 1, "none/x.wav cannot be written"),
        (&["keys", "list", "--data", "typo"], 1, "there is no database in the folder typo"),
        (&["keys", "revoke", "x", "--data", "typo"], 1, "there is no database in the folder typo"),
    ] {
        let said = run_to_end(ringer(args).current_dir(folder.path())).await;
        assert_eq!((said.status.code(), text(&said.stdout).as_str()), (Some(code), ""), "{args:?}");
        assert!(text(&said.stderr).contains(why), "{args:?}: {}", text(&said.stderr));
    }
    assert!(is_empty(folder.path()));
}

#[tokio::test]
async fn a_missing_speaker_is_named_before_anything_is_done() {
    let folder = folder();
    for (args, packages) in [
        (&["call", "sip:a@127.0.0.1:9", "--json"][..], "apt-get install flite\n"),
        (&["agent", "--listen", "127.0.0.1:0", "--log", "log"], "apt-get install flite\n"),
        (&["demo", "--keep", "kept"], "apt-get install flite espeak-ng\n"),
    ] {
        let said =
            run_to_end(ringer(args).current_dir(folder.path()).env("TMPDIR", folder.path()).env("PATH", NOWHERE)).await;
        assert_eq!((said.status.code(), text(&said.stdout).as_str()), (Some(1), ""), "{args:?}");
        assert!(text(&said.stderr).ends_with(packages), "{args:?}: {}", text(&said.stderr));
        assert!(is_empty(folder.path()), "{args:?}");
    }
}

#[tokio::test]
async fn an_engine_starts_and_says_what_is_weak() {
    let folder = folder();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = up(folder.path());
    command.env("PATH", NOWHERE).env("RINGER_BOOTSTRAP_KEY", KEY).env("RINGER_LIMITS_MAX_CALLS", "999999");
    let mut engine = Program::start(command.args(["--rtp-ports", "39000-39001"]).stderr(Stdio::piped()));
    let mut log = engine.child.stderr.take().expect("it is piped");
    let line = engine.line().await;
    let capacity = "at most 1 call (limits.max_calls is 999999, and sip.rtp_ports has no more pairs of ports)";
    assert!(line.starts_with("ringer is ready: ") && line.ends_with(capacity), "{line}");
    engine.kill().await;
    let mut said = String::new();
    log.read_to_string(&mut said).await.expect("it is text");
    assert!(said.contains("flite is missing") && said.contains("ringer doctor"), "{said}");
    assert!(KEY.len() >= 16 && !said.contains("bootstrap"), "{said}");
    assert!(said.contains("other users can read the data folder") && said.contains("chmod -R go= "), "{said}");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(folder.path()), 0o755, "what was there is left as it is");
    for entry in std::fs::read_dir(folder.path()).expect("it is ours") {
        let path = entry.expect("an entry").path();
        let expect = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expect, "{}", path.display());
    }
}

#[tokio::test]
async fn keys_of_a_dialect_without_hosts_are_not_sent_anywhere() {
    let folder = folder();
    let settings = folder.path().join("r.toml");
    let file =
        |more: &str| format!("[websocket.dialects.desk]\nkind = 'twilio_media_streams'\nsigning_key = 'k'\n{more}");
    std::fs::write(&settings, file("")).expect("it is written");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("it is made");
    let said = run_to_end(up(&data).arg("--config").arg(&settings)).await;
    let printed = text(&said.stderr);
    assert!(
        said.status.code() == Some(1) && printed.contains("[websocket.dialects.desk] has headers or keys and no hosts"),
        "{printed}"
    );
    std::fs::write(&settings, file("hosts = ['agent.example.com']")).expect("it is written");
    let mut engine = Program::start(up(&data).arg("--config").arg(&settings));
    assert!(engine.line().await.contains("ringer is ready"));
    engine.kill().await;
}

#[tokio::test]
async fn a_bootstrap_key_that_can_be_guessed_is_refused() {
    let folder = folder();
    let said = run_to_end(up(folder.path()).env("RINGER_BOOTSTRAP_KEY", "fifteen letters")).await;
    let printed = text(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("bootstrap_key must have at least 16 characters") && !printed.contains("fifteen"),
        "{printed}"
    );
    assert!(is_empty(folder.path()), "nothing was made");
}

#[tokio::test]
async fn keys_are_kept_where_the_flag_says_on_either_side() {
    let folder = folder();
    let run = async |args: &[&str]| {
        let said = run_to_end(ringer(&[&["keys"], args].concat()).current_dir(folder.path())).await;
        (said.status.code(), text(&said.stdout), text(&said.stderr))
    };
    let (code, key, said) = run(&["create", "--data", "kept", "--name", "one"]).await;
    assert!(code == Some(0) && key.starts_with("rk_"), "{said}");
    let (code, made, said) = run(&["--data", "kept", "create", "--name", "two", "--json"]).await;
    let made: Value = serde_json::from_str(&made).expect("JSON was asked for");
    assert!(code == Some(0) && made["api_key"].as_str().is_some_and(|key| key.starts_with("rk_")), "{said}");
    assert_eq!((&made["name"], &made["scope"]), (&json!("two"), &json!("admin")));
    let (code, listed, _) = run(&["list", "--data", "kept"]).await;
    assert_eq!((code, listed.lines().count()), (Some(0), 2), "{listed}");
    assert!(!listed.contains(key.trim()), "a key is shown once");
    let (code, listed, said) = run(&["list", "--data", "kept", "--organization", "nope"]).await;
    assert_eq!((code, listed.as_str()), (Some(1), ""));
    assert_eq!(said, "ringer: there is no organization \"nope\"\n");
}

#[tokio::test]
async fn a_first_suite_is_written_and_run() {
    let folder = folder();
    let at = |words: &[&str]| {
        let mut command = ringer(words);
        command.current_dir(folder.path()).stderr(Stdio::piped());
        command
    };
    let made = run_to_end(&mut at(&["init", "--kind", "sample", "--ci", "github", "--no-call"])).await;
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let said = text(&made.stdout);
    for part in ["wrote calls/first.yaml", "wrote .github/workflows/ringer.yml", "next: ringer run calls"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let workflow = std::fs::read_to_string(folder.path().join(".github/workflows/ringer.yml")).expect("a workflow");
    assert!(workflow.contains("run: ringer run calls"), "{workflow}");
    let again = run_to_end(&mut at(&["init", "--kind", "sample", "--ci", "none", "--no-call"])).await;
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("calls/first.yaml exists"), "{}", text(&again.stderr));
    let ran = run_to_end(&mut at(&["run", "calls", "--sim"])).await;
    assert_eq!(ran.status.code(), Some(0), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let nobody = run_to_end(&mut at(&["init", "--kind", "sip", "--folder", "more"])).await;
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody.stderr).contains("--address is missing"), "{}", text(&nobody.stderr));
}

#[tokio::test]
async fn shells_and_man_know_the_subcommands() {
    for (words, parts) in [
        (&["completions", "bash"][..], ["_ringer()", "--baseline"]),
        (&["completions", "zsh"], ["#compdef ringer", "--baseline"]),
        (&["completions", "fish"], ["complete -c ringer", "baseline"]),
        (&["man"], [".TH ringer 1", "storage"]),
    ] {
        let printed = run_to_end(&mut ringer(words)).await;
        assert_eq!(printed.status.code(), Some(0), "{words:?}");
        let printed = text(&printed.stdout);
        assert!(parts.iter().all(|part| printed.contains(part)), "{words:?}: {printed}");
    }
}

#[tokio::test]
async fn evidence_is_verified_by_keys_from_elsewhere() {
    let folder = folder();
    let mut engine = Program::start(up(folder.path()).arg("--sim"));
    let base = engine.address("http://").await;
    let ask = async |path: &str, body: Option<Value>| {
        let client = crate::program::client();
        let url = format!("{base}{path}");
        let request = body.map_or_else(|| client.get(&url), |body| client.post(&url).json(&body));
        let answer = request.header("x-api-key", KEY).timeout(PATIENCE).send().await.expect("it answers");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.bytes().await.expect("a body")
    };
    let read = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).expect("JSON") };
    let agent =
        json!({ "name": "Desk", "type": "INBOUND", "connection_type": "SIP", "sip_uri": "sip:desk@127.0.0.1:9" });
    let agent = read(&ask("/v1/add-agent", Some(agent)).await)["agent_id"].to_string();
    let simulation = read(&ask("/v1/create-simulation", Some(json!({ "agent_id": agent, "name": "One" }))).await);
    let simulation = simulation["simulation_id"].clone();
    let human = json!({ "digital_human": { "intent": "Hello.", "language": "en" }, "simulation_ids": [simulation] });
    ask("/v1/create-digital-human", Some(human)).await;
    ask("/v1/queue-simulation-run", Some(json!({ "simulation_id": simulation.to_string(), "seed": 7 }))).await;
    let stream = ask("/v1/simulation-run/1/events", None).await;
    assert!(text(&stream).contains("event: end"));
    let save = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("a file");
    let archive = ask("/v1/simulation-result/1/evidence", None).await;
    save("call.tar", &archive);
    save("keys.json", &ask("/v1/evidence-keys", None).await);
    save("chain.json", &ask("/v1/simulation-run/1/evidence-chain", None).await);
    let mut changed = archive.to_vec();
    let at = changed.windows(4).position(|four| four == b"RIFF").expect("a recording") + 2000;
    changed[at] ^= 1;
    save("changed.tar", &changed);
    save("empty.txt", b"nothing");
    for (words, code, part) in [
        (&["call.tar", "chain.json", "--key", "keys.json"][..], 0, "its manifest is in the chain"),
        (&["call.tar"], 3, "signed by an unknown key "),
        (&["changed.tar", "--key", "keys.json"], 1, "BROKEN: recording.wav was changed"),
        (&["call.tar", "--key", &"ab".repeat(32)], 1, "and not by"),
        (&["call.tar", "--key", "nothing"], 2, "is neither a key"),
        (&["call.tar", "--key", "empty.txt"], 2, "there is no key in this file"),
        (&["empty.txt"], 2, "empty.txt: "),
        (&["gone.tar"], 2, "gone.tar: No such file"),
    ] {
        let mut command = ringer(&["verify"]);
        let ran = run_to_end(command.args(words).current_dir(folder.path()).stderr(Stdio::piped())).await;
        let said = text(&ran.stdout) + &text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
}
