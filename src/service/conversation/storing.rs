//! Files that go to the object store, and what the record of a result says of its recording meanwhile: `pending`, then
//! `stored` or `lost`.

use ringer_base::error::{Error, Result};
use ringer_model::call_log::CallLogDoc;
use ringer_model::noise::NoiseDoc;
use ringer_model::result::ResultDoc;
use ringer_store::artifacts::{Artifacts, Found};
use ringer_store::queue::StoreJob;
use ringer_store::{Row, Session};
use serde_json::json;
use uuid::Uuid;

use super::Conversations;
use super::artifacts::{PEAKS, RECORDING, is_hidden, is_recording, recording_link, remove_files};
use super::privacy::redactor_of;
use super::transcode::Track;
use crate::Caller;
use crate::files::{CALLS_FOLDER, NOISES_FOLDER, RESULTS_FOLDER, result_owner};

/// Metadata that says where the recording of a result is.
const NOTE: &str = "recording";
const PENDING: &str = "pending";
const STORED: &str = "stored";
const LOST: &str = "lost";

/// Milliseconds after which the files of something that still changes are looked at again.
const LATER_MS: i64 = 5000;
/// The same for a recording that another engine may have.
const ELSEWHERE_MS: i64 = 60_000;

/// Outcome of a job that stores files.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The store has all of them, or there is nothing to store.
    Done,
    /// It is too early; the job is due again after so many milliseconds.
    Later(i64),
}

/// Row that files belong to.
enum Of {
    Result(i64),
    Call(Uuid),
    Noise(Uuid),
}

/// Returns what an owner is; `None`: nothing that this program knows.
fn of(owner: &str) -> Option<Of> {
    match owner.split_once('/')? {
        (RESULTS_FOLDER, id) => id.parse().ok().map(Of::Result),
        (CALLS_FOLDER, id) => id.parse().ok().map(Of::Call),
        (NOISES_FOLDER, id) => id.parse().ok().map(Of::Noise),
        _ => None,
    }
}

fn note_of(doc: &ResultDoc) -> Option<&str> {
    doc.find_note(NOTE).and_then(|note| note.as_str())
}

impl Conversations {
    /// Asks for the files of a result that is finished to be stored. The row is still to be written.
    pub(crate) async fn request_storing(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
        if self.settings.storage.is_some() && row.doc.body.audio_url.is_some() {
            row.doc.note(NOTE, json!(PENDING));
        }
        self.settings.ask_to_store(db, result_owner(row.id), self.clock.now_ms()).await
    }

    /// Asks for the files of a result to be stored that an evaluation may have changed.
    pub(crate) async fn restore_files(&self, db: &mut Session, result_id: i64) -> Result<()> {
        self.settings.ask_to_store(db, result_owner(result_id), self.clock.now_ms()).await
    }

    /// Stores the files of a job's owner, once nothing changes them any more.
    ///
    /// # Errors
    /// The store's reason, or that of the data folder. The files stay where they are.
    pub async fn store_files(&self, job: &StoreJob) -> Result<Stored> {
        let (Some(storage), Some(of)) = (&self.settings.storage, of(&job.owner)) else { return Ok(Stored::Done) };
        let mut db = self.store.org(&job.organization).read().await?;
        let is_private = match of {
            Of::Result(id) => match db.find::<ResultDoc>(id).await? {
                Some(row) if row.doc.body.status.is_terminal() => {
                    drop(db);
                    return self.store_result(storage, job, row).await;
                }
                // Its end asks again.
                Some(_) => return Ok(Stored::Done),
                None => None,
            },
            Of::Call(id) => db.find::<CallLogDoc>(id).await?.map(|row| row.doc.private || !row.doc.status.is_final()),
            Of::Noise(id) => db.find::<NoiseDoc>(id).await?.map(|_| false),
        };
        drop(db);
        match is_private {
            None => storage.erase(&job.owner, &[], i64::MAX).await.map(|()| Stored::Done),
            Some(true) => Ok(Stored::Later(LATER_MS)),
            Some(false) => {
                storage.store_owner(&job.owner).await?;
                self.keep_only_known(storage, job).await?;
                storage.evict_owner(&job.owner).await.map(|()| Stored::Done)
            }
        }
    }

