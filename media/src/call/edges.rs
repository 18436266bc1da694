//! Audible beginning and end of this side's speech: in the band of the codec and at its audio quality, before noise is
//! added. Sound above the band of a telephone codec is no speech to the other side.
//!
//! The ruler is that of all true onsets and ends: the first and the last 10 ms that are louder than -50 dBov and than
//! the noise floor of the last 3 s + 5 dB.

use super::pauses::Pauses;
use crate::clip::{OVER_FLOOR_DB, SILENCE_DBOV};
use crate::dot::squares;
use crate::frame::{FRAME, Frame, PER_MS, RATE_HZ, SILENCE, Sample};
use crate::impair::{AudioQuality, Impair};
use crate::level::mean_square_dbov;
use crate::mixer::Sum;
use crate::resample::{DELAY, Down2};
use crate::seed::Stream;
use crate::vad::percentiles::Percentiles;

/// Grid of the edges (10 ms).
const BLOCK: Sample = 10 * PER_MS;
/// Blocks that the noise floor is found in (3 s).
const MEMORY: usize = 300;
/// Levels are told apart from here on, dBov; digital silence is here.
const LOWEST_DBOV: f32 = -96.0;
/// Share of the blocks that the noise floor stays above. Words have gaps between their sounds, noise under them has
/// none.
const FLOOR_SHARE: f32 = 0.02;
/// Highest noise floor, dBov: sound that is this loud throughout is words without a gap.
const MOST_FLOOR_DBOV: f32 = -40.0;

/// Follows what sounds, one utterance at a time. Allocates nothing while it does.
#[derive(Debug)]
pub(super) struct Edges {
    /// Audio quality as it acts on the sent audio, without the noise that it adds.
    lever: Impair,
    /// Conversion to 8 kHz, when the codec carries 4 kHz.
    down: Option<Down2>,
    levels: Percentiles<MEMORY, 193>,
    block: Block,
    /// One past the last sample that was taken in.
    next: Sample,
    /// First sample of what sounds.
    from: Sample,
    onset: Option<Sample>,
    ended: Sample,
    pauses: Pauses,
}

/// The stretch that is being filled, to a line of the grid.
#[derive(Copy, Clone, Debug, Default)]
struct Block {
    from: Sample,
    energy: i64,
    samples: i64,
}

impl Block {
    /// Returns the end of the block: the next border of the grid that is at least 5 ms away. A few samples have no
    /// level.
    fn border(&self) -> Sample {
        ((self.from + BLOCK / 2).div_euclid(BLOCK) + 1) * BLOCK
    }
}

/// Audible extent of an utterance.
#[derive(Debug)]
pub(super) struct Sounded {
    /// Onset; its first sample when nothing of it can be heard.
    pub from: Sample,
    /// End, at the onset or after it.
    pub to: Sample,
    /// True when some of it can be heard.
    pub is_heard: bool,
    /// Pauses of 300 ms or more: first sample of each and one past its last.
    pub pauses: Box<[[Sample; 2]]>,
}

impl Edges {
    /// Returns the state before the first utterance. `rate_hz` is the codec's; `stream` draws the places of the audio
    /// quality's dropouts.
    pub(super) fn new(quality: AudioQuality, rate_hz: u32, stream: Stream) -> Edges {
        let mut levels = Percentiles::new(LOWEST_DBOV, 0.5);
        (0..MEMORY).for_each(|_| levels.push(LOWEST_DBOV));
        Edges {
            lever: Impair::new(AudioQuality { noise_snr_db: None, ..quality }, rate_hz, stream),
            down: (rate_hz < RATE_HZ).then(Down2::new),
            levels,
            block: Block::default(),
            next: 0,
            from: 0,
            onset: None,
            ended: 0,
            pauses: Pauses::new(),
        }
    }

    /// Begins to follow an utterance or a probe whose first sample is at `at`.
    pub(super) fn begin(&mut self, at: Sample) {
        let silent = ((at - self.next) / BLOCK).clamp(0, MEMORY as Sample);
        (0..silent).for_each(|_| self.levels.push(LOWEST_DBOV));
        self.down.iter_mut().for_each(|down| *down = Down2::new());
        (self.next, self.from, self.onset, self.ended) = (at, at, None, at);
        self.block = Block { from: at, ..Block::default() };
        self.pauses.begin();
    }

    /// Takes in a frame in which nothing sounds.
    pub(super) fn rest(&mut self) {
        self.lever.skip();
    }

