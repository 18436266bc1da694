//! Reviews: a person's values beside the judged ones. They win in outcomes; each change is kept with its author and
//! time.

use ringer_base::error::{Error, Result};
use ringer_model::evaluation::{CustomResult, Evaluation};
use ringer_model::result::{ResultBody, ResultDoc};
use ringer_model::review::{MetricReview, ReviewChange, ReviewDoc, ReviewRecord, ReviewRequest};
use ringer_model::status::Outcome;
use ringer_model::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Evaluations;
use crate::Caller;
use crate::conversation::privacy::{redact_doc, redactor_of, through};

/// Members of an evaluation that only a person sets, beside those in [`NOTES`].
const VALUES: [&str; 8] = [
    "human_goal_success",
    "human_goal_reasoning",
    "human_hallucination",
    "human_hallucination_reasoning",
    "human_redundancy",
    "human_redundancy_reasoning",
    "human_pronunciation_score",
    "human_pronunciation_reasoning",
];

/// Members of an evaluation that tell why a person changed it.
const NOTES: [&str; 8] = [
    "override_goal_reason_code",
    "override_goal_notes",
    "override_hallucination_reason_code",
    "override_hallucination_notes",
    "override_redundancy_reason_code",
    "override_redundancy_notes",
    "override_pronunciation_reason_code",
    "override_pronunciation_notes",
];

/// The answer to a review: the evaluation with it, and the verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reviewed {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Verdict with the review.
    pub outcome: Option<Outcome>,
    /// Time of this change: the If-Match of the next one.
    pub last_edited_at: Option<Timestamp>,
    /// The evaluation, judged values and human ones.
    pub evaluation: Evaluation,
}

/// Every change that people made to an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reviews {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Changes, the newest one first.
    pub reviews: Vec<ReviewRecord>,
}

impl Evaluations {
    /// Changes the review of a result. `seen` is the last_edited_at that the reviewer has read; it must be the present
    /// one.
    ///
    /// # Errors
    /// [`Error::Conflict`] before the evaluation has ended, [`Error::Outdated`] when somebody else has changed the
    /// review since.
    pub async fn review(
        &self,
        caller: &Caller,
        result_id: i64,
        seen: Option<&str>,
        request: ReviewRequest,
    ) -> Result<Reviewed> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let is_over = row.doc.body.status.is_terminal();
        let Some(evaluation) = row.doc.body.evaluations.first_mut().filter(|_| is_over) else {
            return Err(Error::Conflict("Evaluation has not ended".into()));
        };
        if !is_present(seen, evaluation.last_edited_at) {
            return Err(Error::Outdated("The review was changed since it was read".into()));
        }
        let before = evaluation.last_edited_at.map_or(0, |at| at.0);
        let at = Timestamp(self.clock.now_ms().max(before + 1));
        let changes = apply(evaluation, request.changes.into_given(), |metric| {
            (metric.last_edited_by, metric.last_edited_at) = (Some(caller.author()), Some(at));
        })?;
        // Who agrees with the judge has reviewed the call too.
        if changes.is_empty() && evaluation.reviewer.is_some() {
            return Ok(answer_of(result_id, &row.doc.body));
        }
        (evaluation.last_edited_by, evaluation.last_edited_at) = (Some(caller.author()), Some(at));
        evaluation.reviewer = Some(request.reviewer.clone());
        row.doc.body.custom_metrics = row.doc.body.custom_metrics.take().map(|_| evaluation.custom_metrics.clone());
        let mut kept = ReviewDoc { result_id, reviewer: request.reviewer, changes };
        if let Some(redactor) = redactor_of(&mut db, &row.doc).await? {
            redact_doc(&mut row.doc, &redactor)?;
            through(&mut kept, &redactor, &["from", "to"])?;
        }
        self.regroup_calls(&mut db, &mut row).await?;
        db.update(result_id, &row.doc, at.0, Some(caller.author())).await?;
        db.insert(&kept, at.0, Some(caller.author())).await?;
        self.conversations.complete_run(&mut db, row.doc.body.simulation_run_id).await?;
        db.commit().await?;
        self.live.note_change(result_id);
        Ok(answer_of(result_id, &row.doc.body))
    }

    /// Returns who changed the evaluation of a result, when, and which values.
    pub async fn reviews(&self, caller: &Caller, result_id: i64) -> Result<Reviews> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<ResultDoc>(result_id).await?;
        let rows = db.by::<ReviewDoc>("result_id", result_id).await?;
        let reviews = rows.into_iter().map(|row| ReviewRecord {
            reviewer: row.doc.reviewer,
            key_id: row.updated_by,
            at: Timestamp(row.created_ms),
            changes: row.doc.changes,
        });
        Ok(Reviews { simulation_result_id: result_id, reviews: reviews.collect() })
    }
}

