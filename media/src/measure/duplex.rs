//! Both sides at once: interruptions, and how they end.

use super::Span;
use super::turn::{Heard, Turn};
use super::{Conversation, Metrics, mean, ratio, seconds};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};

/// Overlap, and speech before it, that make an interruption.
const OVERLAP: Sample = 200 * PER_MS;

/// Time in which a turn is answered.
const ANSWER: Sample = 10_000 * PER_MS;

/// Time in which an interrupted agent has to fall silent.
const YIELD: Sample = 2000 * PER_MS;

/// A turn of at least this length counts for the rate of being interrupted.
const LONG_TURN: Sample = 1000 * PER_MS;

/// Fills in interruptions and full-duplex rates.
pub fn measure(metrics: &mut Metrics, conversation: &Conversation, heard: &Heard) {
    let by_agent = interruptions(heard, Side::Agent, OVERLAP);
    let by_dh = interruptions(heard, Side::Dh, 1);
    metrics.agent_interruption_count = Some(by_agent.len() as f64);
    metrics.customer_interruption_count = Some(by_dh.len() as f64);

    let silent = |onset: Sample| heard.dh.iter().find(|span| span.holds(onset)).map(|span| span.to);
    let yields: Vec<f64> = by_agent
        .iter()
        .filter_map(|(turn, _)| Some((silent(turn.from())? - turn.from()) as f64 / PER_MS as f64))
        .collect();
    metrics.dh_yield_latency_ms = mean(&yields);

    let yielded: Vec<f64> = by_dh.iter().filter_map(|(turn, _)| agent_yields(turn, heard)).map(seconds).collect();
    metrics.yield_rate = ratio(yielded.len() as f64, by_dh.len() as f64);
    metrics.yield_latency = mean(&yielded);

    let long: Vec<&Turn> = heard.turns_of(Side::Dh).filter(|turn| turn.span().length() >= LONG_TURN).collect();
    let hit = long.iter().filter(|turn| by_agent.iter().any(|(_, other)| std::ptr::eq(*other, **turn))).count();
    metrics.agent_interrupts_rate = ratio(hit as f64, long.len() as f64);

    metrics.response_rate = response_rate(conversation, heard);
}

/// Turns of `side` that begin inside a turn of the other side which has lasted `spoken` samples, with an overlap of 200 ms
/// or more; each with the turn that it interrupts.
fn interruptions(heard: &Heard, side: Side, spoken: Sample) -> Vec<(&Turn, &Turn)> {
    let into = |turn: &&Turn, other: &&Turn| {
        other.from() + spoken <= turn.from() && turn.from() < other.to() && turn.overlap(other) >= OVERLAP
    };
    heard
        .turns_of(side)
        .filter_map(|turn| {
            let interrupted = heard.turns.iter().filter(|other| other.side != side).find(|other| into(&turn, other))?;
            Some((turn, interrupted))
        })
        .collect()
}

/// From the onset of `turn` to the agent's silence, when it comes within 2 s and while the Digital Human speaks.
fn agent_yields(turn: &Turn, heard: &Heard) -> Option<Sample> {
    // Stretches are joined over less than 300 ms: each of their ends is a silence that counts.
    let end = heard.agent.iter().map(|span| span.to).find(|to| *to > turn.from())?;
    let speaking = heard.dh.iter().any(|span| (span.from..=span.to).contains(&end));
    (speaking && end - turn.from() <= YIELD).then_some(end - turn.from())
}

/// Turns that were answered among those that could be. A turn in which the agent is already speaking when it ends, and
/// one that the end of the call followed too soon, are neither. What was said again because nobody answered is a turn of its
/// own here, and the one before it was not answered.
fn response_rate(conversation: &Conversation, heard: &Heard) -> Option<f64> {
    let (mut answered, mut possible) = (0, 0);
    for turn in heard.turns_of(Side::Dh) {
        let again = |span: &&Span| conversation.reprompts.iter().any(|onset| span.holds(*onset));
        possible += turn.spans.iter().skip(1).filter(again).count();
        let end = turn.to();
        let next = heard.turns_of(Side::Dh).map(Turn::from).find(|from| *from > end);
        let limit = next.unwrap_or(Sample::MAX).min(end + ANSWER + 1);
        if heard.turns_of(Side::Agent).any(|agent| agent.from() > end && agent.from() < limit) {
            answered += 1;
            possible += 1;
        } else if !heard.turns_of(Side::Agent).any(|agent| agent.span().holds(end))
            && (next.is_some_and(|next| next <= end + ANSWER) || end + ANSWER <= conversation.duration)
        {
            possible += 1;
        }
    }
    ratio(f64::from(answered), possible as f64)
}
