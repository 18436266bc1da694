//! Periodic cleaning beside the jobs: data folders of other engines, local copies, and files without an owner.

use std::path::Path;
use std::time::SystemTime;

use futures_util::TryStreamExt;
use ringer_base::clock::new_id;
use ringer_base::error::{Error, Result};

use super::{Artifacts, NOISES, local};
use crate::Session;
use crate::queue::{EraseJob, StoreJob};

/// A data folder that nobody has worked in for so long keeps no job but storing to itself.
const AWAY_MS: i64 = 120_000;
/// An object without a row is nobody's after so long: an upload is not yet in the rows.
const ORPHAN_MS: i64 = 24 * 3_600_000;
/// Owners that are looked at in one piece.
const PIECE: i64 = 500;
/// Object with the id of the database whose files a store holds.
const DATABASE_OBJECT: &str = "ringer-database";
/// Start of the id of a database among the places.
const DATABASE: &str = "database:";
/// Folders of owners, in the data folder and in the store.
const FOLDERS: [&str; 3] = ["results", "call-logs", "noises"];

/// Numbers of what one sweep removed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Objects that belonged to nobody.
    pub orphans: u64,
    /// Owners that are gone, whose files are to be removed.
    pub owners: u64,
}

impl Artifacts {
    /// Tells other engines that this one works, and takes over what those that are gone would have done.
    pub async fn stay(&self) -> Result<()> {
        let now = self.parts.clock.now_ms();
        let mut db = self.parts.store.system().await?;
        db.see_place(&self.parts.place, now).await?;
        if db.free_jobs_of_places(now - AWAY_MS).await? > 0 {
            db.note_job();
        }
        db.commit().await
    }

    /// Removes and returns the jobs of data folders that nobody has worked in for as long as the settings say.
    pub async fn take_lost(&self) -> Result<Vec<StoreJob>> {
        let before = self.parts.clock.now_ms() - self.parts.lost_after_ms;
        let mut db = self.parts.store.system().await?;
        let jobs = db.take_jobs_of_lost_places(before).await?;
        db.commit().await?;
        Ok(jobs)
    }

    /// True if a file that is not here may still be in the data folder of another engine: one has worked lately, and
    /// the file is not older than the settings allow.
    pub async fn may_be_elsewhere(&self, since_ms: i64) -> Result<bool> {
        let before = self.parts.clock.now_ms() - self.parts.lost_after_ms;
        let mut db = self.parts.store.org("").read().await?;
        Ok(since_ms >= before && db.sees_other_place(&self.parts.place, before).await?)
    }

    /// Returns the owners in the data folder of which the store holds nothing, and that no job is to store.
    pub async fn owners_left(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for folder in FOLDERS {
            for name in local_owners(&self.parts.data, folder).await? {
                let owner = format!("{folder}/{name}");
                let mut db = self.parts.store.org("").read().await?;
                if !db.has_artifacts(&owner).await? && !db.has_store_job(&owner).await? {
                    found.push(owner);
                }
            }
        }
        Ok(found)
    }

    /// Removes local copies of results and production calls until they take no more than the settings allow; those that
    /// nobody has read for the longest time go first. Returns the bytes that it freed.
    pub async fn evict(&self) -> Result<u64> {
        let mut copies = Vec::new();
        for folder in &FOLDERS[..2] {
            for name in local_owners(&self.parts.data, folder).await? {
                copies.extend(self.copies_of(&format!("{folder}/{name}")).await?);
            }
        }
        copies.sort_by_key(|copy| copy.read_at);
        let mut taken: u64 = copies.iter().map(|copy| copy.bytes).sum();
        let mut freed = 0;
        for copy in copies {
            if taken <= self.parts.cache_bytes {
                break;
            }
            if tokio::fs::remove_file(self.parts.data.join(&copy.path)).await.is_ok() {
                freed += copy.bytes;
            }
            taken -= copy.bytes;
            if let Some((owner, _)) = copy.path.rsplit_once('/') {
                // It goes when it is empty.
                let _ = tokio::fs::remove_dir(self.parts.data.join(owner)).await;
            }
        }
        Ok(freed)
    }

    /// Removes the local copies of one owner, where none are kept.
    pub async fn evict_owner(&self, owner: &str) -> Result<()> {
        if self.parts.cache_bytes > 0 || owner.starts_with(NOISES) {
            return Ok(());
        }
        for copy in self.copies_of(owner).await? {
            let _ = tokio::fs::remove_file(self.parts.data.join(&copy.path)).await;
        }
        let _ = tokio::fs::remove_dir(self.parts.data.join(owner)).await;
        Ok(())
    }

