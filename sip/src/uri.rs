//! Addresses: `sip:`, `sips:` (RFC 3261 19.1) and `tel:` (RFC 3966), and the `;name=value` lists they share with
//! headers.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::error::ParseError;
use crate::hop::Transport;

/// Scheme of an address.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Scheme {
    /// Plain SIP, `sip:` (RFC 3261 19.1).
    Sip,
    /// SIP over TLS on every hop, `sips:`.
    Sips,
    /// Telephone number, `tel:` (RFC 3966).
    Tel,
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Scheme::Sip => "sip",
            Scheme::Sips => "sips",
            Scheme::Tel => "tel",
        }
    }
}

/// A `sip:`, `sips:` or `tel:` address. Parts are kept as written (escapes are not undone).
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Uri {
    /// Scheme of the address: `sip`, `sips` or `tel`.
    pub scheme: Scheme,
    /// User part, before the `@`; for `tel:` the number.
    pub user: Option<String>,
    /// Password after a `:` in the user part (deprecated by RFC 3261 19.1.1).
    pub password: Option<String>,
    /// Host: a name, an IPv4 address or an `[IPv6]` reference; empty for `tel:`.
    pub host: String,
    /// Port as it was written; `None` means the transport's default.
    pub port: Option<u16>,
    /// Parameters such as `;transport=tcp;lr`.
    pub params: Params,
    /// Headers after the `?`, without it; empty for none.
    pub headers: String,
}

impl Uri {
    /// Reads an address as it stands in a request line or between `<` and `>`.
    pub fn parse(text: &str) -> Result<Uri, ParseError> {
        let (scheme, rest) = text.split_once(':').ok_or(ParseError::Scheme)?;
        let scheme = match scheme {
            s if s.eq_ignore_ascii_case("sip") => Scheme::Sip,
            s if s.eq_ignore_ascii_case("sips") => Scheme::Sips,
            s if s.eq_ignore_ascii_case("tel") => Scheme::Tel,
            _ => return Err(ParseError::Scheme),
        };
        if rest.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"'))
            || !escapes_ok(rest)
        {
            return Err(ParseError::Address);
        }
        if scheme == Scheme::Tel { Uri::parse_tel(rest) } else { Uri::parse_sip(scheme, rest) }
    }

    /// Reads a destination: `sip:` or `sips:` with both a user and a host.
    pub fn parse_address(text: &str) -> Result<Uri, ParseError> {
        let uri = Uri::parse(text)?;
        match uri.scheme {
            Scheme::Tel => Err(ParseError::Scheme),
            _ if uri.user.is_none() => Err(ParseError::Address),
            _ => Ok(uri),
        }
    }

    /// Returns the transport that the address asks for: TLS for `sips:`, else `;transport=`. `None` when it names none,
    /// or an unknown one.
    pub fn transport(&self) -> Option<Transport> {
        match self.scheme {
            Scheme::Sips => Some(Transport::Tls),
            Scheme::Sip => self.params.get("transport").and_then(Transport::from_name),
            Scheme::Tel => None,
        }
    }

    /// Returns the socket address, when the host is an IP address; by default port 5060, for TLS 5061.
    pub fn socket(&self) -> Option<SocketAddr> {
        self.socket_by(self.transport().unwrap_or_default())
    }

    /// Returns the socket address as [`Uri::socket`] does, with the port of this transport by default.
    pub(crate) fn socket_by(&self, transport: Transport) -> Option<SocketAddr> {
        Some(SocketAddr::new(parse_ip(&self.host)?, self.port.unwrap_or(transport.default_port())))
    }

    fn parse_tel(rest: &str) -> Result<Uri, ParseError> {
        let (number, params) = rest.split_once(';').unwrap_or((rest, ""));
        if number.is_empty() || !number.chars().all(|c| c.is_ascii_hexdigit() || "+-.()*#".contains(c)) {
            return Err(ParseError::Address);
        }
        Ok(Uri {
            scheme: Scheme::Tel,
            user: Some(number.into()),
            password: None,
            host: String::new(),
            port: None,
            params: Params::parse(params),
            headers: String::new(),
        })
    }

    fn parse_sip(scheme: Scheme, rest: &str) -> Result<Uri, ParseError> {
        let (userinfo, rest) = match rest.split_once('@') {
            Some((userinfo, rest)) => (Some(userinfo), rest),
            None => (None, rest),
        };
        let (user, password) = match userinfo.map(|u| u.split_once(':').map_or((u, None), |(u, p)| (u, Some(p)))) {
            Some(("", _)) => return Err(ParseError::Address),
            Some((user, password)) => (Some(user.to_owned()), password.map(str::to_owned)),
            None => (None, None),
        };
        let (rest, headers) = rest.split_once('?').unwrap_or((rest, ""));
        let (hostport, params) = rest.split_once(';').unwrap_or((rest, ""));
        let (host, port) = split_host_port(hostport).ok_or(ParseError::Address)?;
        Ok(Uri {
            scheme,
            user,
            password,
            host: host.into(),
            port,
            params: Params::parse(params),
            headers: headers.into(),
        })
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme.as_str())?;
        if let Some(user) = &self.user {
            f.write_str(user)?;
            if let Some(password) = &self.password {
                write!(f, ":{password}")?;
            }
        }
        if self.scheme != Scheme::Tel {
            let at = if self.user.is_some() { "@" } else { "" };
            write!(f, "{at}{}", self.host)?;
            if let Some(port) = self.port {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "{}", self.params)?;
        if self.headers.is_empty() { Ok(()) } else { write!(f, "?{}", self.headers) }
    }
}

