//! Prices and limits of a model: requests a minute, and a budget a day.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use ringer_base::clock::Clock;
use tokio::sync::Mutex;

use super::super::account::{Tokens, Use};
use super::super::{Account, Failure, Job};

/// Time within which requests are counted.
const MINUTE_MS: i64 = 60_000;
/// Billionths of a USD.
const NANO: f64 = 1e9;
/// Billionths of a USD for a token, where a million tokens cost one USD.
const NANO_A_TOKEN: f64 = NANO / 1e6;

/// Code of the failure to ask a model whose budget is used up.
pub(super) const BUDGET_CODE: &str = "model_budget";
/// Highest cost of one request that is believed, in billionths of a USD.
const COST_MAX: f64 = 1e15;

/// Sums of what models cost, over all engines of one database.
pub trait Spending: Send + Sync {
    /// Adds a cost to today's sum (UTC) of the model of a section. It does not wait.
    fn charge(&self, section: &str, nano_usd: i64);

    /// Returns today's sum (UTC) in billionths of a USD; `None`: it cannot be read.
    fn cost_today<'a>(&'a self, section: &'a str) -> Job<'a, Option<i64>>;
}

/// Prices and limits of a model. The default has none.
#[derive(Clone, Default)]
pub struct ModelTerms {
    /// Section of the settings that the model is set in, such as `language_models.careful`.
    pub section: String,
    /// Name of the model at its server.
    pub model: String,
    /// USD for a million tokens that are read, and that are written; `None`: not known.
    pub usd_per_million: Option<(f64, f64)>,
    /// Places of the requests of a minute; `None`: no limit.
    pub places: Option<Arc<Places>>,
    /// Budget of a day in USD; `None`: no limit.
    pub max_usd_per_day: Option<f64>,
    /// Sums of what was spent; `None`: nothing is summed up.
    pub spending: Option<Arc<dyn Spending>>,
}

impl ModelTerms {
    /// Returns the cost of tokens in billionths of a USD; `None` without prices.
    fn cost(&self, tokens: Tokens) -> Option<i64> {
        let (input, output) = self.usd_per_million?;
        let nano = (tokens.input as f64 * input + tokens.output as f64 * output) * NANO_A_TOKEN;
        Some(nano.round().min(COST_MAX) as i64)
    }

    /// Takes a place among the requests of a minute; returns true if it was waited for.
    pub(super) async fn enter(&self, account: Option<&Account>) -> bool {
        match &self.places {
            Some(places) => places.enter(account).await,
            None => false,
        }
    }

    /// Checks that the budget of the day is not used up.
    ///
    /// # Errors
    /// [`BUDGET_CODE`]: it is, and the account does not go on without it.
    pub(super) async fn check_budget(&self, account: Option<&Account>) -> Result<(), Failure> {
        let (Some(usd), Some(spending)) = (self.max_usd_per_day, &self.spending) else { return Ok(()) };
        if account.is_some_and(Account::goes_on) {
            return Ok(());
        }
        let spent = spending.cost_today(&self.section).await;
        if spent.is_none() {
            tracing::warn!(
                section = self.section,
                "the cost of a model today cannot be read; its budget is not checked"
            );
        }
        match spent.is_some_and(|spent| is_spent(spent, usd)) {
            true => Err(Failure { code: BUDGET_CODE, message: budget_text(&self.section, usd) }),
            false => Ok(()),
        }
    }
}

/// True if a sum in billionths of a USD has reached a budget in USD.
pub fn is_spent(nano_usd: i64, budget_usd: f64) -> bool {
    nano_usd as f64 >= budget_usd * NANO
}

/// Returns the reason why a model is not asked any more today.
pub fn budget_text(section: &str, budget_usd: f64) -> String {
    format!("the budget of [{section}] for today is used up: max_usd_per_day = {budget_usd}, until 00:00 UTC")
}

/// Places of the requests of a minute, given in the order in which they are asked for.
pub struct Places {
    clock: Clock,
    per_minute: usize,
    /// Begin of the latest requests, in milliseconds since 1970. The lock is fair.
    begun: Mutex<VecDeque<i64>>,
}

impl Places {
    /// Returns as many places for each 60 s.
    pub fn new(clock: Clock, per_minute: u32) -> Places {
        Places { clock, per_minute: per_minute.max(1) as usize, begun: Mutex::default() }
    }

