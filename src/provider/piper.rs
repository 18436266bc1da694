//! The neural synthesizer: Piper voices in this process, and the installed programs for what they do not speak. Clause
//! by clause, each one as soon as it is made; what was said once is kept, in memory and on disk.
//!
//! All that is random in a voice follows from the caller's timbre, which follows from the call's seed, and from the
//! text.

mod choice;
mod disk;

use std::collections::HashMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use ringer_base::tasks::{Tasks, behind_calls};
use ringer_media::sentence::goes_on;
use ringer_media::{clip, level, tempo};
use ringer_speech::piper::{Clause, Manner, PiperVoice, clauses, phonemes_are_installed};
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, mpsc};

use self::choice::Known;
use self::disk::DiskCache;
use super::cache::SpeechCache;
use super::prosody::NORMAL_WPM;
use super::speech::EmbeddedSpeech;
use super::spoken_form::spoken_form;
use super::timbre::{Timbre, speech_s};
use super::voice::{TEXT_BYTES_MAX, measurable_words};
use super::{Failure, Job, ModelName, Spoken, Status, Synthesizer, Voice, VoiceWanted, whole_speech};

/// Beginning of the ids of these voices.
pub const PREFIX: &str = "piper:";
/// Audio kept in memory: about half an hour.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Largest error of a clause's speed, as a share of it.
const RATE_OFF: f32 = 0.03;
/// A clause is made a little slower than it is to be: to shorten it costs nothing, to lengthen it means to say it
/// again.
const SLOWER: f32 = 1.04;
/// Factors of a voice's own length.
const LENGTH: (f32, f32) = (0.45, 2.2);
/// Silence after a clause, in samples: 150 ms behind a comma, 350 ms behind a full stop.
const PAUSES: (usize, usize) = (2400, 5600);
/// Most correction of the level, in dB a second.
const DB_A_SECOND: f64 = 1.0;
/// Texts that tell a voice's own speed.
const MEASURED: [(&str, &str); 4] = [
    ("en", "Good morning, I am calling because I would like to change my appointment to another day of the week."),
    ("es", "Buenos d\u{ed}as, le llamo porque me gustar\u{ed}a cambiar mi cita para otro d\u{ed}a de la semana."),
    ("fr", "Bonjour, je vous appelle parce que je voudrais changer mon rendez-vous pour un autre jour de la semaine."),
    ("de", "Guten Morgen, ich rufe an, weil ich meinen Termin gern auf einen anderen Tag der Woche legen m\u{f6}chte."),
];

/// The synthesizer of neural voices.
pub struct PiperSpeech {
    known: Vec<Known>,
    floor: Arc<EmbeddedSpeech>,
    voices: Arc<Voices>,
    cache: SpeechCache,
    disk: Option<DiskCache>,
    places: Semaphore,
    tasks: Tasks,
}

/// Loaded voices, by file.
#[derive(Default)]
struct Voices(Mutex<HashMap<PathBuf, LoadedOnce>>);

/// A voice that is loaded by the first who needs it.
type LoadedOnce = Arc<OnceLock<Result<Arc<Loaded>, Failure>>>;

struct Loaded {
    voice: PiperVoice,
    /// Words a minute at length 1, and the gain to the speech level: of the speakers that were asked for.
    own: Mutex<HashMap<i32, (f32, f64)>>,
}

fn failure(message: String) -> Failure {
    Failure { code: "synthesizer_failed", message }
}

