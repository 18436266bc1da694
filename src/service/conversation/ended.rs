//! Records of a conversation that is over: stored at its end, or kept on the disk until the database can be written
//! again. A conversation that took place is not lost because the database was away at its end.

use std::path::{Path, PathBuf};

use ringer_base::error::{Error, Result};
use ringer_engine::EffectTime;
use ringer_judge::Redactor;
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_model::transcript::Transcript;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::Conversations;
use super::outcome::CallOutcome;
use crate::conversation::artifacts::files;

/// Folder of the records that wait for the database, in the data folder: one file a result.
const ENDED_FOLDER: &str = "ended";
/// Attempts to store or keep the records of a conversation.
const ATTEMPTS: u32 = 30;
/// Milliseconds between two of them.
const PAUSE_MS: i64 = 2000;

/// Records that a conversation leaves at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended<Entry = Value> {
    /// Organization of the result.
    pub organization: String,
    /// Result that the conversation belongs to.
    pub result_id: i64,
    /// Attempt of the result; a later one has records of its own.
    pub attempt: i64,
    /// Wall clock at which the agent answered, in milliseconds since 1970; `None` if nobody did, and in writing.
    pub connected_at_ms: Option<i64>,
    /// Events in order, as they are stored.
    pub timeline: Vec<Entry>,
    /// Words of both sides; `None` if the conversation did not take place.
    pub transcript: Option<Transcript>,
    /// Outcome of the conversation.
    pub outcome: CallOutcome,
    /// Times of the work for the conversation; none where traces are not sent.
    #[serde(default)]
    pub effects: Vec<EffectTime>,
}

impl Conversations {
    /// Stores the records of a conversation and moves its result on. Where the database cannot be written, they are
    /// kept on the disk and stored later, also by the next start. Where neither can be done, the result ends as
    /// RESULT_NOT_STORED.
    ///
    /// # Errors
    /// The result is gone, or cannot be written either.
    pub async fn store_ended<Entry: Serialize + Send + Sync>(
        &self,
        ended: Ended<Entry>,
        redactor: Option<&Redactor>,
    ) -> Result<()> {
        let mut last = Error::internal("nothing was tried");
        for attempt in 0..ATTEMPTS {
            // On the heap: unoptimised, each future around it would hold it once more on a thread's stack.
            let error = match Box::pin(self.try_store(&ended, redactor)).await {
                Err(error @ Error::NotFound(_)) => return Err(error),
                Err(error) => error,
                done => return done,
            };
            match keep(&self.settings.data, &ended).await {
                Ok(path) => {
                    let path = path.display();
                    tracing::error!(result_id = ended.result_id, %error, %path, "the database did not take a conversation: it is kept here until it does");
                    return Ok(());
                }
                Err(why) => {
                    tracing::error!(result_id = ended.result_id, attempt, %error, %why, "a conversation could be neither stored nor kept");
                    last = error;
                }
            }
            self.clock.until(self.clock.now_ms() + PAUSE_MS).await;
        }
        let (code, message) = (ErrorCode::ResultNotStored, "The outcome of the call could neither be stored nor kept");
        match self.abort_with(&ended.organization, ended.result_id, code, message).await.map_err(|_| last)? {
            true => self.forget_private(&ended.organization, ended.result_id).await,
            false => Ok(()),
        }
    }

