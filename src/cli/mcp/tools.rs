//! The tools: their names, what they take, and who performs them.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::asking::Fault;
use super::reading::{MOST_WAIT_S, WAIT_S};
use super::session::Call;
use super::{calls, levers, reading, suites};
use crate::cli::run::schema;

/// Arguments of a tool without any.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct None {}

/// Arguments of the tool `list_runs`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListRuns {
    #[serde(default = "twenty")]
    limit: u32,
}

fn twenty() -> u32 {
    20
}

/// Performs a tool call of an assistant.
pub(super) async fn perform(call: &Call<'_>, name: &str, arguments: Map<String, Value>) -> Result<Value, Fault> {
    match name {
        "call_agent" => calls::call_agent(call, arguments_of(name, arguments)?).await,
        "run_suite" => suites::run_suite(call, arguments_of(name, arguments)?).await,
        "read_suite" => suites::read_suite(call, arguments_of(name, arguments)?).await,
        "stop_suite" => suites::stop_suite(call, arguments_of(name, arguments)?).await,
        "read_result" => reading::read_result(call, arguments_of(name, arguments)?).await,
        "list_runs" => {
            let ListRuns { limit } = arguments_of(name, arguments)?;
            Ok(call.client.get(&format!("/v1/simulation-runs?limit={limit}")).await?)
        }
        "list_agents" => arguments_of::<None>(name, arguments).map(drop).map(|()| calls::agents(call))?.await,
        "suite_schema" => arguments_of::<None>(name, arguments).map(|_| schema::schema()),
        "list_voices" => arguments_of::<None>(name, arguments).map(drop).map(|()| levers::voices(call))?.await,
        "list_noises" => arguments_of::<None>(name, arguments).map(drop).map(|()| levers::noises(call))?.await,
        "list_levers" => arguments_of::<None>(name, arguments).map(drop).map(|()| levers::levers(call))?.await,
        _ => {
            let known: Vec<String> = all().iter().map(|tool| tool.name.to_string()).collect();
            Err(Fault::from_text(format!("there is no tool {name:?}; there are {}", known.join(", "))))
        }
    }
}

fn arguments_of<T: DeserializeOwned>(name: &str, arguments: Map<String, Value>) -> Result<T, Fault> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Fault::from_text(format!("{name}: arguments: {error}")))
}

/// Returns the tools that assistants are offered.
pub(super) fn all() -> Vec<Tool> {
    let wait = json!({ "type": "integer", "minimum": 0, "maximum": MOST_WAIT_S,
        "description": format!("Seconds to wait for the end; default {WAIT_S}. 0 only starts.") });
    let seed = json!({ "type": "integer", "minimum": 0,
        "description": "Seed of all random choices; the same seed repeats the same caller. Default 1." });
    let suite = json!({ "type": "string", "description": "The word suite_run of run_suite." });
    let mut tools = vec![
        changing(
            "call_agent",
            "Call an agent once, as a simulated caller. Tells verdict, words and latencies, or the id \
            of the result to read later.",
            json!({
                "agent": { "type": "string", "description": "Id or name of a known agent, or an address: sip:, sips:, ws:, \
                    wss:, or a telephone number as +14155550100 (only where numbers are allowed)." },
                "intent": { "type": "string", "description": "What the caller wants, in a sentence." },
                "digital_human": { "type": "object", "description": "Further fields of the caller; list_levers names them." },
                "simulation": { "type": "object", "description": "Fields of the simulation, like max_call_duration." },
                "seed": seed, "wait_s": wait,
            }),
            &["agent", "intent"],
        ),
        changing(
            "run_suite",
            "Run a suite of scenarios, given as YAML. Tells the verdict of each scenario, or the word by \
            which read_suite tells it later. suite_schema has what a suite may say.",
            json!({
                "yaml": { "type": "string", "description": "The suite: version, connect, scenarios." },
                "filter": { "type": "string", "description": "Only scenarios whose name has this text." },
                "repeat": { "type": "integer", "minimum": 1, "maximum": 100, "description": "Calls of each scenario." },
                "seed": seed, "wait_s": wait,
            }),
            &["yaml"],
        ),
        reading_tool(
            "read_suite",
            "Tell how the calls of a suite went, or how far they are.",
            json!({ "suite_run": suite, "wait_s": wait }),
            &["suite_run"],
        ),
        changing(
            "stop_suite",
            "Hang up the calls of a suite and cancel those that have not begun.",
            json!({ "suite_run": suite }),
            &["suite_run"],
        ),
        reading_tool(
            "read_result",
            "Tell one conversation: verdict and why, transcript, latency of each turn, metrics, \
            expectations. Recording and timeline are resources.",
            json!({
                "result_id": { "type": ["integer", "string"], "description": "Id of the result." }, "wait_s": wait,
            }),
            &["result_id"],
        ),
    ];
    tools.extend(lists());
    tools
}

/// Returns the tools that list what there is.
fn lists() -> [Tool; 6] {
    [
        reading_tool(
            "list_runs",
            "List runs, newest first.",
            json!({
            "limit": { "type": "integer", "minimum": 1, "maximum": 200, "description": "Most runs; default 20." } }),
            &[],
        ),
        reading_tool("list_agents", "List the agents that are known by name.", json!({}), &[]),
        reading_tool("suite_schema", "Give the JSON Schema of suites, with every field of a scenario.", json!({}), &[]),
        reading_tool("list_voices", "List what a caller's voice can be: languages, accents, genders.", json!({}), &[]),
        reading_tool("list_noises", "List the noises behind a caller, built in and uploaded.", json!({}), &[]),
        reading_tool(
            "list_levers",
            "List what one can vary in a scenario, with the numbers behind each level.",
            json!({}),
            &[],
        ),
    ]
}

fn changing(name: &'static str, text: &'static str, properties: Value, required: &[&str]) -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(false).open_world(true);
    tool(name, text, properties, required).with_annotations(hints)
}

fn reading_tool(name: &'static str, text: &'static str, properties: Value, required: &[&str]) -> Tool {
    tool(name, text, properties, required).with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

fn tool(name: &'static str, text: &'static str, properties: Value, required: &[&str]) -> Tool {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    Tool::new(name, text, Arc::new(schema.as_object().cloned().unwrap_or_default()))
}
