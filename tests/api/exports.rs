//! Exports for notebooks and speech tools, read back by the readers of others (`make peers` installs them).

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ringer::model::result::{MetricValue, ResultDoc};
use ringer::model::transcript::Transcript;
use serde_json::{Map, Value, json};

use super::results::queued;
use super::world::World;

/// Texts that a form of a table may break.
const TEXTS: [&str; 6] = ["say \"hi\", twice", "two\nlines", "深夜のカフェ", "مرحبا 👋", "=1+1", "  "];

/// Reads a file with the reader of somebody else.
fn read_back(kind: &str, file: &[u8]) -> Value {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(here.join(".venv/bin/python"));
    command.arg(here.join("tests/python/exports.py")).arg(kind).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; `make peers` installs it"));
    child.stdin.take().expect("it is piped").write_all(file).expect("it reads");
    let out = child.wait_with_output().expect("it ends");
    assert!(out.status.success(), "{kind}");
    serde_json::from_slice(&out.stdout).expect("JSON")
}

async fn export(world: &World, run: i64, query: &str) -> (String, Vec<u8>) {
    let answer = world.send("GET", &format!("/v1/simulation-run/{run}/export?{query}"), &[], Vec::new()).await;
    assert_eq!(answer.status, 200, "{query}: {}", String::from_utf8_lossy(&answer.body));
    (answer.headers["content-type"].to_str().expect("text").to_owned(), answer.body)
}

async fn as_json(world: &World, run: i64, query: &str) -> Value {
    let (kind, body) = export(world, run, query).await;
    assert_eq!(kind, "application/json");
    serde_json::from_slice(&body).expect("JSON")
}

