//! Calls over WebSockets: attempts to dial, messages, and frames from and to the media thread.

use std::time::Duration;

use futures_util::future::BoxFuture;
use ringer_base::guard::Guard;
use ringer_media::call::{Control, Event, Quality};
use ringer_media::frame::RATE_HZ;
use ringer_media::leg::PcmParams;
use ringer_media::rings::frame_rings;
use ringer_media::time::Time;
use ringer_transport::path::MediaPath;
use ringer_transport::peer::{AgentError, PeerInfo};
use ringer_transport::websocket::dial::{DialFault, Dialer, Dialled};
use ringer_transport::websocket::link::{Link, LinkNews};
use ringer_transport::websocket::listen::IncomingSocket;
use ringer_transport::websocket::port::{SocketOrder, WebSocketAction, WebSocketPort};
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior};

use super::{Attended, Channel, ChannelSide, Means, Opening};
use crate::call_state::CallState;
use crate::exchange::FrameExchange;
use crate::placement::{SocketSettings, WebSocketDial};
use crate::services::CallPermit;
use crate::shard::CallNo;
use crate::{Answering, Destination, PlaceError, Placement, WEBSOCKET_LOG};

/// Distance of ticks while no frames come from the media thread.
const TICK: Duration = Duration::from_millis(20);

/// Time that a protocol may take for its own goodbye before the socket is closed.
pub(crate) const GOODBYE: Duration = Duration::from_secs(10);

/// Code and reason of a close for a message that is too big.
const TOO_BIG: (u16, &str) = (1009, "message too big");
/// Code and reason of a close for a frame that breaks RFC 6455.
const BROKEN: (u16, &str) = (1002, "protocol error");

/// News for the task of a call.
pub(crate) enum SocketNews {
    /// An attempt to dial is over.
    Dialled(Box<Result<Dialled, DialFault>>),
    /// News of the connection.
    Link(LinkNews),
    /// 20 ms have passed.
    Tick,
}

/// The connection of one call.
pub(crate) struct SocketSide {
    port: WebSocketPort,
    dialer: Dialer,
    guard: Guard,
    settings: SocketSettings,
    frames: FrameExchange,
    /// Connection of a call that came in, until its task begins.
    incoming: Option<Box<IncomingSocket>>,
    link: Option<Link>,
    dialling: Option<BoxFuture<'static, Result<Dialled, DialFault>>>,
    ticks: Interval,
}

/// Opens a WebSocket to the server of an agent.
pub(super) fn dial(means: Means<'_>, dial: &WebSocketDial, placement: &Placement) -> Result<Opening, PlaceError> {
    let permit = means.services.permit()?;
    let facts = dial.facts(placement.spec.seed, CallState::now(), means.services.clock.now_ms());
    let port = WebSocketPort::caller(dial.dialect(), facts, dial.settings.rules.clone());
    let (side, media) = SocketSide::new(means.dialer, dial, port);
    Ok(opening(means.next_no(), permit, side, media))
}

/// Takes the call of a WebSocket that the other side has opened.
pub(super) fn answer(
    means: Means<'_>,
    incoming: Box<IncomingSocket>,
    placement: &Placement,
) -> Result<Opening, PlaceError> {
    let Destination::Incoming(Answering { websocket: Some(dial), .. }) = &placement.destination else {
        return Err(PlaceError::BadTarget("this call is waited for over SIP".to_owned()));
    };
    let permit = means.services.permit()?;
    let facts = dial.facts(placement.spec.seed, CallState::now(), means.services.clock.now_ms());
    let port = WebSocketPort::incoming(incoming.role, dial.dialect(), facts);
    let (mut side, media) = SocketSide::new(means.dialer, dial, port);
    side.incoming = Some(incoming);
    Ok(opening(means.next_no(), permit, side, media))
}

fn opening(no: CallNo, permit: CallPermit, side: SocketSide, media: MediaPath) -> Opening {
    let channel = Channel::Socket(Attended::new(side));
    Opening { no, permit, channel, media, handshakes: None, carrier: None, moves_audio: true }
}

impl SocketSide {
    /// Returns a side without a connection, and the media of its call.
    fn new(dialer: &Dialer, dial: &WebSocketDial, port: WebSocketPort) -> (SocketSide, MediaPath) {
        let (rings, peer) = frame_rings(PcmParams { rate_hz: RATE_HZ, heard_rate_hz: RATE_HZ });
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let side = SocketSide {
            port,
            dialer: dialer.clone(),
            guard: dial.guard.clone().unwrap_or_else(|| Guard::by(|_| true)),
            settings: dial.settings.clone(),
            frames: FrameExchange::new(peer),
            incoming: None,
            link: None,
            dialling: None,
            ticks,
        };
        (side, MediaPath::Rings(rings))
    }

    /// Returns the next news; ticks are among them where `ticks`. Safe to drop and call again.
    async fn next_news(&mut self, ticks: bool) -> SocketNews {
        let (dialling, link) = (&mut self.dialling, &mut self.link);
        tokio::select! {
            dialled = next_of(dialling) => {
                self.dialling = None;
                SocketNews::Dialled(Box::new(dialled))
            }
            news = news_of(link) => SocketNews::Link(news),
            _ = self.ticks.tick(), if ticks => SocketNews::Tick,
        }
    }

