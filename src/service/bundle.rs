//! Definitions of a suite as files: declarative push and pull.

mod label_colours;
pub(super) mod pull;
pub(super) mod push;

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::post::Poster;
use ringer_store::Store;

use crate::humans::Humans;
use crate::library::Library;
use crate::runs::Runs;
use crate::{Handles, Settings};

/// Definitions of a suite, pushed and pulled.
pub struct Bundles {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    poster: Arc<Poster>,
    library: Arc<Library>,
    humans: Arc<Humans>,
    runs: Arc<Runs>,
}

impl Bundles {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles, library: &Arc<Library>, humans: &Arc<Humans>, runs: &Arc<Runs>) -> Bundles {
        Bundles {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            poster: handles.poster.clone(),
            library: library.clone(),
            humans: humans.clone(),
            runs: runs.clone(),
        }
    }
}
