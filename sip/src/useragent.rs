//! The user agent: calls as caller and as answerer (RFC 3261 8, 9, 13, 14, 15), on top of
//! [`Endpoint`](crate::Endpoint).
//!
//! This file has the order of a driver to place a call; the state of a call and its events are in `call`. `caller`
//! places calls, `answerer` takes them, `prack` makes provisional responses reliable (RFC 3262), `offer` is for an
//! INVITE without an offer. Parts that both sides share once a dialog exists: `indialog`, `change` (re-INVITE, UPDATE),
//! `timers` (RFC 4028), `transfer`, `digits`, `login`, `notice`, and `connection` for the connections in use.
//! `messages` has texts outside of calls (RFC 3428).

use std::time::Duration;

mod answerer;
mod bodies;
mod caller;
mod change;
mod connection;
mod digits;
mod indialog;
mod login;
mod messages;
mod notice;
mod offer;
mod prack;
mod timers;
mod transfer;

pub use crate::call::{CallEnd, CallEvent, EndKind, Notice};
use crate::dialog::Reach;
use crate::hop::Hop;
pub use crate::ids::CallKey;
use crate::uri::Uri;

/// Time for which a subscription to the outcome of a transfer is promised (`active;expires=60`).
const SUBSCRIPTION: Duration = Duration::from_secs(60);

/// Order to place a call.
#[derive(Clone, Debug)]
pub struct Invite {
    /// Address to call: Request-URI and To.
    pub target: Uri,
    /// Place that the INVITE goes to: that of the target, or of an outbound proxy.
    pub destination: Hop,
    /// Places that are tried in this order when nobody answers there, it cannot be reached, or it answers 503 (RFC 3263
    /// 4.3).
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

/// Returns the value of a Reason header field (RFC 3326).
fn reason(cause: u16, text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("Q.850;cause={cause};text={}", crate::text::quote(&text))
}
