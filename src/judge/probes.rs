//! The probes of a timeline: sounds of the Digital Human that are none of its turns.

use ringer_media::call::ProbeKind;
use ringer_media::measure::{Probe, Span};

use super::Moment;

/// Begins or ends the sound of a probe.
pub(super) fn is_sound(moment: &Moment) -> bool {
    let is_speech = moment.event == "speech.started" || moment.event == "speech.ended";
    is_speech && moment.side == "dh" && moment.data["kind"] == "probe"
}

/// Every probe, with the time in which it sounded; one that runs at the end sounds until then.
pub(super) fn probes(moments: &[Moment], end: i64) -> Vec<Probe> {
    let told = moments.iter().filter(|moment| moment.is("probe", "dh"));
    told.filter_map(|moment| {
        let kind = ProbeKind::from_name(moment.data["kind"].as_str()?)?;
        let ended = |other: &&Moment| other.event == "speech.ended" && is_sound(other) && other.sample >= moment.sample;
        let to = moments.iter().find(ended).map_or(end, |ended| ended.sample);
        Some(Probe { kind, span: Span { from: moment.sample, to } })
    })
    .collect()
}