    /// Returns the files of an owner that can be had again: stored ones that were not changed since, and what is made
    /// of them.
    async fn copies_of(&self, owner: &str) -> Result<Vec<Copy>> {
        let held = self.artifacts_of(owner).await?;
        let mut copies = Vec::new();
        if held.is_empty() {
            return Ok(copies);
        }
        for name in local::names_in(&self.parts.data.join(owner)).await? {
            let path = Artifacts::path_of(owner, &name);
            let Ok(found) = tokio::fs::metadata(self.parts.data.join(&path)).await else { continue };
            let is_made = name.ends_with(".flac") || name.ends_with(".opus");
            let stored = held.iter().find(|artifact| artifact.path == path);
            if is_made || stored.is_some_and(|artifact| local::is_stored(&found, artifact.stored_ms)) {
                let read_at = found.accessed().unwrap_or(SystemTime::UNIX_EPOCH);
                copies.push(Copy { path, bytes: found.len(), read_at });
            }
        }
        Ok(copies)
    }

    /// Removes objects that belong to nobody for a day, and asks for the removal of files whose owners are gone. A
    /// store that another database uses is left alone.
    ///
    /// # Errors
    /// The store's reason, or that the store is another database's.
    pub async fn sweep(&self) -> Result<Swept> {
        self.check_database().await?;
        let before = self.parts.clock.now_ms() - ORPHAN_MS;
        let mut swept = Swept::default();
        for folder in FOLDERS {
            let mut objects = self.parts.bucket.stream(folder);
            while let Some(object) = objects.try_next().await? {
                let known = self.parts.store.org("").read().await?.artifact(&object.path).await?;
                if known.is_none() && object.changed_ms < before {
                    self.parts.bucket.remove(&object.path).await?;
                    swept.orphans += 1;
                }
            }
        }
        let mut db = self.parts.store.system().await?;
        for owner in db.artifacts_without_rows(PIECE).await? {
            let asked_ms = self.parts.clock.now_ms();
            let job = EraseJob { owner, paths: Vec::new(), asked_ms, serial: new_id() };
            db.put(&job, asked_ms, None).await?;
            swept.owners += 1;
        }
        db.commit().await?;
        Ok(swept)
    }

    /// Makes sure that the store is this database's; the first one that uses a store writes its id there.
    ///
    /// # Errors
    /// The store's reason, or that it is another database's.
    pub async fn check_database(&self) -> Result<()> {
        let mut db = self.parts.store.system().await?;
        let id = db.database_id().await?;
        db.commit().await?;
        let bucket = &self.parts.bucket;
        match bucket.read_small(DATABASE_OBJECT).await? {
            None => bucket.write_small(DATABASE_OBJECT, id.as_bytes()).await,
            Some(found) if found == id.as_bytes() => Ok(()),
            Some(_) => Err(Error::internal(format!(
                "object store {}: it holds the files of another database ({DATABASE_OBJECT}): give each its own prefix in \
                 storage.url",
                bucket.name()
            ))),
        }
    }
}

/// A file of the data folder that can be had again.
struct Copy {
    path: String,
    bytes: u64,
    read_at: SystemTime,
}

/// Returns the owners in a data folder.
pub(super) async fn owners_in(data: &Path) -> Result<Vec<String>> {
    let mut owners = Vec::new();
    for folder in FOLDERS {
        owners.extend(local_owners(data, folder).await?.into_iter().map(|name| format!("{folder}/{name}")));
    }
    owners.sort();
    Ok(owners)
}

/// Returns the names of owners in a folder of the data folder.
async fn local_owners(data: &Path, folder: &str) -> Result<Vec<String>> {
    let path = data.join(folder);
    let mut entries = match tokio::fs::read_dir(&path).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(super::local_fault(&path, error)),
    };
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(|error| super::local_fault(&path, error))? {
        // Others are unfinished, or are being removed.
        names.extend(entry.file_name().into_string().ok().filter(|name| !name.contains('.')));
    }
    Ok(names)
}

impl Session {
    /// Returns the id of the database, which is made at the first call.
    async fn database_id(&mut self) -> Result<String> {
        let sql = "SELECT id FROM places WHERE id LIKE $1 ORDER BY id LIMIT 1";
        if let Some(row) = self.row(sql, &[format!("{DATABASE}%").into()]).await? {
            return row.try_get(0).map_err(Error::internal);
        }
        let id = format!("{DATABASE}{}", new_id());
        self.see_place(&id, 0).await?;
        Ok(id)
    }
}
