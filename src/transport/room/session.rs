//! A call to a room: the WebSocket, the peer connections and the way back when one of them is lost.

mod back;
mod packets;
mod steps;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::future::BoxFuture;
use prost::Message as _;
use ringer_base::clock::monotonic;
use ringer_base::config::Secret;
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::back::Back;
use super::data::{DataCounts, DataEvent, Inbox, packet_of_digit};
use super::fault::{Reason, RoomFault, Step};
use super::line::{Connected, Way};
use super::messages::{LeaveRequest, Request, SessionDescription};
use super::side::{Side, SideNews};
use super::signal::{Flow, RoomEvent, Signalling, encode, trickle};
use super::{Patience, RoomTarget};
use crate::news::NewsSender;
use crate::webrtc::{
    Arrived, ChannelId, ChannelNews, Hearing, Lines, MediaPeer, PeerFigures, PeerSettings, PeerState, Pump, Tracks,
};
use crate::websocket::dial::Dialer;
use crate::websocket::link::{Link, LinkNews};
use crate::websocket::protocol::Message;

/// Packets of the agent that may wait for the pump: 5 s of one track.
const PACKETS: usize = 256;

/// Time that a server may take to close the WebSocket.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(500);

/// Something that a call to a room tells.
#[derive(Clone, Debug, PartialEq)]
pub enum RoomNews {
    /// An event of the room, and when its message came.
    Event(Time, RoomEvent),
    /// Something that a data packet tells, and when it came.
    Data(Time, DataEvent),
    /// A connection is lost and is taken up again; how it was lost.
    Returns(String),
    /// The connection is back.
    Returned,
    /// Audio is sent and heard in another form from now on.
    Media(MediaParams),
    /// The agent sends no audio for now, or sends it again.
    Held(bool),
    /// For the user of the result.
    Warning(String),
}

/// Something that a call to a room is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The call is over.
    HangUp,
    /// A digit is pressed.
    Digit(char),
}

/// The end of a call to a room.
#[derive(Clone, Debug, PartialEq)]
pub enum RoomEnd {
    /// This side ended it.
    HungUp,
    /// The agent ended it: it left, or had the room closed.
    AgentLeft,
    /// It broke off, for this reason.
    Failed(RoomFault),
}

/// Facts of a room that was joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Name of this side's participant.
    pub sid: String,
    /// Identity of the agent.
    pub agent: Option<String>,
    /// Form of the protocol.
    pub flow: Flow,
    /// Name of the room; empty where the server tells none.
    pub room: String,
    /// Version of the server; empty where it tells none.
    pub server_version: String,
}

/// End of a connection, before it is told as that of the call.
enum Carried {
    HungUp,
    AgentLeft,
    Failed(Reason),
}

/// Something that woke the call.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is read at once")]
enum Woken {
    Order(Option<Order>),
    Link(LinkNews),
    Dialled(Result<Connected, Reason>),
    Publisher(SideNews),
    Subscriber(SideNews),
    Timer,
}

/// A call to a room.
pub struct RoomCall {
    way: Way,
    token: Secret,
    tool_topic: Option<String>,
    settings: PeerSettings,
    patience: Patience,
    flow: Flow,
    link: Option<Link>,
    signalling: Signalling,
    publisher: Option<Side>,
    subscriber: Option<Side>,
    /// Data channel for packets that are not to be lost.
    reliable: Option<ChannelId>,
    /// Offer that waits until the track may be published.
    offer: Option<SessionDescription>,
    last_answer: Option<SessionDescription>,
    offers: u32,
    /// The answer to an offer has not come.
    awaits_answer: bool,
    /// Tracks that the next offer is to ask for.
    more_tracks: u32,
    /// Tracks of the agent that are heard; none: nothing is.
    tracks: Tracks,
    /// The same on their way to whoever hears them.
    hearing: Arc<Hearing>,
    /// Arrival of the agent's newest packet, in nanoseconds; 0 before it.
    heard_at: Arc<AtomicU64>,
    media: Option<MediaParams>,
    is_held: bool,
    /// True from the agent's return on until a track of it is described.
    awaits_voice: bool,
    /// The call is up: what changes from now on is news.
    is_up: bool,
    /// Packets that came before it, in order; the oldest are dropped.
    early: VecDeque<Arrived>,
    /// Time since which the agent could be heard.
    heard_since: Time,
    packets: mpsc::Sender<Arrived>,
    heard: Option<mpsc::Receiver<Arrived>>,
    /// Number of publishers so far, each of which the pump begins anew for.
    generation: u64,
    back: Option<Back>,
    /// Times that the way back was begun.
    returns: u32,
    dialling: Option<BoxFuture<'static, Result<Connected, Reason>>>,
    inbox: Inbox,
    lost_packets: u64,
    last_figures: PeerFigures,
}

