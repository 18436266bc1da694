//! Conversations as lists of milliseconds, against values worked out by hand.

mod pressed;
mod yielding;

use super::*;
use crate::call::ProbeKind;
use crate::noise::{self, Kind};
use crate::seed::Seed;
use crate::vad::tests::say;

fn span(from_ms: Sample, to_ms: Sample) -> Span {
    Span { from: from_ms * PER_MS, to: to_ms * PER_MS }
}

fn spans(ms: &[(Sample, Sample)]) -> Vec<Span> {
    ms.iter().map(|&(from, to)| span(from, to)).collect()
}

fn conversation(duration_ms: Sample, dh: &[(Sample, Sample)], agent: &[(Sample, Sample)]) -> Conversation {
    Conversation {
        duration: duration_ms * PER_MS,
        dh: spans(dh),
        agent: spans(agent),
        interface: "PHONE",
        ..Conversation::default()
    }
}

fn probe(kind: ProbeKind, from_ms: Sample, to_ms: Sample) -> Probe {
    Probe { kind, span: span(from_ms, to_ms) }
}

fn words(said: &[(Sample, Sample, &str)]) -> Vec<Word> {
    said.iter().map(|&(from, to, text)| Word { span: span(from, to), text: text.into() }).collect()
}

fn text(from_ms: Sample, to_ms: Sample, words: Option<usize>) -> Text {
    Text { span: span(from_ms, to_ms), words }
}

/// Checks the named metrics as they would be published; a name that has no value is null.
#[track_caller]
fn check(conversation: &Conversation, expected: &[(&str, Option<f64>)]) {
    let found = serde_json::to_value(metrics(conversation)).expect("metrics are plain numbers");
    for (name, value) in expected {
        let found = found.get(name).unwrap_or_else(|| panic!("no metric {name}")).as_f64();
        assert_eq!(found, *value, "{name}");
    }
}

/// Returns a conversation with a greeting, three answers, one backchannel, and a caller who interrupts at 21.5 s.
fn ordinary() -> Conversation {
    let dh = [(3000, 5000), (9500, 11_000), (11_200, 12_000), (15_500, 18_500), (21_500, 23_000)];
    let agent = [(500, 2500), (5800, 9000), (13_000, 15_000), (16_500, 16_900), (19_700, 22_000), (24_000, 26_000)];
    let texts = vec![text(0, 30_000, Some(50))];
    let dh_texts = vec![text(0, 30_000, Some(30))];
    Conversation { texts, dh_texts, ..conversation(30_000, &dh, &agent) }
}

#[test]
fn latencies() {
    assert_eq!(metrics(&ordinary()).latency, [0.8, 1.0, 1.2, 1.0]);
    check(
        &ordinary(),
        &[
            ("avg_agent_latency", Some(1.0)),
            ("max_agent_latency", Some(1.2)),
            ("p50_agent_latency", Some(1.0)),
            ("p90_agent_latency", Some(1.14)),
            ("p95_agent_latency", Some(1.17)),
            ("p99_agent_latency", Some(1.194)),
            ("avg_customer_latency", Some(0.5)),
            ("p50_customer_latency", Some(0.5)),
            ("p90_customer_latency", Some(0.5)),
            ("time_to_first_agent_utterance", Some(0.5)),
            ("avg_filler_ignored_latency", None),
            ("avg_punctuation_latency", None),
        ],
    );
}

#[test]
fn the_greeting_counts_from_the_moment_the_agent_could_speak() {
    for (greeting_ms, ready_ms, start_ms, expect) in [
        (500, 0, 0, 0.5),
        (500, -2000, 0, 2.5),
        // It began when the agent could speak already, and the call was not up yet.
        (-10, -1800, 0, 1.79),
        (-300, -100, 0, 0.0),
        // An extension was dialled: a machine that spoke before it did not greet.
        (900, 1500, 1500, 0.0),
        (2100, 1500, 1500, 0.6),
    ] {
        let of = Conversation {
            start: start_ms * PER_MS,
            greeting_from: ready_ms * PER_MS,
            ..conversation(30_000, &[(6000, 7000)], &[(greeting_ms, greeting_ms + 2000), (8000, 9000)])
        };
        check(&of, &[("time_to_first_agent_utterance", Some(expect)), ("avg_agent_latency", Some(1.0))]);
        let first = of.agent[0].from.max(start_ms * PER_MS);
        let spoken = (of.agent[0].to - first + 1000 * PER_MS) as f64 / PER_MS as f64;
        let share = (spoken / 30_000.0 * 100_000.0).round() / 1000.0;
        check(&of, &[("agent_speak_percentage", Some(share))]);
    }
}

