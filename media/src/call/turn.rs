//! Turn taking: when the other side's turn begins and ends, what this side then does, and when it yields.

use super::event::{Kind, Side, What};
use super::hearing::OtherTurn;
use super::io::{Effect, EffectId, Effected, EndReason, Line, Move, Purpose, Then, Thought};
use super::mouth::Said;
use super::plan::{Next, Plan, Stage};
use super::script::contains_phrase;
use super::spec::{Matching, Opening, Response};
use super::utterance::Utterance;
use super::{Call, Dial, Hold, ms};
use crate::frame::{FRAME, PER_MS, Sample};
use crate::time::Time;

/// Other sound shorter than this is no speech.
pub(super) const SHORT_MS: u32 = 200;
/// From a hang-up phrase of the other side to the hang-up.
const PHRASE_HANGUP_MS: u32 = 300;
/// From the last own words to the hang-up.
const OWN_HANGUP_MS: u32 = 500;
/// An opening begins this long after the conversation's start.
const OPENING_MS: (f64, f64) = (400.0, 900.0);

impl Call {
    // --- the other side ---

    pub(super) fn other_speaks(&mut self, onset: Sample, now: Time) {
        let arrival_ms = self.sample(now) as f64 / PER_MS as f64;
        self.event(onset, Side::Agent, What::AgentSpeechStarted { arrival_ms });
        self.other.since = Some(onset);
        self.waits.reprompts = 0;
        if self.waits.start.is_some() {
            self.other_turn_begins(onset);
        }
    }

    /// A segment begins: a new turn, or more of the one that was not answered yet.
    pub(super) fn other_turn_begins(&mut self, onset: Sample) {
        self.drop_answer();
        if self.hold.as_ref().is_some_and(|hold| hold.until_onset) {
            self.hold = None;
        }
        let is_new = self.other.turn.is_none();
        let mut turn = self.other.turn.take().unwrap_or_else(|| OtherTurn::new(onset));
        if self.ears.which.text {
            turn.open(self.effect(Effect::Hear { from: onset }));
            self.feed_from(onset);
        } else {
            turn.open_deaf();
        }
        self.other.turn = Some(turn);
        if let Some(started) = self.mouth.speaking_since() {
            self.overlap_begins(started, onset);
        } else if is_new {
            self.draw_interruption(onset);
        }
    }

    pub(super) fn other_stops(&mut self, end: Sample, now: Time) {
        let arrival_ms = self.sample(now) as f64 / PER_MS as f64;
        self.event(end, Side::Agent, What::AgentSpeechEnded { arrival_ms });
        let onset = self.other.since.take().unwrap_or(end);
        let long = end - onset >= ms(SHORT_MS);
        self.other.ended = Some(end);
        self.other.spoke |= long;
        self.waits.quiet_since = self.waits.quiet_since.max(end);
        self.ears.feeding = false;
        let recognize = EffectId(self.last_effect + 1);
        let Some(turn) = &mut self.other.turn else { return };
        turn.end = end;
        turn.counts |= long;
        if let Some(hear) = turn.close_segment(recognize) {
            self.effect(Effect::Recognize { hear, to: end });
        }
        self.overlap_ends(end);
        let Some(turn) = &self.other.turn else { return };
        if self.mouth.speaking_since().is_some() {
            self.close_other_turn();
        } else if turn.counts || !turn.digits.is_empty() {
            self.plan_answer(end, self.spec.turn.endpointing_delay_ms);
        } else {
            self.forget_other_turn();
        }
    }

    /// A sound too short for words.
    fn forget_other_turn(&mut self) {
        if let Some(mut turn) = self.other.turn.take() {
            let left = turn.give_up();
            self.cancel(left);
        }
        self.cut = None;
    }

    /// The turn is over: its line joins the conversation, its text may still come.
    pub(super) fn close_other_turn(&mut self) {
        let Some(mut turn) = self.other.turn.take() else { return };
        if !turn.counts && turn.digits.is_empty() {
            let left = turn.give_up();
            return self.cancel(left);
        }
        self.other.turns += u32::from(turn.counts);
        turn.line = Some(self.history.len());
        self.history.push(turn.as_line());
        self.other.closing.push(turn);
        self.tell_closed_turns();
    }

