//! A participant of the room, with its peer connections as the server holds them.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use prost::Message as _;
use ringer::clock::monotonic;
use ringer::transport::room::messages::{
    AddTrackRequest, DataPacket, MediaSectionsRequirement, ParticipantInfo, Response, SessionDescription,
    SignalResponse, TrackInfo, TrackPublishedResponse, TrickleRequest,
};
use rtc::ice::mdns::MulticastDnsMode;
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::media_engine::{MIME_TYPE_OPUS, MIME_TYPE_VP8};
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters, RtpCodecKind,
};
use rtc::rtp_transceiver::{RTCRtpTransceiverDirection, RTCRtpTransceiverInit};
use tokio::sync::{mpsc, watch};
use webrtc::data_channel::{DataChannel, DataChannelEvent, RTCDataChannelInit};
use webrtc::media_stream::track_local::TrackLocal;
use webrtc::media_stream::track_local::static_rtp::TrackLocalStaticRTP;
use webrtc::media_stream::track_remote::{TrackRemote, TrackRemoteEvent};
use webrtc::peer_connection::{
    MediaEngine, PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCConfigurationBuilder,
    RTCIceCandidateInit, RTCIceGatheringState, RTCPeerConnectionState, RTCSessionDescription, SettingEngineBuilder,
};
use webrtc::rtp_transceiver::{RtpSender, RtpTransceiver};
use webrtc::runtime::default_runtime;

use super::tokens::Who;
use super::{Room, lock, new_info, start};

/// Payload types of the server's offers.
const OPUS: u8 = 111;
const VP8: u8 = 96;

type Out = mpsc::Sender<Vec<u8>>;

/// A track of another participant, as it goes to this one.
struct Forward {
    track: Arc<TrackLocalStaticRTP>,
    ssrc: u32,
    sender: Option<Arc<dyn RtpSender>>,
    transceiver: Option<Arc<dyn RtpTransceiver>>,
    /// The client knows of it: its description was exchanged.
    is_described: bool,
    /// Packets that were passed on.
    passed_on: u32,
}

impl Forward {
    fn new(track: Arc<TrackLocalStaticRTP>, ssrc: u32) -> Forward {
        Forward { track, ssrc, sender: None, transceiver: None, is_described: false, passed_on: 0 }
    }
}

pub(super) struct Member {
    room: Weak<Room>,
    pub sid: String,
    pub identity: String,
    pub auto_subscribe: bool,
    out: Mutex<Out>,
    cut: Mutex<watch::Sender<bool>>,
    info: Mutex<ParticipantInfo>,
    /// Tracks that were announced and have not come yet, by the client's names.
    announced: Mutex<HashMap<String, TrackInfo>>,
    publisher: Arc<dyn PeerConnection>,
    /// `None` where one connection has both directions.
    subscriber: Option<Arc<dyn PeerConnection>>,
    gathered: (watch::Receiver<bool>, watch::Receiver<bool>),
    /// True while the connection that the client hears by is up.
    hears: watch::Receiver<bool>,
    /// Candidates that came before the first offer of the client.
    early: Mutex<Vec<RTCIceCandidateInit>>,
    channels: Mutex<HashMap<String, Arc<dyn DataChannel>>>,
    forwards: Mutex<HashMap<String, Forward>>,
    /// An offer is out, and another one is to follow.
    offering: tokio::sync::Mutex<(bool, bool)>,
}

/// The member of callbacks, which is made after its connections.
type Owner = Arc<OnceLock<Weak<Member>>>;

struct Events {
    owner: Owner,
    gathered: watch::Sender<bool>,
    connected: watch::Sender<bool>,
}

#[async_trait::async_trait]
impl PeerConnectionEventHandler for Events {
    async fn on_ice_gathering_state_change(&self, state: RTCIceGatheringState) {
        if state == RTCIceGatheringState::Complete {
            self.gathered.send_replace(true);
        }
    }

    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        self.connected.send_replace(state == RTCPeerConnectionState::Connected);
    }

    async fn on_data_channel(&self, channel: Arc<dyn DataChannel>) {
        let Some(member) = self.owner.get().and_then(Weak::upgrade) else { return };
        start(async move {
            let label = channel.label().await.unwrap_or_default();
            if member.subscriber.is_none() {
                lock(&member.channels).insert(label.clone(), channel.clone());
            }
            member.read_channel(channel, label).await;
        });
    }

    async fn on_track(&self, track: Arc<dyn TrackRemote>) {
        if let Some(member) = self.owner.get().and_then(Weak::upgrade) {
            start(async move { member.read_track(track).await });
        }
    }
}

