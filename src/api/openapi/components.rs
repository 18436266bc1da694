//! Shared schemas of the document. A type of the model can be both taken and returned. A request may leave out what an
//! answer always has, so such a type becomes two components. Components that nothing refers to are left out.

use std::collections::{BTreeMap, BTreeSet};

use ringer_model::schema::DEFINITIONS;
use serde_json::{Map, Value, json};

use super::reference_name;

/// Ending of the name of a request's component where an answer has another one of that name.
const OF_REQUESTS: &str = "Input";

/// Names of types that say more to this program than to its callers, and their names in the document.
const RENAMED: [(&str, &str); 24] = [
    ("AnySchedule", "NewSchedule"),
    ("AttacksAsked", "RedTeamRequest"),
    ("GenerateSpec", "GenerateDigitalHumansRequest"),
    ("GoalAsked", "GoalRequest"),
    ("GraphAsked", "GenerateScenarioRequest"),
    ("MessageAgentMessage", "AgentTextMessage"),
    ("MoveAsked", "MoveTestScenariosRequest"),
    ("PersonaAsked", "PersonaRequest"),
    ("PersonasAsked", "GeneratePersonasRequest"),
    ("RegenAsked", "RegenerateTestScenariosRequest"),
    ("ReplayAsked", "ReplayRequest"),
    ("ResponseType2", "ScriptedResponseType"),
    ("ScenariosAsked", "GenerateTestScenariosRequest"),
    ("TextTurn", "Turn"),
    ("TextTurnRequest", "TurnSpec"),
    ("ToValidate", "ValidateDefinitionRequest"),
    ("ToolCallAgentMessage", "AgentToolCallMessage"),
    ("ToolWanted", "ToolExpectation"),
    ("TraitAsked", "TraitRequest"),
    ("TraitWanted", "TraitReference"),
    ("TranscriptWanted", "TranscriptExpectation"),
    ("ValuesAsked", "GenerateTraitValuesRequest"),
    ("WordsAs", "WordsForm"),
    ("Word", "SpokenWord"),
];

fn reference(name: &str) -> Value {
    format!("#{DEFINITIONS}/{name}").into()
}

/// Makes the objects inside the unions of `definitions` definitions of their own, named by their title or their tag.
pub(super) fn lift(definitions: &mut Map<String, Value>) {
    let mut lifted = Map::new();
    for (parent, schema) in definitions.iter_mut() {
        let tag = schema.pointer("/discriminator/propertyName").and_then(Value::as_str).map(str::to_owned);
        let mut mapping = Map::new();
        for key in ["oneOf", "anyOf"] {
            for member in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                let constant = tag.as_ref().and_then(|tag| member["properties"][tag]["const"].as_str());
                let constant = constant.map(str::to_owned);
                let named = constant.as_ref().map(|constant| format!("{}{parent}", in_camel_case(constant)));
                let Some(name) = member["title"].as_str().map(str::to_owned).or(named) else { continue };
                if member["properties"].is_object() {
                    lifted.insert(name.clone(), std::mem::replace(member, json!({ "$ref": reference(&name) })));
                    mapping.extend(constant.map(|constant| (constant, reference(&name))));
                }
            }
        }
        if !mapping.is_empty() {
            schema["discriminator"]["mapping"] = Value::Object(mapping);
        }
    }
    definitions.extend(lifted);
}

fn in_camel_case(words: &str) -> String {
    let upper = |word: &str| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default();
    words.split('_').map(upper).collect()
}

/// Returns one set of definitions for both sides, and the new names of those of the requests.
pub(super) fn merge(
    requests: Map<String, Value>,
    mut answers: Map<String, Value>,
) -> (Map<String, Value>, BTreeMap<String, String>) {
    let shared = |name: &str| answers.contains_key(name);
    let mut apart: BTreeSet<&String> = requests
        .iter()
        .filter(|(name, own)| answers.get(*name).is_some_and(|other| other != *own))
        .map(|(name, _)| name)
        .collect();
    loop {
        let more = |(name, own): &(&String, &Value)| {
            !apart.contains(*name) && shared(name) && references(own).iter().any(|one| apart.contains(one))
        };
        let more: Vec<&String> = requests.iter().filter(more).map(|(name, _)| name).collect();
        if more.is_empty() {
            break;
        }
        apart.extend(more);
    }
    let renamed: BTreeMap<String, String> =
        apart.into_iter().map(|name| (name.clone(), format!("{name}{OF_REQUESTS}"))).collect();
    for (name, mut schema) in requests {
        rename(&mut schema, &renamed);
        let name = renamed.get(&name).cloned().unwrap_or(name);
        answers.insert(name, schema);
    }
    (answers, renamed)
}

