//! Statistics of repeated calls. Nothing here draws by itself: the bootstrap has a seed.

use ringer_media::seed::Seed;

/// Quantile of the normal distribution for 95 %, both sides.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;
/// Quantile of the normal distribution for a power of 80 %.
const Z80: f64 = 0.841_621_233_572_914;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 2000;

/// Returns Wilson's interval of 95 % for a share of `all`, from 0 to 1; (0, 1) when `all` is 0.
pub fn wilson(passed: u64, all: u64) -> (f64, f64) {
    wilson_of(passed as f64 / all as f64, all)
}

/// Returns Wilson's interval of 95 % for a share that is not made of whole counts; `all` is the number of observations.
pub(crate) fn wilson_of(p: f64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, z2) = (all as f64, Z95 * Z95);
    let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z95 / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    // The interval ends where all or none passed; rounding would leave a trace beside it.
    (if p <= 0.0 { 0.0 } else { (middle - half).max(0.0) }, if p >= 1.0 { 1.0 } else { (middle + half).min(1.0) })
}

/// Returns the chance that `k` of `decided` runs with a verdict, drawn without replacement, all passed.
///
/// It is C(passed, k) / C(told, k); `None` where there are fewer than `k`.
pub fn pass_k(passed: u64, decided: u64, k: u64) -> Option<f64> {
    if k == 0 || k > decided {
        return None;
    }
    Some((0..k).map(|at| passed.saturating_sub(at) as f64 / (decided - at) as f64).product())
}

/// Returns a percentile of values in any order, linear between ranks; `None` without values.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = (sorted.len().checked_sub(1)?) as f64 * percent / 100.0;
    let (low, share) = (position.floor() as usize, position.fract());
    let high = (low + 1).min(sorted.len() - 1);
    Some(sorted[low] + (sorted[high] - sorted[low]) * share)
}

/// Returns the probability of pairs at least as uneven by chance alone (McNemar's exact test, two-sided).
///
/// `worse` and `better` are the numbers of pairs whose verdict changed.
pub fn mcnemar(worse: u64, better: u64) -> f64 {
    let (n, few) = (worse + better, worse.min(better));
    if n == 0 {
        return 1.0;
    }
    // Logarithms avoid an overflow with many pairs.
    let ln_factorial = |count: u64| (1..=count).map(|k| (k as f64).ln()).sum::<f64>();
    let all = ln_factorial(n);
    let tail: f64 = (0..=few)
        .map(|k| (all - ln_factorial(k) - ln_factorial(n - k) - n as f64 * std::f64::consts::LN_2).exp())
        .sum();
    (2.0 * tail).min(1.0)
}

/// A difference with its interval of 95 %: difference, lower end, upper end.
pub type Interval = (f64, f64, f64);

/// Returns the difference of a percentile between two runs, with its interval of 95 % by resampling pairs.
///
/// Values of both are paired by position. `None`: no pair has values.
pub fn bootstrap(pairs: &[(Vec<f64>, Vec<f64>)], percent: f64, seed: Seed) -> Option<Interval> {
    resample(pairs, &|values| percentile(values, percent), seed)
}

/// Returns the difference of the mean between two runs, with its interval of 95 % by resampling pairs.
///
/// `None`: no pair has values.
pub fn bootstrap_mean(pairs: &[(Vec<f64>, Vec<f64>)], seed: Seed) -> Option<Interval> {
    resample(pairs, &mean, seed)
}

/// Returns the mean of values; `None` without any.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Largest number of pairs of which every exchange is tried; of more, [`RESAMPLES`] are drawn.
const ALL_EXCHANGES: usize = 10;

/// Returns the probability of a difference at least as large by chance alone: that of a statistic between two runs,
/// whose values are exchanged within pairs. `None`: no pair has values.
pub(crate) fn exchange_test(
    pairs: &[(Vec<f64>, Vec<f64>)],
    statistic: &dyn Fn(&[f64]) -> Option<f64>,
    seed: Seed,
) -> Option<f64> {
    let difference = |is_exchanged: &mut dyn FnMut(usize) -> bool| {
        let (mut before, mut now) = (Vec::new(), Vec::new());
        for (at, (one, other)) in pairs.iter().enumerate() {
            let (first, second) = if is_exchanged(at) { (other, one) } else { (one, other) };
            before.extend(first);
            now.extend(second);
        }
        Some((statistic(&now)? - statistic(&before)?).abs())
    };
    // Sums in another order differ in their last digits.
    let least = difference(&mut |_| false)? * (1.0 - 1e-9);
    if pairs.len() <= ALL_EXCHANGES {
        let all = 1usize << pairs.len();
        let count = (0..all).filter(|signs| difference(&mut |at| signs >> at & 1 == 1).is_some_and(|one| one >= least));
        return Some(count.count() as f64 / all as f64);
    }
    let mut draws = seed.stream("exchange");
    let count = (0..RESAMPLES).filter(|_| difference(&mut |_| draws.bits() & 1 == 1).is_some_and(|one| one >= least));
    Some((count.count() + 1) as f64 / (RESAMPLES + 1) as f64)
}

