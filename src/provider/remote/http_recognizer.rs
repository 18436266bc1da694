//! A recognizer by `POST {base}/audio/transcriptions`: each stretch of speech goes out as a WAV file when it is over;
//! while it runs, the speech so far may go out as well, for running text.

use std::sync::Arc;

use reqwest::multipart;
use ringer_base::tasks::Tasks;
use ringer_media::clip::write_wav;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{LastUse, RECOGNIZER, Remote, detected_language_of, words_of};
use crate::feed::{AudioFeed, Order};
use crate::{Failure, ModelName, Recognized, Recognizer, RecognizerFeed, SpokenIn, Status};

/// Longest stretch of speech that is sent: 2 minutes.
const SAMPLES_MAX: usize = 120 * 16_000;
/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A recognizer by HTTP.
pub struct HttpRecognizer {
    service: Arc<Service>,
    /// Samples of new speech after which running text is asked for; `None`: final texts only.
    interim: Option<usize>,
    tasks: Tasks,
}

struct Service {
    remote: Remote,
    client: reqwest::Client,
    /// True if words with their times are requested.
    word_times: bool,
    last: LastUse,
}

impl HttpRecognizer {
    /// Opens no connection yet. `interim_ms` of 0 asks for no running text. `word_times` asks for `verbose_json` with
    /// word times, which not every server has. Fails with `recognizer_failed` when the TLS set-up does.
    pub fn new(remote: Remote, interim_ms: u32, word_times: bool) -> Result<HttpRecognizer, Failure> {
        let client = remote.client(&RECOGNIZER)?;
        let interim = (interim_ms > 0).then_some(interim_ms as usize * 16);
        let service = Arc::new(Service { remote, client, word_times, last: LastUse::default() });
        Ok(HttpRecognizer { service, interim, tasks: Tasks::new() })
    }
}

impl Recognizer for HttpRecognizer {
    fn tells_running_text(&self) -> bool {
        self.interim.is_some()
    }

    fn open(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let (feed, orders) = AudioFeed::new();
        let (news, receiver) = mpsc::channel(16);
        let segment = Segment {
            service: self.service.clone(),
            language: match language {
                SpokenIn::Known(code) => Some(code.to_owned()),
                SpokenIn::Likely(_) => None,
            },
            prompt: keyterms.join(", "),
            heard: Vec::new(),
        };
        let interim = self.interim;
        self.tasks.spawn("recognise by HTTP", async move {
            let closed = news.clone();
            tokio::select! {
                () = closed.closed() => {}
                () = segment.run(interim, orders, news) => {}
            }
        });
        (Box::new(feed), receiver)
    }

    fn status(&self) -> Status {
        self.service.last.status()
    }

    fn model(&self) -> Option<ModelName> {
        Some(ModelName::new("http", &self.service.remote.model))
    }
}

struct Segment {
    service: Arc<Service>,
    /// `None`: the server finds it.
    language: Option<String>,
    prompt: String,
    heard: Vec<i16>,
}

impl Segment {
    async fn run(mut self, interim: Option<usize>, mut orders: mpsc::Receiver<Order>, news: mpsc::Sender<Recognized>) {
        let mut asked = 0;
        loop {
            // One request for running text at a time; what is said meanwhile is in the next one.
            let due = interim.is_some_and(|every| self.heard.len() >= asked + every);
            if due {
                asked = self.heard.len();
                let (service, form) = (self.service.clone(), self.form());
                let asking = service.ask(form);
                tokio::pin!(asking);
                let answer = loop {
                    tokio::select! {
                        answer = &mut asking => break answer,
                        order = orders.recv() => match order {
                            Some(Order::Audio(pcm)) => self.hear(&pcm),
                            // The final request answers for all.
                            Some(Order::Finish) => return self.end(news).await,
                            None => return,
                        },
                    }
                };
                // A failure of running text is not the segment's: the final request decides.
                if let Ok(answer) = answer
                    && let Some(text) = text_of(&answer).filter(|text| !text.is_empty())
                {
                    let _ = news.try_send(Recognized::Partial(text));
                }
                continue;
            }
            match orders.recv().await {
                Some(Order::Audio(pcm)) => self.hear(&pcm),
                Some(Order::Finish) => return self.end(news).await,
                None => return,
            }
        }
    }

    fn hear(&mut self, pcm: &[i16]) {
        let space = SAMPLES_MAX - self.heard.len().min(SAMPLES_MAX);
        self.heard.extend_from_slice(&pcm[..pcm.len().min(space)]);
    }

    fn form(&self) -> Result<multipart::Form, Failure> {
        let wav = multipart::Part::bytes(write_wav(16_000, 1, &self.heard)).file_name("speech.wav");
        let wav = wav.mime_str("audio/wav").map_err(|cause| RECOGNIZER.of_http(&cause))?;
        let mut form = multipart::Form::new().text("model", self.service.remote.model.clone());
        if let Some(language) = &self.language {
            form = form.text("language", language.clone());
        }
        form = if self.service.word_times {
            form.text("response_format", "verbose_json").text("timestamp_granularities[]", "word")
        } else {
            form.text("response_format", "json")
        };
        if !self.prompt.is_empty() {
            form = form.text("prompt", self.prompt.clone());
        }
        Ok(form.part("file", wav))
    }

    async fn end(self, news: mpsc::Sender<Recognized>) {
        let result = self.service.ask(self.form()).await.and_then(|answer| {
            let text = text_of(&answer).ok_or_else(|| RECOGNIZER.general_failure("sent an answer without a text"))?;
            Ok(Recognized::Final {
                text,
                words: words_of(&answer),
                confidence: None,
                detected_language: detected_language_of(&answer),
            })
        });
        self.service.last.note(&result);
        let _ = news.send(result.unwrap_or_else(Recognized::Failed)).await;
    }
}

impl Service {
    async fn ask(&self, form: Result<multipart::Form, Failure>) -> Result<Value, Failure> {
        let posted = self.remote.post(&self.client, "/audio/transcriptions").multipart(form?).send();
        let mut response = posted.await.map_err(|cause| RECOGNIZER.of_http(&cause))?;
        if !response.status().is_success() {
            return Err(RECOGNIZER.refusal(response.status()));
        }
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|cause| RECOGNIZER.of_http(&cause))? {
            body.extend_from_slice(&bytes);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(RECOGNIZER.general_failure("sent an answer that is too long"));
            }
        }
        serde_json::from_slice(&body).map_err(|_| RECOGNIZER.general_failure("sent no valid JSON"))
    }
}

fn text_of(answer: &Value) -> Option<String> {
    answer["text"].as_str().map(|text| text.trim().to_owned())
}
