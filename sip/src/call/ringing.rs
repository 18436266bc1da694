//! Reliable provisional responses of an answerer that wait for their PRACK (RFC 3262).

use std::collections::VecDeque;

use super::Repeated;
use crate::hop::ConnectionId;
use crate::message::Headers;
use crate::time::Time;

/// Provisional responses of an answerer, as far as they are reliable.
#[derive(Default)]
pub(crate) struct Ringing {
    /// True when the INVITE has an offer.
    pub(crate) offered: bool,
    /// True when the caller requires every response to be reliable.
    pub(crate) required: bool,
    /// True when the caller understands reliable responses.
    pub(crate) supported: bool,
    /// Last RSeq number; 0 before the first.
    pub(crate) rseq: u32,
    pub(crate) waiting: Option<Waiting>,
    pub(crate) queue: VecDeque<(u16, Option<String>)>,
    /// Description of a 200 that may not be sent before the PRACK comes (RFC 3262 3).
    pub(crate) answer: Option<String>,
    /// True when a description was sent reliably: the 200 has none.
    pub(crate) described: bool,
    /// True once a PRACK came: the caller knows the early dialog.
    pub(crate) confirmed: bool,
    /// True when offer and answer are complete.
    pub(crate) settled: bool,
}

/// A reliable response without its PRACK.
pub(crate) struct Waiting {
    pub(crate) rseq: u32,
    pub(crate) described: bool,
    /// `None` once a final response went.
    pub(crate) repeated: Option<Repeated>,
}

impl Ringing {
    /// Reads from the INVITE whether reliable responses are wanted and possible.
    pub(crate) fn of(invite: &Headers, offered: bool) -> Ringing {
        Ringing { offered, required: has_tag(invite, "Require"), supported: is_supported(invite), ..Ringing::default() }
    }

    /// Returns the time of the next retransmission or give-up.
    pub(crate) fn due(&self) -> Option<Time> {
        self.waiting.as_ref().and_then(|waiting| waiting.repeated.as_ref()).map(Repeated::due)
    }

    /// Forgets a connection that is closed.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if let Some(repeated) = self.waiting.as_mut().and_then(|waiting| waiting.repeated.as_mut()) {
            repeated.to.forget(connection);
        }
    }

    /// True while a reliable response is repeated.
    pub(crate) fn is_busy(&self) -> bool {
        self.due().is_some()
    }

    /// Ends all repetitions, as a final response is sent; the PRACK may still come.
    pub(crate) fn stop(&mut self) {
        self.queue.clear();
        self.answer = None;
        if let Some(waiting) = &mut self.waiting {
            waiting.repeated = None;
        }
    }

    /// Keeps the answer back while a description waits for its PRACK. Returns it when it may go now.
    pub(crate) fn hold_answer(&mut self, sdp: String) -> Option<String> {
        if !self.is_busy() || !self.waiting.as_ref().is_some_and(|waiting| waiting.described) {
            return Some(sdp);
        }
        self.answer.get_or_insert(sdp);
        None
    }
}

fn is_supported(headers: &Headers) -> bool {
    has_tag(headers, "Supported") || has_tag(headers, "Require")
}

pub(crate) fn has_tag(headers: &Headers, name: &str) -> bool {
    headers.list(name).iter().any(|tag| tag.eq_ignore_ascii_case("100rel"))
}
