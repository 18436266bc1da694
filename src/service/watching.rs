//! Monitors, alerts, issues, notifications and webhooks.

pub(super) mod alerts;
pub(super) mod finished;
pub(super) mod issues;
pub(super) mod monitors;
pub(super) mod notify;
pub(super) mod webhooks;

use std::sync::Arc;

use crate::clock::Clock;
use crate::provider::post::Poster;
use crate::service::conversation::Conversations;
use crate::service::outbox::Outbox;
use crate::service::runs::Runs;
use crate::service::{Handles, LiveCalls, Settings};
use crate::store::Store;

/// Monitors, alerts, issues, notifications and webhooks.
pub struct Watching {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    poster: Arc<Poster>,
    outbox: Arc<Outbox>,
    conversations: Arc<Conversations>,
    runs: Arc<Runs>,
}

impl Watching {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(
        handles: &Handles,
        outbox: &Arc<Outbox>,
        conversations: &Arc<Conversations>,
        runs: &Arc<Runs>,
    ) -> Watching {
        Watching {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            live: handles.live.clone(),
            poster: handles.poster.clone(),
            outbox: outbox.clone(),
            conversations: conversations.clone(),
            runs: runs.clone(),
        }
    }
}
