//! A simulated network with a seed: delays, drops, reorders and repeats datagrams in the caller's time. For simulation
//! and tests; it carries bytes of any meaning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::seed::Stream;
use crate::time::Time;

/// Model of lost datagrams.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub enum Loss {
    /// No datagram is lost.
    #[default]
    None,
    /// Each datagram is lost on its own, with this probability.
    Independent(f64),
    /// Gilbert-Elliott: a good state that loses nothing and a bad state that loses with `loss`.
    Burst {
        /// Probability of going from good to bad, a datagram.
        enter: f64,
        /// Probability of going from bad to good, a datagram.
        leave: f64,
        /// Probability of a loss in the bad state.
        loss: f64,
    },
}

/// Losses of one direction, drawn one datagram after the other. Begins in the good state.
#[derive(Copy, Clone, Debug)]
pub struct Losses {
    loss: Loss,
    bad: bool,
}

impl Losses {
    /// Returns the losses before the first datagram.
    pub fn new(loss: Loss) -> Losses {
        Losses { loss, bad: false }
    }

    /// True when the next datagram is lost; draws from `stream`.
    pub fn next(&mut self, stream: &mut Stream) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Independent(probability) => stream.unit() < probability,
            Loss::Burst { enter, leave, loss } => {
                let turn = if self.bad { leave } else { enter };
                self.bad ^= stream.unit() < turn;
                self.bad && stream.unit() < loss
            }
        }
    }
}

/// Properties of a network in one direction; the default passes everything on at once.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct NetemSpec {
    /// Delay of every datagram, in milliseconds.
    pub delay_ms: f64,
    /// Further delay, uniform in 0 to this, in milliseconds.
    pub jitter_ms: f64,
    /// True when jitter may change the order. When false, a datagram never overtakes one sent before it.
    pub overtake: bool,
    /// Model of the losses.
    pub loss: Loss,
    /// Probability that a datagram is held back so that the next ones overtake it.
    pub reorder: f64,
    /// Time for which a reordered datagram is held back, in milliseconds.
    pub reorder_ms: f64,
    /// Probability that a datagram arrives twice.
    pub duplicate: f64,
    /// Bit rate of the narrowest link, including 28 bytes of IPv4 and UDP headers a datagram; 0: no limit.
    pub rate_bps: u64,
    /// Longest wait in front of that link, in milliseconds: datagrams that would wait longer are dropped (drop-tail). 0
    /// lets none wait.
    pub queue_ms: f64,
}

/// Bytes of the IPv4 and UDP headers around each datagram.
const HEADERS: u64 = 28;

/// One direction of a network. Datagrams of equal arrival time keep their order; the same stream gives the same
/// network.
#[derive(Clone, Debug)]
pub struct Netem {
    spec: NetemSpec,
    stream: Stream,
    /// Datagrams on their way with arrival and number, the earliest on top.
    on_the_way: BinaryHeap<Reverse<(Time, u64, Vec<u8>)>>,
    number: u64,
    latest: Time,
    losses: Losses,
    /// Time at which the narrowest link has sent all that it took.
    link_free: Time,
    dropped: u64,
}

impl Netem {
    /// Returns an idle network.
    pub fn new(spec: NetemSpec, stream: Stream) -> Netem {
        let on_the_way = BinaryHeap::new();
        let losses = Losses::new(spec.loss);
        Netem {
            spec,
            stream,
            on_the_way,
            number: 0,
            latest: Time::default(),
            losses,
            link_free: Time::default(),
            dropped: 0,
        }
    }

    /// Takes other properties. Datagrams on their way stay so; bursts of loss begin in the good state.
    pub fn change(&mut self, spec: NetemSpec) {
        if spec.loss != self.spec.loss {
            self.losses = Losses::new(spec.loss);
        }
        self.spec = spec;
    }

