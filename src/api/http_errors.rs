//! Malformed HTTP is rejected before routing, with an empty body; this adds the error body and request id that every
//! refusal has.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ringer_base::clock;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::response::JSON;

/// A stream on which refusals of the HTTP layer get a body.
pub(crate) struct Worded<S> {
    stream: S,
    /// Replacement of an answer: its bytes, the number of them written, and the length of the original.
    instead: Option<(Vec<u8>, usize, usize)>,
}

impl<S> Worded<S> {
    /// Wraps a stream of answers.
    pub(crate) fn new(stream: S) -> Worded<S> {
        Worded { stream, instead: None }
    }
}

/// Returns the same answer with a body if it is one of the HTTP layer itself; answers of routes begin with other
/// fields.
fn with_words(answer: &[u8]) -> Option<Vec<u8>> {
    let head = std::str::from_utf8(answer.strip_suffix(b"\r\n\r\n")?).ok()?;
    let (status, fields) = head.split_once("\r\n")?;
    let (_, reason) = status.strip_prefix("HTTP/1.1 ")?.split_once(' ')?;
    let date = fields.strip_prefix("connection: close\r\ncontent-length: 0\r\n").filter(|rest| !rest.contains('\n'))?;
    let (id, body) = (clock::new_id(), json!({ "detail": reason }).to_string());
    let fields = format!("content-type: {JSON}\r\nx-request-id: {id}\r\ncontent-length: {}", body.len());
    Some(format!("{status}\r\n{fields}\r\nconnection: close\r\n{date}\r\n\r\n{body}").into_bytes())
}

impl<S: AsyncRead + Unpin> AsyncRead for Worded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Worded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Worded { stream, instead } = &mut *self;
        if instead.is_none() {
            *instead = with_words(bytes).map(|words| (words, 0, bytes.len()));
        }
        let Some((words, written, length)) = instead else { return Pin::new(stream).poll_write(cx, bytes) };
        let length = *length;
        while *written < words.len() {
            match ready!(Pin::new(&mut *stream).poll_write(cx, &words[*written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => *written += more,
            }
        }
        *instead = None;
        Poll::Ready(Ok(length))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match bytes {
            // An answer without a body is written in one piece.
            [one] => self.poll_write(cx, one),
            _ => Pin::new(&mut self.stream).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
