//! Services and settings of the jobs that make no calls.

use std::sync::Arc;

use ringer_provider::account::counting_model;
use ringer_provider::{Account, LanguageModel, Recognizer};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::Service;

/// Recordings that are transcribed at once: the recognizer is that of the calls.
const TRANSCRIBED_AT_ONCE: usize = 1;

/// Services and settings that these jobs work with.
#[derive(Clone)]
pub struct Upkeep {
    /// Service with the product's rules.
    pub service: Service,
    /// Agent words that only fill time, beside the built-in ones.
    pub fillers: Arc<[String]>,
    /// Judges words, when there is one.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Gives words to recordings, when there is one.
    pub recognizer: Option<Arc<dyn Recognizer>>,
    /// Model that judges sound; `None`: sound is not judged.
    pub ear: Option<Arc<dyn LanguageModel>>,
    /// Most calls that are judged at the same time.
    pub judged_at_once: usize,
    /// Places of the recordings that are transcribed.
    pub transcribing: Arc<Semaphore>,
    /// No job is begun any more, and a recording that is transcribed is left for later.
    pub stopping: CancellationToken,
}

impl Upkeep {
    /// Returns jobs with the services alone: no model judges, and no recognizer listens.
    pub fn new(service: Service) -> Upkeep {
        Upkeep {
            service,
            fillers: Arc::new([]),
            model: None,
            recognizer: None,
            ear: None,
            judged_at_once: usize::MAX,
            transcribing: Arc::new(Semaphore::new(TRANSCRIBED_AT_ONCE)),
            stopping: CancellationToken::new(),
        }
    }

    /// Returns the same with models whose uses are entered into an account.
    pub(super) fn counting(&self, account: &Arc<Account>) -> Upkeep {
        let counting =
            |model: &Option<Arc<dyn LanguageModel>>| model.as_ref().map(|model| counting_model(model, account));
        Upkeep { model: counting(&self.model), ear: counting(&self.ear), ..self.clone() }
    }
}
