//! The far side of a load test, in a process of its own so that its cost is not the engine's: it answers every call,
//! streams prepared speech and silence in turn, counts what it receives and listens to none of it.

pub(crate) mod pipeline;
pub(crate) mod platform;
pub(crate) mod room;
pub(crate) mod websocket;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use ringer_media::codec::Codec;
use ringer_media::time::Time;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::cli::fail;
use crate::cli::out::Out;
use crate::clock::monotonic;
use crate::engine::pace::{MEDIA_PRIORITY, prefer_timing, sleep_until};
use crate::provider::canned::SPEECH;
use crate::provider::guard::Guard;
use crate::tasks::Tasks;
use crate::transport::incoming::{Incoming, IncomingChannel};
use crate::transport::peer::{PortOutput, Refusal};
use crate::transport::room::access::RoomKey;
use crate::transport::sip::driver::SipSocket;
use crate::transport::sip::order::SipAction;
use crate::transport::sip::port::SipPort;
use crate::transport::sip::sdp;
use crate::transport::sip::tls::TlsSettings;
use crate::transport::sockets::{Batch, MediaPorts, MediaSockets};

/// Mu-law bytes of 20 ms.
const FRAME_BYTES: usize = 160;
/// Frames of speech, then as many of silence: 3 s.
const STRETCH: usize = 150;
/// Phases of a tick, 1 ms apart.
const SLOTS: usize = 20;
/// Orders that may wait for the media thread.
const ORDERS: usize = 4096;
/// Ports of its media; one pair serves all calls.
const PORTS: std::ops::RangeInclusive<u16> = 60_000..=60_999;

/// RTP packets or messages that the far side counted.
#[derive(Copy, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// RTP packets or messages of audio sent.
    pub sent: u64,
    /// RTP packets or messages of audio received.
    pub received: u64,
    /// Longest time from a ready session to its first audio, in milliseconds; `None` where no session gets ready.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_audio_ms: Option<f64>,
}

/// Channel over which the far side is reached.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// SIP, and RTP in the clear.
    Sip,
    /// WebSockets, in the engine's own protocol.
    WebSocket,
    /// WebSockets, in the protocol of a platform by the name of its preset.
    Platform(&'static str),
    /// Offers of WebRTC, as voice pipelines take them.
    Pipeline,
    /// Rooms of a room server, which it is told one by one.
    Room,
}

/// A far side that runs beside this process; it ends with it.
pub(crate) struct FarSide {
    /// Address at which it answers.
    pub uri: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl FarSide {
    /// Starts it for calls over this channel.
    ///
    /// # Errors
    /// The program cannot be started again, or says no address.
    pub(crate) async fn start(over: Over) -> Result<FarSide, String> {
        let flags: &[&str] = match over {
            Over::Sip | Over::Room => &[],
            Over::WebSocket => &["--websocket"],
            Over::Platform(preset) => &["--platform", preset],
            Over::Pipeline => &["--pipeline"],
        };
        let far = FarSide::start_with(&Vec::from_iter(flags.iter().map(OsStr::new)), &[]).await?;
        let uri = if over == Over::Sip { format!("sip:far@{}", far.uri) } else { far.uri.clone() };
        Ok(FarSide { uri, ..far })
    }

    /// Starts it for rooms of the server at `to`; it joins those that are written to its input.
    ///
    /// # Errors
    /// As [`FarSide::start`].
    pub(crate) async fn start_in_rooms(to: &str, key: &RoomKey, roots: Option<&Path>) -> Result<FarSide, String> {
        let secrets = [("RINGER_ROOM_KEY", key.key.as_str()), ("RINGER_ROOM_SECRET", key.secret.expose())];
        let roots = roots.into_iter().flat_map(|file| ["--tls-root-file".as_ref(), file.as_os_str()]);
        FarSide::start_with(&Vec::from_iter([OsStr::new(to)].into_iter().chain(roots)), &secrets).await
    }

    async fn start_with(arguments: &[&OsStr], secrets: &[(&str, &str)]) -> Result<FarSide, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["load", "--far-side"])
            .args(arguments)
            .envs(secrets.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("the far side cannot be started: {error}"))?;
        let stdout = child.stdout.take().ok_or("the far side has no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let uri = lines.next_line().await.ok().flatten().ok_or("the far side did not start")?;
        Ok(FarSide { uri, child, lines })
    }

    /// Returns its input, which then is no longer closed by [`FarSide::stop`].
    pub(crate) fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Ends it; gives what it counted.
    pub(crate) async fn stop(mut self) -> Option<Counts> {
        drop(self.child.stdin.take());
        let counts = self.lines.next_line().await.ok().flatten()?;
        let _ = self.child.wait().await;
        serde_json::from_str(&counts).ok()
    }
}

enum Order {
    Join { number: u64, to: SocketAddr },
    Leave { number: u64 },
}

