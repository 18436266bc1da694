//! Comparison of two runs: calls that fail now, pass now, or are in one run only, the figures with their intervals, and
//! the settings that differ.

use std::collections::{BTreeMap, BTreeSet};

use ringer_base::error::{Error, Result};
use ringer_judge::comparison::{self, Pair, Side};
use ringer_judge::stats::{Interval, bootstrap_mean, mean, percentile};
use ringer_media::seed::Seed;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::judge_card::{CardSubject, JudgeNote};
use ringer_model::result::{ResultBody, ResultDoc};
use ringer_model::run::RunDoc;
use ringer_model::verdict::VerdictWord;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::Runs;
use super::run_list::{ListedRun, list};
use crate::Caller;
use crate::conversation::snapshot::settings_of;

/// Least number of pairs of calls whose interval says anything.
const FEW_PAIRS: usize = 6;
/// Most pairs whose figures are resampled.
const MOST_RESAMPLED: usize = 500;
/// Most callers whose settings are compared.
const MOST_CALLERS: usize = 200;
/// Draws the samples of the intervals: the same runs have the same intervals.
const DRAWS: Seed = Seed(1);

/// Remark on calls that different judges judged.
const OTHER_JUDGE: &str = "judged by another model or prompt: differences may be the judge's";

/// Changes of a call, in the order in which they are told.
const CHANGES: [&str; 7] = ["regressed", "still_failing", "mended", "not_told", "new", "gone", "still_passing"];

/// Comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunComparison {
    /// Run that is compared with.
    pub a: ListedRun,
    /// Run that is compared, the later one.
    pub b: ListedRun,
    /// Conclusion on the pass rate and the latency, in words.
    pub says: String,
    /// Probability of a change of the pass rate like this one by chance alone (McNemar's exact test).
    pub p: f64,
    /// Number of calls by their change.
    pub counts: BTreeMap<&'static str, u64>,
    /// Figures of both runs.
    pub figures: Vec<FigureChange>,
    /// Settings that differ, of at most 200 callers.
    pub differs: Vec<Difference>,
    /// Judges of both runs where they differ; null: they are the same, or one run has none.
    pub judges: Option<JudgeChange>,
    /// Calls of both runs, those that regressed first.
    pub calls: Vec<CallChange>,
}

/// Judges of two runs that are not the same.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JudgeChange {
    /// Judges of the earlier run.
    pub a: BTreeSet<JudgeOf>,
    /// Judges of the later run.
    pub b: BTreeSet<JudgeOf>,
    /// Conclusion on the difference, in words.
    pub says: &'static str,
}

/// A judge of some verdicts of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct JudgeOf {
    /// Verdict: goal_success, the name of a custom metric, or the meaning of an expectation.
    pub of: String,
    /// Name of the model.
    pub model: String,
    /// Version of the prompt.
    pub prompt_version: String,
}

/// A figure of both runs with its difference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FigureChange {
    /// Name of the figure. Interruptions and silence are means of the calls.
    pub name: &'static str,
    /// Unit of the figure.
    pub unit: &'static str,
    /// Value of the earlier run, over the calls that are in both.
    pub a: Option<f64>,
    /// Value of the later run.
    pub b: Option<f64>,
    /// Difference, later minus earlier.
    pub difference: Option<f64>,
    /// Lower end of its interval of 95 %.
    pub low: Option<f64>,
    /// Upper end of its interval of 95 %.
    pub high: Option<f64>,
    /// Conclusion: better, worse, no difference seen, too few calls to tell, or not measured.
    pub says: &'static str,
}

/// A setting that differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Resource of the setting: run, agent, simulation or digital_human.
    pub of: &'static str,
    /// Name of the field.
    pub field: String,
    /// Value in the earlier run.
    pub a: Value,
    /// Value in the later run.
    pub b: Value,
    /// Names of the callers that it differs for; empty: all.
    pub callers: Vec<String>,
}

