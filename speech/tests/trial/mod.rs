//! Parts that tests of models share: the models, telephone lines, and counting wrong words.
#![allow(dead_code, reason = "each binary of tests uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringer_media::clip::Clip;
use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::resample::resample_whole;
use ringer_speech::clauses::clauses;
use ringer_speech::kokoro::{self, Kokoro, voice_of};
use ringer_speech::piper::{Manner, PiperVoice};
use ringer_speech::whisper::{Spoken, Whisper};

/// Sentences of calls, 30 of them.
pub(crate) const SENTENCES: &str = include_str!("../../../fixtures/speech/sentences.txt");
/// Name of the voice's file.
pub(crate) const VOICE: &str = "en_US-joe-medium.onnx";

/// Returns a variable of the environment.
#[expect(clippy::disallowed_methods, reason = "tests of this package have no settings")]
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Returns the folder of a model that `make speech-models` brings.
pub(crate) fn model(name: &str) -> PathBuf {
    let home = || variable("HOME").unwrap_or_default().join(".cache/ringer-test-models");
    let folder = variable("RINGER_MODELS_CACHE").unwrap_or_else(home).join(name);
    assert!(folder.is_dir(), "{} is missing: `make speech-models` brings it", folder.display());
    folder
}

pub(crate) fn whisper(name: &str) -> Whisper {
    Whisper::load(&model(name)).expect("the model is whole")
}

pub(crate) fn sentences() -> Vec<&'static str> {
    SENTENCES.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Returns 16 kHz speech of a text by the installed synthesizer's voice.
