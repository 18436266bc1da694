//! A written conversation that is to be held: its job, and what comes into it.

use ringer_base::error::Result;
use ringer_store::queue::{CallJob, Claimed};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::TextNews;
use crate::jobs::lease::LOOK_EVERY;
use crate::jobs::workshop::Workshop;

/// A job of a written conversation, with what it is done with.
pub(super) struct TextWork<'a> {
    pub workshop: &'a Workshop,
    pub claimed: &'a Claimed,
    pub job: &'a CallJob,
    pub stopping: &'a CancellationToken,
}

impl TextWork<'_> {
    /// Returns the messages and tool calls that have come after these counts, with the status of the result.
    pub(crate) async fn news(&self, messages: usize, calls: usize) -> Result<TextNews> {
        self.workshop.service.runs().text_news(&self.job.organization, self.job.result_id, messages, calls).await
    }
}

/// Waits until something may have come into a conversation; another process tells nobody.
pub(super) async fn wait_for_change(changes: &mut Option<watch::Receiver<u64>>) {
    let change = async {
        let is_changed = match changes {
            Some(changes) => changes.changed().await.is_ok(),
            None => false,
        };
        if !is_changed {
            std::future::pending::<()>().await;
        }
    };
    let _ = tokio::time::timeout(LOOK_EVERY, change).await;
}
