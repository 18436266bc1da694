//! Handshakes between two sides in memory, in the order and with the losses of a test.

use std::time::{Duration, Instant};

use ringer_media::call::MediaChannel;
use ringer_media::rtp::srtp::SrtpParams;

use super::*;

/// Sides of a test: the client, and the one who waits.
struct Pair {
    channels: [Channel; 2],
    now: Instant,
    keys: [Option<SrtpParams>; 2],
}

fn expecting(of: &Identity, active: bool) -> Expected {
    Expected::from(&Handshake { fingerprints: vec![of.fingerprint()], active, tls_id: None })
}

fn identity() -> Identity {
    Identity::new().expect("the system gives randomness")
}

/// Returns any moment: times of tests count from here.
#[expect(clippy::disallowed_methods, reason = "an instant has no other beginning")]
fn beginning() -> Instant {
    Instant::now()
}

impl Pair {
    /// Returns a pair with `sides` in its order; each expects the certificate of the one that is named.
    fn new(sides: [(&Identity, &Identity); 2]) -> Pair {
        let now = beginning();
        let [client, server] = sides;
        let channels = [
            Channel::new(client.0, expecting(client.1, true), now),
            Channel::new(server.0, expecting(server.1, false), now),
        ];
        Pair { channels, now, keys: [None, None] }
    }

    /// Takes what a side has to say: its datagrams.
    fn drain(&mut self, side: usize) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        while let Some(news) = self.channels[side].poll() {
            match news {
                News::Send(datagram) => datagrams.push(datagram),
                News::Keys(keys) => self.keys[side] = Some(keys),
            }
        }
        datagrams
    }

    /// Lets both talk for so long, in steps of 100 ms; `arrives` says whether the numbered datagram gets through.
    fn run(&mut self, for_ms: u64, mut arrives: impl FnMut(usize) -> bool) {
        let mut number = 0;
        for _ in 0..for_ms / 100 {
            for _ in 0..8 {
                for side in 0..2 {
                    for datagram in self.drain(side) {
                        assert!(is_dtls(&datagram), "it is told apart by its first byte");
                        number += 1;
                        if arrives(number) {
                            self.channels[1 - side].receive(&datagram, self.now);
                        }
                    }
                }
            }
            self.now += Duration::from_millis(100);
            self.channels.iter_mut().for_each(|channel| channel.wake(self.now));
        }
    }

    /// True if both have keys, and each the other's.
    fn is_keyed(&self) -> bool {
        let [Some(client), Some(server)] = self.keys else { return false };
        assert_eq!((client.suite, client.send, client.receive), (server.suite, server.receive, server.send));
        assert_ne!(client.send, client.receive);
        true
    }
}

#[test]
fn both_sides_come_to_the_same_keys() {
    let (one, two) = (identity(), identity());
    let mut pair = Pair::new([(&one, &two), (&two, &one)]);
    pair.run(100, |_| true);
    assert!(pair.is_keyed());
    assert!(pair.channels.iter().all(|channel| channel.is_done() && channel.fault().is_none()));
    let mut other = Pair::new([(&one, &two), (&two, &one)]);
    other.run(100, |_| true);
    assert_ne!(pair.keys, other.keys, "the next handshake has other keys");
}

#[test]
fn lost_datagrams_are_sent_again() {
    let (one, two) = (identity(), identity());
    for lost in 1..=6 {
        let mut pair = Pair::new([(&one, &two), (&two, &one)]);
        pair.run(4000, |number| number != lost);
        assert!(pair.is_keyed(), "without datagram {lost}");
    }
    for seed in 0..100 {
        let mut draws = ringer_media::seed::Seed(seed).stream("loss");
        let mut pair = Pair::new([(&one, &two), (&two, &one)]);
        pair.run(10_000, |_| draws.unit() >= 0.2);
        assert!(pair.is_keyed(), "without a fifth of them, seed {seed}");
    }
}

#[test]
fn a_certificate_of_another_fingerprint_brings_no_keys() {
    let (one, two, other) = (identity(), identity(), identity());
    // Either side may be the one that was told of another certificate.
    for wrong in 0..2 {
        let mut sides = [(&one, &two), (&two, &one)];
        sides[wrong].1 = &other;
        let mut pair = Pair::new(sides);
        pair.run(5000, |_| true);
        assert_eq!(pair.keys, [None, None]);
        assert_eq!(pair.channels[wrong].fault(), Some(&Fault::Certificate));
        assert!(matches!(pair.channels[1 - wrong].fault(), Some(Fault::Broken(_))), "it is told by an alert");
    }
}

#[test]
fn any_of_several_fingerprints_is_enough() {
    let (one, two, other) = (identity(), identity(), identity());
    let der = &two.certificate.certificate[0];
    for hash in HashFunction::ALL {
        let right = super::fingerprint(hash, der).expect("a digest of its length");
        let wrong = super::fingerprint(hash, &other.certificate.certificate[0]).expect("a digest of its length");
        let handshake = Handshake { fingerprints: vec![wrong, right], active: true, tls_id: None };
        let mut pair = Pair::new([(&one, &two), (&two, &one)]);
        pair.channels[0] = Channel::new(&one, Expected::from(&handshake), pair.now);
        pair.run(100, |_| true);
        assert!(pair.is_keyed(), "{hash:?}");
    }
}