/// Renames the components that have a name of their own in the document.
pub(super) fn with_names(document: &mut Value) {
    let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") else { return };
    let mut renamed = BTreeMap::new();
    for (name, mut new) in RENAMED.map(|(name, new)| (name.to_owned(), new.to_owned())) {
        renamed.insert(format!("{name}{OF_REQUESTS}"), format!("{new}{OF_REQUESTS}"));
        renamed.insert(name, std::mem::take(&mut new));
    }
    *schemas = std::mem::take(schemas)
        .into_iter()
        .map(|(name, schema)| (renamed.get(&name).cloned().unwrap_or(name), schema))
        .collect();
    rename(document, &renamed);
}

/// Removes the components that nothing in the paths refers to, and sorts the others by name.
pub(super) fn without_unused(document: &mut Value) {
    let Some(Value::Object(schemas)) = document.pointer("/components/schemas") else { return };
    let mut used = BTreeSet::new();
    let mut open = references(&document["paths"]);
    while let Some(name) = open.pop() {
        if let Some(schema) = schemas.get(&name)
            && used.insert(name)
        {
            open.extend(references(schema));
        }
    }
    let kept = used.into_iter().filter_map(|name| schemas.get(&name).map(|schema| (name.clone(), schema.clone())));
    document["components"]["schemas"] = Value::Object(kept.collect());
}

/// Renames the components that a value refers to.
pub(super) fn rename(value: &mut Value, renamed: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix('#').and_then(|text| text.strip_prefix(DEFINITIONS)?.strip_prefix('/'));
            if let Some(new) = name.and_then(|name| renamed.get(name)) {
                *value = reference(new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        Value::Object(members) => members.values_mut().for_each(|member| rename(member, renamed)),
        _ => {}
    }
}

fn references(value: &Value) -> Vec<String> {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return Vec::new(),
    };
    let own = reference_name(value).map(str::to_owned);
    own.into_iter().chain(inner.flat_map(references)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(name: &str) -> Value {
        json!({ "$ref": reference(name) })
    }

    #[test]
    fn what_differs_between_request_and_answer_is_two_components() {
        let side = |required: Value| {
            let leaf = json!({ "type": "object", "properties": { "n": {} }, "required": required });
            let list = json!({ "type": "array", "items": to("Leaf") });
            Map::from_iter([
                ("Leaf".to_owned(), leaf),
                ("List".to_owned(), list),
                ("Same".to_owned(), json!({ "type": "string" })),
            ])
        };
        let (merged, renamed) = merge(side(json!([])), side(json!(["n"])));
        assert_eq!(merged.keys().collect::<Vec<_>>(), ["Leaf", "List", "Same", "LeafInput", "ListInput"]);
        assert_eq!((&merged["List"]["items"], &merged["ListInput"]["items"]), (&to("Leaf"), &to("LeafInput")));
        assert_eq!(renamed.keys().collect::<Vec<_>>(), ["Leaf", "List"]);
    }

    #[test]
    fn objects_in_unions_become_components() {
        let member = |tag: &str| json!({ "type": "object", "properties": { "type": { "const": tag } } });
        let union = json!({ "oneOf": [member("tool_call")], "discriminator": { "propertyName": "type" } });
        let mut definitions = Map::from_iter([("Message".to_owned(), union)]);
        lift(&mut definitions);
        assert_eq!(definitions["ToolCallMessage"], member("tool_call"));
        assert_eq!(definitions["Message"]["oneOf"], json!([to("ToolCallMessage")]));
        let mapping = json!({ "tool_call": "#/components/schemas/ToolCallMessage" });
        assert_eq!(definitions["Message"]["discriminator"]["mapping"], mapping);
    }

    #[test]
    fn components_that_nothing_refers_to_are_left_out() {
        let schemas = json!({ "B": to("A"), "A": {}, "C": to("D"), "D": {} });
        let mut document = json!({ "paths": { "/": to("B") }, "components": { "schemas": schemas } });
        without_unused(&mut document);
        assert_eq!(document["components"]["schemas"], json!({ "A": {}, "B": to("A") }));
    }
}
