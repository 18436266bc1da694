//! The job `alert`: looks whether an alert in alarm still is.

use super::upkeep::Upkeep;
use crate::error::Result;
use crate::queue::AlertJob;

pub(super) async fn run(upkeep: &Upkeep, job: &AlertJob) -> Result<()> {
    upkeep.service.watching().look_at_alert(job).await
}
