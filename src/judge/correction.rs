//! Rates of a judge corrected by conversations that people labelled.
//!
//! Prediction-powered inference (Angelopoulos et al. 2023, tuned as in "PPI++", 2023) needs nothing of the judge, but
//! labelled conversations of the same kind as the others. Rogan and Gladen (1978) need a judge that errs elsewhere as
//! often as on them.

use ringer_model::judge_card::Estimate;

use super::agreement::Confusion;
use crate::stats::Z95;

/// Returns the share of true ones by prediction-powered inference, with its normal interval of 95 %.
///
/// `labelled` are pairs of a label and a verdict, `hits` of `all` further verdicts are true. The weight of the verdicts
/// is the one of least variance, within 0 and 1. `None` where one of both is empty, or there is one label alone.
pub fn ppi(labelled: Confusion, hits: u64, all: u64) -> Option<Estimate> {
    let (n, m) = (labelled.all(), all);
    if n < 2 || m == 0 {
        return None;
    }
    let n_true = labelled.true_positives + labelled.false_negatives;
    let called = labelled.true_positives + labelled.false_positives;
    let (count, others) = (n as f64, m as f64);
    let (labels, verdicts, rest) = (n_true as f64 / count, called as f64 / count, hits as f64 / others);
    let both = labelled.true_positives as f64 / count;
    let covariance = both - labels * verdicts;
    let joined = (called + hits) as f64 / (count + others);
    let variance = joined * (1.0 - joined) * (count + others) / (count + others - 1.0);
    let best = covariance / ((1.0 + count / others) * variance);
    // Verdicts that are all the same tell nothing.
    let lambda = if variance > 0.0 { best.clamp(0.0, 1.0) } else { 0.0 };
    let share = lambda * rest + labels - lambda * verdicts;
    let of_rest = lambda * lambda * rest * (1.0 - rest) / others;
    let of_labelled =
        labels * (1.0 - labels) + lambda * lambda * verdicts * (1.0 - verdicts) - 2.0 * lambda * covariance;
    let half = Z95 * (of_rest + of_labelled.max(0.0) / count).sqrt();
    let within = |value: f64| value.clamp(0.0, 1.0);
    Some(Estimate { share: within(share), low: within(share - half), high: within(share + half), lambda: Some(lambda) })
}

/// Returns the share of true ones by Rogan and Gladen, within 0 and 1.
///
/// The interval is that of Lang and Reiczigel (2014): the delta method on counts to which one hit and one miss are
/// added, so that a judge without an error has none of no width. `None`: undefined, as the judge is no better than
/// chance (TPR + TNR - 1 is not above 0), or a class or the verdicts are missing.
pub fn rogan_gladen(labelled: Confusion, hits: u64, all: u64) -> Option<Estimate> {
    let (tpr, tnr) = (labelled.tpr(), labelled.tnr());
    let (sensitivity, specificity) = (tpr.share?, tnr.share?);
    if all == 0 || sensitivity + specificity - 1.0 <= 0.0 {
        return None;
    }
    let corrected = |q: f64, se: f64, sp: f64| (q + sp - 1.0) / (se + sp - 1.0);
    let counted = hits as f64 / all as f64;
    let share = corrected(counted, sensitivity, specificity).clamp(0.0, 1.0);
    let with_two = |hits: u64, of: u64| ((hits + 1) as f64 / (of + 2) as f64, (of + 2) as f64);
    let ((se, positives), (sp, negatives)) = (with_two(tpr.hits, tpr.of), with_two(tnr.hits, tnr.of));
    let weight = all as f64 + Z95 * Z95;
    let q = (hits as f64 + Z95 * Z95 / 2.0) / weight;
    if se + sp - 1.0 <= 0.0 {
        // So few labels allow every share.
        return Some(Estimate { share, low: 0.0, high: 1.0, lambda: None });
    }
    let p = corrected(q, se, sp);
    let (of_se, of_sp) = (se * (1.0 - se) / positives, sp * (1.0 - sp) / negatives);
    let shift = 2.0 * Z95 * Z95 * (p * of_se - (1.0 - p) * of_sp);
    let variance = q * (1.0 - q) / weight + p * p * of_se + (1.0 - p) * (1.0 - p) * of_sp;
    let half = Z95 * variance.sqrt() / (se + sp - 1.0);
    let (low, high) = ((p + shift - half).clamp(0.0, 1.0), (p + shift + half).clamp(0.0, 1.0));
    Some(Estimate { share, low: low.min(share), high: high.max(share), lambda: None })
}

