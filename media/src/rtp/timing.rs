//! Times of a stream's samples: RTP timestamps mapped onto the driver's clock, and the lateness of packets.
//!
//! The least delayed packets give the mapping: the audio of a packet begins at the moment at which it would have
//! arrived with their delay. So neither the network's jitter nor a jitter buffer counts. A packet that comes earlier
//! than predicted moves the mapping to itself. The lateness of the least delayed packet of two seconds moves it back,
//! slowly for the drift of two crystals and at once for a path that has become longer.
//!
//! Ticks are those of 8000 Hz, whatever the codec's own RTP clock: it runs at a multiple (1, 2 or 6) of it, and so do
//! packet lengths. Timestamps are extended to 64 bits; a jump of the sender's timestamps that no network explains is
//! taken out, so that extended ticks always follow the driver's clock.

use crate::time::Time;

/// Nanoseconds in one tick of 8000 Hz.
pub const TICK_NS: i64 = 125_000;

/// Number of ticks in a second.
pub const TICKS_HZ: u32 = 8000;

/// Largest earliness against the prediction; beyond it the sender's timestamps jumped.
const EARLIEST_NS: i64 = 1_000_000_000;

/// Largest lateness against the prediction; beyond it the sender's timestamps jumped. No network holds a packet for so
/// long, and timestamps that run backwards for good would never be corrected.
const LATEST_EVER_NS: i64 = 10_000_000_000;

/// Earliness above which timestamps jumped, when they are further on than the packets since the last one can last.
const SUDDEN_NS: i64 = 60_000_000;

/// Longest missing packet between two others, in ticks: 60 ms, or as long as the longest that came.
const MISSING_TICKS: i64 = 480;

/// Lateness above which, in every packet of `STEADY_NS`, the sender's timestamps stood still.
const LATEST_NS: i64 = 250_000_000;
const STEADY_NS: u64 = 300_000_000;

/// Time after which its least delayed packet may move the mapping to a later time.
const WINDOW_NS: u64 = 2_000_000_000;

/// Lateness up to which a later mapping is drift or chance and moves by at most `DRIFT_NS` a window; beyond, the path
/// has changed.
const PATH_NS: i64 = 20_000_000;
const DRIFT_NS: i64 = 2_000_000;

/// Number of packets whose lateness is remembered, in steps of 2 ms up to 254 ms.
const REMEMBERED: usize = 160;
const STEP_NS: i64 = 2_000_000;
const STEPS: usize = 128;

/// Smallest depth of a buffer, in nanoseconds.
pub const SHALLOWEST_NS: i64 = 20_000_000;
/// Depth until 16 packets have come, with twice the lateness seen so far, in nanoseconds. Where packets come unevenly,
/// more of them place the first words.
pub const INITIAL_NS: i64 = 60_000_000;
/// Largest depth of a buffer, in nanoseconds.
pub const DEEPEST_NS: i64 = 200_000_000;

/// Data of a packet by which its place in time is found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Sequence number, extended to 64 bits.
    pub sequence: i64,
    /// Timestamp as it was received.
    pub timestamp: u32,
    /// Length in ticks; 0 for comfort noise.
    pub span: u16,
    /// True when the sender says that it begins anew (RFC 3551 4.1).
    pub marker: bool,
    /// True when no packet with a higher number came before.
    pub newest: bool,
}

/// The packet from which the next ones are counted.
#[derive(Copy, Clone, Debug)]
struct Last {
    sequence: i64,
    /// Timestamp as it was received.
    wire: u32,
    /// Extended timestamp, in units of the RTP clock.
    units: i64,
    /// Length of the packet in ticks.
    span: i64,
}

impl Last {
    fn extend(&self, timestamp: u32) -> i64 {
        self.units + i64::from(timestamp.wrapping_sub(self.wire) as i32)
    }
}

