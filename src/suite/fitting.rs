//! Fields of the API in a suite's file: each is checked by the schema that the API checks it by, so that what is read
//! here is not refused there for its form.

use std::borrow::Cow;
use std::collections::HashSet;

use schemars::JsonSchema;
use serde_json::Value;

use super::reading::check_known;
use super::yaml::{Kind, Node, Place, Problem};
use crate::config::nearest;
use crate::model::schema::{Kind as Type, Node as Schema};
use crate::model::tool_call::pointer_to;
use crate::model::validate::{Source, validate};
use crate::model::validation_error::ValidationErrors;
use ringer_syntax::decimal::exact;
use ringer_syntax::json::Json;

/// Kinds of errors of a value that should be a text and was written without quotes.
const NO_TEXT: [&str; 4] = ["string_type", "uuid_type", "url_type", "enum"];

/// Schema of a resource of the API.
pub struct Fields {
    schema: Schema,
}

impl Fields {
    /// Returns the fields of a resource.
    pub fn of<T: JsonSchema>() -> Fields {
        Fields { schema: Schema::of::<T>() }
    }

    /// Returns the value of a field as JSON. Where the field takes a text, an unquoted value is the characters that
    /// were written.
    ///
    /// # Errors
    /// Everything that the API would refuse of its form, and members that it does not know; `word`: the word of the
    /// file for the field.
    pub fn value(&self, word: &str, field: &str, node: &Node) -> Result<Value, Vec<Problem>> {
        let mut problems = Vec::new();
        if let Type::Fields(fields, _) = &self.schema.kind
            && let Some(found) = fields.iter().find(|known| known.name == field)
        {
            check_members(&found.node, node, &mut problems);
        }
        let mut texts = HashSet::new();
        loop {
            let value = json_of(node, "", &texts);
            let mut issues = ValidationErrors::default();
            let body = Json::Object(vec![(Cow::Borrowed(field), value)]);
            validate(Source::Body, &self.schema, &body, &mut issues);
            let issues: Vec<Value> = issues.items().filter(|issue| issue["loc"][1] == field).collect();
            let before = texts.len();
            for issue in issues.iter().filter(|issue| NO_TEXT.iter().any(|kind| issue["type"] == *kind)) {
                let (pointer, at) = place_of(node, &issue["loc"]);
                if matches!(at.kind, Kind::Scalar { .. }) && !at.as_written().is_empty() {
                    texts.insert(pointer);
                }
            }
            if texts.len() > before {
                continue;
            }
            problems.extend(issues.iter().map(|issue| {
                let (_, at) = place_of(node, &issue["loc"]);
                let msg = issue["msg"].as_str().unwrap_or_default();
                let values = issue["ctx"]["expected"].as_str().unwrap_or_default().split('\'').skip(1).step_by(2);
                let near = at.text().map(|text| nearest(text, values)).unwrap_or_default();
                Problem::new(&at.at, format!("{word}: {msg}{near}"))
            }));
            return if problems.is_empty() { Ok(value_of(node, "", &texts)) } else { Err(problems) };
        }
    }
}

/// Returns the deepest value that a location of the API leads to, and the JSON Pointer of it. Steps that name no
/// member, as the names of a union's members, are passed over.
fn place_of<'n>(node: &'n Node, loc: &Value) -> (String, &'n Node) {
    let (mut pointer, mut at) = (String::new(), node);
    for step in loc.as_array().into_iter().flatten().skip(2) {
        let index = step.as_u64().and_then(|index| usize::try_from(index).ok());
        if let Some(inside) = step.as_str().and_then(|name| at.get(name)) {
            (pointer, at) = (pointer_to(&pointer, step.as_str().unwrap_or_default()), inside);
        } else if let Some(inside) = index.and_then(|index| at.items()?.get(index)) {
            (pointer, at) = (format!("{pointer}/{step}"), inside);
        }
    }
    (pointer, at)
}

/// Returns the position of what a location of the API names inside of a field.
pub fn position(node: &Node, loc: &Value) -> Place {
    place_of(node, loc).1.at.clone()
}

