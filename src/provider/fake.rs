//! Providers for tests: a synthesizer that hums, a recognizer with given words, a scripted language model, a chat
//! server that misbehaves on request, and a web server.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::Sample;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    ChatPart, ChatRequest, Failure, Job, LanguageModel, Recognized, RecognizedWord, Recognizer, RecognizerFeed, Spoken,
    SpokenIn, Status, Synthesizer, Voice, VoiceWanted,
};
use crate::tasks::Tasks;

/// Hums a tone of 300 ms for each word.
#[derive(Clone, Debug)]
pub struct FakeSynthesizer {
    /// Frequency of the tone.
    pub tone_hz: f32,
    /// Failure of every synthesis; `None`: all succeed.
    pub failure: Option<Failure>,
}

impl Default for FakeSynthesizer {
    fn default() -> Self {
        FakeSynthesizer { tone_hz: 440.0, failure: None }
    }
}

impl FakeSynthesizer {
    /// Samples of one word.
    pub const WORD: usize = 4800;
}

impl Synthesizer for FakeSynthesizer {
    fn voice(&self, _wanted: &VoiceWanted) -> Result<Voice, Failure> {
        Ok(Voice { id: "fake:hum".into(), rate_wpm: 200.0, ..Voice::default() })
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        _voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        // A sine of this amplitude has -26 dBov.
        const AMPLITUDE: f32 = 2322.0;
        let step = std::f32::consts::TAU * self.tone_hz / 16_000.0;
        let samples = text.split_whitespace().count() * FakeSynthesizer::WORD;
        let hum = (0..samples).map(|at| (AMPLITUDE * (step * at as f32).sin()).round() as i16).collect();
        let result = self.failure.clone().map_or(Ok(hum), Err);
        Box::pin(async move {
            let _ = out.send(Spoken::Audio(result?)).await;
            Ok(())
        })
    }

    fn status(&self) -> Status {
        self.failure.as_ref().map_or(Status::Ok, |failure| Status::Down(failure.message.clone()))
    }
}

/// Hears the given texts, one a stream, in order; afterwards nothing.
#[derive(Default)]
pub struct FakeRecognizer {
    texts: Mutex<VecDeque<String>>,
    partial_after: Sample,
}

impl FakeRecognizer {
    /// Returns a recognizer. The running text comes once a stream has `partial_after` samples, the final text at its
    /// end.
    pub fn new(texts: &[&str], partial_after: Sample) -> FakeRecognizer {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        FakeRecognizer { texts: Mutex::new(texts), partial_after }
    }
}

struct FakeFeed {
    text: String,
    heard: Sample,
    partial_after: Sample,
    news: Option<mpsc::Sender<Recognized>>,
}

impl Recognizer for FakeRecognizer {
    fn open(
        &self,
        _language: SpokenIn<'_>,
        _keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let (news, receiver) = mpsc::channel(4);
        let text = self.texts.lock().pop_front().unwrap_or_default();
        (Box::new(FakeFeed { text, heard: 0, partial_after: self.partial_after, news: Some(news) }), receiver)
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

impl RecognizerFeed for FakeFeed {
    fn push(&mut self, pcm: &[i16]) {
        let before = self.heard;
        self.heard += pcm.len() as Sample;
        if let Some(news) = &self.news
            && before < self.partial_after
            && self.heard >= self.partial_after
        {
            let _ = news.try_send(Recognized::Partial(self.text.clone()));
        }
    }

    fn finish(&mut self) {
        let Some(news) = self.news.take() else { return };
        let texts: Vec<&str> = self.text.split_whitespace().collect();
        let count = texts.len().max(1) as Sample;
        let at = |index: usize| self.heard * index as Sample / count;
        let word = |(index, text): (usize, &&str)| RecognizedWord {
            text: (*text).to_owned(),
            from: at(index),
            to: at(index + 1),
            confidence: Some(1.0),
        };
        let words = texts.iter().enumerate().map(word).collect();
        let (text, confidence, detected_language) = (self.text.clone(), Some(1.0), DetectedLanguage::Unknown);
        let _ = news.try_send(Recognized::Final { text, words, confidence, detected_language });
    }
}

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

async fn read_request(socket: &mut TcpStream) -> io::Result<String> {
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
