//! Interruptions of either side: which count, and whether the agent stopped for the caller.

use super::*;
use crate::measure::yielding::{Interruption, interruptions};

/// Returns a call whose agent is interrupted after 1.5 s and falls silent at `stop`, with these words.
fn interrupted_call(stop: Sample, said: &[(Sample, Sample, &str)]) -> Conversation {
    Conversation { words: words(said), ..conversation(20_000, &[(2000, 4500)], &[(500, stop), (6000, 8000)]) }
}

const INSIDE: &[(Sample, Sample, &str)] =
    &[(500, 900, "Thank"), (900, 1400, "you."), (1400, 1800, "Press"), (1800, 2390, "one")];
const AT_END: &[(Sample, Sample, &str)] = &[(500, 900, "Press"), (900, 1600, "one"), (1600, 2390, "now.")];

/// Checks the yield rate, with the number of stops that nothing tells the reason of.
#[track_caller]
fn check_rate(conversation: &Conversation, rate: Option<f64>, unknown: usize) {
    let found = metrics(conversation);
    assert_eq!((found.yield_rate, found.unknown_stops.len()), (rate, unknown), "{found:?}");
}

#[test]
fn an_agent_that_never_stops_does_not_yield_when_its_turn_is_over() {
    let deaf = conversation(20_000, &[(2300, 4380)], &[(290, 4080)]);
    check(&deaf, &[("customer_interruption_count", Some(1.0)), ("yield_rate", Some(0.0)), ("yield_latency", None)]);
    // A stop after the time that is set belongs to nothing.
    for (within_ms, rate) in [(1000, Some(1.0)), (399, Some(0.0)), (400, Some(1.0))] {
        let times = YieldTimes { within_ms };
        check_rate(&Conversation { yield_times: times, ..interrupted_call(2400, INSIDE) }, rate, 0);
    }
}

#[test]
fn words_tell_whether_a_turn_was_cut() {
    let broken = |last| [INSIDE[0], INSIDE[1], INSIDE[2], (1800, 2390, last)];
    for (said, rate, unknown) in [
        (INSIDE, Some(1.0), 0),
        (AT_END, None, 0),
        (&broken("one...")[..], Some(1.0), 0),
        (&broken("one\u{2026}"), Some(1.0), 0),
        // A name or an example is to come after these, and nothing need come after those.
        (&broken("Dr."), Some(1.0), 0),
        (&broken("e.g."), Some(1.0), 0),
        (&broken("St."), Some(1.0), 0),
        (&broken("p.m."), None, 0),
        (&broken("Inc."), None, 0),
        // A capital shows that sentences are written, and small letters alone show nothing.
        (&[(500, 900, "Press"), (1800, 2390, "one")], Some(1.0), 0),
        (&[(500, 900, "press"), (1800, 2390, "one")], None, 1),
        (&[], None, 1),
        // Nobody knows what was said last.
        (&INSIDE[..2], None, 1),
    ] {
        check_rate(&interrupted_call(2400, said), rate, unknown);
    }
    check(&interrupted_call(2400, INSIDE), &[("yield_latency", Some(0.4))]);
    assert_eq!(metrics(&interrupted_call(2400, AT_END)).own_ends, 1);
}

#[test]
fn a_message_comes_before_other_calls_and_these_before_words() {
    let whole = |place, length_ms: Sample, first: &[&str]| WholeTurn {
        place,
        words: first.iter().map(|word| (*word).to_owned()).collect(),
        length: length_ms * PER_MS,
    };
    let conversation = Conversation { cleared: vec![2300 * PER_MS], ..interrupted_call(2400, AT_END) };
    check_rate(&conversation, Some(1.0), 0);
    let elsewhere =
        |said, wholes: &[WholeTurn]| Conversation { elsewhere: wholes.to_vec(), ..interrupted_call(2400, said) };
    for (said, wholes, rate, unknown) in [
        // The turn lasts 1.9 s here.
        (&[][..], &[whole(0, 2200, &[])][..], Some(1.0), 0),
        (&[], &[whole(0, 2199, &[])], None, 0),
        (&[], &[whole(0, 5000, &[]), whole(0, 1900, &[])], None, 0),
        (&[], &[whole(1, 5000, &[])], None, 1),
        (INSIDE, &[whole(0, 1900, &["thank", "you", "press"])], None, 0),
        // In another place with the same words, and in the same place with others.
        (AT_END, &[whole(0, 1900, &["hello"])], None, 0),
        (INSIDE, &[whole(4, 1900, &["thank", "you", "press"])], None, 0),
        (INSIDE, &[whole(4, 1900, &["thank", "you"])], Some(1.0), 0),
        (INSIDE, &[whole(0, 1900, &["hello"])], Some(1.0), 0),
        // Its first word was missed there.
        (INSIDE, &[whole(0, 1900, &["you", "press", "one"])], None, 0),
    ] {
        check_rate(&elsewhere(said, wholes), rate, unknown);
    }
    let cleared = Conversation { cleared: vec![2300 * PER_MS], ..elsewhere(INSIDE, &[whole(0, 1900, &[])]) };
    check_rate(&cleared, Some(1.0), 0);
}

