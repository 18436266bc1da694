//! Results of a Digital Human's expectations. Evidence that is found always decides. Missing evidence decides only
//! where nothing failed on this side that it depends on.

use std::collections::BTreeMap;

use regex_lite::RegexBuilder;
use ringer_media::call::{EventKind, Side, TimelineEntry, contains_phrase};
use ringer_media::frame::PER_MS;
use ringer_model::digital_human::Role;
use ringer_model::expectation::{
    EndsIt, Expectation, ExpectationResult, ExpectationStatus as Status, FaultCode, OwnFault, WordsAs,
};
use ringer_model::judge_card::JudgeNote;
use ringer_model::result::{MetricValue, PostedToolCall};
use ringer_model::status::EndedBy;
use ringer_model::tool_call::{Mismatch, mismatch};
use ringer_model::transcript::TranscriptEntry;
use ringer_provider::LanguageModel;
use serde_json::{Value, json};

use super::custom::{Material, NO_MODEL};
use super::doubt::{Doubt, Heard};
use super::faults::{HEARING, LEADING, LEADING_IN_TIME};
use super::meaning::judge_meaning;
use super::playback::{Own, own_spans};
use super::reading;
use super::socket_events::rate_mismatch;
use super::yielding::OpenMetric;

/// Largest compiled regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Characters of words that a verdict shows.
const SHOWN_CHARS: usize = 200;

/// Facts of a conversation that expectations are held against.
#[derive(Copy, Clone, Debug, Default)]
pub struct Grounds<'g> {
    /// Transcript, tool calls and turns that were not heard.
    pub material: Material<'g>,
    /// Built-in metrics that have a value.
    pub metrics: &'g [MetricValue],
    /// Metrics of which something is not known.
    pub open: &'g [OpenMetric],
    /// The timeline, in order.
    pub moments: &'g [TimelineEntry],
    /// Side that ended the conversation.
    pub ended_by: Option<EndedBy>,
    /// Length of the conversation.
    pub duration_ms: Option<i64>,
    /// Parts of this side that failed.
    pub own_faults: &'g [OwnFault],
    /// Reason why timing is not reliable; `None`: it is.
    pub untrusted: Option<&'g str>,
}

/// Finding on one expectation.
struct Found {
    status: Status,
    measured: Value,
    reason: Option<String>,
    at_ms: Option<i64>,
}

impl Found {
    fn of(passed: bool, measured: Value, reason: impl Into<String>) -> Found {
        let status = if passed { Status::Passed } else { Status::Failed };
        Found { status, measured, reason: Some(reason.into()).filter(|_| !passed), at_ms: None }
    }

    fn unknown(measured: Value, reason: impl Into<String>) -> Found {
        Found { status: Status::Undecided, measured, reason: Some(reason.into()), at_ms: None }
    }

    /// Returns the finding, unknown in the place of passed where nothing was counted since the agent did nothing at
    /// all.
    fn unless_idle(self, grounds: &Grounds<'_>) -> Found {
        let is_none = self.measured.as_f64() == Some(0.0);
        match self.status {
            Status::Passed if is_none && !has_acted(grounds) => {
                let reason = Some("the agent did nothing, so that this decides nothing".to_owned());
                Found { status: Status::Undecided, reason, ..self }
            }
            _ => self,
        }
    }

    /// Returns the finding on calls of a tool, unknown where the platform has not told of all calls.
    fn unless_unreported(self, faults: &[OwnFault]) -> Found {
        let is_none = self.status == Status::Passed && self.measured.as_f64() == Some(0.0);
        match faults.iter().find(|fault| fault.code == FaultCode::ReportMissing) {
            Some(fault) if is_none => Found { status: Status::Undecided, reason: Some(fault.code.reason()), ..self },
            _ => self.unless(faults, &[FaultCode::ReportMissing]),
        }
    }

    fn at(self, at_ms: Option<i64>) -> Found {
        Found { at_ms, ..self }
    }

    /// Returns the finding, unknown in the place of failed where a fault of this side may have brought the failure
    /// about.
    fn unless(self, faults: &[OwnFault], codes: &[FaultCode]) -> Found {
        let fault = faults.iter().find(|fault| codes.contains(&fault.code));
        match (self.status, fault) {
            (Status::Failed, Some(fault)) => {
                let reason = format!("{}; {}", self.reason.unwrap_or_default(), fault.code.reason());
                Found { status: Status::Undecided, reason: Some(reason), ..self }
            }
            _ => self,
        }
    }
}

