//! Two endpoints over a simulated network.

use crate::auth::{Algorithm, Demand, Qop};
use crate::testing::{Pair, Party, offer};
use crate::useragent::{CallEvent, CallKey, EndKind};
use crate::{CallEnd, Endpoint, Hop, Time, sdp};

fn answer_to(offered: &str) -> String {
    sdp::negotiate(offered, &offer(2)).unwrap().0.to_string()
}

pub(super) fn answers(bob: &mut Endpoint, now: Time, call: CallKey, event: &CallEvent) {
    if let CallEvent::Incoming { sdp: Some(sdp), .. } = event {
        bob.ring(now, call, 180, None);
        bob.answer(now, call, answer_to(sdp));
    }
}

fn rings(bob: &mut Endpoint, now: Time, call: CallKey, event: &CallEvent) {
    if let CallEvent::Incoming { .. } = event {
        bob.ring(now, call, 180, None);
    }
}

fn silent(_: &mut Endpoint, _: Time, _: CallKey, _: &CallEvent) {}

fn end(pair: &Pair, party: Party) -> CallEnd {
    let mut ends =
        pair.of(party).into_iter().filter_map(|e| if let CallEvent::Ended(end) = e { Some(end) } else { None });
    let end = ends.next().expect("the call ended").clone();
    assert_eq!(ends.next(), None, "one end a call");
    end
}

pub(super) fn bobs_call(pair: &Pair) -> CallKey {
    pair.events.iter().find(|(party, _, _)| *party == Party::Bob).expect("a call came in").1
}

#[test]
fn a_call_is_answered_and_hung_up() {
    let mut pair = Pair::new(1, answers);
    let call = pair.call();
    pair.run(1000);
    let alice = pair.of(Party::Alice);
    assert_eq!(alice[0], &CallEvent::Trying);
    assert!(matches!(alice[1], CallEvent::Provisional { code: 180, sdp: None, .. }));
    let CallEvent::Answered { code: 200, media, .. } = alice[2] else { panic!("{alice:?}") };
    assert_eq!((media.codec.as_str(), media.event_payload_type, media.ptime_ms), ("PCMU", Some(101), 20));
    assert_eq!((media.remote_rtp.to_string(), media.remote_rtcp.port()), ("10.0.0.2:4000".into(), 4001));
    let bob = pair.of(Party::Bob);
    let CallEvent::Incoming { from, to, headers, call_id, .. } = bob[0] else { panic!("{bob:?}") };
    assert_eq!(
        (from.display.as_deref(), from.uri.as_str(), to.uri.as_str()),
        (Some("Alice"), "sip:alice@10.0.0.1", "sip:bob@10.0.0.2")
    );
    let own: Vec<_> = headers.iter().filter(|(n, _)| n.starts_with("X-")).map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(own, ["X-One=1", "X-Two=2"]);
    assert_eq!(pair.alice.call_id(call), Some(call_id.as_str()));
    assert_eq!(bob[1], &CallEvent::Confirmed { sdp: None });

    pair.alice.hangup(pair.now, call, 16, "Normal call clearing");
    pair.run(100);
    let (alice, bob) = (end(&pair, Party::Alice), end(&pair, Party::Bob));
    assert_eq!((alice.kind, alice.by_remote, alice.q850_cause), (EndKind::LocalHangup, false, Some(16)));
    assert_eq!(
        (bob.kind, bob.by_remote, bob.q850_cause, bob.text.as_str()),
        (EndKind::RemoteBye, true, Some(16), "Normal call clearing")
    );
    assert_eq!((pair.count(Party::Alice, "BYE"), pair.count(Party::Bob, "SIP/2.0 200")), (1, 2));
    pair.run(80_000);
    assert!(pair.alice.is_idle() && pair.bob.is_idle(), "nothing is left behind");
}

