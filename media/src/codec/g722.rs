//! ITU-T G.722 at 64 kbit/s (mode 1): two sub-bands of adaptive differential PCM behind a 24-tap quadrature mirror
//! filter.
//!
//! Names in the comments (DETL, SZ, AL1 ...) are those of the Recommendation's clauses 3 and 6, block names in
//! capitals. The filters run over a whole block, the recursive part sample by sample.

/// Number of sample pairs that one pass takes; a longer input is taken in several.
const PAIRS: usize = 160;

/// Number of past pairs that the mirror filter needs.
const PAST: usize = 11;

/// Every second tap of the mirror filter (clause 3.1, table 11); the other half is the same backwards.
const MIRROR: [i32; 12] = [3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11];

/// Encoder from PCM at 16 kHz to bytes.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    low: Band,
    high: Band,
    filter: Filter,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder { low: Band::low(), high: Band::high(), filter: Filter::default() }
    }
}

impl Encoder {
    /// Encodes sample pairs, a byte each, as far as `out` reaches; returns the bytes written.
    pub(super) fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        let count = (pcm.len() / 2).min(out.len());
        for (pcm, out) in pcm[..2 * count].chunks(2 * PAIRS).zip(out[..count].chunks_mut(PAIRS)) {
            let pairs = pcm.chunks_exact(2).map(|pair| (pair[0] as i32, pair[1] as i32));
            let (first, second) = self.filter.run(pairs);
            for ((byte, first), second) in out.iter_mut().zip(first).zip(second) {
                *byte = self.encode_pair((first + second) >> 14, (first - second) >> 14);
            }
        }
        count
    }

    fn encode_pair(&mut self, low: i32, high: i32) -> u8 {
        let low_code = quantise_low(clip16(low - self.low.predicted), self.low.step);
        self.low.adapt_low(low_code >> 2);
        let high_code = quantise_high(clip16(high - self.high.predicted), self.high.step);
        self.high.adapt_high(high_code);
        (high_code << 6 | low_code) as u8
    }
}

/// Decoder from bytes to PCM at 16 kHz.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    low: Band,
    high: Band,
    filter: Filter,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { low: Band::low(), high: Band::high(), filter: Filter::default() }
    }
}

impl Decoder {
    /// Decodes bytes, two samples each, as far as `out` reaches; returns the samples written.
    pub(super) fn decode(&mut self, bytes: &[u8], out: &mut [i16]) -> usize {
        let count = bytes.len().min(out.len() / 2);
        for (bytes, out) in bytes[..count].chunks(PAIRS).zip(out[..2 * count].chunks_mut(2 * PAIRS)) {
            let (low, high) = (&mut self.low, &mut self.high);
            let pairs = bytes.iter().map(|&byte| {
                let (low, high) = (low.decode_low((byte & 63) as usize), high.decode_high((byte >> 6) as usize));
                (low + high, low - high)
            });
            let (first, second) = self.filter.run(pairs);
            for ((pair, first), second) in out.chunks_exact_mut(2).zip(first).zip(second) {
                pair[0] = clip16(first >> 11) as i16;
                pair[1] = clip16(second >> 11) as i16;
            }
        }
        2 * count
    }
}

/// The quadrature mirror filter: two interleaved 12-tap filters over pairs, with the pairs of the past in front.
#[derive(Clone, Debug)]
struct Filter {
    even: [i32; PAST + PAIRS],
    odd: [i32; PAST + PAIRS],
}

impl Default for Filter {
    fn default() -> Self {
        Filter { even: [0; PAST + PAIRS], odd: [0; PAST + PAIRS] }
    }
}

impl Filter {
    /// Takes up to [`PAIRS`] pairs in time order; gives the sums over the second and over the first samples (clause
    /// 3.1: XA and XB; the decoder's XOUT1 and XOUT2). Only the first `pairs` sums mean something.
    fn run(&mut self, pairs: impl Iterator<Item = (i32, i32)>) -> ([i32; PAIRS], [i32; PAIRS]) {
        let mut count = 0;
        for (at, (even, odd)) in pairs.take(PAIRS).enumerate() {
            self.even[PAST + at] = even;
            self.odd[PAST + at] = odd;
            count = at + 1;
        }
        let (mut first, mut second) = ([0; PAIRS], [0; PAIRS]);
        for (tap, coefficient) in MIRROR.into_iter().enumerate() {
            for (sum, sample) in first.iter_mut().zip(&self.odd[PAST - tap..]) {
                *sum += sample * coefficient;
            }
            for (sum, sample) in second.iter_mut().zip(&self.even[tap..]) {
                *sum += sample * coefficient;
            }
        }
        self.even.copy_within(count..count + PAST, 0);
        self.odd.copy_within(count..count + PAST, 0);
        (first, second)
    }
}

