//! Change of sample rate: [`Up2`] and [`Down2`] between 8 and 16 kHz for streams, [`Resampler`] between any other two
//! rates for streams, [`resample_whole`] for finished clips and [`ClipResampler`] for those that come in pieces.
//!
//! The two share one half-band FIR (71 taps, Kaiser window): flat within 0.01 dB to 3.4 kHz, images and aliases
//! more than 80 dB down, [`DELAY`] late. They take blocks of any length, give exactly twice or half as many samples,
//! and do not allocate.
//!
//! Streams go through filters of this file, which cost 10 ms of delay; whole clips go through `rubato`, which cost
//! none. Between any two rates nothing is left beside a tone above -78 dB.

mod clip;
mod ratio;

pub use clip::{ClipResampler, resample_whole};
pub use ratio::Resampler;

/// Delay of [`Up2`] and of [`Down2`], in samples at 16 kHz (2.19 ms).
pub const DELAY: i64 = 35;

/// Taps of the half-band filter on either side that are not zero.
const SIDE: usize = 18;

/// Number of earlier samples that a filter of one phase needs.
const PAST: usize = 2 * SIDE - 1;

/// Number of samples at 8 kHz that one pass takes; a longer block is taken in several.
const BLOCK: usize = 160;

/// Number of sums computed side by side, so that they stay in registers.
const LANES: usize = 16;

/// The outer half of the half-band filter's odd phase: half the tap pairs, outermost first. They add up to 1 (both
/// sides), which is unity gain for up-sampling.
static TAPS: [f32; SIDE] = [
    -0.000_060_252_756,
    0.000_191_124_87,
    -0.000_449_319_14,
    0.000_904_294_67,
    -0.001_645_921_6,
    0.002_786_642_2,
    -0.004_464_119_6,
    0.006_845_641,
    -0.010_136_72,
    0.014_598_602,
    -0.020_584_134,
    0.028_612_546,
    -0.039_532_86,
    0.054_912_788,
    -0.078_101_63,
    0.117_849_277,
    -0.206_399_83,
    0.634_673_9,
];

/// Past samples that a filter needs, and the block that it filters. It is put together on the stack, which stays in the
/// processor's cache; only the last samples are kept.
type Line = [f32; PAST + BLOCK];

/// Conversion from 8 to 16 kHz.
#[derive(Clone, Debug)]
pub struct Up2 {
    past: [f32; PAST],
    still: bool,
}

impl Default for Up2 {
    fn default() -> Self {
        Up2::new()
    }
}

impl Up2 {
    /// Returns a filter with silence before it.
    pub fn new() -> Up2 {
        Up2 { past: [0.0; PAST], still: true }
    }

    /// Writes two samples for each of `pcm`, as far as `out` reaches; returns the samples written.
    pub fn process(&mut self, pcm: &[i16], out: &mut [i16]) -> usize {
        let count = pcm.len().min(out.len() / 2);
        if stays_silent(&mut self.still, &pcm[..count], PAST) {
            out[..2 * count].fill(0);
            return 2 * count;
        }
        for (pcm, out) in pcm[..count].chunks(BLOCK).zip(out[..2 * count].chunks_mut(2 * BLOCK)) {
            let line = line(&mut self.past, pcm.len(), pcm.iter().copied());
            let odd = filter(&line);
            // The line is 35 samples at 8 kHz; a delay of 35 at 16 kHz stands between its samples 17 and 18.
            for ((pair, &between), &kept) in out.chunks_exact_mut(2).zip(&odd).zip(&line[SIDE..]) {
                pair[0] = to_pcm(between);
                pair[1] = to_pcm(kept);
            }
        }
        2 * count
    }
}

/// Conversion from 16 to 8 kHz.
#[derive(Clone, Debug)]
pub struct Down2 {
    even: [f32; PAST],
    odd: [f32; PAST],
    still: bool,
}

impl Default for Down2 {
    fn default() -> Self {
        Down2::new()
    }
}

