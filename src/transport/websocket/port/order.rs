//! Orders to the task of a connection, and rules of its attempts.

use std::time::Duration;

use crate::websocket::Message;

/// Action of the port of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebSocketAction {
    /// Order to the task of the connection.
    Send(SocketOrder),
    /// Audio of the other side at the leg's rate, behind that which came before.
    Frames(Vec<i16>),
    /// Audio of the other side that was not heard yet is to be dropped.
    ClearFrames,
    /// At most so many samples of 16 kHz go on their way before they are heard; `None`: as many as the call may have.
    HoldFrames(Option<u64>),
}

/// An order to the task of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketOrder {
    /// Dial after this time.
    Dial {
        /// Time to wait before.
        after: Duration,
    },
    /// Send this one message.
    Send(Message),
    /// Close with this code and reason, and wait for the other side to do the same.
    Close {
        /// Status code (RFC 6455 7.4).
        code: u16,
        /// Reason in plain words.
        reason: &'static str,
    },
    /// Give the connection up at once, or the attempt to make one.
    Drop,
}

/// Rules of attempts to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialRules {
    /// Attempts after the first.
    pub retries: u32,
    /// Time before each further attempt, in milliseconds; the last one counts for all that follow.
    pub backoff_ms: Vec<u32>,
}

impl Default for DialRules {
    fn default() -> DialRules {
        DialRules { retries: 3, backoff_ms: vec![500, 1000, 2000] }
    }
}
