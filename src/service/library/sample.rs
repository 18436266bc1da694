//! The agent that stands for the sample agent of this machine: one for each organization. The sample agent has another
//! address after each start.

use ringer_base::error::{Error, Result};
use ringer_model::agent::AgentDoc;
use serde_json::json;

use super::Library;
use crate::Caller;

/// Identifier by which the agent is found again.
const IDENTIFIER: &str = "ringer-sample-agent";
/// Name of the agent, which its owner may change.
const NAME: &str = "Sample agent";
/// Beginning of the addresses under which it was kept before it had an identifier.
const ADDRESS: &str = "sip:desk@127.0.0.1:";

impl Library {
    /// Returns the id of the agent that stands for the sample agent at `sip_uri`. It is made where there is none, and
    /// gets the address where it has another one.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn keep_sample_agent(&self, caller: &Caller, sip_uri: &str) -> Result<i64> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut found = db.by::<AgentDoc>("external_id", IDENTIFIER).await?.into_iter().next();
        if found.is_none() {
            let is_it = |doc: &AgentDoc| {
                let at = doc.spec.sip_uri.as_deref().unwrap_or_default();
                doc.spec.name == NAME && at.starts_with(ADDRESS) && doc.spec.external_agent_id.is_none()
            };
            found = db.all::<AgentDoc>().await?.into_iter().find(|row| is_it(&row.doc));
        }
        let Some(mut row) = found else {
            let spec = json!({
                "name": NAME, "type": "INBOUND", "connection_type": "SIP", "sip_uri": sip_uri,
                "external_agent_id": IDENTIFIER,
            });
            let spec = serde_json::from_value(spec).map_err(Error::internal)?;
            let (agent_id, _) = self.insert_agent(&mut db, caller, spec).await?;
            return db.answer(agent_id).await;
        };
        let kept = (row.doc.spec.sip_uri.as_deref(), row.doc.spec.external_agent_id.as_deref());
        if kept != (Some(sip_uri), Some(IDENTIFIER)) {
            row.doc.spec.sip_uri = Some(sip_uri.to_owned());
            row.doc.spec.external_agent_id = Some(IDENTIFIER.to_owned());
            db.update(row.id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        }
        db.answer(row.id).await
    }
}
