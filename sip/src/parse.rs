//! Reads bytes as a [`Message`]: one datagram, or one message of a stream (RFC 3261 7 and 18.3).
//!
//! Lenient where the RFC lets a reader be: folding, blanks, compact forms, a bare LF, bytes that are not UTF-8, no
//! Content-Length. A fault that can still be answered is noted in the request; only bytes that are not SIP are an
//! error.
//!
//! The crate `rsip` is not used. Its source matches header names in full, so that a compact `f:` is no From; it splits
//! hosts at the first colon, which cuts IPv6 references; and it takes no header whose bytes are not UTF-8 (RFC 3261
//! 7.3.3, RFC 5118, RFC 4475 3.1).

use std::borrow::Cow;

use crate::error::ParseError;
use crate::message::{Defect, Header, Headers, Message, Method, Request, Response};

/// Longest start line and header section of a message on a stream, bytes.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Longest body of a message on a stream, bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// Longest message that is read, bytes. A datagram holds 65,535 at most.
pub const MAX_MESSAGE_BYTES: usize = MAX_HEAD_BYTES + MAX_BODY_BYTES;

/// Largest number of header fields that is read.
pub const MAX_HEADERS: usize = 256;

/// Reads one datagram, or one message of a stream.
///
/// A request, and its response:
///
/// ```
/// use ringer_sip::Message;
/// use ringer_sip::parse::parse;
///
/// let text = "OPTIONS sip:agent@192.0.2.1 SIP/2.0\r\n\
///     v: SIP/2.0/UDP 192.0.2.9:5060;branch=z9hG4bK74b43\r\n\
///     f: <sip:probe@192.0.2.9>;tag=9fxced\r\n\
///     t: <sip:agent@192.0.2.1>\r\n\
///     i: 3848276298@192.0.2.9\r\n\
///     CSeq: 7 OPTIONS\r\n\r\n";
/// let Message::Request(request) = parse(text.as_bytes())? else { panic!("it has a method") };
/// assert_eq!(request.headers.cseq()?.seq, 7);
///
/// let response = request.respond(200, "", "a6c85cf");
/// assert_eq!(response.headers.to()?.tag(), "a6c85cf");
/// assert!(response.to_bytes().starts_with(b"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 192.0.2.9:5060;"));
/// assert!(parse(b"OPTIONS").is_err());
/// # Ok::<(), ringer_sip::ParseError>(())
/// ```
pub fn parse(datagram: &[u8]) -> Result<Message, ParseError> {
    if datagram.len() > MAX_MESSAGE_BYTES {
        return Err(ParseError::TooLarge);
    }
    let mut rest = datagram;
    while let [b'\r' | b'\n', tail @ ..] = rest {
        rest = tail;
    }
    let (start, mut rest) = line(rest).ok_or(ParseError::NotSip)?;
    let (start, _) = text(start);
    let start = Start::parse(&start).ok_or(ParseError::NotSip)?;
    let mut headers = Headers(Vec::with_capacity(16));
    loop {
        let (first, tail) = line(rest).ok_or(ParseError::NotSip)?;
        rest = tail;
        if first.is_empty() {
            break;
        }
        if headers.0.len() == MAX_HEADERS {
            return Err(ParseError::TooLarge);
        }
        let mut whole = Cow::Borrowed(first);
        while let [b' ' | b'\t', ..] = rest {
            let (more, tail) = line(rest).ok_or(ParseError::NotSip)?;
            let whole = whole.to_mut();
            whole.push(b' ');
            whole.extend_from_slice(more.trim_ascii());
            rest = tail;
        }
        // A line that is no header field is passed over: nothing that is needed can be in it.
        headers.0.extend(header(&whole));
    }
    let (body, defect) = body(&headers, rest);
    Ok(start.message(headers, body, defect))
}

enum Start {
    Request(Method, String, Option<Defect>),
    Response(u16, String),
}

