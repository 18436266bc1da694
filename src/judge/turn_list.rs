//! The turns of both sides as they are measured: where each begins and ends, its words, its latency and its overlaps.

use ringer_media::call::{EventKind, Side, TimelineEntry};
use ringer_media::frame::{PER_MS, Sample, whole_ms};
use ringer_media::measure::{self as media, Interrupted, Span, SpokenTurn};
use ringer_model::digital_human::Role;
use ringer_model::transcript::{TextMissing, TranscriptEntry, Word};
use schemars::JsonSchema;
use serde::Serialize;

use super::measures::{Facts, conversation};
use super::{messages, reading};

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TurnItem {
    /// Number of the turn, from 0.
    pub index: i64,
    /// Speaker: AGENT or USER (the Digital Human).
    pub speaker: Role,
    /// First sample of the turn.
    pub from_sample: i64,
    /// Sample after the last one.
    pub to_sample: i64,
    /// Words of the turn; empty when they are not known.
    pub text: String,
    /// Reason why words of it are not known.
    pub text_missing: Option<TextMissing>,
    /// True when the other side cut it off.
    pub interrupted: bool,
    /// Words with their times.
    pub words: Vec<Word>,
    /// Milliseconds from the end of the other side's turn to this one; null when there was none, or it was not over.
    pub latency_ms: Option<f64>,
    /// Sample from which latency_ms is measured: the end of the other side's turn.
    pub latency_from_sample: Option<i64>,
    /// Number of the turn that it is measured from.
    pub latency_from_turn: Option<i64>,
    /// Milliseconds in which both sides speak, in and around this turn.
    pub overlap_ms: f64,
    /// Overlaps that begin in this turn.
    pub overlaps: Vec<TurnOverlap>,
}

/// A stretch in which both sides speak.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TurnOverlap {
    /// Side that began while the other spoke: AGENT or USER.
    pub by: Role,
    /// Sample at which it began.
    pub at_sample: i64,
    /// Length of the overlap in milliseconds.
    pub overlap_ms: i64,
    /// Milliseconds from the beginning to the silence of the other side; null when it went on.
    pub stop_ms: Option<i64>,
    /// True for an interruption: those by AGENT are as many as `agent_interruption_count`, those by USER as many as
    /// `customer_interruption_count`.
    pub counted: bool,
    /// Reason why it is not counted; null when it is.
    pub why_not: Option<NotCounted>,
}

/// Reason why an overlap is not counted as an interruption.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotCounted {
    /// It was shorter than 200 ms, and stopped nobody.
    Short,
    /// It belongs to the interruption before it.
    Continued,
    /// It began with the other side's speech, or was a sound that asks for no floor.
    Other,
}

/// Returns the turns of a conversation; the words of each are taken from `entries`. Of a written one each message is a
/// turn.
pub fn turn_list(moments: &[TimelineEntry], facts: &Facts, entries: &[TranscriptEntry]) -> Vec<TurnItem> {
    if messages::are_written(moments) {
        return entries.iter().zip(0..).map(|(entry, index)| written_turn(entry, index)).collect();
    }
    let turns = media::turns(&conversation(moments, facts));
    let measured: Vec<(&SpokenTurn, &SpokenTurn)> =
        [Side::Agent, Side::Dh].into_iter().flat_map(|side| media::turns_after(&turns, side)).collect();
    let cuts = overlaps(moments, facts);
    let mut list: Vec<TurnItem> = turns.iter().zip(0..).map(|(turn, index)| item(turn, index)).collect();
    for (at, turn) in turns.iter().enumerate() {
        let asked = measured.iter().find(|(own, _)| std::ptr::eq(*own, turn)).map(|(_, asked)| *asked);
        let item = &mut list[at];
        item.latency_ms = asked.map(|asked| ms(turn.from() - asked.to()));
        item.latency_from_sample = asked.map(SpokenTurn::to);
        item.latency_from_turn =
            asked.and_then(|asked| turns.iter().position(|one| std::ptr::eq(one, asked))).map(|at| at as i64);
        let others = turns.iter().filter(|other| other.side != turn.side);
        item.overlap_ms = ms(others.map(|other| turn.overlap(other)).sum());
        item.overlaps = cuts.iter().filter(|cut| turn.span().holds(cut.at_sample)).cloned().collect();
        item.overlaps.retain(|cut| cut.by == item.speaker);
    }
    for entry in entries {
        give_words(&mut list, entry);
    }
    let interrupted: Vec<Sample> =
        reading::utterances(moments).filter(|end| end.interrupted).map(|end| end.at).collect();
    for item in list.iter_mut().filter(|item| item.speaker == Role::User) {
        item.interrupted |= interrupted.iter().any(|at| (item.from_sample..=item.to_sample).contains(at));
    }
    list
}