    /// Reports turns whose text is final, oldest first.
    fn tell_closed_turns(&mut self) {
        while self.other.closing.first().is_some_and(OtherTurn::is_final) {
            let turn = self.other.closing.remove(0);
            if let Some(line) = turn.line.and_then(|at| self.history.get_mut(at)) {
                *line = turn.as_line();
            }
            let what = What::TurnEnded {
                text: turn.text(),
                from_sample: turn.from,
                end_sample: turn.end,
                confidence: turn.confidence(),
                words: turn.words(),
            };
            self.event(turn.end, Side::Agent, what);
        }
    }

    /// The end: what has no text now never will.
    pub(super) fn close_late(&mut self) {
        for turn in &mut self.other.closing {
            turn.give_up();
        }
        self.tell_closed_turns();
    }

    pub(super) fn digit_heard(&mut self, digit: char, from: Sample, duration_ms: u32, method: &'static str) {
        self.event(from, Side::Agent, What::DtmfReceived { digit, method, duration_ms });
        let end = from + ms(duration_ms);
        self.waits.active_at = self.waits.active_at.max(end);
        self.waits.quiet_since = self.waits.quiet_since.max(end);
        let turn = self.other.turn.get_or_insert_with(|| OtherTurn::new(from));
        turn.digits.push(digit);
        turn.end = turn.end.max(end);
        let Some(delay_ms) = self.spec.turn.digit_turn_ms else { return };
        self.drop_answer();
        if let Some(said) = self.mouth.saying() {
            said.stop();
        }
        self.plan_answer(end, delay_ms);
    }

    // --- planning ---

    fn plan_answer(&mut self, end: Sample, delay_ms: u32) {
        if self.hold.is_some() && !self.hold_ends_with_turn(end) {
            return self.close_other_turn();
        }
        if self.plan.as_ref().is_some_and(|plan| !plan.answers) {
            return;
        }
        let mut plan = Plan::new(end + ms(delay_ms), Kind::Turn);
        plan.floor = plan.due.max(self.frame_at + FRAME as Sample);
        plan.answers = true;
        self.plan = Some(plan);
        self.decide_when_final();
    }

    /// A scripted silence without a length is over at the end of this turn.
    fn hold_ends_with_turn(&mut self, end: Sample) -> bool {
        let ends = self.hold.as_ref().is_some_and(|hold| hold.until.is_none());
        if ends {
            self.close_other_turn();
            self.end_hold(end + ms(self.spec.turn.endpointing_delay_ms));
        }
        false
    }

    /// The other side goes on before the turn was taken: the planned answer is dropped.
    fn drop_answer(&mut self) {
        let Some(plan) = self.plan.take_if(|plan| plan.stage != Stage::Taken) else { return };
        if !plan.answers && plan.kind != Kind::Opening {
            self.plan = Some(plan);
            return;
        }
        self.cancel(plan.effects());
    }

    pub(super) fn plan_opening(&mut self, start: Sample) {
        let wait_ms = self.draws.opening.range(OPENING_MS.0, OPENING_MS.1);
        let due = start + (wait_ms * PER_MS as f64) as Sample;
        match self.opening.clone() {
            Opening::Listen { .. } => {}
            Opening::Say(text) => self.plan_words(&text, Kind::Opening, due),
            Opening::Made => self.plan_thought(Purpose::Opening, Kind::Opening, due),
        }
    }

    /// Nobody has said anything for `quiet` samples since the start, and this side opens in that case.
    pub(super) fn opens_itself(&mut self, quiet: Sample) -> bool {
        let Opening::Listen { open_after_ms: Some(after_ms) } = self.opening else { return false };
        let untouched = self.history.is_empty() && self.plan.is_none() && self.other.turn.is_none();
        if !untouched || quiet < ms(after_ms) {
            return false;
        }
        self.opening = Opening::Made;
        self.plan_thought(Purpose::Opening, Kind::Opening, self.frame_at);
        true
    }

    fn plan_thought(&mut self, purpose: Purpose, kind: Kind, due: Sample) {
        let mut plan = Plan::new(due, kind);
        plan.stage = Stage::Thinking(self.think(purpose));
        self.plan = Some(plan);
    }

    /// Plans words that are said exactly.
    pub(super) fn plan_words(&mut self, text: &str, kind: Kind, due: Sample) {
        let mut plan = Plan::new(due, kind);
        plan.stage = Stage::Settled;
        let utterance = self.words(text, kind, true);
        plan.utterance_id = utterance.id;
        plan.utterance = Some(utterance);
        self.plan = Some(plan);
    }

