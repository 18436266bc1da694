//! API keys and organizations.

use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_model::api_key::{CreateKeyIn, KeyOut, Scope, UserRecord};
use ringer_model::time::Timestamp;
use ringer_store::{Holder, KeyRow, Session};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Library;
use super::page_key::engine_of;
use crate::Caller;

/// Characters of a key that stay readable, of a short one a third.
pub(super) const PREFIX: usize = 8;

/// Beginning of the names of keys that links make; their end follows.
pub(super) const LINK: &str = "link-";

impl Library {
    /// Returns the holder of a key; `None` if the key is unknown or revoked.
    pub async fn authenticate(&self, key: &str) -> Result<Option<Caller>> {
        let holder = self.store.holder_of(&hash(key)).await?;
        let is_valid = |holder: &Holder| end_of(&holder.name).is_none_or(|end_ms| self.clock.now_ms() < end_ms);
        Ok(holder.filter(is_valid).map(|holder| Caller {
            organization: holder.organization,
            key_id: holder.id,
            user_id: holder.user_id,
            scope: holder.scope,
        }))
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
        let mut row = self.key_row(&caller.organization, &text, scope, spec.name.unwrap_or_default());
        let mut db = self.store.org(&caller.organization).write().await?;
        row.user_id = match spec.user.as_deref().map(str::trim) {
            Some("") => return Err(Error::Refused("user must not be empty".into())),
            Some(user) => Some(db.user_named(user, clock::new_id(), self.clock.now_ms()).await?),
            None => caller.user_id,
        };
        db.insert_key(&row).await?;
        db.answer(KeyOut { api_key: text, ..record_of(row) }).await
    }

    /// Returns the organization's keys, newest first, without their texts.
    pub async fn keys(&self, caller: &Caller) -> Result<Vec<KeyOut>> {
        let rows = self.store.org(&caller.organization).read().await?.keys().await?;
        Ok(rows.into_iter().map(record_of).collect())
    }

    /// Returns the key of a caller, without its text.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a caller without a key.
    pub async fn own_key(&self, caller: &Caller) -> Result<KeyOut> {
        let keys = self.keys(caller).await?;
        keys.into_iter().find(|key| key.id == caller.key_id).ok_or(Error::NotFound("API key"))
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
        // The key of a page ends with its engine, and so is nobody's last one.
        let stays = |key: &&KeyRow| key.scope == Scope::Admin && !key.revoked && engine_of(&key.name).is_none();
        let admins = keys.iter().filter(stays).count();
        if stays(&key) && admins == 1 {
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
        self.create_key_for(name, scope, key_name, None).await
    }

    /// Makes a key as [`Library::create_key_in`] does, for the user of this name, who is made when absent.
    pub async fn create_key_for(
        &self,
        name: &str,
        scope: Scope,
        key_name: &str,
        user: Option<String>,
    ) -> Result<KeyOut> {
        let organization = self.create_organization(name).await?;
        let caller = Caller::keyless(organization, Scope::Admin);
        let spec = CreateKeyIn { scope: scope.as_str().into(), name: Some(key_name.into()), user };
        self.create_key(&caller, spec).await
    }

    /// Returns the possible authors in the caller's organization, by name: its users, and its keys without one.
    pub async fn users(&self, caller: &Caller) -> Result<Vec<UserRecord>> {
        authors(&mut self.store.org(&caller.organization).read().await?).await
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

    pub(super) fn key_row(&self, organization: &str, text: &str, scope: Scope, name: String) -> KeyRow {
        KeyRow {
            id: clock::new_id(),
            organization: organization.to_owned(),
            hash: hash(text),
            prefix: text.chars().take(PREFIX.min(text.chars().count() / 3)).collect(),
            scope,
            name,
            user_id: None,
            revoked: false,
            created_ms: self.clock.now_ms(),
        }
    }
}

/// Returns the users of the session's organization and its keys without one, by name. The beginning of its text names a
/// key without a name.
pub(crate) async fn authors(db: &mut Session) -> Result<Vec<UserRecord>> {
    let users = db.users().await?.into_iter().map(|(id, name)| UserRecord { id, name });
    let shown = |key: KeyRow| match key.name.is_empty() {
        true => UserRecord { id: key.id, name: format!("{}...", key.prefix) },
        false => UserRecord { id: key.id, name: key.name },
    };
    let keys = db.keys().await?.into_iter().filter(|key| key.user_id.is_none());
    let mut all: Vec<UserRecord> = users.chain(keys.map(shown)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

fn scope_of(word: &str) -> Result<Scope> {
    Scope::parse(word).ok_or_else(|| Error::Refused("scope must be read, write or admin".into()))
}

pub(super) fn record_of(row: KeyRow) -> KeyOut {
    KeyOut {
        id: row.id,
        api_key: format!("{}...", row.prefix),
        scope: row.scope,
        name: row.name,
        user_id: row.user_id,
        created_at: Timestamp(row.created_ms),
        revoked: row.revoked,
    }
}

/// Returns the end of a link's key from its name, in milliseconds since 1970; `None`: it is no such key.
pub(super) fn end_of(name: &str) -> Option<i64> {
    name.strip_prefix(LINK).and_then(Timestamp::parse).map(|end| end.0)
}

/// Returns the hex SHA-256 of a key's text.
pub(super) fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// Returns `rk_` and 160 random bits.
pub(super) fn random_key() -> String {
    let mut bytes = [0; 20];
    clock::random_bytes(&mut bytes);
    format!("rk_{}", hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_link_holds_its_end() {
        for (name, expect) in
            [("link-2026-01-05T09:00:00.000000Z", Some(1_767_603_600_000)), ("link-of-mine", None), ("first key", None)]
        {
            assert_eq!(end_of(name), expect, "{name}");
        }
    }
}
