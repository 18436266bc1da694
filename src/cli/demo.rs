//! `ringer demo`: a whole run on this machine, from an agent to checked results. It starts the engine and the sample
//! agent as programs of their own and then uses the HTTP API alone.

pub mod api;
mod call;
mod cast;
mod check;
pub mod children;
mod show;

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::future::join_all;
use indicatif::{MultiProgress, ProgressBar};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use self::api::Api;
use self::call::Call;
use self::cast::{Caller, SEED, cast, streaming};
use self::check::{Check, OwnLog};
use self::children::Program;
use super::local;
use super::out::{Out, complain};
use super::signals::Signals;
use crate::config::variable;

/// Flags of `ringer demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The engine and the sample agent are started as programs of their own on free ports of this machine, their four calls are made
through the API, and everything that they leave is kept: the folder, and recording and timeline of each call, are printed.

A call with which the engine does not keep up is made again by itself, twice at most.

The exit code is 0 when every check holds, 1 when one does not, 3 when none fails but this machine is too slow to tell, 141 when
nobody read all of what it printed.")]
pub struct Args {
    /// Keep database, recordings and timelines in a new folder below this one: 1, 2 and so on [default: a new temporary
    /// folder]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Keep them only when a check fails
    #[arg(long, conflicts_with = "keep")]
    pub discard: bool,
    /// Print the figures as JSON, nothing else
    #[arg(long)]
    pub json: bool,
}

/// All calls are over long before.
const MOST: Duration = Duration::from_secs(400);
/// Number of times that a caller calls at most.
const MAX_ROUNDS: usize = 3;
/// Exit code when this machine was too slow to tell.
const UNKNOWN: u8 = 3;
/// Time between the beginnings of two calls. The greeting of 10 s takes a small machine a second to recognize, and all
/// would ask for it in the same second.
const APART: Duration = Duration::from_millis(2500);
/// Ports for the media of either side.
const RTP_PORTS: [&str; 2] = ["36000-36199", "36200-36399"];
/// Runs that one folder keeps.
const MOST_KEPT: usize = 10_000;

/// Runs the demonstration and prints its checks.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    match demo(&args, &out).await {
        Ok(Verdict::Unknown) if !out.is_gone() => {
            complain("ringer: the engine did not keep up on this machine");
            ExitCode::from(UNKNOWN)
        }
        done => out.finish(done.map(drop)),
    }
}

/// Outcome of all checks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// None failed, but the engine did not keep up with some call.
    Unknown,
}

impl Verdict {
    fn of(checks: &[Check]) -> Verdict {
        match checks {
            [] => Verdict::Failed,
            checks if checks.iter().any(Check::is_failure) => Verdict::Failed,
            checks if checks.iter().any(|check| check.unknown) => Verdict::Unknown,
            _ => Verdict::Passed,
        }
    }
}

async fn demo(args: &Args, out: &Out) -> Result<Verdict, String> {
    local::check_installed(&local::SPEAKERS)?;
    let folder = fresh_folder(args.keep.as_deref())?;
    let shown = demonstrate(&folder, args, out).await;
    if args.discard && shown == Ok(Verdict::Passed) {
        let _ = std::fs::remove_dir_all(&folder);
    }
    match shown {
        Ok(Verdict::Failed) => Err("a check failed".to_owned()),
        Ok(verdict) => Ok(verdict),
        Err(why) => Err(format!("{why}; the files are in {}", folder.display())),
    }
}

/// Returns a folder that was not there: of the next number below `keep`, else among the temporary ones, for this user
/// alone.
fn fresh_folder(keep: Option<&Path>) -> Result<PathBuf, String> {
    let describe = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let Some(below) = keep else {
        let path = std::env::temp_dir().join(format!("ringer-demo-{}", crate::clock::new_id()));
        return DirBuilder::new().mode(0o700).create(&path).map_err(|error| describe(&path, error)).map(|()| path);
    };
    let made = std::fs::create_dir_all(below).and_then(|()| below.canonicalize());
    let below = made.map_err(|error| describe(below, error))?;
    for number in 1..=MOST_KEPT {
        let path = below.join(number.to_string());
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(describe(&path, error)),
        }
    }
    Err(format!("{} holds {MOST_KEPT} runs already", below.display()))
}

