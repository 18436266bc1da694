//! [`MediaPeer`] on the library.

mod settings;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use ringer_base::clock::{monotonic, random_bytes};
use ringer_base::tasks::Tasks;
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;
use rtc::interceptor::Slot;
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::RTCOfferOptions;
use rtc::peer_connection::transport::{RTCDtlsTransportState, RTCIceTransportState, RTCSctpTransportState};
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters, RtpCodecKind,
};
use rtc::rtp_transceiver::{RTCRtpTransceiverDirection as Direction, RTCRtpTransceiverInit};
use rtc::shared::marshal::Unmarshal;
use rtc::{rtcp, rtp};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use webrtc::data_channel::{DataChannel, DataChannelEvent, RTCDataChannelInit};
use webrtc::media_stream::track_local::TrackLocal;
use webrtc::media_stream::track_local::static_rtp::TrackLocalStaticRTP;
use webrtc::peer_connection::{
    MediaEngine, PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCIceCandidateInit,
    RTCIceGatheringState, RTCPeerConnectionIceEvent, RTCPeerConnectionState, RTCSessionDescription, Registry,
    StatsSelector,
};
use webrtc::runtime::{Runtime, default_runtime};

use self::settings::{configuration, opus, setting_engine};
use super::candidate::{Admission, Tally};
use super::description::{self, Kind, OPUS, Remote};
use super::tap::{Counts, Epoch, Tap};
use super::{
    Candidate, ChannelId, ChannelNews, Delivery, GATHERING, GATHERING_FIRST, MAX_CHANNELS, MAX_MESSAGE, MAX_UNSENT,
    MediaPeer, Part, PeerFault, PeerFigures, PeerSettings, PeerState, PeerStreams, RemoteTrack,
};

/// Packets that may wait to be read: 5 s of one track.
const PACKETS: usize = 256;

/// Candidates that may wait to be read.
const CANDIDATES: usize = 64;

/// Messages of data channels that may wait to be read.
const MESSAGES: usize = 64;

/// Share of [`super::CONSENT`] after which the connection counts as quiet.
const QUIET: Duration = Duration::from_secs(5);

/// Time between checks of the path in use.
const CHECKS: Duration = Duration::from_secs(1);

/// Looks at a connection whose channel was closed, and the time between them: the end of the whole follows that of its
/// parts.
const CLOSING_LOOKS: u32 = 10;
const CLOSING_LOOK: Duration = Duration::from_millis(50);

/// A peer connection on the library.
pub struct Peer {
    connection: Arc<dyn PeerConnection>,
    runtime: Arc<dyn Runtime>,
    track: Arc<TrackLocalStaticRTP>,
    ssrc: u32,
    part: Part,
    settings: PeerSettings,
    known: Arc<Known>,
    counts: Arc<Counts>,
    state: watch::Receiver<PeerState>,
    gathered: watch::Receiver<bool>,
    /// True once this side has closed it; one that the other side closed is still open here.
    was_closed: AtomicBool,
}

/// Everything that calls and callbacks share.
struct Known {
    connection: OnceLock<Weak<dyn PeerConnection>>,
    state: watch::Sender<PeerState>,
    gathered: watch::Sender<bool>,
    candidates: mpsc::Sender<Candidate>,
    news: mpsc::Sender<ChannelNews>,
    channels: Mutex<HashMap<ChannelId, Arc<dyn DataChannel>>>,
    media: Mutex<Option<MediaParams>>,
    tracks: Mutex<Vec<RemoteTrack>>,
    tally: Mutex<Tally>,
    tasks: Tasks,
    refused_channels: AtomicU64,
    dropped_messages: AtomicU64,
    long_messages: AtomicU64,
}

fn refusal(error: impl std::fmt::Display) -> PeerFault {
    PeerFault::Refused(error.to_string())
}

impl Peer {
    /// Returns a connection that nothing was said on yet, with its microphone track, and everything that it will tell.
    ///
    /// # Errors
    /// A local address cannot be bound, or a server's URL cannot be read.
    pub async fn new(settings: PeerSettings) -> Result<(Peer, PeerStreams), PeerFault> {
        Peer::with_part(settings, Part::Call).await
    }

