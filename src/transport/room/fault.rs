//! Reasons for which a call to a room does not come about or breaks off, and the codes that results end by.

use std::fmt;
use std::time::Duration;

use super::messages::DisconnectReason;
use crate::model::error_code::{ErrorCode, Platform, PlatformFault};
use crate::transport::webrtc::PeerFault;
use crate::transport::websocket::dial::DialFault;

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

impl RoomFault {
    /// Returns the code that a result ends by.
    pub fn code(&self) -> ErrorCode {
        let platform = |fault| ErrorCode::Platform(Platform::P1, fault);
        match (&self.reason, self.step) {
            (Reason::AgentFailed, _) => platform(PlatformFault::AgentError),
            (Reason::Local(_), Step::Call) => ErrorCode::InternalError,
            (_, Step::Call) => ErrorCode::BridgeDisconnected,
            (Reason::Local(_), _) => ErrorCode::BridgePreStartFailed,
            (Reason::Dial(DialFault::NoSocket(_), _), _) => ErrorCode::BridgePreStartFailed,
            (Reason::NotPermitted(_) | Reason::Dial(DialFault::Unauthorized(_), _), _) => {
                platform(PlatformFault::AuthFailed)
            }
            (Reason::Dial(DialFault::Busy(429), _), _) => ErrorCode::CustomerConcurrencyLimit,
            (Reason::NoAgent(..), _) => ErrorCode::NoAnswer,
            _ => platform(PlatformFault::BridgeConnectFailed),
        }
    }
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

impl fmt::Display for RoomFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.step {
            Step::Join => "join of the room: ",
            Step::Agent => "wait for the agent: ",
            Step::Call => "connection to the room: ",
        })?;
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
    fn every_failure_has_its_code() {
        let check = |step, reason: Reason, code: &str| {
            let fault = RoomFault { step, reason };
            assert_eq!(fault.code().as_str(), code, "{fault}");
        };
        use Step::{Agent, Call, Join};
        let second = Duration::from_secs(1);
        let refused = |status| DialFault::Refused { status: Some(status), why: "no".into() };
        check(Join, Reason::Dial(DialFault::Unauthorized(401), None), "P1_AUTH_FAILED");
        check(Join, Reason::Dial(DialFault::Unauthorized(403), Some("w".into())), "P1_AUTH_FAILED");
        check(Join, Reason::Dial(DialFault::Busy(429), None), "CUSTOMER_CONCURRENCY_LIMIT");
        check(Join, Reason::Dial(DialFault::Busy(503), None), "P1_BRIDGE_CONNECT_FAILED");
        check(Join, Reason::Dial(refused(404), None), "P1_BRIDGE_CONNECT_FAILED");
        check(Join, Reason::Dial(DialFault::NoSocket("w".into()), None), "BRIDGE_PRE_START_FAILED");
        check(Join, Reason::NotPermitted("to publish audio"), "P1_AUTH_FAILED");
        check(Join, Reason::Address("is no URL".into()), "P1_BRIDGE_CONNECT_FAILED");
        check(Join, Reason::NoJoin(second), "P1_BRIDGE_CONNECT_FAILED");
        check(Join, Reason::Local("w".into()), "BRIDGE_PRE_START_FAILED");
        check(Join, Reason::Left(DisconnectReason::JoinFailure), "P1_BRIDGE_CONNECT_FAILED");
        check(Agent, Reason::NoAgent(second, "w"), "NO_ANSWER");
        check(Agent, Reason::Peer(PeerFault::Failed), "P1_BRIDGE_CONNECT_FAILED");
        check(Agent, Reason::AgentFailed, "P1_AGENT_ERROR");
        check(Call, Reason::Local("w".into()), "INTERNAL_ERROR");
        check(Call, Reason::AgentFailed, "P1_AGENT_ERROR");
        check(Call, Reason::Left(DisconnectReason::ServerShutdown), "BRIDGE_DISCONNECTED");
        check(Call, Reason::Lost("w".into(), 3), "BRIDGE_DISCONNECTED");
        check(Call, Reason::Peer(PeerFault::Failed), "BRIDGE_DISCONNECTED");
    }
}
