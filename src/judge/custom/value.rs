//! Results of custom metrics: a value in the metric's own type, or the reason why there is none.

use ringer_model::custom_metric::{CustomMetricSpec, ResponseType};
use ringer_model::evaluation::{CustomResult, CustomStatus};
use ringer_model::judge_card::JudgeNote;
use serde_json::Value;
use uuid::Uuid;

use crate::schema_of;

/// The text of a value that does not apply.
const NOT_APPLICABLE: &str = "Not Applicable";

/// A value before it is of a metric's type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    Flag(bool),
    Number(f64),
    Text(String),
    Object(Value),
}

/// Outcome of judging a metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Given(Given),
    NotApplicable,
    NotEvaluated(String),
    Error(String),
}

/// A verdict with its reasoning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub verdict: Verdict,
    pub reasoning: Option<String>,
    /// Remark on the value, for display.
    pub note: Option<String>,
    /// Model that judged; `None`: none did.
    pub judge: Option<JudgeNote>,
}

impl Finding {
    pub(crate) fn of_value(given: Given, reasoning: Option<String>) -> Finding {
        Finding { verdict: Verdict::Given(given), reasoning, note: None, judge: None }
    }

    /// Returns a check that passed or failed, with what was counted: metrics of numbers give the count.
    pub(crate) fn of_check(spec: &CustomMetricSpec, passed: bool, count: f64, reasoning: Option<String>) -> Finding {
        use ResponseType::*;
        let given = match spec.response_type {
            PassFail | ToolCall | YesNo | Boolean => Given::Flag(passed),
            Quantitative | Int | Float => Given::Number(count),
            Enum | Qualitative | Json => Given::Text(if passed { "pass" } else { "fail" }.into()),
        };
        Finding::of_value(given, reasoning)
    }

    pub(crate) fn not_evaluated(reason: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::NotEvaluated(reason.into()), reasoning: None, note: None, judge: None }
    }

    pub(crate) fn error(reason: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Error(reason.into()), reasoning: None, note: None, judge: None }
    }
}

/// True for types that only a check that passes or fails can give.
pub(super) fn needs_flag(kind: ResponseType) -> bool {
    use ResponseType::*;
    matches!(kind, PassFail | ToolCall | YesNo | Boolean)
}

/// True for types whose value is a number: of a check, what it has counted.
pub(super) fn is_number(kind: ResponseType) -> bool {
    use ResponseType::*;
    matches!(kind, Quantitative | Int | Float)
}

/// Returns the result of a metric before it is judged.
pub(super) fn blank(id: Uuid, spec: &CustomMetricSpec) -> CustomResult {
    CustomResult {
        metric_id: id,
        name: spec.name.clone(),
        description: Some(spec.description.clone()),
        response_type: spec.response_type.as_str().to_owned(),
        category: spec.category.clone(),
        tags: spec.tags.clone(),
        scoring_guidance: spec.scoring_guidance.clone(),
        enum_options: spec.enum_options.clone(),
        min_value: spec.min_value,
        max_value: spec.max_value,
        ..CustomResult::default()
    }
}

/// Returns the result of a metric.
pub(super) fn settled(id: Uuid, spec: &CustomMetricSpec, finding: Finding) -> CustomResult {
    let mut result = blank(id, spec);
    (result.reasoning, result.reason, result.judge) = (finding.reasoning, finding.note, finding.judge);
    let verdict = match finding.verdict {
        Verdict::Given(given) => fits(spec, &given).map_or_else(Verdict::Error, |()| Verdict::Given(given)),
        other => other,
    };
    match verdict {
        Verdict::Given(given) => put_value(&mut result, spec.response_type, given),
        Verdict::NotApplicable => {
            result.status = CustomStatus::NotApplicable;
            result.response_value = NOT_APPLICABLE.into();
            result.is_not_applicable = true;
        }
        Verdict::NotEvaluated(reason) => (result.status, result.reason) = (CustomStatus::NotEvaluated, Some(reason)),
        Verdict::Error(reason) => (result.status, result.reason) = (CustomStatus::Error, Some(reason)),
    }
    result
}

/// Checks that a value is of the metric's type and range.
///
/// # Errors
/// The fault of the value.
pub(super) fn fits(spec: &CustomMetricSpec, given: &Given) -> Result<(), String> {
    use ResponseType::*;
    match (spec.response_type, given) {
        (PassFail | ToolCall | YesNo | Boolean, Given::Flag(_)) | (Qualitative, Given::Text(_)) => Ok(()),
        (Float, Given::Number(number)) if number.is_finite() => Ok(()),
        (Int, Given::Number(number)) if number.fract() == 0.0 && number.abs() < 9e15 => Ok(()),
        (Int, Given::Number(number)) => Err(format!("the value {number} is no integer")),
        (Quantitative, Given::Number(number)) => {
            let (low, high) = (spec.min_value.unwrap_or(f64::NEG_INFINITY), spec.max_value.unwrap_or(f64::INFINITY));
            let inside = (low..=high).contains(number);
            if inside { Ok(()) } else { Err(format!("the value {number} is outside {low} to {high}")) }
        }
        (Enum, Given::Text(text)) if spec.enum_options.contains(text) => Ok(()),
        (Enum, Given::Text(text)) => Err(format!("the value {text} is none of the options")),
        (Json, Given::Object(value)) => match &spec.json_schema {
            Some(schema) => match schema_of(schema)?.validate(value) {
                Ok(()) => Ok(()),
                Err(error) => Err(format!("the value does not fit json_schema: {error}")),
            },
            None => Ok(()),
        },
        (kind, _) => Err(format!("the value is no {}", kind.as_str())),
    }
}

fn put_value(result: &mut CustomResult, kind: ResponseType, given: Given) {
    let word = |truth: bool, yes: &str, no: &str| if truth { yes.to_owned() } else { no.to_owned() };
    result.status = CustomStatus::Evaluated;
    match (kind, given) {
        (ResponseType::PassFail, Given::Flag(passed)) => {
            result.response_value = word(passed, "pass", "fail");
            result.pass_fail_response = Some(result.response_value.clone());
        }
        (ResponseType::YesNo, Given::Flag(yes)) => {
            result.response_value = word(yes, "yes", "no");
            result.yes_no_response = Some(result.response_value.clone());
        }
        (ResponseType::Boolean, Given::Flag(truth)) => {
            result.response_value = word(truth, "true", "false");
            result.boolean_value = Some(truth);
        }
        (_, Given::Flag(passed)) => result.response_value = word(passed, "pass", "fail"),
        (ResponseType::Int, Given::Number(number)) => {
            result.response_value = (number as i64).to_string();
            result.int_value = Some(number as i64);
        }
        (ResponseType::Quantitative, Given::Number(number)) => {
            result.response_value = number.to_string();
            result.quantitative_response = Some(number);
        }
        (_, Given::Number(number)) => {
            result.response_value = number.to_string();
            result.float_value = Some(number);
        }
        (ResponseType::Enum, Given::Text(text)) => {
            result.response_value.clone_from(&text);
            result.enum_response = Some(text);
        }
        (_, Given::Text(text)) => {
            result.response_value.clone_from(&text);
            result.qualitative_response = Some(text);
        }
        (_, Given::Object(value)) => {
            result.response_value = value.to_string();
            result.json_response = Some(value);
        }
    }
}
