//! Metrics that need no judgement: what was said, keyed and called is counted, what was measured is compared.

use std::borrow::Cow;
use std::collections::HashSet;

use regex_lite::{Regex, RegexBuilder};
use ringer_model::custom_metric::{CustomMetricSpec, EvalSegment, ResponseType};
use ringer_model::digital_human::Role;
use ringer_model::result::MetricValue;
use ringer_model::text_of;
use ringer_model::transcript::TranscriptEntry;
use serde_json::Value;

use super::segment::{Part, agent_turns, spoken};
use super::value::{Finding, Given, is_number, needs_flag};
use crate::unheard::{Unheard, told};

/// Largest regular expression, compiled and as a text, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Smallest size that a compiled regular expression is taken to have.
const REGEX_BYTES_MIN: usize = 1 << 10;
/// Largest cost of searching one regular expression: bytes searched times bytes of the expression. It takes some
/// seconds.
const REGEX_WORK_MAX: usize = 1 << 36;

/// Judges a metric by the rule in its `settings.check`.
pub(super) fn deterministic(spec: &CustomMetricSpec, part: &Part<'_>) -> Finding {
    let text = |key: &str| spec.settings.get(key).and_then(Value::as_str);
    let Some(check) = text("check") else {
        return match spec.response_type {
            ResponseType::ToolCall => tools_called(spec, part),
            _ => Finding::error("settings.check is required for deterministic metrics"),
        };
    };
    let least = match spec.settings.get("count_min") {
        None | Some(Value::Null) => 1,
        Some(value) => match value.as_u64() {
            Some(least) => least as usize,
            None => return Finding::error("settings.count_min must be an integer of at least 0"),
        },
    };
    let counted = match check {
        "regex" => return match_pattern(spec, part, least),
        "contains" | "not_contains" => value_setting(spec).map(|value| occurrences(&value, spec, part)),
        "tool_called" | "tool_not_called" => {
            value_setting(spec).map(|name| part.calls.iter().filter(|call| call.name == name).count())
        }
        "dtmf_received" => Ok(digits(spec, part)),
        "metadata_equals" => value_setting(spec).and_then(|value| equals(&value, spec, part)),
        "turns_at_most" => Ok(turns(spec, part)),
        other => Err(format!("settings.check {other} is not known")),
    };
    let count = match counted {
        Ok(count) => count,
        Err(why) => return Finding::error(why),
    };
    let is_without = matches!(check, "not_contains" | "tool_not_called");
    let is_found = count >= if is_without { least.max(1) } else { least };
    // Turns that were not heard may hold more of it: found matches decide, missing ones do not.
    let is_decided = is_found && !is_number(spec.response_type);
    if matches!(check, "contains" | "not_contains")
        && !is_decided
        && let Some(why) = told(&unheard(spec, part))
    {
        return Finding::not_evaluated(format!("{check}: {count} in what was heard, and {why}"));
    }
    let passed = match check {
        _ if is_without => !is_found,
        "turns_at_most" => match spec.settings.get("value").and_then(Value::as_f64) {
            Some(most) => count as f64 <= most,
            None => return Finding::error("settings.value must be a number for turns_at_most"),
        },
        _ => is_found,
    };
    if passed && count == 0 && !is_number(spec.response_type) {
        let most = if check == "turns_at_most" { spec.settings.get("value").and_then(Value::as_f64) } else { None };
        let is_earned = match check {
            "metadata_equals" => true,
            "tool_called" | "tool_not_called" => has_spoken(part, Some(Role::Agent)) || !part.calls.is_empty(),
            // No turn at all is wanted only where none is allowed.
            "turns_at_most" => most == Some(0.0) && has_spoken(part, None),
            _ => has_spoken(part, side(spec)),
        };
        if !is_earned {
            let why = if check == "turns_at_most" { "no turn was taken" } else { NOTHING_SAID };
            return Finding::not_evaluated(format!("{check}: {why}"));
        }
    }
    Finding::of_check(spec, passed, count as f64, Some(format!("{check}: {count}")))
}

/// Reason why the absence of something decides nothing.
const NOTHING_SAID: &str = "nothing was said";

/// True if the side, or any, has said, written or keyed something.
fn has_spoken(part: &Part<'_>, side: Option<Role>) -> bool {
    part.entries.iter().any(|entry| side.is_none_or(|side| entry.speaker == side) && entry.has_words())
}

