//! The far side in media rooms: it joins each room that it is told as the agent of the room, sends prepared speech and
//! silence in turn as packets of Opus, and counts the packets that it receives.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ringer_media::call::MediaChannel;
use ringer_media::packet_rings::packet_rings;
use ringer_media::time::Time;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::Counts;
use super::pipeline::{packets, rtp};
use crate::cli::call::{RoomFlags, Rooms};
use crate::cli::fail;
use crate::cli::out::Out;
use crate::cli::tls::TlsFlags;
use crate::provider::guard::Guard;
use crate::tasks::Tasks;
use crate::transport::news::NewsSender;
use crate::transport::room::{Patience, RoomCall, RoomTarget};
use crate::transport::webrtc::{Bell, PeerSettings, Pump};
use crate::transport::websocket::dial::Dialer;

/// News of a room that may wait; nobody reads them.
const NEWS: usize = 32;

/// Names of rooms that wait to be joined.
const WAITING: usize = 16;

/// Packets that are sent in turn, and what was sent and received.
struct Far {
    packets: Vec<Vec<u8>>,
    settings: PeerSettings,
    dialer: Dialer,
    sent: AtomicU64,
    received: AtomicU64,
}

/// Is the far side in rooms of `server`: says that it is ready, joins every room whose name is a line of standard input
/// until that ends, prints its counts.
pub(crate) async fn run(flags: &RoomFlags, tls: &TlsFlags, server: &str) -> ExitCode {
    let tls = tls.settings();
    let (rooms, tls) = match tls.and_then(|tls| Ok((flags.rooms(server, &tls.roots)?, tls))) {
        Ok(ready) => ready,
        Err(why) => return fail(why),
    };
    let (tasks, out) = (Tasks::new(), Out::standard());
    let far = Arc::new(Far {
        packets: packets(),
        settings: PeerSettings::new(Guard::by(|_| true), tasks.clone()),
        dialer: Dialer::new(&tls),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
    });
    out.line(format_args!("room:{server}"));
    join_all(&rooms, &far, &tasks).await;
    tasks.stop().await;
    let (sent, received) = (far.sent.load(Ordering::Relaxed), far.received.load(Ordering::Relaxed));
    let counts = Counts { sent, received, ..Counts::default() };
    out.line(serde_json::json!(counts));
    out.verdict(true)
}

async fn join_all(rooms: &Rooms, far: &Arc<Far>, tasks: &Tasks) {
    let (tell, mut names) = mpsc::channel(WAITING);
    let reading = tokio::task::spawn_blocking(move || {
        let lines = std::io::stdin().lines().map_while(Result::ok);
        let _ = lines.map(|name| tell.blocking_send(name)).take_while(Result::is_ok).count();
    });
    let mut number = 0;
    while let Some(name) = names.recv().await {
        number += 1;
        tasks.spawn_until_stop("far call", serve(rooms.as_agent(name.trim()), far.clone(), number));
    }
    let _ = reading.await;
}

async fn serve(target: RoomTarget, far: Arc<Far>, number: usize) {
    let (_orders, mut orders) = mpsc::channel(1);
    let (news, _unread) = NewsSender::new(NEWS);
    let (settings, dialer) = (far.settings.clone(), far.dialer.clone());
    let joined = RoomCall::attend(target, settings, dialer, Patience::default(), &mut orders, &news).await;
    let mut call = match joined {
        Ok(call) => call,
        Err(end) => return tracing::warn!(?end, "the far side cannot join a room"),
    };
    let Some(media) = call.sent_media() else { return };
    let bell = Arc::<Bell>::default();
    let (mut rings, peer) = packet_rings(bell.waker());
    let mut pump = Pump::new(peer, bell);
    let carried = call.run(&mut pump, &mut orders, &news);
    tokio::pin!(carried);
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    // Calls do not speak in step.
    let (mut at, mut sent) = (number * 37, 0u32);
    loop {
        tokio::select! {
            _ = &mut carried => return,
            _ = ticks.tick() => {
                // Its own lateness is not measured.
                let packet = rtp(media.payload_type, sent, 1, &far.packets[at % far.packets.len()]);
                rings.send(Time::default(), MediaChannel::Rtp, &packet);
                (at, sent) = (at + 1, sent.wrapping_add(1));
                far.sent.fetch_add(1, Ordering::Relaxed);
                while let Some(packet) = rings.next_packet() {
                    far.received.fetch_add(u64::from(packet.path == MediaChannel::Rtp), Ordering::Relaxed);
                }
            }
        }
    }
}
