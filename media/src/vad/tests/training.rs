//! Training data of the network for noisy channels: channels of many voices in noises that no other test has, as the
//! running detector takes them. `make train` writes hours of it; otherwise 80 s are made and checked.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::clip::Clip;
use crate::resample::resample_whole;
use crate::seed::Stream;
use crate::vad::foreground_net::INPUTS;

/// Names the folder with the voices (`voices/train`, `voices/held`: a folder of WAV files each) that channels are
/// written to.
const FOLDER: &str = "RINGER_TRAINING";

/// Returns that folder, if one is named.
#[expect(clippy::disallowed_methods, reason = "only `make train` names it: no setting of the engine")]
pub(super) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Number of channels that are written for training, and with other voices and noises for judging.
const TRAIN: u64 = 9000;
const HELD: u64 = 240;

/// First seed of channels; tests have lower ones.
const FIRST_SEED: u64 = 1_000_000;
const FIRST_HELD_SEED: u64 = 2_000_000;

/// Samples of a channel (40 s), of the noise under it (44 s), and of a talker in it (30 s).
const LENGTH: usize = 2000 * FRAME;
const BED_S: u32 = 44;
const TALK: usize = 480_000;

/// Quiet blocks within an utterance that still are speech (300 ms): an end takes 200 ms, and what is parted by less
/// than 300 ms counts as one.
const PAUSE: usize = 30;

/// Number of voices with consecutive names, which are alike. In half of the channels the voices in front and behind are
/// among so many.
const ALIKE: usize = 16;

/// An input of the network as a whole number.
const STEP: f32 = 1.0 / 8192.0;

/// Kinds of noise, and how many of a hundred channels have them.
const KINDS: [(Kind, usize); 11] = [
    (Kind::Cafe, 43),
    (Kind::NoisyRestaurant, 29),
    (Kind::Pink, 6),
    (Kind::Office, 5),
    (Kind::White, 2),
    (Kind::Brown, 2),
    (Kind::Traffic, 3),
    (Kind::Park, 3),
    (Kind::Hospital, 3),
    (Kind::Tv, 2),
    (Kind::Talking, 2),
];

/// Kinds of voices, by how their names begin, and how many of a hundred are of them; the last are drawn of all.
const SHARES: [(&str, usize); 3] = [("flite", 35), ("espeak", 20), ("", 45)];

/// One utterance of a talker, at -26 dBov, and the range of its sound.
pub(super) type Clipped = (Vec<i16>, Range<usize>);
pub(super) type Voice = Vec<Clipped>;

/// Returns the paths in a folder, in order.
fn list_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    paths
}

/// Returns the voices of a folder whose names begin with this, with their names, in order. Voices without any sound are
/// left out.
fn voices_named(folder: &Path, name: &str) -> Vec<(String, Voice)> {
    let clip = |path: &PathBuf| {
        let clip = Clip::from_wav(&std::fs::read(path).expect("it was listed")).expect("a WAV file").to_16k();
        let loud = level::active_level_dbov(&clip, 16_000).is_some_and(|active| active.level_dbov > -46.0);
        loud.then(|| with_extent(clip))
    };
    let voice = |path: &PathBuf| {
        let own = path.file_name()?.to_string_lossy().into_owned();
        let voice: Voice =
            if own.starts_with(name) { list_files(path).iter().filter_map(clip).collect() } else { Vec::new() };
        (!voice.is_empty()).then_some((own, voice))
    };
    list_files(folder).iter().filter_map(voice).collect()
}

/// Returns the voices of a folder without their names.
pub(super) fn voices(folder: &Path, name: &str) -> Vec<Voice> {
    voices_named(folder, name).into_iter().map(|voice| voice.1).collect()
}

/// Returns a stretch of a voice, without pauses between its clips.
pub(super) fn talk(voice: &Voice, stream: &mut Stream) -> Arc<[i16]> {
    let from = stream.index(voice.len());
    let sounds = voice.iter().cycle().skip(from).take(voice.len());
    sounds.flat_map(|(clip, sound)| clip[sound.clone()].iter().copied()).take(TALK).collect()
}

/// Draws one of the weighted values.
fn draw<T: Copy>(of: &[(T, usize)], stream: &mut Stream) -> T {
    let mut left = stream.index(of.iter().map(|one| one.1).sum());
    let one = of.iter().find(|one| {
        let here = left < one.1;
        left = left.saturating_sub(one.1);
        here
    });
    one.expect("weights cover all").0
}

