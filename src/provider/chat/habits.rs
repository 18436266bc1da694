//! Parameters that a model's server does not accept, learnt from its refusals. They are then sent by their later name,
//! or left out.

use serde_json::Value;

use super::refusal::Refusal;

/// Parameters that a request can do without, with other words by which servers speak of them.
const PARAMETERS: [(&str, &[&str]); 8] = [
    (STREAM_OPTIONS, &["include_usage"]),
    (MAX_TOKENS, &[]),
    (MAX_COMPLETION_TOKENS, &[]),
    ("temperature", &[]),
    ("response_format", &["json_object", "json mode", "structured output"]),
    ("seed", &[]),
    ("tools", &["tool choice", "tool_choice", "tool use", "tool calling", "function calling", "functions"]),
    ("stream", &["streaming"]),
];
/// Parameter by which a stream is asked for its use.
pub(super) const STREAM_OPTIONS: &str = "stream_options";
const MAX_TOKENS: &str = "max_tokens";
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";
/// Words of a refusal that is about a value and not about the parameter.
const OF_VALUES: [&str; 10] =
    ["too large", "too big", "too high", "less than", "at most", "between", "maximum", "exceed", "range", "<="];

/// Way in which requests to one model are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Habits {
    /// True if `max_tokens` is sent by its later name.
    renamed: bool,
    without: Vec<Without>,
}

#[derive(Clone, Debug, PartialEq)]
struct Without {
    name: &'static str,
    /// Value from which on the parameter is left out; `None`: always.
    from: Option<f64>,
}

impl Habits {
    /// Changes the parameters of a request for this model.
    pub(super) fn apply(&self, body: &mut Value) {
        let Some(body) = body.as_object_mut() else { return };
        if self.renamed
            && let Some(value) = body.remove(MAX_TOKENS)
        {
            body.insert(MAX_COMPLETION_TOKENS.to_owned(), value);
        }
        for Without { name, from } in &self.without {
            let value = body.get(*name).and_then(Value::as_f64);
            if from.is_none_or(|from| value.is_some_and(|value| value >= from)) {
                body.remove(*name);
            }
        }
        if !body.contains_key("stream") {
            body.insert("stream".to_owned(), false.into());
            body.remove(STREAM_OPTIONS);
        }
    }

    /// Learns from a refusal that names nothing: the request is made once more without asking for its use, which older
    /// servers do not know. Returns the advice; `None`: nothing is left to try.
    pub(super) fn stop_asking_for_use(&mut self, sent: &Value) -> Option<String> {
        sent.get(STREAM_OPTIONS)?;
        self.without.push(Without { name: STREAM_OPTIONS, from: None });
        Some(format!("{STREAM_OPTIONS} is left out"))
    }

    /// Learns from the refusal of a request that was sent so; says what is done about it, or `None` when it names
    /// nothing that can be done without.
    pub(super) fn learn(&mut self, sent: &Value, refusal: &Refusal) -> Option<String> {
        let name = named_parameter(sent, refusal)?;
        let words = refusal.words.to_ascii_lowercase();
        let is_of_value = !refusal.is_unsupported && OF_VALUES.iter().any(|part| words.contains(part));
        if name == MAX_TOKENS && !is_of_value {
            self.renamed = true;
            return Some(format!("{MAX_COMPLETION_TOKENS} is sent instead of {MAX_TOKENS}"));
        }
        let from = sent[name].as_f64().filter(|_| is_of_value);
        self.without.push(Without { name, from });
        Some(match from {
            Some(from) => format!("{name} is left out from {from} on"),
            None => format!("{name} is left out"),
        })
    }

    /// Takes over what another request has learnt.
    pub(super) fn join(&mut self, other: &Habits) {
        self.renamed |= other.renamed;
        let new = other.without.iter().filter(|one| !self.without.contains(one)).cloned().collect::<Vec<_>>();
        self.without.extend(new);
    }
}

