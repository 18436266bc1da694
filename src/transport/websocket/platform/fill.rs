//! Texts and JSON with places `{{NAME}}`, and the values that go there.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// Characters that a segment of a path or a value of a query does not keep.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Depth down to which a template is filled.
const MAX_DEPTH: u32 = 32;

/// Calls `check` with the name of every place in a text.
///
/// # Errors
/// The first error of `check`, and a place that has no end.
fn places_in(text: &str, check: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        let (name, tail) = after.split_once("}}").ok_or_else(|| format!("{text:?} has a {{{{ without }}}}"))?;
        check(name.trim())?;
        rest = tail;
    }
    Ok(())
}

/// Calls `check` with the name of every place in the texts of a value.
///
/// # Errors
/// The first error of `check`, and a place that has no end.
pub(super) fn places(value: &Value, check: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    match value {
        Value::String(text) => places_in(text, check),
        Value::Array(items) => items.iter().try_for_each(|item| places(item, check)),
        Value::Object(members) => members.values().try_for_each(|member| places(member, check)),
        _ => Ok(()),
    }
}

/// Returns a template with its places filled. A text that is one place takes the value's own type, and a member whose
/// value is null is left out. Places that `value` does not know stay.
pub(super) fn fill(template: &Value, value: &dyn Fn(&str) -> Option<Value>) -> Value {
    fill_to(template, value, MAX_DEPTH)
}

fn fill_to(template: &Value, value: &dyn Fn(&str) -> Option<Value>, depth: u32) -> Value {
    match template {
        Value::String(text) => match sole(text).and_then(value) {
            Some(found) => found,
            None => Value::String(fill_text(text, value, &|text| text)),
        },
        Value::Array(items) if depth > 0 => items.iter().map(|item| fill_to(item, value, depth - 1)).collect(),
        Value::Object(members) if depth > 0 => {
            let mut made = Map::new();
            for (key, member) in members {
                let filled = fill_to(member, value, depth - 1);
                if !filled.is_null() || member.is_null() {
                    made.insert(key.clone(), filled);
                }
            }
            Value::Object(made)
        }
        other => other.clone(),
    }
}

/// Returns the name in a text that is one place.
fn sole(text: &str) -> Option<&str> {
    let name = text.strip_prefix("{{")?.strip_suffix("}}")?;
    (!name.contains("{{")).then(|| name.trim())
}

/// Returns a text with its places filled; `encode` is applied to each value. Places that `value` does not know stay.
pub(super) fn fill_text(
    text: &str,
    value: &dyn Fn(&str) -> Option<Value>,
    encode: &dyn Fn(String) -> String,
) -> String {
    let (mut rest, mut made) = (text, String::new());
    while let Some((before, after)) = rest.split_once("{{") {
        made.push_str(before);
        match after.split_once("}}").and_then(|(name, tail)| Some((value(name.trim())?, tail))) {
            Some((found, tail)) => {
                made.push_str(&encode(plain(&found)));
                rest = tail;
            }
            None => {
                made.push_str("{{");
                rest = after;
            }
        }
    }
    made.push_str(rest);
    made
}

/// Returns a value as text: that of a string, nothing for null, else JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns a text as it stands in a segment of a path, or in a query.
pub(super) fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Adds the members of `more` to a value: objects member by member, anything else takes the place of what was there.
pub(super) fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_take_values() {
        let value = |name: &str| match name {
            "a" => Some(json!("x/y")),
            "n" => Some(json!(7)),
            "none" => Some(Value::Null),
            _ => None,
        };
        let template =
            json!({ "t": "{{a}}", "n": "{{ n }}", "gone": "{{none}}", "mixed": ["{{n}} of {{a}}", 1, null] });
        assert_eq!(fill(&template, &value), json!({ "t": "x/y", "n": 7, "mixed": ["7 of x/y", 1, null] }));
        assert_eq!(fill(&json!("{{later}} {{"), &value), json!("{{later}} {{"));
        let url = fill_text("ws://h/{{a}}?n={{n}}", &value, &|text| percent_encode(&text));
        assert_eq!(url, "ws://h/x%2Fy?n=7");
        let mut names = Vec::new();
        places(&template, &mut |name| {
            names.push(name.to_owned());
            Ok(())
        })
        .expect("every place has an end");
        names.sort();
        assert_eq!(names, ["a", "a", "n", "n", "none"]);
        assert!(places(&json!("{{a"), &mut |_| Ok(())).is_err());
    }

    #[test]
    fn values_are_merged_member_by_member() {
        let mut into = json!({ "a": { "b": 1, "c": 2 }, "d": [1] });
        merge(&mut into, &json!({ "a": { "c": 3 }, "d": [2], "e": "f" }));
        assert_eq!(into, json!({ "a": { "b": 1, "c": 3 }, "d": [2], "e": "f" }));
    }
}
