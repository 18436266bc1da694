//! Speech servers on loopback sockets: they speak and hear in either form, or fail as they are told to, and note what
//! they see.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{SinkExt, StreamExt, stream};
use parking_lot::Mutex;
use ringer::clock::Clock;
use ringer::provider::remote::{Form, Remote};
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{Synthesizer, whole_speech};
use ringer::tasks::Tasks;
use ringer_media::clip::Clip;
use ringer_media::resample::resample_whole;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response as Accepted};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::pair::a_woman;

/// Samples of a stretch of speech (16 kHz) after which its words are known.
const KNOWN_AFTER: usize = 9600;
/// Bytes of a piece of speech: 100 ms at 24 kHz.
const PIECE: usize = 4800;
/// One piece goes out in this time: twice as fast as it is said.
const EVERY: Duration = Duration::from_millis(50);
/// Time that a slow server takes.
const SLOW: Duration = Duration::from_secs(10);

/// Fault of a server.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No fault at all.
    None,
    /// Each answer takes 10 s.
    Slow,
    /// Every request gets status 500.
    Refuses,
    /// Answers that have no meaning.
    Nonsense,
    /// The connection is cut in the middle of an answer.
    Cuts,
}

/// Event that a server saw, with its time in milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen {
    /// A text to say.
    Text(String),
    /// End of a stretch of speech, with its number of samples.
    Stretch(usize),
    /// A text with the words goes out.
    Known,
    /// The connection ended before the speech did.
    Dropped,
}

/// A speech server. Closed when dropped.
pub(super) struct Server {
    address: SocketAddr,
    form: Form,
    inner: Arc<Inner>,
    _stop: DropGuard,
}

struct Inner {
    fault: Fault,
    /// Words recognised in every stretch of speech.
    words: &'static str,
    /// True if it says its texts again and again.
    endless: bool,
    /// Names of its voices; `None`: it has every voice.
    voices: Option<&'static [&'static str]>,
    /// Voices that it was asked for, in order.
    asked: Mutex<Vec<String>>,
    speech: Arc<EmbeddedSpeech>,
    seen: Mutex<Vec<(i64, Seen)>>,
    tasks: Tasks,
}

impl Server {
    /// Says texts with `speech` and hears `words`.
    pub(super) async fn start(
        form: Form,
        fault: Fault,
        speech: &Arc<EmbeddedSpeech>,
        words: &'static str,
        endless: bool,
    ) -> Server {
        Server::start_with(form, (fault, words, endless), speech, None).await
    }

    /// Says texts with `speech` in these voices alone.
    pub(super) async fn with_voices(
        form: Form,
        speech: &Arc<EmbeddedSpeech>,
        voices: &'static [&'static str],
    ) -> Server {
        Server::start_with(form, (Fault::None, "", false), speech, Some(voices)).await
    }

    async fn start_with(
        form: Form,
        (fault, words, endless): (Fault, &'static str, bool),
        speech: &Arc<EmbeddedSpeech>,
        voices: Option<&'static [&'static str]>,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address = listener.local_addr().expect("it is bound");
        let tasks = Tasks::new();
        let (seen, asked) = (Mutex::default(), Mutex::default());
        let inner = Inner { fault, words, endless, voices, asked, speech: speech.clone(), seen, tasks };
        let (inner, stop) = (Arc::new(inner), CancellationToken::new());
        let (served, stopped) = (inner.clone(), stop.clone());
        Tasks::new().spawn("speech server", async move {
            let serving = async {
                match form {
                    Form::Http => serve_http(listener, served).await,
                    Form::WebSocket => serve_ws(listener, served).await,
                }
            };
            let _ = stopped.run_until_cancelled(serving).await;
        });
        Server { address, form, inner, _stop: stop.drop_guard() }
    }

    /// Returns the settings for reaching the server.
    pub(super) fn remote(&self) -> Remote {
        remote_at(self.form, self.address)
    }

    /// Returns the voices that it was asked for so far, in order.
    pub(super) fn voices(&self) -> Vec<String> {
        self.inner.asked.lock().clone()
    }

    /// Returns the events so far.
    pub(super) fn events(&self) -> Vec<(i64, Seen)> {
        self.inner.seen.lock().clone()
    }
}

