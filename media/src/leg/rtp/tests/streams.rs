//! Streams as real endpoints send them: sources that change, timestamps that jump, long packets, digits pressed on the
//! way, packets that nobody asked for.

use super::*;
use crate::rtp::packet::event_of;

/// Hears what was sent through a path of 30 ms, and finds when the tone was first heard in a tick from `from_ms` on.
fn hear_tone(codec: Codec, sent: &[(u64, Vec<u8>)], from_ms: u64, for_ms: u64) -> (Take, u64) {
    let (take, _) = hear(codec, sent, net_with_delay(30.0), for_ms);
    let mut leg = RtpLeg::new(params(codec), Seed(3), Time::from_millis(ORIGIN_MS));
    let (mut next, mut heard_ms) = (0, None);
    for tick in 0..for_ms / 20 {
        let now_ms = tick * 20 + 7;
        while let Some((at, bytes)) = sent.get(next).filter(|(at, _)| at + 30 <= now_ms) {
            leg.receive(Time::from_millis(ORIGIN_MS + at + 30), bytes);
            next += 1;
        }
        let mut scratch = Scratch::default();
        let heard = leg.listen(Time::from_millis(ORIGIN_MS + now_ms), &mut scratch);
        let is_loud = heard.pcm.iter().any(|sample| sample.unsigned_abs() > 2000);
        if heard_ms.is_none() && now_ms >= from_ms && is_loud {
            heard_ms = Some(now_ms);
        }
    }
    (take, heard_ms.expect("the tone is heard"))
}

/// Plays 4.8 s, all silent but for the last 1.2 s from `changes_at` on; `change` happens to the sender there.
fn with_a_change(codec: Codec, ptime_ms: usize, change: impl Fn(&mut Peer)) -> (Take, u64) {
    let mut peer = Peer::new(codec);
    for at in (0..4800).step_by(ptime_ms) {
        if at == 3600 {
            change(&mut peer);
        }
        peer.audio(at as u64, ptime_ms, at >= 3600);
    }
    hear_tone(codec, &peer.sent, 3000, 5200)
}

#[test]
fn another_source_at_the_onset_of_speech_loses_nothing_and_comes_in_time() {
    for codec in [Codec::Pcmu, Codec::G722, Codec::Opus] {
        for ptime_ms in [10, 20, 30, 60] {
            let (same, in_time) = with_a_change(codec, ptime_ms, |_| {});
            let changes: [fn(&mut Peer); 3] = [
                |peer| (peer.ssrc, peer.sequence, peer.timestamp) = (99, 12, 34),
                |peer| (peer.ssrc, peer.sequence) = (99, peer.sequence),
                |peer| peer.sequence = peer.sequence.wrapping_add(30_000),
            ];
            for (n, change) in changes.into_iter().enumerate() {
                let (take, heard_ms) = with_a_change(codec, ptime_ms, change);
                let case = format!("{codec:?} {ptime_ms} ms, change {n}");
                // The second packet makes it believed: until then a longer one than the buffer is deep is waited for.
                assert!(heard_ms <= in_time.max(3630 + ptime_ms as u64 + 20), "{case}: {heard_ms}, else {in_time}");
                let figures = take.figures;
                assert_eq!((figures.received, figures.lost, figures.late), (4800 / ptime_ms as u64, 0, 0), "{case}");
                assert_eq!((figures.foreign, figures.source_changes, figures.concealed_ms), (0, 1, 0), "{case}");
                assert_onsets(&take, &[3630.0], 2.0);
                assert_eq!(take.onsets_ms(), same.onsets_ms(), "{case}");
                let from = (3640 * 16, 4800 * 16);
                assert!(take.written[from.0..from.1].iter().all(|&written| written), "{case}");
            }
        }
    }
}

