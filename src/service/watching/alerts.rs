//! Alerts: rules about finished conversations. Those that break a rule are kept as violations; enough of them in the
//! window put the alert into alarm, and it stays there until the window holds fewer.

use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_model::agent::AgentDoc;
use ringer_model::alert::{AlertDoc, AlertRecord, AlertSpec, EntityType, Violation};
use ringer_model::evaluation::CustomResult;
use ringer_model::notification::{Notice, NoticeKind};
use ringer_model::patch::Patch;
use ringer_model::result::ResultBody;
use ringer_model::text_of;
use ringer_model::time::{Timestamp, span_ms};
use ringer_store::queue::AlertJob;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Watching;
use super::finished::Finished;
use crate::Caller;
use crate::library::lists::check_named;
use crate::outbox::notices::about;

/// Parts of the names of metrics that depend on exact timing: an engine that was late cannot tell them.
const TIMED: [&str; 6] = ["latency", "time_to_first", "setup_ms", "interrupt", "_rate", "_selectivity"];

/// A page of alerts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlertPage {
    /// Alerts of this page, newest first.
    pub alerts: Vec<AlertRecord>,
    /// Rows on all pages.
    pub total_count: i64,
}

/// A page of violations.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ViolationPage {
    /// Violations of this page, newest first.
    pub results: Vec<Violation>,
    /// Rows on all pages.
    pub total_count: i64,
    /// Number of this page, from 1.
    pub page: i64,
    /// Largest number of entries on a page.
    pub page_size: i64,
    /// Total number of pages.
    pub total_pages: i64,
}

/// Response to deleting an alert.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlertDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted alert.
    pub deleted_alert_id: Uuid,
}

impl Watching {
    /// Creates an alert after checking its rule and its notification channels.
    pub async fn create_alert(&self, caller: &Caller, spec: AlertSpec) -> Result<AlertRecord> {
        self.look_at_channels(&spec.notification_channels).await?;
        let mut db = self.store.org(&caller.organization).write().await?;
        self.check_alert(&mut db, &spec, None).await?;
        let doc = AlertDoc { spec, in_alert: false, last_triggered_at: None, trigger_count: 0 };
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        db.answer(record_of(caller, row)).await
    }

    /// Changes the given fields. What lies in the window is counted again.
    pub async fn update_alert(&self, caller: &Caller, alert_id: Uuid, patch: &Patch<AlertSpec>) -> Result<AlertRecord> {
        self.look_at_given_channels(patch.fields().get("notification_channels")).await?;
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<AlertDoc>(alert_id).await?;
        let spec = patch.apply(&row.doc.spec).map_err(Error::internal)?;
        self.check_alert(&mut db, &spec, Some(&row.doc.spec)).await?;
        row.doc.spec = spec;
        db.update(alert_id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        self.count_violations(&mut db, row).await?;
        let row = db.get(alert_id).await?;
        db.commit().await?;
        Ok(record_of(caller, row))
    }

    /// Deletes an alert with its violations.
    pub async fn delete_alert(&self, caller: &Caller, alert_id: Uuid) -> Result<AlertDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<AlertDoc>(alert_id).await?;
        db.delete::<AlertDoc>(alert_id).await?;
        db.commit().await?;
        Ok(AlertDeleted { message: "Alert deleted".into(), deleted_alert_id: alert_id })
    }

