//! The discrete Fourier transform of short blocks: iterative radix 2 (Cooley and Tukey, 1965). No streams, no windows.

use std::f32::consts::TAU;

/// A complex number.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

impl Complex {
    /// The square of its length.
    pub fn power(self) -> f32 {
        self.re * self.re + self.im * self.im
    }

    fn times(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// A transform of one length. Transforming allocates nothing.
#[derive(Clone, Debug)]
pub struct Fft {
    /// exp(-2 pi i k / length), k from 0 to length / 2.
    turns: Box<[Complex]>,
}

impl Fft {
    /// Of blocks of 2^`log2` values, `log2` from 1 to 16 (clamped).
    pub fn new(log2: u32) -> Fft {
        let length = 1usize << log2.clamp(1, 16);
        let turn = |k: usize| {
            let (sin, cos) = (-TAU * k as f32 / length as f32).sin_cos();
            Complex { re: cos, im: sin }
        };
        Fft { turns: (0..length / 2).map(turn).collect() }
    }

    /// Values in a block.
    pub fn length(&self) -> usize {
        2 * self.turns.len()
    }

    /// Transforms `block` in place, without a factor. A block of another length is left as it is.
    pub fn transform(&self, block: &mut [Complex]) {
        let length = self.length();
        if block.len() != length {
            return;
        }
        let shift = usize::BITS - length.trailing_zeros();
        for at in 0..length {
            let mirrored = at.reverse_bits() >> shift;
            if at < mirrored {
                block.swap(at, mirrored);
            }
        }
        let mut half = 1;
        while half < length {
            let step = length / (2 * half);
            for group in block.chunks_exact_mut(2 * half) {
                let (low, high) = group.split_at_mut(half);
                for (at, (low, high)) in low.iter_mut().zip(high).enumerate() {
                    let turned = high.times(self.turns[at * step]);
                    *high = Complex { re: low.re - turned.re, im: low.im - turned.im };
                    *low = Complex { re: low.re + turned.re, im: low.im + turned.im };
                }
            }
            half *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_sum_that_defines_it() {
        let fft = Fft::new(4);
        let value = |n: usize| Complex { re: ((n * 7) % 5) as f32 - 1.5, im: ((n * 3) % 7) as f32 };
        let mut block: Vec<Complex> = (0..16).map(value).collect();
        fft.transform(&mut block);
        for (k, found) in block.iter().enumerate() {
            let mut sum = Complex::default();
            for n in 0..16 {
                let (sin, cos) = (-TAU * (k * n) as f32 / 16.0).sin_cos();
                let part = value(n).times(Complex { re: cos, im: sin });
                sum = Complex { re: sum.re + part.re, im: sum.im + part.im };
            }
            assert!((sum.re - found.re).abs() < 1e-3 && (sum.im - found.im).abs() < 1e-3, "{k}: {sum:?} {found:?}");
        }
        let mut short = [Complex { re: 1.0, im: 2.0 }; 8];
        fft.transform(&mut short);
        assert_eq!(short, [Complex { re: 1.0, im: 2.0 }; 8]);
    }
}
