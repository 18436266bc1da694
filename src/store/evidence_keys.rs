//! Keys by which an installation signs its evidence (Ed25519, RFC 8032), and time stamps over it (RFC 3161). Seeds are
//! sealed, public keys are told.

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use ringer_base::clock;
use ringer_base::error::{Error, Result};

use super::db::Cell;
use super::{Session, Store};

/// Table of the keys.
pub(super) const TABLE: &str = "evidence_keys";

/// Length of a seed in bytes.
const SEED_BYTES: usize = 32;

/// A public key with the times between which it signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceKey {
    /// The key, 64 hexadecimal digits.
    pub public_key: String,
    /// Time at which it was made, milliseconds since 1970.
    pub made_ms: i64,
    /// Time at which another one took its place; `None`: it signs.
    pub ended_ms: Option<i64>,
}

impl Store {
    /// Returns the key that signs at present; it is made at the first call, at the time `now_ms`.
    ///
    /// # Errors
    /// The seed was sealed by a key that is not set.
    pub async fn signing_key(&self, now_ms: i64) -> Result<Ed25519KeyPair> {
        if let Some((public_key, sealed)) = self.org("").read().await?.sealed_seed().await? {
            return self.key_pair(&public_key, &sealed);
        }
        let mut db = self.system().await?;
        // Another engine may have been first.
        let found = match db.sealed_seed().await? {
            Some(found) => found,
            None => db.make_evidence_key(now_ms).await?,
        };
        db.commit().await?;
        self.key_pair(&found.0, &found.1)
    }

    /// Makes a new key sign from `now_ms` on; the one before it stays known. Returns the new one.
    pub async fn rotate_evidence_key(&self, now_ms: i64) -> Result<EvidenceKey> {
        let mut db = self.system().await?;
        db.execute("UPDATE evidence_keys SET ended_ms = $1 WHERE ended_ms IS NULL", &[now_ms.into()]).await?;
        let (public_key, _) = db.make_evidence_key(now_ms).await?;
        db.commit().await?;
        Ok(EvidenceKey { public_key, made_ms: now_ms, ended_ms: None })
    }

