//! Timeline, transcript and recording of a conversation.

use std::io::SeekFrom;
use std::path::{Path, PathBuf};

use ringer_base::error::{Error, Result};
use ringer_media::clip::wav::{self, Head};
use ringer_model::result::ResultDoc;
use ringer_model::time::Timestamp;
use ringer_model::timeline;
use ringer_model::timeline::TimelineEvent;
use ringer_model::transcript::Transcript;
use ringer_store::artifacts::Found;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, BufReader};
use uuid::Uuid;

use super::Conversations;
use super::transcode::{self, Packing, Track};
pub(crate) use ringer_engine::{
    CALLER_CLEAN, CAPTURED, CONNECTION_LOGS, EARLY_MEDIA, JOURNAL, RECORDING, SIP_LOG, WEBSOCKET_LOG,
};

use crate::Caller;
use crate::files::result_owner;

/// File of the recording of a production call as it came, in the folder of the call.
pub(crate) const CALL_RECORDING: &str = "recording";

/// File of the words that were recognized in the recording of a production call, beside it.
pub const RECOGNIZED: &str = "transcript.json";

/// File of the steps of a recording's outline, in the folder of a result.
pub(crate) const PEAKS: &str = "peaks.bin";

/// Log of the requests and answers of a written conversation, in the folder of a result.
pub const HTTP_LOG: &str = "http.log";

/// Log of e-mails, in the folder of a result.
pub const MAIL_LOG: &str = "mail.log";

/// Returns the names of the files of a result that belong into its evidence as they are.
pub(crate) fn evidence() -> impl Iterator<Item = &'static str> {
    let logs = CONNECTION_LOGS.into_iter().map(|(name, _)| name);
    [RECORDING, CALLER_CLEAN, EARLY_MEDIA, SIP_LOG].into_iter().chain(logs).chain([HTTP_LOG, MAIL_LOG])
}

/// Ending of files that are not finished.
const UNFINISHED: &str = ".part";

/// Returns the name of a file that is being made, which no other has.
pub(crate) fn unfinished_name() -> String {
    format!("{}{UNFINISHED}", ringer_base::clock::new_id())
}

/// Returns the id in the name of an unfinished file; `None` for other names.
pub(crate) fn unfinished_id(name: &str) -> Option<Uuid> {
    name.strip_suffix(UNFINISHED).and_then(|id| Uuid::parse_str(id).ok())
}

/// True for names of files with sound: recordings in every form in which they are handed out, their outlines, captured
/// media.
pub(crate) fn is_audio(name: &str) -> bool {
    let kind = name.rsplit_once('.').map(|(_, kind)| kind);
    name == PEAKS || matches!(kind, Some("wav" | "flac" | "ogg" | "opus" | "pcapng" | "part"))
}

/// True for names of recordings of a conversation, from its connection on.
pub(crate) fn is_recording(name: &str) -> bool {
    name.ends_with(".wav") && name != EARLY_MEDIA
}

/// Samples per second of the timeline and of recordings.
const SAMPLE_RATE: i64 = 16_000;

impl Track {
    /// Returns the file that holds it.
    pub fn file(self) -> &'static str {
        if self == Track::CallerClean { CALLER_CLEAN } else { RECORDING }
    }

    /// Returns the file of it in another form.
    pub fn packed_file(self, packing: Packing) -> String {
        let track = match self {
            Track::Both => "recording".to_owned(),
            Track::Channel(channel) => format!("recording_{channel}"),
            Track::Mix => "recording_mix".to_owned(),
            Track::CallerClean => "caller_clean".to_owned(),
        };
        let ending = if packing == Packing::Flac { "flac" } else { "opus" };
        format!("{track}.{ending}")
    }
}

/// Everything that happened, on the sample clock.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Timeline {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Samples per second, always 16000.
    pub sample_rate: i64,
    /// Wall clock of sample 0.
    pub started_at: Option<Timestamp>,
    /// 1; rises when a name or a member of an event changes its meaning or goes, not when one is added.
    pub timeline_version: i64,
    /// Events in order of sample, then of sequence number.
    #[schemars(with = "Vec<TimelineEvent>")]
    pub events: Value,
}

