//! placeholder

use crate::codec::Codec;

/// What offer and answer settled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MediaParams {
    /// The codec in both directions.
    pub codec: Codec,
    /// Its RTP payload type.
    pub payload_type: u8,
    /// Payload type of telephone events, when negotiated.
    pub event_payload_type: Option<u8>,
    /// Milliseconds of audio in a sent packet (20).
    pub ptime_ms: u8,
}
