//! Serializes a struct as an object of its members that are not null, whichever they are. A serde attribute would leave
//! them out everywhere, but what users read has its nulls.

use std::cell::RefCell;
use std::io::{Result, Write};

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;

/// Serializes a struct or a map without its members that are null; those further inside stay.
///
/// # Errors
/// When `record` is not JSON.
pub(crate) fn set_only<T: Serialize, S: Serializer>(record: &T, to: S) -> std::result::Result<S::Ok, S::Error> {
    let text = RefCell::default();
    let members = Members { text: &text, depth: 0, member: 0 };
    record.serialize(&mut serde_json::Serializer::with_formatter(Text(&text), members)).map_err(S::Error::custom)?;
    let text = String::from_utf8(text.into_inner()).map_err(S::Error::custom)?;
    RawValue::from_string(text).map_err(S::Error::custom)?.serialize(to)
}

/// Writer to the text so far.
struct Text<'t>(&'t RefCell<Vec<u8>>);

impl Write for Text<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Takes back each member of the outermost object that has turned out to be null.
struct Members<'t> {
    text: &'t RefCell<Vec<u8>>,
    /// Number of objects that are open.
    depth: usize,
    /// Offset of the outermost member in the text, in bytes.
    member: usize,
}

impl Formatter for Members<'_> {
    fn begin_object<W: Write + ?Sized>(&mut self, to: &mut W) -> Result<()> {
        self.depth += 1;
        to.write_all(b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, to: &mut W) -> Result<()> {
        self.depth -= 1;
        to.write_all(b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> Result<()> {
        if self.depth > 1 {
            return if first { Ok(()) } else { to.write_all(b",") };
        }
        self.member = self.text.borrow().len();
        // The members before it may have been removed.
        if self.member > 1 { to.write_all(b",") } else { Ok(()) }
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> Result<()> {
        let mut text = self.text.borrow_mut();
        // A string with this ending has a quotation mark behind it.
        if self.depth == 1 && text.ends_with(b":null") {
            text.truncate(self.member);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::set_only;

    #[derive(Serialize)]
    struct Doc {
        #[serde(serialize_with = "set_only")]
        kept: Value,
        other: Option<i64>,
    }

    #[test]
    fn members_that_are_null_are_left_out() {
        for (given, expect) in [
            (json!({}), "{}"),
            (json!({"a": null}), "{}"),
            (json!({"a": null, "b": null, "c": 1}), r#"{"c":1}"#),
            (json!({"a": 1, "b": null}), r#"{"a":1}"#),
            (json!({"a": 1, "b": null, "c": null, "d": [null], "e": null}), r#"{"a":1,"d":[null]}"#),
            (json!({"a": {"b": null, "c": {"d": null}}, "e": 2}), r#"{"a":{"b":null,"c":{"d":null}},"e":2}"#),
            (json!({"a": [{"b": null}, {}, null], "c": 1}), r#"{"a":[{"b":null},{},null],"c":1}"#),
            (json!({"a": ":null", "b:null": "x\":null", "c": null}), r#"{"a":":null","b:null":"x\":null"}"#),
        ] {
            let text = serde_json::to_string(&Doc { kept: given, other: None }).expect("it is JSON");
            assert_eq!(text, format!(r#"{{"kept":{expect},"other":null}}"#));
        }
    }
}
