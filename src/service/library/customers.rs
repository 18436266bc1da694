//! Personas and traits of an agent's customers.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::customer::{PersonaById, PersonaDoc, PersonaRecord, TraitDoc, TraitRecord};
use ringer_model::digital_human::{DigitalHumanSpec, Trait, TraitType};
use ringer_model::test_scenario::CustomerPersona;
use ringer_model::time::Timestamp;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::Library;
use super::field_rules::apply_patch;
use crate::Caller;
use crate::library::human_rules::values::{check_value, fits};

/// Response to deleting a trait.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TraitDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted trait.
    pub deleted_trait_id: Uuid,
}

/// A list of traits.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TraitList {
    /// Traits of the organization, newest first.
    pub traits: Vec<TraitRecord>,
    /// Number of traits in the list.
    pub total_count: i64,
}

impl Library {
    /// Creates a persona; its agent, if it names one, must exist.
    pub async fn create_customer_persona(&self, caller: &Caller, doc: PersonaDoc) -> Result<PersonaRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        if let Some(agent_id) = doc.agent_id {
            db.get::<AgentDoc>(agent_id).await?;
        }
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        db.answer(shown_persona(caller, row)).await
    }

    /// Returns one persona of the caller's organization.
    pub async fn customer_persona(&self, caller: &Caller, id: Uuid) -> Result<PersonaRecord> {
        let row = self.store.org(&caller.organization).read().await?.get(id).await?;
        Ok(shown_persona(caller, row))
    }

    /// Returns the personas of an agent, newest first.
    pub async fn customer_personas_by_agent(&self, caller: &Caller, agent_id: i64) -> Result<Vec<PersonaRecord>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let rows = db.by("agent_id", agent_id).await?;
        Ok(rows.into_iter().map(|row| shown_persona(caller, row)).collect())
    }

    /// Changes the given fields.
    pub async fn update_customer_persona(&self, caller: &Caller, id: Uuid, patch: Object) -> Result<PersonaRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let stored = db.get::<PersonaDoc>(id).await?;
        let doc = apply_patch(&stored.doc, &patch)?;
        db.update(id, &doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        db.commit().await?;
        Ok(shown_persona(caller, row))
    }

    /// Deletes a persona and returns it as it was.
    pub async fn delete_customer_persona(&self, caller: &Caller, id: Uuid) -> Result<PersonaRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = db.get(id).await?;
        db.delete::<PersonaDoc>(id).await?;
        db.commit().await?;
        Ok(shown_persona(caller, row))
    }

    /// Creates a trait of an agent. Its name must be new for the agent, and the default value must fit its type.
    pub async fn create_customer_trait(&self, caller: &Caller, doc: TraitDoc) -> Result<TraitRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        check_trait(&mut db, &doc, None).await?;
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        db.answer(shown_trait(row)).await
    }

    /// Returns one trait of the caller's organization.
    pub async fn customer_trait(&self, caller: &Caller, id: Uuid) -> Result<TraitRecord> {
        self.store.org(&caller.organization).read().await?.get(id).await.map(shown_trait)
    }

    /// Returns all traits, or those of an agent, newest first.
    pub async fn customer_traits(&self, caller: &Caller, agent_id: Option<i64>) -> Result<TraitList> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let rows = match agent_id {
            Some(agent_id) => {
                db.get::<AgentDoc>(agent_id).await?;
                db.by("agent_id", agent_id).await?
            }
            None => db.all().await?,
        };
        let traits: Vec<TraitRecord> = rows.into_iter().map(shown_trait).collect();
        Ok(TraitList { total_count: traits.len() as i64, traits })
    }

    /// Changes the given fields. With `sync_existing` the Digital Humans of the agent that have the trait follow.
    pub async fn update_customer_trait(
        &self,
        caller: &Caller,
        id: Uuid,
        patch: Object,
        sync_existing: bool,
    ) -> Result<TraitRecord> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        let old = db.get::<TraitDoc>(id).await?.doc;
        let new = apply_patch(&old, &patch)?;
        check_trait(&mut db, &new, Some(id)).await?;
        db.update(id, &new, now, Some(caller.author())).await?;
        if sync_existing {
            for human in db.digital_humans_of_agent(old.agent_id).await? {
                if let Some(changed) = adapt_human(&human.doc, &old, &new)? {
                    db.update(human.id, &changed, now, Some(caller.author())).await?;
                }
            }
        }
        let row = db.get(id).await?;
        db.commit().await?;
        Ok(shown_trait(row))
    }

    /// Deletes a trait; Digital Humans keep what they have.
    pub async fn delete_customer_trait(&self, caller: &Caller, id: Uuid) -> Result<TraitDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<TraitDoc>(id).await?;
        db.delete::<TraitDoc>(id).await?;
        db.commit().await?;
        Ok(TraitDeleted { message: "Customer trait deleted successfully".into(), deleted_trait_id: id })
    }
}

