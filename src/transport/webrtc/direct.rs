//! Media of a peer connection in the media thread: once a connection is up, packets are sealed, opened, sent and
//! received there, past the library. Before that, and over relays, whose datagrams the library wraps, they pass between
//! the call and the library by rings, which the [`super::Pump`] empties.
//!
//! A connection that was taken over stays with the media thread: no index of secure RTP may be used twice under one key
//! (RFC 3711 9.1), and the library does not learn which ones were.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringer_media::call::{MediaChannel, Quality};
use ringer_media::packet_rings::{MAX_BYTES, PacketRings};
use ringer_media::rtp::rtcp;
use ringer_media::rtp::srtp::{MAX_DATAGRAM, MAX_OVERHEAD, Secure};
use ringer_media::time::Time;
use rtrb::{Consumer, Producer, RingBuffer};

use super::sources::{exchange_reported, exchange_reporters, exchange_source};
use super::tap::Counts;
use super::voices::Voices;
use crate::sockets::Batch;

/// Orders that may wait for the media thread, which takes them in each tick.
const ORDERS: usize = 32;

/// Datagrams of one tick, in batches: 64, for one packet of 20 ms. The rest waits in the kernel, so that a flood delays
/// no other call.
pub const MAX_BATCHES: usize = 8;

/// Types of reports, where they share a port with media (RFC 5761 4).
const REPORTS: std::ops::RangeInclusive<u8> = 192..=223;

/// Use of a connection in a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The call's media leave by it, and come by it unless there is another one for that.
    Main,
    /// The call's media come by it alone.
    Ear,
}

impl Role {
    /// Both uses of connections, in the order in which they are served.
    pub const ALL: [Role; 2] = [Role::Main, Role::Ear];
}

/// Order to the media thread's end.
pub(super) enum DirectOrder {
    /// The media of this use pass here from now on.
    Take(Role, Box<Direct>),
    /// The other side is at this address, by this socket if it is another one.
    Route(Role, Option<UdpSocket>, SocketAddr),
    /// The connection of this use is replaced; the media pass by the rings until the next one is taken.
    Leave(Role),
    /// These tracks are heard, and nothing else.
    Hear(Box<Voices>),
}

