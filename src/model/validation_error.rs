//! Validation errors of a request: the items of a 422 answer, with their exact texts and places. Which value is wrong
//! is decided by `validate` and `scalar`.

use std::borrow::Cow;

use ringer_syntax::json;
use ringer_syntax::json::Json;
use serde_json::{Value, json};

/// Most items of an answer; more are dropped, so that the answer to a hostile body stays bounded.
pub const MAX_ISSUES: usize = 10_000;

/// One way in which a value can be wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Machine-readable type, for instance `string_type`.
    pub kind: &'static str,
    /// Text for the reader.
    pub msg: Cow<'static, str>,
    /// Numbers and words in the text, by name; null where a kind has none.
    pub ctx: Value,
}

impl Problem {
    /// Returns the problem of a kind whose text has no variable part.
    pub fn plain(kind: &'static str) -> Problem {
        let msg = match kind {
            "missing" => "Field required",
            "string_type" => "Input should be a valid string",
            "int_type" => "Input should be a valid integer",
            "int_parsing" => "Input should be a valid integer, unable to parse string as an integer",
            "int_parsing_size" => "Unable to parse input string as an integer, exceeded maximum size",
            "int_from_float" => "Input should be a valid integer, got a number with a fractional part",
            "float_type" => "Input should be a valid number",
            "float_parsing" => "Input should be a valid number, unable to parse string as a number",
            "finite_number" => "Input should be a finite number",
            "bool_type" => "Input should be a valid boolean",
            "bool_parsing" => "Input should be a valid boolean, unable to interpret input",
            "uuid_type" => "UUID input should be a string, bytes or UUID object",
            "datetime_type" => "Input should be a valid datetime",
            "date_type" => "Input should be a valid date",
            "date_from_datetime_inexact" => "Datetimes provided to dates should have zero time - e.g. be exact dates",
            "url_type" => "URL input should be a string or URL",
            "list_type" => "Input should be a valid list",
            "dict_type" => "Input should be a valid dictionary",
            "model_attributes_type" => "Input should be a valid dictionary or object to extract fields from",
            _ => "Input is not valid",
        };
        Problem { kind, msg: Cow::Borrowed(msg), ctx: Value::Null }
    }

    fn with(kind: &'static str, msg: String, ctx: Value) -> Problem {
        Problem { kind, msg: Cow::Owned(msg), ctx }
    }

    /// Returns the problem of a string of fewer than `least` characters.
    pub fn string_too_short(least: u64) -> Problem {
        let msg = format!("String should have at least {}", count_of(least, "character"));
        Problem::with("string_too_short", msg, json!({ "min_length": least }))
    }

    /// Returns the problem of a string of more than `most` characters.
    pub fn string_too_long(most: u64) -> Problem {
        let msg = format!("String should have at most {}", count_of(most, "character"));
        Problem::with("string_too_long", msg, json!({ "max_length": most }))
    }

    /// Returns the problem of a string that the expression does not match.
    pub fn pattern(expression: &str) -> Problem {
        let msg = format!("String should match pattern '{expression}'");
        Problem::with("string_pattern_mismatch", msg, json!({ "pattern": expression }))
    }

    /// Returns the problem of a number on the wrong side of a bound. `bound` has the declared type (`0` or `0.0`).
    pub fn beyond_bound(side: Side, bound: &Value) -> Problem {
        let (kind, words, key) = match side {
            Side::Above => ("greater_than", "greater than", "gt"),
            Side::AtLeast => ("greater_than_equal", "greater than or equal to", "ge"),
            Side::Below => ("less_than", "less than", "lt"),
            Side::AtMost => ("less_than_equal", "less than or equal to", "le"),
        };
        let shown = bound.to_string();
        let shown = shown.strip_suffix(".0").unwrap_or(&shown);
        Problem::with(kind, format!("Input should be {words} {shown}"), json!({ key: bound }))
    }

    /// Returns the problem of a value outside an enumeration; `expected` as `'a', 'b' or 'c'`.
    pub fn choice(kind: &'static str, expected: &str) -> Problem {
        Problem::with(kind, format!("Input should be {expected}"), json!({ "expected": expected }))
    }

    /// Returns the problem of a text that cannot be parsed as a textual type, with the reason.
    pub fn parsing(kind: &'static str, why: &str) -> Problem {
        let what = match kind {
            "uuid_parsing" => "UUID",
            "url_parsing" => "URL",
            "date_from_datetime_parsing" => "date or datetime",
            _ => "datetime or date",
        };
        Problem::with(kind, format!("Input should be a valid {what}, {why}"), json!({ "error": why }))
    }

