//! Finds DTMF in audio, by the bounds of ITU-T Q.24.
//!
//! Audio at 8 kHz is cut into blocks of 102 samples (12.75 ms), loud ones go through eight Goertzel filters. A block
//! holds a digit when one tone of each group stands well above the others of its group, the two differ by no more than
//! the twist allowed, and together they are nearly all that sounds. A digit begins with two such blocks in a row (whose
//! phases tell each tone's true frequency) and is over after two blocks without it. Its ends are placed within the
//! outer blocks by how much of them it fills.
//!
//! Tones of a group are compared at 5 dB and not 8. Leakage at -8 dB twist, 1.5 % offset and 15 dB SNR needs the
//! margin. There was 1 false digit in 2 h of speech through G.722, none through PCMU.

use std::f64::consts::{PI, TAU};

use super::{DIGITS, FREQUENCIES_HZ};
use crate::frame::Sample;

/// Samples in a block at 8 kHz.
const BLOCK: usize = 102;

/// Samples of the 16 kHz clock in a block.
const BLOCK_SPAN: f64 = 2.0 * BLOCK as f64;

/// Blocks quieter than this mean square (-45 dBov) hold nothing.
const MIN_POWER: f32 = 34_000.0;

/// Level of the high group over the low group, as a ratio of powers: -8 to +4 dB. It leaves a margin for the
/// stronger tone's leakage into the weaker one and for noise (4 and 2 dB).
const TWIST: std::ops::RangeInclusive<f32> = 0.06..=4.0;

/// A tone over the others of its group, as a ratio of powers: 8 dB, less 3 for the leakage of a stronger tone and for
/// noise.
const OVER_OTHERS: f32 = 3.0;

/// Least share of a block's power in the two tones, before their true frequency is known.
const SHARE: f32 = 0.6;

/// The same once it is known, in the better and in the worse of the two first blocks: the outer one may be filled in
/// part, and noise and leakage vary.
const BETTER_SHARE: f32 = 0.86;
const WORSE_SHARE: f32 = 0.7;

/// Most that a frequency may be off: between the 1.5 % to be taken and the 3.5 % to be refused.
const OFF_FREQUENCY: f64 = 0.025;

/// Shortest tone in milliseconds. Q.24 asks for tones of 40 ms to be taken and of about 23 ms to be refused.
const MIN_MS: f64 = 28.0;

/// A jump of the sample clock by more than this starts the search anew.
const MAX_JUMP: u64 = 640;

/// Finding of the detector, reported when it is over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Detected {
    /// A digit that is over.
    Digit {
        /// One of 0-9, * and #, A-D.
        digit: char,
        /// Onset on the 16 kHz clock, within some 3 ms.
        from: Sample,
        /// Length of the digit in milliseconds.
        duration_ms: u32,
    },
}

/// Detector of one stream. Allocates nothing.
#[derive(Clone, Debug)]
pub struct Detector {
    block: [f32; BLOCK],
    filled: usize,
    next: Sample,
    /// The last two blocks, latest first.
    past: [BlockLevels; 2],
    open: Option<Open>,
    steps: Steps,
}

/// Cosine and sine of each tone's step at 8 kHz.
#[derive(Clone, Debug)]
struct Steps {
    cosines: [f32; 8],
    sines: [f32; 8],
}

/// Outputs of the filters for one block.
#[derive(Copy, Clone, Debug, Default)]
struct BlockLevels {
    /// Real and imaginary part of each filter.
    tones: [(f32, f32); 8],
    /// Energy of the block: the sum of its squares.
    energy: f32,
    /// Row and column of the tones that stand out; `None` without such a pair.
    pair: Option<(usize, usize)>,
}

/// A digit that sounds.
#[derive(Copy, Clone, Debug)]
struct Open {
    pair: (usize, usize),
    from: f64,
    /// End of the digit as far as it is known, in samples.
    to: f64,
    /// Amplitudes of its tones in a block that it fills.
    full: (f32, f32),
    /// Number of blocks since the last one that held it.
    missed: u32,
}

impl Default for Detector {
    fn default() -> Self {
        Detector::new()
    }
}

