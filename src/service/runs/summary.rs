//! Summary of a complete run by a language model, in the place of its counters.

use std::fmt::Write as _;

use ringer_base::error::Result;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultBody;
use ringer_model::run::RunDoc;
use ringer_store::Owner;
use ringer_store::queue::SummaryJob;

use super::Runs;

/// Conversations of a run that a model is told of.
const RESULTS_MOST: usize = 100;

/// Facts about a run for the language model that summarises it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Text for the model's prompt.
    pub text: String,
    /// The counters as they were.
    counted: Option<String>,
}

impl Runs {
    /// Returns the facts about a run to summarise; `None` if the run is deleted or not complete.
    pub async fn run_to_sum_up(&self, job: &SummaryJob) -> Result<Option<RunSummary>> {
        let mut db = self.store.org(&job.organization).read().await?;
        let Some(run) = db.find::<RunDoc>(job.run_id).await? else { return Ok(None) };
        if run.doc.completed_at.is_none() || db.has_open_results(Owner::Run, job.run_id).await? {
            return Ok(None);
        }
        let counted = run.doc.counted;
        let mut text = counted.clone().unwrap_or_default();
        let results = db.results_of_run(job.run_id).await?;
        if results.len() > RESULTS_MOST {
            let _ = write!(text, "\nThe first {RESULTS_MOST}:");
        }
        for row in results.into_iter().take(RESULTS_MOST) {
            let human = match row.doc.body.digital_human_id {
                Some(id) => db.find::<DigitalHumanSpec>(id).await?,
                None => None,
            };
            let name = human.and_then(|human| human.doc.name).unwrap_or_else(|| "A caller".to_owned());
            let _ = write!(text, "\n- {name}: {}", describe_result(&row.doc.body));
        }
        Ok(Some(RunSummary { text, counted }))
    }

    /// Keeps the summary of a run, unless its counters are others by now.
    pub async fn keep_summary(&self, job: &SummaryJob, summed_up: &RunSummary, summary: String) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut run) = db.find::<RunDoc>(job.run_id).await? else { return Ok(()) };
        if run.doc.counted != summed_up.counted {
            return Ok(());
        }
        run.doc.summary = Some(summary);
        db.update(run.id, &run.doc, self.clock.now_ms(), None).await?;
        db.commit().await
    }
}

/// Returns verdict, error, reasoning and summary of one conversation, joined by semicolons.
fn describe_result(body: &ResultBody) -> String {
    let mut parts = vec![body.word().map_or(body.status.as_str(), |word| word.as_str()).to_owned()];
    parts.extend(body.error_code.iter().map(ErrorCode::to_string).chain(body.error_message.clone()));
    if let Some(evaluation) = body.evaluations.first() {
        let reasons = [&evaluation.goal_reasoning, &evaluation.call_summary];
        parts.extend(reasons.into_iter().flatten().cloned());
    }
    parts.join("; ")
}
