//! Custom metrics judged by rules, formulas and a scripted model.

mod answers;
mod models;

use ringer_model::digital_human::Role;
use ringer_model::transcript::EntrySource;
use ringer_provider::testing::{Reply, ScriptedModel};
use serde_json::json;

use super::*;
use crate::Lack;

/// Returns AGENT and USER lines, a second each.
fn entries(lines: &[&str]) -> Vec<TranscriptEntry> {
    let entry = |(at, line): (usize, &&str)| {
        let (speaker, words) = line.split_once(": ").expect("a speaker");
        let (speaker, from) = (Role::parse(speaker).expect("AGENT or USER"), 1000 * at as i64);
        TranscriptEntry::of(speaker, from, from + 900, words.to_owned(), EntrySource::Recognized)
    };
    lines.iter().enumerate().map(entry).collect()
}

fn calls(given: &[(&str, i64)]) -> Vec<PostedToolCall> {
    let call = |(name, at): &(&str, i64)| PostedToolCall {
        name: (*name).to_owned(),
        start_offset_ms: *at,
        description: None,
        parameters: None,
        output: Value::Null,
    };
    given.iter().map(call).collect()
}

fn measures(given: Value) -> Vec<MetricValue> {
    let members = given.as_object().cloned().unwrap_or_default();
    members.into_iter().map(|(name, value)| MetricValue { name, value, note: None }).collect()
}

fn metric(name: &str, fields: Value) -> Metric {
    let mut body = json!({"name": name, "description": "d", "response_type": "pass_fail"});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    Metric { id: ringer_base::clock::new_id(), spec: serde_json::from_value(body).expect("a metric") }
}

/// Returns the value of a result, or its status and reason.
fn outcome_of(result: &CustomResult) -> String {
    match result.status {
        CustomStatus::Evaluated => result.response_value.clone(),
        status => format!("{}: {}", status.as_str(), result.reason.clone().unwrap_or_default()),
    }
}

const TALK: [&str; 9] = [
    "AGENT: Clinic, good morning.",
    "USER: I need a visit with Doctor Patel.",
    "AGENT: Doctor Patel is free on Tuesday.",
    "AGENT: Or on Thursday.",
    "USER: Tuesday, please.",
    "AGENT: Press 1 to confirm.",
    "AGENT: [DTMF 12]",
    "USER: Thanks, bye.",
    "AGENT: Bye bye.",
];

