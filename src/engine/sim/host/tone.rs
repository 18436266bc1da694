//! Tones that a script has sent: before the answer, and to a side on hold.

use ringer_media::frame::{FRAME, Frame, RATE_HZ};
use ringer_media::leg::{MediaParams, RtpLeg};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

use super::TICK;

/// Largest sample of a tone.
const TONE_PEAK: f64 = 4000.0;

/// Samples of a tone, one frame after the other.
pub(super) struct Wave {
    hz: f64,
    /// Number of samples so far.
    count: usize,
}

impl Wave {
    /// Returns the tone of `hz`.
    pub(crate) fn new(hz: f64) -> Wave {
        Wave { hz, count: 0 }
    }

    /// Returns the next 20 ms.
    pub(crate) fn next_frame(&mut self) -> Frame {
        let mut pcm: Frame = [0; FRAME];
        for sample in &mut pcm {
            let turns = self.hz * self.count as f64 / f64::from(RATE_HZ);
            *sample = (TONE_PEAK * (turns.fract() * std::f64::consts::TAU).sin()) as i16;
            self.count += 1;
        }
        pcm
    }
}

/// A tone in a stream of its own.
pub(super) struct Tone {
    leg: RtpLeg,
    wave: Wave,
    pub next: Time,
}

impl Tone {
    /// Returns the tone of `hz`, a source that is named by `source`.
    pub(crate) fn new(media: MediaParams, source: &str, hz: f64, now: Time) -> Tone {
        Tone { leg: RtpLeg::new(media, Seed::of(source), now), wave: Wave::new(hz), next: now }
    }

    /// Returns the packets of one tick.
    pub(crate) fn play(&mut self) -> Vec<Vec<u8>> {
        self.leg.send(self.next, &self.wave.next_frame());
        self.next = self.next + TICK;
        let mut packets = Vec::new();
        while let Some(packet) = self.leg.packet() {
            packets.push(packet.to_vec());
        }
        packets
    }
}
