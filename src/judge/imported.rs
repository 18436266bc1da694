//! The measures of a call that this engine did not hold: from its recording, its transcript, or both.

use std::sync::Arc;

use ringer_human::text::word_count;
use ringer_media::frame::{PER_MS, Sample};
use ringer_media::measure::{self as media, Channel, Conversation, Metrics, Sound, Span, Text, Word, segments, sound};
use ringer_model::custom_metric::EvalSegment;
use ringer_model::digital_human::Role;
use ringer_model::result::MetricValue;
use ringer_model::transcript::PostedEntry;
use serde_json::json;

use super::measures::{Measured, evaluation, values};
use super::sound::values as sound_values;
use super::{PartMeasures, span_of};

/// Full scale of a recording whose codec is not known.
const FULL_SCALE: u16 = 32_768;

/// Recording and transcript of a call held elsewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Transcript with times; empty when there is none.
    pub entries: Vec<PostedEntry>,
    /// Samples at 16 kHz: nothing, one channel with both sides, or caller and agent.
    pub sides: Arc<Vec<Vec<i16>>>,
    /// Kind of interface, `PHONE` or `WEB`.
    pub interface: &'static str,
    /// Phrases that only fill time, in lower case.
    pub fillers: Vec<String>,
}

impl Imported {
    /// Returns the length of the call in milliseconds: of its recording, else up to the last words.
    pub fn duration_ms(&self) -> i64 {
        match self.sides.first() {
            Some(side) => side.len() as i64 / PER_MS,
            None => self.entries.iter().map(|entry| entry.end_offset_ms).max().unwrap_or(0).max(0),
        }
    }

    /// Measures the call. Who spoke when is heard where each side has a channel, else read from the transcript; a call
    /// that tells neither has a length and nothing more.
    pub fn measure(&self) -> Measured {
        let Some(conversation) = self.conversation() else { return self.length_alone() };
        let metrics = self.metrics(&conversation);
        let mut all = values(&metrics);
        all.extend(self.audio(&conversation, Span { from: 0, to: Sample::MAX }));
        Measured { evaluation: evaluation(&metrics), metrics: all, latency: metrics.latency, open: Vec::new() }
    }

    /// Measures parts of the call; nothing where it has a length alone.
    pub fn measure_parts(&self, parts: &[(EvalSegment, (i64, i64))]) -> Vec<PartMeasures> {
        let Some(conversation) = self.conversation() else { return Vec::new() };
        let measured = |&(segment, span_ms): &(EvalSegment, (i64, i64))| {
            let window = span_of(span_ms);
            let part = conversation.part(window);
            let mut measures = values(&self.metrics(&part));
            measures.extend(self.audio(&part, window));
            PartMeasures { segment, measures }
        };
        parts.iter().map(measured).collect()
    }

    fn conversation(&self) -> Option<Conversation> {
        let duration = self.duration_ms() * PER_MS;
        let (dh, agent) = match self.sides.as_slice() {
            [caller, agent] => (segments(caller), segments(agent)),
            _ if self.entries.is_empty() => return None,
            _ => (self.spans(Role::User), self.spans(Role::Agent)),
        };
        let of = |role| self.entries.iter().filter(move |entry| entry.speaker == role);
        let count = |words: &str| (!words.trim().is_empty()).then(|| word_count(words));
        let text = |entry: &PostedEntry| Text { span: span(entry), words: count(&entry.utterance) };
        // Nobody says when each word was: an entry is one, written together as a filler phrase is compared.
        let together = |entry: &PostedEntry| entry.utterance.split_whitespace().collect::<String>();
        let word = |entry: &PostedEntry| Word { span: span(entry), text: together(entry) };
        let has_words = |entry: &&PostedEntry| !entry.utterance.trim().is_empty();
        let flagged = of(Role::Agent).filter(has_words).filter(|entry| entry.filler_utterance == Some(true));
        Some(Conversation {
            duration,
            dh,
            agent,
            words: of(Role::Agent).filter(has_words).map(word).collect(),
            fillers: self.fillers.iter().cloned().chain(flagged.map(|entry| together(entry).to_lowercase())).collect(),
            texts: of(Role::Agent).map(text).collect(),
            dh_texts: of(Role::User).map(text).collect(),
            interface: self.interface,
            ..Conversation::default()
        })
    }

    fn metrics(&self, conversation: &Conversation) -> Metrics {
        let mut metrics = media::metrics(conversation);
        if self.entries.is_empty() {
            metrics.customer_words_per_turn_avg = None;
        }
        metrics
    }

