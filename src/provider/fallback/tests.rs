//! Two synthesizers as one: what fails is said by the other.

use ringer_media::seed::Seed;

use super::*;
use crate::fake::{FakeRecognizer, FakeSynthesizer};

fn failure() -> Failure {
    Failure { code: "synthesizer_unreachable", message: "nobody there".into() }
}

fn voice_wanted() -> VoiceWanted {
    VoiceWanted { seed: Seed(1), ..VoiceWanted::of("en") }
}

async fn synthesize(pair: &SynthesizerPair, text: &str) -> (Vec<Spoken>, Result<(), Failure>) {
    let voice = pair.voice(&voice_wanted()).expect("there is a voice");
    say(pair, text, &voice).await
}

async fn say(pair: &SynthesizerPair, text: &str, voice: &Voice) -> (Vec<Spoken>, Result<(), Failure>) {
    let (out, mut parts) = mpsc::channel(16);
    let result = pair.synthesize(text, voice, out).await;
    let mut all = Vec::new();
    while let Some(part) = parts.recv().await {
        all.push(part);
    }
    (all, result)
}

/// Says two words and breaks off.
struct BreaksOff(FakeSynthesizer);

impl Synthesizer for BreaksOff {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        self.0.voice(wanted)
    }

    fn synthesize<'a>(
        &'a self,
        _: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.0.synthesize("two words", voice, out).await?;
            Err(failure())
        })
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

#[tokio::test]
async fn the_second_synthesizer_speaks_and_the_first_rests_for_a_while() {
    let broken = FakeSynthesizer { failure: Some(failure()), ..FakeSynthesizer::default() };
    let pair = SynthesizerPair::new(Arc::new(broken), Arc::new(FakeSynthesizer::default()));
    for turn in 0..=PASSED_OVER + 1 {
        let (parts, result) = synthesize(&pair, "one two three").await;
        assert_eq!(result, Ok(()));
        let asked = turn == 0 || turn == PASSED_OVER + 1;
        assert_eq!(parts.first() == Some(&Spoken::Fallback(failure())), asked, "text {turn}");
        let Some(Spoken::Audio(pcm)) = parts.last() else { panic!("text {turn}: {} parts", parts.len()) };
        assert_eq!(pcm.len(), 3 * FakeSynthesizer::WORD);
    }
}

/// Whoever took over in a call says all of its further words; another call begins with the first again.
#[tokio::test]
async fn a_call_keeps_the_voice_that_took_over() {
    let broken = FakeSynthesizer { failure: Some(failure()), ..FakeSynthesizer::default() };
    let pair = SynthesizerPair::new(Arc::new(broken), Arc::new(FakeSynthesizer::default()));
    let voice = pair.voice(&voice_wanted()).expect("there is a voice");
    let asks_first = |parts: &[Spoken]| parts.first() == Some(&Spoken::Fallback(failure()));
    for turn in 0..3 * PASSED_OVER {
        let (parts, _) = say(&pair, "one two", &voice.clone()).await;
        assert_eq!(asks_first(&parts), turn == 0, "text {turn}");
    }
    for turn in 0..=PASSED_OVER {
        let (parts, _) = synthesize(&pair, "one two").await;
        assert_eq!(asks_first(&parts), turn == PASSED_OVER, "text {turn} of other calls");
    }
}

#[tokio::test]
async fn speech_that_breaks_off_goes_on_in_the_other_voice() {
    let pair =
        SynthesizerPair::new(Arc::new(BreaksOff(FakeSynthesizer::default())), Arc::new(FakeSynthesizer::default()));
    let (parts, result) = synthesize(&pair, "one two three four five").await;
    assert_eq!(result, Ok(()));
    assert_eq!(parts[1], Spoken::Fallback(failure()));
    let samples: usize = parts.iter().map(|part| if let Spoken::Audio(pcm) = part { pcm.len() } else { 0 }).sum();
    assert!(samples.abs_diff(5 * FakeSynthesizer::WORD) <= SEARCH + GAP, "{samples} samples of five words");
}

/// Fails at once, or at the end of the audio.
struct Deaf {
    at_once: bool,
}

struct DeafFeed(Option<mpsc::Sender<Recognized>>);

impl RecognizerFeed for DeafFeed {
    fn push(&mut self, _: &[i16]) {}

    fn finish(&mut self) {
        if let Some(news) = self.0.take() {
            let _ = news.try_send(Recognized::Failed(failure()));
        }
    }
}

impl Recognizer for Deaf {
    fn open(&self, _: SpokenIn<'_>, _: &[String]) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let (news, receiver) = mpsc::channel(1);
        let mut feed = DeafFeed(Some(news));
        if self.at_once {
            feed.finish();
        }
        (Box::new(feed), receiver)
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

#[tokio::test]
async fn the_second_recognizer_hears_all_of_it() {
    for at_once in [true, false] {
        let second = Arc::new(FakeRecognizer::new(&["hello there"], 100));
        let pair = RecognizerPair::new(Arc::new(Deaf { at_once }), second);
        let (mut feed, mut news) = pair.open(SpokenIn::Known("en"), &[]);
        feed.push(&[1; 8000]);
        tokio::task::yield_now().await;
        feed.push(&[1; 8000]);
        feed.finish();
        assert_eq!(news.recv().await, Some(Recognized::Fallback(failure())), "at once: {at_once}");
        assert_eq!(news.recv().await, Some(Recognized::Partial("hello there".into())));
        let Some(Recognized::Final { text, words, .. }) = news.recv().await else { panic!("no text") };
        assert_eq!((text.as_str(), words[1].to), ("hello there", 16_000));
        assert_eq!(news.recv().await, None);
    }
}

#[tokio::test]
async fn a_feed_that_is_given_up_says_nothing() {
    let second = Arc::new(FakeRecognizer::new(&["hello"], 0));
    let pair = RecognizerPair::new(Arc::new(Deaf { at_once: true }), second);
    let (feed, mut news) = pair.open(SpokenIn::Known("en"), &[]);
    drop(feed);
    let mut all = Vec::new();
    while let Some(said) = news.recv().await {
        all.push(said);
    }
    assert!(!all.iter().any(|said| matches!(said, Recognized::Final { .. })), "{all:?}");
}
