//! Transcripts as lines with roles.

use ringer_model::digital_human::{Role, TranscriptLine};
use ringer_model::transcript::NOT_UNDERSTOOD;

/// Returns the lines of a text in which every line is `ROLE: text`; `None` for other forms. A line without a role goes
/// on with the one before it. Speech that a transcript shows as not understood is nothing that can be said.
pub(crate) fn transcript_lines(text: &str) -> Option<Vec<TranscriptLine>> {
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
pub(crate) fn customer_lines(lines: &[TranscriptLine]) -> Vec<&str> {
    lines.iter().filter(|line| line.role == Role::User).map(|line| line.utterance.as_str()).collect()
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
            let read = transcript_lines(text).map(|lines| lines.iter().map(short).collect::<Vec<_>>().join("|"));
            assert_eq!(read.as_deref(), expect, "{text}");
        }
    }
}
