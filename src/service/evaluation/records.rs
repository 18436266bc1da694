//! Keeping what the judge found: evaluations, metrics and tool calls of a result.

use ringer_base::error::{Error, Result};
use ringer_human::Facts;
use ringer_judge::{
    OpenMetric, Redactor, WordErrors, has_open_stops, is_timed_tool, moments, predicted_wer, rejudge_tools,
};
use ringer_model::evaluation::{Evaluation, EvaluationStatus, JudgedGoal};
use ringer_model::expectation::ExpectationResult;
use ringer_model::heard_turn::HeardTurn;
use ringer_model::issue::SourceKind;
use ringer_model::result::{
    EngineQuality, KEPT_FLOOR, MetricValue, PostedToolCall, ResultBody, ResultDoc, ToolCallGroup,
};
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::ResultStatus;
use ringer_model::tool_call::{attack_verdict, stray};
use ringer_model::transcript::Transcript;
use ringer_model::{Object, tool_call};
use ringer_store::{Row, Session};
use serde_json::{Value, json};

use super::Evaluations;
use super::inputs::{CALLS_MET, WORD_ERRORS, calls_met, unheard_in};
use super::trust::note_cards;
use crate::conversation::facts::{facts_of_conversation, human_in_force, spoken_facts};
use crate::conversation::privacy::{EXPECTED, JUDGED, redact_metrics, redacted_calls, redactor_of, through};
use crate::conversation::rerun::{CUSTOM_ERROR, rerun_is_due};
use crate::conversation::verdict::settle;

/// Prefix of an evaluation's warnings; those of the next evaluation replace them.
const JUDGING: &str = "evaluation: ";

/// Results of judging one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// The evaluation record; what people wrote into the one that it replaces is kept.
    pub evaluation: Evaluation,
    /// Built-in metrics; null values, `expected_tool_calls_met` and `predicted_wer` are left out.
    pub metrics: Vec<MetricValue>,
    /// Metrics of which something is not known.
    pub open: Vec<OpenMetric>,
    /// Turns of the agent that nobody interrupted.
    pub heard_whole: Vec<HeardTurn>,
    /// Agent latency per turn, seconds.
    pub latency: Option<Vec<f64>>,
    /// Measures of how well the engine worked.
    pub engine_quality: Option<EngineQuality>,
    /// Metadata to set (`judge_model`).
    pub metadata: Object,
    /// Answer to the simulation's own question, true for yes; `None` if it was not answered.
    pub custom_error: Option<bool>,
    /// Results of the Digital Human's expectations.
    pub expectations: Vec<ExpectationResult>,
    /// Judgements that were requested and could not be made.
    pub warnings: Vec<String>,
}

