//! Uses and costs of language models: those of results and runs, and the sums of a day that budgets are checked
//! against. Uses are noted in memory and stored soon after, since whoever asks a model does not wait for a database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use ringer_base::clock::Clock;
use ringer_base::error::Result;
use ringer_model::language_model::ModelKind;
use ringer_model::model_usage::{ModelUsage, ModelUse};
use ringer_model::result::ResultDoc;
use ringer_model::time::Timestamp;
use ringer_provider::account::{Book, Use};
use ringer_provider::chat::Spending;
use ringer_provider::{Account, Job};
use ringer_store::{ModelSum, Row, Session, Store};
use serde_json::json;
use tokio::sync::Notify;

/// Name of the default model of each kind.
const DEFAULT: &str = "default";
/// Milliseconds after which uses are stored again that could not be.
const AGAIN_MS: i64 = 2000;
/// Billionths of a USD.
const NANO: f64 = 1e9;

/// Owner of uses of models.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedBy {
    /// A result: its conversation, and what is judged of it.
    Result(i64),
    /// A run itself: its summary.
    Run(i64),
    /// Neither: only what it costs in a day is kept.
    Nobody,
}

/// Uses of models, and their cost.
pub struct ModelSpending {
    store: Store,
    clock: Clock,
    noted: Mutex<Noted>,
    is_noted: Notify,
    /// Held while uses are stored: whoever stores after it finds them stored.
    storing: tokio::sync::Mutex<()>,
}

/// Uses that are not stored yet, summed up.
#[derive(Clone, Default)]
struct Noted {
    /// By owner, section and model.
    uses: BTreeMap<(UsedBy, String, String), ModelSum>,
    /// Billionths of a USD by section and day.
    days: BTreeMap<(String, String), i64>,
}

impl ModelSpending {
    /// Returns the uses of a store.
    pub(crate) fn new(store: &Store, clock: &Clock) -> Arc<ModelSpending> {
        let (store, clock) = (store.clone(), clock.clone());
        let (noted, is_noted, storing) = Default::default();
        Arc::new(ModelSpending { store, clock, noted, is_noted, storing })
    }

    /// Returns the account of what is judged or made for `owner`.
    pub fn account(self: &Arc<Self>, owner: UsedBy) -> Arc<Account> {
        Arc::new(Account::new(self.book(owner)))
    }

    /// Returns the account of the conversation of a result, which goes on though a budget is used up.
    pub fn account_of_conversation(self: &Arc<Self>, result_id: i64) -> Arc<Account> {
        Arc::new(Account::of_conversation(self.book(UsedBy::Result(result_id))))
    }

    fn book(self: &Arc<Self>, owner: UsedBy) -> Arc<dyn Book> {
        Arc::new(OwnersBook { spending: self.clone(), owner })
    }

    /// Stores uses as they are noted. It does not end.
    pub async fn keep_storing(&self) {
        loop {
            self.is_noted.notified().await;
            while let Err(error) = self.store_noted().await {
                tracing::error!(%error, "the use of language models could not be stored; it is tried again");
                self.clock.until(self.clock.now_ms() + AGAIN_MS).await;
            }
        }
    }

    /// Stores all uses that were noted so far.
    pub async fn store_noted(&self) -> Result<()> {
        let _storing = self.storing.lock().await;
        let noted = self.noted.lock().clone();
        if noted.uses.is_empty() && noted.days.is_empty() {
            return Ok(());
        }
        let mut db = self.store.system().await?;
        for ((owner, ..), sum) in &noted.uses {
            match owner {
                UsedBy::Result(id) => db.add_use_of_result(*id, sum).await?,
                UsedBy::Run(id) => db.add_use_of_run(*id, sum).await?,
                UsedBy::Nobody => {}
            }
        }
        for ((section, day), nano_usd) in &noted.days {
            db.add_cost(section, day, *nano_usd).await?;
        }
        db.commit().await?;
        // Until now they were in memory: a budget is never checked without them.
        self.noted.lock().take_away(&noted);
        Ok(())
    }

    /// Returns today's cost (UTC) of the model of a section, in billionths of a USD.
    pub(crate) async fn spent_today(&self, db: &mut Session, section: &str) -> Result<i64> {
        let day = self.today();
        let stored = db.cost_of_day(section, &day).await?;
        let noted = self.noted.lock().days.get(&(section.to_owned(), day)).copied().unwrap_or(0);
        Ok(stored + noted)
    }

    /// Returns the day in UTC, such as `2026-01-05`.
    fn today(&self) -> String {
        Timestamp(self.clock.now_ms()).to_string()[..10].to_owned()
    }
}

impl Noted {
    fn take_away(&mut self, stored: &Noted) {
        for (key, sum) in &stored.uses {
            if let Some(left) = self.uses.get_mut(key) {
                left.requests -= sum.requests;
                left.unreported -= sum.unreported;
                left.input_tokens -= sum.input_tokens;
                left.output_tokens -= sum.output_tokens;
                left.nano_usd = left.nano_usd.map(|nano| nano - sum.nano_usd.unwrap_or(0));
            }
        }
        self.uses.retain(|_, sum| sum.requests > 0);
        for (key, nano_usd) in &stored.days {
            if let Some(left) = self.days.get_mut(key) {
                *left -= nano_usd;
            }
        }
        self.days.retain(|_, nano_usd| *nano_usd != 0);
    }
}

impl Spending for ModelSpending {
    fn charge(&self, section: &str, nano_usd: i64) {
        *self.noted.lock().days.entry((section.to_owned(), self.today())).or_default() += nano_usd;
        self.is_noted.notify_one();
    }

    fn cost_today<'a>(&'a self, section: &'a str) -> Job<'a, Option<i64>> {
        Box::pin(async move {
            let mut db = self.store.org("").read().await.ok()?;
            self.spent_today(&mut db, section).await.ok()
        })
    }
}

