//! The timeline of the caller's own speech has its audible edges: in the band of the codec and at the audio quality.

use std::f64::consts::TAU;

use ringer_media::call::{EventKind, Kind, ProbeRates};
use ringer_media::codec::Codec;
use ringer_media::impair::AudioQuality;
use ringer_media::level::rms_dbov;
use ringer_media::testing::{Log, Rig, Voice};

const BLOCK: usize = 160;
const LEAST_DBOV: f64 = -50.0;

/// A part of an utterance: milliseconds and frequency.
type Part = (usize, f64);

/// Returns a hiss (or a hum) at the level of speech for each part.
fn sound(parts: &[Part]) -> Vec<i16> {
    let part =
        |&(ms, hz): &Part| (0..ms * 16).map(move |n| (2322.0 * (TAU * hz * n as f64 / 16_000.0).sin()).round() as i16);
    parts.iter().flat_map(part).collect()
}

fn params(codec: Codec) -> ringer_media::leg::MediaParams {
    ringer_media::leg::MediaParams {
        event_payload_type: Some(101),
        receive_event_payload_type: Some(101),
        fec: false,
        ..ringer_media::leg::MediaParams::new(codec)
    }
}

/// Plays `source` with a caller that says nothing but `parts`.
fn play(source: &str, codec: Codec, quality: AudioQuality, parts: &[Part]) -> Rig {
    let mut scenario = super::grammar::parse("edges", source, &super::voice()).expect("it is right");
    (scenario.media, scenario.call.audio_quality) = (params(codec), quality);
    let reversed: Vec<i16> = sound(parts).into_iter().rev().collect();
    let rig = super::play_as(&scenario, &super::voice(), Voice::of(&reversed).reverse());
    // Those of timestamps are written down for a clock of 8 kHz.
    if codec.rtp_clock_hz() == 8000 {
        assert_eq!(super::promises::broken(&scenario, &rig), [""; 0], "{codec:?} {quality:?}");
    }
    rig
}

/// Returns beginning and end of the caller's words of this kind, in milliseconds, by the timeline.
fn reported_extent(log: &Log, wanted: Kind) -> [f64; 2] {
    let at = |found: fn(&EventKind) -> Option<Kind>| {
        let event = log.events.iter().find(|event| found(&event.what) == Some(wanted)).expect("it is told");
        event.sample as f64 / 16.0
    };
    [
        at(|what| if let EventKind::SpeechStarted { kind, .. } = what { Some(*kind) } else { None }),
        at(|what| if let EventKind::SpeechEnded { kind, .. } = what { Some(*kind) } else { None }),
    ]
}

/// Returns the first and last 10 ms of `pcm` that are audible, in milliseconds.
fn measure_extent(pcm: &[i16]) -> [f64; 2] {
    let loud = |block: &[i16]| rms_dbov(block) > LEAST_DBOV;
    let blocks: Vec<bool> = pcm.chunks_exact(BLOCK).map(loud).collect();
    let (first, last) = (blocks.iter().position(|&loud| loud), blocks.iter().rposition(|&loud| loud));
    [first.expect("it is heard") as f64 * 10.0, (last.expect("it is heard") + 1) as f64 * 10.0]
}

const HIGH: AudioQuality = AudioQuality::HIGH;

#[test]
fn speech_begins_and_ends_where_the_far_side_hears_it() {
    let parts = [(150, 6000.0), (1000, 500.0), (150, 6000.0)];
    for (codec, quality, expect) in [
        (Codec::Pcmu, HIGH, [150.0, 1150.0]),
        (Codec::Pcma, HIGH, [150.0, 1150.0]),
        (Codec::L16Narrow, HIGH, [150.0, 1150.0]),
        (Codec::G722, HIGH, [0.0, 1300.0]),
        (Codec::L16Wide, HIGH, [0.0, 1300.0]),
        (Codec::Opus, HIGH, [0.0, 1300.0]),
        (Codec::L16Wide, AudioQuality::MEDIUM, [150.0, 1150.0]),
        (Codec::G722, AudioQuality::LOW, [150.0, 1150.0]),
        (Codec::Pcmu, AudioQuality::LOW, [150.0, 1150.0]),
        (Codec::Opus, AudioQuality { dropouts: 0, ..AudioQuality::HORRIBLE }, [150.0, 1150.0]),
    ] {
        let rig = play("caller opens \"My order please.\"\nuntil 4", codec, quality, &parts);
        let [from, to] = reported_extent(&rig.log, Kind::Opening);
        let begun = rig.log.clean.iter().position(|&x| x != 0).expect("something is said") as f64 / 16.0;
        let case = format!("{codec:?} {quality:?}: {} to {}", from - begun, to - begun);
        assert!((from - begun - expect[0]).abs() <= 10.0 && (to - begun - expect[1]).abs() <= 10.0, "{case}");
        // The lever's own noise is heard for 200 ms more.
        if quality.noise_snr_db.is_none() {
            let heard = measure_extent(rig.far.ears());
            let far = [from, to].iter().zip(heard).any(|(reported, heard)| (reported - heard).abs() > 20.0);
            assert!(!far, "{case}, heard {heard:?}");
        }
    }
}