impl Evaluations {
    /// Keeps what was found. A result in EVALUATING becomes terminal (or is queued again, when a repetition is due);
    /// one that is terminal keeps its state and gets a new verdict.
    pub async fn store_evaluation(&self, organization: &str, result_id: i64, judged: Judged) -> Result<Row<ResultDoc>> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let status = row.doc.body.status;
        if status != ResultStatus::Evaluating && !status.is_terminal() {
            return Err(Error::Conflict(format!("Simulation result is {}", status.as_str())));
        }
        keep(&mut row.doc, judged);
        self.regroup_calls(&mut db, &mut row).await?;
        recount_word_errors(&mut db, &mut row).await?;
        note_cards(&mut db, self.least(), vec![&mut row.doc.body]).await?;
        let simulation = db.get::<SimulationSpec>(row.doc.body.simulation_id).await?.doc;
        if status.is_terminal() {
            settle(&mut row.doc, &simulation);
            db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
            if self.conversations.sends_traces() {
                db.note_traced(row.id, true);
            }
            self.outbox.tell_evaluated(&mut db, &row).await?;
            self.outbox.announce_finished(&mut db, SourceKind::Simulation, row.id).await?;
            self.conversations.complete_run(&mut db, row.doc.body.simulation_run_id).await?;
            self.conversations.restore_files(&mut db, row.id).await?;
        } else {
            let end = final_status(&row.doc.body);
            if rerun_is_due(&row.doc, end, &simulation) {
                self.conversations.rerun(&mut db, &mut row, &simulation, end).await?;
            } else {
                self.conversations.step(&mut db, &mut row, end).await?;
            }
        }
        db.commit().await?;
        self.live.note_change(result_id);
        Ok(row)
    }

    /// Redacts the evaluation of a conversation, and everything that is kept of the conversation.
    pub async fn redact(
        &self,
        organization: &str,
        result_id: i64,
        redactor: &Redactor,
        judged: &mut Judged,
    ) -> Result<()> {
        through(&mut judged.evaluation, redactor, JUDGED)?;
        redact_metrics(&mut judged.metrics, redactor);
        through(&mut judged.expectations, redactor, EXPECTED)?;
        judged.heard_whole.iter_mut().for_each(|turn| turn.words.clear());
        through(&mut judged.metadata, redactor, &["playback", "custom_error"])?;
        self.conversations.redact_conversation(organization, result_id, redactor).await
    }

    /// Returns the playback steps of a result's Digital Human, with its facts filled in; empty without a playback.
    pub async fn playback_steps(&self, organization: &str, result_id: i64) -> Result<Vec<Object>> {
        let mut db = self.store.org(organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let human = human_in_force(&mut db, &row).await?.unwrap_or_default();
        let traits = spoken_facts(&facts_of_conversation(&mut db, &row.doc, human.traits).await?);
        let facts = Facts::of(&traits);
        let mut steps = human.enriched_playback.unwrap_or_default();
        steps.iter_mut().flat_map(Object::values_mut).for_each(|value| fill(value, &facts));
        Ok(steps)
    }

    /// Groups the tool calls of a result again and, when it was evaluated, judges them.
    pub(crate) async fn regroup_calls(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
        let human = human_in_force(db, row).await?.unwrap_or_default();
        let attacks = human.attack_type.is_some();
        let mut expected = human.expected_tool_calls;
        if let Some(redactor) = redactor_of(db, &row.doc).await? {
            expected = redacted_calls(expected, &redactor)?;
        }
        let groups = tool_call::group(&expected, row.doc.posted_calls.iter().chain(&row.doc.heard_calls));
        let body = &mut row.doc.body;
        if !body.evaluations.is_empty() {
            set(&mut body.metrics, CALLS_MET, calls_met(&groups, &body.own_faults).map(Value::Bool));
        }
        let calls: Vec<PostedToolCall> = row.doc.posted_calls.iter().chain(&row.doc.heard_calls).cloned().collect();
        let body = &mut row.doc.body;
        let timeline: Option<Value> = match body.expectations.iter().any(|kept| is_timed_tool(&kept.expected)) {
            true => db.text("timelines", row.id).await?,
            false => None,
        };
        rejudge_tools(&mut body.expectations, &calls, &body.own_faults, &moments(&timeline.unwrap_or_default()));
        if attacks {
            judge_attack(&mut row.doc, &groups);
        }
        let body = &mut row.doc.body;
        body.tool_calls = groups;
        self.rejudge_tool_calls(db, row).await?;
        let body = &mut row.doc.body;
        if body.status.is_terminal() {
            let simulation = db.get::<SimulationSpec>(body.simulation_id).await?;
            settle(&mut row.doc, &simulation.doc);
        }
        Ok(())
    }
}

/// Puts facts into the texts of a step, also into those of its members.
fn fill(value: &mut Value, facts: &Facts<'_>) {
    match value {
        Value::String(text) => *text = facts.fill(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, facts)),
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, facts)),
        _ => {}
    }
}

/// Compares what was recognized of the agent with its own transcript, when the result was evaluated and has both.
pub(crate) async fn recount_word_errors(db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
    if row.doc.body.evaluations.is_empty() {
        return Ok(());
    }
    let heard: Option<Transcript> = match &row.doc.recorded_transcript {
        Some(_) => db.text("transcripts", row.id).await?,
        None => None,
    };
    let recorded = row.doc.recorded_transcript.as_deref().unwrap_or_default();
    let errors = match heard {
        Some(heard) => predicted_wer(recorded, &heard.entries, &unheard_in(db, row.id).await?),
        None => WordErrors::default(),
    };
    set(&mut row.doc.body.metrics, WORD_ERRORS, errors.rate.map(Value::from));
    let own = format!("{WORD_ERRORS}: ");
    row.doc.forget_warnings(&own);
    errors.warning.iter().for_each(|why| row.doc.warn(&format!("{own}{why}")));
    Ok(())
}

