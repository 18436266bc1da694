//! The probes of a timeline: sounds of the Digital Human that are none of its turns.

use ringer_media::call::{EventKind, TimelineEntry};
use ringer_media::measure::{Probe, Span};

use super::reading::{Said, speech_end, speech_start};

/// Returns every probe that was heard, with the time in which it was; one that runs at the end sounds until then.
pub(super) fn probes(moments: &[TimelineEntry], end: i64) -> Vec<Probe> {
    let mut probes = Vec::new();
    for (at, probe_event) in moments.iter().enumerate() {
        let EventKind::Probe { kind } = *probe_event.reading() else { continue };
        // Before the next one; moments of one sample may stand in any order.
        let is_probe = |moment: &&TimelineEntry| matches!(moment.reading(), EventKind::Probe { .. });
        let next = moments[at + 1..].iter().find(is_probe).map_or(i64::MAX, |next| next.sample);
        let mut within = moments.iter().filter(|moment| (probe_event.sample..next).contains(&moment.sample));
        let sound = |said: Option<Said<'_>>| said.filter(Said::is_sound).map(|said| said.at);
        let Some(from) = within.find_map(|moment| sound(speech_start(moment))) else { continue };
        let to = within.find_map(|moment| sound(speech_end(moment))).unwrap_or(end);
        probes.push(Probe { kind, span: Span { from, to } });
    }
    probes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::moments;

    #[test]
    fn a_probe_lasts_as_long_as_it_is_heard() {
        let probe = |seq: i64, sample: i64| json!({ "seq": seq, "sample": sample, "event": "probe", "side": "dh", "data": { "kind": "backchannel" } });
        let sound = |seq: i64, sample: i64, event: &str| json!({ "seq": seq, "sample": sample, "event": event, "side": "dh", "data": { "kind": "probe", "utterance_id": seq } });
        let (start, end) = ("speech.started", "speech.ended");
        for (lines, expect) in [
            (json!([probe(0, 100), sound(1, 100, start), sound(2, 500, end)]), vec![(100, 500)]),
            (json!([sound(0, 100, start), probe(1, 100), sound(2, 500, end)]), vec![(100, 500)]),
            (json!([probe(0, 100), sound(1, 260, start), sound(2, 500, end)]), vec![(260, 500)]),
            (json!([probe(0, 100), sound(1, 260, start)]), vec![(260, 9000)]),
            // The first one could not be heard.
            (json!([probe(0, 100), probe(1, 4000), sound(2, 4160, start), sound(3, 5000, end)]), vec![(4160, 5000)]),
            (json!([probe(0, 100)]), vec![]),
        ] {
            let found: Vec<(i64, i64)> =
                probes(&moments(&lines), 9000).iter().map(|probe| (probe.span.from, probe.span.to)).collect();
            assert_eq!(found, expect, "{lines}");
        }
    }
}
