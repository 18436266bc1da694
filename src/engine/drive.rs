//! The task beside a live call: it carries out effects, moves SIP events in and control out, keeps the journal, and at the end
//! says what is left.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ringer_media::call::{Control, EndReason, Ending, Event, Signal, What};
use ringer_media::frame::Sample;
use ringer_media::recording::Layout;
use ringer_sip::sdp::Negotiated;
use ringer_sip::uri::Uri;
use ringer_sip::{CallEvent, CallKey};
use rtrb::Consumer;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::amiss::amiss;
use super::deaf::Wanted;
use super::effects::Effects;
use super::real::{Inner, Room};
use super::recorder::{self, Recorder, Track, Written};
use super::shard::{CallNo, FromShard, ToShard};
use super::tape::{Tape, Tapes};
use super::timeline::Journal;
use super::wire::Wire;
use super::{CAPTURED, CallNews, CallReport, JOURNAL, Placement};
use crate::provider::guard::Guard;
use crate::transport::io::SipNews;
use crate::transport::sip;

/// How long files may take to close.
const CLOSING: Duration = Duration::from_secs(5);
/// How long the far side may take to accept that this one hung up.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often the ears' ring is emptied while a recognizer listens.
const LISTEN_EVERY: Duration = Duration::from_millis(40);

/// The files of one call.
pub(super) struct Files {
    tracks: Option<Tracks>,
    wire: Option<Wire>,
    rest: OpenFiles,
}

/// Those that hold audio.
struct Tracks {
    recording: Track<2>,
    clean: Track<1>,
    early: Track<1>,
}

/// What stays with the driver.
pub(super) struct OpenFiles {
    journal: Journal,
    sip_log: Option<std::fs::File>,
    recording: Vec<(Written, Layout)>,
    /// The captured datagrams, and how many are missing.
    capture: Option<(Written, Arc<AtomicU64>)>,
    warnings: Vec<String>,
}

impl Files {
    /// Opens the files of a call in `folder`; what cannot be opened is a warning, not an error.
    pub fn open(recorder: &Recorder, folder: Option<&Path>, captured: bool) -> Files {
        let mut rest = OpenFiles {
            journal: Journal::default(),
            sip_log: None,
            recording: Vec::new(),
            capture: None,
            warnings: Vec::new(),
        };
        let Some(folder) = folder else { return Files { tracks: None, wire: None, rest } };
        if let Err(error) = std::fs::create_dir_all(folder) {
            rest.warnings.push(format!("nothing is recorded: {}: {error}", folder.display()));
            return Files { tracks: None, wire: None, rest };
        }
        match Journal::at(&folder.join(JOURNAL)) {
            Ok(journal) => rest.journal = journal,
            Err(error) => rest.warnings.push(format!("the timeline is not written to {}: {error}", folder.display())),
        }
        rest.sip_log = std::fs::File::create(folder.join("sip.log")).ok();
        let tracks = Tracks {
            recording: recorder.stereo(folder.join("recording.wav")),
            clean: recorder.mono(folder.join("caller_clean.wav"), Layout::CallerClean),
            early: recorder.mono(folder.join("early_media.wav"), Layout::Agent),
        };
        let wire = captured.then(|| {
            let (ring, file) = recorder.bytes(folder.join(CAPTURED));
            let missing = Arc::<AtomicU64>::default();
            rest.capture = Some((file, missing.clone()));
            Wire::new(ring, missing)
        });
        Files { tracks: Some(tracks), wire, rest }
    }

    /// The parts for the driver, and those for the media thread.
    pub fn split(self) -> (OpenFiles, Tapes, Option<Wire>) {
        let Files { tracks, wire, mut rest } = self;
        let Some(Tracks { recording, clean, early }) = tracks else { return (rest, Tapes::default(), wire) };
        rest.recording = vec![(recording.file, recording.layout), (clean.file, clean.layout)];
        let ([sent, heard], [clean], [early]) =
            (recording.rings.map(Tape::new), clean.rings.map(Tape::new), early.rings.map(Tape::new));
        (rest, Tapes { sent, heard, clean, early }, wire)
    }
}

