//! Values of a suite's file: known words, numbers within bounds, lists of texts, arguments of tools.

use serde_json::Value;

use super::yaml::{MemberName, Node, Problem};
use crate::config::nearest;

/// Adds a problem for a key that is none of the known words.
pub(super) fn check_known<'a>(
    key: &MemberName,
    words: impl Iterator<Item = &'a str> + Clone,
    problems: &mut Vec<Problem>,
) {
    if !words.clone().any(|word| word == key.name) {
        let near = nearest(&key.name, words);
        problems.push(Problem::new(&key.at, format!("{} is not known{near}", key.name)));
    }
}

/// Reads a number within bounds.
pub(super) fn number(
    node: Option<&Node>,
    word: &str,
    least: f64,
    most: f64,
    problems: &mut Vec<Problem>,
) -> Option<f64> {
    let node = node?;
    let number = node.number().filter(|number| (least..=most).contains(number));
    if number.is_none() {
        problems.push(Problem::new(&node.at, format!("{word} must be a number from {least} to {most}")));
    }
    number
}

/// Texts of a word: one, or a list of them.
pub(super) fn texts(node: Option<&Node>, word: &str, problems: &mut Vec<Problem>) -> Vec<String> {
    let Some(node) = node else { return Vec::new() };
    let items = node.items().unwrap_or(std::slice::from_ref(node));
    let all: Option<Vec<String>> = items.iter().map(|item| item.text().map(str::to_owned)).collect();
    all.unwrap_or_else(|| {
        problems.push(Problem::new(&node.at, format!("{word} must be a list of texts")));
        Vec::new()
    })
}

/// Returns the member of an expectation with the characters of its arguments; `None` where all have quotes.
pub(super) fn written_args(args: &Node) -> Option<(String, Value)> {
    let written = args.as_written();
    (!written.is_empty()).then(|| ("args_as_written".to_owned(), Value::Object(written)))
}
