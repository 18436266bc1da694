//! Versions of an agent's prompt text. Numbers count up, `latest` is managed, `production` is held by one version.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::agent_version::{
    LATEST, LabelDoc, LabelText, LabelsSpec, LabelsTaken, PRODUCTION, VersionDoc, VersionName, VersionRecord,
    VersionSpec,
};
use ringer_model::simulation::SimulationSpec;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Library, field_rules};
use crate::Caller;

/// Response to deleting a version.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VersionDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted version.
    pub deleted_version_id: Uuid,
    /// Number of the deleted version.
    pub deleted_version: i64,
    /// The version that is now the latest.
    pub latest_version: i64,
}

/// The labels of a version.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VersionLabels {
    /// production and latest first.
    pub labels: Vec<String>,
}

/// A new version before it has a number.
#[derive(Default)]
pub(crate) struct Draft {
    /// `None`: the text of the latest version.
    pub prompt_text: Option<String>,
    pub commit_message: Option<String>,
    pub labels: Vec<LabelText>,
    pub take_labels: bool,
    pub metadata: Option<Object>,
}

impl Library {
    /// Makes the next version of an agent.
    pub async fn create_version(&self, caller: &Caller, agent_id: i64, spec: VersionSpec) -> Result<VersionRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let draft = Draft {
            prompt_text: spec.prompt_text,
            commit_message: spec.commit_message,
            labels: spec.labels.unwrap_or_default(),
            take_labels: spec.override_label.unwrap_or(false),
            metadata: spec.metadata,
        };
        let made = self.add_version(&mut db, caller, agent_id, draft).await?;
        db.answer(record_of(made)).await
    }

    /// Returns the versions of an agent, highest first, those with the label and the number only when these are given.
    pub async fn versions(
        &self,
        caller: &Caller,
        agent_id: i64,
        label: Option<&str>,
        version: Option<i64>,
        limit: i64,
    ) -> Result<Vec<VersionRecord>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let fits = |row: &Row<VersionDoc>| {
            label.is_none_or(|label| row.doc.holds(label)) && version.is_none_or(|number| row.doc.version == number)
        };
        let rows = versions_of(&mut db, agent_id).await?;
        Ok(rows.into_iter().filter(fits).take(limit.max(0) as usize).map(record_of).collect())
    }

    /// Returns one version of an agent, by id or by number.
    pub async fn version(&self, caller: &Caller, agent_id: i64, name: VersionName) -> Result<VersionRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        find_version(&mut db, agent_id, name).await.map(record_of)
    }

    /// Returns the one version that holds a label.
    pub async fn version_by_label(&self, caller: &Caller, agent_id: i64, label: Option<&str>) -> Result<VersionRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let label = label.ok_or_else(|| Error::Refused("label is required".into()))?;
        only_holder(&versions_of(&mut db, agent_id).await?, label).cloned().map(record_of)
    }

    /// Deletes a version; latest moves to the highest that remains, its simulations are of the production version then.
    pub async fn delete_version(&self, caller: &Caller, agent_id: i64, name: VersionName) -> Result<VersionDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let version = find_version(&mut db, agent_id, name).await?;
        self.remove_version(db, caller, version).await
    }

    /// Deletes the one version that holds a label.
    pub async fn delete_version_by_label(
        &self,
        caller: &Caller,
        agent_id: i64,
        label: Option<&str>,
    ) -> Result<VersionDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let label = label.ok_or_else(|| Error::Refused("label is required".into()))?;
        if label == PRODUCTION {
            return Err(production_stays());
        }
        let version = only_holder(&versions_of(&mut db, agent_id).await?, label)?.clone();
        self.remove_version(db, caller, version).await
    }

    /// Returns the labels of a version.
    pub async fn version_labels(&self, caller: &Caller, agent_id: i64, name: VersionName) -> Result<VersionLabels> {
        let version = self.version(caller, agent_id, name).await?;
        Ok(VersionLabels { labels: version.doc.labels })
    }

    /// Puts labels on a version.
    pub async fn add_version_labels(
        &self,
        caller: &Caller,
        agent_id: i64,
        name: VersionName,
        spec: LabelsSpec,
    ) -> Result<VersionLabels> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let mut version = find_version(&mut db, agent_id, name).await?;
        let labels = spec.labels.unwrap_or_default();
        let others = versions_of(&mut db, agent_id).await?.into_iter().filter(|row| row.id != version.id).collect();
        self.attach(&mut db, caller, agent_id, others, &labels, spec.override_label).await?;
        put_on(&mut version.doc, &labels);
        db.update(version.id, &version.doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.commit().await?;
        Ok(VersionLabels { labels: version.doc.labels })
    }

    /// Takes labels from a version, all but latest when none is named.
    pub async fn remove_version_labels(
        &self,
        caller: &Caller,
        agent_id: i64,
        name: VersionName,
        taken: LabelsTaken,
    ) -> Result<VersionLabels> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let mut version = find_version(&mut db, agent_id, name).await?;
        let asked = taken.labels.unwrap_or_default();
        let goes = |label: &String| label != LATEST && (asked.is_empty() || asked.iter().any(|one| one.0 == *label));
        if version.doc.labels.iter().any(|label| label == PRODUCTION && goes(label)) {
            return Err(production_stays());
        }
        version.doc.labels.retain(|label| !goes(label));
        db.update(version.id, &version.doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.commit().await?;
        Ok(VersionLabels { labels: version.doc.labels })
    }

    /// Moves the label production to a version, to the latest when none is named.
    pub async fn promote_version(
        &self,
        caller: &Caller,
        agent_id: i64,
        agent_version_id: Option<Uuid>,
        prompt_id: Option<Uuid>,
    ) -> Result<VersionRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.hold_agent(agent_id).await?;
        let mut version = match agent_version_id.or(prompt_id) {
            Some(id) => version_of(&mut db, agent_id, id).await?,
            None => latest(&versions_of(&mut db, agent_id).await?)?.clone(),
        };
        field_rules::twins(agent_version_id, prompt_id)?;
        let labels = [LabelText(PRODUCTION.into())];
        let others = versions_of(&mut db, agent_id).await?.into_iter().filter(|row| row.id != version.id).collect();
        self.attach(&mut db, caller, agent_id, others, &labels, true).await?;
        put_on(&mut version.doc, &labels);
        db.update(version.id, &version.doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.commit().await?;
        Ok(record_of(version))
    }

    /// Returns the text of an agent's latest version.
    pub(crate) async fn latest_prompt(&self, db: &mut Session, agent_id: i64) -> Result<String> {
        latest(&versions_of(db, agent_id).await?).map(|row| row.doc.prompt_text.clone())
    }

    /// Inserts the next version of an agent that has one. The agent is held.
    pub(crate) async fn add_version(
        &self,
        db: &mut Session,
        caller: &Caller,
        agent_id: i64,
        draft: Draft,
    ) -> Result<Row<VersionDoc>> {
        let now = self.clock.now_ms();
        let versions = versions_of(db, agent_id).await?;
        let newest = latest(&versions)?.doc.clone();
        let deleted = db.get::<AgentDoc>(agent_id).await?.doc.deleted_version;
        self.attach(db, caller, agent_id, versions, &draft.labels, draft.take_labels).await?;
        for mut old in versions_of(db, agent_id).await?.into_iter().filter(|row| row.doc.holds(LATEST)) {
            old.doc.labels.retain(|label| label != LATEST);
            db.update(old.id, &old.doc, now, Some(caller.author())).await?;
        }
        let mut doc = VersionDoc {
            agent_id,
            version: newest.version.max(deleted) + 1,
            prompt_text: draft.prompt_text.unwrap_or(newest.prompt_text),
            commit_message: draft.commit_message,
            labels: vec![LATEST.into()],
            metadata: draft.metadata,
        };
        put_on(&mut doc, &draft.labels);
        let id = db.insert(&doc, now, Some(caller.author())).await?;
        db.get(id).await
    }

    /// Gives the first version of an agent these labels in the place of its own, but for production and latest; true
    /// when that changes it.
    pub(crate) async fn label_first_version(
        &self,
        db: &mut Session,
        caller: &Caller,
        agent_id: i64,
        labels: &[LabelText],
    ) -> Result<bool> {
        db.hold_agent(agent_id).await?;
        let mut others = versions_of(db, agent_id).await?;
        let mut first = others.pop().ok_or_else(|| Error::internal("an agent has no version"))?;
        self.attach(db, caller, agent_id, others, labels, false).await?;
        let old = first.doc.labels.clone();
        first.doc.labels.retain(|label| [PRODUCTION, LATEST].contains(&label.as_str()));
        put_on(&mut first.doc, labels);
        let changed = first.doc.labels != old;
        if changed {
            db.update(first.id, &first.doc, self.clock.now_ms(), Some(caller.author())).await?;
        }
        Ok(changed)
    }

    /// Makes sure that a version may be given `labels`: takes them from `others` when asked to, and keeps a record of
    /// each.
    async fn attach(
        &self,
        db: &mut Session,
        caller: &Caller,
        agent_id: i64,
        others: Vec<Row<VersionDoc>>,
        labels: &[LabelText],
        take: bool,
    ) -> Result<()> {
        let wanted = |label: &String| label != LATEST && labels.iter().any(|one| one.0 == *label);
        for mut other in others {
            let shared = other.doc.labels.iter().any(wanted);
            if shared && take {
                other.doc.labels.retain(|label| !wanted(label));
                db.update(other.id, &other.doc, self.clock.now_ms(), Some(caller.author())).await?;
            } else if shared && other.doc.holds(PRODUCTION) && wanted(&PRODUCTION.to_owned()) {
                let number = other.doc.version;
                return Err(Error::Refused(format!(
                    "Label 'production' is held by version {number}; set override_label to true to move it"
                )));
            }
        }
        self.keep_labels(db, caller, agent_id, labels).await
    }

    /// Makes a record of every label that has none yet.
    pub(crate) async fn keep_labels(
        &self,
        db: &mut Session,
        caller: &Caller,
        agent_id: i64,
        labels: &[LabelText],
    ) -> Result<()> {
        let mut known: Vec<String> = vec![PRODUCTION.into(), LATEST.into()];
        if labels.iter().any(|label| !known.contains(&label.0)) {
            let rows = db.by::<LabelDoc>("agent_id", agent_id).await?;
            known.extend(rows.into_iter().map(|row| row.doc.label_text));
        }
        for label in labels {
            if !known.contains(&label.0) {
                let doc = LabelDoc { agent_id, label_text: label.0.clone(), color: None };
                db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
                known.push(label.0.clone());
            }
        }
        Ok(())
    }

    async fn remove_version(
        &self,
        mut db: Session,
        caller: &Caller,
        version: Row<VersionDoc>,
    ) -> Result<VersionDeleted> {
        if version.doc.holds(PRODUCTION) {
            return Err(production_stays());
        }
        let mut rest = versions_of(&mut db, version.doc.agent_id).await?;
        rest.retain(|row| row.id != version.id);
        let Some(highest) = rest.first_mut() else {
            return Err(Error::Refused("Cannot delete the only version".into()));
        };
        if version.doc.holds(LATEST) {
            put_on_latest(&mut highest.doc);
            db.update(highest.id, &highest.doc, self.clock.now_ms(), Some(caller.author())).await?;
            // Calls that are judged by the number of a version never find another one under it.
            let mut agent = db.get::<AgentDoc>(version.doc.agent_id).await?;
            agent.doc.deleted_version = agent.doc.deleted_version.max(version.doc.version);
            db.update(agent.id, &agent.doc, agent.updated_ms, agent.updated_by).await?;
        }
        let latest_version = latest(&rest)?.doc.version;
        for mut simulation in db.by::<SimulationSpec>("agent_id", version.doc.agent_id).await? {
            if simulation.doc.agent_version_id == Some(version.id) {
                simulation.doc.agent_version_id = None;
                db.update(simulation.id, &simulation.doc, self.clock.now_ms(), Some(caller.author())).await?;
            }
        }
        db.delete::<VersionDoc>(version.id).await?;
        db.commit().await?;
        Ok(VersionDeleted {
            message: "Agent version deleted".into(),
            deleted_version_id: version.id,
            deleted_version: version.doc.version,
            latest_version,
        })
    }
}