/// Forged first datagrams from the agreed address do not keep the real ones out.
#[test]
fn a_forged_handshake_does_not_stand_in_the_way() {
    let (one, two, forger) = (identity(), identity(), identity());
    // The forger reads nothing of what is sent: its ClientHello alone arrives, many times over with other random
    // numbers.
    let mut pair = Pair::new([(&one, &two), (&two, &one)]);
    for _ in 0..10 {
        let mut blind = Channel::new(&forger, expecting(&two, true), pair.now);
        while let Some(News::Send(hello)) = blind.poll() {
            pair.channels[1].receive(&hello, pair.now);
        }
    }
    let first: Vec<News> = std::iter::from_fn(|| pair.channels[1].poll()).collect();
    assert_eq!(first.len(), 10, "each gets a cookie, and nothing that costs more");
    pair.run(100, |_| true);
    assert!(pair.is_keyed(), "blind");
    // The forger carries its handshake through to its certificate.
    let mut pair = Pair::new([(&forger, &two), (&two, &one)]);
    pair.run(300, |_| true);
    assert_eq!((pair.keys, pair.channels[1].fault()), ([None, None], Some(&Fault::Certificate)));
    pair.channels[0] = Channel::new(&one, expecting(&two, true), pair.now);
    pair.run(300, |_| true);
    assert!(pair.is_keyed(), "after another certificate");
}

/// The other side missed the end of the handshake, gave up, and begins anew: both come to new keys.
#[test]
fn who_is_done_takes_another_handshake_of_the_same_certificate() {
    let (one, two, forger) = (identity(), identity(), identity());
    let mut pair = Pair::new([(&one, &two), (&two, &one)]);
    pair.run(100, |_| true);
    let first = pair.keys;
    assert!(pair.is_keyed());
    pair.channels[0] = Channel::new(&forger, expecting(&two, true), pair.now);
    pair.run(3000, |_| true);
    assert_eq!(pair.keys, first, "nobody else's");
    pair.channels[0] = Channel::new(&one, expecting(&two, true), pair.now);
    pair.run(3000, |_| true);
    assert!(pair.is_keyed() && pair.keys != first);
}

#[test]
fn garbage_changes_nothing() {
    let (one, two) = (identity(), identity());
    let mut pair = Pair::new([(&one, &two), (&two, &one)]);
    let mut draws = ringer_media::seed::Seed(5).stream("garbage");
    let hello = pair.drain(0).remove(0);
    for _ in 0..2000 {
        let mut datagram = hello.clone();
        for _ in 0..=draws.index(8) {
            let at = draws.index(datagram.len());
            datagram[at] = draws.bits() as u8;
        }
        datagram.truncate(draws.index(hello.len()));
        pair.channels.iter_mut().for_each(|channel| channel.receive(&datagram, pair.now));
    }
    pair.drain(1);
    pair.channels[1].receive(&hello, pair.now);
    pair.run(9000, |_| true);
    assert!(pair.is_keyed());
    // A side that has keys keeps them, whatever comes.
    let keys = pair.keys;
    for first in [20, 21, 22, 23] {
        let alert = [&[first, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2][..], &[2, 40]].concat();
        pair.channels.iter_mut().for_each(|channel| channel.receive(&alert, pair.now));
    }
    pair.run(1000, |_| true);
    assert_eq!(pair.keys, keys);
    assert!(pair.channels.iter().all(Channel::is_done));
}

#[test]
fn datagrams_wait_in_order_and_in_bounds() {
    let (mut writer, mut reader) = queue();
    assert!(reader.pop().is_none());
    for round in 0..50u8 {
        let datagrams =
            [(MediaChannel::Rtp, vec![round; 1200]), (MediaChannel::Rtcp, vec![]), (MediaChannel::Rtp, vec![round; 1])];
        datagrams.iter().for_each(|(path, bytes)| assert!(writer.push(*path, bytes)));
        let taken: Vec<_> = std::iter::from_fn(|| reader.pop()).collect();
        assert_eq!(taken, datagrams);
    }
    let count =
        std::iter::repeat_with(|| writer.push(MediaChannel::Rtp, &[22; 2000])).take_while(|taken| *taken).count();
    assert_eq!(count, QUEUE_BYTES / 2003);
    assert_eq!(std::iter::from_fn(|| reader.pop()).count(), count, "what did not fit was left out whole");
}

#[test]
fn associations_go_on_or_begin_anew() {
    let (one, two) = (identity(), identity());
    let handshake_of = |of: &Identity, active, name: Option<&str>| {
        let tls_id = name.map(str::to_owned);
        Expected::from(&Handshake { fingerprints: vec![of.fingerprint()], active, tls_id })
    };
    let known = handshake_of(&one, true, Some("a"));
    assert!(known.is_same_association(&handshake_of(&one, false, Some("a"))));
    assert!(!known.is_same_association(&handshake_of(&one, true, Some("b"))));
    assert!(!known.is_same_association(&handshake_of(&one, true, None)));
    assert!(!known.is_same_association(&handshake_of(&two, true, Some("a"))));
    assert!(!format!("{one:?}").contains("key"), "{one:?}");
}
