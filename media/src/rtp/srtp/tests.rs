//! The vectors of RFC 3711 and RFC 7714, and attacks.

use super::*;
use crate::rtp::packet::{HEADER, Header};
use crate::seed::Seed;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn key(suite: Suite, fill: u8) -> MasterKey {
    MasterKey::new(suite, &vec![fill; 16 + suite.salt_bytes()]).unwrap()
}

fn both(suite: Suite) -> (Protector, Opener) {
    (Protector::new(suite, &key(suite, 7)), Opener::new(suite, &key(suite, 7)))
}

fn rtp(ssrc: u32, sequence: u16) -> Vec<u8> {
    let mut head = [0; HEADER];
    Header { sequence, ssrc, timestamp: u32::from(sequence) * 160, ..Header::default() }.write(&mut head);
    [&head[..], &[sequence as u8; 160]].concat()
}

fn report(ssrc: u32) -> Vec<u8> {
    [&[0x80, 201, 0, 1], &ssrc.to_be_bytes()[..], &[0x81, 202, 0, 2], &ssrc.to_be_bytes(), b"\x01\x02ab"].concat()
}

/// Returns `packet` under `protect`, which takes its buffer and length and returns the new length.
fn seal(packet: &[u8], mut protect: impl FnMut(&mut [u8], usize) -> usize) -> Vec<u8> {
    let mut buffer = [packet, &[0; MAX_OVERHEAD]].concat();
    let len = protect(&mut buffer, packet.len());
    buffer.truncate(len);
    buffer
}

fn open(opener: &mut Opener, packet: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut buffer = packet.to_vec();
    opener.open(&mut buffer).map(<[u8]>::to_vec)
}

fn opened_report(opener: &mut Opener, packet: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut buffer = packet.to_vec();
    opener.open_report(&mut buffer).map(<[u8]>::to_vec)
}

#[test]
fn session_keys_are_those_of_rfc_3711_b_3() {
    let master = hex("E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6");
    let master = MasterKey::new(Suite::AesCm128HmacSha1_80, &master).unwrap();
    let check = |label: u8, expect: &str| {
        let mut key = vec![0; expect.len() / 2];
        master.derive(label, &mut key);
        assert_eq!(key, hex(expect), "label {label}");
    };
    check(0, "C61E7A93744F39EE10734AFE3FF7A087");
    check(1, "CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4");
    check(2, "30CBBC08863D8C85D49DB34A9AE1");
}

