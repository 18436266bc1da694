//! A call to a pipeline: the requests over HTTP, the peer connection, its data channel, and the one restart.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::monotonic;
use ringer_base::config::Secret;
use ringer_base::post::{Posted, Poster, Posting, RESULT_ID};
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;
use tokio::sync::mpsc;

use super::rtvi::{Rtvi, RtviCounts, RtviEvent, RtviOutput};
use super::wire::{
    ANSWER_BYTES, Answer, Base, OfferRequest, PatchRequest, PatchedCandidate, Started, read_answer, read_started,
    request_data, start_body, start_url,
};
use super::{ATTEMPTS, Patience, PipelineFault, PipelineTarget, PlatformOffer, Reason, Start, Step, WAITS};
use crate::news::NewsSender;
use crate::webrtc::{
    ChannelId, ChannelNews, Delivery, MediaPeer, Peer, PeerFault, PeerFigures, PeerSettings, PeerState, PeerStreams,
    Pump,
};

/// Name of the data channel.
const CHANNEL: &str = "chat";

/// Time within which a lost connection is back: with the time without consent it is less than that of a call without
/// media.
const RESTART_WITHIN: Duration = Duration::from_secs(8);

/// Time within which a connection ends whose data channel a platform has closed: it may be hanging up.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Candidates that go out in one request after the offer.
const PATCHED_AT_ONCE: usize = 20;

/// News of a call to a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum PipelineNews {
    /// An event of the pipeline, and when its message came.
    Event(Time, RtviEvent),
    /// The connection was lost and is made anew.
    Restarts,
    /// The connection is back, with these media.
    Restarted(MediaParams),
    /// A key of the caller, where this side is the pipeline.
    Digit(char),
    /// Warning for the user of the result.
    Warning(String),
}

/// Order to a call to a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The call is over.
    HangUp,
    /// A message for the pipeline, as JSON text.
    Send(String),
}

/// The end of a call to a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum PipelineEnd {
    /// This side ended it.
    HungUp,
    /// The agent ended it.
    AgentLeft,
    /// The connection broke off, for this reason.
    Failed(PipelineFault),
}

/// A call to a pipeline, connected.
pub struct Pipeline {
    target: PipelineTarget,
    settings: PeerSettings,
    poster: Arc<Poster>,
    patience: Patience,
    base: Base,
    line: Line,
    was_restarted: bool,
    counts: RtviCounts,
}

/// One peer connection of the call.
struct Line {
    peer: Peer,
    streams: PeerStreams,
    channel: ChannelId,
    pc_id: Option<String>,
    media: MediaParams,
    rtvi: Rtvi,
    /// True if the server takes candidates after the offer, as far as is known.
    takes_patches: bool,
    /// True where a call without its data channel is broken off.
    needs_events: bool,
}

impl Pipeline {
    /// Starts the pipeline, where that was asked for, and connects to it.
    ///
    /// # Errors
    /// The step that failed for good, after [`ATTEMPTS`].
    pub async fn open(
        target: PipelineTarget,
        settings: PeerSettings,
        poster: Arc<Poster>,
        patience: Patience,
    ) -> Result<Pipeline, PipelineFault> {
        let base = match &target.start {
            Some(begins) => match start(&target, begins, &poster, patience).await? {
                Started::Pipeline { base_url, key } => Base { url: base_url, key },
                Started::Room { .. } => return Err(PipelineFault { step: Step::Start, reason: Reason::Room }),
            },
            None => Base::of(&target),
        };
        let asked = Asked { target: &target, settings: &settings, poster: &poster, patience, base: &base };
        let line = asked.connect(None, Step::Offer).await?;
        let counts = RtviCounts::default();
        // Another offer to a platform is another call.
        let was_restarted = target.offer.is_some();
        Ok(Pipeline { target, settings, poster, patience, base, line, was_restarted, counts })
    }

    /// Returns what was settled for the audio.
    pub fn media(&self) -> MediaParams {
        self.line.media
    }

    /// Returns the name that the pipeline gave the connection.
    pub fn pc_id(&self) -> Option<&str> {
        self.line.pc_id.as_deref()
    }

    /// Returns the figures of the connection in use.
    pub async fn figures(&self) -> PeerFigures {
        self.line.peer.figures().await
    }

    /// Returns the counts of messages of all connections of the call.
    pub fn counts(&self) -> RtviCounts {
        let (before, now) = (self.counts, self.line.rtvi.counts());
        RtviCounts {
            read: before.read + now.read,
            malformed: before.malformed + now.malformed,
            flooding: before.flooding + now.flooding,
            dropped: before.dropped + now.dropped,
        }
    }

