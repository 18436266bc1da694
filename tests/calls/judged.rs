//! A whole run whose goals are judged: from the words of real calls to the verdict of the run.

use std::sync::Arc;

use parking_lot::Mutex;
use ringer::provider::fake::FakeRecognizer;
use ringer::provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::house::House;
use super::runs::sip;
use crate::json::with;
use crate::peers::Peer;

/// Judges by what the caller was to reach: on Monday it is reached, on Tuesday it is not, on Friday nobody can tell.
#[derive(Default)]
struct Judge(Mutex<Vec<String>>);

impl LanguageModel for Judge {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        let material = request.messages.get(1).map(|message| message.content.clone()).unwrap_or_default();
        let verdict = |reached: bool, why: &str| {
            json!({
                "goal_success": reached, "goal_reasoning": why, "hallucination": false, "hallucination_reasoning": "No.",
                "redundancy": false, "redundancy_reasoning": "No.", "call_summary": "A caller wanted a table.",
                "sentiment_scores": { "positive": 0.2, "neutral": 0.8, "negative": 0 }, "sentiment_score": 0.1,
            })
        };
        let answer = match () {
            () if material.contains("for Monday") => verdict(true, "The table is booked.").to_string(),
            () if material.contains("for Tuesday") => verdict(false, "Nothing was booked.").to_string(),
            () => "It is hard to say.".to_owned(),
        };
        self.0.lock().push(material);
        Box::pin(async move {
            let _ = out.send(ChatPart::Text(answer)).await;
            Ok(())
        })
    }

    fn name(&self) -> String {
        "judge".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

fn metric(result: &Value, name: &str) -> Value {
    let metrics = result["metrics"].as_array().expect("metrics");
    metrics.iter().find(|metric| metric["name"] == name).map_or(Value::Null, |metric| metric["value"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn goals_decide_results_and_the_run() {
    let judge = Arc::new(Judge::default());
    let folder = tempfile::tempdir().expect("a folder");
    let house = House::of(folder, 20, &[], Some(judge.clone()), Arc::new(FakeRecognizer::default())).await;
    let peer = Peer::answering(4);
    let opens = json!({ "speaks_first": true, "mode": "custom", "message": "I need a table" });
    let wants = |day: &str| {
        let criteria = json!({ "success_criteria": format!("A table is booked for {day}.") });
        with(json!({ "name": day, "speaks_first_config": opens }), criteria)
    };
    let humans = [wants("Monday"), wants("Tuesday"), wants("Friday"), wants("Monday")];
    // Time for all of its four words, however long it waits with the first.
    let simulation = json!({
        "max_call_duration": 4, "max_concurrent": 2, "outcome_failing_threshold": 50, "outcome_passing_threshold": 90,
    });
    let (run, ids) = house.queue(sip(&peer), simulation, &humans).await;
    for id in &ids {
        house.events(id).await;
    }
    let mut verdicts = Vec::new();
    for id in &ids {
        let result = house.result(id).await;
        let evaluation = &result["evaluations"][0];
        assert_eq!(result["status"], "COMPLETED", "{result}");
        assert_eq!((metric(&result, "goal_success"), metric(&result, "success")), {
            let goal = evaluation["goal_success"].clone();
            (goal.clone(), goal)
        });
        if evaluation["status"] != "not_evaluated" {
            assert_eq!(metric(&result, "call_summary"), "A caller wanted a table.");
            assert_eq!(result["metadata"]["judge_model"], "judge");
        }
        let verdict =
            [&evaluation["goal_success"], &evaluation["goal_reasoning"], &result["outcome"]].map(Clone::clone);
        verdicts.push((verdict, evaluation["not_evaluated_reason"].clone()));
    }
    let reached = [json!(true), json!("The table is booked."), json!("passed")];
    let missed = [json!(false), json!("Nothing was booked."), json!("failed")];
    let open = [Value::Null, Value::Null, json!("not_evaluated")];
    let count = |wanted: &[Value; 3]| verdicts.iter().filter(|(verdict, _)| verdict == wanted).count();
    assert_eq!((count(&reached), count(&missed), count(&open)), (2, 1, 1), "{verdicts:?}");
    let reason = verdicts.iter().find(|(verdict, _)| *verdict == open).map(|(_, reason)| reason.clone());
    assert_eq!(reason, Some(json!("Judge answer could not be read")));

    let read = house.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
    let run = &read["simulation_run"];
    for (name, expect) in [
        ("status", json!("COMPLETED")),
        ("total_tests", json!(4)),
        ("tests_completed", json!(4)),
        ("tests_passed", json!(2)),
        ("tests_failed", json!(1)),
        ("tests_not_evaluated", json!(1)),
        ("tests_cancelled", json!(0)),
        // Two of the three that were judged: 66.7, between the two thresholds.
        ("outcome", json!("warning")),
    ] {
        assert_eq!(run[name], expect, "{name}: {run}");
    }
    // Each was asked once, the one that could not be read twice more; each with its own goal and words.
    let mut asked = judge.0.lock().clone();
    // What it is told of the run is another question.
    asked.retain(|material| material.starts_with("What the caller was to reach:"));
    let of = |day: &str| asked.iter().filter(|material| material.contains(&format!("for {day}"))).count();
    assert_eq!((of("Monday"), of("Tuesday"), of("Friday"), asked.len()), (2, 1, 3, 6), "{asked:?}");
    assert!(asked.iter().all(|material| material.contains("USER: I need a table")), "{asked:?}");
    peer.end();
    house.stop().await;
}
