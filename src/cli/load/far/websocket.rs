//! The far side over WebSockets: it takes every connection, sends prepared speech and silence in turn as frames of the
//! engine's own protocol, and counts the frames that it receives.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ringer_media::clip::Clip;
use ringer_media::codec::{Codec, Decoder};
use ringer_media::pcm;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::{Counts, STRETCH, listen};
use crate::cli::fail;
use crate::cli::out::Out;
use crate::provider::canned::SPEECH;
use crate::tasks::Tasks;

/// Samples of 20 ms at 8 kHz.
const NARROW_FRAME: usize = 160;

/// Frames that are sent in turn, and what was sent and received.
struct Far {
    frames: Vec<Bytes>,
    sent: AtomicU64,
    received: AtomicU64,
}

/// Is the far side: prints its address, takes connections until standard input ends, prints its counts.
pub(crate) async fn run() -> ExitCode {
    let (listener, address) = match listen().await {
        Ok(bound) => bound,
        Err(error) => return fail(error),
    };
    let far = Arc::new(Far { frames: frames(), sent: AtomicU64::new(0), received: AtomicU64::new(0) });
    let (tasks, out) = (Tasks::new(), Out::standard());
    out.line(format_args!("ws://{address}/"));
    tasks.spawn_until_stop("answer", answer_all(listener, far.clone(), tasks.clone()));
    let _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    tasks.stop().await;
    let (sent, received) = (far.sent.load(Ordering::Relaxed), far.received.load(Ordering::Relaxed));
    let counts = Counts { sent, received, ..Counts::default() };
    out.line(serde_json::json!(counts));
    out.verdict(true)
}

/// Returns 3 s of speech and 3 s of silence at 16 kHz.
pub(super) fn speech_and_silence() -> Vec<i16> {
    let mut narrow = vec![0; STRETCH * NARROW_FRAME];
    let speech: Vec<u8> = SPEECH.iter().copied().cycle().take(narrow.len()).collect();
    Decoder::new(Codec::Pcmu).decode(&speech, &mut narrow);
    let mut pcm = Clip { rate_hz: 8000, pcm: narrow }.to_16k();
    pcm.resize(4 * STRETCH * NARROW_FRAME, 0);
    pcm
}

/// Returns them as frames of 20 ms.
fn frames() -> Vec<Bytes> {
    let bytes = |frame: &[i16]| pcm::to_bytes(frame).into();
    speech_and_silence().chunks_exact(2 * NARROW_FRAME).map(bytes).collect()
}

async fn answer_all(listener: TcpListener, far: Arc<Far>, tasks: Tasks) {
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        number += 1;
        tasks.spawn_until_stop("far call", serve(stream, far.clone(), number));
    }
}

async fn serve(stream: TcpStream, far: Arc<Far>, number: usize) {
    let _ = stream.set_nodelay(true);
    let Ok(mut socket) = accept_async(stream).await else { return };
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    // Calls do not speak in step.
    let mut at = number * 37;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let frame = far.frames[at % far.frames.len()].clone();
                if socket.send(Message::Binary(frame)).await.is_err() {
                    return;
                }
                at += 1;
                far.sent.fetch_add(1, Ordering::Relaxed);
            }
            message = socket.next() => match message {
                Some(Ok(Message::Binary(_))) => { far.received.fetch_add(1, Ordering::Relaxed); }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    }
}
