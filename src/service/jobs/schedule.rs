//! The job `schedule`: runs a simulation that is due.

use ringer_base::error::Result;
use ringer_store::queue::ScheduleJob;

use super::workshop::Workshop;

/// Runs what is due and puts the job of the next time.
pub(super) async fn run(workshop: Workshop, job: ScheduleJob) -> Result<()> {
    workshop.service.runs().run_schedule(&job).await
}
