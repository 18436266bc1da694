//! Audio or text in, audio or text out: one trait each for recognizers, synthesizers and language models, one file a
//! provider. A provider knows no calls, resources or prompts.

pub mod account;
pub mod audio;
mod cache;
pub mod canned;
pub mod chat;
pub mod choice;
mod disk;
mod espeak;
pub mod fake;
pub mod fallback;
mod feed;
mod flite;
pub mod keyterms;
pub mod kokoro;
pub mod loose;
pub mod mail;
pub mod messages;
pub mod models;
pub mod opus;
pub mod otlp;
mod pace;
pub mod piper;
pub mod pocketsphinx;
mod prosody;
pub mod recorded;
pub mod remote;
pub mod speech;
pub mod spoken_form;
pub mod taken_over;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod timbre;
mod voice;
pub mod whisper;

pub use self::account::Account;
pub use ringer_base::error::Failure;
pub use ringer_base::{fetch, guard, post, tls};

use std::pin::Pin;
use std::sync::Arc;

use self::taken_over::TakenOver;
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::Sample;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

/// A boxed future, the return type of the provider traits (they are used as trait objects).
pub type Job<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// State of a provider, for `/health/deps` and `ringer doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Installed or reachable, and working.
    Ok,
    /// Missing or not reachable; the text names a remedy.
    Down(String),
}

/// Requested properties of a Digital Human's voice.
#[derive(Clone, Debug, PartialEq)]
pub struct VoiceWanted {
    /// `en`, `es`, ... (`ad` is given as `en`).
    pub language: String,
    /// Accent, such as `british` or `mexican`.
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

impl VoiceWanted {
    /// Returns any voice of this language, at normal speed.
    pub fn of(language: &str) -> VoiceWanted {
        VoiceWanted {
            language: language.to_owned(),
            accent: None,
            gender: None,
            custom_voice_id: None,
            speed: "normal".to_owned(),
            seed: ringer_media::seed::Seed::default(),
        }
    }
}

/// Name of a recognizer or synthesizer with its model, as results tell it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModelName {
    /// `embedded`, `whisper`, `piper`, `kokoro`, `recorded`, `http` or `websocket`.
    pub kind: String,
    /// Name of the model; `None` where a server was told none.
    pub model: Option<String>,
    /// SHA-256 of the model's weights in hexadecimal digits, where they are here and were read.
    pub sha256: Option<String>,
}

impl ModelName {
    /// Names a model without its hash. An empty name is none.
    pub fn new(kind: &str, model: &str) -> ModelName {
        ModelName { kind: kind.to_owned(), model: (!model.is_empty()).then(|| model.to_owned()), sha256: None }
    }
}

/// Returns the SHA-256 of a file in hexadecimal digits.
fn file_sha256(path: &std::path::Path) -> std::io::Result<String> {
    let mut digest = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut digest)?;
    Ok(hex::encode(digest.finalize()))
}

/// A chosen voice: all that a synthesizer needs, and a cache key.
#[derive(Clone, Debug, PartialEq)]
pub struct Voice {
    /// `flite:slt`, `espeak-ng:en-gb+f3`, `remote:alloy`, ...
    pub id: String,
    /// Language code, such as `en` or `es`.
    pub language: String,
    /// Speed in words per minute.
    pub rate_wpm: f32,
    /// Pitch factor, 1.0 = the voice's own.
    pub pitch: f32,
    /// Formants as a factor of the voice's own; the pitch stays.
    pub formant: f32,
    /// Four-band equaliser gains in dB.
    pub bands_db: [f32; 4],
    /// Difference from the requested voice, as a warning; `None` when there is none.
    pub substituted: Option<String>,
    /// Voice that speaks when this voice's synthesizer fails.
    pub fallback: Option<Box<Voice>>,
    /// True if nobody waits for the speech: it is made when the processor is idle.
    pub unhurried: bool,
    /// Set once `fallback` speaks in this call.
    pub taken_over: TakenOver,
}

impl Voice {
    /// Returns the voice at this many words per minute, and so whoever speaks in its place.
    pub fn at(self, rate_wpm: f32) -> Voice {
        let fallback = self.fallback.map(|voice| Box::new(voice.at(rate_wpm)));
        Voice { rate_wpm, fallback, ..self }
    }

    /// Returns the voice, and whoever speaks in its place, for words that nobody waits for.
    pub fn for_later(self) -> Voice {
        let fallback = self.fallback.map(|voice| Box::new(voice.for_later()));
        Voice { unhurried: true, fallback, ..self }
    }
}

impl Default for Voice {
    /// Returns nobody's voice at normal speed, with nothing changed.
    fn default() -> Self {
        Voice {
            id: String::new(),
            language: "en".into(),
            rate_wpm: prosody::NORMAL_WPM,
            pitch: 1.0,
            formant: 1.0,
            bands_db: [0.0; 4],
            substituted: None,
            fallback: None,
            unhurried: false,
            taken_over: TakenOver::default(),
        }
    }
}