    /// Returns a connection for this use, as [`Peer::new`] does.
    ///
    /// # Errors
    /// As [`Peer::new`].
    pub async fn with_part(settings: PeerSettings, part: Part) -> Result<(Peer, PeerStreams), PeerFault> {
        let (known, streams, packets) = share(&settings);
        let runtime = default_runtime().ok_or_else(|| refusal("no runtime"))?;
        let counts = Arc::<Counts>::default();
        let epoch = Epoch { instant: runtime.now(), time: monotonic() };
        let tap = Tap::new(epoch, packets, counts.clone());
        let mut media = MediaEngine::default();
        let codec = RTCRtpCodecParameters { rtp_codec: opus(), payload_type: OPUS };
        media.register_codec(codec, RtpCodecKind::Audio).map_err(refusal)?;
        let connection = PeerConnectionBuilder::new()
            .with_configuration(configuration(&settings))
            .with_setting_engine(setting_engine(&settings))
            .with_media_engine(media)
            .with_interceptor_registry(Registry::new().with(Slot::Custom(0), tap))
            .with_runtime(runtime.clone())
            .with_handler(Arc::new(Callbacks(known.clone())))
            .with_data_channel_send_buffer_limit(MAX_UNSENT)
            .with_udp_addrs(settings.bind.iter().map(|ip| SocketAddr::new(*ip, 0)).collect())
            .build()
            .await
            .map_err(refusal)?;
        let mut drawn = [0; 4];
        random_bytes(&mut drawn);
        // Zero is left to those who have no source.
        let ssrc = u32::from_be_bytes(drawn).max(1);
        let coding = RTCRtpCodingParameters { ssrc: Some(ssrc), ..Default::default() };
        let encoding = RTCRtpEncodingParameters {
            rtp_coding_parameters: coding,
            active: true,
            codec: opus(),
            ..Default::default()
        };
        let track = MediaStreamTrack::new(
            "microphone".to_owned(),
            format!("microphone-{ssrc:08x}"),
            "microphone".to_owned(),
            RtpCodecKind::Audio,
            vec![encoding],
        );
        let track = Arc::new(TrackLocalStaticRTP::new(track));
        let connection: Arc<dyn PeerConnection> = Arc::new(connection);
        let _ = known.connection.set(Arc::downgrade(&connection));
        match part {
            Part::Call => drop(connection.add_track(track.clone()).await.map_err(refusal)?),
            Part::Publisher | Part::Joint => {
                let init = RTCRtpTransceiverInit { direction: Direction::Sendonly, ..Default::default() };
                let made = connection.add_transceiver_from_track(track.clone(), Some(init)).await;
                drop(made.map_err(refusal)?);
            }
            Part::Subscriber => {}
        }
        let (state, gathered) = (streams.state.clone(), known.gathered.subscribe());
        let was_closed = AtomicBool::new(false);
        let peer =
            Peer { connection, runtime, track, ssrc, part, settings, known, counts, state, gathered, was_closed };
        Ok((peer, streams))
    }

    /// Has the local description in force, after as many candidates as [`GATHERING`] brings. A room server takes
    /// further ones later.
    async fn local(&self) -> Result<String, PeerFault> {
        let mut gathered = self.gathered.clone();
        let waits_for_all = self.part == Part::Call || self.settings.relay_only;
        let within = if waits_for_all { GATHERING } else { GATHERING_FIRST };
        // Candidates found later go out by themselves.
        let _ = timeout(within, gathered.wait_for(|done| *done)).await;
        let description = self.connection.local_description().await.ok_or_else(|| refusal("no description"))?;
        if self.settings.relay_only && !description.sdp.contains("a=candidate:") {
            // The other side would look for a path that cannot be.
            return Err(PeerFault::NoRelay);
        }
        Ok(description.sdp)
    }

    /// Adds the candidates of a description that was taken.
    async fn take(&self, remote: Remote) -> Result<(), PeerFault> {
        for line in remote.candidates {
            self.add(line, None, Some(0)).await?;
        }
        *self.known.tally.lock() = remote.tally;
        *self.known.media.lock() = Some(remote.media);
        *self.known.tracks.lock() = remote.tracks;
        Ok(())
    }

    async fn add(&self, line: String, mid: Option<String>, section: Option<u16>) -> Result<(), PeerFault> {
        let init =
            RTCIceCandidateInit { candidate: line, sdp_mid: mid, sdp_mline_index: section, ..Default::default() };
        self.connection.add_ice_candidate(init).await.map_err(refusal)
    }

    /// Returns the address of this side and that of the other one on the path in use.
    async fn path(&self) -> Option<(SocketAddr, SocketAddr)> {
        let transport = match self.connection.sctp().await {
            Some(sctp) => sctp.transport(),
            // There are no data channels.
            None => self.connection.get_senders().await.first()?.transport().await.ok()??,
        };
        let path = transport.ice_transport().get_selected_candidate_pair().await.ok()??;
        let (local, remote) = (path.local(), path.remote());
        let here = SocketAddr::new(local.address.parse::<IpAddr>().ok()?, local.port);
        Some((here, SocketAddr::new(remote.address.parse::<IpAddr>().ok()?, remote.port)))
    }

