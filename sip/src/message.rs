//! A SIP message in memory, and its bytes (RFC 3261 7, 20, 25).
//!
//! Header fields keep their order, their text and their number, known or not; values are parsed from the text when they
//! are needed. Correctness is checked apart from reading: [`Request::check`].

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use crate::error::ParseError;
use crate::header::{CSeq, NameAddr, Via};
pub use crate::method::Method;
use crate::text::split_quoted;
use crate::uri::{Params, Uri};

/// A request or a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Request, with a method and an address.
    Request(Request),
    /// Response, with a status code.
    Response(Response),
}

/// A SIP request (RFC 3261 7.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Method; its name is case-sensitive.
    pub method: Method,
    /// Request-URI as it was written.
    pub uri: String,
    /// Header fields in the order of the message.
    pub headers: Headers,
    /// Body: as many bytes as Content-Length says, or the rest of the datagram.
    pub body: Vec<u8>,
    /// Fault that the reader found; `None` for a request without one.
    pub(crate) defect: Option<Defect>,
}

/// A SIP response (RFC 3261 7.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Status code, 100 to 699.
    pub code: u16,
    /// Reason phrase, may be empty.
    pub reason: String,
    /// Header fields in the order of the message.
    pub headers: Headers,
    /// Body: as many bytes as Content-Length says, or the rest of the datagram.
    pub body: Vec<u8>,
}

/// Reason to refuse a request before it is handled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Version other than SIP/2.0: answered with 505.
    Version,
    /// Request-URI of an unknown scheme: answered with 416.
    Scheme,
    /// Any other fault: answered with 400 and this phrase.
    Bad(&'static str),
}

impl Defect {
    /// Returns the status and phrase of the answer.
    pub fn answer(self) -> (u16, &'static str) {
        match self {
            Defect::Version => (505, reason_phrase(505)),
            Defect::Scheme => (416, reason_phrase(416)),
            Defect::Bad(phrase) => (400, phrase),
        }
    }
}

/// One header field: its name and its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Name as it was written; a compact form is written out.
    pub name: Cow<'static, str>,
    /// Value, unfolded, without blanks at its ends.
    pub value: String,
    /// True when the bytes were not UTF-8: each stands for one character and is printed as one byte again.
    pub(crate) latin1: bool,
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, if self.is_secret() { "(secret)" } else { &self.value })
    }
}

impl Header {
    /// True when the value holds credentials, which are not to be logged.
    pub fn is_secret(&self) -> bool {
        ["Authorization", "Proxy-Authorization"].iter().any(|n| self.name.eq_ignore_ascii_case(n))
    }
}

/// Header fields of a message, in order. Names compare without case.
#[derive(Clone, PartialEq, Default)]
pub struct Headers(pub(crate) Vec<Header>);

