//! Call logs: calls that an agent held in production. Brought in, evaluated by a job, listed, changed and deleted.

mod private;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer_base::error::{Error, Result};
use ringer_judge::Metric;
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::call_log::{
    CallLogDoc, CallLogRecord, CallLogStatus, CallRequest, CallSpec, LogRange, RecognizedSpeech, UpdateLogSpec,
};
use ringer_model::evaluation::Evaluation;
use ringer_model::issue::SourceKind;
use ringer_model::patch::Patch;
use ringer_model::result::{MetricValue, beside};
use ringer_model::time::Timestamp;
use ringer_model::transcript::TranscriptEntry;
use ringer_store::queue::CallLogJob;
use ringer_store::{LogFilter, Row, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use uuid::Uuid;

pub(crate) use self::private::{redact_call, redactor_of};
use super::Evaluations;
use super::material::{metrics_of_log, prompt_of};
use crate::Caller;
use crate::conversation::artifacts::{CALL_RECORDING, unfinished_name};
use crate::files::{CALLS_FOLDER, call_owner};
use crate::library::field_rules;
use crate::library::limits::{check_upload, upload_limit};
use crate::library::metrics::check_selected;

/// File name extensions that a recording's URL may have.
const AUDIO_ENDINGS: [&str; 6] = ["mp3", "mp4", "wav", "m4a", "flac", "ogg"];
/// File name extensions that a transcript's URL may have.
const TEXT_ENDINGS: [&str; 1] = ["json"];
const DAY_MS: i64 = 86_400_000;

/// Response to a call that was sent in for evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallQueued {
    /// Always the text `success`.
    pub status: String,
    /// Id of the call log.
    pub call_id: String,
    /// Confirmation in words, for display.
    pub message: String,
    /// Note of what was done differently than asked; null when nothing was.
    pub warning: Option<String>,
}

/// Filter and page of the call logs to list.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct CallLogQuery {
    /// Label of the calls to list; absent: all.
    #[serde(default)]
    pub label: Option<String>,
    /// Largest number of entries on a page, 1 to 100; 20 by default.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    pub page_size: i64,
    /// Number of the page to return, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub page: i64,
    /// Age of the calls to list, such as `7days`; `1day` by default.
    #[serde(default)]
    pub last: LogRange,
}

fn twenty() -> i64 {
    20
}

fn first() -> i64 {
    1
}

/// A page of call logs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallLogPage {
    /// Call logs of this page, newest first.
    pub call_logs: Vec<CallLogRecord>,
    /// Rows on all pages.
    pub total_count: i64,
    /// Number of this page, from 1.
    pub page: i64,
    /// Largest number of entries on a page.
    pub page_size: i64,
    /// Total number of pages.
    pub total_pages: i64,
}

/// Response to changing a call log.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LogUpdated {
    /// Confirmation in words, for display.
    pub message: String,
    /// Always the text `200`.
    pub status: String,
}

/// Response to deleting a call log.
pub type LogDeleted = LogUpdated;

/// Response to deleting several call logs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LogsDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Number of call logs that were deleted.
    pub deleted_count: i64,
    /// Always the text `200`.
    pub status: String,
}

/// A call that is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct CallLogWork {
    /// Call to evaluate, as it was sent in.
    pub call: CallSpec,
    /// Custom metrics that it is judged by.
    pub metrics: Vec<Metric>,
    /// Prompt of the agent version that held the call.
    pub agent_prompt: String,
}

/// Results of evaluating a production call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogEvaluated {
    /// Null where there was nothing to measure.
    pub evaluation: Option<Evaluation>,
    /// Every metric that has a value.
    pub metrics: Vec<MetricValue>,
    /// Length of the call.
    pub duration_ms: i64,
    /// Names what was not available, such as the recording; `None` when nothing was missing.
    pub error_message: Option<String>,
    /// Further remarks, shown in the call's metadata.
    pub notes: Object,
    /// Transcript entries in which private parts are looked for.
    pub said: Vec<TranscriptEntry>,
    /// Speech that was recognized in the recording; `None`: it was not transcribed.
    pub recognized: Option<Vec<RecognizedSpeech>>,
}

