//! Measured loss, bursts and delays, packet by packet over hours, and at the other side of whole calls.

use std::time::Duration;

use super::*;
use crate::frame::SILENCE;
use crate::leg::HeardKind;

const CLEAR: ConnectionSpec =
    ConnectionSpec { loss: 0.0, mean_burst: 0.0, jitter_ms: 0.0, delay_ms: 0.0, sent_only: false };
const MEDIUM: ConnectionSpec = ConnectionSpec { loss: 0.01, mean_burst: 1.0, jitter_ms: 10.0, ..CLEAR };
const LOW: ConnectionSpec = ConnectionSpec { loss: 0.05, mean_burst: 3.0, jitter_ms: 30.0, ..CLEAR };
const HORRIBLE: ConnectionSpec = ConnectionSpec { loss: 0.15, mean_burst: 6.0, jitter_ms: 80.0, ..CLEAR };

/// The expected mean burst: independent losses make runs, too.
const LEVELS: [(ConnectionSpec, f64); 3] = [(MEDIUM, 1.0 / 0.99), (LOW, 3.0), (HORRIBLE, 6.0)];

fn tick(n: u32) -> Time {
    Time(1_000_000_000 + u64::from(n) * 20_000_000)
}

/// Sends `count` numbered packets, one a tick; gives number and departure of those that left.
fn depart(spec: &ConnectionSpec, seed: u64, count: u32) -> (Vec<(u32, Time)>, Measured) {
    let mut departures = Departures::new(spec, Seed(seed));
    let mut left = Vec::new();
    for n in 0..=count + 100 {
        while let Some(due) = departures.due().filter(|due| *due <= tick(n)) {
            departures.release(due);
            let bytes = departures.pop().expect("it is due");
            left.push((u32::from_be_bytes(bytes.try_into().expect("a number")), due));
        }
        if n < count {
            departures.send(tick(n), &n.to_be_bytes());
        }
    }
    (left, departures.measurement())
}

/// Returns the percentage lost and the mean burst, from the numbers of the packets that came through.
fn losses(left: &[(u32, Time)], count: u32) -> (f64, f64) {
    let steps = left.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1);
    let ends = [left[0].0, count - 1 - left[left.len() - 1].0];
    let gaps: Vec<u32> = steps.chain(ends).filter(|gap| *gap > 0).collect();
    let lost = count - left.len() as u32;
    assert_eq!(gaps.iter().sum::<u32>(), lost);
    (100.0 * f64::from(lost) / f64::from(count), f64::from(lost) / gaps.len().max(1) as f64)
}

#[test]
fn a_delay_holds_every_packet_back_and_is_no_jitter() {
    let (left, measured) = depart(&ConnectionSpec { delay_ms: 400.0, ..ConnectionSpec::default() }, 1, 1000);
    assert_eq!((left.len(), measured), (1000, Measured::default()));
    assert!(left.iter().all(|(n, at)| at.since(tick(*n)) == Duration::from_millis(400)));
    let (left, measured) = depart(&ConnectionSpec { delay_ms: 400.0, ..LOW }, 1, 10_000);
    let (without, alone) = depart(&LOW, 1, 10_000);
    let numbers = |left: &[(u32, Time)]| left.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!((numbers(&left), measured), (numbers(&without), alone), "losses and jitter are drawn as without it");
}

#[test]
fn a_connection_of_sent_packets_alone_lets_the_other_side_through() {
    let spec = ConnectionSpec { loss: 0.5, mean_burst: 1.0, sent_only: true, ..CLEAR };
    let mut connection = Connection::new(&spec, Seed(3)).expect("it is bad");
    for n in 0..500 {
        connection.sent.send(tick(n), &n.to_be_bytes());
        while connection.sent.pop().is_some() {}
        let (pcm, narrow) = ([n as i16; crate::frame::FRAME], [n as i16; NARROW]);
        let position = Sample::from(n) * 320;
        let heard = HeardFrame { position, pcm: &pcm, narrow: &narrow, kind: HeardKind::Real, passed: None, moved: 0 };
        connection.received.hear(tick(n), &heard);
        let arrival = connection.received.pop(tick(n)).expect("it comes at once");
        assert!(arrival.is_real && arrival.position == position && arrival.pcm == pcm);
    }
    let Impairment { sent, received } = connection.measurement();
    assert!((45.0..55.0).contains(&sent.loss_pct), "{sent:?}");
    assert_eq!(received, Measured::default());
}

