//! The SIP sockets: one task that moves messages and time into the SIP endpoint and its events out to the calls.

mod texts;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::{Clock, monotonic, random_seed};
use ringer_base::config::{SipListen, Sources};
use ringer_base::error::is_out_of_resources;
use ringer_base::tasks::Tasks;
use ringer_sip::auth::Demand;
use ringer_sip::{
    CallEnd, CallEvent, CallKey, ConnectionId, EndKind, Endpoint, EndpointConfig, Hop, Invite, Output, Time, Transport,
};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};

pub use self::texts::NotSent;
use self::texts::{TextDesk, TextOrder};
use super::address::called_user;
use super::dialog::{IncomingDialog, SipNews};
use super::line::NotConnected;
use super::names::Resolver;
use super::order::SipOrder;
use super::registration::{HEAD_BYTES, LineBoard, LineTerms, Lines};
use super::streams::{Hold, Patience, StreamNews, Streams};
use super::tls::TlsSettings;
use super::unknown::Strangers;
use crate::incoming::{Incoming, IncomingChannel};
use crate::peer::Refusal;
use crate::sockets::{keep_errors, next_undelivered};

/// Orders that may wait for the socket's task.
const ORDERS: usize = 4096;
/// News that may wait for one call.
pub const NEWS: usize = 256;
/// Incoming calls that may wait to be answered.
const INCOMING: usize = 256;
/// Value of the User-Agent and Server header fields.
const USER_AGENT: &str = concat!("Ringer/", env!("CARGO_PKG_VERSION"));
/// Longest SIP datagram in bytes.
const DATAGRAM_BYTES: usize = 65_535;

enum Order {
    Invite(Box<Invite>, mpsc::Sender<SipNews>, oneshot::Sender<(CallKey, String)>),
    About(CallKey, SipOrder),
    Authorize(CallKey, Box<Demand>, oneshot::Sender<bool>),
    AskInterval(Option<u32>),
    KeepLines(Box<(Vec<LineTerms>, Resolver, Clock)>),
    Register(BTreeSet<String>),
    LimitStrangers(Sources),
    Text(TextOrder),
}

/// A handle on the socket's task; cheap to clone.
#[derive(Clone)]
pub struct SipSocket {
    orders: mpsc::Sender<Order>,
    local: SipListen,
    board: LineBoard,
}

impl SipSocket {
    /// Binds the addresses of `listen` and starts the task. `advertise` is the host that goes into Via and Contact.
    ///
    /// # Errors
    /// The bind error, with the address where there are several.
    pub async fn start(
        listen: SipListen,
        tls: &TlsSettings,
        advertise: Option<std::net::IpAddr>,
        tasks: &Tasks,
    ) -> io::Result<(SipSocket, mpsc::Receiver<Incoming>)> {
        let mut listen = listen;
        let mut udp = None;
        if let Some(address) = &mut listen.udp {
            let socket = UdpSocket::bind(*address).await?;
            keep_errors(&socket, address.is_ipv6())?;
            *address = socket.local_addr()?;
            udp = Some(Arc::new(socket));
        }
        let streams = Streams::start(listen, tls, Patience::default(), tasks).await?;
        let named = |bound: SocketAddr| SocketAddr::new(advertise.unwrap_or(bound.ip()), bound.port());
        let bound = streams.local();
        let local = SipListen { udp: bound.udp.map(named), tcp: bound.tcp.map(named), tls: bound.tls.map(named) };
        // Without a listener a transport is spoken over connections that this side makes, and not chosen by itself.
        let config = EndpointConfig {
            local: local.udp.unwrap_or(local.first()),
            tcp: local.tcp,
            tls: local.tls,
            user_agent: USER_AGENT.to_owned(),
            seed: random_seed(),
        };
        let (orders, waiting) = mpsc::channel(ORDERS);
        let (incoming, arrivals) = mpsc::channel(INCOMING);
        let board = LineBoard::default();
        let port = SipDriver {
            lines: Lines::new(board.clone(), tasks),
            strangers: Strangers::new(now()),
            board: board.clone(),
            endpoint: Endpoint::new(config),
            local,
            udp,
            streams,
            holds: HashMap::new(),
            cause: None,
            calls: HashMap::new(),
            leaving: HashMap::new(),
            by_id: HashMap::new(),
            texts: TextDesk::default(),
            incoming,
        };
        tasks.spawn("sip", port.run(waiting, tasks.clone()));
        Ok((SipSocket { orders, local, board }, arrivals))
    }

