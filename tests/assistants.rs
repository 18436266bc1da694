//! `ringer mcp` and `/mcp`, by the official client of the Model Context Protocol in Python (`make peers` installs it).

use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::{KEY, PATIENCE, Program, client, program, up};

/// Suite of two scenarios for the sample agent.
const SUITE: &str = "version: 1
connect: { sip: \"sip:desk@127.0.0.1:5080\" }
scenarios:
  - { name: books a visit, goal: I would like to book a visit., expect: [{ metric: num_turns, at_least: 2 }] }
  - { name: waits for the impossible, goal: I would like to book a visit., expect: [{ metric: num_turns, at_least: 900 }] }
";

/// Carries out a plan of an assistant; what it saw.
async fn assist(plan: Value) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join(".venv/bin/python"));
    command.arg(root.join("tests/python/assistant.py")).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; `make peers` installs it"));
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(plan.to_string().as_bytes()).await.expect("it reads");
    drop(stdin);
    let out = timeout(2 * PATIENCE, child.wait_with_output()).await.expect("in time").expect("it ends");
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out.stdout)))
}

/// Carries out steps of an assistant that starts `ringer mcp` itself; `plan` has what is special.
async fn by_stdio(flags: &[&str], plan: Value) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let args = [&["mcp", "--sim"], flags].concat();
    let mut whole = json!({
        "command": program(), "args": args, "cwd": folder.path(),
        "env": { "XDG_DATA_HOME": "/nonexistent" },
    });
    whole.as_object_mut().expect("a map").extend(plan.as_object().expect("a map").clone());
    let saw = assist(whole).await;
    assert!(saw["raised"].is_null(), "{saw}");
    saw
}

/// An engine of a test, whose calls are in virtual time.
struct Served {
    _program: Program,
    _folder: TempDir,
    url: String,
}

impl Served {
    async fn start(settings: &str) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ringer.toml"), settings).expect("a file");
        let mut program = Program::start(up(folder.path()).arg("--sim"));
        let url = program.address("http://").await;
        Served { _program: program, _folder: folder, url }
    }

    async fn assist(&self, key: &str, plan: Value) -> Value {
        let mut whole = json!({ "url": format!("{}/mcp", self.url), "headers": { "x-api-key": key } });
        whole.as_object_mut().expect("a map").extend(plan.as_object().expect("a map").clone());
        assist(whole).await
    }

    /// Makes a key of this scope.
    async fn key(&self, scope: &str) -> String {
        let made = client().post(format!("{}/v1/api-keys", self.url)).header("x-api-key", KEY);
        let made = made.json(&json!({ "name": "assistant", "scope": scope })).send().await.expect("it answers");
        made.json::<Value>().await.expect("JSON")["api_key"].as_str().expect("a key").to_owned()
    }
}

/// Checks what an assistant saw that ran the suite and read all of it.
fn check_suite(saw: &Value) {
    let run = &saw["seen"][0];
    assert_eq!((&run["error"], &run["value"]["verdict"]), (&json!(false), &json!("failed")), "{saw}");
    let scenarios = run["value"]["scenarios"].as_array().expect("scenarios");
    let gates: Vec<&str> = scenarios.iter().filter_map(|one| one["gate"].as_str()).collect();
    assert_eq!(gates, ["passed", "failed"], "{run}");
    let reason = scenarios[1]["calls"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("num_turns") && reason.contains("900"), "{reason}");
    let progress = run["progress"].as_array().expect("a list");
    assert_eq!(progress.last().map(|last| [&last[0], &last[1]]), Some([&json!(2.0), &json!(2.0)]), "{run}");
    assert_eq!(saw["seen"][1]["value"], run["value"], "it is read later as it was told");
    let result = &saw["seen"][2]["value"];
    assert_eq!((&result["over"], &result["verdict"]["word"]), (&json!(true), &json!("failed")), "{result}");
    let said = result["transcript"].as_array().expect("lines");
    assert!(said.iter().any(|line| line.as_str().is_some_and(|line| line.starts_with("AGENT: "))), "{result}");
    assert!(result["turns"].as_array().expect("turns").iter().any(|turn| turn["latency_ms"].is_number()), "{result}");
    let timeline = &saw["seen"][3];
    assert_eq!(timeline["mimeType"], "application/json");
    let timeline: Value = serde_json::from_str(timeline["text"].as_str().expect("text")).expect("JSON");
    assert!(timeline["events"].as_array().is_some_and(|events| events.len() > 5), "{timeline}");
    for (at, mime, magic) in [(4, "audio/ogg", &b"OggS"[..]), (5, "audio/wav", b"RIFF")] {
        let file = &saw["seen"][at];
        // A client over HTTP takes no event as long as this file: it does not ask for it.
        if at == 5 && file.is_null() {
            continue;
        }
        let bytes = STANDARD.decode(file["blob"].as_str().unwrap_or_else(|| panic!("a blob: {file}"))).expect("base64");
        assert_eq!((&file["mimeType"], &bytes[..4]), (&json!(mime), magic));
        assert!(bytes.len() > 1000);
    }
    assert!(!saw.to_string().contains(KEY), "no answer has the key");
}