impl Detector {
    /// Returns a detector without a past.
    pub fn new() -> Detector {
        let steps = FREQUENCIES_HZ.map(|hz| TAU * hz / 8000.0);
        Detector {
            block: [0.0; BLOCK],
            filled: 0,
            next: 0,
            past: [BlockLevels::default(); 2],
            open: None,
            steps: Steps { cosines: steps.map(|step| step.cos() as f32), sines: steps.map(|step| step.sin() as f32) },
        }
    }

    /// Takes the next samples at 8 kHz (at most 40 ms), whose first has position `from` on the 16 kHz clock. A jump of
    /// that clock by more than 40 ms starts the search anew. A digit is reported some 30 ms after its end.
    pub fn push(&mut self, pcm: &[i16], from: Sample) -> Option<Detected> {
        if from.abs_diff(self.next) > MAX_JUMP {
            *self = Detector::new();
        }
        self.next = from + 2 * pcm.len() as i64;
        let mut found = None;
        let mut at = 0;
        while at < pcm.len() {
            let free = &mut self.block[self.filled..];
            let count = free.len().min(pcm.len() - at);
            for (slot, &sample) in free.iter_mut().zip(&pcm[at..]) {
                *slot = sample as f32;
            }
            self.filled += count;
            at += count;
            if self.filled == BLOCK {
                self.filled = 0;
                let start = from + 2 * at as i64 - 2 * BLOCK as i64;
                found = self.take_block(start as f64).or(found);
            }
        }
        found
    }

    fn take_block(&mut self, start: f64) -> Option<Detected> {
        let now = BlockLevels::in_block(&self.block, &self.steps);
        let found = self.open.as_mut().and_then(|open| open.take_block(&now, start));
        self.open = self.open.filter(|open| open.missed < 2);
        if self.open.is_none() {
            self.open = self.opens(&now, start);
        }
        self.past = [now, self.past[0]];
        found
    }

    /// Returns the digit that this block and the one before it hold.
    fn opens(&self, now: &BlockLevels, start: f64) -> Option<Open> {
        let [before, earlier] = &self.past;
        let pair = now.pair?;
        if before.pair != Some(pair) || !now.is_true(before, pair) {
            return None;
        }
        let full = now.amplitudes(pair);
        let filled = before.share_of_block(pair, full) + earlier.share_of_block(pair, full);
        Some(Open { pair, from: start - BLOCK_SPAN * filled, to: start + BLOCK_SPAN, full, missed: 0 })
    }
}

impl Open {
    fn take_block(&mut self, now: &BlockLevels, start: f64) -> Option<Detected> {
        if now.pair == Some(self.pair) {
            self.missed = 0;
            self.to = start + BLOCK_SPAN * now.share_of_block(self.pair, self.full);
            return None;
        }
        self.missed += 1;
        if self.missed == 1 {
            self.to += BLOCK_SPAN * now.share_of_block(self.pair, self.full);
        }
        if self.missed == 2 { self.report() } else { None }
    }

    fn report(&self) -> Option<Detected> {
        let duration_ms = (self.to - self.from) / 16.0;
        let (row, column) = self.pair;
        (duration_ms >= MIN_MS).then(|| Detected::Digit {
            digit: DIGITS[row][column],
            from: self.from.round() as Sample,
            duration_ms: duration_ms.round() as u32,
        })
    }
}

impl BlockLevels {
    fn in_block(block: &[f32; BLOCK], steps: &Steps) -> BlockLevels {
        let mut partial = [0.0; 6];
        for samples in block.chunks_exact(6) {
            for (sum, sample) in partial.iter_mut().zip(samples) {
                *sum += sample * sample;
            }
        }
        let energy = partial.iter().sum::<f32>();
        if energy < MIN_POWER * BLOCK as f32 {
            return BlockLevels { energy, ..BlockLevels::default() };
        }
        let mut heard = BlockLevels { tones: goertzel(block, steps), energy, pair: None };
        heard.pair = heard.find_pair();
        heard
    }

    fn power(&self, tone: usize) -> f32 {
        let (real, imaginary) = self.tones[tone];
        real * real + imaginary * imaginary
    }

    fn find_pair(&self) -> Option<(usize, usize)> {
        let (row, low) = self.strongest(0)?;
        let (column, high) = self.strongest(4)?;
        let share = share_of(low + high, self.energy);
        (TWIST.contains(&(high / low)) && share >= SHARE).then_some((row, column))
    }

