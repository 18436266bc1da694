//! Messages of a channel beside its media: utterances of this side are announced, and the other side tells of its own by message.

use serde_json::{Value, json};

use super::barge_in::is_floor_held;
use super::event::{Code, Side, ToolCall, What};
use super::hearing::OtherTurn;
use super::io::Output;
use super::{Call, ms};
use crate::frame::{PER_MS, Sample};
use crate::leg::Leg;

/// Audio of the other side within this time before its message, in milliseconds, shows that the message is no echo of this side.
const ECHO_MS: u32 = 300;

/// Most bytes of text that the other side may tell before its turn begins.
const MAX_REPORTED: usize = 16_384;

/// Name of the method of a digit that goes or came as a message.
pub(super) const BY_MESSAGE: &str = "message";

/// State of a channel's messages.
#[derive(Debug, Default)]
pub(super) struct ChannelState {
    /// Number of the utterance that was announced and is not over.
    announced: Option<u32>,
    /// Text of the other side that belongs to no turn yet.
    reported: String,
}

impl ChannelState {
    /// Returns the text that was told for the turn that begins.
    pub fn take_reported(&mut self) -> String {
        std::mem::take(&mut self.reported)
    }
}

/// An event that the other side told by a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelEvent {
    /// It says that it begins to speak.
    SpeechClaimed {
        /// Its own id of the utterance.
        utterance_id: String,
        /// Effect on this side: `interrupt`, `none`, `ignored` or `floor_held`.
        effect: Code,
    },
    /// It says so just after this side has begun, and nothing is heard of it: the message may come of its echo.
    SuspectedEcho {
        /// Its own id of the utterance.
        utterance_id: String,
    },
    /// Text of its own words.
    Reported {
        /// The words.
        text: String,
    },
    /// It took audio back that was not heard yet, while this side spoke.
    Cleared {
        /// Duration of that audio in milliseconds.
        dropped_ms: u64,
    },
    /// It tells of an error.
    Error {
        /// Its code.
        code: String,
        /// Its message.
        message: String,
    },
    /// It broke the rules of the channel.
    Violation {
        /// Stable code.
        code: Code,
        /// Beginning of its message.
        excerpt: String,
    },
    /// It called one of its tools. In a timeline this is [`What::ToolCall`].
    ToolCalled(ToolCall),
    /// Something else, in the words of the channel.
    Other {
        /// Stable name.
        name: Code,
        /// Members.
        data: Value,
    },
}

impl ChannelEvent {
    /// Returns the wire name.
    pub fn name(&self) -> &'static str {
        match self {
            ChannelEvent::SpeechClaimed { .. } => "agent_speech_event",
            ChannelEvent::SuspectedEcho { .. } => "suspected_echo_event",
            ChannelEvent::Reported { .. } => "agent_reported",
            ChannelEvent::Cleared { .. } => "agent_cleared",
            ChannelEvent::Error { .. } => "agent_error",
            ChannelEvent::Violation { .. } => "dialect_violation",
            ChannelEvent::ToolCalled(_) => "tool_call",
            ChannelEvent::Other { .. } => "channel_event",
        }
    }

    /// Returns the wire data.
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
            ChannelEvent::ToolCalled(call) => {
                json!({ "name": call.name, "parameters": call.parameters, "output": call.output })
            }
            ChannelEvent::Other { name, data } => json!({ "name": name, "data": data }),
        }
    }

    /// Returns the event of a wire name and its data; `None` for another name, or data that lack a member.
    pub(super) fn from_wire(name: &str, data: &Value) -> Option<ChannelEvent> {
        let text = |key: &str| data[key].as_str().map(str::to_owned);
        Some(match name {
            "agent_speech_event" => ChannelEvent::SpeechClaimed {
                utterance_id: text("utterance_id")?,
                effect: Code::Owned(text("effect")?),
            },
            "suspected_echo_event" => ChannelEvent::SuspectedEcho { utterance_id: text("utterance_id")? },
            "agent_reported" => ChannelEvent::Reported { text: text("text")? },
            "agent_cleared" => ChannelEvent::Cleared { dropped_ms: data["dropped_ms"].as_u64()? },
            "agent_error" => ChannelEvent::Error { code: text("code")?, message: text("message")? },
            "dialect_violation" => {
                ChannelEvent::Violation { code: Code::Owned(text("code")?), excerpt: text("excerpt")? }
            }
            "channel_event" => ChannelEvent::Other { name: Code::Owned(text("name")?), data: data["data"].clone() },
            _ => return None,
        })
    }
}

