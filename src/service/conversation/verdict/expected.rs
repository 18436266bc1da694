//! Verdict by what was expected of the agent: the steps and expectations with a status, and the reason of each.

use ringer_judge::NOTHING_EXPECTED;
use ringer_model::expectation::{ExpectationResult, ExpectationStatus};
use ringer_model::result::ResultDoc;
use ringer_model::verdict::{CallVerdict, VerdictWord};
use serde_json::Value;

use super::EXPECTATION;

/// Reasons that a verdict names; more are counted.
const REASONS_MAX: usize = 5;
/// Characters of heard words that a reason has.
const HEARD_CHARS: usize = 80;

/// Returns the verdict by the steps and expectations with this status: the reasons of all of them, with time and heard
/// words where they are known.
pub(super) fn by_expectation(doc: &ResultDoc, status: &ExpectationStatus, word: VerdictWord) -> Option<CallVerdict> {
    let steps = steps(doc).filter(|step| step["status"] == status.as_str()).map(of_step);
    let expectations = doc.body.expectations.iter().filter(|one| one.status == *status).map(of_expectation);
    let all: Vec<(Option<i64>, String)> = steps.chain(expectations).collect();
    let first_ms = all.first()?.0;
    let mut reasons: Vec<&str> = all.iter().take(REASONS_MAX).map(|(_, reason)| reason.as_str()).collect();
    let left = format!("and {} more", all.len().saturating_sub(REASONS_MAX));
    reasons.extend((all.len() > REASONS_MAX).then_some(&*left));
    Some(CallVerdict { at_ms: first_ms, ..CallVerdict::of(word, EXPECTATION, reasons.join("; ")) })
}

/// Reason of an expectation for which none is told.
const UNTOLD: &str = "no reason is told";

/// Returns time and reason of a step of the playback that was not met.
fn of_step(step: &Value) -> (Option<i64>, String) {
    let (turn, at_ms) = (step["index"].as_i64().unwrap_or(0) + 1, step["at_ms"].as_i64());
    let reason = step["reason"].as_str().unwrap_or(UNTOLD);
    let at = at_ms.map_or_else(String::new, |ms| format!(" ({:.1} s)", ms as f64 / 1000.0));
    let heard = step["heard"].as_str().filter(|heard| !heard.is_empty() && !reason.contains(heard));
    let heard = heard.map_or_else(String::new, |heard| match heard.char_indices().nth(HEARD_CHARS) {
        Some((end, _)) => format!(", heard: \"{}...\"", &heard[..end]),
        None => format!(", heard: \"{heard}\""),
    });
    (at_ms, format!("turn {turn}{at}: {reason}{heard}"))
}

/// Returns time and reason of an expectation that was not met.
fn of_expectation(one: &ExpectationResult) -> (Option<i64>, String) {
    let reason = one.reason.as_deref().unwrap_or(UNTOLD);
    let reason = match &one.expected.meaning {
        Some(meaning) => format!("{meaning}: {reason}"),
        None => reason.to_owned(),
    };
    (one.at_ms, reason)
}

/// Returns the steps of the playback of which something is expected, as they are noted.
pub(super) fn steps(doc: &ResultDoc) -> impl Iterator<Item = &Value> {
    let noted = doc.find_note("playback").and_then(Value::as_array).into_iter().flatten();
    noted.filter(|step| step["reason"] != NOTHING_EXPECTED)
}
