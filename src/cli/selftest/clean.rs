//! Calls of agents without a fault, each drawn from its number, and how many of them are charged: agent, suite, noise
//! and network differ from call to call.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::plans::{Channel, Plan, connect_line};
use super::{UNTOLD_MAX, agents, play_files};
use crate::agent::Fault;
use crate::cli::out::Out;
use crate::judge::stats::wilson;
use crate::suite::Played;
use crate::suite::verdict::Verdict;
use ringer_media::noise::Kind;
use ringer_media::seed::{Seed, Stream};

/// Largest share of calls without a fault that may be charged.
const BAR: f64 = 0.005;
/// Calls of one run of the suites: its recordings are deleted before the next.
const AT_A_TIME: u64 = 200;
/// Greatest ratio of speech to noise, in dB.
const MOST_DB: f64 = 30.0;
/// Kinds of noise with the least ratio at which the sample agent itself still tells its caller from it, in dB. It
/// answers voices and single loud sounds near the caller (`talking`, `tv`, `traffic`), which is its own fault.
const NOISES: [(Kind, f64); 3] = [(Kind::Office, 15.0), (Kind::Cafe, 15.0), (Kind::NoisyRestaurant, 15.0)];
/// Troubles of the caller's side, one drawn for each call: whether there is noise, and the quality of the connection.
/// The sample agent takes noise that is broken by losses for its caller, so that these do not come together.
const TROUBLES: [(bool, &str); 4] = [(false, "high"), (true, "high"), (false, "medium"), (false, "low")];

/// Figures of calls without a fault.
#[derive(Debug, Default)]
pub(super) struct Clean {
    calls: u64,
    /// Number and reason of each call that was charged.
    charged: Vec<(u64, String)>,
    /// Reasons of the calls of which nothing was told, with their numbers.
    untold: BTreeMap<String, u64>,
}

