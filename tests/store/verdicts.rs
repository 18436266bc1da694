//! The word of a verdict: the same in a result, the counters of its run, the list of runs, and the exports.

use ringer::model::format::{ExportFormat, ExportRows};
use ringer::model::run::{Counters, VerdictCounts};
use ringer::model::status::{ResultStatus as S, RunOutcome};
use ringer::service::RunQuery;
use serde_json::{Value, json};

use super::lifecycle::TO_EVALUATION;
use super::{Fixture, spec};

/// Words of the results of one run.
const WORDS: [&str; 8] = ["passed", "passed", "passed", "failed", "unreachable", "unknown", "unknown", "cancelled"];

/// Ends the results of a run as [`WORDS`] tells.
async fn end_all(f: &Fixture, ids: &[i64]) {
    for id in &ids[..3] {
        f.walk(*id, TO_EVALUATION).await;
        f.judge(*id, json!({"goal_success": true})).await;
    }
    f.walk(ids[3], TO_EVALUATION).await;
    f.judge(ids[3], json!({"goal_success": false})).await;
    let conversations = f.service.conversations();
    f.walk(ids[4], &[S::Queued, S::Dispatched]).await;
    let refused = conversations.advance(&f.caller.organization, ids[4], S::Dispatched, S::NoConnection, |doc| {
        doc.body.fail("SIP_DIAL_FAILED".into(), "connection refused");
    });
    refused.await.expect("it ends");
    // It broke off, and by whose fault is not known: its outcome is failed.
    f.walk(ids[5], TO_EVALUATION).await;
    let dropped = conversations.amend(&f.caller.organization, ids[5], |doc| {
        doc.body.start_time = Some(doc.body.status_history[0].at);
        doc.body.fail("MEDIA_TIMEOUT".into(), "no sound came any more");
    });
    dropped.await.expect("amended");
    f.judge(ids[5], json!({})).await;
    f.walk(ids[6], TO_EVALUATION).await;
    f.judge(ids[6], json!({})).await;
    f.walk(ids[7], &[S::Cancelled]).await;
}

/// Returns the word of each test case of an export.
fn words_of(junit: &str) -> Vec<&str> {
    let cases = junit.split("<testcase ").skip(1);
    let named = "<property name=\"verdict\" value=\"";
    let rests = cases.map(|case| case.split_once(named).map_or("", |(_, rest)| rest));
    rests.map(|rest| rest.split_once('"').map_or("", |(word, _)| word)).collect()
}

#[tokio::test]
async fn a_result_has_one_word_wherever_it_is_told() {
    let f = Fixture::new().await;
    let bounds = json!({"outcome_failing_threshold": 10, "outcome_passing_threshold": 20});
    let (_, simulation, _) = f.booth(bounds, 8).await;
    let (run, ids) = f.run(simulation, json!({})).await;
    end_all(&f, &ids).await;
    let read = f.service.runs().run_results(&f.caller, run).await.expect("the run");
    let words: Vec<Value> =
        read.simulation_results.iter().map(|result| json!(result.body.verdict)["word"].clone()).collect();
    assert_eq!(words, WORDS);
    let expect = VerdictCounts { passed: 3, failed: 1, unreachable: 1, unknown: 2, cancelled: 1 };
    let counted = |counters: &Counters| (counters.verdicts, counters.not_judged);
    assert_eq!(counted(&read.simulation_run.counters), (expect, 2));
    let item = f.item(simulation).await;
    assert_eq!(counted(&item.counters), (expect, 2));
    assert_eq!(item.outcome, Some(RunOutcome::Warning), "two results are not judged");
    let query: RunQuery = spec(json!({}));
    let listed = f.service.runs().run_page(&f.caller, query).await.expect("the list").simulation_runs.remove(0);
    assert_eq!((counted(&listed.counters), listed.outcome), ((expect, 2), Some(RunOutcome::Warning)));
    let changes = f.service.runs().run_changes(&f.caller, run, 0).await.expect("the changes").results;
    let told: Vec<&str> = changes.iter().filter_map(|one| one.verdict.map(|word| word.as_str())).collect();
    assert_eq!(told, WORDS);
    let export = async |format| {
        let rows = ExportRows::Results;
        let bytes = f.service.runs().export_run(&f.caller, run, format, rows).await.expect("an export");
        String::from_utf8(bytes).expect("text")
    };
    assert_eq!(words_of(&export(ExportFormat::Junit).await), WORDS);
    let table = export(ExportFormat::Csv).await;
    let mut lines = table.lines();
    let column = lines.next().and_then(|head| head.split(',').position(|name| name == "verdict")).expect("a column");
    let cells: Vec<&str> = lines.filter_map(|line| line.split(',').nth(column)).collect();
    assert_eq!(cells, WORDS);
}

#[tokio::test]
async fn a_run_is_passed_when_all_of_it_is_judged() {
    for (last, expect) in [(json!({"goal_success": true}), RunOutcome::Passed), (json!({}), RunOutcome::Warning)] {
        let f = Fixture::new().await;
        let (_, simulation, _) = f.booth(json!({}), 3).await;
        let (_, ids) = f.run(simulation, json!({})).await;
        for (id, judged) in ids.iter().zip([json!({"goal_success": true}), json!({"goal_success": true}), last.clone()])
        {
            f.walk(*id, TO_EVALUATION).await;
            f.judge(*id, judged).await;
        }
        assert_eq!(f.item(simulation).await.outcome, Some(expect), "{last}");
    }
}