impl RoomCall {
    /// Joins the room and waits until the agent's audio is there. News of that time are told, too.
    ///
    /// # Errors
    /// The step that failed, and why.
    pub async fn open(
        target: RoomTarget,
        settings: PeerSettings,
        dialer: Dialer,
        patience: Patience,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<RoomNews>,
    ) -> Result<RoomCall, RoomEnd> {
        let mut call = RoomCall::connect(target, settings, dialer, patience, orders, news).await?;
        match call.become_ready(orders, news).await {
            Ok(()) => Ok(call),
            Err((step, carried)) => {
                call.leave().await;
                Err(end_of(carried, step))
            }
        }
    }

    /// Joins the room as one whom others wait for: it is up as soon as it can send, and goes on when others leave.
    ///
    /// # Errors
    /// As [`RoomCall::open`].
    pub async fn attend(
        target: RoomTarget,
        settings: PeerSettings,
        dialer: Dialer,
        patience: Patience,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<RoomNews>,
    ) -> Result<RoomCall, RoomEnd> {
        let mut call = RoomCall::connect(target, settings, dialer, patience, orders, news).await?;
        let joining = call.turn_until(orders, news, |call| call.publisher.as_ref().is_some_and(Side::is_connected));
        let carried = match timeout(patience.join, joining).await {
            Ok(None) => {
                call.is_up = true;
                call.hear_early();
                return Ok(call);
            }
            Ok(Some(carried)) => carried,
            Err(_) => Carried::Failed(Reason::NoJoin(patience.join)),
        };
        call.leave().await;
        Err(end_of(carried, Step::Join))
    }

    /// Connects to the server.
    async fn connect(
        target: RoomTarget,
        settings: PeerSettings,
        dialer: Dialer,
        patience: Patience,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<RoomNews>,
    ) -> Result<RoomCall, RoomEnd> {
        let failed = |step, reason| RoomEnd::Failed(RoomFault { step, reason });
        let RoomTarget { server_url, token, tool_topic, agent_name } = target;
        let way = Way { dialer, guard: settings.guard.clone(), server_url };
        let connected = tokio::select! {
            connected = way.clone().connect(token.clone(), None, None, patience.join) => connected,
            () = hung_up(orders) => return Err(RoomEnd::HungUp),
        };
        let connected = connected.map_err(|reason| failed(Step::Join, reason))?;
        if let Some(place) = connected.unverified {
            let text = format!("the certificate of {place} was not verified (tls.insecure_hosts)");
            news.send(RoomNews::Warning(text));
        }
        let (packets, heard) = mpsc::channel(PACKETS);
        Ok(RoomCall {
            way,
            token,
            tool_topic,
            settings,
            patience,
            flow: connected.flow,
            link: Some(connected.link),
            signalling: Signalling::expecting(agent_name),
            publisher: None,
            subscriber: None,
            reliable: None,
            offer: None,
            last_answer: None,
            offers: 0,
            awaits_answer: false,
            more_tracks: 0,
            tracks: Tracks::default(),
            hearing: Arc::default(),
            heard_at: Arc::default(),
            media: None,
            is_held: false,
            awaits_voice: false,
            is_up: false,
            early: VecDeque::new(),
            heard_since: now(),
            packets,
            heard: Some(heard),
            generation: 0,
            back: None,
            returns: 0,
            dialling: None,
            inbox: Inbox::default(),
            lost_packets: 0,
            last_figures: PeerFigures::default(),
        })
    }

