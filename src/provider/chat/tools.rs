//! Tool calls of an answer, put together from their pieces. Servers differ in how a piece says which call it belongs
//! to.

use serde_json::{Map, Value};

use super::surrogates;

/// Tool calls in one answer.
const TOOLS_MAX: usize = 8;
/// Longest arguments of a call in bytes.
const ARGUMENTS_BYTES_MAX: usize = 1 << 20;
/// Longest name of a tool in bytes.
const NAME_BYTES_MAX: usize = 256;

#[derive(Debug, Default)]
struct Call {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Tools(Vec<Call>);

impl Tools {
    /// Takes the pieces that came together: `tool_calls` of a delta or a message, in a list or alone.
    pub(super) fn take(&mut self, calls: &Value) {
        match calls {
            Value::Array(calls) => {
                calls.iter().enumerate().for_each(|(at, call)| self.piece(at as u64, call, &call["function"]));
            }
            Value::Object(_) => self.piece(0, calls, &calls["function"]),
            _ => {}
        }
    }

    /// Takes a `function_call`, which older servers send: name and arguments alone.
    pub(super) fn take_function(&mut self, function: &Value) {
        if function.is_object() {
            self.piece(0, &Value::Null, function);
        }
    }

    fn piece(&mut self, place: u64, call: &Value, function: &Value) {
        let index = call["index"].as_u64().unwrap_or(place);
        let id = call["id"].as_str().unwrap_or_default();
        let name = function["name"].as_str().unwrap_or_default();
        let arguments = &function["arguments"];
        let has_id =
            |known: &Call| !id.is_empty() && known.id == id && (call["index"].is_null() || known.index == index);
        let is_same = |known: &Call| known.index == index && !known.is_followed_by(id, name, arguments);
        let at = self.0.iter().rposition(has_id).or_else(|| self.0.iter().rposition(is_same));
        let at = at.unwrap_or_else(|| {
            self.0.push(Call { index, ..Call::default() });
            self.0.len() - 1
        });
        if at >= TOOLS_MAX {
            self.0.truncate(TOOLS_MAX);
            return;
        }
        let known = &mut self.0[at];
        if known.id.is_empty() {
            known.id = id.chars().take(NAME_BYTES_MAX).collect();
        }
        known.name(name);
        known.arguments(arguments);
    }

    /// Returns names and arguments (JSON text) of the calls, in order.
    pub(super) fn all(self) -> Vec<(String, String)> {
        let named = self.0.into_iter().filter(|call| !call.name.is_empty());
        named.map(|call| (call.name, surrogates::join(&call.arguments))).collect()
    }

    /// True when nothing was called.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|call| call.name.is_empty())
    }
}

impl Call {
    /// True if a piece of the same index begins another call.
    fn is_followed_by(&self, id: &str, name: &str, arguments: &Value) -> bool {
        if name.is_empty() {
            return false;
        }
        if !id.is_empty() && !self.id.is_empty() {
            return id != self.id;
        }
        // Nothing follows whole arguments but another call.
        let adds = arguments.as_str().is_some_and(|text| !text.is_empty()) || arguments.is_object();
        adds && serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }

    /// Takes a piece of the name, or the name once more.
    fn name(&mut self, piece: &str) {
        if piece == self.name || self.name.len() + piece.len() > NAME_BYTES_MAX {
            return;
        }
        if piece.starts_with(&self.name) {
            piece.clone_into(&mut self.name);
        } else if self.arguments.is_empty() {
            self.name.push_str(piece);
        }
    }

