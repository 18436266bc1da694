//! Asking the language model for JSON of a given form. What it answers is walked along a schema like everything that comes from
//! outside; an answer that does not fit is asked for once more, with the reason.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::judge::{Unanswered, Wrong, ask_text, read_object};
use crate::model::issue::Issues;
use crate::model::json::Json;
use crate::model::schema::Node;
use crate::model::validate::{Source, validate};
use crate::provider::{ChatMessage, ChatRequest, ChatRole, LanguageModel};

/// Times that one thing is asked for again.
const REPEATS: usize = 1;
/// Characters of what does not fit that are named.
const SHOWN_CHARS: usize = 4000;
/// Sampling temperature of these requests, 0 to 2.
const TEMPERATURE: f64 = 0.7;

/// Asks for a `T`. `check` refuses what a schema cannot say, in words for the model.
///
/// # Errors
/// [`Error::Unavailable`] when the model cannot be reached, or answers twice what does not fit.
pub(super) async fn ask<T, U>(
    model: &dyn LanguageModel,
    instructions: &str,
    material: &serde_json::Value,
    check: impl Fn(T) -> std::result::Result<U, String>,
) -> Result<U>
where
    T: DeserializeOwned + JsonSchema,
{
    let message = |role, content: String| ChatMessage { role, content };
    let instructions = format!("{instructions} Answer with one JSON object and nothing else.");
    let request = ChatRequest {
        messages: vec![message(ChatRole::System, instructions), message(ChatRole::User, material.to_string())],
        temperature: TEMPERATURE,
        json: true,
        ..ChatRequest::default()
    };
    let read =
        |object: &Json<'_>| read::<T>(object).map_err(Wrong::Form).and_then(|it| check(it).map_err(Wrong::Value));
    ask_text(model, request, REPEATS, |text| read_object(text, read)).await.map_err(|unanswered| match unanswered {
        Unanswered::Failed(why) => Error::Unavailable(why),
        Unanswered::Unread(_) => Error::Unavailable("The language model's answer could not be read".into()),
    })
}

/// Returns an object of an answer, converted along the schema.
fn read<T: DeserializeOwned + JsonSchema>(object: &Json<'_>) -> std::result::Result<T, String> {
    let mut issues = Issues::default();
    let value = validate(Source::Body, &Node::of::<T>(), object, &mut issues);
    if !issues.is_empty() {
        return Err(issues.body().chars().take(SHOWN_CHARS).collect());
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::provider::fake::{Reply, ScriptedModel};

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Wanted {
        count: i64,
    }

    async fn answer(replies: &[&str]) -> (Result<i64>, Vec<ChatRequest>) {
        let model = ScriptedModel::new(replies.iter().map(|text| Reply::says(&[text])).collect());
        let small =
            |wanted: Wanted| if wanted.count < 10 { Ok(wanted.count) } else { Err("count is too large".into()) };
        let result = ask(&model, "Count.", &json!({"of": "x"}), small).await;
        (result, model.asked())
    }

    #[tokio::test]
    async fn a_broken_answer_is_asked_for_once_more() {
        for (replies, expect, requests) in [
            (&[r#"{"count": 3}"#][..], Some(3), 1),
            (&["Here it is:\n```json\n{\"count\": \"4\"}\n```"], Some(4), 1),
            (&[r#"Of the set {a, b}: {"count": 4}. {} }"#], Some(4), 1),
            (&[r#"{"count": 3} or rather {"count": 4}"#], Some(4), 1),
            // An answer that the check refuses is not taken where there is another one.
            (&[r#"{"count": 3}, not {"count": 50}"#], Some(3), 1),
            (&["none", r#"{"count": 5}"#], Some(5), 2),
            (&[r#"{"count": 50}"#, r#"{"count": 6}"#], Some(6), 2),
            (&[r#"{"number": 1}"#, r#"{"count": null}"#, r#"{"count": 1}"#], None, 2),
            (&["}{", "{\"count\": 1"], None, 2),
        ] {
            let (result, asked) = answer(replies).await;
            assert_eq!(result.clone().ok(), expect, "{replies:?}: {result:?}");
            assert_eq!(asked.len(), requests, "{replies:?}");
        }
        let (refused, asked) = answer(&[r#"{"count": 50}"#, "no"]).await;
        assert_eq!(refused, Err(Error::Unavailable("The language model's answer could not be read".into())));
        assert!(asked[1].messages[3].content.contains("count is too large"), "{:?}", asked[1]);
        assert_eq!(answer(&[]).await.0, Err(Error::Unavailable("scripted failure".into())));
    }
}
