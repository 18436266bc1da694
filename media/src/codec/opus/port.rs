//! The port of libopus to Rust (`ropus`).
//!
//! Complexity 1 at 32 kbit/s: below that rate wideband has no bits for in-band FEC. Complexity 2 takes 150 us a frame
//! instead of 84 for 0.04 of P.862.2.

use ropus::{
    OPUS_APPLICATION_VOIP, OPUS_BANDWIDTH_WIDEBAND, OPUS_SIGNAL_VOICE, OpusDecoder as Decode, OpusEncoder as Encode,
};

use super::library::{About, EXPECTED_LOSS, FrameDecoder, FrameEncoder, Library, RATE_HZ, bitrate};

/// Version of the crate, which `Cargo.toml` of the workspace pins.
const VERSION: &str = "0.12.18";

/// Bit rate, in bits a second. At 24 kbit/s and little effort the encoder has no bits for the copies of FEC in wideband
/// speech.
const BITRATE: i32 = 32_000;

/// Effort, 0 to 10: the highest with which a whole tick of a call stays below 160 us. A frame with FEC takes 78 us at
/// 0, 84 at 1, 150 at 2 and 200 at 4; P.862.2 of speech is 4.08, 4.12, 4.16 and 4.36, at 10 % loss 3.08, 3.13, 3.24 and
/// 3.4.
const COMPLEXITY: i32 = 1;

/// The port as a library.
pub(super) struct Port(About);

impl Port {
    pub(super) fn new(fallback_reason: Option<String>) -> Port {
        Port(About { name: "ropus", version: VERSION.to_owned(), fallback_reason })
    }
}

impl Library for Port {
    fn about(&self) -> &About {
        &self.0
    }

    fn encoder(&self) -> Option<Box<dyn FrameEncoder>> {
        Some(encoder())
    }

    fn decoder(&self) -> Option<Box<dyn FrameDecoder>> {
        Some(decoder())
    }
}

/// Returns an encoder of the port.
pub(super) fn encoder() -> Box<dyn FrameEncoder> {
    let mut inner = Encode::new(RATE_HZ, 1, OPUS_APPLICATION_VOIP).expect("rate, channels and application are valid");
    inner.set_bitrate(BITRATE);
    inner.set_complexity(COMPLEXITY);
    inner.set_signal(OPUS_SIGNAL_VOICE);
    // A fixed bandwidth keeps all frames of one configuration, which frames of one packet must share.
    inner.set_bandwidth(OPUS_BANDWIDTH_WIDEBAND);
    inner.set_packet_loss_perc(EXPECTED_LOSS);
    inner.set_inband_fec(true.into());
    Box::new(inner)
}

/// Returns a decoder of the port.
pub(super) fn decoder() -> Box<dyn FrameDecoder> {
    Box::new(Decode::new(RATE_HZ, 1).expect("rate and channels are valid"))
}

impl FrameEncoder for Encode {
    fn set_fec(&mut self, fec: bool) {
        self.set_inband_fec(fec.into());
    }

    fn set_max_bitrate(&mut self, max: Option<u32>) {
        self.set_bitrate(bitrate(BITRATE, max));
    }

    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        let space = out.len() as i32;
        Encode::encode(self, pcm, pcm.len() as i32, out, space).map_or(0, |len| len as usize)
    }
}

impl FrameDecoder for Decode {
    fn decode(&mut self, packet: Option<&[u8]>, out: &mut [i16], fec: bool) -> bool {
        let count = out.len() as i32;
        Decode::decode(self, packet, out, count, fec) == Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::VERSION;

    #[test]
    fn the_version_is_the_pinned_one() {
        assert!(include_str!("../../../../Cargo.toml").contains(&format!("ropus = {{ version = \"={VERSION}\"")));
    }
}
