//! Production calls of agents that ask for it (`redact_pii`): judged as they came, then what is private is taken out of
//! everything that is kept of them. Until then nobody is shown what was called and noted.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use ringer_base::error::{Error, Result};
use ringer_judge::Redactor;
use ringer_media::clip::write_wav;
use ringer_media::frame::{PER_MS, RATE_HZ};
use ringer_model::agent::AgentDoc;
use ringer_model::transcript::{Transcript, TranscriptEntry};
use ringer_provider::audio;
use ringer_store::Session;
use ringer_store::queue::CallLogJob;
use tokio::fs;
use uuid::Uuid;

use super::{CallLogDoc, LogEvaluated};
use crate::NotDone;
use crate::conversation::artifacts::{CALL_RECORDING, RECOGNIZED};
use crate::conversation::privacy::{CALLED, JUDGED, NOTED, redact_metrics, through};
use crate::evaluation::Evaluations;
use crate::files::call_owner;

/// Reason why a recording is not kept: there are no words, or no sound that can be read.
const UNWRITTEN: &str = "the recording was not kept: words that nobody wrote down may be private";
/// Reason why a recording is not kept: the times of its private words are not known.
const ELSEWHERE: &str = "the recording was not kept: private words have times at which there is nothing in it";

impl Evaluations {
    /// Takes what is private out of what an evaluation gave and out of the recording, when the call's agent asks for
    /// it. What is left to redact is in the record itself ([`redact_call`]).
    pub(super) async fn redact_evaluated(
        &self,
        job: &CallLogJob,
        found: &mut LogEvaluated,
    ) -> Result<Option<(Redactor, Option<&'static str>)>> {
        let mut db = self.store.org(&job.organization).read().await?;
        let Some(row) = db.find::<CallLogDoc>(job.call_id).await? else { return Ok(None) };
        let Some(redactor) = redactor_of(&mut db, row.doc.agent_id).await? else { return Ok(None) };
        drop(db);
        through(&mut found.evaluation, &redactor, JUDGED)?;
        redact_metrics(&mut found.metrics, &redactor);
        let said = std::mem::take(&mut found.said);
        let warning = self.redact_recording(job.call_id, row.doc.call.multichannel, said, &redactor).await?;
        Ok(Some((redactor, warning)))
    }

    /// Takes the sound of what is private out of the recording of a call in which these words were `said`. One that
    /// nobody knows the words of, or the times of those that are private, is not kept; what is to be told of that.
    pub(crate) async fn redact_recording(
        &self,
        call_id: Uuid,
        two_sides: bool,
        said: Vec<TranscriptEntry>,
        redactor: &Redactor,
    ) -> Result<Option<&'static str>> {
        let is_heard = !said.is_empty();
        let mut transcript = Transcript { simulation_result_id: 0, language: String::new(), entries: said };
        let spans = redactor.transcript(&mut transcript);
        let path = self.settings.call_folder(call_id).join(CALL_RECORDING);
        // The recording is stored anew.
        self.settings.erase_some(&call_owner(call_id), |name| name != CALL_RECORDING).await?;
        if let Some(storage) = &self.settings.storage {
            storage.forget(&call_owner(call_id), |_| true).await?;
        }
        // The words as they were recognized are found again in the recording, as far as it is kept.
        match fs::remove_file(path.with_file_name(RECOGNIZED)).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::internal(error)),
            _ => {}
        }
        let why = if is_heard {
            match write_silenced(&path, two_sides, spans).await {
                Ok(()) => return Ok(None),
                Err(why) => why.reason()?,
            }
        } else {
            UNWRITTEN
        };
        let was_there = fs::try_exists(&path).await.map_err(Error::internal)?;
        self.settings.remove_call_files(call_id).await;
        Ok(was_there.then_some(why))
    }
}

/// Knows what is private in the production calls of an agent; `None`: it does not ask for it.
pub(crate) async fn redactor_of(db: &mut Session, agent_id: i64) -> Result<Option<Redactor>> {
    let agent = db.find::<AgentDoc>(agent_id).await?;
    Ok(agent.filter(|agent| agent.doc.spec.redact_pii).map(|_| Redactor::default()))
}

