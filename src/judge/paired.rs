//! Outcomes of two calls of one caller, pair by pair: verdicts by McNemar's exact test, figures by a paired bootstrap.
//! The intervals of a bootstrap are too narrow for few pairs, so that a difference is told by an exchange test.
//! Pairs of which a side is not known count for nothing but themselves.

use ringer_media::seed::Seed;
use ringer_model::verdict::VerdictWord;

use crate::stats::{Interval, bootstrap, bootstrap_mean, exchange_test, mcnemar, mean, percentile, wilson};

/// Counts of pairs by their verdicts.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct PairedVerdicts {
    /// Number of pairs that passed on both sides.
    pub both_passed: u64,
    /// Number of pairs that passed before and failed after.
    pub worse: u64,
    /// Number of pairs that failed before and passed after.
    pub better: u64,
    /// Number of pairs that failed on both sides.
    pub both_failed: u64,
    /// Number of pairs of which a side tells nothing about the agent.
    pub untold: u64,
}

impl PairedVerdicts {
    /// Returns the counts of pairs of verdicts: before, after.
    pub fn of(pairs: impl IntoIterator<Item = (VerdictWord, VerdictWord)>) -> PairedVerdicts {
        use VerdictWord::{Failed, Passed};
        let mut counts = PairedVerdicts::default();
        for pair in pairs {
            let count = match pair {
                (Passed, Passed) => &mut counts.both_passed,
                (Passed, Failed) => &mut counts.worse,
                (Failed, Passed) => &mut counts.better,
                (Failed, Failed) => &mut counts.both_failed,
                _ => &mut counts.untold,
            };
            *count += 1;
        }
        counts
    }

    /// Returns the number of pairs whose both sides have a verdict on the agent.
    pub fn count_told(&self) -> u64 {
        self.both_passed + self.worse + self.better + self.both_failed
    }

    /// Returns the probability of pairs at least as uneven by chance alone (McNemar's exact test, two-sided).
    pub fn p(&self) -> f64 {
        mcnemar(self.worse, self.better)
    }

    /// Returns the shares of pairs that passed, 0 to 1: before, after; `None` without a pair that is told.
    pub fn shares(&self) -> Option<(f64, f64)> {
        let told = self.count_told() as f64;
        let share = |passed: u64| passed as f64 / told;
        (told > 0.0).then(|| (share(self.both_passed + self.worse), share(self.both_passed + self.better)))
    }

    /// Returns the difference of the shares that passed, after minus before, with its interval of 95 %.
    ///
    /// The interval joins those of Wilson of both shares by their correlation (Newcombe 1998, method 10). Pairs that
    /// all agree have one of some width. `None` without a pair that is told.
    pub fn difference(&self) -> Option<Interval> {
        let (before, after) = self.shares()?;
        let told = self.count_told();
        let margins = [self.both_passed + self.worse, self.both_passed + self.better];
        let [(low_before, high_before), (low_after, high_after)] = margins.map(|passed| wilson(passed, told));
        let phi = self.correlation(margins);
        let reach = |one: f64, other: f64| (one * one - 2.0 * phi * one * other + other * other).max(0.0).sqrt();
        let found = after - before;
        let low = found - reach(after - low_after, high_before - before);
        let high = found + reach(high_after - after, before - low_before);
        Some((found, low.max(-1.0), high.min(1.0)))
    }

    /// Returns the correlation of both sides, by which their intervals are joined; a positive one is corrected for
    /// continuity.
    fn correlation(&self, margins: [u64; 2]) -> f64 {
        let told = self.count_told() as f64;
        let [before, after] = margins.map(|passed| passed as f64);
        let below = before * (told - before) * after * (told - after);
        if below <= 0.0 {
            return 0.0;
        }
        let [a, b, c, d] = [self.both_passed, self.worse, self.better, self.both_failed].map(|count| count as f64);
        let above = a * d - b * c;
        let above = if above > 0.0 { (above - told / 2.0).max(0.0) } else { above };
        above / below.sqrt()
    }
}

/// Figure of a set of values.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Figure {
    /// Percentile, 0 to 100, of the values of all calls.
    Percentile(f64),
    /// Mean of the values of all calls.
    Mean,
}

impl Figure {
    /// Returns the figure of values; `None` without any.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Figure::Percentile(percent) => percentile(values, percent),
            Figure::Mean => mean(values),
        }
    }
}

/// A figure of both sides, with its difference.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PairedFigure {
    /// Number of pairs with values on both sides.
    pub pairs: u64,
    /// Figure of the side before.
    pub before: f64,
    /// Figure of the side after.
    pub after: f64,
    /// Difference, after minus before, with its interval of 95 %.
    pub difference: Interval,
    /// Probability of a difference at least as large by chance alone, by exchanging the sides of pairs.
    pub p: f64,
}

impl PairedFigure {
    /// Returns the figure over the pairs with values on both sides; `seed` draws the samples of the interval. `None`
    /// where there is no such pair.
    pub fn of(pairs: &[(Vec<f64>, Vec<f64>)], figure: Figure, seed: Seed) -> Option<PairedFigure> {
        let whole: Vec<(Vec<f64>, Vec<f64>)> =
            pairs.iter().filter(|(before, after)| !before.is_empty() && !after.is_empty()).cloned().collect();
        let before: Vec<f64> = whole.iter().flat_map(|(before, _)| before.iter().copied()).collect();
        let after: Vec<f64> = whole.iter().flat_map(|(_, after)| after.iter().copied()).collect();
        let difference = match figure {
            Figure::Percentile(percent) => bootstrap(&whole, percent, seed),
            Figure::Mean => bootstrap_mean(&whole, seed),
        };
        Some(PairedFigure {
            pairs: whole.len() as u64,
            before: figure.of(&before)?,
            after: figure.of(&after)?,
            difference: difference?,
            p: exchange_test(&whole, &|values| figure.of(values), seed)?,
        })
    }

