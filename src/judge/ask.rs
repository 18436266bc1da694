//! Asking a language model until its answer can be read, a few times.

use serde_json::Value;

use super::answer::read_object;
use crate::model::Object;
use crate::model::json::Json;
use crate::provider::{ChatMessage, ChatRequest, ChatRole, LanguageModel, complete};

/// An answer that cannot be read is asked for again so often.
const REPEATS: usize = 2;

/// Characters of a broken answer that are shown back.
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

/// Fault of an answer; the texts are for the model and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The answer does not have the requested form.
    Form(String),
    /// The answer has the form, but its value is not possible.
    Value(String),
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

/// Asks until `read` takes the answer, again `repeats` times. The model is told what was wrong with the one before.
pub async fn ask_text<T>(
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
    use super::*;
    use crate::provider::fake::{Reply, ScriptedModel};

    async fn answer(replies: &[&str]) -> (Result<i64, Unanswered>, usize) {
        let model = ScriptedModel::new(replies.iter().map(|reply| Reply::says(&[reply])).collect());
        let read =
            |answer: &Object| answer.get("n").and_then(Value::as_i64).ok_or_else(|| Wrong::Form("n is missing".into()));
        let answer = ask(&model, question("i".into(), "m".into(), 0.0), read).await;
        (answer, model.asked().len())
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
}
