//! Fixed sentences of the sample agent, the demonstration and the sample callers, spoken once by Kokoro voices and kept
//! as Opus files in the program. They sound the same on every machine, and cost nothing.
//!
//! Whoever asks for such a voice by its name, `kokoro:NAME`, gets the kept sentences in it. Other words are said by the
//! synthesizer behind: in the same voice where its network is installed, else in another voice, and the result says so.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::kokoro::PREFIX;
use super::prosody::{NORMAL_WPM, rate_wpm};
use super::{Failure, Job, ModelName, Spoken, Status, Synthesizer, Voice, VoiceWanted, audio, pace};

/// A kept sentence: name of its voice, its words, an Ogg Opus file.
type Kept = (&'static str, &'static str, &'static [u8]);

/// Sentences that are kept. Written by `fixtures/voices/make.sh`.
const KEPT: &[Kept] = include!("../../fixtures/voices/index.inc");

/// A synthesizer with the kept sentences before it.
pub struct RecordedSpeech {
    behind: Arc<dyn Synthesizer>,
    /// Sentences that were decoded, by their place in the list.
    decoded: Mutex<HashMap<usize, Arc<[i16]>>>,
}

impl RecordedSpeech {
    /// Returns the kept sentences before `behind`, which says everything else.
    pub fn new(behind: Arc<dyn Synthesizer>) -> RecordedSpeech {
        RecordedSpeech { behind, decoded: Mutex::default() }
    }

    /// Returns the speech of a text all of whose sentences are kept in this voice.
    fn find(&self, text: &str, voice: &Voice) -> Option<Arc<[i16]>> {
        let name = voice.id.strip_prefix(PREFIX)?;
        if !as_it_is(voice) {
            return None;
        }
        let mut whole: Vec<i16> = Vec::new();
        for at in sentences(name, text)? {
            if !whole.is_empty() {
                whole.resize(whole.len() + pace::pause(Some('.')), 0);
            }
            whole.extend_from_slice(&self.decode(at)?);
        }
        Some(whole.into())
    }

    fn decode(&self, at: usize) -> Option<Arc<[i16]>> {
        if let Some(pcm) = self.decoded.lock().get(&at) {
            return Some(pcm.clone());
        }
        let pcm = audio::decode(KEPT[at].2.to_vec()).ok()?.pcm;
        self.decoded.lock().insert(at, pcm.clone());
        Some(pcm)
    }

    async fn say(&self, text: &str, voice: &Voice, out: mpsc::Sender<Spoken>) -> Result<(), Failure> {
        if let Some(pcm) = self.find(text, voice) {
            let _ = out.send(Spoken::Audio(pcm)).await;
            return Ok(());
        }
        let Some(other) = voice.fallback.as_deref().filter(|_| voice.id.starts_with(PREFIX)) else {
            return self.behind.synthesize(text, voice, out).await;
        };
        let message = format!("{} has kept sentences only: `ringer models add` brings Kokoro voices", voice.id);
        let _ = out.send(Spoken::Fallback(Failure { code: "synthesizer_missing", message })).await;
        self.behind.synthesize(text, other, out).await
    }
}

/// True if all sentences of a text are kept in the voice of this id.
pub fn is_kept(id: &str, text: &str) -> bool {
    id.strip_prefix(PREFIX).is_some_and(|name| sentences(name, text).is_some())
}

/// True for a voice of kept sentences, in whose place another one says all other words.
fn is_kept_voice(voice: &Voice) -> bool {
    voice.fallback.is_some() && voice.id.starts_with(PREFIX)
}

/// True for a voice at normal speed in its own timbre, as the sentences were kept.
fn as_it_is(voice: &Voice) -> bool {
    (voice.rate_wpm / NORMAL_WPM - 1.0).abs() < 0.01
        && (voice.pitch, voice.formant, voice.bands_db) == (1.0, 1.0, [0.0; 4])
}

/// Returns the places of a text's sentences in the list; `None` when one of them is not kept.
fn sentences(name: &str, text: &str) -> Option<Vec<usize>> {
    let (mut found, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let begins = |words: &str| {
            rest.strip_prefix(words).is_some_and(|later| later.is_empty() || later.starts_with(char::is_whitespace))
        };
        let kept = KEPT.iter().enumerate().filter(|(_, kept)| kept.0 == name && begins(kept.1));
        let (at, (_, words, _)) = kept.max_by_key(|(_, kept)| kept.1.len())?;
        found.push(at);
        rest = rest[words.len()..].trim_start();
    }
    Some(found)
}

impl Synthesizer for RecordedSpeech {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        let named = wanted.custom_voice_id.as_deref().unwrap_or_default();
        let voice = self.behind.voice(wanted);
        let Some(name) = named.strip_prefix(PREFIX).filter(|name| KEPT.iter().any(|kept| kept.0 == *name)) else {
            return voice;
        };
        // A server takes any name for one of its own voices.
        if voice.as_ref().is_ok_and(|voice| voice.id.starts_with(PREFIX)) {
            return voice;
        }
        // `af_heart` is of an American woman, `bm_george` of a British man.
        let gender = if name.as_bytes()[1] == b'f' { "female" } else { "male" };
        let accent = if name.starts_with('b') { "british" } else { "american" };
        let other = VoiceWanted {
            accent: Some(accent.to_owned()),
            gender: Some(gender.to_owned()),
            custom_voice_id: None,
            ..wanted.clone()
        };
        let other = self.behind.voice(&other)?;
        let rate_wpm = rate_wpm(&wanted.speed);
        Ok(Voice { id: named.to_owned(), rate_wpm, fallback: Some(Box::new(other)), ..Voice::default() })
    }

    fn find_voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        match wanted.custom_voice_id {
            Some(_) => self.voice(wanted),
            None => self.behind.find_voice(wanted),
        }
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.say(text, voice, out))
    }

    fn prepare<'a>(&'a self, texts: &'a [String], voice: &'a Voice) -> Job<'a, ()> {
        Box::pin(async move {
            let others: Vec<String> = texts.iter().filter(|text| self.find(text, voice).is_none()).cloned().collect();
            if !others.is_empty() {
                self.behind.prepare(&others, voice).await;
            }
        })
    }

    fn ready<'a>(&'a self, voice: &'a Voice) -> Job<'a, ()> {
        match voice.fallback.as_deref().filter(|_| voice.id.starts_with(PREFIX)) {
            Some(other) => self.behind.ready(other),
            None => self.behind.ready(voice),
        }
    }

    fn check<'a>(&'a self, voice: &'a Voice) -> Job<'a, Result<(), Failure>> {
        match is_kept_voice(voice) {
            true => Box::pin(std::future::ready(Ok(()))),
            false => self.behind.check(voice),
        }
    }

    fn says_all(&self, voice: &Voice, texts: Option<&[String]>) -> bool {
        match is_kept_voice(voice) {
            true => texts.is_some_and(|texts| texts.iter().all(|text| self.find(text, voice).is_some())),
            false => self.behind.says_all(voice, texts),
        }
    }

    fn status(&self) -> Status {
        self.behind.status()
    }

    fn model<'a>(&'a self, voice: &'a Voice) -> Job<'a, Option<ModelName>> {
        match voice.id.strip_prefix(PREFIX).filter(|_| voice.fallback.is_some()) {
            Some(name) => Box::pin(std::future::ready(Some(ModelName::new("recorded", name)))),
            None => self.behind.model(voice),
        }
    }
}

#[cfg(test)]
mod tests;
