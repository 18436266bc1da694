//! A call's signalling as a packet capture (pcapng, draft-ietf-opsawg-pcapng), made from its SIP log: each message is one UDP
//! datagram with the addresses and the time that the log gives it. Line ends and what was masked are as in the log.

use std::net::{IpAddr, SocketAddr};

/// Link type of packets that begin with their IP header.
const LINKTYPE_RAW: u16 = 101;
/// UDP in an IP header.
const UDP: u8 = 17;
const HOPS: u8 = 64;

/// A message of the log.
#[derive(Debug, PartialEq)]
struct Message {
    at_ms: u64,
    from: SocketAddr,
    to: SocketAddr,
    text: String,
}

/// The capture of a SIP log; `None` when no message is in it.
pub fn capture(log: &str) -> Option<Vec<u8>> {
    let messages = messages(log);
    let mut out = Vec::new();
    // Section header: byte order, version 1.0, length not told.
    block(&mut out, 0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    // The one interface: times in microseconds, packets whole.
    block(&mut out, 1, &[&LINKTYPE_RAW.to_le_bytes()[..], &[0; 6]].concat());
    for message in &messages {
        let packet = packet(message);
        let micros = message.at_ms * 1000;
        let length = (packet.len() as u32).to_le_bytes();
        let mut body = [&[0; 4][..], &((micros >> 32) as u32).to_le_bytes(), &(micros as u32).to_le_bytes()].concat();
        body.extend([length, length].concat());
        body.extend(packet);
        block(&mut out, 6, &body);
    }
    (!messages.is_empty()).then_some(out)
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = (12 + body.len() + padding) as u32;
    out.extend(kind.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
    out.extend(std::iter::repeat_n(0, padding));
    out.extend(length.to_le_bytes());
}

/// A message's lines follow the one that says when and between whom it went.
fn messages(log: &str) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for line in log.lines() {
        if let Some(message) = head(line) {
            messages.push(message);
        } else if let Some(message) = messages.last_mut() {
            message.text.extend([line, "\r\n"]);
        }
    }
    messages
}

/// `MILLISECONDS sent to PEER at LOCAL`, or `received from`.
fn head(line: &str) -> Option<Message> {
    let (at_ms, rest) = line.split_once(' ')?;
    let (sent, rest) = match rest.strip_prefix("sent to ") {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix("received from ")?),
    };
    let (peer, local) = rest.split_once(" at ")?;
    let (at_ms, peer, local) = (at_ms.parse().ok()?, peer.parse().ok()?, local.parse().ok()?);
    let (from, to) = if sent { (local, peer) } else { (peer, local) };
    Some(Message { at_ms, from, to, text: String::new() })
}

/// The datagram with its headers (RFC 768, 791, 8200).
fn packet(message: &Message) -> Vec<u8> {
    let length = (8 + message.text.len()) as u16;
    let ports = [message.from.port().to_be_bytes(), message.to.port().to_be_bytes()].concat();
    let addresses = match (message.from.ip(), message.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
        (from, to) => [from, to].map(|ip| v6(ip).octets()).concat(),
    };
    let mut udp = [&ports[..], &length.to_be_bytes(), &[0; 2], message.text.as_bytes()].concat();
    let pseudo = [&addresses[..], &length.to_be_bytes(), &[0, UDP], &udp].concat();
    udp[6..8].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    let mut ip = match addresses.len() {
        8 => [&[0x45, 0][..], &(20 + length).to_be_bytes(), &[0, 0, 0x40, 0, HOPS, UDP, 0, 0], &addresses].concat(),
        _ => [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[UDP, HOPS], &addresses].concat(),
    };
    if ip.len() == 20 {
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    ip.extend(udp);
    ip
}

fn v6(ip: IpAddr) -> std::net::Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// The complement of the sum in ones' complement (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "1767600000123 sent to 127.0.0.1:5061 at 127.0.0.1:5060\nINVITE sip:a@b SIP/2.0\nCall-ID: 1\n\n\
                       1767600000456 received from [::1]:5061 at [::1]:5060\nSIP/2.0 200 OK\n\n";

    #[test]
    fn messages_become_datagrams() {
        let messages = messages(LOG);
        let text: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(text, ["INVITE sip:a@b SIP/2.0\r\nCall-ID: 1\r\n\r\n", "SIP/2.0 200 OK\r\n\r\n"]);
        for message in &messages {
            let packet = packet(message);
            let v4 = packet[0] >> 4 == 4;
            let (header, udp) = packet.split_at(if v4 { 20 } else { 40 });
            // Whoever sums over what carries its own checksum finds nothing.
            assert!(!v4 || checksum(header) == 0);
            let addresses = &header[if v4 { 12 } else { 8 }..];
            let length = (udp.len() as u16).to_be_bytes();
            assert_eq!(checksum(&[addresses, &length, &[0, UDP], udp].concat()), 0);
            assert_eq!(&udp[8..], message.text.as_bytes());
            assert_eq!(u16::from_be_bytes([udp[2], udp[3]]), message.to.port());
        }
        assert_eq!((messages[0].from.port(), messages[1].from.port()), (5060, 5061));
    }

    #[test]
    fn blocks_follow_each_other() {
        let capture = capture(LOG).expect("there are messages");
        let (mut at, mut kinds) = (0, Vec::new());
        while at < capture.len() {
            let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().expect("four bytes"));
            let length = word(at + 4) as usize;
            assert_eq!((length % 4, word(at + length - 4) as usize), (0, length));
            kinds.push(word(at));
            at += length;
        }
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 6]);
        assert_eq!(super::capture("nothing\n"), None);
    }
}