impl Evaluations {
    /// Brings in a call and asks for its evaluation.
    pub async fn evaluate_call(&self, caller: &Caller, request: CallRequest) -> Result<CallQueued> {
        let (agent_id, external_agent_id, mut call) = match request {
            CallRequest::UsingAgentId(by) => (by.agent_id.get(), None, by.call),
            CallRequest::UsingExternalAgentId(by) => (None, Some(by.external_agent_id), by.call),
        };
        let mut db = self.store.org(&caller.organization).read().await?;
        let agent_id = match &external_agent_id {
            Some(external) => db.by::<AgentDoc>("external_id", external.as_str()).await?.first().map(|row| row.id),
            None => agent_id,
        };
        let agent = db.get::<AgentDoc>(agent_id.ok_or(Error::NotFound("Agent"))?).await?;
        let (agent_id, private) = (agent.id, agent.doc.spec.redact_pii);
        check_selected(&mut db, call.custom_metrics.as_deref()).await?;
        self.conversations.check_minutes(&mut db).await?;
        drop(db);
        self.check_call(&call)?;
        let urls = [("recording_url", &call.recording_url), ("transcript_url", &call.transcript_url)];
        let urls = urls.into_iter().filter_map(|(field, url)| Some((field.to_owned(), url.clone()?)));
        field_rules::look(&urls.collect::<Vec<_>>(), &self.settings, self.poster.guard()).await?;
        let kept = self.keep_recording(caller, &mut call).await?;
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        let (version, warning) =
            self.library.version_to_judge(&mut db, caller, agent_id, call.version, &call.label).await?;
        let created_ms = call.created_at.map_or(now, |at| at.ms());
        let doc = CallLogDoc {
            agent_id,
            external_agent_id,
            call,
            agent_version_id: Some(version),
            status: CallLogStatus::Queued,
            duration_ms: 0,
            evaluations: Vec::new(),
            metrics: Vec::new(),
            error_message: None,
            notes: Object::new(),
            private,
            recognized: None,
            is_counted: false,
        };
        let call_id = db.insert(&doc, created_ms, Some(caller.author())).await?;
        if let Some(kept) = kept {
            let folder = self.settings.call_folder(call_id);
            tokio::fs::create_dir_all(&folder).await.map_err(Error::internal)?;
            tokio::fs::rename(&kept, folder.join(CALL_RECORDING)).await.map_err(Error::internal)?;
        }
        let job = CallLogJob { organization: caller.organization.clone(), call_id, serial: now };
        db.put(&job, now, None).await?;
        let message = "Call queued for evaluation".to_owned();
        db.answer(CallQueued { status: "success".into(), call_id: call_id.to_string(), message, warning }).await
    }

    /// Returns a page of the call logs of an agent.
    pub async fn call_logs(&self, caller: &Caller, agent_id: &str, query: &CallLogQuery) -> Result<CallLogPage> {
        let agent_id: i64 = agent_id.parse().map_err(|_| Error::NotFound("Agent"))?;
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let since_ms = query.last.days().map(|days| self.clock.now_ms() - days * DAY_MS);
        let filter = LogFilter { agent_id, label: query.label.as_deref(), since_ms };
        let total_count = db.count_logs(&filter).await?;
        let (page, page_size) = (query.page, query.page_size);
        let items = db.logs(&filter, page_size, (page - 1).saturating_mul(page_size)).await?;
        let page = ringer_model::Page { items, total_count, page, page_size };
        Ok(CallLogPage {
            total_pages: page.total_pages(),
            call_logs: page.items.into_iter().map(record_of).collect(),
            total_count,
            page: page.page,
            page_size,
        })
    }

