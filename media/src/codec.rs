//! The codecs of telephony, one state machine a direction. Not here: RTP (packet headers, timestamps and losses are in
//! `rtp`) and resampling (PCM is taken and given at [`Codec::rate_hz`]).
//!
//! Callers own the buffers. A buffer that is too short shortens the work and never panics. Only the port of Opus to
//! Rust allocates.
//!
//! A frame of 20 ms through PCMU:
//!
//! ```
//! use ringer_media::codec::{Codec, Decoder, Encoder};
//!
//! let pcm: Vec<i16> = (0..160).map(|n| (8000.0 * (f64::from(n) * 0.3).sin()) as i16).collect();
//! let (mut payload, mut decoded) = ([0; 160], [0; 160]);
//! assert_eq!(Encoder::new(Codec::Pcmu).encode(&pcm, &mut payload), 160);
//! assert_eq!(Codec::Pcmu.ticks(&payload), Some(160));
//! assert_eq!(Decoder::new(Codec::Pcmu).decode(&payload, &mut decoded), 160);
//! let error = pcm.iter().zip(&decoded).map(|(before, after)| (before - after).abs()).max();
//! assert!(error <= Some(128), "half a step of mu-law at this level");
//! ```

pub(crate) mod g711;
mod g722;
mod l16;
pub mod opus;

use std::fmt;

use self::opus::Opus;

/// Returns a sample as a mu-law byte carries it (ITU-T G.711).
pub(crate) fn through_mu_law(sample: i16) -> i16 {
    g711::FROM_MU_LAW[usize::from(g711::mu_law(sample))]
}

/// A codec that can be negotiated.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Codec {
    /// ITU-T G.711 mu-law at 64 kbit/s, 8 kHz.
    Pcmu,
    /// ITU-T G.711 A-law at 64 kbit/s, 8 kHz.
    Pcma,
    /// ITU-T G.722 at 64 kbit/s; RTP clock 8000.
    G722,
    /// Plain samples at 8 kHz (RFC 3551 4.5.11).
    L16Narrow,
    /// Plain samples at 16 kHz (RFC 3551 4.5.11).
    L16Wide,
    /// Opus at 16 kHz, mono (RFC 7587); RTP clock 48000.
    Opus,
}

impl Codec {
    /// All codecs, in the order of their declaration.
    pub const ALL: [Codec; 6] = [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::L16Narrow, Codec::L16Wide, Codec::Opus];

    /// Names of all codecs, in the order of [`Codec::ALL`].
    pub const NAMES: [&str; 6] = ["PCMU", "PCMA", "G722", "L16/8000", "L16", "OPUS"];

    /// Returns the name shown to users; no two codecs have the same.
    pub const fn name(self) -> &'static str {
        Codec::NAMES[self as usize]
    }

    /// Returns the codec of a [`Codec::name`], in any case; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| codec.name().eq_ignore_ascii_case(name))
    }

    /// Returns the encoding name of SDP (RFC 3551 6, RFC 7587 7.1).
    pub const fn encoding(self) -> &'static str {
        match self {
            Codec::L16Narrow | Codec::L16Wide => "L16",
            Codec::Opus => "opus",
            _ => self.name(),
        }
    }

    /// Returns the codec of an SDP encoding name, in any case, with its RTP clock rate; `None` for an unknown one.
    pub fn from_encoding(name: &str, clock_hz: u32) -> Option<Codec> {
        let is = |codec: &Codec| codec.encoding().eq_ignore_ascii_case(name) && codec.rtp_clock_hz() == clock_hz;
        Codec::ALL.into_iter().find(is)
    }

    /// Returns the RTP payload type: the static one (RFC 3551 6), or the dynamic one under which the codec is offered.
    pub const fn payload_type(self) -> u8 {
        match self {
            Codec::Pcmu => 0,
            Codec::Pcma => 8,
            Codec::G722 => 9,
            Codec::Opus => 111,
            Codec::L16Wide => 112,
            Codec::L16Narrow => 113,
        }
    }

    /// Returns the RTP payload type under which telephone events with this codec's clock are offered. Events share the
    /// clock of the audio beside them (RFC 4733 2.1).
    pub const fn event_payload_type(self) -> u8 {
        match self.rtp_clock_hz() {
            48_000 => 110,
            16_000 => 109,
            _ => 101,
        }
    }

    /// Returns the rate of the RTP timestamp, in ticks a second. G.722 has 8000 though it samples at 16 kHz (RFC 3551
    /// 4.5.2), Opus always 48,000 (RFC 7587 4.1).
    pub const fn rtp_clock_hz(self) -> u32 {
        match self {
            Codec::Pcmu | Codec::Pcma | Codec::G722 | Codec::L16Narrow => 8000,
            Codec::L16Wide => 16_000,
            Codec::Opus => 48_000,
        }
    }

    /// Returns the sample rate of the PCM that goes in and comes out, in Hz.
    pub const fn rate_hz(self) -> u32 {
        match self {
            Codec::Pcmu | Codec::Pcma | Codec::L16Narrow => 8000,
            Codec::G722 | Codec::L16Wide | Codec::Opus => 16_000,
        }
    }

    /// Returns the number of PCM samples in 20 ms at [`Codec::rate_hz`].
    pub const fn samples_per_frame(self) -> usize {
        self.rate_hz() as usize / 50
    }

    /// Returns the delay of decoded audio against the timestamp of its packet, in samples of 16 kHz. It is the
    /// look-ahead of Opus encoders (6.5 ms, pre-skip in RFC 7845 4.2), which no RTP timestamp contains.
    pub const fn lag(self) -> i64 {
        match self {
            Codec::Opus => 104,
            _ => 0,
        }
    }

    /// Returns the number of bytes in a tick of 8000 Hz; `None` when it depends on the audio.
    pub const fn bytes_per_tick(self) -> Option<usize> {
        match self {
            Codec::Pcmu | Codec::Pcma | Codec::G722 => Some(1),
            Codec::L16Narrow => Some(2),
            Codec::L16Wide => Some(4),
            Codec::Opus => None,
        }
    }

    /// Returns the length of a payload in ticks of 8000 Hz, without decoding it; `None` for bytes that cannot be one.
    pub fn ticks(self, payload: &[u8]) -> Option<u32> {
        let Some(bytes_per_tick) = self.bytes_per_tick() else { return opus::ticks(payload) };
        (!payload.is_empty() && payload.len().is_multiple_of(bytes_per_tick))
            .then(|| (payload.len() / bytes_per_tick) as u32)
    }
}

