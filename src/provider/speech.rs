//! The embedded synthesizer: flite and espeak-ng as child processes. It gives words a caller's voice, speed and level;
//! it adds no words and no pauses.
//!
//! The text goes through the child's standard input, the audio comes back in a file of a folder that only this user can
//! read. As many children run at once as there are cores; one has 10 s for a text, and a text waits for a free place as
//! long as its call does. What was said once is kept.

use std::fs::{DirBuilder, remove_dir_all};
use std::num::NonZero;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ringer_base::tasks;
use ringer_media::{clip, level};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::{Semaphore, mpsc};

use super::cache::SpeechCache;
use super::spoken_form::spoken_form;
use super::timbre::{self, Timbre};
use super::voice::{TEXT_BYTES_MAX, choose, measurable_words, substitute};
use super::{Failure, Job, ModelName, Spoken, Status, Synthesizer, Voice, VoiceWanted, espeak, flite};

/// The program of a voice is not installed.
const MISSING: &str = "synthesizer_missing";
/// Time for a child. Waiting for a free place is none of it: a late text makes a late turn.
const TEXT_LIMIT: Duration = Duration::from_secs(10);
/// The same for a text that nobody waits for: all calls come first.
const UNHURRIED_LIMIT: Duration = Duration::from_secs(120);
/// Largest answer of a child: 3 minutes at 22.05 kHz.
const AUDIO_BYTES_MAX: u64 = 8 << 20;
/// Most times that a text is spoken until its speed is right.
const TIMES_MAX: usize = 3;
/// Largest error of the speed, as a share of it.
const RATE_OFF: f32 = 0.04;
/// Smaller changes of what the program is asked for are not worth another time.
const RATE_STEP: f32 = 0.01;
/// Short and long words move what the program is asked for so far from the wanted rate.
const RATE_MOVED: (f32, f32) = (0.6, 1.6);
/// The same in English, whose voices are at the right speed over a call by themselves: what is much faster is not
/// understood.
const RATE_MOVED_ENGLISH: (f32, f32) = (0.75, 1.35);
/// Audio kept for another use: about half an hour.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// Synthesizer that runs flite and espeak-ng as child processes.
pub struct EmbeddedSpeech {
    cache: SpeechCache,
    places: Semaphore,
    /// Time limit of a child process whose text somebody waits for.
    limit: Duration,
    folder: PathBuf,
    files: AtomicU64,
}

impl EmbeddedSpeech {
    /// Makes the private folder. Fails with `synthesizer_failed` when there is no place for it. Missing programs are
    /// told by [`Synthesizer::status`] and at their first use.
    pub fn new() -> Result<EmbeddedSpeech, Failure> {
        let folder = std::env::temp_dir().join(format!("ringer-{}", ringer_base::clock::new_id()));
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(|cause| failure(format!("no folder for speech in the system's temporary folder: {cause}")))?;
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Ok(EmbeddedSpeech {
            cache: SpeechCache::new(CACHE_BYTES_MAX),
            places: Semaphore::new(cores),
            limit: TEXT_LIMIT,
            folder,
            files: AtomicU64::new(0),
        })
    }