    /// Hands a datagram in at `now`.
    pub fn send(&mut self, now: Time, bytes: &[u8]) {
        let Some(carried) = self.carry(now, bytes.len()).filter(|_| !self.losses.next(&mut self.stream)) else {
            self.dropped += 1;
            return;
        };
        let mut arrival = carried + millis(self.spec.delay_ms + self.stream.unit() * self.spec.jitter_ms);
        if !self.spec.overtake {
            arrival = arrival.max(self.latest);
            self.latest = arrival;
        }
        if self.stream.unit() < self.spec.reorder {
            arrival = arrival + millis(self.spec.reorder_ms);
        }
        let copies = 1 + usize::from(self.stream.unit() < self.spec.duplicate);
        for _ in 0..copies {
            self.number += 1;
            self.on_the_way.push(Reverse((arrival, self.number, bytes.to_vec())));
        }
    }

    /// Returns the time at which the narrowest link has sent `len` bytes that came at `now`; `None` when they found its
    /// queue full.
    fn carry(&mut self, now: Time, len: usize) -> Option<Time> {
        if self.spec.rate_bps == 0 {
            return Some(now);
        }
        let begins = now.max(self.link_free);
        if begins.since(now) > millis(self.spec.queue_ms) {
            return None;
        }
        let bits = 8 * (len as u64 + HEADERS);
        self.link_free = begins + Duration::from_nanos(bits * 1_000_000_000 / self.spec.rate_bps);
        Some(self.link_free)
    }

    /// Returns the next datagram that has arrived by `now`, with its arrival time.
    pub fn receive(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        if self.next()? > now {
            return None;
        }
        self.on_the_way.pop().map(|Reverse((arrival, _, bytes))| (arrival, bytes))
    }

    /// Returns the arrival time of the next datagram.
    pub fn next(&self) -> Option<Time> {
        self.on_the_way.peek().map(|Reverse(head)| head.0)
    }

    /// Number of datagrams lost so far.
    #[cfg(test)]
    pub(crate) fn drop_count(&self) -> u64 {
        self.dropped
    }
}

