//! Measures of a text conversation. A message has a time and no length: there is latency, but no speech.

use ringer_human::text::word_count;
use ringer_media::call::{Event, EventKind, TimelineEntry};
use ringer_media::frame::PER_MS;
use ringer_media::measure::{Metrics, Span, mean, percentile};

use super::reading::end;
use super::transcript::only_fillers;

/// Interface of a conversation in messages.
const INTERFACE: &str = "WEB";

/// True if messages were exchanged.
pub(super) fn are_written(moments: &[TimelineEntry]) -> bool {
    moments.iter().any(|moment| message(moment).is_some())
}

/// Returns the message that an event tells of: true where the agent wrote it, and its text.
fn message(event: &Event) -> Option<(bool, &str)> {
    match event.reading() {
        EventKind::MessageSent { text, .. } => Some((false, text)),
        EventKind::MessageReceived { text, .. } => Some((true, text)),
        _ => None,
    }
}

/// Returns the events within `window` as a conversation of its own; its positions count from the window's start.
pub(super) fn part(moments: &[TimelineEntry], window: Span) -> Vec<TimelineEntry> {
    let mut inside: Vec<TimelineEntry> = moments.iter().filter(|moment| window.holds(moment.sample)).cloned().collect();
    inside.iter_mut().for_each(|moment| moment.event.sample -= window.from);
    inside
}

/// Messages of one side without one of the other side between.
struct WrittenTurn {
    agent: bool,
    from: i64,
    to: i64,
    /// The first message that does more than fill time.
    meant: Option<i64>,
    words: usize,
}

/// Returns the metrics of messages. `fillers`: phrases that only fill time, in lower case.
pub(super) fn metrics(moments: &[TimelineEntry], fillers: &[String]) -> Metrics {
    let turns = turns(moments, fillers);
    let seconds = |samples: i64| (samples as f64 / (1000.0 * PER_MS as f64) * 1000.0).round() / 1000.0;
    let pairs = |agent: bool| {
        let follows = move |pair: &&[WrittenTurn]| pair[1].agent == agent && pair[0].to <= pair[1].from;
        turns.windows(2).filter(follows)
    };
    let latency: Vec<f64> = pairs(true).map(|pair| seconds(pair[1].from - pair[0].to)).collect();
    let meant: Vec<f64> = pairs(true).filter_map(|pair| Some(seconds(pair[1].meant? - pair[0].to))).collect();
    let customer: Vec<f64> = pairs(false).map(|pair| seconds(pair[1].from - pair[0].to)).collect();
    let of = |agent: bool| turns.iter().filter(move |turn| turn.agent == agent);
    let words = |agent: bool| mean(&of(agent).map(|turn| turn.words as f64).collect::<Vec<_>>());
    let lengths: Vec<f64> = of(true).map(|turn| (turn.to - turn.from) as f64 / PER_MS as f64).collect();
    Metrics {
        avg_agent_latency: mean(&latency),
        max_agent_latency: latency.iter().copied().reduce(f64::max),
        p50_agent_latency: percentile(&latency, 50.0),
        p90_agent_latency: percentile(&latency, 90.0),
        p95_agent_latency: percentile(&latency, 95.0),
        p99_agent_latency: percentile(&latency, 99.0),
        avg_filler_ignored_latency: mean(&meant),
        p50_filler_ignored_latency: percentile(&meant, 50.0),
        p90_filler_ignored_latency: percentile(&meant, 90.0),
        p95_filler_ignored_latency: percentile(&meant, 95.0),
        p99_filler_ignored_latency: percentile(&meant, 99.0),
        avg_customer_latency: mean(&customer),
        p50_customer_latency: percentile(&customer, 50.0),
        p90_customer_latency: percentile(&customer, 90.0),
        time_to_first_agent_utterance: of(true).next().map(|turn| seconds(turn.from)),
        num_turns: Some(of(true).count() as f64),
        agent_turn_duration_avg: mean(&lengths),
        agent_words_per_turn_avg: words(true),
        customer_words_per_turn_avg: words(false),
        duration: end(moments).map(|moment| moment.sample.max(0) as f64 / PER_MS as f64),
        interface: INTERFACE,
        latency,
        ..Metrics::default()
    }
}

