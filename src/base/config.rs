//! Settings: from `ringer.toml`, then `RINGER_*` variables of the environment, then flags; the later one wins. Typed,
//! with the defaults beside the fields. The only file that reads the environment. Reads no other part of the package.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

mod adapters;
mod behaviour;
mod bus;
mod codecs;
mod email;
mod evidence;
mod judge;
mod listen;
mod mcp;
mod media;
mod metrics;
mod models;
mod notify;
mod organizations;
mod server;
mod sip;
mod source;
mod sources;
mod speech;
mod srtp;
mod storage;
mod targets;
mod telemetry;
mod text;
mod trunks;
mod webrtc;
mod websocket;

pub use adapters::AdapterTable;
pub use behaviour::{
    Audio, Behaviour, Connection, Fluency, Hesitation, Impairment, Interruption, Speed, Verbosity, Words,
};
pub use bus::Bus;
pub use email::Email;
pub use evidence::{Capture, Evidence};
pub use judge::Judge;
pub use listen::SipListen;
pub use mcp::Mcp;
pub use media::{Media, OpusChoice};
pub use metrics::Metrics;
pub use models::LanguageModel;
pub use notify::Notify;
pub use organizations::OrganizationLimits;
pub use server::Server;
pub use sip::{CODECS, Dtmf, OfferedIn, Refer, Sip, SymmetricRtp, parse_ports};
use source::Source;
pub use source::{ConfigError, nearest};
pub use sources::{Sources, network_of};
pub use speech::{Place, Recognizer, SpeechFiles, Synthesizer, shared_models};
pub use srtp::{Encryption, SrtpKeys};
pub use storage::{Storage, problem_of as problem_of_storage};
pub use targets::Targets;
pub use telemetry::Telemetry;
pub use text::{Sms, SmsCarrier, Text};
pub use trunks::{DialLimits, HostPort, Identity, Trunk, carrier};
pub use webrtc::{DEFAULT_ANSWER_S, Pipelines, WebRtc, is_http_address};
pub use websocket::{DialectTable, WebSocket};

/// File that is read when none is named.
pub const FILE: &str = "ringer.toml";

/// Least length of a key that seals secrets, in characters.
const SECRET_KEY_CHARS: usize = 32;

/// Least number of characters of a bootstrap key.
const BOOTSTRAP_CHARS: usize = 16;

/// File handles that are not for calls: database, API connections, logs, providers.
const RESERVED_FILES: u64 = 200;
/// File handles of a call: RTP, RTCP and the recording.
const FILES_PER_CALL: u64 = 3;

/// All settings of the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// HTTP server of the API.
    pub server: Server,
    /// Folder of results and caches, and of the database unless it is elsewhere.
    pub data: PathBuf,
    /// Database of the records.
    pub database: Database,
    /// API key of scope admin that exists from the first start on.
    pub bootstrap_key: Option<Secret>,
    /// Settings of SIP signalling and media ports.
    pub sip: Sip,
    /// Limits of calls, request bodies and runs.
    pub limits: Limits,
    /// Language model for Digital Humans and judges.
    pub language_model: LanguageModel,
    /// Model that hears recordings and judges them.
    pub audio_model: LanguageModel,
    /// Further language models, by the names that metrics choose them by.
    pub language_models: BTreeMap<String, LanguageModel>,
    /// Further models that judge by ear, by the names that metrics choose them by.
    pub audio_models: BTreeMap<String, LanguageModel>,
    /// Panel of judges, and least rates of a proven one.
    pub judge: Judge,
    /// Trusted certificates, and agents whose certificates are not verified.
    pub tls: Tls,
    /// Libraries that the audio of calls goes through.
    pub media: Media,
    /// Place of the speech models.
    pub speech: SpeechFiles,
    /// Text to speech (synthesizer).
    pub synthesizer: Synthesizer,
    /// Speech to text (recognizer).
    pub recognizer: Recognizer,
    /// Numbers behind the named levels of Digital Humans.
    pub behaviour: Behaviour,
    /// Settings of coding assistants at `/mcp`.
    pub mcp: Mcp,
    /// Settings of built-in metrics and of `/metrics`.
    pub metrics: Metrics,
    /// Addresses that may be asked, tokens, and keys of secrets.
    pub security: Security,
    /// Requests per minute, by key and route.
    pub rate_limit: RateLimit,
    /// Times and sizes up to which things are kept.
    pub retention: Retention,
    pub evidence: Evidence,
    /// Settings for grouping failures.
    pub issues: Issues,
    /// Phrases by which monitors find a broken agent.
    pub uptime: Uptime,
    /// Phone numbers that organizations may take.
    pub phone_numbers: PhoneNumbers,
    /// Settings for delivering notifications.
    pub notify: Notify,
    /// Settings of journeys with several contacts.
    pub journey: Journey,
    /// Settings of calls by WebSocket.
    pub websocket: WebSocket,
    /// Settings of WebRTC peer connections.
    pub webrtc: WebRtc,
    /// Settings of the start of voice pipelines.
    pub p2: Pipelines,
    /// Settings of voice-agent platforms, by the name of each.
    pub adapters: BTreeMap<String, AdapterTable>,
    /// Sources of the definitions of agents, by name.
    pub autosync: BTreeMap<String, AdapterTable>,
    /// Settings of text conversations.
    pub text: Text,
    /// Settings of the carrier of text messages.
    pub sms: Sms,
    /// Settings of conversations by mail.
    pub email: Email,
    /// Store of files of results, production calls and uploads.
    pub storage: Storage,
    /// Messages between engines that share a database.
    pub bus: Bus,
    /// Traces of conversations, sent to a collector.
    pub telemetry: Telemetry,
    /// Warnings at the start about settings that were given but are not known.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Settings of the section `[database]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Database {
    /// URL of a PostgreSQL server, `postgres://USER:PASSWORD@HOST:PORT/NAME`; `None`: a file in the data folder.
    pub url: Option<Secret>,
}

