//! Legs that talk to each other: sending, events, reports, and harmless input.

use super::*;

/// Runs two legs over a perfect network for `ticks`; each tick `act` tells whether the near one sends.
fn converse(codec: Codec, ticks: u64, mut act: impl FnMut(u64, &mut RtpLeg) -> bool) -> (Vec<ReceivedDigit>, RtpLeg) {
    let origin = Time::from_millis(ORIGIN_MS);
    let mut near = RtpLeg::new(params(codec), Seed(1), origin);
    let mut far = RtpLeg::new(params(codec), Seed(2), origin);
    let (mut packets, mut digits) = (Vec::new(), Vec::new());
    for tick in 0..ticks {
        let now = Time::from_millis(ORIGIN_MS + tick * 20);
        if act(tick, &mut near) {
            let pcm = std::array::from_fn(|i| tone(tick as usize * FRAME + i, 16_000, true));
            near.send(now, &pcm);
            while let Some(bytes) = near.packet() {
                packets.push(bytes.to_vec());
            }
        } else {
            near.skip();
        }
        for bytes in &packets {
            far.receive(now, bytes);
        }
        packets.clear();
        far.listen(now, &mut Scratch::default());
        digits.extend(std::iter::from_fn(|| far.digit()));
    }
    (digits, far)
}

#[test]
fn what_one_leg_sends_the_other_hears() {
    for codec in Codec::ALL {
        let (digits, far) = converse(codec, 1000, |tick, near| {
            if tick % 100 == 50 {
                assert!(near.start_event('#', 100));
            }
            assert!(tick % 100 != 60 || !near.sending_event());
            tick % 40 != 7
        });
        let figures = far.figures();
        // 25 ticks were skipped.
        assert_eq!((figures.received, figures.lost, figures.malformed), (975, 0, 0), "{codec:?}");
        assert_eq!(figures.concealed_ms, 0);
        assert_eq!(digits.len(), 10);
        for (i, digit) in digits.iter().enumerate() {
            assert_eq!((digit.digit, digit.from, digit.duration_ms), ('#', (i as i64 * 2000 + 1000) * 16, 100));
        }
    }
}

#[test]
fn reports_flow_both_ways_and_say_goodbye() {
    let origin = Time::from_millis(ORIGIN_MS);
    let mut legs =
        [RtpLeg::new(params(Codec::Pcmu), Seed(1), origin), RtpLeg::new(params(Codec::Pcmu), Seed(2), origin)];
    for tick in 0..2000 {
        let now = Time::from_millis(ORIGIN_MS + tick * 20);
        let later = Time(now.0 + 15_000_000);
        for from in 0..2 {
            legs[from].send(now, &SILENCE);
            let packet = legs[from].packet().expect("one a tick").to_vec();
            // Every fourth packet towards leg 1 is lost.
            if from == 1 || tick % 4 != 0 {
                legs[1 - from].receive(later, &packet);
            }
            let report = legs[from].report(now, ((ORIGIN_MS + tick * 20) << 32) / 1000).map(<[u8]>::to_vec);
            report.into_iter().for_each(|bytes| legs[1 - from].receive_report(later, &bytes));
        }
    }
    let lost = legs[0].figures().remote_fraction_lost.unwrap();
    assert!((lost - 0.25).abs() < 0.02, "{lost}");
    assert_eq!(legs[1].figures().remote_fraction_lost, Some(0.0));
    for leg in &legs {
        let trip = leg.figures().round_trip_ms.unwrap();
        assert!((trip - 30.0).abs() < 0.1, "{trip}");
        assert!(leg.figures().last_report.is_some());
    }
    let bye = legs[0].goodbye(origin, 0).expect("it has sent").to_vec();
    assert_eq!(legs[1].receive(origin, &bye), Received::Report);
    assert_eq!(bye[bye.len() - 8..bye.len() - 4], [0x81, 203, 0, 1]);
    assert_eq!(RtpLeg::new(params(Codec::Pcmu), Seed(3), origin).goodbye(origin, 0), None, "it never sent anything");
}

#[test]
fn the_origin_can_be_moved() {
    let mut leg = RtpLeg::new(params(Codec::Pcmu), Seed(1), Time::from_millis(1000));
    let mut peer = Peer::new(Codec::Pcmu);
    peer.talk(0, 2000, 20, true);
    let mut before = 0;
    for (i, (at, bytes)) in peer.sent.iter().enumerate() {
        let now = Time::from_millis(1000 + at);
        leg.receive(now, bytes);
        if i == 50 {
            leg.set_origin(Time::from_millis(1500));
            before -= 500 * 16;
        }
        let mut scratch = Scratch::default();
        let heard = leg.listen(now, &mut scratch);
        if i > 10 && heard.kind == HeardKind::Real {
            assert_eq!(heard.position, before + FRAME as Sample, "{i}");
        }
        before = heard.position;
    }
}

