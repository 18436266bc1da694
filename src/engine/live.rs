//! The engine on real sockets and threads.

mod pump;

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use ringer_base::config::{Secret, SipListen};
use ringer_base::tasks::Tasks;
use ringer_media::call::{Call, CallSpec, EndReason};
use ringer_provider::{Recognizer, Voice};
use ringer_sip::auth::{Algorithm, Demand};
use ringer_transport::dtls::Identity;
use ringer_transport::incoming::{Incoming, IncomingChannel};
use ringer_transport::peer::Refusal;
use ringer_transport::sip::driver::SipSocket;
use ringer_transport::sip::order::SipOrder;
use ringer_transport::sockets::MediaPorts;
use ringer_transport::websocket::dial::Dialer;
use rtrb::RingBuffer;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use super::call_state::Files;
use super::call_task::{CallParts, CallTask};
use super::channel::{self, Means, Opening};
use super::counters::Counters;
use super::known_words::known_words;
use super::lateness::Lateness;
use super::recorder::{CALL_FRAMES, Recorder};
use super::recording_ring::PIECE_BYTES;
use super::services::CallServices;
use super::shard::{LiveCall, ToShard};
use super::shard_handle::start_shard;
use super::simulated::{self, Answerer};
use super::{CallControl, CallHandle, CallUpdate, EngineConfig, PlaceError, Placement, Speech, timed};

/// Longest time for which an incoming call waits for its voice to be loaded.
const LOADING: std::time::Duration = std::time::Duration::from_secs(5);

/// Longest time for which a call that is to be placed waits for its known words.
const PREPARING: std::time::Duration = std::time::Duration::from_secs(120);

/// Longest time for which an engine that stops waits for the ends of its calls.
const STOPPING: std::time::Duration = std::time::Duration::from_secs(10);