/// Puts the words of a part of the transcript into the turn of its speaker that shares most with it, else into the
/// nearest one. A word that was broken off at once has no turn of its own.
fn give_words(list: &mut [TurnItem], entry: &TranscriptEntry) {
    let (from, to) = (entry.start_offset_ms.saturating_mul(PER_MS), entry.end_offset_ms.saturating_mul(PER_MS));
    let part = Span { from, to: to.max(from + 1) };
    let shared = |item: &TurnItem| part.overlap(Span { from: item.from_sample, to: item.to_sample });
    let gap = |item: &TurnItem| (item.from_sample - part.to).max(part.from - item.to_sample);
    let own = list.iter_mut().filter(|item| item.speaker == entry.speaker);
    let Some(item) = own.max_by_key(|item| (shared(item), -gap(item))) else { return };
    if !item.text.is_empty() && !entry.utterance.is_empty() {
        item.text.push(' ');
    }
    item.text.push_str(entry.utterance.trim());
    item.words.extend(entry.words.iter().cloned());
    item.text_missing = item.text_missing.or(entry.text_missing);
    item.interrupted |= entry.interrupted;
}

fn item(turn: &SpokenTurn, index: i64) -> TurnItem {
    TurnItem {
        index,
        speaker: role(turn.side),
        from_sample: turn.from(),
        to_sample: turn.to(),
        text: String::new(),
        text_missing: None,
        interrupted: false,
        words: Vec::new(),
        latency_ms: None,
        latency_from_sample: None,
        latency_from_turn: None,
        overlap_ms: 0.0,
        overlaps: Vec::new(),
    }
}

fn written_turn(entry: &TranscriptEntry, index: i64) -> TurnItem {
    let at = entry.start_offset_ms.saturating_mul(PER_MS);
    TurnItem {
        index,
        speaker: entry.speaker,
        from_sample: at,
        to_sample: entry.end_offset_ms.saturating_mul(PER_MS).max(at),
        text: entry.utterance.clone(),
        text_missing: entry.text_missing,
        interrupted: entry.interrupted,
        words: entry.words.clone(),
        latency_ms: None,
        latency_from_sample: None,
        latency_from_turn: None,
        overlap_ms: 0.0,
        overlaps: Vec::new(),
    }
}

/// Length below which an overlap that stops nobody is no interruption, in milliseconds.
const SHORT_MS: i64 = 200;
/// Largest difference of the positions at which the call and the measures see one onset.
const SEAM: Sample = 60 * PER_MS;

/// Returns every stretch in which both sides speak, by onset: those that the call has told, and interruptions that it
/// has not. As many of each side are counted as its metric tells.
pub fn overlaps(moments: &[TimelineEntry], facts: &Facts) -> Vec<TurnOverlap> {
    if messages::are_written(moments) {
        return Vec::new();
    }
    let counted = media::interruptions(&conversation(moments, facts));
    let mut list: Vec<TurnOverlap> = moments.iter().filter_map(told_overlap).collect();
    list.sort_by_key(|one| one.at_sample);
    for interrupted in &counted {
        let (by, words) = (role(interrupted.by), interrupted.words);
        let is_it = |one: &&mut TurnOverlap| {
            one.by == by && !one.counted && (words.from - SEAM..words.to).contains(&one.at_sample)
        };
        match list.iter_mut().find(is_it) {
            Some(one) => (one.counted, one.why_not) = (true, None),
            None => list.push(TurnOverlap {
                by,
                at_sample: words.from,
                overlap_ms: whole_ms(interrupted.overlap),
                stop_ms: interrupted.stop.map(whole_ms),
                counted: true,
                why_not: None,
            }),
        }
    }
    for one in list.iter_mut().filter(|one| !one.counted) {
        let goes_on = |other: &Interrupted| role(other.by) == one.by && other.words.holds(one.at_sample);
        let is_short = one.overlap_ms < SHORT_MS && (one.stop_ms.is_none() || one.by == Role::User);
        one.why_not = Some(match is_short {
            true => NotCounted::Short,
            false if counted.iter().any(goes_on) => NotCounted::Continued,
            false => NotCounted::Other,
        });
    }
    list.sort_by_key(|one| one.at_sample);
    list
}

fn told_overlap(moment: &TimelineEntry) -> Option<TurnOverlap> {
    let EventKind::BargeIn { by, overlap_ms, stop_ms } = moment.reading() else { return None };
    let (overlap_ms, stop_ms) = (i64::from(*overlap_ms), stop_ms.map(i64::from));
    let by = role(*by);
    Some(TurnOverlap { by, at_sample: moment.sample, overlap_ms, stop_ms, counted: false, why_not: None })
}

