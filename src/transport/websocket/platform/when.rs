//! Conditions on messages of a platform, and pointers into them.
//!
//! A condition is a text. `NAME` holds for messages whose member `type` is `NAME`. `/A/B` holds where that member is
//! there and neither null nor false. `/A/B=TEXT` holds where it is `TEXT`. `&` joins conditions that must all hold, `|`
//! those of which one is enough, and `*` always holds.

use serde_json::Value;

/// Most characters of a condition.
const MAX_CHARS: usize = 1000;

/// A single test of a message.
#[derive(Clone, Debug, PartialEq)]
enum Test {
    Always,
    Is(String, String),
    Has(String),
}

impl Test {
    fn parse(text: &str) -> Result<Test, String> {
        let text = text.trim();
        if text == "*" {
            return Ok(Test::Always);
        }
        let test = match (text.starts_with('/'), text.split_once('=')) {
            (true, Some((pointer, value))) => Test::Is(pointer.trim().to_owned(), value.trim().to_owned()),
            (true, None) => Test::Has(text.to_owned()),
            (false, _) => Test::Is("/type".to_owned(), text.to_owned()),
        };
        match &test {
            Test::Is(_, value) if value.is_empty() => Err(format!("{text:?} is no condition")),
            _ => Ok(test),
        }
    }

    fn holds(&self, message: &Value) -> bool {
        match self {
            Test::Always => true,
            Test::Has(pointer) => {
                message.pointer(pointer).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
            }
            Test::Is(pointer, expect) => match message.pointer(pointer) {
                Some(Value::String(text)) => text == expect,
                Some(value @ (Value::Bool(_) | Value::Number(_))) => {
                    serde_json::from_str::<Value>(expect).is_ok_and(|expect| expect == *value)
                }
                _ => false,
            },
        }
    }
}

/// A condition on messages. The empty one never holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct When(Vec<Vec<Test>>);

impl When {
    /// Reads a condition.
    ///
    /// # Errors
    /// Names the part that is no condition.
    pub(super) fn parse(text: &str) -> Result<When, String> {
        if text.trim().is_empty() || text.len() > MAX_CHARS {
            return Err(format!("a condition has 1 to {MAX_CHARS} characters"));
        }
        let all = |part: &str| part.split('&').map(Test::parse).collect::<Result<Vec<Test>, String>>();
        text.split('|').map(all).collect::<Result<_, _>>().map(When)
    }

    /// True if the condition holds for a message.
    pub(super) fn holds(&self, message: &Value) -> bool {
        self.0.iter().any(|tests| tests.iter().all(|test| test.holds(message)))
    }

    /// True for a condition that was given.
    pub(super) fn is_set(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Returns the values at a pointer (RFC 6901), in which `*` stands for every item of a list.
pub(super) fn find_all<'m>(message: &'m Value, pointer: &str) -> Vec<&'m Value> {
    let mut found = vec![message];
    for key in pointer.split('/').skip(1) {
        let key = key.replace("~1", "/").replace("~0", "~");
        found = found
            .into_iter()
            .flat_map(|value| match (value, key.as_str()) {
                (Value::Array(items), "*") => items.iter().collect(),
                (Value::Array(items), key) => {
                    key.parse().ok().and_then(|at: usize| items.get(at)).into_iter().collect()
                }
                (value, key) => value.get(key).into_iter().collect::<Vec<&Value>>(),
            })
            .collect();
    }
    found
}

/// Returns the first value at a pointer that is not null.
pub(super) fn find<'m>(message: &'m Value, pointer: &str) -> Option<&'m Value> {
    find_all(message, pointer).into_iter().find(|value| !value.is_null())
}

/// Returns the value at a pointer as text: that of a string, else JSON; empty where there is none.
pub(super) fn text_at(message: &Value, pointer: &str) -> String {
    match find(message, pointer).filter(|_| !pointer.is_empty()) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_hold_for_messages() {
        let message = json!({ "type": "a", "role": "agent", "n": 3, "ok": true, "no": false, "x": { "y": {} } });
        for (text, expect) in [
            ("a", true),
            ("b", false),
            ("b | a", true),
            ("a & /role=agent", true),
            ("a & /role=user | b", false),
            ("/x/y", true),
            ("/no", false),
            ("/none", false),
            ("/n=3 & /ok=true", true),
            ("*", true),
        ] {
            assert_eq!(When::parse(text).expect("a condition").holds(&message), expect, "{text}");
        }
        for text in ["", "a |", "/x=", &"a".repeat(1001)] {
            assert!(When::parse(text).is_err(), "{text}");
        }
        assert!(!When::default().holds(&message));
    }

    #[test]
    fn pointers_find_every_item_of_a_list() {
        let message = json!({ "parts": [{ "data": "a" }, { "text": "b" }, { "data": "c" }], "a/b": 1 });
        let found: Vec<String> = find_all(&message, "/parts/*/data").into_iter().map(Value::to_string).collect();
        assert_eq!(found, [r#""a""#, r#""c""#]);
        assert_eq!(find(&message, "/parts/1/text"), Some(&json!("b")));
        assert_eq!(find(&message, "/a~1b"), Some(&json!(1)));
        assert_eq!(find(&message, ""), Some(&message));
        assert_eq!((text_at(&message, "/a~1b"), text_at(&message, "/none")), ("1".to_owned(), String::new()));
    }
}
