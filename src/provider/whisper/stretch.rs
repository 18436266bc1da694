//! One stretch of speech: what is heard of it when, and how its pieces become one text.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::Sample;
use ringer_speech::whisper::{Bias, SURE, Spoken, Transcription, Word, piece_samples};
use tokio::sync::mpsc;

use super::gate::Gate;
use super::pool::{Job, Pool};
use crate::{Failure, Recognized, RecognizedWord, RecognizerFeed};

/// A piece of a long stretch ends where it is quietest in its last 8 s.
const LATE: usize = 8 * 16_000;
/// Length of the gap that is looked for: 200 ms.
const GAP: usize = 3200;
/// Most pieces of a stretch: what follows is dropped.
const PIECES_MAX: usize = 150;
/// New audio after which running text is asked for: 500 ms, while nothing else waits for the threads.
const RUNNING: usize = 8000;
/// Running text of what is longer than this is heard anew in its last part only: 3 s.
const RUNNING_PART: usize = 3 * 16_000;
/// Samples below which audio has no words: 60 ms.
const SHORT: usize = 960;

/// Part of a stretch that a job recognises.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Part {
    /// A closed piece, by its number.
    Piece(usize),
    /// Rest behind the closed pieces.
    Rest,
    /// The same from this sample of it on, while it still grows.
    Running { from: usize },
}

/// A part of a stretch, to be heard.
struct Asked {
    pcm: Vec<i16>,
    part: Part,
    cancelled: Arc<AtomicBool>,
    stretch: Arc<Stretch>,
}

impl Job for Asked {
    fn pcm(&self) -> &[i16] {
        &self.pcm
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.stretch.gone.load(Ordering::Relaxed)
    }

    fn language(&self) -> Spoken<'_> {
        let (code, is_known) = &self.stretch.language;
        if *is_known { Spoken::Known(code) } else { Spoken::Likely(code) }
    }

    fn bias(&self) -> &Bias {
        &self.stretch.bias
    }

    fn finish_with(&self, heard: Option<Transcription>) {
        let mut inner = self.stretch.lock();
        match (self.part, heard) {
            (Part::Running { from }, heard) => {
                inner.asks_running = false;
                // What was asked before a piece was closed counts from another sample.
                if let Some(heard) = heard.filter(|_| !self.is_cancelled() && from == inner.settled) {
                    inner.show(&heard, self.pcm.len());
                }
            }
            (Part::Piece(index), Some(heard)) => {
                inner.pieces[index].heard = Some(heard);
                inner.piece_is_asked = false;
                self.stretch.ask_piece(&mut inner);
            }
            (Part::Rest, Some(heard)) => {
                let of_this = |attempt: &&mut Attempt| Arc::ptr_eq(&attempt.cancelled, &self.cancelled);
                if let Some(attempt) = inner.attempt.as_mut().filter(of_this) {
                    attempt.heard = Some(heard);
                }
            }
            (_, None) => {}
        }
        inner.close(&self.stretch.detected_language);
    }
}

/// One stretch of speech.
pub(super) struct Stretch {
    pool: Arc<Pool>,
    /// Language code, and true if it is certain and not only likely.
    language: (String, bool),
    /// Language that is told where the model tells none.
    detected_language: DetectedLanguage,
    /// Words that are likely to come.
    bias: Bias,
    /// Samples above which the stretch is heard in pieces.
    piece: usize,
    running: bool,
    /// True if the stretch was given up by its opener.
    gone: AtomicBool,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Rest behind the closed pieces.
    pcm: Vec<i16>,
    /// Samples in the closed pieces.
    before: usize,
    pieces: Vec<Piece>,
    /// Closed pieces that wait for the one before: a long stretch takes one thread, and the queue stays short for
    /// others.
    later: VecDeque<(usize, Vec<i16>)>,
    piece_is_asked: bool,
    attempt: Option<Attempt>,
    gate: Gate,
    finished: bool,
    /// Samples of `pcm` when running text was last asked for.
    asked: usize,
    asks_running: bool,
    /// Samples of `pcm` whose words stand in `settled_text` and are not heard anew for a running text.
    settled: usize,
    settled_text: String,
    shown: String,
    news: mpsc::Sender<Recognized>,
    /// `None` after the last message.
    last: Option<mpsc::OwnedPermit<Recognized>>,
}

struct Piece {
    from: usize,
    heard: Option<Transcription>,
}

/// The rest, as it was when the gate had seen this much speech.
struct Attempt {
    spoken: u64,
    cancelled: Arc<AtomicBool>,
    heard: Option<Transcription>,
}

