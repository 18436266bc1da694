//! Parts of a call that wait for an answer: a change of the session, an offer of the other side, digits by INFO.

use std::collections::VecDeque;

use crate::ids::TransactionKey;
use crate::message::{Method, Request};
use crate::time::Time;

/// A change of the session that this side asked for, until its final answer.
pub(crate) struct Change {
    /// Method of the request that carries it: INVITE or UPDATE.
    pub(crate) method: Method,
    pub(crate) at: usize,
    /// True for a change that only refreshes the session; it is not reported.
    pub(crate) refreshes: bool,
    /// Offer as the owner wrote it; `None` for none.
    pub(crate) wanted: Option<String>,
    /// Offer that was sent, with its `o=` line.
    pub(crate) offer: Option<String>,
    /// Answer of a reliable provisional response.
    pub(crate) answer: Option<String>,
    /// Open transaction; `None` while the change waits.
    pub(crate) transaction: Option<TransactionKey>,
    pub(crate) retries: u32,
    /// True once a 422 was followed.
    pub(crate) raised: bool,
    /// Time to ask, while the change waits; time to cancel, once it was sent.
    pub(crate) due: Time,
}

impl Change {
    pub(crate) fn new(method: Method, at: usize, wanted: Option<String>, now: Time) -> Change {
        Change {
            method,
            at,
            refreshes: false,
            wanted,
            offer: None,
            answer: None,
            transaction: None,
            retries: 0,
            raised: false,
            due: now,
        }
    }

    /// Returns a refresh of the session: an UPDATE without a description, or a re-INVITE with the one in use.
    pub(crate) fn refresh(method: Method, at: usize, now: Time) -> Change {
        Change { refreshes: true, ..Change::new(method, at, None, now) }
    }
}

/// Offer that the owner has to answer.
pub(crate) struct Offered {
    pub(crate) at: usize,
    pub(crate) code: u16,
    pub(crate) sdp: String,
    pub(crate) carrier: Carrier,
    /// Time by which the answer must be there.
    pub(crate) deadline: Option<Time>,
}

/// Request that takes the answer.
pub(crate) enum Carrier {
    /// The ACK of the 2xx to this INVITE.
    Ack(Box<Request>),
    /// The PRACK of the response with this RSeq number, to the INVITE with this CSeq number.
    Prack(u32, u32),
}

/// Digits that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    pub(crate) waiting: VecDeque<(char, u32)>,
    /// True while an INFO waits for its answer.
    pub(crate) busy: bool,
}
