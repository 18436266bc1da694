//! Depth of the buffer, and packets too late for it. `-- --nocapture depth` prints the figures.

use super::*;

/// Ticks of 20 ms.
const CALM: usize = 1000;
const ROUGH: usize = 1500;

/// Result of a stretch of ticks: 5th percentile, median and 95th of the depth in its last 10 s, the time to get there,
/// and the late packets.
#[derive(Debug)]
struct Stretch {
    depth_ms: [f64; 3],
    settled_after_ms: usize,
    late: u64,
    packets: u64,
}

/// Runs 20 s without jitter, 30 s with it, 20 s without.
fn three_stretches(jitter_ms: f64, seed: u64) -> [Stretch; 3] {
    let mut peer = Peer::new(Codec::Pcmu);
    peer.talk(0, (2 * CALM + ROUGH) * 20, 20, false);
    let mut stream = Seed(seed).stream("delays");
    let mut arrivals: Vec<(Time, Vec<u8>)> = peer
        .sent
        .into_iter()
        .enumerate()
        .map(|(n, (at, bytes))| {
            let jitter = if (CALM..CALM + ROUGH).contains(&n) { stream.unit() * jitter_ms } else { 0.0 };
            (Time(((ORIGIN_MS + at) as f64 * 1e6 + (30.0 + jitter) * 1e6) as u64), bytes)
        })
        .collect();
    arrivals.sort_by_key(|packet| packet.0);
    let mut leg = RtpLeg::new(params(Codec::Pcmu), Seed(3), Time::from_millis(ORIGIN_MS));
    let (mut next, mut depths, mut late) = (0, Vec::new(), vec![0]);
    for tick in 0..2 * CALM + ROUGH {
        let now = Time::from_millis(ORIGIN_MS + tick as u64 * 20 + 37);
        while let Some((arrived, bytes)) = arrivals.get(next).filter(|packet| packet.0 <= now) {
            leg.receive(*arrived, bytes);
            next += 1;
        }
        leg.listen(now, &mut Scratch::default());
        depths.push(leg.figures().depth_ms);
        if [CALM, CALM + ROUGH, 2 * CALM + ROUGH].contains(&(tick + 1)) {
            late.push(leg.figures().late);
        }
    }
    let mut from = 0;
    [(CALM, 0), (ROUGH, 1), (CALM, 2)].map(|(ticks, n)| {
        let all = &depths[from..from + ticks];
        from += ticks;
        let mut last = all[ticks - 500..].to_vec();
        last.sort_by(f64::total_cmp);
        let (low, median, high) = (last[25], last[250], last[475]);
        let outside = all.iter().rposition(|depth| *depth < low - 1.0 || *depth > high + 1.0);
        Stretch {
            depth_ms: [low, median, high],
            settled_after_ms: outside.map_or(0, |at| (at + 1) * 20),
            late: late[n + 1] - late[n],
            packets: ticks as u64,
        }
    })
}

#[test]
fn depth_follows_the_jitter_and_comes_back() {
    for (jitter_ms, least_ms, most_ms, most_late) in
        [(0.0, 15.0, 45.0, 0.0), (20.0, 15.0, 60.0, 0.01), (60.0, 55.0, 90.0, 0.01), (120.0, 110.0, 150.0, 0.02)]
    {
        let (mut late, mut packets) = (0, 0);
        for seed in 0..5 {
            let [before, rough, after] = three_stretches(jitter_ms, seed);
            println!("jitter {jitter_ms} ms: {before:?}, {rough:?}, {after:?}");
            for calm in [&before, &after] {
                assert!(calm.depth_ms[2] <= 45.0, "{calm:?}");
                assert_eq!((calm.late, calm.packets), (0, CALM as u64), "{calm:?}");
            }
            assert!(rough.depth_ms[0] >= least_ms && rough.depth_ms[2] <= most_ms, "{rough:?}");
            assert!(after.settled_after_ms <= 6000, "{after:?}");
            (late, packets) = (late + rough.late, packets + rough.packets);
        }
        let share = late as f64 / packets as f64;
        println!("jitter {jitter_ms} ms: {:.2} % late", share * 100.0);
        assert!(share <= most_late, "{jitter_ms}: {share}");
    }
}
