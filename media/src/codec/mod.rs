//! The narrowband and wideband codecs of telephony, one state machine a direction. What they are not: RTP (packet
//! headers, timestamps and concealment live in `rtp`) and resampling (PCM is taken and given at [`Codec::rate_hz`]).
//!
//! Nothing here allocates: callers own the buffers, and a buffer that is too short shortens the work, never panics.

pub(crate) mod g711;
mod g722;

/// A negotiable codec.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Codec {
    /// ITU-T G.711 mu-law.
    Pcmu,
    /// ITU-T G.711 A-law.
    Pcma,
    /// ITU-T G.722 at 64 kbit/s; RTP clock 8000.
    G722,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Codec; 3] = [Codec::Pcmu, Codec::Pcma, Codec::G722];

    /// The encoding name of SDP (RFC 3551 section 6).
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Pcmu => "PCMU",
            Codec::Pcma => "PCMA",
            Codec::G722 => "G722",
        }
    }

    /// The codec of an SDP encoding name, in any case; `None` when it is not one of ours.
    pub fn from_name(name: &str) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| codec.name().eq_ignore_ascii_case(name))
    }

    /// The static RTP payload type (RFC 3551 section 6).
    pub const fn payload_type(self) -> u8 {
        match self {
            Codec::Pcmu => 0,
            Codec::Pcma => 8,
            Codec::G722 => 9,
        }
    }

    /// Ticks of the RTP timestamp per second. G.722 says 8000 though it samples at 16 kHz (RFC 3551 section 4.5.2).
    pub const fn rtp_clock_hz(self) -> u32 {
        8000
    }

    /// Samples per second of the PCM that goes in and comes out.
    pub const fn rate_hz(self) -> u32 {
        match self {
            Codec::Pcmu | Codec::Pcma => 8000,
            Codec::G722 => 16_000,
        }
    }

    /// Ticks of the RTP timestamp in 20 ms.
    pub const fn rtp_ticks_per_frame(self) -> u32 {
        self.rtp_clock_hz() / 50
    }

    /// Encoded bytes in 20 ms: all three codecs run at 64 kbit/s.
    pub const fn bytes_per_frame(self) -> usize {
        160
    }

    /// PCM samples in 20 ms at [`Codec::rate_hz`].
    pub const fn samples_per_frame(self) -> usize {
        self.rate_hz() as usize / 50
    }
}

/// PCM to bytes, for one stream.
#[derive(Clone, Debug)]
pub struct Encoder {
    codec: Codec,
    g722: g722::Encoder,
}

impl Encoder {
    /// An encoder in its initial state.
    pub fn new(codec: Codec) -> Encoder {
        Encoder { codec, g722: g722::Encoder::default() }
    }

    /// The codec.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Encodes `pcm` (at [`Codec::rate_hz`]; for G.722 an even count, an odd last sample is left out) and returns the bytes
    /// written. What does not fit `out` is left out.
    pub fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        match self.codec {
            Codec::Pcmu => map(pcm, out, g711::mu_law),
            Codec::Pcma => map(pcm, out, g711::a_law),
            Codec::G722 => self.g722.encode(pcm, out),
        }
    }
}

/// Bytes to PCM, for one stream.
#[derive(Clone, Debug)]
pub struct Decoder {
    codec: Codec,
    g722: g722::Decoder,
}

impl Decoder {
    /// A decoder in its initial state.
    pub fn new(codec: Codec) -> Decoder {
        Decoder { codec, g722: g722::Decoder::default() }
    }

    /// The codec.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Decodes `bytes` and returns the samples written (at [`Codec::rate_hz`]). What does not fit `out` is left out. Any
    /// bytes decode to something: the codecs have no invalid input.
    pub fn decode(&mut self, bytes: &[u8], out: &mut [i16]) -> usize {
        match self.codec {
            Codec::Pcmu => map(bytes, out, |byte| g711::FROM_MU_LAW[byte as usize]),
            Codec::Pcma => map(bytes, out, |byte| g711::FROM_A_LAW[byte as usize]),
            Codec::G722 => self.g722.decode(bytes, out),
        }
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
    fn names_and_numbers_follow_rfc_3551() {
        let numbers = |codec: Codec| (codec.name(), codec.payload_type(), codec.rtp_clock_hz(), codec.rate_hz());
        assert_eq!(
            Codec::ALL.map(numbers),
            [("PCMU", 0, 8000, 8000), ("PCMA", 8, 8000, 8000), ("G722", 9, 8000, 16_000)]
        );
        for codec in Codec::ALL {
            assert_eq!(Codec::from_name(&codec.name().to_lowercase()), Some(codec));
            assert_eq!((codec.rtp_ticks_per_frame(), codec.bytes_per_frame()), (160, 160));
        }
        assert_eq!(Codec::from_name("GSM"), None);
    }

    #[test]
    fn a_frame_of_20_ms_is_160_bytes_both_ways() {
        for codec in Codec::ALL {
            let (mut bytes, mut pcm) = ([0; 200], [0; 400]);
            let count = codec.samples_per_frame();
            assert_eq!(Encoder::new(codec).encode(&pcm[..count], &mut bytes), 160);
            assert_eq!(Decoder::new(codec).decode(&bytes[..160], &mut pcm), count);
        }
    }

    #[test]
    fn short_buffers_shorten_the_work() {
        for codec in Codec::ALL {
            assert_eq!(Encoder::new(codec).encode(&[1; 320], &mut [0; 7]), 7);
            let written = Decoder::new(codec).decode(&[1; 160], &mut [0; 9]);
            assert_eq!(written, if codec == Codec::G722 { 8 } else { 9 });
            assert_eq!(Encoder::new(codec).encode(&[], &mut []), 0);
        }
    }
}
