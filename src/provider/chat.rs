//! A language model behind the common chat-completions protocol (`POST {base}/chat/completions`, answers as server-sent
//! events). It knows messages and tools, not what they are for. Key and texts never reach a log or an error.

mod answer;
pub(super) mod content;
mod events;
mod habits;
pub(super) mod refusal;
pub(super) mod request;
mod retry;
pub(super) mod surrogates;
mod terms;
mod thinking;
mod tools;

use std::error::Error as _;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use self::answer::Answer;
use self::habits::{Habits, STREAM_OPTIONS};
use self::refusal::{BODY_BYTES_MAX, Refusal, Secrets};
use self::request::{body, endpoint, takes_api_key};
pub use self::retry::Retry;
use self::retry::{Attempts, Cause};
use self::terms::{Asked, BUDGET_CODE};
pub use self::terms::{ModelTerms, Places, Spending, budget_text, is_spent};
use self::thinking::Manner;
pub(super) use self::thinking::without as without_reasoning;
use super::post::retry_after;
use super::tls::{Roots, install_tls};
use super::{Account, ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};

/// Parameters that one request is made again without.
const LEFT_OUT_MAX: usize = 6;

/// Address of the model, credentials and time limits.
#[derive(Clone)]
pub struct ChatConfig {
    /// `https://host/v1`, with or without `/chat/completions` and a query.
    pub base_url: String,
    /// Key that is sent as a bearer token.
    pub key: Option<String>,
    /// Name of the model.
    pub model: String,
    /// Tokens of each answer, instead of what a request asks for: a model that reasons needs more than its words.
    pub tokens_max: Option<u32>,
    /// Time limit for the connection, TLS included.
    pub connect: Duration,
    /// Longest wait for the first byte of the answer, and between two of its pieces.
    pub first_byte: Duration,
    /// The same where nobody waits on the telephone.
    pub patient_first_byte: Duration,
    /// Time limit for the whole answer.
    pub total: Duration,
    /// The same where nobody waits on the telephone.
    pub patient_total: Duration,
    /// Longest time that words are held back because they may turn out to be reasoning, while somebody waits on the
    /// telephone.
    pub held: Duration,
    /// The same where nobody waits on the telephone.
    pub patient_held: Duration,
    /// Number and waits of the attempts of a request.
    pub retry: Retry,
    /// Certificate authorities trusted besides the well-known ones.
    pub roots: Roots,
    /// Prices and limits of the model.
    pub terms: ModelTerms,
}

impl ChatConfig {
    /// Returns limits of 3 s, 10 s and 60 s, and of 30 s and 180 s where nobody waits on the telephone.
    pub fn new(base_url: &str, key: Option<String>, model: &str) -> ChatConfig {
        ChatConfig {
            base_url: base_url.to_owned(),
            key,
            model: model.to_owned(),
            tokens_max: None,
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(10),
            patient_first_byte: Duration::from_secs(30),
            total: Duration::from_secs(60),
            patient_total: Duration::from_secs(180),
            held: Duration::from_millis(1500),
            patient_held: Duration::from_secs(10),
            retry: Retry::default(),
            roots: Roots::default(),
            terms: ModelTerms::default(),
        }
    }
}

/// A language model reached by HTTP.
pub struct ChatModel {
    config: ChatConfig,
    url: String,
    secrets: Secrets,
    client: reqwest::Client,
    trouble: Mutex<Option<String>>,
    learnt: Mutex<Learnt>,
    /// True if the last request did not reach the server.
    gone: AtomicBool,
}

/// Properties of the model that earlier requests have shown.
#[derive(Clone, Default)]
struct Learnt {
    habits: Habits,
    manner: Manner,
    /// True if its server takes a request that asks for its use.
    tells_use: bool,
}

/// An attempt that failed.
struct Trouble {
    failure: Failure,
    cause: Cause,
    /// Refusal of the request by the server, if that was the trouble.
    refusal: Option<Refusal>,
}

impl Trouble {
    fn of(failure: Failure, cause: Cause) -> Trouble {
        Trouble { failure, cause, refusal: None }
    }
}

impl ChatModel {
    /// Opens no connection yet. Fails with `language_model_failed` when the TLS set-up does.
    pub fn new(config: ChatConfig) -> Result<ChatModel, Failure> {
        install_tls();
        let client = reqwest::Client::builder().connect_timeout(config.connect);
        let client = config.roots.trusted_by(client).map_err(|cause| failure(&cause.without_url()))?;
        let url = endpoint(&config.base_url);
        let secrets = Secrets::of(config.key.as_deref(), &url);
        let (trouble, learnt, gone) = Default::default();
        Ok(ChatModel { config, url, secrets, client, trouble, learnt, gone })
    }

