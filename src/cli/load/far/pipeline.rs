//! The far side over WebRTC: it answers every offer, sends prepared speech and silence in turn as packets of Opus, and
//! counts the packets that it receives.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ringer_media::clip::Clip;
use ringer_media::codec::{Codec, Decoder, Encoder};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::{Counts, STRETCH, listen};
use crate::agent::pipeline::{AnsweredCall, Offers, router};
use crate::cli::fail;
use crate::cli::out::Out;
use crate::provider::canned::SPEECH;
use crate::provider::guard::Guard;
use crate::tasks::Tasks;
use crate::transport::webrtc::{MediaPeer, PeerSettings, PeerState};

/// Most calls at one time: as many as `--calls` takes.
const MOST: usize = 100_000;

/// Bytes of the longest packet of Opus.
const MOST_BYTES: usize = 400;

/// Ticks of the RTP clock in 20 ms.
const FRAME_TICKS: u32 = 960;

/// Time within which a connection comes about.
const CONNECT: Duration = Duration::from_secs(15);

/// Packets that are sent in turn, and what was sent and received.
struct Far {
    packets: Vec<Vec<u8>>,
    sent: AtomicU64,
    received: AtomicU64,
}

/// Is the far side: prints its address, answers offers until standard input ends, prints its counts.
pub(crate) async fn run() -> ExitCode {
    let (listener, address) = match listen().await {
        Ok(bound) => bound,
        Err(error) => return fail(error),
    };
    let (tasks, out) = (Tasks::new(), Out::standard());
    let settings = PeerSettings::new(Guard::by(|_| true), tasks.clone());
    let (offers, calls) = Offers::new(PeerSettings { bind: vec![address.ip()], ..settings }, MOST);
    let app = router(offers);
    tasks.spawn_until_stop("offers", async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!("offers are not answered any more: {error}");
        }
    });
    let far = Arc::new(Far { packets: packets(), sent: AtomicU64::new(0), received: AtomicU64::new(0) });
    out.line(format_args!("pipeline:http://{address}"));
    tasks.spawn_until_stop("answer", answer_all(calls, far.clone(), tasks.clone()));
    let _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    tasks.stop().await;
    let (sent, received) = (far.sent.load(Ordering::Relaxed), far.received.load(Ordering::Relaxed));
    let counts = Counts { sent, received, ..Counts::default() };
    out.line(serde_json::json!(counts));
    out.verdict(true)
}

/// Returns 3 s of speech and 3 s of silence as payloads of 20 ms.
pub(crate) fn packets() -> Vec<Vec<u8>> {
    let mut narrow = vec![0; STRETCH * Codec::Pcmu.samples_per_frame()];
    let speech: Vec<u8> = SPEECH.iter().copied().cycle().take(narrow.len()).collect();
    Decoder::new(Codec::Pcmu).decode(&speech, &mut narrow);
    let frame = Codec::Opus.samples_per_frame();
    let mut pcm = Clip { rate_hz: 8000, pcm: narrow }.to_16k();
    pcm.resize(2 * STRETCH * frame, 0);
    let mut encoder = Encoder::new(Codec::Opus);
    let payload = |pcm: &[i16]| {
        let mut bytes = vec![0; MOST_BYTES];
        let len = encoder.encode(pcm, &mut bytes);
        bytes.truncate(len);
        bytes
    };
    pcm.chunks_exact(frame).map(payload).collect()
}

async fn answer_all(mut calls: mpsc::Receiver<AnsweredCall>, far: Arc<Far>, tasks: Tasks) {
    let mut number = 0;
    while let Some(call) = calls.recv().await {
        number += 1;
        tasks.spawn_until_stop("far call", serve(call, far.clone(), number));
    }
}

async fn serve(call: AnsweredCall, far: Arc<Far>, number: usize) {
    let AnsweredCall { peer, mut streams, .. } = call;
    if peer.wait_connected(CONNECT).await.is_err() {
        return;
    }
    let Some(media) = peer.media() else { return };
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    // Calls do not speak in step.
    let (mut at, mut sent) = (number * 37, 0u32);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let payload = &far.packets[at % far.packets.len()];
                let packet = rtp(media.payload_type, sent, peer.ssrc(), payload);
                if peer.send_packet(&packet).await.is_err() {
                    return;
                }
                (at, sent) = (at + 1, sent.wrapping_add(1));
                far.sent.fetch_add(1, Ordering::Relaxed);
            }
            arrived = streams.packets.recv() => match arrived {
                Some(arrived) => { far.received.fetch_add(u64::from(!arrived.is_report), Ordering::Relaxed); }
                None => return,
            },
            () = wait_until_over(&mut streams.state) => return,
            Some(_) = streams.channels.recv() => {}
        }
    }
}

async fn wait_until_over(state: &mut watch::Receiver<PeerState>) {
    let _ = state.wait_for(|state| matches!(state, PeerState::Failed | PeerState::Closed)).await;
}

/// Returns an RTP packet (RFC 3550 5.1) of this place in its stream.
pub(crate) fn rtp(payload_type: u8, at: u32, source: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, payload_type];
    packet.extend((at as u16).to_be_bytes());
    packet.extend(at.wrapping_mul(FRAME_TICKS).to_be_bytes());
    packet.extend(source.to_be_bytes());
    packet.extend(payload);
    packet
}
