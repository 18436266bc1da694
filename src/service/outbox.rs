//! Events for webhooks, notices and follow-up jobs, each written in the transaction of the change that it follows from.
//! Runs and monitors are changed by a note that they were told of, and by nothing else here.

pub(super) mod addresses;
mod events;
mod incidents;
pub(super) mod notices;

use std::sync::Arc;

use ringer_base::clock;
use ringer_base::clock::Clock;
use ringer_base::error::Result;
use ringer_model::issue::SourceKind;
use ringer_store::Session;
use ringer_store::queue::{FinishedJob, SummaryJob};

use crate::{Handles, LiveCalls, Settings};

/// Writer of what follows from a change, in its transaction.
pub struct Outbox {
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    /// True if a language model writes summaries.
    has_model: bool,
}

impl Outbox {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles) -> Outbox {
        Outbox {
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            live: handles.live.clone(),
            has_model: handles.model.is_some(),
        }
    }

    /// Asks for the job that shows a finished conversation to monitors, issues and alerts, once for each evaluation.
    pub(crate) async fn announce_finished(
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
    pub(crate) async fn ask_for_summary(&self, db: &mut Session, run_id: i64) -> Result<()> {
        if !self.has_model {
            return Ok(());
        }
        let (organization, serial) = (db.organization().to_owned(), clock::new_id());
        db.put(&SummaryJob { organization, run_id, serial }, self.clock.now_ms(), None).await
    }
}
