//! Agents that never give the floor: they speak on, so that a caller with words to say never gets a turn.

use ringer_media::call::{ChannelEvent, EventKind, Side, TimelineEntry};
use ringer_media::frame::PER_MS;
use ringer_media::measure as media;
use ringer_model::Object;

use super::measures::{Facts, conversation};
use super::playback::has_own_words;
use super::reading::{self, speech_start};

/// Shortest call in which an agent can keep the floor, in milliseconds.
const CALL_MS: i64 = 20_000;

/// Returns the reason why an agent has never given the floor; `None` where it has, or where nothing shows it.
///
/// `delay_ms`: silence after which the caller answers. `steps`: playback of the caller; without one it always has
/// words.
pub fn kept_floor(moments: &[TimelineEntry], facts: &Facts, steps: &[Object], delay_ms: i64) -> Option<String> {
    let has_words = steps.is_empty() || steps.iter().any(has_own_words);
    if !has_words || !is_agent_talking(moments) || moments.iter().any(is_own) {
        return None;
    }
    let call = conversation(moments, facts);
    let (_, agent) = media::speech(&call);
    let ends = agent.iter().map(|span| span.to);
    let next = agent.iter().skip(1).map(|span| span.from).chain([call.duration]);
    let silence = ends.zip(next).map(|(end, next)| next - end).max()?;
    let length_ms = call.duration / PER_MS;
    (length_ms >= CALL_MS && silence < delay_ms * PER_MS).then(|| {
        let (delay, length) = (delay_ms as f64 / 1000.0, (length_ms + 500) / 1000);
        format!("the agent did not leave {delay} s of silence in {length} s")
    })
}

/// True for words or keys of the caller.
fn is_own(moment: &TimelineEntry) -> bool {
    speech_start(moment).is_some_and(|said| !said.is_sound()) || matches!(moment.reading(), EventKind::DtmfSent { .. })
}

/// True when words of the agent are known, so that it is no music, and it is no machine.
fn is_agent_talking(moments: &[TimelineEntry]) -> bool {
    let is_machine = |moment: &TimelineEntry| {
        matches!(
            moment.reading(),
            EventKind::Held
                | EventKind::LineTone { .. }
                | EventKind::AnsweringMachine { .. }
                | EventKind::Transfer { .. }
        )
    };
    let is_reported = |moment: &TimelineEntry| match moment.reading() {
        EventKind::Channel(event) => matches!(&**event, ChannelEvent::Reported { text } if !text.is_empty()),
        EventKind::TranscriptPartial { text } => moment.side == Side::Agent && !text.is_empty(),
        _ => false,
    };
    let has_words = reading::turns(moments).any(|turn| !turn.text.is_empty()) || moments.iter().any(is_reported);
    has_words && !moments.iter().any(is_machine)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::moments;

    fn event(ms: i64, event: &str, side: &str, data: Value) -> Value {
        json!({ "seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data })
    }

    /// Returns a call of 45 s whose agent speaks in these spans of milliseconds.
    fn call(agent: &[(i64, i64)], words: &str, more: &[Value]) -> Value {
        let mut lines = vec![event(0, "call.connected", "engine", json!({ "code": 200, "codec": "PCMU" }))];
        for &(from, to) in agent {
            lines.push(event(from, "speech.started", "agent", json!({ "arrival_ms": from })));
            lines.push(event(to, "speech.ended", "agent", json!({ "arrival_ms": to })));
        }
        let turn = json!({ "text": words, "from_sample": 1600, "end_sample": 44_900 * 16, "words": [] });
        lines.push(event(44_950, "turn.ended", "agent", turn));
        lines.extend(more.iter().cloned());
        lines.push(event(45_000, "call.ended", "engine", json!({ "by": "USER", "reason": "max_duration" })));
        Value::from(lines)
    }

    #[test]
    fn an_agent_that_never_pauses_never_gives_the_floor() {
        let step = |step: Value| step.as_object().expect("an object").clone().into_iter().collect::<Object>();
        let listens = [step(json!({ "speaker": "agent", "criteria": "talks" }))];
        let waits = [listens[0].clone(), step(json!({ "speaker": "user", "type": "silence", "duration_ms": 500 }))];
        let says = [listens[0].clone(), step(json!({ "speaker": "user", "exact_message": "Stop." }))];
        let on = [(100, 20_000), (21_400, 44_900)];
        let kept = Some("the agent did not leave 1.5 s of silence in 45 s");
        let own =
            |kind: &str| event(500, "speech.started", "dh", json!({ "utterance_id": 1, "text": "Mm", "kind": kind }));
        let check = |call: &Value, steps: &[Object], expect: Option<&str>| {
            let found = kept_floor(&moments(call), &Facts::default(), steps, 1500);
            assert_eq!(found.as_deref(), expect, "{call}");
        };
        check(&call(&on, "and so on", &[]), &[], kept);
        check(&call(&on, "and so on", &[]), &says, kept);
        check(&call(&on, "and so on", &[own("probe")]), &[], kept);
        // Who only listens wants no turn.
        check(&call(&on, "and so on", &[]), &listens, None);
        check(&call(&on, "and so on", &[]), &waits, None);
        // Music has no words, and machines do not hear.
        check(&call(&on, "", &[]), &[], None);
        check(&call(&on, "please hold", &[event(9000, "hold", "agent", json!({}))]), &[], None);
        let beep =
            json!({ "greeting_from_sample": 0, "greeting_end_sample": 1600, "beep_ms": 500, "frequency_hz": 440 });
        check(&call(&on, "leave a message", &[event(9000, "answering_machine", "agent", beep)]), &[], None);
        // It had a turn, or could have had one.
        check(&call(&on, "and so on", &[own("interruption")]), &[], None);
        check(&call(&[(100, 20_000), (21_500, 44_900)], "and so on", &[]), &[], None);
        check(&call(&[(100, 43_400)], "and so on", &[]), &[], None);
        // The time before its first word is none that it leaves.
        check(&call(&[(9000, 44_900)], "and so on", &[]), &[], kept);
    }
}
