//! State of a call: its dialogs, the state of each side, and the requests that wait for an answer.

mod event;
mod pending;
mod ringing;
mod timing;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

pub use event::{CallEnd, CallEvent, EndKind, Notice};
pub(crate) use pending::{Carrier, Change, Keyed, Offered};
pub(crate) use ringing::{Ringing, Waiting, has_tag};
pub(crate) use timing::{LEAST_S, Plan, Refresher, Timing, TooShort, session_expires};

use crate::auth::Login;
use crate::dialog::{Dialog, Reach};
use crate::hop::{ConnectionId, Hop};
use crate::ids::TransactionKey;
use crate::message::{Headers, Method, Request};
use crate::sdp::{Direction, Negotiated};
use crate::time::Time;
use crate::transaction::{T1, T1_64, T2, T4};

/// Time that an ended call is remembered, for messages that cross its end: longer than any of its transactions.
pub(crate) const LINGER: Duration = T1_64.saturating_add(T4);

/// Most ACKs of one dialog that are kept for repetitions of their 2xx.
const MAX_ACKS: usize = 4;

/// CallStage of a call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum CallStage {
    /// The call has no final response yet.
    Pending,
    /// The call is answered and not over.
    Up,
    /// The call is over: `Ended` was reported.
    Over,
}

/// One call, from its INVITE to some time after its end.
pub(crate) struct Call {
    pub(crate) call_id: String,
    pub(crate) stage: CallStage,
    pub(crate) side: DialogSide,
    /// Dialogs of the call, one for each fork; `active` is the answered one.
    pub(crate) dialogs: Vec<Fork>,
    pub(crate) active: Option<usize>,
    /// Fork whose provisional response came last.
    pub(crate) early: Option<usize>,
    /// CSeq number of the INVITE that made the call.
    pub(crate) invite_seq: u32,
    /// First description of this side, offer or answer; empty before it made one.
    pub(crate) local_sdp: String,
    /// Last description of this side that took effect.
    pub(crate) in_use: String,
    /// Number of changes of `local_sdp`.
    pub(crate) version: u64,
    /// Last agreement of the two sides, as far as this side computed it.
    pub(crate) media: Option<Negotiated>,
    pub(crate) on_hold: bool,
    /// Direction that this side wants; both ways where it did not say.
    pub(crate) wish: Option<Direction>,
    /// Change of the session that this side asked for.
    pub(crate) change: Option<Change>,
    /// Change of the owner that waits for the end of a refresh.
    pub(crate) next_change: Option<Change>,
    /// Offer of the other side that the owner has to answer.
    pub(crate) offered: Option<Offered>,
    /// Name and clock rate of the codec in use, where `local_sdp` names more.
    pub(crate) codec: Option<(String, u32)>,
    /// True when the ACK of the first answer was received, or (as caller) sent.
    pub(crate) confirmed: bool,
    /// User part of the Contact, escaped.
    pub(crate) contact_user: String,
    /// True for the call of a `sips:` address.
    pub(crate) secure: bool,
    /// True when a request too large for a datagram was refused over TCP: all go by datagram.
    pub(crate) tcp_refused: bool,
    /// True once a request too large for a datagram was told.
    pub(crate) size_told: bool,
    /// Repetitions of a 2xx of the other side.
    pub(crate) repetitions: u32,
    /// Digits that are sent by INFO.
    pub(crate) keyed: Keyed,
    /// REFER that waits for its answer.
    pub(crate) referred: Option<Referral>,
    /// True once a REFER was taken.
    pub(crate) was_referred: bool,
    /// True once this side has sent a REFER, whose NOTIFY requests are awaited.
    pub(crate) watches: bool,
    /// Dialog of a REFER that was accepted and whose outcome is to be told, and the name of its subscription.
    pub(crate) subscription: Option<(usize, Option<u32>)>,
    /// A 2xx of this side that waits for its ACK.
    pub(crate) unacknowledged: Option<Unacknowledged>,
    /// Reliable provisional responses of this side.
    pub(crate) ringing: Ringing,
    /// Number of PRACKs of this side without a final response.
    pub(crate) pracks: u32,
    pub(crate) timing: Timing,
    /// Addresses that the other side may move media to.
    pub(crate) reach: Reach,
    /// Host name of the other side's media, and its address.
    pub(crate) known_host: Option<(String, IpAddr)>,
    /// Reason of a BYE that is to be sent when the ACK comes (RFC 3261 15).
    pub(crate) bye_after_ack: Option<String>,
    /// Time to forget the call; for a caller, also to stop waiting for a name.
    pub(crate) deadline: Option<Time>,
}

