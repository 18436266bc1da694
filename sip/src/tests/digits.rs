//! Digits by INFO.

use super::Scripted;
use super::calls::{answers, bobs_call};
use crate::message::Method;
use crate::testing::{Pair, Party};
use crate::useragent::CallEvent;

fn send_keys(pair: &Pair, party: Party) -> String {
    let digit = |event: &&CallEvent| if let CallEvent::Digit(digit, 100) = event { Some(*digit) } else { None };
    pair.of(party).iter().filter_map(digit).collect()
}

#[test]
fn digits_arrive_once_and_in_order_both_ways() {
    let mut repeated = 0;
    for seed in 0..100 {
        let mut pair = Pair::new(seed, answers);
        let alice = pair.call();
        pair.run(1000);
        (pair.loss, pair.jitter_ms) = (0.15, 30);
        let bob = bobs_call(&pair);
        for digit in "0123456789*#ABCD".chars() {
            pair.alice.send_digit(pair.now, alice, digit, 100);
            pair.bob.send_digit(pair.now, bob, digit, 100);
            pair.run(200);
        }
        pair.run(100_000);
        assert_eq!(send_keys(&pair, Party::Bob), "0123456789*#ABCD", "seed {seed}");
        assert_eq!(send_keys(&pair, Party::Alice), "0123456789*#ABCD", "seed {seed}");
        assert!(!pair.events.iter().any(|(_, _, event)| matches!(event, CallEvent::DigitRefused(_))), "seed {seed}");
        repeated += pair.count(Party::Alice, "INFO") - 16;
        (pair.loss, pair.jitter_ms) = (0.0, 0);
        pair.alice.hangup(pair.now, alice, 16, "x");
        pair.run(80_000);
        assert!(pair.alice.is_idle() && pair.bob.is_idle(), "seed {seed}");
    }
    assert!(repeated > 300, "the network did lose: {repeated}");
}

#[test]
fn a_digit_is_a_dtmf_relay_and_what_is_refused_is_told() {
    let (mut stage, key, _) = Scripted::talking();
    for (digit, ms) in [('5', 100), ('#', 250)] {
        stage.endpoint.send_digit(stage.now, key, digit, ms);
    }
    let info = stage.request(Method::Info);
    stage.quiet();
    assert_eq!(info.headers.get("Content-Type"), Some("application/dtmf-relay"));
    assert_eq!(info.body, b"Signal=5\r\nDuration=100\r\n");
    assert_eq!((info.headers.to().unwrap().tag(), info.headers.cseq().unwrap().seq), ("b", 2));
    stage.reply(&info, 100, "", &[], None);
    stage.quiet();
    stage.reply(&info, 415, "", &[], None);
    assert_eq!(stage.events, [CallEvent::DigitRefused(415)]);
    let info = stage.request(Method::Info);
    assert_eq!((info.body.as_slice(), info.headers.cseq().unwrap().seq), (&b"Signal=#\r\nDuration=250\r\n"[..], 3));
    // Nobody answers.
    stage.wait(33_000);
    assert_eq!(stage.events[1..], [CallEvent::DigitRefused(408)]);
    stage.sent.clear();
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.request(Method::Bye);
    stage.endpoint.send_digit(stage.now, key, '1', 100);
    stage.quiet();
}

#[test]
fn a_challenged_digit_is_sent_again_with_credentials() {
    let (mut stage, key, invite) = Scripted::calling(Some(("u", "secret")));
    stage.answer(&invite, "b");
    stage.request(Method::Ack);
    stage.events.clear();
    stage.endpoint.send_digit(stage.now, key, '7', 100);
    let info = stage.request(Method::Info);
    stage.reply(&info, 407, "b", &[("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"1\", qop=\"auth\"")], None);
    let again = stage.request(Method::Info);
    assert!(again.headers.get("Proxy-Authorization").is_some_and(|value| value.contains("nonce=\"1\"")));
    assert_eq!((&again.body, again.headers.cseq().unwrap().seq), (&info.body, 3));
    stage.reply(&again, 200, "b", &[], None);
    stage.endpoint.send_digit(stage.now, key, '8', 100);
    let next = stage.request(Method::Info);
    assert!(next.headers.get("Proxy-Authorization").is_some(), "the next one knows");
    assert_eq!(stage.events, []);
}

#[test]
fn digits_that_nobody_answers_do_not_pile_up() {
    let (mut stage, key, _) = Scripted::talking();
    for _ in 0..100 {
        stage.endpoint.send_digit(stage.now, key, '1', 100);
    }
    stage.pump();
    assert_eq!(stage.events.iter().filter(|event| **event == CallEvent::DigitRefused(503)).count(), 35);
}