    async fn enter(&self, account: Option<&Account>) -> bool {
        let wait = Wait { clock: &self.clock, account };
        wait.note(true);
        let mut begun = self.begun.lock().await;
        let mut waited = false;
        loop {
            let now = self.clock.now_ms();
            // A time that is still to come is of a clock that was set back since.
            while begun.front().is_some_and(|at| *at > now || *at + MINUTE_MS <= now) {
                begun.pop_front();
            }
            match begun.front() {
                Some(first) if begun.len() >= self.per_minute => {
                    waited = true;
                    self.clock.until(first + MINUTE_MS).await;
                }
                _ => {
                    begun.push_back(now);
                    return waited;
                }
            }
        }
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("per_minute", &self.per_minute).finish_non_exhaustive()
    }
}

/// A wait for a place, which may be given up.
struct Wait<'a> {
    clock: &'a Clock,
    account: Option<&'a Account>,
}

impl Wait<'_> {
    fn note(&self, begins: bool) {
        if let Some(account) = self.account {
            account.note_wait(self.clock.now_ms(), begins);
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.note(false);
    }
}

/// A request that is made. Unless its server refused it, it counts as a use, also where the answer is given up.
pub(super) struct Asked<'a> {
    terms: &'a ModelTerms,
    account: Option<&'a Account>,
    is_refused: bool,
    tokens: Option<Tokens>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(terms: &'a ModelTerms, account: Option<&'a Account>) -> Asked<'a> {
        Asked { terms, account, is_refused: false, tokens: None }
    }

    /// Notes that the server did not take the request.
    pub(super) fn was_refused(&mut self) {
        self.is_refused = true;
    }

    /// Notes the tokens that the server told.
    pub(super) fn tell(&mut self, tokens: Option<Tokens>) {
        self.tokens = tokens;
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_refused {
            return;
        }
        let nano_usd = self.tokens.and_then(|tokens| self.terms.cost(tokens));
        if let (Some(spending), Some(nano_usd)) = (&self.terms.spending, nano_usd) {
            spending.charge(&self.terms.section, nano_usd);
        }
        if let Some(account) = self.account {
            let (section, model) = (self.terms.section.clone(), self.terms.model.clone());
            account.enter(Use { section, model, tokens: self.tokens, nano_usd });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn requests_wait_for_places_in_their_order() {
        let clock = Clock::standing_at(1_000_000);
        let places = Places::new(clock.clone(), 2);
        let account = Account::new(Arc::new(Nowhere));
        let order = AtomicUsize::new(0);
        let enter = async |account: Option<&Account>| {
            places.enter(account).await;
            (order.fetch_add(1, Ordering::SeqCst), clock.now_ms())
        };
        let passing = async {
            for _ in 0..2 {
                clock.advance_to_wait(MINUTE_MS).await;
            }
        };
        let (a, b, c, d, e, ()) =
            tokio::join!(enter(None), enter(None), enter(Some(&account)), enter(None), enter(None), passing);
        let (first, second, third) = (1_000_000, 1_060_000, 1_120_000);
        assert_eq!([a, b, c, d, e], [(0, first), (1, first), (2, second), (3, second), (4, third)]);
        assert_eq!(account.waited_ms(clock.now_ms()), MINUTE_MS);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_takes_no_place() {
        let clock = Clock::standing_at(0);
        let places = Places::new(clock.clone(), 1);
        assert!(!places.enter(None).await, "there is one");
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, places.enter(None)).await;
        assert!(given_up.is_err(), "there is none");
        let (waited, ()) = tokio::join!(places.enter(None), clock.advance_to_wait(MINUTE_MS));
        assert_eq!((waited, clock.now_ms()), (true, MINUTE_MS));
    }

    #[test]
    fn tokens_cost_what_the_prices_say() {
        let terms = ModelTerms { usd_per_million: Some((0.5, 2.0)), ..ModelTerms::default() };
        assert_eq!(terms.cost(Tokens { input: 1000, output: 250 }), Some(1_000_000));
        assert_eq!(ModelTerms::default().cost(Tokens { input: 1000, output: 250 }), None);
        assert!(is_spent(1_000_000, 0.001) && !is_spent(999_999, 0.001) && is_spent(0, 0.0));
    }

    struct Nowhere;

    impl super::super::super::account::Book for Nowhere {
        fn enter(&self, _: Use) {}
    }
}
