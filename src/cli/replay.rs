//! `ringer replay`: calls of an earlier run, played again by the same callers with one thing changed. It tells where
//! the two part, and what the change is worth over all pairs.

mod kept;
mod server;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;

use self::kept::{Original, read_folder};
use self::write::Report;
use super::UNREACHABLE;
use super::out::Out;
use super::run::arms::{Arm, Difference};
use super::run::{self, Ended, INTERRUPTED, Stop, UNKNOWN, make_calls};
use crate::suite::Played;
use crate::suite::change::{self, Change};
use crate::suite::mask::mask;
use crate::suite::pairs::pair;
use crate::suite::replayed::Replayed;
use crate::suite::verdict::Verdict;

/// Flags of `ringer replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer replay ringer-results --change latency=+400ms --repeat 20
  ringer replay ringer-results --filter \"books a visit\" --change noise=cafe:15dB --change barge_in_at=1200ms
  ringer replay ringer-results                   nothing changed: how much the agent varies by itself
  RINGER_API_KEY=... ringer replay 4711 --server https://ringer.example --change voice=kokoro:am_adam

A change is one of latency=+400ms, noise=NAME[:DECIBELS], barge_in_at=1200ms, voice=ID, network=LEVEL and speed=LEVEL.
Several are several arms: each is held against the same original, never together.

The exit code is 0 when pairs were compared, 1 when an unchanged replay in virtual time was not byte for byte the same,
2 when nothing was called (bad results, flags or changes), 4 when the agent or the server was not reached, 3 when no
pair could be told for another reason or the time was over, 130 when it was interrupted.")]
pub struct Args {
    /// Folder that `ringer run` has left, or its results.jsonl; with --server, the id of a result too
    #[arg(value_name = "RESULT")]
    pub result: String,
    /// One thing that is changed; several are several arms
    #[arg(long, value_name = "THING=VALUE", value_parser = change::parse)]
    pub change: Vec<Change>,
    /// Pairs of each scenario [default: as many as the results have]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Base seed of the first pair; each further one takes the next [default: that of the results]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub seed: Option<u64>,
    /// Only scenarios whose name has this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Call the sample agent in virtual time [default: as the results were made]
    #[arg(long, conflicts_with = "server")]
    pub sim: bool,
    /// Address of a server, with its key in RINGER_API_KEY [default: an engine of this command's own]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Allow `spawn` together with --server
    #[arg(long)]
    pub spawn: bool,
    /// Settings file of the command's own engine [default: ringer.toml when it exists]
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub config: Option<PathBuf>,
    /// Calls at once [default: as for `ringer run`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub concurrency: Option<u32>,
    /// Seconds for all calls
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub timeout: Option<u64>,
    /// Folder of the report; one that a run or a replay made is replaced
    #[arg(long, value_name = "DIR", default_value = "ringer-replay")]
    pub out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Name of the arm in which nothing is changed.
const ORIGINAL: &str = "original";
/// Name of the second arm of a replay without a change.
const AGAIN: &str = "again";
/// Difference of times in real time that counts as none, in milliseconds: agents, recognizers and networks vary by it.
const REAL_TOLERANCE_MS: f64 = 200.0;

/// Plays calls again, and returns the exit code.
pub async fn run(args: Args) -> ExitCode {
    match replay(&args, &Out::standard()).await {
        Ok(code) => ExitCode::from(code),
        Err(stop) => stop.complain(),
    }
}

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    run: run::Args,
}

impl Args {
    /// Returns the flags of a run that plays the files at `paths` from a base seed on.
    fn run_args(&self, paths: &[String], is_virtual: bool, seed: u64, repeat: u32) -> Result<run::Args, Stop> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let mut flags = vec!["ringer".to_owned(), format!("--seed={seed}"), format!("--repeat={repeat}")];
        flags.push(format!("--out={}", text(&self.out)));
        flags.extend(self.server.iter().map(|server| format!("--server={server}")));
        flags.extend(self.config.iter().map(|file| format!("--config={}", text(file))));
        flags.extend(self.concurrency.iter().map(|count| format!("--concurrency={count}")));
        flags.extend(self.timeout.iter().map(|seconds| format!("--timeout={seconds}")));
        let switches = [(is_virtual, "--sim"), (self.spawn, "--spawn"), (self.json, "--json")];
        flags.extend(switches.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        flags.push("--".to_owned());
        flags.extend(paths.iter().cloned());
        Flags::try_parse_from(flags).map(|flags| flags.run).map_err(|error| Stop::bad(error.to_string()))
    }

    /// Returns the arms: the original, and one for each change.
    fn arms(&self) -> Result<Vec<Arm>, Stop> {
        let arm = |name: String, difference| Arm { name, gates: true, difference };
        let mut arms = vec![arm(ORIGINAL.to_owned(), Difference::None)];
        for change in &self.change {
            let name = change.to_string();
            if arms.iter().any(|arm| arm.name == name) {
                return Err(Stop::bad(format!("--change {name} is given twice")));
            }
            arms.push(arm(name, Difference::Change(change.clone())));
        }
        if self.change.is_empty() {
            arms.push(arm(AGAIN.to_owned(), Difference::None));
        }
        Ok(arms)
    }
}

