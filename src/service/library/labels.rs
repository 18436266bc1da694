//! Labels of an agent, apart from the versions that hold them, and how an evaluation finds the version that it judges
//! by.

use ringer_base::error::{Error, Result};
use ringer_model::agent::AgentDoc;
use ringer_model::agent_version::{
    LATEST, LabelChange, LabelColor, LabelDoc, LabelRecord, LabelSpec, LabelText, PRODUCTION, VersionDoc,
};
use ringer_model::time::Timestamp;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::Library;
use super::versions::versions_of;
use crate::Caller;

/// Response to deleting a label.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LabelDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted label.
    pub deleted_label_id: Uuid,
}

impl Library {
    /// Returns the labels of an agent by their texts, `q`: those that contain it in any case. production and latest are
    /// not listed.
    pub async fn labels(&self, caller: &Caller, agent_id: i64, q: Option<&str>) -> Result<Vec<LabelRecord>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let versions = versions_of(&mut db, agent_id).await?;
        let part = q.unwrap_or_default().to_lowercase();
        let mut rows = db.by::<LabelDoc>("agent_id", agent_id).await?;
        rows.retain(|row| row.doc.label_text.to_lowercase().contains(&part));
        rows.sort_by(|one, other| one.doc.label_text.cmp(&other.doc.label_text));
        Ok(rows.into_iter().map(|row| record_of(row, &versions)).collect())
    }

    /// Makes a label that no version holds yet.
    pub async fn create_label(&self, caller: &Caller, agent_id: i64, spec: LabelSpec) -> Result<LabelRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        check_text(&mut db, agent_id, &spec.label_text, None).await?;
        let doc = LabelDoc { agent_id, label_text: spec.label_text.0, color: spec.color };
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        db.answer(record_of(row, &[])).await
    }

    /// Returns one label of an agent.
    pub async fn label(&self, caller: &Caller, agent_id: i64, label_id: Uuid) -> Result<LabelRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let row = label_of(&mut db, agent_id, label_id).await?;
        Ok(record_of(row, &versions_of(&mut db, agent_id).await?))
    }

    /// Renames a label, also on the versions that hold it, and gives it a colour where one is given.
    pub async fn update_label(
        &self,
        caller: &Caller,
        agent_id: i64,
        label_id: Uuid,
        change: LabelChange,
    ) -> Result<LabelRecord> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let mut row = label_of(&mut db, agent_id, label_id).await?;
        check_text(&mut db, agent_id, &change.label_text, Some(label_id)).await?;
        let old = std::mem::replace(&mut row.doc.label_text, change.label_text.0);
        row.doc.color = change.color.unwrap_or(row.doc.color);
        db.update(label_id, &row.doc, now, Some(caller.author())).await?;
        let mut versions = versions_of(&mut db, agent_id).await?;
        for version in versions.iter_mut().filter(|version| version.doc.holds(&old)) {
            for label in version.doc.labels.iter_mut().filter(|label| **label == old) {
                label.clone_from(&row.doc.label_text);
            }
            db.update(version.id, &version.doc, now, Some(caller.author())).await?;
        }
        db.commit().await?;
        Ok(record_of(row, &versions))
    }

    /// Gives labels of an agent their colours, and makes those that are missing. Returns the texts of the labels that
    /// changed, each with true if it is new.
    pub(crate) async fn colour_labels(
        &self,
        db: &mut Session,
        caller: &Caller,
        agent_id: i64,
        colours: Vec<(LabelText, Option<LabelColor>)>,
    ) -> Result<Vec<(String, bool)>> {
        let now = self.clock.now_ms();
        let mut changed = Vec::new();
        for (text, color) in colours {
            let rows = db.by::<LabelDoc>("agent_id", agent_id).await?;
            match rows.into_iter().find(|row| row.doc.label_text == text.0) {
                Some(row) if row.doc.color == color => continue,
                Some(mut row) => {
                    row.doc.color = color;
                    db.update(row.id, &row.doc, now, Some(caller.author())).await?;
                    changed.push((text.0, false));
                }
                None => {
                    check_text(db, agent_id, &text, None).await?;
                    let doc = LabelDoc { agent_id, label_text: text.0.clone(), color };
                    db.insert(&doc, now, Some(caller.author())).await?;
                    changed.push((text.0, true));
                }
            }
        }
        Ok(changed)
    }

    /// Deletes a label that no version holds.
    pub async fn delete_label(&self, caller: &Caller, agent_id: i64, label_id: Uuid) -> Result<LabelDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let row = label_of(&mut db, agent_id, label_id).await?;
        if versions_of(&mut db, agent_id).await?.iter().any(|version| version.doc.holds(&row.doc.label_text)) {
            return Err(Error::Refused("Label is attached to a version".into()));
        }
        db.delete::<LabelDoc>(label_id).await?;
        db.commit().await?;
        Ok(LabelDeleted { message: "Label deleted".into(), deleted_label_id: label_id })
    }

    /// Returns the version that a conversation is judged by, and a warning when it is not the one that was asked for. A
    /// number goes before a label; an unknown label is made and put on the production version, whatever the number.
    pub(crate) async fn version_to_judge(
        &self,
        db: &mut Session,
        caller: &Caller,
        agent_id: i64,
        version: Option<i64>,
        label: &LabelText,
    ) -> Result<(Uuid, Option<String>)> {
        db.hold_agent(agent_id).await?;
        let versions = versions_of(db, agent_id).await?;
        let find = |fits: &dyn Fn(&VersionDoc) -> bool| versions.iter().find(|row| fits(&row.doc)).cloned();
        let production = find(&|doc| doc.holds(PRODUCTION));
        let production = production.ok_or_else(|| Error::internal("an agent has no production version"))?;
        let labelled = find(&|doc| doc.holds(&label.0));
        if labelled.is_none() {
            let mut row = production.clone();
            self.keep_labels(db, caller, agent_id, std::slice::from_ref(label)).await?;
            row.doc.labels.push(label.0.clone());
            db.update(row.id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        }
        let Some(number) = version else { return Ok((labelled.unwrap_or(production).id, None)) };
        Ok(match find(&|doc| doc.version == number) {
            Some(row) => (row.id, None),
            None => {
                let warning = format!("Version {number} does not exist, the production version was used");
                (production.id, Some(warning))
            }
        })
    }
}

