//! RTP packets and telephone-event payloads as bytes: parsing and writing, no state.
//!
//! Datagrams are checked here once; other files see well-formed packets only. Nothing here allocates or panics.
//!
//! The crate `rtp` is not used: its header (0.10) keeps contributing sources and extensions in vectors, which media
//! threads must not allocate, and it brings `webrtc-util` along. A call reads the fixed header alone and borrows the
//! payload.
//!
//! A packet with a telephone event, written and read:
//!
//! ```
//! use ringer_media::rtp::packet::{EventPayload, HEADER, Header, Malformed, Packet, digit_of};
//!
//! let header = Header { marker: true, payload_type: 101, sequence: 65_535, timestamp: 160, ssrc: 7 };
//! let mut fixed = [0; HEADER];
//! header.write(&mut fixed);
//! let event = EventPayload { event: 11, end: false, volume: 10, duration: 800 };
//! let datagram = [&fixed[..], &event.bytes()].concat();
//!
//! let packet = Packet::parse(&datagram).expect("it is RTP");
//! assert_eq!(packet.header, header);
//! let read = EventPayload::parse(packet.payload).expect("four bytes");
//! assert_eq!((read, digit_of(read.event)), (event, Some('#')));
//! assert_eq!(Packet::parse(&datagram[..8]), Err(Malformed::Short));
//! ```

/// Length of a header without CSRC list and extension, in bytes (RFC 3550 5.1).
pub const HEADER: usize = 12;

/// Length of a telephone-event payload in bytes (RFC 4733 2.3).
pub const EVENT: usize = 4;

/// The fixed part of an RTP header (RFC 3550 5.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// True for the first packet after a gap in sending (RFC 3551 4.1), or of an event (RFC 4733 2.5.1.2).
    pub marker: bool,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Sequence number; grows by one a packet and wraps.
    pub sequence: u16,
    /// Timestamp in ticks of the RTP clock; wraps.
    pub timestamp: u32,
    /// Synchronisation source (SSRC) of the sender.
    pub ssrc: u32,
}

impl Header {
    /// Writes the header: version 2, no padding, no extension, no CSRC.
    pub fn write(&self, out: &mut [u8; HEADER]) {
        out[0] = 0x80;
        out[1] = (self.marker as u8) << 7 | self.payload_type & 0x7f;
        out[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..].copy_from_slice(&self.ssrc.to_be_bytes());
    }
}

/// A well-formed RTP packet; its payload is borrowed from the datagram. CSRC list and extension are skipped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Fixed part of the header.
    pub header: Header,
    /// Payload without padding; may be empty.
    pub payload: &'a [u8],
}

/// Reason why a datagram is not RTP. The caller drops and counts it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// The datagram is shorter than its own header says.
    Short,
    /// Its version is not 2.
    Version,
    /// Its padding count is zero or larger than the rest of the datagram.
    Padding,
}

impl<'a> Packet<'a> {
    /// Reads a datagram (RFC 3550 5.1, 5.3.1).
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let mut rest = &bytes[header_bytes(bytes)?..];
        let fixed = bytes.first_chunk::<HEADER>().ok_or(Malformed::Short)?;
        if fixed[0] & 0x20 != 0 {
            let count = usize::from(*rest.last().ok_or(Malformed::Padding)?);
            let kept = rest.len().checked_sub(count).filter(|_| count > 0).ok_or(Malformed::Padding)?;
            rest = &rest[..kept];
        }
        let header = Header {
            marker: fixed[1] & 0x80 != 0,
            payload_type: fixed[1] & 0x7f,
            sequence: u16::from_be_bytes([fixed[2], fixed[3]]),
            timestamp: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            ssrc: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        };
        Ok(Packet { header, payload: rest })
    }
}

/// Returns the number of bytes before the payload: fixed header, CSRC list and extension (RFC 3550 5.1, 5.3.1).
pub fn header_bytes(bytes: &[u8]) -> Result<usize, Malformed> {
    let fixed = bytes.first_chunk::<HEADER>().ok_or(Malformed::Short)?;
    if fixed[0] >> 6 != 2 {
        return Err(Malformed::Version);
    }
    let mut end = HEADER + usize::from(fixed[0] & 0x0f) * 4;
    if fixed[0] & 0x10 != 0 {
        let &[_, _, high, low] = bytes.get(end..).and_then(<[u8]>::first_chunk).ok_or(Malformed::Short)?;
        end += 4 + usize::from(u16::from_be_bytes([high, low])) * 4;
    }
    if end <= bytes.len() { Ok(end) } else { Err(Malformed::Short) }
}

/// True when a datagram of a shared port is RTCP and not RTP (RFC 5761 4).
pub fn is_rtcp(bytes: &[u8]) -> bool {
    bytes.len() >= 2 && (192..=223).contains(&bytes[1])
}

