//! `ringer man`: pages for `man`, of the program and of each subcommand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;

use super::out::Out;
use super::{Cli, fail};

/// Flags of `ringer man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer man | man -l -                        the page of the program
  ringer man --out /usr/local/share/man/man1   a page of it and of each subcommand")]
pub struct Args {
    /// Folder to write the pages of the program and of each subcommand into [default: the program's is printed]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Prints the page of the program, or writes all pages.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    let Some(folder) = args.out else {
        return match page(Cli::command()) {
            Ok(text) => {
                out.line(String::from_utf8_lossy(&text).trim_end());
                out.verdict(true)
            }
            Err(error) => fail(error),
        };
    };
    match write_pages(&folder) {
        Ok(count) => {
            out.line(format_args!("wrote {count} pages into {}", folder.display()));
            out.verdict(true)
        }
        Err(error) => fail(format!("{}: {error}", folder.display())),
    }
}

/// Writes a page of the program and of each subcommand; returns their number.
fn write_pages(folder: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let whole = Cli::command();
    let mut count = 1;
    std::fs::write(folder.join("ringer.1"), page(whole.clone())?)?;
    for command in whole.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("ringer-{}", command.get_name());
        let named = command.clone().name(name.clone()).bin_name(name.replacen('-', " ", 1));
        std::fs::write(folder.join(format!("{name}.1")), page(named)?)?;
        count += 1;
    }
    Ok(count)
}

/// Returns the page of a command, as `man` reads it.
fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subcommand_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let count = write_pages(folder.path()).expect("they are written");
        let files: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
        assert_eq!(files.len(), count);
        let text = std::fs::read_to_string(folder.path().join("ringer-run.1")).expect("a page");
        assert!(text.starts_with(".ie") && text.contains("ringer run") && text.contains("baseline"), "{text}");
    }
}
