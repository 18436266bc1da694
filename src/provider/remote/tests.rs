//! Against servers on loopback sockets that answer well, late, wrongly, in half or not at all.

mod kinds;
mod probes;
mod recognizers;
mod synthesizers;

use std::time::Duration;

use futures_util::SinkExt;
use ringer_base::tasks::Tasks;
use ringer_media::pcm;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;

/// Time limit of one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// A limit that a test waits for.
const SHORT: Duration = Duration::from_millis(200);

/// A server on a loopback port: `serve` has each connection. Closed when dropped.
struct Server {
    address: String,
    _stop: DropGuard,
}

impl Server {
    async fn start<R>(serve: impl Fn(TcpStream) -> R + Send + Sync + 'static) -> Server
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (stop, tasks) = (CancellationToken::new(), Tasks::new());
        let stopped = stop.clone();
        Tasks::new().spawn("fake speech server", async move {
            while let Some(Ok((socket, _))) = stopped.run_until_cancelled(listener.accept()).await {
                let (stopped, served) = (stopped.clone(), serve(socket));
                tasks.spawn("fake speech connection", async move {
                    let _ = stopped.run_until_cancelled(served).await;
                });
            }
        });
        Server { address, _stop: stop.drop_guard() }
    }

    fn http(&self) -> Remote {
        Remote { answer: SHORT, ..Remote::new(&format!("http://{}/v1", self.address), Some("sesame".into()), "m1") }
    }

    fn ws(&self) -> Remote {
        Remote { answer: SHORT, ..Remote::new(&format!("ws://{}/x", self.address), Some("sesame".into()), "m1") }
    }
}

/// Returns a request, head and body.
async fn request(socket: &mut TcpStream) -> (String, Vec<u8>) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            if bytes.len() - at - 4 >= length.unwrap_or(0) {
                return (head, bytes.split_off(at + 4));
            }
        }
        let count = socket.read(&mut buffer).await.expect("it is readable");
        assert!(count > 0, "the request is whole");
        bytes.extend_from_slice(&buffer[..count]);
    }
}

async fn head(socket: &mut TcpStream, status: u16, kind: &str) {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.expect("somebody reads");
}

async fn chunk(socket: &mut TcpStream, bytes: &[u8]) {
    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let _ = socket.write_all(&chunk).await;
}

/// Waits until the other side is gone.
async fn wait_until_gone(socket: &mut TcpStream) {
    let mut buffer = [0; 64];
    while socket.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

fn tone(hz: f32, rate_hz: f32, samples: usize) -> Vec<i16> {
    let at = |n: usize| (6000.0 * (std::f32::consts::TAU * hz * n as f32 / rate_hz).sin()) as i16;
    (0..samples).map(at).collect()
}

async fn accept(socket: TcpStream) -> WebSocketStream<TcpStream> {
    accept_async(socket).await.expect("the client speaks WebSocket")
}

async fn tell(stream: &mut WebSocketStream<TcpStream>, message: Value) {
    let _ = stream.send(Message::text(message.to_string())).await;
}