/// One dialog of a call.
pub(crate) struct Fork {
    pub(crate) dialog: Dialog,
    /// Description of a provisional response.
    pub(crate) early_sdp: Option<String>,
    /// Description of this side in this early dialog, when it differs from the one in the INVITE.
    pub(crate) described: Option<String>,
    /// Last description of this side that took effect in this early dialog, when it differs from `described`.
    pub(crate) in_use: Option<String>,
    /// Answer of a reliable provisional response, or its change by an UPDATE: later ones in responses do not count.
    pub(crate) agreed: Option<(String, Negotiated)>,
    /// CSeq number of the INVITE and RSeq number of the last reliable provisional response that was taken.
    pub(crate) rseq: Option<(u32, u32)>,
    /// True when the other side takes UPDATE (its Allow).
    pub(crate) allows_update: bool,
    /// ACKs of the last 2xx, each sent again for each repetition.
    acks: Vec<Acknowledgement>,
    /// True when BYE was sent or received.
    pub(crate) closed: bool,
}

/// ACK of a 2xx to an INVITE of this side.
#[derive(Clone)]
pub(crate) struct Acknowledgement {
    /// CSeq number of the INVITE.
    pub(crate) seq: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) to: Hop,
}

impl Fork {
    pub(crate) fn new(dialog: Dialog) -> Fork {
        Fork {
            dialog,
            early_sdp: None,
            described: None,
            in_use: None,
            agreed: None,
            rseq: None,
            allows_update: false,
            acks: Vec::new(),
            closed: false,
        }
    }

    /// Returns the ACK that was sent for the INVITE with this CSeq number.
    pub(crate) fn ack(&self, seq: u32) -> Option<&Acknowledgement> {
        self.acks.iter().find(|ack| ack.seq == seq)
    }

    pub(crate) fn keep_ack(&mut self, ack: Acknowledgement) {
        if self.acks.len() == MAX_ACKS {
            self.acks.remove(0);
        }
        self.acks.push(ack);
    }

    /// Forgets a connection that is closed. True when the dialog used it.
    pub(crate) fn forget(&mut self, connection: ConnectionId) -> bool {
        for ack in &mut self.acks {
            ack.to.forget(connection);
        }
        self.dialog.forget(connection)
    }

    /// True when no 2xx of this branch was taken.
    pub(crate) fn is_early(&self) -> bool {
        self.acks.is_empty() && !self.closed
    }

    /// Takes the methods that the other side allows.
    pub(crate) fn note_allow(&mut self, headers: &Headers) {
        if headers.get("Allow").is_some() {
            self.allows_update = headers.list("Allow").contains(&"UPDATE");
        }
    }
}

/// State of the caller or of the answerer alone.
pub(crate) enum DialogSide {
    Caller(Box<Caller>),
    Answerer(TransactionKey),
}

/// State of a caller alone.
pub(crate) struct Caller {
    /// INVITE that was sent last (without its Via and credentials).
    pub(crate) request: Request,
    /// Place that it goes to.
    pub(crate) to: Hop,
    /// Places that are tried next.
    pub(crate) hops: VecDeque<Hop>,
    /// Time at which the first place was tried.
    pub(crate) begun: Option<Time>,
    pub(crate) reach: Reach,
    pub(crate) transaction: TransactionKey,
    pub(crate) seq: u32,
    pub(crate) provisional: bool,
    pub(crate) redirected: bool,
    /// Place, status and reason phrase of a redirect that was not followed yet.
    pub(crate) moved_by: Option<Box<(Hop, u16, String)>>,
    /// True once a 422 was followed.
    pub(crate) raised: bool,
    /// Reason of a CANCEL that is wanted; it is sent once a provisional response came (RFC 3261 9.1).
    pub(crate) cancel: Option<Option<String>>,
    pub(crate) cancel_sent: bool,
    pub(crate) login: Login,
}

/// REFER that waits for its answer.
pub(crate) struct Referral {
    pub(crate) transaction: TransactionKey,
    /// Dialog that it came in.
    pub(crate) at: usize,
    /// True when the other side wants no NOTIFY (RFC 4488).
    pub(crate) quiet: bool,
    /// CSeq number of a REFER that is not the first of its call, which names the subscription (RFC 3515 2.4.6).
    pub(crate) id: Option<u32>,
}

/// A 2xx to INVITE that is repeated until its ACK (RFC 3261 13.3.1.4).
pub(crate) struct Unacknowledged {
    pub(crate) repeated: Repeated,
    pub(crate) seq: u32,
    /// True when it makes an offer, so that the ACK has the answer.
    pub(crate) offers: bool,
}

impl Unacknowledged {
    pub(crate) fn new(now: Time, bytes: Vec<u8>, to: Hop, seq: u32, offers: bool) -> Unacknowledged {
        Unacknowledged { repeated: Repeated::new(now, bytes, to, T2), seq, offers }
    }
}

/// Response that is sent again after T1 and twice as long each time, for 64 T1.
pub(crate) struct Repeated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) to: Hop,
    interval: Duration,
    longest: Duration,
    pub(crate) repeat: Time,
    pub(crate) deadline: Time,
}

