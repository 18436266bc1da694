//! The job `summary`: has a language model sum a run up. Where it cannot, the counters stay.

use ringer_base::error::Result;
use ringer_judge as judge;
use ringer_store::queue::SummaryJob;

use super::upkeep::Upkeep;
use crate::UsedBy;

pub(super) async fn run(upkeep: &Upkeep, job: &SummaryJob) -> Result<()> {
    let upkeep = &upkeep.counting(&upkeep.service.spending().account(UsedBy::Run(job.run_id)));
    let Some(model) = upkeep.model.as_deref() else { return Ok(()) };
    let Some(summed_up) = upkeep.service.runs().run_to_sum_up(job).await? else { return Ok(()) };
    match judge::sum_up(summed_up.text.clone(), model).await {
        Ok(summary) => upkeep.service.runs().keep_summary(job, &summed_up, summary).await,
        Err(why) => {
            tracing::warn!(run_id = job.run_id, why, "failed to summarize a run; its counters stay its summary");
            Ok(())
        }
    }
}
