//! Use and cost of language models.

use schemars::JsonSchema;
use serde::Serialize;

use super::language_model::ModelKind;

/// Use of one model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelUse {
    /// Name that the settings give the model; `default`: the one that is asked unless another one is named.
    pub name: String,
    /// Work of the model.
    pub kind: ModelKind,
    /// Name of the model at its server.
    pub model: String,
    /// Number of requests to the model.
    pub requests: i64,
    /// Number of requests whose tokens are not known: the server did not tell them, or the answer was given up before.
    /// Tokens and cost are those of the others.
    pub unreported_requests: i64,
    /// Tokens that the model has read; null: its server told none.
    pub input_tokens: Option<i64>,
    /// Tokens that the model has written; null: its server told none.
    pub output_tokens: Option<i64>,
    /// Cost in USD; null: tokens or prices are not known.
    pub cost_usd: Option<f64>,
}

/// Use of language models.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelUsage {
    /// Tokens that all models have read; null: those of a model are not known.
    pub input_tokens: Option<i64>,
    /// Tokens that all models have written; null: those of a model are not known.
    pub output_tokens: Option<i64>,
    /// Cost of all models in USD; null: that of a model is not known.
    pub cost_usd: Option<f64>,
    /// Use of each model.
    pub models: Vec<ModelUse>,
}
