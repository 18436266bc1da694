//! Comparison of the agent's words with the meanings in rules, by a language model.

use ringer_media::call::{Comparison, ConversationLine};
use ringer_provider::{ChatMessage, ChatRequest, ChatRole, Failure, LanguageModel, complete};

/// Lines before the turn that a model is shown: the question that is answered is often only in them.
const LINES_MAX: usize = 4;
/// Most tokens of the answer. A number needs one or two; some models put a word before it.
const TOKENS_MAX: u32 = 16;

/// Returns the error of a meaning that the model did not name, or of a missing model.
pub(super) fn not_told() -> Failure {
    Failure { code: "meaning_not_told", message: "nobody tells what a turn means".into() }
}

/// Asks the model; see [`super::Mind::compare`].
pub(super) async fn compare(model: &dyn LanguageModel, comparison: &Comparison) -> Result<Option<usize>, Failure> {
    let answer = complete(model, &request(comparison)).await?;
    let count = comparison.phrases.len();
    let number = number(&answer).filter(|number| *number <= count).ok_or_else(not_told)?;
    Ok(number.checked_sub(1))
}

/// Returns the one number in an answer; `None` when there is none or more than one.
fn number(answer: &str) -> Option<usize> {
    let mut found = answer.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let number = found.next()?.parse().ok();
    number.filter(|_| found.next().is_none())
}

fn request(comparison: &Comparison) -> ChatRequest {
    let history = &comparison.history;
    let said =
        |line: &ConversationLine| format!("{}: {}\n", if line.other { "AGENT" } else { "CALLER" }, line.text.trim());
    let lines: String = history[history.len().saturating_sub(LINES_MAX)..].iter().map(said).collect();
    let meanings: String =
        comparison.phrases.iter().enumerate().map(|(n, phrase)| format!("{}. {phrase}\n", n + 1)).collect();
    let task = "You read a telephone conversation between an agent and a caller. You decide what the last words of the agent mean. \
                Other words with the same meaning count; the same words with another meaning do not. Answer with one number and \
                nothing else: the number of the first meaning in the list that the last words of the agent have, or 0 when they \
                have none of them.";
    let message = |role, content| ChatMessage { role, content };
    ChatRequest {
        messages: vec![
            message(ChatRole::System, task.into()),
            message(ChatRole::User, format!("The conversation:\n{lines}\nThe meanings:\n{meanings}")),
        ],
        temperature: 0.0,
        tokens_max: TOKENS_MAX,
        live: true,
        ..ChatRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringer_provider::testing::{Reply, ScriptedModel};

    use super::*;

    fn line(other: bool, text: &str) -> ConversationLine {
        ConversationLine { other, text: text.into(), digits: Arc::default(), interrupted: false }
    }

    #[tokio::test]
    async fn a_model_tells_which_meaning_a_turn_has() {
        let phrases = vec!["asks for the date of birth".to_owned(), "says goodbye".into()];
        let history = vec![line(false, "I want to pay."), line(true, "And when were you born?")];
        let comparison = Comparison { phrases, history };
        for (reply, expect) in [
            (Reply::says(&["1"]), Ok(Some(0))),
            (Reply::says(&["Number ", "2."]), Ok(Some(1))),
            (Reply::says(&["0"]), Ok(None)),
            (Reply::says(&["3"]), Err("meaning_not_told")),
            (Reply::says(&["1 or 2"]), Err("meaning_not_told")),
            (Reply::says(&["yes"]), Err("meaning_not_told")),
            (Reply::status(500), Err("language_model_failed")),
        ] {
            let model = ScriptedModel::new(vec![reply.clone()]);
            let meant = compare(&model, &comparison).await.map_err(|failure| failure.code);
            assert_eq!(meant, expect, "{reply:?}");
            let asked = &model.requests()[0];
            assert_eq!((asked.temperature, asked.tools.len()), (0.0, 0));
            let shown = &asked.messages[1].content;
            assert!(shown.contains("CALLER: I want to pay.\nAGENT: And when were you born?\n"), "{shown}");
            assert!(shown.contains("1. asks for the date of birth\n2. says goodbye\n"), "{shown}");
        }
    }
}