impl Timeline {
    /// Returns the timeline of the events of these names alone.
    pub fn of(mut self, names: &[&str]) -> Timeline {
        if let Value::Array(events) = &mut self.events {
            events.retain(|event| event["event"].as_str().is_some_and(|name| names.contains(&name)));
        }
        self
    }
}

/// The outline of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Peaks {
    /// Sample rate of the recording in Hz.
    pub sample_rate: i64,
    /// Samples between two pairs.
    pub samples_per_peak: i64,
    /// Position of the first pair, milliseconds from connect.
    pub from_ms: i64,
    /// Length of the whole recording, milliseconds.
    pub duration_ms: i64,
    /// Minimum and maximum of each stretch, for each channel: -1 to 1, 3 decimals.
    pub channels: Vec<Vec<f64>>,
}

/// Returns the link of a result's recording, for its record.
pub fn recording_link(result_id: i64) -> String {
    format!("/v1/simulation-result/{result_id}/recording")
}

impl Conversations {
    /// Returns the timeline, once the conversation is over.
    pub async fn timeline(&self, caller: &Caller, result_id: i64) -> Result<Timeline> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let events = if is_hidden(&row.doc, caller) { None } else { db.text("timelines", result_id).await? };
        let events = events.ok_or_else(|| Error::NotAvailable("Timeline not available".into()))?;
        let started_at = row.doc.body.start_time;
        let (sample_rate, timeline_version) = (SAMPLE_RATE, timeline::VERSION);
        Ok(Timeline { simulation_result_id: result_id, sample_rate, started_at, timeline_version, events })
    }

    /// Keeps the events of a conversation that is over.
    pub async fn store_timeline<T: Serialize + Sync>(
        &self,
        organization: &str,
        result_id: i64,
        events: &[T],
    ) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        db.get::<ResultDoc>(result_id).await?;
        db.put_text("timelines", result_id, &events).await?;
        db.commit().await
    }

    /// Returns the transcript, once there is one.
    pub async fn transcript(&self, caller: &Caller, result_id: i64) -> Result<Transcript> {
        Ok(self.transcript_with_length(caller, result_id).await?.0)
    }

    /// Returns the transcript, once there is one, and the length of the conversation in milliseconds; 0: not known.
    pub async fn transcript_with_length(&self, caller: &Caller, result_id: i64) -> Result<(Transcript, i64)> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let kept = if is_hidden(&row.doc, caller) { None } else { db.text("transcripts", result_id).await? };
        let transcript = kept.ok_or_else(|| Error::NotAvailable("Transcript not available".into()))?;
        Ok((transcript, row.doc.body.duration_ms.unwrap_or(0)))
    }

    /// Keeps a transcript and its link.
    pub async fn store_transcript(&self, organization: &str, transcript: &Transcript) -> Result<()> {
        let id = transcript.simulation_result_id;
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(id).await?;
        row.doc.body.transcript_url = Some(format!("/v1/simulation-result/{id}/transcript"));
        db.update(id, &row.doc, self.clock.now_ms(), None).await?;
        db.put_text("transcripts", id, transcript).await?;
        db.commit().await
    }

    /// Returns the file that holds a track, once it is finished: the stereo recording, or what the Digital Human said
    /// before noise.
    pub async fn track_path(&self, caller: &Caller, result_id: i64, track: Track) -> Result<PathBuf> {
        self.file_of(caller, result_id, track.file()).await
    }

    /// Returns the file of the stereo recording, once it is finished.
    pub async fn recording_path(&self, caller: &Caller, result_id: i64) -> Result<PathBuf> {
        self.track_path(caller, result_id, Track::Both).await
    }

    /// Returns the file of a track in another form; made at the first asking, kept beside the recording.
    pub async fn packed_path(
        &self,
        caller: &Caller,
        result_id: i64,
        track: Track,
        packing: Packing,
    ) -> Result<PathBuf> {
        let from = self.track_path(caller, result_id, track).await?;
        let to = from.with_file_name(track.packed_file(packing));
        if tokio::fs::try_exists(&to).await.unwrap_or(false) {
            return Ok(to);
        }
        // Whoever asks at the same time makes a file of their own; the last one stays.
        let making = to.with_file_name(unfinished_name());
        let (source, unfinished) = (from.clone(), making.clone());
        let packed = tokio::task::spawn_blocking(move || transcode::pack(&source, track, packing, &unfinished)).await;
        let packed = match packed {
            Ok(packed) => packed,
            Err(fault) => Err(std::io::Error::other(fault)),
        };
        let kept = match packed {
            Ok(()) => tokio::fs::rename(&making, &to).await,
            Err(error) => Err(error),
        };
        if kept.is_err() {
            let _ = tokio::fs::remove_file(&making).await;
        }
        kept.map(|()| to).map_err(Error::internal)
    }

    async fn file_of(&self, caller: &Caller, result_id: i64, name: &str) -> Result<PathBuf> {
        let row: Row<ResultDoc> = self.store.org(&caller.organization).read().await?.get(result_id).await?;
        match self.find_file(&row, caller, name).await? {
            Found::Here(path) => Ok(path),
            Found::Stored(_) => {
                self.settings.bring(&result_owner(result_id)).await?;
                Ok(self.settings.result_folder(result_id).join(name))
            }
        }
    }

    /// Keeps what is on the disk of a conversation that broke off with its engine: its journal, and its recording as
    /// far as that goes.
    pub(crate) async fn adopt(&self, db: &mut Session, result_id: i64, doc: &mut ResultDoc) -> Result<()> {
        let folder = self.settings.result_folder(result_id);
        let journal = tokio::fs::read_to_string(folder.join(JOURNAL)).await.unwrap_or_default();
        // The last line may be half a line.
        let mut events: Vec<Value> = journal.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if events.is_empty() {
            return Ok(());
        }
        events.sort_by_key(|event| (event["sample"].as_i64(), event["seq"].as_u64()));
        db.put_text("timelines", result_id, &events).await?;
        let Ok(file) = File::open(folder.join(Track::Both.file())).await else { return Ok(()) };
        let Ok(Wave { head, frames }) = read_header(&mut BufReader::new(file)).await else { return Ok(()) };
        let duration_ms = frames * 1000 / i64::from(head.format.rate_hz);
        if duration_ms > 0 {
            doc.body.audio_url = Some(recording_link(result_id));
            doc.body.duration_ms = Some(duration_ms);
            doc.body.duration = Some((duration_ms + 500) / 1000);
        }
        Ok(())
    }

    /// Returns the outline of the recording in at most `points` stretches.
    pub async fn peaks(&self, caller: &Caller, result_id: i64, points: i64) -> Result<Peaks> {
        let path = self.recording_path(caller, result_id).await?;
        let file = File::open(path).await.map_err(Error::internal)?;
        outline(BufReader::with_capacity(1 << 16, file), points.max(1)).await.map_err(Error::internal)
    }
}

