//! Places in a suite's file of what an engine refuses.

use serde_json::Value;

use super::client::Refusal;
use crate::suite::fitting::position;
use crate::suite::yaml::{Node, Place};

/// Returns the lines of a refusal, each with the place in the file of what is refused; `sources`: values of the file by
/// the fields of the API, `at`: the place of the whole.
pub(crate) fn lines(refusal: &Refusal, what: &str, sources: &[(String, Node)], at: &Place) -> Vec<String> {
    let Refusal { status, message, detail } = refusal;
    match detail {
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .map(|item| {
                let (place, field) = of_location(&item["loc"], sources).unwrap_or_else(|| (at.clone(), String::new()));
                let field = if field.is_empty() { item["loc"].to_string() } else { field };
                format!("{place}: {what}: {status}: {field}: {}", item["msg"].as_str().unwrap_or_default())
            })
            .collect(),
        _ => {
            let place = of_text(message, sources).unwrap_or_else(|| at.clone());
            vec![format!("{place}: {what}: {status}: {message}")]
        }
    }
}

/// Returns the place of a location of the API, with the field that it is in.
fn of_location(loc: &Value, sources: &[(String, Node)]) -> Option<(Place, String)> {
    let steps = loc.as_array()?;
    let (depth, (field, node)) = steps.iter().enumerate().find_map(|(depth, step)| {
        let name = step.as_str()?;
        Some((depth, sources.iter().find(|(field, _)| field == name)?))
    })?;
    let inside: Vec<Value> = [Value::Null, Value::Null].into_iter().chain(steps[depth + 1..].to_vec()).collect();
    Some((position(node, &Value::Array(inside)), field.clone()))
}

/// Returns the place of the field that a text names: a trait by its name, an item by its number.
fn of_text(message: &str, sources: &[(String, Node)]) -> Option<Place> {
    let source = |name: &str| sources.iter().find(|(field, _)| field == name).map(|(_, node)| node);
    if let Some(name) = message.strip_prefix("value of trait ").and_then(|rest| rest.split(' ').next()) {
        let traits = source("traits")?;
        let named = |item: &&Node| item.get("trait_name").and_then(Node::text) == Some(name);
        let listed = traits.items().and_then(|items| items.iter().find(named));
        return Some(traits.get(name).or(listed).unwrap_or(traits).at.clone());
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = message.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
    let word = words.find(|word| source(word).is_some())?;
    let node = source(word)?;
    let index =
        message.split_once(&format!("{word}[")).and_then(|(_, rest)| rest.split(']').next()?.parse::<usize>().ok());
    let item = index.and_then(|index| node.items()?.get(index));
    Some(item.unwrap_or(node).at.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::suite::yaml::parse;

    #[test]
    fn refusals_are_told_at_their_place() {
        let root =
            parse("traits: {member: 0x}\nheaders:\n  X: [1]\nsteps:\n  - {a: 1}\n  - {a: 2}", "f").expect("it is read");
        let of = |name: &str| root.get(name).expect("it is there").clone();
        let sources = [
            ("traits".to_owned(), of("traits")),
            ("custom_sip_headers".to_owned(), of("headers")),
            ("steps".to_owned(), of("steps")),
        ];
        let at = Place { file: "f".into(), line: 9, column: 9 };
        for (message, detail, expect) in [
            ("value of trait member is not a valid NUMBER", Value::Null, "f:1:18: connect: 400: value of trait"),
            ("steps[1] must have something", Value::Null, "f:6:5: connect: 400: steps[1]"),
            ("nothing is known of it", Value::Null, "f:9:9: connect: 400: nothing"),
            (
                "",
                json!([{"loc": ["body", "agent", "custom_sip_headers", "X", 0], "msg": "Bad."}]),
                "f:3:7: connect: 400: custom_sip_headers: Bad.",
            ),
            ("", json!([{"loc": ["body"], "msg": "Bad."}]), "f:9:9: connect: 400: [\"body\"]: Bad."),
        ] {
            let refusal = Refusal { status: 400, message: message.to_owned(), detail };
            let lines = lines(&refusal, "connect", &sources, &at);
            assert!(lines[0].starts_with(expect), "{lines:?} {expect}");
        }
    }
}
