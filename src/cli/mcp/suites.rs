//! `run_suite` and `read_suite`: a suite as the calls of `ringer run`, queued all at once. Which runs belong to a
//! suite, and its gates, are tags of their simulations, so that they can be read after a restart, and by another
//! assistant.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::asking::{Fault, admit, number_of};
use super::calls;
use super::reading::{is_over, wait, wait_of};
use super::session::Call;
use crate::cli::run::plan::{Job, Plan, Suite};
use crate::cli::run::write::overall;
use crate::cli::run::{Stop, text_of};
use crate::clock::new_id;
use crate::suite::Played;
use crate::suite::expand::Connect;
use crate::suite::file::{Scenario, of_node};
use crate::suite::table::Row;
use crate::suite::verdict::{Gate, Judgement, UntoldRule, judge};
use crate::suite::yaml::{Problem, parse};

/// Name of the suite in the places of problems.
const NAME: &str = "suite.yaml";
/// Most calls of a suite: all of its runs are read in one page.
const MOST_CALLS: usize = 200;
/// Beginning of the tag of a suite's simulations.
const SUITE: &str = "suite-";
/// Beginning of the tag that keeps a gate.
const GATE: &str = "gate-";

/// Arguments of the tool `run_suite`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunSuite {
    yaml: String,
    #[serde(default)]
    filter: Option<String>,
    #[serde(default)]
    repeat: Option<u32>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    wait_s: Option<u64>,
}

/// Arguments of the tool `read_suite`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadSuite {
    suite_run: String,
    #[serde(default)]
    wait_s: Option<u64>,
}

/// Arguments of the tool `stop_suite`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopSuite {
    suite_run: String,
}

/// Runs a suite, and tells how it went or how far it is.
pub(super) async fn run_suite(call: &Call<'_>, asked: RunSuite) -> Result<Value, Fault> {
    let wait_s = wait_of(asked.wait_s)?;
    let word = format!("{SUITE}{}", new_id());
    let plan = plan_of(&asked, &word)?;
    admit(call, &numbers(call, &plan).await?, plan.jobs.len()).await?;
    plan.check_own_metrics(&call.client).await?;
    let ready = plan.make(&call.client, &[], None, false).await?;
    let mut results = Vec::new();
    for (job, ready) in plan.jobs.iter().zip(&ready) {
        let body = json!({ "simulation_id": ready.simulation, "seed": job.seed });
        let queued = call.client.post("/v1/queue-simulation-run", &body).await?;
        results.push(text_of(&queued["simulation_result_ids"][0]));
    }
    wait(call, &results, wait_s).await?;
    tell(call, &word).await
}

/// Tells how the calls of a suite went, after their end or after some time.
pub(super) async fn read_suite(call: &Call<'_>, asked: ReadSuite) -> Result<Value, Fault> {
    let wait_s = asked.wait_s.map_or(Ok(0), |wait_s| wait_of(Some(wait_s)))?;
    if wait_s > 0 {
        let runs = runs(call, &asked.suite_run).await?;
        let ids: Vec<String> = runs.iter().flat_map(|run| &run.results).map(|result| text_of(&result["id"])).collect();
        wait(call, &ids, wait_s).await?;
    }
    tell(call, &asked.suite_run).await
}

/// Ends the calls of a suite.
pub(super) async fn stop_suite(call: &Call<'_>, asked: StopSuite) -> Result<Value, Fault> {
    for run in runs(call, &asked.suite_run).await?.iter().filter(|run| !run.results.iter().all(is_over)) {
        call.client.post(&format!("/v1/simulation-run/{}/cancel?hangup=true", run.id), &json!({})).await?;
    }
    tell(call, &asked.suite_run).await
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Fault {
        match stop {
            Stop::Bad(lines) => Fault::Told(lines.join("\n")),
            Stop::Unreached(why) => Fault::Told(why),
        }
    }
}

