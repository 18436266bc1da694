//! Queries about communities, and about Digital Humans by agent or noise.

use std::collections::HashMap;

use ringer_base::error::Result;
use ringer_model::customer::CommunityDoc;
use ringer_model::digital_human::DigitalHumanSpec;
use uuid::Uuid;

use super::Session;
use super::record::{Row, fields_of, read_row};

impl Session {
    /// Returns the communities that a Digital Human belongs to, newest first.
    pub async fn communities_of(&mut self, digital_human_id: i64) -> Result<Vec<Row<CommunityDoc>>> {
        let fields = fields_of("c");
        let sql = format!(
            "SELECT {fields} FROM communities c JOIN community_digital_humans l ON l.community_id = c.id \
             WHERE c.org_id = $1 AND l.digital_human_id = $2 ORDER BY c.created_ms DESC, c.id DESC"
        );
        let cells = [self.organization().into(), digital_human_id.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the members of a community, in the order in which they were added.
    pub async fn members_of(&mut self, community_id: Uuid) -> Result<Vec<i64>> {
        let sql = "SELECT digital_human_id FROM community_digital_humans WHERE org_id = $1 AND community_id = $2 \
                   ORDER BY place, digital_human_id";
        let cells = [self.organization().into(), community_id.into()];
        self.numbers(sql, &cells).await
    }

    /// Replaces all members of a community; `members` holds each once.
    pub async fn set_members(&mut self, community_id: Uuid, members: &[i64]) -> Result<()> {
        let cells = [self.organization().into(), community_id.into()];
        let sql = "DELETE FROM community_digital_humans WHERE org_id = $1 AND community_id = $2";
        self.execute(sql, &cells).await?;
        let sql = "INSERT INTO community_digital_humans (community_id, digital_human_id, org_id, place) \
                   VALUES ($1, $2, $3, $4)";
        for (place, member) in (0_i64..).zip(members) {
            let cells = [community_id.into(), (*member).into(), self.organization().into(), place.into()];
            self.execute(sql, &cells).await?;
        }
        Ok(())
    }

    /// Returns the Digital Humans that are part of some simulation of an agent, in order of id.
    pub async fn digital_humans_of_agent(&mut self, agent_id: i64) -> Result<Vec<Row<DigitalHumanSpec>>> {
        let fields = fields_of("d");
        let sql = format!(
            "SELECT {fields} FROM digital_humans d WHERE d.org_id = $1 AND d.id IN \
             (SELECT l.digital_human_id FROM simulation_digital_humans l JOIN simulations s ON s.id = l.simulation_id \
              WHERE s.agent_id = $2) ORDER BY d.id"
        );
        let cells = [self.organization().into(), agent_id.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the number of Digital Humans that use each uploaded noise, by its id; unused noises are left out.
    pub async fn noise_uses(&mut self) -> Result<HashMap<String, i64>> {
        let sql = "SELECT noise_id, COUNT(*) FROM digital_humans WHERE org_id = $1 AND noise_id IS NOT NULL \
                   GROUP BY noise_id";
        let cells = [self.organization().into()];
        Ok(self.pairs(sql, &cells).await?.into_iter().collect())
    }
}
