//! Messages as templates of JSON, which serve for writing and for reading.
//!
//! A string `$name` stands for text and `#name` for any value. With a `?` behind the sign the member may be missing;
//! `?name` alone is read and never written. The key `*` stands for members that a value brings with it.

use serde_json::{Map, Value};

/// A template and the places of its fields.
#[derive(Debug)]
pub(super) struct Template {
    value: Value,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    path: Vec<String>,
    is_required: bool,
}

/// Parts of a template's string.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Slot<'t> {
    Constant,
    Text(&'t str),
    Any(&'t str),
    Unwritten(&'t str),
}

impl<'t> Slot<'t> {
    /// Returns the slot of a string, and true when the member must be there.
    fn of(text: &'t str) -> (Slot<'t>, bool) {
        let optional = |rest: &'t str| rest.strip_prefix('?').map_or((rest, true), |name| (name, false));
        match text.split_at_checked(1) {
            Some(("$", rest)) => (Slot::Text(optional(rest).0), optional(rest).1),
            Some(("#", rest)) => (Slot::Any(optional(rest).0), optional(rest).1),
            Some(("?", name)) => (Slot::Unwritten(name), false),
            _ => (Slot::Constant, false),
        }
    }
}

impl Template {
    /// Returns a template of JSON.
    pub(super) fn new(text: &str) -> Template {
        let value = serde_json::from_str(text).expect("templates of the table are JSON");
        let mut fields = Vec::new();
        collect(&value, &mut Vec::new(), &mut fields);
        Template { value, fields }
    }

    /// Returns the constant of a member, such as the name of an event.
    pub(super) fn constant(&self, key: &str) -> Option<&str> {
        self.value.get(key).and_then(Value::as_str)
    }

    /// True when a field has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// Returns the message; `fill` gives the value of a field. Members without one are left out.
    pub(super) fn write(&self, fill: &mut dyn FnMut(&str) -> Option<Value>) -> Value {
        fill_in(&self.value, fill).unwrap_or(Value::Null)
    }

    /// Returns a field of a message; `None` when it is missing.
    pub(super) fn find<'m>(&self, message: &'m Value, name: &str) -> Option<&'m Value> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        at(message, &field.path)
    }

    /// Returns the name of the first member that a message lacks.
    pub(super) fn lacks(&self, message: &Value) -> Option<String> {
        let missing = self.fields.iter().find(|field| {
            field.is_required && at(message, &field.path).is_none_or(|value| value.is_null() || value == "")
        })?;
        Some(missing.path.join("."))
    }
}

fn at<'m>(message: &'m Value, path: &[String]) -> Option<&'m Value> {
    path.iter().try_fold(message, |value, key| value.get(key))
}

fn collect(value: &Value, path: &mut Vec<String>, fields: &mut Vec<Field>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                path.push(key.clone());
                collect(value, path, fields);
                path.pop();
            }
        }
        Value::String(text) => {
            let (slot, is_required) = Slot::of(text);
            if let Slot::Text(name) | Slot::Any(name) | Slot::Unwritten(name) = slot {
                let is_required = is_required && path.last().is_none_or(|key| key != "*");
                fields.push(Field { name: name.to_owned(), path: path.clone(), is_required });
            }
        }
        _ => {}
    }
}

fn fill_in(value: &Value, fill: &mut dyn FnMut(&str) -> Option<Value>) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let mut made = Map::new();
            for (key, value) in members {
                match fill_in(value, fill) {
                    Some(Value::Object(more)) if key == "*" => made.extend(more),
                    Some(value) => {
                        made.insert(key.clone(), value);
                    }
                    None => {}
                }
            }
            Some(Value::Object(made))
        }
        Value::Array(items) => Some(items.iter().filter_map(|item| fill_in(item, fill)).collect()),
        Value::String(text) => match Slot::of(text).0 {
            Slot::Constant => Some(value.clone()),
            Slot::Text(name) => fill(name).map(|value| match value {
                Value::String(_) => value,
                other => Value::String(other.to_string()),
            }),
            Slot::Any(name) => fill(name),
            Slot::Unwritten(_) => None,
        },
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_written_and_read_back() {
        let template = Template::new(
            r##"{"event":"media","n":"$n","in":{"at":"#at","x":"$?x","y":"?y"},"list":["$n",1],"*":"#more"}"##,
        );
        assert_eq!(template.constant("event"), Some("media"));
        assert!(template.has("y") && !template.has("z"));
        let message = template.write(&mut |name| match name {
            "n" => Some(json!(7)),
            "at" => Some(json!(8)),
            "more" => Some(json!({"a": "b"})),
            _ => None,
        });
        assert_eq!(message.to_string(), r#"{"event":"media","n":"7","in":{"at":8},"list":["7",1],"a":"b"}"#);
        assert_eq!(template.find(&message, "at"), Some(&json!(8)));
        assert_eq!(template.lacks(&message), None);
        assert_eq!(template.lacks(&json!({"n": "1"})), Some("in.at".to_owned()));
        assert_eq!(template.lacks(&json!({"n": null, "in": {"at": 1}})), Some("n".to_owned()));
    }
}