/// True if the agent has said, written, keyed or called anything.
fn has_acted(grounds: &Grounds<'_>) -> bool {
    let turns = grounds.metrics.iter().find(|metric| metric.name == "num_turns").and_then(|turns| turns.value.as_f64());
    let of_agent = |moment: &TimelineEntry| {
        use EventKind::{AgentSpeechStarted, DtmfReceived, MessageReceived, TurnEnded};
        matches!(
            moment.reading(),
            AgentSpeechStarted { .. } | DtmfReceived { .. } | MessageReceived { .. } | TurnEnded { .. }
        )
    };
    let material = &grounds.material;
    turns.is_some_and(|turns| turns > 0.0)
        || material.entries.iter().any(|entry| entry.speaker == Role::Agent)
        || material.all_unheard().iter().any(|turn| turn.speaker == Role::Agent)
        || !material.calls.is_empty()
        || grounds.moments.iter().any(of_agent)
}

/// Metrics that are made of the agent's words.
const OF_WORDS: &[&str] = &[
    "avg_filler_ignored_latency",
    "p50_filler_ignored_latency",
    "p90_filler_ignored_latency",
    "p95_filler_ignored_latency",
    "p99_filler_ignored_latency",
    "avg_punctuation_latency",
    "p50_punctuation_latency",
    "p90_punctuation_latency",
    "agent_words_per_turn_avg",
    "agent_wpm",
    "predicted_wer",
    super::reported::NAME,
    "echoed_turns",
    "doubled_turns",
    "repeated_turns",
    "foreign_turns",
];
/// Metrics that a language model has judged.
const JUDGED: &[&str] = &[
    "goal_success",
    "success",
    "hallucination",
    "redundancy",
    "pronunciation_score",
    "sentiment_label",
    "sentiment_score",
    "sentiment_scores",
    "call_summary",
];
/// Metrics of the Digital Human's own speech.
const OF_OWN_SPEECH: &[&str] =
    &["avg_customer_latency", "p50_customer_latency", "p90_customer_latency", "customer_words_per_turn_avg"];
/// Metrics of the recording's sound.
const OF_SOUND: &[&str] = &super::sound::NAMES;
/// Metrics that neither clock nor speech changes.
const OF_FACTS: &[&str] = &["interface", "expected_tool_calls_met", "num_turns"];

/// Returns the metrics that are known here by name: those of words, of judges and of facts.
#[cfg(test)]
pub(super) fn names_used() -> impl Iterator<Item = &'static str> {
    [OF_WORDS, JUDGED, OF_OWN_SPEECH, OF_SOUND, OF_FACTS].into_iter().flatten().copied()
}

/// Faults of this side that stand against a value of the metric, whatever it is.
fn leaned_on(metric: &str) -> &'static [FaultCode] {
    match metric {
        name if OF_WORDS.contains(&name) || JUDGED.contains(&name) => HEARING,
        // A turn is over for the Digital Human once its words are there.
        "longest_agent_pause" => HEARING,
        name if OF_OWN_SPEECH.contains(&name) => {
            &[FaultCode::ModelFailed, FaultCode::SynthesizerFailed, FaultCode::Pacing, FaultCode::RateMismatch]
        }
        name if OF_SOUND.contains(&name) => &[FaultCode::Recording, FaultCode::Pacing, FaultCode::RateMismatch],
        name if OF_FACTS.contains(&name) => &[],
        _ => &[FaultCode::Pacing, FaultCode::RateMismatch],
    }
}

/// Evaluates the expectations in order; `model` judges meanings.
pub async fn judge_expectations(
    expectations: &[Expectation],
    grounds: &Grounds<'_>,
    model: Option<&dyn LanguageModel>,
) -> Vec<ExpectationResult> {
    let mut results = Vec::with_capacity(expectations.len());
    // The same meaning is asked for once.
    let mut meanings: BTreeMap<&str, Meant> = BTreeMap::new();
    for expected in expectations {
        let mut judge = None;
        let found = match &expected.meaning {
            Some(meaning) => {
                if !meanings.contains_key(meaning.as_str()) {
                    meanings.insert(meaning, judge_once(meaning, grounds, model).await);
                }
                let (status, reason, judged_by) = meanings[meaning.as_str()].clone();
                judge = judged_by;
                Found { status, measured: Value::Null, reason, at_ms: None }.unless(grounds.own_faults, LEADING)
            }
            None => by_rules(expected, grounds),
        };
        results.push(ExpectationResult { judge, ..result(expected, found) });
    }
    results
}

