//! `[judge]`: the panel that judges words, and the rates from which on a judge is proven.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{LanguageModel, Source, nearest};

/// Name of the default language model.
const DEFAULT: &str = "default";

/// Settings of the section `[judge]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judge {
    /// Least share of the conversations labelled true that a proven judge calls true, 0 to 1.
    pub least_tpr: f64,
    /// Least share of the conversations labelled false that a proven judge calls false, 0 to 1.
    pub least_tnr: f64,
    /// Names of the language models that judge together, two or more; empty: the default one judges alone.
    pub panel: Vec<String>,
}

impl Default for Judge {
    fn default() -> Judge {
        Judge { least_tpr: 0.8, least_tnr: 0.9, panel: Vec::new() }
    }
}

impl Judge {
    /// Reads the section; `models` are the further language models by name.
    pub(super) fn read(&mut self, from: &mut Source, models: &BTreeMap<String, LanguageModel>, has_default: bool) {
        from.number("judge.least_tpr", 0.0..=1.0, &mut self.least_tpr);
        from.number("judge.least_tnr", 0.0..=1.0, &mut self.least_tnr);
        from.list("judge.panel", &mut self.panel);
        let known = || has_default.then_some(DEFAULT).into_iter().chain(models.keys().map(String::as_str));
        for (at, name) in self.panel.iter().enumerate() {
            if self.panel[..at].contains(name) {
                from.refuse(format!("judge.panel: {name:?} is in it twice"));
            } else if !known().any(|known| known == name) {
                let near = nearest(name, known());
                from.refuse(format!("judge.panel: {name:?} is no language model of [language_models]{near}"));
            }
        }
        if self.panel.len() == 1 {
            from.refuse("judge.panel: one model is no panel; name two or more".to_owned());
        }
    }
}
