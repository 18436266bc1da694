//! A panel judges a call of the built program, its report card is made in the page, and stands beside the verdicts.

use serde_json::{Value, json};

use super::stranger::act;
use super::{ask_json, looks_right, queue_run, run_over, with_key};
use crate::api::model_server::ModelServer;
use crate::program::{KEY, Program, up};

/// Labelled conversations of the card.
const CASES: usize = 12;

/// Starts a server whose model judges calls and cases: calls by `reached`, cases as they are labelled but for `wrong`.
/// Other questions are answered with words of a caller.
async fn judge(reached: bool, wrong: &'static [usize]) -> ModelServer {
    let answer = move |first: &str, last: &str| {
        if !first.contains("goal_success") {
            return Some("Hello, I would like to book an appointment. Tuesday is good for me.".to_owned());
        }
        let case = last.split("case ").nth(1).and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
        let goal = case.map_or(reached, |case| case.is_multiple_of(2) != wrong.contains(&case));
        let mut said = json!({
            "goal_success": goal, "goal_reasoning": "So it is.", "hallucination": false, "hallucination_reasoning": "",
            "redundancy": false, "redundancy_reasoning": "", "call_summary": "A call.", "sentiment_label": "neutral",
        });
        said["sentiment_scores"] = json!({ "positive": 0.2, "neutral": 0.6, "negative": 0.2 });
        said["sentiment_score"] = json!(0.0);
        Some(said.to_string())
    };
    ModelServer::start(answer, None).await
}

/// Returns the settings of an engine whose panel these servers are.
fn settings(panel: &[ModelServer; 3]) -> String {
    let section = |name: &str, model: &str, at: usize| {
        format!("[{name}]\nbase_url = \"{}\"\nmodel = \"{model}\"\n", panel[at].url)
    };
    let models = [
        section("language_model", "one", 0),
        section("language_models.second", "two", 1),
        section("language_models.third", "three", 2),
    ];
    models.concat() + "[judge]\npanel = [\"default\", \"second\", \"third\"]\n"
}

#[tokio::test]
async fn a_panel_judges_a_call_and_its_card_is_made_in_the_page() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let panel = [judge(true, &[]).await, judge(false, &[1]).await, judge(true, &[1, 2]).await];
    let path = folder.path().join("ringer.toml");
    std::fs::write(&path, settings(&panel)).expect("the folder is writable");
    let mut engine = Program::start(up(folder.path()).arg("--sim").arg("--config").arg(&path));
    let base = engine.address("http://").await;
    let human = json!({ "name": "Sam", "success_criteria": "An appointment is booked." });
    queue_run(&base, "sip:desk@127.0.0.1:5999", human, json!({})).await;
    run_over(&base, 1).await;

    two_of_three_say_that_the_goal_was_reached(&base).await;
    let browser = with_key(&base).await;
    browser.open(&format!("{base}/results/1")).await;
    let seen = act(
        &browser,
        "await ready(() => text().includes('Judged by')); return document.querySelector('p.judge').textContent",
    )
    .await;
    let seen = seen.as_str().expect("words").to_owned();
    assert!(seen.contains("no card") && seen.contains("default true, second false, third true"), "{seen}");

    browser.open(&format!("{base}/judges")).await;
    let wrong = "await ready(() => text().includes('no report card')); await fill('Labels', 'nothing'); await press('Make a report card');
        return ready(() => document.querySelector('#notice').textContent.includes('line 1'))";
    assert_eq!(act(&browser, wrong).await, true);
    let line = |case: usize| {
        let said = format!("USER: This is case {case}.\nAGENT: Well.");
        json!({ "conversation": said, "label": case.is_multiple_of(2), "success_criteria": "It is booked." })
            .to_string()
    };
    let labels: Vec<String> = (1..=CASES).map(line).collect();
    let make = format!(
        "await fill('Labels', {}); await fill('Times that each conversation is judged', '2'); await press('Make a report card');
         await at(/judges.[0-9a-f-]{{36}}/); await ready(() => text().includes('Kappa')); return text()",
        json!(labels.join("\n"))
    );
    let seen = act(&browser, &make).await;
    let seen = seen.as_str().expect("words").to_owned();
    // Two of three call one of the six true that are labelled false.
    for part in ["6 of 6", "5 of 6", "11 of 12", "6 true, 6 false", "unproven", "line 1"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    looks_right(&browser, "card").await;
    browser.open(&format!("{base}/judges")).await;
    let listed = act(&browser, "await ready(() => text().includes('in force')); return text()").await;
    assert!(listed.as_str().expect("words").contains("5 of 6"), "{listed}");
    looks_right(&browser, "judges").await;

    // The card stands beside the verdict and the rate that it is about.
    browser.open(&format!("{base}/results/1")).await;
    let seen = act(
        &browser,
        "await ready(() => text().includes('Its report card')); return document.querySelector('p.judge').textContent",
    )
    .await;
    assert!(seen.as_str().expect("words").contains("unproven"), "{seen}");
    browser.open(&format!("{base}/runs/1")).await;
    let seen = act(&browser, "await ready(() => document.querySelector('.corrected')); return document.querySelector('.corrected').textContent").await;
    let seen = seen.as_str().expect("words").to_owned();
    assert!(seen.contains("1 of 1") && seen.contains("12 labelled conversations"), "{seen}");
    looks_right(&browser, "run with a card").await;
}

/// Looks at the verdict of the call and the votes behind it.
async fn two_of_three_say_that_the_goal_was_reached(base: &str) {
    let result = ask_json(base, KEY, "/v1/retrieve-simulation-result/1").await["simulation_result"].clone();
    let evaluation = &result["evaluations"][0];
    assert_eq!((&evaluation["goal_success"], &result["outcome"]), (&json!(true), &json!("passed")), "{evaluation}");
    let votes: Vec<&Value> = evaluation["judge"]["votes"].as_array().expect("votes").iter().collect();
    let said: Vec<[&Value; 2]> = votes.iter().map(|vote| [&vote["name"], &vote["answer"]]).collect();
    assert_eq!(json!(said), json!([["default", "true"], ["second", "false"], ["third", "true"]]));
    assert_eq!(evaluation["judge"]["status"], "no_card", "{evaluation}");
}
