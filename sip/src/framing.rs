//! Messages cut out of a stream of bytes by Content-Length (RFC 3261 18.3), and the keep-alives between them (RFC 5626
//! 3.5.1).

use std::fmt;

pub use crate::parse::{MAX_BODY_BYTES, MAX_HEAD_BYTES};
use crate::parse::{MAX_HEADERS, is_token};
use crate::time::Time;

/// Side that opened a connection; it alone sends pings (RFC 5626 4.4.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// This side: a CRLF that comes alone is the answer to a ping.
    Here,
    /// The other side: two CRLF are a ping however they come.
    There,
}

/// Unit of a stream that has arrived whole.
#[derive(Clone, PartialEq, Eq)]
pub enum Frame {
    /// One message, with its body.
    Message(Vec<u8>),
    /// Two CRLF; the answer is [`PONG`].
    Ping,
    /// One CRLF, the answer to a ping.
    Pong,
}

/// Keep-alive of the side that opened a connection (RFC 5626 4.4.1).
pub const PING: &[u8] = b"\r\n\r\n";
/// Answer to a [`PING`] of the side that opened the connection.
pub const PONG: &[u8] = b"\r\n";

impl fmt::Debug for Frame {
    /// Shows a message by its length alone: it may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Message(bytes) => write!(f, "Message({} bytes)", bytes.len()),
            Frame::Ping => f.write_str("Ping"),
            Frame::Pong => f.write_str("Pong"),
        }
    }
}

/// Reason why a stream can be read no further.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// A message does not begin with the start line of SIP.
    NotSip,
    /// Start line and header fields are longer than [`MAX_HEAD_BYTES`].
    LongHead,
    /// More header lines than [`MAX_HEADERS`].
    ManyHeaders,
    /// A message has no Content-Length.
    NoLength,
    /// The Content-Length is no number.
    BadLength,
    /// A message has Content-Lengths that differ.
    TwoLengths,
    /// The Content-Length is more than [`MAX_BODY_BYTES`].
    LongBody,
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FramingError::NotSip => f.write_str("what came is no SIP message: it has no SIP start line"),
            FramingError::LongHead => write!(f, "a message has header fields of more than {MAX_HEAD_BYTES} bytes"),
            FramingError::ManyHeaders => write!(f, "a message has more than {MAX_HEADERS} header lines"),
            FramingError::NoLength => f.write_str("a message has no Content-Length, which a stream needs"),
            FramingError::BadLength => f.write_str("the Content-Length of a message is no number"),
            FramingError::TwoLengths => f.write_str("a message has two Content-Lengths that differ"),
            FramingError::LongBody => write!(f, "the Content-Length of a message is more than {MAX_BODY_BYTES}"),
        }
    }
}

impl std::error::Error for FramingError {}

