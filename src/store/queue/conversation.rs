//! Jobs that hold conversations: by voice or in writing, and their lane among those of a run.

use ringer_base::error::Result;
use ringer_model::simulation::SimulationSpec;

use super::{CallJob, Lane, TextJob};
use crate::Session;

impl Lane {
    /// Returns the lane of a run's conversations; `None` if its simulation does not limit them.
    pub fn of_run(run_id: i64, simulation: &SimulationSpec) -> Option<Lane> {
        simulation.concurrency().map(|limit| Lane { name: format!("run:{run_id}"), limit })
    }
}

impl Session {
    /// Stores the job that holds the conversation of a result, in writing or by voice.
    pub async fn put_conversation(
        &mut self,
        job: CallJob,
        written: bool,
        due_ms: i64,
        lane: Option<&Lane>,
    ) -> Result<()> {
        match written {
            true => self.put(&TextJob(job), due_ms, lane).await,
            false => self.put(&job, due_ms, lane).await,
        }
    }
}
