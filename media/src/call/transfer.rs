//! Transfers that the other side asks for (SIP REFER): declined, left by, or followed to whoever answers.

use std::time::Duration;

use super::Call;
use super::ending::EndReason;
use super::event::{Code, EventKind, Side};
use super::io::{Control, Onward, Output};
use crate::frame::FRAME;
use crate::leg::LegParams;
use crate::time::Time;

/// The target of a transfer while it is being called.
#[derive(Debug)]
pub(super) struct Target {
    since: Time,
    /// The other side has left.
    alone: bool,
    given_up: bool,
}

impl Call {
    /// Answers a transfer that the other side asks for. It is declined before the call is up, and while another target
    /// is being called.
    pub(super) fn transfer(&mut self, now: Time, to: String, can_follow: bool) {
        let up = self.phase.is_connected();
        let answer = match self.waits.target {
            None if up && self.spec.hangup_on_transfer => Onward::Leave,
            None if up && can_follow => Onward::Follow,
            _ => Onward::Decline,
        };
        self.out.push(Output::Control(Control::Transfer(answer)));
        if up {
            let at = self.sample(now).clamp(0, self.frame_at);
            self.event(at, Side::Agent, EventKind::Transfer { to, accepted: answer != Onward::Decline });
        }
        match answer {
            Onward::Decline => {}
            Onward::Leave => self.end_now(now, EndReason::Transfer),
            Onward::Follow => self.waits.target = Some(Target { since: now, alone: false, given_up: false }),
        }
    }

    /// True while nobody is there: the other side has left, and the target of its transfer has not answered.
    pub(super) fn is_alone(&self) -> bool {
        self.waits.target.as_ref().is_some_and(|target| target.alone)
    }

    pub(super) fn left_alone(&mut self) {
        let Some(target) = &mut self.waits.target else { return };
        target.alone = true;
        self.fall_silent();
    }

    /// Ends the call to a target that rings for longer than an agent may.
    pub(super) fn run_target(&mut self, now: Time) {
        let patience = Duration::from_millis(self.spec.limits.ringing_ms.into());
        let Some(target) = &mut self.waits.target else { return };
        if target.alone {
            self.turn_taking.stay_active(FRAME as i64);
        }
        if now.since(target.since) >= patience && !std::mem::replace(&mut target.given_up, true) {
            self.out.push(Output::Control(Control::CancelTarget));
        }
    }

    /// Takes the outcome of a transfer. With `leg`, media come from the target now, on the same clock; without it
    /// nothing changes.
    pub(super) fn take_outcome(&mut self, now: Time, to: String, outcome: Code, code: u16, leg: Option<LegParams>) {
        if self.waits.target.take().is_none() || !self.phase.is_connected() {
            return;
        }
        let at = self.sample(now).clamp(0, self.frame_at);
        self.event(at, Side::Engine, EventKind::Transferred { to, outcome, code });
        self.waits.media_at = Some(now);
        let Some(params) = leg else { return };
        // The side that held the call is gone.
        if std::mem::take(&mut self.waits.on_hold) {
            self.event(at, Side::Agent, EventKind::Unheld);
        }
        if !self.leg.as_mut().is_some_and(|leg| leg.renegotiate(params)) {
            self.note(self.frame_at, "codec_change_not_followed");
        } else if self.is_mute() {
            self.fall_silent();
        }
    }
}
