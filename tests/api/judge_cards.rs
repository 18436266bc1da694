//! Report cards of judges, and what follows from them for the verdicts of a run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ringer::judge::agreement::Confusion;
use ringer::judge::correction::{ppi, rogan_gladen};
use ringer::provider::LanguageModel;
use ringer::store::queue::JudgeCardJob;
use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::evaluations::{queue_ended, until_judged};
use super::judged::judgement;
use super::oracle::Oracle;
use super::page::put_review;
use super::world::World;

/// Time limit for the judgement of a run on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Share of the conversations labelled true that the judge calls true.
const TPR: f64 = 0.9;
/// Share of those labelled false that it calls false.
const TNR: f64 = 0.8;
/// Conversations that are labelled, two of three as true.
const CASES: usize = 150;
/// Cases whose answers cannot be read.
const RUBBISH: [usize; 2] = [3, 7];

fn label(case: usize) -> bool {
    !case.is_multiple_of(3)
}

/// Returns the verdicts of a judge that errs as often as its rates say.
fn draw_verdicts() -> Vec<bool> {
    let mut draws = Seed(11).stream("judge");
    (0..CASES).map(|case| (draws.unit() < if label(case) { TPR } else { TNR }) == label(case)).collect()
}

fn verdict(reached: bool) -> String {
    let mut answer: Value = serde_json::from_str(&judgement()).expect("it is JSON");
    answer["goal_success"] = json!(reached);
    answer.to_string()
}

/// Returns a judge of labelled cases that wavers in every tenth, and of calls, of which seven in ten reach their goal.
fn judge() -> Arc<Oracle> {
    let (verdicts, asked, calls) = (draw_verdicts(), Mutex::new(HashMap::<usize, usize>::new()), AtomicUsize::new(0));
    Oracle::new(move |_, last| {
        // A broken answer is asked for again: the words before are not repeated in the last message.
        let Some(case) = last.split("case ").nth(1) else {
            let is_call = last.contains("It is done.");
            return Some(match is_call {
                true => verdict(calls.fetch_add(1, Ordering::SeqCst) % 10 < 7),
                false => "The moon is made of cheese.".to_owned(),
            });
        };
        let case: usize = case.split('.').next().and_then(|number| number.parse().ok()).expect("a number");
        if RUBBISH.contains(&case) {
            return Some("The moon is made of cheese.".to_owned());
        }
        let mut asked = asked.lock();
        let times = asked.entry(case).or_default();
        *times += 1;
        let wavers = case % 10 == 5 && *times == 2;
        Some(verdict(verdicts.get(case).copied().unwrap_or_else(|| label(case)) != wavers))
    })
}

fn case(number: usize) -> Value {
    let more = if number.is_multiple_of(2) { " and so on and so forth" } else { "" };
    json!({
        "conversation": format!("USER: This is case {number}.\nAGENT: Well{more}."), "label": label(number),
        "success_criteria": "A table is booked.", "language": if number < 75 { "en" } else { "de" },
    })
}

