//! Text messages as requests of their own, outside of any call (RFC 3428): sending them, and reading those that come.
//!
//! This file has the messages, their events and their state; `useragent` has the rules.

use std::collections::{BTreeMap, VecDeque};

use crate::auth::{Challenged, Credentials, Login};
use crate::hop::Hop;
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Method, Request};
use crate::text::split_quoted;
use crate::uri::{Params, Uri};

/// Largest request of a text over datagrams, in bytes (RFC 3428 8).
const MOST_BYTES: usize = 1300;
/// Fewest bytes of text that a request carries, however long its header fields are.
const LEAST_ROOM: usize = 100;
/// Bytes of the longest challenge that an answer is expected to repeat: realm, nonce and opaque value.
const CHALLENGE_BYTES: usize = 256;
/// Longest text that is taken, bytes; larger ones are answered 413.
const MOST_TEXT_BYTES: usize = 16_384;
/// Most texts under way at the same time.
pub(crate) const MOST_TEXTS: usize = 10_000;

/// A text message to send.
#[derive(Clone, Debug)]
pub struct TextMessage {
    /// Address of the receiver: Request-URI and To.
    pub target: Uri,
    /// Value of From without its tag.
    pub from: String,
    /// Further header fields in order.
    pub headers: Vec<(String, String)>,
    /// Words of the message.
    pub text: String,
    /// Call-ID of its requests.
    pub call_id: String,
    /// Answers to challenges; `None`: there is no answer.
    pub credentials: Option<Credentials>,
    /// Places that are tried in this order where one cannot be reached, or answers 503.
    pub places: Vec<Hop>,
}

impl TextMessage {
    /// Returns the number of bytes of text that one request to these places carries; `None`: no limit is known.
    pub fn room(&self, user_agent: &str) -> Option<usize> {
        if self.places.iter().all(|hop| hop.transport.is_reliable()) {
            return None;
        }
        let longest = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
        let via = format!("SIP/2.0/UDP {longest};branch=z9hG4bK{};rport", "0".repeat(20));
        let mut request = self.request(&"0".repeat(20), u32::MAX);
        request.headers.push_first("Via", via);
        request.headers.push("User-Agent", user_agent);
        if let Some(who) = &self.credentials {
            let fixed = "Digest username=\"\", realm=\"\", nonce=\"\", uri=\"\", response=\"\", algorithm=SHA-256, opaque=\"\", \
                         qop=auth, nc=00000001, cnonce=\"\"";
            // A response of SHA-256, and a cnonce.
            let value = fixed.len() + who.username.len() + request.uri.len() + CHALLENGE_BYTES + 64 + 20;
            request.headers.push("Proxy-Authorization", "x".repeat(value));
        }
        request.body.clear();
        // The length of the body is one digit so far.
        let left = MOST_BYTES.saturating_sub(request.to_bytes().len() + 3);
        Some(left.max(LEAST_ROOM))
    }

    /// Returns the request without Via, User-Agent and credentials.
    pub(crate) fn request(&self, tag: &str, seq: u32) -> Request {
        let mut request = Request::new(Method::Message, self.target.to_string());
        let headers = &mut request.headers;
        headers.push("Max-Forwards", "70");
        headers.push("From", format!("{};tag={tag}", self.from));
        headers.push("To", format!("<{}>", self.target));
        headers.push("Call-ID", self.call_id.clone());
        headers.push("CSeq", format!("{seq} MESSAGE"));
        for (name, value) in &self.headers {
            headers.push(name.clone(), value.clone());
        }
        headers.push("Content-Type", "text/plain;charset=UTF-8");
        request.body = self.text.as_bytes().to_vec();
        request
    }
}

/// Reason why a text was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRefusal {
    /// Status of the answer, or the one that stands for there being none (RFC 3261 8.1.3.1).
    pub code: u16,
    /// True if the status is that of an answer.
    pub is_answer: bool,
    /// Explanation for a person.
    pub text: String,
    /// Wait in seconds that the answer asks for (RFC 3261 20.33).
    pub retry_after_s: Option<u64>,
    /// True if the text may have been taken all the same: nothing tells that it was not.
    pub is_open: bool,
}

/// Name of a text that came, for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextKey(pub(crate) TransactionKey);

/// A text message that came, and is to be answered.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingText {
    /// Name of the message for [`Endpoint::answer_text`](crate::Endpoint::answer_text).
    pub key: TextKey,
    /// Address of the sender, as it names itself.
    pub from: String,
    /// Address that the sender wanted to reach.
    pub to: String,
    /// Request-URI as it was written.
    pub request_uri: String,
    /// Header fields of the request, in order, without credentials.
    pub headers: Vec<(String, String)>,
    /// Name that is the same for every repetition of the message: its Call-ID and the number in CSeq.
    pub id: String,
    /// Words of the message.
    pub text: String,
    /// Place that it came from.
    pub source: Hop,
}

/// Event of a text message.
#[derive(Clone, Debug, PartialEq)]
pub enum TextEvent {
    /// A text that was sent has its final answer.
    Sent(CallKey, Result<(), TextRefusal>),
    /// A text came, and waits for its answer.
    Incoming(Box<IncomingText>),
}

/// A text that was sent, until its final answer.
pub(crate) struct Sending {
    /// Message that is sent.
    pub message: TextMessage,
    /// Tag of its From header field.
    pub tag: String,
    /// Number in CSeq of the request that is under way.
    pub seq: u32,
    /// Challenges that were answered, and the credentials.
    pub login: Login,
    /// Realms whose challenges this message has answered.
    pub challenged: Challenged,
    /// Place of the request that is under way.
    pub place: Hop,
    /// Places that are left.
    pub places: VecDeque<Hop>,
}

/// Texts of an endpoint.
#[derive(Default)]
pub(crate) struct Texts {
    /// Texts that were sent and are not answered.
    pub sending: BTreeMap<CallKey, Sending>,
    /// Events that nobody has polled yet, in order.
    pub events: VecDeque<TextEvent>,
    /// True if texts that come are taken; else they are refused.
    pub takes: bool,
}

impl TextRefusal {
    pub(crate) fn own(code: u16, text: &str) -> TextRefusal {
        TextRefusal { code, is_answer: false, text: text.to_owned(), retry_after_s: None, is_open: false }
    }
}

/// Status and header fields of a refusal.
pub(crate) type Refused = (u16, &'static [(&'static str, &'static str)]);

/// Returns the words of a MESSAGE: plain text in UTF-8 (RFC 3428 5 leaves other types to the receiver).
pub(crate) fn text_of(request: &Request) -> Result<String, Refused> {
    let other: Refused = (415, &[("Accept", "text/plain"), ("Accept-Encoding", "identity")]);
    let encoding = request.headers.get("Content-Encoding").is_none_or(|name| name.eq_ignore_ascii_case("identity"));
    let kind = request.headers.get("Content-Type").unwrap_or("text/plain");
    let (kind, params) = kind.split_once(';').unwrap_or((kind, ""));
    let charset = split_quoted(params, ';').join(";");
    let charset = Params::parse(&charset).get("charset").unwrap_or("UTF-8").trim_matches('"').to_ascii_uppercase();
    let is_known = matches!(charset.as_str(), "UTF-8" | "UTF8" | "US-ASCII");
    if request.body.len() > MOST_TEXT_BYTES {
        return Err((413, &[]));
    }
    if !encoding || !kind.trim().eq_ignore_ascii_case("text/plain") || !is_known {
        return Err(other);
    }
    String::from_utf8(request.body.clone()).map_err(|_| other)
}