/// Returns the values of each line.
fn lines(body: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(body).expect("text");
    text.split_terminator('\n').map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

async fn amend(world: &World, id: i64, change: impl FnMut(&mut ResultDoc) + Send) {
    world.service.conversations().amend(world.name("organization"), id, change).await.expect("is there");
}

/// Gives a result the timeline of a call, and a transcript with difficult words in its turns; returns its turns.
async fn give_words(world: &World, id: i64) -> Vec<Value> {
    let (organization, conversations) = (world.name("organization"), world.service.conversations());
    let timeline: Value = serde_json::from_str(include_str!("../../fixtures/timelines/call.json")).expect("a list");
    let events = timeline.as_array().expect("a list");
    conversations.store_timeline(organization, id, events).await.expect("is kept");
    let path = format!("/v1/simulation-result/{id}/turns");
    let turns = world.get(&path).await["turns"].as_array().expect("turns").clone();
    let entry = |(turn, words): (&Value, &&str)| {
        let ms = |name: &str| turn[name].as_i64().expect("a sample") / 16;
        json!({
            "start_offset_ms": ms("from_sample"), "end_offset_ms": ms("to_sample"), "speaker": turn["speaker"],
            "utterance": words, "text_missing": null, "filler_utterance": false, "interrupted": false, "scripted": false,
            "confidence": null, "source": "recognized", "words": [],
        })
    };
    let entries: Vec<Value> = turns.iter().zip(TEXTS.iter().cycle()).map(entry).collect();
    let transcript = json!({ "simulation_result_id": id, "language": "en", "entries": entries });
    let transcript: Transcript = serde_json::from_value(transcript).expect("a transcript");
    conversations.store_transcript(organization, &transcript).await.expect("is kept");
    world.get(&path).await["turns"].as_array().expect("turns").clone()
}

#[tokio::test]
async fn turns_are_the_same_rows_in_every_form() {
    let (world, run, [first, second]) = queued().await;
    let turns = give_words(&world, first).await;
    assert!(turns.len() >= TEXTS.len() && turns.iter().any(|turn| turn["latency_ms"].is_number()), "{turns:?}");
    let whole = as_json(&world, run, "format=json&rows=turns").await;
    assert_eq!(whole["simulation_run"]["id"], json!(run.to_string()));
    let rows = whole["turns"].as_array().expect("rows");
    assert_eq!(rows.len(), turns.len(), "the result without a timeline ({second}) has no row");
    for (row, turn) in rows.iter().zip(&turns) {
        for name in
            ["index", "speaker", "from_sample", "to_sample", "text", "interrupted", "latency_ms", "latency_from_turn"]
        {
            assert_eq!(row[name], turn[name], "{name}: {row}");
        }
        assert_eq!((&row["simulation_result_id"], &row["simulation_run_id"]), (&json!(first), &json!(run)));
        assert_eq!((&row["digital_human_name"], &row["repetition"]), (&json!("Maria"), &json!(1)));
        assert_eq!(row["from_ms"].as_f64(), turn["from_sample"].as_i64().map(|sample| sample as f64 / 16.0));
    }
    let (kind, body) = export(&world, run, "format=jsonl&rows=turns").await;
    assert_eq!((kind.as_str(), lines(&body)), ("application/x-ndjson", rows.clone()));
    let (kind, body) = export(&world, run, "format=parquet&rows=turns").await;
    assert_eq!((kind.as_str(), &body[..4]), ("application/vnd.apache.parquet", &b"PAR1"[..]));
    let back = read_back("parquet", &body);
    assert_eq!(back["rows"], json!(rows));
    let types = ["index", "from_ms", "text", "interrupted"].map(|name| back["types"][name].clone());
    assert_eq!(types, ["int64", "double", "string", "bool"]);
    let (kind, body) = export(&world, run, "rows=turns").await;
    assert_eq!(kind, "text/csv; charset=utf-8");
    let back = read_back("csv", &body);
    let expect: Vec<Value> = rows.iter().map(|row| json!(cells(row))).collect();
    assert_eq!(back["rows"], json!(expect));
}

/// Returns a row as the texts of its cells.
fn cells(row: &Value) -> Map<String, Value> {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with('=') => format!("'{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    row.as_object().expect("a row").iter().map(|(name, value)| (name.clone(), json!(text(value)))).collect()
}

#[tokio::test]
async fn results_are_typed_columns_and_lines() {
    let (world, run, [first, second]) = queued().await;
    let metric = |name: &str, value: Value| MetricValue { name: name.into(), value, note: None };
    for (id, mixed) in [(first, json!(3)), (second, json!("many\n\"words\""))] {
        amend(&world, id, |doc| {
            doc.body.duration = Some(12);
            let whole = metric("num_turns", json!(3));
            doc.body.metrics = vec![whole, metric("mixed", mixed.clone()), metric("none", Value::Null)];
            doc.body.metrics.push(metric("told", json!(true)));
        })
        .await;
    }
    let whole = as_json(&world, run, "format=json").await;
    let (kind, body) = export(&world, run, "format=jsonl").await;
    assert_eq!((kind.as_str(), json!(lines(&body))), ("application/x-ndjson", whole["simulation_results"].clone()));
    let back = read_back("parquet", &export(&world, run, "format=parquet&rows=results").await.1);
    let types = json!({
        "id": "int64", "digital_human_id": "int64", "digital_human_name": "string", "status": "string",
        "outcome": "string", "duration": "int64", "error_code": "string", "goal_success": "bool", "num_turns": "double",
        "mixed": "string", "none": "double", "told": "bool", "verdict": "string", "verdict_reason": "string",
    });
    assert_eq!(back["types"], types);
    for (row, result) in
        back["rows"].as_array().expect("rows").iter().zip(whole["simulation_results"].as_array().expect("a list"))
    {
        for name in ["id", "digital_human_id", "status", "outcome", "duration", "error_code"] {
            assert_eq!(row[name], result[name], "{name}");
        }
        assert_eq!((&row["num_turns"], &row["none"], &row["told"]), (&json!(3.0), &Value::Null, &json!(true)));
    }
    assert_eq!(back["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!((&back["rows"][0]["mixed"], &back["rows"][1]["mixed"]), (&json!("3"), &json!("many\n\"words\"")));
}

#[tokio::test]
async fn an_empty_run_has_columns_and_no_row() {
    let (world, run, [first, second]) = queued().await;
    let parquet =
        async |rows: &str| read_back("parquet", &export(&world, run, &format!("format=parquet{rows}")).await.1);
    let turns = parquet("&rows=turns").await;
    assert_eq!((&turns["rows"], &turns["types"]["latency_ms"]), (&json!([]), &json!("double")));
    for id in [first, second] {
        world.call("POST", &format!("/v1/simulation-run/{run}/cancel"), json!({})).await;
        world.call("DELETE", &format!("/v1/simulation-result/{id}"), Value::Null).await;
    }
    let results = parquet("").await;
    assert_eq!((&results["rows"], &results["types"]["id"]), (&json!([]), &json!("int64")));
    for rows in ["results", "turns"] {
        assert_eq!(export(&world, run, &format!("format=jsonl&rows={rows}")).await.1, b"");
    }
    assert_eq!(as_json(&world, run, "format=json&rows=turns").await["turns"], json!([]));
}

#[tokio::test]
async fn bad_words_and_other_keys_are_refused() {
    let (world, run, [first, _]) = queued().await;
    give_words(&world, first).await;
    let path = |query: &str| format!("/v1/simulation-run/{run}/export?{query}");
    let formats = "format must be csv, json, junit, parquet or jsonl";
    for (query, expect) in [
        ("format=pdf", formats),
        ("format=pdf&rows=words", formats),
        ("rows=words", "rows must be results or turns"),
        ("format=parquet&rows=", "rows must be results or turns"),
        ("format=junit&rows=turns", "rows must be results for the format junit"),
    ] {
        let answer = world.send("GET", &path(query), &[], Vec::new()).await;
        assert_eq!((answer.status, &answer.json()["detail"]), (400, &json!(expect)), "{query}");
    }
    let with = |key: &str| [("x-api-key".to_owned(), key.to_owned())];
    for query in ["format=parquet", "format=jsonl&rows=turns"] {
        for (key, expect) in [("$read", 200), ("$foreign", 404), ("nobody", 401)] {
            let answer = world.send("GET", &path(query), &with(key), Vec::new()).await;
            assert_eq!(answer.status, expect, "{query} {key}");
        }
    }
}

#[tokio::test]
async fn what_is_private_is_in_no_form() {
    let (world, run, [first, _]) = queued().await;
    give_words(&world, first).await;
    amend(&world, first, |doc| doc.private = true).await;
    assert_eq!(as_json(&world, run, "format=json&rows=turns").await["turns"], json!([]));
    assert_eq!(read_back("parquet", &export(&world, run, "format=parquet&rows=turns").await.1)["rows"], json!([]));
    for format in ["json", "rttm", "textgrid"] {
        let path = format!("/v1/simulation-result/{first}/transcript?format={format}");
        assert_eq!(world.send("GET", &path, &[], Vec::new()).await.status, 404, "{format}");
    }
}

#[tokio::test]
async fn transcripts_are_marks_of_speech_tools() {
    let (world, _, [first, second]) = queued().await;
    give_words(&world, first).await;
    let length_ms = 3_600_250;
    amend(&world, first, |doc| doc.body.duration_ms = Some(length_ms)).await;
    let path = |id: i64, format: &str| format!("/v1/simulation-result/{id}/transcript?format={format}");
    let read = async |format: &str| {
        let answer = world.send("GET", &path(first, format), &[], Vec::new()).await;
        assert_eq!(
            (answer.status, &answer.headers["content-type"]),
            (200, &"text/plain; charset=utf-8".parse().expect("a value"))
        );
        answer.body
    };
    let whole = world.get(&path(first, "json")).await;
    let mut entries = whole["entries"].as_array().expect("entries").clone();
    entries.sort_by_key(|entry| entry["start_offset_ms"].as_i64());
    let seconds = |entry: &Value, name: &str| entry[name].as_i64().expect("a time") as f64 / 1000.0;
    let near = |one: &Value, other: f64| (one.as_f64().expect("seconds") - other).abs() < 1e-6;
    let marks = read_back("rttm", &read("rttm").await);
    let marks = marks.as_array().expect("a list");
    assert_eq!(marks.len(), entries.len());
    for (mark, entry) in marks.iter().zip(&entries) {
        let (from, to) = (seconds(entry, "start_offset_ms"), seconds(entry, "end_offset_ms"));
        assert!(near(&mark["turn_onset"], from) && near(&mark["turn_duration"], to - from), "{mark} {entry}");
        assert_eq!((&mark["speaker_name"], &mark["file_id"]), (&entry["speaker"], &json!(format!("result-{first}"))));
    }
    let grid = read_back("textgrid", &read("textgrid").await);
    assert!(near(&grid["length"], length_ms as f64 / 1000.0), "{}", grid["length"]);
    for (tier, name) in grid["tiers"].as_array().expect("tiers").iter().zip(["USER", "AGENT"]) {
        assert_eq!(tier["name"], name);
        let intervals = tier["intervals"].as_array().expect("intervals");
        let mut at = 0.0;
        for interval in intervals {
            assert!(near(&interval[0], at), "{name}: a gap at {at}");
            at = interval[1].as_f64().expect("seconds");
        }
        assert!(near(&json!(at), length_ms as f64 / 1000.0));
        let labels: Vec<&str> =
            intervals.iter().filter_map(|one| one[2].as_str()).filter(|label| !label.is_empty()).collect();
        let own = entries.iter().filter(|entry| entry["speaker"] == name);
        let said: Vec<String> =
            own.map(|entry| entry["utterance"].as_str().expect("words").trim().replace('\n', " ")).collect();
        assert_eq!(labels, said.iter().filter(|words| !words.is_empty()).collect::<Vec<_>>());
    }
    assert_eq!(world.send("GET", &path(second, "textgrid"), &[], Vec::new()).await.status, 404);
    let wrong = world.send("GET", &path(first, "srt"), &[], Vec::new()).await;
    assert_eq!(wrong.json()["detail"], "format must be json, text, vtt, rttm or textgrid");
}