#[test]
fn calls_survive_loss_both_ways() {
    let mut retransmitted = 0;
    for seed in 0..200 {
        let mut pair = Pair::new(seed, answers);
        (pair.loss, pair.jitter_ms) = (0.3, 20);
        let call = pair.call();
        pair.run(31_000);
        let up = pair.of(Party::Alice).iter().any(|e| matches!(e, CallEvent::Answered { .. }));
        assert!(up, "seed {seed}: {:?}", pair.sent);
        let key = bobs_call(&pair);
        if seed % 2 == 0 {
            pair.alice.hangup(pair.now, call, 16, "x")
        } else {
            pair.bob.hangup(pair.now, key, 16, "x")
        }
        pair.run(100_000);
        end(&pair, Party::Alice);
        end(&pair, Party::Bob);
        assert!(pair.alice.is_idle() && pair.bob.is_idle(), "seed {seed}");
        retransmitted += pair.count(Party::Alice, "INVITE") - 1;
    }
    assert!(retransmitted > 50, "the network did lose: {retransmitted}");
}

#[test]
fn a_ringing_call_is_cancelled() {
    let mut pair = Pair::new(2, rings);
    let call = pair.call();
    pair.run(5000);
    pair.alice.cancel(pair.now, call);
    pair.run(1000);
    assert_eq!(end(&pair, Party::Alice).kind, EndKind::Cancelled);
    let bob = end(&pair, Party::Bob);
    assert_eq!((bob.kind, bob.sip_code, bob.by_remote), (EndKind::Cancelled, Some(487), true));
    assert_eq!(
        (pair.count(Party::Alice, "CANCEL"), pair.count(Party::Alice, "ACK"), pair.count(Party::Bob, "SIP/2.0 487")),
        (1, 1, 1)
    );
    pair.run(80_000);
    assert!(pair.alice.is_idle() && pair.bob.is_idle());
}

#[test]
fn a_cancel_before_any_response_waits_for_one() {
    let mut pair = Pair::new(3, rings);
    let call = pair.call();
    pair.alice.cancel(pair.now, call);
    pair.run(5);
    assert_eq!(pair.count(Party::Alice, "CANCEL"), 0);
    pair.run(1000);
    assert_eq!((pair.count(Party::Alice, "CANCEL"), pair.count(Party::Bob, "SIP/2.0 487")), (1, 1));
}

#[test]
fn an_answer_that_crosses_a_cancel_is_acknowledged_and_ended() {
    let mut pair = Pair::new(4, rings);
    let call = pair.call();
    pair.run(1000);
    pair.alice.hangup(pair.now, call, 102, "Too long");
    let key = bobs_call(&pair);
    let CallEvent::Incoming { sdp: Some(sdp), .. } = pair.of(Party::Bob)[0].clone() else { panic!() };
    pair.bob.answer(pair.now, key, answer_to(&sdp));
    pair.run(1000);
    assert_eq!(end(&pair, Party::Alice).kind, EndKind::LocalHangup);
    let bob = end(&pair, Party::Bob);
    assert_eq!((bob.kind, bob.q850_cause), (EndKind::RemoteBye, Some(102)));
    let lines: Vec<_> =
        pair.sent.iter().filter(|(_, p, _)| *p == Party::Alice).map(|(_, _, l)| l.split(' ').next().unwrap()).collect();
    assert_eq!(lines, ["INVITE", "CANCEL", "ACK", "BYE"]);
    pair.run(80_000);
    assert!(pair.alice.is_idle() && pair.bob.is_idle());
}

#[test]
fn early_media_is_reported() {
    let mut pair = Pair::new(5, |bob, now, call, event| {
        if let CallEvent::Incoming { sdp: Some(sdp), .. } = event {
            bob.ring(now, call, 183, Some(answer_to(sdp)));
        }
    });
    pair.call();
    pair.run(1000);
    let alice = pair.of(Party::Alice);
    let CallEvent::Provisional { code: 183, sdp: Some(_), media: Some(media), .. } = alice[1] else {
        panic!("{alice:?}")
    };
    assert_eq!(media.remote_rtp.to_string(), "10.0.0.2:4000");
}

