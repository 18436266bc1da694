//! Messages of a channel beside its media: utterances of this side are announced, and the other side reports its own by
//! message.

use super::channel_event::ChannelEvent;
use super::event::{EventKind, Side, ToolCall};
use super::io::Output;
use super::{Call, ms};
use crate::frame::{PER_MS, Sample};
use crate::leg::Leg;

/// Name of the method of a digit that goes or came as a message.
pub(super) const BY_MESSAGE: &str = "message";

/// State of a channel's messages.
#[derive(Debug, Default)]
pub(super) struct ChannelState {
    /// Number of the utterance that was announced and is not over.
    announced: Option<u32>,
}

impl Call {
    /// Announces what this side begins to say in the frame that is about to be sent.
    pub(super) fn announce_speech(&mut self) {
        if !matches!(self.leg, Some(Leg::Pcm(_))) {
            return;
        }
        let said = self.turn_taking.mouth.announced_id();
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
        if self.channel.announced.is_some() && self.turn_taking.mouth.announced_id() != self.channel.announced {
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
    pub(super) fn take_channel_event(&mut self, event: ChannelEvent, follows_own: bool) {
        if !self.phase.is_connected() {
            return;
        }
        if matches!(event, ChannelEvent::Cleared { .. }) {
            // Text of audio that is never heard belongs to no turn.
            self.turn_taking.drop_reported();
        }
        let event = match event {
            ChannelEvent::ToolCalled { name, parameters, output, source, at_ms } => {
                let call = ToolCall { name, parameters, output, source: Some(source) };
                // What is yet to come was not done.
                let at = at_ms.map_or(self.frame_at, |at| ms(at).min(self.frame_at));
                return self.event(at, Side::Agent, EventKind::ToolCall(Box::new(call)));
            }
            ChannelEvent::SpeechClaimed { utterance_id, .. } => {
                self.turn_taking().take_claim(utterance_id, follows_own)
            }
            ChannelEvent::Reported { text } => {
                self.turn_taking.keep_reported(&text);
                ChannelEvent::Reported { text }
            }
            ChannelEvent::Cleared { .. } if self.turn_taking.mouth.speaking_since().is_none() => return,
            event => event,
        };
        self.event(self.frame_at, Side::Agent, EventKind::Channel(Box::new(event)));
    }

    /// Takes a digit of the other side that came as a message.
    pub(super) fn digit_by_message(&mut self, digit: char, duration_ms: u32) {
        let from = self.frame_at - Sample::from(duration_ms) * PER_MS;
        self.digit_beside_audio(digit, from.max(0), duration_ms, BY_MESSAGE);
    }
}
