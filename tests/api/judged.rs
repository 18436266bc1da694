//! Judgements of conversations by a language model, and without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringer::provider::LanguageModel;
use serde_json::{Value, json};

use super::oracle::Oracle;
use super::receiver::Receiver;
use super::talk::Talk;
use super::world::World;
use crate::json::with;

const CONVERSATION: &str = "You judge a conversation";
const PLAYBACK: &str = "You judge turns of a voice agent";
const QUESTION: &str = "The question: ";

/// Returns a judgement of a whole conversation.
pub(super) fn judgement() -> String {
    json!({
        "goal_success": true, "goal_reasoning": "So.", "hallucination": false, "hallucination_reasoning": "", "redundancy": false,
        "redundancy_reasoning": "", "sentiment_score": 0, "call_summary": "A table.",
        "sentiment_scores": { "positive": 0, "neutral": 1, "negative": 0 },
    })
    .to_string()
}

/// Returns an agent that answers each message with `text`.
pub(super) async fn answering(text: &str) -> (Receiver, Value) {
    let answers = (0..20).map(|_| (200, json!({ "message": text }).to_string())).collect();
    let hook = Receiver::answering(answers).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    (hook, agent)
}

/// Says one sentence and hears one answer.
fn caller(criteria: &str) -> Value {
    json!({ "success_criteria": "A table is booked.", "enriched_playback": [
        { "speaker": "user", "exact_message": "I want a table." }, { "speaker": "agent", "criteria": criteria },
    ]})
}

