//! The far side in the protocol of a platform: it takes every connection, speaks and is silent in turn as the sample
//! agent's far side of the preset does, and counts the messages that it receives.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ringer_media::frame::FRAME;
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message as Wire;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::websocket::speech_and_silence;
use super::{Counts, STRETCH, listen, time};
use crate::cli::fail;
use crate::cli::out::Out;
use crate::tasks::Tasks;
use crate::transport::websocket::platform::far::{FarCall, FarSide};
use crate::transport::websocket::{Message, Session, SessionControl, SessionFacts, SessionOutput};

/// The far side, and what was sent and received.
struct Far {
    side: Arc<FarSide>,
    pcm: Vec<i16>,
    sent: AtomicU64,
    received: AtomicU64,
    /// Longest time from a ready session to its first audio, in nanoseconds.
    first_audio_ns: AtomicU64,
}

/// Runs the far side of a preset: prints its address, takes connections until standard input ends, prints its counts.
pub(crate) async fn run(preset: &str) -> ExitCode {
    let Some(side) = FarSide::of(preset) else { return fail(format!("{preset} has no far side")) };
    let (listener, address) = match listen().await {
        Ok(bound) => bound,
        Err(error) => return fail(error),
    };
    let far = Arc::new(Far {
        side: Arc::new(side),
        pcm: speech_and_silence(),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        first_audio_ns: AtomicU64::new(0),
    });
    let (tasks, out) = (Tasks::new(), Out::standard());
    out.line(format_args!("ws://{address}"));
    tasks.spawn_until_stop("answer", answer_all(listener, far.clone(), tasks.clone()));
    let _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    tasks.stop().await;
    let first_audio_ms = far.first_audio_ns.load(Ordering::Relaxed) as f64 / 1e6;
    let counts = Counts {
        sent: far.sent.load(Ordering::Relaxed),
        received: far.received.load(Ordering::Relaxed),
        first_audio_ms: Some(first_audio_ms),
    };
    out.line(serde_json::json!(counts));
    out.verdict(true)
}

async fn answer_all(listener: TcpListener, far: Arc<Far>, tasks: Tasks) {
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        number += 1;
        tasks.spawn_until_stop("far call", serve(stream, far.clone(), number));
    }
}

/// One call of the far side.
struct FarLine {
    far: Arc<Far>,
    session: Session,
    socket: WebSocketStream<TcpStream>,
    /// Time at which the session got ready; `None` before it, and once its first audio has come.
    ready_at: Option<Time>,
}

async fn serve(stream: TcpStream, far: Arc<Far>, number: u64) {
    let _ = stream.set_nodelay(true);
    let Ok(socket) = accept_async(stream).await else { return };
    let call = FarCall::new(far.side.clone(), "load".to_owned(), number.to_string(), Value::Null);
    let facts = SessionFacts::new(number, "ws://127.0.0.1/", Seed(number), time(), 0);
    let mut line = FarLine { session: Session::agent(call.dialect(), facts), far, socket, ready_at: None };
    line.session.on_open(time());
    if !line.drain().await {
        return;
    }
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    // Calls do not speak in step.
    let mut at = number as usize * 37;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                line.speak(at);
                at += 1;
            }
            message = line.socket.next() => match message {
                Some(Ok(message)) => line.receive(message),
                Some(Err(_)) | None => return,
            }
        }
        if !line.drain().await {
            return;
        }
    }
}

impl FarLine {
    /// Sends 20 ms of speech or silence.
    fn speak(&mut self, at: usize) {
        let now = time();
        let frames = self.far.pcm.len() / FRAME;
        match at % frames {
            0 => self.session.control(now, SessionControl::UtteranceStarted),
            STRETCH => self.session.control(now, SessionControl::UtteranceCompleted),
            _ => {}
        }
        let from = at % frames * FRAME;
        self.session.frame(now, &self.far.pcm[from..from + FRAME]);
        self.session.tick(now);
        self.far.sent.fetch_add(1, Ordering::Relaxed);
    }

    fn receive(&mut self, message: Wire) {
        let message = match message {
            Wire::Text(text) => Message::Text(text.to_string()),
            Wire::Binary(bytes) => Message::Binary(bytes.to_vec()),
            _ => return,
        };
        self.far.received.fetch_add(1, Ordering::Relaxed);
        self.session.receive(time(), message);
    }

    /// Carries out what the session asks for; false at its end.
    async fn drain(&mut self) -> bool {
        while let Some(output) = self.session.poll() {
            let message = match output {
                SessionOutput::Send(Message::Text(text)) => Wire::text(text),
                SessionOutput::Send(Message::Binary(bytes)) => Wire::binary(bytes),
                SessionOutput::Opened => {
                    self.ready_at = Some(time());
                    continue;
                }
                SessionOutput::Frames(_) => {
                    let waited = self.ready_at.take().map_or(0, |since| time().since(since).as_nanos() as u64);
                    self.far.first_audio_ns.fetch_max(waited, Ordering::Relaxed);
                    continue;
                }
                SessionOutput::Close { .. } | SessionOutput::Drop => return false,
                _ => continue,
            };
            if self.socket.send(message).await.is_err() {
                return false;
            }
        }
        true
    }
}
