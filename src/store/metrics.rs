//! Queries about custom metrics and the agents that they are linked to.

use ringer_base::error::{Error, Result};
use ringer_model::custom_metric::CustomMetricSpec;
use uuid::Uuid;

use super::Session;
use super::db::Cell;
use super::record::{Row, fields_of, read_row};

/// Selection of custom metrics.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Metrics {
    /// All of the organization.
    All,
    /// Metrics linked to one agent.
    OfAgent(i64),
    /// The metric with this id.
    One(Uuid),
}

impl Metrics {
    /// Returns a condition on `m`, and the value of its `$2`.
    fn condition(self) -> (&'static str, Cell) {
        match self {
            Metrics::All => ("$2 = 0", 0.into()),
            Metrics::OfAgent(id) => {
                ("EXISTS (SELECT 1 FROM agent_metrics l WHERE l.metric_id = m.id AND l.agent_id = $2)", id.into())
            }
            Metrics::One(id) => ("m.id = $2", id.into()),
        }
    }
}

impl Session {
    /// Returns metrics `offset .. offset + limit`, newest first, each with its agents, by one statement.
    pub async fn metrics(&mut self, which: Metrics, limit: i64, offset: i64) -> Result<Vec<Row<CustomMetricSpec>>> {
        let (condition, value) = which.condition();
        let (inner, outer) = (fields_of("m"), fields_of("p"));
        let sql = format!(
            "SELECT {outer}, a.agent_id FROM (SELECT {inner} FROM custom_metrics m WHERE m.org_id = $1 AND {condition} \
             ORDER BY m.created_ms DESC, m.id DESC LIMIT $3 OFFSET $4) p \
             LEFT JOIN agent_metrics a ON a.metric_id = p.id ORDER BY p.created_ms DESC, p.id DESC, a.position"
        );
        let cells = [self.organization().into(), value, limit.into(), offset.into()];
        let mut metrics: Vec<Row<CustomMetricSpec>> = Vec::new();
        for row in self.rows(&sql, &cells).await? {
            let metric = read_row::<CustomMetricSpec>(&row)?;
            let agent: Option<i64> = row.try_get("agent_id").map_err(Error::internal)?;
            match metrics.last_mut().filter(|last| last.id == metric.id) {
                Some(same) => same.doc.agent_ids.extend(agent),
                None => metrics.push(Row {
                    doc: CustomMetricSpec { agent_ids: agent.into_iter().collect(), ..metric.doc },
                    ..metric
                }),
            }
        }
        Ok(metrics)
    }

    /// Returns the number of metrics in the selection.
    pub async fn count_metrics(&mut self, which: Metrics) -> Result<i64> {
        let (condition, value) = which.condition();
        let sql = format!("SELECT COUNT(*) FROM custom_metrics m WHERE m.org_id = $1 AND {condition}");
        let cells = [self.organization().into(), value];
        self.number(&sql, &cells).await
    }

    /// Returns one metric with its agents, else the error `Custom metric not found`.
    pub async fn metric(&mut self, id: Uuid) -> Result<Row<CustomMetricSpec>> {
        self.metrics(Metrics::One(id), 1, 0).await?.pop().ok_or(Error::NotFound("Custom metric"))
    }

    /// Replaces the agents of a metric by `agent_ids`.
    pub async fn link_metric(&mut self, metric_id: Uuid, agent_ids: &[i64]) -> Result<()> {
        let cells = [metric_id.into(), self.organization().into()];
        self.execute("DELETE FROM agent_metrics WHERE metric_id = $1 AND org_id = $2", &cells).await?;
        for (position, agent_id) in (0i64..).zip(agent_ids) {
            let sql = "INSERT INTO agent_metrics (agent_id, metric_id, org_id, position) VALUES ($1, $2, $3, $4) \
                       ON CONFLICT (agent_id, metric_id) DO NOTHING";
            let cells = [(*agent_id).into(), metric_id.into(), self.organization().into(), position.into()];
            self.execute(sql, &cells).await?;
        }
        Ok(())
    }
}