impl Down2 {
    /// Returns a filter with silence before it.
    pub fn new() -> Down2 {
        Down2 { even: [0.0; PAST], odd: [0.0; PAST], still: true }
    }

    /// Writes a sample for each two of `pcm`, as far as `out` reaches; returns the samples written. `pcm` holds an even
    /// count: an odd last sample is left out.
    pub fn process(&mut self, pcm: &[i16], out: &mut [i16]) -> usize {
        let count = (pcm.len() / 2).min(out.len());
        if stays_silent(&mut self.still, &pcm[..2 * count], 2 * PAST) {
            out[..count].fill(0);
            return count;
        }
        for (pcm, out) in pcm[..2 * count].chunks(2 * BLOCK).zip(out[..count].chunks_mut(BLOCK)) {
            let pairs = pcm.as_chunks::<2>().0;
            let even = line(&mut self.even, out.len(), pairs.iter().map(|pair| pair[0]));
            let odd = line(&mut self.odd, out.len(), pairs.iter().map(|pair| pair[1]));
            let sides = filter(&even);
            for ((out, &sides), &centre) in out.iter_mut().zip(&sides).zip(&odd[SIDE - 1..]) {
                *out = to_pcm(0.5 * (sides + centre));
            }
        }
        count
    }
}

/// True when silence follows silence, so that nothing need be filtered. `still`: the filter holds nothing else, as
/// after `all` samples.
fn stays_silent(still: &mut bool, pcm: &[i16], all: usize) -> bool {
    let silent = pcm.iter().all(|&sample| sample == 0);
    let stays = *still && silent;
    *still = stays || (silent && pcm.len() >= all);
    stays
}

/// Joins `past` and the `count` samples of `pcm` behind it; `past` is then the end of both.
#[inline(always)]
fn line(past: &mut [f32; PAST], count: usize, pcm: impl Iterator<Item = i16>) -> Line {
    let mut line = [0.0; PAST + BLOCK];
    line[..PAST].copy_from_slice(past);
    for (slot, sample) in line[PAST..].iter_mut().zip(pcm) {
        *slot = f32::from(sample);
    }
    past.copy_from_slice(&line[count..count + PAST]);
    line
}

/// Computes the odd phase of the half-band filter at every position of a line. The taps are symmetric: samples are
/// added in pairs.
fn filter(line: &Line) -> [f32; BLOCK] {
    let mut out = [0.0; BLOCK];
    for (group, out) in out.chunks_exact_mut(LANES).enumerate() {
        let window: &[f32; PAST + LANES] =
            line[group * LANES..][..PAST + LANES].try_into().expect("the slice has this length");
        let mut sums = [0.0; LANES];
        for (at, tap) in TAPS.iter().enumerate() {
            for lane in 0..LANES {
                sums[lane] += tap * (window[at + lane] + window[PAST - at + lane]);
            }
        }
        out.copy_from_slice(&sums);
    }
    out
}

/// Rounds to the nearest sample and limits. Adding 1.5 * 2^23 leaves the rounded value in the low bits, which
/// vectorises where `round` does not; the filters' sums stay far below 2^22.
#[inline(always)]
fn to_pcm(value: f32) -> i16 {
    let rounded = (value + 12_582_912.0).to_bits() as i32 - 0x4b40_0000;
    rounded.clamp(i16::MIN as i32, i16::MAX as i32) as i16
}

pub(crate) fn sinc(x: f64) -> f64 {
    let x = x * std::f64::consts::PI;
    if x.abs() < 1e-9 { 1.0 } else { x.sin() / x }
}

/// Returns the Kaiser window at `x` in -1..=1, 1 in its middle, 0 outside.
pub(crate) fn kaiser(x: f64, beta: f64) -> f64 {
    if x.abs() > 1.0 { 0.0 } else { bessel(beta * (1.0 - x * x).sqrt()) / bessel(beta) }
}