fn millis(ms: f64) -> Duration {
    Duration::from_nanos((ms.max(0.0) * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    /// Sends `count` numbered datagrams 20 ms apart; returns (number, transit in ms) in order of arrival.
    fn through(spec: NetemSpec, seed: u64, count: u32) -> Vec<(u32, f64)> {
        let mut netem = Netem::new(spec, Seed(seed).stream("netem"));
        (0..count).for_each(|i| netem.send(Time::from_millis(1000 + u64::from(i) * 20), &i.to_be_bytes()));
        let mut seen = Vec::new();
        while let Some(at) = netem.next() {
            assert!(netem.receive(Time(at.0 - 1)).is_none());
            let (arrived, bytes) = netem.receive(at).unwrap();
            let number = u32::from_be_bytes(bytes.try_into().unwrap());
            seen.push((number, (arrived.0 as f64 - 1e9 - f64::from(number) * 20e6) / 1e6));
        }
        seen
    }

    #[test]
    fn delay_and_jitter_are_as_asked() {
        let spec = NetemSpec { delay_ms: 30.0, jitter_ms: 15.0, ..NetemSpec::default() };
        let seen = through(spec, 1, 2000);
        assert_eq!(seen.len(), 2000);
        assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(seen.iter().all(|(_, ms)| (30.0..45.0).contains(ms)));
        let mean = seen.iter().map(|(_, ms)| ms).sum::<f64>() / 2000.0;
        assert!((36.5..38.5).contains(&mean), "{mean}");
    }

    #[test]
    fn losses_are_as_many_and_as_bursty_as_asked() {
        let check = |loss: Loss, rate: f64, burst: f64| {
            let seen = through(NetemSpec { loss, ..NetemSpec::default() }, 2, 20_000);
            let lost = 20_000 - seen.len();
            let bursts = seen.windows(2).filter(|pair| pair[1].0 - pair[0].0 > 1).count();
            let measured = (lost as f64 / 20_000.0, lost as f64 / bursts.max(1) as f64);
            assert!((measured.0 - rate).abs() < 0.01 && (measured.1 - burst).abs() < 0.35, "{loss:?} {measured:?}");
        };
        check(Loss::None, 0.0, 0.0);
        check(Loss::Independent(0.05), 0.05, 1.05);
        check(Loss::Burst { enter: 0.02, leave: 0.25, loss: 1.0 }, 0.074, 4.0);
    }

    /// Sends 160 bytes every 20 ms through a link of `rate_bps` and a queue of `queue_ms`, and returns the arrivals.
    fn delays_over_link(rate_bps: u64, queue_ms: f64) -> Vec<(u64, f64)> {
        let spec = NetemSpec { rate_bps, queue_ms, ..NetemSpec::default() };
        let mut netem = Netem::new(spec, Seed(1).stream("netem"));
        (0..1000).for_each(|i| netem.send(Time::from_millis(20 * i), &[[i as u8, (i >> 8) as u8]; 80].concat()));
        let mut seen = Vec::new();
        while let Some((arrived, bytes)) = netem.receive(Time::from_millis(60_000)) {
            let number = u64::from(bytes[0]) | u64::from(bytes[1]) << 8;
            seen.push((number, (arrived.0 as f64 - number as f64 * 20e6) / 1e6));
        }
        assert_eq!(netem.drop_count(), 1000 - seen.len() as u64);
        seen
    }

    #[test]
    fn a_link_carries_its_rate_and_drops_what_would_wait_for_too_long() {
        // 188 bytes with headers every 20 ms are 75.2 kbit/s.
        assert!(delays_over_link(0, 0.0).iter().all(|seen| seen.1 == 0.0));
        let wide = delays_over_link(150_400, 0.0);
        assert_eq!(wide.len(), 1000);
        assert!(wide.iter().all(|seen| seen.1 == 10.0), "each takes 10 ms");
        assert_eq!(delays_over_link(75_200, 0.0).len(), 1000, "just enough");
        for (rate_bps, queue_ms) in [(60_160, 100.0), (37_600, 100.0), (60_160, 0.0), (37_600, 200.0)] {
            let narrow = delays_over_link(rate_bps, queue_ms);
            let each_ms = 188.0 * 8000.0 / rate_bps as f64;
            // The datagrams that the link carries in 20 s, those that wait at their end, and the first one.
            let most = ((20_000.0 + queue_ms) / each_ms).floor() + 1.0;
            let least = if queue_ms == 0.0 { 500.0 } else { (20_000.0 / each_ms).floor() };
            assert!((least..=most).contains(&(narrow.len() as f64)), "{rate_bps} {queue_ms}: {}", narrow.len());
            assert!(
                narrow.iter().all(|seen| seen.1 >= each_ms && seen.1 <= queue_ms + each_ms),
                "{rate_bps} {queue_ms}"
            );
            assert!(narrow.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order");
            assert_eq!(narrow, delays_over_link(rate_bps, queue_ms));
        }
    }

    #[test]
    fn a_network_that_changes_is_another_one_from_then_on() {
        let mut netem = Netem::new(NetemSpec { delay_ms: 50.0, ..NetemSpec::default() }, Seed(1).stream("netem"));
        let at = Time::from_millis;
        netem.send(at(0), b"slow");
        netem.change(NetemSpec { loss: Loss::Independent(1.0), ..NetemSpec::default() });
        netem.send(at(10), b"lost");
        netem.change(NetemSpec { rate_bps: 32_000, queue_ms: 8.0, overtake: true, ..NetemSpec::default() });
        // 32 bytes with headers take 8 ms; the third would wait for 16.
        [b"one.", b"two.", b"many"].iter().for_each(|bytes| netem.send(at(20), *bytes));
        netem.change(NetemSpec::default());
        netem.send(at(100), b"fast");
        let seen: Vec<_> = std::iter::from_fn(|| netem.receive(at(1000))).collect();
        let wanted = [(28, b"one."), (36, b"two."), (50, b"slow"), (100, b"fast")];
        assert_eq!(seen, wanted.map(|(ms, bytes)| (at(ms), bytes.to_vec())));
        assert_eq!(netem.drop_count(), 2);
    }

    #[test]
    fn reorders_and_repeats_by_the_seed_alone() {
        let spec = NetemSpec { reorder: 0.1, reorder_ms: 30.0, duplicate: 0.1, ..NetemSpec::default() };
        let seen = through(spec, 3, 1000);
        assert!((1050..1150).contains(&seen.len()));
        assert!(seen.windows(2).filter(|pair| pair[1].0 < pair[0].0).count() > 50);
        assert_eq!(seen, through(spec, 3, 1000));
        assert_ne!(seen, through(spec, 4, 1000));
    }
}
