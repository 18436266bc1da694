//! Handshakes for keys of secure RTP in offers and answers (RFC 5763, 8122, 8643, 8842).

use crate::sdp::{
    Crypto, CryptoSuite, Dtls, Fingerprint, Handshake, HashFunction, KeyOrigin, KeySalt, Negotiated, Offer, Refusal,
    Session, Setup, negotiate, read_answer,
};
use crate::testing::offer;

/// Returns a fingerprint of this function whose bytes are all `fill`.
fn print(hash: HashFunction, fill: u8) -> Fingerprint {
    Fingerprint::new(hash, &vec![fill; hash.digest_bytes()]).unwrap()
}

/// Returns the offer of a side with a handshake, and with keys in the description when `sdes`.
fn side(number: u8, origin: KeyOrigin, sdes: bool, required: bool) -> Offer {
    let suite = CryptoSuite::AesCm128HmacSha1_80;
    let key = KeySalt::new(suite, &[number; 30]).unwrap();
    let crypto = if sdes { vec![Crypto { tag: 1, suite, key }] } else { Vec::new() };
    let name = format!("association-of-side-{number}");
    let dtls = Some(Dtls::offering(print(HashFunction::Sha256, number), name));
    Offer { crypto, crypto_required: required, dtls, key_origin: origin, rtcp_mux: true, ..offer(number) }
}

fn kind(agreed: &Negotiated) -> &'static str {
    match (&agreed.crypto, &agreed.dtls) {
        (None, None) => "plain",
        (Some(_), None) => "sdes",
        (None, Some(_)) => "dtls",
        (Some(_), Some(_)) => "both",
    }
}

#[test]
fn fingerprints_are_understood_or_passed_over() {
    let check = |line: &str, expect: Option<Fingerprint>| {
        assert_eq!(Fingerprint::parse(line), expect, "{line}");
        if let Some(read) = expect {
            assert_eq!(Fingerprint::parse(&read.to_string()), expect, "it reads back as itself");
        }
    };
    let digits = |pair: &str, count: usize| vec![pair; count].join(":");
    for hash in HashFunction::ALL {
        let (name, bytes) = (hash.name(), hash.digest_bytes());
        check(&format!("{name} {}", digits("AB", bytes)), Some(print(hash, 0xab)));
        check(&format!("{} {}", name.to_uppercase(), digits("ab", bytes)), Some(print(hash, 0xab)));
        check(&format!("{name}  {} ", digits("0f", bytes)), Some(print(hash, 0x0f)));
        check(&format!("{name} {}", digits("AB", bytes - 1)), None);
        check(&format!("{name} {}", digits("AB", bytes + 1)), None);
        check(&format!("{name} {}", digits("+A", bytes)), None);
        check(&format!("{name} {}", digits("ABC", bytes)), None);
        check(&format!("{name}:{}", digits("AB", bytes)), None);
    }
    for line in ["", "sha-256", "sha-256 ", "md5 AB:AB", "sha-256 :", "sha-256 é", "sha-256 ééééé"] {
        check(line, None);
    }
    assert_eq!(print(HashFunction::Sha1, 1).to_string(), format!("sha-1 {}", digits("01", 20)));
}

