//! Uses of language models by results and runs, and the cost of a day.

use ringer_base::error::{Error, Result};

use super::Session;
use super::db::{Cell, Row};

/// Uses of one model, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSum {
    /// Section of the settings that the model is set in.
    pub section: String,
    /// Name of the model at its server.
    pub model: String,
    /// Number of requests to the model.
    pub requests: i64,
    /// Number of requests without tokens.
    pub unreported: i64,
    /// Tokens that the model has read.
    pub input_tokens: i64,
    /// Tokens that the model has written.
    pub output_tokens: i64,
    /// Cost in billionths of a USD; `None`: it is not known.
    pub nano_usd: Option<i64>,
}

const ADDED: &str = "ON CONFLICT (run_id, result_id, section, model) DO UPDATE SET \
    requests = model_usage.requests + excluded.requests, unreported = model_usage.unreported + excluded.unreported, \
    input_tokens = model_usage.input_tokens + excluded.input_tokens, \
    output_tokens = model_usage.output_tokens + excluded.output_tokens, \
    nano_usd = COALESCE(model_usage.nano_usd + excluded.nano_usd, model_usage.nano_usd, excluded.nano_usd)";
const INTO: &str = "INSERT INTO model_usage \
    (run_id, result_id, section, model, requests, unreported, input_tokens, output_tokens, nano_usd)";
const VALUES: &str = "CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($5 AS BIGINT), \
    CAST($6 AS BIGINT), CAST($7 AS BIGINT), CAST($8 AS BIGINT)";
const SUMS: &str = "section, model, CAST(SUM(requests) AS BIGINT), CAST(SUM(unreported) AS BIGINT), \
    CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT), CAST(SUM(nano_usd) AS BIGINT)";

impl Session {
    /// Adds uses to those of a result; nothing where it was deleted.
    pub async fn add_use_of_result(&mut self, result_id: i64, sum: &ModelSum) -> Result<()> {
        let sql = format!("{INTO} SELECT run_id, id, {VALUES} FROM results WHERE id = $1 {ADDED}");
        self.execute(&sql, &cells_of(result_id, sum)).await.map(drop)
    }

    /// Adds uses to those of a run itself; nothing where it was deleted.
    pub async fn add_use_of_run(&mut self, run_id: i64, sum: &ModelSum) -> Result<()> {
        let sql = format!("{INTO} SELECT id, 0, {VALUES} FROM runs WHERE id = $1 {ADDED}");
        self.execute(&sql, &cells_of(run_id, sum)).await.map(drop)
    }

    /// Returns the uses of a result, by model.
    pub async fn use_of_result(&mut self, result_id: i64) -> Result<Vec<ModelSum>> {
        let sql = format!("SELECT {SUMS} FROM model_usage WHERE result_id = $1 GROUP BY section, model ORDER BY 1, 2");
        self.rows(&sql, &[result_id.into()]).await?.iter().map(|row| read_sum(row, 0)).collect()
    }

    /// Returns the uses of a run and of all its results, by result (0: the run itself) and model.
    pub async fn use_of_run(&mut self, run_id: i64) -> Result<Vec<(i64, ModelSum)>> {
        let sql = format!(
            "SELECT result_id, {SUMS} FROM model_usage WHERE run_id = $1 GROUP BY result_id, section, model \
             ORDER BY 1, 2, 3"
        );
        let rows = self.rows(&sql, &[run_id.into()]).await?;
        let read = |row: &Row| Ok((row.try_get(0).map_err(Error::internal)?, read_sum(row, 1)?));
        rows.iter().map(read).collect()
    }

    /// Adds to the cost of the model of a section on a day (`2026-01-05`), in billionths of a USD.
    pub async fn add_cost(&mut self, section: &str, day: &str, nano_usd: i64) -> Result<()> {
        let sql = "INSERT INTO model_days (section, day, nano_usd) VALUES ($1, $2, $3) \
                   ON CONFLICT (section, day) DO UPDATE SET nano_usd = model_days.nano_usd + excluded.nano_usd";
        self.execute(sql, &[section.into(), day.into(), nano_usd.into()]).await.map(drop)
    }

    /// Returns the cost of the model of a section on a day, in billionths of a USD.
    pub async fn cost_of_day(&mut self, section: &str, day: &str) -> Result<i64> {
        let sql = "SELECT nano_usd FROM model_days WHERE section = $1 AND day = $2";
        self.number(sql, &[section.into(), day.into()]).await
    }
}

fn cells_of(id: i64, sum: &ModelSum) -> [Cell; 8] {
    [
        id.into(),
        sum.section.as_str().into(),
        sum.model.as_str().into(),
        sum.requests.into(),
        sum.unreported.into(),
        sum.input_tokens.into(),
        sum.output_tokens.into(),
        sum.nano_usd.into(),
    ]
}

fn read_sum(row: &Row, from: usize) -> Result<ModelSum> {
    let read = || -> Result<ModelSum, sqlx::Error> {
        Ok(ModelSum {
            section: row.try_get(from)?,
            model: row.try_get(from + 1)?,
            requests: row.try_get(from + 2)?,
            unreported: row.try_get(from + 3)?,
            input_tokens: row.try_get(from + 4)?,
            output_tokens: row.try_get(from + 5)?,
            nano_usd: row.try_get(from + 6)?,
        })
    };
    read().map_err(Error::internal)
}
