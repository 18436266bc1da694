//! A tone of the network from its first sample to its last, so that it can be taken out of a channel: speech behind it
//! then begins as it does after silence.
//!
//! The recurrence that a tone obeys (see [`super::tone`]) is taken from a frame that is nothing but the tone. Later
//! samples that depart from it are something else, to 2.5 ms. A tone that the recurrence foretells beside other sound
//! goes on under that sound.

use super::tone::{cancel_factors, is_tone, mean_power};
use super::{LEAST_DBOV, TONE_DB, dbov, power};
use crate::frame::{FRAME, Frame, Sample};

/// Number of samples that are told apart (2.5 ms), and of those parts in a frame.
const PART: usize = 40;
const PARTS: usize = FRAME / PART;

/// Distance of the samples in the recurrence: the one that changes noise least for tones of 350 to 480 Hz, and the
/// samples before that it needs.
const LAG: usize = 7;
const BEFORE: usize = 4 * LAG;

/// Largest power of what departs from the tone, as a share of the tone's power (-24 dB). In G.711 it is -37 dB.
const DEPARTURE: f64 = 0.004;

/// Share of the tone's power below which four parts (10 ms) are silence (-20 dB). Between two beats 400 and 425 Hz fall
/// to -10 dB.
const SILENT: f64 = 0.01;
const SILENT_PARTS: usize = 4;

/// Number of parts behind a frame of tone that make a tone of it (10 ms): speech is as pure for a shorter time.
const CONFIRMING: usize = 4;

/// Share of a tone in a later frame above which it goes on there: 0.8 to 1.1, beside speech in the tests 0.35 at least.
/// Speech behind a tone that ended has 0.1 of it at most.
const GOES_ON: f64 = 0.25;

/// Distance of the samples from which the frequencies of a tone are computed: unambiguous to 2 kHz.
const NEAR: usize = 4;

/// A tone that a frame held.
#[derive(Copy, Clone, Debug)]
struct Tone {
    factors: [f64; 3],
    /// Mean square of its samples.
    power: f64,
    /// First sample of it.
    from: Sample,
    /// True once it lasted longer than a frame.
    confirmed: bool,
}

/// Findings in a frame.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct ToneFound {
    /// Number of samples at the frame's beginning that are a tone, the few in which it ends included.
    pub samples: usize,
    /// First sample of a tone that this frame confirmed.
    pub began: Option<Sample>,
    /// First sample of other sound, found in the frame before, under which the tone goes on.
    pub goes_on: Option<Sample>,
}

/// Follows the tones of a channel. Allocates nothing.
#[derive(Clone, Debug)]
pub(super) struct ToneRun {
    tone: Option<Tone>,
    /// First sample of the other sound that ended the tone in the last frame, and what the tone would be from then on.
    departed: Option<(Sample, Sinusoids)>,
    /// Frame before, and one past its last sample.
    before: Frame,
    next: Sample,
}

impl ToneRun {
    /// Returns the state before the first frame.
    pub(super) fn new() -> ToneRun {
        ToneRun { tone: None, departed: None, before: [0; FRAME], next: Sample::MIN }
    }

    /// Moves all positions `by` samples back.
    pub(super) fn move_back(&mut self, by: Sample) {
        self.next = self.next.saturating_sub(by);
        self.tone.iter_mut().for_each(|tone| tone.from -= by);
        self.departed.iter_mut().for_each(|(from, _)| *from -= by);
    }

    /// Takes the frame that begins at `from`; a jump ends a tone.
    pub(super) fn push(&mut self, pcm: &Frame, from: Sample) -> ToneFound {
        if from != self.next {
            (self.tone, self.departed) = (None, None);
            self.before = [0; FRAME];
        }
        let departed = self.departed.take();
        let goes_on = departed.filter(|(_, tone)| tone.share_in(pcm, 2 * FRAME) > GOES_ON).map(|(from, _)| from);
        let found = match self.tone {
            Some(tone) => self.go_on(tone, pcm, from),
            None => {
                self.begin(pcm, from);
                ToneFound::default()
            }
        };
        (self.before, self.next) = (*pcm, from + FRAME as Sample);
        ToneFound { goes_on, ..found }
    }

    /// Looks for a tone in a frame that follows none.
    fn begin(&mut self, pcm: &Frame, from: Sample) {
        self.tone = (dbov(power(pcm)) > LEAST_DBOV && is_tone(pcm, TONE_DB)).then(|| {
            let (factors, power) = (cancel_factors(pcm, LAG), mean_power(pcm));
            let tone = Tone { factors, power, from, confirmed: false };
            // The recurrence is the same in both directions of time.
            let reversed =
                |n: usize| if n < BEFORE { pcm[BEFORE - 1 - n] } else { self.before[FRAME - 1 - (n - BEFORE)] };
            let before = tone.parts(&std::array::from_fn(reversed));
            Tone { from: from - (before * PART) as Sample, ..tone }
        });
    }

