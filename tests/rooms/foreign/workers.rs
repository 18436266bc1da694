//! Workers of an agents framework that the room server dispatches: a caller who joins hears the whole greeting, where
//! it was said.

use std::process::Stdio;

use ringer::clock::Clock;
use serde_json::Value;
use tokio::process::Command;

use super::server;
use crate::program::{Program, ringer};
use crate::rooms::server::{KEY, SECRET};

/// Tolerance of the length of the greeting and of its place, in milliseconds: the detector's and the framework's own
/// buffers.
const TOLERANCE_MS: f64 = 100.0;

/// Returns the interpreter that has the framework, which `make rooms` installs.
#[expect(clippy::disallowed_methods, reason = "no setting of the product: an interpreter of the tests")]
fn interpreter() -> Option<String> {
    std::env::var("RINGER_AGENTS_PYTHON").ok().filter(|path| !path.is_empty())
}

/// A line that a program told, and when it was read, in milliseconds since 1970.
struct PrintedLine {
    line: Value,
    read_ms: f64,
}

/// Reads lines up to the event of this name; returns all of them.
async fn until(program: &mut Program, name: &str) -> Vec<PrintedLine> {
    let mut all: Vec<PrintedLine> = Vec::new();
    while all.last().is_none_or(|line_of| line_of.line["event"] != name) {
        let line = serde_json::from_str(&program.line().await).expect("each line is JSON");
        all.push(PrintedLine { line, read_ms: Clock::Real.now_ms() as f64 });
    }
    all
}

fn events_of<'a>(all: &'a [PrintedLine], name: &str, side: Option<&str>) -> Vec<&'a PrintedLine> {
    let is_wanted =
        |line_of: &&PrintedLine| line_of.line["event"] == name && side.is_none_or(|side| line_of.line["side"] == side);
    all.iter().filter(is_wanted).collect()
}

fn number(line_of: &PrintedLine, key: &str) -> f64 {
    line_of.line[key].as_f64().unwrap_or_else(|| panic!("no {key}: {}", line_of.line))
}

/// Calls a worker that greets, and compares what the timeline says of the greeting with what the worker says.
async fn hear_the_greeting(url: &str, name: &str, flags: &[&str]) {
    let Some(interpreter) = interpreter() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/worker.py");
    let mut command = Command::new(interpreter);
    command.arg(script).args([url, KEY, SECRET, name]).args(flags);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut worker = Program::start(&mut command);
    until(&mut worker, "registered").await;
    let to = format!("room:{url}");
    let mut command = ringer(&["call", &to, "--agent-name", name, "--json", "--max-seconds", "8"]);
    command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET).stderr(Stdio::inherit());
    let mut caller = Program::start(&mut command);
    let heard = until(&mut caller, "report").await;
    let report = &heard.last().expect("it is the last").line;
    assert_eq!((&report["ok"], &report["codec"]), (&true.into(), &"OPUS".into()), "{report}");
    let spoken = until(&mut worker, "spoke").await;
    // A sentence at a time, one behind the other.
    let (made, speaks) = (events_of(&spoken, "synthesized", None), events_of(&spoken, "speaks", None)[0]);
    let (last, before) = made.split_last().expect("it was made");
    let first_ms = number(made[0], "first") * 1000.0;
    let last_ms = (number(last, "last") + before.iter().map(|made| number(made, "seconds")).sum::<f64>()) * 1000.0;
    let [begun, ended] = ["speech.started", "speech.ended"].map(|event| events_of(&heard, event, Some("agent")));
    let (begun_ms, ended_ms) = (number(begun[0], "offset_ms"), number(ended[ended.len() - 1], "offset_ms"));
    // The event is told in the first tick, which is as long behind sample 0 as media could come before it.
    let connected = events_of(&heard, "call.connected", None)[0];
    let place_ms = connected.read_ms + begun_ms - (number(speaks, "at") * 1000.0 + first_ms);
    let missing_ms = last_ms - first_ms - (ended_ms - begun_ms);
    println!(
        "{flags:?}: {missing_ms:.0} ms of the greeting are missing; it begins {place_ms:.0} ms after the worker's word"
    );
    assert!(missing_ms.abs() < TOLERANCE_MS, "{missing_ms} ms of {first_ms} to {last_ms} ms are missing");
    assert!(place_ms.abs() < TOLERANCE_MS, "it begins {place_ms} ms after the worker's word");
    assert!(caller.wait_for_end().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greeting_of_a_worker_is_heard_where_it_was_said() {
    let Some(url) = server() else { return };
    hear_the_greeting(&url, "desk", &[]).await;
}

/// It publishes its track and speaks into it at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_waits_for_nobody_is_heard_from_its_first_word() {
    let Some(url) = server() else { return };
    hear_the_greeting(&url, "hasty", &["--hasty"]).await;
}
