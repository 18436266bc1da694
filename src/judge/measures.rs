//! Measures of a conversation: its metrics, and the parts of the evaluation that need no judgement of words.

use ringer_human::text::{is_unspaced, word_count};
use ringer_media::call::{EventKind, Kind, Side, TimelineEntry, Word as Heard};
use ringer_media::frame::PER_MS;
use ringer_media::measure::{
    self as media, Conversation, Echo, Metrics, ProbeTimes, Span, Text, WholeTurn, Word, YieldTimes,
};
use ringer_model::Object;
use ringer_model::evaluation::{Evaluation, EvaluationStatus};
use ringer_model::result::MetricValue;
use serde_json::{Value, json};

use super::reading::{self, AgentTurn, PressedDigit, Said, speech_end, speech_start, whole_ms};
use super::unheard::recorded;
use super::yielding::{OpenMetric, YIELD_LATENCY, YIELD_RATE, open_metrics, tells_cut};
use super::{messages, probes, repeats, reported};

/// Time from the last tone of an extension to the conversation, in milliseconds.
const AFTER_EXTENSION_MS: i64 = 300;
/// Metric of the time from dialling until the agent could speak.
pub(crate) const SETUP: &str = "setup_ms";
/// Length of a digit that does not tell.
const DIGIT_MS: i64 = 100;
/// Letters of a text in which a word is looked for that is not the next.
const WRITTEN_NEAR: usize = 40;
/// The metric whose probes pass by the agent's silence alone: whether it came back to their words is not judged here.
pub(super) const UNJUDGED: &str = "non_directed_selectivity";
/// Metrics that are whole numbers.
const COUNTS: [&str; 5] =
    ["duration", "num_turns", "agent_interruption_count", "customer_interruption_count", "keys_talked_over"];

/// Facts about a call that its timeline does not contain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Digits of the extension: the first that were sent. The conversation begins after them.
    pub extension_digits: usize,
    /// Kind of interface, `PHONE` or `WEB`.
    pub interface: &'static str,
    /// Phrases that only fill time, in lower case.
    pub fillers: Vec<String>,
    /// Language that the Digital Human speaks, as a code; `None` when it is not known.
    pub language: Option<String>,
    /// Times by which probes count, and by which the agent counts as stopped.
    pub probe_times: ProbeTimes,
    /// Times by which an agent counts as yielding.
    pub yield_times: YieldTimes,
    /// Turns of the agent that other calls of the run heard whole.
    pub elsewhere: Vec<WholeTurn>,
}

/// Measures of one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Measured parts filled in, judged parts null.
    pub evaluation: Evaluation,
    /// Every metric that has a value.
    pub metrics: Vec<MetricValue>,
    /// Agent latency of each turn that has one, seconds.
    pub latency: Vec<f64>,
    /// Metrics of which something is not known.
    pub open: Vec<OpenMetric>,
}

/// Measures one conversation by its timeline.
pub fn measure(moments: &[TimelineEntry], facts: &Facts) -> Measured {
    let metrics = match messages::are_written(moments) {
        true => messages::metrics(moments, &facts.fillers),
        false => media::metrics(&conversation(moments, facts)),
    };
    let setup = reading::setup_ms(moments).map(|ms| MetricValue { name: SETUP.into(), value: json!(ms), note: None });
    let reported = reported::word_error_rate(moments);
    let (counts, uncounted) = repeats::counts(moments, facts.language.as_deref());
    let all = values(&metrics).into_iter().chain(setup).chain(reported).chain(counts).collect();
    let (evaluation, open) = (evaluation(&metrics), open_metrics(&metrics).into_iter().chain(uncounted).collect());
    Measured { evaluation, latency: metrics.latency, metrics: all, open }
}

/// Measures what of a conversation lies in `window`.
pub(super) fn measure_part(moments: &[TimelineEntry], facts: &Facts, window: Span) -> Vec<MetricValue> {
    values(&match messages::are_written(moments) {
        true => messages::metrics(&messages::part(moments, window), &facts.fillers),
        false => media::metrics(&conversation(moments, facts).part(window)),
    })
}