/// Case of a rule: fields of the metric, and the value or the status with its reason.
type RuleCase = (Value, &'static str);

fn rule(settings: Value) -> Value {
    json!({"eval_method": "deterministic", "settings": settings})
}

/// Returns a rule with further fields.
fn rule_with(more: Value, settings: Value) -> Value {
    let mut fields = rule(settings);
    fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fields
}

fn tools(names: Value, settings: Value) -> Value {
    json!({"response_type": "tool_call", "tool_names": names, "settings": settings})
}

fn measure(kind: &str, settings: Value) -> Value {
    json!({"response_type": kind, "eval_method": "audio", "settings": settings})
}

/// Rules over words, tools, keys, metadata and turns.
fn rule_cases() -> Vec<RuleCase> {
    vec![
        (rule(json!({"check": "contains", "value": "doctor patel"})), "pass"),
        (rule(json!({"check": "contains", "value": "doctor patel", "case_sensitive": true})), "fail"),
        (rule(json!({"check": "contains", "value": "tuesday", "count_min": 3})), "fail"),
        (rule(json!({"check": "contains", "value": "visit", "speaker": "AGENT"})), "fail"),
        (rule(json!({"check": "contains", "value": "visit", "speaker": "any"})), "pass"),
        (rule_with(json!({"response_type": "int"}), json!({"check": "contains", "value": "bye"})), "3"),
        (rule_with(json!({"response_type": "yes_no"}), json!({"check": "contains", "value": "bye"})), "yes"),
        (rule_with(json!({"response_type": "boolean"}), json!({"check": "contains", "value": "bye"})), "true"),
        (
            rule_with(
                json!({"response_type": "quantitative", "min_value": 0, "max_value": 2}),
                json!({"check": "contains", "value": "bye"}),
            ),
            "error: the value 3 is outside 0 to 2",
        ),
        (
            rule_with(json!({"response_type": "json"}), json!({"check": "contains", "value": "x"})),
            "error: the value is no json",
        ),
        (rule(json!({"check": "not_contains", "value": "sorry"})), "pass"),
        (rule(json!({"check": "not_contains", "value": "bye"})), "fail"),
        (rule(json!({"check": "regex", "value": "(tues|thurs)day", "count_min": 3})), "pass"),
        (
            rule_with(
                json!({"response_type": "int"}),
                json!({"check": "regex", "value": "^[A-Z]\\w+", "case_sensitive": true}),
            ),
            "7",
        ),
        (rule(json!({"check": "tool_called", "value": "find", "count_min": 2})), "pass"),
        (rule(json!({"check": "tool_called", "value": "Find"})), "fail"),
        (rule(json!({"check": "tool_not_called", "value": "cancel"})), "pass"),
        (rule(json!({"check": "dtmf_received", "value": "12"})), "pass"),
        (rule(json!({"check": "dtmf_received", "value": 3})), "fail"),
        (rule_with(json!({"response_type": "int"}), json!({"check": "dtmf_received"})), "2"),
        (rule(json!({"check": "metadata_equals", "key": "city", "value": "bern"})), "pass"),
        (rule(json!({"check": "metadata_equals", "key": "city", "value": "bern", "case_sensitive": true})), "fail"),
        (rule(json!({"check": "metadata_equals", "key": "n", "value": 3})), "pass"),
        (rule(json!({"check": "metadata_equals", "key": "none", "value": 3})), "fail"),
        (rule(json!({"check": "turns_at_most", "value": 4})), "pass"),
        (rule(json!({"check": "turns_at_most", "value": 3})), "fail"),
        (rule(json!({"check": "turns_at_most", "value": 2, "speaker": "USER"})), "fail"),
        (
            rule_with(
                json!({"response_type": "int"}),
                json!({"check": "turns_at_most", "value": 2, "speaker": "USER"}),
            ),
            "3",
        ),
    ]
}

/// Rules over a part of the conversation, and expected tools.
fn segment_cases() -> Vec<RuleCase> {
    vec![
        // Segments.
        (rule_with(json!({"eval_segment": "opening"}), json!({"check": "contains", "value": "Thursday"})), "pass"),
        (rule_with(json!({"eval_segment": "opening"}), json!({"check": "contains", "value": "Press"})), "fail"),
        (rule_with(json!({"eval_segment": "opening"}), json!({"check": "tool_called", "value": "book"})), "fail"),
        (rule_with(json!({"eval_segment": "closing"}), json!({"check": "contains", "value": "Tuesday"})), "fail"),
        (rule_with(json!({"eval_segment": "closing"}), json!({"check": "contains", "value": "thanks"})), "pass"),
        (rule_with(json!({"eval_segment": "closing"}), json!({"check": "tool_called", "value": "book"})), "pass"),
        (rule_with(json!({"eval_segment": "agent"}), json!({"check": "contains", "value": "visit"})), "fail"),
        (rule_with(json!({"eval_segment": "caller"}), json!({"check": "contains", "value": "visit"})), "pass"),
        (rule_with(json!({"eval_segment": "caller"}), json!({"check": "tool_called", "value": "book"})), "fail"),
        // Tool calls need no settings.
        (tools(json!(["book", "find"]), json!({})), "pass"),
        (tools(json!(["book", "cancel"]), json!({})), "fail"),
        (tools(json!(["book", "find"]), json!({"order": true})), "pass"),
        (tools(json!(["find", "book", "find"]), json!({"order": true})), "pass"),
        (tools(json!(["book", "find", "book"]), json!({"order": true})), "fail"),
    ]
}

/// Metrics that compare a measure.
fn measure_cases() -> Vec<RuleCase> {
    vec![
        // Measures.
        (measure("pass_fail", json!({"measure": "agent_snr", "operator": "greater_than", "value": 12})), "pass"),
        (measure("pass_fail", json!({"measure": "agent_snr", "operator": "less_than", "value": "12"})), "fail"),
        (measure("yes_no", json!({"measure": "num_turns", "operator": "equals", "value": 4.0})), "yes"),
        (measure("boolean", json!({"measure": "interface", "operator": "equals", "value": "WEB"})), "false"),
        (measure("float", json!({"measure": "agent_snr"})), "12.5"),
        (measure("int", json!({"measure": "num_turns"})), "4"),
        (measure("int", json!({"measure": "agent_snr"})), "error: the value 12.5 is no integer"),
        (measure("float", json!({"measure": "interface"})), "error: interface is no number"),
        (measure("float", json!({"measure": "agent_pitch"})), "not_evaluated: agent_pitch has no value"),
        (
            measure("pass_fail", json!({"measure": "interface", "operator": "less_than", "value": 1})),
            "error: settings.operator less_than compares numbers",
        ),
        (
            measure("pass_fail", json!({"measure": "agent_snr"})),
            "error: settings.operator and settings.value are required for a measure that passes or fails",
        ),
        (measure("float", json!({})), "error: settings.measure is required for audio metrics"),
        (json!({"eval_method": "audio", "eval_modality": "AUDIO"}), "not_evaluated: No audio model is configured"),
    ]
}

/// Rules whose settings are wrong.
fn fault_cases() -> Vec<RuleCase> {
    vec![
        // The text names the fault.
        (rule(json!({})), "error: settings.check is required for deterministic metrics"),
        (rule(json!({"check": "guess"})), "error: settings.check guess is not known"),
        (rule(json!({"check": "contains"})), "error: settings.value is required"),
        (
            rule(json!({"check": "contains", "value": "a", "count_min": -1})),
            "error: settings.count_min must be an integer of at least 0",
        ),
        (
            rule(json!({"check": "turns_at_most", "value": "x"})),
            "error: settings.value must be a number for turns_at_most",
        ),
        (
            rule(json!({"check": "metadata_equals", "value": "x"})),
            "error: settings.key is required for metadata_equals",
        ),
        (json!({"eval_method": "llm_judge"}), "not_evaluated: No language model is configured"),
    ]
}

#[tokio::test]
async fn rules_count_what_was_said_keyed_and_called() {
    let (entries, calls) = (entries(&TALK), calls(&[("find", 2500), ("book", 5500), ("find", 6000)]));
    let metadata = json!({"city": "Bern", "n": 3});
    let measures = measures(json!({"num_turns": 4, "agent_snr": 12.5, "interface": "PHONE"}));
    let material = Material {
        entries: &entries,
        calls: &calls,
        metadata: metadata.as_object(),
        measures: &measures,
        ..Material::default()
    };
    let cases = [rule_cases(), segment_cases(), measure_cases(), fault_cases()].concat();
    for (fields, expect) in cases {
        let metric = metric("m", fields.clone());
        let results = judge_metrics(std::slice::from_ref(&metric), material, None).await;
        assert_eq!(outcome_of(&results[0]), expect, "{fields}");
        assert_eq!(results[0].metric_id, metric.id);
        if is_of_tool_calls(&metric.spec) {
            assert_eq!(judge_by_rules(&metric, material), results[0], "{fields}");
        }
    }
    let broken = metric("m", rule(json!({"check": "regex", "value": "("})));
    let results = judge_metrics(&[broken], material, None).await;
    assert!(
        outcome_of(&results[0]).starts_with("error: settings.value is no regular expression: "),
        "{}",
        outcome_of(&results[0])
    );
}

/// Returns a turn that was not heard.
const fn missing_turn(speaker: Role, from_ms: i64, to_ms: i64, lack: Lack) -> Unheard {
    Unheard { speaker, from_ms, to_ms, lack }
}

/// Words of the agent between Doctor Patel's days and the caller's choice.
const AGENT: Unheard = missing_turn(Role::Agent, 3950, 3990, Lack::Words);
/// The rest of one turn, and all words of one behind everything.
const REST: [Unheard; 2] =
    [missing_turn(Role::Agent, 2000, 2900, Lack::Rest), missing_turn(Role::Agent, 9000, 9500, Lack::Words)];
/// Words that came late, and are known.
const LATE: Unheard = missing_turn(Role::Agent, 2000, 2900, Lack::Time);
/// Words of the caller.
const CALLER: Unheard = missing_turn(Role::User, 4500, 4700, Lack::Words);
const ONE: &str = "words of 1 turn are not known";

/// Case of a rule over words that were not all heard: the lacks, fields of the metric, and its value or status.
type UnheardCase = (Vec<Unheard>, Value, String);

/// Returns fields of a deterministic metric of this type.
fn typed_rule(kind: &str, more: Value) -> Value {
    let mut fields = json!({"response_type": kind, "eval_method": "deterministic", "min_value": 0, "max_value": 9});
    fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fields
}

fn pass_fail(settings: Value) -> Value {
    typed_rule("pass_fail", json!({"settings": settings}))
}

fn pass_fail_of(segment: &str, settings: Value) -> Value {
    typed_rule("pass_fail", json!({"eval_segment": segment, "settings": settings}))
}

/// Rules over words, some of which are not known.
fn cases_of_words() -> Vec<UnheardCase> {
    vec![
        (vec![AGENT], pass_fail(json!({"check": "contains", "value": "thursday"})), "pass".to_owned()),
        (
            vec![AGENT],
            pass_fail(json!({"check": "contains", "value": "friday"})),
            format!("not_evaluated: contains: 0 in what was heard, and {ONE}"),
        ),
        (
            vec![AGENT],
            pass_fail(json!({"check": "contains", "value": "tuesday", "count_min": 3})),
            format!("not_evaluated: contains: 2 in what was heard, and {ONE}"),
        ),
        (vec![AGENT], pass_fail(json!({"check": "contains", "value": "friday", "count_min": 0})), "pass".into()),
        (vec![AGENT], pass_fail(json!({"check": "contains", "value": "friday", "speaker": "USER"})), "fail".into()),
        (vec![AGENT], pass_fail(json!({"check": "not_contains", "value": "bye"})), "fail".into()),
        (
            vec![AGENT],
            pass_fail(json!({"check": "not_contains", "value": "sorry"})),
            format!("not_evaluated: not_contains: 0 in what was heard, and {ONE}"),
        ),
        (vec![AGENT], pass_fail(json!({"check": "not_contains", "value": "sorry", "speaker": "USER"})), "pass".into()),
        (vec![AGENT], pass_fail(json!({"check": "regex", "value": "(tues|thurs)day", "count_min": 3})), "pass".into()),
        (
            vec![AGENT],
            pass_fail(json!({"check": "regex", "value": "sorr(y|ies)"})),
            format!("not_evaluated: regex: 0 in what was heard, and {ONE}"),
        ),
        // A count is not known, also where some are.
        (
            vec![AGENT],
            typed_rule("int", json!({"settings": {"check": "contains", "value": "bye"}})),
            format!("not_evaluated: contains: 3 in what was heard, and {ONE}"),
        ),
        (
            vec![AGENT],
            typed_rule("quantitative", json!({"settings": {"check": "contains", "value": "bye"}})),
            format!("not_evaluated: contains: 3 in what was heard, and {ONE}"),
        ),
        (vec![AGENT], typed_rule("yes_no", json!({"settings": {"check": "contains", "value": "bye"}})), "yes".into()),
        (
            REST.to_vec(),
            pass_fail(json!({"check": "contains", "value": "friday"})),
            "not_evaluated: contains: 0 in what was heard, and words of 2 turns are not known".into(),
        ),
        // It came late, and is known.
        (vec![LATE], pass_fail(json!({"check": "contains", "value": "friday"})), "fail".into()),
        (vec![LATE], typed_rule("int", json!({"settings": {"check": "contains", "value": "bye"}})), "3".into()),
        (vec![CALLER], pass_fail(json!({"check": "contains", "value": "friday", "speaker": "AGENT"})), "fail".into()),
        (
            vec![CALLER],
            pass_fail(json!({"check": "contains", "value": "friday", "speaker": "USER"})),
            format!("not_evaluated: contains: 0 in what was heard, and {ONE}"),
        ),
    ]
}

/// Rules over turns and segments, and rules that need no words.
fn cases_of_turns() -> Vec<UnheardCase> {
    vec![
        // Metrics that need no words are decided.
        (vec![AGENT], pass_fail(json!({"check": "dtmf_received", "value": "12"})), "pass".into()),
        (vec![AGENT], pass_fail(json!({"check": "tool_not_called", "value": "book"})), "pass".into()),
        // A turn without words is a turn: of the agent's own, or one that parts two of the other side.
        (vec![AGENT], typed_rule("int", json!({"settings": {"check": "turns_at_most", "value": 2}})), "4".into()),
        (vec![CALLER], typed_rule("int", json!({"settings": {"check": "turns_at_most", "value": 2}})), "4".into()),
        (
            vec![missing_turn(Role::User, 5950, 5990, Lack::Words)],
            typed_rule("int", json!({"settings": {"check": "turns_at_most", "value": 2}})),
            "5".into(),
        ),
        (
            vec![
                missing_turn(Role::Agent, 1950, 1990, Lack::Words),
                missing_turn(Role::Agent, 4950, 4990, Lack::Words),
            ],
            typed_rule("int", json!({"settings": {"check": "turns_at_most", "value": 2, "speaker": "USER"}})),
            "3".into(),
        ),
        // Segments: the turn belongs to the opening, and counts as one of its turns.
        (vec![AGENT], pass_fail_of("closing", json!({"check": "contains", "value": "friday"})), "fail".into()),
        (vec![AGENT], pass_fail_of("caller", json!({"check": "contains", "value": "friday"})), "fail".into()),
        (
            vec![AGENT],
            pass_fail_of("opening", json!({"check": "contains", "value": "friday"})),
            format!("not_evaluated: contains: 0 in what was heard, and {ONE}"),
        ),
        (
            vec![missing_turn(Role::Agent, 1950, 1990, Lack::Words), missing_turn(Role::User, 1995, 1999, Lack::Words)],
            pass_fail_of("opening", json!({"check": "contains", "value": "thursday"})),
            "not_evaluated: contains: 0 in what was heard, and words of 1 turn are not known".into(),
        ),
    ]
}

#[tokio::test]
async fn what_was_not_heard_decides_no_rule() {
    let entries = entries(&TALK);
    for (unheard, fields, expect) in [cases_of_words(), cases_of_turns()].concat() {
        let material = Material { entries: &entries, unheard: &unheard, ..Material::default() };
        let results = judge_metrics(&[metric("m", fields.clone())], material, None).await;
        assert_eq!(outcome_of(&results[0]), expect, "{fields} {unheard:?}");
    }
}

#[tokio::test]
async fn a_model_is_told_what_was_not_heard_and_may_say_that_it_depends_on_it() {
    let all = entries(&["AGENT: Good morning.", "USER: Is Friday free?", "AGENT: Let me see.", "USER: Thanks."]);
    let value = json!({"value": "pass", "reasoning": "It did."});
    let open = json!({"not_known": true, "reasoning": "It may have been said."});
    let agent = |from_ms, lack| missing_turn(Role::Agent, from_ms, from_ms + 40, lack);
    let no_reason = "not_evaluated: It depends on words that are not known";
    for (entries, unheard, answers, expect, lines) in [
        (
            &all[..],
            &[agent(2910, Lack::Words)][..],
            vec![&value],
            "pass",
            Some("AGENT: Let me see.\nAGENT: [speech not understood]\nUSER: Thanks.\n\nWhere words"),
        ),
        (
            &all,
            &[missing_turn(Role::Agent, 2000, 2900, Lack::Rest)],
            vec![&open],
            no_reason,
            Some("AGENT: Let me see.\nAGENT: [speech not understood]\nUSER: Thanks.\n"),
        ),
        (
            &all,
            &[missing_turn(Role::Agent, 0, 900, Lack::Time)],
            // Everything is known by now.
            vec![&open, &open, &value],
            "pass",
            Some("Good morning.\nAGENT: [this turn was answered before its words were known]\nUSER: Is Friday free?\n"),
        ),
        (
            &all,
            &[missing_turn(Role::User, 950, 990, Lack::Words)],
            vec![&value],
            "pass",
            Some("Good morning.\nUSER: [speech not understood]\nUSER: Is Friday free?\n"),
        ),
        (&all, &[], vec![&open, &value], "pass", Some("USER: Thanks.\n")),
        (
            &[],
            &[agent(0, Lack::Words), agent(90, Lack::Words)],
            vec![],
            "not_evaluated: Nothing was heard: words of 2 turns are not known",
            None,
        ),
    ] {
        let replies = answers.iter().map(|answer| Reply::says(&[&answer.to_string()])).collect();
        let model = ScriptedModel::new(replies);
        let material = Material { entries, unheard, ..Material::default() };
        let results = judge_metrics(&[metric("m", json!({}))], material, Some(&model)).await;
        let asked = model.requests();
        assert_eq!((outcome_of(&results[0]).as_str(), asked.len()), (expect, answers.len()), "{unheard:?}");
        let is_open = unheard.iter().any(Unheard::lacks_words);
        for request in &asked {
            let (task, material) = (&request.messages[0].content, &request.messages[1].content);
            assert!(lines.is_some_and(|lines| material.contains(lines)), "{material}");
            let mentions = [task.contains("\"not_known\""), material.contains("Where words are not known")];
            assert_eq!(mentions, [is_open; 2], "{task} {material}");
        }
    }
}

#[tokio::test]
async fn formulas_follow_what_they_refer_to() {
    let entries = entries(&TALK);
    let measures = measures(json!({"num_turns": 4, "goal_success": true, "avg_agent_latency": 0.5}));
    let material = Material { entries: &entries, measures: &measures, ..Material::default() };
    let formula = |kind: &str, expression: &str| json!({"response_type": kind, "eval_method": "formula", "settings": {"expression": expression}});
    let metrics = [
        // Before those that it refers to.
        metric("Whole", formula("float", "(`Says bye` + `Half`) / 2")),
        metric("Half", formula("float", "num_turns / 8 + goal_success")),
        metric("Says bye", json!({"eval_method": "deterministic", "settings": {"check": "contains", "value": "bye"}})),
        metric("Fast", formula("pass_fail", "avg_agent_latency <= 0.5")),
        metric("Turns", formula("int", "round(num_turns * 1.1)")),
        metric("Yes", formula("yes_no", "`Turns` == 4")),
        metric("Bare", formula("pass_fail", "num_turns")),
        metric("Judged", json!({})),
        metric("Needs it", formula("pass_fail", "`Judged` == 1")),
        metric("By zero", formula("float", "1 / (num_turns - 4)")),
        metric("One", formula("float", "`Two`")),
        metric("Two", formula("float", "`One`")),
        metric("Self", formula("float", "`Self` + 1")),
        metric("None", formula("float", "")),
        metric("Unheard", formula("float", "unheard_of + 1")),
    ];
    let results = judge_metrics(&metrics, material, None).await;
    let got: Vec<(&str, String)> = results.iter().map(|result| (result.name.as_str(), outcome_of(result))).collect();
    let expect = [
        ("Whole", "1.25"),
        ("Half", "1.5"),
        ("Says bye", "pass"),
        ("Fast", "pass"),
        ("Turns", "4"),
        ("Yes", "yes"),
        ("Bare", "error: a formula of type pass_fail needs a comparison"),
        ("Judged", "not_evaluated: No language model is configured"),
        ("Needs it", "not_evaluated: Judged has no value"),
        ("By zero", "error: division by 0"),
        ("One", "error: the expression refers to itself"),
        ("Two", "error: the expression refers to itself"),
        ("Self", "error: the expression refers to itself"),
        ("None", "error: settings.expression is required for formula metrics"),
        ("Unheard", "not_evaluated: unheard_of has no value"),
    ];
    assert_eq!(got, expect.map(|(name, said)| (name, said.to_owned())));
}