    async fn speak(&self, text: &str, voice: &Voice) -> Result<Arc<[i16]>, Failure> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Failure {
                code: "text_too_long",
                message: format!("a text to say has at most {TEXT_BYTES_MAX} bytes"),
            });
        }
        if !text.chars().any(char::is_alphanumeric) {
            return Ok(Arc::default());
        }
        let said = spoken_form(language_of(voice), text);
        let key = key(voice, &said);
        if let Some(pcm) = self.cache.get(&key) {
            return Ok(pcm);
        }
        let pcm = self.at_rate(&said, voice).await?;
        let mut pcm = pcm[clip::trim_silence(&pcm)].to_vec();
        level::to_speech_level(&mut pcm, 16_000);
        let pcm: Arc<[i16]> = pcm.into();
        self.cache.put(&key, &pcm);
        Ok(pcm)
    }

    /// Says it by the other program when the voice's own is not installed.
    async fn say(&self, text: &str, voice: &Voice, out: mpsc::Sender<Spoken>) -> Result<(), Failure> {
        let pcm = match self.speak(text, voice).await {
            Ok(pcm) => pcm,
            Err(failure) => {
                let other = instead(&failure, voice).ok_or_else(|| failure.clone())?;
                // Without either, the voice's own is what is wanted.
                let pcm = self.speak(text, &other).await.map_err(|_| failure.clone())?;
                let _ = out.send(Spoken::Fallback(failure)).await;
                pcm
            }
        };
        // Nobody listens any more: the future is dropped soon.
        let _ = out.send(Spoken::Audio(pcm)).await;
        Ok(())
    }

    /// Returns speech at the wanted speed. A voice's speed depends on the words, so a sentence is measured and, while
    /// it is off, said again.
    async fn at_rate(&self, text: &str, voice: &Voice) -> Result<Vec<i16>, Failure> {
        let mut asked_wpm = voice.rate_wpm;
        let mut pcm = self.speak_coloured(text, voice, asked_wpm).await?;
        for _ in 1..TIMES_MAX {
            let Some(better_wpm) = corrected_wpm(text, voice, asked_wpm, &pcm) else { break };
            asked_wpm = better_wpm;
            pcm = self.speak_coloured(text, voice, asked_wpm).await?;
        }
        Ok(pcm)
    }

    /// Speaks slower by what a pitch that is made by playing faster makes faster.
    async fn speak_coloured(&self, text: &str, voice: &Voice, rate_wpm: f32) -> Result<Vec<i16>, Failure> {
        let out = self.folder.join(self.files.fetch_add(1, Ordering::Relaxed).to_string());
        let played = voice.id.strip_prefix("flite:").and_then(flite::voice).map_or(1.0, |own| own.played(voice.pitch));
        let (program, mut command) = command(voice, rate_wpm / played, &out)?;
        let _gone_after_use = Scratch(&out);
        if voice.unhurried {
            // SAFETY: between fork and exec there is only a system call.
            unsafe {
                command.pre_exec(|| {
                    tasks::step_back();
                    Ok(())
                })
            };
        }
        let wav = {
            // Speech that nobody waits for takes nobody's place.
            let _place = match voice.unhurried {
                true => None,
                false => Some(self.places.acquire().await.map_err(|_| failure("the synthesizer is closed".into()))?),
            };
            let limit = if voice.unhurried { UNHURRIED_LIMIT } else { self.limit };
            run(program, command, text, limit).await?;
            read_output(program, &out).await?
        };
        let clip = whole(program, &wav)?;
        Ok(Timbre { played, formant: voice.formant, bands_db: voice.bands_db }.colour(&clip.pcm, clip.rate_hz))
    }
}

impl Synthesizer for EmbeddedSpeech {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        choose(wanted)
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.say(text, voice, out))
    }

    fn status(&self) -> Status {
        let missing = |program: &&str| {
            let quiet = || Stdio::null();
            let mut command = std::process::Command::new(program);
            command.arg("--version").stdin(quiet()).stdout(quiet()).stderr(quiet()).status().is_err()
        };
        match [flite::PROGRAM, espeak::PROGRAM].iter().find(|program| missing(program)) {
            Some(program) => Status::Down(format!("{program} is missing: install the package {program}")),
            None => Status::Ok,
        }
    }

    fn model<'a>(&'a self, voice: &'a Voice) -> Job<'a, Option<ModelName>> {
        // Voices are named PROGRAM:NAME.
        let name = ModelName::new("embedded", voice.id.split(':').next().unwrap_or_default());
        Box::pin(std::future::ready(Some(name)))
    }
}

impl Drop for EmbeddedSpeech {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.folder);
    }
}

/// Returns the voice to use when the voice's program is missing; `None` for other failures.
fn instead(failure: &Failure, voice: &Voice) -> Option<Voice> {
    (failure.code == MISSING).then(|| substitute(voice)).flatten()
}

/// A file that goes when its reader does, also when that is cancelled.
struct Scratch<'a>(&'a Path);

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

fn failure(message: String) -> Failure {
    Failure { code: "synthesizer_failed", message }
}

/// Returns a text of all that the samples follow from; `said` is the text in its spoken form.
fn key(voice: &Voice, said: &str) -> String {
    format!("{}|{}|{}|{}|{:?}|{said}", voice.id, voice.rate_wpm, voice.pitch, voice.formant, voice.bands_db)
}

