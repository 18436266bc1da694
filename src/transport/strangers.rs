//! Datagrams that reach the media port of a call from another address than the one that was agreed on.
//!
//! The call's own socket is connected, so the kernel hands it nothing of others. A second socket on the same port takes
//! the rest: it is looked at twice a second, counts, and finds an agent whose RTP comes from another port or host than
//! its SDP says (a NAT, or a gateway). By `sip.symmetric_rtp` that address is then taken (RFC 4961).

use std::io;
use std::net::{SocketAddr, UdpSocket};

use ringer_media::rtp::packet::Packet;
use socket2::{Domain, Protocol, Socket, Type};

/// Datagrams that are looked at in one go; more are counted at the next one.
const AT_ONCE: usize = 64;
/// RTP packets of one source in a row that make it believed (RFC 3550 A.1 takes two; a scan sends a few).
const BELIEVED: u32 = 10;
/// Longest datagram that is looked at.
const DATAGRAM_BYTES: usize = 2048;

/// The second socket of a media port.
#[derive(Debug)]
pub(crate) struct Strangers {
    socket: UdpSocket,
    count: u64,
    /// The address that sent RTP last, its source (SSRC), and its packets in a row.
    candidate: Option<(SocketAddr, u32, u32)>,
    /// True once an address that is not taken was told.
    was_told: bool,
}

impl Strangers {
    /// Returns a second socket beside `own`, which is connected already.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn beside(own: &UdpSocket) -> io::Result<Strangers> {
        let address = own.local_addr()?;
        let own = socket2::SockRef::from(own);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        // Both have to agree to share the port, and nobody else may join them afterwards.
        own.set_reuse_address(true)?;
        socket.set_reuse_address(true)?;
        let bound = socket.bind(&address.into());
        own.set_reuse_address(false)?;
        bound?;
        socket.set_reuse_address(false)?;
        socket.set_nonblocking(true)?;
        Ok(Strangers { socket: socket.into(), count: 0, candidate: None, was_told: false })
    }

    /// Takes what has come since the last time.
    pub(crate) fn look(&mut self) {
        let mut bytes = [0; DATAGRAM_BYTES];
        for _ in 0..AT_ONCE {
            let Ok((len, from)) = self.socket.recv_from(&mut bytes) else { return };
            self.count += 1;
            let Ok(packet) = Packet::parse(&bytes[..len]) else { continue };
            let ssrc = packet.header.ssrc;
            self.candidate = Some(match self.candidate {
                Some((known, source, row)) if known == from && source == ssrc => (from, ssrc, row + 1),
                _ => (from, ssrc, 1),
            });
        }
    }

    /// Returns the address whose RTP is believed: it has sent enough packets of one source in a row.
    pub(crate) fn trusted_address(&self) -> Option<SocketAddr> {
        self.candidate.filter(|(_, _, row)| *row >= BELIEVED).map(|(from, _, _)| from)
    }

    /// True the first time that it is asked: an address that is not taken is told once in a call.
    pub(crate) fn tell_once(&mut self) -> bool {
        !std::mem::replace(&mut self.was_told, true)
    }

    /// Returns the number of datagrams that came from other addresses.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns RTP of type 0 with 20 ms of silence.
    fn packet(sequence: u16) -> Vec<u8> {
        let mut packet = vec![0xff; 172];
        packet[..2].copy_from_slice(&[0x80, 0]);
        packet[2..4].copy_from_slice(&sequence.to_be_bytes());
        packet[4..8].copy_from_slice(&(u32::from(sequence) * 160).to_be_bytes());
        packet[8..12].copy_from_slice(&7u32.to_be_bytes());
        packet
    }

    #[test]
    fn each_socket_gets_its_own_and_strangers_are_believed_after_a_while() {
        let local = || UdpSocket::bind("127.0.0.1:0").expect("there are ports");
        let (own, agent, stranger) = (local(), local(), local());
        own.connect(agent.local_addr().expect("bound")).expect("it can be connected");
        own.set_nonblocking(true).expect("it can be");
        let mut strangers = Strangers::beside(&own).expect("the port is shared");
        let port = own.local_addr().expect("bound");
        assert!(UdpSocket::bind(port).is_err(), "nobody else joins");
        for sequence in 0..12 {
            stranger.send_to(&packet(sequence), port).expect("loopback takes it");
        }
        agent.send_to(b"agent", port).expect("loopback takes it");
        stranger.send_to(b"no RTP", port).expect("loopback takes it");
        strangers.look();
        assert_eq!((strangers.count(), strangers.trusted_address()), (13, stranger.local_addr().ok()));
        let mut bytes = [0; 64];
        assert_eq!(own.recv(&mut bytes).ok(), Some(5));
        assert!(own.recv(&mut bytes).is_err(), "the call's own socket hears its agent alone");
        // The call goes over to the stranger.
        own.connect(stranger.local_addr().expect("bound")).expect("it can be connected");
        stranger.send_to(&packet(13), port).expect("loopback takes it");
        assert!(own.recv(&mut [0; 200]).is_ok());
    }

    #[test]
    fn a_scan_is_not_believed() {
        let local = || UdpSocket::bind("127.0.0.1:0").expect("there are ports");
        let (own, agent) = (local(), local());
        own.connect(agent.local_addr().expect("bound")).expect("it can be connected");
        let mut strangers = Strangers::beside(&own).expect("the port is shared");
        for sequence in 0..30 {
            local().send_to(&packet(sequence), own.local_addr().expect("bound")).expect("loopback takes it");
        }
        strangers.look();
        assert_eq!((strangers.count(), strangers.trusted_address()), (30, None));
    }
}
