//! A bad connection put between a call and its network: sent packets are dropped and delayed, received frames are lost
//! and delayed before they are analysed. Loss is independent or Gilbert-Elliott, the extra delay uniform, the order
//! kept. It is not a network (that is [`crate::netem`]): everything here is asked for, allocates in `new` only, and is
//! measured.

use std::collections::VecDeque;
use std::time::Duration;

use crate::frame::{Frame, RATE_HZ, Sample};
use crate::leg::{FRAME_MAX, HeardFrame, HeardKind, MAX_PACKET, NARROW};
use crate::netem::{Loss, Losses};
use crate::rtp::conceal::Concealer;
use crate::seed::{Seed, Stream};
use crate::time::Time;

/// Length of a frame in milliseconds.
const FRAME_MS: f64 = 20.0;

/// Largest number of datagrams that one tick makes: audio or an event, and the repetitions of its end.
const PACKETS_A_TICK: usize = 4;

/// Bytes of a frame's position, before its samples.
const HEAD: usize = size_of::<Sample>();
const _: () = assert!(HEAD + 2 * FRAME_MAX <= MAX_PACKET);

/// Loss and jitter of both directions; each draws for itself. The default loses and delays nothing.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct ConnectionSpec {
    /// Share of packets that are lost, 0 to 1 (1 is never reached: something always gets through).
    pub loss: f64,
    /// Mean length of a run of lost packets. Losses are independent up to the mean of independent ones, 1 / (1 - loss).
    pub mean_burst: f64,
    /// Mean extra delay of packets in milliseconds; each is drawn from 0 to twice this.
    pub jitter_ms: f64,
    /// Delay of every sent packet in milliseconds, beside the jitter. Received frames have none: for the turns of a
    /// conversation a delay of one direction is as good as a round trip that is longer by it.
    pub delay_ms: f64,
    /// True if received frames are neither lost nor delayed: the other side alone has the bad connection.
    pub sent_only: bool,
}

impl ConnectionSpec {
    /// True when nothing is lost or delayed.
    pub fn is_clear(&self) -> bool {
        self.loss <= 0.0 && self.jitter_ms <= 0.0 && self.delay_ms <= 0.0
    }

    /// Returns the model of the losses: in the long run `loss` of all packets, in runs of `mean_burst`.
    pub fn model(&self) -> Loss {
        let loss = self.loss.clamp(0.0, 0.99);
        if loss == 0.0 {
            Loss::None
        } else if self.mean_burst <= 1.0 / (1.0 - loss) {
            Loss::Independent(loss)
        } else {
            let leave = 1.0 / self.mean_burst;
            Loss::Burst { enter: leave * loss / (1.0 - loss), leave, loss: 1.0 }
        }
    }

    /// Number of received frames that may be delayed at once.
    fn depth(&self) -> usize {
        (2.0 * self.jitter_ms.max(0.0) / FRAME_MS) as usize + 2
    }

    /// Number of ticks whose packets may wait for their departure at once.
    fn sent_depth(&self) -> usize {
        (self.delay_ms.max(0.0) / FRAME_MS) as usize + self.depth()
    }
}

/// Measured loss and delay of one direction.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct Measured {
    /// Lost packets or frames, percent of all.
    pub loss_pct: f64,
    /// Mean length of a run of losses; 0 when nothing was lost.
    pub mean_burst: f64,
    /// Mean extra delay in milliseconds, without the delay of every packet. Keeping the order holds some back for
    /// longer than was drawn for them.
    pub jitter_ms: f64,
}

/// Measured loss and delay of both directions of a call.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct Impairment {
    /// Figures of RTP packets that are sent.
    pub sent: Measured,
    /// Figures of received frames on their way to the analysis.
    pub received: Measured,
}

/// Model of one direction: decides which packets are lost, and when the others go on.
#[derive(Clone, Debug)]
struct LinkModel {
    losses: Losses,
    most_delay_ns: f64,
    /// Delay of every packet, which is no jitter.
    delay: Duration,
    stream: Stream,
    /// Time before which nothing goes on, so that the order is kept.
    latest: Time,
    passed: u64,
    lost: u64,
    runs: u64,
    in_run: bool,
    delayed_ns: f64,
}

impl LinkModel {
    fn new(spec: &ConnectionSpec, delay_ms: f64, stream: Stream) -> LinkModel {
        LinkModel {
            losses: Losses::new(spec.model()),
            most_delay_ns: 2e6 * spec.jitter_ms.max(0.0),
            delay: Duration::from_nanos((1e6 * delay_ms.max(0.0)) as u64),
            stream,
            latest: Time::default(),
            passed: 0,
            lost: 0,
            runs: 0,
            in_run: false,
            delayed_ns: 0.0,
        }
    }

