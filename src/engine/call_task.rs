//! The task beside a live call: it carries out effects, follows the channel, keeps the journal, and at the end says
//! what is left.

use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{Control, EndReason, Event, EventKind, HangupCause, RemoteKind, Signal};
use rtrb::Consumer;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::call_state::{CallState, OpenFiles};
use super::channel::Channel;
use super::services::{CallPermit, CallServices};
use super::shard::{CallNo, FromShard, ToShard};
use super::start_watch::{StartWatch, overdue};
use super::timeline::cut_behind_end;
use super::warnings::timeline_warnings;
use super::{CallReport, CallUpdate, Placement};

/// Interval at which the audio ring is emptied while a recognizer listens.
const LISTEN_EVERY: Duration = Duration::from_millis(40);

/// Parts of a call that its task is made of.
pub(super) struct CallParts {
    pub services: Arc<CallServices>,
    pub no: CallNo,
    /// Number of the media thread that serves the call.
    pub shard: usize,
    pub channel: Channel,
    pub placement: Placement,
    pub files: OpenFiles,
    /// Audio for the recognizer.
    pub tap: Consumer<i16>,
    pub from_shard: mpsc::Receiver<FromShard>,
    pub news: mpsc::Sender<CallUpdate>,
    pub hangups: mpsc::Receiver<EndReason>,
    pub permit: CallPermit,
}

/// Task of one live call.
pub(super) struct CallTask {
    channel: Channel,
    call: CallState,
    from_shard: mpsc::Receiver<FromShard>,
    hangups: mpsc::Receiver<EndReason>,
    /// The wait for the agent's first words; `None` where nothing is waited for.
    start: Option<Box<StartWatch>>,
}

impl CallTask {
    /// Returns the task of a call that has begun on its media thread.
    pub(crate) fn new(parts: CallParts) -> CallTask {
        let CallParts { services, no, shard, channel, placement, files, tap, from_shard, news, hangups, permit } =
            parts;
        let start = StartWatch::of(&placement.destination, services.config.start_within);
        let call = CallState::new(services, (no, shard), placement, files, tap, news, permit);
        CallTask { channel, call, from_shard, hangups, start }
    }

    /// Dials, and follows the call to its end.
    pub(crate) async fn dial(mut self: Box<Self>) {
        if !self.begin().await {
            return;
        }
        self.call.services.counters.placed();
        self.call.dialled_at_ms = Some(self.call.services.clock.now_ms());
        self.channel.drain(&mut self.call).await;
        self.run().await;
    }

    /// Answers a call that came in, and follows it to its end.
    pub(crate) async fn answer(mut self: Box<Self>) {
        self.call.services.counters.answered();
        if !self.begin().await {
            return;
        }
        self.channel.drain(&mut self.call).await;
        self.run().await;
    }

    /// Begins the signalling, as [`Channel::begin`] does.
    async fn begin(&mut self) -> bool {
        // Steps that pass once are boxed: a call holds memory for its largest step as long as it lasts.
        Box::pin(self.channel.begin(&mut self.call)).await
    }

    async fn run(self: Box<Self>) {
        let span = tracing::info_span!("call", call_id = self.channel.peer().call_id);
        self.follow().instrument(span).await;
    }

    async fn follow(mut self: Box<Self>) {
        let _ = self.call.news.try_send(CallUpdate::Dispatched);
        let mut listen = tokio::time::interval(LISTEN_EVERY);
        listen.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        while self.call.ending.is_none() {
            tokio::select! {
                biased;
                Some(message) = self.from_shard.recv() => self.follow_shard(message).await,
                () = self.channel.ready() => self.channel.follow(&mut self.call).await,
                Some(reason) = self.hangups.recv() => self.call.tell(ToShard::Hangup(self.call.no, reason)),
                () = overdue(&mut self.start) => Box::pin(self.end_unstarted()).await,
                _ = listen.tick(), if self.call.effects.is_listening() => self.call.effects.listen(),
            }
        }
        self.call.effects.stop();
        Box::pin(self.channel.close(&mut self.call)).await;
        Box::pin(self.report()).await;
    }

