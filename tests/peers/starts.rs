//! Each peer starts here and does what a test counts on.

use std::net::{Ipv4Addr, UdpSocket};

use super::{PATIENCE, Peer, TONE_HZ};

/// Returns a port that takes RTP, for calls whose media nobody looks at.
fn media() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = socket.local_addr().expect("it is bound").port();
    (socket, port)
}

/// Calls the peer by `fixtures/sip/CALLER.xml` and compares the logs of both.
fn check(peer: Peer, caller: &str, password: &str, heard: &str, said: &str) {
    let (_socket, port) = media();
    let caller = Peer::calling(caller, peer.sip, password, port);
    assert_eq!(caller.end().trim(), heard);
    let log = peer.end();
    assert!(log.contains(said), "{log}");
}

#[test]
fn sipp_answers_more_than_one_call() {
    let peer = Peer::answering(2);
    for _ in 0..2 {
        let (_socket, port) = media();
        assert_eq!(Peer::calling("caller", peer.sip, "", port).end().trim(), "answered");
    }
    peer.end();
}

#[test]
fn sipp_checks_headers() {
    check(Peer::scenario("headers"), "caller", "", "answered", "X-Ringer-Test= yes-17 X-Trait= blue");
}

#[test]
fn sipp_challenges_and_believes_the_right_password() {
    check(Peer::scenario("challenge"), "caller", "secret", "answered", "username=\"ringer\"");
}

#[test]
fn sipp_challenges_and_refuses_the_wrong_password() {
    check(Peer::scenario("challenge"), "caller", "guess", "refused", "username=\"ringer\"");
}

#[test]
fn sipp_is_busy() {
    check(Peer::scenario("busy"), "caller", "", "busy", "");
}

#[test]
fn sipp_rings_for_ever() {
    check(Peer::scenario("ring"), "caller_gives_up", "", "cancelled", "");
}

#[test]
fn sipp_sends_early_media() {
    check(Peer::scenario("early_media"), "caller", "", "answered", "");
}

#[test]
fn baresip_answers_and_sends_its_tone() {
    let peer = Peer::baresip("PCMU/8000/1");
    let (socket, port) = media();
    socket.set_read_timeout(Some(PATIENCE)).expect("the time is not zero");
    let caller = Peer::calling("caller", peer.sip, "", port);
    let mut packet = [0; 1500];
    let period = (8000 / TONE_HZ) as usize;
    for _ in 0..20 {
        let length = socket.recv(&mut packet).expect("baresip sends RTP");
        assert_eq!((length, packet[0] >> 6, packet[1] & 0x7f), (172, 2, 0), "20 ms of PCMU in RTP");
        let payload = &packet[12..length];
        assert!(payload.iter().any(|byte| *byte != payload[0]), "not silence");
        assert_eq!(payload[..160 - period], payload[period..], "the tone repeats after {period} samples");
    }
    assert_eq!(caller.end().trim(), "answered");
    peer.wait_for("terminated (duration");
    assert!(peer.heard_file().is_some(), "{}", peer.output());
}

#[test]
fn a_peer_is_gone_with_its_test() {
    let peer = Peer::answering(1);
    let address = peer.sip;
    drop(peer);
    UdpSocket::bind(address).expect("the port is free again");
}

#[test]
#[should_panic(expected = "never said")]
fn what_never_comes_is_reported() {
    let peer = Peer::answering(1);
    // Its end is a reason not to wait any longer.
    let caller = Peer::calling("caller", peer.sip, "", media().1);
    drop(caller.end());
    peer.wait_for("a text that sipp does not know");
}