    /// Returns the addresses in Via and Contact.
    pub fn local(&self) -> SipListen {
        self.local
    }

    /// Sends an INVITE; gives the call's key and Call-ID, `None` when the socket is closed.
    pub async fn invite(&self, invite: Invite, news: mpsc::Sender<SipNews>) -> Option<(CallKey, String)> {
        let (reply, key) = oneshot::channel();
        self.orders.send(Order::Invite(Box::new(invite), news, reply)).await.ok()?;
        key.await.ok()
    }

    /// Has the calls from now on ask for this session interval, in seconds (RFC 4028).
    pub async fn ask_session_interval(&self, seconds: Option<u32>) {
        let _ = self.orders.send(Order::AskInterval(seconds)).await;
    }

    /// Keeps these lines to providers from now on: registers them, asks whether they answer, and knows their hosts.
    pub async fn keep_lines(&self, terms: Vec<LineTerms>, resolver: Resolver, clock: Clock) {
        let _ = self.orders.send(Order::KeepLines(Box::new((terms, resolver, clock)))).await;
    }

    /// Keeps the registrations of these lines from now on, and takes those of the others back.
    pub async fn register_lines(&self, names: BTreeSet<String>) {
        let _ = self.orders.send(Order::Register(names)).await;
    }

    /// Limits what strangers send from now on; `allowed` are none, nor are hosts of lines and of calls.
    pub async fn limit_strangers(&self, allowed: Sources) {
        let _ = self.orders.send(Order::LimitStrangers(allowed)).await;
    }

    /// Returns the standing of the lines.
    pub fn board(&self) -> &LineBoard {
        &self.board
    }

    /// Gives an order about a call.
    pub async fn order(&self, key: CallKey, order: SipOrder) {
        let _ = self.orders.send(Order::About(key, order)).await;
    }

    /// Demands credentials of an incoming call. Returns true if it has them; otherwise it was refused or challenged,
    /// and is over.
    pub async fn authorize(&self, key: CallKey, demand: Demand) -> bool {
        let (reply, authorized) = oneshot::channel();
        let sent = self.orders.send(Order::Authorize(key, Box::new(demand), reply)).await;
        sent.is_ok() && authorized.await.unwrap_or(false)
    }
}

/// A call that this side has ended.
struct Leaving {
    news: mpsc::Sender<SipNews>,
    /// True if the other side has answered that.
    answered: bool,
}

impl Leaving {
    /// Returns what is still awaited for a call after its end; `None`: nothing more belongs to the call.
    fn after(end: &CallEnd, news: mpsc::Sender<SipNews>) -> Option<Leaving> {
        // A call that came in and was refused has its answer.
        let asked = matches!(end.kind, EndKind::LocalHangup | EndKind::Cancelled) && end.sip_code.is_none();
        asked.then_some(Leaving { news, answered: false })
    }
}

struct SipDriver {
    endpoint: Endpoint,
    lines: Lines,
    strangers: Strangers,
    board: LineBoard,
    /// Local addresses as the endpoint names them.
    local: SipListen,
    udp: Option<Arc<UdpSocket>>,
    streams: Streams,
    /// Connections that calls were last signalled by, which stay open for them.
    holds: HashMap<CallKey, (ConnectionId, Hold)>,
    /// Reason of the transport for the ends that it brings about.
    cause: Option<NotConnected>,
    calls: HashMap<CallKey, mpsc::Sender<SipNews>>,
    /// Calls that are over for this side, until the far side has answered that or nobody reads their news any more.
    leaving: HashMap<CallKey, Leaving>,
    by_id: HashMap<String, CallKey>,
    texts: TextDesk,
    incoming: mpsc::Sender<Incoming>,
}

