//! Stream connections of SIP, TCP and TLS: those that come in, those that go out, and which message goes by which.
//!
//! A connection is used for everything that goes to its place: address, transport and name of the certificate. What
//! cannot be sent, or is not read, never holds up the others: each connection is a task with a queue of its own.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ringer_base::config::SipListen;
use ringer_base::tasks::Tasks;
use ringer_sip::framing::Opened;
use ringer_sip::{ConnectionId, Hop, Transport};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use super::connection::Patience;
use super::connection::{Stream, Task, connect, prepare};
use super::line::{Event, HostCount, HostCounts, Line, NotConnected};
pub use super::line::{MAX_NEWCOMERS, StreamNews};

use super::tls::{Tls, TlsSettings, explain};

/// Connections at a time, in and out.
pub const MAX_CONNECTIONS: usize = 1000;
/// Connections at a time that the other sides have opened; the others are kept for those that this side opens.
const MAX_ACCEPTED: usize = 800;
/// Connections at a time that one host has opened (of IPv6: its network of 64 bits).
const MAX_OF_HOST: usize = 500;
/// Messages that may wait to be written to one connection.
const QUEUE_MESSAGES: usize = 4096;
/// Bytes that may wait to be written to one connection.
const QUEUE_BYTES: usize = 1024 * 1024;
/// News of connections that may wait; then nothing more is read from them.
const EVENTS: usize = 1024;
/// Wait after a connection could not be accepted, for example for want of files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Keeps a connection open that has nothing to carry for now.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "it is counted")] Arc<()>);

type Place = (Transport, SocketAddr, Option<Arc<str>>);

/// All stream connections of one endpoint. Dropped, it ends them after what waits was written.
pub struct Streams {
    local: SipListen,
    lines: HashMap<ConnectionId, Line>,
    by_place: HashMap<Place, ConnectionId>,
    ready: VecDeque<StreamNews>,
    events: mpsc::Receiver<Event>,
    shop: Shop,
    tls: Tls,
}

/// Parts that listeners and connections share.
#[derive(Clone)]
struct Shop {
    events: mpsc::Sender<Event>,
    next: Arc<AtomicU64>,
    /// Connections at a time.
    count: Arc<AtomicUsize>,
    /// Connections that the other sides have opened.
    accepted: Arc<AtomicUsize>,
    by_host: HostCounts,
    /// Connections from which no message came yet.
    newcomers: HostCounts,
    patience: Patience,
    tasks: Tasks,
}

/// A place among those that there are at most; given back when it is dropped.
struct ConnectionPermit(Arc<AtomicUsize>);