#[test]
fn shares_and_speed() {
    check(
        &ordinary(),
        &[
            ("agent_speak_percentage", Some(39.667)),
            ("customer_speak_percentage", Some(30.0)),
            ("overlap_percentage", Some(3.0)),
            ("silence_percentage", Some(33.333)),
            ("talk_ratio", Some(0.569)),
            ("num_turns", Some(5.0)),
            ("agent_turn_duration_avg", Some(2300.0)),
            ("agent_words_per_turn_avg", Some(10.0)),
            ("customer_words_per_turn_avg", Some(7.5)),
            ("agent_wpm", Some(252.101)),
            ("duration", Some(30_000.0)),
        ],
    );
    assert_eq!(metrics(&ordinary()).interface, "PHONE");
    check(&Conversation { texts: vec![text(0, 30_000, Some(9))], ..ordinary() }, &[("agent_wpm", None)]);
}

#[test]
fn words_that_were_not_heard_are_left_out() {
    let names = ["num_turns", "agent_words_per_turn_avg", "agent_wpm"];
    let with = |texts: &[Text], expect: [Option<f64>; 3]| {
        let dh = [(3000, 4000), (9000, 10_000)];
        let agent = [(0, 2000), (5000, 8000), (11_000, 12_000)];
        let spoken = Conversation { texts: texts.to_vec(), ..conversation(15_000, &dh, &agent) };
        check(&spoken, &names.into_iter().zip(expect).collect::<Vec<_>>());
    };
    let first = text(0, 2000, Some(8));
    let second = text(5000, 8000, Some(12));
    let last = text(11_000, 12_000, Some(4));
    with(&[first, second, last], [Some(3.0), Some(8.0), Some(240.0)]);
    // The second turn, and the first half of it alone.
    with(&[first, text(5000, 8000, None), last], [Some(3.0), Some(6.0), Some(240.0)]);
    with(&[first, text(5000, 6000, None), text(6500, 8000, Some(7)), last], [Some(3.0), Some(6.0), Some(228.0)]);
    // Nothing of it at all, or nothing that anybody told.
    with(&[text(0, 2000, None), text(5000, 8000, None), text(11_000, 12_000, None)], [Some(3.0), None, None]);
    with(&[], [Some(3.0), None, None]);
    // The text that was recognized has no words.
    with(
        &[text(0, 2000, Some(0)), text(5000, 8000, Some(0)), text(11_000, 12_000, Some(0))],
        [Some(3.0), Some(0.0), None],
    );
}

#[test]
fn recordings_of_the_caller_are_left_out() {
    let dh = [(3000, 4000), (9000, 10_000)];
    let base = conversation(15_000, &dh, &[(0, 2000), (5000, 8000), (11_000, 12_000)]);
    for (texts, expect) in [
        (vec![text(3000, 4000, Some(4)), text(9000, 10_000, Some(2))], Some(3.0)),
        (vec![text(3000, 4000, Some(4)), text(9000, 10_000, None)], Some(4.0)),
        (vec![text(3000, 4000, None), text(9000, 10_000, None)], None),
    ] {
        check(&Conversation { dh_texts: texts, ..base.clone() }, &[("customer_words_per_turn_avg", expect)]);
    }
}