/// Takes what is private out of the record of a call.
pub(crate) fn redact_call(doc: &mut CallLogDoc, redactor: &Redactor) -> Result<()> {
    through(&mut doc.call.transcript, redactor, &["utterance"])?;
    through(&mut doc.recognized, redactor, &["text"])?;
    // A number that was said in pieces is not found in single words.
    doc.recognized.iter_mut().flatten().for_each(|speech| speech.words.clear());
    through(&mut doc.call.tool_calls, redactor, CALLED)?;
    through(&mut doc.call.events, redactor, NOTED)?;
    redact_metrics(&mut doc.metrics, redactor);
    through(&mut doc.evaluations, redactor, JUDGED)
}

/// Writes a recording anew without the sound of some stretches (milliseconds).
///
/// # Errors
/// The reason why it cannot be kept, or a fault of the machine.
async fn write_silenced(path: &Path, two_sides: bool, spans: Vec<Range<i64>>) -> Result<(), NotDone<&'static str>> {
    let Ok(bytes) = fs::read(path).await else { return Err(NotDone::Reason(UNWRITTEN)) };
    let written = tokio::task::spawn_blocking(move || {
        let mut sides = audio::decode_call(bytes, two_sides).map_err(|_| UNWRITTEN)?.sides;
        for side in &mut sides {
            silence(side, &spans).ok_or(ELSEWHERE)?;
        }
        Ok(wav(&sides))
    });
    let written = written.await.map_err(Error::internal)?.map_err(NotDone::Reason)?;
    let unfinished = path.with_extension("part");
    fs::write(&unfinished, written).await.map_err(Error::internal)?;
    fs::rename(&unfinished, path).await.map_err(Error::internal)?;
    Ok(())
}

/// Silences the spans; `None` if one of them has nothing in it.
fn silence(pcm: &mut [i16], spans: &[Range<i64>]) -> Option<()> {
    let at = |ms: i64| (ms.clamp(0, i64::MAX / PER_MS) * PER_MS).min(pcm.len() as i64) as usize;
    let spans: Vec<Range<usize>> = spans.iter().map(|span| at(span.start)..at(span.end)).collect();
    spans.into_iter().try_for_each(|span| pcm.get_mut(span).filter(|pcm| !pcm.is_empty()).map(|pcm| pcm.fill(0)))
}

/// Returns the channels in one file.
fn wav(sides: &[Vec<i16>]) -> Vec<u8> {
    let samples = sides.iter().map(Vec::len).max().unwrap_or(0);
    let frame = |at: usize| sides.iter().map(move |side| side.get(at).copied().unwrap_or(0));
    let pcm: Vec<i16> = (0..samples).flat_map(frame).collect();
    write_wav(RATE_HZ, sides.len() as u16, &pcm)
}

#[cfg(test)]
mod tests {
    use super::{audio, silence, wav};

    #[test]
    fn stretches_are_silent_in_what_is_written() {
        let side = |level: i16| vec![level; 1600];
        let mut sides = vec![side(1000), side(-2000)];
        for side in &mut sides {
            assert_eq!(silence(side, &[-50..10, 40..50, 95..400]), Some(()));
        }
        let read = audio::decode_call(wav(&sides), true).expect("it is a WAV file").sides;
        assert_eq!(read, sides);
        let silent: Vec<usize> = (0..100).filter(|ms| read[1][ms * 16..][..16] == [0; 16]).collect();
        assert_eq!(silent, (0..10).chain(40..50).chain(95..100).collect::<Vec<_>>());
        assert!(read[0][10 * 16..40 * 16].iter().all(|sample| *sample == 1000));
    }

    #[test]
    fn a_stretch_that_is_not_in_the_recording_is_told() {
        for (span, expect) in [
            (i64::MIN..i64::MAX, Some(())),
            (99..i64::MAX, Some(())),
            (100..i64::MAX, None),
            (i64::MAX / 16..i64::MAX / 16 + 100, None),
            (i64::MIN..-1, None),
        ] {
            assert_eq!(silence(&mut [1000; 1600], &[0..10, span.clone()]), expect, "{span:?}");
        }
    }
}
