//! `ringer demo`: a whole run on this machine, from an agent to checked results. It starts the engine and the sample agent as
//! programs of their own and then uses the HTTP API alone.

mod api;
mod call;
mod cast;
mod check;
mod children;
mod show;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::future::join_all;
use indicatif::{MultiProgress, ProgressBar};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use self::api::Api;
use self::call::Call;
use self::cast::{Caller, SEED, cast};
use self::check::{Check, OwnLog};
use self::children::Program;
use super::failed;

/// Flags of `ringer demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The exit code is 0 when every check holds, else 1.")]
pub struct Args {
    /// Keep the database, recordings and timelines in this folder [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print the figures as JSON, nothing else
    #[arg(long)]
    pub json: bool,
}

/// All calls are over long before.
const MOST: Duration = Duration::from_secs(180);
/// Ports for the media of either side.
const RTP_PORTS: [&str; 2] = ["36000-36199", "36200-36399"];

/// Runs the demonstration.
pub async fn run(args: Args) -> ExitCode {
    let (folder, temporary) = match &args.keep {
        Some(folder) => (folder.clone(), false),
        None => (std::env::temp_dir().join(format!("ringer-demo-{}", crate::clock::new_id())), true),
    };
    let shown = match folder_of(&folder) {
        Ok(folder) => until_told(demonstrate(&folder, &args)).await,
        Err(why) => Err(why),
    };
    if temporary {
        let _ = std::fs::remove_dir_all(&folder);
    }
    match shown {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => failed("a check failed"),
        Err(why) => failed(why),
    }
}

fn folder_of(path: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Ends early when the process is told to; what was started ends with the future.
async fn until_told<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    tokio::select! {
        done = timeout(MOST, work) => done.unwrap_or_else(|_| Err(format!("the calls are not over after {MOST:?}"))),
        _ = terminated.recv() => Err("stopped".into()),
        _ = tokio::signal::ctrl_c() => Err("stopped".into()),
    }
}

/// True when every check holds.
async fn demonstrate(folder: &Path, args: &Args) -> Result<bool, String> {
    let log = folder.join("agent-log.jsonl");
    let mut desk = start_agent(folder, &log)?;
    let (mut engine, api) = start_engine(folder).await?;
    let address = desk.ready("sip:").await?;
    if !args.json {
        println!("the sample agent answers on {address}");
    }
    let calls = tokio::select! {
        calls = place(&api, &address, args.json) => calls?,
        () = engine.ended() => return Err(format!("the engine ended; see {}", folder.join("engine.log").display())),
        () = desk.ended() => return Err(format!("the agent ended; see {}", folder.join("agent.log").display())),
    };
    desk.stop().await;
    engine.stop().await;
    let text = std::fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let own = check::own_logs(&text);
    let nothing = OwnLog::default();
    let checks: Vec<Check> =
        calls.iter().flat_map(|call| check::checks(call, own.get(&call.result_id).unwrap_or(&nothing))).collect();
    let good = !checks.is_empty() && checks.iter().all(|check| check.ok);
    let kept = args.keep.is_some().then_some(folder);
    if args.json {
        println!("{:#}", show::as_json(&calls, &checks, kept, good));
    } else {
        calls.iter().for_each(|call| show::call(call, kept));
        show::checks(&checks);
    }
    Ok(good)
}

fn start_agent(folder: &Path, log: &Path) -> Result<Program, String> {
    // A log of an earlier run in a kept folder is not this run's.
    let _ = std::fs::remove_file(log);
    let args = ["agent", "--listen", "127.0.0.1:0", "--rtp-ports", RTP_PORTS[0], "--log", &log.to_string_lossy()];
    Program::start("agent", &args.map(String::from), &[], folder)
}

async fn start_engine(folder: &Path) -> Result<(Program, Api), String> {
    let key = format!("demo-{}", crate::clock::new_id());
    let data = folder.join("data");
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
    let mut engine = Program::start("engine", &args.map(String::from), &[("RINGER_BOOTSTRAP_KEY", &key)], folder)?;
    let base = engine.ready("http://").await?;
    Ok((engine, Api::new(&base, &key)?))
}

/// Makes agent, simulation and callers, runs them, and follows their calls to the end.
async fn place(api: &Api, address: &str, quiet: bool) -> Result<Vec<Call>, String> {
    let body = json!({ "name": "Northside Clinic", "type": "INBOUND", "connection_type": "SIP", "sip_uri": address });
    let agent = api.post("/v1/add-agent", body).await?["agent_id"].clone();
    let body = json!({ "agent_id": text_of(&agent), "name": "Demonstration" });
    let simulation = api.post("/v1/create-simulation", body).await?["simulation_id"].clone();
    let cast = cast();
    let mut humans = Vec::new();
    for caller in &cast {
        let body = json!({ "digital_human": caller.digital_human, "simulation_ids": [simulation] });
        humans.push(api.post("/v1/create-digital-human", body).await?["digital_human"]["id"].clone());
    }
    let body = json!({ "simulation_id": text_of(&simulation), "seed": SEED });
    let queued = api.post("/v1/queue-simulation-run", body).await?;
    let results = queued["simulation_result_ids"].as_array().cloned().unwrap_or_default();
    if results.len() != cast.len() {
        return Err(format!("{} results instead of {}", results.len(), cast.len()));
    }
    let bars = MultiProgress::new();
    let follow = |(caller, result): (&Caller, &Value)| {
        let (who, result, api) = ((caller.name, caller.shows), text_of(result), api.clone());
        let bar = show::bar(&bars, caller.name, quiet);
        let bars = bars.clone();
        async move {
            let tell = |line: String| show::tell(&bars, &line, quiet);
            let call = Call::follow(&api, who, &result, &bar, tell).await;
            ProgressBar::finish_and_clear(&bar);
            call
        }
    };
    join_all(cast.iter().zip(&results).map(follow)).await.into_iter().collect()
}

/// An id as the text that bodies and paths carry.
fn text_of(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
