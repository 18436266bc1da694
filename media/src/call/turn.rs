//! The other side's turns: when they begin and end, and the text that comes for them.
//!
//! A turn stays open over pauses up to the endpointing delay, also while this side speaks. Closed after 120 ms it began
//! anew at each comma, with four interruptions in one monologue of 27 s. An overlap is over after 300 ms of silence.
//!
//! A sound of almost 200 ms followed by a gap is decided when it goes on. Until then it may be a short one, which is
//! ignored. Of 31 barge-ins three came 7 to 34 ms later for it. In noise the rule for both sides starting waits as
//! yielding does: the onset may be taken back.

use super::delivery::CONFIRM_MS;
use super::ending::{EndReason, Fault};
use super::event::{Kind, Side, What};
use super::hearing::OtherTurn;
use super::io::{Effect, EffectId, Effected, Move, Purpose};
use super::plan::Stage;
use super::script::contains_phrase;
use super::spec::Phrases;
use super::{Call, ms};
use crate::echo::EchoGuard;
use crate::frame::Sample;
use crate::time::Time;
use crate::vad::Edge;

/// Other sound not longer than this is no speech: on the 10 ms grid of its edges a sound seems up to 20 ms longer than it is.
pub(super) const SHORT_MS: u32 = 200;
/// Speech that goes on after less than this never stopped: measures join it, too.
pub(super) const JOINED_MS: u32 = 300;
/// A recognizer hears words that belong together better in one piece: it goes on through pauses of this length, when the
/// endpointing delay leaves [`ANSWER_MS`] for its final text and the answer.
const LINGER_MS: u32 = 400;
const ANSWER_MS: u32 = 700;
/// Milliseconds from the end of a hang-up phrase of the other side to the hang-up.
pub(super) const PHRASE_HANGUP_MS: u32 = 300;

impl Call {
    pub(super) fn other_speaks(&mut self, onset: Sample) {
        self.other.since = Some(onset);
        if self.waits.start.is_some() {
            self.other_turn_begins(onset);
        }
    }

    /// Begins a segment: a new turn, or more of the one that was not answered yet.
    pub(super) fn other_turn_begins(&mut self, onset: Sample) {
        self.drop_answer();
        // The last turn that was wanted is not over yet.
        self.waits.hangup.take_if(|(_, reason)| *reason == EndReason::MaxTurns);
        if let Some(hold) = self.hold.take_if(|hold| hold.until_onset) {
            self.cancel(hold.effects());
        }
        let is_new = self.other.turn.as_ref().is_none_or(|turn| !turn.has_speech());
        let mut turn =
            self.other.turn.take().unwrap_or_else(|| OtherTurn::new(onset, self.ears.concealed.before(onset)));
        let goes_on = self.ears.linger.take().is_some();
        if self.ears.which.text && !goes_on {
            turn.open(self.effect(Effect::Hear { from: onset }));
            self.feed_from(onset);
        } else if !self.ears.which.text {
            turn.open_deaf();
        }
        self.give_reported(&mut turn);
        self.other.turn = Some(turn);
        self.other.over_at = None;
        self.overlap_goes_on(onset);
        if let Some(started) = self.mouth.speaking_since() {
            self.overlap_begins(started, onset);
        }
        if is_new {
            self.draw_interruption(onset);
        }
    }

    pub(super) fn other_stops(&mut self, end: Sample) {
        let onset = self.other.since.take().unwrap_or(end);
        let long = end - onset > ms(SHORT_MS);
        self.other.ended = Some(end);
        self.other.spoke |= long;
        self.waits.quiet_since = self.waits.quiet_since.max(end);
        self.waits.active_at = self.waits.active_at.max(end);
        if long {
            self.waits.reprompts = 0;
        }
        let Some(turn) = &mut self.other.turn else {
            self.ears.feeding = false;
            return;
        };
        turn.end = end;
        turn.concealed[1] = self.ears.concealed.before(end);
        turn.counts |= long;
        match self.linger_ms() {
            0 => self.close_segment(),
            linger_ms => self.ears.linger = Some(end + ms(linger_ms)),
        }
        self.overlap_ends(end);
        let Some(turn) = &self.other.turn else { return };
        if self.mouth.speaking_since().is_some() {
            self.leave_unanswered(end);
        } else if turn.counts || !turn.digits.is_empty() {
            self.plan_answer(end, self.spec.turn.endpointing_delay_ms);
        } else {
            self.close_other_turn();
            self.resume(end);
        }
    }

