//! Branches of a call that is forked: other answering sides at the agent's address, each with a dialog and a tone of
//! its own.

use ringer_media::codec::Codec;

use super::words::Words;
use super::{codec, even_port};

/// Most branches of a call.
pub(crate) const MOST_BRANCHES: u16 = 8;

/// Action of a branch of the call.
#[derive(Clone, Debug, PartialEq)]
pub enum BranchAction {
    /// A provisional response without media.
    Ring(u16),
    /// A provisional response with SDP, and the branch's tone from this port in this codec.
    EarlyMedia {
        /// Status code of the response.
        code: u16,
        /// RTP port; `None`: the branch's own.
        port: Option<u16>,
        /// Codec; `None`: the best of the offer.
        codec: Option<Codec>,
    },
    /// The session is changed by UPDATE: media come from this port.
    MoveMedia(u16),
    /// The branch falls silent.
    StopMedia,
    /// The call is answered, and the other sides give it up.
    Answer,
}

impl BranchAction {
    /// Reads the number of a branch and what it does.
    ///
    /// # Errors
    /// For a person: the word that is wrong or missing.
    pub(super) fn parse(words: &mut Words) -> Result<(u16, BranchAction), String> {
        const VERBS: [&str; 5] = ["rings", "early_media", "updates", "stops_media", "answers"];
        let number = words.whole("the number of the branch", 1, MOST_BRANCHES)?;
        let code = |words: &mut Words, otherwise: u16| match words.is_number() {
            true => words.whole("the status code", 101, 199),
            false => Ok(otherwise),
        };
        let action = match words.one_of("the action of a branch", &VERBS)? {
            0 => BranchAction::Ring(code(words, 180)?),
            1 => BranchAction::EarlyMedia {
                code: code(words, 183)?,
                port: if words.take("port") { Some(even_port(words)?) } else { None },
                codec: if words.take("codec") { Some(codec(words)?) } else { None },
            },
            2 => {
                words.keyword("port")?;
                BranchAction::MoveMedia(even_port(words)?)
            }
            3 => BranchAction::StopMedia,
            _ => BranchAction::Answer,
        };
        Ok((number, action))
    }
}