/// Returns the conversation in spans of speech.
pub(super) fn conversation(moments: &[TimelineEntry], facts: &Facts) -> Conversation {
    let duration = reading::end(moments).map_or(0, |moment| moment.sample.max(0));
    let pressed = moments.iter().filter_map(|moment| reading::pressed_digit(moment));
    let digits: Vec<Span> = pressed.filter(|digit| digit.sent).map(digit).collect();
    let extension = facts.extension_digits.min(digits.len());
    let dialled = after_extension(&digits[..extension]);
    let start = dialled.unwrap_or(0);
    // Speech before the conversation, of a machine that asks for the extension, is not counted.
    let turns = || reading::turns(moments).filter(|turn| turn.end > start);
    let own_starts = moments.iter().filter_map(|moment| speech_start(moment));
    Conversation {
        duration,
        start,
        greeting_from: dialled.unwrap_or_else(|| reading::ready(moments)),
        dh: speech(moments, Side::Dh, duration),
        stopped: reading::utterances(moments).filter(|end| end.interrupted).map(|end| end.at).collect(),
        agent: speech(moments, Side::Agent, duration),
        digits: digits[extension..].to_vec(),
        reprompts: own_starts.filter(|start| start.kind == Kind::Reprompt).map(|start| start.at).collect(),
        probes: probes::probes(moments, duration),
        probe_times: facts.probe_times,
        yield_times: facts.yield_times,
        cleared: moments.iter().filter(|moment| tells_cut(moment)).map(|moment| moment.sample).collect(),
        found_over: turns().map(|turn| turn.reported_at).collect(),
        elsewhere: facts.elsewhere.clone(),
        echo: moments.iter().find_map(echo),
        words: turns().flat_map(|turn| words(&turn)).collect(),
        fillers: facts.fillers.clone(),
        texts: turns().map(|turn| text(&turn)).collect(),
        dh_texts: reading::utterances(moments).map(|end| own_text(&end, moments)).collect(),
        interface: facts.interface,
    }
}

/// Returns the position at which a conversation begins that an extension was dialled for; `None` without one.
fn after_extension(digits: &[Span]) -> Option<i64> {
    digits.last().map(|last| last.to + AFTER_EXTENSION_MS * PER_MS)
}

/// Returns the position from which the time of the agent's greeting counts: 300 ms after the extension of so many
/// digits, else the one from which it could speak.
pub(super) fn greeting_from(moments: &[TimelineEntry], extension_digits: usize) -> i64 {
    let sent = moments.iter().filter_map(|moment| reading::pressed_digit(moment)).filter(|digit| digit.sent);
    let digits: Vec<Span> = sent.take(extension_digits).map(digit).collect();
    after_extension(&digits).unwrap_or_else(|| reading::ready(moments))
}

fn echo(moment: &TimelineEntry) -> Option<Echo> {
    let EventKind::Echo(figures) = moment.reading() else { return None };
    Some(Echo { delay: (figures.delay_ms * PER_MS as f64).round() as i64, known: moment.sample })
}

/// Returns the words of a turn. They are unknown in a turn without text, and where a part was not heard.
fn text(turn: &AgentTurn<'_>) -> Text {
    let known = !turn.text.is_empty() && !turn.lacks_words();
    Text { span: Span { from: turn.from, to: turn.end }, words: known.then(|| word_count(turn.text)) }
}

/// Returns the words of an utterance that has ended.
fn own_text(end: &Said<'_>, moments: &[TimelineEntry]) -> Text {
    let from = end.beginning(moments).map_or(end.at, |start| start.at);
    let words = recorded(end, moments).is_none().then(|| word_count(end.text));
    Text { span: Span { from, to: end.at }, words }
}

