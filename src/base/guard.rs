//! Addresses that requests of users may go to: webhooks, fetched files, and all else that is sent to a typed address.
//!
//! A URL is looked at twice. When it is saved, so that a bad one is refused at once; and when it is connected to, by
//! the addresses that the connection is then made to, so that a name that points elsewhere by then (DNS rebinding)
//! reaches nothing. Redirects are not followed by themselves: whoever follows one asks again.

use std::error::Error as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use url::{Host, Url};

use super::tls::{Roots, install_tls};

/// Time limit for looking up a name when a URL is saved.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
/// Time limit for a connection: SYN is sent anew after 1, 3 and 7 s (RFC 6298).
pub const CONNECTS_WITHIN: Duration = Duration::from_secs(8);

/// Reason why a URL may not be requested.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The name has no address.
    NoAddress,
    /// The URL leads to an address that is not allowed.
    NotAllowed,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Blocked::NoAddress => "has no address",
            Blocked::NotAllowed => "points to an address that is not allowed",
        })
    }
}

impl std::error::Error for Blocked {}

impl Blocked {
    /// Returns the refusal of a name that the look-up did not find; the cause goes to the log.
    fn no_address(cause: io::Error) -> Blocked {
        tracing::debug!(%cause, "a name is not found");
        Blocked::NoAddress
    }

    /// Returns the guard's refusal behind an error of a guarded client; `None` for other errors.
    pub fn of(error: &reqwest::Error) -> Option<Blocked> {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(blocked) = error.downcast_ref::<Blocked>() {
                return Some(*blocked);
            }
            cause = error.source();
        }
        None
    }
}

type Rule = dyn Fn(IpAddr) -> bool + Send + Sync;
type LookUp = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Says which addresses may be connected to. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    rule: Arc<Rule>,
    names: Arc<LookUp>,
    has_own_names: bool,
    roots: Roots,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl Guard {
    /// Returns the guard that permits the addresses of [`ip_allowed`].
    pub fn new(private: bool) -> Guard {
        Guard::by(move |address| ip_allowed(address, private))
    }

    /// Returns the guard that permits the addresses for which `rule` is true.
    pub fn by(rule: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Guard {
        let names: Arc<LookUp> = Arc::new(|name| Box::pin(system_names(name)));
        Guard { rule: Arc::new(rule), names, has_own_names: false, roots: Roots::default() }
    }

    /// Returns the guard whose clients trust certificates of these authorities, too.
    #[must_use]
    pub fn trusting(self, roots: &Roots) -> Guard {
        Guard { roots: roots.clone(), ..self }
    }

    /// Looks names up by `names` and not by the system.
    pub fn with_names(
        mut self,
        names: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Guard {
        self.names = Arc::new(names);
        self.has_own_names = true;
        self
    }

    /// Looks at a URL as it is now: an address in any spelling by itself, a name by all of its addresses.
    ///
    /// # Errors
    /// `NotAllowed` when one of its addresses may not be connected to, `NoAddress` when it has none that is found in 2
    /// s.
    pub async fn look(&self, url: &Url) -> Result<(), Blocked> {
        self.literal(url)?;
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        let found = tokio::time::timeout(LOOK_PATIENCE, (self.names)(name.to_owned())).await;
        let found = found.unwrap_or(Ok(Vec::new())).map_err(Blocked::no_address)?;
        match found.iter().all(|address| (self.rule)(*address)) {
            _ if found.is_empty() => Err(Blocked::NoAddress),
            true => Ok(()),
            false => Err(Blocked::NotAllowed),
        }
    }

    /// True when `address` may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        (self.rule)(address)
    }

    /// True when names are looked up by a function that was given, and not by the system.
    pub fn has_own_names(&self) -> bool {
        self.has_own_names
    }

    /// Returns the addresses of a name, allowed or not. It sets no limit of time.
    ///
    /// # Errors
    /// Those of the system's look-up, or of the one that was given.
    pub async fn names(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        (self.names)(host.to_owned()).await
    }

    /// Checks an address that is written in the URL itself. A client must be asked only for URLs that pass this. It
    /// looks up names by the guard, but connects to written addresses without asking.
    ///
    /// # Errors
    /// `NotAllowed`; `NoAddress` for a URL without a host.
    pub fn literal(&self, url: &Url) -> Result<(), Blocked> {
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(_)) => return Ok(()),
            None => return Err(Blocked::NoAddress),
        };
        if (self.rule)(address) { Ok(()) } else { Err(Blocked::NotAllowed) }
    }

    /// Returns a client that connects to allowed addresses of a name alone, follows no redirect and uses no proxy.
    ///
    /// # Errors
    /// When there is no TLS.
    pub fn client(&self) -> reqwest::Result<reqwest::Client> {
        install_tls();
        let builder = reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none());
        self.roots.build(builder.connect_timeout(CONNECTS_WITHIN).dns_resolver(Arc::new(self.clone())))
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, name) = (self.clone(), name.as_str().to_owned());
        Box::pin(async move {
            let found = (guard.names)(name).await.map_err(Blocked::no_address)?;
            let open: Vec<SocketAddr> =
                found.into_iter().filter(|address| (guard.rule)(*address)).map(|address| (address, 0).into()).collect();
            if open.is_empty() {
                return Err(Blocked::NotAllowed.into());
            }
            Ok(Box::new(open.into_iter()) as Addrs)
        })
    }
}

