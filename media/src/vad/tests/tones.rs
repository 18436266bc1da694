//! Speech directly behind a tone of the network, as when a ringback runs past the answer, and speech in the first
//! packet.

use super::*;

/// A tone of the network: its name, its two frequencies in Hz (equal: one sinusoid), and the length of a burst and of a
/// pause in milliseconds.
type NetworkTone = (&'static str, [f64; 2], [usize; 2]);

const TONES: [NetworkTone; 7] = [
    ("North American ringback", [440.0, 480.0], [2000, 4000]),
    ("European ringback", [425.0, 425.0], [1000, 4000]),
    ("British ringback", [400.0, 450.0], [400, 200]),
    ("Australian ringback", [400.0, 425.0], [400, 200]),
    ("dial tone", [350.0, 440.0], [30_000, 0]),
    ("European dial tone", [425.0, 425.0], [30_000, 0]),
    ("comfort beep", [1400.0, 1400.0], [200, 30_000]),
];

/// Sentences that begin with a sound that is loud at once.
const LOUD_AT_ONCE: [usize; 5] = [0, 1, 2, 3, 4];

/// Returns `ms` of a tone that began `into_ms` before, at this peak.
fn sound((_, hz, [on_ms, off_ms]): NetworkTone, peak: f64, into_ms: usize, ms: usize) -> Vec<i16> {
    let wave = |at: usize, hz: f64| (hz * std::f64::consts::TAU * at as f64 / 16_000.0).sin();
    let is_on = |at: usize| at / 16 % (on_ms + off_ms) < on_ms;
    let level = |at: usize| if is_on(at) { peak / 2.0 * (wave(at, hz[0]) + wave(at, hz[1])) } else { 0.0 };
    (into_ms * 16..(into_ms + ms) * 16).map(|at| level(at) as i16).collect()
}

/// Returns a sentence from its first 10 ms above -45 dBov on.
fn greeting(n: usize, voice: &str) -> Vec<i16> {
    let (said, _) = say(SENTENCES[n], voice);
    let first = said.chunks_exact(BLOCK).position(|block| dbov(power(block)) > -45.0).expect("speech");
    said[first * BLOCK..].to_vec()
}

fn hear_behind(before: &[i16], said: &[i16], codec: Codec) -> Vec<i16> {
    let mut pcm = [before, said, &[0; 24_000]].concat();
    pcm.truncate(pcm.len() / FRAME * FRAME);
    through(&pcm, codec)
}

/// Returns how far the first onset is from the first sound above -50 dBov of the speech alone, in milliseconds; `None`
/// when no speech is found.
fn onset_apart_ms(before: &[i16], said: &[i16], codec: Codec) -> Option<Sample> {
    let alone = hear_behind(&vec![0; before.len()], said, codec);
    let truth = alone.chunks_exact(BLOCK).position(|block| dbov(power(block)) > LEAST_DBOV).expect("speech") * BLOCK;
    let first = edges(&mut VoiceActivity::new(), &hear_behind(before, said, codec)).into_iter().next()?;
    let Edge::Started { onset } = first else { panic!("an end without an onset") };
    Some((onset - truth as Sample) / PER_MS)
}

/// Asserts that each onset is found, and near the truth.
fn check(case: &str, found: Vec<Option<Sample>>, most_ms: Sample) {
    let apart: Vec<Sample> = found.iter().flatten().copied().collect();
    let (least, most) = (apart.iter().min(), apart.iter().max());
    println!("{case}: {} onsets, {least:?} to {most:?} ms", found.len());
    assert_eq!(apart.len(), found.len(), "{case}: speech was not found");
    assert!(within(&apart, 1.0) <= most_ms, "{case}: {apart:?}");
}

/// Returns the distances of the onsets of all greetings behind a beginning of the channel.
fn behind(codec: Codec, before: impl Fn(usize) -> Vec<i16>) -> Vec<Option<Sample>> {
    let said = ["slt", "rms", "awb", "kal16"].iter().flat_map(|voice| LOUD_AT_ONCE.map(|n| greeting(n, voice)));
    said.enumerate().map(|(n, said)| onset_apart_ms(&before(n), &said, codec)).collect()
}

#[test]
fn speech_behind_a_tone_is_placed_as_after_silence() {
    for tone in TONES {
        for codec in [Codec::Pcmu, Codec::G722] {
            // The tone ends at any place of a frame, and in the middle of a burst.
            let (ms, peak) =
                (|n: usize| (67 + 37 * n).min(tone.2[0]), |n: usize| if n.is_multiple_of(2) { 2000.0 } else { 9000.0 });
            let after_silence = |n: usize| [vec![0; 9600], sound(tone, peak(n), 0, ms(n))].concat();
            let case = format!("{} in {codec:?}", tone.0);
            check(&case, behind(codec, after_silence), 20);
            let from_the_first_packet = |n: usize| sound(tone, peak(n), tone.2[0] / 3, ms(n + 2) * 2 / 3);
            check(&format!("{case}, from the first packet"), behind(codec, from_the_first_packet), 40);
        }
    }
}

#[test]
fn speech_in_the_first_packet_is_placed_there() {
    for codec in [Codec::Pcmu, Codec::Pcma, Codec::G722] {
        let case = format!("first packet in {codec:?}");
        check(&case, behind(codec, |n| vec![0; n % 5 * 80]), 40);
    }
}

#[test]
fn speech_ends_where_a_tone_begins() {
    for tone in TONES {
        for (n, voice) in ["slt", "rms", "awb", "kal16"].iter().enumerate() {
            let (said, sound_at) = say(SENTENCES[n], voice);
            let said = &said[..sound_at.end];
            let before = [&[0; 9600][..], said].concat();
            let pcm = hear_behind(&before, &sound(tone, 4000.0, 0, 1000), Codec::Pcmu);
            let found = spans(&pcm);
            let apart_ms = (found[0].1 - before.len() as Sample) / PER_MS;
            assert!(found.len() == 1 && apart_ms.abs() <= 40, "{} behind {voice}: {apart_ms} ms, {found:?}", tone.0);
        }
    }
}

#[test]
fn speech_under_a_tone_is_known_as_such() {
    let found = |tone: NetworkTone, tone_ms: usize, n: usize, voice: &str| {
        let said = greeting(n, voice);
        let mut pcm = [&sound(tone, 4000.0, 0, tone_ms.min(700))[..], &said, &[0; 24_000]].concat();
        pcm.truncate(pcm.len() / FRAME * FRAME);
        if tone_ms > 700 {
            let under = sound(tone, 4000.0, 0, pcm.len() / 16);
            pcm.iter_mut().zip(under).skip(700 * 16).for_each(|(x, tone)| *x = x.saturating_add(tone));
        }
        let mut vad = VoiceActivity::new();
        for (n, frame) in through(&pcm, Codec::Pcmu).as_chunks::<FRAME>().0.iter().enumerate() {
            if let Some(Edge::Started { onset }) = vad.push(frame, (n * FRAME) as Sample) {
                return Some((onset / PER_MS - 700, vad.is_under_tone(onset)));
            }
        }
        None
    };
    let (mut all, mut warned) = (0, 0);
    let long = TONES.into_iter().filter(|tone| tone.2[0] >= 1000);
    for (tone, voice) in long.flat_map(|tone| ["slt", "rms", "awb", "kal16"].map(|voice| (tone, voice))) {
        for n in LOUD_AT_ONCE {
            let (behind, under) = (found(tone, 700, n, voice), found(tone, 30_000, n, voice));
            println!("{} {voice} {n}: behind {behind:?}, under {under:?}", tone.0);
            assert!(matches!(behind, Some((apart_ms, false)) if apart_ms.abs() <= 40), "{behind:?}");
            assert!(matches!(under, Some((apart_ms, _)) if apart_ms.abs() <= 60), "{under:?}");
            (all, warned) = (all + 1, warned + usize::from(under.is_some_and(|(_, is_under)| is_under)));
        }
    }
    // The others are as near as speech in silence.
    assert!(warned * 10 >= all * 9, "{warned} of {all} are known");
}