/// Checks that every tool was called; with `settings.order` true, in that order.
fn tools_called(spec: &CustomMetricSpec, part: &Part<'_>) -> Finding {
    let mut calls: Vec<_> = part.calls.clone();
    calls.sort_by_key(|call| call.start_offset_ms);
    let missing = match spec.settings.get("order") {
        Some(Value::Bool(true)) => {
            let mut rest = calls.iter();
            spec.tool_names.iter().find(|name| !rest.any(|call| call.name == **name))
        }
        _ => {
            let called: HashSet<&str> = calls.iter().map(|call| &*call.name).collect();
            spec.tool_names.iter().find(|name| !called.contains(name.as_str()))
        }
    };
    let reason = missing.map(|name| format!("{name} was not called"));
    Finding::of_value(Given::Flag(missing.is_none()), reason)
}

/// Returns `settings.value` as a text.
fn value_setting(spec: &CustomMetricSpec) -> Result<String, String> {
    match spec.settings.get("value") {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        _ => Err("settings.value is required".into()),
    }
}

fn is_case_sensitive(spec: &CustomMetricSpec) -> bool {
    spec.settings.get("case_sensitive") == Some(&Value::Bool(true))
}

fn side(spec: &CustomMetricSpec) -> Option<Role> {
    spec.settings.get("speaker").and_then(Value::as_str).and_then(Role::parse)
}

fn entries_of<'p>(spec: &CustomMetricSpec, part: &'p Part<'_>) -> impl Iterator<Item = &'p TranscriptEntry> {
    let side = side(spec);
    part.entries.iter().copied().filter(move |entry| side.is_none_or(|side| entry.speaker == side))
}

/// Returns the turns of the counted side that were not heard.
fn unheard(spec: &CustomMetricSpec, part: &Part<'_>) -> Vec<Unheard> {
    let side = side(spec);
    part.unheard.iter().copied().filter(|turn| side.is_none_or(|side| turn.speaker == side)).collect()
}

fn occurrences(value: &str, spec: &CustomMetricSpec, part: &Part<'_>) -> usize {
    let form = |text: &str| if is_case_sensitive(spec) { text.to_owned() } else { text.to_lowercase() };
    let value = form(value);
    entries_of(spec, part).map(|entry| form(&entry.utterance).matches(&value).count()).sum()
}

/// Returns the finding of a regular expression, which must match in at least `least` places.
fn match_pattern(spec: &CustomMetricSpec, part: &Part<'_>, least: usize) -> Finding {
    let found = value_setting(spec).and_then(|value| compile(&value, spec));
    let (regex, bytes) = match found {
        Ok(regex) => regex,
        Err(why) => return Finding::error(why),
    };
    let texts = entries_of(spec, part).map(|entry| &*entry.utterance);
    decide(spec, part, least, matches(&regex, REGEX_WORK_MAX / bytes, texts))
}

/// Returns the finding of `count` matches when at least `least` are wanted. Parts not heard or not searched may hold
/// more matches.
fn decide(spec: &CustomMetricSpec, part: &Part<'_>, least: usize, (count, is_all): (usize, bool)) -> Finding {
    let is_found = count >= least;
    if !is_found || is_number(spec.response_type) {
        if !is_all {
            let why = "the rest was not searched: it takes too long";
            return Finding::not_evaluated(format!("regex: {count} in what was searched, and {why}"));
        }
        if let Some(why) = told(&unheard(spec, part)) {
            return Finding::not_evaluated(format!("regex: {count} in what was heard, and {why}"));
        }
    }
    if count == 0 && is_found && !is_number(spec.response_type) && !has_spoken(part, side(spec)) {
        return Finding::not_evaluated(format!("regex: {NOTHING_SAID}"));
    }
    let least = if is_all { "" } else { "at least " };
    Finding::of_check(spec, is_found, count as f64, Some(format!("regex: {least}{count}")))
}

/// Returns a regular expression, with the least limit that its compiled size keeps to.
fn compile(value: &str, spec: &CustomMetricSpec) -> Result<(Regex, usize), String> {
    let wrong = |why: &dyn std::fmt::Display| format!("settings.value is no regular expression: {why}");
    if value.len() > REGEX_BYTES_MAX {
        return Err(wrong(&format_args!("it is longer than {REGEX_BYTES_MAX} bytes")));
    }
    let mut builder = RegexBuilder::new(value);
    builder.case_insensitive(!is_case_sensitive(spec));
    let mut limit = REGEX_BYTES_MIN;
    loop {
        match builder.size_limit(limit).build() {
            Ok(regex) => return Ok((regex, limit)),
            Err(error) if limit >= REGEX_BYTES_MAX => return Err(wrong(&error)),
            Err(_) => limit *= 4,
        }
    }
}

