//! Agents that ask for it (`redact_pii`): what is private in their conversations is taken out of everything that is
//! kept. A conversation is judged as it was; until then nobody is shown its words and sounds.

use std::ops::Range;
use std::path::PathBuf;

use ringer_base::error::{Error, Result};
use ringer_judge as judge;
use ringer_judge::Redactor;
use ringer_media::call::EventKind;
use ringer_media::frame::PER_MS;
use ringer_media::recording::{Layout, WAV_HEADER};
use ringer_model::agent::AgentDoc;
use ringer_model::digital_human::{DigitalHumanSpec, ExpectedToolCall, Language};
use ringer_model::result::{MetricValue, ResultDoc};
use ringer_model::transcript::Transcript;
use ringer_store::Session;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::fs;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, SeekFrom};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::Conversations;
use super::artifacts::{CALLER_CLEAN, RECORDING, WEBSOCKET_LOG, is_recording, remove_files};
use super::facts::{SETTINGS, facts};
use crate::Caller;
use crate::files::result_owner;

/// Samples that are read at once.
const PIECE: usize = 16_384;

/// Metadata that the agent has written.
const HANDED_OVER: [&str; 2] = ["agent_errors", "output_variables"];

impl Conversations {
    /// Knows what is private in a result's conversation; `None`: its agent does not ask for it.
    pub async fn redactor(&self, organization: &str, result_id: i64) -> Result<Option<Redactor>> {
        let mut db = self.store.org(organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        redactor_of(&mut db, &row.doc).await
    }

    /// Redacts timeline, transcript, recording, settings and record of a conversation that is over, and shows the rest.
    pub async fn redact_conversation(&self, organization: &str, result_id: i64, redactor: &Redactor) -> Result<()> {
        let caller = Caller::engine(organization);
        let mut timeline = match self.timeline(&caller, result_id).await {
            Ok(timeline) => timeline.events,
            Err(Error::NotAvailable(_)) => json!([]),
            Err(error) => return Err(error),
        };
        let moments = judge::moments(&timeline);
        let mut spans = judge::digit_spans(&moments);
        let heard_all = moments.iter().all(|moment| match moment.reading() {
            EventKind::TurnEnded { reported: true, .. } => false,
            EventKind::TurnEnded { text, .. } => !text.is_empty() || moment.data()["digits"].is_string(),
            _ => true,
        });
        let mut transcript = match self.transcript(&caller, result_id).await {
            Ok(transcript) => Some(transcript),
            Err(Error::NotAvailable(_)) => None,
            Err(error) => return Err(error),
        };
        if let Some(transcript) = &mut transcript {
            spans.extend(redactor.transcript(transcript));
        }
        if let Some(events) = timeline.as_array_mut() {
            redactor.timeline(events);
        }
        let folder = self.settings.result_folder(result_id);
        let row = self.store.org(organization).read().await?.get::<ResultDoc>(result_id).await?;
        let mut warning = None;
        self.settings.bring(&result_owner(result_id)).await?;
        // Other forms of a recording, journals and signalling go in any case.
        if !heard_all {
            remove_files(&folder, |_| true).await?;
            warning = Some("the recording was not kept: words that nobody recognized may be private");
        } else if self.is_elsewhere(&row.doc, result_id).await? {
            warning = Some("the recording was not kept: the engine that has it could not take out what is private");
        } else {
            remove_files(&folder, |name| !is_recording(name)).await?;
            for (name, layout) in [(RECORDING, Layout::Stereo), (CALLER_CLEAN, Layout::CallerClean)] {
                silence(&folder.join(name), layout, &spans).await?;
            }
        }
        self.forget_stored(result_id, warning.is_none()).await?;
        self.keep_redacted(organization, result_id, redactor, &timeline, transcript.as_ref(), warning).await
    }

    /// Removes the messages of a private call that never connected: they may hold numbers and parameters.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub async fn forget_messages(&self, result_id: i64) -> Result<()> {
        remove_files(&self.settings.result_folder(result_id), |name| name == WEBSOCKET_LOG).await.map(drop)
    }

    /// Removes what was kept of a private conversation that nobody will judge.
    pub async fn forget_private(&self, organization: &str, result_id: i64) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        if !row.doc.private {
            return Ok(());
        }
        self.forget_words(result_id, &mut row.doc).await?;
        db.update(result_id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await
    }