impl ConnectionPermit {
    fn take(count: &Arc<AtomicUsize>, most: usize) -> Option<ConnectionPermit> {
        let permit = ConnectionPermit(count.clone());
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(permit)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// Binds the listeners of TCP and TLS that `listen` names. Where it has none, connections are still made.
    ///
    /// # Errors
    /// The bind error, with the address; a TLS listener without a certificate.
    pub async fn start(listen: SipListen, tls: &TlsSettings, patience: Patience, tasks: &Tasks) -> io::Result<Streams> {
        let tls = Tls::new(tls);
        let (sender, events) = mpsc::channel(EVENTS);
        let shop = Shop {
            events: sender,
            next: Arc::new(AtomicU64::new(1)),
            count: Arc::default(),
            accepted: Arc::default(),
            by_host: Arc::default(),
            newcomers: Arc::default(),
            patience,
            tasks: tasks.clone(),
        };
        let mut local = listen;
        if let Some(address) = &mut local.tcp {
            let listener = bind("tcp", address).await?;
            tasks.spawn_until_stop("SIP over TCP", shop.clone().accept(listener, None));
        }
        if let Some(address) = &mut local.tls {
            let acceptor = tls.acceptor().ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("tls {address}: there is no certificate"))
            })?;
            let listener = bind("tls", address).await?;
            tasks.spawn_until_stop("SIP over TLS", shop.clone().accept(listener, Some(acceptor)));
        }
        let (lines, by_place, ready) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Ok(Streams { local, lines, by_place, ready, events, shop, tls })
    }

    /// Returns the addresses as they were bound.
    pub fn local(&self) -> SipListen {
        self.local
    }

    /// Sends a message by the connection of `to`, else by one to its address, which is made where there is none.
    /// Returns the connection, and true where it was made for this message; `None` where none can be made, of which
    /// [`Streams::next`] tells.
    pub fn send(&mut self, to: &Hop, bytes: Vec<u8>) -> Option<(ConnectionId, bool)> {
        let place = (to.transport, to.address, to.server_name.clone());
        let own =
            to.connection.filter(|own| self.lines.get(own).is_some_and(|line| line.hop.transport == to.transport));
        let known = own.or_else(|| self.by_place.get(&place).copied());
        let (connection, is_new) = match known {
            Some(known) => (known, false),
            None => (self.open(to, place)?, true),
        };
        let line = self.lines.get(&connection)?;
        let before = line.queued.fetch_add(bytes.len(), Ordering::Relaxed);
        if before + bytes.len() > QUEUE_BYTES || line.queue.try_send(bytes).is_err() {
            line.cut.cancel();
        }
        Some((connection, is_new))
    }

    /// Keeps a connection open; `None` where it is gone.
    pub fn hold(&self, connection: ConnectionId) -> Option<Hold> {
        self.lines.get(&connection).map(|line| Hold(line.held.clone()))
    }

    /// Returns the next that happens. Nothing is lost where it is not waited for to its end.
    pub async fn next(&mut self) -> StreamNews {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return news;
            }
            let Some(event) = self.events.recv().await else { return std::future::pending().await };
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::News(news) => self.ready.push_back(news),
            Event::Accepted(line) => {
                if let Some(connection) = line.hop.connection {
                    self.lines.insert(connection, line);
                }
            }
            Event::Ended { connection, end } => {
                let Some(line) = self.lines.remove(&connection) else { return };
                let hop = line.hop;
                let place = (hop.transport, hop.address, hop.server_name.clone());
                if self.by_place.get(&place) == Some(&connection) {
                    self.by_place.remove(&place);
                }
                self.ready.push_back(match end {
                    Ok(why) => StreamNews::Lost { connection, hop, why },
                    Err(why) => StreamNews::Unreachable { to: Hop { connection: None, ..hop }, why },
                });
            }
        }
    }

    fn open(&mut self, to: &Hop, place: Place) -> Option<ConnectionId> {
        let Some(permit) = self.shop.permit() else {
            let why = format!("{to} cannot be connected to: there are {MAX_CONNECTIONS} connections already");
            let why = NotConnected { why, is_own: true };
            self.ready.push_back(StreamNews::Unreachable { to: to.clone(), why });
            return None;
        };
        let (line, mut task) = self.shop.line(Hop { connection: None, ..to.clone() }, Opened::Here, None);
        let connection = line.hop.connection?;
        let (tls, cut, events) = (self.tls.clone(), line.cut.clone(), self.shop.events.clone());
        let listen = self.local;
        let local = listen.all().map(|(_, address)| address).next();
        let stop = self.shop.tasks.clone();
        self.shop.tasks.spawn("SIP connection", async move {
            let _permit = permit;
            let made = tokio::select! {
                made = connect(&task.hop, local, &tls, task.patience.connect) => made,
                () = cut.cancelled() => Err("more was to be sent than may wait for a connection".to_owned().into()),
                () = stop.stopping() => Err("the engine stops".to_owned().into()),
            };
            let end = match made {
                Ok(stream) => Ok(run(&mut task, stream, &cut).await),
                Err(why) => Err(why),
            };
            let _ = events.send(Event::Ended { connection, end }).await;
        });
        self.lines.insert(connection, line);
        self.by_place.insert(place, connection);
        Some(connection)
    }
}

