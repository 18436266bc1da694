//! Detector of a foreground voice, for channels with noise: a small recurrent network on the detector's mel bands, its
//! score and the level above the noise floor. It does not judge quiet channels.
//!
//! One layer of [`NARROW`] rectified sums, a gated recurrent unit (Cho et al. 2014) of [`STATE`] values, one of
//! [`SECOND`] on the first, and [`HEADS`] sums of both. They are the log odds of speech now, and, with later frames, of
//! speech some frames ago. The recent mean of each band is subtracted from it, so that neither the connection nor the
//! level counts.
//!
//! Trained by `make train` on 85 hours of 263 voices: synthesizers, prompts and games in many languages, and whole
//! words in any order. The noise is of every kind at -4 to 22 dB, through PCMU, PCMA and G.722. A second unit of 48
//! missed 7 utterances at 0 dB, this one 4. One unit of 64 had 90 % of its edges at 10 dB within 190 ms.

use std::sync::LazyLock;

/// Number of mel bands of the detector.
const BANDS: usize = super::detector::BANDS;

/// Number of inputs of the network: the bands, the score and the level.
pub(super) const INPUTS: usize = BANDS + 2;
const NARROW: usize = 32;
const STATE: usize = 64;
const GATES: usize = 3 * STATE;
const SECOND: usize = 112;
const GATES_2: usize = 3 * SECOND;
/// Number of answers to a frame.
pub(super) const HEADS: usize = 4;

/// Number of frames that each head looks back.
pub(super) const LAGS: [usize; HEADS] = [0, 6, 12, 24];

/// Weight of a frame in the mean of its bands (5 s); before as many came, all weigh the same.
const KEEP: f32 = 0.004;

/// Least value of a band (natural logarithm of power), and its largest distance from the mean in units of [`BAND`].
const LEAST: f32 = -18.0;
const FARTHEST: f32 = 3.0;

/// Unit of the score's log odds in the inputs.
pub(super) const SCORE: f32 = 3.0;

/// Units of a band, and of dB above the noise floor.
const BAND: f32 = 3.0;
const LEVEL_DB: f32 = 10.0;

struct Weights {
    first: [[f32; NARROW]; INPUTS],
    first_bias: [f32; NARROW],
    gates: [[f32; GATES]; NARROW],
    gates_bias: [f32; GATES],
    again: [[f32; GATES]; STATE],
    again_bias: [f32; GATES],
    gates_2: [[f32; GATES_2]; STATE],
    gates_2_bias: [f32; GATES_2],
    again_2: [[f32; GATES_2]; SECOND],
    again_2_bias: [f32; GATES_2],
    heads: [[f32; HEADS]; STATE],
    heads_2: [[f32; HEADS]; SECOND],
    heads_bias: [f32; HEADS],
}

/// Weights of the network. Each matrix has its bias as its last row: the size of a step, then as many steps as whole
/// numbers of 16 bits.
static WEIGHTS: LazyLock<Box<Weights>> = LazyLock::new(|| {
    let mut rest: &[u8] = include_bytes!("foreground_net.bin");
    let mut next = |count: usize| -> Vec<f32> {
        let (step, after) = rest.split_at(4);
        let step = f32::from_le_bytes([step[0], step[1], step[2], step[3]]);
        let (values, after) = after.split_at(2 * count);
        rest = after;
        values.chunks_exact(2).map(|b| step * f32::from(i16::from_le_bytes([b[0], b[1]]))).collect()
    };
    fn rows<const N: usize, const M: usize>(values: &[f32]) -> ([[f32; N]; M], [f32; N]) {
        let row = |m: usize| std::array::from_fn(|n| values[m * N + n]);
        (std::array::from_fn(row), row(M))
    }
    let (first, first_bias) = rows(&next(NARROW * (INPUTS + 1)));
    let (gates, gates_bias) = rows(&next(GATES * (NARROW + 1)));
    let (again, again_bias) = rows(&next(GATES * (STATE + 1)));
    let (gates_2, gates_2_bias) = rows(&next(GATES_2 * (STATE + 1)));
    let (again_2, again_2_bias) = rows(&next(GATES_2 * (SECOND + 1)));
    let of_both = next(HEADS * (STATE + SECOND + 1));
    let (heads, _) = rows(&of_both);
    let (heads_2, heads_bias) = rows(&of_both[HEADS * STATE..]);
    Box::new(Weights {
        first,
        first_bias,
        gates,
        gates_bias,
        again,
        again_bias,
        gates_2,
        gates_2_bias,
        again_2,
        again_2_bias,
        heads,
        heads_2,
        heads_bias,
    })
});

/// State of the network. Allocates nothing after [`ForegroundNet::new`].
pub(super) struct ForegroundNet {
    mean: [f32; BANDS],
    heard: f32,
    /// Inputs of the last frame.
    pub inputs: [f32; INPUTS],
    state: [f32; STATE],
    second: [f32; SECOND],
}

impl ForegroundNet {
    /// Returns a network without a past.
    pub(super) fn new() -> ForegroundNet {
        LazyLock::force(&WEIGHTS);
        ForegroundNet {
            mean: [0.0; BANDS],
            heard: 0.0,
            inputs: [0.0; INPUTS],
            state: [0.0; STATE],
            second: [0.0; SECOND],
        }
    }

