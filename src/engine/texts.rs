//! Text messages over SIP (RFC 3428), by the sockets of calls.

use std::net::IpAddr;

use ringer_sip::messaging::{IncomingText, TextKey, TextMessage};
use ringer_transport::sip::driver::{NotSent, SipSocket};
use ringer_transport::sip::registration::LineBoard;
use tokio::sync::mpsc;

use super::Engine;

/// Sender of text messages; cheap to clone.
#[derive(Clone)]
pub struct TextSender {
    sip: SipSocket,
}

impl TextSender {
    /// Sends a text and waits for its final answer.
    ///
    /// # Errors
    /// [`NotSent`]: the reason why the other side or its network did not take the text.
    pub async fn send(&self, message: TextMessage) -> Result<(), NotSent> {
        self.sip.send_text(message).await
    }

    /// Returns the number of bytes of text that one request carries; `None`: no limit is known.
    pub fn room(&self, message: &TextMessage) -> Option<usize> {
        self.sip.text_room(message)
    }
}

impl Engine {
    /// Returns the sender of text messages.
    pub fn text_sender(&self) -> TextSender {
        TextSender { sip: self.services.sip.clone() }
    }

    /// Takes the text messages that come from now on; each is to be answered ([`Engine::answer_text`]).
    pub async fn take_texts(&self) -> mpsc::Receiver<IncomingText> {
        self.services.sip.take_texts().await
    }

    /// Answers a text message that came with this status.
    pub async fn answer_text(&self, key: TextKey, code: u16) {
        self.services.sip.answer_text(key, code).await;
    }

    /// True if the trunk with this name has this host, as far as its hosts are known.
    pub fn is_at_trunk(&self, name: &str, host: IpAddr) -> bool {
        let board: &LineBoard = self.lines();
        board.is_at(name, host)
    }
}