/// Evaluates those results again that stand on tool calls, which may come late.
pub fn rejudge_tools(
    results: &mut [ExpectationResult],
    calls: &[PostedToolCall],
    own_faults: &[OwnFault],
    moments: &[TimelineEntry],
) {
    for kept in results.iter_mut().filter(|kept| kept.expected.tool.is_some()) {
        let name = kept.expected.tool.as_deref().unwrap_or_default();
        let found = tool(name, &kept.expected, calls, moments).unless_unreported(own_faults);
        let found = found.unless(own_faults, led_by(&kept.expected));
        *kept = result(&kept.expected, found);
    }
}

/// Evaluates those results again that stand on metrics of these names.
pub fn rejudge_metrics(results: &mut [ExpectationResult], names: &[&str], grounds: &Grounds<'_>) {
    for kept in results.iter_mut() {
        if let Some(name) = kept.expected.metric.as_deref().filter(|name| names.contains(name)) {
            let found = metric(name, &kept.expected, grounds);
            *kept = result(&kept.expected, found);
        }
    }
}

/// Faults that stand against a missing call of the tool that is expected.
fn led_by(expected: &Expectation) -> &'static [FaultCode] {
    if is_timed_tool(expected) { LEADING_IN_TIME } else { LEADING }
}

/// True where an expectation is of a time that only the timeline tells.
pub fn is_timed_tool(expected: &Expectation) -> bool {
    expected.tool.is_some() && expected.within_ms.is_some()
}

fn result(expected: &Expectation, found: Found) -> ExpectationResult {
    let Found { status, measured, reason, at_ms } = found;
    ExpectationResult { expected: expected.clone(), measured, status, reason, at_ms, judge: None }
}

fn by_rules(expected: &Expectation, grounds: &Grounds<'_>) -> Found {
    let faults = grounds.own_faults;
    if let Some(name) = &expected.metric {
        return metric(name, expected, grounds);
    }
    if let Some(words) = expected.heard.as_ref().or(expected.not_heard.as_ref()) {
        return check_heard(words, expected, grounds).unless(faults, LEADING);
    }
    if let Some(name) = &expected.tool {
        let found = tool(name, expected, grounds.material.calls, grounds.moments).unless_unreported(faults);
        let found = found.unless(faults, led_by(expected));
        return if grounds.material.calls.is_empty() { found.unless_idle(grounds) } else { found };
    }
    if let Some(side) = expected.ended_by {
        let leading = if expected.within_s.is_some() { LEADING_IN_TIME } else { LEADING };
        return check_end(side, expected.within_s, grounds).unless(faults, leading);
    }
    if let Some(digits) = &expected.dtmf_received {
        return check_digits(digits, grounds).unless(faults, LEADING);
    }
    match &expected.event {
        Some(name) => check_count(name, expected, grounds).unless(faults, LEADING).unless_idle(grounds),
        None => Found::unknown(Value::Null, "nothing is expected"),
    }
}

/// Returns the bounds of a number, in words.
fn bounds(expected: &Expectation) -> String {
    match (expected.at_least, expected.at_most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "any".to_owned(),
    }
}

fn is_within(value: f64, expected: &Expectation) -> bool {
    expected.at_least.is_none_or(|least| value >= least) && expected.at_most.is_none_or(|most| value <= most)
}

fn metric(name: &str, expected: &Expectation, grounds: &Grounds<'_>) -> Found {
    let found = grounds.metrics.iter().find(|metric| metric.name == name);
    let value = found.map(|metric| &metric.value);
    let number = match value {
        Some(Value::Bool(flag)) => Some(f64::from(u8::from(*flag))),
        value => value.and_then(Value::as_f64),
    };
    let codes = leaned_on(name);
    if let Some(fault) = grounds.own_faults.iter().find(|fault| codes.contains(&fault.code)) {
        let why = match fault.code {
            FaultCode::RateMismatch => format!("{name} cannot be told: {}", fault.code.reason()),
            _ => format!("{name} leans on a part of this side that failed: {}", fault.code.as_str()),
        };
        return Found::unknown(value.cloned().unwrap_or_default(), why);
    }
    if codes.contains(&FaultCode::Pacing)
        && let Some(why) = grounds.untrusted
    {
        return Found::unknown(value.cloned().unwrap_or_default(), format!("the measurement is not trusted: {why}"));
    }
    if let Some(open) = grounds.open.iter().find(|open| open.name == name) {
        return open_metric(open, value, expected);
    }
    if let Some(lacks) = found.and_then(|metric| metric.note.as_deref()) {
        let why = match lacks {
            "no_punctuation" => "the agent's words came without punctuation, so that turns stand for sentences",
            "no_language_model" => "no language model judged the words",
            other => other,
        };
        return Found::unknown(value.cloned().unwrap_or_default(), format!("{name} cannot be told: {why}"));
    }
    match (number, value) {
        (Some(number), _) => {
            let why = format!("{name} is {number}, not {}", bounds(expected));
            Found::of(is_within(number, expected), json!(number), why).unless_idle(grounds)
        }
        (None, Some(other)) => Found::unknown(other.clone(), format!("{name} is no number")),
        (None, None) if is_silent(grounds) => {
            let why = format!("{name} has no value: the agent was silent where it could answer");
            Found::of(false, Value::Null, why).unless(grounds.own_faults, LEADING)
        }
        (None, None) => Found::unknown(Value::Null, format!("{name} has no value")),
    }
}

