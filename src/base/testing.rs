//! Servers on loopback for tests.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::tasks::Tasks;

/// A web server on a loopback port whose whole answer, head and body, depends on the path alone. Closed when dropped.
pub struct WebServer {
    /// Address on which it listens.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _stop: DropGuard,
}

impl WebServer {
    /// Answers every request with `answer(path)` and closes the connection.
    pub async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> io::Result<WebServer> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (stop, seen) = (CancellationToken::new(), asked.clone());
        let stopped = stop.clone();
        Tasks::new().spawn("fake web server", async move {
            while let Some(Ok((mut socket, _))) = stopped.run_until_cancelled(listener.accept()).await {
                let Ok(request) = read_request(&mut socket).await else { continue };
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let bytes = answer(&path);
                seen.lock().push(path);
                // Who has seen enough closes the other end.
                let _ = socket.write_all(&bytes).await;
            }
        });
        Ok(WebServer { address, asked, _stop: stop.drop_guard() })
    }

    /// Returns a file as an answer.
    pub fn file(bytes: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", bytes.len());
        [head.as_bytes(), bytes].concat()
    }

    /// Returns the paths that were asked for.
    pub fn paths(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Reads one HTTP request, head and body.
///
/// # Errors
/// The connection ended before, or the request is larger than 1 MiB.
pub async fn read_request(socket: &mut TcpStream) -> io::Result<String> {
    const BYTES_MAX: usize = 1 << 20;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = |line: &str| line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok();
            if body.len() >= head.lines().find_map(length).unwrap_or(0) {
                return Ok(text.into_owned());
            }
        }
        let count = socket.read(&mut buffer).await?;
        if count == 0 || bytes.len() > BYTES_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
}