#[test]
fn what_follows_from_the_end_follows_from_what_was_heard() {
    let parts = [(1000, 500.0), (400, 6000.0)];
    for (codec, hiss) in [(Codec::Pcmu, 0.0), (Codec::G722, 400.0)] {
        let source = "caller opens \"My order please, goodbye.\"\ncaller hangs up on \"goodbye\"\nuntil 9";
        let rig = play(source, codec, HIGH, &parts);
        let [from, to] = reported_extent(&rig.log, Kind::Opening);
        assert!((to - from - 1000.0 - hiss).abs() <= 10.0, "{codec:?}: {from} to {to}");
        let ending = &rig.log.endings[0];
        assert_eq!(ending.reason.as_str(), "hangup_phrase");
        let after = ending.samples as f64 / 16.0 - to;
        assert!((500.0..=520.0).contains(&after), "{codec:?}: hung up {after} ms after the words");
    }
}

#[test]
fn a_hiss_that_nobody_hears_is_a_pause() {
    let parts = [(500, 500.0), (400, 6000.0), (500, 500.0)];
    for (codec, expect) in [(Codec::Pcmu, 1), (Codec::G722, 0)] {
        let rig = play("caller opens \"My order please.\"\nuntil 4", codec, HIGH, &parts);
        let pauses = rig.log.events.iter().find_map(|event| match &event.what {
            EventKind::SpeechEnded { pauses, .. } => Some(pauses.clone()),
            _ => None,
        });
        let pauses = pauses.expect("it is told");
        assert_eq!(pauses.len(), expect, "{codec:?}: {pauses:?}");
        assert!(pauses.iter().all(|[from, to]| (to - from - 6400).abs() <= 320), "{pauses:?}");
    }
}

#[test]
fn a_cut_in_overlaps_what_can_be_heard_of_it() {
    let source = "caller interrupts 1.0 from 1.0 to 1.0\ncaller cuts in with \"Wait.\"\ncaller endpointing 1.0\n\
                  1.0 agent says 1.0 \"hello there\"\n5.0 agent says 4.0 \"this is a long story\"\nuntil 12";
    for (codec, hiss) in [(Codec::Pcmu, 300.0), (Codec::G722, 0.0)] {
        let rig = play(source, codec, HIGH, &[(300, 6000.0), (600, 500.0)]);
        let [from, to] = reported_extent(&rig.log, Kind::Interruption);
        let begun = rig.log.clean.iter().position(|&x| x != 0).expect("it is said") as f64 / 16.0;
        assert!((from - begun - hiss).abs() <= 10.0 && (to - begun - 900.0).abs() <= 10.0, "{codec:?}: {from} to {to}");
        let cut = rig.log.events.iter().find(|event| event.name() == "barge_in").expect("it is told");
        assert_eq!((cut.sample as f64 / 16.0, cut.side), (from, ringer_media::call::Side::Dh), "{codec:?}");
    }
}

#[test]
fn a_probe_is_told_where_it_is_heard() {
    let source = "1.0 agent says 14.0 \"this is a long story\"\nuntil 16";
    for (codec, hiss) in [(Codec::Pcmu, 100.0), (Codec::G722, 0.0)] {
        let mut scenario = super::grammar::parse("probes", source, &super::voice()).expect("it is right");
        scenario.media = params(codec);
        scenario.call.probes = ProbeRates { backchannel_per_minute: 20.0, ..ProbeRates::default() };
        scenario.call.phrases.backchannel = vec!["Mm-hmm.".into()];
        let pcm = sound(&[(100, 6000.0), (300, 500.0)]);
        let rig = super::play_as(&scenario, &super::voice(), Voice::of(&pcm));
        let [from, to] = reported_extent(&rig.log, Kind::Probe);
        let seen_events = rig.log.events.iter().find(|event| event.name() == "probe").expect("it is told");
        assert!(seen_events.sample as f64 / 16.0 <= from, "{codec:?}");
        let begun = rig.log.clean.iter().position(|&x| x != 0).expect("it sounds") as f64 / 16.0;
        assert!((from - begun - hiss).abs() <= 10.0 && (to - begun - 400.0).abs() <= 10.0, "{codec:?}: {from} to {to}");
    }
}
