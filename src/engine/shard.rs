//! Media threads. Each owns the calls of its 20 slots, whose absolute deadlines are one millisecond apart; a call's
//! ticks are the deadlines of its slot. A thread with calls wakes for their slots and for every fourth one, and never
//! waits for anything but its next deadline; without calls it rests until a command comes. Commands come by a ring,
//! everything that a call says leaves by a ring, audio for files and recognizers leaves by a ring a call.
//!
//! A thread serves many calls, instead of a task each. 1000 PCMU calls (packets only) take 13.5 % of a core and are 88
//! us late at the median. Tasks took 54 % and were 1 ms late.
//!
//! A slot is filled to 40 calls before the next is opened. That is 0.74 ms of CPU per call-second at 200 calls instead
//! of 1.02, for a p99 lateness of 0.4 ms instead of 0.2.
//!
//! Cache misses bound a tick, so scratch frames are on the stack and payloads are lent last in, first out. Prefetching
//! the next call, huge pages, jemalloc and mimalloc changed the cost by no more than the spread of the runs.
//!
//! Network figures wake their readers every 250 ms: 200 calls with one figure a second would else be 200 wake-ups.
//!
//! One core is left to everything else. On two cores a second media thread raised the p99.9 lateness of 500 calls from
//! 2 ms to at least 5, at 8 % more CPU.

mod datagrams;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread::Thread;
use std::time::Duration;

use ringer_base::clock::monotonic;
use ringer_base::config::SymmetricRtp;
use ringer_media::call::{
    Call, Command, Control, Effect, EffectId, Effected, EndReason, Ending, Event, EventKind, Input, MediaChannel,
    Output, Sent, Signal,
};
use ringer_media::time::Time;
use ringer_transport::dtls::{QueueWriter, is_dtls};
use ringer_transport::path::MediaPath;
use ringer_transport::sockets::{Batch, KernelClock, Stranger};
use rtrb::{Consumer, Producer};

use super::lateness::Lateness;
use super::pace::{MEDIA_PRIORITY, prefer_timing, sleep_until};
use super::packet_tap::PacketTap;
use super::recording_blocks::Blocks;
use super::recording_ring::{RecordingRing, RecordingRings};

/// Phases of a tick.
const SLOTS: usize = 20;
/// Distance of the phases, in nanoseconds.
const STEP_NS: u64 = 1_000_000;
/// Every fourth slot is served whether it has calls or not, so that no command waits for longer than 4 ms. These are
/// also filled first: a wake-up costs as much as several calls.
const MAIN_EVERY: u64 = 4;
/// Calls of a main slot before the slots between them are used: the last of them is sent some 0.2 ms after the first.
const CROWD: usize = 40;
/// A slot that is later than this is skipped.
const SKIP_AFTER: Duration = Duration::from_millis(20);
/// Reports are read every 25th tick of a call.
const RTCP_EVERY: u32 = 25;
/// Steps that the network's figures may wait for their reader: one wake-up then serves many calls.
const FIGURES_EVERY: u64 = 240;
/// Time after which a thread that rests looks for commands although nobody has woken it.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);
/// Messages that a thread may hold for one that does not read them.
pub(super) const RING: usize = 16_384;

/// Names a call inside the engine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallNo(pub u64);

/// A call with its media and rings.
pub(super) struct LiveCall {
    pub no: CallNo,
    pub call: Call,
    pub media: MediaPath,
    /// Audio for the recognizer.
    pub tap: Producer<i16>,
    /// Samples written to `tap` so far.
    pub tapped: u64,
    /// Rings that the recording goes into.
    pub recording: RecordingRings,
    /// Ring for captured datagrams; `None`: nothing is captured.
    pub packet_tap: Option<PacketTap>,
    /// Way of the datagrams of handshakes to their task; `None`: there are no handshakes.
    pub handshakes: Option<QueueWriter>,
    /// True if the port of reports has a handshake of its own, which is looked for in each tick.
    pub awaits_reports: bool,
    /// Recorded frames that did not fit.
    pub dropped_frames: u64,
    pub ticks: u32,
    /// Addresses that RTP is taken from while nothing comes from the agreed one.
    pub symmetric: SymmetricRtp,
}

