//! Monitors, alerts, issues, notifications and webhooks.

pub(super) mod alerts;
pub(super) mod finished;
pub(super) mod issues;
pub(super) mod monitors;
pub(super) mod notify;
pub(super) mod webhooks;

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::post::Poster;
use ringer_store::Store;

use crate::conversation::Conversations;
use crate::outbox::Outbox;
use crate::runs::Runs;
use crate::{Handles, Settings};

/// Monitors, alerts, issues, notifications and webhooks.
pub struct Watching {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
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
            poster: handles.poster.clone(),
            outbox: outbox.clone(),
            conversations: conversations.clone(),
            runs: runs.clone(),
        }
    }
}
