//! Figures of a judge's report card, and whether they prove the judge.

use std::collections::BTreeMap;

use ringer_model::judge_card::{
    AnswerCounts, CardFigures, CardGroup, CardGroups, JudgeAnswer, JudgeStatus, JudgedLabel, Rate,
};

use super::agreement::{Confusion, are_apart, self_agreement};

/// Least number of conversations of a class whose rate is enough to go by.
pub const FEW: u64 = 10;
/// Conclusion on groups whose intervals overlap.
const TOO_FEW: &str = "too few to tell";

/// Least rates of a judge that is proven.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LeastRates {
    /// Least share of those labelled true that it calls true.
    pub tpr: f64,
    /// Least share of those labelled false that it calls false.
    pub tnr: f64,
}

/// Returns the numbers of conversations by label and verdict. The verdict is the first answer, as in a run.
pub fn confusion<'a>(judged: impl IntoIterator<Item = &'a JudgedLabel>) -> Confusion {
    Confusion::of(judged.into_iter().filter_map(|one| Some((one.label, verdict(one)?))))
}

/// Returns the figures of a card.
pub fn figures(judged: &[JudgedLabel]) -> CardFigures {
    let asked: Vec<&JudgedLabel> = judged.iter().filter(|one| !one.answers.is_empty()).collect();
    let counts = confusion(asked.iter().copied());
    let count = |is: &dyn Fn(&JudgedLabel) -> bool| asked.iter().filter(|one| is(one)).count() as u64;
    let repeated: Vec<Vec<bool>> =
        asked.iter().map(|one| one.answers.iter().filter_map(|answer| answer.verdict()).collect()).collect();
    let (same_answer, same_pairs) = self_agreement(&repeated);
    let mut found = CardFigures {
        conversations: asked.len() as u64,
        labelled_true: count(&|one| one.label),
        labelled_false: count(&|one| !one.label),
        left_out: (judged.len() - asked.len()) as u64,
        without_verdict: count(&|one| verdict(one).is_none()),
        true_positives: counts.true_positives,
        false_negatives: counts.false_negatives,
        true_negatives: counts.true_negatives,
        false_positives: counts.false_positives,
        answers: count_answers(&asked),
        tpr: counts.tpr(),
        tnr: counts.tnr(),
        accuracy: counts.accuracy(),
        kappa: counts.kappa(),
        same_answer,
        same_pairs,
        groups: groups(&asked),
        says: Vec::new(),
    };
    found.says = restrictions(&found);
    found
}

/// Returns whether figures prove a judge, with the reason where they do not.
///
/// The lower end of the interval counts, not the share: of ten labels, a judge that errs every fourth time is right ten
/// times in one of 18 cards. 16 of 16 prove 0.8, and 35 of 35 prove 0.9.
pub fn trust(figures: &CardFigures, least: LeastRates) -> (JudgeStatus, Option<String>) {
    let lacks = [("TPR", "true", &figures.tpr, least.tpr), ("TNR", "false", &figures.tnr, least.tnr)];
    let why = |(name, label, rate, least): (&str, &str, &Rate, f64)| match (rate.share, rate.low) {
        (Some(share), Some(low)) if low < least => Some(format!(
            "{name} is {} % of {} labelled {label}, surely at least {} %; {} % are needed",
            percent(share),
            rate.of,
            percent(low),
            percent(least)
        )),
        (Some(_), _) => None,
        (None, _) => Some(format!("{name} is not known: no conversation labelled {label} has a verdict")),
    };
    let reasons: Vec<String> = lacks.into_iter().filter_map(why).collect();
    match reasons.is_empty() {
        true => (JudgeStatus::Proven, None),
        false => (JudgeStatus::Unproven, Some(reasons.join("; "))),
    }
}

fn verdict(one: &JudgedLabel) -> Option<bool> {
    one.answers.first().and_then(|answer| answer.verdict())
}

fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

fn count_answers(asked: &[&JudgedLabel]) -> AnswerCounts {
    let mut counts = AnswerCounts::default();
    for answer in asked.iter().flat_map(|one| &one.answers) {
        counts.asked += 1;
        let place = match answer {
            JudgeAnswer::True | JudgeAnswer::False => &mut counts.verdicts,
            JudgeAnswer::Uncertain => &mut counts.not_known,
            JudgeAnswer::Failed => &mut counts.failed,
            JudgeAnswer::Unreadable | JudgeAnswer::Unknown(_) => &mut counts.unreadable,
        };
        *place += 1;
    }
    counts
}

