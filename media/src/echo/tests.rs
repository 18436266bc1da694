//! Own speech that comes back, alone and under the other side's, through two codecs, against where that side truly
//! speaks.

use super::*;
use crate::codec::Codec;
use crate::vad::tests::{Channel, channel, through};

/// Returns the echo of `own` after `delay_ms`, `erl_db` down, through the codec on both ways.
fn echo(own: &[i16], codec: Codec, delay_ms: usize, erl_db: f64) -> Vec<i16> {
    let gain = 10f64.powf(-erl_db / 20.0);
    let mut back = vec![0; delay_ms * 16];
    back.extend(through(own, codec).iter().map(|&x| (f64::from(x) * gain).round() as i16));
    back.truncate(own.len());
    back
}

fn sum(a: &[i16], b: &[i16]) -> Vec<i16> {
    a.iter().zip(b.iter().chain(std::iter::repeat(&0))).map(|(a, b)| a.saturating_add(*b)).collect()
}

/// Returns the edges that a guard finds in a channel in which `own` is sent. Received audio comes `LATE` frames later,
/// as through a jitter buffer.
fn hear(guard: &mut EchoGuard, own: &[i16], heard: &[i16]) -> Vec<Edge> {
    const LATE: usize = 3;
    let frame = |pcm: &[i16], n: usize| -> Frame { pcm[n * FRAME..][..FRAME].try_into().expect("a frame") };
    let frames = own.len() / FRAME;
    let mut edges = Vec::new();
    for n in 0..frames + LATE {
        if n < frames {
            guard.take_sent((n * FRAME) as Sample, &frame(own, n));
        }
        if let Some(at) = n.checked_sub(LATE) {
            edges.extend(guard.push(&mut frame(heard, at), (at * FRAME) as Sample, true));
        }
    }
    edges.extend(guard.finish());
    edges
}

/// Returns the spans found: those nearer than 300 ms are joined, sounds that nobody yields to (200 ms) left out.
fn spans(edges: &[Edge]) -> Vec<(Sample, Sample)> {
    let mut spans: Vec<(Sample, Sample)> = Vec::new();
    for pair in edges.chunks(2) {
        let [Edge::Started { onset }, Edge::Ended { end }] = *pair else {
            panic!("an edge without its other: {pair:?}")
        };
        assert!(onset < end, "{pair:?}");
        match spans.last_mut() {
            Some(last) if onset - last.1 < 300 * PER_MS => last.1 = end,
            _ => spans.push((onset, end)),
        }
    }
    spans.retain(|span| span.1 - span.0 > 200 * PER_MS);
    spans
}

fn say_sentences(voice: &str, lead_ms: usize, seconds: usize) -> Vec<i16> {
    let mut pcm = channel(voice, lead_ms).pcm;
    pcm.truncate(seconds * 16_000);
    pcm
}

/// Delay that two ways through the resamplers add, in milliseconds.
fn detour_ms(codec: Codec) -> f64 {
    if codec.rate_hz() == 8000 { 8.75 } else { 2.75 }
}

#[test]
fn own_words_that_come_back_are_no_speech() {
    for (voice, codec) in [("slt", Codec::Pcmu), ("rms", Codec::G722), ("awb", Codec::Pcma), ("kal16", Codec::G722)] {
        let own = say_sentences(voice, 500, 12);
        for delay_ms in [0, 133, 600] {
            for erl_db in [0.0, 6.0, 20.0, 40.0] {
                let heard = through(&echo(&own, codec, delay_ms, erl_db), codec);
                let mut guard = EchoGuard::new();
                let edges = hear(&mut guard, &own, &heard);
                let case = format!("{voice} {codec:?} {delay_ms} ms {erl_db} dB");
                assert_eq!(edges, [], "{case}");
                let found = guard.figures().expect(&case);
                assert!((found.delay_ms - detour_ms(codec) - delay_ms as f64).abs() < 0.2, "{case}: {found:?}");
                assert!((found.erl_db - erl_db).abs() < 0.3, "{case}: {found:?}");
                assert!(guard.news().is_some() && guard.news().is_none(), "{case}: told once");
            }
        }
    }
}