/// Returns the matches in texts, and true if all were looked for. Each look for a match may read to the end of its
/// text, so that many matches cost its length squared. `left` is the number of bytes that may be read in all.
fn matches<'t>(regex: &Regex, mut left: usize, texts: impl Iterator<Item = &'t str>) -> (usize, bool) {
    let mut count = 0;
    for text in texts {
        let (mut found, mut from) = (regex.find_iter(text), 0);
        loop {
            let Some(rest) = left.checked_sub(text.len() - from + 1) else { return (count, false) };
            left = rest;
            let Some(next) = found.next() else { break };
            from = next.end();
            count += 1;
        }
    }
    (count, true)
}

/// Returns how many times the wanted digits came from the agent, or the number of digits when none are wanted.
fn digits(spec: &CustomMetricSpec, part: &Part<'_>) -> usize {
    let keyed = part.entries.iter().filter(|entry| entry.speaker == Role::Agent);
    let keyed = keyed.filter_map(|entry| entry.utterance.strip_prefix("[DTMF ")?.strip_suffix(']'));
    let all: String = keyed.collect();
    match value_setting(spec) {
        Ok(wanted) => all.matches(&wanted).count(),
        Err(_) => all.chars().count(),
    }
}

fn equals(value: &str, spec: &CustomMetricSpec, part: &Part<'_>) -> Result<usize, String> {
    let key = spec.settings.get("key").and_then(Value::as_str).ok_or("settings.key is required for metadata_equals")?;
    let found = part.whole.metadata.and_then(|metadata| metadata.get(key)).map(text_of);
    let same =
        |found: Cow<'_, str>| if is_case_sensitive(spec) { found == value } else { lower(&found) == lower(value) };
    Ok(usize::from(found.is_some_and(same)))
}

fn lower(text: &str) -> String {
    text.to_lowercase()
}

/// Returns the number of turns of a side, the agent's when none is named.
fn turns(spec: &CustomMetricSpec, part: &Part<'_>) -> usize {
    let spoken = spoken(part.entries.iter().copied(), &part.unheard);
    let of_agent = agent_turns(&spoken).len();
    match side(spec) {
        Some(Role::User) => spoken.chunk_by(|one, next| one.0 == next.0).count() - of_agent,
        _ => of_agent,
    }
}

/// Returns a measure of the conversation or of a part, as it is or compared.
pub(super) fn measured(spec: &CustomMetricSpec, part: &Part<'_>) -> Finding {
    let Some(name) = spec.settings.get("measure").and_then(Value::as_str) else {
        return Finding::error("settings.measure must be the name of a metric");
    };
    let (of, measures) = match measures_of(spec.eval_segment, name, part) {
        Ok(measures) => measures,
        Err(why) => return Finding::not_evaluated(why),
    };
    let Some(found) = measures.iter().find(|measure| measure.name == name) else {
        return Finding::not_evaluated(format!("{name} has no value"));
    };
    let reason = Some(format!("{name} of the {of} is {}", text_of(&found.value)));
    if !needs_flag(spec.response_type) {
        return match (&found.value, spec.response_type) {
            (value, ResponseType::Qualitative | ResponseType::Enum) => {
                Finding::of_value(Given::Text(text_of(value).into_owned()), reason)
            }
            (value @ Value::Object(_), ResponseType::Json) => Finding::of_value(Given::Object(value.clone()), reason),
            (value, _) => match value.as_f64() {
                Some(number) => Finding::of_value(Given::Number(number), reason),
                None => Finding::error(format!("{name} is no number")),
            },
        };
    }
    let (Some(operator), Some(value)) =
        (spec.settings.get("operator").and_then(Value::as_str), spec.settings.get("value"))
    else {
        return Finding::error("settings.operator and settings.value are required for a measure that passes or fails");
    };
    match compare(&found.value, operator, value) {
        Ok(passed) => Finding::of_value(Given::Flag(passed), reason),
        Err(why) => Finding::error(why),
    }
}

