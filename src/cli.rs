//! The command line: one file a subcommand, each with its flags and a `run`. Wiring only; what a command does is
//! elsewhere.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};

pub use self::out::complain;
use crate::config::{Config, ConfigError, DialectTable, LanguageModel, Secret, most_calls, nearest, raise_file_limit};
use crate::engine::SocketSettings;
use crate::model::language_model::{ModelKind, ModelRecord};
use crate::provider::choice::DEFAULT as DEFAULT_MODEL;
use crate::store::vault::Vault;
use crate::store::{Location, Store};
use crate::transport::sip::names::Resolver;
use crate::transport::webrtc::PeerTerms;
use crate::transport::websocket::Dialect;
use crate::{api, service};

pub mod accuracy;
pub mod agent;
mod bus;
pub mod call;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod engines;
pub mod init;
pub mod judge;
pub mod keys;
mod lines;
pub mod load;
mod local;
pub mod man;
pub mod mcp;
pub mod models;
pub mod openapi;
mod out;
mod progress;
pub mod replay;
pub mod run;
mod sample;
pub mod selftest;
mod signals;
pub mod sim;
pub mod storage;
mod tls;
pub mod up;
pub mod verify;

/// Exit code for a bad flag or setting; clap uses the same.
pub const BAD_USAGE: u8 = 2;
/// Exit code when nothing answered at the address of an agent or a server, or the credentials were refused.
pub const UNREACHABLE: u8 = 4;

/// Places live simulated phone calls to voice agents and measures what they do.
#[derive(Debug, Parser)]
#[command(name = "ringer", version, max_term_width = 100, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// Subcommand that is run.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ringer init                                    a first suite for your agent, and its first call
  ringer doctor                                  is everything installed?
  ringer demo                                    four calls to a sample agent, from start to checked results
  ringer call sip:agent@127.0.0.1:5080           call an agent now and watch the call
  ringer up                                      the API on http://127.0.0.1:8080, its documentation on /docs

The exit code is 0 when a command did what was asked, 1 when not, 2 for bad flags and settings, 141 when nobody read all of
what it printed (as in `ringer openapi | head`).

RINGER_LOG sets what is logged to standard error (info; debug; ringer_engine=trace), RINGER_LOG_FORMAT how
(text; json: an object a line, with the ids of request, job, result and call).";

/// Subcommands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the engine and its API in this process.
    Up(up::Args),
    /// Write a first suite and a file for the build server, and make the first call.
    Init(init::Args),
    /// Call one SIP address now and print what happens.
    Call(Box<call::Args>),
    /// Run the sample voice agent, which answers calls and takes bookings.
    Agent(agent::Args),
    /// Make four calls to the sample agent through the API, and check what they came to.
    Demo(demo::Args),
    /// Run suites of tests that lie beside an agent's code.
    Run(run::Args),
    /// Play calls of a run again with one thing changed, and tell where and by how much they part.
    Replay(replay::Args),
    /// Make many calls at once and report how exactly they were paced.
    Load(load::Args),
    /// Run calls to the sample agent in virtual time, from a seed.
    Sim(sim::Args),
    /// Find the faults that the sample agent has on purpose, in virtual time.
    Selftest(selftest::Args),
    /// Say what is installed and what is missing.
    Doctor(doctor::Args),
    /// List, add, check and remove neural models of speech.
    Models(models::Args),
    /// Report how far the language model that judges can be trusted.
    Judge(judge::Args),
    /// Create, list and revoke API keys.
    Keys(keys::Args),
    /// Check the object store of files, and move files between stores.
    Storage(storage::Args),
    /// List the engines of a database, and drain one.
    Engines(engines::Args),
    /// Print the stated errors of what is reported.
    Accuracy(accuracy::Args),
    /// Check whether evidence is what an installation has signed.
    Verify(verify::Args),
    /// Check the settings file.
    Config(config::Args),
    /// Print the OpenAPI document of the API.
    Openapi(openapi::Args),
    /// Print a script by which a shell completes subcommands and flags.
    Completions(completions::Args),
    /// Serve a coding assistant: call agents, run suites, read results (Model Context Protocol).
    Mcp(mcp::Args),
    /// Print the page of this program for `man`, or write those of all subcommands.
    Man(man::Args),
}

