//! Agreement of a judge with people, and with itself.

use ringer_model::judge_card::{Kappa, Rate};

use crate::stats::{Z95, wilson, wilson_of};

/// Numbers of conversations by label and verdict.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// Number labelled true and called true.
    pub true_positives: u64,
    /// Number labelled true and called false.
    pub false_negatives: u64,
    /// Number labelled false and called false.
    pub true_negatives: u64,
    /// Number labelled false and called true.
    pub false_positives: u64,
}

impl Confusion {
    /// Returns the counts of pairs of a label and a verdict.
    pub fn of(pairs: impl IntoIterator<Item = (bool, bool)>) -> Confusion {
        let mut counts = Confusion::default();
        for (label, verdict) in pairs {
            let place = match (label, verdict) {
                (true, true) => &mut counts.true_positives,
                (true, false) => &mut counts.false_negatives,
                (false, false) => &mut counts.true_negatives,
                (false, true) => &mut counts.false_positives,
            };
            *place += 1;
        }
        counts
    }

    /// Returns the number of all pairs.
    pub fn all(&self) -> u64 {
        self.true_positives + self.false_negatives + self.true_negatives + self.false_positives
    }

    /// Returns the share of those labelled true that are called true.
    pub fn tpr(&self) -> Rate {
        rate(self.true_positives, self.true_positives + self.false_negatives)
    }

    /// Returns the share of those labelled false that are called false.
    pub fn tnr(&self) -> Rate {
        rate(self.true_negatives, self.true_negatives + self.false_positives)
    }

    /// Returns the share of all that are called as they are labelled.
    pub fn accuracy(&self) -> Rate {
        rate(self.true_positives + self.true_negatives, self.all())
    }

    /// Returns Cohen's kappa; `None` where chance alone explains all agreement: labels and verdicts know one value.
    ///
    /// Its interval is the asymptotic one of Fleiss, Cohen and Everitt (1969), within -1 to 1.
    pub fn kappa(&self) -> Option<Kappa> {
        let n = self.all() as f64;
        let cells = [
            [self.true_positives as f64 / n, self.false_negatives as f64 / n],
            [self.false_positives as f64 / n, self.true_negatives as f64 / n],
        ];
        let labels = [cells[0][0] + cells[0][1], cells[1][0] + cells[1][1]];
        let verdicts = [cells[0][0] + cells[1][0], cells[0][1] + cells[1][1]];
        let seen = cells[0][0] + cells[1][1];
        let chance = labels[0] * verdicts[0] + labels[1] * verdicts[1];
        // NaN without pairs.
        if chance.is_nan() || chance >= 1.0 {
            return None;
        }
        let value = (seen - chance) / (1.0 - chance);
        let lack = 1.0 - value;
        let same: f64 = (0..2).map(|at| cells[at][at] * (1.0 - (labels[at] + verdicts[at]) * lack).powi(2)).sum();
        let other: f64 = [(0, 1), (1, 0)]
            .into_iter()
            .map(|(label, verdict)| cells[label][verdict] * (verdicts[label] + labels[verdict]).powi(2))
            .sum();
        let rest = (value - chance * lack).powi(2);
        let variance = (same + lack * lack * other - rest) / (1.0 - chance).powi(2) / n;
        let half = Z95 * variance.max(0.0).sqrt();
        let is_told = half > 1e-9;
        Some(Kappa {
            value,
            low: is_told.then(|| (value - half).max(-1.0)),
            high: is_told.then(|| (value + half).min(1.0)),
        })
    }
}

/// Returns a share with its interval.
pub fn rate(hits: u64, of: u64) -> Rate {
    if of == 0 {
        return Rate::default();
    }
    let (low, high) = wilson(hits, of);
    Rate { hits, of, share: Some(hits as f64 / of as f64), low: Some(low), high: Some(high) }
}

