//! Asking a language model until its answer can be read, a few times.

use ringer_base::error::Error;
use ringer_model::Object;
use ringer_model::schema::Node;
use ringer_model::validate::{Source, validate};
use ringer_model::validation_error::ValidationErrors;
use ringer_provider::{ChatMessage, ChatRequest, ChatRole, LanguageModel, complete};
use ringer_syntax::json::Json;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::{Wrong, read_object};

/// An answer that cannot be read is asked for again so often.
const REPEATS: usize = 2;

/// Times that an answer of a given type is asked for again.
const TYPED_REPEATS: usize = 1;

/// Sampling temperature of answers of a given type.
const TYPED_TEMPERATURE: f64 = 0.7;

/// Characters of a broken answer, or of what is wrong with it, that are shown back.
const SHOWN_CHARS: usize = 4000;

/// Longest answer of a judge in tokens.
const TOKENS_MAX: u32 = 4000;

/// Reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The model could not be asked; the text names the trouble.
    Failed(String),
    /// The model answered, each time wrongly; the fault of its last answer.
    Unread(Wrong),
}

impl Unanswered {
    /// Returns the error for whoever asked the product for something that the model was to make.
    pub fn into_error(self) -> Error {
        match self {
            Unanswered::Failed(why) => Error::Unavailable(why),
            Unanswered::Unread(_) => Error::Unavailable("The language model's answer could not be read".into()),
        }
    }
}

/// Reason for an answer that could not be read.
pub(super) const UNREAD: &str = "Judge answer could not be read";

/// Returns the reason for a missing answer, as it is shown.
pub(super) fn unread(unanswered: Unanswered) -> String {
    match unanswered {
        Unanswered::Failed(why) => why,
        Unanswered::Unread(_) => UNREAD.to_owned(),
    }
}

/// Returns a question that is answered by one JSON object.
pub fn question(instructions: String, material: String, temperature: f64) -> ChatRequest {
    let message = |role, content| ChatMessage { role, content };
    ChatRequest {
        messages: vec![message(ChatRole::System, instructions), message(ChatRole::User, material)],
        tools: Vec::new(),
        temperature,
        tokens_max: TOKENS_MAX,
        json: true,
        seed: None,
        audio: None,
        live: false,
    }
}

/// Asks for one JSON object until `read` takes it.
pub async fn ask<T>(
    model: &dyn LanguageModel,
    request: ChatRequest,
    read: impl Fn(&Object) -> Result<T, Wrong>,
) -> Result<T, Unanswered> {
    let read = |object: &Json<'_>| match object.to_value() {
        Value::Object(object) => read(&object),
        _ => Err(Wrong::Form("it was not one JSON object".into())),
    };
    ask_text(model, request, REPEATS, |text| read_object(text, read)).await
}

/// Asks for a `T`, once more when what comes does not fit. The answer is walked along the schema of `T` like everything
/// that comes from outside. `check` refuses what a schema cannot say, in words for the model.
///
/// # Errors
/// [`Error::Unavailable`] when the model cannot be reached, or answers twice what does not fit.
pub async fn ask_typed<T, U>(
    model: &dyn LanguageModel,
    instructions: &str,
    material: &Value,
    check: impl Fn(T) -> Result<U, String>,
) -> Result<U, Error>
where
    T: DeserializeOwned + JsonSchema,
{
    let message = |role, content: String| ChatMessage { role, content };
    let instructions = format!("{instructions} Answer with one JSON object and nothing else.");
    let request = ChatRequest {
        messages: vec![message(ChatRole::System, instructions), message(ChatRole::User, material.to_string())],
        temperature: TYPED_TEMPERATURE,
        json: true,
        ..ChatRequest::default()
    };
    let read =
        |object: &Json<'_>| read_typed::<T>(object).map_err(Wrong::Form).and_then(|it| check(it).map_err(Wrong::Value));
    ask_text(model, request, TYPED_REPEATS, |text| read_object(text, read)).await.map_err(Unanswered::into_error)
}

