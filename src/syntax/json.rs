//! A JSON reader (RFC 8259) for request bodies. It keeps what a validator must see and a value tree forgets: the text
//! of each number (so that a 70-bit integer is told from a float) and the character position of a fault. It is not a
//! serializer of program values: that is `serde_json`.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Number, Value};

use super::decimal;

/// Most arrays and objects inside each other; deeper text is a fault.
///
/// The store's reader ends at 127, and a stored body stands inside the objects of its row.
pub const MAX_DEPTH: usize = 120;

/// Objects up to this many members are searched linearly for duplicates, larger ones by a table.
const LINEAR_MEMBERS: usize = 16;

/// A value as it was written, borrowed from the text where possible.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// The literal `null`, also for absent input.
    Null,
    /// A literal `true` or `false`.
    Bool(bool),
    /// The number's text, for instance `1e3`.
    Number(Cow<'a, str>),
    /// A string, escapes resolved.
    Text(Cow<'a, str>),
    /// An array, its items in order.
    Array(Vec<Json<'a>>),
    /// An object: names are unique, in order of their first appearance, with the value of their last.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Reason and place of a fault in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Text of the fault as shown to the user.
    pub why: &'static str,
    /// 0-based position in characters (not bytes).
    pub at_char: usize,
}

const VALUE: &str = "Expecting value";
const NAME: &str = "Expecting property name enclosed in double quotes";
const COLON: &str = "Expecting ':' delimiter";
const COMMA: &str = "Expecting ',' delimiter";
const UNTERMINATED: &str = "Unterminated string starting at";
const CONTROL: &str = "Invalid control character at";
const ESCAPE: &str = "Invalid \\escape";
const UNICODE: &str = "Invalid \\uXXXX escape";
const EXTRA: &str = "Extra data";
const DEEP: &str = "Nesting is too deep";

/// Reads one complete JSON text. A byte order mark before it is skipped and not counted.
pub fn read_text(text: &str) -> Result<Json<'_>, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
    let read = reader.whole();
    read.map_err(|(why, at)| Fault { why, at_char: text[..at].chars().count() })
}

/// Returns the value of a JSON text without a loss of digits, as [`Json::to_exact_value`] does; `None` for other texts.
pub fn read_exact(bytes: &[u8]) -> Option<Value> {
    read_text(std::str::from_utf8(bytes).ok()?).ok().map(|json| json.to_exact_value())
}

/// Reads the value that a text begins with, whatever comes after it: the value and its length in bytes.
///
/// # Errors
/// Number of bytes that were read before the text turned out to be no JSON.
pub fn read_prefix(text: &str) -> Result<(Json<'_>, usize), usize> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
    match reader.value(0) {
        Ok(value) => Ok((value, reader.at)),
        Err(_) => Err(reader.at),
    }
}

impl<'a> Json<'a> {
    /// Returns the member called `name`; `None` when this is no object or has no such member.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the same value for program use. Integers beyond 64 bits become floats, and numbers beyond a float become
    /// null.
    pub fn to_value(&self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(text) => number(text),
            Json::Text(text) => Value::String(text.clone().into_owned()),
            Json::Array(items) => Value::Array(items.iter().map(Json::to_value).collect()),
            Json::Object(members) => {
                Value::Object(members.iter().map(|(name, value)| (name.to_string(), value.to_value())).collect())
            }
        }
    }

    /// Returns the same value without a loss of digits: a number that 64 bits do not hold is the text of its digits.
    pub fn to_exact_value(&self) -> Value {
        match self {
            Json::Number(text) => decimal::exact(text),
            Json::Array(items) => Value::Array(items.iter().map(Json::to_exact_value).collect()),
            Json::Object(members) => {
                let member = |(name, value): &(Cow<'a, str>, Json<'a>)| (name.to_string(), value.to_exact_value());
                Value::Object(members.iter().map(member).collect())
            }
            other => other.to_value(),
        }
    }

    /// Appends the value as compact JSON, numbers as they were written.
    pub fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Json::Number(text) => out.push_str(text),
            Json::Text(text) => write_text(text, out),
            Json::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends `text` as a JSON string literal.
pub fn write_text(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}

/// Returns an empty object, the `input` of a fault in the JSON text itself.
pub fn empty_object() -> Json<'static> {
    Json::Object(Vec::new())
}

