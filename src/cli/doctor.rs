//! `ringer doctor`: what is installed, what is missing and the command that installs it. Changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ringer_media::codec::opus::About;
use serde::Serialize;

use super::out::Out;
use super::{Place, count, local};
use crate::bus;
use crate::clock;
use crate::config::{self, Config, Media, OpusChoice, most_calls, raise_file_limit};
use crate::provider::remote::{Part, Probed, probe};
use crate::provider::{Failure, models, opus};
use crate::service;
use crate::transport::websocket::platform::adapter::Adapter;
use crate::transport::websocket::platform::definition::DefinitionSource;

/// Sleeps that the timer is judged by.
const TIMER_PROBES: usize = 200;
/// Distance of two probes.
const PROBE_NS: u64 = 1_000_000;
/// A packet is due every 20 ms; a machine whose timers are this late shakes what is measured.
const LATE_US: u64 = 5_000;
/// Fewer open files than this carry only a few calls.
const FEW_FILES: u64 = 1024;
/// Folder of the English model in distributions.
const MODEL: &str = "/usr/share/pocketsphinx/model/en-us/en-us";

/// Flags of `ringer doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The exit code is 0 when nothing is missing, else 1; 2 when the settings cannot be read.")]
pub struct Args {
    /// Settings file, for the speech servers in it [default: ringer.toml when it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Report on the programs and the machine.
#[derive(Debug, PartialEq, Serialize)]
pub struct Report {
    /// True if nothing is missing.
    pub ok: bool,
    /// Checks, one for each program or property.
    pub checks: Vec<Check>,
    /// The command that installs all that is missing.
    pub install: Option<String>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Package or part of the machine.
    pub name: &'static str,
    /// True if it is present and good.
    pub ok: bool,
    /// Purpose that it serves.
    pub purpose: &'static str,
    /// Path where it was found, a measured figure, or the fault.
    pub detail: String,
    /// The package that mends it.
    pub package: Option<&'static str>,
}

impl Report {
    /// Sums up `checks`: the verdict, and the command that installs what is missing.
    pub fn new(checks: Vec<Check>) -> Report {
        let missing: Vec<&str> = checks.iter().filter(|check| !check.ok).filter_map(|check| check.package).collect();
        let install = (!missing.is_empty()).then(|| format!("apt-get install {}", missing.join(" ")));
        Report { ok: checks.iter().all(|check| check.ok), checks, install }
    }

    /// Returns the report as lines for a person.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let word = if check.ok { "ok" } else { "MISSING" };
            let word = if !check.ok && check.package.is_none() { "WEAK" } else { word };
            text += &format!("{word:8} {:20} {}: {}\n", check.name, check.purpose, check.detail);
        }
        match &self.install {
            Some(command) => text += &format!("\nInstall what is missing (as root):\n  {command}\n"),
            None if self.ok => text += "\nEverything is there.\n",
            None => {}
        }
        text
    }
}

/// Checks this machine and prints the report.
pub async fn run(args: Args) -> ExitCode {
    let config = match (Place { config: args.config, ..Place::default() }).settings(&[]) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let mut checks = tokio::task::block_in_place(|| {
        vec![
            program("flite", "English voices"),
            program("espeak-ng", "voices of other languages and accents"),
            recognizer(),
            opus_library(&config.media),
            model(Path::new(MODEL)),
            files(raise_file_limit()),
            timer(&probe_timer()),
        ]
    });
    checks.push(hearing(local::heard_at_once(&config)));
    checks.extend(tokio::task::block_in_place(|| neural(&config)));
    // The settings were refused if it could not be read.
    let roots = local::roots(&config).unwrap_or_default();
    for (part, form, remote) in local::servers(&config, &roots) {
        let stands_in = match part {
            Part::Recognizer => config.recognizer.fallback,
            Part::Synthesizer => config.synthesizer.fallback,
        };
        checks.push(server(part, probe(part, form, &remote).await, stands_in));
    }
    if config.bus.is_set() {
        checks.push(bus_check(bus::check(&config.bus, &roots).await));
    }
    checks.extend(insecure_hosts(&config));
    checks.extend(adapters(&config));
    checks.extend(definitions(&config));
    let report = Report::new(checks);
    let out = Out::standard();
    match args.json {
        true => out.line(serde_json::to_string_pretty(&report).expect("a report has text keys only")),
        false => out.line(report.text().trim_end()),
    }
    out.verdict(report.ok)
}

