//! Services and settings that the jobs share.

use std::sync::Arc;

use ringer_base::config::{Retention, Sources};
use ringer_engine::Engine;
use ringer_media::measure::{ProbeTimes, YieldTimes};
use ringer_model::Object;
use ringer_provider::LanguageModel;
use serde_json::json;

use crate::{Placer, Running, Service};

/// Services and settings that jobs work with.
#[derive(Clone)]
pub struct Workshop {
    /// Service with the product's rules.
    pub service: Service,
    /// Engine that makes the calls.
    pub engine: Engine,
    /// The calls that run.
    pub running: Arc<Running>,
    /// Placer that turns results into calls.
    pub placer: Arc<Placer>,
    /// Agent words that only fill time, beside the built-in ones.
    pub fillers: Arc<[String]>,
    /// Times by which probes count, and by which an agent counts as stopped.
    pub probe_times: ProbeTimes,
    /// Times by which an agent counts as yielding.
    pub yield_times: YieldTimes,
    /// Calls begun in one second.
    pub start_rate_per_s: f64,
    /// Times and sizes up to which things are kept.
    pub retention: Retention,
    /// Sources that may call in.
    pub inbound_allow: Sources,
    /// Model that judges sound; `None`: sound is not judged.
    pub ear: Option<Arc<dyn LanguageModel>>,
}

impl Workshop {
    /// Adds the name of the recognizer to the notes of a call.
    pub(super) fn with_ears(&self, mut notes: Object) -> Object {
        notes.extend(self.engine.recognizer().model().map(|model| ("recognizer".to_owned(), json!(model))));
        notes
    }
}
