//! The way to an agent's server: name, TCP, TLS and the upgrade request (RFC 6455 4.1). Redirects are not followed, and
//! no extension is offered.

mod client;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ringer_base::error::is_out_of_resources;
use ringer_base::guard::Guard;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use url::{Host, Url};

use super::handshake::Upgrade;
use super::link::{Duplex, Link, LinkLimits};
use crate::sip::tls::{TlsSettings, explain, unverified_client, verified_client};

/// Time for an address of a name while there are others, so that one that is silent does not take all of it.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(3);

/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Bytes that the system keeps for a server that does not read, about: 1 s of audio. It may double them.
const SEND_BYTES: u32 = 32 * 1024;

/// Way to servers of agents.
#[derive(Clone)]
pub struct Dialer {
    verified: Arc<ClientConfig>,
    unverified: Arc<ClientConfig>,
    insecure_hosts: Arc<[String]>,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dialer({} hosts are not verified)", self.insecure_hosts.len())
    }
}

/// Reasons for which no WebSocket came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialFault {
    /// The server refused the credentials with this status: 401 or 403.
    Unauthorized(u16),
    /// The server takes no more calls at the moment, with this status: 429 or 503.
    Busy(u16),
    /// The server gave another answer than 101, or none that is one; another attempt would bring the same.
    Refused {
        /// Status code; `None` where the answer was no HTTP or no WebSocket.
        status: Option<u16>,
        /// Reason in plain words.
        why: String,
    },
    /// This machine had no socket for the connection; the text says why.
    NoSocket(String),
    /// The server could not be reached, failed with a status from 500 on, or took too long.
    Unreachable {
        /// Status code, where there was one.
        status: Option<u16>,
        /// Reason in plain words.
        why: String,
    },
}

impl DialFault {
    /// True when another attempt may be made.
    pub fn may_retry(&self) -> bool {
        matches!(self, DialFault::Busy(_) | DialFault::NoSocket(_) | DialFault::Unreachable { .. })
    }

    /// Returns the status code of the answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            DialFault::Unauthorized(status) | DialFault::Busy(status) => Some(*status),
            DialFault::NoSocket(_) => None,
            DialFault::Refused { status, .. } | DialFault::Unreachable { status, .. } => *status,
        }
    }

    /// Returns the reason in words, without secrets.
    pub fn text(&self) -> String {
        match self {
            DialFault::Unauthorized(status) | DialFault::Busy(status) => format!("the server answered {status}"),
            DialFault::NoSocket(why) | DialFault::Refused { why, .. } | DialFault::Unreachable { why, .. } => {
                why.clone()
            }
        }
    }
}

/// A connection that was opened.
#[derive(Debug)]
pub struct Dialled {
    /// The connection that was opened.
    pub link: Link,
    /// Address that was connected to.
    pub address: SocketAddr,
    /// The certificate of the server was not verified; `host:port` as in the settings.
    pub unverified: Option<String>,
}

impl Dialer {
    /// Returns a dialer with these authorities and exceptions.
    pub fn new(settings: &TlsSettings) -> Dialer {
        Dialer {
            verified: verified_client(&settings.roots),
            unverified: unverified_client(),
            insecure_hosts: settings.insecure_hosts.clone().into(),
        }
    }

    /// Connects and upgrades within `patience`.
    ///
    /// # Errors
    /// See [`DialFault`].
    pub async fn connect(
        &self,
        upgrade: &Upgrade,
        guard: &Guard,
        limits: LinkLimits,
        patience: Duration,
    ) -> Result<Dialled, DialFault> {
        let late = || unreachable(format!("no WebSocket came about within {} ms", patience.as_millis()));
        timeout(patience, self.open(upgrade, guard, limits)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn open(&self, upgrade: &Upgrade, guard: &Guard, limits: LinkLimits) -> Result<Dialled, DialFault> {
        let url = Url::parse(&upgrade.url).map_err(|_| refusal("the address is no URL"))?;
        let is_tls = match url.scheme() {
            "ws" => false,
            "wss" => true,
            _ => return Err(refusal("the address begins with neither ws:// nor wss://")),
        };
        let port = url.port_or_known_default().unwrap_or(if is_tls { 443 } else { 80 });
        let host = url.host().ok_or_else(|| refusal("the address has no host"))?;
        let request = request(upgrade)?;
        let (stream, address) = connect_tcp(&host, port, guard).await?;
        let _ = stream.set_nodelay(true);
        let place = format!("{host}:{port}");
        let is_listed = |place: &str| self.insecure_hosts.iter().any(|host| host.eq_ignore_ascii_case(place));
        let unverified = (is_tls && (is_listed(&place) || is_listed(&address.to_string()))).then(|| place.clone());
        let stream: Box<dyn Duplex> = match is_tls {
            false => Box::new(stream),
            true => {
                let config = if unverified.is_some() { &self.unverified } else { &self.verified };
                let name = server_name(&host)?;
                let connecting = TlsConnector::from(config.clone()).connect(name, stream).await;
                Box::new(connecting.map_err(|error| unreachable(explain(&error, &place)))?)
            }
        };
        let socket = client::upgrade(request, stream, limits).await?;
        Ok(Dialled { link: Link::new(socket, limits), address, unverified })
    }
}

fn refusal(why: &str) -> DialFault {
    DialFault::Refused { status: None, why: why.to_owned() }
}

fn unreachable(why: String) -> DialFault {
    DialFault::Unreachable { status: None, why }
}

/// Returns the upgrade request with the headers of the protocol.
fn request(upgrade: &Upgrade) -> Result<Request<()>, DialFault> {
    let request = upgrade.url.as_str().into_client_request();
    let mut request = request.map_err(|_| refusal("the address cannot be written in a request"))?;
    let headers = request.headers_mut();
    for (name, value) in &upgrade.headers {
        let bad = |_| refusal(&format!("the header {name} cannot be sent"));
        let header = HeaderName::try_from(name.as_str()).map_err(|_| bad(()))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad(()))?;
        value.set_sensitive(header == AUTHORIZATION);
        headers.insert(header, value);
    }
    if !upgrade.subprotocols.is_empty() {
        let value = HeaderValue::from_str(&upgrade.subprotocols.join(", "));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value.map_err(|_| refusal("the subprotocol cannot be sent"))?);
    }
    Ok(request)
}

