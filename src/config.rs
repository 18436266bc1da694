//! The settings: from `ringer.toml`, then `RINGER_*` variables of the environment, then flags; the later one wins. Typed, with
//! the defaults beside the fields. The only file that reads the environment. Reads no other part of the package.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ringer_media::measure::ProbeTimes;
use serde::{Serialize, Serializer};

mod behaviour;
mod codecs;
mod listen;
mod notify;
mod server;
mod sip;
mod source;
mod sources;
mod speech;
mod targets;
mod text;
mod trunks;
mod webrtc;
mod websocket;

pub use behaviour::{
    Audio, Behaviour, Connection, Fluency, Hesitation, Impairment, Interruption, Speed, Verbosity, Words,
};
pub use listen::SipListen;
pub use notify::Notify;
pub use server::Server;
pub use sip::{CODECS, Dtmf, Encryption, OfferedIn, Refer, Sip, SrtpKeys, Switch, parse_ports};
use source::Source;
pub use source::{ConfigError, nearest};
pub use sources::Sources;
pub use speech::{Place, Recognizer, SpeechFiles, Synthesizer};
pub use targets::Targets;
pub use text::{Sms, Text};
pub use trunks::{DialLimits, HostPort, Identity, Trunk, e164};
pub use webrtc::{Pipelines, WebRtc};
pub use websocket::{DialectTable, WebSocket};

/// The file that is read when none is named.
pub const FILE: &str = "ringer.toml";

/// Least length of a key that seals secrets.
const SECRET_KEY_CHARS: usize = 32;

/// File handles that are not for calls: database, API connections, logs, providers.
const RESERVED_FILES: u64 = 200;
/// RTP, RTCP and the recording.
const FILES_PER_CALL: u64 = 3;

/// Every setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// The API.
    pub server: Server,
    /// Folder of results and caches, and of the database unless it is elsewhere.
    pub data: PathBuf,
    /// Where records are.
    pub database: Database,
    /// Key of scope admin that exists from the first start on.
    pub bootstrap_key: Option<Secret>,
    /// Signalling and media ports.
    pub sip: Sip,
    /// Caps.
    pub limits: Limits,
    /// The model that words what Digital Humans say and judges results.
    pub language_model: LanguageModel,
    /// The model that judges by ear.
    pub audio_model: LanguageModel,
    /// Whom the servers of speech and language may be certified by.
    pub tls: Tls,
    /// Place of the models of speech.
    pub speech: SpeechFiles,
    /// Text to speech.
    pub synthesizer: Synthesizer,
    /// Speech to text.
    pub recognizer: Recognizer,
    /// Numbers behind the named levels.
    pub behaviour: Behaviour,
    /// Built-in metrics and the metrics page.
    pub metrics: Metrics,
    /// Who may do what to whom.
    pub security: Security,
    /// Requests per minute.
    pub rate_limit: RateLimit,
    /// How long things are kept.
    pub retention: Retention,
    pub evidence: Evidence,
    /// How failures are grouped.
    pub issues: Issues,
    /// What monitors listen for.
    pub uptime: Uptime,
    /// Numbers that organizations may take.
    pub phone_numbers: PhoneNumbers,
    /// How notifications reach people.
    pub notify: Notify,
    /// Journeys of several contacts.
    pub journey: Journey,
    /// Calls by a WebSocket.
    pub websocket: WebSocket,
    /// Peer connections of WebRTC.
    pub webrtc: WebRtc,
    /// The start of voice pipelines.
    pub p2: Pipelines,
    /// How text conversations go.
    pub text: Text,
    /// The carrier of text messages.
    pub sms: Sms,
    /// Said once at the start: what was given but is not known.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// `[database]`
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Database {
    /// A PostgreSQL server, `postgres://USER:PASSWORD@HOST:PORT/NAME`; without it, a file in the data folder.
    pub url: Option<Secret>,
}

