//! The turn-taking by tables: percepts and ticks in, decisions out. No audio is received, and no recognizer or mind is
//! there.

use std::sync::Arc;

use super::*;
use crate::call::io::{Effected, Move, Then};
use crate::call::spec::{Matching, Response};
use crate::frame::{FRAME, PER_MS, SILENCE};

/// An input at a time, in milliseconds.
#[derive(Copy, Clone, Debug)]
enum In {
    /// The other side begins to speak.
    Starts,
    /// The other side ceases to speak.
    Stops,
    /// The other side sends a digit of 100 ms.
    Digit(char),
    /// Running text of the other side.
    Partial(&'static str),
    /// This side is unheard from now on, or heard again.
    Unheard(bool),
}

use In::{Digit, Partial, Starts, Stops, Unheard};

/// Turn-taking with a recognizer and a mind that answer at once: each turn has the text `heard`, each move says `says`.
struct Stage {
    turn_taking: TurnTaking,
    scene: Scene,
    is_speaking: bool,
    is_unheard: bool,
    /// The effect that a running text belongs to.
    hears: EffectId,
    heard: &'static str,
    says: Move,
    /// Number of the words that are being said, and whether they are being stopped.
    said: (u32, bool),
    trace: Vec<String>,
}

impl Stage {
    fn new(mut spec: CallSpec, heard: &'static str, says: Move) -> Stage {
        let mut turn_taking = TurnTaking::new(&mut spec);
        turn_taking.look(Scene { text: true, ..Scene::default() });
        turn_taking.begin_call(None);
        turn_taking.prepare_audio();
        let scene = Scene { text: true, ..Scene::default() };
        Stage {
            turn_taking,
            scene,
            is_speaking: false,
            is_unheard: false,
            hears: EffectId(0),
            heard,
            says,
            said: (0, false),
            trace: Vec::new(),
        }
    }

    fn write(&mut self, at: Sample, line: &str) {
        self.trace.push(format!("{} {line}", at / PER_MS));
    }

    fn take(&mut self, input: In) {
        let at = self.scene.at;
        match input {
            Starts => {
                self.is_speaking = true;
                self.turn_taking.perceive(Percept::SpeechStarted { onset: at });
            }
            Stops => {
                self.is_speaking = false;
                self.turn_taking.perceive(Percept::SpeechEnded { end: at });
            }
            Digit(digit) => {
                self.turn_taking.perceive(Percept::Digit { digit, from: at, duration_ms: 100, method: "inband" });
            }
            Partial(text) => self.turn_taking.take_result(self.hears, Effected::Partial(text.into())),
            Unheard(is_unheard) => self.is_unheard = is_unheard,
        }
    }

    /// Runs one frame: the tick, this side's sound, then `inputs`.
    fn step(&mut self, inputs: impl Iterator<Item = In>) {
        self.look();
        self.turn_taking.run_dial();
        self.turn_taking.tick(self.is_unheard);
        self.carry_out();
        let (mut sent, mut clean) = (SILENCE, SILENCE);
        let own = self.turn_taking.mouth.render(self.scene.at, &mut sent, &mut clean);
        self.scene.at += FRAME as Sample;
        self.look();
        self.turn_taking.take_own(own);
        self.carry_out();
        for input in inputs {
            self.take(input);
            self.carry_out();
        }
    }

    fn look(&mut self) {
        self.scene.heard_to = self.scene.at;
        self.scene.spoken_to = self.is_speaking.then_some(self.scene.at);
        self.turn_taking.look(self.scene);
    }

    /// Writes the decisions down, and answers the effects among them.
    fn carry_out(&mut self) {
        while let Some(decision) = self.turn_taking.poll() {
            match decision {
                Decision::Event(event) => self.write(event.sample, event.name()),
                Decision::Effect(id, effect) => self.answer(id, &effect),
                Decision::Feed(_) => {}
                Decision::ClearBuffered => self.write(self.scene.at, "clear"),
                Decision::Digit { digit, at } => self.write(at, &format!("digit {digit}")),
                Decision::Fail(fault) => self.write(self.scene.at, fault.code),
            }
        }
        let said = self.turn_taking.mouth.saying().map(|said| (said.id, said.is_stopping(), said.text(), said.started));
        let Some((id, is_stopping, text, started)) = said else { return };
        if id != self.said.0 {
            self.write(started.unwrap_or_default(), &format!("say {text}"));
        }
        if is_stopping && !self.said.1 {
            self.write(self.scene.at, "yield");
        }
        self.said = (id, is_stopping);
    }

