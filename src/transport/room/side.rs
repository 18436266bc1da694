//! One peer connection to a room server, and the servers that help to find a path to it.

use std::net::IpAddr;
use std::sync::Arc;

use super::messages::{IceServerInfo, SignalTarget};
use crate::config::Secret;
use crate::provider::guard::Guard;
use crate::transport::webrtc::{
    Arrived, Candidate, ChannelNews, IceServer, MediaPeer, Part, Peer, PeerFault, PeerSettings, PeerState, PeerStreams,
};

/// Candidates that may wait for the first description.
const MAX_EARLY: usize = 32;

/// Addresses of helping servers that are used.
const MAX_URLS: usize = 4;

/// News of a peer connection.
pub(super) enum SideNews {
    State(PeerState),
    Channel(ChannelNews),
    Packet(Arrived),
    Candidate(Candidate),
    /// The other side is at an address that is not allowed, which closed the connection.
    Refused(PeerFault),
    /// Its streams are over.
    Gone,
}

/// A peer connection with everything that it tells.
pub(super) struct Side {
    pub target: SignalTarget,
    pub peer: Arc<Peer>,
    streams: PeerStreams,
    is_described: bool,
    early: Vec<Candidate>,
    /// True once the guard has allowed the path in use.
    is_judged: bool,
}

impl Side {
    /// Returns a connection that nothing was said on yet.
    pub async fn new(settings: PeerSettings, part: Part) -> Result<Side, PeerFault> {
        let target = if part == Part::Subscriber { SignalTarget::Subscriber } else { SignalTarget::Publisher };
        let (peer, streams) = Peer::with_part(settings, part).await?;
        Ok(Side { target, peer: Arc::new(peer), streams, is_described: false, early: Vec::new(), is_judged: false })
    }

    /// Makes an offer with the candidates that were found.
    pub async fn offer(&mut self) -> Result<String, PeerFault> {
        let sdp = self.peer.offer(false).await?;
        self.forget_candidates();
        Ok(sdp)
    }

    /// Takes the answer to the last offer.
    pub async fn accept(&mut self, sdp: &str) -> Result<(), PeerFault> {
        self.peer.accept(sdp).await?;
        self.add_early().await
    }

    /// Takes an offer. Returns the answer.
    pub async fn answer(&mut self, sdp: &str) -> Result<String, PeerFault> {
        let answer = self.peer.answer(sdp).await?;
        self.forget_candidates();
        self.add_early().await?;
        Ok(answer)
    }

    /// Takes a candidate of the server, which may come before its description.
    pub async fn add(&mut self, candidate: Candidate) -> Result<(), PeerFault> {
        if self.is_described {
            return self.peer.add_candidate(&candidate).await.map(drop);
        }
        if self.early.len() < MAX_EARLY {
            self.early.push(candidate);
        }
        Ok(())
    }

    /// True when media can flow, over a path that is allowed.
    pub fn is_connected(&self) -> bool {
        self.is_judged && matches!(*self.streams.state.borrow(), PeerState::Connected | PeerState::Quiet)
    }

    /// Returns the next news. Safe to drop and call again.
    pub async fn next(&mut self) -> SideNews {
        // A path may be one that a check has taught, and a connection that comes back may have another one.
        if !self.is_judged && *self.streams.state.borrow() == PeerState::Connected {
            match self.peer.judge_path().await {
                Ok(()) => {
                    self.is_judged = true;
                    return SideNews::State(PeerState::Connected);
                }
                Err(fault) => return SideNews::Refused(fault),
            }
        }
        let PeerStreams { state, candidates, packets, channels } = &mut self.streams;
        tokio::select! {
            changed = state.changed() => match changed {
                Ok(()) => {
                    let now = *state.borrow_and_update();
                    self.is_judged &= now != PeerState::Connected;
                    SideNews::State(now)
                }
                Err(_) => SideNews::Gone,
            },
            Some(news) = channels.recv() => SideNews::Channel(news),
            Some(packet) = packets.recv() => SideNews::Packet(packet),
            Some(candidate) = candidates.recv() => SideNews::Candidate(candidate),
        }
    }

    async fn add_early(&mut self) -> Result<(), PeerFault> {
        self.is_described = true;
        for candidate in std::mem::take(&mut self.early) {
            self.peer.add_candidate(&candidate).await?;
        }
        Ok(())
    }

    /// Forgets candidates that are in the description anyway.
    fn forget_candidates(&mut self) {
        while self.streams.candidates.try_recv().is_ok() {}
    }
}

/// Returns the servers that the room server names, as far as they can be used and the guard allows their addresses.
pub(super) async fn helpers(told: Vec<IceServerInfo>, guard: &Guard) -> Vec<IceServer> {
    let mut found = Vec::new();
    for server in told {
        let mut urls = Vec::new();
        for url in server.urls.iter().take(MAX_URLS) {
            urls.extend(allowed_url(url, guard).await);
        }
        let credential = (!server.credential.is_empty()).then(|| Secret::new(server.credential));
        if !urls.is_empty() {
            found.push(IceServer { urls, username: server.username, credential });
        }
    }
    found
}

/// Returns the address of a server (RFC 7064, RFC 7065) with the host looked up; `None` for one that is not used.
async fn allowed_url(url: &str, guard: &Guard) -> Option<String> {
    let (scheme, rest) = url.split_once(':')?;
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    if !matches!(scheme, "stun" | "turn") || query.is_some_and(|query| query != "transport=udp") {
        return None;
    }
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port: u16 = port.unwrap_or("3478").parse().ok()?;
    let addresses = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => guard.names(host).await.ok()?,
    };
    let address = addresses.into_iter().find(|address| guard.allows(*address))?;
    let place = std::net::SocketAddr::new(address, port);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("{scheme}:{place}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn helping_servers_are_judged() {
        let check = async |url: &str, allow: bool, expect: Option<&str>| {
            assert_eq!(allowed_url(url, &Guard::new(allow)).await.as_deref(), expect, "{url}");
        };
        check("stun:192.0.2.1:3478", true, Some("stun:192.0.2.1:3478")).await;
        check("turn:127.0.0.1:5349?transport=udp", true, Some("turn:127.0.0.1:5349?transport=udp")).await;
        check("turn:127.0.0.1:5349?transport=udp", false, None).await;
        check("stun:[::1]", true, Some("stun:[::1]:3478")).await;
        check("turn:127.0.0.1:5349?transport=tcp", true, None).await;
        check("turns:127.0.0.1:5349", true, None).await;
        check("stun:127.0.0.1:x", true, None).await;
        check("", true, None).await;
        let told = IceServerInfo { urls: vec!["turns:x".into()], ..IceServerInfo::default() };
        assert!(helpers(vec![told], &Guard::new(true)).await.is_empty());
    }
}