    async fn ask(
        &self,
        request: &ChatRequest,
        out: mpsc::Sender<ChatPart>,
        account: Option<&Account>,
    ) -> Result<(), Failure> {
        let hidden = |Failure { code, message }| Failure { code, message: self.secrets.hidden(&message) };
        self.config.terms.check_budget(account).await?;
        let result = self.attempts(request, &out, account).await.map_err(hidden);
        // A budget that is used up is no trouble of the model.
        let trouble = result.as_ref().err().filter(|failure| failure.code != BUDGET_CODE);
        *self.trouble.lock() = trouble.map(|failure| failure.message.clone());
        result
    }

    /// Makes the request until it is answered, or another attempt is of no use.
    async fn attempts(
        &self,
        request: &ChatRequest,
        out: &mpsc::Sender<ChatPart>,
        account: Option<&Account>,
    ) -> Result<(), Failure> {
        let terms = &self.config.terms;
        let mut attempts = Attempts::new(self.config.retry, request.live, self.gone.load(Ordering::Relaxed));
        let Learnt { mut habits, manner, .. } = self.learnt();
        let mut left_out: Vec<String> = Vec::new();
        let given = body(&self.config.model, self.config.tokens_max, request);
        loop {
            let mut body = given.clone();
            habits.apply(&mut body);
            if terms.enter(account).await {
                // Others have used the model while this request waited for its place.
                terms.check_budget(account).await?;
            }
            let asked = Asked::new(terms, account);
            let trouble = match self.attempt(&body, request.live, manner, &habits, &mut left_out, (out, asked)).await {
                Ok(()) => return Ok(()),
                Err(trouble) => trouble,
            };
            if let Some(refusal) = &trouble.refusal
                && left_out.len() < LEFT_OUT_MAX
                && let Some(advice) = self.learn_from(refusal, &body, &mut habits, left_out.is_empty())
            {
                left_out.push(refusal.with_words(&advice));
                continue;
            }
            match attempts.next_wait(trouble.cause) {
                Some(wait) => sleep(wait).await,
                None => {
                    self.gone.store(matches!(trouble.cause, Cause::Dropped | Cause::Late), Ordering::Relaxed);
                    return Err(trouble.failure);
                }
            }
        }
    }

    /// Returns the advice that a refusal gives for the next request; `None`: it gives none. `is_first`: nothing was
    /// left out yet.
    fn learn_from(&self, refusal: &Refusal, body: &Value, habits: &mut Habits, is_first: bool) -> Option<String> {
        let advice = habits.learn(body, refusal);
        let may_not_know_use = advice.is_none() && is_first && !self.learnt.lock().tells_use;
        if may_not_know_use { habits.stop_asking_for_use(body) } else { advice }
    }