/// Returns the language that the voice's program speaks: `en`, `de+f3`.
fn language_of(voice: &Voice) -> &str {
    voice.id.strip_prefix("espeak-ng:").unwrap_or("en")
}

fn command(voice: &Voice, rate_wpm: f32, out: &Path) -> Result<(&'static str, Command), Failure> {
    let unknown = || Failure { code: "unknown_voice", message: "the synthesizer has no such voice".into() };
    if let Some(name) = voice.id.strip_prefix("flite:") {
        let flite_voice = flite::voice(name).ok_or_else(unknown)?;
        return Ok((flite::PROGRAM, flite::command(flite_voice, rate_wpm, voice.pitch, out)));
    }
    let name = voice.id.strip_prefix("espeak-ng:").ok_or_else(unknown)?;
    Ok((espeak::PROGRAM, espeak::command(name, rate_wpm, voice.pitch, out)))
}

/// Runs a child process; one that takes longer than `limit` is ended.
async fn run(program: &str, command: Command, text: &str, limit: Duration) -> Result<(), Failure> {
    let late = || failure(format!("{program} took longer than {} s", limit.as_secs()));
    tokio::time::timeout(limit, finish(program, command, text)).await.map_err(|_| late())?
}

async fn finish(program: &str, mut command: Command, text: &str) -> Result<(), Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => {
            Failure { code: MISSING, message: format!("{program} is missing: install the package {program}") }
        }
        _ => failure(format!("{program} does not start: {cause}")),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // espeak-ng reads phonemes between double brackets. A child that stops reading says why by its exit code.
        let text = text.replace("[[", "[ [").replace('\0', " ");
        let _ = stdin.write_all(text.as_bytes()).await;
        let _ = stdin.write_all(b"\n").await;
    }
    match child.wait().await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failure(format!("{program} ended with {status}"))),
        Err(cause) => Err(failure(format!("{program} was lost: {cause}"))),
    }
}

async fn read_output(program: &str, out: &Path) -> Result<Vec<u8>, Failure> {
    let bad = |cause: std::io::Error| failure(format!("{program} wrote no audio: {cause}"));
    if tokio::fs::metadata(out).await.map_err(bad)?.len() > AUDIO_BYTES_MAX {
        return Err(failure(format!("{program} wrote more than {AUDIO_BYTES_MAX} bytes")));
    }
    tokio::fs::read(out).await.map_err(bad)
}

/// Returns the audio that a child wrote: what its header tells of and is not there, as on a full disk, was not said.
fn whole(program: &str, wav: &[u8]) -> Result<clip::Clip, Failure> {
    let unusable = |cause| failure(format!("{program} wrote no usable audio: {cause}"));
    let missing = clip::wav::sections(wav).map_err(unusable)?.missing;
    if missing > 0 {
        return Err(failure(format!("{program} wrote only a part of its audio: {missing} bytes are missing")));
    }
    clip::Clip::from_wav(wav).map_err(unusable)
}

/// Returns the words per minute to ask the program for instead of `asked_wpm`, which made `pcm`, when that is worth it.
fn corrected_wpm(text: &str, voice: &Voice, asked_wpm: f32, pcm: &[i16]) -> Option<f32> {
    let language = language_of(voice);
    let words = measurable_words(language, text)?;
    let measured_wpm = words as f32 * 60.0 / timbre::speech_s(pcm).max(0.1);
    let factor = voice.rate_wpm / measured_wpm;
    let (least, most) = if language.starts_with("en") { RATE_MOVED_ENGLISH } else { RATE_MOVED };
    let better_wpm = (asked_wpm * factor).clamp(voice.rate_wpm * least, voice.rate_wpm * most);
    let apart = |factor: f32, least: f32| (factor - 1.0).abs() > least;
    (apart(factor, RATE_OFF) && apart(better_wpm / asked_wpm, RATE_STEP)).then_some(better_wpm)
}

#[cfg(test)]
mod tests {
    use ringer_media::seed::Seed;

    use super::*;

    mod speeds;

