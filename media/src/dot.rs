//! Sum of products: the inner loop of filters and correlations.

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