/// Enters uses for one owner.
struct OwnersBook {
    spending: Arc<ModelSpending>,
    owner: UsedBy,
}

impl Book for OwnersBook {
    fn enter(&self, used: Use) {
        if self.owner == UsedBy::Nobody {
            return;
        }
        let Use { section, model, tokens, nano_usd } = used;
        let mut noted = self.spending.noted.lock();
        let sum = noted.uses.entry((self.owner, section.clone(), model.clone())).or_default();
        (sum.section, sum.model) = (section, model);
        sum.requests += 1;
        sum.unreported += i64::from(tokens.is_none());
        let tokens = tokens.unwrap_or_default();
        sum.input_tokens = sum.input_tokens.saturating_add_unsigned(tokens.input);
        sum.output_tokens = sum.output_tokens.saturating_add_unsigned(tokens.output);
        if let Some(nano_usd) = nano_usd {
            *sum.nano_usd.get_or_insert(0) += nano_usd;
        }
        self.spending.is_noted.notify_one();
    }
}

/// Returns the use of models as it is shown; `None`: none was used.
pub(crate) fn usage_of(sums: &[ModelSum]) -> Option<ModelUsage> {
    let models: Vec<ModelUse> = sums.iter().map(use_of).collect();
    let whole = |count: fn(&ModelUse) -> Option<i64>| models.iter().map(count).sum::<Option<i64>>();
    let (input_tokens, output_tokens) = (whole(|used| used.input_tokens), whole(|used| used.output_tokens));
    let nano: Option<i64> = sums.iter().map(|sum| sum.nano_usd).sum();
    let cost_usd = nano.map(|nano| nano as f64 / NANO);
    (!models.is_empty()).then_some(ModelUsage { input_tokens, output_tokens, cost_usd, models })
}

/// Returns the sums of several owners by model.
pub(crate) fn join_sums(sums: impl IntoIterator<Item = ModelSum>) -> Vec<ModelSum> {
    let mut by_model: BTreeMap<(String, String), ModelSum> = BTreeMap::new();
    for next in sums {
        let sum = by_model.entry((next.section.clone(), next.model.clone())).or_default();
        (sum.section, sum.model) = (next.section, next.model);
        sum.requests += next.requests;
        sum.unreported += next.unreported;
        sum.input_tokens += next.input_tokens;
        sum.output_tokens += next.output_tokens;
        if let Some(nano_usd) = next.nano_usd {
            *sum.nano_usd.get_or_insert(0) += nano_usd;
        }
    }
    by_model.into_values().collect()
}

/// Notes the use of language models in the metadata of a result.
pub(crate) fn note_usage(row: &mut Row<ResultDoc>, sums: &[ModelSum]) {
    if let Some(usage) = usage_of(sums) {
        row.doc.note("usage", json!(usage));
    }
}

/// Notes the uses of language models in the metadata of the results that they belong to.
pub(crate) fn note_usages(results: &mut [Row<ResultDoc>], uses: &[(i64, ModelSum)]) {
    let mut by_result: HashMap<i64, Vec<ModelSum>> = HashMap::new();
    for (result_id, sum) in uses {
        by_result.entry(*result_id).or_default().push(sum.clone());
    }
    results.iter_mut().for_each(|row| note_usage(row, by_result.get(&row.id).map_or(&[], Vec::as_slice)));
}

fn use_of(sum: &ModelSum) -> ModelUse {
    let (section, name) = sum.section.split_once('.').unwrap_or((&sum.section, DEFAULT));
    let is_told = sum.requests > sum.unreported;
    ModelUse {
        name: name.to_owned(),
        kind: if section.starts_with("audio") { ModelKind::Audio } else { ModelKind::Language },
        model: sum.model.clone(),
        requests: sum.requests,
        unreported_requests: sum.unreported,
        input_tokens: is_told.then_some(sum.input_tokens),
        output_tokens: is_told.then_some(sum.output_tokens),
        cost_usd: sum.nano_usd.map(|nano| nano as f64 / NANO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(section: &str, unreported: i64, nano_usd: Option<i64>) -> ModelSum {
        let (section, model) = (section.to_owned(), "m".to_owned());
        ModelSum { section, model, requests: 2, unreported, input_tokens: 30, output_tokens: 4, nano_usd }
    }

    #[test]
    fn what_is_not_known_of_one_model_is_not_known_of_all() {
        assert_eq!(usage_of(&[]), None);
        for (sums, expect) in [
            (vec![sum("language_model", 0, Some(2_000_000))], (Some(30), Some(0.002))),
            (vec![sum("language_model", 1, Some(2_000_000))], (Some(30), Some(0.002))),
            (vec![sum("language_model", 0, None)], (Some(30), None)),
            (vec![sum("language_model", 2, None)], (None, None)),
            (vec![sum("language_model", 0, Some(1)), sum("audio_models.ear", 2, None)], (None, None)),
            (
                vec![sum("language_model", 0, Some(1_000)), sum("audio_model", 0, Some(1_000))],
                (Some(60), Some(0.000_002)),
            ),
        ] {
            let usage = usage_of(&sums).expect("a model was used");
            assert_eq!((usage.input_tokens, usage.cost_usd), expect, "{sums:?}");
        }
        let ear = use_of(&sum("audio_models.ear", 0, None));
        assert_eq!((ear.name.as_str(), ear.kind), ("ear", ModelKind::Audio));
        assert_eq!(
            join_sums([sum("a", 0, None), sum("a", 1, Some(7))])[0],
            ModelSum { requests: 4, unreported: 1, input_tokens: 60, output_tokens: 8, ..sum("a", 1, Some(7)) }
        );
    }
}
