//! Legs with secure RTP: they hear each other as plain legs do, and nobody else.

use super::*;
use crate::rtp::srtp::{MasterKey, Suite};

fn secure_params(suite: Suite, send: u8, receive: u8) -> MediaParams {
    let key = |fill: u8| MasterKey::new(suite, &vec![fill; 16 + suite.salt_bytes()]).unwrap();
    MediaParams { srtp: Some(SrtpParams { suite, send: key(send), receive: key(receive) }), ..params(Codec::Pcmu) }
}

/// Runs two legs with reports both ways, and returns the audio that `far` received; `way` replaces each packet on its
/// way.
fn talk(
    near: MediaParams,
    far: MediaParams,
    mut way: impl FnMut(u64, &[u8]) -> Vec<Vec<u8>>,
) -> (Vec<i16>, RtpLeg, RtpLeg) {
    let origin = Time::from_millis(ORIGIN_MS);
    let (mut near, mut far) = (RtpLeg::new(near, Seed(1), origin), RtpLeg::new(far, Seed(2), origin));
    let mut heard = Vec::new();
    for tick in 0..1000 {
        let now = Time::from_millis(ORIGIN_MS + tick * 20);
        let pcm = std::array::from_fn(|i| tone(tick as usize * FRAME + i, 16_000, true));
        if tick == 500 {
            assert!(near.start_event('7', 100));
        }
        near.send(now, &pcm);
        let packets: Vec<Vec<u8>> = std::iter::from_fn(|| near.packet().map(<[u8]>::to_vec)).collect();
        for bytes in packets.iter().flat_map(|packet| way(tick, packet)) {
            far.receive(now, &bytes);
        }
        far.send(now, &SILENCE);
        let back = far.packet().expect("20 ms are one packet").to_vec();
        near.receive(now, &back);
        let reports = [near.report(now, now.0).map(<[u8]>::to_vec), far.report(now, now.0).map(<[u8]>::to_vec)];
        reports[0].iter().for_each(|bytes| far.receive_report(now, bytes));
        reports[1].iter().for_each(|bytes| near.receive_report(now, bytes));
        let mut scratch = Scratch::default();
        heard.extend_from_slice(far.listen(now, &mut scratch).pcm);
    }
    (heard, near, far)
}

fn pass_on(_: u64, packet: &[u8]) -> Vec<Vec<u8>> {
    vec![packet.to_vec()]
}

#[test]
fn secure_legs_hear_what_plain_legs_hear() {
    let (plain, ..) = talk(params(Codec::Pcmu), params(Codec::Pcmu), pass_on);
    for suite in Suite::ALL {
        let (heard, near, mut far) = talk(secure_params(suite, 1, 2), secure_params(suite, 2, 1), pass_on);
        assert!(heard == plain, "{suite:?}: every sample is the same");
        assert_eq!(far.digit().map(|digit| (digit.digit, digit.duration_ms)), Some(('7', 100)), "{suite:?}");
        for figures in [near.figures(), far.figures()] {
            assert_eq!((figures.lost, figures.forged, figures.replayed, figures.malformed), (0, 0, 0, 0), "{suite:?}");
            assert!(figures.round_trip_ms.is_some(), "{suite:?}: reports are understood");
        }
    }
}

#[test]
fn nothing_is_heard_under_a_wrong_key_or_without_one() {
    for suite in Suite::ALL {
        for near in [secure_params(suite, 9, 2), params(Codec::Pcmu)] {
            let (heard, _, far) = talk(near, secure_params(suite, 2, 1), pass_on);
            assert!(heard.iter().all(|sample| *sample == 0), "{suite:?}");
            let figures = far.figures();
            let nothing = (figures.received, figures.last_arrival, figures.last_report, far.last_sign());
            assert_eq!(nothing, (0, None, None, None), "{suite:?}");
            assert!(figures.forged > 1000, "{suite:?}: packets and reports are counted: {}", figures.forged);
        }
    }
}

