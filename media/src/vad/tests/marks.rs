//! Search for the thresholds of later judgements: many are tried on the network's results in channels like those of the
//! other tests, with other voices, sentences and noises. `make train` does so; otherwise a test shows that trying gives
//! the results of a running detector.

use super::training::{Voice, folder, talk, voices};
use super::*;
use crate::seed::Stream;
use crate::vad::foreground_net::{self, HEADS, INPUTS};
use crate::vad::lookback::Marks;

/// Draws of each noise, the seed of the first one, and how many marks are tried.
const DRAWS: u64 = 16;
const FIRST_SEED: u64 = 3_000_000;
const TRIES: usize = 1200;

/// Largest number of frames in a row that may be asked of a head: an onset must not be late. Speech that is there from
/// the first packet must be found by the first head.
const LONGEST: [u32; HEADS] = [3, 7, 7, 9];

/// Bounds of the thresholds of each head. Nothing begins or ends by odds against it, and a frame that surely is speech,
/// or surely none, is taken as such.
const BEGUN: [(f32, f32); HEADS] = [(0.0, 1.0), (0.0, 4.0), (0.0, 4.0), (0.0, 4.0)];
const FIRST: [(f32, f32); HEADS] = [(-4.5, 4.5), (-2.0, 4.5), (-2.0, 4.5), (-2.0, 4.5)];
// With less asked of the first head, noise that comes into a quiet channel is speech for more than a second.
const LAST: [(f32, f32); HEADS] = [(0.5, 4.5), (0.0, 4.5), (0.0, 4.5), (0.0, 4.5)];
// With more asked of the second head an echo moves the ends of speech 24 dB above steady noise by 40 ms.
const LAST_LOUD: [(f32, f32); HEADS] = [(1.0, 4.5), (-2.0, -0.6), (-2.0, 4.5), (-2.0, 4.5)];
const CLEAR_DB: (f32, f32) = (16.0, 24.0);

/// Utterances of a channel, samples that a short one has at the most (310 ms), and seconds of the noise under it.
const SHORT: usize = 4960;
const UTTERANCES: usize = 34;
const BED_S: u32 = 60;

/// Noises and signal-to-noise ratios in which thresholds are tried.
const WHERE: [(Kind, &[f64]); 4] = [
    (Kind::Cafe, &[-2.0, 0.0, 5.0, 10.0, 20.0]),
    (Kind::NoisyRestaurant, &[-2.0, 0.0, 5.0, 10.0, 20.0]),
    (Kind::Office, &[0.0, 10.0]),
    (Kind::Pink, &[0.0, 10.0, 20.0]),
];

/// Inputs of the judgement of one frame.
struct FrameMarks {
    from: Sample,
    loud_to: Option<Sample>,
    above_db: f32,
    odds: [f32; HEADS],
    sure: Option<bool>,
}

/// A channel with noise, and the spans of speech in it; none in noise alone.
struct Trial {
    kind: Kind,
    snr_db: f64,
    frames: Vec<FrameMarks>,
    truth: Vec<(Sample, Sample)>,
}

/// Returns the inputs that the running detector gives for a channel.
fn sample_frames(pcm: &[i16]) -> Vec<FrameMarks> {
    let (mut vad, mut again) = (VoiceActivity::new(), ForegroundNet::new());
    let frame = |(n, frame)| {
        let from = (n * FRAME) as Sample;
        vad.push(frame, from);
        if !vad.noisy {
            again = ForegroundNet::new();
            return None;
        }
        again.inputs = vad.foreground_net.inputs;
        let blocks = [0, 1].map(|back| vad.blocks.ago(back));
        let loud_to = blocks.iter().find(|block| block.loud).map(|block| block.from + BLOCK as Sample);
        let above_db = vad.louder_dbov.map_or(f32::MIN, |level_dbov| level_dbov - vad.noise_floor.floor_dbov());
        let sure =
            vad.is_surely_speech(again.inputs[INPUTS - 2] * foreground_net::SCORE, above_db, vad.tone_frames > 0);
        Some(FrameMarks { from, loud_to, above_db, odds: again.judge(), sure })
    };
    pcm.as_chunks().0.iter().enumerate().filter_map(frame).collect()
}

/// Returns the spans that are found from these inputs, as [`spans`] joins them.
fn find_spans(frames: &[FrameMarks], marks: &'static Marks) -> Vec<(Sample, Sample)> {
    let (mut hindsight, mut speech, mut earliest) = (Lookback::new(marks), None, Sample::MIN);
    let mut edges = Vec::new();
    for FrameMarks { from, loud_to, above_db, odds, sure } in frames {
        let now = from + FRAME as Sample;
        hindsight.push(*from, *loud_to, *above_db, odds, *sure);
        if let Some(end) = speech {
            let end = hindsight.last().unwrap_or(end);
            speech = Some(end);
            if now - end >= RELEASE_IN_NOISE {
                hindsight.close(end);
                (speech, earliest) = (None, end);
                edges.push(Edge::Ended { end });
            }
        } else if let Some(onset) = hindsight.begin(earliest) {
            speech = Some(now);
            edges.push(Edge::Started { onset });
        }
    }
    edges.extend(speech.map(|end| Edge::Ended { end }));
    join_edges(edges)
}

