//! Reads of what a store holds: by range, by a signed address, or as a copy in the data folder.

use std::path::PathBuf;

use ringer_base::error::{Error, Result};

use super::{Artifact, Artifacts, local};

/// Place of a file that readers ask for.
#[derive(Clone, Debug)]
pub enum Found {
    /// In the data folder.
    Here(PathBuf),
    /// A file of the store, without a copy here.
    Stored(Direct),
}

/// A file that is read from the store, without a copy.
#[derive(Clone, Debug)]
pub struct Direct {
    artifacts: Artifacts,
    artifact: Artifact,
}

impl Direct {
    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.artifact.bytes
    }

    /// Returns the SHA-256 of its content.
    pub fn sha256(&self) -> &str {
        &self.artifact.sha256
    }

    /// Reads `count` bytes from a position on, fewer at the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the store does not answer; [`Error::NotAvailable`] when it has lost the file.
    pub async fn read_range(&self, at: u64, count: u64) -> Result<Vec<u8>> {
        let count = count.min(self.artifact.bytes.saturating_sub(at));
        match self.artifacts.parts.bucket.read_range(&self.artifact.path, at, count).await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(missing(&self.artifacts, &self.artifact.path)),
            Err(error) => Err(away(&error)),
        }
    }

    /// Returns an address at which anybody may read it for some time; `None`: the settings or the store give none.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be signed.
    pub async fn address(&self) -> Result<Option<String>> {
        let parts = &self.artifacts.parts;
        let Some(lasts) = parts.redirect else { return Ok(None) };
        parts.bucket.sign_address(&self.artifact.path, lasts).await.map_err(|error| away(&error))
    }
}

/// Returns the error for a reader while the store does not answer. The reason is logged.
fn away(error: &Error) -> Error {
    tracing::warn!(%error, "a file cannot be read from the object store");
    Error::Unavailable("The object store does not answer".to_owned())
}

/// Returns the error for a reader of a file that the store should have.
fn missing(artifacts: &Artifacts, path: &str) -> Error {
    tracing::error!(store = artifacts.parts.bucket.name(), path, "the object store has lost a file");
    Error::NotAvailable("File is missing in the object store".to_owned())
}

impl Artifacts {
    /// Finds a file: in the data folder, else in the store; `None`: in neither.
    pub async fn find(&self, path: &str) -> Result<Option<Found>> {
        let here = self.parts.data.join(path);
        let is_here = tokio::fs::try_exists(&here).await.unwrap_or(false);
        if is_here && self.parts.redirect.is_none() {
            return Ok(Some(Found::Here(here)));
        }
        // Readers are sent to the store also where a copy is here.
        let known = self.parts.store.org("").read().await?.artifact(path).await?;
        let stored = known.map(|artifact| Found::Stored(Direct { artifacts: self.clone(), artifact }));
        Ok(stored.or_else(|| is_here.then_some(Found::Here(here))))
    }

    /// Makes sure that a stored file is in the data folder; false: the store does not hold it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the store does not answer.
    pub async fn bring(&self, path: &str) -> Result<bool> {
        let here = self.parts.data.join(path);
        if tokio::fs::try_exists(&here).await.unwrap_or(false) {
            return Ok(true);
        }
        match self.parts.store.org("").read().await?.artifact(path).await? {
            Some(artifact) => self.copy_here(&artifact).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Makes sure that every stored file of an owner is in the data folder.
    ///
    /// # Errors
    /// As [`Artifacts::bring`].
    pub async fn bring_all(&self, owner: &str) -> Result<()> {
        for artifact in self.artifacts_of(owner).await? {
            if !tokio::fs::try_exists(self.parts.data.join(&artifact.path)).await.unwrap_or(false) {
                self.copy_here(&artifact).await?;
            }
        }
        Ok(())
    }

    async fn copy_here(&self, artifact: &Artifact) -> Result<()> {
        let to = self.parts.data.join(&artifact.path);
        match self.parts.bucket.fetch(&artifact.path, &to, artifact.bytes, &artifact.sha256).await {
            Ok(true) => local::mark_stored(&to, artifact.stored_ms).await,
            Ok(false) => Err(missing(self, &artifact.path)),
            Err(error) => Err(away(&error)),
        }
    }
}
