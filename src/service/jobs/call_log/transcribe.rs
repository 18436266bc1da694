//! Transcription of recordings that came without a transcript: each stretch of speech goes through the configured
//! recognizer. Choosing the recognizer and judging the words happen elsewhere.
//!
//! In recordings with a channel for each side, a stretch is of one side, and short pauses of it in which the other side
//! is silent do not part it. One channel of both sides is heard as one speaker: nothing tells whose a word is, and
//! short pauses do not part it either.
//!
//! A stretch keeps the edges that voice activity found. The recognizer hears more: voice activity misses weak first and
//! last sounds, and a hoarse voice in a room. Of four recordings of people, 125 of 166 wrong words lay outside of its
//! spans.
//!
//! One recording is transcribed at a time, before the clock of its evaluation begins. Eight at once took every decoder
//! of the calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::{FRAME, PER_MS, RATE_HZ, Sample};
use ringer_media::measure::{Span, segments};
use ringer_model::call_log::{RecognizedSpeech, RecognizedWord};
use ringer_model::digital_human::Role;
use ringer_model::transcript::PostedEntry;
use ringer_provider::keyterms::idle_keyterms;
use ringer_provider::{Failure, ModelName, Recognized, RecognizedWord as HeardWord, Recognizer, SpokenIn};
use serde::{Deserialize, Serialize};

/// A pause of one side up to this length does not part its words, where each side has a channel.
const PAUSE: Sample = 1000 * PER_MS;
/// Such a pause in one channel of both sides: the margins before and after it would meet.
const ONE_CHANNEL_PAUSE: Sample = 2 * MARGIN;
/// Longest stretch that is recognised in one piece.
const STRETCH_MAX: Sample = 25_000 * PER_MS;
/// A longer one is parted where it is quietest in its last 3 s.
const PART: Sample = 3000 * PER_MS;
/// A recognizer hears what is this much before and after the speech, too, up to the middle of a pause between two
/// stretches. Then no word is heard twice.
const MARGIN: Sample = 700 * PER_MS;
/// Longest wait for the text of one stretch.
const TEXT_MS: i64 = 300_000;
/// A recognizer that is busy with calls is asked again after so long, so often.
const BUSY_MS: i64 = 2000;
const BUSY_TIMES: usize = 60;

/// A language is spoken in a recording when one of so many stretches is in it.
const FEW: usize = 5;

/// Warning about a recording with one channel for both sides.
const ONE_CHANNEL: &str = "transcript: the recording has one channel, in which nobody is told apart: all words stand as the \
                           agent's, and nothing is measured by side";

/// Words of a recording.
#[derive(Serialize, Deserialize)]
pub(super) struct Heard {
    pub entries: Vec<PostedEntry>,
    /// The same with confidence and the times of words.
    #[serde(default)]
    pub recognized: Option<Vec<RecognizedSpeech>>,
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
    /// The speech, as voice activity found it.
    span: Span,
    /// The audio that the recognizer gets.
    heard: Span,
}

/// Recognises a call of these sides (caller and agent, or both in one) that was recorded at `rate_hz`, with these bias
/// words.
///
/// # Errors
/// Why there are no words, for a person.
pub(super) async fn transcribe(
    recognizer: &dyn Recognizer,
    keyterms: &[String],
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
    let (mut recognized, mut languages) = (Vec::new(), BTreeMap::<String, usize>::new());
    for Stretch { side, span, heard } in found {
        let pcm = &sides[side][heard.from as usize..heard.to as usize];
        let text =
            hear(recognizer, (language, keyterms), pcm, clock).await.map_err(|failure| failed(failure.message))?;
        text.language.into_iter().for_each(|code| *languages.entry(code).or_default() += 1);
        let word = |word: HeardWord| RecognizedWord {
            text: word.text,
            start_offset_ms: (heard.from + word.from) / PER_MS,
            end_offset_ms: (heard.from + word.to) / PER_MS,
            confidence: word.confidence,
        };
        let speaker = if sides.len() == 2 && side == 0 { Role::User } else { Role::Agent };
        let (start_offset_ms, end_offset_ms) = (span.from / PER_MS, span.to / PER_MS);
        // Speech that is not understood stays, without words.
        recognized.push(RecognizedSpeech {
            speaker,
            start_offset_ms,
            end_offset_ms,
            text: text.text,
            confidence: text.confidence,
            words: text.words.into_iter().map(word).collect(),
        });
    }
    let entry = |speech: &RecognizedSpeech| PostedEntry {
        start_offset_ms: speech.start_offset_ms,
        end_offset_ms: speech.end_offset_ms,
        speaker: speech.speaker,
        utterance: speech.text.clone(),
        filler_utterance: None,
    };
    let entries = recognized.iter().map(entry).collect();
    let mut warnings = Vec::new();
    warnings.extend((sides.len() < 2).then(|| ONE_CHANNEL.to_owned()));
    warnings.extend(doubts(recognizer, &languages, recognized.len()));
    warnings.extend(recognizer.identifies().err().map(|why| format!("transcript: {why}")));
    warnings.extend(idle_keyterms(recognizer.count_keyterms(keyterms), keyterms.len()));
    Ok(Heard { entries, recognized: Some(recognized), warnings, recognizer: recognizer.model() })
}

/// Returns warnings about the languages of a recording, from the number of stretches in each. One that is heard in few
/// of them is a mistake of the recognizer.
fn doubts(recognizer: &dyn Recognizer, languages: &BTreeMap<String, usize>, stretches: usize) -> Vec<String> {
    let spoken = languages.iter().filter(|(_, count)| FEW * **count >= stretches);
    spoken.filter_map(|(code, _)| recognizer.doubt(code)).map(|why| format!("transcript: {why}")).collect()
}