/// Returns the steps of an assistant that runs the suite and reads all of it.
fn steps(with_wav: bool) -> Value {
    let result = "{0.scenarios.1.calls.0.result_id}";
    let mut steps = json!([
        ["call", "run_suite", { "yaml": SUITE, "wait_s": 100 }],
        ["call", "read_suite", { "suite_run": "$0.suite_run", "wait_s": 1 }],
        ["call", "read_result", { "result_id": "$0.scenarios.1.calls.0.result_id" }],
        ["resource", format!("ringer://results/{result}/timeline")],
        ["resource", format!("ringer://results/{result}/recording.opus")],
        ["resource", format!("ringer://results/{result}/recording.wav")],
    ]);
    if !with_wav {
        steps.as_array_mut().expect("a list").pop();
    }
    steps
}

#[tokio::test]
async fn a_suite_is_run_and_read_over_standard_input() {
    check_suite(&by_stdio(&[], json!({ "steps": steps(true) })).await);
}

#[tokio::test]
async fn a_suite_is_run_and_read_over_http_by_both_lifecycles() {
    let served = Served::start("").await;
    for mode in ["auto", "legacy"] {
        check_suite(&served.assist(KEY, json!({ "mode": mode, "steps": steps(false) })).await);
    }
}

#[tokio::test]
async fn what_there_is_to_vary_is_told() {
    let steps = json!([
        ["tools"],
        ["resources"],
        ["templates"],
        ["call", "suite_schema", {}],
        ["resource", "ringer://suite-schema"],
        ["call", "list_voices", {}],
        ["call", "list_noises", {}],
        ["call", "list_levers", {}],
    ]);
    let saw = by_stdio(&[], json!({ "steps": steps })).await;
    let seen = &saw["seen"];
    let tools: Vec<&str> =
        seen[0]["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in ["call_agent", "run_suite", "read_suite", "read_result", "list_voices", "list_noises", "list_levers"] {
        assert!(tools.contains(&name), "{name} in {tools:?}");
    }
    assert_eq!(seen[1]["uris"], json!(["ringer://suite-schema"]));
    let about = seen[2]["templates"].as_array().expect("templates");
    assert!(about.iter().all(|one| one[1].as_str().is_some_and(|text| text.contains("At most 8 MiB"))), "{about:?}");
    let schema = &seen[3]["value"];
    assert_eq!(schema["required"], json!(["version", "connect", "scenarios"]), "{schema}");
    assert_eq!(serde_json::from_str::<Value>(seen[4]["text"].as_str().expect("text")).expect("JSON"), *schema);
    let noise = &seen[6]["value"]["fields"]["background_noise"];
    assert!(noise.to_string().contains("cafe"), "{noise}");
    assert!(seen[5]["value"]["fields"]["accent"].to_string().contains("scottish"), "{}", seen[5]);
    let levers = &seen[7]["value"];
    assert!(levers["fields"]["interruptions"].is_object() && levers["numbers"].is_object(), "{levers}");
}