    fn arguments(&mut self, piece: &Value) {
        match piece {
            Value::String(text) if self.arguments.len() + text.len() <= ARGUMENTS_BYTES_MAX => {
                self.arguments.push_str(text);
            }
            // A whole value, not a piece of text.
            Value::Object(_) | Value::Array(_) => {
                let text = piece.to_string();
                if text.len() <= ARGUMENTS_BYTES_MAX {
                    self.arguments = text;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_put_together_from_pieces_of_every_form() {
        let check = |deltas: &[Value], expect: &[(&str, &str)]| {
            let mut tools = Tools::default();
            deltas.iter().for_each(|delta| tools.take(delta));
            let all = tools.all();
            let all: Vec<(&str, &str)> = all.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            assert_eq!(all, expect, "{deltas:?}");
        };
        let call = |index: Value, id: Value, name: Value, arguments: Value| json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
        let none = || Value::Null;
        let (a, b) = (("a", "{\"x\":1}"), ("b", "{}"));
        // As most do.
        let begun = json!([call(json!(0), json!("1"), json!("a"), json!(""))]);
        let piece = |text: &str| json!([call(json!(0), none(), none(), json!(text))]);
        check(&[begun.clone(), piece("{\"x\""), piece(":1}")], &[a]);
        check(&[begun, piece("{\"x\":1}"), json!([call(json!(1), json!("2"), json!("b"), json!("{}"))])], &[a, b]);
        // Without indexes.
        let whole = |name: &str, text: &str| call(none(), none(), json!(name), json!(text));
        check(&[json!([whole("a", "{\"x\":1}"), whole("b", "{}")])], &[a, b]);
        check(&[json!([whole("a", "{\"x\":1}")]), json!([whole("b", "{}")])], &[a, b]);
        let continued = json!([call(none(), none(), none(), json!(":1}"))]);
        check(&[json!([whole("a", "{\"x\"")]), continued], &[a]);
        check(
            &[
                json!([call(none(), json!("1"), json!("a"), json!("{\"x\""))]),
                json!([call(none(), json!("1"), json!(""), json!(":1}"))]),
            ],
            &[a],
        );
        let with_id = |id: &str, name: &str, text: &str| call(none(), json!(id), json!(name), json!(text));
        let turns =
            [with_id("1", "a", "{\"x\""), with_id("2", "b", "{"), with_id("1", "", ":1}"), with_id("2", "", "}")];
        check(&turns.map(|piece| json!([piece])), &[a, b]);
        // Equal indexes, other ids.
        let of = |id: &str, name: &str, text: &str| call(json!(0), json!(id), json!(name), json!(text));
        check(&[json!([of("1", "a", "{\"x\":1}")]), json!([of("2", "b", "{}")])], &[a, b]);
        check(&[json!([of("1", "a", "{\"x\":1}"), of("2", "b", "{}")])], &[a, b]);
        check(&[json!([of("1", "b", "{}")]), json!([of("2", "b", "{}")])], &[b, b]);
        check(&[json!([of("1", "a", "{\"x\"")]), json!([of("", "", ":1}")])], &[a]);
        check(&[json!([of("1", "a", "{\"x\"")]), json!([of("other", "", ":1}")])], &[a]);
        // The name in each piece, or in pieces.
        check(&[json!([of("1", "a", "{\"x\"")]), json!([of("1", "a", ":1}")])], &[a]);
        check(
            &[
                json!([call(json!(0), none(), json!("a"), json!("{\"x\""))]),
                json!([call(json!(0), none(), json!("a"), json!(":1}"))]),
            ],
            &[a],
        );
        check(&[json!([of("1", "end_", "")]), json!([of("1", "call", "")])], &[("end_call", "")]);
        check(&[json!([of("1", "end_", "")]), json!([of("1", "end_call", "{}")])], &[("end_call", "{}")]);
        // Arguments as an object, a call alone, and none at all.
        check(&[json!([call(json!(0), none(), json!("a"), json!({ "x": 1 }))])], &[a]);
        check(&[call(none(), none(), json!("a"), json!({ "x": 1 }))], &[a]);
        check(&[json!(null), json!(5), json!([{}]), json!([null])], &[]);
        let many: Vec<Value> = (0..20).map(|at| call(json!(at), none(), json!("b"), json!("{}"))).collect();
        check(&[json!(many)], &[b; TOOLS_MAX]);
    }

    #[test]
    fn a_function_call_of_older_servers_is_one() {
        let mut tools = Tools::default();
        assert!(tools.is_empty());
        for piece in [json!(null), json!({ "name": "a", "arguments": "{\"x\"" }), json!({ "arguments": ":1}" })] {
            tools.take_function(&piece);
        }
        assert!(!tools.is_empty());
        assert_eq!(tools.all(), [("a".to_owned(), "{\"x\":1}".to_owned())]);
    }
}
