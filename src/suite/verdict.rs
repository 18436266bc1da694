//! Verdict on a call, as the engine's result has it; the command adds how its spawned command ended. Verdict on a gate.

use serde_json::Value;

use crate::model::error_code::Owner;
use crate::model::verdict::VerdictWord;

/// Verdict on one call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// All expectations were met.
    Passed,
    /// The agent is at fault.
    Failed,
    /// Nothing answered at the agent's address, or the credentials were refused: nothing was tested.
    Unreachable,
    /// Unknown, for instance through a fault of this side.
    #[default]
    Unknown,
}

impl Verdict {
    /// Returns its word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Unreachable => "unreachable",
            Verdict::Unknown => "unknown",
        }
    }

    /// Returns the verdict with this word; unknown for every other one.
    pub fn parse(word: &str) -> Verdict {
        let all = [Verdict::Passed, Verdict::Failed, Verdict::Unreachable];
        all.into_iter().find(|verdict| verdict.as_str() == word).unwrap_or_default()
    }

    /// Returns the engine's word for it.
    pub fn word(self) -> VerdictWord {
        match self {
            Verdict::Passed => VerdictWord::Passed,
            Verdict::Failed => VerdictWord::Failed,
            Verdict::Unreachable => VerdictWord::Unreachable,
            Verdict::Unknown => VerdictWord::Undecided,
        }
    }
}

/// A verdict with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Verdict of the call.
    pub verdict: Verdict,
    /// Code for the kind of reason, like an error code; empty when it passed.
    pub code: String,
    /// Reason for a person; empty when it passed.
    pub reason: String,
}

impl Judgement {
    fn of(verdict: Verdict, code: &str, reason: impl Into<String>) -> Judgement {
        Judgement { verdict, code: code.to_owned(), reason: reason.into() }
    }

    /// Returns the verdict on a call whose outcome is not known.
    pub fn unknown(code: &str, reason: impl Into<String>) -> Judgement {
        Judgement::of(Verdict::Unknown, code, reason)
    }

    /// Returns the verdict on a call whose agent's command had ended, or was not ready.
    pub fn not_started(reason: impl Into<String>) -> Judgement {
        Judgement::of(Verdict::Failed, NOT_STARTED, reason)
    }
}

/// Code of an agent whose command was not there.
pub const NOT_STARTED: &str = "AGENT_NOT_STARTED";

/// Returns the engine's verdict of a result record; `ended`: how the agent's spawned command ended during the call,
/// `None` where it runs or there is none.
pub fn judge(record: &Value, ended: Option<&str>) -> Judgement {
    let result_verdict = &record["verdict"];
    let text = |key: &str| result_verdict[key].as_str().unwrap_or_default();
    let Some(word) = result_verdict["word"].as_str() else {
        let status = record["status"].as_str().unwrap_or("not known");
        return Judgement::unknown("not_over", format!("the engine has no verdict: the call is {status}"));
    };
    let judgement = Judgement::of(Verdict::parse(word), text("code"), text("reason"));
    let Some(status) = ended.filter(|_| judgement.verdict != Verdict::Passed) else { return judgement };
    if !has_spoken(record) {
        return Judgement::not_started(format!("the agent's command {status}"));
    }
    let owner = record["error_owner"].as_str().map(Owner::from);
    match (judgement.verdict, owner) {
        (Verdict::Unknown, Some(owner)) if !owner.is_own() => {
            let reason = format!("{}; the agent's command {status}", judgement.reason);
            Judgement { verdict: Verdict::Failed, reason, ..judgement }
        }
        _ => judgement,
    }
}

/// True when anything of the agent was heard or read.
fn has_spoken(record: &Value) -> bool {
    let metric = |name: &str| metric(record, name).unwrap_or(0.0) > 0.0;
    metric("num_turns")
        || metric("agent_speak_percentage")
        || record["latency"].as_array().is_some_and(|all| !all.is_empty())
}

fn metric(record: &Value, name: &str) -> Option<f64> {
    record["metrics"].as_array()?.iter().find(|metric| metric["name"] == name)?["value"].as_f64()
}

/// Weight of calls that tell nothing about the agent in a gate.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum UntoldRule {
    /// The gate is unknown where they could change it.
    #[default]
    Tell,
    /// The others alone decide; there has to be at least one.
    Ignore,
    /// They count as failed.
    Fail,
}

impl UntoldRule {
    /// Words of a suite for each.
    pub const WORDS: [(&'static str, UntoldRule); 3] =
        [("tell", UntoldRule::Tell), ("ignore", UntoldRule::Ignore), ("fail", UntoldRule::Fail)];
}

/// Terms of the gate of a scenario.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Gate {
    /// Least share of the calls that has to pass, 0 to 1.
    pub pass_rate: f64,
    /// Weight of calls that tell nothing about the agent.
    pub untold: UntoldRule,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { pass_rate: 1.0, untold: UntoldRule::default() }
    }
}