#[tokio::test]
async fn what_is_wrong_is_a_tool_error_with_its_place() {
    let bad = |yaml: &str| json!(["call", "run_suite", { "yaml": yaml, "wait_s": 0 }]);
    let cases = [
        (json!(["call", "read_result", { "result_id": 4711 }]), "404: Simulation result not found"),
        (json!(["call", "read_result", { "result_id": "../keys" }]), "result_id must be the number of a result"),
        (json!(["call", "read_result", {}]), "missing field `result_id`"),
        (json!(["call", "read_result", { "result_id": 1, "wait": 3 }]), "unknown field `wait`"),
        (json!(["call", "read_suite", { "suite_run": "suite-1" }]), "there is no suite \"suite-1\""),
        (json!(["call", "call_agent", { "agent": "nobody", "intent": "Book." }]), "neither an agent"),
        (
            json!(["call", "call_agent", { "agent": "sip:a@127.0.0.1:5", "intent": "Book.", "wait_s": 4000 }]),
            "wait_s must be a whole number from 0 to 3600",
        ),
        (
            json!(["call", "call_agent", { "agent": "sip:a@127.0.0.1:5", "intent": "Book.",
                "digital_human": { "accent": "martian" } }]),
            "digital_human.accent",
        ),
        (bad("version: 1\nconnect: { sip: \"sip:a@127.0.0.1:5\" }\nscenarios: [{ nam: a }]\n"), "suite.yaml:3:15"),
        (bad("version: 1\nconnect: !include /etc/hostname\nscenarios: []\n"), "!include"),
        (bad(&SUITE.replace("num_turns", "num_turn")), "the metric num_turn is not known"),
        (json!(["call", "make_coffee", {}]), "there is no tool"),
    ];
    let steps: Vec<Value> = cases.iter().map(|(step, _)| step.clone()).collect();
    let saw = by_stdio(&[], json!({ "steps": steps })).await;
    for (at, (step, expect)) in cases.iter().enumerate() {
        let seen = &saw["seen"][at];
        assert!(
            seen["error"] == true && seen["text"].as_str().is_some_and(|text| text.contains(expect)),
            "{step}: {seen}"
        );
    }
    let none = [["resource", "ringer://results/4711/timeline"], ["resource", "ringer://results/1/secrets"]];
    let saw = by_stdio(&[], json!({ "steps": none })).await;
    for (at, expect) in ["Simulation result not found", "there is no resource"].iter().enumerate() {
        assert!(saw["seen"][at]["raised"].as_str().is_some_and(|raised| raised.contains(expect)), "{saw}");
    }
}

#[tokio::test]
async fn a_number_is_called_only_where_that_is_allowed_and_granted() {
    let number = "+14155550100";
    let suite = SUITE.replace("sip: \"sip:desk@127.0.0.1:5080\"", &format!("phone: \"{number}\""));
    let steps = json!([
        ["call", "call_agent", { "agent": number, "intent": "Book.", "wait_s": 1 }],
        ["call", "call_agent", { "agent": format!("sip:{number}@trunk.example"), "intent": "Book.", "wait_s": 1 }],
        ["call", "run_suite", { "yaml": suite, "wait_s": 1 }],
        ["call", "list_runs", {}],
    ]);
    for (flags, mode, answer, expect) in [
        (&[][..], "auto", "accept", "--allow-trunks"),
        (&["--allow-trunks"], "auto", "decline", "the person did not allow"),
        (&["--allow-trunks"], "legacy", "cancel", "the person did not allow"),
        (&["--allow-trunks"], "auto", "accept", ""),
        (&["--allow-trunks"], "legacy", "accept", ""),
        (&["--allow-trunks"], "auto", "", ""),
    ] {
        let mut plan = json!({ "mode": mode, "steps": steps });
        if !answer.is_empty() {
            plan["answer"] = json!(answer);
        }
        let saw = by_stdio(flags, plan).await;
        let asked = saw["asked"].as_array().expect("questions");
        let is_asked = !flags.is_empty() && !answer.is_empty();
        assert_eq!(asked.len(), if is_asked { 3 } else { 0 }, "{flags:?} {answer}: {saw}");
        assert!(asked.iter().all(|text| text.as_str().is_some_and(|text| text.contains(number))), "{saw}");
        let runs = saw["seen"][3]["value"]["simulation_runs"].as_array().map(Vec::len);
        for at in 0..3 {
            let seen = &saw["seen"][at];
            let text = seen["text"].as_str().unwrap_or_else(|| panic!("no text: {saw}"));
            let is_refused = text.contains("did not allow") || text.contains("--allow-trunks");
            assert_eq!(is_refused, !expect.is_empty(), "{flags:?} {mode} {answer}: {seen}");
            assert!(text.contains(expect), "{flags:?} {mode} {answer}: {seen}");
        }
        assert_eq!(runs == Some(0), !expect.is_empty(), "what is refused makes no run: {saw}");
    }
}