#[test]
fn a_source_that_overlaps_the_one_before_is_heard_from_its_beginning() {
    // The last packets of the old source come between the first of the new one.
    let mut old = Peer::new(Codec::Pcmu);
    old.talk(0, 2040, 20, true);
    let mut new = Peer::new(Codec::Pcmu);
    (new.ssrc, new.sequence, new.timestamp) = (99, 12, 34);
    new.talk(2005, 2000, 20, true);
    let mut sent = old.sent;
    sent.extend(new.sent);
    sent.sort_by_key(|packet| packet.0);
    let (take, _) = hear(Codec::Pcmu, &sent, net_with_delay(30.0), 4400);
    let figures = take.figures;
    assert_eq!((figures.received, figures.lost, figures.foreign, figures.source_changes), (202, 0, 0, 1));
}

#[test]
fn two_sources_at_once_do_not_take_turns() {
    // Phases 1 ms apart and 8 ms of jitter: pairs of one source are common.
    let (mut one, mut two) = (Peer::new(Codec::Pcmu), Peer::new(Codec::Pcmu));
    two.ssrc = 99;
    one.talk(0, 20_000, 20, false);
    two.talk(1, 20_000, 20, true);
    let mut jitter = Seed(5).stream("jitter");
    let mut sent: Vec<_> = one.sent.into_iter().chain(two.sent).collect();
    sent.iter_mut().for_each(|packet| packet.0 += jitter.index(9) as u64);
    sent.sort_by_key(|packet| packet.0);
    let (take, _) = hear(Codec::Pcmu, &sent, net_with_delay(30.0), 20_400);
    assert_eq!((take.figures.source_changes, take.figures.foreign), (0, 1000));
}

#[test]
fn a_timestamp_that_jumps_is_a_restart_at_once() {
    for codec in [Codec::Pcmu, Codec::Opus] {
        for ptime_ms in [20, 60] {
            let (same, in_time) = with_a_change(codec, ptime_ms, |_| {});
            for jump_ms in [-40i64, -200, -300, -1000, -5000, -9000, -300_000, 200, 500, 900, 5000, 300_000] {
                let jump = (jump_ms * i64::from(codec.rtp_clock_hz()) / 1000) as u32;
                let (take, heard_ms) =
                    with_a_change(codec, ptime_ms, |peer| peer.timestamp = peer.timestamp.wrapping_add(jump));
                let case = format!("{codec:?} {ptime_ms} ms, jump {jump_ms} ms");
                assert_eq!(heard_ms, in_time, "{case}");
                let figures = take.figures;
                assert_eq!((figures.lost, figures.late, figures.concealed_ms), (0, 0, 0), "{case}");
                assert_eq!((figures.foreign, figures.source_changes), (0, 0), "{case}");
                // The audio and its positions are as if the timestamps had gone on.
                assert!(take.record == same.record, "{case}");
                assert_eq!(figures.depth_ms, same.figures.depth_ms, "{case}");
            }
        }
    }
}

#[test]
fn a_sender_that_pauses_and_begins_anew_is_heard_where_it_arrives() {
    for (pause_ms, jump) in
        [(400u64, 0u32.wrapping_sub(8000)), (1000, 0u32.wrapping_sub(80_000)), (700, 16_000), (3000, 1)]
    {
        let mut peer = Peer::new(Codec::Pcmu);
        peer.talk(0, 2000, 20, true);
        peer.timestamp = peer.timestamp.wrapping_add(jump);
        let timestamp = peer.timestamp;
        peer.talk(2000 + pause_ms, 2000, 20, true);
        // A talkspurt begins with a marker.
        peer.sent[100].1[1] |= 0x80;
        let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(30.0), 4400 + pause_ms);
        assert_onsets(&take, &[30.0, 2030.0 + pause_ms as f64], 2.0);
        let figures = take.figures;
        assert_eq!((figures.lost, figures.late, figures.concealed_ms), (0, 0, 0), "{pause_ms} {timestamp}");
    }
}