    /// Returns what was settled for the audio.
    pub fn media(&self) -> Option<MediaParams> {
        self.media
    }

    /// Returns what was settled for the audio that is sent; whoever attends a room sends before anything is heard.
    pub fn sent_media(&self) -> Option<MediaParams> {
        self.publisher.as_ref()?.peer.media()
    }

    /// Returns the time since which the agent can be heard.
    pub fn heard_since(&self) -> Time {
        self.heard_since
    }

    /// Returns the facts of the room.
    pub fn facts(&self) -> Joined {
        let agent = self.signalling.agent().map(str::to_owned);
        let (room, server_version) = self.signalling.place().clone();
        Joined { sid: self.signalling.own_sid().to_owned(), agent, flow: self.flow, room, server_version }
    }

    /// Returns the figures of the connection that this side hears by.
    pub async fn figures(&mut self) -> PeerFigures {
        match self.subscriber.as_ref().or(self.publisher.as_ref()) {
            Some(side) => side.peer.figures().await,
            None => PeerFigures::default(),
        }
    }

    /// Returns the figures of a call that is over.
    pub fn last_figures(&self) -> PeerFigures {
        self.last_figures
    }

    /// Returns the counts of data packets.
    pub fn counts(&self) -> DataCounts {
        self.inbox.counts()
    }

    /// Returns the number of messages of the signalling that could not be read.
    pub fn malformed_count(&self) -> u64 {
        self.signalling.malformed_count()
    }

    /// Carries the call until it ends: moves packets, follows the room, takes lost connections up again.
    ///
    /// News that nobody takes in time are dropped and counted.
    pub async fn run(
        &mut self,
        pump: &mut Pump,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<RoomNews>,
    ) -> RoomEnd {
        let Some(mut heard) = self.heard.take() else { return RoomEnd::HungUp };
        let hearing = self.hearing.clone();
        self.tell_hold(news);
        let carried = loop {
            let generation = self.generation;
            let Some(peer) = self.publisher.as_ref().map(|side| side.peer.clone()) else {
                match self.turn(orders, news).await {
                    Some(carried) => break carried,
                    None => continue,
                }
            };
            let ear = self.subscriber.as_ref().map(|side| side.peer.clone());
            let ear = ear.as_deref().map(|ear| ear as &dyn MediaPeer);
            let lines = Lines { main: &*peer, ear, hearing: Some(&hearing) };
            let media = pump.run_lines(lines, &mut heard);
            tokio::pin!(media);
            let over = loop {
                tokio::select! {
                    () = &mut media => {
                        let why = "the media connection would have to go on over a relay".to_owned();
                        (self.publisher, self.subscriber) = (None, None);
                        break self.lose(why, back::How::Anew, news);
                    }
                    carried = self.turn(orders, news) => {
                        if carried.is_some() || self.generation != generation {
                            break carried;
                        }
                    }
                }
            };
            if let Some(carried) = over {
                break carried;
            }
        };
        self.leave().await;
        end_of(carried, Step::Call)
    }

