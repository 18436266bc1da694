//! A note that a voice's place was taken in a call: whoever has taken it keeps it to the end of that call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells if another voice has taken over; copies of a voice share it. It is no part of what the voice is.
#[derive(Clone, Debug, Default)]
pub struct TakenOver(Option<Arc<AtomicBool>>);

impl TakenOver {
    /// Returns a note for one call; a default one is never set.
    pub fn for_call() -> TakenOver {
        TakenOver(Some(Arc::default()))
    }

    /// Notes that another voice speaks from now on.
    pub fn note(&self) {
        if let Some(is_set) = &self.0 {
            is_set.store(true, Ordering::Relaxed);
        }
    }

    /// True if another voice speaks.
    pub fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|is_set| is_set.load(Ordering::Relaxed))
    }
}

impl PartialEq for TakenOver {
    fn eq(&self, _: &TakenOver) -> bool {
        true
    }
}
