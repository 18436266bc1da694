//! Resources that users create, read, change and delete, and the rules on their fields.

pub(super) mod agents;
pub(super) mod communities;
pub(super) mod customers;
pub(super) mod field_rules;
pub(super) mod folders;
pub(super) mod human_rules;
pub(super) mod keys;
pub(super) mod labels;
pub(super) mod limits;
pub(super) mod lists;
pub(super) mod metrics;
pub(super) mod names;
pub(super) mod noises;
pub(super) mod page_key;
pub(super) mod page_link;
pub(super) mod phone_numbers;
pub(super) mod sample;
pub(super) mod simulations;
pub(super) mod versions;

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::post::Poster;
use ringer_store::Store;

use crate::outbox::Outbox;
use crate::{Handles, Settings};

/// Resources that users create, read, change and delete.
pub struct Library {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    poster: Arc<Poster>,
    outbox: Arc<Outbox>,
}

impl Library {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles, outbox: &Arc<Outbox>) -> Library {
        Library {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            poster: handles.poster.clone(),
            outbox: outbox.clone(),
        }
    }
}
