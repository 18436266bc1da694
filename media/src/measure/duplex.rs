//! Both sides at once: interruptions, and how they end.

use std::collections::HashSet;

use super::Span;
use super::turn::{HeardSpeech, SpokenTurn, holding, latest_ends, onsets};
use super::{Conversation, Metrics, mean, ratio, yielding};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};

/// Least speech of the Digital Human before an interruption by the agent.
const SPOKEN: Sample = 200 * PER_MS;

/// Time within which a turn has to be answered.
const ANSWER: Sample = 10_000 * PER_MS;

/// Shortest turn that counts for the rate of being interrupted.
const LONG_TURN: Sample = 1000 * PER_MS;

/// Largest error of a position at which the Digital Human stopped.
const SEAM: Sample = 60 * PER_MS;

/// An interruption as it is counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Side that began while the other spoke.
    pub by: Side,
    /// Stretch from its onset to the end of its words, over the pauses in them.
    pub words: Span,
    /// Samples in which both speak.
    pub overlap: Sample,
    /// Samples from the onset to the silence of the other side; `None`: it went on.
    pub stop: Option<Sample>,
}

/// Returns the interruptions of a conversation by onset: as many of each side as its count tells.
pub fn interruptions(conversation: &Conversation) -> Vec<Interrupted> {
    let heard = HeardSpeech::of(conversation);
    let by_dh = yielding::interruptions(conversation, &heard);
    let of_agent = by_agent(conversation, &heard, &by_dh).into_iter().map(|(turn, other)| {
        let silent = holding(&heard.dh, turn.from()).map(|span| span.to).filter(|end| *end <= turn.to());
        let stop = silent.map(|end| end - turn.from());
        Interrupted { by: Side::Agent, words: turn.span(), overlap: turn.overlap(other), stop }
    });
    let mut found: Vec<Interrupted> = of_agent.collect();
    found.extend(by_dh.iter().map(|one| {
        let (words, stop) = (Span { from: one.onset, to: one.until }, one.stop - one.onset);
        Interrupted { by: Side::Dh, words, overlap: one.overlap, stop: (one.stop <= one.until).then_some(stop) }
    }));
    found.sort_by_key(|one| one.words.from);
    found
}

/// Returns the agent's turns that interrupt, each with the turn that it interrupts. `by_dh`: interruptions of the
/// Digital Human.
fn by_agent<'h>(
    conversation: &Conversation,
    heard: &'h HeardSpeech,
    by_dh: &[yielding::Interruption],
) -> Vec<(&'h SpokenTurn, &'h SpokenTurn)> {
    // What the agent says before the caller has the floor is more of the turn that the caller interrupts.
    let goes_on = |at: Sample| {
        let last = by_dh.partition_point(|interruption| interruption.onset < at).checked_sub(1);
        last.is_some_and(|last| at < by_dh[last].stop)
    };
    let counts = |turn: &SpokenTurn, other: &SpokenTurn| {
        let is_heard = turn.overlap(other) >= yielding::OVERLAP || stops(turn, conversation, heard);
        is_heard && !goes_on(turn.from())
    };
    onsets(heard, Side::Agent, SPOKEN, counts)
}

/// Computes interruptions and full-duplex rates.
pub(super) fn measure(metrics: &mut Metrics, conversation: &Conversation, heard: &HeardSpeech) {
    let by_dh = yielding::interruptions(conversation, heard);
    let by_agent = by_agent(conversation, heard, &by_dh);
    metrics.agent_interruption_count = Some(by_agent.len() as f64);
    metrics.customer_interruption_count = Some(by_dh.len() as f64);

    let silent = |onset: Sample| holding(&heard.dh, onset).map(|span| span.to);
    let yields: Vec<f64> = by_agent
        .iter()
        .filter_map(|(turn, _)| Some((silent(turn.from())? - turn.from()) as f64 / PER_MS as f64))
        .collect();
    metrics.dh_yield_latency_ms = mean(&yields);

    yielding::measure(metrics, conversation, &by_dh);

    let long: Vec<&SpokenTurn> = heard.turns_of(Side::Dh).filter(|turn| turn.span().length() >= LONG_TURN).collect();
    let interrupted: HashSet<*const SpokenTurn> =
        by_agent.iter().map(|(_, other)| std::ptr::from_ref(*other)).collect();
    let hit = long.iter().filter(|turn| interrupted.contains(&std::ptr::from_ref(**turn))).count();
    metrics.agent_interrupts_rate = ratio(hit as f64, long.len() as f64);

    metrics.response_rate = response_rate(conversation, heard);
}

/// True when the Digital Human fell silent at the agent's onset, before the end of its words.
fn stops(turn: &SpokenTurn, conversation: &Conversation, heard: &HeardSpeech) -> bool {
    let onset = turn.from();
    let next = conversation.stopped.get(conversation.stopped.partition_point(|at| *at <= onset));
    let cut = holding(&heard.dh, onset).zip(next);
    cut.is_some_and(|(said, at)| *at <= said.to + SEAM && *at < conversation.duration)
}

/// Returns the share of turns that were answered among those that could be. Turns do not count when the agent already
/// speaks at their end, or when the call ends too soon after them. A repetition because nobody answered is a turn of
/// its own, and the one before it counts as not answered.
fn response_rate(conversation: &Conversation, heard: &HeardSpeech) -> Option<f64> {
    let (mut answered, mut possible) = (0, 0);
    let agents: Vec<&SpokenTurn> = heard.turns_of(Side::Agent).collect();
    let (ends, onsets) = (latest_ends(&agents), heard.turns_of(Side::Dh).map(SpokenTurn::from).collect::<Vec<_>>());
    for turn in heard.turns_of(Side::Dh) {
        let again = |span: &&Span| conversation.reprompts.iter().any(|onset| span.holds(*onset));
        possible += turn.spans.iter().skip(1).filter(again).count();
        let end = turn.to();
        let next = onsets.get(onsets.partition_point(|from| *from <= end)).copied();
        let limit = next.unwrap_or(Sample::MAX).min(end + ANSWER + 1);
        let begun = agents.partition_point(|agent| agent.from() <= end);
        let is_speaking = begun.checked_sub(1).is_some_and(|last| ends[last] > end);
        if agents.get(begun).is_some_and(|agent| agent.from() < limit) {
            answered += 1;
            possible += 1;
        } else if !is_speaking
            && (next.is_some_and(|next| next <= end + ANSWER) || end + ANSWER <= conversation.duration)
        {
            possible += 1;
        }
    }
    ratio(f64::from(answered), possible as f64)
}
