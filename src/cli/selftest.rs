//! `ringer selftest`: faults that the sample agent has on purpose, against what the checks say of them, in virtual or
//! in real time.

mod plans;

use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Value, json};

use self::plans::{Channel, DEAD, Plan, channels, file, finding, greeting_plan, name, sound, sparing};
use super::out::Out;
use super::{fail, run as suites};
use crate::agent::Fault;
use crate::judge::stats::wilson;
use crate::suite::Played;
use crate::suite::verdict::{NOT_STARTED, Verdict};
use ringer_media::call::RATE_MISMATCH;

/// Flags of `ringer selftest`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A call that could not be told (this side was charged, or a part of it cannot tell) is counted apart and is no wrong verdict.
Recall is found / (found + missed), precision found / (found + false alarms), each with Wilson's interval of 95 %.

The exit code is 0 when recall and precision are both at least 95 %, 1 when one is not, 3 when both are and yet a fault was told in
none of its calls, or more than one call in ten could not be told.")]
pub struct Args {
    /// Calls for each fault, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub seeds: u32,
    /// Play only these faults
    #[arg(long, value_name = "KIND")]
    pub fault: Vec<Fault>,
    /// Make real calls, with the installed voices and the recognizer, instead of calls in virtual time
    #[arg(long)]
    pub real: bool,
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
    if let Some(fault) = args.fault.iter().find(|fault| channels(**fault, args.real).is_empty()) {
        return Err(format!("{} is planted in real calls alone: add --real", fault.as_str()));
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

/// Calls with the same suite at the same agent, and what became of them.
#[derive(Debug, Default)]
struct Tally {
    /// Number of calls that were made.
    calls: u64,
    /// Calls in which a fault was found.
    failed: u64,
    /// Calls of which nothing was told: this side was charged, or cannot tell.
    unknown: u64,
    /// Reason of the first call that failed, else of the first that did not pass.
    reason: String,
}

impl Tally {
    fn of(name: &str, played: &[Played]) -> Tally {
        let calls: Vec<&Played> = played.iter().filter(|call| call.scenario == name).collect();
        let agent = name.split(' ').next();
        let (is_dead, is_off_rate) = (agent == Some(DEAD), agent == Some(Fault::WrongRate.as_str()));
        let verdict = |call: &Played| match call.judgement.verdict {
            // An agent that did not start is no fault that was found.
            _ if call.judgement.code == NOT_STARTED => Verdict::Unknown,
            // Nobody is charged for an agent that does not run.
            Verdict::Unreachable if is_dead => Verdict::Failed,
            Verdict::Failed if is_dead => Verdict::Passed,
            Verdict::Unreachable => Verdict::Unknown,
            // Nor for a rate that is only suspected, where it is told.
            Verdict::Unknown if is_off_rate && call.judgement.code == RATE_MISMATCH => Verdict::Failed,
            Verdict::Failed if is_off_rate => Verdict::Passed,
            verdict => verdict,
        };
        let count = |wanted| calls.iter().filter(|call| verdict(call) == wanted).count() as u64;
        let reasons = || calls.iter().map(|call| &call.judgement).filter(|judgement| !judgement.reason.is_empty());
        let reason = reasons().find(|judgement| judgement.verdict == Verdict::Failed).or_else(|| reasons().next());
        Tally {
            calls: calls.len() as u64,
            failed: count(Verdict::Failed),
            unknown: count(Verdict::Unknown),
            reason: reason.map_or_else(String::new, |judgement| judgement.reason.clone()),
        }
    }
}

/// Tallies of all calls.
struct Counted {
    /// Calls with a suite that should find something, a fault and a channel each.
    finding: Vec<(String, Tally)>,
    /// Calls with a suite that should find nothing, by the name of the scenario.
    clean: Vec<(String, Tally)>,
}

impl Counted {
    fn of(agents: &[Agent], played: &[Played]) -> Counted {
        let (mut found, mut clean) = (Vec::new(), Vec::new());
        for agent in agents {
            for (at, plan) in agent.plans.iter().enumerate() {
                let name = name(agent.name, agent.channel, *plan);
                let tally = Tally::of(&name, played);
                match agent.is_faulty && at == 0 {
                    true => found.push((format!("{}{}", agent.name, agent.channel.suffix()), tally)),
                    false => clean.push((name, tally)),
                }
            }
        }
        Counted { finding: found, clean }
    }

    fn count_found(&self) -> u64 {
        self.finding.iter().map(|(_, tally)| tally.failed).sum()
    }

    fn count_missed(&self) -> u64 {
        self.finding.iter().map(|(_, tally)| tally.calls - tally.failed - tally.unknown).sum()
    }

    /// Returns passed where the checks found what was planted, failed where they did not, unknown where too little was
    /// told.
    fn verdict(&self) -> Verdict {
        let (found, missed, alarms) = (self.count_found(), self.count_missed(), self.false_alarms());
        let (untold, calls) = self.count_charged();
        let is_untold = |(_, tally): &(String, Tally)| tally.unknown == tally.calls;
        match (share(found, found + missed) >= BAR, share(found, found + alarms) >= BAR) {
            (true, true) if self.finding.iter().any(is_untold) => Verdict::Unknown,
            (true, true) if untold as f64 > calls as f64 * UNTOLD_MAX => Verdict::Unknown,
            (true, true) => Verdict::Passed,
            _ => Verdict::Failed,
        }
    }

    fn false_alarms(&self) -> u64 {
        self.clean.iter().map(|(_, tally)| tally.failed).sum()
    }

    /// Returns the number of calls that should find nothing.
    fn clean_calls(&self) -> u64 {
        self.clean.iter().map(|(_, tally)| tally.calls).sum()
    }

    /// Calls that could not be told, of all: no fault of this side was planted.
    fn count_charged(&self) -> (u64, u64) {
        let all = || self.finding.iter().map(|(_, tally)| tally).chain(self.clean.iter().map(|(_, tally)| tally));
        (all().map(|tally| tally.unknown).sum(), all().map(|tally| tally.calls).sum())
    }

    fn figures(&self) -> Value {
        let (found, missed, alarms) = (self.count_found(), self.count_missed(), self.false_alarms());
        let fault = |(fault, tally): &(String, Tally)| {
            let (low, high) = wilson(tally.failed, tally.calls);
            json!({
                "fault": fault, "found": tally.failed, "of": tally.calls, "low": low, "high": high,
                "unknown": tally.unknown, "reason": tally.reason,
            })
        };
        let clean = |(name, tally): &(String, Tally)| {
            json!({
                "scenario": name, "false_alarms": tally.failed, "of": tally.calls, "unknown": tally.unknown,
                "reason": tally.reason,
            })
        };
        let (charged, calls) = self.count_charged();
        json!({
            "faults": self.finding.iter().map(fault).collect::<Vec<_>>(),
            "clean": self.clean.iter().map(clean).collect::<Vec<_>>(),
            "recall": share(found, found + missed), "recall_interval": wilson(found, found + missed),
            "precision": share(found, found + alarms), "precision_interval": wilson(found, found + alarms),
            "false_alarms": alarms, "clean_calls": self.clean_calls(), "missed": missed,
            "bar": BAR, "verdict": self.verdict().as_str(),
            "wrongly_charged": charged, "calls": calls, "wrongly_charged_interval": wilson(charged, calls),
        })
    }

    fn lines(&self) -> Vec<String> {
        let (found, missed, alarms) = (self.count_found(), self.count_missed(), self.false_alarms());
        let mut lines: Vec<String> = Vec::new();
        for (fault, tally) in &self.finding {
            let range = interval(tally.failed, tally.calls);
            let untold = if tally.unknown > 0 { format!(", {} not told", tally.unknown) } else { String::new() };
            lines.push(format!(
                "{fault:<16} found in {} of {} ({range}){untold}  {}",
                tally.failed, tally.calls, tally.reason
            ));
        }
        for (name, tally) in self.clean.iter().filter(|(_, tally)| tally.failed + tally.unknown > 0) {
            let (failed, calls, unknown) = (tally.failed, tally.calls, tally.unknown);
            lines.push(format!(
                "{name}: {failed} of {calls} failed and {unknown} unknown, all should pass: {}",
                tally.reason
            ));
        }
        let percent = |part, all| share(part, all) * 100.0;
        lines.push(format!(
            "recall {:.1} % ({}), {missed} missed",
            percent(found, found + missed),
            interval(found, found + missed)
        ));
        lines.push(format!(
            "precision {:.1} % ({}), {alarms} false alarms in {} calls that should find nothing",
            percent(found, found + alarms),
            interval(found, found + alarms),
            self.clean_calls()
        ));
        let (charged, calls) = self.count_charged();
        lines.push(format!(
            "not told, with this side charged for it: {charged} of {calls} calls ({:.1} %, {})",
            if calls == 0 { 0.0 } else { percent(charged, calls) },
            interval(charged, calls)
        ));
        lines.push(match self.verdict() {
            Verdict::Passed => format!("passed: recall and precision are at least {:.0} %", BAR * 100.0),
            Verdict::Failed => format!("failed: recall or precision is below {:.0} %", BAR * 100.0),
            Verdict::Unreachable | Verdict::Unknown => {
                "not told: a fault was told in none of its calls, or too many calls were not told".into()
            }
        });
        lines
    }
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
        let command = (args.real && *name != DEAD).then_some(command.as_slice());
        let path = folder.join(format!("{at:02}-{name}.yaml"));
        let text = file(name, *channel, plans, port, command);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let (paths, seeds) = (folder.to_string_lossy().into_owned(), args.seeds.to_string());
    let results = folder.join("results").to_string_lossy().into_owned();
    let mut flags = vec!["run", &paths, "--repeat", &seeds, "--out", &results, "--json"];
    if !args.real {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::testing::call;

    #[test]
    fn what_was_found_is_counted_and_this_side_apart() {
        let faults = [Fault::SlowAnswer, Fault::IgnoresKeys];
        let mut played = Vec::new();
        for (name, verdicts) in [
            ("slow_answer books", [Verdict::Failed, Verdict::Failed]),
            ("slow_answer greets", [Verdict::Passed, Verdict::Unknown]),
            ("ignores_keys keys", [Verdict::Failed, Verdict::Passed]),
            ("ignores_keys books", [Verdict::Passed, Verdict::Failed]),
            ("desk books", [Verdict::Passed, Verdict::Passed]),
            ("desk keys", [Verdict::Passed, Verdict::Unknown]),
        ] {
            played.extend((1..).zip(verdicts).map(|(seed, verdict)| call(name, seed, verdict, "r", &[])));
        }
        let counted = Counted::of(&agents(&faults, false), &played);
        let figures = counted.figures();
        for (key, expect) in [
            ("recall", json!(0.75)),
            ("precision", json!(0.75)),
            ("missed", json!(1)),
            ("verdict", json!("failed")),
            ("false_alarms", json!(1)),
            ("clean_calls", json!(8)),
            ("wrongly_charged", json!(2)),
            ("calls", json!(12)),
        ] {
            assert_eq!(figures[key], expect, "{key}: {figures}");
        }
        assert_eq!((counted.count_missed(), counted.false_alarms()), (1, 1));
        let lines = counted.lines();
        let untold = "not told, with this side charged for it: 2 of 12 calls (16.7 %, 4.7 to 44.8 %)";
        assert!(lines.iter().any(|line| line == untold), "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("failed: recall or precision is below 95 %"));
        assert!(
            lines.iter().any(|line| line.starts_with("ignores_keys books: 1 of 2 failed and 0 unknown")),
            "{lines:?}"
        );
    }

    #[test]
    fn a_late_greeting_is_planted_on_every_channel() {
        for (is_real, expect) in [
            (
                true,
                &[
                    "late_first_word books",
                    "late_first_word keys",
                    "late_first_word over WebSocket greets soon",
                    "late_first_word over a pipeline greets soon",
                    "late_first_word in writing writes soon",
                    "desk books",
                    "desk over WebSocket greets soon",
                    "desk over a pipeline greets soon",
                    "desk in writing writes soon",
                ][..],
            ),
            (false, &["late_first_word books", "late_first_word keys", "desk books"]),
        ] {
            let agents = agents(&[Fault::LateFirstWord], is_real);
            let scenarios =
                agents.iter().flat_map(|agent| agent.plans.iter().map(|plan| name(agent.name, agent.channel, *plan)));
            assert_eq!(scenarios.collect::<Vec<_>>(), expect);
        }
    }

    #[test]
    fn a_wrong_rate_is_found_when_it_is_told_and_nobody_is_charged() {
        let agents = |is_real| -> Vec<String> {
            let agents = agents(&[Fault::WrongRate], is_real);
            agents.iter().map(|agent| name(agent.name, agent.channel, agent.plans[0])).collect()
        };
        assert_eq!(agents(true), ["wrong_rate over WebSocket greets soon", "desk over WebSocket greets soon"]);
        assert_eq!(agents(false), [""; 0]);
        for (verdict, code, expect) in [
            (Verdict::Unknown, RATE_MISMATCH, (1, 0)),
            (Verdict::Unknown, "CALL_DROPPED", (0, 1)),
            (Verdict::Failed, "expectation", (0, 0)),
            (Verdict::Passed, "", (0, 0)),
        ] {
            let mut played = call("wrong_rate over WebSocket greets soon", 1, verdict, "r", &[]);
            played.judgement.code = code.to_owned();
            let tally = Tally::of("wrong_rate over WebSocket greets soon", &[played]);
            assert_eq!((tally.failed, tally.unknown), expect, "{code}");
        }
    }

    #[test]
    fn an_agent_that_does_not_run_is_found_when_it_is_unreachable() {
        let names: Vec<String> = dead_agents().map(|agent| name(agent.name, agent.channel, agent.plans[0])).collect();
        assert_eq!(
            names,
            [
                "dead greets soon",
                "dead over WebSocket greets soon",
                "dead over a pipeline greets soon",
                "dead in writing writes soon",
            ]
        );
        let of = |name: &str, verdict| Tally::of(name, &[call(name, 1, verdict, "r", &[])]);
        for (name, verdict, expect) in [
            (&*names[0], Verdict::Unreachable, (1, 0)),
            (&names[0], Verdict::Failed, (0, 0)),
            (&names[0], Verdict::Unknown, (0, 1)),
            ("desk books", Verdict::Unreachable, (0, 1)),
        ] {
            let tally = of(name, verdict);
            assert_eq!((tally.failed, tally.unknown), expect, "{name} {verdict:?}");
        }
    }

    /// Verdict on calls of which so many found the planted fault, missed it, and told nothing; of those without a
    /// fault, so many were charged, and so many told nothing.
    fn verdict_of(planted: [u64; 3], clean: [u64; 2]) -> Verdict {
        let tally = |failed, unknown, calls| Tally { calls, failed, unknown, reason: String::new() };
        let [found, missed, untold] = planted;
        let counted = Counted {
            finding: vec![("slow_answer".to_owned(), tally(found, untold, found + missed + untold))],
            clean: vec![("desk books".to_owned(), tally(clean[0], clean[1], 100))],
        };
        counted.verdict()
    }

    #[test]
    fn the_bar_is_of_what_was_told() {
        for (planted, clean, expect) in [
            ([100, 0, 0], [0, 0], Verdict::Passed),
            ([95, 5, 0], [0, 0], Verdict::Passed),
            ([94, 6, 0], [0, 0], Verdict::Failed),
            ([95, 0, 5], [5, 0], Verdict::Passed),
            ([94, 0, 0], [5, 0], Verdict::Failed),
            ([90, 0, 10], [0, 10], Verdict::Passed),
            ([90, 0, 10], [0, 11], Verdict::Unknown),
            // Nothing is missed of what was never told, nor found.
            ([0, 0, 9], [0, 0], Verdict::Unknown),
            ([0, 9, 0], [0, 0], Verdict::Failed),
        ] {
            assert_eq!(verdict_of(planted, clean), expect, "{planted:?} {clean:?}");
        }
    }
}