    fn go_on(&mut self, tone: Tone, pcm: &Frame, from: Sample) -> ToneFound {
        let sample = |n: usize| if n < BEFORE { self.before[FRAME - BEFORE + n] } else { pcm[n - BEFORE] };
        let parts = tone.parts(&std::array::from_fn(sample));
        if parts < CONFIRMING && !tone.confirmed {
            self.begin(pcm, from);
            return ToneFound::default();
        }
        if parts == PARTS {
            self.tone = Some(Tone { confirmed: true, ..tone });
        } else {
            self.departed = Some((from + (parts * PART) as Sample, Sinusoids::of(&self.before)));
            self.begin(pcm, from);
        }
        let samples = ((parts + 1) * PART).min(FRAME);
        ToneFound { samples, began: (!tone.confirmed).then_some(tone.from), goes_on: None }
    }
}

impl Tone {
    /// Returns the number of parts of a frame up to which the tone goes on; the samples before the frame come first.
    fn parts(&self, pcm: &[i16; BEFORE + FRAME]) -> usize {
        let departs = |part: &usize| {
            let at = BEFORE + part * PART;
            let sum: f64 = (at..at + PART).map(|n| self.departure(pcm, n).powi(2)).sum();
            sum / PART as f64 > DEPARTURE * self.power
        };
        let goes_on = (0..PARTS).find(departs).unwrap_or(PARTS);
        // It may end where its two sinusoids cancel, without a departure.
        let is_silent = |part: &usize| {
            let at = BEFORE + part * PART;
            mean_power(&pcm[at..at + SILENT_PARTS * PART]) < SILENT * self.power
        };
        (0..=PARTS - SILENT_PARTS).find(is_silent).map_or(goes_on, |silent| silent.min(goes_on))
    }

    fn departure(&self, pcm: &[i16; BEFORE + FRAME], n: usize) -> f64 {
        let at = |k: usize| f64::from(pcm[n - k * LAG]);
        let [outer, inner, middle] = self.factors;
        (outer * (at(0) + at(4)) + inner * (at(1) + at(3))) * std::f64::consts::FRAC_1_SQRT_2 + middle * at(2)
    }
}

/// One or two sinusoids: their angles from sample to sample, and the factors of their cosines and sines.
#[derive(Copy, Clone, Debug)]
struct Sinusoids {
    angles: [Option<f64>; 2],
    factors: [f64; 4],
}

impl Sinusoids {
    /// Returns the sinusoids that a frame of tone is made of, by least squares; sample 0 is its first.
    fn of(pcm: &Frame) -> Sinusoids {
        let [outer, inner, middle] = cancel_factors(pcm, NEAR);
        // The zeros of the recurrence, as the double of a cosine.
        let (a, b, c) = (outer, inner, std::f64::consts::SQRT_2 * middle - 2.0 * outer);
        let root = (b * b - 4.0 * a * c).max(0.0).sqrt();
        let angle = |y: f64| (y.abs() < 2.0).then(|| (y / 2.0).acos() / NEAR as f64);
        let [one, other] = [-b - root, -b + root].map(|twice| angle(twice / (2.0 * a)));
        // Within 5 Hz they are one.
        let other = other.filter(|other| one.is_none_or(|one: f64| (one - other).abs() > 0.002));
        let mut tone = Sinusoids { angles: [one, other], factors: [0.0; 4] };
        let (mut sums, mut products) = ([[0.0; 4]; 4], [0.0; 4]);
        for (n, x) in pcm.iter().enumerate() {
            let waves = tone.waves(n);
            for (row, wave) in waves.iter().enumerate() {
                products[row] += wave * f64::from(*x);
                (0..4).for_each(|column| sums[row][column] += wave * waves[column]);
            }
        }
        tone.factors = solve(sums, products);
        tone
    }

    /// Returns the cosine and sine of each sinusoid at the sample `n`; 0 where there is none.
    fn waves(&self, n: usize) -> [f64; 4] {
        let [one, other] = self.angles.map(|angle| angle.map_or((0.0, 0.0), |angle| (angle * n as f64).sin_cos()));
        [one.1, one.0, other.1, other.0]
    }

    /// Returns the share of these sinusoids in a frame whose first sample is `at`: 1 where they go on, 0 where they
    /// ended.
    fn share_in(&self, pcm: &Frame, at: usize) -> f64 {
        let (mut product, mut power) = (0.0, 0.0);
        for (n, x) in pcm.iter().enumerate() {
            let tone: f64 = self.waves(at + n).iter().zip(self.factors).map(|(wave, factor)| wave * factor).sum();
            product += tone * f64::from(*x);
            power += tone * tone;
        }
        if power > 0.0 { product / power } else { 0.0 }
    }
}

/// Solves four linear equations of a symmetric, non-negative matrix; an unknown that they do not tell is 0.
fn solve(mut rows: [[f64; 4]; 4], mut values: [f64; 4]) -> [f64; 4] {
    for at in 0..4 {
        let pivot = rows[at];
        if pivot[at] < 1e-6 {
            continue;
        }
        let value = values[at];
        for (row, other) in rows.iter_mut().zip(&mut values).enumerate().filter(|(n, _)| *n != at).map(|(_, pair)| pair)
        {
            let factor = row[at] / pivot[at];
            (0..4).for_each(|column| row[column] -= factor * pivot[column]);
            *other -= factor * value;
        }
    }
    std::array::from_fn(|at| if rows[at][at] < 1e-6 { 0.0 } else { values[at] / rows[at][at] })
}
