//! Suites whose agents are in rooms of a room server.

use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use super::conversations::SPEECH;
use super::official::official;
use super::server::{Behaviour, KEY, RoomServer, SECRET, lock, token};
use crate::program::ringer;

/// Time that a run may take on a busy machine.
const RUN: Duration = Duration::from_secs(240);

/// Exit code, output and errors of a run.
struct Ran {
    code: Option<i32>,
    output: String,
    folder: TempDir,
}

impl Ran {
    /// Returns the results of the calls.
    fn results(&self) -> Vec<Value> {
        let path = self.folder.path().join("ringer-results/results.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}: {}", self.output));
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

const BY_KEY: &[(&str, &str)] = &[("RINGER_ROOM_KEY", KEY), ("RINGER_ROOM_SECRET", SECRET)];

/// Runs a suite of this connection with as many scenarios.
async fn run(connect: &str, scenarios: usize, variables: &[(&str, &str)], flags: &[&str]) -> Ran {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let scenario = |n| {
        format!(
            "  - name: call {n}\n    max_seconds: 3\n    expect:\n      - {{ event: channel_event, at_least: 1 }}\n"
        )
    };
    let scenarios: String = (0..scenarios).map(scenario).collect();
    let suite = format!("version: 1\nconnect: {{ {connect} }}\nscenarios:\n{scenarios}");
    std::fs::write(folder.path().join("suite.yaml"), suite).expect("it is written");
    let mut command = ringer(&[&["run", "suite.yaml", "--concurrency", "2"], flags].concat());
    command.current_dir(folder.path()).stderr(Stdio::piped()).envs(variables.iter().copied());
    command.env("RINGER_LOG", "error").env("CI", "1").env_remove("GITHUB_STEP_SUMMARY");
    let output = timeout(RUN, command.output()).await.expect("it ends in time").expect("it starts");
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ran { code: output.status.code(), output: printed, folder }
}

/// Each call has a room of its own, with the agent that is named, and the room is removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_suite_reaches_an_agent_in_rooms_of_its_own() {
    let server = RoomServer::start().await;
    let _agent = official(&server, "agent-1", &["--speech", SPEECH]).await;
    let connect = format!("room: {}, agent_name: desk, metadata: {{ tenant: 42 }}", server.url);
    let ran = run(&connect, 1, BY_KEY, &[]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.output);
    assert_eq!(ran.results().len(), 1);
    let api = lock(&server.room.api).clone();
    let methods: Vec<&str> = api.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["CreateRoom", "DeleteRoom"], "{}", ran.output);
    let agent = &api[0].1["agents"][0];
    let metadata: Value = serde_json::from_str(agent["metadata"].as_str().expect("a text")).expect("JSON");
    assert_eq!((&agent["agent_name"], &metadata["tenant"]), (&json!("desk"), &json!(42)), "{agent}");
    assert_eq!(api[0].1["name"], api[1].1["room"]);
    for file in ["results.jsonl", "report.html", "junit.xml"] {
        let text = std::fs::read_to_string(ran.folder.path().join("ringer-results").join(file)).expect("it is there");
        assert!(!text.contains(SECRET), "{file} has the secret");
    }
    assert!(!ran.output.contains(SECRET), "{}", ran.output);
}

/// Calls that share a room are made one after the other: two at once with one token would put each other out.
#[tokio::test(flavor = "multi_thread")]
async fn a_suite_reaches_an_agent_in_a_room_that_is_there() {
    let server = RoomServer::with(Behaviour { has_rooms: true, ..Behaviour::default() }).await;
    let _agent = official(&server, "agent-1", &["--speech", SPEECH]).await;
    let ready = token("suite-1", Duration::from_secs(600));
    let by_token: &[(&str, &str)] = &[("RINGER_ROOM_TOKEN", &ready)];
    let url = &server.url;
    for (connect, variables) in [(format!("room: {url}"), by_token), (format!("room: {url}, room_name: room"), BY_KEY)]
    {
        let ran = run(&connect, 2, variables, &[]).await;
        assert_eq!(ran.code, Some(0), "{connect}: {}", ran.output);
        let results = ran.results();
        let verdicts: Vec<&Value> = results.iter().map(|result| &result["verdict"]).collect();
        assert_eq!(verdicts.len(), 2, "{connect}: {}", ran.output);
        assert!(!ran.output.contains(&ready), "{}", ran.output);
    }
    assert!(lock(&server.room.api).is_empty(), "no room is created or removed");
    assert_eq!(server.room.resumes.load(Ordering::Relaxed), 0);
}

/// A suite that cannot reach its room server says what is missing, and calls nobody.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_suite_needs_for_a_room_is_named() {
    let by_token: &[(&str, &str)] = &[("RINGER_ROOM_TOKEN", "a.b.c")];
    let server: &[(&str, &str)] = &[("RINGER_API_KEY", "x")];
    let room = "room: ws://127.0.0.1:1";
    for (more, variables, flags, expect) in [
        ("", &[][..], &[][..], "a room needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET, or RINGER_ROOM_TOKEN"),
        ("", &[], &["--dry-run"], "suite.yaml:2:18: a room needs RINGER_ROOM_KEY"),
        ("", &BY_KEY[..1], &[], "the secret of the room server's key is missing: RINGER_ROOM_SECRET"),
        (", room_name: r", by_token, &[], "room_name needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET"),
        ("", server, &["--server", "http://127.0.0.1:1"], "a server has its own keys of room servers"),
        (", token_auth: x", BY_KEY, &[], "token_auth is for a server of tokens"),
    ] {
        let ran = run(&format!("{room}{more}"), 1, variables, flags).await;
        assert_eq!(ran.code, Some(2), "{}", ran.output);
        assert!(ran.output.contains(expect), "{}", ran.output);
    }
    for (more, variables) in [("", BY_KEY), (", room_name: r", BY_KEY), ("", by_token)] {
        let ran = run(&format!("{room}{more}"), 1, variables, &["--dry-run"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.output);
        assert!(
            ran.output.contains(r#""server": "ws://127.0.0.1:1""#) && !ran.output.contains(SECRET),
            "{}",
            ran.output
        );
    }
    let shared = format!("{room}, room_name: r, agent_name: desk");
    for (calls, code) in [(1, 0), (2, 2)] {
        let ran = run(&shared, calls, BY_KEY, &["--dry-run"]).await;
        let is_told = ran.output.contains("agent_name with room_name is for one call, and the run makes 2");
        assert_eq!((ran.code, is_told), (Some(code), code == 2), "{}", ran.output);
    }
    let ran = run("room: ftp://127.0.0.1", 1, BY_KEY, &["--dry-run"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.output);
}

/// Credentials that the room server refuses are no failure of the agent, and their variables are named.
#[tokio::test(flavor = "multi_thread")]
async fn a_suite_whose_key_is_refused_says_which() {
    let server = RoomServer::start().await;
    let variables = [("RINGER_ROOM_KEY", KEY), ("RINGER_ROOM_SECRET", "not-the-secret-of-this-server-at-all")];
    let ran = run(&format!("room: {}, room_name: room", server.url), 1, &variables, &[]).await;
    assert_eq!(ran.code, Some(4), "{}", ran.output);
    let results = json!(ran.results()).to_string();
    assert!(results.contains("refuses the token (401"), "{results}");
}
