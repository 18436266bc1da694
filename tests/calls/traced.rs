//! Traces of real calls, as a collector that reads the official messages of OpenTelemetry gets them, and the trace
//! context that agents are told.

use std::net::TcpListener;
use std::process::Stdio;

use axum::body::to_bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::house::House;
use super::runs::sip;
use crate::peers::Peer;
use crate::peers::python::PythonServer;
use crate::program::{KEY, Program, client, look_until, up};

/// Words that the caller says first.
const WORDS: &str = "Good day to you";

/// A collector of traces.
pub(crate) struct Collector(PythonServer);

/// Spans of one result.
pub(crate) struct Spans(Vec<Value>);

impl Collector {
    pub(crate) async fn start() -> Collector {
        Collector(PythonServer::start("collector.py", &[], "http://").await)
    }

    /// Returns the section of the settings that names it, with these further lines.
    pub(crate) fn section(&self, more: &str) -> String {
        format!("[telemetry]\notlp_endpoint = '{}'\notlp_headers = 'x-key=a%20key'\n{more}\n", self.0.base)
    }

    /// Returns the spans of a result's trace, once its root is there, which is sent with the others.
    pub(crate) async fn spans_of(&self, result: &Value) -> Spans {
        let trace = result["metadata"]["trace_id"].as_str().unwrap_or_else(|| panic!("no trace: {result}"));
        let of = |seen: &Value| -> Vec<Value> {
            let spans = seen["spans"].as_array().cloned().unwrap_or_default();
            spans.into_iter().filter(|span| span["trace"] == trace).collect()
        };
        let seen = self.0.sees(|seen| of(seen).iter().any(|span| span["name"] == "run")).await;
        assert_eq!(seen["resources"][0]["service.name"], "ringer", "{seen}");
        assert_eq!(seen["resources"][0]["service.version"], env!("CARGO_PKG_VERSION"));
        let told = json!({ "path": "/v1/traces", "type": "application/x-protobuf", "key": "a key" });
        assert_eq!(seen["requests"][0], told);
        Spans(of(&seen))
    }
}

impl Spans {
    /// Returns the spans of a name.
    pub(crate) fn all(&self, name: &str) -> Vec<&Value> {
        self.0.iter().filter(|span| span["name"] == name).collect()
    }

    /// Returns the only span of a name.
    pub(crate) fn one(&self, name: &str) -> &Value {
        let found = self.all(name);
        assert_eq!(found.len(), 1, "{name}: {:?}", self.0);
        found[0]
    }

    /// Returns the words of the turns of a speaker.
    pub(crate) fn words(&self, speaker: &str) -> String {
        let of = |span: &&Value| span["attributes"]["ringer.turn.speaker"] == speaker;
        let texts = self.all("turn").into_iter().filter(of).map(|span| span["attributes"]["ringer.turn.text"].as_str());
        texts.flatten().collect::<Vec<_>>().join(" ")
    }

    fn parent(&self, span: &Value) -> &Value {
        let found = self.0.iter().find(|other| other["id"] == span["parent"]);
        found.unwrap_or_else(|| panic!("{span} has no parent in {:?}", self.0))
    }
}

fn ns(span: &Value, name: &str) -> i64 {
    span[name].as_i64().unwrap_or_else(|| panic!("no {name}: {span}"))
}

/// Returns the time of a timestamp in nanoseconds since 1970.
fn instant_ns(text: &Value) -> i64 {
    let text = text.as_str().unwrap_or_else(|| panic!("no time: {text}"));
    let at: ringer::model::time::Timestamp = serde_json::from_value(json!(text)).expect("a time");
    at.0 * 1_000_000
}

