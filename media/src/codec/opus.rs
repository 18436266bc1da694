//! Opus (RFC 6716) for speech: wideband, mono, with in-band forward error correction (FEC). The codec itself is a
//! library; here are its settings, the length of a packet without decoding it, and packets of lengths that one frame
//! cannot have.
//!
//! The library allocates within a frame (about 70 times to encode one, 12 to decode one).
//!
//! Complexity 1 at 32 kbit/s: below that rate wideband has no bits for in-band FEC. Complexity 2 takes 150 us a frame
//! instead of 84 for 0.04 of P.862.2.

use ropus::{
    OPUS_APPLICATION_VOIP, OPUS_BANDWIDTH_WIDEBAND, OPUS_SIGNAL_VOICE, OpusDecoder as Decode, OpusEncoder as Encode,
};

/// Sample rate of the PCM on either side, in Hz.
const RATE_HZ: i32 = 16_000;

/// Bit rate, in bits a second. At 24 kbit/s and this effort the encoder has no bits for the copies of FEC in wideband
/// speech.
const BITRATE: i32 = 32_000;

/// Effort, 0 to 10: the highest with which a whole tick of a call stays below 160 us. A frame with FEC takes 78 us at
/// 0, 84 at 1, 150 at 2 and 200 at 4; P.862.2 of speech is 4.08, 4.12, 4.16 and 4.36, at 10 % loss 3.08, 3.13, 3.24 and
/// 3.4.
const COMPLEXITY: i32 = 1;

/// Packet loss that the encoder prepares for, in percent.
const EXPECTED_LOSS: i32 = 10;

/// Number of samples in 10 ms, and in 2.5 ms, of which every length is a multiple.
const TEN_MS: usize = 160;
const UNIT: usize = 40;

/// Lengths in units of 10 ms that one frame can have.
const SINGLE: [usize; 4] = [1, 2, 4, 6];

/// Largest number of units of 10 ms in a packet.
const MOST: usize = 6;

/// Largest frame of several in a packet, with its configuration byte: the length of what follows that byte then takes
/// one byte.
const SHARING: usize = 252;

/// Encoder from PCM to Opus packets.
pub(super) struct Encoder(Encode);

impl Encoder {
    pub(super) fn new() -> Encoder {
        let mut inner =
            Encode::new(RATE_HZ, 1, OPUS_APPLICATION_VOIP).expect("rate, channels and application are valid");
        inner.set_bitrate(BITRATE);
        inner.set_complexity(COMPLEXITY);
        inner.set_signal(OPUS_SIGNAL_VOICE);
        // A fixed bandwidth keeps all frames of one configuration, which frames of one packet must share.
        inner.set_bandwidth(OPUS_BANDWIDTH_WIDEBAND);
        inner.set_packet_loss_perc(EXPECTED_LOSS);
        let mut encoder = Encoder(inner);
        encoder.set_fec(true);
        encoder
    }

    /// Turns copies of the frame before on or off.
    pub(super) fn set_fec(&mut self, fec: bool) {
        self.0.set_inband_fec(fec.into());
    }

    /// Encodes one packet of all whole 10 ms of `pcm`, at most 60 ms. Returns the bytes written, 0 when `out` is too
    /// short for them.
    pub(super) fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        let count = (pcm.len() / TEN_MS).min(MOST);
        let pcm = &pcm[..count * TEN_MS];
        if SINGLE.contains(&count) { self.frame(pcm, out) } else { self.frames(pcm, out).unwrap_or(0) }
    }

    /// Encodes one frame, with its configuration byte in front.
    fn frame(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        let space = out.len() as i32;
        self.0.encode(pcm, pcm.len() as i32, out, space).map_or(0, |len| len as usize)
    }

    /// Encodes frames of 10 ms in one packet (RFC 6716 3.2.5): configuration, count, the lengths of all but the last,
    /// frames. `None` when there is nothing or it does not fit.
    fn frames(&mut self, pcm: &[i16], out: &mut [u8]) -> Option<usize> {
        const EACH_ITS_LENGTH: u8 = 0x80;
        let count = pcm.len() / TEN_MS;
        let mut at = 2 + count.checked_sub(1)?;
        let (head, bodies) = out.split_at_mut_checked(at)?;
        head[1] = EACH_ITS_LENGTH | count as u8;
        let (mut frame, mut filled) = ([0; SHARING], 0);
        for (n, pcm) in pcm.chunks_exact(TEN_MS).enumerate() {
            let len = self.frame(pcm, &mut frame);
            let (configuration, body) = frame[..len].split_first()?;
            head[0] = configuration | 3;
            if let Some(length) = head.get_mut(2 + n) {
                *length = body.len() as u8;
            }
            bodies.get_mut(filled..filled + body.len())?.copy_from_slice(body);
            filled += body.len();
        }
        at += filled;
        Some(at)
    }
}

