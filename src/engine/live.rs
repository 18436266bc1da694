//! The engine on real sockets and threads.

mod pipeline;
mod pump;
mod room;
mod socket;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use ringer_media::call::{Call, CallSpec, EndReason};
use ringer_media::codec::Codec;
use ringer_sip::auth::{Algorithm, Demand};
use ringer_sip::sdp::Offer;
use rtrb::RingBuffer;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::call_task::{CallTask, Files};
use super::counters::Counters;
use super::keys::Keys;
use super::lateness::Lateness;
use super::pipeline::PipelineSide;
use super::recorder::{RING_SAMPLES, Recorder};
use super::room::RoomSide;
use super::services::{CallPermit, CallServices};
use super::shard::{CallNo, LiveCall, ToShard};
use super::shard_handle::start_shard;
use super::simulated::{self, Answerer};
use super::socket::SocketSide;
use super::{
    CallControl, CallHandle, CallUpdate, Destination, EngineConfig, PIPELINE_LOG, PlaceError, Placement, ROOM_LOG,
    SIP_LOG, Speech, WEBSOCKET_LOG, timed,
};
use crate::config::{Encryption, OfferedIn, Refer, Secret, SipListen};
use crate::provider::{Recognizer, Voice};
use crate::tasks::Tasks;
use crate::transport::dtls::{self, Identity};
use crate::transport::path::MediaPath;
use crate::transport::port::{Incoming, IncomingChannel, Port, Refusal};
use crate::transport::sip::driver::{IncomingDialog, NEWS, SipSocket};
use crate::transport::sip::port::{SipOrder, SipPort};
use crate::transport::sip::sdp;
use crate::transport::sockets::{MediaPorts, MediaSockets};
use crate::transport::websocket::dial::Dialer;

/// Longest time for which an incoming call waits for its voice to be loaded.
const LOADING: std::time::Duration = std::time::Duration::from_secs(5);

/// Samples that wait for a recognizer (560 ms). At most 400 ms come at once when it begins to listen, the rest 20 ms at
/// a time.
const TAP_SAMPLES: usize = 8960;
/// Messages that may wait for one call's task.
const MESSAGES: usize = 4096;
/// Realm of digest authentication for incoming calls (RFC 3261 22).
const REALM: &str = "ringer";
/// A call that is to be dialled is one that waits.
const NO_ADDRESS: &str = "this call waits for the other side, and dials nobody";
/// News that may wait for a watcher.
const WATCH: usize = 4096;

/// Places and answers calls.
#[derive(Clone)]
pub struct Engine {
    pub(super) services: Arc<CallServices>,
    inner: Arc<Inner>,
}

/// Parts of an engine that begin calls, and are not needed while they last.
struct Inner {
    ports: MediaPorts,
    recorder: Recorder,
    next: AtomicU64,
    /// Makes the other side of calls in virtual time; without it calls are real.
    simulated: OnceLock<Answerer>,
    /// Way to agents that are reached by a WebSocket.
    dialer: Dialer,
}

impl Engine {
    /// Binds the SIP socket and starts the media threads; incoming calls arrive at the receiver.
    ///
    /// # Errors
    /// A socket or thread that the machine refuses.
    pub async fn start(
        mut config: EngineConfig,
        speech: Speech,
        clock: crate::clock::Clock,
    ) -> io::Result<(Engine, mpsc::Receiver<Incoming>)> {
        config.names = config.names.for_sockets(&config.sip);
        let tasks = Tasks::new();
        let (sip, incoming) = SipSocket::start(config.sip, &config.tls, config.advertise, &tasks).await?;
        sip.ask_session_interval(config.session_interval_s).await;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if config.shards == 0 { cores.saturating_sub(1).max(1) } else { config.shards };
        let (mut shards, mut messages) = (Vec::new(), Vec::new());
        for at in 0..count {
            let (shard, from_shard) = start_shard(at)?;
            shards.push(shard);
            messages.push(from_shard);
        }
        let counters = Arc::<Counters>::default();
        let dialer = Dialer::new(&config.tls);
        // A trunk may have secure RTP where other calls have none.
        let identity = Identity::new().map_err(io::Error::other)?;
        let inner = Inner {
            ports: MediaPorts::new(config.rtp_ports.clone()),
            recorder: Recorder::start(counters.clone())?,
            next: AtomicU64::new(1),
            simulated: OnceLock::new(),
            dialer,
        };
        let services = CallServices {
            config,
            sip,
            shards,
            counters,
            speech,
            tasks,
            calls: Mutex::default(),
            controls: Mutex::default(),
            live: AtomicUsize::new(0),
            clock,
            runtime: Handle::current(),
            identity,
        };
        let (services, inner) = (Arc::new(services), Arc::new(inner));
        for (at, from_shard) in messages.into_iter().enumerate() {
            // SAFETY: the wake owns its descriptor and closes it only when the last Arc, of which AsyncFd holds one, is gone.
            let wake = timed::enter(|| unsafe { AsyncFd::register(services.shards[at].shared.wake.clone()) })?;
            // These threads outlive engines: the task must not hold one that nobody has stopped.
            let (tasks, engine) = (services.tasks.clone(), Arc::downgrade(&services));
            let stopping = async move { tasks.stopping().await };
            timed::spawn(&services.tasks, "shard messages", pump::pump(engine, stopping, wake, from_shard));
        }
        Ok((Engine { services, inner }, incoming))
    }

