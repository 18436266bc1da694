//! Log-mel bands as the models were trained on: 25 ms every 10 ms, Slaney's mel scale, 8 decades.

use super::math::{Layer, Products, Rows};

/// Number of samples of a window.
const WINDOW: usize = 400;
/// Number of samples from a window to the next.
pub(super) const HOP: usize = 160;
/// Number of frequencies of a window's transform.
const BINS: usize = WINDOW / 2 + 1;
/// Power below which audio counts as silence.
const FLOOR: f32 = 1e-10;
const RATE_HZ: f64 = 16_000.0;

/// Computes log-mel bands of audio.
pub(super) struct Mel {
    /// Matrix that transforms a window to the real, then the imaginary parts.
    transform: Layer,
    filters: Layer,
    bands: usize,
}

impl Mel {
    /// Prepares this many bands from 0 to 8 kHz.
    pub(super) fn new(products: &Products, bands: usize) -> Mel {
        let part = |row: usize, at: usize| {
            let turn = std::f64::consts::TAU / WINDOW as f64;
            let hann = 0.5 - 0.5 * (turn * at as f64).cos();
            let angle = turn * (row % BINS * at % WINDOW) as f64;
            (hann * if row < BINS { angle.cos() } else { angle.sin() }) as f32
        };
        let transform: Vec<f32> = (0..2 * BINS).flat_map(|row| (0..WINDOW).map(move |at| part(row, at))).collect();
        Mel {
            transform: products.layer(Rows::new(&transform, 2 * BINS, WINDOW), Vec::new()),
            filters: products.layer(Rows::new(&filters(bands), bands, BINS), Vec::new()),
            bands,
        }
    }

    /// Returns the bands of `frames` windows, one row each; the first window is centred on the first sample. After
    /// `pcm` there is silence.
    pub(super) fn bands(&self, products: &Products, pcm: &[f32], frames: usize) -> Vec<f32> {
        let heard = (pcm.len() / HOP + 1).min(frames);
        let mut windows = vec![0f32; heard * WINDOW];
        for (frame, window) in windows.chunks_exact_mut(WINDOW).enumerate() {
            for (at, value) in window.iter_mut().enumerate() {
                // Before the beginning the signal is mirrored.
                let from = (frame * HOP + at).abs_diff(WINDOW / 2);
                *value = pcm.get(from).copied().unwrap_or(0.0);
            }
        }
        let (mut parts, mut powers) = (Vec::new(), vec![0f32; heard * BINS]);
        products.apply(&self.transform, Rows::new(&windows, heard, WINDOW), &mut parts);
        for (powers, parts) in powers.chunks_exact_mut(BINS).zip(parts.chunks_exact(2 * BINS)) {
            let (real, imaginary) = parts.split_at(BINS);
            for ((power, real), imaginary) in powers.iter_mut().zip(real).zip(imaginary) {
                *power = real * real + imaginary * imaginary;
            }
        }
        let mut bands = Vec::with_capacity(frames * self.bands);
        products.apply(&self.filters, Rows::new(&powers, heard, BINS), &mut bands);
        bands.iter_mut().for_each(|value| *value = value.max(FLOOR).log10());
        bands.resize(frames * self.bands, FLOOR.log10());
        let most = bands.iter().fold(f32::NEG_INFINITY, |most, &value| most.max(value));
        bands.iter_mut().for_each(|value| *value = (value.max(most - 8.0) + 4.0) / 4.0);
        bands
    }
}

/// Returns the filters of Slaney's auditory toolbox: linear up to 1 kHz, then logarithmic; triangles of equal area.
fn filters(bands: usize) -> Vec<f32> {
    const LINEAR: f64 = 200.0 / 3.0;
    let step = 6.4f64.ln() / 27.0;
    let mel = |hz: f64| if hz < 1000.0 { hz / LINEAR } else { 15.0 + (hz / 1000.0).ln() / step };
    let hz = |mel: f64| if mel < 15.0 { mel * LINEAR } else { 1000.0 * ((mel - 15.0) * step).exp() };
    let top = mel(RATE_HZ / 2.0);
    let edges: Vec<f64> = (0..bands + 2).map(|at| hz(top * at as f64 / (bands + 1) as f64)).collect();
    let mut filters = Vec::with_capacity(bands * BINS);
    for band in edges.windows(3) {
        let (low, middle, high) = (band[0], band[1], band[2]);
        for bin in 0..BINS {
            let at = bin as f64 * RATE_HZ / WINDOW as f64;
            let height = ((at - low) / (middle - low)).min((high - at) / (high - middle)).max(0.0);
            filters.push((height * 2.0 / (high - low)) as f32);
        }
    }
    filters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_in_its_band_and_silence_in_none() {
        let products = Products::default();
        let mel = Mel::new(&products, 80);
        let tone: Vec<f32> =
            (0..16_000).map(|at| 0.3 * (std::f32::consts::TAU * 1000.0 * at as f32 / 16_000.0).sin()).collect();
        let bands = mel.bands(&products, &tone, 200);
        let loudest = |frame: usize| {
            let row = &bands[frame * 80..][..80];
            (0..80).max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("there are bands")
        };
        // 1 kHz is 15 of 45.2 mel, 81 steps.
        assert_eq!(loudest(50), 26);
        assert!(bands[50 * 80 + 26] - bands[50 * 80 + 60] > 1.9, "a quarter of 8 decades");
        assert!(bands[150 * 80..].iter().all(|value| *value == bands[199 * 80]), "silence follows");
        // Areas of triangles: 2 / width times width / 2.
        let filters = filters(80);
        let area = filters[70 * BINS..71 * BINS].iter().sum::<f32>() * 40.0;
        assert!((area - 1.0).abs() < 0.05, "{area}");
    }
}