/// A caller's call in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallChange {
    /// Name of the Digital Human.
    pub digital_human_name: Option<String>,
    /// Repetition of the Digital Human in its run, from 1.
    pub repetition: i64,
    /// Change: regressed, mended, still_failing, still_passing, not_told, new or gone.
    pub change: &'static str,
    /// True: another model or another prompt judged the later call.
    pub other_judge: bool,
    /// Call of the earlier run; null when it has none.
    pub a: Option<ComparedCall>,
    /// Call of the later run; null when it has none.
    pub b: Option<ComparedCall>,
}

/// A call as far as it is compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedCall {
    /// Id of the result.
    pub id: i64,
    /// Word of its verdict; null until its state is terminal.
    pub verdict: Option<VerdictWord>,
    /// Reason of the verdict.
    pub reason: Option<String>,
    /// Median of the agent's latencies, seconds.
    pub p50_agent_latency: Option<f64>,
    /// Length of the conversation in milliseconds.
    pub duration_ms: Option<i64>,
    /// Seed of the call.
    pub seed: i64,
}

/// One call of one of the runs.
struct Call {
    row: Row<ResultDoc>,
    name: Option<String>,
}

/// Key by which calls of both runs are one pair: Digital Human or its name, repetition, journey step.
type Key = (String, i64, Option<i64>);

/// Values of a figure in the earlier call and in the later one.
type Values = (Vec<f64>, Vec<f64>);

impl Runs {
    /// Compares two runs: `b` is the later one.
    ///
    /// # Errors
    /// There is no such run in the organization, or a fault of the store.
    pub async fn compare_runs(&self, caller: &Caller, a: i64, b: i64) -> Result<RunComparison> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let (first, second) = (db.get::<RunDoc>(a).await?, db.get::<RunDoc>(b).await?);
        let is_one_simulation = first.doc.simulation_id == second.doc.simulation_id;
        let mut differs = run_differences(&first.doc, &second.doc);
        let runs = list(&mut db, vec![first, second]).await?;
        let mut names = BTreeMap::new();
        let mut old = calls_of(&mut db, a, is_one_simulation, &mut names).await?;
        let mut new = calls_of(&mut db, b, is_one_simulation, &mut names).await?;
        let keys: BTreeSet<Key> = old.keys().chain(new.keys()).cloned().collect();
        let pairs: Vec<(Key, Option<Call>, Option<Call>)> =
            keys.into_iter().map(|key| (key.clone(), old.remove(&key), new.remove(&key))).collect();
        differs.extend(settings_differences(&mut db, &pairs).await?);
        drop(db);
        let [a, b] = <[ListedRun; 2]>::try_from(runs).map_err(|_| Error::internal("two runs were asked for"))?;
        // Intervals are computed for up to a second.
        let computed = tokio::task::spawn_blocking(move || assemble(a, b, differs, &pairs)).await;
        computed.map_err(Error::internal)
    }
}

/// Returns the calls of a run by their keys.
async fn calls_of(
    db: &mut Session,
    run_id: i64,
    by_id: bool,
    names: &mut BTreeMap<i64, Option<String>>,
) -> Result<BTreeMap<Key, Call>> {
    let mut calls = BTreeMap::new();
    for row in db.results_of_run(run_id).await? {
        let (body, repetition) = (&row.doc.body, row.doc.repetition);
        let name = match body.digital_human_id {
            None => None,
            Some(id) => match names.get(&id) {
                Some(name) => name.clone(),
                None => {
                    let name = db.find::<DigitalHumanSpec>(id).await?.and_then(|human| human.doc.name);
                    names.entry(id).or_insert(name).clone()
                }
            },
        };
        let by_name = name.clone().filter(|_| !by_id);
        let who = by_name.or(body.digital_human_id.map(|id| format!("#{id}"))).unwrap_or_default();
        // Several callers of one name are told apart by their order.
        let mut key = (who, repetition, body.journey_step);
        while calls.contains_key(&key) {
            key.0.push('\'');
        }
        calls.insert(key, Call { row, name });
    }
    Ok(calls)
}