async fn replay(args: &Args, out: &Out) -> Result<u8, Stop> {
    let arms = args.arms()?;
    let mut original = read_original(args).await?;
    let is_speed = |change: &&Change| matches!(change, Change::Speed(_));
    if let Some(speed) = args.change.iter().find(is_speed).filter(|_| original.is_virtual) {
        let why = "calls in virtual time are spoken at one speed: nothing would change";
        return Err(Stop::bad(format!("--change {speed}: {why}")));
    }
    original.plan.split(&arms)?;
    if args.change.is_empty() {
        // A call that the results have is one side of its pair.
        let recorded = &original.recorded;
        let is_kept = |scenario: &str, seed| recorded.iter().any(|call| call.scenario == scenario && call.seed == seed);
        original.plan.jobs.retain(|job| job.arm != ORIGINAL || !is_kept(&job.scenario.name, job.seed));
    }
    let problems = original.plan.repeated_dispatches();
    if !problems.is_empty() {
        return Err(Stop::Bad(problems));
    }
    let Ended { mut calls, interrupted, late } = make_calls(&original.run, &original.plan, &[]).await?;
    if original.folder.is_some() {
        // Those of the folder are masked, too.
        calls.iter_mut().for_each(|call| mask_events(&mut call.timeline, &original.plan.masked));
    }
    let report = report(args, &original, &calls);
    report.write(args, &original, &calls, out).map_err(|why| Stop::bad(format!("{}: {why}", args.out.display())))?;
    Ok(match interrupted {
        true => INTERRUPTED,
        false if late => UNKNOWN,
        false => report.exit(&calls),
    })
}

/// Masks secret values in events, as in the files of a run.
fn mask_events(timeline: &mut [Value], masked: &[String]) {
    for event in timeline {
        let plain = event.to_string();
        let hidden = mask(&plain, masked);
        if hidden != plain {
            *event = serde_json::from_str(&hidden).unwrap_or(Value::Null);
        }
    }
}

/// Compares the arms of a replay with each other and with the results.
fn report(args: &Args, original: &Original, calls: &[Played]) -> Report {
    let of = |name: &str| -> Vec<&Played> { calls.iter().filter(|call| call.arm == name).collect() };
    let recorded: Vec<&Played> = original.recorded.iter().collect();
    let tolerance_ms = if original.is_virtual { 0.0 } else { REAL_TOLERANCE_MS };
    let compare = |name: &str, before: &[&Played], after: &[&Played]| {
        Replayed::of(name, &pair(before, after), tolerance_ms, original.run.seed)
    };
    let played = of(ORIGINAL);
    let again = of(if args.change.is_empty() { AGAIN } else { ORIGINAL });
    let repeated = pair(&recorded, &again);
    let identical = original.is_virtual.then(|| original.count_identical(&repeated, &args.out));
    let (base, arms) = match args.change.is_empty() {
        true => {
            let before: Vec<&Played> = recorded.iter().chain(&played).copied().collect();
            (Some(compare("nothing changed", &before, &again)), Vec::new())
        }
        false => {
            let base = (!repeated.is_empty()).then(|| {
                Replayed::of("the original as it was, and played again", &repeated, tolerance_ms, original.run.seed)
            });
            let arm = |change: &Change| compare(&change.to_string(), &played, &of(&change.to_string()));
            (base, args.change.iter().map(arm).collect())
        }
    };
    Report { base, arms, identical, notes: original.notes.clone(), is_unchanged: args.change.is_empty() }
}

impl Report {
    /// Returns the exit code of a replay that came to its end.
    fn exit(&self, calls: &[Played]) -> u8 {
        let compared =
            if self.is_unchanged { self.base.iter().collect() } else { self.arms.iter().collect::<Vec<_>>() };
        let is_told = compared.iter().any(|arm| arm.outcome.verdicts.count_told() > 0);
        let has_unreachable = calls.iter().any(|call| call.judgement.verdict == Verdict::Unreachable);
        match (is_told, self.identical) {
            (false, _) if has_unreachable => UNREACHABLE,
            (false, _) => UNKNOWN,
            (true, Some((same, all))) if self.is_unchanged && same < all => 1,
            // Nothing was there to compare.
            (true, Some((_, 0))) if self.is_unchanged => UNKNOWN,
            (true, _) => 0,
        }
    }
}

/// Reads what the flags name.
///
/// # Errors
/// It is no result, has no seeds, or its scenarios are gone.
async fn read_original(args: &Args) -> Result<Original, Stop> {
    let is_id = !args.result.is_empty() && args.result.bytes().all(|byte| byte.is_ascii_digit());
    match &args.server {
        Some(address) if is_id && !Path::new(&args.result).exists() => server::read_result(args, address).await,
        None if is_id && !Path::new(&args.result).exists() => Err(Stop::bad(format!(
            "RESULT {}: there is no such folder; the id of a result needs --server",
            args.result
        ))),
        _ => read_folder(args),
    }
}
