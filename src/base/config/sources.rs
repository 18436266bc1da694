//! Allowed source addresses, written `192.0.2.7` or `192.0.2.0/24`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A list of addresses and networks; an empty one allows every address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Sources(Vec<Network>);

/// An address, or a network with the length of its prefix.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Sources {
    /// Reads each entry.
    ///
    /// # Errors
    /// The first entry that is neither an address nor a network.
    pub fn parse(entries: &[String]) -> Result<Sources, String> {
        let networks = entries.iter().map(|entry| entry.trim().parse().map_err(|()| entry.clone()));
        networks.collect::<Result<_, _>>().map(Sources)
    }

    /// True if the list is empty and every address is therefore allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the address is in the list. An IPv4 address written as IPv6 is the IPv4 address.
    pub fn allow(&self, address: IpAddr) -> bool {
        self.0.is_empty() || self.0.iter().any(|network| network.holds(address.to_canonical()))
    }
}

impl Network {
    /// True if `address` is in the network.
    pub(super) fn holds(self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u32| self.prefix == 0 || (a ^ b) >> (width - self.prefix) == 0;
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Network, ()> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address = address.parse::<IpAddr>().map_err(drop)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(width), |prefix| prefix.parse().map_err(drop))?;
        if prefix <= width { Ok(Network { address, prefix }) } else { Err(()) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Returns the addresses of one owner: an IPv4 address by itself, of IPv6 the network of 64 bits (RFC 6177 section 2),
/// as its first address.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        // The loopback address has no network.
        IpAddr::V6(address) if address.is_loopback() => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        for (entries, address, expect) in [
            (&[][..], "192.0.2.7", true),
            (&["192.0.2.7"], "192.0.2.7", true),
            (&["192.0.2.7"], "192.0.2.8", false),
            (&["192.0.2.7"], "::ffff:192.0.2.7", true),
            (&["192.0.2.0/24", "10.0.0.0/8"], "10.255.0.1", true),
            (&["192.0.2.0/25"], "192.0.2.128", false),
            (&["0.0.0.0/0"], "203.0.113.9", true),
            (&["0.0.0.0/0"], "::1", false),
            (&["2001:db8::/32"], "2001:db8:1::5", true),
            (&["2001:db8::/32"], "2001:db9::5", false),
        ] {
            let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
            let sources = Sources::parse(&entries).expect("they are networks");
            assert_eq!(sources.allow(address.parse().expect("an address")), expect, "{entries:?} {address}");
        }
        for bad in ["", "host", "192.0.2.7/33", "192.0.2.7/", "::1/129", "192.0.2.7/-1"] {
            assert_eq!(Sources::parse(&[bad.to_owned()]), Err(bad.to_owned()));
        }
    }
}