    const TEXT: &str = "Hello, I am calling because my last electricity bill was much higher than I expected. I have \
        checked the meter twice and the number on the paper does not match what I see. Could you please look at my account \
        and tell me what happened, because I cannot pay this much money?";
    const WORDS: f32 = 52.0;

    fn voice(id: &str, speed: &str, seed: u64) -> Voice {
        choose(&VoiceWanted {
            custom_voice_id: Some(id.into()),
            speed: speed.into(),
            seed: Seed(seed),
            ..VoiceWanted::of("en")
        })
        .expect("the voice is known")
    }

    /// Returns the pitch by the autocorrelation of the whole, 80 to 400 Hz.
    fn pitch_hz(pcm: &[i16]) -> f64 {
        let alike =
            |lag: usize| -> f64 { pcm.iter().zip(&pcm[lag..]).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum() };
        let best = (40..200).max_by(|&a, &b| alike(a).total_cmp(&alike(b))).expect("there are lags");
        16_000.0 / best as f64
    }

    /// Returns a frequency that is higher for brighter voices: RMS of the differences over RMS of the samples, as the
    /// frequency of a sine.
    fn brightness_hz(pcm: &[i16]) -> f64 {
        let energy: f64 = pcm.iter().map(|&x| f64::from(x).powi(2)).sum();
        let slope: f64 = pcm.windows(2).map(|pair| (f64::from(pair[1]) - f64::from(pair[0])).powi(2)).sum();
        (slope / energy).sqrt() * 16_000.0 / std::f64::consts::TAU
    }