    /// Returns the problem of a URL of another scheme than http and https.
    pub fn url_scheme() -> Problem {
        let schemes = "'http' or 'https'";
        let msg = format!("URL scheme should be {schemes}");
        Problem::with("url_scheme", msg, json!({ "expected_schemes": schemes }))
    }

    /// Returns the problem of a URL of more than `most` characters.
    pub fn url_too_long(most: u64) -> Problem {
        let msg = format!("URL should have at most {most} characters");
        Problem::with("url_too_long", msg, json!({ "max_length": most }))
    }

    /// Returns the problem of an array of fewer than `least` items.
    pub fn too_short(least: u64, actual: usize) -> Problem {
        let msg = format!("List should have at least {} after validation, not {actual}", count_of(least, "item"));
        let ctx = json!({ "field_type": "List", "min_length": least, "actual_length": actual });
        Problem::with("too_short", msg, ctx)
    }

    /// Returns the problem of an array of more than `most` items.
    pub fn too_long(most: u64, actual: usize) -> Problem {
        let msg = format!("List should have at most {} after validation, not {actual}", count_of(most, "item"));
        let ctx = json!({ "field_type": "List", "max_length": most, "actual_length": actual });
        Problem::with("too_long", msg, ctx)
    }

    /// Returns the problem of a tagged union without its tag.
    pub fn tag_missing(tag: &str) -> Problem {
        let ctx = json!({ "discriminator": format!("'{tag}'") });
        Problem::with("union_tag_not_found", format!("Unable to extract tag using discriminator '{tag}'"), ctx)
    }

    /// Returns the problem of a tagged union with an unknown tag; `expected` as `'a', 'b'`.
    pub fn tag_invalid(tag: &str, value: &str, expected: &str) -> Problem {
        let msg =
            format!("Input tag '{value}' found using '{tag}' does not match any of the expected tags: {expected}");
        let ctx = json!({ "discriminator": format!("'{tag}'"), "tag": value, "expected_tags": expected });
        Problem::with("union_tag_invalid", msg, ctx)
    }

    /// Returns the problem of a body that is no JSON text.
    pub fn json_invalid(why: &str) -> Problem {
        Problem::with("json_invalid", "JSON decode error".to_owned(), json!({ "error": why }))
    }
}

/// Bound that a number broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The number must be greater.
    Above,
    /// The number must be greater or equal.
    AtLeast,
    /// The number must be less.
    Below,
    /// The number must be less or equal.
    AtMost,
}

fn count_of(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// One step of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'s> {
    /// A source, a field name, a tag or the name of a union's member.
    Name(Cow<'s, str>),
    /// A position in an array, or of a character in the body.
    Index(usize),
}

/// The items collected so far, each already in its JSON form: an item is written once and needs its input no longer.
#[derive(Clone, Debug, Default)]
pub struct ValidationErrors {
    items: Vec<String>,
}

impl ValidationErrors {
    /// Adds one item: its place, its problem, and the wrong value.
    pub fn add(&mut self, loc: &[Step<'_>], problem: &Problem, input: &Json<'_>) {
        if self.items.len() >= MAX_ISSUES {
            return;
        }
        let mut item = format!("{{\"type\":\"{}\",\"loc\":[", problem.kind);
        for (index, step) in loc.iter().enumerate() {
            if index > 0 {
                item.push(',');
            }
            match step {
                Step::Name(name) => json::write_text(name, &mut item),
                Step::Index(at) => item.push_str(&at.to_string()),
            }
        }
        item.push_str("],\"msg\":");
        json::write_text(&problem.msg, &mut item);
        item.push_str(",\"input\":");
        input.write(&mut item);
        if !problem.ctx.is_null() {
            item.push_str(",\"ctx\":");
            item.push_str(&problem.ctx.to_string());
        }
        item.push('}');
        self.items.push(item);
    }

    /// Moves the items of `others` behind its own, up to [`MAX_ISSUES`].
    pub fn append(&mut self, others: ValidationErrors) {
        let space = MAX_ISSUES - self.items.len().min(MAX_ISSUES);
        self.items.extend(others.items.into_iter().take(space));
    }

    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of items, at most [`MAX_ISSUES`].
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the first item; `None` if there is none.
    pub fn first(&self) -> Option<Value> {
        self.items.first().and_then(|item| serde_json::from_str(item).ok())
    }

    /// Returns the items, each `{type, loc, msg, input, ctx}`.
    pub fn items(&self) -> impl Iterator<Item = Value> {
        self.items.iter().filter_map(|item| serde_json::from_str(item).ok())
    }

    /// Returns the body of the answer: `{"detail":[item, ...]}`.
    pub fn body(&self) -> String {
        format!("{{\"detail\":[{}]}}", self.items.join(","))
    }
}
