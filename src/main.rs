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

/// Log filter when `RINGER_LOG` is not set.
const LOG: &str = "info,sqlx=warn,hyper=warn,rustls=warn";

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
    // Parts were modules of `ringer` before they were packages, and settings may name them so.
    let filter = config::log_filter().map(|filter| filter.replace("ringer::", "ringer_"));
    let filter = EnvFilter::try_new(filter.as_deref().unwrap_or(LOG));
    let filter = filter.map_err(|error| format!("RINGER_LOG: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if config::log_is_json()? {
        log.json().flatten_event(true).with_current_span(false).init();
    } else {
        log.with_ansi(std::io::stderr().is_terminal() && config::colours()).init();
    }
    Ok(())
}
