//! Times in which this side is not heard: on hold, mute, or alone.

use super::Call;
use crate::frame::Sample;

impl Call {
    /// True while this side is not heard: the other side put it on hold, does not want to hear it, or has left for a
    /// transfer.
    pub(super) fn is_held(&self) -> bool {
        self.waits.on_hold || self.is_mute() || self.is_alone()
    }

    /// True while nothing is sent because the other side does not want to hear.
    pub(super) fn is_mute(&self) -> bool {
        self.leg.as_ref().is_some_and(|leg| !leg.may_send())
    }

    /// Stops this side's words and interruptions, as nobody receives them from now on.
    pub(super) fn fall_silent(&mut self) {
        self.turn_taking().fall_silent();
        self.carry_out();
        self.announce_silence();
    }

    /// Cuts this side's words at `end`, where the call ends.
    pub(super) fn stop_speech(&mut self, end: Sample) {
        self.turn_taking().stop_speech(end);
        self.carry_out();
        self.announce_silence();
    }
}
