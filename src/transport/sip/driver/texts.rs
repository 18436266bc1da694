//! Text messages at the SIP sockets (RFC 3428): those that are sent until their answer, and those that come, for
//! whoever takes them.

use std::collections::HashMap;

use ringer_sip::CallKey;
use ringer_sip::messaging::{IncomingText, TextEvent, TextKey, TextMessage, TextRefusal};
use tokio::sync::{mpsc, oneshot};

use super::{Order, SipDriver, SipSocket, USER_AGENT, now};

/// Texts that may wait to be taken.
const INCOMING_TEXTS: usize = 1024;

/// Order about text messages.
pub(super) enum TextOrder {
    Send(Box<TextMessage>, oneshot::Sender<Result<(), NotSent>>),
    Take(mpsc::Sender<IncomingText>),
    Answer(TextKey, u16),
}

/// Reason why a text was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSent {
    /// Refusal, or what stands for it.
    pub refusal: TextRefusal,
    /// True if this machine could not send it.
    pub is_own: bool,
}

/// Texts under way, and who takes those that come.
#[derive(Default)]
pub(super) struct TextDesk {
    waiting: HashMap<CallKey, oneshot::Sender<Result<(), NotSent>>>,
    taker: Option<mpsc::Sender<IncomingText>>,
}

impl SipSocket {
    /// Sends a text and waits for its final answer.
    ///
    /// # Errors
    /// [`NotSent`]: the reason why the text was not taken. A closed socket has a reason of its own.
    pub async fn send_text(&self, message: TextMessage) -> Result<(), NotSent> {
        let (reply, answer) = oneshot::channel();
        let sent = self.orders.send(Order::Text(TextOrder::Send(Box::new(message), reply))).await;
        match (sent, answer.await) {
            (Ok(()), Ok(answer)) => answer,
            _ => {
                let text = "The engine is being stopped".to_owned();
                let refusal = TextRefusal { code: 503, is_answer: false, text, retry_after_s: None, is_open: true };
                Err(NotSent { refusal, is_own: true })
            }
        }
    }

    /// Returns the number of bytes of text that one request carries; `None`: no limit is known.
    pub fn text_room(&self, message: &TextMessage) -> Option<usize> {
        message.room(USER_AGENT)
    }

    /// Takes the texts that come from now on; each is to be answered ([`SipSocket::answer_text`]).
    pub async fn take_texts(&self) -> mpsc::Receiver<IncomingText> {
        let (taker, texts) = mpsc::channel(INCOMING_TEXTS);
        let _ = self.orders.send(Order::Text(TextOrder::Take(taker))).await;
        texts
    }

    /// Answers a text that came with this status.
    pub async fn answer_text(&self, key: TextKey, code: u16) {
        let _ = self.orders.send(Order::Text(TextOrder::Answer(key, code))).await;
    }
}

impl SipDriver {
    pub(super) fn carry_out_text(&mut self, order: TextOrder) {
        match order {
            TextOrder::Send(message, reply) => {
                let key = self.endpoint.send_text(now(), *message);
                self.texts.waiting.insert(key, reply);
            }
            TextOrder::Take(taker) => {
                self.texts.taker = Some(taker);
                self.endpoint.take_texts();
            }
            TextOrder::Answer(key, code) => self.endpoint.answer_text(now(), &key, code),
        }
    }

    /// Tells events of texts. Returns true if there was one, after which more may be to send.
    pub(super) fn tell_texts(&mut self) -> bool {
        let mut was_one = false;
        while let Some(event) = self.endpoint.poll_text() {
            was_one = true;
            match event {
                TextEvent::Sent(key, done) => {
                    let Some(reply) = self.texts.waiting.remove(&key) else { continue };
                    let done = done.map_err(|refusal| self.not_sent(refusal));
                    // Whoever sent it may be gone.
                    let _ = reply.send(done);
                }
                TextEvent::Incoming(text) => {
                    let key = text.key.clone();
                    let taken = self.texts.taker.as_ref().is_some_and(|taker| taker.try_send(*text).is_ok());
                    if !taken {
                        self.endpoint.answer_text(now(), &key, 503);
                    }
                }
            }
        }
        was_one
    }

    /// Returns a refusal with the reason of the transport, where it brought the refusal about.
    fn not_sent(&self, mut refusal: TextRefusal) -> NotSent {
        let cause = self.cause.as_ref().filter(|_| !refusal.is_answer && refusal.code == 503);
        if let Some(cause) = cause {
            refusal.text.clone_from(&cause.why);
        }
        NotSent { is_own: cause.is_some_and(|cause| cause.is_own), refusal }
    }
}
