//! Barge-in of either side, and the report of each overlap.

use std::sync::Arc;

use super::event::{Kind, Side, What};
use super::io::{Effect, EffectId, Move, Output, Purpose};
use super::plan::Stage;
use super::script::contains_phrase;
use super::spec::{CutIn, Interruption, Opening};
use super::turn::{JOINED_MS, SHORT_MS};
use super::utterance::Utterance;
use super::{Call, ms};
use crate::frame::{FRAME, PER_MS, Sample};

/// Shortest time between two questions to the mind about a running text, and from the turn's onset to the first, in
/// milliseconds.
const CONTEXT_EVERY_MS: u32 = 500;
const CONTEXT_FROM_MS: u32 = 1000;
/// Longest overlapping sound, in milliseconds, that counts as a backchannel when it does not stop the speaker.
const BACKCHANNEL_MS: u32 = 600;
/// Latest moment to stop, in milliseconds after the moment at which it was due.
const LATEST_MS: u32 = 35;
/// Longest quiet at the end of the audio, in milliseconds, that cannot be the end of the speech.
const PAUSE_MS: u32 = 10;

/// Effect id of audio that is there already.
const READY: EffectId = EffectId(u32::MAX);

/// A planned cut into the other side's turn.
#[derive(Debug)]
pub(super) struct Cut {
    /// Earliest sample at which the words begin.
    at: Sample,
    thinking: Option<EffectId>,
    utterance: Option<Utterance>,
    /// Notes of the mind about the words, reported when they begin.
    notes: Vec<&'static str>,
    /// True to hold the floor to the end of its words (keyword responses).
    to_the_end: bool,
    /// Words that a move wanted in the turn, from which this was made.
    wanted: Option<CutIn>,
}

impl Cut {
    fn at(at: Sample) -> Cut {
        Cut { at, thinking: None, utterance: None, notes: Vec::new(), to_the_end: false, wanted: None }
    }

    /// Returns its words, once they are known.
    pub(super) fn utterance(&mut self) -> Option<&mut Utterance> {
        self.utterance.as_mut()
    }
}

/// A stretch in which both sides speak.
#[derive(Debug)]
pub(super) struct Overlap {
    by: Side,
    at: Sample,
    /// This side's words were over here, and the other side's end was not known yet: their true end, and one past the last
    /// sample that was sent.
    own_end: Option<[Sample; 2]>,
    /// The other side fell silent here; it may still go on.
    other_end: Option<Sample>,
}

impl Overlap {
    fn begun(by: Side, at: Sample) -> Overlap {
        Overlap { by, at, own_end: None, other_end: None }
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

impl Call {
    // --- cutting in ---

    /// Drops the interruption that was planned for this turn of the other side, and cancels its effects.
    pub(super) fn drop_cut(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        let mut left: Vec<EffectId> = cut.utterance.iter().flat_map(Utterance::waiting).collect();
        left.extend(cut.thinking);
        self.cancel(left);
    }

    /// Keeps words that a move wants in a turn for the next one, where this was no turn.
    pub(super) fn keep_wanted_cut(&mut self) {
        if let Some(wanted) = self.cut.as_mut().and_then(|cut| cut.wanted.take()) {
            self.wanted_cut.get_or_insert(wanted);
        }
    }

    /// Drops a question to the mind whether to interrupt: the mind is to answer the turn instead.
    pub(super) fn drop_question(&mut self) {
        let contextual = matches!(self.spec.interruption, Interruption::Contextual { .. });
        if contextual && self.cut.as_ref().is_some_and(|cut| cut.thinking.is_some() && cut.utterance.is_none()) {
            self.drop_cut();
        }
    }

    pub(super) fn cut_waits_for(&self, id: EffectId) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.thinking == Some(id))
    }

    /// True when this side may interrupt: not in the greeting of a side that is listened to first, nor in a silence
    /// kept on purpose.
    fn may_cut_in(&self) -> bool {
        let greeting = self.history.is_empty() && matches!(self.opening, Opening::Listen { .. });
        !greeting && self.hold.is_none() && self.waits.hangup.is_none()
    }

    /// Draws whether and when this side interrupts, at the onset of a turn of the other side.
    pub(super) fn draw_interruption(&mut self, onset: Sample) {
        if self.take_wanted_cut(onset) {
            return;
        }
        let Interruption::Level { name, probability, from_ms, to_ms, at_most } = self.spec.interruption else { return };
        let u = self.draws.interruption.unit();
        let at_ms = self.draws.interruption.range(from_ms.into(), to_ms.into()) as u32;
        if u >= probability || !self.may_cut_in() || at_most.is_some_and(|limit| self.cuts >= limit) {
            return;
        }
        self.event(onset, Side::Dh, What::InterruptionDecided { kind: name.into(), u, at_ms, keyword: None });
        self.drop_cut();
        let thinking = Some(self.think(Purpose::CutIn));
        self.cut = Some(Cut { thinking, ..Cut::at(onset + ms(at_ms)) });
    }

