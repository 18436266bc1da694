//! What follows from a change and is written in its transaction: events for webhooks, notices, and jobs that look at it.
//! It changes no result, run or resource beyond what it has told.

pub(super) mod addresses;
mod events;
mod incidents;
pub(super) mod notices;

use crate::clock;
use crate::error::Result;
use crate::model::issue::SourceKind;
use crate::queue::{FinishedJob, SummaryJob};
use crate::service::Service;
use crate::store::Session;

impl Service {
    /// Asks for the job that shows a finished conversation to monitors, issues and alerts, once for each evaluation.
    pub(in crate::service) async fn announce_finished(
        &self,
        db: &mut Session,
        source: SourceKind,
        source_id: impl ToString,
    ) -> Result<()> {
        let now = self.clock.now_ms();
        let organization = db.organization().to_owned();
        let job = FinishedJob { organization, source, source_id: source_id.to_string(), serial: now };
        db.put(&job, now, None).await
    }

    /// Asks for the summary of a complete run, if there is a language model to write it.
    pub(in crate::service) async fn ask_for_summary(&self, db: &mut Session, run_id: i64) -> Result<()> {
        if self.model.is_none() {
            return Ok(());
        }
        let (organization, serial) = (db.organization().to_owned(), clock::new_id());
        db.put(&SummaryJob { organization, run_id, serial }, self.clock.now_ms(), None).await
    }
}
