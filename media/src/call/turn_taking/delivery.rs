//! Carrying a plan out: taking the turn, words, digits, and the step after them.

use std::sync::Arc;

use super::hold::Hold;
use super::plan::{NextStep, PlanStage};
use super::timing::{CONFIRM_MS, OWN_HANGUP_MS};
use super::{Decision, TurnTaking, ms};
use crate::call::dial::Dial;
use crate::call::ending::EndReason;
use crate::call::event::{EventKind, Kind, Side};
use crate::call::io::ConversationLine;
use crate::call::mouth::Said;
use crate::call::spec::{Matching, Opening};
use crate::call::utterance::{Begun, Utterance};
use crate::frame::{FRAME, PER_MS, Sample};

impl TurnTaking {
    pub(super) fn run_plan(&mut self) {
        let frame_end = self.scene.at + FRAME as Sample;
        let Some(plan) = &self.plan else { return };
        if plan.stage == PlanStage::Taken {
            return self.follow_plan();
        }
        let grace = ms(self.rules.turn.recognizer_grace_ms);
        if plan.stage == PlanStage::Hearing && self.scene.at >= plan.due + grace && self.other.since.is_none() {
            self.go_without_text();
        }
        self.run_comparing();
        let Some(plan) = &self.plan else { return };
        let blocked = self.hangup.is_some()
            || self.other.since.is_some()
            || self.mouth.speaking_since().is_some()
            || self.dial.is_some();
        // A sound that is not confirmed yet may be the other side going on; a noise that never is must not hold the
        // turn up.
        let settled = self.scene.at >= plan.late_from + ms(CONFIRM_MS);
        let may_go_on = plan.answers && !settled && self.scene.stirring;
        if plan.due < frame_end && plan.is_ready() && !blocked && !may_go_on {
            self.take_turn();
        }
    }

    /// Answers the text that is known so far. The turn is reported when the rest of its text comes.
    fn go_without_text(&mut self) {
        self.note(self.scene.at, "recognizer_late");
        self.decide_answer();
    }

    fn take_turn(&mut self) {
        let Some(mut plan) = self.plan.take() else { return };
        plan.stage = PlanStage::Taken;
        let at = plan.due.max(self.scene.at);
        self.close_other_turn();
        if plan.reprompt {
            self.reprompts += 1;
            self.event(at, Side::Dh, EventKind::Reprompt { n: self.reprompts });
        }
        if plan.kind == Kind::Opening {
            self.opening = Opening::Listen { open_after_ms: None };
        }
        if let Some(rule) = plan.rule {
            self.tell_rule(rule, at);
        }
        plan.notes.iter().for_each(|code| self.note(at, code));
        if let Some(utterance) = plan.utterance.take() {
            let late = at - plan.late_from;
            if late >= PER_MS {
                let late_ms = (late / PER_MS) as u32;
                self.event(at, Side::Dh, EventKind::LateTurn { late_ms, utterance_id: utterance.id });
            }
            self.begin(utterance, at);
        }
        self.plan = Some(plan);
        self.follow_plan();
    }

    fn tell_rule(&mut self, rule: usize, at: Sample) {
        self.script.fire(rule);
        let rule = &self.rules.script[rule];
        let match_type = match rule.matching {
            Matching::Exact => "exact",
            Matching::Context => "context",
        };
        let response_type = rule.response.kind().into();
        let what = EventKind::ScriptedResponse { index: rule.index, match_type: match_type.into(), response_type };
        self.event(at, Side::Dh, what);
    }

    /// Begins `utterance`, with its first sample at `at`.
    pub(super) fn begin(&mut self, utterance: Utterance, at: Sample) {
        self.cut_probe(at);
        self.unsaid = None;
        self.mouth.say(utterance, at);
    }

    /// Reports the beginning of words, once their true onset is known.
    pub(super) fn speech_begins(&mut self, begun: Begun) {
        let Begun { utterance_id, text, kind, onset } = begun;
        if kind != Kind::Probe {
            self.own_speech_began(onset);
        }
        self.event(onset, Side::Dh, EventKind::SpeechStarted { utterance_id, text, kind });
    }

    /// Sends the digits of the plan after its words, then does what follows.
    fn follow_plan(&mut self) {
        if self.mouth.speaking_since().is_some() || self.dial.is_some() {
            return;
        }
        let Some(plan) = &mut self.plan else { return };
        if !plan.digits.is_empty() {
            if plan.due > self.scene.at {
                return;
            }
            let digits = std::mem::take(&mut plan.digits);
            self.history.push(ConversationLine {
                other: false,
                text: Arc::default(),
                digits: digits.as_str().into(),
                interrupted: false,
            });
            self.dial = Some(Dial::new(&digits, self.scene.at));
            self.cut_probe(self.scene.at);
            self.run_dial();
            return;
        }
        if plan.thinking.is_some() {
            return;
        }
        let next = std::mem::replace(&mut plan.next, NextStep::Listen);
        let due = plan.due;
        self.plan = None;
        match next {
            NextStep::Listen => {}
            NextStep::Hangup { reason, after_ms } => {
                self.hangup = Some((self.quiet_since.min(self.scene.at) + ms(after_ms), reason));
            }
            NextStep::StaySilent => self.stay_silent(),
            NextStep::Pause { ms: pause_ms } => {
                let until = Some(due.max(self.scene.at) + ms(pause_ms));
                self.hold = Some(Hold { until, until_onset: false, then: None, goes_on: true });
            }
            NextStep::Silence { duration_ms, then } => {
                let until = duration_ms.map(|duration| due.max(self.scene.at) + ms(duration));
                let then = then.map(|text| self.words(&text, Kind::Scripted, true));
                self.hold = Some(Hold { until, until_onset: false, then, goes_on: false });
            }
        }
    }

    /// Reports the end of an utterance.
    pub(super) fn said(&mut self, Said { utterance, begun, end, sent, pauses }: Said) {
        if let Some(begun) = begun {
            self.speech_begins(begun);
        }
        let (spoken, left) = utterance.split();
        let interrupted = !left.is_empty();
        // The other side went on while more words were to come: they would answer what it said before.
        let overtaken = utterance.is_stopping() && utterance.open;
        let own_phrase = self.ends_call(&spoken);
        let (utterance_id, kind, exact) = (utterance.id, utterance.kind, utterance.exact);
        self.answered_by_own_words();
        self.history.push(ConversationLine {
            other: false,
            text: spoken.as_str().into(),
            digits: Arc::default(),
            interrupted,
        });
        let what = EventKind::SpeechEnded { utterance_id, text: spoken, kind, interrupted, exact, pauses };
        self.event(end, Side::Dh, what);
        if interrupted {
            self.decide(Decision::ClearBuffered);
        }
        self.unsaid = interrupted.then_some(left);
        self.quiet_since = self.quiet_since.max(end);
        self.active_at = self.active_at.max(end);
        self.own_speech_ended(end, sent);
        if own_phrase && !interrupted {
            self.hangup = Some((end + ms(OWN_HANGUP_MS), EndReason::HangupPhrase));
        }
        // All its words may have been heard although its last part has not come.
        self.cancel(utterance.waiting().collect());
        if interrupted || overtaken {
            let plan = self.plan.take_if(|plan| plan.stage == PlanStage::Taken);
            self.cancel(plan.map(|plan| plan.effects()).unwrap_or_default());
        }
    }

    /// Cuts this side's words at `end`, where the call ends.
    pub(crate) fn stop_speech(&mut self, end: Sample) {
        self.cut_probe(end);
        if let Some(said) = self.mouth.cut_off(end.max(0)) {
            self.said(said);
        }
    }
}
