//! Stored limits of organizations, number of their conversations, and users.

use ringer_base::error::{Error, Result};
use ringer_model::organization::WorkspaceLimits;
use ringer_model::status::ResultStatus;
use uuid::Uuid;

use super::Session;
use super::db::{Cell, Row};

impl Session {
    /// Returns the stored limits of this session's organization.
    pub async fn stored_limits(&mut self) -> Result<WorkspaceLimits> {
        let cells = [Cell::from(self.organization())];
        let row = self.row("SELECT limits FROM organizations WHERE id = $1", &cells).await?;
        let text: Option<String> = row.map_or(Ok(None), |row| row.try_get(0)).map_err(Error::internal)?;
        text.map_or(Ok(WorkspaceLimits::default()), |text| serde_json::from_str(&text).map_err(Error::internal))
    }

    /// Stores the limits of this session's organization.
    pub async fn store_limits(&mut self, limits: &WorkspaceLimits) -> Result<()> {
        let text = serde_json::to_string(limits).map_err(Error::internal)?;
        let cells = [Cell::from(self.organization()), text.as_str().into()];
        self.execute("UPDATE organizations SET limits = $2 WHERE id = $1", &cells).await.map(drop)
    }

    /// Returns the id of the user of this organization called `name`, made with the id `fresh` when absent.
    pub async fn user_named(&mut self, name: &str, fresh: Uuid, now_ms: i64) -> Result<Uuid> {
        let organization = self.organization().to_owned();
        let sql = "INSERT INTO users (id, org_id, name, created_ms) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (org_id, name) DO NOTHING";
        self.execute(sql, &[fresh.into(), organization.as_str().into(), name.into(), now_ms.into()]).await?;
        let cells = [organization.as_str().into(), name.into()];
        let row = self.row("SELECT id, name FROM users WHERE org_id = $1 AND name = $2", &cells).await?;
        row.as_ref().map(read_user).transpose()?.map(|(id, _)| id).ok_or(Error::NotFound("User"))
    }

    /// Returns (id, name) of the users of this organization, by name.
    pub async fn users(&mut self) -> Result<Vec<(Uuid, String)>> {
        let cells = [Cell::from(self.organization())];
        let rows = self.rows("SELECT id, name FROM users WHERE org_id = $1 ORDER BY name", &cells).await?;
        rows.iter().map(read_user).collect()
    }

    /// Returns the number of results of this organization that hold a conversation, are being connected, or await their
    /// agent.
    pub async fn conversations_held(&mut self) -> Result<i64> {
        let sql = "SELECT COUNT(*) FROM results WHERE org_id = $1 AND status IN ($2, $3, $4)";
        let held = [ResultStatus::Ready, ResultStatus::Dispatched, ResultStatus::Running];
        let [ready, dispatched, running] = held.map(ResultStatus::as_str);
        let cells = [Cell::from(self.organization()), ready.into(), dispatched.into(), running.into()];
        self.number(sql, &cells).await
    }
}

fn read_user(row: &Row) -> Result<(Uuid, String)> {
    let id: String = row.try_get(0).map_err(Error::internal)?;
    let name = row.try_get(1).map_err(Error::internal)?;
    Ok((Uuid::parse_str(&id).map_err(Error::internal)?, name))
}
