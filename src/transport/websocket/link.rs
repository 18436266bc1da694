//! One WebSocket as its task reads and writes it (RFC 6455): messages in order, pings, the closing handshake. It never
//! waits to be written to: what the other side does not take waits in a queue with a limit.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{FutureExt, Sink, Stream};
use ringer_base::clock::monotonic;
use ringer_media::time::Time;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message as Raw};

use super::protocol::Message;

/// Binary messages that may wait for the other side where they are audio: 1 s in frames of 20 ms.
pub const MAX_AUDIO: usize = 50;

/// Messages of all kinds that may wait for the other side.
const MAX_WAITING: usize = 1200;

/// Bytes that are read at once.
const READ_BYTES: usize = 8192;

/// Close code that stands for a close frame without one (RFC 6455 7.4.1).
const NO_CODE: u16 = 1005;

/// Longest reason of a close that is kept, in characters.
const REASON_CHARS: usize = 123;

/// A stream of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The connection below the messages.
pub type Socket = WebSocketStream<Box<dyn Duplex>>;

/// Limits of a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Most bytes of a message.
    pub max_message_bytes: usize,
    /// Distance of pings; zero: there are none.
    pub ping_interval: Duration,
    /// Time without any message or pong after which the connection counts as lost; zero: never.
    pub ping_timeout: Duration,
    /// Most binary messages that wait for the other side; further ones are dropped. `None`: none of them is audio, none
    /// is dropped.
    pub max_audio: Option<usize>,
}

impl Default for LinkLimits {
    fn default() -> LinkLimits {
        LinkLimits {
            max_message_bytes: super::protocol::MAX_MESSAGE_BYTES,
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(60),
            max_audio: Some(MAX_AUDIO),
        }
    }
}

/// Returns the settings of a socket with these limits.
pub fn socket_config(limits: LinkLimits) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(limits.max_message_bytes))
        .max_frame_size(Some(limits.max_message_bytes))
}

/// News of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// A message, with the time of its arrival.
    Message(Time, Message),
    /// The other side closed; without a code of its own it is 1005.
    Closed {
        /// Status code (RFC 6455 7.4).
        code: u16,
        /// Reason in the words of the other side.
        reason: String,
    },
    /// A message is longer than the limit.
    TooBig,
    /// A frame broke RFC 6455; the text says how.
    Broken(String),
    /// The connection is gone; the text says how.
    Lost(String),
}

/// A WebSocket with what waits to be written.
pub struct Link {
    socket: Socket,
    waiting: VecDeque<Raw>,
    /// Binary messages among them.
    audio: usize,
    unsent: u64,
    limits: LinkLimits,
    last_sign: Time,
    last_ping: Time,
    is_closing: bool,
    /// True when nothing that comes can be read any more.
    is_deaf: bool,
    fault: Option<String>,
    is_over: bool,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({} messages wait)", self.waiting.len())
    }
}

impl Link {
    /// Returns a link over a socket whose handshake is over.
    pub fn new(socket: Socket, limits: LinkLimits) -> Link {
        let now = monotonic();
        Link {
            socket,
            waiting: VecDeque::new(),
            audio: 0,
            unsent: 0,
            limits,
            last_sign: now,
            last_ping: now,
            is_closing: false,
            is_deaf: false,
            fault: None,
            is_over: false,
        }
    }

    /// Sends a message as soon as the other side takes it. Audio that does not fit is dropped and counted; a message
    /// of another kind that finds none ends the connection.
    pub fn send(&mut self, message: Message) {
        if self.is_closing || self.is_over {
            return;
        }
        self.write();
        match message {
            Message::Binary(_) if self.limits.max_audio.is_some_and(|most| self.audio >= most) => {
                self.unsent += 1;
                return;
            }
            Message::Binary(bytes) => {
                self.audio += 1;
                self.waiting.push_back(Raw::Binary(bytes.into()));
            }
            Message::Text(text) => self.waiting.push_back(Raw::Text(text.into())),
        }
        if self.waiting.len() > MAX_WAITING {
            self.fault.get_or_insert_with(|| "it does not read what it is sent".to_owned());
        }
        self.write();
    }

    /// Begins the closing handshake behind everything that waits.
    pub fn close(&mut self, code: u16, reason: &str) {
        if !self.is_closing {
            self.is_closing = true;
            let frame = CloseFrame { code: CloseCode::from(code), reason: reason.to_owned().into() };
            self.waiting.push_back(Raw::Close(Some(frame)));
            self.write();
        }
    }