#[cfg(test)]
mod tests {
    use ringer_media::seed::Seed;

    use super::*;
    use crate::agreement::tests::{counts, near};

    #[test]
    fn a_rate_is_corrected_by_the_errors_of_its_judge() {
        // (0.62 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.6
        let found = rogan_gladen(counts(90, 10, 80, 20), 62, 100).expect("the judge is better than chance");
        near(found.share, 0.6);
        assert!(found.low > 0.4 && found.low < 0.55 && found.high > 0.65 && found.high < 0.8, "{found:?}");
        let all = rogan_gladen(counts(90, 10, 80, 20), 100, 100).expect("the judge is better than chance");
        assert_eq!(all.share, 1.0, "it is no share above one");
        let sure = rogan_gladen(counts(20, 0, 20, 0), 10, 10).expect("the judge is better than chance");
        assert!(sure.share == 1.0 && sure.low < 0.8 && sure.high == 1.0, "{sure:?}");
    }

    #[test]
    fn a_judge_no_better_than_chance_corrects_nothing() {
        for labelled in [counts(5, 5, 5, 5), counts(2, 8, 2, 8), counts(9, 1, 0, 0), counts(0, 0, 9, 1)] {
            assert_eq!(rogan_gladen(labelled, 5, 10), None, "{labelled:?}");
        }
        assert_eq!(rogan_gladen(counts(9, 1, 9, 1), 0, 0), None);
        let few = rogan_gladen(counts(1, 0, 1, 1), 5, 10).expect("it is above chance");
        assert!(few.high - few.low > 0.9, "{few:?}");
    }

    #[test]
    fn a_perfect_judge_lends_its_verdicts_to_the_labels() {
        let found = ppi(counts(25, 0, 25, 0), 700, 1000).expect("there are both");
        // The weight is 1 / (1 + 50 / 1000) times the shares' variances.
        assert!(found.lambda.is_some_and(|lambda| lambda > 0.9), "{found:?}");
        assert!((found.share - 0.69).abs() < 0.02 && found.high - found.low < 0.1, "{found:?}");
        let alone = ppi(counts(15, 15, 10, 10), 700, 1000).expect("there are both");
        assert_eq!((alone.share, alone.lambda), (0.6, Some(0.0)), "verdicts by chance count nothing");
        let same = ppi(counts(6, 0, 0, 4), 10, 10).expect("there are both");
        assert_eq!((same.share, same.lambda), (0.6, Some(0.0)), "nor do verdicts that are all the same");
        assert_eq!((ppi(counts(1, 0, 0, 0), 5, 10), ppi(counts(5, 1, 1, 5), 0, 0)), (None, None));
    }

    /// Both intervals hold the true share in 95 % of drawn runs, as far as 2000 draws tell.
    #[test]
    fn intervals_hold_the_true_share() {
        for (at, (truth, se, sp, labels, calls)) in
            [(0.7, 0.9, 0.85, 100, 200), (0.5, 0.8, 0.8, 60, 300), (0.85, 0.97, 0.7, 150, 100)].into_iter().enumerate()
        {
            let mut draws = Seed(at as u64).stream("coverage");
            let mut draw = |share: f64| draws.unit() < share;
            let (mut held, mut told) = ([0u32; 2], 0u32);
            for _ in 0..2000 {
                let pairs: Vec<(bool, bool)> = (0..labels)
                    .map(|_| {
                        let label = draw(truth);
                        (label, draw(if label { se } else { 1.0 - sp }))
                    })
                    .collect();
                let labelled = Confusion::of(pairs);
                let hits = (0..calls).filter(|_| draw(truth * se + (1.0 - truth) * (1.0 - sp))).count() as u64;
                let (Some(one), Some(other)) = (ppi(labelled, hits, calls), rogan_gladen(labelled, hits, calls)) else {
                    continue;
                };
                told += 1;
                for (place, estimate) in held.iter_mut().zip([one, other]) {
                    *place += u32::from(estimate.low <= truth && truth <= estimate.high);
                }
            }
            let shares = held.map(|count| f64::from(count) / f64::from(told));
            assert!(told > 1900 && shares.iter().all(|share| *share > 0.93), "{shares:?} of {told}");
        }
    }
}
