//! Speech of a real synthesizer (`flite`), through a codec, in silence and in noise, against the true places of the
//! words.

mod marks;
mod noise_and_edges;
mod tones;
mod training;

use std::process::Command;

use super::*;
use crate::codec::{Codec, Decoder, Encoder};
use crate::formant::move_formants;
use crate::level;
use crate::noise::{self, Kind};
use crate::resample::{Down2, Up2};
use crate::seed::Seed;

const SENTENCES: [&str; 8] = [
    "Hello, I would like to change my appointment.",
    "Yes, that works for me.",
    "My account number is four seven one nine, and my name is Peter Smith.",
    "Could you please tell me what time you close on Saturday?",
    "No.",
    "Thank you very much for your help today.",
    "I am calling because the delivery has not arrived yet, and it was promised for last week.",
    "Six tickets for the show, please.",
];

/// Returns a sentence spoken by `flite`, 16 kHz at -26 dBov active level, and the range of its sound.
pub(crate) fn say(text: &str, voice: &str) -> (Vec<i16>, std::ops::Range<usize>) {
    with_extent(say_at_16k(text, voice, &[]))
}

/// Returns a sentence spoken by `flite` with these settings.
fn say_at_16k(text: &str, voice: &str, settings: &[&str]) -> Vec<i16> {
    let path =
        std::env::temp_dir().join(format!("ringer-vad-{}-{:?}.wav", std::process::id(), std::thread::current().id()));
    let status =
        Command::new("flite").args(["-voice", voice]).args(settings).args(["-t", text, "-o"]).arg(&path).status();
    assert!(status.expect("flite is installed").success());
    let bytes = std::fs::read(&path).expect("flite wrote a file");
    std::fs::remove_file(&path).expect("it is ours");
    bytes[44..].chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect()
}

/// Returns 16 kHz speech at -26 dBov active level, and the range of its sound.
fn with_extent(mut pcm: Vec<i16>) -> (Vec<i16>, std::ops::Range<usize>) {
    level::to_speech_level(&mut pcm, 16_000);
    let loud = |at: &usize| dbov(power(&pcm[at * BLOCK..(at + 1) * BLOCK])) > LEAST_DBOV;
    let blocks = pcm.len() / BLOCK;
    let first = (0..blocks).find(loud).expect("there is speech");
    let last = (0..blocks).rev().find(loud).expect("there is speech");
    (pcm, first * BLOCK..(last + 1) * BLOCK)
}

/// Sentences with silence of 0.8 to 2.4 s around them, and the true edges of each.
pub(crate) struct Channel {
    pub pcm: Vec<i16>,
    pub truth: Vec<(Sample, Sample)>,
}

pub(crate) fn channel(voice: &str, lead_ms: usize) -> Channel {
    let mut pcm = vec![0; lead_ms * 16];
    let mut truth = Vec::new();
    for (n, text) in SENTENCES.iter().enumerate() {
        let (said, sound) = say(text, voice);
        truth.push(((pcm.len() + sound.start) as Sample, (pcm.len() + sound.end) as Sample));
        pcm.extend(said);
        pcm.resize(pcm.len() + 12_800 + 5003 * (n % 6), 0);
    }
    pcm.resize(pcm.len().next_multiple_of(FRAME), 0);
    Channel { pcm, truth }
}

/// Returns audio through the codec and back, without the delay of the resamplers.
pub(crate) fn through(pcm: &[i16], codec: Codec) -> Vec<i16> {
    let (mut encoder, mut decoder) = (Encoder::new(codec), Decoder::new(codec));
    let (mut down, mut up) = (Down2::new(), Up2::new());
    let mut out = Vec::new();
    for frame in pcm.chunks_exact(FRAME) {
        let (mut low, mut bytes, mut high) = ([0i16; 160], [0u8; 160], [0i16; FRAME]);
        if codec.rate_hz() == 8000 {
            down.process(frame, &mut low);
            encoder.encode(&low, &mut bytes);
            decoder.decode(&bytes, &mut low);
            up.process(&low, &mut high);
        } else {
            encoder.encode(frame, &mut bytes);
            decoder.decode(&bytes, &mut high);
        }
        out.extend(high);
    }
    out
}

