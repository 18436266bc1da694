//! Groups of the document's operations, each with a sentence about its things.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Every group and its description, in the order of the document.
const TAGS: [(&str, &str); 28] = [
    ("System", "State of the engine, this document and its page."),
    ("API keys", "Keys of an organization, each with the scope read, write or admin."),
    ("Agents", "Voice and text agents under test, and how they are reached."),
    ("Folders", "Folders that agents are sorted into."),
    ("Integrations", "Credentials of the platforms on which agents run."),
    ("Simulations", "Sets of Digital Humans for an agent, with the settings of their conversations."),
    ("Runs", "Executions of simulations."),
    ("Results", "Conversations of runs: status, timeline, transcript, recording, evaluation."),
    ("Text", "Messages of text conversations."),
    ("Digital Humans", "Simulated callers: what they want, how they speak and what is expected of the agent."),
    ("Webhooks", "URLs that events are posted to, with their signing keys and deliveries."),
    ("Judges", "How far language models that judge can be trusted."),
    ("Schedules", "Times at which simulations are run."),
    ("Internal", "Routes for other programs of the operator."),
    ("Agent versions", "Versions of an agent's system prompt."),
    ("Labels", "Names for versions of an agent, such as production."),
    ("Custom metrics", "Own measures that results are evaluated by."),
    ("Push and pull", "Agents, simulations and Digital Humans as one declarative document."),
    ("Scenarios", "Graphs that the conversation of a Digital Human follows."),
    ("Customers", "Personas and traits that Digital Humans are made of."),
    ("Communities", "Groups of Digital Humans that simulations can refer to."),
    ("Background noises", "Own recordings that are played behind a Digital Human."),
    ("Generation", "Digital Humans and test scenarios written by a language model or by rules."),
    ("Issues", "Similar failures of an agent as one entry."),
    ("Call logs", "Conversations that took place elsewhere, evaluated as results are."),
    ("Uptime", "Monitors: calls that are repeated to watch an agent."),
    ("Alerts", "Rules on results, and what broke them."),
    ("Phone numbers", "Numbers that Digital Humans call from and can be called at."),
];

/// Returns the descriptions of the groups in `used`.
pub(super) fn describe(used: &BTreeSet<&str>) -> Value {
    let all = TAGS.iter().filter(|(name, _)| used.contains(name));
    all.map(|(name, about)| json!({ "name": name, "description": about })).collect()
}
