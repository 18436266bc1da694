//! Planted faults by the program: each is found, what is sound passes, and meaning waits for a language model.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Bench;
use super::blame::serve;
use crate::program::{PATIENCE, ringer};

/// Returns what `ringer selftest --json` prints with these flags, and its exit code; `settings`: a file of settings.
async fn selftest(bench: &Bench, flags: &[&str], settings: Option<&str>) -> (Value, Option<i32>) {
    let mut command = ringer(&[&["selftest", "--json"], flags].concat());
    command.current_dir(bench.path()).env("RINGER_LOG", "error");
    if let Some(settings) = settings {
        command.env("RINGER_CONFIG", bench.write("settings.toml", settings));
    }
    let out = timeout(3 * PATIENCE, command.output()).await.expect("it ends in time").expect("it starts");
    let text = String::from_utf8(out.stdout).expect("it is text");
    (serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("one JSON object, not {text}")), out.status.code())
}

/// Two calls for each fault with the suite that should find it, two with a suite that the fault does not touch, and two
/// of an agent without the fault.
#[tokio::test]
async fn each_fault_is_found_and_each_counterpart_passes() {
    let bench = Bench::new();
    let (report, code) = selftest(&bench, &["--seeds", "2"], None).await;
    assert_eq!(code, Some(0), "{report:#}");
    for (key, expect) in [("recall", 1.0), ("precision", 1.0)] {
        assert_eq!(report[key], expect, "{report:#}");
    }
    let counts =
        ["missed", "false_alarms", "wrongly_charged", "without_model", "calls"].map(|key| report[key].as_u64());
    assert_eq!(counts, [0, 0, 0, 4, 2 * (26 + 26 + 19)].map(Some), "{report:#}");
    let found = |fault: &Value| fault["found"] == fault["of"];
    let others: Vec<&Value> =
        report["faults"].as_array().into_iter().flatten().filter(|one| !found(one)).map(|one| &one["fault"]).collect();
    assert_eq!(others, ["invents_booking"], "{report:#}");
}

/// Says no where the agent says that something is booked before the caller has said yes.
async fn read_in_order(body: String) -> Response {
    let body: Value = serde_json::from_str(&body).expect("the request is JSON");
    let last = body["messages"].as_array().and_then(|all| all.last()).and_then(|one| one["content"].as_str());
    let material = last.unwrap_or_default().to_lowercase();
    let (booked, agreed) = (material.find("booked"), material.find("yes please"));
    let is_early = booked.is_some_and(|booked| agreed.is_none_or(|agreed| booked < agreed));
    let answer = if is_early { "no" } else { "yes" };
    let verdict = json!({ "reasoning": format!("booked at {booked:?}, agreed at {agreed:?}"), "answer": answer });
    let delta = json!({ "choices": [{ "delta": { "content": verdict.to_string() }, "finish_reason": "stop" }] });
    ([("content-type", "text/event-stream")], format!("data: {delta}\n\ndata: [DONE]\n\n")).into_response()
}

#[tokio::test]
async fn a_booking_that_nobody_asked_for_is_found_by_a_model_and_not_told_without() {
    let bench = Bench::new();
    let flags = ["--seeds", "2", "--fault", "invents_booking"];
    let (report, code) = selftest(&bench, &flags, None).await;
    let counts = |report: &Value| {
        ["missed", "false_alarms", "wrongly_charged", "without_model", "calls"].map(|key| report[key].as_u64())
    };
    assert_eq!((counts(&report), code), ([0, 0, 0, 4, 6].map(Some), Some(0)), "{report:#}");
    let reason = report["faults"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.ends_with(": No language model is configured"), "{report:#}");

    let (address, _serving) = serve(Router::new().route("/v1/chat/completions", post(read_in_order))).await;
    let settings = format!("[language_model]\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\n");
    let (report, code) = selftest(&bench, &flags, Some(&settings)).await;
    assert_eq!((counts(&report), code), ([0, 0, 0, 0, 6].map(Some), Some(0)), "{report:#}");
    assert_eq!((&report["faults"][0]["found"], &report["recall"]), (&json!(2), &json!(1.0)), "{report:#}");
}

#[tokio::test]
async fn agents_without_a_fault_are_not_charged() {
    let bench = Bench::new();
    let (report, code) = selftest(&bench, &["--clean", "12", "--from", "100"], None).await;
    let counts = ["calls", "charged"].map(|key| report[key].as_u64());
    assert_eq!(counts, [Some(12), Some(0)], "{report:#}");
    // Twelve calls are too few to say it.
    assert_eq!((&report["verdict"], code), (&json!("unknown"), Some(3)), "{report:#}");
}