/// Returns the calls of a suite. Parts that need the machine of `ringer run` are refused.
fn plan_of(asked: &RunSuite, word: &str) -> Result<Plan, Fault> {
    let lines = |problems: &[Problem]| problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n");
    let root = parse(&asked.yaml, NAME).map_err(|problem| Fault::Told(problem.to_string()))?;
    let suite = of_node(&root, Path::new(NAME)).map_err(|problems| Fault::Told(lines(&problems)))?;
    if suite.spawn.is_some() {
        return Err(Fault::from_text(format!("{NAME}: spawn: commands are started by `ringer run` only")));
    }
    if let Connect::Made(made) = &suite.connect {
        if made.room.is_some() {
            return Err(Fault::from_text(format!(
                "{}: rooms are entered by `ringer run` only, which has their keys",
                made.at
            )));
        }
        if !made.codecs.is_empty() {
            return Err(Fault::from_text(format!("{}: codecs are settings of the engine", made.at)));
        }
    }
    let connect = suite.connect;
    let suites = vec![Suite { at: 0, file: NAME.to_owned(), connect, spawn: None, entry: None }];
    let mut plan = Plan::of_server(suites);
    let mut problems = Vec::new();
    let all: Vec<String> = suite.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    for mut scenario in suite.scenarios {
        problems.extend(plan.check_metrics(&scenario.metrics));
        if asked.filter.as_ref().is_some_and(|text| !scenario.name.contains(text)) {
            continue;
        }
        let repeat = asked.repeat.or(scenario.repeat).unwrap_or(1).clamp(1, MOST_CALLS as u32 + 1);
        mark(&mut scenario, word);
        let first = asked.seed.unwrap_or(1);
        plan.jobs.extend((0..repeat).map(|repetition| Job {
            suite: 0,
            file: NAME.to_owned(),
            scenario: scenario.clone(),
            seed: first.saturating_add(u64::from(repetition)),
            arm: String::new(),
            gates: true,
            fingerprint: String::new(),
        }));
    }
    if problems.is_empty() && plan.jobs.is_empty() {
        problems.push(format!("filter: no scenario has it in its name; there are {}", all.join(", ")));
    }
    if plan.jobs.len() > MOST_CALLS {
        problems.push(format!("the suite would make {} calls or more, at most {MOST_CALLS} are made", plan.jobs.len()));
    }
    if problems.is_empty() { Ok(plan) } else { Err(Fault::Told(problems.join("\n"))) }
}

/// Puts the word of the suite and the gate into the tags of a scenario's simulation.
fn mark(scenario: &mut Scenario, word: &str) {
    let untold =
        UntoldRule::WORDS.iter().find(|(_, rule)| *rule == scenario.gate.untold).map_or("tell", |(name, _)| name);
    let tags = [word.to_owned(), format!("{GATE}{}-{untold}", scenario.gate.pass_rate)];
    let known = scenario.simulation.entry("tags").or_insert_with(|| json!([]));
    if let Some(known) = known.as_array_mut() {
        known.extend(tags.map(Value::from));
    }
    scenario.simulation.entry("name").or_insert_with(|| json!(scenario.name));
}

/// Returns the gate that a run's tags keep.
fn gate_of(tags: &Value) -> Gate {
    let kept = tags.as_array().into_iter().flatten().filter_map(Value::as_str).find_map(|tag| tag.strip_prefix(GATE));
    let read = |kept: &str| {
        let (rate, word) = kept.split_once('-')?;
        let (_, untold) = UntoldRule::WORDS.into_iter().find(|(name, _)| *name == word)?;
        Some(Gate { pass_rate: rate.parse().ok()?, untold })
    };
    kept.and_then(read).unwrap_or_default()
}

/// Returns the telephone numbers that a suite calls.
async fn numbers(call: &Call<'_>, plan: &Plan) -> Result<Vec<String>, Fault> {
    let mut numbers = Vec::new();
    for suite in &plan.suites {
        match &suite.connect {
            Connect::Made(made) => numbers.extend(number_of(&made.agent)),
            Connect::Named(name) => {
                let agent = calls::find(call, name).await?;
                numbers.extend(number_of(agent.as_object().unwrap_or(&Map::new())));
            }
        }
    }
    Ok(numbers)
}

/// A run of a suite.
struct Run {
    id: String,
    scenario: String,
    seed: u64,
    gate: Gate,
    results: Vec<Value>,
}

/// Returns the runs of a suite in the order of its calls.
async fn runs(call: &Call<'_>, word: &str) -> Result<Vec<Run>, Fault> {
    let is_word = word.starts_with(SUITE) && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let unknown = || Fault::from_text(format!("suite_run: there is no suite {word:?} at this server"));
    if !is_word {
        return Err(unknown());
    }
    let page = call.client.get(&format!("/v1/simulation-runs?tag={word}&limit={MOST_CALLS}")).await?;
    let mut runs = Vec::new();
    for run in page["simulation_runs"].as_array().into_iter().flatten().rev() {
        let id = text_of(&run["id"]);
        let mut whole = call.client.get(&format!("/v1/retrieve-simulation-results/{id}")).await?;
        let results = whole["simulation_results"].as_array_mut().map(std::mem::take).unwrap_or_default();
        runs.push(Run {
            id,
            scenario: run["simulation_name"].as_str().unwrap_or_default().to_owned(),
            seed: run["seed"].as_u64().unwrap_or_default(),
            gate: gate_of(&run["tags"]),
            results,
        });
    }
    if runs.is_empty() { Err(unknown()) } else { Ok(runs) }
}

