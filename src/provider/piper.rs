//! The neural synthesizer: Piper voices in this process, and the installed programs for what they do not speak. Clause
//! by clause, each one as soon as it is made; what was said once is kept, in memory and on disk.
//!
//! All that is random in a voice follows from the caller's timbre, which follows from the call's seed, and from the
//! text.

pub(super) mod choice;

use std::collections::HashMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use ringer_base::tasks::{Tasks, behind_calls};
use ringer_media::clip;
use ringer_media::sentence::goes_on;
use ringer_speech::clauses::{Clause, clauses};
use ringer_speech::phonemes;
use ringer_speech::piper::{Manner, PiperVoice};
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, mpsc};

use self::choice::Known;
use super::cache::SpeechCache;
use super::disk::DiskCache;
use super::pace::{self, QUICK};
use super::speech::EmbeddedSpeech;
use super::spoken_form::spoken_form;
use super::timbre::Timbre;
use super::voice::TEXT_BYTES_MAX;
use super::{Failure, Job, ModelName, Spoken, Status, Synthesizer, Voice, VoiceWanted, file_sha256, whole_speech};

/// Beginning of the ids of these voices.
pub const PREFIX: &str = "piper:";
/// Audio kept in memory: about half an hour.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// The synthesizer of neural voices.
pub struct PiperSpeech {
    known: Vec<Known>,
    embedded: Arc<EmbeddedSpeech>,
    voices: Arc<Voices>,
    cache: SpeechCache,
    disk: Option<DiskCache>,
    places: Semaphore,
    tasks: Tasks,
}

/// Voices that were needed, by file.
#[derive(Default)]
struct Voices(Mutex<HashMap<PathBuf, Arc<Needed>>>);

/// A voice that is read by the first who needs it.
#[derive(Default)]
struct Needed {
    loaded: OnceLock<Result<Arc<Loaded>, Failure>>,
    /// SHA-256 of the file; `None`: it cannot be read.
    sha256: OnceLock<Option<String>>,
}

struct Loaded {
    voice: PiperVoice,
    /// Words a minute at length 1, and the gain to the speech level: of the speakers that were asked for.
    own: Mutex<HashMap<i32, (f32, f64)>>,
}

fn failure(message: String) -> Failure {
    Failure { code: "synthesizer_failed", message }
}

impl Voices {
    fn entry(&self, path: &Path) -> Arc<Needed> {
        self.0.lock().entry(path.to_owned()).or_default().clone()
    }

    fn get(&self, path: &Path) -> Result<Arc<Loaded>, Failure> {
        let load = || {
            let voice = PiperVoice::load(path).map_err(|why| failure(format!("the voice cannot speak: {why}")))?;
            Ok(Arc::new(Loaded { voice, own: Mutex::default() }))
        };
        self.entry(path).loaded.get_or_init(load).clone()
    }

    /// Returns the SHA-256 of a voice's file, read once.
    fn sha256(&self, path: &Path) -> Option<String> {
        self.entry(path).sha256.get_or_init(|| file_sha256(path).ok()).clone()
    }
}

impl Loaded {
    /// Returns the voice's own speed and gain, measured once.
    fn own(&self, speaker: i32, language: &str) -> Result<(f32, f64), Failure> {
        // Whoever comes meanwhile waits for the same figures.
        let mut kept = self.own.lock();
        if let Some(own) = kept.get(&speaker) {
            return Ok(*own);
        }
        let words = pace::text_to_measure(language);
        let said = self.voice.say(&words, Manner { speaker, length: 1.0, seed: 1 }).map_err(|why| failure(why.0))?;
        let own = pace::own(&words, plain(&said, self.voice.rate_hz()));
        kept.insert(speaker, own);
        Ok(own)
    }
}

/// Returns audio of the voice at 16 kHz as it is.
fn plain(pcm: &[i16], rate_hz: u32) -> Vec<i16> {
    Timbre { played: 1.0, formant: 1.0, bands_db: [0.0; 4] }.colour(pcm, rate_hz)
}

impl PiperSpeech {
    /// Returns the voices in these folders, with `named` (by `LANGUAGE[-ACCENT][-GENDER]`) before all others, and the
    /// installed programs behind them. Audio is kept in the folder `kept`, where one is given. Voices load when they
    /// are first chosen.
    ///
    /// # Errors
    /// `synthesizer_missing`: there is no voice, or one has settings that cannot be read, or the library of phonemes is
    /// missing.
    pub fn new(
        folders: &[PathBuf],
        named: std::collections::BTreeMap<String, String>,
        kept: Option<PathBuf>,
        embedded: Arc<EmbeddedSpeech>,
    ) -> Result<PiperSpeech, Failure> {
        PiperSpeech::with_others(folders, &[], named, kept, embedded)
    }