/// Returns what restricts figures, for a person.
fn restrictions(figures: &CardFigures) -> Vec<String> {
    let mut says = Vec::new();
    for (label, other, rate, name) in [("true", "false", &figures.tpr, "TPR"), ("false", "true", &figures.tnr, "TNR")] {
        if figures.conversations > 0 && rate.of == 0 {
            says.push(format!(
                "no conversation labelled {label} has a verdict: all are labelled {other} or unread, and {name} is not known"
            ));
        } else if rate.of > 0 && rate.of < FEW {
            says.push(format!(
                "only {} labelled {label} have a verdict, fewer than {FEW}: {name} is not enough to go by",
                rate.of
            ));
        }
    }
    let AnswerCounts { asked, verdicts, unreadable, failed, not_known } = figures.answers;
    if unreadable > 0 {
        says.push(format!("{unreadable} of {asked} answers could not be read; they count as no verdict"));
    }
    if not_known > 0 {
        says.push(format!(
            "{not_known} of {asked} answers depend on words that are not known; they count as no verdict"
        ));
    }
    if failed > 0 {
        says.push(format!("the model was not reached with {failed} of {asked} questions"));
    }
    if asked > 0 && verdicts == 0 {
        says.push("the judge gave no verdict at all".to_owned());
    }
    if figures.left_out > 0 {
        says.push(format!("{} conversations could not be judged", figures.left_out));
    }
    says
}

