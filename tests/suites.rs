//! Suites beside an agent's code, by the program: exit codes, whose fault a call's end is, and what a run leaves.

mod answers;
mod blame;
mod greetings;
mod judges;
mod limits;
mod models;
mod outside;
mod planted;
mod replay;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_media::seed::Seed;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::ringer;

/// A folder with suites, and runs in it.
struct Bench {
    folder: TempDir,
}

/// Time that a run may take on a busy machine: several calls, one after the other, each in real time.
const RUN: Duration = Duration::from_secs(480);

/// Output and exit code of a run.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("the folder for temporary files is writable") }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        path
    }

    /// Returns `ringer run` in the folder, with what it prints piped.
    fn command(&self, args: &[&str]) -> Command {
        self.program(&[&["run"], args].concat())
    }

    /// Returns the program in the folder, with what it prints piped.
    fn program(&self, args: &[&str]) -> Command {
        let mut command = ringer(args);
        command.current_dir(self.path()).stderr(std::process::Stdio::piped());
        command
            .env("RINGER_LOG", "error")
            .env("CI", "1")
            .env_remove("GITHUB_STEP_SUMMARY")
            .env("SUITE_TOKEN", "hush-hush");
        command
    }

    async fn run(&self, args: &[&str]) -> Ran {
        self.await_end(self.command(args)).await
    }

    async fn await_end(&self, mut command: Command) -> Ran {
        let out = timeout(RUN, command.output()).await.expect("it ends in time").expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
        Ran { code: out.status.code().unwrap_or(-1), out: text(out.stdout), err: text(out.stderr) }
    }

    fn lines(&self) -> Vec<Value> {
        let text =
            std::fs::read_to_string(self.path().join("ringer-results/results.jsonl")).expect("there are results");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

fn suite(connect: &str, scenarios: &str) -> String {
    format!("version: 1\nconnect: {{ {connect} }}\nscenarios:\n{scenarios}")
}

const DESK: &str = "sip: \"sip:desk@127.0.0.1:5080\"";
const BOOKS: &str = "  - name: books a visit
    tags: [smoke]
    goal: I need an appointment. The third of March. Yes please.
    traits: { date_of_birth: \"The third of March.\" }
    endpointing_delay: 1
    max_seconds: 90
    expect:
      - { heard: booked }
      - { ended_by: agent }
";

#[tokio::test]
async fn nothing_is_called_where_something_is_wrong() {
    let bench = Bench::new();
    bench.write("good.yaml", &suite(DESK, BOOKS));
    bench.write("bad.yaml", &suite(DESK, "  - name: x\n    expct: []\n"));
    bench.write("room.yaml", &suite("room: \"http://127.0.0.1:1\", topic: x", "  - name: y\n"));
    bench.write("secret.yaml", &suite("sip: \"${SUITE_TOKEN}\", user: x", "  - name: z\n"));
    bench.write("twice.yaml", &suite(DESK, "  - name: books a visit\n"));
    let headers = "sip: \"sip:desk@127.0.0.1:5080\", headers: { X-Id: +14155550100, X-N: 1.10 }";
    bench.write("numbers.yaml", &suite(headers, "  - name: n\n"));
    bench.write("list.yaml", &suite("sip: \"sip:desk@127.0.0.1:5080\", headers: { X-Id: [1] }", "  - name: l\n"));
    bench.write("metric.yaml", &suite(DESK, "  - name: m\n    expect: [{ metric: p95_agent_latncy, at_most: 1 }]\n"));
    bench.write("dialect.yaml", &suite("ws: \"ws://127.0.0.1:1\", dialect: twilio_media_stream", "  - name: d\n"));
    let odd = "  - name: o\n    traits: [{ trait_name: day, trait_data_type: DATE, value: soon }]\n";
    bench.write("trait.yaml", &suite(DESK, odd));
    std::fs::create_dir(bench.path().join("full")).expect("it is made");
    bench.write("full/precious.txt", "mine");
    for (args, code, said) in [
        (&["bad.yaml"][..], 2, "bad.yaml:5:5: expct is not known, did you mean expect?"),
        (&["room.yaml"], 2, "topic is not known"),
        (&["none.yaml"], 2, "none.yaml: No such file"),
        (&["good.yaml", "--filter", "boks a visit"], 2, "did you mean books a visit?"),
        (&["good.yaml", "--tag", "none"], 2, "no scenario matches"),
        (&["good.yaml", "--shard", "5/4"], 2, "a shard is K/N"),
        (&["good.yaml", "twice.yaml"], 2, "the name 'books a visit' is in good.yaml too"),
        (&["good.yaml", "--out", "full"], 2, "no run has made this folder"),
        (&["good.yaml", "--baseline", "full"], 2, "results.jsonl"),
        (&["good.yaml", "--sed", "1"], 2, "--sed"),
        (&["secret.yaml"], 2, "user is not known"),
        (&["good.yaml", "--server", "http://127.0.0.1:1"], 2, "RINGER_API_KEY is not set"),
        (&["good.yaml", "--list"], 0, "books a visit [smoke]"),
        (&["good.yaml", "--dry-run"], 0, "\"suite_name\": \"books a visit\""),
        (&["numbers.yaml", "--dry-run"], 0, "\"X-Id\": \"+14155550100\""),
        (&["list.yaml", "--dry-run"], 2, "list.yaml:2:61: headers: Input should be a valid string"),
        (
            &["metric.yaml"],
            2,
            "metric.yaml:5:24: the metric p95_agent_latncy is not known, did you mean p95_agent_latency?",
        ),
        (&["metric.yaml", "--dry-run"], 2, "metric.yaml:5:24: the metric p95_agent_latncy is not known"),
        (&["dialect.yaml", "--dry-run"], 2, "dialect.yaml:2:45: connect: 400: Unknown websocket_dialect"),
        (&["dialect.yaml", "--dry-run"], 2, "did you mean twilio_media_streams?"),
        (&["trait.yaml", "--dry-run"], 2, "trait.yaml:5:14: scenario 'o': 400: value of trait day is not a valid DATE"),
        (&["trait.yaml"], 2, "trait.yaml:5:14: scenario 'o': 400: value of trait day is not a valid DATE"),
        (&["--metrics"], 0, "p95_agent_latency"),
        (&["--schema"], 0, "\"enriched_playback\""),
    ] {
        let ran = bench.run(args).await;
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(said) || ran.err.contains(said), "{args:?}: {}{}", ran.out, ran.err);
        assert!(!ran.out.contains("hush-hush") && !ran.err.contains("hush-hush"), "{args:?}");
    }
    assert_eq!(std::fs::read_to_string(bench.path().join("full/precious.txt")).expect("it is there"), "mine");
    // One of two shards has nothing of one scenario: that is no fault.
    let mut codes = Vec::new();
    for shard in ["1/2", "2/2"] {
        codes.push(bench.run(&["good.yaml", "--shard", shard, "--list"]).await.out.contains("books a visit"));
    }
    codes.sort_unstable();
    assert_eq!(codes, [false, true]);
}

#[tokio::test]
async fn calls_in_virtual_time_end_by_their_gates() {
    let bench = Bench::new();
    bench.write("good.yaml", &suite(DESK, BOOKS));
    let ran = bench.run(&["good.yaml", "--sim", "--repeat", "2", "--seed", "7"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let lines = bench.lines();
    let seeds: Vec<u64> = lines.iter().filter_map(|line| line["seed"].as_u64()).collect();
    assert_eq!(seeds, [7, 8]);
    for line in &lines {
        assert_eq!((&line["verdict"], line["schema_version"].as_i64()), (&Value::from("passed"), Some(2)), "{line}");
    }
    let folder = bench.path().join("ringer-results");
    for file in ["junit.xml", "report.html", "recordings/books-a-visit-7.wav"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    // The next run replaces what this one has made.
    let wrong = BOOKS.replace("heard: booked", "heard: pineapple");
    bench.write("good.yaml", &suite(DESK, &wrong));
    let before = bench.path().join("before");
    std::fs::rename(&folder, &before).expect("it is moved");
    let ran = bench.run(&["good.yaml", "--sim", "--seed", "7", "--baseline", "before"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("the agent did not say 'pineapple'"), "{}", ran.out);
    assert!(ran.out.contains("1 worse, 0 better of 1 pairs"), "{}", ran.out);
    assert!(folder.join("evidence/books-a-visit-7.tar").is_file(), "what failed has its evidence");
    // Without a model a meaning is not known, which is nobody's fault.
    let meant = BOOKS.replace("heard: booked", "meaning: A day is named.");
    bench.write("good.yaml", &suite(DESK, &meant));
    let ran = bench.run(&["good.yaml", "--sim", "--json"]).await;
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    let document: Value = serde_json::from_str(ran.out.trim()).expect("one JSON object");
    assert_eq!(
        (&document["verdict"], &document["scenarios"][0]["gate"]),
        (&Value::from("unknown"), &Value::from("unknown"))
    );
}

#[test]
fn the_seed_of_a_suite_follows_from_the_name() {
    // Value that the docs promise, by hand: SHA-256("7:books a visit:0:"), first 53 bits.
    let seed = Seed::of("7:books a visit:0:");
    assert!(seed.0 < 1 << 53);
    assert_ne!(seed, Seed::of("8:books a visit:0:"));
}

/// The suites of the examples, in virtual time and without a model; their schema takes what they are written in.
#[tokio::test]
async fn examples_pass_and_fit_their_schema() {
    let bench = Bench::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let ran = bench.run(&[examples, "--sim"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(bench.lines().len(), 5);

    let schema = bench.run(&["--schema"]).await.out;
    let schema =
        jsonschema::validator_for(&serde_json::from_str(&schema).expect("it is JSON")).expect("it is a schema");
    let text = std::fs::read_to_string(Path::new(examples).join("clinic.yaml")).expect("it is there");
    let fits =
        |text: &str| schema.is_valid(&ringer::suite::yaml::parse(text, "clinic.yaml").expect("it is YAML").json());
    assert!(fits(&text));
    for (word, wrong) in [
        ("tags: [smoke]", "tag: [smoke]"),
        ("version: 1", "version: 2"),
        ("at_most: 2.5", "at_most: soon"),
        ("dtmf:", "keys:"),
    ] {
        assert!(text.contains(word) && !fits(&text.replace(word, wrong)), "{wrong}");
    }
}