/// Makes the calls and checks them.
async fn demonstrate(folder: &Path, args: &Args, out: &Out) -> Result<Verdict, String> {
    let mut stop = Signals::new()?;
    let log = folder.join("agent-log.jsonl");
    let key = format!("demo-{}", crate::clock::new_id());
    let (mut desk, mut engine) = (start_agent(folder, &log)?, start_engine(folder, &key)?);
    let calls = tokio::select! {
        calls = timeout(MOST, hold(&mut desk, &mut engine, (&key, &log), args, out)) => {
            calls.unwrap_or_else(|_| Err(format!("the calls are not over after {MOST:?}")))
        }
        () = stop.wait() => Err("stopped".to_owned()),
        () = out.wait_until_closed() => Err("nobody reads what is printed".to_owned()),
    };
    desk.stop().await;
    engine.stop().await;
    let calls = calls?;
    let checks = check(&calls, &log)?;
    let verdict = Verdict::of(&checks);
    let good = verdict == Verdict::Passed;
    let kept = (!(args.discard && good)).then_some(folder);
    if args.json {
        out.line(format_args!("{:#}", show::as_json(&calls, &checks, kept, good)));
        return Ok(verdict);
    }
    calls.iter().for_each(|call| show::call(out, call, kept));
    show::checks(out, &checks);
    if let Some(folder) = kept {
        out.line(format_args!("recordings, timelines, logs and the database lie in {}", folder.display()));
    }
    Ok(verdict)
}

/// Returns the checks of all calls, by what the agent's log holds.
fn check(calls: &[Call], log: &Path) -> Result<Vec<Check>, String> {
    let text = std::fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let own = check::own_logs(&text);
    let nothing = OwnLog::default();
    Ok(calls.iter().flat_map(|call| check::checks(call, own.get(&call.result_id).unwrap_or(&nothing))).collect())
}

/// Waits for both programs, and makes the calls while they run.
async fn hold(
    desk: &mut Program,
    engine: &mut Program,
    (key, log): (&str, &Path),
    args: &Args,
    out: &Out,
) -> Result<Vec<Call>, String> {
    let api = Api::new(&engine.ready("http://").await?, key)?;
    let [sip, socket] = desk.ready_with(["sip:", "ws://"]).await?;
    if !args.json {
        out.line(format_args!("the sample agent answers on {sip} and {socket}"));
        if wants_no_models() {
            out.line("no neural models are used, as RINGER_DEMO_MODELS says");
        } else {
            local::neural(&local::own_settings()).iter().for_each(|line| out.line(line));
        }
    }
    tokio::select! {
        calls = call_all(&api, [&sip, &socket], log, args.json, out) => calls,
        () = engine.wait_for_end() => Err(engine.end_message()),
        () = desk.wait_for_end() => Err(desk.end_message()),
    }
}

/// True if `RINGER_DEMO_MODELS` is `none`: the demonstration hears and speaks by the installed programs alone.
fn wants_no_models() -> bool {
    variable("RINGER_DEMO_MODELS").as_deref() == Some("none")
}

/// Returns the folders of models for the programs of the demonstration.
fn models(folder: &Path) -> String {
    if wants_no_models() { folder.join("no-models").to_string_lossy().into_owned() } else { local::own_models() }
}

fn start_agent(folder: &Path, log: &Path) -> Result<Program, String> {
    let args = [
        "agent",
        "--listen",
        "127.0.0.1:0",
        "--websocket",
        "127.0.0.1:0",
        "--rtp-ports",
        RTP_PORTS[0],
        "--log",
        &log.to_string_lossy(),
    ];
    let models = models(folder);
    Program::start("agent", &args.map(String::from), &[("RINGER_SPEECH_MODELS", &models)], folder)
}

fn start_engine(folder: &Path, key: &str) -> Result<Program, String> {
    let data = folder.join("data");
    let models = models(folder);
    let args = [
        "up",
        "--listen",
        "127.0.0.1:0",
        "--sip",
        "127.0.0.1:0",
        "--rtp-ports",
        RTP_PORTS[1],
        "--data",
        &data.to_string_lossy(),
    ];
    Program::start(
        "engine",
        &args.map(String::from),
        &[("RINGER_BOOTSTRAP_KEY", key), ("RINGER_SPEECH_MODELS", &models)],
        folder,
    )
}

