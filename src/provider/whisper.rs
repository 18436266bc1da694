//! The neural recognizer: a Whisper model in this process, loaded once and shared by all calls. Every codec, and as
//! many languages as the model has. A bounded pool of threads behind the calls hears whole stretches of speech; there
//! is running text only where a call asks for it.
//!
//! A stretch is heard as soon as 200 ms of it are silent; when speech goes on, that work is given up. A text that the
//! model itself doubts is none: words are not invented.

mod gate;
mod pool;
mod stretch;

use std::path::Path;

use ringer_media::detected_language::DetectedLanguage;
use ringer_speech::whisper::{Bias, Reliability, WEIGHTS, Whisper, reliability};
use tokio::sync::mpsc;

use self::pool::{Open, Pool};
use self::stretch::{Feed, Stretch};
use super::{Failure, ModelName, Recognized, Recognizer, RecognizerFeed, SpokenIn, Status, file_sha256};

/// Messages of a stretch that nobody has taken yet; further running texts are skipped, the final text always has its
/// place.
const NEWS_DEPTH: usize = 16;

/// The recognizer of a Whisper model.
pub struct WhisperRecognizer {
    pool: Open,
    /// Name of the model's folder.
    name: String,
    /// Hash of its weights.
    sha256: String,
}

impl WhisperRecognizer {
    /// Loads the model in `folder` and starts `threads` threads (0: one a core).
    ///
    /// # Errors
    /// `recognizer_missing`, with what is wrong with the model.
    pub fn new(folder: &Path, threads: usize) -> Result<WhisperRecognizer, Failure> {
        let missing = |message: String| Failure { code: "recognizer_missing", message };
        let model = Whisper::load(folder).map_err(|why| missing(format!("the recognizer's model: {why}")))?;
        let sha256 = hash(folder).map_err(|cause| missing(format!("{}: {cause}", folder.display())))?;
        let pool =
            Pool::start(model, threads).map_err(|cause| missing(format!("no thread for the recognizer: {cause}")))?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(WhisperRecognizer { pool, name, sha256 })
    }

    fn begin(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
        running: bool,
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let (news, receiver) = mpsc::channel(NEWS_DEPTH);
        let last = news.clone().try_reserve_owned().expect("a new channel has space");
        let model = &self.pool.0.model;
        let language = match language {
            SpokenIn::Known(code) => match self.why_not(code) {
                None => ((code.to_owned(), true), DetectedLanguage::Unknown),
                Some(message) => {
                    last.send(Recognized::Failed(Failure { code: "unsupported_language", message }));
                    return (Box::new(Feed::nowhere()), receiver);
                }
            },
            SpokenIn::Likely(code) if model.is_multilingual() => ((code.to_owned(), false), DetectedLanguage::Unknown),
            SpokenIn::Likely(_) => (("en".to_owned(), true), DetectedLanguage::Fixed),
        };
        let stretch = Stretch::new(self.pool.0.clone(), language, self.bias(keyterms), running, news, last);
        (Box::new(Feed::of(stretch)), receiver)
    }

    fn bias(&self, keyterms: &[String]) -> Bias {
        if keyterms.is_empty() { Bias::default() } else { self.pool.0.model.bias(keyterms) }
    }

    /// Returns the reason why this language is not recognised; `None` if it is.
    fn why_not(&self, language: &str) -> Option<String> {
        let model = &self.pool.0.model;
        (!model.knows(language))
            .then(|| format!("the recognizer's model {} does not understand the language {language}", self.name))
    }
}

/// Returns the SHA-256 of the weights in a model's folder.
fn hash(folder: &Path) -> std::io::Result<String> {
    let weights = WEIGHTS.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    file_sha256(&weights.unwrap_or_else(|| folder.join(WEIGHTS[0])))
}

/// Share of wrong words from which on it is told of a language, in percent.
const NOTABLE_PCT: f32 = 15.0;

impl Recognizer for WhisperRecognizer {
    /// Supports everything: speech in a language that the model does not know is a stretch without words, which says
    /// why.
    fn supports(&self, _language: &str, _rate_hz: u32) -> Result<(), String> {
        Ok(())
    }

    fn count_keyterms(&self, keyterms: &[String]) -> usize {
        self.bias(keyterms).terms()
    }

    fn doubt(&self, language: &str) -> Option<String> {
        if language == "en" || !self.pool.0.model.is_multilingual() {
            return None;
        }
        match reliability(language) {
            Reliability::Measured(pct) if pct < NOTABLE_PCT => None,
            Reliability::Measured(pct) => Some(format!(
                "a small model had {pct:.0} % of the words wrong in recordings of people in the language {language}"
            )),
            Reliability::Unreliable => Some(format!(
                "words in the language {language} are not to be relied on: a small model had more than half of them wrong"
            )),
            Reliability::NotMeasured => {
                Some(format!("recognition of the language {language} was never measured on recordings of people"))
            }
        }
    }

    fn hears_wholes(&self) -> bool {
        true
    }

    fn identifies(&self) -> Result<(), String> {
        match self.pool.0.model.is_multilingual() {
            true => Ok(()),
            false => Err("the recognizer's model knows English alone and hears every language as English".into()),
        }
    }

    fn open(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        self.begin(language, keyterms, false)
    }

    fn open_running(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        self.begin(language, keyterms, true)
    }

    fn status(&self) -> Status {
        Status::Ok
    }

    fn model(&self) -> Option<ModelName> {
        Some(ModelName { sha256: Some(self.sha256.clone()), ..ModelName::new("whisper", &self.name) })
    }
}

#[cfg(test)]
mod tests;
