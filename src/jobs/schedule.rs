//! The job `schedule`: runs a simulation that is due.

use super::workshop::Workshop;
use crate::error::Result;
use crate::queue::ScheduleJob;

/// Runs what is due and puts the job of the next time.
pub(super) async fn run(workshop: Workshop, job: ScheduleJob) -> Result<()> {
    workshop.service.runs().run_schedule(&job).await
}
