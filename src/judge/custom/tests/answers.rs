//! Answers of a model about custom metrics as models really give them: values as texts, runs without an answer, turns
//! without words.

use ringer_model::digital_human::Role;
use ringer_model::evaluation::{CustomResult, CustomStatus};
use ringer_model::transcript::{EntrySource, TextMissing, TranscriptEntry};
use ringer_provider::testing::{Reply, ScriptedModel};
use serde_json::{Value, json};

use super::{metric, outcome_of};
use crate::custom::{Material, judge_metrics};

fn entry(from_ms: i64, words: &str) -> TranscriptEntry {
    TranscriptEntry::of(Role::Agent, from_ms, from_ms + 900, words.to_owned(), EntrySource::Recognized)
}

async fn judge_replies(fields: &Value, replies: Vec<Reply>) -> (CustomResult, ScriptedModel) {
    let entries = [entry(0, "Good morning.")];
    let model = ScriptedModel::new(replies);
    let material = Material { entries: &entries, ..Material::default() };
    let results = judge_metrics(&[metric("m", fields.clone())], material, Some(&model)).await;
    (results[0].clone(), model)
}

fn says(value: Value) -> Reply {
    Reply::says(&[&json!({"reasoning": "so", "value": value}).to_string()])
}

#[tokio::test]
async fn values_of_every_type_may_be_written_as_texts() {
    let share = json!({"response_type": "quantitative", "min_value": 0, "max_value": 1});
    let percent = json!({"response_type": "quantitative", "min_value": 0, "max_value": 100});
    let options = json!({"response_type": "enum", "enum_options": ["Very good", "good", "GOOD", " Bad ", "2"]});
    let kind = |kind: &str| json!({"response_type": kind});
    for (fields, value, expect) in [
        (kind("pass_fail"), json!("Passed"), "pass"),
        (kind("pass_fail"), json!(" \"fail\" "), "fail"),
        (kind("pass_fail"), json!("True"), "pass"),
        (kind("pass_fail"), json!("no"), "fail"),
        (kind("pass_fail"), json!(1), "pass"),
        (kind("yes_no"), json!("YES."), "yes"),
        (kind("yes_no"), json!("false"), "no"),
        (kind("boolean"), json!("False"), "false"),
        (kind("boolean"), json!("yes"), "true"),
        (kind("boolean"), json!(0), "false"),
        (kind("int"), json!(" 3 "), "3"),
        (kind("int"), json!("3.0"), "3"),
        (kind("float"), json!("0.9"), "0.9"),
        (kind("float"), json!("'-1.5'"), "-1.5"),
        (percent.clone(), json!("85 %"), "85"),
        (percent, json!("85"), "85"),
        (share.clone(), json!("85 %"), "0.85"),
        (share, json!("0.9"), "0.9"),
        (kind("qualitative"), json!(3), "3"),
        (kind("json"), json!("{\"a\": 1}"), "{\"a\":1}"),
        // An option is told by its own spelling, exactly first.
        (options.clone(), json!("GOOD"), "GOOD"),
        (options.clone(), json!("good"), "good"),
        (options.clone(), json!(" 'very GOOD' "), "Very good"),
        (options.clone(), json!("bad"), " Bad "),
        (options.clone(), json!(2), "2"),
        (json!({"response_type": "pass_fail", "allow_not_applicable": true}), json!("N/A"), "not_applicable: "),
    ] {
        let (result, model) = judge_replies(&fields, vec![says(value.clone())]).await;
        assert_eq!((outcome_of(&result).as_str(), model.requests().len()), (expect, 1), "{fields} {value}");
    }
    for (fields, value, expect) in [
        (options, json!("Good"), "error: the value Good is more than one of the options"),
        (kind("float"), json!("NaN"), "not_evaluated: Judge answer could not be read"),
        (kind("int"), json!("3.5"), "error: the value 3.5 is no integer"),
        (kind("boolean"), json!("pass"), "not_evaluated: Judge answer could not be read"),
        (kind("qualitative"), json!(["a"]), "not_evaluated: Judge answer could not be read"),
        (kind("json"), json!("[1]"), "not_evaluated: Judge answer could not be read"),
    ] {
        let (result, model) = judge_replies(&fields, vec![says(value.clone()); 3]).await;
        assert_eq!((outcome_of(&result).as_str(), model.requests().len()), (expect, 3), "{fields} {value}");
    }
    let (result, _) = judge_replies(&kind("pass_fail"), vec![Reply::says(&["{not} {\"value\": \"pass\"} }"])]).await;
    assert_eq!(outcome_of(&result), "pass");
    let flag = Reply::says(&[r#"{"not_applicable": "true"}"#]);
    let (result, _) = judge_replies(&json!({"allow_not_applicable": true}), vec![flag]).await;
    assert!(result.is_not_applicable);
}

#[tokio::test]
async fn runs_that_answered_count() {
    let of = |kind: &str, runs: i64| json!({"response_type": kind, "settings": {"runs": runs}});
    let (ok, wrong) = (|value: Value| says(value), || Reply::says(&["?"]));
    let failed = || Reply::status(500);
    let unread = "Judge answer could not be read";
    for (fields, replies, expect, note, asked) in [
        // A run is asked three times until it is given up; a failure ends it at once.
        (
            of("float", 3),
            vec![ok(json!(1)), wrong(), wrong(), wrong(), ok(json!(2))],
            "1.5",
            Some(format!("2 of 3 runs answered: {unread}")),
            5,
        ),
        (
            of("pass_fail", 3),
            vec![failed(), ok(json!("pass")), ok(json!("pass"))],
            "pass",
            Some("2 of 3 runs answered: ".to_owned()),
            3,
        ),
        (of("pass_fail", 2), vec![ok(json!("fail")), ok(json!("fail"))], "fail", None, 2),
        (
            of("int", 2),
            vec![ok(json!(1.5)), ok(json!(1.5)), ok(json!(1.5)), ok(json!(4))],
            "4",
            Some("1 of 2 runs answered: the value 1.5 is no integer".into()),
            4,
        ),
        // None answered: the last reason.
        (
            of("int", 2),
            [vec![wrong(); 3], vec![ok(json!(1.5)); 3]].concat(),
            "error: the value 1.5 is no integer",
            None,
            6,
        ),
        (
            of("int", 2),
            [vec![ok(json!(1.5)); 3], vec![wrong(); 3]].concat(),
            "not_evaluated: Judge answer could not be read",
            None,
            6,
        ),
        // Nobody is asked 25 times where nobody answers.
        (of("int", 25), vec![ok(json!(2))], "2", Some("1 of 25 runs answered: scripted failure".into()), 4),
        (of("int", 25), vec![], "not_evaluated: scripted failure", None, 3),
    ] {
        let (result, model) = judge_replies(&fields, replies).await;
        assert_eq!((outcome_of(&result).as_str(), model.requests().len()), (expect, asked), "{fields}");
        if result.status == CustomStatus::Evaluated {
            let found = result.reason.clone().unwrap_or_default();
            let wanted = note.clone().unwrap_or_default();
            assert!(found.starts_with(&wanted) && found.is_empty() == wanted.is_empty(), "{fields}: {found}");
        }
    }
}

#[tokio::test]
async fn an_entry_without_words_is_shown_and_counts_as_not_known() {
    let lost = |from_ms: i64| TranscriptEntry { text_missing: Some(TextMissing::RecognizerLate), ..entry(from_ms, "") };
    let entries = [entry(0, "Good morning."), lost(2000), entry(4000, "Bye.")];
    let one = "words of 1 turn are not known";
    let rule = |kind: &str, settings: Value| json!({"response_type": kind, "eval_method": "deterministic", "settings": settings});
    for (fields, expect) in [
        (rule("pass_fail", json!({"check": "contains", "value": "bye"})), "pass".to_owned()),
        (
            rule("pass_fail", json!({"check": "not_contains", "value": "sorry"})),
            format!("not_evaluated: not_contains: 0 in what was heard, and {one}"),
        ),
        (
            rule("pass_fail", json!({"check": "regex", "value": "^$"})),
            format!("not_evaluated: regex: 0 in what was heard, and {one}"),
        ),
        (
            rule("pass_fail", json!({"check": "contains", "value": "not understood"})),
            format!("not_evaluated: contains: 0 in what was heard, and {one}"),
        ),
    ] {
        let material = Material { entries: &entries, ..Material::default() };
        let results = judge_metrics(&[metric("m", fields.clone())], material, None).await;
        assert_eq!(outcome_of(&results[0]), expect, "{fields}");
    }
    let model = ScriptedModel::new(vec![says(json!("pass"))]);
    let material = Material { entries: &entries, ..Material::default() };
    assert!(material.has_words());
    judge_metrics(&[metric("m", json!({}))], material, Some(&model)).await;
    let shown = &model.requests()[0].messages[1].content;
    let lines = "AGENT: Good morning.\nAGENT: [speech not understood]\nAGENT: Bye.\n";
    assert!(shown.contains(lines), "{shown}");
    // A conversation of which nobody knows a word.
    let entries = [lost(0), lost(2000)];
    let material = Material { entries: &entries, ..Material::default() };
    let results = judge_metrics(&[metric("m", json!({}))], material, Some(&ScriptedModel::new(vec![]))).await;
    assert_eq!(outcome_of(&results[0]), "not_evaluated: Nothing was heard: words of 2 turns are not known");
    assert!(!material.has_words());
}
