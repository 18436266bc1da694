//! RTP packets between a call and the task of its channel, where the media thread has no socket of its own: a bounded
//! ring in each direction, without locks.
//!
//! Each ring holds 320 ms of packets of 20 ms. A packet that does not fit is dropped and counted, as a network would.

use std::task::Waker;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::call::MediaChannel;
use crate::time::Time;

/// Number of packets that a ring holds.
const PACKETS: usize = 16;

/// Length of the longest packet in bytes: it fits into a datagram on every network.
pub const MAX_BYTES: usize = 1500;

/// An RTP packet or a report.
#[derive(Clone, Debug)]
pub struct RingPacket {
    /// Time at which it came, or at which it is to leave.
    pub at: Time,
    /// Media or reports, to which it belongs.
    pub path: MediaChannel,
    len: usize,
    bytes: [u8; MAX_BYTES],
}

impl RingPacket {
    fn new(at: Time, path: MediaChannel, bytes: &[u8]) -> Option<RingPacket> {
        let mut packet = RingPacket { at, path, len: bytes.len(), bytes: [0; MAX_BYTES] };
        packet.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(packet)
    }

    /// Returns the packet's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns the packet's bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

/// The media thread's end of the rings.
pub struct PacketRings {
    to_call: Consumer<RingPacket>,
    from_call: Producer<RingPacket>,
    task: Waker,
    dropped: u64,
}

impl PacketRings {
    /// Returns the next packet that came.
    pub fn next_packet(&mut self) -> Option<RingPacket> {
        self.to_call.pop().ok()
    }

    /// Hands a packet to the other end and wakes it.
    pub fn send(&mut self, at: Time, path: MediaChannel, bytes: &[u8]) {
        let pushed = RingPacket::new(at, path, bytes).is_some_and(|packet| self.from_call.push(packet).is_ok());
        self.dropped += u64::from(!pushed);
        self.task.wake_by_ref();
    }

    /// Wakes the other end.
    pub fn wake(&self) {
        self.task.wake_by_ref();
    }

    /// Returns the number of packets that the other end did not take in time, or that are too long.
    pub fn lost_packets(&self) -> u64 {
        self.dropped
    }
}

/// The other end of the rings: the side of the channel's task.
pub struct PacketPeer {
    to_call: Producer<RingPacket>,
    from_call: Consumer<RingPacket>,
    dropped: u64,
}

/// Returns a pair of ends; `task` is woken when the call has sent something.
pub fn packet_rings(task: Waker) -> (PacketRings, PacketPeer) {
    let (to_call, at_call) = RingBuffer::new(PACKETS);
    let (from_call, at_peer) = RingBuffer::new(PACKETS);
    let rings = PacketRings { to_call: at_call, from_call, task, dropped: 0 };
    (rings, PacketPeer { to_call, from_call: at_peer, dropped: 0 })
}

impl PacketPeer {
    /// True when the call takes another packet now.
    pub fn has_space(&self) -> bool {
        !self.to_call.is_full()
    }

    /// Hands a packet of the other side to the call. Returns false when it was dropped.
    pub fn receive(&mut self, at: Time, path: MediaChannel, bytes: &[u8]) -> bool {
        let pushed = RingPacket::new(at, path, bytes).is_some_and(|packet| self.to_call.push(packet).is_ok());
        self.dropped += u64::from(!pushed);
        pushed
    }

    /// Returns the next packet of the call.
    pub fn next_packet(&mut self) -> Option<RingPacket> {
        self.from_call.pop().ok()
    }

    /// Returns the number of packets that the call did not take in time, or that are too long.
    pub fn lost_packets(&self) -> u64 {
        self.dropped
    }

    /// True when the media thread's end is gone.
    pub fn is_abandoned(&self) -> bool {
        self.to_call.is_abandoned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn packets_pass_in_order_and_the_task_is_woken() {
        let woken = Arc::<Woken>::default();
        let (mut rings, mut peer) = packet_rings(woken.clone().into());
        rings.send(Time(1), MediaChannel::Rtp, &[7; 12]);
        rings.send(Time(2), MediaChannel::Rtcp, &[8; MAX_BYTES]);
        rings.send(Time(3), MediaChannel::Rtp, &[9; MAX_BYTES + 1]);
        assert_eq!((woken.0.load(Ordering::Relaxed), rings.lost_packets()), (3, 1));
        let sent: Vec<_> = std::iter::from_fn(|| peer.next_packet()).map(|p| (p.at, p.path, p.bytes().len())).collect();
        assert_eq!(sent, [(Time(1), MediaChannel::Rtp, 12), (Time(2), MediaChannel::Rtcp, MAX_BYTES)]);
    }

    #[test]
    fn packets_that_nobody_takes_are_counted() {
        let (mut rings, mut peer) = packet_rings(Arc::<Woken>::default().into());
        for _ in 0..20 {
            rings.send(Time(1), MediaChannel::Rtp, &[1; 60]);
            peer.receive(Time(1), MediaChannel::Rtp, &[1; 60]);
        }
        assert_eq!((rings.lost_packets(), peer.lost_packets()), (4, 4));
        assert!(!peer.is_abandoned());
        drop(rings);
        assert!(peer.is_abandoned());
    }
}
