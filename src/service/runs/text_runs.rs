//! Text conversations: queueing them, and what their agents send while they go on.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::result::{PostedToolCall, ResultDoc};
use ringer_model::run::{AgentWanted, Purpose, QueueAnswer};
use ringer_model::status::ResultStatus;
use ringer_model::text::{AgentMessage, Arrived, INBOX_MOST, MessageTaken, TextQueueSpec};
use ringer_model::time::Timestamp;
use ringer_store::queue::CallJob;
use ringer_store::{Row, Session};

use super::Runs;
use crate::Caller;
use crate::conversation::facts::{is_written, met_agent};
use crate::conversation::privacy::{redact_doc, redactor_of};

/// Refusal of a message that comes after the end.
pub(crate) const ENDED: &str = "Conversation has already ended";

/// New status, messages and tool calls of a result since a conversation last looked.
#[derive(Clone, Debug, PartialEq)]
pub struct TextNews {
    /// Current status of the result.
    pub status: ResultStatus,
    /// Time of that status, in milliseconds since 1970.
    pub since_ms: i64,
    /// Messages of the agent.
    pub messages: Vec<Arrived>,
    /// Tools that it called.
    pub calls: Vec<PostedToolCall>,
}

impl Runs {
    /// Queues a run as [`Runs::queue_simulation_run`] does, for agents that write over HTTP.
    pub async fn queue_http_text_run(&self, caller: &Caller, spec: TextQueueSpec) -> Result<QueueAnswer> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let purpose = Purpose { agent: AgentWanted::HttpText, ..Purpose::default() };
        let answer = self.queue_in(&mut db, caller, spec.general(), purpose).await?;
        db.answer(answer).await
    }

    /// Takes a message or a tool call of the agent into its conversation.
    pub async fn take_message(&self, caller: &Caller, message: AgentMessage) -> Result<MessageTaken> {
        let (AgentMessage::Message { simulation_result_id, message_id, .. }
        | AgentMessage::ToolCall { simulation_result_id, message_id, .. }) = &message;
        let id = simulation_result_id.get().ok_or(Error::NotFound("Simulation result"))?;
        let message_id = message_id.clone();
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<ResultDoc>(id).await?;
        let taken = |end_conversation| MessageTaken {
            simulation_result_id: id.to_string(),
            status: "success".into(),
            end_conversation,
        };
        let is_over = !(row.doc.body.status.is_early() || row.doc.body.status == ResultStatus::Running);
        if message_id.as_ref().is_some_and(|known| row.doc.inbox.knows(known)) {
            return Ok(taken(row.doc.inbox.closed));
        }
        if is_over || row.doc.inbox.ended {
            return Err(Error::Refused(ENDED.into()));
        }
        if !met_agent(&mut db, &row.doc).await?.is_some_and(|agent| agent.is_http_text()) {
            return Err(Error::Refused("Simulation result is not an HTTP text conversation".into()));
        }
        if row.doc.inbox.messages.len() + row.doc.inbox.call_ids.len() >= INBOX_MOST {
            return Err(Error::Refused("Conversation holds too many messages".into()));
        }
        let now = self.clock.now_ms();
        let end = match message {
            // An answer to the Digital Human's last words is kept while the conversation is open, and not answered.
            AgentMessage::Message { message, end_turn, end_conversation, .. } => {
                let (more, ends) = (!end_turn, end_conversation);
                row.doc.inbox.messages.push(Arrived { at_ms: now, message_id, text: message, more, ends });
                row.doc.inbox.closed |= ends;
                row.doc.inbox.ended |= ends;
                row.doc.inbox.closed
            }
            AgentMessage::ToolCall { name, parameters, output, .. } => {
                row.doc.inbox.call_ids.extend(message_id);
                self.hear_call(&mut db, &mut row, name, parameters, output).await?;
                row.doc.inbox.closed
            }
        };
        db.update(id, &row.doc, now, Some(caller.author())).await?;
        let answer = db.answer(taken(end)).await?;
        self.live.note_change(id);
        Ok(answer)
    }

    /// Keeps the tools that an agent called while it answered.
    pub async fn hear_calls(
        &self,
        organization: &str,
        result_id: i64,
        calls: Vec<(String, Option<Object>, serde_json::Value)>,
    ) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        for (name, parameters, output) in calls {
            self.hear_call(&mut db, &mut row, name, parameters, output).await?;
        }
        db.update(result_id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await
    }

    async fn hear_call(
        &self,
        db: &mut Session,
        row: &mut Row<ResultDoc>,
        name: String,
        parameters: Option<Object>,
        output: serde_json::Value,
    ) -> Result<()> {
        let began = row.doc.body.start_time.map(|Timestamp(began)| began);
        let start_offset_ms = began.map_or(0, |began| (self.clock.now_ms() - began).max(0));
        let call = PostedToolCall { name, start_offset_ms, description: None, parameters, output };
        row.doc.heard_calls.push(call);
        if let Some(redactor) = redactor_of(db, &row.doc).await? {
            redact_doc(&mut row.doc, &redactor)?;
        }
        self.evaluations.regroup_calls(db, row).await
    }

    /// True if a conversation that has not begun is not to be held as its job says, in writing or in speech. Its agent
    /// was changed since the job was put.
    pub async fn is_held_otherwise(&self, job: &CallJob, written: bool) -> Result<bool> {
        let mut db = self.store.org(&job.organization).read().await?;
        let Some(row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(false) };
        let waits = matches!(row.doc.body.status, ResultStatus::Initializing | ResultStatus::Queued);
        Ok(waits && is_written(&mut db, &row.doc).await? != written)
    }

    /// Returns the status, and the messages and tool calls that follow the given counts.
    pub async fn text_news(
        &self,
        organization: &str,
        result_id: i64,
        messages: usize,
        calls: usize,
    ) -> Result<TextNews> {
        let doc = self.store.org(organization).read().await?.get::<ResultDoc>(result_id).await?.doc;
        let since = doc.body.status_history.last().map(|change| change.at.0);
        Ok(TextNews {
            status: doc.body.status,
            since_ms: since.unwrap_or_default(),
            messages: doc.inbox.messages.get(messages..).unwrap_or_default().to_vec(),
            calls: doc.heard_calls.get(calls..).unwrap_or_default().to_vec(),
        })
    }
}