fn digit(pressed: PressedDigit) -> Span {
    let ms = if pressed.duration_ms == 0 { DIGIT_MS } else { pressed.duration_ms };
    Span { from: pressed.at, to: pressed.at + ms * PER_MS }
}

/// Returns the stretches of speech of one side, without probes, and without the pauses inside them that were told; the
/// last may run into the end of the call.
fn speech(moments: &[TimelineEntry], side: Side, duration: i64) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut open = None;
    for moment in moments.iter().filter(|moment| moment.side == side) {
        let is_sound = speech_start(moment).or(speech_end(moment)).is_some_and(|said| said.is_sound());
        match moment.reading() {
            _ if is_sound => {}
            EventKind::SpeechStarted { .. } | EventKind::AgentSpeechStarted { .. } => open = Some(moment.sample),
            EventKind::SpeechEnded { .. } | EventKind::AgentSpeechEnded { .. } => {
                let said = open.take().map(|from| Span { from, to: moment.sample });
                let pauses = speech_end(moment).map_or(&[][..], |end| end.pauses);
                spans.extend(said.into_iter().flat_map(|said| between_pauses(said, pauses)));
            }
            _ => {}
        }
    }
    spans.extend(open.map(|from| Span { from, to: duration }));
    spans.retain(|span| span.length() > 0);
    spans
}

/// Returns the spans of an utterance between its pauses.
fn between_pauses(said: Span, pauses: &[[i64; 2]]) -> Vec<Span> {
    let (mut parts, mut rest) = (Vec::new(), said);
    for [start, end] in pauses {
        parts.push(Span { from: rest.from, to: *start });
        rest.from = *end;
    }
    parts.push(rest);
    parts
}

/// Returns the words of a turn with their times, and with the punctuation of its text: some recognizers leave it out of
/// the words.
fn words(turn: &AgentTurn<'_>) -> Vec<Word> {
    let text: Vec<char> = turn.text.chars().collect();
    let letters: Vec<usize> = (0..text.len()).filter(|at| text[*at].is_alphanumeric()).collect();
    let begins = |at: usize| at == 0 || is_unspaced(text[at]) || !text[at - 1].is_alphanumeric();
    let same = |one: char, other: char| one.to_lowercase().eq(other.to_lowercase());
    let mut next = 0;
    let mut written = |word: &str| {
        let said: Vec<char> = word.chars().filter(|c| c.is_alphanumeric()).collect();
        let reads = |from: &usize| {
            let found = letters.get(*from..from + said.len()).filter(|found| !found.is_empty() && begins(found[0]));
            found.is_some_and(|found| found.iter().zip(&said).all(|(at, c)| same(text[*at], *c)))
        };
        let from = (next..next + WRITTEN_NEAR).find(reads)?;
        next = from + said.len();
        let end = letters[next - 1] + 1;
        let punctuation = text[end..].iter().take_while(|c| !c.is_alphanumeric() && !c.is_whitespace());
        Some(text[letters[from]..end + punctuation.count()].iter().collect())
    };
    let word = |word: &Heard| {
        let span = Span { from: whole_ms(word.from) * PER_MS, to: whole_ms(word.to) * PER_MS };
        Word { span, text: written(&word.text).unwrap_or_else(|| word.text.clone()) }
    };
    turn.words.iter().map(word).collect()
}

/// Returns the metrics by name, in the order in which they are declared.
pub(super) fn values(metrics: &Metrics) -> Vec<MetricValue> {
    let Ok(Value::Object(all)) = serde_json::to_value(metrics) else { return Vec::new() };
    let whole = |name: &str, value: Value| match value.as_f64() {
        Some(count) if COUNTS.contains(&name) => json!(count.round() as i64),
        _ => value,
    };
    let given = all.into_iter().filter(|(_, value)| !value.is_null());
    let note = |name: &str| match name {
        UNJUDGED => Some("no_language_model".to_owned()),
        YIELD_RATE | YIELD_LATENCY if !open_metrics(metrics).is_empty() => Some("unknown_stops".to_owned()),
        _ if metrics.no_punctuation && name.ends_with("_selectivity") => Some("no_punctuation".to_owned()),
        _ => None,
    };
    given.map(|(name, value)| MetricValue { value: whole(&name, value), note: note(&name), name }).collect()
}

