//! What several targets share: bytes cut into datagrams, and a leg that they are sent to.

use ringer_media::codec::Codec;
use ringer_media::leg::{RtpLeg, MediaParams, Scratch};
use ringer_media::rtp::srtp::SrtpParams;
use ringer_media::seed::Seed;
use ringer_media::time::Time;

/// Payload type of telephone events.
pub const EVENTS: u8 = 101;

/// `data` cut into datagrams: a byte of length before each. The last one is as long as the rest.
pub fn datagrams(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (&length, after) = rest.split_first()?;
        let (datagram, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        Some(datagram)
    })
}

/// A leg of any codec.
pub fn leg(codec: Codec, srtp: Option<SrtpParams>) -> RtpLeg {
    let events = Some(EVENTS);
    let params = MediaParams {
        event_payload_type: events,
        receive_event_payload_type: events,
        srtp,
        ..MediaParams::new(codec)
    };
    RtpLeg::new(params, Seed(1), Time::from_millis(1000))
}

/// A leg that gets the datagrams, one a tick, and must hear something at every tick whatever they are.
pub fn hear(mut leg: RtpLeg, packets: impl Iterator<Item = Vec<u8>>) -> RtpLeg {
    let mut scratch = Scratch::default();
    for (tick, packet) in packets.enumerate().take(400) {
        let now = Time::from_millis(1000 + 20 * tick as u64);
        leg.receive(now, &packet);
        let heard = leg.listen(now, &mut scratch);
        assert!(heard.passed.is_none_or(|passed| passed.position <= heard.position));
        while leg.digit().is_some() {}
        leg.report(now, now.0);
    }
    leg.figures();
    leg
}
