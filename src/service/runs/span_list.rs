//! The spans that the agent of a conversation has sent, on the clock of the call.

use ringer_base::error::{Error, Result};
use ringer_model::agent_span::{AgentSpanDoc, AgentSpanOut};
use ringer_model::result::ResultDoc;
use schemars::JsonSchema;
use serde::Serialize;

use super::Runs;
use crate::Caller;
use crate::conversation::artifacts::is_hidden;

/// Spans of the agent of a result, by start.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpanList {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Trace of the result as 32 hexadecimal digits; null: it has none.
    pub trace_id: Option<String>,
    /// Spans of the agent, by start.
    pub spans: Vec<AgentSpanOut>,
}

impl SpanList {
    /// Returns the list without the attributes of its spans.
    pub fn without_attributes(mut self) -> SpanList {
        self.spans.iter_mut().for_each(|span| span.attributes.clear());
        self
    }
}

impl Runs {
    /// Returns the spans of the agent of a result on the clock of its call, by start.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] while what is private is still in the conversation.
    pub async fn span_list(&self, caller: &Caller, result_id: i64) -> Result<SpanList> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        if is_hidden(&row.doc, caller) {
            return Err(Error::NotAvailable("Spans not available".into()));
        }
        let trace_id = db.find_trace(result_id, row.doc.body.attempt).await?;
        let docs: Vec<AgentSpanDoc> = db.agent_spans(result_id).await?;
        let mut spans: Vec<AgentSpanOut> = docs.into_iter().map(|doc| doc.at(row.doc.body.start_time)).collect();
        let start = |span: &AgentSpanOut| span.start_offset_ms.unwrap_or(f64::MAX);
        spans.sort_by(|one, other| start(one).total_cmp(&start(other)));
        Ok(SpanList { simulation_result_id: result_id, trace_id, spans })
    }
}
