//! Facts of a call that change nothing, and that its owner may tell: a request too large for a datagram, a place that
//! did not take the call, an answer that is repeated.

use crate::call::{CallEvent, CallStage, Notice};
use crate::endpoint::Endpoint;
use crate::hop::{Hop, Transport};
use crate::ids::{CallKey, TransactionKey};

/// Repetitions of a 2xx after which it is told: the first one may have crossed an ACK that took longer than T1.
const TOLD_REPETITIONS: u32 = 2;

impl Endpoint {
    /// Tells a request that is larger than a datagram should be, once for each call.
    pub(crate) fn note_size(&mut self, key: &TransactionKey, most: usize) {
        let Some(client) = self.clients.get(key) else { return };
        let (call, bytes) = (client.call, client.bytes.len());
        if client.to.transport != Transport::Udp || bytes <= most {
            return;
        }
        let Some(call_state) = self.calls.get_mut(&call) else { return };
        if !std::mem::replace(&mut call_state.size_told, true) {
            let tcp_failed = call_state.tcp_refused;
            self.event(call, CallEvent::Notice(Notice::Oversized { bytes, tcp_failed }));
        }
    }

    /// Tells that the place of the last INVITE is left for the next one.
    pub(super) fn note_place(&mut self, key: CallKey, to: Hop, code: Option<u16>, text: &str) {
        let text = text.to_owned();
        self.event(key, CallEvent::Notice(Notice::PlaceLeft { to, code, text }));
    }

    /// Notes that the other side has repeated a 2xx whose ACK goes to `to`.
    pub(super) fn note_repetition(&mut self, key: CallKey, to: Hop) {
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.stage == CallStage::Up) else { return };
        call.repetitions = call.repetitions.saturating_add(1);
        if call.repetitions == TOLD_REPETITIONS {
            self.event(key, CallEvent::Notice(Notice::AnswerRepeated { to }));
        }
    }
}
