//! Events that the other side of a channel tells by messages.

use std::borrow::Cow;

use serde_json::{Value, json};

/// Name of the event that tells of a doubt about the sampling rate of the other side's audio.
pub const RATE_MISMATCH: &str = "rate_mismatch";

/// Name of the event that tells of audio that was sent and not played when the other side ended the call.
pub const AUDIO_NOT_PLAYED: &str = "audio_not_played";

/// An event that the other side told by a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelEvent {
    /// The other side reports that it begins to speak.
    SpeechClaimed {
        /// Its own id of the utterance.
        utterance_id: String,
        /// Effect on this side: `interrupt`, `none`, `ignored` or `floor_held`.
        effect: Cow<'static, str>,
    },
    /// The other side reports so just after this side has begun, and nothing of it is received: the message may come of
    /// its echo.
    SuspectedEcho {
        /// Its own id of the utterance.
        utterance_id: String,
    },
    /// Text of its own words.
    Reported {
        /// The words, as it tells them.
        text: String,
    },
    /// The other side took back audio that was not played yet, while this side spoke.
    Cleared {
        /// Duration of that audio in milliseconds.
        dropped_ms: u64,
    },
    /// The other side reports an error.
    Error {
        /// Its code, as it tells it.
        code: String,
        /// Its message, as it tells it.
        message: String,
    },
    /// The other side broke the rules of the channel.
    Violation {
        /// Stable code of the rule.
        code: Cow<'static, str>,
        /// Beginning of its message.
        excerpt: String,
    },
    /// The other side called one of its tools. In a timeline this is `tool_call`.
    ToolCalled {
        /// Name of the tool.
        name: Cow<'static, str>,
        /// Its arguments, mostly an object.
        parameters: Value,
        /// Its answer; null when none is known.
        output: Value,
        /// Stable name of the channel that tells of it.
        source: Cow<'static, str>,
        /// Milliseconds of the call after which it was made, as it tells them; `None`: when its message came.
        at_ms: Option<u32>,
    },
    /// Something else, in the words of the channel.
    Other {
        /// Stable name of the event.
        name: Cow<'static, str>,
        /// Members of the event.
        data: Value,
    },
}

impl ChannelEvent {
    /// Returns the name of the event in timelines.
    pub fn name(&self) -> &'static str {
        match self {
            ChannelEvent::SpeechClaimed { .. } => "agent_speech_event",
            ChannelEvent::SuspectedEcho { .. } => "suspected_echo_event",
            ChannelEvent::Reported { .. } => "agent_reported",
            ChannelEvent::Cleared { .. } => "agent_cleared",
            ChannelEvent::Error { .. } => "agent_error",
            ChannelEvent::Violation { .. } => "dialect_violation",
            ChannelEvent::ToolCalled { .. } => "tool_call",
            ChannelEvent::Other { .. } => "channel_event",
        }
    }

    /// Returns the data of the event in timelines.
    pub fn data(&self) -> Value {
        match self {
            ChannelEvent::SpeechClaimed { utterance_id, effect } => {
                json!({ "utterance_id": utterance_id, "effect": effect })
            }
            ChannelEvent::SuspectedEcho { utterance_id } => json!({ "utterance_id": utterance_id }),
            ChannelEvent::Reported { text } => json!({ "text": text }),
            ChannelEvent::Cleared { dropped_ms } => json!({ "dropped_ms": dropped_ms }),
            ChannelEvent::Error { code, message } => json!({ "code": code, "message": message }),
            ChannelEvent::Violation { code, excerpt } => json!({ "code": code, "excerpt": excerpt }),
            ChannelEvent::ToolCalled { name, parameters, output, source, .. } => {
                json!({ "name": name, "parameters": parameters, "output": output, "source": source })
            }
            ChannelEvent::Other { name, data } => json!({ "name": name, "data": data }),
        }
    }

    /// Returns the event of this name and data; `None` for another name, or data that lack a member.
    pub(super) fn from_wire(name: &str, data: &Value) -> Option<ChannelEvent> {
        let text = |key: &str| data[key].as_str().map(str::to_owned);
        Some(match name {
            "agent_speech_event" => {
                ChannelEvent::SpeechClaimed { utterance_id: text("utterance_id")?, effect: Cow::Owned(text("effect")?) }
            }
            "suspected_echo_event" => ChannelEvent::SuspectedEcho { utterance_id: text("utterance_id")? },
            "agent_reported" => ChannelEvent::Reported { text: text("text")? },
            "agent_cleared" => ChannelEvent::Cleared { dropped_ms: data["dropped_ms"].as_u64()? },
            "agent_error" => ChannelEvent::Error { code: text("code")?, message: text("message")? },
            "dialect_violation" => {
                ChannelEvent::Violation { code: Cow::Owned(text("code")?), excerpt: text("excerpt")? }
            }
            "channel_event" => ChannelEvent::Other { name: Cow::Owned(text("name")?), data: data["data"].clone() },
            _ => return None,
        })
    }
}