/// Returns a server that is not there. No other test gets this port, as it may one that was just closed.
pub(super) fn dead(form: Form) -> Remote {
    remote_at(form, SocketAddr::from(([127, 0, 0, 1], 9)))
}

fn remote_at(form: Form, address: SocketAddr) -> Remote {
    let url = match form {
        Form::Http => format!("http://{address}/v1"),
        Form::WebSocket => format!("ws://{address}/v1"),
    };
    Remote::new(&url, Some("sesame".into()), "m")
}

impl Inner {
    /// Waits as long as a slow server: the product's limits, not the tests, say for how long anybody waits.
    async fn dawdle(&self) {
        if self.fault == Fault::Slow {
            tokio::time::sleep(SLOW).await;
        }
    }

    /// Notes the voice of an order. False: the server has no such voice.
    fn has_voice(&self, order: &Value) -> bool {
        let voice = order["voice"].as_str().unwrap_or_default();
        self.asked.lock().push(voice.to_owned());
        self.voices.is_none_or(|voices| voices.contains(&voice))
    }

    fn note(&self, what: Seen) {
        self.seen.lock().push((Clock::Real.now_ms(), what));
    }

    /// Returns the words of a stretch of speech of `samples` samples.
    fn text_of(&self, samples: usize) -> &'static str {
        if samples < KNOWN_AFTER {
            return "";
        }
        self.note(Seen::Known);
        self.words
    }

    /// Returns the speech of a text, in pieces of bytes; an error is a cut.
    fn say(self: &Arc<Self>, text: String) -> mpsc::Receiver<io::Result<Vec<u8>>> {
        let (out, pieces) = mpsc::channel(1);
        let inner = self.clone();
        self.tasks.spawn("say", async move {
            inner.note(Seen::Text(text.clone()));
            tokio::select! {
                () = inner.send_speech(&text, &out) => {}
                () = out.closed() => inner.note(Seen::Dropped),
            }
        });
        pieces
    }

    async fn send_speech(&self, text: &str, out: &mpsc::Sender<io::Result<Vec<u8>>>) {
        let voice = self.speech.voice(&a_woman()).expect("there is an English voice");
        let pcm = whole_speech(&*self.speech, text, &voice).await.expect("flite is installed");
        let bytes: Vec<u8> = resample_whole(&pcm, 16_000, 24_000).iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut clock = tokio::time::interval(EVERY);
        loop {
            for (at, piece) in bytes.chunks(PIECE).enumerate() {
                clock.tick().await;
                let cut = self.fault == Fault::Cuts && at == 4;
                let piece = if cut { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(piece.to_vec()) };
                if out.send(piece).await.is_err() || cut {
                    return;
                }
            }
            if !self.endless {
                return;
            }
        }
    }
}

// --- HTTP ---

async fn serve_http(listener: TcpListener, inner: Arc<Inner>) {
    let router = Router::new()
        .route("/v1/audio/speech", post(speech))
        .route("/v1/audio/transcriptions", post(transcription))
        .with_state(inner);
    let _ = axum::serve(listener, router).await;
}

async fn speech(State(inner): State<Arc<Inner>>, body: Bytes) -> Response {
    let order: Value = serde_json::from_slice(&body).expect("the order is JSON");
    if let Some(answer) = trouble(&inner).await {
        return answer;
    }
    if !inner.has_voice(&order) {
        return (StatusCode::BAD_REQUEST, "no such voice").into_response();
    }
    let pieces = inner.say(order["input"].as_str().expect("it has a text").to_owned());
    let body = stream::unfold(pieces, |mut pieces| async { Some((pieces.recv().await?, pieces)) });
    ([("content-type", "audio/pcm")], Body::from_stream(body)).into_response()
}