fn codec(mime: &str, clock_rate: u32, channels: u16, fmtp: &str) -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: mime.to_owned(),
        clock_rate,
        channels,
        sdp_fmtp_line: fmtp.to_owned(),
        rtcp_feedback: Vec::new(),
    }
}

fn opus() -> RTCRtpCodec {
    codec(MIME_TYPE_OPUS, 48_000, 2, "minptime=10;useinbandfec=1")
}

/// Returns the address that is wanted, else loopback, and the address of another interface where there is one: official
/// clients leave loopback out.
fn local_addresses(wanted: Option<IpAddr>) -> Vec<String> {
    if let Some(ip) = wanted {
        return vec![format!("{ip}:0")];
    }
    let outward = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        // Nothing is sent: a route is looked up.
        socket.connect("198.51.100.1:9")?;
        socket.local_addr()
    });
    let others = outward.ok().map(|at| at.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified());
    others.map(|ip| format!("{ip}:0")).into_iter().chain(["127.0.0.1:0".to_owned()]).collect()
}

/// A connection, and signs that all its candidates are found and that it is up.
type Made = (Arc<dyn PeerConnection>, watch::Receiver<bool>, watch::Receiver<bool>);

async fn connection(owner: &Owner, at: Option<IpAddr>) -> Made {
    let mut media = MediaEngine::default();
    let opus = RTCRtpCodecParameters { rtp_codec: opus(), payload_type: OPUS };
    media.register_codec(opus, RtpCodecKind::Audio).expect("it is known");
    let vp8 = RTCRtpCodecParameters { rtp_codec: codec(MIME_TYPE_VP8, 90_000, 0, ""), payload_type: VP8 };
    media.register_codec(vp8, RtpCodecKind::Video).expect("it is known");
    let settings = SettingEngineBuilder::new()
        .with_multicast_dns_mode(MulticastDnsMode::Disabled)
        .with_include_loopback_candidate(true)
        // The time of a set-up is to be the client's alone.
        .with_prflx_acceptance_min_wait(Some(Duration::ZERO))
        .build();
    let (gathered, seen) = watch::channel(false);
    let (connected, is_up) = watch::channel(false);
    let made = PeerConnectionBuilder::new()
        .with_configuration(RTCConfigurationBuilder::new().build())
        .with_setting_engine(settings)
        .with_media_engine(media)
        .with_runtime(default_runtime().expect("a runtime"))
        .with_handler(Arc::new(Events { owner: owner.clone(), gathered, connected }))
        .with_udp_addrs(local_addresses(at))
        .build()
        .await
        .expect("loopback can be bound");
    (Arc::new(made), seen, is_up)
}

impl Member {
    pub(super) async fn new(
        room: &Arc<Room>,
        sid: String,
        who: &Who,
        auto_subscribe: bool,
        is_joint: bool,
        out: Out,
        cut: watch::Sender<bool>,
    ) -> Arc<Member> {
        let (owner, at) = (Owner::default(), lock(&room.behaviour).media_at);
        let (publisher, published, is_up) = connection(&owner, at).await;
        let (subscriber, heard, hears) = match is_joint {
            true => (None, published.clone(), is_up),
            false => {
                let (subscriber, heard, hears) = connection(&owner, at).await;
                (Some(subscriber), heard, hears)
            }
        };
        let member = Arc::new(Member {
            room: Arc::downgrade(room),
            info: Mutex::new(new_info(&sid, who)),
            sid,
            identity: who.identity.clone(),
            auto_subscribe,
            out: Mutex::new(out),
            cut: Mutex::new(cut),
            announced: Mutex::default(),
            publisher,
            subscriber,
            gathered: (published, heard),
            hears,
            early: Mutex::default(),
            channels: Mutex::default(),
            forwards: Mutex::default(),
            offering: tokio::sync::Mutex::default(),
        });
        let _ = owner.set(Arc::downgrade(&member));
        if let Some(subscriber) = &member.subscriber {
            let reliable = RTCDataChannelInit { ordered: true, ..Default::default() };
            let lossy = RTCDataChannelInit { ordered: false, max_retransmits: Some(0), ..Default::default() };
            for (label, init) in [("_reliable", reliable), ("_lossy", lossy)] {
                let channel = subscriber.create_data_channel(label, Some(init)).await.expect("it is made");
                lock(&member.channels).insert(label.to_owned(), channel);
            }
        }
        member
    }

