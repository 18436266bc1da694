//! The Digital Human's mind: what it says next, and how fluently. Not how it sounds (that is a provider) and not when it
//! speaks (that is the Call).

mod fluency;
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
pub(crate) mod text;
mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;

use ringer_media::call::{Comparison, Move, Thought};
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

pub use self::fluency::{Fluency, FluencyLevel, voiced};
use self::model::{ModelMind, Patience, Spoken};
pub use self::opening::opening_line;
use self::playback::PlaybackMind;
pub use self::playback::{Step, Wanted};
use self::template::Template;
pub use self::text::Facts;
use crate::config::Hesitation;
use crate::provider::{Failure, Job, LanguageModel};

/// What the speaker is called where the model and the built-in speaker both have spoken.
pub const MIXED: &str = "mixed";

/// Decides a Digital Human's next move. Lives as long as its call.
pub trait Mind: Send {
    /// Sends the move, in one or more parts, into `out`; returns when done. The future is dropped when the move is no longer
    /// wanted.
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()>;

    /// Speaks this language from the next move on.
    fn speak(&mut self, _language: &str) {}

    /// The place of the first phrase whose meaning the turn just heard has; `None`: it has none of them. Fails where nobody can tell,
    /// as without a model. The future is dropped when the answer is no longer wanted.
    fn compare(&mut self, _comparison: Comparison) -> Job<'_, Result<Option<usize>, Failure>> {
        Box::pin(std::future::ready(Err(meaning::not_told())))
    }

    /// Who has spoken, for the result's metadata: the model's name; `template` where the built-in speaker has; [`MIXED`] where both
    /// have. Before anything was said, who is to speak.
    fn speaker(&self) -> String;
}

/// A piece of an utterance.
#[derive(Clone, Debug, PartialEq)]
pub enum SpeechPart {
    /// Words to synthesize.
    Words(String),
    /// Added silence.
    PauseMs(u32),
}

/// How much is said.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Verbosity {
    /// A few words a turn.
    Low,
    /// A sentence or two.
    #[default]
    Medium,
    /// Many.
    High,
}

impl Verbosity {
    /// How many words a turn has.
    pub fn words(self, lengths: &crate::config::Verbosity) -> &crate::config::Words {
        match self {
            Verbosity::Low => &lengths.low,
            Verbosity::Medium => &lengths.medium,
            Verbosity::High => &lengths.high,
        }
    }

    /// By its wire name; `medium` for an unknown one.
    pub fn named(name: &str) -> Verbosity {
        match name {
            "low" => Verbosity::Low,
            "high" => Verbosity::High,
            _ => Verbosity::Medium,
        }
    }
}

/// Who a mind is: plain values, translated by whoever places the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// May be empty.
    pub name: String,
    /// What the caller wants; `{{trait}}` is replaced.
    pub intent: String,
    /// Who the caller is; `{{trait}}` is replaced.
    pub role_description: String,
    /// `en`, `es`, ...
    pub language: String,
    /// Facts by name, given exactly.
    pub traits: Vec<(String, String)>,
    /// How long its turns are.
    pub verbosity: Verbosity,
    /// Words a turn at each of these levels.
    pub lengths: crate::config::Verbosity,
    /// How well the language is spoken.
    pub fluency: FluencyLevel,
    /// Fillers and pauses of that level.
    pub hesitation: Hesitation,
    /// Sampling temperature, 0 to 2.
    pub creativity: f64,
    /// When to hang up; `None`: goal reached, refused, or goodbye said.
    pub hangup_instructions: Option<String>,
    /// May hang up.
    pub allow_end_call: bool,
    /// May stay silent instead of a turn.
    pub allow_silence: bool,
    /// May press keys.
    pub allow_dtmf: bool,
    /// When to stay silent; `default` for the built-in rule.
    pub silence_instructions: String,
    /// Numbers are keyed rather than said.
    pub keyed: bool,
    /// Rules of the other side that this caller probes.
    pub rules: Vec<String>,
    /// Opening words, said exactly instead of made ones; `{{trait}}` is replaced.
    pub first_message: Option<String>,
    /// What is played, step by step; empty: a free conversation.
    pub playback: Vec<Step>,
    /// Tests of the other side's turns, by step; the call ends at the first that fails. Empty: none is tested.
    pub wanted: BTreeMap<usize, Wanted>,
    /// The agent has made the call.
    pub called: bool,
    /// What this caller remembers of earlier contacts with the agent, oldest first.
    pub earlier: Vec<String>,
    /// It writes messages instead of speaking: a model is given time, and nothing is said meanwhile.
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
            lengths: crate::config::Verbosity::default(),
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
    /// The fillers and pauses of this caller in the call of `seed`.
    pub fn fluency(&self, seed: Seed) -> Fluency {
        Fluency::new(self.hesitation.clone(), &self.language, &self.traits, seed)
    }
}

/// The mind of one call: the model's, or the built-in speaker's when there is none.
pub fn mind(profile: Profile, model: Option<Arc<dyn LanguageModel>>, seed: Seed) -> Box<dyn Mind> {
    match model {
        model if !profile.playback.is_empty() => Box::new(PlaybackMind::new(profile, model, seed)),
        model => free_mind(profile, model, seed, &Spoken::default()),
    }
}

/// The mind of a free conversation; who speaks is noted in `spoken`.
fn free_mind(profile: Profile, model: Option<Arc<dyn LanguageModel>>, seed: Seed, spoken: &Spoken) -> Box<dyn Mind> {
    match model {
        Some(model) => {
            let patience = Patience::of(&profile);
            Box::new(ModelMind::new(profile, model, seed, patience).noting(spoken))
        }
        None => Box::new(TemplateMind(Template::new(&profile, seed))),
    }
}

/// The mind of somebody who reads, and answers nothing.
pub fn silent() -> Box<dyn Mind> {
    Box::new(SilentMind)
}

/// The whole of a move, its parts joined.
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

/// Opening words as they were given.
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
