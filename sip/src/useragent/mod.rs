//! The user agent: calls as caller and as answerer (RFC 3261 8, 9, 13, 14, 15), on top of [`Endpoint`](crate::Endpoint).
//!
//! This file has the words that a driver speaks and the state of a call; `caller` places calls, `answerer` takes them, and
//! `indialog`, `reinvite` and `digits` serve what both have once a dialog exists.

mod answerer;
mod caller;
mod digits;
mod indialog;
mod reinvite;
mod transfer;

use std::net::SocketAddr;
use std::time::Duration;

use crate::auth::{Challenge, Credentials};
use crate::dialog::{Dialog, Reach};
use crate::endpoint::TransactionKey;
use crate::header::NameAddr;
use crate::message::Request;
use crate::sdp::{Direction, Negotiated};
use crate::time::Time;
use crate::transaction::{T1, T1_64, T4};
use crate::uri::Uri;

/// Names a call of one [`Endpoint`](crate::Endpoint); never used again.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallKey(pub u64);

/// Methods that are understood, as the Allow header.
pub(crate) const ALLOW: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, NOTIFY, MESSAGE, REFER";

/// A call to place.
#[derive(Clone, Debug)]
pub struct Invite {
    /// Request-URI and To.
    pub target: Uri,
    /// Where the datagrams go: the target's address, or an outbound proxy's.
    pub destination: SocketAddr,
    /// User part of From and Contact, unescaped.
    pub from_user: String,
    /// Host part of From; the local address when `None`.
    pub from_host: Option<String>,
    /// Display name of From.
    pub from_display: Option<String>,
    /// Further header fields in order; a name that is no token is left out.
    pub headers: Vec<(String, String)>,
    /// The SDP offer.
    pub sdp: String,
    /// For digest authentication.
    pub username: Option<String>,
    /// For digest authentication; shown nowhere.
    pub password: Option<Secret>,
    /// Where the answering side may have the requests of the dialog sent; all others go where the INVITE went.
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

/// What happened in a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent {
    /// A call comes in; 100 was sent. Continue with `ring`, `answer`, `reject` or `authorize`.
    Incoming {
        /// Who calls.
        from: NameAddr,
        /// Who is called.
        to: NameAddr,
        /// The Request-URI as written.
        request_uri: String,
        /// Every header field, in order, without credentials.
        headers: Vec<(String, String)>,
        /// The offer; `None` when the caller leaves the offer to the answerer.
        sdp: Option<String>,
        /// Call-ID.
        call_id: String,
        /// Where the INVITE came from.
        source: SocketAddr,
    },
    /// 100 came.
    Trying,
    /// 101 to 199 came.
    Provisional {
        /// 180, 183, ...
        code: u16,
        /// Early media's description.
        sdp: Option<String>,
        /// What it means beside the offer, when it is usable.
        media: Option<Negotiated>,
    },
    /// 2xx came and the ACK was sent.
    Answered {
        /// 200.
        code: u16,
        /// The answer.
        sdp: String,
        /// What it means beside the offer.
        media: Negotiated,
        /// Call-ID.
        call_id: String,
    },
    /// The ACK of this side's answer came; `sdp` is the answer to an offer that was made in the 200.
    Confirmed {
        /// The ACK's body.
        sdp: Option<String>,
    },
    /// A redirect to another host: find its address, see whether it may be called, and call `resolved`.
    Redirected {
        /// The new Request-URI.
        target: Uri,
    },
    /// The other side put this one on hold, or took it back.
    Hold(bool),
    /// The other side changed the session (re-INVITE or UPDATE); it was answered.
    Renegotiated {
        /// What holds now.
        media: Negotiated,
        /// The other side's description.
        sdp: String,
    },
    /// A digit by INFO (`application/dtmf-relay` or `application/dtmf`).
    Digit(char, u32),
    /// A digit of this side was not taken: the status that refused it, 408 without an answer, 503 when it could not be sent.
    DigitRefused(u16),
    /// The other side asks for a transfer (REFER, RFC 3515): answer it with [`Endpoint::answer_transfer`].
    Transfer {
        /// Refer-To's address.
        to: String,
    },
    /// A change that this side asked for ([`Endpoint::reinvite`]) has its final answer. Without `media` the session is as it was.
    Reinvited {
        /// 200, or the refusal; 408 without a response, 503 when it could not be sent.
        code: u16,
        /// The answer.
        sdp: Option<String>,
        /// What holds now.
        media: Option<Negotiated>,
    },
    /// A re-INVITE or UPDATE of the other side that left the session as it was has this answer: it described nothing, or what
    /// it described was refused.
    Unchanged {
        /// 200, or the refusal.
        code: u16,
    },
    /// The call is over; nothing follows.
    Ended(CallEnd),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// Whose doing, and how.
    pub kind: EndKind,
    /// The final status, when there was one.
    pub sip_code: Option<u16>,
    /// Q.850 cause of a Reason header, the other side's or this one's.
    pub q850_cause: Option<u16>,
    /// Reason phrase, or the transport's words.
    pub text: String,
    /// The other side ended or refused it.
    pub by_remote: bool,
    /// Retry-After stood in the refusal.
    pub retry_after: bool,
}

