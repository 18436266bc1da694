//! `[speech]`, `[synthesizer]` and `[recognizer]`: installed models and programs, or a server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::source::Source;
use super::{Config, Secret, variable};

/// Place where speech is synthesized or recognized.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// This process: by a neural model when one is installed, else as `embedded`.
    #[default]
    Auto,
    /// This process and its children: by the installed programs and libraries.
    Embedded,
    /// This process: by a Whisper model.
    Whisper,
    /// This process: by Piper voices; languages without a voice are spoken as by `embedded`.
    Piper,
    /// This process: by Kokoro voices; languages without a voice are spoken as by `auto`.
    Kokoro,
    /// A server, by HTTP requests.
    Http,
    /// A server, by WebSockets.
    Websocket,
}

impl Place {
    fn by_name(name: &str) -> Option<Place> {
        match name {
            "auto" => Some(Place::Auto),
            "embedded" => Some(Place::Embedded),
            "http" => Some(Place::Http),
            "websocket" => Some(Place::Websocket),
            _ => None,
        }
    }

    fn of_synthesizer(name: &str) -> Option<Place> {
        match name {
            "piper" => Some(Place::Piper),
            "kokoro" => Some(Place::Kokoro),
            _ => Place::by_name(name),
        }
    }

    fn of_recognizer(name: &str) -> Option<Place> {
        if name == "whisper" { Some(Place::Whisper) } else { Place::by_name(name) }
    }

    /// True if a server is asked.
    pub fn is_remote(self) -> bool {
        matches!(self, Place::Http | Place::Websocket)
    }
}

/// Settings of the section `[speech]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpeechFiles {
    /// Folders of neural models, a folder each. Not given: `models` in the data folder, then the folder that all
    /// of this user's commands share.
    pub models: Option<Vec<PathBuf>>,
}

impl SpeechFiles {
    pub(super) fn take(&mut self, from: &mut Source) {
        let folders = |texts: &[String]| {
            let folders: Vec<PathBuf> = texts.iter().flat_map(std::env::split_paths).collect();
            (!folders.is_empty() && folders.iter().all(|folder| !folder.as_os_str().is_empty()))
                .then_some(Some(folders))
        };
        from.parsed_list("speech.models", "a folder, or several with ':' between them", folders, &mut self.models);
    }
}

impl Config {
    /// Returns the folders of neural models, in the order in which they are looked at: `speech.models` alone
    /// where it is set, else `models` in the data folder and [`shared_models`].
    pub fn models(&self) -> Vec<PathBuf> {
        match &self.speech.models {
            Some(places) => places.clone(),
            None => [self.data.join("models")].into_iter().chain(shared_models()).collect(),
        }
    }

    /// Returns the folder that models are added to.
    pub fn models_home(&self) -> PathBuf {
        let own = || shared_models().unwrap_or_else(|| self.data.join("models"));
        self.speech.models.as_ref().and_then(|places| places.first().cloned()).unwrap_or_else(own)
    }
}

/// Returns the folder of this user's neural models, which all commands share: `ringer/models` in `XDG_DATA_HOME`, or in
/// `~/.local/share` (XDG Base Directory Specification 0.8). `None` where neither is known.
pub fn shared_models() -> Option<PathBuf> {
    // A relative path is to be ignored.
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")))?;
    Some(data.join("ringer/models"))
}

/// Settings of the section `[synthesizer]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Synthesizer {
    /// Kind: `auto`, `embedded`, `piper`, `kokoro`, `http` (`POST {base_url}/audio/speech`) or `websocket`.
    pub kind: Place,
    /// Address of the server, for example `https://host/v1` or `wss://host/speak`.
    pub base_url: Option<String>,
    /// Bearer token for the server.
    pub api_key: Option<Secret>,
    /// Name of the server's model.
    pub model: Option<String>,
    /// Voice of the server when no other fits; needed with a server.
    pub voice: Option<String>,
    /// Voices of the server by `LANGUAGE[-ACCENT][-GENDER]` or gender: `en-british-female = "..."`.
    pub voices: BTreeMap<String, String>,
    /// Words per minute of the server's voices at speed 1, until they were measured.
    pub natural_wpm: f64,
    /// True: the installed programs speak when the server fails.
    pub fallback: bool,
}