fn program(name: &'static str, purpose: &'static str) -> Check {
    let found = local::program(name);
    Check {
        name,
        ok: found.is_some(),
        purpose,
        detail: found.map_or_else(|| "not found in PATH".to_owned(), |path| path.display().to_string()),
        package: Some(name),
    }
}

fn recognizer() -> Check {
    // SAFETY: the library's initialisers only fill its own tables, and nothing of it is called.
    let opened = unsafe { libloading::Library::new("libpocketsphinx.so.3") };
    Check {
        name: "libpocketsphinx3",
        ok: opened.is_ok(),
        purpose: "hearing words (without it: turn-taking alone)",
        detail: opened.map_or_else(|_| "not found".to_owned(), |_| "libpocketsphinx.so.3".to_owned()),
        package: Some("libpocketsphinx3"),
    }
}

fn opus_library(media: &Media) -> Check {
    let opus = opus::choose(media);
    let About { name, version, fallback_reason } = opus.about();
    let why = match (media.opus, fallback_reason) {
        (OpusChoice::Port, _) => "; media.opus asks for it".to_owned(),
        (_, Some(why)) => format!("; {why}"),
        (_, None) => String::new(),
    };
    Check {
        name: opus::PACKAGE,
        ok: fallback_reason.is_none(),
        purpose: "coding Opus at higher quality",
        detail: format!("{name} {version}{why}"),
        // No package mends a file of one's own.
        package: media.opus_library.is_none().then_some(opus::PACKAGE),
    }
}

fn model(path: &Path) -> Check {
    let ok = path.join("mdef").is_file() || path.join("mdef.bin").is_file();
    let detail = if ok { path.display().to_string() } else { format!("nothing in {}", path.display()) };
    let package = Some("pocketsphinx-en-us");
    Check { name: "pocketsphinx-en-us", ok, purpose: "hearing English words", detail, package }
}

/// Returns the checks of the neural models: installed ones are tried, others name what they would need. None is missed
/// where none is asked for.
fn neural(config: &Config) -> Vec<Check> {
    const PURPOSE: &str = "neural speech, also on the telephone";
    let (places, name) = (config.models(), "speech models");
    let found = models::list(&places);
    let wanted = config.recognizer.kind == config::Place::Whisper
        || matches!(config.synthesizer.kind, config::Place::Piper | config::Place::Kokoro);
    if found.is_empty() {
        let detail = format!(
            "none in {}; `ringer models add` brings one: a Whisper model (tiny 80 MB on disk and about 150 MB of memory, base 150 \
             and 300) hears, a Piper voice (20 to 120 MB) or Kokoro voices (120 MB, and 400 of memory) speak, with libespeak-ng1",
            models::join_names(&places)
        );
        return vec![Check { name, ok: !wanted, purpose: PURPOSE, detail, package: None }];
    }
    let tried = |model: models::Model| {
        let checked = super::models::check(&model.folder);
        let (ok, detail) = checked.map_or_else(|why| (false, why), |checked| (true, checked.text()));
        Check {
            name,
            ok,
            purpose: PURPOSE,
            detail: format!("{} ({}): {detail}", model.name, model.kind.name()),
            package: None,
        }
    };
    found.into_iter().map(tried).collect()
}

/// Returns the check of a server. `stands_in`: what is installed takes over when the server fails.
fn server(part: Part, probed: Result<Probed, Failure>, stands_in: bool) -> Check {
    let (name, section, purpose) = match part {
        Part::Recognizer => ("recognizer server", "recognizer", "hearing words"),
        Part::Synthesizer => ("synthesizer server", "synthesizer", "voices"),
    };
    let (ok, said) = match probed {
        Ok(Probed::Accepted) => (true, "it answers and takes the key".to_owned()),
        Ok(Probed::Reached) => (true, "it answers; it lists no models, so the key was not tried".to_owned()),
        Err(failure) => {
            // The two settings that can mend it.
            let setting = if failure.code.ends_with("_refused") { "api_key" } else { "base_url" };
            let instead = if stands_in { "; what is installed stands in" } else { "" };
            (false, format!("{} (see {section}.{setting}){instead}", failure.message))
        }
    };
    Check { name, ok, purpose, detail: format!("{section}.base_url: {said}"), package: None }
}