/// Makes a card of labels, and returns it.
async fn make(world: &World, model: &Arc<Oracle>, body: Value) -> Value {
    world.service.clock().advance_ms(1);
    let made = world.post("/v1/judge-cards", body).await;
    assert_eq!(made["status"], "queued", "{made}");
    world.work_off_with(Some(model.clone() as Arc<dyn LanguageModel>)).await;
    world.get(&format!("/v1/judge-cards/{}", made["id"].as_str().expect("an id"))).await
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn holds(rate: &Value, truth: f64) -> bool {
    number(&rate["low"]) <= truth && truth <= number(&rate["high"])
}

#[tokio::test]
async fn a_card_finds_the_error_rates_of_its_judge() {
    let model = judge();
    let world = World::with_model(model.clone()).await;
    let labels: Vec<Value> = (0..CASES).map(case).collect();
    let card = make(&world, &model, json!({ "labels": labels })).await;
    assert_eq!(
        (&card["status"], &card["model"], &card["in_force"]),
        (&json!("completed"), &json!("oracle"), &json!(true))
    );
    let figures = &card["figures"];
    let pairs = draw_verdicts().into_iter().enumerate().filter(|(at, _)| !RUBBISH.contains(at));
    let expect = Confusion::of(pairs.map(|(at, verdict)| (label(at), verdict)));
    for (field, expect) in [
        ("true_positives", expect.true_positives),
        ("false_negatives", expect.false_negatives),
        ("true_negatives", expect.true_negatives),
        ("false_positives", expect.false_positives),
        ("without_verdict", 2),
        ("conversations", 150),
    ] {
        assert_eq!(figures[field], json!(expect), "{field}: {figures}");
    }
    assert!(holds(&figures["tpr"], TPR) && holds(&figures["tnr"], TNR), "{figures}");
    let kappa = expect.kappa().expect("there are both");
    assert!((number(&figures["kappa"]["value"]) - kappa.value).abs() < 1e-9);
    // Two cases in three repetitions, each asked for three times.
    let answers = json!({ "asked": 450, "verdicts": 444, "unreadable": 6, "not_known": 0, "failed": 0 });
    assert_eq!(figures["answers"], answers);
    assert_eq!((&figures["same_answer"]["hits"], &figures["same_answer"]["of"]), (&json!(133), &json!(148)));
    assert_eq!((&figures["same_pairs"]["hits"], &figures["same_pairs"]["of"]), (&json!(414), &json!(444)));
    let by: Vec<&str> =
        figures["groups"].as_array().expect("a list").iter().filter_map(|one| one["by"].as_str()).collect();
    assert_eq!(by, ["length", "language"], "neither evidence nor channel is known");
    assert_eq!(card["judge_status"], "unproven");
    assert!(card["judge_reason"].as_str().is_some_and(|why| why.starts_with("TNR is ")), "{}", card["judge_reason"]);
    let first = json!({
        "simulation_result_id": null, "line": 1, "label": false, "answers": [draw_verdicts()[0].to_string(), draw_verdicts()[0].to_string(),
        draw_verdicts()[0].to_string()], "reason": null, "words": 11, "language": "en", "channel": null, "evidence_at": null,
    });
    assert_eq!(card["conversations"][0], first, "the words themselves are not kept");
    let listed = world.get("/v1/judge-cards").await;
    assert_eq!(
        (&listed["judge_cards"][0]["id"], &listed["judge_cards"][0]["conversations"]),
        (&card["id"], &Value::Null)
    );
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let path = format!("/v1/judge-cards/{}", card["id"].as_str().expect("an id"));
    assert_eq!(world.send("GET", &path, &foreign, Vec::new()).await.status, 404);
}

#[tokio::test]
async fn verdicts_say_whether_their_judge_is_proven_and_rates_are_corrected() {
    let model = judge();
    let mut world = World::at_work(Some(model.clone())).await;
    let mut ids = Vec::new();
    world.restart_and_change(async |world| ids = queue_ended(world, "$admin", 20).await, |_| {}).await;
    until_judged(&world, "$admin", &ids, PATIENCE).await;
    let result = async |world: &World| {
        world.get(&format!("/v1/retrieve-simulation-result/{}", ids[0])).await["simulation_result"].clone()
    };
    let one = result(&world).await;
    let run = format!("/v1/retrieve-simulation-results/{}", one["simulation_run_id"]);
    let before = world.get(&run).await;
    assert_eq!(before["simulation_run"]["corrected"], Value::Null, "there is no card");
    let note = &one["evaluations"][0]["judge"];
    assert_eq!(
        (&note["model"], &note["status"], &note["card_id"]),
        (&json!("oracle"), &json!("no_card"), &Value::Null)
    );
    let (mut card, mut proof) = (Value::Null, Value::Null);
    let (mut noted, mut proven) = (Value::Null, Value::Null);
    let mut after = Value::Null;
    let cards = async |world: &World| {
        let labels: Vec<Value> = (0..CASES).map(case).collect();
        card = make(world, &model, json!({ "labels": labels, "repeat": 1 })).await;
        noted = result(world).await;
        after = world.get(&run).await;
        // Cases that the judge never errs in.
        let labels: Vec<Value> = (300..450).map(case).collect();
        proof = make(world, &model, json!({ "labels": labels, "repeat": 1 })).await;
        proven = result(world).await;
    };
    world.restart_and_change(cards, |_| {}).await;
    assert_eq!(noted["evaluations"][0]["judge"]["prompt_version"], card["prompt_version"]);
    assert_eq!(noted["evaluations"][0]["judge"]["card_id"], card["id"]);
    assert_eq!(noted["evaluations"][0]["judge"]["status"], "unproven");
    assert_eq!(noted["evaluations"][0]["judge"]["reason"], card["judge_reason"]);
    let now = &proven["evaluations"][0]["judge"];
    assert_eq!((&now["card_id"], &now["status"], &now["reason"]), (&proof["id"], &json!("proven"), &Value::Null));
    // A card changes neither a verdict nor a count.
    assert_eq!(noted["verdict"], one["verdict"]);
    for field in ["tests_passed", "tests_failed", "outcome", "verdicts"] {
        assert_eq!(after["simulation_run"][field], before["simulation_run"][field], "{field}");
    }
    let corrected = &after["simulation_run"]["corrected"];
    assert_eq!((&corrected["counted"]["hits"], &corrected["counted"]["of"]), (&json!(14), &json!(20)));
    assert_eq!((&corrected["card_id"], &corrected["labelled"]), (&card["id"], &json!(148)));
    let pairs = draw_verdicts().into_iter().enumerate().filter(|(at, _)| !RUBBISH.contains(at));
    let labelled = Confusion::of(pairs.map(|(at, verdict)| (label(at), verdict)));
    for (name, expect) in [("ppi", ppi(labelled, 14, 20)), ("rogan_gladen", rogan_gladen(labelled, 14, 20))] {
        let expect = json!(expect.expect("it is defined"));
        for field in ["share", "low", "high"] {
            assert!((number(&corrected[name][field]) - number(&expect[field])).abs() < 1e-9, "{name}: {corrected}");
        }
    }
}

#[tokio::test]
async fn reviews_are_labels_too() {
    let model = judge();
    let mut world = World::at_work(Some(model.clone())).await;
    let mut ids = Vec::new();
    world.restart_and_change(async |world| ids = queue_ended(world, "$admin", 3).await, |_| {}).await;
    until_judged(&world, "$admin", &ids, PATIENCE).await;
    let none = world.send("POST", "/v1/judge-cards", &[], b"{}".to_vec()).await;
    let why = "no result has the value of a person: review conversations first, or send labels";
    assert_eq!((none.status, &none.json()["detail"]), (400, &json!(why)));
    for (id, reached) in [(ids[0], true), (ids[1], false)] {
        let body = json!({ "reviewer": "Ann", "human_goal_success": reached });
        assert_eq!(put_review(&world, id, &[], body).await.status, 200);
    }
    let mut card = Value::Null;
    world.restart_and_change(async |world| card = make(world, &model, json!({ "repeat": 2 })).await, |_| {}).await;
    assert_eq!((&card["from_reviews"], &card["figures"]["conversations"]), (&json!(true), &json!(2)));
    assert_eq!(card["conversations"][0]["simulation_result_id"], json!(ids[0]));
    let says = "only 1 labelled true have a verdict, fewer than 10: TPR is not enough to go by";
    assert_eq!(card["figures"]["says"][0], says);
    let run = world.get(&format!("/v1/retrieve-simulation-result/{}", ids[0])).await["simulation_result"].clone();
    let run = world.get(&format!("/v1/retrieve-simulation-results/{}", run["simulation_run_id"])).await;
    let corrected = &run["simulation_run"]["corrected"];
    let left = "2 of the judged conversations are those of the card; the estimates leave them out";
    assert!(corrected["says"].as_array().is_some_and(|says| says.contains(&json!(left))), "{corrected}");
}

#[tokio::test]
async fn labels_that_cannot_be_used_are_named() {
    let model = judge();
    let world = World::with_model(model.clone()).await;
    let refused = async |body: Value| {
        let answer = world.send("POST", "/v1/judge-cards", &[], body.to_string().into_bytes()).await;
        (answer.status, answer.json()["detail"].as_str().unwrap_or_default().to_owned())
    };
    let with = |at: usize, field: &str, value: Value| {
        let mut one = case(at);
        one[field] = value;
        one
    };
    for (body, expect) in [
        (
            json!({ "labels": [case(0), with(0, "label", json!(true))] }),
            "label 1 says false and label 2 says true of the same conversation",
        ),
        (
            json!({ "labels": [with(0, "line", json!(7)), with(0, "line", json!(9))] }),
            "line 9 is the same conversation as line 7",
        ),
        (json!({ "labels": [with(1, "success_criteria", Value::Null)] }), "label 1 has no success_criteria"),
        (json!({ "labels": [with(1, "conversation", json!("Hi."))] }), "label 1 has a conversation whose first line"),
        (
            json!({ "labels": [{ "simulation_result_id": "99999", "label": true }] }),
            "label 1: there is no result 99999",
        ),
        (json!({ "labels": [case(1)], "model": "careful" }), "Language model 'careful' is not configured"),
        (json!({ "labels": [case(1)], "agent_id": "1" }), "Agent not found"),
        (json!({ "meaning": "It is open." }), "reviews say nothing about meanings: labels are needed"),
    ] {
        let (status, detail) = refused(body.clone()).await;
        assert!(status == 400 || status == 404, "{body}: {status} {detail}");
        assert!(detail.starts_with(expect), "{body}: {detail}");
    }
    let without = World::new().await;
    let answer = without.send("POST", "/v1/judge-cards", &[], json!({ "labels": [case(1)] }).to_string().into_bytes());
    assert_eq!(answer.await.json()["detail"], "No language model is configured");
    // One class, and a judge that answers rubbish: both are told, neither is a verdict.
    let card = make(&world, &model, json!({ "labels": [case(RUBBISH[1])], "repeat": 1 })).await;
    assert_eq!((&card["status"], &card["judge_status"]), (&json!("completed"), &json!("unproven")));
    assert_eq!(card["figures"]["tpr"]["share"], Value::Null);
    let says = card["figures"]["says"].as_array().expect("a list");
    assert!(says.contains(&json!("the judge gave no verdict at all")), "{says:?}");
    let given_up = world.post("/v1/judge-cards", json!({ "labels": [case(1)] })).await["id"].clone();
    let id = given_up.as_str().expect("an id");
    let organization = world.name("organization").to_owned();
    let job = JudgeCardJob { organization, card_id: id.parse().expect("an id") };
    world.service.evaluations().give_up_card(&job).await.expect("it is kept");
    let card = world.get(&format!("/v1/judge-cards/{id}")).await;
    assert_eq!(
        (&card["status"], &card["reason"]),
        (&json!("failed"), &json!("it was broken off several times, and is given up"))
    );
    let silent = Oracle::new(|_, _| None);
    let card = make(&world, &silent, json!({ "labels": [case(1)], "repeat": 1 })).await;
    assert_eq!((&card["status"], &card["figures"]), (&json!("failed"), &Value::Null));
    assert_eq!(card["reason"], "the language model was not reached: the oracle is silent");
}

#[tokio::test]
async fn a_card_may_be_about_a_metric_or_a_meaning() {
    let model = Oracle::new(|first, last| {
        let is_open = last.contains("We are open.");
        let word = if is_open { "yes" } else { "no" };
        Some(match first.contains("The question: ") {
            true => json!({ "reasoning": "So.", "answer": word }).to_string(),
            false => json!({ "reasoning": "So.", "value": word }).to_string(),
        })
    });
    let world = World::with_model(model.clone()).await;
    let agent = world.post("/v1/add-agent", json!({ "name": "Desk" })).await["agent_id"].clone();
    let metric = json!({ "name": "Open", "description": "Is it?", "response_type": "yes_no", "agent_ids": [agent] });
    let metric = world.post("/v1/create-custom-metric", metric).await["id"].clone();
    let labels = json!([
        { "conversation": "AGENT: We are open.", "label": true, "evidence_at": 0.1 },
        { "conversation": "AGENT: We are shut.", "label": false, "evidence_at": 0.9 },
        { "conversation": "AGENT: We are closed.", "label": true },
    ]);
    for (field, value, subject) in [("metric_id", metric, "metric"), ("meaning", json!("It is open."), "meaning")] {
        let card = make(&world, &model, json!({ field: value, "labels": labels, "repeat": 2 })).await;
        let figures = &card["figures"];
        let counts = ["true_positives", "false_negatives", "true_negatives"].map(|name| figures[name].clone());
        assert_eq!((&card["subject"], counts), (&json!(subject), [1, 1, 1].map(|count| json!(count))), "{card}");
        let evidence = figures["groups"].as_array().expect("a list").iter().find(|one| one["by"] == "evidence");
        assert_eq!(evidence.map(|one| &one["says"]), Some(&json!(["too few to tell"])), "{figures}");
    }
}