/// Returns the name of the part that a measure covers, and the measures of that part.
///
/// # Errors
/// The reason why there is no such measure of that part.
fn measures_of<'p>(
    segment: EvalSegment,
    name: &str,
    part: &Part<'p>,
) -> Result<(&'static str, &'p [MetricValue]), String> {
    let whole = part.whole;
    let of = match segment {
        EvalSegment::Agent if measured_side(name) != Some(Role::Agent) => {
            return Err(format!("{name} does not measure the agent alone"));
        }
        EvalSegment::Caller if measured_side(name) != Some(Role::User) => {
            return Err(format!("{name} does not measure the caller alone"));
        }
        _ if part.is_whole() => return Ok(("whole conversation", whole.measures)),
        EvalSegment::Closing => "closing",
        _ => "opening",
    };
    let found = whole.parts.iter().find(|measured| measured.segment == segment);
    found.map(|measured| (of, &measured.measures[..])).ok_or_else(|| format!("{name} was not measured of the {of}"))
}

/// Returns the side that a measure is of; `None` for measures of both, and for what is no measure of sound and time.
fn measured_side(name: &str) -> Option<Role> {
    let ends = |names: &[&str]| names.iter().any(|end| name.ends_with(end));
    match name {
        "num_turns" | "audio_fidelity" => Some(Role::Agent),
        "dh_yield_latency_ms" => Some(Role::User),
        _ if name.contains("customer") || name.starts_with("user_") => Some(Role::User),
        _ if name.contains("agent") => Some(Role::Agent),
        _ if ends(&["ignored_latency", "punctuation_latency", "_selectivity", "_rate", "yield_latency"]) => {
            Some(Role::Agent)
        }
        _ => None,
    }
}

/// Compares by number where both are numbers, else by text.
///
/// # Errors
/// When the operator is not known, or orders texts.
fn compare(found: &Value, operator: &str, value: &Value) -> Result<bool, String> {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.trim().parse::<f64>().ok());
    let numbers = number(found).zip(number(value));
    let ordered = || numbers.ok_or_else(|| format!("settings.operator {operator} compares numbers"));
    let same = numbers.map_or_else(|| text_of(found) == text_of(value), |(one, other)| one == other);
    match operator {
        "equals" => Ok(same),
        "not_equals" => Ok(!same),
        "greater_than" => ordered().map(|(one, other)| one > other),
        "less_than" => ordered().map(|(one, other)| one < other),
        "greater_than_or_equal" => ordered().map(|(one, other)| one >= other),
        "less_than_or_equal" => ordered().map(|(one, other)| one <= other),
        "contains" => Ok(text_of(found).contains(&*text_of(value))),
        "not_contains" => Ok(!text_of(found).contains(&*text_of(value))),
        _ => Err(format!("settings.operator {operator} is not known")),
    }
}

#[cfg(test)]
mod tests {
    use ringer_model::transcript::EntrySource;
    use serde_json::json;

    use super::super::segment;
    use super::super::value::Verdict;
    use super::*;
    use crate::custom::{Material, Metric, PartMeasures, parts_to_measure};

    fn rule(settings: Value, kind: &str) -> CustomMetricSpec {
        serde_json::from_value(json!({
            "name": "m", "description": "d", "response_type": kind, "eval_method": "deterministic", "settings": settings,
        }))
        .expect("a metric")
    }

    #[test]
    fn a_search_that_takes_too_long_is_given_up() {
        let text = "a".repeat(1 << 20);
        let entries = [TranscriptEntry::of(Role::Agent, 0, 900, text, EntrySource::Recognized)];
        let part = segment::part(EvalSegment::All, Material { entries: &entries, ..Material::default() });
        // Each look for a match reads all that follows, in vain.
        let settings = json!({"check": "regex", "value": "a.*z|a", "count_min": 1 << 20});
        let judged = deterministic(&rule(settings.clone(), "pass_fail"), &part);
        let why = "regex: 64 in what was searched, and the rest was not searched: it takes too long";
        assert_eq!(judged, Finding::not_evaluated(why));
        // Only found matches decide where the search was given up.
        let judged = |kind: &str, found| decide(&rule(settings.clone(), kind), &part, 3, found);
        let passed = |passed, why: &str| Finding::of_value(Given::Flag(passed), Some(why.to_owned()));
        assert_eq!(judged("pass_fail", (3, false)), passed(true, "regex: at least 3"));
        assert!(matches!(judged("pass_fail", (2, false)).verdict, Verdict::NotEvaluated(_)));
        assert!(matches!(judged("int", (3, false)).verdict, Verdict::NotEvaluated(_)));
        assert_eq!(judged("pass_fail", (3, true)), passed(true, "regex: 3"));
        assert_eq!(judged("pass_fail", (2, true)), passed(false, "regex: 2"));
    }