/// True if words and sounds of a result are hidden from `caller`, since they are not redacted yet. A caller without an
/// API key sees them.
pub(crate) fn is_hidden(doc: &ResultDoc, caller: &Caller) -> bool {
    doc.private && !caller.key_id.is_nil()
}

/// Removes the files of a folder whose names are `wanted`; false when there were none.
pub(crate) async fn remove_files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<bool> {
    let mut removed = false;
    for path in files(folder).await? {
        if path.file_name().and_then(|name| name.to_str()).is_some_and(&wanted) {
            tokio::fs::remove_file(&path).await.map_err(Error::internal)?;
            removed = true;
        }
    }
    Ok(removed)
}

/// Returns the paths of the entries of a folder; empty if it does not exist.
pub(crate) async fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut entries = match tokio::fs::read_dir(folder).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::internal_by(folder.display(), error)),
    };
    let mut paths = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(Error::internal)? {
        paths.push(entry.path());
    }
    Ok(paths)
}

/// Bytes that a header may have.
const HEAD_BYTES: usize = 64 * 1024;

/// 16-bit PCM in a WAV file: as much as its header states and is there, or all of it where the header states no size.
struct Wave {
    head: Head,
    frames: i64,
}

/// Goes to the first sample of a file.
async fn read_header<R: AsyncReadExt + AsyncSeekExt + Unpin>(file: &mut R) -> std::io::Result<Wave> {
    let bad = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    let size = file.seek(SeekFrom::End(0)).await?;
    file.rewind().await?;
    let mut start = Vec::new();
    (&mut *file).take(HEAD_BYTES as u64).read_to_end(&mut start).await?;
    let head = wav::head(&start, true).map_err(|error| bad(&error.to_string()))?.ok_or_else(|| bad("no audio"))?;
    if !head.format.is_pcm16() {
        return Err(bad("not 16 bit PCM"));
    }
    let data_at = file.seek(SeekFrom::Start(head.data_at as u64)).await?;
    let there = size.saturating_sub(data_at);
    let frames = head.data_bytes.unwrap_or(there).min(there) / head.format.frame_bytes() as u64;
    Ok(Wave { head, frames: frames as i64 })
}