/// Has everybody call, a little apart, then one after the other those with whose calls the engine did not keep up.
/// Returns the last call of each.
async fn call_all(api: &Api, agents: [&str; 2], log: &Path, quiet: bool, out: &Out) -> Result<Vec<Call>, String> {
    let mut calls = place(api, agents, &|_| true, quiet, out).await?;
    for _ in 1..MAX_ROUNDS {
        let checks = check(&calls, log)?;
        for call in &mut calls {
            if !checks.iter().any(|check| check.call == call.name && check.unknown) {
                continue;
            }
            if !quiet {
                out.line(format_args!("the engine did not keep up: {} calls once more", call.name));
            }
            let name = call.name;
            if let Some(again) = place(api, agents, &|caller| caller.name == name, quiet, out).await?.pop() {
                *call = again;
            }
        }
    }
    Ok(calls)
}

/// Makes agents, simulations and the wanted callers, runs them, and follows their calls to the end.
async fn place(
    api: &Api,
    [sip, socket]: [&str; 2],
    is_wanted: &dyn Fn(&Caller) -> bool,
    quiet: bool,
    out: &Out,
) -> Result<Vec<Call>, String> {
    let telephone = json!({ "name": "Northside Clinic", "connection_type": "SIP", "sip_uri": sip });
    let stream = json!({ "name": "Northside Clinic, by WebSocket", "websocket_url": socket });
    let telephoning = self::cast().into_iter().map(|caller| (telephone.clone(), caller));
    let mut all: Vec<(Value, Caller)> = telephoning.chain([(stream, streaming())]).collect();
    all.retain(|(_, caller)| is_wanted(caller));
    let bars = MultiProgress::new();
    let mut calls = Vec::new();
    for (index, (agent, caller)) in all.into_iter().enumerate() {
        let bar = show::bar(&bars, caller.name, quiet);
        let bars = bars.clone();
        calls.push(async move {
            sleep(APART * index as u32).await;
            let result = queue(api, agent, &caller).await?;
            let tell = |line: String| show::tell(out, &bars, &line, quiet);
            let call = Call::follow(api, (caller.name, caller.shows), &text_of(&result), &bar, tell).await;
            ProgressBar::finish_and_clear(&bar);
            call
        });
    }
    join_all(calls).await.into_iter().collect()
}

/// Makes an agent, its simulation and the caller, and runs it. Returns the id of the result.
async fn queue(api: &Api, agent: Value, caller: &Caller) -> Result<Value, String> {
    let agent = api.post("/v1/add-agent", agent).await?["agent_id"].clone();
    let body = json!({ "agent_id": text_of(&agent), "name": "Demonstration" });
    let simulation = api.post("/v1/create-simulation", body).await?["simulation_id"].clone();
    let body = json!({ "digital_human": caller.digital_human, "simulation_ids": [simulation] });
    api.post("/v1/create-digital-human", body).await?;
    let body = json!({ "simulation_id": text_of(&simulation), "seed": SEED });
    let queued = api.post("/v1/queue-simulation-run", body).await?;
    let result = queued["simulation_result_ids"].as_array().and_then(|results| results.first()).cloned();
    result.ok_or_else(|| format!("no result for the call of {}", caller.name))
}

/// Returns an id as the text that bodies and paths carry.
fn text_of(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::fresh_folder;

    #[test]
    fn each_run_has_a_folder_of_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keep = folder.path().join("kept").join("demo");
        for number in ["1", "2", "3"] {
            let made = fresh_folder(Some(&keep)).expect("the folder is writable");
            assert!(made.is_absolute() && made.ends_with(format!("demo/{number}")) && made.is_dir(), "{made:?}");
        }
        let [one, other] = [fresh_folder(None), fresh_folder(None)].map(|made| made.expect("a temporary folder"));
        assert_ne!(one, other);
        for made in [one, other] {
            assert_eq!(std::fs::remove_dir(&made).map_err(|error| error.to_string()), Ok(()));
        }
        std::fs::write(folder.path().join("file"), "").expect("the folder is writable");
        assert!(fresh_folder(Some(&folder.path().join("file"))).is_err());
    }
}
