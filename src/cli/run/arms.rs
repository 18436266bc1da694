//! Arms of a run: the same calls once for each line, or once as they are and once changed. Calls of one caller have the
//! same seed in every arm.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::client::{Client, Trouble};
use super::plan::{Job, Plan};
use super::{Args, Stop};
use crate::cli::complain;
use crate::suite::change::Change;
use crate::suite::expand::Connect;
use crate::suite::telephone::{self, LINES, REFERENCE, TelephoneLine};

/// One arm of a run.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    /// Name of the arm, as reports have it.
    pub name: String,
    /// True if its calls count for the gates.
    pub gates: bool,
    /// Difference of its calls.
    pub difference: Difference,
}

/// Difference of an arm's calls from those of the files.
#[derive(Clone, Debug)]
pub(crate) enum Difference {
    /// The calls are those of the files.
    None,
    /// The callers are on this line.
    Line(&'static TelephoneLine),
    /// One thing is changed.
    Change(Change),
}

impl Arm {
    fn of_line(line: &'static TelephoneLine, gates: bool) -> Arm {
        Arm { name: line.name.to_owned(), gates, difference: Difference::Line(line) }
    }

    /// Returns the call of this arm.
    fn job(&self, job: &Job) -> Result<Job, String> {
        let mut job = Job { arm: self.name.clone(), gates: self.gates, ..job.clone() };
        match &self.difference {
            Difference::None => {}
            Difference::Line(line) => line.apply(&mut job.scenario.human),
            Difference::Change(change) => change
                .apply(&mut job.scenario.human)
                .map_err(|why| format!("{}: scenario '{}': {why}", job.scenario.at, job.scenario.name))?,
        }
        Ok(job)
    }
}

impl Plan {
    /// Splits each call into one for each arm, one after the other.
    ///
    /// # Errors
    /// An arm that changes nothing, or an agent that is not spoken with.
    pub(crate) fn split(&mut self, arms: &[Arm]) -> Result<(), Stop> {
        let mut problems: Vec<String> = Vec::new();
        for suite in &self.suites {
            let is_written = match &suite.connect {
                Connect::Made(made) => made.agent.get("mode").is_some_and(|mode| mode != "VOICE"),
                Connect::Named(_) => false,
            };
            if is_written && !self.sim && self.jobs.iter().any(|job| job.suite == suite.at) {
                problems.push(format!("{}: the agent writes: no line and no change of speech acts on it", suite.file));
            }
        }
        let mut jobs = Vec::with_capacity(self.jobs.len() * arms.len());
        for (job, arm) in self.jobs.iter().flat_map(|job| arms.iter().map(move |arm| (job, arm))) {
            match arm.job(job) {
                Ok(job) => jobs.push(job),
                Err(why) if problems.contains(&why) => {}
                Err(why) => problems.push(why),
            }
        }
        self.jobs = jobs;
        if problems.is_empty() { Ok(()) } else { Err(Stop::Bad(problems)) }
    }
}

/// Returns the lines of a run, the reference among them, and those whose calls count for the gates; `None`: it has no
/// lines.
///
/// # Errors
/// A name that is no line, or a gate without a line of the run.
fn lines(args: &Args) -> Result<Option<Vec<Arm>>, Stop> {
    let Some(named) = &args.lines else {
        return match args.gate_lines {
            Some(_) => Err(Stop::bad("--gate-lines needs --lines")),
            None => Ok(None),
        };
    };
    let read =
        |flag: &str, text: &str| telephone::read_names(text).map_err(|why| Stop::bad(format!("{flag} {text}: {why}")));
    let wanted: Vec<&TelephoneLine> = match named.as_str() {
        ALL => LINES.iter().collect(),
        text => read("--lines", text)?,
    };
    let is_taken = |line: &&TelephoneLine| line.name == REFERENCE || wanted.contains(line);
    let taken: Vec<&'static TelephoneLine> = LINES.iter().filter(is_taken).collect();
    let gating = match args.gate_lines.as_deref() {
        None => vec![&LINES[0]],
        Some(ALL) => taken.clone(),
        Some(text) => read("--gate-lines", text)?,
    };
    if let Some(missing) = gating.iter().find(|line| !taken.contains(line)) {
        return Err(Stop::bad(format!("--gate-lines: the run has no line {}", missing.name)));
    }
    Ok(Some(taken.into_iter().map(|line| Arm::of_line(line, gating.contains(&line))).collect()))
}

/// Word for all lines.
pub(crate) const ALL: &str = "all";

/// Splits the calls of a plan by the lines that the flags name; without any the plan stays as it is.
///
/// # Errors
/// A flag names no line, or there are too many calls.
pub(crate) fn split_by_lines(plan: &mut Plan, args: &Args) -> Result<(), Stop> {
    let Some(arms) = lines(args)? else { return Ok(()) };
    plan.notes.extend(replaced_conditions(plan));
    plan.split(&arms)?;
    plan.lines = LINES.iter().filter(|line| arms.iter().any(|arm| arm.name == line.name)).collect();
    Ok(())
}

/// Returns a note on scenarios whose own conditions the lines replace; `None`: there are none.
fn replaced_conditions(plan: &Plan) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for job in &plan.jobs {
        let fields = telephone::replaced_fields(&job.scenario.human);
        let told = format!("{} ({})", job.scenario.name, fields.join(", "));
        if !fields.is_empty() && !names.contains(&told) {
            names.push(told);
        }
    }
    (!names.is_empty()).then(|| format!("Conditions of scenarios that the lines replace: {}", names.join("; ")))
}

