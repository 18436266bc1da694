//! Spans that agents send: by the trace of their call, in the forms of the official messages of OpenTelemetry, and by
//! their result.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use ringer::config::{Retention, Telemetry};
use ringer::model::api_key::Scope;
use ringer::model::status::ResultStatus as S;
use ringer::service::Caller;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::world::{Answer, World};
use crate::peers::python::python;
use crate::program::PATIENCE;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";
/// Start of the call, in milliseconds since 1970.
const START_MS: i64 = 1_767_225_600_000;

/// A world with two results of a run whose agents are told their trace, and these traces.
struct Traced {
    world: World,
    ids: [i64; 2],
    traces: [String; 2],
}

impl Traced {
    async fn new() -> Traced {
        let world = World::with_rows_and(|settings| {
            settings.telemetry = Arc::new(Telemetry { propagate: true, ..Telemetry::default() });
        })
        .await;
        let human = world.get("/v1/digital-humans").await["digital_humans"][0]["id"].clone();
        let path = "/v1/simulation/$simulation/add-digital-humans";
        world.post(path, json!({ "digital_human_ids": [human] })).await;
        let body = json!({
            "simulation_id": world.name("simulation").parse::<i64>().expect("an id"), "runs_per_digital_human": 2,
            "sip_uri": "sip:a@b.example",
        });
        let queued = world.post("/v1/queue-simulation-run", body).await;
        let id = |at: usize| {
            let id = queued["simulation_result_ids"][at].as_str().and_then(|text| text.parse::<i64>().ok());
            id.expect("an id as text")
        };
        let ids = [id(0), id(1)];
        for id in ids {
            hold(&world, id).await;
        }
        let mut traces = [String::new(), String::new()];
        for (trace, id) in traces.iter_mut().zip(ids) {
            let read = world.get(&format!("/v1/retrieve-simulation-result/{id}")).await;
            let told = read["simulation_result"]["metadata"]["trace_id"].as_str();
            *trace = told.unwrap_or_else(|| panic!("no trace: {read}")).to_owned();
        }
        assert!(traces[0] != traces[1] && traces.iter().all(|trace| trace.len() == 32), "{traces:?}");
        Traced { world, ids, traces }
    }

    /// Returns the span of a trace that begins `from_ms` after the start of the call.
    fn span(&self, trace: &str, number: usize, from_ms: i64) -> Value {
        let start_ns = (START_MS + from_ms) * 1_000_000 + 250_000;
        json!({
            "trace": trace, "span": format!("{number:016x}"), "name": "llm", "start_ns": start_ns,
            "end_ns": start_ns + 500_000_000, "attributes": { "gen_ai.request.model": "m", "tokens": 7 },
        })
    }

    async fn spans(&self, at: usize) -> Vec<Value> {
        let list = self.world.get(&format!("/v1/simulation-result/{}/spans", self.ids[at])).await;
        assert_eq!(list["trace_id"], json!(self.traces[at]));
        list["spans"].as_array().expect("a list").clone()
    }

    async fn send(&self, kind: &str, body: Vec<u8>) -> Answer {
        self.world.send("POST", "/v1/traces", &[("content-type".into(), kind.into())], body).await
    }
}

/// Takes a result to where its call runs.
async fn hold(world: &World, id: i64) {
    let organization = world.name("organization");
    for step in [S::Initializing, S::Queued, S::Dispatched, S::Running].windows(2) {
        let moved = world.service.conversations().advance(organization, id, step[0], step[1], |doc| {
            doc.body.start_time = Some(ringer::model::time::Timestamp(START_MS));
        });
        moved.await.expect("an allowed step");
    }
}

/// Returns a request of spans as the official package writes it.
async fn make_request(form: &str, spans: &[Value]) -> Vec<u8> {
    let mut program = python("collector.py", &["make", form]).spawn().expect("Python is there");
    let lines: Vec<String> = spans.iter().map(Value::to_string).collect();
    let mut input = program.stdin.take().expect("it is piped");
    let feed = async move { input.write_all(lines.join("\n").as_bytes()).await };
    let (fed, output) =
        timeout(PATIENCE, async { tokio::join!(feed, program.wait_with_output()) }).await.expect("in time");
    fed.expect("it reads");
    let output = output.expect("it ends");
    assert!(output.status.success(), "make peers");
    output.stdout
}