/// Reader of one stream: it takes bytes as they come, and returns whole messages.
#[derive(Debug)]
pub struct Framer {
    opened: Opened,
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` in which the end of the header section was looked for.
    searched: usize,
    /// True when the start line at the front is complete and one of SIP.
    is_begun: bool,
    /// Length of the message at the front, once its header section is complete.
    length: Option<usize>,
    /// Time when the part at the front began to arrive.
    since: Time,
    /// Time of the latest bytes.
    latest: Time,
    failed: Option<FramingError>,
}

impl Framer {
    /// Returns the reader of a stream that has brought nothing yet.
    pub fn new(opened: Opened) -> Framer {
        Framer {
            opened,
            buffer: Vec::new(),
            searched: 0,
            is_begun: false,
            length: None,
            since: Time(0),
            latest: Time(0),
            failed: None,
        }
    }

    /// Takes bytes; [`Framer::poll`] until `None` comes before the next ones.
    pub fn receive(&mut self, now: Time, bytes: &[u8]) {
        if self.failed.is_some() || bytes.is_empty() {
            return;
        }
        if self.buffer.is_empty() {
            self.since = now;
        }
        self.latest = now;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next whole unit; `None` until more bytes come.
    ///
    /// # Errors
    ///
    /// See [`FramingError`]. It is returned again from then on, as the beginning of the next message is unknown.
    pub fn poll(&mut self) -> Result<Option<Frame>, FramingError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance().inspect_err(|error| {
            self.failed = Some(*error);
            self.buffer = Vec::new();
        })
    }

    /// Returns the time since which an unfinished message waits for its rest; `None` when none has begun.
    pub fn waiting_since(&self) -> Option<Time> {
        let begun = self.buffer.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
        begun.then_some(self.since)
    }

    fn advance(&mut self) -> Result<Option<Frame>, FramingError> {
        if self.length.is_none() {
            match self.blank()? {
                Blank::Frame(frame) => return Ok(Some(frame)),
                Blank::Incomplete => return Ok(None),
                Blank::Over => {}
            }
            self.length = self.head()?;
        }
        let Some(length) = self.length.filter(|length| self.buffer.len() >= *length) else { return Ok(None) };
        let rest = self.buffer.split_off(length);
        let message = std::mem::replace(&mut self.buffer, rest);
        (self.length, self.searched, self.is_begun, self.since) = (None, 0, false, self.latest);
        Ok(Some(Frame::Message(message)))
    }

    /// Takes line ends before a message: keep-alives, or nothing (RFC 3261 7.5).
    fn blank(&mut self) -> Result<Blank, FramingError> {
        let (taken, found) = match self.buffer.as_slice() {
            [] => return Ok(Blank::Incomplete),
            [b'\r', b'\n', b'\r', b'\n', ..] => (PING.len(), Blank::Frame(Frame::Ping)),
            [b'\r', b'\n'] if self.opened == Opened::Here => (PONG.len(), Blank::Frame(Frame::Pong)),
            [b'\r'] | [b'\r', b'\n'] | [b'\r', b'\n', b'\r'] => return Ok(Blank::Incomplete),
            [b'\r', b'\n', ..] => (PONG.len(), Blank::Frame(Frame::Pong)),
            [first, ..] if is_token(char::from(*first)) => return Ok(Blank::Over),
            _ => return Err(FramingError::NotSip),
        };
        self.buffer.drain(..taken);
        self.since = self.latest;
        Ok(found)
    }

    /// Returns the length of the message at the front, `None` while its header section is incomplete.
    fn head(&mut self) -> Result<Option<usize>, FramingError> {
        let within = &self.buffer[..self.buffer.len().min(MAX_HEAD_BYTES)];
        // The start line is looked at as soon as it is there.
        if !self.is_begun
            && let Some(end) = within[self.searched..].iter().position(|byte| *byte == b'\n')
        {
            if !is_start(&within[..self.searched + end]) {
                return Err(FramingError::NotSip);
            }
            self.is_begun = true;
        }
        // An end of up to three bytes may have been cut in two.
        let from = self.searched.saturating_sub(2);
        let end =
            within[from..].iter().enumerate().filter(|(_, byte)| **byte == b'\n').find_map(|(at, _)| {
                match &within[from + at + 1..] {
                    [b'\n', ..] => Some(from + at + 2),
                    [b'\r', b'\n', ..] => Some(from + at + 3),
                    _ => None,
                }
            });
        let Some(end) = end else {
            self.searched = within.len();
            return if self.buffer.len() >= MAX_HEAD_BYTES { Err(FramingError::LongHead) } else { Ok(None) };
        };
        Ok(Some(end + body_length(&self.buffer[..end])?))
    }
}

/// Line ends at the front of a stream.
enum Blank {
    /// Keep-alive that they are.
    Frame(Frame),
    /// More is to come before it is known.
    Incomplete,
    /// No more line ends: a message begins.
    Over,
}

/// True for a request line or a status line, as far as a stranger's bytes are told from SIP (RFC 3261 7.1, 7.2).
fn is_start(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let is_version = |word: &[u8]| word.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"SIP/"));
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    words.next().is_some_and(is_version) || words.next_back().is_some_and(is_version)
}

/// Returns the Content-Length of a header section, its start line before it.
fn body_length(head: &[u8]) -> Result<usize, FramingError> {
    let mut lines = head.split(|byte| *byte == b'\n').skip(1).map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (mut length, mut count, mut is_length) = (None::<Vec<u8>>, 0, false);
    let mut value = Vec::new();
    let mut keep = |value: &mut Vec<u8>| match (length.take(), std::mem::take(value)) {
        (None, value) => {
            length = Some(value);
            Ok(())
        }
        (Some(before), value) if before.trim_ascii() == value.trim_ascii() => {
            length = Some(before);
            Ok(())
        }
        (Some(_), _) => Err(FramingError::TwoLengths),
    };
    for line in &mut lines {
        if line.is_empty() {
            break;
        }
        count += 1;
        if count > MAX_HEADERS {
            return Err(FramingError::ManyHeaders);
        }
        if matches!(line, [b' ' | b'\t', ..]) {
            // A field goes on in this line (RFC 3261 7.3.1).
            if is_length {
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii());
            }
            continue;
        }
        if is_length {
            keep(&mut value)?;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let name = colon.map_or(&line[..0], |colon| line[..colon].trim_ascii_end());
        is_length = name.eq_ignore_ascii_case(b"Content-Length") || name.eq_ignore_ascii_case(b"l");
        if is_length {
            value = line[name.len()..].trim_ascii_start().get(1..).unwrap_or_default().to_vec();
        }
    }
    if is_length {
        keep(&mut value)?;
    }
    number(length.ok_or(FramingError::NoLength)?.trim_ascii())
}

fn number(digits: &[u8]) -> Result<usize, FramingError> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(FramingError::BadLength);
    }
    let add = |sum: usize, digit: &u8| {
        let sum = 10 * sum + usize::from(digit - b'0');
        (sum <= MAX_BODY_BYTES).then_some(sum)
    };
    digits.iter().try_fold(0, add).ok_or(FramingError::LongBody)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: &str, body: &str) -> String {
        format!("OPTIONS sip:a@b SIP/2.0\r\nCall-ID: 1\r\n{length}\r\n\r\n{body}")
    }

    /// Returns all units of `bytes`, given in pieces of this size, in a word each; an error ends it.
    fn frames(opened: Opened, bytes: &[u8], size: usize) -> Vec<String> {
        let (mut framer, mut read) = (Framer::new(opened), Vec::new());
        for (at, piece) in bytes.chunks(size.max(1)).enumerate() {
            framer.receive(Time(at as u64), piece);
            loop {
                match framer.poll() {
                    Ok(None) => break,
                    Ok(Some(Frame::Message(bytes))) => read.push(String::from_utf8_lossy(&bytes).into_owned()),
                    Ok(Some(frame)) => read.push(format!("{frame:?}")),
                    Err(error) => {
                        read.push(format!("{error:?}"));
                        assert_eq!(framer.poll(), Err(error), "it stays");
                        assert_eq!(framer.waiting_since(), None);
                        return read;
                    }
                }
            }
        }
        read
    }

    fn check(bytes: &str, expect: &[&str]) {
        for size in [bytes.len(), 1, 2, 3, 7] {
            assert_eq!(frames(Opened::There, bytes.as_bytes(), size), expect, "{size} bytes at a time: {bytes}");
        }
    }

    #[test]
    fn messages_are_cut_by_their_lengths() {
        let (empty, full) = (message("Content-Length: 0", ""), message("l : 4", "body"));
        check(&empty, &[&empty]);
        check(&format!("{empty}{full}{empty}"), &[&empty, &full, &empty]);
        let status = "SIP/2.0 200 OK\r\nCONTENT-LENGTH:\r\n  3\r\n\r\nabc";
        check(&format!("{status}{full}"), &[status, &full]);
        let bare = "BYE sip:a@b SIP/2.0\nContent-Length: 2\n\nhi";
        check(&format!("{bare}{empty}"), &[bare, &empty]);
        // A message in a body is a part of the body.
        let nested = message(&format!("Content-Length: {}", full.len()), &full);
        check(&format!("{nested}{empty}"), &[&nested, &empty]);
        let twice = message("Content-Length: 2\r\nl: 2", "ok");
        check(&twice, &[&twice]);
    }

    #[test]
    fn keep_alives_stand_between_messages() {
        let one = message("Content-Length: 0", "");
        check(&format!("\r\n\r\n{one}\r\n\r\n\r\n\r\n"), &["Ping", &one, "Ping", "Ping"]);
        check(&format!("\r\n{one}"), &["Pong", &one]);
        check("\r\n", &[]);
        let opened = |bytes: &str, size| frames(Opened::Here, bytes.as_bytes(), size);
        assert_eq!(opened("\r\n", 2), ["Pong"]);
        assert_eq!(opened("\r\n\r\n", 2), ["Pong", "Pong"], "they came one after the other");
        assert_eq!(opened("\r\n\r\n", 4), ["Ping"], "the other side asks, too");
        assert_eq!(opened(&format!("\r\n{one}"), 1000), ["Pong", &one]);
    }

    #[test]
    fn what_is_no_stream_of_messages_is_named() {
        check(&message("Subject: none", "body"), &["NoLength"]);
        for bad in ["-1", "+4", "4 4", "four", "", "0x4", "4,"] {
            check(&message(&format!("Content-Length: {bad}"), "body"), &["BadLength"]);
        }
        check(&message("Content-Length: 4\r\nl: 5", "body"), &["TwoLengths"]);
        check(&message("Content-Length: 262145", ""), &["LongBody"]);
        check(&message("Content-Length: 99999999999999999999999999", ""), &["LongBody"]);
        for bad in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\u{16}\u{3}\u{1}", "\0", "hello\r\n", " BYE", "\rx", "\nx"] {
            check(bad, &["NotSip"]);
        }
        // The rest of a body that is longer than was said is the next message.
        let short = message("Content-Length: 2", "body");
        check(&format!("{short}\r\nmore\r\n"), &[short.strip_suffix("dy").expect("it ends so"), "NotSip"]);
    }

    #[test]
    fn endless_messages_are_refused() {
        let start = "INVITE sip:a@b SIP/2.0\r\n";
        let lines = |count: usize| format!("{start}{}Content-Length: 0\r\n\r\n", "X: y\r\n".repeat(count - 1));
        let whole = lines(MAX_HEADERS);
        check(&whole, &[&whole]);
        check(&lines(MAX_HEADERS + 1), &["ManyHeaders"]);
        let long = |bytes: usize| {
            let rest = "\r\nContent-Length: 0\r\n\r\n";
            format!("{start}X: {}{rest}", "y".repeat(bytes - start.len() - 3 - rest.len()))
        };
        let whole = long(MAX_HEAD_BYTES);
        assert_eq!(frames(Opened::There, whole.as_bytes(), 1460), [whole.as_str()]);
        assert_eq!(frames(Opened::There, long(MAX_HEAD_BYTES + 1).as_bytes(), 1460), ["LongHead"]);
        assert_eq!(frames(Opened::There, &b"A".repeat(MAX_HEAD_BYTES), 1460), ["LongHead"]);
        let body = message(&format!("Content-Length: {MAX_BODY_BYTES}"), &"b".repeat(MAX_BODY_BYTES));
        assert_eq!(frames(Opened::There, body.as_bytes(), 4096), [body]);
    }

    #[test]
    fn a_part_tells_since_when_it_waits() {
        let mut framer = Framer::new(Opened::There);
        let one = message("Content-Length: 4", "body");
        assert_eq!(framer.waiting_since(), None);
        framer.receive(Time(1), b"\r\n");
        assert_eq!((framer.poll(), framer.waiting_since()), (Ok(None), None));
        framer.receive(Time(2), b"\r\nOPT");
        assert_eq!((framer.poll(), framer.poll()), (Ok(Some(Frame::Ping)), Ok(None)));
        assert_eq!(framer.waiting_since(), Some(Time(2)));
        framer.receive(Time(3), &one.as_bytes()[3..9]);
        assert_eq!((framer.poll(), framer.waiting_since()), (Ok(None), Some(Time(2))));
        framer.receive(Time(4), &[&one.as_bytes()[9..], b"BYE"].concat());
        assert_eq!(framer.poll(), Ok(Some(Frame::Message(one.clone().into()))));
        assert_eq!((framer.poll(), framer.waiting_since()), (Ok(None), Some(Time(4))));
    }
}
