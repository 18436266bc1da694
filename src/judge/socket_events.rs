//! Events that the port of a WebSocket tells of the whole of the other side's audio.

use ringer_media::call::{AUDIO_NOT_PLAYED, ChannelEvent, EventKind, RATE_MISMATCH, TimelineEntry};
use serde_json::Value;

/// Returns the text for a person about a sampling rate that the agent's audio does not seem to have; `None`: there is
/// no doubt.
pub fn rate_mismatch(timeline: &[TimelineEntry]) -> Option<&str> {
    find(timeline, RATE_MISMATCH).map(|data| data["message"].as_str().unwrap_or(RATE_MISMATCH))
}

/// Returns the milliseconds of the agent's audio that were sent and not played when the agent's side ended the call.
pub fn audio_not_played_ms(timeline: &[TimelineEntry]) -> Option<u64> {
    find(timeline, AUDIO_NOT_PLAYED)?["unplayed_ms"].as_u64()
}

/// Returns the data of the first event of this name.
fn find<'t>(timeline: &'t [TimelineEntry], wanted: &str) -> Option<&'t Value> {
    timeline.iter().find_map(|entry| match entry.reading() {
        EventKind::Channel(channel_event) => match &**channel_event {
            ChannelEvent::Other { name, data } if name == wanted => Some(data),
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use ringer_media::call::Event;
    use ringer_model::expectation::{FaultCode, OwnFault};
    use serde_json::json;

    use super::*;
    use crate::own_faults;

    fn event_of(name: &str, data: &Value) -> TimelineEntry {
        let event = Event::from_wire(0, "channel_event", "agent", json!({ "name": name, "data": data }));
        TimelineEntry { seq: 0, event }
    }

    #[test]
    fn a_doubt_about_the_rate_is_a_fault_of_the_whole_call_and_none_of_its_pacing() {
        let timeline =
            [event_of("other", &json!({})), event_of(RATE_MISMATCH, &json!({ "message": "is its rate 8000?" }))];
        assert_eq!(rate_mismatch(&timeline), Some("is its rate 8000?"));
        assert_eq!(rate_mismatch(&timeline[..1]), None);
        let fault = OwnFault { code: FaultCode::RateMismatch, at_ms: None, turn: None };
        assert_eq!(own_faults(&timeline, false, None), [fault]);
    }

    #[test]
    fn audio_that_was_not_played_has_a_number() {
        let timeline = [event_of(AUDIO_NOT_PLAYED, &json!({ "unplayed_ms": 5700 }))];
        assert_eq!(audio_not_played_ms(&timeline), Some(5700));
        assert_eq!(audio_not_played_ms(&[]), None);
    }
}
