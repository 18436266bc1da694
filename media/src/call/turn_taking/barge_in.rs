//! Barge-in of either side: when this side interrupts, and when it gives way.

use std::sync::Arc;

use super::overlap::Overlap;
use super::plan::PlanStage;
use super::{TurnTaking, ms};
use crate::call::event::{EventKind, Kind, Side};
use crate::call::io::{Effect, EffectId, Move, Purpose};
use crate::call::script::contains_phrase;
use crate::call::spec::{Interruption, Opening, TimedBargeIn};
use crate::call::utterance::Utterance;
use crate::frame::{FRAME, PER_MS, Sample};

/// Shortest time between two questions to the mind about a running text, and from the turn's onset to the first, in
/// milliseconds.
const CONTEXT_EVERY_MS: u32 = 500;
const CONTEXT_FROM_MS: u32 = 1000;
/// Latest moment to stop, in milliseconds after the moment at which it was due.
const LATEST_MS: u32 = 35;
/// Longest quiet at the end of the audio, in milliseconds, that cannot be the end of the speech.
const PAUSE_MS: u32 = 10;

/// Effect id of audio that is there already.
const READY: EffectId = EffectId(u32::MAX);

/// A planned barge-in of this side.
#[derive(Debug)]
pub(super) struct PlannedBargeIn {
    /// Earliest sample at which the words begin.
    at: Sample,
    thinking: Option<EffectId>,
    utterance: Option<Utterance>,
    /// Notes of the mind about the words, reported when they begin.
    notes: Vec<&'static str>,
    /// True to hold the floor to the end of its words (keyword responses).
    to_the_end: bool,
    /// Words that a move wanted in the turn, from which this was made.
    wanted: Option<TimedBargeIn>,
}

impl PlannedBargeIn {
    fn at(at: Sample) -> PlannedBargeIn {
        PlannedBargeIn { at, thinking: None, utterance: None, notes: Vec::new(), to_the_end: false, wanted: None }
    }

    /// Returns its words, once they are known.
    pub(super) fn utterance(&mut self) -> Option<&mut Utterance> {
        self.utterance.as_mut()
    }
}

/// Audio of a keyword's response, made in advance.
#[derive(Debug)]
pub(super) struct KeywordClip {
    effect: EffectId,
    audio: Vec<Arc<[i16]>>,
    complete: bool,
    /// Onset of the turn in which it was last used.
    used_in: Option<Sample>,
}

impl TurnTaking {
    /// Drops the interruption that was planned for this turn of the other side, and cancels its effects.
    pub(super) fn drop_barge_in(&mut self) {
        let Some(planned) = self.barge_in.take() else { return };
        let mut left: Vec<EffectId> = planned.utterance.iter().flat_map(Utterance::waiting).collect();
        left.extend(planned.thinking);
        self.cancel(left);
    }

    /// Keeps words that a move wants in a turn for the next one, where this was no turn.
    pub(super) fn keep_wanted_barge_in(&mut self) {
        if let Some(wanted) = self.barge_in.as_mut().and_then(|planned| planned.wanted.take()) {
            self.wanted_barge_in.get_or_insert(wanted);
        }
    }

    /// Drops a question to the mind whether to interrupt: the mind is to answer the turn instead.
    pub(super) fn drop_question(&mut self) {
        let contextual = matches!(self.rules.interruption, Interruption::Contextual { .. });
        if contextual
            && self.barge_in.as_ref().is_some_and(|planned| planned.thinking.is_some() && planned.utterance.is_none())
        {
            self.drop_barge_in();
        }
    }

    pub(super) fn is_barge_in_effect(&self, id: EffectId) -> bool {
        self.barge_in.as_ref().is_some_and(|planned| planned.thinking == Some(id))
    }

    /// True when this side may interrupt: not in the greeting of a side that is listened to first, nor in a silence
    /// kept on purpose.
    fn may_barge_in(&self) -> bool {
        let greeting = self.history.is_empty() && matches!(self.opening, Opening::Listen { .. });
        !greeting && self.start.is_some() && self.hold.is_none() && self.hangup.is_none()
    }

    /// Draws whether and when this side interrupts, at the onset of a turn of the other side.
    pub(super) fn draw_interruption(&mut self, onset: Sample) {
        if self.take_wanted_barge_in(onset) {
            return;
        }
        let Interruption::Level { name, probability, from_ms, to_ms, at_most } = self.rules.interruption else {
            return;
        };
        let u = self.draws.interruption.unit();
        let at_ms = self.draws.interruption.range(from_ms.into(), to_ms.into()) as u32;
        if u >= probability || !self.may_barge_in() || at_most.is_some_and(|limit| self.barge_in_count >= limit) {
            return;
        }
        self.event(onset, Side::Dh, EventKind::InterruptionDecided { kind: name.into(), u, at_ms, keyword: None });
        self.drop_barge_in();
        let thinking = Some(self.think(Purpose::BargeIn));
        self.barge_in = Some(PlannedBargeIn { thinking, ..PlannedBargeIn::at(onset + ms(at_ms)) });
    }

