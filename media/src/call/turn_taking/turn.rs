//! The other side's turns: when they begin and end, and the text that comes for them.
//!
//! A turn stays open over pauses up to the endpointing delay, also while this side speaks. Closed after 120 ms it began
//! anew at each comma, with four interruptions in one monologue of 27 s. An overlap is over after 300 ms of silence.
//!
//! A sound of almost 200 ms followed by a gap is decided when it goes on. Until then it may be a short one, which is
//! ignored. Of 31 barge-ins three came 7 to 34 ms later for it. In noise the rule for both sides starting waits as
//! yielding does: the onset may be taken back.

use super::hearing::OtherTurn;
use super::plan::PlanStage;
use super::timing::{CONFIRM_MS, JOINED_MS, PHRASE_HANGUP_MS, SHORT_MS};
use super::{Decision, TurnTaking, ms};
use crate::call::ending::EndReason;
use crate::call::event::{EventKind, Kind, Side};
use crate::call::io::{Effect, EffectId, Purpose};
use crate::call::script::contains_phrase;
use crate::call::spec::Phrases;
use crate::frame::Sample;

/// A recognizer hears words that belong together better in one piece: it goes on through pauses of this length, when
/// the endpointing delay leaves [`ANSWER_MS`] for its final text and the answer.
const LINGER_MS: u32 = 400;
const ANSWER_MS: u32 = 700;

impl TurnTaking {
    pub(super) fn other_speaks(&mut self, onset: Sample) {
        self.other.since = Some(onset);
        self.other_turn_begins(onset);
    }

    /// Takes what the other side has said, or says, while an extension was dialled: words that go on belong to the
    /// conversation. A turn that is over already is reported, and neither answered nor counted.
    pub(super) fn take_early_turn(&mut self) {
        let Some(turn) = self.other.turn.as_mut().filter(|turn| turn.is_early) else { return };
        let Some(onset) = self.other.since else { return self.close_other_turn() };
        turn.is_early = false;
        self.draw_interruption(onset);
    }

    /// Begins a segment: a new turn, or more of the one that was not answered yet.
    pub(super) fn other_turn_begins(&mut self, onset: Sample) {
        let is_early = self.start.is_none();
        if !is_early {
            self.drop_answer();
        }
        // The last turn that was wanted is not over yet.
        self.hangup.take_if(|(_, reason)| *reason == EndReason::MaxTurns);
        if let Some(hold) = self.hold.take_if(|hold| hold.until_onset) {
            self.cancel(hold.effects());
        }
        let is_new = self.other.turn.as_ref().is_none_or(|turn| !turn.has_speech());
        let mut turn = self.other.turn.take().unwrap_or_else(|| OtherTurn::new(onset, self.concealed.before(onset)));
        turn.is_early = is_early;
        let goes_on = self.linger.take().is_some();
        if self.scene.text && !goes_on {
            turn.open(self.effect(Effect::Hear { from: onset }));
            self.feeding = true;
            self.decide(Decision::Feed(onset));
        } else if !self.scene.text {
            turn.open_deaf();
        }
        self.give_reported(&mut turn);
        self.other.turn = Some(turn);
        self.other.over_at = None;
        self.overlap_goes_on(onset);
        if let Some(started) = self.mouth.speaking_since() {
            self.overlap_begins(started, onset);
        }
        if is_new && !is_early {
            self.draw_interruption(onset);
        }
    }

    pub(super) fn other_stops(&mut self, end: Sample) {
        let onset = self.other.since.take().unwrap_or(end);
        let long = end - onset > ms(SHORT_MS);
        self.other.ended = Some(end);
        self.other.spoke |= long;
        self.quiet_since = self.quiet_since.max(end);
        self.active_at = self.active_at.max(end);
        if long {
            self.reprompts = 0;
        }
        let Some(turn) = &mut self.other.turn else {
            self.feeding = false;
            return;
        };
        turn.end = end;
        turn.concealed[1] = self.concealed.before(end);
        turn.counts |= long;
        match self.linger_ms() {
            0 => self.close_segment(),
            linger_ms => self.linger = Some(end + ms(linger_ms)),
        }
        self.overlap_ends(end);
        let Some(turn) = &self.other.turn else { return };
        if turn.is_early {
            self.other.over_at = Some(end + ms(JOINED_MS));
        } else if self.mouth.speaking_since().is_some() {
            self.leave_unanswered(end);
        } else if turn.counts || !turn.digits.is_empty() {
            self.plan_answer(end, self.rules.turn.endpointing_delay_ms);
        } else {
            self.close_other_turn();
            self.resume(end);
        }
    }