    /// Waits until the room is joined, the agent is there, and media can flow.
    async fn become_ready(
        &mut self,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<RoomNews>,
    ) -> Result<(), (Step, Carried)> {
        let Patience { join, agent, .. } = self.patience;
        let joining = self.turn_until(orders, news, |call| call.publisher.is_some());
        match timeout(join, joining).await {
            Ok(None) => {}
            Ok(Some(carried)) => return Err((Step::Join, carried)),
            Err(_) => return Err((Step::Join, Carried::Failed(Reason::NoJoin(join)))),
        }
        let waiting = self.turn_until(orders, news, RoomCall::is_ready);
        match timeout(agent, waiting).await {
            Ok(None) => {}
            Ok(Some(carried)) => return Err((Step::Agent, carried)),
            Err(_) => return Err((Step::Agent, Carried::Failed(self.why_not_ready(agent).await))),
        }
        self.is_up = true;
        self.signalling.choose_agent();
        self.hear_early();
        Ok(())
    }

    /// Carries the connections on until `is_reached`. Returns the end, where it comes before.
    async fn turn_until(
        &mut self,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<RoomNews>,
        is_reached: impl Fn(&RoomCall) -> bool,
    ) -> Option<Carried> {
        while !is_reached(self) {
            if let Some(carried) = self.turn(orders, news).await {
                return Some(carried);
            }
        }
        None
    }

    fn is_ready(&self) -> bool {
        self.back.is_none() && self.can_flow()
    }

    /// True when audio can go both ways.
    fn can_flow(&self) -> bool {
        let hears = self.flow == Flow::Joint || self.subscriber.as_ref().is_some_and(Side::is_connected);
        self.media.is_some() && !self.tracks.all().is_empty() && self.can_send() && hears
    }

    /// True when audio of this side can reach the room.
    fn can_send(&self) -> bool {
        self.publisher.as_ref().is_some_and(Side::is_connected)
    }

    /// Carries out what is to be done, then waits for one thing and takes it. Returns the end, where it is one.
    async fn turn(&mut self, orders: &mut mpsc::Receiver<Order>, news: &NewsSender<RoomNews>) -> Option<Carried> {
        while let Some(output) = self.signalling.poll() {
            if let Some(carried) = self.carry_out(output, news).await {
                return Some(carried);
            }
        }
        self.look_back(news);
        let timer = self.next_timer();
        let RoomCall { link, dialling, publisher, subscriber, .. } = self;
        let woken = tokio::select! {
            order = orders.recv() => Woken::Order(order),
            link_news = next_of_link(link) => Woken::Link(link_news),
            dialled = next_dialled(dialling) => Woken::Dialled(dialled),
            side_news = next_of_side(publisher) => Woken::Publisher(side_news),
            side_news = next_of_side(subscriber) => Woken::Subscriber(side_news),
            () = until(timer) => Woken::Timer,
        };
        match woken {
            Woken::Order(Some(Order::Digit(digit))) => {
                self.press(digit, news).await;
                None
            }
            Woken::Order(Some(Order::HangUp) | None) => Some(Carried::HungUp),
            Woken::Link(link_news) => self.take_link(link_news, news),
            Woken::Dialled(dialled) => {
                self.dialling = None;
                self.take_dialled(dialled)
            }
            Woken::Publisher(side_news) => self.take_side(side_news, true, news),
            Woken::Subscriber(side_news) => self.take_side(side_news, false, news),
            Woken::Timer => self.take_timer(news),
        }
    }

    fn take_link(&mut self, link_news: LinkNews, news: &NewsSender<RoomNews>) -> Option<Carried> {
        let why = match link_news {
            LinkNews::Message(at, Message::Binary(bytes)) => {
                self.signalling.receive(at, &bytes);
                return None;
            }
            // The protocol has no messages of text.
            LinkNews::Message(..) => return None,
            LinkNews::Closed { code, .. } => format!("it closed the connection with code {code}"),
            LinkNews::TooBig => "it sent a message of more than 1 MiB".to_owned(),
            LinkNews::Broken(why) => format!("it broke the rules of WebSockets: {why}"),
            LinkNews::Lost(why) => why,
        };
        self.link = None;
        self.lose(why, back::How::Resume, news)
    }

