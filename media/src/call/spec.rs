//! Everything that a Call needs to know, as plain values. Whoever places a call translates its own resources into this.

use std::sync::Arc;

use crate::connection::ConnectionSpec;
use crate::impair::AudioQuality;
use crate::seed::Seed;

/// Words at a fixed time in the other side's turn.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CutIn {
    /// Milliseconds from the true onset of the other side's turn.
    pub after_ms: u32,
    /// Words, said exactly and to their end.
    pub say: String,
}

/// One simulated conversation, described.
#[derive(Clone, Debug)]
pub struct CallSpec {
    /// Seed of every draw that this call makes.
    pub seed: Seed,
    /// How the call takes and yields turns.
    pub turn: TurnSpec,
    /// What the call does when it is connected and nobody has spoken.
    pub opening: Opening,
    /// When the call cuts into the other side's speech.
    pub interruption: Interruption,
    /// Words with which the call cuts into the other side's first turn.
    pub cut: Option<CutIn>,
    /// Sounds while the other side speaks that ask for no reaction.
    pub probes: ProbeRates,
    /// Scripted answers, in the order in which they are tested.
    pub script: Vec<ScriptRule>,
    /// Only the first unused rule of `script` is tested.
    pub script_ordered: bool,
    /// How long a mind may take to tell whether a turn has the meaning of a rule of `script`, in milliseconds; when it is late, and
    /// with `None`, the words alone tell.
    pub meaning_ms: Option<u32>,
    /// Phrases of the other side that end the call (normal form, whole words).
    pub hangup_phrases: Vec<String>,
    /// A transfer that the other side asks for is taken and ends the call; otherwise the call goes on, with the target where the channel
    /// may call it.
    pub hangup_on_transfer: bool,
    /// Digits dialled 500 ms after connect; a comma is 1000 ms of silence.
    pub extension: Option<String>,
    /// How digits are sent.
    pub dtmf: DtmfMethod,
    /// Timers and caps.
    pub limits: Limits,
    /// Background noise, mixed under everything from connect to hang-up.
    pub noise: Option<NoiseSpec>,
    /// Band limit, clipping and added noise of the sent audio.
    pub audio_quality: AudioQuality,
    /// Loss and jitter put between the call and its network, in both directions.
    pub connection: ConnectionSpec,
    /// Fixed sentences, in the call's language.
    pub phrases: Phrases,
    /// The other side's language is asked for with each of its turns ([`super::Effect::Identify`]), and followed.
    pub follows_language: bool,
    /// What the ears can do.
    pub ears: Ears,
}

/// Turn taking (all times in milliseconds).
#[derive(Clone, Debug, PartialEq)]
pub struct TurnSpec {
    /// Silence of the other side before the turn is taken.
    pub endpointing_delay_ms: u32,
    /// Mutual silence before the one re-prompt, and again before the end.
    pub silence_timeout_ms: u32,
    /// Continuous speech of the other side, from its true onset, before this side stops speaking.
    pub yield_after_ms: u32,
    /// How long this side does not yield after it has cut in.
    pub hold_floor_ms: u32,
    /// Both sides starting within this time: this side gives way.
    pub both_start_ms: u32,
    /// A message of the other side that it begins to speak stops this side's words.
    pub yield_to_claims: bool,
    /// How long a due turn waits for the recognizer's final text.
    pub recognizer_grace_ms: u32,
    /// Received digits count as a turn this long after the last of them, and stop this side's speech (`None`: digits are
    /// only handed to the mind with the next turn).
    pub digit_turn_ms: Option<u32>,
}

impl Default for TurnSpec {
    fn default() -> Self {
        TurnSpec {
            endpointing_delay_ms: 1500,
            silence_timeout_ms: 16_000,
            yield_after_ms: 200,
            hold_floor_ms: 1500,
            both_start_ms: 150,
            yield_to_claims: true,
            recognizer_grace_ms: 150,
            digit_turn_ms: None,
        }
    }
}

/// What happens after connect.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// Listen; after this much silence open anyway (`None`: only `silence_timeout` makes it speak).
    Listen {
        /// Milliseconds of mutual silence from connect.
        open_after_ms: Option<u32>,
    },
    /// Say exactly this, 0.4 to 0.9 s after connect.
    Say(String),
    /// Say what the mind makes, 0.4 to 0.9 s after connect.
    Made,
}

/// Cutting into the other side's speech.
#[derive(Clone, Debug, PartialEq)]
pub enum Interruption {
    /// Never.
    None,
    /// With `probability`, at a moment drawn uniformly in `from_ms..to_ms` of the other side's turn.
    Level {
        /// What the level is called in the timeline: `low`, `medium`, `high`, or `level` where it is none of these.
        name: &'static str,
        /// 0 to 1.
        probability: f64,
        /// Earliest moment after the turn's onset.
        from_ms: u32,
        /// Latest moment after the turn's onset.
        to_ms: u32,
        /// At most this many in one call (`None`: no limit).
        at_most: Option<u32>,
    },
    /// When one of these words is recognised in the running turn.
    Keywords(Vec<KeywordResponse>),
    /// When the mind says yes to the running text.
    Contextual {
        /// What the mind is asked.
        prompt: String,
    },
}