#[test]
fn a_busy_line_says_why() {
    let mut pair = Pair::new(6, |bob, now, call, event| {
        if let CallEvent::Incoming { .. } = event {
            bob.reject(now, call, 486, Some(17));
        }
    });
    pair.call();
    pair.run(1000);
    let alice = end(&pair, Party::Alice);
    assert_eq!((alice.kind, alice.sip_code, alice.q850_cause), (EndKind::Refused, Some(486), Some(17)));
    assert_eq!((alice.text.as_str(), alice.by_remote, alice.retry_after), ("Busy Here", true, false));
    assert_eq!((pair.count(Party::Bob, "SIP/2.0 486"), pair.count(Party::Alice, "ACK")), (1, 1));
}

const DEMANDS: [(fn() -> Demand, u16); 4] = [
    (|| Demand { algorithms: vec![Algorithm::Md5], ..Demand::new("r", "u", "secret") }, 401),
    (|| Demand { algorithms: vec![Algorithm::Sha256], ..Demand::new("r", "u", "secret") }, 401),
    (|| Demand { algorithms: vec![Algorithm::Md5], proxy: true, ..Demand::new("r", "u", "secret") }, 407),
    (|| Demand { proxy: true, qop: Qop::AuthInt, ..Demand::new("r", "u", "secret") }, 407),
];

/// Answers whoever meets demand `N`.
fn gate<const N: usize>(bob: &mut Endpoint, now: Time, call: CallKey, event: &CallEvent) {
    if let CallEvent::Incoming { sdp: Some(sdp), .. } = event
        && bob.authorize(now, call, &DEMANDS[N].0())
    {
        bob.answer(now, call, answer_to(sdp));
    }
}

#[test]
fn digest_lets_in_who_knows_the_password() {
    let scripts = [gate::<0>, gate::<1>, gate::<2>, gate::<3>];
    for (script, (_, code)) in scripts.into_iter().zip(DEMANDS) {
        let call = |who| {
            let mut pair = Pair::new(7, script);
            pair.call_as(who);
            pair.run(2000);
            pair
        };
        let pair = call(Some(("u", "secret")));
        let up = pair.of(Party::Alice).iter().any(|e| matches!(e, CallEvent::Answered { .. }));
        assert!(up, "{:?}", pair.sent);
        assert_eq!((pair.count(Party::Alice, "INVITE"), pair.count(Party::Bob, &format!("SIP/2.0 {code}"))), (2, 1));

        let wrong = end(&call(Some(("u", "wrong"))), Party::Alice);
        assert_eq!((wrong.kind, wrong.sip_code, wrong.by_remote), (EndKind::AuthFailed, Some(403), true));
        let none = end(&call(None), Party::Alice);
        assert_eq!((none.kind, none.sip_code), (EndKind::AuthFailed, Some(code)));
    }
}

#[test]
fn a_bye_that_nobody_answers_ends_at_once_and_gives_up_after_32_s() {
    let mut pair = Pair::new(8, answers);
    let call = pair.call();
    pair.run(1000);
    pair.loss = 1.0;
    pair.alice.hangup(pair.now, call, 16, "x");
    pair.run(0);
    assert_eq!(end(&pair, Party::Alice).kind, EndKind::LocalHangup);
    pair.run(60_000);
    assert_eq!(pair.count(Party::Alice, "BYE"), 11, "first and ten repetitions (timer E)");
    assert!(pair.alice.is_idle());
}

#[test]
fn both_may_hang_up_at_once() {
    let mut pair = Pair::new(9, answers);
    let call = pair.call();
    pair.run(1000);
    let key = bobs_call(&pair);
    pair.alice.hangup(pair.now, call, 16, "x");
    pair.bob.hangup(pair.now, key, 16, "x");
    pair.run(100);
    for party in [Party::Alice, Party::Bob] {
        assert_eq!(end(&pair, party).kind, EndKind::LocalHangup);
        assert_eq!(pair.count(party, "BYE"), 1);
    }
    assert_eq!((pair.count(Party::Alice, "SIP/2.0 200"), pair.count(Party::Bob, "SIP/2.0 481")), (1, 0));
}

