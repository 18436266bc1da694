//! Meanings of expectations: whether something is true of a conversation, in whatever words.

use futures_util::FutureExt;
use futures_util::future::join_all;
use ringer_model::judge_card::{JudgeAnswer, JudgeNote};
use ringer_provider::LanguageModel;

use super::custom::Material;
use super::decide::{self, Decision, decide};
use super::panel;
use super::version::version;

/// Returns the question that judges a meaning.
pub(crate) fn question_of(meaning: &str) -> String {
    format!("Is this true of the conversation, in whatever words: {meaning}")
}

/// Returns the version of the prompt that judges a meaning.
pub fn meaning_version(meaning: &str) -> String {
    version(&[decide::TASK, &question_of(meaning)])
}

/// Asks the model, or the panel of the material, whether a meaning is true of a conversation; also returns who judged.
///
/// The first of both is an error where there is no verdict: why, for a person.
pub(crate) async fn judge_meaning(
    meaning: &str,
    material: Material<'_>,
    model: &dyn LanguageModel,
) -> (Result<Decision, String>, JudgeNote) {
    let question = question_of(meaning);
    let mut judge = panel::note(model, material.panel, meaning_version(meaning));
    if material.panel.is_empty() {
        return (decide(&question, material, model).await, judge);
    }
    let members = match panel::members(model, material.panel) {
        Ok(members) => members,
        Err(why) => return (Err(why), judge),
    };
    let mut decisions = join_all(members.iter().map(|(_, model)| decide(&question, material, &**model).boxed())).await;
    for ((name, model), decision) in members.iter().zip(&decisions) {
        let answer = decision.as_ref().map_or_else(|why| panel::missing(why), |decision| JudgeAnswer::of(decision.yes));
        judge.votes.push(panel::vote(name, &**model, answer.as_str()));
    }
    let answers: Vec<Option<bool>> = decisions.iter().map(|one| one.as_ref().ok().map(|one| one.yes)).collect();
    (panel::majority(&answers).and_then(|at| decisions.swap_remove(at)), judge)
}
