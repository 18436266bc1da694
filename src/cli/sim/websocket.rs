//! Calls of `ringer sim` over a WebSocket.

use crate::engine::sim::Sim;
use crate::engine::{Answering, Destination, WebSocketDial};
use crate::transport::websocket::{Dialect, Kind};

/// Address that is dialled: one of those for documentation (RFC 5737).
const URL: &str = "ws://192.0.2.2/agent";
/// Id of the result.
const RESULT_ID: u64 = 1;

/// Name of the engine's own protocol, for which settings have none.
pub const OWN: &str = Kind::Default.name();

/// Returns the call as one over a WebSocket in `dialect`.
pub fn over_websocket(mut sim: Sim, dialect: &Dialect) -> Sim {
    let dial = |from: &str, to: &str| {
        let (from, to) = (from.to_owned(), to.to_owned());
        let dialect = Some(dialect.clone());
        Box::new(WebSocketDial { url: URL.to_owned(), dialect, result_id: RESULT_ID, from, to, ..Default::default() })
    };
    let (caller, agent) = (dial("+15550100", "+15550101"), dial("", ""));
    for placement in [&mut sim.caller, &mut sim.agent] {
        placement.spec.dtmf = caller.digit_method();
    }
    sim.caller.destination = Destination::WebSocket(caller);
    sim.agent.destination = Destination::Incoming(Answering { websocket: Some(agent), ..Answering::default() });
    sim
}

/// Reads the kind of a dialect, or the name of the engine's own protocol.
pub fn kind(text: &str) -> Result<Kind, String> {
    let names = || Kind::DIALECTS.map(Kind::name).join(", ");
    match text {
        OWN => Ok(Kind::Default),
        name => Kind::from_name(name).ok_or_else(|| format!("it must be one of {OWN}, {}", names())),
    }
}
