//! Times of a conversation: when something is due, what silence and its longest time end, and the end itself.

use ringer_media::call::{EndReason, EventKind, Purpose, Side};

use super::{Dialogue, DialogueEnd, Doing, Output};

impl Dialogue {
    /// Returns the time of the next [`Input::Tick`](super::Input::Tick); `None`: none is wanted.
    pub fn due(&self) -> Option<i64> {
        let own = match &self.doing {
            Doing::Holding { until, .. } | Doing::Pausing { until, .. } => Some(*until),
            Doing::Silent { until, .. } => *until,
            Doing::Ending { until, .. } => return *until,
            _ => None,
        };
        let group = self.open.as_ref().and_then(|(_, closes)| *closes);
        let inactive = self.began_ms.or(self.opened_ms).map(|_| self.last_ms + self.spec.inactivity_ms);
        match self.doing {
            Doing::Over => None,
            _ => [own, group, inactive, self.runs_out_at()].into_iter().flatten().min(),
        }
    }

    pub(super) fn timers(&mut self, now: i64) {
        if let Doing::Ending { reason, until } = self.doing {
            if until.is_some_and(|at| now >= at) {
                self.end(self.last_ms, reason, None);
            }
            return;
        }
        if self.runs_out_at().is_some_and(|at| now >= at) && !matches!(self.doing, Doing::Over) {
            return self.run_out(now, EndReason::MaxDuration);
        }
        if self.open.as_ref().is_some_and(|(_, closes)| closes.is_some_and(|at| now >= at))
            && let Some((turn, _)) = self.open.take()
        {
            self.take(turn);
            self.go_on(now);
        }
        match std::mem::replace(&mut self.doing, Doing::Waiting) {
            Doing::Holding { until, answer } if now >= until => self.speak(now, answer),
            Doing::Pausing { until, then } if now >= until => {
                self.hear_waiting();
                match then {
                    Some(answer) => self.speak(now, answer),
                    None => self.think(Purpose::GoOn),
                }
            }
            Doing::Silent { until: Some(until), .. } if now >= until => self.think(Purpose::StillThere),
            doing => self.doing = doing,
        }
        let quiet = self.began_ms.or(self.opened_ms).is_some() && now >= self.last_ms + self.spec.inactivity_ms;
        if quiet && !matches!(self.doing, Doing::Over) {
            self.run_out(now, EndReason::InactivityTimeout);
        }
    }

    /// Returns the time at which the conversation has lasted its longest. A first message that is not answered counts
    /// from its sending, and one that is never written from the moment at which it was due.
    fn runs_out_at(&self) -> Option<i64> {
        let sent_ms = match &self.doing {
            Doing::Sending { since, .. } => Some(*since),
            _ => None,
        };
        self.began_ms.or(sent_ms).or(self.opened_ms).zip(self.spec.max_duration_ms).map(|(began, most)| began + most)
    }

    /// Ends a conversation whose time is over. A message that is on its way was not taken for the reason of its last
    /// attempt, or it was not answered: then the agent was silent where it could answer.
    fn run_out(&mut self, now: i64, reason: EndReason) {
        match std::mem::replace(&mut self.doing, Doing::Waiting) {
            Doing::Sending { trouble: Some(trouble), .. } => self.end(now, EndReason::Fault, Some(trouble)),
            Doing::Sending { .. } if self.began_ms.is_none() => self.end(now, EndReason::NoAnswer, None),
            Doing::Sending { since, answer, .. } if self.spec.sync => {
                self.keep_sent(since, None, &answer);
                self.end(now, reason, None);
            }
            _ => self.end(now, reason, None),
        }
    }

    /// Ends a conversation whose last message was taken and is not answered any more.
    pub(super) fn settle(&mut self, now: i64) {
        if let Doing::Ending { reason, until: None } = self.doing {
            self.end(now, reason, None);
        }
    }

    /// Ends the conversation; nothing follows.
    pub(super) fn end(&mut self, now: i64, reason: EndReason, fault: Option<(&'static str, String)>) {
        if let Some((turn, _)) = self.open.take() {
            self.take(turn);
        }
        self.doing = Doing::Over;
        self.out.retain(|output| matches!(output, Output::Event(_)));
        let by = match reason {
            EndReason::AgentHangup => "AGENT",
            EndReason::Fault | EndReason::Shutdown | EndReason::UsageLimit => "engine",
            _ => "USER",
        };
        let (by, reason_told) = (by.into(), reason.as_str().into());
        self.event(
            now,
            Side::Engine,
            EventKind::Ended { by, reason: reason_told, sip_code: None, q850_cause: None, close_code: None },
        );
        let (began_ms, other_spoke) = (self.began_ms, self.other_spoke);
        self.out.push_back(Output::Ended(DialogueEnd { reason, fault, began_ms, ended_ms: now, other_spoke }));
    }
}