/// Returns the finding on a metric of which something is not known: it is told where every possible value says the
/// same.
fn open_metric(open: &OpenMetric, value: Option<&Value>, expected: &Expectation) -> Found {
    let measured = value.cloned().unwrap_or_default();
    let is_outside = |[least, most]: [f64; 2]| {
        expected.at_least.is_some_and(|bound| most < bound) || expected.at_most.is_some_and(|bound| least > bound)
    };
    match open.range {
        Some(range) if range.iter().all(|end| is_within(*end, expected)) => Found::of(true, measured, ""),
        Some([least, most]) if is_outside([least, most]) => {
            Found::of(false, measured, format!("{} is {least} to {most}, not {}", open.name, bounds(expected)))
        }
        _ => Found::unknown(measured, format!("{} cannot be told: {}", open.name, open.reason)),
    }
}

/// True when the Digital Human spoke, and the agent answered none of its turns that it could answer.
fn is_silent(grounds: &Grounds<'_>) -> bool {
    let rate = grounds.metrics.iter().find(|metric| metric.name == "response_rate");
    rate.and_then(|rate| rate.value.as_f64()) == Some(0.0)
}

fn quote(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

fn check_heard(words: &str, expected: &Expectation, grounds: &Grounds<'_>) -> Found {
    let side = expected.speaker.unwrap_or(Role::Agent);
    let unwanted = expected.not_heard.is_some();
    let holds: Box<dyn Fn(&str) -> bool> = match expected.form.unwrap_or_default() {
        WordsAs::Text => Box::new(|text| contains_phrase(text, words)),
        WordsAs::Regex => match RegexBuilder::new(words).case_insensitive(true).size_limit(REGEX_BYTES_MAX).build() {
            Ok(regex) => Box::new(move |text| regex.is_match(text)),
            Err(error) => return Found::unknown(Value::Null, format!("no regular expression: {error}")),
        },
    };
    let said: Vec<&TranscriptEntry> =
        grounds.material.entries.iter().filter(|entry| entry.speaker == side && entry.has_words()).collect();
    let who = if side == Role::Agent { "the agent" } else { "the caller" };
    if let Some(entry) = said.iter().find(|entry| holds(&entry.utterance)) {
        let why = format!("{who} said '{words}'");
        return Found::of(!unwanted, json!(quote(&entry.utterance)), why).at(Some(entry.start_offset_ms));
    }
    let lacking =
        grounds.material.all_unheard().iter().filter(|turn| turn.speaker == side && turn.lacks_words()).count();
    match (said.is_empty(), lacking) {
        (_, 1..) => {
            let turns = if lacking == 1 { "1 turn" } else { &format!("{lacking} turns") };
            Found::unknown(Value::Null, format!("words of {turns} of {who} are not known"))
        }
        (true, 0) if side == Role::Agent && !unwanted && is_silent(grounds) => {
            Found::of(false, Value::Null, "the agent was silent where it could answer")
        }
        (true, 0) => Found::unknown(Value::Null, format!("no words of {who} are known")),
        (false, 0) if !unwanted => match doubt(words, expected, &said) {
            Some((entry, Doubt { shown, at_ms })) => {
                let why = format!("{who} may have said '{words}' where words were heard with doubt: {shown}");
                Found::unknown(json!(quote(&entry.utterance)), why).at(Some(at_ms))
            }
            None => Found::of(false, Value::Null, format!("{who} did not say '{words}'")),
        },
        (false, 0) => Found::of(true, Value::Null, ""),
    }
}

/// Returns the doubtful words in whose place the wanted ones may have been said. Words that are not wanted are not
/// looked for: few doubtful words are just these.
fn doubt<'e>(
    words: &str,
    expected: &Expectation,
    said: &[&'e TranscriptEntry],
) -> Option<(&'e TranscriptEntry, Doubt)> {
    let of = |entry: &'e TranscriptEntry| {
        let heard = Heard::of_entry(entry);
        let doubt = match expected.form.unwrap_or_default() {
            WordsAs::Text => heard.may_hold(words),
            WordsAs::Regex => heard.may_match(words),
        };
        doubt.map(|doubt| (entry, doubt))
    };
    said.iter().copied().find_map(of)
}

