//! Calls that come in: who may call, whom a call is for, and whether there is a place for it. What is taken is answered by the
//! same work as a call that was placed.

use std::sync::Arc;
use std::time::Duration;

use ringer_sip::{CallEvent, Uri};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Workshop, call, logged};
use crate::error::Result;
use crate::model::Object;
use crate::service::{Leg, Reached};
use crate::tasks::Tasks;
use crate::transport::io::{IncomingCall, SipNews};

/// Q.850 causes (ITU-T Q.850) of calls that are not taken.
const UNALLOCATED: u16 = 1;
const BUSY: u16 = 17;
const REJECTED: u16 = 21;
const NO_ANSWER: u16 = 19;
const FAILURE: u16 = 41;
/// How long it rings when nobody answers.
const RINGS: Duration = Duration::from_secs(60);

/// Takes calls.
pub(super) struct Desk {
    pub workshop: Workshop,
    /// The places of the engine, which placed calls share.
    pub room: Arc<Semaphore>,
    pub stopping: CancellationToken,
}

impl Desk {
    /// Takes calls until nothing new is to begin.
    pub async fn serve(self, mut incoming: mpsc::Receiver<IncomingCall>, tasks: Tasks) {
        let desk = Arc::new(self);
        loop {
            let next = tokio::select! {
                biased;
                () = desk.stopping.cancelled() => return,
                next = incoming.recv() => next,
            };
            let Some(incoming) = next else { return };
            let desk = desk.clone();
            tasks
                .spawn("incoming call", async move { logged("a call that came in failed", desk.take(incoming).await) });
        }
    }

    async fn take(&self, incoming: IncomingCall) -> Result<()> {
        let Workshop { service, engine, inbound_allow, .. } = &self.workshop;
        let CallEvent::Incoming { request_uri, from, to, source, .. } = &incoming.invite else { return Ok(()) };
        if !inbound_allow.allow(source.ip()) {
            engine.refuse(&incoming, 403, Some(REJECTED)).await;
            return Ok(());
        }
        let user = Uri::parse(request_uri).ok().and_then(|uri| uri.user).unwrap_or_default();
        let reached = match service.reached(&user).await {
            Ok(reached) => reached,
            Err(error) => {
                engine.refuse(&incoming, 500, Some(FAILURE)).await;
                return Err(error);
            }
        };
        let leg = match reached {
            Reached::Leg(leg) => leg,
            Reached::Nobody => {
                engine.refuse(&incoming, 404, Some(UNALLOCATED)).await;
                return Ok(());
            }
            Reached::Busy => {
                engine.refuse(&incoming, 486, Some(BUSY)).await;
                return Ok(());
            }
        };
        if let Some((username, password)) = &leg.login
            && !engine.authorize(&incoming, username, password).await
        {
            return Ok(());
        }
        let about = json!({ "from": from.uri, "to": to.uri, "source": source.to_string() });
        let about: Object = about.as_object().cloned().unwrap_or_default();
        if leg.unresponsive {
            return self.let_it_ring(&leg, about, incoming).await;
        }
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            engine.refuse(&incoming, 486, Some(BUSY)).await;
            return Ok(());
        };
        match service.take_call(&leg, about).await {
            Ok(Some(job)) => call::answer(&self.workshop, &job, &self.stopping, incoming).await?,
            Ok(None) => engine.refuse(&incoming, 486, Some(BUSY)).await,
            Err(error) => {
                engine.refuse(&incoming, 500, Some(FAILURE)).await;
                return Err(error);
            }
        }
        drop(place);
        Ok(())
    }

    /// Nobody answers: it rings until the caller gives up, or for as long as telephones ring.
    async fn let_it_ring(&self, leg: &Leg, about: Object, mut incoming: IncomingCall) -> Result<()> {
        let Workshop { service, engine, .. } = &self.workshop;
        engine.ring(&incoming).await;
        let noted = service.note_unanswered(leg, about).await;
        let over = async {
            while let Some(news) = incoming.news.recv().await {
                if matches!(news, SipNews::Event(event) if matches!(*event, CallEvent::Ended(_))) {
                    return;
                }
            }
        };
        tokio::select! {
            () = over => {}
            () = self.stopping.cancelled() => {}
            () = tokio::time::sleep(RINGS) => {}
        }
        // Does nothing when it is over.
        engine.refuse(&incoming, 480, Some(NO_ANSWER)).await;
        noted
    }
}
