//! Organizations and API keys. A key is found by its hash, before any organization is known.

use ringer_base::error::{Error, Result};
use ringer_model::api_key::Scope;
use uuid::Uuid;

use super::db::{self, Cell, Database, Location};
use super::{Session, Store};

/// An API key as stored: never its text.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRow {
    /// Identifier of the key.
    pub id: Uuid,
    /// Organization that the key belongs to.
    pub organization: String,
    /// Hex SHA-256 of the key's text.
    pub hash: String,
    /// First characters of the key's text.
    pub prefix: String,
    /// Rights of the key.
    pub scope: Scope,
    /// Free text for the reader.
    pub name: String,
    /// User of the key; `None`: it was made without one.
    pub user_id: Option<Uuid>,
    /// True: the key is no longer accepted.
    pub revoked: bool,
    /// Time of its creation, milliseconds since 1970.
    pub created_ms: i64,
}

/// Holder of a valid key.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Identifier of the key.
    pub id: Uuid,
    /// Organization that the key belongs to.
    pub organization: String,
    /// Rights of the key.
    pub scope: Scope,
    /// User of the key; `None`: it was made without one.
    pub user_id: Option<Uuid>,
    /// Name of the key.
    pub name: String,
}

const FIELDS: &str = "id, org_id, hash, prefix, scope, name, user_id, revoked, created_ms";

const ORGANIZATIONS: &str = "SELECT id, name FROM organizations ORDER BY name";

impl Store {
    /// Returns the holder of the key with this hash; `None`: unknown or revoked.
    pub async fn holder_of(&self, hash: &str) -> Result<Option<Holder>> {
        let sql = "SELECT id, org_id, scope, user_id, name FROM api_keys WHERE hash = $1 AND revoked = 0";
        let row = self.org("").read().await?.row(sql, &[hash.into()]).await?;
        row.as_ref().map(read_holder).transpose()
    }

    /// True if any organization has a key, revoked or not.
    pub async fn has_keys(&self) -> Result<bool> {
        let row = self.org("").read().await?.row("SELECT 1 FROM api_keys LIMIT 1", &[]).await?;
        Ok(row.is_some())
    }
}

impl Session {
    /// Returns the id of the organization called `name`, created with the id `fresh` when absent.
    pub async fn organization_named(&mut self, name: &str, fresh: Uuid, now_ms: i64) -> Result<String> {
        let sql = "INSERT INTO organizations (id, name, created_ms) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
        self.execute(sql, &[fresh.into(), name.into(), now_ms.into()]).await?;
        self.organization_id(name).await?.ok_or(Error::NotFound("Organization"))
    }

