//! `ringer selftest`: faults that the sample agent has on purpose, against what the checks say of them, in virtual or
//! in real time.

mod clean;
mod counted;
mod plans;

use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;

use self::counted::Counted;
use self::plans::{Channel, DEAD, Plan, Started, channels, file, finding, greeting_plan, sound, sparing};
use super::out::Out;
use super::{fail, run as suites};
use crate::agent::Fault;
use crate::config::variable;
use crate::judge::stats::wilson;
use crate::suite::Played;
use crate::suite::verdict::Verdict;
use clap::Parser;

/// Flags of `ringer selftest`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A call that could not be told (this side was charged, or a part of it cannot tell) is counted apart and is no wrong verdict.
A call whose meaning only a language model tells, without one, is counted apart from these too, and decides nothing.
Recall is found / (found + missed), precision found / (found + false alarms), each with Wilson's interval of 95 %.

The exit code is 0 when recall and precision are both at least 95 %, 1 when one is not, 3 when both are and yet a fault was told in
none of its calls, or more than one call in ten could not be told.

--clean N makes N calls in virtual time of agents without a fault, each drawn from its number: agent, suite, noise and network. The
exit code is 0 when the interval of the share of wrong charges lies below 0.5 %, 1 when the share does not, 3 when N is too small.")]
pub struct Args {
    /// Calls for each fault, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "clean", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub seeds: u32,
    /// Play only these faults
    #[arg(long, value_name = "KIND", conflicts_with = "clean")]
    pub fault: Vec<Fault>,
    /// Make real calls, with the installed voices and the recognizer, instead of calls in virtual time
    #[arg(long, conflicts_with = "clean")]
    pub real: bool,
    /// Make so many calls of agents without a fault instead, and count how many are charged wrongly
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clean: Option<u32>,
    /// Number of the first of these calls: 500 go on behind the calls 0 to 499
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "clean")]
    pub from: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the calls and counts what was found.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    match selftest(&args, &out).await {
        Ok(Verdict::Unknown) if !out.is_gone() => ExitCode::from(UNTOLD),
        Ok(verdict) => out.verdict(verdict == Verdict::Passed),
        Err(why) => fail(why),
    }
}

/// Least recall, and least precision, of checks that find what was planted.
const BAR: f64 = 0.95;
/// Largest share of calls that may be untold.
const UNTOLD_MAX: f64 = 0.1;
/// Exit code where too little was told.
const UNTOLD: u8 = 3;