/// Returns the rates by length, position of the evidence, language and channel, as far as these are known.
fn groups(asked: &[&JudgedLabel]) -> Vec<CardGroups> {
    let mut lengths: Vec<u64> = asked.iter().map(|one| one.words).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    let length = |one: &JudgedLabel| {
        Some(if one.words <= median {
            format!("short (up to {median} words)")
        } else {
            format!("long (over {median} words)")
        })
    };
    let evidence = |one: &JudgedLabel| {
        one.evidence_at.map(|at| if at < 0.5 { "first half".to_owned() } else { "second half".to_owned() })
    };
    [
        group_by("length", asked, &length),
        group_by("evidence", asked, &evidence),
        group_by("language", asked, &|one| one.language.clone()),
        group_by("channel", asked, &|one| one.channel.clone()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the rates of the groups that a property makes; `None`: it makes fewer than two.
fn group_by(by: &str, asked: &[&JudgedLabel], name: &dyn Fn(&JudgedLabel) -> Option<String>) -> Option<CardGroups> {
    let mut members: BTreeMap<String, Vec<&JudgedLabel>> = BTreeMap::new();
    for one in asked.iter().filter(|one| verdict(one).is_some()) {
        if let Some(name) = name(one) {
            members.entry(name).or_default().push(one);
        }
    }
    let group = |(name, members): (String, Vec<&JudgedLabel>)| {
        let counts = confusion(members);
        let (tpr, tnr, accuracy) = (counts.tpr(), counts.tnr(), counts.accuracy());
        CardGroup { name, conversations: counts.all(), tpr, tnr, accuracy }
    };
    let groups: Vec<CardGroup> = members.into_iter().map(group).collect();
    if groups.len() < 2 {
        return None;
    }
    let mut says = Vec::new();
    for (at, one) in groups.iter().enumerate() {
        for other in &groups[at + 1..] {
            for (rate, a, b) in [
                ("TPR", &one.tpr, &other.tpr),
                ("TNR", &one.tnr, &other.tnr),
                ("accuracy", &one.accuracy, &other.accuracy),
            ] {
                if let (true, Some(a), Some(b)) = (are_apart(a, b), a.share, b.share) {
                    let (low, high) = if a < b { (one, other) } else { (other, one) };
                    let (least, most) = (percent(a.min(b)), percent(a.max(b)));
                    says.push(format!(
                        "{rate} is lower for {} ({least} %) than for {} ({most} %)",
                        low.name, high.name
                    ));
                }
            }
        }
    }
    if says.is_empty() {
        says.push(TOO_FEW.to_owned());
    }
    Some(CardGroups { by: by.to_owned(), groups, says })
}

#[cfg(test)]
mod tests {
    use super::JudgeAnswer::{Failed, False, True, Uncertain, Unreadable};
    use super::*;

    fn label(is_true: bool, answers: &[JudgeAnswer], words: u64) -> JudgedLabel {
        JudgedLabel { label: is_true, answers: answers.to_vec(), words, ..JudgedLabel::default() }
    }

    fn many(count: usize, is_true: bool, answer: JudgeAnswer, words: u64) -> Vec<JudgedLabel> {
        vec![label(is_true, &[answer], words); count]
    }

    #[test]
    fn the_first_answer_counts_and_others_tell_of_agreement() {
        let found = figures(&[
            label(true, &[True, False, True], 10),
            label(true, &[False, False, False], 10),
            label(false, &[Unreadable, False, False], 20),
            label(false, &[False, Uncertain, Failed], 20),
            label(false, &[], 20),
        ]);
        assert_eq!((found.conversations, found.left_out, found.without_verdict), (4, 1, 1));
        assert_eq!((found.true_positives, found.false_negatives, found.true_negatives), (1, 1, 1));
        assert_eq!(found.answers, AnswerCounts { asked: 12, verdicts: 9, unreadable: 1, not_known: 1, failed: 1 });
        assert_eq!((found.same_answer.hits, found.same_answer.of), (2, 3), "one has one verdict alone");
        assert!(found.says.iter().any(|says| says.contains("only 2 labelled true")), "{:?}", found.says);
        assert!(found.says.iter().any(|says| says.contains("1 of 12 answers could not be read")), "{:?}", found.says);
    }

    #[test]
    fn a_class_that_is_missing_is_told_and_proves_nothing() {
        let found = figures(&many(30, true, True, 10));
        assert_eq!((found.tnr, found.kappa), (Rate::default(), None));
        assert!(found.says[0].starts_with("no conversation labelled false has a verdict"), "{:?}", found.says);
        let (status, reason) = trust(&found, LeastRates { tpr: 0.8, tnr: 0.9 });
        assert_eq!(status, JudgeStatus::Unproven);
        assert!(reason.is_some_and(|why| why.starts_with("TNR is not known")));
        let rubbish = figures(&many(3, true, Unreadable, 10));
        assert!(rubbish.says.contains(&"the judge gave no verdict at all".to_owned()), "{:?}", rubbish.says);
    }

    #[test]
    fn the_lower_end_of_the_interval_proves() {
        let least = LeastRates { tpr: 0.8, tnr: 0.9 };
        for (trues, falses, expect) in
            [(16, 35, JudgeStatus::Proven), (15, 35, JudgeStatus::Unproven), (16, 34, JudgeStatus::Unproven)]
        {
            let all = [many(trues, true, True, 1), many(falses, false, False, 1)].concat();
            assert_eq!(trust(&figures(&all), least).0, expect, "{trues} {falses}");
        }
        let all = [many(40, true, True, 1), many(30, false, False, 1), many(10, false, True, 1)].concat();
        let reason = trust(&figures(&all), least).1.expect("it errs");
        assert_eq!(reason, "TNR is 75 % of 40 labelled false, surely at least 59.8 %; 90 % are needed");
    }

    #[test]
    fn groups_are_compared_where_their_intervals_are_apart() {
        let all = [many(20, true, True, 10), many(20, true, False, 90), many(3, false, False, 10)].concat();
        let found = figures(&all);
        let length = &found.groups[0];
        assert_eq!((found.groups.len(), length.by.as_str(), length.groups.len()), (1, "length", 2));
        let says = "TPR is lower for long (over 10 words) (0 %) than for short (up to 10 words) (100 %)";
        assert_eq!(length.says[0], says);
        let mut few = [many(3, true, True, 1), many(3, true, False, 9)].concat();
        few[0].evidence_at = Some(0.2);
        few[5].evidence_at = Some(0.9);
        let found = figures(&few);
        assert_eq!(found.groups.iter().map(|group| group.by.as_str()).collect::<Vec<_>>(), ["length", "evidence"]);
        assert!(found.groups.iter().all(|group| group.says == [TOO_FEW]), "{:?}", found.groups);
    }
}
