//! The discrete Fourier transform of short blocks: Stockham's autosorting form in radix 4, which reorders nothing and whose
//! inner loops run over neighbours. No streams, no windows. The order of its sums is fixed: equal on every processor.

use std::f32::consts::TAU;

/// `N` complex values, real and imaginary parts apart.
#[derive(Clone, Debug)]
pub struct Block<const N: usize> {
    /// Real parts.
    pub re: [f32; N],
    /// Imaginary parts.
    pub im: [f32; N],
}

impl<const N: usize> Block<N> {
    /// All zero.
    pub const ZERO: Block<N> = Block { re: [0.0; N], im: [0.0; N] };
}

/// A transform of blocks of `N` values, a power of two from 4 on. Transforming allocates nothing.
#[derive(Clone, Debug)]
pub struct Fft<const N: usize> {
    passes: Vec<Pass>,
}

/// A quarter of the pass's stretches: exp(-2 pi i k p / length) for k = 1, 2, 3 and each p below `length` / 4.
type Pass = Vec<[(f32, f32); 3]>;

impl<const N: usize> Fft<N> {
    /// The transform.
    pub fn new() -> Fft<N> {
        const { assert!(N.is_power_of_two() && N >= 4) };
        let turn = |k: usize, length: usize| {
            let (sin, cos) = (-TAU * (k % length) as f32 / length as f32).sin_cos();
            (cos, sin)
        };
        let pass = |length: usize| (0..length / 4).map(|p| [p, 2 * p, 3 * p].map(|k| turn(k, length))).collect();
        let lengths = std::iter::successors(Some(N), |length| Some(length / 4));
        Fft { passes: lengths.take_while(|&length| length >= 4).map(pass).collect() }
    }

    /// Transforms `block` in place, without a factor. With real and imaginary parts exchanged before and after, it is the
    /// inverse transform (times `N`).
    pub fn transform(&self, block: &mut Block<N>) {
        let mut other = Block::ZERO;
        let (mut from, mut to) = (block, &mut other);
        let mut stride = 1;
        for pass in &self.passes {
            if stride == 1 {
                first(pass, from, to)
            } else {
                next(pass, stride, from, to)
            }
            std::mem::swap(&mut from, &mut to);
            stride *= 4;
        }
        if stride < N {
            halves(from);
        }
        if self.passes.len() % 2 == 1 {
            to.clone_from(from);
        }
    }
}

impl<const N: usize> Default for Fft<N> {
    fn default() -> Fft<N> {
        Fft::new()
    }
}

/// The first pass: what belongs together lies a quarter of the block apart, and comes to lie side by side.
fn first<const N: usize>(pass: &Pass, from: &Block<N>, to: &mut Block<N>) {
    let (re, im) = (quarters(&from.re, N / 4), quarters(&from.im, N / 4));
    let out = to.re.as_chunks_mut::<4>().0.iter_mut().zip(to.im.as_chunks_mut::<4>().0);
    for (p, ((out_re, out_im), turns)) in out.zip(pass).enumerate() {
        (*out_re, *out_im) = butterfly(re.map(|re| re[p]), im.map(|im| im[p]), turns);
    }
}

/// A pass over values that lie `stride` apart.
fn next<const N: usize>(pass: &Pass, stride: usize, from: &Block<N>, to: &mut Block<N>) {
    let out = to.re.chunks_exact_mut(4 * stride).zip(to.im.chunks_exact_mut(4 * stride));
    for (p, ((out_re, out_im), turns)) in out.zip(pass).enumerate() {
        let at: [usize; 4] = std::array::from_fn(|k| stride * p + k * N / 4);
        let (re, im) = (at.map(|at| &from.re[at..][..stride]), at.map(|at| &from.im[at..][..stride]));
        let (out_re, out_im) = (quarters_mut(out_re, stride), quarters_mut(out_im, stride));
        for q in 0..stride {
            let (re, im) = butterfly(re.map(|re| re[q]), im.map(|im| im[q]), turns);
            for k in 0..4 {
                (out_re[k][q], out_im[k][q]) = (re[k], im[k]);
            }
        }
    }
}

/// The last pass, where two stretches are left.
fn halves<const N: usize>(block: &mut Block<N>) {
    for part in [&mut block.re, &mut block.im] {
        let (low, high) = part.split_at_mut(N / 2);
        low.iter_mut().zip(high).for_each(|(low, high)| (*low, *high) = (*low + *high, *low - *high));
    }
}

/// Four values to the four sums of their transform, turned.
#[inline(always)]
fn butterfly(re: [f32; 4], im: [f32; 4], turns: &[(f32, f32); 3]) -> ([f32; 4], [f32; 4]) {
    let (even, odd) = ((re[0] + re[2], im[0] + im[2]), (re[1] + re[3], im[1] + im[3]));
    let (apart, across) = ((re[0] - re[2], im[0] - im[2]), (im[1] - im[3], re[3] - re[1]));
    let turned = |re: f32, im: f32, (cos, sin): (f32, f32)| (re * cos - im * sin, re * sin + im * cos);
    let first = (even.0 + odd.0, even.1 + odd.1);
    let second = turned(apart.0 + across.0, apart.1 + across.1, turns[0]);
    let third = turned(even.0 - odd.0, even.1 - odd.1, turns[1]);
    let fourth = turned(apart.0 - across.0, apart.1 - across.1, turns[2]);
    ([first.0, second.0, third.0, fourth.0], [first.1, second.1, third.1, fourth.1])
}

fn quarters(values: &[f32], each: usize) -> [&[f32]; 4] {
    std::array::from_fn(|k| &values[k * each..][..each])
}

fn quarters_mut(values: &mut [f32], each: usize) -> [&mut [f32]; 4] {
    let (low, high) = values.split_at_mut(2 * each);
    let ((first, second), (third, fourth)) = (low.split_at_mut(each), high.split_at_mut(each));
    [first, second, third, fourth]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_its_sum<const N: usize>() {
        let re: [f32; N] = std::array::from_fn(|n| ((n * 7) % 5) as f32 - 1.5);
        let im: [f32; N] = std::array::from_fn(|n| ((n * 3) % 7) as f32);
        let mut block = Block { re, im };
        Fft::new().transform(&mut block);
        for k in 0..N {
            let (mut sum_re, mut sum_im) = (0.0f64, 0.0f64);
            for n in 0..N {
                let (sin, cos) = (-std::f64::consts::TAU * (k * n % N) as f64 / N as f64).sin_cos();
                sum_re += f64::from(re[n]) * cos - f64::from(im[n]) * sin;
                sum_im += f64::from(re[n]) * sin + f64::from(im[n]) * cos;
            }
            let off = (sum_re - f64::from(block.re[k])).hypot(sum_im - f64::from(block.im[k]));
            assert!(off < 1e-6 * 4.0 * N as f64, "{k} of {N}: off by {off}");
        }
        std::mem::swap(&mut block.re, &mut block.im);
        Fft::new().transform(&mut block);
        for n in 0..N {
            let off = (block.im[n] / N as f32 - re[n]).hypot(block.re[n] / N as f32 - im[n]);
            assert!(off < 1e-5, "{n} of {N}, back: off by {off}");
        }
    }

    #[test]
    fn is_the_sum_that_defines_it_and_back() {
        is_its_sum::<4>();
        is_its_sum::<8>();
        is_its_sum::<16>();
        is_its_sum::<512>();
        is_its_sum::<1024>();
    }
}
