//! Connections: accepted, given time limits, and ended when the server stops. It knows no route and reads no request.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ringer_base::tasks::Tasks;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::client_limits::{CameFrom, ConnectionLimits, Connections};
use crate::http_errors::Worded;

/// Time to wait when there is no file handle for another connection.
const PAUSE: Duration = Duration::from_millis(200);

/// Time for a client to read that it is refused.
const FAREWELL: Duration = Duration::from_secs(1);
/// Refusals that are told at the same time; further connections are closed.
const REFUSALS: usize = 64;

/// Time limits of the parts of a request. An endless answer (server-sent events) ends by none of them while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Limit for the head of a request, on a connection that was just opened or has waited for another request.
    pub head: Duration,
    /// Limit for the body after its head.
    pub body: Duration,
    /// Limit for the body on routes that take a file.
    pub upload: Duration,
    /// Limit from a request to the head of its answer.
    pub answer: Duration,
    /// Limit for a client that takes no byte of an answer.
    pub write: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            head: Duration::from_secs(30),
            body: Duration::from_secs(60),
            upload: Duration::from_secs(900),
            answer: Duration::from_secs(600),
            write: Duration::from_secs(60),
        }
    }
}

/// Answer to a connection beyond the limits, before its request is read.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
    content-length: 33\r\nconnection: close\r\n\r\n{\"detail\":\"Too many connections\"}";

/// Accepts connections until `stopping` is cancelled; returns when the last of them has ended.
///
/// # Errors
/// When nothing can be accepted from this listener at all. What is only so for now is waited for.
pub async fn accept(
    listener: TcpListener,
    router: Router,
    patience: Patience,
    limits: ConnectionLimits,
    stopping: CancellationToken,
) -> io::Result<()> {
    let (connections, open) = (Tasks::new(), Connections::new(limits));
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let served = loop {
        let accepted = tokio::select! {
            () = stopping.cancelled() => break Ok(()),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let Some(permit) = open.enter(from.ip()) else {
                    if let Ok(place) = refusals.clone().try_acquire_owned() {
                        connections.spawn("refusal", async move {
                            refuse(stream).await;
                            drop(place);
                        });
                    }
                    continue;
                };
                let router = router.clone().layer(Extension(CameFrom(from)));
                let serving = connection(stream, router, patience, stopping.clone());
                connections.spawn("connection", async move {
                    serving.await;
                    drop(permit);
                });
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => break Err(error),
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                // No file descriptor or memory is left. Trying at once would only spin, and no event announces a free
                // one.
                tokio::time::sleep(PAUSE).await;
            }
        }
    };
    drop(listener);
    connections.stop().await;
    served
}

/// Refuses a connection. What the client has sent is read for a moment: it would not see the refusal otherwise.
async fn refuse(mut stream: TcpStream) {
    let refusing = async {
        stream.write_all(REFUSAL).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    let _ = timeout(FAREWELL, refusing).await;
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(stream: TcpStream, router: Router, patience: Patience, stopping: CancellationToken) {
    let io = TokioIo::new(Impatient::new(Worded::new(stream), patience.write));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .serve_connection(io, TowerToHyperService::new(router))
        .with_upgrades();
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopping.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// A stream that fails when the far side takes no byte for a while.
struct Impatient<S> {
    stream: S,
    limit: Duration,
    /// Set while something waits to be written.
    late: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    fn new(stream: S, limit: Duration) -> Impatient<S> {
        Impatient { stream, limit, late: None }
    }

    fn limit_wait<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.late = None;
            return polled;
        }
        let limit = self.limit;
        // The client's silence causes no event except that this much time has passed.
        let late = self.late.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        late.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limit_wait(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.limit_wait(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.limit_wait(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.limit_wait(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::Impatient;

    #[tokio::test]
    async fn who_takes_no_byte_is_given_up() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = Impatient::new(near, Duration::from_millis(20));
        near.write_all(&[1; 64]).await.expect("there is space");
        // After a piece was taken in time, the next one has the whole limit again.
        let mut taken = [0; 64];
        let (written, read) = tokio::join!(near.write_all(&[2; 64]), far.read_exact(&mut taken));
        written.expect("it was taken");
        read.expect("it was sent");
        let error = near.write_all(&[3; 64]).await.expect_err("nobody takes it");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