impl SipDriver {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>, tasks: Tasks) {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        let udp = self.udp.clone();
        loop {
            let wait = self.endpoint.next_timer().into_iter().chain(self.lines.next_timer()).min().map(until);
            // The message that begins a call comes before the call that it is a part of.
            let mut beginning = None;
            tokio::select! {
                received = datagram(udp.as_deref(), &mut buffer) => {
                    match received {
                        Ok((len, from)) => beginning = self.receive(Hop::udp(from), &buffer[..len]),
                        Err(_) => self.note_undelivered(),
                    }
                }
                news = self.streams.next() => match news {
                    StreamNews::Message { from, bytes } => beginning = self.receive(from, &bytes),
                    StreamNews::Lost { connection, hop, why } => {
                        tracing::debug!(%hop, why, "a SIP connection was closed");
                        let why = format!("the connection to {hop} was lost: {why}");
                        self.endpoint.connection_lost(now(), connection);
                        self.lines.connection_lost(now(), connection, &why);
                        self.cause = Some(why.into());
                    }
                    StreamNews::Unreachable { to, why } => {
                        self.lines.unreachable(now(), &to, &why.why);
                        self.cause = Some(why);
                        self.endpoint.unreachable(now(), &to);
                    }
                },
                found = self.lines.next() => self.lines.take_places(now(), found),
                order = orders.recv() => match order {
                    Some(order) => self.carry_out(order),
                    None => break,
                },
                () = sleep(wait) => {}
                () = tasks.stopping() => break,
            }
            // Events of the transport are handled before timers that are merely due.
            self.send_all().await;
            self.cause = None;
            self.endpoint.tick(now());
            self.lines.tick(now());
            self.send_all().await;
            if let Some(seen) = self.lines.publish() {
                self.endpoint.appear_as(seen);
            }
            if let Some((from, bytes)) = beginning {
                self.keep(self.key_of(&bytes), from.connection);
                self.trace(false, &from, &bytes);
            }
            if !self.leaving.is_empty() {
                self.leaving.retain(|_, call| !call.answered && !call.news.is_closed());
            }
            if self.holds.len() > self.calls.len() + self.leaving.len() {
                self.holds.retain(|key, _| self.calls.contains_key(key) || self.leaving.contains_key(key));
            }
            if self.strangers.count_calls() > self.calls.len() + self.leaving.len() {
                self.strangers.retain(|key| self.calls.contains_key(key) || self.leaving.contains_key(key));
            }
        }
        self.drain(orders).await;
        self.leave(&mut buffer).await;
    }

    /// Takes a message; gives it back where it is of no call that is known yet, and may begin one.
    fn receive(&mut self, from: Hop, bytes: &[u8]) -> Option<(Hop, Vec<u8>)> {
        let is_stranger = self.is_stranger(from.address.ip()) && !self.is_of_call(bytes);
        if is_stranger && !self.strangers.admits(now(), from.address.ip()) {
            self.board.note_limited();
            return None;
        }
        if self.lines.receive(now(), &from, bytes) {
            return None;
        }
        self.keep(self.key_of(bytes), from.connection);
        let is_known = self.trace(false, &from, bytes);
        match is_stranger {
            true => self.endpoint.receive_stranger(now(), from.clone(), bytes),
            false => self.endpoint.receive(now(), from.clone(), bytes),
        }
        (!is_known).then(|| (from, bytes.to_vec()))
    }

    /// True if a message belongs to a call that was answered, or is being made.
    fn is_of_call(&self, bytes: &[u8]) -> bool {
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        self.key_of(head).is_some_and(|key| self.strangers.has_call(key))
    }

    fn is_stranger(&self, host: IpAddr) -> bool {
        self.strangers.is_one(host) && !self.lines.has_host(host)
    }

    /// Takes the registrations back, for as long as lines may take.
    async fn leave(&mut self, buffer: &mut [u8]) {
        self.lines.leave(now());
        let udp = self.udp.clone();
        loop {
            self.send_all().await;
            if self.lines.is_over() {
                break;
            }
            let wait = self.lines.next_timer().map(until);
            tokio::select! {
                received = datagram(udp.as_deref(), buffer) => if let Ok((len, from)) = received {
                    self.lines.receive(now(), &Hop::udp(from), &buffer[..len]);
                },
                news = self.streams.next() => match news {
                    StreamNews::Message { from, bytes } => drop(self.lines.receive(now(), &from, &bytes)),
                    StreamNews::Lost { connection, why, .. } => self.lines.connection_lost(now(), connection, &why),
                    StreamNews::Unreachable { to, why } => self.lines.unreachable(now(), &to, &why.why),
                },
                () = sleep(wait) => self.lines.tick(now()),
            }
        }
        self.lines.publish();
    }

    /// Keeps a connection open for the call that a message went by it for.
    fn keep(&mut self, key: Option<CallKey>, connection: Option<ConnectionId>) {
        let (Some(key), Some(connection)) = (key, connection) else { return };
        if self.holds.get(&key).is_none_or(|(held, _)| *held != connection)
            && let Some(hold) = self.streams.hold(connection)
        {
            self.holds.insert(key, (connection, hold));
        }
    }

    fn key_of(&self, message: &[u8]) -> Option<CallKey> {
        call_id(message).and_then(|id| self.by_id.get(id)).copied()
    }

    /// Sends what was ordered before the engine stops.
    async fn drain(&mut self, mut orders: mpsc::Receiver<Order>) {
        while let Ok(order) = orders.try_recv() {
            self.carry_out(order);
        }
        self.send_all().await;
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Invite(invite, news, reply) => {
                let hops = invite.alternatives.iter().chain([&invite.destination]);
                let hosts: Vec<IpAddr> = hops.map(|hop| hop.address.ip()).collect();
                let key = self.endpoint.invite(now(), *invite);
                let id = self.endpoint.call_id(key).unwrap_or_default().to_owned();
                self.calls.insert(key, news);
                hosts.into_iter().for_each(|host| self.strangers.note_partner(key, host));
                self.by_id.insert(id.clone(), key);
                let _ = reply.send((key, id));
            }
            Order::About(key, order) => {
                let answered = matches!(order, SipOrder::Answer(_)).then(|| self.endpoint.place_of(key)).flatten();
                let next = if let SipOrder::Resolved(hops) = &order { hops.as_slice() } else { &[] };
                let hosts: Vec<IpAddr> = answered.into_iter().chain(next).map(|hop| hop.address.ip()).collect();
                hosts.into_iter().for_each(|host| self.strangers.note_partner(key, host));
                order.apply(&mut self.endpoint, now(), key);
            }
            Order::AskInterval(seconds) => self.endpoint.ask_session_interval(seconds),
            Order::KeepLines(lines) => {
                let (terms, resolver, clock) = *lines;
                let terms = terms.into_iter().map(|terms| terms.at(&self.local));
                self.lines.begin(now(), terms.collect(), (resolver, clock), random_seed);
            }
            Order::Register(names) => self.lines.register(now(), &names, random_seed),
            Order::LimitStrangers(allowed) => self.strangers.limit(allowed),
            Order::Text(order) => self.carry_out_text(order),
            Order::Authorize(key, demand, reply) => {
                let _ = reply.send(self.endpoint.authorize(now(), key, &demand));
            }
        }
    }

    async fn send_all(&mut self) {
        loop {
            while let Some(output) = self.endpoint.poll() {
                match output {
                    Output::Send { to, bytes, request } => {
                        self.trace(true, &to, &bytes);
                        self.send(to, bytes, request).await;
                    }
                    Output::Event(key, event) => self.tell(key, event),
                }
            }
            if !self.tell_texts() {
                break;
            }
        }
        while let Some((line, to, bytes)) = self.lines.poll() {
            self.send_of_line(line, to, bytes).await;
        }
    }

    async fn send_of_line(&mut self, line: usize, to: Hop, bytes: Vec<u8>) {
        if to.transport != Transport::Udp {
            let Some((connection, is_new)) = self.streams.send(&to, bytes) else { return };
            let hold = self.streams.hold(connection);
            return self.lines.sent_over(line, &to, (connection, is_new), hold);
        }
        self.send(to, bytes, None).await;
    }

    /// Sends a datagram. An error of an earlier datagram ends a later send in its place; that one is then sent again.
    async fn send(&mut self, to: Hop, bytes: Vec<u8>, request: Option<Arc<str>>) {
        if to.transport != Transport::Udp {
            let key = self.key_of(&bytes);
            let Some((connection, is_new)) = self.streams.send(&to, bytes) else { return };
            if let Some(request) = request {
                self.endpoint.sent_over(&request, connection, is_new);
            }
            return self.keep(key, Some(connection));
        }
        let Some(socket) = self.udp.clone() else {
            let why = format!("{to} cannot be reached: this side has no UDP socket (sip.listen)");
            self.lines.unreachable(now(), &to, &why);
            self.cause = Some(NotConnected { why, is_own: true });
            return self.endpoint.unreachable(now(), &to);
        };
        if socket.send_to(&bytes, to.address).await.is_err() {
            self.note_undelivered();
            if let Err(error) = socket.send_to(&bytes, to.address).await {
                let (why, is_own) = (format!("{to} cannot be reached: {error}"), is_out_of_resources(&error));
                self.lines.unreachable(now(), &to, &why);
                self.cause = Some(NotConnected { why, is_own });
                self.endpoint.unreachable(now(), &to);
            }
        }
    }

    fn note_undelivered(&mut self) {
        let Some(socket) = self.udp.clone() else { return };
        while let Some(to) = next_undelivered(&*socket).map(Hop::udp) {
            self.lines.unreachable(now(), &to, &format!("{to} cannot be reached"));
            self.endpoint.unreachable(now(), &to);
        }
    }

    fn tell(&mut self, key: CallKey, mut event: CallEvent) {
        if let (CallEvent::Ended(end), Some(cause)) = (&mut event, &self.cause) {
            cause.tell(end);
        }
        if let CallEvent::Incoming { from, to, request_uri, headers, sdp, call_id, source } = event {
            let (news, receiver) = mpsc::channel(NEWS);
            if self.is_stranger(source.address.ip()) {
                self.endpoint.answer_sparingly(key);
            }
            self.by_id.insert(call_id.clone(), key);
            self.calls.insert(key, news);
            let dialog = IncomingDialog { key, transport: source.transport, offer: sdp, news: receiver };
            let incoming = Incoming {
                called: called_user(&request_uri),
                from: from.uri.to_string(),
                to: to.uri.to_string(),
                source: source.address,
                headers,
                call_id,
                channel: IncomingChannel::Sip(dialog),
            };
            if self.incoming.try_send(incoming).is_err() {
                SipOrder::from(Refusal::Busy).apply(&mut self.endpoint, now(), key);
            }
            return;
        }
        let leaving = match &event {
            CallEvent::Ended(end) => self.calls.remove(&key).map(|news| (Leaving::after(end, news.clone()), news)),
            _ => None,
        };
        if let Some(call) = self.calls.get(&key).or(leaving.as_ref().map(|(_, news)| news)) {
            let _ = call.try_send(SipNews::Event(Box::new(event)));
        }
        if let Some((Some(call), _)) = leaving {
            self.leaving.insert(key, call);
        }
        let known = self.calls.len() + self.leaving.len();
        if self.by_id.len() > 2 * known + 1024 {
            self.by_id.retain(|_, key| self.calls.contains_key(key) || self.leaving.contains_key(key));
        }
    }

    /// Keeps a message for the log of its call; false when no call is known that it is a part of.
    fn trace(&mut self, sent: bool, peer: &Hop, bytes: &[u8]) -> bool {
        let Some(key) = &self.key_of(bytes) else { return false };
        let mut leaving = self.leaving.get_mut(key);
        if let Some(call) = leaving.as_mut().filter(|_| !sent) {
            call.answered |= is_last(bytes);
        }
        let Some(call) = self.calls.get(key).or(leaving.map(|call| &call.news)) else { return false };
        // The log is the first to go when a call does not keep up: events need the room.
        if call.capacity() <= NEWS / 4 {
            return true;
        }
        let direction = if sent { "sent to" } else { "received from" };
        let first = self.local.first();
        let (peer, local) = match peer.transport {
            Transport::Udp => (peer.address.to_string(), self.local.udp.unwrap_or(first)),
            Transport::Tcp => (peer.to_string(), self.local.tcp.unwrap_or(first)),
            Transport::Tls => (peer.to_string(), self.local.tls.unwrap_or(first)),
        };
        let trace = format!("{direction} {peer} at {local}\n{}", mask(bytes));
        let _ = call.try_send(SipNews::Trace(trace));
        true
    }
}

