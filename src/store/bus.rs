//! Facts that the engines of one database share: the key of their messages, the database's clock, and jobs that
//! became claimable.

use std::collections::BTreeSet;

use ringer_base::clock;
use ringer_base::error::{Error, Result};

use super::db::Cell;
use super::{Session, Store};

/// Table of the key.
pub(super) const TABLE: &str = "bus";

/// Place to which the key is bound.
const PLACE: &str = "bus/key";

/// Length of the key in bytes.
const KEY_BYTES: usize = 32;

/// Most jobs that one look reads.
const LOOKED_AT: i64 = 200;

impl Store {
    /// Returns the key by which engines of this database sign their messages. It is made at the first call.
    ///
    /// # Errors
    /// The key was sealed by one that is not set.
    pub async fn bus_key(&self) -> Result<Vec<u8>> {
        let known = self.org("").read().await?.sealed_bus_key().await?;
        let sealed = match known {
            Some(sealed) => sealed,
            None => {
                let mut bytes = [0; KEY_BYTES];
                clock::random_bytes(&mut bytes);
                let sealed = self.parts.vault.seal(PLACE, &hex::encode(bytes))?;
                let mut db = self.system().await?;
                let sql = "INSERT INTO bus (id, key) VALUES (1, $1) ON CONFLICT (id) DO NOTHING";
                db.execute(sql, &[sealed.into()]).await?;
                // Another engine may have been first.
                let sealed = db.sealed_bus_key().await?;
                db.commit().await?;
                sealed.ok_or_else(|| Error::internal("the key of the bus was not stored"))?
            }
        };
        hex::decode(self.parts.vault.unseal(PLACE, &sealed)?).map_err(Error::internal)
    }

    /// Returns the kinds of jobs that this process has stored or released since the last call, once there are some.
    pub async fn next_wakes(&self) -> BTreeSet<String> {
        loop {
            let woken = self.parts.wakes.noted.notified();
            let kinds = std::mem::take(&mut *self.parts.wakes.kinds.lock());
            if !kinds.is_empty() {
                return kinds;
            }
            woken.await;
        }
    }

    /// Wakes the workers of this process: another one has stored jobs.
    pub fn wake_workers(&self) {
        self.parts.jobs.send_modify(|changes| *changes += 1);
    }

    /// Returns the identifiers of jobs that are due and that nobody has, the latest of them first. Those of other data
    /// folders are not among them.
    pub async fn claimable_jobs(&self) -> Result<BTreeSet<i64>> {
        let mut db = self.org("").read().await?;
        let mut cells: Vec<Cell> = vec![db.time(), LOOKED_AT.into()];
        let mut here = "";
        if let Some(place) = self.place() {
            cells.push(place.into());
            here = "AND (place IS NULL OR place = $3)";
        }
        let sql = format!(
            "SELECT id FROM jobs WHERE held = 0 AND lease_ms IS NULL AND due_ms <= {} {here} \
             ORDER BY due_ms DESC LIMIT $2",
            db.now_at(1)
        );
        let rows = db.rows(&sql, &cells).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }

    /// Returns which of these results were changed after `since_ms`, each with the time of its last change, in
    /// milliseconds since 1970.
    pub async fn changed_results(&self, ids: &[i64], since_ms: i64) -> Result<Vec<(i64, i64)>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut cells: Vec<Cell> = vec![since_ms.into()];
        cells.extend(ids.iter().map(|id| Cell::from(*id)));
        let marks = (2..=cells.len()).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT id, updated_ms FROM results WHERE id IN ({marks}) AND updated_ms > $1");
        self.org("").read().await?.pairs(&sql, &cells).await
    }
}

impl Session {
    async fn sealed_bus_key(&mut self) -> Result<Option<String>> {
        let row = self.row("SELECT key FROM bus WHERE id = 1", &[]).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// Seals the key of the bus by the key that seals now.
    pub(super) async fn seal_bus_key(&mut self) -> Result<u64> {
        let Some(sealed) = self.sealed_bus_key().await?.filter(|sealed| !self.vault().is_current(sealed)) else {
            return Ok(0);
        };
        let sealed = self.vault().seal(PLACE, &self.vault().unseal(PLACE, &sealed)?)?;
        self.execute("UPDATE bus SET key = $1 WHERE id = 1", &[sealed.into()]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Vault;

    #[tokio::test]
    async fn the_key_is_made_once_sealed_and_sealed_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ringer.db");
        let open = async |keys: &[&str]| {
            let vault = Vault::new(keys.iter().copied()).expect("there is a key");
            Store::open(file.as_path(), vault).await.expect("it opens")
        };
        let store = open(&["old"]).await;
        let key = store.bus_key().await.expect("it is made");
        assert_eq!((key.len(), store.bus_key().await.as_ref()), (KEY_BYTES, Ok(&key)));
        let sealed = async |store: &Store| {
            let mut db = store.org("").read().await.expect("a session");
            db.sealed_bus_key().await.expect("it is read").expect("it is there")
        };
        let text = sealed(&store).await;
        assert!(!text.contains(&hex::encode(&key)) && store.parts.vault.is_current(&text));
        store.close().await;
        let store = open(&["new", "old"]).await;
        assert!(store.parts.vault.is_current(&sealed(&store).await));
        store.close().await;
        assert_eq!(open(&["new"]).await.bus_key().await, Ok(key));
    }
}