async fn outline<R: AsyncReadExt + AsyncSeekExt + Unpin>(mut file: R, points: i64) -> std::io::Result<Peaks> {
    let Wave { head: Head { format, .. }, frames } = read_header(&mut file).await?;
    let frame_bytes = format.frame_bytes();
    let samples_per_peak = ((frames + points - 1) / points).max(1);
    let mut channels = vec![Vec::new(); usize::from(format.channels)];
    let mut left = frames;
    let mut stretch = Vec::new();
    while left > 0 {
        let count = left.min(samples_per_peak);
        stretch.resize(count as usize * frame_bytes, 0);
        file.read_exact(&mut stretch).await?;
        for (channel, peaks) in channels.iter_mut().enumerate() {
            let samples = stretch.chunks_exact(frame_bytes).map(|frame| format.channel(frame, channel));
            let (low, high) = samples.fold((i16::MAX, i16::MIN), |(low, high), s| (low.min(s), high.max(s)));
            peaks.extend([low, high].map(|sample| (f64::from(sample) / 32.768).round() / 1000.0));
        }
        left -= count;
    }
    let sample_rate = i64::from(format.rate_hz);
    Ok(Peaks { sample_rate, samples_per_peak, from_ms: 0, duration_ms: frames * 1000 / sample_rate.max(1), channels })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn wav(frames: &[[i16; 2]]) -> Vec<u8> {
        let data: Vec<u8> = frames.iter().flatten().flat_map(|sample| sample.to_le_bytes()).collect();
        let mut file =
            b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0\x01\0\x02\0\x80\x3e\0\0\0\xfa\0\0\x04\0\x10\0data"
                .to_vec();
        file.extend((data.len() as u32).to_le_bytes());
        file.extend(data);
        file
    }

    async fn check(file: &[u8], points: i64, expect: Option<(i64, Vec<Vec<f64>>)>) {
        let peaks = outline(Cursor::new(file), points).await.ok().map(|peaks| (peaks.samples_per_peak, peaks.channels));
        assert_eq!(peaks, expect);
    }

    #[tokio::test]
    async fn peaks_are_the_extremes_of_each_stretch() {
        let file = wav(&[[0, 100], [16384, -200], [-16384, 300], [-32768, 32767], [328, -328]]);
        check(&file, 2, Some((3, vec![vec![-0.5, 0.5, -1.0, 0.01], vec![-0.006, 0.009, -0.01, 1.0]]))).await;
        check(&file, 100, Some((1, peaks_of_single_frames()))).await;
        check(&wav(&[]), 100, Some((1, vec![vec![], vec![]]))).await;
        // Without its last frame and a byte of the one before, and without a size.
        let cut = vec![vec![0.0, 0.5, -0.5, -0.5], vec![-0.006, 0.003, 0.009, 0.009]];
        check(&file[..file.len() - 5], 2, Some((2, cut))).await;
        for size in [0u32, u32::MAX] {
            let mut file = file.clone();
            let at = file.len() - 24;
            file[at..at + 4].copy_from_slice(&size.to_le_bytes());
            check(&file, 2, Some((3, vec![vec![-0.5, 0.5, -1.0, 0.01], vec![-0.006, 0.009, -0.01, 1.0]]))).await;
        }
        check(b"not a wave file at all", 2, None).await;
    }

    fn peaks_of_single_frames() -> Vec<Vec<f64>> {
        let twice = |values: &[f64]| values.iter().flat_map(|value| [*value, *value]).collect();
        vec![twice(&[0.0, 0.5, -0.5, -1.0, 0.01]), twice(&[0.003, -0.006, 0.009, 1.0, -0.01])]
    }
}
