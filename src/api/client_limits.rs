//! Limits of clients that need no key: connections at once, memory of request bodies, and answers to wrong keys.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Extensions, HeaderMap};
use futures_util::StreamExt;
use parking_lot::Mutex;
use ringer_base::config::network_of;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Address that a connection came from.
#[derive(Copy, Clone, Debug)]
pub(super) struct CameFrom(pub SocketAddr);

/// Most connections at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Limit of all addresses together.
    pub total: usize,
    /// Limit of one address: IPv4, or the first 64 bits of IPv6.
    pub per_address: usize,
    /// True: a proxy on this machine forwards for others, so that loopback addresses have no limit of their own.
    pub behind_proxy: bool,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits { total: 10_000, per_address: 256, behind_proxy: false }
    }
}

/// Open connections, in all and by address.
#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// Counts open connections. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    open: Arc<Mutex<Open>>,
}

/// Permit of one connection, which counts until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    address: IpAddr,
    open: Arc<Mutex<Open>>,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Connections {
        Connections { limits, open: Arc::default() }
    }

    /// Returns a permit for a connection from `address`; `None`: a limit is reached.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let address = network_of(address);
        let most = if self.limits.behind_proxy && address.is_loopback() { usize::MAX } else { self.limits.per_address };
        let mut open = self.open.lock();
        if open.total >= self.limits.total {
            return None;
        }
        let own = open.by_address.entry(address).or_default();
        if *own >= most {
            return None;
        }
        *own += 1;
        open.total += 1;
        Some(ConnectionPermit { address, open: Arc::clone(&self.open) })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        open.total -= 1;
        if let Some(own) = open.by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

/// Returns the address of a client. Behind a proxy on this machine it is the last one of X-Forwarded-For.
pub(super) fn client_of(extensions: &Extensions, headers: &HeaderMap, behind_proxy: bool) -> Option<IpAddr> {
    let peer = extensions.get::<CameFrom>()?.0.ip().to_canonical();
    let forwarded = || {
        let value = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
        value.rsplit(',').next()?.trim().parse().ok()
    };
    Some(if behind_proxy && peer.is_loopback() { forwarded().unwrap_or(peer) } else { peer })
}

/// Bytes of a body that need no place among the others, so that a small request never waits for large ones.
const SMALL_BODY: usize = 64 * 1024;
/// Bytes of one permit.
const UNIT: usize = 1024;

/// Memory for the request bodies that are read at the same time.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory {
    free: Arc<Semaphore>,
}

/// A body with the permit for its memory.
#[derive(Debug)]
pub(super) struct CollectedBody {
    pub bytes: Bytes,
    /// Its memory, taken up until this is dropped.
    pub place: Option<OwnedSemaphorePermit>,
}

/// Reason why a body is not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is larger than its route takes.
    TooLarge,
    /// It ended before its announced length.
    Broken,
    /// Other bodies take up the memory.
    NoMemory,
}

impl BodyMemory {
    /// Returns memory for bodies of `bytes` bytes together.
    pub(crate) fn new(bytes: usize) -> BodyMemory {
        BodyMemory { free: Arc::new(Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS))) }
    }

    /// Reads a body of at most `most` bytes, of which `copies` are in memory later.
    pub(crate) async fn collect(&self, body: Body, most: usize, copies: usize) -> Result<CollectedBody, Unread> {
        let mut pieces = body.into_data_stream();
        let (mut whole, mut place) = (Vec::new(), None::<OwnedSemaphorePermit>);
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| Unread::Broken)?;
            if whole.len() + piece.len() > most {
                return Err(Unread::TooLarge);
            }
            let units = (whole.len() + piece.len()).saturating_sub(SMALL_BODY).div_ceil(UNIT) * copies;
            let more = units - place.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            if more > 0 {
                let more = u32::try_from(more).map_err(|_| Unread::TooLarge)?;
                let taken = Arc::clone(&self.free).try_acquire_many_owned(more).map_err(|_| Unread::NoMemory)?;
                match &mut place {
                    Some(place) => place.merge(taken),
                    None => place = Some(taken),
                }
            }
            whole.extend_from_slice(&piece);
        }
        Ok(CollectedBody { bytes: whole.into(), place })
    }
}

/// Wrong keys of one address that are answered at once.
const FREE_TRIES: f64 = 10.0;
/// Wrong keys that are forgotten a second.
const FORGOTTEN_PER_S: f64 = 10.0 / 60.0;
/// Delay that each further wrong key adds.
const STEP: Duration = Duration::from_millis(100);
/// Longest delay of the refusal of a wrong key: below the time limits of usual clients.
pub(super) const REFUSAL_DELAY: Duration = Duration::from_secs(2);
/// Refusals of one address that wait at the same time; more are sent at once, with the end of the connection.
const WAITING: usize = 32;
/// Most addresses that are remembered; above it those that may try again are dropped.
const MAX_ADDRESSES: usize = 10_000;

/// Wrong keys by address. Whoever sends many gets the refusal late; a right key never waits.
#[derive(Debug)]
pub(super) struct WrongKeys {
    tries: Mutex<HashMap<IpAddr, (f64, i64)>>,
    waiting: Connections,
    longest: Duration,
}

