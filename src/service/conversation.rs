//! One conversation of a result: its states, addresses, settings, files and privacy.

pub(super) mod after_call;
pub(super) mod agent_stream;
pub(super) mod artifacts;
pub(super) mod commands;
pub(super) mod earlier;
pub(super) mod ended;
pub(super) mod facts;
pub(super) mod held;
pub(super) mod inbound_address;
pub(super) mod lifecycle;
pub(super) mod live;
pub(super) mod mail_thread;
pub(super) mod model_budget;
pub(super) mod obstacle;
pub(super) mod organization_limits;
pub(super) mod outcome;
pub(super) mod peaks;
pub(super) mod privacy;
pub(super) mod reach;
pub(super) mod relay;
pub(super) mod rerun;
pub(super) mod snapshot;
pub(super) mod storing;
pub(super) mod stream_address;
pub(super) mod trace_context;
pub(super) mod transcode;
pub(super) mod trigger;
pub(super) mod usage;
pub(super) mod user_part;
pub(super) mod verdict;
pub(super) mod waiting;

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_store::Store;

use crate::outbox::Outbox;
use crate::spending::ModelSpending;
use crate::{Handles, LiveCalls, Settings};

/// Conversations of results: states, addresses, records and privacy.
pub struct Conversations {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    outbox: Arc<Outbox>,
    spending: Arc<ModelSpending>,
}

impl Conversations {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles, outbox: &Arc<Outbox>) -> Conversations {
        Conversations {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            live: handles.live.clone(),
            outbox: outbox.clone(),
            spending: handles.spending.clone(),
        }
    }
}