#[test]
fn nobody_there_is_a_timeout_after_32_s() {
    let mut pair = Pair::new(10, silent);
    pair.loss = 1.0;
    pair.call();
    pair.run(31_900);
    assert!(pair.of(Party::Alice).is_empty());
    assert_eq!(pair.count(Party::Alice, "INVITE"), 7);
    pair.run(200);
    let alice = end(&pair, Party::Alice);
    assert_eq!((alice.kind, alice.sip_code, alice.by_remote), (EndKind::Timeout, None, false));
}

#[test]
fn an_unreachable_port_is_reported() {
    let mut pair = Pair::new(11, silent);
    pair.loss = 1.0;
    pair.call();
    pair.run(5);
    pair.alice.unreachable(pair.now, &crate::Hop::udp(crate::testing::address(Party::Bob)));
    pair.run(5);
    assert_eq!(end(&pair, Party::Alice).kind, EndKind::NotReachable);
}

#[test]
fn an_answer_without_ack_is_repeated_then_given_up() {
    let mut pair = Pair::new(12, rings);
    pair.call();
    pair.run(1000);
    let key = bobs_call(&pair);
    pair.loss = 1.0;
    pair.bob.answer(pair.now, key, offer(2).session().to_string());
    pair.run(40_000);
    assert_eq!(pair.count(Party::Bob, "SIP/2.0 200"), 11);
    assert_eq!((end(&pair, Party::Bob).kind, pair.count(Party::Bob, "BYE") > 0), (EndKind::Timeout, true));
}

#[test]
fn a_call_that_nobody_takes_is_refused_in_the_end() {
    let mut pair = Pair::new(16, rings);
    pair.call();
    pair.run(299_000);
    assert_eq!(pair.count(Party::Bob, "SIP/2.0 480"), 0);
    pair.run(2000);
    assert_eq!((end(&pair, Party::Bob).kind, end(&pair, Party::Alice).sip_code), (EndKind::Timeout, Some(480)));
}

#[test]
fn a_hangup_before_the_ack_waits_for_it() {
    let mut pair = Pair::new(13, |bob, now, call, event| {
        if let CallEvent::Incoming { sdp: Some(sdp), .. } = event {
            bob.answer(now, call, answer_to(sdp));
            bob.hangup(now, call, 16, "x");
        }
    });
    pair.call();
    pair.run(12);
    assert_eq!((end(&pair, Party::Bob).kind, pair.count(Party::Bob, "BYE")), (EndKind::LocalHangup, 0));
    pair.run(1000);
    assert_eq!((end(&pair, Party::Alice).kind, pair.count(Party::Bob, "BYE")), (EndKind::RemoteBye, 1));
}

#[test]
fn an_answer_without_a_common_codec_is_ended() {
    let mut pair = Pair::new(14, |bob, now, call, event| {
        if let CallEvent::Incoming { .. } = event {
            bob.answer(now, call, "v=0\r\no=- 1 1 IN IP4 10.0.0.2\r\ns=-\r\nt=0 0\r\nm=audio 0 RTP/AVP 0\r\n".into());
        }
    });
    pair.call();
    pair.run(1000);
    let alice = end(&pair, Party::Alice);
    assert_eq!((alice.kind, alice.sip_code), (EndKind::NoMedia, Some(200)));
    assert_eq!(alice.text, "Answer without usable media: no audio stream over RTP");
    assert_eq!((pair.count(Party::Alice, "ACK"), pair.count(Party::Alice, "BYE")), (1, 1));
}