pub(super) fn evaluation(metrics: &Metrics) -> Evaluation {
    let latency = [
        ("avg_agent_latency", metrics.avg_agent_latency),
        ("max_agent_latency", metrics.max_agent_latency),
        ("p50_agent_latency", metrics.p50_agent_latency),
        ("p90_agent_latency", metrics.p90_agent_latency),
        ("p95_agent_latency", metrics.p95_agent_latency),
        ("p99_agent_latency", metrics.p99_agent_latency),
    ];
    let filler_ignored = [
        ("avg_filler_ignored_latency", metrics.avg_filler_ignored_latency),
        ("p50_filler_ignored_latency", metrics.p50_filler_ignored_latency),
        ("p90_filler_ignored_latency", metrics.p90_filler_ignored_latency),
        ("p95_filler_ignored_latency", metrics.p95_filler_ignored_latency),
        ("p99_filler_ignored_latency", metrics.p99_filler_ignored_latency),
    ];
    Evaluation {
        agent_speak_percentage: metrics.agent_speak_percentage,
        avg_agent_latency: metrics.avg_agent_latency,
        latency: object(&latency),
        filler_ignored_latency: object(&filler_ignored),
        num_turns: metrics.num_turns.map(|turns| turns as i64),
        status: EvaluationStatus::NotEvaluated,
        ..Evaluation::default()
    }
}

/// Returns the values by name; `None` when there is none.
fn object(values: &[(&str, Option<f64>)]) -> Option<Object> {
    let has_values = values.iter().any(|(_, value)| value.is_some());
    has_values.then(|| values.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect())
}

#[cfg(test)]
mod tests {
    use ringer_media::call::{CallSpec, EndReason, Event, Matching, Response, ScriptRule, TurnRules};
    use ringer_media::codec::Codec;
    use ringer_media::leg::MediaParams;
    use ringer_media::netem::NetemSpec;
    use ringer_media::seed::Seed;
    use ringer_media::testing::{Delays, Mind, Rig, RigSpec, Spoken, Voice};
    use ringer_provider::canned::SPEECH;

    use super::*;
    use crate::moments;