    #[test]
    fn matches_are_counted_as_far_as_may_be_read() {
        for (value, texts, left, expect) in [
            ("a", &["banana", "a"][..], 100, (4, true)),
            // 7 + 5 + 3 + 1 bytes for the three of the first and its end, 2 + 1 for the second.
            ("a", &["banana", "a"], 19, (4, true)),
            ("a", &["banana", "a"], 18, (4, false)),
            ("a", &["banana", "a"], 16, (3, false)),
            ("a", &["banana", "a"], 6, (0, false)),
            ("x*", &["axa"], 100, (3, true)),
            ("ü", &["üü"], 100, (2, true)),
            ("a", &[], 0, (0, true)),
        ] {
            let spec = rule(json!({}), "int");
            let (regex, bytes) = compile(value, &spec).expect("an expression");
            assert_eq!(matches(&regex, left, texts.iter().copied()), expect, "{value} {texts:?} {left}");
            assert_eq!(bytes, REGEX_BYTES_MIN, "{value}");
        }
        let spec = rule(json!({}), "int");
        assert!(compile("(a?b){200}", &spec).is_ok_and(|(_, bytes)| bytes > REGEX_BYTES_MIN));
        assert!(compile("(a{1000}){1000}", &spec).is_err());
        assert!(compile(&"a".repeat(REGEX_BYTES_MAX + 1), &spec).is_err());
    }

    fn measures(given: Value) -> Vec<MetricValue> {
        let members = given.as_object().cloned().unwrap_or_default();
        members.into_iter().map(|(name, value)| MetricValue { name, value, note: None }).collect()
    }

    #[test]
    fn a_measure_is_of_its_segment() {
        let said = |(at, speaker): (i64, Role)| {
            TranscriptEntry::of(speaker, 1000 * at, 1000 * at + 900, "So.".to_owned(), EntrySource::Recognized)
        };
        let turns = [Role::Agent, Role::User, Role::Agent, Role::User, Role::Agent];
        let entries: Vec<TranscriptEntry> = (0..).zip(turns).map(said).collect();
        let whole =
            measures(json!({"agent_snr": 20.0, "avg_customer_latency": 0.5, "talk_ratio": 0.6, "goal_success": true}));
        let parts = [PartMeasures { segment: EvalSegment::Opening, measures: measures(json!({"agent_snr": 30.0})) }];
        let material = Material { entries: &entries, measures: &whole, parts: &parts, ..Material::default() };
        let metric = |segment: &str, name: &str| {
            Metric {
            id: uuid::Uuid::nil(),
            spec: serde_json::from_value(json!({
                "name": "m", "description": "d", "response_type": "float", "eval_method": "audio", "eval_segment": segment,
                "settings": {"measure": name},
            }))
            .expect("a metric"),
        }
        };
        for (segment, name, expect) in [
            ("all", "agent_snr", Ok(20.0)),
            ("agent", "agent_snr", Ok(20.0)),
            ("caller", "avg_customer_latency", Ok(0.5)),
            ("opening", "agent_snr", Ok(30.0)),
            ("opening", "talk_ratio", Err("talk_ratio has no value")),
            ("closing", "agent_snr", Err("agent_snr was not measured of the closing")),
            ("agent", "talk_ratio", Err("talk_ratio does not measure the agent alone")),
            ("agent", "avg_customer_latency", Err("avg_customer_latency does not measure the agent alone")),
            ("agent", "goal_success", Err("goal_success does not measure the agent alone")),
            ("caller", "agent_snr", Err("agent_snr does not measure the caller alone")),
        ] {
            let spec = metric(segment, name).spec;
            let expect = match expect {
                Ok(number) => {
                    let of = if segment == "opening" { segment } else { "whole conversation" };
                    Finding::of_value(Given::Number(number), Some(format!("{name} of the {of} is {number:?}")))
                }
                Err(why) => Finding::not_evaluated(why),
            };
            assert_eq!(measured(&spec, &segment::part(spec.eval_segment, material)), expect, "{segment} {name}");
        }
        let all = ["all", "opening", "opening", "closing", "agent"].map(|segment| metric(segment, "agent_snr"));
        let wanted = [(EvalSegment::Opening, (i64::MIN, 2900)), (EvalSegment::Closing, (2000, i64::MAX))];
        assert_eq!(parts_to_measure(&all, material), wanted);
        let short = Material { entries: &entries[..2], measures: &whole, ..Material::default() };
        assert_eq!(parts_to_measure(&all, short), [], "fewer turns than that are the whole");
    }
}