async fn check_trait(db: &mut Session, doc: &TraitDoc, this: Option<Uuid>) -> Result<()> {
    db.get::<AgentDoc>(doc.agent_id).await?;
    if !doc.default_value.is_null() {
        check_value(&doc.name, doc.data_type, &doc.default_value)?;
    }
    let rows = db.by::<TraitDoc>("agent_id", doc.agent_id).await?;
    if rows.iter().any(|row| row.doc.name == doc.name && Some(row.id) != this) {
        return Err(Error::Conflict("Trait name is already used".into()));
    }
    Ok(())
}

/// Returns the Digital Human after a change of a trait that it has: the trait's new name, in its texts too, and its new
/// type; the old default becomes the new one, and a value that no longer fits is converted, or else becomes the
/// default.
fn adapt_human(human: &DigitalHumanSpec, old: &TraitDoc, new: &TraitDoc) -> Result<Option<DigitalHumanSpec>> {
    if !human.traits.iter().any(|given| given.trait_name == old.name) {
        return Ok(None);
    }
    let mut human = human.clone();
    for given in human.traits.iter_mut().filter(|given| given.trait_name == old.name) {
        follow(given, old, new);
    }
    if old.name != new.name {
        let (from, to) = (format!("{{{{{}}}}}", old.name), format!("{{{{{}}}}}", new.name));
        let mut doc = serde_json::to_value(&human).map_err(Error::internal)?;
        replace(&mut doc, &from, &to);
        human = serde_json::from_value(doc).map_err(Error::internal)?;
    }
    Ok(Some(human))
}

fn follow(given: &mut Trait, old: &TraitDoc, new: &TraitDoc) {
    given.trait_name.clone_from(&new.name);
    if given.value == old.default_value && !new.default_value.is_null() {
        given.value = new.default_value.clone();
    } else if !fits(new.data_type, &given.value) {
        match convert(new.data_type, &given.value) {
            Some(value) => given.value = value,
            None if !new.default_value.is_null() => given.value = new.default_value.clone(),
            // No value of the new type is known: the old one stays, with its type.
            None => return,
        }
    }
    given.trait_data_type = new.data_type;
}

/// Returns the value in another type, where that is plain.
fn convert(kind: TraitType, value: &Value) -> Option<Value> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let read: Value = match kind {
        TraitType::String | TraitType::Date => Value::String(text),
        TraitType::Number | TraitType::Boolean => serde_json::from_str(&text).ok()?,
    };
    fits(kind, &read).then_some(read)
}

fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text.contains(from) => *text = text.replace(from, to),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, from, to)),
        Value::Object(map) => map.values_mut().for_each(|item| replace(item, from, to)),
        _ => {}
    }
}

/// Returns personas by their ids, each with its number.
///
/// # Errors
/// The first persona that does not exist is not found.
pub(crate) async fn personas_by_id(db: &mut Session, asked: &[PersonaById]) -> Result<Vec<(CustomerPersona, i64)>> {
    let mut found = Vec::with_capacity(asked.len());
    for PersonaById { id, num_calls } in asked {
        let PersonaDoc { name, description, goal, .. } = db.get::<PersonaDoc>(*id).await?.doc;
        found.push((CustomerPersona { name, description, goal: Some(goal), id: Some(*id) }, *num_calls));
    }
    Ok(found)
}

fn shown_persona(caller: &Caller, row: Row<PersonaDoc>) -> PersonaRecord {
    let PersonaDoc { name, description, goal, .. } = row.doc;
    let org_id = caller.organization.clone();
    PersonaRecord { id: row.id, created_at: Timestamp(row.created_ms), name, description, goal, org_id }
}

fn shown_trait(row: Row<TraitDoc>) -> TraitRecord {
    let TraitDoc { agent_id, name, data_type, default_value } = row.doc;
    TraitRecord { id: row.id, agent_id, name, data_type, default_value, created_at: Timestamp(row.created_ms) }
}
