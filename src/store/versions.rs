//! What versions of one agent need beyond single rows.

use super::Session;
use crate::error::{Error, Result};

impl Session {
    /// Keeps other transactions from writing the agent and what they take it for, until this one ends. An agent of another
    /// organization is not found.
    pub(crate) async fn hold_agent(&mut self, agent_id: i64) -> Result<()> {
        let sql = "UPDATE agents SET updated_ms = updated_ms WHERE id = $1 AND org_id = $2";
        let cells = [agent_id.into(), self.organization().into()];
        if self.execute(sql, &cells).await? == 0 { Err(Error::NotFound("Agent")) } else { Ok(()) }
    }
}
