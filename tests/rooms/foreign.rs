//! The room server that the protocol comes from, or another one of it: `make rooms` builds and starts it. Its address
//! comes by `RINGER_ROOM_SERVER`, its key and secret are those of the tests; without an address there is nothing to
//! test.

mod workers;

use std::process::Stdio;
use std::sync::Arc;

use ringer::clock::{Clock, random_seed};
use ringer::config::Secret;
use ringer::provider::guard::Guard;
use ringer::provider::post::Poster;
use ringer::transport::room::RoomEnd;
use ringer::transport::room::access::{RoomKey, RoomServer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::alone::setup::{joins, judge};
use super::conversations::SPEECH;
use super::guests::{Guest, talk_to, target_in};
use super::official::official_at;
use super::server::{KEY, SECRET};
use crate::program::{PATIENCE, Program, ringer};

/// Returns the address of the server that is to be tested.
#[expect(clippy::disallowed_methods, reason = "no setting of the product: which server is tested")]
fn server() -> Option<String> {
    std::env::var("RINGER_ROOM_SERVER").ok().filter(|url| !url.is_empty())
}

/// Returns the name of a room that nobody else has.
fn new_name() -> String {
    format!("ringer-test-{:016x}", random_seed())
}

/// Speech, tools, words, keys and states cross, and the leave of the agent is its hang-up.
#[tokio::test(flavor = "multi_thread")]
async fn this_side_and_an_official_agent_meet_in_it() {
    let Some(url) = server() else { return };
    let room = new_name();
    let agent = official_at(&url, "agent-1", &["--room", &room]).await;
    talk_to(agent, Guest::join_at(target_in(&room, &url)).await).await;
}

/// A room that is removed through the server's own API ends the call as the agent does that hangs up.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_is_removed_ends_the_call() {
    let Some(url) = server() else { return };
    let room = new_name();
    let _agent = official_at(&url, "agent-1", &["--room", &room]).await;
    let mut guest = Guest::join_at(target_in(&room, &url)).await;
    guest.hears().await;
    let key = RoomKey { key: KEY.to_owned(), secret: Secret::new(SECRET.to_owned()) };
    let poster = Arc::new(Poster::new(Guard::new(true), PATIENCE));
    let api = RoomServer::new(&url, key, poster, Clock::Real).expect("an address");
    api.remove(&room).await.expect("it is removed");
    assert_eq!(guest.wait_ended().await, RoomEnd::AgentLeft);
}

/// The program joins a room by its own token, hears the agent there and answers it, and hangs up.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_calls_an_official_agent_in_it() {
    let Some(url) = server() else { return };
    let (room, to) = (new_name(), format!("room:{url}"));
    let flags = ["--room", &room, "--speech", SPEECH, "--seconds", "3"];
    let agent = official_at(&url, "agent-1", &flags).await;
    let mut command = ringer(&["call", &to, "--room", &room, "--json", "--max-seconds", "12"]);
    command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET).stderr(Stdio::inherit());
    let mut caller = Program::start(&mut command);
    let report = loop {
        let line: Value = serde_json::from_str(&caller.line().await).expect("each line is JSON");
        if line["event"] == "report" {
            break line;
        }
    };
    assert_eq!((&report["ok"], &report["codec"]), (&true.into(), &"OPUS".into()), "{report}");
    assert!(report["received_packets"].as_u64() > Some(100), "{report}");
    agent.sees(|seen| seen["loud"].as_u64() > Some(20)).await;
    assert!(caller.wait_for_end().await.success());
}

/// Calls are set up over one connection, and over two where a relay in front of the server knows no other form.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_set_up_in_it_without_waits() {
    let Some(url) = server() else { return };
    for (what, url) in [("one connection", url.clone()), ("two connections", without_joint(&url).await)] {
        let room = new_name();
        let _agent = official_at(&url, "agent-1", &["--room", &room]).await;
        judge(&format!("foreign rooms over {what}"), joins(|| target_in(&room, &url)).await);
    }
}

/// Starts a relay of connections to the server at `url` that knows no single connection, until the end of the test's
/// runtime.
async fn without_joint(url: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
    let relay = format!("ws://{}", listener.local_addr().expect("it is bound"));
    let server = url.trim_start_matches("ws://").to_owned();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let server = server.clone();
            #[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
            tokio::spawn(async move {
                let mut line = [0; 12];
                if near.peek(&mut line).await.is_ok() && line.starts_with(b"GET /rtc/v1") {
                    let _ = near.read(&mut [0; 8192]).await;
                    return drop(near.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await);
                }
                let mut far = TcpStream::connect(server).await.expect("the server is there");
                drop(copy_bidirectional(&mut near, &mut far).await);
            });
        }
    });
    relay
}

/// Rooms are created and removed, and a participant of this program's is the agent in each.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_are_measured_in_it() {
    let Some(url) = server() else { return };
    let to = format!("room:{url}");
    let mut command = ringer(&["load", &to, "--far", "--calls", "3", "--seconds", "2", "--json"]);
    command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET).stderr(Stdio::piped());
    let mut load = Program::start(&mut command);
    let figures: Value = serde_json::from_str(&load.line().await).expect("it prints one object");
    assert_eq!((&figures["connected"], &figures["failed"]), (&3.into(), &0.into()), "{figures}");
    assert!(figures["far_side"]["received"].as_u64() > Some(200), "{figures}");
    let output = load.child.wait_with_output().await.expect("it is our child");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !printed.contains("was not removed"), "{printed}");
}
