//! Custom metrics judged by rules, formulas and a scripted model.

mod answers;

use serde_json::json;

use super::*;
use crate::judge::Lack;
use crate::model::digital_human::Role;
use crate::model::transcript::EntrySource;
use crate::provider::fake::{Reply, ScriptedModel};

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
    Metric { id: crate::clock::new_id(), spec: serde_json::from_value(body).expect("a metric") }
}

/// Returns the value of a result, or its status and reason.
fn said(result: &CustomResult) -> String {
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
    let rule = |settings: Value| json!({"eval_method": "deterministic", "settings": settings});
    let with = |more: Value, settings: Value| {
        let mut fields = rule(settings);
        fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        fields
    };
    let tools = |names: Value, settings: Value| json!({"response_type": "tool_call", "tool_names": names, "settings": settings});
    let measure =
        |kind: &str, settings: Value| json!({"response_type": kind, "eval_method": "audio", "settings": settings});
    for (fields, expect) in [
        (rule(json!({"check": "contains", "value": "doctor patel"})), "pass"),
        (rule(json!({"check": "contains", "value": "doctor patel", "case_sensitive": true})), "fail"),
        (rule(json!({"check": "contains", "value": "tuesday", "count_min": 3})), "fail"),
        (rule(json!({"check": "contains", "value": "visit", "speaker": "AGENT"})), "fail"),
        (rule(json!({"check": "contains", "value": "visit", "speaker": "any"})), "pass"),
        (with(json!({"response_type": "int"}), json!({"check": "contains", "value": "bye"})), "3"),
        (with(json!({"response_type": "yes_no"}), json!({"check": "contains", "value": "bye"})), "yes"),
        (with(json!({"response_type": "boolean"}), json!({"check": "contains", "value": "bye"})), "true"),
        (
            with(
                json!({"response_type": "quantitative", "min_value": 0, "max_value": 2}),
                json!({"check": "contains", "value": "bye"}),
            ),
            "error: the value 3 is outside 0 to 2",
        ),
        (
            with(json!({"response_type": "json"}), json!({"check": "contains", "value": "x"})),
            "error: the value is no json",
        ),
        (rule(json!({"check": "not_contains", "value": "sorry"})), "pass"),
        (rule(json!({"check": "not_contains", "value": "bye"})), "fail"),
        (rule(json!({"check": "regex", "value": "(tues|thurs)day", "count_min": 3})), "pass"),
        (
            with(
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
        (with(json!({"response_type": "int"}), json!({"check": "dtmf_received"})), "2"),
        (rule(json!({"check": "metadata_equals", "key": "city", "value": "bern"})), "pass"),
        (rule(json!({"check": "metadata_equals", "key": "city", "value": "bern", "case_sensitive": true})), "fail"),
        (rule(json!({"check": "metadata_equals", "key": "n", "value": 3})), "pass"),
        (rule(json!({"check": "metadata_equals", "key": "none", "value": 3})), "fail"),
        (rule(json!({"check": "turns_at_most", "value": 4})), "pass"),
        (rule(json!({"check": "turns_at_most", "value": 3})), "fail"),
        (rule(json!({"check": "turns_at_most", "value": 2, "speaker": "USER"})), "fail"),
        (with(json!({"response_type": "int"}), json!({"check": "turns_at_most", "value": 2, "speaker": "USER"})), "3"),
        // Segments.
        (with(json!({"eval_segment": "opening"}), json!({"check": "contains", "value": "Thursday"})), "pass"),
        (with(json!({"eval_segment": "opening"}), json!({"check": "contains", "value": "Press"})), "fail"),
        (with(json!({"eval_segment": "opening"}), json!({"check": "tool_called", "value": "book"})), "fail"),
        (with(json!({"eval_segment": "closing"}), json!({"check": "contains", "value": "Tuesday"})), "fail"),
        (with(json!({"eval_segment": "closing"}), json!({"check": "contains", "value": "thanks"})), "pass"),
        (with(json!({"eval_segment": "closing"}), json!({"check": "tool_called", "value": "book"})), "pass"),
        (with(json!({"eval_segment": "agent"}), json!({"check": "contains", "value": "visit"})), "fail"),
        (with(json!({"eval_segment": "caller"}), json!({"check": "contains", "value": "visit"})), "pass"),
        (with(json!({"eval_segment": "caller"}), json!({"check": "tool_called", "value": "book"})), "fail"),
        // Tool calls need no settings.
        (tools(json!(["book", "find"]), json!({})), "pass"),
        (tools(json!(["book", "cancel"]), json!({})), "fail"),
        (tools(json!(["book", "find"]), json!({"order": true})), "pass"),
        (tools(json!(["find", "book", "find"]), json!({"order": true})), "pass"),
        (tools(json!(["book", "find", "book"]), json!({"order": true})), "fail"),
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
    ] {
        let metric = metric("m", fields.clone());
        let results = judge_metrics(std::slice::from_ref(&metric), material, None).await;
        assert_eq!(said(&results[0]), expect, "{fields}");
        assert_eq!(results[0].metric_id, metric.id);
        if is_of_tool_calls(&metric.spec) {
            assert_eq!(judge_by_rules(&metric, material), results[0], "{fields}");
        }
    }
    let broken = metric("m", rule(json!({"check": "regex", "value": "("})));
    let results = judge_metrics(&[broken], material, None).await;
    assert!(said(&results[0]).starts_with("error: settings.value is no regular expression: "), "{}", said(&results[0]));
}

/// Returns a turn that was not heard.
fn lost(speaker: Role, from_ms: i64, to_ms: i64, lack: Lack) -> Unheard {
    Unheard { speaker, from_ms, to_ms, lack }
}

#[tokio::test]
async fn what_was_not_heard_decides_no_rule() {
    let entries = entries(&TALK);
    let rule = |kind: &str, more: Value| {
        let mut fields = json!({"response_type": kind, "eval_method": "deterministic", "min_value": 0, "max_value": 9});
        fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        fields
    };
    let pass_fail = |settings: Value| rule("pass_fail", json!({"settings": settings}));
    let of = |segment: &str, settings: Value| rule("pass_fail", json!({"eval_segment": segment, "settings": settings}));
    let one = "words of 1 turn are not known";
    // Between Doctor Patel's days and the caller's choice; behind everything; by the caller.
    let agent = [lost(Role::Agent, 3950, 3990, Lack::Words)];
    let rest = [lost(Role::Agent, 2000, 2900, Lack::Rest), lost(Role::Agent, 9000, 9500, Lack::Words)];
    let late = [lost(Role::Agent, 2000, 2900, Lack::Time)];
    let caller = [lost(Role::User, 4500, 4700, Lack::Words)];
    for (unheard, fields, expect) in [
        (&agent[..], pass_fail(json!({"check": "contains", "value": "thursday"})), "pass".to_owned()),
        (
            &agent,
            pass_fail(json!({"check": "contains", "value": "friday"})),
            format!("not_evaluated: contains: 0 in what was heard, and {one}"),
        ),
        (
            &agent,
            pass_fail(json!({"check": "contains", "value": "tuesday", "count_min": 3})),
            format!("not_evaluated: contains: 2 in what was heard, and {one}"),
        ),
        (&agent, pass_fail(json!({"check": "contains", "value": "friday", "count_min": 0})), "pass".into()),
        (&agent, pass_fail(json!({"check": "contains", "value": "friday", "speaker": "USER"})), "fail".into()),
        (&agent, pass_fail(json!({"check": "not_contains", "value": "bye"})), "fail".into()),
        (
            &agent,
            pass_fail(json!({"check": "not_contains", "value": "sorry"})),
            format!("not_evaluated: not_contains: 0 in what was heard, and {one}"),
        ),
        (&agent, pass_fail(json!({"check": "not_contains", "value": "sorry", "speaker": "USER"})), "pass".into()),
        (&agent, pass_fail(json!({"check": "regex", "value": "(tues|thurs)day", "count_min": 3})), "pass".into()),
        (
            &agent,
            pass_fail(json!({"check": "regex", "value": "sorr(y|ies)"})),
            format!("not_evaluated: regex: 0 in what was heard, and {one}"),
        ),
        // A count is not known, also where some are.
        (
            &agent,
            rule("int", json!({"settings": {"check": "contains", "value": "bye"}})),
            format!("not_evaluated: contains: 3 in what was heard, and {one}"),
        ),
        (
            &agent,
            rule("quantitative", json!({"settings": {"check": "contains", "value": "bye"}})),
            format!("not_evaluated: contains: 3 in what was heard, and {one}"),
        ),
        (&agent, rule("yes_no", json!({"settings": {"check": "contains", "value": "bye"}})), "yes".into()),
        (
            &rest,
            pass_fail(json!({"check": "contains", "value": "friday"})),
            "not_evaluated: contains: 0 in what was heard, and words of 2 turns are not known".into(),
        ),
        // It came late, and is known.
        (&late, pass_fail(json!({"check": "contains", "value": "friday"})), "fail".into()),
        (&late, rule("int", json!({"settings": {"check": "contains", "value": "bye"}})), "3".into()),
        (&caller, pass_fail(json!({"check": "contains", "value": "friday", "speaker": "AGENT"})), "fail".into()),
        (
            &caller,
            pass_fail(json!({"check": "contains", "value": "friday", "speaker": "USER"})),
            format!("not_evaluated: contains: 0 in what was heard, and {one}"),
        ),
        // Metrics that need no words are decided.
        (&agent, pass_fail(json!({"check": "dtmf_received", "value": "12"})), "pass".into()),
        (&agent, pass_fail(json!({"check": "tool_not_called", "value": "book"})), "pass".into()),
        // A turn without words is a turn: of the agent's own, or one that parts two of the other side.
        (&agent, rule("int", json!({"settings": {"check": "turns_at_most", "value": 2}})), "4".into()),
        (&caller, rule("int", json!({"settings": {"check": "turns_at_most", "value": 2}})), "4".into()),
        (
            &[lost(Role::User, 5950, 5990, Lack::Words)],
            rule("int", json!({"settings": {"check": "turns_at_most", "value": 2}})),
            "5".into(),
        ),
        (
            &[lost(Role::Agent, 1950, 1990, Lack::Words), lost(Role::Agent, 4950, 4990, Lack::Words)],
            rule("int", json!({"settings": {"check": "turns_at_most", "value": 2, "speaker": "USER"}})),
            "3".into(),
        ),
        // Segments: the turn belongs to the opening, and counts as one of its turns.
        (&agent, of("closing", json!({"check": "contains", "value": "friday"})), "fail".into()),
        (&agent, of("caller", json!({"check": "contains", "value": "friday"})), "fail".into()),
        (
            &agent,
            of("opening", json!({"check": "contains", "value": "friday"})),
            format!("not_evaluated: contains: 0 in what was heard, and {one}"),
        ),
        (
            &[lost(Role::Agent, 1950, 1990, Lack::Words), lost(Role::User, 1995, 1999, Lack::Words)],
            of("opening", json!({"check": "contains", "value": "thursday"})),
            "not_evaluated: contains: 0 in what was heard, and words of 1 turn are not known".into(),
        ),
    ] {
        let material = Material { entries: &entries, unheard, ..Material::default() };
        let results = judge_metrics(&[metric("m", fields.clone())], material, None).await;
        assert_eq!(said(&results[0]), expect, "{fields} {unheard:?}");
    }
}

#[tokio::test]
async fn a_model_is_told_what_was_not_heard_and_may_say_that_it_depends_on_it() {
    let all = entries(&["AGENT: Good morning.", "USER: Is Friday free?", "AGENT: Let me see.", "USER: Thanks."]);
    let value = json!({"value": "pass", "reasoning": "It did."});
    let open = json!({"not_known": true, "reasoning": "It may have been said."});
    let agent = |from_ms, lack| lost(Role::Agent, from_ms, from_ms + 40, lack);
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
            &[lost(Role::Agent, 2000, 2900, Lack::Rest)],
            vec![&open],
            no_reason,
            Some("AGENT: Let me see.\nAGENT: [speech not understood]\nUSER: Thanks.\n"),
        ),
        (
            &all,
            &[lost(Role::Agent, 0, 900, Lack::Time)],
            // Everything is known by now.
            vec![&open, &open, &value],
            "pass",
            Some("Good morning.\nAGENT: [this turn was answered before its words were known]\nUSER: Is Friday free?\n"),
        ),
        (
            &all,
            &[lost(Role::User, 950, 990, Lack::Words)],
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
        let asked = model.asked();
        assert_eq!((said(&results[0]).as_str(), asked.len()), (expect, answers.len()), "{unheard:?}");
        let is_open = unheard.iter().any(Unheard::lacks_words);
        for request in &asked {
            let (task, material) = (&request.messages[0].content, &request.messages[1].content);
            assert!(lines.is_some_and(|lines| material.contains(lines)), "{material}");
            let told = [task.contains("\"not_known\""), material.contains("Where words are not known")];
            assert_eq!(told, [is_open; 2], "{task} {material}");
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
    let got: Vec<(&str, String)> = results.iter().map(|result| (result.name.as_str(), said(result))).collect();
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

/// Judges a metric with a model that gives these answers; returns the result, and the model with its requests.
async fn judged(fields: Value, answers: &[Value]) -> (CustomResult, ScriptedModel) {
    let entries = entries(&TALK);
    let metadata = json!({"doctor": "Patel"});
    let material = Material {
        entries: &entries,
        metadata: metadata.as_object(),
        agent_prompt: "Be kind.",
        success_criteria: "A visit is booked.",
        ..Material::default()
    };
    let replies = answers.iter().map(|answer| Reply::says(&[&answer.to_string()])).collect();
    let model = ScriptedModel::new(replies);
    let results = judge_metrics(&[metric("m", fields)], material, Some(&model)).await;
    (results[0].clone(), model)
}

#[tokio::test]
async fn a_language_model_judges_every_type() {
    let value = |value: Value| json!({"reasoning": "so", "value": value});
    let schema = json!({"response_type": "json", "json_schema": {"type": "object", "required": ["a"]}});
    let range = json!({"response_type": "quantitative", "min_value": 1, "max_value": 5});
    let options = json!({"response_type": "enum", "enum_options": ["Good", "Bad"]});
    for (fields, answers, expect, asked) in [
        (json!({}), vec![value(json!("PASS"))], "pass", 1),
        (json!({}), vec![value(json!(false))], "fail", 1),
        (json!({"response_type": "yes_no"}), vec![value(json!("no"))], "no", 1),
        (json!({"response_type": "boolean"}), vec![value(json!(true))], "true", 1),
        (json!({"response_type": "int"}), vec![value(json!(3))], "3", 1),
        (json!({"response_type": "float"}), vec![value(json!("3.5"))], "3.5", 1),
        (json!({"response_type": "qualitative"}), vec![value(json!("Warm."))], "Warm.", 1),
        (options.clone(), vec![value(json!("Good"))], "Good", 1),
        (range.clone(), vec![value(json!(5))], "5", 1),
        (schema.clone(), vec![value(json!({"a": 1}))], "{\"a\":1}", 1),
        (
            json!({"response_type": "tool_call", "tool_names": ["x"], "eval_method": "llm_judge"}),
            vec![value(json!("pass"))],
            "pass",
            1,
        ),
        // Asked again, then given up.
        (range.clone(), vec![value(json!(6)), value(json!(4))], "4", 2),
        (range, vec![value(json!(6)), value(json!(0)), value(json!(9))], "error: the value 9 is outside 1 to 5", 3),
        (options, vec![value(json!("so-so")); 3], "error: the value so-so is none of the options", 3),
        (
            schema,
            vec![value(json!({})); 3],
            "error: the value does not fit json_schema: \"a\" is a required property",
            3,
        ),
        (json!({}), vec![value(json!("maybe")); 3], "not_evaluated: Judge answer could not be read", 3),
        (json!({}), vec![json!("no object"); 3], "not_evaluated: Judge answer could not be read", 3),
        (json!({}), vec![], "not_evaluated: scripted failure", 1),
        // The metric does not apply, where that is allowed.
        (
            json!({"allow_not_applicable": true}),
            vec![json!({"not_applicable": true, "reasoning": "n"})],
            "not_applicable: ",
            1,
        ),
        (json!({}), vec![json!({"not_applicable": true}); 3], "not_evaluated: Judge answer could not be read", 3),
        // Several runs.
        (
            json!({"settings": {"runs": 3}}),
            vec![value(json!("fail")), value(json!("pass")), value(json!("pass"))],
            "pass",
            3,
        ),
        (json!({"settings": {"runs": 2}}), vec![value(json!("fail")), value(json!("pass"))], "fail", 2),
        (json!({"response_type": "float", "settings": {"runs": 2}}), vec![value(json!(1)), value(json!(2))], "1.5", 2),
        (json!({"response_type": "int", "settings": {"runs": 2}}), vec![value(json!(1)), value(json!(4))], "3", 2),
        (
            json!({"response_type": "int", "settings": {"runs": 3, "aggregate": "majority"}}),
            vec![value(json!(9)), value(json!(1)), value(json!(1))],
            "1",
            3,
        ),
        (json!({"settings": {"runs": 26}}), vec![], "error: settings.runs must be an integer of 1 to 25", 0),
        // Models that are not there.
        (json!({"model": "scripted"}), vec![value(json!("pass"))], "pass", 1),
        (json!({"model": "other"}), vec![], "not_evaluated: Language model 'other' is not configured", 0),
        (json!({"eval_modality": "AUDIO"}), vec![], "not_evaluated: No audio model is configured", 0),
    ] {
        let (result, model) = judged(fields.clone(), &answers).await;
        assert_eq!((said(&result).as_str(), model.asked().len()), (expect, asked), "{fields} {answers:?}");
    }
    let (result, _) = judged(json!({"allow_not_applicable": true}), &[json!({"not_applicable": true})]).await;
    assert_eq!((result.response_value.as_str(), result.is_not_applicable), ("Not Applicable", true));
}

#[tokio::test]
async fn the_judge_is_told_what_it_needs() {
    let answer = json!({"value": "pass", "reasoning": "It did."});
    let fields = json!({
        "description": "Names {{doctor}} and {{unknown}}.", "scoring_guidance": "{{doctor}} once.", "temperature": 0.5,
        "eval_segment": "opening",
    });
    let (result, model) = judged(fields, std::slice::from_ref(&answer)).await;
    assert_eq!(result.reasoning.as_deref(), Some("It did."));
    assert_eq!(result.description.as_deref(), Some("Names {{doctor}} and {{unknown}}."), "as the metric has it");
    let request = &model.asked()[0];
    let (task, material) = (&request.messages[0].content, &request.messages[1].content);
    assert!(task.contains("Names Patel and {{unknown}}.") && task.contains("Patel once.") && task.contains("\"pass\""));
    for part in ["Be kind.", "A visit is booked.", "USER: I need a visit", "AGENT: Or on Thursday."] {
        assert!(material.contains(part), "{part} in {material}");
    }
    assert!(!material.contains("Press 1"), "only the opening: {material}");
    assert_eq!((request.temperature, request.json), (0.5, true));
    let (_, model) = judged(json!({"prompt": "My own words, {{doctor}}."}), &[answer]).await;
    let task = &model.asked()[0].messages[0].content;
    assert!(task.starts_with("My own words, Patel.") && !task.contains("You judge one metric"), "{task}");
    assert_eq!(model.asked()[0].temperature, 0.0);
}

#[tokio::test]
async fn a_long_value_of_the_metadata_comes_in_only_so_often() {
    let metadata = json!({"long": "x".repeat(1 << 20)});
    let material = Material { metadata: metadata.as_object(), ..Material::default() };
    let metric = metric("m", json!({"description": "{{long}}".repeat(10_000)}));
    let model = ScriptedModel::new(vec![Reply::says(&["{\"value\": \"pass\"}"])]);
    judge_metrics(&[metric], material, Some(&model)).await;
    assert!(model.asked()[0].messages[0].content.len() < 2 << 20);
}

#[tokio::test]
async fn values_stand_in_the_member_of_their_type() {
    let value = |value: Value| json!({"value": value});
    for (fields, answer, member, expect) in [
        (json!({}), value(json!("pass")), "pass_fail_response", json!("pass")),
        (json!({"response_type": "yes_no"}), value(json!("yes")), "yes_no_response", json!("yes")),
        (
            json!({"response_type": "quantitative", "min_value": 0, "max_value": 1}),
            value(json!(0.5)),
            "quantitative_response",
            json!(0.5),
        ),
        (json!({"response_type": "enum", "enum_options": ["a", "b"]}), value(json!("b")), "enum_response", json!("b")),
        (json!({"response_type": "qualitative"}), value(json!("q")), "qualitative_response", json!("q")),
        (json!({"response_type": "json"}), value(json!({"x": 1})), "json_response", json!({"x": 1})),
        (json!({"response_type": "int"}), value(json!(2)), "int_value", json!(2)),
        (json!({"response_type": "float"}), value(json!(2.5)), "float_value", json!(2.5)),
        (json!({"response_type": "boolean"}), value(json!(true)), "boolean_value", json!(true)),
    ] {
        let (result, _) = judged(fields, &[answer]).await;
        let result = serde_json::to_value(result).expect("JSON");
        let mirrors = [
            "pass_fail_response",
            "yes_no_response",
            "quantitative_response",
            "enum_response",
            "qualitative_response",
            "json_response",
            "int_value",
            "float_value",
            "boolean_value",
        ];
        for name in mirrors {
            let expect = if name == member { &expect } else { &Value::Null };
            assert_eq!(&result[name], expect, "{name} beside {member}");
        }
    }
}
