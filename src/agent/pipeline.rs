//! The answering side of a voice pipeline: offers over HTTP, a peer connection for each. Whoever listens for calls
//! serves [`router`] and takes the calls from [`Offers`].

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{Desk, RESULT_ID};
use crate::clock::new_id;
use crate::provider::guard::Guard;
use crate::tasks::Tasks;
use crate::transport::incoming::{Incoming, IncomingChannel};
use crate::transport::pipeline::answered::{AnsweredLine, IncomingPipeline};
use crate::transport::pipeline::{Answer, OfferRequest, PatchRequest, read_offer};
use crate::transport::webrtc::{MAX_SDP, MediaPeer, Peer, PeerFault, PeerSettings, PeerState, PeerStreams};

/// Serves offers at `listener` until `tasks` end. Returns their calls.
pub fn listen(listener: TcpListener, tasks: &Tasks) -> mpsc::Receiver<AnsweredCall> {
    let settings = PeerSettings::new(Guard::by(|_| true), tasks.clone());
    let bound = listener.local_addr().map(|address| address.ip());
    // Whoever listens on one address has its media there, too.
    let bind = bound.ok().filter(|address| !address.is_unspecified()).map_or(settings.bind.clone(), |ip| vec![ip]);
    let (offers, calls) = Offers::new(PeerSettings { bind, ..settings }, MOST);
    let app = router(offers);
    tasks.spawn_until_stop("offers of callers", async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!("offers are not answered any more: {error}");
        }
    });
    calls
}

impl Desk {
    /// Takes a call that an offer made, or the connection that takes the place of a running one.
    pub(super) fn take_offer(self: &Arc<Self>, call: AnsweredCall, over: mpsc::Sender<()>) {
        let AnsweredCall { pc_id, peer, streams, request_data, is_restart } = call;
        let mut line = AnsweredLine { peer, streams };
        let successors = {
            let mut lines = self.lines.lock();
            if is_restart && let Some(running) = lines.get(&pc_id) {
                match running.try_send(line) {
                    Ok(()) => return,
                    Err(TrySendError::Full(back) | TrySendError::Closed(back)) => line = back,
                }
            }
            let (sender, successors) = mpsc::channel(1);
            lines.retain(|_, running| !running.is_closed());
            lines.insert(pc_id.clone(), sender);
            successors
        };
        let text_of = |name: &str| request_data[name].as_str().map(str::to_owned);
        let result_id = text_of(RESULT_ID).or_else(|| text_of("simulation_result_id"));
        let incoming = Incoming {
            called: String::new(),
            from: "webrtc".to_owned(),
            to: "/api/offer".to_owned(),
            source: SocketAddr::from(([0, 0, 0, 0], 0)),
            headers: result_id.map(|id| (RESULT_ID.to_owned(), id)).into_iter().collect(),
            call_id: pc_id.clone(),
            channel: IncomingChannel::Pipeline(Box::new(IncomingPipeline::new(pc_id, line, successors))),
        };
        self.take(incoming, over);
    }
}

/// Returns the next call of an offer; waits for ever without any.
pub(super) async fn next_offer(offers: &mut Option<mpsc::Receiver<AnsweredCall>>) -> AnsweredCall {
    if let Some(offers) = offers
        && let Some(call) = offers.recv().await
    {
        return call;
    }
    std::future::pending().await
}

/// Connections of the desk at one time.
const MOST: usize = 64;

/// Calls that may wait for whoever takes them.
const WAITING: usize = 64;

/// Time for which the name of a connection that failed is kept.
const KEPT: Duration = Duration::from_secs(30);

/// Candidates of one request.
const MOST_CANDIDATES: usize = 64;

/// Bytes of the longest body that is read.
const BODY_BYTES: usize = 4 * MAX_SDP;

/// A call that was answered; its connection is not up yet.
pub struct AnsweredCall {
    /// Name of the connection.
    pub pc_id: String,
    /// The connection that answered.
    pub peer: Arc<Peer>,
    /// Everything that it tells.
    pub streams: PeerStreams,
    /// Data that the caller sent along.
    pub request_data: Value,
    /// True if it replaces the connection of the same name.
    pub is_restart: bool,
}

/// The connections of one listener.
pub struct Offers {
    settings: PeerSettings,
    calls: mpsc::Sender<AnsweredCall>,
    /// Connections by their names; the calls hold them, and one whose call is over is closed.
    live: Mutex<HashMap<String, Weak<Peer>>>,
    most: usize,
}