    /// True when the packet of this call is lost; draws and counts.
    fn loses(&mut self) -> bool {
        let lost = self.losses.next(&mut self.stream);
        self.runs += u64::from(lost && !self.in_run);
        self.in_run = lost;
        self.lost += u64::from(lost);
        lost
    }

    /// Returns the time at which a packet that comes at `now` goes on.
    fn delays(&mut self, now: Time) -> Time {
        let now = now + self.delay;
        let delay = Duration::from_nanos((self.stream.unit() * self.most_delay_ns) as u64);
        self.latest = self.latest.max(now + delay);
        self.passed += 1;
        self.delayed_ns += self.latest.since(now).as_nanos() as f64;
        self.latest
    }

    /// Returns the time at which a replacement of a lost packet goes on: `now` and the delay of every packet, or the
    /// time of the packet before it when that is later.
    fn fills(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now + self.delay);
        self.latest
    }

    fn measurement(&self) -> Measured {
        let lost = self.lost as f64;
        Measured {
            loss_pct: 100.0 * lost / (self.lost + self.passed).max(1) as f64,
            mean_burst: lost / self.runs.max(1) as f64,
            jitter_ms: self.delayed_ns / 1e6 / self.passed.max(1) as f64,
        }
    }
}

/// A datagram that waits for its time.
#[derive(Copy, Clone, Debug)]
struct Departure {
    at: Time,
    len: usize,
    bytes: [u8; MAX_PACKET],
}

/// The sending side: RTP packets on their way to the network.
#[derive(Clone, Debug)]
pub struct Departures {
    line: LinkModel,
    /// Number of datagrams in the ring, from `first` on.
    slots: Box<[Departure]>,
    first: usize,
    count: usize,
    /// Time up to which waiting packets may be taken.
    now: Time,
    /// Frame that was taken last, on a leg of PCM.
    frame: Vec<i16>,
}

impl Departures {
    /// Returns the sending side, which draws from the stream `connection.sent`.
    pub fn new(spec: &ConnectionSpec, seed: Seed) -> Departures {
        let empty = Departure { at: Time::default(), len: 0, bytes: [0; MAX_PACKET] };
        Departures {
            line: LinkModel::new(spec, spec.delay_ms, seed.stream("connection.sent")),
            slots: vec![empty; spec.sent_depth() * PACKETS_A_TICK].into(),
            first: 0,
            count: 0,
            now: Time::default(),
            frame: Vec::new(),
        }
    }

    /// Delays a frame of PCM that begins at `from` and leaves at `now`. A lost one is replaced by silence, since a
    /// stream without timestamps cannot lack one.
    pub fn send_frame(&mut self, now: Time, from: Sample, pcm: &[i16]) {
        self.release(now);
        let is_lost = self.line.loses();
        let at = if is_lost { self.line.fills(now) } else { self.line.delays(now) };
        if self.count == self.slots.len() || pcm.len() > FRAME_MAX {
            return;
        }
        let last = (self.first + self.count) % self.slots.len();
        let slot = &mut self.slots[last];
        let (head, body) = slot.bytes.split_at_mut(HEAD);
        head.copy_from_slice(&from.to_le_bytes());
        for (bytes, sample) in body.chunks_exact_mut(2).zip(pcm) {
            bytes.copy_from_slice(&if is_lost { 0 } else { *sample }.to_le_bytes());
        }
        (slot.at, slot.len) = (at, HEAD + 2 * pcm.len());
        self.count += 1;
    }

