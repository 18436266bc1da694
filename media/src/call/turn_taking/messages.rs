//! Speech of the other side that it tells of by messages: claims of the floor, and text of its turns.

use super::hearing::{MAX_REPORTED, OtherTurn};
use super::{TurnTaking, ms};
use crate::call::channel_event::ChannelEvent;

/// Audio of the other side within this time before its message, in milliseconds, shows that the message is no echo of
/// this side.
const ECHO_MS: u32 = 300;

impl TurnTaking {
    /// Takes a message that the other side begins to speak: while this side speaks, that is an interruption.
    pub(crate) fn take_claim(&mut self, utterance_id: String, follows_own: bool) -> ChannelEvent {
        if self.mouth.speaking_since().is_none() {
            return ChannelEvent::SpeechClaimed { utterance_id, effect: "none".into() };
        }
        if follows_own && !self.is_heard_lately() {
            return ChannelEvent::SuspectedEcho { utterance_id };
        }
        let effect = if !self.rules.turn.yield_to_claims {
            "ignored"
        } else if self.is_held() {
            "floor_held"
        } else {
            self.mouth.saying().into_iter().for_each(|said| said.stop());
            "interrupt"
        };
        ChannelEvent::SpeechClaimed { utterance_id, effect: effect.into() }
    }

    /// True when the other side was heard in the last 300 ms.
    fn is_heard_lately(&self) -> bool {
        let lately = self.scene.at - ms(ECHO_MS);
        let spoken_to = self.scene.spoken_to;
        self.other.since.is_some()
            || self.scene.stirring
            || spoken_to.or(self.other.ended).is_some_and(|end| end >= lately)
    }

    /// Keeps text of the other side for the turn that it is of: the one that is heard, one that still waits for text,
    /// or the next.
    pub(crate) fn keep_reported(&mut self, text: &str) {
        let waiting = self.other.closing.iter_mut().find(|turn| !turn.is_final());
        if let Some(turn) = self.other.turn.as_mut().filter(|turn| turn.has_speech()).or(waiting) {
            return turn.report(text);
        }
        let kept = &mut self.other.reported;
        if kept.len() + text.len() < MAX_REPORTED {
            if !kept.is_empty() {
                kept.push(' ');
            }
            kept.push_str(text);
        }
    }

    /// Gives a turn that begins the text that was told for it.
    pub(super) fn give_reported(&mut self, turn: &mut OtherTurn) {
        let text = std::mem::take(&mut self.other.reported);
        if !text.is_empty() {
            turn.report(&text);
        }
    }

    /// Drops text of audio that is never heard: it belongs to no turn.
    pub(crate) fn drop_reported(&mut self) {
        self.other.reported.clear();
    }
}
