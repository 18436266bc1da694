//! Planning: the next move of this side, from the end of the other side's speech to the moment it is ready.

use std::sync::Arc;

use super::hearing::OtherTurn;
use super::plan::{Comparing, NextStep, Plan, PlanStage};
use super::timing::{NOT_YET, OWN_HANGUP_MS, PHRASE_HANGUP_MS};
use super::{TurnTaking, ms};
use crate::call::ending::EndReason;
use crate::call::event::Kind;
use crate::call::io::{Comparison, ConversationLine, Effect, EffectId, Move, Purpose, Then, Thought};
use crate::call::script::{ByScript, same_words};
use crate::call::spec::{Opening, Response};
use crate::call::utterance::Utterance;
use crate::frame::{FRAME, PER_MS, Sample};

/// Milliseconds from the start of the conversation to an opening; drawn from this range.
const OPENING_MS: (f64, f64) = (400.0, 900.0);

impl TurnTaking {
    pub(super) fn plan_answer(&mut self, end: Sample, delay_ms: u32) {
        let due = end + ms(delay_ms);
        let unheard = self.scene.mute && !self.scene.on_hold;
        if unheard || self.hangup.is_some() || (self.hold.is_some() && !self.hold_ends_with_turn(end, due)) {
            return self.leave_unanswered(end);
        }
        if let Some(plan) = &mut self.plan {
            plan.due = plan.due.max(due);
            plan.late_from = plan.due;
            return;
        }
        let mut plan = Plan::new(due, Kind::Turn);
        plan.late_from = plan.due.max(self.scene.at + FRAME as Sample);
        plan.answers = true;
        self.plan = Some(plan);
        self.decide_when_final();
    }

    /// Ends a scripted silence that has no length or ran out during this turn. True when the turn is then answered as
    /// usual, because the silence has no words of its own.
    fn hold_ends_with_turn(&mut self, end: Sample, due: Sample) -> bool {
        let ends = self.hold.as_ref().is_some_and(|hold| hold.until.is_none_or(|until| until <= end));
        if ends {
            self.end_hold(due);
        }
        ends && self.plan.is_none()
    }

    /// Drops the planned answer, because the other side goes on before the turn is taken.
    pub(super) fn drop_answer(&mut self) {
        let Some(plan) = self.plan.take_if(|plan| plan.stage != PlanStage::Taken) else { return };
        if plan.kind == Kind::Scripted && !plan.answers {
            // The words after a scripted silence are said in any case.
            self.plan = Some(plan);
            return;
        }
        self.cancel(plan.effects());
    }

    /// Prepares the opening while the other side is awaited, if this side opens: it is ready when it is due.
    pub(crate) fn prepare_opening(&mut self) {
        if self.plan.is_none() {
            self.order_opening(NOT_YET);
        }
    }

    /// Takes the opening that was prepared; `None` without one.
    pub(super) fn take_prepared(&mut self) -> Option<Plan> {
        self.plan.take_if(|plan| plan.due == NOT_YET)
    }

    /// Plans the opening 0.4 to 0.9 s after `start`, if this side opens. It may have been prepared.
    pub(super) fn plan_opening(&mut self, start: Sample, prepared: Option<Plan>) {
        let wait_ms = self.draws.opening.range(OPENING_MS.0, OPENING_MS.1);
        let due = start + (wait_ms * PER_MS as f64) as Sample;
        match prepared {
            Some(plan) => self.plan = Some(Plan { due, late_from: due, ..plan }),
            None => self.order_opening(due),
        }
    }

    fn order_opening(&mut self, due: Sample) {
        match self.opening.clone() {
            Opening::Listen { .. } => {}
            Opening::Say(text) => self.plan_words(&text, Kind::Opening, due),
            Opening::Made => self.plan_thought(Purpose::Opening, Kind::Opening, due),
        }
    }

    /// True when this side opens after so long a silence: nobody has spoken for `quiet` samples since the start.
    pub(super) fn opens_itself(&mut self, quiet: Sample) -> bool {
        let Opening::Listen { open_after_ms: Some(after_ms) } = self.opening else { return false };
        let untouched = self.history.is_empty() && self.plan.is_none() && self.other.turn.is_none();
        if !untouched || quiet < ms(after_ms) {
            return false;
        }
        self.opening = Opening::Made;
        self.plan_thought(Purpose::Opening, Kind::Opening, self.scene.at);
        true
    }

    pub(super) fn plan_thought(&mut self, purpose: Purpose, kind: Kind, due: Sample) {
        let mut plan = Plan::new(due, kind);
        plan.stage = PlanStage::Thinking;
        plan.thinking = Some(self.think(purpose));
        self.plan = Some(plan);
    }

    /// Plans words that are said exactly, to begin at `due`.
    pub(super) fn plan_words(&mut self, text: &str, kind: Kind, due: Sample) {
        let utterance = self.words(text, kind, true);
        self.plan_ready(utterance, due);
    }