#[tokio::test]
async fn a_key_does_here_what_it_may_do_there() {
    let served = Served::start("").await;
    let read = served.key("read").await;
    let steps = json!([
        ["call", "run_suite", { "yaml": SUITE, "wait_s": 1 }],
        ["call", "call_agent", { "agent": "sip:desk@127.0.0.1:5080", "intent": "Book.", "wait_s": 1 }],
        ["call", "list_runs", {}],
        ["call", "list_levers", {}],
    ]);
    for mode in ["auto", "legacy"] {
        let saw = served.assist(&read, json!({ "mode": mode, "steps": steps })).await;
        for at in [0, 1] {
            let seen = &saw["seen"][at];
            let text = seen["text"].as_str().unwrap_or_else(|| panic!("no text: {saw}"));
            assert!(seen["error"] == true && text.contains("scope 'read' is not sufficient"), "{seen}");
        }
        assert_eq!(saw["seen"][2]["value"]["simulation_runs"], json!([]), "{saw}");
        assert_eq!(saw["seen"][3]["error"], false);
        assert!(!saw.to_string().contains(&read));
    }
    let number = json!([["call", "call_agent", { "agent": "+14155550100", "intent": "Book." }]]);
    let saw = served.assist(KEY, json!({ "answer": "accept", "steps": number })).await;
    assert!(saw["seen"][0]["text"].as_str().is_some_and(|text| text.contains("mcp.allow_trunks")), "{saw}");
    for key in ["", "wrong"] {
        let saw = served.assist(key, json!({ "steps": [["tools"]] })).await;
        assert!(saw.to_string().contains("401") || saw["raised"].is_string(), "{saw}");
        assert!(saw["seen"][0]["tools"].is_null(), "{saw}");
    }
}

#[tokio::test]
async fn the_setting_allows_numbers_over_http_and_the_person_is_asked() {
    let served = Served::start("[mcp]\nallow_trunks = true\n").await;
    let steps = json!([["call", "call_agent", { "agent": "+14155550100", "intent": "Book.", "wait_s": 1 }]]);
    for mode in ["auto", "legacy"] {
        for answer in ["decline", "accept"] {
            let saw = served.assist(KEY, json!({ "mode": mode, "answer": answer, "steps": steps })).await;
            assert_eq!(saw["asked"].as_array().map(Vec::len), Some(1), "{saw}");
            let text = saw["seen"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {saw}"));
            assert_eq!(text.contains("did not allow"), answer == "decline", "{saw}");
        }
    }
}

#[tokio::test]
async fn strange_hosts_origins_and_no_key_are_refused() {
    let served = Served::start("[server]\ncors_origins = [\"https://app.example\"]\n").await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } } });
    let own = served.url.clone();
    for (headers, expect) in [
        (vec![("x-api-key", KEY)], 200),
        (vec![("authorization", "Bearer nobody")], 401),
        (vec![], 401),
        (vec![("x-api-key", KEY), ("origin", "https://evil.example")], 403),
        (vec![("x-api-key", KEY), ("origin", "null")], 403),
        (vec![("x-api-key", KEY), ("origin", "https://app.example")], 200),
        (vec![("x-api-key", KEY), ("origin", own.as_str())], 200),
        (vec![("x-api-key", KEY), ("host", "evil.example")], 421),
    ] {
        let mut asking = client().post(format!("{}/mcp", served.url)).json(&body);
        asking = asking.header("accept", "application/json, text/event-stream");
        for (name, value) in &headers {
            asking = asking.header(*name, *value);
        }
        let answer = timeout(PATIENCE, asking.send()).await.expect("in time").expect("it answers");
        assert_eq!(answer.status().as_u16(), expect, "{headers:?}");
        let is_let = expect == 200 && headers.iter().any(|(_, value)| *value == "https://app.example");
        assert_eq!(answer.headers().contains_key("access-control-allow-origin"), is_let, "{headers:?}");
    }
}
