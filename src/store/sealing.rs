//! Brings all secrets of a database under one key, and refuses a database whose key is not here.

use ringer_base::error::{Error, Result};
use ringer_model::agent::AgentDoc;
use ringer_model::webhook::WebhookDoc;

use super::db::Cell;
use super::record::Resource;
use super::vault::place_of;
use super::{Integrations, Session, Store, bus, evidence_keys, idempotency};

/// Text that is sealed to check whether a key is the right one.
const PROBE: &str = "ringer";
/// Place to which the check text is bound.
const PROBE_PLACE: &str = "vault/probe";

/// Tables whose documents hold secrets.
const SEALED: [&str; 3] = [AgentDoc::TABLE, Integrations::TABLE, WebhookDoc::TABLE];

impl Store {
    /// Checks that the key of this process opens the database, and seals again whatever another key, or none, has
    /// sealed. `is_new`: nothing was ever written in it.
    pub(super) async fn seal_all(&self, is_new: bool) -> Result<()> {
        let mut db = self.system().await?;
        let known = db.row("SELECT key_name, probe FROM vault WHERE id = 1", &[]).await?;
        if let Some(row) = &known {
            let name: String = row.try_get(0).map_err(Error::internal)?;
            let probe: String = row.try_get(1).map_err(Error::internal)?;
            self.check_key(&name, &probe)?;
            if name == self.parts.vault.key_name() {
                return Ok(());
            }
        }
        let mut sealed = 0;
        for table in SEALED {
            sealed += db.seal_documents(table).await?;
        }
        sealed += db.seal_answers().await?;
        sealed += db.seal_bus_key().await?;
        sealed += db.seal_evidence_keys().await?;
        db.commit().await?;
        // Overwritten and deleted rows have left their texts in the files. The key's name is stored after that is
        // cleaned up: an interrupted start repeats all of it.
        if !is_new {
            let others = [idempotency::TABLE, bus::TABLE, evidence_keys::TABLE];
            self.parts.database.scrub(&[&SEALED[..], &others[..]].concat()).await?;
        }
        let mut db = self.system().await?;
        let sql = "INSERT INTO vault (id, key_name, probe) VALUES (1, $1, $2) \
                   ON CONFLICT (id) DO UPDATE SET key_name = $1, probe = $2";
        let probe = self.parts.vault.seal(PROBE_PLACE, PROBE)?;
        db.execute(sql, &[self.parts.vault.key_name().into(), probe.into()]).await?;
        db.commit().await?;
        if sealed > 0 {
            tracing::info!(rows = sealed, "secrets were sealed");
        }
        Ok(())
    }

    fn check_key(&self, name: &str, probe: &str) -> Result<()> {
        if !self.parts.vault.knows(name) {
            let set = self.parts.vault.names();
            return Err(Error::internal(format!(
                "the secrets in the database are sealed by the key {name}, and {set} is set: set security.secret_key to the \
                 key that was used (or put its key file back), or list it in security.old_secret_keys"
            )));
        }
        self.parts.vault.unseal(PROBE_PLACE, probe).map(drop)
    }
}

impl Session {
    async fn seal_documents(&mut self, table: &str) -> Result<u64> {
        let mut sealed = 0;
        for row in self.rows(&format!("SELECT id, org_id, doc FROM {table}"), &[]).await? {
            let (organization, doc): (String, String) =
                (row.try_get(1).map_err(Error::internal)?, row.try_get(2).map_err(Error::internal)?);
            if self.vault().is_sealed(&doc)? {
                continue;
            }
            let place = place_of(&organization, table);
            let plain: serde_json::Value = self.vault().read(&place, &doc)?;
            let doc = self.vault().write(&place, &plain)?;
            let id = match row.try_get::<i64, _>(0) {
                Ok(id) => Cell::from(id),
                Err(_) => Cell::from(row.try_get::<String, _>(0).map_err(Error::internal)?),
            };
            sealed += self.execute(&format!("UPDATE {table} SET doc = $2 WHERE id = $1"), &[id, doc.into()]).await?;
        }
        Ok(sealed)
    }

    /// Seals the stored answers of requests again: some hold keys that are shown once.
    async fn seal_answers(&mut self) -> Result<u64> {
        let mut sealed = 0;
        let sql = "SELECT org_id, route, idempotency_key, body FROM idempotency WHERE body IS NOT NULL";
        for row in self.rows(sql, &[]).await? {
            let text = |column: usize| row.try_get::<String, _>(column).map_err(Error::internal);
            let (organization, body) = (text(0)?, text(3)?);
            if self.vault().is_current(&body) {
                continue;
            }
            let place = place_of(&organization, idempotency::TABLE);
            let body = self.vault().seal(&place, &self.vault().unseal(&place, &body)?)?;
            let sql = "UPDATE idempotency SET body = $4 WHERE org_id = $1 AND route = $2 AND idempotency_key = $3";
            sealed += self.execute(sql, &[organization.into(), text(1)?.into(), text(2)?.into(), body.into()]).await?;
        }
        Ok(sealed)
    }
}
