//! Packets between the rings of a call and its peer connection. The call's leg has drawn a source of its own (RFC 3550
//! 8.1); on the wire the source is the one of the session description, so it is exchanged here in both directions.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use ringer_base::clock::monotonic;
use ringer_media::call::MediaChannel;
use ringer_media::call::pacing::Pacing;
use ringer_media::packet_rings::PacketPeer;
use tokio::sync::{Notify, mpsc};

use super::{Arrived, MediaPeer};

/// Time after which a packet that did not fit is tried again, where the call sends nothing that would wake the pump.
const AGAIN: Duration = Duration::from_millis(20);

/// Lateness from which on a packet counts as late.
const LATE: Duration = Duration::from_millis(20);

/// Bytes of a report block (RFC 3550 6.4.1).
const BLOCK: usize = 24;

/// The bell by which a media thread wakes the task of a channel.
#[derive(Debug, Default)]
pub struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl Bell {
    /// Returns the media thread's end.
    pub fn waker(self: &Arc<Bell>) -> Waker {
        self.clone().into()
    }
}

/// The pump of one call; it outlives a peer connection that is replaced.
pub struct Pump {
    rings: PacketPeer,
    bell: Arc<Bell>,
    /// Source of the call's leg, once it has sent.
    leg: Option<[u8; 4]>,
    /// Packet that waits for space. A network that was held up brings many at once, and those behind it wait in their
    /// queue.
    waiting: Option<Arrived>,
    pacing: Pacing,
    late: u64,
}

/// Figures of a pump since it began.
#[derive(Clone, Debug, Default)]
pub struct PumpFigures {
    /// Time between the moment at which a packet was due and the one at which it left.
    pub pacing: Pacing,
    /// Packets that left more than 20 ms late.
    pub late: u64,
    /// Packets of the other side that the call did not take in time.
    pub lost: u64,
}

impl Pump {
    /// Returns a pump of the rings that `bell` was given to.
    pub fn new(rings: PacketPeer, bell: Arc<Bell>) -> Pump {
        Pump { rings, bell, leg: None, waiting: None, pacing: Pacing::default(), late: 0 }
    }

    /// Moves packets both ways until the connection tells no more of them. It can be dropped and begun anew at any
    /// time.
    pub async fn run(&mut self, peer: &dyn MediaPeer, packets: &mut mpsc::Receiver<Arrived>) {
        let wire = peer.ssrc().to_be_bytes();
        loop {
            self.send_all(peer, wire).await;
            if self.rings.has_space()
                && let Some(arrived) = self.waiting.take()
            {
                self.receive(arrived, wire);
            }
            tokio::select! {
                arrived = packets.recv(), if self.waiting.is_none() => match arrived {
                    Some(arrived) if self.rings.has_space() => self.receive(arrived, wire),
                    Some(arrived) => self.waiting = Some(arrived),
                    None => return,
                },
                () = self.bell.0.notified() => {}
                () = tokio::time::sleep(AGAIN), if self.waiting.is_some() => {}
            }
        }
    }

    /// Returns the figures up to now.
    pub fn figures(&self) -> PumpFigures {
        PumpFigures { pacing: self.pacing.clone(), late: self.late, lost: self.rings.lost_packets() }
    }

    async fn send_all(&mut self, peer: &dyn MediaPeer, wire: [u8; 4]) {
        while let Some(mut packet) = self.rings.next_packet() {
            let sent = match packet.path {
                MediaChannel::Rtp => {
                    self.leg = exchange_source(packet.bytes_mut(), wire).or(self.leg);
                    let late = monotonic().since(packet.at);
                    self.pacing.record_sent(late);
                    self.late += u64::from(late > LATE);
                    peer.send_packet(packet.bytes()).await
                }
                MediaChannel::Rtcp => {
                    exchange_reporters(packet.bytes_mut(), wire);
                    peer.send_report(packet.bytes()).await
                }
            };
            if let Err(fault) = sent {
                tracing::debug!(%fault, "a packet was not sent");
            }
        }
    }

