//! Custom metrics of one conversation: by rules over its words, digits and tool calls, by formulas over other metrics,
//! by measures of its sound, or by a language model. What cannot be judged says so; no value is ever made up.

mod ear;
mod formula;
mod model;
mod rules;
mod segment;
mod value;

use ringer_model::Object;
use ringer_model::custom_metric::{CustomMetricSpec, EvalMethod, EvalModality, EvalSegment, ResponseType};
use ringer_model::evaluation::{CustomResult, CustomStatus};
use ringer_model::result::{MetricValue, PostedToolCall};
use ringer_model::transcript::TranscriptEntry;
use ringer_provider::LanguageModel;
use serde_json::Value;
use uuid::Uuid;

pub(crate) use self::ear::recording_of;
pub use self::ear::{Ear, is_by_ear};
pub(crate) use self::model::NOT_TOLD;
pub use self::model::metric_version;

use self::formula::Trouble;
use self::value::{Finding, Given, blank, settled};
use super::unheard::{self, Unheard};

/// Reason for a metric that needs a language model where there is none.
pub const NO_MODEL: &str = "No language model is configured";
/// Reason for a metric that needs a model that hears where there is none.
const NO_EAR: &str = "No audio model is configured";

/// A metric with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Id of the metric.
    pub id: Uuid,
    /// Fields of the metric.
    pub spec: CustomMetricSpec,
}

/// Material that metrics of one conversation are judged by.
#[derive(Copy, Clone, Debug, Default)]
pub struct Material<'m> {
    /// Transcript entries in order of start.
    pub entries: &'m [TranscriptEntry],
    /// Turns that were not heard, in order of start.
    pub unheard: &'m [Unheard],
    /// Tool calls that were made.
    pub calls: &'m [PostedToolCall],
    /// Metadata of the result.
    pub metadata: Option<&'m Object>,
    /// Built-in metrics that have a value.
    pub measures: &'m [MetricValue],
    /// Measures of parts of the conversation.
    pub parts: &'m [PartMeasures],
    /// The agent's prompt in the version that was tested.
    pub agent_prompt: &'m str,
    /// Goal that the caller was to reach.
    pub success_criteria: &'m str,
    /// Rules of the agent that the caller was to probe.
    pub rules: &'m [String],
    /// Attempts of the agent to reach a caller who was not to answer, a line each; empty for every other caller.
    pub attempts: &'m [String],
    /// Contacts of the two before this conversation, oldest first; empty outside of a journey.
    pub earlier: &'m [String],
    /// Names of the language models that judge together; empty: one judges.
    pub panel: &'m [String],
    /// Model that hears, with the recording; `None`: sound is not judged.
    pub ear: Option<Ear<'m>>,
}

impl Material<'_> {
    /// True when words of somebody are known.
    pub fn has_words(&self) -> bool {
        self.entries.iter().any(TranscriptEntry::has_words)
    }

    /// Returns the turns that were not heard, those included that the transcript alone tells of; in order of start.
    pub fn all_unheard(&self) -> Vec<Unheard> {
        unheard::with_entries(self.unheard, self.entries)
    }
}

/// Measures of one part of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct PartMeasures {
    /// Part of the conversation.
    pub segment: EvalSegment,
    /// Metrics that have a value there.
    pub measures: Vec<MetricValue>,
}

/// Returns the parts that `metrics` measure, each with its span in milliseconds; without those that are the whole
/// conversation.
pub fn parts_to_measure(metrics: &[Metric], material: Material<'_>) -> Vec<(EvalSegment, (i64, i64))> {
    let mut parts = Vec::new();
    for spec in metrics.iter().map(|metric| &metric.spec).filter(|spec| is_measured(spec)) {
        let part = segment::part(spec.eval_segment, material);
        let wanted = (spec.eval_segment, part.span_ms);
        if !part.is_whole() && !parts.contains(&wanted) {
            parts.push(wanted);
        }
    }
    parts
}

fn is_measured(spec: &CustomMetricSpec) -> bool {
    spec.method() == EvalMethod::Audio && spec.settings.contains_key("measure")
}

/// Judges metrics, in their order. `model` is asked where a metric needs one.
pub(crate) async fn judge_metrics(
    metrics: &[Metric],
    material: Material<'_>,
    model: Option<&dyn LanguageModel>,
) -> Vec<CustomResult> {
    let mut results: Vec<CustomResult> = metrics.iter().map(|metric| blank(metric.id, &metric.spec)).collect();
    let ruled = |metric: &&Metric| metric.spec.method() == EvalMethod::Deterministic;
    let by_rules = judge_apart(metrics.iter().filter(ruled).cloned().collect(), material).await;
    let mut by_rules = by_rules.into_iter();
    for (metric, result) in metrics.iter().zip(&mut results) {
        if ruled(&metric) {
            *result = by_rules.next().expect("there is one for each");
        } else if metric.spec.method() != EvalMethod::Formula {
            let finding = find(&metric.spec, material, model).await;
            *result = settled(metric.id, &metric.spec, finding);
        }
    }
    judge_formulas(metrics, material, &mut results);
    results
}

/// Returns a whole conversation with what it is judged by, for a model.
pub fn conversation_text(material: Material<'_>) -> String {
    model::shown("The conversation", &segment::part(EvalSegment::All, material))
}

