//! Transcription of recordings that came without a transcript: each stretch of speech goes through the configured
//! recognizer. Choosing the recognizer and judging the words happen elsewhere.
//!
//! In recordings with a channel for each side, a stretch is of one side, and short pauses of it in which the other side
//! is silent do not part it. One channel of both sides is heard as one speaker: nothing tells whose a word is.
//!
//! One recording is transcribed at a time, before the clock of its evaluation begins. Eight at once took every decoder
//! of the calls.

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_media::frame::{FRAME, PER_MS, RATE_HZ, Sample};
use ringer_media::measure::{Span, segments};
use ringer_model::digital_human::Role;
use ringer_model::transcript::PostedEntry;
use ringer_provider::{Failure, ModelName, Recognized, Recognizer, SpokenIn};
use serde::{Deserialize, Serialize};

/// A pause of one side up to this length does not part its words.
const PAUSE: Sample = 1000 * PER_MS;
/// Longest stretch that is recognised in one piece.
const STRETCH_MAX: Sample = 25_000 * PER_MS;
/// A longer one is parted where it is quietest in its last 3 s.
const PART: Sample = 3000 * PER_MS;
/// A recognizer hears what is this much before and after the speech, too.
const MARGIN: Sample = 100 * PER_MS;
/// Longest wait for the text of one stretch.
const TEXT_MS: i64 = 300_000;
/// A recognizer that is busy with calls is asked again after so long, so often.
const BUSY_MS: i64 = 2000;
const BUSY_TIMES: usize = 60;

/// Warning about a recording with one channel for both sides.
const ONE_CHANNEL: &str = "transcript: the recording has one channel, in which nobody is told apart: all words stand as the \
                           agent's, and nothing is measured by side";

/// Words of a recording.
#[derive(Serialize, Deserialize)]
pub(super) struct Heard {
    pub entries: Vec<PostedEntry>,
    /// Warnings about the recognised words.
    pub warnings: Vec<String>,
    /// Model that heard them.
    #[serde(default)]
    pub recognizer: Option<ModelName>,
}

/// Reason why a recording has no words.
#[derive(Debug, PartialEq)]
pub(super) enum Unheard {
    /// No recognizer is there for it.
    Unsuited(String),
    /// The recognizer did not do it.
    Failed(String),
}

/// One stretch of speech of one side.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    side: usize,
    span: Span,
}

/// Recognises a call of these sides (caller and agent, or both in one) that was recorded at `rate_hz`.
///
/// # Errors
/// Why there are no words, for a person.
pub(super) async fn transcribe(
    recognizer: &dyn Recognizer,
    sides: &Arc<Vec<Vec<i16>>>,
    rate_hz: u32,
    clock: &Clock,
) -> Result<Heard, Unheard> {
    // Nobody says which language a production call was held in.
    let language = SpokenIn::Likely("en");
    let not = |why: String| format!("transcript: the recording was not transcribed: {why}");
    let unsuited = |why: String| Unheard::Unsuited(not(why));
    recognizer.supports(language.code(), rate_hz.min(RATE_HZ)).map_err(unsuited)?;
    let failed = |why: String| Unheard::Failed(not(why));
    let of = sides.clone();
    let found = tokio::task::spawn_blocking(move || stretches(&of)).await.map_err(|error| failed(error.to_string()))?;
    let mut entries = Vec::new();
    for Stretch { side, span } in found {
        let pcm = &sides[side];
        let (from, to) = ((span.from - MARGIN).max(0) as usize, ((span.to + MARGIN) as usize).min(pcm.len()));
        let text =
            hear(recognizer, language, &pcm[from..to], clock).await.map_err(|failure| failed(failure.message))?;
        let speaker = if sides.len() == 2 && side == 0 { Role::User } else { Role::Agent };
        let (start_offset_ms, end_offset_ms) = (span.from / PER_MS, span.to / PER_MS);
        // Speech that is not understood stays, without words.
        entries.push(PostedEntry { start_offset_ms, end_offset_ms, speaker, utterance: text, filler_utterance: None });
    }
    let mut warnings = Vec::new();
    warnings.extend((sides.len() < 2).then(|| ONE_CHANNEL.to_owned()));
    warnings.extend(recognizer.identifies().err().map(|why| format!("transcript: {why}")));
    Ok(Heard { entries, warnings, recognizer: recognizer.model() })
}