    fn receive(&mut self, mut arrived: Arrived, wire: [u8; 4]) {
        let path = if arrived.is_report { MediaChannel::Rtcp } else { MediaChannel::Rtp };
        if let Some(leg) = self.leg.filter(|_| arrived.is_report) {
            exchange_reported(&mut arrived.bytes, wire, leg);
        }
        self.rings.receive(arrived.at, path, &arrived.bytes);
    }
}

/// Writes `source` into an RTP packet. Returns the one that was there.
fn exchange_source(rtp: &mut [u8], source: [u8; 4]) -> Option<[u8; 4]> {
    let field = rtp.get_mut(8..12)?.first_chunk_mut::<4>()?;
    Some(std::mem::replace(field, source))
}

/// Writes `source` as the sender of each report of a compound packet.
fn exchange_reporters(rtcp: &mut [u8], source: [u8; 4]) {
    for_each_report(rtcp, |report| {
        if let Some(field) = report.get_mut(4..8) {
            field.copy_from_slice(&source);
        }
    });
}

/// Makes `to` of the source `from` in the report blocks of a compound packet.
fn exchange_reported(rtcp: &mut [u8], from: [u8; 4], to: [u8; 4]) {
    for_each_report(rtcp, |report| {
        let blocks_at = match report[1] {
            // Sender reports and receiver reports (RFC 3550 6.4).
            200 => 28,
            201 => 8,
            _ => return,
        };
        let count = usize::from(report[0] & 0x1f);
        let blocks = report.get_mut(blocks_at..).unwrap_or_default().chunks_exact_mut(BLOCK).take(count);
        blocks.filter(|block| block[..4] == from).for_each(|block| block[..4].copy_from_slice(&to));
    });
}

/// Calls `each` with every report of a compound packet (RFC 3550 6.1).
fn for_each_report(mut rtcp: &mut [u8], mut each: impl FnMut(&mut [u8])) {
    while rtcp.len() >= 4 {
        let len = (usize::from(u16::from_be_bytes([rtcp[2], rtcp[3]])) + 1) * 4;
        let Some((report, rest)) = std::mem::take(&mut rtcp).split_at_mut_checked(len) else { return };
        each(report);
        rtcp = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sender report with one block, and a source description behind it.
    fn compound(sender: u8, reported: u8) -> Vec<u8> {
        let mut bytes = vec![0x81, 200, 0, 12];
        bytes.extend([sender; 4]);
        bytes.extend([0; 20]);
        bytes.extend([reported; 4]);
        bytes.extend([0; 20]);
        bytes.extend([0x81, 202, 0, 2]);
        bytes.extend([sender; 4]);
        bytes.extend([1, 1, b'x', 0]);
        bytes
    }

    #[test]
    fn the_source_on_the_wire_is_the_described_one() {
        let mut rtp = vec![0x80; 20];
        assert_eq!(exchange_source(&mut rtp, [9; 4]), Some([0x80; 4]));
        assert_eq!(rtp[8..12], [9; 4]);
        assert_eq!(exchange_source(&mut rtp[..11], [9; 4]), None);
        let mut sent = compound(1, 2);
        exchange_reporters(&mut sent, [7; 4]);
        assert_eq!(sent, compound(7, 2));
        let mut came = compound(1, 7);
        exchange_reported(&mut came, [7; 4], [3; 4]);
        assert_eq!(came, compound(1, 3));
        exchange_reported(&mut came, [7; 4], [3; 4]);
        assert_eq!(came, compound(1, 3), "a block about another source stays");
    }

    #[test]
    fn broken_reports_end_at_their_end() {
        for len in 0..compound(1, 7).len() {
            let mut cut = compound(1, 7)[..len].to_vec();
            exchange_reported(&mut cut, [7; 4], [3; 4]);
            exchange_reporters(&mut cut, [5; 4]);
        }
        let mut lying = vec![0x9f, 201, 0, 1, 1, 1, 1, 1];
        exchange_reported(&mut lying, [7; 4], [3; 4]);
        assert_eq!(lying, [0x9f, 201, 0, 1, 1, 1, 1, 1]);
    }
}
