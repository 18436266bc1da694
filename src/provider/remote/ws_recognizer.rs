//! A recognizer by WebSocket: audio goes out as it is heard, texts come back as they are known. One connection for each
//! stretch of speech.

use std::sync::Arc;

use ringer_base::tasks::Tasks;
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::pcm;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::websocket::{Connection, Heard};
use super::{LastUse, RECOGNIZER, Remote, WORDS_MAX, detected_language_of, words_of};
use crate::feed::{AudioFeed, Order};
use crate::{Failure, ModelName, Recognized, RecognizedWord, Recognizer, RecognizerFeed, SpokenIn, Status};

/// Longest text of one stretch of speech, and of its words with times together.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A recognizer by WebSocket.
pub struct WsRecognizer {
    remote: Remote,
    last: Arc<LastUse>,
    tasks: Tasks,
}

impl WsRecognizer {
    /// Opens no connection yet.
    pub fn new(remote: Remote) -> WsRecognizer {
        WsRecognizer { remote, last: Arc::default(), tasks: Tasks::new() }
    }
}

impl Recognizer for WsRecognizer {
    fn open(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let (feed, orders) = AudioFeed::new();
        let (news, receiver) = mpsc::channel(16);
        let mut start = json!({
            "type": "start",
            "encoding": "pcm_s16le",
            "sample_rate": 16_000,
            "language": language.code(),
            "keyterms": keyterms,
            "model": self.remote.model,
        });
        if let SpokenIn::Likely(_) = language {
            start["detect_language"] = json!(true);
        }
        let (remote, last) = (self.remote.clone(), self.last.clone());
        self.tasks.spawn("recognise by WebSocket", async move {
            let listening = async {
                let result = listen(&remote, &start, orders, &news).await;
                last.note(&result);
                let said = match result {
                    Ok(None) => return,
                    Ok(Some(texts)) => texts.whole(),
                    Err(failure) => Recognized::Failed(failure),
                };
                let _ = news.send(said).await;
            };
            tokio::select! {
                () = news.closed() => {}
                () = listening => {}
            }
        });
        (Box::new(feed), receiver)
    }

    fn status(&self) -> Status {
        self.last.status()
    }

    fn model(&self) -> Option<ModelName> {
        Some(ModelName::new("websocket", &self.remote.model))
    }
}

/// The texts of a stretch of speech, piece by piece.
#[derive(Default)]
struct Texts {
    text: String,
    words: Vec<RecognizedWord>,
    /// Bytes of the texts of `words`.
    word_bytes: usize,
    /// Sum of the confidences, and their number.
    confidences: (f32, usize),
    /// Language evidence of the last piece that has any.
    detected_language: DetectedLanguage,
}

impl Texts {
    /// Returns the pieces so far with the running text behind them.
    fn with(&self, running: &str) -> String {
        [self.text.as_str(), running.trim()]
            .iter()
            .filter(|text| !text.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn add(&mut self, piece: &Value) {
        self.text = self.with(piece["text"].as_str().unwrap_or_default());
        let words = words_of(piece);
        self.word_bytes += words.iter().map(|word| word.text.len()).sum::<usize>();
        self.words.extend(words);
        if let detected @ DetectedLanguage::Detected(_) = detected_language_of(piece) {
            self.detected_language = detected;
        }
        if let Some(share) = piece["confidence"].as_f64() {
            self.confidences = (self.confidences.0 + share as f32, self.confidences.1 + 1);
        }
    }

    /// True if there are more words than one stretch can have: a piece may have words and no text.
    fn has_too_many_words(&self) -> bool {
        self.words.len() > WORDS_MAX || self.word_bytes > TEXT_BYTES_MAX
    }

    fn whole(self) -> Recognized {
        let (sum, count) = self.confidences;
        let confidence = (count > 0).then(|| sum / count as f32);
        Recognized::Final { text: self.text, words: self.words, confidence, detected_language: self.detected_language }
    }
}

/// Recognises speech to the end of the stretch; `None`: it was given up.
async fn listen(
    remote: &Remote,
    start: &Value,
    mut orders: mpsc::Receiver<Order>,
    news: &mpsc::Sender<Recognized>,
) -> Result<Option<Texts>, Failure> {
    let mut connection = Connection::open(remote, &RECOGNIZER).await?;
    connection.tell(start).await?;
    let (mut texts, mut finished) = (Texts::default(), false);
    loop {
        let heard = if finished {
            connection.next_in_time().await?
        } else {
            tokio::select! {
                heard = connection.next() => heard?,
                order = orders.recv() => {
                    match order {
                        Some(Order::Audio(pcm)) => connection.send_audio(pcm::to_bytes(&pcm)).await?,
                        Some(Order::Finish) => {
                            connection.tell(&json!({"type": "finish"})).await?;
                            finished = true;
                        }
                        None => return Ok(None),
                    }
                    continue;
                }
            }
        };
        let Heard::Message(kind, message) = heard else {
            return Err(RECOGNIZER.general_failure("sent audio"));
        };
        match (kind.as_str(), message["text"].as_str()) {
            ("partial", Some(text)) if text.len() + texts.text.len() <= TEXT_BYTES_MAX => {
                let _ = news.try_send(Recognized::Partial(texts.with(text)));
            }
            ("final", Some(text)) if text.len() + texts.text.len() <= TEXT_BYTES_MAX => {
                texts.add(&message);
                if texts.has_too_many_words() {
                    return Err(RECOGNIZER.general_failure("sent too many words"));
                }
                let _ = news.try_send(Recognized::Partial(texts.text.clone()));
            }
            ("partial" | "final", _) => {
                return Err(RECOGNIZER.general_failure("sent a text that is missing or too long"));
            }
            ("done", _) if finished => {
                connection.close().await;
                return Ok(Some(texts));
            }
            _ => {}
        }
    }
}
