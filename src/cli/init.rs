//! `ringer init`: asks for the kind of agent, writes a first suite and a file for the build server, and makes the first
//! call.

mod files;

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use self::files::{Agent, ci_file, suite_file};
use super::out::Out;
use super::{BAD_USAGE, Cli, Command, complain};
use crate::config::variable;
use crate::suite::file::from_file;

/// Flags of `ringer init`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer init                                             asks for everything
  ringer init --kind sample --ci none                     a first suite for the sample agent, which is started and called
  ringer init --kind sip --address sip:desk@127.0.0.1:5080 --ci github
  ringer init --kind chat --address http://127.0.0.1:8000/v1 --model my-agent --ci gitlab --no-call

Files that exist are never changed. The exit code is that of the first call, as of `ringer run`; 2 for bad flags and files.")]
pub struct Args {
    /// Kind of agent [default: it is asked for]
    #[arg(long, value_name = "KIND")]
    pub kind: Option<Kind>,
    /// Address of the agent, as in a suite [default: it is asked for]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Model that an agent of kind chat is asked by [default: it is asked for]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Build server that a file is written for [default: it is asked for]
    #[arg(long, value_name = "SERVER")]
    pub ci: Option<Ci>,
    /// Folder of the suites
    #[arg(long, value_name = "DIR", default_value = "calls")]
    pub folder: PathBuf,
    /// Write the files, call nobody
    #[arg(long)]
    pub no_call: bool,
}

/// Kinds of agents that a first suite is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The sample agent of this program, which the suite starts
    Sample,
    /// An agent that answers SIP calls
    Sip,
    /// An agent with a telephone number
    Phone,
    /// An agent that is a WebSocket server
    Websocket,
    /// An agent that is a voice pipeline over WebRTC
    Pipeline,
    /// An agent that joins media rooms
    Room,
    /// An agent that answers texts by a webhook
    Http,
    /// An agent that is a chat-completions server
    Chat,
}

impl Kind {
    /// Returns the question for its address with an example; `None`: it needs none.
    fn question(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Kind::Sample => return None,
            Kind::Sip => ("SIP address", "sip:desk@127.0.0.1:5080"),
            Kind::Phone => ("Telephone number", "+14155550100"),
            Kind::Websocket => ("Address of the WebSocket", "ws://127.0.0.1:8765"),
            Kind::Pipeline => ("Address of the pipeline", "http://127.0.0.1:7860"),
            Kind::Room => ("Address of the room server", "wss://rooms.example.com"),
            Kind::Http => ("Address of the webhook", "https://agent.example/messages"),
            Kind::Chat => ("Address of the server", "http://127.0.0.1:8000/v1"),
        })
    }

    /// Returns the word of its address in `connect` of a suite.
    fn word(self) -> &'static str {
        match self {
            Kind::Sample | Kind::Sip => "sip",
            Kind::Phone => "phone",
            Kind::Websocket => "ws",
            Kind::Pipeline => "pipeline",
            Kind::Room => "room",
            Kind::Http => "http",
            Kind::Chat => "chat",
        }
    }

    /// Returns the beginnings that its address may have.
    fn schemes(self) -> &'static [&'static str] {
        match self {
            Kind::Sample => &[],
            Kind::Sip => &["sip:", "sips:"],
            Kind::Phone => &["+"],
            Kind::Websocket | Kind::Room => &["wss://", "ws://", "https://", "http://"],
            Kind::Pipeline | Kind::Http | Kind::Chat => &["https://", "http://"],
        }
    }

    /// Returns an address of this kind as it is, or says how one begins.
    fn check(self, address: &str) -> Result<String, String> {
        let fits = self.schemes().iter().any(|scheme| address.starts_with(scheme));
        let wanted =
            || format!("{address:?} is no address of this kind: it begins with {}", self.schemes().join(" or "));
        fits.then(|| address.to_owned()).ok_or_else(wanted)
    }

    /// True if the agent writes instead of speaking.
    fn is_written(self) -> bool {
        matches!(self, Kind::Http | Kind::Chat)
    }
}

/// Build servers that a file is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ci {
    /// GitHub: the file .github/workflows/ringer.yml
    Github,
    /// GitLab: the file .gitlab-ci.yml, or a job to add to the one that is there
    Gitlab,
    /// No build server, and no file
    None,
}