    pub(super) fn info(&self) -> ParticipantInfo {
        lock(&self.info).clone()
    }

    /// Changes what everybody knows of the participant.
    pub(super) fn change(&self, change: impl FnOnce(&mut ParticipantInfo)) {
        let mut info = lock(&self.info);
        change(&mut info);
        info.version += 1;
    }

    pub(super) fn track_sids(&self) -> Vec<String> {
        lock(&self.info).tracks.iter().map(|track| track.sid.clone()).collect()
    }

    pub(super) fn send(&self, message: Response) {
        self.send_raw(SignalResponse { message: Some(message) }.encode_to_vec());
    }

    pub(super) fn send_raw(&self, bytes: Vec<u8>) {
        let _ = lock(&self.out).try_send(bytes);
    }

    pub(super) fn cut_line(&self) {
        lock(&self.cut).send_replace(true);
    }

    /// Takes another WebSocket in place of the one that was lost.
    pub(super) fn go_on(&self, out: Out, cut: watch::Sender<bool>) {
        lock(&self.cut).send_replace(true);
        *lock(&self.out) = out;
        *lock(&self.cut) = cut;
    }

    pub(super) async fn close(&self) {
        let _ = self.publisher.close().await;
        if let Some(subscriber) = &self.subscriber {
            let _ = subscriber.close().await;
        }
    }

    pub(super) fn add_track(&self, asked: AddTrackRequest, number: u64) {
        let track = TrackInfo {
            sid: format!("TR_{number}"),
            kind: asked.kind,
            name: asked.name,
            muted: asked.muted,
            source: asked.source,
            disable_red: asked.disable_red,
            disable_dtx: asked.disable_dtx,
            stream: asked.stream,
            ..TrackInfo::default()
        };
        lock(&self.announced).insert(asked.cid.clone(), track.clone());
        self.send(Response::TrackPublished(TrackPublishedResponse { cid: asked.cid, track: Some(track) }));
    }

    /// Answers an offer of the client.
    pub(super) async fn take_offer(&self, offer: SessionDescription) {
        let described = RTCSessionDescription::offer(offer.sdp).expect("it is a description");
        if let Err(error) = self.publisher.set_remote_description(described).await {
            return println!("{}: an offer is not taken: {error}", self.identity);
        }
        let early = std::mem::take(&mut *lock(&self.early));
        for candidate in early {
            let _ = self.publisher.add_ice_candidate(candidate).await;
        }
        let answer = self.publisher.create_answer(None).await.expect("an answer");
        self.publisher.set_local_description(answer).await.expect("it is ours");
        let sdp = described_after(&self.publisher, &self.gathered.0).await;
        self.send(Response::Answer(SessionDescription {
            kind: "answer".into(),
            sdp,
            id: offer.id,
            mid_to_track_id: self.mids().await,
        }));
        let described: Vec<String> = self.mids().await.into_values().collect();
        lock(&self.forwards).iter_mut().for_each(|(sid, forward)| forward.is_described |= described.contains(sid));
        self.forget_unpublished(
            &self.publisher.remote_description().await.map(|description| description.sdp).unwrap_or_default(),
        )
        .await;
    }

    /// Returns the names of the tracks that go to this participant, by those of their sections.
    async fn mids(&self) -> HashMap<String, String> {
        let forwards: Vec<_> = lock(&self.forwards)
            .iter()
            .filter_map(|(sid, forward)| Some((sid.clone(), forward.transceiver.clone()?)))
            .collect();
        let mut mids = HashMap::new();
        for (sid, transceiver) in forwards {
            if let Ok(Some(mid)) = transceiver.mid().await {
                mids.insert(mid, sid);
            }
        }
        mids
    }

    /// Takes the answer to an offer of the server, and makes the next one that waits.
    pub(super) async fn take_answer(&self, answer: SessionDescription) {
        let Some(subscriber) = &self.subscriber else { return };
        let described = RTCSessionDescription::answer(answer.sdp).expect("it is a description");
        if let Err(error) = subscriber.set_remote_description(described).await {
            println!("{}: an answer is not taken: {error}", self.identity);
        }
        let described: Vec<String> = self.mids().await.into_values().collect();
        lock(&self.forwards).iter_mut().for_each(|(sid, forward)| forward.is_described |= described.contains(sid));
        let waits = {
            let mut offering = self.offering.lock().await;
            offering.0 = false;
            std::mem::take(&mut offering.1)
        };
        if waits {
            self.renegotiate().await;
        }
    }