/// One sub-band's quantiser step and predictor (clauses 3.3 to 3.6), the same in encoder and decoder.
#[derive(Clone, Debug)]
struct Band {
    /// Step of the quantiser, DET.
    step: i32,
    /// Logarithm of the quantiser step, NB.
    log_step: i32,
    /// Prediction of the next sample, S.
    predicted: i32,
    /// Contribution of the zeros to the prediction, SZ.
    from_zeros: i32,
    /// Coefficients of the six zeros, B.
    zeros: [i32; 6],
    /// Last six quantised differences, D.
    differences: [i32; 6],
    /// Coefficients of the two poles, A.
    poles: [i32; 2],
    /// Last reconstructed sample, R, doubled as block FILTEP needs it.
    reconstructed: i32,
    /// Signs of the last two partially reconstructed samples, P < 0, latest first.
    negative: [bool; 2],
}

impl Band {
    fn with_step(step: i32) -> Band {
        Band {
            step,
            log_step: 0,
            predicted: 0,
            from_zeros: 0,
            zeros: [0; 6],
            differences: [0; 6],
            poles: [0; 2],
            reconstructed: 0,
            negative: [false; 2],
        }
    }

    fn low() -> Band {
        Band::with_step(32)
    }

    fn high() -> Band {
        Band::with_step(8)
    }

    /// Returns the reconstructed low-band sample of a 6-bit code; adapts.
    #[inline(always)]
    fn decode_low(&mut self, code: usize) -> i32 {
        let sample = clip15(self.predicted + ((self.step * LEVELS_6[code]) >> 15));
        self.adapt_low(code >> 2);
        sample
    }

    /// Returns the reconstructed high-band sample of a 2-bit code; adapts.
    #[inline(always)]
    fn decode_high(&mut self, code: usize) -> i32 {
        let sample = clip15(self.predicted + ((self.step * LEVELS_2[code]) >> 15));
        self.adapt_high(code);
        sample
    }

    /// Adapts to the upper four bits of a low-band code (blocks INVQAL, LOGSCL, SCALEL and block 4L).
    #[inline(always)]
    fn adapt_low(&mut self, code: usize) {
        self.predict((self.step * LEVELS_4[code]) >> 15);
        self.log_step = (((self.log_step * 127) >> 7) + LOG_STEPS_LOW[code]).clamp(0, 18_432);
        self.step = antilog(self.log_step, 8);
    }

    /// Adapts to a high-band code (blocks INVQAH, LOGSCH, SCALEH and block 4H).
    #[inline(always)]
    fn adapt_high(&mut self, code: usize) {
        self.predict((self.step * LEVELS_2[code]) >> 15);
        self.log_step = (((self.log_step * 127) >> 7) + LOG_STEPS_HIGH[code]).clamp(0, 22_528);
        self.step = antilog(self.log_step, 10);
    }

    /// Runs block 4: takes a quantised difference, moves poles and zeros, predicts the next sample.
    #[inline(always)]
    fn predict(&mut self, difference: i32) {
        // PARREC, UPPOL2, UPPOL1
        let negative = self.from_zeros + difference < 0;
        let same = self.negative.map(|before| if before == negative { 1 } else { -1 });
        self.negative = [negative, self.negative[0]];
        let by_first = (-same[0] * self.poles[0].clamp(-8191, 8191)) >> 5;
        let second = (by_first + same[1] * 128 + ((self.poles[1] * 127) >> 7)).clamp(-12_288, 12_288);
        let limit = 15_360 - second;
        let first = (same[0] * 192 + ((self.poles[0] * 255) >> 8)).clamp(-limit, limit);
        self.poles = [first, second];

        // UPZERO, DELAYA, FILTEZ
        let pull = if difference == 0 { 0 } else { 128 };
        for (zero, before) in self.zeros.iter_mut().zip(&self.differences) {
            let sign = (before ^ difference) >> 31;
            *zero = ((*zero * 255) >> 8) + ((pull ^ sign) - sign);
        }
        self.differences.copy_within(0..5, 1);
        self.differences[0] = difference;
        let products = self.zeros.iter().zip(&self.differences).map(|(zero, past)| (zero * (past * 2)) >> 15);
        self.from_zeros = products.sum();

        // RECONS, FILTEP, PREDIC
        let reconstructed = clip16((self.predicted + difference) * 2);
        let from_poles = ((first * reconstructed) >> 15) + ((second * self.reconstructed) >> 15);
        self.predicted = clip16(self.from_zeros + from_poles);
        self.reconstructed = reconstructed;
    }
}

