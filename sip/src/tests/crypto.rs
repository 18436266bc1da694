//! Keys for secure RTP in offers and answers (RFC 4568).

use crate::sdp::{Crypto, CryptoSuite, KeySalt, Negotiated, Offer, Refusal, Session, negotiate, read_answer};
use crate::testing::offer;

const KEY_30: &str = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";
const KEY_28: &str = "AAECAwQFBgcICQoLDA0OD1F1aWQgcHJvIHF1bw==";

/// Offer of one side: with every suite and keys of its own when `secure`, else without keys.
fn side(number: u8, secure: bool, required: bool) -> Offer {
    let key =
        |n: usize, suite: CryptoSuite| KeySalt::new(suite, &vec![10 * number + n as u8; suite.key_bytes()]).unwrap();
    let all = CryptoSuite::ALL.into_iter().enumerate();
    let crypto = all.map(|(n, suite)| Crypto { tag: n as u32 + 1, suite, key: key(n, suite) }).collect();
    Offer { crypto: if secure { crypto } else { Vec::new() }, crypto_required: required, ..offer(number) }
}

fn agreed_suite(negotiated: Result<Negotiated, Refusal>) -> Result<Option<CryptoSuite>, Refusal> {
    negotiated.map(|negotiated| negotiated.crypto.map(|crypto| crypto.suite))
}

#[test]
fn lines_are_understood_or_passed_over() {
    let check = |line: &str, expect: Option<(u32, CryptoSuite)>| {
        let read = Crypto::parse(line);
        assert_eq!(read.as_ref().map(|crypto| (crypto.tag, crypto.suite)), expect, "{line}");
        if let Some(crypto) = read {
            assert_eq!(Crypto::parse(&crypto.to_string()), Some(crypto), "it reads back as itself");
        }
    };
    let cm = |tag: u32| Some((tag, CryptoSuite::AesCm128HmacSha1_80));
    check(&format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}"), cm(1));
    check(&format!("0 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}"), cm(0));
    check(
        &format!("999999999 AES_CM_128_HMAC_SHA1_32 INLINE:{KEY_30}"),
        Some((999_999_999, CryptoSuite::AesCm128HmacSha1_32)),
    );
    check(&format!("2 AEAD_AES_128_GCM inline:{KEY_28}"), Some((2, CryptoSuite::AeadAes128Gcm)));
    check(
        &format!("2 AEAD_AES_128_GCM inline:{}", KEY_28.trim_end_matches('=')),
        Some((2, CryptoSuite::AeadAes128Gcm)),
    );
    check(&format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|2^31"), cm(1));
    check(&format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|1048576 WSH=64 -FOO=1"), cm(1));
    for refused in [
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|2^20|1:4"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|1:4"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|2^20|1:4;inline:{KEY_30}|2^20|2:4"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|2^19"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|2^99"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30} KDR=1"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30} UNENCRYPTED_SRTP"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30} UNENCRYPTED_SRTCP"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30} UNAUTHENTICATED_SRTP"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30} WSH=63"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_28}"),
        format!("1 AEAD_AES_128_GCM inline:{KEY_30}"),
        format!("1 AES_256_CM_HMAC_SHA1_80 inline:{KEY_30}"),
        format!("1 F8_128_HMAC_SHA1_80 inline:{KEY_30}"),
        format!("1 AES_CM_128_HMAC_SHA1_80 prompt:{KEY_30}"),
        format!("1 AES_CM_128_HMAC_SHA1_80 {KEY_30}"),
        format!("1234567890 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}"),
        format!("+1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}"),
        "1 AES_CM_128_HMAC_SHA1_80 inline:not base64".to_owned(),
        "1 AES_CM_128_HMAC_SHA1_80".to_owned(),
        String::new(),
    ] {
        check(&refused, None);
    }
}

/// Both sides' wishes, and whether they come to a secure stream, a plain one, or none.
#[test]
fn off_optional_and_required_meet() {
    let check = |theirs: (bool, bool), ours: (bool, bool), expect: Result<bool, Refusal>| {
        let (caller, answerer) = (side(1, theirs.0, theirs.1), side(2, ours.0, ours.1));
        let offered = caller.session().to_string();
        assert_eq!(offered.contains("RTP/SAVP"), theirs.1, "{offered}");
        let got = negotiate(&offered, &answerer);
        let secure = got.as_ref().map(|(_, negotiated)| negotiated.crypto.is_some()).map_err(|why| *why);
        assert_eq!(secure, expect, "{theirs:?} {ours:?}");
        let Ok((answer, here)) = got else { return };
        let text = answer.to_string();
        assert_eq!(answer.media[0].protocol, Session::parse(&offered).unwrap().media[0].protocol);
        assert_eq!(text.matches("a=crypto:").count(), usize::from(here.crypto.is_some()), "{text}");
        let there = read_answer(&offered, &text).unwrap();
        let (here, there) = (here.crypto, there.crypto);
        assert_eq!(
            here.as_ref().map(|c| (c.suite, &c.send, &c.receive)),
            there.as_ref().map(|c| (c.suite, &c.receive, &c.send))
        );
        if let Some(crypto) = here {
            assert_eq!(
                (crypto.send.expose(), crypto.receive.expose()),
                (&[20; 30][..], &[10; 30][..]),
                "each its own key"
            );
        }
    };
    let (off, optional, required) = ((false, false), (true, false), (true, true));
    check(off, off, Ok(false));
    check(off, optional, Ok(false));
    check(off, required, Err(Refusal::NoCrypto));
    check(optional, off, Ok(false));
    check(optional, optional, Ok(true));
    check(optional, required, Ok(true));
    check(required, off, Err(Refusal::NoAudio));
    check(required, optional, Ok(true));
    check(required, required, Ok(true));
}