#[test]
fn packets_of_up_to_200_ms_are_heard() {
    for (codec, lengths) in [
        (Codec::Pcmu, &[80, 100, 120, 150, 200][..]),
        (Codec::Pcma, &[200]),
        (Codec::G722, &[80, 120, 200]),
        (Codec::L16Narrow, &[80, 120]),
        (Codec::L16Wide, &[60]),
        (Codec::Opus, &[80, 120]),
    ] {
        for &ptime_ms in lengths {
            let mut peer = Peer::new(codec);
            for at in (0..12_000).step_by(ptime_ms) {
                peer.audio(at as u64, ptime_ms, (600..1200).contains(&(at % 2400)));
            }
            let (take, _) = hear(codec, &peer.sent, net_with_delay(30.0), 12_800);
            let case = format!("{codec:?} {ptime_ms} ms");
            let first = 600usize.next_multiple_of(ptime_ms) as f64;
            assert!((take.onsets_ms()[0] - first - 30.0).abs() < 2.0, "{case}: {:?}", take.onsets_ms());
            let figures = take.figures;
            assert_eq!(figures.received, peer.sent.len() as u64, "{case}");
            assert_eq!((figures.lost, figures.late, figures.concealed_ms, take.lost), (0, 0, 0, 0), "{case}");
            assert_eq!((figures.wrong_length, figures.unknown_payload_type), (0, 0), "{case}");
            assert!(take.steps.iter().all(|step| step.1.abs() <= 1), "{case} {:?}", take.steps);
            assert!(take.written[1000 * 16..11_900 * 16].iter().all(|&written| written), "{case}");
            assert!(take.deepest_ms < 85.0, "{case}: {}", take.deepest_ms);
            // One of them lost is one of them concealed, and no more.
            peer.sent.remove(20);
            let (torn, _) = hear(codec, &peer.sent, net_with_delay(30.0), 12_800);
            let figures = torn.figures;
            assert_eq!((figures.lost, figures.late, figures.concealed_ms), (1, 0, ptime_ms as u64), "{case}");
        }
    }
}

#[test]
fn what_is_not_heard_is_counted_and_told_once() {
    let origin = Time::from_millis(ORIGIN_MS);
    let mut leg = RtpLeg::new(params(Codec::Pcmu), Seed(3), origin);
    let mut news = Vec::new();
    let mut peer = Peer::new(Codec::Pcmu);
    for n in 0..20u64 {
        peer.audio(n * 100, 20, true);
        peer.push(n * 100 + 20, 96, false, peer.timestamp, &[0; 160]);
        peer.push(n * 100 + 40, 0, false, peer.timestamp, &[0; 1601]);
        peer.push(n * 100 + 40, 101, false, peer.timestamp, &[1, 2]);
        peer.sent.push((n * 100 + 60, vec![7; 40]));
        peer.pause(80);
    }
    let mut stray = Peer::new(Codec::Pcmu);
    stray.ssrc = 5;
    stray.push(1000, 0, false, 1, &[0; 160]);
    peer.sent.extend(stray.sent);
    peer.sent.sort_by_key(|packet| packet.0);
    for (at, bytes) in &peer.sent {
        let now = Time::from_millis(ORIGIN_MS + at);
        leg.receive(now, bytes);
        news.extend(std::iter::from_fn(|| leg.unheard(now)));
    }
    assert_eq!(news, [Unheard::PayloadType(96), Unheard::Length(0, 1601), Unheard::Malformed, Unheard::Source(5)]);
    let figures = leg.figures();
    assert_eq!((figures.unknown_payload_type, figures.wrong_length), (20, 40));
    assert_eq!((figures.foreign, figures.malformed, figures.lost), (1, 20, 0));
}

#[test]
fn a_source_that_is_believed_was_not_foreign() {
    let mut leg = RtpLeg::new(params(Codec::Pcmu), Seed(3), Time::from_millis(ORIGIN_MS));
    let mut peer = Peer::new(Codec::Pcmu);
    peer.talk(0, 1000, 20, true);
    (peer.ssrc, peer.sequence) = (99, 7);
    peer.talk(1000, 2000, 20, true);
    for (at, bytes) in &peer.sent {
        let now = Time::from_millis(ORIGIN_MS + at);
        leg.receive(now, bytes);
        assert_eq!(leg.unheard(now), None, "{at}");
    }
    assert_eq!(leg.figures().foreign, 0);
}

