//! Addresses on which results are called. One result at a time holds an address, the others wait for it, of whatever
//! organization, since calls come to one engine.
//!
//! Addresses are rows and not memory: READY outlives a restart without a task a result.

use std::collections::HashMap;

use ringer_base::error::{Error, Result};
use ringer_model::status::ResultStatus;

use super::Session;
use super::db::{self, Cell};

/// Most keys in one query; more are split.
const AT_ONCE: usize = 200;

/// State of a call job.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CallState {
    /// True: its lane has no free place.
    pub is_held: bool,
    /// Time at which it is due, milliseconds since 1970.
    pub due_ms: i64,
    /// True: a worker has claimed it.
    pub is_claimed: bool,
}

/// Most waiting results that are read when an address becomes free.
const LOOKED_AT: i64 = 100;

impl Session {
    /// Sets the addresses of a result, in place of all others: it holds them, or waits for them.
    pub async fn put_legs(&mut self, result_id: i64, addresses: &[String], held: bool, now_ms: i64) -> Result<()> {
        self.drop_legs(result_id).await?;
        for address in addresses {
            let sql = "INSERT INTO legs (address, result_id, org_id, held, since_ms) VALUES ($1, $2, $3, $4, $5)";
            let organization = self.organization().to_owned();
            let cells = [address.as_str().into(), result_id.into(), organization.into(), held.into(), now_ms.into()];
            self.execute(sql, &cells).await?;
        }
        Ok(())
    }

