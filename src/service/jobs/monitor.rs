//! The jobs `monitor` and `check`: begin a check of a monitor that is due, and give up one that takes too long.

use ringer_base::error::Result;
use ringer_store::queue::{CheckJob, MonitorJob};

use super::upkeep::Upkeep;

pub(super) async fn begin(upkeep: &Upkeep, job: &MonitorJob) -> Result<()> {
    upkeep.service.watching().begin_check(job).await
}

pub(super) async fn give_up(upkeep: &Upkeep, job: &CheckJob) -> Result<()> {
    upkeep.service.watching().give_check_up(job).await
}
