//! The channel of a PBX: frames of 20 ms in a queue of 1000, buffering, pauses and the levels at which the sender stops
//! and goes on.

use ringer_media::frame::FRAME;
use ringer_media::time::Time;
use serde_json::{Value, json};

use super::super::core::Core;
use super::super::protocol::SessionEnd;
use super::super::voice::{Encoding, Point};
use super::Carrier;
use super::table::What;

/// Frames that the queue holds.
const QUEUE: u64 = 1000;

/// Frames at which the sender is told to stop, and below which it is told to go on.
const XOFF: u64 = 900;
const XON: u64 = 800;

/// Longest binary message in bytes; a longer one ends the call.
const MAX_BINARY: usize = 65_500;

/// Longest text message in bytes; a longer one is passed over.
const MAX_TEXT: usize = 128;

/// Samples that are on their way ahead of playout: a pause or flush is heard 100 ms later at the latest.
const AHEAD: u64 = 1600;

/// State of a channel.
#[derive(Debug, Default)]
pub(super) struct Pbx {
    is_buffering: bool,
    /// Bytes of a frame that is not full yet, while buffering.
    rest: Vec<u8>,
    is_full: bool,
    tells_drained: bool,
}

/// Returns the frames that wait to be played.
fn frames(core: &Core) -> u64 {
    core.ears.waiting().div_ceil(FRAME as u64)
}

impl Pbx {
    pub(super) fn new(core: &mut Core) -> Pbx {
        core.pause(false, AHEAD);
        Pbx::default()
    }

    /// True when a text message is too long to be read.
    pub(super) fn is_too_long(text: &str) -> bool {
        text.len() > MAX_TEXT
    }
}

impl Carrier {
    /// Takes binary audio: whole frames, unless audio is buffered.
    pub(super) fn channel_audio(&mut self, core: &mut Core, now: Time, bytes: &[u8]) {
        if bytes.len() > MAX_BINARY {
            core.end(SessionEnd::Dropped(format!(
                "a binary message of {} bytes is longer than {MAX_BINARY}",
                bytes.len()
            )));
            return core.lose();
        }
        let wire = core.ears.wire();
        let frame = wire.bytes(20);
        let Some(pbx) = &mut self.pbx else { return };
        if core.ears.waiting().div_ceil(FRAME as u64) >= QUEUE {
            let samples = (bytes.len() / wire.encoding.bytes()) as u64 * 16_000 / u64::from(wire.rate_hz);
            return core.drop_audio(now, samples);
        }
        if pbx.is_buffering {
            pbx.rest.extend_from_slice(bytes);
            let whole = pbx.rest.len() / frame * frame;
            let played: Vec<u8> = pbx.rest.drain(..whole).collect();
            core.play(now, &played);
        } else {
            let whole = bytes.len() / frame * frame;
            if whole < bytes.len() {
                let rest = bytes.len() - whole;
                core.deviation("BAD_CHUNK_SIZE", &format!("{} bytes: {rest} of them are no whole frame", bytes.len()));
            }
            core.play(now, &bytes[..whole]);
        }
        if !pbx.is_full && frames(core) >= XOFF {
            pbx.is_full = true;
            self.write(core, now, What::Xoff, &[]);
        }
    }

    /// Ends buffering: the last frame is filled with silence, its end is told when it was played.
    fn stop_buffering(&mut self, core: &mut Core, now: Time, id: &str) {
        let Some(pbx) = &mut self.pbx else { return };
        pbx.is_buffering = false;
        let mut rest = std::mem::take(&mut pbx.rest);
        if !rest.is_empty() {
            let silence = match core.ears.wire().encoding {
                Encoding::Pcmu => 0xff,
                Encoding::Pcma => 0xd5,
                Encoding::L16Le | Encoding::L16Be => 0,
            };
            rest.resize(core.ears.wire().bytes(20), silence);
            core.play(now, &rest);
        }
        if !core.ears.bind(Point::Buffered(id.to_owned())) {
            core.violation("TOO_LONG", "too many marks wait");
        }
    }

    /// Carries out a command of the agent.
    pub(super) fn command(&mut self, core: &mut Core, now: Time, what: What, id: &str) {
        let Some(pbx) = &mut self.pbx else { return };
        match what {
            What::Hangup => {
                core.end(SessionEnd::Peer);
                core.close(1000, "call ended");
            }
            What::StartBuffering => pbx.is_buffering = true,
            What::StopBuffering => self.stop_buffering(core, now, id),
            What::ReportDrained => pbx.tells_drained = true,
            What::Pause => core.pause(true, AHEAD),
            What::Continue => core.pause(false, AHEAD),
            What::Status => {
                let fields = [
                    ("frames", json!(frames(core))),
                    ("is_full", Value::from(pbx.is_full)),
                    ("is_buffering", Value::from(pbx.is_buffering)),
                    ("is_paused", Value::from(core.ears.is_paused())),
                ];
                self.write(core, now, What::StatusReply, &fields);
            }
            // The call is answered from its beginning.
            _ => {}
        }
    }

    /// Forgets what was buffered; a pause is over.
    pub(super) fn flush(&mut self, core: &mut Core) {
        if let Some(pbx) = &mut self.pbx {
            pbx.is_buffering = false;
            pbx.rest.clear();
            core.pause(false, AHEAD);
        }
    }

    /// Tells of the level of the queue after audio was played.
    pub(super) fn channel_moved(&mut self, core: &mut Core, now: Time) {
        let Some(pbx) = &mut self.pbx else { return };
        if core.ears.is_paused() {
            return;
        }
        let is_free = pbx.is_full && frames(core) < XON;
        let is_drained = pbx.tells_drained && core.ears.waiting() == 0;
        pbx.is_full &= !is_free;
        pbx.tells_drained &= !is_drained;
        if is_free {
            self.write(core, now, What::Xon, &[]);
        }
        if is_drained {
            self.write(core, now, What::Drained, &[]);
        }
    }
}