impl WrongKeys {
    /// Returns the counts of no address yet. `longest`: longest delay of a refusal; 0: none waits.
    pub(crate) fn new(longest: Duration) -> WrongKeys {
        let limits = ConnectionLimits { total: MAX_ADDRESSES, per_address: WAITING, behind_proxy: false };
        WrongKeys { tries: Mutex::default(), waiting: Connections::new(limits), longest }
    }

    /// Returns a permit for one more refusal that waits; `None`: too many of this address do.
    pub(crate) fn wait(&self, address: IpAddr) -> Option<ConnectionPermit> {
        self.waiting.enter(address)
    }

    /// Counts a wrong key at the time `now_ms`, and returns the time to wait before it is refused.
    pub(crate) fn delay(&self, address: IpAddr, now_ms: i64) -> Duration {
        let left = |count: f64, at: i64| (count - (now_ms - at).max(0) as f64 / 1000.0 * FORGOTTEN_PER_S).max(0.0);
        let mut tries = self.tries.lock();
        if tries.len() >= MAX_ADDRESSES {
            tries.retain(|_, (count, at)| left(*count, *at) > FREE_TRIES);
        }
        if tries.len() >= MAX_ADDRESSES && !tries.contains_key(&network_of(address)) {
            return self.longest;
        }
        let (count, at) = tries.entry(network_of(address)).or_insert((0.0, now_ms));
        (*count, *at) = (left(*count, *at) + 1.0, now_ms);
        STEP.mul_f64((*count - FREE_TRIES).max(0.0)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use futures_util::stream;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn connections_are_limited_in_all_and_by_address() {
        let open = Connections::new(ConnectionLimits { total: 4, per_address: 2, behind_proxy: false });
        let [a, _b] = ["10.0.0.1", "::ffff:10.0.0.1"].map(|from| open.enter(ip(from)).expect("a place is free"));
        assert!(open.enter(ip("10.0.0.1")).is_none(), "the address has its two");
        let _c = [open.enter(ip("2001:db8::1")), open.enter(ip("2001:db8::2"))];
        assert!(open.enter(ip("2001:db8::3")).is_none(), "one network");
        assert!(open.enter(ip("10.0.0.2")).is_none(), "four in all");
        drop(a);
        assert!(open.enter(ip("10.0.0.1")).is_some());

        let proxied = Connections::new(ConnectionLimits { total: 4, per_address: 1, behind_proxy: true });
        let seats = [(); 3].map(|()| proxied.enter(ip("127.0.0.1")).expect("the proxy has no limit of its own"));
        assert!(proxied.enter(ip("10.0.0.1")).is_some() && seats.len() == 3);
    }

    #[test]
    fn a_client_is_named_by_the_proxy_of_this_machine_alone() {
        for (peer, proxy, forwarded, expect) in [
            ("127.0.0.1", true, Some("1.1.1.1, 203.0.113.5"), "203.0.113.5"),
            ("127.0.0.1", true, None, "127.0.0.1"),
            ("127.0.0.1", false, Some("203.0.113.5"), "127.0.0.1"),
            ("198.51.100.1", true, Some("203.0.113.5"), "198.51.100.1"),
            ("127.0.0.1", true, Some("unknown"), "127.0.0.1"),
        ] {
            let (mut extensions, mut headers) = (Extensions::new(), HeaderMap::new());
            extensions.insert(CameFrom(SocketAddr::new(ip(peer), 1)));
            if let Some(forwarded) = forwarded {
                headers.insert("x-forwarded-for", HeaderValue::from_static(forwarded));
            }
            assert_eq!(client_of(&extensions, &headers, proxy), Some(ip(expect)), "{peer} {proxy} {forwarded:?}");
        }
    }

    #[tokio::test]
    async fn bodies_share_their_memory() {
        let memory = BodyMemory::new(100 * 1024);
        let of =
            |kib: usize| Body::from_stream(stream::iter((0..kib).map(|_| Ok::<_, std::io::Error>(vec![7_u8; 1024]))));
        let first = memory.collect(of(64 + 80), 1 << 20, 1).await.expect("it fits");
        assert_eq!(first.bytes.len(), 144 * 1024);
        assert_eq!(memory.collect(of(64 + 21), 1 << 20, 1).await.expect_err("20 are left"), Unread::NoMemory);
        memory.collect(of(64), 1 << 20, 1).await.expect("a small one needs none");
        assert_eq!(memory.collect(of(9), 8 * 1024, 1).await.expect_err("its route takes 8"), Unread::TooLarge);
        drop(first);
        memory.collect(of(64 + 100), 1 << 20, 1).await.expect("all is free again");
    }

    #[test]
    fn wrong_keys_are_answered_ever_later() {
        let wrong = WrongKeys::new(REFUSAL_DELAY);
        let guess = |from: &str, at_s: i64| wrong.delay(ip(from), at_s * 1000);
        for _ in 0..10 {
            assert_eq!(guess("10.0.0.1", 0), Duration::ZERO);
        }
        assert_eq!(guess("10.0.0.1", 0), Duration::from_millis(100));
        assert_eq!(guess("10.0.0.1", 0), Duration::from_millis(200));
        assert_eq!(guess("10.0.0.2", 0), Duration::ZERO, "another address");
        for _ in 0..30 {
            guess("10.0.0.1", 0);
        }
        assert_eq!(guess("10.0.0.1", 0), REFUSAL_DELAY, "the longest");
        assert_eq!(guess("10.0.0.1", 3600), Duration::ZERO, "an hour later");
    }
}
