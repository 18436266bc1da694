//! `call_agent`: one call to an agent, and the list of agents.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::asking::{Fault, admit, number_of};
use super::reading::{self, wait_of};
use super::session::Call;
use crate::cli::run::text_of;
use crate::config::nearest;

/// Arguments of the tool `call_agent`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallAgent {
    agent: String,
    intent: String,
    #[serde(default)]
    digital_human: Map<String, Value>,
    #[serde(default)]
    simulation: Map<String, Value>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    wait_s: Option<u64>,
}

/// Makes a call, and tells what came of it.
pub(super) async fn call_agent(call: &Call<'_>, asked: CallAgent) -> Result<Value, Fault> {
    let wait_s = wait_of(asked.wait_s)?;
    let (id, fields) = match address(&asked.agent) {
        Some(fields) => (None, fields),
        None => {
            let agent = find(call, &asked.agent).await?;
            (Some(agent["id"].clone()), agent.as_object().cloned().unwrap_or_default())
        }
    };
    admit(call, number_of(&fields).as_slice(), 1).await?;
    let id = match id {
        Some(id) => id,
        None => call.client.post("/v1/add-agent", &Value::Object(fields)).await?["agent_id"].clone(),
    };
    let mut simulation = asked.simulation;
    simulation.insert("agent_id".to_owned(), json!(text_of(&id)));
    simulation.entry("name").or_insert_with(|| json!("Call of an assistant"));
    let made = call.client.post("/v1/create-simulation", &Value::Object(simulation)).await?;
    let mut human = asked.digital_human;
    human.insert("intent".to_owned(), json!(asked.intent));
    let body = json!({ "digital_human": human, "simulation_ids": [made["simulation_id"]] });
    call.client.post("/v1/create-digital-human", &body).await?;
    let body = json!({ "simulation_id": text_of(&made["simulation_id"]), "seed": asked.seed.unwrap_or(1) });
    let queued = call.client.post("/v1/queue-simulation-run", &body).await?;
    let result = text_of(&queued["simulation_result_ids"][0]);
    reading::wait(call, std::slice::from_ref(&result), wait_s).await?;
    reading::tell(call, &result).await
}

/// Returns the fields of an agent at this address; `None`: it is a name.
fn address(agent: &str) -> Option<Map<String, Value>> {
    let lower = agent.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    let (connection, field) = match () {
        () if begins(&["sip:", "sips:", "tel:"]) => ("SIP", "sip_uri"),
        () if begins(&["ws:", "wss:"]) => ("WEBSOCKET", "websocket_url"),
        () if begins(&["+"]) => ("PHONE", "phone_number"),
        () => return None,
    };
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!("Called by an assistant"));
    if connection != "PHONE" {
        fields.insert("connection_type".to_owned(), json!(connection));
    }
    fields.insert(field.to_owned(), json!(agent));
    Some(fields)
}

/// Returns an agent by its id, or by its name where no other has it.
pub(super) async fn find(call: &Call<'_>, name: &str) -> Result<Value, Fault> {
    let all = all(call).await?;
    let named: Vec<&Value> = all.iter().filter(|agent| agent["name"] == name).collect();
    match named[..] {
        [agent] => Ok(agent.clone()),
        [] => {
            let by_id = all.iter().find(|agent| text_of(&agent["id"]) == name);
            let near = nearest(name, all.iter().filter_map(|agent| agent["name"].as_str()));
            by_id.cloned().ok_or_else(|| {
                Fault::from_text(format!(
                    "agent: {name:?} is neither an agent{near} nor an address (sip:, sips:, ws:, wss:, +digits)"
                ))
            })
        }
        _ => Err(Fault::from_text(format!("agent: several agents have the name {name:?}: give the id"))),
    }
}

async fn all(call: &Call<'_>) -> Result<Vec<Value>, Fault> {
    let all = call.client.get("/v1/all-agents").await?;
    Ok(all["agents"].as_array().or(all.as_array()).cloned().unwrap_or_default())
}

/// Tells the agents: names, not their credentials.
pub(super) async fn agents(call: &Call<'_>) -> Result<Value, Fault> {
    let short = |agent: &Value| {
        json!({
            "id": text_of(&agent["id"]), "name": agent["name"], "type": agent["type"], "mode": agent["mode"],
            "connection_type": agent["connection_type"],
        })
    };
    Ok(json!({ "agents": all(call).await?.iter().map(short).collect::<Vec<_>>() }))
}