    /// Leaves a turn without an answer: it is over when it does not go on within the time in which one would have
    /// begun.
    pub(super) fn leave_unanswered(&mut self, end: Sample) {
        let counts = self.other.turn.as_ref().is_some_and(|turn| turn.counts);
        let within_ms = match counts && self.rules.hangup_phrases.is_empty() {
            true => self.rules.turn.endpointing_delay_ms.max(JOINED_MS),
            false => JOINED_MS,
        };
        self.other.over_at = Some(end + ms(within_ms));
        if counts {
            self.hang_up_after(self.other.turns + 1, end);
        }
    }

    /// Plans the hang-up when the limit of turns is reached: `turns` are over, or will be unless the last one goes on
    /// after `end`.
    fn hang_up_after(&mut self, turns: u32, end: Sample) {
        let enough = self.rules.max_turns.is_some_and(|limit| turns >= limit);
        if enough && self.hangup.is_none() {
            self.hangup = Some((end + ms(self.rules.turn.endpointing_delay_ms), EndReason::MaxTurns));
        }
    }

    /// Ends the other side's turn after this side's words, unless that side had hardly paused.
    pub(super) fn answered_by_own_words(&mut self) {
        if let (Some(over_at), Some(ended)) = (&mut self.other.over_at, self.other.ended) {
            *over_at = (*over_at).min(ended + ms(JOINED_MS));
        }
        self.run_pause();
    }

    /// Ends the turn that nobody answers, or the overlap of both sides, when a pause was long enough.
    pub(super) fn run_pause(&mut self) {
        // A sound that is not confirmed yet may be the other side going on.
        let sure = if self.scene.stirring { ms(CONFIRM_MS) } else { 0 };
        if self.other.over_at.is_some_and(|at| self.scene.at >= at + sure) {
            self.close_other_turn();
        }
        self.settle_pause(self.scene.at - ms(JOINED_MS) - sure);
    }

    /// Returns the length of pauses through which the recognizer's segment goes on. Hang-up phrases act soon after a
    /// turn, so that their text is wanted at once, as far as the recognizer takes parts.
    fn linger_ms(&self) -> u32 {
        let lingers = self.rules.whole_speech || self.rules.hangup_phrases.is_empty();
        let wanted = if lingers { LINGER_MS } else { 0 };
        self.rules.turn.endpointing_delay_ms.saturating_sub(ANSWER_MS).min(wanted)
    }

    /// Ends a segment for the recognizer, when a pause was long enough.
    pub(super) fn run_linger(&mut self) {
        if self.linger.is_some_and(|until| self.scene.at >= until) {
            self.close_segment();
            self.decide_when_final();
        }
    }

    fn close_segment(&mut self) {
        self.linger = None;
        self.feeding = false;
        let recognize = EffectId(self.last_effect + 1);
        let Some(turn) = &mut self.other.turn else { return };
        let to = turn.end;
        if let Some(hear) = turn.close_segment(recognize) {
            self.effect(Effect::Recognize { hear, to });
        }
    }

    /// Takes up this side's words or opening again, after a sound too short for words had stopped them.
    fn resume(&mut self, end: Sample) {
        if self.plan.is_some() || self.hangup.is_some() || self.start.is_none() {
            return;
        }
        let due = end + ms(self.rules.turn.endpointing_delay_ms);
        if self.history.last().is_some_and(|line| !line.other && line.interrupted) {
            self.plan_thought(Purpose::Reply, Kind::Turn, due);
        } else if self.history.is_empty() {
            self.plan_opening(due, None);
        }
    }

    /// Ends the turn: its line joins the conversation, its text may still come.
    pub(super) fn close_other_turn(&mut self) {
        if self.linger.is_some() {
            self.close_segment();
        }
        self.other.over_at = None;
        self.settle_pause(self.scene.at);
        let Some(mut turn) = self.other.turn.take() else { return };
        let is_turn = turn.counts || !turn.digits.is_empty();
        if !is_turn {
            self.keep_wanted_barge_in();
        }
        self.drop_barge_in();
        if !is_turn {
            let left = turn.give_up();
            self.cancel(left);
            // It was no turn: those before it may have been enough.
            return self.hang_up_after(self.other.turns, turn.end);
        }
        if turn.is_early {
            self.other.closing.push(turn);
            return self.tell_closed_turns();
        }
        if turn.counts {
            self.other.turns += 1;
            self.hang_up_after(self.other.turns, turn.end);
        }
        turn.line = Some(self.history.len());
        self.history.push(turn.as_line());
        self.other.closing.push(turn);
        self.tell_closed_turns();
    }

