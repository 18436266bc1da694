//! Secrets of a call: texts that are written nowhere, in each form in which they may stand.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::fill::percent_encode;

/// Shortest text that counts as a secret wherever it stands, in characters.
const SECRET_CHARS: usize = 6;

/// Text that stands in the place of a secret.
const HIDDEN: &str = "(secret)";

/// Texts that are written nowhere, the longest ones first.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Arc<[String]>);

impl std::fmt::Debug for Secrets {
    /// Writes the number of texts alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Returns these texts, with the forms that they have in addresses and in JSON.
    pub(super) fn new(mut texts: Vec<String>) -> Secrets {
        texts.retain(|text| text.chars().count() >= SECRET_CHARS);
        let mut found: Vec<String> = texts.into_iter().flat_map(forms).collect();
        found.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        found.dedup();
        Secrets(found.into())
    }

    /// Returns a text without the secrets.
    pub fn hide(&self, text: String) -> String {
        self.replace(text, HIDDEN)
    }

    /// Returns a text with `by` in the place of each secret.
    pub fn replace(&self, text: String, by: &str) -> String {
        self.0.iter().fold(text, |text, secret| match text.contains(secret.as_str()) {
            true => text.replace(secret.as_str(), by),
            false => text,
        })
    }

    /// Returns a value without the secrets in its texts and names.
    pub fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.hide(text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(members) => {
                let hidden = members.into_iter().map(|(name, member)| (self.hide(name), self.hide_in(member)));
                Value::Object(hidden.collect::<Map<String, Value>>())
            }
            other => other,
        }
    }
}

/// Adds every text of a value to those that were found.
pub fn add_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| add_texts(member, found)),
        _ => {}
    }
}

/// Returns a text as it is, as it stands in an address, and as it stands in JSON.
fn forms(text: String) -> Vec<String> {
    let encoded = percent_encode(&text);
    let json = Value::String(text.clone()).to_string();
    let json = json[1..json.len() - 1].to_owned();
    // Some writers of JSON escape the slash, and some of addresses write small digits.
    vec![lower_escapes(&encoded), encoded, json.replace('/', "\\/"), json, text]
}

/// Returns an address with its escapes in small letters.
fn lower_escapes(encoded: &str) -> String {
    let mut left = 0;
    let lower = |c: char| {
        left = if c == '%' { 3 } else { usize::saturating_sub(left, 1) };
        if left > 0 { c.to_ascii_lowercase() } else { c }
    };
    encoded.chars().map(lower).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_in_each_form() {
        let secrets = Secrets::new(vec!["ab/cd+EF==".to_owned(), "say \"xy\"\n".to_owned(), "short".to_owned()]);
        for (text, expect) in [
            ("wss://h/t/ab%2Fcd%2BEF%3D%3D/x", "wss://h/t/(secret)/x"),
            ("wss://h/t/ab%2fcd%2bEF%3d%3d", "wss://h/t/(secret)"),
            (r#"{"token":"ab\/cd+EF=="}"#, r#"{"token":"(secret)"}"#),
            (r#"{"token":"ab/cd+EF==","said":"say \"xy\"\n"}"#, r#"{"token":"(secret)","said":"(secret)"}"#),
            ("ab/cd+EF==", "(secret)"),
            ("a short text", "a short text"),
        ] {
            assert_eq!(secrets.hide(text.to_owned()), expect);
        }
        let value = json!({ "ab/cd+EF==": ["ab/cd+EF==", 7, { "a": "say \"xy\"\n." }] });
        assert_eq!(secrets.hide_in(value), json!({ "(secret)": ["(secret)", 7, { "a": "(secret)." }] }));
        assert_eq!(format!("{secrets:?}").matches("ab").count(), 0);
    }
}