/// Drives one call.
pub(super) struct Driver {
    inner: Arc<Inner>,
    no: CallNo,
    shard: usize,
    effects: Effects,
    files: OpenFiles,
    from_shard: mpsc::Receiver<FromShard>,
    news: mpsc::Sender<CallNews>,
    hangups: mpsc::Receiver<EndReason>,
    dialled_at_ms: Option<i64>,
    connected_at_ms: Option<i64>,
    /// How far the wall clock was ahead of the media threads' when the call connected.
    ahead_ns: i64,
    codec: Option<&'static str>,
    /// Profile of the media that was agreed on last.
    profile: Option<&'static str>,
    remote: Option<String>,
    ending: Option<Ending>,
    sip_over: bool,
    wanted: Wanted,
    guard: Guard,
    _room: Room,
}

impl Driver {
    pub fn new(
        inner: Arc<Inner>,
        no: CallNo,
        shard: usize,
        placement: Placement,
        files: OpenFiles,
        tap: Consumer<i16>,
        from_shard: mpsc::Receiver<FromShard>,
        news: mpsc::Sender<CallNews>,
        hangups: mpsc::Receiver<EndReason>,
        room: Room,
    ) -> Driver {
        let wanted = Wanted::of(&placement.spec, &placement.keyterms);
        let guard = placement.dial.guard();
        inner.speech.recognizer.expect();
        let effects = Effects::new(inner.clone(), no, shard, placement, tap);
        Driver {
            inner,
            no,
            shard,
            effects,
            files,
            from_shard,
            news,
            hangups,
            dialled_at_ms: None,
            connected_at_ms: None,
            ahead_ns: 0,
            codec: None,
            profile: None,
            remote: None,
            ending: None,
            sip_over: false,
            wanted,
            guard,
            _room: room,
        }
    }

    /// An order to the call.
    pub fn tell(&mut self, order: ToShard) {
        self.inner.order(self.shard, order);
    }

    /// The call was dialled.
    pub fn dialled(&mut self) {
        self.inner.tally.placed();
        self.dialled_at_ms = Some(self.inner.clock.now_ms());
    }

    /// Media is settled and the call is up.
    pub fn connect(&mut self, code: u16, settled: sip::Settled) {
        let text = self.can_hear_words(settled);
        self.remote = Some(settled.rtp.to_string());
        self.codec = Some(settled.media.codec.name());
        self.profile = Some(settled.profile());
        self.tell(ToShard::Connect(self.no, settled.rtp, settled.rtcp));
        self.tell(ToShard::Signal(self.no, Signal::Answered { code, media: settled.media, text }));
    }

    /// The other side changed the session. The old way of putting on hold names no address (RFC 3264 8.4): audio goes where it
    /// went.
    fn renegotiate(&mut self, settled: sip::Settled) {
        self.profile = Some(settled.profile());
        if !settled.rtp.ip().is_unspecified() {
            self.remote = Some(settled.rtp.to_string());
            self.tell(ToShard::Connect(self.no, settled.rtp, settled.rtcp));
        }
        self.tell(ToShard::Signal(self.no, Signal::Renegotiated { media: settled.media }));
    }

    fn can_hear_words(&mut self, settled: sip::Settled) -> bool {
        let supported = self.effects.hears_words(settled.media.codec.rate_hz());
        self.files.warnings.extend(self.wanted.unmet(&supported, &*self.inner.speech.recognizer));
        supported.is_ok()
    }

    /// Runs to the end of the call.
    pub async fn run(self: Box<Self>, key: CallKey, call_id: String, sip_news: mpsc::Receiver<SipNews>) {
        let span = tracing::info_span!("call", call_id);
        self.follow(key, call_id, sip_news).instrument(span).await;
    }

    async fn follow(mut self: Box<Self>, key: CallKey, call_id: String, mut sip_news: mpsc::Receiver<SipNews>) {
        let _ = self.news.try_send(CallNews::Dispatched);
        let mut listen = tokio::time::interval(LISTEN_EVERY);
        listen.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        while self.ending.is_none() {
            tokio::select! {
                biased;
                Some(message) = self.from_shard.recv() => self.follow_shard(key, message).await,
                news = sip_news.recv(), if !self.sip_over => match news {
                    Some(news) => self.follow_sip(key, news).await,
                    None => self.sip_over = true,
                },
                Some(reason) = self.hangups.recv() => self.tell(ToShard::Hangup(self.no, reason)),
                _ = listen.tick(), if self.effects.is_listening() => self.effects.listen(),
                else => break,
            }
        }
        self.effects.stop();
        self.report(call_id, sip_news).await;
    }

