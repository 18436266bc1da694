//! Products of matrices and vectors, and the operations between them in a transformer. Sums of the decoder have one
//! order on each kind of processor.

use std::cell::Cell;

use rten_gemm::{BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::{SimdOp, SimdUnaryOp};
use rten_tensor::NdTensorView;
use rten_vecmath::{Gelu, Softmax, SumExpSub};

/// Number of values that are summed side by side.
const LANES: usize = 16;

/// Keeps matrix products of this thread on this thread: they would be spread over all cores, at the priority of those
/// threads.
pub(super) fn settle() {
    thread_local!(static SETTLED: Cell<bool> = const { Cell::new(false) });
    if !SETTLED.replace(true)
        && let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()
    {
        // Dropped, it would be given up while this thread is part of it.
        std::mem::forget(pool);
    }
}

/// Rows of values at equal distances.
#[derive(Copy, Clone)]
pub(super) struct Rows<'a> {
    pub data: &'a [f32],
    pub rows: usize,
    pub width: usize,
    /// Distance from the beginning of a row to that of the next.
    pub stride: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(data: &'a [f32], rows: usize, width: usize) -> Rows<'a> {
        Rows { data, rows, width, stride: width }
    }

    fn view(self) -> NdTensorView<'a, f32, 2> {
        NdTensorView::from_slice_with_strides([self.rows, self.width], self.data, [self.stride, 1])
            .expect("the rows lie within the data")
    }

    fn across(self) -> NdTensorView<'a, f32, 2> {
        NdTensorView::from_slice_with_strides([self.width, self.rows], self.data, [1, self.stride])
            .expect("the rows lie within the data")
    }
}

/// Executor of matrix products.
#[derive(Default)]
pub(super) struct Products(GemmExecutor<f32>);

impl Products {
    /// Prepares a layer of `weight` (a row an output) that is used again and again.
    pub(super) fn layer(&self, weight: Rows<'_>, bias: Vec<f32>) -> Layer {
        Layer { weight: self.0.prepack_b(weight.across()), bias, outputs: weight.rows }
    }

    /// Writes `x` through the layer to `out`, a row each.
    pub(super) fn apply(&self, layer: &Layer, x: Rows<'_>, out: &mut Vec<f32>) {
        out.resize(x.rows * layer.outputs, 0.0);
        let bias = (!layer.bias.is_empty()).then_some(BiasVector::Row(&layer.bias[..]));
        let options = GemmOptions { bias, ..GemmOptions::default() };
        self.0
            .gemm(out, GemmInputA::Unpacked(x.view()), GemmInputB::Packed(&layer.weight), options)
            .expect("the sizes were checked when the model was read");
    }

    /// Writes `factor` * `a` * `b` transposed to `out`: a row for each of `a`, a column for each of `b`.
    pub(super) fn apply_turned(&self, a: Rows<'_>, b: Rows<'_>, factor: f32, out: &mut Vec<f32>) {
        out.resize(a.rows * b.rows, 0.0);
        let options = GemmOptions { alpha: factor, ..GemmOptions::default() };
        self.0
            .gemm(out, GemmInputA::Unpacked(a.view()), GemmInputB::Unpacked(b.across()), options)
            .expect("both have rows of the same width");
    }

    /// Writes `a` * `b` to `out`.
    pub(super) fn plain(&self, a: Rows<'_>, b: Rows<'_>, out: &mut Vec<f32>) {
        out.resize(a.rows * b.width, 0.0);
        self.0
            .gemm(out, GemmInputA::Unpacked(a.view()), GemmInputB::Unpacked(b.view()), GemmOptions::default())
            .expect("a row of the one is as wide as the other has rows");
    }
}

/// A matrix in the order that products are computed in, with its bias.
pub(super) struct Layer {
    weight: PackedBMatrix<f32>,
    bias: Vec<f32>,
    outputs: usize,
}

/// A matrix of 8-bit numbers with a scale for each row, for products with one vector.
pub(super) struct Small {
    values: Vec<i8>,
    scales: Vec<f32>,
    bias: Vec<f32>,
    width: usize,
}

impl Small {
    /// Quantises `weight`, a row of `width` values an output.
    pub(super) fn new(weight: &[f32], width: usize, bias: Vec<f32>) -> Small {
        let mut values = Vec::with_capacity(weight.len());
        let scale = |row: &[f32]| row.iter().fold(0f32, |most, value| most.max(value.abs())).max(1e-12) / 127.0;
        let scales: Vec<f32> = weight.chunks_exact(width).map(scale).collect();
        for (row, scale) in weight.chunks_exact(width).zip(&scales) {
            values.extend(row.iter().map(|value| (value / scale).round() as i8));
        }
        Small { values, scales, bias, width }
    }

    /// Writes the matrix * `x` + bias to `out`.
    pub(super) fn apply(&self, x: &[f32], out: &mut Vec<f32>) {
        out.resize(self.scales.len(), 0.0);
        on_this_processor(Multiply { matrix: self, x, out });
        out.iter_mut().zip(&self.bias).for_each(|(value, bias)| *value += bias);
    }

