//! Providers without models: a synthesizer that hums, and a recognizer with given words.

use std::collections::VecDeque;

use parking_lot::Mutex;
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::Sample;
use tokio::sync::mpsc;

use super::{
    Failure, Job, Recognized, RecognizedWord, Recognizer, RecognizerFeed, Spoken, SpokenIn, Status, Synthesizer, Voice,
    VoiceWanted,
};

/// Hums a tone of 300 ms for each word.
#[derive(Clone, Debug)]
pub struct FakeSynthesizer {
    /// Frequency of the tone.
    pub tone_hz: f32,
    /// Failure of every synthesis; `None`: all succeed.
    pub failure: Option<Failure>,
}

impl Default for FakeSynthesizer {
    fn default() -> Self {
        FakeSynthesizer { tone_hz: 440.0, failure: None }
    }
}

impl FakeSynthesizer {
    /// Samples of one word.
    pub const WORD: usize = 4800;
}

impl Synthesizer for FakeSynthesizer {
    fn voice(&self, _wanted: &VoiceWanted) -> Result<Voice, Failure> {
        Ok(Voice { id: "fake:hum".into(), rate_wpm: 200.0, ..Voice::default() })
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        _voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        // A sine of this amplitude has -26 dBov.
        const AMPLITUDE: f32 = 2322.0;
        let step = std::f32::consts::TAU * self.tone_hz / 16_000.0;
        let samples = text.split_whitespace().count() * FakeSynthesizer::WORD;
        let hum = (0..samples).map(|at| (AMPLITUDE * (step * at as f32).sin()).round() as i16).collect();
        let result = self.failure.clone().map_or(Ok(hum), Err);
        Box::pin(async move {
            let _ = out.send(Spoken::Audio(result?)).await;
            Ok(())
        })
    }

    fn status(&self) -> Status {
        self.failure.as_ref().map_or(Status::Ok, |failure| Status::Down(failure.message.clone()))
    }
}

/// Hears the given texts, one a stream, in order; afterwards nothing.
#[derive(Default)]
pub struct FakeRecognizer {
    texts: Mutex<VecDeque<String>>,
    partial_after: Sample,
}

impl FakeRecognizer {
    /// Returns a recognizer. The running text comes once a stream has `partial_after` samples, the final text at its
    /// end.
    pub fn new(texts: &[&str], partial_after: Sample) -> FakeRecognizer {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        FakeRecognizer { texts: Mutex::new(texts), partial_after }
    }
}

struct FakeFeed {
    text: String,
    heard: Sample,
    partial_after: Sample,
    news: Option<mpsc::Sender<Recognized>>,
}

impl Recognizer for FakeRecognizer {
    fn open(
        &self,
        _language: SpokenIn<'_>,
        _keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let (news, receiver) = mpsc::channel(4);
        let text = self.texts.lock().pop_front().unwrap_or_default();
        (Box::new(FakeFeed { text, heard: 0, partial_after: self.partial_after, news: Some(news) }), receiver)
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

impl RecognizerFeed for FakeFeed {
    fn push(&mut self, pcm: &[i16]) {
        let before = self.heard;
        self.heard += pcm.len() as Sample;
        if let Some(news) = &self.news
            && before < self.partial_after
            && self.heard >= self.partial_after
        {
            let _ = news.try_send(Recognized::Partial(self.text.clone()));
        }
    }

    fn finish(&mut self) {
        let Some(news) = self.news.take() else { return };
        let texts: Vec<&str> = self.text.split_whitespace().collect();
        let count = texts.len().max(1) as Sample;
        let at = |index: usize| self.heard * index as Sample / count;
        let word = |(index, text): (usize, &&str)| RecognizedWord {
            text: (*text).to_owned(),
            from: at(index),
            to: at(index + 1),
            confidence: Some(1.0),
        };
        let words = texts.iter().enumerate().map(word).collect();
        let (text, confidence, detected_language) = (self.text.clone(), Some(1.0), DetectedLanguage::Unknown);
        let _ = news.try_send(Recognized::Final { text, words, confidence, detected_language });
    }
}
