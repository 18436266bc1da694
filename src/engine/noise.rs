//! Background noise loops: made once per kind and seed, kept in memory for all calls, and on disk for the next start.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ringer_media::call::NoiseSpec;
use ringer_media::clip::{Clip, write_wav};
use ringer_media::frame::RATE_HZ;
use ringer_media::noise::{Kind, gain_for, generate};
use ringer_media::seed::{Seed, Stream};

/// Length of a loop.
const LOOP_SECONDS: u32 = 60;
/// All calls of an engine share one loop a kind; where a call begins in it is drawn from the call's own seed.
const LOOP_SEED: Seed = Seed(1);

/// The loops of an engine.
#[derive(Debug)]
pub struct NoiseBeds {
    folder: Option<PathBuf>,
    beds: Mutex<HashMap<&'static str, Bed>>,
}

/// A loop, and the gains (narrow, wide) at which it is as loud as speech: measuring them takes longer than setting up a call.
#[derive(Clone, Debug)]
struct Bed {
    pcm: Arc<[i16]>,
    gains: [f64; 2],
}

impl NoiseBeds {
    /// Loops are also kept in `folder`, when there is one.
    pub fn new(folder: Option<PathBuf>) -> NoiseBeds {
        NoiseBeds { folder, beds: Mutex::default() }
    }

    /// The noise of one call, `snr_db` below active speech. Makes the loop when it is not there yet (up to a second of
    /// computing: not for async tasks or media threads).
    pub fn bed(&self, kind: Kind, snr_db: f64, start: &mut Stream) -> NoiseSpec {
        let Bed { pcm, gains } = self.bed_of(kind);
        let [gain_narrow, gain_wide] = gains.map(|gain| (gain * 10f64.powf(-snr_db / 20.0)) as f32);
        NoiseSpec { gain_narrow, gain_wide, start: start.index(pcm.len()), loop_pcm: pcm }
    }

    fn bed_of(&self, kind: Kind) -> Bed {
        let mut beds = self.beds.lock().unwrap_or_else(PoisonError::into_inner);
        let made = beds.entry(kind.name()).or_insert_with(|| {
            let pcm = self.read(kind).unwrap_or_else(|| self.make(kind));
            let gains = [8000, RATE_HZ].map(|rate_hz| gain_for(&pcm, 0.0, rate_hz));
            Bed { pcm, gains }
        });
        made.clone()
    }

    fn path(&self, kind: Kind) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}-{}.wav", kind.name(), env!("CARGO_PKG_VERSION"))))
    }

    fn read(&self, kind: Kind) -> Option<Arc<[i16]>> {
        let clip = Clip::from_wav(&fs::read(self.path(kind)?).ok()?).ok()?;
        let whole = clip.rate_hz == RATE_HZ && clip.pcm.len() == (LOOP_SECONDS * RATE_HZ) as usize;
        whole.then(|| clip.pcm.into())
    }

    fn make(&self, kind: Kind) -> Arc<[i16]> {
        let pcm = generate(kind, LOOP_SEED, LOOP_SECONDS, &[]);
        if let (Some(path), Some(folder)) = (self.path(kind), &self.folder) {
            // The cache only saves time: what cannot be written is made again.
            let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, write_wav(RATE_HZ, 1, &pcm)));
            if let Err(error) = written {
                tracing::warn!("the noise cache {} cannot be written: {error}", folder.display());
            }
        }
        pcm.into()
    }
}