/// Tells a suite as it is now.
async fn tell(call: &Call<'_>, word: &str) -> Result<Value, Fault> {
    let runs = runs(call, word).await?;
    let mut scenarios: Vec<(&str, Gate, Vec<Played>)> = Vec::new();
    let mut open = 0;
    for run in &runs {
        let made = run.results.iter().map(|record| call_of_run(run, record));
        open += run.results.iter().filter(|record| !is_over(record)).count();
        match scenarios.iter_mut().find(|(name, _, _)| *name == run.scenario) {
            Some((_, _, calls)) => calls.extend(made),
            None => scenarios.push((&run.scenario, run.gate, made.collect())),
        }
    }
    let rows: Vec<Row> =
        scenarios.iter().map(|(_, gate, calls)| Row::of(&calls.iter().collect::<Vec<_>>(), *gate)).collect();
    let verdict = if open > 0 { "running" } else { overall(&rows).as_str() };
    let told = rows.iter().zip(&scenarios).map(|(row, (name, _, calls))| {
        json!({
            "scenario": name, "gate": if calls.iter().all(|call| is_over(&call.record)) { row.gate.as_str() } else { "running" },
            "passed": row.passed, "failed": row.failed, "unreachable": row.unreachable, "unknown": row.unknown,
            "p50_agent_latency_s": row.p50, "p95_agent_latency_s": row.p95,
            "calls": calls.iter().map(of_call).collect::<Vec<_>>(),
        })
    });
    let mut told = json!({ "suite_run": word, "verdict": verdict, "scenarios": told.collect::<Vec<_>>() });
    if open > 0 {
        told["next"] = json!(format!("{open} conversations go on: read_suite with wait_s tells their end"));
    }
    Ok(told)
}

fn of_call(call: &Played) -> Value {
    let Judgement { verdict, code, reason } = &call.judgement;
    let is_open = !is_over(&call.record);
    json!({
        "result_id": call.result_id(), "seed": call.seed, "status": call.record["status"],
        "verdict": if is_open { "running" } else { verdict.as_str() },
        "code": if is_open { "" } else { code }, "reason": if is_open { "" } else { reason },
        "queue_reason": call.record["queue_reason"],
    })
}

fn call_of_run(run: &Run, record: &Value) -> Played {
    Played {
        file: NAME.to_owned(),
        scenario: run.scenario.clone(),
        seed: run.seed,
        arm: String::new(),
        gates: true,
        judgement: judge(record, None),
        record: record.clone(),
        transcript: Vec::new(),
        timeline: Vec::new(),
        turns: Vec::new(),
        peaks: Value::Null,
        opus: Vec::new(),
        files: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(yaml: &str) -> RunSuite {
        RunSuite { yaml: yaml.to_owned(), filter: None, repeat: None, seed: None, wait_s: None }
    }

    fn problem(yaml: &str) -> String {
        match plan_of(&run_of(yaml), "suite-1") {
            Err(Fault::Told(why)) => why,
            _ => panic!("it is planned: {yaml}"),
        }
    }

    const SCENARIOS: &str = "scenarios:\n  - { name: books, goal: Book. }\n";

    #[test]
    fn what_needs_the_machine_of_a_run_is_refused() {
        let sip = "version: 1\nconnect: { sip: \"sip:a@127.0.0.1:5\" }\n";
        for (yaml, expect) in [
            (format!("{sip}spawn: {{ command: [\"true\"] }}\n{SCENARIOS}"), "spawn"),
            (format!("version: 1\nconnect: {{ sip: \"sip:a@127.0.0.1:5\", codecs: [PCMU] }}\n{SCENARIOS}"), "codecs"),
            (format!("version: 1\nconnect: {{ room: \"wss://rooms.example\", agent_name: a }}\n{SCENARIOS}"), "rooms"),
            (format!("version: 1\nconnect: !include x.yaml\n{SCENARIOS}"), "suite.yaml:2"),
            (format!("{sip}{SCENARIOS}  - {{ name: books }}\n"), "there twice"),
            ("scenarios: [".to_owned(), "suite.yaml:"),
        ] {
            let why = problem(&yaml);
            assert!(why.contains(expect), "{why}");
        }
    }

    #[test]
    fn a_gate_is_kept_in_tags() {
        let yaml = "version: 1\nconnect: { sip: \"sip:a@127.0.0.1:5\" }\n\
             scenarios:\n  - { name: a, goal: Book., repeat: 3, gate: { pass_rate: 0.65, untold: ignore } }\n  - { name: b, goal: Go. }\n";
        let Ok(plan) = plan_of(&run_of(yaml), "suite-1") else { panic!("it is a suite") };
        assert_eq!(plan.jobs.iter().map(|job| job.seed).collect::<Vec<_>>(), [1, 2, 3, 1]);
        for job in &plan.jobs {
            let tags = &job.scenario.simulation["tags"];
            assert_eq!((gate_of(tags), &tags[0]), (job.scenario.gate, &json!("suite-1")));
        }
        assert_eq!(gate_of(&json!(["x", "gate-nan"])), Gate::default());
    }
}
