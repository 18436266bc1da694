//! Frames of a call over a WebSocket, between the rings of its media thread and its port.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::call::Quality;
use ringer_media::call::pacing::Pacing;
use ringer_media::rings::{FramePeer, FromCall};
use ringer_media::time::Time;
use ringer_transport::websocket::port::WebSocketPort;

/// Frames that leave at once: the one that is due, and three that are caught up.
const AT_ONCE: usize = 4;

/// Lateness from which on a frame counts as late.
const LATE: Duration = Duration::from_millis(20);

/// The other end of a call's rings, as the owner of its port holds it.
pub(super) struct FrameExchange {
    frames: FramePeer,
    pacing: Pacing,
    late: u64,
    from_call: VecDeque<FromCall>,
}

impl FrameExchange {
    /// Returns the exchange over the other end of the call's rings.
    pub(crate) fn new(frames: FramePeer) -> FrameExchange {
        FrameExchange { frames, pacing: Pacing::default(), late: 0, from_call: VecDeque::new() }
    }

    /// Takes audio of the other side that came at `now`.
    pub(crate) fn hear(&mut self, now: Time, pcm: &[i16]) {
        self.frames.receive(now, pcm);
    }

    /// Keeps audio back that the other side holds: see [`FramePeer::hold`].
    pub(crate) fn hold(&mut self, now: Time, most: Option<u64>) {
        self.frames.hold(now, most);
    }

    /// Drops the audio of the other side that was not heard yet.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
    }

    /// Hands the frames that the call has made to the port.
    pub(crate) fn send(&mut self, now: Time, port: &mut WebSocketPort) {
        self.from_call.extend(std::iter::from_fn(|| self.frames.next_message()));
        let is_frame = |message: &&FromCall| matches!(message, FromCall::Frame { .. });
        let mut skipped = self.from_call.iter().filter(is_frame).count().saturating_sub(AT_ONCE);
        if skipped > 0 {
            self.pacing.record_skipped(skipped as u64);
        }
        while let Some(message) = self.from_call.pop_front() {
            match message {
                FromCall::Frame { .. } if skipped > 0 => skipped -= 1,
                FromCall::Frame { from, due, piece } => {
                    let late = now.since(due);
                    self.late += u64::from(late > LATE);
                    self.pacing.record_sent(late);
                    port.frame(now, from, piece.pcm());
                }
                FromCall::Utterance { at, begins } => port.utterance(now, at, begins),
                FromCall::Clear => port.on_silence(now),
            }
        }
    }

    /// Hands on to the call what it may have by now.
    pub(crate) fn hand_on(&mut self, now: Time) {
        self.frames.hand_on(now);
    }

    /// Returns the number of samples that came and were not heard yet.
    pub(crate) fn unheard(&self) -> u64 {
        self.frames.unheard()
    }

    /// Adds what was measured here to the figures of the media thread.
    pub(crate) fn add_to(&self, quality: &mut Quality) {
        let measured = &self.pacing;
        quality.pacing_p99_ms = quality.pacing_p99_ms.max(measured.quantile_ms(0.99));
        quality.pacing_max_ms = quality.pacing_max_ms.max(measured.max_ms());
        quality.sent_frames = quality.sent_frames.saturating_sub(measured.late_frames());
        quality.late_frames += measured.late_frames() + self.late;
        quality.longest_gap_frames = quality.longest_gap_frames.max(measured.longest_gap_frames());
    }
}
