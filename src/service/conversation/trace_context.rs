//! Trace of a result: one for each attempt, whose spans have identifiers that follow from it. Its root is the run as
//! far as the result takes part in it; the call is a child, and the parent of what the agent does.

use ringer_base::error::Result;
use ringer_engine::EffectTime;
use ringer_model::result::ResultDoc;
use ringer_provider::otlp::{SpanId, TraceId};
use ringer_store::{Row, Session};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Conversations;
use crate::Settings;

/// Metadata of a result that names its trace.
pub(crate) const TRACE_NOTE: &str = "trace_id";
/// Header field of the trace context (W3C Trace Context, section 3.2).
pub(crate) const TRACEPARENT: &str = "traceparent";
/// Table of the times of the work for conversations.
pub(crate) const EFFECTS: &str = "effects";
/// Name of the span of the run.
pub(crate) const RUN: &str = "run";
/// Name of the span of the call.
pub(crate) const CALL: &str = "call";

/// Returns the identifier of the span that has this name in a trace.
pub(crate) fn span_id(trace: &TraceId, name: &str) -> SpanId {
    let mut hash = Sha256::new();
    hash.update(trace);
    hash.update(name);
    let mut id = SpanId::default();
    id.copy_from_slice(&hash.finalize()[..8]);
    id
}

/// Returns the value of the header `traceparent` whose parent is the call; `None`: the digits are no trace.
pub(crate) fn traceparent(trace: &str) -> Option<String> {
    let id = span_id(&read_trace(trace)?, CALL);
    // Sampled: its spans are sent.
    Some(format!("00-{trace}-{}-01", hex::encode(id)))
}

/// Returns the trace of hexadecimal digits.
pub(crate) fn read_trace(digits: &str) -> Option<TraceId> {
    hex::decode(digits).ok()?.try_into().ok()
}

impl Settings {
    /// Returns the value of the header `traceparent` for the agent of a result, whose trace is made where there is
    /// none; `None`: agents are told no trace context.
    pub(crate) async fn traceparent_of(&self, db: &mut Session, row: &Row<ResultDoc>) -> Result<Option<String>> {
        if !self.telemetry.propagate {
            return Ok(None);
        }
        let trace = db.make_trace(row.id, row.doc.body.attempt).await?;
        Ok(traceparent(&trace))
    }
}

impl Conversations {
    /// True if traces are sent to a collector.
    pub fn sends_traces(&self) -> bool {
        self.settings.telemetry.otlp_endpoint.is_some()
    }

    /// Stores the times of the work for a conversation.
    pub(crate) async fn store_effects(&self, organization: &str, result_id: i64, effects: &[EffectTime]) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        db.put_text(EFFECTS, result_id, &effects).await?;
        db.commit().await
    }

    /// Notes the trace of a result in its metadata, where results have traces.
    pub(crate) async fn note_trace(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
        if self.settings.telemetry.is_on() && row.doc.find_note(TRACE_NOTE).is_none() {
            let trace = db.make_trace(row.id, row.doc.body.attempt).await?;
            row.doc.note(TRACE_NOTE, json!(trace));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_is_the_parent_that_is_told() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let told = traceparent(trace).expect("it is a trace");
        let call = hex::encode(span_id(&read_trace(trace).expect("it is a trace"), CALL));
        assert_eq!(told, format!("00-{trace}-{call}-01"));
        assert_ne!(span_id(&[1; 16], CALL), span_id(&[1; 16], RUN));
        assert_ne!(span_id(&[1; 16], CALL), span_id(&[2; 16], CALL));
        assert_eq!((traceparent("0af7"), traceparent("zz")), (None, None));
    }
}
