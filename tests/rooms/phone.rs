//! A side of a call without a Call: a leg, its rings and the pump, which sends a tone and keeps what it hears.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::Duration;

use ringer::clock::monotonic;
use ringer::provider::guard::Guard;
use ringer::tasks::Tasks;
use ringer::transport::webrtc::{Bell, PeerSettings, Pump};
use ringer_media::call::MediaChannel;
use ringer_media::frame::{FRAME, Frame};
use ringer_media::leg::{LegFigures, MediaParams, RtpLeg, Scratch};
use ringer_media::packet_rings::{PacketRings, packet_rings};
use ringer_media::seed::Seed;

/// Time limit of any step on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the settings of a peer on loopback alone.
pub(super) fn loopback() -> PeerSettings {
    PeerSettings { bind: vec![[127, 0, 0, 1].into()], ..PeerSettings::new(Guard::new(true), Tasks::new()) }
}

/// The media thread's part of one side.
pub(crate) struct Phone {
    leg: RtpLeg,
    rings: PacketRings,
    /// Frequency that is sent, in Hz; 0: silence.
    pub tone_hz: f64,
    /// Sound that is sent in place of the tone: the sample at each position.
    pub sound: Option<fn(usize) -> i16>,
    /// Timestamp of the first packet that was sent.
    pub first: Option<u32>,
    at: usize,
    /// Samples at 16 kHz.
    pub heard: Vec<i16>,
}

impl Phone {
    /// Returns a phone that sends a tone, and the pump between it and a peer.
    pub(crate) fn new(media: MediaParams, seed: u64, tone_hz: f64) -> (Phone, Pump) {
        let bell = Arc::<Bell>::default();
        let (rings, peer) = packet_rings(bell.waker());
        let leg = RtpLeg::new(media, Seed(seed), monotonic());
        (Phone { leg, rings, tone_hz, sound: None, first: None, at: 0, heard: Vec::new() }, Pump::new(peer, bell))
    }

    /// Runs one 20 ms tick.
    pub(crate) fn tick(&mut self) {
        let now = monotonic();
        let step = TAU * self.tone_hz / 16_000.0;
        let tone = |at: usize| (6000.0 * (step * at as f64).sin()) as i16;
        let pcm: Frame =
            std::array::from_fn(|n| self.sound.map_or_else(|| tone(self.at + n), |sound| sound(self.at + n)));
        self.at += FRAME;
        self.leg.send(now, &pcm);
        while let Some(packet) = self.leg.packet() {
            let timestamp = packet.get(4..8).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes);
            self.first = self.first.or(timestamp);
            self.rings.send(now, MediaChannel::Rtp, packet);
        }
        if let Some(report) = self.leg.report(now, 0) {
            self.rings.send(now, MediaChannel::Rtcp, report);
        }
        while let Some(packet) = self.rings.next_packet() {
            match packet.path {
                MediaChannel::Rtp => drop(self.leg.receive(packet.at, packet.bytes())),
                MediaChannel::Rtcp => self.leg.receive_report(packet.at, packet.bytes()),
            }
        }
        let mut room = Scratch::default();
        let heard = self.leg.listen(now, &mut room);
        self.heard.extend_from_slice(heard.pcm);
    }

    /// Ticks until the last second of what was heard is the tone, or the patience ends.
    pub(crate) async fn hear(&mut self, hz: f64) -> bool {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let heard = tokio::time::timeout(PATIENCE, async {
            loop {
                ticks.tick().await;
                self.tick();
                if self.share(hz) > 0.8 {
                    return;
                }
            }
        });
        heard.await.is_ok()
    }

    /// Ticks both until each hears the other's tone, or the patience ends. Returns who did.
    pub(crate) async fn both(&mut self, other: &mut Phone) -> (bool, bool) {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let mut heard = (false, false);
        let _ = tokio::time::timeout(PATIENCE, async {
            while heard != (true, true) {
                ticks.tick().await;
                self.tick();
                other.tick();
                heard.0 |= self.share(other.tone_hz) > 0.8;
                heard.1 |= other.share(self.tone_hz) > 0.8;
            }
        })
        .await;
        heard
    }

    /// Ticks without an end.
    pub(crate) async fn talk(&mut self) {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            self.tick();
        }
    }

    /// Returns the share of a frequency in the power of the last second that was heard.
    pub(crate) fn share(&self, hz: f64) -> f64 {
        let Some(last) = self.heard.len().checked_sub(16_000) else { return 0.0 };
        share(&self.heard[last..], hz)
    }

    pub(crate) fn figures(&self) -> LegFigures {
        self.leg.figures()
    }
}

/// Returns the share of a frequency in the power of samples at 16 kHz; 0 for what is nearly silent.
pub(super) fn share(pcm: &[i16], hz: f64) -> f64 {
    let (mut re, mut im, mut power) = (0.0, 0.0, 0.0);
    for (n, sample) in pcm.iter().enumerate() {
        let (sin, cos) = (TAU * hz / 16_000.0 * n as f64).sin_cos();
        let sample = f64::from(*sample);
        (re, im, power) = (re + sample * cos, im + sample * sin, power + sample * sample);
    }
    let len = pcm.len() as f64;
    if power / len < 100.0 * 100.0 { 0.0 } else { 2.0 * (re * re + im * im) / len / power }
}
