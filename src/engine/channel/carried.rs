//! Channels whose connections a task of their own carries: news arrive and orders leave by queues, and audio passes by.
//! The same for voice pipelines and media rooms.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ringer_media::call::{Control, Event};
use ringer_media::frame::Sample;
use ringer_media::packet_rings::packet_rings;
use ringer_media::time::Time;
use ringer_transport::path::MediaPath;
use ringer_transport::peer::{AgentError, PeerInfo, PortOutput};
use ringer_transport::webrtc::{Bell, PeerFigures, Pump, PumpFigures, peer_media};

use super::queues::{self, Precedence, Queued, Queues};
use super::{Attended, Channel, ChannelSide, Means, Opening};
use crate::call_state::CallState;
use crate::services::CallPermit;

/// Time that the end of the connections may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Port of a channel whose connections a task carries.
pub(crate) trait CarriedPort {
    /// Order to the task.
    type Order;
    /// News of the connections.
    type News;
    /// Facts of the connections when media can flow.
    type Connected;
    /// End of the connections, or of the attempt to make them.
    type End;
    /// Counts of the other side's messages.
    type Counts;

    /// Name of the log of the signalling.
    const LOG: &'static str;
    /// Name of the other side in warnings.
    const OTHER: &'static str;
    /// Order in which news and steps are taken before media can flow.
    const PRECEDENCE: Precedence;

    /// Begins the call: media can flow.
    fn open(&mut self, now: Time, connected: Self::Connected);
    /// Takes news of the connections.
    fn receive(&mut self, now: Time, news: Self::News);
    /// Ends the call, since the connections have ended or none came about.
    fn finish(&mut self, now: Time, end: Self::End);
    /// Takes a control of the Call.
    fn control(&mut self, control: &Control);
    /// Returns the next output.
    fn poll(&mut self) -> Option<PortOutput<Self::Order>>;
    /// Returns the other side, as far as it is known.
    fn peer(&self) -> &PeerInfo;

    /// Takes an event of the call that may be told to the other side; false where it is never told one.
    fn own_event(&mut self, _event: &Event) -> bool {
        false
    }

    /// Returns the events that are open when the call ends at `end`.
    fn last_events(&mut self, _end: Sample) -> Vec<Event> {
        Vec::new()
    }

    /// Returns the errors that the other side told of.
    fn agent_errors(&self) -> Vec<AgentError> {
        Vec::new()
    }

    /// True for the order that ends the connections.
    fn is_hang_up(order: &Self::Order) -> bool;
    /// Returns the addresses between which media flow, this side's first.
    fn path(connected: &Self::Connected) -> Option<(SocketAddr, SocketAddr)>;
    /// Returns the end by a task that is gone without a last word; `is_open`: media could flow.
    fn vanish(is_open: bool) -> Self::End;
    /// Returns counts of the other side's behaviour, each with the words of its warning.
    fn warnings<'f>(peer: &'f PeerFigures, counts: &'f Self::Counts) -> Vec<(u64, &'static str)>;
}

/// Figures of connections that are over.
#[derive(Debug)]
pub(crate) struct Finished<C> {
    pub pump: PumpFigures,
    pub peer: PeerFigures,
    pub counts: C,
}

/// News for the task of a call.
pub(crate) enum SideNews<P: CarriedPort> {
    /// The connections are up: media can flow.
    Opened(Box<P::Connected>),
    /// News of the connections.
    News(P::News),
    /// The connections are over; figures where there were media.
    Ended(P::End, Option<Box<Finished<P::Counts>>>),
}

/// Ends of the queues that the task holds.
pub(super) type Line<P> = queues::Line<<P as CarriedPort>::Order, <P as CarriedPort>::News, SideNews<P>>;

/// Side of one call whose connections a task carries.
pub(crate) struct Side<P: CarriedPort> {
    port: P,
    queues: Queues<P::Order, P::News, SideNews<P>>,
    finished: Option<Box<Finished<P::Counts>>>,
    is_open: bool,
    is_over: bool,
}

impl<P: CarriedPort> Side<P> {
    /// Returns the call task's ends of the queues, and those of the task.
    pub(crate) fn new(port: P) -> (Side<P>, Line<P>) {
        let (queues, line) = Queues::new();
        (Side { port, queues, finished: None, is_open: false, is_over: false }, line)
    }

