//! Events of a call, as its owner gets them.

use crate::header::NameAddr;
use crate::hop::Hop;
use crate::sdp::{Negotiated, Refusal};
use crate::uri::Uri;

/// Event of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent {
    /// A call comes in; 100 was sent. Continue with `ring`, `answer`, `reject` or `authorize`.
    Incoming {
        /// Address of the caller (From).
        from: NameAddr,
        /// Address that is called (To).
        to: NameAddr,
        /// Request-URI as it was written.
        request_uri: String,
        /// Header fields in order, without credentials.
        headers: Vec<(String, String)>,
        /// Offer of the caller; `None` when the caller leaves the offer to the answerer.
        sdp: Option<String>,
        /// Call-ID of the INVITE.
        call_id: String,
        /// Place that the INVITE came from.
        source: Hop,
    },
    /// 100 came: the next hop has the INVITE.
    Trying,
    /// A provisional response came, 101 to 199.
    Provisional {
        /// Status code, 101 to 199.
        code: u16,
        /// To-tag, which names the early dialog: one for each branch of a forking proxy. Empty when there is none.
        tag: String,
        /// Description of early media; `None` without one.
        sdp: Option<String>,
        /// Agreement of offer and description; `None` without a usable description.
        media: Option<Negotiated>,
    },
    /// A 2xx came and the ACK was sent.
    Answered {
        /// Status code, 200 to 299.
        code: u16,
        /// Session description of the other side: its answer, or its offer when the INVITE had none.
        sdp: String,
        /// Agreement of offer and answer.
        media: Negotiated,
        /// Call-ID of the INVITE.
        call_id: String,
        /// To-tag of the branch that answered.
        tag: String,
    },
    /// The other side makes the offer, since the INVITE had none: answer it with
    /// [`Endpoint::answer_offer`](crate::Endpoint::answer_offer). `Answered` follows the answer to the offer of a 2xx.
    Offered {
        /// Status code of the response that has the offer.
        code: u16,
        /// Session description of the other side's offer.
        sdp: String,
        /// To-tag of the branch that offers.
        tag: String,
    },
    /// The PRACK of a reliable provisional response of this side came; `sdp` is the answer to an offer that was made in
    /// it.
    RingConfirmed {
        /// Description in the PRACK's body; `None` without one.
        sdp: Option<String>,
    },
    /// The ACK of this side's answer came; `sdp` is the answer to an offer that was made in the 200.
    Confirmed {
        /// Description in the ACK's body; `None` without one.
        sdp: Option<String>,
    },
    /// A redirect: see whether its target may be called, find its address, and call `resolved`.
    Redirected {
        /// Request-URI of the next attempt.
        target: Uri,
    },
    /// The other side put the call on hold (true), or ended its hold.
    Hold(bool),
    /// The other side changed the session (re-INVITE or UPDATE); it was answered.
    Renegotiated {
        /// Agreement from now on.
        media: Negotiated,
        /// Session description of the other side.
        sdp: String,
        /// Tag of the other side: before the answer it names the early dialog.
        tag: String,
    },
    /// A digit by INFO (`application/dtmf-relay` or `application/dtmf`).
    Digit(char, u32),
    /// The other side did not take a digit of this side: the status that refused it, 408 without an answer, 503 when it
    /// could not be sent.
    DigitRefused(u16),
    /// The other side asks for a transfer (REFER, RFC 3515): answer it with
    /// [`Endpoint::answer_transfer`](crate::Endpoint::answer_transfer) or
    /// [`Endpoint::accept_transfer`](crate::Endpoint::accept_transfer).
    Transfer {
        /// Address of Refer-To, with the header fields that it asks for (`?Replaces=...`).
        to: String,
        /// Value of the Referred-By field (RFC 3892).
        referred_by: Option<String>,
    },
    /// A change that this side asked for ([`Endpoint::reinvite`](crate::Endpoint::reinvite)) has its final answer.
    /// Without `media` the session is as it was.
    Reinvited {
        /// Status code: 200, or the refusal; 408 without a response, 503 when it could not be sent.
        code: u16,
        /// Session description of the answer; `None` without one.
        sdp: Option<String>,
        /// Agreement from now on; `None` when the session is as it was.
        media: Option<Negotiated>,
    },
    /// A change that this side asked for by [`Endpoint::update`](crate::Endpoint::update) has its final answer. Without
    /// `media` the session is as it was.
    Updated {
        /// Status code: 200, or the refusal; 408 without a response, 503 when it could not be sent.
        code: u16,
        /// Session description of the answer; `None` without one.
        sdp: Option<String>,
        /// Agreement from now on; `None` when the session is as it was.
        media: Option<Negotiated>,
    },
    /// The other side sent a message in the dialog (RFC 3428).
    Message {
        /// Value of the Content-Type field as it was written.
        content_type: String,
        /// Text of the message; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// A re-INVITE or UPDATE of the other side was answered and left the session as it was. It had no description, or
    /// its description was refused.
    Unchanged {
        /// Status code: 200, or the refusal.
        code: u16,
        /// Reason for which the description was refused.
        why: Option<Refusal>,
    },
    /// The connection that an established call was signalled by is closed. The call goes on; its next request opens
    /// another one.
    ConnectionLost,
    /// A fact that changes nothing of the call.
    Notice(Notice),
    /// The call is over; nothing follows.
    Ended(CallEnd),
}

/// End of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// Cause of the end, with the side that ended the call.
    pub kind: EndKind,
    /// Final status; `None` when there was none.
    pub sip_code: Option<u16>,
    /// Q.850 cause of a Reason header, the other side's or this one's.
    pub q850_cause: Option<u16>,
    /// Reason phrase, or the transport's explanation.
    pub text: String,
    /// True when the other side ended or refused the call.
    pub by_remote: bool,
    /// True when the refusal had a Retry-After field.
    pub retry_after: bool,
}

/// Kinds of ends of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// The other side sent BYE.
    RemoteBye,
    /// The other side refused the call with 300 to 699.
    Refused,
    /// No answer to INVITE within 32 s, or no ACK to this side's answer.
    Timeout,
    /// The credentials were refused, or none were given.
    AuthFailed,
    /// The transport cannot reach the other side.
    NotReachable,
    /// This side has no socket to reach the other side by. The endpoint itself never says so; its driver may.
    NoSocket,
    /// A 2xx came without a usable answer; BYE was sent.
    NoMedia,
    /// This side hung up or rejected.
    LocalHangup,
    /// The caller cancelled (either side).
    Cancelled,
    /// The session was not refreshed in time (RFC 4028 10); BYE was sent.
    SessionExpired,
    /// The other side does not know the call any more (481), or does not answer in it (408); BYE was sent.
    DialogLost,
}

impl CallEnd {
    pub(crate) fn new(kind: EndKind, text: &str) -> CallEnd {
        CallEnd { kind, sip_code: None, q850_cause: None, text: text.into(), by_remote: false, retry_after: false }
    }
}

/// Something that changes nothing of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A request of more than 1300 bytes goes by datagram, where TCP should be used (RFC 3261 18.1.1). It is told once
    /// in a call.
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
    /// The other side repeats its answer although the ACK is sent each time: it does not arrive (RFC 3261 13.3.1.4). It
    /// is told once in a call.
    AnswerRepeated {
        /// Place that the ACK goes to.
        to: Hop,
    },
}