    /// Returns a page of the alerts.
    pub async fn alerts(&self, caller: &Caller, page: i64, page_size: i64) -> Result<AlertPage> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let total_count = db.count::<AlertDoc>().await?;
        let rows = db.slice(page_size, (page - 1).saturating_mul(page_size)).await?;
        Ok(AlertPage { alerts: rows.into_iter().map(|row| record_of(caller, row)).collect(), total_count })
    }

    /// Returns a page of what broke the rule of an alert.
    pub async fn alert_results(
        &self,
        caller: &Caller,
        alert_id: Uuid,
        page: i64,
        page_size: i64,
    ) -> Result<ViolationPage> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AlertDoc>(alert_id).await?;
        let (items, total_count) = db.violations(alert_id, page_size, (page - 1).saturating_mul(page_size)).await?;
        let page = ringer_model::Page { items, total_count, page, page_size };
        let total_pages = page.total_pages();
        Ok(ViolationPage { results: page.items, total_count, page: page.page, page_size, total_pages })
    }

    /// Holds a finished conversation against every rule.
    pub(crate) async fn hold_against_alerts(&self, db: &mut Session, of: &Finished) -> Result<()> {
        for row in db.all::<AlertDoc>().await? {
            let spec = &row.doc.spec;
            if !spec.looks_at(of.source, of.agent_id) {
                continue;
            }
            let Some(value) = value_of(&of.body, spec) else { continue };
            if !spec.operator.holds(&value, &spec.comparison_value) {
                continue;
            }
            let violation = Violation {
                id: clock::new_id(),
                alert_id: row.id,
                triggered_at: Timestamp(self.clock.now_ms()),
                value: text_of(&value).into_owned(),
                kind: of.source,
                source_id: of.source_id.clone(),
            };
            if db.add_violation(&violation).await? {
                self.count_violations(db, row).await?;
            }
        }
        Ok(())
    }

    /// Looks whether the window of an alert still holds enough violations.
    pub async fn look_at_alert(&self, job: &AlertJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(row) = db.find::<AlertDoc>(job.alert_id).await? else { return Ok(()) };
        self.count_violations(&mut db, row).await?;
        db.commit().await
    }

    /// Brings `in_alert` in line with the window and tells of a change. In alarm, the moment at which the window may
    /// hold too few is looked at next.
    async fn count_violations(&self, db: &mut Session, mut row: Row<AlertDoc>) -> Result<()> {
        let now = self.clock.now_ms();
        let spec = &row.doc.spec;
        let window_ms = span_ms(spec.threshold_time_interval as f64);
        let times = db.violation_times(row.id, now.saturating_sub(window_ms), spec.min_events).await?;
        let is_due = spec.is_enabled && times.len() as i64 >= spec.min_events;
        if is_due && let Some(oldest) = times.last() {
            // The newest `min_events` are known: without the oldest of them there are too few.
            let job =
                AlertJob { organization: db.organization().to_owned(), alert_id: row.id, at_ms: oldest + window_ms };
            db.put(&job, job.at_ms, None).await?;
        }
        if is_due == row.doc.in_alert {
            return Ok(());
        }
        row.doc.in_alert = is_due;
        if is_due {
            row.doc.last_triggered_at = Some(Timestamp(now));
            row.doc.trigger_count += 1;
        }
        let (updated_ms, by) = (row.updated_ms, row.updated_by);
        // Notes of the engine are no change of the alert.
        db.update(row.id, &row.doc, updated_ms, by).await?;
        let notice = self.notice_of(&row, times.len());
        self.outbox.notify(db, &row.doc.spec.notification_channels, &notice).await
    }

    fn notice_of(&self, row: &Row<AlertDoc>, count: usize) -> Notice {
        let spec = &row.doc.spec;
        let (kind, word) = match row.doc.in_alert {
            true => (NoticeKind::AlertTriggered, "triggered"),
            false => (NoticeKind::AlertResolved, "resolved"),
        };
        let (field, operator, value) = (&spec.entity_field, spec.operator.as_str(), &spec.comparison_value);
        let seconds = spec.threshold_time_interval;
        let facts = json!({
            "name": spec.name, "entity_type": spec.entity_type, "entity_field": field, "operator": operator,
            "comparison_value": value, "violations": count, "threshold_time_interval": seconds,
        });
        Notice {
            kind,
            title: format!("Alert {word}: {}", spec.name),
            text: format!("{field} {operator} {value}: {count} time(s) in {seconds} s"),
            at: Timestamp(self.clock.now_ms()),
            links: vec![self.outbox.link(&format!("/v1/alerts/{}/results", row.id))],
            data: about("alert_id", row.id, facts.as_object().cloned().unwrap_or_default()),
            subject: row.id.to_string(),
        }
    }

    /// Checks every rule on an alert's fields; `old` is the alert before a change.
    async fn check_alert(&self, db: &mut Session, spec: &AlertSpec, old: Option<&AlertSpec>) -> Result<()> {
        check_named::<AgentDoc>(db, spec.agent_ids.as_deref(), old.and_then(|old| old.agent_ids.as_deref())).await?;
        let compared = |spec: &AlertSpec| (spec.operator, spec.comparison_value.clone());
        if old.map(compared) != Some(compared(spec)) && !spec.operator.takes(&spec.comparison_value) {
            let text = format!("comparison_value must be a number for {}", spec.operator.as_str());
            return Err(Error::Refused(text));
        }
        self.check_channels(&spec.notification_channels)
    }
}

