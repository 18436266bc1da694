//! Digital Humans, scenarios and metrics that are drafted from templates or by a language model.

pub(super) mod drafting;
pub(super) mod drafts;
pub(super) mod generate;
