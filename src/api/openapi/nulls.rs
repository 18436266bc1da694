//! Null in bodies. A field that need not be there may also be null: in a new thing that is as if it was not given, in a
//! partial update it clears the field or leaves it. The walker takes it so, and the document says so.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::reference_name;

/// Adds the names of the definitions that `schema` is made of.
pub(super) fn names(schema: &Value, definitions: &Map<String, Value>, found: &mut BTreeSet<String>) {
    if let Some(name) = reference_name(schema)
        && found.insert(name.to_owned())
        && let Some(definition) = definitions.get(name)
    {
        names(definition, definitions, found);
    }
    match schema {
        Value::Object(members) => members.values().for_each(|member| names(member, definitions, found)),
        Value::Array(members) => members.iter().for_each(|member| names(member, definitions, found)),
        _ => {}
    }
}

/// Lets every field of the objects in `schema` that is not required be null.
pub(super) fn allow(schema: &mut Value) {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if !required.iter().any(|one| one == name) && !is_nullable(field) {
            or_null(field);
        }
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(allow),
        Value::Array(members) => members.iter_mut().for_each(allow),
        _ => {}
    }
}

fn is_nullable(schema: &Value) -> bool {
    let is_null = |schema: &Value| match &schema["type"] {
        Value::Array(types) => types.iter().any(|one| one == "null"),
        one => one == "null",
    };
    let mut members = ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
    let told_by = ["$ref", "type", "anyOf", "oneOf", "allOf", "enum", "const"];
    told_by.iter().all(|key| schema[*key].is_null()) || is_null(schema) || members.any(is_null)
}

fn or_null(schema: &mut Value) {
    if schema["type"].is_string() && schema["enum"].is_null() && schema["const"].is_null() {
        schema["type"] = json!([schema["type"], "null"]);
        return;
    }
    // Other keys of the field stay beside the types.
    let mut beside = Map::new();
    if let Value::Object(fields) = schema {
        for name in ["description", "default"] {
            beside.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
        }
    }
    beside.insert("anyOf".to_owned(), json!([schema, { "type": "null" }]));
    *schema = Value::Object(beside);
}
