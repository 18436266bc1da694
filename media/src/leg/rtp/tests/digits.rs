//! Telephone events between two legs over a bad network: thousands of digits, each of which has to arrive once and in
//! place.

use super::*;
use crate::rtp::packet::digit_of;

/// Impairments of the digits of a row.
#[derive(Copy, Clone, Debug)]
struct Trouble {
    tone_ms: u32,
    gap_ms: u32,
    net: NetemSpec,
    /// True when the sender sets no marker.
    no_marker: bool,
    /// Share of the digits all of whose end packets are lost.
    endless: f64,
    /// Time for which end packets are held back: the next digit has begun when they come.
    late_ends_ms: u64,
}

const LOSSY: NetemSpec = NetemSpec {
    delay_ms: 20.0,
    jitter_ms: 15.0,
    overtake: false,
    loss: Loss::Independent(0.05),
    reorder: 0.0,
    reorder_ms: 0.0,
    duplicate: 0.0,
    rate_bps: 0,
    queue_ms: 0.0,
};
const TROUBLE: Trouble =
    Trouble { tone_ms: 40, gap_ms: 40, net: LOSSY, no_marker: false, endless: 0.0, late_ends_ms: 0 };

const DIGITS: usize = 4000;

/// Result of a row of digits.
#[derive(Debug, PartialEq)]
struct Score {
    /// Digits that came once, at their place, in order.
    right: usize,
    /// Number of other digits that were reported.
    wrong: usize,
}

fn score(trouble: Trouble, seed: u64) -> Score {
    let origin = Time::from_millis(ORIGIN_MS);
    let mut near = RtpLeg::new(params(Codec::Pcmu), Seed(seed), origin);
    let mut far = RtpLeg::new(params(Codec::Pcmu), Seed(seed + 1), origin);
    let mut draws = Seed(seed).stream("digits");
    let mut net = Netem::new(trouble.net, Seed(seed).stream("netem"));
    let (mut held, mut heard): (Vec<(u64, Vec<u8>)>, Vec<ReceivedDigit>) = Default::default();
    let (mut sent, mut endless): (Vec<(char, Sample)>, bool) = (Vec::new(), false);
    let every = u64::from(trouble.tone_ms + trouble.gap_ms) / 20;
    for tick in 0..DIGITS as u64 * every + 100 {
        let now = Time::from_millis(ORIGIN_MS + tick * 20);
        if tick >= 50 && (tick - 50) % every == 0 && sent.len() < DIGITS {
            // The same digit twice in a row is as likely as any other.
            let digit = digit_of(draws.index(16) as u8).unwrap();
            assert!(near.start_event(digit, trouble.tone_ms));
            endless = draws.unit() < trouble.endless;
            sent.push((digit, (tick * 20 + trouble.net.delay_ms as u64) as Sample * 16));
        }
        near.send(now, &SILENCE);
        let mut bytes = near.packet().expect("one a tick").to_vec();
        let end = bytes[1] & 0x7f == 101 && bytes[13] & 0x80 != 0;
        if trouble.no_marker {
            bytes[1] &= 0x7f;
        }
        if end && trouble.late_ends_ms > 0 {
            held.push((tick + trouble.late_ends_ms / 20, bytes));
        } else if !(end && endless) {
            net.send(now, &bytes);
        }
        held.retain(|(due, bytes)| {
            if *due == tick {
                net.send(now, bytes);
            }
            *due > tick
        });
        while let Some((arrived, bytes)) = net.receive(now) {
            far.receive(arrived, &bytes);
        }
        far.listen(now, &mut Scratch::default());
        heard.extend(std::iter::from_fn(|| far.digit()));
    }
    // A row is right as far as it can be laid over what was sent, in order; the network's least delay is a few samples
    // off.
    let (mut right, mut next) = (0, 0);
    for digit in &heard {
        let place = sent[next..].iter().position(|(sent, at)| digit.digit == *sent && (digit.from - at).abs() < 320);
        if let Some(place) = place {
            right += 1;
            next += place + 1;
        }
    }
    Score { right, wrong: heard.len() - right }
}

#[test]
fn digits_survive_five_percent_loss() {
    let late = Trouble { late_ends_ms: 100, ..TROUBLE };
    for trouble in [
        Trouble { net: NetemSpec::default(), ..TROUBLE },
        TROUBLE,
        Trouble { tone_ms: 100, gap_ms: 100, ..TROUBLE },
        Trouble { tone_ms: 60, gap_ms: 60, ..TROUBLE },
        Trouble { no_marker: true, ..TROUBLE },
        Trouble { net: NetemSpec { duplicate: 0.3, ..LOSSY }, ..TROUBLE },
        Trouble { net: NetemSpec { reorder: 0.1, reorder_ms: 50.0, ..LOSSY }, ..TROUBLE },
        late,
        Trouble { no_marker: true, net: NetemSpec { duplicate: 0.3, ..LOSSY }, ..late },
        Trouble { endless: 0.3, tone_ms: 100, ..TROUBLE },
    ] {
        let score = score(trouble, 11);
        println!("{score:?} of {DIGITS}: {trouble:?}");
        assert!(score.right * 1000 >= DIGITS * 999 && score.wrong * 1000 <= DIGITS, "{score:?} {trouble:?}");
    }
}

/// Bursts of three packets on average take all seven packets of a 100 ms digit in 0.4 % of the cases: no receiver can
/// know of it.
#[test]
fn bursts_take_only_digits_of_which_nothing_came() {
    let loss = Loss::Burst { enter: 0.017_54, leave: 0.333_33, loss: 1.0 };
    let trouble = Trouble { tone_ms: 100, gap_ms: 100, net: NetemSpec { loss, ..LOSSY }, ..TROUBLE };
    let score = score(trouble, 11);
    println!("{score:?} of {DIGITS}: {trouble:?}");
    assert!(score.right * 1000 >= DIGITS * 993 && score.wrong == 0, "{score:?}");
}