fn edges(vad: &mut VoiceActivity, pcm: &[i16]) -> Vec<Edge> {
    let frames = pcm.chunks_exact(FRAME).enumerate();
    let mut edges: Vec<Edge> = frames
        .filter_map(|(n, frame)| vad.push(frame.try_into().expect("chunks_exact"), (n * FRAME) as Sample))
        .collect();
    edges.extend(vad.finish());
    edges
}

/// Returns the spans found, those nearer than 300 ms joined.
fn spans(pcm: &[i16]) -> Vec<(Sample, Sample)> {
    join_edges(edges(&mut VoiceActivity::new(), pcm))
}

fn join_edges(edges: Vec<Edge>) -> Vec<(Sample, Sample)> {
    let mut spans: Vec<(Sample, Sample)> = Vec::new();
    for edge in edges {
        match (edge, spans.last_mut()) {
            (Edge::Started { onset }, Some(last)) if onset - last.1 < 300 * PER_MS => {}
            (Edge::Started { onset }, _) => spans.push((onset, onset)),
            (Edge::Ended { end }, Some(last)) => last.1 = end,
            (Edge::Ended { .. }, None) => panic!("an end without an onset"),
        }
    }
    spans
}

/// Returns the true edges as they arrive: of the audio above -50 dBov.
fn truth(clean: &Channel, codec: Codec) -> Vec<(Sample, Sample)> {
    spoken_in(clean, &levels(clean, codec))
}

/// Returns the levels of the blocks of a channel as they arrive.
fn levels(clean: &Channel, codec: Codec) -> Vec<f32> {
    through(&clean.pcm, codec).chunks_exact(BLOCK).map(|b| dbov(power(b))).collect()
}

/// Returns the true edges in a channel whose blocks arrive at these levels.
fn spoken_in(clean: &Channel, levels: &[f32]) -> Vec<(Sample, Sample)> {
    let loud = |block: usize| levels[block] > LEAST_DBOV;
    let edge = |(from, to): &(Sample, Sample)| {
        let mut blocks = (*from as usize / BLOCK).saturating_sub(2)..(*to as usize / BLOCK + 3).min(levels.len());
        let last = blocks.clone().rev().find(|&b| loud(b)).expect("speech");
        let first = blocks.find(|&b| loud(b)).expect("speech");
        ((first * BLOCK) as Sample, ((last + 1) * BLOCK) as Sample)
    };
    clean.truth.iter().map(edge).collect()
}

/// Errors against the truth, in milliseconds.
#[derive(Debug, Default)]
struct Errors {
    missed: usize,
    /// Number of spans found where nobody speaks.
    extra: usize,
    onsets_ms: Vec<Sample>,
    ends_ms: Vec<Sample>,
}

impl Errors {
    fn of(channels: &[Channel], codec: Codec, noise: Option<(&[i16], f64)>) -> Errors {
        let mut errors = Errors::default();
        for channel in channels {
            let mut pcm = channel.pcm.clone();
            if let Some((bed, snr_db)) = noise {
                let mut bed = bed.to_vec();
                crate::testing::level_for(&mut bed, snr_db, codec.rate_hz());
                pcm.iter_mut().zip(bed.iter().cycle()).for_each(|(x, noise)| *x = x.saturating_add(*noise));
            }
            errors.add(&truth(channel, codec), &spans(&through(&pcm, codec)));
        }
        errors
    }

    fn push(&mut self, truth: &(Sample, Sample), first: &(Sample, Sample), last: &(Sample, Sample)) {
        self.onsets_ms.push((first.0 - truth.0) / PER_MS);
        self.ends_ms.push((last.1 - truth.1) / PER_MS);
    }

