//! The part of a conversation that a metric looks at.

use super::Material;
use crate::model::custom_metric::EvalSegment;
use crate::model::digital_human::Role;
use crate::model::result::PostedToolCall;
use crate::model::transcript::TranscriptEntry;

/// A part of a conversation, with what the whole is judged by.
pub(super) struct Part<'m> {
    pub entries: Vec<&'m TranscriptEntry>,
    pub calls: Vec<&'m PostedToolCall>,
    pub whole: Material<'m>,
    /// From when to when, in milliseconds; the ends of the range are those of the conversation.
    pub span_ms: (i64, i64),
}

/// Agent turns of an opening and of a closing.
const TURNS: usize = 2;

/// The part that `segment` names. A conversation with fewer agent turns than that is taken whole.
pub(super) fn part(segment: EvalSegment, whole: Material<'_>) -> Part<'_> {
    let turns = agent_turns(whole.entries);
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
    // What begins with the last word of an opening belongs to what follows.
    let inside = |at: i64| at >= from && (at < to || to == i64::MAX);
    let entry =
        |entry: &&TranscriptEntry| inside(entry.start_offset_ms) && side.is_none_or(|side| entry.speaker == side);
    // Tools are called by the agent.
    let call = |call: &&PostedToolCall| inside(call.start_offset_ms) && side != Some(Role::User);
    Part {
        entries: whole.entries.iter().filter(entry).collect(),
        calls: whole.calls.iter().filter(call).collect(),
        whole,
        span_ms: (from, to),
    }
}

/// Start and end of each run of agent entries, in milliseconds.
pub(super) fn agent_turns(entries: &[TranscriptEntry]) -> Vec<(i64, i64)> {
    let runs = entries.chunk_by(|one, next| one.speaker == next.speaker);
    let agents = runs.filter(|run| run[0].speaker == Role::Agent);
    agents.map(|run| (run[0].start_offset_ms, run.iter().map(|entry| entry.end_offset_ms).max().unwrap_or(0))).collect()
}