/// Writes the files and makes the first call.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    let made = tokio::task::spawn_blocking(move || {
        let is_asked = std::io::stdin().is_terminal();
        let made = write_files(&args, &mut Questions::new(std::io::stdin().lock(), is_asked), &out);
        (args, out, made)
    });
    let Ok((args, out, made)) = made.await else { return ExitCode::FAILURE };
    let suite = match made {
        Ok(suite) => suite,
        Err(problems) => {
            problems.iter().for_each(complain);
            return ExitCode::from(BAD_USAGE);
        }
    };
    if args.no_call {
        out.line(format_args!("next: ringer run {}", args.folder.display()));
        return out.verdict(true);
    }
    out.line("the first call:");
    let line = ["ringer".into(), "run".into(), suite.into_os_string()];
    match Cli::try_parse_from(line).map(|cli| cli.command) {
        Ok(Command::Run(call)) => {
            let code = super::run::run(call).await;
            out.line(format_args!("next: change {}, then ringer run {0}", args.folder.display()));
            code
        }
        _ => ExitCode::FAILURE,
    }
}

/// Questions to a person, or their absence where nobody can be asked.
struct Questions<R> {
    answers: R,
    is_asked: bool,
}

impl<R: BufRead> Questions<R> {
    fn new(answers: R, is_asked: bool) -> Questions<R> {
        Questions { answers, is_asked }
    }

