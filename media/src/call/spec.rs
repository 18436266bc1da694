//! Settings of a call as plain values. The caller of this library translates its own resources into them.

use std::sync::Arc;

use crate::codec::opus::Opus;
use crate::connection::ConnectionSpec;
use crate::impair::AudioQuality;
use crate::seed::Seed;

/// Words at a fixed time in the other side's turn.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TimedBargeIn {
    /// Milliseconds from the true onset of the other side's turn.
    pub after_ms: u32,
    /// Words, said exactly and to their end.
    pub say: String,
}

/// Description of one simulated conversation.
#[derive(Clone, Debug)]
pub struct CallSpec {
    /// Seed of every draw that this call makes.
    pub seed: Seed,
    /// Rules and times of turn-taking.
    pub turn: TurnRules,
    /// Behaviour after connect, until somebody has spoken.
    pub opening: Opening,
    /// Condition under which this side interrupts the other side's speech.
    pub interruption: Interruption,
    /// Words that interrupt the other side's first turn.
    pub cut: Option<TimedBargeIn>,
    /// Rates of sounds that ask for no reaction, made while the other side speaks.
    pub probes: ProbeRates,
    /// Scripted answers, in the order in which they are tested.
    pub script: Vec<ScriptRule>,
    /// True to test the first unused rule of `script` only.
    pub script_ordered: bool,
    /// Time that a mind has to tell whether a turn has the meaning of a rule of `script`, in milliseconds. When it is
    /// late, and with `None`, words are compared.
    pub meaning_ms: Option<u32>,
    /// Phrases of the other side that end the call (normal form, whole words).
    pub hangup_phrases: Vec<String>,
    /// True to accept a transfer that the other side asks for and end the call. Otherwise the call goes on, with the
    /// target where the channel may call it.
    pub hangup_on_transfer: bool,
    /// Digits dialled 500 ms after connect; a comma is 1000 ms of silence.
    pub extension: Option<String>,
    /// Way in which digits are sent.
    pub dtmf: DtmfMethod,
    /// Limits of time and turns.
    pub limits: Limits,
    /// Background noise, mixed under everything from connect to hang-up.
    pub noise: Option<NoiseSpec>,
    /// Band limit, clipping and added noise of the sent audio.
    pub audio_quality: AudioQuality,
    /// Beginning of each utterance that is not sent, in milliseconds, as by a gate that opens late; 0 for none. This
    /// side takes it for said.
    pub onset_lost_ms: u32,
    /// Loss and jitter put between the call and its network, in both directions.
    pub connection: ConnectionSpec,
    /// Fixed sentences, in the call's language.
    pub phrases: Phrases,
    /// True to ask for the other side's language with each of its turns ([`super::Effect::Identify`]), and to follow
    /// it.
    pub follows_language: bool,
    /// Analysis that runs on the received audio.
    pub ears: Ears,
    /// Library that codes Opus.
    pub opus: Opus,
}

/// Times of turn-taking, in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRules {
    /// Silence of the other side before this side takes its turn.
    pub endpointing_delay_ms: u32,
    /// Mutual silence before the one re-prompt, and again before the end.
    pub silence_timeout_ms: u32,
    /// Continuous speech of the other side, from its true onset, before this side stops speaking.
    pub yield_after_ms: u32,
    /// Time after an interruption in which this side does not yield.
    pub hold_floor_ms: u32,
    /// Largest difference of two onsets at which both sides are said to start at once: this side gives way.
    pub both_start_ms: u32,
    /// True to stop this side's words when the other side tells by message that it begins to speak.
    pub yield_to_claims: bool,
    /// Time that a due turn waits for the recognizer's final text.
    pub recognizer_grace_ms: u32,
    /// Received digits count as a turn this long after the last of them, and stop this side's speech (`None`: digits
    /// are only handed to the mind with the next turn).
    pub digit_turn_ms: Option<u32>,
    /// False to speak on when digits are received; they are handed to the mind with the next turn.
    pub digits_stop: bool,
}