    fn at(ms: i64, event: &str, side: &str, data: Value) -> Value {
        json!({"seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data})
    }

    fn facts(extension_digits: usize) -> Facts {
        Facts { extension_digits, interface: "PHONE", fillers: vec!["um".into()], ..Facts::default() }
    }

    #[test]
    fn a_dialogue_is_measured() {
        let said = |text: &str| json!({"utterance_id": 1, "text": text});
        let word = json!([{"word": "um", "start_offset_ms": 4000, "end_offset_ms": 4200},
                          {"word": "yes", "start_offset_ms": 4500, "end_offset_ms": 5000}]);
        let turn = json!({"text": "um yes", "from_sample": 64_000, "end_sample": 80_000, "words": word});
        let timeline = json!([
            at(-300, "call.dialing", "engine", json!({})),
            at(500, "dtmf_sent", "dh", json!({"digits": "7", "duration_ms": 100})),
            at(700, "speech.started", "agent", json!({})),
            at(800, "speech.ended", "agent", json!({})),
            at(2000, "speech.started", "dh", said("two words")),
            at(3000, "speech.ended", "dh", said("two words")),
            at(4000, "speech.started", "agent", json!({})),
            at(5000, "speech.ended", "agent", json!({})),
            at(5001, "turn.ended", "agent", turn),
            at(10_000, "call.ended", "engine", json!({})),
        ]);
        let measured = measure(&moments(&timeline), &facts(1));
        assert_eq!(measured.latency, [1.0]);
        let value =
            |name: &str| measured.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone());
        for (name, expect) in [
            ("avg_agent_latency", json!(1.0)),
            ("avg_filler_ignored_latency", json!(1.5)),
            ("time_to_first_agent_utterance", json!(3.1)),
            ("num_turns", json!(1)),
            ("duration", json!(10_000)),
            ("interface", json!("PHONE")),
            ("customer_words_per_turn_avg", json!(2.0)),
            ("agent_speak_percentage", json!(10.0)),
            ("response_rate", json!(1.0)),
        ] {
            assert_eq!(value(name), Some(expect), "{name}");
        }
        assert_eq!(value("agent_wpm"), None, "too few words");
        let evaluation = measured.evaluation;
        assert_eq!((evaluation.num_turns, evaluation.avg_agent_latency), (Some(1), Some(1.0)));
        assert_eq!(evaluation.latency.and_then(|all| all["p99_agent_latency"].as_f64()), Some(1.0));
        assert_eq!((evaluation.goal_success, evaluation.status), (None, EvaluationStatus::NotEvaluated));
    }

    #[test]
    fn the_greeting_counts_from_the_moment_the_agent_could_speak() {
        let ready = |ms: i64| at(ms, "call.ready", "engine", json!({}));
        let digit = |ms: i64| at(ms, "dtmf_sent", "dh", json!({"digits": "1", "method": "inband", "duration_ms": 100}));
        for (before, extension, greets_at, first, setup) in [
            (vec![at(-2500, "call.dialing", "engine", json!({})), ready(-1800)], 0, -10, 1.79, Some(700)),
            (vec![at(-2500, "call.dialing", "engine", json!({})), ready(-2000)], 0, 500, 2.5, Some(500)),
            // The answer of SIP, and a call that came in.
            (vec![at(-2500, "call.dialing", "engine", json!({}))], 0, 500, 0.5, Some(2500)),
            (vec![], 0, 500, 0.5, None),
            (vec![ready(-2000), digit(100)], 1, 1100, 0.6, None),
        ] {
            let mut timeline = before;
            timeline.extend([
                at(0, "call.connected", "engine", json!({})),
                at(greets_at, "speech.started", "agent", json!({})),
                at(greets_at + 2000, "speech.ended", "agent", json!({})),
                at(10_000, "call.ended", "engine", json!({})),
            ]);
            timeline.sort_by_key(|line| line["sample"].as_i64());
            let measured = measure(&moments(&json!(timeline)), &facts(extension)).metrics;
            let value =
                |name: &str| measured.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone());
            assert_eq!(value("time_to_first_agent_utterance"), Some(json!(first)), "{timeline:?}");
            assert_eq!(value("setup_ms"), setup.map(|ms| json!(ms)), "{timeline:?}");
        }
    }

    /// Returns the milliseconds of a span in seconds.
    fn ms(span: &Value) -> [i64; 2] {
        [0, 1].map(|end| (1000.0 * span[end].as_f64().expect("seconds")).round() as i64)
    }

    /// Returns a timeline of what a case of `fixtures/audio/words.json` lays out.
    fn timeline(case: &Value) -> Value {
        let mut lines = Vec::new();
        let all = |name: &str| case[name].as_array().cloned().unwrap_or_default();
        for side in ["dh", "agent"] {
            for (n, span) in all(side).iter().enumerate() {
                let [from, to] = ms(span);
                let said = json!({"utterance_id": n, "text": span[2].as_str().unwrap_or_default(), "kind": span[3]});
                lines.extend([at(from, "speech.started", side, said.clone()), at(to, "speech.ended", side, said)]);
            }
        }
        for span in all("digits") {
            let [from, to] = ms(&span);
            let digit = json!({"digits": "1", "method": "inband", "duration_ms": to - from});
            lines.push(at(from, "dtmf_sent", "dh", digit));
        }
        for turn in all("turns") {
            let word = |word: &Value| {
                let [from, to] = ms(word);
                json!({"word": word[2], "start_offset_ms": from, "end_offset_ms": to, "confidence": null})
            };
            let words: Vec<Value> = turn["words"].as_array().into_iter().flatten().map(word).collect();
            let [from, to] = ms(&turn["span"]);
            let data = json!({"text": turn["text"], "from_sample": from * 16, "end_sample": to * 16, "words": words});
            lines.push(at(to + 1, "turn.ended", "agent", data));
        }
        let [_, end] = ms(&json!([0, case["seconds"]]));
        lines.push(at(end, "call.ended", "engine", json!({})));
        Value::from(lines)
    }

