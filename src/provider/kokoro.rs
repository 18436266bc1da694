//! The neural synthesizer of Kokoro voices, in this process. It takes about half of the speech's own time on one core:
//! words that are known are made before their call, the others clause by clause.
//!
//! A caller with such a voice keeps it: no other voice speaks in its place, however late its words are. Another
//! synthesizer speaks the languages that have no such voice.

mod choice;

use std::collections::HashMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use ringer_base::tasks::behind_calls;
use ringer_media::clip;
use ringer_media::sentence::goes_on;
use ringer_speech::clauses::{Clause, clauses};
use ringer_speech::kokoro::{Kokoro, KokoroVoice, NETWORK, RATE_HZ, voice_of, voices};
use ringer_speech::phonemes;
use tokio::sync::{Semaphore, mpsc};

use self::choice::Shelf;
use super::cache::SpeechCache;
use super::disk::DiskCache;
use super::pace::{self, SLOW};
use super::spoken_form::spoken_form;
use super::timbre::Timbre;
use super::voice::TEXT_BYTES_MAX;
use super::{Failure, Job, ModelName, Spoken, Status, Synthesizer, Voice, VoiceWanted, file_sha256};

/// Beginning of the ids of these voices.
pub const PREFIX: &str = "kokoro:";
/// Audio kept in memory: about half an hour.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// Callers who get such a voice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// Everybody whose language it speaks.
    Always,
    /// Callers who name it.
    ByName,
}

/// The synthesizer of Kokoro voices.
pub struct KokoroSpeech {
    known: Vec<KokoroVoice>,
    given: Given,
    /// Beginning of the ids of these voices.
    prefix: String,
    /// Synthesizer of everything else.
    behind: Arc<dyn Synthesizer>,
    maker: Arc<Maker>,
    places: Arc<Semaphore>,
    /// Places for words that are made before their call.
    later: Arc<Semaphore>,
}

/// Words a minute at speed 1 and gain to the speech level of a voice, or the reason why they cannot be measured.
type Own = Result<(f32, f64), Failure>;

/// The network with what it has made.
struct Maker {
    folder: PathBuf,
    /// Name of the folder, bytes of the network and its SHA-256: speech of another one is not used.
    name: String,
    bytes: u64,
    sha256: String,
    loaded: OnceLock<Result<Kokoro, Failure>>,
    /// Words a minute at speed 1, and the gain to the speech level, by voice.
    own: Mutex<HashMap<String, Arc<OnceLock<Own>>>>,
    cache: SpeechCache,
    disk: Option<DiskCache>,
}

fn failure(message: String) -> Failure {
    Failure { code: "synthesizer_failed", message }
}

impl KokoroSpeech {
    /// Returns the voices of this folder, with `behind` for everything else. Speech is kept in the folder `kept`, where
    /// one is given. The network loads when it is first needed.
    ///
    /// # Errors
    /// `synthesizer_missing`: there is no such voice, or the library of phonemes is missing.
    pub fn new(
        folder: &Path,
        given: Given,
        kept: Option<PathBuf>,
        behind: Arc<dyn Synthesizer>,
    ) -> Result<KokoroSpeech, Failure> {
        let missing = |message: String| Failure { code: "synthesizer_missing", message };
        phonemes::are_installed().map_err(|why| missing(why.0))?;
        let network = std::fs::metadata(folder.join(NETWORK));
        let bytes = network.map_err(|cause| missing(format!("{}: {cause}", folder.join(NETWORK).display())))?.len();
        let network = folder.join(NETWORK);
        let sha256 = file_sha256(&network).map_err(|cause| missing(format!("{}: {cause}", network.display())))?;
        let known = voices(folder);
        if known.is_empty() {
            let there = folder.display();
            return Err(missing(format!("{there} has no Kokoro voice: `ringer models add` brings some")));
        }
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let maker = Maker {
            folder: folder.to_owned(),
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes,
            sha256,
            loaded: OnceLock::new(),
            own: Mutex::default(),
            cache: SpeechCache::new(CACHE_BYTES_MAX),
            disk: kept.map(DiskCache::new),
        };
        let of_cores = || Arc::new(Semaphore::new(cores));
        let prefix = PREFIX.to_owned();
        Ok(KokoroSpeech { known, given, prefix, behind, maker: Arc::new(maker), places: of_cores(), later: of_cores() })
    }

    /// Returns the same voices with their folder in their ids: another folder's are behind or before them.
    pub fn beside_others(self) -> KokoroSpeech {
        KokoroSpeech { prefix: format!("{PREFIX}{}/", self.maker.name), ..self }
    }

    /// Returns the voice of this folder that fits; `None`: another synthesizer is to look.
    fn choose(&self, wanted: &VoiceWanted) -> Result<Option<Voice>, Failure> {
        let (known, given) = (&self.known[..], self.given);
        choice::choose(Shelf { known, given, folder: &self.maker.name, prefix: &self.prefix }, wanted)
    }

