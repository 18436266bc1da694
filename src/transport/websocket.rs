//! The channel of agents that are reached by a WebSocket: the protocol of a call's messages ([`session`], sans-IO) in
//! each of the dialects that [`protocol::Kind`] names.

mod carrier;
mod core;
mod default;
pub mod dial;
pub mod dialect;
pub mod handshake;
pub mod link;
pub mod listen;
pub mod platform;
pub mod port;
mod protobuf;
pub mod protocol;
mod rate_doubt;
mod rate_watch;
pub mod session;
mod template;
#[cfg(test)]
mod tests;
mod voice;

pub use dialect::Dialect;
pub use protocol::{Kind, Message, Role, SessionControl, SessionFacts, SessionOutput};
pub use session::Session;
