//! Expectations of a Digital Human on its conversation, and their verdicts; faults of this side that affect a verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;
use super::judge_card::JudgeNote;

words! {
    /// Comparison of expected words.
    WordsAs { Text = "text", Regex = "regex" } default Text
}

words! {
    /// Side that is expected to end a conversation; `user` is the Digital Human.
    EndsIt { Agent = "agent", User = "user" }
}

words! {
    /// Verdict on an expectation, or on a step of a playback.
    kept ExpectationStatus { Passed = "passed", Failed = "failed", Undecided = "unknown", NotReached = "not_reached" } default Undecided
}

words! {
    /// Part of this side that failed.
    kept FaultCode {
        RecognizerLate = "recognizer_late", RecognizerBusy = "recognizer_busy", RecognizerFailed = "recognizer_failed",
        SpeechUnclear = "speech_unclear", ModelFailed = "model_failed", SynthesizerFailed = "synthesizer_failed",
        VoiceSubstituted = "voice_substituted", Pacing = "pacing", Recording = "recording", RateMismatch = "rate_mismatch",
        ReportMissing = "report_missing",
    } default Pacing
}

words! {
    /// Side that speaks: USER is the Digital Human.
    Role { Agent = "AGENT", User = "USER" }
}

/// One expectation of a conversation. Exactly one of `metric`, `heard`, `not_heard`, `tool`, `ended_by`,
/// `dtmf_received`, `meaning` and `event` is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// Name of a built-in metric, or of a custom one, whose value has to be within `at_least` and `at_most`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub metric: Option<String>,
    /// Words that have to occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub heard: Option<String>,
    /// Words that may not occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub not_heard: Option<String>,
    /// Comparison of the words: as whole words of their normal form, or as a regular expression.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub form: Option<WordsAs>,
    /// Side whose words count; null: the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Role>,
    /// Name of a tool that has to be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tool: Option<String>,
    /// Members that the call's parameters must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Object>,
    /// Characters of values of `args` that a file has without quotes, by JSON Pointer (RFC 6901), like `/who/phone`. A
    /// text of the call is compared with these, a number with the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_as_written: Option<Object>,
    /// Number of such calls, exactly; null: at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub times: Option<i64>,
    /// Milliseconds from the end of the Digital Human's last words before it within which the call has to come; others
    /// do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub within_ms: Option<i64>,
    /// Side that has to end the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndsIt>,
    /// Seconds from connect within which that has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub within_s: Option<f64>,
    /// Digits that have to come from the agent, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub dtmf_received: Option<String>,
    /// Meaning that the conversation has to have, by the judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub meaning: Option<String>,
    /// Name of a timeline event that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub event: Option<String>,
    /// Largest value or count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Smallest value or count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
}

/// Members of an expectation of which exactly one is set.
pub const EXPECTED: [&str; 8] =
    ["metric", "heard", "not_heard", "tool", "ended_by", "dtmf_received", "meaning", "event"];

/// Members that each of these takes in addition.
const BESIDE: [(&str, &[&str]); 8] = [
    ("metric", &["at_most", "at_least"]),
    ("heard", &["as", "speaker"]),
    ("not_heard", &["as", "speaker"]),
    ("tool", &["args", "args_as_written", "times", "within_ms"]),
    ("ended_by", &["within_s"]),
    ("dtmf_received", &[]),
    ("meaning", &[]),
    ("event", &["at_most", "at_least"]),
];

