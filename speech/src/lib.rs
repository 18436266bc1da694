//! Speech by neural networks, in this process: words from audio ([`whisper`]) and audio from words ([`piper`],
//! [`kokoro`]). Models are folders of files of other projects. Opens no socket, reads no clock, starts no thread of its
//! own accord.

pub mod clauses;
pub mod kokoro;
mod network;
mod onnx;
pub mod phonemes;
pub mod piper;
mod weights;
pub mod whisper;

use std::fmt;

/// Reason why a model cannot be used or has no result, for a person. Holds no speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// Returns an error with this text.
pub(crate) fn unusable<T>(why: impl Into<String>) -> Result<T, Unusable> {
    Err(Unusable(why.into()))
}
