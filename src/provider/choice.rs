//! A default language model with others beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Account, ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};

/// Name by which the default model is chosen.
pub const DEFAULT: &str = "default";

/// A language model that answers unless another one of its list is chosen by name.
pub struct ModelChoice {
    main: Arc<dyn LanguageModel>,
    others: BTreeMap<String, Arc<dyn LanguageModel>>,
}

impl ModelChoice {
    /// Returns `main`, with `others` by the names that they are chosen by.
    pub fn new(main: Arc<dyn LanguageModel>, others: BTreeMap<String, Arc<dyn LanguageModel>>) -> ModelChoice {
        ModelChoice { main, others }
    }
}

impl LanguageModel for ModelChoice {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        self.main.chat(request, out)
    }

    fn chat_for<'a>(
        &'a self,
        request: &'a ChatRequest,
        out: mpsc::Sender<ChatPart>,
        account: &'a Account,
    ) -> Job<'a, Result<(), Failure>> {
        self.main.chat_for(request, out, account)
    }

    fn name(&self) -> String {
        self.main.name()
    }

    fn status(&self) -> Status {
        self.main.status()
    }

    fn other(&self, name: &str) -> Option<Arc<dyn LanguageModel>> {
        if name == DEFAULT { Some(self.main.clone()) } else { self.others.get(name).cloned() }
    }
}
