//! A call as a packet capture: its signalling, made from its SIP log (each message is one UDP datagram, or one segment
//! of a TCP connection, with the addresses and the time that the log gives it; line ends and what was masked are as in
//! the log, and messages over TLS are readable), and the media that the engine captured.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::SocketAddr;

use ringer_transport::capture::{Datagram, Position, head, time_of};

/// Longest message that fits a datagram.
const MOST_BYTES: usize = 65_000;
/// Largest disorder of captured media in microseconds: received packets are written behind those sent since.
const UNORDERED_US: u64 = 1_000_000;
/// Number of the first byte of each stream.
const FIRST_BYTE: u32 = 1;
/// Bytes of a block before what depends on its kind; no block of ours is longer than the second.
const BLOCK_HEAD: usize = 8;
const LONGEST: usize = 70_000;

/// A message of the log.
#[derive(Debug, PartialEq)]
pub(crate) struct Message {
    /// Time in microseconds since 1970.
    pub at_us: u64,
    /// Address that it came from.
    pub from: SocketAddr,
    /// Address that it went to.
    pub to: SocketAddr,
    /// True when this side sent it.
    pub is_sent: bool,
    /// Transport of SIP: UDP, TCP or TLS.
    pub transport: &'static str,
    /// Text of the message, lines ended by CR LF.
    pub text: String,
}

/// Writes the capture of a SIP log and of captured media, in the order of time. False: there is no packet in either.
/// Media that break off within a packet end with the one before it.
pub(crate) fn write(log: &str, media: Option<impl Read>, out: &mut impl Write) -> io::Result<bool> {
    out.write_all(&head())?;
    let mut waiting = Waiting::default();
    // Bytes of each stream up to now, by sender and receiver.
    let mut sent: BTreeMap<(SocketAddr, SocketAddr), u32> = BTreeMap::new();
    for Message { at_us, from, to, text, transport, .. } in messages(log) {
        let payload = &text.as_bytes()[..text.len().min(MOST_BYTES)];
        let (packet, mut block) = (Datagram { at_us, from, to, payload }, Vec::new());
        if transport == "UDP" {
            packet.write(&mut block);
        } else {
            let acknowledged = FIRST_BYTE.wrapping_add(sent.get(&(to, from)).copied().unwrap_or_default());
            let bytes = sent.entry((from, to)).or_default();
            packet.write_segment(Position { sequence: FIRST_BYTE.wrapping_add(*bytes), acknowledged }, &mut block);
            *bytes = bytes.wrapping_add(payload.len() as u32);
        }
        waiting.add(at_us, block);
    }
    let mut any = !waiting.blocks.is_empty();
    let mut media = media.map(BufReader::new);
    while let Some(media) = &mut media
        && let Some(block) = next_block(media)?
    {
        let Some(at_us) = time_of(&block) else { continue };
        any = true;
        waiting.add(at_us, block);
        waiting.write_before(at_us.saturating_sub(UNORDERED_US), out)?;
    }
    waiting.write_before(u64::MAX, out)?;
    Ok(any)
}

/// Blocks by their times, then in the order in which they came.
#[derive(Default)]
struct Waiting {
    blocks: BTreeMap<(u64, usize), Vec<u8>>,
    added: usize,
}

impl Waiting {
    fn add(&mut self, at_us: u64, block: Vec<u8>) {
        self.blocks.insert((at_us, self.added), block);
        self.added += 1;
    }

    fn write_before(&mut self, end_us: u64, out: &mut impl Write) -> io::Result<()> {
        while let Some(first) = self.blocks.first_entry().filter(|first| first.key().0 < end_us) {
            out.write_all(&first.remove())?;
        }
        Ok(())
    }
}

/// Reads the next block; `None` at the end.
fn next_block(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut block = vec![0; BLOCK_HEAD];
    let read = from.read_exact(&mut block).and_then(|()| {
        let length = u32::from_le_bytes([block[4], block[5], block[6], block[7]]) as usize;
        if !(BLOCK_HEAD..=LONGEST).contains(&length) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        block.resize(length, 0);
        from.read_exact(&mut block[BLOCK_HEAD..])
    });
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| Some(block)),
    }
}

/// Returns a message's lines, a blank before each, follow the one that says when and between whom it went. In logs of
/// earlier versions there is no blank.
pub(crate) fn messages(log: &str) -> Vec<Message> {
    let is_apart = log.lines().nth(1).is_some_and(|line| line.starts_with(' '));
    let mut messages: Vec<Message> = Vec::new();
    for line in log.lines() {
        if let Some(message) = first_line(line) {
            messages.push(message);
        } else if let (Some(message), Some(line)) =
            (messages.last_mut(), if is_apart { line.strip_prefix(' ') } else { Some(line) })
        {
            message.text.extend([line, "\r\n"]);
        }
    }
    messages
}