    /// Deletes the addresses of a result and returns them.
    pub async fn drop_legs(&mut self, result_id: i64) -> Result<Vec<String>> {
        let sql = "DELETE FROM legs WHERE result_id = $1 RETURNING address";
        let rows = self.rows(sql, &[result_id.into()]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }

    /// Returns the holder of an address: (organization, result).
    pub async fn leg_holder(&mut self, address: &str) -> Result<Option<(String, i64)>> {
        let sql = "SELECT org_id, result_id FROM legs WHERE address = $1 AND held = 1";
        self.row(sql, &[address.into()]).await?.as_ref().map(owner_of).transpose()
    }

    /// Returns the organization of an agent.
    pub async fn agent_owner(&mut self, agent_id: i64) -> Result<Option<String>> {
        let row = self.row("SELECT org_id FROM agents WHERE id = $1", &[agent_id.into()]).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// Returns those that wait for an address, in order: (organization, result).
    pub async fn leg_waiters(&mut self, address: &str) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT org_id, result_id FROM legs WHERE address = $1 AND held = 0 ORDER BY result_id LIMIT $2";
        let rows = self.rows(sql, &[address.into(), LOOKED_AT.into()]).await?;
        rows.iter().map(owner_of).collect()
    }

    /// Returns the addresses with this start that results of any organization wait for.
    pub async fn addresses_waited_for(&mut self, start: &str) -> Result<Vec<String>> {
        let sql =
            "SELECT DISTINCT address FROM legs WHERE held = 0 AND address >= $1 AND address < $2 ORDER BY address";
        let rows = self.rows(sql, &[start.into(), format!("{start}\u{10ffff}").into()]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }

    /// Returns the addresses that a result holds or waits for.
    pub async fn legs_of(&mut self, result_id: i64) -> Result<Vec<String>> {
        let sql = "SELECT address FROM legs WHERE result_id = $1 ORDER BY address";
        let rows = self.rows(sql, &[result_id.into()]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }

    /// Returns the number of jobs that are due and not claimed, and the time at which the first was due, in
    /// milliseconds since 1970.
    pub async fn due_jobs(&mut self, now_ms: i64) -> Result<(i64, Option<i64>)> {
        let sql = "SELECT COUNT(*), MIN(due_ms) FROM jobs WHERE held = 0 AND lease_ms IS NULL AND due_ms <= $1";
        let row = self.row(sql, &[now_ms.into()]).await?;
        let read = |row: &db::Row| Ok::<_, sqlx::Error>((row.try_get(0)?, row.try_get(1)?));
        row.as_ref().map_or(Ok((0, None)), read).map_err(Error::internal)
    }

    /// Returns the states of the call jobs with these keys, by key.
    pub async fn call_states(&mut self, keys: &[String]) -> Result<HashMap<String, CallState>> {
        let mut states = HashMap::new();
        for keys in keys.chunks(AT_ONCE) {
            let marks = marks(keys.len());
            let sql = format!(
                "SELECT job_key, held, due_ms, CASE WHEN lease_ms IS NULL THEN 0 ELSE 1 END FROM jobs \
                 WHERE job_key IN ({marks})"
            );
            let cells: Vec<Cell> = keys.iter().map(|key| Cell::from(key.as_str())).collect();
            for row in self.rows(&sql, &cells).await? {
                let (key, state) = call_state(&row).map_err(Error::internal)?;
                states.insert(key, state);
            }
        }
        Ok(states)
    }

    /// Returns the addresses that each of these results waits for, by result.
    pub async fn legs_waited_for(&mut self, results: &[i64]) -> Result<HashMap<i64, Vec<String>>> {
        let mut legs = HashMap::<i64, Vec<String>>::new();
        for ids in results.chunks(AT_ONCE) {
            let sql =
                format!("SELECT result_id, address FROM legs WHERE held = 0 AND result_id IN ({})", marks(ids.len()));
            let cells: Vec<Cell> = ids.iter().map(|id| Cell::from(*id)).collect();
            for row in self.rows(&sql, &cells).await? {
                let result = row.try_get(0).map_err(Error::internal)?;
                legs.entry(result).or_default().push(row.try_get(1).map_err(Error::internal)?);
            }
        }
        Ok(legs)
    }

    /// True if an earlier result of the same run has not ended its conversation yet.
    pub async fn has_earlier_open(&mut self, result_id: i64) -> Result<bool> {
        let mut cells: Vec<Cell> = vec![result_id.into()];
        let open = ResultStatus::ALL.iter().filter(|status| status.is_open());
        cells.extend(open.map(|status| Cell::from(status.as_str())));
        let marks: Vec<String> = (2..=cells.len()).map(|n| format!("${n}")).collect();
        let sql = format!(
            "SELECT 1 FROM results this JOIN results r ON r.run_id = this.run_id \
             WHERE this.id = $1 AND r.id < this.id AND r.status IN ({}) LIMIT 1",
            marks.join(", ")
        );
        Ok(self.row(&sql, &cells).await?.is_some())
    }

    /// Returns the number of results of a run that are being connected or hold a conversation.
    pub async fn places_taken(&mut self, run_id: i64) -> Result<i64> {
        let sql = "SELECT COUNT(*) FROM results WHERE run_id = $1 AND status IN ($2, $3)";
        let taken = [ResultStatus::Dispatched, ResultStatus::Running];
        let cells = [run_id.into(), taken[0].as_str().into(), taken[1].as_str().into()];
        self.number(sql, &cells).await
    }

    /// Returns the Digital Human that listens on a number at all times: (organization, id).
    pub async fn always_on(&mut self, number: &str) -> Result<Option<(String, i64)>> {
        // Whoever has registered the number comes first: others may have listened on it before.
        let sql = "SELECT d.org_id, d.id FROM digital_humans d LEFT JOIN phone_numbers n ON n.number = d.listens_on \
                   WHERE d.listens_on = $1 ORDER BY CASE WHEN n.org_id = d.org_id THEN 0 ELSE 1 END, d.id LIMIT 1";
        self.row(sql, &[number.into()]).await?.as_ref().map(owner_of).transpose()
    }

    /// Returns the status of a result of any organization; `None`: there is no such result.
    pub async fn status_of(&mut self, result_id: i64) -> Result<Option<ResultStatus>> {
        let row = self.row("SELECT status FROM results WHERE id = $1", &[result_id.into()]).await?;
        let read = |row: db::Row| row.try_get::<String, _>(0).map_err(Error::internal);
        Ok(row.map(read).transpose()?.and_then(|status| ResultStatus::parse(&status)))
    }

    /// Returns the organization that a Digital Human belongs to.
    pub async fn organization_of_human(&mut self, id: i64) -> Result<Option<String>> {
        let sql = "SELECT org_id FROM digital_humans WHERE id = $1";
        let row = self.row(sql, &[id.into()]).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }
}

fn marks(count: usize) -> String {
    (1..=count).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}

fn call_state(row: &db::Row) -> Result<(String, CallState), sqlx::Error> {
    let (held, claimed): (i64, i64) = (row.try_get(1)?, row.try_get(3)?);
    let state = CallState { is_held: held != 0, due_ms: row.try_get(2)?, is_claimed: claimed != 0 };
    Ok((row.try_get(0)?, state))
}

fn owner_of(row: &db::Row) -> Result<(String, i64)> {
    let read = || -> Result<_, sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?)) };
    read().map_err(Error::internal)
}
