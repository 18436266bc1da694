//! The job `follow_up`: grades the text messages that followed a call.

use ringer_base::error::Result;
use ringer_judge as judge;
use ringer_judge::{Material, NO_MODEL};
use ringer_store::queue::FollowUpJob;

use super::upkeep::Upkeep;
use crate::UsedBy;

const QUESTION: &str = "After the conversation the agent has sent the caller the text message that stands before it. Does that \
    message fulfil what is named under \"What the caller was to reach\"?";

pub(super) async fn run(upkeep: &Upkeep, job: &FollowUpJob) -> Result<()> {
    let Some(sent) = upkeep.service.evaluations().follow_up(job).await? else { return Ok(()) };
    let upkeep = &upkeep.counting(&upkeep.service.spending().account(UsedBy::Result(job.result_id)));
    let entries = sent.transcript.as_ref().map(|held| &held.entries[..]).unwrap_or_default();
    let (unheard, success_criteria) = (&sent.unheard[..], sent.success_criteria.as_str());
    let material = Material { entries, unheard, success_criteria, ..Material::default() };
    let grade = match upkeep.model.as_deref() {
        _ if sent.success_criteria.trim().is_empty() => Err("There are no success criteria".to_owned()),
        None => Err(NO_MODEL.to_owned()),
        Some(model) => {
            let material_text = format!("The text message:\n{}\n\n{}", sent.text, judge::conversation_text(material));
            judge::decide_of(QUESTION, material_text, model).await
        }
    };
    upkeep.service.evaluations().grade_follow_up(job, &sent, grade).await
}
