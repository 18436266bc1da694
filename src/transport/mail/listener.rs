//! The SMTP listener: sockets, TLS, time limits and memory of the sessions. What a line means is told by [`Session`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::tasks::Tasks;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::smtp::{Command, LINE_BYTES, Session, SessionLimits};
use super::sources::{SourceLimits, Sources};
use super::{Arrival, Postbox, Stored};
use crate::sip::tls::Identity;

/// Time limit of a session.
const SESSION: Duration = Duration::from_secs(300);
/// Time in which an answer that ends a session must be taken.
const FAREWELL: Duration = Duration::from_secs(5);
/// Sessions at once, of all sources and of one; failures of a source after which it is not heard for a while.
const LIMITS: SourceLimits = SourceLimits { sessions: 50, of_source: 10, failures: 20 };
/// Megabytes (2^20 bytes) of mails that are read at the same time.
const READING_MB: usize = 256;
/// Bytes of a mail that are read at once.
const PIECE: u64 = 64 * 1024;
/// Time after which the failures of all sources are forgotten.
const FORGIVE_EVERY: Duration = Duration::from_secs(600);
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Settings of a listener.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Name by which it greets.
    pub host: String,
    /// Certificate for STARTTLS; `None`: it is not offered.
    pub identity: Option<Identity>,
}

/// A listener that is bound.
pub struct SmtpListener {
    listener: TcpListener,
    settings: ListenerSettings,
}

/// Values that the sessions share.
struct Hall {
    host: String,
    acceptor: Option<TlsAcceptor>,
    sources: Mutex<Sources>,
    memory: Arc<Semaphore>,
    postbox: Arc<dyn Postbox>,
}

/// Reason for which lines are no longer read from a stream.
enum Next {
    Close,
    Secure(Session),
}

/// A mail that was read to its end.
enum Data {
    Whole(Vec<u8>, Vec<OwnedSemaphorePermit>),
    TooLarge,
    NoMemory,
}

impl SmtpListener {
    /// Binds the address of the settings.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(settings: ListenerSettings) -> io::Result<SmtpListener> {
        let listener = TcpListener::bind(settings.listen).await?;
        Ok(SmtpListener { listener, settings })
    }

    /// Returns the address that it listens on.
    ///
    /// # Errors
    /// The socket does not tell it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Takes mails until `stopping`.
    pub async fn serve(self, postbox: Arc<dyn Postbox>, tasks: Tasks, stopping: CancellationToken) {
        let hall = Arc::new(Hall {
            host: self.settings.host.clone(),
            acceptor: self.settings.identity.as_ref().map(Identity::acceptor),
            sources: Mutex::new(Sources::new(LIMITS)),
            memory: Arc::new(Semaphore::new(READING_MB)),
            postbox,
        });
        let mut forgive = interval(FORGIVE_EVERY);
        loop {
            let accepted = tokio::select! {
                () = stopping.cancelled() => return,
                _ = forgive.tick() => {
                    hall.sources.lock().forgive_all();
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "mail connection not accepted");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let (hall, stopping) = (hall.clone(), stopping.clone());
            tasks.spawn("mail session", async move {
                tokio::select! {
                    () = stopping.cancelled() => {}
                    () = hall.receive(stream, address.ip()) => {}
                }
            });
        }
    }
}

impl Hall {
    async fn receive(&self, stream: TcpStream, source: IpAddr) {
        if !self.sources.lock().enter(source) {
            return say_farewell(stream, "421 4.7.0 too many connections or failures, try again later").await;
        }
        let place = Place { hall: self, source };
        let talked = timeout(SESSION, self.talk(stream, source)).await;
        if let Ok(Err(error)) = talked {
            tracing::debug!(%error, "mail session broke off");
        }
        drop(place);
    }

    /// Holds a session, in the clear and then perhaps encrypted.
    async fn talk(&self, stream: TcpStream, source: IpAddr) -> io::Result<()> {
        let session = Session::new(&self.host, SessionLimits::default(), self.acceptor.is_some());
        let mut stream = BufReader::new(stream);
        send(&mut stream, &session.greeting()).await?;
        let Next::Secure(mut session) = self.read_lines(&mut stream, session, source).await? else { return Ok(()) };
        let Some(acceptor) = &self.acceptor else { return Ok(()) };
        // The buffer goes with what came in the clear behind STARTTLS.
        let secured = acceptor.accept(stream.into_inner()).await?;
        session.begin_secured();
        let mut secured = BufReader::new(secured);
        self.read_lines(&mut secured, session, source).await.map(drop)
    }

