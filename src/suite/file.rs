//! The words of a suite: what it connects to, what it starts, and its scenarios, each as a Digital Human and a
//! simulation of the API.

use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::expand::connect;
use super::fitting::Fields;
use super::mask::mask;
use super::reading::{check_known, number, texts, written_args};
use super::scenario::RING_S;
pub use super::scenario::{Scenario, Suite};
use super::spawn::spawn;
use super::verdict::{Gate, UntoldRule};
use super::yaml::{Loaded, Node, Place, Problem, load};
use super::{evals, turns};
use crate::model::digital_human::DigitalHumanSpec;
use crate::model::expectation::Expectation;
use crate::model::simulation::SimulationSpec;

/// Version of the words of a suite.
pub const VERSION: i64 = 1;
/// Most repetitions of a scenario.
pub const REPEAT_MAX: u32 = 1000;
/// Words of a whole file.
pub const WORDS: [&str; 5] = ["version", "connect", "spawn", "defaults", "scenarios"];
/// Words of a scenario beside the fields of a Digital Human and of a simulation.
pub const SCENARIO: [&str; 14] = [
    "name",
    "tags",
    "persona",
    "goal",
    "traits",
    "success",
    "expect",
    "turns",
    "repeat",
    "noise",
    "noise_db",
    "network",
    "max_seconds",
    "ring_seconds",
];