    /// Carries the call until it ends: moves packets, reads messages, restarts the connection once when it is lost.
    ///
    /// News that nobody takes in time are dropped and counted.
    pub async fn run(
        &mut self,
        pump: &mut Pump,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<PipelineNews>,
    ) -> PipelineEnd {
        loop {
            let lost = match self.line.carry(pump, orders, news).await {
                Carried::HungUp => break self.end(PipelineEnd::HungUp).await,
                Carried::AgentLeft => break self.end(PipelineEnd::AgentLeft).await,
                Carried::Broken(reason) => {
                    let fault = PipelineFault { step: Step::Call, reason };
                    break self.end(PipelineEnd::Failed(fault)).await;
                }
                Carried::Lost(fault) => fault,
            };
            if self.was_restarted {
                let fault = PipelineFault { step: Step::Call, reason: Reason::Peer(lost) };
                break self.end(PipelineEnd::Failed(fault)).await;
            }
            self.was_restarted = true;
            news.send(PipelineNews::Restarts);
            tokio::select! {
                again = self.restart() => match again {
                    Ok(()) => {
                        news.send(PipelineNews::Restarted(self.line.media));
                    }
                    Err(fault) => break self.end(PipelineEnd::Failed(fault)).await,
                },
                () = hung_up(orders) => break self.end(PipelineEnd::HungUp).await,
            }
        }
    }

    /// Makes the connection anew, under its name.
    async fn restart(&mut self) -> Result<(), PipelineFault> {
        self.line.peer.close().await;
        let Pipeline { target, settings, poster, patience, base, .. } = &*self;
        let asked = Asked { target, settings, poster, patience: *patience, base };
        let again = asked.connect(Some(self.line.pc_id.clone()), Step::Call);
        let line = tokio::time::timeout(RESTART_WITHIN, again).await.unwrap_or_else(|_| {
            let reason = Reason::Peer(PeerFault::NotConnected(RESTART_WITHIN));
            Err(PipelineFault { step: Step::Call, reason })
        })?;
        self.counts = self.counts();
        self.line = line;
        Ok(())
    }

    async fn end(&mut self, end: PipelineEnd) -> PipelineEnd {
        self.line.peer.close().await;
        end
    }
}

/// Waits for the order to hang up, or for the end of all orders.
pub async fn hung_up(orders: &mut mpsc::Receiver<Order>) {
    while !matches!(orders.recv().await, Some(Order::HangUp) | None) {}
}

/// Sends the start request, and returns where the call is to be held.
///
/// # Errors
/// The last fault after [`ATTEMPTS`].
pub async fn start(
    target: &PipelineTarget,
    start: &Start,
    poster: &Poster,
    patience: Patience,
) -> Result<Started, PipelineFault> {
    let (url, body) = (start_url(start), start_body(target, start).to_string());
    again(|| async {
        let posted = ask(poster, "POST", &url, target, target.api_key.as_ref(), body.clone(), patience.request).await;
        let reason = match posted {
            Ok(posted) => read_started(target, &posted.body),
            Err(reason) => Err(reason),
        };
        reason.map_err(|reason| PipelineFault { step: Step::Start, reason })
    })
    .await
}

/// Makes up to [`ATTEMPTS`] attempts, as long as another one may come to another end.
async fn again<T, F: Future<Output = Result<T, PipelineFault>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, PipelineFault> {
    let mut waits = WAITS.iter().take(ATTEMPTS as usize - 1);
    loop {
        match attempt().await {
            Err(fault) if fault.is_passing() => match waits.next() {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => return Err(fault),
            },
            done => return done,
        }
    }
}

async fn ask(
    poster: &Poster,
    method: &str,
    url: &str,
    target: &PipelineTarget,
    key: Option<&Secret>,
    body: String,
    patience: Duration,
) -> Result<Posted, Reason> {
    let mut headers = vec![(RESULT_ID, target.result_id.clone())];
    headers.extend(target.traceparent.iter().map(|value| ("traceparent", value.clone())));
    headers.extend(key.map(|key| ("Authorization", format!("Bearer {}", key.expose()))));
    post(poster, Posting { method, url, headers: &headers, body, patience, answer_bytes: ANSWER_BYTES }).await
}