    async fn follow_shard(&mut self, key: CallKey, message: FromShard) {
        match message {
            FromShard::Control(_, Control::Cancel) => self.inner.sip.hang_up(key, 16, "Normal call clearing").await,
            FromShard::Control(_, Control::Hangup { q850_cause }) => {
                let text = if q850_cause == 102 { "Recovery on timer expiry" } else { "Normal call clearing" };
                self.inner.sip.hang_up(key, q850_cause, text).await;
            }
            FromShard::Control(_, Control::Digit { digit, duration_ms }) => {
                self.inner.sip.send_digit(key, digit, duration_ms).await;
            }
            FromShard::Control(_, Control::Transfer { accepted }) => {
                self.inner.sip.answer_transfer(key, accepted).await
            }
            FromShard::Effect(_, id, effect, tapped) => self.effects.perform(id, effect, tapped),
            FromShard::Ears(_, from) => self.effects.ears_from(from),
            FromShard::Event(_, event) => self.event(&event),
            FromShard::Ended(_, ending) => self.ending = Some(*ending),
            FromShard::Gone(_) => {}
        }
    }

    fn event(&mut self, event: &Event) {
        if matches!(event.what, What::Connected { .. }) {
            let at = self.inner.clock.now_ms();
            self.connected_at_ms = Some(at);
            self.ahead_ns = self.inner.clock.ahead_ns();
            self.inner.tally.connected(self.dialled_at_ms.map(|from| at - from));
            let _ = self.news.try_send(CallNews::Connected(at));
        }
        let entry = self.files.journal.add(event);
        let _ = self.news.try_send(CallNews::Event(entry));
    }

    async fn follow_sip(&mut self, key: CallKey, news: SipNews) {
        let event = match news {
            SipNews::Trace(message) => return self.log_sip(self.inner.clock.now_ms(), &message),
            SipNews::Event(event) => *event,
        };
        match event {
            CallEvent::Provisional { code, media, .. } => match media.as_ref().map(|media| self.settled(media)) {
                Some(Ok(early)) => {
                    self.tell(ToShard::Connect(self.no, early.rtp, early.rtcp));
                    self.tell(ToShard::Signal(self.no, Signal::EarlyMedia { code, media: early.media }));
                }
                _ => self.tell(ToShard::Signal(self.no, Signal::Ringing { code })),
            },
            CallEvent::Answered { code, media, .. } => match self.settled(&media) {
                Ok(settled) => self.connect(code, settled),
                Err(text) => {
                    self.inner.sip.hang_up(key, 88, "Incompatible destination").await;
                    let kind = ringer_media::call::RemoteKind::NoMedia;
                    let end = ringer_media::call::RemoteEnd { text, kind, ..Default::default() };
                    self.tell(ToShard::Signal(self.no, Signal::Ended(end)));
                }
            },
            CallEvent::Digit(digit, duration_ms) => {
                self.tell(ToShard::Signal(self.no, Signal::Digit { digit, duration_ms }));
            }
            CallEvent::DigitRefused(_) => self.tell(ToShard::Signal(self.no, Signal::DigitRefused)),
            CallEvent::Renegotiated { media, .. } => {
                self.tell(ToShard::Signal(self.no, Signal::SessionAnswered { code: 200 }));
                let settled = match media.remote_rtp.ip().is_unspecified() {
                    true => sip::settled(&media),
                    false => self.settled(&media),
                };
                match settled {
                    Ok(settled) => self.renegotiate(settled),
                    Err(why) => self.files.warnings.push(format!("the session was changed and is not followed: {why}")),
                }
            }
            CallEvent::Unchanged { code } => self.tell(ToShard::Signal(self.no, Signal::SessionAnswered { code })),
            CallEvent::Transfer { to } => self.tell(ToShard::Signal(self.no, Signal::Transfer { to })),
            CallEvent::Hold(held) => self.tell(ToShard::Signal(self.no, Signal::Hold(held))),
            CallEvent::Redirected { target } => self.follow_redirect(key, target),
            CallEvent::Ended(end) => {
                self.tell(ToShard::Signal(self.no, Signal::Ended(sip::remote_end(&end))));
            }
            _ => {}
        }
    }

    /// What offer and answer mean, where the far side's media may go.
    fn settled(&self, media: &Negotiated) -> Result<sip::Settled, String> {
        sip::settled(media)?.within(&self.guard)
    }

