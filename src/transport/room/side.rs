//! One peer connection to a room server, and the servers that help to find a path to it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ringer_base::config::Secret;
use ringer_base::guard::Guard;
use tokio::time::timeout;

use super::messages::{IceServerInfo, SignalTarget};
use crate::webrtc::{
    Arrived, Candidate, ChannelNews, IceServer, MediaPeer, Part, Peer, PeerFault, PeerSettings, PeerState, PeerStreams,
};

/// Candidates that may wait for the first description.
const MAX_EARLY: usize = 32;

/// Helping servers that are used, and addresses of each.
const MAX_SERVERS: usize = 8;
const MAX_URLS: usize = 4;

/// Longest time for looking up the name of a relay that the room server names: orders and signs of life wait meanwhile.
const LOOKING_UP: Duration = Duration::from_secs(2);

/// The same for a server that only tells this side its own address, which the room server learns from any packet.
const LOOKING_UP_STUN: Duration = Duration::from_millis(100);

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
    /// Candidates of this side that the description did not have.
    late: VecDeque<Candidate>,
    /// True once the guard has allowed the path in use.
    is_judged: bool,
}

impl Side {
    /// Returns a connection that nothing was said on yet.
    pub(super) async fn new(settings: PeerSettings, part: Part) -> Result<Side, PeerFault> {
        let target = if part == Part::Subscriber { SignalTarget::Subscriber } else { SignalTarget::Publisher };
        let (peer, streams) = Peer::with_part(settings, part).await?;
        Ok(Side {
            target,
            peer: Arc::new(peer),
            streams,
            is_described: false,
            early: Vec::new(),
            late: VecDeque::new(),
            is_judged: false,
        })
    }

    /// Makes an offer with the candidates that were found.
    pub(super) async fn offer(&mut self) -> Result<String, PeerFault> {
        let sdp = self.peer.offer(false).await?;
        self.forget_candidates(&sdp);
        Ok(sdp)
    }

    /// Takes the answer to the last offer.
    pub(super) async fn accept(&mut self, sdp: &str) -> Result<(), PeerFault> {
        self.peer.accept(sdp).await?;
        self.add_early().await
    }

    /// Takes an offer. Returns the answer.
    pub(super) async fn answer(&mut self, sdp: &str) -> Result<String, PeerFault> {
        let answer = self.peer.answer(sdp).await?;
        self.forget_candidates(&answer);
        self.add_early().await?;
        Ok(answer)
    }

    /// Takes a candidate of the server, which may come before its description.
    pub(super) async fn add(&mut self, candidate: Candidate) -> Result<(), PeerFault> {
        if self.is_described {
            return self.peer.add_candidate(&candidate).await.map(drop);
        }
        if self.early.len() < MAX_EARLY {
            self.early.push(candidate);
        }
        Ok(())
    }

    /// True when media can flow, over a path that is allowed.
    pub(super) fn is_connected(&self) -> bool {
        self.is_judged && matches!(*self.streams.state.borrow(), PeerState::Connected | PeerState::Quiet)
    }

    /// Returns the next news. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> SideNews {
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
        if let Some(candidate) = self.late.pop_front() {
            return SideNews::Candidate(candidate);
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
    fn forget_candidates(&mut self, sdp: &str) {
        while let Ok(candidate) = self.streams.candidates.try_recv() {
            if !sdp.contains(&candidate.line) {
                self.late.push_back(candidate);
            }
        }
    }
}

/// Returns the servers that the room server names, as far as they can be used and the guard allows their addresses.
/// Names are looked up at once; one that is not found in time is left out.
pub(super) async fn helpers(servers: Vec<IceServerInfo>, guard: &Guard) -> Vec<IceServer> {
    let look_up = async |url: &String| {
        let within = if url.starts_with("stun:") { LOOKING_UP_STUN } else { LOOKING_UP };
        timeout(within, allowed_url(url, guard)).await.ok().flatten()
    };
    let found = join_all(
        servers.iter().take(MAX_SERVERS).map(|server| join_all(server.urls.iter().take(MAX_URLS).map(look_up))),
    )
    .await;
    let usable = servers.into_iter().zip(found).filter_map(|(server, found)| {
        let urls: Vec<String> = found.into_iter().flatten().collect();
        let credential = (!server.credential.is_empty()).then(|| Secret::new(server.credential));
        (!urls.is_empty()).then_some(IceServer { urls, username: server.username, credential })
    });
    usable.collect()
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

    /// A name that nobody knows is left out long before the names of relays would be.
    #[tokio::test]
    async fn names_of_stun_servers_are_not_waited_for() {
        let guard = Guard::new(true).with_names(|_| Box::pin(std::future::pending()));
        let server_of = |url: &str| IceServerInfo { urls: vec![url.to_owned(); 2], ..IceServerInfo::default() };
        let all = ["stun:a.example", "stun:127.0.0.1:9", "stun:b.example"].map(server_of).to_vec();
        let found = timeout(LOOKING_UP, helpers(all, &guard)).await.expect("in time");
        assert_eq!(found.len(), 1, "{found:?}");
    }

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
        let server = IceServerInfo { urls: vec!["turns:x".into()], ..IceServerInfo::default() };
        assert!(helpers(vec![server], &Guard::new(true)).await.is_empty());
    }
}
