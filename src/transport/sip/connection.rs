//! One stream connection: what is read is cut into messages, what waits is written, and what takes too long ends it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ringer_base::clock::monotonic;
use ringer_sip::framing::{Frame, Framer, Opened, PING, PONG};
use ringer_sip::{Hop, Time, Transport};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::line::{Event, HostCount, NotConnected, StreamNews};
use super::tls::{Tls, explain, reason};

/// Longest time for which sent bytes may stay unacknowledged (RFC 5482): below Timer B, so that a request can go once
/// more.
const USER_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// Keep-alives that may wait to be written; more are left out.
const KEEP_ALIVES: usize = 4;
/// Largest number of [`PING_SHARES`] shares that are added to the distance of pings. It differs from connection to
/// connection.
const PING_SPREAD: u32 = 6;
/// A share is 1 s of 25.
const PING_SHARES: u32 = 25;

/// Times after which a connection is given up.
#[derive(Copy, Clone, Debug)]
pub struct Patience {
    /// Time limit for a usable connection, TLS included; below Timer B (RFC 3261 17.1.1.2).
    pub connect: Duration,
    /// TLS handshake of the other side.
    pub handshake: Duration,
    /// Rest of a message that has begun.
    pub message: Duration,
    /// The other side takes a message that is written.
    pub write: Duration,
    /// Time after which an unused connection that no call needs is closed.
    pub idle: Duration,
    /// First message of a connection that the other side has opened.
    pub first: Duration,
    /// Distance of pings on connections that this side has opened (RFC 5626 4.4.1).
    pub ping: Duration,
    /// Answer to a ping, where the other side has ever answered one.
    pub pong: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        let seconds = Duration::from_secs;
        Patience {
            connect: seconds(5),
            handshake: seconds(5),
            message: seconds(10),
            write: seconds(10),
            idle: seconds(600),
            first: seconds(30),
            ping: seconds(25),
            pong: seconds(10),
        }
    }
}

/// Ends of a connection that its task holds.
pub(super) struct Task {
    pub hop: Hop,
    pub opened: Opened,
    pub queue: mpsc::Receiver<Vec<u8>>,
    /// Bytes in the queue.
    pub queued: Arc<AtomicUsize>,
    /// The table has one, this task another; more are of calls.
    pub held: Arc<()>,
    pub events: mpsc::Sender<Event>,
    pub patience: Patience,
    /// Count of its host's connections without a message; released by the first message.
    pub newcomer: Option<HostCount>,
}

/// A stream of either kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Connects to `hop` from `local`, by TLS where it says so.
///
/// # Errors
/// The reason.
pub(super) async fn connect(
    hop: &Hop,
    local: Option<SocketAddr>,
    tls: &Tls,
    limit: Duration,
) -> Result<Box<dyn Stream>, NotConnected> {
    let place = hop.address;
    let connecting = async {
        let socket = open(place, local).await.map_err(|error| NotConnected::of(hop, &error))?;
        if hop.transport != Transport::Tls {
            return Ok(Box::new(socket) as Box<dyn Stream>);
        }
        let (connector, name) = tls.connector(hop)?;
        let peer = hop.server_name.as_deref().map_or(place.to_string(), |name| format!("{name} ({place})"));
        let stream = connector.connect(name, socket).await.map_err(|error| explain(&error, &peer))?;
        Ok(Box::new(stream) as Box<dyn Stream>)
    };
    let late =
        |_| NotConnected::from(format!("{hop} cannot be connected to: nothing came back in {} s", limit.as_secs_f64()));
    timeout(limit, connecting).await.map_err(late)?
}

async fn open(to: SocketAddr, local: Option<SocketAddr>) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(local) = local.filter(|local| local.is_ipv4() == to.is_ipv4() && !local.ip().is_unspecified()) {
        socket.bind(SocketAddr::new(local.ip(), 0))?;
    }
    let stream = socket.connect(to).await?;
    prepare(&stream)?;
    Ok(stream)
}

/// Sets what every connection needs: nothing waits to be sent, and a peer that is gone is noticed.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(USER_TIMEOUT))
}

fn now() -> Time {
    Time(monotonic().0)
}

/// State that reading, writing and waiting share.
#[derive(Default)]
struct Shared {
    /// Latest bytes that keep the connection, on the monotonic clock.
    used_ns: AtomicU64,
    /// Pings that were answered.
    pongs: AtomicU64,
    /// True if the other side has answered a ping.
    is_answering: AtomicBool,
    /// True if a message has come.
    has_message: AtomicBool,
}

impl Task {
    /// Moves messages until the connection ends; returns the reason, for a person.
    pub(super) async fn run(&mut self, stream: Box<dyn Stream>) -> String {
        let (reader, writer) = tokio::io::split(stream);
        let (keep_alive, keep_alives) = mpsc::channel(KEEP_ALIVES);
        let shared = Shared { used_ns: now().0.into(), pongs: 0.into(), ..Shared::default() };
        let Task { hop, opened, queue, queued, held, events, patience, newcomer } = self;
        let link = Link { hop, opened: *opened, held, events, patience, shared: &shared };
        tokio::select! {
            why = link.read_messages(reader, &keep_alive, newcomer) => why,
            why = link.write(writer, queue, queued, keep_alives) => why,
            why = link.wait_for_first() => why,
            why = link.ping(&keep_alive) => why,
            why = link.rest() => why,
        }
    }
}