/// Returns the step of a log step (blocks SCALEL, SCALEH).
#[inline(always)]
fn antilog(log_step: i32, base: i32) -> i32 {
    let mantissa = ANTILOG[((log_step >> 6) & 31) as usize];
    let shift = (log_step >> 11) - base;
    (if shift < 0 { mantissa >> -shift } else { mantissa << shift }) << 2
}

/// Returns the 6-bit code of a low-band difference (block QUANTL). The codes number the decision intervals from the
/// outside in. Negative ones begin at 4 (30 is the 27th), positive ones at 32; 62 and 63 are the two innermost negative
/// ones.
#[inline(always)]
fn quantise_low(difference: i32, step: i32) -> usize {
    let size = difference ^ (difference >> 31);
    let mut interval = 0;
    for stride in [16, 8, 4, 2, 1] {
        let reached = size >= (THRESHOLDS[interval + stride - 1] * step) >> 12;
        interval += if reached { stride } else { 0 };
    }
    match (difference < 0, interval.min(29)) {
        (false, interval) => 61 - interval,
        (true, interval @ 0..2) => 63 - interval,
        (true, interval) => 33 - interval,
    }
}

/// Returns the 2-bit code of a high-band difference (block QUANTH).
#[inline(always)]
fn quantise_high(difference: i32, step: i32) -> usize {
    let outer = difference ^ (difference >> 31) >= (564 * step) >> 12;
    match (difference < 0, outer) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    }
}

#[inline(always)]
fn clip16(value: i32) -> i32 {
    value.clamp(-32_768, 32_767)
}

#[inline(always)]
fn clip15(value: i32) -> i32 {
    value.clamp(-16_384, 16_383)
}

/// Q6: upper decision thresholds of the low band, innermost first, filled up for the binary search.
static THRESHOLDS: [i32; 31] = [
    35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023, 1121, 1219, 1339,
    1458, 1612, 1765, 1980, 2195, 2557, 2919, 32_767, 32_767,
];

/// QQ6: output levels of the 6-bit low-band code.
static LEVELS_6: [i32; 64] = [
    -136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576,
    -7856, -7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040,
    -728, 24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
    4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
];

/// QQ4: output levels of the low-band code without its lower two bits.
static LEVELS_4: [i32; 16] =
    [0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0];

/// QQ2: output levels of the high-band code.
static LEVELS_2: [i32; 4] = [-7408, -1616, 7408, 1616];

/// WL: log step increments of the low band, by the same four bits.
static LOG_STEPS_LOW: [i32; 16] = [-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60];

/// WH: log step increments of the high band.
static LOG_STEPS_HIGH: [i32; 4] = [798, -214, 798, -214];

/// ILB: mantissas of the antilogarithm.
static ANTILOG: [i32; 32] = [
    2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834, 2896, 2960, 3025,
    3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Speech, full-scale white noise, a full-scale square wave and a sweep to 7.9 kHz, with what ffmpeg made of them.
    const INPUT: &[u8] = include_bytes!("../../../fixtures/audio/g722_input.s16");
    const ENCODED: &[u8] = include_bytes!("../../../fixtures/audio/g722_encoded.g722");
    const DECODED: &[u8] = include_bytes!("../../../fixtures/audio/g722_decoded.s16");

    fn pcm(bytes: &[u8]) -> Vec<i16> {
        bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn encoding_and_decoding_equal_ffmpeg_in_blocks_of_any_size() {
        for pairs in [1, 7, 160, 161, 4000] {
            let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            for block in pcm(INPUT).chunks(2 * pairs) {
                let mut bytes = vec![0; block.len() / 2];
                assert_eq!(encoder.encode(block, &mut bytes), bytes.len());
                let mut samples = vec![0; block.len()];
                assert_eq!(decoder.decode(&bytes, &mut samples), samples.len());
                encoded.extend(bytes);
                decoded.extend(samples);
            }
            assert!(encoded == ENCODED, "blocks of {pairs} pairs");
            assert!(decoded == pcm(DECODED), "blocks of {pairs} pairs");
        }
    }

    #[test]
    fn any_bytes_decode() {
        let mut out = [0; 20_000];
        for step in 1..=97u32 {
            let bytes: Vec<u8> = (0..10_000u32).map(|at| (at * step + ((at * at) >> 7)) as u8).collect();
            assert_eq!(Decoder::default().decode(&bytes, &mut out), 20_000);
        }
    }
}