    async fn read_lines<S: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        stream: &mut BufReader<S>,
        mut session: Session,
        source: IpAddr,
    ) -> io::Result<Next> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let most = LINE_BYTES as u64;
            if (&mut *stream).take(most).read_until(b'\n', &mut line).await? == 0 {
                return Ok(Next::Close);
            }
            let Some(text) = line.strip_suffix(b"\n") else {
                send(stream, "500 5.5.2 the line is too long").await?;
                return Ok(Next::Close);
            };
            let answer = match session.command(text.strip_suffix(b"\r").unwrap_or(text)) {
                Command::Answer(answer) => answer,
                Command::Recipient(address) => {
                    let is_known = self.postbox.knows(&address).await;
                    session.recipient(address, is_known)
                }
                Command::Data(answer) => {
                    send(stream, &answer).await?;
                    let data = self.read_data(stream).await?;
                    self.store(&mut session, data, source).await.to_owned()
                }
                Command::StartTls(answer) => {
                    send(stream, &answer).await?;
                    return Ok(Next::Secure(session));
                }
                Command::Quit(answer) => {
                    send(stream, &answer).await?;
                    return Ok(Next::Close);
                }
            };
            if answer.starts_with('5') && self.sources.lock().fail(source) {
                send(stream, "421 4.7.0 too many failures").await?;
                return Ok(Next::Close);
            }
            send(stream, &answer).await?;
        }
    }

    /// Reads a mail to the line that ends it (RFC 5321 4.5.2). Only CRLF ends a line, so that no mail is hidden in
    /// another one.
    async fn read_data<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: &mut BufReader<S>) -> io::Result<Data> {
        let most = SessionLimits::default().mail_bytes;
        let (mut raw, mut permits, mut line) = (Vec::new(), Vec::new(), Vec::new());
        let (mut size, mut is_full, mut begins, mut has_cr) = (0usize, false, true, false);
        loop {
            line.clear();
            if (&mut *stream).take(PIECE).read_until(b'\n', &mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if begins && line == b".\r\n" {
                break;
            }
            let piece = if begins && line[0] == b'.' { &line[1..] } else { &line[..] };
            size += piece.len();
            while !is_full && size <= most && size > permits.len() << 20 {
                match self.memory.clone().try_acquire_owned() {
                    Ok(permit) => permits.push(permit),
                    Err(_) => is_full = true,
                }
            }
            if size > most || is_full {
                raw = Vec::new();
                permits.clear();
            } else {
                raw.extend_from_slice(piece);
            }
            begins = line.ends_with(b"\r\n") || (has_cr && line == b"\n");
            has_cr = line.ends_with(b"\r");
        }
        Ok(match () {
            () if size > most => Data::TooLarge,
            () if is_full => Data::NoMemory,
            () => Data::Whole(raw, permits),
        })
    }

    /// Stores a mail and returns the answer to it.
    async fn store(&self, session: &mut Session, data: Data, source: IpAddr) -> String {
        let (envelope_from, recipients) = session.take_mail();
        let (raw, permits) = match data {
            Data::Whole(raw, permits) => (raw, permits),
            Data::TooLarge => return "552 5.3.4 the mail is too large".to_owned(),
            Data::NoMemory => return "452 4.3.1 too much mail at once, try again later".to_owned(),
        };
        let arrival = Arrival { source: Some(source), envelope_from, recipients, raw };
        let stored = self.postbox.store(arrival).await;
        drop(permits);
        match stored {
            Stored::Kept => {
                self.sources.lock().forgive(source);
                "250 2.0.0 kept".to_owned()
            }
            Stored::Refused(why) => format!("554 5.6.0 {why}"),
            Stored::Later => "451 4.3.0 try again later".to_owned(),
        }
    }
}

/// A session's place, given back at its end.
struct Place<'a> {
    hall: &'a Hall,
    source: IpAddr,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.hall.sources.lock().leave(self.source);
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, answer: &str) -> io::Result<()> {
    stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
    stream.flush().await
}

async fn say_farewell(mut stream: TcpStream, answer: &str) {
    let said = async {
        send(&mut stream, answer).await?;
        stream.shutdown().await
    };
    let _ = timeout(FAREWELL, said).await;
}

#[cfg(test)]
mod tests;