    /// Returns all keys, the newest first.
    pub async fn evidence_keys(&self) -> Result<Vec<EvidenceKey>> {
        let sql = "SELECT public_key, made_ms, ended_ms FROM evidence_keys ORDER BY CASE WHEN ended_ms IS NULL THEN 0 ELSE 1 END, made_ms DESC, public_key";
        let rows = self.org("").read().await?.rows(sql, &[]).await?;
        let read = |row: &super::db::Row| {
            Ok(EvidenceKey {
                public_key: row.try_get(0).map_err(Error::internal)?,
                made_ms: row.try_get(1).map_err(Error::internal)?,
                ended_ms: row.try_get(2).map_err(Error::internal)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Returns the time stamp over a manifest of a result, base64.
    pub async fn evidence_stamp(&self, result_id: i64, manifest_sha256: &str) -> Result<Option<String>> {
        let sql = "SELECT stamp FROM evidence_stamps WHERE result_id = $1 AND manifest_sha256 = $2";
        let row = self.org("").read().await?.row(sql, &[result_id.into(), manifest_sha256.into()]).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// Stores a time stamp, base64, unless there is one; returns the one that is stored.
    pub async fn keep_evidence_stamp(
        &self,
        result_id: i64,
        manifest_sha256: &str,
        stamp: &str,
        now_ms: i64,
    ) -> Result<String> {
        let sql = "INSERT INTO evidence_stamps (result_id, manifest_sha256, stamp, made_ms) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (result_id, manifest_sha256) DO NOTHING";
        let mut db = self.system().await?;
        db.execute(sql, &[result_id.into(), manifest_sha256.into(), stamp.into(), now_ms.into()]).await?;
        db.commit().await?;
        Ok(self.evidence_stamp(result_id, manifest_sha256).await?.unwrap_or_else(|| stamp.to_owned()))
    }

    fn key_pair(&self, public_key: &str, sealed: &str) -> Result<Ed25519KeyPair> {
        let seed = hex::decode(self.parts.vault.unseal(&place(public_key), sealed)?).map_err(Error::internal)?;
        let bytes = hex::decode(public_key).map_err(Error::internal)?;
        Ed25519KeyPair::from_seed_and_public_key(&seed, &bytes)
            .map_err(|_| Error::internal("the key of evidence does not fit its seed"))
    }
}

impl Session {
    /// Returns public key and sealed seed of the key that signs.
    async fn sealed_seed(&mut self) -> Result<Option<(String, String)>> {
        let sql = "SELECT public_key, seed FROM evidence_keys WHERE ended_ms IS NULL ORDER BY made_ms DESC, public_key LIMIT 1";
        let Some(row) = self.row(sql, &[]).await? else { return Ok(None) };
        let text = |at: usize| row.try_get(at).map_err(Error::internal);
        Ok(Some((text(0)?, text(1)?)))
    }

    async fn make_evidence_key(&mut self, now_ms: i64) -> Result<(String, String)> {
        let mut seed = [0; SEED_BYTES];
        clock::random_bytes(&mut seed);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(Error::internal)?;
        let public_key = hex::encode(pair.public_key().as_ref());
        let sealed = self.vault().seal(&place(&public_key), &hex::encode(seed))?;
        let sql = "INSERT INTO evidence_keys (public_key, seed, made_ms) VALUES ($1, $2, $3)";
        self.execute(sql, &[public_key.as_str().into(), sealed.as_str().into(), now_ms.into()]).await?;
        Ok((public_key, sealed))
    }

    /// Seals the seeds by the key that seals now; returns their number.
    pub(super) async fn seal_evidence_keys(&mut self) -> Result<u64> {
        let rows = self.rows("SELECT public_key, seed FROM evidence_keys", &[]).await?;
        let mut sealed = 0;
        for row in rows {
            let public_key: String = row.try_get(0).map_err(Error::internal)?;
            let seed: String = row.try_get(1).map_err(Error::internal)?;
            if self.vault().is_current(&seed) {
                continue;
            }
            let place = place(&public_key);
            let seed = self.vault().seal(&place, &self.vault().unseal(&place, &seed)?)?;
            let cells: [Cell; 2] = [seed.into(), public_key.into()];
            sealed += self.execute("UPDATE evidence_keys SET seed = $1 WHERE public_key = $2", &cells).await?;
        }
        Ok(sealed)
    }
}

/// Returns the place to which a seed is bound.
fn place(public_key: &str) -> String {
    format!("evidence_keys/{public_key}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Vault;

    #[tokio::test]
    async fn a_key_is_made_once_rotated_and_sealed_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ringer.db");
        let open = async |keys: &[&str]| {
            let vault = Vault::new(keys.iter().copied()).expect("there is a key");
            Store::open(file.as_path(), vault).await.expect("it opens")
        };
        let public = |pair: &Ed25519KeyPair| hex::encode(pair.public_key().as_ref());
        let store = open(&["old"]).await;
        let first = public(&store.signing_key(1).await.expect("it is made"));
        assert_eq!(public(&store.signing_key(2).await.expect("it is read")), first);
        let second = store.rotate_evidence_key(3).await.expect("it is made");
        assert_ne!(second.public_key, first);
        assert_eq!(public(&store.signing_key(4).await.expect("it is read")), second.public_key);
        let before = EvidenceKey { public_key: first, made_ms: 1, ended_ms: Some(3) };
        assert_eq!(store.evidence_keys().await.expect("they are read"), [second.clone(), before]);
        store.close().await;
        open(&["new", "old"]).await.close().await;
        let again = open(&["new"]).await.signing_key(5).await.expect("it is opened");
        assert_eq!(public(&again), second.public_key);
    }
}
