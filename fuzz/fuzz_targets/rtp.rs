//! RTP packets: what the parser says holds, and a leg plays whatever comes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_fuzz::{datagrams, hear, leg};
use ringer_media::codec::Codec;
use ringer_media::rtp::packet::{HEADER, Packet, header_bytes};

fuzz_target!(|data: &[u8]| {
    if let Ok(packet) = Packet::parse(data) {
        let start = header_bytes(data).expect("a packet has a header");
        assert!(start >= HEADER && start + packet.payload.len() <= data.len());
    }
    let Some((&first, rest)) = data.split_first() else { return };
    hear(leg(Codec::ALL[usize::from(first) % Codec::ALL.len()], None), datagrams(rest).map(<[u8]>::to_vec));
});
