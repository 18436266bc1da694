//! Previews of Digital Humans, at most two at once: each makes speech, for which calls wait too.

use std::sync::Arc;

use ringer_base::error::{Error, Result};
use ringer_model::preview::PreviewRequest;
use tokio::sync::Semaphore;

use super::workshop::Workshop;
use crate::{Caller, PlacementSettings, Preview, Running, Service};

/// Previews at one time.
const AT_ONCE: usize = 2;

/// Makes previews with the voices and noises of the engine's calls.
#[derive(Clone)]
pub struct Previews {
    service: Service,
    terms: Arc<PlacementSettings>,
    running: Arc<Running>,
    places: Arc<Semaphore>,
}

impl Previews {
    /// Returns the previews of an engine.
    pub(super) fn new(workshop: &Workshop) -> Previews {
        let (service, terms) = (workshop.service.clone(), workshop.placement_settings.clone());
        Previews { service, terms, running: workshop.running.clone(), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Returns what a Digital Human sounds like.
    ///
    /// # Errors
    /// [`Error::Busy`] while two others are made, and those of the Digital Human.
    pub async fn make(&self, caller: &Caller, request: PreviewRequest) -> Result<Preview> {
        let busy = |_| Error::Busy(format!("{AT_ONCE} previews are made already"));
        let _place = self.places.try_acquire().map_err(busy)?;
        let made = self.service.placements().preview(&caller.organization, request, &self.terms).await;
        // Voices of a place that it asked for are there for the calls that follow.
        self.terms.noises.make_asked(&self.terms.synthesizer, self.running.is_idle());
        made
    }
}
