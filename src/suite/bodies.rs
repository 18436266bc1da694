//! A suite as bodies of the API's routes, for those who import one. Nothing of it is run.

use std::path::Path;

use super::expand::Connect;
use super::yaml::{Problem, parse};
use super::{file, scenario::Suite};
use crate::api::SuiteOut;

/// Name that places of problems have.
const NAME: &str = "suite.yaml";

/// Reads the YAML of a suite that stands alone.
///
/// # Errors
/// Every problem with its line and column, one a line.
pub fn bodies_of(yaml: &str) -> Result<SuiteOut, String> {
    let lines = |problems: Vec<Problem>| problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n");
    let root = parse(yaml, NAME).map_err(|problem| problem.to_string())?;
    let suite = file::of_node(&root, Path::new(NAME)).map_err(lines)?;
    let Suite { connect, spawn, scenarios, .. } = suite;
    let (agent, agent_name) = match connect {
        Connect::Named(name) => (None, Some(name)),
        Connect::Made(made) => (Some(made.agent), None),
    };
    let mut warnings = Vec::new();
    if spawn.is_some() {
        warnings.push("spawn: only `ringer run` starts a command".to_owned());
    }
    let simulation = scenarios.first().map(|scenario| scenario.simulation.clone()).unwrap_or_default();
    if scenarios.iter().any(|scenario| scenario.simulation != simulation) {
        warnings.push("scenarios have different settings of the simulation: those of the first are taken".to_owned());
    }
    let digital_humans = scenarios
        .into_iter()
        .map(|scenario| {
            let mut human = scenario.human;
            human.entry("name").or_insert_with(|| scenario.name.clone().into());
            human.extend(
                scenario.repeat.filter(|repeat| *repeat > 1).map(|repeat| ("num_runs".to_owned(), repeat.into())),
            );
            human
        })
        .collect();
    Ok(SuiteOut { agent, agent_name, simulation, digital_humans, warnings })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_suite_becomes_an_agent_a_simulation_and_callers() {
        let suite = "version: 1\nconnect: { sip: \"sip:desk@127.0.0.1:5080\" }\ndefaults: { repeat: 3, max_seconds: 90 }\n\
                     scenarios:\n  - name: books a visit\n    goal: Book a visit.\n    success: A day is named.\n    \
                     expect:\n      - { metric: p95_agent_latency, at_most: 1.5 }\n";
        let made = bodies_of(suite).expect("a good suite");
        assert_eq!(made.agent.expect("an agent")["sip_uri"], "sip:desk@127.0.0.1:5080");
        assert_eq!((&made.simulation["max_call_duration"], made.warnings.len()), (&json!(90), 0));
        let human = &made.digital_humans[0];
        assert_eq!((&human["intent"], &human["num_runs"]), (&json!("Book a visit."), &json!(3)));
        let metrics: Vec<&str> =
            human["expectations"].as_array().expect("a list").iter().filter_map(|one| one["metric"].as_str()).collect();
        assert_eq!(metrics, ["p95_agent_latency"]);
    }

    #[test]
    fn problems_are_told_with_their_places() {
        for (suite, place) in [
            ("scenarios: [", "suite.yaml:2:1"),
            ("version: 1\nconnect: { sipp: x }\nscenarios: []\n", "suite.yaml:2"),
            ("version: 1\nconnect: !include Cargo.toml\n", "!include Cargo.toml: a suite that is no file"),
            ("version: 1\nconnect: !include ../../etc/hostname\n", "a suite that is no file"),
        ] {
            let wrong = bodies_of(suite).expect_err("a bad suite");
            assert!(wrong.contains(place), "{wrong}");
        }
    }
}
