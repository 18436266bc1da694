//! The job `alert`: looks whether an alert in alarm still is.

use ringer_base::error::Result;
use ringer_store::queue::AlertJob;

use super::upkeep::Upkeep;

pub(super) async fn run(upkeep: &Upkeep, job: &AlertJob) -> Result<()> {
    upkeep.service.watching().look_at_alert(job).await
}