    /// An utterance of `text` whose audio is on its way.
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

    pub(super) fn think(&mut self, purpose: Purpose) -> EffectId {
        let mut history = self.history.clone();
        history.extend(self.other.turn.as_ref().map(OtherTurn::as_line));
        let unsaid = self.unsaid.clone();
        self.effect(Effect::Think(Thought { purpose, history, unsaid }))
    }

    fn decide_when_final(&mut self) {
        let hearing = self.plan.as_ref().is_some_and(|plan| plan.stage == Stage::Hearing);
        let is_final = self.other.turn.as_ref().is_none_or(OtherTurn::is_final);
        if hearing && is_final && self.other.since.is_none() {
            self.decide();
        }
    }

    /// The other side's text is final (or will not come): what is the answer?
    fn decide(&mut self) {
        let text = self.other.turn.as_ref().map(OtherTurn::text).unwrap_or_default();
        let end = self.other.turn.as_ref().map_or(self.frame_at, |turn| turn.end);
        if self.spec.hangup_phrases.iter().any(|phrase| contains_phrase(&text, phrase)) {
            let next = Next::Hangup { reason: EndReason::HangupPhrase, after_ms: 0 };
            return self.settle(end + ms(PHRASE_HANGUP_MS), next);
        }
        if self.spec.limits.max_turns.is_some_and(|limit| self.other.turns + 1 >= limit) {
            let due = end + ms(self.spec.turn.endpointing_delay_ms);
            return self.settle(due, Next::Hangup { reason: EndReason::MaxTurns, after_ms: 0 });
        }
        if let Some(rule) = self.script.find(&self.spec.script, self.spec.script_ordered, &text) {
            return self.plan_rule(rule);
        }
        if let Opening::Say(text) = self.opening.clone() {
            let utterance = self.words(&text, Kind::Opening, true);
            return self.plan_utterance(utterance);
        }
        let id = self.think(Purpose::Reply);
        if let Some(plan) = &mut self.plan {
            plan.stage = Stage::Thinking(id);
        }
    }

    fn settle(&mut self, due: Sample, next: Next) {
        if let Some(plan) = &mut self.plan {
            plan.stage = Stage::Settled;
            (plan.due, plan.floor) = (due, due.max(self.frame_at));
            plan.next = next;
        }
    }

    fn plan_utterance(&mut self, utterance: Utterance) {
        if let Some(plan) = &mut self.plan {
            plan.stage = Stage::Settled;
            plan.kind = utterance.kind;
            plan.utterance_id = utterance.id;
            plan.utterance = Some(utterance);
        }
    }

    fn plan_rule(&mut self, rule: usize) {
        let response = self.spec.script[rule].response.clone();
        if let Some(plan) = &mut self.plan {
            plan.rule = Some(rule);
            plan.stage = Stage::Settled;
        }
        match response {
            Response::Phrase(text) => {
                let utterance = self.words(&text, Kind::Scripted, true);
                self.plan_utterance(utterance);
            }
            Response::Audio(pcm) => {
                let mut utterance = self.no_words(Kind::Scripted, true);
                utterance.holds_floor = true;
                utterance.add_clip(pcm);
                self.plan_utterance(utterance);
            }
            Response::Dtmf(digits) => self.plan.iter_mut().for_each(|plan| plan.digits.clone_from(&digits)),
            Response::Silence { duration_ms, then } => {
                self.plan.iter_mut().for_each(|plan| plan.next = Next::Silence { duration_ms, then: then.clone() });
            }
        }
    }

    // --- effects that are done ---

    pub(super) fn done(&mut self, id: EffectId, done: Effected) {
        match done {
            Effected::Audio { pcm, last } => self.audio_done(id, &pcm, last),
            Effected::Move(next) => self.moved(id, next),
            Effected::Failed { code } => self.effect_failed(id, code),
            Effected::Partial(_) | Effected::Final { .. } => self.heard_text(id, &done),
        }
    }

    fn audio_done(&mut self, id: EffectId, pcm: &std::sync::Arc<[i16]>, last: bool) {
        let mouth = self.mouth.saying().is_some_and(|said| said.give(id, pcm.clone(), last));
        let planned = self.plan.as_mut().and_then(|plan| plan.utterance.as_mut());
        let taken = mouth || planned.is_some_and(|said| said.give(id, pcm.clone(), last));
        if !taken {
            self.give_to_cut(id, pcm, last);
        }
    }