async fn transcription(State(inner): State<Arc<Inner>>, body: Bytes) -> Response {
    let at = body.windows(4).position(|four| four == b"RIFF").expect("the form has a WAV file");
    let clip = Clip::from_wav(&body[at..]).expect("the file is readable");
    inner.note(Seen::Stretch(clip.pcm.len()));
    if let Some(answer) = trouble(&inner).await {
        return answer;
    }
    if inner.fault == Fault::Cuts {
        let half = [Ok(Bytes::from_static(b"{\"text\":\"I c")), Err(io::Error::from(io::ErrorKind::ConnectionReset))];
        return Body::from_stream(stream::iter(half)).into_response();
    }
    json!({ "text": inner.text_of(clip.pcm.len()) }).to_string().into_response()
}

async fn trouble(inner: &Inner) -> Option<Response> {
    match inner.fault {
        Fault::Refuses => Some(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
        Fault::Nonsense => Some(([("content-type", "application/json")], "{nonsense").into_response()),
        Fault::None | Fault::Cuts | Fault::Slow => {
            inner.dawdle().await;
            None
        }
    }
}

// --- WebSocket ---

async fn serve_ws(listener: TcpListener, inner: Arc<Inner>) {
    while let Ok((socket, _)) = listener.accept().await {
        let served = inner.clone();
        inner.tasks.spawn("speech connection", async move {
            // A connection that is cut is what some tests want.
            let _ = connection(socket, served).await;
        });
    }
}

#[expect(clippy::result_large_err, reason = "the handshake's own type")]
async fn connection(socket: TcpStream, inner: Arc<Inner>) -> Option<()> {
    let refuses = inner.fault == Fault::Refuses;
    let shake = |_: &Request, accepted: Accepted| {
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        if refuses { Err(refusal) } else { Ok(accepted) }
    };
    let mut stream = accept_hdr_async(socket, shake).await.ok()?;
    let order = stream.next().await?.ok()?.into_text().ok()?;
    let order: Value = serde_json::from_str(&order).expect("the order is JSON");
    match order["type"].as_str() {
        Some("speak") => ws_speech(stream, &inner, &order).await,
        Some("start") => ws_hearing(stream, &inner).await,
        other => panic!("an order of a kind that is not known: {other:?}"),
    }
}

async fn ws_speech(mut stream: WebSocketStream<TcpStream>, inner: &Arc<Inner>, order: &Value) -> Option<()> {
    inner.dawdle().await;
    if inner.fault == Fault::Nonsense {
        stream.send(Message::text("nonsense")).await.ok()?;
    }
    if !inner.has_voice(order) {
        stream.send(Message::text(json!({ "type": "error", "message": "no such voice" }).to_string())).await.ok()?;
        return Some(());
    }
    let mut pieces = inner.say(order["text"].as_str().expect("it has a text").to_owned());
    loop {
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some(piece) => stream.send(Message::binary(piece.ok()?)).await.ok()?,
                None => break,
            },
            message = stream.next() => { message?.ok()?; }
        }
    }
    stream.send(Message::text(json!({ "type": "done" }).to_string())).await.ok()?;
    while stream.next().await?.is_ok() {}
    Some(())
}

async fn ws_hearing(mut stream: WebSocketStream<TcpStream>, inner: &Inner) -> Option<()> {
    let (mut samples, mut known) = (0, false);
    loop {
        match stream.next().await?.ok()? {
            Message::Binary(audio) => {
                samples += audio.len() / 2;
                match inner.fault {
                    Fault::Nonsense => stream.send(Message::text("nonsense")).await.ok()?,
                    Fault::Cuts if samples >= KNOWN_AFTER => return None,
                    Fault::None if samples >= KNOWN_AFTER && !known => {
                        known = true;
                        let partial = json!({ "type": "partial", "text": inner.text_of(samples) });
                        stream.send(Message::text(partial.to_string())).await.ok()?;
                    }
                    _ => {}
                }
            }
            Message::Text(_) => {
                inner.note(Seen::Stretch(samples));
                inner.dawdle().await;
                let text = json!({ "type": "final", "text": inner.text_of(samples) });
                stream.send(Message::text(text.to_string())).await.ok()?;
                stream.send(Message::text(json!({ "type": "done" }).to_string())).await.ok()?;
            }
            Message::Close(_) => return Some(()),
            _ => {}
        }
    }
}