/// Checks the tree and the times of a call's spans against what the API tells of it.
pub(crate) async fn check_tree(house: &House, result: &Value, spans: &Spans) {
    let (run, call, judgement) = (spans.one("run"), spans.one("call"), spans.one("judgement"));
    assert_eq!((&run["parent"], &call["parent"], &judgement["parent"]), (&json!(""), &run["id"], &run["id"]));
    assert_eq!(call["kind"], "SPAN_KIND_CLIENT");
    assert_eq!(run["attributes"]["ringer.result.id"], result["id"]);
    assert_eq!(run["attributes"]["ringer.run.id"], result["simulation_run_id"]);
    for span in [call, judgement] {
        assert!(ns(run, "from_ns") <= ns(span, "from_ns") && ns(span, "to_ns") <= ns(run, "to_ns"), "{run} {span}");
    }
    let start_ns = instant_ns(&result["start_time"]);
    let path = format!("/v1/simulation-result/{}/turns", result["id"]);
    let turns = house.call("GET", &path, Value::Null).await["turns"].as_array().expect("a list").clone();
    let told = spans.all("turn");
    assert!(!turns.is_empty() && told.len() == turns.len(), "{turns:?} {told:?}");
    for turn in &turns {
        let span = told.iter().find(|span| span["attributes"]["ringer.turn.index"] == turn["index"]);
        let span = span.unwrap_or_else(|| panic!("no {turn} in {told:?}"));
        let at = |name: &str| start_ns + turn[name].as_i64().expect("a sample") * 62_500;
        assert_eq!((ns(span, "from_ns"), ns(span, "to_ns")), (at("from_sample"), at("to_sample")), "exact to a sample");
        assert_eq!(span["parent"], call["id"]);
    }
    for name in ["setup", "turn", "think", "speak", "recognize"] {
        for span in spans.all(name) {
            let inside = ns(call, "from_ns") <= ns(span, "from_ns") && ns(span, "to_ns") <= ns(call, "to_ns");
            assert!(inside && ns(span, "from_ns") <= ns(span, "to_ns"), "{span} in {call}");
        }
    }
    let spoken = spans.all("speak");
    assert!(!spoken.is_empty() && !spans.all("recognize").is_empty(), "{:?}", spans.0);
    let mine = |span: &&&Value| spans.parent(span)["attributes"]["ringer.turn.speaker"] == "digital_human";
    assert!(spoken.iter().any(|span| mine(&span)), "speech belongs to a turn: {:?}", spans.0);
    assert_eq!(spoken[0]["attributes"]["gen_ai.output.type"], "speech");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_a_tree_of_spans_and_its_agent_is_told_the_parent() {
    let (collector, peer) = (Collector::start().await, Peer::scenario("trunk"));
    let house = House::with_trunks(&collector.section("")).await;
    let opens = json!({ "speaks_first_config": { "speaks_first": true, "mode": "custom", "message": WORDS } });
    let (_, ids) = house.queue(sip(&peer), json!({}), &[opens]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let spans = collector.spans_of(&result).await;
    let call = spans.one("call");
    let told = format!(
        "traceparent: 00-{}-{}-01",
        call["trace"].as_str().expect("a text"),
        call["id"].as_str().expect("a text")
    );
    let invite = peer.end();
    assert!(invite.lines().any(|line| line == told), "{told} in {invite}");
    assert!(!format!("{:?}", spans.0).contains("Good day"), "no words: {:?}", spans.0);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trunk_is_told_no_trace() {
    let (collector, peer) = (Collector::start().await, Peer::scenario("trunk"));
    let (host, port) = (peer.sip.ip(), peer.sip.port());
    let trunk = format!(
        "[sip.trunks.near]\nhost = '{host}'\nport = {port}\nnumbers = ['+15550001111']\nallowed_prefixes = ['+1']\n"
    );
    let house = House::with_trunks(&format!("{trunk}{}", collector.section("content = true"))).await;
    let (_, ids) = house.queue(json!({ "phone_number": "+15550009999" }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let spans = collector.spans_of(&result).await;
    let invite = peer.end();
    assert!(invite.contains("INVITE sip:+15550009999@") && !invite.contains("traceparent"), "{invite}");
    let told = format!("{:?}", spans.0);
    assert!(!told.contains("5550009999") && !told.contains("5550001111"), "no numbers: {told}");
    house.stop().await;
}

/// Returns the lines of `/metrics` about traces.
async fn figures(base: &str) -> Vec<String> {
    let page = client().get(format!("{base}/metrics")).header("X-API-KEY", KEY).send().await.expect("it answers");
    let page = page.text().await.expect("text");
    page.lines().filter(|line| line.starts_with("ringer_traces_")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_collector_that_is_away_is_told_of_once_and_calls_go_on() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    // Nobody listens there until the collector does.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port is free").port();
    let settings = format!("[telemetry]\notlp_endpoint = 'http://127.0.0.1:{port}'\n");
    std::fs::write(folder.path().join("ringer.toml"), settings).expect("the folder is writable");
    let mut command = up(folder.path());
    command.arg("--sim").env("RINGER_LOG_FORMAT", "json").stderr(Stdio::piped());
    let mut engine = Program::start(&mut command);
    let base = engine.address("http://").await;
    let mut lines = BufReader::new(engine.child.stderr.take().expect("it is piped")).lines();
    let client = client();
    let post = async |path: &str, body: Value| {
        let request = client.post(format!("{base}/v1/{path}")).header("X-API-KEY", KEY).json(&body);
        request.send().await.expect("it answers").json::<Value>().await.expect("it is JSON")
    };
    let get = async |path: String| {
        let request = client.get(format!("{base}/v1/{path}")).header("X-API-KEY", KEY);
        request.send().await.expect("it answers").json::<Value>().await.expect("it is JSON")
    };
    let agent = post("add-agent", json!({ "name": "desk", "sip_uri": "sip:desk@127.0.0.1:9" })).await;
    let simulation = post("create-simulation", json!({ "agent_id": agent["agent_id"].to_string(), "name": "s" })).await;
    let simulation = simulation["simulation_id"].clone();
    let human = json!({ "digital_human": { "name": "Ann", "intent": "Ask." }, "simulation_ids": [simulation] });
    post("create-digital-human", human).await;
    let held = async || {
        let run = post("queue-simulation-run", json!({ "simulation_id": simulation.to_string() })).await;
        let id = run["simulation_result_ids"][0].as_str().expect("an id").to_owned();
        let over = |read: &Value| read["simulation_result"]["outcome"].is_string();
        let read = look_until(async || get(format!("retrieve-simulation-result/{id}")).await, over).await;
        assert_eq!(read["simulation_result"]["status"], "COMPLETED", "{read}");
    };
    held().await;
    let down = |lines: &Vec<String>| lines.iter().any(|line| line == "ringer_traces_up 0.0");
    let told = look_until(async || figures(&base).await, down).await;
    assert!(told.contains(&"ringer_traces_spans_total{fate=\"sent\"} 0".to_owned()), "{told:?}");
    // A second call, and a second attempt, while it is still away.
    held().await;
    let again = |lines: &Vec<String>| {
        let failed = lines.iter().find_map(|line| line.strip_prefix("ringer_traces_requests_failed_total "));
        failed.and_then(|count| count.parse::<u64>().ok()).is_some_and(|count| count >= 2)
    };
    look_until(async || figures(&base).await, again).await;
    // It comes back, and gets what has waited.
    let collector = PythonServer::start("collector.py", &[&port.to_string()], "http://").await;
    let runs = |seen: &Value| {
        let spans = seen["spans"].as_array().cloned().unwrap_or_default();
        spans.iter().filter(|span| span["name"] == "run").count()
    };
    collector.sees(|seen| runs(seen) == 2).await;
    let up = |lines: &Vec<String>| lines.iter().any(|line| line == "ringer_traces_up 1.0");
    let told = look_until(async || figures(&base).await, up).await;
    assert!(told.contains(&"ringer_traces_spans_total{fate=\"dropped\"} 0".to_owned()), "{told:?}");
    engine.kill().await;
    let mut warnings = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let about = line["message"].as_str().unwrap_or_default().contains("collector of traces");
        warnings.extend((about && line["level"] == "WARN").then_some(line));
    }
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[tokio::test]
async fn without_a_collector_nothing_is_told_of_traces() {
    let house = House::with_trunks("").await;
    let peer = Peer::scenario("trunk");
    let (_, ids) = house.queue(sip(&peer), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!(result["metadata"]["trace_id"], Value::Null, "{result}");
    assert!(!peer.end().contains("traceparent"));
    let (_, page) = house.ask("GET", "/metrics", Value::Null).await;
    let page = String::from_utf8(to_bytes(page, 1 << 20).await.expect("a body").to_vec()).expect("text");
    assert!(!page.contains("ringer_traces_"), "{page}");
    house.stop().await;
}
