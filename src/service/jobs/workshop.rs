//! Services and settings that the jobs share.

use std::sync::Arc;

use ringer_base::config::Sources;
use ringer_engine::Engine;
use ringer_media::measure::{ProbeTimes, YieldTimes};
use ringer_model::Object;
use ringer_provider::account::counting_model;
use ringer_provider::{Account, LanguageModel};
use ringer_store::EngineFacts;
use serde_json::json;

use super::judging::Judging;
use crate::{PlacementSettings, Running, Service};

/// Services and settings that jobs work with.
#[derive(Clone)]
pub struct Workshop {
    /// Service with the product's rules.
    pub service: Service,
    /// Engine that makes the calls.
    pub engine: Engine,
    /// The calls that run.
    pub running: Arc<Running>,
    /// Settings and providers that calls are placed with.
    pub placement_settings: Arc<PlacementSettings>,
    /// Agent words that only fill time, beside the built-in ones.
    pub fillers: Arc<[String]>,
    /// Times by which probes count, and by which an agent counts as stopped.
    pub probe_times: ProbeTimes,
    /// Times by which an agent counts as yielding.
    pub yield_times: YieldTimes,
    /// Calls begun in one second.
    pub start_rate_per_s: f64,
    /// Sources that may call in.
    pub inbound_allow: Sources,
    /// Model that judges sound; `None`: sound is not judged.
    pub ear: Option<Arc<dyn LanguageModel>>,
    /// Judgements that are under way.
    pub judging: Arc<Judging>,
}

impl Workshop {
    /// Returns the same with models whose uses are entered into an account.
    pub(super) fn counting(&self, account: &Arc<Account>) -> Workshop {
        let ear = self.ear.as_ref().map(|model| counting_model(model, account));
        Workshop { placement_settings: self.terms_counting(account), ear, ..self.clone() }
    }

    /// Returns what this engine tells others of itself.
    pub(super) fn facts(&self) -> EngineFacts {
        let settings = self.service.settings();
        EngineFacts {
            name: settings.engine.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: settings.own_url.clone(),
            sip: Some(self.engine.sip_address().to_string()),
            capacity: i64::try_from(self.engine.max_calls()).unwrap_or(i64::MAX),
            lease_ms: settings.lease_ms,
        }
    }

    /// Returns what the conversation of a result is placed with: uses of models by its caller count for the result.
    pub(super) fn terms_of(&self, result_id: i64) -> Arc<PlacementSettings> {
        self.terms_counting(&self.service.spending().account_of_conversation(result_id))
    }

    fn terms_counting(&self, account: &Arc<Account>) -> Arc<PlacementSettings> {
        let terms = &self.placement_settings;
        match &terms.model {
            Some(model) => {
                Arc::new(PlacementSettings { model: Some(counting_model(model, account)), ..(**terms).clone() })
            }
            None => terms.clone(),
        }
    }

    /// Adds the name of the recognizer to the notes of a call.
    pub(super) fn with_ears(&self, mut notes: Object) -> Object {
        notes.extend(self.engine.recognizer().model().map(|model| ("recognizer".to_owned(), json!(model))));
        notes
    }
}
