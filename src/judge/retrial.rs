//! Judging a labelled conversation again, as a run would judge it.

use ringer_model::custom_metric::{CustomMetricSpec, ResponseType};
use ringer_model::evaluation::CustomStatus;
use ringer_model::judge_card::JudgeAnswer;
use ringer_provider::LanguageModel;
use uuid::Uuid;

use super::attempts::judge_attempts;
use super::conversation::judge_by_all;
use super::custom::{Material, Metric, is_by_ear, judge_metrics};
use super::meaning::judge_meaning;
use super::panel::missing;

/// Verdict that is given again.
#[derive(Copy, Clone, Debug)]
pub enum Retrial<'s> {
    /// Verdict on the goal of the caller.
    Goal,
    /// Value of a custom metric, which [`check_retrial`] takes.
    Metric(&'s CustomMetricSpec),
    /// Verdict on the truth of a meaning.
    Meaning(&'s str),
}

/// Reason why a conversation is left out of a card.
const NO_WORDS: &str = "no words of the conversation are known";
/// The same where goals are judged.
const NO_CRITERIA: &str = "there are no success_criteria by which its goal could be judged";

/// Checks that a language model judges a custom metric with two values.
///
/// # Errors
/// A text for display when a card cannot be about the metric.
pub fn check_retrial(spec: &CustomMetricSpec) -> Result<(), String> {
    use ResponseType::{Boolean, PassFail, YesNo};
    let is_judged = spec.method() == ringer_model::custom_metric::EvalMethod::LlmJudge;
    match () {
        () if !is_judged => Err(format!("{} is not judged by a language model", spec.name)),
        () if is_by_ear(spec) => Err(format!("{} is judged by ear; cards are about judges of words", spec.name)),
        () if !matches!(spec.response_type, PassFail | YesNo | Boolean) => Err(format!(
            "{} is of type {}; cards are about pass_fail, yes_no and boolean",
            spec.name,
            spec.response_type.as_str()
        )),
        () => Ok(()),
    }
}

/// Judges a conversation once, and answers with the reason where the model was not reached.
///
/// # Errors
/// A text for display when no model at all could judge the conversation.
pub async fn retry(
    subject: Retrial<'_>,
    material: Material<'_>,
    model: &dyn LanguageModel,
) -> Result<(JudgeAnswer, Option<String>), String> {
    let only_attempts = material.entries.is_empty() && !material.attempts.is_empty();
    if matches!(subject, Retrial::Goal) && material.success_criteria.trim().is_empty() {
        return Err(NO_CRITERIA.to_owned());
    }
    let is_judged_by_attempts = only_attempts && matches!(subject, Retrial::Goal);
    if !material.has_words() && !is_judged_by_attempts {
        return Err(NO_WORDS.to_owned());
    }
    let answered = |found: Result<JudgeAnswer, String>| match found {
        Ok(answer) => (answer, None),
        Err(why) => (missing(&why), Some(why)),
    };
    Ok(match subject {
        Retrial::Goal if only_attempts => {
            answered(judge_attempts(material, model).await.map(|decision| JudgeAnswer::of(decision.yes)))
        }
        Retrial::Goal => answered(judge_by_all(material, model).await.0.map(|judgement| judgement.goal_answer())),
        Retrial::Meaning(meaning) => {
            answered(judge_meaning(meaning, material, model).await.0.map(|decision| JudgeAnswer::of(decision.yes)))
        }
        Retrial::Metric(spec) => retry_metric(spec, material, model).await,
    })
}

async fn retry_metric(
    spec: &CustomMetricSpec,
    material: Material<'_>,
    model: &dyn LanguageModel,
) -> (JudgeAnswer, Option<String>) {
    let metric = Metric { id: Uuid::nil(), spec: spec.clone() };
    let Some(result) = judge_metrics(&[metric], material, Some(model)).await.pop() else {
        return (JudgeAnswer::Failed, None);
    };
    match (result.status, result.response_value.as_str()) {
        (CustomStatus::Evaluated, "pass" | "yes" | "true") => (JudgeAnswer::True, None),
        (CustomStatus::Evaluated, "fail" | "no" | "false") => (JudgeAnswer::False, None),
        (CustomStatus::NotApplicable, _) => (JudgeAnswer::Uncertain, Some("it does not apply".to_owned())),
        _ => {
            let why = result.reason.unwrap_or_default();
            let answer = if why == super::custom::NOT_TOLD { JudgeAnswer::Uncertain } else { missing(&why) };
            (answer, Some(why))
        }
    }
}
