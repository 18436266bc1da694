//! Values as the texts of tags that are none: in the words that callers know from the validators they come from,
//! `None`, `True` and `{'a': [1.5]}`.

use std::fmt::Write as _;

use ringer_syntax::json::Json;

/// Floats from here on, and those below [`LEAST_PLAIN`], are written with an exponent.
const MOST_PLAIN: f64 = 1e16;
/// The least float above zero without an exponent.
const LEAST_PLAIN: f64 = 1e-4;

/// Returns a tag as it is shown: a text itself, anything else as a literal.
pub(super) fn of_tag(tag: &Json<'_>) -> String {
    let mut out = String::new();
    match tag {
        Json::Text(text) => out.push_str(text),
        other => write(other, &mut out),
    }
    out
}

fn write(json: &Json<'_>, out: &mut String) {
    match json {
        Json::Null => out.push_str("None"),
        Json::Bool(flag) => out.push_str(if *flag { "True" } else { "False" }),
        Json::Number(text) if text.contains(['.', 'e', 'E']) => float(text.parse().unwrap_or(f64::NAN), out),
        Json::Number(text) => out.push_str(if text == "-0" { "0" } else { text }),
        Json::Text(text) => quote(text, out),
        Json::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(item, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                quote(name, out);
                out.push_str(": ");
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// Appends the shortest digits that are this number, always with a fraction or an exponent of at least two digits.
fn float(value: f64, out: &mut String) {
    let size = value.abs();
    let plain = size == 0.0 || (LEAST_PLAIN..MOST_PLAIN).contains(&size);
    let shown = if plain { format!("{value:?}") } else { format!("{value:e}") };
    let _ = match shown.split_once('e') {
        Some((digits, power)) => match power.strip_prefix('-') {
            Some(power) => write!(out, "{digits}e-{power:0>2}"),
            None => write!(out, "{digits}e+{power:0>2}"),
        },
        None => write!(out, "{shown}"),
    };
}

/// Appends a text between single quotes, or between double ones when it contains single ones alone.
fn quote(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        let code = u32::from(c);
        let _ = match c {
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            '\\' => write!(out, "\\\\"),
            c if c == mark => write!(out, "\\{c}"),
            '\'' | '"' => write!(out, "{c}"),
            c if is_printable(c) => write!(out, "{c}"),
            _ if code < 0x100 => write!(out, "\\x{code:02x}"),
            _ if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
            _ => write!(out, "\\U{code:08x}"),
        };
    }
    out.push(mark);
}

/// True unless it is a control, a separator other than the blank, or unassigned.
fn is_printable(c: char) -> bool {
    // Put behind another character, so that a combining one is shown.
    c.is_ascii_graphic() || ["x", &*c.encode_utf8(&mut [0; 4])].concat().escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use ringer_syntax::json::read_text;

    use super::*;

    #[test]
    fn tags_are_shown_as_literals() {
        for (json, expect) in [
            ("\"it's\"", "it's"),
            ("null", "None"),
            ("[true, false]", "[True, False]"),
            ("5", "5"),
            ("-0", "0"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1.0", "1.0"),
            ("1.50", "1.5"),
            ("-0.0", "-0.0"),
            ("1e3", "1000.0"),
            ("1e16", "1e+16"),
            ("1.25e30", "1.25e+30"),
            ("0.0001", "0.0001"),
            ("1e-5", "1e-05"),
            ("1.5e-300", "1.5e-300"),
            ("1e999", "inf"),
            ("-1e999", "-inf"),
            ("{}", "{}"),
            (r#"{"a":null,"b":["c\"d", "e'f", "g'\"h"]}"#, r#"{'a': None, 'b': ['c"d', "e'f", 'g\'"h']}"#),
            (
                r#"["a\nb\t\\\u0001\u007f\u00a0é\u200b😀e\u0301\udb40\udc01"]"#,
                r"['a\nb\t\\\x01\x7f\xa0é\u200b😀é\U000e0001']",
            ),
        ] {
            assert_eq!(of_tag(&read_text(json).expect("the case is JSON")), expect, "{json}");
        }
    }
}
