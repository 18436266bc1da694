//! Yielding of the agent: when it fell silent at an interruption of the Digital Human, and whether it did so for the
//! caller. A turn that ended by itself says nothing; one whose end nothing explains is unknown.

use serde::Serialize;

use super::turn::{BACKCHANNEL, HeardSpeech, SpokenTurn, Words, complete_sentence, holding, near, onsets};
use super::{Conversation, Metrics, Span, mean, ratio, seconds};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};

/// Time that the agent has to have the floor for before the caller's onset. A start of both sides within it is nobody's
/// interruption.
const BOTH_START: Sample = 150 * PER_MS;

/// Least overlap of an interruption.
pub(super) const OVERLAP: Sample = 200 * PER_MS;

/// Silence of the agent after which the caller has the floor. Pauses of the caller below it are inside one
/// interruption.
const FLOOR: Sample = 1000 * PER_MS;

/// Longest pause between two sentences, after which even a short sound is more of the agent's turn.
const SENTENCE_PAUSE: Sample = 600 * PER_MS;

/// Difference from the whole turn by which a turn is shorter that was cut.
const SHORTER: Sample = 300 * PER_MS;

/// Time after a stop within which the agent's own message of it arrives.
const MESSAGE_AFTER: Sample = 500 * PER_MS;

/// Longest time from the end of the agent's last word to its stop.
const WORD_BEFORE: Sample = 500 * PER_MS;

/// Number of first words by which a turn is known again, and the least number of them elsewhere in a call.
const FIRST_WORDS: usize = 5;
const FIRST_WORDS_LEAST: usize = 3;

/// Times of the verdict on an agent that is interrupted. Milliseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct YieldTimes {
    /// Time after the onset of an interruption within which the agent's stop belongs to it.
    pub within_ms: u32,
}

impl Default for YieldTimes {
    fn default() -> YieldTimes {
        YieldTimes { within_ms: 1000 }
    }
}

/// A turn of the agent that nobody interrupted, by which the same turn is measured in another call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeTurn {
    /// Number of the turn among the agent's turns, from 0.
    pub place: usize,
    /// First words in lower case, at most 5; empty when they are not known.
    pub words: Vec<String>,
    /// Length of the turn in samples.
    pub length: Sample,
}

/// An interruption of the agent by the Digital Human.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Interruption {
    /// Onset of the caller's words.
    pub onset: Sample,
    /// End of the caller's words, over pauses inside them.
    pub until: Sample,
    /// Number of the interrupted turn among the agent's turns, from 0.
    pub place: usize,
    /// Onset of that turn.
    pub from: Sample,
    /// End of the agent's last sound before the caller had the floor.
    pub stop: Sample,
    /// True when the caller spoke, false for digits alone.
    pub is_spoken: bool,
    /// Number of samples in which both speak.
    pub overlap: Sample,
}

/// Reason for the agent's stop at an interruption.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It went on: the stop does not belong to the interruption.
    None,
    /// Its turn was cut.
    Cut,
    /// Its turn was over.
    OwnEnd,
    /// Nothing tells whether its turn was cut.
    Unknown,
}

/// Returns the interruptions of the Digital Human, in order. One with a pause in it is one.
pub(super) fn interruptions(conversation: &Conversation, heard: &HeardSpeech) -> Vec<Interruption> {
    let agents: Vec<&SpokenTurn> = heard.turns_of(Side::Agent).collect();
    let mut found: Vec<Interruption> = Vec::new();
    for (turn, other) in onsets(heard, Side::Dh, BOTH_START, |_, _| true) {
        let onset = turn.from();
        if found.last().is_some_and(|last| onset < last.until) {
            continue;
        }
        let is_spoken = holding(&heard.dh, onset).is_some();
        let until = if is_spoken { end_of_words(onset, conversation, heard) } else { turn.to() };
        let Some(stop) = end_of_sound(onset, until, heard) else { continue };
        let words = Span { from: onset, to: until };
        let shared = |own: &Span| -> Sample {
            let within = Span { from: own.from.max(onset), to: own.to.min(stop) };
            near(&heard.agent, within).iter().map(|agent| agent.overlap(within)).sum()
        };
        let overlap = match is_spoken {
            true => near(&heard.dh, words).iter().map(shared).sum(),
            false => turn.overlap(other),
        };
        let place = agents.partition_point(|agent| agent.from() < other.from());
        if overlap >= OVERLAP {
            found.push(Interruption { onset, until, place, from: other.from(), stop, is_spoken, overlap });
        }
    }
    found
}

/// Returns the end of the caller's words from `onset` on: over its pauses below a second, and those inside an
/// utterance.
fn end_of_words(onset: Sample, conversation: &Conversation, heard: &HeardSpeech) -> Sample {
    let texts = &conversation.dh_texts;
    let utterance = |at: Sample| {
        let last = texts.partition_point(|text| text.span.from <= at).checked_sub(1)?;
        (at < texts[last].span.to).then_some(last)
    };
    let first = heard.dh.partition_point(|span| span.to <= onset);
    let mut until = onset;
    for span in &heard.dh[first..] {
        let is_same = utterance(until - 1).is_some_and(|said| utterance(span.from) == Some(said));
        if until > onset && span.from - until >= FLOOR && !is_same {
            break;
        }
        until = span.to;
    }
    until
}

/// Returns the end of the agent's last sound before the caller has the floor. Its pause between two sentences is no
/// end. `None` when the agent is silent from `onset` on.
fn end_of_sound(onset: Sample, until: Sample, heard: &HeardSpeech) -> Option<Sample> {
    let mut sounds = heard.agent[heard.agent.partition_point(|span| span.to <= onset)..].iter();
    let mut stop = sounds.next()?.to;
    for sound in sounds {
        let pause = sound.from - stop;
        let goes_on = pause < SENTENCE_PAUSE || (pause < FLOOR && sound.length() >= BACKCHANNEL);
        if !goes_on || sound.from >= until {
            break;
        }
        stop = sound.to;
    }
    Some(stop)
}

