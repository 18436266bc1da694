//! The connection of a simulated call over a WebSocket: a stream of bytes in each direction. Nothing is lost or
//! overtaken: what the network loses is sent again, and everything behind it waits.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::netem::{Loss, Losses, NetemSpec};
use ringer_media::seed::{Seed, Stream as Draws};
use ringer_media::time::Time;
use ringer_transport::websocket::Message;

/// Most bytes of a segment of TCP.
const SEGMENT: usize = 1400;

/// Bytes of the IPv4 and TCP headers around each segment.
const HEADERS: usize = 40;

/// Time after which a lost segment is sent again the first time; each further time takes twice as long.
const RESEND: Duration = Duration::from_millis(200);

/// Most repetitions of a segment; the last one arrives.
const MOST_RESENDS: u32 = 6;

/// Frame that goes over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The upgrade request of a caller.
    Dial,
    /// The answer 101, which opens the connection.
    Accept,
    /// Another answer, with its status.
    Refuse(u16),
    /// A message of the protocol.
    Message(Message),
    /// A ping without content.
    Ping,
    /// Answer to a ping.
    Pong,
    /// A close frame with code and reason.
    Close(u16, String),
    /// The connection is given up without one.
    Reset,
}

impl Frame {
    fn len(&self) -> usize {
        match self {
            Frame::Message(message) => message.len(),
            Frame::Close(_, reason) => reason.len(),
            _ => 0,
        }
    }
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    /// Number of the connection, from 1.
    pub connection: u32,
    /// Time at which it was sent.
    pub sent: Time,
    pub frame: Frame,
}

/// Both directions of the connections of one call, one connection after the other.
pub(super) struct Streams {
    to_caller: Way,
    to_agent: Way,
}

struct Way {
    spec: NetemSpec,
    draws: Draws,
    losses: Losses,
    /// Time at which the last byte so far arrives.
    latest: Time,
    /// Time at which the narrowest link has sent all that it took.
    link_free: Time,
    on_the_way: VecDeque<(Time, Parcel)>,
}

impl Streams {
    /// Returns idle ways that draw from streams of `seed`.
    pub(crate) fn new(spec: NetemSpec, seed: Seed) -> Streams {
        let way = |name: &str| Way::new(spec, seed.stream(name));
        Streams { to_caller: way("stream to caller"), to_agent: way("stream to agent") }
    }

    /// Becomes another network from now on.
    pub(crate) fn change(&mut self, spec: NetemSpec) {
        self.to_caller.change(spec);
        self.to_agent.change(spec);
    }

    /// Hands a parcel in.
    pub(crate) fn send(&mut self, now: Time, is_to_caller: bool, parcel: Parcel) {
        self.way(is_to_caller).send(now, parcel);
    }

    /// Returns the next parcel that has arrived by `now`, with the time of its arrival.
    pub(crate) fn receive(&mut self, is_to_caller: bool, now: Time) -> Option<(Time, Parcel)> {
        self.way(is_to_caller).on_the_way.pop_front_if(|(arrival, _)| *arrival <= now)
    }

    /// Returns the time at which the next parcel arrives.
    pub(crate) fn next(&self) -> Option<Time> {
        let first = |way: &Way| way.on_the_way.front().map(|(arrival, _)| *arrival);
        first(&self.to_caller).into_iter().chain(first(&self.to_agent)).min()
    }

    fn way(&mut self, is_to_caller: bool) -> &mut Way {
        if is_to_caller { &mut self.to_caller } else { &mut self.to_agent }
    }
}

impl Way {
    fn new(spec: NetemSpec, draws: Draws) -> Way {
        let (latest, link_free) = (Time::default(), Time::default());
        Way { losses: Losses::new(spec.loss), spec, draws, latest, link_free, on_the_way: VecDeque::new() }
    }

    fn change(&mut self, spec: NetemSpec) {
        if spec.loss != self.spec.loss {
            self.losses = Losses::new(spec.loss);
        }
        self.spec = spec;
    }

    fn send(&mut self, now: Time, parcel: Parcel) {
        let mut left = parcel.frame.len();
        loop {
            let len = left.min(SEGMENT);
            let sent = self.carry(now, len);
            let arrival = sent + millis(self.spec.delay_ms + self.draws.unit() * self.spec.jitter_ms) + self.repeat();
            // Frames that arrive out of order wait for those sent before them.
            self.latest = self.latest.max(arrival);
            left -= len;
            if left == 0 {
                break;
            }
        }
        self.on_the_way.push_back((self.latest, parcel));
    }

    /// Returns the time that a segment loses because it, or a copy of it, was lost or held back.
    fn repeat(&mut self) -> Duration {
        let mut late = Duration::ZERO;
        if self.spec.loss != Loss::None {
            let mut wait = RESEND;
            for _ in 0..MOST_RESENDS {
                if !self.losses.next(&mut self.draws) {
                    break;
                }
                late += wait;
                wait *= 2;
            }
        }
        if self.spec.reorder > 0.0 && self.draws.unit() < self.spec.reorder {
            late += millis(self.spec.reorder_ms);
        }
        late
    }

