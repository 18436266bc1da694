//! Runs and their results: queueing, schedules, text conversations, lists, exports and evidence.

pub(super) mod always_on;
pub(super) mod compare;
pub(super) mod evidence;
pub(super) mod export;
mod inbound_messages;
pub(super) mod incoming;
pub(super) mod ladder;
pub(super) mod mail_list;
pub(super) mod mails;
pub(super) mod page_file;
pub(super) mod queueing;
mod recovery;
pub(super) mod results;
pub(super) mod retention;
pub(super) mod run_list;
pub(super) mod scheduler;
pub(super) mod schedules;
pub(super) mod send_text;
pub(super) mod sms_runs;
pub(super) mod span_list;
pub(super) mod summary;
pub(super) mod text_runs;
pub(super) mod turn_list;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_base::guard::Guard;
use ringer_base::post::Poster;
use ringer_provider::LanguageModel;
use ringer_store::Store;

use crate::conversation::Conversations;
use crate::evaluation::Evaluations;
use crate::outbox::Outbox;
use crate::runs::send_text::Talks;
use crate::{Handles, LiveCalls, Settings};

/// Runs and their results.
pub struct Runs {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    talks: Arc<Talks>,
    model: Option<Arc<dyn LanguageModel>>,
    outbox: Arc<Outbox>,
    conversations: Arc<Conversations>,
    evaluations: Arc<Evaluations>,
    /// Posts to the authority that stamps evidence.
    authority: Poster,
    /// Time from which on it is asked again after it failed, in milliseconds since 1970.
    authority_asked_from_ms: AtomicI64,
}

impl Runs {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(
        handles: &Handles,
        outbox: &Arc<Outbox>,
        conversations: &Arc<Conversations>,
        evaluations: &Arc<Evaluations>,
    ) -> Runs {
        Runs {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            live: handles.live.clone(),
            talks: handles.talks.clone(),
            model: handles.model.clone(),
            outbox: outbox.clone(),
            conversations: conversations.clone(),
            evaluations: evaluations.clone(),
            // The operator has set the address.
            authority: Poster::new(Guard::new(true).trusting(&handles.settings.roots), Duration::ZERO),
            authority_asked_from_ms: AtomicI64::new(0),
        }
    }
}
