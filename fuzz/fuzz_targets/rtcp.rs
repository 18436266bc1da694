//! RTCP: reports are read, and figures stay in their ranges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_fuzz::{datagrams, leg};
use ringer_media::codec::Codec;
use ringer_media::rtp::rtcp::parse;
use ringer_media::time::Time;

fuzz_target!(|data: &[u8]| {
    let mut items = 0;
    parse(data, |_| items += 1);
    assert!(items <= data.len());
    let mut leg = leg(Codec::Pcmu, None);
    for (tick, datagram) in datagrams(data).enumerate().take(400) {
        let now = Time::from_millis(1000 + 20 * tick as u64);
        leg.receive_report(now, datagram);
        leg.report(now, now.0);
        let figures = leg.figures();
        assert!(figures.remote_fraction_lost.is_none_or(|share| (0.0..=1.0).contains(&share)));
        assert!(figures.round_trip_ms.is_none_or(|trip| trip >= 0.0));
    }
});