    /// Takes in the frame at `at`, in which it sounds from the sample `from` on.
    pub(super) fn follow(&mut self, at: Sample, sum: &Sum, from: usize) {
        if at > self.next {
            // Ticks that were not sent are silence.
            self.close(self.next);
            self.pauses.follow(self.next, true);
            self.block.from = at;
        }
        self.next = at + FRAME as Sample;
        let mut voice = SILENCE;
        for (voice, &sum) in voice.iter_mut().zip(sum).skip(from) {
            *voice = sum.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
        self.lever.process(&mut voice);
        self.take_in(at, &voice);
    }

    /// Returns the onset, once it was audible.
    pub(super) fn onset(&self) -> Option<Sample> {
        self.onset
    }

    /// Ends what sounds; its last sample was sent before `end`.
    pub(super) fn end(&mut self, end: Sample) -> Sounded {
        if self.down.is_some() && self.next < end + DELAY {
            // The samples that the filter still holds.
            self.take_in(self.next, &SILENCE);
        }
        self.close(end);
        let from = self.onset.unwrap_or(self.from).min(end);
        let to = if self.onset.is_some() { self.ended.clamp(from, end) } else { from };
        Sounded { from, to, is_heard: self.onset.is_some(), pauses: self.pauses.spans() }
    }

    fn take_in(&mut self, at: Sample, voice: &Frame) {
        let Some(down) = &mut self.down else { return self.measure(at, 1, voice) };
        let mut narrow = [0; FRAME / 2];
        down.process(voice, &mut narrow);
        self.measure(at - DELAY, 2, &narrow);
    }

    /// Measures samples that are `step` apart, the first at `at`.
    fn measure(&mut self, mut at: Sample, step: Sample, mut pcm: &[i16]) {
        // A filter tells of what is to come: nothing is said before it begins.
        let before = ((self.from - at).max(0) + step - 1) / step;
        pcm = pcm.get(before as usize..).unwrap_or_default();
        at += before * step;
        while !pcm.is_empty() {
            let border = self.block.border();
            if at >= border {
                self.close(border);
                continue;
            }
            let within = ((border - at + step - 1) / step) as usize;
            let (block, rest) = pcm.split_at(within.min(pcm.len()));
            self.block.energy += squares(block);
            self.block.samples += block.len() as i64;
            (at, pcm) = (at + block.len() as Sample * step, rest);
        }
    }

    /// Closes the block at `to`.
    fn close(&mut self, to: Sample) {
        let Block { from, energy, samples } =
            std::mem::replace(&mut self.block, Block { from: to, energy: 0, samples: 0 });
        if samples == 0 {
            return;
        }
        let level_dbov = mean_square_dbov(energy as f64 / samples as f64);
        self.levels.push(level_dbov.max(f64::from(LOWEST_DBOV)) as f32);
        let [noise_floor] = self.levels.below([FLOOR_SHARE]);
        let is_heard = level_dbov > SILENCE_DBOV.max(f64::from(noise_floor.min(MOST_FLOOR_DBOV)) + OVER_FLOOR_DB);
        if is_heard {
            self.onset.get_or_insert(from);
            self.ended = to;
        }
        if self.onset.is_some() {
            self.pauses.follow(from, !is_heard);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::seed::Seed;

    const NARROW: u32 = 8000;

    /// A part of what is said: milliseconds, frequency, peak.
    type Part = (usize, f64, f64);

    /// Returns onset, end and pauses of an utterance whose first sample is `from` (16 kHz), in milliseconds from there.
    fn measure(quality: AudioQuality, rate_hz: u32, from: usize, parts: &[Part]) -> (f64, f64, Vec<[f64; 2]>) {
        let sound = parts.iter().flat_map(|&(ms, hz, peak)| {
            let at = move |n: usize| if hz == 0.0 { 1.0 } else { (TAU * hz * n as f64 / 16_000.0).sin() };
            (0..ms * 16).map(move |n| (peak * at(n)).round() as i32)
        });
        let mut audio: Vec<i32> = std::iter::repeat_n(0, from).chain(sound).collect();
        let end = audio.len() as Sample;
        audio.resize(audio.len().next_multiple_of(FRAME), 0);
        let mut edges = Edges::new(quality, rate_hz, Seed(1).stream("audio_quality"));
        edges.begin(from as Sample);
        for (n, frame) in audio.as_chunks::<FRAME>().0.iter().enumerate() {
            edges.follow((n * FRAME) as Sample, frame, if n == 0 { from } else { 0 });
        }
        let sounded = edges.end(end);
        let ms = |at: Sample| (at - from as Sample) as f64 / PER_MS as f64;
        (ms(sounded.from), ms(sounded.to), sounded.pauses.iter().map(|pause| pause.map(ms)).collect())
    }

    const LOUD: f64 = 3000.0;

    #[test]
    fn what_the_codec_does_not_carry_is_no_speech() {
        let spoken = [(150, 6000.0, LOUD), (1000, 500.0, LOUD), (150, 6000.0, LOUD)];
        for (quality, rate_hz, expect) in [
            (AudioQuality::HIGH, NARROW, [150.0, 1150.0]),
            (AudioQuality::HIGH, RATE_HZ, [0.0, 1300.0]),
            (AudioQuality::MEDIUM, NARROW, [150.0, 1150.0]),
            (AudioQuality::LOW, RATE_HZ, [150.0, 1150.0]),
            (AudioQuality { dropouts: 0, ..AudioQuality::HORRIBLE }, RATE_HZ, [150.0, 1150.0]),
        ] {
            for from in [0, 37, 160, 311] {
                let (onset, end, pauses) = measure(quality, rate_hz, from, &spoken);
                // A line of the grid, and what the filters ring.
                let near = (onset - expect[0]).abs() <= 11.0 && (end - expect[1]).abs() <= 11.0;
                assert!(near && pauses.is_empty(), "{quality:?} {rate_hz} {from}: {onset} to {end}, {pauses:?}");
            }
        }
    }

    #[test]
    fn speech_in_the_band_is_told_to_the_sample() {
        for rate_hz in [NARROW, RATE_HZ] {
            for (from, ms) in [(0, 500), (37, 503), (311, 1000)] {
                let expect = (0.0, ms as f64, vec![]);
                assert_eq!(
                    measure(AudioQuality::HIGH, rate_hz, from, &[(ms, 500.0, LOUD)]),
                    expect,
                    "{rate_hz} {from}"
                );
            }
        }
    }

    #[test]
    fn what_nobody_hears_has_no_length() {
        for (parts, rate_hz) in
            [(&[(700, 500.0, 100.0)][..], RATE_HZ), (&[(700, 6000.0, LOUD)], NARROW), (&[], RATE_HZ), (&[], NARROW)]
        {
            assert_eq!(measure(AudioQuality::HIGH, rate_hz, 160, parts), (0.0, 0.0, vec![]), "{parts:?}");
        }
    }

    #[test]
    fn noise_under_the_words_is_a_floor_and_long_sounds_are_none() {
        // 232 is -46 dBov.
        let noisy = [(300, 500.0, LOUD), (4000, 500.0, 232.0), (300, 500.0, LOUD), (400, 500.0, 232.0)];
        let (_, end, _) = measure(AudioQuality::HIGH, RATE_HZ, 0, &noisy);
        assert_eq!(end, 4600.0);
        assert_eq!(measure(AudioQuality::HIGH, RATE_HZ, 0, &[(9000, 500.0, 1000.0)]).1, 9000.0);
    }

    #[test]
    fn pauses_of_300_ms_and_more_are_told() {
        for (from, rate_hz, parts, expect) in [
            (0, RATE_HZ, &[(500, 500.0, LOUD), (1000, 0.0, 0.0), (500, 500.0, LOUD)][..], vec![[500.0, 1500.0]]),
            (0, RATE_HZ, &[(500, 500.0, LOUD), (290, 0.0, 0.0), (500, 500.0, LOUD)], vec![]),
            (0, RATE_HZ, &[(500, 500.0, LOUD), (300, 0.0, 90.0), (500, 500.0, LOUD)], vec![[500.0, 800.0]]),
            // 104 is -50 dBov.
            (0, RATE_HZ, &[(500, 500.0, LOUD), (300, 0.0, 110.0), (500, 500.0, LOUD)], vec![]),
            // Silence before the first sound and after the last one is no part of what is heard.
            (160, RATE_HZ, &[(400, 0.0, 0.0), (500, 500.0, LOUD), (400, 0.0, 0.0)], vec![]),
            (
                0,
                RATE_HZ,
                &[(200, 500.0, LOUD), (600, 0.0, 0.0), (20, 500.0, LOUD), (600, 0.0, 0.0), (200, 500.0, LOUD)],
                vec![[200.0, 800.0], [820.0, 1420.0]],
            ),
            (0, NARROW, &[(500, 500.0, LOUD), (400, 6000.0, LOUD), (500, 500.0, LOUD)], vec![[500.0, 900.0]]),
        ] {
            assert_eq!(measure(AudioQuality::HIGH, rate_hz, from, parts).2, expect, "{parts:?}");
        }
    }

    #[test]
    fn a_dropout_at_the_end_is_heard_as_its_end() {
        let stream = || Seed(1).stream("audio_quality");
        let quality = AudioQuality { dropouts: 8, ..AudioQuality::MEDIUM };
        // The places at which the audio quality itself drops sound.
        let (mut lever, mut sent) = (Impair::new(quality, RATE_HZ, stream()), Vec::new());
        for n in 0..500 {
            let mut frame: Frame =
                std::array::from_fn(|at| (LOUD * (TAU * ((n * FRAME + at) as f64) / 32.0).sin()) as i16);
            lever.process(&mut frame);
            sent.extend(frame);
        }
        let gap =
            sent[1600..].windows(800).position(|part| part.iter().all(|&x| x == 0)).expect("one is dropped") + 1600;
        // The words end in the middle of the silence; frames in which nothing sounds count.
        let (from, end) = ((gap / FRAME).saturating_sub(20), (gap + 640) / FRAME);
        let mut edges = Edges::new(quality, RATE_HZ, stream());
        (0..from).for_each(|_| edges.rest());
        edges.begin((from * FRAME) as Sample);
        for n in from..end {
            let frame: Sum = std::array::from_fn(|at| (LOUD * (TAU * ((n * FRAME + at) as f64) / 32.0).sin()) as i32);
            edges.follow((n * FRAME) as Sample, &frame, 0);
        }
        let sounded = edges.end((end * FRAME) as Sample);
        assert!((sounded.to - gap as Sample).abs() <= BLOCK, "{} and not {gap}", sounded.to);
    }
}
