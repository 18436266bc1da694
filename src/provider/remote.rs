//! Speech by the network: recognizers and synthesizers behind an HTTP request or a WebSocket. Keys and texts never
//! reach a log or an error. Each has a limit for every step, so that a call is told of a failure instead of waiting for
//! it.
//!
//! | form | recognizer | synthesizer |
//! |---|---|---|
//! | HTTP | `POST {base}/audio/transcriptions`, a WAV file a segment | `POST {base}/audio/speech`, PCM as it is made |
//! | WebSocket | PCM as it is heard, texts as they are known | a text, then PCM as it is made |
//!
//! The key goes as a bearer token in either form. PCM is 16 bit, little endian, mono.
//!
//! A WebSocket recognizer has a connection for each stretch of speech:
//!
//! ```text
//! -> {"type":"start","encoding":"pcm_s16le","sample_rate":16000,"language":"en","keyterms":["Alvarez"],"model":"m"}
//! -> PCM (binary messages)                      <- {"type":"partial","text":"i would"}            replaces the partial
//! before -> {"type":"finish"}                          <- {"type":"final","text":"I would like.","confidence":0.9,
//!                                                   "words":[{"word":"I","start":0.12,"end":0.2,"confidence":0.9}]}
//!                                               <- {"type":"done"}                                after the last final text
//! ```
//!
//! `final` closes a piece of the stretch and may come more than once; `confidence` and `words` (seconds from the start)
//! may be left out. With `"detect_language":true` in `start` the speech may be in another language than `language`;
//! `final` then has a `"language"` where the server knows it. By HTTP such a request has no `language`, and the answer
//! may have one. A WebSocket synthesizer has a connection for each text:
//!
//! ```text
//! -> {"type":"speak","text":"Hello.","voice":"alloy","language":"en","speed":1.0,"encoding":"pcm_s16le",
//!     "sample_rate":24000,"model":"m"}
//!                                               <- PCM (binary messages), then {"type":"done"}
//! ```
//!
//! A voice that a caller names by its id is tried with a word before its first call: a server that has no such voice
//! answers with status 400, 404 or 422, or with `{"type":"error"}`.
//!
//! Speech that begins as a WAV, MP3, AAC, FLAC, Ogg or MP4 file is taken for one, in either form, whatever was asked
//! for. Other files and texts are failures, as is noise: nothing is said that is not known to be speech.
//!
//! Either side reports trouble with `{"type":"error"}`; a connection that ends before `done` is a failure. Whoever cuts
//! in on a text drops its connection.

mod flow;
mod http_recognizer;
mod http_synthesizer;
mod incoming;
mod probe;
mod synthesizer;
mod websocket;
mod ws_recognizer;
mod ws_synthesizer;

use std::time::Duration;

use parking_lot::Mutex;
use ringer_media::detected_language::DetectedLanguage;
use serde_json::Value;

pub use self::http_recognizer::HttpRecognizer;
pub use self::probe::{Part, Probed, probe};
pub use self::synthesizer::{Form, RemoteSynthesizer, RemoteVoices};
pub use self::ws_recognizer::WsRecognizer;
use super::tls::{Roots, install_tls};
use super::{Failure, RecognizedWord, Status};

/// Address of a provider, credentials and time limits.
#[derive(Clone)]
pub struct Remote {
    /// Base address, such as `https://host/v1` or `wss://host/path`.
    pub base_url: String,
    /// Key that is sent as a bearer token.
    pub key: Option<String>,
    /// Model name; may be empty.
    pub model: String,
    /// Time limit for the connection, TLS included.
    pub connect: Duration,
    /// Longest wait for the first piece of an answer, and between two pieces.
    pub answer: Duration,
    /// Certificate authorities trusted besides the well-known ones.
    pub roots: Roots,
}

impl Remote {
    /// Returns limits of 3 s for a connection and 5 s for an answer.
    pub fn new(base_url: &str, key: Option<String>, model: &str) -> Remote {
        Remote {
            base_url: base_url.trim_end_matches('/').to_owned(),
            key,
            model: model.to_owned(),
            connect: Duration::from_secs(3),
            answer: Duration::from_secs(5),
            roots: Roots::default(),
        }
    }