    /// Returns the voices as [`PiperSpeech::new`] does, and those of `others` for callers who name them.
    ///
    /// # Errors
    /// As those of [`PiperSpeech::new`].
    pub fn with_others(
        folders: &[PathBuf],
        others: &[PathBuf],
        named: std::collections::BTreeMap<String, String>,
        kept: Option<PathBuf>,
        embedded: Arc<EmbeddedSpeech>,
    ) -> Result<PiperSpeech, Failure> {
        let missing = |message: String| Failure { code: "synthesizer_missing", message };
        phonemes::are_installed().map_err(|why| missing(why.0))?;
        let mut known = choice::voices_in(folders, &named).map_err(missing)?;
        let others = choice::voices_in(others, &Default::default()).map_err(missing)?;
        known.extend(others.into_iter().map(|known| Known { is_by_name: true, ..known }));
        if known.is_empty() {
            return Err(missing("there is no Piper voice: `ringer models add` brings one".to_owned()));
        }
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Ok(PiperSpeech {
            known,
            embedded,
            voices: Arc::default(),
            cache: SpeechCache::new(CACHE_BYTES_MAX),
            disk: kept.map(DiskCache::new),
            places: Semaphore::new(cores),
            tasks: Tasks::new(),
        })
    }

    fn find(&self, id: &str) -> Result<&Known, Failure> {
        self.known
            .iter()
            .find(|known| known.id() == id)
            .ok_or_else(|| Failure { code: "unknown_voice", message: format!("no Piper voice {id:.60} is there") })
    }

    async fn say(&self, text: &str, voice: &Voice, out: mpsc::Sender<Spoken>) -> Result<(), Failure> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("a text to say has at most {TEXT_BYTES_MAX} bytes");
            return Err(Failure { code: "text_too_long", message });
        }
        let known = self.find(&voice.id)?;
        let said = spoken_form(&known.language, text);
        let parts = clauses(&said, |before, rest| goes_on(before, rest) == Some(true));
        if parts.is_empty() {
            return Ok(());
        }
        let key = key(known, voice, &said);
        let kept = self.cache.get(&key).or_else(|| self.disk.as_ref()?.get(&key));
        if let Some(pcm) = kept {
            self.cache.put(&key, &pcm);
            let _ = out.send(Spoken::Audio(pcm)).await;
            return Ok(());
        }
        let mut whole: Vec<i16> = Vec::new();
        let mut gain_db = None;
        let count = parts.len();
        for (at, clause) in parts.into_iter().enumerate() {
            let last = at + 1 == count;
            let task = Task {
                voices: self.voices.clone(),
                known: known.clone(),
                voice: voice.clone(),
                seed: seed(&key, at),
                gain_db,
                alone: count == 1,
                pause: if last { 0 } else { pace::pause(clause.mark) },
                clause,
            };
            let (pcm, gain) = self.work(task, voice.unhurried).await?;
            gain_db = Some(gain);
            whole.extend_from_slice(&pcm);
            let _ = out.send(Spoken::Audio(pcm.into())).await;
        }
        let whole: Arc<[i16]> = whole.into();
        self.cache.put(&key, &whole);
        if let Some(disk) = &self.disk {
            disk.store(&key, whole);
        }
        Ok(())
    }

    async fn work(&self, task: Task, unhurried: bool) -> Result<(Vec<i16>, f64), Failure> {
        if unhurried {
            return behind_calls("speak for later", move || task.make()).await.map_err(failure)?;
        }
        let _place = self.places.acquire().await.map_err(|_| failure("the synthesizer is closed".into()))?;
        let making = tokio::task::spawn_blocking(move || task.make());
        making.await.map_err(|_| failure("the synthesizer broke off".into()))?
    }

    /// Says it by the installed program when the voice fails before its first word.
    async fn say_or_fall_back(&self, text: &str, voice: &Voice, out: mpsc::Sender<Spoken>) -> Result<(), Failure> {
        if !voice.id.starts_with(PREFIX) {
            return self.embedded.synthesize(text, voice, out).await;
        }
        let (parts, mut said) = mpsc::channel(4);
        let passing = async {
            let mut some = false;
            while let Some(spoken) = said.recv().await {
                some = true;
                let _ = out.send(spoken).await;
            }
            some
        };
        let (result, some) = tokio::join!(self.say(text, voice, parts), passing);
        let Err(failure) = result else { return Ok(()) };
        let Some(other) = voice.fallback.as_deref().filter(|_| !some && failure.code != "text_too_long") else {
            return Err(failure);
        };
        let pcm = whole_speech(&*self.embedded, text, other).await.map_err(|_| failure.clone())?;
        let _ = out.send(Spoken::Fallback(failure)).await;
        let _ = out.send(Spoken::Audio(pcm)).await;
        Ok(())
    }

    /// Begins to load a voice before it is needed.
    fn warm(&self, known: &Known, language: &str) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.tasks.spawn("load a voice", self.load(known, language));
        }
    }

    /// Loads a voice and measures it; at once where that was done.
    fn load(&self, known: &Known, language: &str) -> impl Future<Output = ()> + use<> {
        let (voices, known, language) = (self.voices.clone(), known.clone(), language.to_owned());
        async move {
            let load =
                move || voices.get(&known.path).and_then(|loaded| loaded.own(known.speaker, &language)).map(drop);
            let _ = tokio::task::spawn_blocking(load).await;
        }
    }
}