/// The kinds of end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// The other side sent BYE.
    RemoteBye,
    /// A final response from 300 to 699.
    Refused,
    /// No answer to INVITE within 32 s, or no ACK to this side's answer.
    Timeout,
    /// The credentials were refused, or none were given.
    AuthFailed,
    /// The transport says that nobody is there.
    NotReachable,
    /// 2xx without an answer that can be used; BYE was sent.
    NoMedia,
    /// This side hung up or rejected.
    LocalHangup,
    /// The caller cancelled (either side).
    Cancelled,
    /// The other side does not know the call any more (481), or does not answer in it (408); BYE was sent.
    DialogLost,
}

impl CallEnd {
    pub(crate) fn new(kind: EndKind, text: &str) -> CallEnd {
        CallEnd { kind, sip_code: None, q850_cause: None, text: text.into(), by_remote: false, retry_after: false }
    }
}

/// How long an ended call is remembered, for what crosses its end: longer than any of its transactions.
const LINGER: Duration = T1_64.saturating_add(T4);

/// Most early dialogs that a forking proxy may open in one call.
const MAX_FORKS: usize = 16;

/// Most ACKs of one dialog that are kept for repetitions of their 2xx.
const MAX_ACKS: usize = 4;

/// Where a call stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// No final response yet.
    Pending,
    /// Answered.
    Up,
    /// `Ended` was reported.
    Over,
}

/// One call, from its INVITE to some time after its end.
pub(crate) struct Call {
    pub(crate) call_id: String,
    pub(crate) stage: Stage,
    pub(crate) side: Side,
    /// One for each fork; `active` is the answered one.
    pub(crate) dialogs: Vec<Fork>,
    pub(crate) active: Option<usize>,
    /// This side's first description, offer or answer.
    pub(crate) local_sdp: String,
    /// How often `local_sdp` was changed since.
    pub(crate) version: u64,
    pub(crate) on_hold: bool,
    /// Who is to send as this side would have it; both where it did not say.
    pub(crate) wish: Option<Direction>,
    /// What this side asked to change.
    pub(crate) change: Option<reinvite::Change>,
    /// Name and clock rate of the codec in use, where `local_sdp` names more.
    pub(crate) codec: Option<(String, u32)>,
    /// The ACK of the first answer came, or (caller) went.
    pub(crate) confirmed: bool,
    /// User part of the Contact, escaped.
    pub(crate) contact_user: String,
    /// Digits that go out by INFO.
    pub(crate) keyed: digits::Keyed,
    /// A REFER that waits for its answer, and the dialog that it came in.
    pub(crate) referred: Option<(TransactionKey, usize)>,
    /// A 2xx of this side that waits for its ACK.
    pub(crate) unacknowledged: Option<Unacknowledged>,
    /// BYE is to be sent when the ACK comes (RFC 3261 15), with this Reason.
    pub(crate) bye_after_ack: Option<String>,
    /// When to forget the call, or (caller) to stop waiting for a name.
    pub(crate) deadline: Option<Time>,
}