#[test]
fn the_key_stream_is_that_of_rfc_3711_b_2() {
    let (key, salt) = (hex("2B7E151628AED2A6ABF7158809CF4F3C"), hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD"));
    let key = key.as_slice().try_into().unwrap();
    let transform = Transform::of_session_keys(Suite::AesCm128HmacSha1_80, key, &[0; 20], &salt, 10);
    // Zeros of source 0 and index 0 become the key stream; the vector goes on to block 0xff01.
    let blocks = 0xff02;
    let mut buffer = vec![0; HEADER + blocks * 16 + MAX_OVERHEAD];
    buffer[0] = 0x80;
    transform.seal_packet(&mut buffer, HEADER, HEADER + blocks * 16, 0, 0);
    let stream = &buffer[HEADER..];
    let check = |block: usize, expect: &str| assert_eq!(stream[block * 16..][..16], hex(expect), "block {block:#x}");
    check(0, "E03EAD0935C95E80E166B16DD92B4EB4");
    check(1, "D23513162B02D0F72A43A2FE4A5F97AB");
    check(2, "41E95B3BB0A2E8DD477901E4FCA894C0");
    check(0xfeff, "EC8CDF7398607CB0F2D21675EA9EA1E4");
    check(0xff00, "362B7C3C6773516318A077D7FC5073AE");
    check(0xff01, "6A2CC3787889374FBEB4C81B17BA6C44");
}

#[test]
fn a_packet_of_counter_mode_is_as_another_implementation_makes_it() {
    let suite = Suite::AesCm128HmacSha1_80;
    let master = hex("E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6");
    let master = MasterKey::new(suite, &master).unwrap();
    let plain = hex("800f1234decafbadcafebabe abababababababababababababababab");
    let expect = hex("800f1234decafbadcafebabe 4e55dc4ce79978d88ca4d215949d2402 b78d6acc99ea179b8dbb");
    let mut protector = Protector::new(suite, &master);
    assert_eq!(seal(&plain, |buffer, len| protector.protect(buffer, len)), expect);
    assert_eq!(open(&mut Opener::new(suite, &master), &expect), Ok(plain));
}

/// Returns the session key and salt of the vectors of RFC 7714 16 and 17.
fn gcm() -> Transform {
    let key = hex("000102030405060708090a0b0c0d0e0f");
    let salt = hex("517569642070726f2071756f");
    Transform::of_session_keys(Suite::AeadAes128Gcm, key.as_slice().try_into().unwrap(), &[0; 20], &salt, 10)
}

#[test]
fn a_packet_of_gcm_is_that_of_rfc_7714_16_1() {
    let plain =
        hex("8040f17b8041f8d35501a0b2 47616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573");
    let expect =
        hex("8040f17b8041f8d35501a0b2 f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833
         899d7f27beb16a9152cf765ee4390cce");
    let (_, mut opener) = both(Suite::AeadAes128Gcm);
    opener.rtp = gcm();
    assert_eq!(seal(&plain, |buffer, len| gcm().seal_packet(buffer, HEADER, len, 0x5501_a0b2, 0xf17b)), expect);
    assert_eq!(open(&mut opener, &expect), Ok(plain));
}

#[test]
fn a_report_of_gcm_is_that_of_rfc_7714_17_1() {
    let plain = hex("81c8000d4d617273 4e5450314e545032525450200000042a0000e9304c756e61
         deadbeefdeadbeefdeadbeefdeadbeefdeadbeef");
    let expect =
        hex("81c8000d4d617273 63e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded
         0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4");
    let (_, mut opener) = both(Suite::AeadAes128Gcm);
    opener.rtcp = gcm();
    assert_eq!(seal(&plain, |buffer, len| gcm().seal_report(buffer, len, 0x4d61_7273, 0x5d4)), expect);
    assert_eq!(opened_report(&mut opener, &expect), Ok(plain.clone()));
    // RFC 7714 17.3: authentic, but readable by everybody on the way.
    let tagged = [&plain[..], &hex("841dd9683dd78ec92ae58790125f62b3000005d4")].concat();
    assert_eq!(opened_report(&mut opener, &tagged), Err(Refused::Forged));
}

#[test]
fn every_suite_protects_and_opens() {
    for (suite, rtp_more, rtcp_more) in
        [(Suite::AesCm128HmacSha1_80, 10, 14), (Suite::AesCm128HmacSha1_32, 4, 14), (Suite::AeadAes128Gcm, 16, 20)]
    {
        let (mut protector, mut opener) = both(suite);
        for n in 0..100 {
            let plain = rtp(1, n);
            let packet = seal(&plain, |buffer, len| protector.protect(buffer, len));
            assert_eq!(packet.len(), plain.len() + rtp_more, "{suite:?}");
            assert!(packet[..HEADER] == plain[..HEADER] && packet[HEADER..][..160] != plain[HEADER..], "{suite:?}");
            assert_eq!(open(&mut opener, &packet), Ok(plain), "{suite:?}");
            let plain = report(1);
            let packet = seal(&plain, |buffer, len| protector.protect_report(buffer, len));
            assert_eq!(packet.len(), plain.len() + rtcp_more, "{suite:?}");
            assert!(packet[..8] == plain[..8] && packet[8..20] != plain[8..20], "{suite:?}");
            assert_eq!(opened_report(&mut opener, &packet), Ok(plain), "{suite:?}");
        }
        assert_eq!(Suite::from_name(suite.name()), Some(suite));
    }
    assert_eq!(Suite::from_name("AES_CM_128_NULL"), None);
    assert_eq!(MasterKey::new(Suite::AeadAes128Gcm, &[0; 30]), None);
    assert_eq!(format!("{:?}", key(Suite::AeadAes128Gcm, 1)), "(set)");
}

#[test]
fn header_extensions_and_sources_of_a_mix_stay_readable() {
    for suite in Suite::ALL {
        let (mut protector, mut opener) = both(suite);
        let mut plain = rtp(1, 1);
        plain.splice(HEADER..HEADER, *b"csrcxx\x00\x01ext!");
        plain[0] = 0x91;
        let packet = seal(&plain, |buffer, len| protector.protect(buffer, len));
        assert_eq!(packet[..24], plain[..24], "{suite:?}");
        assert_eq!(open(&mut opener, &packet), Ok(plain), "{suite:?}");
    }
}

/// Indexes of RFC 3711 3.3.1, counted by the sender and guessed by the receiver over loss and reordering.
#[test]
fn numbers_wrap_with_loss_and_reordering_around_it() {
    for suite in Suite::ALL {
        let (mut protector, mut opener) = both(suite);
        let (mut late, mut lost, mut draw) = (Vec::new(), 0, Seed(5).stream("loss"));
        let mut arrived = 0;
        for n in 0..200_000u32 {
            let plain = rtp(9, (30_000 + n) as u16);
            let packet = seal(&plain, |buffer, len| protector.protect(buffer, len));
            // A tenth is lost, two hundred in a row before and after a wrap; a tenth comes up to 40 packets late.
            let near = (65_536 - 30_000i64 - i64::from(n)).rem_euclid(65_536);
            match draw.index(10) {
                0 => lost += 1,
                _ if (100..300).contains(&near) || (65_000..65_200).contains(&near) => lost += 1,
                1 => late.push((n + 1 + draw.index(40) as u32, plain, packet)),
                _ => {
                    assert_eq!(open(&mut opener, &packet), Ok(plain), "{suite:?} {n}");
                    arrived += 1;
                }
            }
            late.retain(|(due, plain, packet)| {
                if *due <= n {
                    assert_eq!(open(&mut opener, packet).as_ref(), Ok(plain), "{suite:?} {n} late");
                    assert_eq!(open(&mut opener, packet), Err(Refused::Replayed), "{suite:?} {n} again");
                    arrived += 1;
                }
                *due > n
            });
        }
        assert_eq!(arrived + lost + late.len(), 200_000, "{suite:?}");
        assert_eq!(opener.sources.all[0].rtp.index_of(33_000).map(|index| index >> 16), Some(3), "{suite:?}");
    }
}

#[test]
fn indices_are_guessed_as_rfc_3711_says() {
    let check = |highest: u64, sequence: u16, expect: Option<u64>| {
        let mut window = Window::default();
        window.accept(highest);
        assert_eq!(window.index_of(sequence), expect, "{highest:#x} {sequence:#x}");
    };
    check(0, 1, Some(1));
    check(0, 0x8000, Some(0x8000));
    check(0, 0x8001, None);
    check(0x1_0000, 0xffff, Some(0xffff));
    check(0x1_0000, 0x8000, Some(0x1_8000));
    check(0xffff, 0, Some(0x1_0000));
    check(0xffff, 0x7ffe, Some(0x1_7ffe));
    check(0xffff, 0x7fff, Some(0x7fff));
    check(0xffff_ffff_ffff, 0, None);
    assert_eq!(Window::default().index_of(0xffff), Some(0xffff));
}

#[test]
fn the_window_is_64_packets() {
    for suite in Suite::ALL {
        let (mut protector, mut opener) = both(suite);
        let packets: Vec<_> =
            (0..100).map(|n| seal(&rtp(1, n), |buffer, len| protector.protect(buffer, len))).collect();
        let reports: Vec<_> =
            (0..100).map(|_| seal(&report(1), |buffer, len| protector.protect_report(buffer, len))).collect();
        assert!(open(&mut opener, &packets[80]).is_ok() && opened_report(&mut opener, &reports[80]).is_ok());
        for (n, expect) in [(80, false), (17, true), (17, false), (16, false), (99, true), (36, true), (35, false)] {
            assert_eq!(open(&mut opener, &packets[n]).is_ok(), expect, "{suite:?} packet {n}");
            assert_eq!(opened_report(&mut opener, &reports[n]).is_ok(), expect, "{suite:?} report {n}");
        }
        assert_eq!(open(&mut opener, &packets[99]), Err(Refused::Replayed));
        assert_eq!(opened_report(&mut opener, &reports[99]), Err(Refused::Replayed));
    }
}

#[test]
fn every_source_has_numbers_of_its_own() {
    for suite in Suite::ALL {
        let mut opener = both(suite).1;
        let mut senders: Vec<_> = (0..SOURCES as u32).map(|ssrc| (ssrc, both(suite).0)).collect();
        for n in 0..200u16 {
            for (ssrc, protector) in &mut senders {
                // Each wraps at another time.
                let plain = rtp(*ssrc, 65_400u16.wrapping_add(15 * *ssrc as u16).wrapping_add(n));
                let packet = seal(&plain, |buffer, len| protector.protect(buffer, len));
                assert_eq!(open(&mut opener, &packet), Ok(plain), "{suite:?} {ssrc} {n}");
                assert_eq!(open(&mut opener, &packet), Err(Refused::Replayed), "{suite:?} {ssrc} {n}");
            }
        }
        // One more source takes the place of the one that was silent for longest.
        let packet = seal(&rtp(77, 5), |buffer, len| both(suite).0.protect(buffer, len));
        assert!(
            open(&mut opener, &packet).is_ok() && opener.sources.find(0).is_none() && opener.sources.find(1).is_some()
        );
    }
}

#[test]
fn what_is_not_authentic_is_refused_and_changes_nothing() {
    for suite in Suite::ALL {
        let (mut protector, mut opener) = both(suite);
        let mut stranger = Protector::new(suite, &key(suite, 8));
        let plain = rtp(1, 100);
        let packet = seal(&plain, |buffer, len| protector.protect(buffer, len));
        let foreign = seal(&plain, |buffer, len| stranger.protect(buffer, len));
        let report_packet = seal(&report(1), |buffer, len| protector.protect_report(buffer, len));
        let foreign_told = seal(&report(1), |buffer, len| stranger.protect_report(buffer, len));
        assert_eq!(open(&mut opener, &foreign), Err(Refused::Forged), "{suite:?}");
        assert_eq!(open(&mut opener, &plain), Err(Refused::Forged), "{suite:?}: not protected");
        assert_eq!(opened_report(&mut opener, &foreign_told), Err(Refused::Forged), "{suite:?}");
        for bit in 0..packet.len() * 8 {
            let mut tampered = packet.clone();
            tampered[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&mut opener, &tampered).is_err(), "{suite:?} bit {bit}");
        }
        for bit in 0..report_packet.len() * 8 {
            let mut tampered = report_packet.clone();
            tampered[bit / 8] ^= 1 << (bit % 8);
            assert!(opened_report(&mut opener, &tampered).is_err(), "{suite:?} report bit {bit}");
        }
        for len in 0..packet.len() {
            assert!(open(&mut opener, &packet[..len]).is_err(), "{suite:?} {len} bytes");
        }
        for len in 0..report_packet.len() {
            assert!(opened_report(&mut opener, &report_packet[..len]).is_err(), "{suite:?} report of {len} bytes");
        }
        assert_eq!(opener.sources.known, 0, "no source comes of it");
        assert_eq!(open(&mut opener, &packet), Ok(plain), "{suite:?}");
        assert_eq!(opened_report(&mut opener, &report_packet), Ok(report(1)), "{suite:?}");
    }
}