fn turns(moments: &[TimelineEntry], fillers: &[String]) -> Vec<WrittenTurn> {
    let mut turns: Vec<WrittenTurn> = Vec::new();
    let messages = moments.iter().filter_map(|moment| Some((moment.sample, message(moment)?)));
    for (at, (agent, text)) in messages {
        if turns.last().is_none_or(|last| last.agent != agent) {
            turns.push(WrittenTurn { agent, from: at, to: at, meant: None, words: 0 });
        }
        let Some(turn) = turns.last_mut() else { continue };
        turn.to = at;
        turn.words += word_count(text);
        if !text.is_empty() && !only_fillers(text, fillers) {
            turn.meant.get_or_insert(at);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use ringer_model::custom_metric::EvalSegment;
    use serde_json::{Value, json};

    use crate::{Facts, measure, measure_parts, moments};

    #[test]
    fn latency_runs_from_message_to_message() {
        let at = |ms: i64, event: &str, side: &str, text: &str| json!({"seq": ms, "sample": ms * 16, "event": event, "side": side, "data": {"text": text, "channel": "http"}});
        let (sent, received) = ("message.sent", "message.received");
        let timeline = json!([
            at(0, received, "agent", "Good day, how can I help?"),
            at(500, sent, "dh", "I want to book."),
            at(1750, received, "agent", "One moment."),
            at(3500, received, "agent", "Done, for two."),
            at(3500, "turn.ended", "agent", "Done, for two."),
            at(3600, sent, "dh", "Thanks."),
            at(4100, received, "agent", "Bye."),
            at(6000, "call.ended", "engine", ""),
        ]);
        let facts = Facts { fillers: vec!["one moment".into()], interface: "PHONE", ..Facts::default() };
        let measured = measure(&moments(&timeline), &facts);
        let metric =
            |name: &str| measured.metrics.iter().find(|metric| metric.name == name).map(|metric| &metric.value);
        assert_eq!(measured.latency, [1.25, 0.5], "the greeting answers nothing");
        for (name, expect) in [
            ("avg_agent_latency", json!(0.875)),
            ("max_agent_latency", json!(1.25)),
            ("avg_filler_ignored_latency", json!(1.75)),
            ("avg_customer_latency", json!(0.3)),
            ("time_to_first_agent_utterance", json!(0.0)),
            ("num_turns", json!(3)),
            ("agent_turn_duration_avg", json!(583.333)),
            ("customer_words_per_turn_avg", json!(2.5)),
            ("duration", json!(6000)),
            ("interface", json!("WEB")),
        ] {
            assert_eq!(metric(name), Some(&expect), "{name}");
        }
        for heard in ["agent_speak_percentage", "talk_ratio", "agent_wpm", "response_rate", "silence_percentage"] {
            assert_eq!(metric(heard), None::<&Value>, "{heard}");
        }
        assert_eq!(measured.evaluation.avg_agent_latency, Some(0.875));
        let parts = [(EvalSegment::Opening, (i64::MIN, 3501)), (EvalSegment::Closing, (1750, i64::MAX))];
        let parts = measure_parts(&parts, (&moments(&timeline), &facts), None, None).expect("no file is read");
        let value = |part: usize, name: &str| {
            parts[part].measures.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone())
        };
        for (name, opening, closing) in [
            ("avg_agent_latency", json!(1.25), json!(0.5)),
            ("num_turns", json!(2), json!(2)),
            ("duration", json!(3500), json!(4250)),
        ] {
            assert_eq!((value(0, name), value(1, name)), (Some(opening), Some(closing)), "{name}");
        }
        assert_eq!(measured.evaluation.agent_speak_percentage, None);
    }
}
