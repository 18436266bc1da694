//! Media rooms: a Digital Human joins the room of an agent by the protocol of LiveKit, and media flow over WebRTC.
//!
//! [`signal`] (messages of the signalling), [`roster`] (participants and their tracks) and [`data`] (packets of the
//! data channels) do no IO; [`RoomCall`] holds the WebSocket and the peer connections.

pub mod data;
mod fault;
mod line;
pub mod messages;
pub mod port;
mod roster;
mod session;
mod side;
pub mod signal;

pub mod access;

use std::time::Duration;

use ringer_base::config::Secret;

pub use self::data::DataCounts;
pub use self::fault::{Credentials, Reason, RoomFault, RoomTerms, Step};
pub use self::session::{Joined, Order, RoomCall, RoomEnd, RoomNews};

/// A room and everything that is needed to join it.
#[derive(Clone, Debug)]
pub struct RoomTarget {
    /// Address of the room server, `ws`, `wss`, `http` or `https`, without the path of the protocol.
    pub server_url: String,
    /// Token (JWT) that lets the Digital Human join.
    pub token: Secret,
    /// Topic whose data packets are tool calls, `P1_customer_tool_topic`.
    pub tool_topic: Option<String>,
    /// Name under which an agent was dispatched into the room; `None`: whoever is there may be the agent.
    pub agent_name: Option<String>,
}

impl Default for RoomTarget {
    fn default() -> RoomTarget {
        RoomTarget { server_url: String::new(), token: Secret::new(String::new()), tool_topic: None, agent_name: None }
    }
}

/// Limits of time; those of tests are shorter.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Time limit from the connection to the server until the room is joined.
    pub join: Duration,
    /// Time limit from the joined room until the agent's audio arrives.
    pub agent: Duration,
    /// Time limit for a lost connection to be restored.
    pub reconnect: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { join: Duration::from_secs(10), agent: Duration::from_secs(30), reconnect: Duration::from_secs(10) }
    }
}