/// Carries out a command. The exit code is 0 when it did what was asked, 1 when not, and 2 for bad flags and settings.
/// It is 141 when nobody read all of the output.
pub async fn run(cli: Cli) -> ExitCode {
    // Models and documents are for every user of the machine.
    if !matches!(cli.command, Command::Models(_) | Command::Openapi(_) | Command::Init(_) | Command::Man(_)) {
        keep_files_private();
    }
    match cli.command {
        Command::Up(args) => up::run(args).await,
        Command::Init(args) => init::run(args).await,
        Command::Call(args) => call::run(*args).await,
        Command::Agent(args) => agent::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Run(args) => run::run(args).await,
        Command::Replay(args) => replay::run(args).await,
        Command::Load(args) => load::run(args).await,
        Command::Sim(args) => sim::run(args).await,
        Command::Selftest(args) => selftest::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Models(args) => models::run(args).await,
        Command::Judge(args) => judge::run(args).await,
        Command::Keys(args) => keys::run(args).await,
        Command::Storage(args) => storage::run(args).await,
        Command::Engines(args) => engines::run(args).await,
        Command::Accuracy(args) => accuracy::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Config(args) => config::run(args).await,
        Command::Openapi(args) => openapi::run(args).await,
        Command::Completions(args) => completions::run(args).await,
        Command::Man(args) => man::run(args).await,
        Command::Mcp(args) => mcp::run(args).await,
    }
}

/// Location of the settings and the data, for commands that use them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Place {
    /// Settings file [default: ringer.toml when it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Folder of the database and the results [default: data]
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
    /// Database server, postgres://USER:PASSWORD@HOST:PORT/NAME; RINGER_DATABASE_URL keeps it out of lists of processes
    /// [default: a file in the data folder]
    #[arg(long, value_name = "URL", value_parser = secret, global = true)]
    pub database: Option<Secret>,
}

impl Place {
    /// Returns the settings, with `flags` (key and text, `None` when the flag was not given) over them. Warnings are
    /// logged; an error is printed and becomes the exit code.
    pub fn settings(&self, flags: &[(&'static str, Option<String>)]) -> Result<Config, ExitCode> {
        let mut given: Vec<(&str, String)> =
            flags.iter().filter_map(|(key, text)| Some((*key, text.clone()?))).collect();
        if let Some(data) = &self.data {
            given.push(("data", data.to_string_lossy().into_owned()));
        }
        given.extend(self.database.iter().map(|url| ("database.url", url.expose().to_owned())));
        let checked = Config::load(self.config.as_deref(), &given).and_then(check_config);
        let config = checked.map_err(|ConfigError(problems)| {
            problems.iter().for_each(complain);
            ExitCode::from(BAD_USAGE)
        })?;
        tls::from_config(&config).map_err(|problem| {
            complain(problem);
            ExitCode::from(BAD_USAGE)
        })?;
        config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(config)
    }
}

/// Checks the routes, phone numbers and adapters of the settings; numbers are left in E.164 form.
fn check_config(mut config: Config) -> Result<Config, ConfigError> {
    let mut problems = Vec::new();
    let routes = if config.rate_limit.routes.is_empty() { Vec::new() } else { api::route_names() };
    for name in config.rate_limit.routes.keys().filter(|name| !routes.contains(name)) {
        let near = nearest(name, routes.iter().map(String::as_str));
        problems.push(format!("rate_limit.routes: {name:?} is no method and path of `ringer openapi`{near}"));
    }
    for number in &mut config.phone_numbers.pool {
        let field = format!("phone_numbers.pool: {number:?}");
        let mut given = Some(std::mem::take(number));
        if let Err(refused) = service::phone(&field, &mut given) {
            problems.push(format!("{refused}, like +14155550100"));
        }
        *number = given.unwrap_or_default();
    }
    match service::adapters(&config.adapters) {
        Ok(adapters) => problems.extend(service::definitions(&config.autosync, &adapters).err().unwrap_or_default()),
        Err(found) => problems.extend(found),
    }
    if problems.is_empty() { Ok(config) } else { Err(ConfigError(problems)) }
}

fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text.to_owned()))
}

/// Returns the location of the database: the server in the settings, else a file in the data folder.
fn database(config: &Config) -> Location {
    match &config.database.url {
        Some(url) => Location::Server(url.clone()),
        None => Location::File(config.data.join("ringer.db")),
    }
}

/// Returns the database, its secrets under the configured key.
pub async fn open_store(config: &Config) -> crate::error::Result<Store> {
    let key = config.security.secret_key.as_ref().map(Secret::expose);
    let old: Vec<&str> = config.security.old_secret_keys.iter().map(Secret::expose).collect();
    Store::open(database(config), Vault::open(&config.data, key, &old)?).await
}

