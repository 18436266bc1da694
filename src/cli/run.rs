//! `ringer run`: suites beside the agent's code. It turns each scenario into resources of the API and has an engine
//! make the calls. Exit code, table and files report the results.

pub(super) mod arms;
mod call;
pub(super) mod client;
mod command;
mod evidence;
mod files;
pub(super) mod plan;
mod platforms;
mod refusal;
mod rooms;
pub(super) mod schema;
mod show;
mod trial;
pub(super) mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::call::Caller;
use self::client::{Client, Trouble};
use self::command::Running;
use self::files::{Shard, files_not_run};
use self::plan::{Job, Plan, Ready};
use self::rooms::{Entry, Tokens};
use self::show::Show;
use super::demo::children::Program;
use super::out::Out;
use super::signals::Signals;
use super::{BAD_USAGE, Place, UNREACHABLE, complain, local};
use crate::config::{Config, variable};
use crate::suite::Played;
use crate::suite::mask::mask;
use crate::suite::table::Row;
use crate::suite::tax::Tax;
use crate::suite::verdict::{Judgement, Verdict};

/// Flags of `ringer run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer run tests/calls                         every *.yaml and *.yml of the folder
  ringer run calls.yaml --filter menu --repeat 5
  ringer run calls.yaml --dry-run                what would be made, without a call
  ringer run calls.yaml --lines --repeat 10      what PCMU, loss and babble cost the agent
  ringer run --metrics                           metrics that an expectation may name
  RINGER_API_KEY=... ringer run calls.yaml --server https://ringer.example
  RINGER_ROOM_KEY=... RINGER_ROOM_SECRET=... ringer run rooms.yaml

The exit code is 0 when every gate passed, 1 when one failed by the agent's fault, 2 when nothing was called (a bad file, flag or
setting), 4 when no gate failed and the agent or the server was not reached or refused the credentials, 3 when none of these and at
least one gate could not be told, 130 when it was interrupted.")]
pub struct Args {
    /// Files, folders (all *.yaml and *.yml in them) and globs
    #[arg(value_name = "PATH", required_unless_present_any = ["schema", "metrics", "lines"])]
    pub paths: Vec<String>,
    /// Only scenarios whose name has this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Only scenarios with one of these tags
    #[arg(long, value_name = "NAME")]
    pub tag: Vec<String>,
    /// Only part K of N of the scenarios, by a hash of their names
    #[arg(long, value_name = "K/N", value_parser = Shard::parse)]
    pub shard: Option<Shard>,
    /// Base seed of the first repetition; each further one takes the next
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub seed: u64,
    /// Repetitions of each scenario [default: what the file says, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Calls at once [default: as many as `ringer doctor` says that this machine hears, at most what the engine allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub concurrency: Option<u32>,
    /// Seconds for the whole run
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub timeout: Option<u64>,
    /// Address of a server, with its key in RINGER_API_KEY [default: an engine of this run's own]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Settings file of the run's own engine [default: ringer.toml when it exists]
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub config: Option<PathBuf>,
    /// Folder of the results; one that a run made is replaced
    #[arg(long, value_name = "DIR", default_value = "ringer-results")]
    pub out: PathBuf,
    /// Keep the evidence of calls that passed, too
    #[arg(long)]
    pub evidence: bool,
    /// Results of an earlier run to compare with
    #[arg(long, value_name = "DIR")]
    pub baseline: Option<PathBuf>,
    /// Call the sample agent in virtual time instead of what the files name
    #[arg(long, conflicts_with = "server")]
    pub sim: bool,
    /// Call each scenario through several lines, and tell what each costs the agent against wideband: those named of
    /// wideband, pcmu, loss5 and babble, with commas between them [default: all]
    #[arg(long, value_name = "NAMES", num_args = 0..=1, default_missing_value = arms::ALL)]
    pub lines: Option<String>,
    /// Lines whose calls count for the gates and the exit code, or all [default: wideband]
    #[arg(long, value_name = "NAMES")]
    pub gate_lines: Option<String>,
    /// Allow `spawn` together with --server
    #[arg(long)]
    pub spawn: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Check the files and print what would be made, call nobody
    #[arg(long)]
    pub dry_run: bool,
    /// Print the scenarios, call nobody
    #[arg(long)]
    pub list: bool,
    /// Print the JSON Schema of the files
    #[arg(long)]
    pub schema: bool,
    /// Print every metric that an expectation may name, with its unit and definition
    #[arg(long)]
    pub metrics: bool,
}

