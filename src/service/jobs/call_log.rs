//! The job `call_log`: gets the recording and the transcript of a production call and measures it as a simulated one. A
//! recording without a transcript is transcribed.

mod file;
mod gzip;
mod transcribe;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::error::{Error, Result};
use ringer_base::fetch::{Bounds, TOO_LARGE, fetch_within};
use ringer_base::guard::ip_allowed;
use ringer_judge as judge;
use ringer_judge::{Ear, Imported, Material};
use ringer_media::frame::PER_MS;
use ringer_model::Object;
use ringer_model::call_log::{CallInterface, CallSpec, RecognizedSpeech};
use ringer_model::time::{LONGEST_SPAN_MS, Timestamp};
use ringer_model::transcript::{PostedEntry, TranscriptEntry};
use ringer_provider::audio;
use ringer_provider::audio::CallAudio;
use ringer_store::queue::CallLogJob;
use serde_json::json;

use self::transcribe::{Heard, Unheard, transcribe};
use super::lease::in_time;
use super::upkeep::Upkeep;
use crate::conversation::artifacts::RECOGNIZED;
use crate::{LogEvaluated, NotDone, UsedBy};

/// A recording that is fetched.
const RECORDING: Bounds = Bounds { bytes: 512 << 20, patience: Duration::from_secs(300) };
/// Shortest time of a letter in a transcript, in milliseconds: far below any speech.
const LETTER_MS: i64 = 4;
/// Letters of a transcript below which its times are not judged.
const LEAST_LETTERS: usize = 40;
/// Milliseconds by which words may lie after the end of a recording.
const BEYOND_MS: i64 = 2000;
/// A transcript that is fetched.
const TRANSCRIPT: Bounds = Bounds { bytes: 32 << 20, patience: Duration::from_secs(30) };

/// Evaluates a call. What cannot be had is told; what there is, is measured. The time that an evaluation may take
/// begins when all words are there: those of a long recording take longer.
pub(super) async fn run(upkeep: &Upkeep, job: &CallLogJob) -> Result<()> {
    let gathered = upkeep.stopping.run_until_cancelled(gather(upkeep, job)).await;
    let stopping = || Error::Unavailable("Service is shutting down".into());
    let Some(gathered) = gathered.ok_or_else(stopping)?? else { return Ok(()) };
    let account = upkeep.service.spending().account(UsedBy::Nobody);
    let counting = upkeep.counting(&account);
    match in_time(&upkeep.service, &account, evaluate(&counting, job, gathered)).await {
        Some(done) => done,
        None => upkeep.service.evaluations().break_off_log(job).await,
    }
}

/// Recording and transcript of a call, as far as they were available.
struct Gathered {
    entries: Vec<PostedEntry>,
    /// Speech that was recognized; `None`: nothing was transcribed.
    recognized: Option<Vec<RecognizedSpeech>>,
    /// Samples at 16 kHz: nothing, one channel with both sides, or caller and agent.
    sides: Arc<Vec<Vec<i16>>>,
    /// True if the speaker of each word is known.
    is_apart: bool,
    /// Remarks on the words, for the metadata.
    notes: Object,
    /// Parts that were not available.
    missing: Vec<String>,
}

