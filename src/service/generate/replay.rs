//! Transcripts as lines, and the Digital Humans that replay them.

use serde_json::{Value, json};

use crate::model::Object;
use crate::model::digital_human::{DigitalHumanSpec, Role, TranscriptLine};
use crate::model::generate::ReplayMode;
use crate::model::transcript::NOT_UNDERSTOOD;

/// Returns the lines of a text in which every line is `ROLE: text`; `None` for other forms. A line without a role goes
/// on with the one before it. Speech that a transcript shows as not understood is nothing that can be said.
pub fn lines(text: &str) -> Option<Vec<TranscriptLine>> {
    let mut lines: Vec<TranscriptLine> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_once(':').and_then(|(name, said)| Some((role(name)?, said.trim()))) {
            Some((role, said)) => lines.push(TranscriptLine { role, utterance: said.to_owned() }),
            None => {
                let last = lines.last_mut()?;
                last.utterance = format!("{} {line}", last.utterance).trim().to_owned();
            }
        }
    }
    for line in lines.iter_mut().filter(|line| line.utterance.contains(NOT_UNDERSTOOD)) {
        line.utterance = line.utterance.replace(NOT_UNDERSTOOD, "").trim().to_owned();
    }
    lines.retain(|line| !line.utterance.is_empty());
    lines.iter().any(|line| line.role == Role::User).then_some(lines)
}

fn role(name: &str) -> Option<Role> {
    match name.trim().trim_matches(['*', '[', ']']).to_lowercase().as_str() {
        "user" | "customer" | "caller" => Some(Role::User),
        "agent" | "assistant" | "bot" => Some(Role::Agent),
        _ => None,
    }
}

/// Returns the caller's utterances, in order.
pub fn own(lines: &[TranscriptLine]) -> Vec<&str> {
    lines.iter().filter(|line| line.role == Role::User).map(|line| line.utterance.as_str()).collect()
}

/// Lays a transcript over a Digital Human.
pub fn lay(human: &mut DigitalHumanSpec, text: &str, lines: Vec<TranscriptLine>, mode: ReplayMode) {
    let said = own(&lines);
    let first = said.first().copied().unwrap_or_default();
    human.success_criteria = format!("The agent resolves: {first}");
    match mode {
        ReplayMode::Strict => {
            human.intent = said.join(" ");
            human.enriched_playback = Some(lines.iter().map(step).collect());
        }
        ReplayMode::Smart => {
            human.intent = said.join(" ");
            human.role_description = Some(
                "You repeat an earlier call: you say what it says in its order, but you may rephrase it, skip what was \
                 answered already, and answer a question that did not come up then."
                    .into(),
            );
        }
        ReplayMode::Persona => {
            human.intent = first.to_owned();
            human.role_description = Some(format!("A caller whose request began with the words \"{first}\""));
            return;
        }
    }
    human.original_transcript = Some(text.to_owned());
    human.formatted_transcript = Some(lines);
}

/// Returns the playback step of one line: the agent's turns make room for the caller's.
fn step(line: &TranscriptLine) -> Object {
    let (speaker, key) = if line.role == Role::User { ("user", "exact_message") } else { ("agent", "criteria") };
    let members: [(&str, Value); 3] =
        [("speaker", json!(speaker)), ("type", json!("message")), (key, json!(line.utterance))];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_role_or_go_on() {
        for (text, expect) in [
            (
                "Agent: Hi.\nCUSTOMER: I need help\nwith my bill.\n\nbot : Sure.",
                Some("AHi.|UI need help with my bill.|ASure."),
            ),
            ("caller: It is 10:30.", Some("UIt is 10:30.")),
            ("User: Hi.\nAgent: [speech not understood]\nUser: Yes, [speech not understood]", Some("UHi.|UYes,")),
            ("User: [speech not understood]", None),
            ("**User**: x", Some("Ux")),
            ("Hello there.\nUser: x", None),
            ("agent: only me", None),
            ("", None),
        ] {
            let short = |line: &TranscriptLine| {
                format!("{}{}", if line.role == Role::User { "U" } else { "A" }, line.utterance)
            };
            let read = lines(text).map(|lines| lines.iter().map(short).collect::<Vec<_>>().join("|"));
            assert_eq!(read.as_deref(), expect, "{text}");
        }
    }
}