fn resample(pairs: &[(Vec<f64>, Vec<f64>)], statistic: &dyn Fn(&[f64]) -> Option<f64>, seed: Seed) -> Option<Interval> {
    let difference = |pairs: &mut dyn Iterator<Item = &(Vec<f64>, Vec<f64>)>| {
        let (mut before, mut now) = (Vec::new(), Vec::new());
        for (one, other) in pairs {
            before.extend(one);
            now.extend(other);
        }
        Some(statistic(&now)? - statistic(&before)?)
    };
    let found = difference(&mut pairs.iter())?;
    let mut draws = seed.stream("bootstrap");
    let mut all: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let drawn: Vec<usize> = (0..pairs.len()).map(|_| draws.index(pairs.len())).collect();
            difference(&mut drawn.iter().map(|at| &pairs[*at]))
        })
        .collect();
    all.sort_by(f64::total_cmp);
    Some((found, percentile(&all, 2.5)?, percentile(&all, 97.5)?))
}

/// Pairs that are needed until a change like this one is seen in 80 % of such comparisons, at 95 %; `None` where
/// nothing changed.
pub fn pairs_needed(worse: u64, better: u64, pairs: u64) -> Option<u64> {
    if pairs == 0 || worse == better {
        return None;
    }
    let n = pairs as f64;
    let (worse, better) = (worse as f64 / n, better as f64 / n);
    let (change, uneven) = ((worse - better).abs(), worse + better);
    let root = Z95 * uneven.sqrt() + Z80 * (uneven - change * change).max(0.0).sqrt();
    Some((root * root / (change * change)).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expect: f64) {
        assert!((found - expect).abs() < 5e-4, "{found} {expect}");
    }

    #[test]
    fn shares_have_the_intervals_of_wilson() {
        for (passed, all, low, high) in [
            (0, 0, 0.0, 1.0),
            (0, 10, 0.0, 0.2775),
            (10, 10, 0.7225, 1.0),
            (8, 10, 0.4902, 0.9433),
            (1, 1, 0.2065, 1.0),
        ] {
            let (found_low, found_high) = wilson(passed, all);
            near(found_low, low);
            near(found_high, high);
        }
        assert_eq!((wilson(0, 500).0, wilson(500, 500).1), (0.0, 1.0));
    }

    #[test]
    fn few_pairs_tell_no_difference() {
        let apart = |count: usize| -> Vec<(Vec<f64>, Vec<f64>)> {
            (0..count).map(|at| (vec![at as f64], vec![at as f64 + 1.0])).collect()
        };
        for (count, expect) in [(1, 1.0), (2, 0.5), (5, 2.0 / 32.0), (6, 2.0 / 64.0), (10, 2.0 / 1024.0)] {
            assert_eq!(exchange_test(&apart(count), &mean, Seed(1)), Some(expect), "{count}");
        }
        assert!(exchange_test(&apart(30), &mean, Seed(1)).is_some_and(|p| p < 0.001));
        let same = vec![(vec![1.0], vec![1.0]); 12];
        assert_eq!(exchange_test(&same, &mean, Seed(1)), Some(1.0));
        assert_eq!(exchange_test(&[], &mean, Seed(1)), None);
    }

    #[test]
    fn k_runs_pass_together_by_combinations() {
        for (passed, decided, k, expect) in [
            (3, 3, 3, Some(1.0)),
            (2, 3, 1, Some(2.0 / 3.0)),
            (2, 3, 2, Some(1.0 / 3.0)),
            (2, 3, 3, Some(0.0)),
            (8, 10, 3, Some(56.0 / 120.0)),
            (2, 2, 3, None),
            (0, 0, 0, None),
        ] {
            let found = pass_k(passed, decided, k);
            assert_eq!(found.is_some(), expect.is_some(), "{passed} {decided} {k}");
            found.into_iter().zip(expect).for_each(|(found, expect)| near(found, expect));
        }
    }

    #[test]
    fn percentiles_lie_between_ranks() {
        for (values, percent, expect) in [
            (&[][..], 50.0, None),
            (&[3.0], 95.0, Some(3.0)),
            (&[1.0, 2.0], 50.0, Some(1.5)),
            (&[4.0, 1.0, 3.0, 2.0], 95.0, Some(3.85)),
        ] {
            assert_eq!(percentile(values, percent), expect, "{values:?}");
        }
    }

    #[test]
    fn pairs_that_changed_are_tested_exactly() {
        for (worse, better, expect) in
            [(0, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 1, 1.0), (10, 2, 0.0386), (0, 8, 0.0078)]
        {
            near(mcnemar(worse, better), expect);
        }
        assert_eq!(pairs_needed(0, 0, 10), None);
        let needed = pairs_needed(2, 0, 10).expect("something changed");
        assert!((30..=45).contains(&needed), "{needed}");
    }

    #[test]
    fn a_bootstrap_repeats_itself_and_finds_a_shift() {
        let pairs: Vec<(Vec<f64>, Vec<f64>)> =
            (0..20).map(|at| (vec![1.0 + f64::from(at % 5) / 10.0], vec![1.5 + f64::from(at % 5) / 10.0])).collect();
        let found = bootstrap(&pairs, 50.0, Seed(7)).expect("there are values");
        assert_eq!(Some(found), bootstrap(&pairs, 50.0, Seed(7)));
        near(found.0, 0.5);
        assert!(found.1 > 0.2 && found.2 < 0.8, "{found:?}");
        assert_eq!(bootstrap(&[], 50.0, Seed(7)), None);
    }
}