/// `[limits]`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Calls at once. Not given: derived from the file limit and the RTP ports.
    pub max_calls: usize,
    /// Calls begun in one second.
    pub start_rate_per_s: f64,
    /// Largest request body; routes that take audio have their own.
    pub max_body_bytes: usize,
    /// Results that one run may create.
    pub max_results_per_run: usize,
    /// Minutes of conversation that an organization may use in a month (UTC). Not given: as many as it wants.
    pub usage_minutes_per_month: Option<f64>,
    /// Limits of the numbers that an organization dials, by its id.
    pub organizations: BTreeMap<String, DialLimits>,
}

/// `[language_model]` and `[audio_model]`: a server of the chat completions kind. Off without `base_url`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LanguageModel {
    /// For example `http://127.0.0.1:11434/v1`.
    pub base_url: Option<String>,
    /// Bearer token.
    pub api_key: Option<Secret>,
    /// Name of the model.
    pub model: Option<String>,
    /// Tokens of each answer; a model that reasons before its words needs thousands. Not given: a few for each word that is wanted.
    pub max_tokens: Option<u32>,
}

impl LanguageModel {
    fn read(&mut self, part: &str, from: &mut Source) {
        from.maybe_text(&format!("{part}.base_url"), &mut self.base_url);
        from.secret(&format!("{part}.api_key"), &mut self.api_key);
        from.maybe_text(&format!("{part}.model"), &mut self.model);
        let mut tokens = self.max_tokens.unwrap_or(0);
        from.whole(&format!("{part}.max_tokens"), 1..=1_000_000, &mut tokens);
        self.max_tokens = Some(tokens).filter(|tokens| *tokens > 0);
        if self.base_url.is_some() && self.model.is_none() {
            from.refuse(format!("{part}.model is missing: {part}.base_url is set"));
        }
    }
}

/// `[tls]`: connections to the servers of speech and language, and to agents over TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tls {
    /// PEM certificates of authorities that are trusted beside the well-known ones.
    pub root_file: Option<PathBuf>,
    /// `host:port` of agents whose certificates are not verified, exact.
    pub insecure_hosts: Vec<String>,
}

impl Tls {
    fn take(&mut self, from: &mut Source) {
        let file = |text: &str| (!text.is_empty()).then(|| Some(PathBuf::from(text)));
        from.parsed("tls.root_file", "a file", file, &mut self.root_file);
        from.list("tls.insecure_hosts", &mut self.insecure_hosts);
        let is_place = |text: &String| {
            let place = text.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
            matches!(place, Some((host, Ok(_))) if !host.is_empty() && !host.contains('*'))
        };
        if let Some(bad) = self.insecure_hosts.iter().find(|text| !is_place(text)) {
            from.refuse(format!("tls.insecure_hosts: {bad:?} is not of the form host:port"));
        }
    }
}

/// `[metrics]`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// `/metrics` needs no key.
    pub public: bool,
    /// Agent words that only fill time, beside the built-in list.
    pub filler_phrases: Vec<String>,
    /// Times by which an agent is judged that hears sounds which ask for no reaction.
    pub probe: ProbeTimes,
}

/// `[security]`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Security {
    /// Webhooks and fetched URLs may point to loopback and private addresses. Not given: true when the API listens on a
    /// loopback address only.
    pub allow_private_targets: bool,
    /// Agents may live on loopback and private addresses.
    pub allow_private_agents: bool,
    /// Webhook URLs must be https.
    pub require_https_webhooks: bool,
    /// Token of the internal routes.
    pub internal_token: Option<Secret>,
    /// Seals the secrets in the database, also `secret_key`; not given: a key file in the data folder does.
    pub secret_key: Option<Secret>,
    /// Keys that sealed before; they open what they sealed.
    pub old_secret_keys: Vec<Secret>,
}

/// `[rate_limit]`; 0 is unlimited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLimit {
    /// Routes that make work for a model, a key and route.
    pub generation_per_minute: u32,
    /// All other routes, a key and route.
    pub default_per_minute: u32,
    /// `"POST /v1/queue-simulation-run" = 60`: method and path template.
    pub routes: BTreeMap<String, u64>,
}

