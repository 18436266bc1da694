//! The machine that decides who speaks when: turns of the other side, answers and their delivery, and barge-in of
//! either side.
//!
//! A machine without audio and without a network. It takes percepts, ticks, results of effects and the beginnings and
//! ends of this side's own sound; it gives [`Decision`]s. Each input is preceded by [`TurnTaking::look`]: the state of
//! the call that the turn-taking may see.

mod answer;
mod barge_in;
mod delivery;
mod hearing;
mod hold;
mod messages;
mod overlap;
mod plan;
mod probe;
mod results;
mod silence;
#[cfg(test)]
mod tests;
mod timing;
mod turn;

use std::collections::VecDeque;

use self::barge_in::{KeywordClip, PlannedBargeIn};
use self::hearing::OtherTurn;
use self::hold::Hold;
use self::overlap::Overlap;
use self::plan::Plan;
use self::probe::Probes;
use super::concealed::Concealed;
use super::dial::Dial;
use super::ending::{EndReason, Fault};
use super::event::{Event, EventKind, Side};
use super::io::{ConversationLine, Effect, EffectId};
use super::mouth::{Mouth, Rendered};
use super::ms;
use super::script::Script;
use super::spec::{CallSpec, Interruption, Opening, Phrases, ScriptRule, TimedBargeIn, TurnRules};
use crate::frame::Sample;
use crate::seed::Stream;

/// Time after a turn in which its text may still come while the call goes on, in milliseconds.
const LATE_TEXT_MS: u32 = 10_000;

/// Finding of the analysis of received audio, or of what came beside it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Percept {
    /// The other side began to speak.
    SpeechStarted {
        /// True onset of its speech.
        onset: Sample,
    },
    /// The other side ceased to speak.
    SpeechEnded {
        /// True end of its speech.
        end: Sample,
    },
    /// The other side sent a digit.
    Digit {
        /// One of 0-9, * and #, A-D.
        digit: char,
        /// First sample of the digit.
        from: Sample,
        /// Length of the digit in milliseconds.
        duration_ms: u32,
        /// Way in which it came, as timelines name it.
        method: &'static str,
    },
}

/// Order of the turn-taking to the call, to be carried out in order.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// Report this event in the timeline.
    Event(Event),
    /// Have this work done; the result comes back under the same id.
    Effect(EffectId, Effect),
    /// Feed the recognizer with the audio from a little before this onset on.
    Feed(Sample),
    /// Drop frames of this side that were handed out and have not been sent.
    ClearBuffered,
    /// Send this digit of this side.
    Digit {
        /// One of 0-9, * and #, A-D.
        digit: char,
        /// First sample of the digit.
        at: Sample,
    },
    /// End the call for this fault.
    Fail(Fault),
}

/// State of the call that the turn-taking may see.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Scene {
    /// First sample of the next frame to be sent.
    pub at: Sample,
    /// One past the last sample heard.
    pub heard_to: Sample,
    /// One past the last sample of the other side's speech, while it speaks.
    pub spoken_to: Option<Sample>,
    /// True while a sound of the other side is not confirmed as speech yet.
    pub stirring: bool,
    /// True while the other side is heard in noise.
    pub in_noise: bool,
    /// True when a recognizer gives turns their text.
    pub text: bool,
    /// True while nothing is sent because the other side does not want to hear.
    pub mute: bool,
    /// True while the other side has put the call on hold.
    pub on_hold: bool,
    /// True while the other side has left and may come back.
    pub away: bool,
}

/// Settings of a call that only the turn-taking acts on.
#[derive(Debug)]
struct Rules {
    turn: TurnRules,
    max_turns: Option<u32>,
    interruption: Interruption,
    script: Vec<ScriptRule>,
    script_ordered: bool,
    meaning_ms: Option<u32>,
    hangup_phrases: Vec<String>,
    phrases: Phrases,
    follows_language: bool,
    /// True when the recognizer needs whole stretches of speech.
    whole_speech: bool,
}