    /// Returns the audio metrics of both sides in a stretch of the call. In one channel with both sides, the other
    /// side's speech is neither speech nor noise.
    fn audio(&self, conversation: &Conversation, window: Span) -> Vec<MetricValue> {
        let (dh, agent) = media::speech(conversation);
        let heard = |pcm: &[i16], speech: &[Span], apart: &[Span]| -> Option<Sound> {
            let at = |sample: Sample| sample.clamp(0, pcm.len() as Sample) as usize;
            let pcm = &pcm[at(window.from)..at(window.to)];
            sound(&Channel { pcm, speech, concealed: &[], apart, full_scale: FULL_SCALE, idle: 0 })
        };
        match self.sides.as_slice() {
            [both] => sound_values(heard(both, &agent, &dh), heard(both, &dh, &agent), None),
            [caller, callee] => sound_values(heard(callee, &agent, &[]), heard(caller, &dh, &[]), None),
            _ => Vec::new(),
        }
    }

    fn spans(&self, role: Role) -> Vec<Span> {
        let mut spans: Vec<Span> = self.entries.iter().filter(|entry| entry.speaker == role).map(span).collect();
        spans.retain(|span| span.length() > 0);
        spans.sort_unstable();
        spans
    }

    fn length_alone(&self) -> Measured {
        let value = |name: &str, value| MetricValue { name: name.into(), value, note: None };
        let metrics = vec![value("duration", json!(self.duration_ms())), value("interface", json!(self.interface))];
        Measured { metrics, ..Measured::default() }
    }
}