    /// Returns the strongest of a group's four tones and its power, when it stands out.
    fn strongest(&self, first: usize) -> Option<(usize, f32)> {
        let powers: [f32; 4] = std::array::from_fn(|at| self.power(first + at));
        let (mut best, mut second) = (0, 0.0f32);
        for at in 1..4 {
            let beaten = if powers[at] > powers[best] { std::mem::replace(&mut best, at) } else { at };
            second = second.max(powers[beaten]);
        }
        (powers[best] > second * OVER_OTHERS).then_some((best, powers[best]))
    }

    fn amplitudes(&self, (row, column): (usize, usize)) -> (f32, f32) {
        (self.power(row).sqrt(), self.power(4 + column).sqrt())
    }

    /// Returns the share of this block that a digit with these full amplitudes fills, 0 to 1.
    fn share_of_block(&self, pair: (usize, usize), full: (f32, f32)) -> f64 {
        let (low, high) = self.amplitudes(pair);
        (low / full.0).min(high / full.1).clamp(0.0, 1.0) as f64
    }

    /// True when both tones have their frequency, by the advance of their phase since the block before, and hold nearly
    /// all of the power. The loss of the filters at the true frequency is made good first.
    fn is_true(&self, before: &BlockLevels, (row, column): (usize, usize)) -> bool {
        let (Some(low), Some(high)) = (self.kept_share(before, row), self.kept_share(before, 4 + column)) else {
            return false;
        };
        let share =
            |heard: &BlockLevels| share_of(heard.power(row) / low + heard.power(4 + column) / high, heard.energy);
        let (now, before) = (share(self), share(before));
        now.max(before) >= BETTER_SHARE && now.min(before) >= WORSE_SHARE
    }

    /// Returns the share of a tone's power that its filter keeps at the tone's true frequency; `None` when that is too
    /// far off.
    fn kept_share(&self, before: &BlockLevels, tone: usize) -> Option<f32> {
        let ((a, b), (c, d)) = (self.tones[tone], before.tones[tone]);
        let advance = ((b * c - a * d) as f64).atan2((a * c + b * d) as f64);
        let cycles = advance / TAU - FREQUENCIES_HZ[tone] * BLOCK as f64 / 8000.0;
        let cycles = cycles - cycles.round();
        let off_hz = cycles * 8000.0 / BLOCK as f64;
        let amplitude = if cycles.abs() < 1e-6 { 1.0 } else { (PI * cycles).sin() / (PI * cycles) };
        (off_hz.abs() <= OFF_FREQUENCY * FREQUENCIES_HZ[tone]).then_some((amplitude * amplitude) as f32)
    }
}

/// Returns the share of a filter's power in a block's energy: 1 for a tone alone.
fn share_of(power: f32, energy: f32) -> f32 {
    2.0 * power / (BLOCK as f32 * energy)
}

