//! Metrics that a model judges by ear: its excerpt of the recording, and its prompt.

use std::fmt;
use std::sync::Arc;

use ringer_media::clip::write_wav;
use ringer_media::frame::{PER_MS, RATE_HZ};
use ringer_model::custom_metric::{CustomMetricSpec, EvalMethod, EvalModality, EvalSegment};
use ringer_provider::LanguageModel;

use super::model;
use super::segment::Part;
use super::value::Finding;
use crate::panel;

/// Longest recording that is sent.
const MINUTES_MAX: usize = 10;

/// A model that hears, and what there is to hear.
#[derive(Copy, Clone)]
pub struct Ear<'m> {
    /// Model that hears and judges.
    pub model: &'m dyn LanguageModel,
    /// Samples at 16 kHz: caller and agent, one channel with both, or nothing.
    pub sides: &'m [Vec<i16>],
}

impl fmt::Debug for Ear<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("model", &self.model.name()).field("sides", &self.sides.len()).finish()
    }
}

/// True for metrics of sound, which a model that hears judges.
pub fn is_by_ear(spec: &CustomMetricSpec) -> bool {
    let measured = spec.settings.contains_key("measure");
    let judged = matches!(spec.method(), EvalMethod::LlmJudge | EvalMethod::Audio);
    judged && !(spec.method() == EvalMethod::Audio && measured) && spec.modality(true) == EvalModality::Audio
}

/// Asks the model that hears.
pub(super) async fn judged(spec: &CustomMetricSpec, part: &Part<'_>, ear: Ear<'_>) -> Finding {
    let other = match model::other_model(ear.model, spec.audio_model.as_deref()) {
        Ok(other) => other,
        Err(name) => return Finding::not_evaluated(format!("Audio model '{name}' is not configured")),
    };
    let model = other.as_deref().unwrap_or(ear.model);
    let heard = match recording_of(spec.eval_segment, part.span_ms, ear.sides) {
        Ok(heard) => heard,
        Err(why) => return Finding::not_evaluated(why),
    };
    let mut request = model::request(spec, part);
    if let Some(task) = request.messages.first_mut() {
        task.content.push_str("\n\nThe recording is attached: ");
        task.content.push_str(heard.what);
        task.content.push_str(" Judge by what you hear; the words below tell who says what.");
    }
    // Models that hear refuse to be held to a form of answer.
    (request.audio, request.json) = (Some(heard.wav), false);
    let judge = panel::note(model, &[], model::metric_version(spec));
    // Words that the transcript lacks can be heard.
    Finding { judge: Some(judge), ..model::judged_by(spec, request, model, false).await }
}

/// Excerpt of a recording for a model that hears.
pub(crate) struct Recording {
    what: &'static str,
    /// Bytes of a WAV file.
    pub wav: Arc<[u8]>,
}

/// Returns the part of the recording that a metric is about.
///
/// # Errors
/// Why there is none.
pub(crate) fn recording_of(
    segment: EvalSegment,
    (from_ms, to_ms): (i64, i64),
    sides: &[Vec<i16>],
) -> Result<Recording, String> {
    let at = |ms: i64, length: usize| (ms.clamp(0, i64::MAX / PER_MS) * PER_MS).min(length as i64) as usize;
    let cut = |side: &[i16]| side[at(from_ms, side.len())..at(to_ms, side.len())].to_vec();
    let (what, channels, pcm) = match (segment, sides) {
        (_, []) => return Err("There is no recording".to_owned()),
        (EvalSegment::Agent, [_, agent]) => ("one channel, the agent alone.", 1, cut(agent)),
        (EvalSegment::Caller, [caller, _]) => ("one channel, the caller alone.", 1, cut(caller)),
        (_, [caller, agent]) => {
            let pairs = cut(caller).into_iter().zip(cut(agent));
            (
                "two channels, the caller left and the agent right.",
                2,
                pairs.flat_map(|(left, right)| [left, right]).collect(),
            )
        }
        (EvalSegment::Agent | EvalSegment::Caller, _) => {
            return Err("The recording has one channel, in which nobody is told apart".to_owned());
        }
        (_, [both, ..]) => ("one channel with both, the caller and the agent.", 1, cut(both)),
    };
    if pcm.is_empty() {
        return Err("There is no recording of this part".to_owned());
    }
    if pcm.len() > MINUTES_MAX * 60 * RATE_HZ as usize * usize::from(channels) {
        return Err(format!("The recording is longer than {MINUTES_MAX} minutes"));
    }
    Ok(Recording { what, wav: write_wav(RATE_HZ, channels, &pcm).into() })
}

#[cfg(test)]
mod tests {
    use ringer_media::clip::Clip;

    use super::*;

    #[test]
    fn what_is_heard_follows_the_segment() {
        let side = |value: i16| vec![value; 3 * RATE_HZ as usize];
        let sides = [side(100), side(-200)];
        let all = (i64::MIN, i64::MAX);
        let check = |segment, span_ms, sides: &[Vec<i16>], channels: usize, first: &[i16], ms: usize| {
            let heard = recording_of(segment, span_ms, sides).expect("there is something to hear");
            let data: Vec<i16> =
                heard.wav[44..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
            assert!(Clip::from_wav(&heard.wav).is_ok(), "{segment:?}");
            assert_eq!((&data[..channels], data.len()), (first, channels * ms * 16), "{segment:?}: {}", heard.what);
        };
        check(EvalSegment::All, all, &sides, 2, &[100, -200], 3000);
        check(EvalSegment::Opening, (i64::MIN, 1000), &sides, 2, &[100, -200], 1000);
        check(EvalSegment::Closing, (2500, i64::MAX), &sides, 2, &[100, -200], 500);
        check(EvalSegment::Agent, all, &sides, 1, &[-200], 3000);
        check(EvalSegment::Caller, all, &sides, 1, &[100], 3000);
        check(EvalSegment::All, all, &sides[..1], 1, &[100], 3000);
        let why =
            |segment, span_ms, sides: &[Vec<i16>]| recording_of(segment, span_ms, sides).err().unwrap_or_default();
        assert_eq!(why(EvalSegment::All, all, &[]), "There is no recording");
        assert!(why(EvalSegment::Agent, all, &sides[..1]).contains("nobody is told apart"));
        assert_eq!(why(EvalSegment::Closing, (9000, i64::MAX), &sides), "There is no recording of this part");
        let long = vec![vec![0; 601 * RATE_HZ as usize]];
        assert_eq!(why(EvalSegment::All, all, &long), "The recording is longer than 10 minutes");
    }
}