    /// Leaves a turn without an answer: it is over when it does not go on within the time in which one would have
    /// begun.
    pub(super) fn leave_unanswered(&mut self, end: Sample) {
        let counts = self.other.turn.as_ref().is_some_and(|turn| turn.counts);
        let within_ms = match counts && self.spec.hangup_phrases.is_empty() {
            true => self.spec.turn.endpointing_delay_ms.max(JOINED_MS),
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
        let enough = self.spec.limits.max_turns.is_some_and(|limit| turns >= limit);
        if enough && self.waits.hangup.is_none() {
            self.waits.hangup = Some((end + ms(self.spec.turn.endpointing_delay_ms), EndReason::MaxTurns));
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
        let sure = if self.ears.voice.vad().is_stirring() { ms(CONFIRM_MS) } else { 0 };
        if self.other.over_at.is_some_and(|at| self.frame_at >= at + sure) {
            self.close_other_turn();
        }
        self.settle_pause(self.frame_at - ms(JOINED_MS) - sure);
    }

    /// Returns the length of pauses through which the recognizer's segment goes on. Hang-up phrases act soon after a
    /// turn, so that their text is wanted at once, as far as the recognizer takes parts.
    fn linger_ms(&self) -> u32 {
        let lingers = self.spec.ears.whole || self.spec.hangup_phrases.is_empty();
        let wanted = if lingers { LINGER_MS } else { 0 };
        self.spec.turn.endpointing_delay_ms.saturating_sub(ANSWER_MS).min(wanted)
    }

    /// Ends a segment for the recognizer, when a pause was long enough.
    pub(super) fn run_linger(&mut self) {
        if self.ears.linger.is_some_and(|until| self.frame_at >= until) {
            self.close_segment();
            self.decide_when_final();
        }
    }

    fn close_segment(&mut self) {
        self.ears.linger = None;
        self.ears.feeding = false;
        let recognize = EffectId(self.last_effect + 1);
        let Some(turn) = &mut self.other.turn else { return };
        let to = turn.end;
        if let Some(hear) = turn.close_segment(recognize) {
            self.effect(Effect::Recognize { hear, to });
        }
    }

    /// Takes up this side's words or opening again, after a sound too short for words had stopped them.
    fn resume(&mut self, end: Sample) {
        if self.plan.is_some() || self.waits.hangup.is_some() || self.waits.start.is_none() {
            return;
        }
        let due = end + ms(self.spec.turn.endpointing_delay_ms);
        if self.history.last().is_some_and(|line| !line.other && line.interrupted) {
            self.plan_thought(Purpose::Reply, Kind::Turn, due);
        } else if self.history.is_empty() {
            self.plan_opening(due, None);
        }
    }

    /// Ends the turn: its line joins the conversation, its text may still come.
    pub(super) fn close_other_turn(&mut self) {
        if self.ears.linger.is_some() {
            self.close_segment();
        }
        self.other.over_at = None;
        self.settle_pause(self.frame_at);
        let Some(mut turn) = self.other.turn.take() else { return };
        let is_turn = turn.counts || !turn.digits.is_empty();
        if !is_turn {
            self.keep_wanted_cut();
        }
        self.drop_cut();
        if !is_turn {
            let left = turn.give_up();
            self.cancel(left);
            // It was no turn: those before it may have been enough.
            return self.hang_up_after(self.other.turns, turn.end);
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
    fn tell_closed_turns(&mut self) {
        while let Some(at) = self.other.closing.iter().position(OtherTurn::is_final) {
            let mut turn = self.other.closing.remove(at);
            self.hang_up_on_phrase(&turn);
            self.identify(&turn);
            if let Some(line) = turn.line.and_then(|at| self.history.get_mut(at)) {
                *line = turn.as_line();
            }
            let what = What::TurnEnded {
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
        if self.spec.follows_language && turn.is_final() && !turn.text().is_empty() {
            let text = turn.text().as_ref().into();
            self.effect(Effect::Identify { turn: turn.from, text, told: turn.tongue() });
        }
    }

    /// Changes to the other side's language. Everything made ready in another one is made anew; `phrases` are in the
    /// new one.
    fn speak(&mut self, language: String, by: &'static str, from_sample: Sample, phrases: Option<Box<Phrases>>) {
        if !self.phase.is_connected() {
            return;
        }
        self.event(self.frame_at, Side::Engine, What::LanguageTaken { language, by: by.into(), from_sample });
        let Some(phrases) = phrases else { return };
        self.spec.phrases = *phrases;
        self.renew_keywords();
        self.renew_probes();
    }

    /// Hangs up on a phrase that ends the call, in a turn that is answered already or never will be.
    fn hang_up_on_phrase(&mut self, turn: &OtherTurn) {
        if self.waits.hangup.is_none() && self.ends_call(turn.text()) {
            let due = turn.end + ms(PHRASE_HANGUP_MS);
            self.waits.hangup = Some((due.max(self.frame_at), EndReason::HangupPhrase));
        }
    }

    pub(super) fn ends_call(&self, text: &str) -> bool {
        self.spec.hangup_phrases.iter().any(|phrase| contains_phrase(text, phrase))
    }

    /// Gives up waiting for the text of turns that ended before `end`.
    pub(super) fn close_late(&mut self, end: Sample) {
        if !self.other.closing.iter().any(|turn| turn.end < end) {
            return;
        }
        let late = self.other.closing.iter_mut().filter(|turn| turn.end < end);
        let left: Vec<EffectId> = late.flat_map(OtherTurn::give_up).collect();
        self.cancel(left);
        self.tell_closed_turns();
    }

    /// Ends the other side's running turn at `end`, where the call ends.
    pub(super) fn other_is_cut(&mut self, end: Sample, now: Time) {
        let ended = |voice: &mut EchoGuard| match voice.finish() {
            Some(Edge::Ended { end: heard }) => Some(heard.clamp(0, end)),
            _ => None,
        };
        let heard = ended(&mut self.ears.voice);
        let seen = self.ears.witness.as_deref_mut().map_or(heard, ended);
        if let Some(end) = seen {
            self.tell_edge(Edge::Ended { end }, now);
        }
        if self.other.since.is_some() {
            self.other_stops(heard.unwrap_or(end));
        }
        self.close_other_turn();
    }

    pub(super) fn digit_heard(&mut self, digit: char, from: Sample, duration_ms: u32, method: &'static str) {
        self.event(from, Side::Agent, What::DtmfReceived { digit, method: method.into(), duration_ms });
        let end = from + ms(duration_ms);
        self.waits.active_at = self.waits.active_at.max(end);
        let turn = self.other.turn.get_or_insert_with(|| OtherTurn::new(from, self.ears.concealed.before(from)));
        turn.digits.push(digit);
        turn.end = turn.end.max(end);
        turn.concealed[1] = self.ears.concealed.before(turn.end);
        let Some(delay_ms) = self.spec.turn.digit_turn_ms else { return };
        self.drop_answer();
        if let Some(said) = self.mouth.saying() {
            said.stop();
            // The step after these words is dropped with them: the digits are answered instead.
            let taken = self.plan.take_if(|plan| plan.stage == Stage::Taken);
            self.cancel(taken.map(|plan| plan.effects()).unwrap_or_default());
        }
        self.plan_answer(end, delay_ms);
    }

    // --- effects that are done ---

    pub(super) fn done(&mut self, now: Time, id: EffectId, done: Effected) {
        match done {
            Effected::Audio { pcm, last } => self.audio_done(id, &pcm, last),
            Effected::Move(next) => self.moved(id, next),
            Effected::Language { language, by, turn, phrases } => self.speak(language, by, turn, phrases),
            Effected::Meant(which) => self.meant(id, which),
            Effected::Note { code, why } if self.phase.is_dialling() => {
                self.waits.before.push((now, Side::Engine, What::Note { code: code.into(), why }));
            }
            Effected::Note { code, why } => {
                self.event(self.frame_at, Side::Engine, What::Note { code: code.into(), why });
            }
            Effected::Failed { code, why } => self.effect_failed(id, code, why),
            Effected::Partial(_) | Effected::Final { .. } => self.heard_text(id, done),
        }
    }

    fn audio_done(&mut self, id: EffectId, pcm: &std::sync::Arc<[i16]>, last: bool) {
        let held = self.hold.as_mut().and_then(|hold| hold.then.as_mut());
        if held.is_some_and(|said| said.give(id, pcm.clone(), last)) {
            return;
        }
        let mouth = self.mouth.saying().is_some_and(|said| said.give(id, pcm.clone(), last));
        let planned = self.plan.as_mut().and_then(|plan| plan.utterance.as_mut());
        let taken = mouth || planned.is_some_and(|said| said.give(id, pcm.clone(), last));
        if !taken {
            self.give_to_cut(id, pcm, last);
        }
    }

    fn heard_text(&mut self, id: EffectId, done: Effected) {
        if let Some(turn) = self.other.turn.as_mut().filter(|turn| turn.awaits(id)) {
            let is_running = matches!(done, Effected::Partial(_));
            turn.take(id, done);
            if is_running {
                let text = turn.text().as_ref().into();
                self.event(self.frame_at, Side::Agent, What::TranscriptPartial { text });
            }
            self.match_running_text();
            self.reconsider();
            self.decide_when_final();
        } else if let Some(turn) = self.turn_that_awaits(id) {
            turn.take(id, done);
            self.tell_closed_turns();
        }
    }

    fn turn_that_awaits(&mut self, id: EffectId) -> Option<&mut OtherTurn> {
        self.other.turn.iter_mut().chain(&mut self.other.closing).find(|turn| turn.awaits(id))
    }

    /// Looks for a hang-up phrase in a text that came after the answer was decided on: there is none then.
    fn reconsider(&mut self) {
        let decided = self.plan.as_ref().is_some_and(|plan| {
            plan.answers && matches!(plan.stage, Stage::Comparing | Stage::Thinking | Stage::Settled)
        });
        let Some(turn) = self.other.turn.as_ref().filter(|turn| decided && turn.is_final()) else { return };
        if self.ends_call(turn.text()) {
            self.drop_answer();
            self.close_other_turn();
        }
    }

    fn effect_failed(&mut self, id: EffectId, code: &'static str, why: String) {
        if self.phase.is_dialling() {
            // It is asked for again when it is needed.
            let prepared = self.take_prepared();
            return self.cancel(prepared.map(|plan| plan.effects()).unwrap_or_default());
        }
        let thinking = self.plan.as_ref().is_some_and(|plan| plan.thinking == Some(id));
        self.event(self.frame_at, Side::Engine, What::Note { code: code.into(), why: why.clone() });
        if self.not_meant(id) {
            return;
        }
        if thinking || self.cut_waits_for(id) {
            self.moved(id, Move::default());
        } else if let Some(turn) = self.turn_that_awaits(id) {
            turn.take(id, Effected::Failed { code, why });
            self.decide_when_final();
            self.tell_closed_turns();
        } else if !self.probe_failed(id) && self.is_waiting_for_audio(id) {
            self.fail(Fault { code: "SYNTHESIZER_FAILED", why });
        }
    }

    fn is_waiting_for_audio(&mut self, id: EffectId) -> bool {
        let saying = self.mouth.saying().is_some_and(|said| said.waiting().any(|waits| waits == id));
        let planned = self.plan.as_ref().and_then(|plan| plan.utterance.as_ref());
        let held = self.hold.as_ref().and_then(|hold| hold.then.as_ref());
        saying || planned.into_iter().chain(held).any(|said| said.waiting().any(|waits| waits == id))
    }
}