#[test]
fn a_digit_of_another_source_is_heard() {
    // Some gateways send digits as a source of their own, and audio as another one again.
    let mut peer = Peer::new(Codec::Pcmu);
    peer.talk(0, 1000, 20, true);
    (peer.ssrc, peer.sequence, peer.timestamp) = (99, 7, 1234);
    for packet in 1..=7u16 {
        let (duration, end) = (packet.min(5) * 160, packet >= 5);
        let payload = EventPayload { event: event_of('7').unwrap(), end, volume: 10, duration };
        peer.push(1000 + u64::from(packet) * 20, 101, packet == 1, 1234, &payload.bytes());
    }
    let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(30.0), 2000);
    let digits: Vec<_> = take.digits.iter().map(|digit| (digit.digit, digit.duration_ms)).collect();
    assert_eq!(digits, [('7', 100)]);
    assert_eq!((take.figures.foreign, take.figures.lost), (0, 0));
}

#[test]
fn each_direction_has_its_payload_type_of_events_and_its_clock() {
    for event_clock_hz in [48_000, 8000] {
        let near = MediaParams {
            event_payload_type: Some(126),
            receive_event_payload_type: Some(110),
            event_clock_hz,
            ..params(Codec::Opus)
        };
        let far = MediaParams { event_payload_type: Some(110), receive_event_payload_type: Some(126), ..near };
        let mut legs = [RtpLeg::new(near, Seed(1), Time(0)), RtpLeg::new(far, Seed(2), Time(0))];
        for (from, to) in [(0, 1), (1, 0)] {
            let (mut digits, mut timestamps, mut durations) = (Vec::new(), Vec::new(), Vec::new());
            for tick in 0..30 {
                let now = Time::from_millis(tick * 20);
                if tick == 10 {
                    assert!(legs[from].start_event('8', 100));
                }
                legs[from].send(now, &SILENCE);
                while let Some(bytes) = legs[from].packet() {
                    let bytes = bytes.to_vec();
                    let packet = Packet::parse(&bytes).expect("it is RTP");
                    timestamps.push(packet.header.timestamp);
                    let event = (packet.header.payload_type != 111).then(|| EventPayload::parse(packet.payload));
                    durations.extend(event.flatten().map(|event| event.duration));
                    assert!(matches!(legs[to].receive(now, &bytes), Received::Audio | Received::Event));
                }
                legs[to].listen(now, &mut Scratch::default());
                digits.extend(std::iter::from_fn(|| legs[to].digit()));
            }
            let digits: Vec<_> = digits.iter().map(|digit| (digit.digit, digit.from, digit.duration_ms)).collect();
            assert_eq!(digits, [('8', 200 * 16, 100)], "{event_clock_hz}");
            // Timestamps run on the clock of the audio, durations on that of the events.
            assert!(timestamps[..11].windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == 960));
            assert!(timestamps[10..17].iter().all(|timestamp| *timestamp == timestamps[10]));
            let unit = event_clock_hz / 1000;
            assert_eq!(durations, [20, 40, 60, 80, 100, 100, 100].map(|ms| (ms * unit) as u16));
        }
        // A number that nobody announced.
        let mut wrong = RtpLeg::new(MediaParams { event_payload_type: Some(99), ..far }, Seed(3), Time(0));
        assert!(wrong.start_event('8', 100));
        wrong.send(Time(0), &SILENCE);
        let bytes = wrong.packet().expect("one a tick").to_vec();
        let refused = legs[0].receive(Time::from_millis(700), &bytes);
        assert!(matches!(refused, Received::Ignored(_)), "{refused:?}");
    }
}