    /// Finds out where a redirect leads, beside everything else that happens.
    fn follow_redirect(&self, key: CallKey, target: Uri) {
        let (socket, guard) = (self.inner.sip.clone(), self.guard.clone());
        self.inner.tasks.spawn("redirect", async move {
            let found = sip::locate(&target, &guard).await;
            if let Err(why) = found {
                tracing::info!(host = target.host, "a redirect is not followed: it {why}");
            }
            socket.resolved(key, found.ok()).await;
        });
    }

    fn log_sip(&mut self, at: i64, message: &str) {
        if let Some(file) = &mut self.files.sip_log
            && writeln!(file, "{at} {message}").is_err()
        {
            self.files.sip_log = None;
        }
    }

    async fn report(mut self: Box<Self>, call_id: String, mut sip_news: mpsc::Receiver<SipNews>) {
        self.inner.forget(self.no);
        let Some(mut ending) = self.ending.take() else { return };
        if ending.connected {
            ending.quality.clock_slip_ms = self.inner.clock.ahead_ns().abs_diff(self.ahead_ns) as f64 / 1e6;
        }
        let ended_at_ms = self.inner.clock.now_ms();
        self.inner.tally.ended(&ending);
        tracing::debug!(reason = ?ending.reason, connected = ending.connected, "the call is over");
        let clock = self.inner.clock.clone();
        let closing = async {
            let recording = self.close_recording(&ending).await;
            self.close_capture().await;
            recording
        };
        let (recording, messages) = tokio::join!(closing, last_messages(&mut sip_news, &clock));
        messages.iter().for_each(|(at, message)| self.log_sip(*at, message));
        self.files.warnings.extend(self.effects.warnings());
        let speaker = self.effects.speaker().await;
        let timeline = self.files.journal.finish();
        self.files.warnings.extend(amiss(&timeline, self.wanted.scripted()));
        let report = CallReport {
            timeline,
            connected_at_ms: self.connected_at_ms,
            ended_at_ms,
            codec: self.codec.map(String::from),
            transport: [Some(sip::SIGNALLING), self.profile].into_iter().flatten().collect::<Vec<_>>().join(", "),
            sip_call_id: call_id,
            remote_address: self.remote,
            warnings: self.files.warnings,
            speaker,
            recording,
            ending,
        };
        let _ = self.news.send(CallNews::Ended(Box::new(report))).await;
    }

    async fn close_recording(&mut self, ending: &Ending) -> Option<PathBuf> {
        if ending.quality.recording_dropped > 0 {
            let frames = ending.quality.recording_dropped;
            self.files.warnings.push(format!("{frames} frames of the recording are silence: the disk did not keep up"));
        }
        let mut whole = Vec::new();
        for (Written { path, state, closed }, layout) in std::mem::take(&mut self.files.recording) {
            let closed = tokio::time::timeout(CLOSING, closed).await.is_ok();
            let fault = state.problem().or_else(|| {
                // What was sent last lies behind the end, and more of both where the other side's audio had stopped before.
                (closed && ending.connected).then(|| cut_to(&path, layout, ending.samples)).flatten()
            });
            if let Some(why) = &fault {
                self.files.warnings.push(format!("the recording could not be written: {why}"));
            }
            whole.push((closed && ending.connected && fault.is_none()).then_some(path));
        }
        whole.into_iter().next().flatten()
    }

    async fn close_capture(&mut self) {
        let Some((Written { state, closed, .. }, missing)) = self.files.capture.take() else { return };
        let _ = tokio::time::timeout(CLOSING, closed).await;
        if let Some(why) = state.problem() {
            self.files.warnings.push(format!("the packet capture could not be written: {why}"));
        }
        let missing = missing.load(Ordering::Relaxed);
        if missing > 0 {
            self.files.warnings.push(format!("{missing} packets are missing in the capture: the disk did not keep up"));
        }
    }
}

/// SIP messages up to the last one of the dialog, with the times at which they came.
async fn last_messages(news: &mut mpsc::Receiver<SipNews>, clock: &crate::clock::Clock) -> Vec<(i64, String)> {
    let mut messages = Vec::new();
    let collect = async {
        while let Some(news) = news.recv().await {
            if let SipNews::Trace(message) = news {
                messages.push((clock.now_ms(), message));
            }
        }
    };
    let _ = tokio::time::timeout(FAREWELL, collect).await;
    messages
}

/// Why a file could not be cut.
fn cut_to(path: &Path, layout: Layout, samples: Sample) -> Option<String> {
    let cut = recorder::cut(path, layout, samples.max(0) as u64);
    cut.err().map(|error| format!("{}: {error}", path.display()))
}