    /// Plans an utterance whose words are known, to begin at `due`.
    pub(super) fn plan_ready(&mut self, utterance: Utterance, due: Sample) {
        let mut plan = Plan::new(due, utterance.kind);
        plan.stage = PlanStage::Settled;
        plan.utterance_id = utterance.id;
        plan.utterance = Some(utterance);
        self.plan = Some(plan);
    }

    /// Returns an utterance of `text` and asks for its audio.
    pub(super) fn words(&mut self, text: &str, kind: Kind, exact: bool) -> Utterance {
        let mut utterance = self.no_words(kind, exact);
        let effect = self.effect(Effect::Synthesize { text: text.into(), fluency: !exact });
        utterance.add_words(text, effect);
        utterance
    }

    fn no_words(&mut self, kind: Kind, exact: bool) -> Utterance {
        self.last_utterance += 1;
        Utterance::new(self.last_utterance, kind, exact)
    }

    /// Returns the conversation, with the turn that is being heard.
    fn heard_so_far(&self) -> Vec<ConversationLine> {
        let mut history = Vec::with_capacity(self.history.len() + 1);
        history.extend_from_slice(&self.history);
        history.extend(self.other.turn.as_ref().map(OtherTurn::as_line));
        history
    }

    pub(super) fn think(&mut self, purpose: Purpose) -> EffectId {
        let history = self.heard_so_far();
        let unsaid = self.unsaid.clone();
        self.effect(Effect::Think(Thought { purpose, history, unsaid }))
    }

    pub(super) fn decide_when_final(&mut self) {
        let hearing = self.plan.as_ref().is_some_and(|plan| plan.stage == PlanStage::Hearing);
        let is_final = self.other.turn.as_ref().is_none_or(OtherTurn::is_final);
        if hearing && is_final && self.other.since.is_none() {
            self.decide_answer();
        }
    }

    /// Decides the answer, once the other side's text is final or will not come.
    pub(super) fn decide_answer(&mut self) {
        self.drop_question();
        if let Some(mut turn) = self.other.turn.take() {
            turn.late = !turn.is_final();
            self.identify(&turn);
            self.other.turn = Some(turn);
        }
        let text = self.other.turn.as_ref().map(|turn| turn.text().clone()).unwrap_or_default();
        let end = self.other.turn.as_ref().map_or(self.scene.at, |turn| turn.end);
        if self.ends_call(&text) {
            let next = NextStep::Hangup { reason: EndReason::HangupPhrase, after_ms: 0 };
            return self.settle(end + ms(PHRASE_HANGUP_MS), next);
        }
        let turns = self.other.turns + u32::from(self.other.turn.as_ref().is_some_and(|turn| turn.counts));
        if self.rules.max_turns.is_some_and(|limit| turns >= limit) {
            let due = end + ms(self.rules.turn.endpointing_delay_ms);
            return self.settle(due, NextStep::Hangup { reason: EndReason::MaxTurns, after_ms: 0 });
        }
        let (rules, ordered) = (&self.rules.script, self.rules.script_ordered);
        match self.script.answer(rules, ordered, &text, self.rules.meaning_ms.is_some()) {
            ByScript::Known(rule) => self.follow_script(rule),
            ByScript::Ask(among) => self.compare(among, text),
        }
    }

    /// Asks the mind which of these rules the turn means.
    fn compare(&mut self, rules: Vec<usize>, text: Arc<str>) {
        let phrases = rules.iter().map(|at| self.rules.script[*at].phrase.clone()).collect();
        let id = self.effect(Effect::Compare(Comparison { phrases, history: self.heard_so_far() }));
        if let Some(plan) = &mut self.plan {
            plan.stage = PlanStage::Comparing;
            plan.thinking = Some(id);
            let until = self.scene.at + ms(self.rules.meaning_ms.unwrap_or(0));
            plan.comparing = Some(Comparing { rules, text, until });
        }
    }

    /// Takes the mind's answer about the meaning of the turn.
    pub(super) fn meant(&mut self, id: EffectId, which: Option<usize>) {
        if let Some(comparing) = self.take_comparing(id) {
            self.follow_script(which.and_then(|which| comparing.rules.get(which).copied()));
        }
    }

    /// Falls back to comparing words when the mind cannot tell the meaning; false when nobody asked it to.
    pub(super) fn not_meant(&mut self, id: EffectId) -> bool {
        let Some(Comparing { rules, text, .. }) = self.take_comparing(id) else { return false };
        self.follow_script(same_words(&self.rules.script, &rules, &text));
        true
    }

    /// Gives up waiting for a mind that takes too long to tell the meaning.
    pub(super) fn run_comparing(&mut self) {
        let Some(plan) = &self.plan else { return };
        let late = plan.comparing.as_ref().is_some_and(|comparing| self.scene.at >= comparing.until);
        if let Some(id) = plan.thinking.filter(|_| late) {
            self.note(self.scene.at, "meaning_late");
            self.cancel(vec![id]);
            self.not_meant(id);
        }
    }

