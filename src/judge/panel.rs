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
/// Why there is none: a tie, or fewer readable answers than more than half of the panel.
pub(crate) fn majority<T: PartialEq + Display>(answers: &[Option<T>]) -> Result<usize, String> {
    let read: Vec<(usize, &T)> = answers.iter().enumerate().filter_map(|(at, answer)| Some((at, answer.as_ref()?))).collect();
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
    use super::*;

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
            assert_eq!(majority(answers).as_ref().map_err(String::as_str), expect.as_ref().map_err(|why| *why), "{answers:?}");
        }
        let words = ["a", "b", "c"].map(Some);
        assert_eq!(majority(&words), Err("the panel is divided: 1 for a, 1 for b, 1 for c".to_owned()));
    }
}
