//! Bodies of webhook events: flat objects, told apart by `type`.

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::error_code::ErrorCode;
use super::evaluation::{CustomResult, Evaluation};
use super::result::{EngineQuality, PostedEvent, PostedToolCall, ResultDoc};
use super::status::{Outcome, ResultStatus};
use super::time::Timestamp;
use super::webhook::EventType;

/// Event: a conversation ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulationEnded {
    #[serde(rename = "type")]
    kind: EventType,
    id: i64,
    digital_human_id: i64,
    simulation_run_id: i64,
    status: ResultStatus,
    created_at: Timestamp,
    start_time: Option<Timestamp>,
    end_time: Option<Timestamp>,
    duration: Option<i64>,
}

impl SimulationEnded {
    /// Returns the event of a result.
    pub fn of(id: i64, doc: &ResultDoc, created_ms: i64) -> SimulationEnded {
        let body = &doc.body;
        SimulationEnded {
            kind: EventType::SimulationEnded,
            id,
            digital_human_id: body.digital_human_id.unwrap_or(0),
            simulation_run_id: body.simulation_run_id,
            status: body.status,
            created_at: Timestamp(created_ms),
            start_time: body.start_time,
            end_time: body.end_time,
            duration: body.duration,
        }
    }
}

/// Event: a result is final, or was evaluated again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultEvaluated {
    #[serde(rename = "type")]
    kind: EventType,
    id: i64,
    digital_human_id: i64,
    status: ResultStatus,
    simulation_run_id: i64,
    simulation_id: i64,
    agent_id: i64,
    folder_id: Option<Uuid>,
    result: Option<Object>,
    custom_metrics: Option<Vec<CustomResult>>,
    evaluations: Vec<Evaluation>,
    created_at: Timestamp,
    start_time: Option<Timestamp>,
    end_time: Option<Timestamp>,
    duration: Option<i64>,
    latency: Option<Vec<f64>>,
    events: Vec<PostedEvent>,
    tool_calls: Vec<PostedToolCall>,
    tags: Vec<String>,
    metadata: Object,
    outcome: Option<Outcome>,
    error_code: Option<ErrorCode>,
    seed: i64,
    engine_quality: Option<EngineQuality>,
}

impl ResultEvaluated {
    /// Returns the event of a result whose agent is in a folder.
    pub fn of(id: i64, doc: &ResultDoc, created_ms: i64, folder_id: Option<Uuid>) -> ResultEvaluated {
        let body = &doc.body;
        let mut tool_calls: Vec<PostedToolCall> = doc.posted_calls.iter().chain(&doc.heard_calls).cloned().collect();
        tool_calls.sort_by_key(|call| call.start_offset_ms);
        ResultEvaluated {
            kind: EventType::SimulationResultEvaluated,
            id,
            digital_human_id: body.digital_human_id.unwrap_or(0),
            status: body.status,
            simulation_run_id: body.simulation_run_id,
            simulation_id: body.simulation_id,
            agent_id: body.agent_id,
            folder_id,
            result: body.result.clone(),
            custom_metrics: body.custom_metrics.clone(),
            evaluations: body.evaluations.clone(),
            created_at: Timestamp(created_ms),
            start_time: body.start_time,
            end_time: body.end_time,
            duration: body.duration,
            latency: body.latency.clone(),
            events: body.events.clone(),
            tool_calls,
            tags: body.tags.clone(),
            metadata: body.metadata.clone(),
            outcome: body.outcome,
            error_code: body.error_code.clone(),
            seed: body.seed,
            engine_quality: body.engine_quality.clone(),
        }
    }
}

/// Event: the first results of a run wait for their OUTBOUND agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutboundStarted {
    #[serde(rename = "type")]
    kind: EventType,
    agent_id: i64,
    simulation_id: i64,
    simulation_run_id: i64,
    digital_humans: Vec<AwaitedHuman>,
}

/// A Digital Human that the agent is to contact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AwaitedHuman {
    /// Identifier of the Digital Human.
    pub id: i64,
    /// Name of the Digital Human; empty when it has none yet.
    pub name: String,
    /// Phone number to call, E.164; empty for other channels.
    pub phone_number: String,
    /// SIP address to call; empty for other channels.
    pub sip_uri: String,
    /// Identifiers of its results in this run.
    pub associated_simulation_result_ids: Vec<i64>,
}

impl OutboundStarted {
    /// Returns the event of a run.
    pub fn of(agent_id: i64, simulation_id: i64, run_id: i64, digital_humans: Vec<AwaitedHuman>) -> OutboundStarted {
        let kind = EventType::OutboundSimulationStarted;
        OutboundStarted { kind, agent_id, simulation_id, simulation_run_id: run_id, digital_humans }
    }
}

/// Returns the event of an evaluated call log: the log itself, preceded by its type.
pub fn call_evaluated(call_log: Object) -> Object {
    let kind = ("type".to_owned(), Value::from(EventType::ObservabilityCallEvaluated.as_str()));
    std::iter::once(kind).chain(call_log).collect()
}