/// Samples that wait for a recognizer (560 ms); they come 20 ms at a time. Until a recognizer listens, nothing is
/// written to their ring, which takes addresses alone.
const TAP_SAMPLES: usize = 8960;
/// Messages that may wait for one call's task.
const MESSAGES: usize = 4096;
/// Realm of digest authentication for incoming calls (RFC 3261 22).
const REALM: &str = "ringer";
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
        clock: ringer_base::clock::Clock,
    ) -> io::Result<(Engine, mpsc::Receiver<Incoming>)> {
        config.names = config.names.for_sockets(&config.sip);
        let tasks = Tasks::new();
        let (sip, incoming) = SipSocket::start(config.sip, &config.tls, config.advertise, &tasks).await?;
        sip.ask_session_interval(config.session_interval_s).await;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if config.shards == 0 { cores.saturating_sub(1).max(1) } else { config.shards };
        let counters = Arc::<Counters>::default();
        let (recorder, blocks) = Recorder::start(counters.clone(), count)?;
        let (mut shards, mut messages) = (Vec::new(), Vec::new());
        for (at, blocks) in blocks.into_iter().enumerate() {
            let (shard, from_shard) = start_shard(at, blocks)?;
            shards.push(shard);
            messages.push(from_shard);
        }
        let dialer = Dialer::new(&config.tls);
        // A trunk may have secure RTP where other calls have none.
        let identity = Identity::new().map_err(io::Error::other)?;
        let inner = Inner {
            ports: MediaPorts::new(config.rtp_ports.clone()),
            recorder,
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
            idle: Notify::new(),
            clock,
            runtime: Handle::current(),
            identity,
        };
        let (services, inner) = (Arc::new(services), Arc::new(inner));
        for (at, from_shard) in messages.into_iter().enumerate() {
            // SAFETY: the wake owns its descriptor and closes it only when the last Arc, of which AsyncFd holds one, is
            // gone.
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
            let permit = self.services.permit()?;
            let (synthesizer, clock) = (self.services.speech.synthesizer.clone(), self.services.clock.clone());
            return simulated::place(placement, answer, synthesizer, clock, &self.services.tasks, permit);
        }
        self.ready(placement.voice.as_ref()).await;
        // Words that are not made by then are made during the call.
        let known = known_words(&placement.spec, placement.mind.known_texts());
        let _ = tokio::time::timeout(PREPARING, self.prepare(placement.voice.as_ref(), &known)).await;
        let opening = channel::dial(self.means(), &mut placement).await?;
        let (moves_audio, task, handle) = self.start_call(opening, placement);
        self.run(moves_audio, task.dial());
        Ok(handle)
    }

    /// Answers a call that came in.
    ///
    /// # Errors
    /// See [`PlaceError`]; the call was then refused with 488 or 486.
    pub async fn answer(&self, incoming: Incoming, mut placement: Placement) -> Result<CallHandle, PlaceError> {
        // Whoever calls does not ring for ever.
        let known = known_words(&placement.spec, placement.mind.known_texts());
        let voice = placement.voice.as_ref();
        let ready = async {
            self.ready(voice).await;
            self.prepare(voice, &known).await;
        };
        let _ = tokio::time::timeout(LOADING, ready).await;
        let opening = channel::answer(self.means(), incoming, &mut placement).await?;
        let (moves_audio, task, handle) = self.start_call(opening, placement);
        self.run(moves_audio, task.answer());
        Ok(handle)
    }

    /// Waits until the voice of a call is loaded.
    async fn ready(&self, voice: Option<&Voice>) {
        if let Some(voice) = voice {
            self.services.speech.synthesizer.ready(voice).await;
        }
    }

    /// Makes the words that the call is known to need, where its synthesizer takes long for them.
    async fn prepare(&self, voice: Option<&Voice>, known: &[String]) {
        if let Some(voice) = voice {
            self.services.speech.synthesizer.prepare(known, voice).await;
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

    /// Sends the caller of an incoming call to another host and port.
    pub async fn redirect(&self, incoming: &Incoming, to: &str) {
        if let IncomingChannel::Sip(dialog) = &incoming.channel {
            self.services.sip.order(dialog.key, SipOrder::redirect(&incoming.called, to)).await;
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

    /// Bytes that are allocated for recorded audio and were never used, which take addresses alone.
    pub fn unused_recording_bytes(&self) -> usize {
        self.inner.recorder.unused_bytes()
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
        let _ = tokio::time::timeout(STOPPING, self.services.wait_idle()).await;
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

impl Engine {
    fn means(&self) -> Means<'_> {
        let Inner { ports, dialer, next, .. } = &*self.inner;
        Means { services: &self.services, ports, dialer, next }
    }

    /// Sets in a call's spec how its recognizer hears, and the library for Opus.
    fn as_it_is_heard(&self, mut spec: CallSpec) -> CallSpec {
        spec.ears.whole = self.services.speech.recognizer.hears_wholes();
        spec.opus = self.services.config.opus.clone();
        spec
    }

    /// Begins a call on a media thread, and the task of its connections. Returns true where the call's task moves
    /// audio, and that task.
    fn start_call(&self, opening: Opening, placement: Placement) -> (bool, Box<CallTask>, CallHandle) {
        let Opening { no, permit, channel, media, handshakes, carrier, moves_audio } = opening;
        let (messages, from_shard) = mpsc::channel(MESSAGES);
        let (news, watch) = mpsc::channel::<CallUpdate>(WATCH);
        let (hangup, hangups) = mpsc::channel(4);
        let control = CallControl { hangup };
        self.services.calls.lock().insert(no, messages);
        self.services.controls.lock().insert(no, control.clone());
        let folder = placement.folder.as_deref();
        let shard = (0..self.services.shards.len())
            .min_by_key(|at| self.services.shards[*at].shared.calls.load(Ordering::Relaxed))
            .unwrap_or(0);
        let files = Files::open(&self.inner.recorder, shard, folder, placement.captured, channel.log());
        let (tap, tap_reader) = RingBuffer::new(TAP_SAMPLES);
        let (files, recording, packet_tap) = files.split();
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
        let parts = CallParts {
            services: self.services.clone(),
            no,
            shard,
            channel,
            placement,
            files,
            tap: tap_reader,
            from_shard,
            news,
            hangups,
            permit,
        };
        // The task that runs it moves it more than once, and would hold memory for each.
        let task = Box::new(CallTask::new(parts));
        if let Some((name, carrier)) = carrier {
            timed::spawn(&self.services.tasks, name, carrier);
        }
        (moves_audio, task, CallHandle { news: watch, control })
    }

    /// Starts the task of a call: beside the connections where it moves audio.
    fn run(&self, moves_audio: bool, task: impl Future<Output = ()> + Send + 'static) {
        match moves_audio {
            true => timed::spawn(&self.services.tasks, "call", task),
            false => self.services.tasks.spawn("call", task),
        }
    }
}

/// Bytes of a connected call's rings to other threads; until it is connected it has one more, for early media. The
/// audio in them, 26 KB a call, is in its media thread's blocks. A call holds at most 260 KiB, with the call itself
/// (140 KiB, bounded by media), its task, channels and SIP dialog. `ringer load` measures it.
const RING_BYTES: usize = 2 * TAP_SAMPLES + PIECE_BYTES * CALL_FRAMES;
const _: () = assert!(RING_BYTES <= 20 * 1024);

#[cfg(test)]
mod tests;