/// Settings of the section `[limits]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Most calls at the same time. Not given: derived from the file limit and the RTP ports.
    pub max_calls: usize,
    /// Most calls begun in one second.
    pub start_rate_per_s: f64,
    /// Largest request body in bytes; routes that take audio have their own.
    pub max_body_bytes: usize,
    /// Most results that one run may create.
    pub max_results_per_run: usize,
    /// Most conversations that are judged at the same time.
    pub max_evaluations: usize,
    /// Minutes of conversation that an organization may use in a month (UTC); `None`: no limit.
    pub usage_minutes_per_month: Option<f64>,
    /// Limits of an organization, by its name or id.
    pub organizations: BTreeMap<String, OrganizationLimits>,
}

/// Settings of `[tls]`: connections to speech and language servers, and to agents over TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tls {
    /// PEM file with certificates of authorities that are trusted in addition to the well-known ones.
    pub root_file: Option<PathBuf>,
    /// Agents, as exact `host:port`, whose certificates are not verified.
    pub insecure_hosts: Vec<String>,
}

impl Tls {
    fn take(&mut self, from: &mut Source) {
        let file = |text: &str| (!text.is_empty()).then(|| Some(PathBuf::from(text)));
        from.read_parsed("tls.root_file", "a file", file, &mut self.root_file);
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

/// Settings of the section `[security]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Security {
    /// True if webhooks and fetched URLs may point to loopback and private addresses. By default true when the API
    /// listens on a loopback address only.
    pub allow_private_targets: bool,
    /// True if agents may live on loopback and private addresses.
    pub allow_private_agents: bool,
    /// True if webhook URLs must be https.
    pub require_https_webhooks: bool,
    /// Token of the internal routes; `None`: they need an admin key.
    pub internal_token: Option<Secret>,
    /// Key that seals the secrets in the database, also `secret_key`; `None`: a key file in the data folder.
    pub secret_key: Option<Secret>,
    /// Earlier keys; they open the secrets that they sealed.
    pub old_secret_keys: Vec<Secret>,
}

/// Settings of `[rate_limit]`, in requests a minute of one key on one route; 0: no limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLimit {
    /// Limit of routes that ask a language model.
    pub generation_per_minute: u32,
    /// Limit of all other routes.
    pub default_per_minute: u32,
    /// Limits by method and path template: `"POST /v1/queue-simulation-run" = 60`.
    pub routes: BTreeMap<String, u64>,
}

/// Settings of `[retention]`; 0: no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retention {
    /// Days that results are kept, with all that belongs to them.
    pub results_days: u32,
    /// Days that recordings are kept.
    pub recordings_days: u32,
    /// Megabytes that recordings may take; the oldest are deleted first.
    pub disk_quota_mb: u32,
}