    /// Returns the next frame of PCM whose time has come, with its position.
    pub fn pop_frame(&mut self) -> Option<(Sample, &[i16])> {
        let mut frame = std::mem::take(&mut self.frame);
        let from = self.pop().and_then(|bytes| {
            let (head, body) = bytes.split_first_chunk::<HEAD>()?;
            frame.clear();
            frame.extend(body.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])));
            Some(Sample::from_le_bytes(*head))
        });
        self.frame = frame;
        from.map(|from| (from, &self.frame[..]))
    }

    /// Delays or loses a packet that leaves at `now`. A packet is dropped that is longer than any leg makes, or that
    /// does not fit because nothing was released.
    pub fn send(&mut self, now: Time, bytes: &[u8]) {
        self.release(now);
        if self.line.loses() {
            return;
        }
        let at = self.line.delays(now);
        if self.count == self.slots.len() || bytes.len() > MAX_PACKET {
            return;
        }
        let last = (self.first + self.count) % self.slots.len();
        let slot = &mut self.slots[last];
        (slot.at, slot.len) = (at, bytes.len());
        slot.bytes[..bytes.len()].copy_from_slice(bytes);
        self.count += 1;
    }

    /// Time at which the next packet is to go, which may have passed; `None` without one.
    pub fn due(&self) -> Option<Time> {
        (self.count > 0).then(|| self.slots[self.first].at)
    }

    /// Sets the time to `now`: packets that are due may be taken.
    pub fn release(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// True when a packet may be taken.
    pub fn is_ready(&self) -> bool {
        self.due().is_some_and(|due| due <= self.now)
    }

    /// Returns the next packet whose time has come, in order.
    pub fn pop(&mut self) -> Option<&[u8]> {
        if !self.is_ready() {
            return None;
        }
        let slot = self.first;
        (self.first, self.count) = ((self.first + 1) % self.slots.len(), self.count - 1);
        Some(&self.slots[slot].bytes[..self.slots[slot].len])
    }

    /// Drops all packets that wait.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Returns the figures up to now.
    pub fn measurement(&self) -> Measured {
        self.line.measurement()
    }
}

/// Received audio of 20 ms on its way to the analysis.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Position of the first sample of `pcm`.
    pub position: Sample,
    /// Samples of the frame at 16 kHz.
    pub pcm: Frame,
    /// The same at 8 kHz, placed as in [`HeardFrame`].
    pub narrow: [i16; NARROW],
    /// True for received audio, false for silence and for concealment.
    pub is_real: bool,
}

/// Receiving side: frames on their way from the recording to the analysis. A lost one is concealed.
#[derive(Clone, Debug)]
pub struct Arrivals {
    line: LinkModel,
    wide: Concealer,
    narrow: Concealer,
    queue: VecDeque<(Time, Arrival)>,
}

impl Arrivals {
    /// Returns the receiving side, which draws from the stream `connection.received`.
    pub fn new(spec: &ConnectionSpec, seed: Seed) -> Arrivals {
        Arrivals {
            line: LinkModel::new(spec, 0.0, seed.stream("connection.received")),
            wide: Concealer::new(RATE_HZ),
            narrow: Concealer::new(RATE_HZ / 2),
            // One more than can wait when the analysis takes the frames that are due at every tick.
            queue: VecDeque::with_capacity(spec.depth() + 1),
        }
    }

    /// Takes a frame that was received at `now`.
    pub fn hear(&mut self, now: Time, heard: &HeardFrame<'_>) {
        let is_real = heard.kind == HeardKind::Real;
        let mut arrival = Arrival { position: heard.position, pcm: *heard.pcm, narrow: *heard.narrow, is_real };
        let at = if self.line.loses() {
            arrival.is_real = false;
            self.wide.conceal(&mut arrival.pcm);
            self.narrow.conceal(&mut arrival.narrow);
            self.line.fills(now)
        } else {
            self.wide.real(&mut arrival.pcm);
            self.narrow.real(&mut arrival.narrow);
            self.line.delays(now)
        };
        self.queue.push_back((at, arrival));
    }

    /// Returns the next frame that has arrived by `now`, in order.
    pub fn pop(&mut self, now: Time) -> Option<Arrival> {
        self.queue.pop_front_if(|(at, _)| *at <= now).map(|(_, arrival)| arrival)
    }

    /// Moves the positions of the waiting frames `by` samples back.
    pub fn move_back(&mut self, by: Sample) {
        self.queue.iter_mut().for_each(|(_, arrival)| arrival.position -= by);
    }

    /// Largest number of frames that arrive in one tick.
    pub fn at_once(spec: &ConnectionSpec) -> usize {
        spec.depth()
    }

    /// Returns the figures up to now.
    pub fn measurement(&self) -> Measured {
        self.line.measurement()
    }
}

/// Both directions of one call.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Direction from this side to the other side.
    pub sent: Departures,
    /// Direction from the other side to this side.
    pub received: Arrivals,
}

impl Connection {
    /// Returns the model of both directions; `None` when `spec` loses and delays nothing.
    pub fn new(spec: &ConnectionSpec, seed: Seed) -> Option<Connection> {
        let received = if spec.sent_only { ConnectionSpec::default() } else { *spec };
        let sides = || Connection { sent: Departures::new(spec, seed), received: Arrivals::new(&received, seed) };
        (!spec.is_clear()).then(sides)
    }

    /// Returns the figures up to now.
    pub fn measurement(&self) -> Impairment {
        Impairment { sent: self.sent.measurement(), received: self.received.measurement() }
    }
}

#[cfg(test)]
mod tests;