    /// Reports the turns whose text is final.
    pub(super) fn tell_closed_turns(&mut self) {
        while let Some(at) = self.other.closing.iter().position(OtherTurn::is_final) {
            let mut turn = self.other.closing.remove(at);
            self.hang_up_on_phrase(&turn);
            self.identify(&turn);
            if let Some(line) = turn.line.and_then(|at| self.history.get_mut(at)) {
                *line = turn.as_line();
            }
            let what = EventKind::TurnEnded {
                text: turn.text().as_ref().into(),
                from_sample: turn.from,
                end_sample: turn.end,
                confidence: turn.confidence(),
                words: turn.take_words().into(),
                concealed_ms: turn.concealed[1].saturating_sub(turn.concealed[0]),
                missing: turn.missing().map(Into::into),
                late: turn.late,
                reported: turn.is_reported(),
            };
            self.event(turn.end, Side::Agent, what);
        }
    }

    /// Asks for the language of a turn, once its text is final: running text does not say whose words it is made of.
    pub(super) fn identify(&mut self, turn: &OtherTurn) {
        if self.rules.follows_language && turn.is_final() && !turn.text().is_empty() {
            let text = turn.text().as_ref().into();
            self.effect(Effect::Identify { turn: turn.from, text, detected: turn.detected_language() });
        }
    }

    /// Changes to the other side's language. Everything made ready in another one is made anew; `phrases` are in the
    /// new one.
    pub(super) fn speak(
        &mut self,
        language: String,
        by: &'static str,
        from_sample: Sample,
        phrases: Option<Box<Phrases>>,
    ) {
        self.event(self.scene.at, Side::Engine, EventKind::LanguageTaken { language, by: by.into(), from_sample });
        let Some(phrases) = phrases else { return };
        self.rules.phrases = *phrases;
        self.renew_keywords();
        self.renew_probes();
    }

    /// Hangs up on a phrase that ends the call, in a turn that is answered already or never will be.
    fn hang_up_on_phrase(&mut self, turn: &OtherTurn) {
        if self.hangup.is_none() && !turn.is_early && self.ends_call(turn.text()) {
            let due = turn.end + ms(PHRASE_HANGUP_MS);
            self.hangup = Some((due.max(self.scene.at), EndReason::HangupPhrase));
        }
    }

    pub(super) fn ends_call(&self, text: &str) -> bool {
        self.rules.hangup_phrases.iter().any(|phrase| contains_phrase(text, phrase))
    }

    /// Gives up waiting for the text of turns that ended before `end`.
    pub(crate) fn close_late(&mut self, end: Sample) {
        if !self.other.closing.iter().any(|turn| turn.end < end) {
            return;
        }
        let late = self.other.closing.iter_mut().filter(|turn| turn.end < end);
        let left: Vec<EffectId> = late.flat_map(OtherTurn::give_up).collect();
        self.cancel(left);
        self.tell_closed_turns();
    }

    /// Ends the other side's running turn where the call ends. Its speech was last heard at `heard`.
    pub(crate) fn end_other_turn(&mut self, heard: Sample) {
        if self.other.since.is_some() {
            self.other_stops(heard);
        }
        self.close_other_turn();
    }

    pub(super) fn digit_heard(&mut self, digit: char, from: Sample, duration_ms: u32, method: &'static str) {
        self.event(from, Side::Agent, EventKind::DtmfReceived { digit, method: method.into(), duration_ms });
        let end = from + ms(duration_ms);
        self.active_at = self.active_at.max(end);
        let turn = self.other.turn.get_or_insert_with(|| OtherTurn::new(from, self.concealed.before(from)));
        turn.digits.push(digit);
        turn.end = turn.end.max(end);
        turn.concealed[1] = self.concealed.before(turn.end);
        let Some(delay_ms) = self.rules.turn.digit_turn_ms else { return };
        if !self.rules.turn.digits_stop && self.mouth.saying().is_some() {
            return;
        }
        self.drop_answer();
        if let Some(said) = self.mouth.saying() {
            said.stop();
            // The step after these words is dropped with them: the digits are answered instead.
            let taken = self.plan.take_if(|plan| plan.stage == PlanStage::Taken);
            self.cancel(taken.map(|plan| plan.effects()).unwrap_or_default());
        }
        self.plan_answer(end, delay_ms);
    }
}
