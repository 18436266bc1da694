//! Messages of a channel beside its media: utterances of this side are announced, and the other side reports its own by
//! message.

use super::barge_in::is_floor_held;
use super::channel_event::ChannelEvent;
use super::event::{Side, ToolCall, What};
use super::hearing::{MAX_REPORTED, OtherTurn};
use super::io::Output;
use super::{Call, ms};
use crate::frame::{PER_MS, Sample};
use crate::leg::Leg;

/// Audio of the other side within this time before its message, in milliseconds, shows that the message is no echo of this side.
const ECHO_MS: u32 = 300;

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

impl Call {
    /// Announces what this side begins to say in the frame that is about to be sent.
    pub(super) fn announce_speech(&mut self) {
        if !matches!(self.leg, Some(Leg::Pcm(_))) {
            return;
        }
        let said = self.mouth.announced_id();
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
        if self.channel.announced.is_some() && self.mouth.announced_id() != self.channel.announced {
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
        if matches!(told, ChannelEvent::Cleared { .. }) {
            // Text of audio that is never heard belongs to no turn.
            self.channel.reported.clear();
        }
        let told = match told {
            ChannelEvent::ToolCalled { name, parameters, output, source, at_ms } => {
                let call = ToolCall { name, parameters, output, source: Some(source) };
                // What is yet to come was not done.
                let at = at_ms.map_or(self.frame_at, |at| ms(at).min(self.frame_at));
                return self.event(at, Side::Agent, What::ToolCall(Box::new(call)));
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

    /// Takes a message that the other side begins to speak: while this side speaks, that is an interruption.
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

    /// Takes a digit of the other side that came as a message.
    pub(super) fn digit_by_message(&mut self, digit: char, duration_ms: u32) {
        let from = self.frame_at - Sample::from(duration_ms) * PER_MS;
        self.digit_beside_audio(digit, from.max(0), duration_ms, BY_MESSAGE);
    }
}
