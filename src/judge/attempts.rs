//! Attempts of an agent to reach a caller who, as planned, does not answer. Its success is judged by them alone.

use ringer_provider::LanguageModel;

use super::custom::{Material, conversation_text};
use super::decide::{Decision, decide_of};

/// Question about attempts alone.
pub(super) const QUESTION: &str = "The agent tried to reach a caller who, as planned, did not answer. Do the attempts of the agent, by their \
    number, their times and what was left or written, fulfil what the agent was to do?";

/// Reason why attempts are not judged without success criteria.
const NO_CRITERIA: &str = "There are no success_criteria by which the agent's attempts could be judged";

/// Asks the model whether the attempts of `material` fulfil its success criteria.
///
/// # Errors
/// Why there is no answer, as `not_evaluated_reason` says it.
pub(super) async fn judge_attempts(material: Material<'_>, model: &dyn LanguageModel) -> Result<Decision, String> {
    match material.success_criteria.trim().is_empty() {
        true => Err(NO_CRITERIA.to_owned()),
        false => decide_of(QUESTION, conversation_text(material), model).await,
    }
}

#[cfg(test)]
mod tests {
    use ringer_model::Object;
    use ringer_model::digital_human::Role;
    use ringer_model::evaluation::{Evaluation, EvaluationStatus as S};
    use ringer_model::result::MetricValue;
    use ringer_model::transcript::{EntrySource, TranscriptEntry};
    use ringer_provider::testing::{Reply, ScriptedModel};
    use serde_json::{Value, json};

    use super::*;
    use crate::{NO_MODEL, judge_words};

    const ONLY: &str = "Nothing was said: only the attempts of the agent were judged";

    fn lines() -> Vec<String> {
        ["09:00:10Z: a call from sip:a@h, not answered", "09:05:10Z: a call from sip:a@h, not answered"]
            .map(str::to_owned)
            .to_vec()
    }

    async fn judge_attempt(
        material: Material<'_>,
        model: Option<&ScriptedModel>,
    ) -> (Evaluation, Vec<MetricValue>, Object) {
        let (mut evaluation, mut metrics) = (Evaluation::default(), Vec::new());
        let model = model.map(|model| model as &dyn LanguageModel);
        let notes = judge_words(material, &[], model, &mut metrics, &mut evaluation).await;
        (evaluation, metrics, notes)
    }

    #[tokio::test]
    async fn attempts_alone_are_no_success() {
        let attempts = lines();
        for (criteria, replies, goal, status, reason) in [
            (
                "It calls twice.",
                Some(&[r#"{"answer": "yes", "reasoning": "Two calls."}"#][..]),
                Some(true),
                S::Partial,
                ONLY,
            ),
            ("It calls three times.", Some(&[r#"{"answer": "no"}"#]), Some(false), S::Partial, ONLY),
            ("It calls.", Some(&["?", "?", "?"]), None, S::NotEvaluated, "Judge answer could not be read"),
            ("It calls.", Some(&[]), None, S::NotEvaluated, "scripted failure"),
            ("It calls.", None, None, S::NotEvaluated, NO_MODEL),
            (" ", Some(&[]), None, S::NotEvaluated, NO_CRITERIA),
        ] {
            let model = replies.map(|all| ScriptedModel::new(all.iter().map(|reply| Reply::says(&[reply])).collect()));
            let material = Material { success_criteria: criteria, attempts: &attempts, ..Material::default() };
            let (evaluation, metrics, notes) = judge_attempt(material, model.as_ref()).await;
            let found = (evaluation.goal_success, evaluation.status, evaluation.not_evaluated_reason.as_deref());
            assert_eq!(found, (goal, status, Some(reason)), "{criteria} {replies:?}");
            let values: Vec<(&str, &Value)> = metrics.iter().map(|one| (one.name.as_str(), &one.value)).collect();
            let value = json!(goal);
            let expect: Vec<(&str, &Value)> = match goal {
                Some(_) => vec![("goal_success", &value), ("success", &value)],
                None => Vec::new(),
            };
            assert_eq!(values, expect, "{criteria}");
            assert_eq!(notes.contains_key("judge_model"), goal.is_some(), "{criteria}");
            let asked = model.map(|model| model.requests()).unwrap_or_default();
            let shown = |text: &str| asked.iter().all(|request| request.messages[1].content.contains(text));
            assert!(shown("2 in all:\n- 09:00:10Z: a call") && shown("- 09:05:10Z: a call"), "{asked:?}");
            assert!(shown(&format!("What the agent was to do:\n{criteria}")), "{asked:?}");
        }
    }

    #[tokio::test]
    async fn what_was_written_to_somebody_who_does_not_answer_is_judged_as_attempts() {
        let words = "Hello? Call us back.".to_owned();
        let entry = TranscriptEntry::of(Role::Agent, 0, 0, words, EntrySource::Message);
        let (attempts, entries) = (lines(), [entry]);
        for (attempts, is_mentioned) in [(&attempts[..], true), (&[], false)] {
            let model = ScriptedModel::new(Vec::new());
            let material =
                Material { entries: &entries, success_criteria: "It writes.", attempts, ..Material::default() };
            let (evaluation, ..) = judge_attempt(material, Some(&model)).await;
            assert_eq!(evaluation.goal_success, None, "it failed to answer");
            let asked = &model.requests()[0].messages;
            assert_eq!(asked[0].content.contains("The caller was not to answer, and did not."), is_mentioned);
            assert_eq!(asked[1].content.contains("Attempts of the agent to reach it, 2 in all"), is_mentioned);
            assert!(asked[1].content.contains("AGENT: Hello? Call us back."), "{asked:?}");
        }
    }
}