/// Returns a value as the API reads it; `texts`: places of scalars that are their characters.
fn json_of(node: &Node, pointer: &str, texts: &HashSet<String>) -> Json<'static> {
    match &node.kind {
        Kind::Scalar { text, .. } if texts.contains(pointer) => Json::Text(Cow::Owned(text.clone())),
        Kind::Scalar { text, plain } => match node.json() {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(flag),
            Value::Number(number) => Json::Number(Cow::Owned(number.to_string())),
            Value::String(long) if *plain && exact(&long).is_string() => Json::Number(Cow::Owned(long)),
            _ => Json::Text(Cow::Owned(text.clone())),
        },
        Kind::List(items) => Json::Array(
            items.iter().enumerate().map(|(at, item)| json_of(item, &format!("{pointer}/{at}"), texts)).collect(),
        ),
        Kind::Map(members) => Json::Object(
            members
                .iter()
                .map(|(key, node)| {
                    (Cow::Owned(key.name.clone()), json_of(node, &pointer_to(pointer, &key.name), texts))
                })
                .collect(),
        ),
    }
}

fn value_of(node: &Node, pointer: &str, texts: &HashSet<String>) -> Value {
    json_of(node, pointer, texts).to_exact_value()
}

/// Adds a problem for each member that the API would leave out without a word.
fn check_members(schema: &Schema, node: &Node, problems: &mut Vec<Problem>) {
    match &schema.kind {
        Type::Fields(fields, None) => {
            let names = fields
                .iter()
                .flat_map(|field| std::iter::once(field.name.as_str()).chain(field.aliases.iter().map(String::as_str)));
            for (key, inside) in node.members().unwrap_or_default() {
                check_known(key, names.clone(), problems);
                if let Some(field) = fields.iter().find(|field| field.name == key.name) {
                    check_members(&field.node, inside, problems);
                }
            }
        }
        Type::List { item, .. } => {
            node.items().unwrap_or_default().iter().for_each(|inside| check_members(item, inside, problems));
        }
        Type::Map(values) => {
            let members = node.members().unwrap_or_default();
            members.iter().for_each(|(_, inside)| check_members(values, inside, problems));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::yaml::parse;
    use super::*;
    use crate::model::agent::AgentSpec;
    use crate::model::digital_human::DigitalHumanSpec;

    fn check(fields: &Fields, field: &str, text: &str, expect: Result<Value, &str>) {
        let found = fields.value(field, field, &parse(text, "f").expect("it is read"));
        let found = found.map_err(|problems| problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "));
        assert_eq!(found.as_ref().map_err(String::as_str), expect.as_ref().map_err(|why| *why), "{field}: {text}");
    }

    #[test]
    fn texts_keep_the_characters_that_were_written() {
        let (agent, human) = (Fields::of::<AgentSpec>(), Fields::of::<DigitalHumanSpec>());
        let headers =
            json!({"X-Id": "+14155550100", "X-N": "1.10", "X-Long": "12345678901234567890123", "X-On": "true"});
        let text = "{X-Id: +14155550100, X-N: 1.10, X-Long: 12345678901234567890123, X-On: true}";
        check(&agent, "custom_sip_headers", text, Ok(headers.clone()));
        check(&agent, "websocket_parameters", text, Ok(headers));
        check(&agent, "P1_metadata", "{a: 1.10, b: [7, x]}", Ok(json!({"a": 1.1, "b": [7, "x"]})));
        check(&human, "intent", "1.10", Ok(json!("1.10")));
        check(&human, "phone_number", "+14155550100", Ok(json!("+14155550100")));
        check(&human, "endpointing_delay", "1.10", Ok(json!(1.1)));
    }

    #[test]
    fn what_the_api_would_refuse_has_a_position() {
        let (agent, human) = (Fields::of::<AgentSpec>(), Fields::of::<DigitalHumanSpec>());
        check(
            &agent,
            "custom_sip_headers",
            "{X: [1]}",
            Err("f:1:5: custom_sip_headers: Input should be a valid string"),
        );
        check(
            &agent,
            "custom_sip_headers",
            "[1]",
            Err("f:1:1: custom_sip_headers: Input should be a valid dictionary"),
        );
        check(
            &human,
            "endpointing_delay",
            "61",
            Err("f:1:1: endpointing_delay: Input should be less than or equal to 60"),
        );
        check(
            &human,
            "duplex",
            "{backchanel_per_minute: 3}",
            Err("f:1:2: backchanel_per_minute is not known, did you mean backchannel_per_minute?"),
        );
    }
}