impl Rules {
    /// Takes the settings out of `spec`.
    fn take(spec: &mut CallSpec) -> Rules {
        Rules {
            turn: std::mem::take(&mut spec.turn),
            max_turns: spec.limits.max_turns,
            interruption: std::mem::replace(&mut spec.interruption, Interruption::None),
            script: std::mem::take(&mut spec.script),
            script_ordered: spec.script_ordered,
            meaning_ms: spec.meaning_ms,
            hangup_phrases: std::mem::take(&mut spec.hangup_phrases),
            phrases: std::mem::take(&mut spec.phrases),
            follows_language: spec.follows_language,
            whole_speech: spec.ears.whole,
        }
    }
}

/// State of the other side's speech and turns.
#[derive(Debug, Default)]
struct Other {
    /// Onset of the speech that runs.
    since: Option<Sample>,
    /// True end of the last speech.
    ended: Option<Sample>,
    /// Turn that has begun and is not over.
    turn: Option<OtherTurn>,
    /// The turn, which nobody answers, is over here unless it goes on.
    over_at: Option<Sample>,
    /// Turns that are over but whose text is still to come.
    closing: Vec<OtherTurn>,
    /// True once it has spoken for 200 ms or more.
    spoke: bool,
    /// Turns that are over.
    turns: u32,
    /// Position at which the mind was last asked about an interruption.
    asked_at: Sample,
    /// Text that it told by messages and that belongs to no turn yet.
    reported: String,
}

/// The turn-taking's streams of draws.
#[derive(Debug)]
struct Draws {
    interruption: Stream,
    opening: Stream,
    words: Stream,
}

/// The sub-machine of turn-taking.
#[derive(Debug)]
pub(super) struct TurnTaking {
    /// Sources of this side's sound.
    pub mouth: Mouth,
    /// Concealed audio of the other side, counted for its turns.
    pub concealed: Concealed,
    rules: Rules,
    scene: Scene,
    decisions: VecDeque<Decision>,
    other: Other,
    plan: Option<Plan>,
    barge_in: Option<PlannedBargeIn>,
    /// Words for a fixed time in the other side's next turn.
    wanted_barge_in: Option<TimedBargeIn>,
    overlap: Option<Overlap>,
    keywords: Vec<KeywordClip>,
    barge_in_count: u32,
    /// State of the probes; `None` when no kind is asked for.
    probes: Option<Box<Probes>>,
    dial: Option<Dial>,
    hold: Option<Hold>,
    script: Script,
    history: Vec<ConversationLine>,
    unsaid: Option<String>,
    opening: Opening,
    draws: Draws,
    last_effect: u32,
    last_utterance: u32,
    /// True while a recognizer is being fed.
    feeding: bool,
    /// The other side pauses: the recognizer is fed until here.
    linger: Option<Sample>,
    /// Start of the conversation, once the extension is dialled.
    start: Option<Sample>,
    /// First sample of the mutual silence.
    quiet_since: Sample,
    /// Position of the last speech or digit of either side.
    active_at: Sample,
    /// Re-prompts since the other side last spoke.
    reprompts: u32,
    /// Position and reason of a hang-up that is due.
    hangup: Option<(Sample, EndReason)>,
}

impl TurnTaking {
    /// Returns the state before the conversation. Takes out of `spec` what only the turn-taking acts on.
    pub(super) fn new(spec: &mut CallSpec) -> TurnTaking {
        let probes = Probes::new(spec).map(Box::new);
        let draws = Draws {
            interruption: spec.seed.stream("interruption"),
            opening: spec.seed.stream("opening"),
            words: spec.seed.stream("words"),
        };
        TurnTaking {
            mouth: Mouth::new(spec, crate::frame::RATE_HZ),
            concealed: Concealed::new(),
            scene: Scene::default(),
            decisions: VecDeque::with_capacity(8),
            other: Other::default(),
            plan: None,
            barge_in: None,
            wanted_barge_in: spec.cut.take(),
            overlap: None,
            keywords: Vec::new(),
            barge_in_count: 0,
            probes,
            dial: None,
            hold: None,
            script: Script::new(spec.script.len()),
            history: Vec::new(),
            unsaid: None,
            opening: spec.opening.clone(),
            draws,
            last_effect: 0,
            last_utterance: 0,
            feeding: false,
            linger: None,
            start: None,
            quiet_since: 0,
            active_at: 0,
            reprompts: 0,
            hangup: None,
            rules: Rules::take(spec),
        }
    }

    // --- inputs ---