#[test]
fn forged_and_repeated_packets_are_counted_and_change_nothing() {
    for suite in Suite::ALL {
        let (plain, ..) = talk(secure_params(suite, 1, 2), secure_params(suite, 2, 1), pass_on);
        let mut before: Vec<Vec<u8>> = Vec::new();
        let attack = |_: u64, packet: &[u8]| {
            let mut tampered = packet.to_vec();
            tampered[14] ^= 0x40;
            // A stranger who gets ahead of the packet, with its number.
            let loud = [&[0x80, 0], &packet[2..12], &[0x80; 160]].concat();
            before.push(packet.to_vec());
            let old = before[before.len().saturating_sub(100)].clone();
            let shortened = packet[..packet.len() - 1].to_vec();
            let endless = [packet, &[0; 3000]].concat();
            vec![tampered, loud, shortened, endless, packet.to_vec(), packet.to_vec(), old]
        };
        let (heard, _, far) = talk(secure_params(suite, 1, 2), secure_params(suite, 2, 1), attack);
        assert!(heard == plain, "{suite:?}: every sample is the same");
        let figures = far.figures();
        assert_eq!((figures.forged, figures.replayed), (4 * 1000, 2 * 1000), "{suite:?}");
        assert_eq!((figures.received, figures.duplicates, figures.foreign), (1000, 0, 0), "{suite:?}");
    }
}

/// Keys that a handshake brings: until then nothing leaves and nothing is heard, and then all of it.
#[test]
fn nothing_leaves_before_the_keys_of_a_handshake() {
    use crate::leg::KeySource;

    let suite = Suite::AeadAes128Gcm;
    let keys = |send, receive| secure_params(suite, send, receive).srtp.expect("it is secure");
    for source in [KeySource::Handshake, KeySource::HandshakeEach] {
        let awaited = MediaParams { key_source: source, ..params(Codec::Pcmu) };
        let origin = Time::from_millis(ORIGIN_MS);
        let (mut near, mut far) = (RtpLeg::new(awaited, Seed(1), origin), RtpLeg::new(awaited, Seed(2), origin));
        let (mut left, mut reports) = ([0, 0], [0, 0]);
        for tick in 0..1000 {
            let now = Time::from_millis(ORIGIN_MS + tick * 20);
            // The far leg's keys are there first: its packets are not played yet.
            match tick {
                100 => far.take_keys(&keys(2, 1)),
                110 => near.take_keys(&keys(1, 2)),
                500 if source == KeySource::HandshakeEach => {
                    near.take_report_keys(&keys(3, 4));
                    far.take_report_keys(&keys(4, 3));
                }
                600 => assert!(near.renegotiate(MediaParams { ptime_ms: 40, ..awaited }), "a description without keys"),
                _ => {}
            }
            near.start_event('7', 100);
            for at in 0..2 {
                let (from, to) = if at == 0 { (&mut near, &mut far) } else { (&mut far, &mut near) };
                from.send(now, &SILENCE);
                while let Some(bytes) = from.packet() {
                    left[at] += 1;
                    let bytes = bytes.to_vec();
                    to.receive(now, &bytes);
                }
                let report = from.report(now, now.0).map(<[u8]>::to_vec);
                report.iter().for_each(|bytes| to.receive_report(now, bytes));
                reports[at] += usize::from(report.is_some());
                to.listen(now, &mut Scratch::default());
            }
            if tick < 100 {
                assert_eq!((left, reports), ([0, 0], [0, 0]), "{source:?}: tick {tick}");
                assert!(near.goodbye(now, now.0).is_none());
            }
            if tick < 500 && source == KeySource::HandshakeEach {
                assert_eq!(reports, [0, 0], "reports have keys of their own: tick {tick}");
                assert!(near.goodbye(now, now.0).is_none());
            }
        }
        assert_eq!(left[1], 900, "{source:?}");
        assert!(reports.iter().all(|count| *count >= 1), "{source:?}: {reports:?}");
        let (near, far) = (near.figures(), far.figures());
        assert_eq!((near.before_keys, near.forged, near.lost), (10, 0, 0), "{source:?}");
        assert_eq!((far.before_keys, far.forged, far.lost), (0, 0, 0), "{source:?}");
        assert!(near.last_report.is_some() && far.last_report.is_some(), "{source:?}: reports are understood");
    }
}
