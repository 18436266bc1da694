//! `ringer completions`: scripts by which shells complete subcommands and flags.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use super::out::Out;

/// Flags of `ringer completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer completions bash > /etc/bash_completion.d/ringer
  ringer completions zsh > \"${fpath[1]}/_ringer\"
  ringer completions fish > ~/.config/fish/completions/ringer.fish")]
pub struct Args {
    /// Shell that the script is for
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Prints the script of a shell.
pub async fn run(args: Args) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ringer", &mut script);
    let out = Out::standard();
    out.line(String::from_utf8_lossy(&script).trim_end());
    out.verdict(true)
}
