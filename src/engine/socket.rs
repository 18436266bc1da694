//! The connection of a call over a WebSocket, as the call's task holds it: attempts to dial, messages, and frames from and to the
//! media thread.

use std::time::Duration;

use futures_util::future::BoxFuture;
use ringer_media::call::Quality;
use ringer_media::rings::FramePeer;
use ringer_media::time::Time;
use tokio::time::{Interval, MissedTickBehavior};

use super::exchange::FrameExchange;
use super::placement::SocketSettings;
use crate::clock::monotonic;
use crate::provider::guard::Guard;
use crate::transport::websocket::dial::{DialFault, Dialer, Dialled};
use crate::transport::websocket::handshake::Upgrade;
use crate::transport::websocket::link::{Link, LinkNews};
use crate::transport::websocket::port::{SocketOrder, WebSocketPort};

/// Distance of ticks while no frames come from the media thread.
const TICK: Duration = Duration::from_millis(20);

/// Time that a protocol may take for its own goodbye before the socket is closed.
pub(super) const GOODBYE: Duration = Duration::from_secs(10);

/// News for the task of a call.
#[derive(Debug)]
pub(super) enum SocketNews {
    /// An attempt to dial is over.
    Dialled(Box<Result<Dialled, DialFault>>),
    /// News of the connection.
    Link(LinkNews),
    /// 20 ms have passed.
    Tick,
}

/// The connection of one call.
pub(super) struct SocketSide {
    dialer: Dialer,
    guard: Guard,
    settings: SocketSettings,
    frames: FrameExchange,
    link: Option<Link>,
    dialling: Option<BoxFuture<'static, Result<Dialled, DialFault>>>,
    ticks: Interval,
}

impl SocketSide {
    /// Returns a side without a connection. `frames` is the other end of the call's rings.
    pub fn new(dialer: Dialer, guard: Guard, settings: SocketSettings, frames: FramePeer) -> SocketSide {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        SocketSide { dialer, guard, settings, frames: FrameExchange::new(frames), link: None, dialling: None, ticks }
    }

    /// Takes a connection that is open.
    pub fn take_link(&mut self, link: Link) {
        self.link = Some(link);
    }

    /// Returns the time of the media threads.
    pub fn now() -> Time {
        monotonic()
    }

    /// Returns the next news; ticks are among them where `ticks`. Safe to drop and call again.
    pub async fn next(&mut self, ticks: bool) -> SocketNews {
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

    /// Carries out an order of the port; `upgrade` is the request of an attempt to dial.
    pub fn carry_out(&mut self, order: SocketOrder, upgrade: impl FnOnce() -> Upgrade) {
        match order {
            SocketOrder::Dial { after } => {
                self.link = None;
                self.frames.hand_on(SocketSide::now());
                let (dialer, guard, upgrade) = (self.dialer.clone(), self.guard.clone(), upgrade());
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

    /// Takes audio of the other side that came at `now`.
    pub fn hear(&mut self, now: Time, pcm: &[i16]) {
        self.frames.hear(now, pcm);
    }

    /// Drops the audio of the other side that was not heard yet.
    pub fn clear(&mut self) {
        self.frames.clear();
    }

    /// Hands the frames that the call has made to the port, and looks after everything that depends on time.
    pub fn exchange(&mut self, now: Time, port: &mut WebSocketPort) {
        self.frames.send(now, port);
        self.tick(now, port);
    }

    /// Looks after everything that depends on time alone.
    pub fn tick(&mut self, now: Time, port: &mut WebSocketPort) {
        self.frames.hand_on(now);
        self.link.iter_mut().for_each(|link| link.tick(now));
        port.tick(now, self.frames.unheard());
    }

    /// True while there is a connection that may still be closed in order.
    pub fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Returns the time within which the connection is closed; `is_closing`: the close frame is on its way.
    pub fn patience(&self, is_closing: bool) -> Duration {
        if is_closing { self.settings.close_timeout } else { GOODBYE + self.settings.close_timeout }
    }

    /// Gives the connection up.
    pub fn drop_link(&mut self) {
        (self.link, self.dialling) = (None, None);
    }

    /// Returns the number of messages of audio that the other side did not take.
    pub fn unsent_count(&self) -> u64 {
        self.link.as_ref().map_or(0, Link::unsent_count)
    }

    /// Adds what was measured at the socket to the figures of the media thread.
    pub fn add_to(&self, quality: &mut Quality) {
        self.frames.add_to(quality);
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
