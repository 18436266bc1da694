//! What the effects of a call are answered with: a scripted mind, a voice, a recognizer that knows what was said.

use std::collections::VecDeque;

use crate::call::{Comparison, Move, Purpose, Thought};

/// How long the effects take, in milliseconds.
#[derive(Copy, Clone, Debug)]
pub struct Delays {
    /// From the end of a word to its running text.
    pub partial_ms: u64,
    /// From `Recognize` to the final text; `None`: it never comes.
    pub recognize_ms: Option<u64>,
    /// From `Think` to the first part of the move; `None`: it never comes.
    pub think_ms: Option<u64>,
    /// From `Synthesize` to the first 200 ms of audio; the rest follows as much later.
    pub synthesize_ms: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Delays { partial_ms: 100, recognize_ms: Some(100), think_ms: Some(100), synthesize_ms: 40 }
    }
}

/// One answer: its parts, each `think_ms` after the one before.
pub type Answer = Vec<Move>;

/// When a mind says yes to cutting in.
#[derive(Clone, Debug)]
pub struct CutWord {
    /// The running text holds this.
    pub word: String,
    /// What it then says.
    pub say: String,
}

/// A mind with its answers written down.
#[derive(Clone, Debug, Default)]
pub struct Mind {
    /// Answers in order; afterwards it has nothing to say.
    pub replies: VecDeque<Answer>,
    /// Its first words.
    pub opening: String,
    /// What it cuts in with; empty leaves the choice to the call.
    pub cut_in: String,
    /// When it says yes.
    pub contextual: Option<CutWord>,
    /// What it takes turns for, in order: a phrase, or nothing that was asked for; `None`, and afterwards: it cannot tell.
    pub meanings: VecDeque<Option<Option<String>>>,
}

impl Mind {
    /// The place of the phrase that a turn means; `None`: it cannot tell.
    pub fn compare(&mut self, comparison: &Comparison) -> Option<Option<usize>> {
        let meant = self.meanings.pop_front()??;
        Some(meant.and_then(|meant| comparison.phrases.iter().position(|phrase| *phrase == meant)))
    }

    /// The answer to a thought.
    pub fn think(&mut self, thought: &Thought) -> Answer {
        let say = |text: &str| vec![Move { say: text.into(), ..Move::default() }];
        match thought.purpose {
            Purpose::Opening => say(&self.opening),
            Purpose::Reply | Purpose::StillThere | Purpose::GoOn => self.replies.pop_front().unwrap_or_else(|| say("")),
            Purpose::CutIn => say(&self.cut_in),
            Purpose::Contextual { .. } => {
                let running = thought.history.last().map_or("", |line| &*line.text);
                say(self.contextual.as_ref().filter(|yes| running.contains(&yes.word)).map_or("", |yes| &yes.say))
            }
        }
    }
}
