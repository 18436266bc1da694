//! Queries about monitors, alerts and phone numbers that involve more than one row.

use ringer_base::error::{Error, Result};
use ringer_model::alert::Violation;
use ringer_model::issue::SourceKind;
use ringer_model::monitor::{CheckDoc, MonitorDoc, Verdict};
use ringer_model::time::Timestamp;
use uuid::Uuid;

use super::Session;
use super::db::{self, Cell};
use super::record::{Row, fields_of, read_row};

impl Session {
    /// Returns the monitors from `offset` on, newest first, and their number; of one agent or of all.
    pub async fn monitors(
        &mut self,
        agent_id: Option<i64>,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<Row<MonitorDoc>>, i64)> {
        let mut cells = vec![Cell::from(self.organization())];
        let mut filter = "m.org_id = $1".to_owned();
        if let Some(agent) = agent_id {
            cells.push(agent.into());
            filter.push_str(" AND m.agent_id = $2");
        }
        let count = self.number(&format!("SELECT COUNT(*) FROM monitors m WHERE {filter}"), &cells).await?;
        cells.extend([limit.into(), offset.into()]);
        let (fields, limit, offset) = (fields_of("m"), cells.len() - 1, cells.len());
        let sql = format!(
            "SELECT {fields} FROM monitors m WHERE {filter} \
             ORDER BY m.created_ms DESC, m.id DESC LIMIT ${limit} OFFSET ${offset}"
        );
        let rows = self.rows(&sql, &cells).await?.iter().map(read_row).collect::<Result<_>>()?;
        Ok((rows, count))
    }