async fn bind(name: &str, address: &mut SocketAddr) -> io::Result<TcpListener> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{name} {address}: {error}"));
    let listener = TcpListener::bind(*address).await.map_err(named)?;
    *address = listener.local_addr()?;
    Ok(listener)
}

/// Runs a connection until it ends by itself or is cut.
async fn run(task: &mut Task, stream: Box<dyn Stream>, cut: &CancellationToken) -> String {
    tokio::select! {
        why = task.run(stream) => why,
        () = cut.cancelled() => "the other side does not take what is sent".to_owned(),
    }
}

impl Shop {
    fn permit(&self) -> Option<ConnectionPermit> {
        ConnectionPermit::take(&self.count, MAX_CONNECTIONS)
    }

    /// Returns the places of a connection that `host` has opened; `None`: there are too many.
    fn place(&self, host: IpAddr) -> Option<(ConnectionPermit, ConnectionPermit, HostCount)> {
        let accepted = ConnectionPermit::take(&self.accepted, MAX_ACCEPTED)?;
        Some((accepted, self.permit()?, HostCount::new(&self.by_host, host, MAX_OF_HOST)?))
    }

    /// Returns both ends of a new connection.
    fn line(&self, hop: Hop, opened: Opened, newcomer: Option<HostCount>) -> (Line, Task) {
        let connection = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed));
        let hop = Hop { connection: Some(connection), ..hop };
        let (sender, queue) = mpsc::channel(QUEUE_MESSAGES);
        let (queued, held) = (Arc::<AtomicUsize>::default(), Arc::new(()));
        let task = Task {
            hop: hop.clone(),
            opened,
            queue,
            queued: queued.clone(),
            held: held.clone(),
            events: self.events.clone(),
            patience: self.patience,
            newcomer,
        };
        (Line { hop, queue: sender, queued, held, cut: CancellationToken::new() }, task)
    }

    async fn accept(self, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
        loop {
            let (socket, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a SIP connection could not be accepted");
                    sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            let newcomer = HostCount::new(&self.newcomers, peer.ip(), MAX_NEWCOMERS);
            let (Some(places), Some(newcomer)) = (self.place(peer.ip()), newcomer) else {
                tracing::debug!(%peer, "a SIP connection is refused: there are too many");
                continue;
            };
            let (shop, acceptor) = (self.clone(), acceptor.clone());
            self.tasks.spawn("SIP connection", async move {
                let _places = places;
                shop.serve(socket, peer, newcomer, acceptor).await;
            });
        }
    }

    async fn serve(self, socket: TcpStream, peer: SocketAddr, newcomer: HostCount, acceptor: Option<TlsAcceptor>) {
        if let Err(error) = prepare(&socket) {
            return tracing::debug!(%peer, %error, "a SIP connection ended at once");
        }
        let transport = if acceptor.is_some() { Transport::Tls } else { Transport::Tcp };
        let stream: Box<dyn Stream> = match acceptor {
            None => Box::new(socket),
            Some(acceptor) => {
                let shaken = tokio::select! {
                    shaken = timeout(self.patience.handshake, acceptor.accept(socket)) => shaken,
                    () = self.tasks.stopping() => return,
                };
                match shaken {
                    Ok(Ok(stream)) => Box::new(stream),
                    Ok(Err(error)) => {
                        return tracing::debug!("{}", explain(&error, &peer.to_string()));
                    }
                    Err(_) => return tracing::debug!(%peer, "a TLS handshake timed out"),
                }
            }
        };
        let (line, mut task) = self.line(Hop::new(transport, peer), Opened::There, Some(newcomer));
        let Some(connection) = line.hop.connection else { return };
        let (events, cut) = (self.events.clone(), line.cut.clone());
        if events.send(Event::Accepted(line)).await.is_err() {
            return;
        }
        let why = run(&mut task, stream, &cut).await;
        tracing::debug!(%peer, why, "a SIP connection has ended");
        let _ = events.send(Event::Ended { connection, end: Ok(why) }).await;
    }
}

#[cfg(test)]
mod tests;