    /// Has every call that is placed from now on take place in virtual time, with the side that `answer` makes.
    pub fn simulate(&self, answer: Answerer) {
        let _ = self.inner.simulated.set(answer);
    }

    /// Dials. What happens then comes by the handle.
    ///
    /// # Errors
    /// See [`PlaceError`].
    pub async fn place(&self, mut placement: Placement) -> Result<CallHandle, PlaceError> {
        if let Some(answer) = self.inner.simulated.get() {
            let room = self.services.permit()?;
            let (synthesizer, clock) = (self.services.speech.synthesizer.clone(), self.services.clock.clone());
            return simulated::place(placement, answer, synthesizer, clock, &self.services.tasks, room);
        }
        self.ready(placement.voice.as_ref()).await;
        match placement.destination.clone() {
            Destination::WebSocket(dial) => return self.place_socket(&dial, placement),
            Destination::Pipeline(dial) => return self.place_pipeline(&dial, placement),
            Destination::Room(dial) => return self.place_room(&dial, placement),
            Destination::Sip(_) | Destination::Incoming(_) => {}
        }
        let Destination::Sip(dial) = &placement.destination else {
            return Err(PlaceError::BadTarget(NO_ADDRESS.to_owned()));
        };
        let (uri, hops) = dial.route(self.services.names()).await?;
        // Whoever is there may have the credentials, too, when it is called again for a transfer.
        placement.destination.sip().into_iter().for_each(|dial| dial.hops.clone_from(&hops));
        let Destination::Sip(dial) = &placement.destination else {
            return Err(PlaceError::BadTarget(NO_ADDRESS.to_owned()));
        };
        let room = self.services.permit()?;
        let sockets = self.sockets()?;
        let port = sockets.port();
        let no = self.next_no();
        let srtp = self.srtp_of(&placement.destination);
        let supported = self.offer(placement.destination.codecs(), srtp, port, no);
        let mut port = SipPort::caller(dial.target.clone(), placement.destination.guard());
        hops.first().into_iter().for_each(|first| port.set_transport(first.transport));
        for place in hops.iter().filter(|hop| self.services.config.tls.is_insecure(hop)) {
            port.warn(format!("the certificate of {place} was not verified (tls.insecure_hosts)"));
        }
        let (offer, port) = match self.services.config.offer {
            OfferedIn::Invite => (supported.session().to_string(), port),
            OfferedIn::Answer => (String::new(), port.without_offer(supported)),
        };
        let Some(invite) = dial.invite(uri, hops, offer) else {
            return Err(PlaceError::BadTarget(NO_ADDRESS.to_owned()));
        };
        let (sip_news, receiver) = mpsc::channel(NEWS);
        let channel = self.sip_channel(sockets, &placement, port);
        let (mut task, handle) = self.start_call(no, channel, placement, room);
        task.begin();
        let services = self.services.clone();
        self.services.tasks.spawn("call", async move {
            let Some((key, call_id)) = services.sip.invite(invite, sip_news).await else { return };
            task.follow_dialled(key, &call_id, receiver).await;
        });
        Ok(handle)
    }

    /// Answers a call that came in.
    ///
    /// # Errors
    /// See [`PlaceError`]; the call was then refused with 488 or 486.
    pub async fn answer(&self, incoming: Incoming, mut placement: Placement) -> Result<CallHandle, PlaceError> {
        // Whoever calls does not ring for ever.
        let _ = tokio::time::timeout(LOADING, self.ready(placement.voice.as_ref())).await;
        let dialog = match incoming.channel {
            IncomingChannel::Sip(dialog) => dialog,
            IncomingChannel::WebSocket(socket) => return self.answer_socket(*socket, placement),
            IncomingChannel::Pipeline(line) => return self.answer_pipeline(line, placement),
        };
        let (room, sockets, port) =
            match self.prepare_answer(&dialog, incoming.call_id, incoming.source, &placement.destination) {
                Ok(ready) => ready,
                Err(why) => {
                    let refusal = if why == PlaceError::Full { Refusal::Busy } else { Refusal::NoMedia };
                    self.services.sip.order(dialog.key, refusal.into()).await;
                    return Err(why);
                }
            };
        if let Destination::Incoming(terms) = &mut placement.destination {
            terms.user = incoming.called;
        }
        let no = self.next_no();
        let channel = self.sip_channel(sockets, &placement, port);
        let (task, handle) = self.start_call(no, channel, placement, room);
        self.services.tasks.spawn("call", task.answer(dialog.key, dialog.news));
        Ok(handle)
    }