    fn add(&mut self, truth: &[(Sample, Sample)], found: &[(Sample, Sample)]) {
        let meets = |a: &(Sample, Sample), b: &(Sample, Sample)| a.0 < b.1 && a.1 > b.0;
        for span in truth {
            let hits: Vec<_> = found.iter().filter(|found| meets(found, span)).collect();
            match hits[..] {
                [] => self.missed += 1,
                [only] => self.push(span, only, only),
                [first, .., last] => self.push(span, first, last),
            }
        }
        self.extra += found.iter().filter(|found| !truth.iter().any(|span| meets(span, found))).count();
    }
}

/// Returns the distance from 0 within which the given share of the values lies.
fn within(values: &[Sample], share: f64) -> Sample {
    let mut sizes: Vec<Sample> = values.iter().map(|x| x.abs()).collect();
    sizes.sort_unstable();
    sizes[((sizes.len() - 1) as f64 * share) as usize]
}

fn channels() -> Vec<Channel> {
    ["slt", "rms", "awb", "kal16"].map(|voice| channel(voice, 1500)).into()
}

#[test]
fn clean_speech_has_its_edges_within_20_ms() {
    let channels = channels();
    for codec in [Codec::Pcmu, Codec::Pcma, Codec::G722] {
        let errors = Errors::of(&channels, codec, None);
        assert_eq!((errors.missed, errors.extra), (0, 0), "{codec:?}");
        for edges in [&errors.onsets_ms, &errors.ends_ms] {
            assert!(within(edges, 1.0) <= 20, "{codec:?}: {edges:?}");
        }
    }
}

#[test]
fn cafe_noise_neither_hides_speech_nor_holds_it() {
    let (channels, bed) = (channels(), noise::generate(Kind::Cafe, Seed(41), 60, &[]));
    for (snr_db, median_end_ms) in [(20.0, 40), (17.5, 60), (15.0, 60), (10.0, 80)] {
        let errors = Errors::of(&channels, Codec::Pcmu, Some((&bed, snr_db)));
        assert_eq!(errors.missed, 0, "{snr_db} dB");
        assert!(errors.extra <= 3, "{snr_db} dB: {} extra", errors.extra);
        assert!(within(&errors.ends_ms, 0.5) <= median_end_ms, "{snr_db} dB: {:?}", errors.ends_ms);
        assert!(within(&errors.ends_ms, 1.0) <= 400, "{snr_db} dB: {:?}", errors.ends_ms);
    }
}

#[test]
fn steady_noise_is_no_speech() {
    for kind in [Kind::White, Kind::Pink, Kind::Brown] {
        let mut bed = noise::generate(kind, Seed(9), 20, &[]);
        crate::testing::level_for(&mut bed, 10.0, 8000);
        let found = spans(&through(&bed, Codec::Pcmu));
        let total_ms: Sample = found.iter().map(|span| (span.1 - span.0) / PER_MS).sum();
        assert!(total_ms <= 2000, "{kind:?}: {found:?}");
    }
}

#[test]
fn sleep_changes_no_decision() {
    for channel in channels() {
        for noise in [None, Some(20.0)] {
            let mut pcm = channel.pcm.clone();
            if let Some(snr_db) = noise {
                let mut bed = noise::generate(Kind::Office, Seed(4), 20, &[]);
                crate::testing::level_for(&mut bed, snr_db, 8000);
                pcm.iter_mut().zip(bed.iter().cycle()).for_each(|(x, noise)| *x = x.saturating_add(*noise));
            }
            let pcm = through(&pcm, Codec::Pcmu);
            let mut awake = VoiceActivity { never_sleeps: true, ..VoiceActivity::new() };
            assert_eq!(edges(&mut VoiceActivity::new(), &pcm), edges(&mut awake, &pcm), "noise {noise:?}");
        }
    }
}

