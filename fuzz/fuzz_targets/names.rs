//! Answers of name servers: whatever they hold, a search ends, with a limited number of hops or the reason why there
//! are none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_transport::sip::names::hops_by_messages;
use ringer_sip::uri::Uri;

/// Most hops of one URI.
const HOPS_MOST: usize = 16;

fuzz_target!(|data: &[u8]| {
    // The first two bytes of each message are its length, as over TCP (RFC 1035 4.2.2).
    let (mut messages, mut rest) = (Vec::new(), data);
    while let [high, low, tail @ ..] = rest {
        let (message, next) = tail.split_at(tail.len().min(usize::from(u16::from_be_bytes([*high, *low]))));
        messages.push(message);
        rest = next;
    }
    for address in ["sip:a@agent.example", "sips:a@agent.example", "sip:a@agent.example:5070;transport=tcp"] {
        let uri = Uri::parse(address).expect("it is one");
        if let Ok(hops) = hops_by_messages(&uri, &messages) {
            assert!((1..=HOPS_MOST).contains(&hops.len()), "{hops:?}");
        }
    }
});
