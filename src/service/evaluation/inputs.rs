//! Names and rows that an evaluation takes from elsewhere: names of metrics and tags, unheard turns, metrics of
//! monitors.

use ringer_base::error::Result;
use ringer_judge::{Unheard, moments, unheard};
use ringer_model::expectation::{FaultCode, OwnFault};
use ringer_model::monitor::{CheckDoc, CheckType, MonitorDoc};
use ringer_model::result::ToolCallGroup;
use ringer_model::tool_call;
use ringer_store::Session;
use serde_json::Value;
use uuid::Uuid;

/// Name of the metric that tells whether the expected tool calls were made.
pub(crate) const CALLS_MET: &str = "expected_tool_calls_met";

/// Name of the metric that tells how well the agent was understood.
pub(crate) const WORD_ERRORS: &str = "predicted_wer";

/// True if the expected tool calls of a result were made; `None` where nothing is expected, or where calls may be
/// missing that the platform has not told of.
pub(crate) fn calls_met(groups: &[ToolCallGroup], own_faults: &[OwnFault]) -> Option<bool> {
    let is_unreported = own_faults.iter().any(|fault| fault.code == FaultCode::ReportMissing);
    tool_call::are_met(groups).filter(|met| *met || !is_unreported)
}

/// Returns the turns of a result that were not heard, by its timeline.
pub(crate) async fn unheard_in(db: &mut Session, result_id: i64) -> Result<Vec<Unheard>> {
    let timeline: Option<Value> = db.text("timelines", result_id).await?;
    Ok(timeline.map(|timeline| unheard(&moments(&timeline))).unwrap_or_default())
}

/// Returns the custom metrics that a monitor looks at in a result that is its check; none in other results.
pub(crate) async fn monitored_metrics(db: &mut Session, result_id: i64) -> Result<Vec<Uuid>> {
    let Some(check) = db.by::<CheckDoc>("result_id", result_id).await?.into_iter().next() else {
        return Ok(Vec::new());
    };
    let checks = db.find::<MonitorDoc>(check.doc.monitor_id).await?.map(|row| row.doc.spec.checks);
    let graded = checks.into_iter().flatten().filter(|check| check.enabled && check.kind == CheckType::CustomMetric);
    Ok(graded.filter_map(|check| check.config.custom_metric_id).collect())
}
