//! Files in an object store, beside the data folder: S3, Google Cloud Storage, Azure, or another folder.
//!
//! A file is written to the data folder first, and goes to the store when nothing changes it any more. It is removed
//! from the data folder no sooner than the store has given back the same bytes. Rows of `artifacts` say what the store
//! holds; a file without a row is not stored. Product rules, such as when a file may leave, are in the service.

mod bucket;
mod fault;
mod local;
mod reading;
mod rows;
mod sweep;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::{Clock, new_id};
use ringer_base::config::Storage;
use ringer_base::error::{Error, Result};
use ringer_base::tls::Roots;

pub use self::bucket::Bucket;
pub use self::reading::{Direct, Found};
pub use self::rows::Artifact;
pub use self::sweep::Swept;
pub use self::transfer::{End, Move, Moved};
use crate::Store;
use crate::queue::EraseJob;

/// File with the name of a data folder, in it.
const PLACE_FILE: &str = "storage_place";

/// Start of the owners that are one file.
const NOISES: &str = "noises/";

/// Files that are made from others when somebody asks for them, and stay in the data folder.
const MADE_OF_OTHERS: [&str; 3] = [".flac", ".opus", ".part"];

/// The store of an engine, with its data folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Artifacts {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    bucket: Bucket,
    store: Store,
    clock: Clock,
    data: PathBuf,
    place: String,
    cache_bytes: u64,
    lost_after_ms: i64,
    redirect: Option<Duration>,
}

impl Artifacts {
    /// Opens the store of the settings; `None`: they name none. No request is made.
    ///
    /// # Errors
    /// The settings do not fit the store, or the data folder cannot be written. The text names the setting.
    pub async fn open(
        settings: &Storage,
        roots: &Roots,
        store: &Store,
        clock: &Clock,
        data: &Path,
    ) -> Result<Option<Artifacts>, String> {
        let Some(bucket) = Bucket::open(settings, roots)? else { return Ok(None) };
        let place = place_of(data).await.map_err(|error| format!("{}: {error}", data.join(PLACE_FILE).display()))?;
        // A second opening is of the same folder.
        let _ = store.parts.place.set(place.clone());
        let redirect = settings.redirect.then(|| Duration::from_secs(settings.redirect_s));
        let parts = Parts {
            bucket,
            store: store.clone(),
            clock: clock.clone(),
            data: data.to_owned(),
            place,
            cache_bytes: settings.cache_mb << 20,
            lost_after_ms: i64::try_from(settings.lost_after_h * 3_600_000).unwrap_or(i64::MAX),
            redirect,
        };
        Ok(Some(Artifacts { parts: Arc::new(parts) }))
    }

    /// Returns the store alone.
    pub fn bucket(&self) -> &Bucket {
        &self.parts.bucket
    }

    /// Returns the path of an owner's file, as in `results/12/recording.wav`.
    pub fn path_of(owner: &str, name: &str) -> String {
        format!("{owner}/{name}")
    }

    /// Stores the files of an owner that are in the data folder and not in the store as they are. Returns their number.
    ///
    /// # Errors
    /// The first file that could not be stored, with the store's reason. Those before it are stored.
    pub async fn store_owner(&self, owner: &str) -> Result<usize> {
        let mut count = 0;
        for path in local::files_of(&self.parts.data, owner).await? {
            count += usize::from(self.store_file(owner, &path).await?);
        }
        Ok(count)
    }

    /// Stores one file; false when the store has it as it is.
    async fn store_file(&self, owner: &str, path: &str) -> Result<bool> {
        let file = self.parts.data.join(path);
        let Some((bytes, sha256)) = local::digest(&file).await? else { return Ok(false) };
        let known = self.parts.store.org("").read().await?.artifact(path).await?;
        if known.as_ref().is_some_and(|known| known.bytes == bytes && known.sha256 == sha256) {
            return Ok(false);
        }
        self.parts.bucket.put_file(path, &file, bytes, &sha256).await?;
        let stored_ms = self.parts.clock.now_ms();
        let row = Artifact { path: path.to_owned(), owner: owner.to_owned(), bytes, sha256, stored_ms };
        let mut db = self.parts.store.system().await?;
        db.put_artifact(&row).await?;
        db.commit().await?;
        local::mark_stored(&file, stored_ms).await?;
        Ok(true)
    }