impl Stretch {
    pub(super) fn new(
        pool: Arc<Pool>,
        (language, detected_language): ((String, bool), DetectedLanguage),
        bias: Bias,
        running: bool,
        news: mpsc::Sender<Recognized>,
        last: mpsc::OwnedPermit<Recognized>,
    ) -> Arc<Stretch> {
        let inner = Inner {
            pcm: Vec::new(),
            before: 0,
            pieces: Vec::new(),
            later: VecDeque::new(),
            piece_is_asked: false,
            attempt: None,
            gate: Gate::default(),
            finished: false,
            asked: 0,
            asks_running: false,
            settled: 0,
            settled_text: String::new(),
            shown: String::new(),
            news,
            last: Some(last),
        };
        Arc::new(Stretch {
            pool,
            piece: piece_of(&language.0, &bias),
            language,
            detected_language,
            bias,
            running,
            gone: AtomicBool::new(false),
            inner: Mutex::new(inner),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    fn job(self: &Arc<Stretch>, pcm: Vec<i16>, part: Part, cancelled: Arc<AtomicBool>) -> Box<dyn Job> {
        Box::new(Asked { pcm, part, cancelled, stretch: self.clone() })
    }

    fn push(self: &Arc<Stretch>, pcm: &[i16]) {
        let mut inner = self.lock();
        if inner.last.is_none() || inner.pieces.len() >= PIECES_MAX {
            return;
        }
        inner.pcm.extend_from_slice(pcm);
        inner.gate.push(pcm);
        while inner.pcm.len() > self.piece {
            self.close_piece(&mut inner);
        }
        let spoken = inner.gate.spoken_blocks();
        if inner.attempt.as_ref().is_some_and(|attempt| attempt.spoken != spoken) {
            inner.give_up();
        }
        if inner.attempt.is_none() && inner.gate.is_silent() {
            self.try_rest(&mut inner);
        }
        if self.running && !inner.asks_running && inner.pcm.len() >= inner.asked + RUNNING {
            let from = inner.settled;
            let job = self.job(inner.pcm[from..].to_vec(), Part::Running { from }, Arc::default());
            (inner.asked, inner.asks_running) = (inner.pcm.len(), self.pool.ask_running(job));
        }
    }

    fn finish(self: &Arc<Stretch>) {
        let mut inner = self.lock();
        inner.finished = true;
        let spoken = inner.gate.spoken_blocks();
        if inner.attempt.as_ref().is_none_or(|attempt| attempt.spoken != spoken) {
            inner.give_up();
            self.try_rest(&mut inner);
        }
        inner.close(&self.detected_language);
    }

    /// Asks for the text of the rest as it is now.
    fn try_rest(self: &Arc<Stretch>, inner: &mut Inner) {
        let cancelled = Arc::new(AtomicBool::new(false));
        let heard = (inner.pcm.len() < SHORT).then(silence);
        let is_heard = heard.is_some();
        inner.attempt = Some(Attempt { spoken: inner.gate.spoken_blocks(), cancelled: cancelled.clone(), heard });
        if !is_heard && !self.pool.ask(self.job(inner.pcm.clone(), Part::Rest, cancelled)) {
            match inner.finished {
                true => inner.refuse(),
                false => inner.attempt = None,
            }
        }
    }

    fn close_piece(self: &Arc<Stretch>, inner: &mut Inner) {
        let at = quietest(&inner.pcm[..self.piece]);
        let pcm: Vec<i16> = inner.pcm.drain(..at).collect();
        inner.give_up();
        inner.asked = 0;
        inner.settled = 0;
        inner.settled_text.clear();
        let (index, from) = (inner.pieces.len(), inner.before);
        inner.pieces.push(Piece { from, heard: None });
        inner.before += at;
        inner.later.push_back((index, pcm));
        self.ask_piece(inner);
    }

    /// Asks for the text of the next closed piece, one at a time.
    fn ask_piece(self: &Arc<Stretch>, inner: &mut Inner) {
        if inner.piece_is_asked {
            return;
        }
        let Some((index, pcm)) = inner.later.pop_front() else { return };
        inner.piece_is_asked = true;
        if !self.pool.ask(self.job(pcm, Part::Piece(index), Arc::default())) {
            inner.refuse();
        }
    }
}

/// Returns the samples above which a stretch is heard in pieces. Likely words take up to a quarter of the tokens that
/// the model has for a text.
fn piece_of(language: &str, bias: &Bias) -> usize {
    let whole = piece_samples(language);
    if bias.is_empty() { whole } else { whole / 4 * 3 }
}

/// Returns the middle of the quietest gap in the later part.
fn quietest(pcm: &[i16]) -> usize {
    let energy = |from: &usize| pcm[*from..from + GAP].iter().map(|&x| i64::from(x).pow(2)).sum::<i64>();
    let from = (pcm.len() - LATE..pcm.len() - GAP).step_by(GAP / 4).min_by_key(energy);
    from.map_or(pcm.len(), |from| from + GAP / 2)
}

fn silence() -> Transcription {
    Transcription {
        text: String::new(),
        words: Vec::new(),
        log_probability: 0.0,
        no_speech: 1.0,
        repeats: false,
        language: None,
    }
}

impl Inner {
    fn give_up(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn refuse(&mut self) {
        let message = "text late: more is said than this machine hears at once".to_owned();
        if let Some(last) = self.last.take() {
            last.send(Recognized::Failed(Failure { code: "recognizer_busy", message }));
        }
    }

    /// Tells the running text, whose last part was heard in `samples` of audio.
    fn show(&mut self, heard: &Transcription, samples: usize) {
        let closed = self.pieces.iter().filter_map(|piece| piece.heard.as_ref());
        let before = join_texts(closed);
        let latest = join_texts([heard].into_iter());
        let text = [&*before, &*self.settled_text, &*latest].into_iter().filter(|text| !text.is_empty());
        let text = text.collect::<Vec<_>>().join(" ");
        if let Some((until, words)) = settled_words(heard, samples) {
            self.settled += until;
            self.settled_text = [&*self.settled_text, &words].join(" ").trim_start().to_owned();
        }
        if self.last.is_some() && !self.finished && text != self.shown {
            self.shown.clone_from(&text);
            let _ = self.news.try_send(Recognized::Partial(text));
        }
    }

    /// Says the last text, once everything was heard.
    fn close(&mut self, detected_language: &DetectedLanguage) {
        let rest = self.attempt.as_ref().and_then(|attempt| attempt.heard.as_ref());
        let (true, Some(rest)) = (self.finished, rest) else { return };
        let mut parts = Vec::new();
        for piece in &self.pieces {
            let Some(heard) = &piece.heard else { return };
            parts.push((piece.from, heard));
        }
        parts.push((self.before, rest));
        let said = whole(&parts, detected_language);
        if let Some(last) = self.last.take() {
            last.send(said);
        }
    }
}

/// Returns the end of the words that lie before the last part of the audio, in samples, and these words; `None` where
/// there are none.
fn settled_words(heard: &Transcription, samples: usize) -> Option<(usize, String)> {
    let most = samples.checked_sub(RUNNING_PART).filter(|_| !heard.is_unclear())? as i64;
    let words: Vec<&Word> = heard.words.iter().take_while(|word| word.to <= most).collect();
    let until = usize::try_from(words.last()?.to).ok()?;
    Some((until, words.iter().map(|word| word.text.trim()).collect::<Vec<_>>().join(" ")))
}

fn join_texts<'h>(parts: impl Iterator<Item = &'h Transcription>) -> String {
    let texts = parts.filter(|heard| !heard.is_unclear() && !heard.text.is_empty()).map(|heard| heard.text.as_str());
    texts.collect::<Vec<_>>().join(" ")
}

/// Returns all parts, with the positions of their first samples, as one text. What the model doubts is left out.
fn whole(parts: &[(usize, &Transcription)], detected_language: &DetectedLanguage) -> Recognized {
    let clear = || parts.iter().filter(|(_, heard)| !heard.is_unclear() && !heard.text.is_empty());
    let words = clear().flat_map(|&(from, heard)| {
        heard.words.iter().map(move |word| RecognizedWord {
            text: word.text.clone(),
            from: from as Sample + word.from,
            to: from as Sample + word.to,
            confidence: Some(word.confidence),
        })
    });
    let confidence = clear().map(|(_, heard)| heard.confidence()).reduce(f32::min);
    let found = clear().filter_map(|(_, heard)| heard.language.as_ref()).find(|(_, sure)| *sure >= SURE);
    let detected_language =
        found.map_or_else(|| detected_language.clone(), |(language, _)| DetectedLanguage::Hinted(language.clone()));
    let text = join_texts(parts.iter().map(|&(_, heard)| heard));
    Recognized::Final { text, words: words.collect(), confidence, detected_language }
}

/// The way into a stretch.
pub(super) struct Feed {
    stretch: Option<Arc<Stretch>>,
}

impl Feed {
    pub(super) fn of(stretch: Arc<Stretch>) -> Feed {
        Feed { stretch: Some(stretch) }
    }

    /// Makes a way into nothing.
    pub(super) fn nowhere() -> Feed {
        Feed { stretch: None }
    }
}

impl RecognizerFeed for Feed {
    fn push(&mut self, pcm: &[i16]) {
        if let Some(stretch) = &self.stretch {
            stretch.push(pcm);
        }
    }

    fn finish(&mut self) {
        if let Some(stretch) = self.stretch.take() {
            stretch.finish();
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(stretch) = self.stretch.take() {
            stretch.gone.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_before_the_last_part_are_heard_once() {
        let word = |text: &str, from_ms: i64, to_ms: i64| Word {
            text: text.to_owned(),
            from: 16 * from_ms,
            to: 16 * to_ms,
            confidence: 0.9,
        };
        let words = vec![word(" The", 100, 300), word("price", 300, 900), word("today", 1600, 2200)];
        let heard = Transcription { words, text: "The price today".into(), no_speech: 0.0, ..silence() };
        for (ms, expect) in [
            (2500, None),
            (3200, None),
            (3300, Some((16 * 300, "The"))),
            (4000, Some((16 * 900, "The price"))),
            (9000, Some((16 * 2200, "The price today"))),
        ] {
            let found = settled_words(&heard, 16 * ms);
            assert_eq!(found.as_ref().map(|(until, words)| (*until, words.as_str())), expect, "{ms} ms");
        }
        let doubted = Transcription { no_speech: 1.0, ..heard };
        assert_eq!(settled_words(&doubted, 16 * 9000), None);
    }
}