    fn client(&self, codes: &'static Codes) -> Result<reqwest::Client, Failure> {
        install_tls();
        let client = reqwest::Client::builder().connect_timeout(self.connect).read_timeout(self.answer);
        self.roots.trusted_by(client).map_err(|cause| codes.of_http(&cause))
    }

    fn post(&self, client: &reqwest::Client, path: &str) -> reqwest::RequestBuilder {
        self.authorize(client.post(format!("{}{path}", self.base_url)))
    }

    fn authorize(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }
}

/// Names and error codes of one kind of provider.
struct Codes {
    what: &'static str,
    unreachable: &'static str,
    late: &'static str,
    refused: &'static str,
    failed: &'static str,
}

/// Error codes of recognizers.
static RECOGNIZER: Codes = Codes {
    what: "the recognizer",
    unreachable: "recognizer_unreachable",
    late: "recognizer_late",
    refused: "recognizer_refused",
    failed: "recognizer_failed",
};

/// Error codes of synthesizers.
static SYNTHESIZER: Codes = Codes {
    what: "the synthesizer",
    unreachable: "synthesizer_unreachable",
    late: "synthesizer_late",
    refused: "synthesizer_refused",
    failed: "synthesizer_failed",
};

impl Codes {
    fn of_http(&self, cause: &reqwest::Error) -> Failure {
        let (code, how) = match () {
            () if cause.is_timeout() => (self.late, "took too long"),
            () if cause.is_connect() => (self.unreachable, "cannot be reached"),
            () => (self.failed, "broke off its answer"),
        };
        self.failure(code, how)
    }

    fn failure(&self, code: &'static str, how: &str) -> Failure {
        Failure { code, message: format!("{} {how}", self.what) }
    }

    fn general_failure(&self, how: &str) -> Failure {
        self.failure(self.failed, how)
    }

    fn late(&self) -> Failure {
        self.failure(self.late, "took too long")
    }

    fn refusal(&self, status: impl std::fmt::Display) -> Failure {
        self.failure(self.refused, &format!("answered {status}"))
    }
}

/// Error message of the last use, for [`Status`]; `None` after a success.
#[derive(Default)]
struct LastUse(Mutex<Option<String>>);

impl LastUse {
    fn note<T>(&self, result: &Result<T, Failure>) {
        let trouble = result.as_ref().err().map(|failure| failure.message.clone());
        *self.0.lock() = trouble;
    }

    fn status(&self) -> Status {
        self.0.lock().clone().map_or(Status::Ok, Status::Down)
    }
}

/// Most words of one stretch of speech.
const WORDS_MAX: usize = 10_000;

/// Returns the words with their times in seconds, as far as they are usable.
fn words_of(value: &Value) -> Vec<RecognizedWord> {
    let word = |word: &Value| {
        let at =
            |name: &str| word[name].as_f64().filter(|s| (0.0..86_400.0).contains(s)).map(|s| (s * 16_000.0) as i64);
        let (from, to) = (at("start")?, at("end")?);
        let confidence = word["confidence"].as_f64().map(|share| share as f32);
        (from <= to).then(|| RecognizedWord {
            text: word["word"].as_str().unwrap_or("").trim().into(),
            from,
            to,
            confidence,
        })
    };
    value["words"].as_array().into_iter().flatten().take(WORDS_MAX).filter_map(word).collect()
}

/// Returns the language that an answer names.
fn detected_language_of(value: &Value) -> DetectedLanguage {
    const BYTES_MAX: usize = 32;
    let named = value["language"].as_str().map(str::trim).filter(|name| (2..=BYTES_MAX).contains(&name.len()));
    named.map_or(DetectedLanguage::Unknown, |name| DetectedLanguage::Detected(name.to_lowercase()))
}

#[cfg(test)]
mod tests;
