//! Models that judge and speak, as they are listed.

use schemars::JsonSchema;
use serde::Serialize;

words! {
    /// Work of a model.
    ModelKind { Language = "language", Audio = "audio" } default Language
}

/// A model that is configured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelRecord {
    /// Name that metrics choose it by: `model` for language, `audio_model` for audio.
    pub name: String,
    /// Work of the model: it reads and writes, or judges by ear.
    pub kind: ModelKind,
    /// Name of the model at its server.
    pub model: String,
    /// True: the model that is asked unless another one is named.
    pub is_default: bool,
}