#[test]
fn an_onset_is_reported_soon_after_it_is_there() {
    for channel in channels() {
        let pcm = through(&channel.pcm, Codec::Pcmu);
        let mut vad = VoiceActivity::new();
        let mut delays_ms = Vec::new();
        for (n, frame) in pcm.chunks_exact(FRAME).enumerate() {
            let from = (n * FRAME) as Sample;
            match vad.push(frame.try_into().expect("chunks_exact"), from) {
                Some(Edge::Started { onset }) => delays_ms.push((from + FRAME as Sample - onset) / PER_MS),
                Some(Edge::Ended { end }) => {
                    assert!((RELEASE..RELEASE + 400).contains(&(from + FRAME as Sample - end)), "end {end} at {from}");
                }
                None => {}
            }
        }
        assert!(delays_ms.iter().all(|ms| *ms >= 60), "{delays_ms:?}");
        assert!(within(&delays_ms, 0.8) <= 160, "{delays_ms:?}");
    }
}

#[test]
fn what_is_missing_is_silence() {
    let (said, _) = say(SENTENCES[3], "slt");
    let frames: Vec<&[i16]> = said.chunks_exact(FRAME).collect();
    let mut vad = VoiceActivity::new();
    let push = |vad: &mut VoiceActivity, n: usize, from| vad.push(frames[n].try_into().expect("chunks_exact"), from);
    let at = |n: usize| (n * FRAME) as Sample;
    let started: Vec<Edge> = (0..50).filter_map(|n| push(&mut vad, n, at(n))).collect();
    assert!(matches!(started[..], [Edge::Started { .. }]), "{started:?}");
    assert!((50..60).all(|n| push(&mut vad, n, at(n)).is_none()) && vad.speaking());
    // 60 ms that never came end nothing; 10 s do, at the last sound that was heard.
    assert_eq!(push(&mut vad, 60, at(63)), None);
    let jump = 160_000;
    let Some(Edge::Ended { end }) = push(&mut vad, 61, at(64) + jump) else {
        panic!("still speaking after 10 s of nothing")
    };
    assert!((at(60)..=at(64)).contains(&end), "{end}");
    let again: Vec<Edge> = (62..120).filter_map(|n| push(&mut vad, n, at(n + 3) + jump)).collect();
    let again = again.first();
    assert!(matches!(again, Some(Edge::Started { onset }) if *onset >= at(64) + jump), "{again:?}");
    // A jump back is borne, and speech is found again at its new places.
    let back: Vec<Edge> = (0..120).filter_map(|n| push(&mut vad, n, at(n))).collect();
    assert!(back.iter().any(|edge| matches!(edge, Edge::Started { onset } if *onset < at(60))), "{back:?}");
    assert_eq!(vad.speaking(), vad.finish().is_some());
    assert!(!vad.speaking());
}

#[test]
fn levels_are_dbov() {
    let mut vad = VoiceActivity::new();
    assert_eq!((vad.floor_dbov(), vad.level_dbov()), (-96.0, -96.0));
    // A square wave of half scale is -6.02 dBov.
    let square: Frame = std::array::from_fn(|n| if n / 16 % 2 == 0 { 16_384 } else { -16_384 });
    for n in 0..150 {
        vad.push(&square, n * FRAME as Sample);
    }
    assert!((vad.level_dbov() + 6.02).abs() < 0.01 && (vad.floor_dbov() + 6.0).abs() < 0.51);
}