    /// True if a voice is one of these.
    fn has(&self, voice: &Voice) -> bool {
        voice.id.strip_prefix(&self.prefix).is_some_and(|name| !name.contains('/'))
    }

    fn tasks(&self, text: &str, voice: &Voice) -> Result<Vec<Task>, Failure> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("a text to say has at most {TEXT_BYTES_MAX} bytes");
            return Err(Failure { code: "text_too_long", message });
        }
        let said = spoken_form(&voice.language, text);
        let parts = clauses(&said, |before, rest| goes_on(before, rest) == Some(true));
        let task = |clause| Task { maker: self.maker.clone(), voice: voice.clone(), clause };
        Ok(parts.into_iter().map(task).collect())
    }

    async fn say(&self, text: &str, voice: &Voice, out: mpsc::Sender<Spoken>) -> Result<(), Failure> {
        let tasks = self.tasks(text, voice)?;
        let (count, mut before) = (tasks.len(), None);
        for (at, task) in tasks.into_iter().enumerate() {
            let mark = task.clause.mark;
            let made = match task.in_cache() {
                Some(pcm) => pcm,
                None => self.work(task).await?,
            };
            let mut pcm = made.to_vec();
            if count == 1 {
                pace::set_level(&mut pcm, None);
            } else {
                let own_gain_db = self.maker.find_own(&voice.id).map_or(0.0, |(_, gain_db)| gain_db);
                before = Some(pace::set_level(&mut pcm, Some(before.unwrap_or(own_gain_db))));
                if at + 1 < count {
                    pcm.resize(pcm.len() + pace::pause(mark), 0);
                }
            }
            let _ = out.send(Spoken::Audio(pcm.into())).await;
        }
        Ok(())
    }

    async fn work(&self, task: Task) -> Result<Arc<[i16]>, Failure> {
        let unhurried = task.voice.unhurried;
        let places = if unhurried { &self.later } else { &self.places };
        let place = places.clone().acquire_owned().await.map_err(|_| failure("the synthesizer is closed".into()))?;
        // The work goes on when nobody waits for it any more, and keeps its place as long.
        let make = move || {
            let made = task.make();
            drop(place);
            made
        };
        if unhurried {
            return behind_calls("speak for later", make).await.map_err(failure)?;
        }
        let making = tokio::task::spawn_blocking(make);
        making.await.map_err(|_| failure("the synthesizer broke off".into()))?
    }

    async fn prepare_all(&self, texts: &[String], voice: &Voice) {
        for text in texts {
            for task in self.tasks(text, voice).unwrap_or_default() {
                if task.in_cache().is_none() && self.work(task).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// One clause to be said.
struct Task {
    maker: Arc<Maker>,
    voice: Voice,
    clause: Clause,
}

impl Task {
    /// Returns a text of all that the samples follow from.
    fn key(&self) -> String {
        let Voice { id, rate_wpm, pitch, formant, bands_db, .. } = &self.voice;
        let Clause { words, mark } = &self.clause;
        let (bytes, mark) = (self.maker.bytes, mark.unwrap_or(' '));
        format!("kokoro 2|{id}|{bytes}|{rate_wpm}|{pitch}|{formant}|{bands_db:?}|{mark}{words}")
    }

    /// Returns the clause where it was made before, and the voice measured.
    fn in_cache(&self) -> Option<Arc<[i16]>> {
        self.maker.find_own(&self.voice.id)?;
        self.maker.find(&self.key())
    }

    /// Returns the clause's samples at 16 kHz in the caller's timbre, without silence at the ends. Their level is the
    /// voice's own.
    fn make(self) -> Result<Arc<[i16]>, Failure> {
        let (own_wpm, _) = self.maker.own(&self.voice.id, &self.voice.language)?;
        let key = self.key();
        // Another call may have had the same words.
        if let Some(pcm) = self.maker.find(&key) {
            return Ok(pcm);
        }
        let Voice { pitch: played, formant, bands_db, .. } = self.voice;
        let timbre = Timbre { played, formant, bands_db };
        let say = |length: f32| {
            let said = self.maker.say(&self.voice.id, &self.clause, 1.0 / (length * played))?;
            let pcm = timbre.colour(&said, RATE_HZ);
            Ok(pcm[clip::trim_clean_silence(&pcm)].to_vec())
        };
        let pcm: Arc<[i16]> = SLOW.say_clause(&self.voice, &self.clause.words, own_wpm, say)?.into();
        self.maker.keep(&key, &pcm);
        Ok(pcm)
    }
}

impl Maker {
    fn find(&self, key: &str) -> Option<Arc<[i16]>> {
        let found = self.cache.get(key).or_else(|| self.disk.as_ref()?.get(key))?;
        self.cache.put(key, &found);
        Some(found)
    }

    fn keep(&self, key: &str, pcm: &Arc<[i16]>) {
        self.cache.put(key, pcm);
        if let Some(disk) = &self.disk {
            disk.store(key, pcm.clone());
        }
    }

    /// Returns the network, which the first who needs it loads.
    fn network(&self) -> Result<&Kokoro, Failure> {
        let load = || Kokoro::load(&self.folder).map_err(|why| failure(format!("the voice cannot speak: {why}")));
        self.loaded.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    fn say(&self, id: &str, clause: &Clause, speed: f32) -> Result<Vec<i16>, Failure> {
        let voice = id.rsplit([':', '/']).next().and_then(voice_of).ok_or_else(|| no_such_voice(id, &[]))?;
        self.network()?.say(&voice, clause, speed).map_err(|why| failure(why.0))
    }

    /// Returns the voice's own speed and gain, where they are measured.
    fn find_own(&self, id: &str) -> Option<(f32, f64)> {
        self.own.lock().get(id)?.get()?.as_ref().ok().copied()
    }

    /// Returns the voice's own speed and gain, measured once. Whoever wants the same figures meanwhile waits for them.
    fn own(&self, id: &str, language: &str) -> Result<(f32, f64), Failure> {
        let place = self.own.lock().entry(id.to_owned()).or_default().clone();
        place.get_or_init(|| self.measure(id, language)).clone()
    }

    fn measure(&self, id: &str, language: &str) -> Own {
        let words = pace::text_to_measure(language);
        let key = format!("kokoro 2|{id}|{}|own|{}", self.bytes, words.words);
        let pcm = match self.find(&key) {
            Some(pcm) => pcm.to_vec(),
            None => {
                let plain = Timbre { played: 1.0, formant: 1.0, bands_db: [0.0; 4] };
                let pcm = plain.colour(&self.say(id, &words, 1.0)?, RATE_HZ);
                self.keep(&key, &pcm.clone().into());
                pcm
            }
        };
        Ok(pace::own(&words, pcm))
    }
}

fn no_such_voice(id: &str, known: &[KokoroVoice]) -> Failure {
    let names: Vec<&str> = known.iter().map(|voice| voice.name.as_str()).collect();
    let message = format!("no Kokoro voice {id:.60} is there: there are {}", names.join(", "));
    Failure { code: "unknown_voice", message }
}

impl Synthesizer for KokoroSpeech {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        match self.choose(wanted) {
            Ok(Some(voice)) => Ok(voice),
            Ok(None) => self.behind.voice(wanted),
            // Another folder may have it.
            Err(failure) => self.behind.voice(wanted).map_err(|_| failure),
        }
    }

    fn find_voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        match self.choose(wanted) {
            Ok(Some(voice)) => Ok(voice),
            Ok(None) => self.behind.find_voice(wanted),
            Err(failure) => self.behind.find_voice(wanted).map_err(|_| failure),
        }
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        match self.has(voice) {
            true => Box::pin(self.say(text, voice, out)),
            false => self.behind.synthesize(text, voice, out),
        }
    }

    fn prepare<'a>(&'a self, texts: &'a [String], voice: &'a Voice) -> Job<'a, ()> {
        match self.has(voice) {
            // Calls that have begun come first.
            true => Box::pin(async move { self.prepare_all(texts, &voice.clone().for_later()).await }),
            false => self.behind.prepare(texts, voice),
        }
    }

    fn ready<'a>(&'a self, voice: &'a Voice) -> Job<'a, ()> {
        if !self.has(voice) {
            return self.behind.ready(voice);
        }
        let (maker, id, language) = (self.maker.clone(), voice.id.clone(), voice.language.clone());
        Box::pin(async move {
            let load = move || maker.network().and_then(|_| maker.own(&id, &language)).map(drop);
            let _ = tokio::task::spawn_blocking(load).await;
        })
    }

    fn check<'a>(&'a self, voice: &'a Voice) -> Job<'a, Result<(), Failure>> {
        if !self.has(voice) {
            return self.behind.check(voice);
        }
        let maker = self.maker.clone();
        Box::pin(async move {
            let load = move || maker.network().map(drop);
            let loaded = tokio::task::spawn_blocking(load).await;
            let loaded = loaded.unwrap_or_else(|_| Err(failure("the network could not be loaded".into())));
            loaded.map_err(|failure| Failure { code: "unknown_voice", ..failure })
        })
    }

    fn says_all(&self, voice: &Voice, texts: Option<&[String]>) -> bool {
        self.has(voice) || self.behind.says_all(voice, texts)
    }

    fn status(&self) -> Status {
        match self.given {
            Given::Always => match self.maker.loaded.get() {
                Some(Err(failure)) => Status::Down(failure.message.clone()),
                _ => Status::Ok,
            },
            Given::ByName => self.behind.status(),
        }
    }

    fn model<'a>(&'a self, voice: &'a Voice) -> Job<'a, Option<ModelName>> {
        match self.has(voice) {
            true => {
                let sha256 = Some(self.maker.sha256.clone());
                Box::pin(std::future::ready(Some(ModelName { sha256, ..ModelName::new("kokoro", &self.maker.name) })))
            }
            false => self.behind.model(voice),
        }
    }
}

#[cfg(test)]
mod tests;