/// Returns the modified Bessel function of order 0, by its power series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-12 {
        term *= (x / (2.0 * k)).powi(2);
        sum += term;
        k += 1.0;
    }
    sum
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one second of a tone of amplitude 16000.
    pub(super) fn tone(hz: f64, rate_hz: u32) -> Vec<i16> {
        let step = std::f64::consts::TAU * hz / rate_hz as f64;
        (0..rate_hz).map(|at| ((at as f64 * step).sin() * 16_000.0).round() as i16).collect()
    }

    /// Returns the RMS of `pcm` without its first and last 50 ms, in dB relative to the tone of amplitude 16000.
    pub(super) fn level_db(pcm: &[i16]) -> f64 {
        let inner = &pcm[pcm.len() / 20..pcm.len() * 19 / 20];
        let power = inner.iter().map(|&sample| (sample as f64).powi(2)).sum::<f64>() / inner.len() as f64;
        10.0 * (power / (16_000f64.powi(2) / 2.0)).max(1e-12).log10()
    }

    /// Returns the level of the remainder of `pcm` without the best fitting tone of `hz` (a multiple of 10), in dB as
    /// above.
    pub(super) fn residue_db(pcm: &[i16], hz: f64, rate_hz: u32) -> f64 {
        let inner = &pcm[pcm.len() / 20..pcm.len() * 19 / 20];
        let step = std::f64::consts::TAU * hz / rate_hz as f64;
        let wave = |at: usize| (at as f64 * step).sin_cos();
        let scale = 2.0 / inner.len() as f64;
        let (mut sine, mut cosine) = (0.0, 0.0);
        for (at, &sample) in inner.iter().enumerate() {
            sine += scale * sample as f64 * wave(at).0;
            cosine += scale * sample as f64 * wave(at).1;
        }
        let rest = inner.iter().enumerate();
        let rest = rest.map(|(at, &sample)| (sample as f64 - sine * wave(at).0 - cosine * wave(at).1).powi(2));
        10.0 * (rest.sum::<f64>() / inner.len() as f64 / (16_000f64.powi(2) / 2.0)).log10()
    }

    fn up(pcm: &[i16], block: usize) -> Vec<i16> {
        let (mut filter, mut out) = (Up2::new(), vec![0; pcm.len() * 2]);
        for (pcm, out) in pcm.chunks(block).zip(out.chunks_mut(2 * block)) {
            assert_eq!(filter.process(pcm, out), 2 * pcm.len());
        }
        out
    }

    fn down(pcm: &[i16], block: usize) -> Vec<i16> {
        let (mut filter, mut out) = (Down2::new(), vec![0; pcm.len() / 2]);
        for (pcm, out) in pcm.chunks(2 * block).zip(out.chunks_mut(block)) {
            assert_eq!(filter.process(pcm, out), pcm.len() / 2);
        }
        out
    }

    #[test]
    fn sound_rings_out_before_silence_is_passed_on() {
        let sound = tone(1000.0, 8000);
        let pcm = [&sound[..160], &[0; 400], &sound[..160]].concat();
        for block in [1, 2, 7, PAST - 1, PAST, 2 * PAST, 400] {
            assert_eq!(up(&pcm, block), up(&pcm, pcm.len()), "up, {block} samples at a time");
            assert_eq!(down(&pcm, 2 * block), down(&pcm, pcm.len()), "down, {} samples at a time", 2 * block);
        }
    }

    #[test]
    fn the_pass_band_is_flat_and_images_and_aliases_are_gone() {
        for hz in [50.0, 300.0, 1000.0, 2000.0, 3000.0, 3400.0] {
            for (made, rate_hz) in [(up(&tone(hz, 8000), 160), 16_000), (down(&tone(hz, 16_000), 160), 8000)] {
                assert!(level_db(&made).abs() < 0.02, "{hz} Hz to {rate_hz}: {} dB", level_db(&made));
                // Rounding to 16 bits alone leaves -89 dB.
                let residue = residue_db(&made, hz, rate_hz);
                assert!(residue < -78.0, "{hz} Hz to {rate_hz}: {residue} dB beside it");
            }
        }
        for hz in [4600.0, 5000.0, 6000.0, 7000.0, 7900.0] {
            let alias = level_db(&down(&tone(hz, 16_000), 160));
            assert!(alias < -78.0, "{hz} Hz: {alias} dB");
        }
    }

    #[test]
    fn the_delay_is_35_samples_and_block_lengths_do_not_matter() {
        let mut click = vec![0; 640];
        click[100] = 20_000;
        let upward = up(&click, 160);
        assert_eq!((0..1280).max_by_key(|&at| upward[at].abs()), Some(200 + DELAY as usize));
        let smooth: Vec<i16> = tone(440.0, 16_000);
        let lowered = down(&smooth, 160);
        for at in 100..4000 {
            let expected = smooth[2 * at + 1 - DELAY as usize - 1];
            assert!((lowered[at] - expected).abs() <= 2, "{at}: {} {expected}", lowered[at]);
        }
        for block in [1, 3, 33, 160, 161, 500] {
            assert!(up(&smooth, block) == up(&smooth, 160));
            assert!(down(&smooth, block) == lowered);
        }
    }

    #[test]
    fn full_scale_is_limited_and_short_buffers_shorten_the_work() {
        let square: Vec<i16> = (0..1600).map(|at| if at / 10 % 2 == 0 { i16::MAX } else { i16::MIN }).collect();
        let made = up(&square, 160);
        assert!(made.iter().zip(&made[1..]).all(|(a, b)| (*a as i32 - *b as i32).abs() < 50_000));
        assert_eq!(Up2::new().process(&[1; 160], &mut [0; 7]), 6);
        assert_eq!(Down2::new().process(&[1; 9], &mut [0; 160]), 4);
        assert_eq!(Down2::new().process(&[1; 9], &mut [0; 2]), 2);
    }

    #[test]
    fn whole_clips_keep_tones_and_lose_what_the_lower_rate_cannot_hold() {
        for (from_hz, to_hz) in [
            (8000, 16_000),
            (11_025, 16_000),
            (16_000, 8000),
            (22_050, 16_000),
            (24_000, 16_000),
            (32_000, 16_000),
            (44_100, 16_000),
            (48_000, 16_000),
            (16_000, 48_000),
            (16_000, 44_100),
            (12_345, 16_000),
        ] {
            let nyquist_hz = from_hz.min(to_hz) as f64 / 2.0;
            for share in [0.01, 0.3, 0.8] {
                // Whole cycles in the 0.9 s that are measured.
                let hz = (share * nyquist_hz / 10.0).round() * 10.0;
                let made = resample_whole(&tone(hz, from_hz), from_hz, to_hz);
                assert_eq!(made.len(), to_hz as usize);
                let (level, residue) = (level_db(&made), residue_db(&made, hz, to_hz));
                let limit = -78.0;
                assert!(level.abs() < 0.02 && residue < limit, "{from_hz} to {to_hz}, {hz} Hz: {level} {residue}");
            }
            if from_hz > to_hz {
                let alias = level_db(&resample_whole(&tone(nyquist_hz * 1.05, from_hz), from_hz, to_hz));
                assert!(alias < -78.0, "{from_hz} to {to_hz}: {alias}");
            }
        }
    }

    #[test]
    fn whole_clips_are_not_delayed_and_odd_input_is_safe() {
        for (from_hz, to_hz) in [(48_000, 16_000), (24_000, 16_000), (8000, 16_000), (16_000, 8000), (11_025, 16_000)] {
            let made = resample_whole(&tone(200.0, from_hz), from_hz, to_hz);
            for (at, (a, b)) in made.iter().zip(tone(200.0, to_hz)).enumerate().skip(200).take(7000) {
                assert!((a - b).abs() <= 2, "{from_hz} to {to_hz}, {at}: {a} {b}");
            }
        }
        assert!(resample_whole(&[], 8000, 16_000).is_empty());
        assert!(resample_whole(&[5; 9], 0, 16_000).is_empty());
        assert_eq!(resample_whole(&[7], 8000, 16_000).len(), 2);
        assert_eq!(resample_whole(&[7; 3], 48_000, 16_000).len(), 1);
    }
}
