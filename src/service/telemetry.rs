//! Traces: those of conversations, which are sent to a collector, and the spans of agents, which are kept with results.

mod agent_spans;
mod sending;
mod tree;

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_store::Store;

pub use self::agent_spans::{SpansAdded, TracesTaken};
pub(crate) use self::sending::SpanQueue;
pub use self::sending::TraceCounts;
use crate::{Handles, Settings};

/// Traces of conversations, and spans of agents.
pub struct Telemetry {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    outgoing: Arc<SpanQueue>,
}

impl Telemetry {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles) -> Telemetry {
        Telemetry {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            outgoing: handles.outgoing.clone(),
        }
    }
}