#[test]
fn nothing_leaves_while_the_other_side_does_not_want_to_hear() {
    let heard = MediaParams { ptime_ms: 60, ..params(Codec::Pcmu) };
    let mut leg = RtpLeg::new(heard, Seed(1), Time::from_millis(ORIGIN_MS));
    let (mut sent, mut reports) = (Vec::new(), 0);
    for tick in 0..1200u64 {
        let now = Time::from_millis(ORIGIN_MS + tick * 20);
        match tick {
            // In the middle of a packet, and of a digit.
            190 => assert!(leg.start_event('5', 2000)),
            200 => {
                assert!(leg.renegotiate(MediaParams { may_send: false, ..heard }));
                assert!(!leg.start_event('6', 100) && !leg.sending_event());
            }
            1000 => assert!(leg.renegotiate(heard)),
            _ => {}
        }
        leg.send(now, &SILENCE);
        while let Some(bytes) = leg.packet() {
            sent.push((tick, Packet::parse(bytes).expect("it is RTP").header));
        }
        reports += usize::from((200..1000).contains(&tick) && leg.report(now, now.0).is_some());
    }
    assert!(sent.iter().all(|(tick, _)| !(200..1000).contains(tick)));
    assert!(reports >= 2, "{reports}");
    let after = sent.iter().position(|(tick, _)| *tick >= 1000).expect("it is heard again");
    let (before, first) = (sent[0], sent[after]);
    assert_eq!(first.1.sequence, sent[after - 1].1.sequence.wrapping_add(1));
    // Its first packet leaves with the third tick.
    assert_eq!((first.0, first.1.marker, first.1.payload_type), (1002, true, 0));
    assert_eq!(first.1.timestamp.wrapping_sub(before.1.timestamp), 1000 * 160);
}

#[test]
fn an_empty_report_is_a_sign_of_life() {
    let mut leg = RtpLeg::new(params(Codec::Pcmu), Seed(1), Time(0));
    let report = [0x80, 201, 0, 1, 0, 0, 0, 9];
    assert_eq!(leg.last_sign(), None);
    leg.receive_report(Time::from_millis(20), &report);
    assert_eq!(leg.last_sign(), Some(Time::from_millis(20)));
    assert_eq!(leg.receive(Time::from_millis(40), &report), Received::Report);
    assert_eq!(leg.last_sign(), Some(Time::from_millis(40)));
}

#[test]
fn keys_are_heard_at_the_offered_and_at_the_answered_payload_type() {
    // This side announced 101 for events, the other side 96; 97 is nobody's.
    for (kind, expect) in [(101, Some('7')), (96, Some('7')), (97, None)] {
        let params = MediaParams {
            event_payload_type: Some(96),
            receive_event_payload_type: Some(101),
            ..MediaParams::new(Codec::Pcmu)
        };
        let mut leg = RtpLeg::new(params, Seed(1), Time(0));
        let mut heard = None;
        for n in 0..60u16 {
            let now = Time::from_millis(u64::from(n) * 20);
            let timestamp = u32::from(n) * 160;
            let is_digit = (20..26).contains(&n);
            let payload = if is_digit {
                let duration = (n - 19) * 160;
                vec![7, if n == 25 { 0x8a } else { 0x0a }, (duration >> 8) as u8, duration as u8]
            } else {
                vec![0xff; 160]
            };
            let (kind, timestamp) = if is_digit { (kind, 20 * 160) } else { (0, timestamp) };
            let mut bytes = vec![0x80, kind, (n >> 8) as u8, n as u8];
            bytes.extend(timestamp.to_be_bytes());
            bytes.extend([0, 0, 0, 9]);
            bytes.extend(payload);
            leg.receive(now, &bytes);
            leg.listen(now, &mut Scratch::default());
            heard = heard.or(leg.digit());
        }
        let expect = expect.map(|digit| (digit, 120));
        assert_eq!(heard.map(|heard| (heard.digit, heard.duration_ms)), expect, "payload type {kind}");
    }
}
