//! The way into a media room: tokens (JWT, RFC 7519, HS256), the room server's own API (Twirp, with bodies of JSON),
//! and servers that hand out tokens.

mod server;
mod token;
mod webhook;

use std::fmt;

use ringer_base::clock::Clock;
use ringer_base::post::{Poster, Posting};
use serde_json::{Map, Value, json};

pub use self::server::RoomServer;
pub use self::token::{RoomKey, join_token};
pub use self::webhook::{Admission, TokenServer};

use crate::fault::FaultKind;
use crate::room::fault::Credentials;

/// Waits after the first request and the second, milliseconds; the third is the last.
const WAITS_MS: [Option<i64>; 3] = [Some(1000), Some(2000), None];

/// Longest wait that an answer may ask for, seconds.
const WAIT_MOST_S: u64 = 10;

/// Bytes of the longest answer that is read.
const ANSWER_BYTES: usize = 256 * 1024;

/// A participant of a room, and the agent that is sent there to meet it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visit {
    /// Name of the room.
    pub room: String,
    /// Identity of the participant, unique in its room.
    pub identity: String,
    /// Name of the participant as others see it.
    pub name: String,
    /// Metadata of the participant and of a room that is created for it: JSON text.
    pub metadata: String,
    /// Attributes of the participant by name; every value is a text.
    pub attributes: Map<String, Value>,
    /// Name of the agent that is dispatched; empty: every agent without a name, the server's default.
    pub agent_name: String,
    /// Metadata of the agent's job: JSON text.
    pub job_metadata: String,
    /// True for a participant that is the agent itself, whom others wait for.
    pub is_agent: bool,
}

impl Visit {
    /// Returns the agents that are dispatched to the room.
    fn agents(&self, name_field: &str) -> Value {
        json!([{ name_field: self.agent_name, "metadata": self.job_metadata }])
    }
}

/// Reason for which a server did not open a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No answer that can be read; why.
    NoAnswer(String),
    /// No request, since this machine had no file, port or memory left.
    Local(String),
    /// An answer of this status, and the code of the fault that its body names.
    Status(u16, Option<String>),
    /// An answer that says something else than was asked for; what.
    Unusable(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoAnswer(why) | Refusal::Local(why) => f.write_str(why),
            Refusal::Status(status, None) => write!(f, "it answered {status}"),
            Refusal::Status(status, Some(code)) => write!(f, "it answered {status} ({code})"),
            Refusal::Unusable(why) => write!(f, "its answer {why}"),
        }
    }
}

/// A room that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessFault {
    /// Request that failed, without secrets.
    pub asked: String,
    /// Reason for which it failed.
    pub refusal: Refusal,
    /// True for a request to the room server itself, which judges the stored key.
    pub of_server: bool,
}

impl AccessFault {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> FaultKind {
        match self.refusal {
            Refusal::Status(401 | 403, _) if self.of_server => FaultKind::RoomAuth,
            Refusal::Status(429, _) if self.of_server => FaultKind::Busy,
            Refusal::Local(_) => FaultKind::OwnBeforeCall,
            _ => FaultKind::RoomSetup,
        }
    }

    /// Returns the failure in words, with what to check where the room server refuses the key.
    pub fn text(&self, credentials: Credentials) -> String {
        match self.refusal {
            Refusal::Status(401 | 403, _) if self.of_server => format!("{self}: {}", credentials.question()),
            _ => self.to_string(),
        }
    }

    /// True when the request may have been carried out all the same.
    pub fn is_unsure(&self) -> bool {
        !matches!(self.refusal, Refusal::Status(400..=499, _))
    }
}

impl fmt::Display for AccessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.asked, self.refusal)
    }
}

impl std::error::Error for AccessFault {}

/// Sends a request until its answer can be used, at most `attempts` times (at most three). After a status of 400 to 499
/// other than 408, 425 and 429 it is not sent again.
async fn ask<T>(
    poster: &Poster,
    clock: &Clock,
    posting: &Posting<'_>,
    attempts: usize,
    read: impl Fn(&[u8]) -> Result<T, String>,
) -> Result<T, Refusal> {
    let mut waits = WAITS_MS.into_iter().take(attempts.saturating_sub(1)).flatten();
    loop {
        let (refusal, asked_s) = match poster.exchange(posting.clone()).await {
            Ok(posted) if posted.status == 200 => match read(&posted.body) {
                Ok(read) => return Ok(read),
                Err(why) => (Refusal::Unusable(why), None),
            },
            Ok(posted) => {
                let refusal = Refusal::Status(posted.status, fault_code(&posted.body));
                if matches!(posted.status, 400..=499) && !matches!(posted.status, 408 | 425 | 429) {
                    return Err(refusal);
                }
                (refusal, posted.retry_after_s.filter(|_| posted.status == 429))
            }
            Err(failed) if failed.is_own => (Refusal::Local(failed.why), None),
            Err(failed) => (Refusal::NoAnswer(failed.why), None),
        };
        let Some(wait) = waits.next() else { return Err(refusal) };
        let wait = asked_s.map_or(wait, |seconds| 1000 * seconds.min(WAIT_MOST_S) as i64);
        clock.until(clock.now_ms() + wait).await;
    }
}

/// Returns the code of a fault that an answer names: `code` of the errors of Twirp, where it is one of its words.
fn fault_code(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let is_word = |code: &&str| code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    answer["code"].as_str().filter(|code| !code.is_empty()).filter(is_word).map(str::to_owned)
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_kind() {
        let check = |of_server, refusal: Refusal, kind: FaultKind, text: &str| {
            let fault = AccessFault { asked: "the question".into(), refusal, of_server };
            assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, text));
        };
        let failed = FaultKind::RoomSetup;
        let status = |status| Refusal::Status(status, None);
        check(true, status(401), FaultKind::RoomAuth, "the question: it answered 401");
        check(
            true,
            Refusal::Status(403, Some("permission_denied".into())),
            FaultKind::RoomAuth,
            "the question: it answered 403 (permission_denied)",
        );
        check(true, status(429), FaultKind::Busy, "the question: it answered 429");
        check(true, status(503), failed, "the question: it answered 503");
        for code in [401, 403, 429, 500] {
            check(false, status(code), failed, &format!("the question: it answered {code}"));
        }
        check(true, Refusal::NoAnswer("no connection".into()), failed, "the question: no connection");
        let refused = AccessFault { asked: "the question".into(), refusal: status(401), of_server: true };
        let expect = "the question: it answered 401: are RINGER_ROOM_KEY and RINGER_ROOM_SECRET those of this server?";
        assert_eq!(refused.text(Credentials::Variables), expect);
        let unknown = AccessFault { of_server: false, ..refused };
        assert_eq!(unknown.text(Credentials::Integration), "the question: it answered 401");
        check(false, Refusal::Unusable("is no JSON".into()), failed, "the question: its answer is no JSON");
    }

    #[test]
    fn codes_of_faults_are_words() {
        for (body, expect) in [
            (r#"{"code":"permission_denied","msg":"key APIx is not known"}"#, Some("permission_denied")),
            (r#"{"code":""}"#, None),
            (r#"{"code":7}"#, None),
            (r#"{"code":"Key APIx"}"#, None),
            ("<html>", None),
        ] {
            assert_eq!(fault_code(body.as_bytes()).as_deref(), expect, "{body}");
        }
    }
}
