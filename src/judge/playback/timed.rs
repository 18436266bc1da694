//! Times in a playback: this side's last step before a moment, and the length of the agent's delay or silence after it.

use ringer_media::call::{EventKind, TimelineEntry};
use ringer_media::frame::PER_MS;

use super::{is_agent, is_turn, own_end, own_start, text};
use crate::model::Object;

/// Speech of the agent that is shorter is none.
const SPEECH_MS: i64 = 200;
/// An agent that says nothing for so long could have answered.
const ANSWER_MS: i64 = 10_000;

/// Utterances and keys of this side: first sample, and one past the last.
pub(in crate::judge) fn own_spans(moments: &[TimelineEntry]) -> Vec<(i64, i64)> {
    moments.iter().filter_map(|end| Some((own_start(end, moments), own_end(end)?))).collect()
}

/// Returns the milliseconds of silence that this side keeps on purpose right before the step.
fn paused_ms(steps: &[Object], index: usize) -> i64 {
    let is_pause = |step: &&Object| !is_agent(step) && text(step, "type") == "silence";
    let pauses = steps[..index].iter().rev().take_while(is_pause);
    pauses.filter_map(|step| step.get("duration_ms")?.as_f64()).map(|ms| ms.round() as i64).sum()
}

/// Returns the position from which the time of an agent's step that began at `onset` counts: this side's last step's
/// end, or connect.
pub(super) fn since(steps: &[Object], index: usize, own: &[(i64, i64)], onset: i64) -> i64 {
    let last = own.iter().filter(|(start, _)| *start <= onset).map(|(_, end)| *end).max();
    last.unwrap_or(0) + paused_ms(steps, index) * PER_MS
}

/// Returns the milliseconds that a step allows the agent.
pub(super) fn within_ms(step: &Object) -> Option<i64> {
    step.get("within_ms").and_then(serde_json::Value::as_f64).map(|ms| ms.round() as i64)
}

/// Returns the reason why an agent that never took the awaited step has failed; `None`: it had no time for it.
pub(super) fn miss_reason(steps: &[Object], index: usize, own: &[(i64, i64)], end: i64) -> Option<String> {
    let waited_ms = (end - since(steps, index, own, end)) / PER_MS;
    match within_ms(&steps[index]) {
        Some(within) if waited_ms >= within => Some(format!("the agent said nothing within {within} ms")),
        _ if waited_ms >= ANSWER_MS => Some(format!("the agent said nothing for {waited_ms} ms")),
        _ => None,
    }
}

/// Returns the speech of the agent: first sample, and one past the last; what had no end lasts to the end of the call.
fn speech(moments: &[TimelineEntry]) -> Vec<(i64, i64)> {
    let (mut spans, mut from) = (Vec::new(), None);
    for moment in moments {
        match moment.reading() {
            EventKind::AgentSpeechStarted { .. } => from = Some(moment.sample),
            EventKind::AgentSpeechEnded { .. } => spans.extend(from.take().map(|from| (from, moment.sample))),
            EventKind::MessageReceived { .. } => spans.push((moment.sample, moment.sample + SPEECH_MS * PER_MS)),
            _ => {}
        }
    }
    let last = moments.last().map_or(0, |last| last.sample);
    spans.extend(from.map(|from| (from, last)));
    spans
}

/// Judges a wanted silence of `within_ms` from `from` on. Returns if it was kept, its length in milliseconds, and the
/// position of its end. `None`: the call ended before.
pub(super) fn absence(moments: &[TimelineEntry], from: i64, within_ms: i64) -> (Option<bool>, i64, i64) {
    let to = from + within_ms * PER_MS;
    let heard = |(start, end): &(i64, i64)| {
        let (start, end) = ((*start).max(from), *end);
        (start < to && end - start >= SPEECH_MS * PER_MS).then_some(start)
    };
    if let Some(start) = speech(moments).iter().filter_map(heard).min() {
        return (Some(false), (start - from) / PER_MS, start);
    }
    let last = moments.last().map_or(from, |last| last.sample);
    let is_whole = last >= to;
    (is_whole.then_some(true), (last.min(to) - from).max(0) / PER_MS, last.min(to))
}

/// Returns the position at which a silence is expected to begin: after this side's steps before it, or after the
/// agent's turn.
pub(super) fn quiet_from(
    steps: &[Object],
    index: usize,
    turn_ends: &[Option<i64>],
    own: &[(i64, i64)],
    utterances: impl Fn(&[Object]) -> usize,
) -> Option<i64> {
    let before = (0..index).rev().find(|at| is_turn(&steps[*at]) && !is_absence(&steps[*at]));
    let floor = match before {
        Some(at) => turn_ends[at]?,
        None => 0,
    };
    let between = &steps[before.map_or(0, |at| at + 1)..index];
    let mut later = own.iter().filter(|(_, end)| *end > floor);
    let from = match utterances(between) {
        0 => floor,
        count => later.nth(count - 1)?.1,
    };
    let silences = between.iter().filter(|step| text(step, "type") == "silence" || is_absence(step));
    let length = |step: &Object| {
        let key = if is_absence(step) { "within_ms" } else { "duration_ms" };
        step.get(key).and_then(serde_json::Value::as_f64).unwrap_or(0.0).round() as i64
    };
    Some(from + silences.map(length).sum::<i64>() * PER_MS)
}

/// True for a step of the agent that wants it to say nothing.
pub(super) fn is_absence(step: &Object) -> bool {
    is_agent(step) && step.get("absent") == Some(&serde_json::Value::Bool(true))
}
