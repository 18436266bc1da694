//! Rows of the files that a store holds, and of the data folders of engines.

use ringer_base::error::{Error, Result};

use crate::db::{Cell, Row};
use crate::queue::{Job, StoreJob};
use crate::{Session, from_text};

/// A file that the store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Path in the store, and below the data folder.
    pub path: String,
    /// Folder of a result or a production call, or an uploaded noise: `results/12`.
    pub owner: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
    /// Time at which the store had it, milliseconds since 1970.
    pub stored_ms: i64,
}

const COLUMNS: &str = "path, owner, bytes, sha256, stored_ms";

fn artifact_in(row: &Row) -> Result<Artifact> {
    let read = || -> Result<Artifact, sqlx::Error> {
        Ok(Artifact {
            path: row.try_get(0)?,
            owner: row.try_get(1)?,
            bytes: row.try_get::<i64, _>(2)?.unsigned_abs(),
            sha256: row.try_get(3)?,
            stored_ms: row.try_get(4)?,
        })
    };
    read().map_err(Error::internal)
}

impl Session {
    /// Notes that the store holds a file.
    pub async fn put_artifact(&mut self, artifact: &Artifact) -> Result<()> {
        let sql = "INSERT INTO artifacts (path, owner, bytes, sha256, stored_ms) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (path) DO UPDATE SET bytes = excluded.bytes, sha256 = excluded.sha256, \
                   stored_ms = excluded.stored_ms";
        let cells = [
            artifact.path.as_str().into(),
            artifact.owner.as_str().into(),
            i64::try_from(artifact.bytes).unwrap_or(i64::MAX).into(),
            artifact.sha256.as_str().into(),
            artifact.stored_ms.into(),
        ];
        self.execute(sql, &cells).await.map(drop)
    }

    /// Notes that the store does not hold a file any more.
    pub async fn drop_artifact(&mut self, path: &str) -> Result<()> {
        self.execute("DELETE FROM artifacts WHERE path = $1", &[path.into()]).await.map(drop)
    }

    /// Returns a file that the store holds, by its path.
    pub async fn artifact(&mut self, path: &str) -> Result<Option<Artifact>> {
        let sql = format!("SELECT {COLUMNS} FROM artifacts WHERE path = $1");
        self.row(&sql, &[path.into()]).await?.as_ref().map(artifact_in).transpose()
    }

    /// Returns the files of an owner that the store holds, by path.
    pub async fn artifacts_of(&mut self, owner: &str) -> Result<Vec<Artifact>> {
        let sql = format!("SELECT {COLUMNS} FROM artifacts WHERE owner = $1 ORDER BY path");
        self.rows(&sql, &[owner.into()]).await?.iter().map(artifact_in).collect()
    }

    /// Returns up to `limit` files that the store holds, in the order of their paths, after `path`.
    pub async fn artifacts_after(&mut self, path: &str, limit: i64) -> Result<Vec<Artifact>> {
        let sql = format!("SELECT {COLUMNS} FROM artifacts WHERE path > $1 ORDER BY path LIMIT $2");
        self.rows(&sql, &[path.into(), limit.into()]).await?.iter().map(artifact_in).collect()
    }

    /// True if the store holds a file of an owner.
    pub async fn has_artifacts(&mut self, owner: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM artifacts WHERE owner = $1 LIMIT 1";
        Ok(self.row(sql, &[owner.into()]).await?.is_some())
    }

    /// Returns the bytes that the store holds of an owner; of all results and production calls without one.
    pub async fn artifact_bytes(&mut self, owner: Option<&str>) -> Result<u64> {
        let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM artifacts";
        let row = match owner {
            Some(owner) => self.row(&format!("{sum} WHERE owner = $1"), &[owner.into()]).await?,
            None => self.row(&format!("{sum} WHERE owner NOT LIKE 'noises/%'"), &[]).await?,
        };
        let bytes: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(Error::internal)?;
        Ok(bytes.unsigned_abs())
    }

    /// Returns the owners of stored files whose rows are gone, up to `limit`.
    pub async fn artifacts_without_rows(&mut self, limit: i64) -> Result<Vec<String>> {
        let mut owners = Vec::new();
        for (folder, table) in [("results", "results"), ("call-logs", "call_logs"), ("noises", "background_noises")] {
            let sql = format!(
                "SELECT DISTINCT owner FROM artifacts WHERE owner LIKE '{folder}/%' AND NOT EXISTS \
                 (SELECT 1 FROM {table} WHERE '{folder}/' || CAST({table}.id AS TEXT) = owner) LIMIT $1"
            );
            let rows = self.rows(&sql, &[limit.into()]).await?;
            for row in &rows {
                owners.push(row.try_get(0).map_err(Error::internal)?);
            }
        }
        Ok(owners)
    }

    /// Returns the organization of the row of a table with this id; `None`: there is none.
    pub async fn organization_with(&mut self, table: &'static str, id: Cell) -> Result<Option<String>> {
        let row = self.row(&format!("SELECT org_id FROM {table} WHERE id = $1"), &[id]).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// Notes that an engine works in a data folder.
    pub async fn see_place(&mut self, place: &str, now_ms: i64) -> Result<()> {
        let sql = "INSERT INTO places (id, seen_ms) VALUES ($1, $2) \
                   ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms";
        self.execute(sql, &[place.into(), now_ms.into()]).await.map(drop)
    }

    /// True if an engine has worked in another data folder than `place` since `since_ms`.
    pub async fn sees_other_place(&mut self, place: &str, since_ms: i64) -> Result<bool> {
        let sql = "SELECT 1 FROM places WHERE id <> $1 AND seen_ms >= $2 LIMIT 1";
        Ok(self.row(sql, &[place.into(), since_ms.into()]).await?.is_some())
    }

    /// Frees for any engine the jobs, except storing, of data folders that nobody has worked in since `before_ms`.
    pub async fn free_jobs_of_places(&mut self, before_ms: i64) -> Result<u64> {
        let sql = "UPDATE jobs SET place = NULL WHERE place IS NOT NULL AND kind <> $2 AND NOT EXISTS \
                   (SELECT 1 FROM places WHERE places.id = jobs.place AND places.seen_ms >= $1)";
        self.execute(sql, &[before_ms.into(), StoreJob::NAME.into()]).await
    }

    /// Removes and returns the jobs that store files of data folders that nobody has worked in since `before_ms`.
    pub async fn take_jobs_of_lost_places(&mut self, before_ms: i64) -> Result<Vec<StoreJob>> {
        let sql = "DELETE FROM jobs WHERE kind = $2 AND place IS NOT NULL AND NOT EXISTS \
                   (SELECT 1 FROM places WHERE places.id = jobs.place AND places.seen_ms >= $1) RETURNING payload";
        let rows = self.rows(sql, &[before_ms.into(), StoreJob::NAME.into()]).await?;
        rows.iter().map(|row| from_text(&row.try_get::<String, _>(0).map_err(Error::internal)?)).collect()
    }

    /// True if a job waits that stores the files of an owner.
    pub async fn has_store_job(&mut self, owner: &str) -> Result<bool> {
        let like = format!("store:{owner}:%");
        let sql = "SELECT 1 FROM jobs WHERE kind = $1 AND job_key LIKE $2 LIMIT 1";
        Ok(self.row(sql, &[StoreJob::NAME.into(), like.into()]).await?.is_some())
    }
}
