//! Datagrams and segments of streams as the blocks of a packet capture (pcapng, draft-ietf-opsawg-pcapng): one
//! interface, whose packets begin with their IP header, with times in microseconds.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Link type of packets that begin with their IP header.
const LINKTYPE_RAW: u16 = 101;
/// Block types: section header, interface description, enhanced packet.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Bytes of a packet's block before the packet.
const BEFORE: usize = 28;
/// UDP and TCP in an IP header.
const UDP: u8 = 17;
const TCP: u8 = 6;
/// Bytes of the headers of UDP and of TCP without options.
const UDP_HEADER: usize = 8;
const TCP_HEADER: usize = 20;
/// Data offset of five words, with the flags ACK and PSH (RFC 9293 3.1).
const PUSHED: u16 = 0x5018;
const HOPS: u8 = 64;

/// A datagram and how it went.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Time in microseconds since 1970.
    pub at_us: u64,
    /// Address of the sender.
    pub from: SocketAddr,
    /// Address that it reached.
    pub to: SocketAddr,
    /// Payload, at most 65 000 bytes.
    pub payload: &'a [u8],
}

/// Place of a segment in its stream.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of the segment's first byte.
    pub sequence: u32,
    /// Number of the next byte that is expected of the other side.
    pub acknowledged: u32,
}

