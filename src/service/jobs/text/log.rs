//! The log of what a written conversation sends and receives over HTTP: a line each, without a word of it.

use std::io;
use std::path::{Path, PathBuf};

use ringer_model::text::Arrived;
use ringer_provider::messages::{Exchange, digest};
use tokio::fs::{self, OpenOptions};
use tokio::io::AsyncWriteExt;

use crate::HTTP_LOG;

/// Log file of HTTP requests; by default none is written.
#[derive(Clone, Default)]
pub(super) struct Log {
    path: Option<PathBuf>,
}

impl Log {
    /// Returns an empty log in the folder of a result.
    pub(crate) async fn begin(folder: &Path) -> Log {
        let path = folder.join(HTTP_LOG);
        let made = async {
            fs::create_dir_all(folder).await?;
            fs::write(&path, "").await
        };
        let made = check_written(made.await);
        Log { path: made.then_some(path) }
    }

    /// Logs a request, whether it was answered or not.
    pub(crate) async fn log_request(&self, began_ms: i64, ended_ms: i64, exchange: &Exchange) {
        self.add(format!("{began_ms} sent {exchange}, {} ms\n", ended_ms - began_ms)).await;
    }

    /// Logs a message of the agent.
    pub(crate) async fn log_message(&self, message: &Arrived) {
        self.add(format!("{} received text {}\n", message.at_ms, digest(message.text.as_bytes()))).await;
    }

    async fn add(&self, line: String) {
        let Some(path) = &self.path else { return };
        let written = async {
            let mut file = OpenOptions::new().append(true).open(path).await?;
            file.write_all(line.as_bytes()).await?;
            file.flush().await
        };
        check_written(written.await);
    }
}

/// Returns true if the log was written; a conversation goes on without it.
fn check_written(written: io::Result<()>) -> bool {
    if let Err(error) = &written {
        tracing::warn!(%error, "failed to write {HTTP_LOG}");
    }
    written.is_ok()
}