fn tool(name: &str, expected: &Expectation, calls: &[PostedToolCall], moments: &[TimelineEntry]) -> Found {
    let none = ringer_model::Object::new();
    let differs = |call: &PostedToolCall| {
        let given = call.parameters.as_ref().unwrap_or(&none);
        mismatch(given, expected.args.as_ref()?, expected.args_as_written.as_ref())
    };
    let named = calls.iter().filter(|call| call.name == name).map(|call| (call, differs(call)));
    let (fitting, others): (Vec<_>, Vec<_>) = named.partition(|(_, differs)| differs.is_none());
    let fitting: Vec<&PostedToolCall> = fitting.into_iter().map(|(call, _)| call).collect();
    let others: Vec<Mismatch> = others.into_iter().filter_map(|(_, differs)| differs).collect();
    let own = if is_timed_tool(expected) { own_spans(moments) } else { Vec::new() };
    let in_time = |call: &&PostedToolCall| {
        expected.within_ms.is_none_or(|within| after_own_words_ms(call.start_offset_ms, &own) <= within)
    };
    let (found, late): (Vec<&PostedToolCall>, Vec<&PostedToolCall>) = fitting.into_iter().partition(in_time);
    let at_ms = found.iter().chain(&late).map(|call| call.start_offset_ms).min();
    let count = found.len() as i64;
    let passes = |count: i64| expected.times.map_or(count > 0, |times| count == times);
    let wanted = expected.times.map_or_else(String::new, |times| format!(", not {times} times"));
    let with = match &others[..] {
        [] => String::new(),
        [one] => format!("; 1 call had other arguments: {one}"),
        [first, ..] => format!("; {} calls had other arguments, the first: {first}", others.len()),
    };
    let with_args = if expected.args.is_some() { " with these arguments" } else { "" };
    let within = expected.within_ms.map_or_else(String::new, |within| format!(" within {within} ms"));
    let after = late.iter().map(|call| after_own_words_ms(call.start_offset_ms, &own)).min();
    let after = after.map_or_else(String::new, |ms| format!(" but after {ms} ms"));
    let why = match count {
        0 => format!("{name} was not called{with_args}{within}{after}{with}"),
        count => format!("{name} was called{with_args}{within} {count} times{wanted}{with}"),
    };
    Found::of(passes(count), json!(count), why).at(at_ms)
}

/// Milliseconds from the end of the Digital Human's last words or digits before `at_ms`, or from connect; 0 while they
/// last.
fn after_own_words_ms(at_ms: i64, own: &[Own]) -> i64 {
    // A message that goes out in the same millisecond is not what the tool was called for.
    let is_before = |own: &&Own| own.from / PER_MS < at_ms || (own.from < own.to && own.from / PER_MS == at_ms);
    let before = own.iter().filter(is_before).map(|own| own.to / PER_MS);
    (at_ms - before.max().unwrap_or(0)).max(0)
}

fn check_end(side: EndsIt, within_s: Option<f64>, grounds: &Grounds<'_>) -> Found {
    let by = match grounds.ended_by {
        Some(EndedBy::Agent) => EndsIt::Agent,
        Some(EndedBy::User) => EndsIt::User,
        _ => return Found::unknown(Value::Null, "it is not known who ended the conversation"),
    };
    let seconds = grounds.duration_ms.map(|ms| ms as f64 / 1000.0);
    let measured = json!({ "ended_by": by.as_str(), "after_s": seconds });
    let at_ms = grounds.duration_ms;
    let found = match (by == side, within_s, seconds) {
        (false, ..) => Found::of(false, measured, format!("the {} ended it", by.as_str())),
        (true, None, _) => Found::of(true, measured, ""),
        (true, Some(_), None) => Found::unknown(measured, "it is not known how long the conversation was"),
        (true, Some(within), Some(after)) => {
            Found::of(after <= within, measured, format!("it ended after {after} s, not within {within}"))
        }
    };
    found.at(at_ms)
}

