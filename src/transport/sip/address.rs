//! Addresses that are called (`sip:`, `sips:`, `tel:`): parsed, checked against the guard and routed here, for the
//! service, the command line and the engine.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

use ringer_base::guard::{Guard, host_allowed};
use ringer_sip::hop::{Hop, Transport};
use ringer_sip::uri::{Scheme, Uri};
use url::Url;

use super::names::{Lost, Resolver, SPOKEN, check_spoken};

/// The form that an address must have.
const FORM: &str = "it must be of the form sip:<user>@<host>";

/// An address that can be parsed; whether it can be called is asked by [`Address::check_spoken`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    uri: Uri,
}

/// Reason why an address cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressFault {
    /// The text is no `sip:`, `sips:` or `tel:` address, or has no user.
    Malformed(String),
    /// The transport or scheme is not supported.
    NotSpoken(String),
    /// The guard does not let it be called.
    NotAllowed(String),
    /// The host has no address.
    NotFound(String),
    /// The name servers did not tell where its host is.
    NotAnswered(String),
}

impl fmt::Display for AddressFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressFault::Malformed(why)
            | AddressFault::NotSpoken(why)
            | AddressFault::NotAllowed(why)
            | AddressFault::NotFound(why)
            | AddressFault::NotAnswered(why) => f.write_str(why),
        }
    }
}

impl AddressFault {
    /// Returns the kind of the fault without the address, for logs.
    pub fn kind(&self) -> &'static str {
        match self {
            AddressFault::Malformed(_) => "it is no address",
            AddressFault::NotSpoken(_) => "its transport is not spoken",
            AddressFault::NotAllowed(_) => "it may not be called",
            AddressFault::NotFound(_) => "its host has no address",
            AddressFault::NotAnswered(_) => "the name servers did not tell where its host is",
        }
    }
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// [`AddressFault::Malformed`].
    pub fn parse(text: &str) -> Result<Address, AddressFault> {
        let malformed = |why: String| AddressFault::Malformed(why);
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("sip" | "sips" | "tel")) {
            return Err(malformed(format!("{text:?} is not a SIP address: it must start with sip: or sips:")));
        }
        let uri =
            Uri::parse(text).map_err(|error| malformed(format!("{text:?} is not a SIP address ({error}): {FORM}")))?;
        let is_host = |host: &str| Url::parse(&format!("http://{host}/")).is_ok_and(|url| url.has_host());
        if uri.user.as_deref().is_none_or(str::is_empty) || (uri.scheme != Scheme::Tel && !is_host(&uri.host)) {
            return Err(malformed(format!("{text:?} is not a SIP address: {FORM}")));
        }
        Ok(Address { uri })
    }

    /// Returns the address as a URI.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// True for `tel:`, which names no host.
    pub fn is_telephone(&self) -> bool {
        self.uri.scheme == Scheme::Tel
    }

    /// True if the host may be called as far as it is written as an IP address; `private`: private ranges are allowed.
    pub fn is_host_allowed(&self, private: bool) -> bool {
        Url::parse(&format!("http://{}/", self.uri.host)).is_ok_and(|url| host_allowed(&url, private))
    }

    /// Checks that this build speaks the scheme and transport.
    ///
    /// # Errors
    /// [`AddressFault::NotSpoken`].
    pub fn check_spoken(&self) -> Result<(), AddressFault> {
        check_spoken(&self.uri, SPOKEN).map_err(|lost| self.fault(lost))
    }

    /// Looks up where the address is reached, as far as `guard` lets it be called: the hops in the order in which they
    /// are tried.
    ///
    /// # Errors
    /// [`AddressFault`], except of a malformed address.
    pub async fn hops(&self, resolver: &Resolver, guard: &Guard) -> Result<Vec<Hop>, AddressFault> {
        resolver.hops(&self.uri, guard).await.map_err(|lost| self.fault(lost))
    }

    fn fault(&self, lost: Lost) -> AddressFault {
        let why = match &lost {
            Lost::NotSpoken(why) => {
                return AddressFault::NotSpoken(format!("{:?} cannot be called: {why}", self.display()));
            }
            _ => format!("the host of {:?} {lost}", self.display()),
        };
        match lost {
            Lost::NotAllowed => AddressFault::NotAllowed(why),
            Lost::Unanswered(_) => AddressFault::NotAnswered(why),
            _ => AddressFault::NotFound(why),
        }
    }

    /// Looks the host up by the system's resolver, for datagrams. It blocks: not for media threads.
    ///
    /// # Errors
    /// [`AddressFault::NotSpoken`], [`AddressFault::NotFound`].
    pub fn resolve(&self) -> Result<SocketAddr, AddressFault> {
        self.check_spoken()?;
        let host = self.uri.host.trim_start_matches('[').trim_end_matches(']');
        let missing =
            |why: String| AddressFault::NotFound(format!("the host of {:?} cannot be resolved: {why}", self.display()));
        let mut found = (host, self.port()).to_socket_addrs().map_err(|error| missing(error.to_string()))?;
        found.next().ok_or_else(|| missing("it has no address".into()))
    }

    /// Returns the address for people, without a password and headers.
    fn display(&self) -> String {
        Uri { password: None, headers: String::new(), ..self.uri.clone() }.to_string()
    }

    fn port(&self) -> u16 {
        self.uri.port.unwrap_or(Transport::Udp.default_port())
    }
}

