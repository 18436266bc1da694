//! Language models for tests: a scripted one, and a chat server that misbehaves on request.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::tasks::Tasks;
use ringer_base::testing::read_request;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};

/// One answer of a scripted model or server.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    status: u16,
    pieces: Vec<String>,
    tools: Vec<(String, String)>,
    delay_ms: u64,
    end: End,
    /// Further header lines of the reply.
    head: String,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum End {
    Whole,
    Cut,
    Stall,
    Raw,
    /// The connection is closed before a head is sent.
    Dropped,
}

impl Reply {
    /// Returns a reply with these pieces of text.
    pub fn says(pieces: &[&str]) -> Reply {
        let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
        Reply { status: 200, pieces, tools: Vec::new(), delay_ms: 0, end: End::Whole, head: String::new() }
    }

    /// Returns a reply with an HTTP status and nothing else.
    pub fn status(status: u16) -> Reply {
        Reply { status, ..Reply::says(&[]) }
    }

    /// Returns a reply with this status and body.
    pub fn refuses(status: u16, body: &str) -> Reply {
        Reply { status, ..Reply::raw(body) }
    }

    /// Returns a reply that closes the connection before anything is said.
    pub fn drops() -> Reply {
        Reply { end: End::Dropped, ..Reply::says(&[]) }
    }

    /// Returns the reply with one more header line, for example `retry-after: 1`.
    pub fn with_header(self, line: &str) -> Reply {
        Reply { head: format!("{}{line}\r\n", self.head), ..self }
    }

    /// Returns a reply with this body as it stands: an event stream, or what a server may send instead.
    pub fn raw(events: &str) -> Reply {
        Reply { end: End::Raw, ..Reply::says(&[events]) }
    }

    /// Returns the reply with a tool call after its text.
    pub fn calls(mut self, name: &str, arguments: &str) -> Reply {
        self.tools.push((name.into(), arguments.into()));
        self
    }

    /// Waits before each piece.
    pub fn with_delay(self, delay_ms: u64) -> Reply {
        Reply { delay_ms, ..self }
    }

    /// Returns the reply that closes the connection after the text.
    pub fn broken_off(self) -> Reply {
        Reply { end: End::Cut, ..self }
    }

    /// Returns the reply that stops after its text and keeps the connection open.
    pub fn stall(self) -> Reply {
        Reply { end: End::Stall, ..self }
    }
}

/// Answers as scripted, one reply a request; afterwards it fails. Keeps what it was asked.
#[derive(Default)]
pub struct ScriptedModel {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<ChatRequest>>,
}

impl ScriptedModel {
    /// Returns a model that gives these replies, one a request.
    pub fn new(replies: Vec<Reply>) -> ScriptedModel {
        ScriptedModel { replies: Mutex::new(replies.into()), asked: Mutex::default() }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.asked.lock().clone()
    }

    async fn play(reply: Option<Reply>, out: mpsc::Sender<ChatPart>) -> Result<(), Failure> {
        let failed = || Failure { code: "language_model_failed", message: "scripted failure".into() };
        let reply = reply.filter(|reply| reply.status == 200).ok_or_else(failed)?;
        for piece in reply.pieces {
            pause(reply.delay_ms).await;
            let _ = out.send(ChatPart::Text(piece)).await;
        }
        match reply.end {
            End::Cut | End::Raw | End::Dropped => return Err(failed()),
            End::Stall => std::future::pending().await,
            End::Whole => {}
        }
        for (name, arguments) in reply.tools {
            let _ = out.send(ChatPart::Tool { name, arguments }).await;
        }
        Ok(())
    }
}

impl LanguageModel for ScriptedModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        self.asked.lock().push(request.clone());
        let reply = self.replies.lock().pop_front();
        Box::pin(ScriptedModel::play(reply, out))
    }

    fn name(&self) -> String {
        "scripted".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

/// Waits for the delay that a reply asks for: slow models are what its tests are about.
async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// A small chat-completions server on a loopback port. Closed when dropped.
pub struct ChatServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _stop: DropGuard,
}

impl ChatServer {
    /// Answers requests in order with `replies`, then with status 503.
    pub async fn start(replies: Vec<Reply>) -> io::Result<ChatServer> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (stop, seen) = (CancellationToken::new(), requests.clone());
        let stopped = stop.clone();
        Tasks::new().spawn("fake chat server", async move {
            let tasks = Tasks::new();
            let mut replies = VecDeque::from(replies);
            while let Some(Ok((socket, _))) = stopped.run_until_cancelled(listener.accept()).await {
                let reply = replies.pop_front().unwrap_or_else(|| Reply::status(503));
                let (seen, stopped) = (seen.clone(), stopped.clone());
                tasks.spawn("fake chat", async move {
                    let _ = stopped.run_until_cancelled(serve(socket, reply, &seen)).await;
                });
            }
        });
        Ok(ChatServer { address, requests, _stop: stop.drop_guard() })
    }

    /// Returns the server's base address for a `ChatConfig`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the requests so far, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

async fn serve(mut socket: TcpStream, reply: Reply, seen: &Mutex<Vec<String>>) -> io::Result<()> {
    let request = read_request(&mut socket).await?;
    seen.lock().push(request);
    if reply.end == End::Dropped {
        return Ok(());
    }
    let head = format!(
        "HTTP/1.1 {} Scripted\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n{}\r\n",
        reply.status, reply.head
    );
    socket.write_all(head.as_bytes()).await?;
    let event = |delta: serde_json::Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    for piece in &reply.pieces {
        pause(reply.delay_ms).await;
        let data = if reply.end == End::Raw { piece.clone() } else { event(json!({"content": piece})) };
        chunk(&mut socket, &data).await?;
    }
    match reply.end {
        End::Cut => return Ok(()),
        End::Stall => std::future::pending().await,
        End::Whole | End::Raw | End::Dropped => {}
    }
    for (index, (name, arguments)) in reply.tools.iter().enumerate() {
        // In two pieces, as real servers do.
        let (head, tail) = arguments.split_at(arguments.len() / 2);
        let first = json!({"index": index, "id": "t", "function": {"name": name, "arguments": head}});
        let second = json!({"index": index, "function": {"arguments": tail}});
        for call in [first, second] {
            chunk(&mut socket, &event(json!({"tool_calls": [call]}))).await?;
        }
    }
    if reply.status == 200 && reply.end == End::Whole {
        chunk(&mut socket, "data: [DONE]\n\n").await?;
    }
    socket.write_all(b"0\r\n\r\n").await
}

async fn chunk(socket: &mut TcpStream, data: &str) -> io::Result<()> {
    socket.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes()).await
}