/// Returns the sound and the words of a call; `None` when it was deleted.
async fn gather(upkeep: &Upkeep, job: &CallLogJob) -> Result<Option<Gathered>> {
    let Some((call, path)) = upkeep.service.evaluations().log_to_evaluate(job).await? else { return Ok(None) };
    let private = upkeep.service.settings().allow_private_targets;
    let allowed = move |address: IpAddr| ip_allowed(address, private);
    let mut missing = Vec::new();
    let limit = upkeep.service.evaluations().recording_limit(&job.organization).await?;
    let audio = match recording(&call, &path, limit, allowed).await {
        Ok(audio) => audio,
        Err(why) => {
            missing.push(why.reason()?);
            CallAudio::default()
        }
    };
    let mut entries = transcript(&call, allowed).await.unwrap_or_else(|why| {
        missing.push(why);
        Vec::new()
    });
    let mut notes = Object::new();
    let mut warnings: Vec<String> = audio.unread.iter().map(|unread| format!("recording: {unread}")).collect();
    let (sides, rate_hz) = (Arc::new(audio.sides), audio.rate_hz);
    let (mut is_apart, mut recognized) = (true, None);
    if !sides.is_empty() && !has_transcript(&call) {
        match hear(upkeep, job, &path, &sides, rate_hz).await {
            Ok(words) => {
                notes.insert("transcript_source".to_owned(), "recognized".into());
                notes.extend(words.recognizer.map(|model| ("recognizer".to_owned(), json!(model))));
                warnings.extend(words.warnings);
                (entries, recognized, is_apart) = (words.entries, words.recognized, sides.len() == 2);
            }
            Err(why) => match why.reason()? {
                Unheard::Unsuited(why) => warnings.push(why),
                Unheard::Failed(why) => missing.push(why),
            },
        }
    }
    // Where a part of the recording was not read, its end is not known.
    let recorded_ms = sides.first().filter(|_| warnings.is_empty()).map(|side| side.len() as i64 / PER_MS);
    warnings.extend(wrong_times(&entries, recorded_ms));
    notes.extend((!warnings.is_empty()).then(|| ("warnings".to_owned(), warnings.into())));
    Ok(Some(Gathered { entries, recognized, sides, is_apart, notes, missing }))
}

/// Returns a warning where the times of a transcript cannot be milliseconds: its words would be faster than speech, or
/// lie after the end of a recording of `recorded_ms`.
fn wrong_times(entries: &[PostedEntry], recorded_ms: Option<i64>) -> Option<String> {
    let end_ms = entries.iter().map(|entry| entry.end_offset_ms).max()?;
    let letters: usize = entries.iter().map(|entry| entry.utterance.chars().count()).sum();
    // Times that are all zero tell nothing.
    let is_fast = end_ms > 0 && letters >= LEAST_LETTERS && end_ms < letters as i64 * LETTER_MS;
    let recorded = recorded_ms.filter(|ms| *ms > 0);
    match recorded {
        _ if is_fast => Some(format!(
            "transcript: {letters} letters end at {end_ms} ms, faster than speech: start_offset_ms and end_offset_ms are milliseconds, \
             and these seem to be seconds"
        )),
        Some(recorded) if end_ms > recorded + BEYOND_MS => Some(format!(
            "transcript: words end at {end_ms} ms, and the recording at {recorded} ms: start_offset_ms and end_offset_ms are \
             milliseconds from its start"
        )),
        _ => None,
    }
}

async fn evaluate(upkeep: &Upkeep, job: &CallLogJob, gathered: Gathered) -> Result<()> {
    let Some(work) = upkeep.service.evaluations().begin_log(job).await? else { return Ok(()) };
    let Gathered { entries, recognized, sides, is_apart, notes, missing } = gathered;
    let interface = match work.call.interface {
        CallInterface::Phone => "PHONE",
        CallInterface::Web => "WEB",
    };
    let fillers = judge::fillers("en", &upkeep.fillers);
    let is_empty = sides.is_empty() && entries.is_empty();
    let said: Vec<TranscriptEntry> = entries.iter().map(TranscriptEntry::from).collect();
    // Nothing is measured by side where the sides cannot be told apart.
    let entries = if is_apart { entries } else { Vec::new() };
    let call = Imported { entries, sides: sides.clone(), interface, fillers };
    let duration_ms = call.duration_ms();
    let parts = judge::parts_to_measure(&work.metrics, Material { entries: &said, ..Material::default() });
    let measuring = move || (call.measure(), call.measure_parts(&parts));
    let (measured, parts) = tokio::task::spawn_blocking(measuring).await.map_err(Error::internal)?;
    let (mut evaluation, mut metrics) = (measured.evaluation, measured.metrics);
    evaluation.id = ringer_base::clock::new_id();
    evaluation.created_at = Timestamp(upkeep.service.clock().now_ms());
    let material = Material {
        panel: &upkeep.service.settings().judge.panel,
        entries: &said,
        parts: &parts,
        calls: work.call.tool_calls.as_deref().unwrap_or_default(),
        metadata: work.call.metadata.as_ref(),
        agent_prompt: &work.agent_prompt,
        ear: upkeep.ear.as_deref().map(|model| Ear { model, sides: &sides }),
        ..Material::default()
    };
    judge::judge_words(material, &work.metrics, upkeep.model.as_deref(), &mut metrics, &mut evaluation).await;
    if let (true, Some(latency)) = (work.call.enable_phrase_latencies, &mut evaluation.latency) {
        latency.insert("phrase_latencies".into(), json!(measured.latency));
    }
    let found = LogEvaluated {
        evaluation: (!is_empty).then_some(evaluation),
        metrics: if is_empty { Vec::new() } else { metrics },
        duration_ms,
        error_message: (!missing.is_empty()).then(|| missing.join("; ")),
        notes,
        said,
        recognized,
    };
    upkeep.service.evaluations().finish_log(job, found).await
}

