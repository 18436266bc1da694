//! Turns of a call whose words are not known, or were not when they were answered. Whoever judges words is told of
//! them: what was not heard is not what was not said.

use ringer_media::call::{Kind, TimelineEntry};
use ringer_model::digital_human::Role;
use ringer_model::transcript::{NOT_UNDERSTOOD, TranscriptEntry};

use super::reading::{self, AgentTurn, Said};

/// Samples in a millisecond.
const PER_MS: i64 = 16;

/// Kind of words that a turn lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// All of its words.
    Words,
    /// Some of its words.
    Rest,
    /// All words are known now, but came after the other side had answered.
    Time,
}

/// A turn that was not heard, not wholly or not in time. Milliseconds from connect.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    /// Side whose turn it is.
    pub speaker: Role,
    /// Start of the turn, in milliseconds.
    pub from_ms: i64,
    /// End of the turn, in milliseconds.
    pub to_ms: i64,
    /// Words that the turn lacks.
    pub lack: Lack,
}

impl Unheard {
    /// True when words of it are not known.
    pub fn lacks_words(&self) -> bool {
        self.lack != Lack::Time
    }

    /// Returns the text that stands in place of the missing words where a conversation is shown.
    pub(super) fn marker(&self) -> &'static str {
        match self.lack {
            Lack::Words | Lack::Rest => NOT_UNDERSTOOD,
            Lack::Time => "[this turn was answered before its words were known]",
        }
    }

    /// Returns the position of the marker in milliseconds, for sorting it among entries in order of start.
    pub(super) fn marked_at_ms(&self) -> i64 {
        if self.lack == Lack::Words { self.from_ms } else { self.to_ms }
    }
}

/// Returns the turns of a timeline that were not heard, in order of start.
pub fn unheard(moments: &[TimelineEntry]) -> Vec<Unheard> {
    let agents = reading::turns(moments).filter_map(of_agent);
    let own = reading::utterances(moments).filter_map(|end| recorded(&end, moments));
    let mut turns: Vec<Unheard> = agents.chain(own).collect();
    turns.sort_by_key(|turn| turn.from_ms);
    turns
}

/// Returns `unheard` with those turns of `entries` that lack words and are not among them, as in a transcript without a
/// timeline. In order of start.
pub(super) fn with_entries(unheard: &[Unheard], entries: &[TranscriptEntry]) -> Vec<Unheard> {
    let mut all = unheard.to_vec();
    for entry in entries.iter().filter(|entry| entry.text_missing.is_some()) {
        let lack = if entry.has_words() { Lack::Rest } else { Lack::Words };
        let turn = Unheard { speaker: entry.speaker, from_ms: entry.start_offset_ms, to_ms: entry.end_offset_ms, lack };
        let is_same = |known: &Unheard| {
            known.speaker == turn.speaker
                && known.lacks_words()
                && known.from_ms <= turn.to_ms
                && turn.from_ms <= known.to_ms
        };
        if !unheard.iter().any(is_same) {
            all.push(turn);
        }
    }
    all.sort_by_key(|turn| turn.from_ms);
    all
}

/// Returns the number of turns that lack words, for display; `None` when all words are known.
pub(super) fn told(turns: &[Unheard]) -> Option<String> {
    match turns.iter().filter(|turn| turn.lacks_words()).count() {
        0 => None,
        1 => Some("words of 1 turn are not known".to_owned()),
        count => Some(format!("words of {count} turns are not known")),
    }
}

fn of_agent(turn: AgentTurn<'_>) -> Option<Unheard> {
    let lack = match (turn.lacks_words(), turn.text.is_empty()) {
        (true, true) => Lack::Words,
        (true, false) => Lack::Rest,
        (false, _) if turn.late => Lack::Time,
        (false, _) => return None,
    };
    let (from_ms, to_ms) = (turn.from / PER_MS, turn.end.max(turn.from) / PER_MS);
    Some(Unheard { speaker: Role::Agent, from_ms, to_ms, lack })
}