/// Returns a clip as it is, or slower and lower, or faster and higher.
fn change_pace((said, sound): &Clipped, stream: &mut Stream) -> Clipped {
    if stream.unit() < 0.4 {
        return (said.clone(), sound.clone());
    }
    let rate_hz = 250 * (56 + stream.index(17)) as u32;
    let pcm = resample_whole(said, rate_hz, 16_000);
    let moved = |at: usize| (at * 16_000 / rate_hz as usize).min(pcm.len());
    let sound = moved(sound.start)..moved(sound.end);
    (pcm, sound)
}

/// Returns utterances of one voice or of many, with pauses of all lengths; nobody speaks for long in some.
fn speak(voices: &Voices, of: &Option<Range<usize>>, stream: &mut Stream) -> Channel {
    let only = (stream.unit() < 0.4).then(|| voices.draw_voice(of, stream));
    let lead_s = match stream.index(10) {
        0 => 0.0,
        1 => stream.range(8.0, 25.0),
        2 => stream.range(15.0, 55.0),
        _ => stream.range(0.3, 4.0),
    };
    let (mut pcm, mut truth) = (vec![0; (lead_s * 16_000.0) as usize], Vec::new());
    loop {
        let voice = only.unwrap_or_else(|| voices.draw_voice(of, stream));
        let (said, sound) = change_pace(&voice[stream.index(voice.len())], stream);
        let pause_s = if stream.unit() < 0.12 { stream.range(3.0, 12.0) } else { stream.range(0.5, 2.5) };
        if pcm.len() + said.len() > LENGTH {
            break;
        }
        truth.push(((pcm.len() + sound.start) as Sample, (pcm.len() + sound.end) as Sample));
        pcm.extend(&said);
        pcm.resize(pcm.len() + (pause_s * 16_000.0) as usize, 0);
    }
    pcm.resize(LENGTH, 0);
    Channel { pcm, truth }
}

/// Returns the noise under a channel: the people in it are some of the voices, or imitated.
fn bed(kind: Kind, voices: &Voices, of: &Option<Range<usize>>, seed: u64, stream: &mut Stream) -> Vec<i16> {
    let people = if stream.unit() < 0.12 { 0 } else { 4 + stream.index(7) };
    let people: Vec<Arc<[i16]>> = (0..people).map(|_| talk(voices.draw_voice(of, stream), stream)).collect();
    noise::generate(kind, Seed(seed), BED_S, &people)
}

/// Draws the ratio of speech to noise: half of the voices in it at 2 dB and less.
fn snr_db(stream: &mut Stream) -> f64 {
    match stream.index(20) {
        0..2 => stream.range(-3.5, -1.5),
        2..10 => stream.range(-1.5, 2.0),
        10..16 => stream.range(2.0, 8.0),
        16..18 => stream.range(8.0, 12.0),
        _ => stream.range(12.0, 22.0),
    }
}

/// Returns true for each block that is speech, pauses of up to [`PAUSE`] included.
fn labels(clean: &Channel, codec: Codec) -> Vec<bool> {
    let levels = levels(clean, codec);
    let mut labels = vec![false; levels.len()];
    for (from, to) in spoken_in(clean, &levels) {
        let first = from as usize / BLOCK;
        let mut last = first;
        for at in first..to as usize / BLOCK {
            if levels[at] > LEAST_DBOV {
                let joined = if at - last <= PAUSE + 1 { last } else { at };
                labels[joined..=at].fill(true);
                last = at;
            }
        }
    }
    labels
}

/// Many voices, those of a kind next to each other, and which of them are drawn how often.
struct Voices {
    all: Vec<Voice>,
    kinds: Vec<(Range<usize>, usize)>,
}

impl Voices {
    fn of(folder: &Path) -> Voices {
        let (names, all): (Vec<String>, Vec<Voice>) = voices_named(folder, "").into_iter().unzip();
        let kind = |(name, share): &(&str, usize)| {
            let first = names.iter().position(|own| own.starts_with(name)).unwrap_or(0);
            let count = names.iter().filter(|own| own.starts_with(name)).count();
            (first..first + count, *share)
        };
        let kinds = SHARES.iter().map(kind).filter(|kind| !kind.0.is_empty()).collect();
        Voices { all, kinds }
    }