/// True if the call has a transcript, or the address of one.
fn has_transcript(call: &CallSpec) -> bool {
    call.transcript_url.is_some() || call.transcript.as_ref().is_some_and(|entries| !entries.is_empty())
}

/// Returns the words of the recording at `path`: those that it was given before, so that a new evaluation judges the
/// same.
async fn hear(
    upkeep: &Upkeep,
    job: &CallLogJob,
    path: &Path,
    sides: &Arc<Vec<Vec<i16>>>,
    rate_hz: u32,
) -> Result<Heard, NotDone<Unheard>> {
    let written = path.with_file_name(RECOGNIZED);
    let before = tokio::fs::read(&written).await.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(before) = before {
        return Ok(before);
    }
    let Some(recognizer) = &upkeep.recognizer else {
        let why = "transcript: the recording was not transcribed: there is no recognizer";
        return Err(NotDone::Reason(Unheard::Unsuited(why.into())));
    };
    let keyterms = upkeep.service.evaluations().keyterms_of_log(job).await?;
    let _permit = upkeep.transcribing.acquire().await.expect("the semaphore is never closed");
    let heard = transcribe(&**recognizer, &keyterms, sides, rate_hz, upkeep.service.clock()).await;
    let heard = heard.map_err(NotDone::Reason)?;
    let bytes = serde_json::to_vec(&heard).map_err(Error::internal)?;
    keep(&written, &bytes).await.map_err(Error::internal)?;
    Ok(heard)
}

/// Returns the channels of the recording: nothing when there is none. `limit`: the largest file in bytes that the
/// organization may have fetched.
///
/// # Errors
/// The reason why it cannot be heard, or a fault of the machine.
async fn recording(
    call: &CallSpec,
    path: &Path,
    limit: Option<u64>,
    allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
) -> Result<CallAudio, NotDone<String>> {
    let most = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(RECORDING.bytes);
    let bounds = Bounds { bytes: most.min(RECORDING.bytes), ..RECORDING };
    let bytes = match (tokio::fs::read(path).await, &call.recording_url) {
        (Ok(bytes), _) => bytes,
        (Err(_), None) => return Ok(CallAudio::default()),
        (Err(_), Some(url)) => match fetch_within(bounds, url, allowed).await {
            Ok(bytes) => {
                keep(path, &bytes).await.map_err(Error::internal)?;
                bytes
            }
            Err(failure) => {
                let is_over_limit = failure.code == TOO_LARGE && bounds != RECORDING;
                let limit = if is_over_limit { ", the workspace's limit" } else { "" };
                return Err(NotDone::Reason(format!("recording_url: {}{limit}", failure.message)));
            }
        },
    };
    let two_sides = call.multichannel;
    let decoded = tokio::task::spawn_blocking(move || audio::decode_call(bytes, two_sides)).await;
    let unheard = |why: &str| NotDone::Reason(format!("recording: {why}"));
    let audio = decoded.map_err(Error::internal)?.map_err(|failure| unheard(&failure.message))?;
    if two_sides && audio.sides.len() < 2 {
        return Err(unheard("it has one channel, not two"));
    }
    Ok(audio)
}

/// Writes a file, so that a new evaluation hears the same.
async fn keep(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    let unfinished = path.with_extension("part");
    tokio::fs::write(&unfinished, bytes).await?;
    tokio::fs::rename(&unfinished, path).await
}