    /// Returns the id of the organization called `name`; `None` when there is none.
    pub async fn organization_id(&mut self, name: &str) -> Result<Option<String>> {
        let row = self.row("SELECT id FROM organizations WHERE name = $1", &[name.into()]).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// Returns the name of this session's organization; `None` when it has none.
    pub async fn organization_name(&mut self) -> Result<Option<String>> {
        let cells = [Cell::from(self.organization())];
        let row = self.row("SELECT name FROM organizations WHERE id = $1", &cells).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// True if the organization's key with this id was revoked.
    pub async fn is_revoked(&mut self, id: Uuid) -> Result<bool> {
        let sql = "SELECT 1 FROM api_keys WHERE org_id = $1 AND id = $2 AND revoked = 1";
        let cells = [Cell::from(self.organization()), id.into()];
        Ok(self.row(sql, &cells).await?.is_some())
    }

    /// True if the engine of this name ([`Database::engine`]) no longer works on the database.
    pub async fn is_engine_gone(&mut self, engine: &str) -> Result<bool> {
        self.link.is_gone(engine).await
    }

    /// Returns (id, name) of every organization, by name.
    pub async fn organizations(&mut self) -> Result<Vec<(String, String)>> {
        read_organizations(&self.rows(ORGANIZATIONS, &[]).await?)
    }

    /// Inserts a key; does nothing when its hash is known.
    pub async fn insert_key(&mut self, key: &KeyRow) -> Result<()> {
        let sql = format!(
            "INSERT INTO api_keys ({FIELDS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (hash) DO NOTHING"
        );
        let cells = [
            key.id.into(),
            key.organization.as_str().into(),
            key.hash.as_str().into(),
            key.prefix.as_str().into(),
            key.scope.as_str().into(),
            key.name.as_str().into(),
            key.user_id.map(|id| id.to_string()).into(),
            key.revoked.into(),
            key.created_ms.into(),
        ];
        self.execute(&sql, &cells).await.map(drop)
    }

    /// Returns the organization's keys, newest first.
    pub async fn keys(&mut self) -> Result<Vec<KeyRow>> {
        let sql = format!("SELECT {FIELDS} FROM api_keys WHERE org_id = $1 ORDER BY created_ms DESC, id DESC");
        let cells = [Cell::from(self.organization())];
        self.rows(&sql, &cells).await?.iter().map(read_key).collect()
    }

    /// Gives a key that is not revoked another text, by its hash; false when it has another one by now.
    pub async fn change_key(&mut self, id: Uuid, old: &str, new: &str, prefix: &str) -> Result<bool> {
        let sql = "UPDATE api_keys SET hash = $1, prefix = $2 WHERE id = $3 AND hash = $4 AND revoked = 0";
        let cells = [new.into(), prefix.into(), id.into(), old.into()];
        Ok(self.execute(sql, &cells).await? == 1)
    }

    /// Marks a key as no longer accepted.
    pub async fn revoke_key(&mut self, id: Uuid) -> Result<()> {
        let cells = [id.into(), self.organization().into()];
        self.execute("UPDATE api_keys SET revoked = 1 WHERE id = $1 AND org_id = $2", &cells).await.map(drop)
    }
}

/// Returns (id, name) of every organization of a database that is there, which is not changed. `None`: there is none.
///
/// # Errors
/// The database cannot be opened, or is not one of this program.
pub async fn organizations_at(location: Location) -> Result<Option<Vec<(String, String)>>> {
    if matches!(&location, Location::File(path) if !path.exists()) {
        return Ok(None);
    }
    let database = Database::open(location).await?;
    let rows = database.reader().await?.rows(ORGANIZATIONS, &[]).await;
    database.close().await;
    read_organizations(&rows?).map(Some)
}

fn read_organizations(rows: &[db::Row]) -> Result<Vec<(String, String)>> {
    let read = |row: &db::Row| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter().map(read).collect::<std::result::Result<_, sqlx::Error>>().map_err(Error::internal)
}

fn read_holder(row: &db::Row) -> Result<Holder> {
    let text = |column: &str| row.try_get::<&str, _>(column).map_err(Error::internal);
    let user: Option<String> = row.try_get("user_id").map_err(Error::internal)?;
    Ok(Holder {
        user_id: user.map(|id| Uuid::parse_str(&id).map_err(Error::internal)).transpose()?,
        id: Uuid::parse_str(text("id")?).map_err(Error::internal)?,
        organization: text("org_id")?.to_owned(),
        scope: Scope::parse(text("scope")?).ok_or_else(|| Error::internal("a key has no known scope"))?,
        name: text("name")?.to_owned(),
    })
}

fn read_key(row: &db::Row) -> Result<KeyRow> {
    let Holder { id, organization, scope, user_id, name } = read_holder(row)?;
    let text = |column: &str| row.try_get::<String, _>(column).map_err(Error::internal);
    let number = |column: &str| row.try_get::<i64, _>(column).map_err(Error::internal);
    Ok(KeyRow {
        id,
        organization,
        scope,
        hash: text("hash")?,
        prefix: text("prefix")?,
        name,
        user_id,
        revoked: number("revoked")? != 0,
        created_ms: number("created_ms")?,
    })
}
