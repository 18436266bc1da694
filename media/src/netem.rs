//! A network as a seeded value: delays, drops, reorders and repeats datagrams in the caller's time. For simulation and tests;
//! it carries bytes and knows nothing of what they mean.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::seed::Stream;
use crate::time::Time;

/// How datagrams are lost.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub enum Loss {
    /// Never.
    #[default]
    None,
    /// Each on its own, with this probability.
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

/// The losses of one direction, drawn one datagram after the other. Begins in the good state.
#[derive(Copy, Clone, Debug)]
pub struct Losses {
    loss: Loss,
    bad: bool,
}

impl Losses {
    /// No datagram yet.
    pub fn new(loss: Loss) -> Losses {
        Losses { loss, bad: false }
    }

    /// Whether the next datagram is lost; draws from `stream`.
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

/// What a network does.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct NetemSpec {
    /// Delay of every datagram, in milliseconds.
    pub delay_ms: f64,
    /// Further delay, uniform in 0 to this, in milliseconds.
    pub jitter_ms: f64,
    /// Jitter may change the order (`false`: a datagram never overtakes one sent before it).
    pub overtake: bool,
    /// Losses.
    pub loss: Loss,
    /// Probability that a datagram is held back so that the next ones overtake it.
    pub reorder: f64,
    /// How long a reordered datagram is held back, in milliseconds.
    pub reorder_ms: f64,
    /// Probability that a datagram arrives twice.
    pub duplicate: f64,
}

/// One direction of a network. Datagrams of equal arrival time keep their order; the same stream gives the same network.
#[derive(Clone, Debug)]
pub struct Netem {
    spec: NetemSpec,
    stream: Stream,
    /// (arrival, number, datagram), the earliest on top.
    on_the_way: BinaryHeap<Reverse<(Time, u64, Vec<u8>)>>,
    number: u64,
    latest: Time,
    losses: Losses,
    dropped: u64,
}

impl Netem {
    /// An idle network.
    pub fn new(spec: NetemSpec, stream: Stream) -> Netem {
        let on_the_way = BinaryHeap::new();
        let losses = Losses::new(spec.loss);
        Netem { spec, stream, on_the_way, number: 0, latest: Time::default(), losses, dropped: 0 }
    }

    /// Becomes another network. What is on the way stays on its way.
    pub fn change(&mut self, spec: NetemSpec) {
        self.spec = spec;
    }

    /// Hands a datagram in at `now`.
    pub fn send(&mut self, now: Time, bytes: &[u8]) {
        if self.losses.next(&mut self.stream) {
            self.dropped += 1;
            return;
        }
        let mut arrival = now + millis(self.spec.delay_ms + self.stream.unit() * self.spec.jitter_ms);
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

    /// The next datagram that has arrived by `now`, with its arrival time.
    pub fn receive(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        if self.next()? > now {
            return None;
        }
        self.on_the_way.pop().map(|Reverse((arrival, _, bytes))| (arrival, bytes))
    }

    /// When the next datagram arrives.
    pub fn next(&self) -> Option<Time> {
        self.on_the_way.peek().map(|Reverse(head)| head.0)
    }

    /// Datagrams lost so far.
    pub fn dropped(&self) -> u64 {
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