fn call_id(message: &[u8]) -> Option<&str> {
    header(message, &["call-id", "i"])
}

/// True for the answer that ends a dialog which this side wants to end: any to BYE, a refusal of a cancelled INVITE.
/// After one that asks for credentials the request is sent again.
fn is_last(message: &[u8]) -> bool {
    let code =
        message.strip_prefix(b"SIP/2.0 ").and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok());
    let method = header(message, &["cseq"]).and_then(|cseq| cseq.split_whitespace().nth(1));
    match (code, method) {
        (Some(401 | 407), _) => false,
        (Some(200u16..), Some("BYE")) | (Some(300..), Some("INVITE")) => true,
        _ => false,
    }
}

fn header<'m>(message: &'m [u8], names: &[&str]) -> Option<&'m str> {
    message.split(|byte| *byte == b'\n').find_map(|line| {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let (name, value) = line.split_once(':')?;
        let name = name.trim_end();
        names.iter().any(|known| name.eq_ignore_ascii_case(known)).then(|| value.trim())
    })
}

/// Returns the message as text, credentials and media keys (`a=crypto`, RFC 4568) left out. A blank stands before each
/// line, so that no line of the other side can be taken for one of the log's own.
pub fn mask(message: &[u8]) -> String {
    let mut text = String::with_capacity(message.len());
    let mut secret = false;
    for line in String::from_utf8_lossy(message).lines() {
        // A line that begins with a blank goes on with the field before it (RFC 3261 7.3.1).
        if secret && line.starts_with([' ', '\t']) {
            continue;
        }
        let name = line.split(':').next().unwrap_or_default().trim_end();
        secret = name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("proxy-authorization");
        let key = line.to_ascii_lowercase().find("inline:").map(|at| at + "inline:".len());
        text.push(' ');
        match (secret, key) {
            (true, _) => text.extend([name, ": (masked)\n"]),
            (false, Some(key)) => text.extend([&line[..key], "(masked)\n"]),
            (false, None) => text.extend([line, "\n"]),
        }
    }
    text
}

/// Reads a datagram; without a socket none ever comes.
async fn datagram(udp: Option<&UdpSocket>, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    match udp {
        Some(udp) => udp.recv_from(buffer).await,
        None => std::future::pending().await,
    }
}

fn now() -> Time {
    Time(monotonic().0)
}

fn until(at: Time) -> Duration {
    Duration::from_nanos(at.0.saturating_sub(monotonic().0))
}

async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