#[test]
fn the_first_offered_line_that_can_be_done_is_taken() {
    let offered = |lines: &[String]| {
        let plain = Offer { crypto_required: true, ..offer(1) }.session().to_string();
        lines.iter().fold(plain, |text, line| text + "a=crypto:" + line + "\r\n")
    };
    let lines = [
        format!("7 AES_256_CM_HMAC_SHA1_80 inline:{KEY_30}"),
        format!("8 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}|2^20|1:4"),
        format!("9 AEAD_AES_128_GCM inline:{KEY_28}"),
        format!("10 AES_CM_128_HMAC_SHA1_32 inline:{KEY_30}"),
    ];
    let (answer, negotiated) = negotiate(&offered(&lines), &side(2, true, true)).unwrap();
    assert_eq!(agreed_suite(Ok(negotiated)), Ok(Some(CryptoSuite::AeadAes128Gcm)));
    assert!(answer.to_string().contains("a=crypto:9 AEAD_AES_128_GCM inline:FhYWFh"), "{answer}");
    for lines in [&lines[..2], &[]] {
        let refused = negotiate(&offered(lines), &side(2, true, false)).map(|_| ());
        assert_eq!(refused, Err(Refusal::NoCrypto), "{lines:?}");
    }
}

#[test]
fn answers_must_choose_one_of_what_was_offered() {
    let check = |required: bool, protocol: &str, lines: &[String], expect: Result<Option<CryptoSuite>, Refusal>| {
        let offered = side(1, true, required).session().to_string();
        let mut answer = offer(2).session().to_string().replace("RTP/AVP", protocol);
        lines.iter().for_each(|line| answer += &format!("a=crypto:{line}\r\n"));
        assert_eq!(agreed_suite(read_answer(&offered, &answer)), expect, "{answer}");
    };
    let good = format!("2 AES_CM_128_HMAC_SHA1_32 inline:{KEY_30}");
    let suite = Ok(Some(CryptoSuite::AesCm128HmacSha1_32));
    check(true, "RTP/SAVP", std::slice::from_ref(&good), suite);
    check(true, "RTP/AVP", std::slice::from_ref(&good), suite);
    check(false, "RTP/AVP", std::slice::from_ref(&good), suite);
    check(false, "RTP/AVP", &[], Ok(None));
    let refused = Err(Refusal::NoCrypto);
    check(true, "RTP/SAVP", &[], refused);
    check(true, "RTP/AVP", &[], refused);
    check(false, "RTP/SAVP", &[], refused);
    check(false, "RTP/AVP", &[good.replace("2 AES", "1 AES")], refused);
    check(false, "RTP/AVP", &[good.replace("2 AES", "4 AES")], refused);
    check(false, "RTP/AVP", &[good.replace(KEY_30, KEY_28)], refused);
    check(true, "RTP/SAVP", &[good.clone(), format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY_30}")], refused);
    // Nobody asked for it.
    let answer = offer(2).session().to_string().replace("RTP/AVP", "RTP/SAVP") + &format!("a=crypto:{good}\r\n");
    assert_eq!(agreed_suite(read_answer(&offer(1).session().to_string(), &answer)), Err(Refusal::NoAudio));
}

#[test]
fn a_description_reads_back_with_its_keys_and_never_shows_them() {
    let ours = side(1, true, true);
    let session = ours.session();
    let back = Offer::from_session(&session).unwrap();
    assert_eq!((&back.crypto, back.crypto_required), (&ours.crypto, true));
    let keys = ours.crypto.iter().map(|crypto| crypto.to_string().split_once("inline:").unwrap().1.to_owned());
    let (_, negotiated) = negotiate(&session.to_string(), &side(2, true, true)).unwrap();
    let shown = format!("{session:?} {ours:?} {negotiated:?}");
    assert!(shown.contains("(masked)") && shown.contains("(set)"), "{shown}");
    keys.for_each(|key| assert!(!shown.contains(&key) && session.to_string().contains(&key), "{shown}"));
    assert!(!shown.contains("10, 10, 10"), "{shown}");
}