/// A piece of speech.
#[derive(Clone, Debug, PartialEq)]
pub enum Spoken {
    /// The next samples: 16 kHz mono.
    Audio(Arc<[i16]>),
    /// The synthesizer failed so; another one speaks on.
    Fallback(Failure),
}

/// Converts text to speech, incrementally.
pub trait Synthesizer: Send + Sync {
    /// Chooses the voice nearest to `wanted`.
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure>;

    /// Returns the same as [`Synthesizer::voice`], and prepares nothing for it.
    fn find_voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        self.voice(wanted)
    }

    /// Sends the speech into `out` as it is made, returns at its end. Dropping the future gives it up. Silence at both
    /// ends is removed; the active speech level (ITU-T P.56) is -26 dBov, with peaks of at most -3 dBFS. What is sent
    /// while it is made begins with the voice's known gain, which moves by at most 1 dB a second. An error may come
    /// after some pieces.
    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>>;

    /// Makes texts that a call is known to need before it begins, for a synthesizer that takes long for them: the same
    /// texts are then spoken without delay. What cannot be made says so when it is to be spoken.
    fn prepare<'a>(&'a self, _texts: &'a [String], _voice: &'a Voice) -> Job<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Waits until a voice can speak without delay, so that a call does not wait for a model to be loaded. A voice that
    /// cannot be loaded says so when it is to speak.
    fn ready<'a>(&'a self, _voice: &'a Voice) -> Job<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Checks before a call that a voice which was named by its id can speak. What cannot be found out is no error.
    ///
    /// # Errors
    /// `unknown_voice`: it cannot.
    fn check<'a>(&'a self, _voice: &'a Voice) -> Job<'a, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// True if a voice says all of these texts itself, and nobody in its place. `None`: any text.
    fn says_all(&self, _voice: &Voice, _texts: Option<&[String]>) -> bool {
        true
    }

    /// Returns the state of the synthesizer, for health checks.
    fn status(&self) -> Status;

    /// Returns the name of the model that speaks with this voice; `None` where nobody tells it.
    fn model<'a>(&'a self, _voice: &'a Voice) -> Job<'a, Option<ModelName>> {
        Box::pin(std::future::ready(None))
    }
}

/// Returns all of a text's speech, once it is made.
pub async fn whole_speech(synthesizer: &dyn Synthesizer, text: &str, voice: &Voice) -> Result<Arc<[i16]>, Failure> {
    let (out, mut parts) = mpsc::channel(16);
    let collect = async {
        let mut pieces = Vec::new();
        while let Some(spoken) = parts.recv().await {
            if let Spoken::Audio(pcm) = spoken {
                pieces.push(pcm);
            }
        }
        pieces
    };
    let (result, pieces) = tokio::join!(synthesizer.synthesize(text, voice, out), collect);
    result.map(|()| match &pieces[..] {
        [whole] => whole.clone(),
        pieces => pieces.concat().into(),
    })
}

/// Message of a recognizer stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Recognized {
    /// Running text, replaces the one before.
    Partial(String),
    /// The text of the whole stream; the last message.
    Final {
        /// Text as the recognizer writes it; empty when nothing was understood.
        text: String,
        /// Words with positions counted from the stream's first sample.
        words: Vec<RecognizedWord>,
        /// Confidence from 0 to 1; `None`: not known.
        confidence: Option<f32>,
        /// Language evidence for the words.
        detected_language: DetectedLanguage,
    },
    /// The recognizer failed so; another one has taken over, and its texts follow.
    Fallback(Failure),
    /// The pool was full or the recognizer failed; the last message.
    Failed(Failure),
}

/// A recognised word, positions in 16 kHz samples from the start of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct RecognizedWord {
    /// Text of the word.
    pub text: String,
    /// Position of its first sample.
    pub from: Sample,
    /// One past the last sample.
    pub to: Sample,
    /// Confidence from 0 to 1; `None`: not known.
    pub confidence: Option<f32>,
}

/// Feeds an open stream. Dropping it without `finish` abandons the stream.
pub trait RecognizerFeed: Send {
    /// Takes audio at 16 kHz, mono. Never blocks; what does not fit is dropped and counted by the recognizer.
    fn push(&mut self, pcm: &[i16]);

    /// Ends the audio: the final text follows on the receiver.
    fn finish(&mut self);
}

/// The language of speech that is to be recognised: `en`, `es`, ...
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SpokenIn<'a> {
    /// The speech is in this language.
    Known(&'a str),
    /// Probably this one: a recognizer that can tell languages is free to find another, and says which.
    Likely(&'a str),
}

impl<'a> SpokenIn<'a> {
    /// Returns the language code.
    pub fn code(self) -> &'a str {
        match self {
            SpokenIn::Known(code) | SpokenIn::Likely(code) => code,
        }
    }
}

