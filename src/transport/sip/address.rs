//! Addresses that are called (`sip:`, `sips:`, `tel:`): parsed, checked against the guard and routed here, for the service, the
//! command line and the engine.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use ringer_sip::uri::{Scheme, Uri};
use ringer_sip::{Hop, Transport};
use url::Url;

use crate::provider::guard::{Blocked, Guard, host_allowed};

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
    /// It is no `sip:`, `sips:` or `tel:` address, or has no user.
    Malformed(String),
    /// Its transport or scheme is not spoken.
    NotSpoken(String),
    /// The guard does not let it be called.
    NotAllowed(String),
    /// Its host has no address.
    NotFound(String),
}

impl fmt::Display for AddressFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressFault::Malformed(why)
            | AddressFault::NotSpoken(why)
            | AddressFault::NotAllowed(why)
            | AddressFault::NotFound(why) => f.write_str(why),
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
        self.transport().map(drop)
    }

    /// Returns the transport that the address names: UDP for `sip:` and TLS for `sips:` where it names none (RFC 3261 19.1.2, 26.2.2).
    ///
    /// # Errors
    /// [`AddressFault::NotSpoken`].
    pub fn transport(&self) -> Result<Transport, AddressFault> {
        let named = self.uri.params.get("transport");
        let transport = named.map_or(Some(Transport::Udp), Transport::from_name);
        let why = match (&self.uri.scheme, transport) {
            (Scheme::Tel, _) => "a telephone number needs a trunk: it must start with sip:",
            (Scheme::Sip, Some(transport)) => return Ok(transport),
            // Over TCP a sips: address means TLS.
            (Scheme::Sips, Some(Transport::Tcp | Transport::Tls)) => return Ok(Transport::Tls),
            (Scheme::Sips, Some(Transport::Udp)) if named.is_none() => return Ok(Transport::Tls),
            (Scheme::Sips, Some(Transport::Udp)) => "sips: needs TLS, which is not spoken over UDP",
            (_, None) => "SIP is spoken over UDP, TCP and TLS alone",
        };
        Err(AddressFault::NotSpoken(format!("{:?} cannot be called: {why}", self.shown())))
    }

    /// Returns the hop to the address at this host address; the certificate has to name the host, where it is a name.
    ///
    /// # Errors
    /// [`AddressFault::NotSpoken`].
    pub fn hop(&self, host: IpAddr) -> Result<Hop, AddressFault> {
        let transport = self.transport()?;
        let hop = Hop::new(transport, SocketAddr::new(host, self.port(transport)));
        let name = self.uri.host.trim_end_matches('.');
        let is_name = transport == Transport::Tls && name.trim_matches(['[', ']']).parse::<IpAddr>().is_err();
        Ok(Hop { server_name: is_name.then(|| name.to_ascii_lowercase().into()), ..hop })
    }

    /// Looks up where the address is reached, as far as `guard` lets it be called.
    ///
    /// # Errors
    /// [`AddressFault::NotSpoken`], [`AddressFault::NotAllowed`], [`AddressFault::NotFound`].
    pub async fn locate(&self, guard: &Guard) -> Result<Hop, AddressFault> {
        self.check_spoken()?;
        let address = guard.address(&self.uri.host).await.map_err(|blocked| match blocked {
            Blocked::NotAllowed => AddressFault::NotAllowed(format!("the host of {:?} {blocked}", self.shown())),
            Blocked::NoAddress => AddressFault::NotFound(format!("the host of {:?} {blocked}", self.shown())),
        })?;
        self.hop(address)
    }

    /// Looks the host up by the system's resolver. It blocks: not for media threads.
    ///
    /// # Errors
    /// [`AddressFault::NotSpoken`], [`AddressFault::NotFound`].
    pub fn resolve(&self) -> Result<SocketAddr, AddressFault> {
        let transport = self.transport()?;
        let host = self.uri.host.trim_start_matches('[').trim_end_matches(']');
        let missing =
            |why: String| AddressFault::NotFound(format!("the host of {:?} cannot be resolved: {why}", self.shown()));
        let mut found = (host, self.port(transport)).to_socket_addrs().map_err(|error| missing(error.to_string()))?;
        found.next().ok_or_else(|| missing("it has no address".into()))
    }

    /// Returns the address for people, without a password and headers.
    fn shown(&self) -> String {
        Uri { password: None, headers: String::new(), ..self.uri.clone() }.to_string()
    }

    fn port(&self, transport: Transport) -> u16 {
        self.uri.port.unwrap_or(transport.default_port())
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
        let locate = async |text: &str, guard: Guard| Address::parse(text).expect("an address").locate(&guard).await;
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