/// Returns the settings of the services, taken from the configuration.
pub fn service_settings(config: &Config) -> service::Settings {
    // The settings were refused if one could not be used.
    let adapters = service::adapters(&config.adapters).unwrap_or_default();
    service::Settings {
        data: config.data.clone(),
        // The settings were refused if it could not be read.
        roots: local::roots(config).unwrap_or_default(),
        public_url: config.server.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        allow_private_targets: config.security.allow_private_targets,
        allow_private_agents: config.security.allow_private_agents,
        require_https_webhooks: config.security.require_https_webhooks,
        max_results_per_run: config.limits.max_results_per_run as i64,
        usage_minutes_per_month: config.limits.usage_minutes_per_month,
        issue_likeness: config.issues.similarity_threshold,
        malfunction_phrases: service::malfunction_phrases(&config.uptime.malfunction_phrases),
        number_pool: config.phone_numbers.pool.clone(),
        number_price: i64::from(config.phone_numbers.price),
        notify: config.notify.clone(),
        telemetry: config.telemetry.clone().into(),
        retention: config.retention.clone(),
        capture: config.evidence.capture,
        timestamp_url: config.evidence.timestamp_url.clone(),
        journey_stop_on_failure: config.journey.stop_on_failure,
        text_reply_delay_ms: config.text.reply_delay_ms,
        sms: config.sms.clone().into(),
        email: config.email.clone().into(),
        hears: config.audio_model.base_url.is_some(),
        models: models(config).into(),
        judge: config.judge.clone().into(),
        callers_usd_per_day: config.language_model.max_usd_per_day,
        behaviour: config.behaviour.clone(),
        names: Resolver::default(),
        api: None,
        storage: None,
        engine: config.server.name.clone().unwrap_or_else(|| "ringer".to_owned()),
        own_url: config.server.own_url.clone(),
        drain_timeout: config.server.drain_timeout_s.map(Duration::from_secs),
        lease_ms: i64::try_from(config.server.lease_s * 1000).unwrap_or(service::LEASE_MS),
        dialects: Arc::default(),
        definitions: service::definitions(&config.autosync, &adapters).unwrap_or_default().into(),
        adapters: adapters.into(),
        sockets: SocketSettings::from(&config.websocket),
        peers: PeerTerms::from(&config.webrtc),
        pipelines: config.p2.clone().into(),
        yield_to_started_event: config.websocket.yield_to_started_event,
        trunks: config.sip.trunks.clone().into(),
        any_host: config.websocket.any_host,
        organization_limits: config.limits.organizations.clone().into(),
    }
}

