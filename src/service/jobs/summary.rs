//! The job `summary`: has a language model sum a run up. Where it cannot, the counters stay.

use ringer_base::error::Result;
use ringer_judge as judge;
use ringer_store::queue::SummaryJob;

use super::upkeep::Upkeep;

pub(super) async fn run(upkeep: &Upkeep, job: &SummaryJob) -> Result<()> {
    let Some(model) = upkeep.model.as_deref() else { return Ok(()) };
    let Some(told) = upkeep.service.runs().run_to_sum_up(job).await? else { return Ok(()) };
    match judge::sum_up(told.text.clone(), model).await {
        Ok(summary) => upkeep.service.runs().keep_summary(job, &told, summary).await,
        Err(why) => {
            tracing::warn!(run_id = job.run_id, why, "failed to summarize a run; its counters stay its summary");
            Ok(())
        }
    }
}
