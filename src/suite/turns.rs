//! Turns of a scenario that are played in order: steps of a playback.

use serde_json::{Map, Value, json};

use super::reading::{check_known, number, texts};
use super::yaml::{Node, Problem};

/// Words of which each turn has one.
const TURN: [&str; 5] = ["expect", "dtmf", "say", "interrupt", "wait"];
/// Words of what is expected of a turn of the agent.
const EXPECT: [&str; 6] = ["contains", "excludes", "meaning", "exact", "within_ms", "absent"];
/// Longest time of a turn, in milliseconds.
const MS_MAX: f64 = 600_000.0;

/// Returns the steps of a list of turns.
///
/// # Errors
/// All faults of the list.
pub fn steps(node: &Node) -> Result<Vec<Value>, Vec<Problem>> {
    let Some(items) = node.items() else {
        return Err(vec![Problem::new(&node.at, "turns must be a list")]);
    };
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    for item in items {
        match item.members() {
            Some([(key, value)]) => {
                check_known(key, TURN.into_iter(), &mut problems);
                steps.extend(step(&key.name, value, &mut problems));
            }
            _ => problems.push(Problem::new(&item.at, format!("a turn has one of {}", TURN.join(", ")))),
        }
    }
    if problems.is_empty() { Ok(steps) } else { Err(problems) }
}

fn step(word: &str, node: &Node, problems: &mut Vec<Problem>) -> Option<Value> {
    let text = |problems: &mut Vec<Problem>| {
        let text = node.text().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        if text.is_none() {
            problems.push(Problem::new(&node.at, format!("{word} must be a text")));
        }
        text
    };
    match word {
        "say" => Some(json!({ "speaker": "user", "exact_message": text(problems)? })),
        "dtmf" => {
            let digits = text(problems)?;
            if let Some(wrong) = digits.chars().find(|c| !(c.is_ascii_digit() || "*#ABCDabcd, ".contains(*c))) {
                problems.push(Problem::new(&node.at, format!("'{wrong}' cannot be keyed")));
            }
            Some(json!({ "speaker": "user", "type": "dtmf", "digits": digits }))
        }
        "wait" => {
            let ms = number(Some(node), "wait", 0.0, MS_MAX, problems)?;
            Some(json!({ "speaker": "user", "type": "silence", "duration_ms": ms.round() as i64 }))
        }
        "interrupt" => interrupt(node, problems),
        "expect" => expect(node, problems),
        _ => None,
    }
}

fn interrupt(node: &Node, problems: &mut Vec<Problem>) -> Option<Value> {
    let Some(members) = node.members() else {
        problems.push(Problem::new(&node.at, "interrupt must be a map with after_ms and say"));
        return None;
    };
    members.iter().for_each(|(key, _)| check_known(key, ["after_ms", "say"].into_iter(), problems));
    let Some(say) = node.get("say").and_then(Node::text) else {
        problems.push(Problem::new(&node.at, "interrupt needs say, the words"));
        return None;
    };
    let Some(after) = node.get("after_ms") else {
        problems.push(Problem::new(&node.at, "interrupt needs after_ms, from the beginning of the agent's turn"));
        return None;
    };
    let after_ms = number(Some(after), "after_ms", 0.0, MS_MAX, problems)?.round() as i64;
    Some(json!({ "speaker": "user", "interrupt": { "after_ms": after_ms, "exact_message": say } }))
}

fn expect(node: &Node, problems: &mut Vec<Problem>) -> Option<Value> {
    let Some(members) = node.members().filter(|members| !members.is_empty()) else {
        let why = format!("expect must be a map with some of {}", EXPECT.join(", "));
        problems.push(Problem::new(&node.at, why));
        return None;
    };
    members.iter().for_each(|(key, _)| check_known(key, EXPECT.into_iter(), problems));
    let mut step = Map::from_iter([("speaker".to_owned(), json!("agent"))]);
    for word in ["contains", "excludes"] {
        let phrases = texts(node.get(word), word, problems);
        if !phrases.is_empty() {
            step.insert(word.to_owned(), json!(phrases));
        }
    }
    for (word, field) in [("meaning", "criteria"), ("exact", "exact_match_text")] {
        let Some(value) = node.get(word) else { continue };
        match value.text() {
            Some(text) => {
                step.insert(field.to_owned(), json!(text));
            }
            None => problems.push(Problem::new(&value.at, format!("{word} must be a text"))),
        }
    }
    let within = number(node.get("within_ms"), "within_ms", 0.0, MS_MAX, problems);
    if let Some(ms) = within {
        step.insert("within_ms".to_owned(), json!(ms.round() as i64));
    }
    match node.get("absent").map(|absent| (absent, absent.json())) {
        None | Some((_, Value::Bool(false))) => {}
        Some((absent, Value::Bool(true))) => {
            if within.is_none() {
                problems.push(Problem::new(&absent.at, "absent needs within_ms, how long nothing may be said"));
            }
            step.insert("absent".to_owned(), json!(true));
        }
        Some((absent, _)) => problems.push(Problem::new(&absent.at, "absent must be true or false")),
    }
    Some(Value::Object(step))
}