#[test]
fn a_part_is_measured_as_a_conversation_of_its_own() {
    let texts = vec![text(500, 2500, Some(4)), text(13_000, 15_000, Some(6)), text(19_700, 22_000, Some(8))];
    let whole = Conversation { texts, words: words(&[(19_800, 20_000, "um"), (20_400, 21_000, "yes")]), ..ordinary() };
    let whole = Conversation { fillers: vec!["um".into()], ..whole };
    // From the third of the agent's turns to the middle of its last but one, into which the caller barges.
    let part = whole.part(span(13_000, 21_700));
    assert_eq!(metrics(&part).latency, [1.2]);
    check(
        &part,
        &[
            ("duration", Some(8700.0)),
            ("num_turns", Some(2.0)),
            ("avg_customer_latency", Some(0.5)),
            ("avg_filler_ignored_latency", Some(1.9)),
            ("agent_words_per_turn_avg", Some(7.0)),
            ("customer_interruption_count", Some(1.0)),
            ("agent_speak_percentage", Some(50.575)),
        ],
    );
    let same = whole.part(span(0, 99_000));
    assert_eq!(metrics(&same), metrics(&whole));
}

#[test]
fn nobody_speaks() {
    let silent = conversation(5000, &[], &[]);
    check(
        &silent,
        &[
            ("avg_agent_latency", None),
            ("p99_agent_latency", None),
            ("time_to_first_agent_utterance", None),
            ("num_turns", Some(0.0)),
            ("agent_turn_duration_avg", None),
            ("agent_words_per_turn_avg", None),
            ("silence_percentage", Some(100.0)),
            ("talk_ratio", None),
            ("agent_interruption_count", Some(0.0)),
            ("response_rate", None),
            ("yield_rate", None),
            ("dh_yield_latency_ms", None),
        ],
    );
    check(&conversation(0, &[], &[]), &[("silence_percentage", None), ("agent_speak_percentage", None)]);
}

#[test]
fn turns_are_runs_without_the_other_side_between() {
    let check = |dh: &[_], agent: &[_], expected: &[(Side, Sample, Sample)]| {
        let turns = turns(&conversation(60_000, dh, agent));
        let found: Vec<_> = turns.iter().map(|turn| (turn.side, turn.from() / PER_MS, turn.to() / PER_MS)).collect();
        assert_eq!(found, expected);
    };
    use Side::{Agent, Dh};
    // A pause of 2 s is inside a turn; sounds under 100 ms are dropped, gaps under 300 ms joined first.
    check(&[(0, 1000), (3000, 4000)], &[(5000, 5090)], &[(Dh, 0, 4000)]);
    check(&[], &[(0, 60), (200, 260)], &[(Agent, 0, 260)]);
    // 599 ms while the other goes on: a backchannel. 600 ms: a turn, though one that lies inside the other's.
    check(&[(0, 5000)], &[(1000, 1599)], &[(Dh, 0, 5000)]);
    check(&[(0, 5000), (6000, 7000)], &[(1000, 1600)], &[(Dh, 0, 7000), (Agent, 1000, 1600)]);
    // A short sound that outlasts the other's speech is an answer, and one in the other's pause as well.
    check(&[(0, 5000)], &[(4800, 5200)], &[(Dh, 0, 5000), (Agent, 4800, 5200)]);
    check(&[(0, 2000), (3000, 4000)], &[(2300, 2600)], &[(Dh, 0, 2000), (Agent, 2300, 2600), (Dh, 3000, 4000)]);
    // Speech on both sides of an interruption.
    check(&[(0, 3000)], &[(2000, 4000), (6000, 7000)], &[(Dh, 0, 3000), (Agent, 2000, 7000)]);
}

#[test]
fn a_short_sound_that_stops_the_caller_is_no_backchannel() {
    // It is over 20 ms before the caller has fallen silent.
    let base = conversation(40_000, &[(1000, 3260)], &[(3000, 3240), (6000, 7000)]);
    check(&base, &[("agent_interruption_count", Some(0.0))]);
    let stopped = Conversation { stopped: vec![3260 * PER_MS], ..base };
    check(&stopped, &[("agent_interruption_count", Some(1.0)), ("dh_yield_latency_ms", Some(260.0))]);
}

#[test]
fn an_agent_that_interrupts() {
    // Cut off at 3.0 s, silent 260 ms later; the second overlap is shorter than 200 ms; the third comes after 150 ms of
    // speech.
    let dh = [(1000, 3260), (6000, 7000), (10_000, 11_000)];
    let agent = [(3000, 5000), (6850, 9000), (10_150, 12_000)];
    check(
        &conversation(40_000, &dh, &agent),
        &[
            ("agent_interruption_count", Some(1.0)),
            ("dh_yield_latency_ms", Some(260.0)),
            ("agent_interrupts_rate", Some(0.333)),
            ("avg_agent_latency", None),
            ("customer_interruption_count", Some(0.0)),
        ],
    );
}

