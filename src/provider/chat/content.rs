//! The words in the content of a chat message: one text, or a list of typed parts. An unknown form is an error, never
//! silence.

use serde_json::Value;

/// Kinds of parts that hold what a model thinks and does not say.
const UNSAID: [&str; 5] = ["thinking", "reasoning", "reasoning_text", "redacted_thinking", "summary_text"];

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Words of the answer.
    Text(String),
    /// Words with which a model declines to answer.
    Refusal(String),
}

/// Returns the pieces of a content in order; none for `null` and an empty list.
///
/// # Errors
/// The form is not known: its name, for example `a number`.
pub(crate) fn pieces(content: &Value) -> Result<Vec<Piece>, &'static str> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Piece::Text(text.clone())]),
        Value::Bool(_) => Err("true or false"),
        Value::Number(_) => Err("a number"),
        Value::Object(_) => match part(content) {
            Part::Said(piece) => Ok(vec![piece]),
            Part::Unsaid => Ok(Vec::new()),
            Part::Unknown => Err("an object without text"),
        },
        Value::Array(parts) => {
            let (mut pieces, mut unknown, mut known) = (Vec::new(), false, false);
            for one in parts.iter().map(part) {
                known |= !matches!(one, Part::Unknown);
                match one {
                    Part::Said(piece) => pieces.push(piece),
                    Part::Unsaid => {}
                    Part::Unknown => unknown = true,
                }
            }
            if unknown && !known { Err("a list without text") } else { Ok(pieces) }
        }
    }
}

/// Returns all words of a content, those of a refusal too; `None` when it holds none at all.
///
/// # Errors
/// As [`pieces`].
pub(crate) fn words(content: &Value) -> Result<Option<String>, &'static str> {
    let pieces = pieces(content)?;
    let text = |piece: &Piece| match piece {
        Piece::Text(text) | Piece::Refusal(text) => text.clone(),
    };
    Ok((!pieces.is_empty()).then(|| pieces.iter().map(text).collect()))
}

enum Part {
    Said(Piece),
    Unsaid,
    Unknown,
}

fn part(value: &Value) -> Part {
    let kind = value["type"].as_str().unwrap_or_default();
    // Some servers put the words one level deeper: `{"text": {"value": "..."}}`.
    let text = |name: &str| value[name].as_str().or_else(|| value[name]["value"].as_str()).map(str::to_owned);
    match value {
        Value::Null => Part::Unsaid,
        Value::String(text) => Part::Said(Piece::Text(text.clone())),
        _ if UNSAID.contains(&kind) => Part::Unsaid,
        _ if kind == "refusal" => {
            text("refusal").or_else(|| text("text")).map_or(Part::Unknown, |text| Part::Said(Piece::Refusal(text)))
        }
        _ => text("text").map_or(Part::Unknown, |text| Part::Said(Piece::Text(text))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_found_in_every_form() {
        let check = |content: Value, expect: Result<Option<&str>, &str>| {
            let found = words(&content);
            assert_eq!(found.as_ref().map(Option::as_deref), expect.as_ref().copied(), "{content}");
        };
        check(json!(null), Ok(None));
        check(json!([]), Ok(None));
        check(json!(""), Ok(Some("")));
        check(json!("Hi"), Ok(Some("Hi")));
        check(
            json!([{ "type": "text", "text": "Good " }, { "type": "output_text", "text": "day" }, "."]),
            Ok(Some("Good day.")),
        );
        check(json!([{ "type": "text", "text": { "value": "Hi" } }]), Ok(Some("Hi")));
        check(json!({ "type": "text", "text": "Hi" }), Ok(Some("Hi")));
        check(json!([{ "type": "refusal", "refusal": "I cannot." }]), Ok(Some("I cannot.")));
        check(json!([{ "type": "thinking", "thinking": "Hm." }, { "type": "text", "text": "Hi" }]), Ok(Some("Hi")));
        check(json!([{ "type": "thinking", "thinking": "Hm." }]), Ok(None));
        check(json!([{ "type": "image_url", "image_url": {} }, { "type": "text", "text": "Hi" }]), Ok(Some("Hi")));
        check(json!(5), Err("a number"));
        check(json!(true), Err("true or false"));
        check(json!({ "value": "Hi" }), Err("an object without text"));
        check(json!([{ "type": "image_url", "image_url": {} }]), Err("a list without text"));
        check(json!([7]), Err("a list without text"));
    }
}
