//! Rows of packets, and the stretches of time that come of them.

use super::*;

fn header(sequence: u16, timestamp: u32) -> Header {
    Header { sequence, timestamp, ssrc: 1, ..Header::default() }
}

/// Checks a row of packets (sequence number, timestamp, content) that all arrive on time. They are taken, when
/// everything is due, until silence or a wait follows.
fn check(packets: &[(u16, u32, Content<'_>)], expect: &[JitterFrame<'_>]) -> JitterBuffer {
    let mut buffer = JitterBuffer::new(Codec::Pcmu);
    let mut last = 0;
    for (sequence, timestamp, content) in packets {
        let arrived = Time(1_000_000_000 + u64::from(*timestamp) * TICK_NS as u64);
        let _ = buffer.insert(arrived, &header(*sequence, *timestamp), *content);
        last = last.max(arrived.0);
    }
    let due = Time(last + 100_000_000);
    for (i, next) in expect.iter().enumerate() {
        assert_eq!(buffer.take(due, 0), *next, "{i} of {packets:?}");
    }
    buffer
}

const A: Content<'_> = Content::Audio(&[1; 160]);
const AUDIO: JitterFrame<'_> = JitterFrame::Audio(&[1; 160]);

#[test]
fn audio_loss_and_silence_are_told_apart() {
    check(&[], &[JitterFrame::Idle]);
    check(&[(0, 0, A), (1, 160, A)], &[AUDIO, AUDIO, JitterFrame::Wait]);
    check(&[(1, 160, A), (0, 0, A), (0, 0, A)], &[AUDIO, AUDIO, JitterFrame::Wait]);
    check(&[(0, 0, A), (2, 320, A)], &[AUDIO, JitterFrame::Lost(160), AUDIO]);
    check(&[(0, 0, A), (3, 480, A)], &[AUDIO, JitterFrame::Lost(160), JitterFrame::Lost(160), AUDIO]);
    // A pause without a gap in numbers, with and without comfort noise.
    check(&[(0, 0, A), (1, 400, A)], &[AUDIO, JitterFrame::Silence(160), JitterFrame::Silence(80), AUDIO]);
    check(&[(0, 0, A), (1, 160, Content::Comfort), (2, 320, A)], &[AUDIO, JitterFrame::Silence(160), AUDIO]);
    check(&[(0, 0, A), (1, 160, Content::Comfort)], &[AUDIO, JitterFrame::Silence(160), JitterFrame::Silence(160)]);
    // A loss within a pause.
    check(
        &[(0, 0, A), (2, 640, A)],
        &[AUDIO, JitterFrame::Lost(160), JitterFrame::Silence(160), JitterFrame::Silence(160), AUDIO],
    );
}

#[test]
fn packets_without_audio_are_not_missed() {
    let buffer = check(
        &[(0, 0, A), (1, 160, Content::Other), (2, 160, Content::Other), (3, 320, A)],
        &[AUDIO, JitterFrame::Silence(160), AUDIO],
    );
    assert_eq!((buffer.source().lost_count(), buffer.concealed_ticks(), buffer.late()), (0, 0, 0));
    check(&[(0, 0, Content::Other), (1, 160, A)], &[AUDIO]);
    let long = [0; MAX_TICKS as usize + 1];
    check(&[(0, 0, A), (1, 160, Content::Audio(&long)), (2, 160, A)], &[AUDIO, AUDIO]);
    check(&[(0, 0, A), (1, 160, Content::Audio(&[])), (2, 160, A)], &[AUDIO, AUDIO]);
}

#[test]
fn a_buffer_that_nobody_empties_keeps_the_newest() {
    let packets: Vec<_> = (0..500u16).map(|i| (i, u32::from(i) * 160, A)).collect();
    let buffer = check(&packets, &[AUDIO; 64]);
    assert_eq!((buffer.late(), buffer.head()), (436, 500 * 160));
    assert_eq!(buffer.concealed_ticks(), 436 * 160);
}

#[test]
fn packets_of_every_length_come_out_as_they_went_in() {
    for codec in [Codec::Pcmu, Codec::Opus, Codec::L16Wide] {
        let per_tick = if codec == Codec::L16Wide { 4 } else { 1 };
        let mut draws = crate::seed::Seed(5).stream("lengths");
        let mut buffer = JitterBuffer::new(codec);
        let (mut packets, mut timestamp) = (Vec::new(), 0u32);
        for n in 0..400u16 {
            let ms = [10, 20, 30, 60][(draws.unit() * 4.0) as usize];
            let len = if codec == Codec::Opus { 1 + (draws.unit() * 1275.0) as usize } else { ms * 8 * per_tick };
            let mut payload: Vec<u8> = (0..len).map(|at| (at as u16 ^ n.wrapping_mul(7)) as u8).collect();
            if codec == Codec::Opus {
                payload[0] = [0, 8, 16, 24][(draws.unit() * 4.0) as usize];
            }
            let ticks = u32::from(span(codec, &payload).expect("a payload that is heard"));
            packets.push((header(n, timestamp), payload));
            timestamp += ticks * codec.rtp_clock_hz() / 8000;
        }
        // Up to four wait at once, in any order.
        for group in packets.chunks(4) {
            let arrived =
                Time(1_000_000_000 + u64::from(group[0].0.timestamp / (codec.rtp_clock_hz() / 1000)) * 1_000_000);
            let mut order = [0, 1, 2, 3];
            order.sort_by_key(|_| (draws.unit() * 1e6) as u32);
            for at in order {
                let (header, payload) = &group[at];
                assert_eq!(buffer.insert(arrived, header, Content::Audio(payload)), Ok(()));
            }
            for (header, payload) in group {
                let due = arrived + std::time::Duration::from_secs(1);
                assert_eq!(buffer.take(due, 0), JitterFrame::Audio(payload), "{codec:?} {}", header.sequence);
            }
        }
        assert_eq!((buffer.late(), buffer.source().lost_count()), (0, 0));
    }
}

#[test]
fn of_long_packets_that_nobody_takes_the_newest_are_kept() {
    // 80 ms have four blocks each, and 16 of them all there are.
    const LONG: Content<'_> = Content::Audio(&[1; 640]);
    let packets: Vec<_> = (0..40u16).map(|i| (i, u32::from(i) * 640, LONG)).collect();
    let mut buffer = check(&packets, &[JitterFrame::Audio(&[1; 640]); 16]);
    assert_eq!((buffer.late(), buffer.head()), (24, 40 * 640));
    // A packet that came late, and has no space among newer ones, is late.
    let arrived = Time(1_000_000_000 + 40 * 80_000_000);
    for n in (41..57).chain([40]) {
        let _ = buffer.insert(arrived, &header(n, u32::from(n) * 640), LONG);
    }
    assert_eq!(buffer.late(), 25);
    for _ in 41..57 {
        assert!(!matches!(buffer.take(Time(arrived.0 + 10_000_000_000), 0), JitterFrame::Idle));
    }
}

#[test]
fn late_packets_are_counted_and_not_heard() {
    let mut buffer = check(&[(0, 0, A), (2, 320, A)], &[AUDIO, JitterFrame::Lost(160), AUDIO]);
    assert_eq!((buffer.source().lost_count(), buffer.late()), (1, 0));
    assert_eq!(buffer.insert(Time(1_200_000_000), &header(1, 160), A), Err(Refused::Late));
    assert_eq!((buffer.source().lost_count(), buffer.late(), buffer.concealed_ticks()), (0, 1, 160));
}

#[test]
fn it_waits_for_a_while_and_then_goes_on() {
    let mut buffer = check(&[(0, 0, A)], &[AUDIO]);
    let mut waited = 0;
    for tick in 1..30u64 {
        match buffer.take(Time(1_100_000_000 + tick * 20_000_000), 0) {
            JitterFrame::Wait => waited += 1,
            JitterFrame::Silence(160) => break,
            other => panic!("{other:?}"),
        }
    }
    // From 100 ms deep to 200.
    assert!((4..=6).contains(&waited), "{waited}");
    let arrived = Time(1_000_000_000 + 2 * 20_000_000);
    buffer.insert(arrived, &header(1, 160), A).unwrap();
    assert_ne!(buffer.take(Time(1_300_000_000), 0), AUDIO);
    assert_eq!((buffer.late(), buffer.concealed_ticks()), (1, 160));
}