    /// Asks until `read` takes the answer; an empty one is `default`.
    ///
    /// # Errors
    /// Nobody can be asked, or the answers have ended: names the flag.
    fn ask<T>(
        &mut self,
        (question, default, flag): (&str, &str, &str),
        out: &Out,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Vec<String>> {
        let lacks = || vec![format!("{flag} is missing, and there is no terminal to ask for it")];
        if !self.is_asked {
            return Err(lacks());
        }
        loop {
            out.line(format_args!("{question} [{default}]"));
            let mut answer = String::new();
            if !self.answers.read_line(&mut answer).is_ok_and(|bytes| bytes > 0) {
                return Err(lacks());
            }
            let answer = answer.trim();
            match read(if answer.is_empty() { default } else { answer }) {
                Ok(value) => return Ok(value),
                Err(why) => out.line(why),
            }
        }
    }
}

/// Returns the value with this number from 1, or of this name.
fn choice<T: ValueEnum>(answer: &str) -> Result<T, String> {
    let all = T::value_variants();
    let numbered = answer.parse().ok().and_then(|number: usize| all.get(number.checked_sub(1)?));
    let named = all.iter().find(|one| one.to_possible_value().is_some_and(|value| value.matches(answer, true)));
    numbered
        .or(named)
        .cloned()
        .ok_or_else(|| format!("{answer:?} is none of these: a number of 1 to {}, or a name", all.len()))
}

/// Prints the values of a choice with their numbers.
fn tell_choices<T: ValueEnum>(out: &Out) {
    for (number, value) in T::value_variants().iter().filter_map(ValueEnum::to_possible_value).enumerate() {
        let about = value.get_help().map(ToString::to_string).unwrap_or_default();
        out.line(format_args!("  {} {:<10} {about}", number + 1, value.get_name()));
    }
}

/// Asks for what the flags do not tell, writes the files, and returns the path of the suite.
///
/// # Errors
/// Lines for a person: what is missing, a file that exists, a suite that cannot be read.
fn write_files<R: BufRead>(args: &Args, questions: &mut Questions<R>, out: &Out) -> Result<PathBuf, Vec<String>> {
    let suite = args.folder.join("first.yaml");
    let exists = |path: &Path| vec![format!("{} exists, and is not changed: choose another --folder", path.display())];
    if suite.exists() {
        return Err(exists(&suite));
    }
    let agent = agent_of(args, questions, out)?;
    let ci = match args.ci {
        Some(ci) => ci,
        None => {
            out.line("A file for a build server?");
            tell_choices::<Ci>(out);
            let usual = if Path::new(".gitlab-ci.yml").exists() { "gitlab" } else { "github" };
            questions.ask(("Build server", usual, "--ci"), out, choice)?
        }
    };
    write_new(&suite, &suite_file(&agent))?;
    if let Err(problems) = from_file(&suite, &|name| variable(name)) {
        // What cannot be run is not left behind.
        let _ = std::fs::remove_file(&suite);
        return Err(problems.iter().map(ToString::to_string).collect());
    }
    out.line(format_args!("wrote {}", suite.display()));
    if let Some((path, text)) = ci_file(ci, &args.folder) {
        if path.exists() {
            out.line(format_args!("{} exists, and is not changed. Add to it:\n\n{text}", path.display()));
        } else {
            write_new(&path, &text)?;
            out.line(format_args!("wrote {}", path.display()));
        }
    }
    Ok(suite)
}

/// Returns the agent of the flags and answers.
fn agent_of<R: BufRead>(args: &Args, questions: &mut Questions<R>, out: &Out) -> Result<Agent, Vec<String>> {
    let kind = match args.kind {
        Some(kind) => kind,
        None => {
            out.line("What is your agent?");
            tell_choices::<Kind>(out);
            questions.ask(("Kind", "sample", "--kind"), out, choice)?
        }
    };
    let text = |answer: &str| Ok(answer.to_owned());
    let address = match (kind.question(), &args.address) {
        (None, Some(_)) => return Err(vec!["--address: the sample agent has its own".to_owned()]),
        (None, None) => String::new(),
        (Some(_), Some(address)) => kind.check(address).map_err(|why| vec![format!("--address: {why}")])?,
        (Some((question, example)), None) => {
            questions.ask((question, example, "--address"), out, |answer| kind.check(answer))?
        }
    };
    let model = match (kind, &args.model) {
        (Kind::Chat, Some(model)) => Some(model.clone()),
        (Kind::Chat, None) => Some(questions.ask(("Model", "default", "--model"), out, text)?),
        (_, Some(_)) => return Err(vec!["--model: only agents of kind chat have one".to_owned()]),
        (_, None) => None,
    };
    Ok(Agent { kind, address, model })
}

/// Writes a file that must not exist, and its folder.
fn write_new(path: &Path, text: &str) -> Result<(), Vec<String>> {
    let failed = |error: std::io::Error| vec![format!("{}: {error}", path.display())];
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = std::fs::File::options().write(true).create_new(true).open(path).map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn args(line: &str) -> Args {
        match Cli::parse_from(line.split(' ')).command {
            Command::Init(args) => args,
            other => panic!("not init: {other:?}"),
        }
    }

    #[test]
    fn every_kind_makes_a_suite_that_can_be_read() {
        for kind in Kind::value_variants() {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("first.yaml");
            let address = kind.question().map(|(_, example)| example.to_owned()).unwrap_or_default();
            let model = (*kind == Kind::Chat).then(|| "my \"agent\"".to_owned());
            std::fs::write(&path, suite_file(&Agent { kind: *kind, address, model })).expect("it is written");
            let read = from_file(&path, &|_| None);
            assert!(read.is_ok(), "{kind:?}: {:?}", read.err());
        }
    }

    #[test]
    fn answers_are_asked_for_until_they_fit() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut args = args("ringer init");
        args.folder = folder.path().join("calls");
        let mut questions = Questions::new(Cursor::new("12\nwebsocket\nws://127.0.0.1:8765\n3\n"), true);
        let suite = write_files(&args, &mut questions, &Out::to(Vec::new())).expect("it is written");
        let text = std::fs::read_to_string(&suite).expect("a suite");
        assert!(text.contains("connect: { ws: \"ws://127.0.0.1:8765\" }"), "{text}");
        // A second time nothing is written over.
        let again = write_files(&args, &mut Questions::new(Cursor::new(""), true), &Out::to(Vec::new()));
        assert!(again.expect_err("it exists")[0].contains("exists, and is not changed"));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (line, expect) in [
            ("ringer init", "--kind is missing"),
            ("ringer init --kind sip", "--address is missing"),
            ("ringer init --kind chat --address http://127.0.0.1:9/v1", "--model is missing"),
            ("ringer init --kind sample", "--ci is missing"),
            ("ringer init --kind sample --address sip:a@b", "has its own"),
            ("ringer init --kind sip --address sip:a@b --model m", "only agents of kind chat"),
            ("ringer init --kind sip --address nonsense --ci none", "it begins with sip: or sips:"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut args = args(line);
            args.folder = folder.path().join("calls");
            let refused = write_files(&args, &mut Questions::new(Cursor::new(""), false), &Out::to(Vec::new()));
            let refused = refused.expect_err(line);
            assert!(refused[0].contains(expect), "{line}: {refused:?}");
            assert!(!args.folder.join("first.yaml").exists(), "{line}");
        }
    }
}