/// Reads a file.
///
/// # Errors
/// Everything that is wrong in it.
pub fn from_file(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Suite, Vec<Problem>> {
    let Loaded { root, masked } = load(path, variable)?;
    // What is wrong may be told with the value that is.
    let hidden = |problem: Problem| Problem { text: mask(&problem.text, &masked), ..problem };
    match of_node(&root, path) {
        Ok(suite) => Ok(Suite { masked, ..suite }),
        Err(problems) => Err(problems.into_iter().map(hidden).collect()),
    }
}

/// Reads a document.
///
/// # Errors
/// Everything that is wrong in it.
pub fn of_node(root: &Node, path: &Path) -> Result<Suite, Vec<Problem>> {
    if evals::is_in_these_words(root) {
        return evals::suite(root, path);
    }
    let mut problems = Vec::new();
    let Some(members) = root.members() else {
        return Err(vec![Problem::new(&root.at, "a suite is a map with version, connect and scenarios")]);
    };
    members.iter().for_each(|(key, _)| check_known(key, WORDS.into_iter(), &mut problems));
    match root.get("version").map(Node::json) {
        Some(version) if version == json!(VERSION) => {}
        Some(version) => {
            let at = root.get("version").map_or(&root.at, |node| &node.at);
            problems.push(Problem::new(at, format!("version {version} is not known, {VERSION} is")));
        }
        None => problems.push(Problem::new(&root.at, format!("version is missing: write version: {VERSION}"))),
    }
    let connect = match root.get("connect") {
        Some(node) => connect(node).map_err(|wrong| problems.extend(wrong)).ok(),
        None => {
            problems.push(Problem::new(&root.at, "connect is missing: it says what is called"));
            None
        }
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let spawn = root.get("spawn").and_then(|node| spawn(node, folder).map_err(|wrong| problems.extend(wrong)).ok());
    let nothing = Node { at: root.at.clone(), kind: super::yaml::Kind::Map(Vec::new()) };
    let defaults = root.get("defaults").unwrap_or(&nothing);
    let mut scenarios: Vec<Scenario> = Vec::new();
    match root.get("scenarios").map(|node| (node, node.items())) {
        Some((_, Some(items))) if !items.is_empty() => {
            for item in items {
                match scenario(item, defaults) {
                    Ok(made) => scenarios.push(made),
                    Err(wrong) => {
                        problems.extend(wrong.into_iter().filter(|one| !problems.contains(one)).collect::<Vec<_>>())
                    }
                }
            }
        }
        Some((node, _)) => problems.push(Problem::new(&node.at, "scenarios must be a list of at least one scenario")),
        None => problems.push(Problem::new(&root.at, "scenarios is missing")),
    }
    for (at, scenario) in scenarios.iter().enumerate() {
        if scenarios[..at].iter().any(|other| other.name == scenario.name) {
            problems.push(Problem::new(&scenario.at, format!("the name '{}' is there twice", scenario.name)));
        }
    }
    match (connect, problems.is_empty()) {
        (Some(connect), true) => Ok(Suite { connect, spawn: spawn.flatten(), scenarios, masked: Vec::new() }),
        _ => Err(problems),
    }
}

fn fields_of(default: impl serde::Serialize) -> Vec<String> {
    match serde_json::to_value(default) {
        Ok(Value::Object(fields)) => fields.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Names of the fields of a Digital Human.
pub fn human_fields() -> Vec<String> {
    fields_of(DigitalHumanSpec::default())
}

/// Names of the fields of a simulation.
pub fn simulation_fields() -> Vec<String> {
    fields_of(SimulationSpec::default())
}

/// Fields of a Digital Human, by which those of a file are checked.
static HUMAN: LazyLock<Fields> = LazyLock::new(Fields::of::<DigitalHumanSpec>);
/// Fields of a simulation.
static SIMULATION: LazyLock<Fields> = LazyLock::new(Fields::of::<SimulationSpec>);

/// Settings of a scenario, its own over the defaults.
struct Words<'n> {
    own: &'n Node,
    defaults: &'n Node,
}

impl<'n> Words<'n> {
    fn get(&self, name: &str) -> Option<&'n Node> {
        self.own.get(name).or_else(|| self.defaults.get(name))
    }

    /// Returns the values of words that stand for a field of the API, by that field.
    fn sources(&self) -> impl Iterator<Item = (String, Node)> {
        let fields = [
            ("persona", "role_description"),
            ("goal", "intent"),
            ("turns", "enriched_playback"),
            ("expect", "expectations"),
            ("traits", "traits"),
        ];
        fields.into_iter().filter_map(|(word, field)| Some((field.to_owned(), self.get(word)?.clone())))
    }
}

fn scenario(own: &Node, defaults: &Node) -> Result<Scenario, Vec<Problem>> {
    let mut problems = Vec::new();
    let words = Words { own, defaults };
    if own.members().is_none() {
        return Err(vec![Problem::new(&own.at, "a scenario is a map with a name")]);
    }
    let name = match own.get("name").map(|node| (node, node.text().map(str::trim))) {
        Some((_, Some(name))) if !name.is_empty() => name.to_owned(),
        Some((node, _)) => {
            problems.push(Problem::new(&node.at, "name must be a text"));
            String::new()
        }
        None => {
            problems.push(Problem::new(&own.at, "the scenario has no name"));
            String::new()
        }
    };
    let at = own.get("name").map_or(&own.at, |node| &node.at).clone();
    let mut sources = Vec::new();
    let (mut human, mut simulation) = fields(own, defaults, &mut sources, &mut problems);
    let tags = texts(words.get("tags"), "tags", &mut problems);
    read_persona(&words, &mut human, &mut problems);
    conditions(&words, &mut human, &mut simulation, &mut problems);
    let mut expectations = match human.remove("expectations") {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    let given = words.get("expectations").and_then(Node::items).unwrap_or_default();
    for (made, item) in expectations.iter_mut().filter_map(Value::as_object_mut).zip(given) {
        made.extend(item.get("args").and_then(written_args));
    }
    if let Some(node) = words.get("success") {
        match node.text() {
            Some(text) => expectations.push(json!({ "meaning": text })),
            None => problems.push(Problem::new(&node.at, "success must be a text")),
        }
    }
    let mut metrics = Vec::new();
    for source in [defaults, own] {
        expect(source.get("expect"), &mut expectations, &mut problems);
        metrics.extend(named_metrics(source.get("expect")));
        metrics.extend(named_metrics(source.get("expectations")));
    }
    human.insert("expectations".into(), expectations.into());
    sources.extend(words.sources());
    if let Some(node) = words.get("turns") {
        match turns::steps(node) {
            Ok(steps) => {
                human.insert("enriched_playback".into(), steps.into());
                human.entry("stop_on_failure").or_insert(json!(true));
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    human.insert("suite_name".into(), json!(name));
    human.entry("name").or_insert_with(|| json!(name));
    human.insert("tags".into(), json!(tags));
    let repeat = number(words.get("repeat"), "repeat", 1.0, REPEAT_MAX.into(), &mut problems).map(|count| count as u32);
    let gate = gate(words.get("gate"), &mut problems);
    match problems.is_empty() {
        true => Ok(Scenario { name, at, tags, repeat, gate, human, simulation, sources, metrics }),
        false => Err(problems),
    }
}

/// Reads the fields of a Digital Human and of a simulation that a scenario and the defaults have under their own names.
fn fields(
    own: &Node,
    defaults: &Node,
    sources: &mut Vec<(String, Node)>,
    problems: &mut Vec<Problem>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (of_human, of_simulation) = (human_fields(), simulation_fields());
    let mut human = Map::new();
    let mut simulation = Map::new();
    for (source, is_default) in [(defaults, true), (own, false)] {
        for (key, node) in source.members().unwrap_or_default() {
            if key.name == "gate" || SCENARIO.contains(&key.name.as_str()) && !(is_default && key.name == "name") {
                continue;
            }
            let (schema, fields) = match &key.name {
                name if of_human.contains(name) => (&HUMAN, &mut human),
                _ => (&SIMULATION, &mut simulation),
            };
            if of_human.contains(&key.name) || of_simulation.contains(&key.name) {
                match schema.value(&key.name, &key.name, node) {
                    Ok(value) => {
                        fields.insert(key.name.clone(), value);
                        sources.retain(|(field, _)| *field != key.name);
                        sources.push((key.name.clone(), node.clone()));
                    }
                    Err(wrong) => problems.extend(wrong),
                }
            } else {
                let all = SCENARIO.into_iter().chain(["gate"]);
                let all =
                    all.chain(of_human.iter().map(String::as_str)).chain(of_simulation.iter().map(String::as_str));
                check_known(key, all.collect::<Vec<_>>().into_iter(), problems);
            }
        }
    }
    (human, simulation)
}

/// Reads persona, goal and traits of the caller.
fn read_persona(words: &Words<'_>, human: &mut Map<String, Value>, problems: &mut Vec<Problem>) {
    for (word, field) in [("persona", "role_description"), ("goal", "intent")] {
        let Some(node) = words.get(word) else { continue };
        match node.text() {
            Some(text) => {
                human.insert(field.into(), json!(text));
            }
            None => problems.push(Problem::new(&node.at, format!("{word} must be a text"))),
        }
    }
    let Some(node) = words.get("traits") else { return };
    let Some(members) = node.members() else {
        return match node.items() {
            Some(items) => match HUMAN.value("traits", "traits", node) {
                Ok(Value::Array(mut made)) => {
                    made.iter_mut().zip(items).for_each(|(made, item)| keep_characters(made, item));
                    human.insert("traits".into(), made.into());
                }
                Ok(_) => {}
                Err(wrong) => problems.extend(wrong),
            },
            None => problems.push(Problem::new(&node.at, "traits must be a map of names and values")),
        };
    };
    let made = members.iter().map(|(key, node)| {
        let mut value = node.json();
        // A number that would be told in other characters is a text.
        if let (Value::Number(number), Some(text)) = (&value, node.text())
            && number.to_string() != text
        {
            value = json!(text);
        }
        let kind = match &value {
            Value::Bool(_) => "BOOLEAN",
            Value::Number(_) => "NUMBER",
            Value::String(text) if is_date(text) => "DATE",
            Value::String(_) => "STRING",
            _ => {
                problems.push(Problem::new(&node.at, format!("the trait {} must be one value", key.name)));
                "STRING"
            }
        };
        json!({ "trait_name": key.name, "trait_data_type": kind, "value": value })
    });
    let made: Vec<Value> = made.collect();
    human.insert("traits".into(), made.into());
}

/// Gives a trait that is no number the characters that its value was written in.
fn keep_characters(made: &mut Value, item: &Node) {
    let text = item.get("value").and_then(Node::text);
    if let Some(text) = text.filter(|_| made["trait_data_type"] == "STRING" || made["trait_data_type"] == "DATE") {
        made["value"] = json!(text);
    }
}

fn is_date(text: &str) -> bool {
    let is_digits = |part: &str, count| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts[..], [year, month, day] if is_digits(year, 4) && is_digits(month, 2) && is_digits(day, 2))
}

/// Reads noise, network and the longest duration.
fn conditions(
    words: &Words<'_>,
    human: &mut Map<String, Value>,
    simulation: &mut Map<String, Value>,
    problems: &mut Vec<Problem>,
) {
    for (word, field) in [("noise", "background_noise"), ("network", "connection_quality")] {
        let Some(node) = words.get(word) else { continue };
        match HUMAN.value(word, field, node) {
            Ok(value) => {
                human.insert(field.to_owned(), value);
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    if let Some(db) = number(words.get("noise_db"), "noise_db", 5.0, 30.0, problems) {
        human.insert("background_noise_volume".into(), json!((30.0 - db) / 25.0));
    }
    if let Some(seconds) = number(words.get("max_seconds"), "max_seconds", 1.0, 86_400.0, problems) {
        simulation.insert("max_call_duration".into(), json!(seconds.round() as i64));
        simulation.insert("max_call_duration_units".into(), json!("seconds"));
    }
    ringing(words, simulation, problems);
}

/// Reads how long it may ring, by the word of a suite or by the field of the API, and not by both.
fn ringing(words: &Words<'_>, simulation: &mut Map<String, Value>, problems: &mut Vec<Problem>) {
    let seconds = number(words.get("ring_seconds"), "ring_seconds", 1.0, 3600.0, problems);
    match (words.get("ring_seconds"), simulation.contains_key("ringing_timeout")) {
        (Some(node), true) => {
            let why = "ring_seconds and ringing_timeout say the same: give one of them";
            problems.push(Problem::new(&node.at, why));
        }
        (_, true) => {}
        _ => {
            let seconds = seconds.map_or(RING_S, |seconds| seconds.round() as i64);
            simulation.insert("ringing_timeout".into(), json!(seconds));
        }
    }
}

fn gate(node: Option<&Node>, problems: &mut Vec<Problem>) -> Gate {
    let Some(node) = node else { return Gate::default() };
    let Some(members) = node.members() else {
        problems.push(Problem::new(&node.at, "gate must be a map with pass_rate and untold"));
        return Gate::default();
    };
    members.iter().for_each(|(key, _)| check_known(key, ["pass_rate", "untold"].into_iter(), problems));
    let pass_rate = number(node.get("pass_rate"), "pass_rate", 0.0, 1.0, problems).unwrap_or(1.0);
    let untold = node.get("untold").and_then(|node| {
        let given = node.json();
        let found = UntoldRule::WORDS.into_iter().find(|(word, _)| given == **word);
        if found.is_none() {
            problems.push(Problem::new(&node.at, "untold must be tell, ignore or fail"));
        }
        found
    });
    Gate { pass_rate, untold: untold.map_or(UntoldRule::default(), |(_, untold)| untold) }
}

/// Returns the metrics that expectations name, each with its position.
fn named_metrics(node: Option<&Node>) -> impl Iterator<Item = (String, Place)> {
    let items = node.and_then(Node::items).unwrap_or_default().iter();
    items.filter_map(|item| {
        let metric = item.get("metric")?;
        Some((metric.text()?.to_owned(), metric.at.clone()))
    })
}

/// Adds the expectations of a list.
fn expect(node: Option<&Node>, expectations: &mut Vec<Value>, problems: &mut Vec<Problem>) {
    let Some(node) = node else { return };
    let Some(items) = node.items() else {
        return problems.push(Problem::new(&node.at, "expect must be a list of expectations"));
    };
    for item in items {
        match expectation(item) {
            Ok(made) => expectations.push(made),
            Err(wrong) => problems.extend(wrong),
        }
    }
}

/// Words that an expectation may have.
const EXPECT: [&str; 16] = [
    "metric",
    "heard",
    "not_heard",
    "as",
    "speaker",
    "tool",
    "args",
    "times",
    "within_ms",
    "ended_by",
    "within_s",
    "dtmf_received",
    "meaning",
    "event",
    "at_most",
    "at_least",
];

/// Members of an expectation that are texts, whatever they look like.
const TEXTS: [&str; 8] = ["metric", "heard", "not_heard", "speaker", "tool", "dtmf_received", "meaning", "event"];

pub(super) fn expectation(node: &Node) -> Result<Value, Vec<Problem>> {
    let mut problems = Vec::new();
    let Some(members) = node.members() else {
        return Err(vec![Problem::new(&node.at, "an expectation is a map, like { heard: \"goodbye\" }")]);
    };
    let mut made = Map::new();
    for (key, node) in members {
        check_known(key, EXPECT.into_iter(), &mut problems);
        let text = node.text().filter(|_| TEXTS.contains(&key.name.as_str()));
        made.insert(key.name.clone(), text.map_or_else(|| node.json(), |text| json!(text)));
        if key.name == "args" {
            made.extend(written_args(node));
        }
    }
    if problems.is_empty() {
        match serde_json::from_value::<Expectation>(Value::Object(made.clone())) {
            Ok(read) => {
                problems.extend(read.wrong().map(|why| Problem::new(&node.at, format!("the expectation {why}"))))
            }
            Err(error) => problems.push(Problem::new(&node.at, format!("the expectation cannot be read: {error}"))),
        }
    }
    if problems.is_empty() { Ok(Value::Object(made)) } else { Err(problems) }
}

#[cfg(test)]
mod tests;
