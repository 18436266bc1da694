//! Opus (RFC 6716) for speech: wideband, mono, with in-band forward error correction (FEC). The codec itself is a
//! library, chosen for each call; here are its settings, the length of a packet without decoding it, and packets of
//! lengths that one frame cannot have.
//!
//! The port in Rust is always there, and the only one of calls in virtual time: the same seed gives the same bytes on
//! every machine. It allocates within a frame (about 70 times to encode one, 12 to decode one). A library of the system
//! is opened outside of this package and handed in ([`Library`]).

mod library;
mod port;

use std::fmt;
use std::sync::Arc;

pub use self::library::{About, EXPECTED_LOSS, FrameDecoder, FrameEncoder, Library, RATE_HZ, bitrate};

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

/// Returns the highest bit rate that format parameters of SDP allow, in bits a second (`maxaveragebitrate`, RFC 7587
/// 6.1).
pub fn max_bitrate(format: &str) -> Option<u32> {
    format.split(';').find_map(|parameter| parameter.trim().strip_prefix("maxaveragebitrate=")?.trim().parse().ok())
}

/// The library of Opus in use. By default it is the port in Rust.
#[derive(Clone)]
pub struct Opus(Arc<dyn Library>);

impl Opus {
    /// Uses a library from outside of this package.
    pub fn of(library: Arc<dyn Library>) -> Opus {
        Opus(library)
    }

    /// Uses the port in Rust. `fallback_reason`: why no other library is used, where one was wanted.
    pub fn port(fallback_reason: Option<String>) -> Opus {
        Opus(Arc::new(port::Port::new(fallback_reason)))
    }

    /// Returns name and version of the library.
    pub fn about(&self) -> &About {
        self.0.about()
    }
}

impl Default for Opus {
    fn default() -> Opus {
        Opus::port(None)
    }
}

impl fmt::Debug for Opus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opus({} {})", self.about().name, self.about().version)
    }
}

/// Encoder from PCM to Opus packets.
pub(super) struct Encoder(Box<dyn FrameEncoder>);

impl Encoder {
    pub(super) fn new(opus: &Opus) -> Encoder {
        Encoder(opus.0.encoder().unwrap_or_else(port::encoder))
    }

    /// Turns copies of the frame before on or off.
    pub(super) fn set_fec(&mut self, fec: bool) {
        self.0.set_fec(fec);
    }

    /// Sets the highest bit rate, in bits a second; `None`: that of the library's own settings.
    pub(super) fn set_max_bitrate(&mut self, max: Option<u32>) {
        self.0.set_max_bitrate(max);
    }

    /// Encodes one packet of all whole 10 ms of `pcm`, at most 60 ms. Returns the bytes written, 0 when `out` is too
    /// short for them.
    pub(super) fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        let count = (pcm.len() / TEN_MS).min(MOST);
        let pcm = &pcm[..count * TEN_MS];
        if SINGLE.contains(&count) { self.0.encode(pcm, out) } else { self.frames(pcm, out).unwrap_or(0) }
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
            let len = self.0.encode(pcm, &mut frame);
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
pub(super) struct Decoder(Box<dyn FrameDecoder>);

impl Decoder {
    pub(super) fn new(opus: &Opus) -> Decoder {
        Decoder(opus.0.decoder().unwrap_or_else(port::decoder))
    }

    /// Fills `out` with the audio of a packet of the same length. A packet that cannot be read is concealed.
    pub(super) fn decode(&mut self, packet: &[u8], out: &mut [i16]) {
        if !self.0.decode(Some(packet), out, false) {
            self.conceal(out);
        }
    }

    /// Fills `out` with the audio lost right before `next`: the end from the copy that `next` carries, if any, the rest
    /// concealed.
    pub(super) fn recover(&mut self, next: &[u8], out: &mut [i16]) {
        if !self.0.decode(Some(next), out, true) {
            self.conceal(out);
        }
    }

    /// Fills `out` with a continuation of the audio before.
    pub(super) fn conceal(&mut self, out: &mut [i16]) {
        let whole = out.len() / UNIT * UNIT;
        let (whole, rest) = out.split_at_mut(whole);
        if !self.0.decode(None, whole, false) {
            whole.fill(0);
        }
        rest.fill(0);
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
    fn format_parameters_bound_the_bit_rate() {
        assert_eq!(max_bitrate("useinbandfec=1; maxaveragebitrate=20000;stereo=0"), Some(20_000));
        assert_eq!(["", "maxplaybackrate=8000", "maxaveragebitrate=much"].map(max_bitrate), [None; 3]);
        assert_eq!(
            [None, Some(1), Some(16_000), Some(u32::MAX)].map(|max| bitrate(32_000, max)),
            [32_000, 6000, 16_000, 32_000]
        );
    }

    #[test]
    fn any_bytes_decode() {
        let mut stream = Seed(5).stream("fuzz");
        let (mut encoder, mut decoder) = (Encoder::new(&Opus::default()), Decoder::new(&Opus::default()));
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
