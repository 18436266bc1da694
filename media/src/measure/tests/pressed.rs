//! Pauses inside turns, and keys that are pressed into the agent's speech.

use super::*;

#[test]
fn the_longest_pause_is_one_inside_a_turn() {
    for (agent, expect) in [
        (&[][..], None),
        (&[(500, 2500)], Some(0.0)),
        // Less than 300 ms is no pause.
        (&[(500, 1000), (1200, 2500)], Some(0.0)),
        (&[(500, 1000), (1400, 2000), (6500, 7000)], Some(4.5)),
        // The caller speaks from 8 s to 9 s: what is before and after are two turns.
        (&[(500, 1000), (3000, 4000), (15_000, 16_000)], Some(2.0)),
    ] {
        check(&conversation(20_000, &[(8000, 9000)], agent), &[("longest_agent_pause", expect)]);
    }
    // The Digital Human found the turn over at 3.5 s and had nothing to say: it waited, and not the agent.
    let waits = conversation(20_000, &[], &[(500, 1000), (1400, 2500), (8000, 9000)]);
    let found_over = vec![3500 * PER_MS, 10_500 * PER_MS];
    check(&Conversation { found_over, ..waits }, &[("longest_agent_pause", Some(0.4))]);
}

#[test]
fn an_agent_talks_over_keys_when_it_speaks_on() {
    let speech = [(500, 6000), (8000, 9000)];
    for (keys, expect) in [
        (&[][..], 0.0),
        (&[(2000, 2100)], 1.0),
        // It spoke on over all of them once.
        (&[(2000, 2100), (2400, 2500), (2800, 2900)], 1.0),
        // It may yield within a second.
        (&[(5000, 5100)], 0.0),
        (&[(4999, 5099)], 1.0),
        // Who begins beside a key has not heard it.
        (&[(600, 700)], 0.0),
        (&[(7000, 7100), (8500, 8600)], 0.0),
    ] {
        let pressed = Conversation { digits: spans(keys), ..conversation(20_000, &[], &speech) };
        check(&pressed, &[("keys_talked_over", Some(expect))]);
    }
}
