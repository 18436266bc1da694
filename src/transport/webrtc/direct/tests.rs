//! Packets that a media thread seals, opens, sends and receives, in virtual time.

use std::net::Ipv4Addr;

use ringer_media::codec::opus::Opus;
use ringer_media::packet_rings::{PacketPeer, packet_rings};
use ringer_media::rtp::srtp::{MasterKey, Opener, Protector, SrtpParams, Suite};

use super::*;
use crate::webrtc::voices::{Track, Tracks};

/// Source of the session description, and that of the call's leg.
const WIRE: [u8; 4] = [0, 0, 0, 9];
const LEG: [u8; 4] = [7; 4];

/// The other side of a connection.
struct Far {
    socket: UdpSocket,
    protector: Protector,
    opener: Opener,
    here: SocketAddr,
}

impl Far {
    fn datagram(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 2048];
        let len = self.socket.recv(&mut bytes).expect("a datagram");
        bytes.truncate(len);
        bytes
    }

    fn seal(&mut self, source: u32, sequence: u16) -> Vec<u8> {
        let plain = rtp(source.to_be_bytes(), sequence);
        let mut bytes = plain.clone();
        bytes.resize(plain.len() + MAX_OVERHEAD, 0);
        let len = self.protector.protect(&mut bytes, plain.len());
        bytes.truncate(len);
        bytes
    }

    fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.here).expect("it is sent");
    }
}

/// The media of a call, and the ends of its task.
struct Near {
    media: PeerMedia,
    way: PeerWay,
    library: PacketPeer,
    batch: Batch,
}

impl Near {
    fn new() -> Near {
        let (rings, library) = packet_rings(std::task::Waker::noop().clone());
        let (media, way) = peer_media(rings);
        Near { media, way, library, batch: Batch::default() }
    }

    fn order(&mut self, order: DirectOrder) {
        assert!(self.way.orders.push(order).is_ok(), "there is space");
    }

    /// Does what a tick does. Returns the numbers and sources of the packets that the call gets, and the reports.
    fn tick(&mut self) -> Vec<(u16, u32)> {
        self.media.take_orders();
        let mut heard = Vec::new();
        let mut hear = |path: MediaChannel, bytes: &[u8]| {
            let word = |at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().expect("a header"));
            heard.push(match path {
                MediaChannel::Rtp => (u16::from_be_bytes([bytes[2], bytes[3]]), word(8)),
                MediaChannel::Rtcp => (0, word(4)),
            });
        };
        while self.media.take_opened(&mut |path, _, bytes| hear(path, bytes)) {}
        let mut buffer = [0; MAX_DATAGRAM];
        for role in Role::ALL {
            for number in 0..self.media.read_batch(role, &mut self.batch) {
                let (_, datagram) = self.batch.message(number);
                self.media.take_datagram(role, Time(1), datagram, &mut buffer, &mut hear);
            }
        }
        heard
    }

    fn unprotected_count(&self) -> u64 {
        let mut quality = Quality::default();
        self.media.add_to(&mut quality);
        quality.unprotected
    }
}

fn key(suite: Suite, fill: u8) -> MasterKey {
    MasterKey::new(suite, &vec![fill; 16 + suite.salt_bytes()]).expect("its length is right")
}

/// Returns a connection under keys that `fill` tells apart, and its other side.
fn connection(suite: Suite, fill: u8) -> (Box<Direct>, Far) {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let (near, far) = (bind(), bind());
    near.set_nonblocking(true).expect("it can");
    let address = |socket: &UdpSocket| socket.local_addr().expect("it is bound");
    let (here, to) = (address(&near), address(&far));
    let (send, receive) = (key(suite, fill), key(suite, fill + 1));
    let passing = Passing { flows: true.into(), has_path: true.into(), counts: Arc::default() };
    let direct = Direct {
        socket: near,
        to,
        secure: Secure::new(&SrtpParams { suite, send, receive }),
        wire: WIRE,
        leg: None,
        since: Time(0),
        passing: Arc::new(passing),
    };
    let (protector, opener) = (Protector::new(suite, &receive), Opener::new(suite, &send));
    (Box::new(direct), Far { socket: far, protector, opener, here })
}

fn rtp(source: [u8; 4], sequence: u16) -> Vec<u8> {
    let [high, low] = sequence.to_be_bytes();
    [&[0x80, 111, high, low, 0, 0, 0, 0][..], &source, &[5; 40]].concat()
}

/// Returns a receiver report of `sender` about `about`.
fn report(sender: [u8; 4], about: [u8; 4]) -> Vec<u8> {
    [&[0x81, 201, 0, 7][..], &sender, &about, &[0; 20]].concat()
}