    /// Plans the words that a move wanted in this turn. False when there are none, or this side speaks.
    fn take_wanted_barge_in(&mut self, onset: Sample) -> bool {
        let may = self.mouth.speaking_since().is_none() && self.hold.is_none() && self.hangup.is_none();
        let Some(wanted) = self.wanted_barge_in.take_if(|_| may) else { return false };
        let (kind, after_ms) = ("playback".into(), wanted.after_ms);
        self.event(onset, Side::Dh, EventKind::InterruptionDecided { kind, u: 0.0, at_ms: after_ms, keyword: None });
        self.drop_barge_in();
        let utterance = Some(self.words(&wanted.say, Kind::Interruption, true));
        self.barge_in = Some(PlannedBargeIn {
            utterance,
            to_the_end: true,
            wanted: Some(wanted),
            ..PlannedBargeIn::at(onset + ms(after_ms))
        });
        true
    }

    /// Orders the audio of the keyword responses.
    pub(super) fn prepare_keywords(&mut self) {
        let Interruption::Keywords(keywords) = self.rules.interruption.clone() else { return };
        for keyword in keywords {
            let effect = Effect::Synthesize { text: keyword.response, fluency: false };
            let effect = self.effect(effect);
            self.keywords.push(KeywordClip { effect, audio: Vec::new(), complete: false, used_in: None });
        }
    }

    /// Orders the keyword responses again, in the voice of another language.
    pub(super) fn renew_keywords(&mut self) {
        let left = self.take_keywords();
        self.cancel(left);
        self.prepare_keywords();
    }

    /// Cancels the pending keyword responses; returns the effects that still synthesize them.
    pub(super) fn take_keywords(&mut self) -> Vec<EffectId> {
        self.keywords.drain(..).filter(|clip| !clip.complete).map(|clip| clip.effect).collect()
    }

    /// Looks for keywords, or asks the mind, when the running text of the other side's turn has changed.
    pub(super) fn match_running_text(&mut self) {
        let Some((onset, text)) = self.other.turn.as_ref().map(|turn| (turn.from, turn.text().clone())) else { return };
        if !self.may_barge_in() {
            return;
        }
        match self.rules.interruption.clone() {
            Interruption::Keywords(keywords) => {
                for (at, keyword) in keywords.iter().enumerate() {
                    let fresh = self.keywords.get(at).is_some_and(|clip| clip.used_in != Some(onset));
                    if fresh && self.barge_in.is_none() && contains_phrase(&text, &keyword.keyword) {
                        self.draw_keyword(at, onset, &keyword.keyword, &keyword.response, keyword.probability);
                    }
                }
            }
            Interruption::Contextual { prompt } => self.ask_context(onset, prompt),
            Interruption::None | Interruption::Level { .. } => {}
        }
    }

    fn draw_keyword(&mut self, at: usize, onset: Sample, keyword: &str, response: &str, probability: f64) {
        self.keywords[at].used_in = Some(onset);
        let u = self.draws.interruption.unit();
        if u >= probability {
            return;
        }
        let at_ms = ((self.scene.at - onset).max(0) / PER_MS) as u32;
        let what = EventKind::InterruptionDecided { kind: "keywords".into(), u, at_ms, keyword: Some(keyword.into()) };
        self.event(onset, Side::Dh, what);
        let utterance = if self.keywords[at].complete {
            self.last_utterance += 1;
            let mut ready = Utterance::new(self.last_utterance, Kind::Interruption, true);
            ready.add_words(response, READY);
            for pcm in &self.keywords[at].audio {
                ready.give(READY, pcm.clone(), false);
            }
            ready.give(READY, Arc::new([]), true);
            ready
        } else {
            self.words(response, Kind::Interruption, true)
        };
        self.barge_in =
            Some(PlannedBargeIn { utterance: Some(utterance), to_the_end: true, ..PlannedBargeIn::at(self.scene.at) });
    }

    fn ask_context(&mut self, onset: Sample, prompt: String) {
        let into = self.scene.at - onset;
        let again = self.scene.at - self.other.asked_at >= ms(CONTEXT_EVERY_MS);
        let is_barged_in = self.other.turn.as_ref().is_some_and(|turn| turn.is_barged_in);
        if self.barge_in.is_some() || is_barged_in || into < ms(CONTEXT_FROM_MS) || !again || self.other.since.is_none()
        {
            return;
        }
        self.other.asked_at = self.scene.at;
        let thinking = Some(self.think(Purpose::Contextual { prompt }));
        self.barge_in = Some(PlannedBargeIn { thinking, ..PlannedBargeIn::at(self.scene.at) });
    }