/// `[retention]`; 0 is for ever.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retention {
    /// Results with all that belongs to them.
    pub results_days: u32,
    /// Recordings.
    pub recordings_days: u32,
    /// Megabytes that recordings may take; the oldest go first.
    pub disk_quota_mb: u32,
}

/// `[evidence]`
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// What a packet capture holds.
    pub capture: Capture,
}

/// What is captured of a call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Capture {
    /// There is none.
    Off,
    /// Its signalling.
    #[default]
    Signalling,
    /// Its signalling and its media, except where the agent asks for what is private to be taken out.
    Full,
}

/// `[issues]`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Issues {
    /// Failed evaluations of this likeness are one issue: cosine of how often three letters follow each other, 0 to 1.
    pub similarity_threshold: f64,
}

/// `[uptime]`
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Uptime {
    /// What a broken agent says, beside the built-in phrases.
    pub malfunction_phrases: Vec<String>,
}

/// `[phone_numbers]`
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneNumbers {
    /// E.164.
    pub pool: Vec<String>,
    /// A month, in the smallest unit of the currency.
    pub price: u32,
}

/// `[journey]`
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Journey {
    /// The steps after one that failed are not held.
    pub stop_on_failure: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            server: Server::default(),
            data: PathBuf::from("data"),
            database: Database::default(),
            bootstrap_key: None,
            sip: Sip::default(),
            limits: Limits {
                max_calls: 0,
                start_rate_per_s: 10.0,
                max_body_bytes: 32 * 1024 * 1024,
                max_results_per_run: 10_000,
                usage_minutes_per_month: None,
                organizations: BTreeMap::new(),
            },
            language_model: LanguageModel::default(),
            audio_model: LanguageModel::default(),
            tls: Tls::default(),
            speech: SpeechFiles::default(),
            synthesizer: Synthesizer::default(),
            recognizer: Recognizer::default(),
            behaviour: Behaviour::default(),
            metrics: Metrics { public: false, filler_phrases: Vec::new(), probe: ProbeTimes::default() },
            security: Security {
                allow_private_targets: true,
                allow_private_agents: true,
                require_https_webhooks: false,
                internal_token: None,
                secret_key: None,
                old_secret_keys: Vec::new(),
            },
            rate_limit: RateLimit { generation_per_minute: 100, default_per_minute: 0, routes: BTreeMap::new() },
            retention: Retention::default(),
            evidence: Evidence::default(),
            issues: Issues { similarity_threshold: 0.82 },
            uptime: Uptime::default(),
            phone_numbers: PhoneNumbers::default(),
            notify: Notify::default(),
            journey: Journey::default(),
            websocket: WebSocket::default(),
            webrtc: WebRtc::default(),
            p2: Pipelines::default(),
            text: Text::default(),
            sms: Sms::default(),
            warnings: Vec::new(),
        }
    }
}

