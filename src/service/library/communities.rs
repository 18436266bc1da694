//! Communities of Digital Humans.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::customer::{CommunityDoc, CommunityRecord, CommunitySpec};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::time::Timestamp;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::Library;
use crate::Caller;

/// A list of communities.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommunityList {
    /// Communities of the organization, newest first.
    pub communities: Vec<CommunityRecord>,
    /// Number of communities in the list.
    pub total_count: i64,
}

impl Library {
    /// Creates a community; all of its members must exist.
    pub async fn create_community(&self, caller: &Caller, spec: CommunitySpec) -> Result<CommunityRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let members = check_members(&mut db, spec.digital_human_ids).await?;
        let doc = CommunityDoc { title: spec.title, description: spec.description };
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.set_members(id, &members).await?;
        finish(db, id).await
    }

    /// Returns one community of the caller's organization.
    pub async fn community(&self, caller: &Caller, id: Uuid) -> Result<CommunityRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get(id).await?;
        record_of(&mut db, row).await
    }

    /// Returns all communities, or those of a Digital Human, newest first.
    pub async fn communities(&self, caller: &Caller, digital_human_id: Option<i64>) -> Result<CommunityList> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let rows = match digital_human_id {
            Some(human) => {
                db.get::<DigitalHumanSpec>(human).await?;
                db.communities_of(human).await?
            }
            None => db.all().await?,
        };
        let mut communities = Vec::with_capacity(rows.len());
        for row in rows {
            communities.push(record_of(&mut db, row).await?);
        }
        Ok(CommunityList { total_count: communities.len() as i64, communities })
    }

    /// Changes the given fields; given members replace all.
    pub async fn update_community(&self, caller: &Caller, id: Uuid, patch: Object) -> Result<CommunityRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut doc = db.get::<CommunityDoc>(id).await?.doc;
        if let Some(Value::String(title)) = patch.get("title") {
            doc.title.clone_from(title);
        }
        if let Some(description) = patch.get("description") {
            doc.description = description.as_str().map(str::to_owned);
        }
        if let Some(members) = patch.get("digital_human_ids") {
            let members = serde_json::from_value(members.clone()).map_err(Error::internal)?;
            let members = check_members(&mut db, members).await?;
            db.set_members(id, &members).await?;
        }
        db.update(id, &doc, self.clock.now_ms(), Some(caller.author())).await?;
        finish(db, id).await
    }

    /// Deletes a community; its members stay.
    pub async fn delete_community(&self, caller: &Caller, id: Uuid) -> Result<CommunityRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = db.get(id).await?;
        let record = record_of(&mut db, row).await?;
        db.delete::<CommunityDoc>(id).await?;
        db.answer(record).await
    }

    /// Adds members; those that are already stay where they are.
    pub async fn add_to_community(&self, caller: &Caller, id: Uuid, ids: Vec<i64>) -> Result<CommunityRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<CommunityDoc>(id).await?;
        let mut members = db.members_of(id).await?;
        for new in check_members(&mut db, ids).await? {
            if !members.contains(&new) {
                members.push(new);
            }
        }
        db.set_members(id, &members).await?;
        finish(db, id).await
    }

    /// Takes members out; those that are none do not matter.
    pub async fn remove_from_community(&self, caller: &Caller, id: Uuid, ids: Vec<i64>) -> Result<CommunityRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<CommunityDoc>(id).await?;
        let gone = check_members(&mut db, ids).await?;
        let mut members = db.members_of(id).await?;
        members.retain(|member| !gone.contains(member));
        db.set_members(id, &members).await?;
        finish(db, id).await
    }
}

/// Returns the Digital Humans, each once.
async fn check_members(db: &mut Session, ids: Vec<i64>) -> Result<Vec<i64>> {
    let mut members = Vec::with_capacity(ids.len());
    for id in ids {
        db.get::<DigitalHumanSpec>(id).await?;
        if !members.contains(&id) {
            members.push(id);
        }
    }
    Ok(members)
}

async fn finish(mut db: Session, id: Uuid) -> Result<CommunityRecord> {
    let row = db.get(id).await?;
    let record = record_of(&mut db, row).await?;
    db.answer(record).await
}

async fn record_of(db: &mut Session, row: Row<CommunityDoc>) -> Result<CommunityRecord> {
    let digital_human_ids = db.members_of(row.id).await?;
    let CommunityDoc { title, description } = row.doc;
    Ok(CommunityRecord { id: row.id, title, description, created_at: Timestamp(row.created_ms), digital_human_ids })
}