#[test]
fn packets_are_sealed_and_opened_in_the_tick() {
    for suite in Suite::ALL {
        let (direct, mut far) = connection(suite, 1);
        let mut near = Near::new();
        near.order(DirectOrder::Take(Role::Main, direct));
        near.tick();
        near.media.send(Time(1), MediaChannel::Rtp, &rtp(LEG, 500));
        let mut datagram = far.datagram();
        assert_eq!(
            far.opener.open(&mut datagram),
            Ok(&rtp(WIRE, 500)[..]),
            "{suite:?}: the source is the described one"
        );
        near.media.send(Time(1), MediaChannel::Rtcp, &report(LEG, [3; 4]));
        let mut datagram = far.datagram();
        assert_eq!(far.opener.open_report(&mut datagram), Ok(&report(WIRE, [3; 4])[..]), "{suite:?}");
        assert!(near.library.next_packet().is_none(), "the library gets nothing");
        let first = far.seal(3, 65_535);
        far.send(&first);
        let second = far.seal(3, 0);
        far.send(&second);
        assert_eq!(near.tick(), [(65_535, 3), (0, 3)], "{suite:?}");
        let plain = report([3; 4], WIRE);
        let mut bytes = [&plain[..], &[0; MAX_OVERHEAD]].concat();
        let len = far.protector.protect_report(&mut bytes, plain.len());
        far.send(&bytes[..len]);
        near.media.take_orders();
        let mut heard = Vec::new();
        assert_eq!(near.media.read_batch(Role::Main, &mut near.batch), 1);
        let hand = &mut |path, bytes: &[u8]| heard.push((path, bytes.to_vec()));
        near.media.take_datagram(Role::Main, Time(1), near.batch.message(0).1, &mut [0; MAX_DATAGRAM], hand);
        assert_eq!(heard, [(MediaChannel::Rtcp, report([3; 4], LEG))], "the leg knows its own source alone");
    }
}

#[test]
fn replayed_and_forged_packets_are_dropped_and_counted() {
    let (direct, mut far) = connection(Suite::AeadAes128Gcm, 1);
    let (_, mut stranger) = connection(Suite::AeadAes128Gcm, 50);
    let counts = direct.passing.counts.clone();
    let mut near = Near::new();
    near.order(DirectOrder::Take(Role::Main, direct));
    let packet = far.seal(3, 1);
    let mut tampered = far.seal(3, 2);
    tampered[20] ^= 1;
    let forged = stranger.seal(3, 3);
    for datagram in [&packet, &packet, &tampered, &forged, &rtp([3; 4], 4), &vec![0x80; 3]] {
        far.send(datagram);
    }
    assert_eq!(near.tick(), [(1, 3)]);
    assert_eq!(near.unprotected_count(), 4);
    assert_eq!(near.media.main.as_ref().expect("it is there").secure.replayed_count(), 1);
    assert_eq!(counts.received.load(Ordering::Relaxed), 1);
    // What is counted stays counted when the connection is replaced.
    near.order(DirectOrder::Leave(Role::Main));
    near.tick();
    assert_eq!(near.unprotected_count(), 4);
    assert!(near.way.retired.pop().is_ok(), "its end is for the task");
}

#[test]
fn packets_from_before_the_keys_pass_by_the_library() {
    let (direct, mut far) = connection(Suite::AesCm128HmacSha1_80, 1);
    let mut near = Near::new();
    near.media.send(Time(1), MediaChannel::Rtp, &rtp(LEG, 1));
    near.library.receive(Time(1), MediaChannel::Rtp, &rtp([3; 4], 1));
    // It waits in the kernel.
    let early = far.seal(0x0303_0303, 2);
    far.send(&early);
    assert_eq!(near.tick(), [(1, 0x0303_0303)], "the library has opened it");
    let sent = near.library.next_packet().expect("the library sends it");
    assert_eq!(sent.bytes(), rtp(LEG, 1));
    near.order(DirectOrder::Take(Role::Main, direct));
    assert_eq!(near.tick(), [(2, 0x0303_0303)]);
}

#[test]
fn a_packet_that_came_by_two_ports_is_heard_once() {
    let (mut direct, mut far) = connection(Suite::AesCm128HmacSha1_80, 1);
    direct.since = Time(10);
    let mut near = Near::new();
    near.order(DirectOrder::Take(Role::Main, direct));
    for (at, number) in [(9, 1), (11, 2), (11, 2)] {
        near.library.receive(Time(at), MediaChannel::Rtp, &rtp([0, 0, 0, 3], number));
    }
    let again = [far.seal(3, 2), far.seal(3, 3)];
    again.iter().for_each(|datagram| far.send(datagram));
    assert_eq!(near.tick(), [(1, 3), (2, 3), (3, 3)]);
}

