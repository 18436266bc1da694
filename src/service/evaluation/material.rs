//! Custom metrics of a finished result: which there are and what they are judged by; tool calls that come late are
//! judged again.

use ringer_base::error::Result;
use ringer_judge::{Material, Metric, Unheard, is_of_tool_calls, judge_by_rules, predicted_wer};
use ringer_model::agent_version::VersionDoc;
use ringer_model::call_log::CallSpec;
use ringer_model::custom_metric::{CustomMetricSpec, MetricScope};
use ringer_model::digital_human::{DigitalHumanSpec, Direction, Role};
use ringer_model::expectation::Expectation;
use ringer_model::result::{MetricValue, PostedToolCall, ResultDoc};
use ringer_model::simulation::SimulationSpec;
use ringer_model::time::Timestamp;
use ringer_model::transcript::{Transcript, TranscriptEntry};
use ringer_model::{Object, tool_call};
use ringer_store::{Metrics, Row, Session};
use serde_json::Value;
use uuid::Uuid;

use super::Evaluations;
use super::inputs::{CALLS_MET, WORD_ERRORS, calls_met, monitored_metrics, unheard_in};
use crate::conversation::earlier::{Whose, earlier};
use crate::conversation::facts::human_in_force;

/// Material that the custom metrics of a result are judged by, besides what the conversation measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToJudge {
    /// Custom metrics, in the order of the agent's list.
    pub metrics: Vec<Metric>,
    /// Transcript of the conversation, if there is one.
    pub transcript: Option<Transcript>,
    /// Turns that were not heard.
    pub unheard: Vec<Unheard>,
    /// Tool calls of the agent.
    pub calls: Vec<PostedToolCall>,
    /// Metadata of the result.
    pub metadata: Object,
    /// Built-in metrics that come from tool calls and posted transcripts.
    pub measures: Vec<MetricValue>,
    /// Prompt of the agent version that was tested.
    pub agent_prompt: String,
    /// Success criteria of the Digital Human, or of its journey's step.
    pub success_criteria: String,
    /// Expectations that the conversation is checked against.
    pub expectations: Vec<Expectation>,
    /// Rules of the agent that the Digital Human probes.
    pub rules: Vec<String>,
    /// Contacts of the two before this conversation, in the earlier steps of the journey.
    pub earlier: Vec<String>,
    /// Attempts of the agent to reach a Digital Human that was not to answer, a line each.
    pub attempts: Vec<String>,
    /// Question that the simulation asks about each conversation; yes means a custom error. Empty: the question has no
    /// text.
    pub custom_error: Option<String>,
    /// Names of the language models that judge together; empty: one judges.
    pub panel: Vec<String>,
}

