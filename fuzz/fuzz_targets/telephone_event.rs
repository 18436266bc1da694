//! Telephone events: payloads in any order become digits or nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_fuzz::{EVENTS, datagrams, hear, leg};
use ringer_media::codec::Codec;
use ringer_media::rtp::packet::{EventPayload, HEADER, Header};

fuzz_target!(|data: &[u8]| {
    if let Some(payload) = EventPayload::parse(data) {
        assert_eq!(payload.bytes()[..], [data[0], data[1] & 0xbf, data[2], data[3]]);
    }
    // Of each piece: how far the sequence number goes on, the timestamp and the marker; then the payload.
    let mut sequence = 0u16;
    let packets = datagrams(data).map(|piece| {
        let (given, payload) = piece.split_at(piece.len().min(4));
        let byte = |at: usize| given.get(at).copied().unwrap_or(0);
        sequence = sequence.wrapping_add(u16::from(byte(0)));
        let timestamp = u32::from(byte(1)) << 16 | u32::from(byte(2)) << 8;
        let header = Header { marker: byte(3) & 1 == 1, payload_type: EVENTS, sequence, timestamp, ssrc: 7 };
        let mut head = [0; HEADER];
        header.write(&mut head);
        [&head[..], payload].concat()
    });
    hear(leg(Codec::Pcmu, None), packets);
});
