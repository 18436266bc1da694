//! Address of the API, and time limits of its clients.

use std::net::{Ipv4Addr, SocketAddr};

use serde::Serialize;

use super::Source;

/// Longest time limit in seconds: a day.
const MOST_S: u64 = 86_400;

/// Settings of the section `[server]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Server {
    /// Address of the HTTP API.
    pub listen: SocketAddr,
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
}

impl Default for Server {
    fn default() -> Server {
        Server {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            public_url: None,
            cors_origins: Vec::new(),
            header_timeout_s: 30,
            body_timeout_s: 60,
            upload_timeout_s: 900,
            request_timeout_s: 600,
            write_timeout_s: 60,
        }
    }
}

impl Server {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.read_parsed("server.listen", "an address like 127.0.0.1:8080", |text| text.parse().ok(), &mut self.listen);
        from.maybe_text("server.public_url", &mut self.public_url);
        from.list("server.cors_origins", &mut self.cors_origins);
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
}
