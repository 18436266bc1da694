//! Limits of the providers of either side, and calls of tools in time, by the program.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::answers::{Answers, Manner};
use super::blame::{check, serve};
use super::{Bench, DESK, suite};

/// A completion of an agent or a model.
fn completion(message: &Value) -> String {
    json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] }).to_string()
}

/// Refuses as providers do whose limit is reached.
async fn answer_limit() -> Response {
    let body = json!({ "error": { "message": "You exceeded your current quota.", "type": "insufficient_quota" } });
    (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")], body.to_string()).into_response()
}

/// Answers the first request of a call, and has reached its limit by the second.
async fn limited_later(body: String) -> Response {
    let body: Value = serde_json::from_str(&body).expect("the request is JSON");
    let messages = body["messages"].as_array().expect("a list").iter();
    match messages.filter(|message| message["role"] == "user").count() {
        0 | 1 => completion(&json!({ "role": "assistant", "content": "For how many?" })).into_response(),
        _ => answer_limit().await,
    }
}

#[tokio::test]
async fn a_limit_of_the_agents_provider_is_not_its_fault() {
    let bench = Bench::new();
    let full = Answers::with(Manner::Full).await;
    let counted = Answers::with(Manner::Refuses(500, "Call limit of the account reached")).await;
    let (at_once, _serving) = serve(Router::new().route("/v1/chat/completions", post(answer_limit))).await;
    let (later, _serving_later) = serve(Router::new().route("/v1/chat/completions", post(limited_later))).await;
    let (hook, _serving_hook) = serve(Router::new().route("/hook", post(answer_limit))).await;
    let goal = "    goal: I want a table. For two.\n    expect: [{ heard: booked }]\n";
    let mut files = Vec::new();
    for (name, connect) in [
        ("trunk", format!("sip: \"sip:desk@{}\"", full.address)),
        ("account", format!("sip: \"sip:desk@{}\"", counted.address)),
        ("chat", format!("chat: \"http://{at_once}/v1\", model: m")),
        ("chat in mid call", format!("chat: \"http://{later}/v1\", model: m")),
        ("hook", format!("http: \"http://{hook}/hook\"")),
    ] {
        bench.write(&format!("{name}.yaml"), &suite(&connect, &format!("  - name: {name}\n{goal}")));
        files.push(format!("{name}.yaml"));
    }
    let args: Vec<&str> = files.iter().map(String::as_str).collect();
    let ran = bench.run(&args).await;
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    check(
        &bench,
        &[
            ("trunk", "unreachable", "CUSTOMER_CONCURRENCY_LIMIT", "503"),
            ("account", "unreachable", "CUSTOMER_CONCURRENCY_LIMIT", "limit of the account"),
            ("chat", "unreachable", "CUSTOMER_CONCURRENCY_LIMIT", "429"),
            ("chat in mid call", "unknown", "CUSTOMER_CONCURRENCY_LIMIT", "429"),
            ("hook", "unreachable", "HTTP_WEBHOOK_FAILED", "429"),
        ],
    );
}

#[tokio::test]
async fn a_limit_of_this_sides_model_is_not_the_agents_fault() {
    let bench = Bench::new();
    let (address, _serving) = serve(Router::new().route("/v1/chat/completions", post(answer_limit))).await;
    let config = format!("[language_model]\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\n");
    bench.write("limited.toml", &config);
    let scenarios = "  - name: speaks
    goal: I need an appointment.
    max_seconds: 60
    expect: [{ heard: pineapple }, { heard: clinic }, { meaning: The agent greets the caller. }]
  - name: is judged
    turns: [{ expect: { contains: press one, meaning: It greets. } }]\n";
    bench.write("limited.yaml", &suite(DESK, scenarios));
    let ran = bench.run(&["limited.yaml", "--sim", "--config", "limited.toml"]).await;
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    check(
        &bench,
        &[
            ("speaks", "unknown", "expectation", "the agent did not say 'pineapple'; this side failed: model_failed"),
            ("is judged", "unknown", "expectation", "turn 1: "),
        ],
    );
    let lines = bench.lines();
    let status: Vec<&Value> =
        lines[0]["expectations"].as_array().expect("a list").iter().map(|one| &one["status"]).collect();
    assert_eq!(status, ["unknown", "passed", "unknown"], "what was found is told: {}", lines[0]);
    let has_failed = |line: &Value| line["own_faults"].as_array().expect("a list")[0]["code"] == "model_failed";
    assert!(has_failed(&lines[0]), "{}", lines[0]);
}

/// An agent that takes its time before it calls a tool and answers.
async fn books_late() -> Response {
    // The slowness of the agent, which is what is measured.
    sleep(Duration::from_millis(400)).await;
    let call = json!({ "id": "c", "type": "function", "function": { "name": "book", "arguments": "{\"seats\":2}" } });
    completion(&json!({ "role": "assistant", "content": "Booked.", "tool_calls": [call] })).into_response()
}

#[tokio::test]
async fn a_tool_is_called_in_time_or_too_late() {
    let bench = Bench::new();
    let (address, _serving) = serve(Router::new().route("/v1/chat/completions", post(books_late))).await;
    let connect = format!("chat: \"http://{address}/v1\", model: m");
    let scenario = |name: &str, within_ms: u32| {
        format!(
            "  - name: {name}\n    turns: [{{ say: A table for two. }}, {{ expect: {{ contains: booked }} }}]
    expect: [{{ tool: book, args: {{ seats: 2 }}, within_ms: {within_ms} }}]\n"
        )
    };
    bench.write("tools.yaml", &suite(&connect, &[scenario("in time", 100_000), scenario("late", 300)].concat()));
    // The same in the words of evals.
    let evals = |within_ms: u32| {
        format!(
            "connect: {{ {connect} }}\nturns:\n  - user: A table for two.\n    expect:
      - {{ event: function_call, name: book, args: {{ seats: 2 }}, within_ms: {within_ms} }}
      - {{ event: response, text_contains: booked }}\n"
        )
    };
    bench.write("evals late.yaml", &evals(300));
    bench.write("evals in time.yaml", &evals(100_000));
    let ran = bench.run(&["tools.yaml", "evals late.yaml", "evals in time.yaml"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let late = "book was not called with these arguments within 300 ms but after ";
    check(
        &bench,
        &[
            ("in time", "passed", "", ""),
            ("late", "failed", "expectation", late),
            ("evals in time", "passed", "", ""),
            ("evals late", "failed", "expectation", late),
        ],
    );
}
