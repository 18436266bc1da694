//! Reading what a language model answers: the object in its text, and values that it wrote as texts.

use ringer_provider::loose;
use ringer_syntax::json;
use ringer_syntax::json::Json;
use serde_json::Value;

/// Objects of one answer that are looked at, the last ones.
const OBJECTS_MAX: usize = 64;
/// Bytes that are read in search of objects, those included that are read more than once.
const WORK_MAX: usize = 8 << 20;

/// Faults of an answer; their texts are read by the model and by people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The answer does not have the requested form.
    Form(String),
    /// The answer has the form, but its value is not possible.
    Value(String),
}

/// Reads an answer by the object in it that `read` takes. Models put objects between fences, words and braces that are
/// no JSON: of several the last one counts. An object that is the only member of another is looked at when nothing else
/// is taken.
///
/// # Errors
/// What is wrong with the object that comes nearest: one whose value is wrong, else the one with the most members.
pub(crate) fn read_object<T>(text: &str, read: impl Fn(&Json<'_>) -> Result<T, Wrong>) -> Result<T, Wrong> {
    read_strict(text, &read).or_else(|wrong| {
        // Words of other languages, such as `True`, are no JSON.
        let strict = loose::strict(text);
        if strict == text { Err(wrong) } else { read_strict(&strict, &read).map_err(|_| wrong) }
    })
}

fn read_strict<T>(text: &str, read: &impl Fn(&Json<'_>) -> Result<T, Wrong>) -> Result<T, Wrong> {
    let found = objects(text);
    let wrapped: Vec<&Json<'_>> = found.iter().filter_map(only_object).collect();
    let mut nearest: Option<((bool, usize), Wrong)> = None;
    for object in found.iter().rev().chain(wrapped.into_iter().rev()) {
        let wrong = match read(object) {
            Ok(answer) => return Ok(answer),
            Err(wrong) => wrong,
        };
        let near = (matches!(wrong, Wrong::Value(_)), members(object).len());
        if nearest.as_ref().is_none_or(|(nearest, _)| near > *nearest) {
            nearest = Some((near, wrong));
        }
    }
    Err(nearest.map_or_else(|| Wrong::Form("it was not one JSON object".into()), |(_, wrong)| wrong))
}

/// Returns the complete objects of a text in their order, without those inside others.
fn objects(text: &str) -> Vec<Json<'_>> {
    let mut found = std::collections::VecDeque::new();
    let (mut at, mut left) = (0, WORK_MAX);
    while let Some(brace) = text[at..].find('{') {
        at += brace;
        let read = match json::read_prefix(&text[at..]) {
            Ok((object, length)) => {
                found.push_back(object);
                at += length;
                length
            }
            Err(length) => {
                at += 1;
                length
            }
        };
        if found.len() > OBJECTS_MAX {
            found.pop_front();
        }
        match left.checked_sub(read) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    found.into()
}

fn members<'j, 't>(object: &'j Json<'t>) -> &'j [(std::borrow::Cow<'t, str>, Json<'t>)] {
    match object {
        Json::Object(members) => members,
        _ => &[],
    }
}

fn only_object<'j, 't>(object: &'j Json<'t>) -> Option<&'j Json<'t>> {
    match members(object) {
        [(_, inner @ Json::Object(_))] => Some(inner),
        _ => None,
    }
}

/// Returns a text without the blanks and quotes around it.
pub(super) fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '\u{201c}' | '\u{201d}'))
}

/// Returns a text that is one word in lower case, without what stands around it.
pub(super) fn word(text: &str) -> String {
    let is_around = |c: char| {
        c.is_whitespace() || matches!(c, '.' | '!' | ',' | ';' | ':' | '*' | '"' | '\'' | '`' | '\u{201c}' | '\u{201d}')
    };
    text.trim_matches(is_around).to_lowercase()
}

/// Returns a yes or no, also one that was written as a text or a number.
pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => match number.as_f64() {
            Some(1.0) => Some(true),
            Some(0.0) => Some(false),
            _ => None,
        },
        Value::String(text) => match word(text).as_str() {
            "true" | "yes" | "y" | "1" => Some(true),
            "false" | "no" | "n" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Reads whether something has passed: a yes or no, or a word such as `Pass.`; `None` for anything else.
pub(super) fn verdict(value: &Value) -> Option<bool> {
    match value.as_str().map(word).as_deref() {
        Some("pass" | "passed") => Some(true),
        Some("fail" | "failed") => Some(false),
        _ => truth(value),
    }
}

/// True for null, and for texts by which models say that there is no value.
pub(super) fn is_nothing(value: &Value) -> bool {
    let says_so = |text: &str| matches!(bare(text).to_lowercase().as_str(), "" | "null" | "none" | "unknown" | "n/a");
    value.is_null() || value.as_str().is_some_and(says_so)
}

/// A number, also one that was written as a text.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// Number as it was written: 85 of "85 %".
    pub value: f64,
    /// True if a percent sign stood behind it.
    pub is_percent: bool,
    /// Largest value, where it was written as a fraction: 10 of "8/10".
    pub most: Option<f64>,
}