async fn system_names(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

/// True if a host may be used, by the way it is written. Names are looked up when they are connected to.
pub fn host_allowed(url: &Url, private: bool) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name_allowed(&name.trim_end_matches('.').to_ascii_lowercase(), private),
        _ => Guard::new(private).literal(url).is_ok(),
    }
}

fn name_allowed(name: &str, private: bool) -> bool {
    let local = name == "localhost" || name.ends_with(".localhost");
    !matches!(name, "metadata" | "metadata.google.internal") && (private || !local)
}

/// True when an address may be connected to: never link-local, multicast or a metadata service; loopback and private
/// ones only when `private`. An IPv6 address that stands for an IPv4 one is judged as that one.
pub fn ip_allowed(address: IpAddr, private: bool) -> bool {
    match address {
        IpAddr::V4(address) => v4_allowed(address, private),
        IpAddr::V6(address) => match embedded_ipv4(address) {
            Some(v4) => v4_allowed(v4, private),
            None => v6_allowed(address, private),
        },
    }
}

/// Returns the IPv4 address behind an IPv6 one: mapped and compatible (RFC 4291 2.5.5), translated (RFC 6052 2.1), 6to4
/// (RFC 3056).
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => v4(high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] => v4(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        _ => None,
    }
}

/// Addresses of metadata services that lie outside the link-local network.
const V4_METADATA: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const V6_METADATA: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

fn v4_allowed(address: Ipv4Addr, private: bool) -> bool {
    let never =
        address.is_link_local() || address.is_multicast() || address.is_broadcast() || V4_METADATA.contains(&address);
    // Not the public's either (RFC 6890): this network, carriers' own addresses, protocol assignments, benchmarks,
    // reserved.
    let inside = match address.octets() {
        [0, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] | [240..=255, ..] => true,
        [100, second, ..] => second & 0xc0 == 64,
        _ => address.is_loopback() || address.is_private(),
    };
    !never && (private || !inside)
}

