//! Words of a call to a room: the room and its server, the agent that did not come, and a room server that is taken for
//! an agent.

use std::process::Stdio;
use std::time::Duration;

use ringer::engine::Destination;
use ringer::transport::room::{Credentials, Patience, RoomTerms};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::conversations::placement;
use super::official::official;
use super::server::{Behaviour, KEY, RoomServer, SECRET};
use crate::calls::stage::Stage;
use crate::program::{PATIENCE, ringer};

/// Room, version of the server and form of the protocol are told; every line of standard output is JSON with
/// `--verbose`, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_tells_room_server_and_flow() {
    for (knows_joint, flow) in [(false, "two connections"), (true, "one connection")] {
        let server = RoomServer::with(Behaviour { knows_joint, ..Behaviour::default() }).await;
        let _agent = official(&server, "agent-1", &[]).await;
        let to = format!("room:{}", server.url);
        let mut command = ringer(&["call", &to, "--json", "--verbose", "--max-seconds", "2"]);
        command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET).stderr(Stdio::piped());
        let output = timeout(PATIENCE, command.output()).await.expect("in time").expect("it was built");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let at = lines.iter().position(|line| line["event"] == "call.connected").expect("it is connected");
        let data = json!({ "room": "room", "server_version": "1.9.0", "flow": flow });
        let joined = lines[at..].iter().find(|line| line["event"] == "channel_event").expect("an event of the room");
        assert_eq!(joined["data"], json!({ "name": "room_joined", "data": data }), "{out}");
        assert!(err.contains(&format!("is in the room room (version of the server: 1.9.0; {flow})")), "{err}");
        assert!(err.contains("network: "), "verbose lines: {err}");
        let report = lines.last().expect("a report");
        assert_eq!((&report["event"], &report["ok"]), (&json!("report"), &json!(true)), "{report}");
        assert!(!report["warnings"].to_string().contains("candidate"), "a path was found: {report}");
    }
}

/// The agent that was dispatched is named, where it does not come.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_come_is_named() {
    let (server, stage) = (RoomServer::start().await, Stage::new().await);
    for (agent_name, expect) in [
        ("desk", "the agent desk did not join the room within 0.5 s: is a worker registered under this name?"),
        ("", "no agent joined the room within 0.5 s"),
    ] {
        let mut placement = placement(&stage, &server, 1500);
        let Destination::Room(dial) = &mut placement.destination else { panic!("it is a room") };
        dial.patience = Patience { agent: Duration::from_millis(500), ..Patience::default() };
        dial.terms =
            RoomTerms { agent_name: agent_name.to_owned(), credentials: Credentials::Token, ..RoomTerms::default() };
        let report = stage.call(placement).await.expect("a place is free");
        let remote = report.ending.remote.expect("nobody came");
        assert_eq!(remote.text, format!("wait for the agent: {expect}"));
    }
    stage.engine.stop().await;
}

/// A room server refuses a token: the answer is its own, and what to check is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_told_with_what_to_check() {
    let server = RoomServer::start().await;
    let place = server.url.trim_start_matches("ws://").to_owned();
    let to = format!("room:{}", server.url);
    for (variables, flags, question) in [
        (
            &[("RINGER_ROOM_KEY", KEY), ("RINGER_ROOM_SECRET", "not-the-secret-of-this-server-at-all")][..],
            &["--room", "room"][..],
            "are RINGER_ROOM_KEY and RINGER_ROOM_SECRET those of this server?",
        ),
        (&[("RINGER_ROOM_TOKEN", "a.b.c")], &[], "is RINGER_ROOM_TOKEN a token of this server that has not expired?"),
    ] {
        let mut command = ringer(&["call", &to]);
        command.args(flags).envs(variables.iter().copied()).stderr(Stdio::piped());
        let output = timeout(PATIENCE, command.output()).await.expect("in time").expect("it was built");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{printed}");
        assert!(printed.contains(&format!("the room server at {place} refuses the token (401")), "{printed}");
        assert!(printed.contains(question), "{printed}");
    }
}

/// A room server at an address without `room:` is recognized, another server is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_server_that_is_called_as_an_agent_is_recognized() {
    let server = RoomServer::start().await;
    let other = super::answers::serve(super::answers::fixed_answer(404, "404 page not found")).await;
    for (to, hint) in [
        (server.url.clone(), Some(format!("; this may be a room server: use room:{}", server.url))),
        (format!("{}/rtc", server.url), Some(format!("; this may be a room server: use room:{}", server.url))),
        (other.replace("http", "ws"), None),
    ] {
        for flags in [&[][..], &["--check"]] {
            let mut command = ringer(&[&["call", to.as_str()], flags].concat());
            let output = timeout(PATIENCE, command.stderr(Stdio::piped()).output()).await.expect("in time");
            let output = output.expect("it was built");
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let printed = format!("{out}{err}");
            assert_eq!(output.status.code(), Some(4), "{printed}");
            let has_hint = hint.as_ref().map_or(printed.contains("room server"), |hint| printed.contains(hint));
            assert_eq!(has_hint, hint.is_some(), "{to} {flags:?}: {printed}");
        }
    }
}