    /// Returns the newest checks of a monitor, newest first.
    pub async fn checks_of(&mut self, monitor_id: Uuid, limit: i64) -> Result<Vec<Row<CheckDoc>>> {
        let fields = fields_of("c");
        let sql = format!(
            "SELECT {fields} FROM checks c WHERE c.org_id = $1 AND c.monitor_id = $2 \
             ORDER BY c.created_ms DESC, c.id DESC LIMIT $3"
        );
        let cells = [self.organization().into(), monitor_id.into(), limit.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the number of finished checks of a monitor since `since_ms` that had this verdict.
    pub async fn count_checks(&mut self, monitor_id: Uuid, verdict: Verdict, since_ms: i64) -> Result<i64> {
        let sql = "SELECT COUNT(*) FROM checks WHERE org_id = $1 AND monitor_id = $2 AND is_finished = 1 \
                   AND verdict = $3 AND created_ms >= $4";
        let cells = [self.organization().into(), monitor_id.into(), verdict.as_str().into(), since_ms.into()];
        self.number(sql, &cells).await
    }

    /// Returns the numbers of finished checks of a monitor since `since_ms`, by day and verdict: (days since 1970, UP,
    /// DOWN), oldest first.
    pub async fn checks_by_day(&mut self, monitor_id: Uuid, since_ms: i64) -> Result<Vec<(i64, i64, i64)>> {
        let sql = "SELECT created_ms / 86400000, \
                   SUM(CASE WHEN verdict = $4 THEN 1 ELSE 0 END), SUM(CASE WHEN verdict = $5 THEN 1 ELSE 0 END) \
                   FROM checks WHERE org_id = $1 AND monitor_id = $2 AND is_finished = 1 AND created_ms >= $3 \
                   GROUP BY created_ms / 86400000 ORDER BY 1";
        let [up, down] = [Verdict::Up, Verdict::Down].map(|verdict| Cell::from(verdict.as_str()));
        let cells = [self.organization().into(), monitor_id.into(), since_ms.into(), up, down];
        let number = |row: &db::Row, at: usize| row.try_get::<i64, _>(at).map_err(Error::internal);
        self.rows(sql, &cells)
            .await?
            .iter()
            .map(|row| Ok((number(row, 0)?, number(row, 1)?, number(row, 2)?)))
            .collect()
    }

    /// Stores a violation; false when it was known.
    pub async fn add_violation(&mut self, violation: &Violation) -> Result<bool> {
        let sql = "INSERT INTO violations (id, org_id, alert_id, source, source_id, value, at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (alert_id, source, source_id) DO NOTHING";
        let cells = [
            violation.id.into(),
            self.organization().into(),
            violation.alert_id.into(),
            violation.kind.as_str().into(),
            violation.source_id.as_str().into(),
            violation.value.as_str().into(),
            violation.triggered_at.0.into(),
        ];
        Ok(self.execute(sql, &cells).await? > 0)
    }

    /// Returns the times of the newest violations of an alert after `since_ms`, newest first.
    pub async fn violation_times(&mut self, alert_id: Uuid, since_ms: i64, limit: i64) -> Result<Vec<i64>> {
        let sql = "SELECT at_ms FROM violations WHERE org_id = $1 AND alert_id = $2 AND at_ms > $3 \
                   ORDER BY at_ms DESC LIMIT $4";
        let cells = [self.organization().into(), alert_id.into(), since_ms.into(), limit.into()];
        self.numbers(sql, &cells).await
    }

    /// Returns the violations of an alert from `offset` on, newest first, and their number.
    pub async fn violations(&mut self, alert_id: Uuid, limit: i64, offset: i64) -> Result<(Vec<Violation>, i64)> {
        let mut cells = vec![Cell::from(self.organization()), alert_id.into()];
        let sql = "SELECT COUNT(*) FROM violations WHERE org_id = $1 AND alert_id = $2";
        let count = self.number(sql, &cells).await?;
        cells.extend([limit.into(), offset.into()]);
        let sql = "SELECT id, source, source_id, value, at_ms FROM violations WHERE org_id = $1 AND alert_id = $2 \
                   ORDER BY at_ms DESC, id DESC LIMIT $3 OFFSET $4";
        let rows = self.rows(sql, &cells).await?;
        let rows = rows.iter().map(|row| read_violation(row, alert_id)).collect::<Result<_>>()?;
        Ok((rows, count))
    }

    /// Returns the organization that has registered a number; `None`: nobody has.
    pub async fn number_holder(&mut self, number: &str) -> Result<Option<String>> {
        let row = self.row("SELECT org_id FROM phone_numbers WHERE number = $1", &[number.into()]).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// True if another organization than the session's has registered a number.
    pub async fn is_foreign_number(&mut self, number: &str) -> Result<bool> {
        Ok(self.number_holder(number).await?.is_some_and(|holder| holder != self.organization()))
    }

    /// True if a Digital Human of another organization has a number of its own, for calls, for texts or for a journey's
    /// step.
    pub async fn has_foreign_human(&mut self, number: &str) -> Result<bool> {
        // Numbers are stored in E.164, so that none has a character of a pattern.
        let sql = "SELECT 1 FROM digital_humans WHERE org_id <> $1 AND doc LIKE $2 LIMIT 1";
        let cells = [Cell::from(self.organization()), format!("%number\":\"{number}\"%").into()];
        Ok(self.row(sql, &cells).await?.is_some())
    }

    /// Returns the numbers among `numbers` that some organization has.
    pub async fn numbers_taken(&mut self, numbers: &[String]) -> Result<Vec<String>> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let cells: Vec<Cell> = numbers.iter().map(|number| Cell::from(number.as_str())).collect();
        let marks: Vec<String> = (1..=cells.len()).map(|n| format!("${n}")).collect();
        let sql = format!("SELECT number FROM phone_numbers WHERE number IN ({})", marks.join(", "));
        let rows = self.rows(&sql, &cells).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }
}

fn read_violation(row: &db::Row, alert_id: Uuid) -> Result<Violation> {
    let text = |at: usize| row.try_get::<String, _>(at).map_err(Error::internal);
    Ok(Violation {
        id: Uuid::parse_str(&text(0)?).map_err(Error::internal)?,
        alert_id,
        triggered_at: Timestamp(row.try_get(4).map_err(Error::internal)?),
        value: text(3)?,
        kind: SourceKind::parse(&text(1)?).ok_or_else(|| Error::internal("a violation has no known source"))?,
        source_id: text(2)?,
    })
}
