//! Sounds that users named: background noises, by URL or uploaded, and scripted answers. Each is read and decoded once
//! a run.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;

use parking_lot::Mutex;
use ringer_base::fetch::fetch;
use ringer_base::guard::ip_allowed;
use ringer_provider::audio::Sound;
use ringer_provider::{Failure, audio};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::Settings;
use crate::files::noise_owner;

/// Sounds that are kept; the oldest is given up first. A sound of ten minutes is 19 MB.
const KEPT: usize = 16;

/// Run and URL of a sound.
type Key = (i64, String);

/// A sound that is there or on its way, at 16 kHz.
type Kept = Arc<OnceCell<Arc<Sound>>>;

/// Returns the file of an uploaded noise.
async fn read_upload(id: &str, settings: &Settings) -> Result<Vec<u8>, Failure> {
    let missing = || Failure { code: "fetch_failed", message: format!("There is no uploaded sound '{id}'") };
    let noise = Uuid::parse_str(id).map_err(|_| missing())?;
    let brought = settings.bring(&noise_owner(noise)).await;
    brought.map_err(|error| Failure {
        code: "fetch_failed",
        message: format!("The uploaded sound '{id}' cannot be read: {error}"),
    })?;
    tokio::fs::read(settings.noise_file(noise)).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(),
        _ => Failure { code: "fetch_failed", message: format!("The uploaded sound '{id}' cannot be read: {error}") },
    })
}

/// The sounds of the latest runs.
#[derive(Debug, Default)]
pub struct Sounds(Mutex<VecDeque<(Key, Kept)>>);

impl Sounds {
    /// Returns the sound at `url` for the calls of a run. What failed is tried again by the next call.
    ///
    /// # Errors
    /// As [`fetch`] and [`audio::decode`]; a text that is no URL is the id of an uploaded noise, whose file may be
    /// gone.
    pub(super) async fn get(&self, run: i64, url: &str, settings: &Settings) -> Result<Arc<Sound>, Failure> {
        let sound = self.sound((run, url.to_owned()));
        let private = settings.allow_private_targets;
        let made = sound.get_or_try_init(|| async {
            let bytes = match url.contains("://") {
                true => fetch(url, move |address| ip_allowed(address, private)).await?,
                false => read_upload(url, settings).await?,
            };
            let decoded = tokio::task::spawn_blocking(move || audio::decode(bytes)).await;
            let stopped =
                |error: tokio::task::JoinError| Failure { code: "audio_not_decoded", message: error.to_string() };
            decoded.map_err(stopped)?.map(Arc::from)
        });
        made.await.cloned()
    }

    fn sound(&self, key: Key) -> Kept {
        let mut sounds = self.0.lock();
        if let Some((_, sound)) = sounds.iter().find(|(known, _)| *known == key) {
            return sound.clone();
        }
        if sounds.len() == KEPT {
            sounds.pop_front();
        }
        let sound = Kept::default();
        sounds.push_back((key, sound.clone()));
        sound
    }
}
