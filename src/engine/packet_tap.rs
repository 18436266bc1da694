//! Every datagram of a call's media ports, on its way into a packet capture that grows while the call runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringer_media::call::MediaChannel;
use ringer_transport::capture::{Datagram, head};
use ringer_transport::sockets::MediaSockets;
use rtrb::Producer;

/// Longest block of a datagram that is written without allocating.
const BLOCK_BYTES: usize = 2200;

/// The media thread's end.
pub(super) struct PacketTap {
    ring: Producer<u8>,
    block: Vec<u8>,
    /// Local and remote address, of RTP and of RTCP; `None` before they are known.
    ends: Option<[(SocketAddr, SocketAddr); 2]>,
    missing: Arc<AtomicU64>,
}

impl PacketTap {
    /// Returns a capture that goes into `ring`. What does not fit there is counted in `missing`.
    pub(crate) fn new(mut ring: Producer<u8>, missing: Arc<AtomicU64>) -> PacketTap {
        // An empty ring has space for the head.
        let _ = ring.push_entire_slice(&head());
        PacketTap { ring, block: Vec::with_capacity(BLOCK_BYTES), ends: None, missing }
    }

    /// Notes the addresses that the sockets are connected to now.
    pub(crate) fn connect(&mut self, sockets: &MediaSockets, rtp: SocketAddr, rtcp: SocketAddr) {
        let own = |report, media| if rtp == rtcp { media } else { report };
        self.ends = sockets.addresses().map(|[media, report]| [(media, rtp), (own(report, media), rtcp)]).ok();
    }

    /// Notes the addresses between which packets of both kinds pass now.
    pub(crate) fn between(&mut self, here: SocketAddr, there: SocketAddr) {
        self.ends = Some([(here, there); 2]);
    }

    /// Captures a datagram that was sent.
    pub(crate) fn capture_sent(&mut self, path: MediaChannel, at_ns: u64, payload: &[u8]) {
        self.write(path, at_ns, payload, |(here, there)| (here, there));
    }

    /// Captures a datagram that was received.
    pub(crate) fn capture_received(&mut self, path: MediaChannel, at_ns: u64, payload: &[u8]) {
        self.write(path, at_ns, payload, |(here, there)| (there, here));
    }

    fn write(
        &mut self,
        path: MediaChannel,
        at_ns: u64,
        payload: &[u8],
        from_to: impl Fn((SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr),
    ) {
        let Some([rtp, rtcp]) = self.ends else { return };
        let (from, to) = from_to(match path {
            MediaChannel::Rtp => rtp,
            MediaChannel::Rtcp => rtcp,
        });
        self.block.clear();
        Datagram { at_us: at_ns / 1000, from, to, payload }.write(&mut self.block);
        if self.ring.push_entire_slice(&self.block).is_err() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }
}
