//! The user agent: calls as caller and as answerer (RFC 3261 8, 9, 13, 14, 15), on top of [`Endpoint`](crate::Endpoint).
//!
//! This file has the orders and events of a driver, `state` the state of a call. `caller` places calls, `answerer`
//! takes them, `prack` makes provisional responses reliable (RFC 3262), `offer` is for an INVITE without an offer.
//! Parts that both sides share once a dialog exists: `indialog`, `change` (re-INVITE, UPDATE), `timers` (RFC 4028),
//! `transfer`, `digits`, `login`, `notice`, and `connection` for the connections in use.

use std::time::Duration;

mod answerer;
mod bodies;
mod caller;
mod change;
mod connection;
mod digits;
mod indialog;
mod login;
mod notice;
mod offer;
mod prack;
mod state;
mod timers;
mod transfer;

use change::Change;
use digits::Keyed;
pub(crate) use login::{Challenged, Login};
pub use notice::Notice;
use offer::Offered;
use prack::Ringing;
pub(crate) use state::Call;
use state::{Acknowledgement, CallStage, Caller, DialogSide, Fork, LINGER, Referral, Unacknowledged};
use timers::Timing;

use crate::dialog::Reach;
use crate::header::NameAddr;
use crate::hop::Hop;
use crate::message::Request;
use crate::sdp::{Negotiated, Refusal};
use crate::uri::Uri;

/// Name of a call of one [`Endpoint`](crate::Endpoint); never used again.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallKey(pub u64);

/// Methods that are understood, as value of the Allow header field.
pub(crate) const ALLOW: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, PRACK, NOTIFY, MESSAGE, REFER";

/// Extensions that are understood, as value of the Supported header field: RFC 3262, 4028, 4488.
pub(crate) const SUPPORTED: &str = "100rel, timer, norefersub";

/// Header fields of the answer to OPTIONS (RFC 3261 11.2).
pub(crate) const CAPABILITIES: [(&str, &str); 3] =
    [("Allow", ALLOW), ("Accept", "application/sdp"), ("Supported", SUPPORTED)];

/// Time for which a subscription to the outcome of a transfer is promised (`active;expires=60`).
const SUBSCRIPTION: Duration = Duration::from_secs(60);

/// Returns the extensions that a request requires and that are not understood; `None` when there are none.
pub(crate) fn unknown_extensions(request: &Request) -> Option<String> {
    let known = |tag: &&str| SUPPORTED.split(", ").any(|known| known.eq_ignore_ascii_case(tag));
    let unknown: Vec<_> = request.headers.list("Require").into_iter().filter(|tag| !known(tag)).collect();
    (!unknown.is_empty()).then(|| unknown.join(", "))
}

/// Order to place a call.
#[derive(Clone, Debug)]
pub struct Invite {
    /// Address to call: Request-URI and To.
    pub target: Uri,
    /// Place that the INVITE goes to: that of the target, or of an outbound proxy.
    pub destination: Hop,
    /// Places that are tried in this order when nobody answers there, it cannot be reached, or it answers 503 (RFC 3263 4.3).
    pub alternatives: Vec<Hop>,
    /// User part of From and Contact, unescaped.
    pub from_user: String,
    /// Host part of From; the local address when `None`.
    pub from_host: Option<String>,
    /// Display name of From.
    pub from_display: Option<String>,
    /// Further header fields in order; a name that is no token is left out.
    pub headers: Vec<(String, String)>,
    /// SDP offer. Empty: the other side is to make the offer ([`CallEvent::Offered`]).
    pub sdp: String,
    /// Username for digest authentication; `None` to answer no challenge.
    pub username: Option<String>,
    /// Password for digest authentication; `Debug` does not show it.
    pub password: Option<Secret>,
    /// Addresses to which the answering side may have the requests of the dialog sent; all others go where the INVITE
    /// went. Media may be moved to the same addresses: a change to another one is answered 488.
    pub reach: Reach,
}

/// Text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

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
    /// The PRACK of a reliable provisional response of this side came; `sdp` is the answer to an offer that was made in it.
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
    /// The connection that an established call was signalled by is closed. The call goes on; its next request opens another one.
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

/// Returns the value of a Reason header field (RFC 3326).
fn reason(cause: u16, text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("Q.850;cause={cause};text={}", crate::text::quote(&text))
}