/// Computes all eight filters side by side: the sum of `x[n] e^(jw(N-1-n))` of each.
fn goertzel(block: &[f32; BLOCK], steps: &Steps) -> [(f32, f32); 8] {
    let Steps { cosines, sines } = steps;
    let doubled = cosines.map(|cosine| 2.0 * cosine);
    let (mut last, mut before) = ([0.0f32; 8], [0.0f32; 8]);
    for &sample in block {
        for tone in 0..8 {
            let now = sample - before[tone] + doubled[tone] * last[tone];
            before[tone] = last[tone];
            last[tone] = now;
        }
    }
    std::array::from_fn(|tone| (last[tone] - cosines[tone] * before[tone], sines[tone] * before[tone]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Codec, Decoder};
    use crate::resample::{DELAY, Down2};
    use crate::seed::Seed;

    /// Impairments of a row of digits.
    #[derive(Copy, Clone, Debug)]
    struct Line {
        tone_ms: usize,
        gap_ms: usize,
        low_dbov: f64,
        /// Level of the high group over that of the low group, in dB.
        twist_db: f64,
        /// Relative errors of the low and the high frequency.
        off: (f64, f64),
        /// White noise below the two tones, in dB.
        snr_db: f64,
    }

    const GOOD: Line =
        Line { tone_ms: 100, gap_ms: 100, low_dbov: -16.0, twist_db: 2.0, off: (0.0, 0.0), snr_db: 40.0 };
    const Q24: Line = Line { tone_ms: 40, gap_ms: 40, ..GOOD };
    const ALL: &str = "1234567890*#ABCD";

    /// Returns 8 kHz audio: 50 ms and a part of a block that differs each time, digits, 100 ms.
    fn audio(digits: &str, line: Line, seed: u64) -> (Vec<i16>, Vec<usize>) {
        let mut noise = Seed(seed).stream("noise");
        let mut pcm = vec![0.0; 400 + noise.index(BLOCK)];
        let mut onsets = Vec::new();
        let amplitude = |dbov: f64| 32_768.0 * 2f64.sqrt() * 10f64.powf(dbov / 20.0);
        let (low, high) = (amplitude(line.low_dbov), amplitude(line.low_dbov + line.twist_db));
        for digit in digits.chars() {
            onsets.push(pcm.len());
            let (low_hz, high_hz) = super::super::frequencies_hz(digit).unwrap();
            let (low_step, high_step) =
                (TAU * low_hz * (1.0 + line.off.0) / 8e3, TAU * high_hz * (1.0 + line.off.1) / 8e3);
            let phase = noise.unit() * TAU;
            pcm.extend(
                (0..line.tone_ms * 8)
                    .map(|at| low * (at as f64 * low_step + phase).sin() + high * (at as f64 * high_step).sin()),
            );
            pcm.extend(vec![0.0; line.gap_ms * 8]);
        }
        pcm.extend(vec![0.0; 800]);
        let noise_rms = ((low * low + high * high) / 2.0).sqrt() * 10f64.powf(-line.snr_db / 20.0);
        (pcm.iter().map(|sample| (sample + noise_rms * noise.normal()).round() as i16).collect(), onsets)
    }

    fn detect(pcm: &[i16]) -> Vec<(char, Sample, u32)> {
        let mut detector = Detector::new();
        let found = pcm.chunks(160).enumerate().filter_map(|(at, pcm)| detector.push(pcm, at as Sample * 320));
        found.map(|Detected::Digit { digit, from, duration_ms }| (digit, from, duration_ms)).collect()
    }

    /// Returns the number of digits found of 640, and of digits too many.
    fn score(line: Line) -> (usize, usize) {
        let (mut right, mut wrong) = (0, 0);
        for seed in 0..40 {
            let (pcm, onsets) = audio(ALL, line, seed);
            let found = detect(&pcm);
            let hits = ALL.chars().zip(&onsets).filter(|(digit, onset)| {
                found.iter().any(|(heard, from, _)| heard == digit && (from / 2 - **onset as i64).abs() < 120)
            });
            let hits = hits.count();
            right += hits;
            wrong += found.len() - hits;
        }
        (right, wrong)
    }

    #[test]
    fn digits_within_the_bounds_of_q24_are_heard() {
        for line in [
            GOOD,
            Q24,
            Line { tone_ms: 70, gap_ms: 30, ..GOOD },
            Line { low_dbov: -38.0, ..Q24 },
            Line { low_dbov: -9.0, twist_db: 0.0, ..Q24 },
            Line { twist_db: 4.0, ..Q24 },
            Line { twist_db: -8.0, ..Q24 },
            Line { off: (0.015, 0.015), ..Q24 },
            Line { off: (-0.015, -0.015), ..Q24 },
            Line { off: (0.015, -0.015), twist_db: 4.0, ..Q24 },
            Line { off: (-0.015, 0.015), twist_db: -8.0, ..Q24 },
            Line { snr_db: 15.0, ..Q24 },
            Line { snr_db: 15.0, off: (0.015, -0.015), ..Q24 },
            Line { snr_db: 15.0, twist_db: -8.0, ..Q24 },
        ] {
            let (right, wrong) = score(line);
            assert!(right >= 634 && wrong == 0, "{line:?}: {right} of 640, {wrong} wrong");
        }
    }

    #[test]
    fn tones_outside_the_bounds_are_refused() {
        for line in [
            Line { off: (0.035, 0.0), ..GOOD },
            Line { off: (-0.035, 0.0), ..GOOD },
            Line { off: (0.0, 0.035), ..GOOD },
            Line { off: (0.0, -0.035), ..GOOD },
            Line { off: (0.05, 0.05), ..GOOD },
            Line { tone_ms: 22, ..GOOD },
            Line { low_dbov: -55.0, ..GOOD },
            Line { twist_db: 10.0, ..GOOD },
            Line { twist_db: -14.0, ..GOOD },
            Line { twist_db: -60.0, ..GOOD },
            Line { snr_db: -3.0, ..GOOD },
        ] {
            assert_eq!(score(line), (0, 0), "{line:?}");
        }
    }

    #[test]
    fn onsets_and_lengths_are_measured() {
        for line in [GOOD, Q24, Line { snr_db: 15.0, ..Q24 }, Line { tone_ms: 500, ..GOOD }] {
            for seed in 0..20 {
                let (pcm, onsets) = audio("159D", line, seed);
                let found = detect(&pcm);
                assert_eq!(found.len(), 4);
                for ((_, from, duration_ms), onset) in found.iter().zip(onsets) {
                    let late = from - 2 * onset as i64;
                    assert!(late.abs() <= 48, "{line:?}: {late} samples late");
                    assert!(duration_ms.abs_diff(line.tone_ms as u32) <= 4, "{line:?}: {duration_ms} ms");
                }
            }
        }
    }

    #[test]
    fn what_tones_makes_is_heard_through_the_resampler() {
        let mut tones = super::super::Tones::new("0123456789*#ABCD", 1000, super::super::Pace::default());
        let (mut detector, mut down, mut found) = (Detector::new(), Down2::new(), Vec::new());
        for frame in 0..180 {
            let mut sums = [0; 320];
            tones.mix(frame * 320, &mut sums);
            let mut pcm = [0; 160];
            down.process(&sums.map(|sum| (sum / 2) as i16), &mut pcm);
            found.extend(detector.push(&pcm, frame * 320 - DELAY));
        }
        let onsets: Vec<_> = tones.onsets().collect();
        assert_eq!(found.len(), 16, "{found:?}");
        for (Detected::Digit { digit, from, duration_ms }, (sent, onset)) in found.into_iter().zip(onsets) {
            assert_eq!(digit, sent);
            assert!(
                (from - onset).abs() <= 64 && duration_ms.abs_diff(97) <= 6,
                "{digit}: {from} {onset} {duration_ms}"
            );
        }
    }

    /// 20 s of four voices, as mu-law.
    const SPEECH: &[u8] = include_bytes!("../../../fixtures/audio/speech.ul");

    #[test]
    fn speech_and_music_hold_no_digits() {
        let mut speech = vec![0; SPEECH.len()];
        Decoder::new(Codec::Pcmu).decode(SPEECH, &mut speech);
        assert_eq!(detect(&speech), []);
        // All pairs of notes of two octaves, 60 ms each, with the overtones of an instrument.
        let note = |n: usize| 220.0 * 2f64.powf(n as f64 / 12.0) / 8000.0 * TAU;
        let voice = |phase: f64| (1..5).map(|n| (phase * n as f64).sin() / n as f64).sum::<f64>();
        let pairs = (0..24).flat_map(|low| (low + 1..24).map(move |high| (low, high)));
        let music = pairs.flat_map(|(low, high)| {
            (0..480).map(move |at| (5000.0 * (voice(at as f64 * note(low)) + voice(at as f64 * note(high)))) as i16)
        });
        assert_eq!(detect(&music.collect::<Vec<i16>>()), []);
    }

    #[test]
    fn a_jump_of_the_clock_forgets_and_blocks_may_have_any_length() {
        let (pcm, _) = audio(ALL, GOOD, 3);
        let whole = detect(&pcm);
        let mut detector = Detector::new();
        let found = pcm.chunks(7).enumerate().filter_map(|(at, pcm)| detector.push(pcm, at as Sample * 14));
        assert_eq!(found.count(), whole.len());
        let mut detector = Detector::new();
        assert_eq!(detector.push(&pcm[400..720], 0), None);
        assert_eq!(detector.push(&[0; 320], 100_000), None);
        assert_eq!(detector.push(&[0; 320], 100_640), None);
        assert_eq!(detector.push(&[], -5), None);
    }
}