/// Mapping and lateness of one received stream. Allocates nothing.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Number of units of the RTP clock in a tick.
    units: i64,
    /// Newest packet; `None` before the first.
    last: Option<Last>,
    /// Newest packet before the last jump: packets that it overtook are counted from it.
    before: Option<Last>,
    /// Ticks of the last packet of audio, and of the longest.
    span: i64,
    longest: i64,
    /// True when the next packet's timestamp is independent of the last one's.
    jumped: bool,
    /// Offset of arrival times: a least delayed packet arrives at its ticks * TICK_NS plus this.
    offset_ns: i64,
    /// Start of the window, and the smallest lateness in it.
    window: (Time, i64),
    /// Time since which every packet was over `LATEST_NS` late, and the smallest lateness since.
    overdue: Option<(Time, i64)>,
    steps: [u8; REMEMBERED],
    seen: usize,
    counts: [u16; STEPS],
    /// Highest step that is counted.
    latest: usize,
    target_ns: i64,
    transit_ns: Option<i64>,
    jitter_ns: f64,
}

impl Timing {
    /// Returns the timing of a stream whose RTP clock is a multiple of 8000 Hz.
    pub fn new(clock_hz: u32) -> Timing {
        Timing {
            units: i64::from(clock_hz / TICKS_HZ),
            last: None,
            before: None,
            span: 0,
            longest: 0,
            jumped: false,
            offset_ns: 0,
            window: (Time(0), i64::MAX),
            overdue: None,
            steps: [0; REMEMBERED],
            seen: 0,
            counts: [0; STEPS],
            latest: 0,
            target_ns: INITIAL_NS,
            transit_ns: None,
            jitter_ns: 0.0,
        }
    }

    /// Prepares for a packet of another source, whose timestamp is placed by its arrival.
    pub fn expect_jump(&mut self) {
        self.jumped = true;
    }

    /// Takes a packet that arrived, and returns its extended ticks; `None` for an overtaken packet whose timestamp
    /// cannot be placed.
    pub fn arrive(&mut self, arrived: Time, stamp: Stamp) -> Option<i64> {
        let Stamp { sequence, timestamp, newest, .. } = stamp;
        let Some(last) = self.last else {
            self.last = Some(Last { sequence, wire: timestamp, units: 0, span: stamp.span.into() });
            self.count_span(stamp);
            self.offset_ns = arrived.0 as i64;
            self.window = (arrived, 0);
            self.remember(0);
            return Some(0);
        };
        let base = self.before.filter(|before| !newest && sequence < before.sequence).unwrap_or(last);
        let mut units = base.extend(timestamp);
        let mut lateness = self.lateness(arrived, units);
        if newest {
            let jumped = std::mem::take(&mut self.jumped);
            let broke = jumped || self.breaks(&last, units, lateness, stamp) || self.impossible(arrived, lateness);
            if broke {
                let follows = last.units + (sequence - last.sequence) * self.span * self.units;
                units = self.placed_anew(arrived, units, (!jumped).then_some(follows));
                lateness = self.lateness(arrived, units);
                self.before = Some(last);
                self.transit_ns = None;
                self.overdue = None;
            }
            self.count_span(stamp);
        }
        let ticks = units.div_euclid(self.units);
        if newest {
            self.last = Some(Last { sequence, wire: timestamp, units, span: stamp.span.into() });
        } else if lateness < -EARLIEST_NS || units > base.units {
            return None;
        }
        self.measure_jitter(arrived, ticks);
        if lateness < 0 {
            self.shift(lateness);
            lateness = 0;
        }
        self.window.1 = self.window.1.min(lateness);
        self.remember(lateness);
        if arrived.since(self.window.0).as_nanos() as u64 >= WINDOW_NS {
            let later = self.window.1;
            self.window = (arrived, i64::MAX);
            self.shift(if later > PATH_NS { later } else { later.min(DRIFT_NS) });
        }
        Some(ticks)
    }

    /// Returns the arrival of a least delayed packet with these extended ticks, in nanoseconds of the driver's clock.
    pub fn at(&self, ticks: i64) -> i64 {
        ticks * TICK_NS + self.offset_ns
    }

    /// Returns the extended ticks of a timestamp without counting it as an arrival; `None` before the first packet.
    pub fn ticks(&self, timestamp: u32) -> Option<i64> {
        Some(self.last?.extend(timestamp).div_euclid(self.units))
    }

