//! Lines about calls over a WebSocket: the dialect, and what the agent does with the connection.

use ringer_transport::websocket::{Dialect, Kind};

use super::words::Words;

/// Most bytes of a binary message.
const MOST_BYTES: f64 = 4_194_304.0;
/// Most messages of one line.
const MOST_MESSAGES: u16 = 5000;
/// Longest burst of audio, in milliseconds.
const MOST_MS: f64 = 120_000.0;

/// Action of the agent on the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SocketAction {
    /// A text message is sent, this number of times.
    Send(String, u16),
    /// A binary message of zero bytes is sent: its length, and the number of times.
    SendBytes(usize, u16),
    /// A tone of this many milliseconds is sent at once.
    Play(u32),
    /// Words are said at real time.
    Say(String),
    /// The other side is to tell when it has played everything so far.
    Mark(String),
    /// Audio that was not played is taken back.
    Clear,
    /// The connection is closed with a code and a reason.
    Close(u16, String),
    /// The connection is lost.
    Drop,
    /// This side sends no more audio of its own.
    GoSilent,
}

impl SocketAction {
    /// Reads what follows `verb`.
    ///
    /// # Errors
    /// For a person: the word that is wrong or missing.
    pub(super) fn parse(verb: &str, words: &mut Words) -> Result<SocketAction, String> {
        let count = |words: &mut Words| match words.take("count") {
            true => words.whole("the count", 1, MOST_MESSAGES),
            false => Ok(1),
        };
        Ok(match verb {
            "sends" if words.take("bytes") => {
                let length = words.number("the number of bytes", 0.0, MOST_BYTES)? as usize;
                SocketAction::SendBytes(length, count(words)?)
            }
            "sends" => SocketAction::Send(words.text("the message")?, count(words)?),
            "plays" => SocketAction::Play(words.number("the milliseconds", 20.0, MOST_MS)? as u32),
            "says" => SocketAction::Say(words.text("the words")?),
            "marks" => SocketAction::Mark(words.text("the name")?),
            "clears" => SocketAction::Clear,
            "closes" => {
                let code = words.whole("the close code", 1000, 4999)?;
                let reason = if words.is_empty() { String::new() } else { words.text("the reason")? };
                SocketAction::Close(code, reason)
            }
            "drops" => SocketAction::Drop,
            _ => SocketAction::GoSilent,
        })
    }
}

/// Reads the dialect: nothing for the engine's own protocol, the name of a kind, or settings as JSON.
///
/// # Errors
/// For a person: what is wrong.
pub(super) fn dialect(words: &mut Words) -> Result<Dialect, String> {
    if words.is_empty() {
        return Ok(Dialect::new(Kind::Default));
    }
    let text = words.text("the kind")?;
    if text.starts_with('{') {
        let settings = serde_json::from_str(&text).map_err(|error| format!("the dialect is no JSON: {error}"))?;
        return Dialect::parse("script", &settings).map_err(|error| error.to_string());
    }
    Kind::from_name(&text).map(Dialect::new).ok_or_else(|| Kind::unknown(&text))
}
