//! [`MediaPeer`] on the library.

mod known;
mod media;
mod settings;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use ringer_base::clock::{monotonic, random_bytes};
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;
use rtc::interceptor::Slot;
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::RTCOfferOptions;
use rtc::peer_connection::transport::RTCIceTransportState;
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters, RtpCodecKind,
};
use rtc::rtp_transceiver::{RTCRtpTransceiverDirection as Direction, RTCRtpTransceiverInit};
use rtc::shared::marshal::Unmarshal;
use rtc::{rtcp, rtp};
use tokio::sync::watch;
use tokio::time::timeout;
use webrtc::data_channel::{DataChannel, RTCDataChannelInit};
use webrtc::media_stream::track_local::TrackLocal;
use webrtc::media_stream::track_local::static_rtp::TrackLocalStaticRTP;
use webrtc::peer_connection::{
    MediaEngine, PeerConnection, PeerConnectionBuilder, RTCIceCandidateInit, RTCSessionDescription, Registry,
    StatsSelector,
};
use webrtc::runtime::Runtime;

use self::known::{Callbacks, Known, share};
use self::media::Media;
use self::settings::{configuration, opus, setting_engine};
use super::candidate::{Admission, Tally};
use super::description::{self, Kind, OPUS, Remote};
use super::keys::{Heard, Provider};
use super::ports::{PortRuntime, Ports};
use super::tap::{Carried, Counts, Epoch, Tap};
use super::{
    Candidate, ChannelId, Delivery, GATHERING, GATHERING_FIRST, MAX_MESSAGE, MAX_UNSENT, MediaPeer, MediaRoute, Part,
    PeerFault, PeerFigures, PeerSettings, PeerState, PeerStreams, RemoteTrack, TakenOver,
};

/// Share of [`super::CONSENT`] after which the connection counts as quiet.
const QUIET: Duration = Duration::from_secs(5);

/// Time between checks of the path in use.
const CHECKS: Duration = Duration::from_secs(1);

/// A peer connection on the library.
pub struct Peer {
    connection: Arc<dyn PeerConnection>,
    runtime: Arc<dyn Runtime>,
    track: Arc<TrackLocalStaticRTP>,
    ssrc: u32,
    part: Part,
    settings: PeerSettings,
    known: Arc<Known>,
    media: Media,
    state: watch::Receiver<PeerState>,
    gathered: watch::Receiver<bool>,
    /// True once this side has closed it; one that the other side closed is still open here.
    was_closed: AtomicBool,
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
        let (ports, heard, carried) = (Ports::default(), Heard::default(), Arc::<Mutex<Carried>>::default());
        let runtime: Arc<dyn Runtime> = Arc::new(PortRuntime::new(ports.clone()));
        let provider = Arc::new(Provider::new(heard.clone()).map_err(refusal)?);
        let counts = Arc::<Counts>::default();
        let epoch = Epoch { instant: runtime.now(), time: monotonic() };
        let tap = Tap::new(epoch, packets, counts.clone(), carried.clone());
        let mut media = MediaEngine::default();
        let codec = RTCRtpCodecParameters { rtp_codec: opus(), payload_type: OPUS };
        media.register_codec(codec, RtpCodecKind::Audio).map_err(refusal)?;
        let connection = PeerConnectionBuilder::new()
            .with_configuration(configuration(&settings))
            .with_setting_engine(setting_engine(&settings, provider))
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
        let (was_closed, was_taken) = (AtomicBool::new(false), AtomicBool::new(false));
        let media = Media { ports, heard, carried, counts, was_taken };
        let peer = Peer { connection, runtime, track, ssrc, part, settings, known, media, state, gathered, was_closed };
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

    fn route(&self) -> BoxFuture<'_, MediaRoute> {
        self.media_route().boxed()
    }

    fn take_over(&self, leg: Option<[u8; 4]>) -> BoxFuture<'_, Option<TakenOver>> {
        self.take_media(leg).boxed()
    }

    fn media_socket(&self, here: SocketAddr) -> Option<UdpSocket> {
        self.media.socket(here)
    }

    fn path_change(&self) -> BoxFuture<'_, ()> {
        self.media.ports.path_change().boxed()
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
                received: count(&self.media.counts.received),
                first_at: Some(Time(count(&self.media.counts.first_at))).filter(|at| at.0 > 0),
                sent: count(&self.media.counts.sent),
                dropped: count(&self.media.counts.dropped),
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
