//! Reasons for which a call to a room does not come about or breaks off.

use std::fmt;
use std::time::Duration;

use url::Url;

use super::messages::DisconnectReason;
use crate::fault::FaultKind;
use crate::webrtc::PeerFault;
use crate::websocket::dial::DialFault;

/// Step at which a call to a room failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The room is being joined.
    Join,
    /// The room is joined, and the agent is waited for.
    Agent,
    /// The call is up.
    Call,
}

/// Reason for which a call to a room fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The address of the server is none; the text says why.
    Address(String),
    /// The server could not be reached or refused; with its own words, where it gave some.
    Dial(DialFault, Option<String>),
    /// The server joined nobody within this time.
    NoJoin(Duration),
    /// No agent with audio came within this time; the text says what was there.
    NoAgent(Duration, &'static str),
    /// The token does not give this right.
    NotPermitted(&'static str),
    /// The server ended the connection for this reason.
    Left(DisconnectReason),
    /// The agent ended by a fault that the server tells of.
    AgentFailed,
    /// The agent's connection to the room was lost for this reason.
    AgentLost(DisconnectReason),
    /// The server's messages cannot be read, or break the protocol; how.
    Protocol(String),
    /// The signalling was lost and did not come back; how, and the number of attempts.
    Lost(String, u32),
    /// A fault of a peer connection.
    Peer(PeerFault),
    /// A fault of this side.
    Local(String),
}

/// A failure of a call to a room.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomFault {
    /// Step at which it failed.
    pub step: Step,
    /// Reason for which it failed.
    pub reason: Reason,
}

/// Source of the token that lets the Digital Human join.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// The source is not known.
    #[default]
    Unknown,
    /// Signed with `RINGER_ROOM_KEY` and `RINGER_ROOM_SECRET`.
    Variables,
    /// Given as it is by `RINGER_ROOM_TOKEN`.
    Token,
    /// Signed with the stored `P1_api_key` and `P1_api_secret`.
    Integration,
    /// Handed out by the address of `P1_token_webhook_url`.
    Webhook,
    /// Handed out by a pipeline that was started.
    Start,
    /// Handed out by the session that a platform made.
    Session,
}

impl Credentials {
    /// Returns the question to ask when the room server refuses the credentials.
    pub fn question(self) -> &'static str {
        match self {
            Credentials::Unknown => "are the key and secret, or the token, those of this server?",
            Credentials::Variables => "are RINGER_ROOM_KEY and RINGER_ROOM_SECRET those of this server?",
            Credentials::Token => "is RINGER_ROOM_TOKEN a token of this server that has not expired?",
            Credentials::Integration => {
                "are P1_api_key and P1_api_secret (of a suite: RINGER_ROOM_KEY and RINGER_ROOM_SECRET) those of this server?"
            }
            Credentials::Webhook => {
                "is the token of P1_token_webhook_url (of a suite: RINGER_ROOM_TOKEN, or RINGER_ROOM_KEY and \
                 RINGER_ROOM_SECRET) one of this server?"
            }
            Credentials::Session => "is the token of the platform's session one of this server?",
            Credentials::Start => "is the token that the start of the pipeline handed out one of this server?",
        }
    }
}

/// Facts of a call to a room by which its failure says what to check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomTerms {
    /// Name of the agent that was dispatched; empty: none is known.
    pub agent_name: String,
    /// Source of the token.
    pub credentials: Credentials,
    /// Name of the platform that the agent is on, such as `P4`.
    pub platform: Option<String>,
    /// Address of the server without secrets, as logs and timelines tell it; `None`: it has none.
    pub shown: Option<String>,
}

/// Words of [`Reason::NoAgent`] for a room that no agent joined, whoever else is there.
const NO_AGENT: &str = "no agent joined";

