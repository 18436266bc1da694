//! The job `finished`: what follows a conversation that is finished and evaluated.

use super::Upkeep;
use crate::error::Result;
use crate::queue::FinishedJob;

pub(super) async fn run(upkeep: &Upkeep, job: &FinishedJob) -> Result<()> {
    upkeep.service.look_at_finished(job).await
}