impl Number {
    /// Returns the number in a value; `None` when there is none, or one that is not finite.
    pub(crate) fn of(value: &Value) -> Option<Number> {
        let (value, is_percent, most) = match value {
            Value::Number(number) => (number.as_f64()?, false, None),
            Value::String(text) => {
                let text = bare(bare(text).trim_end_matches(['.', ',', ';', '!']));
                let without = text.strip_suffix('%');
                let number = without.unwrap_or(text).trim_end();
                let (number, most) = match number.split_once('/').or_else(|| number.split_once(" out of ")) {
                    Some((number, most)) => (number.trim(), Some(most.trim().parse::<f64>().ok()?)),
                    None => (number, None),
                };
                (number.parse::<f64>().ok()?, without.is_some(), most)
            }
            _ => return None,
        };
        let is_possible = value.is_finite() && most.is_none_or(|most| most.is_finite() && most > 0.0);
        is_possible.then_some(Number { value, is_percent, most })
    }

    /// Returns the number on a scale that ends at `most`: percentages of a scale up to 1 are parts of it.
    pub(crate) fn on_scale(self, most: f64) -> f64 {
        match self.most {
            Some(own) if most.is_finite() => self.value / own * most,
            _ if self.is_percent && most <= 1.0 => self.value / 100.0,
            _ => self.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn n_of(text: &str) -> Result<i64, Wrong> {
        read_object(text, |object| match object.get("n").map(Json::to_value) {
            Some(Value::Number(n)) if n.as_i64().is_some_and(|n| n < 100) => Ok(n.as_i64().unwrap_or_default()),
            Some(_) => Err(Wrong::Value("n is too large".into())),
            None => Err(Wrong::Form("n is missing".into())),
        })
    }

    #[test]
    fn the_object_is_found_beside_other_braces() {
        let no_object = Err(Wrong::Form("it was not one JSON object".into()));
        let missing = Err(Wrong::Form("n is missing".into()));
        for (text, expect) in [
            (r#"{"n": 1}"#, Ok(1)),
            (r#"The set {a, b} has {"n": 1} as its size. }"#, Ok(1)),
            ("```json\n{\"n\": 2}\n```\nNote: {} and {\"m\": 1}", Ok(2)),
            (r#"{"n": 1} No, wait: {"n": 2}"#, Ok(2)),
            (r#"{"n": 1} {"n": "unfinished"#, Ok(1)),
            (r#"{{"n": 3}}"#, Ok(3)),
            (r#"{ "why": "a brace } and {", "n": 4 }"#, Ok(4)),
            (r#"function() { return {"n": 5}; }"#, Ok(5)),
            (r#"{"answer": {"n": 6}}"#, Ok(6)),
            (r#"[{"n": 7}]"#, Ok(7)),
            (r#"{"n": 7, "sure": True, "share": 8/10, "none": NaN}"#, Ok(7)),
            (r#"{"n": 8, "parts": {"n": 9}}"#, Ok(8)),
            // A member of several is not the answer.
            (r#"{"m": 1, "parts": {"n": 9}}"#, missing.clone()),
            (r#"{"n": 100} {}"#, Err(Wrong::Value("n is too large".into()))),
            (r#"{"m": 1}"#, missing),
            ("", no_object.clone()),
            ("}{ [1] {a", no_object.clone()),
            ("\u{feff}{\"n\": 1}", Ok(1)),
        ] {
            assert_eq!(n_of(text), expect, "{text}");
        }
        let many = r#"{"m": 1} "#.repeat(10_000);
        assert_eq!(n_of(&format!(r#"{many}{{"n": 1}}"#)), Ok(1));
        // Nothing that is never closed is read again and again.
        for endless in [r#"{"a":"#.repeat(500_000), "{".repeat(500_000), r#"{"a":[1,"#.repeat(200_000)] {
            assert_eq!(n_of(&endless), no_object);
        }
    }

    #[test]
    fn values_may_be_written_as_texts() {
        for (value, expect) in [
            (json!(true), Some(true)),
            (json!("True"), Some(true)),
            (json!(" 'yes' "), Some(true)),
            (json!("No."), Some(false)),
            (json!("True,"), Some(true)),
            (json!("FALSE"), Some(false)),
            (json!(1), Some(true)),
            (json!(0.0), Some(false)),
            (json!(2), None),
            (json!("perhaps"), None),
            (json!(null), None),
            (json!([true]), None),
        ] {
            assert_eq!(truth(&value), expect, "{value}");
        }
        for (value, expect) in [("Pass.", true), ("**Failed**", false), ("True", true)] {
            assert_eq!(verdict(&json!(value)), Some(expect), "{value}");
        }
        for (value, expect, of_one) in [
            (json!(85), Some(85.0), Some(85.0)),
            (json!("85"), Some(85.0), Some(85.0)),
            (json!("85 %"), Some(85.0), Some(0.85)),
            (json!("\"0.9\""), Some(0.9), Some(0.9)),
            (json!("8/10"), Some(8.0), Some(0.8)),
            (json!("8 out of 10."), Some(8.0), Some(0.8)),
            (json!("8/0"), None, None),
            (json!("-1.5e1"), Some(-15.0), Some(-15.0)),
            (json!("NaN"), None, None),
            (json!("inf"), None, None),
            (json!("about 5"), None, None),
            (json!("%"), None, None),
            (json!(true), None, None),
        ] {
            let number = Number::of(&value);
            assert_eq!((number.map(|n| n.value), number.map(|n| n.on_scale(1.0))), (expect, of_one), "{value}");
        }
        for (value, expect) in [(json!(null), true), (json!("Unknown"), true), (json!("no"), false), (json!(0), false)]
        {
            assert_eq!(is_nothing(&value), expect, "{value}");
        }
    }
}
