//! The answer of a chat-completions server: a stream of events, or one JSON body where a server does not stream. Words,
//! reasoning and tool calls are told apart here.

use serde_json::Value;

use super::super::account::Tokens;
use super::super::{Failure, loose};
use super::content::{Piece, pieces};
use super::events::{DONE, Event, Events, TooLong};
use super::refusal::Refusal;
use super::surrogates::{self, Joiner};
use super::thinking::{Manner, Thinking};
use super::tools::Tools;

/// Longest answer in bytes, reasoning and framing included.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Longest JSON body in bytes of a server that does not stream.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Longest refusal of a model in bytes.
const REFUSAL_BYTES_MAX: usize = 4096;
/// Most tokens of one request that are believed.
const TOKENS_MAX: u64 = 1 << 32;
/// Names under which servers send reasoning apart from words.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// Form of an answer's body.
#[derive(Debug)]
enum Form {
    /// Only blanks have come.
    Unknown,
    Stream(Events),
    Json(Vec<u8>),
}

/// An answer as far as it has come.
#[derive(Debug)]
pub(super) struct Answer {
    form: Form,
    bytes: usize,
    joiner: Joiner,
    thinking: Thinking,
    tools: Tools,
    refusal: String,
    /// True if some event or body was an answer.
    answered: bool,
    /// True if the answer comes in pieces.
    streamed: bool,
    /// True if it has words other than blanks.
    said: bool,
    /// True if a finish reason or the end mark was seen.
    finished: bool,
    /// True if the end mark was seen.
    done: bool,
    reason: String,
    /// Tokens as the server told them last: some tell them with every piece.
    tokens: Option<Tokens>,
}

impl Answer {
    /// Returns the empty answer of a model that marks its reasoning as `manner` says.
    pub(super) fn new(manner: Manner) -> Answer {
        Answer {
            form: Form::Unknown,
            bytes: 0,
            joiner: Joiner::default(),
            thinking: Thinking::new(manner),
            tools: Tools::default(),
            refusal: String::new(),
            answered: false,
            streamed: false,
            said: false,
            finished: false,
            done: false,
            reason: String::new(),
            tokens: None,
        }
    }