/// Decoder from Opus packets to PCM.
pub(super) struct Decoder(Decode);

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder(Decode::new(RATE_HZ, 1).expect("rate and channels are valid"))
    }

    /// Fills `out` with the audio of a packet of the same length. A packet that cannot be read is concealed.
    pub(super) fn decode(&mut self, packet: &[u8], out: &mut [i16]) {
        if !self.run(Some(packet), out, false) {
            self.conceal(out);
        }
    }

    /// Fills `out` with the audio lost right before `next`: the end from the copy that `next` carries, if any, the rest
    /// concealed.
    pub(super) fn recover(&mut self, next: &[u8], out: &mut [i16]) {
        if !self.run(Some(next), out, true) {
            self.conceal(out);
        }
    }

    /// Fills `out` with a continuation of the audio before.
    pub(super) fn conceal(&mut self, out: &mut [i16]) {
        let whole = out.len() / UNIT * UNIT;
        let (whole, rest) = out.split_at_mut(whole);
        if !self.run(None, whole, false) {
            whole.fill(0);
        }
        rest.fill(0);
    }

    fn run(&mut self, packet: Option<&[u8]>, out: &mut [i16], fec: bool) -> bool {
        let count = out.len() as i32;
        self.0.decode(packet, out, count, fec) == Ok(count)
    }
}

/// Returns the length of a packet in ticks of 8000 Hz; `None` for bytes that cannot be one (RFC 6716 3.1, 3.2).
pub(super) fn ticks(packet: &[u8]) -> Option<u32> {
    let configuration = *packet.first()?;
    let frame = match configuration >> 3 {
        speech @ 0..12 => [80, 160, 320, 480][usize::from(speech & 3)],
        hybrid @ 12..16 => [80, 160][usize::from(hybrid & 1)],
        music => 20 << (music & 3),
    };
    let frames = match configuration & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    Some(frame * frames).filter(|ticks| (1..=960).contains(ticks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    /// The table of RFC 6716 3.1, in milliseconds times ten.
    #[test]
    fn a_packet_says_how_long_it_is() {
        let frames = [[100, 200, 400, 600].repeat(3), [100, 200].repeat(2), [25, 50, 100, 200].repeat(4)];
        for (configuration, tenths_ms) in frames.concat().into_iter().enumerate() {
            let first = (configuration as u8) << 3 | 4;
            assert_eq!(ticks(&[first]), Some(tenths_ms * 8 / 10));
            assert_eq!(ticks(&[first | 1, 0]), Some(tenths_ms * 2 * 8 / 10));
            assert_eq!(ticks(&[first | 3, 0x81]), Some(tenths_ms * 8 / 10));
        }
        // No frame, no count, more than 120 ms.
        assert_eq!([ticks(&[3, 0]), ticks(&[3]), ticks(&[0x1b, 3])], [None; 3]);
    }

    #[test]
    fn any_bytes_decode() {
        let mut stream = Seed(5).stream("fuzz");
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        let mut packet = [0; 400];
        for n in 0..6000 {
            let pcm: [i16; 320] = std::array::from_fn(|at| ((at * (n % 50 + 1)) as i16).wrapping_mul(97));
            let mut len = encoder.encode(&pcm, &mut packet);
            for _ in 0..stream.index(5) {
                packet[stream.index(len)] = stream.bits() as u8;
            }
            if n % 3 == 0 {
                len = stream.index(400);
                packet[..len].iter_mut().for_each(|byte| *byte = stream.bits() as u8);
            }
            let packet = &packet[..len];
            let mut out = [0; 1920];
            let count = ticks(packet).unwrap_or(160) as usize * 2;
            match n % 5 {
                0 => decoder.recover(packet, &mut out[..320]),
                1 => decoder.conceal(&mut out[..count]),
                _ => decoder.decode(packet, &mut out[..count]),
            }
        }
    }
}