    fn heard_text(&mut self, id: EffectId, done: &Effected) {
        let running = self.other.turn.as_mut().and_then(|turn| turn.take(id, done));
        if running.is_some() {
            if matches!(done, Effected::Partial(_)) {
                let text = self.other.turn.as_ref().map(OtherTurn::text).unwrap_or_default();
                self.event(self.frame_at, Side::Agent, What::TranscriptPartial { text });
            }
            self.match_running_text();
            self.decide_when_final();
        } else if self.other.closing.iter_mut().any(|turn| turn.take(id, done).is_some()) {
            self.tell_closed_turns();
        }
    }

    fn effect_failed(&mut self, id: EffectId, code: &'static str) {
        let failed = Effected::Failed { code };
        let thinking = self.plan.as_ref().is_some_and(|plan| plan.stage == Stage::Thinking(id));
        self.event(self.frame_at, Side::Engine, What::Note { code });
        if thinking {
            self.moved(id, Move::default());
        } else if self.other.turn.as_mut().is_some_and(|turn| turn.take(id, &failed).is_some())
            || self.other.closing.iter_mut().any(|turn| turn.take(id, &failed).is_some())
        {
            self.decide_when_final();
            self.tell_closed_turns();
        } else if self.is_waiting_for_audio(id) {
            self.fail("SYNTHESIZER_FAILED");
        }
    }

    fn is_waiting_for_audio(&mut self, id: EffectId) -> bool {
        let saying = self.mouth.saying().is_some_and(|said| said.waiting().any(|waits| waits == id));
        let planned = self.plan.as_ref().and_then(|plan| plan.utterance.as_ref());
        saying || planned.is_some_and(|said| said.waiting().any(|waits| waits == id))
    }