#[test]
fn an_agent_that_is_interrupted() {
    let said = words(&[(19_700, 20_500, "Thursday"), (20_500, 21_500, "at"), (21_500, 22_000, "eleven")]);
    check(
        &Conversation { words: said, ..ordinary() },
        &[("customer_interruption_count", Some(1.0)), ("yield_rate", Some(1.0)), ("yield_latency", Some(0.5))],
    );
    // It talks on for 3 s; in the second case the caller gives up first.
    for dh in [(2000, 6000), (2000, 3000)] {
        check(
            &conversation(20_000, &[dh], &[(0, 5000)]),
            &[("customer_interruption_count", Some(1.0)), ("yield_rate", Some(0.0)), ("yield_latency", None)],
        );
    }
    check(&conversation(20_000, &[(2000, 3000)], &[(0, 2199)]), &[("customer_interruption_count", Some(0.0))]);
}

#[test]
fn answered_turns() {
    let rate = |duration_ms, dh: &[_], agent: &[_], expected| {
        check(&conversation(duration_ms, dh, agent), &[("response_rate", expected)]);
    };
    rate(30_000, &[(0, 1000)], &[(10_900, 12_000)], Some(1.0));
    rate(30_000, &[(0, 1000)], &[(11_100, 12_000)], Some(0.0));
    // The end of the call within 10 s leaves the turn out; speaking again after the agent's silence does not.
    rate(10_900, &[(0, 1000)], &[], None);
    rate(30_000, &[(0, 1000), (13_000, 14_000)], &[(15_000, 16_000)], Some(1.0));
    rate(30_000, &[(0, 1000), (4000, 5000)], &[(2000, 3000), (24_000, 25_000)], Some(0.5));
}

#[test]
fn probes_are_no_turns() {
    let base = Conversation {
        probes: vec![
            probe(ProbeKind::Backchannel, 3000, 3400),
            probe(ProbeKind::VocalTic, 6000, 6400),
            // The agent has spoken for 0.6 s only: not counted.
            probe(ProbeKind::NonDirected, 600, 1800),
        ],
        words: words(&[(6200, 6480, "and")]),
        ..conversation(30_000, &[(3000, 3400), (6000, 6400), (600, 1800)], &[(0, 6500), (8000, 12_000)])
    };
    let expected = [
        ("backchannel_selectivity", Some(1.0)),
        ("vocal_tic_selectivity", Some(0.0)),
        ("non_directed_selectivity", None),
        ("customer_interruption_count", Some(0.0)),
        ("num_turns", Some(1.0)),
        ("customer_words_per_turn_avg", None),
    ];
    check(&base, &expected);
    // A silence at a sentence's end says nothing about the cough.
    let ended = Conversation { words: words(&[(6200, 6480, "done.")]), ..base.clone() };
    check(&ended, &[("vocal_tic_selectivity", None)]);
    // The next word tells whether the sentence went on.
    for (next, expect) in [("We", None), ("tomorrow.", Some(0.0))] {
        let said = [(6200, 6480, "p.m."), (8000, 8400, next), (8400, 9000, "now.")];
        let after_abbreviation = Conversation { words: words(&said), ..base.clone() };
        check(&after_abbreviation, &[("vocal_tic_selectivity", expect)]);
    }
    // With other times the silence after the cough is none, or too late; the aside counts after less speech.
    for (times, tic, aside) in [
        (ProbeTimes { silence_ms: 1501, ..ProbeTimes::default() }, Some(1.0), None),
        (ProbeTimes { to_ms: 499, ..ProbeTimes::default() }, Some(1.0), None),
        (ProbeTimes { from_ms: 500, ..ProbeTimes::default() }, Some(1.0), None),
        (ProbeTimes { spoken_ms: 600, ..ProbeTimes::default() }, Some(0.0), Some(1.0)),
    ] {
        let conversation = Conversation { probe_times: times, ..base.clone() };
        check(&conversation, &[("vocal_tic_selectivity", tic), ("non_directed_selectivity", aside)]);
    }
}

