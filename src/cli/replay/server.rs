//! A result of a server, by its id: its caller is made again there.

use ringer_media::seed::Seed;
use serde_json::{Map, Value, json};

use super::Args;
use super::kept::Original;
use crate::cli::run::Stop;
use crate::cli::run::client::{Client, Trouble};
use crate::cli::run::plan::{Job, Plan, Suite, fingerprint};
use crate::cli::run::text_of;
use crate::config::variable;
use crate::model::run::result_seed;
use crate::suite::Played;
use crate::suite::expand::Connect;
use crate::suite::file::{human_fields, simulation_fields};
use crate::suite::scenario::Scenario;
use crate::suite::verdict::{Gate, judge};
use crate::suite::yaml::Place;

/// Fields that make a Digital Human the one that it is, and not its caller. A copy has the name that seeds follow from.
const OWN_FIELDS: [&str; 7] =
    ["svc_as_code_id", "test_name", "suite_name", "num_runs", "always_on_mode", "always_on_active", "workflow_v2_id"];

/// Reads a result and what it was made of.
///
/// # Errors
/// The server is not reached or refuses the key, or the result, its caller or its simulation is not there.
pub(super) async fn read_result(args: &Args, address: &str) -> Result<Original, Stop> {
    let Some(key) = variable("RINGER_API_KEY") else {
        return Err(Stop::bad("RINGER_API_KEY is not set: it is the key of the server"));
    };
    let client = Client::new(address, &key).map_err(Stop::bad)?;
    let id = &args.result;
    let answer = ask(&client, &format!("/v1/retrieve-simulation-result/{id}"), &format!("result {id}")).await?;
    let record = answer["simulation_result"].clone();
    if record["journey_step"].is_i64() {
        return Err(Stop::bad(format!("RESULT {id}: it is a step of a journey, which is not made again alone")));
    }
    let run = text_of(&record["simulation_run_id"]);
    let run =
        ask(&client, &format!("/v1/retrieve-simulation-results/{run}"), &format!("the run of result {id}")).await?;
    let base = run["simulation_run"]["seed"].as_u64().filter(|_| record["seed"].is_u64());
    let Some(base) = base else { return Err(Stop::bad(format!("RESULT {id}: it has no seed"))) };
    let human_id = text_of(&record["digital_human_id"]);
    let human =
        ask(&client, &format!("/v1/digital-human/{human_id}"), &format!("the Digital Human of result {id}")).await?;
    let simulation_id = text_of(&record["simulation_id"]);
    let simulation =
        ask(&client, &format!("/v1/simulation/{simulation_id}"), &format!("the simulation of result {id}")).await?;
    let agent_id = text_of(&record["agent_id"]);
    let scenario = scenario(&human, &simulation, &human_id, id);
    let file = format!("result {id}");
    let (seed, repeat) = (args.seed.unwrap_or(base), args.repeat.unwrap_or(1));
    let run = args.run_args(&["result".to_owned()], false, seed, repeat)?;
    let job = |repetition: u32| Job {
        suite: 0,
        file: file.clone(),
        scenario: scenario.clone(),
        arm: String::new(),
        gates: true,
        fingerprint: fingerprint(&scenario, &[]),
        seed: seed + u64::from(repetition),
    };
    let suite = Suite { at: 0, file: file.clone(), connect: Connect::Named(agent_id), spawn: None, entry: None };
    let plan = Plan::of_calls(suite, (0..repeat).map(job).collect(), &run);
    let recorded = recorded_call(&client, &record, &plan.jobs[0], base).await?;
    let mut notes =
        vec!["The caller, the simulation and the agent are taken as they are on the server today.".to_owned()];
    let key = scenario.human.get("suite_name").and_then(Value::as_str).unwrap_or_default();
    let own = result_seed(Seed(base), key, 0, None);
    let is_first = record["seed"].as_u64() == Some(own.0);
    if !is_first {
        let why = "It is not the first repetition of its caller: what that drew cannot be drawn again, and the result \
                   itself is not held against the calls.";
        notes.push(why.to_owned());
    }
    Ok(Original {
        folder: None,
        recorded: Some(recorded).filter(|_| is_first).into_iter().collect(),
        plan,
        run,
        is_virtual: false,
        notes,
    })
}

/// Asks for something that may be gone.
async fn ask(client: &Client, path: &str, what: &str) -> Result<Value, Stop> {
    match client.get(path).await {
        Err(Trouble::Refused(refusal)) if refusal.status == 404 || refusal.status == 422 => {
            Err(Stop::bad(format!("{what} is not there: {}", refusal.message)))
        }
        other => Ok(other?),
    }
}

/// Returns the scenario of a Digital Human, whose copies draw what it drew.
fn scenario(human: &Value, simulation: &Value, human_id: &str, result_id: &str) -> Scenario {
    let inner = |value: &Value, key: &str| if value[key].is_object() { value[key].clone() } else { value.clone() };
    let human = inner(human, "digital_human");
    let simulation = inner(simulation, "simulation");
    let fields = |value: &Value, names: Vec<String>| -> Map<String, Value> {
        let given = |name: String| Some((name.clone(), value.get(&name).filter(|value| !value.is_null())?.clone()));
        names.into_iter().filter_map(given).collect()
    };
    let seed_key = ["svc_as_code_id", "suite_name"].iter().find_map(|key| human[*key].as_str()).unwrap_or(human_id);
    let mut copy = fields(&human, human_fields());
    OWN_FIELDS.iter().for_each(|name| drop(copy.remove(*name)));
    copy.insert("suite_name".into(), json!(seed_key));
    let settings = simulation["settings"].as_object().into_iter().flatten();
    let mut settings: Map<String, Value> =
        settings.filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect();
    settings.extend(fields(&simulation, simulation_fields()));
    for name in ["agent_id", "svc_as_code_id", "baseline_run_id", "runs_per_digital_human", "always_on"] {
        settings.remove(name);
    }
    settings.insert("name".into(), json!(format!("Replay of result {result_id}")));
    let name = human["name"].as_str().map_or_else(|| format!("result {result_id}"), str::to_owned);
    Scenario {
        name,
        at: Place { file: format!("result {result_id}").into(), line: 1, column: 1 },
        tags: Vec::new(),
        repeat: None,
        gate: Gate::default(),
        human: copy,
        simulation: settings,
        sources: Vec::new(),
        metrics: Vec::new(),
    }
}

/// Returns the call of the result.
async fn recorded_call(client: &Client, record: &Value, job: &Job, base: u64) -> Result<Played, Stop> {
    let id = text_of(&record["id"]);
    let timeline = client.get(&format!("/v1/simulation-result/{id}/timeline")).await;
    let timeline = timeline.ok().and_then(|mut answer| answer["events"].take().as_array().cloned()).unwrap_or_default();
    Ok(Played { record: record.clone(), timeline, seed: base, ..job.not_made(judge(record, None)) })
}