async fn post(poster: &Poster, posting: Posting<'_>) -> Result<Posted, Reason> {
    let patience = posting.patience;
    let posted = poster.exchange(posting).await.map_err(|failed| match (failed.is_own, failed.is_late) {
        (true, _) => Reason::Local(failed.why),
        (_, true) => Reason::Late(patience),
        (_, false) => Reason::NoAnswer(failed.why),
    })?;
    if (200..=299).contains(&posted.status) { Ok(posted) } else { Err(Reason::Status(posted.status)) }
}

/// Makes an offer in the form of a platform.
async fn exchange_with_platform(
    offer: &PlatformOffer,
    sdp: &str,
    result_id: &str,
    poster: &Poster,
    patience: Duration,
) -> Result<Answer, Reason> {
    let (body, kind) = offer.body(sdp);
    let mut headers = vec![("Content-Type", kind.to_owned()), (RESULT_ID, result_id.to_owned())];
    headers.extend(offer.headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let (url, answer_bytes) = (&offer.url, ANSWER_BYTES);
    let posted = post(poster, Posting { method: "POST", url, headers: &headers, body, patience, answer_bytes }).await?;
    Ok(Answer { sdp: offer.read(&posted.body)?, kind: "answer".to_owned(), pc_id: None })
}

/// Everything that an offer needs.
struct Asked<'a> {
    target: &'a PipelineTarget,
    settings: &'a PeerSettings,
    poster: &'a Poster,
    patience: Patience,
    base: &'a Base,
}

impl Asked<'_> {
    /// Connects; `restarts`: the name of the connection that is made anew.
    async fn connect(&self, restarts: Option<Option<String>>, step: Step) -> Result<Line, PipelineFault> {
        again(|| {
            let restarts = restarts.clone();
            async move { self.attempt(restarts).await.map_err(|reason| PipelineFault { step, reason }) }
        })
        .await
    }

    /// Makes one attempt with a peer connection of its own, so that nothing of an earlier one answers for it.
    async fn attempt(&self, restarts: Option<Option<String>>) -> Result<Line, Reason> {
        let local = |fault: PeerFault| Reason::Local(fault.to_string());
        let (peer, mut streams) = Peer::new(self.settings.clone()).await.map_err(local)?;
        let channel = peer.open_channel(CHANNEL, Delivery::Reliable).await.map_err(local)?;
        let sdp = peer.offer(false).await.map_err(local)?;
        // Candidates in the offer need no request of their own.
        while streams.candidates.try_recv().is_ok() {}
        let restart_pc = restarts.is_some();
        let offer = OfferRequest {
            sdp,
            kind: "offer".to_owned(),
            pc_id: restarts.flatten(),
            restart_pc: Some(restart_pc),
            request_data: request_data(self.target),
        };
        let answer = self.exchange(&offer).await?;
        peer.accept(&answer.sdp).await.map_err(Reason::Peer)?;
        let media = peer.media().ok_or_else(|| Reason::Local("no media were settled".to_owned()))?;
        let pc_id = answer.pc_id.or(offer.pc_id);
        let (rtvi, needs_events) = (Rtvi::new(), self.target.offer.is_some());
        let mut line = Line { peer, streams, channel, pc_id, media, rtvi, takes_patches: true, needs_events };
        let connected = tokio::select! {
            connected = line.peer.wait_connected(self.patience.connection) => connected,
            // Late candidates may be those that bring the connection about.
            never = patch_all(&mut line.streams.candidates, line.pc_id.as_deref(), &mut line.takes_patches, self) => never,
        };
        match connected {
            Ok(()) => Ok(line),
            Err(fault) => {
                line.peer.close().await;
                Err(Reason::Peer(fault))
            }
        }
    }

    async fn exchange(&self, offer: &OfferRequest) -> Result<Answer, Reason> {
        let Asked { target, poster, patience, base, .. } = self;
        if let Some(own) = &target.offer {
            return exchange_with_platform(own, &offer.sdp, &target.result_id, poster, patience.request).await;
        }
        let body = serde_json::to_string(offer).map_err(|error| Reason::Local(error.to_string()))?;
        let posted = ask(poster, "POST", &base.offer_url(), target, base.key.as_ref(), body, patience.request).await?;
        read_answer(&posted.body)
    }

    /// Sends candidates that were found after the offer. Returns false when the server takes none.
    async fn patch(&self, pc_id: &str, candidates: Vec<PatchedCandidate>) -> bool {
        let body = PatchRequest { pc_id: pc_id.to_owned(), candidates };
        let Ok(body) = serde_json::to_string(&body) else { return false };
        let Asked { target, poster, patience, base, .. } = self;
        match ask(poster, "PATCH", &base.offer_url(), target, base.key.as_ref(), body, patience.request).await {
            Ok(_) => true,
            Err(Reason::Status(404 | 405 | 501)) => false,
            Err(reason) => {
                tracing::debug!(?reason, "candidates were not taken");
                true
            }
        }
    }
}