/// True for metrics that depend on tool calls alone: they are judged again when calls come late.
pub fn is_of_tool_calls(spec: &CustomMetricSpec) -> bool {
    let check = spec.settings.get("check").and_then(Value::as_str);
    spec.method() == EvalMethod::Deterministic
        && match check {
            Some(check) => matches!(check, "tool_called" | "tool_not_called"),
            None => spec.response_type == ResponseType::ToolCall,
        }
}

/// Judges a metric by rules alone.
pub fn judge_by_rules(metric: &Metric, material: Material<'_>) -> CustomResult {
    let part = segment::part(metric.spec.eval_segment, material);
    settled(metric.id, &metric.spec, rules::deterministic(&metric.spec, &part))
}

/// Judges metrics by rules beside everything else: long texts take them seconds.
async fn judge_apart(metrics: Vec<Metric>, material: Material<'_>) -> Vec<CustomResult> {
    if metrics.is_empty() {
        return Vec::new();
    }
    let (entries, unheard) = (material.entries.to_vec(), material.unheard.to_vec());
    let (calls, metadata) = (material.calls.to_vec(), material.metadata.cloned());
    let judged = tokio::task::spawn_blocking(move || {
        let (calls, metadata) = (&calls[..], metadata.as_ref());
        let material = Material { entries: &entries, unheard: &unheard, calls, metadata, ..Material::default() };
        metrics.iter().map(|metric| judge_by_rules(metric, material)).collect()
    });
    // A panic there goes on here: the caller of the work deals with it.
    judged.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

async fn find(spec: &CustomMetricSpec, material: Material<'_>, model: Option<&dyn LanguageModel>) -> Finding {
    let part = segment::part(spec.eval_segment, material);
    if let Some(ear) = material.ear
        && is_by_ear(spec)
    {
        return ear::judged(spec, &part, ear).await;
    }
    match spec.method() {
        EvalMethod::Deterministic => Finding::error("rules are judged before the others"),
        EvalMethod::Audio if is_measured(spec) => rules::measured(spec, &part),
        EvalMethod::Audio | EvalMethod::LlmJudge if spec.eval_modality == EvalModality::Audio => {
            Finding::not_evaluated(NO_EAR)
        }
        EvalMethod::Audio => Finding::error("settings.measure is required for audio metrics"),
        EvalMethod::LlmJudge => match model {
            Some(model) => model::judged(spec, &part, model).await,
            None => Finding::not_evaluated(NO_MODEL),
        },
        EvalMethod::Formula => Finding::error("a formula is judged after the others"),
    }
}

/// Judges formulas once all that they refer to is known.
fn judge_formulas(metrics: &[Metric], material: Material<'_>, results: &mut [CustomResult]) {
    let mut open: Vec<usize> =
        (0..metrics.len()).filter(|at| metrics[*at].spec.method() == EvalMethod::Formula).collect();
    while !open.is_empty() {
        let waits = |at: usize| {
            let names = formula::quoted(expression(&metrics[at].spec));
            open.iter().any(|other| names.contains(&metrics[*other].spec.name.as_str()))
        };
        let ready: Vec<usize> = open.iter().copied().filter(|at| !waits(*at)).collect();
        for at in &ready {
            results[*at] = settled(metrics[*at].id, &metrics[*at].spec, compute(&metrics[*at].spec, material, results));
        }
        open.retain(|at| !ready.contains(at));
        if ready.is_empty() {
            for at in open.drain(..) {
                let finding = Finding::error("the expression refers to itself");
                results[at] = settled(metrics[at].id, &metrics[at].spec, finding);
            }
        }
    }
}

fn expression(spec: &CustomMetricSpec) -> &str {
    spec.settings.get("expression").and_then(Value::as_str).unwrap_or_default()
}

fn compute(spec: &CustomMetricSpec, material: Material<'_>, results: &[CustomResult]) -> Finding {
    let text = expression(spec);
    if text.is_empty() {
        return Finding::error("settings.expression is required for formula metrics");
    }
    let number_of = |name: &str, quoted: bool| {
        let custom = results.iter().find(|result| quoted && result.name == name);
        match custom {
            Some(result) => number(result),
            None => material.measures.iter().find(|measure| measure.name == name).and_then(|one| as_number(&one.value)),
        }
    };
    let reason = |value: &dyn std::fmt::Display| Some(format!("{text} = {value}"));
    match formula::evaluate(text, &number_of) {
        Ok(formula::Outcome::Truth(truth)) => {
            Finding::of_check(spec, truth, f64::from(u8::from(truth)), reason(&truth))
        }
        Ok(formula::Outcome::Number(_)) if value::needs_flag(spec.response_type) => {
            Finding::error(format!("a formula of type {} needs a comparison", spec.response_type.as_str()))
        }
        Ok(formula::Outcome::Number(number)) => Finding::of_value(Given::Number(number), reason(&number)),
        Err(Trouble::Missing(name)) => Finding::not_evaluated(format!("{name} has no value")),
        Err(Trouble::Wrong(why)) => Finding::error(why),
    }
}

/// Returns a custom metric as an operand: pass, yes and true are 1.
fn number(result: &CustomResult) -> Option<f64> {
    if result.status != CustomStatus::Evaluated {
        return None;
    }
    match result.response_value.as_str() {
        "pass" | "yes" | "true" => Some(1.0),
        "fail" | "no" | "false" => Some(0.0),
        _ => result.quantitative_response.or(result.float_value).or(result.int_value.map(|value| value as f64)),
    }
}

fn as_number(value: &Value) -> Option<f64> {
    value.as_f64().or(value.as_bool().map(|truth| f64::from(u8::from(truth))))
}

#[cfg(test)]
mod tests;
