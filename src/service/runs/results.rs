//! Results: reading, adding to, ending and deleting them.

use std::collections::{HashMap, HashSet};

use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_model::api_key::Scope;
use ringer_model::issue::SourceKind;
use ringer_model::result::{QueueReason, ResultDoc, ResultRecord, UpdateResultSpec};
use ringer_model::status::ResultStatus;
use ringer_store::Row;
use ringer_store::queue::EvaluateJob;
use schemars::JsonSchema;
use serde::Serialize;

use super::Runs;
use crate::Caller;
use crate::conversation::privacy::{redact_doc, redactor_of};
use crate::conversation::stream_address::hide_token;
use crate::evaluation::records::recount_word_errors;
use crate::evaluation::trust::note_cards;
use crate::spending::note_usage;

/// Response to adding to a result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResultUpdated {
    /// Always the text `success`.
    pub status: String,
    /// Confirmation in words, for display.
    pub message: String,
}

/// Response to ending conversations.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConversationsEnded {
    /// True when none failed.
    pub success: bool,
    /// Number of conversations that were asked to end.
    pub ended_count: i64,
    /// Ids of the results that were asked to end.
    pub test_result_ids: Vec<i64>,
    /// Ids of results that were not running; null when there are none.
    pub failed_ids: Option<Vec<i64>>,
    /// Confirmation in words, for display.
    pub message: String,
}

/// Response to hanging up a call.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HungUp {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Status of the result after the request.
    pub status: ResultStatus,
}

/// Response to deleting a result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResultDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted result.
    pub deleted_simulation_result_id: i64,
}

/// Response to asking for a new evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReEvaluation {
    /// Always the text `success`.
    pub status: String,
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Confirmation in words, for display.
    pub message: String,
}

impl Runs {
    /// Returns one result of the caller's organization.
    pub async fn result(&self, caller: &Caller, result_id: i64) -> Result<ResultRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        note_cards(&mut db, self.evaluations.least(), vec![&mut row.doc.body]).await?;
        note_usage(&mut row, &db.use_of_result(result_id).await?);
        let reasons = self.conversations.queue_reasons(&mut db, std::slice::from_ref(&row)).await?;
        Ok(self.result_record(row, &reasons, caller))
    }

    /// Adds what the agent's owner knows. Tool calls and transcripts that come after the evaluation are judged again.
    pub async fn update_result(&self, caller: &Caller, spec: UpdateResultSpec) -> Result<ResultUpdated> {
        let id = spec.simulation_result_id.get().ok_or(Error::NotFound("Simulation result"))?;
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<ResultDoc>(id).await?;
        let (calls_changed, words_changed) = (spec.tool_calls.is_some(), spec.recorded_transcript.is_some());
        add(&mut row.doc, spec);
        if let Some(redactor) = redactor_of(&mut db, &row.doc).await? {
            redact_doc(&mut row.doc, &redactor)?;
        }
        if calls_changed {
            self.evaluations.regroup_calls(&mut db, &mut row).await?;
        }
        if words_changed {
            recount_word_errors(&mut db, &mut row).await?;
        }
        db.update(id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        // A call of a tool that failed is an issue, whenever it is told of.
        if calls_changed && row.doc.body.status.is_terminal() {
            Box::pin(self.outbox.announce_finished(&mut db, SourceKind::Simulation, id)).await?;
        }
        self.conversations.complete_run(&mut db, row.doc.body.simulation_run_id).await?;
        db.answer(ResultUpdated { status: "success".into(), message: "Simulation result updated".into() }).await
    }

    /// Ends running conversations; results in any other state fail.
    pub async fn end_conversations(&self, caller: &Caller, result_ids: &[i64]) -> Result<ConversationsEnded> {
        let mut running = Vec::with_capacity(result_ids.len());
        {
            let mut db = self.store.org(&caller.organization).read().await?;
            for id in result_ids {
                let row = db.find::<ResultDoc>(*id).await?;
                running.push(row.is_some_and(|row| row.doc.body.status == ResultStatus::Running));
            }
        }
        let (mut ended, mut failed) = (vec![], vec![]);
        for (id, running) in result_ids.iter().zip(running) {
            let has_ended = match running {
                true => self.end_running(caller, *id).await,
                false => Ok(false),
            };
            match has_ended {
                Ok(true) => ended.push(*id),
                // An engine that cannot be reached does not keep the others from ending theirs.
                Ok(false) | Err(Error::NotReachable(_)) => failed.push(*id),
                Err(error) => return Err(error),
            }
        }
        Ok(ConversationsEnded {
            success: failed.is_empty(),
            ended_count: ended.len() as i64,
            message: format!("Ended {} conversation(s)", ended.len()),
            test_result_ids: ended,
            failed_ids: (!failed.is_empty()).then_some(failed),
        })
    }

    /// Ends one conversation, or cancels it when it has not begun.
    pub async fn hangup(&self, caller: &Caller, result_id: i64) -> Result<HungUp> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let before = row.doc.body.status;
        if before.is_terminal() {
            return Err(Error::Conflict("Simulation result is already finished".into()));
        }
        if before.is_early() {
            self.conversations.cancel(&mut db, &mut row).await?;
        }
        db.commit().await?;
        self.live.note_change(result_id);
        let mut status = row.doc.body.status;
        if before == ResultStatus::Dispatched {
            self.conversations.hang_up_cancelled(result_id, EndReason::Cancelled).await;
        }
        if before == ResultStatus::Running && self.end_running(caller, result_id).await? {
            status = ResultStatus::ConversationEnded;
        }
        Ok(HungUp { simulation_result_id: result_id, status })
    }

    /// Asks a running conversation to end: from now on it takes no message. False when no process holds it, and it is
    /// not by mail.
    async fn end_running(&self, caller: &Caller, result_id: i64) -> Result<bool> {
        if self.conversations.end_mail_thread(&caller.organization, result_id).await? {
            return Ok(true);
        }
        if !self.conversations.hang_up(result_id, EndReason::ApiHangup).await? {
            return Ok(false);
        }
        match self.conversations.amend(&caller.organization, result_id, |doc| doc.inbox.ended = true).await {
            // It was deleted as soon as it was over.
            Err(Error::NotFound(_)) => Ok(true),
            amended => amended.map(|_| true),
        }
    }

    /// Deletes a result with its files.
    pub async fn delete_result(&self, caller: &Caller, result_id: i64) -> Result<ResultDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        if !row.doc.body.status.is_terminal() {
            return Err(Error::Conflict("Simulation result is still running".into()));
        }
        db.delete::<ResultDoc>(result_id).await?;
        self.conversations.complete_run(&mut db, row.doc.body.simulation_run_id).await?;
        db.commit().await?;
        self.settings.remove_result_files(&[result_id]).await;
        Ok(ResultDeleted {
            message: "Simulation result deleted successfully".into(),
            deleted_simulation_result_id: result_id,
        })
    }

    /// Asks for a new evaluation of a finished result; the old one stays until then.
    pub async fn re_evaluate(&self, caller: &Caller, result_id: i64) -> Result<ReEvaluation> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        if !row.doc.body.status.is_terminal() {
            return Err(Error::Conflict("Simulation result is not finished".into()));
        }
        let now = self.clock.now_ms();
        let job = EvaluateJob { organization: caller.organization.clone(), result_id, serial: now };
        db.put(&job, now, None).await?;
        db.answer(ReEvaluation {
            status: "success".into(),
            simulation_result_id: result_id,
            message: "Re-evaluation queued".into(),
        })
        .await
    }

    /// Returns a result as `caller` reads it: links are made absolute where the server knows its address. An address
    /// that lets an agent in is a secret, which keys that only read do not get.
    pub(crate) fn result_record(
        &self,
        row: Row<ResultDoc>,
        reasons: &HashMap<i64, QueueReason>,
        caller: &Caller,
    ) -> ResultRecord {
        let queue_reason = reasons.get(&row.id).copied();
        let queue_reason_text = queue_reason.map(|reason| self.conversations.queue_text(reason));
        let mut body = row.doc.body;
        if !caller.scope.covers(Scope::Write) {
            hide_token(&mut body.metadata);
        }
        if let Some(base) = &self.settings.public_url {
            for link in [&mut body.transcript_url, &mut body.audio_url].into_iter().flatten() {
                link.insert_str(0, base);
            }
        }
        ResultRecord { id: row.id, queue_reason, queue_reason_text, body }
    }
}

