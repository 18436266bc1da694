//! A synthesizer reached by the network: which of its voices a caller gets, how fast and how loud that voice is, learnt
//! from what it said before.

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::flow::{Flow, Measured};
use super::{LastUse, Remote, SYNTHESIZER, http_synthesizer, ws_synthesizer};
use crate::espeak::counts_words;
use crate::prosody::{NORMAL_WPM, rate_wpm};
use crate::voice::{TEXT_BYTES_MAX, is_female, measurable_words};
use crate::{Failure, Job, ModelName, Spoken, Status, Synthesizer, Voice, VoiceWanted};

/// Voices, each of a language, whose figures are kept.
const LEARNT_MAX: usize = 256;
/// Word by which it is found out if the server has a voice.
const TRIED: &str = "Hello.";
/// Share of a new measurement of the speed in what is kept.
const LEARN: f32 = 0.5;

/// Protocol of the synthesizer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// HTTP request, `POST {base}/audio/speech`.
    Http,
    /// WebSocket connection to the server.
    WebSocket,
}

/// The voices of a remote synthesizer.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteVoices {
    /// Voice for callers whom no other fits.
    pub default: String,
    /// Voice by `LANGUAGE[-ACCENT][-GENDER]` or by gender alone: `en-british-female`, `es-male`, `de`, `female`.
    pub named: BTreeMap<String, String>,
    /// Words per minute at speed 1, until they were measured.
    pub natural_wpm: f32,
}

/// A voice's own figures in a language.
#[derive(Copy, Clone, Debug)]
struct Learnt {
    gain_db: f64,
    natural_wpm: f32,
}

/// A synthesizer by HTTP or WebSocket.
pub struct RemoteSynthesizer {
    form: Form,
    remote: Remote,
    client: reqwest::Client,
    voices: RemoteVoices,
    /// Learnt gain and speed by language and voice id.
    learnt: Mutex<HashMap<(String, String), Learnt>>,
    /// Ids of voices that the server was seen to have.
    seen: Mutex<HashSet<String>>,
    last: LastUse,
}

impl RemoteSynthesizer {
    /// Opens no connection yet. Fails with `synthesizer_failed` when the TLS set-up does.
    pub fn new(form: Form, remote: Remote, voices: RemoteVoices) -> Result<RemoteSynthesizer, Failure> {
        let client = remote.client(&SYNTHESIZER)?;
        Ok(RemoteSynthesizer {
            form,
            remote,
            client,
            voices,
            learnt: Mutex::default(),
            seen: Mutex::default(),
            last: LastUse::default(),
        })
    }

    /// Returns gain and natural speed learnt for a voice. Where words are not counted, the natural speed is the normal
    /// one.
    fn learnt(&self, voice: &Voice) -> Learnt {
        let natural_wpm = if counts_words(&voice.language) { self.voices.natural_wpm } else { NORMAL_WPM };
        let learnt = self.learnt.lock();
        learnt.get(&key(voice)).copied().unwrap_or(Learnt { gain_db: 0.0, natural_wpm })
    }

    fn learn(&self, voice: &Voice, text: &str, speed: f32, measured: Measured) {
        let before = self.learnt(voice);
        let natural_wpm = measurable_words(&voice.language, text).map_or(before.natural_wpm, |words| {
            let said = words as f32 * 60.0 / measured.speech_s.max(0.1) / speed;
            before.natural_wpm + LEARN * (said.clamp(80.0, 400.0) - before.natural_wpm)
        });
        let mut learnt = self.learnt.lock();
        if learnt.len() < LEARNT_MAX || learnt.contains_key(&key(voice)) {
            learnt.insert(key(voice), Learnt { gain_db: measured.gain_db, natural_wpm });
        }
    }