/// Returns the user part for `text`: everything that RFC 3261 25.1 does not allow unescaped becomes `%HH`.
pub fn escape_user(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()&=+$,;?/".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Splits `host[:port]`, where host is a name, an IPv4 address or a bracketed IPv6 reference; blanks around are
/// allowed.
pub(crate) fn split_host_port(text: &str) -> Option<(&str, Option<u16>)> {
    let text = text.trim();
    let end = if text.starts_with('[') { text.find(']')? + 1 } else { text.find(':').unwrap_or(text.len()) };
    let (host, port) = (text[..end].trim(), text[end..].trim_start());
    let good = match host.strip_prefix('[') {
        Some(inner) => inner.trim_end_matches(']').parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
    };
    if !good {
        return None;
    }
    match port.strip_prefix(':') {
        Some(port) => Some((host, Some(port.trim().parse().ok()?))),
        None if port.is_empty() => Some((host, None)),
        None => None,
    }
}

/// Reads an IP address, with or without brackets.
pub(crate) fn parse_ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn escapes_ok(text: &str) -> bool {
    text.split('%').skip(1).all(|part| part.len() >= 2 && part.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

/// A `;name=value;flag` list in its order. Names compare without case.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default)]
pub struct Params(pub Vec<(String, Option<String>)>);

impl Params {
    /// Reads `name=value;flag`, with blanks around the marks; quotation marks are removed from values.
    pub fn parse(text: &str) -> Params {
        let pairs = crate::text::split_quoted(text, ';').into_iter().filter(|part| !part.is_empty()).map(|part| {
            let (name, value) = part.split_once('=').map_or((part, None), |(n, v)| (n, Some(v)));
            (name.trim().to_owned(), value.map(|v| crate::text::unquote(v.trim())))
        });
        Params(pairs.collect())
    }

    /// Returns the value of `name`: `None` when absent, `Some("")` for a flag.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_deref().unwrap_or(""))
    }

    /// True when the parameter `name` is there, with a value or without.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets `name`, in place when it is there already.
    pub fn set(&mut self, name: &str, value: Option<String>) {
        match self.0.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
            Some(pair) => pair.1 = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.0 {
            write!(f, ";{name}")?;
            match value {
                Some(value) if value.chars().any(|c| c.is_whitespace() || matches!(c, '"' | ';' | ',' | '\\')) => {
                    write!(f, "={}", crate::text::quote(value))?
                }
                Some(value) => write!(f, "={value}")?,
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        let check = |text: &str, expect: Option<(Option<&str>, &str, Option<u16>)>| {
            let got = Uri::parse(text).ok();
            let parts = got.as_ref().map(|u| (u.user.as_deref(), u.host.as_str(), u.port));
            assert_eq!(parts, expect, "{text}");
            if let Some(uri) = got {
                assert_eq!(uri.to_string(), text);
            }
        };
        check("sip:alice@example.com", Some((Some("alice"), "example.com", None)));
        check(
            "sips:+15551234567@gw.example:5061;transport=tcp;lr",
            Some((Some("+15551234567"), "gw.example", Some(5061))),
        );
        check("sip:a:secret@[2001:db8::1]:5070?Subject=x", Some((Some("a"), "[2001:db8::1]", Some(5070))));
        check("sip:10.0.0.1", Some((None, "10.0.0.1", None)));
        check("tel:+1-201-555-0123;phone-context=example.com", Some((Some("+1-201-555-0123"), "", None)));
        check(
            "sip:sips%3Auser%40example.com@example.net",
            Some((Some("sips%3Auser%40example.com"), "example.net", None)),
        );
        check(
            "sip:user;par=u%40example.net@example.com",
            Some((Some("user;par=u%40example.net"), "example.com", None)),
        );
        for bad in [
            "",
            "sip:",
            "sip:@h",
            "sip:u@",
            "http://x",
            "sip:u@[::1",
            "sip:u@h:99999",
            "sip:u%4@h",
            "sip:u@h:x",
            "sip:a b@h",
            "tel:abcxyz",
        ] {
            check(bad, None);
        }
        assert_eq!(Uri::parse_address("sip:example.com"), Err(ParseError::Address));
        assert_eq!(Uri::parse_address("tel:+1"), Err(ParseError::Scheme));
        assert_eq!(escape_user("a b@c"), "a%20b%40c");
    }
}
