//! Typed header values (RFC 3261 20, 25.1).

use std::fmt;

use crate::method::Method;
use crate::text::{end_of_quoted, quote, unquote};
use crate::uri::{Params, Uri, split_host_port};

/// Value of From, To, Contact, Route and the like: `"Name" <uri>;params`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAddr {
    /// Display name, without quotation marks; `None` when there is none.
    pub display: Option<String>,
    /// Address as it was written.
    pub uri: String,
    /// Parameters after the address, such as `tag`.
    pub params: Params,
}

impl NameAddr {
    /// Reads one value (RFC 3261 20.10). Without `<`, parameters after a `;` belong to the header.
    pub fn parse(text: &str) -> Option<NameAddr> {
        let text = text.trim();
        let open = match text.strip_prefix('"') {
            Some(rest) => end_of_quoted(rest)? + 2 + text[end_of_quoted(rest)? + 2..].find('<')?,
            None => match text.find('<') {
                Some(open) => open,
                None => {
                    let (uri, params) = text.split_once(';').unwrap_or((text, ""));
                    let uri = uri.trim();
                    let good = uri.contains(':') && !uri.contains(char::is_whitespace);
                    return good.then(|| NameAddr { display: None, uri: uri.into(), params: Params::parse(params) });
                }
            },
        };
        let close = open + text[open..].find('>')?;
        let display = unquote(text[..open].trim());
        let params = text[close + 1..].trim_start();
        if !params.is_empty() && !params.starts_with(';') {
            return None;
        }
        Some(NameAddr {
            display: (!display.is_empty()).then_some(display),
            uri: text[open + 1..close].trim().to_owned(),
            params: Params::parse(params),
        })
    }

    /// Returns the `tag` parameter, empty when there is none.
    pub fn tag(&self) -> &str {
        self.params.get("tag").unwrap_or("")
    }

    /// Returns the user part of the address, escapes as written; empty when there is none.
    pub fn user(&self) -> String {
        Uri::parse(&self.uri).ok().and_then(|uri| uri.user).unwrap_or_default()
    }
}

impl fmt::Display for NameAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(display) = &self.display {
            write!(f, "{} ", quote(display))?;
        }
        write!(f, "<{}>{}", self.uri, self.params)
    }
}

/// One Via value (RFC 3261 20.42).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// Version, `2.0` in SIP of today; another one is refused, and copied into the refusal.
    pub version: String,
    /// Transport as it was written: `UDP`, `TCP`, `TLS` or another one.
    pub transport: String,
    /// Host of the sent-by part: a name or an address.
    pub host: String,
    /// Port of the sent-by part; `None` when it is left out.
    pub port: Option<u16>,
    /// Parameters: `branch`, `received`, `rport` and others.
    pub params: Params,
}

impl Via {
    /// Reads one value, blanks around every mark allowed.
    pub fn parse(text: &str) -> Option<Via> {
        let (head, params) = text.split_once(';').unwrap_or((text, ""));
        let mut parts = head.splitn(3, '/').map(str::trim);
        let is_sip = parts.next()?.eq_ignore_ascii_case("SIP");
        let version = parts.next().filter(|version| is_sip && is_version(version))?.to_owned();
        let (transport, sent_by) = parts.next()?.split_once(char::is_whitespace)?;
        let (host, port) = split_host_port(sent_by)?;
        Some(Via { version, transport: transport.into(), host: host.into(), port, params: Params::parse(params) })
    }

    /// Returns the `branch` parameter, which names the transaction; empty when there is none.
    pub fn branch(&self) -> &str {
        self.params.get("branch").unwrap_or("")
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SIP/{}/{} {}", self.version, self.transport, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "{}", self.params)
    }
}

/// Number and method of a request, as CSeq carries them (RFC 3261 20.16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CSeq {
    /// Sequence number, below 2^31 (RFC 3261 8.1.1.5).
    pub seq: u32,
    /// Method of the request that has this number.
    pub method: Method,
}

impl CSeq {
    /// Reads a value like `0009 INVITE`; `None` when the number is missing or too large.
    pub fn parse(text: &str) -> Option<CSeq> {
        let (seq, method) = text.trim().split_once(char::is_whitespace)?;
        let seq = seq.parse().ok().filter(|seq| *seq < 1 << 31)?;
        Some(CSeq { seq, method: Method::parse(method.trim()) })
    }
}

/// True for digits with a point between them (RFC 3261 25.1, `SIP-Version`).
fn is_version(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once('.').is_some_and(|(major, minor)| digits(major) && digits(minor))
}
