//! Errors of reading bytes or text. No variant carries the text itself: it may hold credentials.

use std::fmt;

/// Reason why a message, an address, a header or a session description is unreadable. The caller drops the input, or
/// answers 400.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Message larger than [`crate::parse::MAX_MESSAGE_BYTES`], or with more than [`crate::parse::MAX_HEADERS`] header
    /// fields.
    TooLarge,
    /// Bytes that are not SIP at all: no start line, or no end of the header.
    NotSip,
    /// Required header field that is missing or unreadable; its name.
    Header(&'static str),
    /// Address whose scheme is unknown (not `sip:`, `sips:` or `tel:`).
    Scheme,
    /// Address without a user or a host, or with bad characters.
    Address,
    /// Text that is no session description; the line at fault, from 1.
    Sdp(usize),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::TooLarge => f.write_str("message too large"),
            ParseError::NotSip => f.write_str("not a SIP message"),
            ParseError::Header(name) => write!(f, "missing or malformed {name}"),
            ParseError::Scheme => f.write_str("unsupported URI scheme"),
            ParseError::Address => f.write_str("malformed address"),
            ParseError::Sdp(line) => write!(f, "malformed session description, line {line}"),
        }
    }
}

impl std::error::Error for ParseError {}
