//! The built-in metrics by name, with unit and definition. The check of names in expectations and the listing for
//! people use it.

/// A built-in metric of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Name in `metrics` of a result.
    pub name: &'static str,
    /// Unit of the value; [`TEXT`] and [`OBJECT`] are no numbers.
    pub unit: &'static str,
    /// Definition for a person.
    pub text: &'static str,
}

/// Unit of a metric whose value is a text.
pub const TEXT: &str = "text";
/// Unit of a metric whose value is an object.
pub const OBJECT: &str = "object";
/// Unit of a metric that is true or false, in bounds 1 or 0.
const TRUTH: &str = "0 or 1";

impl BuiltIn {
    /// True if an expectation can give it bounds.
    pub fn is_number(&self) -> bool {
        self.unit != TEXT && self.unit != OBJECT
    }
}

const fn metric(name: &'static str, unit: &'static str, text: &'static str) -> BuiltIn {
    BuiltIn { name, unit, text }
}

/// Every metric that the engine measures or judges.
pub const BUILT_IN: &[BuiltIn] = &[
    metric("avg_agent_latency", "s", "mean time from the end of a turn of the Digital Human to the agent's onset"),
    metric("max_agent_latency", "s", "greatest agent latency"),
    metric("p50_agent_latency", "s", "50th percentile of the agent latency"),
    metric("p90_agent_latency", "s", "90th percentile of the agent latency"),
    metric("p95_agent_latency", "s", "95th percentile of the agent latency"),
    metric("p99_agent_latency", "s", "99th percentile of the agent latency"),
    metric("avg_filler_ignored_latency", "s", "mean agent latency to its first word that is no filler"),
    metric("p50_filler_ignored_latency", "s", "50th percentile of the latency without fillers"),
    metric("p90_filler_ignored_latency", "s", "90th percentile of the latency without fillers"),
    metric("p95_filler_ignored_latency", "s", "95th percentile of the latency without fillers"),
    metric("p99_filler_ignored_latency", "s", "99th percentile of the latency without fillers"),
    metric("avg_customer_latency", "s", "mean time from the end of an agent turn to the onset of the Digital Human"),
    metric("p50_customer_latency", "s", "50th percentile of the latency of the Digital Human"),
    metric("p90_customer_latency", "s", "90th percentile of the latency of the Digital Human"),
    metric("avg_punctuation_latency", "s", "mean pause between two sentences inside an agent turn"),
    metric("p50_punctuation_latency", "s", "50th percentile of the pauses between sentences"),
    metric("p90_punctuation_latency", "s", "90th percentile of the pauses between sentences"),
    metric("time_to_first_agent_utterance", "s", "time from the moment the agent could speak to its first turn"),
    metric("setup_ms", "ms", "time from dialling to the moment the agent could speak"),
    metric(
        "agent_interruption_count",
        "count",
        "onsets of the agent during a turn of the Digital Human, overlap from 200 ms",
    ),
    metric(
        "customer_interruption_count",
        "count",
        "onsets of the Digital Human during an agent turn, overlap from 200 ms",
    ),
    metric(
        "dh_yield_latency_ms",
        "ms",
        "mean time from an interruption by the agent to the silence of the Digital Human",
    ),
    metric("response_rate", "0 to 1", "turns of the Digital Human answered within 10 s, of those that could be"),
    metric("yield_rate", "0 to 1", "interruptions of the Digital Human after which the agent falls silent in time"),
    metric("yield_latency", "s", "mean time from the onset of such an interruption to the agent's silence"),
    metric("agent_interrupts_rate", "0 to 1", "turns of the Digital Human of 1 s or more that the agent interrupted"),
    metric(
        "backchannel_selectivity",
        "0 to 1",
        "backchannels at which the agent went on speaking, of those that count",
    ),
    metric("vocal_tic_selectivity", "0 to 1", "vocal tics, like coughs, at which the agent went on speaking"),
    metric("non_directed_selectivity", "0 to 1", "words to somebody else at which the agent went on speaking"),
    metric("longest_agent_pause", "s", "longest silence inside one turn of the agent"),
    metric("keys_talked_over", "count", "times that the agent spoke on for over 1 s over keys pressed into its speech"),
    metric("echoed_turns", "count", "agent turns that say six or more of the Digital Human's last words back"),
    metric("doubled_turns", "count", "agent turns that say the same five or more words twice"),
    metric("repeated_turns", "count", "agent turns that say what an earlier turn of the agent said"),
    metric("foreign_turns", "count", "agent turns of six or more words in another language than the Digital Human's"),
    metric("agent_speak_percentage", "%", "share of the time in which the agent speaks"),
    metric("customer_speak_percentage", "%", "share of the time in which the Digital Human speaks"),
    metric("overlap_percentage", "%", "share of the time in which both speak"),
    metric("silence_percentage", "%", "share of the time in which neither speaks"),
    metric("talk_ratio", "0 to 1", "agent speech of all speech"),
    metric("num_turns", "count", "turns of the agent"),
    metric("agent_turn_duration_avg", "ms", "mean length of an agent turn"),
    metric("agent_words_per_turn_avg", "words", "mean number of words in an agent turn"),
    metric("customer_words_per_turn_avg", "words", "mean number of words in a turn of the Digital Human"),
    metric("agent_wpm", "words/min", "words in a minute of agent speech, without pauses over 300 ms"),
    metric("duration", "ms", "time from connect to the end"),
    metric("interface", TEXT, "PHONE or WEB"),
    metric("agent_perceived_loudness", "LUFS", "integrated loudness of the agent, ITU-R BS.1770-4"),
    metric("agent_audio_clipping", "%", "samples of the agent in runs of 3 or more at full scale"),
    metric("agent_snr", "dB", "speech of the agent over its noise"),
    metric(
        "agent_audio_dropouts",
        "count",
        "gaps of 40 to 1000 ms inside speech of the agent, and long concealed stretches",
    ),
    metric("agent_dropout_ms", "ms", "sum of the dropouts"),
    metric("agent_pitch_variability", "semitones", "standard deviation of the agent's pitch over voiced frames"),
    metric("agent_audio_clarity", "0 to 100", "clarity of the agent's sound, from its noise, clipping and dropouts"),
    metric("user_audio_clarity", "0 to 100", "clarity of the sound of the Digital Human"),
    metric("audio_fidelity", OBJECT, "parts of the quality of the agent's sound"),
    metric("goal_success", TRUTH, "the judge's answer whether the success criteria were met"),
    metric("success", TRUTH, "the same as goal_success"),
    metric("hallucination", TRUTH, "the judge found statements of the agent without a ground"),
    metric("redundancy", TRUTH, "the judge found needless repetitions of the agent"),
    metric("pronunciation_score", "0 to 100", "pronunciation of the agent, by the judge"),
    metric("sentiment_label", TEXT, "positive, neutral or negative"),
    metric("sentiment_score", "-1 to 1", "sentiment of the Digital Human, by the judge"),
    metric("sentiment_scores", OBJECT, "shares of positive, neutral and negative sentiment"),
    metric("call_summary", TEXT, "summary of the conversation"),
    metric(
        "predicted_wer",
        "0 and up",
        "word errors of the recognizer against the agent's posted transcript, of its words",
    ),
    metric(
        super::reported::NAME,
        "0 and up",
        "word errors of the recognizer against what the agent's side says it said",
    ),
    metric("expected_tool_calls_met", TRUTH, "every expected tool call was made with its parameters"),
];

