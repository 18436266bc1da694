//! On hold: nobody hears this side, so nothing of the conversation goes on until it is taken back.

use super::answer::NOT_YET;
use super::{Call, Side, What};
use crate::frame::{FRAME, Sample};
use crate::time::Time;

impl Call {
    /// True while this side is not heard: the other side put it on hold, or does not want to hear it.
    pub(super) fn is_held(&self) -> bool {
        self.waits.on_hold || self.is_mute()
    }

    /// True while nothing is sent because the other side does not want to hear.
    pub(super) fn is_mute(&self) -> bool {
        self.leg.as_ref().is_some_and(|leg| !leg.params().may_send)
    }

    /// From now on nobody hears this side: what it is saying ends, and it cuts in no more.
    pub(super) fn fall_silent(&mut self) {
        self.drop_cut();
        self.stop_speech(self.frame_at);
    }

    /// A tick on hold. What was due is due so much later: planned words, the next digit, the end of a silence on purpose. What was
    /// heard before is still taken in.
    pub(super) fn stand_still(&mut self) {
        const FRAME_LENGTH: Sample = FRAME as Sample;
        self.run_linger();
        self.run_pause();
        self.waits.quiet_since += FRAME_LENGTH;
        if let Some(plan) = self.plan.as_mut().filter(|plan| plan.due < NOT_YET) {
            plan.due += FRAME_LENGTH;
            plan.floor += FRAME_LENGTH;
            plan.comparing.iter_mut().for_each(|comparing| comparing.until += FRAME_LENGTH);
        }
        if let Some(hold) = &mut self.hold {
            hold.until.iter_mut().for_each(|until| *until += FRAME_LENGTH);
        }
        self.dial.iter_mut().for_each(|dial| dial.wait(FRAME_LENGTH));
    }

    /// Tells what arrives and is not heard, each kind once.
    pub(super) fn tell_unheard(&mut self, now: Time) {
        while let Some((leg, what)) = self.leg.as_mut().and_then(|leg| leg.unheard(now).map(|what| (leg, what))) {
            let why = what.why(leg.params().codec, leg.params().receive_payload_type);
            self.event(self.frame_at, Side::Engine, What::Note { code: what.code(), why });
        }
    }
}