#[test]
fn turns_that_nobody_cut_are_whole() {
    let said = words(&[(600, 900, "Good"), (900, 1200, "day."), (6000, 6500, "Yes,")]);
    let agent = [(500, 2000), (6000, 8000), (12_000, 14_000), (18_000, 20_000)];
    let call =
        Conversation { words: said, ..conversation(20_000, &[(3000, 4000), (7500, 10_000), (15_000, 16_000)], &agent) };
    let found = whole_turns(&call);
    let turns: Vec<_> = found.iter().map(|turn| (turn.place, turn.length / PER_MS, turn.words.join(" "))).collect();
    assert_eq!(turns, [(0, 1500, "good day".to_owned()), (2, 2000, String::new())]);
    // Words after a long silence are others than those before it.
    assert_eq!(whole_turns(&conversation(20_000, &[], &[(500, 2000), (2999, 4000)])).len(), 1);
    assert_eq!(whole_turns(&conversation(20_000, &[], &[(500, 2000), (3000, 4000)])), []);
}

#[test]
fn pauses_end_neither_an_interruption_nor_a_turn() {
    let found = |call: &Conversation| {
        let found = interruptions(call, &turn::HeardSpeech::of(call));
        let ms = |one: &Interruption| (one.onset / PER_MS, one.until / PER_MS, one.stop / PER_MS);
        found.iter().map(ms).collect::<Vec<_>>()
    };
    // The agent falls silent after 131 ms, goes on 410 ms later and is cut then.
    let resumed = conversation(20_000, &[(2000, 5000)], &[(500, 2131), (2541, 2900), (6000, 8000)]);
    assert_eq!(found(&resumed), [(2000, 5000, 2900)]);
    check(&resumed, &[("customer_interruption_count", Some(1.0)), ("agent_interruption_count", Some(0.0))]);
    let on = conversation(20_000, &[(2000, 5000)], &[(500, 2131), (2541, 4800), (6000, 8000)]);
    check(&on, &[("yield_rate", Some(0.0)), ("agent_interruption_count", Some(0.0))]);
    // The caller has the floor after a second, or a pause in which the agent only shows that it listens.
    assert_eq!(found(&conversation(20_000, &[(2000, 6000)], &[(500, 2300), (3300, 5000)])), [(2000, 6000, 2300)]);
    assert_eq!(found(&conversation(20_000, &[(2000, 6000)], &[(500, 2300), (3000, 3400)])), [(2000, 6000, 2300)]);
    // A pause of the caller is inside its words, as long as it may be inside an utterance.
    let paused = conversation(20_000, &[(2000, 2500), (3000, 4000)], &[(0, 6000)]);
    assert_eq!(found(&paused), [(2000, 4000, 6000)]);
    let long = conversation(20_000, &[(2000, 2500), (4000, 5000)], &[(0, 6000)]);
    assert_eq!(found(&long).len(), 2);
    assert_eq!(found(&Conversation { dh_texts: vec![text(2000, 5000, None)], ..long }), [(2000, 5000, 6000)]);
    // Both begin at once.
    check(&conversation(20_000, &[(1149, 3000)], &[(1000, 5000)]), &[("customer_interruption_count", Some(0.0))]);
    check(&conversation(20_000, &[(1150, 3000)], &[(1000, 5000)]), &[("customer_interruption_count", Some(1.0))]);
}

#[test]
fn unknown_stops_leave_a_range() {
    // Cut into four times: it goes on, it is cut, nobody knows, nobody knows.
    let dh = [(2000, 6000), (22_000, 24_000), (42_000, 44_000), (62_000, 64_000)];
    let agent = [(1000, 5000), (20_000, 22_400), (40_000, 42_400), (60_000, 62_400)];
    let said = words(&[(20_000, 20_500, "You."), (21_900, 22_390, "Press")]);
    let all = Conversation { words: said.clone(), ..conversation(80_000, &dh, &agent) };
    let found = metrics(&all);
    assert_eq!((found.yield_rate, found.yield_range), (Some(0.5), Some([0.5, 0.75])));
    assert_eq!(found.unknown_stops, [42_400 * PER_MS, 62_400 * PER_MS]);
    // Whatever the others were, it yielded wherever it had to.
    let known = Conversation { words: said, ..conversation(80_000, &dh[1..], &agent[1..]) };
    assert_eq!(metrics(&known).yield_range, Some([1.0, 1.0]));
    assert_eq!(metrics(&conversation(80_000, &dh[2..], &agent[2..])).yield_range, None);
}

#[test]
fn whoever_is_cut_off_was_interrupted_call() {
    let cut = |dh: (Sample, Sample), agent: (Sample, Sample), stopped: &[Sample], count: f64| {
        let stopped = stopped.iter().map(|at| at * PER_MS).collect();
        let call = Conversation { stopped, ..conversation(20_000, &[dh], &[agent]) };
        check(&call, &[("agent_interruption_count", Some(count))]);
    };
    // "I would", with an overlap of 99 ms.
    cut((1000, 1499), (1400, 3000), &[1499], 1.0);
    cut((1000, 1499), (1400, 3000), &[], 0.0);
    // Before the caller has spoken for 200 ms, and at once with it.
    cut((1000, 1280), (1199, 3000), &[1280], 0.0);
    cut((1000, 1299), (1200, 3000), &[1299], 1.0);
    cut((1000, 1240), (900, 3000), &[1240], 0.0);
    // Where the call ends nobody was made to stop.
    cut((19_000, 20_000), (19_900, 20_000), &[20_000], 0.0);
}
