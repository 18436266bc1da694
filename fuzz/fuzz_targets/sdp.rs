//! Session descriptions: offers are answered or refused, answers read, and what is printed reads back as itself.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use ringer_sip::sdp::{Codec, Crypto, CryptoSuite, KeySalt, Offer, Session, negotiate, read_answer};

fn side(secure: bool, required: bool) -> Offer {
    let mut offer =
        Offer::new(SocketAddr::from(([127, 0, 0, 1], 4000)), vec![Codec::g722(), Codec::pcmu(), Codec::pcma()]);
    if secure {
        let key =
            |suite: CryptoSuite| KeySalt::new(suite, &vec![7; suite.key_bytes()]).expect("it is as long as it must be");
        offer.crypto = (1..).zip(CryptoSuite::ALL).map(|(tag, suite)| Crypto { tag, suite, key: key(suite) }).collect();
    }
    Offer { crypto_required: required, rtcp_mux: required, ..offer }
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(session) = Session::parse(&text) {
        let _ = format!("{session:?}");
        if let Some(offer) = Offer::read(&session) {
            let printed = offer.session().to_string();
            assert!(Session::parse(&printed).is_ok(), "{printed}");
        }
    }
    for own in [side(false, false), side(true, false), side(true, true)] {
        if let Ok((answer, agreed)) = negotiate(&text, &own) {
            let printed = answer.to_string();
            assert_eq!(Session::parse(&printed).as_ref(), Ok(&answer));
            assert_eq!(answer.media.iter().filter(|media| media.port != 0).count(), 1);
            assert!(agreed.crypto.is_some() || !own.crypto_required);
        }
        if let Ok(agreed) = read_answer(&own.session().to_string(), &text) {
            assert!(agreed.crypto.is_some() || !own.crypto_required);
        }
    }
});