#[test]
fn eight_hours_of_packets_lose_what_was_asked() {
    const COUNT: u32 = 8 * 3600 * 50;
    for (spec, burst) in LEVELS {
        let (left, measured) = depart(&spec, 1, COUNT);
        let (loss_pct, mean_burst) = losses(&left, COUNT);
        println!("{spec:?}: {loss_pct:.3} % in runs of {mean_burst:.3}, delayed by {:.2} ms", measured.jitter_ms);
        assert!((loss_pct - 100.0 * spec.loss).abs() <= 0.5, "{spec:?}: {loss_pct} %");
        assert!((mean_burst / burst - 1.0).abs() <= 0.05, "{spec:?}: runs of {mean_burst}");
        assert!((measured.loss_pct - loss_pct).abs() < 1e-9 && (measured.mean_burst - mean_burst).abs() < 1e-9);
        // The order is kept, and nobody waits for longer than the longest delay.
        assert!(left.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        let delay_ms = |(n, at): &(u32, Time)| at.since(tick(*n)).as_nanos() as f64 / 1e6;
        assert!(left.iter().all(|packet| delay_ms(packet) <= 2.0 * spec.jitter_ms), "{spec:?}");
        let mean = left.iter().map(delay_ms).sum::<f64>() / left.len() as f64;
        assert!((mean - measured.jitter_ms).abs() < 1e-3, "{mean} {}", measured.jitter_ms);
    }
}

#[test]
fn ten_minutes_are_near_what_was_asked_for_every_seed() {
    for (spec, _) in LEVELS {
        for seed in 0..40 {
            let (left, _) = depart(&spec, seed, 30_000);
            let (loss_pct, _) = losses(&left, 30_000);
            assert!((loss_pct - 100.0 * spec.loss).abs() <= 2.5, "{spec:?}, seed {seed}: {loss_pct} %");
        }
    }
}

#[test]
fn delays_are_uniform_where_order_takes_no_part() {
    // Up to 20 ms no packet meets the next one.
    let (left, measured) = depart(&MEDIUM, 3, 100_000);
    assert!((measured.jitter_ms - 10.0).abs() < 0.1, "{}", measured.jitter_ms);
    let mut tenths = [0u32; 10];
    for (n, at) in &left {
        tenths[((at.since(tick(*n)).as_nanos() / 2_000_000) as usize).min(9)] += 1;
    }
    let even = left.len() as f64 / 10.0;
    assert!(tenths.iter().all(|&count| (f64::from(count) / even - 1.0).abs() < 0.06), "{tenths:?}");
}

#[test]
fn a_packet_leaves_at_its_own_time_and_not_before() {
    let mut departures = Departures::new(&ConnectionSpec { loss: 0.0, ..HORRIBLE }, Seed(5));
    departures.send(tick(0), &[7; MAX_PACKET]);
    let due = departures.due().expect("one waits");
    departures.release(Time(due.0 - 1));
    assert_eq!((departures.is_ready(), departures.pop()), (false, None));
    departures.release(due);
    assert_eq!(departures.pop(), Some(&[7; MAX_PACKET][..]));
    assert_eq!(departures.due(), None);
    departures.send(tick(20), &[1]);
    departures.clear();
    departures.release(tick(100));
    assert_eq!((departures.due(), departures.pop()), (None, None));
    // Nobody releases: what does not fit is dropped, and nothing grows.
    let space = departures.slots.len();
    (0..10 * space as u32).for_each(|_| departures.send(tick(200), &[1]));
    assert_eq!(departures.count, space);
}

#[test]
fn heard_frames_are_lost_concealed_and_late() {
    let pcm: Frame = std::array::from_fn(|n| (8000.0 * (n as f64 * std::f64::consts::TAU / 80.0).sin()) as i16);
    let narrow: [i16; NARROW] = std::array::from_fn(|n| pcm[2 * n]);
    for (spec, burst) in LEVELS {
        let mut arrivals = Arrivals::new(&spec, Seed(2));
        let (mut seen, mut most, mut silent) = (0, 0, 0);
        for n in 0..100_000 {
            let position = 320 * Sample::from(n);
            let heard =
                HeardFrame { position, kind: HeardKind::Real, pcm: &pcm, narrow: &narrow, passed: None, moved: 0 };
            arrivals.hear(tick(n), &heard);
            let mut now = 0;
            while let Some(arrival) = arrivals.pop(tick(n)) {
                assert_eq!(arrival.position, 320 * seen, "in order, each once");
                seen += 1;
                now += 1;
                silent += u32::from(arrival.pcm == SILENCE);
            }
            most = most.max(now);
        }
        let measured = arrivals.measurement();
        println!("{spec:?}: {measured:?}, up to {most} frames at once, {silent} silent");
        assert!((measured.loss_pct - 100.0 * spec.loss).abs() <= 1.0, "{spec:?}: {measured:?}");
        assert!((measured.mean_burst / burst - 1.0).abs() <= 0.1, "{spec:?}: {measured:?}");
        assert!(most <= Arrivals::at_once(&spec) && arrivals.queue.len() <= spec.depth(), "{spec:?}: {most}");
        // A lost frame is a repeated pitch period, and silence only after 70 ms of loss.
        assert_eq!(silent > 0, spec.mean_burst > 1.0, "{spec:?}");
    }
}

#[test]
fn directions_draw_for_themselves() {
    let departures = depart(&HORRIBLE, 9, 2000).0;
    assert_eq!(departures, depart(&HORRIBLE, 9, 2000).0);
    assert_ne!(departures, depart(&HORRIBLE, 10, 2000).0);
    let mut received = LinkModel::new(&HORRIBLE, 0.0, Seed(9).stream("connection.received"));
    let lost: Vec<u32> = (0..2000).filter(|_| received.loses()).collect();
    let sent: Vec<u32> = (0..2000).filter(|n| departures.iter().all(|(left, _)| left != n)).collect();
    assert_ne!(lost, sent);
    assert!(Connection::new(&ConnectionSpec::default(), Seed(1)).is_none());
}
