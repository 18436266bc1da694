//! Audio or text in, audio or text out: one trait each for recognizers, synthesizers and language models, one file a
//! provider. A provider knows no calls, resources or prompts.

mod cache;
mod espeak;
mod flite;
pub mod pocketsphinx;
pub mod speech;
mod timbre;
mod voice;

use std::pin::Pin;
use std::sync::Arc;

use ringer_media::frame::Sample;
use tokio::sync::mpsc;

/// A boxed future, the return type of the provider traits (they are used as trait objects).
pub type Job<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a provider could not do it. Holds no secret and no speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable, lower case with underscores, for example `synthesizer_missing`.
    pub code: &'static str,
    /// For a person; names the package or setting that mends it.
    pub message: String,
}

/// State of a provider, for `/health/deps` and `ringer doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Works.
    Ok,
    /// Not installed or not reachable; the text names what to do.
    Down(String),
    /// Not asked for.
    NotConfigured,
}

/// What a Digital Human's voice should be.
#[derive(Clone, Debug, PartialEq)]
pub struct VoiceWanted {
    /// `en`, `es`, ... (`ad` is given as `en`).
    pub language: String,
    /// `british`, `mexican`, ...
    pub accent: Option<String>,
    /// `male`, `female`; `None`: drawn from `seed`.
    pub gender: Option<String>,
    /// A voice id of the synthesizer; wins over the three above.
    pub custom_voice_id: Option<String>,
    /// `slowest`, `slow`, `normal`, `fast`, `fastest`.
    pub speed: String,
    /// Draws the per-caller timbre.
    pub seed: ringer_media::seed::Seed,
}

/// A chosen voice: all that a synthesizer needs, and a cache key.
#[derive(Clone, Debug, PartialEq)]
pub struct Voice {
    /// `flite:slt`, `espeak-ng:en-gb+f3`, ...
    pub id: String,
    /// Words per minute.
    pub rate_wpm: f32,
    /// Pitch factor, 1.0 = the voice's own.
    pub pitch: f32,
    /// Formant-like resampling, 0.94..1.06.
    pub formant: f32,
    /// Four-band equaliser gains in dB.
    pub bands_db: [f32; 4],
    /// What was wanted could not be had exactly.
    pub substituted: Option<String>,
}

/// Words to speech.
pub trait Synthesizer: Send + Sync {
    /// Chooses the voice nearest to `wanted`.
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure>;

    /// 16 kHz mono, silence at both ends removed, at -26 dBov active speech level (ITU-T P.56), peak at most -3 dBFS.
    fn synthesize<'a>(&'a self, text: &'a str, voice: &'a Voice) -> Job<'a, Result<Arc<[i16]>, Failure>>;

    /// Whether it works.
    fn status(&self) -> Status;
}

/// What a recognizer stream says.
#[derive(Clone, Debug, PartialEq)]
pub enum Recognized {
    /// Running text, replaces the one before.
    Partial(String),
    /// The text of the whole stream; the last message.
    Final {
        /// Lower case words; empty when nothing was understood.
        text: String,
        /// Words with positions counted from the stream's first sample.
        words: Vec<RecognizedWord>,
        /// 0..1 when known.
        confidence: Option<f32>,
    },
    /// The pool was full or the recognizer failed; the last message.
    Failed(Failure),
}

/// A recognised word, positions in 16 kHz samples from the start of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct RecognizedWord {
    /// The word.
    pub text: String,
    /// First sample.
    pub from: Sample,
    /// One past the last sample.
    pub to: Sample,
    /// 0..1 when known.
    pub confidence: Option<f32>,
}

/// Feeds an open stream. Dropping it without `finish` abandons the stream.
pub trait RecognizerFeed: Send {
    /// 16 kHz mono. Never blocks; what finds no room is dropped and counted by the recognizer.
    fn push(&mut self, pcm: &[i16]);

    /// No more audio: the final text follows on the receiver.
    fn finish(&mut self);
}

/// Speech to words, incrementally.
pub trait Recognizer: Send + Sync {
    /// Whether turns in this language from a codec of this rate (8000 or 16000) can be given text; else why not, as a stable
    /// warning text.
    fn supports(&self, language: &str, rate_hz: u32) -> Result<(), String>;

    /// Opens a stream. `keyterms` are bias words.
    fn open(&self, language: &str, keyterms: &[String]) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>);

    /// Whether it works.
    fn status(&self) -> Status;
}
