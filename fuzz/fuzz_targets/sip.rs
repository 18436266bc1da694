//! SIP: a message that was read can be written and read again, and an endpoint survives whatever it is sent.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use ringer_sip::parse::parse;
use ringer_sip::{Endpoint, EndpointConfig, Hop, Message, Output, Time};

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = parse(data) {
        let printed = match &message {
            Message::Request(request) => request.to_bytes(),
            Message::Response(response) => response.to_bytes(),
        };
        assert!(parse(&printed).is_ok(), "{}", String::from_utf8_lossy(&printed));
    }
    let local = SocketAddr::from(([127, 0, 0, 1], 5060));
    let far = SocketAddr::from(([127, 0, 0, 1], 5070));
    let mut endpoint = Endpoint::new(EndpointConfig { local, tcp: None, tls: None, user_agent: "fuzz".into(), seed: 1 });
    let mut now = Time(0);
    // Messages of one run are parted by a zero byte, which no message has in its head.
    for datagram in data.split(|byte| *byte == 0).take(16) {
        endpoint.receive(now, Hop::udp(far), datagram);
        while let Some(output) = endpoint.poll() {
            if let Output::Event(key, ringer_sip::CallEvent::Incoming { .. }) = output {
                endpoint.ring(now, key, 180, None);
            }
        }
        now = Time(now.0 + 500_000_000);
        endpoint.tick(now);
        while endpoint.poll().is_some() {}
    }
});