    /// Removes the files of a private conversation, and says so in its record. None of them has been stored elsewhere.
    pub(crate) async fn forget_words(&self, result_id: i64, doc: &mut ResultDoc) -> Result<()> {
        remove_files(&self.settings.result_folder(result_id), |_| true).await?;
        doc.body.audio_url = None;
        doc.private = false;
        doc.warn("nothing was kept of the conversation: it broke off before what is private could be taken out");
        Ok(())
    }

    async fn keep_redacted(
        &self,
        organization: &str,
        result_id: i64,
        redactor: &Redactor,
        timeline: &Value,
        transcript: Option<&Transcript>,
        warning: Option<&str>,
    ) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        db.put_text("timelines", result_id, timeline).await?;
        if let Some(transcript) = transcript {
            db.put_text("transcripts", result_id, transcript).await?;
        }
        if let Some(mut settings) = db.text::<Value>(SETTINGS, result_id).await? {
            redact_settings(&mut settings, redactor);
            db.put_text(SETTINGS, result_id, &settings).await?;
        }
        redact_doc(&mut row.doc, redactor)?;
        if let Some(warning) = warning {
            row.doc.body.audio_url = None;
            row.doc.warn(warning);
        }
        row.doc.private = false;
        db.update(result_id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await
    }
}

/// Knows what is private in a result's conversation; `None`: its agent does not ask for it, or is gone.
pub(crate) async fn redactor_of(db: &mut Session, doc: &ResultDoc) -> Result<Option<Redactor>> {
    let Some(agent) = db.find::<AgentDoc>(doc.body.agent_id).await? else { return Ok(None) };
    if !agent.doc.spec.redact_pii {
        return Ok(None);
    }
    let traits = facts(db, doc).await?.into_iter().filter_map(|its| match its.value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let language = language_of(db, doc).await?;
    Ok(Some(Redactor::new(traits).speaking(&language)))
}

/// Returns the language that the Digital Human of a result speaks; `ad`: not known beforehand, or it was deleted.
async fn language_of(db: &mut Session, doc: &ResultDoc) -> Result<String> {
    let human = match doc.body.digital_human_id {
        Some(id) => db.find::<DigitalHumanSpec>(id).await?,
        None => None,
    };
    Ok(human.map_or(Language::Ad, |human| human.doc.language).as_str().to_owned())
}

/// Members of an expectation and its result that hold words.
pub(crate) const EXPECTED: &[&str] =
    &["heard", "not_heard", "args", "args_as_written", "meaning", "measured", "reason"];

/// Members of an evaluation that hold words.
pub(crate) const JUDGED: &[&str] = &[
    "call_summary",
    "reasoning",
    "reason",
    "explanation",
    "response_value",
    "qualitative_response",
    "json_response",
    "human_response_value",
    "human_reasoning",
    "override_notes",
    "goal_reasoning",
    "hallucination_reasoning",
    "redundancy_reasoning",
    "pronunciation_reasoning",
    "custom_evals",
    "human_goal_reasoning",
    "human_hallucination_reasoning",
    "human_redundancy_reasoning",
    "human_pronunciation_reasoning",
    "override_goal_notes",
    "override_hallucination_notes",
    "override_redundancy_notes",
    "override_pronunciation_notes",
];

/// Fields that hold the answer of a custom metric, of any response type.
const ANSWERS: [&str; 2] = ["response_value", "human_response_value"];

/// Response types whose answers are words; the others are figures, and words of the metric's own.
const WORDED: [&str; 2] = ["qualitative", "json"];

/// Members of a tool call that hold words.
pub(crate) const CALLED: &[&str] = &["description", "parameters", "output"];

/// Members of an event that hold words.
pub(crate) const NOTED: &[&str] = &["title", "description", "tags", "metadata"];

/// Sees through the named members of something that is stored as JSON.
pub(crate) fn through<T: Serialize + DeserializeOwned>(
    part: &mut T,
    redactor: &Redactor,
    names: &[&str],
) -> Result<()> {
    let mut value = serde_json::to_value(&*part).map_err(Error::internal)?;
    redact_members(&mut value, redactor, names);
    *part = serde_json::from_value(value).map_err(Error::internal)?;
    Ok(())
}

/// Redacts the expected tool calls in the same fields as the calls that were made.
pub(crate) fn redacted_calls(
    mut expected: Vec<ExpectedToolCall>,
    redactor: &Redactor,
) -> Result<Vec<ExpectedToolCall>> {
    through(&mut expected, redactor, CALLED)?;
    Ok(expected)
}

/// Redacts texts in the record: what was posted, called and judged.
pub(crate) fn redact_doc(doc: &mut ResultDoc, redactor: &Redactor) -> Result<()> {
    through(&mut doc.body.events, redactor, NOTED)?;
    through(&mut doc.body.tool_calls, redactor, CALLED)?;
    through(&mut doc.posted_calls, redactor, CALLED)?;
    through(&mut doc.heard_calls, redactor, CALLED)?;
    through(&mut doc.recorded_transcript, redactor, &["utterance"])?;
    through(&mut doc.body.evaluations, redactor, JUDGED)?;
    through(&mut doc.body.expectations, redactor, EXPECTED)?;
    through(&mut doc.overruled, redactor, JUDGED)?;
    through(&mut doc.body.custom_metrics, redactor, JUDGED)?;
    redact_metrics(&mut doc.body.metrics, redactor);
    for name in HANDED_OVER {
        doc.body.metadata.get_mut(name).into_iter().for_each(|value| redactor.value(value));
    }
    through(&mut doc.body.result, redactor, JUDGED)
}

/// Redacts the one text among the built-in metrics that has words of a conversation: others are names of a kind.
pub(crate) fn redact_metrics(metrics: &mut [MetricValue], redactor: &Redactor) {
    for metric in metrics.iter_mut().filter(|metric| metric.name == "call_summary") {
        if let Value::String(text) = &mut metric.value {
            *text = redactor.text(text);
        }
    }
}

/// Sees through the members of these names, wherever they are; texts alone, so that numbers keep their type.
fn redact_members(value: &mut Value, redactor: &Redactor, names: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| redact_members(item, redactor, names)),
        Value::Object(members) => {
            let kind = members.get("response_type").and_then(Value::as_str);
            let is_worded = kind.is_none_or(|kind| WORDED.contains(&kind));
            for (name, member) in members {
                let is_answer = ANSWERS.contains(&name.as_str());
                let is_named = names.contains(&name.as_str()) && (is_worded || !is_answer);
                match member {
                    Value::String(text) if is_named && is_answer => *text = redacted_answer(text, redactor),
                    Value::String(text) if is_named => *text = redactor.text(text),
                    Value::Object(_) | Value::Array(_) if is_named => redactor.value(member),
                    _ => redact_members(member, redactor, names),
                }
            }
        }
        _ => {}
    }
}