/// Settings of the section `[recognizer]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recognizer {
    /// Kind: `auto`, `embedded`, `whisper`, `http` (`POST {base_url}/audio/transcriptions`) or `websocket`.
    pub kind: Place,
    /// Address of the server, for example `https://host/v1` or `wss://host/listen`.
    pub base_url: Option<String>,
    /// Bearer token for the server.
    pub api_key: Option<Secret>,
    /// Name of the server's model, or of the folder of a Whisper model; `None`: the first one in alphabetical order.
    pub model: Option<String>,
    /// Number of recognizer threads in kind `whisper`; 0: one a core.
    pub threads: usize,
    /// New speech after which kind `http` asks for interim text, in milliseconds; 0: never.
    pub interim_ms: u32,
    /// True: kind `http` asks for the times of words, which not every server gives.
    pub word_times: bool,
    /// True: the installed library recognizes when the server fails.
    pub fallback: bool,
    /// Longest time that a due turn waits for the final text, in milliseconds.
    pub grace_ms: u32,
}

impl Default for Synthesizer {
    fn default() -> Self {
        Synthesizer {
            kind: Place::default(),
            base_url: None,
            api_key: None,
            model: None,
            voice: None,
            voices: BTreeMap::new(),
            natural_wpm: 170.0,
            fallback: true,
        }
    }
}

impl Default for Recognizer {
    fn default() -> Self {
        Recognizer {
            kind: Place::default(),
            base_url: None,
            api_key: None,
            model: None,
            threads: 0,
            interim_ms: 0,
            word_times: false,
            fallback: true,
            grace_ms: 150,
        }
    }
}

impl Synthesizer {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.read_parsed(
            "synthesizer.kind",
            "one of auto, embedded, piper, kokoro, http, websocket",
            Place::of_synthesizer,
            &mut self.kind,
        );
        from.maybe_text("synthesizer.base_url", &mut self.base_url);
        from.secret("synthesizer.api_key", &mut self.api_key);
        from.maybe_text("synthesizer.model", &mut self.model);
        from.maybe_text("synthesizer.voice", &mut self.voice);
        from.text_map("synthesizer.voices", &mut self.voices);
        from.number("synthesizer.natural_wpm", 80.0..=400.0, &mut self.natural_wpm);
        from.boolean("synthesizer.fallback", &mut self.fallback);
        check("synthesizer", self.kind, self.base_url.as_deref(), from);
        if self.kind.is_remote() && self.voice.is_none() {
            from.refuse("synthesizer.voice is missing: the server has to be told a voice".to_owned());
        }
    }
}

impl Recognizer {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.read_parsed(
            "recognizer.kind",
            "one of auto, embedded, whisper, http, websocket",
            Place::of_recognizer,
            &mut self.kind,
        );
        from.maybe_text("recognizer.base_url", &mut self.base_url);
        from.secret("recognizer.api_key", &mut self.api_key);
        from.maybe_text("recognizer.model", &mut self.model);
        from.whole("recognizer.threads", 0..=256, &mut self.threads);
        from.whole("recognizer.interim_ms", 0..=10_000, &mut self.interim_ms);
        from.boolean("recognizer.word_times", &mut self.word_times);
        from.boolean("recognizer.fallback", &mut self.fallback);
        from.whole("recognizer.grace_ms", 0..=5000, &mut self.grace_ms);
        check("recognizer", self.kind, self.base_url.as_deref(), from);
    }
}

/// Checks that a server has an address of its kind. The address may hold a password and is not repeated in the message.
fn check(part: &str, kind: Place, base_url: Option<&str>, from: &mut Source) {
    let schemes = match kind {
        Place::Auto | Place::Embedded | Place::Whisper | Place::Piper | Place::Kokoro => return,
        Place::Http => ["http://", "https://"],
        Place::Websocket => ["ws://", "wss://"],
    };
    if !base_url.is_some_and(|url| schemes.iter().any(|scheme| url.starts_with(scheme))) {
        let [plain, sure] = schemes;
        from.refuse(format!("{part}.base_url must begin with {sure} or {plain}: {part}.kind asks for such a server"));
    }
}