    fn take_comparing(&mut self, id: EffectId) -> Option<Comparing> {
        let plan = self.plan.as_mut().filter(|plan| plan.thinking == Some(id))?;
        let comparing = plan.comparing.take()?;
        plan.thinking = None;
        Some(comparing)
    }

    /// Plans the response of the rule that answers; without a rule the mind answers.
    fn follow_script(&mut self, rule: Option<usize>) {
        if let Some(rule) = rule {
            return self.plan_rule(rule);
        }
        if let Opening::Say(text) = self.opening.clone() {
            let utterance = self.words(&text, Kind::Opening, true);
            return self.plan_utterance(utterance);
        }
        let id = self.think(Purpose::Reply);
        if let Some(plan) = &mut self.plan {
            plan.stage = PlanStage::Thinking;
            plan.thinking = Some(id);
        }
    }

    fn settle(&mut self, due: Sample, next: NextStep) {
        if let Some(plan) = &mut self.plan {
            plan.stage = PlanStage::Settled;
            (plan.due, plan.late_from) = (due, due.max(self.scene.at));
            plan.next = next;
        }
    }

    fn plan_utterance(&mut self, utterance: Utterance) {
        if let Some(plan) = &mut self.plan {
            plan.stage = PlanStage::Settled;
            plan.kind = utterance.kind;
            plan.utterance_id = utterance.id;
            plan.utterance = Some(utterance);
        }
    }

    fn plan_rule(&mut self, rule: usize) {
        let response = self.rules.script[rule].response.clone();
        if let Some(plan) = &mut self.plan {
            plan.rule = Some(rule);
            plan.stage = PlanStage::Settled;
        }
        match response {
            Response::Phrase(text) => {
                let utterance = self.words(&text, Kind::Scripted, true);
                self.plan_utterance(utterance);
            }
            Response::Audio(pcm) => {
                let mut utterance = self.no_words(Kind::Scripted, true);
                utterance.holds_floor = true;
                utterance.add_clip("", pcm);
                self.plan_utterance(utterance);
            }
            Response::Dtmf(digits) => self.plan.iter_mut().for_each(|plan| plan.digits.clone_from(&digits)),
            Response::Silence { duration_ms, then } => {
                self.plan.iter_mut().for_each(|plan| plan.next = NextStep::Silence { duration_ms, then: then.clone() });
            }
        }
    }

    /// Takes a mind's move, or a part of it.
    pub(super) fn moved(&mut self, id: EffectId, next: Move) {
        if self.take_barge_in_move(id, &next) {
            return;
        }
        let Some(mut plan) = self.plan.take_if(|plan| plan.thinking == Some(id)) else { return };
        self.keep_notes(&mut plan, &next.notes);
        if !next.say.is_empty() {
            self.add_words(&mut plan, &next);
        }
        plan.digits.push_str(&next.dtmf);
        if !next.more {
            self.wanted_barge_in.clone_from(&next.cut);
        }
        plan.thinking = next.more.then_some(id);
        plan.next = match next.then {
            Then::Listen => plan.next,
            Then::StaySilent => NextStep::StaySilent,
            Then::Pause { ms } => NextStep::Pause { ms },
            Then::Finish => NextStep::Hangup { reason: EndReason::PlaybackEnd, after_ms: 0 },
            Then::Hangup => NextStep::Hangup { reason: EndReason::DhEndCall, after_ms: OWN_HANGUP_MS },
        };
        if let Some(said) = self.mouth.saying().filter(|said| said.id == plan.utterance_id) {
            said.open = next.more;
            said.holds_floor |= matches!(plan.next, NextStep::Hangup { .. });
        }
        if let Some(said) = &mut plan.utterance {
            said.open = next.more;
            said.holds_floor |= matches!(plan.next, NextStep::Hangup { .. });
        }
        if !next.more && plan.stage != PlanStage::Taken {
            plan.stage = PlanStage::Settled;
        }
        self.plan = Some(plan);
    }

    /// Reports each note of the mind once, when the turn is taken. A move that is dropped before that reports nothing.
    fn keep_notes(&mut self, plan: &mut Plan, notes: &[&'static str]) {
        for code in notes {
            if plan.notes.contains(code) {
                continue;
            }
            plan.notes.push(code);
            if plan.stage == PlanStage::Taken {
                self.note(self.scene.at, code);
            }
        }
    }

    fn add_words(&mut self, plan: &mut Plan, next: &Move) {
        let effect = self.effect(Effect::Synthesize { text: next.say.clone(), fluency: !next.exact });
        let saying = self.mouth.saying().filter(|said| said.id == plan.utterance_id);
        if let Some(said) = saying {
            return said.add_words(&next.say, effect);
        }
        if plan.utterance.is_none() {
            let utterance = self.no_words(plan.kind, next.exact);
            plan.utterance_id = utterance.id;
            plan.utterance = Some(utterance);
        }
        if let Some(said) = &mut plan.utterance {
            said.add_words(&next.say, effect);
        }
    }
}
