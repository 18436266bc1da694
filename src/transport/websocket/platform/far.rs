//! Far sides of platforms: the servers of the presets, for agents of tests. A [`FarSide`] has the rules of a server, a
//! [`FarCall`] is one call of it; [`Session::agent`](crate::websocket::Session::agent) speaks its messages.

mod presets;
pub(in crate::websocket) mod protocol;
pub(in crate::websocket) mod side;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::side::{FarCall, FarRequest, FarSide};
use crate::websocket::Kind;
use crate::websocket::dialect::Dialect;

impl FarCall {
    /// Returns the dialect that the server of the call speaks.
    pub fn dialect(self) -> Dialect {
        let side = &self.side;
        Dialect {
            wire: side.wire_at(&self.opening, &side.format_in, side.caller_wire),
            agent_wire: side.wire_at(&self.opening, &side.format_out, side.own_wire),
            chunk_ms: side.chunk_ms,
            far: Some(Arc::new(self)),
            ..Dialect::new(Kind::Platform)
        }
    }
}