/// Returns the parameter that a refusal is about, of those that were sent.
fn named_parameter(sent: &Value, refusal: &Refusal) -> Option<&'static str> {
    // Without a stream there is nothing that could be left out.
    let is_sent = |name: &str| sent.get(name).is_some_and(|value| *value != Value::Bool(false));
    let sent = PARAMETERS.iter().filter(|(name, _)| is_sent(name));
    if let Some(param) = &refusal.param {
        let head = param.split(['.', '[']).next().unwrap_or(param);
        return sent.map(|(name, _)| *name).find(|name| *name == head);
    }
    let words = refusal.words.to_ascii_lowercase();
    let first = |name: &&'static str, others: &[&str]| {
        others.iter().chain(std::iter::once(name)).filter_map(|word| whole_word(&words, word)).min()
    };
    sent.filter_map(|(name, others)| Some((first(name, others)?, *name))).min().map(|(_, name)| name)
}

/// Returns the byte position of a word that is not part of a longer one.
fn whole_word(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |at: usize| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part);
    text.match_indices(word).map(|(at, _)| at).find(|&at| stands_alone(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent_request() -> Value {
        json!({
            "model": "m", "messages": [], "temperature": 0.5, "stream": true, "max_tokens": 100, "seed": 7, "tools": [{}],
            "response_format": { "type": "json_object" },
        })
    }

    #[test]
    fn a_refused_parameter_is_renamed_or_left_out() {
        let check = |body: Value, expect: Option<&str>| {
            let refusal = Refusal::of(&body);
            let mut habits = Habits::default();
            assert_eq!(habits.learn(&sent_request(), &refusal).as_deref(), expect, "{body}");
            let mut again = sent_request();
            habits.apply(&mut again);
            assert_eq!(again == sent_request(), expect.is_none(), "{again}");
            assert!(expect.is_none() || habits.learn(&again, &refusal).as_deref() != expect, "{body}: nothing twice");
        };
        let says = |words: &str| json!({ "error": { "message": words } });
        let renamed = Some("max_completion_tokens is sent instead of max_tokens");
        check(
            json!({ "error": {
                "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                "param": "max_tokens", "code": "unsupported_parameter",
            } }),
            renamed,
        );
        check(says("Use max_completion_tokens, not max_tokens"), renamed);
        check(
            json!({ "error": {
                "message": "Unsupported value: 'temperature' does not support 0.5 with this model.", "param": "temperature",
            } }),
            Some("temperature is left out"),
        );
        check(says("temperature must be at most 0.4"), Some("temperature is left out from 0.5 on"));
        check(says("max_tokens is too large: 100"), Some("max_tokens is left out from 100 on"));
        check(says("'response_format.type' must be 'json_schema' or 'text'"), Some("response_format is left out"));
        check(says("JSON mode is not supported"), Some("response_format is left out"));
        check(json!({ "detail": [{ "loc": ["body", "seed"], "msg": "Extra inputs" }] }), Some("seed is left out"));
        check(says("m does not support tools"), Some("tools is left out"));
        check(says("\"auto\" tool choice requires a parser"), Some("tools is left out"));
        check(says("Streaming is not supported"), Some("stream is left out"));
        check(says("The context is full"), None);
        check(says("seeds and upstream stools"), None);
        check(json!({ "error": { "message": "messages: bad seed", "param": "messages" } }), None);
    }

    #[test]
    fn a_value_that_was_too_large_leaves_smaller_ones_alone() {
        let mut habits = Habits::default();
        let refusal = Refusal::of(&json!("temperature must be between 0 and 1"));
        habits.learn(&json!({ "temperature": 1.5 }), &refusal);
        let applied = |temperature: f64| {
            let mut body = json!({ "temperature": temperature, "stream": true });
            habits.apply(&mut body);
            body.get("temperature").cloned()
        };
        assert_eq!((applied(1.4), applied(1.5), applied(2.0)), (Some(json!(1.4)), None, None));
        let mut other = Habits::default();
        other.join(&habits);
        other.join(&habits);
        assert_eq!(other, habits);
    }
}
