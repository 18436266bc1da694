//! The start of the conversation, digits that are sent, and mutual silence.

use super::{Decision, TurnTaking, ms};
use crate::call::dial::Dial;
use crate::call::ending::EndReason;
use crate::call::event::Kind;
use crate::frame::Sample;

/// A re-prompt's speech is ordered this much ahead.
const REPROMPT_AHEAD_MS: u32 = 1000;
/// Time from connect to the first digit of an extension, in milliseconds.
const EXTENSION_AFTER_MS: u32 = 500;
/// Time from the last tone of an extension to the start of the conversation, in milliseconds.
const CONVERSATION_AFTER_MS: u32 = 300;

impl TurnTaking {
    /// Begins with the digits of an extension, if there is one. The conversation begins behind it.
    pub(crate) fn begin_call(&mut self, extension: Option<&str>) {
        match extension {
            Some(digits) => self.dial = Some(Dial::new(digits, ms(EXTENSION_AFTER_MS))),
            None => self.begin_conversation(0),
        }
    }

    /// Begins the conversation at `at`.
    pub(super) fn begin_conversation(&mut self, at: Sample) {
        self.start = Some(at);
        self.quiet_since = at;
        self.active_at = at;
        // It is no answer to what the other side says already.
        let prepared = self.take_prepared();
        self.take_early_turn();
        self.plan_opening(at.max(self.scene.at), prepared);
    }

    /// Sends the digit that is due; the conversation begins behind the last one of an extension.
    pub(crate) fn run_dial(&mut self) {
        let at = self.scene.at;
        let Some(dial) = &mut self.dial else { return };
        if let Some(digit) = dial.due(at) {
            self.decide(Decision::Digit { digit, at });
        }
        if let Some(end) = self.dial.as_ref().and_then(|dial| dial.end_of_digits(at)) {
            self.dial = None;
            self.quiet_since = self.quiet_since.max(end);
            self.active_at = self.active_at.max(end);
            if self.start.is_none() {
                self.begin_conversation(end + ms(CONVERSATION_AFTER_MS));
            }
        }
    }

    /// Acts on mutual silence since `quiet_since`: this side opens, plans the re-prompt, or hangs up at the second
    /// time-out.
    pub(super) fn run_silence(&mut self) {
        if !self.is_quiet() || self.hold.is_some() || self.start.is_none() || self.hangup.is_some() {
            return;
        }
        let at = self.scene.at;
        // Nobody is asked who is not there.
        if self.scene.away {
            self.quiet_since = self.quiet_since.max(at);
            return;
        }
        if self.opens_itself(at - self.quiet_since) || self.plan.is_some() {
            return;
        }
        let due = self.quiet_since + ms(self.rules.turn.silence_timeout_ms);
        if self.reprompts > 0 && at >= due {
            self.hangup = Some((due, EndReason::SilenceTimeout));
        } else if self.reprompts == 0 && at >= due - ms(REPROMPT_AHEAD_MS) {
            let text = self.rules.phrases.reprompt.clone();
            self.plan_words(&text, Kind::Reprompt, due);
            self.plan.iter_mut().for_each(|plan| plan.reprompt = true);
        }
    }
}
