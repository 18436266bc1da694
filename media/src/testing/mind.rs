//! Answers to the effects of a call: a scripted mind, a voice, a recognizer that knows the spoken words.

use std::collections::VecDeque;

use crate::call::{Comparison, Move, Purpose, Thought};

/// Delays of the effects, in milliseconds.
#[derive(Copy, Clone, Debug)]
pub struct Delays {
    /// Time from the end of a word to its running text.
    pub partial_ms: u64,
    /// Time from `Recognize` to the final text; `None`: it never comes.
    pub recognize_ms: Option<u64>,
    /// Time from `Think` to the first part of the move; `None`: it never comes.
    pub think_ms: Option<u64>,
    /// Time from `Synthesize` to the first 200 ms of audio; the rest follows as much later.
    pub synthesize_ms: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Delays { partial_ms: 100, recognize_ms: Some(100), think_ms: Some(100), synthesize_ms: 40 }
    }
}

/// One answer: its parts, each `think_ms` after the one before.
pub type Answer = Vec<Move>;

/// Word at which a mind says yes to interrupting.
#[derive(Clone, Debug)]
pub struct CutWord {
    /// Text that the running text has to hold.
    pub word: String,
    /// Words of this side after it.
    pub say: String,
}

/// A mind with its answers written down.
#[derive(Clone, Debug, Default)]
pub struct Mind {
    /// Answers in order; afterwards the mind has nothing to say.
    pub replies: VecDeque<Answer>,
    /// First words of this side.
    pub opening: String,
    /// Words that interrupt; empty leaves the choice to the call.
    pub cut_in: String,
    /// Condition for yes; `None`: it never says yes.
    pub contextual: Option<CutWord>,
    /// Meanings that it gives to turns, in order: a phrase, or no phrase that was asked for. `None`, and afterwards: it
    /// cannot tell.
    pub meanings: VecDeque<Option<Option<String>>>,
}

impl Mind {
    /// Returns the position of the phrase that a turn means; `None` when it cannot tell.
    pub fn compare(&mut self, comparison: &Comparison) -> Option<Option<usize>> {
        let meant = self.meanings.pop_front()??;
        Some(meant.and_then(|meant| comparison.phrases.iter().position(|phrase| *phrase == meant)))
    }

    /// Returns the answer to a thought.
    pub fn think(&mut self, thought: &Thought) -> Answer {
        let say = |text: &str| vec![Move { say: text.into(), ..Move::default() }];
        match thought.purpose {
            Purpose::Opening => say(&self.opening),
            Purpose::Reply | Purpose::StillThere | Purpose::GoOn => self.replies.pop_front().unwrap_or_else(|| say("")),
            Purpose::BargeIn => say(&self.cut_in),
            Purpose::Contextual { .. } => {
                let running = thought.history.last().map_or("", |line| &*line.text);
                say(self.contextual.as_ref().filter(|yes| running.contains(&yes.word)).map_or("", |yes| &yes.say))
            }
        }
    }
}
