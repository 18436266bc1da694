//! Conversation logic of the Digital Human: what it says next, and how fluently. Not how it sounds (that is a provider)
//! and not when it speaks (that is the Call).

mod asking;
mod fluency;
pub mod frequent;
pub mod language;
mod markup;
mod meaning;
mod model;
mod numbers;
mod opening;
pub mod phrases;
mod plain;
mod playback;
mod prompt;
pub mod talk;
mod template;
pub mod text;
mod whole;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use ringer_base::config::Hesitation;
use ringer_media::call::{Comparison, Move, Thought};
use ringer_media::seed::Seed;
use ringer_provider::{Failure, Job, LanguageModel};
use tokio::sync::mpsc;

pub use self::fluency::{Fluency, FluencyLevel, changed_text};
use self::model::{ModelMind, Patience, Spoken};
pub use self::opening::opening_line;
use self::playback::PlaybackMind;
pub use self::playback::{Step, Wanted};
use self::template::Template;
pub use self::text::{Facts, is_alike};

/// Speaker in the metadata of a result where both the model and the built-in speaker have spoken.
pub const MIXED: &str = "mixed";

/// Decides a Digital Human's next move. It lives as long as its call.
pub trait Mind: Send {
    /// Sends the move, in one or more parts, to `out`, and returns when done. The future is dropped when the move is no
    /// longer wanted.
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()>;

    /// Takes a thought that was answered before this mind was made, in a conversation that is taken up again.
    fn recall(&mut self, _thought: &Thought) {}

    /// Returns the texts that it is known to say in the call, whole moves or sentences, likely ones first.
    fn known_texts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Sets the language of all further moves.
    fn speak(&mut self, _language: &str) {}

    /// Returns the index of the first phrase that means the same as the turn just heard; `None`: none does.
    ///
    /// The future is dropped when the answer is no longer wanted.
    ///
    /// # Errors
    /// The meaning cannot be told, for instance without a model.
    fn compare(&mut self, _comparison: Comparison) -> Job<'_, Result<Option<usize>, Failure>> {
        Box::pin(std::future::ready(Err(meaning::not_told())))
    }

    /// Returns the speaker for the result's metadata: the model's name, `template` for the built-in speaker, or
    /// [`MIXED`] for both.
    ///
    /// Before anything was said it is the one that is to speak.
    fn speaker(&self) -> String;
}

/// A piece of an utterance.
#[derive(Clone, Debug, PartialEq)]
pub enum SpeechPart {
    /// Words that are to be synthesized.
    Words(String),
    /// Added silence in milliseconds.
    PauseMs(u32),
}

/// Level of the length of turns.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Verbosity {
    /// A few words a turn.
    Low,
    /// A sentence or two.
    #[default]
    Medium,
    /// Several sentences a turn.
    High,
}

impl Verbosity {
    /// Returns the number of words in a turn.
    pub fn words(self, lengths: &ringer_base::config::Verbosity) -> &ringer_base::config::Words {
        match self {
            Verbosity::Low => &lengths.low,
            Verbosity::Medium => &lengths.medium,
            Verbosity::High => &lengths.high,
        }
    }

    /// Returns the level by its name in the API; `medium` for an unknown one.
    pub fn of_name(name: &str) -> Verbosity {
        match name {
            "low" => Verbosity::Low,
            "high" => Verbosity::High,
            _ => Verbosity::Medium,
        }
    }
}