impl Repeated {
    pub(crate) fn new(now: Time, bytes: Vec<u8>, to: Hop, longest: Duration) -> Repeated {
        Repeated { bytes, to, interval: T1, longest, repeat: now + T1, deadline: now + T1_64 }
    }

    pub(crate) fn due(&self) -> Time {
        self.repeat.min(self.deadline)
    }

    /// Returns the message to send when its time has come; the next one is due later.
    pub(crate) fn again(&mut self, now: Time) -> Option<(Hop, Vec<u8>)> {
        if self.repeat > now {
            return None;
        }
        self.interval = (self.interval * 2).min(self.longest);
        self.repeat = now + self.interval;
        Some((self.to.clone(), self.bytes.clone()))
    }
}

impl Call {
    /// Returns the time at which the call is to be woken.
    pub(crate) fn due(&self) -> Option<Time> {
        let change = self.change.as_ref().filter(|c| c.transaction.is_some() || self.change_may_start()).map(|c| c.due);
        let times = [
            self.unacknowledged.as_ref().map(|waiting| waiting.repeated.due()),
            self.ringing.due(),
            change,
            self.offered.as_ref().and_then(|offered| offered.deadline),
            self.timing.due().filter(|_| self.stage == CallStage::Up),
            self.deadline,
        ];
        times.into_iter().flatten().min()
    }

    /// True when a change that waits may be sent: its dialog is there and no offer of the other side is open.
    pub(crate) fn change_may_start(&self) -> bool {
        let waits = |change: &&Change| change.transaction.is_none();
        self.change.as_ref().filter(waits).is_some_and(|change| match self.stage {
            CallStage::Up => self.unacknowledged.is_none() && self.offered.is_none(),
            CallStage::Pending => change.method == Method::Update,
            CallStage::Over => false,
        })
    }

    pub(crate) fn new(call_id: String, side: DialogSide, local_sdp: String, contact_user: String) -> Call {
        Call {
            call_id,
            stage: CallStage::Pending,
            side,
            dialogs: Vec::new(),
            active: None,
            early: None,
            invite_seq: 0,
            in_use: local_sdp.clone(),
            local_sdp,
            version: 0,
            media: None,
            on_hold: false,
            wish: None,
            change: None,
            next_change: None,
            offered: None,
            codec: None,
            confirmed: false,
            contact_user,
            secure: false,
            tcp_refused: false,
            size_told: false,
            repetitions: 0,
            keyed: Keyed::default(),
            referred: None,
            was_referred: false,
            watches: false,
            subscription: None,
            unacknowledged: None,
            ringing: Ringing::default(),
            pracks: 0,
            timing: Timing::default(),
            reach: Reach::default(),
            known_host: None,
            bye_after_ack: None,
            deadline: None,
        }
    }

    /// Returns this side's description in one of the dialogs.
    pub(crate) fn own(&self, at: usize) -> &str {
        let fork = self.dialogs.get(at).and_then(|fork| fork.described.as_deref());
        fork.unwrap_or(&self.local_sdp)
    }

    /// Takes `sdp` as this side's description in one of the dialogs. Early dialogs of a caller have one each: another
    /// branch may be the one that answers.
    pub(crate) fn describe(&mut self, at: usize, sdp: &str) {
        let is_branch = self.stage == CallStage::Pending && self.is_caller();
        match self.dialogs.get_mut(at).filter(|_| is_branch) {
            Some(fork) => (fork.described, fork.in_use) = (Some(sdp.to_owned()), None),
            None => {
                sdp.clone_into(&mut self.local_sdp);
                sdp.clone_into(&mut self.in_use);
            }
        }
    }

    /// Takes `sdp` as this side's description that holds in one of the dialogs now.
    pub(crate) fn use_description(&mut self, at: usize, sdp: &str) {
        let is_branch = self.stage == CallStage::Pending && self.is_caller();
        match self.dialogs.get_mut(at).filter(|_| is_branch) {
            Some(fork) => fork.in_use = Some(sdp.to_owned()),
            None => sdp.clone_into(&mut self.in_use),
        }
    }

    /// Takes the descriptions of the early dialog that became the call's.
    pub(crate) fn settle_on(&mut self, at: usize) {
        let Some(fork) = self.dialogs.get_mut(at) else { return };
        let (described, in_use) = (fork.described.take(), fork.in_use.take());
        if let Some(described) = described {
            self.in_use.clone_from(&described);
            self.local_sdp = described;
        }
        if let Some(in_use) = in_use {
            self.in_use = in_use;
        }
    }

    /// True for the side that sent the INVITE.
    pub(crate) fn is_caller(&self) -> bool {
        matches!(self.side, DialogSide::Caller(_))
    }
}
