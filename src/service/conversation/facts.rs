//! Facts of the Digital Human of a result: itself and its traits as the conversation of the result has them.

use ringer_base::error::Result;
use ringer_media::seed::Seed;
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::digital_human::{DigitalHumanSpec, Trait};
use ringer_model::result::ResultDoc;
use ringer_model::run::{RunDoc, result_seed};
use ringer_store::{Row, Session};
use serde::Deserialize;
use serde_json::Value;

use crate::library::human_rules::values::{bind, is_invented};

/// Kind under which the settings of a conversation are stored with its result.
pub(crate) const SETTINGS: &str = "settings";

/// Draws who the Digital Human of a result is: in all steps of a journey the same person.
pub(crate) fn identity(result: &ResultDoc, key: &str, run_seed: i64) -> Seed {
    match result.body.journey_step {
        Some(_) => result_seed(Seed(run_seed as u64), key, result.repetition, Some(1)),
        None => Seed(result.body.seed as u64),
    }
}

/// Returns the facts of the Digital Human of a result, as its conversation has them; none when it was deleted.
pub(crate) async fn facts(db: &mut Session, result: &ResultDoc) -> Result<Vec<Trait>> {
    let Some(id) = result.body.digital_human_id else { return Ok(Vec::new()) };
    let Some(human) = db.find::<DigitalHumanSpec>(id).await? else { return Ok(Vec::new()) };
    facts_of_conversation(db, result, human.doc.traits).await
}

/// Returns the facts with what was invented of them for this conversation.
pub(crate) async fn facts_of_conversation(
    db: &mut Session,
    result: &ResultDoc,
    traits: Vec<Trait>,
) -> Result<Vec<Trait>> {
    let is_open = traits.iter().any(|fact| is_invented(&fact.value));
    let Some(id) = result.body.digital_human_id.filter(|_| is_open) else { return Ok(traits) };
    let run = db.get::<RunDoc>(result.body.simulation_run_id).await?;
    let human = db.find::<DigitalHumanSpec>(id).await?;
    let key = human.map_or_else(|| id.to_string(), |human| human.doc.seed_key(human.id));
    Ok(bind(traits, identity(result, &key, run.doc.seed)))
}

/// Returns traits by name, as they are said.
pub(crate) fn spoken_facts(traits: &[Trait]) -> Vec<(String, String)> {
    traits.iter().map(|fact| (fact.trait_name.clone(), spoken_value(&fact.value))).collect()
}

/// Returns a trait's value as it is said and sent.
pub(crate) fn spoken_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the Digital Human of a result as its conversation had it. While what is private is still in the conversation
/// it is the one of today, when there is one: what was kept is without it.
pub(crate) async fn human_in_force(db: &mut Session, row: &Row<ResultDoc>) -> Result<Option<DigitalHumanSpec>> {
    if row.doc.private
        && let Some(today) = human_today(db, row).await?
    {
        return Ok(Some(today));
    }
    let kept: Option<Value> = db.text(SETTINGS, row.id).await?;
    // With a trait taken out of them that is also one of their own words, they can no longer be read.
    match kept.and_then(|kept| DigitalHumanSpec::deserialize(&kept["digital_human"]).ok()) {
        Some(human) => Ok(Some(human)),
        None => human_today(db, row).await,
    }
}

/// Returns the Digital Human of a result as it is stored now; `None`: it was deleted.
pub(crate) async fn human_today(db: &mut Session, row: &Row<ResultDoc>) -> Result<Option<DigitalHumanSpec>> {
    match row.doc.body.digital_human_id {
        Some(id) => Ok(db.find::<DigitalHumanSpec>(id).await?.map(|row| row.doc)),
        None => Ok(None),
    }
}

/// True if the conversation of a result is written, and held by this engine.
pub(crate) async fn is_written(db: &mut Session, result: &ResultDoc) -> Result<bool> {
    Ok(met_agent(db, result).await?.is_some_and(|agent| agent.is_written()))
}

/// Returns the agent of a result as the step of its journey meets it; `None`: it was deleted.
pub(crate) async fn met_agent(db: &mut Session, result: &ResultDoc) -> Result<Option<AgentSpec>> {
    let body = &result.body;
    let Some(agent) = db.find::<AgentDoc>(body.agent_id).await? else { return Ok(None) };
    let human = match body.digital_human_id.filter(|_| body.journey_step.is_some()) {
        Some(id) => db.find::<DigitalHumanSpec>(id).await?,
        None => None,
    };
    let step = human.as_ref().and_then(|human| human.doc.step(body.journey_step));
    Ok(Some(agent.doc.spec.met_in(step).into_owned()))
}

/// Returns the messages that have followed a call so far.
pub(crate) fn follow_up_messages(doc: &ResultDoc) -> Vec<Value> {
    let kept = doc.body.follow_up_sms.as_ref().and_then(|kept| kept.get("messages")).and_then(Value::as_array);
    kept.cloned().unwrap_or_default()
}