#[tokio::test]
async fn a_custom_error_is_asked_for_and_repeats_the_result() {
    let (hook, agent) = answering("Sorry, the kitchen is on fire.").await;
    let times = AtomicUsize::new(0);
    let model = Oracle::new(move |first, _| {
        if first.contains(QUESTION) {
            let answer = if times.fetch_add(1, Ordering::SeqCst) == 0 { "yes" } else { "no" };
            return Some(json!({ "reasoning": "It says so.", "answer": answer }).to_string());
        }
        first.contains(CONVERSATION).then(judgement)
    });
    let simulation = json!({
        "custom_error_enabled": true, "custom_error_prompt": "Does something burn?", "enable_rerun_on_custom_error": true,
    });
    let world = World::at_work(Some(model.clone())).await;
    let talk = Talk::of(world, agent, simulation, caller("offers a table")).await;
    let path = format!("/v1/simulation-result/{}/events", talk.id);
    let (result, watched) = tokio::join!(talk.until("COMPLETED"), talk.world.send("GET", &path, &[], Vec::new()));
    assert_eq!((&result["attempt"], &result["tags"]), (&json!(2), &json!([])), "the second time nothing burns");
    let numbers: Vec<i64> = talk.feed.events_from(0).0.iter().filter_map(|event| event.seq).collect();
    assert_eq!(numbers.iter().filter(|seq| **seq == 0).count(), 2, "each attempt counts anew");
    let watched = String::from_utf8(watched.body).expect("text");
    let ids: Vec<i64> =
        watched.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().expect("a number")).collect();
    assert!(ids.starts_with(&numbers), "{numbers:?} {watched}");
    assert_eq!(result["metadata"]["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!(result["metadata"]["custom_error"], json!({ "answer": false, "reasoning": "It says so." }));
    let held = hook.requests().iter().filter(|seen| seen.json()["message"] == "I want a table.").count();
    assert_eq!(held, 2);
    let asked = model.requests_with("The question: Does something burn?");
    assert!(asked.len() == 2 && asked[0].contains("AGENT: Sorry, the kitchen is on fire."), "{asked:?}");
}

#[tokio::test]
async fn a_custom_error_that_is_not_repeated_is_a_tag_and_one_that_nobody_can_judge_a_warning() {
    let (_hook, agent) = answering("Sorry, the kitchen is on fire.").await;
    let yes: Arc<dyn LanguageModel> =
        Oracle::new(|first, _| first.contains(QUESTION).then(|| json!({ "answer": "yes" }).to_string()));
    let enabled = json!({ "custom_error_enabled": true, "custom_error_prompt": "Does something burn?" });
    for (model, simulation, tags, warning) in [
        (Some(yes.clone()), enabled.clone(), json!(["custom_error"]), None),
        (Some(yes.clone()), json!({ "custom_error_prompt": "Does something burn?" }), json!([]), None),
        (None, enabled.clone(), json!([]), Some("evaluation: custom_error_prompt: not asked without a language model")),
        (
            Some(Oracle::new(|_, _| None) as Arc<dyn LanguageModel>),
            enabled,
            json!([]),
            Some("evaluation: custom_error_prompt: not answered: the oracle is silent"),
        ),
        (
            Some(yes),
            json!({ "custom_error_enabled": true }),
            json!([]),
            Some("evaluation: custom_error_enabled: there is no custom_error_prompt to ask"),
        ),
    ] {
        let talk = Talk::of(World::at_work(model).await, agent.clone(), simulation.clone(), caller("")).await;
        let result = talk.until("COMPLETED").await;
        assert_eq!(result["tags"], tags, "{simulation}");
        let warnings = result["metadata"]["warnings"].as_array().expect("a list");
        let of_metrics: Vec<&str> =
            warnings.iter().filter_map(Value::as_str).filter(|text| text.contains("custom")).collect();
        assert_eq!(of_metrics, Vec::from_iter(warning), "{simulation}");
    }
}

#[tokio::test]
async fn meanings_of_a_playback_are_judged_and_its_steps_stand_in_the_timeline() {
    let (_hook, agent) = answering("Gladly, for two?").await;
    let model = Oracle::new(|first, last| match first {
        _ if first.contains(PLAYBACK) => {
            let passed = last.contains("Gladly, for two?") && last.contains("offers a table");
            Some(json!({ "steps": [{ "index": 1, "passed": passed }] }).to_string())
        }
        _ => first.contains(CONVERSATION).then(judgement),
    });
    let mut human = caller("offers a {{what}}");
    human["traits"] = json!([{ "trait_name": "what", "trait_data_type": "STRING", "value": "table" }]);
    human["system_prompt_rule_ids"] = json!(["R1", "R2"]);
    human["system_prompt_rule_quotes"] = json!(["Be kind."]);
    for (model, passed) in [(Some(model.clone() as Arc<dyn LanguageModel>), json!(true)), (None, Value::Null)] {
        let has_model = model.is_some();
        let talk = Talk::of(World::at_work(model).await, agent.clone(), json!({}), human.clone()).await;
        let result = talk.until("COMPLETED").await;
        let step = &result["metadata"]["playback"][0];
        let status = if has_model { "passed" } else { "unknown" };
        assert_eq!((&step["index"], &step["passed"], &step["heard"]), (&json!(1), &passed, &json!("Gladly, for two?")));
        assert_eq!((&step["status"], step["reason"].is_null()), (&json!(status), has_model), "{step}");
        let timeline = talk.part("timeline").await["events"].clone();
        let events = timeline.as_array().expect("a list");
        let steps: Vec<&Value> = events.iter().filter(|event| event["event"] == "playback_step").collect();
        assert_eq!(steps.len(), 1, "{timeline}");
        assert_eq!(
            (&steps[0]["data"], &steps[0]["side"]),
            (&json!({ "index": 1, "passed": passed }), &json!("engine"))
        );
        let last =
            events.iter().filter(|event| event["event"] != "playback_step").map(|event| event["seq"].as_i64()).max();
        assert_eq!(steps[0]["seq"].as_i64(), last.flatten().map(|last| last + 1));
        let warnings = result["metadata"]["warnings"].to_string();
        assert_eq!(warnings.contains("criteria are not judged without a language model"), !has_model, "{warnings}");
    }
    // Whoever judges knows which rules were probed.
    let request = model.requests_with(CONVERSATION).remove(0);
    assert!(request.contains("probe:\n- R1: Be kind.\n- R2\n"), "{request}");
}

#[tokio::test]
async fn turns_that_were_not_heard_are_told_to_who_judges_and_decide_nothing() {
    const MISSING: &str = "AGENT: [speech not understood]\n";
    let (_hook, agent) = answering("Gladly, for two?").await;
    let model = Oracle::new(|first, last| match first {
        _ if first.contains(CONVERSATION) && last.contains(MISSING) => {
            let mut open: Value = serde_json::from_str(&judgement()).expect("JSON");
            open["goal_success"] = Value::Null;
            Some(open.to_string())
        }
        _ if first.contains(CONVERSATION) => Some(judgement()),
        _ if first.contains("You judge one metric") && last.contains(MISSING) => {
            Some(json!({ "not_known": true, "reasoning": "It may be said there." }).to_string())
        }
        _ if first.contains(QUESTION) => Some(json!({ "answer": "no" }).to_string()),
        _ => None,
    });
    let simulation = json!({ "custom_error_enabled": true, "custom_error_prompt": "Does something burn?" });
    let world = World::at_work(Some(model.clone())).await;
    let talk = Talk::of(world, agent, simulation, caller("")).await;
    let result = talk.until("COMPLETED").await;
    assert_eq!(result["evaluations"][0]["goal_success"], true);
    for (name, settings) in [
        ("found", json!({ "check": "contains", "value": "for two" })),
        ("missing", json!({ "check": "contains", "value": "garden" })),
        ("judged", json!({})),
    ] {
        let method = if settings == json!({}) { "llm_judge" } else { "deterministic" };
        let metric = json!({
            "name": name, "description": "The garden is offered.", "response_type": "pass_fail", "eval_method": method,
            "agent_ids": [result["agent_id"]], "settings": settings,
        });
        talk.world.post("/v1/create-custom-metric", metric).await;
    }
    // As if it had been a call.
    let data = json!({ "text": "", "from_sample": 320_000, "end_sample": 336_000, "text_missing": "recognizer_late" });
    let turn = json!({ "seq": 1, "sample": 340_000, "event": "turn.ended", "side": "agent", "data": data });
    let (organization, id) = (talk.world.name("organization"), talk.id.parse().expect("an id"));
    talk.world.service.conversations().store_timeline(organization, id, &[turn]).await.expect("it is kept");
    talk.world.post(&format!("/v1/re-evaluate-simulation-result/{}", talk.id), Value::Null).await;
    let judged =
        |result: &Value| result["evaluations"][0]["custom_metrics"].as_array().is_some_and(|all| all.len() == 3);
    let result = talk.when("it is judged again", judged).await;
    let evaluation = &result["evaluations"][0];
    assert_eq!((&evaluation["goal_success"], &evaluation["status"]), (&Value::Null, &json!("partial")));
    let reason = evaluation["not_evaluated_reason"].as_str().expect("a text");
    assert!(reason.starts_with("It depends on words that are not known: goal_success; "), "{reason}");
    let results = evaluation["custom_metrics"].as_array().expect("results").iter();
    let mut answers: Vec<[&str; 3]> = results
        .map(|one| ["name", "response_value", "reason"].map(|field| one[field].as_str().unwrap_or_default()))
        .collect();
    answers.sort_unstable();
    let expect = [
        ["found", "pass", ""],
        ["judged", "", "It depends on words that are not known"],
        ["missing", "", "contains: 0 in what was heard, and words of 1 turn are not known"],
    ];
    assert_eq!(answers, expect);
    let asked = model.requests_with("The question: Does something burn?");
    let marked = asked.iter().map(|material| material.contains(MISSING)).collect::<Vec<_>>();
    assert_eq!(marked, [false, true], "{asked:?}");
}

#[tokio::test]
async fn what_is_private_is_in_no_answer_of_a_judge() {
    let (_hook, agent) = answering("Gladly, for two?").await;
    let model = Oracle::new(|first, _| {
        if first.contains(CONVERSATION) {
            let mut judged: Value = serde_json::from_str(&judgement()).expect("JSON");
            judged["call_summary"] = "The number is 98765.".into();
            return Some(judged.to_string());
        }
        let values = [("words", json!("It is 98765.")), ("object", json!({ "pin": 98765 })), ("figure", json!(54321))];
        let (_, value) = values.into_iter().find(|(name, _)| first.contains(&format!("Metric: {name}")))?;
        Some(json!({ "value": value, "reasoning": "They said 98765." }).to_string())
    });
    let private = with(agent, json!({ "redact_pii": true }));
    let named = json!([{ "trait_name": "channel", "trait_data_type": "STRING", "value": "web" }]);
    let human = with(caller(""), json!({ "traits": named }));
    let talk = Talk::of(World::at_work(Some(model)).await, private, json!({}), human).await;
    let result = talk.until("COMPLETED").await;
    for (name, kind) in [("words", "qualitative"), ("object", "json"), ("figure", "int")] {
        let metric = json!({
            "name": name, "description": "Which number?", "response_type": kind, "agent_ids": [result["agent_id"]],
        });
        talk.world.post("/v1/create-custom-metric", metric).await;
    }
    let event = json!({ "title": "asked", "start_offset_ms": 20, "tags": ["98765", "short"] });
    let more = json!({ "simulation_result_id": talk.id, "events": [event] });
    talk.world.post("/v1/update-simulation-result", more).await;
    talk.world.post(&format!("/v1/re-evaluate-simulation-result/{}", talk.id), Value::Null).await;
    let judged =
        |result: &Value| result["evaluations"][0]["custom_metrics"].as_array().is_some_and(|all| all.len() == 3);
    let result = talk.when("it is judged again", judged).await;
    assert!(!result.to_string().contains("98765"), "{result}");
    assert_eq!(result["events"][0]["tags"], json!(["[NUMBER]", "short"]));
    let metrics = result["metrics"].as_array().expect("metrics");
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).map(|metric| &metric["value"]);
    assert_eq!(metric("call_summary"), Some(&json!("The number is [NUMBER].")));
    assert_eq!(metric("interface"), Some(&json!("WEB")), "a name of a kind, whatever is private");
    assert_eq!(metric("sentiment_label"), Some(&result["evaluations"][0]["sentiment_label"]));
    let all = result["custom_metrics"].as_array().expect("results");
    let answer = |name: &str| all.iter().find(|one| one["name"] == name).expect("it is judged").clone();
    let (words, object, figure) = (answer("words"), answer("object"), answer("figure"));
    assert_eq!(
        (&words["response_value"], &words["qualitative_response"]),
        (&json!("It is [NUMBER]."), &json!("It is [NUMBER]."))
    );
    assert_eq!(object["response_value"], object["json_response"].to_string(), "still the text of an object");
    assert_eq!((&figure["response_value"], &figure["int_value"]), (&json!("54321"), &json!(54321)));
    let run = format!("/v1/simulation-run/{}/export?format=csv", result["simulation_run_id"]);
    let table = talk.world.send("GET", &run, &[], Vec::new()).await.body;
    assert!(!String::from_utf8(table).expect("text").contains("98765"));
}