async fn selftest(args: &Args, out: &Out) -> Result<Verdict, String> {
    let faults: Vec<Fault> = if args.fault.is_empty() { Fault::ALL.to_vec() } else { args.fault.clone() };
    let folder = std::env::temp_dir().join(format!("ringer-selftest-{}", crate::clock::new_id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if let Some(count) = args.clean {
        let progress = (!args.json).then_some(out);
        let made = clean::run(args.from.into(), count.into(), &folder, progress).await;
        let _ = std::fs::remove_dir_all(&folder);
        let made = made?;
        match args.json {
            true => out.line(made.figures()),
            false => made.lines().iter().for_each(|line| out.line(line)),
        }
        return Ok(made.verdict());
    }
    if let Some(fault) = args.fault.iter().find(|fault| channels(**fault, args.real).is_empty()) {
        let (time, advice) = if args.real { ("virtual time", "leave out") } else { ("real calls", "add") };
        return Err(format!("{} is planted in {time} alone: {advice} --real", fault.as_str()));
    }
    let mut agents = agents(&faults, args.real);
    if args.real && args.fault.is_empty() {
        agents.extend(dead_agents());
    }
    let played = play(args, &agents, &folder).await;
    let _ = std::fs::remove_dir_all(&folder);
    let counted = Counted::of(&agents, &played?);
    match args.json {
        true => out.line(counted.figures()),
        false => counted.lines().iter().for_each(|line| out.line(line)),
    }
    Ok(counted.verdict())
}

/// An agent with the suites that it is called with.
struct Agent {
    name: &'static str,
    channel: Channel,
    /// True if it has a fault, which the first of the suites should find.
    is_faulty: bool,
    plans: Vec<Plan>,
}

/// Returns the agents: each fault with the suite that should find it and, over SIP, the one that should not, and those
/// without a fault.
fn agents(faults: &[Fault], is_real: bool) -> Vec<Agent> {
    let planted =
        || faults.iter().flat_map(|fault| channels(*fault, is_real).iter().map(move |channel| (*fault, *channel)));
    let faulty = |(fault, channel): (Fault, Channel)| {
        let spared = (channel == Channel::Sip).then(|| sparing(fault));
        let plans = [finding(fault, channel)].into_iter().chain(spared).collect();
        Agent { name: fault.as_str(), channel, is_faulty: true, plans }
    };
    let mut agents: Vec<Agent> = planted().map(faulty).collect();
    for (fault, channel) in planted() {
        let (name, plan) = (sound(fault), finding(fault, channel));
        match agents.iter_mut().find(|other| other.name == name && other.channel == channel) {
            Some(agent) if agent.plans.contains(&plan) => {}
            Some(agent) => agent.plans.push(plan),
            None => agents.push(Agent { name, channel, is_faulty: false, plans: vec![plan] }),
        }
    }
    agents
}

/// Returns the agents that do not run, one for each channel.
fn dead_agents() -> impl Iterator<Item = Agent> {
    let dead = |channel: &Channel| Agent {
        name: DEAD,
        channel: *channel,
        is_faulty: true,
        plans: vec![greeting_plan(*channel)],
    };
    Channel::all(true).iter().map(dead)
}

/// Returns a share from 0 to 1; all of nothing is 1.
fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

/// Returns Wilson's interval of 95 %, in words.
fn interval(part: u64, all: u64) -> String {
    let (low, high) = wilson(part, all);
    format!("{:.1} to {:.1} %", low * 100.0, high * 100.0)
}

/// Writes a file for each agent, and plays them.
async fn play(args: &Args, agents: &[Agent], folder: &Path) -> Result<Vec<Played>, String> {
    for (at, Agent { name, channel, plans, .. }) in agents.iter().enumerate() {
        // In virtual time the port is only a name.
        let (command, port) = if args.real { command(name, *channel)? } else { (Vec::new(), 5080) };
        let started = Started { command, models: variable("RINGER_SPEECH_MODELS") };
        let started = (args.real && *name != DEAD).then_some(&started);
        let path = folder.join(format!("{at:02}-{name}.yaml"));
        let text = file(name, *channel, plans, port, started);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    play_files(folder, args.seeds, args.real).await
}

/// Plays the suites of a folder.
async fn play_files(folder: &Path, seeds: u32, is_real: bool) -> Result<Vec<Played>, String> {
    let (paths, seeds) = (folder.to_string_lossy().into_owned(), seeds.to_string());
    let results = folder.join("results").to_string_lossy().into_owned();
    let mut flags = vec!["run", &paths, "--repeat", &seeds, "--out", &results, "--json"];
    if !is_real {
        flags.push("--sim");
    }
    let flags = RunFlags::try_parse_from(flags).map_err(|error| error.to_string())?;
    suites::play(&flags.run).await
}

/// Returns the command that starts an agent of this program on a free port, and the port.
fn command(agent: &str, channel: Channel) -> Result<(Vec<String>, u16), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = free.map_err(|error| format!("no port is free: {error}"))?.port();
    let mut command = vec![program.to_string_lossy().into_owned(), "agent".into(), "--listen".into()];
    match channel {
        Channel::Sip => command.push(format!("udp:127.0.0.1:{port},tcp:127.0.0.1:{port}")),
        Channel::WebSocket => {
            command.extend(["127.0.0.1:0".to_owned(), "--websocket".to_owned(), format!("127.0.0.1:{port}")]);
        }
        Channel::Pipeline => {
            command.extend(["127.0.0.1:0".to_owned(), "--pipeline".to_owned(), format!("127.0.0.1:{port}")]);
        }
        Channel::Chat => command.extend(["127.0.0.1:0".to_owned(), "--chat".to_owned(), format!("127.0.0.1:{port}")]),
    }
    if Fault::of_word(agent).is_some() {
        command.extend(["--fault".into(), agent.into()]);
    }
    Ok((command, port))
}

/// The flags of a run, as they are read from a command line.
#[derive(Debug, Parser)]
struct RunFlags {
    #[command(flatten)]
    run: suites::Args,
}