/// Returns the models of the settings, the default of each kind first.
fn models(config: &Config) -> Vec<ModelRecord> {
    let kinds = [
        (ModelKind::Language, &config.language_model, &config.language_models),
        (ModelKind::Audio, &config.audio_model, &config.audio_models),
    ];
    let of_kind = |(kind, main, others): (ModelKind, &LanguageModel, &BTreeMap<String, LanguageModel>)| {
        let record = |name: &str, model: &LanguageModel, is_default| {
            let model = model.model.clone()?;
            Some(ModelRecord { name: name.to_owned(), kind, model, is_default })
        };
        let main = main.base_url.as_ref().and_then(|_| record(DEFAULT_MODEL, main, true));
        let others = others.iter().filter_map(|(name, model)| record(name, model, false));
        main.into_iter().chain(others).collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Reads the dialects of WebSockets that have settings of their own.
///
/// # Errors
/// Names the table and the setting that cannot be used.
pub fn dialects(config: &Config) -> Result<BTreeMap<String, Dialect>, String> {
    let read = |(name, DialectTable(table)): (&String, &DialectTable)| {
        let dialect = Dialect::parse(name, &serde_json::Value::Object(table.clone()));
        dialect.map(|dialect| (name.clone(), dialect)).map_err(|error| error.to_string())
    };
    config.websocket.dialects.iter().map(read).collect()
}

/// Returns a text about the possible number of calls, and why it is below `limits.max_calls`.
fn capacity(config: &Config) -> String {
    capacity_of(config.limits.max_calls, &config.sip.rtp_ports, raise_file_limit())
}

fn capacity_of(asked: usize, rtp_ports: &RangeInclusive<u16>, file_limit: u64) -> String {
    let (ports, files) = (most_calls(u64::MAX, rtp_ports), most_calls(file_limit, rtp_ports));
    let most = asked.min(ports);
    let why = match (most < asked, files < most) {
        (true, _) => format!(" (limits.max_calls is {asked}, and sip.rtp_ports has no more pairs of ports)"),
        (false, true) => {
            format!(" (the limit of open files is enough for {files}: ulimit -n or LimitNOFILE= raises it)")
        }
        (false, false) => String::new(),
    };
    format!("at most {}{why}", count(most, "call"))
}

/// Makes a folder within the data folder, or that itself: what callers and agents said is nobody else's on this
/// machine.
async fn make_private(folder: &Path) -> Result<(), String> {
    let made = tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).await;
    made.map_err(|error| format!("the data folder {}: {error}", folder.display()))
}

/// Makes files and folders that this process and its programs create readable by its user alone, whatever was
/// inherited.
fn keep_files_private() {
    // SAFETY: a plain system call that cannot fail.
    unsafe { libc::umask(0o077) };
}

/// Returns a warning where other users of the machine can read a data folder of an earlier release; nothing is changed.
fn folder_warning(folder: &Path) -> Option<String> {
    let mode = std::fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    let shown = folder.display();
    (mode & 0o077 != 0).then(|| {
        format!("other users can read the data folder {shown} (mode {mode:04o}): chmod -R go= '{shown}' keeps it to this one")
    })
}

/// Returns a number with a noun, such as `1 call` or `2 calls`.
fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Prints `cause` and gives the exit code of a command that failed.
pub fn fail(cause: impl std::fmt::Display) -> ExitCode {
    complain(format_args!("ringer: {cause}"));
    ExitCode::FAILURE
}

/// Returns the user and system time of this process.
fn own_cpu() -> Duration {
    // SAFETY: rusage is a plain C struct for which all zeroes are valid, and it outlives the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |of: libc::timeval| Duration::new(of.tv_sec as u64, of.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Cli, Command, capacity_of};

    #[test]
    fn the_command_tree_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_has_a_help_text() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{} has no help text", command.get_name());
            for flag in command.get_arguments() {
                let name = flag.get_id();
                assert!(flag.get_help().is_some(), "{} {name} has no help text", command.get_name());
            }
        }
    }

    #[test]
    fn a_call_takes_its_flags() {
        let line = "ringer call sip:bob@127.0.0.1:5080 --noise cafe:0.5 --codec G722,PCMU --seed 7 --header X-Run:9 --dtmf 12#";
        let Command::Call(args) = Cli::parse_from(line.split(' ')).command else { panic!("not a call") };
        assert_eq!(args.noise.map(|noise| (noise.kind, noise.volume)), Some(("cafe".to_owned(), 0.5)));
        assert_eq!(args.codec, ["G722", "PCMU"]);
        assert_eq!(args.header, [("X-Run".to_owned(), "9".to_owned())]);
        assert_eq!((args.seed, args.dtmf.as_deref()), (Some(7), Some("12#")));
    }

    #[test]
    fn bad_flags_are_refused() {
        let check = |line: &str, part: &str| {
            let error = Cli::try_parse_from(line.split(' ')).expect_err(line).to_string();
            assert!(error.contains(part), "{line}: {error}");
        };
        check("ringer call", "<URI>");
        check("ringer call bob", "must start with sip:");
        check("ringer call sip:", "sip:<user>@<host>");
        check("ringer call sip:b@h;transport=sctp", "SIP is spoken over UDP, TCP and TLS alone");
        check("ringer call sip:b@h --noise cave", "must be one of");
        check("ringer call sip:b@h --noise cafe:2", "volume must be a number from 0 to 1");
        check("ringer call sip:b@h --codec G729", "PCMU");
        check("ringer call sip:b@h --dtmf 12E", "may hold only");
        check("ringer call sip:b@h --header X-Run", "NAME:VALUE");
        check("ringer call sip:b@h --header Via:x", "cannot be given");
        check("ringer demo --keep a --discard", "cannot be used with");
        check("ringer agent --rtp-ports 1-2", "two ports like");
        check("ringer keys create --scope all", "read");
        check("ringer upp", "up");
    }

    #[test]
    fn the_place_of_the_data_may_stand_behind_the_action() {
        for line in ["ringer keys --data d create", "ringer keys create --data d", "ringer keys list --json --data d"] {
            let Command::Keys(args) = Cli::parse_from(line.split(' ')).command else { panic!("no keys: {line}") };
            assert_eq!(args.place.data.as_deref(), Some(std::path::Path::new("d")), "{line}");
        }
    }

    #[test]
    fn fewer_calls_than_asked_for_are_explained() {
        for (asked, files, expect) in [
            (1, 4096, "at most 1 call"),
            (7, 4096, "at most 7 calls"),
            (50, 4096, "at most 50 calls"),
            (51, 4096, "at most 50 calls (limits.max_calls is 51, and sip.rtp_ports has no more pairs of ports)"),
            (
                40,
                290,
                "at most 40 calls (the limit of open files is enough for 30: ulimit -n or LimitNOFILE= raises it)",
            ),
        ] {
            assert_eq!(capacity_of(asked, &(20_000..=20_099), files), expect);
        }
    }
}