    /// Waits until the voice of a call is loaded.
    async fn ready(&self, voice: Option<&Voice>) {
        if let Some(voice) = voice {
            self.services.speech.synthesizer.ready(voice).await;
        }
    }

    /// Tells the caller of an incoming call that it rings.
    pub async fn ring(&self, incoming: &Incoming) {
        if let IncomingChannel::Sip(dialog) = &incoming.channel {
            self.services.sip.order(dialog.key, SipOrder::Ring(180, None)).await;
        }
    }

    /// Refuses an incoming call; does nothing when it is over.
    pub async fn refuse(&self, incoming: &Incoming, refusal: Refusal) {
        // A WebSocket that is not taken is closed when it is dropped.
        if let IncomingChannel::Sip(dialog) = &incoming.channel {
            self.services.sip.order(dialog.key, refusal.into()).await;
        }
    }

    /// Demands digest credentials (RFC 7616) of an incoming call. Returns true if it has them; else it was challenged
    /// or refused.
    pub async fn authorize(&self, incoming: &Incoming, username: &str, password: &Secret) -> bool {
        // Programs that know MD5 alone often look at the first challenge alone.
        let algorithms = vec![Algorithm::Md5, Algorithm::Sha256];
        let demand = Demand { algorithms, ..Demand::new(REALM, username, password.expose()) };
        // The address of a WebSocket is its credential.
        let IncomingChannel::Sip(dialog) = &incoming.channel else { return true };
        self.services.sip.authorize(dialog.key, demand).await
    }

    fn prepare_answer(
        &self,
        dialog: &IncomingDialog,
        call_id: String,
        source: SocketAddr,
        terms: &Destination,
    ) -> Result<(CallPermit, MediaSockets, SipPort), PlaceError> {
        let room = self.services.permit()?;
        let sockets = self.sockets()?;
        let srtp = self.services.config.srtp;
        let supported = self.offer(terms.codecs(), srtp, sockets.port(), self.next_no());
        let port = SipPort::incoming(call_id, dialog.offer.as_deref(), &supported, terms.guard());
        let mut port = port.map_err(PlaceError::NoMedia)?;
        port.set_transport(dialog.transport);
        port.set_source(source, dialog.transport);
        Ok((room, sockets, port))
    }

    /// Returns the first address that SIP is heard at: that of UDP where there is one.
    pub fn sip_address(&self) -> std::net::SocketAddr {
        self.services.sip.local().first()
    }

    /// Returns every address that SIP is heard at.
    pub fn sip_addresses(&self) -> SipListen {
        self.services.sip.local()
    }

    /// Returns the number of calls that are being made or live.
    pub fn live_calls(&self) -> usize {
        self.services.live.load(Ordering::Relaxed)
    }

    /// Returns the largest number of calls at the same time.
    pub fn max_calls(&self) -> usize {
        self.services.config.max_calls.min(self.inner.ports.pairs())
    }

    /// Returns the recognizer of the other sides' speech.
    pub fn recognizer(&self) -> Arc<dyn Recognizer> {
        self.services.speech.recognizer.clone()
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.services.counters
    }

    /// Lateness of all media threads together.
    pub fn lateness(&self) -> (Vec<u64>, f64) {
        let mut sum = Vec::new();
        let mut max_ms = 0.0f64;
        for shard in &self.services.shards {
            let lateness: &Lateness = &shard.shared.lateness;
            max_ms = max_ms.max(lateness.max_ms());
            for (at, count) in lateness.counts().into_iter().enumerate() {
                if sum.len() <= at {
                    sum.push(0);
                }
                sum[at] += count;
            }
        }
        (sum, max_ms)
    }

