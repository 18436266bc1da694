//! Limits of organizations as an operator reads and sets them, and the places of their conversations.

use ringer_base::error::{Error, Result};
use ringer_model::organization::{LimitsRecord, WorkspaceLimits};
use ringer_store::Session;

use super::Conversations;
use crate::Caller;
use crate::library::limits::limits_in_force;

/// Prefix of the addresses under which results wait for a place of their organization. The blank in it keeps calls from
/// reaching them.
const PLACES: &str = "places of: ";

impl Conversations {
    /// Returns the limits of the organization of this name or id, stored and in force.
    ///
    /// # Errors
    /// There is no such organization; without `may_see_all` it is not that of the caller, or the caller is no admin.
    pub async fn organization_limits(&self, caller: &Caller, name: &str, may_see_all: bool) -> Result<LimitsRecord> {
        let found = self.find_organization(name).await;
        let own = found.as_ref().is_ok_and(|(id, _)| *id == caller.organization) && caller.is_admin();
        if !may_see_all && !own {
            return Err(Error::Forbidden("Invalid internal token".into()));
        }
        let (id, name) = found?;
        let mut db = self.store.org(&id).read().await?;
        self.limits_record(&mut db, name).await
    }

    /// Stores the limits of the organization of this name or id, in place of those that were stored before. Results
    /// that wait for a place look again.
    ///
    /// # Errors
    /// There is no such organization.
    pub async fn set_organization_limits(&self, name: &str, limits: WorkspaceLimits) -> Result<LimitsRecord> {
        let (id, name) = self.find_organization(name).await?;
        let mut db = self.store.org(&id).write().await?;
        db.store_limits(&limits).await?;
        self.fill_places(&mut db).await?;
        let shown = self.limits_record(&mut db, name).await?;
        db.answer(shown).await
    }

    async fn find_organization(&self, name: &str) -> Result<(String, String)> {
        let all = self.store.org("").read().await?.organizations().await?;
        let found = all.iter().find(|(_, known)| known == name).or_else(|| all.iter().find(|(id, _)| id == name));
        found.cloned().ok_or(Error::NotFound("Organization"))
    }

    async fn limits_record(&self, db: &mut Session, name: String) -> Result<LimitsRecord> {
        let stored = db.stored_limits().await?;
        let in_force = limits_in_force(&self.settings, db).await?;
        Ok(LimitsRecord { organization_id: db.organization().to_owned(), name, stored, in_force })
    }

    /// Queues results anew that wait for a place of their organization where one is free: the settings may have
    /// changed since they began to wait.
    pub async fn wake_waiting(&self) -> Result<()> {
        let waiting = self.store.org("").read().await?.addresses_waited_for(PLACES).await?;
        for address in waiting {
            let mut db = self.store.org(&address[PLACES.len()..]).write().await?;
            self.fill_places(&mut db).await?;
            db.commit().await?;
        }
        Ok(())
    }

    /// Queues as many of those anew that wait for a place of the session's organization as there are free places.
    async fn fill_places(&self, db: &mut Session) -> Result<()> {
        let address = places_of(db.organization());
        for _ in 0..self.free_places(db).await?.unwrap_or(i64::MAX) {
            if self.wake_next(db, &address).await?.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of conversations that the session's organization may hold besides those that it holds;
    /// `None`: there is no limit.
    pub(super) async fn free_places(&self, db: &mut Session) -> Result<Option<i64>> {
        let Some(limit) = limits_in_force(&self.settings, db).await?.calls_at_once else { return Ok(None) };
        Ok(Some((i64::from(limit) - db.conversations_held().await?).max(0)))
    }

    /// True if the session's organization may hold one more conversation.
    pub(crate) async fn has_free_place(&self, db: &mut Session) -> Result<bool> {
        Ok(self.free_places(db).await?.is_none_or(|free| free > 0))
    }
}

/// Returns the address under which results wait for a place of an organization.
pub(super) fn places_of(organization: &str) -> String {
    format!("{PLACES}{organization}")
}

/// True for an address under which results wait for a place.
pub(super) fn is_places(address: &str) -> bool {
    address.starts_with(PLACES)
}
