//! `ringer mcp`: the tools of a coding assistant (Model Context Protocol) over standard input and output. The calls are
//! made by an engine of its own, or by a server. The same tools are `/mcp` of the API.

mod asking;
mod calls;
pub(super) mod http;
mod levers;
mod reading;
mod resources;
mod server;
mod session;
mod suites;
mod tools;

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::transport::stdio;

use self::server::{Access, Assistant};
use super::demo::children::Program;
use super::run::client::Client;
use super::run::{NOT_INHERITED, tempfolder};
use super::signals::Signals;
use super::{BAD_USAGE, Place, UNREACHABLE, complain, local};
use crate::clock::new_id;
use crate::config::{Config, variable};

/// Flags of `ringer mcp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer mcp                                     tools with an engine of its own
  ringer mcp --sim                               every call goes to the sample agent, in virtual time
  RINGER_API_KEY=... ringer mcp --server https://ringer.example

An assistant starts this program itself. In its settings:
  { \"mcpServers\": { \"ringer\": { \"command\": \"ringer\", \"args\": [\"mcp\"] } } }

Suites are read as `ringer run` reads them, without spawn, !include, variables, rooms and codecs.")]
pub struct Args {
    /// Address of a server, with its key in RINGER_API_KEY [default: an engine of its own]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Settings file of the own engine [default: ringer.toml when it exists]
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub config: Option<PathBuf>,
    /// Folder in which the own engine keeps its data [default: a temporary one]
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    pub data: Option<PathBuf>,
    /// Call the sample agent in virtual time instead of what is named
    #[arg(long, conflicts_with = "server")]
    pub sim: bool,
    /// Allow calls to telephone numbers; the person is asked before each where the assistant can ask
    #[arg(long)]
    pub allow_trunks: bool,
}

/// Serves an assistant until it closes standard input, and returns the exit code.
pub async fn run(args: Args) -> ExitCode {
    let mut stop = match Signals::new() {
        Ok(stop) => stop,
        Err(why) => return refuse(why, BAD_USAGE),
    };
    if let Some(server) = &args.server {
        let Some(key) = variable("RINGER_API_KEY") else {
            return refuse("RINGER_API_KEY is not set: it is the key of the server".to_owned(), BAD_USAGE);
        };
        return match Client::new(server, &key) {
            Ok(client) => serve(client, args.allow_trunks, &mut stop).await,
            Err(why) => refuse(why, BAD_USAGE),
        };
    }
    let config = match (Place { config: settings_file(&args), ..Place::default() }).settings(&[]) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let Ok(work) = tempfolder() else { return refuse("no temporary folder can be made".to_owned(), BAD_USAGE) };
    let code = with_engine(&args, &config, &work, &mut stop).await;
    let _ = std::fs::remove_dir_all(&work);
    code
}

fn refuse(why: String, code: u8) -> ExitCode {
    complain(why);
    ExitCode::from(code)
}

/// Returns the key of the engine: a folder that is kept has one that was made with it.
fn key_of(data: Option<&Path>) -> Result<String, String> {
    let made = format!("mcp-{}", new_id());
    let Some(folder) = data else { return Ok(made) };
    let path = folder.join("mcp.key");
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    match std::fs::read_to_string(&path) {
        Ok(kept) => return Ok(kept.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(told(error)),
    }
    std::fs::create_dir_all(folder).map_err(told)?;
    let file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path);
    std::io::Write::write_all(&mut file.map_err(told)?, made.as_bytes()).map_err(told)?;
    Ok(made)
}

/// Serves with an engine of its own, which ends with it.
async fn with_engine(args: &Args, config: &Config, work: &Path, stop: &mut Signals) -> ExitCode {
    let key = match key_of(args.data.as_deref()) {
        Ok(key) => key,
        Err(why) => return refuse(why, BAD_USAGE),
    };
    let mut engine = match start(args, config, work, &key) {
        Ok(engine) => engine,
        Err(why) => return refuse(why, BAD_USAGE),
    };
    let address = tokio::select! {
        address = engine.ready("http://") => address,
        () = stop.wait() => Err("interrupted".to_owned()),
    };
    let code = match address.and_then(|address| Client::new(&address, &key)) {
        Ok(client) => serve(client, args.allow_trunks, stop).await,
        Err(why) => {
            let log = std::fs::read_to_string(work.join("engine.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            last.into_iter().rev().for_each(complain);
            refuse(why, BAD_USAGE)
        }
    };
    engine.stop().await;
    code
}

async fn serve(client: Client, allow_trunks: bool, stop: &mut Signals) -> ExitCode {
    let assistant = Assistant::new(Access::One(client), allow_trunks);
    let running = tokio::select! {
        running = assistant.serve(stdio()) => running,
        () = stop.wait() => return ExitCode::SUCCESS,
    };
    match running {
        Ok(running) => {
            let ending = running.cancellation_token();
            tokio::select! {
                _ = running.waiting() => {}
                () = stop.wait() => ending.cancel(),
            }
            ExitCode::SUCCESS
        }
        // An assistant that leaves at once is no fault.
        Err(error) => {
            tracing::debug!(%error, "no assistant");
            refuse("standard input ended before an assistant said anything".to_owned(), UNREACHABLE)
        }
    }
}

/// Returns the path of the settings of the own engine; `None` where there are none.
fn settings_file(args: &Args) -> Option<PathBuf> {
    let file = args.config.clone().or_else(|| variable("RINGER_CONFIG").map(PathBuf::from));
    file.or_else(|| Some(PathBuf::from("ringer.toml")).filter(|path| path.is_file()))
}

fn start(args: &Args, config: &Config, work: &Path, key: &str) -> Result<Program, String> {
    let text = |path: &Path| {
        let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, String>(path.to_string_lossy().into_owned())
    };
    let mut flags: Vec<String> =
        ["up", "--listen", "127.0.0.1:0", "--no-page-link", "--sip"].map(String::from).to_vec();
    // An agent on another machine is answered by its address.
    flags.push(if args.sim { "127.0.0.1:0".to_owned() } else { "0.0.0.0:0".to_owned() });
    flags.extend(["--data".to_owned(), text(args.data.as_deref().unwrap_or(&work.join("data")))?]);
    if let Some(file) = settings_file(args) {
        flags.extend(["--config".to_owned(), text(&file)?]);
    }
    if args.sim {
        flags.push("--sim".to_owned());
    }
    let most = config.limits.max_calls.min(local::heard_at_once(config)).to_string();
    let models = local::models_of(config);
    let mut env = vec![
        ("RINGER_BOOTSTRAP_KEY", key),
        ("RINGER_SECURITY_ALLOW_PRIVATE_AGENTS", "true"),
        ("RINGER_SECURITY_ALLOW_PRIVATE_TARGETS", "true"),
        ("RINGER_P2_NAMED_BY_ADDRESS", "true"),
        ("RINGER_WEBSOCKET_ANY_HOST", "true"),
    ];
    if !args.sim {
        env.push(("RINGER_SPEECH_MODELS", &models));
        // All calls of a suite are queued at once.
        env.push(("RINGER_LIMITS_MAX_CALLS", &most));
    }
    Program::start_without(&NOT_INHERITED, "engine", &flags, &env, work)
}
