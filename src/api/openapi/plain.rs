//! Schemas in the form that generators of clients understand. The derived ones say the same in forms that some of them
//! refuse or misread: `true` as a schema, objects as defaults, and defaults of fields, which some take for a promise
//! that the field is there.

use ringer_model::schema::RULES;
use serde_json::{Map, Value, json};

/// Side of the interface that a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Answer,
}

/// Keys whose value is one schema.
const ONE: [&str; 6] = ["items", "additionalProperties", "not", "if", "then", "else"];
/// Keys whose value is a list of schemas.
const LISTS: [&str; 4] = ["oneOf", "anyOf", "allOf", "prefixItems"];

/// Replaces schemas that are `true`, and moves the defaults of a request's fields into their descriptions.
pub(super) fn simplify(schema: &mut Value, side: Side) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::Object(rules)) = members.shift_remove(RULES)
        && side == Side::Request
    {
        members.extend(rules);
    }
    if let (Some(Value::Array(types)), Some(Value::Array(values))) = (members.get("type"), members.get("enum"))
        && types.iter().any(|one| one == "null")
        && !values.contains(&Value::Null)
    {
        let with_null = values.iter().cloned().chain([Value::Null]).collect();
        members.insert("enum".to_owned(), with_null);
    }
    // A description keeps its paragraphs, not the line breaks of the source.
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = text.split("\n\n").map(|one| one.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
    for field in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        if *field == Value::Bool(true) {
            *field = json!({});
        }
        if let Value::Object(field) = field {
            without_default(field, side);
        }
        simplify(field, side);
    }
    for key in ONE {
        if let Some(one) = members.get_mut(key) {
            if *one == Value::Bool(true) && key != "additionalProperties" {
                *one = json!({});
            }
            simplify(one, side);
        }
    }
    for key in LISTS {
        members.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(|one| simplify(one, side));
    }
}

/// Removes the default of a field; a request's description says it, unless the description already does.
fn without_default(field: &mut Map<String, Value>, side: Side) {
    let Some(default) = field.shift_remove("default") else { return };
    if side == Side::Answer || default.is_null() {
        return;
    }
    let about = field.get("description").and_then(Value::as_str).unwrap_or_default();
    if about.contains("efault") {
        return;
    }
    let space = if about.is_empty() { "" } else { " " };
    let text = format!("{about}{space}Default: `{default}`.");
    field.insert("description".to_owned(), text.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_said_in_words_and_true_is_an_empty_schema() {
        let mut schema = json!({
            "type": "object",
            "description": "Two\nlines.\n\nA paragraph.",
            "properties": {
                "any": true,
                "count": { "type": "integer", "description": "Number.", "default": 3 },
                "default": { "type": "array", "items": true, "default": [] },
                "said": { "type": "integer", "description": "Number; default 4.", "default": 4 },
                "note": { "type": ["string", "null"], "default": null },
            },
        });
        let mut answer = schema.clone();
        simplify(&mut schema, Side::Request);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "description": "Two lines.\n\nA paragraph.",
                "properties": {
                    "any": {},
                    "count": { "type": "integer", "description": "Number. Default: `3`." },
                    "default": { "type": "array", "items": {}, "description": "Default: `[]`." },
                    "said": { "type": "integer", "description": "Number; default 4." },
                    "note": { "type": ["string", "null"] },
                },
            })
        );
        simplify(&mut answer, Side::Answer);
        assert_eq!(answer["properties"]["count"], json!({ "type": "integer", "description": "Number." }));
    }
}