/// Encoder from PCM to bytes, for one stream.
pub struct Encoder {
    codec: Codec,
    state: Encoding,
}

enum Encoding {
    Samples,
    G722(Box<g722::Encoder>),
    Opus(Box<opus::Encoder>),
}

impl Encoder {
    /// Returns an encoder in its initial state; Opus is encoded by the port in Rust.
    pub fn new(codec: Codec) -> Encoder {
        Encoder::with(codec, &Opus::default())
    }

    /// Returns an encoder in its initial state, with the library for Opus.
    pub fn with(codec: Codec, opus: &Opus) -> Encoder {
        let state = match codec {
            Codec::G722 => Encoding::G722(Box::default()),
            Codec::Opus => Encoding::Opus(Box::new(opus::Encoder::new(opus))),
            _ => Encoding::Samples,
        };
        Encoder { codec, state }
    }

    /// Codec that this encoder was made for.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Turns forward error correction of Opus on or off; it is on at first. When on, every packet carries a small copy
    /// of the frame before it. Other codecs ignore it.
    pub fn set_fec(&mut self, fec: bool) {
        if let Encoding::Opus(opus) = &mut self.state {
            opus.set_fec(fec);
        }
    }

    /// Sets the highest bit rate of Opus, in bits a second; `None`: that of the library's own settings, which is never
    /// exceeded. Other codecs ignore it.
    pub fn set_max_bitrate(&mut self, max: Option<u32>) {
        if let Encoding::Opus(opus) = &mut self.state {
            opus.set_max_bitrate(max);
        }
    }

    /// Encodes `pcm` and returns the number of bytes written; samples that do not fit `out` are left out. `pcm` is at
    /// [`Codec::rate_hz`]; for G.722 an odd last sample is left out. Opus makes one packet of a multiple of 10 ms, at
    /// most 60 ms, and nothing when it does not fit.
    pub fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        match (&mut self.state, self.codec) {
            (Encoding::G722(g722), _) => g722.encode(pcm, out),
            (Encoding::Opus(opus), _) => opus.encode(pcm, out),
            (Encoding::Samples, Codec::Pcmu) => map(pcm, out, g711::mu_law),
            (Encoding::Samples, Codec::Pcma) => map(pcm, out, g711::a_law),
            (Encoding::Samples, _) => l16::encode(pcm, out),
        }
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoder({})", self.codec.name())
    }
}

/// Decoder from bytes to PCM, for one stream.
pub struct Decoder {
    codec: Codec,
    state: Decoding,
}

enum Decoding {
    Samples,
    G722(Box<g722::Decoder>),
    Opus(Box<opus::Decoder>),
}

impl Decoder {
    /// Returns a decoder in its initial state; Opus is decoded by the port in Rust.
    pub fn new(codec: Codec) -> Decoder {
        Decoder::with(codec, &Opus::default())
    }

    /// Returns a decoder in its initial state, with the library for Opus.
    pub fn with(codec: Codec, opus: &Opus) -> Decoder {
        let state = match codec {
            Codec::G722 => Decoding::G722(Box::default()),
            Codec::Opus => Decoding::Opus(Box::new(opus::Decoder::new(opus))),
            _ => Decoding::Samples,
        };
        Decoder { codec, state }
    }

