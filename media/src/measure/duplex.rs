//! Both sides at once: interruptions, and how they end.

use std::collections::HashSet;

use super::Span;
use super::turn::{HeardSpeech, Turn, holding, near};
use super::{Conversation, Metrics, mean, ratio, seconds};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};

/// Least overlap, and least speech before it, of an interruption.
const OVERLAP: Sample = 200 * PER_MS;

/// Time within which a turn has to be answered.
const ANSWER: Sample = 10_000 * PER_MS;

/// Time within which an interrupted agent has to fall silent.
const YIELD: Sample = 2000 * PER_MS;

/// Shortest turn that counts for the rate of being interrupted.
const LONG_TURN: Sample = 1000 * PER_MS;

/// Computes interruptions and full-duplex rates.
pub fn measure(metrics: &mut Metrics, conversation: &Conversation, heard: &HeardSpeech) {
    let by_agent = interruptions(heard, Side::Agent, OVERLAP);
    let by_dh = interruptions(heard, Side::Dh, 1);
    metrics.agent_interruption_count = Some(by_agent.len() as f64);
    metrics.customer_interruption_count = Some(by_dh.len() as f64);

    let silent = |onset: Sample| holding(&heard.dh, onset).map(|span| span.to);
    let yields: Vec<f64> = by_agent
        .iter()
        .filter_map(|(turn, _)| Some((silent(turn.from())? - turn.from()) as f64 / PER_MS as f64))
        .collect();
    metrics.dh_yield_latency_ms = mean(&yields);

    let yielded: Vec<f64> = by_dh.iter().filter_map(|(turn, _)| agent_yields(turn, heard)).map(seconds).collect();
    metrics.yield_rate = ratio(yielded.len() as f64, by_dh.len() as f64);
    metrics.yield_latency = mean(&yielded);

    let long: Vec<&Turn> = heard.turns_of(Side::Dh).filter(|turn| turn.span().length() >= LONG_TURN).collect();
    let interrupted: HashSet<*const Turn> = by_agent.iter().map(|(_, other)| std::ptr::from_ref(*other)).collect();
    let hit = long.iter().filter(|turn| interrupted.contains(&std::ptr::from_ref(**turn))).count();
    metrics.agent_interrupts_rate = ratio(hit as f64, long.len() as f64);

    metrics.response_rate = response_rate(conversation, heard);
}

/// Returns the turns of `side` that interrupt a turn of the other side: with an overlap of 200 ms or more, after
/// `spoken` samples of it. Each comes with the turn that it interrupts.
fn interruptions(heard: &HeardSpeech, side: Side, spoken: Sample) -> Vec<(&Turn, &Turn)> {
    let into = |turn: &&Turn, other: &&Turn| {
        other.from() + spoken <= turn.from() && turn.from() < other.to() && turn.overlap(other) >= OVERLAP
    };
    let others: Vec<&Turn> = heard.turns.iter().filter(|other| other.side != side).collect();
    let ends = latest_ends(&others);
    heard
        .turns_of(side)
        .filter_map(|turn| {
            // Those before have ended, those after have not begun.
            let first = ends.partition_point(|end| *end <= turn.from());
            let after = others.partition_point(|other| other.from() < turn.from());
            let interrupted = others.get(first..after)?.iter().find(|other| into(&turn, other))?;
            Some((turn, *interrupted))
        })
        .collect()
}

/// Returns for each turn the latest end of it and of those before it.
fn latest_ends(turns: &[&Turn]) -> Vec<Sample> {
    let latest = |end: &mut Sample, turn: &&Turn| {
        *end = turn.to().max(*end);
        Some(*end)
    };
    turns.iter().scan(Sample::MIN, latest).collect()
}

/// Returns the time from the onset of `turn` to the agent's silence, when that comes within 2 s and while the Digital
/// Human speaks.
fn agent_yields(turn: &Turn, heard: &HeardSpeech) -> Option<Sample> {
    // Stretches are joined over less than 300 ms: each of their ends is a silence that counts.
    let end = heard.agent.get(heard.agent.partition_point(|span| span.to <= turn.from()))?.to;
    let speaking = !near(&heard.dh, Span { from: end - 1, to: end + 1 }).is_empty();
    (speaking && end - turn.from() <= YIELD).then_some(end - turn.from())
}

/// Returns the share of turns that were answered among those that could be. Turns do not count when the agent already
/// speaks at their end, or when the call ends too soon after them. A repetition because nobody answered is a turn of
/// its own, and the one before it counts as not answered.
fn response_rate(conversation: &Conversation, heard: &HeardSpeech) -> Option<f64> {
    let (mut answered, mut possible) = (0, 0);
    let agents: Vec<&Turn> = heard.turns_of(Side::Agent).collect();
    let (ends, onsets) = (latest_ends(&agents), heard.turns_of(Side::Dh).map(Turn::from).collect::<Vec<_>>());
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
