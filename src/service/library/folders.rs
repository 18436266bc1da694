//! Folders of agents, and the credentials of platforms.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentRecord};
use ringer_model::folder::{FolderRecord, FolderSpec, MoveAgent};
use ringer_model::integration::IntegrationSpec;
use ringer_model::time::Timestamp;
use ringer_model::webhook::WebhookDoc;
use ringer_store::{Integrations, Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::Library;
use super::agents::read_agent;
use super::field_rules::{self, apply_patch};
use crate::Caller;

/// The field of the credentials that is asked for connections.
const BASE_URL: &str = "P2_base_url";

/// Field of the credentials that holds the address of the room server.
const ROOM_URL: &str = "P1_url";

/// Response to deleting a folder.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FolderDeleted {
    /// Id of the deleted folder.
    pub folder_id: Uuid,
    /// Always the text `success`.
    pub status: String,
}

/// Response to moving an agent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentMoved {
    /// Id of the agent.
    pub agent_id: i64,
    /// Folder that now holds the agent; null outside of any folder.
    pub folder_id: Option<Uuid>,
    /// Always the text `success`.
    pub status: String,
}

impl Library {
    /// Creates a folder; its name must be new.
    pub async fn create_folder(&self, caller: &Caller, spec: FolderSpec) -> Result<FolderRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        check_name(&mut db, &spec.name, None).await?;
        let id = db.insert(&spec, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        db.answer(record_of(caller, row)).await
    }

    /// Returns all folders, newest first.
    pub async fn all_folders(&self, caller: &Caller) -> Result<Vec<FolderRecord>> {
        let rows = self.store.org(&caller.organization).read().await?.all().await?;
        Ok(rows.into_iter().map(|row| record_of(caller, row)).collect())
    }

    /// Returns one folder of the caller's organization.
    pub async fn folder(&self, caller: &Caller, folder_id: Uuid) -> Result<FolderRecord> {
        let row = self.store.org(&caller.organization).read().await?.get(folder_id).await?;
        Ok(record_of(caller, row))
    }

    /// Renames a folder; the new name must be free.
    pub async fn update_folder(&self, caller: &Caller, folder_id: Uuid, spec: FolderSpec) -> Result<FolderRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<FolderSpec>(folder_id).await?;
        check_name(&mut db, &spec.name, Some(folder_id)).await?;
        db.update(folder_id, &spec, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(folder_id).await?;
        db.commit().await?;
        Ok(record_of(caller, row))
    }

    /// Deletes a folder; its agents then lie in none, and webhooks name it no more.
    pub async fn delete_folder(&self, caller: &Caller, folder_id: Uuid) -> Result<FolderDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<FolderSpec>(folder_id).await?;
        for mut agent in db.by::<AgentDoc>("folder_id", folder_id).await? {
            agent.doc.folder_id = None;
            db.update(agent.id, &agent.doc, self.clock.now_ms(), Some(caller.author())).await?;
        }
        self.strike(&mut db, caller, &[folder_id], |webhook: &mut WebhookDoc| &mut webhook.spec.folder_ids).await?;
        db.delete::<FolderSpec>(folder_id).await?;
        db.commit().await?;
        Ok(FolderDeleted { folder_id, status: "success".into() })
    }

    /// Puts an agent into a folder, or out of any.
    pub async fn move_agent(&self, caller: &Caller, to: MoveAgent) -> Result<AgentMoved> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut agent = db.get::<AgentDoc>(to.agent_id).await?;
        if let Some(folder_id) = to.folder_id {
            db.get::<FolderSpec>(folder_id).await?;
        }
        agent.doc.folder_id = to.folder_id;
        db.update(agent.id, &agent.doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.commit().await?;
        Ok(AgentMoved { agent_id: agent.id, folder_id: to.folder_id, status: "success".into() })
    }

    /// Returns the agents in a folder, newest first.
    pub async fn agents_by_folder(&self, caller: &Caller, folder_id: Uuid) -> Result<Vec<AgentRecord>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<FolderSpec>(folder_id).await?;
        let found = db.agents_with_texts(Some(("folder_id", folder_id.into()))).await?;
        Ok(found.into_iter().map(|found| read_agent(caller, found)).collect())
    }

    /// Returns the folder of this name, made when absent.
    pub(crate) async fn folder_named(
        &self,
        db: &mut Session,
        caller: &Caller,
        name: Option<&str>,
    ) -> Result<Option<Uuid>> {
        let Some(name) = name else { return Ok(None) };
        if let Some(row) = db.by::<FolderSpec>("name", name).await?.first() {
            return Ok(Some(row.id));
        }
        let folder = FolderSpec { name: name.to_owned() };
        db.insert(&folder, self.clock.now_ms(), Some(caller.author())).await.map(Some)
    }

    /// Returns the platform credentials as they may be shown.
    pub async fn integrations(&self, caller: &Caller) -> Result<Object> {
        let mut db = self.store.org(&caller.organization).read().await?;
        Ok(stored_integrations(&mut db).await?.record())
    }

    /// Changes the given credentials; null clears.
    pub async fn update_integrations(&self, caller: &Caller, patch: Object) -> Result<Object> {
        if let Some(url) = patch.get(BASE_URL).and_then(Value::as_str) {
            field_rules::webhook(BASE_URL, Some(url), &self.settings)?;
            field_rules::look(&[(BASE_URL.to_owned(), url.to_owned())], &self.settings, self.poster.guard()).await?;
        }
        if let Some(url) = patch.get(ROOM_URL).and_then(Value::as_str).filter(|url| !url.is_empty()) {
            field_rules::socket_url(ROOM_URL, Some(url), &self.settings)?;
            field_rules::look_agents(ROOM_URL, url, &self.settings).await?;
        }
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        let stored = db.all::<Integrations>().await?.into_iter().next();
        let old = stored.as_ref().map(|row| row.doc.0.clone()).unwrap_or_default();
        let new = Integrations(apply_patch(&old, &patch)?);
        match stored {
            Some(row) => db.update(row.id, &new, now, Some(caller.author())).await.map(drop)?,
            None => db.insert(&new, now, Some(caller.author())).await.map(drop)?,
        }
        db.commit().await?;
        Ok(new.0.record())
    }
}

/// Returns the credentials of an organization's platforms; none when nothing is stored.
pub(crate) async fn stored_integrations(db: &mut Session) -> Result<IntegrationSpec> {
    Ok(db.all::<Integrations>().await?.into_iter().next().map(|row| row.doc.0).unwrap_or_default())
}

async fn check_name(db: &mut Session, name: &str, this: Option<Uuid>) -> Result<()> {
    let taken = db.by::<FolderSpec>("name", name).await?.iter().any(|row| Some(row.id) != this);
    if taken { Err(Error::Conflict("Folder name is already used".into())) } else { Ok(()) }
}

fn record_of(caller: &Caller, row: Row<FolderSpec>) -> FolderRecord {
    FolderRecord {
        id: row.id,
        name: row.doc.name,
        organization_id: caller.organization.clone(),
        created_at: Timestamp(row.created_ms),
    }
}