    #[tokio::test]
    async fn english_voices_are_given_the_spoken_form() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        for (id, said) in
            [("flite:slt", "5 kilometers"), ("espeak-ng:en-gb+f3", "5 kilometers"), ("espeak-ng:de", "5 km")]
        {
            let voice = voice(id, "normal", 3);
            speech.cache.put(&key(&voice, said), &Arc::from([7]));
            assert_eq!(speech.speak("5 km", &voice).await.as_deref(), Ok(&[7][..]), "{id}");
        }
    }

    #[tokio::test]
    async fn speech_has_the_asked_speed_and_level_and_no_silent_ends() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        for id in ["flite:slt", "flite:rms", "espeak-ng:en-gb+f3"] {
            for (speed, expect_wpm) in [("slowest", 110.0), ("normal", 170.0), ("fastest", 250.0)] {
                let pcm = speech.speak(TEXT, &voice(id, speed, 3)).await.expect("the programs are installed");
                let wpm = WORDS * 60.0 / timbre::speech_s(&pcm);
                assert!((wpm / expect_wpm - 1.0).abs() < 0.08, "{id} {speed}: {wpm} words per minute");
                let level = level::active_level_dbov(&pcm, 16_000).expect("not silent").level_dbov;
                assert!((level + 26.0).abs() < 0.5, "{id} {speed}: {level} dBov");
                let edge = |samples: &[i16]| samples.iter().any(|x| x.unsigned_abs() > 30);
                assert!(edge(&pcm[..640]) && edge(&pcm[pcm.len() - 640..]), "{id} {speed}: silent end");
                assert!(pcm.iter().all(|x| x.unsigned_abs() < 23_300), "{id} {speed}: peak above -3 dBFS");
            }
        }
    }

    #[tokio::test]
    async fn callers_sound_different_and_the_same_caller_the_same() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let mut found = Vec::new();
        for seed in [1, 2, 3, 4] {
            let pcm = speech.speak("I would like an appointment.", &voice("slt", "normal", seed)).await;
            let pcm = pcm.expect("flite is installed");
            found.push((pitch_hz(&pcm), brightness_hz(&pcm)));
        }
        let apart = |a: f64, b: f64| (a / b - 1.0).abs();
        let differ = |a: (f64, f64), b: (f64, f64)| apart(a.0, b.0) > 0.02 || apart(a.1, b.1) > 0.04;
        for (at, &one) in found.iter().enumerate() {
            assert!(found[at + 1..].iter().all(|&other| differ(one, other)), "{found:?}");
        }
        let other = EmbeddedSpeech::new().expect("there is a temporary folder");
        let (text, caller) = ("I would like an appointment.", voice("slt", "normal", 1));
        let [first, again] = [&speech, &other].map(|speech| speech.speak(text, &caller));
        assert_eq!(first.await, again.await);
    }

    /// A text waits without limit while all places are taken; a child process that does not end is killed.
    #[tokio::test]
    async fn only_a_childs_own_time_is_limited() {
        let mut speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        speech.limit = Duration::from_millis(1);
        let caller = voice("slt", "normal", 1);
        let places = u32::try_from(speech.places.available_permits()).expect("cores are few");
        let _taken = speech.places.acquire_many(places).await.expect("they are free");
        let waiting = tokio::time::timeout(20 * speech.limit, speech.speak("Hello.", &caller)).await;
        assert!(waiting.is_err(), "it was to wait: {waiting:?}");
        let mut endless = Command::new("sleep");
        endless.arg("600");
        let failure = run("sleep", endless, "Hello.", speech.limit).await.expect_err("it does not end");
        assert_eq!(failure.code, "synthesizer_failed");
        assert!(failure.message.contains("took longer than"), "{}", failure.message);
    }

    #[tokio::test]
    async fn odd_texts_are_only_words() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let seconds = async |id: &str, text: &str| {
            speech.speak(text, &voice(id, "normal", 1)).await.expect("said").len() as f32 / 16_000.0
        };
        for id in ["flite:slt", "espeak-ng:en+m1"] {
            assert_eq!(seconds(id, "  ... ").await, 0.0, "{id}");
            for text in [
                "--help me please",
                "-v is my letter",
                "$(reboot) now; `ls`",
                "<break time=\"60s\"/> hello",
                "[[ hello",
            ] {
                let length = seconds(id, text).await;
                assert!((0.2..8.0).contains(&length), "{id} {text}: {length} s");
            }
        }
        let long = "word ".repeat(2000);
        let refused = speech.speak(&long, &voice("slt", "normal", 1)).await;
        assert_eq!(refused.expect_err("too long").code, "text_too_long");
    }

    #[tokio::test]
    async fn other_languages_are_said() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let texts = [
            ("es", "Buenos d\u{ed}as, quiero una cita."),
            ("de", "Guten Tag, ich h\u{e4}tte gern einen Termin."),
            ("ja", "\u{3053}\u{3093}\u{306b}\u{3061}\u{306f}"),
            ("zh", "\u{4f60}\u{597d}"),
            ("ar", "\u{645}\u{631}\u{62d}\u{628}\u{627}"),
        ];
        for (language, text) in texts {
            let wanted = VoiceWanted { gender: Some("female".into()), seed: Seed(5), ..VoiceWanted::of(language) };
            let voice = speech.voice(&wanted).expect("the language has a voice");
            let pcm = speech.speak(text, &voice).await.expect("espeak-ng is installed");
            assert!(pcm.len() > 3200, "{language}: {} samples", pcm.len());
        }
    }

    #[test]
    fn half_of_the_audio_is_not_taken_for_all_of_it() {
        let wav = clip::write_wav(16_000, 1, &[5; 800]);
        assert_eq!(whole("flite", &wav).map(|clip| clip.pcm.len()), Ok(800));
        let expect = "flite wrote only a part of its audio: 600 bytes are missing";
        assert_eq!(whole("flite", &wav[..wav.len() - 600]).map_err(|failure| failure.message), Err(expect.into()));
        let expect = "flite wrote no usable audio: not a WAV file";
        assert_eq!(whole("flite", b"").map_err(|failure| failure.message), Err(expect.into()));
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let failure = run("flite", Command::new("/nowhere/flite"), "hello", TEXT_LIMIT).await.expect_err("not there");
        assert_eq!(failure.code, "synthesizer_missing");
        assert!(failure.message.contains("install the package flite"), "{}", failure.message);
        // The other program speaks in its place, where there is one for the language and nothing else is wrong.
        let other = |id: &str, code| instead(&Failure { code, ..failure.clone() }, &voice(id, "fast", 3));
        let found = other("slt", MISSING).map(|voice| (voice.id, voice.rate_wpm));
        assert_eq!(found, Some(("espeak-ng:en+f1".to_owned(), 205.0)));
        assert_eq!(other("slt", "synthesizer_failed"), None);
    }
}