impl Start {
    fn parse(line: &str) -> Option<Start> {
        if let Some(rest) = line.strip_prefix("SIP/2.0 ") {
            let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let code = code.parse().ok().filter(|code| (100..700).contains(code))?;
            return Some(Start::Response(code, reason.trim().to_owned()));
        }
        let (method, rest) = line.split_once(' ')?;
        let (uri, version) = rest.trim_end().rsplit_once([' ', '\t'])?;
        let digits = version.get(..4).filter(|head| head.eq_ignore_ascii_case("SIP/")).map(|_| &version[4..])?;
        let token = !method.is_empty() && method.chars().all(is_token);
        if !token || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return None;
        }
        let defect = match digits {
            "2.0" if uri != uri.trim() => Some(Defect::Bad("Bad request line")),
            "2.0" => None,
            _ => Some(Defect::Version),
        };
        Some(Start::Request(Method::parse(method), uri.to_owned(), defect))
    }

    fn message(self, headers: Headers, body: Vec<u8>, length: Option<Defect>) -> Message {
        match self {
            Start::Request(method, uri, defect) => {
                Message::Request(Request { method, uri, headers, body, defect: defect.or(length) })
            }
            Start::Response(code, reason) => Message::Response(Response { code, reason, headers, body }),
        }
    }
}

/// Returns the line before the next LF, without its CR, and the bytes after it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let head = &bytes[..end];
    Some((head.strip_suffix(b"\r").unwrap_or(head), &bytes[end + 1..]))
}

/// Returns UTF-8 text, or else one character a byte, which true marks.
fn text(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()), true),
    }
}

fn header(line: &[u8]) -> Option<Header> {
    let colon = line.iter().position(|b| *b == b':')?;
    let name = std::str::from_utf8(line[..colon].trim_ascii_end()).ok()?;
    if name.is_empty() || !name.chars().all(is_token) {
        return None;
    }
    let (value, latin1) = text(line[colon + 1..].trim_ascii());
    Some(Header { name: written_out(name), value: value.into_owned(), latin1 })
}

/// True for a token character (RFC 3261 25.1).
pub(crate) fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-.!%*_+`'~".contains(c)
}

/// Returns the long name of a compact form (RFC 3261 7.3.3 and the IANA registry).
fn written_out(name: &str) -> Cow<'static, str> {
    let [letter] = name.as_bytes() else { return Cow::Owned(name.to_owned()) };
    Cow::Borrowed(match letter.to_ascii_lowercase() {
        b'a' => "Accept-Contact",
        b'b' => "Referred-By",
        b'c' => "Content-Type",
        b'd' => "Request-Disposition",
        b'e' => "Content-Encoding",
        b'f' => "From",
        b'i' => "Call-ID",
        b'j' => "Reject-Contact",
        b'k' => "Supported",
        b'l' => "Content-Length",
        b'm' => "Contact",
        b'o' => "Event",
        b'r' => "Refer-To",
        b's' => "Subject",
        b't' => "To",
        b'u' => "Allow-Events",
        b'v' => "Via",
        b'x' => "Session-Expires",
        b'y' => "Identity",
        _ => return Cow::Owned(name.to_owned()),
    })
}

/// Cuts the body to Content-Length; without one it is the rest of the datagram (RFC 3261 18.3).
fn body(headers: &Headers, rest: &[u8]) -> (Vec<u8>, Option<Defect>) {
    let mut lengths = headers.all("Content-Length");
    match lengths.next().map(str::parse::<usize>) {
        None => (rest.to_vec(), None),
        Some(Ok(_)) if lengths.next().is_some() => (Vec::new(), Some(Defect::Bad("Multiple Content-Length"))),
        Some(Ok(length)) if length <= rest.len() => (rest[..length].to_vec(), None),
        Some(_) => (Vec::new(), Some(Defect::Bad("Bad Content-Length"))),
    }
}
