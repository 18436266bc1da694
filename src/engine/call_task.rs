//! The task beside a live call: it carries out effects, moves SIP events in and control out, keeps the journal, and at the end
//! says what is left.

mod closing;
mod events;
mod most;
mod pipeline;
mod room;
mod socket;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ringer_media::call::{EndReason, Ending, RemoteKind, Signal};
use ringer_media::recording::Layout;
use ringer_media::time::Time;
use ringer_sip::{CallKey, Hop};
use rtrb::Consumer;
use tokio::sync::mpsc;
use tracing::Instrument;

use self::closing::last_messages;
use self::most::{SignalledEvents, SignallingLog};
use super::dialogs::{Dialogs, News, Of};
use super::effects::Effects;
use super::gate::{DialGate, Forwarded};
use super::keys::{KeyNews, Keys, LOOK_EVERY};
use super::looking::Looking;
use super::missing_recognizer::WordNeeds;
use super::packet_tap::PacketTap;
use super::pipeline::{PipelineSide, SideNews};
use super::recorder::{Recorder, Track, Written};
use super::recording_ring::{RecordingRing, RecordingRings};
use super::room::{RoomSide, SideNews as RoomNews};
use super::services::{CallPermit, CallServices};
use super::shard::{CallNo, FromShard, ToShard};
use super::socket::{SocketNews, SocketSide};
use super::timeline::{Journal, cut_behind_end};
use super::warnings::timeline_warnings;
use super::{CALLER_CLEAN, CAPTURED, CallReport, CallUpdate, Destination, EARLY_MEDIA, JOURNAL, Placement, RECORDING};
use crate::provider::guard::Guard;
use crate::transport::port::{Lookup, Port, PortOutput, ToPeer};
use crate::transport::sip::address::Address;
use crate::transport::sip::driver::{NEWS, SipNews};
use crate::transport::sip::port::SipOrder;
use crate::transport::sip::transfer::TargetCall;

/// Time limit for files to close.
const CLOSING: Duration = Duration::from_secs(5);
/// Time limit for the other side to accept that this one hung up.
const FAREWELL: Duration = Duration::from_secs(1);
/// Warnings of a call's channel that are kept.
const MAX_WARNINGS: usize = 200;
/// Interval at which the audio ring is emptied while a recognizer listens.
const LISTEN_EVERY: Duration = Duration::from_millis(40);

/// The files of one call.
pub(super) struct Files {
    tracks: Option<Tracks>,
    packet_tap: Option<PacketTap>,
    rest: OpenFiles,
}

/// Files that hold audio of a call.
struct Tracks {
    recording: Track<2>,
    clean: Track<1>,
    early: Track<1>,
}

/// Files of a call that the task keeps open.
pub(super) struct OpenFiles {
    journal: Journal,
    log: SignallingLog,
    signalled: SignalledEvents,
    recording: Vec<(Written, Layout)>,
    /// The captured datagrams, and how many are missing.
    capture: Option<(Written, Arc<AtomicU64>)>,
    warnings: Vec<String>,
}

impl Files {
    /// Opens the files of a call in `folder`, its signalling named `log`; what cannot be opened is a warning, not an error.
    pub fn open(recorder: &Recorder, folder: Option<&Path>, captured: bool, log: &str) -> Files {
        let mut rest = OpenFiles {
            journal: Journal::default(),
            log: SignallingLog::default(),
            signalled: SignalledEvents::default(),
            recording: Vec::new(),
            capture: None,
            warnings: Vec::new(),
        };
        let Some(folder) = folder else { return Files { tracks: None, packet_tap: None, rest } };
        if let Err(error) = std::fs::create_dir_all(folder) {
            rest.warnings.push(format!("nothing is recorded: {}: {error}", folder.display()));
            return Files { tracks: None, packet_tap: None, rest };
        }
        match Journal::at(&folder.join(JOURNAL)) {
            Ok(journal) => rest.journal = journal,
            Err(error) => rest.warnings.push(format!("the timeline is not written to {}: {error}", folder.display())),
        }
        rest.log = SignallingLog::new(std::fs::File::create(folder.join(log)).ok());
        let tracks = Tracks {
            recording: recorder.stereo(folder.join(RECORDING)),
            clean: recorder.mono(folder.join(CALLER_CLEAN), Layout::CallerClean),
            early: recorder.mono(folder.join(EARLY_MEDIA), Layout::Agent),
        };
        let packet_tap = captured.then(|| {
            let (ring, file) = recorder.bytes(folder.join(CAPTURED));
            let missing = Arc::<AtomicU64>::default();
            rest.capture = Some((file, missing.clone()));
            PacketTap::new(ring, missing)
        });
        Files { tracks: Some(tracks), packet_tap, rest }
    }