#[test]
fn garbage_is_counted_and_harmless() {
    let mut stream = Seed(9).stream("fuzz");
    let mut leg = RtpLeg::new(params(Codec::G722), Seed(1), Time(0));
    let mut peer = Peer::new(Codec::G722);
    peer.talk(0, 20_000, 20, true);
    for (i, (at, bytes)) in peer.sent.iter().enumerate() {
        let now = Time::from_millis(*at);
        let mut bytes = bytes.clone();
        for _ in 0..stream.index(4) {
            let at = stream.index(16);
            bytes[at] = stream.bits() as u8;
        }
        bytes.truncate(if i % 10 == 0 { stream.index(60) } else { 172 });
        bytes.resize(if i % 17 == 0 { 1500 } else { bytes.len() }, 1);
        leg.receive(now, &bytes);
        leg.receive_report(now, &bytes);
        leg.listen(now, &mut Scratch::default());
        while leg.digit().is_some() {}
    }
    assert!(leg.figures().malformed > 20);
    assert_eq!(leg.receive(Time(0), b"hello"), Received::Ignored(Ignored::Malformed(Malformed::Short)));
}

/// Found by fuzzing: an overtaken packet whose timestamp lies a day behind.
#[test]
fn a_jump_of_the_timestamp_does_not_hold_up_a_tick() {
    let packet = |sequence: u16, timestamp: u32| {
        let mut head = [0; HEADER];
        Header { sequence, timestamp, ..Header::default() }.write(&mut head);
        [&head[..], &[0x2a; 23]].concat()
    };
    let given = [(0, packet(17, 0x2f04_0100)), (1, packet(0, 0)), (13, packet(0, 0))];
    let mut leg = RtpLeg::new(params(Codec::Pcmu), Seed(1), Time::from_millis(1000));
    let mut head = 0;
    for tick in 0..100 {
        let now = Time::from_millis(1000 + tick * 20);
        for (_, bytes) in given.iter().filter(|(at, _)| *at == tick) {
            leg.receive(now, bytes);
        }
        leg.listen(now, &mut Scratch::default());
        let before = std::mem::replace(&mut head, leg.playout.jitter().head());
        assert!(before == 0 || head - before <= (MOST_SILENCE as i64 + 3) * 160, "tick {tick}: {before} to {head}");
    }
}

#[test]
fn legs_go_on_with_what_was_settled_anew() {
    use crate::rtp::srtp::{MasterKey, SrtpParams, Suite};

    let suite = Suite::AesCm128HmacSha1_80;
    let key = |byte: u8| MasterKey::new(suite, &[byte; 30]).expect("16 bytes of key and 14 of salt");
    let keys = |send, receive| SrtpParams { suite, send: key(send), receive: key(receive) };
    let settled = |payload_type, ptime_ms, srtp| MediaParams {
        payload_type,
        receive_payload_type: payload_type,
        event_payload_type: Some(payload_type + 1),
        receive_event_payload_type: Some(payload_type + 1),
        ptime_ms,
        srtp,
        ..params(Codec::Pcmu)
    };
    for secure in [false, true] {
        let srtp = |send, receive| secure.then(|| keys(send, receive));
        let origin = Time::from_millis(ORIGIN_MS);
        let mut near = RtpLeg::new(settled(0, 20, srtp(1, 2)), Seed(1), origin);
        let mut far = RtpLeg::new(settled(0, 20, srtp(2, 1)), Seed(2), origin);
        let mut digits = 0;
        for tick in 0..600 {
            let now = Time::from_millis(ORIGIN_MS + tick * 20);
            if tick == 200 {
                // The near side's key is a new one.
                assert!(near.renegotiate(settled(96, 40, srtp(3, 2))) && far.renegotiate(settled(96, 40, srtp(2, 3))));
                let other = MediaParams { srtp: srtp(3, 2), ..params(Codec::Opus) };
                let flipped = settled(96, 40, (!secure).then(|| keys(3, 2)));
                assert!(!near.renegotiate(other) && !near.renegotiate(flipped));
                assert_eq!(*near.params(), settled(96, 40, srtp(3, 2)), "refused, and all is as it was");
            }
            if tick == 400 {
                assert!(near.start_event('5', 100));
            }
            near.send(now, &std::array::from_fn(|i| tone(tick as usize * FRAME + i, 16_000, true)));
            while let Some(bytes) = near.packet() {
                let bytes = bytes.to_vec();
                far.receive(now, &bytes);
            }
            far.listen(now, &mut Scratch::default());
            digits += std::iter::from_fn(|| far.digit()).count();
        }
        let figures = far.figures();
        assert_eq!((figures.lost, figures.concealed_ms, figures.forged, figures.malformed, digits), (0, 0, 0, 0, 1));
        assert!(figures.received > 380, "{figures:?}");
    }
}