    /// A mind's move, or a part of it.
    fn moved(&mut self, id: EffectId, next: Move) {
        for code in &next.notes {
            self.event(self.frame_at, Side::Engine, What::Note { code });
        }
        if self.cut_moved(id, &next) {
            return;
        }
        let Some(mut plan) = self.plan.take_if(|plan| plan.stage == Stage::Thinking(id) || plan.more) else { return };
        if !next.say.is_empty() {
            self.add_words(&mut plan, &next);
        }
        plan.digits.push_str(&next.dtmf);
        plan.more = next.more;
        plan.next = match next.then {
            Then::Listen => plan.next,
            Then::StaySilent => Next::StaySilent,
            Then::Hangup => Next::Hangup { reason: EndReason::DhEndCall, after_ms: OWN_HANGUP_MS },
        };
        if let Some(said) = self.mouth.saying().filter(|said| said.id == plan.utterance_id) {
            said.open = next.more;
            said.holds_floor |= matches!(plan.next, Next::Hangup { .. });
        }
        if let Some(said) = &mut plan.utterance {
            said.open = next.more;
            said.holds_floor |= matches!(plan.next, Next::Hangup { .. });
        }
        if !next.more && plan.stage != Stage::Taken {
            plan.stage = Stage::Settled;
        }
        self.plan = Some(plan);
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

    // --- carrying the plan out ---

    pub(super) fn run_plan(&mut self) {
        let frame_end = self.frame_at + FRAME as Sample;
        let Some(plan) = &self.plan else { return };
        if plan.stage == Stage::Taken {
            return self.follow_plan();
        }
        let grace = ms(self.spec.turn.recognizer_grace_ms);
        if plan.stage == Stage::Hearing && self.frame_at >= plan.due + grace && self.other.since.is_none() {
            self.go_without_text();
        }
        let Some(plan) = &self.plan else { return };
        let blocked = self.other.since.is_some() || self.mouth.speaking_since().is_some() || self.dial.is_some();
        if plan.due < frame_end && plan.is_ready() && !blocked {
            self.take_turn();
        }
    }

    fn go_without_text(&mut self) {
        let left = self.other.turn.as_mut().map(OtherTurn::give_up).unwrap_or_default();
        if !left.is_empty() {
            self.event(self.frame_at, Side::Engine, What::Note { code: "recognizer_late" });
        }
        self.decide();
    }

    fn take_turn(&mut self) {
        let Some(mut plan) = self.plan.take() else { return };
        plan.stage = Stage::Taken;
        let at = plan.due.max(self.frame_at);
        if plan.answers {
            self.close_other_turn();
        }
        self.cut = None;
        if plan.kind == Kind::Opening {
            self.opening = Opening::Listen { open_after_ms: None };
        }
        if let Some(rule) = plan.rule {
            self.tell_rule(rule, at);
        }
        if let Some(utterance) = plan.utterance.take() {
            let late = at - plan.floor;
            if late > FRAME as Sample {
                let late_ms = (late / PER_MS) as u32;
                self.event(at, Side::Dh, What::LateTurn { late_ms, utterance_id: utterance.id });
            }
            self.begin(utterance, at);
        }
        self.plan = Some(plan);
        self.follow_plan();
    }

    fn tell_rule(&mut self, rule: usize, at: Sample) {
        self.script.fire(rule);
        let rule = &self.spec.script[rule];
        let match_type = match rule.matching {
            Matching::Exact => "exact",
            Matching::Context => "context",
        };
        let response_type = match rule.response {
            Response::Phrase(_) => "phrase",
            Response::Silence { .. } => "silence",
            Response::Dtmf(_) => "dtmf",
            Response::Audio(_) => "audio",
        };
        let what = What::ScriptedResponse { index: rule.index, match_type, response_type };
        self.event(at, Side::Dh, what);
    }

    /// The first sample of `utterance` is at `at`.
    pub(super) fn begin(&mut self, utterance: Utterance, at: Sample) {
        let (utterance_id, text, kind) = (utterance.id, utterance.text(), utterance.kind);
        self.event(at, Side::Dh, What::SpeechStarted { utterance_id, text, kind });
        self.unsaid = None;
        self.mouth.say(utterance, at);
    }

    /// Words are over: digits, then what follows.
    fn follow_plan(&mut self) {
        if self.mouth.speaking_since().is_some() || self.dial.is_some() {
            return;
        }
        let Some(plan) = &mut self.plan else { return };
        if !plan.digits.is_empty() {
            let digits = std::mem::take(&mut plan.digits);
            self.history.push(Line { other: false, text: String::new(), digits: digits.clone(), interrupted: false });
            self.dial = Some(Dial::new(&digits, self.frame_at));
            return;
        }
        if plan.more {
            return;
        }
        let next = std::mem::replace(&mut plan.next, Next::Listen);
        self.plan = None;
        match next {
            Next::Listen => {}
            Next::Hangup { reason, after_ms } => {
                self.waits.hangup = Some((self.waits.quiet_since.min(self.frame_at) + ms(after_ms), reason));
            }
            Next::StaySilent => self.stay_silent(),
            Next::Silence { duration_ms, then } => {
                let until = duration_ms.map(|duration| self.frame_at + ms(duration));
                self.hold = Some(Hold { until, until_onset: false, then, reprompt: false });
            }
        }
    }

    /// An utterance is over.
    pub(super) fn said(&mut self, Said { utterance, end }: Said) {
        let (spoken, left) = utterance.split();
        let interrupted = !left.is_empty();
        let own_phrase = self.spec.hangup_phrases.iter().any(|phrase| contains_phrase(&spoken, phrase));
        let (utterance_id, kind, exact) = (utterance.id, utterance.kind, utterance.exact);
        let what = What::SpeechEnded { utterance_id, text: spoken.clone(), kind, interrupted, exact };
        self.event(end, Side::Dh, what);
        self.history.push(Line { other: false, text: spoken, digits: String::new(), interrupted });
        self.unsaid = interrupted.then_some(left);
        self.waits.quiet_since = self.waits.quiet_since.max(end);
        self.waits.active_at = self.waits.active_at.max(end);
        self.own_speech_ended(end);
        if own_phrase && !interrupted {
            self.waits.hangup = Some((end + ms(OWN_HANGUP_MS), EndReason::HangupPhrase));
        }
        if interrupted {
            let plan = self.plan.take_if(|plan| plan.stage == Stage::Taken);
            self.cancel(plan.map(|plan| plan.effects()).unwrap_or_default());
            self.cancel(utterance.waiting().collect());
        }
    }

    /// The call ends at `end` in the middle of words.
    pub(super) fn stop_speech(&mut self, end: Sample) {
        if let Some(utterance) = self.mouth.take() {
            self.said(Said { utterance, end: end.max(0) });
        }
    }
}