    /// Codec that this decoder was made for.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Decodes `bytes` without a change of state; returns the number of samples written. It is 0 for Opus, which
    /// conceals by itself.
    pub fn peek(&self, bytes: &[u8], out: &mut [i16]) -> usize {
        match &self.state {
            Decoding::Samples => Decoder { codec: self.codec, state: Decoding::Samples }.decode(bytes, out),
            Decoding::G722(g722) => g722::Decoder::clone(g722).decode(bytes, out),
            Decoding::Opus(_) => 0,
        }
    }

    /// Decodes `bytes` and returns the number of samples written, at [`Codec::rate_hz`]; samples that do not fit `out`
    /// are left out. Any bytes decode to something: an unreadable Opus packet is concealed for the length that it
    /// claims.
    pub fn decode(&mut self, bytes: &[u8], out: &mut [i16]) -> usize {
        match (&mut self.state, self.codec) {
            (Decoding::G722(g722), _) => g722.decode(bytes, out),
            (Decoding::Opus(opus), codec) => {
                let count = codec.ticks(bytes).unwrap_or(0) as usize * 2;
                let count = count.min(out.len());
                opus.decode(bytes, &mut out[..count]);
                count
            }
            (Decoding::Samples, Codec::Pcmu) => map(bytes, out, |byte| g711::FROM_MU_LAW[byte as usize]),
            (Decoding::Samples, Codec::Pcma) => map(bytes, out, |byte| g711::FROM_A_LAW[byte as usize]),
            (Decoding::Samples, _) => l16::decode(bytes, out),
        }
    }

    /// Fills `out` with a replacement of lost audio, from `next`, the payload right behind it, or from the audio
    /// before. False for codecs that have no concealment of their own: nothing is written then.
    pub fn conceal(&mut self, next: Option<&[u8]>, out: &mut [i16]) -> bool {
        let Decoding::Opus(opus) = &mut self.state else { return false };
        match next {
            Some(next) => opus.recover(next, out),
            None => opus.conceal(out),
        }
        true
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoder({})", self.codec.name())
    }
}

fn map<A: Copy, B>(from: &[A], to: &mut [B], convert: impl Fn(A) -> B) -> usize {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = convert(from);
    }
    from.len().min(to.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_follow_the_standards() {
        let numbers = |codec: Codec| (codec.encoding(), codec.payload_type(), codec.rtp_clock_hz(), codec.rate_hz());
        assert_eq!(
            Codec::ALL.map(numbers),
            [
                ("PCMU", 0, 8000, 8000),
                ("PCMA", 8, 8000, 8000),
                ("G722", 9, 8000, 16_000),
                ("L16", 113, 8000, 8000),
                ("L16", 112, 16_000, 16_000),
                ("opus", 111, 48_000, 16_000)
            ]
        );
        for codec in Codec::ALL {
            assert_eq!(Codec::from_name(&codec.name().to_lowercase()), Some(codec));
            assert_eq!(Codec::from_encoding(&codec.encoding().to_uppercase(), codec.rtp_clock_hz()), Some(codec));
        }
        assert_eq!((Codec::from_name("GSM"), Codec::from_encoding("L16", 44_100)), (None, None));
    }

    #[test]
    fn a_payload_is_as_long_as_what_was_encoded() {
        for codec in Codec::ALL {
            let (mut encoder, mut decoder) = (Encoder::new(codec), Decoder::new(codec));
            for ms in [10, 20, 30, 40, 60] {
                let (mut bytes, mut pcm) = ([0; 1920], [0; 960]);
                let count = codec.rate_hz() as usize * ms / 1000;
                let len = encoder.encode(&pcm[..count], &mut bytes);
                assert_eq!(codec.ticks(&bytes[..len]), Some(ms as u32 * 8), "{codec:?} {ms}");
                assert_eq!(decoder.decode(&bytes[..len], &mut pcm), count, "{codec:?} {ms}");
            }
            assert_eq!(codec.ticks(&[]), None);
        }
        assert_eq!((Codec::L16Narrow.ticks(&[0; 3]), Codec::L16Wide.ticks(&[0; 6])), (None, None));
    }

    #[test]
    fn short_buffers_shorten_the_work() {
        for codec in [Codec::Pcmu, Codec::Pcma, Codec::G722] {
            assert_eq!(Encoder::new(codec).encode(&[1; 320], &mut [0; 7]), 7);
            let written = Decoder::new(codec).decode(&[1; 160], &mut [0; 9]);
            assert_eq!(written, if codec == Codec::G722 { 8 } else { 9 });
        }
        for codec in [Codec::L16Narrow, Codec::L16Wide] {
            assert_eq!(Encoder::new(codec).encode(&[1; 320], &mut [0; 7]), 6);
            assert_eq!(Decoder::new(codec).decode(&[1; 160], &mut [0; 9]), 9);
        }
        assert_eq!(Encoder::new(Codec::Opus).encode(&[1; 480], &mut [0; 3]), 0);
        for codec in Codec::ALL {
            assert_eq!(Encoder::new(codec).encode(&[], &mut []), 0);
            assert_eq!(Decoder::new(codec).decode(&[], &mut []), 0);
        }
    }
}