#[test]
fn an_answer_without_keys_to_an_offer_that_requires_them_is_ended() {
    let mut pair = Pair::new(14, |bob, now, call, event| {
        if let CallEvent::Incoming { .. } = event {
            bob.answer(now, call, offer(2).session().to_string());
        }
    });
    let suite = sdp::CryptoSuite::AeadAes128Gcm;
    let key = sdp::KeySalt::new(suite, &[7; 28]).unwrap();
    let crypto = vec![sdp::Crypto { tag: 1, suite, key }];
    pair.call_offering(&sdp::Offer { crypto, crypto_required: true, ..offer(1) });
    pair.run(1000);
    let alice = end(&pair, Party::Alice);
    assert_eq!((alice.kind, alice.sip_code, alice.q850_cause), (EndKind::NoMedia, Some(200), Some(88)));
    assert!(
        alice.text.ends_with("no usable encryption of the audio stream (a=crypto, a=fingerprint)"),
        "{}",
        alice.text
    );
    assert_eq!((pair.count(Party::Alice, "ACK"), pair.count(Party::Alice, "BYE")), (1, 1));
}

/// Places a call, and follows the redirect that comes. Nothing goes to its target before, though the call went there.
fn call_and_follow(pair: &mut Pair) {
    let call = pair.call();
    pair.run(1000);
    assert_eq!(pair.count(Party::Alice, "INVITE"), 1);
    let target = pair.events.iter().find_map(|(_, _, event)| match event {
        CallEvent::Redirected { target } => target.socket(),
        _ => None,
    });
    assert!(target.is_some(), "{:?}", pair.events);
    pair.alice.take_destinations(pair.now, call, target.map(Hop::udp));
    pair.run(1000);
}

#[test]
fn a_redirect_is_followed_once() {
    let mut pair = Pair::new(15, |bob, now, call, event| match event {
        CallEvent::Incoming { request_uri, .. } if request_uri == "sip:bob@10.0.0.2" => {
            let contacts = "<sip:low@10.0.0.2>;q=0.1, <sip:new@10.0.0.2:5060?Subject=x>;q=0.7".to_owned();
            bob.reject_with(now, call, 302, &[("Contact", contacts)]);
        }
        CallEvent::Incoming { .. } => bob.reject_with(now, call, 302, &[("Contact", "<sip:x@10.0.0.2>".to_owned())]),
        _ => {}
    });
    call_and_follow(&mut pair);
    let uris: Vec<_> =
        pair.sent.iter().filter(|(_, _, l)| l.starts_with("INVITE")).map(|(_, _, l)| l.as_str()).collect();
    assert_eq!(uris, ["INVITE sip:bob@10.0.0.2 SIP/2.0", "INVITE sip:new@10.0.0.2:5060 SIP/2.0"]);
    let alice = end(&pair, Party::Alice);
    assert_eq!((alice.kind, alice.sip_code), (EndKind::Refused, Some(302)));
}

#[test]
fn the_same_request_goes_through_the_proxy_that_is_named() {
    let uris = |mut pair: Pair| {
        call_and_follow(&mut pair);
        let lines = pair.sent.into_iter().map(|(_, _, line)| line);
        lines.filter(|line| line.starts_with("INVITE")).collect::<Vec<String>>()
    };
    let first = "INVITE sip:bob@10.0.0.2 SIP/2.0";
    let use_proxy = uris(Pair::new(15, |bob, now, call, event| {
        if matches!(event, CallEvent::Incoming { .. }) {
            bob.reject_with(now, call, 305, &[("Contact", "<sip:10.0.0.2;lr>".to_owned())]);
        }
    }));
    assert_eq!(use_proxy, [first, first]);
    let moved = uris(Pair::new(15, |bob, now, call, event| {
        if matches!(event, CallEvent::Incoming { .. }) {
            bob.reject_with(now, call, 302, &[("Contact", "<sip:10.0.0.2;lr>".to_owned())]);
        }
    }));
    assert_eq!(moved, [first, "INVITE sip:10.0.0.2;lr SIP/2.0"]);
}

#[test]
fn the_same_seed_gives_the_same_call() {
    let run = |seed| {
        let mut pair = Pair::new(seed, answers);
        pair.loss = 0.2;
        let call = pair.call();
        pair.run(10_000);
        pair.alice.hangup(pair.now, call, 16, "x");
        pair.run(60_000);
        (pair.sent, format!("{:?}", pair.events))
    };
    assert_eq!(run(21), run(21));
    assert_ne!(run(21).1, run(22).1);
}
