//! Digital Humans that replay a transcript.

use ringer_model::Object;
use ringer_model::digital_human::{DigitalHumanSpec, Role, TranscriptLine};
use ringer_model::generate::ReplayMode;
use serde_json::{Value, json};

use crate::library::human_rules::transcripts::customer_lines;

/// Lays a transcript over a Digital Human.
pub(crate) fn lay(human: &mut DigitalHumanSpec, text: &str, lines: Vec<TranscriptLine>, mode: ReplayMode) {
    let said = customer_lines(&lines);
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

/// Returns the playback step of one line: the agent's turns make space for the caller's.
fn step(line: &TranscriptLine) -> Object {
    let (speaker, key) = if line.role == Role::User { ("user", "exact_message") } else { ("agent", "criteria") };
    let members: [(&str, Value); 3] =
        [("speaker", json!(speaker)), ("type", json!("message")), (key, json!(line.utterance))];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
