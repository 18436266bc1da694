//! Rule of Digital Humans that can be called at any time: one of their simulations is always on.

use ringer_base::error::{Error, Result};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::simulation::SimulationSpec;
use ringer_store::{Row, Session};

use crate::Caller;
use crate::library::Library;

impl Library {
    /// Stops Digital Humans from listening that were taken out of their last always-on simulation.
    pub(crate) async fn silence(
        &self,
        db: &mut Session,
        caller: &Caller,
        humans: Vec<Row<DigitalHumanSpec>>,
    ) -> Result<()> {
        for mut human in humans.into_iter().filter(|human| human.doc.listens_on().is_some()) {
            let simulations = db.simulations_of(human.id).await?;
            if !is_one_always_on(db, &simulations).await? {
                human.doc.always_on_active = Some(false);
                db.update(human.id, &human.doc, self.clock.now_ms(), Some(caller.author())).await?;
            }
        }
        Ok(())
    }
}

/// Refuses a Digital Human that is to be always on and whose simulations, these, are not.
pub(crate) async fn check_always_on(db: &mut Session, human: &DigitalHumanSpec, simulations: &[i64]) -> Result<()> {
    if human.always_on_mode && !is_one_always_on(db, simulations).await? {
        return Err(Error::Refused("Simulation is not an always-on simulation".into()));
    }
    Ok(())
}

/// Checks several Digital Humans as [`check_always_on`] does, with their present simulations.
pub(crate) async fn check_all_always_on(db: &mut Session, humans: &[Row<DigitalHumanSpec>]) -> Result<()> {
    for human in humans.iter().filter(|human| human.doc.always_on_mode) {
        let simulations = db.simulations_of(human.id).await?;
        check_always_on(db, &human.doc, &simulations).await?;
    }
    Ok(())
}

/// True if one of these simulations is always on.
pub(crate) async fn is_one_always_on(db: &mut Session, simulations: &[i64]) -> Result<bool> {
    for simulation in simulations {
        if db.get::<SimulationSpec>(*simulation).await?.doc.always_on {
            return Ok(true);
        }
    }
    Ok(false)
}