/// Returns the members of the queue body, and the seed, that differ.
fn run_differences(a: &RunDoc, b: &RunDoc) -> Vec<Difference> {
    let whole = |run: &RunDoc| {
        let mut overrides = serde_json::to_value(&run.overrides).unwrap_or_default();
        overrides["simulation_id"] = json!(run.simulation_id);
        overrides["agent_id"] = json!(run.agent_id);
        overrides["seed"] = json!(run.seed);
        overrides
    };
    differences("run", &whole(a), &whole(b))
}

/// Returns the settings of agent, simulation and callers that differ, each once.
async fn settings_differences(
    db: &mut Session,
    pairs: &[(Key, Option<Call>, Option<Call>)],
) -> Result<Vec<Difference>> {
    let both = pairs.iter().filter_map(|(_, old, new)| Some((old.as_ref()?, new.as_ref()?)));
    let once = both.filter(|(old, _)| old.row.doc.repetition == 0).take(MOST_CALLERS);
    let mut found: Vec<Difference> = Vec::new();
    let mut count = 0;
    for (old, new) in once {
        count += 1;
        let name = new.name.clone().unwrap_or_else(|| format!("result {}", new.row.id));
        let (a, b) = (settings_of(db, &old.row).await?, settings_of(db, &new.row).await?);
        let mut differ: Vec<Difference> = ["agent", "simulation", "digital_human"]
            .into_iter()
            .flat_map(|part| differences(part, &a[part], &b[part]))
            .collect();
        let version = |call: &Call| json!(call.row.doc.body.agent_version_id);
        differ.extend(differences("agent", &json!({ "version": version(old) }), &json!({ "version": version(new) })));
        for one in differ {
            let is_same = |known: &&mut Difference| {
                (known.of, &known.field, &known.a, &known.b) == (one.of, &one.field, &one.a, &one.b)
            };
            match found.iter_mut().find(is_same) {
                Some(known) => known.callers.push(name.clone()),
                None => found.push(Difference { callers: vec![name.clone()], ..one }),
            }
        }
    }
    for one in &mut found {
        if one.callers.len() == count || one.of != "digital_human" {
            one.callers.clear();
        }
    }
    Ok(found)
}

/// Returns the members of two objects that differ, without times and ids of the rows.
fn differences(of: &'static str, a: &Value, b: &Value) -> Vec<Difference> {
    const OWN: [&str; 7] =
        ["id", "created_at", "updated_at", "created_by", "updated_by", "svc_as_code_id", "baseline_run_id"];
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (a, b) = (members(a), members(b));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &serde_json::Map<String, Value>, name: &String| of.get(name).cloned().unwrap_or_default();
    names
        .into_iter()
        .filter(|name| !OWN.contains(&name.as_str()) && value(&a, name) != value(&b, name))
        .map(|name| Difference { of, field: name.clone(), a: value(&a, name), b: value(&b, name), callers: vec![] })
        .collect()
}

fn assemble(
    a: ListedRun,
    b: ListedRun,
    differs: Vec<Difference>,
    pairs: &[(Key, Option<Call>, Option<Call>)],
) -> RunComparison {
    let both: Vec<(&ResultBody, &ResultBody)> = pairs
        .iter()
        .filter_map(|(_, old, new)| Some((&old.as_ref()?.row.doc.body, &new.as_ref()?.row.doc.body)))
        .collect();
    let is_sampled = |at: usize| at < MOST_RESAMPLED;
    let pair =
        |(at, (old, new)): (usize, &(&ResultBody, &ResultBody))| (side(old, is_sampled(at)), side(new, is_sampled(at)));
    let compared: Vec<Pair> = both.iter().enumerate().map(pair).collect();
    let comparison = comparison::compare(&compared, DRAWS);
    let mut calls: Vec<CallChange> = pairs.iter().map(call_change).collect();
    let rank = |call: &CallChange| CHANGES.iter().position(|change| *change == call.change);
    calls.sort_by_key(rank);
    let mut counts: BTreeMap<&'static str, u64> = CHANGES.iter().map(|change| (*change, 0)).collect();
    for call in &calls {
        *counts.entry(call.change).or_default() += 1;
    }
    let figures = figures(&both[..both.len().min(MOST_RESAMPLED)], comparison.latency);
    let judges = judge_change(&both);
    RunComparison { a, b, says: comparison.says, p: comparison.p, counts, figures, differs, judges, calls }
}

