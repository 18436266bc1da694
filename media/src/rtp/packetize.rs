//! Gathers the 20 ms frames of the ticks into packets of the negotiated length.
//!
//! A packet holds no gap: where sending pauses, the audio before leaves as a shorter packet.

use super::jitter::MAX_PAYLOAD;
use crate::codec::Codec;

/// Audio that waits to become packets. Allocates in `new` only.
#[derive(Clone, Debug)]
pub struct Packetizer {
    codec: Codec,
    /// Length of a packet in samples.
    length: usize,
    /// Space for a packet in whole frames, and for a frame beyond a packet that is not complete.
    pcm: Box<[i16]>,
    held: usize,
    /// Number of samples at the front from which the last packet was made.
    taken: usize,
    /// RTP timestamp of the first sample that is in no packet yet.
    timestamp: u32,
    /// Number of samples at the front after which a gap follows; 0 for none. `resumed` is the timestamp after the gap.
    cut: usize,
    resumed: u32,
}

/// The audio of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Packed<'a> {
    /// RTP timestamp of the first sample.
    pub timestamp: u32,
    /// Length in units of the RTP clock.
    pub units: u32,
    /// Samples at the codec's rate.
    pub pcm: &'a [i16],
}

impl Packetizer {
    /// Returns a packetizer for packets of `ptime_ms` (10, 20, 30, 40, 50 or 60; others become 20).
    pub fn new(codec: Codec, ptime_ms: u8) -> Packetizer {
        let ptime_ms = if matches!(ptime_ms, 10 | 20 | 30 | 40 | 50 | 60) { usize::from(ptime_ms) } else { 20 };
        let length = codec.rate_hz() as usize / 1000 * ptime_ms;
        let frame = codec.samples_per_frame();
        let pcm = vec![0; (length.div_ceil(frame) + 1) * frame].into();
        Packetizer { codec, length, pcm, held: 0, taken: 0, timestamp: 0, cut: 0, resumed: 0 }
    }

    /// Returns the length of the longest payload of its packets, in bytes.
    pub fn longest_payload(&self) -> usize {
        let ticks = self.length * 8000 / self.codec.rate_hz() as usize;
        self.codec.bytes_per_tick().map_or(MAX_PAYLOAD, |bytes| bytes * ticks)
    }

    /// Returns space for 20 ms at the codec's rate, with this RTP timestamp, for the caller to fill.
    /// [`Packetizer::packet`] is called until `None` before the next frame.
    pub fn frame(&mut self, timestamp: u32) -> &mut [i16] {
        self.drop_taken();
        if self.held == 0 {
            self.timestamp = timestamp;
        } else if self.cut == self.held {
            self.resumed = timestamp;
        }
        let from = self.held;
        self.held += self.codec.samples_per_frame();
        &mut self.pcm[from..self.held]
    }

    /// Marks a gap after the audio so far: no packet reaches over it.
    pub fn cut_short(&mut self) {
        self.drop_taken();
        self.cut = self.held;
    }

    /// Returns the next packet that is full or followed by a gap.
    pub fn packet(&mut self) -> Option<Packed<'_>> {
        self.drop_taken();
        let count = if self.cut > 0 { self.cut.min(self.length) } else { self.length };
        if count > self.held {
            return None;
        }
        let units = (count as u64 * u64::from(self.codec.rtp_clock_hz()) / u64::from(self.codec.rate_hz())) as u32;
        let timestamp = self.timestamp;
        self.timestamp = if self.cut == count { self.resumed } else { timestamp.wrapping_add(units) };
        self.cut = self.cut.saturating_sub(count);
        self.taken = count;
        Some(Packed { timestamp, units, pcm: &self.pcm[..count] })
    }

    fn drop_taken(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        if taken > 0 {
            self.pcm.copy_within(taken..self.held, 0);
            self.held -= taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks ticks of 20 ms, one character each (`f` a frame, `-` a tick without one), against the packets that they
    /// become. Each packet is given with its tick, timestamp and length, both in milliseconds.
    fn check(ptime_ms: u8, ticks: &str, expect: &[(usize, u32, usize)]) {
        for codec in Codec::ALL {
            let mut packetizer = Packetizer::new(codec, ptime_ms);
            let (per_ms, samples) = (codec.rtp_clock_hz() / 1000, codec.rate_hz() as usize / 1000);
            let (mut made, mut next) = (Vec::new(), 0);
            for (tick, what) in ticks.chars().enumerate() {
                let before = tick * 20;
                if what == 'f' {
                    let frame = packetizer.frame((before as u32 * per_ms).wrapping_sub(7));
                    frame.iter_mut().enumerate().for_each(|(at, sample)| *sample = (before * samples + at) as i16);
                } else {
                    packetizer.cut_short();
                }
                while let Some(packet) = packetizer.packet() {
                    let from = packet.timestamp.wrapping_add(7) / per_ms;
                    assert_eq!(packet.units as usize * samples, packet.pcm.len() * per_ms as usize);
                    let first = from as usize * samples;
                    assert!(packet.pcm.iter().enumerate().all(|(at, &sample)| sample == (first + at) as i16));
                    made.push((tick, from, packet.pcm.len() / samples));
                    next = next.max(from as usize);
                }
            }
            assert_eq!(made, expect, "{codec:?} {ptime_ms} {ticks}");
        }
    }

    #[test]
    fn frames_become_packets_of_every_length() {
        check(20, "fff", &[(0, 0, 20), (1, 20, 20), (2, 40, 20)]);
        check(10, "ff", &[(0, 0, 10), (0, 10, 10), (1, 20, 10), (1, 30, 10)]);
        check(30, "ffff", &[(1, 0, 30), (2, 30, 30)]);
        check(40, "ffff", &[(1, 0, 40), (3, 40, 40)]);
        check(50, "fffff", &[(2, 0, 50), (4, 50, 50)]);
        check(60, "ffffff", &[(2, 0, 60), (5, 60, 60)]);
        check(7, "f", &[(0, 0, 20)]);
    }

    #[test]
    fn no_packet_holds_a_gap() {
        check(60, "ff-fff", &[(2, 0, 40), (5, 60, 60)]);
        check(60, "f--ff-", &[(1, 0, 20), (5, 60, 40)]);
        check(50, "fff-f-", &[(2, 0, 50), (3, 50, 10), (5, 80, 20)]);
        check(30, "ff-ff", &[(1, 0, 30), (2, 30, 10), (4, 60, 30)]);
        check(20, "f-f", &[(0, 0, 20), (2, 40, 20)]);
    }
}
