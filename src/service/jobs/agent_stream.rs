//! Calls of agents that open a WebSocket to the engine: a seat for each, taken before the handshake is answered.

use std::net::SocketAddr;
use std::sync::Arc;

use ringer_base::error::Result;
use ringer_base::tasks::Tasks;
use ringer_model::Object;
use ringer_store::queue::CallJob;
use ringer_transport::incoming::{Incoming, IncomingChannel};
use ringer_transport::websocket::Role;
use ringer_transport::websocket::link::{Link, LinkLimits};
use ringer_transport::websocket::listen::IncomingSocket;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::call;
use super::incoming::Desk;
use super::lease::log_failure;
use crate::{NotDone, StreamGoal};

/// Reasons for which a connection is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRefusal {
    /// The token is unknown or has expired.
    Unknown,
    /// The call of the token runs.
    InUse,
    /// The call of the token runs at another engine: the start of its URLs.
    Elsewhere(String),
    /// The call of the token is over.
    Over,
    /// No place is free.
    Busy,
    /// The engine begins nothing new; another one may.
    Draining,
}

/// A result that is DISPATCHED, with its place among the calls.
#[derive(Debug)]
pub struct Seat {
    job: CallJob,
    _permit: OwnedSemaphorePermit,
}

/// Door for agents that call by WebSocket.
#[derive(Clone)]
pub struct AgentStreams {
    desk: Arc<Desk>,
    tasks: Tasks,
}

impl AgentStreams {
    /// Returns the entry for calls by WebSocket, which `desk` takes.
    pub(super) fn new(desk: Arc<Desk>, tasks: Tasks) -> AgentStreams {
        AgentStreams { desk, tasks }
    }

    /// Returns the limits of a connection.
    pub fn limits(&self) -> LinkLimits {
        self.desk.workshop.service.settings().sockets.limits
    }

    /// Takes the result that waits for this token.
    ///
    /// # Errors
    /// The reason why the connection is not taken, or a fault of the store.
    pub async fn take(&self, token: &str, source: SocketAddr) -> Result<Seat, NotDone<StreamRefusal>> {
        let service = &self.desk.workshop.service;
        let inbound = match service.conversations().stream_goal(token).await? {
            StreamGoal::Address(inbound) => inbound,
            StreamGoal::Unknown => return Err(NotDone::Reason(StreamRefusal::Unknown)),
            StreamGoal::InUse(id) => return Err(NotDone::Reason(self.in_use(id).await?)),
            StreamGoal::Over => return Err(NotDone::Reason(StreamRefusal::Over)),
        };
        let about = json!({ "source": source.to_string() });
        let about: Object = about.as_object().cloned().unwrap_or_default();
        if inbound.unresponsive {
            // Nobody answers in this step of a journey, and the attempt is what counts.
            service.runs().note_unanswered(&inbound, about).await?;
            return Err(NotDone::Reason(StreamRefusal::Busy));
        }
        if self.desk.stopping.is_cancelled() || service.engines().is_draining() {
            return Err(NotDone::Reason(StreamRefusal::Draining));
        }
        let Some(permit) = self.desk.free_place().await else {
            return Err(NotDone::Reason(StreamRefusal::Busy));
        };
        match service.runs().take_call(&inbound, about).await? {
            Some(job) => Ok(Seat { job, _permit: permit }),
            // Somebody was faster, or its run has no place.
            None => match service.conversations().stream_goal(token).await? {
                StreamGoal::Address(_) => Err(NotDone::Reason(StreamRefusal::Busy)),
                StreamGoal::InUse(id) => Err(NotDone::Reason(self.in_use(id).await?)),
                _ => Err(NotDone::Reason(StreamRefusal::InUse)),
            },
        }
    }

    /// Returns why a result that has its call is not taken: another engine may hold it.
    async fn in_use(&self, result_id: i64) -> Result<StreamRefusal> {
        let holder = self.desk.workshop.service.engines().elsewhere(result_id).await?;
        let address = holder.and_then(|engine| engine.address);
        Ok(address.map_or(StreamRefusal::InUse, StreamRefusal::Elsewhere))
    }

    /// Holds the call of a seat over a connection that was opened; `None`: the handshake failed.
    pub fn hold(&self, seat: Seat, link: Option<Link>, source: SocketAddr) {
        let desk = self.desk.clone();
        self.tasks.spawn("agent stream", async move {
            let Seat { job, _permit } = seat;
            let done = match link {
                Some(link) => {
                    let incoming = Incoming {
                        called: String::new(),
                        from: source.to_string(),
                        to: String::new(),
                        source,
                        headers: Vec::new(),
                        call_id: String::new(),
                        channel: IncomingChannel::WebSocket(Box::new(IncomingSocket::new(link, source, Role::Caller))),
                    };
                    call::answer(&desk.workshop, &job, &desk.stopping, incoming).await
                }
                None => call::abandon(&desk.workshop, &job, &desk.stopping).await,
            };
            log_failure("call over an agent's WebSocket failed", done);
        });
    }
}