/// Returns the first blocks of a capture: a section of version 1.0 and unspecified length, and its one interface.
pub fn head() -> Vec<u8> {
    let mut out = Vec::new();
    block(&mut out, SECTION, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    block(&mut out, INTERFACE, &[&LINKTYPE_RAW.to_le_bytes()[..], &[0; 6]].concat());
    out
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = (12 + body.len()) as u32;
    out.extend([&kind.to_le_bytes(), &length.to_le_bytes(), body, &length.to_le_bytes()].concat());
}

impl Datagram<'_> {
    /// Appends it with its headers (RFC 768, 791, 8200) as a block. Allocates only where `out` has no space.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_packet(out, None);
    }

    /// Appends the payload as a segment of a TCP connection between the two addresses (RFC 9293), as
    /// [`Datagram::write`] does.
    pub fn write_segment(&self, position: Position, out: &mut Vec<u8>) {
        self.write_packet(out, Some(position));
    }

    fn write_packet(&self, out: &mut Vec<u8>, position: Option<Position>) {
        let (protocol, header) = if position.is_some() { (TCP, TCP_HEADER) } else { (UDP, UDP_HEADER) };
        let length = (header + self.payload.len()) as u16;
        let (addresses, width) = self.addresses();
        let addresses = &addresses[..2 * width];
        let headers = if width == 4 { 20 } else { 40 };
        let captured = headers + usize::from(length);
        let whole = (BEFORE + captured.next_multiple_of(4) + 4) as u32;
        let [high, low] = [(self.at_us >> 32) as u32, self.at_us as u32];
        for word in [PACKET, whole, 0, high, low, captured as u32, captured as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let ip = out.len();
        if width == 4 {
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&(20 + length).to_be_bytes());
            out.extend_from_slice(&[0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
        } else {
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&[protocol, HOPS]);
        }
        out.extend_from_slice(addresses);
        if width == 4 {
            let sum = fold(sum(&out[ip..]));
            out[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
        }
        let begin = out.len();
        let checksum_at = begin + self.write_header(length, position, out);
        out.extend_from_slice(self.payload);
        // With the addresses, the protocol and the length: the pseudo header.
        let sum = fold(sum(&out[begin..]) + sum(addresses) + u32::from(protocol) + u32::from(length));
        out[checksum_at..checksum_at + 2].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
        out.resize(out.len() + captured.next_multiple_of(4) - captured, 0);
        out.extend_from_slice(&whole.to_le_bytes());
    }

    /// Appends the header of UDP or TCP without its checksum. Returns the place of that in the header.
    fn write_header(&self, length: u16, position: Option<Position>, out: &mut Vec<u8>) -> usize {
        let mut words = |words: &[u16]| words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        words(&[self.from.port(), self.to.port()]);
        let Some(Position { sequence, acknowledged }) = position else {
            words(&[length, 0]);
            return 6;
        };
        let halves = |number: u32| [(number >> 16) as u16, number as u16];
        words(&halves(sequence));
        words(&halves(acknowledged));
        // The window is as large as it can be; checksum and urgent pointer follow.
        words(&[PUSHED, u16::MAX, 0, 0]);
        16
    }

    /// Returns both addresses one behind the other, and the bytes of each.
    fn addresses(&self) -> ([u8; 32], usize) {
        let mut out = [0; 32];
        if let (IpAddr::V4(from), IpAddr::V4(to)) = (self.from.ip(), self.to.ip()) {
            out[..4].copy_from_slice(&from.octets());
            out[4..8].copy_from_slice(&to.octets());
            return (out, 4);
        }
        out[..16].copy_from_slice(&v6(self.from.ip()).octets());
        out[16..].copy_from_slice(&v6(self.to.ip()).octets());
        (out, 16)
    }
}

/// Returns the time of a whole packet block, in microseconds since 1970; `None`: it holds no packet.
pub fn time_of(block: &[u8]) -> Option<u64> {
    let word = |at: usize| block.get(at..at + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let (high, low) = (word(12)?, word(16)?);
    (word(0)? == PACKET).then_some(u64::from(high) << 32 | u64::from(low))
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// Returns the sum of the 16-bit words in network order; an odd last byte is padded with zero (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))).sum()
}

/// Returns the complement of the sum in ones' complement (RFC 1071).
fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_has_the_headers_that_it_went_with() {
        for (from, to, headers) in [
            ("10.0.0.7:4000", "127.0.0.1:4002", 20),
            ("[::1]:5060", "[2001:db8::9]:7", 40),
            ("10.0.0.7:1", "[::1]:2", 40),
        ] {
            for payload in [&b"odd"[..], b"even", b""] {
                let (from, to): (SocketAddr, SocketAddr) =
                    (from.parse().expect("an address"), to.parse().expect("an address"));
                let mut out = head();
                let begin = out.len();
                Datagram { at_us: 1_767_600_000_123_456, from, to, payload }.write(&mut out);
                let block = &out[begin..];
                assert_eq!(time_of(block), Some(1_767_600_000_123_456));
                assert_eq!(time_of(&out[..begin]), None, "a section is no packet");
                let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes")) as usize;
                assert_eq!((word(4), word(block.len() - 4), block.len() % 4), (block.len(), block.len(), 0));
                let packet = &block[BEFORE..][..word(20)];
                assert_eq!((packet.len(), word(24)), (headers + 8 + payload.len(), packet.len()));
                let udp = &packet[headers..];
                assert_eq!(&udp[8..], payload);
                assert_eq!(u16::from_be_bytes([udp[2], udp[3]]), to.port());
                // A right checksum makes the sum of all that it covers zero (RFC 1071).
                if headers == 20 {
                    assert_eq!(fold(sum(&packet[..20])), 0);
                }
                let pseudo = sum(&packet[if headers == 20 { 12 } else { 8 }..headers]);
                assert_eq!(fold(pseudo + u32::from(UDP) + udp.len() as u32 + sum(udp)), 0);
                let mut out = Vec::new();
                let position = Position { sequence: 0xffff_fffe, acknowledged: 7 };
                Datagram { at_us: 1, from, to, payload }.write_segment(position, &mut out);
                let packet = &out[BEFORE..][..headers + TCP_HEADER + payload.len()];
                assert_eq!((out.len() % 4, packet[if headers == 20 { 9 } else { 6 }]), (0, TCP));
                let tcp = &packet[headers..];
                assert_eq!((&tcp[4..12], &tcp[TCP_HEADER..]), (&[0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 7][..], payload));
                assert_eq!((tcp[12] >> 4, u16::from_be_bytes([tcp[0], tcp[1]])), (5, from.port()));
                let pseudo = sum(&packet[if headers == 20 { 12 } else { 8 }..headers]);
                assert_eq!(fold(pseudo + u32::from(TCP) + tcp.len() as u32 + sum(tcp)), 0);
            }
        }
    }
}
