//! The interface of a library of Opus, and the settings that all of them share.

/// Sample rate of the PCM on either side, in Hz.
pub const RATE_HZ: i32 = 16_000;

/// Packet loss that the encoder prepares for, in percent.
pub const EXPECTED_LOSS: i32 = 10;

/// Lowest bit rate of Opus, in bits a second (RFC 6716 2.1.1).
const MIN_BITRATE: i32 = 6000;

/// Returns the bit rate of an encoder that has `own` by its settings, where the other side takes at most `max`; both in
/// bits a second.
pub fn bitrate(own: i32, max: Option<u32>) -> i32 {
    max.and_then(|max| i32::try_from(max).ok()).map_or(own, |max| own.min(max.max(MIN_BITRATE)))
}

/// A library of Opus. Its encoders are for speech in mono at [`RATE_HZ`]: one fixed bandwidth (wideband),
/// [`EXPECTED_LOSS`], and FEC on at first.
pub trait Library: Send + Sync {
    /// Returns name and version.
    fn about(&self) -> &About;

    /// Returns an encoder; `None` when the library refuses.
    fn encoder(&self) -> Option<Box<dyn FrameEncoder>>;

    /// Returns a decoder; `None` when the library refuses.
    fn decoder(&self) -> Option<Box<dyn FrameDecoder>>;
}

/// Encoder of one stream, frame by frame.
pub trait FrameEncoder: Send {
    /// Turns copies of the frame before on or off.
    fn set_fec(&mut self, fec: bool);

    /// Sets the highest bit rate, in bits a second; `None`: that of the library's own settings, which is never
    /// exceeded.
    fn set_max_bitrate(&mut self, max: Option<u32>);

    /// Encodes a frame of 10, 20, 40 or 60 ms, with its configuration byte in front. Returns the bytes written, 0 when
    /// `out` is too short.
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize;
}

/// Decoder of one stream.
pub trait FrameDecoder: Send {
    /// Fills `out` from a packet of the same length, or with a continuation of the audio before it (`None`). With `fec`
    /// it is filled with the audio right before the packet. False when the library could not fill it.
    fn decode(&mut self, packet: Option<&[u8]>, out: &mut [i16], fec: bool) -> bool;
}

/// Name and version of a library of Opus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Name of the library: `libopus` or `ropus`.
    pub name: &'static str,
    /// Its version, for example `1.5.2`.
    pub version: String,
    /// Reason why another library, which was asked for or preferred, is not used; `None`: this one was wanted.
    pub fallback_reason: Option<String>,
}