/// Settings of the section `[issues]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Issues {
    /// Least similarity of failed evaluations that are one issue: cosine of character 3-gram vectors, 0 to 1.
    pub similarity_threshold: f64,
}

/// Settings of the section `[uptime]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Uptime {
    /// Phrases of a broken agent, besides the built-in ones.
    pub malfunction_phrases: Vec<String>,
}

/// Settings of the section `[phone_numbers]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneNumbers {
    /// Numbers in E.164 form.
    pub pool: Vec<String>,
    /// Price of a number a month, in the smallest unit of the currency.
    pub price: u32,
}

/// Settings of the section `[journey]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Journey {
    /// True if the steps after one that failed are not held.
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
                max_evaluations: 16,
                usage_minutes_per_month: None,
                organizations: BTreeMap::new(),
            },
            language_model: LanguageModel::default(),
            audio_model: LanguageModel::default(),
            language_models: BTreeMap::new(),
            audio_models: BTreeMap::new(),
            judge: Judge::default(),
            tls: Tls::default(),
            media: Media::default(),
            speech: SpeechFiles::default(),
            synthesizer: Synthesizer::default(),
            recognizer: Recognizer::default(),
            behaviour: Behaviour::default(),
            mcp: Mcp::default(),
            metrics: Metrics::default(),
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
            adapters: BTreeMap::new(),
            autosync: BTreeMap::new(),
            text: Text::default(),
            sms: Sms::default(),
            email: Email::default(),
            storage: Storage::default(),
            bus: Bus::default(),
            telemetry: Telemetry::default(),
            warnings: Vec::new(),
        }
    }
}

/// Variables that the settings do not read, between blanks.
const READ_ELSEWHERE: &str = "RINGER_CONFIG RINGER_LOG RINGER_LOG_FORMAT RINGER_SIP_PASSWORD RINGER_ROOM_KEY \
    RINGER_ROOM_SECRET RINGER_ROOM_TOKEN RINGER_PLATFORM_KEY RINGER_P3_KEY RINGER_P4_KEY RINGER_P5_KEY RINGER_P6_KEY \
    RINGER_P7_KEY RINGER_P8_KEY RINGER_P9_KEY RINGER_P10_KEY RINGER_P11_KEY";