    /// Plans the words that a move wanted in this turn. False when there are none, or this side speaks.
    fn take_wanted_cut(&mut self, onset: Sample) -> bool {
        let may = self.mouth.speaking_since().is_none() && self.hold.is_none() && self.waits.hangup.is_none();
        let Some(wanted) = self.wanted_cut.take_if(|_| may) else { return false };
        let (kind, after_ms) = ("playback".into(), wanted.after_ms);
        self.event(onset, Side::Dh, What::InterruptionDecided { kind, u: 0.0, at_ms: after_ms, keyword: None });
        self.drop_cut();
        let utterance = Some(self.words(&wanted.say, Kind::Interruption, true));
        self.cut = Some(Cut { utterance, to_the_end: true, wanted: Some(wanted), ..Cut::at(onset + ms(after_ms)) });
        true
    }

    pub(super) fn prepare_keywords(&mut self) {
        let Interruption::Keywords(keywords) = self.spec.interruption.clone() else { return };
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
        if !self.may_cut_in() {
            return;
        }
        match self.spec.interruption.clone() {
            Interruption::Keywords(keywords) => {
                for (at, keyword) in keywords.iter().enumerate() {
                    let fresh = self.keywords.get(at).is_some_and(|clip| clip.used_in != Some(onset));
                    if fresh && self.cut.is_none() && contains_phrase(&text, &keyword.keyword) {
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
        let at_ms = ((self.frame_at - onset).max(0) / PER_MS) as u32;
        let what = What::InterruptionDecided { kind: "keywords".into(), u, at_ms, keyword: Some(keyword.into()) };
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
        self.cut = Some(Cut { utterance: Some(utterance), to_the_end: true, ..Cut::at(self.frame_at) });
    }

    fn ask_context(&mut self, onset: Sample, prompt: String) {
        let into = self.frame_at - onset;
        let again = self.frame_at - self.other.asked_at >= ms(CONTEXT_EVERY_MS);
        let cut = self.other.turn.as_ref().is_some_and(|turn| turn.cut);
        if self.cut.is_some() || cut || into < ms(CONTEXT_FROM_MS) || !again || self.other.since.is_none() {
            return;
        }
        self.other.asked_at = self.frame_at;
        let thinking = Some(self.think(Purpose::Contextual { prompt }));
        self.cut = Some(Cut { thinking, ..Cut::at(self.frame_at) });
    }

    /// Takes a move that the interruption waited for; false when it belongs to something else.
    pub(super) fn cut_moved(&mut self, id: EffectId, next: &Move) -> bool {
        let Some(mut cut) = self.cut.take_if(|cut| cut.thinking == Some(id)) else { return false };
        let contextual = matches!(self.spec.interruption, Interruption::Contextual { .. });
        if contextual && next.say.is_empty() {
            return true;
        }
        cut.notes.extend(&next.notes);
        if contextual && cut.utterance.is_none() {
            let onset = self.other.turn.as_ref().map_or(cut.at, |turn| turn.from);
            let at_ms = ((self.frame_at - onset).max(0) / PER_MS) as u32;
            let what = What::InterruptionDecided { kind: "contextual".into(), u: 0.0, at_ms, keyword: None };
            self.event(onset, Side::Dh, what);
        }
        if let Some(said) = cut.utterance.as_mut().filter(|_| !next.say.is_empty()) {
            self.last_effect += 1;
            let effect = EffectId(self.last_effect);
            self.out.push(Output::Effect(effect, Effect::Synthesize { text: next.say.clone(), fluency: !next.exact }));
            said.add_words(&next.say, effect);
        }
        if cut.utterance.is_none() {
            let drawn = self.draws.words.index(self.spec.phrases.interruption.len());
            let fixed = self.spec.phrases.interruption.get(drawn).cloned().unwrap_or_default();
            let text = if next.say.is_empty() { fixed } else { next.say.clone() };
            if text.is_empty() {
                return true;
            }
            cut.utterance = Some(self.words(&text, Kind::Interruption, false));
        }
        if !next.more {
            cut.thinking = None;
        }
        self.cut = Some(cut);
        true
    }

    pub(super) fn give_to_cut(&mut self, id: EffectId, pcm: &Arc<[i16]>, last: bool) {
        let planned = self.cut.as_mut().and_then(|cut| cut.utterance.as_mut());
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

    pub(super) fn run_cut(&mut self) {
        let frame_end = self.frame_at + FRAME as Sample;
        let Some(cut) = self.cut.as_ref().filter(|cut| cut.at < frame_end) else { return };
        let ready = cut.thinking.is_none() && cut.utterance.as_ref().is_some_and(Utterance::is_ready);
        let mine = self.mouth.speaking_since().is_some() || self.dial.is_some() || self.hold.is_some();
        if mine {
            return self.drop_cut();
        }
        if !ready || self.other.since.is_none() {
            return;
        }
        let Some(cut) = self.cut.take() else { return };
        let Some(mut utterance) = cut.utterance else { return };
        let at = cut.at.max(self.frame_at);
        utterance.holds_floor = cut.to_the_end;
        if let Some(plan) = self.plan.take_if(|plan| plan.stage != Stage::Taken) {
            self.cancel(plan.effects());
        }
        if let Some(turn) = &mut self.other.turn {
            turn.cut = true;
        }
        self.cuts += 1;
        cut.notes.iter().for_each(|code| self.note(at, code));
        self.begin(utterance, at);
        self.settle_overlap();
        self.overlap = Some(Overlap::begun(Side::Dh, at));
    }

    // --- overlaps ---

    /// Begins an overlap: the other side's speech is confirmed while this side speaks.
    pub(super) fn overlap_begins(&mut self, started: Sample, onset: Sample) {
        if self.overlap.is_none() {
            let (by, at) = if onset >= started { (Side::Agent, onset) } else { (Side::Dh, started) };
            self.overlap = Some(Overlap::begun(by, at));
        }
    }

    /// Takes up an overlap again when the other side speaks from `onset` on; after a short pause it had not stopped.
    pub(super) fn overlap_goes_on(&mut self, onset: Sample) {
        self.settle_pause(onset - ms(JOINED_MS));
        if let Some(overlap) = &mut self.overlap {
            overlap.other_end = None;
        }
    }

    /// Stops this side's words when it is time to give way.
    pub(super) fn run_yield(&mut self) {
        let (Some(started), Some(onset)) = (self.mouth.speaking_since(), self.other.since) else { return };
        let held = is_floor_held(self);
        let cut_in = self.mouth.saying().is_some_and(|said| said.kind == Kind::Interruption);
        let turn = &self.spec.turn;
        // In noise an onset is sure only in hindsight: there the other side gets the time in which this one yields to it.
        let sure = !self.ears.voice.vad().in_noise();
        let both_started = sure && (onset - started).abs() <= ms(turn.both_start_ms) && !cut_in;
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
        let Some(spoken_to) = self.ears.voice.vad().spoken_to() else { return false };
        let heard = spoken_to - onset > ms(length_ms);
        let goes_on = self.ears.heard_to - spoken_to <= ms(PAUSE_MS);
        heard || (goes_on && self.frame_at >= onset + ms(length_ms + LATEST_MS))
    }

    /// Notes that the other side fell silent at `end`.
    pub(super) fn overlap_ends(&mut self, end: Sample) {
        if let Some(overlap) = &mut self.overlap {
            overlap.other_end = Some(end);
        }
    }

    /// Reports an overlap in which the other side fell silent at `by` or before.
    pub(super) fn settle_pause(&mut self, by: Sample) {
        if self.overlap.as_ref().is_some_and(|overlap| overlap.other_end.is_some_and(|end| end <= by)) {
            self.settle_overlap();
        }
    }

    /// Corrects an overlap by the true onset of this side's words: both sides cannot have spoken before it.
    pub(super) fn own_speech_began(&mut self, onset: Sample) {
        if let Some(overlap) = self.overlap.as_mut().filter(|overlap| overlap.at < onset) {
            (overlap.by, overlap.at) = (Side::Dh, onset);
        }
    }

    /// Notes that this side's words were over at `end`. Whether the other side had stopped before is known some 120 ms
    /// later.
    pub(super) fn own_speech_ended(&mut self, end: Sample, sent: Sample) {
        if let Some(overlap) = &mut self.overlap {
            overlap.own_end.get_or_insert([end, sent]);
        }
        if self.other.since.is_none() && self.overlap.as_ref().is_some_and(|overlap| overlap.other_end.is_none()) {
            self.settle_overlap();
        }
    }

    /// Reports the overlap that is over, when its length is known.
    fn settle_overlap(&mut self) {
        let Some(Overlap { by, at, own_end, other_end }) = self.overlap.take() else { return };
        let other_stopped = other_end.is_some_and(|end| own_end.is_none_or(|[own, _]| end <= own));
        let ended = if other_stopped { other_end.map(|end| [end, end]) } else { own_end };
        // How long this side spoke on does not depend on how loud its last sounds were.
        let Some([overlap_ms, spoken_ms]) = ended.map(|ends| ends.map(|end| ((end - at).max(0) / PER_MS) as u32))
        else {
            return;
        };
        // A sound of the other side that stops nobody counts only when it is longer than a backchannel. Own words overlap
        // nothing when the other side had stopped before it could be known.
        let least_ms = match by {
            Side::Dh => 1,
            _ if other_stopped => BACKCHANNEL_MS,
            _ => SHORT_MS,
        };
        let stop_ms = (other_stopped == (by == Side::Dh)).then_some(overlap_ms);
        if spoken_ms >= least_ms && overlap_ms > 0 {
            self.event(at, by, What::BargeIn { by, overlap_ms, stop_ms });
        }
    }
}

/// True while this side does not give way: its words are to be said to their end, or it has just cut in.
pub(super) fn is_floor_held(call: &mut Call) -> bool {
    let Some(started) = call.mouth.speaking_since() else { return false };
    let cut_in = call.mouth.saying().is_some_and(|said| said.kind == Kind::Interruption);
    call.mouth.holds_floor() || (cut_in && call.frame_at < started + ms(call.spec.turn.hold_floor_ms))
}
