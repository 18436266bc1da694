//! The job `autosync`: lets an agent follow its platform's definition.

use super::workshop::Workshop;
use crate::error::Result;
use crate::queue::AutosyncJob;

/// Looks at one agent.
pub(super) async fn run(workshop: Workshop, job: AutosyncJob) -> Result<()> {
    workshop.service.runs().autosync(&job).await.map(drop)
}