    /// Makes an offer to the client, behind the one that is out.
    pub(super) async fn renegotiate(&self) {
        let Some(subscriber) = &self.subscriber else { return };
        let mut offering = self.offering.lock().await;
        if std::mem::replace(&mut offering.0, true) {
            offering.1 = true;
            return;
        }
        let offer = subscriber.create_offer(None).await.expect("an offer");
        subscriber.set_local_description(offer).await.expect("it is ours");
        let sdp = described_after(subscriber, &self.gathered.1).await;
        self.send(Response::Offer(SessionDescription { kind: "offer".into(), sdp, ..SessionDescription::default() }));
    }

    pub(super) async fn trickle(&self, request: &TrickleRequest) {
        let init: serde_json::Value = serde_json::from_str(&request.candidate_init).unwrap_or_default();
        let connection = if request.target == 1 { self.subscriber.as_ref() } else { None }.unwrap_or(&self.publisher);
        let init = RTCIceCandidateInit {
            candidate: init["candidate"].as_str().unwrap_or_default().to_owned(),
            sdp_mid: init["sdpMid"].as_str().map(str::to_owned),
            sdp_mline_index: init["sdpMLineIndex"].as_u64().map(|section| section as u16),
            ..Default::default()
        };
        if connection.add_ice_candidate(init.clone()).await.is_err() {
            // Its offer is still to come.
            lock(&self.early).push(init);
        }
    }

    /// Has this participant hear a track of another one.
    pub(super) async fn subscribe(&self, owner: &Member, sid: &str) {
        let Some(track) = owner.info().tracks.into_iter().find(|track| track.sid == sid && track.kind == 0) else {
            return;
        };
        let mut drawn = [0; 4];
        ringer::clock::random_bytes(&mut drawn);
        let ssrc = u32::from_be_bytes(drawn).max(1);
        let coding = RTCRtpCodingParameters { ssrc: Some(ssrc), ..Default::default() };
        let encoding = RTCRtpEncodingParameters {
            rtp_coding_parameters: coding,
            active: true,
            codec: opus(),
            ..Default::default()
        };
        let stream = format!("{}|{}", owner.sid, track.sid);
        let track =
            MediaStreamTrack::new(stream, track.sid.clone(), track.sid.clone(), RtpCodecKind::Audio, vec![encoding]);
        let track = Arc::new(TrackLocalStaticRTP::new(track));
        {
            let mut forwards = lock(&self.forwards);
            if forwards.contains_key(sid) {
                return;
            }
            forwards.insert(sid.to_owned(), Forward::new(track.clone(), ssrc));
        }
        let connection = self.subscriber.as_ref().unwrap_or(&self.publisher);
        let init = RTCRtpTransceiverInit { direction: RTCRtpTransceiverDirection::Sendonly, ..Default::default() };
        let made = connection.add_transceiver_from_track(track, Some(init)).await.expect("it is made");
        let sender = made.sender().await.ok().flatten();
        lock(&self.forwards).entry(sid.to_owned()).and_modify(|forward| {
            (forward.sender, forward.transceiver) = (sender, Some(made));
        });
        match self.subscriber {
            Some(_) => self.renegotiate().await,
            None => self.send(Response::MediaSections(MediaSectionsRequirement { num_audios: 1, num_videos: 0 })),
        }
    }

    pub(super) async fn unsubscribe(&self, sid: &str) {
        let Some(forward) = lock(&self.forwards).remove(sid) else { return };
        let connection = self.subscriber.as_ref().unwrap_or(&self.publisher);
        if let Some(sender) = forward.sender {
            let _ = connection.remove_track(&sender).await;
        }
        self.renegotiate().await;
    }

    /// Returns the way of a packet of a track to this participant, once the track is subscribed.
    fn forward(&self, sid: &str, timestamp: u32) -> Option<(Arc<TrackLocalStaticRTP>, u32)> {
        let (mut forwards, is_up) = (lock(&self.forwards), *self.hears.borrow());
        let forward = forwards.get_mut(sid).filter(|forward| is_up && forward.is_described)?;
        forward.passed_on += 1;
        if forward.passed_on == 1
            && let Some(room) = self.room.upgrade()
        {
            lock(&room.begun).push((self.identity.clone(), timestamp));
        }
        Some((forward.track.clone(), forward.ssrc))
    }