/// Returns the share of repeated verdicts that are the same: by conversation, and by pair of repetitions.
///
/// Pairs of one conversation depend on each other. The interval of their share is that of so many conversations.
pub fn self_agreement(repeated: &[Vec<bool>]) -> (Rate, Rate) {
    let compared: Vec<&Vec<bool>> = repeated.iter().filter(|verdicts| verdicts.len() > 1).collect();
    let is_same = |verdicts: &&&Vec<bool>| verdicts.windows(2).all(|pair| pair[0] == pair[1]);
    let count = compared.len() as u64;
    let whole = rate(compared.iter().filter(is_same).count() as u64, count);
    let pairs_of = |many: u64| many * many.saturating_sub(1) / 2;
    let (mut hits, mut of) = (0, 0);
    for verdicts in compared {
        let yes = verdicts.iter().filter(|verdict| **verdict).count() as u64;
        let all = verdicts.len() as u64;
        hits += pairs_of(yes) + pairs_of(all - yes);
        of += pairs_of(all);
    }
    let mut pairs = rate(hits, of);
    if let Some(share) = pairs.share {
        let (low, high) = wilson_of(share, count);
        (pairs.low, pairs.high) = (Some(low), Some(high));
    }
    (whole, pairs)
}

/// True where one interval lies wholly below the other; false where one of both is not known.
pub fn are_apart(one: &Rate, other: &Rate) -> bool {
    let below = |low: &Rate, high: &Rate| low.high.zip(high.low).is_some_and(|(end, begin)| end < begin);
    below(one, other) || below(other, one)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn counts(
        true_positives: u64,
        false_negatives: u64,
        true_negatives: u64,
        false_positives: u64,
    ) -> Confusion {
        Confusion { true_positives, false_negatives, true_negatives, false_positives }
    }

    pub(crate) fn near(found: f64, expect: f64) {
        assert!((found - expect).abs() < 5e-4, "{found} {expect}");
    }

    #[test]
    fn kappa_is_that_of_the_textbook() {
        // 20 and 15 of 50 agree: 0.7 seen, 0.5 by chance.
        let kappa = counts(20, 5, 15, 10).kappa().expect("there are both classes");
        near(kappa.value, 0.4);
        near(kappa.low.expect("it varies"), 0.1511);
        near(kappa.high.expect("it varies"), 0.6489);
        let perfect = counts(7, 0, 9, 0).kappa().expect("there are both classes");
        assert_eq!((perfect.value, perfect.low, perfect.high), (1.0, None, None), "no variance is seen");
        assert_eq!(counts(0, 0, 0, 0).kappa(), None);
        assert_eq!(counts(5, 0, 0, 0).kappa(), None, "chance explains it all");
        near(counts(5, 0, 0, 5).kappa().expect("chance explains half").value, 0.0);
        near(counts(0, 5, 0, 5).kappa().expect("they never agree").value, -1.0);
    }

    #[test]
    fn rates_have_intervals_and_none_is_made_up() {
        let found = Confusion::of([(true, true), (true, true), (true, false), (false, true)]);
        assert_eq!(found, counts(2, 1, 0, 1));
        assert_eq!((found.tpr().hits, found.tpr().of, found.accuracy().of), (2, 3, 4));
        near(found.tpr().low.expect("an interval"), 0.2077);
        assert_eq!(found.tnr().share, Some(0.0));
        assert_eq!(Confusion::default().tnr(), Rate::default(), "nothing was counted");
    }

    #[test]
    fn a_judge_agrees_with_itself_by_conversation_and_by_pair() {
        let repeated = [vec![true, true, true], vec![false, false, true], vec![false, false, false], vec![true]];
        let (whole, pairs) = self_agreement(&repeated);
        assert_eq!((whole.hits, whole.of), (2, 3), "one was answered once");
        assert_eq!((pairs.hits, pairs.of), (7, 9));
        let (low, _) = wilson_of(7.0 / 9.0, 3);
        assert_eq!(pairs.low, Some(low), "as wide as three conversations make it");
        assert_eq!(self_agreement(&[]), (Rate::default(), Rate::default()));
    }

    #[test]
    fn rates_are_apart_where_their_intervals_do_not_overlap() {
        assert!(are_apart(&rate(5, 50), &rate(45, 50)) && are_apart(&rate(45, 50), &rate(5, 50)));
        assert!(!are_apart(&rate(3, 5), &rate(5, 5)) && !are_apart(&rate(0, 0), &rate(45, 50)));
    }
}
