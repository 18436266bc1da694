//! Datagrams that the task of a call has made: of handshakes.

use ringer_media::call::MediaChannel;
use ringer_media::time::Time;
use ringer_transport::path::MediaPath;

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
}
