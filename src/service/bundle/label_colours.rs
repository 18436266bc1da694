//! Colours of an agent's labels in a bundle: `label_colors` of the agent, an object of label texts with their colours.
//! Labels that it does not name stay as they are.

use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::agent_version::{LabelColor, LabelDoc, LabelText};
use ringer_store::Session;
use serde_json::Value;

/// Member of an agent in a bundle.
pub(super) const LABEL_COLOURS: &str = "label_colors";
/// Most characters of a label's text.
const TEXT_CHARS: usize = 64;

/// Labels with the colours that they are to have; null takes a colour away.
pub(super) type Colours = Vec<(LabelText, Option<LabelColor>)>;

/// Reads the colours of an agent's labels.
///
/// # Errors
/// A list of all faults, each as `FIELD: TEXT`.
pub(super) fn read_colours(agent: &Object) -> std::result::Result<Colours, Vec<String>> {
    let colours = match agent.get(LABEL_COLOURS) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(colours)) => colours,
        Some(_) => return Err(vec![format!("{LABEL_COLOURS}: Input should be a valid dictionary")]),
    };
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for (text, color) in colours {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ' ' | '-');
        let fits = (1..=TEXT_CHARS).contains(&text.len()) && text.chars().all(letter);
        let read = match color {
            Value::Null => Some(None),
            Value::String(color) => LabelColor::parse(color).map(Some),
            _ => None,
        };
        match read {
            Some(color) if fits => found.push((LabelText(text.clone()), color)),
            Some(_) => wrong.push(format!("{LABEL_COLOURS}.{text}: a label is 1 to 64 letters, digits and ._ -")),
            None => wrong.push(format!("{LABEL_COLOURS}.{text}: a colour is written #RRGGBB")),
        }
    }
    if wrong.is_empty() { Ok(found) } else { Err(wrong) }
}

/// Returns the colours of an agent's labels by their texts; `None` where no label has one.
pub(super) async fn colours_of(db: &mut Session, agent_id: i64) -> Result<Option<Object>> {
    let mut rows = db.by::<LabelDoc>("agent_id", agent_id).await?;
    rows.sort_by(|one, other| one.doc.label_text.cmp(&other.doc.label_text));
    let colours = rows.into_iter().filter_map(|row| Some((row.doc.label_text, row.doc.color?.0.into())));
    let colours: Object = colours.collect();
    Ok((!colours.is_empty()).then_some(colours))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let check = |colours: Value, expect: std::result::Result<usize, &str>| {
            let agent = json!({ "name": "Desk", LABEL_COLOURS: colours });
            let read = read_colours(agent.as_object().expect("an object"));
            let told = read.map(|found| found.len()).map_err(|wrong| wrong.join("; "));
            assert_eq!(told, expect.map_err(str::to_owned), "{agent}");
        };
        check(json!(null), Ok(0));
        check(json!({ "beta": "#00ff7F", "old one": null }), Ok(2));
        check(json!(["beta"]), Err("label_colors: Input should be a valid dictionary"));
        check(json!({ "beta": "green" }), Err("label_colors.beta: a colour is written #RRGGBB"));
        check(json!({ "beta": "#12345" }), Err("label_colors.beta: a colour is written #RRGGBB"));
        check(json!({ "b/a": "#123456" }), Err("label_colors.b/a: a label is 1 to 64 letters, digits and ._ -"));
    }
}
