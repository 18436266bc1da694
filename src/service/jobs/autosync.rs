//! The job `autosync`: lets an agent follow its platform's definition.

use ringer_base::error::Result;
use ringer_store::queue::AutosyncJob;

use super::workshop::Workshop;

/// Looks at one agent.
pub(super) async fn run(workshop: Workshop, job: AutosyncJob) -> Result<()> {
    workshop.service.runs().autosync(&job).await.map(drop)
}
