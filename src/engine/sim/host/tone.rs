//! Tones that a script has sent: before the answer, and to a side on hold.

use ringer_media::frame::{FRAME, Frame, RATE_HZ};
use ringer_media::leg::{MediaParams, RtpLeg};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

use super::TICK;

/// Largest sample of a tone.
const TONE_PEAK: f64 = 4000.0;

/// A tone in a stream of its own.
pub(super) struct Tone {
    leg: RtpLeg,
    hz: f64,
    pub next: Time,
    /// Number of samples so far.
    count: usize,
}

impl Tone {
    /// Returns the tone of `hz`, a source that is named by `source`.
    pub fn new(media: MediaParams, source: &str, hz: f64, now: Time) -> Tone {
        Tone { leg: RtpLeg::new(media, Seed::of(source), now), hz, next: now, count: 0 }
    }

    /// Returns the packets of one tick.
    pub fn play(&mut self) -> Vec<Vec<u8>> {
        let mut pcm: Frame = [0; FRAME];
        for sample in &mut pcm {
            let turns = self.hz * self.count as f64 / f64::from(RATE_HZ);
            *sample = (TONE_PEAK * (turns.fract() * std::f64::consts::TAU).sin()) as i16;
            self.count += 1;
        }
        self.leg.send(self.next, &pcm);
        self.next = self.next + TICK;
        let mut packets = Vec::new();
        while let Some(packet) = self.leg.packet() {
            packets.push(packet.to_vec());
        }
        packets
    }
}