/// Returns the value that a rule compares in a conversation; `None` if it is missing or cannot be relied on.
fn value_of(body: &ResultBody, spec: &AlertSpec) -> Option<Value> {
    let field = spec.entity_field.as_str();
    // A conversation that this side broke off shows nothing of the agent.
    if body.is_own_failure() && spec.entity_type != EntityType::MetadataField {
        return None;
    }
    match spec.entity_type {
        EntityType::StandardMetric => {
            let is_late = body.engine_quality.as_ref().is_some_and(|quality| !quality.trusted);
            if is_late && TIMED.iter().any(|part| field.contains(part)) {
                return None;
            }
            body.metric(field).cloned().or_else(|| judged_value(body, field))
        }
        EntityType::CustomGoal => {
            let goal = body.evaluations.first()?.goal()?;
            Some(Value::Bool(goal))
        }
        EntityType::CustomMetric => {
            let named = |metric: &&CustomResult| metric.name == field || metric.metric_id.to_string() == field;
            let metric = body.evaluations.first()?.custom_metrics.iter().find(named)?;
            let value = metric.human_response_value.as_ref().unwrap_or(&metric.response_value);
            (!value.is_empty()).then(|| Value::from(value.as_str()))
        }
        EntityType::MetadataField => body.metadata.get(field).filter(|value| !value.is_null()).cloned(),
    }
}

/// Returns a value of the evaluation that a language model judged.
fn judged_value(body: &ResultBody, field: &str) -> Option<Value> {
    const NAMES: [&str; 8] = [
        "goal_success",
        "hallucination",
        "redundancy",
        "pronunciation_score",
        "sentiment_label",
        "sentiment_score",
        "call_summary",
        "custom_evals_success_rate",
    ];
    let evaluation = serde_json::to_value(body.evaluations.first()?).ok()?;
    let field = if field == "success" { "goal_success" } else { field };
    let of_person = evaluation.get(format!("human_{field}")).filter(|value| !value.is_null());
    NAMES.contains(&field).then(|| of_person.or(evaluation.get(field)).cloned())?.filter(|value| !value.is_null())
}

fn record_of(caller: &Caller, row: Row<AlertDoc>) -> AlertRecord {
    let AlertDoc { spec, in_alert, last_triggered_at, trigger_count } = row.doc;
    AlertRecord {
        id: row.id,
        name: spec.name,
        description: spec.description,
        is_enabled: spec.is_enabled,
        organization_id: caller.organization.clone(),
        entity_type: spec.entity_type,
        entity_field: spec.entity_field,
        operator: spec.operator,
        comparison_value: spec.comparison_value,
        notification_channels: spec.notification_channels,
        last_triggered_at,
        trigger_count,
        created_by: row.created_by,
        applies_to_all_agents: spec.applies_to_all_agents,
        agents: spec.agent_ids,
        created_at: Timestamp(row.created_ms),
        updated_at: (row.updated_ms != row.created_ms).then_some(Timestamp(row.updated_ms)),
        threshold_time_interval: spec.threshold_time_interval,
        min_events: spec.min_events,
        in_alert,
        source_scope: spec.source_scope,
    }
}

#[cfg(test)]
mod tests {
    use ringer_model::error_code::ErrorCode;

    use super::*;

    #[test]
    fn what_this_side_broke_off_breaks_no_rule() {
        let metric =
            json!({ "name": "Kept", "status": "evaluated", "response_value": "fail", "response_type": "pass_fail" });
        let evaluation = json!({ "goal_success": false, "hallucination": true, "custom_metrics": [metric] });
        let mut body = ResultBody {
            evaluations: vec![serde_json::from_value(evaluation).expect("an evaluation")],
            metrics: vec![serde_json::from_value(json!({ "name": "num_turns", "value": 0 })).expect("a metric")],
            metadata: serde_json::from_value(json!({ "tenant": "42" })).expect("an object"),
            ..ResultBody::default()
        };
        let rules = [
            ("standard_metric", "num_turns", json!(0)),
            ("standard_metric", "hallucination", json!(true)),
            ("custom_goal", "goal", json!(false)),
            ("custom_metric", "Kept", json!("fail")),
            ("metadata_field", "tenant", json!("42")),
        ];
        for (code, counts) in [
            (None, true),
            (Some(ErrorCode::MediaTimeout), true),
            (Some(ErrorCode::P2ConnectionFailed), true),
            (Some(ErrorCode::InsufficientBalance), false),
            (Some(ErrorCode::CustomNoiseFailed), false),
        ] {
            code.iter().for_each(|code| body.fail(code.clone(), "It is so."));
            for (kind, field, value) in &rules {
                let rule = json!({ "name": "a", "entity_type": kind, "entity_field": field, "operator": "equals",
                    "comparison_value": "x" });
                let rule: AlertSpec = serde_json::from_value(rule).expect("a rule");
                let expect = (counts || *kind == "metadata_field").then(|| value.clone());
                assert_eq!(value_of(&body, &rule), expect, "{code:?} {kind} {field}");
            }
        }
    }
}