#[test]
fn fillers_and_sentences() {
    let said = [
        (2000, 2200, "Um,"),
        (2400, 2600, "one"),
        (2600, 2800, "moment."),
        (3500, 3800, "Your"),
        (3800, 4200, "balance"),
        (4200, 4500, "is"),
        (4500, 4800, "ten."),
        (5200, 5500, "Anything"),
        (5500, 5800, "else?"),
    ];
    let base = Conversation {
        words: words(&said),
        fillers: vec!["um".into(), "one moment".into(), "one".into()],
        ..conversation(20_000, &[(0, 1000)], &[(2000, 2800), (3500, 4800), (5200, 5800)])
    };
    check(
        &base,
        &[
            ("avg_agent_latency", Some(1.0)),
            ("avg_filler_ignored_latency", Some(2.5)),
            ("p99_filler_ignored_latency", Some(2.5)),
            ("avg_punctuation_latency", Some(0.55)),
            ("p90_punctuation_latency", Some(0.67)),
        ],
    );
    let mut abbreviated = said;
    abbreviated[6].2 = "p.m.";
    let ends = |next| {
        abbreviated[7].2 = next;
        let conversation = Conversation { words: words(&abbreviated), ..base.clone() };
        metrics(&conversation).p90_punctuation_latency
    };
    assert_eq!(["Anything", "tomorrow"].map(ends), [Some(0.67), Some(0.7)]);
    let plain = Conversation { fillers: Vec::new(), ..base.clone() };
    check(&plain, &[("avg_filler_ignored_latency", Some(1.0))]);
    let only = Conversation { words: words(&said[..3]), ..base };
    check(&only, &[("avg_filler_ignored_latency", None), ("avg_agent_latency", Some(1.0))]);
}

#[test]
fn what_came_before_the_start_is_not_counted_and_digits_are_turns() {
    let (start, greeting_from) = (4000 * PER_MS, 4000 * PER_MS);
    let base = Conversation { start, greeting_from, ..conversation(30_000, &[], &[(1000, 3000), (6000, 8000)]) };
    check(&base, &[("time_to_first_agent_utterance", Some(2.0)), ("num_turns", Some(1.0))]);
    let digits = Conversation { digits: spans(&[(8500, 8600), (8700, 8800)]), ..base };
    let answered = Conversation { agent: spans(&[(6000, 8000), (9500, 11_000)]), ..digits };
    check(
        &answered,
        &[("avg_agent_latency", Some(0.7)), ("num_turns", Some(2.0)), ("customer_speak_percentage", Some(0.0))],
    );
}

#[test]
fn long_conversations_are_measured_without_a_look_at_all_for_each_turn() {
    let many = 300_000;
    let each = |from: Sample, to: Sample| -> Vec<(Sample, Sample)> {
        (0..many).map(|turn| (2000 * turn + from, 2000 * turn + to)).collect()
    };
    let (dh, agent) = (each(0, 900), each(1000, 1900));
    let said = agent.iter().map(|&(from, to)| Word { span: span(from, to), text: "one".into() });
    let apart = Conversation {
        words: said.collect(),
        fillers: (0..many).map(|phrase| format!("one {phrase}")).collect(),
        ..conversation(2000 * many, &dh, &agent)
    };
    check(
        &apart,
        &[
            ("num_turns", Some(many as f64)),
            ("avg_filler_ignored_latency", Some(0.1)),
            ("avg_customer_latency", Some(0.1)),
            ("response_rate", Some(1.0)),
            ("overlap_percentage", Some(0.0)),
        ],
    );
    let over = conversation(2000 * many, &dh, &each(600, 1500));
    check(&over, &[("agent_interruption_count", Some(many as f64)), ("overlap_percentage", Some(15.0))]);
    // One turn of many stretches, with many turns of the agent in its last.
    let mut dh = each(0, 500);
    dh.push((2000 * many, 4000 * many));
    let agent: Vec<(Sample, Sample)> =
        each(500, 1200).into_iter().map(|(from, to)| (2000 * many + from, 2000 * many + to)).collect();
    check(&conversation(4000 * many, &dh, &agent), &[("agent_interruption_count", Some(many as f64))]);
    let whole = [Span { from: 0, to: span(0, 2000 * many).to }];
    let left = audio::without(&whole, &spans(&each(0, 900)));
    assert!(left == spans(&each(900, 2000)));
}