    /// Sees the state of the call. It holds for the next inputs.
    pub(super) fn look(&mut self, scene: Scene) {
        self.scene = scene;
    }

    /// Takes a percept of the other side.
    pub(super) fn perceive(&mut self, percept: Percept) {
        match percept {
            Percept::SpeechStarted { onset } => self.other_speaks(onset),
            Percept::SpeechEnded { end } => self.other_stops(end),
            Percept::Digit { digit, from, duration_ms, method } => self.digit_heard(digit, from, duration_ms, method),
        }
    }

    /// Runs what is due at a frame's start. While this side `is_unheard` everything that was due is delayed.
    pub(super) fn tick(&mut self, is_unheard: bool) {
        self.close_late(self.scene.at - ms(LATE_TEXT_MS));
        if is_unheard {
            return self.stand_still();
        }
        self.run_hold();
        self.run_silence();
        self.run_linger();
        self.run_pause();
        self.run_plan();
        self.run_barge_in();
        self.run_yield();
        self.run_probes();
    }

    /// Takes the beginnings and ends of this side's sound in the frame that was sent.
    pub(super) fn take_own(&mut self, own: Rendered) {
        if let Some(begun) = own.begun {
            self.speech_begins(begun);
        }
        if let Some(probe) = own.probe {
            self.probe_ended(probe, false);
        }
        if let Some(said) = own.words {
            self.said(said);
        }
    }

    /// Orders the audio that is kept ready for keywords and probes.
    pub(super) fn prepare_audio(&mut self) {
        self.prepare_keywords();
        self.prepare_probes();
    }

    /// Drops everything that was planned, as the call ends.
    pub(super) fn drop_plans(&mut self) {
        let mut left: Vec<EffectId> = self.plan.take().map(|plan| plan.effects()).unwrap_or_default();
        left.extend(self.hold.take().map(|hold| hold.effects()).unwrap_or_default());
        left.extend(self.take_keywords());
        self.cancel(left);
        self.drop_barge_in();
        self.drop_probes();
        self.dial = None;
        self.hangup = None;
    }

    /// Keeps the inactivity limit from running for `by` samples.
    pub(super) fn stay_active(&mut self, by: Sample) {
        self.active_at += by;
    }

    // --- outputs ---

    /// Returns the next decision; `None` when all were taken.
    pub(super) fn poll(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// Returns the reason of a hang-up that is due at `at`.
    pub(super) fn due_hangup(&self, at: Sample) -> Option<EndReason> {
        self.hangup.filter(|(due, _)| at >= *due).map(|(_, reason)| reason)
    }

    /// Returns the position of the last speech or digit of either side.
    pub(super) fn active_at(&self) -> Sample {
        self.active_at
    }

    /// Returns the start of the conversation, once the extension is dialled.
    pub(super) fn start(&self) -> Option<Sample> {
        self.start
    }

    /// True while the recognizer is being fed.
    pub(super) fn is_feeding(&self) -> bool {
        self.feeding
    }

    /// True once the other side has spoken for 200 ms or more.
    pub(super) fn has_heard_speech(&self) -> bool {
        self.other.spoke
    }

    /// True while text of turns that are over is still to come.
    pub(super) fn is_waiting_for_text(&self) -> bool {
        self.other.closing.iter().any(|turn| !turn.is_final())
    }

    /// True when nobody speaks and no digits are sent.
    pub(super) fn is_quiet(&self) -> bool {
        self.other.since.is_none() && self.mouth.speaking_since().is_none() && self.dial.is_none()
    }

    // --- what the parts share ---

    fn decide(&mut self, decision: Decision) {
        self.decisions.push_back(decision);
    }

    fn event(&mut self, sample: Sample, side: Side, what: EventKind) {
        self.decide(Decision::Event(Event { sample, side, what }));
    }

    fn note(&mut self, sample: Sample, code: &'static str) {
        self.event(sample, Side::Engine, EventKind::Note { code: code.into(), why: String::new() });
    }

    fn effect(&mut self, effect: Effect) -> EffectId {
        self.last_effect += 1;
        let id = EffectId(self.last_effect);
        self.decide(Decision::Effect(id, effect));
        id
    }

    fn cancel(&mut self, effects: Vec<EffectId>) {
        for id in effects {
            self.effect(Effect::Cancel(id));
        }
    }
}
