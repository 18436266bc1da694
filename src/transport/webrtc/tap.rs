//! The tap in the library's packet path: every packet of the other side leaves it here, decrypted and with the time at
//! which the socket gave it. The library itself has no use for them: jitter, loss and reports are the leg's.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use ringer_media::rtp::srtp::Sources;
use ringer_media::time::Time;
use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::rtcp;
use rtc::sansio::Protocol;
use rtc::shared::error::{Error, Result};
use rtc::shared::marshal::Marshal;
use tokio::sync::mpsc;

use super::Arrived;

/// Bytes of the longest packet that is handed on.
const MAX_PACKET: usize = 2048;

/// Counts of packets that the tap has seen.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// RTP packets that came.
    pub(super) received: AtomicU64,
    /// Arrival of the first RTP packet, in nanoseconds; 0 before it.
    pub(super) first_at: AtomicU64,
    /// RTP packets that were sent.
    pub(super) sent: AtomicU64,
    /// Packets that came and were not handed on.
    pub(super) dropped: AtomicU64,
}

impl Counts {
    /// Counts an RTP packet that came at `at`.
    pub(super) fn receive(&self, at: Time) {
        if self.received.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first_at.store(at.0, Ordering::Relaxed);
        }
    }
}

/// Packets that the library has opened and sealed, by which another one goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// Sources whose packets were opened.
    pub(super) sources: Sources,
    /// Arrival of the newest of these packets.
    pub(super) newest: Time,
    /// Index of the last packet that was sealed: rollover counter and sequence number (RFC 3711 3.3.1).
    pub(super) last: Option<u64>,
    /// Number of reports that were sealed.
    pub(super) reports: u32,
}

/// Moment at which both clocks were read: the library counts in [`Instant`], which is the same clock.
#[derive(Copy, Clone, Debug)]
pub(super) struct Epoch {
    /// Time as the library reads it.
    pub(super) instant: Instant,
    /// Time as media threads read it.
    pub(super) time: Time,
}

impl Epoch {
    fn time(&self, at: Instant) -> Time {
        match at.checked_duration_since(self.instant) {
            Some(after) => Time(self.time.0 + after.as_nanos() as u64),
            None => Time(self.time.0.saturating_sub(self.instant.duration_since(at).as_nanos() as u64)),
        }
    }
}

/// The tap of one connection.
pub(super) struct Tap {
    epoch: Epoch,
    out: mpsc::Sender<Arrived>,
    counts: Arc<Counts>,
    carried: Arc<Mutex<Carried>>,
    to_send: VecDeque<TaggedPacket>,
}

impl Tap {
    pub(super) fn new(
        epoch: Epoch,
        out: mpsc::Sender<Arrived>,
        counts: Arc<Counts>,
        carried: Arc<Mutex<Carried>>,
    ) -> Tap {
        Tap { epoch, out, counts, carried, to_send: VecDeque::new() }
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Tap {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, tagged: TaggedPacket) -> Result<()> {
        let (is_report, bytes) = match &tagged.message.packet {
            Packet::Rtp(packet) => {
                let (at, bytes) = (self.epoch.time(tagged.now), packet.marshal()?);
                self.counts.receive(at);
                let mut carried = self.carried.lock();
                carried.sources.take(&bytes);
                carried.newest = at;
                (false, bytes)
            }
            Packet::Rtcp(packets) => (true, rtcp::packet::marshal(packets)?),
            _ => return Ok(()),
        };
        let arrived = Arrived { at: self.epoch.time(tagged.now), is_report, bytes: bytes.to_vec() };
        if bytes.len() > MAX_PACKET || self.out.try_send(arrived).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        None
    }

    fn handle_write(&mut self, tagged: TaggedPacket) -> Result<()> {
        match &tagged.message.packet {
            Packet::Rtp(packet) => {
                self.counts.sent.fetch_add(1, Ordering::Relaxed);
                let (carried, number) = (&mut *self.carried.lock(), packet.header.sequence_number);
                let next = |last: u64| last + u64::from(number.wrapping_sub(last as u16));
                carried.last = Some(carried.last.map_or(number.into(), next));
            }
            Packet::Rtcp(_) => self.carried.lock().reports += 1,
            _ => {}
        }
        self.to_send.push_back(tagged);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.to_send.pop_front()
    }
}

impl Interceptor for Tap {
    fn bind_local_stream(&mut self, _info: &StreamInfo) {}

    fn unbind_local_stream(&mut self, _info: &StreamInfo) {}

    fn bind_remote_stream(&mut self, _info: &StreamInfo) {}

    fn unbind_remote_stream(&mut self, _info: &StreamInfo) {}
}