    /// Returns the parts for the task, and those for the media thread.
    pub fn split(self) -> (OpenFiles, RecordingRings, Option<PacketTap>) {
        let Files { tracks, packet_tap, mut rest } = self;
        let Some(Tracks { recording, clean, early }) = tracks else {
            return (rest, RecordingRings::default(), packet_tap);
        };
        rest.recording = vec![(recording.file, recording.layout), (clean.file, clean.layout)];
        let ([sent, heard], [clean], [early]) = (
            recording.rings.map(RecordingRing::new),
            clean.rings.map(RecordingRing::new),
            early.rings.map(RecordingRing::new),
        );
        (rest, RecordingRings { sent, heard, clean, early }, packet_tap)
    }
}

/// Task of one live call.
pub(super) struct CallTask {
    services: Arc<CallServices>,
    no: CallNo,
    shard: usize,
    effects: Effects,
    files: OpenFiles,
    from_shard: mpsc::Receiver<FromShard>,
    news: mpsc::Sender<CallUpdate>,
    hangups: mpsc::Receiver<EndReason>,
    dialled_at_ms: Option<i64>,
    connected_at_ms: Option<i64>,
    /// Time since which media could come, where that was before the first tick of the call.
    up_since: Option<Time>,
    /// Nanoseconds by which the wall clock was ahead of the media threads' clock when the call connected.
    ahead_ns: i64,
    port: Port,
    /// Keys that handshakes bring; `None`: no call has secure RTP.
    keys: Option<Keys>,
    /// The call connected, and is not told to be before there are keys.
    unsaid: Option<i64>,
    ending: Option<Ending>,
    wanted: WordNeeds,
    guard: Guard,
    looking: Looking,
    terms: Destination,
    /// Port of RTP on this side.
    media_port: u16,
    dialogs: Dialogs,
    /// Present where the channel is a WebSocket.
    socket: Option<Box<SocketSide>>,
    /// Present where the channel is the connection to a voice pipeline.
    pipeline: Option<Box<PipelineSide>>,
    /// Present where the channel is a media room.
    room: Option<Box<RoomSide>>,
    _permit: CallPermit,
}

impl CallTask {
    pub fn new(
        services: Arc<CallServices>,
        no: CallNo,
        shard: usize,
        placement: Placement,
        files: OpenFiles,
        tap: Consumer<i16>,
        from_shard: mpsc::Receiver<FromShard>,
        news: mpsc::Sender<CallUpdate>,
        hangups: mpsc::Receiver<EndReason>,
        permit: CallPermit,
        port: Port,
        media_port: u16,
        keys: Option<Keys>,
        socket: Option<Box<SocketSide>>,
        pipeline: Option<Box<PipelineSide>>,
        room: Option<Box<RoomSide>>,
    ) -> CallTask {
        let wanted = WordNeeds::of(&placement.spec, &placement.keyterms);
        let guard = placement.destination.guard();
        let terms = placement.destination.clone();
        services.speech.recognizer.expect();
        let effects = Effects::new(services.clone(), no, shard, placement, tap);
        CallTask {
            services,
            no,
            shard,
            effects,
            files,
            from_shard,
            news,
            hangups,
            dialled_at_ms: None,
            connected_at_ms: None,
            up_since: None,
            ahead_ns: 0,
            port,
            keys,
            unsaid: None,
            ending: None,
            wanted,
            guard,
            looking: Looking::default(),
            terms,
            media_port,
            dialogs: Dialogs::default(),
            socket,
            pipeline,
            room,
            _permit: permit,
        }
    }

    /// Gives an order to the call.
    fn tell(&mut self, order: ToShard) {
        self.services.order(self.shard, order);
    }

    /// Passes on what the port says of a call that is about to be dialled.
    pub fn begin(&mut self) {
        while let Some(output) = self.port.poll() {
            self.carry_out(output);
        }
    }

    /// Follows a call that was dialled to its end.
    pub async fn follow_dialled(mut self: Box<Self>, key: CallKey, call_id: &str, news: mpsc::Receiver<SipNews>) {
        self.services.counters.placed();
        self.dialled_at_ms = Some(self.services.clock.now_ms());
        if let Port::Sip(port) = &mut self.port {
            port.set_call_id(call_id);
        }
        self.dialogs.begin(key, news);
        self.run().await;
    }

