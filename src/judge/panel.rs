//! A panel: several language models judge, and the majority decides.

use std::fmt::Display;
use std::sync::Arc;

use ringer_model::judge_card::{JudgeAnswer, JudgeNote, JudgeVote};
use ringer_provider::LanguageModel;

use super::ask::UNREAD;

/// Models of a panel by their names in the settings.
type Members = Vec<(String, Arc<dyn LanguageModel>)>;

/// Returns the models of a panel.
///
/// # Errors
/// Names one that is not configured.
pub(crate) fn members(model: &dyn LanguageModel, panel: &[String]) -> Result<Members, String> {
    let member = |name: &String| match model.other(name) {
        Some(other) => Ok((name.clone(), other)),
        None => Err(format!("Language model '{name}' of the panel is not configured")),
    };
    panel.iter().map(member).collect()
}

/// Returns the name of a judge: that of the model, or those of a panel. Verdicts and cards have it.
pub fn judge_name(model: &dyn LanguageModel, panel: &[String]) -> String {
    if panel.is_empty() {
        return model.name();
    }
    let name = |member: &String| model.other(member).map_or_else(|| format!("{member}?"), |other| other.name());
    format!("panel: {}", panel.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// Returns the note of a judge of which nothing else is known yet.
pub(crate) fn note(model: &dyn LanguageModel, panel: &[String], prompt_version: String) -> JudgeNote {
    JudgeNote { model: judge_name(model, panel), prompt_version, ..JudgeNote::default() }
}

/// Returns a vote; an answer that is none is `unreadable`, `failed` or `not_known`.
pub(crate) fn vote(name: &str, model: &dyn LanguageModel, answer: impl Display) -> JudgeVote {
    JudgeVote { name: name.to_owned(), model: model.name(), answer: answer.to_string() }
}

/// Returns the answer that a reason for its absence means.
pub(crate) fn missing(why: &str) -> JudgeAnswer {
    if why == UNREAD { JudgeAnswer::Unreadable } else { JudgeAnswer::Failed }
}

/// Returns the place of the first answer of the majority.
///
/// # Errors
/// A text for display when there is no majority: a tie, or too few readable answers.
pub(crate) fn majority<T: PartialEq + Display>(answers: &[Option<T>]) -> Result<usize, String> {
    let read: Vec<(usize, &T)> =
        answers.iter().enumerate().filter_map(|(at, answer)| Some((at, answer.as_ref()?))).collect();
    let all = answers.len();
    if 2 * read.len() <= all {
        return Err(format!("{} of the {all} models of the panel gave a verdict, too few for a majority", read.len()));
    }
    let count = |wanted: &T| read.iter().filter(|(_, answer)| *answer == wanted).count();
    if let Some((at, _)) = read.iter().find(|(_, answer)| 2 * count(answer) > read.len()) {
        return Ok(*at);
    }
    let mut told: Vec<String> = Vec::new();
    for (at, (_, answer)) in read.iter().enumerate() {
        if read[..at].iter().all(|(_, earlier)| earlier != answer) {
            told.push(format!("{} for {answer}", count(answer)));
        }
    }
    Err(format!("the panel is divided: {}", told.join(", ")))
}

#[cfg(test)]
mod tests {
    use ringer_model::digital_human::Role;
    use ringer_model::evaluation::Evaluation;
    use ringer_model::transcript::{EntrySource, TranscriptEntry};
    use ringer_provider::choice::ModelChoice;
    use ringer_provider::testing::{Reply, ScriptedModel};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::custom::{Material, Metric, judge_metrics};
    use crate::{goal_version, judge_words};

    #[test]
    fn more_than_half_of_the_readable_answers_decide() {
        let yes = Some(true);
        let no = Some(false);
        for (answers, expect) in [
            (&[yes, no, yes][..], Ok(0)),
            (&[no, yes, yes], Ok(1)),
            (&[None, yes, yes], Ok(1)),
            (&[yes], Ok(0)),
            (&[yes, no], Err("the panel is divided: 1 for true, 1 for false")),
            (&[None, yes, no], Err("the panel is divided: 1 for true, 1 for false")),
            (&[None, None, yes], Err("1 of the 3 models of the panel gave a verdict, too few for a majority")),
            (&[None, yes], Err("1 of the 2 models of the panel gave a verdict, too few for a majority")),
            (&[], Err("0 of the 0 models of the panel gave a verdict, too few for a majority")),
        ] {
            assert_eq!(
                majority(answers).as_ref().map_err(String::as_str),
                expect.as_ref().map_err(|why| *why),
                "{answers:?}"
            );
        }
        let words = ["a", "b", "c"].map(Some);
        assert_eq!(majority(&words), Err("the panel is divided: 1 for a, 1 for b, 1 for c".to_owned()));
    }

    /// Returns a model that gives each answer once, by the name of its panel.
    fn member(name: &str, replies: &[String]) -> (String, Arc<dyn LanguageModel>) {
        let replies = replies.iter().map(|reply| Reply::says(&[reply])).collect();
        (name.to_owned(), Arc::new(ScriptedModel::new(replies)))
    }

    fn judgement(goal: Value) -> String {
        json!({
            "goal_success": goal, "goal_reasoning": "So.", "hallucination": false, "redundancy": true,
            "sentiment_score": 0.5, "call_summary": "A visit.",
            "sentiment_scores": { "positive": 1, "neutral": 0, "negative": 0 },
        })
        .to_string()
    }

    #[tokio::test]
    async fn a_panel_decides_on_the_goal_and_shows_its_votes() {
        let rubbish = || vec!["?".to_owned(); 3];
        let entries = [TranscriptEntry::of(Role::Agent, 0, 1, "Booked.".into(), EntrySource::Message)];
        let names = ["a", "b", "c"].map(str::to_owned);
        for (answers, goal, votes, lacking) in [
            (
                [vec![judgement(json!(false))], vec![judgement(json!(true))], vec![judgement(json!(true))]],
                Some(true),
                ["false", "true", "true"],
                None,
            ),
            (
                [vec![judgement(json!(false))], rubbish(), vec![judgement(json!(true))]],
                None,
                ["false", "unreadable", "true"],
                Some("goal_success: the panel is divided: 1 for false, 1 for true"),
            ),
            (
                [vec![judgement(json!(true))], rubbish(), Vec::new()],
                None,
                ["true", "unreadable", "failed"],
                Some("goal_success: 1 of the 3 models of the panel gave a verdict, too few for a majority"),
            ),
        ] {
            let others = names.iter().zip(&answers).map(|(name, replies)| member(name, replies)).collect();
            let model = ModelChoice::new(Arc::new(ScriptedModel::new(Vec::new())), others);
            let material =
                Material { entries: &entries, success_criteria: "A visit.", panel: &names, ..Material::default() };
            let mut evaluation = Evaluation::default();
            judge_words(material, &[], Some(&model), &mut Vec::new(), &mut evaluation).await;
            let judge = evaluation.judge.expect("it was judged");
            let cast: Vec<&str> = judge.votes.iter().map(|vote| vote.answer.as_str()).collect();
            assert_eq!((evaluation.goal_success, cast), (goal, votes.to_vec()), "{lacking:?}");
            assert!(judge.model.starts_with("panel: ") && judge.prompt_version == goal_version(), "{judge:?}");
            let why = evaluation.not_evaluated_reason.unwrap_or_default();
            assert!(lacking.is_none_or(|lacking| why.contains(lacking)), "{why}");
            let has_majority = lacking.is_none_or(|lacking| lacking.contains("divided"));
            assert_eq!(evaluation.redundancy, has_majority.then_some(true), "two of three call it redundant");
        }
    }

    #[tokio::test]
    async fn a_panel_decides_on_metrics_of_few_values() {
        let metric = |response_type: &str| {
            let spec =
                json!({ "name": "Polite", "description": "Is it?", "response_type": response_type, "agent_ids": [] });
            Metric { id: Uuid::nil(), spec: serde_json::from_value(spec).expect("a metric") }
        };
        let value = |value: Value| vec![json!({ "reasoning": "So.", "value": value }).to_string()];
        let entries = [TranscriptEntry::of(Role::Agent, 0, 1, "Booked.".into(), EntrySource::Message)];
        let names = ["a", "b"].map(str::to_owned);
        for (one, other, expect, reason) in
            [("yes", "yes", "yes", None), ("yes", "no", "", Some("the panel is divided: 1 for yes, 1 for no"))]
        {
            let others = [member("a", &value(json!(one))), member("b", &value(json!(other)))].into_iter().collect();
            let model = ModelChoice::new(Arc::new(ScriptedModel::new(Vec::new())), others);
            let material = Material { entries: &entries, panel: &names, ..Material::default() };
            let found = judge_metrics(&[metric("yes_no")], material, Some(&model)).await.remove(0);
            assert_eq!((found.response_value.as_str(), found.reason.as_deref()), (expect, reason));
            let judge = found.judge.expect("a model judged");
            let cast: Vec<(&str, &str)> =
                judge.votes.iter().map(|vote| (vote.name.as_str(), vote.answer.as_str())).collect();
            assert_eq!(cast, [("a", one), ("b", other)]);
        }
        // A text has no majority: the default model judges alone.
        let alone = ScriptedModel::new(vec![Reply::says(&[&value(json!("Kind."))[0]])]);
        let model = ModelChoice::new(Arc::new(alone), Default::default());
        let material = Material { entries: &entries, panel: &names, ..Material::default() };
        let found = judge_metrics(&[metric("qualitative")], material, Some(&model)).await.remove(0);
        assert_eq!(found.response_value, "Kind.");
        assert!(found.judge.is_some_and(|judge| judge.votes.is_empty() && !judge.model.starts_with("panel")));
        let missing = judge_metrics(&[metric("yes_no")], material, Some(&model)).await.remove(0);
        assert_eq!(missing.reason.as_deref(), Some("Language model 'a' of the panel is not configured"));
    }
}
