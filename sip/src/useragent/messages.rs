//! Text messages: a transaction for each that is sent, or several where credentials are asked for or a place cannot be
//! reached; and the answers to those that come (RFC 3428 4, 7).

use std::collections::VecDeque;

use crate::auth::{Challenged, Login};
use crate::capabilities::ALLOW;
use crate::endpoint::{Endpoint, Failure};
use crate::hop::Hop;
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Request, Response};
use crate::messaging::{IncomingText, MOST_TEXTS, Sending, TextEvent, TextKey, TextMessage, TextRefusal, text_of};
use crate::registration::{retry_after, status_text};
use crate::time::Time;

impl Endpoint {
    /// Takes texts from now on; each is to be answered.
    pub fn take_texts(&mut self) {
        self.texts.takes = true;
    }

    /// Returns the next event of a text, in order; `None` when there is none.
    pub fn poll_text(&mut self) -> Option<TextEvent> {
        self.texts.events.pop_front()
    }

    /// Sends a text; its key is in the event of its final answer.
    pub fn send_text(&mut self, now: Time, message: TextMessage) -> CallKey {
        let key = self.new_key();
        let mut places: VecDeque<Hop> = message.places.iter().cloned().collect();
        let is_full = self.texts.sending.len() >= MOST_TEXTS;
        let Some(place) = places.pop_front().filter(|_| !is_full) else {
            let text = if is_full { "Too many texts are under way" } else { "There is no place to send it to" };
            self.text_done(key, Err(TextRefusal::own(503, text)));
            return key;
        };
        let (tag, login) = (self.ids.next(), Login::new(message.credentials.clone()));
        let sending = Sending { message, tag, seq: 1, login, challenged: Challenged::new(), place, places };
        self.texts.sending.insert(key, sending);
        self.transmit_text(now, key);
        key
    }

    /// Answers a text that came. A text that was answered before keeps its first answer.
    pub fn answer_text(&mut self, now: Time, key: &TextKey, code: u16) {
        self.reply(now, &key.0, code, "", &[]);
    }

    /// Takes a MESSAGE that came outside of a call.
    pub(crate) fn text_received(&mut self, now: Time, key: &TransactionKey, request: Request, source: Hop) {
        if !self.texts.takes {
            return self.reply(now, key, 405, "", &[("Allow", ALLOW)]);
        }
        let text = match text_of(&request) {
            Ok(text) => text,
            Err((code, headers)) => return self.reply(now, key, code, "", headers),
        };
        if self.texts.events.len() >= MOST_TEXTS {
            return self.reply(now, key, 503, "", &[("Retry-After", "10")]);
        }
        let (Ok(from), Ok(to), Ok(cseq)) = (request.headers.from(), request.headers.to(), request.headers.cseq())
        else {
            return self.reply(now, key, 400, "", &[]);
        };
        let call_id = request.headers.call_id().unwrap_or_default();
        let headers = request.headers.iter().filter(|header| !header.is_secret());
        let incoming = IncomingText {
            key: TextKey(key.clone()),
            from: from.uri,
            to: to.uri,
            id: format!("{call_id} {}", cseq.seq),
            headers: headers.map(|header| (header.name.to_string(), header.value.clone())).collect(),
            request_uri: request.uri,
            text,
            source,
        };
        self.texts.events.push_back(TextEvent::Incoming(Box::new(incoming)));
    }

    /// Takes a response to a text.
    pub(crate) fn text_response(&mut self, now: Time, key: CallKey, response: &Response) {
        let Some(sending) = self.texts.sending.get_mut(&key) else { return };
        match response.code {
            ..200 => {}
            200..300 => self.text_done(key, Ok(())),
            401 | 407 if sending.login.learn(response, &mut sending.challenged) => {
                sending.seq += 1;
                self.transmit_text(now, key);
            }
            503 if !sending.places.is_empty() => self.next_place(now, key),
            code => {
                let retry_after_s = retry_after(response).map(|wait| wait.as_secs());
                let text = status_text(response);
                self.text_done(key, Err(TextRefusal { code, is_answer: true, text, retry_after_s, is_open: false }));
            }
        }
    }

    /// Takes that a text has no final response.
    pub(crate) fn text_failed(&mut self, now: Time, key: CallKey, failure: Failure) {
        let Some(sending) = self.texts.sending.get(&key) else { return };
        // Only what certainly went nowhere goes to another place: nobody is to read a text twice.
        if failure == Failure::Unreachable && !sending.places.is_empty() {
            return self.next_place(now, key);
        }
        let refusal = TextRefusal::own(failure.code(), failure.text());
        self.text_done(key, Err(TextRefusal { is_open: failure != Failure::Unreachable, ..refusal }));
    }

    fn next_place(&mut self, now: Time, key: CallKey) {
        let Some(sending) = self.texts.sending.get_mut(&key) else { return };
        if let Some(place) = sending.places.pop_front() {
            sending.place = place;
            sending.seq += 1;
            sending.challenged.clear();
            sending.login.forget();
            self.transmit_text(now, key);
        }
    }

    fn transmit_text(&mut self, now: Time, key: CallKey) {
        let Some(sending) = self.texts.sending.get_mut(&key) else { return };
        let mut request = sending.message.request(&sending.tag, sending.seq);
        sending.login.sign(&mut request, &mut self.ids);
        let place = sending.place.clone();
        self.send_request(now, key, request, place);
    }

    fn text_done(&mut self, key: CallKey, done: Result<(), TextRefusal>) {
        self.texts.sending.remove(&key);
        self.texts.events.push_back(TextEvent::Sent(key, done));
    }
}
