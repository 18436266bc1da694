//! Comparison of calls with earlier ones, pair by pair: verdicts, latencies, and whether a difference can be told.

use ringer_media::seed::Seed;
use ringer_model::verdict::VerdictWord;

use crate::stats::{Interval, bootstrap, mcnemar, pairs_needed};

/// Probability below which a difference does not count as chance.
const CHANCE: f64 = 0.05;

/// One call as far as it is compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Word of its verdict.
    pub verdict: VerdictWord,
    /// Latencies of the agent in seconds, a value a turn.
    pub latencies: Vec<f64>,
}

impl Side {
    /// True if the agent was tested: it passed or failed.
    fn is_decided(&self) -> bool {
        matches!(self.verdict, VerdictWord::Passed | VerdictWord::Failed)
    }
}

/// Two calls of one caller: the earlier one, and the later one.
pub type Pair = (Side, Side);

/// Comparison of the calls of two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Number of pairs with a known verdict in both runs.
    pub pairs: u64,
    /// Number of pairs that passed before and fail now.
    pub worse: u64,
    /// Number of pairs that failed before and pass now.
    pub better: u64,
    /// Probability by McNemar's exact test.
    pub p: f64,
    /// Differences of the median and of the 95th percentile of the latency, seconds, each with its interval of 95 %.
    pub latency: [Option<Interval>; 2],
    /// Conclusion, for a person.
    pub says: String,
}

/// Compares the calls of two runs; `seed` draws the samples of the intervals.
pub fn compare(pairs: &[Pair], seed: Seed) -> Comparison {
    let decided = pairs.iter().filter(|(old, new)| old.is_decided() && new.is_decided()).count() as u64;
    let count = |wanted: (VerdictWord, VerdictWord)| {
        pairs.iter().filter(|(old, new)| (old.verdict, new.verdict) == wanted).count() as u64
    };
    let worse = count((VerdictWord::Passed, VerdictWord::Failed));
    let better = count((VerdictWord::Failed, VerdictWord::Passed));
    let p = mcnemar(worse, better);
    let latencies: Vec<(Vec<f64>, Vec<f64>)> =
        pairs.iter().map(|(old, new)| (old.latencies.clone(), new.latencies.clone())).collect();
    let latency = [50.0, 95.0].map(|percent| bootstrap(&latencies, percent, seed));
    let slower = latency.iter().flatten().any(|(_, low, _)| *low > 0.0);
    let faster = latency.iter().flatten().any(|(.., high)| *high < 0.0);
    let verdict = match (p < CHANCE, worse > better) {
        (true, true) => "worse".to_owned(),
        (true, false) => "better".to_owned(),
        (false, _) => match pairs_needed(worse, better, decided) {
            Some(needed) if needed > decided => format!("not told: {} more runs for 80 % power", needed - decided),
            _ => "no change of the pass rate".to_owned(),
        },
    };
    let says = match (slower, faster) {
        (true, false) => format!("{verdict}; slower"),
        (false, true) => format!("{verdict}; faster"),
        _ => verdict,
    };
    Comparison { pairs: decided, worse, better, p, latency, says }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_without_a_verdict_count_for_no_side() {
        use VerdictWord::{Failed, Passed, Undecided, Unreachable};
        let side = |verdict| Side { verdict, latencies: vec![1.0] };
        let pairs: Vec<Pair> = [(Passed, Failed), (Failed, Passed), (Undecided, Failed), (Passed, Unreachable)]
            .map(|(old, new)| (side(old), side(new)))
            .to_vec();
        let found = compare(&pairs, Seed(1));
        assert_eq!((found.pairs, found.worse, found.better, found.p), (2, 1, 1, 1.0));
        assert_eq!(found.latency, [Some((0.0, 0.0, 0.0)); 2]);
        assert_eq!(found.says, "no change of the pass rate");
    }
}