/// Returns many voices in turn, as the other tests have them.
fn speak(kinds: &[(Vec<Voice>, usize)], stream: &mut Stream) -> Channel {
    let (mut pcm, mut truth) = (vec![0; 48_000], Vec::new());
    for n in 0..UTTERANCES {
        let mut drawn = || {
            let mut left = stream.index(kinds.iter().map(|kind| kind.1).sum());
            let kind = kinds
                .iter()
                .find(|kind| {
                    left < kind.1 || {
                        left -= kind.1;
                        false
                    }
                })
                .expect("one of them");
            let voice = &kind.0[stream.index(kind.0.len())];
            &voice[stream.index(voice.len())]
        };
        // One of four is short: it is soonest missed.
        let (said, sound) =
            (0..200).map(|_| drawn()).find(|one| n % 4 > 0 || one.1.len() < SHORT).unwrap_or(&kinds[0].0[0][0]);
        truth.push(((pcm.len() + sound.start) as Sample, (pcm.len() + sound.end) as Sample));
        pcm.extend(said);
        pcm.resize(pcm.len() + stream.range(16_000.0, 41_000.0) as usize, 0);
    }
    pcm.resize(pcm.len().next_multiple_of(FRAME), 0);
    Channel { pcm, truth }
}

/// Returns all channels on which thresholds are tried: each draw has its own utterances, and its own background voices.
fn trials(kinds: &[(Vec<Voice>, usize)], draws: u64) -> Vec<Trial> {
    let mut trials = Vec::new();
    for seed in FIRST_SEED..FIRST_SEED + draws {
        let stream = &mut Seed(seed).stream("marks");
        let (clean, voices) = (speak(kinds, stream), &kinds[0].0);
        let (truth, codec) = (truth(&clean, Codec::Pcmu), Codec::Pcmu);
        for (kind, snrs_db) in WHERE {
            let people: Vec<_> = (0..4).map(|_| talk(&voices[stream.index(voices.len())], stream)).collect();
            let whole = noise::generate(kind, Seed(seed), BED_S, &people);
            for &snr_db in snrs_db {
                let mut bed = whole.clone();
                crate::testing::level_for(&mut bed, snr_db, 8000);
                let mixed = clean.pcm.iter().zip(bed.iter().cycle()).map(|(x, noise)| x.saturating_add(*noise));
                let trial =
                    |pcm: &[i16], truth| Trial { kind, snr_db, frames: sample_frames(&through(pcm, codec)), truth };
                trials.push(trial(&mixed.collect::<Vec<_>>(), truth.clone()));
                trials.push(trial(&bed, Vec::new()));
            }
        }
    }
    trials
}

/// Returns the cost of thresholds; once it is at least `most`, the rest is left out.
fn cost(trials: &[Trial], marks: &'static Marks, most: f64) -> f64 {
    let mut sum = 0.0;
    for trial in trials {
        sum += cost_of(trial, marks);
        if sum >= most {
            break;
        }
    }
    sum
}

/// Returns the cost of one trial: missed utterances, ends that are far off, and speech where nobody speaks. At 10 dB
/// edges that are somewhat off count, and every error counts a little.
fn cost_of(trial: &Trial, marks: &'static Marks) -> f64 {
    let found = find_spans(&trial.frames, marks);
    if trial.truth.is_empty() {
        let spoken: Sample = found.iter().map(|span| span.1 - span.0).sum();
        let percent = 100.0 * spoken as f64 / (f64::from(BED_S) * 16_000.0);
        return if trial.kind == Kind::Pink { 3.0 * percent } else { 0.5 * percent + 3.0 * (percent - 4.0).max(0.0) };
    }
    let mut errors = Errors::default();
    errors.add(&trial.truth, &found);
    let beyond = |edges: &[Sample], ms| edges.iter().filter(|edge| edge.abs() > ms).count() as f64;
    let edges = [&errors.onsets_ms[..], &errors.ends_ms[..]].concat();
    let (harder, extra) = match trial.snr_db {
        ..0.0 => (1.0, 0.2),
        0.0 => (1.0, 1.4),
        _ => (2.0, 14.0),
    };
    let over = |edges: &[Sample]| {
        1.2 * (within(edges, 0.5) - 10).max(0) as f64 + 0.1 * (within(edges, 0.9) - 110).max(0) as f64
    };
    let fine = if trial.snr_db == 10.0 {
        0.3 * beyond(&edges, 120) + 0.6 * beyond(&edges, 40) + over(&errors.onsets_ms) + over(&errors.ends_ms)
    } else {
        0.0
    };
    let off: f64 = edges.iter().map(|edge| edge.abs().min(400) as f64 / 400.0).sum();
    harder * (30.0 * errors.missed as f64 + 4.0 * beyond(&errors.ends_ms, 380))
        + fine
        + extra * errors.extra as f64
        + 0.3 * beyond(&errors.onsets_ms, 250)
        + 0.1 * off
}