    /// Ends all calls (BYE, files closed), then the threads and the SIP socket.
    pub async fn stop(&self) {
        let controls: Vec<CallControl> = self.services.controls.lock().values().cloned().collect();
        for control in controls {
            control.hangup(EndReason::Shutdown);
        }
        for _ in 0..500 {
            if self.live_calls() == 0 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for shard in &self.services.shards {
            shard.stop();
            let thread = shard.thread.lock().take();
            if let Some(thread) = thread {
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
        }
        self.services.tasks.stop().await;
    }
}

/// Parts of a call that its channel brings.
struct CallChannel {
    media: MediaPath,
    media_port: u16,
    port: Port,
    /// True if handshakes may bring keys of the media.
    is_secure: bool,
    socket: Option<Box<SocketSide>>,
    pipeline: Option<Box<PipelineSide>>,
    room: Option<Box<RoomSide>>,
}

impl Engine {
    fn sockets(&self) -> Result<MediaSockets, PlaceError> {
        self.inner.ports.bind(self.services.config.sip.ip()).map_err(|error| PlaceError::NoMedia(error.to_string()))
    }

    /// Returns the offer or answer of a media port, with keys of its own where the call has secure RTP.
    fn offer(&self, codecs: &[Codec], srtp: Encryption, port: u16, no: CallNo) -> Offer {
        let plain = sdp::offer(codecs, self.services.sip.local().ip(), port, no.0);
        self.services.secure_offer(plain, srtp, self.services.config.srtp_keys)
    }

    /// Returns the use of secure RTP in a call.
    fn srtp_of(&self, destination: &Destination) -> Encryption {
        let own = if let Destination::Sip(dial) = destination { dial.srtp } else { None };
        own.unwrap_or(self.services.config.srtp)
    }

    fn next_no(&self) -> CallNo {
        CallNo(self.inner.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Sets in a call's spec how its recognizer hears.
    fn as_it_is_heard(&self, mut spec: CallSpec) -> CallSpec {
        spec.ears.whole = self.services.speech.recognizer.hears_wholes();
        spec
    }

    /// Returns the SIP channel of a call with its media sockets.
    fn sip_channel(&self, sockets: MediaSockets, placement: &Placement, mut port: SipPort) -> CallChannel {
        let mut forwarding = self.services.config.forwarding.clone();
        // Whoever leaves by a transfer follows none.
        if placement.spec.hangup_on_transfer {
            forwarding.refer = Refer::Refuse;
        }
        port.forward(forwarding);
        CallChannel {
            media_port: sockets.port(),
            media: MediaPath::Udp(sockets),
            port: Port::Sip(Box::new(port)),
            is_secure: self.srtp_of(&placement.destination) != Encryption::Off,
            socket: None,
            pipeline: None,
            room: None,
        }
    }

    fn start_call(
        &self,
        no: CallNo,
        channel: CallChannel,
        placement: Placement,
        permit: CallPermit,
    ) -> (Box<CallTask>, CallHandle) {
        let CallChannel { media, media_port, port, is_secure, socket, pipeline, room: side } = channel;
        let (messages, from_shard) = mpsc::channel(MESSAGES);
        let (news, watch) = mpsc::channel::<CallUpdate>(WATCH);
        let (hangup, hangups) = mpsc::channel(4);
        let control = CallControl { hangup };
        self.services.calls.lock().insert(no, messages);
        self.services.controls.lock().insert(no, control.clone());
        let log = match &port {
            Port::Sip(_) => SIP_LOG,
            Port::WebSocket(_) => WEBSOCKET_LOG,
            Port::Pipeline(_) => PIPELINE_LOG,
            Port::Room(_) => ROOM_LOG,
        };
        let files = Files::open(&self.inner.recorder, placement.folder.as_deref(), placement.captured, log);
        let (tap, tap_reader) = RingBuffer::new(TAP_SAMPLES);
        let (files, recording, packet_tap) = files.split();
        let shard = (0..self.services.shards.len())
            .min_by_key(|at| self.services.shards[*at].shared.calls.load(Ordering::Relaxed))
            .unwrap_or(0);
        let (handshakes, keys) = is_secure.then(|| keys_of(self.services.identity.clone())).unzip();
        let live = LiveCall {
            no,
            call: Call::new(self.as_it_is_heard(placement.spec.clone())),
            media,
            tap,
            tapped: 0,
            recording,
            packet_tap,
            handshakes,
            awaits_reports: false,
            dropped_frames: 0,
            ticks: 0,
            symmetric: self.services.config.symmetric_rtp,
        };
        self.services.order(shard, ToShard::Place(Box::new(live)));
        let task = CallTask::new(
            self.services.clone(),
            no,
            shard,
            placement,
            files,
            tap_reader,
            from_shard,
            news,
            hangups,
            permit,
            port,
            media_port,
            keys,
            socket,
            pipeline,
            side,
        );
        // The task that runs it moves it more than once, and would hold room for each.
        (Box::new(task), CallHandle { news: watch, control })
    }
}

/// Bytes of a connected call's rings to other threads; until it is connected it has one more, for early media. A call
/// holds at most 300 KiB, with the call itself (140 KiB, bounded by media), its task, channels and SIP dialog. `ringer
/// load` measures it.
const RING_BYTES: usize = 2 * (TAP_SAMPLES + RING_SAMPLES);
const _: () = assert!(RING_BYTES <= 101 * 1024);

/// Returns both ends of the way that handshakes of a call go.
fn keys_of(identity: Identity) -> (dtls::QueueWriter, Keys) {
    let (writer, reader) = dtls::queue();
    (writer, Keys::new(identity, reader))
}

#[cfg(test)]
mod tests;