/// Message to a media thread.
pub(super) enum ToShard {
    Place(Box<LiveCall>),
    Signal(CallNo, Signal),
    Connect(CallNo, std::net::SocketAddr, std::net::SocketAddr),
    /// Packets that someone else encrypts and sends pass between these addresses, this side's first.
    Capture(CallNo, std::net::SocketAddr, std::net::SocketAddr),
    /// A datagram of a handshake, to be sent.
    Datagram(CallNo, MediaChannel, Vec<u8>),
    /// The port of reports has a handshake of its own, or has none any more.
    AwaitReports(CallNo, bool),
    Voiced(CallNo, EffectId, String),
    Done(CallNo, EffectId, Effected),
    Hangup(CallNo, EndReason),
}

/// Message from a media thread.
pub(super) enum FromShard {
    Control(CallNo, Control),
    /// Effect of a call, with the number of samples written to the tap so far.
    Effect(CallNo, EffectId, Effect, u64),
    /// RTP comes from this address, which is not the agreed one.
    Stranger(CallNo, Stranger),
    /// Frames wait in the call's ring.
    Frames(CallNo),
    /// Datagrams of handshakes wait in the call's queue.
    Handshakes(CallNo),
    /// A recognizer's audio begins at this position, with these samples; the tap goes on behind them.
    Ears(CallNo, i64, Box<[i16]>),
    Event(CallNo, Event),
    Ended(CallNo, Box<Ending>),
    /// The call itself, to be dropped elsewhere.
    Gone(
        #[expect(dead_code, reason = "only dropped: closing sockets and rings is not for a media thread")]
        Box<LiveCall>,
    ),
}

/// State shared between a media thread and the rest of the engine.
pub(super) struct Shared {
    pub stop: AtomicBool,
    /// True while the thread sleeps without a deadline, and has to be woken for a command.
    pub rests: AtomicBool,
    pub calls: AtomicUsize,
    pub lateness: Lateness,
    /// Counts messages that wait; written by the thread, read by the pump.
    pub wake: Arc<super::wake::Wake>,
}

impl Shared {
    /// Wakes the thread if it rests; called after a command was pushed or the stop was set.
    pub(crate) fn rouse(&self, thread: &Thread) {
        fence(Ordering::SeqCst);
        if self.rests.load(Ordering::Relaxed) {
            thread.unpark();
        }
    }
}

/// The thread's own state.
pub(super) struct Shard {
    slots: [Vec<Box<LiveCall>>; SLOTS],
    /// Calls that hold packets back between their ticks, with their slots: looked at in every step while there are any.
    holding: Vec<(CallNo, usize)>,
    commands: Consumer<ToShard>,
    messages: Producer<FromShard>,
    backlog: VecDeque<FromShard>,
    shared: Arc<Shared>,
    batch: Batch,
    report: Box<[u8; 2048]>,
    /// Packets and frames that a call's tick has sent.
    sent: Sent,
    /// Memory of recorded audio.
    blocks: Blocks,
    kernel: KernelClock,
}

impl Shard {
    pub(crate) fn new(
        commands: Consumer<ToShard>,
        messages: Producer<FromShard>,
        shared: Arc<Shared>,
        blocks: Blocks,
    ) -> Shard {
        Shard {
            slots: std::array::from_fn(|_| Vec::with_capacity(64)),
            holding: Vec::new(),
            commands,
            messages,
            backlog: VecDeque::new(),
            shared,
            batch: Batch::default(),
            report: Box::new([0; 2048]),
            sent: Sent::default(),
            blocks,
            kernel: KernelClock::new(),
        }
    }

    /// Runs the thread until `Shared::stop` is set.
    pub(crate) fn run(mut self) {
        prefer_timing(MEDIA_PRIORITY);
        let sleep = |deadline| {
            sleep_until(deadline);
            monotonic()
        };
        while !self.shared.stop.load(Ordering::Relaxed) {
            pace(monotonic(), sleep, |step, now, deadline| {
                self.step(step, now, deadline);
                let goes_on = !self.shared.stop.load(Ordering::Relaxed) && !self.is_idle();
                goes_on.then(|| self.after(step))
            });
            self.rest();
        }
        // Who reads the messages learns that no more will come.
        self.shared.wake.mark();
        self.shared.wake.ring_if_needed();
    }

    /// True if there is no call, and nothing is to be done or told.
    fn is_idle(&self) -> bool {
        self.slots.iter().all(Vec::is_empty)
            && self.holding.is_empty()
            && self.backlog.is_empty()
            && self.commands.is_empty()
    }

