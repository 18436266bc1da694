//! Moving all files from one store to another, or between a store and the data folder. What was broken off goes on
//! where it was.

use std::path::{Path, PathBuf};

use ringer_base::clock::{Clock, new_id};
use ringer_base::error::Result;

use super::{Artifact, Bucket, local, local_fault};
use crate::Store;

/// File that says how far a move has come, in the data folder.
const PROGRESS: &str = "storage_move";
/// Rows that are read in one piece.
const PIECE: i64 = 200;

/// One side of a move.
#[derive(Clone, Debug)]
pub enum End {
    /// The data folder of the engine.
    Local,
    /// A store of objects.
    Bucket(Bucket),
}

impl End {
    /// Returns the name of the side, for display.
    pub fn name(&self) -> &str {
        match self {
            End::Local => "local",
            End::Bucket(bucket) => bucket.name(),
        }
    }
}

/// A move of all files of a database.
#[derive(Clone, Debug)]
pub struct Move {
    /// Database whose files are moved.
    pub store: Store,
    /// Clock of the rows.
    pub clock: Clock,
    /// Data folder of the engine.
    pub data: PathBuf,
    /// Side that has the files. They stay there.
    pub from: End,
    /// Side that gets them.
    pub to: End,
}

/// Numbers of a move.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files that were copied.
    pub copied: u64,
    /// Bytes of the copied files.
    pub bytes: u64,
    /// Files that were there already.
    pub present: u64,
    /// Files that the first side should have and has not.
    pub missing: u64,
    /// Results and calls that are not over, and stay where they are.
    pub open: u64,
}

impl Move {
    /// Returns the owners of files in the data folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn owners(&self) -> Result<Vec<String>> {
        super::sweep::owners_in(&self.data).await
    }

    /// Moves everything. `owners`: owners in the data folder whose files may leave it, and the number of those that may
    /// not. `told` is called after each file that was copied or is missing.
    ///
    /// # Errors
    /// The first file that could not be moved, with the reason. Those before it are moved.
    pub async fn run(&self, owners: (&[String], u64), mut told: impl FnMut(&str, Moved)) -> Result<Moved> {
        let mut moved = Moved { open: owners.1, ..Moved::default() };
        match (&self.from, &self.to) {
            (End::Local, End::Bucket(to)) => self.send(owners.0, to, &mut moved, &mut told).await?,
            (End::Bucket(from), to) => self.copy(from, to, &mut moved, &mut told).await?,
            (End::Local, End::Local) => {}
        }
        Ok(moved)
    }

    /// Moves files of the data folder to a store.
    async fn send(
        &self,
        owners: &[String],
        to: &Bucket,
        moved: &mut Moved,
        told: &mut impl FnMut(&str, Moved),
    ) -> Result<()> {
        for owner in owners {
            for path in local::files_of(&self.data, owner).await? {
                let file = self.data.join(&path);
                let Some((bytes, sha256)) = local::digest(&file).await? else { continue };
                let known = self.store.org("").read().await?.artifact(&path).await?;
                let is_same = known.is_some_and(|known| known.bytes == bytes && known.sha256 == sha256);
                if is_same && to.size(&path).await? == Some(bytes) {
                    moved.present += 1;
                    continue;
                }
                to.put_file(&path, &file, bytes, &sha256).await?;
                let stored_ms = self.clock.now_ms();
                let mut db = self.store.system().await?;
                let row = Artifact { path: path.clone(), owner: owner.clone(), bytes, sha256, stored_ms };
                db.put_artifact(&row).await?;
                db.commit().await?;
                local::mark_stored(&file, stored_ms).await?;
                (moved.copied, moved.bytes) = (moved.copied + 1, moved.bytes + bytes);
                told(&path, *moved);
            }
        }
        Ok(())
    }

    /// Copies what the rows name.
    async fn copy(&self, from: &Bucket, to: &End, moved: &mut Moved, told: &mut impl FnMut(&str, Moved)) -> Result<()> {
        let mut progress = Progress::open(&self.data, &format!("{} {}", from.name(), to.name())).await?;
        let mut after = String::new();
        loop {
            let rows = self.store.org("").read().await?.artifacts_after(&after, PIECE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.path.clone();
            for row in rows {
                if self.is_there(&row, to, row.path <= progress.reached).await? {
                    moved.present += 1;
                } else if self.copy_one(&row, from, to).await? {
                    (moved.copied, moved.bytes) = (moved.copied + 1, moved.bytes + row.bytes);
                    told(&row.path, *moved);
                } else {
                    moved.missing += 1;
                    told(&row.path, *moved);
                }
                progress.reach(&row.path).await?;
            }
        }
    }

    /// True if the second side has a file. What this move has not reached before is compared byte by byte.
    async fn is_there(&self, row: &Artifact, to: &End, is_reached: bool) -> Result<bool> {
        let found = match to {
            End::Local => local::digest(&self.data.join(&row.path)).await?,
            End::Bucket(to) if is_reached => return Ok(to.size(&row.path).await? == Some(row.bytes)),
            End::Bucket(to) => match to.size(&row.path).await? {
                Some(size) if size == row.bytes => to.digest(&row.path).await?,
                _ => None,
            },
        };
        Ok(found.is_some_and(|(bytes, sha256)| bytes == row.bytes && sha256 == row.sha256))
    }

    async fn copy_one(&self, row: &Artifact, from: &Bucket, to: &End) -> Result<bool> {
        let End::Bucket(to) = to else {
            let file = self.data.join(&row.path);
            let fetched = from.fetch(&row.path, &file, row.bytes, &row.sha256).await?;
            if fetched {
                local::mark_stored(&file, row.stored_ms).await?;
            }
            return Ok(fetched);
        };
        let between = self.data.join(format!("{}.move.part", new_id()));
        let fetched = from.fetch(&row.path, &between, row.bytes, &row.sha256).await;
        let put = match fetched {
            Ok(true) => to.put_file(&row.path, &between, row.bytes, &row.sha256).await.map(|()| true),
            other => other,
        };
        let _ = tokio::fs::remove_file(&between).await;
        put
    }
}

/// The last path that a move between two sides has reached, kept in the data folder.
struct Progress {
    file: PathBuf,
    sides: String,
    reached: String,
}

impl Progress {
    async fn open(data: &Path, sides: &str) -> Result<Progress> {
        let file = data.join(PROGRESS);
        let text = tokio::fs::read_to_string(&file).await.unwrap_or_default();
        let mut lines = text.lines();
        // That of another move says nothing of this one.
        let reached = lines.next().filter(|line| *line == sides).and_then(|_| lines.next()).unwrap_or_default();
        Ok(Progress { file, sides: sides.to_owned(), reached: reached.to_owned() })
    }

    async fn reach(&mut self, path: &str) -> Result<()> {
        if path <= self.reached.as_str() {
            return Ok(());
        }
        self.reached = path.to_owned();
        let part = self.file.with_extension("part");
        let written = tokio::fs::write(&part, format!("{}\n{}\n", self.sides, self.reached)).await;
        written.map_err(|error| local_fault(&part, error))?;
        tokio::fs::rename(&part, &self.file).await.map_err(|error| local_fault(&self.file, error))
    }
}