impl Config {
    /// The settings of this process. `path` is the `--config` flag (a named file must exist), `flags` are keys with their text
    /// (`("sip.listen", "0.0.0.0:5060")`). Raises the limit of open files to what the system allows.
    pub fn load(path: Option<&Path>, flags: &[(&str, String)]) -> Result<Config, ConfigError> {
        let environment = environment();
        let named = path.map(Path::to_owned).or_else(|| environment.get("RINGER_CONFIG").map(PathBuf::from));
        let path = named.clone().unwrap_or_else(|| PathBuf::from(FILE));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(ConfigError(vec![format!("{}: {error}", path.display())])),
        };
        let file = text.as_deref().map(|text| (path.as_path(), text));
        Config::read(file, &environment, flags, raise_file_limit())
    }

    /// Folder of neural models.
    pub fn models(&self) -> PathBuf {
        self.speech.models.clone().unwrap_or_else(|| self.data.join("models"))
    }

    /// The settings of given texts; `file_limit` is how many files the process may have open.
    pub fn read(
        file: Option<(&Path, &str)>,
        environment: &BTreeMap<String, String>,
        flags: &[(&str, String)],
        file_limit: u64,
    ) -> Result<Config, ConfigError> {
        let mut from = Source::new(file, environment, flags)?;
        let mut config = Config::default();
        // Read elsewhere: by `load`, by the log and by the command line.
        from.pass_over(&["RINGER_CONFIG", "RINGER_LOG", "RINGER_LOG_FORMAT", "RINGER_SIP_PASSWORD"]);
        from.pass_over(&["RINGER_ROOM_KEY", "RINGER_ROOM_SECRET", "RINGER_ROOM_TOKEN"]);
        from.parsed("data", "a folder", |text| Some(PathBuf::from(text)), &mut config.data);
        from.secret("database.url", &mut config.database.url);
        let server =
            |url: &Secret| ["postgres://", "postgresql://"].iter().any(|start| url.expose().starts_with(start));
        if config.database.url.as_ref().is_some_and(|url| !server(url)) {
            // It may hold a password: it is not shown.
            from.refuse("database.url must be like postgres://USER:PASSWORD@HOST:PORT/NAME".to_owned());
        }
        from.secret("bootstrap_key", &mut config.bootstrap_key);
        config.read_addresses(&mut from);
        config.read_limits(&mut from, file_limit);
        config.read_access(&mut from);
        config.language_model.read("language_model", &mut from);
        config.audio_model.read("audio_model", &mut from);
        config.tls.take(&mut from);
        config.speech.take(&mut from);
        config.synthesizer.read(&mut from);
        config.recognizer.read(&mut from);
        config.behaviour.read(&mut from);
        from.boolean("metrics.public", &mut config.metrics.public);
        from.list("metrics.filler_phrases", &mut config.metrics.filler_phrases);
        let probe = &mut config.metrics.probe;
        from.whole("metrics.probe.spoken_ms", 0..=10_000, &mut probe.spoken_ms);
        from.whole("metrics.probe.silence_ms", 100..=10_000, &mut probe.silence_ms);
        from.whole("metrics.probe.from_ms", 0..=1000, &mut probe.from_ms);
        from.whole("metrics.probe.to_ms", 1000..=10_000, &mut probe.to_ms);
        from.whole("retention.results_days", 0..=36_500, &mut config.retention.results_days);
        from.whole("retention.recordings_days", 0..=36_500, &mut config.retention.recordings_days);
        from.whole("retention.disk_quota_mb", 0..=1_000_000_000, &mut config.retention.disk_quota_mb);
        let capture = |text: &str| match text {
            "off" => Some(Capture::Off),
            "signalling" => Some(Capture::Signalling),
            "full" => Some(Capture::Full),
            _ => None,
        };
        from.parsed("evidence.capture", "one of off, signalling, full", capture, &mut config.evidence.capture);
        from.number("issues.similarity_threshold", 0.0..=1.0, &mut config.issues.similarity_threshold);
        from.list("uptime.malfunction_phrases", &mut config.uptime.malfunction_phrases);
        from.list("phone_numbers.pool", &mut config.phone_numbers.pool);
        from.whole("phone_numbers.price", 0..=u64::from(u32::MAX), &mut config.phone_numbers.price);
        config.notify.read(&mut from);
        from.boolean("journey.stop_on_failure", &mut config.journey.stop_on_failure);
        config.websocket.read(&mut from);
        config.webrtc.read_from(&mut from);
        config.p2.read_from(&mut from);
        config.text.read(&mut from);
        config.sms.read(&mut from);
        config.warnings = from.finish()?;
        config.warnings.extend(trunks::silent_trunks(&config.sip.trunks));
        Ok(config)
    }

    fn read_addresses(&mut self, from: &mut Source) {
        self.server.read(from);
        self.sip.read(from);
    }

    fn read_limits(&mut self, from: &mut Source, file_limit: u64) {
        let limits = &mut self.limits;
        limits.max_calls = most_calls(file_limit, &self.sip.rtp_ports);
        from.whole("limits.max_calls", 1..=1_000_000, &mut limits.max_calls);
        from.number("limits.start_rate_per_s", 0.01..=10_000.0, &mut limits.start_rate_per_s);
        from.whole("limits.max_body_bytes", 1024..=1 << 32, &mut limits.max_body_bytes);
        from.whole("limits.max_results_per_run", 1..=1_000_000, &mut limits.max_results_per_run);
        from.maybe_number("limits.usage_minutes_per_month", 0.0..=1e9, &mut limits.usage_minutes_per_month);
        limits.organizations = trunks::read_organizations(from);
    }

    fn read_access(&mut self, from: &mut Source) {
        self.security.allow_private_targets = self.server.listen.ip().is_loopback();
        from.boolean("security.allow_private_targets", &mut self.security.allow_private_targets);
        from.boolean("security.allow_private_agents", &mut self.security.allow_private_agents);
        from.boolean("security.require_https_webhooks", &mut self.security.require_https_webhooks);
        from.secret("security.internal_token", &mut self.security.internal_token);
        // The short name, as RINGER_SECRET_KEY in the environment.
        from.secret("secret_key", &mut self.security.secret_key);
        from.secret("security.secret_key", &mut self.security.secret_key);
        from.secrets("security.old_secret_keys", &mut self.security.old_secret_keys);
        if self.security.secret_key.as_ref().is_some_and(|key| key.expose().chars().count() < SECRET_KEY_CHARS) {
            from.refuse(format!("security.secret_key must have at least {SECRET_KEY_CHARS} characters"));
        }
        let rates = &mut self.rate_limit;
        from.whole("rate_limit.generation_per_minute", 0..=1_000_000, &mut rates.generation_per_minute);
        from.whole("rate_limit.default_per_minute", 0..=1_000_000, &mut rates.default_per_minute);
        from.whole_map("rate_limit.routes", 0..=1_000_000, &mut rates.routes);
    }
}