fn span(entry: &PostedEntry) -> Span {
    Span { from: entry.start_offset_ms.max(0) * PER_MS, to: entry.end_offset_ms.max(0) * PER_MS }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use serde_json::Value;

    use super::*;

    fn entry(from: i64, to: i64, speaker: Role, utterance: &str) -> PostedEntry {
        let utterance = utterance.to_owned();
        PostedEntry { start_offset_ms: from, end_offset_ms: to, speaker, utterance, filler_utterance: None }
    }

    fn dialogue() -> Vec<PostedEntry> {
        vec![
            entry(0, 2000, Role::Agent, "Welcome to the desk."),
            entry(2500, 4000, Role::User, "I need a visit on Tuesday."),
            entry(5200, 5600, Role::Agent, "One moment."),
            entry(6400, 9000, Role::Agent, "Tuesday at nine is free."),
            entry(9500, 10_000, Role::User, "Fine."),
            entry(10_800, 12_000, Role::Agent, "Booked."),
        ]
    }

    fn value(measured: &Measured, name: &str) -> Option<Value> {
        measured.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone())
    }

    #[test]
    fn a_transcript_alone_tells_turns() {
        let fillers = vec!["one moment".to_owned()];
        let call = Imported { entries: dialogue(), interface: "WEB", fillers, ..Imported::default() };
        let measured = call.measure();
        assert_eq!(measured.latency, [1.2, 0.8]);
        for (name, expect) in [
            ("avg_agent_latency", Some(json!(1.0))),
            ("avg_filler_ignored_latency", Some(json!(1.6))),
            ("avg_customer_latency", Some(json!(0.5))),
            ("time_to_first_agent_utterance", Some(json!(0.0))),
            ("avg_punctuation_latency", Some(json!(0.8))),
            ("num_turns", Some(json!(3))),
            ("duration", Some(json!(12_000))),
            ("interface", Some(json!("WEB"))),
            ("agent_speak_percentage", Some(json!(51.667))),
            ("agent_snr", None),
        ] {
            assert_eq!(value(&measured, name), expect, "{name}");
        }
        assert_eq!(measured.evaluation.num_turns, Some(3));
    }

    /// Returns a hum of a side where its entries are, with hiss at -60 dBFS beside it; 15 s.
    fn channel(speakers: &[(Role, f64)], entries: &[PostedEntry]) -> Vec<i16> {
        let hiss = |n: i64| ((n as u32).wrapping_mul(2_654_435_761) >> 16) as f64 / 32_768.0 - 1.0;
        let voice = |n: i64| {
            let speaks = |role| entries.iter().any(|entry| entry.speaker == role && span(entry).holds(n));
            let of = speakers.iter().filter(|(role, _)| speaks(*role));
            let tone =
                |hz: f64| (TAU * hz * n as f64 / 16_000.0).sin() * (1.0 + (TAU * 4.0 * n as f64 / 16_000.0).cos());
            of.map(|(_, peak)| peak * (tone(180.0) + 0.6 * tone(540.0) + 0.4 * tone(1260.0))).sum::<f64>()
        };
        (0..15 * 16_000).map(|n| (voice(n) + 57.0 * hiss(n)) as i16).collect()
    }

    #[test]
    fn one_channel_is_shared_by_the_times_of_the_transcript() {
        let entries = dialogue();
        let both = channel(&[(Role::Agent, 2000.0), (Role::User, 8000.0)], &entries);
        let measured = Imported { entries, sides: Arc::new(vec![both]), interface: "PHONE", fillers: vec![] }.measure();
        assert_eq!(measured.latency, [1.2, 0.8]);
        assert_eq!(value(&measured, "duration"), Some(json!(15_000)));
        let snr = value(&measured, "agent_snr").and_then(|value| value.as_f64()).expect("a ratio");
        // 36.2 dB by its formula. The caller, 12 dB louder, counts neither as the agent's speech nor as its noise.
        assert!((34.0..38.5).contains(&snr), "{snr}");
        assert!(value(&measured, "user_audio_clarity").is_some());
    }

    #[test]
    fn words_are_counted_where_there_is_a_transcript() {
        let entries = dialogue();
        let sides = [(Role::User, 8000.0), (Role::Agent, 2000.0)].map(|side| channel(&[side], &entries));
        for (entries, agent, customer) in [(entries, true, true), (Vec::new(), false, false)] {
            let sides = Arc::new(sides.to_vec());
            let measured = Imported { entries, sides, interface: "PHONE", fillers: vec![] }.measure();
            let has = |name: &str| value(&measured, name).is_some();
            assert!(has("num_turns"));
            assert_eq!((has("agent_words_per_turn_avg"), has("customer_words_per_turn_avg")), (agent, customer));
        }
    }

    #[test]
    fn a_part_has_measures_of_its_own() {
        let entries = dialogue();
        let both = channel(&[(Role::Agent, 2000.0), (Role::User, 8000.0)], &entries);
        let call = Imported { entries, sides: Arc::new(vec![both]), interface: "PHONE", fillers: vec![] };
        let parts = [(EvalSegment::Opening, (i64::MIN, 9000)), (EvalSegment::Closing, (5200, i64::MAX))];
        let value = |part: &PartMeasures, name: &str| {
            part.measures.iter().find(|metric| metric.name == name).and_then(|metric| metric.value.as_f64())
        };
        let measured = call.measure_parts(&parts);
        let of = |name: &str| [0, 1].map(|at| value(&measured[at], name));
        assert_eq!((of("num_turns"), of("duration")), ([Some(2.0), Some(2.0)], [Some(9000.0), Some(9800.0)]));
        assert_eq!(of("agent_words_per_turn_avg"), [Some(5.5), Some(4.0)]);
        assert!(of("agent_snr").iter().flatten().all(|snr| (34.0..38.5).contains(snr)), "{:?}", of("agent_snr"));
        let whole = call.measure_parts(&[(EvalSegment::All, (i64::MIN, i64::MAX))]);
        assert_eq!(whole[0].measures, call.measure().metrics);
    }

    #[test]
    fn a_recording_that_nobody_is_told_apart_in_has_a_length() {
        let sides = Arc::new(vec![vec![0; 48_000]]);
        let call = Imported { sides, interface: "PHONE", ..Imported::default() };
        let measured = call.measure();
        let names: Vec<&str> = measured.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["duration", "interface"]);
        assert_eq!((call.duration_ms(), measured.evaluation.agent_speak_percentage), (3000, None));
    }

    #[test]
    fn a_turn_without_words_is_a_turn_and_no_words() {
        let words = |entries: Vec<PostedEntry>| {
            let measured = Imported { entries, interface: "PHONE", ..Imported::default() }.measure();
            ["num_turns", "agent_words_per_turn_avg", "agent_wpm"].map(|name| value(&measured, name))
        };
        let ten = "one two three four five six seven eight nine ten";
        let call = |last: &str| {
            vec![
                entry(0, 6000, Role::Agent, ten),
                entry(7000, 8000, Role::User, "Yes."),
                entry(9000, 15_000, Role::Agent, last),
            ]
        };
        assert_eq!(words(call(ten)), [Some(json!(2)), Some(json!(10.0)), Some(json!(100.0))]);
        assert_eq!(words(call(" ")), [Some(json!(2)), Some(json!(10.0)), Some(json!(100.0))]);
        assert_eq!(words(vec![entry(0, 900, Role::Agent, "")]), [Some(json!(1)), None, None]);
    }
}