/// Returns the check of the bus: the version of its server, or why there is no connection.
fn bus_check(asked: Result<String, String>) -> Check {
    let (ok, detail) = match asked {
        Ok(version) => (true, format!("bus.url: NATS {version} answers and takes the credentials")),
        Err(why) => (false, format!("{why}; engines go on without it")),
    };
    Check { name: "bus", ok, purpose: "watching and ending calls of other engines", detail, package: None }
}

/// Returns the check of hosts whose certificates are not verified; `None` where there are none.
fn insecure_hosts(config: &Config) -> Option<Check> {
    let hosts = &config.tls.insecure_hosts;
    let detail =
        format!("not verified at {} (tls.insecure_hosts): anyone on the way can read and change it", hosts.join(", "));
    let check = Check { name: "certificates", ok: false, purpose: "calls over TLS", detail, package: None };
    (!hosts.is_empty()).then_some(check)
}

/// Returns a check of each adapter, with its defaults that no documentation confirms.
fn adapters(config: &Config) -> Vec<Check> {
    let checked = |(platform, adapter): (&String, &Arc<Adapter>)| {
        let told = |adapter: &Adapter| match adapter.assumptions() {
            [] => adapter.preset().to_owned(),
            assumed => format!("{}; assumed, not confirmed: {}", adapter.preset(), assumed.join(", ")),
        };
        let chat = adapter.writing().filter(|_| !adapter.is_chat()).map(|chat| format!("; chat {}", told(chat)));
        let detail = format!("[adapters.{platform}] {}{}", told(adapter), chat.unwrap_or_default());
        Check { name: "adapter", ok: true, purpose: "calls to agents on platforms", detail, package: None }
    };
    service::adapters(&config.adapters).unwrap_or_default().iter().map(checked).collect()
}

/// Returns a check of each way to read the definitions of agents.
fn definitions(config: &Config) -> Vec<Check> {
    let checked = |(name, source): (&String, &Arc<DefinitionSource>)| {
        let preset = source.preset().unwrap_or("settings of its own");
        let assumed = match source.assumptions() {
            [] => String::new(),
            assumed => format!("; assumed, not confirmed: {}", assumed.join(", ")),
        };
        let detail = format!("[autosync.{name}] {preset}{assumed}");
        Check { name: "autosync", ok: true, purpose: "definitions of agents on platforms", detail, package: None }
    };
    let adapters = service::adapters(&config.adapters).unwrap_or_default();
    service::definitions(&config.autosync, &adapters).unwrap_or_default().iter().map(checked).collect()
}

fn hearing(calls: usize) -> Check {
    Check {
        name: "hearing",
        ok: true,
        purpose: "calls at once whose words are understood in time",
        detail: format!("{}; `ringer run` makes as many by default", count(calls, "call")),
        package: None,
    }
}

fn files(limit: u64) -> Check {
    let calls = most_calls(limit, &Config::default().sip.rtp_ports);
    Check {
        name: "open files",
        ok: limit >= FEW_FILES,
        purpose: "calls at once",
        detail: format!("limit {limit}, enough for {}; `ulimit -n` or LimitNOFILE= raises it", count(calls, "call")),
        package: None,
    }
}

fn timer(late_us: &[u64]) -> Check {
    let at = |percent: usize| late_us.get(late_us.len() * percent / 100).copied().unwrap_or(0);
    Check {
        name: "timer",
        ok: at(99) < LATE_US,
        purpose: "sending each packet when it is due",
        detail: format!("late by {} us in the middle, {} us at the 99th percentile", at(50), at(99)),
        package: None,
    }
}

/// Returns the lateness of this thread's wake-ups in microseconds, ascending.
fn probe_timer() -> Vec<u64> {
    // SAFETY: sets the timer slack of this thread to 1 ns; takes no pointer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let start = clock::monotonic().0;
    let mut late_us: Vec<u64> = (1..=TIMER_PROBES as u64)
        .map(|probe| {
            let due = start + probe * PROBE_NS;
            let at = libc::timespec {
                tv_sec: (due / 1_000_000_000) as libc::time_t,
                tv_nsec: (due % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: `at` is a valid timespec; a null remainder is allowed with an absolute time.
            unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut()) };
            clock::monotonic().0.saturating_sub(due) / 1000
        })
        .collect();
    late_us.sort_unstable();
    late_us
}