    #[test]
    fn words_measure_what_was_worked_out_by_hand() {
        let fixture: Value = serde_json::from_str(include_str!("../../fixtures/audio/words.json")).expect("JSON");
        for case in fixture["conversations"].as_array().expect("conversations") {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let phrases: Vec<String> = case["filler_phrases"].as_array().into_iter().flatten().map(text).collect();
            let facts = Facts {
                extension_digits: case["extension_digits"].as_u64().unwrap_or(0) as usize,
                interface: "PHONE",
                fillers: crate::fillers(case["language"].as_str().unwrap_or("en"), &phrases),
                ..Facts::default()
            };
            let found = measure(&moments(&timeline(case)), &facts).metrics;
            for (name, expect) in case["expect"].as_object().expect("metrics") {
                let value = found.iter().find(|metric| metric.name == *name).and_then(|metric| metric.value.as_f64());
                assert_eq!(value, expect.as_f64(), "{}: {name}", case["name"]);
            }
        }
    }

    /// Returns a call whose far side says a second, is answered by `said`, and hangs up 3 s after its end.
    fn call(said: Vec<i16>) -> Vec<TimelineEntry> {
        let rule = ScriptRule {
            index: 0,
            matching: Matching::Exact,
            phrase: "your name".into(),
            response: Response::Audio(said.into()),
            first_n: None,
        };
        let turn = TurnRules { endpointing_delay_ms: 1000, ..TurnRules::default() };
        let spec = CallSpec { seed: Seed(1), turn, script: vec![rule], ..CallSpec::default() };
        let voice = Voice::from_ulaw(SPEECH);
        let mut rig = Rig::new(RigSpec {
            call: spec,
            leg: MediaParams::new(Codec::Pcmu).into(),
            net: NetemSpec::default(),
            delays: Delays::default(),
            text: true,
            mind: Mind::default(),
            voice: voice.reverse(),
        });
        rig.far.spoken.push(Spoken { from: 16_000, pcm: voice.say(16_000, 0), text: "What is your name?".into() });
        rig.answer();
        (0..450).for_each(|_| rig.step());
        rig.hang_up(EndReason::ApiHangup);
        rig.finish(500);
        let line = |(seq, event): (usize, &Event)| {
            let side = serde_json::to_value(event.side).expect("a word");
            json!({"seq": seq, "sample": event.sample, "event": event.name(), "side": side, "data": event.data()})
        };
        moments(&rig.log.events.iter().enumerate().map(line).collect())
    }