fn role(side: Side) -> Role {
    match side {
        Side::Dh => Role::User,
        _ => Role::Agent,
    }
}

fn ms(samples: Sample) -> f64 {
    (samples as f64 / PER_MS as f64 * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{measure, moments, transcript};

    #[test]
    fn turns_are_those_that_are_measured() {
        let timeline = include_str!("../../fixtures/timelines/call.json");
        let timeline: Value = serde_json::from_str(timeline).expect("a list");
        let (moments, facts) = (moments(&timeline), Facts { interface: "PHONE", ..Facts::default() });
        let entries = transcript(1, "en", &moments, &[]).entries;
        let list = turn_list(&moments, &facts, &entries);
        let measured = measure(&moments, &facts);
        let of_agent = |item: &&TurnItem| item.speaker == Role::Agent;
        let latency = list.iter().filter(of_agent).filter_map(|item| item.latency_ms);
        let latency: Vec<f64> = latency.map(|ms| ms.round()).collect();
        let expect: Vec<f64> = measured.latency.iter().map(|seconds| (seconds * 1000.0).round()).collect();
        assert!(!expect.is_empty());
        assert_eq!(latency, expect);
        for item in list.iter().filter(|item| item.latency_ms.is_some()) {
            let from = item.latency_from_sample.expect("both are there");
            assert_eq!(item.latency_ms, Some(ms(item.from_sample - from)), "{item:?}");
            let asked = &list[item.latency_from_turn.expect("a turn") as usize];
            assert_eq!((asked.to_sample, asked.speaker == item.speaker), (from, false));
        }
        let words: Vec<&str> = list.iter().flat_map(|item| item.text.split_whitespace()).collect();
        let all: Vec<&str> = entries.iter().flat_map(|entry| entry.utterance.split_whitespace()).collect();
        let sorted = |mut words: Vec<&str>| {
            words.sort_unstable();
            words.join(" ")
        };
        assert_eq!(sorted(words), sorted(all), "no word is lost or told twice");
    }

    #[test]
    fn as_many_overlaps_are_counted_as_the_metrics_tell() {
        let mut events = Vec::new();
        let mut add = |ms: i64, event: &str, side: &str, data: Value| {
            events.push(json!({"seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data}));
        };
        let said = json!({"utterance_id": 1, "text": "words"});
        for (side, from, to) in [
            ("agent", 1000, 5000),
            ("dh", 3000, 3400),
            ("dh", 3800, 4500),
            ("dh", 6000, 8000),
            ("agent", 7000, 7120),
            ("dh", 9000, 10_000),
            ("agent", 9500, 12_000),
            ("dh", 13_000, 15_000),
            ("agent", 14_000, 16_000),
        ] {
            add(from, "speech.started", side, said.clone());
            add(to, "speech.ended", side, said.clone());
        }
        for (ms, by, overlap_ms, stop_ms) in [
            (3000, "dh", 400, None),
            (3800, "dh", 700, None),
            (7000, "agent", 120, None),
            (9500, "agent", 500, Some(500)),
        ] {
            add(ms, "barge_in", by, json!({"by": by, "overlap_ms": overlap_ms, "stop_ms": stop_ms}));
        }
        add(17_000, "call.ended", "engine", json!({}));
        events.sort_by_key(|event| event["sample"].as_i64());
        let (moments, facts) = (moments(&json!(events)), Facts { interface: "PHONE", ..Facts::default() });
        let found = overlaps(&moments, &facts);
        let told: Vec<(i64, Role, bool, Option<NotCounted>)> =
            found.iter().map(|one| (one.at_sample / 16, one.by, one.counted, one.why_not)).collect();
        let expect = [
            (3000, Role::User, true, None),
            (3800, Role::User, false, Some(NotCounted::Continued)),
            (7000, Role::Agent, false, Some(NotCounted::Short)),
            (9500, Role::Agent, true, None),
            (14_000, Role::Agent, true, None),
        ];
        assert_eq!(told, expect);
        assert_eq!((found[4].overlap_ms, found[4].stop_ms), (1000, Some(1000)), "the call had not told of it");
        let metrics = measure(&moments, &facts).metrics;
        for (name, by) in [("agent_interruption_count", Role::Agent), ("customer_interruption_count", Role::User)] {
            let count = found.iter().filter(|one| one.counted && one.by == by).count();
            let metric = metrics.iter().find(|metric| metric.name == name).expect("it is measured");
            assert_eq!(metric.value, json!(count), "{name}");
        }
        let turns = turn_list(&moments, &facts, &[]);
        let of_turns = turns.iter().flat_map(|turn| &turn.overlaps).filter(|one| one.counted).count();
        assert_eq!(of_turns, 3, "each lies in a turn: {turns:?}");
    }
}