/// One keyword and what is said when it is heard.
#[derive(Clone, Debug, PartialEq)]
pub struct KeywordResponse {
    /// Whole words, case-insensitive.
    pub keyword: String,
    /// Said exactly.
    pub response: String,
    /// 0 to 1.
    pub probability: f64,
}

/// How often each kind of probe sounds, in a minute in which one may: the other side speaks, and this side is silent and plans
/// no cut-in. 0 is never; what is below 0 or no number counts as 0.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct ProbeRates {
    /// [`Phrases::backchannel`], from 1 s into the other side's turn.
    pub backchannel_per_minute: f64,
    /// Sounds of [`crate::vocal_tic`].
    pub vocal_tic_per_minute: f64,
    /// [`Phrases::aside`].
    pub non_directed_per_minute: f64,
}

/// One scripted response.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptRule {
    /// Position in the given list, for the timeline.
    pub index: usize,
    /// How `phrase` is compared.
    pub matching: Matching,
    /// What the other side has to say.
    pub phrase: String,
    /// What this side then does.
    pub response: Response,
    /// Fires at most this many times (`None`: always).
    pub first_n: Option<u32>,
}

/// How a scripted phrase is compared with the turn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Its normal form occurs in the turn's normal form as a run of whole words.
    Exact,
    /// It has the same meaning: F1 of the word sets without stop words is at least 0.6.
    Context,
}

/// What a scripted rule does.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// These words, said exactly.
    Phrase(String),
    /// Silence for this long (`None`: until the end of the other side's next turn), then these words if any.
    Silence {
        /// Milliseconds.
        duration_ms: Option<u32>,
        /// Said after the pause.
        then: Option<String>,
    },
    /// These digits as DTMF.
    Dtmf(String),
    /// This audio (16 kHz, at its final level), played once to its end.
    Audio(Arc<[i16]>),
}

impl Response {
    /// `phrase`, `silence`, `dtmf` or `audio`: its name in events.
    pub fn kind(&self) -> &'static str {
        match self {
            Response::Phrase(_) => "phrase",
            Response::Silence { .. } => "silence",
            Response::Dtmf(_) => "dtmf",
            Response::Audio(_) => "audio",
        }
    }
}

/// How digits are sent; one way only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum DtmfMethod {
    /// Telephone events when negotiated (RFC 4733), else tones.
    #[default]
    Rtp,
    /// Tones in the audio.
    Inband,
    /// [`super::Control::Digit`]: SIP INFO.
    Info,
    /// [`super::Control::Digit`]: a message of the channel.
    Message,
    /// A message of the channel, and tones in the audio.
    MessageAndTone,
}

/// Timers and caps; `None` is "no limit".
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// From dialling to the answer.
    pub ringing_ms: u32,
    /// From connect.
    pub max_duration_ms: Option<u32>,
    /// Turns of the other side.
    pub max_turns: Option<u32>,
    /// Since the last speech or digit of either side.
    pub inactivity_ms: Option<u32>,
    /// Without any RTP received while connected.
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

/// A background noise loop.
#[derive(Clone, Debug)]
pub struct NoiseSpec {
    /// 16 kHz, seamless; shared by all calls that hear it.
    pub loop_pcm: Arc<[i16]>,
    /// Factor at which it is mixed under a codec of 8 kHz (see [`crate::noise::gain_for`]).
    pub gain_narrow: f32,
    /// Factor at which it is mixed under a codec of 16 kHz.
    pub gain_wide: f32,
    /// Where in the loop the call begins, in samples.
    pub start: usize,
}

/// Fixed sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Phrases {
    /// Said once after `silence_timeout`.
    pub reprompt: String,
    /// Said when cutting in without a mind's words; one is drawn.
    pub interruption: Vec<String>,
    /// Said when a held silence lasts 60 s.
    pub still_there: String,
    /// Said while the other side speaks, to show that this side listens. Those that the voice says in 0.2 to 0.8 s are
    /// used, and take 0.5 s at most.
    pub backchannel: Vec<String>,
    /// Said to somebody else while the other side speaks. Those that the voice says in 1 to 3.2 s are used, and take 2 s
    /// at most.
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
            turn: TurnSpec::default(),
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
            connection: ConnectionSpec::default(),
            phrases: Phrases::default(),
            follows_language: false,
            ears: Ears::default(),
        }
    }
}

/// What analysis runs on the received audio.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ears {
    /// There is a recognizer: turns are given text. False: turn-taking alone.
    pub text: bool,
    /// Voice activity runs.
    pub voice_activity: bool,
    /// In-band DTMF detection runs.
    pub dtmf: bool,
    /// The recognizer hears a stretch as a whole, and little in parts of it: short pauses never part one.
    pub whole: bool,
}

impl Default for Ears {
    fn default() -> Self {
        Ears { text: true, voice_activity: true, dtmf: true, whole: false }
    }
}