    /// Answers a call that came in, and follows it to its end.
    pub async fn answer(mut self: Box<Self>, key: CallKey, news: mpsc::Receiver<SipNews>) {
        self.services.counters.answered();
        self.dialogs.begin(key, news);
        if let Port::Sip(port) = &mut self.port {
            port.answer();
        }
        self.drain_port().await;
        self.run().await;
    }

    /// Carries out the port's outputs, in order.
    async fn drain_port(&mut self) {
        while let Some(output) = self.port.poll() {
            match output {
                PortOutput::Send(ToPeer::WebSocket(order)) => self.order_socket(order),
                PortOutput::Send(ToPeer::Pipeline(order)) => self.order_pipeline(order),
                PortOutput::Send(ToPeer::Room(order)) => self.order_room(order),
                PortOutput::Send(ToPeer::Sip(order)) => self.order_sip(Of::Call, order).await,
                PortOutput::Send(ToPeer::Target(order)) => self.order_sip(Of::Target, order).await,
                PortOutput::Frames(_) | PortOutput::ClearFrames | PortOutput::Log(..) => {
                    self.take_socket_output(output)
                }
                PortOutput::Locate(address, lookup) => self.locate(address, lookup),
                PortOutput::Dial(call) => self.dial_target(&call).await,
                PortOutput::Switch => self.dialogs.switch(),
                PortOutput::LocateMedia(host) => self.looking.begin(host, self.guard.clone()),
                output => self.carry_out(output),
            }
        }
    }

    async fn order_sip(&mut self, of: Of, order: SipOrder) {
        if let Some(key) = self.dialogs.key(of) {
            self.services.sip.order(key, order).await;
        }
    }

    /// Carries out an output that needs no dialog.
    fn carry_out(&mut self, output: PortOutput) {
        match output {
            PortOutput::Signal(Signal::Answered { code, leg, .. }) => {
                let text = self.can_hear_words(leg.heard_rate_hz());
                self.tell(ToShard::Signal(self.no, Signal::Answered { code, leg, text }));
                self.keys.iter_mut().for_each(Keys::miss_from_now);
            }
            PortOutput::Signal(Signal::UpSince(at)) => {
                self.up_since = Some(at);
                self.tell(ToShard::Signal(self.no, Signal::UpSince(at)));
            }
            PortOutput::Signal(signal) => self.tell(ToShard::Signal(self.no, signal)),
            PortOutput::Media(plan) => {
                self.tell(ToShard::Connect(self.no, plan.rtp, plan.rtcp));
                self.keys.iter_mut().for_each(|keys| keys.follow(&plan));
                self.drain_keys();
            }
            PortOutput::Warning(warning) => {
                if self.files.warnings.len() < MAX_WARNINGS {
                    self.files.warnings.push(warning);
                }
            }
            PortOutput::Send(_)
            | PortOutput::Frames(_)
            | PortOutput::ClearFrames
            | PortOutput::Log(..)
            | PortOutput::Locate(..)
            | PortOutput::LocateMedia(_)
            | PortOutput::Dial(_)
            | PortOutput::Switch => {}
        }
    }

    /// Carries out what the keys of the call ask for.
    fn drain_keys(&mut self) {
        while let Some(news) = self.keys.as_mut().and_then(Keys::poll) {
            match news {
                KeyNews::Send(path, datagram) => self.tell(ToShard::Datagram(self.no, path, datagram)),
                KeyNews::Keys(rtp, reports) => {
                    self.tell(ToShard::Signal(self.no, Signal::Keys { rtp, reports }));
                    if rtp.is_some() {
                        self.say_connected();
                    }
                }
                KeyNews::AwaitReports(awaits) => self.tell(ToShard::AwaitReports(self.no, awaits)),
                KeyNews::Failed(kind, text) => {
                    tracing::info!("{text}");
                    if let Port::Sip(port) = &mut self.port {
                        port.end_unkeyed(kind, text);
                    }
                }
            }
        }
    }

    /// Tells that the call is connected, where it waited for keys.
    fn say_connected(&mut self) {
        if let Some(at) = self.unsaid.take() {
            let _ = self.news.try_send(CallUpdate::Connected(at));
        }
    }

    fn can_hear_words(&mut self, rate_hz: u32) -> bool {
        let supported = self.effects.hears_words(rate_hz);
        self.files.warnings.extend(self.wanted.unmet(&supported, &*self.services.speech.recognizer));
        supported.is_ok()
    }

