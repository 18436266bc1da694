//! Uses and costs of language models, and budgets that end their use for a day.

use std::sync::Arc;

use ringer::clock::Clock;
use ringer::provider::testing::ScriptedModel;
use serde_json::{Value, json};

use super::judged::{answering, judgement};
use super::model_server::ModelServer;
use super::talk::{Talk, queue};
use super::world::World;

const CONVERSATION: &str = "You judge a conversation";
const SUMMARY: &str = "You are given the outcome of a test run";
const WRITER: &str = "You are a person who writes";
const METRIC: &str = "You judge one metric";
/// Times that a metric is judged, one a minute: more than an evaluation may take.
const RUNS: i64 = 11;
const DAY_MS: i64 = 86_400_000;

/// Returns a server whose model writes, judges and sums up.
async fn server(tokens: Option<(u64, u64)>) -> ModelServer {
    let answer = |first: &str, _: &str| match () {
        () if first.contains(CONVERSATION) => Some(judgement()),
        () if first.contains(SUMMARY) => Some(json!({ "summary": "One passed." }).to_string()),
        () if first.contains(METRIC) => Some(json!({ "reasoning": "So.", "value": "pass" }).to_string()),
        () if first.contains(WRITER) => Some("I want a table for two.".to_owned()),
        () => None,
    };
    ModelServer::start(answer, tokens).await
}

/// Returns a Digital Human whose words a model writes.
fn writer() -> Value {
    json!({ "allow_end_call_tool": false, "success_criteria": "A table is booked." })
}

fn micro_usd(value: &Value) -> Option<i64> {
    value.as_f64().map(|usd| (usd * 1e6).round() as i64)
}

async fn run_of(talk: &Talk, result: &Value) -> Value {
    let path = format!("/v1/retrieve-simulation-results/{}", result["simulation_run_id"]);
    talk.world.get(&path).await["simulation_run"].clone()
}

#[tokio::test]
async fn tokens_and_cost_stand_with_the_result_and_the_run() {
    for tokens in [Some((1000, 100)), None] {
        let server = server(tokens).await;
        let (_hook, agent) = answering("For which day?").await;
        // A run is summed up where the service knows of a model; the one that is asked is the server's.
        let mut world = World::at_work(Some(Arc::new(ScriptedModel::new([].into())))).await;
        world.restart_with(|workshop| server.serve(workshop, None, None)).await;
        let mut talk = Talk::of(world, agent, json!({ "max_turns": 2 }), writer()).await;
        talk.until("COMPLETED").await;
        server.wait_for(SUMMARY).await;
        talk.world.restart().await;
        let (result, summaries) = (talk.result().await, server.count(SUMMARY));
        let asked = server.count("") - summaries;
        assert!(server.count(WRITER) >= 1 && server.count(CONVERSATION) == 1 && summaries == 1, "{asked}");
        let usage = &result["metadata"]["usage"];
        let (model, told) = (&usage["models"][0], tokens.is_some());
        assert_eq!(
            (&model["name"], &model["kind"], &model["model"]),
            (&json!("default"), &json!("language"), &json!("m1"))
        );
        assert_eq!(
            (&model["requests"], &model["unreported_requests"]),
            (&json!(asked), &json!(if told { 0 } else { asked }))
        );
        let times = |count: i64| if told { json!(count * asked) } else { Value::Null };
        assert_eq!((&usage["input_tokens"], &model["output_tokens"]), (&times(1000), &times(100)), "{usage}");
        // 1000 tokens at 1 USD and 100 at 10 USD a million cost 0.002 USD.
        assert_eq!((micro_usd(&usage["cost_usd"]), usage["cost_usd"].is_null()), (told.then_some(2000 * asked), !told));
        let run = run_of(&talk, &result).await;
        assert_eq!(run["usage"]["models"][0]["requests"], json!(asked + summaries), "{run}");
        assert_eq!(micro_usd(&run["usage"]["cost_usd"]), told.then_some(2000 * (asked + summaries)), "{run}");
    }
}

