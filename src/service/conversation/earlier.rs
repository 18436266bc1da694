//! The earlier steps of a journey, as its Digital Human remembers them, and as a judge is told of them.

use ringer_base::error::Result;
use ringer_model::digital_human::{DigitalHumanSpec, Direction, JourneyStep, Modality, Role};
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_model::transcript::Transcript;
use ringer_store::{Row, Session};

/// Words that are remembered of one step; of a longer one the end counts most.
const MOST_WORDS: usize = 150;

/// Side that earlier steps are told to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The Digital Human, who remembers them.
    Caller,
    /// Whoever judges the conversation.
    Judge,
}

impl Whose {
    /// Returns the texts for who made contact with whom, for the wish, and the name of the Digital Human in a dialogue.
    fn words(self, direction: Direction) -> (&'static str, &'static str, &'static str) {
        match (self, direction) {
            (Whose::Caller, Direction::Inbound) => ("You contacted the agent", "you wanted", "You"),
            (Whose::Caller, Direction::Outbound) => ("The agent contacted you", "you wanted", "You"),
            (Whose::Judge, Direction::Inbound) => ("The caller contacted the agent", "the caller wanted", "Caller"),
            (Whose::Judge, Direction::Outbound) => ("The agent contacted the caller", "the caller wanted", "Caller"),
        }
    }
}

/// Returns one text for each step before that of `result`, oldest first.
pub(crate) async fn earlier(
    db: &mut Session,
    result: &Row<ResultDoc>,
    human: &DigitalHumanSpec,
    whose: Whose,
) -> Result<Vec<String>> {
    let Some(this) = result.doc.body.journey_step else { return Ok(Vec::new()) };
    let mut memories = Vec::new();
    for row in db.steps_of(&result.doc).await? {
        let Some(number) = row.doc.body.journey_step.filter(|number| *number < this) else { continue };
        let Some(step) = human.step(Some(number)) else { continue };
        let transcript: Option<Transcript> = db.text("transcripts", row.id).await?;
        let summary = row.doc.body.evaluations.first().and_then(|evaluation| evaluation.call_summary.clone());
        let words = summary.or_else(|| transcript.as_ref().map(|transcript| last_words(transcript, whose)));
        memories.push(memory(whose, step, row.doc.body.status, words.as_deref()));
    }
    Ok(memories)
}

fn memory(whose: Whose, step: &JourneyStep, status: ResultStatus, words: Option<&str>) -> String {
    let channel = match step.modality {
        Modality::Voice => "on the telephone",
        Modality::Sms => "by text message",
        Modality::Email => "by mail",
        Modality::Chat => "in a chat",
    };
    let (how, wish, _) = whose.words(step.direction);
    let wanted = format!("{how} {channel}; {wish}: {}", step.intent.trim());
    match words.filter(|words| !words.is_empty()) {
        Some(words) => format!("{wanted} What was said: {words}"),
        None if status == ResultStatus::Cancelled => format!("{wanted} It did not take place."),
        None => format!("{wanted} Nobody was reached."),
    }
}

/// Returns the last words of a conversation, with who said them.
fn last_words(transcript: &Transcript, whose: Whose) -> String {
    let (.., own) = whose.words(Direction::Inbound);
    let mut lines = Vec::new();
    let mut left = MOST_WORDS;
    for entry in transcript.entries.iter().rev().filter(|entry| !entry.utterance.trim().is_empty()) {
        let words: Vec<&str> = entry.utterance.split_whitespace().collect();
        if left == 0 {
            lines.push("...".to_owned());
            break;
        }
        let kept = &words[words.len().saturating_sub(left)..];
        let who = if entry.speaker == Role::User { own } else { "Agent" };
        let cut = if kept.len() < words.len() { "... " } else { "" };
        lines.push(format!("{who}: {cut}{}", kept.join(" ")));
        left -= kept.len();
    }
    lines.reverse();
    lines.join(" / ")
}

#[cfg(test)]
mod tests {
    use ringer_model::transcript::{EntrySource, TranscriptEntry};
    use serde_json::json;

    use super::*;

    fn transcript(lines: &[(Role, &str)]) -> Transcript {
        let entry = |(speaker, utterance): &(Role, &str)| {
            TranscriptEntry::of(*speaker, 0, 0, (*utterance).to_owned(), EntrySource::Recognized)
        };
        let entries = lines.iter().map(entry).collect();
        Transcript { simulation_result_id: 1, language: "en".into(), entries }
    }

    #[test]
    fn the_end_of_a_conversation_is_remembered() {
        let short = [(Role::Agent, "Front desk."), (Role::User, " "), (Role::User, "A table, please.")];
        assert_eq!(last_words(&transcript(&short), Whose::Caller), "Agent: Front desk. / You: A table, please.");
        assert_eq!(last_words(&transcript(&[]), Whose::Caller), "");
        let long = "word ".repeat(200);
        let lines = [(Role::User, "Lost."), (Role::Agent, &long), (Role::User, "The end.")];
        let words = last_words(&transcript(&lines), Whose::Caller);
        assert!(words.starts_with("... / Agent: ... word word") && words.ends_with("/ You: The end."), "{words}");
        assert_eq!(words.matches("word").count(), 148, "{words}");
    }

    #[test]
    fn a_step_is_told_by_who_made_contact() {
        let step = |more: serde_json::Value| -> JourneyStep {
            let mut body = json!({ "step": 1, "intent": "Ask." });
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            serde_json::from_value(body).expect("fits")
        };
        use Whose::{Caller, Judge};
        for (whose, more, status, words, expect) in [
            (
                Judge,
                json!({ "modality": "chat" }),
                ResultStatus::Completed,
                Some("Caller: Hi."),
                "The caller contacted the agent in a chat; the caller wanted: Ask. What was said: Caller: Hi.",
            ),
            (
                Caller,
                json!({}),
                ResultStatus::Completed,
                Some("You: Hi."),
                "You contacted the agent on the telephone; you wanted: Ask. What was said: You: Hi.",
            ),
            (
                Caller,
                json!({ "direction": "outbound", "modality": "sms" }),
                ResultStatus::NoAnswer,
                None,
                "The agent contacted you by text message; you wanted: Ask. Nobody was reached.",
            ),
            (
                Caller,
                json!({}),
                ResultStatus::Cancelled,
                Some(""),
                "You contacted the agent on the telephone; you wanted: Ask. It did not take place.",
            ),
        ] {
            assert_eq!(memory(whose, &step(more), status, words), expect);
        }
    }
}