    /// Adds row `index` to `out`.
    pub(super) fn add_row(&self, index: usize, out: &mut [f32]) {
        let row = &self.values[index * self.width..][..self.width];
        let scale = self.scales[index];
        out.iter_mut().zip(row).for_each(|(out, &value)| *out += f32::from(value) * scale);
    }
}

struct Multiply<'a> {
    matrix: &'a Small,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Work for Multiply<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        const BLOCK: usize = 2 * LANES;
        let Small { values, scales, width, .. } = self.matrix;
        for ((out, row), scale) in self.out.iter_mut().zip(values.chunks_exact(*width)).zip(scales) {
            let mut sums = [0f32; BLOCK];
            for (row, x) in row.chunks_exact(BLOCK).zip(self.x.chunks_exact(BLOCK)) {
                for lane in 0..BLOCK {
                    sums[lane] = add::<FUSED>(f32::from(row[lane]), x[lane], sums[lane]);
                }
            }
            *out = sums.iter().sum::<f32>() * scale;
        }
    }
}

/// A loop that is compiled anew for each kind of processor.
trait Work {
    /// Runs the loop; with `FUSED`, products are added in one step.
    fn run<const FUSED: bool>(self);
}

/// Returns `sum` + `a` * `b`, rounded once where the processor can.
#[inline(always)]
fn add<const FUSED: bool>(a: f32, b: f32, sum: f32) -> f32 {
    if FUSED { a.mul_add(b, sum) } else { sum + a * b }
}

/// Runs `work` with the widest vectors that this processor has.
fn on_this_processor(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma")]
        fn widest(work: impl Work) {
            work.run::<true>();
        }
        #[target_feature(enable = "avx2,fma")]
        fn wide(work: impl Work) {
            work.run::<true>();
        }
        let has_fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let has_wide = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl");
        if has_fma && has_wide && is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has these instructions, as was asked just before.
            return unsafe { widest(work) };
        }
        if has_fma {
            // SAFETY: the processor has these instructions, as was asked just before.
            return unsafe { wide(work) };
        }
        work.run::<false>();
    }
    #[cfg(not(target_arch = "x86_64"))]
    work.run::<{ cfg!(target_arch = "aarch64") }>();
}

/// Keys and values of an attention: rows at equal distances, `count` of them.
#[derive(Copy, Clone)]
pub(super) struct Kept<'a> {
    pub keys: &'a [f32],
    pub values: &'a [f32],
    pub stride: usize,
    pub count: usize,
}

/// Writes the result of attention to `out`: of each head, of 64 values, for `query` in `kept`. `shares` keeps how much
/// of each row each head took.
pub(super) fn attend(query: &[f32], kept: Kept<'_>, shares: &mut Vec<f32>, out: &mut Vec<f32>) {
    let heads = query.len() / HEAD;
    shares.resize(heads * kept.count, 0.0);
    out.clear();
    out.resize(query.len(), 0.0);
    for (head, shares) in shares.chunks_exact_mut(kept.count).enumerate() {
        let query = &query[head * HEAD..][..HEAD];
        on_this_processor(Likeness { query, kept, head, out: shares });
        softmax(shares);
        on_this_processor(Mix { shares, kept, head, out: &mut out[head * HEAD..][..HEAD] });
    }
}

/// Width of an attention head, the same in all models of this kind.
pub(super) const HEAD: usize = 64;

/// Products of a query with each key.
struct Likeness<'a> {
    query: &'a [f32],
    kept: Kept<'a>,
    head: usize,
    out: &'a mut [f32],
}

impl Work for Likeness<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (at, out) in self.out.iter_mut().enumerate() {
            let key = &self.kept.keys[at * self.kept.stride + self.head * HEAD..][..HEAD];
            let mut sums = [0f32; LANES];
            for (query, key) in self.query.chunks_exact(LANES).zip(key.chunks_exact(LANES)) {
                for lane in 0..LANES {
                    sums[lane] = add::<FUSED>(query[lane], key[lane], sums[lane]);
                }
            }
            *out = sums.iter().sum();
        }
    }
}

/// Sum of the values by their shares.
struct Mix<'a> {
    shares: &'a [f32],
    kept: Kept<'a>,
    head: usize,
    out: &'a mut [f32],
}

impl Work for Mix<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let mut sums = [0f32; HEAD];
        for (at, &share) in self.shares.iter().enumerate() {
            let value = &self.kept.values[at * self.kept.stride + self.head * HEAD..][..HEAD];
            for lane in 0..HEAD {
                sums[lane] = add::<FUSED>(share, value[lane], sums[lane]);
            }
        }
        self.out.copy_from_slice(&sums);
    }
}

/// Turns values into shares that sum up to 1, in place.
pub(super) fn softmax(values: &mut [f32]) {
    Softmax::new_mut(values).dispatch();
}