    async fn say(&self, text: &str, voice: &Voice, out: mpsc::Sender<Spoken>) -> Result<(), Failure> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("a text to say has at most {TEXT_BYTES_MAX} bytes");
            return Err(Failure { code: "text_too_long", message });
        }
        if !text.chars().any(char::is_alphanumeric) {
            return Ok(());
        }
        let name = name_of(voice);
        let learnt = self.learnt(voice);
        let speed = (voice.rate_wpm / learnt.natural_wpm.max(1.0)).clamp(0.25, 4.0);
        let rate_hz = match self.form {
            Form::Http => http_synthesizer::RATE_HZ,
            Form::WebSocket => ws_synthesizer::RATE_HZ,
        };
        let flow = Flow::new(rate_hz, learnt.gain_db, out).expect("the rates are constants");
        let result = match self.form {
            Form::Http => http_synthesizer::speak(&self.remote, &self.client, text, name, speed, flow).await,
            Form::WebSocket => ws_synthesizer::speak(&self.remote, text, name, &voice.language, speed, flow).await,
        };
        let result = result.and_then(|said| said.ok_or_else(|| SYNTHESIZER.general_failure("sent no speech")));
        self.last.note(&result);
        self.learn(voice, text, speed, result?);
        Ok(())
    }

    /// Asks the server for a word in a voice that it was not yet seen to have.
    async fn look_for(&self, voice: &Voice) -> Result<(), Failure> {
        if self.seen.lock().contains(&voice.id) {
            return Ok(());
        }
        let name = name_of(voice);
        let refused = match self.form {
            Form::Http => http_synthesizer::refuses(&self.remote, &self.client, TRIED, name).await,
            Form::WebSocket => ws_synthesizer::refuses(&self.remote, TRIED, name, &voice.language).await,
        };
        match refused {
            Ok(true) => {
                let message = format!("the synthesizer's server has no voice {name:.60}");
                Err(Failure { code: "unknown_voice", message })
            }
            Ok(false) => {
                let mut seen = self.seen.lock();
                if seen.len() < LEARNT_MAX {
                    seen.insert(voice.id.clone());
                }
                Ok(())
            }
            // Nobody knows: the call finds out.
            Err(_) => Ok(()),
        }
    }

    /// Returns the voice for these wishes and whether it is what was wanted.
    fn choose(&self, wanted: &VoiceWanted, gender: &str) -> (&str, bool) {
        let (language, named) = (wanted.language.as_str(), &self.voices.named);
        let accent = wanted.accent.as_deref().filter(|accent| !matches!(*accent, "multilingual" | "autodetect"));
        let exact = accent.map(|accent| [format!("{language}-{accent}-{gender}"), format!("{language}-{accent}")]);
        let found = |key: &String| named.get(key).map(String::as_str);
        if let Some(name) = exact.iter().flatten().find_map(found) {
            return (name, true);
        }
        let near = [format!("{language}-{gender}"), gender.to_owned()];
        if let Some(name) = near.iter().find_map(found) {
            return (name, accent.is_none());
        }
        let gender_asked = wanted.gender.is_some();
        let name = found(&language.to_owned()).unwrap_or(&self.voices.default);
        (name, accent.is_none() && !gender_asked)
    }
}

/// Returns the server's own name of a voice.
fn name_of(voice: &Voice) -> &str {
    voice.id.strip_prefix("remote:").unwrap_or(&voice.id)
}

fn key(voice: &Voice) -> (String, String) {
    (voice.language.clone(), voice.id.clone())
}

impl Synthesizer for RemoteSynthesizer {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        let gender = if is_female(wanted) { "female" } else { "male" };
        let (name, exact) = match &wanted.custom_voice_id {
            Some(id) => (id.as_str(), true),
            None => self.choose(wanted, gender),
        };
        let asked =
            [wanted.accent.as_deref(), wanted.gender.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let substituted = (!exact).then(|| format!("no {asked} voice for language {}: remote:{name}", wanted.language));
        Ok(Voice {
            id: format!("remote:{name}"),
            language: wanted.language.clone(),
            rate_wpm: rate_wpm(&wanted.speed),
            substituted,
            ..Voice::default()
        })
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.say(text, voice, out))
    }

    fn check<'a>(&'a self, voice: &'a Voice) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.look_for(voice))
    }

    fn status(&self) -> Status {
        self.last.status()
    }

    fn model<'a>(&'a self, _voice: &'a Voice) -> Job<'a, Option<ModelName>> {
        let kind = match self.form {
            Form::Http => "http",
            Form::WebSocket => "websocket",
        };
        Box::pin(std::future::ready(Some(ModelName::new(kind, &self.remote.model))))
    }
}