/// Returns the text of one stretch of speech.
async fn hear(
    recognizer: &dyn Recognizer,
    language: SpokenIn<'_>,
    pcm: &[i16],
    clock: &Clock,
) -> Result<String, Failure> {
    let mut waits = 0;
    loop {
        let (mut feed, mut heard) = recognizer.open(language, &[]);
        feed.push(pcm);
        feed.finish();
        let failed = |message: &str| Err(Failure { code: "recognizer_failed", message: message.into() });
        let text = async {
            let mut last = failed("the recognizer gave no text");
            while let Some(said) = heard.recv().await {
                match said {
                    Recognized::Final { text, .. } => last = Ok(text.trim().to_owned()),
                    Recognized::Failed(failure) => last = Err(failure),
                    Recognized::Partial(_) | Recognized::Fallback(_) => {}
                }
            }
            last
        };
        let last = tokio::select! {
            biased;
            last = text => last,
            () = clock.until(clock.now_ms() + TEXT_MS) => failed("the recognizer took too long"),
        };
        match last {
            Err(failure) if failure.code == "recognizer_busy" && waits < BUSY_TIMES => {
                waits += 1;
                clock.until(clock.now_ms() + BUSY_MS).await;
            }
            last => return last,
        }
    }
}

/// Returns all speech in order of its onset.
fn stretches(sides: &[Vec<i16>]) -> Vec<Stretch> {
    let speech: Vec<Vec<Span>> = sides.iter().map(|pcm| segments(pcm)).collect();
    let mut all = Vec::new();
    for (side, spans) in speech.iter().enumerate() {
        // In one channel of both sides, whoever speaks after a pause may be the other.
        let whole = match &speech[..] {
            [caller, agent] => join_spans(spans, if side == 0 { agent } else { caller }),
            _ => spans.clone(),
        };
        let parts = whole.into_iter().flat_map(|span| split_span(span, &sides[side]));
        all.extend(parts.map(|span| Stretch { side, span }));
    }
    all.sort_by_key(|stretch| (stretch.span.from, stretch.span.to));
    all
}

/// Joins spans between which there is a short pause only, in which nobody of `others` speaks.
fn join_spans(spans: &[Span], others: &[Span]) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    for &span in spans {
        let free = |from: Sample| !others.iter().any(|other| other.from < span.from && other.to > from);
        match all.last_mut() {
            Some(last) if span.from - last.to <= PAUSE && span.to - last.from <= STRETCH_MAX && free(last.to) => {
                last.to = span.to;
            }
            _ => all.push(span),
        }
    }
    all
}

/// Parts a span that is too long for one piece.
fn split_span(span: Span, pcm: &[i16]) -> Vec<Span> {
    let (mut left, mut all) = (span, Vec::new());
    while left.length() > STRETCH_MAX {
        let end = left.from + STRETCH_MAX;
        let energy = |at: &usize| pcm[*at..].iter().take(FRAME).map(|&x| i64::from(x).pow(2)).sum::<i64>();
        let quietest = ((end - PART) as usize..end as usize).step_by(FRAME / 2).min_by_key(energy);
        let at = quietest.map_or(end, |at| (at + FRAME / 2) as Sample);
        all.push(Span { from: left.from, to: at });
        left.from = at;
    }
    all.push(left);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from_ms: i64, to_ms: i64) -> Span {
        Span { from: from_ms * PER_MS, to: to_ms * PER_MS }
    }

    #[test]
    fn a_pause_parts_words_when_it_is_long_or_the_other_side_speaks() {
        let own = [span(0, 1000), span(1800, 2500), span(4000, 5000), span(5400, 6000)];
        assert_eq!(join_spans(&own, &[]), [span(0, 2500), span(4000, 6000)]);
        let other = [span(1100, 1700)];
        assert_eq!(join_spans(&own, &other), [span(0, 1000), span(1800, 2500), span(4000, 6000)]);
        assert_eq!(join_spans(&[span(0, 24_500), span(25_000, 26_000)], &[]).len(), 2, "not longer than one piece");
    }

    #[test]
    fn what_is_too_long_is_parted_where_it_is_quiet() {
        let mut pcm = vec![1000; 60 * RATE_HZ as usize];
        let quiet = 23_400 * PER_MS as usize;
        pcm[quiet..quiet + FRAME].fill(0);
        let parts = split_span(span(0, 60_000), &pcm);
        assert_eq!(parts[0], Span { from: 0, to: (quiet + FRAME / 2) as Sample });
        assert_eq!(parts.len(), 3);
        assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from) && parts[2].to == 60_000 * PER_MS, "{parts:?}");
        assert!(parts.iter().all(|part| part.length() <= STRETCH_MAX), "{parts:?}");
        assert_eq!(split_span(span(10, 20), &pcm), [span(10, 20)]);
    }
}
