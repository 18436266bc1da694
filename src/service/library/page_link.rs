//! Links for colleagues: each opens the page once, with a key of scope read that ends. Such a key is listed and revoked
//! like any other; its name holds its end.

use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_model::api_key::{KeyOut, PageLinkIn, PageLinkOut, Scope};
use ringer_model::time::Timestamp;

use super::Library;
use super::keys::{LINK, PREFIX, end_of, hash, random_key, record_of};
use crate::Caller;

/// Random bytes of a link's token.
const TOKEN_BYTES: usize = 16;
/// Milliseconds of an hour.
const HOUR_MS: i64 = 3_600_000;

impl Library {
    /// Makes a link that opens the page once.
    ///
    /// # Errors
    /// [`Error::Refused`] without a public address.
    pub async fn make_page_link(&self, caller: &Caller, asked: PageLinkIn) -> Result<PageLinkOut> {
        let none = || Error::Refused("server.public_url is not set in ringer.toml: a link needs an address".into());
        let home = self.settings.public_url.as_deref().ok_or_else(none)?;
        let mut bytes = [0; TOKEN_BYTES];
        clock::random_bytes(&mut bytes);
        let token = hex::encode(bytes);
        let until = Timestamp(self.clock.now_ms() + asked.hours * HOUR_MS);
        let mut row = self.key_row(&caller.organization, "", Scope::Read, format!("{LINK}{until}"));
        row.hash = token_hash(&token);
        let mut db = self.store.org(&caller.organization).write().await?;
        db.insert_key(&row).await?;
        db.commit().await?;
        Ok(PageLinkOut { address: format!("{home}/#start={token}"), key_id: row.id, until })
    }

    /// Changes the token of a link for its key, once.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a wrong, a used, a revoked or an old token.
    pub async fn open_page_link(&self, token: &str) -> Result<KeyOut> {
        let refused = || Error::Forbidden("Start token is not valid".into());
        let old = token_hash(token);
        let holder = self.store.holder_of(&old).await?.ok_or_else(refused)?;
        if end_of(&holder.name).is_none_or(|end_ms| end_ms <= self.clock.now_ms()) {
            return Err(refused());
        }
        let text = random_key();
        let prefix: String = text.chars().take(PREFIX).collect();
        let mut db = self.store.org(&holder.organization).write().await?;
        if !db.change_key(holder.id, &old, &hash(&text), &prefix).await? {
            return Err(refused());
        }
        let row = db.keys().await?.into_iter().find(|key| key.id == holder.id).ok_or_else(refused)?;
        db.answer(KeyOut { api_key: text, ..record_of(row) }).await
    }
}

/// Returns the hash that stands for a token before its use. No text of a key has it, since theirs are bare digits.
fn token_hash(token: &str) -> String {
    format!("{LINK}{}", hash(token))
}