    /// Sleeps until the next command, or the stop: a thread without calls costs nothing.
    fn rest(&self) {
        self.shared.wake.mark();
        self.shared.wake.ring_if_needed();
        self.shared.rests.store(true, Ordering::Relaxed);
        // Either this thread sees the command, or who pushed it sees that this thread rests.
        fence(Ordering::SeqCst);
        while self.commands.is_empty() && !self.shared.stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOOK_ANYWAY);
        }
        self.shared.rests.store(false, Ordering::Relaxed);
    }

    /// Does the work of one step. The calls of its slot are served if it is in time for its deadline.
    fn step(&mut self, step: u64, now: Time, deadline: Option<Time>) {
        self.kernel.refresh(now);
        self.take_commands(now);
        self.blocks.collect();
        self.release(now);
        let slot = (step % SLOTS as u64) as usize;
        if let Some(deadline) = deadline
            && !self.slots[slot].is_empty()
        {
            self.send_pass(slot, deadline);
            self.receive_pass(slot);
        }
        self.tell_backlog();
        if step.is_multiple_of(FIGURES_EVERY) {
            self.shared.wake.mark();
        }
        self.shared.wake.ring_if_needed();
    }

    /// Returns the next step at which there is something to do.
    fn after(&self, step: u64) -> u64 {
        let mut next = step + 1;
        let has_work =
            |step: u64| step.is_multiple_of(MAIN_EVERY) || !self.slots[(step % SLOTS as u64) as usize].is_empty();
        while self.holding.is_empty() && !has_work(next) {
            next += 1;
        }
        next
    }

    /// Returns the slot of a new call: the emptiest main slot, or the emptiest of all once that one is crowded.
    fn slot_for_new(&self) -> usize {
        let emptiest = |every: usize| (0..SLOTS).step_by(every).min_by_key(|slot| self.slots[*slot].len()).unwrap_or(0);
        let main = emptiest(MAIN_EVERY as usize);
        if self.slots[main].len() < CROWD { main } else { emptiest(1) }
    }

    fn take_commands(&mut self, now: Time) {
        while let Ok(command) = self.commands.pop() {
            match command {
                ToShard::Place(call) => {
                    self.shared.calls.fetch_add(1, Ordering::Relaxed);
                    let slot = self.slot_for_new();
                    if call.call.holds_packets() {
                        self.holding.push((call.no, slot));
                    }
                    self.slots[slot].push(call);
                }
                ToShard::Connect(no, rtp, rtcp) => {
                    if let Some((_, _, live)) = self.find(no)
                        && let MediaPath::Udp(sockets) = &mut live.media
                    {
                        let _ = sockets.connect(rtp, rtcp);
                        live.packet_tap.iter_mut().for_each(|tap| tap.connect(sockets, rtp, rtcp));
                    }
                }
                ToShard::Capture(no, here, there) => {
                    if let Some((_, _, live)) = self.find(no) {
                        live.packet_tap.iter_mut().for_each(|tap| tap.between(here, there));
                    }
                }
                ToShard::Datagram(no, path, bytes) => self.send_datagram(no, now, path, &bytes),
                ToShard::AwaitReports(no, awaits) => {
                    if let Some((_, _, live)) = self.find(no) {
                        live.awaits_reports = awaits;
                    }
                }
                ToShard::Signal(no, signal) => self.hand(no, now, Input::Signal(signal)),
                ToShard::Voiced(no, id, voiced) => self.hand(no, now, Input::Voiced(id, voiced)),
                ToShard::Done(no, id, done) => self.hand(no, now, Input::Done(id, done)),
                ToShard::Hangup(no, reason) => {
                    self.hand(no, now, Input::Command(Command::Hangup(reason)));
                }
            }
        }
    }

    fn find(&mut self, no: CallNo) -> Option<(usize, usize, &mut LiveCall)> {
        self.slots.iter_mut().enumerate().find_map(|(slot, calls)| {
            let at = calls.iter().position(|live| live.no == no)?;
            Some((slot, at, &mut *calls[at]))
        })
    }

    fn hand(&mut self, no: CallNo, now: Time, input: Input<'_>) {
        let Some((slot, at, live)) = self.find(no) else { return };
        live.call.handle(now, input);
        self.deliver(slot, at, now, now);
    }

    /// Sends packets whose own time has come, at most a step late.
    fn release(&mut self, now: Time) {
        let mut at = 0;
        while let Some((no, slot)) = self.holding.get(at).copied() {
            let Some(place) = self.slots[slot].iter().position(|live| live.no == no) else {
                self.holding.swap_remove(at);
                continue;
            };
            let call = &mut self.slots[slot][place].call;
            if call.due().is_some_and(|due| due <= now) {
                call.handle(now, Input::Release);
                self.deliver(slot, place, now, now);
            }
            at += 1;
        }
    }

    fn send_pass(&mut self, slot: usize, deadline: Time) {
        let mut at = 0;
        while at < self.slots[slot].len() {
            let now = monotonic();
            let late = now.since(deadline);
            let live = &mut self.slots[slot][at];
            live.call.handle(deadline, Input::Tick { late, sent: &mut self.sent });
            self.shared.lateness.record(late);
            // A call that is over has sent nothing.
            if self.deliver(slot, at, now, deadline) {
                self.record_sent(slot, at);
                at += 1;
            }
        }
    }

    /// Records the sent audio, once the packets have left.
    fn record_sent(&mut self, slot: usize, at: usize) {
        let Some(from) = self.sent.position else { return };
        let LiveCall { recording, dropped_frames, .. } = &mut *self.slots[slot][at];
        // No early media can follow: its file is closed, and the recorder frees the ring.
        recording.early = RecordingRing::default();
        let written = [
            recording.sent.write(&mut self.blocks, from, &self.sent.pcm),
            recording.clean.write(&mut self.blocks, from, &self.sent.clean),
        ];
        *dropped_frames += u64::from(written.contains(&false));
    }

    fn receive_pass(&mut self, slot: usize) {
        let mut at = 0;
        while at < self.slots[slot].len() {
            let now = monotonic();
            let live = &mut *self.slots[slot][at];
            match &mut live.media {
                MediaPath::Rings(rings) => rings.receive(&mut live.call, now),
                MediaPath::Peer(_) => self.receive_from_peer(slot, at, now),
                MediaPath::Udp(_) => self.receive_packets(slot, at, now),
            }
            let live = &mut *self.slots[slot][at];
            live.call.handle(now, Input::Listen);
            if let MediaPath::Rings(rings) = &live.media {
                rings.tell_heard(&live.call);
            }
            at += usize::from(self.deliver(slot, at, now, now));
        }
    }

    /// Hands the call the datagrams that came.
    fn receive_packets(&mut self, slot: usize, at: usize, now: Time) {
        let live = &mut *self.slots[slot][at];
        let MediaPath::Udp(sockets) = &mut live.media else { return };
        let mut shook = false;
        loop {
            for (kernel_ns, bytes) in sockets.receive_rtp(&mut self.batch) {
                let arrived = self.kernel.arrival(kernel_ns, now);
                if let Some(packet_tap) = &mut live.packet_tap {
                    packet_tap.capture_received(MediaChannel::Rtp, self.kernel.wall_ns(arrived), bytes);
                }
                match &mut live.handshakes {
                    Some(queue) if is_dtls(bytes) => shook |= queue.push(MediaChannel::Rtp, bytes),
                    _ => live.call.handle(now, Input::Packet { path: MediaChannel::Rtp, arrived, bytes }),
                }
            }
            if !self.batch.is_full() {
                break;
            }
        }
        live.ticks = live.ticks.wrapping_add(1);
        if live.ticks.is_multiple_of(RTCP_EVERY)
            && let Some(found) = sockets.look_at_strangers(live.symmetric)
        {
            tell(&mut self.messages, &mut self.backlog, &self.shared, FromShard::Stranger(live.no, found));
        }
        if live.ticks.is_multiple_of(RTCP_EVERY) || live.awaits_reports {
            while let Some(bytes) = sockets.receive_rtcp(&mut self.report[..]) {
                if let Some(packet_tap) = &mut live.packet_tap {
                    packet_tap.capture_received(MediaChannel::Rtcp, self.kernel.wall_ns(now), bytes);
                }
                match &mut live.handshakes {
                    Some(queue) if is_dtls(bytes) => shook |= queue.push(MediaChannel::Rtcp, bytes),
                    _ => live.call.handle(now, Input::Packet { path: MediaChannel::Rtcp, arrived: now, bytes }),
                }
            }
        }
        if shook {
            tell(&mut self.messages, &mut self.backlog, &self.shared, FromShard::Handshakes(live.no));
        }
    }

    /// Carries out what the call asks at `now`, which was due at `due`; false when the call is over and was taken out.
    fn deliver(&mut self, slot: usize, at: usize, now: Time, due: Time) -> bool {
        let live = &mut *self.slots[slot][at];
        let no = live.no;
        let mut over = false;
        while let Some(output) = live.call.poll() {
            let message = match output {
                Output::Packet { path, bytes } => {
                    match (&mut live.media, path) {
                        (MediaPath::Udp(sockets), MediaChannel::Rtp) => sockets.send_rtp(bytes),
                        (MediaPath::Udp(sockets), MediaChannel::Rtcp) => sockets.send_rtcp(bytes),
                        (MediaPath::Peer(peer), _) => peer.send(due, path, bytes),
                        (MediaPath::Rings(_), _) => continue,
                    }
                    if let Some(packet_tap) = &mut live.packet_tap {
                        packet_tap.capture_sent(path, self.kernel.wall_ns(now), bytes);
                    }
                    continue;
                }
                Output::Frame { from, pcm } => {
                    let MediaPath::Rings(rings) = &mut live.media else { continue };
                    rings.send(from, due, pcm);
                    FromShard::Frames(no)
                }
                Output::Utterance { at, begins } => {
                    let MediaPath::Rings(rings) = &mut live.media else { continue };
                    rings.tell_utterance(at, begins);
                    FromShard::Frames(no)
                }
                Output::ClearBuffered => {
                    let MediaPath::Rings(rings) = &mut live.media else { continue };
                    rings.clear();
                    FromShard::Frames(no)
                }
                Output::Ears { pcm, .. } => {
                    push(&mut live.tap, pcm, &mut live.tapped);
                    continue;
                }
                Output::EarsPast { from, pcm } => {
                    // It is more than the ring holds besides what it is for.
                    FromShard::Ears(no, from, pcm.into())
                }
                Output::Early(pcm) => {
                    live.dropped_frames += u64::from(!live.recording.early.go_on(&mut self.blocks, pcm));
                    continue;
                }
                Output::Heard(pcm) => {
                    live.dropped_frames += u64::from(!live.recording.heard.go_on(&mut self.blocks, pcm));
                    continue;
                }
                Output::Control(control) => FromShard::Control(no, control),
                Output::Effect(id, effect) => FromShard::Effect(no, id, effect, live.tapped),
                Output::Event(event) => FromShard::Event(no, event),
                Output::Ended(mut ending) => {
                    over = true;
                    ending.quality.recording_dropped = live.dropped_frames;
                    live.media.add_to(&mut ending.quality);
                    FromShard::Ended(no, ending)
                }
            };
            tell(&mut self.messages, &mut self.backlog, &self.shared, message);
        }
        if over {
            let call = self.slots[slot].remove(at);
            self.shared.calls.fetch_sub(1, Ordering::Relaxed);
            tell(&mut self.messages, &mut self.backlog, &self.shared, FromShard::Gone(call));
        }
        !over
    }

    fn tell_backlog(&mut self) {
        while let Some(message) = self.backlog.pop_front() {
            if let Err(rtrb::PushError::Full(message)) = self.messages.push(message) {
                self.backlog.push_front(message);
                return;
            }
            self.shared.wake.mark();
        }
    }
}

