//! A model is loaded and tried: whether it works, how fast it is here, and for how many calls that does.

use std::num::NonZero;
use std::path::Path;

use ringer_media::codec::{Codec, Decoder};
use ringer_media::resample::resample_whole;
use ringer_speech::clauses::clauses;
use ringer_speech::kokoro::{self, Kokoro, KokoroVoice};
use ringer_speech::piper::{Manner, PiperVoice};
use ringer_speech::whisper::{Spoken, Whisper};
use serde_json::{Value, json};

use crate::clock;
use crate::provider::canned::SPEECH;
use crate::provider::models::{Kind, kind, voices};

/// Speech that a model hears on trial: 4 s.
const TRIAL_BYTES: usize = 4 * 8000;
/// Share of a call in which the agent speaks.
const SPOKEN: f64 = 0.5;
/// Most voices that are named to a person.
const VOICES_TOLD: usize = 8;
/// A text of ten words.
const TEXT: &str = "Hello, I would like to book a visit next week.";

/// Findings about a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    pub kind: Kind,
    /// True if it recognises other languages than English.
    pub multilingual: bool,
    /// Names and languages of voices.
    pub voices: Vec<(String, String)>,
    /// Seconds of one core for a second of speech.
    pub factor: f64,
    /// Calls that this machine hears at once, with agents that speak half of the time.
    pub calls: usize,
}

impl Checked {
    /// Describes them to a person.
    pub fn text(&self) -> String {
        let factor = self.factor;
        match self.kind {
            Kind::Whisper => format!(
                "it hears {}; {factor:.3} s of a core for a second of speech (about {} at once here, each with an agent that \
                 speaks half of the time)",
                if self.multilingual { "many languages" } else { "English" },
                crate::cli::count(self.calls, "call"),
            ),
            Kind::Piper | Kind::Kokoro if self.voices.len() > VOICES_TOLD => {
                let mut languages: Vec<&str> = self.voices.iter().map(|(_, language)| language.as_str()).collect();
                languages.dedup();
                let (count, languages) = (self.voices.len(), languages.join(", "));
                format!("it speaks by {count} voices ({languages}); {factor:.3} s of a core for a second of speech")
            }
            Kind::Piper | Kind::Kokoro => {
                let voices: Vec<String> =
                    self.voices.iter().map(|(name, language)| format!("{name} ({language})")).collect();
                format!("it speaks by {}; {factor:.3} s of a core for a second of speech", voices.join(", "))
            }
        }
    }

    /// Describes them to a program.
    pub fn json(&self, name: &str) -> Value {
        let voices: Vec<Value> =
            self.voices.iter().map(|(name, language)| json!({"name": name, "language": language})).collect();
        json!({"name": name, "kind": self.kind.name(), "multilingual": self.multilingual, "voices": voices,
            "real_time_factor": self.factor, "calls": (self.kind == Kind::Whisper).then_some(self.calls)})
    }
}

/// Loads the model in a folder and tries it.
///
/// # Errors
/// Says what is wrong with it.
pub fn check(folder: &Path) -> Result<Checked, String> {
    match kind(folder) {
        None => Err(format!(
            "{} holds no model: one that hears has model.bin or model.safetensors and tokenizer.json, one that speaks X.onnx \
             and X.onnx.json, or model.onnx and voices/X.bin of Kokoro",
            folder.display()
        )),
        Some(Kind::Whisper) => hear(folder),
        Some(Kind::Piper) => speak(folder),
        Some(Kind::Kokoro) => speak_slowly(folder),
    }
}

fn hear(folder: &Path) -> Result<Checked, String> {
    let model = Whisper::load(folder).map_err(|why| why.0)?;
    let mut pcm = vec![0; TRIAL_BYTES];
    Decoder::new(Codec::Pcmu).decode(&SPEECH[..TRIAL_BYTES], &mut pcm);
    let pcm = resample_whole(&pcm, 8000, 16_000);
    // The first time also fetches the weights into the caches.
    let tries = [(); 2].map(|()| clock::seconds_of(|| model.hear(&pcm, Spoken::Known("en"), &|| false)));
    if tries.iter().any(|(heard, _)| heard.as_ref().is_none_or(|heard| heard.is_unclear() || heard.text.is_empty())) {
        return Err("it recognizes no words of clear English speech".to_owned());
    }
    let factor = tries.iter().map(|(_, spent)| *spent).fold(f64::INFINITY, f64::min) / (pcm.len() as f64 / 16_000.0);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get) as f64;
    let calls = (cores / (factor * SPOKEN)) as usize;
    Ok(Checked { kind: Kind::Whisper, multilingual: model.is_multilingual(), voices: Vec::new(), factor, calls })
}

fn speak(folder: &Path) -> Result<Checked, String> {
    let mut found = Vec::new();
    let mut factor = 0f64;
    for name in voices(folder) {
        let voice = PiperVoice::load(&folder.join(format!("{name}.onnx"))).map_err(|why| why.0)?;
        let clause = &clauses(TEXT, |_, _| false)[0];
        let manner = Manner { speaker: 0, length: 1.0, seed: 1 };
        let (said, spent) = clock::seconds_of(|| voice.say(clause, manner));
        let spoken = said.map_err(|why| why.0)?.len() as f64 / f64::from(voice.rate_hz());
        if spoken < 0.3 {
            return Err(format!("{name} said nothing"));
        }
        factor = factor.max(spent / spoken);
        found.push((name, voice.language().to_owned()));
    }
    Ok(Checked { kind: Kind::Piper, multilingual: false, voices: found, factor, calls: 0 })
}

/// The first voice says a sentence, the first one of each other language a word.
fn speak_slowly(folder: &Path) -> Result<Checked, String> {
    let model = Kokoro::load(folder).map_err(|why| why.0)?;
    let all = kokoro::voices(folder);
    let say = |voice: &KokoroVoice, text: &str| {
        let clause = &clauses(text, |_, _| false)[0];
        let (said, spent) = clock::seconds_of(|| model.say(voice, clause, 1.0));
        let spoken = said.map_err(|why| why.0)?.len() as f64 / f64::from(kokoro::RATE_HZ);
        if spoken < 0.2 { Err(format!("{} said nothing", voice.name)) } else { Ok(spent / spoken) }
    };
    let factor = all.first().map_or(Ok(0.0), |voice| say(voice, TEXT))?;
    // One voice of each language: the others are tables of the same form.
    for (at, voice) in all.iter().enumerate().skip(1) {
        if all[at - 1].tongue == voice.tongue {
            model.check(voice).map_err(|why| why.0)?;
        } else {
            say(voice, "Hello.")?;
        }
    }
    let voices = all.into_iter().map(|voice| (voice.name, voice.tongue.language.to_owned())).collect();
    Ok(Checked { kind: Kind::Kokoro, multilingual: false, voices, factor, calls: 0 })
}