/// Something that the media thread does not free itself.
pub(super) enum Retired {
    Direct(#[expect(dead_code, reason = "only dropped")] Box<Direct>),
    Socket(#[expect(dead_code, reason = "only dropped")] UdpSocket),
    Voices(#[expect(dead_code, reason = "only dropped")] Box<Voices>),
}

/// State of a connection in the media thread, as its task sees it.
#[derive(Debug, Default)]
pub(super) struct Passing {
    /// True as long as the task of the connection lets media flow.
    pub(super) flows: AtomicBool,
    /// True as long as there is a path that the other side has consented to.
    pub(super) has_path: AtomicBool,
    pub(super) counts: Arc<Counts>,
}

/// A connection whose media pass by the media thread, as it is handed over.
pub struct Direct {
    pub(super) socket: UdpSocket,
    pub(super) to: SocketAddr,
    pub(super) secure: Secure,
    /// Source that the session description has (RFC 3550 5.1).
    pub(super) wire: [u8; 4],
    /// Source of the call's leg, once it has sent.
    pub(super) leg: Option<[u8; 4]>,
    /// Moment up to which the packets that the library has opened are known to [`Direct::secure`].
    pub(super) since: Time,
    pub(super) passing: Arc<Passing>,
}

impl Direct {
    /// Seals and sends a packet of the call. A full buffer or an unreachable far side is a lost packet.
    fn send(&mut self, path: MediaChannel, bytes: &[u8]) {
        match path {
            MediaChannel::Rtp => {
                let mut packet = [0; MAX_BYTES + MAX_OVERHEAD];
                let Some(plain) = packet.get_mut(..bytes.len()).filter(|_| bytes.len() <= MAX_BYTES) else { return };
                plain.copy_from_slice(bytes);
                self.leg = exchange_source(plain, self.wire).or(self.leg);
                let len = self.secure.protect(&mut packet, bytes.len());
                let _ = self.socket.send_to(&packet[..len], self.to);
                self.passing.counts.sent.fetch_add(1, Ordering::Relaxed);
            }
            MediaChannel::Rtcp => {
                let mut report = [0; rtcp::LONGEST];
                let Some(plain) = report.get_mut(..bytes.len()) else { return };
                plain.copy_from_slice(bytes);
                exchange_reporters(plain, self.wire);
                let _ = self.socket.send_to(self.secure.protect_report(plain), self.to);
            }
        }
    }

    /// Opens a datagram in `buffer`. Returns the packet as the call's leg takes it; `None` for one that is not of the
    /// other side, or came already, which is counted.
    fn open<'b>(
        &mut self,
        at: Time,
        datagram: &[u8],
        buffer: &'b mut [u8; MAX_DATAGRAM],
    ) -> Option<(MediaChannel, &'b mut [u8])> {
        if datagram.get(1).is_some_and(|kind| REPORTS.contains(kind)) {
            let len = self.secure.open_report(datagram, buffer).ok()?.len();
            let report = &mut buffer[..len];
            if let Some(leg) = self.leg {
                exchange_reported(report, self.wire, leg);
            }
            return Some((MediaChannel::Rtcp, report));
        }
        let len = self.secure.open(datagram, buffer).ok()?.len();
        self.passing.counts.receive(at);
        Some((MediaChannel::Rtp, &mut buffer[..len]))
    }
}

/// Media of one call over WebRTC, as its media thread reads and writes them.
pub struct PeerMedia {
    rings: PacketRings,
    orders: Consumer<DirectOrder>,
    retired: Producer<Retired>,
    main: Option<Box<Direct>>,
    ear: Option<Box<Direct>>,
    /// Tracks that are heard; `None`: all that comes is.
    voices: Option<Box<Voices>>,
    /// Packets of the call that came while no media may flow.
    held_back: u64,
    /// Datagrams that no owner of the key made, of connections that were replaced.
    forged: u64,
}

/// The end of the task.
pub struct PeerWay {
    pub(super) orders: Producer<DirectOrder>,
    pub(super) retired: Consumer<Retired>,
}

/// Returns both ends of a call's media; packets pass by `rings` until the media thread takes a connection over.
pub fn peer_media(rings: PacketRings) -> (PeerMedia, PeerWay) {
    let (orders, to_do) = RingBuffer::new(ORDERS);
    let (retired, to_drop) = RingBuffer::new(2 * ORDERS);
    let (main, ear, voices) = (None, None, None);
    let media = PeerMedia { rings, orders: to_do, retired, main, ear, voices, held_back: 0, forged: 0 };
    (media, PeerWay { orders, retired: to_drop })
}

impl PeerMedia {
    /// Takes orders of the connection's task, to be called in each tick.
    pub fn take_orders(&mut self) {
        while let Ok(order) = self.orders.pop() {
            match order {
                DirectOrder::Take(role, direct) => {
                    self.leave(role);
                    *self.of(role) = Some(direct);
                }
                DirectOrder::Route(role, socket, to) => {
                    let Some(direct) = self.of(role) else { continue };
                    direct.to = to;
                    if let Some(socket) = socket {
                        let before = std::mem::replace(&mut direct.socket, socket);
                        self.retire(Retired::Socket(before));
                    }
                }
                DirectOrder::Leave(role) => self.leave(role),
                DirectOrder::Hear(mut voices) => {
                    if let Some(mut before) = self.voices.take() {
                        voices.go_on_from(&mut before);
                        self.retire(Retired::Voices(before));
                    }
                    self.voices = Some(voices);
                }
            }
        }
    }

    fn of(&mut self, role: Role) -> &mut Option<Box<Direct>> {
        match role {
            Role::Main => &mut self.main,
            Role::Ear => &mut self.ear,
        }
    }

    fn leave(&mut self, role: Role) {
        if let Some(direct) = self.of(role).take() {
            self.forged += direct.secure.forged_count();
            self.retire(Retired::Direct(direct));
        }
    }

    fn retire(&mut self, retired: Retired) {
        // Each order retires one thing at most, and the ring holds those of twice as many as may wait.
        drop(self.retired.push(retired));
        self.rings.wake();
    }

    /// Sends a packet of the call that is due at `at`.
    pub fn send(&mut self, at: Time, path: MediaChannel, bytes: &[u8]) {
        match &mut self.main {
            // The library drops packets that have no path, too, and so do networks.
            Some(direct) if !direct.passing.has_path.load(Ordering::Relaxed) => {}
            Some(direct) if direct.passing.flows.load(Ordering::Relaxed) => direct.send(path, bytes),
            Some(_) => self.held_back += 1,
            None => self.rings.send(at, path, bytes),
        }
    }

    /// Takes the next packet that the library has opened. Packets for the call's leg go to `hand`. Returns false if
    /// there is none.
    pub fn take_opened(&mut self, hand: &mut dyn FnMut(MediaChannel, Time, &[u8])) -> bool {
        let Some(mut packet) = self.rings.next_packet() else { return false };
        // It may be of a track that was ordered with it.
        self.take_orders();
        let (path, at) = (packet.path, packet.at);
        if path == MediaChannel::Rtp {
            // A later one has come by another port, and perhaps by this one too.
            let taken = if self.ear.is_some() { &mut self.ear } else { &mut self.main };
            if taken.as_mut().is_some_and(|direct| at > direct.since && !direct.secure.take(packet.bytes())) {
                return true;
            }
        }
        pass(&mut self.voices, Role::Main, (path, packet.bytes_mut()), &mut |bytes| hand(path, at, bytes), at);
        true
    }

    /// Reads datagrams of the connection of this use, at most a batch. Returns their number.
    pub fn read_batch(&self, role: Role, batch: &mut Batch) -> usize {
        let direct = if role == Role::Main { &self.main } else { &self.ear };
        direct.as_ref().map_or(0, |direct| batch.fill_from(&direct.socket))
    }

    /// Opens a datagram that came at `at` in `buffer`. Packets for the call's leg go to `hand`. There is none if the
    /// datagram is not of the other side, which is counted, or of nobody who is heard.
    pub fn take_datagram(
        &mut self,
        role: Role,
        at: Time,
        datagram: &[u8],
        buffer: &mut [u8; MAX_DATAGRAM],
        hand: &mut dyn FnMut(MediaChannel, &[u8]),
    ) {
        let leg = self.main.as_ref().and_then(|direct| direct.leg);
        let Some(direct) = self.of(role) else { return };
        direct.leg = leg.or(direct.leg);
        let Some((path, bytes)) = direct.open(at, datagram, buffer) else { return };
        pass(&mut self.voices, role, (path, bytes), &mut |bytes| hand(path, bytes), at);
    }

    /// Adds what was counted to the figures of the call.
    pub fn add_to(&self, quality: &mut Quality) {
        quality.late_frames += self.rings.lost_packets() + self.held_back;
        let directs = [&self.main, &self.ear].into_iter().flatten();
        quality.unprotected += self.forged + directs.map(|direct| direct.secure.forged_count()).sum::<u64>();
    }
}

/// Gives `hand` the packets of the stream that is heard, and reports of whoever is heard or of the server.
fn pass(
    voices: &mut Option<Box<Voices>>,
    role: Role,
    (path, bytes): (MediaChannel, &mut [u8]),
    hand: &mut dyn FnMut(&[u8]),
    at: Time,
) {
    let Some(voices) = voices else { return hand(bytes) };
    if path == MediaChannel::Rtp {
        return voices.take(at, bytes, hand);
    }
    let sender = bytes.get(4..8).and_then(|four| four.first_chunk::<4>()).map(|four| u32::from_be_bytes(*four));
    let is_wanted = role == Role::Main || sender.is_some_and(|sender| voices.has(sender));
    if is_wanted && voices.take_report(bytes) {
        hand(bytes);
    }
}

#[cfg(test)]
mod tests;
