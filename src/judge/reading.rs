//! Turns, utterances and keys that a timeline tells of, in the form in which they are judged.

use ringer_media::call::{Event, EventKind, Kind, NO_UTTERANCE, Side, TimelineEntry, Word};
use ringer_media::frame::{PER_MS, Sample};

/// A turn of the agent, spoken or written.
#[derive(Copy, Clone)]
pub(super) struct AgentTurn<'e> {
    /// Position at which its end was told.
    pub reported_at: Sample,
    /// Words of the turn; empty when none are known.
    pub text: &'e str,
    /// Position of the first sample.
    pub from: Sample,
    /// Position one past the last sample.
    pub end: Sample,
    /// 0 to 1 when known.
    pub confidence: Option<f32>,
    /// The words with their times.
    pub words: &'e [Word],
    /// Reason why words of it are not known.
    pub missing: Option<&'e str>,
    /// True if it was answered before its words were known.
    pub late: bool,
    /// True if it was written, not spoken.
    pub written: bool,
    /// True when the agent's side told its words, since none were recognised.
    pub reported: bool,
}

impl AgentTurn<'_> {
    /// True when words of it were not heard.
    pub(crate) fn lacks_words(&self) -> bool {
        self.missing.is_some()
    }
}

/// Returns the turn of the agent that an event tells of.
pub(super) fn turn(event: &Event) -> Option<AgentTurn<'_>> {
    let none = AgentTurn {
        reported_at: event.sample,
        text: "",
        from: event.sample,
        end: event.sample,
        confidence: None,
        words: &[],
        missing: None,
        late: false,
        written: false,
        reported: false,
    };
    match event.reading() {
        EventKind::TurnEnded { text, from_sample, end_sample, confidence, words, missing, late, reported, .. } => {
            Some(AgentTurn {
                text,
                from: *from_sample,
                end: *end_sample,
                confidence: *confidence,
                words,
                missing: missing.as_deref(),
                late: *late,
                reported: *reported,
                ..none
            })
        }
        EventKind::TurnWritten { text, from_sample, end_sample, .. } => {
            Some(AgentTurn { text, from: *from_sample, end: *end_sample, written: true, ..none })
        }
        _ => None,
    }
}

/// Returns the turns of the agent, in order.
pub(super) fn turns(moments: &[TimelineEntry]) -> impl Iterator<Item = AgentTurn<'_>> {
    moments.iter().filter_map(|moment| turn(moment))
}

/// An utterance of the Digital Human that begins or ends.
#[derive(Copy, Clone)]
pub(super) struct Said<'e> {
    /// Position of the beginning or the end.
    pub at: Sample,
    /// Id of the utterance; `None` when it is not stated.
    pub id: Option<u32>,
    /// Kind of the utterance.
    pub kind: Kind,
    /// The words: as planned where it begins, as spoken where it ends.
    pub text: &'e str,
    /// True if it was cut off before its end.
    pub interrupted: bool,
    /// True if it was said word for word as it was written.
    pub exact: bool,
    /// Pauses in it: first sample, and one past the last.
    pub pauses: &'e [[Sample; 2]],
}

impl Said<'_> {
    /// Returns the beginning of the utterance that ends here.
    pub(crate) fn beginning<'m>(&self, moments: &'m [TimelineEntry]) -> Option<Said<'m>> {
        let id = self.id?;
        moments.iter().filter_map(|moment| speech_start(moment)).find(|start| start.id == Some(id))
    }

    /// True for the sound of a probe, which is no turn.
    pub(crate) fn is_sound(&self) -> bool {
        self.kind == Kind::Probe
    }
}

/// Returns the utterance of the Digital Human that begins with an event.
pub(super) fn speech_start(event: &Event) -> Option<Said<'_>> {
    let EventKind::SpeechStarted { utterance_id, text, kind } = event.reading() else { return None };
    let (at, id, kind) = (event.sample, utterance_number(*utterance_id), *kind);
    Some(Said { at, id, kind, text, interrupted: false, exact: false, pauses: &[] })
}

/// Returns the utterance of the Digital Human that ends with an event.
pub(super) fn speech_end(event: &Event) -> Option<Said<'_>> {
    let EventKind::SpeechEnded { utterance_id, text, kind, interrupted, exact, pauses } = event.reading() else {
        return None;
    };
    Some(Said {
        at: event.sample,
        id: utterance_number(*utterance_id),
        kind: *kind,
        text: text.voiced_text(),
        interrupted: *interrupted,
        exact: *exact,
        pauses,
    })
}

/// Returns the utterances of the Digital Human that ended, without the sounds of probes, in order.
pub(super) fn utterances(moments: &[TimelineEntry]) -> impl Iterator<Item = Said<'_>> {
    moments.iter().filter_map(|moment| speech_end(moment)).filter(|end| !end.is_sound())
}

fn utterance_number(id: u32) -> Option<u32> {
    Some(id).filter(|id| *id != NO_UTTERANCE)
}

/// A digit that one side pressed.
#[derive(Copy, Clone)]
pub(super) struct PressedDigit {
    /// True if the Digital Human pressed it.
    pub sent: bool,
    /// Position of its onset.
    pub at: Sample,
    /// 0 to 9, A to D, * or #.
    pub digit: char,
    /// Length of the tone; 0 when it is not stated.
    pub duration_ms: i64,
}

/// Returns the digit that an event tells of.
pub(super) fn pressed_digit(event: &Event) -> Option<PressedDigit> {
    let (sent, digit, duration_ms) = match event.reading() {
        EventKind::DtmfSent { digit, duration_ms, .. } => (true, *digit, *duration_ms),
        EventKind::DtmfReceived { digit, duration_ms, .. } => (false, *digit, *duration_ms),
        _ => return None,
    };
    Some(PressedDigit { sent, at: event.sample, digit, duration_ms: duration_ms.into() })
}

/// Returns the positions at which the Digital Human cut into the agent's words; true where the agent fell silent for
/// it.
pub(super) fn own_cuts(moments: &[TimelineEntry]) -> impl Iterator<Item = (Sample, bool)> {
    moments.iter().filter_map(|moment| match moment.reading() {
        EventKind::BargeIn { by: Side::Dh, stop_ms, .. } => Some((moment.sample, stop_ms.is_some())),
        _ => None,
    })
}

/// Returns the position from which the agent could speak: the one that the call tells, else connect.
pub(super) fn ready(moments: &[TimelineEntry]) -> Sample {
    let events = moments.iter().filter(|moment| matches!(moment.reading(), EventKind::Ready));
    events.map(|moment| moment.sample.min(0)).max().unwrap_or(0)
}

/// Returns the milliseconds from dialling to the moment from which the agent could speak; `None` where nothing was
/// dialled, or the call did not come about.
pub(super) fn setup_ms(moments: &[TimelineEntry]) -> Option<i64> {
    let dialled = moments.iter().find(|moment| matches!(moment.reading(), EventKind::Dialing { .. }))?;
    moments.iter().find(|moment| matches!(moment.reading(), EventKind::Connected { .. }))?;
    Some((ready(moments) - dialled.sample).max(0) / PER_MS)
}

/// Returns the event that ends the conversation; where none is told, the last one.
pub(super) fn end(moments: &[TimelineEntry]) -> Option<&TimelineEntry> {
    moments.iter().find(|moment| matches!(moment.reading(), EventKind::Ended { .. })).or(moments.last())
}

/// Returns a position in whole milliseconds, as words are stored.
pub(super) fn whole_ms(sample: Sample) -> i64 {
    sample / PER_MS
}
