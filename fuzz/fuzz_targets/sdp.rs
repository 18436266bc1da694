//! Session descriptions: offers are answered or refused, answers read, and what is printed reads back as itself.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use ringer_sip::sdp::{
    Codec, Crypto, CryptoSuite, Dtls, Fingerprint, HashFunction, KeyOrigin, KeySalt, Offer, Session, negotiate, read_answer,
};

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

/// A side that also knows the handshake, and likes keys of this origin better.
fn shaking(origin: KeyOrigin, required: bool) -> Offer {
    let fingerprint = Fingerprint::new(HashFunction::Sha256, &[7; 32]).expect("it is as long as it must be");
    let dtls = Some(Dtls::offering(fingerprint, "a-name-of-an-association".to_owned()));
    Offer { dtls, key_origin: origin, ..side(true, required) }
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(session) = Session::parse(&text) {
        let _ = format!("{session:?}");
        if let Some(offer) = Offer::from_session(&session) {
            let printed = offer.session().to_string();
            assert!(Session::parse(&printed).is_ok(), "{printed}");
        }
    }
    for line in text.lines() {
        // What is understood reads back as itself.
        if let Some(read) = line.strip_prefix("a=fingerprint:").and_then(Fingerprint::parse) {
            assert_eq!(Fingerprint::parse(&read.to_string()), Some(read));
        }
        if let Some(read) = line.strip_prefix("a=crypto:").and_then(Crypto::parse) {
            assert_eq!(Crypto::parse(&read.to_string()), Some(read));
        }
    }
    let plain = [side(false, false), side(true, false), side(true, true)];
    let both = [shaking(KeyOrigin::Sdes, false), shaking(KeyOrigin::Dtls, true), shaking(KeyOrigin::Any, true)];
    for own in plain.into_iter().chain(both) {
        if let Ok((answer, agreed)) = negotiate(&text, &own) {
            let printed = answer.to_string();
            assert_eq!(Session::parse(&printed).as_ref(), Ok(&answer));
            assert_eq!(answer.media.iter().filter(|media| media.port != 0).count(), 1);
            assert!(agreed.crypto.is_some() != agreed.dtls.is_some() || !own.crypto_required);
        }
        if let Ok(agreed) = read_answer(&own.session().to_string(), &text) {
            assert!(agreed.crypto.is_some() != agreed.dtls.is_some() || !own.crypto_required);
        }
    }
});
