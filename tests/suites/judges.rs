//! Report cards of judges by the program, and their figures against other people's programs: scikit-learn, statsmodels
//! and ppi-python.

use axum::Router;
use axum::routing::post;
use ringer::judge::agreement::Confusion;
use ringer::judge::correction::ppi;
use ringer_media::seed::Seed;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::blame::serve;
use super::outside::python;
use super::{Bench, RUN, Ran};
use crate::program::ringer;

#[test]
fn figures_are_those_of_other_programs() {
    let mut draws = Seed(5).stream("labels");
    let mut share = || draws.unit();
    let (mut agreements, mut estimates) = (Vec::new(), Vec::new());
    for round in 0..120 {
        let (count, calls) = (10 + round * 2, 5 + round * 3);
        let (truth, tpr, tnr) = (0.2 + 0.6 * share(), 0.5 + 0.5 * share(), 0.5 + 0.5 * share());
        let pairs: Vec<(bool, bool)> = (0..count)
            .map(|_| {
                let label = share() < truth;
                (label, (share() < if label { tpr } else { tnr }) == label)
            })
            .collect();
        let verdicts: Vec<bool> = (0..calls).map(|_| share() < 0.6).collect();
        let counts = Confusion::of(pairs.iter().copied());
        let hits = verdicts.iter().filter(|verdict| **verdict).count() as u64;
        let kappa = counts.kappa().map(|kappa| json!([kappa.value, kappa.low, kappa.high]));
        let (rate, other) = (counts.tpr(), counts.tnr());
        let whole = counts.accuracy();
        let rates = [rate, other, whole].map(|rate| json!([rate.share, rate.low, rate.high]));
        agreements.push(json!([pairs, { "kappa": kappa, "tpr": rates[0], "tnr": rates[1], "accuracy": rates[2] }]));
        let found = ppi(counts, hits, calls).expect("there are labels and verdicts");
        estimates.push(json!([[pairs, verdicts], [found.share, found.low, found.high]]));
    }
    python("judge_statistics.py", &[], &json!({ "agreement": agreements, "ppi": estimates }));
}

/// Calls a goal reached where the agent has booked.
async fn book_judge(body: String) -> axum::response::Response {
    use axum::response::IntoResponse;
    let body: Value = serde_json::from_str(&body).expect("the request is JSON");
    let last = body["messages"].as_array().and_then(|all| all.last()).map(|one| one["content"].to_string());
    let verdict = json!({
        "goal_success": last.is_some_and(|last| last.contains("booked")), "goal_reasoning": "So.", "hallucination": false,
        "redundancy": false, "sentiment_score": 0, "call_summary": "A table.",
        "sentiment_scores": { "positive": 0, "neutral": 1, "negative": 0 },
    });
    let delta = json!({ "choices": [{ "delta": { "content": verdict.to_string() }, "finish_reason": "stop" }] });
    ([("content-type", "text/event-stream")], format!("data: {delta}\n\ndata: [DONE]\n\n")).into_response()
}

async fn card(bench: &Bench, args: &[&str]) -> Ran {
    let mut command = ringer(&[&["judge", "card", "--data", "data"], args].concat());
    command.current_dir(bench.path()).stderr(std::process::Stdio::piped()).env("RINGER_LOG", "error");
    let out = timeout(RUN, command.output()).await.expect("it ends in time").expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    Ran { code: out.status.code().unwrap_or(-1), out: text(out.stdout), err: text(out.stderr) }
}

#[tokio::test]
async fn a_card_is_made_of_a_file_and_what_is_wrong_with_it_is_named() {
    let bench = Bench::new();
    let (address, _serving) = serve(Router::new().route("/v1/chat/completions", post(book_judge))).await;
    bench.write("c.toml", &format!("[language_model]\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\n"));
    let line =
        |number: usize, said: &str, label: &str| format!("\"USER: {number}.\nAGENT: {said}\",{label},A table.\n");
    let head = "conversation,label,success_criteria\n";
    let mut csv = head.to_owned();
    (0..20).for_each(|number| csv.push_str(&line(number, "It is booked.", "yes")));
    (20..30).for_each(|number| csv.push_str(&line(number, "We are full.", "no")));
    csv.push_str(&line(30, "It is booked.", "no"));
    bench.write("labels.csv", &csv);
    let ran = card(&bench, &["--config", "c.toml", "--labels", "labels.csv", "--repeat", "2"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for part in [
        "of m (prompt ",
        "TPR       100 % (83.9 to 100) of 20",
        "TNR       90.9 % (62.3 to 98.4) of 11",
        "same verdict each time: 100 % (89 to 100) of 31",
        "judge     unproven: TNR is 90.9 % of 11 labelled false, surely at least 62.3 %; 90 % are needed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let whole = card(&bench, &["--config", "c.toml", "--labels", "labels.csv", "--repeat", "1", "--json"]).await;
    let whole: Value = serde_json::from_str(&whole.out).expect("it is JSON");
    assert_eq!((&whole["figures"]["false_positives"], &whole["in_force"]), (&json!(1), &json!(true)));
    bench.write("twice.csv", &format!("{head}{}{}", line(1, "Yes.", "yes"), line(1, "Yes.", "no")));
    for (args, code, expect) in [
        (
            &["--config", "c.toml", "--labels", "twice.csv"][..],
            2,
            "twice.csv: line 2 says true and line 4 says false of the same",
        ),
        (&["--config", "c.toml", "--labels", "none.csv"], 2, "none.csv: No such file"),
        (
            &["--config", "c.toml", "--labels", "labels.csv", "--model", "x"],
            2,
            "Language model 'x' is not configured; configured: default",
        ),
        (&["--config", "c.toml"], 2, "no result has the value of a person"),
        (&["--labels", "labels.csv"], 2, "No language model is configured"),
        (&["--labels", "labels.csv", "--server", "http://127.0.0.1:1"], 4, "the server is not reached"),
    ] {
        let ran = card(&bench, args).await;
        assert!(ran.code == code && ran.err.contains(expect), "{args:?}: {} {}{}", ran.code, ran.out, ran.err);
    }
}