impl RoomFault {
    /// Returns the failure in words, with what to check at the server of `url`.
    pub fn text(&self, url: &str, terms: &RoomTerms) -> String {
        match &self.reason {
            Reason::Dial(DialFault::Unauthorized(status), words) => {
                let words = words.as_ref().map(|words| format!(", \"{words}\"")).unwrap_or_default();
                let (server, question) = (place_of(url), terms.credentials.question());
                format!("{}the room server at {server} refuses the token ({status}{words}): {question}", self.step)
            }
            Reason::NoAgent(within, what) if what.contains(NO_AGENT) && !terms.agent_name.is_empty() => {
                let (name, seconds) = (&terms.agent_name, within.as_secs_f64());
                let question = "is a worker registered under this name?";
                format!("{}the agent {name} did not join the room within {seconds} s: {question}", self.step)
            }
            _ => self.to_string(),
        }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> FaultKind {
        match (&self.reason, self.step) {
            (Reason::AgentFailed, _) => FaultKind::RoomAgent,
            (Reason::Local(_), Step::Call) => FaultKind::OwnInCall,
            (_, Step::Call) => FaultKind::RoomLost,
            (Reason::Local(_), _) => FaultKind::OwnBeforeCall,
            (Reason::Dial(DialFault::NoSocket(_), _), _) => FaultKind::OwnBeforeCall,
            (Reason::NotPermitted(_) | Reason::Dial(DialFault::Unauthorized(_), _), _) => FaultKind::RoomAuth,
            (Reason::Dial(DialFault::Busy(429), _), _) => FaultKind::Busy,
            (Reason::NoAgent(..), _) => FaultKind::RoomNoAgent,
            _ => FaultKind::RoomConnect,
        }
    }
}

/// Returns host and port of an address.
pub(super) fn place_of(url: &str) -> String {
    let Ok(parsed) = Url::parse(url.trim()) else { return "an address that cannot be read".to_owned() };
    let host = parsed.host_str().unwrap_or_default();
    parsed.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns the reason of a number, in words.
pub(super) fn reason_in_words(reason: DisconnectReason) -> &'static str {
    match reason {
        DisconnectReason::Unknown => "without a reason",
        DisconnectReason::ClientInitiated => "as asked by this side",
        DisconnectReason::DuplicateIdentity => "because another participant has joined with the same identity",
        DisconnectReason::ServerShutdown => "because the server is being stopped",
        DisconnectReason::ParticipantRemoved => "because the participant was removed",
        DisconnectReason::RoomDeleted => "because the room was deleted",
        DisconnectReason::StateMismatch => "because it and this side disagree on the state",
        DisconnectReason::JoinFailure => "because the room could not be joined",
        DisconnectReason::Migration => "because another server takes the room over",
        DisconnectReason::SignalClose => "because the signalling was closed",
        DisconnectReason::RoomClosed => "because the room was closed",
        DisconnectReason::UserUnavailable => "because a called person did not answer",
        DisconnectReason::UserRejected => "because a called person declined",
        DisconnectReason::SipTrunkFailure => "because a telephone line failed",
        DisconnectReason::ConnectionTimeout => "because the media connection broke off or did not come about",
        DisconnectReason::MediaFailure => "because the media broke off",
        DisconnectReason::AgentError => "because the agent failed",
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Join => "join of the room: ",
            Step::Agent => "wait for the agent: ",
            Step::Call => "connection to the room: ",
        })
    }
}

