//! Detector of frames with one or two steady tones. Digits and call progress tones stand above the noise floor and
//! score high in the detector, but they are no speech.
//!
//! No tone is lower than 320 Hz: a vowel of one strong harmonic passes the test for two sinusoids. That made one or two
//! false gaps in each of 18 recordings.

use wide::f32x4;

use crate::dot::{products, squares};
use crate::frame::{FRAME, Frame};

/// Distances, in samples at 16 kHz, at which the recurrence is tried: speech may obey it at one by chance, tones do at
/// all.
const LAGS: [usize; 3] = [5, 7, 11];

/// Lowest frequency of a signalling tone, Hz (a dial tone begins at 350 Hz): a pure sound below is the fundamental of a
/// voice.
const LOWEST_HZ: f64 = 320.0;

/// Number of samples at 16 kHz over which the mean frequency is measured.
const STEP: usize = 4;

/// Number of sums of each kind that are computed side by side. A frame without four lags is a multiple of it.
const LANES: usize = 4;

/// True when one or two steady sinusoids stand at least `above_db` (at most 60) above all else in a frame, not lower
/// than a signalling tone.
///
/// Two undamped sinusoids obey a symmetric recurrence at any lag L: x(n) + x(n-4L) = a (x(n-L) + x(n-3L)) + b x(n-2L).
/// So the three terms, scaled to equal noise, are linearly dependent but for the noise. The smallest eigenvalue of
/// their covariance is the power of everything but such tones (Pisarenko's decomposition). Speech mostly fails at the
/// first lag.
pub(crate) fn is_tone(pcm: &Frame, above_db: f32) -> bool {
    let mean_power = mean_power(pcm);
    let most = mean_power / 10f64.powf(f64::from(above_db) / 10.0);
    if mean_power <= 0.0 {
        return false;
    }
    let values = pcm.map(f32::from);
    LAGS.iter().all(|&lag| smallest_eigenvalue(covariance(&values, lag)) < most) && !is_low(pcm)
}

/// Returns the mean square of these samples.
pub(super) fn mean_power(pcm: &[i16]) -> f64 {
    squares(pcm) as f64 / pcm.len() as f64
}

/// Returns the factors of the three terms, of unit length, with which a tone cancels at this lag: the eigenvector of
/// the smallest eigenvalue of their covariance. They do not change the power of white noise.
pub(super) fn cancel_factors(pcm: &Frame, lag: usize) -> [f64; 3] {
    let sums @ [a, d, e, b, f, c] = covariance(&pcm.map(f32::from), lag);
    let least = smallest_eigenvalue(sums);
    let rows = [[a - least, d, e], [d, b - least, f], [e, f, c - least]];
    let cross = |[a, b, c]: [f64; 3], [x, y, z]: [f64; 3]| [b * z - c * y, c * x - a * z, a * y - b * x];
    let length = |v: &[f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    // Two rows of the singular matrix span the plane that the vector is normal to.
    let normals = [cross(rows[0], rows[1]), cross(rows[0], rows[2]), cross(rows[1], rows[2])];
    let normal = normals.into_iter().max_by(|one, other| length(one).total_cmp(&length(other))).unwrap_or_default();
    let size = length(&normal);
    if size > 0.0 { normal.map(|x| x / size) } else { [0.0, 0.0, 1.0] }
}

/// True when most of the power lies below [`LOWEST_HZ`]: the correlation of a sinusoid with itself is the cosine of its
/// phase's step.
fn is_low(pcm: &Frame) -> bool {
    let [early, late] = [&pcm[..FRAME - STEP], &pcm[STEP..]];
    let power = squares(early) + squares(late);
    let correlation = 2.0 * products(early, late) as f64 / power as f64;
    correlation > (std::f64::consts::TAU * LOWEST_HZ * STEP as f64 / 16_000.0).cos()
}

/// Returns the covariance of the three terms: upper triangle in the order 00, 01, 02, 11, 12, 22.
fn covariance(pcm: &[f32; FRAME], lag: usize) -> [f64; 6] {
    const { assert!(FRAME.is_multiple_of(LANES)) };
    let count = FRAME - 4 * lag;
    let at = |k: usize| pcm[k * lag..k * lag + count].as_chunks::<LANES>().0;
    let mut sums = [f32x4::ZERO; 6];
    for ((((w0, w1), w2), w3), w4) in at(0).iter().zip(at(1)).zip(at(2)).zip(at(3)).zip(at(4)) {
        let [w0, w1, w2, w3, w4] = [*w0, *w1, *w2, *w3, *w4].map(f32x4::from);
        let (outer, inner) = (w0 + w4, w1 + w3);
        sums[0] += outer * outer;
        sums[1] += outer * inner;
        sums[2] += outer * w2;
        sums[3] += inner * inner;
        sums[4] += inner * w2;
        sums[5] += w2 * w2;
    }
    // The first two terms are sums of two samples, which this factor scales to unit length.
    const UNIT: f64 = std::f64::consts::FRAC_1_SQRT_2;
    let factors = [0.5, 0.5, UNIT, 0.5, UNIT, 1.0];
    std::array::from_fn(|at| f64::from(sums[at].to_array().iter().sum::<f32>()) * factors[at] / count as f64)
}

/// Returns the smallest eigenvalue of a symmetric, non-negative 3 x 3 matrix, by the trigonometric solution of its
/// characteristic equation.
fn smallest_eigenvalue([a, d, e, b, f, c]: [f64; 6]) -> f64 {
    let mean = (a + b + c) / 3.0;
    let off = d * d + e * e + f * f;
    let spread = (((a - mean).powi(2) + (b - mean).powi(2) + (c - mean).powi(2) + 2.0 * off) / 6.0).sqrt();
    if spread <= 1e-12 * mean {
        return mean;
    }
    let [a, b, c, d, e, f] = [a - mean, b - mean, c - mean, d, e, f].map(|x| x / spread);
    let half_det = (a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)) / 2.0;
    let angle = half_det.clamp(-1.0, 1.0).acos() / 3.0;
    (mean + 2.0 * spread * (angle + 2.0 * std::f64::consts::FRAC_PI_3).cos()).max(0.0)
}