    async fn follow_shard(&mut self, message: FromShard) {
        let CallTask { channel, call, .. } = self;
        match message {
            FromShard::Control(_, control) => channel.control(call, &control).await,
            FromShard::Effect(_, id, effect, tapped) => call.effects.perform(id, effect, tapped),
            FromShard::Ears(_, from, past) => call.effects.hear_from(from, &past),
            FromShard::Event(_, event) => self.event(event).await,
            FromShard::Ended(_, ending) => call.ending = Some(*ending),
            FromShard::Stranger(_, stranger) => channel.take_stranger(call, stranger).await,
            FromShard::Handshakes(_) => channel.take_handshakes(call),
            FromShard::Frames(_) => channel.exchange(call).await,
            FromShard::Gone(_) => {}
        }
    }

    /// Ends a call whose agent has not begun to speak.
    async fn end_unstarted(&mut self) {
        let Some(watch) = self.start.take() else { return };
        // The Call is told first: the end of the connection is not the agent's.
        self.call.tell(ToShard::Signal(self.call.no, Signal::Ended(watch.end())));
        self.channel.control(&mut self.call, &Control::Hangup(HangupCause::Normal)).await;
    }

    async fn event(&mut self, event: Event) {
        self.start.take_if(|watch| !watch.follow(&event.what));
        let CallTask { channel, call, .. } = self;
        if matches!(event.what, EventKind::Connected { .. }) {
            call.note_connected(channel.awaits_keys());
        }
        channel.own_event(call, &event).await;
        if matches!(event.what, EventKind::Ended { .. }) {
            channel.last_events(event.sample).into_iter().for_each(|last| call.add(last));
        }
        call.add(event);
    }

    async fn report(mut self: Box<Self>) {
        let CallTask { channel, call, .. } = &mut *self;
        call.services.forget(call.no);
        let Some(mut ending) = call.ending.take() else { return };
        let clock = call.services.clock.clone();
        if ending.connected {
            ending.quality.clock_slip_ms = clock.ahead_ns().abs_diff(call.ahead_ns) as f64 / 1e6;
        }
        let ended_at_ms = clock.now_ms();
        call.services.counters.ended(&ending);
        tracing::debug!(reason = ?ending.reason, connected = ending.connected, "the call is over");
        let closing = async {
            let recording = call.close_recording(&ending).await;
            call.close_capture().await;
            recording
        };
        let (recording, messages) = tokio::join!(closing, channel.last_messages(&clock));
        messages.iter().for_each(|(at, message)| call.files.write_log(*at, message));
        call.files.warn_of_missing();
        call.files.warnings.extend(call.effects.warnings());
        call.files.warnings.extend(channel.warning(&ending.quality));
        let speaker = call.effects.speaker().await;
        // A call of hours has a long journal, and other calls wait for this thread.
        let journal = call.files.take_journal();
        let read = tokio::task::spawn_blocking(move || {
            let mut warnings = Vec::new();
            (journal.finish(&mut warnings), warnings)
        });
        let (mut timeline, warnings) = read.await.unwrap_or_else(|_| {
            (Vec::new(), vec!["the timeline could not be read back: see timeline.jsonl".to_owned()])
        });
        cut_behind_end(&mut timeline);
        call.files.warnings.extend(warnings);
        call.files.warnings.extend(timeline_warnings(&timeline, call.wanted.is_scripted()));
        if ending.remote.as_ref().is_none_or(|remote| remote.kind != RemoteKind::NoKeys) {
            call.say_connected();
        }
        let report = CallReport {
            timeline,
            // A call of which nobody was told that it is connected had no conversation.
            connected_at_ms: call.connected_at_ms.filter(|_| !call.is_unsaid()),
            ended_at_ms,
            peer: channel.peer().clone(),
            warnings: std::mem::take(&mut call.files.warnings),
            agent_errors: channel.agent_errors(),
            variables: channel.variables(),
            effects: call.effect_times(),
            speaker,
            recording,
            ending,
        };
        let _ = call.news.send(CallUpdate::Ended(Box::new(report))).await;
    }
}
