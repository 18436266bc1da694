//! The part of a conversation that a metric looks at.

use ringer_model::custom_metric::EvalSegment;
use ringer_model::digital_human::Role;
use ringer_model::result::PostedToolCall;
use ringer_model::transcript::TranscriptEntry;

use super::Material;
use crate::unheard::{Lack, Unheard};

/// A part of a conversation, with what the whole is judged by.
pub(super) struct Part<'m> {
    /// Transcript entries that have words.
    pub entries: Vec<&'m TranscriptEntry>,
    pub unheard: Vec<Unheard>,
    pub calls: Vec<&'m PostedToolCall>,
    pub whole: Material<'m>,
    /// Start and end in milliseconds; the ends of the range are those of the conversation.
    pub span_ms: (i64, i64),
}

impl Part<'_> {
    /// True if the part is the whole conversation.
    pub(crate) fn is_whole(&self) -> bool {
        self.span_ms == (i64::MIN, i64::MAX)
    }
}

/// Agent turns of an opening and of a closing.
const TURNS: usize = 2;

/// Returns the part that `segment` names. A conversation with fewer agent turns than that is taken whole.
pub(super) fn part(segment: EvalSegment, whole: Material<'_>) -> Part<'_> {
    let unheard = whole.all_unheard();
    let known = || whole.entries.iter().filter(|entry| entry.has_words());
    let turns = agent_turns(&spoken(known(), &unheard));
    let (from, to) = match segment {
        EvalSegment::Opening if turns.len() >= TURNS => (i64::MIN, turns[TURNS - 1].1),
        EvalSegment::Closing if turns.len() >= TURNS => (turns[turns.len() - TURNS].0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    };
    let side = match segment {
        EvalSegment::Agent => Some(Role::Agent),
        EvalSegment::Caller => Some(Role::User),
        _ => None,
    };
    // A turn that begins with the last word of an opening belongs to the rest.
    let inside = |at: i64| at >= from && (at < to || to == i64::MAX);
    let entry =
        |entry: &&TranscriptEntry| inside(entry.start_offset_ms) && side.is_none_or(|side| entry.speaker == side);
    let turn = |turn: &&Unheard| inside(turn.from_ms) && side.is_none_or(|side| turn.speaker == side);
    // Tools are called by the agent.
    let call = |call: &&PostedToolCall| inside(call.start_offset_ms) && side != Some(Role::User);
    Part {
        entries: known().filter(entry).collect(),
        unheard: unheard.iter().filter(turn).copied().collect(),
        calls: whole.calls.iter().filter(call).collect(),
        whole,
        span_ms: (from, to),
    }
}

/// Speaker, start and end of speech, in milliseconds.
pub(super) type Spoken = (Role, i64, i64);

/// Returns everything that is said, with words that are known or without, in order of start.
pub(super) fn spoken<'e>(entries: impl IntoIterator<Item = &'e TranscriptEntry>, unheard: &[Unheard]) -> Vec<Spoken> {
    let known = entries.into_iter().map(|entry| (entry.speaker, entry.start_offset_ms, entry.end_offset_ms));
    // Other turns have entries.
    let lost = unheard.iter().filter(|turn| turn.lack == Lack::Words);
    let lost = lost.map(|turn| (turn.speaker, turn.from_ms, turn.to_ms));
    let mut all: Vec<Spoken> = known.chain(lost).collect();
    all.sort_by_key(|(_, from, _)| *from);
    all
}

/// Returns the start and end of each turn of the agent, in milliseconds. A message, which has no length, lies within
/// its turn.
pub(super) fn agent_turns(spoken: &[Spoken]) -> Vec<(i64, i64)> {
    let runs = spoken.chunk_by(|one, next| one.0 == next.0);
    let agents = runs.filter(|run| run[0].0 == Role::Agent);
    agents
        .map(|run| (run[0].1, run.iter().map(|(_, from, to)| (*to).max(from.saturating_add(1))).max().unwrap_or(0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_lies_within_its_turn() {
        let at = |speaker, ms| (speaker, ms, ms);
        let all = [at(Role::Agent, 0), at(Role::User, 500), at(Role::Agent, 1750), at(Role::Agent, 3500)];
        assert_eq!(agent_turns(&all), [(0, 1), (1750, 3501)]);
    }
}