/// Returns an answer in words; one that is the text of an object stays one.
fn redacted_answer(text: &str, redactor: &Redactor) -> String {
    match serde_json::from_str(text) {
        Ok(mut object @ Value::Object(_)) => {
            redactor.value(&mut object);
            object.to_string()
        }
        _ => redactor.text(text),
    }
}

/// Sees through settings: their texts, what tool calls hold, and the values of traits. Ids, and numbers that steer,
/// stay as they are.
pub(crate) fn redact_settings(settings: &mut Value, redactor: &Redactor) {
    let is_id = |text: &str| text.len() == Hyphenated::LENGTH && Uuid::parse_str(text).is_ok();
    match settings {
        Value::String(text) if !is_id(text) => *text = redactor.text(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_settings(item, redactor)),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::Object(_) | Value::Array(_) if CALLED.contains(&name.as_str()) => redactor.value(member),
                    Value::Number(_) if name == "value" => redactor.value(member),
                    _ => redact_settings(member, redactor),
                }
            }
        }
        _ => {}
    }
}

/// Silences stretches (milliseconds from connect) in all channels of a WAV file of the engine's own. The silenced file
/// takes the place of the old one at once.
async fn silence(path: &PathBuf, layout: Layout, spans: &[Range<i64>]) -> Result<()> {
    let done = async {
        let unfinished = path.with_extension("part");
        let mut from = match fs::File::open(path).await {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let frame = 2 * usize::from(layout.channels());
        let mut to = fs::File::create(&unfinished).await?;
        let mut header = vec![0; WAV_HEADER];
        from.seek(SeekFrom::Start(0)).await?;
        from.read_exact(&mut header).await?;
        to.write_all(&header).await?;
        let (mut piece, mut sample) = (vec![0; PIECE * frame], 0i64);
        loop {
            let filled = fill(&mut from, &mut piece).await?;
            if filled == 0 {
                break;
            }
            let samples = (filled / frame) as i64;
            for span in spans {
                let begin = (span.start * PER_MS - sample).clamp(0, samples) as usize;
                let end = (span.end * PER_MS - sample).clamp(0, samples) as usize;
                piece[begin.min(end) * frame..end * frame].fill(0);
            }
            to.write_all(&piece[..filled]).await?;
            sample += samples;
        }
        to.sync_all().await?;
        fs::rename(&unfinished, path).await
    };
    done.await.map_err(|error| Error::internal_by(path.display(), error))
}

/// Reads until `piece` is full or the file ends.
async fn fill(file: &mut fs::File, piece: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match file.read(&mut piece[filled..]).await? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use ringer_media::recording::wav_header;

    use super::*;

    /// Returns the samples that are left of a file of ones in which `spans` (milliseconds) were silenced, frame by
    /// frame.
    async fn find_remaining(layout: Layout, samples: usize, spans: &[Range<i64>]) -> Vec<bool> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(RECORDING);
        let channels = usize::from(layout.channels());
        let mut file = wav_header(layout, samples as u64).to_vec();
        file.extend([1, 0].repeat(samples * channels));
        std::fs::write(&path, &file).expect("a file");
        silence(&path, layout, spans).await.expect("it is silenced");
        let after = std::fs::read(&path).expect("a file");
        assert_eq!((after.len(), &after[..WAV_HEADER]), (file.len(), &file[..WAV_HEADER]));
        let frames = after[WAV_HEADER..].chunks(2 * channels);
        let is_left = |frame: &[u8]| {
            assert!(frame.iter().step_by(2).all(|byte| *byte == frame[0]), "all channels alike");
            frame[0] == 1
        };
        frames.map(is_left).collect()
    }

    #[tokio::test]
    async fn stretches_are_silenced_to_the_sample_in_all_channels() {
        let long = 2 * PIECE + 100;
        for (layout, samples, spans, silent) in [
            (Layout::Stereo, 1600, vec![], vec![]),
            (Layout::Stereo, 1600, vec![10..20, 20..20], vec![160..320, 0..0]),
            (Layout::CallerClean, 1600, vec![-50..5, 90..200, 30..30], vec![0..80, 1440..1600]),
            // Beyond what is read in one piece, and over its edge.
            (Layout::Stereo, long, vec![1000..1100, 2047..2050], vec![16_000..17_600, 32_752..32_800]),
            (Layout::Stereo, 1600, vec![500..600, 700..800], vec![]),
            (Layout::Agent, 0, vec![0..100, 200..300], vec![]),
        ] {
            let left = find_remaining(layout, samples, &spans).await;
            assert_eq!(left.len(), samples);
            for (at, is_left) in left.iter().enumerate() {
                assert_eq!(*is_left, !silent.iter().any(|span| span.contains(&at)), "sample {at} of {spans:?}");
            }
        }
    }

    #[test]
    fn settings_lose_what_is_private_and_keep_what_steers() {
        let id = "01234567-8901-7234-8567-890123456789";
        let mut settings = json!({
            "scenario_id": id, "intent": "Say 1234 to Alvarez.", "max_turns": 1234,
            "traits": [{ "trait_name": "pin", "value": 12345 }, { "trait_name": "adult", "value": true }],
            "expected_tool_calls": [{ "name": "find", "parameters": { "pin": 12345 } }],
        });
        redact_settings(&mut settings, &Redactor::new(["Alvarez".to_owned()]));
        let expect = json!({
            "scenario_id": id, "intent": "Say [NUMBER] to [TRAIT].", "max_turns": 1234,
            "traits": [{ "trait_name": "pin", "value": "[NUMBER]" }, { "trait_name": "adult", "value": true }],
            "expected_tool_calls": [{ "name": "find", "parameters": { "pin": "[NUMBER]" } }],
        });
        assert_eq!(settings, expect);
    }

    #[tokio::test]
    async fn a_recording_that_is_not_there_needs_no_silence() {
        let folder = tempfile::tempdir().expect("a folder");
        silence(&folder.path().join(RECORDING), Layout::Stereo, &[0..1, 2..3]).await.expect("nothing to do");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
