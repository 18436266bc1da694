//! Two providers as one: when the first fails, the second takes over, and the failure is told. After a failure the
//! first is passed over for a while, so that not every turn waits for it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use ringer_base::tasks::Tasks;
use tokio::sync::mpsc;

use super::taken_over::TakenOver;
use super::{
    Failure, Job, ModelName, Recognized, Recognizer, RecognizerFeed, Spoken, SpokenIn, Status, Synthesizer, Voice,
    VoiceWanted, whole_speech,
};

/// Uses for which a provider is passed over after it failed.
const PASSED_OVER: u32 = 8;
/// Speech that is kept for the second recognizer: 30 s.
const KEPT_MAX: usize = 30 * 16_000;
/// Distance in samples (250 ms) within which a gap between words is searched in the second voice's speech.
const SEARCH: usize = 4000;
/// Length of the gap that is looked for: 20 ms.
const GAP: usize = 320;

/// Counts down the uses after a failure.
#[derive(Default)]
struct Rest(AtomicU32);

impl Rest {
    /// True when the first provider may be used.
    fn is_over(&self) -> bool {
        let down = |left: u32| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, down).is_err()
    }

    fn begin(&self) {
        self.0.store(PASSED_OVER, Ordering::Relaxed);
    }
}

/// A synthesizer with another behind it.
pub struct SynthesizerPair {
    first: Arc<dyn Synthesizer>,
    second: Arc<dyn Synthesizer>,
    rest: Rest,
}

impl SynthesizerPair {
    /// Returns a pair in which `second` speaks when `first` fails.
    pub fn new(first: Arc<dyn Synthesizer>, second: Arc<dyn Synthesizer>) -> SynthesizerPair {
        SynthesizerPair { first, second, rest: Rest::default() }
    }

    async fn say(&self, text: &str, voice: &Voice, out: mpsc::Sender<Spoken>) -> Result<(), Failure> {
        let Some(other) = voice.fallback.as_deref() else { return self.first.synthesize(text, voice, out).await };
        if voice.taken_over.is_set() || !self.rest.is_over() {
            // A call that has begun in the other voice ends in it.
            voice.taken_over.note();
            let _ = out.send(Spoken::Fallback(passed_over("synthesizer"))).await;
            return self.second.synthesize(text, other, out).await;
        }
        let (parts, mut said) = mpsc::channel(4);
        let passing = async {
            let mut samples = 0;
            while let Some(spoken) = said.recv().await {
                if let Spoken::Audio(pcm) = &spoken {
                    samples += pcm.len();
                }
                let _ = out.send(spoken).await;
            }
            samples
        };
        let (result, samples) = tokio::join!(self.first.synthesize(text, voice, parts), passing);
        let Err(failure) = result else { return Ok(()) };
        if failure.code == "text_too_long" {
            return Err(failure);
        }
        self.rest.begin();
        voice.taken_over.note();
        let _ = out.send(Spoken::Fallback(failure)).await;
        // Both speak at the same rate: the second goes on about where the first was cut off.
        let whole = whole_speech(&*self.second, text, other).await?;
        let from = if samples == 0 { 0 } else { gap_near(&whole, samples) };
        let _ = out.send(Spoken::Audio(whole[from..].into())).await;
        Ok(())
    }
}

/// Returns the reason why a provider is not asked: it failed a short while ago, perhaps in another call.
fn passed_over(kind: &str) -> Failure {
    let message = format!("the {kind} failed a short while ago and is passed over");
    Failure { code: "passed_over", message }
}

/// Returns the middle of the quietest stretch near `at`.
fn gap_near(pcm: &[i16], at: usize) -> usize {
    let energy = |from: &usize| pcm[*from..from + GAP].iter().map(|&x| i64::from(x).pow(2)).sum::<i64>();
    let last = pcm.len().saturating_sub(GAP);
    let quietest = (at.saturating_sub(SEARCH)..(at + SEARCH).min(last)).step_by(GAP / 2).min_by_key(energy);
    quietest.map_or(at.min(pcm.len()), |from| from + GAP / 2)
}

impl Synthesizer for SynthesizerPair {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        let own = VoiceWanted { custom_voice_id: None, ..wanted.clone() };
        let second = self.second.voice(wanted).or_else(|_| self.second.voice(&own));
        match self.first.voice(wanted) {
            Ok(first) => {
                let (fallback, taken_over) = (second.ok().map(Box::new), TakenOver::for_call());
                Ok(Voice { fallback, taken_over, ..first })
            }
            Err(failure) => Err(failure),
        }
    }

    fn find_voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        self.first.find_voice(wanted)
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.say(text, voice, out))
    }

    fn ready<'a>(&'a self, voice: &'a Voice) -> Job<'a, ()> {
        Box::pin(async move {
            self.first.ready(voice).await;
            if let Some(second) = voice.fallback.as_deref() {
                self.second.ready(second).await;
            }
        })
    }

    fn check<'a>(&'a self, voice: &'a Voice) -> Job<'a, Result<(), Failure>> {
        self.first.check(voice)
    }

    fn status(&self) -> Status {
        self.first.status()
    }

    fn model<'a>(&'a self, voice: &'a Voice) -> Job<'a, Option<ModelName>> {
        self.first.model(voice)
    }
}

/// A recognizer with another behind it.
pub struct RecognizerPair {
    first: Arc<dyn Recognizer>,
    second: Arc<dyn Recognizer>,
    rest: Arc<Rest>,
    tasks: Tasks,
}

