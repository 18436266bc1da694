//! Clips at another rate, whole or piece by piece: synchronous resampling by the Fourier transform, a block at a time.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

use super::{greatest_divisor, to_pcm};

/// Least number of points of a block of a clip, at the lower of its rates.
const POINTS: usize = 1024;

/// Returns a whole clip at another rate, without delay: `n` samples become `n * to_hz / from_hz`, rounded up. Flat to
/// 0.8 of the lower Nyquist frequency, 78 dB down above it, at any pair of rates from 1 kHz to 1 MHz. Other rates give
/// no samples.
pub fn resample_whole(pcm: &[i16], from_hz: u32, to_hz: u32) -> Vec<i16> {
    if from_hz == to_hz || pcm.is_empty() {
        return pcm.to_vec();
    }
    let Some(mut clip) = ClipResampler::new(from_hz, to_hz) else { return Vec::new() };
    let mut made = Vec::with_capacity((pcm.len() as u64 * u64::from(to_hz)).div_ceil(u64::from(from_hz)) as usize);
    clip.push(pcm, &mut made);
    clip.finish(&mut made);
    made
}

/// Resampler of a clip that comes in pieces of any length, with the result of [`resample_whole`]. Keeps one block at
/// most.
pub struct ClipResampler {
    from_hz: u32,
    to_hz: u32,
    fft: Fft<f32>,
    /// Samples that wait until they fill a block.
    block: Vec<f32>,
    /// Output of the last block.
    made: Vec<f32>,
    /// Number of samples at the start that are the transform's delay, and are still to be left out.
    delay: usize,
    taken: u64,
    given: u64,
}

impl ClipResampler {
    /// Returns a resampler between two rates from 1 kHz to 1 MHz; `None` for others.
    pub fn new(from_hz: u32, to_hz: u32) -> Option<ClipResampler> {
        if ![from_hz, to_hz].iter().all(|hz| (1000..=1_000_000).contains(hz)) {
            return None;
        }
        let (from, to) = (from_hz as usize, to_hz as usize);
        // A whole and even count of the shortest blocks: the middle of an odd one lies between two samples, which is a
        // delay.
        let shortest = from / greatest_divisor(from_hz, to_hz) as usize;
        let block = (POINTS * from).div_ceil(from.min(to) * shortest).next_multiple_of(2) * shortest;
        let window = WindowFunction::BlackmanHarris2;
        let fft = Fft::new_custom(from, to, block, 1, 1, window, FixedSync::Both).expect("no rate is 0");
        let block = Vec::with_capacity(fft.input_frames_next());
        let (made, delay) = (vec![0.0; fft.output_frames_next()], fft.output_delay());
        Some(ClipResampler { from_hz, to_hz, fft, block, made, delay, taken: 0, given: 0 })
    }

    /// Takes a piece and appends the part of the clip that is known at its new rate.
    pub fn push(&mut self, mut pcm: &[i16], out: &mut Vec<i16>) {
        self.taken += pcm.len() as u64;
        while !pcm.is_empty() {
            let (now, later) = pcm.split_at(pcm.len().min(self.fft.input_frames_next() - self.block.len()));
            self.block.extend(now.iter().map(|&sample| f32::from(sample)));
            pcm = later;
            if self.block.len() == self.fft.input_frames_next() {
                self.turn(out);
            }
        }
    }

    /// Appends the rest of the clip, so that its length is that of [`resample_whole`].
    pub fn finish(mut self, out: &mut Vec<i16>) {
        let count = (self.taken * u64::from(self.to_hz)).div_ceil(u64::from(self.from_hz));
        while self.given < count {
            self.block.resize(self.fft.input_frames_next(), 0.0);
            self.turn(out);
        }
        out.truncate(out.len() - (self.given - count) as usize);
    }

    /// Appends the output of the block.
    fn turn(&mut self, out: &mut Vec<i16>) {
        let frames = self.made.len();
        let block = InterleavedSlice::new(&self.block, 1, self.block.len()).expect("it is one channel of this length");
        let mut made = InterleavedSlice::new_mut(&mut self.made, 1, frames).expect("it is one channel of this length");
        self.fft.process_into_buffer(&block, &mut made, None).expect("the sizes are the resampler's own");
        self.block.clear();
        let made = &self.made[self.delay.min(frames)..];
        self.delay -= frames - made.len();
        self.given += made.len() as u64;
        out.extend(made.iter().map(|&sample| to_pcm(sample)));
    }
}

#[cfg(test)]
mod tests {
    use rubato::audioadapter_buffers::owned::InterleavedOwned;

    use super::super::tests::tone;
    use super::*;

    const RATES: [(u32, u32); 7] = [
        (8000, 16_000),
        (11_025, 16_000),
        (16_000, 44_100),
        (44_100, 16_000),
        (48_000, 16_000),
        (192_000, 16_000),
        (12_345, 16_000),
    ];

    /// Resamples a whole clip at once, as the transform does by itself.
    fn at_once(pcm: &[i16], from_hz: u32, to_hz: u32) -> Vec<i16> {
        let mut fft = ClipResampler::new(from_hz, to_hz).expect("the rates are valid").fft;
        let samples = pcm.iter().map(|&sample| f32::from(sample)).collect();
        let samples = InterleavedOwned::new_from(samples, 1, pcm.len()).expect("it is one channel of this length");
        let made = fft.process_all(&samples, pcm.len(), None).expect("the sizes are the resampler's own").take_data();
        let count = (pcm.len() as u64 * u64::from(to_hz)).div_ceil(u64::from(from_hz)) as usize;
        made.into_iter().map(to_pcm).take(count).collect()
    }

    #[test]
    fn pieces_make_what_the_whole_makes() {
        for (from_hz, to_hz) in RATES {
            let wave = tone(440.0, from_hz);
            let block = ClipResampler::new(from_hz, to_hz).expect("the rates are valid").fft.input_frames_next();
            for length in [1, 3, block / 2, block - 1, block, block + 1, 2 * block, from_hz as usize] {
                let pcm: Vec<i16> = wave.iter().copied().cycle().take(length).collect();
                let whole = resample_whole(&pcm, from_hz, to_hz);
                assert!(whole == at_once(&pcm, from_hz, to_hz), "{length} samples from {from_hz} to {to_hz}");
                for piece in [7, 1152, 100_000] {
                    let (mut clip, mut made) = (ClipResampler::new(from_hz, to_hz).expect("they are"), Vec::new());
                    pcm.chunks(piece).for_each(|pcm| clip.push(pcm, &mut made));
                    clip.finish(&mut made);
                    assert!(made == whole, "{length} samples from {from_hz} to {to_hz}, {piece} at a time");
                }
            }
        }
    }

    #[test]
    fn a_long_clip_is_not_held() {
        for (from_hz, to_hz) in RATES {
            let (mut clip, mut made) = (ClipResampler::new(from_hz, to_hz).expect("the rates are valid"), Vec::new());
            let (block, space) = (clip.fft.input_frames_next(), clip.block.capacity());
            for second in 1..=20 {
                clip.push(&tone(440.0, from_hz), &mut made);
                let due = second * to_hz as usize;
                assert!(clip.block.capacity() == space && made.len() + 2 * clip.made.len() >= due, "{block}: {due}");
            }
        }
    }
}