/// Prints the results of thresholds, condition by condition.
fn tell(trials: &[Trial], marks: &'static Marks) {
    for (kind, snr_db) in WHERE.iter().flat_map(|(kind, snrs_db)| snrs_db.iter().map(move |snr_db| (*kind, *snr_db))) {
        let (mut errors, mut percents) = (Errors::default(), Vec::new());
        for trial in trials.iter().filter(|trial| (trial.kind, trial.snr_db) == (kind, snr_db)) {
            let found = find_spans(&trial.frames, marks);
            if trial.truth.is_empty() {
                let spoken: Sample = found.iter().map(|span| span.1 - span.0).sum();
                percents.push((100 * spoken / (Sample::from(BED_S) * 16_000)).to_string());
            } else {
                errors.add(&trial.truth, &found);
            }
        }
        let far = errors.ends_ms.iter().filter(|ms| ms.abs() > 400).count();
        let [onset, end] = [&errors.onsets_ms, &errors.ends_ms].map(|edges| (within(edges, 0.5), within(edges, 0.9)));
        let (missed, extra, percents) = (errors.missed, errors.extra, percents.join(" "));
        println!(
            "{kind:?} at {snr_db} dB: {missed} missed, {far} ends far, {extra} extra, onsets {onset:?}, ends {end:?}, false {percents}"
        );
    }
}

/// Returns thresholds with some of them moved.
fn move_marks(marks: &Marks, stream: &mut Stream) -> Marks {
    let add = |mark: &mut f32, by: f32, (least, most): (f32, f32)| *mark = (*mark + by).clamp(least, most);
    let mut marks = *marks;
    for _ in 0..1 + stream.index(4) {
        let (head, by) = (stream.index(HEADS), stream.normal() as f32 * if stream.unit() < 0.5 { 0.3 } else { 1.2 });
        let step = |count: u32| count.saturating_add_signed(if by > 0.0 { 1 } else { -1 });
        match stream.index(8) {
            0 | 1 => add(&mut marks.begun[head], by, BEGUN[head]),
            2 => add(&mut marks.first[head], by, FIRST[head]),
            3 => add(&mut marks.last[head], by, LAST[head]),
            4 => add(&mut marks.last_loud[head], by, LAST_LOUD[head]),
            5 => marks.in_a_row[head] = step(marks.in_a_row[head]).clamp(2, LONGEST[head]),
            6 => marks.gap = (step(marks.gap as u32) as usize).clamp(2, 14),
            _ => add(&mut marks.clear_db, 2.0 * by, CLEAR_DB),
        }
    }
    marks
}

#[test]
fn marks_are_tried_on_what_the_detector_tells() {
    if let Some(folder) = folder() {
        // As many of each kind as in the other tests.
        let kinds = [("flite", 20), ("espeak", 8), ("", 6)];
        let mut trials = trials(&kinds.map(|(name, share)| (voices(&folder.join("voices/held"), name), share)), DRAWS);
        let stream = &mut Seed(FIRST_SEED).stream("tries");
        // The costliest trials come first, so that most tries are soon given up.
        trials.sort_by(|one, other| one.snr_db.total_cmp(&other.snr_db));
        let mut best = (cost(&trials, &MARKS, f64::MAX), MARKS);
        println!("{:.2}: the present ones", best.0);
        tell(&trials, &MARKS);
        for n in 0..TRIES {
            let marks = move_marks(&best.1, stream);
            let cost = cost(&trials, Box::leak(Box::new(marks)), best.0);
            if cost < best.0 {
                best = (cost, marks);
                println!("{n} {cost:.2}: {marks:?}");
            }
        }
        tell(&trials, Box::leak(Box::new(best.1)));
        return;
    }
    let voices: Vec<Voice> =
        ["slt", "awb"].map(|voice| vec![say(SENTENCES[2], voice), say(SENTENCES[3], voice)]).into();
    let clean = speak(&[(voices, 1)], &mut Seed(1).stream("marks"));
    let mut bed = noise::generate(Kind::Cafe, Seed(1), 20, &[]);
    crate::testing::level_for(&mut bed, 10.0, 8000);
    let mixed = clean.pcm.iter().zip(bed.iter().cycle()).map(|(x, noise)| x.saturating_add(*noise));
    let pcm = through(&mixed.collect::<Vec<_>>(), Codec::Pcmu);
    assert_eq!(find_spans(&sample_frames(&pcm), &MARKS), spans(&pcm));
}