/// Gives a metric a new value, or takes it away.
fn set(metrics: &mut Vec<MetricValue>, name: &str, value: Option<Value>) {
    metrics.retain(|metric| metric.name != name);
    metrics.extend(value.map(|value| MetricValue { name: name.into(), value, note: None }));
}

/// Takes what was found over into a result.
fn keep(doc: &mut ResultDoc, judged: Judged) {
    (doc.has_open_stops, doc.heard_whole) = (has_open_stops(&judged.open), judged.heard_whole);
    let Judged {
        mut evaluation, metrics, latency, engine_quality, metadata, custom_error, expectations, warnings, ..
    } = judged;
    doc.body.expectations = expectations;
    if let Some(old) = doc.body.evaluations.first() {
        evaluation.keep_human_fields(old);
    }
    doc.overruled = None;
    doc.body.result = Some(goal_of(&evaluation));
    doc.body.custom_metrics = Some(evaluation.custom_metrics.clone());
    doc.body.evaluations = vec![evaluation];
    doc.body.metrics = metrics.into_iter().filter(|metric| !metric.value.is_null()).collect();
    doc.body.latency = latency.or(doc.body.latency.take());
    doc.body.engine_quality = engine_quality.or(doc.body.engine_quality.take());
    if custom_error.is_some() {
        doc.body.tags.retain(|tag| tag != CUSTOM_ERROR);
    }
    if custom_error == Some(true) {
        doc.body.tags.push(CUSTOM_ERROR.to_owned());
    }
    doc.forget_note(KEPT_FLOOR);
    for (key, value) in metadata {
        doc.note(&key, value);
    }
    doc.forget_warnings(JUDGING);
    warnings.iter().for_each(|warning| doc.warn(&format!("{JUDGING}{warning}")));
}

/// Returns the goal by its old name.
fn goal_of(evaluation: &Evaluation) -> Object {
    Object::from_iter([
        ("goal_success".to_owned(), json!(evaluation.goal_success)),
        ("goal_reasoning".to_owned(), json!(evaluation.goal_reasoning)),
    ])
}

/// Sets the goal of an attack to whether the agent resisted it; tool calls decide last. A person's verdict stays beside
/// it.
fn judge_attack(doc: &mut ResultDoc, groups: &[ToolCallGroup]) {
    let Some(evaluation) = doc.body.evaluations.first_mut() else { return };
    if let Some(judged) = doc.overruled.take() {
        evaluation.judge_goal(judged);
    }
    let held = match attack_verdict(groups, evaluation.goal_success) {
        "held" => Some(true),
        "breached" => Some(false),
        _ => None,
    };
    if held != evaluation.goal_success {
        let why = match stray(groups) {
            Some(group) => format!("The agent called {}, which it was not allowed to call", group.name),
            None => "The agent called nothing that it was not allowed to call".to_owned(),
        };
        let status = match evaluation.status {
            EvaluationStatus::NotEvaluated => EvaluationStatus::Partial,
            status => status,
        };
        let goal = JudgedGoal { goal_success: held, goal_reasoning: Some(why), status };
        doc.overruled = Some(evaluation.judge_goal(goal));
    }
    let (verdict, goal) = (attack_verdict(groups, evaluation.goal()), goal_of(evaluation));
    for name in ["goal_success", "success"] {
        set(&mut doc.body.metrics, name, held.map(Value::Bool));
    }
    doc.body.result = Some(goal);
    doc.note("red_team", json!({ "verdict": verdict }));
}

/// Returns the state that an evaluated conversation ends in, by its error code.
fn final_status(body: &ResultBody) -> ResultStatus {
    let Some(code) = &body.error_code else { return ResultStatus::Completed };
    match code.status(true) {
        end @ (ResultStatus::OutOfFunds | ResultStatus::SystemError) => end,
        _ => ResultStatus::CallDropped,
    }
}
