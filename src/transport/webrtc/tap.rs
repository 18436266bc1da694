//! The tap in the library's packet path: every packet of the other side leaves it here, decrypted and with the time at
//! which the socket gave it. The library itself has no use for them: jitter, loss and reports are the leg's.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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
    to_send: VecDeque<TaggedPacket>,
}

impl Tap {
    pub(super) fn new(epoch: Epoch, out: mpsc::Sender<Arrived>, counts: Arc<Counts>) -> Tap {
        Tap { epoch, out, counts, to_send: VecDeque::new() }
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
                if self.counts.received.fetch_add(1, Ordering::Relaxed) == 0 {
                    self.counts.first_at.store(self.epoch.time(tagged.now).0, Ordering::Relaxed);
                }
                (false, packet.marshal()?)
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
        if matches!(tagged.message.packet, Packet::Rtp(_)) {
            self.counts.sent.fetch_add(1, Ordering::Relaxed);
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