impl Default for TurnRules {
    fn default() -> Self {
        TurnRules {
            endpointing_delay_ms: 1500,
            silence_timeout_ms: 16_000,
            yield_after_ms: 200,
            hold_floor_ms: 1500,
            both_start_ms: 150,
            yield_to_claims: true,
            recognizer_grace_ms: 150,
            digit_turn_ms: None,
            digits_stop: true,
        }
    }
}

/// Behaviour after connect, until somebody has spoken.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// Listen, and open after this much silence. With `None` only `silence_timeout` makes this side speak.
    Listen {
        /// Milliseconds of mutual silence from connect.
        open_after_ms: Option<u32>,
    },
    /// Say these words exactly, 0.4 to 0.9 s after connect.
    Say(String),
    /// Say words that the mind makes, 0.4 to 0.9 s after connect.
    Made,
}

/// Condition under which this side interrupts the other side's speech.
#[derive(Clone, Debug, PartialEq)]
pub enum Interruption {
    /// This side never interrupts.
    None,
    /// With `probability`, at a moment drawn uniformly in `from_ms..to_ms` of the other side's turn.
    Level {
        /// Name of the level in the timeline: `low`, `medium`, `high`, `timed`, or `level` for any other.
        name: &'static str,
        /// Probability for each turn, from 0 to 1.
        probability: f64,
        /// Earliest moment, in milliseconds after the turn's onset.
        from_ms: u32,
        /// Latest moment, in milliseconds after the turn's onset.
        to_ms: u32,
        /// Largest number in one call; `None` for no limit.
        at_most: Option<u32>,
    },
    /// This side interrupts when one of these keywords is recognized in the running turn.
    Keywords(Vec<KeywordResponse>),
    /// This side interrupts when the mind says yes to the running text.
    Contextual {
        /// Question to the mind, about the running text.
        prompt: String,
    },
}

/// A keyword and the words that answer it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeywordResponse {
    /// Keyword, compared as whole words without regard to case.
    pub keyword: String,
    /// Words of the answer, said exactly.
    pub response: String,
    /// Probability for each turn in which it is heard, from 0 to 1.
    pub probability: f64,
}

/// Rates of each kind of probe, a minute of time in which one may sound: the other side speaks, and this side is silent
/// and plans no interruption. 0 is never; a negative rate or no number counts as 0.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct ProbeRates {
    /// Rate of [`Phrases::backchannel`], from 1 s into the other side's turn.
    pub backchannel_per_minute: f64,
    /// Rate of the sounds of [`crate::vocal_tic`].
    pub vocal_tic_per_minute: f64,
    /// Rate of sentences to somebody else, [`Phrases::aside`].
    pub non_directed_per_minute: f64,
}

/// One scripted response, and the phrase that it answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptRule {
    /// Position in the given list, for the timeline.
    pub index: usize,
    /// Way in which `phrase` is compared.
    pub matching: Matching,
    /// Phrase that the other side has to say.
    pub phrase: String,
    /// Response of this side to the phrase.
    pub response: Response,
    /// Largest number of times that it fires; `None`: always.
    pub first_n: Option<u32>,
}

/// Way in which a scripted phrase is compared with the turn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Its normal form occurs in the turn's normal form as a run of whole words.
    Exact,
    /// The turn has the same meaning: F1 of the word sets without stop words is at least 0.6.
    Context,
}

/// Response of a scripted rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// Words that are said exactly.
    Phrase(String),
    /// Silence for this long (`None`: until the end of the other side's next turn), then these words if any.
    Silence {
        /// Length in milliseconds; `None`: until the end of the other side's next turn.
        duration_ms: Option<u32>,
        /// Words after the pause; `None` for none.
        then: Option<String>,
    },
    /// Digits that are sent as DTMF.
    Dtmf(String),
    /// This audio (16 kHz, at its final level), played once to its end.
    Audio(Arc<[i16]>),
}

impl Response {
    /// Returns its name in events: `phrase`, `silence`, `dtmf` or `audio`.
    pub fn kind(&self) -> &'static str {
        match self {
            Response::Phrase(_) => "phrase",
            Response::Silence { .. } => "silence",
            Response::Dtmf(_) => "dtmf",
            Response::Audio(_) => "audio",
        }
    }
}