/// Returns the transcript; nothing when there is none. Its offsets are brought within a century of connect, since they
/// are counted in samples and added up. They may come as anything, such as times of day in nanoseconds.
async fn transcript(
    call: &CallSpec,
    allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
) -> Result<Vec<PostedEntry>, String> {
    let mut entries = match (&call.transcript, &call.transcript_url) {
        (Some(entries), _) if !entries.is_empty() => entries.clone(),
        (_, None) => return Ok(Vec::new()),
        (_, Some(url)) => {
            let describe = |why: String| format!("transcript_url: {why}");
            let bytes = fetch_within(TRANSCRIPT, url, allowed).await.map_err(|failure| describe(failure.message))?;
            let read = tokio::task::spawn_blocking(move || file::entries(&bytes, TRANSCRIPT.bytes)).await;
            read.map_err(|error| describe(error.to_string()))?.map_err(describe)?
        }
    };
    for ms in entries.iter_mut().flat_map(|entry| [&mut entry.start_offset_ms, &mut entry.end_offset_ms]) {
        *ms = (*ms).clamp(-LONGEST_SPAN_MS, LONGEST_SPAN_MS);
    }
    entries.sort_by_key(|entry| (entry.start_offset_ms, entry.end_offset_ms));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::{PostedEntry, wrong_times};

    #[test]
    fn times_that_are_no_milliseconds_are_told() {
        let entry = |(start_offset_ms, end_offset_ms): (i64, i64)| PostedEntry {
            start_offset_ms,
            end_offset_ms,
            speaker: Role::Agent,
            utterance: "Good day, this is the clinic.".into(),
            filler_utterance: None,
        };
        for (times, recorded_ms, expect) in [
            ([(0, 2000), (4000, 6000)], None, None),
            ([(0, 2000), (4000, 6000)], Some(6500), None),
            ([(0, 2), (4, 6)], None, Some("faster than speech")),
            ([(0, 0), (0, 1)], Some(6500), Some("seem to be seconds")),
            ([(0, 0), (0, 0)], None, None),
            ([(0, 2000), (400_000, 600_000)], Some(6500), Some("the recording at 6500 ms")),
        ] {
            let found = wrong_times(&times.map(entry), recorded_ms);
            assert_eq!(found.is_some(), expect.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(expect.unwrap_or_default()), "{times:?}");
        }
    }

    use ringer_base::testing::WebServer;
    use ringer_model::digital_human::Role;
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn offsets_of_a_transcript_are_within_a_century() {
        let epoch_ns = 1_767_600_000_000_000_000i64;
        for (given, expect) in [
            ([-500, 900], [-500, 900]),
            ([i64::MIN, i64::MAX], [-LONGEST_SPAN_MS, LONGEST_SPAN_MS]),
            ([i64::MIN, i64::MIN + 1], [-LONGEST_SPAN_MS; 2]),
            ([epoch_ns, epoch_ns + 900_000_000], [LONGEST_SPAN_MS; 2]),
            ([i64::MAX / 16 - 2, i64::MAX / 16], [LONGEST_SPAN_MS; 2]),
        ] {
            let words = [("USER", given), ("AGENT", [100, 200]), ("AGENT", given)].map(|(speaker, [from, to])| {
                json!({
                    "start_offset_ms": from, "end_offset_ms": to, "speaker": speaker, "utterance": "Booked.",
                })
            });
            let words = json!(words);
            let file = WebServer::file(words.to_string().as_bytes());
            let server = WebServer::start(move |_: &str| file.clone()).await.expect("loopback has a free port");
            for (transcript, url) in [(words, None), (Value::Null, Some(server.url("/words.json")))] {
                let call = json!({
                    "start_time_utc": "2026-01-05T08:00:00Z", "participants": [{ "role": "AGENT" }, { "role": "USER" }],
                    "transcript": transcript, "transcript_url": url,
                });
                let call: CallSpec = serde_json::from_value(call).expect("a call");
                let entries = transcript_of(&call).await;
                let of_caller = entries.iter().find(|entry| entry.speaker == Role::User).expect("the caller's words");
                assert_eq!([of_caller.start_offset_ms, of_caller.end_offset_ms], expect, "{given:?}");
                let call = Imported { entries, interface: "PHONE", ..Imported::default() };
                assert_eq!(call.duration_ms(), expect[1].max(200), "{given:?}");
                assert!(call.measure().evaluation.num_turns.is_some(), "{given:?}");
            }
        }
    }

    async fn transcript_of(call: &CallSpec) -> Vec<PostedEntry> {
        transcript(call, |_| true).await.expect("a transcript")
    }
}
