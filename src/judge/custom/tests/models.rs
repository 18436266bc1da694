//! Custom metrics that a language model judges: values of every type, repeated requests, several runs.

use super::*;

/// Judges a metric with a model that gives these answers; returns the result, and the model with its requests.
async fn judge_with(fields: Value, answers: &[Value]) -> (CustomResult, ScriptedModel) {
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

/// Case of a metric that a model judges: its fields, the model's answers, the value or status, and the number of
/// requests.
type ModelCase = (Value, Vec<Value>, &'static str, usize);

/// Returns an answer with this value.
fn answer_of(value: Value) -> Value {
    json!({"reasoning": "so", "value": value})
}

fn json_type() -> Value {
    json!({"response_type": "json", "json_schema": {"type": "object", "required": ["a"]}})
}

fn range_type() -> Value {
    json!({"response_type": "quantitative", "min_value": 1, "max_value": 5})
}

fn options_type() -> Value {
    json!({"response_type": "enum", "enum_options": ["Good", "Bad"]})
}

/// Answers that can be read, one of each type.
fn first_answers() -> Vec<ModelCase> {
    vec![
        (json!({}), vec![answer_of(json!("PASS"))], "pass", 1),
        (json!({}), vec![answer_of(json!(false))], "fail", 1),
        (json!({"response_type": "yes_no"}), vec![answer_of(json!("no"))], "no", 1),
        (json!({"response_type": "boolean"}), vec![answer_of(json!(true))], "true", 1),
        (json!({"response_type": "int"}), vec![answer_of(json!(3))], "3", 1),
        (json!({"response_type": "float"}), vec![answer_of(json!("3.5"))], "3.5", 1),
        (json!({"response_type": "qualitative"}), vec![answer_of(json!("Warm."))], "Warm.", 1),
        (options_type(), vec![answer_of(json!("Good"))], "Good", 1),
        (range_type(), vec![answer_of(json!(5))], "5", 1),
        (json_type(), vec![answer_of(json!({"a": 1}))], "{\"a\":1}", 1),
        (
            json!({"response_type": "tool_call", "tool_names": ["x"], "eval_method": "llm_judge"}),
            vec![answer_of(json!("pass"))],
            "pass",
            1,
        ),
    ]
}

/// Answers that are asked for again, and metrics that do not apply.
fn repeated_answers() -> Vec<ModelCase> {
    vec![
        // Asked again, then given up.
        (range_type(), vec![answer_of(json!(6)), answer_of(json!(4))], "4", 2),
        (
            range_type(),
            vec![answer_of(json!(6)), answer_of(json!(0)), answer_of(json!(9))],
            "error: the value 9 is outside 1 to 5",
            3,
        ),
        (options_type(), vec![answer_of(json!("so-so")); 3], "error: the value so-so is none of the options", 3),
        (
            json_type(),
            vec![answer_of(json!({})); 3],
            "error: the value does not fit json_schema: \"a\" is a required property",
            3,
        ),
        (json!({}), vec![answer_of(json!("maybe")); 3], "not_evaluated: Judge answer could not be read", 3),
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
    ]
}

/// Metrics of several runs, and models that are not there.
fn several_runs() -> Vec<ModelCase> {
    vec![
        // Several runs.
        (
            json!({"settings": {"runs": 3}}),
            vec![answer_of(json!("fail")), answer_of(json!("pass")), answer_of(json!("pass"))],
            "pass",
            3,
        ),
        (json!({"settings": {"runs": 2}}), vec![answer_of(json!("fail")), answer_of(json!("pass"))], "fail", 2),
        (
            json!({"response_type": "float", "settings": {"runs": 2}}),
            vec![answer_of(json!(1)), answer_of(json!(2))],
            "1.5",
            2,
        ),
        (
            json!({"response_type": "int", "settings": {"runs": 2}}),
            vec![answer_of(json!(1)), answer_of(json!(4))],
            "3",
            2,
        ),
        (
            json!({"response_type": "int", "settings": {"runs": 3, "aggregate": "majority"}}),
            vec![answer_of(json!(9)), answer_of(json!(1)), answer_of(json!(1))],
            "1",
            3,
        ),
        (json!({"settings": {"runs": 26}}), vec![], "error: settings.runs must be an integer of 1 to 25", 0),
        // Models that are not there.
        (json!({"model": "scripted"}), vec![answer_of(json!("pass"))], "pass", 1),
        (json!({"model": "other"}), vec![], "not_evaluated: Language model 'other' is not configured", 0),
        (json!({"eval_modality": "AUDIO"}), vec![], "not_evaluated: No audio model is configured", 0),
    ]
}

#[tokio::test]
async fn a_language_model_judges_every_type() {
    for (fields, answers, expect, asked) in [first_answers(), repeated_answers(), several_runs()].concat() {
        let (result, model) = judge_with(fields.clone(), &answers).await;
        assert_eq!((outcome_of(&result).as_str(), model.requests().len()), (expect, asked), "{fields} {answers:?}");
    }
    let (result, _) = judge_with(json!({"allow_not_applicable": true}), &[json!({"not_applicable": true})]).await;
    assert_eq!((result.response_value.as_str(), result.is_not_applicable), ("Not Applicable", true));
}

#[tokio::test]
async fn the_judge_is_told_what_it_needs() {
    let answer = json!({"value": "pass", "reasoning": "It did."});
    let fields = json!({
        "description": "Names {{doctor}} and {{unknown}}.", "scoring_guidance": "{{doctor}} once.", "temperature": 0.5,
        "eval_segment": "opening",
    });
    let (result, model) = judge_with(fields, std::slice::from_ref(&answer)).await;
    assert_eq!(result.reasoning.as_deref(), Some("It did."));
    assert_eq!(result.description.as_deref(), Some("Names {{doctor}} and {{unknown}}."), "as the metric has it");
    let request = &model.requests()[0];
    let (task, material) = (&request.messages[0].content, &request.messages[1].content);
    assert!(task.contains("Names Patel and {{unknown}}.") && task.contains("Patel once.") && task.contains("\"pass\""));
    for part in ["Be kind.", "A visit is booked.", "USER: I need a visit", "AGENT: Or on Thursday."] {
        assert!(material.contains(part), "{part} in {material}");
    }
    assert!(!material.contains("Press 1"), "only the opening: {material}");
    assert_eq!((request.temperature, request.json), (0.5, true));
    let (_, model) = judge_with(json!({"prompt": "My own words, {{doctor}}."}), &[answer]).await;
    let task = &model.requests()[0].messages[0].content;
    assert!(task.starts_with("My own words, Patel.") && !task.contains("You judge one metric"), "{task}");
    assert_eq!(model.requests()[0].temperature, 0.0);
}

#[tokio::test]
async fn a_long_value_of_the_metadata_comes_in_only_so_often() {
    let metadata = json!({"long": "x".repeat(1 << 20)});
    let material = Material { metadata: metadata.as_object(), ..Material::default() };
    let metric = metric("m", json!({"description": "{{long}}".repeat(10_000)}));
    let model = ScriptedModel::new(vec![Reply::says(&["{\"value\": \"pass\"}"])]);
    judge_metrics(&[metric], material, Some(&model)).await;
    assert!(model.requests()[0].messages[0].content.len() < 2 << 20);
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
        let (result, _) = judge_with(fields, &[answer]).await;
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