/// Connects to the first address of the host that takes it, of those that the guard allows.
async fn connect_tcp(host: &Host<&str>, port: u16, guard: &Guard) -> Result<(TcpStream, SocketAddr), DialFault> {
    let found: Vec<IpAddr> = match host {
        Host::Ipv4(address) => vec![(*address).into()],
        Host::Ipv6(address) => vec![(*address).into()],
        Host::Domain(name) => {
            guard.names(name).await.map_err(|_| unreachable(format!("the host {name:?} cannot be resolved")))?
        }
    };
    if found.is_empty() {
        return Err(unreachable(format!("the host {host} has no address")));
    }
    let allowed: Vec<IpAddr> = found.into_iter().filter(|address| guard.allows(*address)).take(MAX_ADDRESSES).collect();
    let mut why = refusal("websocket_url points to a host that is not allowed");
    let mut left = allowed.len();
    for address in allowed {
        left -= 1;
        let place = SocketAddr::new(address, port);
        // One that is silent leaves time for the next.
        let patience = if left > 0 { ADDRESS_PATIENCE } else { Duration::MAX };
        let connected =
            timeout(patience, connect_to(place)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match connected {
            Ok(stream) => return Ok((stream, place)),
            Err(error) => why = fault_of_connect(place, &error),
        }
    }
    Err(why)
}

/// Returns the fault of a connection that did not come about.
fn fault_of_connect(place: SocketAddr, error: &io::Error) -> DialFault {
    match is_out_of_resources(error) {
        true => DialFault::NoSocket(format!("this machine has no socket left: {error}")),
        false => unreachable(format!("{place} cannot be reached: {}", in_words(error))),
    }
}

/// Connects with a small send buffer: audio that the server does not read is not to wait there for minutes.
async fn connect_to(place: SocketAddr) -> io::Result<TcpStream> {
    let socket = if place.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_send_buffer_size(SEND_BYTES)?;
    socket.connect(place).await
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        io::ErrorKind::TimedOut => "it took too long".to_owned(),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "there is no way to it".to_owned(),
        _ => error.to_string(),
    }
}

fn server_name(host: &Host<&str>) -> Result<ServerName<'static>, DialFault> {
    match host {
        Host::Ipv4(address) => Ok(ServerName::IpAddress(IpAddr::from(*address).into())),
        Host::Ipv6(address) => Ok(ServerName::IpAddress(IpAddr::from(*address).into())),
        Host::Domain(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
            .map_err(|_| refusal("the host is no name that a certificate can have")),
    }
}

/// Returns the fault of an answer other than 101.
pub fn fault_of_status(status: u16) -> DialFault {
    let why = match status {
        300..=399 => format!("the server answered {status}, a redirect, which is not followed"),
        _ => format!("the server answered {status} in place of 101"),
    };
    match status {
        401 | 403 => DialFault::Unauthorized(status),
        429 | 503 => DialFault::Busy(status),
        500.. => DialFault::Unreachable { status: Some(status), why },
        _ => DialFault::Refused { status: Some(status), why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_sockets_is_no_fault_of_the_server() {
        let place = SocketAddr::from(([127, 0, 0, 1], 80));
        for (code, own) in [(libc::EMFILE, true), (libc::EADDRNOTAVAIL, true), (libc::ECONNREFUSED, false)] {
            let fault = fault_of_connect(place, &io::Error::from_raw_os_error(code));
            assert_eq!((matches!(fault, DialFault::NoSocket(_)), fault.may_retry()), (own, true), "{fault:?}");
        }
    }

    #[test]
    fn answers_other_than_101_are_told_apart() {
        for (status, may_retry, is_auth) in [
            (200, false, false),
            (302, false, false),
            (400, false, false),
            (401, false, true),
            (403, false, true),
            (404, false, false),
            (426, false, false),
            (429, true, false),
            (500, true, false),
            (503, true, false),
        ] {
            let fault = fault_of_status(status);
            assert_eq!((fault.may_retry(), fault.status()), (may_retry, Some(status)), "{status}");
            assert_eq!(matches!(fault, DialFault::Unauthorized(_)), is_auth, "{status}");
            assert!(fault.text().contains(&status.to_string()), "{status}");
        }
    }

    #[test]
    fn headers_that_cannot_be_sent_are_named_and_their_values_are_not() {
        let upgrade = |name: &str, value: &str| Upgrade {
            url: "ws://h/a?b=c".to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
            subprotocols: vec!["media".to_owned()],
        };
        let made = request(&upgrade("X-Simulation-Result-Id", "7")).expect("it can be sent");
        assert_eq!(made.headers()["X-Simulation-Result-Id"], "7");
        assert_eq!(made.headers()[SEC_WEBSOCKET_PROTOCOL], "media");
        assert_eq!(made.uri(), "ws://h/a?b=c");
        for (name, value) in [("a b", "secret"), ("X-A", "se\ncret")] {
            let why = request(&upgrade(name, value)).expect_err("it cannot be sent").text();
            assert_eq!(why, format!("the header {name} cannot be sent"));
        }
    }
}