    /// Makes the request once. What was left out of it is remembered once the server takes it.
    async fn attempt(
        &self,
        body: &Value,
        live: bool,
        manner: Manner,
        habits: &Habits,
        left_out: &mut Vec<String>,
        (out, mut asked): (&mpsc::Sender<ChatPart>, Asked<'_>),
    ) -> Result<(), Trouble> {
        let response = match self.open(body, live).await {
            Ok(response) => response,
            Err(trouble) => {
                // One that was only late may have been taken.
                if trouble.cause != Cause::Late {
                    asked.was_refused();
                }
                return Err(trouble);
            }
        };
        self.gone.store(false, Ordering::Relaxed);
        if !left_out.is_empty() {
            self.learn(|learnt| learnt.habits.join(habits));
        }
        for advice in left_out.drain(..) {
            tracing::warn!(model = self.config.model, "language model: from now on {}", self.secrets.hidden(&advice));
        }
        let mut answer = Answer::new(manner);
        self.learn(|learnt| learnt.tells_use |= body.get(STREAM_OPTIONS).is_some());
        let read = self.read_answer(response, live, &mut answer, out).await;
        asked.tell(answer.tokens());
        if out.is_closed() {
            return Ok(());
        }
        for text in answer.take_held(read.is_ok()) {
            let _ = out.send(ChatPart::Text(text)).await;
        }
        if answer.manner() != manner {
            self.learn(|learnt| learnt.manner = answer.manner());
        }
        // An answer that has begun cannot be taken back, so the request is not repeated.
        let begun = answer.has_begun();
        let failed = |(failure, cause)| Trouble::of(failure, if begun { Cause::Final } else { cause });
        read.map_err(failed)?;
        let calls = answer.verdict().map_err(|failure| failed((failure, Cause::Dropped)))?;
        if answer.is_cut() {
            let _ = out.send(ChatPart::Cut).await;
        }
        for (name, arguments) in calls {
            let _ = out.send(ChatPart::Tool { name, arguments }).await;
        }
        Ok(())
    }

    /// Returns the answer of a server that takes the request.
    async fn open(&self, body: &Value, live: bool) -> Result<reqwest::Response, Trouble> {
        let (first_byte, total) = self.limits(live);
        let mut post = self.client.post(&self.url).timeout(total);
        if let Some(key) = &self.config.key {
            post = post.bearer_auth(key);
            if takes_api_key(&self.url) {
                post = post.header("api-key", key);
            }
        }
        let sent = timeout(first_byte, post.json(body).send()).await.map_err(|_| late(first_byte))?;
        let response = sent.map_err(unsent)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let asked = retry_after(response.headers());
        let refusal = Refusal::parse(&self.read_refusal(response, first_byte).await);
        let message = refusal.with_words(&format!("the language model answered {status}"));
        let failure = Failure { code: "language_model_refused", message };
        // Some servers call a parameter that they do not know an error of their own.
        let is_of_request = match status.as_u16() {
            400 | 422 => true,
            500 | 501 => refusal.refuses(),
            _ => false,
        };
        let refusal = is_of_request.then_some(refusal);
        Err(Trouble { failure, cause: Cause::of(status.as_u16(), asked), refusal })
    }

    /// Returns the body of a refusal as far as it comes.
    async fn read_refusal(&self, mut response: reqwest::Response, patience: Duration) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Ok(Some(bytes))) = timeout(patience, response.chunk()).await {
            let space = BODY_BYTES_MAX.saturating_sub(body.len());
            body.extend_from_slice(&bytes[..bytes.len().min(space)]);
            if body.len() >= BODY_BYTES_MAX {
                break;
            }
        }
        body
    }

    /// Takes the answer to its end; its words go out as they come.
    async fn read_answer(
        &self,
        mut response: reqwest::Response,
        live: bool,
        answer: &mut Answer,
        out: &mpsc::Sender<ChatPart>,
    ) -> Result<(), (Failure, Cause)> {
        let (between, _) = self.limits(live);
        let held = if live { self.config.held } else { self.config.patient_held };
        let (mut over, mut holds, mut release) = (false, false, pin!(sleep(held)));
        while !over {
            let mut words = Vec::new();
            let chunk = tokio::select! {
                biased;
                chunk = timeout(between, response.chunk()) => Some(chunk),
                () = &mut release, if answer.is_unsure() => None,
            };
            let taken = match chunk {
                None => {
                    words = answer.release();
                    Ok(())
                }
                Some(Err(_)) => {
                    let Trouble { failure, cause, .. } = late(between);
                    return Err((failure, cause));
                }
                Some(Ok(Err(cause))) => return Err((failure(&cause.without_url()), Cause::Dropped)),
                Some(Ok(Ok(Some(bytes)))) => answer.take(&bytes, &mut words),
                Some(Ok(Ok(None))) => {
                    over = true;
                    answer.end(&mut words)
                }
            };
            over |= answer.is_done();
            if answer.is_unsure() && !std::mem::replace(&mut holds, true) {
                release.set(sleep(held));
            }
            for text in words {
                if out.send(ChatPart::Text(text)).await.is_err() {
                    return Ok(());
                }
            }
            taken.map_err(|failure| (failure, Cause::Final))?;
        }
        Ok(())
    }

    fn limits(&self, live: bool) -> (Duration, Duration) {
        let config = &self.config;
        if live { (config.first_byte, config.total) } else { (config.patient_first_byte, config.patient_total) }
    }

    fn learnt(&self) -> Learnt {
        self.learnt.lock().clone()
    }

    fn learn(&self, from: impl FnOnce(&mut Learnt)) {
        from(&mut self.learnt.lock());
    }
}

impl LanguageModel for ChatModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.ask(request, out, None))
    }

    fn chat_for<'a>(
        &'a self,
        request: &'a ChatRequest,
        out: mpsc::Sender<ChatPart>,
        account: &'a Account,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.ask(request, out, Some(account)))
    }

    fn name(&self) -> String {
        self.config.model.clone()
    }

    fn status(&self) -> Status {
        let trouble = self.trouble.lock();
        trouble.clone().map_or(Status::Ok, Status::Down)
    }
}

fn late(patience: Duration) -> Trouble {
    let message = format!("language model: no answer within {} ms", patience.as_millis());
    Trouble::of(Failure { code: "language_model_late", message }, Cause::Late)
}

/// Returns the trouble of a request that was not answered.
fn unsent(cause: reqwest::Error) -> Trouble {
    let cause = cause.without_url();
    let retried = match () {
        () if cause.is_builder() || is_untrusted(&cause) => Cause::Final,
        () if cause.is_timeout() && !cause.is_connect() => Cause::Late,
        () => Cause::Dropped,
    };
    Trouble::of(failure(&cause), retried)
}

/// True where the two sides do not agree on a secure connection: they will not the next time.
fn is_untrusted(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(inner) = cause {
        let wrapped = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if inner.is::<rustls::Error>() || wrapped.is_some_and(|wrapped| wrapped.is::<rustls::Error>()) {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn failure(cause: &reqwest::Error) -> Failure {
    let code = match () {
        () if cause.is_timeout() => "language_model_late",
        () if cause.is_connect() => "language_model_unreachable",
        () => "language_model_failed",
    };
    Failure { code, message: format!("language model: {cause}") }
}

#[cfg(test)]
mod tests;