/// Returns own speech that hardly pauses, as long as `len`.
fn unbroken(voice: &str, len: usize) -> Vec<i16> {
    let Channel { pcm, truth } = channel(voice, 0);
    let mut out = Vec::new();
    for (from, to) in truth.iter().cycle() {
        out.extend(&pcm[*from as usize..*to as usize]);
        out.resize(out.len() + 3200, 0);
        if out.len() > len {
            break;
        }
    }
    out.truncate(len);
    out
}

/// Returns the additional delays with which the other side is found, in milliseconds, against a call without own
/// speech. The second value counts spans in which that side does not speak.
fn lateness(plain: &[(Sample, Sample)], found: &[(Sample, Sample)]) -> (Vec<Option<Sample>>, usize) {
    let meets = |a: &(Sample, Sample), b: &(Sample, Sample)| a.0 < b.1 && a.1 > b.0;
    let late =
        |span: &(Sample, Sample)| found.iter().find(|found| meets(found, span)).map(|hit| (hit.0 - span.0) / PER_MS);
    let extra = found.iter().filter(|found| !plain.iter().any(|span| meets(span, found))).count();
    (plain.iter().map(late).collect(), extra)
}

#[test]
fn the_other_side_is_heard_over_own_words() {
    let pairs = [("slt", "rms"), ("rms", "slt"), ("awb", "kal16"), ("kal16", "kal16")];
    for codec in [Codec::Pcmu, Codec::G722] {
        let delays: &[usize] = if codec == Codec::G722 { &[300] } else { &[0, 120, 600] };
        let channels = pairs.map(|(own, other)| {
            let other = say_sentences(other, 3000, 22);
            let own = unbroken(own, other.len());
            let plain = hear(&mut EchoGuard::new(), &vec![0; own.len()], &through(&other, codec));
            let mut guard = EchoGuard::new();
            // A voice that merely speaks at the same time is no echo.
            assert_eq!(hear(&mut guard, &own, &through(&other, codec)), plain);
            assert_eq!(guard.figures(), None);
            (own, other, spans(&plain))
        });
        for erl_db in [6.0, 20.0, 40.0] {
            let (mut lates, mut extras) = (Vec::new(), 0);
            for &delay_ms in delays {
                for (own, other, plain) in &channels {
                    let heard = through(&sum(other, &echo(own, codec, delay_ms, erl_db)), codec);
                    let (late, extra) = lateness(plain, &spans(&hear(&mut EchoGuard::new(), own, &heard)));
                    lates.extend(late);
                    extras += extra;
                }
            }
            let missed = lates.iter().filter(|late| late.is_none()).count();
            let in_time = lates.iter().flatten().filter(|late| **late <= 60).count();
            let latest = lates.iter().flatten().max().expect("some are found");
            println!("{codec:?} {erl_db} dB: {} onsets, {in_time} in time, {latest} ms, {extras} extra", lates.len());
            assert_eq!((missed, in_time), (0, lates.len()), "{codec:?} {erl_db} dB: {lates:?}");
            assert_eq!(extras, 0, "{codec:?} {erl_db} dB: speech where nobody speaks");
        }
    }
}

#[test]
fn what_is_not_there_is_not_taken_out() {
    // The echo ends while own speech goes on; later it is there again, but later.
    let own = unbroken("slt", 20 * 16_000);
    let mut back = echo(&own, Codec::Pcmu, 150, 10.0);
    back[8 * 16_000..12 * 16_000].fill(0);
    let later = echo(&own, Codec::Pcmu, 260, 10.0);
    back[12 * 16_000..].copy_from_slice(&later[12 * 16_000..]);
    let mut guard = EchoGuard::new();
    let edges = hear(&mut guard, &own, &through(&back, Codec::Pcmu));
    assert_eq!(spans(&edges), [], "{edges:?}");
    let found = guard.figures().expect("there was an echo");
    assert!((found.delay_ms - 260.0 - detour_ms(Codec::Pcmu)).abs() < 0.2, "{found:?}");
}
