//! Streams of SIP: what is cut out of them does not depend on the pieces that they come in, and holds no more than its
//! limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_sip::Time;
use ringer_sip::framing::{Frame, Framer, FramingError, MAX_BODY_BYTES, MAX_HEAD_BYTES, Opened};

/// Messages of `bytes`, given in pieces of this size, and the error that ended them.
fn messages(bytes: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<FramingError>) {
    let (mut framer, mut found) = (Framer::new(Opened::There), Vec::new());
    for piece in bytes.chunks(size) {
        framer.receive(Time(0), piece);
        loop {
            match framer.poll() {
                Ok(Some(Frame::Message(message))) => {
                    assert!(message.len() <= MAX_HEAD_BYTES + MAX_BODY_BYTES);
                    found.push(message);
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, bytes)) = data.split_first() else { return };
    assert_eq!(messages(bytes, usize::from(size) + 1), messages(bytes, bytes.len().max(1)));
});
