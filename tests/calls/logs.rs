//! The log of a running engine as JSON: every line can be followed by request, job, result and call.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{ChildStderr, Command};
use tokio::time::timeout;

/// How long a step may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const KEY: &str = "key of the log";

/// The next line that is `wanted`. Every line before is JSON too, and none holds the key.
async fn logged(lines: &mut Lines<BufReader<ChildStderr>>, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it is logged in time").expect("it is text");
        let line = line.expect("the engine runs");
        assert!(!line.contains(KEY), "{line}");
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if wanted(&line) {
            return line;
        }
    }
}

/// The fields of the span of this name that a line lies in.
fn span<'a>(line: &'a Value, name: &str) -> &'a Value {
    let spans = line["spans"].as_array().unwrap_or_else(|| panic!("{line} lies in no span"));
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{line} lies in no {name}"))
}

#[tokio::test]
async fn a_line_names_its_request_job_result_and_call() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
    command.args(["up", "--listen", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--data"]).arg(folder.path());
    command.envs([("RINGER_BOOTSTRAP_KEY", KEY), ("RINGER_LOG", "ringer=debug"), ("RINGER_LOG_FORMAT", "json")]);
    command.current_dir(folder.path()).stdin(Stdio::null()).kill_on_drop(true);
    let mut engine = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program was built");
    let mut said = BufReader::new(engine.stdout.take().expect("it was piped")).lines();
    let mut log = BufReader::new(engine.stderr.take().expect("it was piped")).lines();
    let ready = timeout(PATIENCE, said.next_line()).await.expect("it says something in time").expect("it is text");
    let ready = ready.expect("it starts");
    let base = ready.split(' ').find(|word| word.starts_with("http://")).expect("it says where").to_owned();
    let client = reqwest::Client::new();
    let post = async |path: &str, body: Value| {
        let request = client.post(format!("{base}/v1/{path}")).header("X-API-KEY", KEY).json(&body);
        let answer = request.send().await.expect("it answers");
        let id = answer.headers()["x-request-id"].to_str().expect("it is text").to_owned();
        (id, answer.json::<Value>().await.expect("it is JSON"))
    };
    // Nothing listens for SIP on the port for discarded data.
    let agent =
        json!({ "name": "nobody", "type": "INBOUND", "connection_type": "SIP", "sip_uri": "sip:x@127.0.0.1:9" });
    let (request_id, agent) = post("add-agent", agent).await;
    let line = logged(&mut log, |line| line["message"] == "answered").await;
    assert_eq!(line["status"], 200, "{line}");
    let request = span(&line, "request");
    let expect = json!({ "name": "request", "request_id": request_id, "method": "POST", "path": "/v1/add-agent" });
    assert_eq!(*request, expect);

    let agent_id = agent["agent_id"].to_string();
    let (_, simulation) = post("create-simulation", json!({ "agent_id": agent_id, "name": "log" })).await;
    let id = simulation["simulation_id"].to_string();
    let human = json!({ "digital_human": { "name": "Ann", "intent": "Ask." }, "simulation_ids": [simulation["simulation_id"]] });
    post("create-digital-human", human).await;
    let (_, run) = post("queue-simulation-run", json!({ "simulation_id": id })).await;
    let result_id = &run["simulation_result_ids"][0];
    let line = logged(&mut log, |line| line["message"] == "the call is over").await;
    assert!(span(&line, "call")["call_id"].as_str().is_some_and(|id| id.contains('@')), "{line}");
    assert_eq!(&span(&line, "job")["result_id"], result_id, "{line}");
    let line = logged(&mut log, |line| line["to"] == "NO_CONNECTION" || line["to"] == "NO_ANSWER").await;
    assert_eq!(&line["result_id"], result_id, "{line}");
    assert!(line["error_code"].is_string(), "{line}");
    let job = span(&line, "job");
    assert_eq!((&job["kind"], &job["result_id"]), (&json!("call"), result_id), "{line}");
}

#[tokio::test]
async fn an_unknown_format_of_the_log_is_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
    command.args(["doctor", "--help"]);
    let ended = command.env("RINGER_LOG_FORMAT", "xml").output().await.expect("the program was built");
    // The command line is read first.
    assert!(ended.status.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
    let ended = command.arg("openapi").env("RINGER_LOG_FORMAT", "xml").output().await.expect("the program was built");
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "RINGER_LOG_FORMAT is \"xml\"; it is text or json\n");
}
