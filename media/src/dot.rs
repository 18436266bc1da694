//! Sums of products: the inner loops of filters, correlations and levels.

/// Returns the sum of `a[n] * b[n]`, in `LANES` sums side by side, which stay in registers. 8 suit some ten products,
/// 16 some hundred.
pub(crate) fn dot<const LANES: usize>(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0f32; LANES];
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    rest + sums.iter().sum::<f32>()
}

/// Returns the sum of the squares. A sum of floating-point squares is the same number, but waits for each addition.
pub(crate) fn squares(pcm: &[i16]) -> i64 {
    let square = |x: i16| i32::from(x).pow(2) as u32;
    let (pairs, rest) = pcm.as_chunks::<2>();
    // Two squares fit 32 bits without a sign.
    let sum: u64 = pairs.iter().map(|[x, y]| u64::from(square(*x) + square(*y))).sum();
    (sum + rest.iter().map(|&x| u64::from(square(x))).sum::<u64>()) as i64
}

/// Returns the sum of `a[n] * b[n]`, exact.
pub(crate) fn products(a: &[i16], b: &[i16]) -> i64 {
    a.iter().zip(b).map(|(a, b)| i64::from(i32::from(*a) * i32::from(*b))).sum()
}

#[cfg(test)]
mod tests {
    use super::squares;

    #[test]
    fn squares_of_the_loudest_samples_are_exact() {
        for count in [0, 1, 2, 319, 320] {
            assert_eq!(squares(&vec![i16::MIN; count]), count as i64 * 32_768 * 32_768);
            assert_eq!(squares(&vec![-3; count]), count as i64 * 9);
        }
    }
}