    /// Names the reason for which there is no connection, as far as it is known.
    async fn why_unreached(&self, fault: PeerFault) -> PeerFault {
        if let Some(sctp) = self.connection.sctp().await {
            let path = sctp.transport().ice_transport().state().await;
            if matches!(path, Ok(RTCIceTransportState::Connected | RTCIceTransportState::Completed)) {
                return PeerFault::Handshake;
            }
        }
        let tally = *self.known.tally.lock();
        match (tally.used, tally.ignored_count()) {
            (0, _) => PeerFault::NoCandidate(tally),
            (_, 0) => fault,
            _ => PeerFault::Unreached(Box::new(fault), tally),
        }
    }

    fn channel(&self, id: ChannelId) -> Result<Arc<dyn DataChannel>, PeerFault> {
        self.known.channels.lock().get(&id).cloned().ok_or(PeerFault::Channel("is not open"))
    }

    async fn write(&self, id: ChannelId, bytes: &[u8], is_text: bool) -> Result<(), PeerFault> {
        if bytes.len() > MAX_MESSAGE {
            return Err(PeerFault::Channel("takes messages of at most 64 KiB"));
        }
        let channel = self.channel(id)?;
        let sent = match std::str::from_utf8(bytes) {
            Ok(text) if is_text => channel.try_send_text(text).await,
            _ => channel.try_send(bytes.into()).await,
        };
        sent.map_err(|_| PeerFault::Channel("takes no more at the moment"))
    }
}

