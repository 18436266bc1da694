//! The log of a running engine as JSON: every line can be followed by request, job, result and call, and none holds a
//! secret.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStderr;
use tokio::time::timeout;

use crate::program::{KEY, PATIENCE, Program, client, ringer, up};

/// Password that may not appear in the log.
const PASSWORD: &str = "tell-nobody-of-the-password";
/// Key of a platform that may not appear in the log.
const PLATFORM_KEY: &str = "tell-nobody-of-the-platform";

/// Log of a running engine, kept as it is read.
struct Log {
    lines: Lines<BufReader<ChildStderr>>,
    seen: Vec<String>,
}

impl Log {
    /// Returns the next line; nothing when the engine has ended.
    async fn next(&mut self) -> Option<Value> {
        let line =
            timeout(PATIENCE, self.lines.next_line()).await.expect("it is logged in time").expect("it is text")?;
        let read = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.seen.push(line);
        Some(read)
    }

    /// Returns the next line that is `wanted`.
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.next().await.expect("the engine runs");
            if wanted(&line) {
                return line;
            }
        }
    }
}

/// Returns the fields of the span of this name that a line lies in.
fn span<'a>(line: &'a Value, name: &str) -> &'a Value {
    let spans = line["spans"].as_array().unwrap_or_else(|| panic!("{line} lies in no span"));
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{line} lies in no {name}"))
}

#[tokio::test]
async fn a_line_names_its_request_job_result_and_call_and_no_secret() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut command = up(folder.path());
    command.env("RINGER_LOG", "ringer=debug").env("RINGER_LOG_FORMAT", "json").stderr(Stdio::piped());
    let mut engine = Program::start(&mut command);
    let base = engine.address("http://").await;
    let lines = BufReader::new(engine.child.stderr.take().expect("it is piped")).lines();
    let mut log = Log { lines, seen: Vec::new() };
    let client = client();
    let post = async |path: &str, body: Value| {
        let request = client.post(format!("{base}/v1/{path}")).header("X-API-KEY", KEY).json(&body);
        let answer = request.send().await.expect("it answers");
        let id = answer.headers()["x-request-id"].to_str().expect("it is text").to_owned();
        (id, answer.json::<Value>().await.expect("it is JSON"))
    };
    // Nothing listens for SIP on the port for discarded data.
    let agent = json!({
        "name": "nobody", "type": "INBOUND", "connection_type": "SIP", "sip_uri": "sip:x@127.0.0.1:9",
        "sip_username": "x", "sip_password": PASSWORD,
    });
    let (request_id, agent) = post("add-agent", agent).await;
    let line = log.until(|line| line["message"] == "answered").await;
    assert_eq!((&line["status"], &line["level"]), (&json!(200), &json!("INFO")), "{line}");
    let request = span(&line, "request");
    let expect = json!({ "name": "request", "request_id": request_id, "method": "POST", "path": "/v1/add-agent" });
    assert_eq!(*request, expect);
    let platforms = client.patch(format!("{base}/v1/integrations")).header("X-API-KEY", KEY);
    let platforms = platforms.json(&json!({ "P3_api_key": PLATFORM_KEY })).send().await.expect("it answers");
    assert_eq!(platforms.status().as_u16(), 200);
    let webhook = json!({ "url": "http://127.0.0.1:9/hook", "event_types": ["simulation_ended"] });
    let (_, webhook) = post("webhooks", webhook).await;
    let [webhook, signing_key] = ["id", "signing_key"].map(|name| webhook[name].as_str().expect("a text").to_owned());
    // Signed, and sent to where nobody listens.
    let (_, tested) = post(&format!("webhooks/{webhook}/test"), json!({})).await;
    assert_eq!(tested["delivered"], false, "{tested}");

    let agent_id = agent["agent_id"].to_string();
    let (_, simulation) = post("create-simulation", json!({ "agent_id": agent_id, "name": "log" })).await;
    let id = simulation["simulation_id"].to_string();
    let human = json!({ "digital_human": { "name": "Ann", "intent": "Ask." }, "simulation_ids": [simulation["simulation_id"]] });
    post("create-digital-human", human).await;
    let (_, run) = post("queue-simulation-run", json!({ "simulation_id": id })).await;
    let result_id = run["simulation_result_ids"][0].as_str().expect("an id").parse::<i64>().expect("a number");
    let result_id = &json!(result_id);
    let line = log.until(|line| line["message"] == "the call is over").await;
    let call_id = span(&line, "call")["call_id"].clone();
    assert!(call_id.as_str().is_some_and(|id| id.contains('@')), "{line}");
    assert_eq!(&span(&line, "job")["result_id"], result_id, "{line}");
    let line = log.until(|line| line["to"] == "NO_CONNECTION" || line["to"] == "NO_ANSWER").await;
    assert_eq!((&line["result_id"], &line["call_id"], &line["level"]), (result_id, &call_id, &json!("INFO")), "{line}");
    assert!(line["error_code"].is_string(), "{line}");
    let job = span(&line, "job");
    assert_eq!((&job["kind"], &job["result_id"]), (&json!("call"), result_id), "{line}");

    let read = client.get(format!("{base}/v1/integrations")).header("X-API-KEY", KEY).send().await.expect("it answers");
    assert_eq!(read.status().as_u16(), 200);
    let line = log.until(|line| line["message"] == "answered" && span(line, "request")["method"] == "GET").await;
    assert_eq!(line["level"], "DEBUG", "what changes nothing is not told at info");

    engine.kill().await;
    while log.next().await.is_some() {}
    for secret in [KEY, PASSWORD, PLATFORM_KEY, &signing_key] {
        let found: Vec<&String> = log.seen.iter().filter(|line| line.contains(secret)).collect();
        assert!(found.is_empty(), "{secret}: {found:?}");
    }
}

#[tokio::test]
async fn an_unknown_format_of_the_log_is_refused() {
    let ended =
        ringer(&["doctor", "--help"]).env("RINGER_LOG_FORMAT", "xml").output().await.expect("the program was built");
    // The command line is read first.
    assert!(ended.status.success());
    let ended = ringer(&["openapi"]).env("RINGER_LOG_FORMAT", "xml").output().await.expect("the program was built");
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "RINGER_LOG_FORMAT is \"xml\"; it is text or json\n");
}