    fn answer(&mut self, id: EffectId, effect: &Effect) {
        match effect {
            Effect::Hear { .. } => self.hears = id,
            Effect::Recognize { .. } => {
                let text = self.heard.to_owned();
                let (words, detected_language) = (Vec::new(), crate::detected_language::DetectedLanguage::default());
                self.turn_taking.take_result(id, Effected::Final { text, words, confidence: None, detected_language });
            }
            Effect::Think(_) => self.turn_taking.take_result(id, Effected::Move(self.says.clone())),
            Effect::Synthesize { .. } => {
                let pcm: Arc<[i16]> = [1000; 8000].into();
                self.turn_taking.take_result(id, Effected::Audio { pcm, last: true });
            }
            Effect::Cancel(_) => self.write(self.scene.at, "cancel"),
            Effect::Compare(_) | Effect::Identify { .. } => {}
        }
    }
}

/// Plays `inputs` until `end_ms`, and compares the decisions.
#[track_caller]
fn check(mut stage: Stage, inputs: &[(Sample, In)], end_ms: Sample, expect: &[&str]) {
    for at_ms in (0..end_ms).step_by(20) {
        let due = inputs.iter().filter(|(at, _)| (at_ms..at_ms + 20).contains(&(at - 20))).map(|(_, input)| *input);
        stage.step(due);
    }
    assert_eq!(stage.trace, expect, "{inputs:?}");
}

fn silent() -> CallSpec {
    CallSpec { opening: Opening::Listen { open_after_ms: None }, ..CallSpec::default() }
}

fn says(text: &str) -> Move {
    Move { say: text.into(), ..Move::default() }
}

#[test]
fn turns_and_answers() {
    let stage = || Stage::new(silent(), "Hi.", says("Hello."));
    check(
        stage(),
        &[(1000, Starts), (2000, Stops)],
        5000,
        &["2000 turn.ended", "3500 say Hello.", "3500 speech.started", "4000 speech.ended"],
    );
    // It goes on before the answer is due.
    check(
        stage(),
        &[(1000, Starts), (2000, Stops), (2600, Starts), (3200, Stops)],
        6000,
        &["3200 turn.ended", "4700 say Hello.", "4700 speech.started", "5200 speech.ended"],
    );
    // A sound of 200 ms is no turn.
    check(stage(), &[(1000, Starts), (1200, Stops)], 5000, &["1200 cancel", "1200 cancel"]);
    // While nobody hears this side, its words wait.
    check(
        stage(),
        &[(1000, Starts), (2000, Stops), (3000, Unheard(true)), (4000, Unheard(false))],
        6000,
        &["2000 turn.ended", "4500 say Hello.", "4500 speech.started", "5000 speech.ended"],
    );
}

#[test]
fn barge_in_of_the_other_side() {
    let stage = |then| Stage::new(silent(), "Hi.", Move { then, ..says("Hello.") });
    let turn = [(1000, Starts), (2000, Stops), (3700, Starts), (4200, Stops)];
    check(
        stage(Then::Listen),
        &turn,
        4600,
        &[
            "2000 turn.ended",
            "3500 say Hello.",
            "3500 speech.started",
            "3920 yield",
            "3925 speech.ended",
            "3940 clear",
            "3700 barge_in",
        ],
    );
    // Words before a hang-up are said to their end.
    check(
        stage(Then::Hangup),
        &turn,
        4600,
        &["2000 turn.ended", "3500 say Hello.", "3500 speech.started", "4000 speech.ended", "3700 barge_in"],
    );
}

#[test]
fn barge_in_of_this_side() {
    let level = Interruption::Level { name: "high", probability: 1.0, from_ms: 600, to_ms: 600, at_most: Some(1) };
    let spec = CallSpec { interruption: level, opening: Opening::Say("Hello.".into()), ..CallSpec::default() };
    let stage = Stage::new(spec, "Hi.", says("Wait."));
    check(
        stage,
        &[(3000, Starts), (4500, Stops)],
        5000,
        &[
            "817 say Hello.",
            "817 speech.started",
            "1317 speech.ended",
            "3000 interruption.decided",
            "3600 say Wait.",
            "3600 speech.started",
            "4100 speech.ended",
            "3600 barge_in",
        ],
    );
    let keyword =
        super::super::spec::KeywordResponse { keyword: "price".into(), response: "How much?".into(), probability: 1.0 };
    let spec = CallSpec {
        interruption: Interruption::Keywords(vec![keyword]),
        opening: Opening::Say("Hello.".into()),
        ..CallSpec::default()
    };
    let stage = Stage::new(spec, "Hi.", says("Wait."));
    check(
        stage,
        &[(3000, Starts), (3600, Partial("the price")), (4500, Stops)],
        5000,
        &[
            "817 say Hello.",
            "817 speech.started",
            "1317 speech.ended",
            "3600 transcript.partial",
            "3000 interruption.decided",
            "3600 say How much?",
            "3600 speech.started",
            "4100 speech.ended",
            "3600 barge_in",
        ],
    );
}

#[test]
fn digits_of_either_side() {
    let turn = TurnRules { digit_turn_ms: Some(1000), ..TurnRules::default() };
    let stage = Stage::new(CallSpec { turn, ..silent() }, "", says("Hello."));
    check(
        stage,
        &[(1000, Digit('1')), (1400, Digit('2'))],
        3000,
        &[
            "1000 dtmf_received",
            "1400 dtmf_received",
            "1500 turn.ended",
            "2500 say Hello.",
            "2500 speech.started",
            "3000 speech.ended",
        ],
    );
    let rule = ScriptRule {
        index: 0,
        matching: Matching::Exact,
        phrase: "press one".into(),
        response: Response::Dtmf("1".into()),
        first_n: None,
    };
    let stage = Stage::new(CallSpec { script: vec![rule], ..silent() }, "Press one.", says("Hello."));
    check(
        stage,
        &[(1000, Starts), (2000, Stops)],
        5000,
        &["2000 turn.ended", "3500 scripted_response", "3500 digit 1"],
    );
}

#[test]
fn mutual_silence() {
    let turn = TurnRules { silence_timeout_ms: 2000, ..TurnRules::default() };
    let mut stage = Stage::new(CallSpec { turn, ..silent() }, "", says("Hello."));
    for _ in 0..250 {
        stage.step(std::iter::empty());
    }
    assert_eq!(stage.turn_taking.due_hangup(stage.scene.at), Some(EndReason::SilenceTimeout));
    assert_eq!(
        stage.trace,
        ["2000 reprompt", "2000 say Hello? Are you there?", "2000 speech.started", "2500 speech.ended"]
    );
}