    #[test]
    fn a_pause_inside_an_utterance_is_silence() {
        let words =
            |count: usize| -> Vec<i16> { (0..count).map(|n| (4000.0 * (0.2 * n as f64).sin()) as i16).collect() };
        let pause = |count: usize| vec![0; count];
        let value = |moments: &[TimelineEntry], name: &str| {
            let found = measure(moments, &facts(0)).metrics.into_iter().find(|metric| metric.name == name);
            found.and_then(|metric| metric.value.as_f64()).unwrap_or_else(|| panic!("{name} has a value"))
        };
        // Two seconds of words around a second of silence; and three seconds of words.
        let [paused, whole] = [call([words(16_000), pause(16_000), words(16_000)].concat()), call(words(48_000))];
        let said: Vec<Span> = speech(&paused, Side::Dh, i64::MAX);
        let from = said.first().expect("it speaks").from;
        let at = |from: i64, to: i64| Span { from, to };
        let [first, second] = said[..] else { panic!("{said:?}") };
        assert_eq!((first.from, second.to), (from, from + 48_000), "its ends are known to the sample");
        // A pause is told on the grid of 10 ms.
        let near =
            |found: Span, wanted: Span| (found.from - wanted.from).abs() <= 160 && (found.to - wanted.to).abs() <= 160;
        assert!(near(first, at(from, from + 16_000)) && near(second, at(from + 32_000, from + 48_000)), "{said:?}");
        assert_eq!(speech(&whole, Side::Dh, i64::MAX), [at(from, from + 48_000)]);
        let seconds = value(&paused, "duration") / 1000.0;
        let agent = value(&paused, "agent_speak_percentage") * seconds / 100.0;
        for (name, expect) in [
            ("customer_speak_percentage", 100.0 * 2.0 / seconds),
            ("overlap_percentage", 0.0),
            ("silence_percentage", 100.0 * (seconds - 2.0 - agent) / seconds),
            ("talk_ratio", agent / (agent + 2.0)),
        ] {
            let slack = if name == "talk_ratio" { 0.004 } else { 0.4 };
            assert!((value(&paused, name) - expect).abs() < slack, "{name}: {} {expect}", value(&paused, name));
        }
        assert!((value(&whole, "customer_speak_percentage") * seconds / 100.0 - 3.0).abs() < 0.05);
        for moments in [&paused, &whole] {
            let turns = media::turns(&conversation(moments, &facts(0)));
            let own = turns.iter().filter(|turn| turn.side == Side::Dh).count();
            assert_eq!(own, 1, "it stays one turn");
            let measured = measure(moments, &facts(0)).metrics;
            assert!(
                measured.iter().all(|metric| metric.name != "customer_words_per_turn_avg"),
                "nobody knows its words"
            );
        }
        // Words of the agent in the pause overlap nothing.
        let mut spoken_into = paused.clone();
        let agent_says = |event: &str, sample: i64| TimelineEntry {
            seq: 1000 + sample,
            event: Event::from_wire(sample, event, "agent", json!({})),
        };
        spoken_into.extend([agent_says("speech.started", from + 20_000), agent_says("speech.ended", from + 30_000)]);
        spoken_into.sort_by_key(|moment| (moment.sample, moment.seq));
        assert_eq!(value(&spoken_into, "overlap_percentage"), 0.0);
    }

