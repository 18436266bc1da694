//! Files of results and of production calls: in the data folder, and in the object store where there is one.

use std::path::{Path, PathBuf};

use ringer_base::clock;
use ringer_base::error::Result;
use ringer_store::Session;
use ringer_store::queue::StoreJob;
use uuid::Uuid;

use crate::Settings;

/// Folder of the results, in the data folder; each result has a folder of its own in it.
pub(crate) const RESULTS_FOLDER: &str = "results";

/// Folder of the recordings of production calls, in the data folder; each call has a folder of its own in it.
pub(crate) const CALLS_FOLDER: &str = "call-logs";

/// Folder of uploaded background noises, in the data folder.
pub(crate) const NOISES_FOLDER: &str = "noises";

/// Returns the owner of the files of a result, by which the object store knows it.
pub(crate) fn result_owner(result_id: i64) -> String {
    format!("{RESULTS_FOLDER}/{result_id}")
}

/// Returns the owner of the files of a production call.
pub(crate) fn call_owner(call_id: Uuid) -> String {
    format!("{CALLS_FOLDER}/{call_id}")
}

/// Returns the owner of the file of a background noise.
pub(crate) fn noise_owner(noise: Uuid) -> String {
    format!("{NOISES_FOLDER}/{noise}")
}

impl Settings {
    /// Returns the folder of the files of a result.
    pub fn result_folder(&self, result_id: i64) -> PathBuf {
        self.data.join(RESULTS_FOLDER).join(result_id.to_string())
    }

    /// Returns the folder of the files of a production call.
    pub(crate) fn call_folder(&self, call_id: Uuid) -> PathBuf {
        self.data.join(CALLS_FOLDER).join(call_id.to_string())
    }

    /// Returns the file of an uploaded background noise.
    pub fn noise_file(&self, noise: Uuid) -> PathBuf {
        self.data.join(NOISES_FOLDER).join(noise.to_string())
    }

    /// Removes the files of deleted results. A file that cannot be removed is left and logged.
    pub(crate) async fn remove_result_files(&self, result_ids: &[i64]) {
        for id in result_ids {
            if let Err(error) = remove_folder(&self.result_folder(*id)).await {
                tracing::warn!(result = id, %error, "failed to remove files of a deleted result");
            }
            self.erase(&result_owner(*id)).await;
        }
    }

    /// Removes the recording of a call. A file that cannot be removed is left and logged.
    pub(crate) async fn remove_call_files(&self, call_id: Uuid) {
        if let Err(error) = remove_folder(&self.call_folder(call_id)).await {
            tracing::warn!(call = %call_id, %error, "failed to remove the recording of a deleted call log");
        }
        self.erase(&call_owner(call_id)).await;
    }

    /// Asks for the removal of all files of an owner from the object store. What cannot be asked for is logged, and
    /// found by the next sweep.
    pub(crate) async fn erase(&self, owner: &str) {
        let Some(storage) = &self.storage else { return };
        let asked = async {
            storage.forget(owner, |_| true).await?;
            storage.ask_to_erase(owner, Vec::new()).await
        };
        if let Err(error) = asked.await {
            tracing::warn!(owner, %error, "failed to ask for the removal of files from the object store");
        }
    }

    /// Removes the files of an owner whose names are `wanted` from the object store; returns true if there were any.
    /// From now on nobody reads them there.
    pub(crate) async fn erase_some(&self, owner: &str, wanted: impl Fn(&str) -> bool) -> Result<bool> {
        let Some(storage) = &self.storage else { return Ok(false) };
        let paths = storage.forget(owner, wanted).await?;
        let any = !paths.is_empty();
        if any {
            storage.ask_to_erase(owner, paths).await?;
        }
        Ok(any)
    }

    /// Makes sure that the stored files of an owner are in the data folder.
    ///
    /// # Errors
    /// [`Error::Unavailable`](ringer_base::error::Error::Unavailable) while the object store does not answer.
    pub(crate) async fn bring(&self, owner: &str) -> Result<()> {
        match &self.storage {
            Some(storage) => storage.bring_all(owner).await,
            None => Ok(()),
        }
    }

    /// Asks for the files of an owner to be stored, in the transaction of the change that ends their changes.
    pub(crate) async fn ask_to_store(&self, db: &mut Session, owner: String, now_ms: i64) -> Result<()> {
        if self.storage.is_none() {
            return Ok(());
        }
        let job = StoreJob { organization: db.organization().to_owned(), owner, serial: clock::new_id() };
        db.put(&job, now_ms, None).await
    }
}

/// Removes a folder with its files; one that is not there needs nothing.
async fn remove_folder(folder: &Path) -> std::io::Result<()> {
    match tokio::fs::remove_dir_all(folder).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