impl fmt::Display for RoomFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.step.fmt(f)?;
        match &self.reason {
            Reason::Address(why) => write!(f, "the address of the room server {why}"),
            Reason::Dial(fault, None) => f.write_str(&fault.text()),
            Reason::Dial(fault, Some(words)) => write!(f, "{}: {words}", fault.text()),
            Reason::NoJoin(within) => write!(f, "the server did not let it in within {} ms", within.as_millis()),
            Reason::NoAgent(within, what) => write!(f, "{what} within {} s", within.as_secs_f64()),
            Reason::NotPermitted(right) => write!(f, "the token does not allow {right}"),
            Reason::Left(reason) => write!(f, "the server ended it {}", reason_in_words(*reason)),
            Reason::AgentLost(reason) => {
                write!(f, "the agent's connection was lost and did not come back: it left {}", reason_in_words(*reason))
            }
            Reason::AgentFailed => f.write_str("the server tells that the agent failed"),
            Reason::Protocol(why) => write!(f, "the server {why}"),
            Reason::Lost(why, attempts) => {
                write!(f, "the signalling was lost ({why}) and did not come back in {attempts} attempts")
            }
            Reason::Peer(fault) => fault.fmt(f),
            Reason::Local(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RoomFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_what_to_check() {
        let check = |step, reason: Reason, agent_name: &str, credentials, expect: &str| {
            let terms = RoomTerms { agent_name: agent_name.to_owned(), credentials, ..RoomTerms::default() };
            let text = RoomFault { step, reason }.text("wss://rooms.example/eu?key=1", &terms);
            assert_eq!(text, expect);
        };
        use Step::{Agent, Join};
        let refused = |words: Option<&str>| Reason::Dial(DialFault::Unauthorized(401), words.map(str::to_owned));
        let start = "join of the room: the room server at rooms.example:443 refuses the token (401";
        for (credentials, question) in [
            (Credentials::Variables, "are RINGER_ROOM_KEY and RINGER_ROOM_SECRET those of this server?"),
            (Credentials::Token, "is RINGER_ROOM_TOKEN a token of this server that has not expired?"),
            (
                Credentials::Webhook,
                "is the token of P1_token_webhook_url (of a suite: RINGER_ROOM_TOKEN, or RINGER_ROOM_KEY and \
                 RINGER_ROOM_SECRET) one of this server?",
            ),
            (Credentials::Unknown, "are the key and secret, or the token, those of this server?"),
        ] {
            check(Join, refused(None), "", credentials, &format!("{start}): {question}"));
            let expect = format!("{start}, \"invalid API key\"): {question}");
            check(Join, refused(Some("invalid API key")), "", credentials, &expect);
        }
        let nobody = "no agent joined the room";
        let late = |what| Reason::NoAgent(Duration::from_secs(30), what);
        let known = "wait for the agent: the agent desk did not join the room within 30 s: \
                     is a worker registered under this name?";
        check(Agent, late(nobody), "desk", Credentials::Unknown, known);
        let unknown = "wait for the agent: no agent joined the room within 30 s";
        check(Agent, late(nobody), "", Credentials::Unknown, unknown);
        let others = "others are in the room, and no agent joined it";
        check(Agent, late(others), "desk", Credentials::Unknown, known);
        let mute = "the agent is in the room and published no audio";
        check(Agent, late(mute), "desk", Credentials::Unknown, &format!("wait for the agent: {mute} within 30 s"));
    }

    #[test]
    fn servers_are_named_with_their_ports() {
        for (url, expect) in [
            ("ws://127.0.0.1:7880", "127.0.0.1:7880"),
            ("https://rooms.example/eu", "rooms.example:443"),
            ("ws://user:word@[::1]", "[::1]:80"),
            ("rooms", "an address that cannot be read"),
        ] {
            assert_eq!(place_of(url), expect, "{url}");
        }
    }

    #[test]
    fn every_failure_has_its_kind() {
        let check = |step, reason: Reason, kind: FaultKind| {
            let fault = RoomFault { step, reason };
            assert_eq!(fault.kind(), kind, "{fault}");
        };
        use Step::{Agent, Call, Join};
        let second = Duration::from_secs(1);
        let refused = |status| DialFault::Refused { status: Some(status), why: "no".into() };
        check(Join, Reason::Dial(DialFault::Unauthorized(401), None), FaultKind::RoomAuth);
        check(Join, Reason::Dial(DialFault::Unauthorized(403), Some("w".into())), FaultKind::RoomAuth);
        check(Join, Reason::Dial(DialFault::Busy(429), None), FaultKind::Busy);
        check(Join, Reason::Dial(DialFault::Busy(503), None), FaultKind::RoomConnect);
        check(Join, Reason::Dial(refused(404), None), FaultKind::RoomConnect);
        check(Join, Reason::Dial(DialFault::NoSocket("w".into()), None), FaultKind::OwnBeforeCall);
        check(Join, Reason::NotPermitted("to publish audio"), FaultKind::RoomAuth);
        check(Join, Reason::Address("is no URL".into()), FaultKind::RoomConnect);
        check(Join, Reason::NoJoin(second), FaultKind::RoomConnect);
        check(Join, Reason::Local("w".into()), FaultKind::OwnBeforeCall);
        check(Join, Reason::Left(DisconnectReason::JoinFailure), FaultKind::RoomConnect);
        check(Agent, Reason::NoAgent(second, "w"), FaultKind::RoomNoAgent);
        check(Agent, Reason::Peer(PeerFault::Failed), FaultKind::RoomConnect);
        check(Agent, Reason::AgentFailed, FaultKind::RoomAgent);
        check(Call, Reason::Local("w".into()), FaultKind::OwnInCall);
        check(Call, Reason::AgentFailed, FaultKind::RoomAgent);
        check(Call, Reason::Left(DisconnectReason::ServerShutdown), FaultKind::RoomLost);
        check(Call, Reason::Lost("w".into(), 3), FaultKind::RoomLost);
        check(Call, Reason::Peer(PeerFault::Failed), FaultKind::RoomLost);
    }
}