    /// Looks after pings at `now`, and tells of a connection without a sign of life.
    pub fn tick(&mut self, now: Time) {
        let LinkLimits { ping_interval, ping_timeout, .. } = self.limits;
        if !ping_timeout.is_zero() && now.since(self.last_sign) >= ping_timeout {
            let seconds = ping_timeout.as_secs();
            self.fault.get_or_insert_with(|| format!("neither a pong nor a message came within {seconds} s"));
        }
        if !ping_interval.is_zero() && !self.is_closing && now.since(self.last_ping) >= ping_interval {
            self.last_ping = now;
            self.waiting.push_back(Raw::Ping(Default::default()));
            self.write();
        }
    }

    /// Returns the number of binary messages that were dropped because the other side did not read.
    pub fn unsent_count(&self) -> u64 {
        self.unsent
    }

    /// Returns the next news, and writes what waits meanwhile. After the end it waits for ever. Safe to drop and call
    /// again.
    pub async fn next(&mut self) -> LinkNews {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<LinkNews> {
        if self.is_over {
            return Poll::Pending;
        }
        let written = self.poll_write(context);
        if let Some(why) = self.fault.take() {
            return self.end(LinkNews::Lost(why));
        }
        if self.is_deaf {
            return self.poll_rest(context);
        }
        loop {
            let Poll::Ready(read) = Pin::new(&mut self.socket).poll_next(context) else { break };
            self.last_sign = monotonic();
            match read {
                Some(Ok(Raw::Text(text))) => {
                    return Poll::Ready(LinkNews::Message(self.last_sign, Message::Text(text.as_str().to_owned())));
                }
                Some(Ok(Raw::Binary(bytes))) => {
                    return Poll::Ready(LinkNews::Message(self.last_sign, Message::Binary(bytes.into())));
                }
                Some(Ok(Raw::Close(frame))) => {
                    let (code, reason) = frame.map_or((NO_CODE, String::new()), |frame| {
                        (frame.code.into(), frame.reason.as_str().to_owned())
                    });
                    let reason = reason.chars().take(REASON_CHARS).map(|c| if c.is_control() { ' ' } else { c });
                    // The answer to the close is written by the next polls of the socket.
                    let _ = Pin::new(&mut self.socket).poll_flush(context);
                    return self.end(LinkNews::Closed { code, reason: reason.collect() });
                }
                Some(Ok(Raw::Ping(_) | Raw::Pong(_) | Raw::Frame(_))) => {}
                Some(Err(error)) => return self.end(news_of(error)),
                None => return self.end(LinkNews::Lost("it closed the connection".to_owned())),
            }
        }
        if let Poll::Ready(Err(error)) = written {
            return self.end(news_of(error));
        }
        Poll::Pending
    }

    fn end(&mut self, news: LinkNews) -> Poll<LinkNews> {
        // After these the close of this side is still to be sent.
        self.is_deaf = matches!(news, LinkNews::TooBig | LinkNews::Broken(_));
        self.is_over = !self.is_deaf;
        Poll::Ready(news)
    }

    /// Reads and drops what comes until the other side closes: a connection that is given up with bytes unread loses
    /// what was sent.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<LinkNews> {
        loop {
            let mut bytes = [0; READ_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            let Poll::Ready(read) = Pin::new(self.socket.get_mut()).poll_read(context, &mut buffer) else {
                return Poll::Pending;
            };
            if read.is_err() || buffer.filled().is_empty() {
                return self.end(LinkNews::Lost("it closed the connection".to_owned()));
            }
        }
    }

    /// Writes what the other side takes at once.
    fn write(&mut self) {
        if let Some(Err(error)) = poll_fn(|context| self.poll_write(context)).now_or_never()
            && let LinkNews::Lost(why) = news_of(error)
        {
            self.fault.get_or_insert(why);
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            match Pin::new(&mut self.socket).poll_ready(context) {
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
            let Some(message) = self.waiting.pop_front() else { break };
            self.audio -= usize::from(matches!(message, Raw::Binary(_)));
            if let Err(error) = Pin::new(&mut self.socket).start_send(message) {
                return Poll::Ready(Err(error));
            }
        }
        Pin::new(&mut self.socket).poll_flush(context)
    }
}

/// Returns the news of an error of the socket.
fn news_of(error: Error) -> LinkNews {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => LinkNews::TooBig,
        Error::Protocol(error) => match error.to_string() {
            why if why.contains("without closing handshake") => {
                LinkNews::Lost("it closed the connection without a close frame".to_owned())
            }
            why => LinkNews::Broken(why),
        },
        Error::Utf8(_) => LinkNews::Broken("a text message is no UTF-8".to_owned()),
        Error::Io(error) => LinkNews::Lost(error.to_string()),
        Error::ConnectionClosed | Error::AlreadyClosed => LinkNews::Lost("it closed the connection".to_owned()),
        other => LinkNews::Lost(other.to_string()),
    }
}
