//! `[language_model]`, `[audio_model]`, `[language_models.NAME]` and `[audio_models.NAME]`: servers with the
//! chat-completions API.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Config, Secret, Source};

/// Fields of each section.
const FIELDS: [&str; 8] =
    ["base_url", "api_key", "model", "max_tokens", INPUT_PRICE, OUTPUT_PRICE, "max_per_minute", "max_usd_per_day"];
const INPUT_PRICE: &str = "usd_per_million_input_tokens";
const OUTPUT_PRICE: &str = "usd_per_million_output_tokens";
/// Largest price of a million tokens, and largest budget of a day, in USD.
const USD_MAX: f64 = 1e6;

/// Settings of one model. Off without `base_url`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LanguageModel {
    /// Base address, for example `http://127.0.0.1:11434/v1`.
    pub base_url: Option<String>,
    /// Bearer token; `None`: none is sent.
    pub api_key: Option<Secret>,
    /// Name of the model; needed with `base_url`.
    pub model: Option<String>,
    /// Most tokens of each answer; a model that reasons first needs thousands. `None`: a few for each word that is
    /// wanted.
    pub max_tokens: Option<u32>,
    /// Price of a million tokens that the model reads, in USD; `None`: it is not known.
    pub usd_per_million_input_tokens: Option<f64>,
    /// Price of a million tokens that the model writes, in USD; `None`: it is not known.
    pub usd_per_million_output_tokens: Option<f64>,
    /// Most requests of this engine within a minute; `None`: no limit.
    pub max_per_minute: Option<u32>,
    /// Budget of a day (UTC) in USD, over all engines of one database; `None`: no limit.
    pub max_usd_per_day: Option<f64>,
}

impl LanguageModel {
    fn read_part(&mut self, part: &str, from: &mut Source) {
        from.maybe_text(&format!("{part}.base_url"), &mut self.base_url);
        from.secret(&format!("{part}.api_key"), &mut self.api_key);
        from.maybe_text(&format!("{part}.model"), &mut self.model);
        let mut tokens = self.max_tokens.unwrap_or(0);
        from.whole(&format!("{part}.max_tokens"), 1..=1_000_000, &mut tokens);
        self.max_tokens = Some(tokens).filter(|tokens| *tokens > 0);
        if self.base_url.is_some() && self.model.is_none() {
            from.refuse(format!("{part}.model is missing: {part}.base_url is set"));
        }
        self.read_limits(part, from);
    }

    fn read_limits(&mut self, part: &str, from: &mut Source) {
        let key = |field: &str| format!("{part}.{field}");
        from.maybe_number(&key(INPUT_PRICE), 0.0..=USD_MAX, &mut self.usd_per_million_input_tokens);
        from.maybe_number(&key(OUTPUT_PRICE), 0.0..=USD_MAX, &mut self.usd_per_million_output_tokens);
        from.maybe_whole(&key("max_per_minute"), 1..=100_000, &mut self.max_per_minute);
        from.maybe_number(&key("max_usd_per_day"), 0.0..=USD_MAX, &mut self.max_usd_per_day);
        for (field, price) in
            [(INPUT_PRICE, self.usd_per_million_input_tokens), (OUTPUT_PRICE, self.usd_per_million_output_tokens)]
        {
            if self.max_usd_per_day.is_some() && price.is_none() {
                from.refuse(format!("{part}.{field} is missing: {part}.max_usd_per_day is set"));
            }
        }
    }
}

impl Config {
    /// Reads the models; further ones need a default and their address.
    pub(super) fn read_models(&mut self, from: &mut Source) {
        self.language_model.read_part("language_model", from);
        self.audio_model.read_part("audio_model", from);
        self.language_models = read_named("language_model", &self.language_model, from);
        self.audio_models = read_named("audio_model", &self.audio_model, from);
        self.judge.read(from, &self.language_models, self.language_model.base_url.is_some());
    }
}

fn read_named(default: &str, main: &LanguageModel, from: &mut Source) -> BTreeMap<String, LanguageModel> {
    let mut models = BTreeMap::new();
    let section = format!("{default}s");
    for name in from.names_below(&section, &FIELDS) {
        let part = format!("{section}.{name}");
        let mut model = LanguageModel::default();
        model.read_part(&part, from);
        if name == "default" {
            from.refuse(format!("{part}: the default model is set in [{default}]"));
        }
        if model.base_url.is_none() {
            from.refuse(format!("{part}.base_url is missing"));
        }
        if main.base_url.is_none() {
            from.refuse(format!("{part} needs a default: {default}.base_url is not set"));
        }
        models.insert(name, model);
    }
    models
}