impl Config {
    /// Returns the settings of this process. `path` is the `--config` flag (a named file must exist), `flags` are keys
    /// with their text (`("sip.listen", "0.0.0.0:5060")`). Raises the limit of open files to what the system allows.
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
        Config::from_texts(file, &environment, flags, raise_file_limit())
    }

    /// Returns the settings of given texts; `file_limit` is how many files the process may have open.
    pub fn from_texts(
        file: Option<(&Path, &str)>,
        environment: &BTreeMap<String, String>,
        flags: &[(&str, String)],
        file_limit: u64,
    ) -> Result<Config, ConfigError> {
        let mut from = Source::new(file, environment, flags)?;
        let mut config = Config::default();
        // These variables are read elsewhere: by `load`, by the log and by the command line.
        READ_ELSEWHERE.split_whitespace().for_each(|name| from.pass_over(&[name]));
        from.read_parsed("data", "a folder", |text| Some(PathBuf::from(text)), &mut config.data);
        from.secret("database.url", &mut config.database.url);
        let server =
            |url: &Secret| ["postgres://", "postgresql://"].iter().any(|start| url.expose().starts_with(start));
        if config.database.url.as_ref().is_some_and(|url| !server(url)) {
            // It may hold a password: it is not shown.
            from.refuse("database.url must be like postgres://USER:PASSWORD@HOST:PORT/NAME".to_owned());
        }
        from.secret("bootstrap_key", &mut config.bootstrap_key);
        if config.bootstrap_key.as_ref().is_some_and(|key| key.expose().chars().count() < BOOTSTRAP_CHARS) {
            from.refuse(format!(
                "bootstrap_key must have at least {BOOTSTRAP_CHARS} characters: a shorter one can be guessed"
            ));
        }
        config.read_addresses(&mut from);
        config.read_limits(&mut from, file_limit);
        config.read_access(&mut from);
        config.read_models(&mut from);
        config.tls.take(&mut from);
        config.media.read(&mut from);
        config.speech.take(&mut from);
        config.synthesizer.read(&mut from);
        config.recognizer.read(&mut from);
        config.behaviour.read(&mut from);
        config.mcp.read(&mut from);
        config.metrics.read(&mut from);
        from.whole("retention.results_days", 0..=36_500, &mut config.retention.results_days);
        from.whole("retention.recordings_days", 0..=36_500, &mut config.retention.recordings_days);
        from.whole("retention.disk_quota_mb", 0..=1_000_000_000, &mut config.retention.disk_quota_mb);
        config.evidence.read(&mut from);
        from.number("issues.similarity_threshold", 0.0..=1.0, &mut config.issues.similarity_threshold);
        from.list("uptime.malfunction_phrases", &mut config.uptime.malfunction_phrases);
        from.list("phone_numbers.pool", &mut config.phone_numbers.pool);
        from.whole("phone_numbers.price", 0..=u64::from(u32::MAX), &mut config.phone_numbers.price);
        config.notify.read(&mut from);
        from.boolean("journey.stop_on_failure", &mut config.journey.stop_on_failure);
        config.websocket.read(&mut from);
        config.webrtc.read_from(&mut from);
        config.p2.read_from(&mut from);
        config.adapters = adapters::adapters(&mut from, adapters::ADAPTERS);
        config.autosync = adapters::adapters(&mut from, adapters::AUTOSYNC);
        config.text.read(&mut from);
        config.sms.read(&mut from);
        config.email.read(&mut from, config.notify.smtp_url.as_ref());
        config.warnings = from.finish()?;
        config.warnings.extend(config.server.narrowed.clone());
        config.warnings.extend(trunks::silent_trunks(&config.sip.trunks));
        Ok(config)
    }

    fn read_addresses(&mut self, from: &mut Source) {
        self.server.read(from);
        self.sip.read(from);
        self.storage.read(from);
        self.bus.read(from);
        self.telemetry.read(from);
    }

    fn read_limits(&mut self, from: &mut Source, file_limit: u64) {
        let limits = &mut self.limits;
        limits.max_calls = most_calls(file_limit, &self.sip.rtp_ports);
        from.whole("limits.max_calls", 1..=1_000_000, &mut limits.max_calls);
        from.number("limits.start_rate_per_s", 0.01..=10_000.0, &mut limits.start_rate_per_s);
        from.whole("limits.max_body_bytes", 1024..=1 << 32, &mut limits.max_body_bytes);
        from.whole("limits.max_results_per_run", 1..=1_000_000, &mut limits.max_results_per_run);
        from.whole("limits.max_evaluations", 1..=1000, &mut limits.max_evaluations);
        from.maybe_number("limits.usage_minutes_per_month", 0.0..=1e9, &mut limits.usage_minutes_per_month);
        limits.organizations = organizations::read_organizations(from);
        let for_calls = FILES_PER_CALL.saturating_mul(limits.max_calls as u64);
        self.server.read_connections(from, file_limit.saturating_sub(for_calls));
    }

    fn read_access(&mut self, from: &mut Source) {
        // Behind a proxy a listener on this machine serves others, too.
        self.security.allow_private_targets = self.server.listen.ip().is_loopback() && !self.server.is_forwarded();
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

/// A text that is never shown: `Debug` and JSON only say that it is set.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`, so that it is never printed.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// Returns the text itself, for the one place that sends or compares it.
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

/// Returns the number of calls that these open files and ports carry, at least 1.
pub fn most_calls(file_limit: u64, rtp_ports: &RangeInclusive<u16>) -> usize {
    let by_files = file_limit.saturating_sub(RESERVED_FILES) / FILES_PER_CALL;
    let ports = u64::from(rtp_ports.end() - rtp_ports.start()) + 1;
    by_files.min(ports / 2).max(1) as usize
}

/// Raises the soft limit of open files to the hard one, and returns the limit that then holds.
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

/// Returns the folders in which programs are searched (`PATH`).
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect())
}

/// True if colours may be written to a terminal: `NO_COLOR` is not set, and `TERM` is not `dumb`.
pub fn colours() -> bool {
    variable("NO_COLOR").is_none() && variable("TERM").is_none_or(|kind| kind != "dumb")
}

/// Returns the log filter, in the syntax of `tracing` (`RINGER_LOG`); `None` if it is not set.
pub fn log_filter() -> Option<String> {
    variable("RINGER_LOG")
}

/// Returns true if the log is one JSON object a line (`RINGER_LOG_FORMAT`: `text` or `json`).
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
#[cfg(any(test, feature = "testing"))]
pub fn test_models() -> PathBuf {
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