async fn label_of(db: &mut Session, agent_id: i64, id: Uuid) -> Result<Row<LabelDoc>> {
    let row = db.find::<LabelDoc>(id).await?.filter(|row| row.doc.agent_id == agent_id);
    row.ok_or(Error::NotFound("Label"))
}

async fn check_text(db: &mut Session, agent_id: i64, text: &LabelText, this: Option<Uuid>) -> Result<()> {
    let LabelText(text) = text;
    if [PRODUCTION, LATEST].contains(&text.as_str()) {
        return Err(Error::Refused(format!("Label '{text}' is reserved")));
    }
    let rows = db.by::<LabelDoc>("agent_id", agent_id).await?;
    if rows.iter().any(|row| row.doc.label_text == *text && Some(row.id) != this) {
        return Err(Error::Conflict("Label already exists".into()));
    }
    Ok(())
}

/// Returns the record of a label. `versions` must be in descending order of number.
fn record_of(row: Row<LabelDoc>, versions: &[Row<VersionDoc>]) -> LabelRecord {
    let holder = versions.iter().find(|version| version.doc.holds(&row.doc.label_text)).map(|version| version.id);
    LabelRecord {
        id: row.id,
        agent_id: row.doc.agent_id,
        label_text: row.doc.label_text,
        created_at: Timestamp(row.created_ms),
        agent_version_id: holder,
        prompt_id: holder,
        knowledge_base_id: None,
        color: row.doc.color,
    }
}