/// Longest time that voices of noises are waited for.
const NOISES_WITHIN: Duration = Duration::from_secs(90);
/// Time between two looks at them: a server tells of them only when it is asked.
const LOOK: Duration = Duration::from_millis(300);
/// Beginning of a warning that they are missing.
const IMITATED: &str = "its+voices+are+imitated";
/// Part of it that tells that they are coming; a failure has another.
const MAKING: &str = "when+no+call+is+running";

/// Asks the engine for the voices of the arms, which it would replace where it has none of the name.
///
/// # Errors
/// A voice that is not there, or the server is not reached.
pub(super) async fn check_voices(plan: &Plan, client: &Client) -> Result<(), Stop> {
    let mut asked: Vec<&str> = Vec::new();
    for job in plan.jobs.iter().filter(|job| job.arm.starts_with("voice=")) {
        let human = &job.scenario.human;
        let Some(voice) = human.get("custom_voice_id").and_then(Value::as_str).filter(|id| !asked.contains(id)) else {
            continue;
        };
        asked.push(voice);
        let language = human.get("language").cloned().unwrap_or_else(|| json!("en"));
        let human = json!({ "intent": "Hello.", "language": language, "custom_voice_id": voice });
        let body = json!({ "digital_human": human, "part": "clean" });
        let warnings = client.post_for_header("/v1/preview", &body, "x-warnings").await?;
        if warnings.is_some_and(|text| text.contains("there+is+no+voice")) {
            return Err(Stop::bad(format!(
                "voice={voice}: the engine has no such voice; `ringer models` lists its own"
            )));
        }
    }
    Ok(())
}

/// Prepares the noises of the calls at the engine, so that all have the same, in a replay too. Where nobody can speak
/// them, the calls say so.
///
/// # Errors
/// The server is not reached.
pub(super) async fn prepare_noises(plan: &Plan, client: &Client) -> Result<(), Stop> {
    let mut asked: Vec<Value> = Vec::new();
    // A server's own noises are made when it has no calls, and its other users wait for none.
    let is_wanted = |job: &&Job| !plan.is_at_server || !job.arm.is_empty();
    for job in plan.jobs.iter().filter(is_wanted) {
        let field = |name: &str| job.scenario.human.get(name).cloned();
        let Some(noise) = field("background_noise").filter(|noise| noise != "none" && noise != "custom") else {
            continue;
        };
        let language = field("language").unwrap_or_else(|| json!("en"));
        let human = json!({ "intent": "Hello.", "language": language, "background_noise": noise });
        let body = json!({ "digital_human": human, "part": "noise" });
        if !asked.contains(&body) {
            asked.push(body);
        }
    }
    let making = async {
        for body in &asked {
            loop {
                let warnings = client.post_for_header("/v1/preview", body, "x-warnings").await?;
                if !warnings.is_some_and(|text| text.contains(IMITATED) && text.contains(MAKING)) {
                    break;
                }
                sleep(LOOK).await;
            }
        }
        Ok(())
    };
    match timeout(NOISES_WITHIN, making).await {
        Ok(Err(trouble @ Trouble::Refused(_))) => {
            complain(format!("the noises are not made before the calls: {trouble}"));
            Ok(())
        }
        Ok(made) => made.map_err(Stop::from),
        Err(_) => Ok(()),
    }
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
    fn the_reference_is_always_among_the_lines() {
        for (flags, expect) in [
            (&["--lines"][..], Ok("wideband+ pcmu loss5 babble")),
            (&["--lines", "babble,pcmu"], Ok("wideband+ pcmu babble")),
            (&["--lines", "pcmu", "--gate-lines", "all"], Ok("wideband+ pcmu+")),
            (&["--lines", "pcmu", "--gate-lines", "pcmu"], Ok("wideband pcmu+")),
            (&["--lines", "pcmu", "--gate-lines", "babble"], Err("--gate-lines: the run has no line babble")),
            (&["--gate-lines", "pcmu"], Err("--gate-lines needs --lines")),
            (&["--lines", "lte"], Err("--lines lte: \"lte\" is no line")),
        ] {
            let args = Flags::try_parse_from([&["ringer", "x.yaml"], flags].concat()).expect("they are flags").run;
            match (lines(&args), expect) {
                (Ok(Some(arms)), Ok(expect)) => {
                    let told = |arm: &Arm| format!("{}{}", arm.name, if arm.gates { "+" } else { "" });
                    assert_eq!(arms.iter().map(told).collect::<Vec<_>>().join(" "), expect, "{flags:?}");
                }
                (Err(Stop::Bad(why)), Err(expect)) => assert!(why[0].starts_with(expect), "{flags:?}: {why:?}"),
                (other, expect) => panic!("{flags:?}: {other:?} {expect:?}"),
            }
        }
    }
}
