//! Silences on purpose, and ticks in which this side is not heard.

use super::timing::NOT_YET;
use super::{TurnTaking, ms};
use crate::call::event::{EventKind, Kind, Side};
use crate::call::io::{EffectId, Purpose};
use crate::call::utterance::Utterance;
use crate::frame::{FRAME, Sample};

/// Longest silence that the mind chose, in milliseconds.
const STAY_SILENT_MS: u32 = 60_000;

/// A silence that this side keeps on purpose.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    /// Latest end, as a position.
    pub until: Option<Sample>,
    /// True when it ends as the other side begins to speak: the mind's silence.
    pub until_onset: bool,
    /// Words that are said at its end.
    pub then: Option<Utterance>,
    /// True when the mind is asked to go on at its end.
    pub goes_on: bool,
}

impl Hold {
    /// Returns the effects that are not wanted any more when it is dropped.
    pub(super) fn effects(&self) -> Vec<EffectId> {
        self.then.iter().flat_map(Utterance::waiting).collect()
    }
}

impl TurnTaking {
    /// Ends a silence on purpose that is over in this frame, once the other side is silent.
    pub(super) fn run_hold(&mut self) {
        let frame_end = self.scene.at + FRAME as Sample;
        let until = self.hold.as_ref().and_then(|hold| hold.until).filter(|until| *until < frame_end);
        if let Some(until) = until.filter(|_| self.other.since.is_none()) {
            self.end_hold(until);
        }
    }

    /// Ends the held silence at `due`: its words, if any, are planned.
    pub(super) fn end_hold(&mut self, due: Sample) {
        let Some(hold) = self.hold.take() else { return };
        self.quiet_since = self.quiet_since.max(self.scene.at);
        if let Some(utterance) = hold.then {
            self.plan_ready(utterance, due);
        } else if hold.goes_on {
            self.plan_thought(Purpose::GoOn, Kind::Turn, due);
        }
    }

    /// Runs a tick on hold. Everything that was due is delayed by it: planned words, the next digit, the end of a
    /// silence on purpose. Results of earlier speech are still taken in.
    pub(crate) fn stand_still(&mut self) {
        const FRAME_LENGTH: Sample = FRAME as Sample;
        self.run_linger();
        self.run_pause();
        self.quiet_since += FRAME_LENGTH;
        if let Some(plan) = self.plan.as_mut().filter(|plan| plan.due < NOT_YET) {
            plan.due += FRAME_LENGTH;
            plan.late_from += FRAME_LENGTH;
            plan.comparing.iter_mut().for_each(|comparing| comparing.until += FRAME_LENGTH);
        }
        if let Some(hold) = &mut self.hold {
            hold.until.iter_mut().for_each(|until| *until += FRAME_LENGTH);
        }
        self.dial.iter_mut().for_each(|dial| dial.wait(FRAME_LENGTH));
    }

    /// Stops this side's words and interruptions, as nobody receives them from now on.
    pub(crate) fn fall_silent(&mut self) {
        self.drop_barge_in();
        self.stop_speech(self.scene.at);
    }

    /// Begins a silence that the mind chose.
    pub(super) fn stay_silent(&mut self) {
        self.event(self.scene.at, Side::Dh, EventKind::SilenceTool { seconds: STAY_SILENT_MS / 1000 });
        let text = self.rules.phrases.still_there.clone();
        let then = Some(self.words(&text, Kind::Reprompt, true));
        let until = Some(self.scene.at + ms(STAY_SILENT_MS));
        self.hold = Some(Hold { until, until_onset: true, then, goes_on: false });
    }
}