/// Text of one stretch of speech; positions of words count from the start of the audio that was given.
struct Text {
    text: String,
    words: Vec<HeardWord>,
    confidence: Option<f32>,
    /// Language that the recognizer took it for; `None`: it tells none.
    language: Option<String>,
}

/// Returns the text of one stretch of speech.
async fn hear(
    recognizer: &dyn Recognizer,
    (language, keyterms): (SpokenIn<'_>, &[String]),
    pcm: &[i16],
    clock: &Clock,
) -> Result<Text, Failure> {
    let mut waits = 0;
    loop {
        let (mut feed, mut heard) = recognizer.open(language, keyterms);
        feed.push(pcm);
        feed.finish();
        let failed = |message: &str| Err(Failure { code: "recognizer_failed", message: message.into() });
        let text = async {
            let mut last = failed("the recognizer gave no text");
            while let Some(said) = heard.recv().await {
                match said {
                    Recognized::Final { text, words, confidence, detected_language } => {
                        let language = match detected_language {
                            DetectedLanguage::Detected(code) | DetectedLanguage::Hinted(code) => Some(code),
                            DetectedLanguage::Unknown | DetectedLanguage::Fixed => None,
                        };
                        last = Ok(Text { text: text.trim().to_owned(), words, confidence, language });
                    }
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
        let whole = match &speech[..] {
            [caller, agent] => join_spans(spans, if side == 0 { agent } else { caller }, PAUSE),
            _ => join_spans(spans, &[], ONE_CHANNEL_PAUSE),
        };
        let parts: Vec<Span> = whole.into_iter().flat_map(|span| split_span(span, &sides[side])).collect();
        let heard = widen_spans(&parts, sides[side].len() as Sample);
        all.extend(parts.into_iter().zip(heard).map(|(span, heard)| Stretch { side, span, heard }));
    }
    all.sort_by_key(|stretch| (stretch.span.from, stretch.span.to));
    all
}

/// Joins spans between which there is a `pause` at most, in which nobody of `others` speaks.
fn join_spans(spans: &[Span], others: &[Span], pause: Sample) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    for &span in spans {
        let free = |from: Sample| !others.iter().any(|other| other.from < span.from && other.to > from);
        match all.last_mut() {
            Some(last) if span.from - last.to <= pause && span.to - last.from <= STRETCH_MAX && free(last.to) => {
                last.to = span.to;
            }
            _ => all.push(span),
        }
    }
    all
}

/// Returns spans of one channel with [`MARGIN`] before and after each: within the channel's `length`, and without
/// overlap.
fn widen_spans(spans: &[Span], length: Sample) -> Vec<Span> {
    let middle = |from: &Span, to: &Span| from.to + (to.from - from.to) / 2;
    let widened = |(at, span): (usize, &Span)| {
        let least = at.checked_sub(1).map_or(0, |before| middle(&spans[before], span));
        let most = spans.get(at + 1).map_or(length, |after| middle(span, after));
        Span { from: (span.from - MARGIN).max(least), to: (span.to + MARGIN).min(most) }
    };
    spans.iter().enumerate().map(widened).collect()
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
    use ringer_media::testing::Voice;

    use super::*;

    fn span(from_ms: i64, to_ms: i64) -> Span {
        Span { from: from_ms * PER_MS, to: to_ms * PER_MS }
    }

    #[test]
    fn a_pause_parts_words_when_it_is_long_or_the_other_side_speaks() {
        let own = [span(0, 1000), span(1800, 2500), span(4000, 5000), span(5400, 6000)];
        assert_eq!(join_spans(&own, &[], PAUSE), [span(0, 2500), span(4000, 6000)]);
        let other = [span(1100, 1700)];
        assert_eq!(join_spans(&own, &other, PAUSE), [span(0, 1000), span(1800, 2500), span(4000, 6000)]);
        assert_eq!(
            join_spans(&[span(0, 24_500), span(25_000, 26_000)], &[], PAUSE).len(),
            2,
            "not longer than one piece"
        );
    }

    #[test]
    fn a_recognizer_hears_more_than_the_speech_and_nothing_twice() {
        let speech = [span(300, 2000), span(3200, 4000), span(6000, 7000), span(7000, 8000)];
        let heard = [span(0, 2600), span(2600, 4700), span(5300, 7000), span(7000, 8500)];
        assert_eq!(widen_spans(&speech, 8500 * PER_MS), heard);
        assert_eq!(widen_spans(&[], 100), []);
    }

    #[test]
    fn one_channel_is_heard_through_short_pauses() {
        let voice = Voice::from_ulaw(include_bytes!("../../../../fixtures/audio/speech.ul"));
        let said = voice.say(16_000, 0);
        let pcm = [&[0; 32_000], &*said, &[0; 9600], &*said, &[0; 32_000]].concat();
        assert_eq!(segments(&pcm).len(), 2, "the pause is one");
        let found = stretches(std::slice::from_ref(&pcm));
        let [Stretch { span, heard, .. }] = found[..] else { panic!("{found:?}") };
        let near = |found: Sample, at: Sample| (found - at).abs() <= 40 * PER_MS;
        assert!(near(span.from, 32_000) && near(span.to, 73_600), "{span:?}");
        assert_eq!((heard.from, heard.to), (span.from - MARGIN, span.to + MARGIN));
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
