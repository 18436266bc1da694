//! Calls that come in: who may call, whom a call is for, and whether there is a place for it. What is taken is answered
//! by the same work as a call that was placed.

use std::sync::Arc;
use std::time::Duration;

use ringer_base::error::Result;
use ringer_base::tasks::Tasks;
use ringer_model::Object;
use ringer_transport::incoming::Incoming;
use ringer_transport::peer::Refusal;
use ringer_transport::sip::address::called_user;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::call;
use super::lease::log_failure;
use super::workshop::Workshop;
use crate::{InboundAddress, Reached};

/// Time that an unanswered call rings.
const RINGS: Duration = Duration::from_secs(60);

/// Time in which a place may become free for a call that has come in.
///
/// A job that has just told that its agent is awaited holds one for a moment more.
const PLACE_WITHIN: Duration = Duration::from_secs(1);

/// Takes and answers incoming calls.
pub(super) struct Desk {
    pub workshop: Workshop,
    /// The places of the engine, which placed calls share.
    pub permits: Arc<Semaphore>,
    pub stopping: CancellationToken,
}

impl Desk {
    /// Takes calls until nothing new is to begin.
    pub(crate) async fn serve(self: Arc<Self>, mut incoming: mpsc::Receiver<Incoming>, tasks: Tasks) {
        let desk = self;
        loop {
            let next = tokio::select! {
                biased;
                () = desk.stopping.cancelled() => return,
                next = incoming.recv() => next,
            };
            let Some(incoming) = next else { return };
            let desk = desk.clone();
            tasks.spawn("incoming call", async move { log_failure("incoming call failed", desk.take(incoming).await) });
        }
    }

    /// Takes a place among the engine's calls; `None` where none becomes free in [`PLACE_WITHIN`].
    pub(super) async fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        timeout(PLACE_WITHIN, self.permits.clone().acquire_owned()).await.ok()?.ok()
    }

    /// Sends a call to the engine that holds the result of its address; refuses it as busy where that is this one.
    async fn pass_on(&self, incoming: &Incoming, result_id: Option<i64>) -> Result<()> {
        let Workshop { service, engine, .. } = &self.workshop;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        let holder = match result_id.filter(|_| incoming.called.chars().all(is_plain)) {
            Some(result_id) => service.engines().elsewhere(result_id).await?,
            None => None,
        };
        match holder.and_then(|holder| holder.sip) {
            Some(sip) => engine.redirect(incoming, &sip).await,
            None => engine.refuse(incoming, Refusal::Busy).await,
        }
        Ok(())
    }

    async fn take(&self, incoming: Incoming) -> Result<()> {
        let Workshop { service, engine, inbound_allow, .. } = &self.workshop;
        // Whoever sets the engine up names its trunks as well as its other callers.
        let trunk = engine.trunk_at(incoming.source.ip());
        if trunk.is_none() && !inbound_allow.allow(incoming.source.ip()) {
            engine.refuse(&incoming, Refusal::Forbidden).await;
            return Ok(());
        }
        if service.engines().is_draining() {
            engine.refuse(&incoming, Refusal::Draining).await;
            return Ok(());
        }
        let reached = match service.runs().reached_by(&incoming.called, &called_user(&incoming.to)).await {
            Ok(reached) => reached,
            Err(error) => {
                engine.refuse(&incoming, Refusal::Failure).await;
                return Err(error);
            }
        };
        let inbound = match reached {
            Reached::Address(inbound) => inbound,
            Reached::Nobody => {
                engine.refuse(&incoming, Refusal::NotFound).await;
                return Ok(());
            }
            Reached::Busy(result_id) => return self.pass_on(&incoming, result_id).await,
        };
        if let Some((username, password)) = &inbound.login
            && !engine.authorize(&incoming, username, password).await
        {
            return Ok(());
        }
        let about = json!({ "from": incoming.from, "to": incoming.to, "source": incoming.source.to_string() });
        let mut about: Object = about.as_object().cloned().unwrap_or_default();
        if let Some(trunk) = trunk {
            about.insert("trunk".to_owned(), json!(trunk));
        }
        if inbound.unresponsive {
            return self.let_it_ring(&inbound, about, incoming).await;
        }
        let Some(permit) = self.free_place().await else {
            engine.refuse(&incoming, Refusal::Busy).await;
            return Ok(());
        };
        match service.runs().take_call(&inbound, about).await {
            Ok(Some(job)) => call::answer(&self.workshop, &job, &self.stopping, incoming).await?,
            // Another engine may have been faster.
            Ok(None) => self.pass_on(&incoming, inbound.result_id()).await?,
            Err(error) => {
                engine.refuse(&incoming, Refusal::Failure).await;
                return Err(error);
            }
        }
        drop(permit);
        Ok(())
    }

    /// Lets a call ring that nobody answers, until the caller gives up or telephones would stop ringing.
    async fn let_it_ring(&self, inbound: &InboundAddress, about: Object, mut incoming: Incoming) -> Result<()> {
        let Workshop { service, engine, .. } = &self.workshop;
        engine.ring(&incoming).await;
        let noted = service.runs().note_unanswered(inbound, about).await;
        tokio::select! {
            () = incoming.given_up() => {}
            () = self.stopping.cancelled() => {}
            () = tokio::time::sleep(RINGS) => {}
        }
        // Does nothing when it is over.
        engine.refuse(&incoming, Refusal::NoAnswer).await;
        noted
    }
}
