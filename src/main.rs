//! The program `ringer`: wires the command line, the log and the runtime. Decides nothing.
//!
//! Half as many task threads as cores: on two cores one thread that wakes no other answers 25 % more requests a
//! CPU-second.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use ringer::cli::{self, Cli};
use ringer::config;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

/// Log filter when `RINGER_LOG` is not set.
const LOG: &str = "info,sqlx=warn,hyper=warn,rustls=warn,async_nats=off";
/// Filter that holds whatever is set: further messages of this library have the words of calls in them.
const QUIET: &str = "rmcp=warn";

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = log() {
        cli::complain(error);
        return ExitCode::from(cli::BAD_USAGE);
    }
    // The media threads have the other cores, and workers that wake each other cost more than they do together.
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).max(1);
    match tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build() {
        Ok(runtime) => runtime.block_on(cli::run(cli)),
        Err(error) => cli::fail(error),
    }
}

fn log() -> Result<(), String> {
    let filter = config::log_filter().map(|filter| with_packages(&filter));
    let filter = EnvFilter::try_new(filter.as_deref().unwrap_or(LOG));
    let filter = filter.map_err(|error| format!("RINGER_LOG: {error}"))?;
    let filter = filter.add_directive(QUIET.parse::<Directive>().map_err(|error| format!("{QUIET}: {error}"))?);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if config::log_is_json()? {
        log.json().flatten_event(true).with_current_span(false).init();
    } else {
        log.with_ansi(std::io::stderr().is_terminal() && config::colours()).init();
    }
    Ok(())
}

/// Returns a filter of the log with its targets as packages name them: parts were modules of `ringer` before they were
/// packages, and settings may name them so.
fn with_packages(filter: &str) -> String {
    let named = |directive: &str| {
        let Some(rest) = directive.strip_prefix("ringer::") else { return directive.to_owned() };
        let module: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        match module.as_str() {
            "agent" | "cli" | "suite" => directive.to_owned(),
            "jobs" => format!("ringer_service::{rest}"),
            "events" | "queue" => format!("ringer_store::{rest}"),
            "clock" | "config" | "error" | "fetch" | "guard" | "post" | "tasks" => format!("ringer_base::{rest}"),
            _ => format!("ringer_{rest}"),
        }
    };
    filter.split(',').map(named).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_before_name_packages() {
        for (given, expect) in [
            ("info,sqlx=warn", "info,sqlx=warn"),
            ("ringer::engine=trace,ringer=debug", "ringer_engine=trace,ringer=debug"),
            ("ringer::transport::sip=debug", "ringer_transport::sip=debug"),
            ("ringer::cli=debug,ringer::suite=debug", "ringer::cli=debug,ringer::suite=debug"),
            ("ringer::jobs::call=debug", "ringer_service::jobs::call=debug"),
            ("ringer::queue=debug,ringer::config=warn", "ringer_store::queue=debug,ringer_base::config=warn"),
        ] {
            assert_eq!(with_packages(given), expect);
        }
    }
}