#[cfg(test)]
mod tests {
    use super::{Check, Config, Failure, Part, Probed, Report, files, model, server, timer};

    fn check(name: &'static str, ok: bool, package: Option<&'static str>) -> Check {
        Check { name, ok, purpose: "p", detail: "d".to_owned(), package }
    }

    #[test]
    fn missing_packages_become_one_command() {
        let report = Report::new(vec![
            check("a", true, Some("a")),
            check("b", false, Some("b")),
            check("c", false, Some("c-package")),
            check("d", false, None),
        ]);
        assert_eq!(report.install.as_deref(), Some("apt-get install b c-package"));
        assert!(!report.ok);
        let text = report.text();
        assert!(text.contains("MISSING  b ") && text.contains("WEAK     d ") && text.contains("ok       a "), "{text}");
    }

    #[test]
    fn nothing_missing_is_ok() {
        let report = Report::new(vec![check("a", true, Some("a"))]);
        assert!(report.ok && report.install.is_none());
        assert!(report.text().ends_with("Everything is there.\n"));
    }

    #[test]
    fn hosts_without_verification_are_told() {
        let mut config = Config::default();
        assert_eq!(super::insecure_hosts(&config), None);
        config.tls.insecure_hosts = vec!["a.example:5061".to_owned(), "192.0.2.7:443".to_owned()];
        let check = super::insecure_hosts(&config).expect("it is told");
        assert!(
            !check.ok && check.detail.starts_with("not verified at a.example:5061, 192.0.2.7:443 (tls."),
            "{check:?}"
        );
    }

    #[test]
    fn figures_are_judged() {
        assert!(files(4096).ok && files(4096).detail.contains("1298 calls"));
        assert!(!files(256).ok);
        assert!(timer(&[10; 100]).ok);
        assert!(!timer(&[9000; 100]).ok);
    }

    #[test]
    fn servers_are_told_by_their_settings() {
        let refused = Failure { code: "synthesizer_refused", message: "the synthesizer answered 401".into() };
        let gone = Failure { code: "recognizer_unreachable", message: "the recognizer cannot be reached".into() };
        for (part, probed, stands_in, ok, detail) in [
            (Part::Recognizer, Ok(Probed::Accepted), true, true, "recognizer.base_url: it answers and takes the key"),
            (
                Part::Synthesizer,
                Ok(Probed::Reached),
                false,
                true,
                "synthesizer.base_url: it answers; it lists no models, so the key was not tried",
            ),
            (
                Part::Synthesizer,
                Err(refused),
                false,
                false,
                "synthesizer.base_url: the synthesizer answered 401 (see synthesizer.api_key)",
            ),
            (
                Part::Recognizer,
                Err(gone),
                true,
                false,
                "recognizer.base_url: the recognizer cannot be reached (see recognizer.base_url); what is installed stands in",
            ),
        ] {
            let check = server(part, probed, stands_in);
            assert_eq!((check.ok, check.detail.as_str()), (ok, detail));
        }
    }

    #[test]
    fn neural_models_are_missed_only_where_they_are_asked_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = Config { data: folder.path().to_owned(), ..Config::default() };
        let found = |config: &Config| super::neural(config).into_iter().map(|check| (check.ok, check.detail));
        let (ok, detail) = found(&config).next().expect("it is told");
        assert!(ok && detail.contains("`ringer models add` brings one"), "{detail}");
        config.recognizer.kind = crate::config::Place::Whisper;
        assert!(!found(&config).next().expect("it is told").0);
        let model = folder.path().join("models").join("x");
        std::fs::create_dir_all(&model).expect("writable");
        for name in ["model.bin", "tokenizer.json"] {
            std::fs::write(model.join(name), "{}").expect("writable");
        }
        let (ok, detail) = found(&config).next().expect("it is told");
        assert!(!ok && detail.starts_with("x (whisper): ") && detail.contains("it was cut"), "{detail}");
    }

    #[test]
    fn a_model_is_a_folder_with_its_parts() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(!model(folder.path()).ok);
        std::fs::write(folder.path().join("mdef"), "").expect("the folder is writable");
        assert!(model(folder.path()).ok);
    }
}