    /// Takes bytes as they come, adds the new pieces of text to `words`.
    ///
    /// # Errors
    /// `language_model_failed`: the answer is broken.
    pub(super) fn take(&mut self, bytes: &[u8], words: &mut Vec<String>) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(too_long(TooLong));
        }
        if let Form::Unknown = self.form {
            // A byte order mark may stand before either form.
            let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace() && !b"\xEF\xBB\xBF".contains(byte));
            match first {
                None => {}
                Some(b'{' | b'[') => self.form = Form::Json(Vec::new()),
                Some(_) => self.form = Form::Stream(Events::default()),
            }
        }
        match &mut self.form {
            Form::Unknown => Ok(()),
            Form::Json(body) if body.len() + bytes.len() > BODY_BYTES_MAX => Err(too_long(TooLong)),
            Form::Json(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Form::Stream(events) => {
                let events = events.take(bytes).map_err(too_long)?;
                events.iter().try_for_each(|event| self.event(event, words))
            }
        }
    }

    /// Ends the body: adds what only its end makes whole to `words`.
    ///
    /// # Errors
    /// As [`Answer::take`].
    pub(super) fn end(&mut self, words: &mut Vec<String>) -> Result<(), Failure> {
        match &mut self.form {
            Form::Unknown => Ok(()),
            Form::Json(body) => {
                let body = String::from_utf8_lossy(&std::mem::take(body)).into_owned();
                let text = surrogates::mark(body.trim_start_matches('\u{FEFF}')).into_owned();
                // One value, or one after the other.
                let all = |text: &str| serde_json::Deserializer::from_str(text).into_iter::<Value>().collect();
                let values: serde_json::Result<Vec<Value>> = all(&text);
                let values = values.or_else(|_| all(&loose::strict(&text))).map_err(|_| no_json())?;
                values.iter().try_for_each(|value| self.value(value, false, words))
            }
            Form::Stream(events) => {
                let events = events.end().map_err(too_long)?;
                events.iter().try_for_each(|event| self.event(event, words))
            }
        }
    }

    /// True while words are held back that may be reasoning.
    pub(super) fn is_unsure(&self) -> bool {
        self.thinking.is_unsure()
    }

    /// Returns the words that are held back for too long already.
    pub(super) fn release(&mut self) -> Vec<String> {
        let words = self.thinking.release();
        self.said |= words.iter().any(|text| !text.trim().is_empty());
        words
    }

    /// Returns the words that were held back until it was sure that they are no reasoning. `whole`: nothing has cut the
    /// answer off.
    pub(super) fn take_held(&mut self, whole: bool) -> Vec<String> {
        let rest = self.joiner.end();
        let mut words = if rest.is_empty() { Vec::new() } else { self.thinking.take(&rest) };
        words.extend(self.thinking.end(whole && self.finished && self.reason != "length"));
        self.said |= words.iter().any(|text| !text.trim().is_empty());
        words
    }

    /// Returns the tool calls of a whole answer: names and arguments.
    ///
    /// # Errors
    /// `language_model_refused`: the model declines to answer. `language_model_failed`: the answer was cut off or
    /// stopped.
    pub(super) fn verdict(&mut self) -> Result<Vec<(String, String)>, Failure> {
        let refused = self.refusal.trim();
        if !refused.is_empty() {
            let refusal = Refusal::of(&Value::from(refused));
            return Err(Failure {
                code: "language_model_refused",
                message: refusal.with_words("the language model declines to answer"),
            });
        }
        match self.reason.as_str() {
            _ if !self.finished && !self.answered && !matches!(self.form, Form::Unknown) => {
                Err(broken("the language model's server sent no chat completion"))
            }
            _ if !self.finished => Err(broken("the language model's answer was cut off")),
            "length" if !self.said && self.tools.is_empty() => Err(broken(
                "the language model used up the tokens of its answer without a word (finish_reason length): \
                 language_model.max_tokens gives a model that reasons more room",
            )),
            "content_filter" => Err(broken("the language model's answer was stopped by a content filter")),
            "error" => Err(broken("the language model's server broke its answer off (finish_reason error)")),
            _ => Ok(std::mem::take(&mut self.tools).all()),
        }
    }

    /// True if the answer came to the limit of its tokens.
    pub(super) fn is_cut(&self) -> bool {
        self.reason == "length"
    }

    /// Returns the tokens of the request and of the answer; `None`: the server did not tell them.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        self.tokens
    }

    /// True if the end mark was seen.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// True once words of the answer have come: from then on it cannot be asked for again.
    pub(super) fn has_begun(&self) -> bool {
        self.said
    }

    /// Returns the way in which the model marks its reasoning, as far as is known now.
    pub(super) fn manner(&self) -> Manner {
        self.thinking.manner()
    }

    fn event(&mut self, event: &Event, words: &mut Vec<String>) -> Result<(), Failure> {
        if self.done {
            return Ok(());
        }
        if event.data.trim() == DONE {
            (self.finished, self.done) = (true, true);
            return Ok(());
        }
        let text = surrogates::mark(&event.data);
        let value: Value = match serde_json::from_str(&text).or_else(|_| serde_json::from_str(&loose::strict(&text))) {
            Ok(value) => value,
            Err(_) if event.is_error => Value::from(event.data.as_str()),
            Err(_) => return Err(no_json()),
        };
        self.value(&value, event.is_error, words)
    }

    fn value(&mut self, value: &Value, is_error: bool, words: &mut Vec<String>) -> Result<(), Failure> {
        if is_error || !value["error"].is_null() || value["object"] == "error" {
            return Err(broken(&Refusal::of(value).with_words("the language model reported an error in its answer")));
        }
        self.tokens = tokens_of(&value["usage"]).or(self.tokens);
        // A server may send more choices than were asked for: only the first is said.
        let is_first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        let Some(choice) = value["choices"].as_array().and_then(|choices| choices.iter().find(is_first)) else {
            self.answered |= value["choices"].as_array().is_some_and(|choices| !choices.is_empty());
            return Ok(());
        };
        self.answered = true;
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finished = true;
            reason.clone_into(&mut self.reason);
        }
        let (delta, message) = (&choice["delta"], &choice["message"]);
        // Some streams end with the whole message once more.
        if delta.as_object().is_some_and(|delta| !delta.is_empty()) {
            self.streamed = true;
            self.part(delta, words)?;
        } else if message.is_object() && !self.streamed {
            self.finished = true;
            self.part(message, words)?;
        }
        Ok(())
    }

    /// Takes a delta, or a whole message.
    fn part(&mut self, part: &Value, words: &mut Vec<String>) -> Result<(), Failure> {
        let is_apart = |name: &&str| !matches!(&part[*name], Value::Null) && part[*name] != "";
        if REASONING.iter().any(is_apart) {
            self.thinking.is_apart();
        }
        let unknown = |form: &str| broken(&format!("the language model sent content of an unknown form: {form}"));
        for piece in pieces(&part["content"]).map_err(unknown)? {
            match piece {
                Piece::Text(text) => {
                    let text = self.joiner.take(&text);
                    words.extend(self.thinking.take(&text));
                }
                Piece::Refusal(text) => self.refuse(&text),
            }
        }
        self.said |= words.iter().any(|text| !text.trim().is_empty());
        self.refuse(part["refusal"].as_str().unwrap_or_default());
        self.tools.take(&part["tool_calls"]);
        self.tools.take_function(&part["function_call"]);
        Ok(())
    }

    fn refuse(&mut self, text: &str) {
        if self.refusal.len() + text.len() <= REFUSAL_BYTES_MAX {
            self.refusal.push_str(text);
        }
    }
}

