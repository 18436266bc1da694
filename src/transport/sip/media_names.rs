//! Host names in place of media addresses (RFC 8866 5.7): what names one waits until it is looked up, and what comes
//! behind waits in order.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use ringer_base::guard::Blocked;
use ringer_sip::CallEvent;
use ringer_sip::sdp::Negotiated;

/// Most events that wait for a name; with one more it counts as not found.
const MOST_WAITING: usize = 64;

/// Result of looking a name up.
pub type Found = Result<IpAddr, Blocked>;

/// One of the dialogs of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    /// The dialog of the call itself.
    Call,
    /// The dialog with the target of a transfer.
    Target,
}

/// The host names of one call's media.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The name that was looked up last.
    known: Option<(String, Found)>,
    /// The name that is being looked up.
    wanted: Option<String>,
    waiting: VecDeque<(Dialog, CallEvent)>,
}

impl Names {
    /// True while a name is being looked up.
    pub(super) fn is_looking(&self) -> bool {
        self.wanted.is_some()
    }

    /// True for a name that has to be looked up before media can go there.
    pub(super) fn lacks(&self, host: &str) -> bool {
        self.known.as_ref().is_none_or(|(known, _)| known != host)
    }

    /// Begins to wait for `host`.
    pub(super) fn look_for(&mut self, host: &str) {
        self.wanted = Some(host.to_owned());
    }

    /// Keeps an event for later. Returns false where too many wait: the name is then to be given up.
    pub(super) fn keep(&mut self, of: Dialog, event: CallEvent) -> bool {
        self.waiting.push_back((of, event));
        self.waiting.len() <= MOST_WAITING
    }

    /// Takes the result of the look-up. Returns the events that waited for it, in order.
    pub(super) fn take_result(&mut self, found: Found) -> VecDeque<(Dialog, CallEvent)> {
        self.known = self.wanted.take().map(|host| (host, found));
        std::mem::take(&mut self.waiting)
    }

    /// Returns the name that was looked up last, with its address.
    pub(super) fn address(&self) -> Option<(String, IpAddr)> {
        self.known.as_ref().and_then(|(host, found)| Some((host.clone(), (*found).ok()?)))
    }

    /// Forgets the events of a dialog that is over. Nothing is looked up for it any more.
    pub(super) fn forget(&mut self, of: Dialog) {
        self.waiting.retain(|(waiting, _)| *waiting != of);
        if self.waiting.is_empty() {
            self.wanted = None;
        }
    }

    /// Returns the agreement with the address in the place of the name.
    ///
    /// # Errors
    /// For a person: the name has no address, or none that is allowed.
    pub(super) fn settle(&self, media: &Negotiated) -> Result<Negotiated, String> {
        let Some(host) = &media.remote_host else { return Ok(media.clone()) };
        let known = self.known.as_ref().filter(|(known, _)| known == host);
        let found = known.map_or(Err(Blocked::NoAddress), |(_, found)| *found);
        let address = found.map_err(|blocked| format!("the host {host:?} of the media {blocked}"))?;
        // Reports may have an address of their own (RFC 3605).
        let there = |named: SocketAddr| match named.ip().is_unspecified() {
            true => SocketAddr::new(address, named.port()),
            false => named,
        };
        let (remote_rtp, remote_rtcp) = (there(media.remote_rtp), there(media.remote_rtcp));
        Ok(Negotiated { remote_host: None, remote_rtp, remote_rtcp, ..media.clone() })
    }
}