    /// Returns one call log of the caller's organization.
    pub async fn call_log(&self, caller: &Caller, call_id: &str) -> Result<CallLogRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        find(&mut db, call_id).await.map(record_of)
    }

    /// Adds what the agent's owner knows; null clears.
    pub async fn update_log(&self, caller: &Caller, call_id: &str, patch: &Patch<UpdateLogSpec>) -> Result<LogUpdated> {
        let given = |field: &str| patch.fields().contains_key(field);
        let spec: UpdateLogSpec =
            serde_json::from_value(Value::Object(patch.fields().clone())).map_err(Error::internal)?;
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = find(&mut db, call_id).await?;
        let call = &mut row.doc.call;
        if given("tool_calls") {
            call.tool_calls = spec.tool_calls;
        }
        match spec.events {
            Some(more) => call.events.get_or_insert_default().extend(more),
            None if given("events") => call.events = None,
            None => {}
        }
        match spec.metadata {
            Some(more) => call.metadata.get_or_insert_default().extend(more),
            None if given("metadata") => call.metadata = None,
            None => {}
        }
        if let Some(redactor) = redactor_of(&mut db, row.doc.agent_id).await? {
            match spec.reevaluate || !row.doc.status.is_final() {
                // A call that is still to be judged is judged as it is.
                true => row.doc.private = true,
                false => redact_call(&mut row.doc, &redactor)?,
            }
        }
        match spec.reevaluate {
            true => self.queue_log(&mut db, caller, row).await?,
            false => {
                db.update(row.id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
                if given("tool_calls") && row.doc.status.is_final() {
                    Box::pin(self.outbox.announce_finished(&mut db, SourceKind::Observability, row.id)).await?;
                }
            }
        }
        db.commit().await?;
        Ok(confirmation("Call log updated"))
    }

    /// Asks for a new evaluation; the old one stays until then.
    pub async fn re_evaluate_log(&self, caller: &Caller, call_id: &str) -> Result<CallQueued> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = find(&mut db, call_id).await?;
        let call_id = row.id.to_string();
        self.queue_log(&mut db, caller, row).await?;
        let message = "Re-evaluation queued".to_owned();
        db.answer(CallQueued { status: "success".into(), call_id, message, warning: None }).await
    }

    /// Deletes a call log, or its recording alone.
    pub async fn delete_log(&self, caller: &Caller, call_id: &str, recording_only: bool) -> Result<LogDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = find(&mut db, call_id).await?;
        if recording_only {
            row.doc.call.recording_url = None;
            db.update(row.id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        } else {
            db.delete::<CallLogDoc>(row.id).await?;
        }
        db.commit().await?;
        self.settings.remove_call_files(row.id).await;
        Ok(confirmation(if recording_only { "Recording deleted" } else { "Call log deleted" }))
    }

    /// Deletes call logs; ids that are none do not matter.
    pub async fn delete_logs(&self, caller: &Caller, call_ids: &[String]) -> Result<LogsDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut deleted = Vec::new();
        for id in call_ids.iter().filter_map(|id| Uuid::parse_str(id).ok()) {
            if db.delete::<CallLogDoc>(id).await? {
                deleted.push(id);
            }
        }
        db.commit().await?;
        for id in &deleted {
            self.settings.remove_call_files(*id).await;
        }
        let message = format!("{} call log(s) deleted", deleted.len());
        Ok(LogsDeleted { message, deleted_count: deleted.len() as i64, status: "200".into() })
    }

    /// Returns a call that is to be evaluated, and where its recording is, or is to be put; `None` when it was deleted.
    pub async fn log_to_evaluate(&self, job: &CallLogJob) -> Result<Option<(CallSpec, PathBuf)>> {
        let row = self.store.org(&job.organization).read().await?.find::<CallLogDoc>(job.call_id).await?;
        if row.is_some() {
            self.settings.bring(&call_owner(job.call_id)).await?;
        }
        Ok(row.map(|row| (row.doc.call, self.settings.call_folder(row.id).join(CALL_RECORDING))))
    }

    /// Returns the bias words of the agent of a call; none when it was deleted.
    pub async fn keyterms_of_log(&self, job: &CallLogJob) -> Result<Vec<String>> {
        let mut db = self.store.org(&job.organization).read().await?;
        let Some(log) = db.find::<CallLogDoc>(job.call_id).await? else { return Ok(Vec::new()) };
        let agent = db.find::<AgentDoc>(log.doc.agent_id).await?;
        Ok(agent.map(|agent| agent.doc.spec.keyterms).unwrap_or_default())
    }

    /// Returns the largest recording in bytes that an organization may have fetched; `None`: no limit of its own.
    pub async fn recording_limit(&self, organization: &str) -> Result<Option<u64>> {
        upload_limit(&self.settings, &mut self.store.org(organization).read().await?).await
    }

    /// Begins the evaluation of a call; `None` when it was deleted.
    pub async fn begin_log(&self, job: &CallLogJob) -> Result<Option<CallLogWork>> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<CallLogDoc>(job.call_id).await? else {
            drop(db);
            self.settings.remove_call_files(job.call_id).await;
            return Ok(None);
        };
        row.doc.status = CallLogStatus::Evaluating;
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        let metrics = metrics_of_log(&mut db, row.doc.agent_id, &row.doc.call).await?;
        let agent_prompt = prompt_of(&mut db, row.doc.agent_version_id).await?;
        db.commit().await?;
        Ok(Some(CallLogWork { call: row.doc.call, metrics, agent_prompt }))
    }

    /// Keeps what the evaluation of a call gave.
    pub async fn finish_log(&self, job: &CallLogJob, mut found: LogEvaluated) -> Result<()> {
        let redacted = self.redact_evaluated(job, &mut found).await?;
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<CallLogDoc>(job.call_id).await? else {
            drop(db);
            self.settings.remove_call_files(job.call_id).await;
            return Ok(());
        };
        let LogEvaluated { mut evaluation, metrics, duration_ms, error_message, notes, recognized, .. } = found;
        (row.doc.notes, row.doc.recognized) = (notes, recognized);
        if let (Some(new), Some(old)) = (&mut evaluation, row.doc.evaluations.first()) {
            new.keep_human_fields(old);
        }
        row.doc.status = match error_message {
            None => CallLogStatus::Completed,
            Some(_) => CallLogStatus::Incompleted,
        };
        row.doc.evaluations = evaluation.into_iter().collect();
        (row.doc.metrics, row.doc.duration_ms, row.doc.error_message) = (metrics, duration_ms, error_message);
        if let Some((redactor, warning)) = redacted {
            redact_call(&mut row.doc, &redactor)?;
            let messages = [row.doc.error_message.take(), warning.map(str::to_owned)];
            row.doc.error_message = messages.into_iter().flatten().reduce(|all, more| format!("{all}; {more}"));
        }
        row.doc.private = false;
        // An evaluation that is asked for again uses no minutes.
        if row.doc.status == CallLogStatus::Completed && !std::mem::replace(&mut row.doc.is_counted, true) {
            self.conversations.count_evaluated(&mut db, duration_ms).await?;
        }
        self.close_log(db, row).await
    }

    /// Keeps a call whose evaluation is over, and tells of it.
    pub(crate) async fn close_log(&self, mut db: Session, row: Row<CallLogDoc>) -> Result<()> {
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        self.outbox.announce_finished(&mut db, SourceKind::Observability, row.id).await?;
        self.settings.ask_to_store(&mut db, call_owner(row.id), self.clock.now_ms()).await?;
        let (agent_id, tag) = (row.doc.agent_id, row.doc.call.webhook_tag.clone());
        if let Value::Object(call_log) = serde_json::to_value(record_of(row)).map_err(Error::internal)? {
            self.outbox.tell_call(&mut db, agent_id, tag.as_deref(), call_log).await?;
        }
        db.commit().await
    }

    async fn queue_log(&self, db: &mut Session, caller: &Caller, mut row: Row<CallLogDoc>) -> Result<()> {
        let now = self.clock.now_ms();
        row.doc.status = CallLogStatus::Queued;
        db.update(row.id, &row.doc, now, Some(caller.author())).await?;
        let job = CallLogJob { organization: caller.organization.clone(), call_id: row.id, serial: now };
        db.put(&job, now, None).await
    }

    fn check_call(&self, call: &CallSpec) -> Result<()> {
        for (field, url, endings) in [
            ("recording_url", &call.recording_url, &AUDIO_ENDINGS[..]),
            ("transcript_url", &call.transcript_url, &TEXT_ENDINGS[..]),
        ] {
            let Some(text) = url else { continue };
            check_ending(field, text, endings)?;
            field_rules::webhook(field, Some(text), &self.settings)?;
        }
        let has_words = call.transcript.as_ref().is_some_and(|entries| !entries.is_empty());
        if !has_words
            && call.transcript_url.is_none()
            && call.recording_url.is_none()
            && call.recording_base64.is_none()
        {
            return Err(Error::Refused("Either a transcript or a recording is required".into()));
        }
        Ok(())
    }

    /// Writes a recording that came with the request to a file of its own. The text is taken out of the call.
    async fn keep_recording(&self, caller: &Caller, call: &mut CallSpec) -> Result<Option<PathBuf>> {
        let Some(text) = call.recording_base64.take() else { return Ok(None) };
        let bytes = tokio::task::spawn_blocking(move || data_url(&text)).await.map_err(Error::internal)?;
        let bytes = bytes
            .ok_or_else(|| Error::Refused("recording_base64 must be a base64 data URL of an audio file".into()))?;
        let mut db = self.store.org(&caller.organization).read().await?;
        check_upload(&self.settings, &mut db, bytes.len() as u64).await?;
        drop(db);
        let folder = self.settings.data.join(CALLS_FOLDER);
        tokio::fs::create_dir_all(&folder).await.map_err(Error::internal)?;
        let path = folder.join(unfinished_name());
        tokio::fs::write(&path, bytes).await.map_err(Error::internal)?;
        Ok(Some(path))
    }
}

