//! Reaction of the agent to sounds of the Digital Human that ask for none: whether it goes on speaking. Whether it
//! comes back to them in words is not measured here.

use serde::Serialize;

use super::turn::{HeardSpeech, ends_sentence};
use super::{Conversation, Metrics, Span, ratio};
use crate::call::{ProbeKind, Side};
use crate::frame::{PER_MS, Sample};

/// Times that tell which probes count, and when the agent let itself be stopped. Milliseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeTimes {
    /// Least speech of the agent before a probe that counts.
    pub spoken_ms: u32,
    /// Length of the agent's silence that shows that it was stopped.
    pub silence_ms: u32,
    /// Time after a probe's onset after which that silence begins ...
    pub from_ms: u32,
    /// ... and at which it begins at the latest.
    pub to_ms: u32,
}

impl Default for ProbeTimes {
    fn default() -> ProbeTimes {
        ProbeTimes { spoken_ms: 1000, silence_ms: 500, from_ms: 100, to_ms: 1500 }
    }
}

/// Longest time from the end of the agent's last word to the silence after it.
const WORD_BEFORE: Sample = 500 * PER_MS;

/// A sound of the Digital Human that asks for no reaction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Kind of the sound.
    pub kind: ProbeKind,
    /// Time of the sound.
    pub span: Span,
}

/// Computes the selectivities: the share of the probes of a kind at which the agent went on speaking.
pub(super) fn measure(metrics: &mut Metrics, conversation: &Conversation, heard: &HeardSpeech) {
    let selectivity = |kind| selectivity(kind, conversation, heard);
    metrics.backchannel_selectivity = selectivity(ProbeKind::Backchannel);
    metrics.vocal_tic_selectivity = selectivity(ProbeKind::VocalTic);
    metrics.non_directed_selectivity = selectivity(ProbeKind::NonDirected);
    metrics.no_punctuation = !tells_sentences(conversation);
}

/// A probe that counts, with the reaction of the agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Time of the probe.
    pub span: Span,
    /// True when the agent went on speaking.
    pub spoken_through: bool,
}

/// Returns the non-directed probes that count, in the order of the conversation's. Whether the agent came back to their
/// words is not known here.
pub fn asides(conversation: &Conversation) -> Vec<Counted> {
    count_probes(ProbeKind::NonDirected, conversation, &HeardSpeech::of(conversation))
}

fn selectivity(kind: ProbeKind, conversation: &Conversation, heard: &HeardSpeech) -> Option<f64> {
    let counted = count_probes(kind, conversation, heard);
    let passed = counted.iter().filter(|probe| probe.spoken_through).count();
    ratio(passed as f64, counted.len() as f64)
}

fn count_probes(kind: ProbeKind, conversation: &Conversation, heard: &HeardSpeech) -> Vec<Counted> {
    let mut counted = Vec::new();
    for probe in conversation.probes.iter().filter(|probe| probe.kind == kind) {
        let onset = probe.span.from;
        let speaking = heard.agent.iter().any(|span| span.holds(onset));
        let turn = heard.turns_of(Side::Agent).find(|turn| turn.span().holds(onset));
        if !speaking || turn.is_none_or(|turn| turn.from() + ms(conversation.probe_times.spoken_ms) > onset) {
            continue;
        }
        let silence = silence_after(onset, conversation, heard);
        if !silence.is_some_and(|silence| natural_end(silence, conversation, heard)) {
            counted.push(Counted { span: probe.span, spoken_through: silence.is_none() });
        }
    }
    counted
}

/// Returns the first silence of the agent, long enough, that begins in the window after a probe. After the call's end
/// the agent is silent.
fn silence_after(onset: Sample, conversation: &Conversation, heard: &HeardSpeech) -> Option<Sample> {
    let ProbeTimes { silence_ms, from_ms, to_ms, .. } = conversation.probe_times;
    let (first, last) = (onset + ms(from_ms), onset + ms(to_ms));
    let next = |at: usize| heard.agent.get(at + 1).map_or(conversation.duration, |span| span.from);
    let silences = heard.agent.iter().enumerate().filter(|(at, span)| next(*at) - span.to >= ms(silence_ms));
    silences.map(|(_, span)| span.to).find(|to| *to > first && *to <= last)
}

fn ms(ms: u32) -> Sample {
    Sample::from(ms) * PER_MS
}

/// True when the agent's words are known with their times, and written with punctuation.
fn tells_sentences(conversation: &Conversation) -> bool {
    let words = &conversation.words;
    (0..words.len()).any(|at| ends_sentence(words, at))
}

/// True when the word with which the agent fell silent ends a sentence, or its turn where no word tells of sentences.
fn natural_end(silence: Sample, conversation: &Conversation, heard: &HeardSpeech) -> bool {
    if !tells_sentences(conversation) {
        return heard.turns_of(Side::Agent).any(|turn| turn.to() == silence);
    }
    let begins = |word: &super::Word| (word.span.from + word.span.to) / 2 <= silence;
    let words = &conversation.words;
    let last = words.iter().rposition(begins);
    last.is_some_and(|at| words[at].span.to >= silence - WORD_BEFORE && ends_sentence(words, at))
}
