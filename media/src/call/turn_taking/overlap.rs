//! Overlaps of both sides' speech, and their report as a barge-in once their length is known.

use super::timing::{JOINED_MS, SHORT_MS};
use super::{TurnTaking, ms};
use crate::call::event::{EventKind, Side};
use crate::frame::{Sample, whole_ms};

/// Longest overlapping sound, in milliseconds, that counts as a backchannel when it does not stop the speaker.
const BACKCHANNEL_MS: u32 = 600;

/// A stretch in which both sides speak.
#[derive(Debug)]
pub(super) struct Overlap {
    by: Side,
    at: Sample,
    /// This side's words were over here, and the other side's end was not known yet: their true end, and one past the
    /// last sample that was sent.
    own_end: Option<[Sample; 2]>,
    /// The other side fell silent here; it may still go on.
    other_end: Option<Sample>,
}

impl Overlap {
    /// Returns an overlap that `by` caused at `at`.
    pub(super) fn new(by: Side, at: Sample) -> Overlap {
        Overlap { by, at, own_end: None, other_end: None }
    }
}

impl TurnTaking {
    /// Begins an overlap: the other side's speech is confirmed while this side speaks.
    pub(super) fn overlap_begins(&mut self, started: Sample, onset: Sample) {
        if self.overlap.is_none() {
            let (by, at) = if onset >= started { (Side::Agent, onset) } else { (Side::Dh, started) };
            self.overlap = Some(Overlap::new(by, at));
        }
    }

    /// Takes up an overlap again when the other side speaks from `onset` on; after a short pause it had not stopped.
    pub(super) fn overlap_goes_on(&mut self, onset: Sample) {
        self.settle_pause(onset - ms(JOINED_MS));
        if let Some(overlap) = &mut self.overlap {
            overlap.other_end = None;
        }
    }

    /// Notes that the other side fell silent at `end`.
    pub(super) fn overlap_ends(&mut self, end: Sample) {
        if let Some(overlap) = &mut self.overlap {
            overlap.other_end = Some(end);
        }
    }

    /// Reports an overlap in which the other side fell silent at `by` or before.
    pub(super) fn settle_pause(&mut self, by: Sample) {
        if self.overlap.as_ref().is_some_and(|overlap| overlap.other_end.is_some_and(|end| end <= by)) {
            self.settle_overlap();
        }
    }

    /// Corrects an overlap by the true onset of this side's words: both sides cannot have spoken before it.
    pub(super) fn own_speech_began(&mut self, onset: Sample) {
        if let Some(overlap) = self.overlap.as_mut().filter(|overlap| overlap.at < onset) {
            (overlap.by, overlap.at) = (Side::Dh, onset);
        }
    }

    /// Notes that this side's words were over at `end`. Whether the other side had stopped before is known some 120 ms
    /// later.
    pub(super) fn own_speech_ended(&mut self, end: Sample, sent: Sample) {
        if let Some(overlap) = &mut self.overlap {
            overlap.own_end.get_or_insert([end, sent]);
        }
        if self.other.since.is_none() && self.overlap.as_ref().is_some_and(|overlap| overlap.other_end.is_none()) {
            self.settle_overlap();
        }
    }

    /// Reports the overlap that is over, when its length is known.
    pub(super) fn settle_overlap(&mut self) {
        let Some(Overlap { by, at, own_end, other_end }) = self.overlap.take() else { return };
        let other_stopped = other_end.is_some_and(|end| own_end.is_none_or(|[own, _]| end <= own));
        let ended = if other_stopped { other_end.map(|end| [end, end]) } else { own_end };
        // How long this side spoke on does not depend on how loud its last sounds were.
        let Some([overlap_ms, spoken_ms]) = ended.map(|ends| ends.map(|end| whole_ms((end - at).max(0)) as u32)) else {
            return;
        };
        // A sound of the other side that stops nobody counts only when it is longer than a backchannel. Own words
        // overlap nothing when the other side had stopped before it could be known.
        let least_ms = match by {
            Side::Dh => 1,
            _ if other_stopped => BACKCHANNEL_MS,
            _ => SHORT_MS,
        };
        let stop_ms = (other_stopped == (by == Side::Dh)).then_some(overlap_ms);
        if spoken_ms >= least_ms && overlap_ms > 0 {
            self.event(at, by, EventKind::BargeIn { by, overlap_ms, stop_ms });
        }
    }
}
