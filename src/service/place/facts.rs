//! Facts of the Digital Human of a result, with what was invented of them for its conversation.

use ringer_media::seed::Seed;

use crate::error::Result;
use crate::model::digital_human::{DigitalHumanSpec, Trait};
use crate::model::result::ResultDoc;
use crate::model::run::RunDoc;
use crate::service::generate::{bound, is_invented};
use crate::service::runs::{result_seed, seed_key};
use crate::store::Session;

/// Draws who the Digital Human of a result is: in all steps of a journey the same person.
pub(super) fn identity(result: &ResultDoc, key: &str, run_seed: i64) -> Seed {
    match result.body.journey_step {
        Some(_) => result_seed(Seed(run_seed as u64), key, result.repetition, Some(1)),
        None => Seed(result.body.seed as u64),
    }
}

/// Returns the facts of the Digital Human of a result, as its conversation has them; none when it was deleted.
pub(in crate::service) async fn facts(db: &mut Session, result: &ResultDoc) -> Result<Vec<Trait>> {
    let Some(id) = result.body.digital_human_id else { return Ok(Vec::new()) };
    let Some(human) = db.find::<DigitalHumanSpec>(id).await? else { return Ok(Vec::new()) };
    as_held(db, result, human.doc.traits).await
}

/// Returns the facts with what was invented of them for this conversation.
pub(in crate::service) async fn as_held(
    db: &mut Session,
    result: &ResultDoc,
    traits: Vec<Trait>,
) -> Result<Vec<Trait>> {
    let is_open = traits.iter().any(|fact| is_invented(&fact.value));
    let Some(id) = result.body.digital_human_id.filter(|_| is_open) else { return Ok(traits) };
    let run = db.get::<RunDoc>(result.body.simulation_run_id).await?;
    let human = db.find::<DigitalHumanSpec>(id).await?;
    let key = human.map_or_else(|| id.to_string(), |human| seed_key(&human));
    Ok(bound(traits, identity(result, &key, run.doc.seed)))
}