    /// Returns the depth that a buffer needs, within [`SHALLOWEST_NS`] and [`DEEPEST_NS`]. It covers 95 % of the last
    /// packets. It adds a quarter of the distance from there to the median, up to the latest packet. Evenly spread
    /// lateness so loses nothing, and a few stragglers are not waited for.
    pub fn target_ns(&self) -> i64 {
        self.target_ns
    }

    /// Returns the interarrival jitter (RFC 3550 6.4.1) in nanoseconds.
    pub fn jitter_ns(&self) -> f64 {
        self.jitter_ns
    }

    fn lateness(&self, arrived: Time, units: i64) -> i64 {
        arrived.0 as i64 - self.at(units.div_euclid(self.units))
    }

    fn count_span(&mut self, stamp: Stamp) {
        if stamp.span > 0 {
            self.span = stamp.span.into();
            self.longest = self.longest.max(self.span);
        }
    }

    /// True when the sender's timestamps began anew with this newest packet: they went back, or are further on than
    /// packets and time. They may also have stood still while the sender paused, as the marker says.
    fn breaks(&self, last: &Last, units: i64, lateness: i64, stamp: Stamp) -> bool {
        let step = units - last.units;
        let missing = (stamp.sequence - last.sequence - 1) * self.longest.max(MISSING_TICKS);
        let most = (missing + self.longest) * self.units;
        let stood_still = stamp.marker && lateness > LATEST_NS;
        // A little less than the packet before lasts is a matter of rounding.
        let went_back = step < 0 || 2 * step < last.span * self.units;
        went_back || step > most && lateness < -SUDDEN_NS || stood_still
    }

    /// Returns the place of a packet whose timestamp does not tell it. It is right behind the packets before it
    /// (`follows`) when it arrived as such a packet may, else its arrival gives it.
    fn placed_anew(&self, arrived: Time, units: i64, follows: Option<i64>) -> i64 {
        let on_time = |follows: &i64| (-PATH_NS..=self.target_ns).contains(&self.lateness(arrived, *follows));
        follows
            .filter(on_time)
            .unwrap_or_else(|| units + self.lateness(arrived, units).div_euclid(TICK_NS) * self.units)
    }

    fn impossible(&mut self, arrived: Time, lateness: i64) -> bool {
        if lateness <= LATEST_NS {
            self.overdue = None;
            return lateness < -EARLIEST_NS;
        }
        if lateness > LATEST_EVER_NS {
            return true;
        }
        let (since, best) = self.overdue.unwrap_or((arrived, lateness));
        self.overdue = Some((since, best.min(lateness)));
        // A queue that drains after a stall catches up within the time; a clock that stood still does not.
        arrived.since(since).as_nanos() as u64 >= STEADY_NS && lateness <= best + PATH_NS
    }

    fn measure_jitter(&mut self, arrived: Time, ticks: i64) {
        let transit = arrived.0 as i64 - ticks * TICK_NS;
        if let Some(before) = self.transit_ns.replace(transit) {
            self.jitter_ns += ((transit - before).abs() as f64 - self.jitter_ns) / 16.0;
        }
    }

    fn remember(&mut self, lateness: i64) {
        let slot = &mut self.steps[self.seen % REMEMBERED];
        if self.seen >= REMEMBERED {
            self.counts[usize::from(*slot)] -= 1;
        }
        *slot = (lateness / STEP_NS).clamp(0, STEPS as i64 - 1) as u8;
        self.counts[usize::from(*slot)] += 1;
        self.latest = self.latest.max(usize::from(*slot));
        self.seen += 1;
        self.find_target();
    }

    /// Updates `latest` and the target depth.
    fn find_target(&mut self) {
        while self.latest > 0 && self.counts[self.latest] == 0 {
            self.latest -= 1;
        }
        self.target_ns = self.needed_ns();
    }

    fn needed_ns(&self) -> i64 {
        let held = self.seen.min(REMEMBERED);
        if held < 16 {
            return (INITIAL_NS + 2 * self.latest as i64 * STEP_NS).min(DEEPEST_NS);
        }
        let (high, median) = (self.exceeded_by(held / 20), self.exceeded_by(held / 2));
        let step = self.latest.min(high + (high - median).div_ceil(4));
        ((step as i64 + 1) * STEP_NS).clamp(SHALLOWEST_NS, DEEPEST_NS)
    }