fn number(text: &str) -> Value {
    let integer = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    let number = integer.ok().or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
    number.map_or(Value::Null, Value::Number)
}

type Read<T> = Result<T, (&'static str, usize)>;

/// Positions are byte offsets here; they become characters once, when a fault is reported.
struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn whole(&mut self) -> Read<Json<'a>> {
        let value = self.value(0)?;
        self.blanks();
        if self.at < self.bytes.len() { Err((EXTRA, self.at)) } else { Ok(value) }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Read<Json<'a>> {
        self.blanks();
        match self.peek() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => Err((DEEP, self.at)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Read<Json<'a>> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.bytes[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err((VALUE, self.at))
    }

    fn object(&mut self, depth: usize) -> Read<Json<'a>> {
        let mut members = Vec::new();
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err((NAME, self.at));
            }
            let name = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err((COLON, self.at));
            }
            self.at += 1;
            members.push((name, self.value(depth + 1)?));
            if self.closes(b'}')? {
                return Ok(Json::Object(unique(members)));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Read<Json<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.closes(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    /// Reads the sign after a member or item: true for `close`, false for a comma.
    fn closes(&mut self, close: u8) -> Read<bool> {
        self.blanks();
        match self.peek() {
            Some(byte) if byte == close || byte == b',' => {
                self.at += 1;
                Ok(byte == close)
            }
            _ => Err((COMMA, self.at)),
        }
    }

    fn digits(&self, mut at: usize) -> usize {
        while self.bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    }

    fn number(&mut self) -> Read<Json<'a>> {
        let start = self.at;
        let whole = start + usize::from(self.bytes[start] == b'-');
        let mut end = match self.bytes.get(whole) {
            Some(b'0') => whole + 1,
            Some(b'1'..=b'9') => self.digits(whole),
            _ => return Err((VALUE, start)),
        };
        if self.bytes.get(end) == Some(&b'.') && self.digits(end + 1) > end + 1 {
            end = self.digits(end + 1);
        }
        if let Some(b'e' | b'E') = self.bytes.get(end) {
            let sign = usize::from(matches!(self.bytes.get(end + 1), Some(b'+' | b'-')));
            let power = end + 1 + sign;
            if self.digits(power) > power {
                end = self.digits(power);
            }
        }
        self.at = end;
        Ok(Json::Number(Cow::Borrowed(&self.text[start..end])))
    }

    fn string(&mut self) -> Read<Cow<'a, str>> {
        let open = self.at;
        self.at += 1;
        let mut from = self.at;
        let mut resolved: Option<String> = None;
        loop {
            match self.peek() {
                None => return Err((UNTERMINATED, open)),
                Some(b'"') => {
                    let rest = &self.text[from..self.at];
                    self.at += 1;
                    return Ok(match resolved {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                Some(b'\\') => {
                    let text = resolved.get_or_insert_default();
                    text.push_str(&self.text[from..self.at]);
                    let escaped = self.escape(open)?;
                    text.push(escaped);
                    from = self.at;
                }
                Some(0..0x20) => return Err((CONTROL, self.at)),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self, open: usize) -> Read<char> {
        let escaped = match self.bytes.get(self.at + 1) {
            None => return Err((UNTERMINATED, open)),
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            Some(_) => return Err((ESCAPE, self.at)),
        };
        self.at += 2;
        Ok(escaped)
    }

    /// Reads `\uXXXX`, with its low surrogate when it is a high one. A lone surrogate is no character and becomes
    /// U+FFFD.
    fn unicode(&mut self) -> Read<char> {
        let first = self.hex(self.at + 1)?;
        self.at += 6;
        if let Some(whole) = char::from_u32(first) {
            return Ok(whole);
        }
        if first < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u") {
            let second = self.hex(self.at + 1)?;
            if (0xdc00..0xe000).contains(&second) {
                self.at += 6;
                let whole = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(whole).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// Reads the four digits behind the `u` at `letter`, the position of a fault in them.
    fn hex(&self, letter: usize) -> Read<u32> {
        let fault = (UNICODE, letter);
        let digits = self.bytes.get(letter + 1..letter + 5).ok_or(fault)?;
        digits.iter().try_fold(0, |sum, digit| {
            let value = char::from(*digit).to_digit(16).ok_or(fault)?;
            Ok(sum * 16 + value)
        })
    }
}

/// Removes repeated names: the last value counts, at the place of the first.
fn unique<'a>(members: Vec<(Cow<'a, str>, Json<'a>)>) -> Vec<(Cow<'a, str>, Json<'a>)> {
    let mut kept: Vec<(Cow<'a, str>, Json<'a>)> = Vec::with_capacity(members.len());
    if members.len() <= LINEAR_MEMBERS {
        for (name, value) in members {
            match kept.iter_mut().find(|(known, _)| *known == name) {
                Some(slot) => slot.1 = value,
                None => kept.push((name, value)),
            }
        }
        return kept;
    }
    let mut places: HashMap<Cow<'a, str>, usize> = HashMap::with_capacity(members.len());
    for (name, value) in members {
        match places.get(&name) {
            Some(place) => kept[*place].1 = value,
            None => {
                places.insert(name.clone(), kept.len());
                kept.push((name, value));
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let mut out = String::new();
        match read_text(text) {
            Ok(value) => value.write(&mut out),
            Err(fault) => out = format!("{} @{}", fault.why, fault.at_char),
        }
        assert_eq!(out, expect, "for {text}");
    }

    #[test]
    fn values_keep_what_was_written() {
        for (text, expect) in [
            (" [1, 1e3,-0.0, 1180591620717411303424] ", "[1,1e3,-0.0,1180591620717411303424]"),
            ("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"),
            ("\u{feff}{}", "{}"),
            (r#""\u00e9\ud83d\ude00\n""#, "\"é😀\\n\""),
            (r#""\ud800x""#, "\"\u{fffd}x\""),
        ] {
            check(text, expect);
        }
        let large: String = (0..40).map(|n| format!("\"k{}\":{n},", n % 20)).collect();
        let read = read_text(&format!("{{{}}}", large.trim_end_matches(','))).expect("legal").to_value();
        assert_eq!(read.as_object().map(serde_json::Map::len), Some(20));
        assert_eq!(read["k3"], 23);
    }

    #[test]
    fn no_digit_is_lost() {
        let text = br#"{"id":9007199254740993,"n":[1.10,12345678901234567890123,0.12345678901234567890]}"#;
        let expect = serde_json::json!({
            "id": 9_007_199_254_740_993_i64, "n": [1.1, "12345678901234567890123", "0.12345678901234567890"],
        });
        assert_eq!(read_exact(text), Some(expect));
        assert_eq!((read_exact(b"{"), read_exact(&[0xff])), (None, None));
    }

    #[test]
    fn faults_have_words_and_a_character_position() {
        for (text, expect) in [
            ("", "Expecting value @0"),
            ("  ", "Expecting value @2"),
            ("[1,", "Expecting value @3"),
            ("[1,]", "Expecting value @3"),
            ("[1 2]", "Expecting ',' delimiter @3"),
            ("{a:1}", "Expecting property name enclosed in double quotes @1"),
            ("{\"a\":1, }", "Expecting property name enclosed in double quotes @8"),
            ("{\"a\" 1}", "Expecting ':' delimiter @5"),
            ("{\"a\":1", "Expecting ',' delimiter @6"),
            ("{\"é\":\"x", "Unterminated string starting at @5"),
            ("\"a\nb\"", "Invalid control character at @2"),
            (r#""a\x""#, "Invalid \\escape @2"),
            (r#""a\u12g4""#, "Invalid \\uXXXX escape @3"),
            (r#""é\u12"#, "Invalid \\uXXXX escape @3"),
            (r#""\u12é4""#, "Invalid \\uXXXX escape @2"),
            (r#""\ud83d\uzz00""#, "Invalid \\uXXXX escape @8"),
            ("{} x", "Extra data @3"),
            ("01", "Extra data @1"),
            ("NaN", "Expecting value @0"),
            ("-Infinity", "Expecting value @0"),
            ("tru", "Expecting value @0"),
        ] {
            check(text, expect);
        }
        check(&"[".repeat(MAX_DEPTH + 1), &format!("Nesting is too deep @{MAX_DEPTH}"));
    }
}