#[test]
fn tones_are_no_speech() {
    let tone = |at: usize, hz: f64| (hz * std::f64::consts::TAU * at as f64 / 16_000.0).sin();
    // On and off in milliseconds: digits, short digits, ringing, busy, dial tone.
    for (low_hz, high_hz, on_ms, off_ms) in [
        (770.0, 1336.0, 100, 100),
        (941.0, 1633.0, 50, 50),
        (697.0, 1209.0, 200, 80),
        (440.0, 480.0, 2000, 4000),
        (425.0, 425.0, 1000, 4000),
        (480.0, 620.0, 500, 500),
        (350.0, 440.0, 9000, 1000),
    ] {
        for amplitude in [8000.0, 1500.0] {
            let on = |at: usize| at / 16 % (on_ms + off_ms) >= off_ms;
            let sound = |at: usize| if on(at) { amplitude * (tone(at, low_hz) + tone(at, high_hz)) } else { 0.0 };
            let pcm: Vec<i16> = (0..160_000).map(|at| sound(at) as i16).collect();
            for codec in [Codec::Pcmu, Codec::G722] {
                let found = spans(&through(&pcm, codec));
                assert!(found.is_empty(), "{low_hz} + {high_hz} Hz, {on_ms} ms in {codec:?}: {found:?}");
            }
        }
    }
}

#[test]
fn positions_that_drift_by_a_sample_do_not_move_an_onset() {
    let channel = channel("awb", 1000);
    let pcm = through(&channel.pcm, Codec::Pcmu);
    let mut vad = VoiceActivity::new();
    let mut onsets = Vec::new();
    for (n, frame) in pcm.chunks_exact(FRAME).enumerate() {
        let from = (n * FRAME + n / 3) as Sample;
        if let Some(Edge::Started { onset }) = vad.push(frame.try_into().expect("chunks_exact"), from) {
            onsets.push(onset - onset / (3 * FRAME as Sample + 1));
        }
    }
    let steady = edges(&mut VoiceActivity::new(), &pcm).into_iter();
    let steady = steady.filter_map(|edge| if let Edge::Started { onset } = edge { Some(onset) } else { None });
    let moved: Vec<Sample> = onsets.iter().zip(steady).map(|(onset, steady)| onset - steady).collect();
    assert!(moved.len() >= SENTENCES.len() && moved.iter().all(|by| by.abs() <= 2), "{moved:?}");
}

/// Long sentences of the other side.
const AT_LENGTH: [&str; 3] = [
    "Okay. This week I can offer you Tuesday at nine in the morning, Wednesday in the afternoon or Friday at eleven. Would Tuesday \
     at nine be good for you?",
    "Thank you for calling the clinic. Press one for appointments, press two for opening hours, or just tell me how I can help you.",
    "All right, your member number is four, seven, one, one. Is that right?",
];

/// Callers: a voice of flite, slower by a factor, with a mean pitch (Hz) and formants moved by a factor.
const CALLERS: [(&str, f32, f32, f32); 6] = [
    ("slt", 1.4, 140.0, 0.88),
    ("slt", 1.4, 170.0, 0.92),
    ("slt", 1.4, 217.0, 0.96),
    ("awb", 1.4, 111.0, 0.97),
    ("awb", 1.4, 165.0, 1.1),
    ("kal16", 1.5, 86.0, 1.0),
];

/// Returns a sentence spoken by such a caller.
fn say_with_formants(text: &str, (voice, stretch, pitch_hz, formants): (&str, f32, f32, f32)) -> Vec<i16> {
    let settings =
        ["--setf", &format!("duration_stretch={stretch}"), "--setf", &format!("int_f0_target_mean={pitch_hz}")];
    let plain: Vec<f32> = say_at_16k(text, voice, &settings).into_iter().map(f32::from).collect();
    with_extent(move_formants(&plain, formants).into_iter().map(|sample| sample as i16).collect()).0
}