/// Speech to words, incrementally.
pub trait Recognizer: Send + Sync {
    /// Returns `Ok` if turns in this language can be given text; by default always. `rate_hz` is the codec's rate, 8000
    /// or 16000.
    ///
    /// # Errors
    /// The reason why not, as a stable warning text.
    fn supports(&self, _language: &str, _rate_hz: u32) -> Result<(), String> {
        Ok(())
    }

    /// Returns how many of these bias words are used, from the first on; by default all.
    fn count_keyterms(&self, keyterms: &[String]) -> usize {
        keyterms.len()
    }

    /// True if text comes while a turn goes on, and not only at its end.
    fn tells_running_text(&self) -> bool {
        true
    }

    /// Returns `Ok` if speech in languages not known beforehand can be given text.
    ///
    /// # Errors
    /// The reason why not, as a stable warning text.
    fn identifies(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns a warning where text in this language is not to be relied on, or nobody measured it.
    fn doubt(&self, _language: &str) -> Option<String> {
        None
    }

    /// True if a stretch is heard as a whole: parts of it that short pauses set apart would lose words.
    fn hears_wholes(&self) -> bool {
        false
    }

    /// Prepares for a call that is being placed: what takes long to get ready may do so now.
    fn expect(&self) {}

    /// Opens a stream. `keyterms` are bias words.
    fn open(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>);

    /// Opens a stream whose text is wanted while it goes on, too. A recognizer for which that is no more work makes no
    /// difference.
    fn open_running(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        self.open(language, keyterms)
    }

    /// Returns the state of the recognizer, for health checks.
    fn status(&self) -> Status;

    /// Returns the name of the model that hears; `None` where nobody tells it.
    fn model(&self) -> Option<ModelName> {
        None
    }
}

/// Role of the author of a chat message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// Instructions to the model.
    System,
    /// The other side of the chat.
    User,
    /// The model itself, as it answered.
    Assistant,
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ChatMessage {
    /// Role of the author.
    pub role: ChatRole,
    /// Text of the message.
    pub content: String,
}

/// Tool that the model may call instead of, or after, its words.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatTool {
    /// Name of the tool, `[a-z_]+`.
    pub name: &'static str,
    /// Description of when to call the tool.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

/// Request to a language model.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ChatRequest {
    /// Messages of the chat, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Tools that the model may call; may be empty.
    pub tools: Vec<ChatTool>,
    /// Sampling temperature, 0 to 2.
    pub temperature: f64,
    /// Longest answer in tokens.
    pub tokens_max: u32,
    /// True if the answer has to be one JSON object.
    pub json: bool,
    /// Seed of the sampling, for models that take one.
    pub seed: Option<u64>,
    /// A WAV file that goes with the first message of the user, to models that hear.
    pub audio: Option<Arc<[u8]>>,
    /// True if somebody waits on the telephone: a late answer is of no use.
    pub live: bool,
}

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatPart {
    /// The next piece of text.
    Text(String),
    /// A whole tool call, after all text.
    Tool {
        /// Name of the tool, as the request gave it.
        name: String,
        /// JSON text as the model wrote it; not checked.
        arguments: String,
    },
    /// The answer came to the limit of its tokens; after all text.
    Cut,
}

/// Text to text, as it is made.
pub trait LanguageModel: Send + Sync {
    /// Sends the answer's parts into `out`, returns at its end. Dropping the future gives the answer up. An error may
    /// come after some parts.
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>>;

    /// Sends the answer as [`LanguageModel::chat`] does, and enters its use into an account, where the model's server
    /// tells it.
    fn chat_for<'a>(
        &'a self,
        request: &'a ChatRequest,
        out: mpsc::Sender<ChatPart>,
        _account: &'a Account,
    ) -> Job<'a, Result<(), Failure>> {
        self.chat(request, out)
    }

    /// Returns the model's name, for metadata.
    fn name(&self) -> String;

    /// Returns the state of the model, as far as the last request showed.
    fn status(&self) -> Status;

    /// Returns another model that was configured beside this one, by its name; `None`: there is none.
    fn other(&self, _name: &str) -> Option<Arc<dyn LanguageModel>> {
        None
    }
}

/// Returns the whole text of an answer without its reasoning, at most 1 MiB; tool calls are left out.
pub async fn complete(model: &dyn LanguageModel, request: &ChatRequest) -> Result<String, Failure> {
    const BYTES_MAX: usize = 1 << 20;
    let (out, mut parts) = mpsc::channel(64);
    let collect = async {
        let mut text = String::new();
        while let Some(part) = parts.recv().await {
            if let ChatPart::Text(piece) = part
                && text.len() + piece.len() <= BYTES_MAX
            {
                text.push_str(&piece);
            }
        }
        text
    };
    let (result, text) = tokio::join!(model.chat(request, out), collect);
    result.map(|()| chat::without_reasoning(text))
}
