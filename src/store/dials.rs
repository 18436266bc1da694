//! Calls that are dialled through trunks: how many are active, how many were begun lately, and the minutes reserved for
//! a day. Counts are read and written in one write session, so that no two dials take the same place.

use ringer_base::error::{Error, Result};

use super::{Session, db};

/// A set of dials with limits of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DialScope<'a> {
    /// Dials of every organization through a trunk, by its name.
    Trunk(&'a str),
    /// Dials of an organization through every trunk, by its id.
    Organization(&'a str),
}

impl DialScope<'_> {
    fn column(self) -> &'static str {
        match self {
            DialScope::Trunk(_) => "trunk",
            DialScope::Organization(_) => "org_id",
        }
    }

    fn value(self) -> String {
        let (DialScope::Trunk(value) | DialScope::Organization(value)) = self;
        value.to_owned()
    }

    /// Returns the name of the set in the table of days.
    fn key(self) -> String {
        format!("{}:{}", self.column(), self.value())
    }
}

/// One dial of the session's organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialRow {
    /// Result that the call is made for.
    pub result_id: i64,
    /// Name of the trunk.
    pub trunk: String,
    /// Caller's number; empty where the call shows none of the trunk.
    pub caller: String,
    /// Day of the minutes (UTC, `2026-01-05`).
    pub day: String,
    /// Conversation time that is reserved, in milliseconds.
    pub reserved_ms: i64,
}

impl Session {
    /// Returns the number of calls that are being made or are up.
    pub async fn live_dials(&mut self, of: DialScope<'_>, now_ms: i64) -> Result<i64> {
        let sql = format!("SELECT COUNT(*) FROM dials WHERE {} = $1 AND live = 1 AND until_ms > $2", of.column());
        self.number(&sql, &[of.value().into(), now_ms.into()]).await
    }

    /// Returns the number of calls that were begun after `since_ms`, whatever their outcome.
    pub async fn dials_since(&mut self, of: DialScope<'_>, since_ms: i64) -> Result<i64> {
        let sql = format!("SELECT COUNT(*) FROM dials WHERE {} = $1 AND at_ms > $2", of.column());
        self.number(&sql, &[of.value().into(), since_ms.into()]).await
    }

    /// Returns the conversation time that is reserved or used on a day, in milliseconds.
    pub async fn dialled_ms(&mut self, of: DialScope<'_>, day: &str) -> Result<i64> {
        let sql = "SELECT used_ms FROM dial_days WHERE scope = $1 AND day = $2";
        self.number(sql, &[of.key().into(), day.into()]).await
    }

    /// Returns the caller numbers of a trunk that are in use now, with the number of calls of each.
    pub async fn callers_in_use(&mut self, trunk: &str, now_ms: i64) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT caller, COUNT(*) FROM dials WHERE trunk = $1 AND live = 1 AND until_ms > $2 GROUP BY caller";
        self.pairs(sql, &[trunk.into(), now_ms.into()]).await
    }

    /// Counts a dial, at the latest until `until_ms`. One that is not `live` counts for rates alone.
    pub async fn put_dial(&mut self, dial: &DialRow, live: bool, now_ms: i64, until_ms: i64) -> Result<()> {
        let organization = self.organization().to_owned();
        let sql = "INSERT INTO dials (id, org_id, result_id, trunk, caller, at_ms, until_ms, live, day, reserved_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let cells = [
            ringer_base::clock::new_id().into(),
            organization.clone().into(),
            dial.result_id.into(),
            dial.trunk.as_str().into(),
            dial.caller.as_str().into(),
            now_ms.into(),
            until_ms.into(),
            live.into(),
            dial.day.as_str().into(),
            dial.reserved_ms.into(),
        ];
        self.execute(sql, &cells).await?;
        self.add_dialled(dial, dial.reserved_ms).await
    }

    /// True if a call of a result is counted for a trunk.
    pub async fn has_dial(&mut self, result_id: i64, trunk: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM dials WHERE result_id = $1 AND trunk = $2 AND live = 1 LIMIT 1";
        Ok(self.row(sql, &[result_id.into(), trunk.into()]).await?.is_some())
    }

    /// Ends the dials of a result and returns those that were live, with their reserved time.
    pub async fn end_dials(&mut self, result_id: i64) -> Result<Vec<DialRow>> {
        let sql = "UPDATE dials SET live = 0 WHERE result_id = $1 AND org_id = $2 AND live = 1 \
                   RETURNING trunk, caller, day, reserved_ms";
        let organization = self.organization().to_owned();
        let rows = self.rows(sql, &[result_id.into(), organization.into()]).await?;
        let dial = |row: &db::Row| -> Result<DialRow, sqlx::Error> {
            let (trunk, caller, day) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            Ok(DialRow { result_id, trunk, caller, day, reserved_ms: row.try_get(3)? })
        };
        rows.iter().map(dial).collect::<Result<_, _>>().map_err(Error::internal)
    }

    /// Adds milliseconds to the day of a dial, of its trunk and of its organization; a negative number gives them back.
    pub async fn add_dialled(&mut self, dial: &DialRow, ms: i64) -> Result<()> {
        let organization = self.organization().to_owned();
        for scope in [DialScope::Trunk(&dial.trunk), DialScope::Organization(&organization)] {
            let sql = "INSERT INTO dial_days (scope, day, used_ms) VALUES ($1, $2, $3) \
                       ON CONFLICT (scope, day) DO UPDATE SET used_ms = dial_days.used_ms + $3";
            self.execute(sql, &[scope.key().into(), dial.day.as_str().into(), ms.into()]).await?;
        }
        Ok(())
    }

    /// Deletes ended dials before `before_ms`, and days before `day`.
    pub async fn forget_dials(&mut self, before_ms: i64, now_ms: i64, day: &str) -> Result<()> {
        let sql = "DELETE FROM dials WHERE at_ms < $1 AND (live = 0 OR until_ms <= $2)";
        self.execute(sql, &[before_ms.into(), now_ms.into()]).await?;
        self.execute("DELETE FROM dial_days WHERE day < $1", &[day.into()]).await.map(drop)
    }
}