/// Wishes of both sides, and what they come to: profile of offer and answer, kind of keys.
#[test]
fn both_kinds_of_keys_meet() {
    use KeyOrigin::{Any, Dtls, Sdes};
    let check = |theirs: Offer, ours: Offer, profile: &str, expect: Result<&str, Refusal>| {
        let offered = theirs.session().to_string();
        assert!(offered.contains(&format!("m=audio 4000 {profile} ")), "{offered}");
        let got = negotiate(&offered, &ours);
        assert_eq!(got.as_ref().map(|(_, agreed)| kind(agreed)).map_err(|why| *why), expect, "{offered}");
        let Ok((answer, here)) = got else { return };
        let text = answer.to_string();
        assert_eq!(answer.media[0].protocol, profile, "the answer takes over the profile");
        let lines = ["a=crypto:", "a=fingerprint:", "a=setup:active"].map(|line| text.matches(line).count());
        let is = |wanted| usize::from(kind(&here) == wanted);
        assert_eq!(lines, [is("sdes"), is("dtls"), is("dtls")], "{text}");
        let there = read_answer(&offered, &text).unwrap();
        assert_eq!(kind(&there), kind(&here), "{text}");
        if let (Some(here), Some(there)) = (here.dtls, there.dtls) {
            assert_eq!((here.active, there.active), (true, false), "the answerer begins");
            assert_eq!(here.fingerprints, theirs.dtls.unwrap().fingerprints);
            assert_eq!(there.fingerprints, ours.dtls.unwrap().fingerprints);
            assert_eq!(here.tls_id.as_deref(), Some("association-of-side-1"));
            assert_eq!(there.tls_id.as_deref(), Some("association-of-side-2"));
        }
    };
    let one = |origin, required| side(1, origin, true, required);
    let two = |origin, required| side(2, origin, true, required);
    // An optional offer has both in one stream; whoever answers takes what it likes better.
    check(one(Sdes, false), two(Sdes, true), "RTP/AVP", Ok("sdes"));
    check(one(Sdes, false), two(Dtls, true), "RTP/AVP", Ok("dtls"));
    check(one(Dtls, false), two(Any, false), "RTP/AVP", Ok("dtls"));
    check(one(Any, true), two(Sdes, false), "RTP/SAVP", Ok("sdes"));
    check(one(Any, true), two(Any, false), "RTP/SAVP", Ok("dtls"));
    // With one kind alone that is taken, whatever is liked.
    check(one(Sdes, true), two(Dtls, true), "RTP/SAVP", Ok("sdes"));
    check(one(Dtls, true), two(Sdes, true), "UDP/TLS/RTP/SAVP", Ok("dtls"));
    check(side(1, Sdes, false, true), two(Sdes, false), "UDP/TLS/RTP/SAVP", Ok("dtls"));
    // Programs that have one kind alone, or none.
    let no_dtls = |offer: Offer| Offer { dtls: None, ..offer };
    let plain =
        |number| Offer { dtls: None, crypto: Vec::new(), crypto_required: false, ..side(number, Sdes, false, false) };
    check(one(Dtls, true), no_dtls(two(Sdes, true)), "UDP/TLS/RTP/SAVP", Err(Refusal::NoCrypto));
    check(one(Dtls, true), plain(2), "UDP/TLS/RTP/SAVP", Err(Refusal::NoAudio));
    check(one(Dtls, false), plain(2), "RTP/AVP", Ok("plain"));
    check(one(Dtls, false), no_dtls(two(Any, true)), "RTP/AVP", Ok("sdes"));
    check(plain(1), two(Any, false), "RTP/AVP", Ok("plain"));
    check(plain(1), two(Any, true), "RTP/AVP", Err(Refusal::NoCrypto));
}

/// Offers of strangers, line by line.
#[test]
fn lines_of_stream_and_session_count() {
    let digits = |pair: &str, count: usize| vec![pair; count].join(":");
    let (sha1, sha256) = (format!("sha-1 {}", digits("11", 20)), format!("sha-256 {}", digits("22", 32)));
    let other = format!("sha-256 {}", digits("33", 32));
    let offered = |session: &[String], stream: &[String], profile: &str| {
        let lines = |lines: &[String]| lines.iter().map(|line| format!("a={line}\r\n")).collect::<String>();
        format!(
            "v=0\r\no=x 1 1 IN IP4 h\r\ns=-\r\nc=IN IP4 10.0.0.9\r\nt=0 0\r\n{}m=audio 4000 {profile} 0\r\n{}",
            lines(session),
            lines(stream)
        )
    };
    let check = |session: &[String], stream: &[String], expect: Result<(&[Fingerprint], bool), Refusal>| {
        for profile in ["UDP/TLS/RTP/SAVP", "UDP/TLS/RTP/SAVPF", "RTP/SAVP", "RTP/SAVPF"] {
            let text = offered(session, stream, profile);
            let got = negotiate(&text, &side(2, KeyOrigin::Sdes, true, false)).map(|(answer, agreed)| {
                assert_eq!(answer.media[0].protocol, profile);
                agreed.dtls.unwrap()
            });
            let expect = expect.map(|(prints, active)| (prints.to_vec(), active));
            assert_eq!(got.map(|agreed| (agreed.fingerprints, agreed.active)), expect, "{text}");
        }
    };
    let (weak, strong, third) =
        (print(HashFunction::Sha1, 0x11), print(HashFunction::Sha256, 0x22), print(HashFunction::Sha256, 0x33));
    let line = |print: &str| format!("fingerprint:{print}");
    let setup = |word: &str| format!("setup:{word}");
    check(&[line(&sha256), setup("actpass")], &[], Ok((&[strong], true)));
    check(&[], &[line(&sha256), setup("actpass")], Ok((&[strong], true)));
    check(&[], &[line(&sha256), setup("ACTPASS")], Ok((&[strong], true)));
    check(&[], &[line(&sha256), setup("passive")], Ok((&[strong], true)));
    check(&[], &[line(&sha256), setup("active")], Ok((&[strong], false)));
    check(&[], &[line(&sha256)], Ok((&[strong], false)));
    // The stream's own lines go before those of the session.
    check(&[line(&other), setup("active")], &[line(&sha256), setup("passive")], Ok((&[strong], true)));
    check(&[line(&sha256), setup("active")], &[setup("passive")], Ok((&[strong], true)));
    // Several certificates, of the strongest function.
    check(&[], &[line(&sha256), line(&sha1), line(&other), setup("active")], Ok((&[strong, third], false)));
    check(&[], &[line(&sha1), setup("active")], Ok((&[weak], false)));
    check(&[], &[line("md5 AA:BB"), line(&sha256), setup("active")], Ok((&[strong], false)));
    let refused = Err(Refusal::NoCrypto);
    check(&[], &[], refused);
    check(&[], &[line("md5 AA:BB"), setup("active")], refused);
    check(&[], &[line(&sha256), setup("holdconn")], refused);
    check(&[], &[line(&sha256), setup("sideways")], refused);
}

