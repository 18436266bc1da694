//! The Digital Human's mind: what it says next, and how fluently. Not how it sounds (that is a provider) and not when it
//! speaks (that is the Call).

mod fluency;

use ringer_media::call::Thought;
use tokio::sync::mpsc;

pub use self::fluency::Fluency;

use crate::provider::Job;

/// Decides a Digital Human's next move. Lives as long as its call.
pub trait Mind: Send {
    /// Sends the move, in one or more parts, into `out`; returns when done. The future is dropped when the move is no longer
    /// wanted.
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<ringer_media::call::Move>) -> Job<'a, ()>;

    /// `template` or the model's name, for the result's metadata.
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
