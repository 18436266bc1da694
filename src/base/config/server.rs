//! Address of the API, and time limits of its clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use serde::Serialize;
use url::Host;

use super::Source;

/// Default of the most connections, where there are files for them.
const MOST_CONNECTIONS: usize = 10_000;
/// Files that neither calls nor connections get: database, logs, programs of speech.
const KEPT_FILES: u64 = 100;
/// Least number of connections, however few files there are.
const LEAST_CONNECTIONS: u64 = 16;

/// Longest time limit in seconds: a day.
const MOST_S: u64 = 86_400;

/// Seconds that a lease may take.
const LEASE_S: RangeInclusive<u64> = 3..=3600;

/// Settings of the section `[server]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Server {
    /// Address of the HTTP API.
    pub listen: SocketAddr,
    /// Name of this engine among those of its database; `None`: that of the host, and a part of its data folder's.
    pub name: Option<String>,
    /// Start of URLs that lead to this engine and to no other of its database; `None`: that of `listen`.
    pub own_url: Option<String>,
    /// Seconds without a sign of life after which others take over what an engine did.
    pub lease_s: u64,
    /// Seconds for which running calls go on when the engine is drained; `None`: until each ends.
    pub drain_timeout_s: Option<u64>,
    /// Start of absolute URLs in answers; `None`: they are paths.
    pub public_url: Option<String>,
    /// Origins that a browser may call from; `*` is any.
    pub cors_origins: Vec<String>,
    /// Seconds to receive the head of a request; a connection without a request is kept as long.
    pub header_timeout_s: u64,
    /// Seconds to receive a body.
    pub body_timeout_s: u64,
    /// Seconds to receive a body on routes that take a file.
    pub upload_timeout_s: u64,
    /// Seconds from a request to its answer.
    pub request_timeout_s: u64,
    /// Seconds in which a client must read something of its answer.
    pub write_timeout_s: u64,
    /// Most connections at the same time.
    pub max_connections: usize,
    /// Most connections of one address at the same time.
    pub max_connections_per_address: usize,
    /// Most megabytes (2^20 bytes) of request bodies in memory at the same time.
    pub max_bodies_mb: usize,
    /// Warning that fewer connections are possible than were asked for; `None`: as many are.
    #[serde(skip)]
    pub narrowed: Option<String>,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            name: None,
            own_url: None,
            lease_s: 120,
            drain_timeout_s: None,
            public_url: None,
            cors_origins: Vec::new(),
            header_timeout_s: 30,
            body_timeout_s: 60,
            upload_timeout_s: 900,
            request_timeout_s: 600,
            write_timeout_s: 60,
            max_connections: MOST_CONNECTIONS,
            max_connections_per_address: 256,
            max_bodies_mb: 1024,
            narrowed: None,
        }
    }
}

impl Server {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.read_parsed("server.listen", "an address like 127.0.0.1:8080", |text| text.parse().ok(), &mut self.listen);
        from.maybe_text("server.public_url", &mut self.public_url);
        from.list("server.cors_origins", &mut self.cors_origins);
        let name = |text: &str| is_name(text).then(|| Some(text.to_owned()));
        from.read_parsed("server.name", "letters, digits, - and _, at most 64", name, &mut self.name);
        let url = |text: &str| own_url(text).map(Some);
        from.read_parsed("server.own_url", "an address like http://10.0.0.5:8080", url, &mut self.own_url);
        from.whole("server.lease_s", LEASE_S, &mut self.lease_s);
        from.maybe_whole("server.drain_timeout_s", 0..=MOST_S, &mut self.drain_timeout_s);
        for (name, seconds) in [
            ("server.header_timeout_s", &mut self.header_timeout_s),
            ("server.body_timeout_s", &mut self.body_timeout_s),
            ("server.upload_timeout_s", &mut self.upload_timeout_s),
            ("server.request_timeout_s", &mut self.request_timeout_s),
            ("server.write_timeout_s", &mut self.write_timeout_s),
        ] {
            from.whole(name, 1..=MOST_S, seconds);
        }
    }

    /// Reads the limits of connections and bodies. `files`: open files that the calls leave.
    pub(super) fn read_connections(&mut self, from: &mut Source, files: u64) {
        let possible = files.saturating_sub(KEPT_FILES).max(LEAST_CONNECTIONS) as usize;
        self.max_connections = MOST_CONNECTIONS.min(possible);
        from.whole("server.max_connections", 1..=1_000_000, &mut self.max_connections);
        from.whole("server.max_connections_per_address", 1..=1_000_000, &mut self.max_connections_per_address);
        from.whole("server.max_bodies_mb", 1..=1 << 20, &mut self.max_bodies_mb);
        if self.max_connections > possible {
            let (asked, most) = (self.max_connections, possible);
            self.narrowed = Some(format!(
                "server.max_connections = {asked}: limits.max_calls leaves open files for {most} connections (ulimit -n or \
                 LimitNOFILE= raises it)"
            ));
            self.max_connections = possible;
        }
    }

    /// Returns the host of `public_url` where others reach this machine under it; `None`: there is none.
    pub fn public_host(&self) -> Option<String> {
        let url = url::Url::parse(self.public_url.as_deref()?).ok()?;
        let is_local = match url.host()? {
            Host::Domain(name) => name.eq_ignore_ascii_case("localhost"),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        url.host_str().filter(|_| !is_local).map(str::to_owned)
    }

    /// True if others reach a listener of this machine through a proxy.
    pub(super) fn is_forwarded(&self) -> bool {
        self.public_host().is_some()
    }
}

/// True for a text that can be the name of an engine.
fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Returns the start of URLs, without a slash at its end; `None`: it is none.
fn own_url(text: &str) -> Option<String> {
    let url = url::Url::parse(text).ok()?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let is_web = matches!(url.scheme(), "http" | "https") && url.host().is_some();
    (is_web && is_plain).then(|| text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_of_engines_are_plain() {
        for (text, expect) in [("a", true), ("host-1_b", true), ("", false), ("a.b", false), (&"a".repeat(65), false)] {
            assert_eq!(is_name(text), expect, "{text}");
        }
        for (text, expect) in [
            ("http://10.0.0.5:8080/", Some("http://10.0.0.5:8080")),
            ("https://a.example/x", Some("https://a.example/x")),
            ("ws://a.example", None),
            ("http://a.example/?b", None),
            ("10.0.0.5:8080", None),
        ] {
            assert_eq!(own_url(text).as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn a_public_address_names_a_host_of_others() {
        for (url, expect) in [
            (None, None),
            (Some("https://calls.example"), Some("calls.example")),
            (Some("https://calls.example:8443/ringer"), Some("calls.example")),
            (Some("https://[2001:db8::1]"), Some("[2001:db8::1]")),
            (Some("http://localhost:8080"), None),
            (Some("http://127.0.0.1:8080"), None),
            (Some("http://[::1]"), None),
        ] {
            let server = Server { public_url: url.map(str::to_owned), ..Server::default() };
            assert_eq!(server.public_host().as_deref(), expect, "{url:?}");
        }
    }
}