/// Returns the number of spans that a JSON answer says were not taken, and the reasons.
fn refusals(answer: &Answer) -> (String, String) {
    let partial = &answer.json()["partialSuccess"];
    let text = |name: &str| partial[name].as_str().unwrap_or_default().to_owned();
    (text("rejectedSpans"), text("errorMessage"))
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_the_official_package_stand_on_the_clock_of_the_call() {
    let traced = Traced::new().await;
    for (form, kind, at) in [("protobuf", PROTOBUF, 0), ("json", JSON, 1)] {
        let trace = &traced.traces[at];
        let mut failed = traced.span(trace, 2, -20);
        (failed["error"], failed["parent"]) = (json!("no model"), json!("00000000000000aa"));
        let body = make_request(form, &[traced.span(trace, 1, 1000), failed]).await;
        let taken = traced.send(kind, body.clone()).await;
        let expect: &[u8] = if form == "json" { b"{}" } else { b"" };
        assert_eq!((taken.status, &taken.body[..]), (200, expect), "{form}: all were taken");
        assert_eq!(taken.headers["content-type"], kind);
        // An exporter sends again what it had no answer to.
        let again = traced.send(kind, body).await;
        assert_eq!((again.status, &again.body[..]), (200, expect));
        let spans = traced.spans(at).await;
        assert_eq!(
            spans,
            [
                json!({
                    "name": "llm", "start_offset_ms": -19.75, "end_offset_ms": 480.25, "service": "desk",
                    "span_id": "0000000000000002", "parent_span_id": "00000000000000aa", "error": "no model",
                    "attributes": { "gen_ai.request.model": "m", "tokens": 7 }, "source": "otlp",
                }),
                json!({
                    "name": "llm", "start_offset_ms": 1000.25, "end_offset_ms": 1500.25, "service": "desk",
                    "span_id": "0000000000000001", "parent_span_id": null, "error": null,
                    "attributes": { "gen_ai.request.model": "m", "tokens": 7 }, "source": "otlp",
                }),
            ],
            "{form}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_another_organization_are_refused() {
    let traced = Traced::new().await;
    let library = traced.world.service.library();
    let other = library.create_key_in("another", Scope::Admin, "theirs").await.expect("a key").api_key;
    let [own, _] = &traced.traces;
    let body = make_request("json", &[traced.span(own, 1, 0), traced.span(&"5".repeat(32), 2, 0)]).await;
    let headers = [("x-api-key".to_owned(), other.clone()), ("content-type".to_owned(), JSON.to_owned())];
    let answer = traced.world.send("POST", "/v1/traces", &headers, body).await;
    let (count, why) = refusals(&answer);
    assert_eq!((answer.status, count.as_str()), (200, "2"), "a forged trace is not told from one that is not theirs");
    assert_eq!(why, "2: no result of this organization has the trace");
    let path = format!("/v1/simulation-result/{}/spans", traced.ids[0]);
    let posted = json!([{ "name": "a", "start_offset_ms": 0, "end_offset_ms": 1 }]).to_string().into_bytes();
    for (method, body) in [("GET", Vec::new()), ("POST", posted)] {
        assert_eq!(traced.world.send(method, &path, &headers, body).await.status, 404, "{method}");
    }
    assert_eq!(traced.spans(0).await, [] as [Value; 0]);
    // Of their own: theirs are taken, and the others are not.
    let mixed = make_request("json", &[traced.span(own, 1, 0), traced.span(&"5".repeat(32), 2, 0)]).await;
    let (count, _) = refusals(&traced.send(JSON, mixed).await);
    assert_eq!((count.as_str(), traced.spans(0).await.len()), ("1", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_keeps_a_thousand_spans_and_counts_the_others() {
    let traced = Traced::new().await;
    let path = format!("/v1/simulation-result/{}/spans", traced.ids[0]);
    let one = |number: i64| json!({ "name": "tts", "start_offset_ms": number, "end_offset_ms": number as f64 + 0.5, "attributes": { "n": number } });
    let list = |range: std::ops::Range<i64>| Value::Array(range.map(one).collect());
    let added = traced.world.post(&path, list(0..998)).await;
    assert_eq!((&added["accepted"], &added["rejected"]), (&json!(998), &json!(0)), "{added}");
    let own = &traced.traces[0];
    let otlp: Vec<Value> = (1..=3).map(|number| traced.span(own, number, 100_000)).collect();
    let (count, why) = refusals(&traced.send(JSON, make_request("json", &otlp).await).await);
    let told = format!("1: result {} has 1000 spans, and no more are kept", traced.ids[0]);
    assert_eq!((count.as_str(), why), ("1", told));
    let added = traced.world.post(&path, list(0..7)).await;
    let told = "0 spans stored, 7 refused: a result has at most 1000";
    assert_eq!((&added["accepted"], &added["rejected"], &added["message"]), (&json!(0), &json!(7), &json!(told)));
    let spans = traced.spans(0).await;
    assert_eq!((spans.len(), &spans[7]["end_offset_ms"], &spans[7]["source"]), (1000, &json!(7.5), &json!("posted")));
}

#[tokio::test]
async fn spans_that_cannot_be_are_refused_with_their_place() {
    let traced = Traced::new().await;
    let path = format!("/v1/simulation-result/{}/spans", traced.ids[0]);
    let span = |name: &str, from: f64, to: f64, size: usize| json!({ "name": name, "start_offset_ms": from, "end_offset_ms": to, "attributes": { "a": "x".repeat(size) } });
    let good = span("a", 0.0, 1.0, 1);
    for (body, status, expect) in [
        (json!([good, span("b", 3.0, 2.5, 1)]), 400, "spans[1].end_offset_ms is 2.5, before its start_offset_ms 3"),
        (
            json!([good, span("b", 1.0, 2.0, 20_000)]),
            400,
            "spans[1].attributes have 20008 bytes; at most 16384 are kept",
        ),
        (json!([span("b", -1.0, 2.0, 1)]), 422, "start_offset_ms"),
        (json!([span("", 1.0, 2.0, 1)]), 422, "name"),
        (json!([{ "name": "a", "start_offset_ms": 1 }]), 422, "end_offset_ms"),
        (json!({ "name": "a" }), 422, "list"),
    ] {
        let answer = traced.world.send("POST", &path, &[], body.to_string().into_bytes()).await;
        let told = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status == status && told.contains(expect), "{expect}: {} {told}", answer.status);
    }
    assert_eq!(traced.spans(0).await.len(), 0, "nothing of a refused request is kept");
}

#[tokio::test]
async fn requests_that_are_no_otlp_are_refused() {
    let traced = Traced::new().await;
    let send = async |headers: &[(&str, &str)], body: &[u8]| {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer = traced.world.send("POST", "/v1/traces", &headers, body.to_vec()).await;
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    };
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&vec![0; 17 << 20]).expect("memory takes it");
    let bomb = packer.finish().expect("memory takes it");
    let kind = |kind: &'static str| ("content-type", kind);
    for (headers, body, status, expect) in [
        (vec![kind(PROTOBUF)], &b"\xff\xff\xff"[..], 400, "no OTLP request in protobuf"),
        (vec![kind(JSON)], b"{\"resourceSpans\": 7}", 400, "no OTLP request in JSON"),
        (vec![kind(JSON)], b"not JSON", 400, "no OTLP request in JSON"),
        (vec![kind("text/plain")], b"", 415, "Content-Type must be application/x-protobuf or application/json"),
        (vec![kind(PROTOBUF), ("content-encoding", "br")], b"", 415, "gzip or identity"),
        (vec![kind(PROTOBUF), ("content-encoding", "gzip")], b"plain", 400, "no gzip"),
        (vec![kind(PROTOBUF), ("content-encoding", "gzip")], &bomb, 413, "4194304 bytes"),
        (vec![kind(PROTOBUF), ("x-api-key", "wrong")], b"", 401, "key"),
        (vec![kind(PROTOBUF), ("x-api-key", "$read")], b"", 403, "write"),
        (vec![kind(PROTOBUF)], b"", 200, ""),
    ] {
        let (found, told) = send(&headers, body).await;
        assert!(found == status && told.contains(expect), "{headers:?}: {found} {told}");
    }
    // A span that cannot be, among others: it alone is refused.
    let own = &traced.traces[0];
    let mut reversed = traced.span(own, 1, 0);
    reversed["end_ns"] = json!(1);
    let mut large = traced.span(own, 2, 0);
    large["attributes"]["a"] = json!("x".repeat(20_000));
    let body = make_request("json", &[reversed, large, traced.span(own, 3, 0)]).await;
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&body).expect("memory takes it");
    let headers = [("content-type".to_owned(), JSON.to_owned()), ("content-encoding".to_owned(), "gzip".to_owned())];
    let packed = packer.finish().expect("memory takes it");
    let (count, why) = refusals(&traced.world.send("POST", "/v1/traces", &headers, packed).await);
    assert_eq!(count, "2");
    assert_eq!(why, "1: the attributes have more than 16384 bytes; 1: the span ends before it starts");
    assert_eq!(traced.spans(0).await.len(), 1);
}

#[tokio::test]
async fn spans_go_with_their_result_and_by_retention() {
    let traced = Traced::new().await;
    let organization = traced.world.name("organization").to_owned();
    let posted = json!([{ "name": "a", "start_offset_ms": 0, "end_offset_ms": 1 }]);
    let path = |id: i64| format!("/v1/simulation-result/{id}/spans");
    for id in traced.ids {
        traced.world.post(&path(id), posted.clone()).await;
        for step in [S::Running, S::ConversationEnded, S::Evaluating, S::Completed].windows(2) {
            let moved = traced.world.service.conversations().advance(&organization, id, step[0], step[1], |_| ());
            moved.await.expect("an allowed step");
        }
    }
    let first = format!("/v1/simulation-result/{}", traced.ids[0]);
    assert_eq!(traced.world.send("DELETE", &first, &[], Vec::new()).await.status, 200);
    let kept = async |id: i64| {
        let mut db = traced.world.service.store().org(&organization).read().await.expect("a session");
        let spans = db.count_spans(id).await.expect("a number");
        (spans, db.find_trace(id, 1).await.expect("it is read").is_some())
    };
    assert_eq!((kept(traced.ids[0]).await, kept(traced.ids[1]).await), ((0, false), (1, true)));
    let runs = traced.world.service.runs();
    traced.world.service.clock().advance_ms(100 * 24 * 3600 * 1000);
    runs.clear_old(&Retention { results_days: 30, ..Retention::default() }).await.expect("it is cleared");
    assert_eq!(kept(traced.ids[1]).await, (0, false));
    let gone = runs.result(&Caller::engine(&organization), traced.ids[1]).await;
    assert!(gone.is_err(), "the result went with them");
}
