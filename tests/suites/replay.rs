//! Calls played again with one thing changed, and calls through several lines, by the program.

use std::path::Path;

use serde_json::{Value, json};

use super::blame::free_port;
use super::{BOOKS, Bench, DESK, Ran, suite};
use crate::program::{KEY, Program, up};

/// A caller who cuts in at the end of the greeting: an agent that does not yield speaks on for less than a second.
const CUTS_IN: &str = "  - name: cuts in
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - interrupt: { after_ms: 5700, say: \"Excuse me, I have one question for you.\" }
      - expect: { within_ms: 5000 }
    expect: [{ metric: overlap_percentage, at_most: 19 }]
";

impl Bench {
    async fn replay(&self, args: &[&str]) -> Ran {
        self.await_end(self.program(&[&["replay"], args].concat())).await
    }

    async fn replay_json(&self, args: &[&str], code: i32) -> Value {
        let ran = self.replay(&[args, &["--json"]].concat()).await;
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
        serde_json::from_str(&ran.out).expect("one JSON object")
    }
}

/// Returns a suite that starts the sample agent on a port of this machine.
fn spawning(port: u16, codecs: &str, scenarios: &str) -> String {
    let listen = format!("udp:127.0.0.1:{port},tcp:127.0.0.1:{port}");
    let spawn = json!({
        "command": [env!("CARGO_BIN_EXE_ringer"), "agent", "--listen", listen],
        "ready": { "tcp": format!("127.0.0.1:{port}"), "within_s": 60 },
    });
    let connect = format!("{{ sip: \"sip:desk@127.0.0.1:{port}\"{codecs} }}");
    format!("version: 1\nconnect: {connect}\nspawn: {spawn}\nscenarios:\n{scenarios}")
}

#[tokio::test]
async fn an_unchanged_replay_in_virtual_time_is_the_same_bytes() {
    let bench = Bench::new();
    bench.write("calls.yaml", &suite(DESK, &format!("{BOOKS}{CUTS_IN}")));
    bench.run(&["calls.yaml", "--sim", "--repeat", "2"]).await;
    let told = bench.replay_json(&["ringer-results"], 0).await;
    assert_eq!(told["identical"], json!({ "same": 4, "compared": 4 }), "{told}");
    let base = &told["base"];
    assert_eq!((&base["parted"], &base["compared"], &base["tolerance_ms"]), (&json!(0), &json!(4), &json!(0.0)));
    assert_eq!((&base["outcome"]["worse"], &base["outcome"]["better"]), (&json!(0), &json!(0)));
    assert_eq!(told["arms"], json!([]));
    for name in ["replay.json", "report.html", "results.jsonl"] {
        assert!(bench.path().join("ringer-replay").join(name).is_file(), "{name}");
    }

    // A file that is another one by now is told, and so are its calls.
    bench.write(
        "calls.yaml",
        &suite(DESK, &format!("{BOOKS}{CUTS_IN}").replace("endpointing_delay: 1", "endpointing_delay: 1.4")),
    );
    let told = bench.replay_json(&["ringer-results", "--filter", "books"], 1).await;
    assert_eq!(told["identical"], json!({ "same": 0, "compared": 2 }), "{told}");
    let note = told["notes"][0].as_str().expect("a note");
    assert!(note.contains("have changed since") && note.contains("books a visit"), "{told}");
    assert_eq!(told["base"]["parted"], 2);
}

#[tokio::test]
async fn a_change_tells_where_calls_part_and_by_how_much() {
    let bench = Bench::new();
    let bounded = BOOKS.replace("expect:\n", "expect:\n      - { metric: p50_agent_latency, at_most: 1 }\n");
    bench.write("calls.yaml", &suite(DESK, &bounded));
    let ran = bench.run(&["calls.yaml", "--sim"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let flags = ["ringer-results", "--repeat", "6", "--change", "latency=+400ms", "--change", "noise=tv:30dB"];
    let told = bench.replay_json(&flags, 0).await;
    let late = &told["arms"][0];
    assert_eq!((&late["name"], &late["compared"], &late["parted"]), (&json!("latency=+400ms"), &json!(6), &json!(6)));
    let outcome = &late["outcome"];
    assert_eq!(
        (&outcome["pairs"], &outcome["worse"], &outcome["untold"]),
        (&json!(6), &json!(6), &json!(0)),
        "{outcome}"
    );
    assert_eq!(outcome["pass_rate"], json!([1.0, 0.0]));
    assert!(outcome["p"].as_f64().is_some_and(|p| (p - 0.03125).abs() < 1e-9), "{outcome}");
    let by = &outcome["p50_agent_latency"]["difference"];
    for key in ["value", "low", "high"] {
        assert!(by[key].as_f64().is_some_and(|by| (0.35..=0.45).contains(&by)), "{key}: {by}");
    }
    for call in late["calls"].as_array().expect("calls") {
        // The first words of the caller come later to the agent, and so its first answer.
        let parts = &call["parts"];
        assert_eq!(parts["side"], "agent", "{call}");
        assert!(parts["says"].as_str().is_some_and(|says| says.contains("later")), "{call}");
    }
    assert_eq!(told["arms"][1]["name"], "noise=tv:30dB");
    assert_eq!(told["base"]["compared"], 1, "the results have one call");
    assert_eq!(told["identical"], json!({ "same": 1, "compared": 1 }));
}

#[tokio::test]
async fn a_barge_in_at_another_time_shows_an_agent_that_does_not_yield() {
    let bench = Bench::new();
    // Fewer than six pairs tell no difference.
    for (agent, worse) in [("does_not_yield", 8), ("desk", 0)] {
        bench.write("calls.yaml", &suite(&format!("sip: \"sip:{agent}@127.0.0.1:5080\""), CUTS_IN));
        bench.run(&["calls.yaml", "--sim", "--repeat", "8"]).await;
        let told = bench.replay_json(&["ringer-results", "--change", "barge_in_at=1500ms"], 0).await;
        let arm = &told["arms"][0];
        assert_eq!((&arm["parted"], &arm["compared"]), (&json!(8), &json!(8)), "{agent}: {arm}");
        let parts = &arm["calls"][0]["parts"];
        assert!(
            parts["says"].as_str().is_some_and(|says| says.starts_with("4200 ms earlier, at 2.")),
            "{agent}: {parts}"
        );
        let outcome = &arm["outcome"];
        let counts = ["worse", "better", "untold"].map(|key| outcome[key].as_u64());
        assert_eq!(counts, [Some(worse), Some(0), Some(0)], "{agent}: {outcome}");
        let overlap = &outcome["metrics"]["overlap_percentage"];
        assert_eq!(overlap["is_told"], true, "{agent}: {overlap}");
        let by = overlap["difference"]["value"].as_f64().expect("a number");
        assert_eq!(by > 5.0, worse > 0, "{agent}: {overlap}");
    }
}

#[tokio::test]
async fn a_replay_that_cannot_be_is_refused_before_a_call() {
    let bench = Bench::new();
    bench.write("calls.yaml", &suite(DESK, BOOKS));
    bench.run(&["calls.yaml", "--sim"]).await;
    let line = std::fs::read_to_string(bench.path().join("ringer-results/results.jsonl")).expect("results");
    let mut line: Value = serde_json::from_str(line.trim()).expect("one line");
    let seedless = {
        line["seed"].take();
        line.to_string()
    };
    bench.write("seedless.jsonl", &seedless);
    bench.write("other.json", "{\"a\": 1}");
    bench.write("broken.jsonl", "{\n{");
    for (args, expect) in [
        (&["nowhere"][..], "RESULT nowhere: No such file"),
        (&["12"], "RESULT 12: there is no such folder; the id of a result needs --server"),
        (&["seedless.jsonl"], "RESULT seedless.jsonl: line 1: the result has no seed"),
        (&["other.json"], "RESULT other.json: line 1: it is no result of ringer run"),
        (&["broken.jsonl"], "RESULT broken.jsonl: line 1: it is no JSON"),
        (&["ringer-results", "--change", "noise=caffe"], "there is no \"caffe\", did you mean cafe?"),
        (&["ringer-results", "--change", "latency=-1ms"], "latency=-1ms: it is +1ms to +5000ms"),
        (&["ringer-results", "--change", "colour=red"], "\"colour\" cannot be changed"),
        (&["ringer-results", "--change", "noise=none"], "scenario 'books a visit': noise=none changes nothing"),
        (&["ringer-results", "--change", "speed=fast", "--change", "speed=fast"], "--change speed=fast is given twice"),
        (&["ringer-results", "--filter", "pays"], "--filter pays: no scenario of"),
        (&["ringer-results", "--out", "."], "no run has made this folder"),
        (&["ringer-results", "--out", "./ringer-results"], "the results lie there, and would be replaced"),
    ] {
        let ran = bench.replay(args).await;
        assert!(ran.code == 2 && ran.err.contains(expect), "{args:?}: {} {}{}", ran.code, ran.out, ran.err);
    }
    bench.write("calls.yaml", &suite(DESK, &BOOKS.replace("books a visit", "books")));
    let ran = bench.replay(&["ringer-results"]).await;
    assert!(ran.code == 2 && ran.err.contains("the scenario 'books a visit' of the results is gone"), "{}", ran.err);
    std::fs::remove_file(bench.path().join("calls.yaml")).expect("it is there");
    let ran = bench.replay(&["ringer-results"]).await;
    assert!(ran.code == 2 && ran.err.contains("calls.yaml: the file of the suite is gone"), "{}", ran.err);
}

/// The agent of the results has gone: nothing is told, and nobody is charged.
#[tokio::test]
async fn an_agent_that_is_not_reached_is_no_difference() {
    let bench = Bench::new();
    let port = free_port();
    bench.write("calls.yaml", &suite(&format!("sip: \"sip:desk@127.0.0.1:{port}\""), BOOKS));
    bench.run(&["calls.yaml"]).await;
    let told = bench.replay_json(&["ringer-results", "--change", "latency=+400ms"], 4).await;
    let outcome = &told["arms"][0]["outcome"];
    assert_eq!((&outcome["pairs"], &outcome["untold"], &outcome["difference"]), (&json!(0), &json!(1), &Value::Null));
    let reason = outcome["untold_reason"].as_str().expect("a reason");
    assert!(reason.contains(&format!("127.0.0.1:{port}")), "{reason}");
}

#[tokio::test]
async fn lines_are_held_against_wideband_by_pairs() {
    let bench = Bench::new();
    bench.write("calls.yaml", &suite(DESK, &BOOKS.replace("    tags", "    noise: park\n    tags")));
    let ran = bench.run(&["--sim", "--repeat", "4", "calls.yaml", "--lines"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for part in [
        "5 % of the packets that the caller sends are lost, each by itself",
        "eight voices, crockery and music (cafe) 10 dB below",
        "Conditions of scenarios that the lines replace: books a visit (background_noise)",
        "Words misheard are not known",
        "books a visit [loss5]",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    assert!(!ran.out.contains("imitated"), "the noise was made before the calls: {}", ran.out);
    let lines = bench.lines();
    assert_eq!(lines.len(), 16);
    let seeds =
        |line: &str| -> Vec<&Value> { lines.iter().filter(|one| one["arm"] == line).map(|one| &one["seed"]).collect() };
    assert_eq!(seeds("wideband"), seeds("babble"));
    let sent = |name: &str, seed: u64| event(bench.path(), &format!("books-a-visit-{name}-{seed}"), "call.connected");
    assert_eq!(sent("pcmu", 1)["codec"], "PCMU");
    assert_ne!(sent("wideband", 1)["codec"], "PCMU");
    // What is lost is what the agent hears: this side hears all of it.
    let lossy: Vec<&Value> = lines.iter().filter(|one| one["arm"] == "loss5").map(|one| &one["impairment"]).collect();
    let sum: f64 = lossy.iter().filter_map(|one| one["sent_loss_pct"].as_f64()).sum();
    assert!((3.5..6.5).contains(&(sum / 4.0)), "{lossy:?}");
    assert!(lossy.iter().all(|one| one["received_loss_pct"] == 0.0), "{lossy:?}");
    let good = lines.iter().filter(|one| one["arm"] != "loss5");
    assert!(good.into_iter().all(|one| one["impairment"].is_null()), "nothing else is lost");
    let junit = std::fs::read_to_string(bench.path().join("ringer-results/junit.xml")).expect("a report");
    assert!(junit.contains("[pcmu] [seed 3]") && junit.contains("words misheard"), "{junit}");
    let page = std::fs::read_to_string(bench.path().join("ringer-results/report.html")).expect("a report");
    assert!(page.contains("What each line costs the agent"));
}

/// Returns the data of the first event of a name in a kept timeline.
fn event(folder: &Path, name: &str, wanted: &str) -> Value {
    let path = folder.join(format!("ringer-results/timelines/{name}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.into_iter().find(|event| event["event"] == wanted).expect("it is there")["data"].clone()
}

/// Lines other than wideband do not gate unless they are to; agents that write have none.
#[tokio::test]
async fn only_the_lines_that_gate_decide_the_exit_code() {
    let bench = Bench::new();
    let scenario =
        "  - name: talks\n    goal: I need an appointment. The third of March. Yes please.\n    max_seconds: 90
    expect: [{ metric: p95_agent_latency, at_most: 1.1 }]\n";
    bench.write("calls.yaml", &suite(DESK, scenario));
    let flags = ["calls.yaml", "--sim", "--repeat", "6", "--lines", "babble", "--json"];
    let ran = bench.run(&flags).await;
    let told: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    let babble = &told["lines"][1];
    assert_eq!((&told["lines"][0]["line"], &babble["line"]), (&json!("wideband"), &json!("babble")));
    let against = &babble["against_wideband"];
    assert_eq!(against["pairs"].as_u64().map(|pairs| pairs + against["untold"].as_u64().unwrap_or(0)), Some(6));
    assert_eq!(ran.code, 0, "{told}");
    // Babble holds the end of a turn back, and the agent answers a third of a second later.
    let by = &against["p95_agent_latency"]["difference"];
    assert!(by["low"].as_f64().is_some_and(|low| low > 0.1), "{by}");
    assert_eq!((&against["worse"], &babble["passed"]), (&json!(6), &json!(0)), "{against}");
    let gated = bench.run(&[&flags[..], &["--gate-lines", "all"]].concat()).await;
    assert_eq!(gated.code, 1, "{}{}", gated.out, gated.err);
    for (flags, expect) in [
        (&["--lines", "lte"][..], "--lines lte: \"lte\" is no line"),
        (&["--gate-lines", "pcmu"], "--gate-lines needs --lines"),
    ] {
        let ran = bench.run(&[&["calls.yaml", "--sim"], flags].concat()).await;
        assert!(ran.code == 2 && ran.err.contains(expect), "{}", ran.err);
    }
    bench.write(
        "writes.yaml",
        &suite("chat: \"http://127.0.0.1:9/v1\", model: m", "  - name: writes\n    goal: Hello.\n"),
    );
    let ran = bench.run(&["writes.yaml", "--lines"]).await;
    assert!(ran.code == 2 && ran.err.contains("the agent writes: no line"), "{}", ran.err);
}

/// One call of each command in real time: the codec of the line is negotiated, and a replay
/// tells how much the agent varies by itself.
#[tokio::test]
async fn lines_and_replays_are_had_in_real_time_too() {
    let bench = Bench::new();
    let greets = "  - name: greets
    max_seconds: 20
    turns:
      - expect: { within_ms: 9000 }
      - say: \"I would like to see a doctor.\"
      - expect: { within_ms: 9000 }
";
    bench.write("calls.yaml", &spawning(free_port(), ", codecs: [G722, PCMU]", greets));
    let ran = bench.run(&["calls.yaml", "--lines", "pcmu,loss5"]).await;
    assert!([0, 3].contains(&ran.code), "{}{}", ran.out, ran.err);
    let codec = |line: &str| event(bench.path(), &format!("greets-{line}-1"), "call.connected")["codec"].clone();
    assert_eq!([codec("wideband"), codec("pcmu"), codec("loss5")], ["G722", "PCMU", "G722"]);
    let ran = bench.run(&["calls.yaml"]).await;
    assert!([0, 3].contains(&ran.code), "{}{}", ran.out, ran.err);
    let told = bench.replay(&["ringer-results", "--change", "latency=+300ms", "--json"]).await;
    let told: Value = serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{}{}", told.out, told.err));
    assert_eq!((&told["identical"], &told["base"]["tolerance_ms"]), (&Value::Null, &json!(200.0)));
    assert_eq!((&told["base"]["compared"], &told["arms"][0]["compared"]), (&json!(1), &json!(1)));
}

/// A result of a server is played again by its id, by a copy of its caller that draws the same.
#[tokio::test]
async fn a_result_of_a_server_is_played_again() {
    let bench = Bench::new();
    let mut engine = Program::start(up(bench.path()).arg("--sim").env("RINGER_SECURITY_ALLOW_PRIVATE_AGENTS", "true"));
    let base = engine.address("http://").await;
    bench.write("calls.yaml", &suite(DESK, BOOKS));
    let mut run = bench.command(&["calls.yaml", "--server", &base, "--seed", "5"]);
    run.env("RINGER_API_KEY", KEY);
    let ran = bench.await_end(run).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let id = bench.lines()[0]["result_id"].as_str().expect("an id").to_owned();
    let replay = async |args: &[&str]| {
        let mut command = bench.program(&[&["replay", "--server", &base, "--json"], args].concat());
        command.env("RINGER_API_KEY", KEY);
        bench.await_end(command).await
    };
    let ran = replay(&[&id]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let told: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    let calls = &told["base"]["calls"];
    assert_eq!((&told["base"]["parted"], &told["base"]["compared"]), (&json!(0), &json!(1)), "{told}");
    assert!(calls[0]["call"].as_str().is_some_and(|call| call.ends_with("[seed 5]")), "{calls}");
    let ran = replay(&[&id, "--change", "latency=+400ms", "--repeat", "2"]).await;
    let told: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(told["arms"][0]["parted"], 2, "{told}");
    let ran = replay(&["99999"]).await;
    assert!(ran.code == 2 && ran.err.contains("result 99999 is not there"), "{} {}", ran.code, ran.err);
}