    /// Forgets the past, as the channel is quiet.
    pub(super) fn forget(&mut self) {
        if self.heard > 0.0 {
            (self.heard, self.state, self.second) = (0.0, [0.0; STATE], [0.0; SECOND]);
        }
    }

    /// Takes a frame: the detector's bands, the log odds of its score, and the level above the noise floor in dB.
    /// Returns the log odds of speech as many frames ago as [`LAGS`] says.
    pub(super) fn push(&mut self, bands: &[f32; BANDS], score: f32, above_db: f32) -> [f32; HEADS] {
        self.heard += 1.0;
        let part = KEEP.max(1.0 / self.heard);
        for ((input, band), mean) in self.inputs.iter_mut().zip(bands).zip(&mut self.mean) {
            let band = band.max(LEAST);
            *mean = if self.heard > 1.0 { *mean + part * (band - *mean) } else { band };
            *input = ((band - *mean) / BAND).clamp(-FARTHEST, FARTHEST);
        }
        self.inputs[BANDS] = score / SCORE;
        self.inputs[BANDS + 1] = above_db.clamp(-10.0, 30.0) / LEVEL_DB;
        self.judge()
    }

    /// Runs the network on [`ForegroundNet::inputs`] and returns the log odds of the heads.
    pub(super) fn judge(&mut self) -> [f32; HEADS] {
        let weights = &**WEIGHTS;
        let narrow = sums(&self.inputs, &weights.first, &weights.first_bias).map(|x| x.max(0.0));
        let fresh = sums(&narrow, &weights.gates, &weights.gates_bias);
        let again = sums(&self.state, &weights.again, &weights.again_bias);
        go_on(&mut self.state, &fresh, &again);
        let fresh = sums(&self.state, &weights.gates_2, &weights.gates_2_bias);
        let again = sums(&self.second, &weights.again_2, &weights.again_2_bias);
        go_on(&mut self.second, &fresh, &again);
        sums(&self.second, &weights.heads_2, &sums(&self.state, &weights.heads, &weights.heads_bias))
    }
}

/// Does a step of a gated recurrent unit, from the products of its new input and of its own state.
fn go_on<const N: usize, const GATES: usize>(state: &mut [f32; N], fresh: &[f32; GATES], again: &[f32; GATES]) {
    for n in 0..N {
        let keep = sigmoid(fresh[n] + again[n]);
        let reset = sigmoid(fresh[N + n] + again[N + n]);
        let new = tanh(fresh[2 * N + n] + reset * again[2 * N + n]);
        state[n] = new + keep * (state[n] - new);
    }
}

/// Number of sums that are computed at once: they stay in registers.
const AT_ONCE: usize = 16;

/// Returns the bias plus each row times its input.
fn sums<const N: usize, const M: usize>(inputs: &[f32; M], rows: &[[f32; N]; M], bias: &[f32; N]) -> [f32; N] {
    let mut sums = *bias;
    let (stretches, rest) = sums.as_chunks_mut::<AT_ONCE>();
    for (n, stretch) in stretches.iter_mut().enumerate() {
        let mut some = *stretch;
        for (input, row) in inputs.iter().zip(rows) {
            let row = &row.as_chunks::<AT_ONCE>().0[n];
            for k in 0..AT_ONCE {
                some[k] += input * row[k];
            }
        }
        *stretch = some;
    }
    let done = N - rest.len();
    for (input, row) in inputs.iter().zip(rows) {
        for (sum, weight) in rest.iter_mut().zip(&row[done..]) {
            *sum += input * weight;
        }
    }
    sums
}

/// Approximates tanh by its continued fraction, to 1e-4: a few products instead of a call.
fn tanh(x: f32) -> f32 {
    let x = x.clamp(-4.9, 4.9);
    let square = x * x;
    let over = x * (135_135.0 + square * (17_325.0 + square * (378.0 + square)));
    over / (135_135.0 + square * (62_370.0 + square * (3150.0 + square * 28.0)))
}

fn sigmoid(x: f32) -> f32 {
    0.5 + 0.5 * tanh(0.5 * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trained network is this one: it gives what it gave where it was trained, on bands, scores and levels that
    /// wave.
    #[test]
    fn odds_are_those_of_the_network_that_was_trained() {
        let mut net = ForegroundNet::new();
        for n in 0..300 {
            let at = n as f32;
            let bands = std::array::from_fn(|band| -8.0 + 3.0 * (at * (0.05 + 0.003 * band as f32)).sin());
            let odds = net.push(&bands, 3.0 * (at * 0.11).sin(), 8.0 * (at * 0.07).sin());
            let trained = match n {
                9 => [-1.294, -1.411, -1.016, 0.201],
                99 => [-5.187, -5.74, -6.531, -6.203],
                299 => [-6.05, -7.938, -8.244, -5.613],
                _ => continue,
            };
            let apart = odds.iter().zip(trained).map(|(own, trained)| (own - trained).abs()).fold(0.0, f32::max);
            assert!(apart < 0.05, "frame {n}: {odds:?} and not {trained:?}");
        }
        net.forget();
        let fresh = ForegroundNet::new().push(&[-8.0; BANDS], 0.0, 0.0);
        assert_eq!(net.push(&[-8.0; BANDS], 0.0, 0.0), fresh);
    }
}