impl Evaluations {
    /// Returns the material that the custom metrics of a result are judged by.
    pub async fn to_judge(&self, organization: &str, result_id: i64) -> Result<ToJudge> {
        let mut db = self.store.org(organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let body = &row.doc.body;
        let human = human_in_force(&mut db, &row).await?.unwrap_or_default();
        let agent_prompt = prompt_of(&mut db, body.agent_version_id).await?;
        let transcript: Option<Transcript> = db.text("transcripts", result_id).await?;
        let monitored = monitored_metrics(&mut db, result_id).await?;
        let metrics = metrics_of(&mut db, &row.doc, &monitored).await?;
        let calls: Vec<PostedToolCall> = row.doc.posted_calls.iter().chain(&row.doc.heard_calls).cloned().collect();
        let met = calls_met(&tool_call::group(&human.expected_tool_calls, &calls), &body.own_faults);
        let unheard = unheard_in(&mut db, result_id).await?;
        let recorded = row.doc.recorded_transcript.as_deref().unwrap_or_default();
        let errors = transcript.as_ref().and_then(|heard| predicted_wer(recorded, &heard.entries, &unheard).rate);
        let measure = |name: &str, value: Option<Value>| {
            value.map(|value| MetricValue { name: name.to_owned(), value, note: None })
        };
        let simulation = db.get::<SimulationSpec>(body.simulation_id).await?.doc;
        let custom_error = simulation.custom_error_enabled.then(|| simulation.custom_error_prompt.unwrap_or_default());
        let measures = [measure(CALLS_MET, met.map(Value::Bool)), measure(WORD_ERRORS, errors.map(Value::from))];
        let attempts = attempts(&row.doc, &human, transcript.as_ref());
        let earlier = earlier(&mut db, &row, &human, Whose::Judge).await?;
        Ok(ToJudge {
            metrics,
            earlier,
            attempts,
            transcript,
            unheard,
            calls,
            metadata: row.doc.body.metadata.clone(),
            measures: measures.into_iter().flatten().collect(),
            agent_prompt,
            success_criteria: criteria_of(&human, body.journey_step),
            rules: rules(&human),
            expectations: human.expectations,
            custom_error,
            panel: self.settings.judge.panel.clone(),
        })
    }

    /// Judges the metrics of an evaluated result again that depend on tool calls alone.
    pub(crate) async fn rejudge_tool_calls(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
        let Some(evaluation) = row.doc.body.evaluations.first() else { return Ok(()) };
        let mut results = evaluation.custom_metrics.clone();
        let mut transcript: Option<Transcript> = None;
        let calls: Vec<PostedToolCall> = row.doc.posted_calls.iter().chain(&row.doc.heard_calls).cloned().collect();
        for result in &mut results {
            let found = db.find::<CustomMetricSpec>(result.metric_id).await?;
            let Some(found) = found.filter(|found| is_of_tool_calls(&found.doc)) else { continue };
            if transcript.is_none() {
                transcript = db.text("transcripts", row.id).await?;
            }
            let entries = transcript.as_ref().map(|transcript| &transcript.entries[..]).unwrap_or_default();
            let metric = Metric { id: found.id, spec: found.doc };
            let again = judge_by_rules(&metric, Material { entries, calls: &calls, ..Material::default() });
            let old = std::mem::replace(result, again);
            result.keep_human_fields(&old);
        }
        if let Some(evaluation) = row.doc.body.evaluations.first_mut() {
            evaluation.set_custom_metrics(results);
            row.doc.body.custom_metrics = Some(evaluation.custom_metrics.clone());
        }
        Ok(())
    }
}

/// Returns the metrics that a simulation has selected, all of its agent's when it has selected none, newest first; then
/// those of `more` that are not among them.
async fn metrics_of(db: &mut Session, doc: &ResultDoc, more: &[Uuid]) -> Result<Vec<Metric>> {
    let simulation = db.get::<SimulationSpec>(doc.body.simulation_id).await?.doc;
    let selected = simulation.selected_custom_metrics;
    let mut rows = match selected {
        None => db.metrics(Metrics::OfAgent(doc.body.agent_id), i64::MAX, 0).await?,
        Some(_) => vec![],
    };
    for ids in [selected.as_deref().unwrap_or_default(), more].into_iter().filter(|ids| !ids.is_empty()) {
        let all = db.metrics(Metrics::All, i64::MAX, 0).await?;
        add(&mut rows, all, |row| ids.contains(&row.id));
    }
    Ok(metrics_in_scope(rows, MetricScope::Observability))
}

/// Returns the metrics of its agent that are meant for calls held in production, and those that the call itself names.
pub(crate) async fn metrics_of_log(db: &mut Session, agent_id: i64, call: &CallSpec) -> Result<Vec<Metric>> {
    let mut rows = db.metrics(Metrics::OfAgent(agent_id), i64::MAX, 0).await?;
    let (ids, tags) = (call.custom_metrics.as_deref(), call.custom_metric_tags.as_deref());
    let (ids, tags) = (ids.unwrap_or_default(), tags.unwrap_or_default());
    if !ids.is_empty() || !tags.is_empty() {
        let all = db.metrics(Metrics::All, i64::MAX, 0).await?;
        add(&mut rows, all, |row| ids.contains(&row.id) || row.doc.tags.iter().any(|tag| tags.contains(tag)));
    }
    Ok(metrics_in_scope(rows, MetricScope::Simulation))
}

/// Adds those of `all` that are wanted and are not there yet.
fn add(
    rows: &mut Vec<Row<CustomMetricSpec>>,
    mut all: Vec<Row<CustomMetricSpec>>,
    wanted: impl Fn(&Row<CustomMetricSpec>) -> bool,
) {
    all.retain(|row| wanted(row) && rows.iter().all(|known| known.id != row.id));
    rows.extend(all);
}

/// Returns the metrics whose scope is not `elsewhere`.
fn metrics_in_scope(rows: Vec<Row<CustomMetricSpec>>, elsewhere: MetricScope) -> Vec<Metric> {
    let here = rows.into_iter().filter(|row| row.doc.scope != elsewhere);
    here.map(|row| Metric { id: row.id, spec: row.doc }).collect()
}

/// Returns the prompt of an agent version; empty when there is none.
pub(crate) async fn prompt_of(db: &mut Session, version: Option<Uuid>) -> Result<String> {
    let Some(id) = version else { return Ok(String::new()) };
    Ok(db.find::<VersionDoc>(id).await?.map(|row| row.doc.prompt_text).unwrap_or_default())
}

/// Returns the agent's calls or messages to a Digital Human that does not answer, with their times. Empty if it was to
/// answer, or did.
fn attempts(doc: &ResultDoc, human: &DigitalHumanSpec, transcript: Option<&Transcript>) -> Vec<String> {
    let mut steps = human.journey_steps.iter().flatten();
    let step = steps.find(|step| Some(step.step) == doc.body.journey_step);
    let entries = transcript.map(|held| &held.entries[..]).unwrap_or_default();
    let answered = entries.iter().any(|entry| entry.speaker == Role::User);
    if answered || step.is_none_or(|step| !step.unresponsive || step.direction != Direction::Outbound) {
        return Vec::new();
    }
    let call = |about: &Object| {
        let of = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or("not known");
        format!("{}: a call from {}, not answered", of("at"), of("from"))
    };
    let began_ms = doc.body.start_time.map_or(0, |at| at.0);
    let message = |entry: &TranscriptEntry| {
        let at = Timestamp(began_ms.saturating_add(entry.start_offset_ms));
        format!("{at}: a message, read and not answered")
    };
    doc.unanswered.iter().map(call).chain(entries.iter().map(message)).collect()
}

/// Returns the rules that are probed, each behind its id where it has one.
fn rules(human: &DigitalHumanSpec) -> Vec<String> {
    let (ids, quotes) = (&human.system_prompt_rule_ids, &human.system_prompt_rule_quotes);
    let of = |at: usize| match (ids.get(at), quotes.get(at)) {
        (Some(id), Some(quote)) => format!("{id}: {quote}"),
        (Some(text), None) | (None, Some(text)) => text.clone(),
        (None, None) => String::new(),
    };
    (0..ids.len().max(quotes.len())).map(of).collect()
}

/// Returns the success criteria of a Digital Human, or of a step of its journey.
pub(crate) fn criteria_of(human: &DigitalHumanSpec, step: Option<i64>) -> String {
    let steps = human.journey_steps.as_deref().unwrap_or_default();
    let step = steps.iter().find(|one| Some(one.step) == step);
    step.map_or(&human.success_criteria, |step| &step.success_criteria).clone()
}