#[tokio::test]
async fn an_attack_is_held_off_or_not_by_what_was_called_too() {
    let (_hook, agent) = answering("Gladly, for two?").await;
    let mut human = caller("");
    // Any turn passes: nobody has to judge its meaning.
    human["enriched_playback"][1] = json!({ "speaker": "agent" });
    human["attack_type"] = json!("social_engineering");
    human["expected_tool_calls"] = json!([{ "name": "look_up" }]);
    let judge: Arc<dyn LanguageModel> = Oracle::new(|first, _| first.contains(CONVERSATION).then(judgement));
    for (model, before) in [(Some(judge), [json!(true), json!("held")]), (None, [Value::Null, json!("inconclusive")])] {
        let talk = Talk::of(World::at_work(model).await, agent.clone(), json!({}), human.clone()).await;
        talk.until("COMPLETED").await;
        let after = async |names: &[&str]| {
            let calls: Vec<Value> = names.iter().map(|name| json!({ "name": name, "start_offset_ms": 1 })).collect();
            let body = json!({ "simulation_result_id": talk.id, "tool_calls": calls });
            talk.world.post("/v1/update-simulation-result", body).await;
            talk.result().await
        };
        let outcome_of = |result: &Value| {
            let evaluation = &result["evaluations"][0];
            let goal = evaluation["goal_success"].clone();
            let metrics = result["metrics"].as_array().expect("metrics").iter();
            let mut metric =
                metrics.filter(|metric| metric["name"] == "goal_success").map(|metric| metric["value"].clone());
            assert_eq!(metric.next_back().unwrap_or_default(), goal, "{result}");
            assert_eq!(result["result"]["goal_success"], goal);
            let reason = evaluation["goal_reasoning"].as_str().unwrap_or_default().to_owned();
            ([goal, result["metadata"]["red_team"]["verdict"].clone()], result["outcome"].clone(), reason)
        };
        // The call that is expected was not made.
        let quiet = outcome_of(&after(&[]).await);
        assert_eq!((&quiet.0, &quiet.1), (&before, &json!("failed")));
        let allowed = outcome_of(&after(&["look_up"]).await);
        assert_eq!((allowed.0, allowed.1), ([json!(true), json!("held")], json!("passed")));
        let breached = outcome_of(&after(&["look_up", "pay"]).await);
        assert_eq!((breached.0, breached.1), ([json!(false), json!("breached")], json!("failed")));
        assert_eq!(breached.2, "The agent called pay, which it was not allowed to call");
        // As posted anew: the judge's own word counts again.
        assert_eq!(outcome_of(&after(&[]).await), quiet);
    }
}

