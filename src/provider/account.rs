//! Accounts that uses of language models are entered into: one for each conversation or run, of which nothing is known
//! here.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};

/// Tokens of one request, as its server counts them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens that the model has read.
    pub input: u64,
    /// Tokens that the model has written, reasoning included.
    pub output: u64,
}

/// Use of a model by one request that its server took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Section of the settings that the model is set in.
    pub section: String,
    /// Name of the model at its server.
    pub model: String,
    /// Tokens; `None`: the server did not tell them, or the answer was given up before it did.
    pub tokens: Option<Tokens>,
    /// Cost in billionths of a USD; `None`: tokens or prices are not known.
    pub nano_usd: Option<i64>,
}

/// Keeps the uses of an account.
pub trait Book: Send + Sync {
    /// Enters a use. It may be called on any thread and does not wait.
    fn enter(&self, used: Use);
}

/// An account of one owner.
pub struct Account {
    book: Arc<dyn Book>,
    goes_on: bool,
    waits: Mutex<Waits>,
}

/// Waits for a place at a model.
#[derive(Default)]
struct Waits {
    /// Milliseconds of the waits that are over.
    over_ms: i64,
    /// Begin of the wait that is under way, milliseconds since 1970.
    since_ms: Option<i64>,
}

impl Account {
    /// Returns an account whose requests are refused once a model's budget is used up.
    pub fn new(book: Arc<dyn Book>) -> Account {
        Account { book, goes_on: false, waits: Mutex::default() }
    }

    /// Returns the account of a conversation that has begun: it goes on though a budget is used up.
    pub fn of_conversation(book: Arc<dyn Book>) -> Account {
        Account { goes_on: true, ..Account::new(book) }
    }

    /// True if requests are made though a model's budget is used up.
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Enters a use of a model.
    pub(crate) fn enter(&self, used: Use) {
        self.book.enter(used);
    }

    /// Notes that a wait for a place has begun, or is over.
    pub(crate) fn note_wait(&self, now_ms: i64, begins: bool) {
        let mut waits = self.waits.lock();
        match (begins, waits.since_ms) {
            (true, None) => waits.since_ms = Some(now_ms),
            (false, Some(since_ms)) => {
                waits.over_ms += (now_ms - since_ms).max(0);
                waits.since_ms = None;
            }
            _ => {}
        }
    }

    /// Returns the milliseconds that requests have waited for a place at a model.
    pub fn waited_ms(&self, now_ms: i64) -> i64 {
        let waits = self.waits.lock();
        waits.over_ms + waits.since_ms.map_or(0, |since_ms| (now_ms - since_ms).max(0))
    }
}

/// Returns a model whose uses are entered into `account`.
pub fn counting_model(model: &Arc<dyn LanguageModel>, account: &Arc<Account>) -> Arc<dyn LanguageModel> {
    Arc::new(CountedModel { model: model.clone(), account: account.clone() })
}

struct CountedModel {
    model: Arc<dyn LanguageModel>,
    account: Arc<Account>,
}

impl LanguageModel for CountedModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        self.model.chat_for(request, out, &self.account)
    }

    fn name(&self) -> String {
        self.model.name()
    }

    fn status(&self) -> Status {
        self.model.status()
    }

    fn other(&self, name: &str) -> Option<Arc<dyn LanguageModel>> {
        self.model.other(name).map(|other| counting_model(&other, &self.account))
    }
}