/// One of a call's dialogs.
pub(crate) struct Fork {
    pub(crate) dialog: Dialog,
    /// SDP of a provisional response.
    pub(crate) early_sdp: Option<String>,
    /// The ACKs of the last 2xx, each sent again for each repetition.
    acks: Vec<Acknowledgement>,
    /// BYE went out or came in.
    pub(crate) closed: bool,
}

/// The ACK of a 2xx to an INVITE of this side.
#[derive(Clone)]
pub(crate) struct Acknowledgement {
    /// CSeq number of the INVITE.
    pub(crate) seq: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) to: SocketAddr,
}

impl Fork {
    fn new(dialog: Dialog) -> Fork {
        Fork { dialog, early_sdp: None, acks: Vec::new(), closed: false }
    }

    /// The ACK that was sent for the INVITE with this CSeq number.
    pub(crate) fn ack(&self, seq: u32) -> Option<&Acknowledgement> {
        self.acks.iter().find(|ack| ack.seq == seq)
    }

    fn keep_ack(&mut self, ack: Acknowledgement) {
        if self.acks.len() == MAX_ACKS {
            self.acks.remove(0);
        }
        self.acks.push(ack);
    }
}

/// What only one side has.
pub(crate) enum Side {
    Caller(Box<Caller>),
    Answerer(TransactionKey),
}

/// A caller's own state.
pub(crate) struct Caller {
    /// The INVITE last sent (without its Via and credentials).
    pub(crate) request: Request,
    /// Where it goes.
    pub(crate) to: SocketAddr,
    pub(crate) reach: Reach,
    pub(crate) transaction: TransactionKey,
    pub(crate) seq: u32,
    pub(crate) provisional: bool,
    pub(crate) redirected: bool,
    /// CANCEL is wanted, with this Reason; sent once a provisional response came (RFC 3261 9.1).
    pub(crate) cancel: Option<Option<String>>,
    pub(crate) cancel_sent: bool,
    pub(crate) login: Login,
}

/// Challenges that were answered, to be answered again in later requests.
pub(crate) struct Login {
    pub(crate) who: Option<Credentials>,
    pub(crate) known: Vec<(Challenge, u32)>,
    pub(crate) rounds: u32,
}

/// A 2xx to INVITE, repeated until its ACK (RFC 3261 13.3.1.4).
pub(crate) struct Unacknowledged {
    pub(crate) bytes: Vec<u8>,
    pub(crate) to: SocketAddr,
    pub(crate) seq: u32,
    pub(crate) interval: Duration,
    pub(crate) repeat: Time,
    pub(crate) deadline: Time,
}

impl Unacknowledged {
    fn new(now: Time, bytes: Vec<u8>, to: SocketAddr, seq: u32) -> Unacknowledged {
        Unacknowledged { bytes, to, seq, interval: T1, repeat: now + T1, deadline: now + T1_64 }
    }
}

impl Call {
    /// When to be woken.
    pub(crate) fn due(&self) -> Option<Time> {
        let repeat = self.unacknowledged.as_ref().map(|u| u.repeat.min(u.deadline));
        let change = self.change.as_ref().filter(|c| c.transaction.is_some() || self.change_may_start()).map(|c| c.due);
        repeat.into_iter().chain(change).chain(self.deadline).min()
    }

    fn new(call_id: String, side: Side, local_sdp: String, contact_user: String) -> Call {
        Call {
            call_id,
            stage: Stage::Pending,
            side,
            dialogs: Vec::new(),
            active: None,
            local_sdp,
            version: 0,
            on_hold: false,
            wish: None,
            change: None,
            codec: None,
            confirmed: false,
            contact_user,
            keyed: digits::Keyed::default(),
            referred: None,
            unacknowledged: None,
            bye_after_ack: None,
            deadline: None,
        }
    }
}

/// The value of a Reason header (RFC 3326).
fn reason(cause: u16, text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("Q.850;cause={cause};text={}", crate::header::quote(&text))
}