#[tokio::test]
async fn a_used_up_budget_holds_new_conversations_until_the_next_day() {
    let server = server(Some((1000, 100))).await;
    let (_hook, agent) = answering("For which day?").await;
    let budget = Some(0.002);
    let mut world = World::at_work_with(None, |settings| settings.callers_usd_per_day = budget).await;
    world.restart_with(|workshop| server.serve(workshop, budget, None)).await;
    let mut talk = Talk::of(world, agent.clone(), json!({ "max_turns": 3 }), writer()).await;
    let result = talk.until("COMPLETED").await;
    assert_eq!((server.count(WRITER), server.count(CONVERSATION)), (3, 0), "the caller goes on, the judge does not");
    let text = "the budget of [language_model] for today is used up: max_usd_per_day = 0.002, until 00:00 UTC";
    let evaluation = &result["evaluations"][0];
    assert_eq!(evaluation["status"], "not_evaluated", "{evaluation}");
    assert!(evaluation.to_string().contains(text), "{evaluation}");

    let (_, second) = queue(&talk.world, agent, json!({ "max_turns": 3 }), writer()).await;
    talk.turn_to(&second);
    let is_waiting = |result: &Value| result["queue_reason"] == "model_budget" && result["status"] == "QUEUED";
    let waiting = talk.when("it waits", is_waiting).await;
    assert_eq!(waiting["queue_reason_text"], text);
    assert_eq!(run_of(&talk, &waiting).await["queue_reasons"], json!({ "model_budget": 1 }));
    let wake = async |talk: &Talk| talk.world.service.conversations().wake_within_budget().await.expect("looked");
    wake(&talk).await;
    assert_eq!(talk.result().await["queue_reason"], "model_budget", "it is the same day");
    talk.advance(DAY_MS);
    wake(&talk).await;
    talk.until("COMPLETED").await;
    assert_eq!(server.count(WRITER), 6);
}

/// Requests of callers and judges wait for a place, and nothing fails for it: an evaluation may take 600 s, and the
/// time in which its requests wait does not count.
#[tokio::test]
async fn requests_over_the_limit_of_a_minute_wait() {
    let server = server(Some((10, 1))).await;
    let (_hook, agent) = answering("For which day?").await;
    let mut world = World::at_work(None).await;
    let clock = world.service.clock().clone();
    world.restart_with(|workshop| server.serve(workshop, None, Some((&clock, 1)))).await;
    let began_ms = clock.now_ms();
    let talk = Talk::of(world, agent, json!({ "max_turns": 2, "inactivity_timeout_seconds": 600 }), writer()).await;
    let result = while_time_passes(&clock, talk.until("COMPLETED")).await;
    assert_eq!((&result["error_code"], &result["evaluations"][0]["goal_success"]), (&Value::Null, &json!(true)));
    let asked = server.count("");
    assert!(asked >= 2 && clock.now_ms() - began_ms >= (asked - 1) * 60_000, "{asked} requests");

    let metric = json!({
        "name": "polite", "description": "It is polite.", "response_type": "pass_fail", "eval_method": "llm_judge",
        "agent_ids": [result["agent_id"]], "settings": { "runs": RUNS },
    });
    talk.world.post("/v1/create-custom-metric", metric).await;
    talk.world.post(&format!("/v1/re-evaluate-simulation-result/{}", talk.id), Value::Null).await;
    let judged = |result: &Value| !result["evaluations"][0]["custom_metrics"].as_array().is_none_or(Vec::is_empty);
    let result = while_time_passes(&clock, talk.when("it is judged again", judged)).await;
    let metric = &result["evaluations"][0]["custom_metrics"][0];
    assert_eq!((&metric["status"], server.count(METRIC)), (&json!("evaluated"), RUNS), "{metric}");
}

/// Returns the outcome of something while the clock moves to whatever somebody waits for, at most a minute at once.
async fn while_time_passes<T>(clock: &Clock, work: impl Future<Output = T>) -> T {
    let passing = async {
        loop {
            clock.advance_to_wait(60_000).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        done = work => done,
        () = passing => unreachable!("time does not end"),
    }
}
