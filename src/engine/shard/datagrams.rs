//! Datagrams of peer connections, and those that the task of a call has made: of handshakes.

use ringer_media::call::{Call, Input, MediaChannel};
use ringer_media::time::Time;
use ringer_transport::path::MediaPath;
use ringer_transport::webrtc::{MAX_BATCHES, Role};

use super::{CallNo, Shard};

impl Shard {
    /// Sends a datagram that is not of the call's making.
    pub(super) fn send_datagram(&mut self, no: CallNo, now: Time, path: MediaChannel, bytes: &[u8]) {
        let at_ns = self.kernel.wall_ns(now);
        let Some((_, _, live)) = self.find(no) else { return };
        let MediaPath::Udp(sockets) = &live.media else { return };
        match path {
            MediaChannel::Rtp => sockets.send_rtp(bytes),
            MediaChannel::Rtcp => sockets.send_rtcp(bytes),
        }
        live.packet_tap.iter_mut().for_each(|tap| tap.capture_sent(path, at_ns, bytes));
    }

    /// Hands the call the packets of its peer connection. Others wait in the rings and in the kernel as long as the
    /// call takes none.
    pub(super) fn receive_from_peer(&mut self, slot: usize, at: usize, now: Time) {
        let live = &mut *self.slots[slot][at];
        let MediaPath::Peer(peer) = &mut live.media else { return };
        peer.take_orders();
        let (call, packet_tap, kernel) = (&mut live.call, &mut live.packet_tap, &self.kernel);
        let mut hand = |call: &mut Call, path, arrived, bytes: &[u8]| {
            if let Some(packet_tap) = packet_tap {
                packet_tap.capture_received(path, kernel.wall_ns(arrived), bytes);
            }
            call.handle(now, Input::Packet { path, arrived, bytes });
        };
        while call.takes_packets() && peer.take_opened(&mut |path, at, bytes| hand(call, path, at, bytes)) {}
        for role in Role::ALL {
            for _ in 0..MAX_BATCHES {
                if !call.takes_packets() {
                    return;
                }
                let count = peer.read_batch(role, &mut self.batch);
                for number in 0..count {
                    let (kernel_ns, datagram) = self.batch.message(number);
                    let at = kernel.arrival(kernel_ns, now);
                    let hand = &mut |path, bytes: &[u8]| hand(call, path, at, bytes);
                    peer.take_datagram(role, at, datagram, &mut self.report, hand);
                }
                if count == 0 || !self.batch.is_full() {
                    break;
                }
            }
        }
    }
}