#[test]
fn long_clean_speech_is_not_parted_where_it_sounds() {
    let (mut ends, mut within_sound, mut parted) = (0, 0, Vec::new());
    for codec in [Codec::Pcmu, Codec::G722] {
        for caller in CALLERS {
            let mut pcm = vec![0; 8000];
            for text in AT_LENGTH.iter().chain(&SENTENCES) {
                pcm.extend(say_with_formants(text, caller));
                pcm.resize(pcm.len() + 16_000, 0);
            }
            pcm.resize(pcm.len().next_multiple_of(FRAME), 0);
            let pcm = through(&pcm, codec);
            let mut last = Sample::MIN;
            for edge in edges(&mut VoiceActivity::new(), &pcm) {
                match edge {
                    Edge::Ended { end } => {
                        let after = &pcm[end as usize..][..RELEASE as usize / 2];
                        within_sound += u32::from(after.chunks(BLOCK).any(|block| dbov(power(block)) > LEAST_DBOV));
                        (last, ends) = (end, ends + 1);
                    }
                    Edge::Started { onset } if onset.saturating_sub(last) < RELEASE => {
                        parted.push(format!("{codec:?} {caller:?}: {} to {} ms", last / PER_MS, onset / PER_MS));
                    }
                    Edge::Started { .. } => {}
                }
            }
        }
    }
    assert_eq!(parted, [""; 0]);
    // Weak last sounds are taken for noise when nothing is quiet for 3 s.
    assert!(ends > 400 && within_sound <= 6, "{within_sound} of {ends} ends lie within sound");
}

#[test]
fn a_voice_of_one_harmonic_is_no_tone() {
    let tone = |hz: f32, at: usize| (hz * std::f32::consts::TAU * at as f32 / 16_000.0).sin();
    let frame = |low_hz, high_hz, share: f32| -> Frame {
        std::array::from_fn(|at| (6000.0 * (tone(low_hz, at) + share * tone(high_hz, at))) as i16)
    };
    for pitch_hz in [80.0, 120.0, 207.0, 250.0] {
        assert!(!tone::is_tone(&frame(pitch_hz, 2.0 * pitch_hz, 0.09), TONE_DB), "{pitch_hz} Hz");
    }
    for (low_hz, high_hz) in [(350.0, 440.0), (400.0, 425.0), (697.0, 1633.0), (2100.0, 2100.0)] {
        assert!(tone::is_tone(&frame(low_hz, high_hz, 0.8), TONE_DB), "{low_hz} and {high_hz} Hz");
    }
}

#[test]
fn noise_that_comes_into_a_quiet_channel_is_not_speech_for_long() {
    for (kind, most_ms) in [
        (Kind::White, 1000),
        (Kind::Pink, 1000),
        (Kind::Office, 1000),
        (Kind::Brown, 2000),
        (Kind::Traffic, 2000),
        (Kind::Cafe, 2000),
    ] {
        for (codec, snr_db) in [(Codec::Pcmu, 17.5), (Codec::Pcmu, 0.0), (Codec::G722, 10.0)] {
            let mut bed = noise::generate(kind, Seed(41), 4, &[]);
            crate::testing::level_for(&mut bed, snr_db, codec.rate_hz());
            let pcm = through(&[vec![0; 32_000], bed].concat(), codec);
            let mut vad = VoiceActivity::new();
            let mut ears = pcm.chunks_exact(FRAME).enumerate().map(|(n, frame)| {
                let at = (n * FRAME) as Sample;
                (at, vad.push(frame.try_into().expect("chunks_exact"), at))
            });
            let Some(onset) =
                ears.find_map(|(_, edge)| if let Some(Edge::Started { onset }) = edge { Some(onset) } else { None })
            else {
                continue;
            };
            let (at, edge) = ears.find(|(_, edge)| edge.is_some()).expect("it ends");
            assert!(
                at < onset + most_ms * PER_MS,
                "{kind:?} at {snr_db} dB in {codec:?} was speech for {} ms",
                (at - onset) / PER_MS
            );
            // In hindsight it was none, or little.
            let end = onset + (most_ms - 800) * PER_MS;
            assert!(
                matches!(edge, Some(Edge::Ended { end: found }) if found < end),
                "{kind:?} at {snr_db} dB: {edge:?}"
            );
        }
    }
}