impl Headers {
    /// Returns the first value of `name`; `None` without one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value.as_str())
    }

    /// Returns every field called `name`, unsplit.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value.as_str())
    }

    /// Returns every element of the comma-separated fields called `name`.
    pub fn list<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.all(name).flat_map(|value| split_quoted(value, ',')).filter(|part| !part.is_empty()).collect()
    }

    /// Appends a field. Line breaks in `value` become blanks, so that a value can never become a header of its own.
    pub fn push(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        let mut value = value.into();
        if value.contains(['\r', '\n', '\0']) {
            value = value.replace(['\r', '\n', '\0'], " ");
        }
        self.0.push(Header { name: name.into(), value, latin1: false });
    }

    /// Puts a field before all others.
    pub fn push_first(&mut self, name: &'static str, value: impl Into<String>) {
        self.push(name, value);
        self.0.rotate_right(1);
    }

    /// Appends every field of `other` called `name`, byte for byte.
    pub fn copy(&mut self, other: &Headers, name: &str) {
        self.0.extend(other.0.iter().filter(|h| h.name.eq_ignore_ascii_case(name)).cloned());
    }

    /// Replaces the first field called `name`, or appends it.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        match self.0.iter_mut().find(|h| h.name.eq_ignore_ascii_case(name)) {
            Some(header) => header.value = value.into(),
            None => self.push(name, value),
        }
    }

    /// Removes every field called `name`.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|h| !h.name.eq_ignore_ascii_case(name));
    }

    /// Returns all fields in order.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter()
    }

    /// Returns the Call-ID; an error when it is missing or empty.
    pub fn call_id(&self) -> Result<&str, ParseError> {
        self.get("Call-ID").filter(|v| !v.is_empty()).ok_or(ParseError::Header("Call-ID"))
    }

    /// Reads From; an error when it is missing or unreadable.
    pub fn from(&self) -> Result<NameAddr, ParseError> {
        self.get("From").and_then(NameAddr::parse).ok_or(ParseError::Header("From"))
    }

    /// Reads To; an error when it is missing or unreadable.
    pub fn to(&self) -> Result<NameAddr, ParseError> {
        self.get("To").and_then(NameAddr::parse).ok_or(ParseError::Header("To"))
    }

    /// Reads CSeq; an error when it is missing or unreadable.
    pub fn cseq(&self) -> Result<CSeq, ParseError> {
        self.get("CSeq").and_then(CSeq::parse).ok_or(ParseError::Header("CSeq"))
    }

    /// Reads the topmost Via; an error when it is missing or unreadable.
    pub fn top_via(&self) -> Result<Via, ParseError> {
        let value = self.get("Via").ok_or(ParseError::Header("Via"))?;
        split_quoted(value, ',').first().and_then(|v| Via::parse(v)).ok_or(ParseError::Header("Via"))
    }

    /// Returns the Q.850 cause of a Reason header field (RFC 3326); `None` without one.
    pub fn q850_cause(&self) -> Option<u16> {
        self.list("Reason").into_iter().find_map(|value| {
            let (protocol, params) = value.split_once(';')?;
            protocol.trim().eq_ignore_ascii_case("Q.850").then(|| Params::parse(params).get("cause")?.parse().ok())?
        })
    }

    fn print(&self, out: &mut Vec<u8>, body: &[u8]) {
        for header in self.0.iter().filter(|h| !h.name.eq_ignore_ascii_case("Content-Length")) {
            out.extend_from_slice(header.name.as_bytes());
            out.extend_from_slice(b": ");
            if header.latin1 {
                out.extend(header.value.chars().map(|c| c as u8));
            } else {
                out.extend_from_slice(header.value.as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        out.extend_from_slice(body);
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl Request {
    /// Returns a request without header fields.
    pub fn new(method: Method, uri: impl Into<String>) -> Request {
        Request { method, uri: uri.into(), headers: Headers::default(), body: Vec::new(), defect: None }
    }

    /// Returns the bytes; Content-Length is always written and always right.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024 + self.body.len());
        out.extend_from_slice(format!("{} {} SIP/2.0\r\n", self.method, self.uri).as_bytes());
        self.headers.print(&mut out, &self.body);
        out
    }

    /// Sets an SDP body and its Content-Type.
    pub fn set_sdp(&mut self, sdp: &str) {
        self.headers.push("Content-Type", "application/sdp");
        self.body = sdp.as_bytes().to_vec();
    }

    /// Checks a request before it is handled (RFC 3261 8.1.1, 8.2.2, 16.3; RFC 4475 3.1.2 and 3.3).
    pub fn check(&self) -> Result<(), Defect> {
        if let Some(defect) = self.defect {
            return Err(defect);
        }
        let once =
            |name, phrase| if self.headers.all(name).nth(1).is_some() { Err(Defect::Bad(phrase)) } else { Ok(()) };
        once("From", "Multiple From")?;
        once("To", "Multiple To")?;
        once("Call-ID", "Multiple Call-ID")?;
        once("CSeq", "Multiple CSeq")?;
        let via = self.headers.list("Via").first().map(|via| split_quoted(via, ';').contains(&""));
        if via != Some(false) || self.headers.top_via().is_ok_and(|via| via.version != "2.0") {
            return Err(Defect::Bad("Bad Via"));
        }
        let from = self.headers.from().map_err(|_| Defect::Bad("Bad From"))?;
        let to = self.headers.to().map_err(|_| Defect::Bad("Bad To"))?;
        self.headers.call_id().map_err(|_| Defect::Bad("Missing Call-ID"))?;
        let cseq = self.headers.cseq().map_err(|_| Defect::Bad("Bad CSeq"))?;
        if cseq.method != self.method {
            return Err(Defect::Bad("CSeq method differs"));
        }
        if self.headers.get("Max-Forwards").is_some_and(|v| v.parse::<u8>().is_err()) {
            return Err(Defect::Bad("Bad Max-Forwards"));
        }
        for uri in [&from.uri, &to.uri] {
            if Uri::parse(uri) == Err(ParseError::Address) {
                return Err(Defect::Bad("Bad address"));
            }
        }
        match Uri::parse(&self.uri) {
            Err(ParseError::Scheme) if !self.uri.starts_with('<') => Err(Defect::Scheme),
            Err(_) => Err(Defect::Bad("Bad Request-URI")),
            Ok(uri) if !uri.headers.is_empty() => Err(Defect::Bad("Bad Request-URI")),
            Ok(_) => Ok(()),
        }
    }

    /// Returns a response with the header fields that every response copies (RFC 3261 8.2.6.2), and `to_tag` when To
    /// has none.
    pub fn respond(&self, code: u16, reason: &str, to_tag: &str) -> Response {
        let reason = if reason.is_empty() { reason_phrase(code) } else { reason };
        let mut response = Response { code, reason: reason.to_owned(), headers: Headers::default(), body: Vec::new() };
        for name in ["Via", "From", "To", "Call-ID", "CSeq"] {
            response.headers.copy(&self.headers, name);
        }
        if code < 300 && code > 100 {
            response.headers.copy(&self.headers, "Record-Route");
        }
        let tagged = self.headers.to().is_ok_and(|to| to.params.has("tag"));
        if code > 100
            && !tagged
            && !to_tag.is_empty()
            && let Some(to) = response.headers.0.iter_mut().find(|h| h.name.eq_ignore_ascii_case("To"))
        {
            let _ = write!(to.value, ";tag={to_tag}");
        }
        response
    }
}

impl Response {
    /// Returns the bytes; Content-Length is always written and always right.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024 + self.body.len());
        out.extend_from_slice(format!("SIP/2.0 {} {}\r\n", self.code, self.reason).as_bytes());
        self.headers.print(&mut out, &self.body);
        out
    }

    /// Sets an SDP body and its Content-Type.
    pub fn set_sdp(&mut self, sdp: &str) {
        self.headers.push("Content-Type", "application/sdp");
        self.body = sdp.as_bytes().to_vec();
    }

    /// Checks that every header is there and readable that finds the request of this response.
    pub fn check(&self) -> Result<(), ParseError> {
        self.headers.top_via()?;
        self.headers.from()?;
        self.headers.to()?;
        self.headers.call_id()?;
        self.headers.cseq().map(|_| ())
    }
}

/// Returns the SDP of a body: the body itself, or the `application/sdp` part of a multipart one (RFC 5621).
pub(crate) fn sdp_of(headers: &Headers, body: &[u8]) -> Option<String> {
    if body.is_empty() {
        return None;
    }
    let kind = headers.get("Content-Type").unwrap_or("application/sdp");
    let (kind, params) = kind.split_once(';').unwrap_or((kind, ""));
    let text = String::from_utf8_lossy(body);
    if kind.trim().eq_ignore_ascii_case("application/sdp") {
        return Some(text.into_owned());
    }
    if !kind.trim().to_ascii_lowercase().starts_with("multipart/") {
        return None;
    }
    let boundary = format!("--{}", Params::parse(params).get("boundary")?);
    text.split(boundary.as_str()).skip(1).find_map(|part| {
        let (head, body) = part.split_once("\r\n\r\n").or_else(|| part.split_once("\n\n"))?;
        let sdp = head.to_ascii_lowercase().contains("application/sdp");
        sdp.then(|| format!("{}\r\n", body.trim_end_matches(['\r', '\n'])))
    })
}

/// Returns the usual phrase of a status code (RFC 3261 21); empty for a code without one.
pub fn reason_phrase(code: u16) -> &'static str {
    match code {
        100 => "Trying",
        180 => "Ringing",
        181 => "Call Is Being Forwarded",
        183 => "Session Progress",
        200 => "OK",
        202 => "Accepted",
        302 => "Moved Temporarily",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        416 => "Unsupported URI Scheme",
        420 => "Bad Extension",
        422 => "Session Interval Too Small",
        480 => "Temporarily Unavailable",
        481 => "Call/Transaction Does Not Exist",
        482 => "Loop Detected",
        486 => "Busy Here",
        487 => "Request Terminated",
        488 => "Not Acceptable Here",
        491 => "Request Pending",
        500 => "Server Internal Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        504 => "Server Time-out",
        505 => "Version Not Supported",
        600 => "Busy Everywhere",
        603 => "Decline",
        _ => "",
    }
}