/// Returns the verdict on the gate of a scenario: `decided` of `all` calls tell something about the agent, `passed` of
/// them passed.
pub fn gate(passed: u64, decided: u64, all: u64, terms: Gate) -> Verdict {
    if all == 0 {
        return Verdict::Passed;
    }
    let all = match terms.untold {
        UntoldRule::Ignore if decided == 0 => return Verdict::Unknown,
        UntoldRule::Ignore => decided,
        UntoldRule::Tell | UntoldRule::Fail => all,
    };
    let untold = if terms.untold == UntoldRule::Fail { 0 } else { all - decided };
    // The calls without a verdict may all pass, or all fail. Rates like 0.95 are inexact as floats: 19 of 20 have to be
    // enough.
    let reaches = |passed: u64| passed as f64 / all as f64 >= terms.pass_rate - 1e-9;
    match (reaches(passed), reaches(passed + untold)) {
        (true, _) => Verdict::Passed,
        (false, false) => Verdict::Failed,
        (false, true) => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a result with this verdict, whose agent spoke or not, and the owner of its error.
    fn record(word: &str, spoke: bool, owner: Value) -> Value {
        let turns = if spoke { 2 } else { 0 };
        json!({"status": "COMPLETED", "verdict": {"word": word, "code": "CODE", "reason": "m", "at_ms": null},
            "error_owner": owner, "latency": [], "metrics": [{"name": "num_turns", "value": turns}]})
    }

    #[test]
    fn the_engines_verdict_is_repeated_and_the_spawned_command_is_added() {
        use Verdict::{Failed, Passed, Unknown, Unreachable};
        let (network, engine) = (json!("network"), json!("engine"));
        let died = Some("ended with status 3");
        for (word, spoke, owner, ended, expect, code, reason) in [
            ("passed", true, Value::Null, None, Passed, "CODE", "m"),
            ("passed", false, Value::Null, died, Passed, "CODE", "m"),
            ("failed", true, Value::Null, None, Failed, "CODE", "m"),
            ("unreachable", false, network.clone(), None, Unreachable, "CODE", "m"),
            (
                "unreachable",
                false,
                network.clone(),
                died,
                Failed,
                NOT_STARTED,
                "the agent's command ended with status 3",
            ),
            ("unknown", true, network.clone(), None, Unknown, "CODE", "m"),
            ("unknown", true, network, died, Failed, "CODE", "m; the agent's command ended with status 3"),
            ("unknown", true, engine, died, Unknown, "CODE", "m"),
            ("cancelled", true, Value::Null, None, Unknown, "CODE", "m"),
            ("of another release", true, Value::Null, None, Unknown, "CODE", "m"),
        ] {
            let found = judge(&record(word, spoke, owner), ended);
            assert_eq!((found.verdict, &*found.code, &*found.reason), (expect, code, reason), "{word} {ended:?}");
        }
        let found = judge(&json!({"status": "RUNNING", "verdict": null}), None);
        assert_eq!((found.verdict, &*found.reason), (Unknown, "the engine has no verdict: the call is RUNNING"));
    }

    #[test]
    fn untold_calls_decide_no_gate() {
        use UntoldRule::{Fail, Ignore, Tell};
        for (passed, decided, all, pass_rate, untold, expect) in [
            (3, 3, 3, 1.0, Tell, Verdict::Passed),
            (2, 3, 3, 1.0, Tell, Verdict::Failed),
            (2, 2, 3, 1.0, Tell, Verdict::Unknown),
            (1, 2, 3, 1.0, Tell, Verdict::Failed),
            (2, 2, 3, 0.6, Tell, Verdict::Passed),
            (1, 2, 3, 0.6, Tell, Verdict::Unknown),
            (19, 20, 20, 0.95, Tell, Verdict::Passed),
            (18, 20, 20, 0.95, Tell, Verdict::Failed),
            (0, 0, 3, 1.0, Tell, Verdict::Unknown),
            (0, 3, 3, 0.0, Tell, Verdict::Passed),
            (0, 0, 0, 1.0, Tell, Verdict::Passed),
            (2, 2, 3, 1.0, Ignore, Verdict::Passed),
            (1, 2, 3, 1.0, Ignore, Verdict::Failed),
            (0, 0, 3, 1.0, Ignore, Verdict::Unknown),
            (2, 2, 3, 1.0, Fail, Verdict::Failed),
            (2, 2, 3, 0.6, Fail, Verdict::Passed),
            (0, 0, 3, 1.0, Fail, Verdict::Failed),
        ] {
            let terms = Gate { pass_rate, untold };
            assert_eq!(gate(passed, decided, all, terms), expect, "{passed} of {decided} of {all} by {terms:?}");
        }
    }
}
