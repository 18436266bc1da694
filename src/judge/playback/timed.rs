//! Times in a playback: this side's last step before a moment, and the length of the agent's delay or silence after it.

use ringer_media::call::{EventKind, TimelineEntry};
use ringer_media::frame::PER_MS;
use ringer_model::Object;

use super::{is_agent, is_turn, own_end, own_start, text};

/// Speech of the agent that is shorter is none.
const SPEECH_MS: i64 = 200;
/// An agent that says nothing for so long could have answered.
const ANSWER_MS: i64 = 10_000;

/// An utterance, a key or a message of this side.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// First sample of it.
    pub from: i64,
    /// One past the last sample; `from` for a message.
    pub to: i64,
    /// Place of the event that ends it among the events of the conversation.
    pub place: usize,
}

impl Own {
    /// True if it began before a turn of the agent that begins at `onset`. At the same sample the order of the events
    /// decides.
    fn precedes(&self, onset: i64, place: usize) -> bool {
        (self.from, self.place) < (onset, place)
    }

    /// True if it ends after the agent's turn that ends at `end`. At the same sample the order of the events decides.
    pub(super) fn follows(&self, end: i64, place: usize) -> bool {
        (self.to, self.place) > (end, place)
    }
}

/// Returns the utterances, keys and messages of this side, in the order in which they end.
pub(crate) fn own_spans(moments: &[TimelineEntry]) -> Vec<Own> {
    let span =
        |(place, end): (usize, &TimelineEntry)| Some(Own { from: own_start(end, moments), to: own_end(end)?, place });
    moments.iter().enumerate().filter_map(span).collect()
}

/// Returns the milliseconds of silence that this side keeps on purpose right before the step.
fn paused_ms(steps: &[Object], index: usize) -> i64 {
    let is_pause = |step: &&Object| !is_agent(step) && text(step, "type") == "silence";
    let pauses = steps[..index].iter().rev().take_while(is_pause);
    pauses.filter_map(|step| step.get("duration_ms")?.as_f64()).map(|ms| ms.round() as i64).sum()
}

/// Returns the position from which the time of an agent's step counts that began at `onset`, with the event at `place`:
/// the end of this side's last step, or `start`.
pub(super) fn since(steps: &[Object], index: usize, own: &[Own], start: i64, (onset, place): (i64, usize)) -> i64 {
    let last = own.iter().filter(|own| own.precedes(onset, place)).map(|own| own.to).max();
    last.unwrap_or(start) + paused_ms(steps, index) * PER_MS
}

/// Returns the milliseconds that a step allows the agent.
pub(super) fn within_ms(step: &Object) -> Option<i64> {
    step.get("within_ms").and_then(serde_json::Value::as_f64).map(|ms| ms.round() as i64)
}

/// Returns the reason why an agent that never took the awaited step has failed; `None`: it had no time for it.
pub(super) fn miss_reason(steps: &[Object], index: usize, own: &[Own], start: i64, end: i64) -> Option<String> {
    let waited_ms = (end - since(steps, index, own, start, (end, usize::MAX))) / PER_MS;
    match within_ms(&steps[index]) {
        Some(within) if waited_ms >= within => Some(format!("the agent said nothing within {within} ms")),
        _ if waited_ms >= ANSWER_MS => Some(format!("the agent said nothing for {waited_ms} ms")),
        _ => None,
    }
}

/// Returns the speech of the agent: first sample, and one past the last; what had no end lasts to the end of the call.
/// Messages count from the event at `place` on.
fn speech(moments: &[TimelineEntry], place: usize) -> Vec<(i64, i64)> {
    let (mut spans, mut from) = (Vec::new(), None);
    for (at, moment) in moments.iter().enumerate() {
        match moment.reading() {
            EventKind::AgentSpeechStarted { .. } => from = Some(moment.sample),
            EventKind::AgentSpeechEnded { .. } => spans.extend(from.take().map(|from| (from, moment.sample))),
            EventKind::MessageReceived { .. } if at >= place => {
                spans.push((moment.sample, moment.sample + SPEECH_MS * PER_MS))
            }
            _ => {}
        }
    }
    let last = moments.last().map_or(0, |last| last.sample);
    spans.extend(from.map(|from| (from, last)));
    spans
}

/// Judges a wanted silence of `within_ms` from `from`, the event at `place`, on. Returns if it was kept, its length in
/// milliseconds, and the position of its end. `None`: the call ended before.
pub(super) fn absence(
    moments: &[TimelineEntry],
    (from, place): (i64, usize),
    within_ms: i64,
) -> (Option<bool>, i64, i64) {
    let to = from + within_ms * PER_MS;
    let heard = |(start, end): &(i64, i64)| {
        let (start, end) = ((*start).max(from), *end);
        (start < to && end - start >= SPEECH_MS * PER_MS).then_some(start)
    };
    if let Some(start) = speech(moments, place).iter().filter_map(heard).min() {
        return (Some(false), (start - from) / PER_MS, start);
    }
    let last = moments.last().map_or(from, |last| last.sample);
    let is_whole = last >= to;
    (is_whole.then_some(true), (last.min(to) - from).max(0) / PER_MS, last.min(to))
}

/// Returns the position at which a silence is expected to begin, and the place of its first event: after this side's
/// steps before it, or after the agent's turn, or at `start`.
pub(super) fn quiet_from(
    steps: &[Object],
    index: usize,
    turn_ends: &[Option<(i64, usize)>],
    (own, start): (&[Own], i64),
    utterances: impl Fn(&[Object]) -> usize,
) -> Option<(i64, usize)> {
    let before = (0..index).rev().find(|at| is_turn(&steps[*at]) && !is_absence(&steps[*at]));
    let earliest = match before {
        Some(at) => turn_ends[at]?,
        None => (start, 0),
    };
    let between = &steps[before.map_or(0, |at| at + 1)..index];
    let mut later = own.iter().filter(|own| before.is_none() || own.follows(earliest.0, earliest.1));
    let (from, place) = match utterances(between) {
        0 => earliest,
        count => later.nth(count - 1).map(|own| (own.to, own.place))?,
    };
    let silences = between.iter().filter(|step| text(step, "type") == "silence" || is_absence(step));
    let length = |step: &Object| {
        let key = if is_absence(step) { "within_ms" } else { "duration_ms" };
        step.get(key).and_then(serde_json::Value::as_f64).unwrap_or(0.0).round() as i64
    };
    Some((from + silences.map(length).sum::<i64>() * PER_MS, place))
}

/// True for a step of the agent that wants it to say nothing.
pub(super) fn is_absence(step: &Object) -> bool {
    is_agent(step) && step.get("absent") == Some(&serde_json::Value::Bool(true))
}