/// Exit code of a run of which something could not be told.
pub(super) const UNKNOWN: u8 = 3;
/// Exit code of a run that was interrupted.
pub(super) const INTERRUPTED: u8 = 130;
/// Time that calls have to end in after a run is broken off.
const HANGING_UP: Duration = Duration::from_secs(20);

/// Reason why no call, or not all calls, were made.
#[derive(Debug)]
pub enum Stop {
    /// Bad file, flag or setting: lines for a person.
    Bad(Vec<String>),
    /// The server is not reached, or refuses the key.
    Unreached(String),
}

impl Stop {
    pub(super) fn bad(why: impl Into<String>) -> Stop {
        Stop::Bad(vec![why.into()])
    }

    /// Tells the reason; returns the exit code for it.
    pub(super) fn complain(self) -> ExitCode {
        match self {
            Stop::Bad(lines) => {
                lines.iter().for_each(complain);
                ExitCode::from(BAD_USAGE)
            }
            Stop::Unreached(why) => {
                complain(why);
                ExitCode::from(UNREACHABLE)
            }
        }
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Stop {
        match trouble {
            Trouble::Refused(_) => Stop::bad(trouble.to_string()),
            Trouble::Unreached(_) | Trouble::Key(_) => Stop::Unreached(trouble.to_string()),
        }
    }
}

impl Args {
    /// Takes a value of `--lines` that is no list of lines for a path: `ringer run --lines calls.yaml`.
    fn take_path_of_lines(&mut self) {
        let is_path = |text: &str| text.contains(['.', '/', '*']) || Path::new(text).exists();
        if let Some(path) = self.lines.take_if(|text| is_path(text)) {
            self.paths.insert(0, path);
            self.lines = Some(arms::ALL.to_owned());
        }
    }
}

/// Runs the suites, and returns the exit code.
pub async fn run(mut args: Args) -> ExitCode {
    args.take_path_of_lines();
    let out = Out::standard();
    if args.schema {
        out.line(format_args!("{:#}", schema::schema()));
        return out.verdict(true);
    }
    if args.metrics {
        schema::metrics(args.json, &out);
        return out.verdict(true);
    }
    match suites(&args, &out).await {
        Ok(code) if out.is_gone() => {
            let _ = code;
            out.verdict(true)
        }
        Ok(code) => ExitCode::from(code),
        Err(stop) => stop.complain(),
    }
}

async fn suites(args: &Args, out: &Out) -> Result<u8, Stop> {
    files_not_run(&args.paths).iter().for_each(complain);
    let plan = Plan::from_args(args, arms::split_by_lines)?;
    if args.list {
        plan.tell(args, out);
        return Ok(0);
    }
    if args.dry_run {
        check_server_metrics(args, &plan).await?;
        trial::make(args, &plan).await?;
        plan.tell(args, out);
        return Ok(0);
    }
    // It may lie in the folder that is emptied.
    let baseline = args.baseline.as_deref().map(write::baseline).transpose()?;
    let earlier = baseline.as_deref().unwrap_or_default();
    let Ended { calls, interrupted, late } = make_calls(args, &plan, earlier).await?;
    let report = write::Report { args, plan: &plan, calls: &calls, baseline: baseline.as_deref(), interrupted, late };
    let verdict = write::results(&report, out).map_err(|why| Stop::bad(format!("{}: {why}", args.out.display())))?;
    Ok(match (interrupted, verdict) {
        (true, _) => INTERRUPTED,
        (false, Verdict::Failed) => 1,
        (false, Verdict::Unreachable) => UNREACHABLE,
        (false, _) if late => UNKNOWN,
        (false, Verdict::Unknown) => UNKNOWN,
        (false, Verdict::Passed) => 0,
    })
}

/// Makes the calls of a plan, into the folder of the results.
pub(super) async fn make_calls(args: &Args, plan: &Plan, earlier: &[(Played, Value)]) -> Result<Ended, Stop> {
    write::claim(&args.out)?;
    let mut stop = Signals::new().map_err(Stop::bad)?;
    let work = tempfolder()?;
    let ended = serve(args, plan, &work, earlier, &mut stop).await;
    let _ = std::fs::remove_dir_all(&work);
    ended
}

/// Plays suites and gives their calls, without a report.
///
/// # Errors
/// Why nothing was called, for a person.
pub async fn play(args: &Args) -> Result<Vec<Played>, String> {
    let describe = |stop: Stop| match stop {
        Stop::Bad(lines) => lines.join("\n"),
        Stop::Unreached(why) => why,
    };
    let plan = Plan::from_args(args, arms::split_by_lines).map_err(describe)?;
    let Ended { calls, interrupted, .. } = make_calls(args, &plan, &[]).await.map_err(describe)?;
    if interrupted { Err("interrupted".to_owned()) } else { Ok(calls) }
}

/// Checks metrics that are not built in against those of the server, where its key is given.
async fn check_server_metrics(args: &Args, plan: &Plan) -> Result<(), Stop> {
    match (&args.server, variable("RINGER_API_KEY")) {
        (Some(server), Some(key)) => plan.check_own_metrics(&Client::new(server, &key).map_err(Stop::bad)?).await,
        (Some(_), None) => {
            for (name, at) in &plan.unknown_metrics {
                complain(format!(
                    "{at}: the metric {name} is not built in; the server's were not asked for without RINGER_API_KEY"
                ));
            }
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

/// A run that is over.
pub(super) struct Ended {
    /// Calls that were made, and those that were to be.
    pub calls: Vec<Played>,
    /// True if somebody ended the run.
    pub interrupted: bool,
    /// True if it took longer than it may.
    pub late: bool,
}

/// Returns a folder for the engine's data that only this user reads.
pub(super) fn tempfolder() -> Result<PathBuf, Stop> {
    use std::os::unix::fs::DirBuilderExt;
    let path = std::env::temp_dir().join(format!("ringer-run-{}", crate::clock::new_id()));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
    made.map(|()| path.clone()).map_err(|error| Stop::bad(format!("{}: {error}", path.display())))
}

/// Settings of this process that would change a run's own engine.
pub(super) const NOT_INHERITED: [&str; 9] = [
    "RINGER_DATABASE_URL",
    "RINGER_API_KEY",
    "RINGER_SERVER_PUBLIC_URL",
    "RINGER_SERVER_LISTEN",
    "RINGER_SIP_LISTEN",
    "RINGER_CONFIG",
    "RINGER_ROOM_KEY",
    "RINGER_ROOM_SECRET",
    "RINGER_ROOM_TOKEN",
];

/// Makes the calls on an engine of the run's own, or on the server.
async fn serve(
    args: &Args,
    plan: &Plan,
    work: &std::path::Path,
    earlier: &[(Played, Value)],
    stop: &mut Signals,
) -> Result<Ended, Stop> {
    if plan.jobs.is_empty() {
        return Ok(Ended { calls: Vec::new(), interrupted: false, late: false });
    }
    if let Some(server) = &args.server {
        let key = variable("RINGER_API_KEY").unwrap_or_default();
        let client = Client::new(server, &key).map_err(Stop::bad)?;
        plan.check_own_metrics(&client).await?;
        let ready = plan.make(&client, earlier, None, false).await?;
        return calls(args, plan, &client, ready, count_at_once(args, &Config::default()), stop).await;
    }
    let config = settings(args)?;
    let mut engine = start(args, plan, &config, work)?;
    let address = tokio::select! {
        address = engine.ready("http://") => address,
        () = stop.wait() => Err("interrupted".to_owned()),
    };
    let address = match address {
        Ok(address) => address,
        Err(why) => {
            let log = std::fs::read_to_string(work.join("engine.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            engine.stop().await;
            return Err(Stop::Bad([vec![why], last.into_iter().rev().map(str::to_owned).collect()].concat()));
        }
    };
    let client = Client::new(&address, &plan.key).map_err(Stop::bad)?;
    let ended = match make(plan, &client, earlier).await {
        Ok((ready, tokens)) => {
            let ended = calls(args, plan, &client, ready, count_at_once(args, &config), stop).await;
            if let Some(tokens) = tokens {
                tokens.stop().await;
            }
            ended
        }
        Err(stop) => Err(stop),
    };
    engine.stop().await;
    ended
}

/// Makes the resources of a run at its own engine, beside the server of the tokens that it asks for.
async fn make(plan: &Plan, client: &Client, earlier: &[(Played, Value)]) -> Result<(Vec<Ready>, Option<Tokens>), Stop> {
    let suites = plan.suites.iter().map(|suite| (suite.at, &suite.connect, suite.entry.as_ref()));
    let tokens = Tokens::serve(suites, &plan.key).await.map_err(Stop::bad)?;
    let ready = plan.make(client, earlier, tokens.as_ref(), false).await?;
    Ok((ready, tokens))
}

/// Returns the number of calls that are made at once.
fn count_at_once(args: &Args, config: &Config) -> usize {
    let machine = match args.sim {
        // Calls in virtual time take all of a core.
        true => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        false => local::heard_at_once(config),
    };
    // 0 where no settings were read: the limits of a server are its own.
    let allowed = if config.limits.max_calls == 0 { usize::MAX } else { config.limits.max_calls };
    args.concurrency.map_or(machine.min(allowed), |count| count as usize)
}

/// Returns the path of the settings of the run's own engine; `None` where there are none.
fn settings_file(args: &Args) -> Option<PathBuf> {
    let file = args.config.clone().or_else(|| variable("RINGER_CONFIG").map(PathBuf::from));
    file.or_else(|| Some(PathBuf::from("ringer.toml")).filter(|path| path.is_file()))
}

fn settings(args: &Args) -> Result<Config, Stop> {
    let place = Place { config: settings_file(args), ..Place::default() };
    let config = place.settings(&[]).map_err(|_| Stop::bad("the settings cannot be used"))?;
    if config.database.url.is_some() && variable("RINGER_DATABASE_URL").is_none() {
        return Err(Stop::bad("database.url: a run keeps its data in a temporary folder of its own"));
    }
    Ok(config)
}

fn start(args: &Args, plan: &Plan, config: &Config, work: &std::path::Path) -> Result<Program, Stop> {
    let mut flags: Vec<String> = ["up", "--listen", "127.0.0.1:0", "--sip"].map(String::from).to_vec();
    flags.push(if plan.is_local { "127.0.0.1:0".to_owned() } else { "0.0.0.0:0".to_owned() });
    flags.extend(["--data".to_owned(), work.join("data").to_string_lossy().into_owned()]);
    if let Some(file) = settings_file(args) {
        let file = file.canonicalize().map_err(|error| Stop::bad(format!("{}: {error}", file.display())))?;
        flags.extend(["--config".to_owned(), file.to_string_lossy().into_owned()]);
    }
    if args.sim {
        flags.push("--sim".to_owned());
    }
    let mut env = vec![
        ("RINGER_BOOTSTRAP_KEY", plan.key.as_str()),
        ("RINGER_SECURITY_ALLOW_PRIVATE_AGENTS", "true"),
        ("RINGER_SECURITY_ALLOW_PRIVATE_TARGETS", "true"),
        ("RINGER_P2_NAMED_BY_ADDRESS", "true"),
        ("RINGER_WEBSOCKET_ANY_HOST", "true"),
        // All of its clients are this run.
        ("RINGER_SERVER_MAX_CONNECTIONS_PER_ADDRESS", "1000000"),
    ];
    // The engine's data are its own, the models are those of all commands. Calls in virtual time are spoken without
    // them.
    let models = local::models_of(config);
    if !args.sim {
        env.push(("RINGER_SPEECH_MODELS", &models));
        if !args.json {
            let out = Out::standard();
            local::neural(config).iter().for_each(|line| out.line(line));
        }
    }
    let codecs = plan.codecs.join(",");
    if !codecs.is_empty() {
        env.push(("RINGER_SIP_CODECS", &codecs));
    }
    Program::start_without(&NOT_INHERITED, "engine", &flags, &env, work).map_err(Stop::bad)
}

/// Makes the calls of one suite after the other.
async fn calls(
    args: &Args,
    plan: &Plan,
    client: &Client,
    ready: Vec<Ready>,
    at_once: usize,
    stop: &mut Signals,
) -> Result<Ended, Stop> {
    let show = Arc::new(Show::new(args.json, plan.masked.clone()));
    let halt = CancellationToken::new();
    let (out, keeps_all_evidence) = (args.out.clone(), args.evidence);
    let caller = Caller { client: client.clone(), show: show.clone(), halt: halt.clone(), out, keeps_all_evidence };
    let played = Mutex::new(Vec::new());
    let making = async {
        arms::check_voices(plan, client).await?;
        arms::prepare_noises(plan, client).await?;
        all(args, plan, &ready, &caller, at_once, &played).await
    };
    tokio::pin!(making);
    let limit = Duration::from_secs(args.timeout.unwrap_or(u64::MAX / 4));
    let (mut interrupted, mut late) = (false, false);
    let made = tokio::select! {
        made = &mut making => Some(made),
        () = stop.wait() => {
            interrupted = true;
            None
        }
        () = tokio::time::sleep(limit) => {
            late = true;
            None
        }
    };
    let made = match made {
        Some(made) => made,
        None => {
            halt.cancel();
            // Calls hang up, are evaluated and written; a second signal is not waited for.
            tokio::time::timeout(HANGING_UP, &mut making).await.unwrap_or(Ok(()))
        }
    };
    show.clear();
    made?;
    let mut calls = std::mem::take(&mut *played.lock());
    if !interrupted && !late {
        caller.look_again(&mut calls).await;
    }
    Ok(Ended { calls, interrupted, late })
}

/// Makes the calls of all suites, in the order of the files; each that is over is in `played`, whatever becomes of the
/// others.
async fn all(
    args: &Args,
    plan: &Plan,
    ready: &[Ready],
    caller: &Caller,
    at_once: usize,
    played: &Mutex<Vec<Played>>,
) -> Result<(), Stop> {
    for suite in &plan.suites {
        if caller.halt.is_cancelled() {
            break;
        }
        let jobs: Vec<(&Job, &Ready)> = plan.jobs.iter().zip(ready).filter(|(job, _)| job.suite == suite.at).collect();
        if jobs.is_empty() {
            continue;
        }
        let log = args.out.join(format!("command-{}.log", suite.at + 1));
        let mut running = match &suite.spawn {
            Some(spawn) if !args.sim => {
                match Running::start(spawn, &log).await {
                    Ok(running) => Some((running, spawn)),
                    Err(why) if played.lock().is_empty() => return Err(Stop::bad(format!("{}: {why}", suite.file))),
                    // Calls of other files are over, and their results count.
                    Err(why) => {
                        let why = Judgement::unknown("spawn", format!("the command was not started: {why}"));
                        played.lock().extend(jobs.iter().map(|(job, _)| job.not_made(why.clone())));
                        continue;
                    }
                }
            }
            _ => None,
        };
        if let Some((command, spawn)) = &mut running
            && let Some(readiness) = caller.halt.run_until_cancelled(command.ready(spawn)).await
            && let Err(why) = readiness
        {
            played.lock().extend(jobs.iter().map(|(job, _)| job.not_made(Judgement::not_started(why.clone()))));
            continue;
        }
        let ended = Arc::new(tokio::sync::Mutex::new(running.take().map(|(command, _)| command)));
        // Callers of one room would hear each other.
        let at_once = if suite.entry.as_ref().is_some_and(Entry::is_shared) { 1 } else { at_once };
        let calls = jobs.into_iter().map(|(job, ready)| caller.hold(job, ready, ended.clone()));
        stream::iter(calls).buffered(at_once).for_each(async |call| played.lock().push(call)).await;
        if let Some(command) = ended.lock().await.take() {
            command.stop().await;
            hide_values(&log, &plan.masked);
        }
    }
    Ok(())
}

/// Takes values of variables out of what a command has printed.
fn hide_values(log: &Path, masked: &[String]) {
    if masked.is_empty() {
        return;
    }
    let hidden = std::fs::read(log).map(|bytes| mask(&String::from_utf8_lossy(&bytes), masked));
    if let Err(error) = hidden.and_then(|text| std::fs::write(log, text)) {
        complain(format!("{}: values are not hidden in it: {error}", log.display()));
    }
}

/// Returns a number as the text that bodies and paths carry.
pub(super) fn text_of(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// Returns a short object of what a run came to, for `--json`.
fn summary(rows: &[Row], exit: Verdict, taxes: &[Tax], out: &Path) -> Value {
    let row = |row: &Row| {
        json!({
            "file": row.file, "scenario": row.scenario, "passed": row.passed, "failed": row.failed,
            "unknown": row.unknown, "unreachable": row.unreachable, "flaky": row.is_flaky(), "p50_agent_latency": row.p50,
            "p95_agent_latency": row.p95, "gate": if row.gates { Some(row.gate.as_str()) } else { None }, "reason": row.reason,
        })
    };
    let mut summary = json!({
        "verdict": exit.as_str(),
        "scenarios": rows.iter().map(row).collect::<Vec<_>>(),
        "out": out,
    });
    if !taxes.is_empty() {
        summary["lines"] = taxes.iter().map(Tax::json).collect();
    }
    summary
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        run: Args,
    }

    #[test]
    fn calls_at_once_are_as_many_as_the_machine_hears_and_the_engine_allows() {
        let heard = local::heard_at_once(&Config::default());
        assert!(heard >= 1);
        let mut few = Config::default();
        few.limits.max_calls = 1;
        for (flags, config, expect) in [
            (&["ringer", "x.yaml"][..], &Config::default(), heard),
            (&["ringer", "x.yaml"], &few, 1),
            (&["ringer", "x.yaml", "--concurrency", "7"], &few, 7),
        ] {
            let args = Flags::try_parse_from(flags).expect("they are flags").run;
            assert_eq!(count_at_once(&args, config), expect, "{flags:?}");
        }
    }
}