/// A text that is never shown: `Debug` and JSON say only that it is there.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text itself, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("(set)")
    }
}

/// How many calls this many open files and ports carry, at least 1.
pub fn most_calls(file_limit: u64, rtp_ports: &RangeInclusive<u16>) -> usize {
    let by_files = file_limit.saturating_sub(RESERVED_FILES) / FILES_PER_CALL;
    let ports = u64::from(rtp_ports.end() - rtp_ports.start()) + 1;
    by_files.min(ports / 2).max(1) as usize
}

/// Raises the soft limit of open files to the hard one and says what it then is.
pub fn raise_file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that outlives both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 1024;
        }
        let wanted = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) == 0 { wanted.rlim_cur } else { limit.rlim_cur }
    }
}

/// Where programs are looked for.
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect())
}

/// True where a terminal may be written to in colours: neither `NO_COLOR` forbids them nor is the terminal a dumb one.
pub fn colours() -> bool {
    variable("NO_COLOR").is_none() && variable("TERM").is_none_or(|kind| kind != "dumb")
}

/// What may be logged, in the words of tracing's filter (`RINGER_LOG`).
pub fn log_filter() -> Option<String> {
    variable("RINGER_LOG")
}

/// Whether the log is a JSON object a line (`RINGER_LOG_FORMAT`: `text` or `json`).
///
/// # Errors
/// The text, when it is neither.
pub fn log_is_json() -> Result<bool, String> {
    match variable("RINGER_LOG_FORMAT").as_deref() {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(format!("RINGER_LOG_FORMAT is \"{other}\"; it is text or json")),
    }
}

/// Returns a variable of the environment that is not empty.
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Returns the folder in which tests find neural models.
#[cfg(test)]
pub(crate) fn test_models() -> PathBuf {
    let environment = environment();
    let named = |name: &str| environment.get(name).map(PathBuf::from);
    let home = || named("HOME").unwrap_or_default().join(".cache/ringer-test-models");
    named("RINGER_MODELS_CACHE").unwrap_or_else(home)
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
fn environment() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.into_string().ok();
    std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}

#[cfg(test)]
mod tests;