impl MediaPeer for Peer {
    fn offer(&self, restart: bool) -> BoxFuture<'_, Result<String, PeerFault>> {
        async move {
            if restart {
                self.known.gathered.send_replace(false);
                *self.known.tally.lock() = Tally::default();
            }
            let options = RTCOfferOptions { ice_restart: restart };
            let offer = self.connection.create_offer(Some(options)).await.map_err(refusal)?;
            self.connection.set_local_description(offer).await.map_err(refusal)?;
            self.local().await
        }
        .boxed()
    }

    fn accept<'a>(&'a self, answer: &'a str) -> BoxFuture<'a, Result<(), PeerFault>> {
        async move {
            let kind = match self.part {
                Part::Call | Part::Subscriber => Kind::Answer,
                Part::Publisher => Kind::Published,
                Part::Joint => Kind::Joint,
            };
            let remote = description::read_description(answer, kind, &self.settings.guard)?;
            let described = RTCSessionDescription::answer(remote.sdp.clone()).map_err(refusal)?;
            self.connection.set_remote_description(described).await.map_err(refusal)?;
            self.take(remote).await
        }
        .boxed()
    }

    fn answer<'a>(&'a self, offer: &'a str) -> BoxFuture<'a, Result<String, PeerFault>> {
        async move {
            let kind = if self.part == Part::Subscriber { Kind::Heard } else { Kind::Offer };
            let remote = description::read_description(offer, kind, &self.settings.guard)?;
            let described = RTCSessionDescription::offer(remote.sdp.clone()).map_err(refusal)?;
            self.connection.set_remote_description(described).await.map_err(refusal)?;
            self.take(remote).await?;
            let answer = self.connection.create_answer(None).await.map_err(refusal)?;
            self.connection.set_local_description(answer).await.map_err(refusal)?;
            self.local().await
        }
        .boxed()
    }

    fn add_candidate<'a>(&'a self, candidate: &'a Candidate) -> BoxFuture<'a, Result<Admission, PeerFault>> {
        async move {
            let admission = self.known.tally.lock().admit(&candidate.line, &self.settings.guard);
            if let Admission::Used(line) = &admission {
                self.add(line.clone(), candidate.mid.clone(), candidate.section).await?;
            }
            Ok(admission)
        }
        .boxed()
    }

    fn wait_connected(&self, within: Duration) -> BoxFuture<'_, Result<(), PeerFault>> {
        let mut state = self.state.clone();
        async move {
            let over =
                |state: &PeerState| matches!(state, PeerState::Connected | PeerState::Failed | PeerState::Closed);
            match timeout(within, state.wait_for(over)).await.map(|state| state.map(|state| *state)) {
                Ok(Ok(PeerState::Connected)) => {
                    let judged = self.judge_path().await;
                    if judged.is_err() {
                        self.close().await;
                    }
                    judged
                }
                Ok(Ok(PeerState::Failed)) => Err(self.why_unreached(PeerFault::Failed).await),
                Ok(_) => Err(PeerFault::Closed),
                Err(_) => Err(self.why_unreached(PeerFault::NotConnected(within)).await),
            }
        }
        .boxed()
    }

    fn judge_path(&self) -> BoxFuture<'_, Result<(), PeerFault>> {
        async move {
            match self.path().await.map(|(_, there)| there.ip()) {
                Some(address) if !self.settings.guard.allows(address) => Err(PeerFault::NotAllowed(address)),
                _ => Ok(()),
            }
        }
        .boxed()
    }

    fn media(&self) -> Option<MediaParams> {
        *self.known.media.lock()
    }

    fn tracks(&self) -> Vec<RemoteTrack> {
        self.known.tracks.lock().clone()
    }

    fn expect_tracks(&self, count: u32) -> BoxFuture<'_, Result<(), PeerFault>> {
        async move {
            for _ in 0..count {
                let init = RTCRtpTransceiverInit { direction: Direction::Recvonly, ..Default::default() };
                let made = self.connection.add_transceiver_from_kind(RtpCodecKind::Audio, Some(init)).await;
                drop(made.map_err(refusal)?);
            }
            Ok(())
        }
        .boxed()
    }

    fn ssrc(&self) -> u32 {
        self.ssrc
    }

    fn send_packet<'a>(&'a self, mut rtp: &'a [u8]) -> BoxFuture<'a, Result<(), PeerFault>> {
        async move {
            let packet = rtp::Packet::unmarshal(&mut rtp).map_err(refusal)?;
            if *self.state.borrow() == PeerState::New {
                return Ok(());
            }
            self.track.write_rtp(packet).await.map_err(|_| PeerFault::Closed)
        }
        .boxed()
    }

    fn send_report<'a>(&'a self, mut rtcp: &'a [u8]) -> BoxFuture<'a, Result<(), PeerFault>> {
        async move {
            let packets = rtcp::packet::unmarshal(&mut rtcp).map_err(refusal)?;
            if *self.state.borrow() == PeerState::New {
                return Ok(());
            }
            self.track.write_rtcp(packets).await.map_err(|_| PeerFault::Closed)
        }
        .boxed()
    }

    fn open_channel<'a>(&'a self, label: &'a str, delivery: Delivery) -> BoxFuture<'a, Result<ChannelId, PeerFault>> {
        async move {
            let init = match delivery {
                Delivery::Reliable => RTCDataChannelInit { ordered: true, ..Default::default() },
                Delivery::Lossy => {
                    RTCDataChannelInit { ordered: false, max_retransmits: Some(0), ..Default::default() }
                }
            };
            let channel = self.connection.create_data_channel(label, Some(init)).await.map_err(refusal)?;
            let id = channel.id();
            self.known.channels.lock().insert(id, channel.clone());
            let (known, label) = (self.known.clone(), label.to_owned());
            self.known.tasks.spawn("data channel", async move { known.read_channel(channel, label).await });
            Ok(id)
        }
        .boxed()
    }

    fn send_text<'a>(&'a self, channel: ChannelId, text: &'a str) -> BoxFuture<'a, Result<(), PeerFault>> {
        self.write(channel, text.as_bytes(), true).boxed()
    }

    fn send_bytes<'a>(&'a self, channel: ChannelId, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), PeerFault>> {
        self.write(channel, bytes, false).boxed()
    }

    fn figures(&self) -> BoxFuture<'_, PeerFigures> {
        async move {
            let report = self.connection.get_stats(self.runtime.now(), StatsSelector::None).await;
            let pairs = report.candidate_pairs().filter(|pair| pair.nominated && pair.current_round_trip_time > 0.0);
            let round_trip_ms = pairs.map(|pair| pair.current_round_trip_time * 1000.0).last();
            let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let path = self.path().await;
            PeerFigures {
                round_trip_ms,
                received: count(&self.counts.received),
                first_at: Some(Time(count(&self.counts.first_at))).filter(|at| at.0 > 0),
                sent: count(&self.counts.sent),
                dropped: count(&self.counts.dropped),
                refused_channels: count(&self.known.refused_channels),
                dropped_messages: count(&self.known.dropped_messages),
                long_messages: count(&self.known.long_messages),
                candidates: *self.known.tally.lock(),
                path,
            }
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.was_closed.store(true, Ordering::Relaxed);
            let _ = self.connection.close().await;
            self.known.state.send_replace(PeerState::Closed);
            self.known.channels.lock().clear();
        }
        .boxed()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.known.channels.lock().clear();
        if !self.was_closed.load(Ordering::Relaxed) && tokio::runtime::Handle::try_current().is_ok() {
            let connection = self.connection.clone();
            self.settings.tasks.spawn("close a peer connection", async move {
                let _ = connection.close().await;
            });
            self.known.state.send_replace(PeerState::Closed);
        }
    }
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
    async fn read_channel(&self, channel: Arc<dyn DataChannel>, label: String) {
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
struct Callbacks(Arc<Known>);

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

fn share(settings: &PeerSettings) -> (Arc<Known>, PeerStreams, mpsc::Sender<super::Arrived>) {
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
