//! Facts of a call that change nothing, and that its owner may tell: a request too large for a datagram, a place that did not take
//! the call, an answer that is repeated.

use super::{CallEvent, CallKey, CallStage};
use crate::endpoint::{Endpoint, TransactionKey};
use crate::hop::{Hop, Transport};

/// Repetitions of a 2xx after which it is told: the first one may have crossed an ACK that took longer than T1.
const TOLD_REPETITIONS: u32 = 2;

/// Something that changes nothing of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A request of more than 1300 bytes goes by datagram, where TCP should be used (RFC 3261 18.1.1). It is told once in a call.
    Oversized {
        /// Length of the request in bytes.
        bytes: usize,
        /// True if TCP was tried before, and did not reach the other side.
        tcp_failed: bool,
    },
    /// A place did not take the call, and the next one is tried (RFC 3263 4.3).
    PlaceLeft {
        /// Place that was tried.
        to: Hop,
        /// Status of its answer; `None` without one.
        code: Option<u16>,
        /// Reason phrase of its answer, or the reason for which there is none.
        text: String,
    },
    /// The other side repeats its answer although the ACK is sent each time: it does not arrive (RFC 3261 13.3.1.4). It is told once
    /// in a call.
    AnswerRepeated {
        /// Place that the ACK goes to.
        to: Hop,
    },
}

impl Endpoint {
    /// Tells a request that is larger than a datagram should be, once for each call.
    pub(crate) fn note_size(&mut self, key: &TransactionKey, most: usize) {
        let Some(client) = self.clients.get(key) else { return };
        let (call, bytes) = (client.call, client.bytes.len());
        if client.to.transport != Transport::Udp || bytes <= most {
            return;
        }
        let Some(told) = self.calls.get_mut(&call) else { return };
        if !std::mem::replace(&mut told.size_told, true) {
            let tcp_failed = told.tcp_refused;
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