    /// Removes files of an owner from the store: those of these paths, or all. One that was stored after `before_ms`
    /// stays.
    ///
    /// # Errors
    /// The first file that could not be removed, with the store's reason. The next call tries the others.
    pub async fn erase(&self, owner: &str, paths: &[String], before_ms: i64) -> Result<()> {
        let mut paths = paths.to_vec();
        if paths.is_empty() {
            let mut db = self.parts.store.org("").read().await?;
            paths = db.artifacts_of(owner).await?.into_iter().map(|row| row.path).collect();
            drop(db);
            // Also what was stored by somebody who died before the row was there.
            paths.extend(self.parts.bucket.list(owner).await?.into_iter().map(|object| object.path));
            // A noise is one object, which is not below itself.
            paths.extend(Some(owner.to_owned()).filter(|_| owner.starts_with(NOISES)));
            paths.sort();
            paths.dedup();
        }
        for path in paths {
            let known = self.parts.store.org("").read().await?.artifact(&path).await?;
            if known.is_some_and(|known| known.stored_ms > before_ms) {
                continue;
            }
            self.parts.bucket.remove(&path).await?;
            let mut db = self.parts.store.system().await?;
            db.drop_artifact(&path).await?;
            db.commit().await?;
        }
        Ok(())
    }

    /// Asks for the removal of files of an owner from the store: those of these paths, or all.
    pub async fn ask_to_erase(&self, owner: &str, paths: Vec<String>) -> Result<()> {
        let mut db = self.parts.store.system().await?;
        let asked_ms = self.parts.clock.now_ms();
        let job = EraseJob { owner: owner.to_owned(), paths, asked_ms, serial: new_id() };
        db.put(&job, asked_ms, None).await?;
        db.commit().await
    }

    /// Forgets that the store holds files of an owner whose names are `wanted`, so that nobody reads them there.
    /// Returns their paths.
    pub async fn forget(&self, owner: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut db = self.parts.store.system().await?;
        let mut paths = Vec::new();
        for artifact in db.artifacts_of(owner).await? {
            let name = artifact.path.rsplit('/').next().unwrap_or_default();
            if wanted(name) {
                db.drop_artifact(&artifact.path).await?;
                paths.push(artifact.path);
            }
        }
        db.commit().await?;
        Ok(paths)
    }

    /// Returns the bytes that the store holds of an owner; of all results and production calls without one.
    pub async fn bytes_of(&self, owner: Option<&str>) -> Result<u64> {
        self.parts.store.org("").read().await?.artifact_bytes(owner).await
    }

    /// True if the store holds a file of an owner.
    pub async fn holds(&self, owner: &str) -> Result<bool> {
        self.parts.store.org("").read().await?.has_artifacts(owner).await
    }

    /// Returns what the store holds of an owner.
    pub async fn artifacts_of(&self, owner: &str) -> Result<Vec<Artifact>> {
        self.parts.store.org("").read().await?.artifacts_of(owner).await
    }
}

/// Returns the name of a data folder, which is made at the first call.
async fn place_of(data: &Path) -> std::io::Result<String> {
    let path = data.join(PLACE_FILE);
    match tokio::fs::read_to_string(&path).await {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    tokio::fs::create_dir_all(data).await?;
    // Two engines on one folder have one name: the first to write it wins.
    let part = data.join(format!("{}.part", new_id()));
    tokio::fs::write(&part, format!("{}\n", new_id())).await?;
    let linked = tokio::fs::hard_link(&part, &path).await;
    tokio::fs::remove_file(&part).await?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    tokio::fs::read_to_string(&path).await.map(|text| text.trim().to_owned())
}

/// Returns a fault of the data folder.
fn local_fault(path: &Path, error: std::io::Error) -> Error {
    Error::internal_by(path.display(), error)
}
