//! Background noise loops: made once per kind and seed, kept in memory for all calls, and on disk for the next start.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ringer_media::call::NoiseSpec;
use ringer_media::clip::{Clip, write_wav};
use ringer_media::frame::RATE_HZ;
use ringer_media::noise::{Kind, gain_for, generate, seamless};
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
    /// Loops of noises that users gave, with the audio that they are made of.
    given: Mutex<Vec<(Arc<[i16]>, Bed)>>,
}

/// A loop, and the gains (narrow, wide) at which it is as loud as speech: measuring them takes longer than setting up a call.
#[derive(Clone, Debug)]
struct Bed {
    pcm: Arc<[i16]>,
    gains: [f64; 2],
}

impl Bed {
    fn of(pcm: Arc<[i16]>) -> Bed {
        let gains = [8000, RATE_HZ].map(|rate_hz| gain_for(&pcm, 0.0, rate_hz));
        Bed { pcm, gains }
    }

    /// For one call.
    fn under(self, snr_db: f64, start: &mut Stream) -> NoiseSpec {
        let [gain_narrow, gain_wide] = self.gains.map(|gain| (gain * 10f64.powf(-snr_db / 20.0)) as f32);
        NoiseSpec { gain_narrow, gain_wide, start: start.index(self.pcm.len()), loop_pcm: self.pcm }
    }
}

impl NoiseBeds {
    /// Loops are also kept in `folder`, when there is one.
    pub fn new(folder: Option<PathBuf>) -> NoiseBeds {
        NoiseBeds { folder, beds: Mutex::default(), given: Mutex::default() }
    }

    /// The noise of one call, `snr_db` below active speech. Makes the loop when it is not there yet (up to a second of
    /// computing: not for async tasks or media threads).
    pub fn bed(&self, kind: Kind, snr_db: f64, start: &mut Stream) -> NoiseSpec {
        self.bed_of(kind).under(snr_db, start)
    }

    /// As [`NoiseBeds::bed`], of a noise that a user gave, at 16 kHz. Its loop is made once as long as a call hears it.
    pub fn custom(&self, pcm: &Arc<[i16]>, snr_db: f64, start: &mut Stream) -> NoiseSpec {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|(source, _)| Arc::strong_count(source) > 1);
        let known = given.iter().find(|(source, _)| Arc::ptr_eq(source, pcm)).map(|(_, bed)| bed.clone());
        let bed = known.unwrap_or_else(|| {
            let bed = Bed::of(seamless(pcm).into());
            given.push((pcm.clone(), bed.clone()));
            bed
        });
        bed.under(snr_db, start)
    }

    fn bed_of(&self, kind: Kind) -> Bed {
        let mut beds = self.beds.lock().unwrap_or_else(PoisonError::into_inner);
        let made =
            beds.entry(kind.name()).or_insert_with(|| Bed::of(self.read(kind).unwrap_or_else(|| self.make(kind))));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_kept_on_disk_and_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("noise");
        let of = |beds: &NoiseBeds| beds.bed(Kind::Traffic, 10.0, &mut Seed(4).stream("noise"));
        let beds = NoiseBeds::new(Some(cache.clone()));
        let made = of(&beds);
        assert!(Arc::ptr_eq(&made.loop_pcm, &of(&beds).loop_pcm), "the calls of an engine share a loop");
        let path = beds.path(Kind::Traffic).expect("there is a folder");
        let stored = Clip::from_wav(&fs::read(&path).expect("it was written")).expect("a WAV file");
        assert_eq!(stored.pcm[..], made.loop_pcm[..]);
        // Another start takes what is there, and makes anew what is not whole.
        let turned: Vec<i16> = stored.pcm.iter().map(|&x| -x).collect();
        fs::write(&path, write_wav(RATE_HZ, 1, &turned)).expect("the cache can be written");
        assert_eq!(of(&NoiseBeds::new(Some(cache.clone()))).loop_pcm[..], turned[..]);
        fs::write(&path, write_wav(RATE_HZ, 1, &turned[..16_000])).expect("the cache can be written");
        let again = of(&NoiseBeds::new(Some(cache)));
        assert_eq!((&again.loop_pcm, again.gain_narrow, again.start), (&made.loop_pcm, made.gain_narrow, made.start));
    }
}