/// Returns a recording that the Digital Human answered with: nobody has written down what it says.
pub(super) fn recorded(end: &Said<'_>, moments: &[TimelineEntry]) -> Option<Unheard> {
    if end.kind != Kind::Scripted || !end.text.is_empty() {
        return None;
    }
    // Words that were cut off before the first was said were known before.
    let start = end.beginning(moments).filter(|start| start.text.is_empty())?;
    let (from_ms, to_ms) = (start.at / PER_MS, end.at.max(start.at) / PER_MS);
    Some(Unheard { speaker: Role::User, from_ms, to_ms, lack: Lack::Words })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::moments;

    #[test]
    fn a_turn_that_the_transcript_tells_of_is_counted_once() {
        use ringer_model::transcript::{EntrySource, TextMissing};
        let entry = |from_ms: i64, words: &str, text_missing| TranscriptEntry {
            text_missing,
            ..TranscriptEntry::of(Role::Agent, from_ms, from_ms + 900, words.into(), EntrySource::Recognized)
        };
        let turn = |from_ms: i64, lack| Unheard { speaker: Role::Agent, from_ms, to_ms: from_ms + 900, lack };
        let unclear = Some(TextMissing::Unclear);
        let entries =
            [entry(0, "Hi.", None), entry(2000, "", unclear), entry(4000, "Yes", unclear), entry(9000, "", None)];
        let both = vec![turn(2000, Lack::Words), turn(4000, Lack::Rest)];
        assert_eq!(with_entries(&[], &entries), both);
        assert_eq!(with_entries(&both, &entries), both);
        // Words that came too late are known; those that were never written down are not.
        let late = [turn(2000, Lack::Time)];
        assert_eq!(with_entries(&late, &entries).len(), 3);
        assert_eq!(with_entries(&[Unheard { speaker: Role::User, ..both[0] }], &[]).len(), 1);
    }

    #[test]
    fn turns_without_words_are_found() {
        let turn = |from: i64, to: i64, more: Value| {
            let mut data = json!({ "text": "", "from_sample": from * 16, "end_sample": to * 16 });
            data.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!([{ "seq": to, "sample": (to + 300) * 16, "event": "turn.ended", "side": "agent", "data": data }])
        };
        let said = |kind: &str, planned: &str, spoken: &str| {
            let data = |text: &str| json!({ "utterance_id": 3, "kind": kind, "text": text });
            json!([
                { "seq": 1, "sample": 16_000, "event": "speech.started", "side": "dh", "data": data(planned) },
                { "seq": 2, "sample": 32_000, "event": "speech.ended", "side": "dh", "data": data(spoken) },
            ])
        };
        let agent = |lack| vec![Unheard { speaker: Role::Agent, from_ms: 500, to_ms: 900, lack }];
        let own = vec![Unheard { speaker: Role::User, from_ms: 1000, to_ms: 2000, lack: Lack::Words }];
        for (timeline, expect) in [
            (turn(500, 900, json!({ "text_missing": "recognizer_late" })), agent(Lack::Words)),
            (turn(500, 900, json!({ "text_missing": "recognizer_busy", "text": "Yes" })), agent(Lack::Rest)),
            (turn(500, 900, json!({ "text_missing": "x", "text": "Yes", "text_late": true })), agent(Lack::Rest)),
            (turn(500, 900, json!({ "text_late": true, "text": "Yes" })), agent(Lack::Time)),
            (turn(500, 900, json!({ "text": "Yes" })), vec![]),
            // Keys alone are no words.
            (turn(500, 900, json!({ "digits": "1" })), vec![]),
            (said("scripted", "", ""), own),
            (said("scripted", "Hello.", ""), vec![]),
            (said("scripted", "Hello.", "Hello."), vec![]),
            (said("turn", "", ""), vec![]),
            (said("probe", "", ""), vec![]),
        ] {
            assert_eq!(unheard(&moments(&timeline)), expect, "{timeline}");
        }
    }
}