fn v6_allowed(address: Ipv6Addr, private: bool) -> bool {
    let never = address.is_unicast_link_local() || address.is_multicast() || V6_METADATA.contains(&address);
    // Site-local (RFC 3879), translation inside a site (RFC 8215), tunnels to any IPv4 address (RFC 4380).
    let inside = match address.segments() {
        [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => true,
        _ => address.is_loopback() || address.is_unique_local() || address.is_unspecified(),
    };
    !never && (private || !inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::WebServer;

    /// Address as written in a URL, whether it may be asked when private ones may, and when they may not.
    const HOSTS: &[(&str, bool, bool)] = &[
        ("example.com", true, true),
        ("93.184.216.34", true, true),
        ("[2606:2800:220:1::1]", true, true),
        // Loopback, in every spelling.
        ("127.0.0.1", true, false),
        ("127.255.255.254", true, false),
        ("2130706433", true, false),
        ("0x7f000001", true, false),
        ("0x7f.1", true, false),
        ("0177.0.0.1", true, false),
        ("127.1", true, false),
        ("%31%32%37.0.0.1", true, false),
        ("\u{2460}\u{2461}\u{2466}.0.0.1", true, false),
        ("127.0.0.1.", true, false),
        ("localhost", true, false),
        ("LOCALHOST.", true, false),
        ("x.localhost", true, false),
        ("[::1]", true, false),
        ("[0:0:0:0:0:0:0:1]", true, false),
        ("[::ffff:127.0.0.1]", true, false),
        ("[::ffff:7f00:1]", true, false),
        ("[::ffff:0:7f00:1]", true, false),
        ("[::127.0.0.1]", true, false),
        ("[64:ff9b::127.0.0.1]", true, false),
        ("[64:ff9b::7f00:1]", true, false),
        ("[2002:7f00:1::]", true, false),
        // This network and none.
        ("0.0.0.0", true, false),
        ("0", true, false),
        ("[::]", true, false),
        // Private.
        ("10.1.2.3", true, false),
        ("172.16.0.1", true, false),
        ("172.31.255.255", true, false),
        ("172.32.0.1", true, true),
        ("192.168.1.1", true, false),
        ("100.64.0.1", true, false),
        ("100.128.0.1", true, true),
        ("192.0.0.8", true, false),
        ("198.18.0.1", true, false),
        ("198.20.0.1", true, true),
        ("240.0.0.1", true, false),
        ("[fc00::1]", true, false),
        ("[fd12:3456::1]", true, false),
        ("[fec0::1]", true, false),
        ("[64:ff9b:1::a00:1]", true, false),
        ("[64:ff9b::10.0.0.1]", true, false),
        ("[2002:a00:1::1]", true, false),
        ("[2001:0:a00:1::1]", true, false),
        ("[::ffff:8.8.8.8]", true, true),
        ("[64:ff9b::8.8.8.8]", true, true),
        // Never.
        ("169.254.169.254", false, false),
        ("0xa9fea9fe", false, false),
        ("2852039166", false, false),
        ("169.254.0.1", false, false),
        ("[fe80::1]", false, false),
        ("[::ffff:169.254.169.254]", false, false),
        ("[64:ff9b::169.254.169.254]", false, false),
        ("[64:ff9b::a9fe:a9fe]", false, false),
        ("[2002:a9fe:a9fe::]", false, false),
        ("[fd00:ec2::254]", false, false),
        ("[fd20:ce::254]", false, false),
        ("100.100.100.200", false, false),
        ("168.63.129.16", false, false),
        ("192.0.0.192", false, false),
        ("metadata.google.internal", false, false),
        ("metadata.google.internal.", false, false),
        ("224.0.0.1", false, false),
        ("255.255.255.255", false, false),
        ("[ff02::1]", false, false),
    ];

    #[test]
    fn hosts_are_judged_in_every_spelling() {
        for (host, open, closed) in HOSTS {
            let url = Url::parse(&format!("http://{host}/x")).unwrap_or_else(|error| panic!("{host}: {error}"));
            assert_eq!((host_allowed(&url, true), host_allowed(&url, false)), (*open, *closed), "{host}");
        }
    }

    fn names(answers: &'static [&'static [&'static str]]) -> Guard {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        Guard::new(false).with_names(move |_| {
            let nth = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst).min(answers.len() - 1);
            let found = answers[nth].iter().map(|text| text.parse().expect("an address")).collect();
            Box::pin(async move { Ok(found) })
        })
    }

    #[tokio::test]
    async fn a_name_is_judged_by_its_addresses() {
        let url = Url::parse("http://hooks.example/").expect("a URL");
        for (addresses, expect) in [
            (&["93.184.216.34"][..], Ok(())),
            (&["93.184.216.34", "10.0.0.1"][..], Err(Blocked::NotAllowed)),
            (&["::ffff:127.0.0.1"][..], Err(Blocked::NotAllowed)),
            (&[][..], Err(Blocked::NoAddress)),
        ] {
            let answers: &'static [&'static [&'static str]] = Box::leak(Box::new([addresses]));
            assert_eq!(names(answers).look(&url).await, expect, "{addresses:?}");
        }
    }

    #[tokio::test]
    async fn a_name_that_points_elsewhere_when_it_is_connected_to_reaches_nothing() {
        let server = WebServer::start(|_| WebServer::file(b"secret")).await.expect("loopback has a free port");
        let guard = names(&[&["93.184.216.34"], &["127.0.0.1"]]);
        let url = Url::parse(&format!("http://hooks.example:{}/", server.address.port())).expect("a URL");
        assert_eq!(guard.look(&url).await, Ok(()), "when it is saved");
        let sent = guard.client().expect("a client").get(url).send().await;
        assert_eq!(sent.err().and_then(|error| Blocked::of(&error)), Some(Blocked::NotAllowed));
        assert_eq!(server.paths(), [""; 0], "nothing was asked");
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let server = WebServer::start(|path| match path {
            "/" => {
                b"HTTP/1.1 302 Found\r\nlocation: /inside\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()
            }
            _ => WebServer::file(b"secret"),
        });
        let server = server.await.expect("loopback has a free port");
        let answer = Guard::new(true).client().expect("a client").get(server.url("/")).send().await.expect("answers");
        assert_eq!(answer.status().as_u16(), 302);
        assert_eq!(server.paths(), ["/"]);
    }
}