/// The parts of a connection at work, each until it ends.
struct Link<'a> {
    hop: &'a Hop,
    opened: Opened,
    held: &'a Arc<()>,
    events: &'a mpsc::Sender<Event>,
    patience: &'a Patience,
    shared: &'a Shared,
}

impl Link<'_> {
    async fn read_messages(
        &self,
        mut reader: ReadHalf<Box<dyn Stream>>,
        keep_alive: &mpsc::Sender<&'static [u8]>,
        newcomer: &mut Option<HostCount>,
    ) -> String {
        let (mut framer, mut buffer) = (Framer::new(self.opened), vec![0; READ_BYTES]);
        loop {
            let read = match framer.waiting_since() {
                None => reader.read(&mut buffer).await,
                Some(since) => {
                    let gone = Duration::from_nanos(now().0.saturating_sub(since.0));
                    match timeout(self.patience.message.saturating_sub(gone), reader.read(&mut buffer)).await {
                        Ok(read) => read,
                        Err(_) => {
                            return format!("the rest of a message did not come in {:?}", self.patience.message);
                        }
                    }
                }
            };
            let count = match read {
                Ok(0) if framer.waiting_since().is_some() => return "it was closed within a message".to_owned(),
                Ok(0) => return "the other side closed it".to_owned(),
                Ok(count) => count,
                Err(error) => return reason(&error),
            };
            framer.receive(now(), &buffer[..count]);
            if self.opened == Opened::There {
                self.touch();
            }
            loop {
                match framer.poll() {
                    Ok(None) => break,
                    Ok(Some(Frame::Message(bytes))) => {
                        self.touch();
                        self.shared.has_message.store(true, Ordering::Relaxed);
                        *newcomer = None;
                        let news = StreamNews::Message { from: self.hop.clone(), bytes };
                        if self.events.send(Event::News(news)).await.is_err() {
                            return "the engine stops".to_owned();
                        }
                    }
                    Ok(Some(Frame::Ping)) => drop(keep_alive.try_send(PONG)),
                    Ok(Some(Frame::Pong)) => drop(self.shared.pongs.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => return error.to_string(),
                }
            }
        }
    }

    /// Ends a connection of the other side from which no message comes in time, whatever else does.
    async fn wait_for_first(&self) -> String {
        if self.opened == Opened::There {
            sleep(self.patience.first).await;
            if !self.shared.has_message.load(Ordering::Relaxed) {
                return format!("no message came in {:?}", self.patience.first);
            }
        }
        std::future::pending().await
    }

    async fn write(
        &self,
        mut writer: WriteHalf<Box<dyn Stream>>,
        queue: &mut mpsc::Receiver<Vec<u8>>,
        queued: &AtomicUsize,
        mut keep_alives: mpsc::Receiver<&'static [u8]>,
    ) -> String {
        loop {
            let (message, mark);
            let bytes: &[u8] = tokio::select! {
                next = queue.recv() => {
                    let Some(next) = next else {
                        let _ = timeout(self.patience.write, writer.shutdown()).await;
                        return "this side closed it".to_owned();
                    };
                    queued.fetch_sub(next.len(), Ordering::Relaxed);
                    message = next;
                    self.touch();
                    &message
                }
                Some(next) = keep_alives.recv() => {
                    mark = next;
                    mark
                }
            };
            let writing = async {
                writer.write_all(bytes).await?;
                writer.flush().await
            };
            match timeout(self.patience.write, writing).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return format!("the other side accepted no data for {:?}", self.patience.write),
            }
        }
    }

    /// Keeps a connection of this side open through NAT; ends where one that answered pings answers no more.
    async fn ping(&self, keep_alive: &mpsc::Sender<&'static [u8]>) -> String {
        if self.opened == Opened::There {
            return std::future::pending().await;
        }
        let number = self.hop.connection.map_or(0, |connection| connection.0);
        let spread = self.patience.ping / PING_SHARES * (number % u64::from(PING_SPREAD)) as u32;
        loop {
            sleep(self.patience.ping + spread).await;
            let before = self.shared.pongs.load(Ordering::Relaxed);
            let _ = keep_alive.try_send(PING);
            if self.shared.is_answering.load(Ordering::Relaxed) {
                sleep(self.patience.pong).await;
                if self.shared.pongs.load(Ordering::Relaxed) == before {
                    return "the other side answers no pings any more".to_owned();
                }
            }
            // Read here and not when it came: the first answer is to the first ping.
            self.shared.is_answering.fetch_or(self.shared.pongs.load(Ordering::Relaxed) > 0, Ordering::Relaxed);
        }
    }

    /// Ends when nothing has gone over the connection for long, and no call holds it.
    async fn rest(&self) -> String {
        loop {
            let used = self.shared.used_ns.load(Ordering::Relaxed);
            let gone = Duration::from_nanos(now().0.saturating_sub(used));
            match self.patience.idle.checked_sub(gone).filter(|left| !left.is_zero()) {
                Some(left) => sleep(left).await,
                None if Arc::strong_count(self.held) > 2 => self.touch(),
                None => return "nothing came or went for long".to_owned(),
            }
        }
    }

    fn touch(&self) {
        self.shared.used_ns.store(now().0, Ordering::Relaxed);
    }
}
