//! Files of results and of production calls, in the data folder.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::Settings;

/// Folder of the results, in the data folder; each result has a folder of its own in it.
pub(crate) const RESULTS_FOLDER: &str = "results";

/// Folder of the recordings of production calls, in the data folder; each call has a folder of its own in it.
pub(crate) const CALLS_FOLDER: &str = "call-logs";

impl Settings {
    /// Returns the folder of the files of a result.
    pub fn result_folder(&self, result_id: i64) -> PathBuf {
        self.data.join(RESULTS_FOLDER).join(result_id.to_string())
    }

    /// Returns the folder of the files of a production call.
    pub(crate) fn call_folder(&self, call_id: Uuid) -> PathBuf {
        self.data.join(CALLS_FOLDER).join(call_id.to_string())
    }

    /// Removes the files of deleted results. A file that cannot be removed is left and logged.
    pub(crate) async fn remove_result_files(&self, result_ids: &[i64]) {
        for id in result_ids {
            if let Err(error) = remove_folder(&self.result_folder(*id)).await {
                tracing::warn!(result = id, %error, "failed to remove files of a deleted result");
            }
        }
    }

    /// Removes the recording of a call. A file that cannot be removed is left and logged.
    pub(crate) async fn remove_call_files(&self, call_id: Uuid) {
        if let Err(error) = remove_folder(&self.call_folder(call_id)).await {
            tracing::warn!(call = %call_id, %error, "failed to remove the recording of a deleted call log");
        }
    }
}

/// Removes a folder with its files; one that is not there needs nothing.
async fn remove_folder(folder: &Path) -> std::io::Result<()> {
    match tokio::fs::remove_dir_all(folder).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
