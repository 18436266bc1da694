//! Digital Humans, scenarios and metrics that are drafted from templates or by a language model.

pub(super) mod drafting;
pub(super) mod drafts;
pub(super) mod generate;

use std::sync::Arc;

use ringer_base::error::{Error, Result};
use ringer_provider::LanguageModel;
use ringer_store::Store;

use crate::humans::Humans;
use crate::{Handles, Settings};

/// Digital Humans, scenarios and metrics that are drafted.
pub struct Generation {
    store: Store,
    settings: Arc<Settings>,
    model: Option<Arc<dyn LanguageModel>>,
    humans: Arc<Humans>,
}

impl Generation {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles, humans: &Arc<Humans>) -> Generation {
        Generation {
            store: handles.store.clone(),
            settings: handles.settings.clone(),
            model: handles.model.clone(),
            humans: humans.clone(),
        }
    }

    /// Returns the language model; an error if none is configured.
    fn model(&self) -> Result<Arc<dyn LanguageModel>> {
        self.model.clone().ok_or_else(|| Error::Unavailable("Language model is not configured".into()))
    }
}