/// Returns the judges of a result by what they judged.
fn judges_of(body: &ResultBody) -> BTreeSet<JudgeOf> {
    let judge = |of: &str, note: &JudgeNote| JudgeOf {
        of: of.to_owned(),
        model: note.model.clone(),
        prompt_version: note.prompt_version.clone(),
    };
    let mut judges = BTreeSet::new();
    for evaluation in &body.evaluations {
        judges.extend(evaluation.judge.as_ref().map(|note| judge(CardSubject::Goal.as_str(), note)));
        let metrics = evaluation.custom_metrics.iter();
        judges.extend(metrics.filter_map(|metric| Some(judge(&metric.name, metric.judge.as_ref()?))));
    }
    let meanings = body.expectations.iter();
    judges.extend(meanings.filter_map(|kept| Some(judge(kept.expected.meaning.as_deref()?, kept.judge.as_ref()?))));
    judges
}

/// True where something was judged in both calls, and by different models or prompts.
fn is_judged_otherwise(old: &ResultBody, new: &ResultBody) -> bool {
    let (old, new) = (judges_of(old), judges_of(new));
    let is_other = |one: &JudgeOf, other: &JudgeOf| {
        one.of == other.of && (&one.model, &one.prompt_version) != (&other.model, &other.prompt_version)
    };
    old.iter().any(|one| new.iter().any(|other| is_other(one, other)))
}

/// Returns the judges of the pairs of calls where they differ.
fn judge_change(both: &[(&ResultBody, &ResultBody)]) -> Option<JudgeChange> {
    let mut change = JudgeChange { a: BTreeSet::new(), b: BTreeSet::new(), says: OTHER_JUDGE };
    for (old, new) in both.iter().filter(|(old, new)| is_judged_otherwise(old, new)) {
        change.a.extend(judges_of(old));
        change.b.extend(judges_of(new));
    }
    let same: BTreeSet<JudgeOf> = change.a.intersection(&change.b).cloned().collect();
    change.a.retain(|judge| !same.contains(judge));
    change.b.retain(|judge| !same.contains(judge));
    (!change.a.is_empty() || !change.b.is_empty()).then_some(change)
}

fn side(body: &ResultBody, is_sampled: bool) -> Side {
    let latencies = body.latency.clone().filter(|_| is_sampled);
    Side { verdict: body.word().unwrap_or_default(), latencies: latencies.unwrap_or_default() }
}

/// Returns the figures of both runs. Of all of them less is better.
fn figures(both: &[(&ResultBody, &ResultBody)], latency: [Option<Interval>; 2]) -> Vec<FigureChange> {
    let values = |of: &dyn Fn(&ResultBody) -> Vec<f64>| -> Vec<Values> {
        both.iter().map(|(old, new)| (of(old), of(new))).collect()
    };
    let latencies = values(&|body| body.latency.clone().unwrap_or_default());
    let mut figures: Vec<FigureChange> = [("p50_agent_latency", 50.0), ("p95_agent_latency", 95.0)]
        .into_iter()
        .zip(latency)
        .map(|((name, percent), interval)| {
            figure((name, "s"), &latencies, &|values| percentile(values, percent), interval)
        })
        .collect();
    for (name, unit) in [("agent_interruption_count", "count"), ("silence_percentage", "%")] {
        let measured = values(&|body| body.metric(name).and_then(Value::as_f64).into_iter().collect());
        let interval = bootstrap_mean(&measured, DRAWS);
        figures.push(figure((name, unit), &measured, &mean, interval));
    }
    figures
}