/// Character and behaviour of a Digital Human as plain values, translated by the code that places the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name of the caller; may be empty.
    pub name: String,
    /// Goal of the caller; `{{trait}}` is replaced.
    pub intent: String,
    /// Description of the caller; `{{trait}}` is replaced.
    pub role_description: String,
    /// Language code: `en`, `es`, ...
    pub language: String,
    /// Traits by name; their values are given exactly.
    pub traits: Vec<(String, String)>,
    /// Length of its turns.
    pub verbosity: Verbosity,
    /// Words a turn at each level of `verbosity`.
    pub lengths: ringer_base::config::Verbosity,
    /// Command of the language.
    pub fluency: FluencyLevel,
    /// Fillers and pauses of that level.
    pub hesitation: Hesitation,
    /// Sampling temperature, 0 to 2.
    pub creativity: f64,
    /// Instructions on when to hang up; `None`: goal reached, refused, or goodbye said.
    pub hangup_instructions: Option<String>,
    /// True: it may hang up.
    pub allow_end_call: bool,
    /// True: it may stay silent instead of taking a turn.
    pub allow_silence: bool,
    /// True: it may press digits.
    pub allow_dtmf: bool,
    /// Instructions on when to stay silent; `default` for the built-in rule.
    pub silence_instructions: String,
    /// True: numbers are keyed rather than said.
    pub keyed: bool,
    /// Rules of the agent's prompt that this caller probes.
    pub rules: Vec<String>,
    /// First words, said exactly instead of generated ones; `{{trait}}` is replaced.
    pub first_message: Option<String>,
    /// Steps to play in order; empty: a free conversation.
    pub playback: Vec<Step>,
    /// Tests of the agent's turns, by step; the call ends at the first that fails. Empty: none is tested.
    pub wanted: BTreeMap<usize, Wanted>,
    /// True: the agent has made the call.
    pub called: bool,
    /// Summaries of earlier contacts with the agent, oldest first.
    pub earlier: Vec<String>,
    /// True: it writes messages instead of speaking. A model is given time, and nothing is said meanwhile.
    pub written: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            name: String::new(),
            intent: String::new(),
            role_description: String::new(),
            language: "en".into(),
            traits: Vec::new(),
            verbosity: Verbosity::Medium,
            lengths: ringer_base::config::Verbosity::default(),
            fluency: FluencyLevel::Native,
            hesitation: fluency::NONE,
            creativity: 0.7,
            hangup_instructions: None,
            allow_end_call: true,
            allow_silence: true,
            allow_dtmf: true,
            silence_instructions: "default".into(),
            keyed: false,
            rules: Vec::new(),
            first_message: None,
            playback: Vec::new(),
            wanted: BTreeMap::new(),
            called: false,
            earlier: Vec::new(),
            written: false,
        }
    }
}

impl Profile {
    /// Returns the fillers and pauses of this caller in the call of `seed`.
    pub fn fluency(&self, seed: Seed) -> Fluency {
        Fluency::new(self.hesitation.clone(), &self.language, &self.traits, seed)
    }
}

/// Returns the mind of one call: the model's, or the built-in speaker's when there is no model.
pub fn mind(profile: Profile, model: Option<Arc<dyn LanguageModel>>, seed: Seed) -> Box<dyn Mind> {
    match model {
        model if !profile.playback.is_empty() => Box::new(PlaybackMind::new(profile, model, seed)),
        model => free_mind(profile, model, seed, &Spoken::default()),
    }
}

/// Returns the mind of a free conversation; it records its speaker in `spoken`.
fn free_mind(profile: Profile, model: Option<Arc<dyn LanguageModel>>, seed: Seed, spoken: &Spoken) -> Box<dyn Mind> {
    match model {
        Some(model) => {
            let patience = Patience::of(&profile);
            Box::new(ModelMind::new(profile, model, seed, patience).noting(spoken))
        }
        None => Box::new(TemplateMind(Template::new(&profile, seed))),
    }
}

/// Returns a mind that only reads and never answers.
pub fn silent() -> Box<dyn Mind> {
    Box::new(SilentMind)
}

/// Returns the whole of a move, its parts joined.
pub async fn whole_move(mut parts: mpsc::Receiver<Move>) -> Move {
    let (mut said, mut whole) = (Vec::new(), Move::default());
    while let Some(part) = parts.recv().await {
        said.extend(Some(part.say).filter(|say| !say.is_empty()));
        whole.dtmf.push_str(&part.dtmf);
        whole.notes.extend(part.notes);
        whole.then = part.then;
    }
    Move { say: said.join(" "), ..whole }
}

/// Returns a move with opening words exactly as they were given.
fn exactly(text: &str, profile: &Profile) -> Move {
    Move { say: Facts::of(&profile.traits).fill(text), exact: true, ..Move::default() }
}

struct TemplateMind(Template);

impl Mind for TemplateMind {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        let next = self.0.next(&thought);
        Box::pin(async move {
            let _ = out.send(next).await;
        })
    }

    fn known_texts(&self) -> Vec<String> {
        self.0.known_texts()
    }

    fn speak(&mut self, language: &str) {
        self.0.speak(language);
    }

    fn speaker(&self) -> String {
        template::NAME.into()
    }
}

struct SilentMind;

impl Mind for SilentMind {
    fn think<'a>(&'a mut self, _: Thought, _: mpsc::Sender<Move>) -> Job<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn speaker(&self) -> String {
        "none".into()
    }
}
