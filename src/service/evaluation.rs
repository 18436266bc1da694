//! Evaluations of results and of production calls: their material, their records, and deadlines.

pub(super) mod call_logs;
pub(super) mod cards;
pub(super) mod follow_up;
pub(super) mod inputs;
pub(super) mod material;
pub(super) mod overdue;
pub(super) mod records;
pub(super) mod review;
pub(super) mod trust;
pub(super) mod yielding;

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::post::Poster;
use ringer_provider::LanguageModel;
use ringer_store::Store;

use crate::conversation::Conversations;
use crate::library::Library;
use crate::outbox::Outbox;
use crate::{Handles, LiveCalls, Settings};

/// Evaluations of results and of production calls.
pub struct Evaluations {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    poster: Arc<Poster>,
    outbox: Arc<Outbox>,
    library: Arc<Library>,
    conversations: Arc<Conversations>,
    model: Option<Arc<dyn LanguageModel>>,
}

impl Evaluations {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(
        handles: &Handles,
        outbox: &Arc<Outbox>,
        library: &Arc<Library>,
        conversations: &Arc<Conversations>,
    ) -> Evaluations {
        Evaluations {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            live: handles.live.clone(),
            poster: handles.poster.clone(),
            outbox: outbox.clone(),
            library: library.clone(),
            conversations: conversations.clone(),
            model: handles.model.clone(),
        }
    }
}