/// Sends candidates as they are found; it never ends by itself.
async fn patch_all(
    found: &mut mpsc::Receiver<crate::webrtc::Candidate>,
    pc_id: Option<&str>,
    takes_patches: &mut bool,
    asked: &Asked<'_>,
) -> Result<(), PeerFault> {
    let Some(pc_id) = pc_id else { return pending().await };
    let mut some = Vec::new();
    while *takes_patches && found.recv_many(&mut some, PATCHED_AT_ONCE).await > 0 {
        let candidates = some.drain(..).map(PatchedCandidate::from).collect();
        *takes_patches = asked.patch(pc_id, candidates).await;
    }
    pending().await
}

/// The end of a connection.
enum Carried {
    HungUp,
    AgentLeft,
    Broken(Reason),
    Lost(PeerFault),
}

impl Line {
    /// Carries the call over this connection until something ends it.
    async fn carry(
        &mut self,
        pump: &mut Pump,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<PipelineNews>,
    ) -> Carried {
        let Line { peer, streams, channel, rtvi, needs_events, .. } = self;
        let PeerStreams { state, packets, channels, .. } = streams;
        let media = pump.run(peer, packets);
        tokio::pin!(media);
        let (mut flooded, mut ends_at) = (false, None);
        loop {
            if let Some(end) = carry_out(rtvi, peer, *channel, news).await {
                return end;
            }
            if rtvi.counts().flooding > 0 && !std::mem::replace(&mut flooded, true) {
                let what = "the agent's data channel brings more messages than are read; further ones are counted";
                news.send(PipelineNews::Warning(what.to_owned()));
            }
            tokio::select! {
                () = &mut media => return Carried::Lost(PeerFault::Closed),
                order = orders.recv() => match order {
                    Some(Order::HangUp) | None => return Carried::HungUp,
                    Some(Order::Send(text)) => {
                        if let Err(fault) = peer.send_text(*channel, &text).await {
                            news.send(PipelineNews::Warning(format!("a message was not sent: {fault}")));
                        }
                    }
                },
                changed = state.changed() => {
                    let now = *state.borrow_and_update();
                    match now {
                        _ if changed.is_err() => return Carried::Lost(PeerFault::Closed),
                        PeerState::Failed => return Carried::Lost(PeerFault::Failed),
                        // The other side has closed the connection in order.
                        PeerState::Closed => return Carried::AgentLeft,
                        PeerState::New | PeerState::Connected | PeerState::Quiet => {}
                    }
                }
                event = channels.recv() => match event {
                    Some(ChannelNews::Open { id, .. }) if id == *channel => rtvi.open(now()),
                    Some(ChannelNews::Message { bytes, .. }) => rtvi.receive(now(), &bytes),
                    Some(ChannelNews::Closed { id }) if id == *channel => {
                        rtvi.close();
                        ends_at = needs_events.then(|| now() + ENDS_WITHIN);
                    }
                    Some(_) => {}
                    None => return Carried::Lost(PeerFault::Closed),
                },
                () = until(rtvi.next_timer()) => rtvi.tick(now()),
                () = until(ends_at) => return Carried::Broken(Reason::NoEvents),
            }
        }
    }
}

/// Carries out what the messages came to.
async fn carry_out(
    rtvi: &mut Rtvi,
    peer: &Peer,
    channel: ChannelId,
    news: &NewsSender<PipelineNews>,
) -> Option<Carried> {
    while let Some(output) = rtvi.poll() {
        match output {
            RtviOutput::Send(text) => {
                if let Err(fault) = peer.send_text(channel, &text).await {
                    tracing::debug!(%fault, "a message to the pipeline was not sent");
                }
            }
            RtviOutput::Event(event) => {
                let end = match &event {
                    RtviEvent::Left => Some(Carried::AgentLeft),
                    RtviEvent::Error { message, is_fatal: true } => {
                        Some(Carried::Broken(Reason::Agent(message.clone())))
                    }
                    _ => None,
                };
                news.send_event(PipelineNews::Event(now(), event));
                if end.is_some() {
                    return end;
                }
            }
        }
    }
    None
}

/// Returns the time of messages.
fn now() -> Time {
    monotonic()
}

async fn until(at: Option<Time>) {
    match at {
        Some(at) => tokio::time::sleep(at.since(now())).await,
        None => pending().await,
    }
}
