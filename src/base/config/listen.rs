//! Addresses of the SIP sockets: one for each transport.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Addresses of the SIP sockets, at least one, at most one for each transport.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SipListen {
    /// Address at which datagrams are received.
    pub udp: Option<SocketAddr>,
    /// Address that TCP connections are accepted at.
    pub tcp: Option<SocketAddr>,
    /// Address that TLS connections are accepted at.
    pub tls: Option<SocketAddr>,
}

impl SipListen {
    /// Form of the texts that are read, for messages.
    pub const FORM: &str = "an address like 127.0.0.1:5060, which is UDP, or a list of at most one each of \
                            udp:127.0.0.1:5060, tcp:127.0.0.1:5060 and tls:127.0.0.1:5061";

    /// Reads a list of `[udp:|tcp:|tls:]ADDRESS:PORT`; `None` where it is of another form, empty, or names a transport
    /// twice.
    pub fn parse_list(texts: &[String]) -> Option<SipListen> {
        let mut all = SipListen { udp: None, tcp: None, tls: None };
        for text in texts {
            let text = text.trim();
            let lower = text.get(..4).unwrap_or_default().to_ascii_lowercase();
            let (place, address) = match lower.as_str() {
                "udp:" => (&mut all.udp, &text[4..]),
                "tcp:" => (&mut all.tcp, &text[4..]),
                "tls:" => (&mut all.tls, &text[4..]),
                _ => (&mut all.udp, text),
            };
            if place.replace(address.parse().ok()?).is_some() {
                return None;
            }
        }
        all.all().next().is_some().then_some(all)
    }

    /// Returns each address with the name of its transport.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        let all = [("udp", self.udp), ("tcp", self.tcp), ("tls", self.tls)];
        all.into_iter().filter_map(|(name, address)| Some((name, address?)))
    }

    /// Returns the first address: that of UDP where there is one.
    pub fn first(&self) -> SocketAddr {
        self.all().next().map_or((Ipv4Addr::LOCALHOST, 0).into(), |(_, address)| address)
    }

    /// Returns the host of the first address, from which media are sent, too.
    pub fn ip(&self) -> IpAddr {
        self.first().ip()
    }
}

impl From<SocketAddr> for SipListen {
    fn from(udp: SocketAddr) -> SipListen {
        SipListen { udp: Some(udp), tcp: None, tls: None }
    }
}

impl FromStr for SipListen {
    type Err = String;

    /// Reads one address, or several with commas between them.
    fn from_str(text: &str) -> Result<SipListen, String> {
        let texts: Vec<String> = text.split(',').map(str::to_owned).collect();
        SipListen::parse_list(&texts).ok_or_else(|| format!("it must be {}", SipListen::FORM))
    }
}

impl fmt::Display for SipListen {
    /// Writes `127.0.0.1:5060` for UDP alone, else `udp:127.0.0.1:5060,tcp:127.0.0.1:5060`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let SipListen { udp: Some(udp), tcp: None, tls: None } = self {
            return udp.fmt(f);
        }
        for (at, (name, address)) in self.all().enumerate() {
            write!(f, "{}{name}:{address}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Serialize for SipListen {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_for_each_transport() {
        let check = |text: &str, expect: Option<&str>| {
            let read = text.parse::<SipListen>().ok();
            assert_eq!(read.map(|listen| listen.to_string()).as_deref(), expect, "{text}");
        };
        check("127.0.0.1:5060", Some("127.0.0.1:5060"));
        check("udp:127.0.0.1:5060", Some("127.0.0.1:5060"));
        check("[::1]:5060", Some("[::1]:5060"));
        check("TCP:127.0.0.1:5060", Some("tcp:127.0.0.1:5060"));
        let all = "udp:127.0.0.1:5060,tcp:[::1]:5060,tls:0.0.0.0:5061";
        check(all, Some(all));
        check("tls:0.0.0.0:5061, 127.0.0.1:5060", Some("udp:127.0.0.1:5060,tls:0.0.0.0:5061"));
        for bad in ["", "here", "tcp:", "sctp:127.0.0.1:5060", "tcp:127.0.0.1", "127.0.0.1:1,udp:127.0.0.1:2", "a,b"] {
            check(bad, None);
        }
        assert_eq!("tls:[::1]:5061".parse().map(|listen: SipListen| listen.ip()), Ok("::1".parse().expect("good")));
    }
}