    /// Waits until so many packets of a track were passed on to this participant.
    pub(super) async fn wait_passed_on(&self, count: u32) {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while !lock(&self.forwards).values().any(|forward| forward.passed_on >= count) {
            looks.tick().await;
        }
    }

    /// Passes the packets of a track on to everybody who hears it.
    async fn read_track(self: Arc<Self>, track: Arc<dyn TrackRemote>) {
        let cid = track.track_id().await;
        let Some(room) = self.room.upgrade() else { return };
        let found = {
            let mut announced = lock(&self.announced);
            // A client whose name the description does not have has announced one track alone.
            let cid = if announced.contains_key(&cid) { Some(cid) } else { announced.keys().next().cloned() };
            cid.and_then(|cid| announced.remove(&cid))
        };
        let Some(found) = found else { return println!("{}: a track was not announced", self.identity) };
        let sid = found.sid.clone();
        self.change(|info| info.tracks.push(found));
        lock(&room.tracks_up).push(monotonic());
        room.tell(&self);
        for other in room.others(&self.sid).into_iter().filter(|other| other.auto_subscribe) {
            other.subscribe(&self, &sid).await;
        }
        while let Some(event) = track.poll().await {
            let TrackRemoteEvent::OnRtpPacket(packet) = event else { continue };
            for other in room.others(&self.sid) {
                let Some((to, ssrc)) = other.forward(&sid, packet.header.timestamp) else { continue };
                let mut packet = packet.clone();
                (packet.header.ssrc, packet.header.payload_type) = (ssrc, OPUS);
                packet.header.extension = false;
                packet.header.extensions.clear();
                let _ = to.write_rtp(packet).await;
            }
        }
    }

    /// Passes data packets on, with the name of their sender.
    async fn read_channel(&self, channel: Arc<dyn DataChannel>, label: String) {
        while let Some(event) = channel.poll().await {
            let DataChannelEvent::OnMessage(message) = event else { continue };
            let (Some(room), Ok(mut packet)) = (self.room.upgrade(), DataPacket::decode(&message.data[..])) else {
                continue;
            };
            packet.participant_sid.clone_from(&self.sid);
            if packet.participant_identity.is_empty() {
                packet.participant_identity.clone_from(&self.identity);
            }
            let wanted = std::mem::take(&mut packet.destination_identities);
            let bytes = packet.encode_to_vec();
            for other in room.others(&self.sid) {
                if wanted.is_empty() || wanted.contains(&other.identity) {
                    other.send_data(&label, &bytes).await;
                }
            }
        }
    }

    /// Sends bytes over a data channel to this participant.
    pub(super) async fn send_data(&self, label: &str, bytes: &[u8]) {
        let channel = lock(&self.channels).get(label).cloned();
        if let Some(channel) = channel {
            let _ = channel.send(bytes.into()).await;
        }
    }

    /// Forgets tracks whose sections are no longer sent in.
    async fn forget_unpublished(&self, sdp: &str) {
        let Some(room) = self.room.upgrade() else { return };
        let sections: Vec<&str> = sdp.split("\r\nm=").skip(1).collect();
        let sending = |kind: &str| {
            let is_sent = |section: &&&str| section.contains("a=sendonly") || section.contains("a=sendrecv");
            sections.iter().filter(|section| section.starts_with(kind)).filter(is_sent).count()
        };
        let audio = |track: &&TrackInfo| track.kind == 0;
        let known = lock(&self.info).tracks.iter().filter(audio).count();
        let waiting = lock(&self.announced).values().filter(|track| track.kind == 0).count();
        if known + waiting <= sending("audio") {
            return;
        }
        let first = lock(&self.info).tracks.iter().find(audio).map(|track| track.sid.clone());
        let Some(sid) = first else { return };
        self.change(|info| info.tracks.retain(|track| track.sid != sid));
        room.tell(self);
        for other in room.others(&self.sid) {
            other.unsubscribe(&sid).await;
        }
    }
}

/// Returns the local description once every candidate is in it.
async fn described_after(connection: &Arc<dyn PeerConnection>, gathered: &watch::Receiver<bool>) -> String {
    let mut gathered = gathered.clone();
    let _ = tokio::time::timeout(Duration::from_secs(2), gathered.wait_for(|done| *done)).await;
    connection.local_description().await.map(|description| description.sdp).unwrap_or_default()
}