    /// Carries out an order of the port.
    fn carry_out(&mut self, order: SocketOrder) {
        match order {
            SocketOrder::Dial { after } => {
                self.link = None;
                let now = CallState::now();
                self.frames.hand_on(now);
                let (dialer, guard, upgrade) = (self.dialer.clone(), self.guard.clone(), self.port.upgrade(now));
                let (limits, patience) = (self.settings.limits, self.settings.connect_timeout);
                self.dialling = Some(Box::pin(async move {
                    tokio::time::sleep(after).await;
                    dialer.connect(&upgrade, &guard, limits, patience).await
                }));
            }
            SocketOrder::Send(message) => {
                if let Some(link) = &mut self.link {
                    link.send(message);
                }
            }
            SocketOrder::Close { code, reason } => self.link.iter_mut().for_each(|link| link.close(code, reason)),
            SocketOrder::Drop => (self.link, self.dialling) = (None, None),
        }
    }

    /// Carries out what depends on time alone.
    fn tick(&mut self, now: Time) {
        self.frames.hand_on(now);
        self.link.iter_mut().for_each(|link| link.tick(now));
        self.port.tick(now, self.frames.unheard());
    }

    /// Returns the time within which the connection is closed.
    fn patience(&self) -> Duration {
        let close = self.settings.close_timeout;
        if self.port.is_closing() { close } else { GOODBYE + close }
    }
}

impl ChannelSide for SocketSide {
    type News = SocketNews;

    const LOG: &'static str = WEBSOCKET_LOG;

    async fn begin(&mut self, _call: &mut CallState) -> bool {
        if let Some(incoming) = self.incoming.take() {
            let address = incoming.address.to_string();
            self.link = Some(incoming.into_link());
            self.port.on_open(CallState::now(), address);
        }
        true
    }

    async fn next(&mut self) -> SocketNews {
        self.next_news(self.port.needs_ticks()).await
    }

    async fn follow(&mut self, call: &mut CallState, news: SocketNews) {
        let now = CallState::now();
        match news {
            SocketNews::Dialled(dialled) => match *dialled {
                Ok(dialled) => {
                    self.link = Some(dialled.link);
                    if let Some(place) = dialled.unverified {
                        let text = format!("the certificate of {place} was not verified (tls.insecure_hosts)");
                        call.files.warnings.push(text);
                    }
                    self.port.on_open(now, dialled.address.to_string());
                }
                Err(fault) => self.port.on_failure(now, &fault),
            },
            SocketNews::Link(LinkNews::Message(arrived, message)) => self.port.receive(arrived, message),
            SocketNews::Link(LinkNews::Closed { code, reason }) => self.port.on_close(now, code, &reason),
            SocketNews::Link(LinkNews::Lost(why)) => self.port.on_loss(now, &why),
            SocketNews::Link(LinkNews::TooBig) => self.port.broken(now, TOO_BIG.0, TOO_BIG.1),
            SocketNews::Link(LinkNews::Broken(why)) => {
                tracing::info!("the agent violated the WebSocket protocol: {why}");
                self.port.broken(now, BROKEN.0, BROKEN.1);
            }
            SocketNews::Tick => self.tick(now),
        }
        self.drain(call).await;
    }

    async fn drain(&mut self, call: &mut CallState) {
        while let Some(output) = self.port.poll() {
            match call.carry_out(output) {
                Some(WebSocketAction::Send(order)) => self.carry_out(order),
                Some(WebSocketAction::Frames(pcm)) => self.frames.hear(CallState::now(), &pcm),
                Some(WebSocketAction::ClearFrames) => self.frames.clear(),
                Some(WebSocketAction::HoldFrames(most)) => self.frames.hold(CallState::now(), most),
                None => {}
            }
        }
    }

    async fn control(&mut self, call: &mut CallState, control: &Control) {
        // Earlier messages of the call go out first.
        self.exchange(call).await;
        self.port.control(control);
        self.drain(call).await;
    }

    async fn exchange(&mut self, call: &mut CallState) {
        let now = CallState::now();
        self.frames.send(now, &mut self.port);
        self.tick(now);
        self.drain(call).await;
    }

    async fn close(&mut self, call: &mut CallState) {
        if self.link.is_some() && !self.port.is_over() {
            let patience = self.patience();
            let closing = async {
                loop {
                    let news = self.next_news(true).await;
                    let is_end = matches!(news, SocketNews::Link(LinkNews::Closed { .. } | LinkNews::Lost(_)));
                    self.follow(call, news).await;
                    if is_end || self.link.is_none() {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(patience, closing).await;
        }
        let unsent = self.link.as_ref().map_or(0, Link::unsent_count);
        if unsent > 0 {
            let text = format!("{unsent} messages of audio were not sent: the agent did not read them");
            call.files.warnings.push(text);
        }
        if let Some(quality) = call.quality() {
            self.frames.add_to(quality);
        }
        (self.link, self.dialling) = (None, None);
    }

    async fn own_event(&mut self, call: &mut CallState, event: &Event) {
        self.port.own_event(event);
        self.drain(call).await;
    }

    fn peer(&self) -> &PeerInfo {
        self.port.peer()
    }

    fn warning(&self, _quality: &Quality) -> Option<String> {
        self.port.refused_warning()
    }

    fn agent_errors(&self) -> Vec<AgentError> {
        self.port.agent_errors().to_vec()
    }

    fn variables(&self) -> Option<Value> {
        self.port.variables().cloned()
    }
}

async fn next_of<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn news_of(link: &mut Option<Link>) -> LinkNews {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}
