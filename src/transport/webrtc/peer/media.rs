//! The media of a connection: their path, and their way to a media thread.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use ringer_media::rtp::srtp::{Secure, SrtpParams};
use rtc::peer_connection::transport::{RTCDtlsRole, RTCIceCandidatePair};
use webrtc::peer_connection::{RTCIceCandidate, RTCIceCandidateType, StatsSelector};

use super::super::direct::{Direct, Passing};
use super::super::keys::{Heard, suite_of};
use super::super::ports::Ports;
use super::super::tap::{Carried, Counts};
use super::super::{MediaRoute, PeerState, TakenOver};
use super::Peer;

/// Numbers of reports that are left out when a media thread goes on: those that the library may still send.
const REPORTS_APART: u32 = 64;

/// State of the media of a connection.
pub(super) struct Media {
    pub(super) ports: Ports,
    pub(super) heard: Heard,
    pub(super) carried: Arc<Mutex<Carried>>,
    pub(super) counts: Arc<Counts>,
    /// True once a media thread has taken them over.
    pub(super) was_taken: AtomicBool,
}

impl Media {
    /// Returns a second socket on the port of this address.
    pub(super) fn socket(&self, here: SocketAddr) -> Option<UdpSocket> {
        let made = self.ports.media_socket(here);
        if let Err(error) = &made {
            tracing::debug!(%error, "media stay where they are: no second socket");
        }
        made.ok().flatten()
    }
}

impl Peer {
    /// Returns the path in use.
    async fn pair(&self) -> Option<RTCIceCandidatePair> {
        let transport = match self.connection.sctp().await {
            Some(sctp) => sctp.transport(),
            // There are no data channels.
            None => match self.connection.get_senders().await.first() {
                Some(sender) => sender.transport().await.ok()??,
                None => self.connection.get_receivers().await.first()?.transport().await.ok()??,
            },
        };
        transport.ice_transport().get_selected_candidate_pair().await.ok()?
    }

    /// Returns the address of this side and that of the other one on the path in use.
    pub(super) async fn path(&self) -> Option<(SocketAddr, SocketAddr)> {
        let pair = self.pair().await?;
        Some((address(pair.local())?, address(pair.remote())?))
    }

    /// Returns the path of the media.
    pub(super) async fn media_route(&self) -> MediaRoute {
        if !matches!(*self.state.borrow(), PeerState::Connected | PeerState::Quiet) {
            return MediaRoute::Lost;
        }
        let Some(pair) = self.pair().await else { return MediaRoute::Lost };
        let (local, remote) = (pair.local(), pair.remote());
        let here = match local.typ {
            RTCIceCandidateType::Relay => return MediaRoute::Relayed,
            RTCIceCandidateType::Host => address(local),
            // Others are seen from outside; the port is the one that they come of (RFC 8445 4: base).
            _ => local.related_address.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, local.related_port)),
        };
        match (here, address(remote)) {
            (_, Some(there)) if !self.settings.guard.allows(there.ip()) => MediaRoute::Lost,
            (Some(here), Some(there)) => {
                self.media.ports.expect(Some(there));
                MediaRoute::Direct(here, there)
            }
            _ => MediaRoute::Unknown,
        }
    }

    /// Returns the media as a media thread takes them over, once.
    pub(super) async fn take_media(&self, leg: Option<[u8; 4]>) -> Option<TakenOver> {
        let MediaRoute::Direct(here, to) = self.media_route().await else { return None };
        if self.media.was_taken.load(Ordering::Relaxed) {
            return None;
        }
        let keys = self.keys().await?;
        let socket = self.media.socket(here)?;
        self.media.was_taken.store(true, Ordering::Relaxed);
        let Carried { sources, newest: since, last, reports } = self.media.carried.lock().clone();
        let secure = Secure::taken_over(&keys, sources, last, reports + REPORTS_APART);
        let passing = Passing { flows: true.into(), has_path: true.into(), counts: self.media.counts.clone() };
        let wire = self.ssrc.to_be_bytes();
        let direct = Direct { socket, to, secure, wire, leg, since, passing: Arc::new(passing) };
        Some((Box::new(direct), (here, to)))
    }

    /// Returns the keys that the handshake brought; `None` for a suite that media threads do not have.
    async fn keys(&self) -> Option<SrtpParams> {
        let report = self.connection.get_stats(self.runtime.now(), StatsSelector::None).await;
        let transport = report.transport()?;
        let suite = suite_of(&transport.srtp_cipher)?;
        let is_client = match transport.dtls_role {
            RTCDtlsRole::Client => true,
            RTCDtlsRole::Server => false,
            _ => return None,
        };
        self.media.heard.material()?.keys(suite, is_client)
    }
}

fn address(candidate: &RTCIceCandidate) -> Option<SocketAddr> {
    Some(SocketAddr::new(candidate.address.parse().ok()?, candidate.port))
}

#[cfg(test)]
mod tests;