/// Returns the tokens of a `usage` object; `None`: it does not tell both counts.
fn tokens_of(usage: &Value) -> Option<Tokens> {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64()).map(|n| n.min(TOKENS_MAX));
    let input = count(["prompt_tokens", "input_tokens"])?;
    Some(Tokens { input, output: count(["completion_tokens", "output_tokens"])? })
}

/// Returns a failure of the answer.
pub(super) fn broken(message: &str) -> Failure {
    Failure { code: "language_model_failed", message: message.into() }
}

fn too_long(_: TooLong) -> Failure {
    broken("the language model's answer is too long")
}

fn no_json() -> Failure {
    broken("the language model sent no valid JSON")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns words, and tools or the trouble, of a body in pieces.
    fn read_pieces(body: &str, size: usize) -> (String, Result<Vec<(String, String)>, String>) {
        let (mut answer, mut words) = (Answer::new(Manner::Unknown), Vec::new());
        let taken = body.as_bytes().chunks(size).try_for_each(|bytes| answer.take(bytes, &mut words));
        let result = taken.and_then(|()| answer.end(&mut words));
        words.extend(answer.take_held(result.is_ok()));
        (words.concat(), result.and_then(|()| answer.verdict()).map_err(|failure| failure.message))
    }

    fn check(body: &str, words: &str, expect: Result<&[(&str, &str)], &str>) {
        for size in [1, 5, body.len().max(1)] {
            let (said, result) = read_pieces(body, size);
            let expect = expect.map(|calls| calls.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect());
            assert_eq!((said.as_str(), result), (words, expect.map_err(str::to_owned)), "{body}");
        }
    }

    fn stream(deltas: &[Value]) -> String {
        let event = |delta: &Value| format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }));
        deltas.iter().map(event).collect::<String>() + "data: [DONE]\n\n"
    }

    #[test]
    fn streams_of_every_form_are_read() {
        let said = |deltas: &[Value], words: &str| check(&stream(deltas), words, Ok(&[]));
        let text = |text: &str| json!({ "content": text });
        said(&[json!({ "role": "assistant", "content": null }), text("Good "), text("day.")], "Good day.");
        said(&[json!({ "content": [{ "type": "text", "text": "Good " }, "day."] })], "Good day.");
        said(&[text("<thi"), text("nk>I greet.</th"), text("ink>\n\nGood day.")], "Good day.");
        said(&[text("I greet."), text("</think>"), text("Good day.")], "Good day.");
        said(
            &[json!({ "reasoning_content": "I greet." }), json!({ "reasoning": "Yes.", "content": "" }), text("Hi")],
            "Hi",
        );
        let event = |content: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{content}\"}}}}]}}\n\n");
        let end = "data: [DONE]\n\n";
        check(&(event(r"Hi \ud83d") + &event(r"\ude00!") + end), "Hi 😀!", Ok(&[]));
        check(&(event(r"Hi \ud83d") + &event("there") + end), "Hi \u{FFFD}there", Ok(&[]));
        check(&(event(r"Hi \ud83d") + end), "Hi \u{FFFD}", Ok(&[]));
        check(&format!(": ok\r\n\r\nevent: x\r\n{}data: [DONE]", event("Hi")), "Hi", Ok(&[]));
        let whole = json!({ "choices": [{ "message": { "content": "Hi" }, "finish_reason": "stop" }] });
        check(&format!("{}data: {whole}\n\n", event("Hi")), "Hi", Ok(&[]));
        let call = |arguments: &str| json!({ "tool_calls": [{ "function": { "name": "a", "arguments": arguments } }] });
        check(&stream(&[text("Bye."), call("{\"x\""), call(":1}")]), "Bye.", Ok(&[("a", "{\"x\":1}")]));
    }

    #[test]
    fn only_the_first_choice_is_said() {
        let event = |index: i64, text: &str| {
            format!("data: {}\n\n", json!({ "choices": [{ "index": index, "delta": { "content": text } }] }))
        };
        let both = json!({ "choices": [
            { "index": 1, "delta": { "content": "Bad " } }, { "index": 0, "delta": { "content": "day." } },
        ] });
        let body = event(0, "Good ") + &event(1, "So ") + &format!("data: {both}\n\n") + "data: [DONE]\n\n";
        check(&body, "Good day.", Ok(&[]));
    }

    #[test]
    fn numbers_that_are_no_json_lose_no_words() {
        let event = r#"data: {"choices":[{"delta":{"content":"Hi NaN"},"logprobs":{"p":[NaN, -Infinity]}}]}"#;
        check(&format!("{event}\n\ndata: [DONE]\n\n"), "Hi NaN", Ok(&[]));
        let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"score":NaN}"#;
        check(body, "Hi", Ok(&[]));
    }

    #[test]
    fn a_body_without_a_stream_is_read() {
        let body = |message: Value, reason: &str| {
            json!({ "object": "chat.completion", "choices": [{ "message": message, "finish_reason": reason }] })
                .to_string()
        };
        check(&body(json!({ "content": "Hi" }), "stop"), "Hi", Ok(&[]));
        check(&format!("\n {}", body(json!({ "content": [{ "type": "text", "text": "Hi" }] }), "stop")), "Hi", Ok(&[]));
        check(&body(json!({ "content": "<think>I greet.</think>Hi" }), "stop"), "Hi", Ok(&[]));
        let call = json!({ "id": "1", "function": { "name": "a", "arguments": { "x": 1 } } });
        check(&body(json!({ "content": null, "tool_calls": [call] }), "tool_calls"), "", Ok(&[("a", "{\"x\":1}")]));
        let delta = |text: &str| json!({ "choices": [{ "delta": { "content": text }, "finish_reason": null }] });
        let end = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] });
        check(&format!("{}\n{}\n{end}\n", delta("Good "), delta("day.")), "Good day.", Ok(&[]));
        check("{\"choices\":[", "", Err("the language model sent no valid JSON"));
        check("{\"id\":7}", "", Err("the language model's server sent no chat completion"));
        check("<html></html>", "", Err("the language model's server sent no chat completion"));
        check(
            "{\"error\":{\"message\":\"Busy.\"}}",
            "",
            Err("the language model reported an error in its answer: Busy."),
        );
    }

    #[test]
    fn what_is_no_whole_answer_says_why() {
        let event = |choice: Value| format!("data: {}\n\n", json!({ "choices": [choice] }));
        let text = event(json!({ "delta": { "content": "Half a " } }));
        let ends = |reason: &str| event(json!({ "delta": {}, "finish_reason": reason }));
        let cut_off = "the language model's answer was cut off";
        let no_words = "the language model used up the tokens of its answer without a word (finish_reason length): \
                       language_model.max_tokens gives a model that reasons more room";
        let reported = "the language model reported an error in its answer: overloaded";
        check("", "", Err(cut_off));
        check(&text, "Half a ", Err(cut_off));
        check(&(text.clone() + &ends("length")), "Half a ", Ok(&[]));
        check(&ends("length"), "", Err(no_words));
        check(&(event(json!({ "delta": { "content": "<think>I shall" } })) + &ends("length")), "", Err(no_words));
        check(&(event(json!({ "delta": { "reasoning_content": "I shall" } })) + &ends("length")), "", Err(no_words));
        check(
            &(text.clone() + &ends("content_filter")),
            "Half a ",
            Err("the language model's answer was stopped by a content filter"),
        );
        check(&(text.clone() + "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"), "Half a ", Err(reported));
        check(&(text.clone() + "event: error\ndata: {\"message\":\"overloaded\"}\n\n"), "Half a ", Err(reported));
        check("event: error\ndata: overloaded\n\n", "", Err(reported));
        check("data: {\"object\":\"error\",\"message\":\"overloaded\"}\n\n", "", Err(reported));
        check("data: {nonsense\n\n", "", Err("the language model sent no valid JSON"));
        let form = "the language model sent content of an unknown form: a number";
        check(&stream(&[json!({ "content": 5 })]), "", Err(form));
        let refused = "the language model declines to answer: I cannot do that.";
        let refusal = |text: &str| json!({ "refusal": text });
        check(&stream(&[refusal("I cannot "), refusal("do that.")]), "", Err(refused));
        check(
            &stream(&[json!({ "content": [{ "type": "refusal", "refusal": "I cannot do that." }] })]),
            "",
            Err(refused),
        );
    }

    #[test]
    fn an_answer_has_a_limit() {
        let (mut answer, mut words) = (Answer::new(Manner::Plain), Vec::new());
        let comment = [b": ", &vec![b'x'; 1 << 16][..], b"\n"].concat();
        let taken = (0..ANSWER_BYTES_MAX / (1 << 16)).try_for_each(|_| answer.take(&comment, &mut words));
        assert_eq!(taken, Err(broken("the language model's answer is too long")));
        let (mut answer, body) = (Answer::new(Manner::Plain), [b"{", &vec![b' '; BODY_BYTES_MAX][..]].concat());
        assert_eq!(answer.take(&body, &mut words), Err(broken("the language model's answer is too long")));
    }
}