impl Interruption {
    /// True when the caller still spoke where the agent stopped.
    fn is_outlasted(&self) -> bool {
        self.stop <= self.until
    }

    /// Returns the reason for the agent's stop, by the first of these that is there: its own message, the same turn in
    /// another call, its words.
    pub(super) fn reason(&self, conversation: &Conversation, words: &Words<'_>) -> Stop {
        let within = Sample::from(conversation.yield_times.within_ms) * PER_MS;
        if self.stop - self.onset > within {
            return Stop::None;
        }
        let message_span = self.onset..=self.stop + MESSAGE_AFTER;
        let is_told = conversation.cleared.iter().any(|at| message_span.contains(at));
        let by_length = || self.is_shorter(&conversation.elsewhere, words);
        match (is_told.then_some(true)).or_else(by_length).or_else(|| self.is_inside_sentence(words)) {
            Some(true) => Stop::Cut,
            Some(false) => Stop::OwnEnd,
            None => Stop::Unknown,
        }
    }

    /// True when the turn is shorter than the same turn in other calls; `None` when that was not heard.
    fn is_shorter(&self, elsewhere: &[WholeTurn], words: &Words<'_>) -> Option<bool> {
        let mut own = words.first(Span { from: self.from, to: self.stop }, FIRST_WORDS + 1);
        // The last word may be half a word.
        own.pop();
        own.truncate(FIRST_WORDS);
        let is_same = |whole: &&WholeTurn| {
            let is_known = !own.is_empty() && !whole.words.is_empty();
            // Without words only the greeting is known to be the same turn: what comes later depends on the
            // conversation.
            let is_greeting = self.place == 0 && whole.place == 0;
            let least = match whole.place == self.place {
                true if is_greeting => 1,
                true => FIRST_WORDS_LEAST - 1,
                false => FIRST_WORDS_LEAST,
            };
            if is_known { is_alike(&own, &whole.words, least) } else { is_greeting }
        };
        let shortest = elsewhere.iter().filter(is_same).map(|whole| whole.length).min()?;
        Some(self.stop - self.from + SHORTER <= shortest)
    }

    /// True when the agent stopped inside a sentence; `None` when its words do not tell.
    fn is_inside_sentence(&self, words: &Words<'_>) -> Option<bool> {
        let said = words.up_to_last(Span { from: self.from, to: self.stop });
        let last = said.last()?;
        let is_near = last.span.to >= self.stop - WORD_BEFORE;
        (is_near && words.tell_sentences(self.from)).then(|| !complete_sentence(&said))
    }
}

/// True when two turns begin with the same words, at least `least`. The first word of one may have been missed.
fn is_alike(one: &[String], other: &[String], least: usize) -> bool {
    let begins = |one: &[String], other: &[String]| {
        let count = one.len().min(other.len());
        count >= least && one[..count] == other[..count]
    };
    let rest = |words: &[String]| words.get(1..).unwrap_or_default().to_vec();
    begins(one, other) || begins(&rest(one), other) || begins(one, &rest(other))
}

/// Computes the figures of the agent's yielding at these interruptions.
pub(super) fn measure(metrics: &mut Metrics, conversation: &Conversation, interruptions: &[Interruption]) {
    let words = Words::of(conversation);
    let (mut yielded, mut went_on, mut unknown_after) = (Vec::new(), 0, 0);
    for interruption in interruptions.iter().filter(|interruption| interruption.is_spoken) {
        match interruption.reason(conversation, &words) {
            Stop::Cut if interruption.is_outlasted() => yielded.push(seconds(interruption.stop - interruption.onset)),
            Stop::None | Stop::Cut => went_on += 1,
            Stop::OwnEnd => metrics.own_ends += 1,
            Stop::Unknown => {
                unknown_after += usize::from(!interruption.is_outlasted());
                metrics.unknown_stops.push(interruption.stop);
            }
        }
    }
    let count = yielded.len();
    let unknown = metrics.unknown_stops.len() - unknown_after;
    metrics.yield_rate = ratio(count as f64, (count + went_on) as f64);
    metrics.yield_latency = mean(&yielded);
    let least = ratio(count as f64, (count + went_on + unknown_after) as f64);
    let most = ratio((count + unknown) as f64, (count + went_on + unknown) as f64);
    metrics.yield_range = metrics.yield_rate.and(least.zip(most)).map(|(least, most)| [least, most]);
}

/// Returns the turns of the agent that nobody interrupted, that the end of the call did not cut, and in which the agent
/// never left the floor.
pub fn whole_turns(conversation: &Conversation) -> Vec<WholeTurn> {
    let (heard, words) = (HeardSpeech::of(conversation), Words::of(conversation));
    let is_probed = |turn: &SpokenTurn| conversation.probes.iter().any(|probe| probe.span.overlap(turn.span()) > 0);
    let is_whole = |turn: &SpokenTurn| {
        let is_alone = near(&heard.dh, turn.span()).is_empty() && !is_probed(turn);
        let is_one = turn.spans.windows(2).all(|pair| pair[1].from - pair[0].to < FLOOR);
        is_alone && is_one && turn.to() + SHORTER <= conversation.duration
    };
    let turns = heard.turns_of(Side::Agent).enumerate().filter(|(_, turn)| is_whole(turn));
    let whole = |(place, turn): (usize, &SpokenTurn)| WholeTurn {
        place,
        words: words.first(turn.span(), FIRST_WORDS),
        length: turn.span().length(),
    };
    turns.map(whole).collect()
}