    fn take_side(&mut self, side_news: SideNews, is_publisher: bool, news: &NewsSender<RoomNews>) -> Option<Carried> {
        match side_news {
            SideNews::Packet(packet) if self.is_up => {
                self.relay(packet, is_publisher);
            }
            SideNews::Packet(packet) => self.keep(packet),
            SideNews::Channel(ChannelNews::Message { bytes, .. }) => {
                let at = now();
                let names = self.signalling.names(self.tool_topic.as_deref());
                for event in self.inbox.receive(at, &bytes, names) {
                    news.send_event(RoomNews::Data(at, event));
                }
            }
            SideNews::Candidate(candidate) => {
                let side = if is_publisher { &self.publisher } else { &self.subscriber };
                if let (Some(link), Some(side)) = (&mut self.link, side) {
                    link.send(Message::Binary(encode(trickle(side.target, &candidate))));
                }
            }
            SideNews::State(PeerState::Failed | PeerState::Closed) | SideNews::Gone => {
                let side = if is_publisher { &mut self.publisher } else { &mut self.subscriber };
                *side = None;
                // A server that lets this side in again ends the old media.
                if self.back.is_none() {
                    return self.lose("the media connection was closed or failed".to_owned(), back::How::Anew, news);
                }
            }
            SideNews::Refused(fault) => return Some(Carried::Failed(Reason::Peer(fault))),
            SideNews::Channel(_) | SideNews::State(_) => {}
        }
        None
    }

    async fn press(&mut self, digit: char, news: &NewsSender<RoomNews>) {
        let (Some(packet), Some(side), Some(channel)) = (packet_of_digit(digit), &self.publisher, self.reliable) else {
            return;
        };
        if let Err(fault) = side.peer.send_bytes(channel, &packet.encode_to_vec()).await {
            news.send(RoomNews::Warning(format!("a key was not sent as a message: {fault}")));
        }
    }

    /// Tells the server that this side leaves, and closes everything.
    async fn leave(&mut self) {
        self.dialling = None;
        if let Some(link) = &mut self.link {
            let leave = LeaveRequest { reason: 1, ..LeaveRequest::default() };
            link.send(Message::Binary(encode(Request::Leave(leave))));
            link.close(1000, "");
            let closing = async { while let LinkNews::Message(..) = link.next().await {} };
            let _ = timeout(FAREWELL, closing).await;
        }
        self.link = None;
        self.last_figures = self.figures().await;
        self.last_figures.dropped += self.lost_packets;
        for side in [self.publisher.take(), self.subscriber.take()].into_iter().flatten() {
            side.peer.close().await;
        }
    }
}

/// Returns the end of the call.
fn end_of(carried: Carried, step: Step) -> RoomEnd {
    match carried {
        Carried::HungUp => RoomEnd::HungUp,
        Carried::AgentLeft => RoomEnd::AgentLeft,
        Carried::Failed(reason) => RoomEnd::Failed(RoomFault { step, reason }),
    }
}

/// Waits for the order to hang up, or for the end of all orders.
async fn hung_up(orders: &mut mpsc::Receiver<Order>) {
    while !matches!(orders.recv().await, Some(Order::HangUp) | None) {}
}

async fn next_of_link(link: &mut Option<Link>) -> LinkNews {
    match link {
        Some(link) => link.next().await,
        None => pending().await,
    }
}

async fn next_dialled(
    dialling: &mut Option<BoxFuture<'static, Result<Connected, Reason>>>,
) -> Result<Connected, Reason> {
    match dialling {
        Some(dialling) => dialling.await,
        None => pending().await,
    }
}

async fn next_of_side(side: &mut Option<Side>) -> SideNews {
    match side {
        Some(side) => side.next().await,
        None => pending().await,
    }
}

async fn until(at: Option<Time>) {
    match at {
        Some(at) => tokio::time::sleep(at.since(now())).await,
        None => pending().await,
    }
}

/// Returns the time of messages and waits.
fn now() -> Time {
    monotonic()
}