fn figure(
    (name, unit): (&'static str, &'static str),
    pairs: &[Values],
    statistic: &dyn Fn(&[f64]) -> Option<f64>,
    interval: Option<Interval>,
) -> FigureChange {
    let all = |pick: &dyn Fn(&Values) -> Vec<f64>| pairs.iter().flat_map(pick).collect::<Vec<f64>>();
    let measured = pairs.iter().filter(|(old, new)| !old.is_empty() && !new.is_empty()).count();
    let says = match interval {
        None => "not measured",
        Some(_) if measured < FEW_PAIRS => "too few calls to tell",
        Some((_, low, _)) if low > 0.0 => "worse",
        Some((.., high)) if high < 0.0 => "better",
        Some(_) => "no difference seen",
    };
    FigureChange {
        name,
        unit,
        a: statistic(&all(&|pair| pair.0.clone())),
        b: statistic(&all(&|pair| pair.1.clone())),
        difference: interval.map(|(difference, ..)| difference),
        low: interval.map(|(_, low, _)| low),
        high: interval.map(|(.., high)| high),
        says,
    }
}

fn call_change((key, old, new): &(Key, Option<Call>, Option<Call>)) -> CallChange {
    let name = new.as_ref().or(old.as_ref()).and_then(|call| call.name.clone());
    let is = |call: &Option<Call>, wanted: &[VerdictWord]| {
        call.as_ref().and_then(|call| call.row.doc.body.word()).is_some_and(|word| wanted.contains(&word))
    };
    let (good, bad) = ([VerdictWord::Passed], [VerdictWord::Failed, VerdictWord::Unreachable]);
    let change = match () {
        () if old.is_none() => "new",
        () if new.is_none() => "gone",
        () if is(old, &good) && is(new, &bad) => "regressed",
        () if is(old, &bad) && is(new, &good) => "mended",
        () if is(old, &bad) && is(new, &bad) => "still_failing",
        () if is(old, &good) && is(new, &good) => "still_passing",
        () => "not_told",
    };
    let compared = |call: &Call| {
        let body = &call.row.doc.body;
        ComparedCall {
            id: call.row.id,
            verdict: body.word(),
            reason: body.verdict.as_ref().and_then(|verdict| verdict.reason.clone()),
            p50_agent_latency: body.latency.as_deref().and_then(|all| percentile(all, 50.0)),
            duration_ms: body.duration_ms,
            seed: body.seed,
        }
    };
    let bodies = old.as_ref().zip(new.as_ref()).map(|(old, new)| (&old.row.doc.body, &new.row.doc.body));
    CallChange {
        digital_human_name: name,
        other_judge: bodies.is_some_and(|(old, new)| is_judged_otherwise(old, new)),
        repetition: key.1 + 1,
        change,
        a: old.as_ref().map(compared),
        b: new.as_ref().map(compared),
    }
}

#[cfg(test)]
mod tests {
    use ringer_model::evaluation::{CustomResult, Evaluation};

    use super::*;

    fn result_of(model: &str, prompt_version: &str) -> ResultBody {
        let note = |prompt_version: &str| {
            let (model, prompt_version) = (model.to_owned(), prompt_version.to_owned());
            Some(JudgeNote { model, prompt_version, ..JudgeNote::default() })
        };
        let metric = CustomResult { name: "Polite".into(), judge: note("p"), ..CustomResult::default() };
        let evaluation =
            Evaluation { judge: note(prompt_version), custom_metrics: vec![metric], ..Evaluation::default() };
        ResultBody { evaluations: vec![evaluation], ..ResultBody::default() }
    }

    #[test]
    fn calls_that_another_model_or_prompt_judged_are_marked() {
        let (old, same, prompt, model) =
            (result_of("m", "1"), result_of("m", "1"), result_of("m", "2"), result_of("n", "1"));
        let without = ResultBody::default();
        for (other, expect) in [(&same, false), (&prompt, true), (&model, true), (&without, false)] {
            assert_eq!(is_judged_otherwise(&old, other), expect);
        }
        assert_eq!(judge_change(&[(&old, &same), (&old, &without)]), None);
        let change = judge_change(&[(&old, &same), (&old, &prompt)]).expect("the prompt is another one");
        let told = |judges: &BTreeSet<JudgeOf>| {
            judges.iter().map(|one| format!("{} {} {}", one.of, one.model, one.prompt_version)).collect::<Vec<_>>()
        };
        assert_eq!(
            (told(&change.a), told(&change.b)),
            (vec!["goal_success m 1".into()], vec!["goal_success m 2".into()])
        );
        assert!(change.says.starts_with("judged by another model or prompt"));
    }
}
