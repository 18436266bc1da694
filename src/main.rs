//! The program `ringer`: wires the command line, the log and the runtime. Decides nothing.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use ringer::cli::{self, Cli};
use ringer::config;
use tracing_subscriber::EnvFilter;

/// What is logged when `RINGER_LOG` does not say.
const LOG: &str = "info,sqlx=warn,hyper=warn,rustls=warn";

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = match EnvFilter::try_new(config::log_filter().as_deref().unwrap_or(LOG)) {
        Ok(filter) => filter,
        Err(error) => {
            eprintln!("RINGER_LOG: {error}");
            return ExitCode::from(cli::BAD_USAGE);
        }
    };
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(cli::run(cli)),
        Err(error) => cli::failed(error),
    }
}
