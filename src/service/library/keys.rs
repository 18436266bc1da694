//! API keys and organizations.

use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_model::api_key::{CreateKeyIn, KeyOut, Scope};
use ringer_model::time::Timestamp;
use ringer_store::KeyRow;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Library;
use crate::Caller;

/// Characters of a key that stay readable, of a short one a third.
const PREFIX: usize = 8;

impl Library {
    /// Returns the holder of a key; `None` if the key is unknown or revoked.
    pub async fn authenticate(&self, key: &str) -> Result<Option<Caller>> {
        let holder = self.store.holder_of(&hash(key)).await?;
        Ok(holder.map(|holder| Caller { organization: holder.organization, key_id: holder.id, scope: holder.scope }))
    }

    /// Checks that the key of a caller was not revoked since its request began.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when it was.
    pub async fn check_key(&self, caller: &Caller) -> Result<()> {
        match self.store.org(&caller.organization).read().await?.is_revoked(caller.key_id).await? {
            true => Err(Error::Forbidden("The API key was revoked".into())),
            false => Ok(()),
        }
    }

    /// Makes a key for the caller's organization. Its text is only in this answer.
    pub async fn create_key(&self, caller: &Caller, spec: CreateKeyIn) -> Result<KeyOut> {
        let scope = scope_of(&spec.scope)?;
        let text = random_key();
        let row = self.key_row(&caller.organization, &text, scope, spec.name.unwrap_or_default());
        let mut db = self.store.org(&caller.organization).write().await?;
        db.insert_key(&row).await?;
        db.answer(KeyOut { api_key: text, ..record_of(row) }).await
    }

    /// Returns the organization's keys, newest first, without their texts.
    pub async fn keys(&self, caller: &Caller) -> Result<Vec<KeyOut>> {
        let rows = self.store.org(&caller.organization).read().await?.keys().await?;
        Ok(rows.into_iter().map(record_of).collect())
    }

    /// True when any organization has a key.
    pub async fn has_keys(&self) -> Result<bool> {
        self.store.has_keys().await
    }

    /// Revokes a key, which is no longer accepted. The last admin key stays.
    pub async fn revoke_key(&self, caller: &Caller, key_id: &str) -> Result<()> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let id = Uuid::parse_str(key_id).map_err(|_| Error::NotFound("API key"))?;
        let keys = db.keys().await?;
        let key = keys.iter().find(|key| key.id == id).ok_or(Error::NotFound("API key"))?;
        if key.revoked {
            return Ok(());
        }
        let admins = keys.iter().filter(|key| key.scope == Scope::Admin && !key.revoked).count();
        if key.scope == Scope::Admin && admins == 1 {
            return Err(Error::Conflict("The last admin key cannot be revoked".into()));
        }
        db.revoke_key(id).await?;
        db.commit().await
    }

    /// Makes the organization `name` when absent, and answers its id.
    pub async fn create_organization(&self, name: &str) -> Result<String> {
        let mut db = self.store.system().await?;
        let id = db.organization_named(name, clock::new_id(), self.clock.now_ms()).await?;
        db.commit().await?;
        Ok(id)
    }

    /// Returns the id of the organization `name`; `None` when there is none.
    pub async fn organization(&self, name: &str) -> Result<Option<String>> {
        self.store.org("").read().await?.organization_id(name).await
    }

    /// Makes a key from outside any organization: the organization `name` is made when absent.
    pub async fn create_key_in(&self, name: &str, scope: Scope, key_name: &str) -> Result<KeyOut> {
        let organization = self.create_organization(name).await?;
        let caller = Caller { organization, key_id: Uuid::nil(), scope: Scope::Admin };
        let spec = CreateKeyIn { scope: scope.as_str().into(), name: Some(key_name.into()) };
        self.create_key(&caller, spec).await
    }

    /// Makes sure that the organization `name` is there and that `key` is an admin key of it. Repeating it changes
    /// nothing.
    pub async fn bootstrap(&self, name: &str, key: &str) -> Result<Caller> {
        let organization = self.create_organization(name).await?;
        let row = self.key_row(&organization, key, Scope::Admin, "bootstrap".into());
        let mut db = self.store.org(&organization).write().await?;
        db.insert_key(&row).await?;
        db.commit().await?;
        self.authenticate(key).await?.ok_or_else(|| Error::Conflict("The key was revoked".into()))
    }

    fn key_row(&self, organization: &str, text: &str, scope: Scope, name: String) -> KeyRow {
        KeyRow {
            id: clock::new_id(),
            organization: organization.to_owned(),
            hash: hash(text),
            prefix: text.chars().take(PREFIX.min(text.chars().count() / 3)).collect(),
            scope,
            name,
            revoked: false,
            created_ms: self.clock.now_ms(),
        }
    }
}

fn scope_of(word: &str) -> Result<Scope> {
    Scope::parse(word).ok_or_else(|| Error::Refused("scope must be read, write or admin".into()))
}

fn record_of(row: KeyRow) -> KeyOut {
    KeyOut {
        id: row.id,
        api_key: format!("{}...", row.prefix),
        scope: row.scope,
        name: row.name,
        created_at: Timestamp(row.created_ms),
        revoked: row.revoked,
    }
}

/// Returns the hex SHA-256 of a key's text.
fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// Returns `rk_` and 160 random bits.
fn random_key() -> String {
    let mut bytes = [0; 20];
    clock::random_bytes(&mut bytes);
    format!("rk_{}", hex::encode(bytes))
}
