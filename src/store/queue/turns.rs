//! Jobs that are claimed by organization in turn, so that many jobs of one keep nobody else waiting.

use std::collections::BTreeMap;

use ringer_base::error::{Error, Result};

use super::{Claimed, Queue, kind_marks};
use crate::db::{Cell, Row};

/// Order in which the organizations were served last by one worker.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    served: BTreeMap<String, u64>,
    last: u64,
}

impl Turns {
    /// Returns the organizations with waiting jobs, the one whose turn it is first: that with the fewest jobs under
    /// way, and of these the one that was not served for the longest time.
    fn order(&mut self, mut waiting: Vec<(String, i64)>) -> Vec<String> {
        self.served.retain(|name, _| waiting.iter().any(|(organization, _)| organization == name));
        waiting.sort_by_cached_key(|(organization, under_way)| {
            (*under_way, self.served.get(organization).copied().unwrap_or(0), organization.clone())
        });
        waiting.into_iter().map(|(organization, _)| organization).collect()
    }

    fn note(&mut self, organization: &str) {
        self.last += 1;
        self.served.insert(organization.to_owned(), self.last);
    }
}

impl Queue {
    /// Claims the job of these kinds that is due longest, of the organization whose turn it is; `None` when none is
    /// due. Jobs under way at other engines count.
    pub async fn claim_in_turn(&self, kinds: &[&str], lease_ms: i64, turns: &mut Turns) -> Result<Option<Claimed>> {
        for organization in turns.order(self.waiting_organizations(kinds).await?) {
            if let Some(claimed) = self.claim_of(kinds, lease_ms, Some(&organization)).await? {
                turns.note(&organization);
                return Ok(Some(claimed));
            }
        }
        Ok(None)
    }

    /// Returns the organizations whose jobs of these kinds wait, with the number of jobs that they have under way.
    async fn waiting_organizations(&self, kinds: &[&str]) -> Result<Vec<(String, i64)>> {
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        let mut db = self.store.org("").read().await?;
        let mut cells: Vec<Cell> = vec![self.time()];
        let marks = kind_marks(kinds, &mut cells);
        let here = self.here(&mut cells);
        let now = db.now_at(1);
        let free = self.free(&now);
        let sql = format!(
            "SELECT org_id, CAST(SUM(CASE WHEN lease_ms > {now} THEN 1 ELSE 0 END) AS BIGINT) FROM jobs \
             WHERE kind IN ({marks}) {here} GROUP BY org_id \
             HAVING SUM(CASE WHEN held = 0 AND due_ms <= {now} AND {free} THEN 1 ELSE 0 END) > 0"
        );
        let rows = db.rows(&sql, &cells).await?;
        let read = |row: &Row| -> Result<_, sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?)) };
        rows.iter().map(|row| read(row).map_err(Error::internal)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_with_the_fewest_jobs_under_way_is_served_and_of_equals_each_in_turn() {
        let mut turns = Turns::default();
        let mut next = |waiting: &[(&str, i64)]| {
            let first = turns.order(waiting.iter().map(|(name, count)| (name.to_string(), *count)).collect()).remove(0);
            turns.note(&first);
            first
        };
        assert_eq!(next(&[("a", 0)]), "a");
        assert_eq!(next(&[("a", 0), ("b", 0)]), "b");
        assert_eq!(next(&[("a", 0), ("b", 0)]), "a");
        assert_eq!(next(&[("a", 0), ("b", 0), ("c", 0)]), "c", "it was never served");
        assert_eq!(next(&[("a", 0), ("b", 0), ("c", 0)]), "b");
        assert_eq!(next(&[("a", 2), ("b", 3), ("c", 2)]), "a");
    }
}
