//! Background noises that users upload: files that were decoded once before they are kept.

use std::io::ErrorKind;

use ringer_base::error::{Error, Result};
use ringer_base::guard::ip_allowed;
use ringer_base::{clock, fetch};
use ringer_model::noise::{NoiseDoc, NoiseRecord};
use ringer_model::time::Timestamp;
use ringer_provider::audio;
use ringer_store::{Resource, Row};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::limits::check_upload;
use super::{Library, field_rules};
use crate::Caller;
use crate::files::{NOISES_FOLDER, noise_owner};

/// Shortest noise: a second at the decoder's rate.
const MIN_SAMPLES: usize = 16_000;

/// Source of a new background noise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoiseSource {
    /// The bytes of a file.
    File(Vec<u8>),
    /// The id of a noise that is there, or the URL of a file.
    Existing(String),
}

/// Response to deleting a noise.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NoiseDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted noise.
    pub deleted_noise_id: Uuid,
}

impl Library {
    /// Stores a background noise after decoding it once.
    pub async fn create_background_noise(
        &self,
        caller: &Caller,
        name: String,
        source: NoiseSource,
    ) -> Result<NoiseRecord> {
        let bytes = match source {
            NoiseSource::File(bytes) => bytes,
            NoiseSource::Existing(place) => self.existing(caller, &place).await?,
        };
        let mut db = self.store.org(&caller.organization).read().await?;
        check_upload(&self.settings, &mut db, bytes.len() as u64).await?;
        drop(db);
        if bytes.len() > fetch::MAX_BYTES {
            return Err(Error::Refused(format!("Audio file is larger than {} MiB", fetch::MAX_BYTES >> 20)));
        }
        let whole = bytes.clone();
        let decoded = tokio::task::spawn_blocking(move || audio::decode(whole)).await.map_err(Error::internal)?;
        let sound = decoded.map_err(|_| Error::Refused("Audio file could not be decoded".into()))?;
        if let Some(unread) = sound.unread.filter(|unread| !unread.is_limit) {
            return Err(Error::Refused(format!("Audio file could not be decoded: {unread}")));
        }
        if sound.pcm.len() < MIN_SAMPLES {
            return Err(Error::Refused("Audio file must be at least 1 second long".into()));
        }
        let mut db = self.store.org(&caller.organization).write().await?;
        let id: Uuid = db.insert(&NoiseDoc { name }, self.clock.now_ms(), Some(caller.author())).await?;
        self.write_noise(id, &bytes).await?;
        self.settings.ask_to_store(&mut db, noise_owner(id), self.clock.now_ms()).await?;
        let row = db.get(id).await?;
        db.answer(record_of(caller, row, 0)).await
    }

    /// Returns all noises, newest first.
    pub async fn background_noises(&self, caller: &Caller) -> Result<Vec<NoiseRecord>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let uses = db.noise_uses().await?;
        let rows: Vec<Row<NoiseDoc>> = db.all().await?;
        let count = |id: Uuid| uses.get(&id.to_string()).copied().unwrap_or(0);
        Ok(rows.into_iter().map(|row| (count(row.id), row)).map(|(count, row)| record_of(caller, row, count)).collect())
    }

    /// Renames a noise; its id and audio stay.
    pub async fn rename_background_noise(&self, caller: &Caller, id: Uuid, name: String) -> Result<NoiseRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<NoiseDoc>(id).await?;
        db.update(id, &NoiseDoc { name }, self.clock.now_ms(), Some(caller.author())).await?;
        let count = db.noise_uses().await?.get(&id.to_string()).copied().unwrap_or(0);
        let row = db.get(id).await?;
        db.commit().await?;
        Ok(record_of(caller, row, count))
    }

    /// Deletes a noise that no Digital Human uses, with its file.
    pub async fn delete_background_noise(&self, caller: &Caller, id: Uuid) -> Result<NoiseDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<NoiseDoc>(id).await?;
        if db.noise_uses().await?.contains_key(&id.to_string()) {
            return Err(Error::Conflict("Background noise is in use".into()));
        }
        db.delete::<NoiseDoc>(id).await?;
        db.commit().await?;
        if let Err(error) = tokio::fs::remove_file(self.settings.noise_file(id)).await {
            tracing::warn!(noise = %id, %error, "failed to remove the file of a deleted background noise");
        }
        self.settings.erase(&noise_owner(id)).await;
        Ok(NoiseDeleted { message: "Background noise deleted successfully".into(), deleted_noise_id: id })
    }

    /// Returns the bytes of a noise that is there already, or of a URL.
    async fn existing(&self, caller: &Caller, place: &str) -> Result<Vec<u8>> {
        if place.contains("://") {
            field_rules::webhook("storage_path", Some(place), &self.settings)?;
            let urls = [("storage_path".to_owned(), place.to_owned())];
            field_rules::look(&urls, &self.settings, self.poster.guard()).await?;
            let private = self.settings.allow_private_targets;
            let fetched = fetch::fetch(place, move |address| ip_allowed(address, private)).await;
            return fetched.map_err(|failure| Error::Refused(failure.message));
        }
        let missing = || Error::NotFound(NoiseDoc::WORD);
        let id = place.strip_prefix(NOISES_FOLDER).map_or(place, |rest| rest.trim_start_matches('/'));
        let id = Uuid::parse_str(id).map_err(|_| missing())?;
        self.store.org(&caller.organization).read().await?.get::<NoiseDoc>(id).await?;
        self.settings.bring(&noise_owner(id)).await?;
        tokio::fs::read(self.settings.noise_file(id)).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(),
            _ => Error::internal(error),
        })
    }

    /// Writes a file that is whole before it has its name.
    async fn write_noise(&self, id: Uuid, bytes: &[u8]) -> Result<()> {
        let file = self.settings.noise_file(id);
        let part = file.with_file_name(format!("{}.part", clock::new_id()));
        tokio::fs::create_dir_all(self.settings.data.join(NOISES_FOLDER)).await.map_err(Error::internal)?;
        tokio::fs::write(&part, bytes).await.map_err(Error::internal)?;
        tokio::fs::rename(&part, &file).await.map_err(Error::internal)
    }
}

fn record_of(caller: &Caller, row: Row<NoiseDoc>, usage_count: i64) -> NoiseRecord {
    NoiseRecord {
        id: row.id,
        organization_id: caller.organization.clone(),
        name: row.doc.name,
        storage_path: format!("{NOISES_FOLDER}/{}", row.id),
        created_at: Timestamp(row.created_ms),
        created_by: row.created_by,
        usage_count,
    }
}