/// Sends a message; while the reader is behind, messages wait here in order, and none is lost.
fn tell(messages: &mut Producer<FromShard>, backlog: &mut VecDeque<FromShard>, shared: &Shared, message: FromShard) {
    let waits = matches!(&message, FromShard::Event(_, Event { what: EventKind::Network { .. }, .. }));
    if !backlog.is_empty() {
        backlog.push_back(message);
    } else if let Err(rtrb::PushError::Full(message)) = messages.push(message) {
        backlog.push_back(message);
    }
    if !waits {
        shared.wake.mark();
    }
}

/// Goes from step to step, the first at `start`. `sleep` waits for a step's deadline and returns the time of waking.
/// `serve` does the step and returns the next one; `None` ends. It gets the deadline only when that is at most
/// [`SKIP_AFTER`] ago. Later steps are left out, so that never more than two frames of a call leave within 20 ms,
/// however long the thread was held up.
fn pace(
    start: Time,
    mut sleep: impl FnMut(Time) -> Time,
    mut serve: impl FnMut(u64, Time, Option<Time>) -> Option<u64>,
) {
    let mut next = Some(0);
    while let Some(step) = next {
        let deadline = Time(start.0 + STEP_NS * step);
        let now = sleep(deadline);
        next = serve(step, now, (now.since(deadline) <= SKIP_AFTER).then_some(deadline));
    }
}

fn push(tap: &mut Producer<i16>, pcm: &[i16], count: &mut u64) {
    if tap.push_entire_slice(pcm).is_ok() {
        *count += pcm.len() as u64;
    }
}

#[cfg(test)]
mod tests;