/// Returns the built-in metric of a name; `None` when there is none.
pub fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ringer_media::measure::Metrics;
    use serde_json::Value;

    use super::super::expectations::names_used;
    use super::super::{measures, reported, sound};
    use super::*;

    #[test]
    fn every_metric_that_the_engine_produces_is_in_the_table_once() {
        let Ok(Value::Object(measures)) = serde_json::to_value(Metrics::default()) else { panic!("an object") };
        let mut all: BTreeSet<String> = measures.keys().cloned().collect();
        all.extend(
            sound::NAMES.into_iter().chain(names_used()).chain([reported::NAME, measures::SETUP]).map(str::to_owned),
        );
        let known: BTreeSet<String> = BUILT_IN.iter().map(|metric| metric.name.to_owned()).collect();
        assert_eq!(all, known);
        assert_eq!(known.len(), BUILT_IN.len(), "each is there once");
        assert!(BUILT_IN.iter().all(|metric| !metric.unit.is_empty() && !metric.text.is_empty()));
    }

    #[test]
    fn texts_and_objects_have_no_bounds() {
        let no_numbers: Vec<&str> =
            BUILT_IN.iter().filter(|metric| !metric.is_number()).map(|metric| metric.name).collect();
        assert_eq!(no_numbers, ["interface", "audio_fidelity", "sentiment_label", "sentiment_scores", "call_summary"]);
        assert_eq!(built_in("p95_agent_latncy"), None);
    }
}
