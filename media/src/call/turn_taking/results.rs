//! Results of effects: audio, moves, recognized text and failures, each given to the part of the turn-taking that waits
//! for it.

use std::sync::Arc;

use super::barge_in::PlannedBargeIn;
use super::hearing::OtherTurn;
use super::plan::PlanStage;
use super::{Decision, TurnTaking};
use crate::call::ending::Fault;
use crate::call::event::{EventKind, Side};
use crate::call::io::{EffectId, Effected, Move};

impl TurnTaking {
    /// Takes the result of an effect, or a part of it, of a call that is up.
    pub(crate) fn take_result(&mut self, id: EffectId, result: Effected) {
        match result {
            Effected::Audio { pcm, last } => self.audio_done(id, &pcm, last),
            Effected::Move(next) => self.moved(id, next),
            Effected::Language { language, by, turn, phrases } => self.speak(language, by, turn, phrases),
            Effected::Meant(which) => self.meant(id, which),
            Effected::Note { code, why } => {
                self.event(self.scene.at, Side::Engine, EventKind::Note { code: code.into(), why });
            }
            Effected::Failed { code, why } => self.effect_failed(id, code, why),
            Effected::Partial(_) | Effected::Final { .. } => self.heard_text(id, result),
        }
    }

    /// Gives up the opening that was prepared, as an effect of it failed. It is asked for again when it is needed.
    pub(crate) fn drop_prepared(&mut self) {
        let prepared = self.take_prepared();
        self.cancel(prepared.map(|plan| plan.effects()).unwrap_or_default());
    }

    /// Sets the words of the audio that `id` brings to `voiced`.
    pub(crate) fn voice(&mut self, id: EffectId, voiced: String) {
        let planned = self.plan.as_mut().and_then(|plan| plan.utterance.as_mut());
        let cutting = self.barge_in.as_mut().and_then(PlannedBargeIn::utterance);
        let mut left = Some(voiced);
        for said in planned.into_iter().chain(cutting).chain(self.mouth.saying()) {
            left = left.and_then(|voiced| said.voice(id, voiced));
        }
    }

    fn audio_done(&mut self, id: EffectId, pcm: &Arc<[i16]>, last: bool) {
        let held = self.hold.as_mut().and_then(|hold| hold.then.as_mut());
        if held.is_some_and(|said| said.give(id, pcm.clone(), last)) {
            return;
        }
        let mouth = self.mouth.saying().is_some_and(|said| said.give(id, pcm.clone(), last));
        let planned = self.plan.as_mut().and_then(|plan| plan.utterance.as_mut());
        let taken = mouth || planned.is_some_and(|said| said.give(id, pcm.clone(), last));
        if !taken {
            self.give_to_barge_in(id, pcm, last);
        }
    }

    fn heard_text(&mut self, id: EffectId, done: Effected) {
        if let Some(turn) = self.other.turn.as_mut().filter(|turn| turn.awaits(id)) {
            let is_running = matches!(done, Effected::Partial(_));
            turn.take(id, done);
            if is_running {
                let text = turn.text().as_ref().into();
                self.event(self.scene.at, Side::Agent, EventKind::TranscriptPartial { text });
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
            plan.answers && matches!(plan.stage, PlanStage::Comparing | PlanStage::Thinking | PlanStage::Settled)
        });
        let Some(turn) = self.other.turn.as_ref().filter(|turn| decided && turn.is_final()) else { return };
        if self.ends_call(turn.text()) {
            self.drop_answer();
            self.close_other_turn();
        }
    }

    fn effect_failed(&mut self, id: EffectId, code: &'static str, why: String) {
        let thinking = self.plan.as_ref().is_some_and(|plan| plan.thinking == Some(id));
        self.event(self.scene.at, Side::Engine, EventKind::Note { code: code.into(), why: why.clone() });
        if self.not_meant(id) {
            return;
        }
        if thinking || self.is_barge_in_effect(id) {
            self.moved(id, Move::default());
        } else if let Some(turn) = self.turn_that_awaits(id) {
            turn.take(id, Effected::Failed { code, why });
            self.decide_when_final();
            self.tell_closed_turns();
        } else if !self.probe_failed(id) && self.is_waiting_for_audio(id) {
            self.decide(Decision::Fail(Fault { code: "SYNTHESIZER_FAILED", why }));
        }
    }

    fn is_waiting_for_audio(&mut self, id: EffectId) -> bool {
        let saying = self.mouth.saying().is_some_and(|said| said.waiting().any(|waits| waits == id));
        let planned = self.plan.as_ref().and_then(|plan| plan.utterance.as_ref());
        let held = self.hold.as_ref().and_then(|hold| hold.then.as_ref());
        saying || planned.into_iter().chain(held).any(|said| said.waiting().any(|waits| waits == id))
    }
}
