//! The WebSocket to a room server: which form of the protocol it knows, and why it refuses.

use std::time::Duration;

use ringer_base::config::Secret;
use ringer_base::guard::Guard;
use ringer_base::post::{Poster, Posting};

use super::fault::Reason;
use super::signal::{Flow, Rejoin, address, validation};
use crate::websocket::dial::{DialFault, Dialer};
use crate::websocket::handshake::Upgrade;
use crate::websocket::link::{Link, LinkLimits};

/// Bytes of the longest message of a server: a room of many participants tells of all of them at once.
const MAX_MESSAGE: usize = 1 << 20;

/// Bytes of a refusal's words that are read.
const REFUSAL_BYTES: usize = 1024;

/// Characters of a refusal's words that are told.
const REFUSAL_CHARS: usize = 200;

/// Time for the words of a refusal.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(3);

/// Way to a room server.
#[derive(Clone)]
pub(super) struct Way {
    pub dialer: Dialer,
    pub guard: Guard,
    pub server_url: String,
}

/// A connection that was made.
pub(super) struct Connected {
    pub link: Link,
    pub flow: Flow,
    /// The certificate of the server was not verified; `host:port` as in the settings.
    pub unverified: Option<String>,
}

impl Way {
    /// Connects within `within`: in the form `flow`, or in the newest one that the server knows. `rejoin`: name of the
    /// participant whose connection is taken up.
    pub(super) async fn connect(
        self,
        token: Secret,
        flow: Option<Flow>,
        rejoin: Option<String>,
        within: Duration,
    ) -> Result<Connected, Reason> {
        let flows: &[Flow] = match flow {
            None => &[Flow::Joint, Flow::Split],
            Some(Flow::Joint) => &[Flow::Joint],
            Some(Flow::Split) => &[Flow::Split],
        };
        let mut last = None;
        for flow in flows {
            let rejoin = rejoin.as_deref().map(|sid| Rejoin { sid });
            let url = address(&self.server_url, *flow, rejoin).map_err(Reason::Address)?;
            let headers = vec![("Authorization".to_owned(), format!("Bearer {}", token.expose()))];
            let upgrade = Upgrade { url, headers, subprotocols: Vec::new() };
            let limits = limits();
            match self.dialer.connect(&upgrade, &self.guard, limits, within).await {
                Ok(dialled) => {
                    return Ok(Connected { link: dialled.link, flow: *flow, unverified: dialled.unverified });
                }
                Err(fault) => {
                    let is_unknown = *flow == Flow::Joint && fault.status() == Some(404);
                    last = Some(fault);
                    if !is_unknown {
                        break;
                    }
                }
            }
        }
        let fault = last.map_or_else(|| DialFault::NoSocket("nothing was tried".to_owned()), in_words_of_rooms);
        let words = match fault.status() {
            Some(_) => self.words_of_refusal(&token).await,
            None => None,
        };
        Err(Reason::Dial(fault, words))
    }

    /// Asks the server why it lets nobody in.
    async fn words_of_refusal(&self, token: &Secret) -> Option<String> {
        let url = validation(&self.server_url)?;
        let poster = Poster::new(self.guard.clone(), REFUSAL_PATIENCE);
        let headers = [("Authorization", format!("Bearer {}", token.expose()))];
        let posting = Posting {
            method: "GET",
            url: &url,
            headers: &headers,
            body: String::new(),
            patience: REFUSAL_PATIENCE,
            answer_bytes: REFUSAL_BYTES,
        };
        let posted = poster.exchange(posting).await.ok()?;
        if posted.status == 404 || posted.status < 400 {
            return None;
        }
        read_refusal(&posted.body, token)
    }
}

/// Returns the limits of the signalling. The protocol has signs of life of its own, and every message of it counts.
fn limits() -> LinkLimits {
    let none = Duration::ZERO;
    LinkLimits { max_message_bytes: MAX_MESSAGE, ping_interval: none, ping_timeout: none, max_audio: None }
}

/// Returns the words of a refusal in one line; `None` for what is no plain text, and for words that hold the token.
fn read_refusal(body: &[u8], token: &Secret) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REFUSAL_CHARS).collect();
    let plain = plain.trim();
    let is_secret = text.contains(token.expose()) && !token.expose().is_empty();
    (!plain.is_empty() && !plain.starts_with('<') && !is_secret).then(|| plain.to_owned())
}

/// Returns the fault in the words of rooms: the dialler speaks of the settings of WebSockets.
fn in_words_of_rooms(fault: DialFault) -> DialFault {
    match fault {
        DialFault::Refused { status, why } if why.starts_with("websocket_url ") => {
            DialFault::Refused { status, why: why.replacen("websocket_url", "the address of the room server", 1) }
        }
        DialFault::Refused { status: Some(404), .. } => DialFault::Refused {
            status: Some(404),
            why: "the server answered 404: it may be no room server".to_owned(),
        },
        fault => fault,
    }
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;
    use crate::websocket::link::{Duplex, LinkNews, MAX_AUDIO, socket_config};
    use crate::websocket::protocol::Message;

    /// A server that does not read for a while still gets every message, in order.
    #[tokio::test]
    async fn messages_to_a_slow_server_are_not_dropped() {
        let (here, there) = tokio::io::duplex(64);
        let socket = async |end: tokio::io::DuplexStream, role| {
            let end: Box<dyn Duplex> = Box::new(end);
            Link::new(WebSocketStream::from_raw_socket(end, role, Some(socket_config(limits()))).await, limits())
        };
        let (mut near, mut far) = (socket(here, Role::Client).await, socket(there, Role::Server).await);
        let count = 4 * MAX_AUDIO as u8;
        (0..count).for_each(|n| near.send(Message::Binary(vec![n; 32])));
        let mut found = Vec::new();
        while found.len() < usize::from(count) {
            tokio::select! {
                news = near.next() => panic!("the server says nothing: {news:?}"),
                news = far.next() => match news {
                    LinkNews::Message(_, Message::Binary(bytes)) => found.push(bytes[0]),
                    other => panic!("{other:?}"),
                },
            }
        }
        assert!(found.into_iter().eq(0..count) && near.unsent_count() == 0);
    }

    #[test]
    fn refusals_are_told_without_secrets() {
        let check = |body: &str, expect: Option<&str>| {
            assert_eq!(read_refusal(body.as_bytes(), &Secret::new("t0ken".into())).as_deref(), expect, "{body}");
        };
        check("invalid token: expired\n", Some("invalid token: expired"));
        check("", None);
        check("<html>", None);
        check("t0ken is bad", None);
        check(&"x".repeat(1000), Some(&"x".repeat(200)));
    }

    #[test]
    fn faults_are_told_in_words_of_rooms() {
        let why = "websocket_url points to a host that is not allowed".to_owned();
        let message = in_words_of_rooms(DialFault::Refused { status: None, why }).text();
        assert_eq!(message, "the address of the room server points to a host that is not allowed");
    }
}