/// Reads `MILLISECONDS sent to PEER at LOCAL`, or `received from`; over streams the transport stands before the peer.
fn first_line(line: &str) -> Option<Message> {
    let (at_ms, rest) = line.split_once(' ')?;
    let (sent, rest) = match rest.strip_prefix("sent to ") {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix("received from ")?),
    };
    let (peer, local) = rest.split_once(" at ")?;
    let stream = ["TCP", "TLS"].iter().find_map(|name| Some((*name, peer.strip_prefix(name)?.strip_prefix(' ')?)));
    let (transport, peer) = stream.unwrap_or(("UDP", peer));
    let (at_ms, peer, local): (u64, _, _) = (at_ms.parse().ok()?, peer.parse().ok()?, local.parse().ok()?);
    let (from, to) = if sent { (local, peer) } else { (peer, local) };
    let at_us = at_ms.checked_mul(1000)?;
    Some(Message { at_us, from, to, is_sent: sent, transport, text: String::new() })
}

#[cfg(test)]
mod tests {
    use ringer_transport::sip::driver::mask;

    use super::*;

    const LOG: &str = "1767600000123 sent to 127.0.0.1:5061 at 127.0.0.1:5060\n INVITE sip:a@b SIP/2.0\n Call-ID: 1\n \n\n\
                       1767600000456 received from [::1]:5061 at [::1]:5060\n SIP/2.0 200 OK\n \n\n";

    #[test]
    fn messages_are_found_in_the_log() {
        let earlier = LOG.replace("\n\n", "\n").replace("\n ", "\n");
        let streams = LOG.replace("sent to ", "sent to TCP ").replace("received from ", "received from TLS ");
        for log in [LOG, &earlier, &streams] {
            let messages = messages(log);
            let text: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
            assert_eq!(text, ["INVITE sip:a@b SIP/2.0\r\nCall-ID: 1\r\n\r\n", "SIP/2.0 200 OK\r\n\r\n"], "{log}");
            assert_eq!((messages[0].from.port(), messages[1].from.port()), (5060, 5061));
        }
    }

    #[test]
    fn messages_over_streams_are_segments_in_their_order() {
        let log = "1 sent to TCP 192.0.2.2:5060 at 192.0.2.1:4000\n INVITE\n\n\
                   2 received from TCP 192.0.2.2:5060 at 192.0.2.1:4000\n SIP/2.0 200 OK\n\n\
                   3 sent to TCP 192.0.2.2:5060 at 192.0.2.1:4000\n ACK\n\n\
                   4 sent to 192.0.2.2:5060 at 192.0.2.1:5060\n BYE\n\n";
        let mut out = Vec::new();
        assert!(write(log, None::<&[u8]>, &mut out).expect("memory takes it"));
        let (mut from, mut seen) = (&out[..], Vec::new());
        while let Some(block) = next_block(&mut from).expect("memory gives it") {
            let Some(packet) = time_of(&block).map(|_| &block[28..]) else { continue };
            let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().expect("four bytes"));
            seen.push(match packet[9] {
                6 => (6, word(24), word(28)),
                protocol => (protocol, 0, 0),
            });
        }
        // "INVITE" and "ACK" are 8 and 5 bytes, the answer 16.
        assert_eq!(seen, [(6, 1, 1), (6, 1, 9), (6, 9, 17), (17, 0, 0)]);
    }

    #[test]
    fn the_other_side_writes_no_lines_of_the_log() {
        let forged = "18446744073709551615 sent to 192.0.2.1:5 at 192.0.2.2:9";
        let message = format!("SIP/2.0 200 OK\r\n{forged}\r\n {forged}\r\n\n{forged}\r\n");
        let masked = mask(message.as_bytes());
        let log = format!("{LOG}1767600000789 received from [::1]:5061 at [::1]:5060\n{masked}\n");
        let messages = messages(&log);
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[2].text, message.replace("\n\n", "\n\r\n"), "it is in the message");
        let mut out = Vec::new();
        // A log of an earlier version may hold such a line; there is no such time.
        let earlier = format!("{}{forged}\nOPTIONS\n", LOG.replace("\n ", "\n"));
        assert!(write(&earlier, None::<&[u8]>, &mut out).expect("memory takes it"));
        assert_eq!(super::messages(&earlier).len(), 2);
    }

    #[test]
    fn signalling_and_media_follow_each_other_in_time() {
        let mut media = head();
        for at_us in [1_767_600_000_300_500, 1_767_600_000_100_000, 1_767_600_000_456_001] {
            let (from, to) = ("127.0.0.1:4000".parse().expect("one"), "127.0.0.1:4002".parse().expect("one"));
            Datagram { at_us, from, to, payload: &[7; 33] }.write(&mut media);
        }
        let times = |log: &str, media: Option<&[u8]>| {
            let mut out = Vec::new();
            let any = write(log, media, &mut out).expect("memory takes it");
            let (mut from, mut times) = (&out[..], Vec::new());
            while let Some(block) = next_block(&mut from).expect("memory gives it") {
                times.extend(time_of(&block).map(|at_us| at_us % 1_000_000));
            }
            assert_eq!(any, !times.is_empty());
            assert!(from.is_empty(), "nothing follows the last block");
            times
        };
        assert_eq!(times(LOG, None), [123_000, 456_000]);
        assert_eq!(times(LOG, Some(&media)), [100_000, 123_000, 300_500, 456_000, 456_001]);
        assert_eq!(times("nothing\n", Some(&media[..media.len() - 5])), [100_000, 300_500], "it broke off");
        assert_eq!(times("nothing\n", None), [0; 0]);
    }
}