    /// Stores the records that were kept while the database could not be written. Returns their number.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn restore_ended(&self) -> Result<usize> {
        let mut restored = 0;
        for path in files(&self.settings.data.join(ENDED_FOLDER)).await? {
            let id = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            if let Some(id) = id.filter(|_| path.extension().is_some_and(|suffix| suffix == "json")) {
                restored += usize::from(self.restore_one(id).await);
            }
        }
        Ok(restored)
    }

    /// Stores the records of a result that were kept; returns false if there are none, or if they cannot be stored now.
    pub(crate) async fn restore_one(&self, result_id: i64) -> bool {
        let path = path_of(&self.settings.data, result_id);
        let Ok(bytes) = tokio::fs::read(&path).await else { return false };
        let ended: Ended = match serde_json::from_slice(&bytes) {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "these records of a conversation cannot be read: they are laid aside");
                let _ = tokio::fs::rename(&path, path.with_extension("bad")).await;
                return false;
            }
        };
        match self.try_restore(&ended).await {
            Ok(()) | Err(Error::NotFound(_)) => {
                tracing::info!(result_id, "the kept records of a conversation are settled");
                let _ = tokio::fs::remove_file(&path).await;
                true
            }
            Err(error) => {
                tracing::warn!(result_id, %error, "the records of a conversation still wait for the database");
                false
            }
        }
    }

    /// True if records of a result wait for the database.
    pub(crate) async fn has_kept(&self, result_id: i64) -> bool {
        tokio::fs::try_exists(path_of(&self.settings.data, result_id)).await.unwrap_or(false)
    }

    async fn try_restore(&self, ended: &Ended) -> Result<()> {
        let (organization, id) = (&ended.organization, ended.result_id);
        let doc = self.store.org(organization).read().await?.get::<ResultDoc>(id).await?.doc;
        let (is_private, body) = (doc.private, doc.body);
        let is_at_work = matches!(body.status, ResultStatus::Dispatched | ResultStatus::Running);
        let redactor = self.redactor(organization, id).await?;
        if !is_at_work || body.attempt != ended.attempt {
            // Records that were stored before are redacted now, if that failed.
            return match redactor.filter(|_| body.status.is_terminal() && body.attempt == ended.attempt) {
                Some(redactor) if ended.outcome.is_connected && is_private => {
                    Box::pin(self.redact_conversation(organization, id, &redactor)).await
                }
                _ => {
                    tracing::warn!(result_id = id, "the result has gone on without the records of its conversation");
                    Ok(())
                }
            };
        }
        Box::pin(self.try_store(ended, redactor.as_ref())).await
    }

    async fn try_store<Entry: Serialize + Send + Sync>(
        &self,
        ended: &Ended<Entry>,
        redactor: Option<&Redactor>,
    ) -> Result<()> {
        let (organization, id) = (&ended.organization, ended.result_id);
        let is_connected = ended.outcome.is_connected;
        if let (Some(at_ms), ResultStatus::Dispatched) =
            (ended.connected_at_ms, self.status_of(organization, id).await?)
        {
            self.connect(organization, id, ResultStatus::Dispatched, at_ms).await?;
        }
        self.store_timeline(organization, id, &ended.timeline).await?;
        if !ended.effects.is_empty() {
            self.store_effects(organization, id, &ended.effects).await?;
        }
        if let Some(transcript) = &ended.transcript {
            self.store_transcript(organization, transcript).await?;
        }
        if redactor.is_some() && !is_connected && !ended.outcome.is_written {
            self.forget_messages(id).await?;
        }
        Box::pin(self.finish(organization, id, ended.outcome.clone())).await?;
        // Results that are judged are redacted after the judgement, and one that is called again has another
        // conversation.
        match redactor {
            Some(redactor)
                if is_connected
                    && !ended.outcome.is_written
                    && self.status_of(organization, id).await?.is_terminal() =>
            {
                Box::pin(self.redact_conversation(organization, id, redactor)).await
            }
            _ => Ok(()),
        }
    }
}

fn path_of(data: &Path, result_id: i64) -> PathBuf {
    data.join(ENDED_FOLDER).join(format!("{result_id}.json"))
}

/// Writes the records of a conversation on the disk; returns their path.
async fn keep<Entry: Serialize>(data: &Path, ended: &Ended<Entry>) -> std::io::Result<PathBuf> {
    let (path, bytes) = (path_of(data, ended.result_id), serde_json::to_vec(ended)?);
    let folder = data.join(ENDED_FOLDER);
    tokio::fs::create_dir_all(&folder).await?;
    let written = path.with_extension("part");
    // They hold words: nobody else reads them.
    let mut file =
        tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&written).await?;
    file.write_all(&bytes).await?;
    file.sync_all().await?;
    tokio::fs::rename(&written, &path).await?;
    Ok(path)
}
