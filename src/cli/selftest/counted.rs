//! Counts of the calls of a selftest: how many faults were found, and who was charged wrongly.

use serde_json::{Value, json};

use super::plans::{DEAD, name};
use super::{Agent, BAR, UNTOLD_MAX, interval, share};
use crate::agent::Fault;
use crate::judge::NO_MODEL;
use crate::judge::stats::wilson;
use crate::suite::Played;
use crate::suite::verdict::{NOT_STARTED, Verdict};
use ringer_media::call::RATE_MISMATCH;

/// Calls with the same suite at the same agent, and what became of them.
#[derive(Debug, Default)]
struct Tally {
    /// Number of calls that were made.
    calls: u64,
    /// Calls in which a fault was found.
    failed: u64,
    /// Calls of which nothing was told: this side was charged, or cannot tell.
    unknown: u64,
    /// Calls that only a language model could tell: none is configured.
    unmodelled: u64,
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
        let wants_model =
            |call: &&&Played| verdict(call) == Verdict::Unknown && call.judgement.reason.contains(NO_MODEL);
        let unmodelled = calls.iter().filter(wants_model).count() as u64;
        let reasons = || calls.iter().map(|call| &call.judgement).filter(|judgement| !judgement.reason.is_empty());
        let reason = reasons().find(|judgement| judgement.verdict == Verdict::Failed).or_else(|| reasons().next());
        Tally {
            calls: calls.len() as u64,
            failed: count(Verdict::Failed),
            unknown: count(Verdict::Unknown) - unmodelled,
            unmodelled,
            reason: reason.map_or_else(String::new, |judgement| judgement.reason.clone()),
        }
    }
}

/// Tallies of all calls.
pub(super) struct Counted {
    /// Calls with a suite that should find something, a fault and a channel each.
    finding: Vec<(String, Tally)>,
    /// Calls with a suite that should find nothing, by the name of the scenario.
    clean: Vec<(String, Tally)>,
}

impl Counted {
    pub(super) fn of(agents: &[Agent], played: &[Played]) -> Counted {
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
        self.finding.iter().map(|(_, tally)| tally.calls - tally.failed - tally.unknown - tally.unmodelled).sum()
    }

    /// Returns passed where the checks found what was planted, failed where they did not, unknown where too little was
    /// told.
    pub(super) fn verdict(&self) -> Verdict {
        let (found, missed, alarms) = (self.count_found(), self.count_missed(), self.false_alarms());
        let (untold, calls) = self.count_charged();
        let is_untold = |(_, tally): &(String, Tally)| tally.unknown > 0 && tally.unknown == tally.calls;
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
        (self.all().map(|tally| tally.unknown).sum(), self.all().map(|tally| tally.calls).sum())
    }

    /// Calls that only a language model could tell.
    fn count_unmodelled(&self) -> u64 {
        self.all().map(|tally| tally.unmodelled).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Tally> {
        self.finding.iter().chain(&self.clean).map(|(_, tally)| tally)
    }

    pub(super) fn figures(&self) -> Value {
        let (found, missed, alarms) = (self.count_found(), self.count_missed(), self.false_alarms());
        let fault = |(fault, tally): &(String, Tally)| {
            let (low, high) = wilson(tally.failed, tally.calls);
            json!({
                "fault": fault, "found": tally.failed, "of": tally.calls, "low": low, "high": high,
                "unknown": tally.unknown, "without_model": tally.unmodelled, "reason": tally.reason,
            })
        };
        let clean = |(name, tally): &(String, Tally)| {
            json!({
                "scenario": name, "false_alarms": tally.failed, "of": tally.calls, "unknown": tally.unknown,
                "without_model": tally.unmodelled, "reason": tally.reason,
            })
        };
        let (charged, calls) = self.count_charged();
        json!({
            "faults": self.finding.iter().map(fault).collect::<Vec<_>>(),
            "clean": self.clean.iter().map(clean).collect::<Vec<_>>(),
            "recall": share(found, found + missed), "recall_interval": wilson(found, found + missed),
            "precision": share(found, found + alarms), "precision_interval": wilson(found, found + alarms),
            "false_alarms": alarms, "clean_calls": self.clean_calls(), "missed": missed,
            "bar": BAR, "verdict": self.verdict().as_str(), "without_model": self.count_unmodelled(),
            "wrongly_charged": charged, "calls": calls, "wrongly_charged_interval": wilson(charged, calls),
        })
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let (found, missed, alarms) = (self.count_found(), self.count_missed(), self.false_alarms());
        let mut lines: Vec<String> = Vec::new();
        for (fault, tally) in &self.finding {
            if tally.unmodelled == tally.calls && tally.calls > 0 {
                lines.push(format!("{fault:<16} could not be told in {} calls  {}", tally.calls, tally.reason));
                continue;
            }
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
        if self.count_unmodelled() > 0 {
            lines
                .push(format!("not told without a language model, and not counted: {} calls", self.count_unmodelled()));
        }
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

#[cfg(test)]
mod tests {
    use super::super::{agents, dead_agents};
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
    fn what_waits_for_a_model_is_counted_apart() {
        let reason = format!("the meaning is not known: {NO_MODEL}");
        let name = "invents_booking books what is asked for";
        let untold = call(name, 1, Verdict::Unknown, &reason, &[]);
        let played = [untold, call("desk books what is asked for", 1, Verdict::Passed, "", &[])];
        let counted = Counted::of(&agents(&[Fault::InventsBooking], false), &played);
        let figures = counted.figures();
        for (key, expect) in [("without_model", 1), ("wrongly_charged", 0), ("missed", 0), ("calls", 2)] {
            assert_eq!(figures[key], json!(expect), "{key}: {figures}");
        }
        assert_eq!(counted.verdict(), Verdict::Passed);
        let lines = counted.lines();
        assert!(lines[0].starts_with("invents_booking  could not be told in 1 calls"), "{lines:?}");
        assert!(
            lines.iter().any(|line| line == "not told without a language model, and not counted: 1 calls"),
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
        let tally = |failed, unknown, calls| Tally { calls, failed, unknown, ..Tally::default() };
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