/// Versions of an agent, highest first.
pub(crate) async fn versions_of(db: &mut Session, agent_id: i64) -> Result<Vec<Row<VersionDoc>>> {
    let mut versions = db.by::<VersionDoc>("agent_id", agent_id).await?;
    versions.sort_by_key(|row| std::cmp::Reverse(row.doc.version));
    Ok(versions)
}

/// Returns a version of the agent, when it has it.
pub(crate) async fn version_of(db: &mut Session, agent_id: i64, id: Uuid) -> Result<Row<VersionDoc>> {
    let row = db.find::<VersionDoc>(id).await?.filter(|row| row.doc.agent_id == agent_id);
    row.ok_or(Error::NotFound("Agent version"))
}

/// Returns the first version of an agent that is not stored yet.
pub(crate) fn first_version(agent_id: i64, prompt_text: String, labels: &[LabelText]) -> VersionDoc {
    let managed = vec![PRODUCTION.to_owned(), LATEST.to_owned()];
    let mut doc =
        VersionDoc { agent_id, version: 1, prompt_text, commit_message: None, labels: managed, metadata: None };
    put_on(&mut doc, labels);
    doc
}

async fn find_version(db: &mut Session, agent_id: i64, name: VersionName) -> Result<Row<VersionDoc>> {
    match name {
        VersionName::Id(id) => version_of(db, agent_id, id).await,
        VersionName::Number(number) => {
            let rows = versions_of(db, agent_id).await?;
            rows.into_iter().find(|row| row.doc.version == number).ok_or(Error::NotFound("Agent version"))
        }
    }
}

