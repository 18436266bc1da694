//! State that calls and callbacks of the library share, and the callbacks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::tasks::Tasks;
use ringer_media::leg::MediaParams;
use rtc::peer_connection::transport::{RTCDtlsTransportState, RTCSctpTransportState};
use tokio::sync::{mpsc, watch};
use webrtc::data_channel::{DataChannel, DataChannelEvent};
use webrtc::peer_connection::{
    PeerConnection, PeerConnectionEventHandler, RTCIceGatheringState, RTCPeerConnectionIceEvent, RTCPeerConnectionState,
};

use super::super::candidate::Tally;
use super::super::{
    Arrived, Candidate, ChannelId, ChannelNews, MAX_CHANNELS, MAX_MESSAGE, PeerSettings, PeerState, PeerStreams,
    RemoteTrack,
};

/// Packets that may wait to be read: 5 s of one track.
const PACKETS: usize = 256;

/// Candidates that may wait to be read.
const CANDIDATES: usize = 64;

/// Messages of data channels that may wait to be read.
const MESSAGES: usize = 64;

/// Looks at a connection whose channel was closed, and the time between them: the end of the whole follows that of its
/// parts.
const CLOSING_LOOKS: u32 = 10;
const CLOSING_LOOK: Duration = Duration::from_millis(50);

/// Everything that calls and callbacks share.
pub(super) struct Known {
    pub(super) connection: OnceLock<Weak<dyn PeerConnection>>,
    pub(super) state: watch::Sender<PeerState>,
    pub(super) gathered: watch::Sender<bool>,
    pub(super) candidates: mpsc::Sender<Candidate>,
    pub(super) news: mpsc::Sender<ChannelNews>,
    pub(super) channels: Mutex<HashMap<ChannelId, Arc<dyn DataChannel>>>,
    pub(super) media: Mutex<Option<MediaParams>>,
    pub(super) tracks: Mutex<Vec<RemoteTrack>>,
    pub(super) tally: Mutex<Tally>,
    pub(super) tasks: Tasks,
    pub(super) refused_channels: AtomicU64,
    pub(super) dropped_messages: AtomicU64,
    pub(super) long_messages: AtomicU64,
}

impl Known {
    /// True when the other side has closed the whole connection: the library tells of that by the ends of data channels
    /// alone.
    async fn is_left(&self) -> bool {
        for _ in 0..CLOSING_LOOKS {
            let Some(connection) = self.connection.get().and_then(Weak::upgrade) else { return false };
            let Some(sctp) = connection.sctp().await else { return false };
            let is_gone = matches!(sctp.state().await, Ok(RTCSctpTransportState::Closed))
                || matches!(sctp.transport().state().await, Ok(RTCDtlsTransportState::Closed));
            if is_gone {
                return true;
            }
            tokio::time::sleep(CLOSING_LOOK).await;
        }
        false
    }

    /// Reads a data channel until it is closed. It never waits for whoever reads the news: the library would hold back
    /// media too.
    pub(super) async fn read_channel(&self, channel: Arc<dyn DataChannel>, label: String) {
        let id = channel.id();
        let tell = |news: ChannelNews| {
            if self.news.try_send(news).is_err() {
                self.dropped_messages.fetch_add(1, Ordering::Relaxed);
            }
        };
        while let Some(event) = channel.poll().await {
            match event {
                DataChannelEvent::OnOpen => tell(ChannelNews::Open { id, label: label.clone() }),
                DataChannelEvent::OnMessage(message) if message.data.len() > MAX_MESSAGE => {
                    self.long_messages.fetch_add(1, Ordering::Relaxed);
                }
                DataChannelEvent::OnMessage(message) => {
                    tell(ChannelNews::Message { id, is_text: message.is_string, bytes: message.data.to_vec() });
                }
                DataChannelEvent::OnClose => break,
                _ => {}
            }
        }
        self.channels.lock().remove(&id);
        if self.is_left().await {
            self.state.send_replace(PeerState::Closed);
        }
        // The last word on a channel is taken as soon as somebody reads.
        let _ = self.news.send(ChannelNews::Closed { id }).await;
    }
}

/// Callbacks of the library; none of them waits.
pub(super) struct Callbacks(pub(super) Arc<Known>);

#[async_trait::async_trait]
impl PeerConnectionEventHandler for Callbacks {
    async fn on_ice_candidate(&self, event: RTCPeerConnectionIceEvent) {
        let Ok(found) = event.candidate.to_json() else { return };
        if found.candidate.is_empty() {
            return;
        }
        let candidate = Candidate {
            line: found.candidate,
            mid: found.sdp_mid.filter(|mid| !mid.is_empty()),
            section: found.sdp_mline_index.or(Some(0)),
        };
        let _ = self.0.candidates.try_send(candidate);
    }

    async fn on_ice_gathering_state_change(&self, state: RTCIceGatheringState) {
        if state == RTCIceGatheringState::Complete {
            self.0.gathered.send_replace(true);
        }
    }

    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        let state = match state {
            RTCPeerConnectionState::Connected => PeerState::Connected,
            RTCPeerConnectionState::Disconnected => PeerState::Quiet,
            RTCPeerConnectionState::Failed => PeerState::Failed,
            RTCPeerConnectionState::Closed => PeerState::Closed,
            _ => return,
        };
        self.0.state.send_if_modified(|now| {
            // Nothing comes after the end.
            let goes_on = !matches!(now, PeerState::Failed | PeerState::Closed) && *now != state;
            if goes_on {
                *now = state;
            }
            goes_on
        });
    }

    async fn on_data_channel(&self, channel: Arc<dyn DataChannel>) {
        let known = self.0.clone();
        let id = channel.id();
        let has_space = {
            let mut channels = known.channels.lock();
            let has_space = channels.len() < MAX_CHANNELS;
            if has_space {
                channels.insert(id, channel.clone());
            }
            has_space
        };
        if !has_space {
            known.refused_channels.fetch_add(1, Ordering::Relaxed);
        }
        self.0.tasks.spawn("data channel", async move {
            if !has_space {
                let _ = channel.close().await;
                return;
            }
            let label = channel.label().await.unwrap_or_default();
            known.read_channel(channel, label).await;
        });
    }
}

pub(super) fn share(settings: &PeerSettings) -> (Arc<Known>, PeerStreams, mpsc::Sender<Arrived>) {
    let (state, state_seen) = watch::channel(PeerState::New);
    let (candidates, candidates_seen) = mpsc::channel(CANDIDATES);
    let (packets, packets_seen) = mpsc::channel(PACKETS);
    let (news, news_seen) = mpsc::channel(MESSAGES);
    let known = Known {
        connection: OnceLock::new(),
        state,
        gathered: watch::Sender::new(false),
        candidates,
        news,
        channels: Mutex::default(),
        media: Mutex::default(),
        tracks: Mutex::default(),
        tally: Mutex::default(),
        tasks: settings.tasks.clone(),
        refused_channels: AtomicU64::new(0),
        dropped_messages: AtomicU64::new(0),
        long_messages: AtomicU64::new(0),
    };
    let streams =
        PeerStreams { state: state_seen, candidates: candidates_seen, packets: packets_seen, channels: news_seen };
    (Arc::new(known), streams, packets)
}