    /// True if chance alone makes such a difference in fewer than one comparison of twenty; less than six pairs tell
    /// none.
    pub fn is_told(&self) -> bool {
        self.p < 0.05
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(both_passed: u64, worse: u64, better: u64, both_failed: u64) -> PairedVerdicts {
        PairedVerdicts { both_passed, worse, better, both_failed, untold: 0 }
    }

    #[test]
    fn pairs_that_are_not_told_are_no_difference() {
        use VerdictWord::{Failed, Passed, Undecided, Unreachable};
        let found = PairedVerdicts::of([
            (Passed, Passed),
            (Passed, Failed),
            (Failed, Passed),
            (Failed, Failed),
            (Undecided, Failed),
            (Passed, Unreachable),
        ]);
        assert_eq!(found, PairedVerdicts { untold: 2, ..counts(1, 1, 1, 1) });
        assert_eq!((found.count_told(), found.p(), found.shares()), (4, 1.0, Some((0.5, 0.5))));
        let none = PairedVerdicts::of([(Undecided, Undecided)]);
        assert_eq!((none.count_told(), none.p(), none.difference()), (0, 1.0, None));
    }

    /// The interval covers the true difference about as often as it says, by all tables of 20 pairs.
    #[test]
    fn the_interval_of_the_difference_covers_it() {
        const PAIRS: u64 = 20;
        let ln_factorial = |count: u64| (1..=count).map(|k| (k as f64).ln()).sum::<f64>();
        for [a, b, c] in [[0.6, 0.2, 0.1], [0.9, 0.08, 0.01], [0.4, 0.3, 0.1], [0.1, 0.1, 0.6], [0.45, 0.05, 0.05]] {
            let (d, truth) = (1.0 - a - b - c, c - b);
            let mut covered = 0.0;
            for passed in 0..=PAIRS {
                for worse in 0..=PAIRS - passed {
                    for better in 0..=PAIRS - passed - worse {
                        let table = counts(passed, worse, better, PAIRS - passed - worse - better);
                        let (_, low, high) = table.difference().expect("there are pairs");
                        let shares = [(passed, a), (worse, b), (better, c), (table.both_failed, d)];
                        let ln = |(count, share): (u64, f64)| count as f64 * share.ln() - ln_factorial(count);
                        let chance = (ln_factorial(PAIRS) + shares.map(ln).iter().sum::<f64>()).exp();
                        covered += if (low..=high).contains(&truth) { chance } else { 0.0 };
                    }
                }
            }
            assert!((0.92..=0.999).contains(&covered), "{a} {b} {c}: {covered}");
        }
    }

    /// Example of Newcombe 1998 (36, 12, 2 and 0 pairs): 0.0569 to 0.3404 by method 10.
    #[test]
    fn the_interval_is_that_of_the_published_example() {
        let (found, low, high) = counts(36, 12, 2, 0).difference().expect("there are pairs");
        for (value, expect) in [(found, -0.2), (low, -0.3404), (high, -0.0569)] {
            assert!((value - expect).abs() < 5e-5, "{value} {expect}");
        }
    }

    #[test]
    fn pairs_that_agree_leave_room_for_a_difference() {
        let (found, low, high) = counts(10, 0, 0, 0).difference().expect("there are pairs");
        assert!(found == 0.0 && low < -0.2 && high > 0.2, "{low} {high}");
        let (found, low, high) = counts(0, 20, 0, 0).difference().expect("there are pairs");
        assert!(found == -1.0 && low == -1.0 && high < -0.7, "{low} {high}");
    }

    #[test]
    fn a_figure_is_of_pairs_with_both_sides() {
        let pairs = vec![(vec![1.0], vec![2.0]), (vec![3.0, 5.0], vec![4.0, 6.0]), (vec![9.0], vec![])];
        let found = PairedFigure::of(&pairs, Figure::Percentile(50.0), Seed(1)).expect("there are pairs");
        assert_eq!((found.pairs, found.before, found.after, found.difference.0), (2, 3.0, 4.0, 1.0));
        assert!(!found.is_told(), "two pairs tell no difference");
        let six: Vec<_> = (0..6).map(|at| (vec![f64::from(at)], vec![f64::from(at) + 1.0])).collect();
        let found = PairedFigure::of(&six, Figure::Mean, Seed(1)).expect("there are pairs");
        assert!(found.is_told() && found.p == 2.0 / 64.0, "{found:?}");
        let mean = PairedFigure::of(&pairs, Figure::Mean, Seed(1)).expect("there are pairs");
        assert_eq!((mean.before, mean.after), (3.0, 4.0));
        assert_eq!(PairedFigure::of(&[(vec![1.0], vec![])], Figure::Mean, Seed(1)), None);
        let one = PairedFigure::of(&pairs[..1], Figure::Mean, Seed(1)).expect("there is a pair");
        assert!(!one.is_told(), "one pair tells no difference");
    }
}