/// Returns a text of all that the samples follow from; `said` is the text in its spoken form.
fn key(known: &Known, voice: &Voice, said: &str) -> String {
    format!(
        "1|{}|{}|{}|{}|{}|{:?}|{said}",
        voice.id, known.bytes, voice.rate_wpm, voice.pitch, voice.formant, voice.bands_db
    )
}

fn seed(key: &str, clause: usize) -> u64 {
    let digest = Sha256::digest(key.as_bytes());
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes")).wrapping_add(clause as u64)
}

/// One clause to be said.
struct Task {
    voices: Arc<Voices>,
    known: Known,
    voice: Voice,
    clause: Clause,
    seed: u64,
    /// Gain of the clause before, in dB.
    gain_db: Option<f64>,
    alone: bool,
    pause: usize,
}

impl Task {
    /// Returns the clause's samples and their gain in dB.
    fn make(self) -> Result<(Vec<i16>, f64), Failure> {
        let loaded = self.voices.get(&self.known.path)?;
        let (own_wpm, own_gain_db) = loaded.own(self.known.speaker, &self.voice.language)?;
        let mut pcm = QUICK.say_clause(&self.voice, &self.clause.words, own_wpm, |length| self.say(&loaded, length))?;
        let before = self.gain_db.unwrap_or(own_gain_db);
        let gain_db = pace::set_level(&mut pcm, (!self.alone).then_some(before));
        pcm.resize(pcm.len() + self.pause, 0);
        Ok((pcm, gain_db))
    }

    /// Returns audio at 16 kHz in the caller's timbre, without silence at the ends.
    fn say(&self, loaded: &Loaded, length: f32) -> Result<Vec<i16>, Failure> {
        let played = self.voice.pitch;
        let manner = Manner { speaker: self.known.speaker, length: length * played, seed: self.seed };
        let said = loaded.voice.say(&self.clause, manner).map_err(|why| failure(why.0))?;
        let timbre = Timbre { played, formant: self.voice.formant, bands_db: self.voice.bands_db };
        let pcm = timbre.colour(&said, loaded.voice.rate_hz());
        Ok(pcm[clip::trim_silence(&pcm)].to_vec())
    }
}

impl Synthesizer for PiperSpeech {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        let embedded = self.embedded.voice(wanted);
        let Some((known, mut voice)) = choice::choose(&self.known, wanted)? else { return embedded };
        self.warm(known, &wanted.language);
        let other = embedded.or_else(|_| self.embedded.voice(&VoiceWanted { custom_voice_id: None, ..wanted.clone() }));
        voice.fallback = other.ok().map(Box::new);
        Ok(voice)
    }

    fn find_voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        match choice::choose(&self.known, wanted)? {
            Some((_, voice)) => Ok(voice),
            None => self.embedded.find_voice(wanted),
        }
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.say_or_fall_back(text, voice, out))
    }

    fn ready<'a>(&'a self, voice: &'a Voice) -> Job<'a, ()> {
        match self.find(&voice.id) {
            Ok(known) => Box::pin(self.load(known, &voice.language)),
            Err(_) => Box::pin(std::future::ready(())),
        }
    }

    fn check<'a>(&'a self, voice: &'a Voice) -> Job<'a, Result<(), Failure>> {
        let Ok(known) = self.find(&voice.id) else { return self.embedded.check(voice) };
        let (voices, path) = (self.voices.clone(), known.path.clone());
        Box::pin(async move {
            let loaded = tokio::task::spawn_blocking(move || voices.get(&path).map(drop)).await;
            let loaded = loaded.unwrap_or_else(|_| Err(failure("the voice could not be loaded".into())));
            loaded.map_err(|failure| Failure { code: "unknown_voice", ..failure })
        })
    }

    fn status(&self) -> Status {
        Status::Ok
    }

    fn model<'a>(&'a self, voice: &'a Voice) -> Job<'a, Option<ModelName>> {
        let Some(name) = voice.id.strip_prefix(PREFIX) else { return self.embedded.model(voice) };
        let (voices, path) = (self.voices.clone(), self.find(&voice.id).ok().map(|known| known.path.clone()));
        Box::pin(async move {
            let hash = tokio::task::spawn_blocking(move || voices.sha256(&path?)).await;
            let sha256 = hash.ok().flatten();
            Some(ModelName { sha256, ..ModelName::new("piper", name.split('#').next().unwrap_or_default()) })
        })
    }
}

#[cfg(test)]
mod tests;