    /// Takes a move that the interruption waited for; false when it belongs to something else.
    pub(super) fn take_barge_in_move(&mut self, id: EffectId, next: &Move) -> bool {
        let Some(mut planned) = self.barge_in.take_if(|planned| planned.thinking == Some(id)) else { return false };
        let contextual = matches!(self.rules.interruption, Interruption::Contextual { .. });
        if contextual && next.say.is_empty() {
            return true;
        }
        planned.notes.extend(&next.notes);
        if contextual && planned.utterance.is_none() {
            let onset = self.other.turn.as_ref().map_or(planned.at, |turn| turn.from);
            let at_ms = ((self.scene.at - onset).max(0) / PER_MS) as u32;
            let what = EventKind::InterruptionDecided { kind: "contextual".into(), u: 0.0, at_ms, keyword: None };
            self.event(onset, Side::Dh, what);
        }
        if let Some(said) = planned.utterance.as_mut().filter(|_| !next.say.is_empty()) {
            let effect = self.effect(Effect::Synthesize { text: next.say.clone(), fluency: !next.exact });
            said.add_words(&next.say, effect);
        }
        if planned.utterance.is_none() {
            let drawn = self.draws.words.index(self.rules.phrases.interruption.len());
            let fixed = self.rules.phrases.interruption.get(drawn).cloned().unwrap_or_default();
            let text = if next.say.is_empty() { fixed } else { next.say.clone() };
            if text.is_empty() {
                return true;
            }
            planned.utterance = Some(self.words(&text, Kind::Interruption, false));
        }
        if !next.more {
            planned.thinking = None;
        }
        self.barge_in = Some(planned);
        true
    }

    pub(super) fn give_to_barge_in(&mut self, id: EffectId, pcm: &Arc<[i16]>, last: bool) {
        let planned = self.barge_in.as_mut().and_then(|planned| planned.utterance.as_mut());
        if planned.is_some_and(|said| said.give(id, pcm.clone(), last)) {
            return;
        }
        match self.keywords.iter_mut().find(|clip| clip.effect == id) {
            Some(clip) => {
                clip.audio.push(pcm.clone());
                clip.complete = last;
            }
            None => self.give_to_probe(id, pcm, last),
        }
    }

    pub(super) fn run_barge_in(&mut self) {
        let frame_end = self.scene.at + FRAME as Sample;
        let Some(planned) = self.barge_in.as_ref().filter(|planned| planned.at < frame_end) else { return };
        let ready = planned.thinking.is_none() && planned.utterance.as_ref().is_some_and(Utterance::is_ready);
        let mine = self.mouth.speaking_since().is_some() || self.dial.is_some() || self.hold.is_some();
        if mine {
            return self.drop_barge_in();
        }
        if !ready || self.other.since.is_none() {
            return;
        }
        let Some(planned) = self.barge_in.take() else { return };
        let Some(mut utterance) = planned.utterance else { return };
        let at = planned.at.max(self.scene.at);
        utterance.holds_floor = planned.to_the_end;
        if let Some(plan) = self.plan.take_if(|plan| plan.stage != PlanStage::Taken) {
            self.cancel(plan.effects());
        }
        if let Some(turn) = &mut self.other.turn {
            turn.is_barged_in = true;
        }
        self.barge_in_count += 1;
        planned.notes.iter().for_each(|code| self.note(at, code));
        self.begin(utterance, at);
        self.settle_overlap();
        self.overlap = Some(Overlap::new(Side::Dh, at));
    }

    /// Stops this side's words when it is time to give way.
    pub(super) fn run_yield(&mut self) {
        let (Some(started), Some(onset)) = (self.mouth.speaking_since(), self.other.since) else { return };
        let held = self.is_held();
        let interrupts = self.mouth.saying().is_some_and(|said| said.kind == Kind::Interruption);
        let turn = &self.rules.turn;
        // In noise an onset is sure only in hindsight: there the other side gets the time in which this one yields to
        // it.
        let sure = !self.scene.in_noise;
        let both_started = sure && (onset - started).abs() <= ms(turn.both_start_ms) && !interrupts;
        if !held
            && (both_started || self.has_spoken(onset, turn.yield_after_ms))
            && let Some(said) = self.mouth.saying()
        {
            said.stop();
        }
    }

    /// True when the other side has spoken for `length_ms` since `onset`. Where the jitter buffer is too deep to
    /// receive that in time, it is true unless a pause was received.
    fn has_spoken(&self, onset: Sample, length_ms: u32) -> bool {
        let Some(spoken_to) = self.scene.spoken_to else { return false };
        let heard = spoken_to - onset > ms(length_ms);
        let goes_on = self.scene.heard_to - spoken_to <= ms(PAUSE_MS);
        heard || (goes_on && self.scene.at >= onset + ms(length_ms + LATEST_MS))
    }

    /// True while this side does not give way: its words are to be said to their end, or it has just barged in.
    pub(super) fn is_held(&mut self) -> bool {
        let Some(started) = self.mouth.speaking_since() else { return false };
        let interrupts = self.mouth.saying().is_some_and(|said| said.kind == Kind::Interruption);
        self.mouth.holds_floor() || (interrupts && self.scene.at < started + ms(self.rules.turn.hold_floor_ms))
    }
}