fn check_digits(digits: &str, grounds: &Grounds<'_>) -> Found {
    let pressed: Vec<reading::PressedDigit> = grounds
        .moments
        .iter()
        .filter_map(|moment| reading::pressed_digit(moment))
        .filter(|digit| !digit.sent)
        .collect();
    let all: String = pressed.iter().map(|digit| digit.digit).collect();
    let wanted: String =
        digits.to_ascii_uppercase().chars().filter(|c| c.is_ascii_alphanumeric() || "*#".contains(*c)).collect();
    let at = all.find(&wanted).and_then(|at| pressed.get(at)).map(|digit| reading::whole_ms(digit.at));
    Found::of(at.is_some(), json!(all), format!("the digits '{wanted}' did not come in this order")).at(at)
}

fn check_count(name: &str, expected: &Expectation, grounds: &Grounds<'_>) -> Found {
    let found: Vec<&TimelineEntry> = grounds.moments.iter().filter(|moment| moment.name() == name).collect();
    let count = found.len() as f64;
    let is_bounded = expected.at_least.is_some() || expected.at_most.is_some();
    let passed = if is_bounded { is_within(count, expected) } else { count > 0.0 };
    let wanted = if is_bounded { bounds(expected) } else { "at least 1".to_owned() };
    let at = found.first().map(|moment| reading::whole_ms(moment.sample));
    Found::of(passed, json!(found.len()), format!("{name} came {count} times, not {wanted}")).at(at)
}

/// Verdict on a meaning: its status, the reason, and the model that judged.
type Meant = (Status, Option<String>, Option<JudgeNote>);

async fn judge_once(meaning: &str, grounds: &Grounds<'_>, model: Option<&dyn LanguageModel>) -> Meant {
    let Some(model) = model else { return (Status::Undecided, Some(NO_MODEL.to_owned()), None) };
    if !grounds.material.has_words() {
        return (Status::Undecided, Some("no words of the conversation are known".to_owned()), None);
    }
    let (decision, judge) = judge_meaning(meaning, grounds.material, model).await;
    let (status, reason) = match decision {
        Ok(decision) if decision.yes => (Status::Passed, None),
        Ok(decision) => (Status::Failed, Some(decision.reasoning.unwrap_or_else(|| "the judge says no".to_owned()))),
        Err(why) => (Status::Undecided, Some(why)),
    };
    (status, reason, Some(judge))
}

/// Returns the parts of this side that failed, by the events that warnings are made of; `untrusted`: why the timing is
/// not to be relied on.
pub fn own_faults(moments: &[TimelineEntry], is_voice_substituted: bool, untrusted: Option<&str>) -> Vec<OwnFault> {
    let mut faults = Vec::new();
    let mut turn = 0;
    let whole = |code| OwnFault { code, at_ms: None, turn: None };
    faults.extend(is_voice_substituted.then(|| whole(FaultCode::VoiceSubstituted)));
    faults.extend(rate_mismatch(moments).map(|_| whole(FaultCode::RateMismatch)));
    for moment in moments {
        if let Some(heard) = reading::turn(moment) {
            turn += 1;
            let code = match heard.missing {
                None | Some("no_recognizer") => continue,
                Some("recognizer_late") => FaultCode::RecognizerLate,
                Some("recognizer_busy") => FaultCode::RecognizerBusy,
                Some("not_understood" | "unclear") => FaultCode::SpeechUnclear,
                Some(_) => FaultCode::RecognizerFailed,
            };
            faults.push(OwnFault { code, at_ms: Some(reading::whole_ms(heard.from)), turn: Some(turn) });
            continue;
        }
        let code = match moment.name() {
            "fallback_speaker" | "answer_broke_off" => FaultCode::ModelFailed,
            name if name.starts_with("synthesizer_") => FaultCode::SynthesizerFailed,
            _ => continue,
        };
        if moment.side != Side::Agent {
            faults.push(OwnFault { code, at_ms: Some(reading::whole_ms(moment.sample)), turn: None });
        }
    }
    // Loss on the network is not a fault of this side.
    let code = untrusted.and_then(|why| match why {
        why if why.starts_with("concealed_ms") => None,
        why if why.contains("recording") => Some(FaultCode::Recording),
        _ => Some(FaultCode::Pacing),
    });
    faults.extend(code.map(whole));
    faults
}

#[cfg(test)]
mod tests;
