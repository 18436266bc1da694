//! The job `finished`: what follows a conversation that is finished and evaluated.

use ringer_base::error::Result;
use ringer_judge as judge;
use ringer_judge::Material;
use ringer_model::issue::SourceKind;
use ringer_store::queue::FinishedJob;

use super::upkeep::Upkeep;
use crate::UsedBy;

const QUESTION: &str = "Did the agent say that something of its own does not work: an error, a fault, a system that is down, a \
    service that cannot be reached? That it refuses, does not know something or cannot help with a wish is no such thing.";

pub(super) async fn run(upkeep: &Upkeep, job: &FinishedJob) -> Result<()> {
    let owner = match job.source {
        SourceKind::Simulation => job.source_id.parse().map_or(UsedBy::Nobody, UsedBy::Result),
        _ => UsedBy::Nobody,
    };
    let upkeep = &upkeep.counting(&upkeep.service.spending().account(owner));
    let told_error = match (upkeep.model.as_deref(), upkeep.service.watching().asked_for_errors(job).await?) {
        (Some(model), Some((held, unheard))) => {
            let material = Material { entries: &held.entries, unheard: &unheard, ..Material::default() };
            let decision = judge::decide(QUESTION, material, model).await;
            decision
                .inspect_err(|why| {
                    tracing::warn!(why, "agent malfunction judged by phrases: the language model failed")
                })
                .ok()
        }
        _ => None,
    };
    upkeep.service.watching().look_at_finished(job, told_error.as_ref()).await
}