fn answer_of(simulation_result_id: i64, body: &ResultBody) -> Reviewed {
    let evaluation = body.evaluations.first().cloned().unwrap_or_default();
    Reviewed { simulation_result_id, outcome: body.outcome, last_edited_at: evaluation.last_edited_at, evaluation }
}

/// True when `seen`, which may stand in quotes (RFC 9110 8.8.3), is the time of the last change.
fn is_present(seen: Option<&str>, last: Option<Timestamp>) -> bool {
    let seen = seen.map(|seen| seen.trim().trim_matches('"')).filter(|seen| !seen.is_empty() && *seen != "null");
    match (seen, last) {
        (None, None) => true,
        (Some(seen), Some(last)) => Timestamp::parse(seen) == Some(last),
        _ => false,
    }
}

/// Lays values over an evaluation and returns those that changed. `mark` is told each custom metric that changed.
fn apply(
    evaluation: &mut Evaluation,
    mut given: Map<String, Value>,
    mark: impl Fn(&mut CustomResult),
) -> Result<Vec<ReviewChange>> {
    let metrics = given.remove("metrics").filter(|metrics| !metrics.is_null());
    let metrics: Vec<MetricReview> =
        metrics.map(serde_json::from_value).transpose().map_err(Error::internal)?.unwrap_or_default();
    let mut changes = Vec::new();
    let mut whole = serde_json::to_value(&*evaluation).map_err(Error::internal)?;
    for (field, to) in given.into_iter().filter(|(field, _)| VALUES.contains(&&**field) || NOTES.contains(&&**field)) {
        let from = std::mem::replace(&mut whole[&field], to.clone());
        if from != to {
            changes.push(ReviewChange { field, metric_id: None, from, to });
        }
    }
    let is_set = |field: &&str| !whole[*field].is_null();
    let has_values = VALUES.iter().chain(&NOTES).any(is_set);
    *evaluation = serde_json::from_value(whole).map_err(Error::internal)?;
    for review in metrics {
        let id = review.metric_id;
        let metric = evaluation.custom_metrics.iter_mut().find(|metric| metric.metric_id == id);
        let metric = metric.ok_or_else(|| Error::Refused(format!("metrics: {id} is no metric of this result")))?;
        if let Some(value) = &review.human_response_value {
            check_value(metric, value)?;
        }
        let before = changes.len();
        changes.extend(apply_metric(metric, review));
        if changes.len() > before {
            mark(metric);
        }
    }
    evaluation.human_edited = has_values || evaluation.custom_metrics.iter().any(|metric| metric.human_edited);
    Ok(changes)
}

/// Puts the review of one custom metric into its place, and returns the values that changed.
fn apply_metric(metric: &mut CustomResult, review: MetricReview) -> Vec<ReviewChange> {
    let MetricReview { metric_id, human_response_value, human_reasoning, override_reason_code, override_notes } =
        review;
    let places = [
        ("human_response_value", &mut metric.human_response_value, human_response_value),
        ("human_reasoning", &mut metric.human_reasoning, human_reasoning),
        ("override_reason_code", &mut metric.override_reason_code, override_reason_code),
        ("override_notes", &mut metric.override_notes, override_notes),
    ];
    let mut changes = Vec::new();
    let mut is_edited = false;
    for (field, place, to) in places {
        is_edited |= to.is_some();
        if *place != to {
            let (from, to) = (std::mem::replace(place, to.clone()).into(), to.into());
            changes.push(ReviewChange { field: field.to_owned(), metric_id: Some(metric_id), from, to });
        }
    }
    metric.human_edited = is_edited;
    changes
}

