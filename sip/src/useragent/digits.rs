//! Digits that this side sends by INFO (RFC 6086, `application/dtmf-relay`): one request at a time, so that they arrive
//! in their order whatever is lost on the way.

use crate::call::{CallEvent, CallStage};
use crate::endpoint::Endpoint;
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Method, Response};
use crate::time::Time;

/// Largest number of digits that may wait for the answer to the one before; more are dropped and reported as refused.
const MAX_DIGITS: usize = 64;

impl Endpoint {
    /// Sends `digit` (`0` to `9`, `*`, `#`, `A` to `D`) of `duration_ms` milliseconds by INFO, after those that were
    /// ordered before it. A digit that the other side does not take is reported by [`CallEvent::DigitRefused`]. Nothing
    /// happens before the answer and after the end.
    pub fn send_digit(&mut self, now: Time, call: CallKey, digit: char, duration_ms: u32) {
        let Some(state) = self.calls.get_mut(&call).filter(|state| state.stage == CallStage::Up) else { return };
        if state.keyed.waiting.len() == MAX_DIGITS {
            return self.event(call, CallEvent::DigitRefused(503));
        }
        state.keyed.waiting.push_back((digit, duration_ms));
        self.next_digit(now, call);
    }

    fn next_digit(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.stage == CallStage::Up && !call.keyed.busy) else {
            return;
        };
        let at = call.active.unwrap_or(0);
        let Some((digit, duration_ms)) = call.keyed.waiting.pop_front() else { return };
        call.keyed.busy = true;
        self.send_in_dialog(now, key, at, Method::Info, |request| {
            request.body = format!("Signal={digit}\r\nDuration={duration_ms}\r\n").into_bytes();
            request.headers.push("Content-Type", "application/dtmf-relay");
        });
    }

    /// Takes the final response to an INFO, other than a challenge that was answered.
    pub(crate) fn digit_answered(&mut self, now: Time, key: CallKey, code: u16) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        call.keyed.busy = false;
        if code >= 300 {
            self.event(key, CallEvent::DigitRefused(code));
        }
        self.next_digit(now, key);
    }

    /// Handles a response to an INFO of this side.
    pub(crate) fn info_response(&mut self, now: Time, key: CallKey, tx: &TransactionKey, response: &Response) {
        if response.code >= 200 && self.signed_again(now, key, tx, response).is_none() {
            self.digit_answered(now, key, response.code);
        }
    }
}