    async fn run(self: Box<Self>) {
        let span = tracing::info_span!("call", call_id = self.port.peer().call_id);
        self.follow().instrument(span).await;
    }

    async fn follow(mut self: Box<Self>) {
        let _ = self.news.try_send(CallUpdate::Dispatched);
        let mut listen = tokio::time::interval(LISTEN_EVERY);
        listen.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        while self.ending.is_none() {
            let needs_ticks = matches!(&self.port, Port::WebSocket(port) if port.needs_ticks());
            tokio::select! {
                biased;
                Some(message) = self.from_shard.recv() => self.follow_shard(message).await,
                Some((of, news)) = self.dialogs.next() => self.follow_sip(of, news).await,
                found = self.looking.finish(), if self.looking.is_open() => {
                    if let Port::Sip(port) = &mut self.port {
                        port.media_found(found);
                    }
                    self.drain_port().await;
                }
                news = next_news(&mut self.socket, needs_ticks) => self.follow_socket(news).await,
                news = next_of_pipeline(&mut self.pipeline) => self.follow_pipeline(news).await,
                news = next_of_room(&mut self.room) => self.follow_room(news).await,
                Some(reason) = self.hangups.recv() => self.tell(ToShard::Hangup(self.no, reason)),
                now = look.tick(), if self.keys.as_ref().is_some_and(Keys::is_open) => {
                    self.keys.iter_mut().for_each(|keys| keys.look(now.into_std()));
                    self.drain_keys();
                    self.drain_port().await;
                }
                _ = listen.tick(), if self.effects.is_listening() => self.effects.listen(),
                else => break,
            }
        }
        self.effects.stop();
        self.close_socket().await;
        self.close_pipeline().await;
        self.close_room().await;
        self.report().await;
    }

    async fn follow_shard(&mut self, message: FromShard) {
        match message {
            FromShard::Control(_, control) => {
                // Earlier messages of the call go out first.
                self.exchange_frames().await;
                self.port.control(&control);
                self.drain_port().await;
            }
            FromShard::Effect(_, id, effect, tapped) => self.effects.perform(id, effect, tapped),
            FromShard::Ears(_, from) => self.effects.ears_from(from),
            FromShard::Event(_, event) => self.event(event).await,
            FromShard::Ended(_, ending) => self.ending = Some(*ending),
            FromShard::Stranger(_, stranger) => {
                if let Port::Sip(port) = &mut self.port {
                    port.take_stranger(stranger);
                }
                self.drain_port().await;
            }
            FromShard::Handshakes(_) => {
                self.keys.iter_mut().for_each(Keys::receive);
                self.drain_keys();
            }
            FromShard::Frames(_) => self.exchange_frames().await,
            FromShard::Gone(_) => {}
        }
    }

    async fn follow_sip(&mut self, of: Of, news: News) {
        let Port::Sip(port) = &mut self.port else { return };
        match (news, of) {
            (News::Sip(SipNews::Trace(message)), _) => return self.write_log(self.services.clock.now_ms(), &message),
            (News::Sip(SipNews::Event(event)), Of::Call) => port.receive(*event),
            (News::Sip(SipNews::Event(event)), Of::Target) => port.receive_target(*event),
            (News::Sip(SipNews::Event(_)), Of::Past) => {}
            (News::Located(found), _) => port.take_address(found),
        }
        self.drain_port().await;
    }

    /// Finds out where a redirect or a transfer leads, and if it may be dialled, beside everything else that happens.
    fn locate(&mut self, target: Address, lookup: Lookup) {
        let (socket, guard, names) = (self.services.sip.clone(), self.guard.clone(), self.services.names().clone());
        let of = if lookup == Lookup::TargetRedirect { Of::Target } else { Of::Call };
        let located = (lookup == Lookup::Transfer).then(|| self.dialogs.await_address());
        let Some(key) = self.dialogs.key(of) else { return };
        let gate = self.terms.gate().cloned();
        let forwarded = if lookup == Lookup::Transfer { Forwarded::Transfer } else { Forwarded::Redirect };
        self.services.tasks.spawn("locate", async move {
            let found = match target.hops(&names, &guard).await {
                Ok(hops) => pass_gate(gate, forwarded, &target, hops).await,
                Err(why) => Err(why.kind().to_owned()),
            };
            if let Err(why) = &found {
                tracing::info!(host = target.uri().host, "the call is not forwarded: {why}");
            }
            match located {
                Some(located) => drop(located.send(found)),
                None => socket.order(key, SipOrder::Resolved(found.unwrap_or_default())).await,
            }
        });
    }