/// Way in which digits are sent; one only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum DtmfMethod {
    /// Telephone events when negotiated (RFC 4733), else tones.
    #[default]
    Rtp,
    /// Tones in the audio (ITU-T Q.23).
    Inband,
    /// SIP INFO, by [`super::Control::Digit`].
    Info,
    /// Message of the channel, by [`super::Control::Digit`].
    Message,
    /// A message of the channel, and tones in the audio.
    MessageAndTone,
}

/// Limits of a call in milliseconds and turns; `None` is no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest time from dialling to the answer.
    pub ringing_ms: u32,
    /// Longest time from connect to the end.
    pub max_duration_ms: Option<u32>,
    /// Largest number of turns of the other side.
    pub max_turns: Option<u32>,
    /// Longest time without speech or digit of either side.
    pub inactivity_ms: Option<u32>,
    /// Longest time without received RTP while connected.
    pub media_timeout_ms: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ringing_ms: 300_000,
            max_duration_ms: Some(600_000),
            max_turns: None,
            inactivity_ms: None,
            media_timeout_ms: 20_000,
        }
    }
}

/// Background noise that is played in a loop.
#[derive(Clone, Debug)]
pub struct NoiseSpec {
    /// Samples at 16 kHz without a seam; shared by all calls that use it.
    pub loop_pcm: Arc<[i16]>,
    /// Factor at which it is mixed under a codec of 8 kHz (see [`crate::noise::gain_for`]).
    pub gain_narrow: f32,
    /// Factor at which it is mixed under a codec of 16 kHz.
    pub gain_wide: f32,
    /// Index in the loop at which the call begins, in samples.
    pub start: usize,
}

/// Fixed sentences of this side, in the language of the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Phrases {
    /// Sentence that is said once after `silence_timeout`.
    pub reprompt: String,
    /// Sentences that interrupt when the mind gives no words; one is drawn.
    pub interruption: Vec<String>,
    /// Sentence after a held silence of 60 s.
    pub still_there: String,
    /// Words while the other side speaks, to show that this side listens. Those that the voice says in 0.2 to 0.8 s are
    /// used, and take 0.5 s at most.
    pub backchannel: Vec<String>,
    /// Words to somebody else while the other side speaks. Those that the voice says in 1 to 3.2 s are used, and take 2
    /// s at most.
    pub aside: Vec<String>,
}

impl Default for Phrases {
    fn default() -> Self {
        Phrases {
            reprompt: "Hello? Are you there?".into(),
            interruption: vec!["Sorry, wait a moment.".into(), "Sorry, can I just say something?".into()],
            still_there: "Are you still there?".into(),
            backchannel: vec!["Mm-hmm.".into(), "Okay.".into(), "Right.".into()],
            aside: vec!["Just a second, please.".into(), "Leave it on the table.".into()],
        }
    }
}

impl Default for CallSpec {
    fn default() -> Self {
        CallSpec {
            seed: Seed::default(),
            turn: TurnRules::default(),
            opening: Opening::Listen { open_after_ms: Some(10_000) },
            interruption: Interruption::None,
            cut: None,
            probes: ProbeRates::default(),
            script: Vec::new(),
            script_ordered: false,
            meaning_ms: None,
            hangup_phrases: Vec::new(),
            hangup_on_transfer: false,
            extension: None,
            dtmf: DtmfMethod::default(),
            limits: Limits::default(),
            noise: None,
            audio_quality: AudioQuality::HIGH,
            onset_lost_ms: 0,
            connection: ConnectionSpec::default(),
            phrases: Phrases::default(),
            follows_language: false,
            ears: Ears::default(),
            opus: Opus::default(),
        }
    }
}

/// Analysis that runs on the received audio.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ears {
    /// True when there is a recognizer, so that turns are given text. False: turn-taking alone.
    pub text: bool,
    /// True when voice activity is detected.
    pub voice_activity: bool,
    /// True when DTMF in the audio is detected.
    pub dtmf: bool,
    /// True when the recognizer needs whole stretches of speech: short pauses never part one.
    pub whole: bool,
}

impl Default for Ears {
    fn default() -> Self {
        Ears { text: true, voice_activity: true, dtmf: true, whole: false }
    }
}