    #[test]
    fn probes_are_measured_apart_from_turns() {
        let said = |kind: &str, text: &str| json!({"utterance_id": 1, "text": text, "kind": kind});
        let probe = |from: i64, to: i64, kind: &str, text: &str| {
            [
                at(from, "probe", "dh", json!({ "kind": kind })),
                at(from, "speech.started", "dh", said("probe", text)),
                at(to, "speech.ended", "dh", said("probe", text)),
            ]
        };
        let span = |from: i64, to: i64, side: &str, kind: &str| {
            [
                at(from, "speech.started", side, said(kind, "one two")),
                at(to, "speech.ended", side, said(kind, "one two")),
            ]
        };
        let mut timeline =
            [span(1000, 9000, "agent", ""), span(10_500, 11_500, "dh", "turn"), span(12_500, 15_000, "agent", "")]
                .concat();
        for (from, to, kind, text) in [
            (3000, 3400, "backchannel", "Okay."),
            (5600, 6900, "non_directed", "Just a second, please."),
            (8900, 9500, "vocal_tic", ""),
            (14_000, 14_300, "backchannel", "Right."),
        ] {
            timeline.extend(probe(from, to, kind, text));
        }
        let word = |from: i64, to: i64, text: &str| json!({"word": text, "start_offset_ms": from, "end_offset_ms": to});
        let words = json!([word(1000, 2000, "Good."), word(12_500, 15_000, "and")]);
        timeline.push(at(16_000, "turn.ended", "agent", json!({"text": "Good. and", "words": words})));
        timeline.push(at(20_000, "call.ended", "engine", json!({})));
        let measured = measure(&moments(&json!(timeline)), &facts(0));
        let metric = |name: &str| measured.metrics.iter().find(|metric| metric.name == name);
        let value = |name: &str| metric(name).map(|metric| metric.value.clone());
        for (name, expect) in [
            // The agent fell silent 1 s after the second one.
            ("backchannel_selectivity", Some(json!(0.5))),
            ("vocal_tic_selectivity", Some(json!(1.0))),
            ("non_directed_selectivity", Some(json!(1.0))),
            ("customer_interruption_count", Some(json!(0))),
            ("num_turns", Some(json!(2))),
            ("avg_agent_latency", Some(json!(1.0))),
            ("avg_customer_latency", Some(json!(1.5))),
            ("customer_speak_percentage", Some(json!(5.0))),
            ("overlap_percentage", Some(json!(0.0))),
            ("customer_words_per_turn_avg", Some(json!(2.0))),
        ] {
            assert_eq!(value(name), expect, "{name}");
        }
        let note = |name: &str| metric(name).and_then(|metric| metric.note.as_deref());
        assert_eq!(note("non_directed_selectivity"), Some("no_language_model"), "its words are not judged");
        assert_eq!(note("backchannel_selectivity"), None);
        // The agent's last turn was over where no word marks sentences.
        timeline.retain(|line| line["event"] != "turn.ended");
        let measured = measure(&moments(&json!(timeline)), &facts(0));
        let found = measured.metrics.iter().find(|metric| metric.name == "backchannel_selectivity").expect("a value");
        assert_eq!((&found.value, found.note.as_deref()), (&json!(1.0), Some("no_punctuation")));
    }

    #[test]
    fn words_that_were_not_heard_are_no_zero() {
        let turn = |from: i64, to: i64, text: &str, missing: Value| {
            let data = json!({"text": text, "from_sample": from * 16, "end_sample": to * 16, "words": [], "text_missing": missing});
            [
                at(from, "speech.started", "agent", json!({})),
                at(to, "speech.ended", "agent", json!({})),
                at(from + 500, "speech.started", "dh", json!({"utterance_id": from, "text": "yes"})),
                at(from + 900, "speech.ended", "dh", json!({"utterance_id": from, "text": "yes"})),
                at(to, "turn.ended", "agent", data),
            ]
        };
        let words = |turns: &[[Value; 5]]| {
            let mut timeline = turns.concat();
            timeline.sort_by_key(|line| (line["sample"].as_i64(), line["seq"].as_i64()));
            timeline.push(at(20_000, "call.ended", "engine", json!({})));
            let metrics = measure(&moments(&json!(timeline)), &facts(0)).metrics;
            let value =
                |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone());
            (value("num_turns"), value("agent_words_per_turn_avg"))
        };
        let heard = || turn(5000, 5450, "four words of it", Value::Null);
        let late = || turn(1000, 1450, "", json!("recognizer_late"));
        let half = || turn(9000, 9450, "half", json!("recognizer_busy"));
        assert_eq!(words(&[late()]), (Some(json!(1)), None));
        assert_eq!(words(&[late(), heard(), half()]), (Some(json!(3)), Some(json!(4.0))));
        // As calls of before told it, without the reason.
        assert_eq!(words(&[turn(1000, 1450, "", Value::Null), heard()]), (Some(json!(2)), Some(json!(4.0))));
    }

    #[test]
    fn silence_has_no_latency() {
        let timeline =
            json!([at(0, "call.connected", "engine", json!({})), at(2000, "call.ended", "engine", json!({}))]);
        let measured = measure(&moments(&timeline), &facts(0));
        assert_eq!((measured.latency.len(), measured.evaluation.latency), (0, None));
        assert!(measured.metrics.iter().all(|metric| !metric.value.is_null()));
    }
}