/// Returns the logarithm of the sum of the exponentials.
pub(super) fn log_sum_exp(values: &[f32]) -> f32 {
    let most = values.iter().fold(f32::NEG_INFINITY, |most, &value| most.max(value));
    most + SumExpSub::new(values, most).dispatch().ln()
}

/// Applies the Gaussian error linear unit, in place.
pub(super) fn gelu(values: &mut [f32]) {
    Gelu {}.map_mut(values);
}

/// Weights of a layer normalisation.
pub(super) struct Norm {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
}

impl Norm {
    /// Writes each row of `x` to `out` with mean 0 and variance 1, scaled and shifted.
    pub(super) fn apply(&self, x: &[f32], out: &mut Vec<f32>) {
        let width = self.scale.len();
        out.resize(x.len(), 0.0);
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            let mean = sum(x, |value| value) / width as f32;
            let variance = sum(x, |value| (value - mean) * (value - mean)) / width as f32;
            let factor = 1.0 / (variance + 1e-5).sqrt();
            for ((out, x), (scale, shift)) in out.iter_mut().zip(x).zip(self.scale.iter().zip(&self.shift)) {
                *out = (x - mean) * factor * scale + shift;
            }
        }
    }
}

fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0f32; LANES];
    for values in values.chunks_exact(LANES) {
        for lane in 0..LANES {
            sums[lane] += of(values[lane]);
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f32], expect: &[f32], within: f32) {
        assert_eq!(found.len(), expect.len());
        let far = found.iter().zip(expect).find(|(found, expect)| (*found - *expect).abs() > within);
        assert_eq!(far, None, "{found:?} and not {expect:?}");
    }

    #[test]
    fn a_layer_is_a_product_and_a_sum() {
        let products = Products::default();
        let layer = products.layer(Rows::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2), vec![0.5, 0.0, -1.0]);
        let mut out = Vec::new();
        products.apply(&layer, Rows::new(&[1.0, 1.0, 2.0, 0.0], 2, 2), &mut out);
        near(&out, &[3.5, 7.0, 10.0, 2.5, 6.0, 9.0], 1e-6);
        products.apply_turned(Rows::new(&[1.0, 2.0], 1, 2), Rows::new(&[3.0, 4.0, 5.0, 6.0], 2, 2), 0.5, &mut out);
        near(&out, &[5.5, 8.5], 1e-6);
        // Every second value of a wider matrix's rows.
        let wide = Rows { data: &[1.0, 9.0, 2.0, 9.0], rows: 2, width: 1, stride: 2 };
        products.plain(Rows::new(&[10.0, 1.0], 1, 2), wide, &mut out);
        near(&out, &[12.0], 1e-6);
    }

    #[test]
    fn small_numbers_are_near_the_large_ones() {
        let weight: Vec<f32> = (0..192).map(|at| (at as f32 * 0.7).sin()).collect();
        let x: Vec<f32> = (0..64).map(|at| (at as f32 * 0.3).cos()).collect();
        let small = Small::new(&weight, 64, vec![1.0, 0.0, 0.0]);
        let mut found = Vec::new();
        small.apply(&x, &mut found);
        let product = |row: &[f32]| row.iter().zip(&x).map(|(a, b)| a * b).sum::<f32>();
        let mut expect: Vec<f32> = weight.chunks(64).map(product).collect();
        expect[0] += 1.0;
        near(&found, &expect, 0.05);
        let mut row = vec![0.0; 64];
        small.add_row(1, &mut row);
        near(&row, &weight[64..128], 0.01);
    }

    #[test]
    fn attention_takes_what_is_alike() {
        let mut query = vec![0.0; 128];
        (query[0], query[64]) = (50.0, 50.0);
        let mut keys = vec![0.0; 256];
        // The first head's key is like the second row's, the second head's like the first.
        (keys[128], keys[64]) = (1.0, 1.0);
        let values: Vec<f32> = (0..256).map(|at| at as f32).collect();
        let (mut shares, mut out) = (Vec::new(), Vec::new());
        attend(&query, Kept { keys: &keys, values: &values, stride: 128, count: 2 }, &mut shares, &mut out);
        near(&shares, &[0.0, 1.0, 1.0, 0.0], 1e-6);
        near(&[out[0], out[63], out[64], out[127]], &[128.0, 191.0, 64.0, 127.0], 1e-3);
    }

    #[test]
    fn rows_are_normalised() {
        let norm = Norm { scale: vec![2.0; 16], shift: vec![1.0; 16] };
        let x: Vec<f32> = (0..16).map(|at| if at % 2 == 0 { 3.0 } else { 5.0 }).collect();
        let mut out = Vec::new();
        norm.apply(&x, &mut out);
        near(&out[..2], &[-1.0, 3.0], 1e-3);
        assert!((log_sum_exp(&[1.0, 1.0]) - (1.0 + 2f32.ln())).abs() < 1e-5);
    }
}