    /// Removes from the store what belongs to something that was deleted while it was stored.
    async fn keep_only_known(&self, storage: &Artifacts, job: &StoreJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).read().await?;
        let is_known = match of(&job.owner) {
            Some(Of::Result(id)) => db.find::<ResultDoc>(id).await?.is_some(),
            Some(Of::Call(id)) => db.find::<CallLogDoc>(id).await?.is_some(),
            Some(Of::Noise(id)) => db.find::<NoiseDoc>(id).await?.is_some(),
            None => true,
        };
        drop(db);
        if is_known { Ok(()) } else { storage.erase(&job.owner, &[], i64::MAX).await }
    }

    async fn store_result(&self, storage: &Artifacts, job: &StoreJob, row: Row<ResultDoc>) -> Result<Stored> {
        let folder = self.settings.result_folder(row.id);
        if row.doc.private {
            return Ok(Stored::Later(LATER_MS));
        }
        let path = Artifacts::path_of(&job.owner, RECORDING);
        let is_here = tokio::fs::try_exists(folder.join(RECORDING)).await.unwrap_or(false);
        let is_lost = note_of(&row.doc) == Some(LOST);
        if is_here && !is_lost && row.doc.body.audio_url.is_none() {
            let mut db = self.store.org(&job.organization).read().await?;
            let redacts = redactor_of(&mut db, &row.doc).await?.is_some();
            drop(db);
            // It was redacted where it is not: nobody has taken out of this one what is private.
            if redacts {
                remove_files(&folder, |_| true).await?;
                return Ok(Stored::Done);
            }
        }
        let is_wanted = row.doc.body.audio_url.is_some() && note_of(&row.doc) != Some(STORED);
        if is_wanted && !is_here && storage.find(&path).await?.is_none() {
            let ended_ms = row.doc.body.end_time.map_or(row.updated_ms, |end| end.0);
            if storage.may_be_elsewhere(ended_ms).await? {
                return Ok(Stored::Later(ELSEWHERE_MS));
            }
            self.tell_lost(&job.organization, row.id).await?;
        }
        storage.store_owner(&job.owner).await?;
        self.keep_only_known(storage, job).await?;
        if storage.artifacts_of(&job.owner).await?.iter().any(|held| held.path == path) {
            let tell = |doc: &mut ResultDoc| {
                if note_of(doc) == Some(LOST) {
                    doc.body.audio_url = Some(recording_link(row.id));
                }
                if doc.body.audio_url.is_some() {
                    doc.note(NOTE, json!(STORED));
                }
            };
            self.tell(&job.organization, row.id, tell).await?;
        }
        storage.evict_owner(&job.owner).await?;
        Ok(Stored::Done)
    }

    async fn tell(&self, organization: &str, id: i64, change: impl FnOnce(&mut ResultDoc) + Send) -> Result<()> {
        match self.amend(organization, id, change).await {
            Ok(_) => self.live.note_change(id),
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn tell_lost(&self, organization: &str, result_id: i64) -> Result<()> {
        tracing::error!(result_id, "the recording of a result was lost with the data folder of its engine");
        let tell = |doc: &mut ResultDoc| {
            doc.body.audio_url = None;
            doc.note(NOTE, json!(LOST));
            doc.warn("the recording was lost with its engine, before the object store had it");
        };
        self.tell(organization, result_id, tell).await
    }

    /// Tells that recordings are lost whose engines have not been seen for as long as the settings allow.
    ///
    /// # Errors
    /// The database's.
    pub async fn tell_lost_recordings(&self) -> Result<()> {
        let Some(storage) = &self.settings.storage else { return Ok(()) };
        for job in storage.take_lost().await? {
            let Some(Of::Result(id)) = of(&job.owner) else { continue };
            let row = self.store.org(&job.organization).read().await?.find::<ResultDoc>(id).await?;
            if row.is_some_and(|row| note_of(&row.doc) == Some(PENDING)) {
                self.tell_lost(&job.organization, id).await?;
            }
        }
        Ok(())
    }

    /// Asks for the files of the data folder to be stored that no job is to store: those of a data folder that was
    /// away, and those from before there was a store. Returns their number.
    ///
    /// # Errors
    /// The database's, or that of the data folder.
    pub async fn store_what_is_left(&self) -> Result<usize> {
        let Some(storage) = &self.settings.storage else { return Ok(0) };
        let owners = storage.owners_left().await?;
        let mut count = 0;
        for owner in owners {
            let Some(organization) = self.organization_of(&owner).await? else { continue };
            let mut db = self.store.org(&organization).write().await?;
            let is_ready = match of(&owner) {
                Some(Of::Result(id)) => {
                    db.find::<ResultDoc>(id).await?.is_some_and(|row| row.doc.body.status.is_terminal())
                }
                Some(Of::Call(id)) => db.find::<CallLogDoc>(id).await?.is_some_and(|row| row.doc.status.is_final()),
                Some(Of::Noise(_)) => true,
                None => false,
            };
            if is_ready {
                self.settings.ask_to_store(&mut db, owner, self.clock.now_ms()).await?;
                db.commit().await?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns the owners of the data folder whose files may leave it, and the number of those that may not yet.
    ///
    /// # Errors
    /// The database's, or that of the data folder.
    pub async fn movable(&self, owners: Vec<String>) -> Result<(Vec<String>, u64)> {
        let (mut ready, mut open) = (Vec::new(), 0);
        for owner in owners {
            let Some(organization) = self.organization_of(&owner).await? else { continue };
            let mut db = self.store.org(&organization).read().await?;
            let is_ready = match of(&owner) {
                Some(Of::Result(id)) => {
                    let row = db.find::<ResultDoc>(id).await?;
                    row.is_some_and(|row| row.doc.body.status.is_terminal() && !row.doc.private)
                }
                Some(Of::Call(id)) => {
                    let row = db.find::<CallLogDoc>(id).await?;
                    row.is_some_and(|row| row.doc.status.is_final() && !row.doc.private)
                }
                Some(Of::Noise(_)) => true,
                None => false,
            };
            match is_ready {
                true => ready.push(owner),
                false => open += 1,
            }
        }
        Ok((ready, open))
    }

    /// Returns the organization of an owner; `None`: its row is gone.
    async fn organization_of(&self, owner: &str) -> Result<Option<String>> {
        let mut db = self.store.org("").read().await?;
        match of(owner) {
            Some(Of::Result(id)) => db.organization_with("results", id.into()).await,
            Some(Of::Call(id)) => db.organization_with("call_logs", id.into()).await,
            Some(Of::Noise(id)) => db.organization_with("background_noises", id.into()).await,
            None => Ok(None),
        }
    }

    /// Finds the file of a track, once it is finished: in the data folder, or in the store.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] without it, also when it was lost; [`Error::Conflict`] while another engine has it.
    pub async fn track_source(&self, caller: &Caller, result_id: i64, track: Track) -> Result<Found> {
        let row = self.store.org(&caller.organization).read().await?.get::<ResultDoc>(result_id).await?;
        self.find_file(&row, caller, track.file()).await
    }

    pub(crate) async fn find_file(&self, row: &Row<ResultDoc>, caller: &Caller, name: &str) -> Result<Found> {
        let none = || Error::NotAvailable("Recording not available".into());
        if is_hidden(&row.doc, caller) {
            return Err(none());
        }
        if note_of(&row.doc) == Some(LOST) && row.doc.body.audio_url.is_none() {
            return Err(Error::NotAvailable("Recording was lost with its engine".into()));
        }
        if row.doc.body.audio_url.is_none() {
            return Err(none());
        }
        let path = self.settings.result_folder(row.id).join(name);
        let Some(storage) = &self.settings.storage else {
            return if tokio::fs::try_exists(&path).await.unwrap_or(false) {
                Ok(Found::Here(path))
            } else {
                Err(none())
            };
        };
        let owner = result_owner(row.id);
        match storage.find(&Artifacts::path_of(&owner, name)).await? {
            Some(found) => Ok(found),
            None if name == RECORDING && !storage.holds(&owner).await? => {
                Err(Error::Conflict("Recording is not stored yet".into()))
            }
            None => Err(none()),
        }
    }

    /// Makes sure that the recording of a finished result and its outline are in the data folder, as far as the store
    /// holds them.
    pub(crate) async fn bring_sound(&self, result_id: i64) -> Result<()> {
        let Some(storage) = &self.settings.storage else { return Ok(()) };
        let owner = result_owner(result_id);
        storage.bring(&Artifacts::path_of(&owner, PEAKS)).await?;
        storage.bring(&Artifacts::path_of(&owner, RECORDING)).await.map(drop)
    }

    /// Makes sure that all files of a finished result are in the data folder.
    ///
    /// # Errors
    /// [`Error::Conflict`] while another engine has them; [`Error::Unavailable`] while the store does not answer.
    pub(crate) async fn bring_files(&self, row: &Row<ResultDoc>) -> Result<()> {
        self.settings.bring(&result_owner(row.id)).await?;
        let is_here =
            async || tokio::fs::try_exists(self.settings.result_folder(row.id).join(RECORDING)).await.unwrap_or(false);
        if note_of(&row.doc) == Some(PENDING) && !is_here().await {
            return Err(Error::Conflict("Recording is not stored yet".into()));
        }
        Ok(())
    }

    /// Takes out of the store what a redaction has taken out of the data folder; recordings are stored anew.
    pub(crate) async fn forget_stored(&self, result_id: i64, keeps_recordings: bool) -> Result<()> {
        let Some(storage) = &self.settings.storage else { return Ok(()) };
        let owner = result_owner(result_id);
        self.settings.erase_some(&owner, |name| !(keeps_recordings && is_recording(name))).await?;
        storage.forget(&owner, |_| true).await.map(drop)
    }

    /// True if the recording of a result is neither here nor in the store, though there is one.
    pub(crate) async fn is_elsewhere(&self, doc: &ResultDoc, result_id: i64) -> Result<bool> {
        let Some(storage) = &self.settings.storage else { return Ok(false) };
        let path = Artifacts::path_of(&result_owner(result_id), RECORDING);
        Ok(doc.body.audio_url.is_some() && storage.find(&path).await?.is_none())
    }
}