/// A telephone-event payload (RFC 4733 2.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EventPayload {
    /// Event code: 0 to 9 the digits, 10 `*`, 11 `#`, 12 to 15 `A` to `D`; others are not DTMF.
    pub event: u8,
    /// True when the event is over.
    pub end: bool,
    /// Power of the tone as -dBm0, 0 to 63.
    pub volume: u8,
    /// Duration since the packet's timestamp, in ticks of the RTP clock.
    pub duration: u16,
}

impl EventPayload {
    /// Reads the first event of a payload; `None` when it is too short.
    pub fn parse(payload: &[u8]) -> Option<EventPayload> {
        let &[event, flags, high, low] = payload.first_chunk::<EVENT>()?;
        let duration = u16::from_be_bytes([high, low]);
        Some(EventPayload { event, end: flags & 0x80 != 0, volume: flags & 0x3f, duration })
    }

    /// Returns the four bytes of the payload.
    pub fn bytes(&self) -> [u8; EVENT] {
        let [high, low] = self.duration.to_be_bytes();
        [self.event, (self.end as u8) << 7 | self.volume & 0x3f, high, low]
    }
}

/// Returns the event code of a DTMF digit (RFC 4733 3.2); `None` for other characters.
pub fn event_of(digit: char) -> Option<u8> {
    DIGITS.iter().position(|&known| known == digit.to_ascii_uppercase()).map(|code| code as u8)
}

/// Returns the DTMF digit of an event code; `None` for other codes.
pub fn digit_of(event: u8) -> Option<char> {
    DIGITS.get(usize::from(event)).copied()
}

const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '*', '#', 'A', 'B', 'C', 'D'];

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Header =
        Header { marker: true, payload_type: 9, sequence: 0xfffe, timestamp: 0xdead_beef, ssrc: 0x0102_0304 };

    fn datagram(first: u8, tail: &[u8]) -> Vec<u8> {
        let mut head = [0; HEADER];
        HEAD.write(&mut head);
        head[0] = first;
        [&head[..], tail].concat()
    }

    #[test]
    fn parses_what_is_well_formed_and_names_what_is_not() {
        let check = |first: u8, tail: &[u8], expect: Result<&[u8], Malformed>| {
            let bytes = datagram(first, tail);
            assert_eq!(
                Packet::parse(&bytes),
                expect.map(|payload| Packet { header: HEAD, payload }),
                "{first:#x} {tail:?}"
            );
        };
        check(0x80, b"abc", Ok(b"abc"));
        check(0x80, b"", Ok(b""));
        check(0x81, b"cccc!", Ok(b"!"));
        check(0x82, b"cccc", Err(Malformed::Short));
        check(0x90, b"xx\x00\x01eeee!", Ok(b"!"));
        check(0x90, b"xx\x00\x02eeee!", Err(Malformed::Short));
        check(0x90, b"xx", Err(Malformed::Short));
        check(0xa0, b"ab\x00\x02", Ok(b"ab"));
        check(0xa0, b"ab\x00", Err(Malformed::Padding));
        check(0xa0, b"ab\x04", Err(Malformed::Padding));
        check(0xa0, b"", Err(Malformed::Padding));
        check(0xb1, b"ccccxx\x00\x01eeeeab\x01", Ok(b"ab"));
        check(0x40, b"abc", Err(Malformed::Version));
        assert_eq!(Packet::parse(&datagram(0x80, b"")[..11]), Err(Malformed::Short));
    }

    #[test]
    fn no_bytes_panic_the_parser() {
        let mut stream = crate::seed::Seed(1).stream("fuzz");
        for _ in 0..20_000 {
            let mut bytes = vec![0; stream.index(40)];
            bytes.fill_with(|| stream.bits() as u8);
            let payload = Packet::parse(&bytes).map_or(0, |packet| packet.payload.len());
            assert!(payload <= bytes.len().saturating_sub(HEADER));
            EventPayload::parse(&bytes);
        }
    }

    #[test]
    fn events_survive_the_wire() {
        for code in 0..16 {
            let digit = digit_of(code).unwrap();
            assert_eq!(event_of(digit), Some(code));
            let sent = EventPayload { event: code, end: code % 2 == 1, volume: 10, duration: 480 + u16::from(code) };
            assert_eq!(EventPayload::parse(&sent.bytes()), Some(sent));
        }
        assert_eq!((digit_of(16), event_of('x'), event_of('b')), (None, None, Some(13)));
        assert_eq!(EventPayload::parse(&[1, 2, 3]), None);
    }

    #[test]
    fn a_shared_port_tells_reports_from_media() {
        assert!(is_rtcp(&[0x80, 200]) && is_rtcp(&[0x81, 201]));
        assert!(!is_rtcp(&[0x80, 0x80]) && !is_rtcp(&[0x80, 101]) && !is_rtcp(&[0x80]));
    }
}
