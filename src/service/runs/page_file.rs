//! All that a page shows of one conversation, or of a run with its conversations, for a file that is read without a
//! server.

use ringer_base::error::{Error, Result};
use ringer_model::agent::AgentDoc;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::result::ResultBody;
use ringer_model::verdict::VerdictWord;
use serde_json::{Value, json};

use super::Runs;
use super::run_list::{ResultChange, RunChanges};
use super::span_list::SpanList;
use crate::Caller;
use crate::conversation::peaks::{PeakStretch, Zoom};
use crate::conversation::transcode::{Packing, Track};

/// Largest recording that goes into a file, in bytes.
const MOST_AUDIO_BYTES: u64 = 12 * 1024 * 1024;
/// Most bytes of the data beside the recording: with it, in base64, the file stays below 20 MB.
const MOST_DATA_BYTES: usize = 2_500_000;
/// Longest recording whose outline is told in steps of 10 ms, in milliseconds; up to ten times as long, in steps of 100
/// ms.
const FINE_MS: i64 = 5 * 60 * 1000;

/// Space for sound below which no recording is packed.
const LEAST_AUDIO_BYTES: u64 = 16 * 1024;
/// Most conversations of a run that are whole in its file; the others stand in its list.
const MOST_CALLS: usize = 200;

/// A run with its conversations.
#[derive(Clone, Debug)]
pub struct RunFile {
    /// The run, and all its results as lists show them, those that did not pass first.
    pub data: Value,
    /// Conversations that fit, in the same order.
    pub calls: Vec<CallFile>,
}

/// One conversation with its recording.
#[derive(Clone, Debug)]
pub struct CallFile {
    /// Record, names of both sides, timeline, transcript, turns, spans, signalling, mails, reviews; null where there is
    /// none.
    pub data: Value,
    /// Outline of the recording.
    pub peaks: Option<PeakStretch>,
    /// Recording as Ogg Opus; `None`: there is none, or it is too long.
    pub audio: Option<Vec<u8>>,
}

impl Runs {
    /// Returns all that a page shows of a conversation that is over.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] before its end.
    pub async fn call_file(&self, caller: &Caller, result_id: i64) -> Result<CallFile> {
        self.call_file_within(caller, result_id, (MOST_DATA_BYTES, MOST_AUDIO_BYTES)).await
    }

    /// Returns a run with as many of its conversations as fit into a file, those that did not pass first.
    ///
    /// # Errors
    /// There is no such run, or a fault of the store.
    pub async fn run_file(&self, caller: &Caller, run_id: i64) -> Result<RunFile> {
        let RunChanges { run, mut results } = self.run_changes(caller, run_id, 0).await?;
        let rank = |one: &ResultChange| match one.verdict {
            Some(VerdictWord::Failed | VerdictWord::Unreachable) => 0,
            Some(VerdictWord::Passed) => 2,
            _ => 1,
        };
        results.sort_by_key(|one| (rank(one), one.id));
        let (mut data_bytes, mut audio_bytes) = (MOST_DATA_BYTES, MOST_AUDIO_BYTES);
        let mut calls = Vec::new();
        for one in results.iter().filter(|one| one.status.is_terminal()).take(MOST_CALLS) {
            let call = self.call_file_within(caller, one.id, (data_bytes, audio_bytes)).await?;
            let bytes = call.data.to_string().len();
            if bytes > data_bytes {
                break;
            }
            data_bytes -= bytes;
            audio_bytes -= call.audio.as_ref().map_or(0, |audio| audio.len() as u64);
            calls.push(call);
        }
        Ok(RunFile { data: json!({ "run": run, "results": results }), calls })
    }

    /// Returns what a page shows of a conversation within so many bytes of data and of sound.
    async fn call_file_within(
        &self,
        caller: &Caller,
        result_id: i64,
        (data_bytes, audio_bytes): (usize, u64),
    ) -> Result<CallFile> {
        let result = self.result(caller, result_id).await?;
        if !result.body.status.is_terminal() {
            return Err(Error::NotAvailable("Page not available".into()));
        }
        let (caller_name, agent_name) = self.names_of(caller, &result.body).await?;
        let mut data = json!({
            "result": result,
            "caller": caller_name,
            "agent": agent_name,
            "timeline": there(self.conversations.timeline(caller, result_id).await)?,
            "transcript": there(self.conversations.transcript(caller, result_id).await)?,
            "turns": there(self.turn_list(caller, result_id).await)?,
            "spans": there(self.span_list(caller, result_id).await.map(SpanList::without_attributes))?,
            "reviews": there(self.evaluations.reviews(caller, result_id).await)?,
            "ladder": there(self.ladder(caller, result_id).await)?,
            "mails": there(self.mail_list(caller, result_id).await)?,
            "left_out": [],
        });
        let mut left_out: Vec<&str> = Vec::new();
        // The parts that are missed least go first.
        for name in ["ladder", "timeline", "mails", "transcript"] {
            if data.to_string().len() > data_bytes {
                data[name] = Value::Null;
                left_out.push(name);
            }
        }
        let is_small = data.to_string().len() <= data_bytes;
        let audio = if is_small { self.small_audio(caller, result_id, audio_bytes).await? } else { None };
        let has_recording = result.body.audio_url.is_some();
        if has_recording && audio.is_none() {
            left_out.push("recording");
        }
        data["left_out"] = json!(left_out);
        let zoom = match result.body.duration_ms.unwrap_or(0) {
            ms if ms <= FINE_MS => Zoom::Hundredth,
            ms if ms <= 10 * FINE_MS => Zoom::Tenth,
            _ => Zoom::Second,
        };
        let peaks = match self.conversations.peak_stretch(caller, result_id, zoom, (0, None)).await {
            Ok(peaks) => Some(peaks),
            Err(Error::NotAvailable(_) | Error::Refused(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(CallFile { data, peaks, audio })
    }

    /// Returns the names of the Digital Human and of the agent; `None` for one that was deleted.
    async fn names_of(&self, caller: &Caller, body: &ResultBody) -> Result<(Option<String>, Option<String>)> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let human = match body.digital_human_id {
            Some(id) => db.find::<DigitalHumanSpec>(id).await?.and_then(|human| human.doc.name),
            None => None,
        };
        Ok((human, db.find::<AgentDoc>(body.agent_id).await?.map(|agent| agent.doc.spec.name)))
    }

    /// Returns the recording in the best form that is small enough: both sides, else the mix of them.
    async fn small_audio(&self, caller: &Caller, result_id: i64, most_bytes: u64) -> Result<Option<Vec<u8>>> {
        if most_bytes < LEAST_AUDIO_BYTES {
            return Ok(None);
        }
        for track in [Track::Both, Track::Mix] {
            let path = match self.conversations.packed_path(caller, result_id, track, Packing::Opus).await {
                Ok(path) => path,
                Err(Error::NotAvailable(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            let bytes = tokio::fs::metadata(&path).await.map_err(Error::internal)?.len();
            if bytes <= most_bytes {
                return tokio::fs::read(&path).await.map(Some).map_err(Error::internal);
            }
        }
        Ok(None)
    }
}

/// Returns a part as JSON; null where it is not available.
fn there(part: Result<impl serde::Serialize>) -> Result<Value> {
    match part {
        Ok(part) => serde_json::to_value(part).map_err(Error::internal),
        Err(Error::NotAvailable(_)) => Ok(Value::Null),
        Err(error) => Err(error),
    }
}