impl RecognizerPair {
    /// Returns a pair in which `second` listens when `first` fails; it hears the speech from its beginning.
    pub fn new(first: Arc<dyn Recognizer>, second: Arc<dyn Recognizer>) -> RecognizerPair {
        RecognizerPair { first, second, rest: Arc::default(), tasks: Tasks::new() }
    }
}

impl Recognizer for RecognizerPair {
    fn supports(&self, language: &str, rate_hz: u32) -> Result<(), String> {
        self.first.supports(language, rate_hz)
    }

    fn count_keyterms(&self, keyterms: &[String]) -> usize {
        self.first.count_keyterms(keyterms)
    }

    fn tells_running_text(&self) -> bool {
        self.first.tells_running_text()
    }

    fn identifies(&self) -> Result<(), String> {
        self.first.identifies()
    }

    fn doubt(&self, language: &str) -> Option<String> {
        self.first.doubt(language)
    }

    fn hears_wholes(&self) -> bool {
        self.first.hears_wholes()
    }

    fn expect(&self) {
        self.first.expect();
        self.second.expect();
    }

    fn open(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        self.begin(language, keyterms, false)
    }

    fn open_running(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        self.begin(language, keyterms, true)
    }

    fn status(&self) -> Status {
        self.first.status()
    }

    fn model(&self) -> Option<ModelName> {
        self.first.model()
    }
}

impl RecognizerPair {
    fn begin(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
        running: bool,
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let open = move |recognizer: &dyn Recognizer, language: SpokenIn<'_>, keyterms: &[String]| match running {
            true => recognizer.open_running(language, keyterms),
            false => recognizer.open(language, keyterms),
        };
        let (news, receiver) = mpsc::channel(16);
        if !self.rest.is_over() {
            let (feed, mut heard) = open(&*self.second, language, keyterms);
            let passed_over = with_idle_keyterms(passed_over("recognizer"), &*self.second, keyterms);
            self.tasks.spawn("recognise in another's place", async move {
                let _ = news.send(Recognized::Fallback(passed_over)).await;
                while let Some(message) = heard.recv().await {
                    if news.send(message).await.is_err() {
                        return;
                    }
                }
            });
            return (feed, receiver);
        }
        let (feed, mut heard) = open(&*self.first, language, keyterms);
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (second, rest, listener) = (self.second.clone(), self.rest.clone(), kept.clone());
        let is_known = matches!(language, SpokenIn::Known(_));
        let (language, keyterms) = (language.code().to_owned(), keyterms.to_vec());
        self.tasks.spawn("recognise with a fallback", async move {
            let passing = async {
                while let Some(message) = heard.recv().await {
                    let Recognized::Failed(failure) = message else {
                        let _ = news.send(message).await;
                        continue;
                    };
                    rest.begin();
                    let failure = with_idle_keyterms(failure, &*second, &keyterms);
                    let _ = news.send(Recognized::Fallback(failure)).await;
                    let language = if is_known { SpokenIn::Known(&language) } else { SpokenIn::Likely(&language) };
                    let (feed, others) = open(&*second, language, &keyterms);
                    listener.lock().turn_to(feed);
                    heard = others;
                    while let Some(message) = heard.recv().await {
                        let _ = news.send(message).await;
                    }
                    return;
                }
            };
            tokio::select! {
                () = news.closed() => {}
                () = passing => {}
            }
        });
        (Box::new(PairFeed { first: feed, kept }), receiver)
    }
}

/// Returns the failure of a recognizer, with a note where the one in its place does not use all bias words.
fn with_idle_keyterms(failure: Failure, second: &dyn Recognizer, keyterms: &[String]) -> Failure {
    match second.count_keyterms(keyterms) < keyterms.len() {
        true => Failure { message: format!("{}; keyterms are not used meanwhile", failure.message), ..failure },
        false => failure,
    }
}

/// The speech so far, until the second recognizer has it.
#[derive(Default)]
struct Kept {
    pcm: Vec<i16>,
    finished: bool,
    given_up: bool,
    second: Option<Box<dyn RecognizerFeed>>,
}

impl Kept {
    fn turn_to(&mut self, mut feed: Box<dyn RecognizerFeed>) {
        if self.given_up {
            return;
        }
        feed.push(&std::mem::take(&mut self.pcm));
        if self.finished {
            feed.finish();
        }
        self.second = Some(feed);
    }
}

struct PairFeed {
    first: Box<dyn RecognizerFeed>,
    kept: Arc<Mutex<Kept>>,
}

impl RecognizerFeed for PairFeed {
    fn push(&mut self, pcm: &[i16]) {
        self.first.push(pcm);
        let mut kept = self.kept.lock();
        if let Some(second) = &mut kept.second {
            return second.push(pcm);
        }
        let space = KEPT_MAX - kept.pcm.len().min(KEPT_MAX);
        kept.pcm.extend_from_slice(&pcm[..pcm.len().min(space)]);
    }

    fn finish(&mut self) {
        self.first.finish();
        let mut kept = self.kept.lock();
        kept.finished = true;
        if let Some(second) = &mut kept.second {
            second.finish();
        }
    }
}

impl Drop for PairFeed {
    fn drop(&mut self) {
        let mut kept = self.kept.lock();
        if !kept.finished {
            (kept.given_up, kept.second) = (true, None);
        }
    }
}

#[cfg(test)]
mod tests;