/// Checks a person's value against the type of the metric.
fn check_value(metric: &CustomResult, value: &str) -> Result<()> {
    let number = || value.parse::<f64>().ok().filter(|number| number.is_finite());
    let in_range = |number: f64| {
        metric.min_value.is_none_or(|least| number >= least) && metric.max_value.is_none_or(|most| number <= most)
    };
    let expect = match metric.response_type.as_str() {
        "pass_fail" | "tool_call" if !["pass", "fail"].contains(&value) => "pass or fail".to_owned(),
        "yes_no" if !["yes", "no"].contains(&value) => "yes or no".to_owned(),
        "boolean" if !["true", "false"].contains(&value) => "true or false".to_owned(),
        "int" if value.parse::<i64>().is_err() => "an integer".to_owned(),
        "float" if number().is_none() => "a number".to_owned(),
        "quantitative" if !number().is_some_and(in_range) => "a number in the range of the metric".to_owned(),
        "enum" if !metric.enum_options.iter().any(|option| option == value) => {
            format!("one of {}", metric.enum_options.join(", "))
        }
        "json" if !serde_json::from_str::<Value>(value).is_ok_and(|json| json.is_object()) => {
            "a JSON object".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::Refused(format!("human_response_value of {} must be {expect}", metric.name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_review_is_made_on_what_was_read() {
        let last = Timestamp(1_767_603_600_123);
        let text = last.to_string();
        for (seen, at, expect) in [
            (None, None, true),
            (Some("null"), None, true),
            (Some("\"\""), None, true),
            (Some(&*text), Some(last), true),
            (Some(&*format!("\"{text}\"")), Some(last), true),
            (None, Some(last), false),
            (Some("*"), Some(last), false),
            (Some("2026-01-05T09:00:00Z"), Some(last), false),
            (Some(&*text), None, false),
        ] {
            assert_eq!(is_present(seen, at), expect, "{seen:?} {at:?}");
        }
    }

    #[test]
    fn values_change_are_told_and_taken_back() {
        let metric = CustomResult { response_type: "yes_no".into(), response_value: "no".into(), ..Default::default() };
        let judged = Evaluation { goal_success: Some(true), custom_metrics: vec![metric], ..Evaluation::default() };
        let mut evaluation = judged.clone();
        let given = |value: Value| value.as_object().cloned().expect("an object");
        let mut changed = |value| {
            let changes = apply(&mut evaluation, given(value), |_| {}).expect("it is allowed");
            let fields = changes.iter().map(|change| (change.field.clone(), change.from.clone(), change.to.clone()));
            (fields.collect::<Vec<_>>(), evaluation.clone())
        };
        let reading_of = |field: &str, from: Value, to: Value| (field.to_owned(), from, to);
        let (changes, after) = changed(json!({ "human_goal_success": false, "human_goal_reasoning": null }));
        assert_eq!(changes, [reading_of("human_goal_success", Value::Null, json!(false))]);
        assert_eq!((after.goal(), after.goal_success, after.human_edited), (Some(false), Some(true), true));
        let yes = json!({ "metrics": [{ "metric_id": Uuid::nil(), "human_response_value": "yes" }] });
        let (changes, after) = changed(yes.clone());
        assert_eq!(changes, [reading_of("human_response_value", Value::Null, json!("yes"))]);
        assert_eq!((after.custom_metrics[0].score(), after.custom_metrics[0].human_edited), (Some(100.0), true));
        assert_eq!(changed(yes).0, [], "nothing has changed");
        changed(json!({ "human_goal_success": null, "metrics": [{ "metric_id": Uuid::nil() }] }));
        assert_eq!(evaluation, judged, "as it was judged");
    }

    #[test]
    fn a_value_is_of_the_metrics_type() {
        for (kind, value, expect) in [
            ("pass_fail", "pass", true),
            ("pass_fail", "yes", false),
            ("yes_no", "no", true),
            ("boolean", "1", false),
            ("int", "3", true),
            ("int", "3.5", false),
            ("float", "NaN", false),
            ("quantitative", "5", true),
            ("quantitative", "11", false),
            ("enum", "a", true),
            ("enum", "b", false),
            ("json", "{}", true),
            ("json", "[]", false),
            ("qualitative", "", true),
        ] {
            let metric = CustomResult {
                response_type: kind.into(),
                enum_options: vec!["a".into()],
                min_value: Some(0.0),
                max_value: Some(10.0),
                ..CustomResult::default()
            };
            assert_eq!(check_value(&metric, value).is_ok(), expect, "{kind} {value}");
        }
    }
}