/// Is the far side: prints its address, answers until standard input ends, prints its counts.
pub(crate) async fn run() -> ExitCode {
    let tasks = Tasks::new();
    let started =
        SipSocket::start(SocketAddr::from(([127, 0, 0, 1], 0)).into(), &TlsSettings::default(), None, &tasks).await;
    let (sip, incoming) = match started {
        Ok(started) => started,
        Err(error) => return fail(error),
    };
    let mut sockets = match MediaPorts::new(PORTS).bind(sip.local().ip()) {
        Ok(sockets) => sockets,
        Err(error) => return fail(error),
    };
    let (orders, waiting) = sync_channel(ORDERS);
    let media = Arc::new(Media::default());
    let (shared, port) = (media.clone(), sockets.port());
    let thread = std::thread::Builder::new().name("far".into()).spawn(move || shared.run(&mut sockets, &waiting));
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => return fail(error),
    };
    let out = Out::standard();
    out.line(sip.local());
    tasks.spawn_until_stop("answer", answer_all(sip, incoming, orders, port, tasks.clone()));
    let _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    media.stop.store(true, Ordering::Relaxed);
    let _ = thread.join();
    tasks.stop().await;
    let (sent, received) = (media.sent.load(Ordering::Relaxed), media.received.load(Ordering::Relaxed));
    let counts = Counts { sent, received, ..Counts::default() };
    out.line(serde_json::json!(counts));
    out.verdict(true)
}

async fn answer_all(
    socket: SipSocket,
    mut incoming: tokio::sync::mpsc::Receiver<Incoming>,
    orders: SyncSender<Order>,
    port: u16,
    tasks: Tasks,
) {
    let supported = sdp::offer(&[Codec::Pcmu], socket.local().ip(), port, 1);
    let mut number = 0;
    while let Some(Incoming { channel: IncomingChannel::Sip(mut dialog), call_id, .. }) = incoming.recv().await {
        let port = SipPort::incoming(call_id, dialog.offer.as_deref(), &supported, Guard::by(|_| true));
        let Ok(mut port) = port else {
            socket.order(dialog.key, Refusal::NoMedia.into()).await;
            continue;
        };
        number += 1;
        port.answer();
        while let Some(output) = port.poll() {
            match output {
                PortOutput::Act(SipAction::Send(order)) => socket.order(dialog.key, order).await,
                PortOutput::Act(SipAction::Media(plan)) => {
                    let _ = orders.try_send(Order::Join { number, to: plan.rtp });
                }
                // It is called, and sent nowhere else.
                _ => {}
            }
        }
        let orders = orders.clone();
        tasks.spawn_until_stop("far call", async move {
            dialog.given_up().await;
            let _ = orders.try_send(Order::Leave { number });
        });
    }
}

/// State shared by the media thread and the rest.
#[derive(Default)]
struct Media {
    stop: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
}

/// A call that is streamed to.
/// Returns a socket of this machine that takes connections, and its address.
async fn listen() -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Returns the time now, from which every far side measures.
fn time() -> Time {
    monotonic()
}

struct Stream {
    number: u64,
    to: SocketAddr,
    at: usize,
}

impl Media {
    fn run(&self, sockets: &mut MediaSockets, orders: &Receiver<Order>) {
        prefer_timing(MEDIA_PRIORITY);
        let mut slots: [Vec<Stream>; SLOTS] = std::array::from_fn(|_| Vec::new());
        let mut batch = Batch::default();
        let start = time();
        let mut step = 0u32;
        while !self.stop.load(Ordering::Relaxed) {
            sleep_until(start + Duration::from_millis(1) * step);
            for order in orders.try_iter() {
                obey(&mut slots, order);
            }
            for stream in &mut slots[step as usize % SLOTS] {
                sockets.send_rtp_to(stream.to, &stream.packet());
                self.sent.fetch_add(1, Ordering::Relaxed);
            }
            loop {
                let got = sockets.receive_rtp(&mut batch).count() as u64;
                self.received.fetch_add(got, Ordering::Relaxed);
                if !batch.is_full() {
                    break;
                }
            }
            step += 1;
        }
    }
}

fn obey(slots: &mut [Vec<Stream>; SLOTS], order: Order) {
    match order {
        Order::Join { number, to } => {
            // Calls do not speak in step.
            let at = number as usize * 37 % (2 * STRETCH);
            slots[number as usize % SLOTS].push(Stream { number, to, at });
        }
        Order::Leave { number } => slots[number as usize % SLOTS].retain(|stream| stream.number != number),
    }
}

impl Stream {
    /// Returns the next RTP packet (RFC 3550 5.1): payload type 0.
    fn packet(&mut self) -> [u8; 12 + FRAME_BYTES] {
        let mut packet = [0xff; 12 + FRAME_BYTES];
        packet[..2].copy_from_slice(&[0x80, 0]);
        packet[2..4].copy_from_slice(&(self.at as u16).to_be_bytes());
        packet[4..8].copy_from_slice(&(self.at as u32).wrapping_mul(FRAME_BYTES as u32).to_be_bytes());
        packet[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
        let (stretch, frame) = (self.at / STRETCH, self.at % STRETCH);
        if stretch % 2 == 0 {
            let from = (stretch / 2 * STRETCH + frame) * FRAME_BYTES % SPEECH.len();
            packet[12..].copy_from_slice(&SPEECH[from..from + FRAME_BYTES]);
        }
        self.at += 1;
        packet
    }
}