fn check_ending(field: &str, text: &str, endings: &[&str]) -> Result<()> {
    let path = Url::parse(text).map(|url| url.path().to_ascii_lowercase()).unwrap_or_default();
    let known = path.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending));
    if known {
        return Ok(());
    }
    let dotted: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
    let list = match dotted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => dotted.concat(),
    };
    Err(Error::Refused(format!("{field} must end in {list}")))
}

/// Returns the bytes of `data:TYPE;base64,...` (RFC 2397); `None` for anything else.
fn data_url(text: &str) -> Option<Vec<u8>> {
    let (kind, data) = text.strip_prefix("data:")?.split_once(',')?;
    if !kind.to_ascii_lowercase().ends_with(";base64") {
        return None;
    }
    STANDARD.decode(data.trim()).ok().filter(|bytes| !bytes.is_empty())
}

async fn find(db: &mut Session, call_id: &str) -> Result<Row<CallLogDoc>> {
    let id = Uuid::parse_str(call_id).map_err(|_| Error::NotFound("Call log"))?;
    db.get::<CallLogDoc>(id).await
}

fn confirmation(message: &str) -> LogUpdated {
    LogUpdated { message: message.to_owned(), status: "200".into() }
}

fn record_of(row: Row<CallLogDoc>) -> CallLogRecord {
    let CallLogDoc {
        agent_id,
        external_agent_id,
        mut call,
        status,
        duration_ms,
        evaluations,
        metrics,
        error_message,
        notes,
        private,
        recognized,
        ..
    } = row.doc;
    for (key, value) in notes {
        // A value given under this name stays.
        let metadata = call.metadata.get_or_insert_default();
        let key = if metadata.contains_key(&key) { beside(&key) } else { key };
        metadata.insert(key, value);
    }
    if private {
        (call.tool_calls, call.events) = (None, None);
    }
    CallLogRecord {
        id: row.id.to_string(),
        agent_id: agent_id.to_string(),
        external_agent_id,
        recording_url: call.recording_url,
        start_time_utc: call.start_time_utc,
        participants: call.participants,
        call_direction: call.call_direction,
        interface: call.interface,
        status,
        created_at: call.created_at.unwrap_or(Timestamp(row.created_ms).into()),
        transcript_url: call.transcript_url,
        tool_calls: call.tool_calls,
        events: call.events,
        tags: call.tags,
        duration_ms,
        evaluations,
        annotations: None,
        metadata: call.metadata,
        custom_metrics: call.custom_metrics,
        conversation_ended_by: call.conversation_ended_by,
        metrics,
        error_message,
        recognized: recognized.filter(|_| !private),
    }
}