#[test]
fn what_is_left_of_spans() {
    let check = |of: &[(Sample, Sample)], apart: &[(Sample, Sample)], expect: &[(Sample, Sample)]| {
        assert_eq!(audio::without(&spans(of), &spans(apart)), spans(expect), "{of:?} without {apart:?}");
    };
    check(&[(0, 10), (20, 30)], &[], &[(0, 10), (20, 30)]);
    check(&[(0, 10), (20, 30)], &[(25, 40), (5, 22)], &[(0, 5), (22, 25)]);
    check(&[(0, 10)], &[(2, 4), (3, 6), (6, 7), (10, 12)], &[(0, 2), (7, 10)]);
    check(&[(0, 10), (20, 30)], &[(-5, 10)], &[(20, 30)]);
}

#[test]
fn percentiles_are_linear_between_ranks() {
    assert_eq!(percentile(&[], 50.0), None);
    assert_eq!(percentile(&[3.0], 99.0), Some(3.0));
    assert_eq!(percentile(&[4.0, 1.0, 3.0, 2.0], 50.0), Some(2.5));
    assert_eq!(percentile(&[1.0, 2.0, 3.0, 4.0, 5.0], 90.0), Some(4.6));
}

/// Returns six sentences at -26 dBov active level with pauses between, and their spans.
fn caller(voice: &str) -> (Vec<i16>, Vec<Span>) {
    let (mut pcm, mut truth) = (vec![0; 32_000], Vec::new());
    for text in
        ["I would like to change my appointment to Thursday, please.", "Yes, that is right, thank you very much."]
    {
        let (said, sound) = say(text, voice);
        for _ in 0..3 {
            truth.push(Span { from: (pcm.len() + sound.start) as Sample, to: (pcm.len() + sound.end) as Sample });
            pcm.extend(&said);
            pcm.resize(pcm.len() + 24_000, 0);
        }
    }
    (pcm, truth)
}

#[test]
fn the_snr_of_a_caller_in_noise_is_the_asked_one() {
    let callers = ["slt", "rms"].map(caller);
    for kind in [Kind::White, Kind::Pink, Kind::Cafe, Kind::Office] {
        let bed = noise::generate(kind, Seed(3), 30, &[]);
        for volume in [0.0, 0.4, 0.8, 1.0] {
            let (mut bed, asked) = (bed.clone(), noise::snr_db(volume));
            crate::testing::level_for(&mut bed, asked, 16_000);
            for (pcm, truth) in &callers {
                let mixed: Vec<i16> = pcm.iter().zip(bed.iter().cycle()).map(|(&x, &n)| x.saturating_add(n)).collect();
                let found = snr_db(&mixed, truth).expect("there is speech and noise");
                assert!((found - asked).abs() <= 1.5, "{kind:?}: {found:.2} dB, asked {asked}");
            }
        }
    }
    assert_eq!(snr_db(&[100; 80_000], &[]), None);
    let (pcm, truth) = caller("slt");
    assert!(snr_db(&pcm, &truth).is_some_and(|snr| snr > 50.0));
}

#[test]
fn segments_are_the_sentences() {
    let (pcm, truth) = caller("awb");
    let found: Vec<Span> = segments(&pcm);
    // The comma's pause may split a sentence: what counts is that each sentence begins and ends with a segment.
    let near = |a: Sample, b: Sample| (a - b).abs() <= 30 * PER_MS;
    for sentence in &truth {
        assert!(found.iter().any(|span| near(span.from, sentence.from)), "{sentence:?} in {found:?}");
        assert!(found.iter().any(|span| near(span.to, sentence.to)), "{sentence:?} in {found:?}");
    }
    assert!(found.iter().all(|span| truth.iter().any(|sentence| sentence.overlap(*span) > 0)));
    assert!(found.windows(2).all(|pair| pair[1].from - pair[0].to >= 300 * PER_MS));
    assert_eq!(segments(&[0; 16_001]), []);
}
