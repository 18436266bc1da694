//! `ringer selftest`: faults that the sample agent has on purpose, against what the checks say of them, in virtual time.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;

use super::out::Out;
use super::{failed, run as suites};
use crate::agent::Fault;
use crate::suite::stats::wilson;
use crate::suite::verdict::Verdict;

/// Flags of `ringer selftest`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The exit code is 0 when every fault was found with every seed and nothing was found in an agent without one, else 1."
)]
pub struct Args {
    /// Calls for each fault, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub seeds: u32,
    /// Play only these faults
    #[arg(long, value_name = "KIND")]
    pub fault: Vec<Fault>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const BOOKS: &str = "
    goal: I need an appointment. The third of March. Yes please.
    traits: { date_of_birth: \"The third of March.\" }
    endpointing_delay: 1
    max_seconds: 90
    expect:
      - { metric: p95_agent_latency, at_most: 2.5 }
      - { metric: time_to_first_agent_utterance, at_most: 3 }
      - { metric: agent_interruption_count, at_most: 0 }
      - { metric: num_turns, at_most: 5 }
      - { metric: agent_snr, at_least: 25 }
      - { heard: booked }
      - { not_heard: walker }
      - { ended_by: agent, within_s: 80 }
";

const KEYS: &str = "
    endpointing_delay: 1
    max_seconds: 90
    turns:
      - expect: { contains: press one }
      - dtmf: \"1\"
      - expect: { contains: member number, within_ms: 5000 }
      - dtmf: \"4711\"
      - expect: { contains: \"4 7 1 1\", within_ms: 5000 }
      - say: Yes, that is right.
      - expect: { contains: checked in, within_ms: 5000 }
";

const CUTS_IN: &str = "
    endpointing_delay: 1
    max_seconds: 60
    turns:
      - interrupt: { after_ms: 1500, say: \"Excuse me, I have one question for you.\" }
      - expect: { within_ms: 5000 }
    expect: [{ metric: yield_rate, at_least: 1 }]
";

const COUGHS: &str = "
    goal: I need an appointment. The third of March. Yes please.
    endpointing_delay: 1
    max_seconds: 90
    duplex: { vocal_tic_per_minute: 10 }
    expect: [{ metric: vocal_tic_selectivity, at_least: 1 }]
";

/// The scenario that shows a fault.
fn scenario(fault: Fault) -> (&'static str, &'static str) {
    match fault {
        Fault::IgnoresKeys | Fault::WrongDigit => ("keys", KEYS),
        Fault::DoesNotYield => ("cuts in", CUTS_IN),
        Fault::YieldsToCough => ("coughs", COUGHS),
        _ => ("books", BOOKS),
    }
}

/// The agent without the fault, that the same scenario passes.
fn sound(fault: Fault) -> &'static str {
    if fault == Fault::YieldsToCough { Fault::Steady.as_str() } else { "desk" }
}

fn suite(user: &str, name: &str, body: &str) -> String {
    format!("version: 1\nconnect: {{ sip: \"sip:{user}@127.0.0.1:5080\" }}\nscenarios:\n  - name: {user} {name}{body}")
}

/// Runs the calls and counts what was found.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    match selftest(&args, &out).await {
        Ok(good) => out.verdict(good),
        Err(why) => failed(why),
    }
}

async fn selftest(args: &Args, out: &Out) -> Result<bool, String> {
    let faults: Vec<Fault> = if args.fault.is_empty() { Fault::ALL.to_vec() } else { args.fault.clone() };
    let folder = std::env::temp_dir().join(format!("ringer-selftest-{}", crate::clock::new_id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let played = calls(args, &faults, &folder).await;
    let _ = std::fs::remove_dir_all(&folder);
    let played = played?;
    let of = |name: &str, verdict: Verdict| {
        played.iter().filter(|call| call.scenario == name && call.judgement.verdict == verdict).count() as u64
    };
    let (mut found, mut missed, mut lines) = (0, 0, Vec::new());
    let (mut false_alarms, mut sound_calls, mut seen) = (0, 0, Vec::new());
    for fault in &faults {
        let (kind, _) = scenario(*fault);
        let name = format!("{} {kind}", fault.as_str());
        let hits = of(&name, Verdict::Failed);
        let reason = played.iter().find(|call| call.scenario == name && !call.judgement.reason.is_empty());
        let reason = reason.map_or("", |call| call.judgement.reason.as_str()).to_owned();
        found += hits;
        missed += u64::from(args.seeds) - hits;
        let (low, high) = wilson(hits, args.seeds.into());
        lines.push(json!({ "fault": fault.as_str(), "found": hits, "of": args.seeds, "low": low, "high": high, "reason": reason }));
        let control = format!("{} {kind}", sound(*fault));
        if !seen.contains(&control) {
            false_alarms += of(&control, Verdict::Failed);
            sound_calls += u64::from(args.seeds);
            seen.push(control);
        }
    }
    let share = |part: u64, all: u64| if all == 0 { 1.0 } else { part as f64 / all as f64 };
    let (recall, precision) = (share(found, found + missed), share(found, found + false_alarms));
    let figures = json!({
        "faults": lines,
        "recall": recall, "recall_interval": wilson(found, found + missed),
        "precision": precision, "precision_interval": wilson(found, found + false_alarms),
        "false_alarms": false_alarms, "sound_calls": sound_calls,
    });
    if args.json {
        out.line(&figures);
    } else {
        for line in &lines {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let percent = |key: &str| line[key].as_f64().unwrap_or(0.0) * 100.0;
            out.line(format_args!(
                "{:<16} found in {} of {} ({:.0} to {:.0} %)  {}",
                text("fault"),
                line["found"],
                line["of"],
                percent("low"),
                percent("high"),
                text("reason")
            ));
        }
        let interval = |part: u64, all: u64| {
            let (low, high) = wilson(part, all);
            format!("{:.0} to {:.0} %", low * 100.0, high * 100.0)
        };
        out.line(format_args!("recall {:.0} % ({})", recall * 100.0, interval(found, found + missed)));
        out.line(format_args!(
            "precision {:.0} % ({}), {false_alarms} false alarms in {sound_calls} calls to an agent without a fault",
            precision * 100.0,
            interval(found, found + false_alarms)
        ));
    }
    Ok(missed == 0 && false_alarms == 0)
}

/// Writes a suite for each fault and for what it is compared with, and plays them.
async fn calls(args: &Args, faults: &[Fault], folder: &Path) -> Result<Vec<crate::suite::Played>, String> {
    for fault in faults {
        let (kind, body) = scenario(*fault);
        for user in [fault.as_str(), sound(*fault)] {
            let path = folder.join(format!("{user}-{}.yaml", kind.replace(' ', "-")));
            std::fs::write(&path, suite(user, kind, body)).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    let (paths, seeds) = (folder.to_string_lossy().into_owned(), args.seeds.to_string());
    let results = folder.join("results").to_string_lossy().into_owned();
    let flags = ["run", &paths, "--sim", "--repeat", &seeds, "--out", &results, "--json"];
    let flags = RunFlags::try_parse_from(flags).map_err(|error| error.to_string())?;
    suites::play(&flags.run).await
}

/// The flags of a run, as they are read from a command line.
#[derive(Debug, Parser)]
struct RunFlags {
    #[command(flatten)]
    run: suites::Args,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::file::of_node;
    use crate::suite::yaml::parse;

    #[test]
    fn the_suites_of_the_faults_can_be_read() {
        for fault in Fault::ALL {
            let (kind, body) = scenario(fault);
            for user in [fault.as_str(), sound(fault)] {
                let root = parse(&suite(user, kind, body), "f").expect("it is YAML");
                let read = of_node(&root, Path::new("f")).unwrap_or_else(|problems| panic!("{problems:?}"));
                assert_eq!(read.scenarios[0].name, format!("{user} {kind}"));
            }
        }
    }
}