fn latest(versions: &[Row<VersionDoc>]) -> Result<&Row<VersionDoc>> {
    let held = versions.iter().find(|row| row.doc.holds(LATEST));
    held.ok_or_else(|| Error::internal("an agent has no latest version"))
}

fn only_holder<'v>(versions: &'v [Row<VersionDoc>], label: &str) -> Result<&'v Row<VersionDoc>> {
    let mut holders = versions.iter().filter(|row| row.doc.holds(label));
    match (holders.next(), holders.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(Error::Refused(format!("Label '{label}' resolves to several versions"))),
        (None, _) => Err(Error::NotAvailable("Label resolves to no version".into())),
    }
}

/// Adds labels that the version does not hold; production and latest stand first.
fn put_on(doc: &mut VersionDoc, labels: &[LabelText]) {
    for LabelText(label) in labels {
        if label != LATEST && !doc.holds(label) {
            doc.labels.push(label.clone());
        }
    }
    order(doc);
}

fn put_on_latest(doc: &mut VersionDoc) {
    if !doc.holds(LATEST) {
        doc.labels.push(LATEST.into());
    }
    order(doc);
}

fn order(doc: &mut VersionDoc) {
    doc.labels.sort_by_key(|label| match label.as_str() {
        PRODUCTION => 0,
        LATEST => 1,
        _ => 2,
    });
}

fn production_stays() -> Error {
    Error::Refused("The production label must be moved to another version first".into())
}

fn record_of(row: Row<VersionDoc>) -> VersionRecord {
    VersionRecord { id: row.id, doc: row.doc }
}
