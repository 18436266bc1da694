//! A language model that a test answers for.

use std::sync::Arc;

use parking_lot::Mutex;
use ringer::provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};
use tokio::sync::mpsc;

type Answer = dyn Fn(&str, &str) -> Option<String> + Send + Sync;

/// Answers by what it is told first (its instructions) and last; `None` is a failure. Keeps what it was asked.
pub(super) struct Oracle {
    answer: Box<Answer>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Oracle {
    pub(super) fn new(answer: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static) -> Arc<Oracle> {
        Arc::new(Oracle { answer: Box::new(answer), asked: Mutex::default() })
    }

    /// Returns the last things said in requests whose instructions hold `part`.
    pub(super) fn requests_with(&self, part: &str) -> Vec<String> {
        let asked = self.asked.lock();
        asked.iter().filter(|(first, _)| first.contains(part)).map(|(_, last)| last.clone()).collect()
    }
}

impl LanguageModel for Oracle {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        let first = request.messages.first().map(|message| message.content.clone()).unwrap_or_default();
        let last = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
        let answer = (self.answer)(&first, &last);
        self.asked.lock().push((first, last));
        Box::pin(async move {
            let failed = || Failure { code: "language_model_failed", message: "the oracle is silent".into() };
            let _ = out.send(ChatPart::Text(answer.ok_or_else(failed)?)).await;
            Ok(())
        })
    }

    fn name(&self) -> String {
        "oracle".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}