/// Lays what was posted over a result.
fn add(doc: &mut ResultDoc, spec: UpdateResultSpec) {
    doc.body.events.extend(spec.events.unwrap_or_default());
    if let Some(calls) = spec.tool_calls {
        doc.posted_calls = calls;
    }
    if spec.recorded_transcript.is_some() {
        doc.recorded_transcript = spec.recorded_transcript;
    }
    add_new(&mut doc.body.tags, spec.tags);
    add_new(&mut doc.body.trace_ids, spec.trace_ids);
    doc.post_metadata(spec.metadata.unwrap_or_default());
}

fn add_new(list: &mut Vec<String>, more: Option<Vec<String>>) {
    let mut known: HashSet<String> = list.iter().cloned().collect();
    list.extend(more.unwrap_or_default().into_iter().filter(|entry| known.insert(entry.clone())));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_update(mut body: serde_json::Value) -> UpdateResultSpec {
        body["simulation_result_id"] = "1".into();
        serde_json::from_value(body).expect("an update")
    }

    #[test]
    fn what_is_new_is_added_in_order() {
        let mut doc = ResultDoc::default();
        doc.body.tags = ["old", "kept"].map(str::to_owned).to_vec();
        doc.note("codec", json!("PCMU"));
        add(&mut doc, parse_update(json!({"tags": ["b", "old", "b", "a"], "metadata": {"codec": 1, "x": 2}})));
        add(&mut doc, parse_update(json!({"metadata": {"x": 3, "codec": 4}})));
        assert_eq!(doc.body.tags, ["old", "kept", "b", "a"]);
        assert_eq!(json!(doc.body.metadata), json!({"codec": 4, "engine.codec": "PCMU", "x": 3}));
        assert_eq!(doc.posted_keys, ["codec", "x"]);
    }

    #[test]
    fn long_lists_are_added_without_a_search_for_each_entry() {
        let names: Vec<String> = (0..500_000).map(|at| format!("entry {at}")).collect();
        let members: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!(1))).collect();
        let update = || parse_update(json!({"tags": names, "trace_ids": names, "metadata": members}));
        let mut doc = ResultDoc::default();
        add(&mut doc, update());
        add(&mut doc, update());
        assert!(doc.body.tags == names && doc.body.trace_ids == names && doc.posted_keys == names);
        assert_eq!(doc.body.metadata.len(), names.len());
    }
}
