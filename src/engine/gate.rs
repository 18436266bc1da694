//! The question whether a call may go on to an address that the other side names: by a redirect (RFC 3261 8.1.3.4), or
//! by a transfer (RFC 3515). The engine asks, and whoever counts what is dialled answers.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ringer_sip::Hop;
use ringer_sip::uri::Uri;

/// Ways in which the other side names an address to dial.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// A redirect: the address takes the place of the one that was dialled.
    Redirect,
    /// A transfer: the address is dialled beside the call that is up.
    Transfer,
}

/// Admits or refuses addresses that one call goes on to, and counts those that it admits. Cheap to clone.
#[derive(Clone)]
pub struct DialGate(Arc<Ask>);

type Ask = dyn Fn(Forwarded, Uri, Vec<IpAddr>) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

impl DialGate {
    /// Returns a gate that asks `ask`; an error says why the address may not be dialled.
    pub fn new(
        ask: impl Fn(Forwarded, Uri, Vec<IpAddr>) -> BoxFuture<'static, Result<(), String>> + Send + Sync + 'static,
    ) -> DialGate {
        DialGate(Arc::new(ask))
    }

    /// Admits an address that `hops` lead to, which is then to be dialled at once, and counts it until the call is
    /// over.
    ///
    /// # Errors
    /// Why it may not be dialled, without the address.
    pub async fn admit(&self, forwarded: Forwarded, target: &Uri, hops: &[Hop]) -> Result<(), String> {
        let found = hops.iter().map(|hop| hop.address.ip()).collect();
        (self.0)(forwarded, target.clone(), found).await
    }
}

impl fmt::Debug for DialGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DialGate")
    }
}