    /// Returns the time at which the narrowest link has sent a segment that came at `now`. A sender is slowed down
    /// where a queue would be full.
    fn carry(&mut self, now: Time, len: usize) -> Time {
        if self.spec.rate_bps == 0 {
            return now;
        }
        let bits = 8 * (len + HEADERS) as u64;
        self.link_free = now.max(self.link_free) + Duration::from_nanos(bits * 1_000_000_000 / self.spec.rate_bps);
        self.link_free
    }
}

fn millis(ms: f64) -> Duration {
    Duration::from_nanos((ms.max(0.0) * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` messages of `bytes` to the caller, 20 ms apart; returns number and transit in ms in order of
    /// arrival.
    fn through(spec: NetemSpec, seed: u64, count: u32, bytes: usize) -> Vec<(u32, f64)> {
        let mut streams = Streams::new(spec, Seed(seed));
        let sent = |number: u32| Time::from_millis(1000 + u64::from(number) * 20);
        for connection in 0..count {
            let frame = Frame::Message(Message::Binary(vec![0; bytes]));
            streams.send(sent(connection), true, Parcel { connection, sent: sent(connection), frame });
        }
        let mut seen = Vec::new();
        while let Some(at) = streams.next() {
            assert_eq!(streams.receive(false, at), None, "it is for the other side");
            assert_eq!(streams.receive(true, Time(at.0 - 1)), None);
            let (arrival, parcel) = streams.receive(true, at).expect("it has arrived");
            let transit = arrival.0 as f64 - sent(parcel.connection).0 as f64;
            seen.push((parcel.connection, transit / 1e6));
        }
        seen
    }

    #[test]
    fn every_message_arrives_in_order_and_losses_hold_up_what_follows() {
        let check = |spec: NetemSpec, least: f64, most: f64, late: std::ops::RangeInclusive<usize>| {
            let seen = through(spec, 1, 2000, 640);
            let numbers: Vec<u32> = seen.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, (0..2000).collect::<Vec<u32>>(), "{spec:?}");
            assert!(seen.iter().all(|(_, ms)| (least..=most).contains(ms)), "{spec:?} {seen:?}");
            let held = seen.iter().filter(|(_, ms)| *ms >= 60.0).count();
            assert!(late.contains(&held), "{spec:?} {held}");
            assert_eq!(seen, through(spec, 1, 2000, 640));
        };
        let spec = NetemSpec { delay_ms: 20.0, ..NetemSpec::default() };
        check(spec, 20.0, 20.0, 0..=0);
        check(NetemSpec { jitter_ms: 30.0, ..spec }, 20.0, 50.0, 0..=0);
        check(NetemSpec { duplicate: 0.5, ..spec }, 20.0, 20.0, 0..=0);
        // Of 2000 messages 21 to 59 are held back, within three deviations; each takes itself and one more to 60 ms or
        // longer.
        check(NetemSpec { reorder: 0.02, reorder_ms: 60.0, ..spec }, 20.0, 80.0, 42..=118);
        // Of 2000 messages 7 to 33 are lost; each takes itself and the 8 behind it to 60 ms or longer.
        check(NetemSpec { loss: Loss::Independent(0.01), ..spec }, 20.0, 620.0, 63..=297);
    }

    #[test]
    fn a_lost_message_comes_when_it_is_sent_again_and_those_behind_it_at_the_same_time() {
        let seen =
            through(NetemSpec { loss: Loss::Independent(0.02), delay_ms: 20.0, ..NetemSpec::default() }, 1, 500, 640);
        let first = seen.iter().position(|(_, ms)| *ms > 20.0).expect("one of 500 is lost");
        assert_eq!(seen[first].1, 220.0);
        let behind: Vec<f64> = seen[first + 1..first + 5].iter().map(|(_, ms)| *ms).collect();
        let expect = [200.0, 180.0, 160.0, 140.0];
        assert!(behind.iter().zip(expect).all(|(ms, least)| *ms >= least), "{behind:?}");
        assert!(seen.iter().any(|(_, ms)| *ms == 20.0));
    }

    #[test]
    fn a_narrow_link_takes_the_time_of_all_bytes() {
        // 8 segments of 1400 bytes and one of 800, with headers, are 12,360 bytes: 98.88 ms at 1 Mbit/s.
        let spec = NetemSpec { rate_bps: 1_000_000, ..NetemSpec::default() };
        assert_eq!(through(spec, 1, 1, 12_000), [(0, 98.88)]);
        let all = through(NetemSpec { loss: Loss::Independent(0.9), ..NetemSpec::default() }, 1, 20, 640);
        assert_eq!(all.len(), 20, "what is repeated often enough arrives");
    }
}