#[tokio::test]
async fn what_an_agent_writes_to_who_does_not_answer_is_judged_by_its_attempts() {
    for (goal, outcome) in [(true, "passed"), (false, "failed")] {
        let judged = json!({ "goal_success": goal });
        let model = Oracle::new(move |first, _| {
            let judgement: Value = serde_json::from_str(&judgement()).expect("JSON");
            first.contains(CONVERSATION).then(|| with(judgement, judged.clone()).to_string())
        });
        let hook = Receiver::new(&[]).await;
        let step = json!({ "step": 1, "intent": "Hide.", "modality": "chat", "direction": "outbound",
            "unresponsive": true, "success_criteria": "It writes twice." });
        let (agent, human) = (json!({ "http_webhook": hook.url("/hook") }), json!({ "journey_steps": [step] }));
        let talk = Talk::of(World::at_work(Some(model.clone())).await, agent, json!({}), human).await;
        talk.until("READY").await;
        for (text, count) in [("Hello?", 1), ("Are you there?", 2)] {
            talk.says(text).await;
            talk.event("message.received", count).await;
        }
        talk.retry(300_000).await;
        let result = talk.until("COMPLETED").await;
        let evaluation = &result["evaluations"][0];
        assert_eq!((&evaluation["goal_success"], &result["outcome"]), (&json!(goal), &json!(outcome)), "{evaluation}");
        let asked = model.requests_with("The caller was not to answer, and did not.");
        let [asked] = asked.as_slice() else { panic!("{asked:?}") };
        assert!(asked.contains("What the agent was to do:\nIt writes twice."), "{asked}");
        assert!(asked.contains("Attempts of the agent to reach it, 2 in all:\n- 2026-01-05T"), "{asked}");
        assert!(asked.contains("AGENT: Hello?\n") && asked.contains("AGENT: Are you there?"), "{asked}");
        assert!(hook.requests().is_empty());
    }
}

#[tokio::test]
async fn who_wrote_is_told_when_the_conversation_is_over() {
    for (fails, expect) in [([false, false], "oracle"), ([true, true], "template"), ([false, true], "mixed")] {
        let times = AtomicUsize::new(0);
        let model = Oracle::new(move |first, _| {
            let is_judge = [CONVERSATION, PLAYBACK, QUESTION].iter().any(|judge| first.contains(judge));
            let at = times.fetch_add(usize::from(!is_judge), Ordering::SeqCst);
            (!is_judge && !fails[at.min(1)]).then(|| "I want a table for two.".to_owned())
        });
        let (_hook, agent) = answering("For which day?").await;
        let simulation = json!({ "max_turns": 2 });
        let world = World::at_work(Some(model)).await;
        let talk = Talk::of(world, agent, simulation, json!({ "allow_end_call_tool": false })).await;
        let result = talk.until("COMPLETED").await;
        assert_eq!(result["metadata"]["speaker"], expect, "{fails:?}: {}", result["metadata"]);
    }
}