    /// Calls the target of a transfer; its messages go into the same log.
    async fn dial_target(&mut self, call: &TargetCall) {
        let offer = self.services.target_offer(call, self.media_port, self.no);
        let Some(invite) = self.terms.invite_target(call, offer) else { return };
        let (news, receiver) = mpsc::channel(NEWS);
        // Without a socket the engine is about to stop.
        if let Some((key, _)) = self.services.sip.invite(invite, news).await {
            self.dialogs.add_target(key, receiver);
        }
    }

    fn write_log(&mut self, at: i64, message: &str) {
        self.files.log.write(at, message);
    }

    async fn report(mut self: Box<Self>) {
        self.services.forget(self.no);
        let Some(mut ending) = self.ending.take() else { return };
        if ending.connected {
            ending.quality.clock_slip_ms = self.services.clock.ahead_ns().abs_diff(self.ahead_ns) as f64 / 1e6;
        }
        let ended_at_ms = self.services.clock.now_ms();
        self.services.counters.ended(&ending);
        tracing::debug!(reason = ?ending.reason, connected = ending.connected, "the call is over");
        let clock = self.services.clock.clone();
        let mut dialogs = std::mem::take(&mut self.dialogs);
        let closing = async {
            let recording = self.close_recording(&ending).await;
            self.close_capture().await;
            recording
        };
        let (recording, messages) = tokio::join!(closing, last_messages(&mut dialogs, &clock));
        messages.iter().for_each(|(at, message)| self.write_log(*at, message));
        self.files.warnings.extend(self.files.log.warning());
        self.files.warnings.extend(self.files.signalled.warning());
        self.files.warnings.extend(self.effects.warnings());
        self.files.warnings.extend(self.refused_warning());
        if let Port::Sip(port) = &self.port {
            self.files.warnings.extend(port.strangers_warning(ending.quality.foreign_address));
        }
        let speaker = self.effects.speaker().await;
        // A call of hours has a long journal, and other calls wait for this thread.
        let journal = std::mem::take(&mut self.files.journal);
        let read = tokio::task::spawn_blocking(move || {
            let mut warnings = Vec::new();
            (journal.finish(&mut warnings), warnings)
        });
        let (mut timeline, warnings) = read.await.unwrap_or_else(|_| {
            (Vec::new(), vec!["the timeline could not be read back: see timeline.jsonl".to_owned()])
        });
        cut_behind_end(&mut timeline);
        self.files.warnings.extend(warnings);
        self.files.warnings.extend(timeline_warnings(&timeline, self.wanted.is_scripted()));
        if ending.remote.as_ref().is_none_or(|remote| remote.kind != RemoteKind::NoKeys) {
            self.say_connected();
        }
        let (agent_errors, variables) = (self.agent_errors(), self.variables());
        let report = CallReport {
            timeline,
            // A call of which nobody was told that it is connected had no conversation.
            connected_at_ms: self.connected_at_ms.filter(|_| self.unsaid.is_none()),
            ended_at_ms,
            peer: self.port.peer().clone(),
            warnings: self.files.warnings,
            agent_errors,
            variables,
            speaker,
            recording,
            ending,
        };
        let _ = self.news.send(CallUpdate::Ended(Box::new(report))).await;
    }
}

/// Returns the next news of the connection to a pipeline; waits for ever without one, and after the last.
async fn next_of_pipeline(pipeline: &mut Option<Box<PipelineSide>>) -> SideNews {
    if let Some(pipeline) = pipeline
        && let Some(news) = pipeline.next().await
    {
        return news;
    }
    std::future::pending().await
}

/// Returns the next news of a room; waits for ever without one, and after the last.
async fn next_of_room(room: &mut Option<Box<RoomSide>>) -> RoomNews {
    if let Some(room) = room
        && let Some(news) = room.next().await
    {
        return news;
    }
    std::future::pending().await
}

/// Returns the next news of the connection; waits for ever without one.
async fn next_news(socket: &mut Option<Box<SocketSide>>, ticks: bool) -> SocketNews {
    match socket {
        Some(socket) => socket.next(ticks).await,
        None => std::future::pending().await,
    }
}

/// Returns the hops to an address that the other side names, where the gate lets it be dialled.
async fn pass_gate(
    gate: Option<DialGate>,
    forwarded: Forwarded,
    target: &Address,
    hops: Vec<Hop>,
) -> Result<Vec<Hop>, String> {
    match gate {
        Some(gate) => gate.admit(forwarded, target.uri(), &hops).await.map(|()| hops),
        None => Ok(hops),
    }
}