#[test]
fn another_connection_has_keys_of_its_own() {
    let (first, mut old) = connection(Suite::AeadAes128Gcm, 1);
    let (second, mut new) = connection(Suite::AeadAes128Gcm, 10);
    let flows = first.passing.clone();
    let mut near = Near::new();
    near.order(DirectOrder::Take(Role::Main, first));
    near.tick();
    // It is lost: nothing leaves any more. What has no path is not late.
    flows.has_path.store(false, Ordering::Relaxed);
    near.media.send(Time(1), MediaChannel::Rtp, &rtp(LEG, 0));
    flows.has_path.store(true, Ordering::Relaxed);
    flows.flows.store(false, Ordering::Relaxed);
    near.media.send(Time(1), MediaChannel::Rtp, &rtp(LEG, 1));
    old.socket.set_nonblocking(true).expect("it can");
    assert!(old.socket.recv(&mut [0; 9]).is_err());
    assert!(near.library.next_packet().is_none(), "no number is used twice");
    near.order(DirectOrder::Leave(Role::Main));
    near.order(DirectOrder::Take(Role::Main, second));
    let (of_old, of_new) = (old.seal(3, 5), new.seal(4, 6));
    let (here, there) = (new.here, old.here);
    assert_ne!(here, there);
    new.send(&of_old);
    new.send(&of_new);
    assert_eq!(near.tick(), [(6, 4)]);
    near.media.send(Time(1), MediaChannel::Rtp, &rtp(LEG, 2));
    let mut datagram = new.datagram();
    assert_eq!(new.opener.open(&mut datagram), Ok(&rtp(WIRE, 2)[..]));
    let mut quality = Quality::default();
    near.media.add_to(&mut quality);
    assert_eq!((quality.late_frames, quality.unprotected), (1, 1));
}

#[test]
fn the_other_side_may_move() {
    let (direct, mut far) = connection(Suite::AeadAes128Gcm, 1);
    let (elsewhere, mut moved) = connection(Suite::AeadAes128Gcm, 20);
    let mut near = Near::new();
    near.order(DirectOrder::Take(Role::Main, direct));
    let to = moved.socket.local_addr().expect("it is bound");
    near.order(DirectOrder::Route(Role::Main, Some(elsewhere.socket), to));
    near.tick();
    near.media.send(Time(1), MediaChannel::Rtp, &rtp(LEG, 1));
    let mut datagram = moved.datagram();
    assert_eq!(far.opener.open(&mut datagram), Ok(&rtp(WIRE, 1)[..]), "the keys stay");
    let datagram = far.seal(3, 9);
    moved.send(&datagram);
    assert_eq!(near.tick(), [(9, 3)]);
}

#[test]
fn of_a_room_the_agent_alone_is_heard() {
    let (main, _publisher) = connection(Suite::AeadAes128Gcm, 1);
    let (ear, mut far) = connection(Suite::AeadAes128Gcm, 10);
    let mut near = Near::new();
    let mut tracks = Tracks::default();
    let heard_at = Arc::default();
    for order in [DirectOrder::Take(Role::Main, main), DirectOrder::Take(Role::Ear, ear)] {
        near.order(order);
    }
    near.order(DirectOrder::Hear(Box::new(Voices::new(&tracks, Arc::clone(&heard_at), &Opus::default()))));
    let first = far.seal(3, 1);
    far.send(&first);
    assert_eq!(near.tick(), [], "nobody is heard yet");
    tracks.set(vec![Track { sid: "a".into(), sources: vec![3], payload_type: 111 }]);
    near.order(DirectOrder::Hear(Box::new(Voices::new(&tracks, Arc::clone(&heard_at), &Opus::default()))));
    for (source, number) in [(4, 1), (3, 2), (4, 2), (3, 3)] {
        let datagram = far.seal(source, number);
        far.send(&datagram);
    }
    assert_eq!(near.tick(), [(2, 3), (3, 3)]);
    assert_eq!(heard_at.load(Ordering::Relaxed), 1);
    // The agent's next track goes on in the same stream.
    tracks.set(vec![Track { sid: "b".into(), sources: vec![4], payload_type: 111 }]);
    near.order(DirectOrder::Hear(Box::new(Voices::new(&tracks, heard_at, &Opus::default()))));
    let datagram = far.seal(4, 900);
    far.send(&datagram);
    assert_eq!(near.tick(), [(4, 3)]);
}
