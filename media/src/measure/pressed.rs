//! Silence inside turns of the agent, and its speech over keys that are pressed.

use super::turn::{HeardSpeech, holding};
use super::{Conversation, Metrics, Span, seconds};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};

/// Least speech of the agent before a key that is pressed into it.
const SPOKEN: Sample = 200 * PER_MS;

/// Computes the longest pause inside a turn of the agent, and the number of times that it spoke on over keys.
pub(super) fn measure(metrics: &mut Metrics, conversation: &Conversation, heard: &HeardSpeech) {
    let pauses = heard.turns_of(Side::Agent).map(|turn| longest_gap(&turn.spans, &conversation.found_over));
    metrics.longest_agent_pause = pauses.max().map(seconds);
    metrics.keys_talked_over = Some(talked_over(conversation, heard) as f64);
}

/// Returns the longest distance between two stretches that follow each other; 0 without one. Where the Digital Human
/// found the turn over meanwhile, the silence was its own.
fn longest_gap(spans: &[Span], found_over: &[Sample]) -> Sample {
    let gaps = spans.windows(2).map(|pair| Span { from: pair[0].to, to: pair[1].from });
    let is_agents = |gap: &Span| !found_over.iter().any(|at| gap.holds(*at));
    gaps.filter(is_agents).map(|gap| gap.length()).max().unwrap_or(0).max(0)
}

/// Returns the number of stretches of the agent's speech into which keys were pressed, and which went on for longer
/// than an agent may take to yield after the first of them.
fn talked_over(conversation: &Conversation, heard: &HeardSpeech) -> usize {
    let within = Sample::from(conversation.yield_times.within_ms) * PER_MS;
    let into = |key: &Span| {
        let speech = holding(&heard.agent, key.from).filter(|speech| key.from - speech.from >= SPOKEN)?;
        Some((*speech, key.from))
    };
    let mut pressed: Vec<(Span, Sample)> = conversation.digits.iter().filter_map(into).collect();
    pressed.dedup_by_key(|(speech, _)| *speech);
    pressed.iter().filter(|(speech, first)| speech.to > first + within).count()
}