    /// Returns the highest step of lateness that more than `packets` of those remembered reach.
    fn exceeded_by(&self, packets: usize) -> usize {
        let mut over = 0;
        let step = self.counts[..=self.latest].iter().rposition(|&count| {
            over += usize::from(count);
            over > packets
        });
        step.unwrap_or(0)
    }

    /// Moves the mapping and the remembered lateness by this time.
    fn shift(&mut self, by_ns: i64) {
        self.offset_ns += by_ns;
        let steps = by_ns / STEP_NS;
        if steps == 0 {
            return;
        }
        self.counts = [0; STEPS];
        for step in &mut self.steps[..self.seen.min(REMEMBERED)] {
            *step = (i64::from(*step) - steps).clamp(0, STEPS as i64 - 1) as u8;
            self.counts[usize::from(*step)] += 1;
        }
        self.latest = STEPS - 1;
        self.find_target();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    const START_NS: u64 = 10_000_000_000;

    /// Returns a packet of 20 ms that no other overtook.
    fn newest(sequence: i64, timestamp: u32) -> Stamp {
        Stamp { sequence, timestamp, span: 160, marker: false, newest: true }
    }

    /// Feeds 20 ms packets sent at `i * 20 * (1 + drift)` ms, each delayed by `delay_ms(i)`.
    fn run(count: u32, drift: f64, mut delay_ms: impl FnMut(u32) -> f64) -> Timing {
        let mut timing = Timing::new(8000);
        for i in 0..count {
            let sent_ms = f64::from(i) * 20.0 * (1.0 + drift);
            let arrived = Time(START_NS + ((sent_ms + delay_ms(i)) * 1e6) as u64);
            timing.arrive(arrived, newest(i.into(), 0xffff_f000u32.wrapping_add(i * 160)));
        }
        timing
    }

    /// Returns the error of the mapping in ms for packet `i`, against a true path delay.
    fn error_ms(timing: &Timing, i: u32, drift: f64, path_ms: f64) -> f64 {
        let truth = f64::from(i) * 20.0 * (1.0 + drift) + path_ms;
        (timing.at(i64::from(i) * 160) - START_NS as i64) as f64 / 1e6 - truth
    }

    #[test]
    fn positions_follow_the_least_delayed_packets() {
        for jitter_ms in [0.0, 5.0, 60.0] {
            for drift in [0.0, 2e-4, -2e-4] {
                let mut stream = Seed(1).stream("jitter");
                let timing = run(3000, drift, |_| 30.0 + stream.unit() * jitter_ms);
                let base = error_ms(&timing, 2999, drift, 30.0);
                assert!(base.abs() < 3.0, "jitter {jitter_ms} drift {drift}: {base}");
            }
        }
    }

    #[test]
    fn a_longer_path_moves_the_mapping_and_a_spike_does_not() {
        let timing = run(400, 0.0, |i| if i < 200 { 10.0 } else { 110.0 });
        assert!(error_ms(&timing, 399, 0.0, 110.0).abs() < 2.0);
        let timing = run(200, 0.0, |i| if (100..110).contains(&i) { 150.0 } else { 10.0 });
        assert!(error_ms(&timing, 199, 0.0, 10.0).abs() < 2.0);
    }

    #[test]
    fn depth_covers_the_jitter() {
        let check = |jitter_ms: f64, least: f64, most: f64| {
            let mut stream = Seed(2).stream("jitter");
            let target = run(300, 0.0, |_| stream.unit() * jitter_ms).target_ns() as f64 / 1e6;
            assert!((least..=most).contains(&target), "{jitter_ms}: {target}");
        };
        check(0.0, 20.0, 20.0);
        check(40.0, 34.0, 40.0);
        check(60.0, 52.0, 60.0);
        check(400.0, 200.0, 200.0);
        assert_eq!(run(3, 0.0, |_| 0.0).target_ns(), INITIAL_NS);
    }

    #[test]
    fn jumps_of_the_timestamp_are_taken_out() {
        let check = |jump: u32, pause_ns: u64| {
            let mut timing = run(100, 0.0, |_| 0.0);
            let mut ticks = 0;
            for i in 0..100u32 {
                let arrived = Time(START_NS + pause_ns + u64::from(100 + i) * 20_000_000);
                let wire = 0xffff_f000u32.wrapping_add((100 + i) * 160).wrapping_add(jump);
                ticks = timing.arrive(arrived, newest(100 + i64::from(i), wire)).unwrap();
            }
            let late = START_NS as i64 + pause_ns as i64 + 199 * 20_000_000 - timing.at(ticks);
            assert!(late.abs() < 2_000_000, "{jump} {pause_ns}: {late}");
        };
        check(0, 0);
        check(8_000_000, 0);
        check(0x9000_0000, 0);
        check(0u32.wrapping_sub(16_000), 0);
        check(0, 400_000_000);
        check(0, 30_000_000_000);
        check(40_000, 5_000_000_000);
    }

    #[test]
    fn ticks_follow_the_clock_whatever_the_timestamps_do() {
        // As far backwards and forwards as there is; a little less than a jump in each packet.
        for step in [0x8000_0001u32, 0x7fff_ffff, 0x8000_0000, 0u32.wrapping_sub(70_000), 7000] {
            for clock_hz in [8000, 16_000, 48_000] {
                let mut timing = Timing::new(clock_hz);
                for i in 0..80_000u32 {
                    let arrived = Time(START_NS + u64::from(i) * 20_000_000);
                    let stamp = newest(i.into(), i.wrapping_mul(step));
                    let ticks = timing.arrive(arrived, stamp).expect("it is the newest");
                    let late = arrived.0 as i64 - timing.at(ticks);
                    assert!(late.abs() <= LATEST_EVER_NS, "{step:x} at {clock_hz} Hz, packet {i}: {late}");
                }
            }
        }
    }

    #[test]
    fn a_jump_is_taken_out_with_its_first_packet() {
        // 100 packets late by 7 ms each but the first, then a jump of the timestamp and of the arrival, in ms; how late
        // the first packet behind it seems, in ms; how far its ticks lie behind those of the packet before.
        let check = |jump_ms: i64, pause_ms: u64, marker: bool, late_ms: f64, step: i64| {
            let mut timing = run(100, 0.0, |i| if i == 0 { 0.0 } else { 7.0 });
            let before = timing.target_ns();
            let arrived = Time(START_NS + (100 * 20 + 7 + pause_ms) * 1_000_000);
            let wire = 0xffff_f000u32.wrapping_add(100 * 160).wrapping_add((jump_ms * 8) as u32);
            let ticks = timing.arrive(arrived, Stamp { marker, ..newest(100, wire) }).unwrap();
            let late = (arrived.0 as i64 - timing.at(ticks)) as f64 / 1e6;
            let case = format!("{jump_ms} {pause_ms} {marker}");
            assert!((late - late_ms).abs() < 0.126, "{case}: {late}");
            assert_eq!(ticks - 99 * 160, step, "{case}");
            assert_eq!(timing.target_ns(), before, "{case}");
            // Packets that it overtook are placed as before the jump.
            let older = Stamp { newest: false, ..newest(98, 0xffff_f000u32.wrapping_add(98 * 160)) };
            let placed = timing.arrive(arrived, older);
            assert_eq!(placed, Some(98 * 160), "{case}");
        };
        // Packets go on arriving evenly: what is heard goes on.
        for jump_ms in [-20, -40, -100, -240, -300, -5000, -200_000, 100, 400, 900, 5000, 200_000] {
            check(jump_ms, 0, false, 7.0, 160);
        }
        // After a pause of another length than the timestamps say the arrival counts.
        check(-300, 500, false, 0.0, 160 + 507 * 8);
        check(5000, 500, false, 0.0, 160 + 507 * 8);
        check(0, 500, true, 0.0, 160 + 507 * 8);
        // A pause of which the timestamps tell is none.
        check(500, 500, false, 7.0, 160 + 500 * 8);
    }

    #[test]
    fn jitter_is_that_of_the_standard() {
        // |D| alternates between 10 ms and 10 ms: J converges to 10 ms.
        let timing = run(300, 0.0, |i| f64::from(i % 2) * 10.0);
        assert!((timing.jitter_ns() / 1e6 - 10.0).abs() < 0.01, "{}", timing.jitter_ns());
    }
}