#[test]
fn answers_tell_who_begins() {
    let check = |change: fn(String) -> String, expect: Result<(bool, &str), Refusal>| {
        let offered = side(1, KeyOrigin::Dtls, false, true).session().to_string();
        let (answer, _) = negotiate(&offered, &side(2, KeyOrigin::Dtls, false, true)).unwrap();
        let answer = change(answer.to_string());
        let got = read_answer(&offered, &answer);
        let agreement = got.as_ref().map(|agreed| (agreed.dtls.as_ref().is_some_and(|dtls| dtls.active), kind(agreed)));
        assert_eq!(agreement.map_err(|why| *why), expect, "{answer}");
    };
    check(|text| text, Ok((false, "dtls")));
    check(|text| text.replace("setup:active", "setup:passive"), Ok((true, "dtls")));
    check(|text| text.replace("setup:active", "setup:actpass"), Ok((true, "dtls")));
    check(|text| text.replace("a=setup:active\r\n", ""), Ok((true, "dtls")));
    check(|text| text.replace("UDP/TLS/", ""), Ok((false, "dtls")));
    check(|text| text.replace("setup:active", "setup:holdconn"), Err(Refusal::NoCrypto));
    check(|text| text.replace("a=fingerprint", "a=fingers"), Err(Refusal::NoCrypto));
    check(|text| text.replace("sha-256", "md2"), Err(Refusal::NoCrypto));
}

#[test]
fn names_of_associations_answer_names() {
    let offered = side(1, KeyOrigin::Dtls, false, true).session().to_string();
    for (line, expect) in [
        ("a=tls-id:association-of-side-1\r\n", Some("association-of-side-1")),
        ("", None),
        ("a=tls-id:short\r\n", None),
        ("a=tls-id:association of side 1\r\n", None),
    ] {
        let text = offered.replace("a=tls-id:association-of-side-1\r\n", line);
        let (answer, agreed) = negotiate(&text, &side(2, KeyOrigin::Dtls, false, true)).unwrap();
        assert_eq!(agreed.dtls.unwrap().tls_id.as_deref(), expect, "{line}");
        assert_eq!(answer.to_string().contains("a=tls-id:association-of-side-2"), expect.is_some(), "{line}");
    }
}

/// A later offer leaves the choice open: who has a part in an association keeps it, on either side of the call.
#[test]
fn a_part_is_kept_when_the_session_is_described_again() {
    let (one, two) = (side(1, KeyOrigin::Any, true, false), side(2, KeyOrigin::Dtls, true, false));
    let offered = one.session().to_string();
    let (answer, at_two) = negotiate(&offered, &two).unwrap();
    let at_one = read_answer(&offered, &answer.to_string()).unwrap();
    let again = |own: &Session, agreed: &Negotiated, theirs: &str| {
        let mut base = Offer::from_session(own).unwrap();
        base.keep_protection(agreed);
        let (answer, agreed) = negotiate(theirs, &base).unwrap();
        let setup = answer.media[0].attributes.iter().find(|line| line.name == "setup").unwrap();
        (setup.value.clone().unwrap(), agreed.dtls.unwrap())
    };
    let reoffer = answer.to_string().replace("setup:active", "setup:actpass");
    let (setup, handshake) = again(&one.session(), &at_one, &reoffer);
    assert_eq!((setup.as_str(), handshake.active), ("passive", false), "the caller goes on waiting");
    assert_eq!(Some(&handshake), at_one.dtls.as_ref(), "and it is the same association");
    let (setup, handshake) = again(&answer, &at_two, &offered);
    assert_eq!((setup.as_str(), handshake), ("active", at_two.dtls.unwrap()), "the answerer goes on being the client");
    assert_eq!(Handshake { active: false, ..handshake_of(&one) }.setup(), Setup::Passive);
}

fn handshake_of(side: &Offer) -> Handshake {
    let dtls = side.dtls.clone().unwrap();
    Handshake { fingerprints: dtls.fingerprints, active: true, tls_id: dtls.tls_id }
}

#[test]
fn an_own_description_reads_back() {
    for origin in [KeyOrigin::Sdes, KeyOrigin::Dtls, KeyOrigin::Any] {
        for required in [false, true] {
            let ours = side(1, origin, true, required);
            let back = Offer::from_session(&ours.session()).unwrap();
            let expect = (!required || origin != KeyOrigin::Sdes).then(|| ours.dtls.clone()).flatten();
            assert_eq!((&back.dtls, back.crypto_required, back.rtcp_mux), (&expect, required, true), "{origin:?}");
            assert_eq!(back.crypto.is_empty(), required && origin == KeyOrigin::Dtls, "{origin:?}");
        }
    }
}
