//! Keys for the page: a start token that is printed once makes one, and it ends with the engine.

use parking_lot::Mutex;
use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_model::api_key::{KeyOut, Scope};
use ringer_model::time::Timestamp;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::Library;

/// Time in which a start token is good.
const GOOD_MS: i64 = 10 * 60 * 1000;
/// Random bytes of a start token.
const TOKEN_BYTES: usize = 16;
/// Beginning of the names of keys that a start token made.
const NAMED: &str = "page-";

/// A start token, and the key that it was changed for.
#[derive(Debug)]
pub struct PageDoor {
    /// Name of the organization whose key it makes.
    organization: String,
    made_ms: i64,
    token: Mutex<Option<String>>,
    made: Mutex<Option<(String, Uuid)>>,
}

impl Library {
    /// Returns a page access with a new start token for the organization `name`, and the token.
    pub fn page_door(&self, name: &str) -> (PageDoor, String) {
        let mut bytes = [0; TOKEN_BYTES];
        clock::random_bytes(&mut bytes);
        let token = hex::encode(bytes);
        let door = PageDoor {
            organization: name.to_owned(),
            made_ms: self.clock.now_ms(),
            token: Mutex::new(Some(token.clone())),
            made: Mutex::default(),
        };
        (door, token)
    }

    /// Changes a start token for a key of scope admin, once: who reads the terminal runs the engine.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a wrong, a used or an old token.
    pub async fn open_page(&self, door: &PageDoor, token: &str) -> Result<KeyOut> {
        let now_ms = self.clock.now_ms();
        let refused = || Error::Forbidden("Start token is not valid".into());
        if now_ms - door.made_ms > GOOD_MS || !door.take(token) {
            return Err(refused());
        }
        // Where engines share the database, the name tells the others when its engine is gone.
        let engine = if self.store.is_shared() { format!(" {}", self.store.engine().await?) } else { String::new() };
        let name = format!("{NAMED}{}{engine}", Timestamp(now_ms));
        let key = self.create_key_in(&door.organization, Scope::Admin, &name).await?;
        let organization = self.create_organization(&door.organization).await?;
        *door.made.lock() = Some((organization, key.id));
        Ok(key)
    }

    /// Revokes the key that a page access has made.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn close_page(&self, door: &PageDoor) -> Result<()> {
        let made = door.made.lock().take();
        let Some((organization, key_id)) = made else { return Ok(()) };
        let mut db = self.store.org(&organization).write().await?;
        db.revoke_key(key_id).await?;
        db.commit().await
    }

    /// Revokes the keys of pages that engines have left which were killed.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn close_old_pages(&self, name: &str) -> Result<()> {
        let Some(organization) = self.organization(name).await? else { return Ok(()) };
        let mut db = self.store.org(&organization).write().await?;
        for key in db.keys().await?.into_iter().filter(|key| !key.revoked) {
            let Some(engine) = engine_of(&key.name) else { continue };
            if !self.store.is_shared() || db.is_engine_gone(engine).await? {
                db.revoke_key(key.id).await?;
            }
        }
        db.commit().await
    }
}

/// Returns the engine that a page's key belongs to, from its name; `None`: it is no such key.
pub(super) fn engine_of(name: &str) -> Option<&str> {
    let (at, engine) = name.strip_prefix(NAMED).map(|rest| rest.split_once(' ').unwrap_or((rest, "")))?;
    Timestamp::parse(at).map(|_| engine)
}

impl PageDoor {
    /// Uses up the token; false when it is another one, or was used before.
    fn take(&self, given: &str) -> bool {
        let mut token = self.token.lock();
        let is_it = token.as_ref().is_some_and(|token| token.as_bytes().ct_eq(given.as_bytes()).into());
        if is_it {
            *token = None;
        }
        is_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_key_names_its_engine() {
        for (name, expect) in [
            ("page-2026-01-05T09:00:00.000000Z", Some("")),
            ("page-2026-01-05T09:00:00.000000Z engine-7", Some("engine-7")),
            ("page-of-mine", None),
            ("first key", None),
        ] {
            assert_eq!(engine_of(name), expect, "{name}");
        }
    }
}