/// An object of an answer, converted along the schema.
fn read_typed<T: DeserializeOwned + JsonSchema>(object: &Json<'_>) -> Result<T, String> {
    let mut issues = ValidationErrors::default();
    let value = validate(Source::Body, &Node::of::<T>(), object, &mut issues);
    if !issues.is_empty() {
        return Err(issues.body().chars().take(SHOWN_CHARS).collect());
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Asks until `read` takes the answer, again `repeats` times. The model is told what was wrong with the one before.
async fn ask_text<T>(
    model: &dyn LanguageModel,
    mut request: ChatRequest,
    repeats: usize,
    read: impl Fn(&str) -> Result<T, Wrong>,
) -> Result<T, Unanswered> {
    let mut attempt = 0;
    loop {
        let text = complete(model, &request).await.map_err(|failure| Unanswered::Failed(failure.message))?;
        let wrong = match read(&text) {
            Ok(answer) => return Ok(answer),
            Err(wrong) => wrong,
        };
        if attempt == repeats {
            return Err(Unanswered::Unread(wrong));
        }
        attempt += 1;
        let (Wrong::Form(why) | Wrong::Value(why)) = &wrong;
        let again = format!("That answer cannot be used: {why}. Answer again, with one JSON object only.");
        let shown = text.chars().take(SHOWN_CHARS).collect();
        request.messages.push(ChatMessage { role: ChatRole::Assistant, content: shown });
        request.messages.push(ChatMessage { role: ChatRole::User, content: again });
    }
}

#[cfg(test)]
mod tests {
    use ringer_provider::testing::{Reply, ScriptedModel};
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    async fn answer(replies: &[&str]) -> (Result<i64, Unanswered>, usize) {
        let model = ScriptedModel::new(replies.iter().map(|reply| Reply::says(&[reply])).collect());
        let read =
            |answer: &Object| answer.get("n").and_then(Value::as_i64).ok_or_else(|| Wrong::Form("n is missing".into()));
        let answer = ask(&model, question("i".into(), "m".into(), 0.0), read).await;
        (answer, model.requests().len())
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_asked_again_twice() {
        assert_eq!(answer(&[r#"{"n": 1}"#]).await, (Ok(1), 1));
        assert_eq!(answer(&[r#"The set {a, b} has {"n": 1} as its size. }"#]).await, (Ok(1), 1));
        assert_eq!(answer(&["```json\n{\"n\": 2}\n```"]).await, (Ok(2), 1));
        assert_eq!(answer(&["no", r#"{"m": 1}"#, r#"Well: {"n": 3}."#]).await, (Ok(3), 3));
        assert_eq!(answer(&["a", "}{", "[1]", r#"{"n": 4}"#]).await.1, 3);
        let unread = Unanswered::Unread(Wrong::Form("n is missing".into()));
        assert_eq!(answer(&["{}", "{}", "{}"]).await, (Err(unread), 3));
        assert_eq!(answer(&["{}"]).await, (Err(Unanswered::Failed("scripted failure".into())), 2));
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Wanted {
        count: i64,
    }

    async fn typed_answer(replies: &[&str]) -> (Result<i64, Error>, Vec<ChatRequest>) {
        let model = ScriptedModel::new(replies.iter().map(|text| Reply::says(&[text])).collect());
        let small =
            |wanted: Wanted| if wanted.count < 10 { Ok(wanted.count) } else { Err("count is too large".into()) };
        let result = ask_typed(&model, "Count.", &json!({"of": "x"}), small).await;
        (result, model.requests())
    }

    #[tokio::test]
    async fn a_broken_answer_is_asked_for_once_more() {
        for (replies, expect, requests) in [
            (&[r#"{"count": 3}"#][..], Some(3), 1),
            (&["Here it is:\n```json\n{\"count\": \"4\"}\n```"], Some(4), 1),
            (&[r#"Of the set {a, b}: {"count": 4}. {} }"#], Some(4), 1),
            (&[r#"{"count": 3} or rather {"count": 4}"#], Some(4), 1),
            // What the check refuses is not taken where there is another one.
            (&[r#"{"count": 3}, not {"count": 50}"#], Some(3), 1),
            (&["none", r#"{"count": 5}"#], Some(5), 2),
            (&[r#"{"count": 50}"#, r#"{"count": 6}"#], Some(6), 2),
            (&[r#"{"number": 1}"#, r#"{"count": null}"#, r#"{"count": 1}"#], None, 2),
            (&["}{", "{\"count\": 1"], None, 2),
        ] {
            let (result, asked) = typed_answer(replies).await;
            assert_eq!(result.clone().ok(), expect, "{replies:?}: {result:?}");
            assert_eq!(asked.len(), requests, "{replies:?}");
        }
        let (refused, asked) = typed_answer(&[r#"{"count": 50}"#, "no"]).await;
        assert_eq!(refused, Err(Error::Unavailable("The language model's answer could not be read".into())));
        assert!(asked[1].messages[3].content.contains("count is too large"), "{:?}", asked[1]);
        assert_eq!(typed_answer(&[]).await.0, Err(Error::Unavailable("scripted failure".into())));
    }
}