impl Call {
    /// Announces what this side begins to say in the frame that is about to be sent.
    pub(super) fn announce_speech(&mut self) {
        if !matches!(self.leg, Some(Leg::Pcm(_))) {
            return;
        }
        let said = self.mouth.announced();
        if self.channel.announced != said {
            self.end_announcement(self.frame_at);
            if said.is_some() {
                self.channel.announced = said;
                self.out.push(Output::Utterance { at: self.frame_at, begins: true });
            }
        }
    }

    /// Announces the end of what this side was saying, once its last frame was sent.
    pub(super) fn announce_silence(&mut self) {
        if self.channel.announced.is_some() && self.mouth.announced() != self.channel.announced {
            self.end_announcement(self.frame_at);
        }
    }

    /// Tells that the announced utterance is over at `at`.
    pub(super) fn end_announcement(&mut self, at: Sample) {
        if self.channel.announced.take().is_some() {
            self.out.push(Output::Utterance { at, begins: false });
        }
    }

    /// Takes an event that the other side told by a message.
    pub(super) fn take_channel_event(&mut self, told: ChannelEvent, follows_own: bool) {
        if !self.phase.is_connected() {
            return;
        }
        let told = match told {
            ChannelEvent::ToolCalled(call) => {
                return self.event(self.frame_at, Side::Agent, What::ToolCall(Box::new(call)));
            }
            ChannelEvent::SpeechClaimed { utterance_id, .. } => self.take_claim(utterance_id, follows_own),
            ChannelEvent::Reported { text } => {
                self.keep_reported(&text);
                ChannelEvent::Reported { text }
            }
            ChannelEvent::Cleared { .. } if self.mouth.speaking_since().is_none() => return,
            told => told,
        };
        self.event(self.frame_at, Side::Agent, What::Channel(Box::new(told)));
    }

    /// The other side says that it begins to speak: while this side speaks, that is an interruption.
    fn take_claim(&mut self, utterance_id: String, follows_own: bool) -> ChannelEvent {
        if self.mouth.speaking_since().is_none() {
            return ChannelEvent::SpeechClaimed { utterance_id, effect: "none".into() };
        }
        if follows_own && !self.is_heard_lately() {
            return ChannelEvent::SuspectedEcho { utterance_id };
        }
        let effect = if !self.spec.turn.yield_to_claims {
            "ignored"
        } else if is_floor_held(self) {
            "floor_held"
        } else {
            self.mouth.saying().into_iter().for_each(|said| said.stop());
            "interrupt"
        };
        ChannelEvent::SpeechClaimed { utterance_id, effect: effect.into() }
    }

    /// True when the other side was heard in the last 300 ms.
    fn is_heard_lately(&self) -> bool {
        let lately = self.frame_at - ms(ECHO_MS);
        let spoken_to = self.ears.voice.vad().spoken_to();
        self.other.since.is_some()
            || self.ears.voice.vad().is_stirring()
            || spoken_to.or(self.other.ended).is_some_and(|end| end >= lately)
    }

    /// Keeps text of the other side for the turn that it is of: the one that is heard, one that still waits for text, or the next.
    fn keep_reported(&mut self, text: &str) {
        let waiting = self.other.closing.iter_mut().find(|turn| !turn.is_final());
        if let Some(turn) = self.other.turn.as_mut().filter(|turn| turn.has_speech()).or(waiting) {
            return turn.report(text);
        }
        let kept = &mut self.channel.reported;
        if kept.len() + text.len() < MAX_REPORTED {
            if !kept.is_empty() {
                kept.push(' ');
            }
            kept.push_str(text);
        }
    }

    /// Gives a turn that begins the text that was told for it.
    pub(super) fn give_reported(&mut self, turn: &mut OtherTurn) {
        let text = self.channel.take_reported();
        if !text.is_empty() {
            turn.report(&text);
        }
    }

    /// A digit of the other side came as a message.
    pub(super) fn digit_by_message(&mut self, digit: char, duration_ms: u32) {
        let from = self.frame_at - Sample::from(duration_ms) * PER_MS;
        self.digit_beside_audio(digit, from.max(0), duration_ms, BY_MESSAGE);
    }
}
