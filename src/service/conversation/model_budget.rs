//! The budget of the language model that words callers: new conversations wait while it is used up, those under way go
//! on.

use ringer_base::error::Result;
use ringer_provider::chat::{budget_text, is_spent};
use ringer_store::Session;

use super::Conversations;

/// Prefix of the addresses under which results of an organization wait for a budget. The blank in it keeps calls from
/// reaching them.
const BUDGETS: &str = "model budget of: ";
/// Section of the settings of the model that words callers.
const SECTION: &str = "language_model";
/// Results that one transaction queues anew.
const WOKEN_AT_ONCE: usize = 100;

impl Conversations {
    /// Queues results anew that wait for a budget, where it is not used up any more: a new day has begun, or the
    /// settings have changed.
    pub async fn wake_within_budget(&self) -> Result<()> {
        let waiting = self.store.org("").read().await?.addresses_waited_for(BUDGETS).await?;
        for address in waiting {
            let mut goes_on = true;
            while goes_on {
                let mut db = self.store.org(&address[BUDGETS.len()..]).write().await?;
                goes_on = !self.is_over_budget(&mut db).await?;
                for _ in 0..WOKEN_AT_ONCE {
                    goes_on = goes_on && !self.wake_next(&mut db, &address).await?.is_empty();
                }
                db.commit().await?;
            }
        }
        Ok(())
    }

    /// True if the budget of the model that words callers is used up today.
    pub(crate) async fn is_over_budget(&self, db: &mut Session) -> Result<bool> {
        let Some(budget) = self.settings.callers_usd_per_day else { return Ok(false) };
        Ok(is_spent(self.spending.spent_today(db, SECTION).await?, budget))
    }

    /// Returns the budget for which results wait, in words.
    pub(crate) fn budget_waited_for(&self) -> Option<String> {
        self.settings.callers_usd_per_day.map(|budget| budget_text(SECTION, budget))
    }
}

/// Returns the address under which results of an organization wait for a budget.
pub(super) fn budget_of(organization: &str) -> String {
    format!("{BUDGETS}{organization}")
}

/// True for an address under which results wait for a budget.
pub(super) fn is_budget(address: &str) -> bool {
    address.starts_with(BUDGETS)
}
