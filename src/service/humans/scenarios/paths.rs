//! Digital Humans that play the paths of a scenario, and likely mistakes in a scenario.

use ringer_model::Object;
use ringer_model::digital_human::{DigitalHumanSpec, Role};
use serde_json::{Value, json};
use uuid::Uuid;

use super::graph::{Act, Graph, MAX_PATHS, Path, Stop};

/// Tag of a Digital Human whose path is still in its scenario.
pub(crate) const WORKFLOW: &str = "workflow";
/// Tag of one whose path is gone.
pub(crate) const STALE: &str = "workflow stale";

/// Returns the name of the Digital Human of a path, counted from 0.
pub(crate) fn name(scenario: &str, index: usize) -> String {
    format!("{scenario} - path {}", index + 1)
}

/// Calls a Digital Human that is called after its path of the scenario `old` after that of `new`, which may have
/// another `index` there. A count behind the name stays.
pub(crate) fn rename(human: &mut DigitalHumanSpec, (old, new): (&str, &str), index: Option<usize>) {
    let Some(was) = human.workflow_path_index.and_then(|index| usize::try_from(index).ok()) else { return };
    let rest = human.name.as_deref().and_then(|full| full.strip_prefix(name(old, was).as_str()));
    if let Some(count) = rest.filter(|rest| rest.is_empty() || rest.starts_with(" (")) {
        human.name = Some(name(new, index.unwrap_or(was)) + count);
    }
}

/// Returns the node ids after the start, to the leaf.
pub(crate) fn node_ids(path: &Path) -> Vec<String> {
    path.iter().map(|stop| stop.id.clone()).collect()
}

/// Lays a path over a Digital Human: everything that follows from the path, and nothing else.
/// `scenario_id`: `None` for the workflow of an agent.
pub(crate) fn lay(human: &mut DigitalHumanSpec, scenario_id: Option<Uuid>, scenario: &str, index: usize, path: &Path) {
    human.tag = Some(WORKFLOW.into());
    human.workflow_v2_id = scenario_id;
    human.workflow_path_index = Some(index as i64);
    human.tested_path = Some(node_ids(path));
    human.enriched_playback = Some(path.iter().map(step).collect());
    word(human, scenario, index, path);
}

/// Lays over it what names the path.
pub(crate) fn word(human: &mut DigitalHumanSpec, scenario: &str, index: usize, path: &Path) {
    let of = |speaker: Role| {
        let done = path.iter().filter(move |stop| stop.content.speaker == speaker);
        done.map(|stop| describe_act(&stop.content.act)).collect::<Vec<_>>().join("; ")
    };
    let (own, others) = (of(Role::User), of(Role::Agent));
    let path_name = name(scenario, index);
    human.intent =
        if own.is_empty() { format!("Listen along '{path_name}'.") } else { format!("Follow '{path_name}': {own}.") };
    human.success_criteria = match others.is_empty() {
        true => format!("The agent lets the caller go through '{path_name}' to its end."),
        false => format!("The agent follows '{path_name}', in this order: {others}."),
    };
}

/// Returns one step of the playback (`enriched_playback`).
fn step(stop: &Stop) -> Object {
    let agent = stop.content.speaker == Role::Agent;
    let (kind, key, value) = match &stop.content.act {
        Act::Exact(text) => ("message", if agent { "exact_match_text" } else { "exact_message" }, json!(text)),
        Act::Contextual(text) => ("message", "criteria", json!(text)),
        Act::SilenceMs(ms) => ("silence", "duration_ms", json!(ms)),
        Act::Dtmf(digits) => ("dtmf", "digits", json!(digits)),
    };
    let speaker = if agent { "agent" } else { "user" };
    let members: [(&str, Value); 4] =
        [("speaker", json!(speaker)), ("type", json!(kind)), (key, value), ("node_id", json!(stop.id))];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn describe_act(act: &Act) -> String {
    match act {
        Act::Exact(text) => format!("says \"{text}\""),
        Act::Contextual(text) => text.trim().trim_end_matches('.').to_owned(),
        Act::SilenceMs(ms) => format!("stays silent for {ms} ms"),
        Act::Dtmf(digits) => format!("presses {digits}"),
    }
}

/// Returns the warning of a graph whose paths were cut off.
pub(crate) fn cut_warning(cut: bool) -> Vec<String> {
    if cut { vec![format!("Only the first {MAX_PATHS} paths are used")] } else { Vec::new() }
}

/// Returns likely mistakes for the linked agents. `known`: names of the traits that each agent has.
pub(crate) fn warnings(graph: &Graph, known: &[(i64, Vec<String>)]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (node, content) in graph.contents() {
        let (Act::Exact(text) | Act::Contextual(text)) = &content.act else { continue };
        for name in placeholders(text) {
            let lacking = known.iter().filter(|(_, traits)| !traits.iter().any(|known| known == name));
            warnings.extend(
                lacking.map(|(agent, _)| {
                    format!("Node '{node}' references unknown trait '{{{{{name}}}}}' of agent {agent}")
                }),
            );
        }
    }
    for (first, second) in graph.agent_after_agent() {
        warnings.push(format!("Agent node '{second}' directly follows agent node '{first}'"));
    }
    let (paths, cut) = graph.paths();
    for (index, path) in paths.iter().enumerate() {
        if !path.iter().any(|stop| stop.content.speaker == Role::User) {
            warnings.push(format!("Path {} has no user turn", index + 1));
        }
    }
    warnings.extend(cut_warning(cut));
    warnings
}

/// Returns the names in `{{name}}`, each once, in order.
fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for part in text.split("{{").skip(1) {
        let name = part.split_once("}}").map_or("", |(name, _)| name);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