impl Voices {
    fn get(&self, path: &Path) -> Result<Arc<Loaded>, Failure> {
        let place = {
            let mut voices = self.0.lock();
            voices.entry(path.to_owned()).or_default().clone()
        };
        let load = || {
            let voice = PiperVoice::load(path).map_err(|why| failure(format!("the voice cannot speak: {why}")))?;
            Ok(Arc::new(Loaded { voice, own: Mutex::default() }))
        };
        place.get_or_init(load).clone()
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
        let text = MEASURED.iter().find(|(code, _)| *code == language).map_or(MEASURED[0].1, |(_, text)| text);
        let words = Clause { words: text.trim_end_matches('.').to_owned(), mark: Some('.') };
        let said = self.voice.say(&words, Manner { speaker, length: 1.0, seed: 1 }).map_err(|why| failure(why.0))?;
        let mut pcm = plain(&said, self.voice.rate_hz());
        let own_wpm = text.split_whitespace().count() as f32 * 60.0 / speech_s(&pcm).max(0.1);
        let gain_db = level::to_speech_level(&mut pcm, 16_000);
        let own = (own_wpm.clamp(80.0, 400.0), gain_db);
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
        floor: Arc<EmbeddedSpeech>,
    ) -> Result<PiperSpeech, Failure> {
        let missing = |message: String| Failure { code: "synthesizer_missing", message };
        phonemes_are_installed().map_err(|why| missing(why.0))?;
        let known = choice::voices_in(folders, &named).map_err(missing)?;
        if known.is_empty() {
            return Err(missing("there is no Piper voice: `ringer models add` brings one".to_owned()));
        }
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Ok(PiperSpeech {
            known,
            floor,
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
                pause: if last { 0 } else { pause(clause.mark) },
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
            return self.floor.synthesize(text, voice, out).await;
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
        let pcm = whole_speech(&*self.floor, text, other).await.map_err(|_| failure.clone())?;
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

fn pause(mark: Option<char>) -> usize {
    if mark.is_some_and(|mark| ".!?".contains(mark)) { PAUSES.1 } else { PAUSES.0 }
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
        let words = measurable_words(&self.voice.language, &self.clause.words);
        let target_wpm = self.voice.rate_wpm;
        let factor = if words.is_some() { own_wpm / target_wpm } else { NORMAL_WPM / target_wpm };
        let mut length = (factor * SLOWER).clamp(LENGTH.0, LENGTH.1);
        let mut pcm = self.say(&loaded, length)?;
        if let Some(words) = words {
            let wanted_s = words as f32 * 60.0 / target_wpm;
            let off = |pcm: &[i16]| speech_s(pcm).max(0.1) / wanted_s;
            if off(&pcm) < 1.0 - RATE_OFF {
                length = (length / off(&pcm) * SLOWER).clamp(LENGTH.0, LENGTH.1);
                pcm = self.say(&loaded, length)?;
            }
            if off(&pcm) > 1.0 + RATE_OFF {
                let wanted = (pcm.len() as f32 / off(&pcm)) as usize;
                pcm = tempo::shorten(&pcm, wanted.max(pcm.len() / 2));
            }
        }
        let gain_db = self.level(&mut pcm, own_gain_db);
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

    /// Sets the level of a clause; returns its gain in dB. A text of one clause has the speech level; in longer ones
    /// the gain is the voice's own and moves slowly.
    fn level(&self, pcm: &mut [i16], own_gain_db: f64) -> f64 {
        let mut exact = pcm.to_vec();
        let exact_db = level::to_speech_level(&mut exact, 16_000);
        if self.alone {
            pcm.copy_from_slice(&exact);
            return exact_db;
        }
        let before = self.gain_db.unwrap_or(own_gain_db);
        let most = DB_A_SECOND * pcm.len() as f64 / 16_000.0;
        let gain_db = before + (exact_db - before).clamp(-most, most);
        // 3 dB below full scale is the highest peak.
        let peak = pcm.iter().map(|sample| f64::from(sample.unsigned_abs())).fold(1.0, f64::max);
        level::gain(pcm, gain_db.min(20.0 * (23_197.0 / peak).log10()));
        gain_db
    }
}

impl Synthesizer for PiperSpeech {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        let floor = self.floor.voice(wanted);
        let Some((known, mut voice)) = choice::choose(&self.known, wanted)? else { return floor };
        self.warm(known, &wanted.language);
        let other = floor.or_else(|_| self.floor.voice(&VoiceWanted { custom_voice_id: None, ..wanted.clone() }));
        voice.fallback = other.ok().map(Box::new);
        Ok(voice)
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

    fn status(&self) -> Status {
        Status::Ok
    }

    fn model(&self, voice: &Voice) -> Option<ModelName> {
        match voice.id.strip_prefix(PREFIX) {
            Some(name) => Some(ModelName::new("piper", name.split('#').next().unwrap_or_default())),
            None => self.floor.model(voice),
        }
    }
}

#[cfg(test)]
mod tests;
