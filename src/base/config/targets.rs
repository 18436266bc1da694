//! Allowed targets of transfers and redirects, written `pbx.example.com`, `*.example.com`, `192.0.2.0/24` or `+4989`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::sources::Network;

/// Most digits of a number (ITU-T E.164).
const MOST_DIGITS: usize = 15;
/// Longest host name in bytes (RFC 1035 2.3.4).
const NAME_BYTES: usize = 253;

/// A list of hosts and prefixes of numbers; an empty one allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Targets(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// A host name, in lower case.
    Host(String),
    /// Every name below this one, in lower case, with its leading dot.
    Below(String),
    /// An address or a network.
    Network(Network),
    /// Numbers that begin with these digits, at the host of the call or without a host (`tel:`).
    Prefix(String),
}

impl Targets {
    /// Parses each entry.
    ///
    /// # Errors
    /// The first entry that is no host name, address, network or prefix.
    pub fn parse(entries: &[String]) -> Result<Targets, String> {
        let read = entries.iter().map(|entry| entry.trim().parse().map_err(|()| entry.clone()));
        read.collect::<Result<_, _>>().map(Targets)
    }

    /// True if an entry holds the host (a name, or an address with or without brackets), or the user as a `+` number. A
    /// number alone opens no other host: it holds at `own`, the host of the call, and where `host` is empty.
    ///
    /// Dots, hyphens and parentheses of a number do not count.
    pub fn allow(&self, host: &str, user: Option<&str>, own: Option<&str>) -> bool {
        let is_own = host.is_empty() || own.is_some_and(|own| is_same_host(own, host));
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse().map(|ip: IpAddr| ip.to_canonical());
        let number = user.and_then(number);
        self.0.iter().any(|entry| match entry {
            Entry::Host(name) => *name == host,
            Entry::Below(name) => host.len() > name.len() && host.ends_with(name),
            Entry::Network(network) => address.as_ref().is_ok_and(|address| network.holds(*address)),
            Entry::Prefix(prefix) => is_own && number.as_ref().is_some_and(|number| number.starts_with(prefix)),
        })
    }
}

fn is_same_host(one: &str, other: &str) -> bool {
    let plain = |host: &str| host.trim_end_matches('.').trim_matches(['[', ']']).to_ascii_lowercase();
    plain(one) == plain(other)
}

/// Returns a number without separators; `None` for a text that is no number with `+`.
fn number(user: &str) -> Option<String> {
    let digits = user.split(';').next().unwrap_or_default().strip_prefix('+')?;
    let digits: String = digits.chars().filter(|c| !"-.()".contains(*c)).collect();
    is_digits(&digits).then_some(digits)
}

fn is_digits(text: &str) -> bool {
    (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    // A last label of digits is a mistyped address.
    let has_letters = |label: &str| label.bytes().any(|byte| byte.is_ascii_alphabetic());
    text.len() <= NAME_BYTES && text.split('.').all(is_label) && text.rsplit('.').next().is_some_and(has_letters)
}

impl FromStr for Entry {
    type Err = ();

    fn from_str(text: &str) -> Result<Entry, ()> {
        let lower = text.trim_end_matches('.').to_ascii_lowercase();
        if let Some(digits) = text.strip_prefix('+') {
            return if is_digits(digits) { Ok(Entry::Prefix(digits.to_owned())) } else { Err(()) };
        }
        if let Ok(network) = text.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(Entry::Network(network));
        }
        match lower.strip_prefix("*.") {
            Some(name) if is_name(name) => Ok(Entry::Below(format!(".{name}"))),
            None if is_name(&lower) => Ok(Entry::Host(lower)),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Host(name) => f.write_str(name),
            Entry::Below(name) => write!(f, "*{name}"),
            Entry::Network(network) => network.fmt(f),
            Entry::Prefix(digits) => write!(f, "+{digits}"),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_hold_hosts_and_numbers() {
        let check = |entry: &str, host: &str, user: &str, expect: bool| {
            let targets = Targets::parse(&[entry.to_owned()]).expect("it is a target");
            assert_eq!(targets.allow(host, Some(user), Some("pbx.example.com")), expect, "{entry}: {user}@{host}");
        };
        check("pbx.example.com", "PBX.example.com", "bob", true);
        check("PBX.example.com", "pbx.example.com.", "bob", true);
        check("pbx.example.com", "a.pbx.example.com", "bob", false);
        check("pbx.example.com", "pbx.example.com.evil.example", "bob", false);
        check("*.example.com", "a.example.com", "bob", true);
        check("*.example.com", "a.b.EXAMPLE.com", "bob", true);
        check("*.example.com", "example.com", "bob", false);
        check("*.example.com", "badexample.com", "bob", false);
        check("localhost", "localhost", "bob", true);
        check("192.0.2.7", "192.0.2.7", "bob", true);
        check("192.0.2.7", "192.0.2.70", "bob", false);
        check("192.0.2.0/24", "192.0.2.200", "bob", true);
        check("2001:db8::/32", "[2001:db8::7]", "bob", true);
        check("[2001:db8::7]", "[2001:db8::7]", "bob", true);
        check("192.0.2.7", "[::ffff:192.0.2.7]", "bob", true);
        check("+4989", "pbx.example.com", "+498912345", true);
        check("+4989", "pbx.example.com", "+49 89", false);
        check("+4989", "pbx.example.com", "+49-(89)-1.2", true);
        check("+4989", "pbx.example.com", "+4989;phone-context=x", true);
        check("+4989", "pbx.example.com", "+498", false);
        check("+4989", "pbx.example.com", "498912345", false);
        check("+4989", "pbx.example.com", "+4989x", false);
        check("+4989", "", "+498912345", true);
        check("+4989", "PBX.example.com.", "+498912345", true);
        check("+4989", "evil.example", "+498912345", false);
        check("+4989", "192.0.2.66", "+498912345", false);
        let prefix = Targets::parse(&["+4989".to_owned()]).expect("it is a target");
        assert!(!prefix.allow("pbx.example.com", Some("+498912345"), None), "the host of the call is not known");
        let nobody = Targets::default();
        assert!(!nobody.allow("pbx.example.com", Some("+498912345"), None) && !nobody.allow("192.0.2.7", None, None));
    }

    #[test]
    fn what_is_no_target_is_named() {
        for bad in [
            "",
            "*",
            "*.",
            "+",
            "+49x",
            "+1234567890123456",
            "192.0.2.7/33",
            "192.0.2",
            "192.0.2.300",
            "a b",
            "-a.example",
            "a..b",
            "sip:a@b",
            "a@b",
            "a.example:5060",
            "*.*.example",
            "a.*.example",
            "ex\u{e4}mple.com",
        ] {
            assert_eq!(Targets::parse(&["ok.example".to_owned(), bad.to_owned()]), Err(bad.to_owned()));
        }
        let all = ["A.example", "*.B.example", "192.0.2.7", "+49"].map(str::to_owned);
        let shown = serde_json::to_string(&Targets::parse(&all).expect("they are targets")).expect("it serializes");
        assert_eq!(shown, r#"["a.example","*.b.example","192.0.2.7/32","+49"]"#);
    }
}
