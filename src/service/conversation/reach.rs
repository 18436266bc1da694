//! Conversations wherever they run: in this process, or in another engine that shares the database.

use std::sync::Arc;

use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_store::EngineRow;
use ringer_store::events::{Feed, FeedEvent};

use super::Conversations;
use super::relay::holder_of;

impl Conversations {
    /// Asks the conversation of a result to end, wherever it runs. False: none runs.
    ///
    /// # Errors
    /// [`Error::NotReachable`]: it runs on an engine that cannot be reached.
    pub(crate) async fn hang_up(&self, result_id: i64, reason: EndReason) -> Result<bool> {
        if self.live.hangup(result_id, reason) {
            return Ok(true);
        }
        let Some(engine) = holder_of(&self.store, result_id).await? else { return Ok(false) };
        match self.live.relay() {
            Some(relay) => relay.hang_up(&engine, result_id, reason).await,
            None => Err(without_bus(&engine)),
        }
    }

    /// Asks a conversation to end that is over already in the database. Where its engine cannot be reached, that one
    /// finds it so at its next step.
    pub(crate) async fn hang_up_cancelled(&self, result_id: i64, reason: EndReason) {
        match self.hang_up(result_id, reason).await {
            Ok(_) => {}
            Err(error @ Error::NotReachable(_)) => tracing::info!(result_id, %error, "a cancelled call rings on"),
            Err(error) => tracing::error!(result_id, %error, "a cancelled call could not be hung up"),
        }
    }

    /// Returns the events of a result as they happen, wherever that is; `None` when this process makes no calls.
    pub fn watch(&self, result_id: i64) -> Option<Arc<Feed>> {
        let feed = self.live.feed(result_id)?;
        if self.store.is_shared()
            && let Some(relay) = self.live.relay()
        {
            relay.watch(result_id, &feed);
        }
        Some(feed)
    }

    /// Checks that the events of a running conversation come to this engine.
    ///
    /// # Errors
    /// [`Error::NotReachable`]: it runs on another one, and there is no bus.
    pub async fn check_watchable(&self, result_id: i64) -> Result<()> {
        if self.live.holds(result_id) || self.live.relay().is_some() {
            return Ok(());
        }
        let holder = holder_of(&self.store, result_id).await?;
        holder.map_or(Ok(()), |engine| Err(without_bus(&engine)))
    }

    /// Returns the events so far of a running conversation, of which none has happened in this process.
    pub(crate) async fn events_elsewhere(&self, result_id: i64) -> Result<Vec<FeedEvent>> {
        let Some(engine) = holder_of(&self.store, result_id).await? else { return Ok(Vec::new()) };
        match self.live.relay() {
            Some(relay) => relay.events_at(&engine, result_id).await,
            None => Err(without_bus(&engine)),
        }
    }
}

/// Returns the refusal of what concerns a call of another engine where there is no bus.
fn without_bus(engine: &EngineRow) -> Error {
    Error::NotReachable(format!("The call runs on engine '{}'; set [bus] to reach it", engine.name))
}