impl From<Uri> for Address {
    /// Takes an address that the other side named, for example in a redirect.
    fn from(uri: Uri) -> Address {
        Address { uri }
    }
}

/// Returns the user part of a Request-URI; empty where it has none or cannot be read.
pub fn called_user(request_uri: &str) -> String {
    Uri::parse(request_uri).ok().and_then(|uri| uri.user).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        for good in [
            "sip:a@b",
            "SIP:a@b",
            "sips:a@b.example:5061;transport=tls",
            "sip:+15550001111@10.0.0.1",
            "sip:a@[::1]:5060",
        ] {
            assert!(Address::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["sip:b", "a@b", "http://a@b", "sip:@b", "sip:a@", "sip:a@b c", "sip:a@b@c", "sip:a@:5060", "", "sip:a@b:x"]
        {
            assert!(matches!(Address::parse(bad), Err(AddressFault::Malformed(_))), "{bad}");
        }
        let spoken = |text: &str| Address::parse(text).expect("an address").check_spoken().is_ok();
        for (text, expect) in [
            ("sip:a@b", true),
            ("sip:a@b;transport=UDP", true),
            ("sip:a@b;transport=tcp", true),
            ("sip:a@b;transport=TLS", true),
            ("sip:a@b;transport=sctp", false),
            ("sips:a@b", true),
            ("sips:a@b;transport=tcp", true),
            ("sips:a@b;transport=udp", false),
            ("tel:+15550001111", false),
        ] {
            assert_eq!(spoken(text), expect, "{text}");
        }
        let allowed = |text: &str, private| Address::parse(text).expect("an address").is_host_allowed(private);
        assert!(!allowed("sip:a@169.254.169.254", false) && !allowed("sip:a@10.0.0.1", false));
        assert!(allowed("sip:a@10.0.0.1", true) && allowed("sip:a@b.example", false));
    }

    #[tokio::test]
    async fn an_address_is_routed_where_the_guard_lets_it() {
        let locate = async |text: &str, guard: Guard| {
            let hops = Address::parse(text).expect("an address").hops(&Resolver::default(), &guard).await?;
            Ok(hops.into_iter().next().expect("there is one where there is no fault"))
        };
        let all = || Guard::by(|_| true);
        let check = async |text: &str, expect: &str, name: Option<&str>| {
            let hop = locate(text, all()).await.expect(text);
            assert_eq!((hop.to_string().as_str(), hop.server_name.as_deref()), (expect, name), "{text}");
        };
        check("sip:a@127.0.0.1", "UDP 127.0.0.1:5060", None).await;
        check("sip:a@127.0.0.1:7", "UDP 127.0.0.1:7", None).await;
        check("sip:a@[::1];transport=tcp", "TCP [::1]:5060", None).await;
        check("sips:a@127.0.0.1", "TLS 127.0.0.1:5061", None).await;
        check("sips:a@Localhost:7;transport=tcp", "TLS 127.0.0.1:7", Some("localhost")).await;
        check("sip:a@localhost;transport=tls", "TLS 127.0.0.1:5061", Some("localhost")).await;
        check("sip:a@localhost;transport=tcp", "TCP 127.0.0.1:5060", None).await;
        let refused = locate("sip:a@127.0.0.1", Guard::by(|_| false)).await;
        assert!(matches!(refused, Err(AddressFault::NotAllowed(_))), "{refused:?}");
        let unspoken = locate("sips:a@127.0.0.1;transport=udp", all()).await;
        assert!(matches!(unspoken, Err(AddressFault::NotSpoken(_))), "{unspoken:?}");
    }

    #[test]
    fn the_called_user_is_read() {
        for (uri, user) in [("sip:dh-7@h", "dh-7"), ("tel:+1555", "+1555"), ("sip:h", ""), ("no", "")] {
            assert_eq!(called_user(uri), user);
        }
    }
}
