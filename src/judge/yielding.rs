//! Yielding of the agent: messages that tell of it, and what is not known of it. The figures are those of
//! `ringer_media::measure`.

use ringer_media::call::{ChannelEvent, EventKind, TimelineEntry};
use ringer_media::frame::PER_MS;
use ringer_media::measure::Metrics;

/// Metrics of the agent's yielding.
pub(super) const YIELD_RATE: &str = "yield_rate";
pub(super) const YIELD_LATENCY: &str = "yield_latency";
/// Reason why an interruption shows nothing.
const OWN_END: &str =
    "the agent's turn was over by itself when the caller interrupted it: an earlier interruption would show it";
/// Evidence that would show whether a turn was cut.
const STOP_SHOWN: &str = "a message of the agent that its words were cut off, the same turn heard whole in another call of the run \
    (repeat, --baseline), or a recognizer that writes punctuation would show it";
/// Names of the metrics of the agent's yielding.
pub const YIELDING: [&str; 2] = [YIELD_RATE, YIELD_LATENCY];

/// A metric of which something is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenMetric {
    /// Name of the metric.
    pub name: &'static str,
    /// Least and greatest value that it can have; `None` when it may have none.
    pub range: Option<[f64; 2]>,
    /// Reason, and what would show it.
    pub reason: String,
}

/// True if it is not known of some interruption whether the agent stopped for it.
pub fn has_open_stops(open: &[OpenMetric]) -> bool {
    open.iter().any(|open| YIELDING.contains(&open.name))
}

/// True for the agent's own message that its words were cut off: it took audio back that was not played yet, or says
/// so.
pub(super) fn tells_cut(moment: &TimelineEntry) -> bool {
    let EventKind::Channel(event) = moment.reading() else { return false };
    match &**event {
        ChannelEvent::Cleared { dropped_ms } => *dropped_ms > 0,
        ChannelEvent::Other { name, .. } => name == "agent_interrupted",
        _ => false,
    }
}

/// Returns the metrics that the ends of interrupted turns leave open.
pub(super) fn open_metrics(metrics: &Metrics) -> Vec<OpenMetric> {
    // Unknown stops change nothing where all that is known says the same.
    let is_settled = metrics.yield_range.is_some_and(|[least, most]| least == most);
    let reason = match metrics.unknown_stops.first() {
        _ if is_settled => return Vec::new(),
        Some(first) => format!(
            "it is not known whether the agent stopped for the caller at {:.2} s or its turn was over; {STOP_SHOWN}",
            *first as f64 / (1000 * PER_MS) as f64
        ),
        None if metrics.own_ends > 0 => OWN_END.to_owned(),
        None => return Vec::new(),
    };
    let open = |name, range| OpenMetric { name, range, reason: reason.clone() };
    vec![open(YIELD_RATE, metrics.yield_range), open(YIELD_LATENCY, None)]
}

#[cfg(test)]
mod tests {
    use ringer_model::heard_turn::HeardTurn;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Facts, heard_turns, measure, moments, whole_turns};

    fn event(ms: i64, event: &str, side: &str, data: Value) -> Value {
        json!({ "seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data })
    }

    /// Returns a call whose agent speaks from 0.3 s to `stop` and is interrupted at 2.3 s, with more events of it.
    fn call(stop: i64, words: &[(i64, i64, &str)], more: &[Value]) -> Vec<TimelineEntry> {
        let own = json!({ "utterance_id": 1, "text": "Excuse me, I have a question.", "kind": "interruption" });
        let word = |&(from, to, word): &(i64, i64, &str)| json!({ "word": word, "start_offset_ms": from, "end_offset_ms": to, "confidence": null });
        let text: Vec<&str> = words.iter().map(|word| word.2).collect();
        let turn = json!({ "text": text.join(" "), "from_sample": 4640, "end_sample": stop * 16,
            "words": words.iter().map(word).collect::<Vec<_>>() });
        let mut lines = vec![
            event(290, "speech.started", "agent", json!({})),
            event(2300, "speech.started", "dh", own.clone()),
            event(stop, "speech.ended", "agent", json!({})),
            event(stop + 1, "turn.ended", "agent", turn),
            event(4380, "speech.ended", "dh", own),
            event(20_000, "call.ended", "engine", json!({})),
        ];
        lines.extend(more.iter().cloned());
        moments(&json!(lines))
    }

    #[test]
    fn the_first_evidence_that_is_there_tells_whether_the_agent_yielded() {
        let inside = [(300, 900, "Thank"), (900, 2000, "you"), (2000, 2690, "for")];
        let over = [(300, 900, "Thank"), (900, 2000, "you"), (2000, 2690, "all.")];
        let cleared = |ms: u64| event(2600, "agent_cleared", "agent", json!({ "dropped_ms": ms }));
        let broken = event(2600, "channel_event", "agent", json!({ "name": "agent_interrupted", "data": {} }));
        let other = event(2600, "channel_event", "agent", json!({ "name": "agent_stopped_speaking", "data": {} }));
        let not_known = "it is not known whether the agent stopped for the caller at 2.70 s or its turn was over; a message of the \
             agent that its words were cut off, the same turn heard whole in another call of the run (repeat, --baseline), or a \
             recognizer that writes punctuation would show it";
        for (stop, words, more, rate, reason) in [
            // It is deaf, and its turn ends beside the caller's words.
            (4080, &[][..], vec![], Some(0.0), None),
            (2700, &inside, vec![], Some(1.0), None),
            (2700, &over, vec![], None, Some(OWN_END)),
            (2700, &over, vec![cleared(300)], Some(1.0), None),
            (2700, &over, vec![cleared(0)], None, Some(OWN_END)),
            (2700, &over, vec![broken], Some(1.0), None),
            (2700, &[], vec![], None, Some(not_known)),
            (2700, &[], vec![other], None, Some(not_known)),
        ] {
            let found = measure(&call(stop, words, &more), &Facts::default());
            let metric = found.metrics.iter().find(|metric| metric.name == YIELD_RATE);
            assert_eq!(metric.and_then(|metric| metric.value.as_f64()), rate, "{stop} {words:?} {more:?}");
            let open = found.open.iter().find(|open| open.name == YIELD_RATE);
            assert_eq!(open.map(|open| open.reason.as_str()), reason, "{stop} {words:?} {more:?}");
        }
    }

    #[test]
    fn the_same_turn_in_another_call_tells_whether_it_was_cut() {
        let heard = |length_ms| vec![HeardTurn { place: 0, words: Vec::new(), length_ms }];
        let cut = call(2700, &[], &[]);
        for (length_ms, rate, is_open) in [(5000, Some(1.0), false), (2500, None, true)] {
            let facts = Facts { elsewhere: whole_turns(heard(length_ms)), ..Facts::default() };
            let found = measure(&cut, &facts);
            let metric = found.metrics.iter().find(|metric| metric.name == YIELD_RATE);
            assert_eq!(metric.and_then(|metric| metric.value.as_f64()), rate, "{length_ms}");
            assert_eq!(found.open.is_empty(), !is_open, "{length_ms}");
        }
        assert_eq!(heard_turns(&cut, &Facts::default()), [], "it was interrupted");
    }
}