impl Offers {
    /// Returns a listener that takes `most` connections at one time, and its calls.
    pub fn new(settings: PeerSettings, most: usize) -> (Arc<Offers>, mpsc::Receiver<AnsweredCall>) {
        let (calls, receiver) = mpsc::channel(WAITING);
        (Arc::new(Offers { settings, calls, live: Mutex::default(), most }), receiver)
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, Weak<Peer>>> {
        self.live.lock()
    }

    async fn take(self: Arc<Self>, offer: OfferRequest) -> Result<Answer, (StatusCode, String)> {
        let known = offer.pc_id.as_ref().and_then(|id| Some((id.clone(), self.live().get(id)?.clone())));
        let pc_id = match &known {
            // The connection goes on: new credentials, or nothing at all.
            Some((pc_id, peer)) if offer.restart_pc != Some(true) => {
                let peer = peer.upgrade().ok_or_else(unknown)?;
                let sdp = peer.answer(&offer.sdp).await.map_err(refusal)?;
                return Ok(Answer { sdp, kind: "answer".to_owned(), pc_id: Some(pc_id.clone()) });
            }
            Some((pc_id, _)) => pc_id.clone(),
            None => new_id().to_string(),
        };
        let busy = || (StatusCode::SERVICE_UNAVAILABLE, "no place is free".to_owned());
        let place = self.calls.try_reserve().map_err(|_| busy())?;
        if known.is_none() && self.live().len() >= self.most {
            return Err(busy());
        }
        let is_restart = known.is_some();
        let (peer, streams) = Peer::new(self.settings.clone()).await.map_err(refusal)?;
        let peer = Arc::new(peer);
        let sdp = peer.answer(&offer.sdp).await.map_err(refusal)?;
        let (line, mut state) = (Arc::downgrade(&peer), streams.state.clone());
        self.live().insert(pc_id.clone(), line.clone());
        let request_data = offer.request_data;
        place.send(AnsweredCall { pc_id: pc_id.clone(), peer, streams, request_data, is_restart });
        if let Some(replaced) = known.and_then(|(_, replaced)| replaced.upgrade()) {
            // The call has gone on to the new one, or looks for it now.
            self.settings.tasks.spawn("replaced connection", async move { replaced.close().await });
        }
        let (offers, id) = (self.clone(), pc_id.clone());
        self.settings.tasks.spawn_until_stop("connection of a pipeline", async move {
            let over = |state: &PeerState| matches!(state, PeerState::Failed | PeerState::Closed);
            if state.wait_for(over).await.is_ok_and(|state| *state == PeerState::Failed) {
                // The other side may notice later, and then asks for it by its name.
                tokio::time::sleep(KEPT).await;
            }
            let mut live = offers.live();
            if live.get(&id).is_some_and(|current| Weak::ptr_eq(current, &line)) {
                live.remove(&id);
            }
        });
        Ok(Answer { sdp, kind: "answer".to_owned(), pc_id: Some(pc_id) })
    }

    async fn patch(&self, patch: PatchRequest) -> Result<(), (StatusCode, String)> {
        let peer = self.live().get(&patch.pc_id).and_then(Weak::upgrade).ok_or_else(unknown)?;
        for candidate in patch.candidates.into_iter().take(MOST_CANDIDATES) {
            peer.add_candidate(&candidate.into()).await.map_err(refusal)?;
        }
        Ok(())
    }
}

/// Returns the routes of `/api/offer`.
pub fn router(offers: Arc<Offers>) -> Router {
    let both = post(take_offer).patch(take_candidates);
    Router::new().route("/api/offer", both).layer(DefaultBodyLimit::max(BODY_BYTES)).with_state(offers)
}

async fn take_offer(State(offers): State<Arc<Offers>>, body: Bytes) -> Response {
    let answered = match read_offer(&body) {
        Ok(offer) => offers.take(offer).await,
        Err(why) => Err((StatusCode::BAD_REQUEST, why)),
    };
    answer(answered.map(|answer| json!(answer)))
}

async fn take_candidates(State(offers): State<Arc<Offers>>, body: Bytes) -> Response {
    let done = match serde_json::from_slice(&body) {
        Ok(patch) => offers.patch(patch).await,
        Err(error) => Err((StatusCode::BAD_REQUEST, format!("the body names no candidates: {error}"))),
    };
    answer(done.map(|()| json!({ "status": "success" })))
}

fn answer(done: Result<Value, (StatusCode, String)>) -> Response {
    let (status, body) = match done {
        Ok(body) => (StatusCode::OK, body),
        Err((status, why)) => (status, json!({ "detail": why })),
    };
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

fn unknown() -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, "there is no such connection".to_owned())
}

/// A fault of the description is the caller's.
fn refusal(fault: PeerFault) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, fault.to_string())
}