impl Expectation {
    /// Returns what is wrong with the members together, for a person; `None` when nothing is.
    pub fn wrong(&self) -> Option<String> {
        let Value::Object(set) = serde_json::to_value(self).unwrap_or_default() else { return None };
        let kinds: Vec<&str> = EXPECTED.into_iter().filter(|kind| set.contains_key(*kind)).collect();
        let [kind] = kinds[..] else {
            return Some(format!("must have exactly one of {}", EXPECTED.join(", ")));
        };
        let beside = BESIDE.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, beside)| *beside);
        if let Some(other) = set.keys().find(|key| *key != kind && !beside.contains(&key.as_str())) {
            return Some(format!("must not have {other} beside {kind}"));
        }
        let is_bounded = self.at_most.is_some() || self.at_least.is_some();
        if self.metric.is_some() && !is_bounded {
            return Some("must have at_most or at_least beside metric".to_owned());
        }
        if matches!((self.at_least, self.at_most), (Some(least), Some(most)) if least > most) {
            return Some("must not have at_least above at_most".to_owned());
        }
        let words = self.heard.as_ref().or(self.not_heard.as_ref())?;
        let wrong = (self.form == Some(WordsAs::Regex)).then(|| regex_lite::Regex::new(words).err()).flatten();
        wrong.map(|error| format!("must be a regular expression: {error}"))
    }
}

/// Verdict on one expectation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectationResult {
    /// The expectation as it was given.
    pub expected: Expectation,
    /// Measured value, words, calls, side or count; null when nothing was found.
    pub measured: Value,
    /// Verdict on the expectation.
    pub status: ExpectationStatus,
    /// Reason for the verdict, in words; null when it passed.
    pub reason: Option<String>,
    /// Milliseconds from connect at which the verdict was decided; null when no single moment decided it.
    pub at_ms: Option<i64>,
    /// Language model that judged it; null: none did.
    #[serde(default)]
    pub judge: Option<JudgeNote>,
}

impl FaultCode {
    /// Returns a reason for a person why something is not told.
    pub fn reason(&self) -> String {
        match self {
            FaultCode::RateMismatch => "the sampling rate of the agent's audio is in doubt".to_owned(),
            FaultCode::ReportMissing => "the platform's report on the tool calls did not come".to_owned(),
            code => format!("this side failed: {}", code.as_str()),
        }
    }
}

/// A part of this side that failed in a conversation. Failures that follow from it are not charged to the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnFault {
    /// Part of this side that failed.
    pub code: FaultCode,
    /// Milliseconds from connect; null: the failure concerns the whole conversation.
    pub at_ms: Option<i64>,
    /// Number of the agent's turn that the failure concerns, from 1; null: none.
    pub turn: Option<i64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expectation_is_of_one_kind() {
        let kinds = "must have exactly one of metric, heard, not_heard, tool, ended_by, dtmf_received, meaning, event";
        for (given, expect) in [
            (json!({"metric": "p95_agent_latency", "at_most": 1.5}), None),
            (json!({"metric": "p95_agent_latency"}), Some("must have at_most or at_least beside metric")),
            (json!({"metric": "x", "at_most": 1, "at_least": 2}), Some("must not have at_least above at_most")),
            (json!({"heard": "yes", "as": "text", "speaker": "USER"}), None),
            (json!({"not_heard": "y(e)s", "as": "regex"}), None),
            (json!({"tool": "book", "args": {"day": "tuesday"}, "times": 0}), None),
            (json!({"tool": "book", "args": {}, "within_ms": 2000}), None),
            (json!({"heard": "a", "within_ms": 2000}), Some("must not have within_ms beside heard")),
            (json!({"ended_by": "agent", "within_s": 90}), None),
            (json!({"dtmf_received": "12#"}), None),
            (json!({"meaning": "It is polite."}), None),
            (json!({"event": "barge_in"}), None),
            (json!({}), Some(kinds)),
            (json!({"heard": "a", "meaning": "b"}), Some(kinds)),
            (json!({"meaning": "b", "at_most": 1}), Some("must not have at_most beside meaning")),
            (json!({"tool": "b", "speaker": "USER"}), Some("must not have speaker beside tool")),
        ] {
            let read: Expectation = serde_json::from_value(given.clone()).expect("fits");
            assert_eq!(read.wrong().as_deref(), expect, "{given}");
            if expect.is_none() {
                let members = |value: Value| value.as_object().map(Object::len);
                assert_eq!(members(json!(read)), members(given), "only what is set is kept");
            }
        }
        let broken: Expectation = serde_json::from_value(json!({"heard": "(", "as": "regex"})).expect("fits");
        assert!(broken.wrong().is_some_and(|why| why.starts_with("must be a regular expression: ")));
    }
}