pub(crate) fn flite(text: &str, voice: &str) -> Vec<i16> {
    // Tests of one process run side by side: each call has a file of its own.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let (process, call) = (std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(format!("ringer-speech-{process}-{call}.wav"));
    let status = Command::new("flite").args(["-voice", voice, "-t", text, "-o"]).arg(&path).status();
    assert!(status.expect("flite is installed").success());
    let wav = std::fs::read(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it is there");
    Clip::from_wav(&wav).expect("a WAV file").to_16k()
}

/// 16 kHz of a text by the installed synthesizer of many languages.
pub(crate) fn espeak(text: &str, language: &str) -> Vec<i16> {
    let said = Command::new("espeak-ng").args(["-v", language, "-s", "150", "--stdout", text]).output();
    let said = said.expect("espeak-ng is installed");
    assert!(said.status.success());
    Clip::from_wav(&said.stdout).expect("a WAV file").to_16k()
}

/// 16 kHz of a text by a Piper voice.
pub(crate) fn piper(voice: &PiperVoice, text: &str, seed: u64) -> Vec<i16> {
    let say = |clause| voice.say(clause, Manner { speaker: 0, length: 1.0, seed }).expect("it is said");
    let said: Vec<i16> = clauses(text, |_, _| false).iter().flat_map(say).collect();
    resample_whole(&said, voice.rate_hz(), 16_000)
}

pub(crate) fn kokoro() -> Kokoro {
    Kokoro::load(&model("kokoro")).expect("the model is whole")
}

/// 16 kHz of a text by a Kokoro voice, at a speed as a factor of its own.
pub(crate) fn kokoro_says(model: &Kokoro, voice: &str, text: &str, speed: f32) -> Vec<i16> {
    let voice = voice_of(voice).expect("it is the name of a voice");
    let say = |clause| model.say(&voice, clause, speed).expect("it is said");
    let said: Vec<i16> = clauses(text, |_, _| false).iter().flat_map(say).collect();
    resample_whole(&said, kokoro::RATE_HZ, 16_000)
}

/// Sends 16 kHz audio through a codec and returns it as it arrives.
pub(crate) fn through(codec: Codec, pcm: &[i16]) -> Vec<i16> {
    let rate = if codec == Codec::G722 { 16_000 } else { 8000 };
    let pcm = resample_whole(pcm, 16_000, rate);
    let (mut encoder, mut decoder) = (Encoder::new(codec), Decoder::new(codec));
    let (frame, mut heard) = (rate as usize / 50, Vec::new());
    for part in pcm.chunks_exact(frame) {
        let mut bytes = [0; 1500];
        let count = encoder.encode(part, &mut bytes);
        let mut out = vec![0; frame];
        decoder.decode(&bytes[..count], &mut out);
        heard.extend(out);
    }
    resample_whole(&heard, rate, 16_000)
}

/// English words for numbers up to twelve, and of the tens.
const NUMBERS: [&str; 13] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const TEENS: [&str; 7] = ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"];

/// Returns the value of an English word for a number.
fn number(word: &str) -> Option<usize> {
    let at = |list: &[&str]| list.iter().position(|name| *name == word);
    at(&NUMBERS).or_else(|| Some(at(&TEENS)? + 13)).or_else(|| Some((at(&TENS)? + 2) * 10))
}

/// Writes amounts of dollars as they are spoken: `$42.16` is 42 dollars and 16 cents.
fn spoken_amounts(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix('$') {
        None => word.to_owned(),
        Some(amount) => match amount.trim_end_matches(|c: char| !c.is_ascii_digit()).split_once('.') {
            Some((dollars, cents)) => format!("{dollars} dollars and {cents} cents"),
            None => format!("{amount} dollars"),
        },
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns words without marks, case and accents; English numbers below 100 as digits, as the model may write them.
fn plain(text: &str) -> Vec<String> {
    const ACCENTS: [(&str, char); 6] = [
        ("\u{e1}\u{e0}\u{e2}", 'a'),
        ("\u{e9}\u{e8}\u{ea}\u{eb}", 'e'),
        ("\u{ed}\u{ee}\u{ef}", 'i'),
        ("\u{f3}\u{f4}", 'o'),
        ("\u{fa}\u{f9}\u{fb}\u{fc}", 'u'),
        ("\u{e7}", 'c'),
    ];
    let letter = |c: char| ACCENTS.iter().find(|(from, _)| from.contains(c)).map_or(c, |(_, to)| *to);
    let text = spoken_amounts(&text.to_lowercase().replace("o'clock", "oclock"));
    let text: String = text.replace("tenth", "10th").chars().map(letter).collect();
    let mut words: Vec<String> = Vec::new();
    // Tens that the next word may add to.
    let mut open = false;
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match (number(word), words.last_mut()) {
            (Some(value @ 1..=9), Some(last)) if open => {
                *last = (last.parse::<usize>().expect("it is a number") + value).to_string();
                open = false;
            }
            (Some(value), _) => {
                words.push(value.to_string());
                open = value >= 20;
            }
            (None, _) => {
                words.push(word.to_owned());
                open = false;
            }
        }
    }
    words
}

/// Returns the number of words that are missing, added or different, and the number of all words.
pub(crate) fn wrong(said: &str, heard: &str) -> (usize, usize) {
    let (said, heard) = (plain(said), plain(heard));
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (at, word) in said.iter().enumerate() {
        let before = row.clone();
        row[0] = at + 1;
        for (other, found) in heard.iter().enumerate() {
            let changed = before[other] + usize::from(word != found);
            row[other + 1] = changed.min(before[other + 1] + 1).min(row[other] + 1);
        }
    }
    (row[heard.len()], said.len())
}

/// Returns the share of wrong words in percent: `heard` is asked for each text's audio.
pub(crate) fn wrong_pct(texts: &[&str], mut hear: impl FnMut(&str) -> String) -> f64 {
    let counts = texts.iter().map(|text| wrong(text, &hear(text)));
    let (wrong, all) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    100.0 * wrong as f64 / all as f64
}

/// Returns the words that are understood; nothing where the model doubts it.
pub(crate) fn text(model: &Whisper, pcm: &[i16], language: &str) -> String {
    let heard = model.hear(pcm, Spoken::Known(language), &|| false).expect("nobody cancels it");
    if heard.is_unclear() { String::new() } else { heard.text }
}

/// Returns a sound file at 16 kHz, decoded by ffmpeg.
pub(crate) fn decode_file(sound: &Path) -> Vec<i16> {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-i"]).arg(sound).args(["-f", "s16le", "-ac", "1", "-ar", "16000", "-"]);
    let output = ffmpeg.output().expect("ffmpeg is installed");
    assert!(output.status.success(), "{}", sound.display());
    output.stdout.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Loads the Piper voice.
pub(crate) fn joe() -> PiperVoice {
    PiperVoice::load(&model("joe").join(VOICE)).expect("the voice is whole")
}

/// Returns a folder with copies of a model's files, the one of that name cut to `bytes`.
pub(crate) fn broken(name: &str, file: &str, bytes: usize) -> (PathBuf, impl Drop) {
    struct Gone(PathBuf);
    impl Drop for Gone {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
    let folder = std::env::temp_dir().join(format!("ringer-broken-{}-{file}-{bytes}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
    for entry in std::fs::read_dir(model(name)).expect("it is there") {
        let path = entry.expect("it is there").path();
        let target = folder.join(path.file_name().expect("it has one"));
        if path.ends_with(file) {
            let whole = std::fs::read(&path).expect("it is readable");
            std::fs::write(target, &whole[..bytes.min(whole.len())]).expect("writable");
        } else if small(&path) {
            std::fs::copy(&path, target).expect("writable");
        } else {
            std::os::unix::fs::symlink(&path, target).expect("writable");
        }
    }
    (folder.clone(), Gone(folder))
}

fn small(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.len() < 10 << 20)
}
