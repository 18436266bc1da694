//! Links between scenarios and agents.

use ringer_base::error::Result;
use ringer_model::scenario::ScenarioDoc;
use uuid::Uuid;

use super::Session;
use super::record::{Row, fields_of, read_row};

impl Session {
    /// Returns the scenarios linked to an agent, newest first.
    pub async fn scenarios_of(&mut self, agent_id: i64) -> Result<Vec<Row<ScenarioDoc>>> {
        let fields = fields_of("s");
        let sql = format!(
            "SELECT {fields} FROM scenarios s JOIN scenario_agents l ON l.scenario_id = s.id \
             WHERE s.org_id = $1 AND l.agent_id = $2 ORDER BY s.created_ms DESC, s.id DESC"
        );
        let cells = [self.organization().into(), agent_id.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the agents that a scenario is linked to, in the order in which they were given.
    pub async fn agents_of_scenario(&mut self, scenario_id: Uuid) -> Result<Vec<i64>> {
        let sql = "SELECT agent_id FROM scenario_agents WHERE org_id = $1 AND scenario_id = $2 ORDER BY place";
        let cells = [self.organization().into(), scenario_id.into()];
        self.numbers(sql, &cells).await
    }

    /// Replaces all links of a scenario; `agent_ids` holds each once.
    pub async fn link_scenario(&mut self, scenario_id: Uuid, agent_ids: &[i64]) -> Result<()> {
        let cells = [self.organization().into(), scenario_id.into()];
        self.execute("DELETE FROM scenario_agents WHERE org_id = $1 AND scenario_id = $2", &cells).await?;
        let sql = "INSERT INTO scenario_agents (scenario_id, agent_id, org_id, place) VALUES ($1, $2, $3, $4)";
        for (place, agent_id) in (0_i64..).zip(agent_ids) {
            let cells = [scenario_id.into(), (*agent_id).into(), self.organization().into(), place.into()];
            self.execute(sql, &cells).await?;
        }
        Ok(())
    }
}