/// Makes `count` calls, those from `first` on, and counts the charged ones.
///
/// # Errors
/// Why the calls could not be made.
pub(super) async fn run(first: u64, count: u64, folder: &Path, out: Option<&Out>) -> Result<Clean, String> {
    let sound: Vec<(&str, Plan)> = agents(&Fault::ALL, false)
        .into_iter()
        .filter(|agent| !agent.is_faulty)
        .flat_map(|agent| agent.plans.into_iter().map(move |plan| (agent.name, plan)))
        .filter(|(_, plan)| !plan.1.contains("meaning:"))
        .collect();
    let mut clean = Clean::default();
    for from in (first..first + count).step_by(AT_A_TIME as usize) {
        let to = (from + AT_A_TIME).min(first + count);
        let place = folder.join(from.to_string());
        std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        for (agent, text) in files(from..to, &sound) {
            let path = place.join(format!("{agent}.yaml"));
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let played = play_files(&place, 1, false).await;
        let _ = std::fs::remove_dir_all(&place);
        clean.count(&played?);
        if let Some(out) = out {
            out.line(format_args!("{} of {count} calls: {}", clean.calls, clean.summary()));
        }
    }
    Ok(clean)
}

/// Returns a suite for each agent, with the calls of these numbers.
fn files(numbers: std::ops::Range<u64>, sound: &[(&'static str, Plan)]) -> BTreeMap<&'static str, String> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for number in numbers {
        let mut draw = Seed::of(&format!("call without a fault {number}")).stream("kind of call");
        let (agent, (name, lines)) = sound[draw.index(sound.len())];
        let file = files
            .entry(agent)
            .or_insert_with(|| format!("version: 1\n{}\nscenarios:\n", connect_line(agent, Channel::Sip, 5080)));
        *file += &format!("  - name: \"{number} {agent} {name}\"{lines}{}", conditions(&mut draw));
    }
    files
}

/// Draws noise and network of a call, as lines of a scenario.
fn conditions(draw: &mut Stream) -> String {
    let ((has_noise, network), (kind, least)) =
        (TROUBLES[draw.index(TROUBLES.len())], NOISES[draw.index(NOISES.len())]);
    let (db, kind) = (draw.range(least, MOST_DB), kind.name());
    let noise = if has_noise { format!("    noise: {kind}\n    noise_db: {db:.1}\n") } else { String::new() };
    format!("{noise}    network: {network}\n")
}

impl Clean {
    fn count(&mut self, played: &[Played]) {
        self.calls += played.len() as u64;
        for call in played {
            let (judgement, number) = (&call.judgement, call.scenario.split(' ').next().unwrap_or_default());
            match judgement.verdict {
                Verdict::Passed => {}
                Verdict::Failed => {
                    let reason = format!("{}: {}", call.scenario, judgement.reason);
                    self.charged.push((number.parse().unwrap_or_default(), reason));
                }
                Verdict::Unknown | Verdict::Unreachable => {
                    *self.untold.entry(judgement.reason.clone()).or_default() += 1;
                }
            }
        }
    }

    fn count_untold(&self) -> u64 {
        self.untold.values().sum()
    }

    /// Returns the number of calls with a verdict on the agent.
    fn count_told(&self) -> u64 {
        self.calls - self.count_untold()
    }

    /// Returns the share of the told calls that were charged.
    fn share(&self) -> f64 {
        match self.count_told() {
            0 => 0.0,
            told => self.charged.len() as f64 / told as f64,
        }
    }

    fn range(&self) -> (f64, f64) {
        wilson(self.charged.len() as u64, self.count_told())
    }

    /// Returns passed where the whole interval lies below the bar, failed where the share does not. Unknown where the
    /// calls are too few to tell, or too many of them have no verdict.
    pub(super) fn verdict(&self) -> Verdict {
        match self.share() {
            share if self.calls == 0 || share >= BAR => Verdict::Failed,
            _ if self.count_untold() as f64 > self.calls as f64 * UNTOLD_MAX => Verdict::Unknown,
            _ if self.range().1 < BAR => Verdict::Passed,
            _ => Verdict::Unknown,
        }
    }

    fn summary(&self) -> String {
        let (charged, untold) = (self.charged.len(), self.count_untold());
        let (share, (low, high)) = (100.0 * self.share(), self.range());
        let range = format!("{:.3} to {:.3} %", low * 100.0, high * 100.0);
        format!("{charged} charged wrongly ({share:.3} %, {range}), {untold} not told")
    }

    pub(super) fn figures(&self) -> Value {
        let charged = |(number, reason): &(u64, String)| json!({ "call": number, "reason": reason });
        json!({
            "calls": self.calls, "charged": self.charged.len(), "unknown": self.count_untold(),
            "share": self.share(), "interval": self.range(), "bar": BAR,
            "verdict": self.verdict().as_str(),
            "charged_calls": self.charged.iter().map(charged).collect::<Vec<_>>(), "untold": self.untold,
        })
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.charged.iter().map(|(_, reason)| format!("charged: {reason}")).collect();
        lines.extend(self.untold.iter().map(|(reason, count)| format!("not told, {count} calls: {reason}")));
        lines.push(format!("{} calls without a fault: {}", self.calls, self.summary()));
        let bar = BAR * 100.0;
        lines.push(match self.verdict() {
            Verdict::Passed => format!("passed: the share of wrong charges is below {bar} %"),
            Verdict::Failed => format!("failed: the share of wrong charges is not below {bar} %"),
            Verdict::Unknown | Verdict::Unreachable => {
                format!("not told: too few calls with a verdict to say that it is below {bar} %")
            }
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::file::of_node;
    use crate::suite::testing::call;
    use crate::suite::yaml::parse;

    #[test]
    fn calls_are_drawn_from_their_numbers_and_can_be_read() {
        let sound: Vec<(&str, Plan)> = vec![("desk", super::super::greeting_plan(Channel::Sip))];
        let drawn = files(0..40, &sound);
        let text = &drawn["desk"];
        assert_eq!(text, &files(0..40, &sound)["desk"]);
        assert!(text.contains("noise_db: ") && text.contains("network: low") && text.contains("noise: cafe"));
        let read = of_node(&parse(text, "f").expect("it is YAML"), Path::new("f"));
        let read = read.unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!(read.scenarios.len(), 40);
        assert_eq!(read.scenarios[7].name, "7 desk greets soon");
    }

    #[test]
    fn the_whole_interval_has_to_lie_below_the_bar() {
        for (charged, calls, expect) in [
            (0, 0, Verdict::Failed),
            (0, 500, Verdict::Unknown),
            (0, 1000, Verdict::Passed),
            (36, 10_000, Verdict::Passed),
            (37, 10_000, Verdict::Unknown),
            (45, 10_000, Verdict::Unknown),
            (50, 10_000, Verdict::Failed),
        ] {
            let mut clean = Clean { calls, ..Clean::default() };
            clean.charged.resize(charged, (1, "r".to_owned()));
            assert_eq!(clean.verdict(), expect, "{charged} of {calls}");
        }
    }

    /// Calls without a verdict are no proof.
    #[test]
    fn calls_that_are_not_told_prove_nothing() {
        let untold = |count| Clean { calls: 1000, untold: [("busy".to_owned(), count)].into(), ..Clean::default() };
        assert_eq!(
            [100, 101, 1000].map(|count| untold(count).verdict()),
            [Verdict::Passed, Verdict::Unknown, Verdict::Unknown]
        );
    }

    #[test]
    fn only_failed_calls_are_charged() {
        let mut clean = Clean::default();
        let verdicts = [Verdict::Passed, Verdict::Failed, Verdict::Unknown, Verdict::Unreachable];
        let played: Vec<Played> = (1..)
            .zip(verdicts)
            .map(|(at, verdict)| call(&format!("{at} desk books"), at, verdict, "late", &[]))
            .collect();
        clean.count(&played);
        let figures = clean.figures();
        assert_eq!((&figures["calls"], &figures["charged"], &figures["unknown"]), (&json!(4), &json!(1), &json!(2)));
        assert_eq!(figures["charged_calls"], json!([{ "call": 2, "reason": "2 desk books: late" }]));
        assert_eq!(clean.lines()[0], "charged: 2 desk books: late");
    }
}