    /// Draws a voice of those that are spoken of: of a kind, or of all.
    fn draw_voice<'a>(&'a self, of: &Option<Range<usize>>, stream: &mut Stream) -> &'a Voice {
        let of = of.clone().unwrap_or_else(|| self.kind(stream));
        &self.all[of.start + stream.index(of.len())]
    }

    fn kind(&self, stream: &mut Stream) -> Range<usize> {
        let shares: Vec<(usize, usize)> = self.kinds.iter().map(|kind| kind.1).enumerate().collect();
        self.kinds[draw(&shares, stream)].0.clone()
    }

    /// Draws a range of voices that are alike.
    fn alike(&self, stream: &mut Stream) -> Range<usize> {
        let kind = self.kind(stream);
        let first = kind.start + stream.index(kind.len().saturating_sub(ALIKE) + 1);
        first..kind.end.min(first + ALIKE)
    }
}

/// Inputs of the network for a frame, whether it takes the frame, and the number of its blocks that are speech.
type Row = [i16; INPUTS + 2];

/// Returns the rows of a channel, as the running detector gives them.
fn hear_rows(voices: &Voices, seed: u64) -> Vec<Row> {
    let stream = &mut Seed(seed).stream("training");
    let of = (stream.unit() < 0.5).then(|| voices.alike(stream));
    let clean = speak(voices, &of, stream);
    let codec = draw(&[(Codec::Pcmu, 60), (Codec::Pcma, 15), (Codec::G722, 25)], stream);
    let mut bed = bed(draw(&KINDS, stream), voices, &of, seed, stream);
    crate::testing::level_for(&mut bed, snr_db(stream), codec.rate_hz());
    let gain = 10f64.powf(if stream.unit() < 0.5 { 0.0 } else { stream.range(-8.0, 4.0) } / 20.0);
    let mixed = clean.pcm.iter().zip(&bed).map(|(x, noise)| (f64::from(x.saturating_add(*noise)) * gain) as i16);
    let (pcm, labels) = (through(&mixed.collect::<Vec<_>>(), codec), labels(&clean, codec));
    let mut vad = VoiceActivity::new();
    let frames = pcm.as_chunks::<FRAME>().0.iter().zip(labels.as_chunks::<2>().0).enumerate();
    frames
        .map(|(n, (frame, speech))| {
            vad.push(frame, (n * FRAME) as Sample);
            let mut row = [0; INPUTS + 2];
            row.iter_mut().zip(&vad.foreground_net.inputs).for_each(|(x, input)| *x = (input / STEP).round() as i16);
            row[INPUTS] = i16::from(vad.noisy);
            row[INPUTS + 1] = speech.iter().map(|&speech| i16::from(speech)).sum();
            row
        })
        .collect()
}

/// Writes channels of these seeds, as many at once as there are processors.
fn write(to: &Path, voices: &Voices, seeds: Range<u64>) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(to).expect("the folder is ours"));
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    for seeds in seeds.collect::<Vec<_>>().chunks(at_once) {
        let channels: Vec<Vec<Row>> = std::thread::scope(|scope| {
            let made: Vec<_> = seeds.iter().map(|seed| scope.spawn(|| hear_rows(voices, *seed))).collect();
            made.into_iter().map(|channel| channel.join().expect("it is made")).collect()
        });
        for row in channels.iter().flatten() {
            file.write_all(&row.map(i16::to_le_bytes).concat()).expect("there is space");
        }
    }
}

#[test]
fn channels_to_train_with_hold_speech_and_noise() {
    if let Some(folder) = folder() {
        for (part, first, count) in [("held", FIRST_HELD_SEED, HELD), ("train", FIRST_SEED, TRAIN)] {
            let voices = Voices::of(&folder.join("voices").join(part));
            write(&folder.join(part).with_extension("i16"), &voices, first..first + count);
        }
        return;
    }
    let all: Vec<Voice> = ["slt", "awb"].map(|voice| SENTENCES.iter().map(|text| say(text, voice)).collect()).into();
    let voices = Voices { kinds: vec![(0..all.len(), 1)], all };
    let rows: Vec<Row> = (0..2).flat_map(|n| hear_rows(&voices, FIRST_SEED + n)).collect();
    let count = |label: i16| rows.iter().filter(|row| row[INPUTS] == 1 && row[INPUTS + 1] == label).count();
    println!("{} frames, {:?} of noise, of both and of speech", rows.len(), [0, 1, 2].map(count));
    assert!(rows.len() == 2 * LENGTH / FRAME && count(0) > 500 && count(2) > 500 && count(1) < 200);
    // The same channel again is the same.
    assert_eq!(rows[..LENGTH / FRAME], hear_rows(&voices, FIRST_SEED)[..]);
}