    /// Returns the next news; `None` after the last. A task that is gone without a last word has failed. Safe to drop
    /// and call again.
    pub(crate) async fn next_news(&mut self) -> Option<SideNews<P>> {
        if self.is_over {
            return None;
        }
        let precedence = if self.is_open { Precedence::NewsFirst } else { P::PRECEDENCE };
        let news = match self.queues.next(precedence).await {
            Some(Queued::News(news)) => SideNews::News(news),
            Some(Queued::Step(step)) => step,
            None => SideNews::Ended(P::vanish(self.is_open), None),
        };
        self.is_open |= matches!(news, SideNews::Opened(_));
        self.is_over = matches!(news, SideNews::Ended(..));
        Some(news)
    }
}

impl<P: CarriedPort> ChannelSide for Side<P> {
    type News = SideNews<P>;

    const LOG: &'static str = P::LOG;

    async fn next(&mut self) -> SideNews<P> {
        match self.next_news().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    async fn follow(&mut self, call: &mut CallState, news: SideNews<P>) {
        let now = CallState::now();
        match news {
            SideNews::Opened(connected) => {
                call.capture(P::path(&connected));
                self.port.open(now, *connected);
            }
            SideNews::News(news) => self.port.receive(now, news),
            SideNews::Ended(end, finished) => {
                while let Some(news) = self.queues.rest() {
                    self.port.receive(now, news);
                }
                self.port.finish(now, end);
                self.finished = finished;
            }
        }
        self.drain(call).await;
    }

    async fn drain(&mut self, call: &mut CallState) {
        while let Some(output) = self.port.poll() {
            match call.carry_out(output) {
                Some(order) if P::is_hang_up(&order) => self.queues.hang_up(),
                Some(order) => self.queues.order(order),
                None => {}
            }
        }
    }

    async fn control(&mut self, call: &mut CallState, control: &Control) {
        self.port.control(control);
        self.drain(call).await;
    }

    async fn close(&mut self, call: &mut CallState) {
        self.queues.hang_up();
        let closing = async {
            while let Some(news) = self.next_news().await {
                self.follow(call, news).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, closing).await;
        call.files.warnings.extend(self.queues.warnings(P::OTHER));
        let Some(Finished { pump, peer, counts }) = self.finished.as_deref() else { return };
        call.files.warnings.extend(queues::warnings_of(&P::warnings(peer, counts)));
        if let Some(quality) = call.quality() {
            queues::add_figures(pump, quality);
        }
    }

    async fn own_event(&mut self, call: &mut CallState, event: &Event) {
        if self.port.own_event(event) {
            self.drain(call).await;
        }
    }

    fn last_events(&mut self, end: Sample) -> Vec<Event> {
        self.port.last_events(end)
    }

    fn peer(&self) -> &PeerInfo {
        self.port.peer()
    }

    fn agent_errors(&self) -> Vec<AgentError> {
        self.port.agent_errors()
    }
}

/// Returns the opening of a call with this port. `carry` makes the task of its connections, which is called `name`.
pub(super) fn open<P: CarriedPort>(
    means: &Means<'_>,
    permit: CallPermit,
    port: P,
    channel: fn(Box<Attended<Side<P>>>) -> Channel,
    name: &'static str,
    carry: impl FnOnce(Pump, Line<P>) -> BoxFuture<'static, ()>,
) -> Opening {
    let (side, line) = Side::new(port);
    let (media, pump) = packets();
    Opening {
        no: means.next_no(),
        permit,
        channel: channel(Attended::new(side)),
        media,
        handshakes: None,
        carrier: Some((name, carry(pump, line))),
        moves_audio: false,
    }
}

/// Returns the media of a call as its media thread sees them, and the pump between them and the connections.
fn packets() -> (MediaPath, Pump) {
    let bell = Arc::<Bell>::default();
    let (rings, peer) = packet_rings(bell.waker());
    let (media, way) = peer_media(rings);
    (MediaPath::Peer(Box::new(media)), Pump::with_way(peer, bell, way))
}
