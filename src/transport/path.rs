//! Media of a call as its media thread reads and writes them: UDP sockets, or rings of frames to a task that speaks a
//! message protocol, or a peer connection.

use ringer_base::config::SymmetricRtp;
use ringer_media::call::Quality;
use ringer_media::rings::FrameRings;

use super::sockets::MediaSockets;
use super::webrtc::PeerMedia;

/// Media of one call, as a media thread sees it.
pub enum MediaPath {
    /// RTP and RTCP over UDP.
    Udp(MediaSockets),
    /// Rings of PCM frames.
    Rings(FrameRings),
    /// RTP packets and reports of a peer connection.
    Peer(Box<PeerMedia>),
}

impl MediaPath {
    /// Adds what was counted at the end of a call to its figures.
    pub fn add_to(&mut self, quality: &mut Quality) {
        match self {
            MediaPath::Udp(sockets) => {
                sockets.look_at_strangers(SymmetricRtp::Off);
                quality.foreign_address = sockets.foreign_datagrams();
            }
            MediaPath::Rings(rings) => quality.late_frames += rings.lost_frames(),
            MediaPath::Peer(media) => media.add_to(quality),
        }
    }
}
